/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of programs that log now, or did: reads their logs in shared memory without stopping them, and
   what the dead left behind; also single log files copied from elsewhere. Removes what the dead left behind. */
#ifndef NT_SOURCE_LIVE_LIVE_H
#define NT_SOURCE_LIVE_LIVE_H

#include <stddef.h>

#include "source/source.h"

/* Zeros mean the default. Strings are copied. */
struct nt_live_options {
    const char *directory;    /* default: $NTSCOPE_DIR, else /dev/shm/ntscope-EUID; for root all of these */
    const char *const *files; /* log files, instead of a directory */
    size_t file_count;
};

/* Opens no file yet: what cannot be read is told by each snapshot (`bad`), the rest is read. A directory that is
   not there yet is looked for again. 0 or -ENOMEM. The source is for one thread at a time. */
int nt_source_live_open(const struct nt_live_options *options, struct nt_source **ret_source);

/* For tests: see live_snapshot_between and live_sessions_between. */
void nt_source_live_between(struct nt_source *source, void (*call)(void *arg), void *arg);

/* What became of each log that was looked at. `bad` may be NULL. */
struct nt_live_clean_sink {
    void (*removed)(void *arg, const char *path);
    void (*kept)(void *arg, const char *path, enum nt_program_state state); /* its program lives, or may */
    void (*bad)(void *arg, const char *path, int error, const char *text);  /* not removed: one line */
    void *arg;
};

/* Removes the logs of dead programs from the directory of `options` (files there are none), and unfinished ones
   left behind; never one whose program lives, may live, or cannot be told. Returns how many, or -ENOMEM. */
int nt_live_remove_dead(const struct nt_live_options *options, const struct nt_live_clean_sink *sink);

/* What to do to the mask of one object. */
struct nt_live_mask {
    uint32_t program, object, generation; /* as a snapshot told them */
    uint64_t clear, set;                  /* bits to take away, then bits to add */
    uint64_t before, after;               /* what it was and is: set by the call */
};
/* 0; -ESTALE: the object is gone; -ESRCH: the program has ended, or it cannot be told whether it lives (a copied file);
   or another negative code: -EACCES, …. */
int nt_live_mask_change(struct nt_source *source, struct nt_live_mask *mask);

#endif
