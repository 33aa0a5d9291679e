/* SPDX-License-Identifier: BSD-3-Clause */
/* Tallies beyond the quick path: found or made for further kinds, added to under a lock prefix, and the slow
   way through one count. */
#include <string.h>

#include "log/log.h"

static struct nt_layout_tally_block *block_at(const struct log_map *map, uint32_t block)
{
    return block && block < map->block_max
               ? (struct nt_layout_tally_block *)(void *)(map->blocks + (uint64_t)block * 64)
               : NULL;
}

struct nt_layout_tally *log_tally_find(const struct log_map *map, const struct nt_layout_object *entry, nt_kind kind)
{
    for (int i = 0; i < 3; i++)
        if (__atomic_load_n(&entry->tally_kind[i], __ATOMIC_ACQUIRE) == kind)
            return &map->objects[entry - map->objects].tally[i];
    uint32_t next = __atomic_load_n(&entry->blocks, __ATOMIC_ACQUIRE);
    for (struct nt_layout_tally_block *block; (block = block_at(map, next)) != NULL;) {
        for (int i = 0; i < 4; i++)
            if (__atomic_load_n(&block->kind[i], __ATOMIC_ACQUIRE) == kind)
                return &block->tally[i];
        next = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

void log_tally_each(const struct log_map *map, const struct nt_layout_object *entry, log_tally_each_fn *fn, void *arg)
{
    for (int i = 0; i < 3; i++)
        if (entry->tally_kind[i] && entry->tally[i].sum.count)
            fn(arg, entry->tally_kind[i], &entry->tally[i]);
    for (struct nt_layout_tally_block *block = block_at(map, entry->blocks); block; block = block_at(map, block->next))
        for (int i = 0; i < 4; i++)
            if (block->kind[i] && block->tally[i].sum.count)
                fn(arg, block->kind[i], &block->tally[i]);
}

/* A tally of `open` starts at the one that making the object was, which is of no session. */
static struct nt_layout_tally *tally_begin(struct nt_layout_tally *tally, struct nt_layout_pair *settled, uint8_t *slot,
                                           const struct nt_layout_object *entry, nt_kind kind)
{
    memset(tally, 0, sizeof(*tally));
    if (kind == NT_OPEN) {
        tally->sum.count = 1;
        settled->count = entry->discipline != NT_SHARED;
        tally->last = entry->opened;
    }
    /* release: partners are readers and other threads' quick paths */
    __atomic_store_n(slot, (uint8_t)kind, __ATOMIC_RELEASE);
    return tally;
}

bool log_tally_place(struct log_map *map, struct nt_layout_object *entry, struct log_tally_place *ret_place)
{
    uint32_t *link = &entry->blocks;
    for (struct nt_layout_tally_block *block; (block = block_at(map, *link)) != NULL; link = &block->next)
        for (int i = 0; i < 4; i++)
            if (!block->kind[i]) {
                *ret_place = (struct log_tally_place){ .block = block, .number = i };
                return true;
            }
    uint32_t fresh = log_block_new(map, 4);
    struct nt_layout_tally_block *block = block_at(map, fresh);
    if (!block)
        return false;
    block->owner = (uint32_t)(entry - map->objects);
    *ret_place = (struct log_tally_place){ .block = block, .link = link, .unit = fresh };
    return true;
}

struct nt_layout_tally *log_tally_start(const struct log_tally_place *place, const struct nt_layout_object *entry,
                                        nt_kind kind)
{
    struct nt_layout_tally_block *block = place->block;
    int i = place->number;
    struct nt_layout_tally *tally = tally_begin(&block->tally[i], &block->settled[i], &block->kind[i], entry, kind);
    if (place->link)
        __atomic_store_n(place->link, place->unit, __ATOMIC_RELEASE);
    return tally;
}

static struct nt_layout_tally *tally_new(struct log_map *map, struct nt_layout_object *entry, nt_kind kind)
{
    for (int i = 0; i < 3; i++)
        if (!entry->tally_kind[i])
            return tally_begin(&entry->tally[i], &entry->settled[i], &entry->tally_kind[i], entry, kind);
    struct log_tally_place place;
    return log_tally_place(map, entry, &place) ? log_tally_start(&place, entry, kind) : NULL;
}

struct nt_layout_tally *log_tally(struct nt_log *log, struct nt_layout_object *entry, nt_kind kind)
{
    struct nt_layout_tally *tally = log_tally_find(&log->map, entry, kind);
    if (tally)
        return tally;
    struct log_guard guard;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        tally = log_tally_find(&log->map, entry, kind);
        if (!tally)
            tally = tally_new(&log->map, entry, kind);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    if (!tally)
        __atomic_fetch_add(&log->map.live->refused_tallies, 1, __ATOMIC_RELAXED);
    return tally;
}

/* Adds 1 and value with one locked 16-byte compare-and-swap; returns the new sum. */
static nt_pair_ pair_add_locked(struct nt_layout_pair *sum, uint64_t value)
{
#if defined(NT_TSAN_)
    unsigned __int128 *whole = (unsigned __int128 *)(void *)sum;
    unsigned __int128 before = __atomic_load_n(whole, __ATOMIC_RELAXED), after;
    do {
        after = (unsigned __int128)((uint64_t)(before >> 64) + value) << 64 | ((uint64_t)before + 1);
    } while (!__atomic_compare_exchange_n(whole, &before, after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (nt_pair_){ (uint64_t)after, (uint64_t)(after >> 64) };
#else
    /* a torn first guess only costs a turn */
    uint64_t count = __atomic_load_n(&sum->count, __ATOMIC_RELAXED);
    uint64_t total = __atomic_load_n(&sum->total, __ATOMIC_RELAXED);
    for (;;) {
        bool done;
        uint64_t next_count = count + 1, next_total = total + value;
        __asm__ volatile("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*sum), "+a"(count), "+d"(total)
                         : "b"(next_count), "c"(next_total)
                         : "memory");
        if (done)
            return (nt_pair_){ next_count, next_total };
    }
#endif
}

nt_pair_ log_tally_add(struct nt_layout_tally *tally, uint64_t value, bool locked)
{
    return locked ? pair_add_locked(&tally->sum, value) : nt_pair_add_(&tally->sum, value);
}

/* One 16-byte load. */
struct nt_layout_pair log_pair_load(const struct nt_layout_pair *pair)
{
#if defined(NT_TSAN_)
    unsigned __int128 whole = __atomic_load_n((const unsigned __int128 *)(const void *)pair, __ATOMIC_RELAXED);
    return (struct nt_layout_pair){ (uint64_t)whole, (uint64_t)(whole >> 64) };
#else
    nt_pair_ whole = *(const volatile nt_pair_ *)(const void *)pair;
    return (struct nt_layout_pair){ whole[0], whole[1] };
#endif
}

void log_pair_store(struct nt_layout_pair *pair, nt_pair_ value, bool locked)
{
#if !defined(NT_TSAN_)
    if (locked) {
        uint64_t count = __atomic_load_n(&pair->count, __ATOMIC_RELAXED);
        uint64_t total = __atomic_load_n(&pair->total, __ATOMIC_RELAXED);
        for (bool done = false; !done;)
            __asm__ volatile("lock cmpxchg16b %1"
                             : "=@ccz"(done), "+m"(*pair), "+a"(count), "+d"(total)
                             : "b"((uint64_t)value[0]), "c"((uint64_t)value[1])
                             : "memory");
        return;
    }
#endif
    (void)locked;
    nt_pair_copy_(pair, value);
}

static bool tally_is_inline(const struct nt_layout_object *entry, const struct nt_layout_tally *tally)
{
    const unsigned char *at = (const unsigned char *)tally;
    return at >= (const unsigned char *)entry && at < (const unsigned char *)(entry + 1);
}

struct nt_layout_tally_block *log_tally_block(const struct log_map *map, const struct nt_layout_object *entry,
                                              const struct nt_layout_tally *tally, int *ret_number)
{
    const unsigned char *at = (const unsigned char *)tally;
    if (tally_is_inline(entry, tally))
        return NULL;
    uint32_t next = __atomic_load_n(&entry->blocks, __ATOMIC_ACQUIRE);
    for (struct nt_layout_tally_block *block; (block = block_at(map, next)) != NULL; next = block->next)
        if (at > (const unsigned char *)block && at < (const unsigned char *)(block + 1)) {
            *ret_number = (int)(tally - block->tally);
            return block;
        }
    return NULL;
}

struct nt_layout_pair *log_settled(const struct log_map *map, const struct nt_layout_object *entry,
                                   const struct nt_layout_tally *tally)
{
    int number;
    if (tally_is_inline(entry, tally))
        return nt_settled_inline_(entry, tally);
    struct nt_layout_tally_block *block = log_tally_block(map, entry, tally, &number);
    return block ? &block->settled[number] : &map->objects[entry - map->objects].settled[0]; /* cannot be */
}

/* ---- extras ---- */

struct nt_layout_extra *log_extra(const struct log_map *map, const struct nt_layout_object *entry, nt_kind kind)
{
    uint32_t at = __atomic_load_n(&entry->extras, __ATOMIC_ACQUIRE);
    while (at && at < map->block_max) {
        struct nt_layout_extra *extra = (struct nt_layout_extra *)(void *)(map->blocks + (uint64_t)at * 64);
        if (extra->kind == kind)
            return extra;
        at = __atomic_load_n(&extra->next, __ATOMIC_ACQUIRE);
    }
    return NULL;
}

/* Finds or makes it; call with the log's lock held. */
struct nt_layout_extra *log_extra_new(struct log_map *map, struct nt_layout_object *entry, nt_kind kind)
{
    struct nt_layout_extra *extra = log_extra(map, entry, kind);
    if (extra)
        return extra;
    uint32_t at = log_block_new(map, 2);
    if (!at)
        return NULL;
    extra = (struct nt_layout_extra *)(void *)(map->blocks + (uint64_t)at * 64);
    extra->next = entry->extras;
    extra->owner = (uint32_t)(entry - map->objects);
    extra->kind = (uint8_t)kind;
    __atomic_store_n(&entry->extras, at, __ATOMIC_RELEASE);
    return extra;
}

/* ---- one count, the slow way ---- */

/* Largest value and last time, of a tally that other threads may count on; at 0: not known. */
void log_tally_seen(struct nt_layout_tally *tally, uint64_t value, nt_time at)
{
    if (at)
        __atomic_store_n(&tally->last, at, __ATOMIC_RELAXED);
    uint64_t max = __atomic_load_n(&tally->max, __ATOMIC_RELAXED);
    while (max < value &&
           !__atomic_compare_exchange_n(&tally->max, &max, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* What is counted on, found with few loads: shared objects come this way each time. NULL: look thoroughly. */
static struct nt_layout_object *entry_quick(const struct nt_log *log, nt_object object)
{
    unsigned char *objects = nt_thread_->wiped[log->index].objects;
    if (!objects || objects != (unsigned char *)log->map.objects)
        return NULL;
    struct nt_layout_object *entry = &log->map.objects[(uint32_t)object.handle & NT_SLOT_MASK_];
    return log_object_is(entry, (uint32_t)(object.handle >> 32)) ? entry : NULL;
}

struct counting { /* where one count goes */
    struct nt_log *log;
    struct nt_thread_log_ *part;
    struct nt_layout_object *entry;
    struct nt_layout_tally *tally;
    struct nt_layout_histogram *histogram; /* NULL: none */
    struct nt_settler_ *settler;           /* of one that goes to a session of its own, else NULL */
    uint64_t number;                       /* of its move */
    bool outermost;
};

static bool counting_find(struct counting *counting, const struct log_count *count)
{
    struct nt_log *log = log_of(count->object);
    if (!log || count->kind == NT_KIND_NONE || count->kind >= NT_LAYOUT_CONTINUATION)
        return false;
    struct nt_layout_object *entry = entry_quick(log, count->object);
    struct nt_layout_tally *tally = entry ? nt_tally_inline_(entry, count->kind) : NULL;
    struct nt_thread_log_ *part = log_thread_enter(log);
    struct nt_layout_histogram *histogram = NULL; /* those in the entry have none */
    if (!tally) {
        entry = part || log_is_ours(log) ? log_object_enter(log, count->object) : NULL;
        tally = entry ? log_tally(log, entry, count->kind) : NULL;
        histogram = tally ? log_histogram(&log->map, entry, tally) : NULL;
    }
    *counting = (struct counting){ .log = log, .part = part, .entry = entry, .tally = tally, .histogram = histogram };
    return tally != NULL;
}

/* Takes the number of the move before anything is counted. */
static void counting_move_begin(struct counting *counting, const struct log_count *count)
{
    if (counting->entry->discipline != NT_SHARED)
        log_settle_left(counting->log, counting->part, count->object);
    if (!count->session)
        return;
    struct nt_settler_ *settler = log_settler(counting->log, counting->part);
    if (settler && log_settle_begin(counting->log, settler, 1, &counting->outermost)) {
        counting->settler = settler;
        counting->number = nt_take_(&settler->next, 1);
    } else {
        log_settle_none(counting->log, count->session);
    }
}

/* Of an exclusive object the count is settled at once, so that it is not of the object's session. */
static void counting_move_end(struct counting *counting, const struct log_count *count)
{
    bool shared = counting->entry->discipline == NT_SHARED;
    struct nt_layout_pair *settled = log_settled(&counting->log->map, counting->entry, counting->tally);
    struct nt_moved_ moved = { count->session, shared ? 0 : count->object.handle, { 1, count->value }, { 0, 0 } };
    if (!shared)
        moved.after = nt_pair_load_(settled) + moved.sum;
    if (counting->settler)
        nt_move_put_(counting->settler, counting->number, count->kind, &moved);
    if (!(__atomic_load_n(&counting->entry->flags, __ATOMIC_RELAXED) & NT_OBJECT_MIXED))
        __atomic_fetch_or(&counting->entry->flags, NT_OBJECT_MIXED, __ATOMIC_RELAXED);
    if (!shared)
        log_pair_store(settled, moved.after, count->object.handle >> 32 & NT_LAYOUT_LOCKED);
    if (counting->settler)
        log_settle_end(counting->settler, 1, counting->outermost);
}

/* For shared objects, further kinds, first uses, handlers in an event, threads without a ring, forked children,
   stale handles, sessions of their own. */
void log_count(const struct log_count *count)
{
    struct counting counting;
    if (!counting_find(&counting, count))
        return;
    struct nt_log *log = counting.log;
    struct nt_layout_object *entry = counting.entry;
    nt_time at = count->at;
    uint64_t session = __atomic_load_n(&entry->session, __ATOMIC_RELAXED);
    bool elsewhere = count->in && count->session != session; /* none's sums are what is left: they need no move */
    if (elsewhere)
        counting_move_begin(&counting, count);
    if (elsewhere || count->about)
        session = count->session;
    bool locked = count->object.handle >> 32 & NT_LAYOUT_LOCKED;
    /* by the handle's slot, not the entry's place: a handler that forks may change the map under us */
    uint32_t slot = (uint32_t)count->object.handle & NT_SLOT_MASK_;
    bool logged = __atomic_load_n(&log->map.control[slot], __ATOMIC_RELAXED) & NT_MASK(count->kind);
    if (logged && !count->timed)
        at = nt_now();
    struct nt_event_ event = { at,
                               session,
                               count->value,
                               count->argument,
                               count->object.handle,
                               log_tally_add(counting.tally, count->value, locked) };
    uint64_t flags = elsewhere ? (uint64_t)NT_RECORD_IN << 8
                               : nt_first_(event.sum, log_settled(&log->map, entry, counting.tally));
    if (elsewhere)
        counting_move_end(&counting, count);
    if (logged)
        log_record(log, counting.part, count->kind | flags, &event);
    if (counting.histogram)
        log_histogram_add(counting.histogram, count->value, locked);
    log_tally_seen(counting.tally, count->value, logged || count->timed ? at : 0);
}

void nt_count_slow_(nt_object object, nt_kind kind, uint64_t value, uint64_t argument, nt_time at, bool timed)
{
    const struct log_count count = {
        .object = object, .kind = kind, .value = value, .argument = argument, .at = at, .timed = timed
    };
    log_count(&count);
}

void nt_object_count_in_at(nt_object object, nt_session session, nt_kind kind, uint64_t value, nt_time at)
{
    const struct log_count count = {
        .object = object, .kind = kind, .value = value, .at = at, .timed = true, .in = true, .session = session
    };
    log_count(&count);
}

void nt_object_count_in(nt_object object, nt_session session, nt_kind kind, uint64_t value)
{
    const struct log_count count = { .object = object, .kind = kind, .value = value, .in = true, .session = session };
    log_count(&count);
}
