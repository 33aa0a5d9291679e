/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of libnt-log: the state of an open log in this copy of the library, and what its files offer each
   other. Everything here runs inside other people's programs: no allocation, no lock that can be waited for
   without bound, no output, no signal handler, only calls that are safe in a signal handler and in a forked
   child of a threaded program. What cannot be done is dropped and counted. */
#ifndef NT_LOG_LOG_H
#define NT_LOG_LOG_H

#include <signal.h>

#include <nt/log.h>

#define LOG_ANCESTORS 8u
#define LOG_PATH 512u

/* A mapped log file. All pointers lie inside `base`. */
struct log_map {
    unsigned char *base;
    uint64_t size;
    const struct nt_layout_header *header;
    struct nt_layout_live *live;
    uint64_t *bitmap;
    struct nt_layout_redo *redo;
    struct nt_layout_kind *kinds;
    uint64_t *control;
    struct nt_layout_change *changes;
    struct nt_layout_object *objects;
    unsigned char *blocks;
    unsigned char *strings;
    struct nt_layout_ring *rings;
    unsigned char *records;
    struct nt_layout_session *sessions;
    struct nt_layout_settler *settlers;
    unsigned char *settlement;
    uint64_t *given;
    uint32_t slot_max, block_max, string_max, ring_max, kind_max;
    uint32_t session_max, settler_max, settlement_max, given_max; /* given: words */
    uint64_t record_bytes;
    uint64_t left_at; /* ticks of the fork that made it an ancestor's, 0 not known */
};

/* What identifies a process image. */
struct log_identity {
    uint32_t pid, uid;
    uint64_t start_time, pid_namespace, image;
    uint8_t boot_id[16];
};

/* The caller's options, kept for a forked child. */
struct log_settings {
    char name[64];
    char node[256];
    char host[256];
    char domain[256];
    char directory[LOG_PATH]; /* as asked for; "": the user's default */
    uint64_t ring_bytes, cap_bytes;
    uint32_t flags;
};

#define LOG_MAX 8u /* logs open at once */

struct nt_log {
    bool used;   /* this entry stands for a log, whether it has a file or not */
    bool broken; /* no file could be had; everything is ignored */
    bool ended;  /* said to be closed */
    bool sparse; /* a child's: entries of inherited objects may lie in pages that are not there */
    int references;
    uint32_t uses; /* logs that had this place so far */
    uint32_t index;
    uint32_t origin_pid; /* of the process that this one was forked from */
    uint64_t origin;     /* id of its log, 0 none */
    struct log_map map;
    struct log_map ancestors[LOG_ANCESTORS]; /* nearest first */
    uint32_t ancestor_count;
    uint32_t inherited; /* slots below may be an ancestor's */
    struct log_settings settings;
    char path[LOG_PATH];
    uint64_t next_clock_pair; /* ticks */
    unsigned char *remains;   /* memory at the address of the last log of this place, that nobody reads */
    uint64_t remains_size;
};

/* State of this copy of the library that a forked child finds wiped. */
struct log_process {
    uint32_t pid; /* 0: just forked, or never used */
    uint32_t lock;
    bool mine[LOG_MAX];    /* logs whose file is this process's own */
    bool refused[LOG_MAX]; /* logs that this child could not make */
    void *free_threads;    /* blocks of thread.c */
};

extern struct nt_log log_table[LOG_MAX];

/* ---- guard.c: signals and locks ---- */
struct log_guard {
    uint64_t signals; /* as they were */
};
void log_guard_enter(struct log_guard *guard); /* blocks all signals of this thread */
void log_guard_leave(struct log_guard *guard);
/* The system calls themselves: the library's are points where a pending cancellation acts. */
int log_openat(int directory, const char *path, int flags, unsigned mode); /* -1 and errno */
void log_fd_close(int fd);
/* Bounded: false after some tenths of a second. Call with signals blocked. */
bool log_lock(uint32_t *lock);
void log_unlock(uint32_t *lock);
/* The wiped page, or NULL if the system has none to give. */
struct log_process *log_process(void);
struct log_process *log_process_peek(void); /* NULL also if it was never needed */
/* Whether the state is this process's: not a vfork child's, nor a forked one's that has not counted yet. */
bool log_process_is_ours(const struct log_process *process);
/* Whether this process may make things: it is not a vfork child and not foreign to the state; adopts the
   state after a fork. */
bool log_process_enter(void);

/* ---- log.c ---- */
void log_opened(struct nt_log *log, bool made);
bool log_pair_is_atomic(void); /* whether plain 16-byte stores are; else every object counts locked */

/* ---- clock.c ---- */
void log_clock_init(void);
void log_clock_pair(struct nt_log *log, bool now); /* writes a pair if one is due, or at once */

/* ---- file.c: directory, file, pages ---- */
int log_identity(struct log_identity *ret_identity);
int log_directory_open(const struct log_settings *settings, char *ret_path, size_t path_size);
int log_file_open(struct nt_log *log, const struct log_identity *identity);
/* Backs [address, address + bytes) of the map; false: no room. */
bool log_back(struct log_map *map, const void *address, uint64_t bytes);
bool log_is_backed(const struct log_map *map, const void *address, uint64_t bytes);

/* ---- options.c ---- */
enum { LOG_OPTIONS_FIRST = 96, OBJECT_OPTIONS_FIRST = 72, KIND_OPTIONS_FIRST = 48 }; /* bytes in the first version */
/* Copies options of any version; their size is their first member. What the caller's version does not have becomes
   zero, what only the caller's has must be zero, and less than the first version had is a mistake. False: refused. */
bool log_options_take(void *ret_options, size_t size, size_t first_size, const void *options);

/* ---- layout.c: where the regions are ---- */
uint64_t log_layout_plan(struct nt_layout_header *header, uint64_t cap);
bool log_layout_bind(struct log_map *map); /* pointers from the header; false: not ours */

/* ---- retain.c ---- */
void log_retain(const struct log_settings *settings);

/* ---- thread.c ---- */
void log_thread_init(void);
/* The calling thread's part for a log, ready to count; NULL: cannot be had. */
struct nt_thread_log_ *log_thread_enter(struct nt_log *log);
/* Whether this process may count in the log, if need be without a thread's part: for that there may be no memory. */
bool log_is_ours(const struct nt_log *log);
/* A ring for a thread that has none, if it is time to try. */
struct nt_ring_ *log_thread_ring(struct nt_log *log, struct nt_thread_log_ *part);
/* The calling thread's place for a settler; NULL: it has no block. */
struct nt_settler_ *log_thread_settler(struct nt_log *log);
bool log_thread_switch_ring(struct nt_log *log, struct nt_ring_ *ring);
void log_thread_leave(struct nt_log *log); /* gives the calling thread's ring of a log back */

/* ---- ring.c ---- */
struct nt_layout_ring *log_ring_take(struct nt_log *log, uint64_t *ret_position);
void log_ring_give(struct nt_layout_ring *ring, uint64_t position);
void log_rings_give_all(struct nt_log *log); /* all that this copy of the library took; under the log's lock */
/* Marks that an event is being written. Returns whether it is the outermost, to be passed to log_ring_close. */
bool log_ring_open(struct nt_ring_ *ring);
void log_ring_close(struct nt_ring_ *ring, bool outermost);
/* The part's ring, got if need be; NULL: none, and the event was counted as dropped. */
struct nt_ring_ *log_ring_of(struct nt_log *log, struct nt_thread_log_ *part);
void log_record(struct nt_log *log, struct nt_thread_log_ *part, uint64_t kind_flags, const struct nt_event_ *event);

/* ---- settle.c: totals by session ---- */
/* The calling thread's, got if need be; NULL: there is no room. */
struct nt_settler_ *log_settler(struct nt_log *log, struct nt_thread_log_ *part);
void log_settler_give(struct nt_log *log, struct nt_settler_ *settler);
void log_settler_extent(const struct log_map *map, struct nt_settler_ *settler, uint32_t extent); /* it has its pages */
void log_settlers_give_all(struct nt_log *log); /* all that this copy of the library took; under the log's lock */
/* A change of session: `needed` moves, or a fold first if there are fewer free. False: there is no room, as in a
   handler that interrupts another change; then nothing may be appended. */
bool log_settle_begin(struct nt_log *log, struct nt_settler_ *settler, uint32_t needed, bool *ret_outermost);
void log_settle_end(struct nt_settler_ *settler, uint32_t needed, bool outermost);
/* Ends a change of the object's session that a handler of this thread jumped out of. */
void log_settle_left(struct nt_log *log, const struct nt_thread_log_ *part, nt_object object);
struct log_join { /* the last count of a tally, a read, goes to another session than the object's */
    const struct nt_layout_tally *tally;
    uint64_t session, value;
};
/* Moves all that the object counted since it was settled to its session. */
void log_settle(struct nt_log *log, struct nt_thread_log_ *part, struct nt_layout_object *entry, nt_object object,
                const struct log_join *join);
/* Notes that something of a session finds no room and goes to none. */
void log_settle_none(struct nt_log *log, uint64_t session);

/* ---- session.c ---- */
/* The entry of a session that this log made and remembers, else NULL. */
struct nt_layout_session *log_session_find(const struct log_map *map, uint64_t session);
uint64_t log_session_parent(const struct log_map *map, uint64_t session); /* 0: it has none, or is not remembered */
uint64_t log_session_first(uint64_t id);                                  /* of the log with that id */
void log_session_given(struct log_map *map, uint64_t session);            /* notes that a cell of it was given up */
void log_session_got(struct log_map *map, uint64_t session);              /* notes that it has one that was */

/* ---- cell.c: the cells that moves are folded into ---- */
/* Folds moves until so many are left, those whose cells may still be on their way from memory. By the outermost change
   only. */
#define LOG_MOVES_LEFT 32u
void log_cells_fold(struct nt_log *log, struct nt_settler_ *settler, uint32_t left);

/* ---- block.c: blocks and strings, under the log's lock ---- */
/* 4 units, 2, or NT_LAYOUT_HISTOGRAM_UNITS; zeroed; 0: no room */
uint32_t log_block_new(struct log_map *map, uint32_t units);
void log_block_free(struct log_map *map, uint32_t block, uint32_t units);
uint32_t log_string_new(struct log_map *map, size_t size); /* at most 32 KiB; 0: no room */
void log_string_free(struct log_map *map, uint32_t string, size_t size);
bool log_string_set(struct log_map *map, struct nt_layout_object *entry, const char *data, size_t size);

/* ---- note.c ---- */
/* A forked child's object has its ancestor's notes, as far as there is room; the lock is held. */
void log_notes_copy(struct log_map *to_map, struct nt_layout_object *to, const struct log_map *from_map,
                    const struct nt_layout_object *from);
void log_notes_free(struct log_map *map, const struct nt_layout_object *entry);

/* ---- tally.c ---- */
struct nt_layout_tally *log_tally_find(const struct log_map *map, const struct nt_layout_object *entry, nt_kind kind);
/* Finds or makes it, without the lock held. NULL: no room, counted. */
struct nt_layout_tally *log_tally(struct nt_log *log, struct nt_layout_object *entry, nt_kind kind);
nt_pair_ log_tally_add(struct nt_layout_tally *tally, uint64_t value, bool locked);
void log_tally_seen(struct nt_layout_tally *tally, uint64_t value, nt_time at);
/* A place for a tally of a kind that has none, in a block of its object, never in its entry; the caller fills it in and
   then calls log_tally_start. Under the lock. False: no room. */
struct log_tally_place {
    struct nt_layout_tally_block *block;
    int number;
    uint32_t *link; /* where a new block is to be led to from, NULL: it is not new */
    uint32_t unit;
};
bool log_tally_place(struct log_map *map, struct nt_layout_object *entry, struct log_tally_place *ret_place);
struct nt_layout_tally *log_tally_start(const struct log_tally_place *place, const struct nt_layout_object *entry,
                                        nt_kind kind);
/* The block that has one of the object's tallies and its number there; NULL: it lies in the entry. */
struct nt_layout_tally_block *log_tally_block(const struct log_map *map, const struct nt_layout_object *entry,
                                              const struct nt_layout_tally *tally, int *ret_number);
struct nt_layout_pair log_pair_load(const struct nt_layout_pair *pair);
void log_pair_store(struct nt_layout_pair *pair, nt_pair_ value, bool locked);
/* What is settled of one of the object's tallies. */
struct nt_layout_pair *log_settled(const struct log_map *map, const struct nt_layout_object *entry,
                                   const struct nt_layout_tally *tally);
struct log_count { /* one count, as it was asked for */
    nt_object object;
    nt_kind kind;
    uint64_t value, argument;
    nt_time at;
    bool timed;
    bool in;    /* in `session`, whatever the object's is */
    bool about; /* the event names `session` and is not counted in it */
    uint64_t session;
};
void log_count(const struct log_count *count);
struct nt_layout_extra *log_extra(const struct log_map *map, const struct nt_layout_object *entry, nt_kind kind);
struct nt_layout_extra *log_extra_new(struct log_map *map, struct nt_layout_object *entry, nt_kind kind);
/* Calls back for each kind that the object has counted. */
typedef void log_tally_each_fn(void *arg, nt_kind kind, const struct nt_layout_tally *tally);
void log_tally_each(const struct log_map *map, const struct nt_layout_object *entry, log_tally_each_fn *fn, void *arg);

/* ---- histogram.c ---- */
/* Of one of the object's tallies, NULL: none is kept. */
struct nt_layout_histogram *log_histogram(const struct log_map *map, const struct nt_layout_object *entry,
                                          const struct nt_layout_tally *tally);
void log_histogram_add(struct nt_layout_histogram *histogram, uint64_t value, bool locked);
/* Another object is to keep histograms of the same kinds, as far as there is room; under the lock. */
void log_histograms_pass(const struct log_map *from_map, const struct nt_layout_object *from, struct log_map *to_map,
                         struct nt_layout_object *to);
void log_histograms_free(struct log_map *map, const struct nt_layout_tally_block *block);

/* ---- object.c ---- */
struct log_object_plan { /* what a new object is like */
    const char *name;
    size_t name_size;
    uint8_t kind, discipline, described;
    uint32_t parent, parent_generation;
    uint32_t previous, previous_generation;
    uint32_t epoch;
    uint64_t session, mask;
};
bool log_object_fill(struct log_map *map, uint32_t slot, uint32_t generation, const struct log_object_plan *plan);
void log_object_publish(struct nt_layout_object *entry);
static inline bool log_object_is(const struct nt_layout_object *entry, uint32_t generation)
{
    return __atomic_load_n(&entry->live, __ATOMIC_ACQUIRE) == (generation & ~NT_LAYOUT_LOCKED) &&
           entry->last_generation == generation;
}
/* The entry of a living object, registered first if a fork made it ours; NULL: gone. */
struct nt_layout_object *log_object_enter(struct nt_log *log, nt_object object);
/* The same, and its log; NULL: also of the zero handle. */
struct nt_layout_object *log_object_use(nt_object object, struct nt_log **ret_log);
bool log_object_root(struct nt_log *log); /* false: no room */
struct nt_log *log_of(nt_object object);
void log_control_init(struct log_map *map, uint32_t slot, uint32_t generation, uint64_t mask);
bool log_object_back(struct log_map *map, uint32_t slot);

/* ---- fold.c: sums of a closed object into its parent's `closed` ---- */
bool log_fold(struct log_map *map, uint32_t slot); /* under the lock; leaves the entry empty; false: no room */

/* ---- kind.c ---- */
void log_kinds_copy(struct log_map *to, const struct log_map *from);

/* ---- fork.c ---- */
bool log_forked(struct nt_log *log); /* makes the child's file; false: it has none */
/* NULL: not inherited or closed since, or, *ret_refused, no room. */
void log_fork_prepare(void);             /* called by fork() itself, before … */
void log_fork_child(void);               /* … and after, in the child */
void log_map_blank(struct log_map *map); /* puts memory that nobody sees in the place of a map */
struct nt_layout_object *log_fork_register(struct nt_log *log, uint32_t slot, uint32_t generation, bool *ret_refused);

#endif
