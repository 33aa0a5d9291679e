/* SPDX-License-Identifier: BSD-3-Clause */
/* Ticks to nanoseconds since 1970. All logs of a clock domain (one boot of one machine, one kind of ticks) are
   converted by one calibration: a straight line through the oldest and the newest pair of clocks that any of
   them recorded, slope by the monotonic clock, which is never set back, place by the newest real time.
   Reads a clock only where it says so; knows no file. */
#ifndef NT_SOURCE_LIVE_CLOCK_H
#define NT_SOURCE_LIVE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <nt/log_layout.h>

enum { LIVE_CLOCK_SHIFT = 56 };

struct live_clock {
    uint64_t ticks; /* at this point … */
    uint64_t time;  /* … it was this real time */
    int64_t scale;  /* ns a tick, times 2^LIVE_CLOCK_SHIFT; positive */
};

static inline uint64_t live_clock_time(const struct live_clock *clock, uint64_t ticks)
{
    __int128 past = (__int128)(int64_t)(ticks - clock->ticks) * clock->scale;
    return clock->time + (uint64_t)(past >> LIVE_CLOCK_SHIFT);
}

/* A point in time that 0 stands for "never" of. */
static inline uint64_t live_clock_time_or_0(const struct live_clock *clock, uint64_t ticks)
{
    return ticks != 0 ? live_clock_time(clock, ticks) : 0;
}

struct live_clock_domain {
    uint8_t boot_id[16];
    bool tsc;     /* ticks are the processor's; else nanoseconds of the monotonic clock */
    uint32_t uid; /* whose logs: nobody's pairs move the times of another user's */
    uint64_t pairs;
    struct nt_layout_clock_pair oldest, newest;
    uint64_t baseline; /* ticks between the pairs that `clock` was made from; 0: made from less than two */
    struct live_clock clock;
};

/* The clock that a log's ticks are of, read now, on this machine. False: the processor's, and there is no way to. */
bool live_clock_ticks(bool tsc, uint64_t *ret_ticks);
/* Another pair of the domain; one of zeros is ignored. */
void live_clock_add(struct live_clock_domain *domain, const struct nt_layout_clock_pair *pair);
/* Adds a pair read now, on this machine. */
void live_clock_add_now(struct live_clock_domain *domain);
/* Makes `clock` from the pairs, if it was made from none or from ones at most half as far apart: a calibration
   that changed with every look would move events against each other. With one pair, or with pairs that cannot
   be (a tick longer than 32 ns or shorter than a picosecond), ticks count as nanoseconds. */
void live_clock_settle(struct live_clock_domain *domain);

#endif
