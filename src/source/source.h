/* SPDX-License-Identifier: BSD-3-Clause */
/* Where events and objects come from: live logs, files, later recordings, other formats, other machines: all
   behind one table of operations. What a source hands out was checked; who takes it need not check again.
   Knows no model and no output. */
#ifndef NT_SOURCE_SOURCE_H
#define NT_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "base/bytes.h"
#include "event/event.h"

enum nt_program_state {
    NT_PROGRAM_RUNNING,
    NT_PROGRAM_STOPPED, /* by a signal or a debugger */
    NT_PROGRAM_EXITED,  /* closed its log, or replaced itself by exec */
    NT_PROGRAM_CRASHED, /* ended without closing it */
    NT_PROGRAM_UNKNOWN  /* cannot be told: another pid namespace, a copied file */
};

/* One program, that is one log. */
struct nt_source_program {
    uint32_t number;          /* within the source */
    uint64_t id;              /* of the log */
    uint64_t origin;          /* id of the log of the process that this one was forked from, 0 none */
    uint64_t start_time;      /* of the process, clock ticks since boot */
    uint64_t started;         /* when the log was opened, ns since 1970 */
    uint64_t ended;           /* when it was closed, 0: it was not */
    uint64_t events;          /* slots written to rings so far */
    uint64_t overwritten;     /* of these, no longer there because newer ones took their place */
    uint64_t dropped;         /* events that were never written: no room */
    uint64_t refused_objects; /* objects that found no room */
    uint64_t refused_tallies; /* counts that found no room: the only ones missing from tallies */
    uint64_t unsettled;       /* times that sums of a session found no room and went to none */
    uint64_t backed;          /* bytes of memory that the log uses */
    uint64_t cap;             /* bytes that it may use */
    uint32_t pid;             /* in the program's own pid namespace */
    uint32_t uid;
    uint32_t rings;
    uint32_t objects;   /* open now */
    uint64_t sessions;  /* that it made */
    bool forgets;       /* some of these: their names and parents are gone */
    uint64_t remembers; /* so many of them, the newest, unless there was no room for some */
    bool replaced;      /* ended by exec */
    bool moving;        /* objects ended faster than they could be read: sums over it may miss or repeat some */
    enum nt_program_state state;
    struct nt_bytes host, domain, node, program, name;
    const char *path; /* of the file */
};

struct nt_source_tally {
    uint16_t kind;
    uint64_t count;
    uint64_t total;
    uint64_t max;
    uint64_t last; /* ns since 1970, 0: not known */
};

/* The link that an object is an end of. */
struct nt_source_link {
    uint8_t direction; /* NT_NOTE_LINK_WRITE, NT_NOTE_LINK_READ, or both bits */
    uint8_t pairing;   /* NT_PAIR_… */
    struct nt_bytes key;
};

struct nt_source_bucket { /* count values from low to high, both included */
    uint64_t low, high;
    uint64_t count; /* not 0 */
};

/* Of the values of one kind. It may be behind or ahead of the kind's tally by what was counted meanwhile. */
struct nt_source_histogram {
    uint16_t kind;
    const struct nt_source_bucket *buckets; /* in the order of their values, at least one */
    size_t bucket_count;
};

/* What few objects have. */
struct nt_source_rare {
    struct nt_bytes remote_node, remote_process; /* size 0: not known */
    const struct nt_source_link *links;          /* no direction twice */
    size_t link_count;
    const struct nt_source_histogram *histograms; /* of kinds of which it keeps one, in the order of the kinds */
    size_t histogram_count;
};

struct nt_source_pair {
    uint64_t count;
    uint64_t total;
};

/* One life of an object. Sums of several kinds are in the order of the kinds' numbers. */
struct nt_source_object {
    uint32_t program;
    uint32_t slot, generation;
    uint32_t parent, parent_generation;     /* generation 0: none */
    uint32_t previous, previous_generation; /* generation 0: none */
    uint32_t epoch;                         /* number of predecessors */
    uint8_t kind;                           /* NT_OBJECT_… */
    uint8_t discipline;
    uint8_t described; /* NT_DESCRIBED_… */
    bool closed;
    bool mixed;     /* some of its counts went to sessions that were not its own */
    bool unsettled; /* its session changed faster than it could be read: `settled` is at least what it should be */
    uint64_t session;
    uint64_t mask;
    uint64_t opened_at, closed_at; /* ns since 1970; closed_at 0: open */
    struct nt_bytes name;
    const struct nt_source_tally *tallies; /* its own */
    size_t tally_count;
    const struct nt_source_pair *settled; /* of each tally what was counted before `session` was set; NULL: nothing */
    const struct nt_source_tally *gone;   /* of children whose slots were used again: their `closed` */
    size_t gone_count;
    const struct nt_source_tally *base; /* counted before the log knew it; not part of tallies */
    size_t base_count;
    const struct nt_source_tally *lineage; /* of its predecessors and their bases, without itself */
    size_t lineage_count;
    const struct nt_source_rare *rare; /* NULL: nothing of it */
};

struct nt_source_field {
    uint8_t type; /* NT_FIELD_… */
    struct nt_bytes name;
};

struct nt_source_kind { /* a user-defined kind of one program */
    uint32_t program;
    uint16_t kind;
    bool keep;
    struct nt_bytes name;
    const struct nt_source_field *fields;
    size_t field_count;
};

struct nt_source_sum {
    uint16_t kind;
    uint64_t count;
    uint64_t total;
};

/* What one program knows of one session. Over one program and kind the sums of all, none and older included, are
   those of its objects, `gone` included. */
struct nt_source_session {
    uint32_t program;
    uint64_t id;     /* 0: of what was counted in no session; or, with `older`, in ones that found no room any more */
    bool older;      /* told once, at the end, if there is any */
    bool known;      /* the program made it and remembers it: `standing`, parent, times and name hold */
    bool standing;   /* is not one flow */
    bool overdue;    /* a later one was to have its place, and is not remembered in its stead */
    bool given;      /* some of its sums may have been given up: the program counted at least that in it */
    bool got;        /* it may have sums of others: at most that; with `given`, about that */
    uint64_t parent; /* 0: none */
    uint64_t opened_at, ended_at; /* ns since 1970; ended_at: of its last end, 0: none so far */
    struct nt_bytes name;
    const struct nt_source_sum *sums; /* in the order of the kinds */
    size_t sum_count;
};

/* Sessions that a program put into `older`, or into their parents: of one that it tells nothing of, nt_source_given_has
   says whether it is one of them. It may say yes wrongly, never no. */
struct nt_source_given {
    uint32_t program;
    bool all;                     /* any may be */
    const uint64_t *const *pages; /* of NT_LAYOUT_PAGE bytes each; NULL: all zeros */
    size_t page_count;
};

/* `got`: instead, whether it has sums of others. */
static inline bool nt_source_given_has(const struct nt_source_given *given, uint64_t session, bool got)
{
    const uint64_t words = NT_LAYOUT_PAGE / sizeof(uint64_t);
    uint64_t hash = nt_layout_hash_(session, got);
    for (int i = 0; i < NT_LAYOUT_GIVEN_BITS && !given->all; i++) {
        uint64_t bit = nt_layout_given_(hash, i, given->page_count * words);
        const uint64_t *page = given->page_count != 0 ? given->pages[bit / 64 / words] : NULL;
        if (page == NULL || (__atomic_load_n(&page[bit / 64 % words], __ATOMIC_RELAXED) >> bit % 64 & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Takes what a snapshot finds; each may be NULL. What is passed is borrowed for the call. A result other
   than 0 ends the snapshot, which returns it. */
struct nt_source_sink {
    int (*program)(void *arg, const struct nt_source_program *program);
    int (*kind)(void *arg, const struct nt_source_kind *kind);
    int (*object)(void *arg, const struct nt_source_object *object);       /* parents may come after children */
    void (*bad)(void *arg, const char *path, int error, const char *text); /* a file that cannot be read: one line */
    void *arg;
    int (*given)(void *arg, const struct nt_source_given *given);       /* before the program's sessions, if any were */
    int (*session)(void *arg, const struct nt_source_session *session); /* after the program's objects */
};

/* What became of events between two that were read. */
struct nt_source_loss {
    uint32_t program, ring;
    uint64_t from, to; /* positions: [from, to) */
    uint64_t count;    /* slots */
    /* Of a source that is `ordered` alone: */
    uint64_t from_time, to_time; /* of the ring's events before and behind it, 0: none known */
    uint32_t before;             /* the number in the batch of the event that it comes before */
};

#define NT_SOURCE_DATA 4096u /* data of one event at most */

#define NT_SOURCE_SESSION_NAME 256u /* bytes of a session's name at most */

/* Room for what one call of read_lane gives. */
struct nt_source_batch {
    struct nt_event *events;
    size_t room;
    struct nt_source_loss *losses;
    size_t loss_room;
    uint8_t *data; /* for what the events' data point to */
    size_t data_room;
    size_t loss_count, data_used; /* set by the call */
    uint64_t passed; /* likewise: latest time of events that were left out since the call before, 0: none */
};

/* What is asked for, of all events that have a time within, one of the sessions and one of the lives. */
struct nt_source_wanted {
    uint64_t since, until;    /* both included */
    const uint64_t *sessions; /* with session_count 0: any */
    size_t session_count;
    /* Whether anything of that life may be asked for, be it an event or that one is missing: 1, 0 or a negative code.
       NULL: of every one. */
    int (*life)(void *arg, uint32_t program, uint32_t object, uint32_t generation);
    void *arg;
};

struct nt_source;

/* One static table a kind of source. All operations are called by one thread at a time and never block for
   longer than a file takes to read. Errors are negative codes of <nt/error.h>; their text is nt_source_text. */
struct nt_source_ops {
    const char *name;
    /* A lane holds events of several rings, and losses, in the order in which they are to come. */
    bool ordered;
    /* Tells the sink every program, then its kinds, then its objects, as they are now. Mandatory.
       Sums of one object and kind are exact. Objects are read one after the other, but what was counted before the
       call is in exactly one of them, its own or that of what has taken its sums, unless the program is `moving`. */
    int (*snapshot)(struct nt_source *source, const struct nt_source_sink *sink);
    /* Reads up to `room` events not read before, ring by ring, each ring in order; what was overwritten or
       never finished comes as a loss before the event that follows it. Returns how many events, 0: none now.
       At most `loss_room` losses are written, *ret_losses says how many. Mandatory. */
    int (*read)(struct nt_source *source, struct nt_event *events, size_t room, struct nt_source_loss *losses,
                size_t loss_room, size_t *ret_losses);
    /* A lane is a part of the source that is in order by itself: a ring (but see `ordered`). Lane 0 is its own: what it
       finds out about programs, such as changes of masks. Lanes have numbers below what this returns; a number is given
       again some time after its lane has ended. Looks for what is new: reading a lane gives what is there at this look,
       and then ends, however fast programs go on. Mandatory for nt_merge. */
    int (*lanes)(struct nt_source *source);
    /* Reads events of one lane, all of one ring (but see `ordered`), as `read` does; returns how many. None and no
       loss: no more before the next look. There must be room for an event, a loss, and NT_SOURCE_DATA. What lane 0 has
       to say on an event is there once the event was read: so read lane 0 after another one. An event comes only once,
       by `read` or by this. Mandatory for nt_merge. */
    int (*read_lane)(struct nt_source *source, uint32_t lane, struct nt_source_batch *batch);
    /* From now on, before anything was read, events that are not asked for may be left out of what the lanes give;
       losses are not, nor is any event of lives of which counts are missing, as far as these are asked for.
       `sessions` is copied, the rest borrowed until the source is freed. 1: so it is; 0: nothing is left out; or a
       negative code. NULL: nothing ever is. */
    int (*select)(struct nt_source *source, const struct nt_source_wanted *wanted);
    /* After that: whether all events of that life come. Of all others no count is missing. */
    bool (*complete)(struct nt_source *source, uint32_t program, uint32_t object, uint32_t generation);
    /* Id of the thread that wrote what is at that position of a program's ring; 0: not known any more. NULL: never. */
    uint32_t (*thread)(struct nt_source *source, uint32_t program, uint32_t ring, uint64_t position);
    /* The name of a session that one of the programs made and still remembers: how many bytes, 0: not known, or it has
       none. NULL: never. */
    size_t (*session_name)(struct nt_source *source, uint64_t session, char room[NT_SOURCE_SESSION_NAME]);
    /* Mandatory. NULL is ignored. */
    void (*free)(struct nt_source *take_source);
};

struct nt_source { /* first member of every source */
    const struct nt_source_ops *ops;
    char text[512]; /* of the last error */
    bool thinned;   /* events were left out on purpose: counts that no event shows need not have been lost */
};

static inline int nt_source_snapshot(struct nt_source *source, const struct nt_source_sink *sink)
{
    return source->ops->snapshot(source, sink);
}

static inline int nt_source_select(struct nt_source *source, const struct nt_source_wanted *wanted)
{
    return source->ops->select ? source->ops->select(source, wanted) : 0;
}

static inline uint32_t nt_source_thread(struct nt_source *source, uint32_t program, uint32_t ring, uint64_t position)
{
    return source->ops->thread ? source->ops->thread(source, program, ring, position) : 0;
}

static inline size_t nt_source_session_name(struct nt_source *source, uint64_t session,
                                            char room[NT_SOURCE_SESSION_NAME])
{
    return source->ops->session_name ? source->ops->session_name(source, session, room) : 0;
}

static inline void nt_source_free(struct nt_source *take_source)
{
    if (take_source)
        take_source->ops->free(take_source);
}

#endif
