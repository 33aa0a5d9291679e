/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration, in integers: 2^-56 of relative error is 1 ns in two years. */
#include "source/live/clock.h"

#include <time.h>

#define NANOSECOND (INT64_C(1) << LIVE_CLOCK_SHIFT)

/* The reader's own clock must not be mistaken for a processor's: the compiler's rdtsc, or nothing. */
bool live_clock_ticks(bool tsc, uint64_t *ret_ticks)
{
#if defined(__x86_64__)
    if (tsc) {
        *ret_ticks = __builtin_ia32_rdtsc();
        return true;
    }
#endif
    *ret_ticks = 0;
    return !tsc;
}

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now = { 0 };
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void live_clock_add(struct live_clock_domain *domain, const struct nt_layout_clock_pair *pair)
{
    if (pair->ticks == 0 || pair->realtime == 0) {
        return;
    }
    if (domain->pairs == 0 || pair->ticks < domain->oldest.ticks) {
        domain->oldest = *pair;
    }
    if (domain->pairs == 0 || pair->ticks > domain->newest.ticks) {
        domain->newest = *pair;
    }
    domain->pairs++;
}

void live_clock_add_now(struct live_clock_domain *domain)
{
    struct nt_layout_clock_pair best = { 0 };
    uint64_t narrowest = UINT64_MAX;
    for (int turn = 0; turn < 4; turn++) {
        uint64_t before, after;
        if (!live_clock_ticks(domain->tsc, &before)) {
            return;
        }
        uint64_t realtime = clock_now(CLOCK_REALTIME);
        uint64_t monotonic = clock_now(CLOCK_MONOTONIC);
        (void)live_clock_ticks(domain->tsc, &after);
        if (after - before < narrowest) {
            narrowest = after - before;
            best.ticks = domain->tsc ? before + narrowest / 2 : monotonic;
            best.monotonic = monotonic;
            best.realtime = realtime;
        }
    }
    live_clock_add(domain, &best);
}

/* ns a tick, times 2^LIVE_CLOCK_SHIFT; 0: the pairs cannot be. */
static int64_t slope(const struct live_clock_domain *domain)
{
    uint64_t ticks = domain->newest.ticks - domain->oldest.ticks;
    if (ticks == 0 || domain->newest.monotonic <= domain->oldest.monotonic) {
        return 0;
    }
    uint64_t ns = domain->newest.monotonic - domain->oldest.monotonic;
    if (ns / 32 > ticks || ticks / 1000 > ns) {
        return 0;
    }
    return (int64_t)(((unsigned __int128)ns << LIVE_CLOCK_SHIFT) / ticks);
}

void live_clock_settle(struct live_clock_domain *domain)
{
    uint64_t baseline = domain->newest.ticks - domain->oldest.ticks;
    bool known = domain->clock.scale > 0;
    if (known && (baseline == 0 || baseline / 2 < domain->baseline)) {
        return;
    }
    int64_t scale = domain->tsc && domain->pairs > 0 ? slope(domain) : NANOSECOND;
    domain->clock.ticks = domain->newest.ticks;
    domain->clock.time = domain->newest.realtime;
    domain->clock.scale = scale > 0 ? scale : NANOSECOND;
    domain->baseline = baseline;
}
