/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of counting that is compiled into the program. Included by <nt/log.h> only. Names that end in an
   underscore are not for use; they may change with any version of the library (its symbol version says so).

   What makes it safe: positions in a ring are taken by one instruction, so that a signal handler that logs
   in between only takes later ones; the commit word is stored last; every pointer comes from a page that is
   wiped in a forked child, so that the child goes to the slow path instead of the parent's log. */
#ifndef NT_LOG_INLINE_H
#define NT_LOG_INLINE_H

#define NT_LIKELY_(x) __builtin_expect(!!(x), 1)
#define NT_UNLIKELY_(x) __builtin_expect(!!(x), 0)
#define NT_LOGS_ 16u /* places; 8 of them are used */
#define NT_SLOT_MASK_ ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1)

#if defined(__SANITIZE_THREAD__)
#define NT_TSAN_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NT_TSAN_ 1
#endif
#endif

/* One ring of one thread. */
struct nt_ring_ {
    uint64_t cur;  /* the next position: taken by an unlocked xadd, atomic against signals */
    int64_t limit; /* the last position that is announced to readers, negative: none */
    uint64_t mask; /* size - 1 */
    unsigned char *base;
    uint64_t open; /* 0: no event is being written. 1: one is, and no handler has looked. Else a position | 1 at
                      or before that event's. A thread without a ring has a stand-in that is always open */
    uint64_t chunk;
    struct nt_layout_ring *shared;
    uint64_t skip; /* events to drop before memory is asked for again */
};

/* The totals by session of one thread. */
struct nt_settler_ {
    uint64_t next;  /* number of the next move: taken by an unlocked xadd, atomic against signals */
    uint64_t limit; /* the quick path goes up to here; 0: a change is being written, or moves are being folded */
    struct nt_layout_move *moves;
    struct nt_layout_settler *shared;
    uint64_t folded;       /* moves below are in the cells */
    uint32_t groups, mask; /* mask: the smallest 2^n - 1 that is not below groups - 1 */
    uint64_t retry;        /* new cells, or changes, to do without before memory is asked for again */
    uint64_t promised;     /* places of the buffer, to handlers that interrupted a change and are at one */
    unsigned char *extent[NT_LAYOUT_EXTENTS]; /* where group 0 would lie if all were of that extent */
};
#define NT_SETTLE_ROOM_ 72u /* moves that may wait; the rest of the buffer is for handlers */

/* What a thread needs to count: page 0 is wiped by a fork, so that the child goes the slow way and finds its own
   log; page 1 is not, so that a child forked by a handler in the middle of an event finishes that event. */
struct nt_thread_log_ {
    const uint64_t *control;
    struct nt_ring_ *ring;       /* never 0 where objects is not */
    uint64_t skip;               /* events to drop before a ring is asked for again */
    struct nt_settler_ *settler; /* 0: none yet */
};

struct nt_thread_ {
    struct {
        unsigned char *objects; /* 0: go the slow way */
        unsigned char *entered; /* the object table that the rest of this part is set up for */
        uint64_t block;         /* in place 0: not 0 once the block is this process's */
        uint64_t spare;
    } wiped[NT_LOGS_];
    unsigned char fill[NT_LAYOUT_PAGE - NT_LOGS_ * 32];
    struct nt_thread_log_ log[NT_LOGS_];
};
NT_LAYOUT_AT(nt_thread_, log, NT_LAYOUT_PAGE);

extern NT_API __thread struct nt_thread_ *nt_thread_ __attribute__((tls_model("initial-exec")));
extern NT_API int nt_clock_tsc_;

NT_API nt_time nt_now_slow_(void);
NT_API void nt_session_set_slow_(nt_object object, nt_session session);
NT_API void nt_count_slow_(nt_object object, nt_kind kind, uint64_t value, uint64_t argument, nt_time at, bool timed);
/* Announces the chunks up to position + bytes. False: the event is dropped and counted, nothing to write. */
NT_API bool nt_ring_announce_(struct nt_ring_ *ring, uint64_t position, uint64_t bytes, uint32_t index);

static inline nt_time nt_now(void)
{
#if defined(__x86_64__)
    if (NT_LIKELY_(nt_clock_tsc_))
        return __builtin_ia32_rdtsc();
#endif
    return nt_now_slow_();
}

/* Adds `bytes` to *cursor and returns what it was; atomic against signal handlers of this thread. */
static inline uint64_t nt_take_(uint64_t *cursor, uint64_t bytes)
{
#if defined(__x86_64__) && !defined(NT_TSAN_)
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(*cursor) : : "memory", "cc");
    return bytes;
#else
    return __atomic_fetch_add(cursor, bytes, __ATOMIC_RELAXED);
#endif
}

typedef unsigned long long nt_pair_ __attribute__((vector_size(16), may_alias));

/* Adds one event to a sum that only this thread changes: one aligned 16-byte store. */
static inline nt_pair_ nt_pair_add_(struct nt_layout_pair *sum, uint64_t value)
{
#if defined(NT_TSAN_)
    unsigned __int128 *whole = (unsigned __int128 *)(void *)sum;
    unsigned __int128 now = __atomic_load_n(whole, __ATOMIC_RELAXED);
    uint64_t count = (uint64_t)now + 1, total = (uint64_t)(now >> 64) + value;
    nt_pair_ next = { count, total };
    __atomic_store_n(whole, (unsigned __int128)total << 64 | count, __ATOMIC_RELAXED);
#else
    volatile nt_pair_ *pair = (volatile nt_pair_ *)(void *)sum;
    const nt_pair_ one = { 1, value };
    nt_pair_ next = *pair + one;
    *pair = next;
#endif
    return next;
}

static inline nt_pair_ nt_pair_load_(const struct nt_layout_pair *pair)
{
#if defined(NT_TSAN_)
    unsigned __int128 whole = __atomic_load_n((const unsigned __int128 *)(const void *)pair, __ATOMIC_RELAXED);
    return (nt_pair_){ (uint64_t)whole, (uint64_t)(whole >> 64) };
#else
    return *(const volatile nt_pair_ *)(const void *)pair;
#endif
}

static inline void nt_pair_copy_(struct nt_layout_pair *to, nt_pair_ from)
{
#if defined(NT_TSAN_)
    __atomic_store_n((unsigned __int128 *)(void *)to, (unsigned __int128)from[1] << 64 | from[0], __ATOMIC_RELAXED);
#else
    *(volatile nt_pair_ *)(void *)to = from;
#endif
}

struct nt_event_ { /* what a record says, in registers */
    nt_time time;
    uint64_t session, value, argument, object;
    nt_pair_ sum;
};

static inline void nt_record_put_(unsigned char *at, uint64_t position, uint64_t kind_flags,
                                  const struct nt_event_ *event)
{
    struct nt_layout_record *record = (struct nt_layout_record *)(void *)at;
    __atomic_store_n(&record->time, event->time, __ATOMIC_RELAXED);
    __atomic_store_n(&record->session, event->session, __ATOMIC_RELAXED);
    __atomic_store_n(&record->value, event->value, __ATOMIC_RELAXED);
    nt_pair_copy_(&record->sum, event->sum);
    /* argument, object and generation: one store; the object's upper bits say which log, and are ours */
    const nt_pair_ tail = { event->argument, event->object };
    nt_pair_copy_((struct nt_layout_pair *)(void *)&record->argument, tail);
    /* release: partners are the readers, who load the commit word with acquire */
    __atomic_store_n(&record->commit, NT_LAYOUT_COMMIT(position, kind_flags), __ATOMIC_RELEASE);
}

/* Writes one record into a ring that was marked open. */
static inline void nt_ring_put_(struct nt_ring_ *ring, uint64_t kind_flags, const struct nt_event_ *event)
{
    uint64_t position = nt_take_(&ring->cur, NT_LAYOUT_SLOT);
    if (NT_LIKELY_((int64_t)position <= ring->limit) || /* only this thread and its handlers write it */
        nt_ring_announce_(ring, position, NT_LAYOUT_SLOT, (uint32_t)event->object >> NT_LAYOUT_SLOT_BITS))
        nt_record_put_(ring->base + (position & ring->mask), position, kind_flags, event);
}

static inline struct nt_layout_tally *nt_tally_inline_(struct nt_layout_object *entry, nt_kind kind)
{
    if (NT_LIKELY_(__atomic_load_n(&entry->tally_kind[0], __ATOMIC_RELAXED) == kind))
        return &entry->tally[0];
    if (__atomic_load_n(&entry->tally_kind[1], __ATOMIC_RELAXED) == kind)
        return &entry->tally[1];
    if (__atomic_load_n(&entry->tally_kind[2], __ATOMIC_RELAXED) == kind)
        return &entry->tally[2];
    return 0;
}

/* What is settled of a tally in the object's own entry. */
static inline struct nt_layout_pair *nt_settled_inline_(const struct nt_layout_object *entry,
                                                        const struct nt_layout_tally *tally)
{
    uint64_t at = (uint64_t)((const unsigned char *)tally - (const unsigned char *)entry);
    return (struct nt_layout_pair *)(void *)((unsigned char *)(uintptr_t)entry + 112 + at / 2);
}
NT_LAYOUT_ASSERT(offsetof(struct nt_layout_object, settled) == 112 + offsetof(struct nt_layout_object, tally) / 2);
NT_LAYOUT_ASSERT(sizeof(struct nt_layout_tally) == 2 * sizeof(struct nt_layout_pair));

/* NT_RECORD_FIRST, in its place, if nothing of that kind was counted since the session was set. */
static inline uint64_t nt_first_(nt_pair_ sum, const struct nt_layout_pair *settled)
{
    return (uint64_t)(sum[0] - 1 == __atomic_load_n(&settled->count, __ATOMIC_RELAXED)) << 8;
}

static inline void nt_tally_max_(struct nt_layout_tally *tally, uint64_t value)
{
    if (value > __atomic_load_n(&tally->max, __ATOMIC_RELAXED))
        __atomic_store_n(&tally->max, value, __ATOMIC_RELAXED);
}

/* `timed`: the time was given, else the clock is read if the event is logged. */
__attribute__((always_inline)) static inline void nt_count_(nt_object object, nt_kind kind, uint64_t value,
                                                            uint64_t argument, nt_time at, bool timed)
{
    if (NT_UNLIKELY_(kind == NT_KIND_NONE)) /* a kind that could not be declared */
        return;
    uint32_t slot = (uint32_t)object.handle & NT_SLOT_MASK_;
    /* the log's part, by its offset in bytes */
    struct nt_thread_ *thread = (struct nt_thread_ *)(void *)((unsigned char *)nt_thread_ +
                                                              ((uint32_t)object.handle >> (NT_LAYOUT_SLOT_BITS - 5) &
                                                               (NT_LOGS_ - 1) << 5));
    unsigned char *objects = __atomic_load_n(&thread->wiped[0].objects, __ATOMIC_RELAXED);
    if (NT_UNLIKELY_(!objects)) {
        nt_count_slow_(object, kind, value, argument, at, timed);
        return;
    }
    struct nt_layout_object *entry = (struct nt_layout_object *)(void *)objects + slot;
    /* the generation and the kind of the first tally, at one look */
    uint64_t head = __atomic_load_n((uint64_t *)(void *)entry, __ATOMIC_RELAXED) ^ object.handle >> 32;
    struct nt_layout_tally *tally = &entry->tally[0];
    if ((head & UINT64_C(0xffffffffff)) != (uint64_t)kind << 32) {
        tally = (uint32_t)head ? 0 : nt_tally_inline_(entry, kind);
        if (NT_UNLIKELY_(!tally)) {
            nt_count_slow_(object, kind, value, argument, at, timed);
            return;
        }
    }
    if (__atomic_load_n(&thread->log[0].control[slot], __ATOMIC_RELAXED) & NT_MASK(kind)) {
        struct nt_ring_ *ring = __atomic_load_n(&thread->log[0].ring, __ATOMIC_RELAXED);
        if (NT_UNLIKELY_(ring->open)) { /* in a handler that interrupted an event, or there is no ring */
            nt_count_slow_(object, kind, value, argument, at, timed);
            return;
        }
        if (!timed) /* before the sum is loaded, so that the two overlap */
            at = nt_now();
        __atomic_store_n(&ring->open, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        struct nt_event_ event = { at,
                                   __atomic_load_n(&entry->session, __ATOMIC_RELAXED),
                                   value,
                                   argument,
                                   object.handle,
                                   nt_pair_add_(&tally->sum, value) };
        nt_ring_put_(ring, kind | nt_first_(event.sum, nt_settled_inline_(entry, tally)), &event);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&ring->open, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&tally->last, at, __ATOMIC_RELAXED);
    } else {
        nt_pair_add_(&tally->sum, value);
        if (timed)
            __atomic_store_n(&tally->last, at, __ATOMIC_RELAXED);
    }
    nt_tally_max_(tally, value);
}

static inline void nt_object_count(nt_object object, nt_kind kind, uint64_t value)
{
    nt_count_(object, kind, value, 0, 0, false);
}

static inline void nt_object_count_at(nt_object object, nt_kind kind, uint64_t value, nt_time at)
{
    nt_count_(object, kind, value, 0, at, true);
}

static inline void nt_object_count_with(nt_object object, nt_kind kind, uint64_t value, uint64_t argument)
{
    nt_count_(object, kind, value, argument, 0, false);
}

/* Where the search for a session's cell begins. */
static inline struct nt_layout_cell *nt_cell_home_(const struct nt_settler_ *settler, uint64_t session, nt_kind kind)
{
    uint64_t hash = nt_layout_hash_(session, kind);
    uint32_t group = (uint32_t)hash & settler->mask;
    /* without a branch: it would be taken by chance */
    group &= settler->mask >> 1 | ((uint32_t)(group >= settler->groups) - 1);
    uint32_t extent = 31u - (uint32_t)__builtin_clz(2 * group + 1);
    return (struct nt_layout_cell *)(void *)(settler->extent[extent] + (uint64_t)group * NT_LAYOUT_PAGE) +
           (hash >> 58) * 2;
}
NT_LAYOUT_ASSERT(NT_LAYOUT_CELLS == 128);

struct nt_moved_ { /* what a move says, in registers */
    uint64_t session, from;
    nt_pair_ sum, after;
};

static inline void nt_move_put_(struct nt_settler_ *settler, uint64_t number, uint64_t kind_flags,
                                const struct nt_moved_ *moved)
{
    struct nt_layout_move *move = &settler->moves[number % NT_LAYOUT_MOVES];
    struct nt_layout_cell *home = nt_cell_home_(settler, moved->session, (nt_kind)(kind_flags & 0xff));
    __builtin_prefetch(home, 1);
    __atomic_store_n(&move->session, moved->session, __ATOMIC_RELAXED);
    const nt_pair_ own = { moved->from, (uint64_t)(uintptr_t)home };
    nt_pair_copy_((struct nt_layout_pair *)(void *)&move->from, own);
    nt_pair_copy_(&move->sum, moved->sum);
    nt_pair_copy_(&move->after, moved->after);
    /* release: partners are the readers, who load it with acquire */
    __atomic_store_n(&move->commit, (number + 1) << 16 | kind_flags, __ATOMIC_RELEASE);
}

/* Moves what a tally counted since it was settled to the session that it was counted in. If that is none nobody need
   know: what no session has is none's. */
static inline void nt_settle_one_(struct nt_settler_ *settler, nt_kind kind, uint64_t session, nt_object object,
                                  const struct nt_layout_tally *tally, struct nt_layout_pair *settled)
{
    if (__atomic_load_n(&tally->sum.count, __ATOMIC_RELAXED) == __atomic_load_n(&settled->count, __ATOMIC_RELAXED))
        return;
    nt_pair_ now = nt_pair_load_(&tally->sum), before = nt_pair_load_(settled);
    if (session) {
        const struct nt_moved_ moved = { session, object.handle, now - before, now };
        nt_move_put_(settler, nt_take_(&settler->next, 1), kind, &moved);
    }
    nt_pair_copy_(settled, now);
}

static inline void nt_object_session_set(nt_object object, nt_session session)
{
    uint32_t slot = (uint32_t)object.handle & NT_SLOT_MASK_;
    struct nt_thread_ *thread = (struct nt_thread_ *)(void *)((unsigned char *)nt_thread_ +
                                                              ((uint32_t)object.handle >> (NT_LAYOUT_SLOT_BITS - 5) &
                                                               (NT_LOGS_ - 1) << 5));
    unsigned char *objects = __atomic_load_n(&thread->wiped[0].objects, __ATOMIC_RELAXED);
    struct nt_settler_ *settler = objects ? thread->log[0].settler : 0;
    if (NT_UNLIKELY_(!settler)) {
        nt_session_set_slow_(object, session);
        return;
    }
    struct nt_layout_object *entry = (struct nt_layout_object *)(void *)objects + slot;
    /* shared objects, and those whose sums are not plain stores, have another generation in their handles than here */
    if (NT_UNLIKELY_(__atomic_load_n(&entry->live, __ATOMIC_RELAXED) != object.handle >> 32 ||
                     __atomic_load_n(&entry->blocks, __ATOMIC_RELAXED))) {
        nt_session_set_slow_(object, session);
        return;
    }
    uint64_t limit = settler->limit, before = __atomic_load_n(&entry->session, __ATOMIC_RELAXED);
    if (before == session)
        return;
    if (NT_UNLIKELY_(settler->next >= limit)) {
        nt_session_set_slow_(object, session);
        return;
    }
    __atomic_store_n(&settler->limit, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    nt_settle_one_(settler, __atomic_load_n(&entry->tally_kind[0], __ATOMIC_RELAXED), before, object, &entry->tally[0],
                   &entry->settled[0]);
    nt_settle_one_(settler, __atomic_load_n(&entry->tally_kind[1], __ATOMIC_RELAXED), before, object, &entry->tally[1],
                   &entry->settled[1]);
    nt_settle_one_(settler, __atomic_load_n(&entry->tally_kind[2], __ATOMIC_RELAXED), before, object, &entry->tally[2],
                   &entry->settled[2]);
    __atomic_store_n(&entry->session, session, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&settler->limit, limit, __ATOMIC_RELAXED);
}

#endif
