/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings: what a source told and gave, kept in a file; written block by block, so that whatever ends the writer,
   all whole blocks can be read; and read as a source like any other. Knows no log, model or output. */
#ifndef NT_SOURCE_RECORDING_RECORDING_H
#define NT_SOURCE_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "source/merge.h"
#include "source/source.h"

/* A recording's magic without the version, its last byte. */
#define NT_RECORDING_MAGIC "NTREC\r\n"

/* ---- Writing ---- */

struct nt_recording;

struct nt_recording_stats {
    uint64_t events;      /* taken */
    uint64_t losses;      /* likewise */
    uint64_t lost;        /* slots of these */
    uint64_t bytes;       /* of the file so far; what was not flushed is not in it */
    uint64_t event_bytes; /* of these, in blocks of events */
};

/* Begins a recording at the start of an empty file that is open for writing, and is the caller's. `now`: ns since 1970.
   `thinned`: not all events will be given, on purpose. 0 or a negative code.
   Once a call has failed to write, the file is cut behind its last whole block, and every further call fails alike. */
int nt_recording_new(int file, uint64_t now, bool thinned, struct nt_recording **ret_recording);
/* What was not flushed is not written. NULL is ignored. */
void nt_recording_free(struct nt_recording *take_recording);
/* The next event, or what is lost before the next one, in the order in which they are to be read. `thread` wrote the
   event, 0: not known. Programs have numbers below 2^20. 0 or a negative code. */
int nt_recording_event(struct nt_recording *recording, const struct nt_event *event, uint32_t thread);
int nt_recording_loss(struct nt_recording *recording, const struct nt_merge_loss *loss);
/* Takes a snapshot of the source and keeps all that it tells, in place of what was told before; nothing is written if
   that is the same. What the source cannot read it says through `bad`, with `arg`. 0 or a negative code. */
int nt_recording_tables(struct nt_recording *recording, struct nt_source *source, uint64_t now,
                        void (*bad)(void *arg, const char *path, int error, const char *text), void *arg);
/* Whether a snapshot is due: events name objects that the last one did not tell, or it is long behind them. */
bool nt_recording_wants_tables(const struct nt_recording *recording);
/* Writes what there is as a block, however little. 0 or a negative code. */
int nt_recording_flush(struct nt_recording *recording);
/* The same, and the end with a directory of the blocks. */
int nt_recording_finish(struct nt_recording *recording, uint64_t now);
struct nt_recording_stats nt_recording_stats(const struct nt_recording *recording);

/* ---- Reading ---- */

struct nt_recording_options {
    const char *const *files;
    size_t file_count;
    /* Told once of each damage, when it is found: what cannot be read, with its offset; all else is read. May be
       NULL. */
    void (*bad)(void *arg, const char *path, int error, const char *text);
    void *arg;
};

/* Opens the files as one source, whose events are merged by time; of each the lane is in the order that it was written
   in. What cannot be opened is told. 0 or -ENOMEM. */
int nt_source_recording_open(const struct nt_recording_options *options, struct nt_source **ret_source);

/* What a recording is, whatever it holds: no block of events is read for it. */
struct nt_recording_info {
    uint32_t version;
    bool ended;       /* else it was cut, or its recorder was stopped */
    bool thinned;     /* events were left out on purpose */
    uint64_t id;      /* of the recording; 0: its header is damaged */
    uint64_t created; /* ns since 1970, 0 likewise */
    uint64_t bytes;   /* of the file */
    uint64_t blocks;  /* that were found, without directory and end */
    uint64_t event_blocks, event_bytes;
    uint64_t table_blocks, table_bytes;
};
/* 0, or a negative code: it cannot be read. */
int nt_recording_info(const char *path, struct nt_recording_info *ret_info);

#endif
