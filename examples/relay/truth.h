/* SPDX-License-Identifier: BSD-3-Clause */
/* What a relay process counted by itself, in a file of its own that outlives kill -9. Shared with the checks
   that hold a log against it. Knows nothing of logs: kinds are numbers, handles are opaque.

   A truth file is a header, objects, sessions, tallies and a series, each of fixed-size entries, the file sparse.
   A tally has one writer at a time and follows this order, which kill -9 cannot break (the stores of a killed
   thread are seen in program order up to some instruction):

       series entry appended          the value is known before anything counts it
       state[(done + 1) & 1] stored   what the sums will be
       begun = done + 1               the operation is in flight
       … the library counts …
       done = begun                   it is over

   So done ≤ the library's count ≤ begun, begun − done is 0 or 1, and the same holds of total and maximum, with
   state[done & 1] and state[begun & 1]. Several tallies of one object and kind (one a thread that counts on a
   shared object) add up, and so do their bounds.

   What a session did is in the series: a tally's n-th entry names the session that its n-th count belongs to, and
   so is done, in flight or never begun as that count is. An entry that joins a message to its session names the
   entry of the read that goes there with it. */
#ifndef RELAY_TRUTH_H
#define RELAY_TRUTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRUTH_MAGIC "RELAYTR\002"
#define TRUTH_SUFFIX ".truth"
#define TRUTH_PATH 104
#define TRUTH_NAME 36
#define TRUTH_KINDS 65 /* 1 to 63 built in, 64 the relay's own */

enum {
    TRUTH_SHARED = 1u,    /* counted by several threads */
    TRUTH_SHORT = 2u,     /* a short-lived one of many */
    TRUTH_INHERITED = 4u, /* of the process that this one was forked from */
    TRUTH_REFUSED = 8u,   /* the log had no room for it */
    TRUTH_CLOSED = 16u,   /* ended: its counts no longer change */
    TRUTH_MANY = 32u,     /* stands for many lives of that path, `handle` being the last one's */
    TRUTH_ORPHAN = 64u,   /* its parent was refused: the log has it right below the process */
    TRUTH_PROGRAM = 128u  /* the log's own object of the process; its path is empty */
};

enum { TRUTH_STANDING = 1u, TRUTH_STANDS = 2u, TRUTH_ENDING = 4u, TRUTH_ENDED = 8u }; /* begun, done; begun, done */

struct truth_header {
    char magic[8];
    uint32_t size; /* of this header */
    uint32_t pid;
    char name[32];             /* of the process: its role */
    uint32_t helper;           /* a helper forked from the process of that name */
    _Atomic uint32_t complete; /* the process came to its end */
    uint32_t object_room, tally_room;
    uint64_t series_room;
    _Atomic uint32_t objects, tallies;
    _Atomic uint64_t series;
    _Atomic uint64_t overflow; /* what found no room: such a file proves nothing */
    uint32_t session_room;
    _Atomic uint32_t sessions;
    _Atomic uint32_t ending; /* its log is closed, or will be in a moment */
    uint32_t kept;
    uint64_t spare[2];
};

struct truth_object {
    _Atomic uint32_t ready; /* stored last */
    _Atomic uint32_t flags;
    uint32_t previous; /* number + 1 of the object it succeeds, 0 none */
    uint32_t epoch;
    _Atomic uint64_t handle; /* the library's, 0 until it is known */
    char path[TRUTH_PATH];   /* below the process, names joined by '/' */
};

struct truth_session {   /* one that this process made */
    _Atomic uint64_t id; /* 0: it was being made */
    uint64_t parent;
    _Atomic uint32_t ready; /* stored before it is made */
    _Atomic uint32_t flags;
    uint32_t spare;
    char name[TRUTH_NAME];
};

struct truth_tally {
    _Atomic uint32_t kind;        /* stored last */
    uint32_t object;              /* number */
    _Atomic uint64_t begun, done; /* counts */
    struct {
        uint64_t total, max;
    } state[2];
    uint64_t spare;
};

struct truth_entry { /* one count */
    uint64_t value;
    uint64_t session; /* that it belongs to */
    uint64_t own;     /* the object's at that moment: another one where the session goes with the count */
    uint32_t joins;   /* of a join: number + 1 of the read that goes to `session` with it, 0 none */
};

struct truth_series {       /* every value that was counted, a tally's in the order of its counts */
    _Atomic uint32_t tally; /* number + 1, stored last; 0: the process died before it was written */
    uint32_t joins;
    uint64_t value, session, own;
};

_Static_assert(sizeof(struct truth_header) == 128, "header");
_Static_assert(sizeof(struct truth_object) == 128, "object");
_Static_assert(sizeof(struct truth_tally) == 64, "tally");
_Static_assert(sizeof(struct truth_session) == 64, "session");
_Static_assert(sizeof(struct truth_series) == 32, "series");

/* One file, mapped. The arrays lie in it. */
struct truth {
    struct truth_header *header;
    struct truth_object *objects;
    struct truth_session *sessions;
    struct truth_tally *tallies;
    struct truth_series *series;
    size_t size;
    bool detailed; /* in a file: every life of an object apart, sessions, and the series */
};

/* Makes DIRECTORY/NAME.PID.truth, or memory of its own without a file if directory is NULL: then lives of an
   object are counted together and there is no series. 0 or a negative errno value. */
int truth_open(const char *directory, const char *name, bool helper, struct truth *ret_truth);
/* Maps an existing file to read. 0, or a negative errno value (-EBADMSG: not a whole truth file). */
int truth_load(const char *path, struct truth *ret_truth);
void truth_close(struct truth *truth);

/* Each returns a number, or UINT32_MAX if there is no room. */
uint32_t truth_object_add(struct truth *truth, const char *path, uint32_t flags);
uint32_t truth_tally_add(struct truth *truth, uint32_t object, uint32_t kind);
uint32_t truth_session_add(struct truth *truth, const char *name, uint64_t parent);

/* Around one operation of the library. The first returns the number of its entry in the series + 1, 0 if it has
   none. */
uint32_t truth_begin(struct truth *truth, uint32_t tally, const struct truth_entry *entry);
void truth_end(struct truth *truth, uint32_t tally);

struct truth_sum {
    uint64_t count, total, max;
};
/* What is over, and that with what is in flight. */
void truth_read(const struct truth_tally *tally, struct truth_sum *ret_done, struct truth_sum *ret_begun);
/* Adds, totals modulo 2^64. */
void truth_sum_add(struct truth_sum *sum, const struct truth_sum *more);

const char *truth_kind_name(uint32_t kind);

/* Writes the files of a directory as JSON to standard output. 0 or a negative errno value, with a line on
   standard error. */
int truth_print_directory(const char *directory);
/* One line: a process's totals by path and kind, lives of a path together. Returns its size, 0 if it could not
   be made. */
size_t truth_line(const struct truth *truth, char *data, size_t room);

#endif
