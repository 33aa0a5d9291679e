/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading one file of a source of recordings (recording.c), all of it or what is asked for (find.c). */
#ifndef NT_SOURCE_RECORDING_READER_H
#define NT_SOURCE_RECORDING_READER_H

#include "source/recording/block.h"
#include "source/recording/file.h"
#include "source/recording/index.h"
#include "source/recording/recording.h"

#define READER_STASH 256u /* events of a block that are read at once */

enum reader_mode {
    READER_ALL,    /* all rows */
    READER_SOME,   /* of all rows those that are asked for */
    READER_PICKED, /* those of some objects */
    READER_NONE,   /* losses alone */
    READER_NOTHING /* the block is passed over */
};

struct finder;

/* Of one ring: which threads wrote it. */
struct owners {
    uint32_t program, ring;
    uint32_t count, room;
    struct owner {
        uint64_t position;
        uint32_t thread;
    } * owners;
};

struct reader {
    struct recording_source *source;
    char *path;
    struct recording_file file;
    bool open;
    uint32_t base; /* what its numbers of programs are raised by */
    struct recording_decoder *decoder;
    struct recording_read read, tables; /* the block that events come from, and one of a snapshot */
    size_t place;                       /* the next block */
    bool begun;                         /* a block: the decoder has it */
    enum reader_mode mode;              /* how the block's rows are read */
    uint32_t loss_at;
    struct nt_event stash[READER_STASH];
    uint32_t stash_at, stash_count;
    uint32_t stash_row; /* none of them comes before it */
    struct owners *rings;
    struct recording_index ring_index;
    uint32_t ring_count, ring_room;
    struct recording_index told; /* texts, by their hash */
    struct finder *finder;       /* what is asked for; NULL: everything */
    uint64_t passed;             /* latest time of what was left out */
};

struct recording_source {
    struct nt_source source;
    struct reader *readers;
    size_t count;
    void (*bad)(void *arg, const char *path, int error, const char *text);
    void *arg;
    uint8_t *data; /* of `read` */
};

/* How to read a block of events, which is begun unless it is passed over; or -ENOMEM or -NT_EFORMAT. */
int finder_begin(struct reader *reader, const struct recording_place *place);
/* Whether an event of a block that is read in part is asked for. */
bool finder_wants(const struct finder *finder, const struct nt_event *event);
/* Whether all events of the life come. */
bool finder_is_complete(struct finder *finder, uint32_t program, uint32_t object, uint32_t generation);
/* 1: the reader has a finder from now on; 0: all is read; or a negative code. */
int finder_new(struct reader *reader, const struct nt_source_wanted *wanted);
void finder_free(struct finder *take_finder);

#endif
