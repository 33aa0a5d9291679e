/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration by pairs made up here. */
#include "source/live/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define EPOCH (UINT64_C(1700000000) * SECOND)

/* A processor of 2.3 GHz that started to count at EPOCH. */
static struct nt_layout_clock_pair pair_at(uint64_t seconds)
{
    return (struct nt_layout_clock_pair){
        .ticks = seconds * UINT64_C(2300000000) + 1,
        .monotonic = seconds * SECOND,
        .realtime = EPOCH + seconds * SECOND,
    };
}

static void add(struct live_clock_domain *domain, uint64_t seconds)
{
    struct nt_layout_clock_pair pair = pair_at(seconds);
    live_clock_add(domain, &pair);
}

static void assert_near(uint64_t actual, uint64_t expected, uint64_t off)
{
    uint64_t difference = actual > expected ? actual - expected : expected - actual;
    assert_in_range(difference, 0, off);
}

static void line_through_the_ends(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    add(&domain, 500);
    add(&domain, 100);
    add(&domain, 300);
    live_clock_settle(&domain);
    static const uint64_t times[] = { 0, 1, 99, 100, 499, 500, 501, 86400, 100000000 };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        /* three years off, it is right to some nanoseconds */
        assert_near(live_clock_time(&domain.clock, pair_at(times[i]).ticks), EPOCH + times[i] * SECOND, 4);
    }
}

static void order_is_kept(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    add(&domain, 100);
    add(&domain, 101);
    live_clock_settle(&domain);
    uint64_t before = 0;
    for (uint64_t ticks = 0; ticks < UINT64_C(1) << 50; ticks = ticks * 2 + 1) {
        uint64_t now = live_clock_time(&domain.clock, ticks);
        assert_true(now >= before);
        assert_true(live_clock_time(&domain.clock, ticks + 1) >= now);
        before = now;
    }
}

static void real_time_may_step_but_not_durations(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    add(&domain, 100);
    struct nt_layout_clock_pair stepped = pair_at(200);
    stepped.realtime += 3600 * SECOND; /* somebody set the clock */
    live_clock_add(&domain, &stepped);
    live_clock_settle(&domain);
    uint64_t a = live_clock_time(&domain.clock, pair_at(110).ticks);
    uint64_t b = live_clock_time(&domain.clock, pair_at(120).ticks);
    assert_near(b - a, 10 * SECOND, 1);
    assert_near(b, EPOCH + (120 + 3600) * SECOND, 1);
}

static void one_pair_counts_nanoseconds(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    add(&domain, 100);
    live_clock_settle(&domain);
    uint64_t ticks = pair_at(100).ticks;
    assert_int_equal(live_clock_time(&domain.clock, ticks), EPOCH + 100 * SECOND);
    assert_int_equal(live_clock_time(&domain.clock, ticks + 7), EPOCH + 100 * SECOND + 7);
    assert_int_equal(live_clock_time(&domain.clock, ticks - 7), EPOCH + 100 * SECOND - 7);
    /* a second one makes it right */
    add(&domain, 101);
    live_clock_settle(&domain);
    assert_near(live_clock_time(&domain.clock, pair_at(50).ticks), EPOCH + 50 * SECOND, 1);
}

static void no_pair_at_all(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    live_clock_settle(&domain);
    assert_int_equal(live_clock_time(&domain.clock, 123), 123);
    assert_int_equal(live_clock_time_or_0(&domain.clock, 0), 0);
}

static void monotonic_ticks_are_nanoseconds(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = false };
    struct nt_layout_clock_pair pair = { .ticks = 10 * SECOND, .monotonic = 10 * SECOND, .realtime = EPOCH };
    live_clock_add(&domain, &pair);
    pair = (struct nt_layout_clock_pair){ 20 * SECOND, 20 * SECOND, EPOCH + 10 * SECOND + 50 };
    live_clock_add(&domain, &pair);
    live_clock_settle(&domain);
    assert_int_equal(live_clock_time(&domain.clock, 15 * SECOND), EPOCH + 5 * SECOND + 50);
}

static void hostile_pairs(void **state)
{
    (void)state;
    static const uint64_t words[] = { 0,         1, 2, 1000, SECOND, UINT64_C(1) << 32, UINT64_MAX / 2, UINT64_MAX - 1,
                                      UINT64_MAX };
    enum { WORDS = sizeof words / sizeof *words };
    for (int i = 0; i < WORDS * WORDS * WORDS * WORDS; i++) {
        struct live_clock_domain domain = { .tsc = true };
        struct nt_layout_clock_pair one = { words[i % WORDS], words[i / WORDS % WORDS], EPOCH };
        struct nt_layout_clock_pair two = { words[i / WORDS / WORDS % WORDS], words[i / WORDS / WORDS / WORDS], 1 };
        live_clock_add(&domain, &one);
        live_clock_add(&domain, &two);
        live_clock_settle(&domain);
        assert_true(domain.clock.scale > 0 && domain.clock.scale <= INT64_C(1) << 62);
        for (int k = 0; k < WORDS; k++) {
            (void)live_clock_time(&domain.clock, words[k]);
        }
    }
}

static void stays_until_the_baseline_doubles(void **state)
{
    (void)state;
    struct live_clock_domain domain = { .tsc = true };
    add(&domain, 100);
    add(&domain, 110);
    live_clock_settle(&domain);
    struct live_clock first = domain.clock;
    add(&domain, 119);
    live_clock_settle(&domain);
    assert_memory_equal(&domain.clock, &first, sizeof first);
    add(&domain, 120);
    live_clock_settle(&domain);
    assert_memory_not_equal(&domain.clock, &first, sizeof first);
}

static void now_is_now(void **state)
{
    (void)state;
    for (int tsc = 0; tsc < 2; tsc++) {
        struct live_clock_domain domain = { .tsc = tsc != 0 };
        live_clock_add_now(&domain);
        struct timespec pause = { .tv_nsec = 20000000 };
        (void)nanosleep(&pause, NULL);
        live_clock_add_now(&domain);
        if (domain.pairs == 0) {
            continue; /* no such ticks on this machine */
        }
        live_clock_settle(&domain);
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        uint64_t expected = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
        struct live_clock_domain again = { .tsc = tsc != 0 };
        live_clock_add_now(&again);
        assert_near(live_clock_time(&domain.clock, again.newest.ticks), expected, SECOND / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_through_the_ends),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(real_time_may_step_but_not_durations),
        cmocka_unit_test(one_pair_counts_nanoseconds),
        cmocka_unit_test(no_pair_at_all),
        cmocka_unit_test(monotonic_ticks_are_nanoseconds),
        cmocka_unit_test(hostile_pairs),
        cmocka_unit_test(stays_until_the_baseline_doubles),
        cmocka_unit_test(now_is_now),
    };
    return cmocka_run_group_tests_name("source/live/clock", tests, NULL, NULL);
}
