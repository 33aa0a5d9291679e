/* SPDX-License-Identifier: BSD-3-Clause */
/* What a log costs a whole program: CPU time of examples/relay, all its processes, with and without one. It uses
   every processor, so pairs during which others took more than a tenth of its time are run again, for PATIENCE
   seconds; "quiet" tells which part of the pairs was undisturbed in the end. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "harness.h"
#include "scratch.h"

#define REQUESTS "5000"
#define PATIENCE 30

static struct bench_samples logged, plain, logged_wall, plain_wall;

static int run(const char *log, struct command_cost *ret_cost)
{
    char option[32];
    (void)snprintf(option, sizeof option, "--log=%s", log);
    char *const command[] = { (char *)(uintptr_t)command_path("examples/relay/relay"), "--requests=" REQUESTS, option,
                              NULL };
    (void)bench_wait_quiet();
    return command_run(command, false, ret_cost);
}

/* Both, one first or the other. 1: undisturbed, 0: not, -1: one of them failed. */
static int run_pair(bool on_first, struct command_cost *ret_on, struct command_cost *ret_off)
{
    int error = on_first ? run("on", ret_on) || run("off", ret_off) : run("off", ret_off) || run("on", ret_on);
    if (error != 0) {
        return -1;
    }
    return ret_on->foreign_ms + ret_off->foreign_ms <= (ret_on->cpu_ms + ret_off->cpu_ms) / 10;
}

static int measure(void)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 60 }), undisturbed = 0;
    uint64_t patience = bench_clock_ns(BENCH_CLOCK_WALL) + PATIENCE * UINT64_C(1000000000);
    if (scratch_directory() == NULL || setenv("NTSCOPE_DIR", scratch_directory(), 1) != 0) {
        return -1;
    }
    for (unsigned turn = 0; logged.count < rounds; turn++) {
        struct command_cost on, off;
        int quiet = run_pair(turn % 2, &on, &off);
        if (quiet < 0) {
            return -1;
        }
        if (quiet == 0 && bench_clock_ns(BENCH_CLOCK_WALL) < patience) {
            continue;
        }
        undisturbed += (unsigned)quiet;
        bench_samples_add(&logged, on.cpu_ms);
        bench_samples_add(&plain, off.cpu_ms);
        bench_samples_add(&logged_wall, on.wall_ms);
        bench_samples_add(&plain_wall, off.wall_ms);
    }
    logged.quiet = plain.quiet = logged_wall.quiet = (double)undisturbed / rounds;
    const struct bench_row rows[] = {
        { .name = "relay-plain", .unit = "ms" },
        { .name = "relay-logged", .unit = "ms", .against = "relay-plain" },
        { .name = "relay-logged-wall", .unit = "ms", .against = "relay-plain-wall" },
    };
    bench_report(&rows[0], &plain, NULL);
    bench_report(&rows[1], &logged, &plain);
    bench_report(&rows[2], &logged_wall, &plain_wall);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "relay-plain relay-logged relay-logged-wall", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
