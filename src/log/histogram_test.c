/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms: each value in its bucket, to the unit, by arithmetic that knows no table; kept from the first count on,
   by one thread or by many, in every way of counting; and what becomes of them in successors, children and reused
   slots. */
#include <errno.h>
#include <pthread.h>

#include "log/log_test.h"

/* ---- Which bucket, by whole numbers ---- */

struct large { /* 512 bits, lowest first */
    uint64_t words[8];
};

static struct large product(const struct large *a, const struct large *b)
{
    struct large result = { { 0 } };
    for (int i = 0; i < 8; i++) {
        nt_u128_ carry = 0;
        for (int j = 0; i + j < 8; j++) {
            carry += (nt_u128_)a->words[i] * b->words[j] + result.words[i + j];
            result.words[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return result;
}

/* The n of the least power 2^(n / 8) that is not below the value: the n of the least 2^n not below its 8th power. */
static uint32_t least_power(uint64_t value)
{
    struct large power = { { value } };
    for (int i = 0; i < 3; i++)
        power = product(&power, &power);
    uint32_t bits = 0, ones = 0;
    for (uint32_t i = 0; i < 8; i++) {
        ones += (uint32_t)__builtin_popcountll(power.words[i]);
        if (power.words[i])
            bits = 64 * i + 64 - (uint32_t)__builtin_clzll(power.words[i]);
    }
    return ones == 1 ? bits - 1 : bits;
}

static void assert_bucket(uint64_t value)
{
    uint32_t bucket = nt_layout_bucket_(value), wanted = value ? least_power(value) + 1 : 0;
    if (bucket != wanted)
        fail_msg("%lu is in bucket %u, not %u", value, bucket, wanted);
    assert_true(value <= nt_layout_bucket_high_(bucket));
    assert_true(!bucket || value > nt_layout_bucket_high_(bucket - 1));
}

static void every_boundary_is_exact(void **state)
{
    (void)state;
    assert_int_equal(nt_layout_bucket_(0), 0);
    assert_int_equal(nt_layout_bucket_(1), 1);
    assert_int_equal(nt_layout_bucket_(2), 9);
    assert_int_equal(nt_layout_bucket_(UINT64_MAX), NT_LAYOUT_BUCKETS - 1);
    assert_int_equal(nt_layout_bucket_high_(NT_LAYOUT_BUCKETS - 1), UINT64_MAX);
    for (uint32_t bucket = 0; bucket < NT_LAYOUT_BUCKETS; bucket++) {
        uint64_t high = nt_layout_bucket_high_(bucket);
        for (uint64_t step = 0; step < 4; step++) {
            assert_bucket(high + step); /* at the last one it wraps to 0, 1, 2 */
            assert_bucket(high - step);
        }
    }
}

static void powers_of_two_close_their_buckets(void **state)
{
    (void)state;
    for (uint32_t power = 0; power < 64; power++) {
        uint64_t value = UINT64_C(1) << power;
        assert_int_equal(nt_layout_bucket_(value), 8 * power + 1);
        assert_int_equal(nt_layout_bucket_high_(8 * power + 1), value);
        if (power > 3)
            assert_int_equal(nt_layout_bucket_(value + 1), 8 * power + 2);
        assert_bucket(value);
        assert_bucket(value + 1);
        assert_bucket(value - 1);
    }
}

static void small_and_random_values(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 100000; value++)
        assert_bucket(value);
    uint64_t random = 88172645463325252;
    for (uint32_t i = 0; i < 300000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        assert_bucket(random >> random % 64);
    }
}

/* ---- In a log ---- */

static const struct nt_layout_histogram *histogram_of(const struct view *view, nt_object object, nt_kind kind)
{
    const struct nt_layout_object *entry = view_object(view, object);
    for (uint32_t at = entry->blocks; at;) {
        const struct nt_layout_tally_block *block = view_at(view, NT_REGION_BLOCKS, at);
        for (int i = 0; i < 4; i++)
            if (block->kind[i] == kind)
                return block->histogram[i] ? view_at(view, NT_REGION_BLOCKS, block->histogram[i]) : NULL;
        at = block->next;
    }
    return NULL;
}

static uint64_t histogram_sum(const struct nt_layout_histogram *histogram)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NT_LAYOUT_BUCKETS; i++)
        sum += histogram->count[i];
    return sum;
}

static void every_way_of_counting(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
        nt_object_count(object, NT_READ, 5); /* has none, and is where it ever was */
        assert_int_equal(view_object(&view, object)->tally_kind[0], NT_READ);
        const struct nt_layout_histogram *histogram = histogram_of(&view, object, NT_WRITE);
        assert_non_null(histogram);
        assert_int_equal(histogram->owner, handle_slot(object));
        assert_int_equal(histogram->kind, NT_WRITE);
        assert_int_equal(histogram->scale, 3);
        assert_int_equal(histogram_sum(histogram), 0);
        nt_object_count(object, NT_WRITE, 0);
        nt_object_count_at(object, NT_WRITE, 1000, 7);
        nt_object_count_with(object, NT_WRITE, UINT64_MAX, 9);
        nt_object_count_in(object, 77, NT_WRITE, 1000);
        nt_object_record(object, NT_WRITE, 1, NULL, 0);
        nt_object_mask_set(object, 0);
        nt_object_count(object, NT_WRITE, 2);
        assert_sum(&view, object, NT_WRITE, 6, 2002);
        assert_int_equal(view_object(&view, object)->tally_kind[1], 0);
        assert_int_equal(histogram_sum(histogram), 6);
        assert_int_equal(histogram->count[0], 1);
        assert_int_equal(histogram->count[1], 1);
        assert_int_equal(histogram->count[9], 1);
        assert_int_equal(histogram->count[nt_layout_bucket_(1000)], 2);
        assert_int_equal(histogram->count[NT_LAYOUT_BUCKETS - 1], 1);
    }
    view_close(&view);
    nt_log_close(log);
}

static void only_before_the_first_count(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x"), closed = test_channel(log, "y");
    struct nt_layout_tally tally;
    nt_object_count(object, NT_READ, 1);
    assert_int_equal(nt_object_histogram(object, NT_READ), -EBUSY);
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
    assert_int_equal(nt_object_tally(object, NT_WRITE, &tally), -ENOENT); /* nothing was counted */
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
    nt_object_count(object, NT_WRITE, 1);
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0); /* is kept already */
    for (nt_kind kind = 200; kind < 210; kind++)                /* into blocks */
        nt_object_count(object, kind, 1);
    assert_int_equal(nt_object_histogram(object, 209), -EBUSY);
    static const nt_kind bad[] = { NT_KIND_NONE, NT_OPEN, NT_CLOSE, NT_EPOCH, 255, 256 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(nt_object_histogram(object, bad[i]), -EINVAL);
    assert_int_equal(nt_object_histogram((nt_object){ 0 }, NT_PING), 0);
    nt_object_close(closed);
    assert_int_equal(nt_object_histogram(closed, NT_PING), -ENOENT);
    nt_log_close(log);
}

/* A base is still the first thing to be said, and what was asked for without a count leaves no trace in sums. */
static void asked_for_and_never_counted(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
    assert_int_equal(nt_object_histogram(object, NT_READ), 0);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 5, 50), 0);
    nt_object successor = nt_object_succeed(object);
    const struct nt_layout_extra *extra = view_extra(&view, view_object(&view, successor), NT_WRITE);
    assert_int_equal(extra->lineage.count, 5);
    assert_null(view_extra(&view, view_object(&view, successor), NT_READ));
    assert_true(log_fold(&log->map, handle_slot(object)));
    assert_null(view_extra(&view, view_entry(&view, 0), NT_WRITE));
    view_close(&view);
    nt_log_close(log);
}

static void any_number_of_kinds(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    for (nt_kind kind = 64; kind < 164; kind++)
        assert_int_equal(nt_object_histogram(object, kind), 0);
    for (nt_kind kind = 64; kind < 164; kind++)
        count_times(object, kind, kind, kind);
    for (nt_kind kind = 64; kind < 164; kind++) {
        const struct nt_layout_histogram *histogram = histogram_of(&view, object, kind);
        assert_int_equal(histogram->count[nt_layout_bucket_(kind)], kind);
        assert_int_equal(histogram_sum(histogram), kind);
    }
    view_close(&view);
    nt_log_close(log);
}

enum { THREADS = 4, TURNS = 20000 };

static void *crowd_run(void *arg)
{
    const nt_object *object = arg;
    for (uint64_t i = 0; i < TURNS; i++)
        nt_object_count(*object, NT_WRITE, i % 64);
    return NULL;
}

static void four_threads_lose_nothing(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    pthread_t threads[THREADS];
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &object), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    uint64_t wanted[NT_LAYOUT_BUCKETS] = { 0 };
    for (uint64_t i = 0; i < TURNS; i++)
        wanted[nt_layout_bucket_(i % 64)] += THREADS;
    assert_memory_equal(histogram_of(&view, object, NT_WRITE)->count, wanted, sizeof(wanted));
    view_close(&view);
    nt_log_close(log);
}

static void a_successor_keeps_its_own(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object before = test_channel(log, "x");
    assert_int_equal(nt_object_histogram(before, NT_WRITE), 0);
    count_times(before, NT_WRITE, 8, 3);
    nt_object object = nt_object_succeed(before);
    nt_object_count(object, NT_WRITE, 8);
    nt_object_count(object, NT_READ, 8);
    assert_int_equal(histogram_of(&view, object, NT_WRITE)->count[nt_layout_bucket_(8)], 1);
    assert_int_equal(histogram_of(&view, before, NT_WRITE)->count[nt_layout_bucket_(8)], 3);
    assert_null(histogram_of(&view, object, NT_READ));
    view_close(&view);
    nt_log_close(log);
}

/* The room of a histogram is used again, zeroed. */
static void room_comes_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    uint32_t used = 0;
    for (int turn = 0; turn < 50; turn++) {
        nt_object object = test_channel(log, "x");
        assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
        assert_int_equal(nt_object_histogram(object, NT_READ), 0);
        assert_int_equal(histogram_sum(histogram_of(&view, object, NT_WRITE)), 0);
        for (uint64_t i = 0; i < 64; i++)
            nt_object_count(object, NT_WRITE, UINT64_C(1) << i);
        assert_int_equal(histogram_sum(histogram_of(&view, object, NT_WRITE)), 64);
        nt_object_close(object);
        assert_true(log_fold(&log->map, handle_slot(object)));
        used = turn == 1 ? view.live->blocks : used; /* the parent's sums are there from the first fold on */
    }
    assert_int_equal(view.live->blocks, used);
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

static void a_child_keeps_its_own(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_histogram(object, NT_WRITE), 0);
    count_times(object, NT_WRITE, 8, 3);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(object, NT_WRITE, 9);
        struct view view = view_open(nt_log_path(log));
        check(view.header->flags & NT_HEADER_FORKED);
        const struct nt_layout_histogram *histogram = histogram_of(&view, object, NT_WRITE);
        check(histogram && histogram->count[nt_layout_bucket_(9)] == 1 && histogram_sum(histogram) == 1);
        exit(0);
    }
    assert_child_is_well(child);
    struct view view = view_open(nt_log_path(log));
    assert_int_equal(histogram_sum(histogram_of(&view, object, NT_WRITE)), 3);
    view_close(&view);
    nt_log_close(log);
}

/* Without room there is none, and counting goes on. */
static void no_room_for_a_histogram(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    uint32_t made = 0;
    nt_kind kind = 64;
    for (; kind < 250 && nt_object_histogram(object, kind) == 0; kind++)
        made++;
    assert_true(made > 20 && kind < 250);
    assert_int_equal(nt_object_histogram(object, kind), -ENOSPC);
    assert_true(view.live->backed <= 524288);
    nt_object_count(object, kind, 7); /* in the entry */
    assert_sum(&view, object, kind, 1, 7);
    assert_int_equal(view.live->refused_tallies, 0);
    nt_object_close(object);
    assert_true(log_fold(&log->map, handle_slot(object)));
    view_close(&view);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_boundary_is_exact),
        cmocka_unit_test(powers_of_two_close_their_buckets),
        cmocka_unit_test(small_and_random_values),
        log_test(every_way_of_counting),
        log_test(only_before_the_first_count),
        log_test(asked_for_and_never_counted),
        log_test(any_number_of_kinds),
        log_test(four_threads_lose_nothing),
        log_test(a_successor_keeps_its_own),
        log_test(room_comes_back),
        log_test(a_child_keeps_its_own),
        log_test(no_room_for_a_histogram),
    };
    return cmocka_run_group_tests_name("log/histogram", tests, NULL, NULL);
}
