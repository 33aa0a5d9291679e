/* SPDX-License-Identifier: BSD-3-Clause */
/* One event as the processor's half knows it, whatever it was read from. Knows no ring, file or clock. */
#ifndef NT_EVENT_EVENT_H
#define NT_EVENT_EVENT_H

#include <stddef.h>
#include <stdint.h>

/* "Ring" of events that no ring holds: the source found them out by itself. */
#define NT_EVENT_NO_RING UINT32_MAX
/* Flag: many threads may count on the object at once, so that counts may be in another order than times. */
#define NT_EVENT_SHARED 0x100u
/* Flags that no source sets, but who puts events in order: nt_merge_item's `late` and `ahead`. */
#define NT_EVENT_LATE 0x200u
#define NT_EVENT_AHEAD 0x400u

/* An event of kind mask is somebody's change of an object's mask: value is the new mask, argument the old one, time
   when it was made, ring NT_EVENT_NO_RING, position a number of its own; count and total are 0. One of setter 0 that
   leaves the mask as it is says that it was changed in ways that nobody knows, from that time up to the next one. */
struct nt_event {
    uint64_t time;  /* ns since 1970, by the calibration of its clock domain */
    uint64_t ticks; /* as the program took it */
    uint64_t session;
    uint64_t value;
    uint64_t count; /* of its kind on its object, this one included */
    uint64_t total; /* sum of the values so far, modulo 2^64 */
    uint64_t argument;
    uint64_t position; /* in its ring, bytes; with program and ring its identity */
    uint32_t program;  /* number of the program within the source */
    uint32_t ring;
    uint32_t object; /* slot */
    uint32_t generation;
    uint32_t merged; /* events that this one stands for, itself included */
    uint16_t kind;
    uint16_t flags;      /* NT_RECORD_…, NT_EVENT_… */
    const uint8_t *data; /* fields of a user-defined kind; stands until the next read of the source */
    uint32_t data_size;
    uint32_t setter; /* of a mask event: pid of who made the change, 0: not known; else 0 */
};

#endif
