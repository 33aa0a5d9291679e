/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the block that is being read, between reading all of it (decode.c) and some (pick.c), and how a
   row is put together. */
#ifndef NT_SOURCE_RECORDING_DECODER_H
#define NT_SOURCE_RECORDING_DECODER_H

#include <nt/error.h>
#include <nt/log_layout.h>

#include "source/recording/block.h"
#include "source/recording/index.h"
#include "source/recording/lines.h"
#include "source/recording/pack.h"

#define ROWS RECORDING_EVENTS_MAX
#define GROUPS (ROWS / PACK_FRAME)
#define FEW_RINGS 16u

struct decoder_object {
    uint32_t session;
    uint32_t line;
};

struct decoder_stream {
    uint64_t count, total;
    uint32_t at; /* of its next row in the order of streams */
    uint32_t rows;
    uint32_t object, line;
    uint32_t program, slot, generation;
    uint32_t ring, session;
    uint16_t kind, flags;
};

struct decoder_ring {
    uint32_t program, ring;
    uint64_t first, next;
    uint32_t session;
};

/* What is the same in the block before need not be read again. */
struct decoder_known {
    bool known;
    uint32_t count, size;
    uint64_t hash;
};

struct recording_decoder {
    struct recording_head head;
    struct recording_parts parts;
    struct recording_object *names;
    struct decoder_object *objects;
    struct decoder_known objects_known;
    struct decoder_stream *streams;
    uint32_t *stream_object; /* places */
    struct decoder_ring *rings;
    uint64_t *sessions;
    struct pack_table lows, uppers; /* the bits of these, where they are looked up */
    struct pack_table stream_ends;  /* in the order of streams */
    struct recording_loss *losses;
    struct recording_thread *changes;
    struct recording_line *lines;
    uint32_t line_count;
    uint32_t *gaps;   /* places of objects */
    uint32_t *picked; /* streams of which all is noted */
    uint32_t picked_count;
    uint32_t *stream_of;          /* by row */
    uint64_t *values, *arguments; /* by stream */
    uint64_t argument;            /* of all rows, if they are alike */
    bool arguments_alike;
    uint64_t *places; /* while lists are read */
    size_t rows_room, losses_room;
    uint8_t *fetched; /* the body, as far as it was needed */
    size_t fetched_room;
    uint64_t *misses, *miss_sessions; /* rows, and numbers of sessions */
    uint32_t miss_count, miss_at;
    uint8_t session_mode, ring_mode, position_shift;
    struct pack_cursor cursors[FRAMED];
    struct pack_table starts;                 /* times of the first rows of groups, since the first */
    const uint8_t *group_ends, *group_hashes; /* 4 and 8 bytes each: of those by row, then of those by stream */
    /* By group and ring: what positions went on by before it; place + 1 of the session of the ring's row before it, 0
       none. */
    struct pack_table bases, ring_sessions;
    const uint8_t *data, *data_end;
    uint64_t time; /* of the row before */
    uint32_t row, ring;
    /* of rows that are picked: */
    uint64_t marks[ROWS / 64];
    uint32_t group; /* whose frames the cursors have */
    uint32_t at;    /* rows of it that were passed */
    uint32_t seen;  /* rows of it of which all numbers are known that are needed behind them */
    bool plain;     /* no position is out of line, and no event takes more than others */
};

/* Head and memory; sections as a whole, each checked; all of them 0, -ENOMEM or -NT_EFORMAT. */
int decoder_head(struct recording_decoder *decoder, const struct recording_parts *parts);
int decoder_lists(struct recording_decoder *decoder);
int decoder_sessions(struct recording_decoder *decoder);
int decoder_session_tables(struct recording_decoder *decoder);
int decoder_objects(struct recording_decoder *decoder);
/* `wanted`, by place: only of these all is noted; NULL: of all. */
int decoder_streams(struct recording_decoder *decoder, const bool *wanted);
int decoder_columns(struct recording_decoder *decoder);
/* What the streams begin with. */
void decoder_gaps(struct recording_decoder *decoder, struct pack_in *in);
/* What a section has to unpack, once it was checked; all bytes must be used then. */
struct pack_in decoder_section(const struct recording_decoder *decoder, enum recording_section section);
/* Likewise a group of the body: rows first, then streams. */
struct pack_in decoder_group(const struct recording_decoder *decoder, uint32_t number);
bool decoder_group_is_whole(const struct recording_decoder *decoder, uint32_t number);
/* Before that, where the body is not there: gets these groups and those between. */
bool decoder_fetch(struct recording_decoder *decoder, uint32_t first, uint32_t last);
/* Rows of the group that begins with row `at`. */
bool decoder_take_group(struct recording_decoder *decoder, uint32_t at);

static inline uint32_t decoder_groups(const struct recording_decoder *decoder)
{
    return (decoder->head.rows + PACK_FRAME - 1) / PACK_FRAME;
}

static inline uint64_t decoder_start(const struct recording_decoder *decoder, uint32_t group)
{
    return decoder->head.first + pack_table_number(&decoder->starts, group);
}

/* ---- Rows ---- */

static inline uint32_t decoder_row_ring(const struct recording_decoder *d, const struct decoder_stream *stream,
                                        uint32_t at)
{
    uint64_t told = d->cursors[FRAMED_RING].values[at];
    if (d->ring_mode == RECORDING_RING_BY_STREAM) {
        told = told != 0 ? told - 1 : stream->ring != RECORDING_NONE ? stream->ring : d->ring;
    }
    return told < d->head.rings ? (uint32_t)told : RECORDING_NONE;
}

static inline uint32_t decoder_row_session(struct recording_decoder *d, const struct decoder_stream *stream,
                                           uint32_t ring, uint32_t at)
{
    uint64_t told;
    if (d->session_mode == RECORDING_SESSION_PLAIN) {
        told = d->cursors[FRAMED_SESSION].values[at];
        return told < d->head.sessions ? (uint32_t)told : RECORDING_NONE;
    }
    uint32_t *last = d->session_mode == RECORDING_SESSION_BY_RING ? &d->rings[ring].session
                                                                  : &d->objects[stream->object].session;
    if (d->miss_at < d->miss_count && d->misses[d->miss_at] == d->row) {
        told = d->miss_sessions[d->miss_at++];
        *last = told < d->head.sessions ? (uint32_t)told : RECORDING_NONE;
    }
    return *last;
}

static inline void decoder_row_numbers(struct recording_decoder *d, struct decoder_stream *stream, uint32_t at,
                                       struct nt_event *event)
{
    event->merged = (uint32_t)d->cursors[FRAMED_MERGED].values[at] + 1;
    event->value = d->values[stream->at];
    event->argument = d->arguments_alike ? d->argument : d->arguments[stream->at];
    stream->at++;
    stream->count += event->merged + pack_unzigzag(d->cursors[FRAMED_COUNT].values[at]);
    stream->total += event->value + pack_unzigzag(d->cursors[FRAMED_TOTAL].values[at]);
    event->count = stream->count;
    event->total = stream->total;
}

static inline bool decoder_row_data(struct recording_decoder *d, uint32_t at, struct nt_event *event)
{
    uint64_t size = d->cursors[FRAMED_DATA_SIZE].values[at];
    event->data = NULL;
    event->data_size = 0;
    if (size != 0) {
        if (size > NT_SOURCE_DATA || size > (size_t)(d->data_end - d->data)) {
            return false;
        }
        event->data = d->data;
        event->data_size = (uint32_t)size;
        d->data += size;
    }
    return true;
}

/* All but the time and the position. False: it cannot be. */
static inline bool decoder_row(struct recording_decoder *d, struct decoder_stream *stream, uint32_t at,
                               struct nt_event *event)
{
    uint32_t number = decoder_row_ring(d, stream, at);
    uint32_t session = number != RECORDING_NONE ? decoder_row_session(d, stream, number, at) : RECORDING_NONE;
    if (session == RECORDING_NONE || !decoder_row_data(d, at, event) || d->rings[number].program != stream->program) {
        return false;
    }
    bool changed = stream->session != session && stream->session != RECORDING_NONE;
    event->flags = recording_flags(stream->flags, changed) ^ (uint16_t)d->cursors[FRAMED_FLAGS].values[at];
    event->session = session; /* its place */
    decoder_row_numbers(d, stream, at, event);
    event->program = stream->program;
    event->ring = d->rings[number].ring;
    event->object = stream->slot;
    event->generation = stream->generation;
    event->kind = stream->kind;
    event->setter = (uint32_t)d->cursors[FRAMED_SETTER].values[at];
    stream->flags = event->flags;
    stream->session = session;
    stream->ring = d->ring = number;
    return true;
}

#endif
