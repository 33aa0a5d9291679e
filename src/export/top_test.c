/* SPDX-License-Identifier: BSD-3-Clause */
/* A view of rates as lines: wide, narrow, as a tree, with loss, histograms, and on a plain terminal. */
#include "export/top.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"

static struct nt_rates *rates;
static struct nt_rate_view view;

static void take(bool loss, bool histogram)
{
    static const struct nt_source_bucket buckets[] = { { 1, 1, 1 }, { 2, 3, 8 }, { 4, 7, 4 } };
    static const struct nt_source_histogram told = { NT_MODEL_KIND_READ, buckets, 3 };
    static const struct nt_source_rare rare = { .histograms = &told, .histogram_count = 1 };
    static const struct nt_source_tally sums[] = { { NT_MODEL_KIND_READ, 13, 123456, 70000, UINT64_C(2000000000) },
                                                   { NT_MODEL_KIND_WAIT, 2, 3000, 2000, 0 } };
    struct nt_model model = { 0 };
    struct nt_source_program program = feed_program(4, "n", "p", 7);
    struct nt_source_object root = feed_object(4, 0, 0, "p"), channel = feed_object(4, 1, 0, "\xc3\xa9t\xc3\xa9");
    program.overwritten = loss ? 5 : 0;
    channel.tallies = sums;
    channel.tally_count = 2;
    channel.rare = histogram ? &rare : NULL;
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_int_equal(nt_model_add_object(&model, &root), 0);
    assert_int_equal(nt_model_add_object(&model, &channel), 0);
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(nt_rates_new(&rates), 0);
    assert_int_equal(nt_rates_take(rates, &model, 1), 0);
    view = (struct nt_rate_view){ .sort = NT_RATE_TOTAL };
}

static void assert_shown(size_t width, bool plain, const char *expected)
{
    struct nt_export_top top = {
        .rates = rates, .view = &view, .now = UINT64_C(5500000000), .width = width, .plain = plain
    };
    struct nt_buffer out = { 0 };
    size_t lines = 0;
    assert_int_equal(nt_rates_rows(rates, &view, &top.rows, &top.all), 0);
    top.count = top.all;
    nt_export_top(&top, &out);
    nt_buffer_byte(&out, '\0');
    assert_int_equal(out.error, 0);
    assert_string_equal(out.data, expected);
    for (const char *at = out.data; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, nt_export_top_lines(&top) + top.count);
    nt_buffer_fini(&out);
    nt_rates_free(rates);
}

static void wide(void **state)
{
    (void)state;
    take(true, false);
    assert_shown(
        0, false,
        "ntscope 1970-01-01T00:00:05Z  programs 1, alive 1  objects open 2\n"
        "0 events/s  0B/s read and written  rows 1-2 of 2\n"
        "lost: 5 overwritten, 0 dropped; totals stay exact\n"
        " EVENTS/S   VALUE/S        COUNT    TOTALv      MEAN       MAX   LAST KIND        OBJECT\n"
        "        0        0B           13     123kB    9.50kB    70.0kB   3.5s read        n/p/\xc3\xa9t\xc3\xa9\n"
        "        0       0ns            2    3.00us    1.50us    2.00us        wait        n/p/\xc3\xa9t\xc3\xa9\n");
}

static void narrow_and_plain(void **state)
{
    (void)state;
    take(false, false);
    view.filter = "read";
    assert_shown(60, true,
                 "ntscope 1970-01-01T00:00:05Z  programs 1, alive 1  objects o\n"
                 "0 events/s  0B/s read and written  rows 1-1 of 1  filter rea\n"
                 " EVENTS/S   VALUE/S        COUNT    TOTALv KIND        OBJEC\n"
                 "        0        0B           13     123kB read        ..?t?\n");
}

static void trees(void **state)
{
    (void)state;
    take(false, true);
    view.tree = true;
    assert_shown(
        100, false,
        "ntscope 1970-01-01T00:00:05Z  programs 1, alive 1  objects open 2\n"
        "0 events/s  0B/s read and written  rows 1-3 of 3\n"
        " EVENTS/S   VALUE/S        COUNT     TOTAL   LAST KIND        VALUES   OBJECT\n"
        "                                                                       n/p  running\n"
        "        0        0B           13     123kB   3.5s read        \xe2\x96\x81\xe2\x96\x88\xe2\x96\x84        "
        "\xc3\xa9t\xc3\xa9\n"
        "        0       0ns            2    3.00us        wait\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide),
        cmocka_unit_test(narrow_and_plain),
        cmocka_unit_test(trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
