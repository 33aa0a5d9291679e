/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the machine itself: floor64 in nanoseconds and the bare read of the clock beside it. */
#include "floor.h"

#include <stdio.h>

#include "harness.h"

static void run_clock(void *state, uint64_t operations)
{
    (void)state;
    for (uint64_t i = 0; i < operations; i++) {
        (void)bench_ticks();
    }
}

static int measure(void)
{
    static struct bench_samples samples[2];
    struct floor64 floor;
    if (floor64_init(&floor) != 0) {
        fprintf(stderr, "bench: floor64: no memory\n");
        return -1;
    }
    const struct bench_plan plan = { .clock = BENCH_CLOCK_TSC };
    const struct bench_variant variants[] = {
        { "floor64", floor64_run, &floor, NULL },
        { "clock", run_clock, NULL, NULL },
    };
    bench_compare(&plan, variants, 2, samples);
    bench_report(&(struct bench_row){ .name = "floor64", .unit = "ns" }, &samples[0], NULL);
    bench_report(&(struct bench_row){ .name = "clock", .unit = "ns", .against = "floor64" }, &samples[1], &samples[0]);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "floor64 clock", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
