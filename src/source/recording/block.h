/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of events and losses: its two parts, summary and body, made and read. A block is read without any other: what
   its numbers are predicted from is in it. Most of an event follows from what came before it on its object and in its
   ring (its count and total, session, position, ticks); only what does not is stored. Knows no file. docs/format.md,
   "Blocks of events", has the bytes. */
#ifndef NT_SOURCE_RECORDING_BLOCK_H
#define NT_SOURCE_RECORDING_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "event/event.h"
#include "source/merge.h"
#include "source/recording/format.h"

/* Parts of a summary, one behind the other after its head, each with a hash of its own. */
enum recording_section {
    RECORDING_LISTS, /* rings, threads, losses */
    RECORDING_SESSIONS,
    RECORDING_OBJECTS,
    RECORDING_STREAMS, /* and which objects' counts have gaps */
    RECORDING_COLUMNS, /* what the groups of the body have in common, and where these are */
    RECORDING_SECTIONS
};

enum {
    /* Times go back in the block, or to before the greatest of those before it. */
    RECORDING_UNSORTED = 1u,
    /* Missing counts may come later, or counts twice: of shared objects, or odd ones. */
    RECORDING_UNSTEADY = 2u,
    /* Of some objects counts are missing before it or in it. */
    RECORDING_GAPS = 4u,
    /* More streams than are followed came so far: of those that came long ago it is not known. */
    RECORDING_VAST = 8u,
};

/* What a summary begins with; its hash is that of the block's summary. */
struct recording_head {
    uint32_t rows, losses;
    uint64_t first, last;                 /* least and greatest time of the events */
    uint64_t session_first, session_last; /* of the low 48 bits of their sessions, none left out; first > last: none */
    uint32_t objects, streams, rings, sessions; /* in the lists that follow; a stream is a kind on an object */
    uint32_t changes;                           /* of the threads that rings belong to */
    uint32_t data;                              /* bytes of fields */
    uint32_t flags;
    uint32_t gaps; /* objects that have some */
    uint32_t sizes[RECORDING_SECTIONS];
    uint32_t spare;
    uint64_t hashes[RECORDING_SECTIONS];
};
_Static_assert(sizeof(struct recording_head) == 136, "drawn in docs/format.md");

/* ---- Making ---- */

struct recording_encoder;

int recording_encoder_new(struct recording_encoder **ret_encoder);
void recording_encoder_free(struct recording_encoder *take_encoder);
/* It takes no more: finish it. */
bool recording_encoder_is_full(const struct recording_encoder *encoder);
bool recording_encoder_is_empty(const struct recording_encoder *encoder);
/* The next event, and the thread that wrote it, 0: not known. 0 or -ENOMEM; -E2BIG: what no source gives. */
int recording_encoder_event(struct recording_encoder *encoder, const struct nt_event *event, uint32_t thread);
int recording_encoder_loss(struct recording_encoder *encoder, const struct nt_merge_loss *loss);
/* Appends what there is as a block, and begins the next one. Failures are left in the buffers. */
void recording_encoder_finish(struct recording_encoder *encoder, struct nt_buffer *summary, struct nt_buffer *body);

/* Called for each life of an object that comes up in a block for the first time. */
void recording_encoder_on_object(struct recording_encoder *encoder,
                                 void (*call)(void *arg, const struct nt_event *event), void *arg);

/* ---- Reading ---- */

struct recording_loss {
    uint32_t before; /* the row that it comes before */
    struct nt_merge_loss loss;
};

/* From that position of the ring on. */
struct recording_thread {
    uint32_t program, ring;
    uint64_t position;
    uint32_t thread;
};

struct recording_decoder;

int recording_decoder_new(struct recording_decoder **ret_decoder);
void recording_decoder_free(struct recording_decoder *take_decoder);
/* A block's parts; they stay where they are until the next one, with PACK_SLACK readable bytes behind each. The head of
   the summary was checked, nothing else is. */
struct recording_parts {
    const uint8_t *summary, *body;
    size_t summary_size, body_size;
    /* Where there is no body: gets some bytes of it. 0 or a negative code. */
    int (*fetch)(void *arg, size_t from, size_t size, uint8_t *to);
    void *arg;
};
/* Begins a block, of which all is checked first. 0, -ENOMEM, or -NT_EFORMAT. */
int recording_decoder_begin(struct recording_decoder *decoder, const struct recording_parts *parts);
const struct recording_head *recording_decoder_head(const struct recording_decoder *decoder);
/* Up to `room` events that follow; their data are in the body. How many, 0: no more, or -NT_EFORMAT. */
int recording_decoder_next(struct recording_decoder *decoder, struct nt_event *events, size_t room);
/* Rows that came. */
uint32_t recording_decoder_at(const struct recording_decoder *decoder);
const struct recording_loss *recording_decoder_losses(const struct recording_decoder *decoder);
const struct recording_thread *recording_decoder_threads(const struct recording_decoder *decoder);

/* ---- Reading some of it: what is not needed is neither read nor checked ---- */

struct recording_object {
    uint32_t program, slot, generation;
};

/* Rings, threads and losses alone: no rows. */
int recording_decoder_lists(struct recording_decoder *decoder, const struct recording_parts *parts);
/* Whether one of the sessions is in it: 1 or 0, -ENOMEM or
   -NT_EFORMAT. */
int recording_decoder_has_session(struct recording_decoder *decoder, const struct recording_parts *parts,
                                  const uint64_t *sessions, size_t count);
/* The block's objects, and the places of those that have gaps; they stand until the next call of any. */
int recording_decoder_objects(struct recording_decoder *decoder, const struct recording_parts *parts,
                              const struct recording_object **ret_objects);
int recording_decoder_gaps(struct recording_decoder *decoder, const struct recording_parts *parts,
                           const uint32_t **ret_places);
/* Begins a block of which only rows of the objects come whose place is marked in `wanted`. 1: so it is; 0: it has so
   many of them, or is such, that it must be read as a whole; -ENOMEM or -NT_EFORMAT. */
int recording_decoder_pick(struct recording_decoder *decoder, const struct recording_parts *parts, const bool *wanted);
/* Those rows, up to `room` of them that come before row `end`. How many, 0: no more of these, or -NT_EFORMAT. */
int recording_decoder_next_picked(struct recording_decoder *decoder, uint32_t end, struct nt_event *events,
                                  size_t room);

#endif
