/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks that are changed by one, by several at once, and by some that die at it. The setters here keep to
   docs/format.md, independent of the library. */
#include "source/live/change.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "source/live/build.h"

#define BITS(word) ((word)&NT_LAYOUT_MASK_BITS)
#define OPENED 500
#define NOW 9000

static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

struct fixture {
    struct build build;
    struct live_map map;
    struct live_changes changes;
    struct live_change_list list;
    struct live_change_moment moment;
    struct nt_event events[64];
    size_t count;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char text[LIVE_MAP_TEXT];
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    for (uint32_t slot = 0; slot < 4; slot++) {
        (void)build_object(&fixture->build, slot, slot == 3 ? (5u << 16 | 7) | NT_LAYOUT_LOCKED : 1);
    }
    assert_int_equal(live_map_open_memory(&fixture->map, fixture->build.data, BUILD_SIZE, text), 0);
    live_changes_init(&fixture->changes, &fixture->map, 3);
    fixture->moment = (struct live_change_moment){ .ms = 1001, .time = NOW, .opened = OPENED };
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    live_changes_fini(&fixture->changes);
    live_change_list_fini(&fixture->list);
    live_map_close(&fixture->map);
    build_fini(&fixture->build);
    free(fixture);
    return 0;
}

static size_t look(struct fixture *fixture)
{
    assert_int_equal(live_changes_look(&fixture->changes, &nanoseconds, &fixture->moment, &fixture->list), 0);
    fixture->count = live_change_list_take(&fixture->list, fixture->events, 64);
    return fixture->count;
}

/* ---- A setter ---- */

static void put(struct nt_layout_change *shared, const struct nt_layout_change *change)
{
    __atomic_store_n(&shared->time, change->time, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->before, change->before, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->after, change->after, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->setter, change->setter, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->check, nt_layout_change_check(change), __ATOMIC_RELEASE);
}

static struct nt_layout_change swap(const struct build *build, uint32_t slot, uint64_t mask, uint64_t time,
                                    uint32_t setter)
{
    struct nt_layout_change change = { .time = time, .setter = setter };
    change.before = __atomic_load_n(&build->control[slot], __ATOMIC_RELAXED);
    do {
        change.after = (change.before & ~NT_LAYOUT_MASK_BITS) | mask;
    } while (!__atomic_compare_exchange_n(&build->control[slot], &change.before, change.after, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    return change;
}

static void told_to_readers(const struct build *build)
{
    __atomic_fetch_add(&build->changes->count, 1, __ATOMIC_RELEASE);
}

static void set(const struct build *build, uint32_t slot, uint64_t mask, uint64_t time, uint32_t setter)
{
    struct nt_layout_change change = swap(build, slot, mask, time, setter);
    put(build_change(build, slot), &change);
    told_to_readers(build);
}

/* ---- ---- */

static void tells_each_change_once(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    assert_false(live_changes_pending(&fixture->changes, 0));
    set(&fixture->build, 2, 6, 4000, 77);
    assert_true(live_changes_pending(&fixture->changes, 0));
    assert_int_equal(look(fixture), 1);
    const struct nt_event *event = &fixture->events[0];
    assert_int_equal(event->kind, 13);
    assert_int_equal(event->time, 4000);
    assert_int_equal(event->ticks, 4000);
    assert_int_equal(event->value, 6);
    assert_int_equal(event->argument, 0x7ffe);
    assert_int_equal(event->setter, 77);
    assert_int_equal(event->program, 3);
    assert_int_equal(event->object, 2);
    assert_int_equal(event->generation, 1);
    assert_int_equal(event->ring, NT_EVENT_NO_RING);
    assert_int_equal(event->merged, 1);
    assert_int_equal(event->position, 1);
    assert_int_equal(event->count + event->total + event->flags + event->data_size, 0);
    assert_false(live_changes_pending(&fixture->changes, 0));
    assert_int_equal(look(fixture), 0);
    /* back again, and the same once more */
    set(&fixture->build, 2, 0x7ffe, 4100, 77);
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].position, 2);
    set(&fixture->build, 2, 6, 4200, 77);
    assert_int_equal(look(fixture), 1);
    set(&fixture->build, 3, 0, 4300, 78);
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].generation, 5u << 16 | 7);
}

static void in_order_of_time(void **state)
{
    struct fixture *fixture = *state;
    set(&fixture->build, 3, 1 << 1, 300, 1);
    set(&fixture->build, 1, 1 << 1, 500, 1);
    set(&fixture->build, 2, 1 << 1, 400, 1);
    set(&fixture->build, 0, 1 << 1, 400, 1);
    /* what was before there was a reader is told too */
    assert_int_equal(look(fixture), 4);
    static const uint32_t slots[] = { 3, 0, 2, 1 };
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(fixture->events[i].object, slots[i]);
        assert_int_equal(fixture->events[i].position, i + 1);
    }
}

static void expect(const struct nt_event *event, uint64_t time, uint64_t before, uint64_t after, uint32_t setter)
{
    assert_int_equal(event->time, time);
    assert_int_equal(event->argument, before);
    assert_int_equal(event->value, after);
    assert_int_equal(event->setter, setter);
}

/* Of several changes between two looks only the last is known; that there were others is said. */
static void only_the_last_is_known(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    assert_false(live_changes_pending(&fixture->changes, 15));
    set(&fixture->build, 1, 0, 20, 5);
    set(&fixture->build, 1, 0x7ffe, 30, 6);
    assert_true(live_changes_pending(&fixture->changes, 40));
    assert_int_equal(look(fixture), 2);
    expect(&fixture->events[0], 15, 0, 0, 0);
    assert_int_equal(fixture->events[0].object, 1);
    expect(&fixture->events[1], 30, 0, 0x7ffe, 6);
    /* back and forth, then once more: the last one begins where the look had left it */
    fixture->moment.time = 35;
    set(&fixture->build, 2, 0, 25, 5);
    assert_int_equal(look(fixture), 1);
    set(&fixture->build, 1, 0, 40, 5);
    set(&fixture->build, 1, 0x7ffe, 50, 5);
    set(&fixture->build, 1, 2, 60, 7);
    assert_int_equal(look(fixture), 2);
    expect(&fixture->events[0], 35, 0x7ffe, 0x7ffe, 0);
    expect(&fixture->events[1], 60, 0x7ffe, 2, 7);
}

/* The last one may be stamped before the look that did not see the first. */
static void nobody_comes_before_the_last(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    assert_false(live_changes_pending(&fixture->changes, 100));
    set(&fixture->build, 1, 0, 95, 5);
    set(&fixture->build, 1, 0x7ffe, 96, 6);
    assert_int_equal(look(fixture), 2);
    expect(&fixture->events[0], 96, 0, 0, 0);
    expect(&fixture->events[1], 96, 0, 0x7ffe, 6);
}

/* Nor does nobody come before what was told already. */
static void nobody_comes_after_the_one_before(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    set(&fixture->build, 1, 2, 50, 5);
    fixture->moment.time = 40; /* a little before */
    assert_int_equal(look(fixture), 1);
    set(&fixture->build, 1, 0, 60, 5);
    set(&fixture->build, 1, 2, 70, 6);
    assert_int_equal(look(fixture), 2);
    expect(&fixture->events[0], 50, 0, 0, 0);
    expect(&fixture->events[1], 70, 0, 2, 6);
}

/* More changes in a log than there are entries of them. */
static void others_before_there_was_a_reader(void **state)
{
    struct fixture *fixture = *state;
    set(&fixture->build, 1, 0, 700, 5);
    set(&fixture->build, 1, 0x7ffe, 800, 6);
    assert_int_equal(look(fixture), 2);
    expect(&fixture->events[0], OPENED, 0, 0, 0);
    expect(&fixture->events[1], 800, 0, 0x7ffe, 6);
}

/* One that is seen before its setter counts it makes no other one suspect. */
static void counted_later(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    struct nt_layout_change change = swap(&fixture->build, 1, 2, 600, 9);
    put(build_change(&fixture->build, 1), &change);
    fixture->moment.thorough = true;
    assert_int_equal(look(fixture), 1);
    told_to_readers(&fixture->build);
    set(&fixture->build, 2, 2, 700, 10);
    assert_int_equal(look(fixture), 1);
    set(&fixture->build, 3, 4, 710, 10);
    set(&fixture->build, 3, 2, 720, 10);
    assert_int_equal(look(fixture), 2);
}

/* ---- Half-way ---- */

static void one_that_is_at_it_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(look(fixture), 0);
    struct nt_layout_change change = swap(&fixture->build, 1, 2, 600, 9);
    set(&fixture->build, 2, 2, 700, 10); /* so that it is looked at */
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].object, 2);
    fixture->moment.ms += LIVE_CHANGE_GRACE_MS - 1;
    build_change(&fixture->build, 1)->time = change.time;
    build_change(&fixture->build, 1)->before = change.before;
    assert_int_equal(look(fixture), 0);
    put(build_change(&fixture->build, 1), &change);
    assert_int_equal(look(fixture), 1); /* before it is counted */
    assert_int_equal(fixture->events[0].setter, 9);
    told_to_readers(&fixture->build);
    fixture->moment.ms += 1000;
    assert_int_equal(look(fixture), 0);
    assert_int_equal(fixture->changes.waiting, 0);
}

static void one_that_died_at_it_is_nobody(void **state)
{
    struct fixture *fixture = *state;
    set(&fixture->build, 1, 0xff, 300, 8);
    assert_int_equal(look(fixture), 1);
    struct nt_layout_change change = swap(&fixture->build, 1, 2, 600, 9);
    build_change(&fixture->build, 1)->time = change.time;
    build_change(&fixture->build, 1)->before = change.before;
    build_change(&fixture->build, 1)->setter = change.setter;
    assert_int_equal(look(fixture), 0); /* nobody says that there was a change */
    fixture->moment.thorough = true;
    fixture->moment.time += 100;
    assert_int_equal(look(fixture), 0);
    fixture->moment.ms += LIVE_CHANGE_GRACE_MS;
    fixture->moment.time += 100;
    assert_int_equal(look(fixture), 1);
    const struct nt_event *event = &fixture->events[0];
    assert_int_equal(event->setter, 0);
    assert_int_equal(event->argument, 0xff);
    assert_int_equal(event->value, 2);
    assert_int_equal(event->time, NOW); /* then it was as before */
    fixture->moment.ms += 1000;
    assert_int_equal(look(fixture), 0);
    /* the next one is whole again */
    set(&fixture->build, 1, 4, 900, 10);
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].argument, 2);
    assert_int_equal(fixture->events[0].setter, 10);
}

/* Who comes to a log with such an entry knows no mask from before. */
static void died_before_anybody_looked(void **state)
{
    struct fixture *fixture = *state;
    (void)swap(&fixture->build, 1, 2, 600, 9);
    build_change(&fixture->build, 1)->time = 600;
    fixture->moment.frozen = true;
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].setter, 0);
    assert_int_equal(fixture->events[0].argument, 2);
    assert_int_equal(fixture->events[0].value, 2);
    assert_int_equal(fixture->events[0].time, OPENED);
    assert_int_equal(look(fixture), 0);
}

static void another_life(void **state)
{
    struct fixture *fixture = *state;
    set(&fixture->build, 1, 2, 600, 9);
    assert_int_equal(look(fixture), 1);
    struct nt_layout_change late = swap(&fixture->build, 1, 4, 650, 9);
    /* the slot is used again: the library clears the entry, then sets the word */
    memset(build_change(&fixture->build, 1), 0, sizeof late);
    (void)build_object(&fixture->build, 1, 2);
    fixture->moment.thorough = true;
    assert_int_equal(look(fixture), 0);
    /* the setter of the earlier life writes its change now */
    put(build_change(&fixture->build, 1), &late);
    told_to_readers(&fixture->build);
    for (int i = 0; i < 3; i++) {
        fixture->moment.ms += 1000;
        assert_int_equal(look(fixture), 0);
    }
    set(&fixture->build, 1, 8, 700, 10);
    assert_int_equal(look(fixture), 1);
    assert_int_equal(fixture->events[0].generation, 2);
    assert_int_equal(fixture->events[0].argument, 0x7ffe);
}

static void nonsense(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    memset(build->control, 0xa5, 4096);
    memset(build->changes, 0x5a, 4096);
    build->live->slots = UINT32_MAX;
    for (int i = 0; i < 3; i++) {
        (void)look(fixture);
        fixture->moment.ms += 1000;
        fixture->moment.thorough = true;
        build->control[i] ^= UINT64_MAX;
    }
    assert_true(fixture->changes.known_count <= 4096 / 8);
}

/* ---- Several at once ---- */

enum { SETTERS = 3, SETS = 30000 };

struct setter {
    const struct build *build;
    uint32_t number; /* from 1 */
    int done;
    struct nt_layout_change made[SETS];
};

static void *set_always(void *arg)
{
    struct setter *setter = arg;
    for (uint64_t i = 0; i < SETS; i++) {
        struct nt_layout_change change = swap(setter->build, 1, BITS(i * 0x9e3779b97f4a7c15 + setter->number),
                                              i * SETTERS + setter->number, setter->number);
        setter->made[i] = change;
        put(build_change(setter->build, 1), &change);
        told_to_readers(setter->build);
    }
    __atomic_store_n(&setter->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Whatever is told of somebody was made by just that one. */
static void nothing_torn_is_told(void **state)
{
    struct fixture *fixture = *state;
    static struct setter setters[SETTERS];
    pthread_t threads[SETTERS];
    size_t told = 0;
    assert_int_equal(look(fixture), 0);
    for (uint32_t i = 0; i < SETTERS; i++) {
        setters[i] = (struct setter){ .build = &fixture->build, .number = i + 1 };
        assert_int_equal(pthread_create(&threads[i], NULL, set_always, &setters[i]), 0);
    }
    for (bool last = false, done = false; !last;) {
        last = done;
        done = true;
        for (int i = 0; i < SETTERS; i++) {
            done = done && __atomic_load_n(&setters[i].done, __ATOMIC_ACQUIRE);
        }
        for (size_t i = 0, count = look(fixture); i < count; i++) {
            const struct nt_event *event = &fixture->events[i];
            if (event->setter == 0) { /* others between two looks */
                assert_int_equal(event->value, event->argument);
                continue;
            }
            assert_in_range(event->setter, 1, SETTERS);
            assert_int_equal(event->time % SETTERS, event->setter % SETTERS);
            /* (written before the change can be seen) */
            const struct nt_layout_change *made = &setters[event->setter - 1].made[(event->time - 1) / SETTERS];
            assert_int_equal(event->value, BITS(made->after));
            assert_int_equal(event->argument, BITS(made->before));
            told++;
        }
    }
    for (int i = 0; i < SETTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(told > 0);
    /* what is left half-way at the end: somebody's, and the mask as it is */
    fixture->moment.ms += 1000;
    fixture->moment.thorough = true;
    (void)look(fixture);
    assert_int_equal(BITS(fixture->changes.known[1].word), BITS(fixture->build.control[1]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(tells_each_change_once),
        TEST(in_order_of_time),
        TEST(only_the_last_is_known),
        TEST(nobody_comes_before_the_last),
        TEST(nobody_comes_after_the_one_before),
        TEST(others_before_there_was_a_reader),
        TEST(counted_later),
        TEST(one_that_is_at_it_is_waited_for),
        TEST(one_that_died_at_it_is_nobody),
        TEST(died_before_anybody_looked),
        TEST(another_life),
        TEST(nonsense),
        TEST(nothing_torn_is_told),
    };
    return cmocka_run_group_tests_name("source/live/change", tests, NULL, NULL);
}
