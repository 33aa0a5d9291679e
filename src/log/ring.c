/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: made, handed from thread to thread, and announced chunk by chunk. The protocol, its proof and what it
   guards against are in docs/format.md, "Rings". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/log.h"

#define RING_SMALL UINT64_C(65536)
#define STEP UINT64_C(65536)
#define RETRY_EVENTS 4096u

/* Raises a word that handlers of this thread may raise too: only upward, without a lock prefix, for no other
   thread writes it. */
static void raise_to(uint64_t *word, uint64_t value)
{
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((int64_t)now < (int64_t)value) {
#if defined(__x86_64__) && !defined(NT_TSAN_)
        bool done;
        __asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*word), "+a"(now) : "r"(value) : "memory");
#else
        bool done = __atomic_compare_exchange_n(word, &now, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
        if (done)
            return;
    }
}

/* ---- directory of rings, under the log's lock ---- */

static void owner_add(struct nt_layout_ring *ring, uint64_t position)
{
    uint32_t number = ring->owners;
    struct nt_layout_owner *owner = &ring->owner[number % NT_LAYOUT_OWNERS];
    owner->from = position;
    owner->since = nt_now();
    owner->tid = (uint32_t)syscall(SYS_gettid);
    owner->copy = (uint64_t)(uintptr_t)&log_table;
    __atomic_store_n(&ring->owners, number + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->state, NT_RING_OWNED, __ATOMIC_RELEASE);
}

static struct nt_layout_ring *ring_new(struct nt_log *log)
{
    struct log_map *map = &log->map;
    uint32_t number = map->live->rings;
    uint64_t used = map->live->ring_bytes, size = log->settings.ring_bytes;
    if (used + size > map->header->cap / 2 && size > RING_SMALL)
        size = RING_SMALL;
    uint64_t offset = (used + NT_LAYOUT_PAGE - 1) / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE;
    if (number >= map->ring_max || offset + size > map->record_bytes)
        return NULL;
    struct nt_layout_ring *ring = &map->rings[number];
    if (!log_is_backed(map, ring, sizeof(*ring)) && !log_back(map, ring, sizeof(*ring)))
        return NULL;
    uint64_t chunk = size / 16 < NT_LAYOUT_PAGE ? size / 16 : size / 16 < STEP ? size / 16 : STEP;
    uint64_t first = size < STEP / 4 ? size : STEP / 4;
    if (!log_back(map, map->records + offset, first))
        return NULL;
    ring->offset = offset;
    ring->size = size;
    ring->chunk = chunk;
    ring->backed = first;
    map->live->ring_bytes = offset + size;
    __atomic_store_n(&map->live->rings, number + 1, __ATOMIC_RELEASE);
    return ring;
}

/* A thread that ended without telling (no destructor ran) gives its ring back when somebody needs one. */
static bool owner_gone(const struct nt_layout_ring *ring)
{
    uint32_t tid = ring->owner[(ring->owners - 1) % NT_LAYOUT_OWNERS].tid;
    int saved = errno;
    bool gone = ring->owners && syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
    errno = saved;
    return gone;
}

/* The ring that has been idle for longest: kept in order by the time it was given back. */
static struct nt_layout_ring *ring_idle(struct nt_log *log)
{
    struct log_map *map = &log->map;
    struct nt_layout_ring *best = NULL;
    for (uint32_t i = 0; i < map->live->rings && i < map->ring_max; i++) {
        struct nt_layout_ring *ring = &map->rings[i];
        /* acquire: partner is log_ring_give, which holds no lock */
        if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == NT_RING_IDLE &&
            (!best || ring->idle_since < best->idle_since))
            best = ring;
    }
    return best;
}

static struct nt_layout_ring *ring_orphan(struct nt_log *log)
{
    struct log_map *map = &log->map;
    for (uint32_t i = 0; i < map->live->rings && i < map->ring_max; i++) {
        struct nt_layout_ring *ring = &map->rings[i];
        if ((ring->state == NT_RING_OWNED || ring->state == NT_RING_RETIRED) && owner_gone(ring)) {
            /* where it stopped in its last chunk is not known */
            ring->position = ring->reserved;
            return ring;
        }
    }
    return NULL;
}

/* A ring for the calling thread and the position to go on from. NULL: no room. */
struct nt_layout_ring *log_ring_take(struct nt_log *log, uint64_t *ret_position)
{
    if (!log_lock(&log->map.live->lock))
        return NULL;
    struct nt_layout_ring *ring = ring_idle(log);
    if (!ring)
        ring = ring_new(log);
    if (!ring)
        ring = ring_orphan(log);
    if (ring) {
        *ret_position = ring->position;
        owner_add(ring, ring->position);
    }
    log_unlock(&log->map.live->lock);
    return ring;
}

/* Gives it back; positions go on from `position`. */
void log_ring_give(struct nt_layout_ring *ring, uint64_t position)
{
    ring->position = position;
    ring->idle_since = nt_now();
    __atomic_store_n(&ring->state, NT_RING_IDLE, __ATOMIC_RELEASE);
}

void log_rings_give_all(struct nt_log *log)
{
    struct log_map *map = &log->map;
    for (uint32_t i = 0; i < map->live->rings && i < map->ring_max; i++) {
        struct nt_layout_ring *ring = &map->rings[i];
        bool ours = __atomic_load_n(&ring->owners, __ATOMIC_ACQUIRE) &&
                    ring->owner[(ring->owners - 1) % NT_LAYOUT_OWNERS].copy == (uint64_t)(uintptr_t)&log_table;
        uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
        if (ours && (state == NT_RING_OWNED || state == NT_RING_RETIRED))
            log_ring_give(ring, __atomic_load_n(&ring->reserved, __ATOMIC_RELAXED));
    }
}

/* ---- announcing ---- */

static bool chunk_back(struct nt_log *log, struct nt_ring_ *ring, uint64_t end)
{
    struct nt_layout_ring *shared = ring->shared;
    uint64_t backed = __atomic_load_n(&shared->backed, __ATOMIC_RELAXED);
    uint64_t need = end < shared->size ? end : shared->size;
    if (need <= backed)
        return true;
    uint64_t to = backed + STEP > need ? backed + STEP : need;
    if (to > shared->size)
        to = shared->size;
    if (!log_back(&log->map, ring->base + backed, to - backed)) {
        to = (need + NT_LAYOUT_PAGE - 1) / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE;
        if (!log_back(&log->map, ring->base + backed, to - backed))
            return false;
    }
    raise_to(&shared->backed, to);
    return true;
}

/* A full file system is asked again only now and then: no system call for every event that is dropped. */
static bool chunk_try(struct nt_log *log, struct nt_ring_ *ring, uint64_t end)
{
    uint64_t skip = __atomic_load_n(&ring->skip, __ATOMIC_RELAXED);
    if (skip) {
        __atomic_store_n(&ring->skip, skip - 1, __ATOMIC_RELAXED);
        return false;
    }
    if (chunk_back(log, ring, end))
        return true;
    __atomic_store_n(&ring->skip, RETRY_EVENTS, __ATOMIC_RELAXED);
    return false;
}

/* Takes positions back that were not used; only works if nobody took later ones, as is so when handlers
   have ended in turn. */
static void positions_return(struct nt_ring_ *ring, uint64_t position, uint64_t bytes)
{
    uint64_t taken = position + bytes;
    __atomic_compare_exchange_n(&ring->cur, &taken, position, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Tries to go on in another ring, now and then. */
static void ring_leave(struct nt_log *log, struct nt_ring_ *ring)
{
    uint64_t skip = __atomic_load_n(&ring->skip, __ATOMIC_RELAXED);
    if (skip)
        __atomic_store_n(&ring->skip, skip - 1, __ATOMIC_RELAXED);
    else if (!log_thread_switch_ring(log, ring))
        __atomic_store_n(&ring->skip, RETRY_EVENTS, __ATOMIC_RELAXED);
}

bool nt_ring_announce_(struct nt_ring_ *ring, uint64_t position, uint64_t bytes, uint32_t index)
{
    struct nt_log *log = &log_table[index & (LOG_MAX - 1)];
    struct nt_layout_ring *shared = ring->shared;
    uint64_t end = ((position + bytes - 1) & ~(ring->chunk - 1)) + ring->chunk;
    uint64_t open = __atomic_load_n(&ring->open, __ATOMIC_RELAXED);
    bool laps = open > 1 && end > (open & ~UINT64_C(1)) + shared->size;
    if (laps || !chunk_try(log, ring, end)) {
        positions_return(ring, position, bytes);
        __atomic_store_n(&shared->dropped, __atomic_load_n(&shared->dropped, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
        if (laps)
            ring_leave(log, ring);
        return false;
    }
    raise_to(&shared->reserved, end);
    /* orders `reserved` before every word of the chunk; partner: the reader's acquire fence */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    raise_to((uint64_t *)&ring->limit, end - NT_LAYOUT_SLOT);
    log_clock_pair(log, false);
    return true;
}

/* The first event of a handler that interrupts one notes where that one can be at the earliest. */
bool log_ring_open(struct nt_ring_ *ring)
{
    const uint64_t longest = (NT_LAYOUT_PAYLOAD / NT_LAYOUT_CONTINUED + 2) * NT_LAYOUT_SLOT;
    uint64_t outer = __atomic_load_n(&ring->open, __ATOMIC_RELAXED);
    if (!outer) {
        __atomic_store_n(&ring->open, 1, __ATOMIC_RELAXED);
    } else if (outer == 1) {
        uint64_t cur = __atomic_load_n(&ring->cur, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->open, (cur > longest ? cur - longest : NT_LAYOUT_SLOT) | 1, __ATOMIC_RELAXED);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return !outer;
}

void log_ring_close(struct nt_ring_ *ring, bool outermost)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (outermost)
        __atomic_store_n(&ring->open, 0, __ATOMIC_RELAXED);
}

struct nt_ring_ *log_ring_of(struct nt_log *log, struct nt_thread_log_ *part)
{
    struct nt_ring_ *ring = part ? __atomic_load_n(&part->ring, __ATOMIC_RELAXED) : NULL;
    if (ring && !ring->shared) /* the stand-in */
        ring = log_thread_ring(log, part);
    if (!ring)
        __atomic_fetch_add(&log->map.live->dropped_no_ring, 1, __ATOMIC_RELAXED);
    return ring;
}

void log_record(struct nt_log *log, struct nt_thread_log_ *part, uint64_t kind_flags, const struct nt_event_ *event)
{
    struct nt_ring_ *ring = log_ring_of(log, part);
    if (!ring)
        return;
    bool outermost = log_ring_open(ring);
    nt_ring_put_(ring, kind_flags, event);
    log_ring_close(ring, outermost);
}
