/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says of an object once: what was counted before, in its own life, its successors' and a child's. */
#include <errno.h>

#include "log/log_test.h"

static void assert_pair(struct nt_layout_pair pair, uint64_t count, uint64_t total)
{
    assert_int_equal(pair.count, count);
    assert_int_equal(pair.total, total);
}

static const struct nt_layout_extra *extra_of(const struct view *view, nt_object object, nt_kind kind)
{
    return view_extra(view, view_object(view, object), kind);
}

static void a_base_is_kept_beside_the_counts(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        assert_int_equal(nt_object_base_set(object, NT_WRITE, 1000, UINT64_MAX), 0);
        nt_object_count(object, NT_READ, 5);
        nt_object_count(object, NT_WRITE, 7);
        assert_int_equal(nt_object_base_set(object, NT_POLL, 1, 0), 0);
        assert_sum(&view, object, NT_WRITE, 1, 7);
        const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
        assert_int_equal(extra->holds, NT_EXTRA_BASE);
        assert_pair(extra->base, 1000, UINT64_MAX);
        assert_pair(extra_of(&view, object, NT_POLL)->base, 1, 0);
        assert_null(extra_of(&view, object, NT_READ));
    }
    view_close(&view);
    nt_log_close(log);
}

static void a_base_comes_once_and_first(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x"), closed = test_channel(log, "y");
    nt_object_count(object, NT_READ, 0);
    assert_int_equal(nt_object_base_set(object, NT_READ, 1, 1), -EBUSY);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), 0);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), -EEXIST);
    nt_object_count(object, NT_WRITE, 1);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), -EBUSY);
    assert_int_equal(nt_object_base_set(object, NT_KIND_NONE, 1, 1), -EINVAL);
    assert_int_equal(nt_object_base_set(object, 255, 1, 1), -EINVAL);
    assert_int_equal(nt_object_base_set(object, NT_PING, 0, 1), -EINVAL);
    assert_int_equal(nt_object_base_set((nt_object){ 0 }, NT_PING, 1, 1), 0);
    nt_object_close(closed);
    assert_int_equal(nt_object_base_set(closed, NT_PING, 1, 1), -ENOENT);
    nt_log_close(log);
}

static void no_room_for_a_base(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    nt_object object = test_channel(log, "x");
    while (log_block_new(&log->map, 2))
        ;
    assert_int_equal(nt_object_base_set(object, NT_READ, 1, 1), -ENOSPC);
    nt_object_count(object, NT_READ, 1);
    nt_log_close(log);
}

/* Each successor's lineage has all before it: counts and bases. */
static void a_lineage_has_the_bases(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    assert_int_equal(nt_object_base_set(object, NT_READ, 7, 70), 0);
    nt_object_count(object, NT_WRITE, 1);
    object = nt_object_succeed(object);
    const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
    assert_int_equal(extra->holds, NT_EXTRA_LINEAGE);
    assert_pair(extra->lineage, 101, 1001);
    assert_pair(extra_of(&view, object, NT_READ)->lineage, 7, 70);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 10, 20), 0);
    count_times(object, NT_WRITE, 2, 2);
    object = nt_object_succeed(object);
    assert_pair(extra_of(&view, object, NT_WRITE)->lineage, 113, 1025);
    assert_pair(extra_of(&view, object, NT_READ)->lineage, 7, 70);
    view_close(&view);
    nt_log_close(log);
}

/* What is folded into a parent was counted here: no base. */
static void a_base_is_not_folded(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    count_times(object, NT_WRITE, 3, 2);
    nt_object_close(object);
    assert_true(log_fold(&log->map, handle_slot(object)));
    const struct nt_layout_extra *extra = view_extra(&view, view_entry(&view, 0), NT_WRITE);
    assert_int_equal(extra->holds, NT_EXTRA_CLOSED);
    assert_pair(extra->closed, 2, 6);
    view_close(&view);
    nt_log_close(log);
}

#define check(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

static void a_child_starts_with_base_and_lineage(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x");
    count_times(object, NT_WRITE, 2, 3);
    object = nt_object_succeed(object);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    nt_object_count(object, NT_WRITE, 5);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(object, NT_READ, 1);
        struct view view = view_open(nt_log_path(log));
        const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
        check(extra->holds == (NT_EXTRA_BASE | NT_EXTRA_LINEAGE));
        check(extra->base.count == 101 && extra->base.total == 1005);
        check(extra->lineage.count == 3 && extra->lineage.total == 6);
        check(nt_object_base_set(object, NT_WRITE, 1, 1) == -EEXIST);
        check(nt_object_base_set(object, NT_PING, 1, 1) == 0);
        nt_object_count(object, NT_WRITE, 1);
        object = nt_object_succeed(object);
        extra = extra_of(&view, object, NT_WRITE);
        check(extra->holds == NT_EXTRA_LINEAGE);
        check(extra->lineage.count == 3 + 101 + 1 && extra->lineage.total == 6 + 1005 + 1);
        exit(0);
    }
    assert_child_is_well(child);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(a_base_is_kept_beside_the_counts),
        log_test(a_base_comes_once_and_first),
        log_test(no_room_for_a_base),
        log_test(a_lineage_has_the_bases),
        log_test(a_base_is_not_folded),
        log_test(a_child_starts_with_base_and_lineage),
    };
    return cmocka_run_group_tests_name("log/note", tests, NULL, NULL);
}
