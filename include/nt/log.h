/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a log: a program opens one, makes objects (channels, endpoints …) and counts what happens on them.
   Counting is a few nanoseconds, never blocks, makes no system call, and is safe in signal handlers, in
   forked children and in threads of any kind. No call here ever harms the program: what cannot be done is
   left undone and counted. A reader is another program (`ntscope`).

   Threads: every call may be made from any thread. On an *exclusive* object the caller counts inside the
   mutual exclusion of the operation itself (one thread at a time, in the order of the bytes); on a *shared*
   one anybody counts at any time. Closing an object is the caller's: nobody else counts on it any more.
   Signal handlers are other threads: they count on shared objects or on objects of their own.
   Fork: a child's first count makes a log of its own; the parent's is not touched. */
#ifndef NT_LOG_H
#define NT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define NT_API __attribute__((visibility("default")))
#else
#error "nt/log.h needs gcc or clang"
#endif

typedef struct nt_log nt_log;

/* An object: slot, generation and which log of the process; never a pointer. Copy it freely. The zero
   handle is no object: everything done to it is ignored. */
typedef struct nt_object {
    uint64_t handle;
} nt_object;

typedef uint32_t nt_kind;    /* an event kind: NT_WRITE … or one from nt_kind_new */
typedef uint64_t nt_session; /* an application's session id; 0: none */
typedef uint64_t nt_time;    /* ticks of the log's clock, as nt_now gives them */

#define NT_KIND(number, symbol, name, unit, policy, text) NT_##symbol = number,
enum nt_kind_number {
#include <nt/kinds.def>
    NT_KIND_NONE = 0
};
#undef NT_KIND

#define NT_OBJECT_KIND(number, symbol, name, text) NT_OBJECT_##symbol = number,
enum nt_object_kind {
#include <nt/objects.def>
    NT_OBJECT_KIND_NONE = 0
};
#undef NT_OBJECT_KIND

/* The bit of a kind in a mask. */
#define NT_MASK(kind) (UINT64_C(1) << ((kind) < NT_LAYOUT_MASK_KINDS - 1 ? (kind) : NT_LAYOUT_MASK_KINDS - 1))
#define NT_MASK_ALL NT_LAYOUT_MASK_BITS
#define NT_MASK_DEFAULT (NT_MASK_ALL & ~NT_MASK(NT_POLL))

/* ---- Logs ---- */

enum { NT_LOG_GROUP_READABLE = 1u /* file mode 0640 and directory 0750 instead of 0600 and 0700 */ };

/* Start from NT_LOG_OPTIONS_INIT. Zero or NULL means the default. */
typedef struct nt_log_options {
    size_t size;              /* of this struct, set by NT_LOG_OPTIONS_INIT */
    const char *name;         /* of the log: [A-Za-z0-9_+.-], at most 63 bytes; default: the program's name */
    const char *node;         /* node name, at most 255 bytes; default: the host's name */
    const char *directory;    /* default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID */
    const char *host;         /* host id, so that one machine may stand for several; default: the host's name */
    const char *clock_domain; /* programs with equal ones share a clock; default: the boot id */
    uint64_t ring_bytes;      /* of a thread's ring: a power of two from 16 KiB to 1 GiB; default 1 MiB */
    uint64_t cap_bytes;       /* of the whole log, 512 KiB at least; default 64 MiB */
    uint32_t flags;           /* NT_LOG_… */
    uint32_t reserved[7];     /* zero */
} nt_log_options;
#define NT_LOG_OPTIONS_INIT                             \
    {                                                   \
        sizeof(nt_log_options), 0, 0, 0, 0, 0, 0, 0, 0, \
        {                                               \
            0, 0, 0, 0, 0, 0, 0                         \
        }                                               \
    }

/* Opens the program's log of that name, or makes it; a log already open is shared and counted. options may
   be NULL. On failure *ret_log is still a log, one that ignores everything: a program need not check.
   Returns 0, or -NT_EDISABLED (NTSCOPE=off), -EINVAL (bad options), -ENOSPC, -EFBIG (file size limit),
   -EACCES, -EPERM (the directory is another's or open to others), -EMFILE (8 logs are open), … */
NT_API int nt_log_open(const nt_log_options *options, nt_log **ret_log);
/* Gives back one nt_log_open; the last one marks the log as closed. NULL is ignored. What other threads still count
   on its objects then goes nowhere; they must have stopped before a log is opened again in its place. */
NT_API void nt_log_close(nt_log *take_log);
/* The path of the file, "" if there is none. Borrowed; stands until the log is closed. */
NT_API const char *nt_log_path(const nt_log *log);
/* An id that no other log has, 0 if there is no file. A forked child's log has another one. */
NT_API uint64_t nt_log_id(nt_log *log);
/* The object of the program itself, parent of all that have no other. */
NT_API nt_object nt_log_object(nt_log *log);

/* ---- Objects ---- */

enum { NT_EXCLUSIVE = 0, NT_SHARED = 1 };

enum { NT_OBJECT_MASKED = 1u /* `mask` holds; else the parent's is inherited */ };

typedef struct nt_object_options {
    size_t size;          /* of this struct, set by NT_OBJECT_OPTIONS_INIT */
    const char *name;     /* any bytes, at most 255; longer ones are cut */
    size_t name_size;     /* bytes; 0: up to the NUL */
    uint32_t kind;        /* NT_OBJECT_CHANNEL …; default NT_OBJECT_CHANNEL */
    uint32_t discipline;  /* NT_EXCLUSIVE or NT_SHARED */
    nt_object parent;     /* default: the program's object */
    uint64_t mask;        /* which kinds are logged: sum of NT_MASK(kind) */
    uint32_t flags;       /* NT_OBJECT_MASKED */
    uint32_t reserved[5]; /* zero */
} nt_object_options;
#define NT_OBJECT_OPTIONS_INIT                              \
    {                                                       \
        sizeof(nt_object_options), 0, 0, 0, 0, { 0 }, 0, 0, \
        {                                                   \
            0, 0, 0, 0, 0                                   \
        }                                                   \
    }

/* Makes an object and logs `open`. The zero handle if there is no room (counted) or the options are bad. */
NT_API nt_object nt_object_new(nt_log *log, const nt_object_options *options);
/* Ends it and logs `close`; what it is the parent of stays. Its sums stay readable; when its slot is needed they go to
   its parent's `closed`. */
NT_API void nt_object_close(nt_object take_object);
/* A new epoch: closes it and opens one like it that names it as its predecessor; logs `epoch`. */
NT_API nt_object nt_object_succeed(nt_object take_object);
/* From now on events of these kinds are logged, a sum of NT_MASK(kind), and no others; all are counted. */
NT_API void nt_object_mask_set(nt_object object, uint64_t mask);
/* The kinds that are logged now. */
NT_API uint64_t nt_object_mask(nt_object object);
/* What was counted so far: count, total, max, last time. 0, or -ENOENT if nothing was. */
NT_API int nt_object_tally(nt_object object, nt_kind kind, struct nt_layout_tally *ret_tally);

/* ---- What is known of an object ---- */

/* Each of these is said once in an object's life: again is -EEXIST, and a successor starts without any. The zero handle
   is ignored, as everywhere; -ENOENT: the object is closed; -EINVAL; -ENOSPC. */

/* What was counted of that kind before the log knew the object, as of a connection that is older than the log: kept
   beside its sums. Before the first count of that kind, else -EBUSY. */
NT_API int nt_object_base_set(nt_object object, nt_kind kind, uint64_t count, uint64_t total);

/* The two ends of a connection have one key, which both know without anything being sent for it: see <nt/link.h>. Of
   an object that both writes and reads, each direction has its own. 1 to NT_LAYOUT_LINK_KEY bytes. */
enum {
    NT_LINK_WRITE = NT_NOTE_LINK_WRITE,
    NT_LINK_READ = NT_NOTE_LINK_READ,
    NT_LINK_BOTH = NT_NOTE_LINK_WRITE | NT_NOTE_LINK_READ /* the object is both ends of one link */
};
/* pairing: NT_PAIR_…, how messages are matched with those at the other end. */
NT_API int nt_object_link_set(nt_object object, uint32_t direction, uint32_t pairing, const void *key, size_t size);

/* Node and process at the other end, as they call themselves; NULL or "": not known (yet). At most 255 bytes each. If
   one of those given was given before, neither is taken. */
NT_API int nt_object_remote_set(nt_object object, const char *node, const char *process);

/* ---- Histograms ---- */

/* From now on keeps how many values of that kind lie between which powers of 2^(1/8), in 4 KiB of the log's memory.
   Before the first count of the kind, else -EBUSY; again is 0. A successor keeps them too, from zero; those of a closed
   object end once its sums are in its parent's. Counts of that kind go the slow way, at some four times the cost.
   0, -EINVAL (no kind, or one that happens once a life: open, close, epoch), -ENOENT (closed), -ENOSPC. */
NT_API int nt_object_histogram(nt_object object, nt_kind kind);

/* ---- Sessions ---- */

/* A session is an application's: any id that is not 0. Every count belongs to the session of its object at that moment,
   and the sums by session are kept too: exact for as many sessions and kinds a thread as fit into a quarter of the
   log's cap (at 96 bytes each); beyond that those used longest ago are put into their parents' sums, or into `older`.
   What finds no room at all goes to none: say, of a handler that changes sessions a hundred times in the middle of
   another change. A log remembers name and parent of the sessions that it made last (an eighth of its cap, at 128 bytes
   each). */

/* A new id: of a parent its upper 16 bits, else random ones; the lower 48 count up. Logs `session` with value
   NT_SESSION_NEW and the parent as its argument. name: NULL or any text, cut at 94 bytes. 0: the log has no file. */
NT_API nt_session nt_session_new(nt_log *log, const char *name, nt_session parent);
/* What the process did under that session up to here is one activation of it; what follows is another. */
NT_API void nt_session_end(nt_log *log, nt_session session);
/* Says that the session stands: that it is not one flow but, say, a connection pool's, and is not to be followed. */
NT_API void nt_session_stand(nt_log *log, nt_session session);
enum { NT_SESSION_NEW = 1, NT_SESSION_END = 2, NT_SESSION_STANDING = 3, NT_SESSION_JOIN = 4 }; /* values of `session` */

/* From here on the object counts in that session, 0: in none. Exclusive objects only, inside the same mutual exclusion
   as their counts; a new one begins in its parent's. A shared object has no session: it goes with the count. */
static inline void nt_object_session_set(nt_object object, nt_session session);
/* The same from the message just read on, whose session is known only now that it is decoded: `value` is what that read
   measured. Logs `session` with value NT_SESSION_JOIN and the read's count as its argument. */
NT_API void nt_object_session_join(nt_object object, nt_session session, uint64_t value);
/* The session that the object counts in now. */
NT_API nt_session nt_object_session(nt_object object);

/* ---- User-defined kinds ---- */

typedef struct nt_field {
    const char *name; /* at most 30 bytes */
    uint32_t type;    /* NT_FIELD_U64 … */
    uint32_t reserved;
} nt_field;

typedef struct nt_kind_options {
    size_t size;
    const char *name; /* at most 56 bytes, [a-z0-9-]; not a built-in kind's */
    const nt_field *fields;
    uint32_t field_count; /* at most 16 */
    uint32_t keep;        /* not 0: never dropped by a sampler, never merged */
    uint32_t reserved[4];
} nt_kind_options;
#define NT_KIND_OPTIONS_INIT                 \
    {                                        \
        sizeof(nt_kind_options), 0, 0, 0, 0, \
        {                                    \
            0, 0, 0, 0                       \
        }                                    \
    }

/* Declares a kind; the same name again gives the same kind if its fields are the same. 0, -EINVAL, -EEXIST
   (same name, other fields), -ENOSPC (191 kinds are declared). *ret_kind is 0 on failure: ignored when used. */
NT_API int nt_kind_new(nt_log *log, const nt_kind_options *options, nt_kind *ret_kind);

/* A field's value, in the order in which the kind declares its fields. */
typedef struct nt_value {
    union {
        uint64_t u64; /* also id */
        int64_t i64;
        double f64;
        const void *data; /* bytes, string */
    } as;
    size_t size; /* of data, bytes */
} nt_value;

/* Counts an event that carries fields: they are logged with it, cut at 4096 bytes and flagged. */
NT_API void nt_object_record(nt_object object, nt_kind kind, uint64_t value, const nt_value *values, unsigned count);
/* The same at a time that the caller took with nt_now. */
NT_API void nt_object_record_at(nt_object object, nt_kind kind, uint64_t value, const nt_value *values, unsigned count,
                                nt_time at);

/* ---- Counting ---- */

/* The time by the log's clock. */
static inline nt_time nt_now(void);

/* One event of that kind happened on the object and measured value. Exclusive and shared objects alike. */
static inline void nt_object_count(nt_object object, nt_kind kind, uint64_t value);
/* The same at a time that the caller took with nt_now: before the bytes of a write can be seen, after a read
   returned. One time may serve several events. */
static inline void nt_object_count_at(nt_object object, nt_kind kind, uint64_t value, nt_time at);
/* The same with an argument that is kept in the record. */
static inline void nt_object_count_with(nt_object object, nt_kind kind, uint64_t value, uint64_t argument);

/* The same in a session, on shared objects; on an exclusive one in another session than its own, which it keeps. */
NT_API void nt_object_count_in(nt_object object, nt_session session, nt_kind kind, uint64_t value);
/* And at a time that the caller took with nt_now. */
NT_API void nt_object_count_in_at(nt_object object, nt_session session, nt_kind kind, uint64_t value, nt_time at);

#include <nt/log_inline.h>

/* ---- What no cause reaches across ---- */

/* Between a read and what the same thread does next a reader sees cause and effect, as far as sessions do not say
   otherwise. Two things end that: a wait, so count NT_WAIT on what a receive that blocks waits for; and that the
   thread goes on as another actor, if it carries several (green threads, event loops). An actor is an object of its
   own, of kind NT_OBJECT_ACTOR; `actor` is logged on it. */
static inline void nt_actor_switch(nt_object actor)
{
    nt_object_count(actor, NT_ACTOR, 0);
}

#ifdef __cplusplus
}
#endif
#endif
