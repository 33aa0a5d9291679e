/* SPDX-License-Identifier: BSD-3-Clause */
/* Settlers: what a thread needs to keep totals by session, made at its first change of a session and handed from
   thread to thread as rings are; and the change itself. The order of its steps, and why a reader finds every count in
   exactly one session whenever the program dies, is in docs/format.md, "Sessions". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/log.h"

#define RETRY_CHANGES 4096u

/* ---- the directory, under the log's lock ---- */

static struct nt_layout_settler *settler_new(struct log_map *map)
{
    enum { PAGES = NT_LAYOUT_MOVES * 64 / NT_LAYOUT_PAGE + 1, OLDER = NT_LAYOUT_KINDS / NT_LAYOUT_CELLS };
    struct nt_layout_live *live = map->live;
    uint32_t number = live->settlers;
    if (!live->settlement_pages)
        live->settlement_pages = 1;
    uint32_t page = live->settlement_pages;
    if (number >= map->settler_max || page + PAGES + OLDER > map->settlement_max)
        return NULL;
    struct nt_layout_settler *settler = &map->settlers[number];
    if ((!log_is_backed(map, settler, sizeof(*settler)) && !log_back(map, settler, sizeof(*settler))) ||
        !log_back(map, map->settlement + (uint64_t)page * NT_LAYOUT_PAGE, (uint64_t)(PAGES + OLDER) * NT_LAYOUT_PAGE))
        return NULL;
    live->settlement_pages = page + PAGES + OLDER;
    __atomic_fetch_add(&live->settlement_backed, (uint64_t)(PAGES + OLDER) * NT_LAYOUT_PAGE, __ATOMIC_RELAXED);
    settler->moves = page;
    settler->extent[0] = page + PAGES - 1;
    settler->older = page + PAGES;
    settler->backed = 1;
    settler->groups = 1;
    __atomic_store_n(&live->settlers, number + 1, __ATOMIC_RELEASE);
    return settler;
}

static struct nt_layout_settler *settler_idle(const struct log_map *map)
{
    struct nt_layout_settler *best = NULL;
    for (uint32_t i = 0; i < map->live->settlers && i < map->settler_max; i++) {
        struct nt_layout_settler *settler = &map->settlers[i];
        /* acquire: partner is log_settler_give, which holds no lock */
        if (__atomic_load_n(&settler->state, __ATOMIC_ACQUIRE) == NT_RING_IDLE &&
            (!best || settler->idle_since < best->idle_since))
            best = settler;
    }
    return best;
}

/* The number after the last move that is whole. */
static uint64_t settler_end(const struct log_map *map, const struct nt_layout_settler *settler)
{
    const struct nt_layout_move *moves = (const void *)(map->settlement + (uint64_t)settler->moves * NT_LAYOUT_PAGE);
    uint64_t end = settler->folded;
    for (uint32_t i = 0; i < NT_LAYOUT_MOVES; i++) {
        uint64_t number = moves[i].commit >> 16;
        end = number > end ? number : end;
    }
    return end;
}

/* ---- changes that were left, as by a handler that jumps out of one or ends the thread ---- */

/* A move is written before what is settled: that is done now, lest it is moved again. `from`: of one object only. */
static void settler_mend(const struct log_map *map, const struct nt_layout_settler *settler, uint64_t from)
{
    const struct nt_layout_move *moves = (const void *)(map->settlement + (uint64_t)settler->moves * NT_LAYOUT_PAGE);
    for (uint32_t i = 0; i < NT_LAYOUT_MOVES; i++) {
        const struct nt_layout_move *move = &moves[i];
        uint32_t slot = (uint32_t)move->from & NT_SLOT_MASK_;
        bool waits = (move->commit >> 16) - 1 - settler->folded < NT_LAYOUT_MOVES;
        if (!waits || !move->from || (from && move->from != from) || move->commit >> 8 & NT_MOVE_GIVEN ||
            slot >= map->slot_max)
            continue;
        struct nt_layout_object *entry = &map->objects[slot];
        const struct nt_layout_tally *tally = NULL;
        if (log_object_is(entry, (uint32_t)(move->from >> 32)))
            tally = log_tally_find(map, entry, (nt_kind)(move->commit & 0xff));
        struct nt_layout_pair *settled = tally ? log_settled(map, entry, tally) : NULL;
        if (settled && (int64_t)(move->after.count - log_pair_load(settled).count) > 0)
            log_pair_store(settled, nt_pair_load_(&move->after), move->from >> 32 & NT_LAYOUT_LOCKED);
    }
}

void log_settle_left(struct nt_log *log, const struct nt_thread_log_ *part, nt_object object)
{
    if (part && part->settler && !part->settler->limit)
        settler_mend(&log->map, part->settler->shared, object.handle);
}

/* Takes it from its thread. Where that left a fold, moves may be in the cells already, and cells on their way to other
   places: readers can tell, nobody can go on. */
static void settler_release(struct nt_layout_settler *settler, uint64_t position)
{
    bool folding = __atomic_load_n(&settler->folding, __ATOMIC_RELAXED);
    settler->position = position;
    settler->idle_since = nt_now();
    __atomic_store_n(&settler->state, folding ? NT_RING_RETIRED : NT_RING_IDLE, __ATOMIC_RELEASE);
}

/* One whose thread ended without telling. */
static struct nt_layout_settler *settler_orphan(const struct log_map *map)
{
    int saved = errno;
    struct nt_layout_settler *found = NULL;
    for (uint32_t i = 0; i < map->live->settlers && i < map->settler_max && !found; i++) {
        struct nt_layout_settler *settler = &map->settlers[i];
        if (__atomic_load_n(&settler->state, __ATOMIC_ACQUIRE) == NT_RING_OWNED &&
            syscall(SYS_tgkill, getpid(), settler->tid, 0) != 0 && errno == ESRCH) {
            settler_mend(map, settler, 0);
            settler_release(settler, settler_end(map, settler));
            found = settler->state == NT_RING_IDLE ? settler : NULL;
        }
    }
    errno = saved;
    return found;
}

static struct nt_layout_settler *settler_take(struct nt_log *log)
{
    struct log_map *map = &log->map;
    struct nt_layout_settler *settler = settler_idle(map);
    if (!settler)
        settler = settler_orphan(map);
    if (!settler)
        settler = settler_new(map);
    if (settler) {
        settler->tid = (uint32_t)syscall(SYS_gettid);
        settler->copy = (uint64_t)(uintptr_t)&log_table;
        __atomic_store_n(&settler->state, NT_RING_OWNED, __ATOMIC_RELEASE);
    }
    return settler;
}

void log_settler_extent(const struct log_map *map, struct nt_settler_ *settler, uint32_t extent)
{
    uint64_t before = extent ? UINT64_C(1) << (extent - 1) : 0; /* groups */
    settler->extent[extent] = map->settlement + (settler->shared->extent[extent] - before) * NT_LAYOUT_PAGE;
}

static void settler_bind(const struct log_map *map, struct nt_settler_ *settler, struct nt_layout_settler *shared)
{
    *settler = (struct nt_settler_){
        .next = shared->position,
        .limit = shared->folded + NT_SETTLE_ROOM_ - 2,
        .moves = (struct nt_layout_move *)(void *)(map->settlement + (uint64_t)shared->moves * NT_LAYOUT_PAGE),
        .shared = shared,
        .folded = shared->folded,
        .groups = shared->groups,
    };
    while (settler->mask + 1 < settler->groups)
        settler->mask = settler->mask * 2 + 1;
    for (uint32_t i = 0; i < NT_LAYOUT_EXTENTS && shared->extent[i]; i++)
        log_settler_extent(map, settler, i);
    /* the last owner may have been another copy of the library, with another address of the file */
    for (uint64_t number = settler->folded; number < settler->next; number++) {
        struct nt_layout_move *move = &settler->moves[number % NT_LAYOUT_MOVES];
        move->home = (uintptr_t)nt_cell_home_(settler, move->session, (nt_kind)(move->commit & 0xff));
    }
}

struct nt_settler_ *log_settler(struct nt_log *log, struct nt_thread_log_ *part)
{
    if (!part || part->settler)
        return part ? part->settler : NULL;
    struct nt_settler_ *settler = log_thread_settler(log);
    /* in a child, forked by a handler in the middle of a change that still has to end here */
    if (!settler || (settler->shared && !settler->limit))
        return NULL;
    if (settler->retry) {
        settler->retry--;
        return NULL;
    }
    struct log_guard guard;
    struct nt_layout_settler *shared = NULL;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        shared = settler_take(log);
        log_unlock(&log->map.live->lock);
    }
    if (shared) {
        settler_bind(&log->map, settler, shared);
        __atomic_store_n(&part->settler, settler, __ATOMIC_RELEASE);
    } else {
        settler->retry = RETRY_CHANGES;
    }
    log_guard_leave(&guard);
    return part->settler;
}

void log_settler_give(struct nt_log *log, struct nt_settler_ *settler)
{
    if (!settler->limit)
        settler_mend(&log->map, settler->shared, 0);
    settler_release(settler->shared, settler->next);
    settler->shared = NULL;
}

void log_settlers_give_all(struct nt_log *log)
{
    struct log_map *map = &log->map;
    for (uint32_t i = 0; i < map->live->settlers && i < map->settler_max; i++) {
        struct nt_layout_settler *shared = &map->settlers[i];
        if (shared->copy == (uint64_t)(uintptr_t)&log_table &&
            __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) == NT_RING_OWNED)
            settler_release(shared, settler_end(map, shared));
    }
}

/* ---- changes ---- */

bool log_settle_begin(struct nt_log *log, struct nt_settler_ *settler, uint32_t needed, bool *ret_outermost)
{
    *ret_outermost = settler->limit != 0;
    if (*ret_outermost) {
        __atomic_store_n(&settler->limit, 0, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (settler->next - settler->folded + needed > NT_SETTLE_ROOM_)
            log_cells_fold(log, settler, LOG_MOVES_LEFT);
        return true;
    }
    /* a handler that interrupted a change: some places are left for that one, and those that were promised to handlers
       that this one interrupted */
    uint64_t promised = nt_take_(&settler->promised, needed) + needed;
    uint64_t waiting = __atomic_load_n(&settler->next, __ATOMIC_RELAXED) - settler->folded;
    if (waiting + promised + 8 <= NT_LAYOUT_MOVES)
        return true;
    (void)nt_take_(&settler->promised, -(uint64_t)needed);
    return false;
}

void log_settle_end(struct nt_settler_ *settler, uint32_t needed, bool outermost)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (outermost)
        __atomic_store_n(&settler->limit, settler->folded + NT_SETTLE_ROOM_ - 2, __ATOMIC_RELAXED);
    else
        (void)nt_take_(&settler->promised, -(uint64_t)needed);
}

struct settling {
    struct nt_log *log;
    struct nt_settler_ *settler; /* NULL: nothing is moved, only marked as settled */
    struct nt_layout_object *entry;
    nt_object object;
    const struct log_join *join;
    bool outermost;
    uint32_t needed; /* moves */
};

typedef void settling_fn(struct settling *settling, nt_kind kind, const struct nt_layout_tally *tally,
                         struct nt_layout_pair *settled);

static void settling_each(struct settling *settling, settling_fn *fn)
{
    const struct log_map *map = &settling->log->map;
    struct nt_layout_object *entry = settling->entry;
    for (int i = 0; i < 3; i++)
        if (entry->tally_kind[i])
            fn(settling, entry->tally_kind[i], &entry->tally[i], &entry->settled[i]);
    for (uint32_t at = entry->blocks; at && at < map->block_max;) {
        struct nt_layout_tally_block *block = (struct nt_layout_tally_block *)(void *)(map->blocks + (uint64_t)at * 64);
        for (int i = 0; i < 4; i++)
            if (block->kind[i])
                fn(settling, block->kind[i], &block->tally[i], &block->settled[i]);
        at = block->next;
    }
}

static void settling_count(struct settling *settling, nt_kind kind, const struct nt_layout_tally *tally,
                           struct nt_layout_pair *settled)
{
    (void)kind;
    settling->needed += log_pair_load(&tally->sum).count != settled->count;
}

/* One move, unless it is to none, and what is settled then. */
static void settling_put(struct settling *settling, nt_kind kind, struct nt_layout_pair *settled,
                         const struct nt_moved_ *moved)
{
    struct nt_settler_ *settler = settling->settler;
    if (settler && moved->session) {
        if (settling->outermost && settler->next - settler->folded >= NT_SETTLE_ROOM_)
            log_cells_fold(settling->log, settler, LOG_MOVES_LEFT);
        nt_move_put_(settler, nt_take_(&settler->next, 1), kind, moved);
    }
    log_pair_store(settled, moved->after, settling->object.handle >> 32 & NT_LAYOUT_LOCKED);
}

static void settling_move(struct settling *settling, nt_kind kind, const struct nt_layout_tally *tally,
                          struct nt_layout_pair *settled)
{
    const struct log_join *join = settling->join && settling->join->tally == tally ? settling->join : NULL;
    const nt_pair_ last = { join != NULL, join ? join->value : 0 };
    nt_pair_ now = nt_pair_load_(&tally->sum), before = nt_pair_load_(settled);
    if (now[0] == before[0]) /* also of one that was joined already */
        return;
    struct nt_moved_ moved = { settling->entry->session, settling->object.handle, now - before - last, now - last };
    if (moved.sum[0])
        settling_put(settling, kind, settled, &moved);
    if (join) {
        moved = (struct nt_moved_){ join->session, settling->object.handle, last, now };
        settling_put(settling, kind, settled, &moved);
    }
}

void log_settle_none(struct nt_log *log, uint64_t session)
{
    __atomic_fetch_add(&log->map.live->unsettled, 1, __ATOMIC_RELAXED);
    log_session_given(&log->map, session);
}

void log_settle(struct nt_log *log, struct nt_thread_log_ *part, struct nt_layout_object *entry, nt_object object,
                const struct log_join *join)
{
    struct settling settling = { .log = log, .entry = entry, .object = object, .join = join };
    log_settle_left(log, part, object);
    if (entry->session)
        settling_each(&settling, settling_count);
    settling.needed += join && join->session;
    if (settling.needed) {
        struct nt_settler_ *settler = log_settler(log, part);
        if (settler && log_settle_begin(log, settler, settling.needed, &settling.outermost)) {
            settling.settler = settler;
        } else {
            log_settle_none(log, entry->session);
            if (join)
                log_settle_none(log, join->session);
        }
    }
    settling_each(&settling, settling_move);
    if (settling.settler)
        log_settle_end(settling.settler, settling.needed, settling.outermost);
}
