/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantiles against what they say, by counting. */
#include "model/histogram.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_quantile(const struct nt_source_histogram *histogram, unsigned per_mille, uint64_t low)
{
    assert_int_equal(nt_model_quantile(histogram, per_mille)->low, low);
}

static void known_ones(void **state)
{
    (void)state;
    /* 10 values: 0; 1, 1, 1, 1; 5 of 8 to 9 */
    static const struct nt_source_bucket buckets[] = { { 0, 0, 1 }, { 1, 1, 4 }, { 8, 9, 5 } };
    const struct nt_source_histogram histogram = { 1, buckets, 3 };
    assert_quantile(&histogram, 1, 0);
    assert_quantile(&histogram, 100, 0);
    assert_quantile(&histogram, 101, 1);
    assert_quantile(&histogram, 500, 1);
    assert_quantile(&histogram, 501, 8);
    assert_quantile(&histogram, 900, 8);
    assert_quantile(&histogram, 1000, 8);
    const struct nt_source_histogram one = { 1, buckets + 2, 1 };
    assert_quantile(&one, 1, 8);
    assert_quantile(&one, 1000, 8);
}

/* The k-th of n values is found by going through them. */
static void all_of_small_ones(void **state)
{
    (void)state;
    for (uint64_t first = 1; first < 8; first++) {
        for (uint64_t second = 1; second < 8; second++) {
            const struct nt_source_bucket buckets[] = { { 10, 11, first }, { 20, 21, second }, { 30, 31, 3 } };
            const struct nt_source_histogram histogram = { 1, buckets, 3 };
            uint64_t sum = first + second + 3;
            for (unsigned per_mille = 1; per_mille <= 1000; per_mille++) {
                uint64_t rank = (sum * per_mille + 999) / 1000;
                assert_quantile(&histogram, per_mille, rank <= first ? 10 : rank <= first + second ? 20 : 30);
            }
        }
    }
}

static void counts_of_any_size(void **state)
{
    (void)state;
    static const struct nt_source_bucket buckets[] = { { 0, 0, UINT64_MAX }, { 1, 1, UINT64_MAX }, { 2, 2, 1 } };
    const struct nt_source_histogram histogram = { 1, buckets, 3 };
    assert_quantile(&histogram, 499, 0);
    assert_quantile(&histogram, 500, 1); /* by half a value */
    assert_quantile(&histogram, 999, 1);
    assert_quantile(&histogram, 1000, 2);
}

static void by_kind(void **state)
{
    (void)state;
    static const struct nt_source_bucket buckets[] = { { 0, 0, 1 } };
    static const struct nt_source_histogram histograms[] = { { 2, buckets, 1 }, { 64, buckets, 1 } };
    static const struct nt_source_rare rare = { .histograms = histograms, .histogram_count = 2 };
    const struct nt_source_object with = { .rare = &rare }, without = { .rare = NULL };
    assert_ptr_equal(nt_model_histogram(&with, 2), &histograms[0]);
    assert_ptr_equal(nt_model_histogram(&with, 64), &histograms[1]);
    assert_null(nt_model_histogram(&with, 3));
    assert_null(nt_model_histogram(&without, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones),
        cmocka_unit_test(all_of_small_ones),
        cmocka_unit_test(counts_of_any_size),
        cmocka_unit_test(by_kind),
    };
    return cmocka_run_group_tests_name("model/histogram", tests, NULL, NULL);
}
