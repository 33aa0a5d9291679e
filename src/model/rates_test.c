/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates from snapshots, what is forgotten, and which rows a view has in which order. */
#include "model/rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"

#define SECOND UINT64_C(1000000000)

enum { CHANNELS = 3 };

static struct nt_rates *rates;
static uint64_t counts[CHANNELS]; /* of reads of 10 bytes; 0: the channel is not there */

static int begin(void **state)
{
    (void)state;
    memset(counts, 0, sizeof counts);
    return nt_rates_new(&rates);
}

static int end(void **state)
{
    (void)state;
    nt_rates_free(rates);
    return 0;
}

static const char *const names[CHANNELS] = { "alpha", "beta", "gamma" };

static void take(uint64_t now)
{
    struct nt_model model = { 0 };
    struct nt_source_program program = feed_program(4, "n", "p", 7);
    struct nt_source_object root = feed_object(4, 0, 0, "p");
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_int_equal(nt_model_add_object(&model, &root), 0);
    for (uint32_t i = 0; i < CHANNELS; i++) {
        const struct nt_source_tally sums[] = { { NT_MODEL_KIND_READ, counts[i], 10 * counts[i], 10, 1 },
                                                { NT_MODEL_KIND_OPEN, 1, 0, 0, 1 } };
        struct nt_source_object channel = feed_object(4, i + 1, 0, names[i]);
        channel.tallies = sums;
        channel.tally_count = 2;
        if (counts[i] > 0)
            assert_int_equal(nt_model_add_object(&model, &channel), 0);
    }
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(nt_rates_take(rates, &model, now), 0);
    assert_int_equal(model.program_count, 0);
}

/* The channels that are shown, by their first letters; upper case: with a rate. */
static void assert_rows(const struct nt_rate_view *view, const char *expected)
{
    const struct nt_rate_row *rows;
    char shown[16] = "";
    size_t count, size = 0;
    assert_int_equal(nt_rates_rows(rates, view, &rows, &count), 0);
    for (size_t i = 0; i < count && size + 1 < sizeof shown; i++) {
        const struct nt_model *model = nt_rates_model(rates);
        char letter = rows[i].object == NT_MODEL_NONE ? '/' : model->objects[rows[i].object].told.name.data[0];
        shown[size++] = rows[i].count > 0 ? (char)(letter - 'a' + 'A') : letter;
    }
    assert_string_equal(shown, expected);
}

static double rate_of(const char *name)
{
    const struct nt_rate_view view = { .filter = name };
    const struct nt_rate_row *rows;
    size_t count;
    assert_int_equal(nt_rates_rows(rates, &view, &rows, &count), 0);
    assert_int_equal(count, 1);
    assert_true(rows->total >= rows->count * 10 - 0.001 && rows->total <= rows->count * 10 + 0.001);
    return rows->count;
}

static void assert_near(double rate, double expected)
{
    if (rate < expected - 0.001 || rate > expected + 0.001)
        fail_msg("%f is not %f", rate, expected);
}

static void rates_of_seconds(void **state)
{
    (void)state;
    counts[0] = 100;
    take(SECOND);
    assert_near(rate_of("alpha"), 0); /* since when is not known */
    counts[0] = 150;
    take(2 * SECOND);
    assert_near(rate_of("alpha"), 50);
    counts[0] = 170;
    take(6 * SECOND);
    assert_near(rate_of("alpha"), 5);
    take(7 * SECOND);
    assert_near(rate_of("alpha"), 0);
    assert_near(nt_rates_sums(rates).count, 0);
}

/* Shorter ones count by their share of a second. */
static void rates_follow(void **state)
{
    (void)state;
    counts[0] = 100;
    take(SECOND);
    counts[0] = 110;
    take(SECOND + SECOND / 10);
    assert_near(rate_of("alpha"), 10);
    counts[0] = 120;
    take(SECOND + 2 * SECOND / 10);
    assert_near(rate_of("alpha"), 19);
    assert_near(nt_rates_sums(rates).count, 19);
    assert_near(nt_rates_sums(rates).bytes, 190);
    take(SECOND + 2 * SECOND / 10); /* no time has passed */
    assert_near(rate_of("alpha"), 19);
}

/* One that is new counted all of it since; one that is gone and comes back is new. */
static void coming_and_going(void **state)
{
    (void)state;
    counts[0] = 100;
    take(SECOND);
    counts[1] = 30;
    take(2 * SECOND);
    assert_near(rate_of("beta"), 30);
    counts[1] = 0;
    take(3 * SECOND);
    counts[1] = 30;
    take(4 * SECOND);
    assert_near(rate_of("beta"), 30);
    assert_int_equal(nt_rates_sums(rates).objects, 3);
    assert_int_equal(nt_rates_sums(rates).alive, 1);
}

static void orders(void **state)
{
    (void)state;
    counts[0] = 10;
    counts[1] = 30;
    counts[2] = 20;
    take(SECOND);
    struct nt_rate_view view = { .sort = NT_RATE_COUNT };
    assert_rows(&view, "bga");
    view.reverse = true;
    assert_rows(&view, "agb");
    view.sort = NT_RATE_OBJECT;
    assert_rows(&view, "gba");
    view.reverse = false;
    assert_rows(&view, "abg");
    view.sort = NT_RATE_KIND; /* all alike: the order of the tree */
    assert_rows(&view, "abg");
    view.sort = NT_RATE_COUNT_RATE;
    counts[2] = 25;
    take(2 * SECOND);
    assert_rows(&view, "Gab");
    view.busy = true;
    assert_rows(&view, "G");
}

static void filters_and_trees(void **state)
{
    (void)state;
    counts[0] = 10;
    counts[1] = 30;
    take(SECOND);
    struct nt_rate_view view = { .sort = NT_RATE_COUNT, .filter = "" };
    assert_rows(&view, "ba");
    view.filter = "ALPH";
    assert_rows(&view, "a");
    view.filter = "p/b";
    assert_rows(&view, "b");
    view.filter = "rea"; /* a kind */
    assert_rows(&view, "ba");
    view.filter = "open"; /* its rows are not shown */
    assert_rows(&view, "");
    view.filter = NULL;
    view.tree = true;
    assert_rows(&view, "/ab");
    view.filter = "beta";
    assert_rows(&view, "b");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rates_of_seconds), TEST(rates_follow), TEST(coming_and_going), TEST(orders), TEST(filters_and_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
