/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading one ring while its thread writes it, or after the thread is dead: events in order, and what was lost
   in its place. The protocol and its proof are in docs/format.md, "Rings". Trusts nothing in the ring.
   Knows no file and no program. */
#ifndef NT_SOURCE_LIVE_RING_H
#define NT_SOURCE_LIVE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "event/event.h"
#include "source/live/clock.h"
#include "source/live/map.h"
#include "source/source.h"

struct live_ring {
    struct live_map *map;
    const struct nt_layout_ring *shared; /* its directory entry */
    const uint8_t *slots;                /* its first slot */
    uint64_t offset;                     /* of that in the record region */
    uint64_t size, chunk;                /* checked copies */
    uint64_t there;                      /* bytes from the start that have memory behind them … */
    bool holes;                          /* … but for some pages, that a copy left out: they were zeros */
    uint64_t at;                         /* position of the next slot to read */
    uint64_t until;                      /* no run begins there or behind it; UINT64_MAX at first */
    uint64_t lost_from, lost_to;         /* a loss not told yet; from == to: none */
    uint64_t blocked_at, blocked_by;     /* position and `reserved` when a look behind a hole found nothing */
    uint32_t program, number;
};

/* Where events go. */
struct live_ring_out {
    struct nt_event *events;
    size_t room, count;
    struct nt_source_loss *losses;
    size_t loss_room, loss_count;
    uint8_t *data; /* fields of user-defined kinds */
    size_t data_room, data_used;
};

/* Takes the ring up from its directory entry. 0, -NT_EFORMAT (the entry cannot be), -ENOENT (no memory there). */
int live_ring_init(struct live_ring *ring, struct live_map *map, uint32_t program, uint32_t number);

/* Reads up to what is announced now, and not on, until it is called again: so that reading comes to an end. */
void live_ring_look(struct live_ring *ring);

/* Reads on until there is no more or no more room. `frozen`: nobody writes the ring any more, so that a slot
   that is not finished never will be. */
void live_ring_read(struct live_ring *ring, bool frozen, const struct live_clock *clock, struct live_ring_out *out);

/* Id of the thread that owned the ring at that position; 0: it is not remembered. */
uint32_t live_ring_thread(const struct live_ring *ring, uint64_t position);

struct live_ring_extent {
    uint64_t used;        /* slots used so far */
    uint64_t overwritten; /* of these, no longer there */
};
/* How far the ring was written, from a few looks at its end. While it is written the end may be a few slots
   behind; exact when frozen. */
struct live_ring_extent live_ring_extent(struct live_ring *ring, bool frozen);

#endif
