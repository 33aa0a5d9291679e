/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest time that one count took, of every event of the first two laps of a new ring, the steps in which the
   ring gets its memory included. CPU time, because wall time is the scheduler's. stall: the event that takes longest
   at its median over the rounds, for the same event makes the ring grow in each; stall-any: the longest of all, a
   round's figure is its worst; stall-wall the same by the clock. Each beside a loop that does the same but count. */
#include <stdio.h>

#include <nt/log.h>

#include "harness.h"
#include "scratch.h"

#define RING (UINT64_C(1) << 20)
#define EVENTS UINT32_C(32768)

static struct bench_calls calls;

/* Counts, or with no object only looks at the clocks. */
static struct bench_stall run(nt_object object, bool count)
{
    struct bench_stall worst = { 0, 0 };
    float *us = calls.us + (size_t)calls.current * EVENTS;
    for (uint64_t i = 0; i < EVENTS; i++) {
        struct bench_watch watch;
        bench_watch_start(&watch);
        if (count) {
            nt_object_count(object, NT_WRITE, i);
        }
        double took = bench_watch_stop(&watch, &worst);
        us[i] = count ? (float)took : us[i];
    }
    return worst;
}

static struct bench_samples cpu, wall, spin_cpu, spin_wall;

static int measure_once(void *arg)
{
    const nt_object none = { 0 };
    (void)arg;
    nt_log *log = scratch_log("stall", RING, 0);
    if (log == NULL) {
        return -1;
    }
    struct bench_stall spun = run(none, false);
    struct bench_stall counted = run(scratch_object(log, "stall-", 0, NT_MASK_DEFAULT), true);
    calls.current++;
    bench_samples_add(&cpu, counted.cpu_us);
    bench_samples_add(&wall, counted.wall_us);
    bench_samples_add(&spin_cpu, spun.cpu_us);
    bench_samples_add(&spin_wall, spun.wall_us);
    int error = scratch_log_is_whole(log) ? 0 : -1;
    scratch_log_free(log);
    return error;
}

static int measure(void)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 60 });
    static struct bench_samples longest;
    (void)bench_ns_per_tick();
    if (bench_calls_init(&calls, EVENTS, rounds) != 0) {
        return -1;
    }
    for (unsigned round = 0; round < rounds; round++) {
        if (scratch_in_thread(measure_once, NULL) != 0) {
            return -1;
        }
    }
    bench_samples_add(&longest, bench_calls_longest(&calls));
    bench_calls_fini(&calls);
    const struct bench_row rows[] = {
        { .name = "stall", .unit = "us", .max_median = 500 },
        { .name = "stall-any", .unit = "us", .against = "stall-spin" },
        { .name = "stall-spin", .unit = "us" },
        { .name = "stall-wall", .unit = "us", .against = "stall-spin-wall" },
        { .name = "stall-spin-wall", .unit = "us" },
    };
    bench_report(&rows[0], &longest, NULL);
    bench_report(&rows[1], &cpu, &spin_cpu);
    bench_report(&rows[2], &spin_cpu, NULL);
    bench_report(&rows[3], &wall, &spin_wall);
    bench_report(&rows[4], &spin_wall, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "stall stall-any stall-spin stall-wall stall-spin-wall", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
