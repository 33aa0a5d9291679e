/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals and locks of the slow paths. A lock is only held with all signals blocked, so that neither a
   handler nor a cancellation can leave it behind, and is only waited for within bounds. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"

#define LOCK_SPINS 64
#define LOCK_YIELDS 200
#define LOCK_SLEEPS 2000
#define LOCK_SLEEP_NS 100000

static struct log_process *process_page;

void log_guard_enter(struct log_guard *guard)
{
    /* the system call itself: the library's would leave the signals of cancellation and setuid out */
    uint64_t all = ~UINT64_C(0);
    guard->signals = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &guard->signals, sizeof(all));
}

void log_guard_leave(struct log_guard *guard)
{
    int saved = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->signals, NULL, sizeof(guard->signals));
    errno = saved;
}

int log_openat(int directory, const char *path, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

void log_fd_close(int fd)
{
    syscall(SYS_close, fd);
}

/* Whoever holds it can only have been preempted: at last it is slept for, so that a thread of higher priority
   lets it go on. */
bool log_lock(uint32_t *lock)
{
    const struct timespec moment = { 0, LOCK_SLEEP_NS };
    for (int turn = 0; turn < LOCK_SPINS + LOCK_YIELDS + LOCK_SLEEPS; turn++) {
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (turn < LOCK_SPINS)
            __builtin_ia32_pause();
        else if (turn < LOCK_SPINS + LOCK_YIELDS)
            syscall(SYS_sched_yield);
        else
            syscall(SYS_nanosleep, &moment, NULL);
    }
    return false;
}

void log_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

struct log_process *log_process_peek(void)
{
    return __atomic_load_n(&process_page, __ATOMIC_ACQUIRE);
}

struct log_process *log_process(void)
{
    struct log_process *page = __atomic_load_n(&process_page, __ATOMIC_ACQUIRE);
    if (page)
        return page;
    page = mmap(NULL, NT_LAYOUT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, NT_LAYOUT_PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, NT_LAYOUT_PAGE);
        return NULL;
    }
    page->pid = (uint32_t)getpid();
    struct log_process *other = NULL;
    if (!__atomic_compare_exchange_n(&process_page, &other, page, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        munmap(page, NT_LAYOUT_PAGE);
        return other;
    }
    return page;
}

bool log_process_is_ours(const struct log_process *process)
{
    return __atomic_load_n(&process->pid, __ATOMIC_ACQUIRE) == (uint32_t)getpid();
}

bool log_process_enter(void)
{
    struct log_process *page = log_process();
    if (!page)
        return false;
    uint32_t self = (uint32_t)getpid(), wiped = 0;
    /* only one thread exists right after a fork; later ones find the pid set */
    __atomic_compare_exchange_n(&page->pid, &wiped, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&page->pid, __ATOMIC_ACQUIRE) == self;
}
