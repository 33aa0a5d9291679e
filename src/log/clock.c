/* SPDX-License-Identifier: BSD-3-Clause */
/* Which clock a log's ticks are, and the pairs by which a reader converts them. */
#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"

#define PAIR_EVERY_NS UINT64_C(5000000000)
#define PAIR_EVERY_TICKS UINT64_C(15000000000) /* some seconds on any machine */

int nt_clock_tsc_;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

nt_time nt_now_slow_(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static bool tsc_is_clocksource(void)
{
    char name[8] = { 0 };
    const char *path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    int fd = log_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long size = syscall(SYS_read, fd, name, sizeof(name) - 1);
    log_fd_close(fd);
    return size >= 3 && strncmp(name, "tsc", 3) == 0;
}

void log_clock_init(void)
{
    unsigned eax, ebx, ecx, edx;
    /* bit 8 of leaf 0x80000007: the TSC runs at a constant rate in all states (AMD APM 3, Intel SDM 2A, CPUID) */
    bool invariant = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
    int allowed = PR_TSC_ENABLE;
    if (prctl(PR_GET_TSC, &allowed, 0, 0, 0) != 0)
        allowed = PR_TSC_ENABLE;
    nt_clock_tsc_ = allowed == PR_TSC_ENABLE && invariant && tsc_is_clocksource();
}

/* Reads the three clocks between two looks at the ticks; of some tries the tightest counts. */
static struct nt_layout_clock_pair pair_read(void)
{
    struct nt_layout_clock_pair best = { 0, 0, 0 };
    uint64_t width = UINT64_MAX;
    for (int turn = 0; turn < 3; turn++) {
        uint64_t before = nt_now();
        uint64_t realtime = clock_ns(CLOCK_REALTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
        uint64_t after = nt_now();
        if (after - before < width) {
            width = after - before;
            best = (struct nt_layout_clock_pair){ before + width / 2, monotonic, realtime };
        }
    }
    return best;
}

void log_clock_pair(struct nt_log *log, bool now)
{
    uint64_t ticks = nt_now();
    uint64_t due = __atomic_load_n(&log->next_clock_pair, __ATOMIC_RELAXED);
    if (!now && ticks < due)
        return;
    uint64_t next = ticks + (nt_clock_tsc_ ? PAIR_EVERY_TICKS : PAIR_EVERY_NS);
    /* who moves the due time writes the pair: no two write one place */
    if (!__atomic_compare_exchange_n(&log->next_clock_pair, &due, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    struct nt_layout_live *live = log->map.live;
    uint64_t number = __atomic_load_n(&live->clock_pairs, __ATOMIC_RELAXED);
    live->clock[number % NT_LAYOUT_CLOCK_PAIRS] = pair_read();
    /* release: partner is the reader's acquire load */
    __atomic_store_n(&live->clock_pairs, number + 1, __ATOMIC_RELEASE);
}
