/* SPDX-License-Identifier: BSD-3-Clause */
/* What both who makes and who reads a block of events must expect alike. */
#ifndef NT_SOURCE_RECORDING_LINES_H
#define NT_SOURCE_RECORDING_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "event/event.h"

/* The columns that are cut into groups, in the order of their frames in a group: by row … */
enum recording_framed {
    FRAMED_TIME,
    FRAMED_TICKS,
    FRAMED_RING,
    FRAMED_SESSION,
    FRAMED_POSITION,
    FRAMED_SPAN,
    FRAMED_COUNT,
    FRAMED_TOTAL,
    FRAMED_MERGED,
    FRAMED_FLAGS,
    FRAMED_SETTER,
    FRAMED_DATA_SIZE,
    FRAMED_ROWS, /* … and by stream */
    FRAMED_VALUE,
    FRAMED_ARGUMENT,
    FRAMED
};

/* How the ring of a row is told. */
enum {
    RECORDING_RING_PLAIN,     /* of each */
    RECORDING_RING_BY_STREAM, /* where it is not that of the stream's row before */
    RECORDING_RING_FEW        /* of each, and where all of them are before each group */
};

/* How the session of a row is told. */
enum {
    RECORDING_SESSION_PLAIN,     /* of each */
    RECORDING_SESSION_BY_OBJECT, /* where it is not that of the object's row before */
    RECORDING_SESSION_BY_RING    /* … of the ring's */
};

static inline uint64_t recording_session_low(uint64_t session)
{
    return session & ((UINT64_C(1) << 48) - 1);
}

/* Bytes of its ring that an event takes. */
static inline uint64_t recording_span(const struct nt_event *event)
{
    uint64_t slots = event->flags & NT_RECORD_DATA ? event->argument >> 32 : 1;
    return event->ring == NT_EVENT_NO_RING ? 1 : slots > 0 && slots < 256 ? 64 * slots : 64;
}

/* Flags of the next event of a stream whose last one had these. */
static inline uint16_t recording_flags(uint16_t before, bool session_changed)
{
    return (uint16_t)((before & ~NT_RECORD_FIRST) | (session_changed ? NT_RECORD_FIRST : 0));
}

/* Ticks of one program by its times: a line through its first and its last event in the block. */
struct recording_line {
    uint64_t time, ticks;
    uint64_t slope; /* ticks a ns, times 2^40 */
    uint64_t last_time, last_ticks;
    int64_t least; /* off the line, at most 0 */
    bool seen;
};

static inline uint64_t recording_line_at(const struct recording_line *line, uint64_t time)
{
    return line->ticks + (uint64_t)(((__int128)(int64_t)(time - line->time) * line->slope) >> 40);
}

static inline void recording_line_see(struct recording_line *line, uint64_t time, uint64_t ticks)
{
    if (!line->seen) {
        *line = (struct recording_line){ .time = time, .ticks = ticks, .seen = true };
    }
    line->last_time = time;
    line->last_ticks = ticks;
}

static inline void recording_line_draw(struct recording_line *line)
{
    uint64_t past = line->last_time - line->time, ticks = line->last_ticks - line->ticks;
    bool sane = (int64_t)past > 0 && (int64_t)ticks >= 0 && ticks / past < UINT64_C(1) << 20;
    line->slope = sane ? (uint64_t)(((unsigned __int128)ticks << 40) / past) : UINT64_C(1) << 40;
}

#endif
