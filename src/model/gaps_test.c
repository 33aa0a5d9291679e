/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaps among events from arrays: what is told, when, and why; and that always
   came + missing - found = last - first + 1. */
#include "model/gaps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(1000) * 1000 * MS)
#define ALL ((UINT64_C(1) << 48) - 1)

enum { WRITE = 1, READ = 2, CLOSE = 9, MASK = 13 };

struct fixture {
    struct nt_gaps *gaps;
    struct nt_event event; /* the next one, but for what a test says */
    char told[4096];
};

static int setup_with(void **state, const struct nt_gaps_options *options)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(nt_gaps_new(options, &fixture->gaps), 0);
    fixture->event = (struct nt_event){
        .time = START, .program = 1, .ring = 2, .object = 3, .generation = 4, .kind = WRITE, .merged = 1
    };
    *state = fixture;
    return 0;
}

static int setup(void **state)
{
    const struct nt_gaps_options defaults = { .patience_ns = 0 };
    return setup_with(state, &defaults);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    nt_gaps_free(fixture->gaps);
    free(fixture);
    return 0;
}

/* What there is to take: "lost A-B", "off A-B", "found A-B". */
static const char *taken(struct fixture *fixture)
{
    static const char *const names[] = { "lost", "off", "found" };
    size_t used = 0;
    struct nt_gap gap;
    fixture->told[0] = '\0';
    while (nt_gaps_take(fixture->gaps, &gap)) {
        used += (size_t)snprintf(fixture->told + used, sizeof fixture->told - used, "%s%s %llu-%llu",
                                 used > 0 ? ", " : "", names[gap.why], (unsigned long long)gap.first,
                                 (unsigned long long)gap.last);
    }
    return fixture->told;
}

/* The next event of the object has that count, a millisecond later. */
static const char *comes(struct fixture *fixture, uint64_t count)
{
    fixture->event.count = count;
    fixture->event.time += MS;
    assert_true(nt_gaps_event(fixture->gaps, &fixture->event) >= 0);
    return taken(fixture);
}

static void mask_by(struct fixture *fixture, uint64_t before, uint64_t after, uint32_t setter)
{
    struct nt_event event = fixture->event;
    fixture->event.time += MS;
    event.time = fixture->event.time;
    event.kind = MASK;
    event.ring = NT_EVENT_NO_RING;
    event.count = 0;
    event.flags = 0;
    event.value = after;
    event.argument = before;
    event.setter = setter;
    assert_int_equal(nt_gaps_event(fixture->gaps, &event), 0);
}

static void mask(struct fixture *fixture, uint64_t before, uint64_t after)
{
    mask_by(fixture, before, after, 99);
}

/* ---- Exclusive objects ---- */

static void nothing_is_missing(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t count = 17; count < 1000; count++) { /* what was before the first is not known of */
        assert_string_equal(comes(fixture, count), "");
    }
    assert_int_equal(nt_gaps_flush(fixture->gaps), 0);
    assert_int_equal(nt_gaps_stats(fixture->gaps).objects, 1);
}

static void tells_what_was_lost_before_the_event(void **state)
{
    struct fixture *fixture = *state;
    assert_string_equal(comes(fixture, 5), "");
    fixture->event.count = 9;
    fixture->event.time += 7;
    assert_int_equal(nt_gaps_event(fixture->gaps, &fixture->event), 1);
    struct nt_gap gap;
    assert_true(nt_gaps_take(fixture->gaps, &gap));
    assert_int_equal(gap.why, NT_GAP_LOST);
    assert_int_equal(gap.program, 1);
    assert_int_equal(gap.object, 3);
    assert_int_equal(gap.generation, 4);
    assert_int_equal(gap.kind, WRITE);
    assert_int_equal(gap.first, 6);
    assert_int_equal(gap.last, 8);
    assert_int_equal(gap.from_time, START + MS);
    assert_int_equal(gap.to_time, START + MS + 7);
    assert_false(nt_gaps_take(fixture->gaps, &gap));
    assert_string_equal(comes(fixture, 10), "");
    assert_int_equal(nt_gaps_stats(fixture->gaps).lost, 3);
}

/* Programs, objects, lives and kinds count for themselves. */
static void all_count_for_themselves(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t i = 0; i < 16; i++) {
        fixture->event.program = i & 1;
        fixture->event.object = i >> 1 & 1;
        fixture->event.generation = i >> 2 & 1;
        fixture->event.kind = 1 + (i >> 3 & 1);
        assert_string_equal(comes(fixture, 100 * i + 1), "");
    }
    for (uint64_t i = 0; i < 16; i++) {
        fixture->event.program = i & 1;
        fixture->event.object = i >> 1 & 1;
        fixture->event.generation = i >> 2 & 1;
        fixture->event.kind = 1 + (i >> 3 & 1);
        assert_string_equal(comes(fixture, 100 * i + 2), "");
    }
    assert_int_equal(nt_gaps_stats(fixture->gaps).objects, 8);
}

static void what_comes_late_is_found(void **state)
{
    struct fixture *fixture = *state;
    (void)comes(fixture, 1);
    assert_string_equal(comes(fixture, 10), "lost 2-9");
    assert_string_equal(comes(fixture, 5), "found 5-5");
    assert_string_equal(comes(fixture, 2), "found 2-2");
    assert_string_equal(comes(fixture, 9), "found 9-9");
    assert_string_equal(comes(fixture, 11), "");
    assert_string_equal(comes(fixture, 13), "lost 12-12");
    assert_string_equal(comes(fixture, 12), "found 12-12");
    /* long after, when it is not remembered which they were */
    fixture->event.time += 5000 * MS;
    assert_string_equal(comes(fixture, 14), "");
    assert_string_equal(comes(fixture, 4), "found 4-4");
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 0);
    assert_int_equal(nt_gaps_stats(fixture->gaps).lost, 9);
    assert_int_equal(nt_gaps_stats(fixture->gaps).found, 5);
    static const uint64_t others[] = { 3, 6, 7, 8 };
    for (int i = 0; i < 4; i++) {
        (void)comes(fixture, others[i]);
    }
    assert_int_equal(nt_gaps_stats(fixture->gaps).found, 9);
    assert_string_equal(comes(fixture, 4), "");
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 1);
}

static void the_first_may_come_late(void **state)
{
    struct fixture *fixture = *state;
    (void)comes(fixture, 10);
    assert_string_equal(comes(fixture, 9), "");
    assert_string_equal(comes(fixture, 5), "lost 6-8");
    assert_string_equal(comes(fixture, 7), "found 7-7");
    assert_string_equal(comes(fixture, 11), "");
}

static void events_that_stand_for_several(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.merged = 5;
    assert_string_equal(comes(fixture, 5), "");
    assert_string_equal(comes(fixture, 10), "");
    assert_string_equal(comes(fixture, 17), "lost 11-12");
    fixture->event.merged = 2;
    assert_string_equal(comes(fixture, 12), "found 11-12");
    fixture->event.merged = 1;
    assert_string_equal(comes(fixture, 30), "lost 18-29");
    fixture->event.merged = 4;
    assert_string_equal(comes(fixture, 25), "found 22-25");
    fixture->event.merged = 12;
    assert_string_equal(comes(fixture, 40), "found 29-29"); /* 30 came before: odd */
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 1);
}

/* ---- Masks ---- */

static void masked_off_is_not_lost(void **state)
{
    struct fixture *fixture = *state;
    (void)comes(fixture, 1);
    fixture->event.kind = READ;
    (void)comes(fixture, 1);
    mask(fixture, ALL, ALL & ~(1u << WRITE));
    fixture->event.time += 3600000 * MS;
    mask(fixture, ALL & ~(1u << WRITE), ALL);
    assert_string_equal(comes(fixture, 3), "lost 2-2"); /* reads were on all the time */
    fixture->event.kind = WRITE;
    assert_string_equal(comes(fixture, 101), "off 2-100");
    assert_string_equal(comes(fixture, 102), "");
    /* A thread that had seen the mask as it was before may be some time behind. */
    assert_string_equal(comes(fixture, 104), "off 103-103");
    fixture->event.time += 60 * MS;
    assert_string_equal(comes(fixture, 105), "");
    assert_string_equal(comes(fixture, 107), "lost 106-106");
    assert_int_equal(nt_gaps_stats(fixture->gaps).not_logged, 100);
    assert_int_equal(nt_gaps_stats(fixture->gaps).lost, 2);
    /* also if other kinds changed since */
    mask(fixture, ALL, ALL & ~(1u << WRITE));
    mask(fixture, ALL & ~(1u << WRITE), ALL);
    assert_string_equal(comes(fixture, 109), "off 108-108");
    mask(fixture, ALL, ALL & ~(1u << READ));
    assert_string_equal(comes(fixture, 111), "off 110-110");
}

/* One that was under way when the mask changed comes still; what is behind it was not logged. */
static void off_until_it_is_on(void **state)
{
    struct fixture *fixture = *state;
    (void)comes(fixture, 1);
    mask(fixture, ALL, 0);
    assert_string_equal(comes(fixture, 3), "off 2-2");
    fixture->event.time += 100000 * MS;
    assert_string_equal(comes(fixture, 5), "off 4-4");
    fixture->event.time += 100000 * MS;
    mask(fixture, 0, ALL);
    assert_string_equal(comes(fixture, 9), "off 6-8");
}

static void changes_that_nobody_saw(void **state)
{
    struct fixture *fixture = *state;
    mask(fixture, ALL, ALL & ~(1u << READ));
    (void)comes(fixture, 1);
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 3), "lost 2-2");
    /* off and on again: only the second is known, and it is not about writes */
    mask(fixture, ALL, ALL & ~(2u << READ));
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 9), "off 4-8");
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 11), "lost 10-10");
}

static void a_change_that_nobody_knows(void **state)
{
    struct fixture *fixture = *state;
    mask_by(fixture, ALL, ALL, 0);
    (void)comes(fixture, 1);
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 3), "off 2-2");
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 5), "off 4-4");
    mask(fixture, ALL, ALL & ~(1u << READ)); /* from here on it is known */
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 7), "off 6-6");
    fixture->event.time += 1000 * MS;
    assert_string_equal(comes(fixture, 9), "lost 8-8");
}

static void kinds_that_share_a_bit(void **state)
{
    struct fixture *fixture = *state;
    static const uint16_t kinds[] = { 46, 47, 64, 254 };
    for (int i = 0; i < 4; i++) {
        fixture->event.kind = kinds[i];
        (void)comes(fixture, 1);
    }
    mask(fixture, ALL, ALL >> 1);
    for (int i = 0; i < 4; i++) {
        fixture->event.kind = kinds[i];
        assert_string_equal(comes(fixture, 3), i == 0 ? "lost 2-2" : "off 2-2");
    }
}

/* An event of kind mask that a program logged itself is a count like others. */
static void masks_that_are_counted(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.kind = MASK;
    (void)comes(fixture, 1);
    assert_string_equal(comes(fixture, 3), "lost 2-2");
}

/* ---- Shared objects ---- */

static void other_orders_are_no_gaps(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t counts[] = { 1, 3, 2, 6, 5, 4, 8, 9, 7, 10 };
    fixture->event.flags = NT_EVENT_SHARED;
    for (int i = 0; i < 10; i++) {
        assert_string_equal(comes(fixture, counts[i]), "");
    }
    assert_int_equal(nt_gaps_flush(fixture->gaps), 0);
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 0);
}

static void lost_when_it_was_waited_for(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.flags = NT_EVENT_SHARED;
    (void)comes(fixture, 1);
    assert_string_equal(comes(fixture, 10), "");
    assert_string_equal(comes(fixture, 5), "");
    assert_string_equal(comes(fixture, 2), "");
    assert_string_equal(comes(fixture, 9), "");
    assert_string_equal(comes(fixture, 11), "");
    fixture->event.time += 50 * MS;
    /* by time, whatever object it comes with */
    fixture->event.object++;
    fixture->event.count = 1;
    assert_int_equal(nt_gaps_event(fixture->gaps, &fixture->event), 2);
    struct nt_gap gap;
    bool seen[2] = { false };
    while (nt_gaps_take(fixture->gaps, &gap)) {
        assert_int_equal(gap.object, 3);
        assert_int_equal(gap.from_time, START + MS);
        assert_int_equal(gap.to_time, START + 2 * MS);
        seen[gap.first == 6] = gap.first == 3 ? gap.last == 4 : gap.first == 6 && gap.last == 8;
    }
    assert_true(seen[0] && seen[1]);
    fixture->event.object--;
    assert_string_equal(comes(fixture, 7), "found 7-7");
    assert_string_equal(comes(fixture, 20), "");
    assert_int_equal(nt_gaps_flush(fixture->gaps), 1);
    assert_string_equal(taken(fixture), "lost 12-19");
}

/* Time passes with events that are not given, too. */
static void lost_when_others_were_passed(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.flags = NT_EVENT_SHARED;
    assert_string_equal(comes(fixture, 1), "");
    assert_string_equal(comes(fixture, 3), "");
    assert_int_equal(nt_gaps_pass(fixture->gaps, fixture->event.time + NT_GAPS_PATIENCE_NS - 1), 0);
    assert_int_equal(nt_gaps_pass(fixture->gaps, fixture->event.time + NT_GAPS_PATIENCE_NS), 1);
    assert_string_equal(taken(fixture), "lost 2-2");
    assert_string_equal(comes(fixture, 2), "found 2-2");
}

static void masked_while_it_waits(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.flags = NT_EVENT_SHARED;
    (void)comes(fixture, 1);
    (void)comes(fixture, 3);
    mask(fixture, ALL, 0);
    assert_int_equal(nt_gaps_flush(fixture->gaps), 1);
    assert_string_equal(taken(fixture), "off 2-2");
}

/* A time from far ahead neither keeps others waiting nor waits for ever. */
static void times_from_elsewhere(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.flags = NT_EVENT_SHARED;
    (void)comes(fixture, 1);
    struct nt_event ahead = fixture->event;
    ahead.time += 1000000 * MS;
    ahead.count = 3;
    assert_int_equal(nt_gaps_event(fixture->gaps, &ahead), 0);
    assert_string_equal(comes(fixture, 4), "lost 2-2");
}

/* ---- Limits ---- */

static void more_gaps_than_are_remembered(void **state)
{
    struct fixture *fixture = *state;
    for (int shared = 0; shared < 2; shared++) {
        struct nt_gaps_stats before = nt_gaps_stats(fixture->gaps);
        fixture->event.object++;
        fixture->event.flags = shared ? NT_EVENT_SHARED : 0;
        for (uint64_t count = 1; count < 400; count += 2) {
            fixture->event.time -= MS; /* all at once */
            (void)comes(fixture, count);
        }
        (void)nt_gaps_flush(fixture->gaps);
        (void)taken(fixture);
        assert_int_equal(nt_gaps_stats(fixture->gaps).lost - before.lost, 199);
        for (uint64_t count = 2; count < 400; count += 2) {
            (void)comes(fixture, count);
        }
        assert_int_equal(nt_gaps_stats(fixture->gaps).found - before.found, 199);
        assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 0);
    }
}

static void more_gaps_than_all_are_remembered(void **state)
{
    struct fixture *fixture = *state;
    fixture->event.flags = NT_EVENT_SHARED;
    enum { OBJECTS = 10000 };
    for (uint64_t count = 1; count <= 19; count += 2) {
        for (uint32_t object = 0; object < OBJECTS; object++) {
            fixture->event.object = object;
            fixture->event.time -= MS;
            (void)comes(fixture, count);
        }
    }
    assert_int_equal(nt_gaps_stats(fixture->gaps).lost, OBJECTS * 9 - 65536);
    (void)nt_gaps_flush(fixture->gaps);
    assert_int_equal(nt_gaps_stats(fixture->gaps).lost, OBJECTS * 9);
}

static void more_objects_than_are_followed(void **state)
{
    struct fixture *fixture = *state;
    nt_gaps_free(fixture->gaps);
    const struct nt_gaps_options few = { .objects = 10 };
    assert_int_equal(nt_gaps_new(&few, &fixture->gaps), 0);
    fixture->event.flags = NT_EVENT_SHARED;
    for (uint32_t object = 0; object < 10; object++) {
        fixture->event.object = object;
        (void)comes(fixture, 1);
        (void)comes(fixture, 3);
    }
    fixture->event.object = 4;
    fixture->event.kind = CLOSE;
    (void)comes(fixture, 1);
    fixture->event.kind = WRITE;
    fixture->event.object = 100;
    assert_string_equal(comes(fixture, 1), "lost 2-2"); /* of the one that ended */
    assert_int_equal(nt_gaps_stats(fixture->gaps).forgotten, 0);
    fixture->event.object = 101;
    assert_string_equal(comes(fixture, 1), "lost 2-2");
    assert_int_equal(nt_gaps_stats(fixture->gaps).forgotten, 1);
    assert_int_equal(nt_gaps_stats(fixture->gaps).objects, 10);
    assert_string_equal(comes(fixture, 2), "");
    /* the ones that have events stay */
    for (uint32_t object = 200; object < 300; object++) {
        fixture->event.object = object;
        (void)comes(fixture, 1);
        fixture->event.object = 101;
        assert_string_equal(comes(fixture, object - 197), "");
        fixture->event.flags = 0;
    }
    assert_int_equal(nt_gaps_stats(fixture->gaps).objects, 10);
}

static void odd_counts(void **state)
{
    struct fixture *fixture = *state;
    (void)comes(fixture, 1);
    assert_string_equal(comes(fixture, 0), "");
    assert_string_equal(comes(fixture, 1), "");
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 1);
    assert_string_equal(comes(fixture, UINT64_MAX), "lost 2-18446744073709551614");
    assert_string_equal(comes(fixture, UINT64_MAX), "");
    fixture->event.merged = UINT32_MAX;
    assert_string_equal(comes(fixture, 2), "found 2-2"); /* cannot stand for more than there were */
    assert_string_equal(comes(fixture, UINT64_MAX), "found 18446744069414584321-18446744073709551614");
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 3);
}

/* ---- Anything ---- */

enum { OBJECTS = 6, COUNTS = 3000 };

struct random {
    uint64_t seed;
};

static uint64_t draw(struct random *random, uint64_t below)
{
    random->seed = random->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random->seed >> 33) % below;
}

struct seen {
    uint64_t first, last, came, missing, found;
};

struct stream { /* of one object: 1 to COUNTS, some left out, the others up to `behind` places from theirs */
    uint64_t counts[COUNTS];
    uint64_t length, at, dropped;
    struct seen seen;
};

static void stream_init(struct stream *stream, struct random *random, uint64_t behind)
{
    *stream = (struct stream){ .seen = { .first = UINT64_MAX } };
    for (uint64_t count = 1; count <= COUNTS; count++) {
        if (count == 1 || count == COUNTS || draw(random, 10) != 0) {
            stream->counts[stream->length++] = count;
        } else {
            stream->dropped++;
        }
    }
    for (uint64_t i = 1; i + behind < stream->length; i++) { /* the ends stay */
        uint64_t other = i + draw(random, behind), count = stream->counts[i];
        stream->counts[i] = stream->counts[other];
        stream->counts[other] = count;
    }
}

static void note(struct fixture *fixture, struct stream *streams)
{
    struct nt_gap gap;
    while (nt_gaps_take(fixture->gaps, &gap)) {
        struct seen *seen = &streams[gap.object].seen;
        uint64_t count = gap.last - gap.first + 1;
        seen->missing += gap.why != NT_GAP_FOUND ? count : 0;
        seen->found += gap.why == NT_GAP_FOUND ? count : 0;
    }
}

static void stream_next(struct fixture *fixture, struct stream *streams, uint32_t object)
{
    struct stream *stream = &streams[object];
    struct seen *seen = &stream->seen;
    uint64_t count = stream->counts[stream->at++];
    fixture->event.object = object;
    fixture->event.count = count;
    assert_true(nt_gaps_event(fixture->gaps, &fixture->event) >= 0);
    seen->came++;
    seen->first = count < seen->first ? count : seen->first;
    seen->last = count > seen->last ? count : seen->last;
    note(fixture, streams);
}

static void run_random(struct fixture *fixture, uint64_t seed)
{
    static struct stream streams[OBJECTS];
    struct random random = { seed };
    uint64_t behind = 1 + draw(&random, 40);
    fixture->event.flags = seed % 2 == 0 ? NT_EVENT_SHARED : 0;
    for (int object = 0; object < OBJECTS; object++) {
        stream_init(&streams[object], &random, behind);
    }
    for (int done = 0; done < OBJECTS;) {
        uint32_t object = (uint32_t)draw(&random, OBJECTS);
        if (streams[object].at < streams[object].length) {
            fixture->event.time += draw(&random, MS / 100);
            stream_next(fixture, streams, object);
            done += streams[object].at == streams[object].length;
        }
    }
    (void)nt_gaps_flush(fixture->gaps);
    note(fixture, streams);
    for (int object = 0; object < OBJECTS; object++) {
        const struct seen *seen = &streams[object].seen;
        assert_int_equal(seen->came + seen->missing - seen->found, seen->last - seen->first + 1);
        assert_int_equal(seen->missing - seen->found, streams[object].dropped);
        if (seed % 2 == 0 && behind < 8) { /* few ranges at once: nothing is told that only comes later */
            assert_int_equal(seen->found, 0);
        }
    }
    assert_int_equal(nt_gaps_stats(fixture->gaps).odd, 0);
}

static void anything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        void *fixture;
        (void)setup(&fixture);
        run_random(fixture, seed);
        (void)teardown(&fixture);
    }
    nt_gaps_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_missing),
        TEST(tells_what_was_lost_before_the_event),
        TEST(all_count_for_themselves),
        TEST(what_comes_late_is_found),
        TEST(the_first_may_come_late),
        TEST(events_that_stand_for_several),
        TEST(masked_off_is_not_lost),
        TEST(off_until_it_is_on),
        TEST(changes_that_nobody_saw),
        TEST(a_change_that_nobody_knows),
        TEST(kinds_that_share_a_bit),
        TEST(masks_that_are_counted),
        TEST(other_orders_are_no_gaps),
        TEST(lost_when_it_was_waited_for),
        TEST(lost_when_others_were_passed),
        TEST(masked_while_it_waits),
        TEST(times_from_elsewhere),
        TEST(more_gaps_than_are_remembered),
        TEST(more_gaps_than_all_are_remembered),
        TEST(more_objects_than_are_followed),
        TEST(odd_counts),
        TEST(anything),
    };
    return cmocka_run_group_tests_name("model/gaps", tests, NULL, NULL);
}
