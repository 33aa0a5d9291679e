/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole command `ntscope stat` on a running program with 10,000 channels of two kinds each: wall and CPU time
   from start to end, beside `ntscope --help`, which only starts. Runs that somebody else took the processor from are
   repeated, for PATIENCE seconds. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <nt/log.h>

#include "command.h"
#include "harness.h"
#include "scratch.h"

#define CHANNELS UINT32_C(10000)
#define PATIENCE 10

static struct bench_samples wall, cpu, start_wall;

/* 1: preempted, 0, or -1: failed. */
static int measure_once(const char *program, bool patient)
{
    char *const stat[] = { (char *)(uintptr_t)program, "stat", NULL };
    char *const help[] = { (char *)(uintptr_t)program, "--help", NULL };
    struct command_cost cost, start;
    (void)bench_wait_quiet();
    if (command_run(stat, true, &cost) != 0 || command_run(help, true, &start) != 0) {
        return -1;
    }
    bool preempted = cost.preempted + start.preempted > 0;
    if (preempted && patient) {
        return 1;
    }
    bench_samples_add(&wall, cost.wall_ms);
    bench_samples_add(&cpu, cost.cpu_ms);
    bench_samples_add(&start_wall, start.wall_ms);
    return preempted;
}

static int measure(void)
{
    const char *program = command_path("ntscope");
    nt_log *log = scratch_log("stat", 0, 0);
    int error = log != NULL && setenv("NTSCOPE_DIR", scratch_directory(), 1) == 0 ? 0 : -1;
    if (error != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        nt_object object = scratch_object(log, "conn-", i, NT_MASK_DEFAULT);
        nt_object_count(object, NT_WRITE, i);
        nt_object_count(object, NT_READ, i);
    }
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 60 });
    unsigned undisturbed = 0;
    uint64_t patience = bench_clock_ns(BENCH_CLOCK_WALL) + PATIENCE * UINT64_C(1000000000);
    while (error == 0 && wall.count < rounds) {
        int preempted = measure_once(program, bench_clock_ns(BENCH_CLOCK_WALL) < patience);
        undisturbed += preempted == 0;
        error = preempted < 0 ? -1 : 0;
    }
    wall.quiet = cpu.quiet = start_wall.quiet = (double)undisturbed / rounds;
    error = scratch_log_is_whole(log) ? error : -1;
    scratch_log_free(log);
    if (error != 0) {
        return error;
    }
    const struct bench_row rows[] = {
        { .name = "stat-10k", .unit = "ms", .against = "stat-start", .max_median = 20 },
        { .name = "stat-10k-cpu", .unit = "ms", .max_median = 20 },
        { .name = "stat-start", .unit = "ms" },
    };
    bench_report(&rows[0], &wall, &start_wall);
    bench_report(&rows[1], &cpu, NULL);
    bench_report(&rows[2], &start_wall, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "stat-10k stat-10k-cpu stat-start", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
