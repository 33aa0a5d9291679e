/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the block that is being made, between taking events (encode.c) and packing them (encode_block.c). */
#ifndef NT_SOURCE_RECORDING_ENCODER_H
#define NT_SOURCE_RECORDING_ENCODER_H

#include "source/recording/block.h"
#include "source/recording/follow.h"
#include "source/recording/index.h"
#include "source/recording/lines.h"
#include "source/recording/pack.h"

#define ROWS RECORDING_EVENTS_MAX
#define GROUPS (ROWS / PACK_FRAME)
#define FEW_RINGS 16u /* so many are told of each row */

enum { COUNT, TOTAL, MERGED, FLAGS, POSITION, SPAN, SETTER, DATA_SIZE, RING, LISTS };

struct encoder_object {
    uint32_t program, slot, generation;
    uint32_t place; /* in the order that is stored */
    uint32_t line;
    bool gaps; /* counts are missing, or are odd */
};

struct encoder_stream {
    uint32_t object; /* number in the block */
    uint16_t kind;
    uint16_t flags;                      /* of its last event */
    uint32_t rows;                       /* how many are its */
    uint32_t ring;                       /* of its last event: number in the block */
    uint64_t session;                    /* of its last event */
    uint64_t count, total;               /* of its last event */
    uint64_t count_before, total_before; /* its first one */
    uint32_t at, row;                    /* while rows are put in its order */
    uint32_t uncounted;                  /* rows of count 0 */
    bool gaps, odd, shared;              /* counts are missing; go back or cannot be; come from several threads */
};

struct encoder_ring {
    uint32_t program, ring;
    uint64_t first, next; /* positions: of its first event, and expected */
    uint32_t thread;
};

struct recording_encoder {
    struct recording_head head;
    struct encoder_object *objects;
    struct encoder_stream *streams;
    struct encoder_ring *rings;
    uint64_t *sessions;
    struct recording_loss *losses;
    struct recording_thread *changes; /* `ring` is its number in the block */
    struct recording_index object_index, stream_index, ring_index, session_index;
    /* by row */
    uint64_t *time, *ticks, *session, *value, *argument;
    uint32_t *stream_of, *ring_of, *session_of;
    struct pack_list lists[LISTS];
    uint64_t position_bits, argument_bits; /* all of them */
    struct nt_buffer data;
    uint32_t data_ends[GROUPS];
    uint64_t (*bases)[FEW_RINGS];     /* by group: positions that its rings are at before its first row */
    uint32_t base_counts[GROUPS];     /* rings that there were then */
    uint64_t high;                    /* greatest time so far, of all blocks */
    struct recording_follow follow;   /* likewise */
    struct nt_buffer columns, frames; /* while the block is put together */
    struct pack_framed *framed;
    uint64_t *room;    /* for a column */
    uint64_t *scratch; /* and another */
    uint32_t *order;   /* of streams, objects or sessions */
    void (*on_object)(void *arg, const struct nt_event *event);
    void *on_object_arg;
};

/* Packs the block; what it is made of is worth nothing afterwards. */
void encoder_write(struct recording_encoder *encoder, struct nt_buffer *summary, struct nt_buffer *body);

#endif
