/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of a user-defined kind, taken one by one from the bytes of an event. Knows the encoding (docs/format.md,
   "User-defined kinds"), not which kinds there are. */
#ifndef NT_EVENT_DECODE_H
#define NT_EVENT_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "event/event.h"

struct nt_event_value {
    uint8_t type; /* NT_FIELD_… */
    union {
        uint64_t u64; /* also id */
        int64_t i64;
        double f64;
        struct nt_bytes bytes; /* also string; in the event's data */
    } as;
};

/* The next field, of that type; *at counts the bytes taken, 0 at first. False: it is not there whole. */
bool nt_event_field(const struct nt_event *event, uint8_t type, size_t *at, struct nt_event_value *ret_value);

#endif
