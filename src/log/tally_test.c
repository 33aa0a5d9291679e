/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums: of few and of many kinds, exclusive and shared, by one thread and by four, and what is kept beside them. */
#include <pthread.h>

#include "log/log_test.h"

static void counts_totals_and_largest(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object exclusive = test_channel(log, "exclusive");
    nt_object shared = test_object(log, "shared", (nt_object){ 0 }, NT_SHARED);
    uint64_t total = 0;
    for (uint64_t i = 1; i <= 1000; i++) {
        nt_time before = nt_now();
        nt_object_count(exclusive, NT_WRITE, i * 5 % 1001);
        nt_object_count(shared, NT_WRITE, i * 5 % 1001);
        total += i * 5 % 1001;
        const struct nt_layout_tally *tally = view_tally(&view, view_object(&view, exclusive), NT_WRITE);
        assert_true(tally->last >= before && tally->last <= nt_now());
    }
    assert_sum(&view, exclusive, NT_WRITE, 1000, total);
    assert_sum(&view, shared, NT_WRITE, 1000, total);
    assert_int_equal(view_tally(&view, view_object(&view, exclusive), NT_WRITE)->max, 1000);
    assert_int_equal(view_tally(&view, view_object(&view, shared), NT_WRITE)->max, 1000);
    view_close(&view);
    nt_log_close(log);
}

static void totals_wrap(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        count_times(object, NT_READ, UINT64_MAX, 3);
        count_times(object, NT_READ, 10, 1);
        assert_sum(&view, object, NT_READ, 4, 7);
    }
    view_close(&view);
    nt_log_close(log);
}

/* Three kinds lie in the entry, the others in blocks of four. */
static void any_number_of_kinds(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        for (uint32_t turn = 0; turn < 3; turn++)
            for (nt_kind kind = 1; kind < NT_LAYOUT_CONTINUATION; kind++)
                nt_object_count(object, kind, kind + turn);
        for (nt_kind kind = 1; kind < NT_LAYOUT_CONTINUATION; kind++) {
            /* making the object was an `open` */
            assert_sum(&view, object, kind, kind == NT_OPEN ? 4 : 3, kind * 3 + 3);
            struct nt_layout_tally tally;
            assert_int_equal(nt_object_tally(object, kind, &tally), 0);
            assert_int_equal(tally.sum.total, kind * 3 + 3);
            assert_int_equal(tally.max, kind + 2);
        }
    }
    view_close(&view);
    nt_log_close(log);
}

static void what_is_no_kind_is_ignored(void **state)
{
    (void)state;
    static const nt_kind bad[] = { NT_KIND_NONE, 255, 256, 257, 65536 + NT_WRITE, UINT32_MAX };
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    const struct nt_layout_ring *ring = NULL;
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        ring = view_ring(&view, 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            volatile nt_kind kind = bad[i]; /* not known when compiled */
            nt_object_count(object, kind, 7);
            nt_object_count_at(object, kind, 7, 1);
            nt_object_record(object, kind, 7, NULL, 0);
        }
        nt_object_count(object, NT_WRITE, 1);
        assert_sum(&view, object, NT_WRITE, 1, 1);
        const struct nt_layout_object *entry = view_object(&view, object);
        for (int i = 0; i < 3; i++)
            assert_int_equal(entry->tally[i].sum.count, entry->tally_kind[i] ? 1 : 0);
        assert_int_equal(entry->blocks, 0);
    }
    /* open, write; open, write; then nothing */
    for (uint64_t slot = 1; slot <= 4; slot++)
        assert_int_equal(record_kind(view_record(&view, ring, nth(slot))), slot % 2 ? NT_OPEN : NT_WRITE);
    assert_false(view_written(&view, ring, nth(5)));
    view_close(&view);
    nt_log_close(log);
}

/* A time that was given is kept, masked or not; none is taken for what is masked. */
static void times(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        nt_object_count_at(object, NT_WRITE, 1, 12345);
        const struct nt_layout_tally *tally = view_tally(&view, view_object(&view, object), NT_WRITE);
        assert_int_equal(tally->last, 12345);
        nt_object_mask_set(object, 0);
        nt_object_count_at(object, NT_WRITE, 1, 23456);
        assert_int_equal(tally->last, 23456);
        nt_object_count(object, NT_WRITE, 1);
        assert_int_equal(tally->last, 23456);
        assert_int_equal(tally->sum.count, 3);
    }
    view_close(&view);
    nt_log_close(log);
}

static void nothing_counted_is_no_tally(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x");
    struct nt_layout_tally tally = { .max = 77 };
    assert_int_equal(nt_object_tally(object, NT_WRITE, &tally), -ENOENT);
    assert_int_equal(nt_object_tally((nt_object){ 0 }, NT_WRITE, &tally), -ENOENT);
    assert_int_equal(tally.max, 77);
    nt_log_close(log);
}

/* ---- four threads ---- */

enum { THREADS = 4, TURNS = 50000 };

struct crowd {
    nt_object object;
    const struct nt_layout_tally *first;
    uint32_t number;
    bool bad;
};

/* Sums that were seen are never torn: the total is the count's, for every value is 3. */
static void *crowd_run(void *arg)
{
    struct crowd *crowd = arg;
    for (uint32_t i = 0; i < TURNS; i++) {
        nt_object_count(crowd->object, NT_WRITE, 3);
        nt_object_count(crowd->object, NT_READ, i);
        nt_object_count(crowd->object, NT_ERROR + crowd->number % 2, crowd->number);
        struct nt_layout_tally tally;
        if (i % 16 == 0 && (nt_object_tally(crowd->object, NT_WRITE, &tally) || tally.sum.total != 3 * tally.sum.count))
            crowd->bad = true;
    }
    return NULL;
}

static void four_threads_count_exactly(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "shared", (nt_object){ 0 }, NT_SHARED);
    pthread_t threads[THREADS];
    struct crowd crowds[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){ .object = object, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowds[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(crowds[i].bad);
    }
    assert_sum(&view, object, NT_WRITE, THREADS * TURNS, 3 * THREADS * TURNS);
    assert_sum(&view, object, NT_READ, THREADS * TURNS, (uint64_t)THREADS * TURNS * (TURNS - 1) / 2);
    assert_sum(&view, object, NT_ERROR, 2 * TURNS, 2 * TURNS);
    assert_sum(&view, object, NT_QUEUE, 2 * TURNS, 4 * TURNS);
    assert_int_equal(view_tally(&view, view_object(&view, object), NT_READ)->max, TURNS - 1);
    view_close(&view);
    nt_log_close(log);
}

/* All first counts of many kinds at once: no kind gets two tallies. */
static void *kinds_run(void *arg)
{
    const struct crowd *crowd = arg;
    for (nt_kind kind = 1; kind < NT_LAYOUT_CONTINUATION; kind++)
        nt_object_count(crowd->object, kind, 1);
    return NULL;
}

static void four_threads_make_each_tally_once(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    for (int turn = 0; turn < 20; turn++) {
        nt_object object = test_object(log, "shared", (nt_object){ 0 }, NT_SHARED);
        struct crowd crowd = { .object = object };
        pthread_t threads[THREADS];
        for (uint32_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, kinds_run, &crowd), 0);
        for (uint32_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (nt_kind kind = 1; kind < NT_LAYOUT_CONTINUATION; kind++)
            assert_sum(&view, object, kind, kind == NT_OPEN ? THREADS + 1 : THREADS, THREADS);
    }
    view_close(&view);
    nt_log_close(log);
}

static void no_room_for_a_tally_is_counted(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    count_times(object, NT_WRITE, 2, 5);
    while (log_block_new(&log->map, 4))
        ;
    for (nt_kind kind = 1; kind < 60; kind++)
        nt_object_count(object, kind, 1);
    assert_int_equal(view.live->refused_tallies, 59 - 3);
    assert_sum(&view, object, NT_WRITE, 6, 11);
    view_close(&view);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(counts_totals_and_largest),
        log_test(totals_wrap),
        log_test(any_number_of_kinds),
        log_test(what_is_no_kind_is_ignored),
        log_test(times),
        log_test(nothing_counted_is_no_tally),
        log_test(four_threads_count_exactly),
        log_test(four_threads_make_each_tally_once),
        log_test(no_room_for_a_tally_is_counted),
    };
    return cmocka_run_group_tests_name("log/tally", tests, NULL, NULL);
}
