/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread needs to count: a block in a page that a fork wipes, with a part for each log. Got at the first
   count, given back by a destructor; counting after that gets a new one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/log.h"

#define RETRY_EVENTS 4096u
#define PLACES (LOG_MAX + 8u) /* for rings: one a log, and some that an open event holds */
#define SLAB_BLOCKS 16u
#define KEYS_INLINE 32u /* the C library keeps so many keys' values without allocating */

/* Two pages: what the quick path sees, and what stands behind it. */
struct thread_block {
    struct nt_thread_ seen;
    struct thread_block *next_free;
    struct {
        const struct nt_log *log; /* whose ring it is */
        uint32_t uses;            /* the log's, then */
    } places[PLACES];
    struct nt_settler_ settlers[LOG_MAX];
    struct nt_ring_ none; /* what a thread without a ring has: always open, so that events come the slow way */
    struct nt_ring_ rings[PLACES] __attribute__((aligned(64)));
};
_Static_assert(sizeof(struct thread_block) <= 2 * NT_LAYOUT_PAGE, "a block is two pages");
_Static_assert(offsetof(struct thread_block, seen) == 0, "a block starts with what is seen");
#define BLOCK_BYTES ((size_t)2 * NT_LAYOUT_PAGE)

static struct nt_thread_ thread_none; /* always zero: what a thread has before its first count */
__thread struct nt_thread_ *nt_thread_ __attribute__((tls_model("initial-exec"))) = &thread_none;

static pthread_key_t thread_key;
static bool thread_key_made;

static struct thread_block *block_mine(void)
{
    return nt_thread_ == &thread_none ? NULL : (struct thread_block *)(void *)nt_thread_;
}

static struct thread_block *slab_new(struct log_process *process)
{
    size_t size = SLAB_BLOCKS * BLOCK_BYTES;
    unsigned char *slab = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < SLAB_BLOCKS; i++)
        if (madvise(slab + i * BLOCK_BYTES, NT_LAYOUT_PAGE, MADV_WIPEONFORK) != 0) {
            munmap(slab, size);
            return NULL;
        }
    for (size_t i = SLAB_BLOCKS - 1; i > 0; i--) {
        struct thread_block *block = (struct thread_block *)(void *)(slab + i * BLOCK_BYTES);
        block->next_free = process->free_threads;
        process->free_threads = block;
    }
    return (struct thread_block *)(void *)slab;
}

static struct thread_block *block_new(void)
{
    struct log_process *process = log_process();
    struct thread_block *block = NULL;
    if (!process || !log_lock(&process->lock))
        return NULL;
    block = process->free_threads;
    if (block)
        process->free_threads = block->next_free;
    else
        block = slab_new(process);
    log_unlock(&process->lock);
    if (block) {
        block->next_free = NULL;
        block->seen.wiped[0].block = 0;
        if (thread_key_made && thread_key < KEYS_INLINE)
            pthread_setspecific(thread_key, block);
    }
    return block;
}

static void rings_give(struct nt_thread_ *seen)
{
    for (uint32_t i = 0; i < LOG_MAX; i++) {
        struct nt_ring_ *ring = seen->log[i].ring;
        struct nt_log *log = &log_table[i];
        bool current = log->used && seen->wiped[i].entered == (unsigned char *)log->map.objects;
        if (ring && ring->shared && current)
            log_ring_give(ring->shared, ring->cur);
        if (seen->log[i].settler && current)
            log_settler_give(log, seen->log[i].settler);
    }
}

static void thread_end(void *arg)
{
    struct thread_block *block = arg;
    struct log_guard guard;
    if (!block || block != block_mine())
        return;
    log_guard_enter(&guard);
    nt_thread_ = &thread_none;
    struct log_process *process = log_process();
    /* a vfork child shares the page but may not end the parent's thread; a forked one finds it wiped */
    if (process && log_process_is_ours(process) && log_lock(&process->lock)) {
        rings_give(&block->seen);
        memset(block, 0, sizeof(*block));
        block->next_free = process->free_threads;
        process->free_threads = block;
        log_unlock(&process->lock);
    }
    log_guard_leave(&guard);
}

void log_thread_init(void)
{
    thread_key_made = pthread_key_create(&thread_key, thread_end) == 0;
}

/* A place for a ring: never used, or of a log that was closed since and in which no event is open. */
static uint32_t place_free(const struct thread_block *block)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        const struct nt_log *log = block->places[i].log;
        if (!log || ((!log->used || log->uses != block->places[i].uses) && !block->rings[i].open))
            return i;
    }
    return PLACES;
}

static struct nt_ring_ *ring_attach(struct nt_log *log, struct thread_block *block, struct nt_thread_log_ *part)
{
    uint32_t place = place_free(block);
    if (place == PLACES)
        return NULL;
    uint64_t position = 0;
    struct nt_layout_ring *shared = log_ring_take(log, &position);
    if (!shared)
        return NULL;
    block->places[place].log = log;
    block->places[place].uses = log->uses;
    struct nt_ring_ *ring = &block->rings[place];
    memset(ring, 0, sizeof(*ring));
    ring->mask = shared->size - 1;
    ring->base = log->map.records + shared->offset;
    ring->chunk = shared->chunk;
    ring->cur = position;
    /* what is left of a chunk that the last owner announced */
    ring->limit = (int64_t)shared->reserved - NT_LAYOUT_SLOT;
    ring->shared = shared;
    __atomic_store_n(&part->ring, ring, __ATOMIC_RELEASE);
    return ring;
}

/* Signals are blocked here. */
static struct nt_thread_log_ *part_make(struct nt_log *log)
{
    if (!log_process_enter())
        return NULL;
    if (!log_process()->mine[log->index] && !log_forked(log))
        return NULL;
    struct thread_block *block = block_mine();
    if (!block && !(block = block_new()))
        return NULL;
    if (!block->seen.wiped[0].block) { /* new, or forked: what page 1 says is the parent's */
        block->seen.wiped[0].block = 1;
        memset(block->places, 0, sizeof(block->places));
    }
    struct nt_thread_log_ *part = &block->seen.log[log->index];
    block->none.open = 1;
    part->ring = &block->none;
    part->control = log->map.control;
    part->settler = NULL;
    block->settlers[log->index].retry = 0;
    part->skip = ring_attach(log, block, part) ? 0 : RETRY_EVENTS;
    /* last: from here on handlers of this thread take the quick path */
    block->seen.wiped[log->index].entered = (unsigned char *)log->map.objects;
    __atomic_store_n(&block->seen.wiped[log->index].objects, log->sparse ? NULL : (unsigned char *)log->map.objects,
                     __ATOMIC_RELEASE);
    nt_thread_ = &block->seen;
    return part;
}

struct nt_thread_log_ *log_thread_enter(struct nt_log *log)
{
    if (!log->used)
        return NULL;
    struct nt_thread_ *thread = nt_thread_;
    const unsigned char *entered = thread->wiped[log->index].entered;
    if (entered && entered == (unsigned char *)log->map.objects)
        return &thread->log[log->index];
    const struct log_process *process = log_process();
    if (!process || process->refused[log->index])
        return NULL;
    struct log_guard guard;
    log_guard_enter(&guard);
    struct nt_thread_log_ *part = part_make(log);
    log_guard_leave(&guard);
    return part;
}

struct nt_ring_ *log_thread_ring(struct nt_log *log, struct nt_thread_log_ *part)
{
    if (part->skip) {
        part->skip--;
        return NULL;
    }
    struct log_guard guard;
    struct nt_ring_ *ring = NULL;
    log_guard_enter(&guard);
    struct thread_block *block = block_mine();
    struct log_process *process = log_process();
    if (block && process && log_process_is_ours(process))
        ring = ring_attach(log, block, part);
    if (!ring)
        part->skip = RETRY_EVENTS;
    log_guard_leave(&guard);
    return ring;
}

/* An event was left open for a whole lap: by a handler that jumped out of it, or by one that logs that much.
   It may still be written, so the ring is left to it for as long as the thread lives. */
bool log_thread_switch_ring(struct nt_log *log, struct nt_ring_ *ring)
{
    struct log_guard guard;
    bool done = false;
    log_guard_enter(&guard);
    struct thread_block *block = block_mine();
    struct log_process *process = log_process();
    if (block && process && log_process_is_ours(process)) {
        struct nt_thread_log_ *part = &block->seen.log[log->index];
        done = part->ring == ring && ring_attach(log, block, part);
        if (done)
            __atomic_store_n(&ring->shared->state, NT_RING_RETIRED, __ATOMIC_RELEASE);
    }
    log_guard_leave(&guard);
    return done;
}

/* The log is about to be closed. */
void log_thread_leave(struct nt_log *log)
{
    struct thread_block *block = block_mine();
    struct nt_ring_ *ring = block ? block->seen.log[log->index].ring : NULL;
    if (!block || block->seen.wiped[log->index].entered != (unsigned char *)log->map.objects)
        return;
    block->seen.wiped[log->index].objects = NULL;
    block->seen.wiped[log->index].entered = NULL;
    if (ring && ring->shared)
        log_ring_give(ring->shared, ring->cur);
    if (block->seen.log[log->index].settler)
        log_settler_give(log, block->seen.log[log->index].settler);
    block->seen.log[log->index].settler = NULL;
}

struct nt_settler_ *log_thread_settler(struct nt_log *log)
{
    struct thread_block *block = block_mine();
    return block ? &block->settlers[log->index] : NULL;
}

bool log_is_ours(const struct nt_log *log)
{
    const struct log_process *process = log_process();
    return log->used && process && log_process_is_ours(process) && process->mine[log->index];
}
