/* SPDX-License-Identifier: BSD-3-Clause */
/* The SIGBUS handler and the list of mappings that it looks into. The handler takes no lock: entries are never
   freed, only used again, and one that is changing cannot be the one that its own thread is reading. */
#include "source/live/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

struct live_guard {
    struct live_guard *next; /* fixed once the entry is in the list */
    atomic_uint sequence;    /* odd while base and size change */
    atomic_uintptr_t base;
    atomic_size_t size; /* 0: entry is not in use */
    atomic_bool hit;
};

static _Atomic(struct live_guard *) guards;
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;

/* The handlers that stood before ours, newest first: others may have put theirs in its place meanwhile. */
struct guards_before {
    struct guards_before *next;
    struct sigaction action;
};
static _Atomic(struct guards_before *) guards_before;

/* Replaces the mapping from the faulting page on. A file is cut at its end, so all that is replaced is gone. Of a
   mapping that is written the zeros can be written too; nobody sees it. */
static bool guard_take(struct live_guard *guard, uintptr_t address)
{
    /* acquire: partner is guard_set's release */
    unsigned before = atomic_load_explicit(&guard->sequence, memory_order_acquire);
    uintptr_t base = atomic_load_explicit(&guard->base, memory_order_relaxed);
    size_t size = atomic_load_explicit(&guard->size, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    unsigned after = atomic_load_explicit(&guard->sequence, memory_order_relaxed);
    if (before != after || before % 2 != 0 || address < base || address - base >= size) {
        return false;
    }
    uintptr_t page = address - address % PAGE;
    /* Not a pointer made of nothing: it lies in the mapping that starts at base. */
    void *rest = (void *)page; // NOLINT(performance-no-int-to-ptr)
    if (mmap(rest, size - (page - base), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
        return false;
    }
    atomic_store_explicit(&guard->hit, true, memory_order_relaxed);
    return true;
}

/* As if nobody had been here: the instruction faults again, or the signal comes again. */
static void guards_give_up(const siginfo_t *info)
{
    const struct sigaction none = { .sa_handler = SIG_DFL };
    (void)sigaction(SIGBUS, &none, NULL);
    if (info->si_code <= 0) {
        (void)raise(SIGBUS);
    }
}

static void guards_pass_on(int number, siginfo_t *info, void *context)
{
    static _Thread_local volatile sig_atomic_t passing;
    /* acquire: partner is the release store in guards_install */
    const struct guards_before *before = atomic_load_explicit(&guards_before, memory_order_acquire);
    if (passing || before == NULL) {
        guards_give_up(info); /* one that stood before us hands it to us again */
        return;
    }
    const struct sigaction *action = &before->action;
    passing = 1;
    if ((action->sa_flags & SA_SIGINFO) != 0) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    } else if (action->sa_handler == SIG_DFL || info->si_code > 0) {
        guards_give_up(info);
    }
    passing = 0;
}

static void guards_handle(int number, siginfo_t *info, void *context)
{
    if (info->si_code > 0) {
        uintptr_t address = (uintptr_t)info->si_addr;
        /* acquire: partner is the release store in guard_take_free */
        struct live_guard *guard = atomic_load_explicit(&guards, memory_order_acquire);
        for (; guard != NULL; guard = guard->next) {
            if (guard_take(guard, address)) {
                return;
            }
        }
    }
    guards_pass_on(number, info, context);
}

/* Under the lock. Our handler, in front of the one that stands there. */
static bool guards_install(void)
{
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == guards_handle) {
        return true;
    }
    struct guards_before *before = calloc(1, sizeof *before);
    if (before == NULL) {
        return false;
    }
    before->action = now;
    before->next = atomic_load_explicit(&guards_before, memory_order_relaxed);
    /* release: partner is the handler's acquire load */
    atomic_store_explicit(&guards_before, before, memory_order_release);
    struct sigaction ours = { .sa_sigaction = guards_handle, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
    (void)sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL) == 0;
}

/* Under the lock. */
static void guard_set(struct live_guard *guard, uintptr_t base, size_t size)
{
    unsigned sequence = atomic_load_explicit(&guard->sequence, memory_order_relaxed);
    atomic_store_explicit(&guard->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&guard->base, base, memory_order_relaxed);
    atomic_store_explicit(&guard->size, size, memory_order_relaxed);
    atomic_store_explicit(&guard->hit, false, memory_order_relaxed);
    /* release: partner is guard_take's acquire */
    atomic_store_explicit(&guard->sequence, sequence + 2, memory_order_release);
}

/* Under the lock. An entry that is not in use. */
static struct live_guard *guard_take_free(void)
{
    struct live_guard *guard = atomic_load_explicit(&guards, memory_order_relaxed);
    while (guard != NULL && atomic_load_explicit(&guard->size, memory_order_relaxed) > 0) {
        guard = guard->next;
    }
    if (guard == NULL && (guard = calloc(1, sizeof *guard)) != NULL) {
        guard->next = atomic_load_explicit(&guards, memory_order_relaxed);
        /* release: partner is the handler's acquire load */
        atomic_store_explicit(&guards, guard, memory_order_release);
    }
    return guard;
}

struct live_guard *live_guard_new(void *base, size_t size)
{
    (void)pthread_mutex_lock(&guards_lock);
    struct live_guard *guard = guards_install() ? guard_take_free() : NULL;
    if (guard != NULL) {
        guard_set(guard, (uintptr_t)base, size);
    }
    (void)pthread_mutex_unlock(&guards_lock);
    return guard;
}

void live_guard_free(struct live_guard *take_guard)
{
    if (take_guard != NULL) {
        (void)pthread_mutex_lock(&guards_lock);
        guard_set(take_guard, 0, 0);
        (void)pthread_mutex_unlock(&guards_lock);
    }
}

bool live_guard_hit(const struct live_guard *guard)
{
    return atomic_load_explicit(&guard->hit, memory_order_relaxed);
}
