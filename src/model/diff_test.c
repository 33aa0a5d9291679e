/* SPDX-License-Identifier: BSD-3-Clause */
/* What had been counted at a moment, by the events around it; and what changed between two. */
#include "model/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"

/* ---- Moments ---- */

static struct nt_event event_at(uint64_t time, uint64_t count)
{
    return (struct nt_event){ .time = time,
                              .count = count,
                              .value = 10,
                              .total = 10 * count,
                              .merged = 1,
                              .program = 4,
                              .object = 1,
                              .generation = 1,
                              .kind = NT_MODEL_KIND_READ };
}

/* A program with one channel that has that tally. */
static void feed(struct nt_model *model, uint32_t pid, const char *name, struct nt_source_tally tally)
{
    struct nt_source_program program = feed_program(4, "n", "p", pid);
    struct nt_source_object root = feed_object(4, 0, 0, "p"), channel = feed_object(4, 1, 0, name);
    program.id = pid;
    channel.tallies = &tally;
    channel.tally_count = tally.count > 0;
    nt_model_source(model);
    assert_int_equal(nt_model_add_program(model, &program), 0);
    assert_int_equal(nt_model_add_object(model, &root), 0);
    assert_int_equal(nt_model_add_object(model, &channel), 0);
    assert_int_equal(nt_model_link(model), 0);
}

static void assert_sum(uint64_t time, const uint64_t *events, size_t count, uint64_t expected,
                       enum nt_model_bound bound)
{
    struct nt_model model = { 0 };
    struct nt_moment moment = { .time = time };
    const struct nt_source_tally tally = { NT_MODEL_KIND_READ, 9, 90, 10, 9000 };
    feed(&model, 7, "orders", tally);
    for (size_t i = 0; i < count; i++) {
        struct nt_event event = event_at(1000 * events[i], events[i]);
        assert_int_equal(nt_moment_event(&moment, &event), 0);
    }
    struct nt_moment_sum sum = nt_moment_sum(&moment, &model, &model.objects[1], &tally);
    assert_int_equal(sum.count, expected);
    assert_int_equal(sum.total, 10 * expected);
    assert_int_equal(sum.bound, bound);
    nt_moment_fini(&moment);
    nt_model_fini(&model);
}

static void moments(void **state)
{
    (void)state;
    const uint64_t all[] = { 9, 1, 2, 3, 4, 5, 6, 7, 8 }, some[] = { 3, 4, 7 }, last[] = { 9 }, one[] = { 2 };
    assert_sum(5500, all, 9, 5, NT_MODEL_EXACT);
    assert_sum(5000, all, 9, 5, NT_MODEL_EXACT);
    assert_sum(999, all, 9, 0, NT_MODEL_EXACT);
    assert_sum(99999, all, 9, 9, NT_MODEL_EXACT);
    assert_sum(NT_MOMENT_END, NULL, 0, 9, NT_MODEL_EXACT);
    assert_sum(3500, some, 3, 3, NT_MODEL_EXACT);
    assert_sum(5500, some, 3, 4, NT_MODEL_LEAST); /* or 5, or 6 */
    assert_sum(7500, some, 3, 7, NT_MODEL_LEAST);
    assert_sum(2500, some, 3, 2, NT_MODEL_MOST);
    assert_sum(9500, some, 3, 9, NT_MODEL_EXACT); /* the tally is older */
    assert_sum(9000, last, 1, 9, NT_MODEL_EXACT);
    assert_sum(5000, last, 1, 8, NT_MODEL_MOST);
    assert_sum(5000, one, 1, 2, NT_MODEL_LEAST);
    assert_sum(5000, NULL, 0, 9, NT_MODEL_MOST);
    assert_sum(9000, NULL, 0, 9, NT_MODEL_EXACT);
}

static void events_that_stand_for_several(void **state)
{
    (void)state;
    struct nt_moment moment = { .time = 5000 };
    struct nt_model model = { 0 };
    struct nt_source_tally tally = { NT_MODEL_KIND_READ, 9, 90, 10, 9000 };
    struct nt_event before = event_at(4000, 4), behind = event_at(9000, 9);
    before.merged = 4;
    behind.merged = 5;
    behind.value = 50;
    feed(&model, 7, "orders", tally);
    assert_int_equal(nt_moment_event(&moment, &behind), 0);
    assert_int_equal(nt_moment_event(&moment, &before), 0);
    struct nt_moment_sum sum = nt_moment_sum(&moment, &model, &model.objects[1], &tally);
    assert_int_equal(sum.count, 4);
    assert_int_equal(sum.bound, NT_MODEL_EXACT);
    nt_moment_fini(&moment);
    nt_model_fini(&model);
}

/* ---- Differences ---- */

static const struct nt_moment at_end = { .time = NT_MOMENT_END };

static void assert_row(const struct nt_diff_row *row, const char *path, uint64_t before, uint64_t after)
{
    if (row->path.size != strlen(path) || memcmp(row->path.data, path, row->path.size) != 0)
        fail_msg("'%.*s' is not '%s'", (int)row->path.size, row->path.data, path);
    assert_int_equal(row->kind.size, 4);
    assert_int_equal(row->sides[0].there, before > 0);
    assert_int_equal(row->sides[1].there, after > 0);
    assert_int_equal(row->sides[0].count, before);
    assert_int_equal(row->sides[1].count, after);
}

static struct nt_source_tally reads(uint64_t count, uint64_t total)
{
    return (struct nt_source_tally){ NT_MODEL_KIND_READ, count, total, 10, 2000000000 + count };
}

static void compare(uint32_t first_pid, uint32_t second_pid, const char *second_name, struct nt_diff **ret_diff)
{
    struct nt_model first = { 0 }, second = { 0 };
    feed(&first, first_pid, "a/b", reads(5, 500));
    feed(&second, second_pid, second_name, reads(7, 400));
    assert_int_equal(nt_diff_new(ret_diff), 0);
    assert_int_equal(nt_diff_add(*ret_diff, 0, &first, &at_end, &second), 0);
    assert_int_equal(nt_diff_add(*ret_diff, 1, &second, &at_end, &first), 0);
    assert_int_equal(nt_diff_time(&second), 2000000007);
    nt_model_fini(&first);
    nt_model_fini(&second);
}

static void same_log(void **state)
{
    (void)state;
    struct nt_diff *diff;
    size_t count;
    compare(7, 7, "a/b", &diff);
    const struct nt_diff_row *rows = nt_diff_rows(diff, NT_DIFF_BY_COUNT, false, &count);
    assert_int_equal(count, 1);
    assert_row(rows, "n/p.7/a\\/b", 5, 7);
    nt_diff_free(diff);
}

static void another_run(void **state)
{
    (void)state;
    struct nt_diff *diff;
    size_t count;
    compare(7, 8, "a/b", &diff);
    const struct nt_diff_row *rows = nt_diff_rows(diff, NT_DIFF_BY_COUNT, false, &count);
    assert_int_equal(count, 1);
    assert_row(rows, "n/p/a\\/b", 5, 7);
    nt_diff_free(diff);
}

static void new_and_gone(void **state)
{
    (void)state;
    struct nt_diff *diff;
    size_t count;
    compare(7, 7, "c", &diff);
    const struct nt_diff_row *rows = nt_diff_rows(diff, NT_DIFF_BY_COUNT, false, &count);
    assert_int_equal(count, 2);
    assert_row(&rows[0], "n/p.7/c", 0, 7);
    assert_row(&rows[1], "n/p.7/a\\/b", 5, 0);
    rows = nt_diff_rows(diff, NT_DIFF_BY_TOTAL, false, &count);
    assert_int_equal(count, 2);
    assert_row(&rows[0], "n/p.7/a\\/b", 5, 0);
    nt_diff_free(diff);
}

static void nothing_new(void **state)
{
    (void)state;
    struct nt_diff *diff;
    struct nt_model model = { 0 };
    size_t count;
    feed(&model, 7, "a", reads(5, 500));
    for (int all = 0; all < 2; all++) {
        assert_int_equal(nt_diff_new(&diff), 0);
        assert_int_equal(nt_diff_add(diff, 0, &model, &at_end, &model), 0);
        assert_int_equal(nt_diff_add(diff, 1, &model, &at_end, &model), 0);
        (void)nt_diff_rows(diff, NT_DIFF_BY_COUNT, all, &count);
        assert_int_equal(count, all);
        nt_diff_free(diff);
    }
    nt_model_fini(&model);
}

/* Lives of one path are one row; those that a parent took up another. */
static void several_lives(void **state)
{
    (void)state;
    struct nt_diff *diff;
    struct nt_model model = { 0 }, empty = { 0 };
    struct nt_source_program program = feed_program(4, "n", "p", 7);
    struct nt_source_object objects[] = { feed_object(4, 0, 0, "p"), feed_object(4, 1, 0, "a"),
                                          feed_object(4, 2, 0, "a") };
    const struct nt_source_tally sums[] = { reads(5, 500), reads(6, 60), reads(100, 1) };
    size_t count;
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    objects[0].gone = &sums[2];
    objects[0].gone_count = 1;
    objects[1].closed = true;
    for (int i = 0; i < 3; i++) {
        objects[i].tallies = &sums[i > 0 ? i - 1 : 0];
        objects[i].tally_count = i > 0;
        assert_int_equal(nt_model_add_object(&model, &objects[i]), 0);
    }
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(nt_diff_new(&diff), 0);
    assert_int_equal(nt_diff_add(diff, 1, &model, &at_end, &empty), 0);
    const struct nt_diff_row *rows = nt_diff_rows(diff, NT_DIFF_BY_COUNT, false, &count);
    assert_int_equal(count, 2);
    assert_row(&rows[0], "n/p", 0, 100);
    assert_true(rows[0].folded);
    assert_row(&rows[1], "n/p/a", 0, 11);
    assert_int_equal(rows[1].sides[1].total, 560);
    assert_false(rows[1].folded || rows[1].sides[1].closed);
    nt_diff_free(diff);
    nt_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments),       cmocka_unit_test(events_that_stand_for_several),
        cmocka_unit_test(same_log),      cmocka_unit_test(another_run),
        cmocka_unit_test(new_and_gone),  cmocka_unit_test(nothing_new),
        cmocka_unit_test(several_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
