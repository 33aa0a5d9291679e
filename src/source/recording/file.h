/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording as a file of blocks: where they are, by its directory or, where that is missing, by looking from one to
   the next, over whatever is damaged; and reading one, checked. Knows no event. */
#ifndef NT_SOURCE_RECORDING_FILE_H
#define NT_SOURCE_RECORDING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "source/recording/block.h"
#include "source/recording/format.h"

/* What is known of a block without reading it. */
struct recording_place {
    uint64_t offset, size; /* with its head and what fills it up */
    uint16_t type;
    uint32_t rows, losses;                /* of events; of others all that follows is 0 */
    uint64_t first, last;                 /* times */
    uint64_t session_first, session_last; /* as in its summary */
    uint32_t flags;                       /* likewise */
};

struct recording_places {
    struct recording_place *places;
    size_t count, room;
};

/* The summary of the last block. */
struct recording_end {
    uint64_t directory; /* its offset, 0: there is none */
    uint64_t blocks;    /* before this one */
    uint64_t events, losses, lost;
    uint64_t time; /* ns since 1970 */
    uint64_t spare[2];
};
_Static_assert(sizeof(struct recording_end) == RECORDING_END_SUMMARY, "drawn in docs/format.md");

uint64_t recording_header_hash(const struct recording_header *header);
uint64_t recording_block_hash(const struct recording_block *block, uint64_t offset);

int recording_places_add(struct recording_places *places, const struct recording_place *place);
void recording_places_fini(struct recording_places *places);
void recording_places_pack(const struct recording_places *places, struct nt_buffer *out);
/* Notes what the summary of a block of events says, of which at least the head is there. */
void recording_place_events(struct recording_place *place, const uint8_t *summary);

/* Told of what is damaged: one line, with its offset. */
typedef void recording_bad(void *arg, int error, const char *text);

struct recording_file {
    int file;
    uint64_t size;
    bool ended;   /* it has its end */
    bool thinned; /* events were left out on purpose */
    struct recording_places places;
    recording_bad *bad;
    void *arg;
};

/* A block that was read, with slack behind both parts. */
struct recording_read {
    struct nt_buffer stored, raw;
    const uint8_t *summary, *body;
    size_t summary_size, body_size;
    struct recording_block block;
    const struct recording_file *file; /* and where the body of the block lies in it */
    uint64_t body_offset;
};

/* 0, or a negative code: not a recording, or not one that can be read; `bad` was told why. */
int recording_file_open(struct recording_file *file, const char *path, recording_bad *bad, void *arg);
void recording_file_close(struct recording_file *file);
/* Reads and checks a block that has no events, or (`all` false) the head and summary of any, of one of events the
   summary's head alone. 0, -ENOMEM, or after telling -NT_EFORMAT or
   -NT_ETRUNCATED. */
int recording_file_read(const struct recording_file *file, const struct recording_place *place, bool all,
                        struct recording_read *read);
/* A block of events, with its head and that of its summary checked; what else is in it is for the decoder to check.
   `all` false: without its body, of which the decoder gets what it needs. In `read`. Results as before. */
int recording_file_events(const struct recording_file *file, const struct recording_place *place, bool all,
                          struct recording_read *read, struct recording_parts *ret_parts);
/* Tells that the block is damaged. */
void recording_file_tell(const struct recording_file *file, const struct recording_place *place);
void recording_read_fini(struct recording_read *read);

#endif
