/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay process and the objects that it watches: each count goes to the log and, apart from it, to the
   process's truth. This is how a program that has its own bookkeeping would wrap <nt/log.h>. */
#ifndef RELAY_WATCH_H
#define RELAY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <nt/log.h>

#include "truth.h"

struct options {
    uint64_t requests, rate, seconds, seed, churn, reconnect_every, fork_every, idle, timeout;
    uint64_t size_min, size_max;
    uint64_t ring_bytes, cap_bytes;
    uint64_t session_count, parts;
    unsigned workers, threads;
    bool log, sessions, node_per_process;
    const char *truth;
};

enum { PROGRAM_LINE = 160000 }; /* bytes of a line at most */

struct program;

struct watch {
    struct program *program;
    nt_object object;
    nt_session session; /* that it counts in */
    char path[TRUTH_PATH];
    uint32_t flags;              /* TRUTH_… */
    uint32_t truth;              /* object's number there */
    uint32_t truth_number;       /* of the truth that the numbers are of */
    uint32_t read;               /* number + 1 of its last read in the truth's series */
    uint32_t tally[TRUTH_KINDS]; /* numbers + 1, 0: none yet */
};

struct program { /* one process */
    const struct options *options;
    char name[32];
    struct truth truth;
    uint32_t truth_number; /* goes up when a fork starts a truth of its own */
    nt_log *log;
    nt_kind request_done;
    struct watch self; /* the log's own object of the process: what becomes of sessions is counted there */
    int lines;         /* socket to the parent: one message, one line */
    uint64_t random;
};

/* 0 or a negative errno value: of the truth file alone; without a log a program runs as with one. */
int program_open(struct program *program, const struct options *options, const char *name, int lines);
/* In a forked child, first thing: counts from here on are its own. */
int program_forked(struct program *program);
/* Hands the line of totals to the parent and closes the log. */
void program_close(struct program *program);
uint64_t program_random(struct program *program);

struct watch_options {
    const struct watch *parent; /* NULL: the program */
    const char *name;
    uint32_t kind;
    bool shared;
    bool brief; /* one of many that come and go; a watch used for one before may be used again */
};

void watch_open(struct program *program, struct watch *watch, const struct watch_options *options);
/* The log's own object of the process, which nobody closes. */
void watch_open_program(struct program *program, struct watch *watch);
void watch_close(struct watch *watch);
/* The next epoch. */
void watch_succeed(struct watch *watch);
/* The same shared object, for another thread. */
struct watch watch_share(const struct watch *watch);

void watch_count(struct watch *watch, nt_kind kind, uint64_t value);
void watch_count_at(struct watch *watch, nt_kind kind, uint64_t value, nt_time at);
/* The same with an argument that the record keeps. */
void watch_count_with(struct watch *watch, nt_kind kind, uint64_t value, uint64_t argument);
/* The same in a session that is not the object's. */
void watch_count_in(struct watch *watch, nt_session session, nt_kind kind, uint64_t value);
/* The relay's own kind: a request is done. */
struct watch_done {
    uint64_t id, latency;
    const char *path;
    double load;
};
void watch_done(struct watch *watch, const struct watch_done *done);

/* ---- Sessions (session.c) ---- */

struct session {
    nt_session id;  /* 0: none, as where there is no log */
    bool made;      /* by this process; else it came with a message */
    uint32_t truth; /* number + 1 there, 0: none */
};

/* `self` is the calling thread's view of the program's own object. All of this does nothing for session 0, or where
   the relay is to have no sessions. */
struct session watch_session_new(struct watch *self, const char *name, nt_session parent);
/* This process's part of what a session does, a session below it; the session itself if there are to be none. */
struct session watch_session_part(struct watch *self, const char *name, nt_session whole);
void watch_session_end(struct watch *self, const struct session *session);
/* Ends it unless it is the whole. */
void watch_session_part_end(struct watch *self, const struct session *part);
void watch_session_stand(struct watch *self, const struct session *session);
/* What the object counts from here on belongs to that session, 0: to none. */
void watch_session_set(struct watch *watch, nt_session session);
/* The same from the message on that was just read and measured `value`. */
void watch_session_join(struct watch *watch, nt_session session, uint64_t value);

/* ---- ---- */

/* For what counts in its own way: around one call of the library. The second takes what the first returned. */
uint32_t watch_begin(struct watch *watch, uint32_t kind, const struct truth_entry *entry);
void watch_end(const struct watch *watch, uint32_t tally);

/* Nanoseconds of a clock that only goes forward. */
uint64_t watch_clock(void);

#endif
