/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics of the harness, and that a variant that does twice the work is measured as such. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void percentiles_interpolate(void **state)
{
    struct bench_samples samples = { 0 };
    (void)state;
    assert_true(bench_samples_percentile(&samples, 0.5) == 0);
    const double values[] = { 5, 1, 3, 2, 4 };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        bench_samples_add(&samples, values[i]);
    }
    assert_true(bench_samples_percentile(&samples, 0) == 1);
    assert_true(bench_samples_percentile(&samples, 0.5) == 3);
    assert_true(bench_samples_percentile(&samples, 1) == 5);
    assert_true(bench_samples_percentile(&samples, 0.125) == 1.5);
}

static void samples_are_bounded(void **state)
{
    struct bench_samples samples = { 0 };
    (void)state;
    for (unsigned i = 0; i < 2 * BENCH_ROUNDS_MAX; i++) {
        bench_samples_add(&samples, 1);
    }
    assert_int_equal(samples.count, BENCH_ROUNDS_MAX);
}

static void spin(void *state, uint64_t operations)
{
    const unsigned *steps = state;
    for (uint64_t i = 0; i < operations * *steps; i++) {
        __asm__ volatile("" ::: "memory");
    }
}

static void ratios_are_found(void **state)
{
    static struct bench_samples samples[2];
    struct bench_samples ratios = { 0 };
    unsigned one = 100, three = 300;
    (void)state;
    const struct bench_plan plan = { .clock = BENCH_CLOCK_TSC, .rounds = 20, .operations = 500 };
    const struct bench_variant variants[] = { { "one", spin, &one, NULL }, { "three", spin, &three, NULL } };
    bench_compare(&plan, variants, 2, samples);
    for (unsigned i = 0; i < samples[0].count; i++) {
        bench_samples_add(&ratios, samples[1].values[i] / samples[0].values[i]);
    }
    double ratio = bench_samples_percentile(&ratios, 0.5);
    assert_true(ratio > 2 && ratio < 4.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_interpolate),
        cmocka_unit_test(samples_are_bounded),
        cmocka_unit_test(ratios_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
