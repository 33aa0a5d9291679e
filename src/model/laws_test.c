/* SPDX-License-Identifier: BSD-3-Clause */
/* Each promise kept, and each broken in one place: what is found is that and nothing else. */
#include "model/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"
#include "model/sessions.h"

#define SESSION UINT64_C(0xabc0000000000001)

enum { EVENTS = 6 };

/* A program with a channel that read 6 messages of value 10, the last 3 in a session. */
static struct {
    struct nt_source_program program;
    struct nt_source_object channel;
    struct nt_source_tally tally;
    struct nt_source_sum none, some;
    struct nt_event events[EVENTS];
    bool skip[EVENTS];         /* not given */
    struct nt_merge_loss loss; /* before event 3, if it has a count */
    struct nt_laws_options options;
    unsigned how;
    bool given; /* the session lacks some, it says */
} fed;

static int begin(void **state)
{
    (void)state;
    memset(&fed, 0, sizeof fed);
    fed.program = feed_program(4, "n", "p", 7);
    fed.program.state = NT_PROGRAM_EXITED;
    fed.channel = feed_object(4, 1, 0, "orders");
    fed.channel.session = SESSION;
    fed.tally = (struct nt_source_tally){ NT_MODEL_KIND_READ, EVENTS, 60, 10, 6000 };
    fed.none = fed.some = (struct nt_source_sum){ NT_MODEL_KIND_READ, 3, 30 };
    fed.how = NT_LAWS_LATER;
    for (unsigned i = 0; i < EVENTS; i++) {
        fed.events[i] = (struct nt_event){ .time = 1000 * (i + 1),
                                           .session = i < 3 ? 0 : SESSION,
                                           .value = 10,
                                           .count = i + 1,
                                           .total = 10 * (i + 1),
                                           .position = 64 * i,
                                           .program = 4,
                                           .object = 1,
                                           .generation = 1,
                                           .merged = 1,
                                           .kind = NT_MODEL_KIND_READ,
                                           .flags = i == 3 ? NT_RECORD_FIRST : 0 };
    }
    return 0;
}

static void feed(struct nt_model *model)
{
    static const struct nt_source_pair settled = { 3, 30 };
    struct nt_source_session none = { .program = 4, .sums = &fed.none, .sum_count = 1 };
    struct nt_source_session some = { .program = 4, .id = SESSION, .known = true, .sums = &fed.some, .sum_count = 1 };
    some.given = fed.given;
    fed.channel.tallies = &fed.tally;
    fed.channel.tally_count = 1;
    fed.channel.settled = &settled;
    nt_model_source(model);
    assert_int_equal(nt_model_add_program(model, &fed.program), 0);
    assert_int_equal(nt_model_add_object(model, &fed.channel), 0);
    assert_int_equal(nt_model_add_session(model, &none), 0);
    assert_int_equal(nt_model_add_session(model, &some), 0);
    assert_int_equal(nt_model_link(model), 0);
    assert_int_equal(nt_model_link_sessions(model), 0);
}

static void give(struct nt_laws *laws)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i == 3 && fed.loss.lost.count > 0)
            assert_int_equal(nt_laws_loss(laws, &fed.loss), 0);
        if (!fed.skip[i])
            assert_int_equal(nt_laws_event(laws, &fed.events[i]), 0);
    }
}

/* What is found: one violation of that law whose text has that in it; law 0: none. */
static void assert_found(unsigned law, const char *text)
{
    struct nt_model model = { 0 };
    struct nt_laws *laws;
    size_t count;
    feed(&model);
    assert_int_equal(nt_laws_new(&model, &fed.options, &laws), 0);
    give(laws);
    assert_int_equal(nt_laws_finish(laws, &model, fed.how), 0);
    const struct nt_violation *found = nt_laws_violations(laws, &count);
    for (size_t i = 0; i < count && count != (law != 0); i++)
        print_message("law %u: %s\n", found[i].law, found[i].text);
    assert_int_equal(count, law != 0);
    assert_int_equal(nt_laws_stats(laws).violations, count);
    if (law != 0) {
        assert_int_equal(found->law, law);
        assert_int_equal(found->program, 4);
        if (!strstr(found->text, text))
            fail_msg("'%s' has no '%s'", found->text, text);
    }
    nt_laws_free(laws);
    nt_model_fini(&model);
}

static void all_hold(void **state)
{
    (void)state;
    assert_found(0, NULL);
}

static void a_total_that_does_not_follow(void **state)
{
    (void)state;
    fed.events[1].value = 9; /* its total is as before */
    assert_found(1, "#1 has total 10, and the next one, of value 9, 20");
}

static void a_count_that_comes_again(void **state)
{
    (void)state;
    fed.events[2].count = 2;
    fed.events[2].total = 20;
    fed.program.dropped = 1; /* of the one that is missing then */
    assert_found(1, "#2 comes again");
}

static void a_tally_behind(void **state)
{
    (void)state;
    fed.tally.count = 5;
    fed.tally.total = 50;
    fed.some.count = 2;
    fed.some.total = 20;
    fed.given = true;
    assert_found(1, "its tally is 5, and there is an event #6");
}

/* The table may have been written before the event happened. */
static void a_tally_that_is_older(void **state)
{
    (void)state;
    fed.tally = (struct nt_source_tally){ NT_MODEL_KIND_READ, 5, 50, 10, 5000 };
    fed.none.count = 2;
    fed.none.total = 20;
    fed.how = 0;
    fed.program.state = NT_PROGRAM_UNKNOWN;
    assert_found(0, NULL);
    fed.tally.last = 7000;
    assert_found(1, "its tally is 5");
}

static void a_tally_with_another_total(void **state)
{
    (void)state;
    fed.tally.total = 61;
    fed.none.total = 31;
    assert_found(1, "its tally of 6 has total 61, and event #6 60");
}

static void a_maximum_too_small(void **state)
{
    (void)state;
    fed.tally.max = 9;
    assert_found(1, "its maximum is 9, and event #");
}

/* The maximum may be one event behind. */
static void a_maximum_behind(void **state)
{
    (void)state;
    fed.events[5].value = 20;
    fed.events[5].total = fed.tally.total = 70;
    fed.some.total = 40;
    assert_found(0, NULL);
}

static void positions_missing(void **state)
{
    (void)state;
    fed.skip[2] = true;
    fed.program.dropped = 1;
    assert_found(1, "ring 0: after position 128 comes 192, and nothing tells of what is between");
    fed.how |= NT_LAWS_PARTLY;
    assert_found(0, NULL);
    fed.how = NT_LAWS_LATER;
    fed.options.thinned = true;
    assert_found(0, NULL);
}

static void positions_lost(void **state)
{
    (void)state;
    fed.skip[2] = true;
    fed.loss.lost = (struct nt_source_loss){ .program = 4, .from = 128, .to = 192, .count = 1 };
    assert_found(0, NULL);
    fed.loss.lost.to = 256;
    assert_found(1, "what is there twice");
}

static void counts_missing(void **state)
{
    (void)state;
    for (unsigned i = 2; i < EVENTS; i++) { /* #3 was never written */
        fed.events[i].position -= 64;
    }
    fed.skip[2] = true;
    assert_found(1, "1 counts are missing, of which 0 slots lost and 0 events dropped tell");
    fed.program.dropped = 1;
    assert_found(0, NULL);
}

static void a_change_without_its_mark(void **state)
{
    (void)state;
    fed.events[4].session = 5; /* it comes and goes */
    fed.events[5].flags |= NT_RECORD_FIRST;
    fed.some.count = 9; /* whatever is counted by channel is less */
    fed.some.total = 90;
    fed.tally.count = 12;
    fed.tally.total = 120;
    assert_found(2, "#5 has another session than the one before");
    fed.events[4].flags |= NT_RECORD_IN;
    assert_found(0, NULL);
    fed.events[4].flags = NT_EVENT_SHARED;
    for (unsigned i = 0; i < EVENTS; i++)
        fed.events[i].flags |= NT_EVENT_SHARED;
    assert_found(0, NULL);
}

static void sessions_that_do_not_sum(void **state)
{
    (void)state;
    fed.none.total = 29;
    assert_found(2, "all sessions sum to 6 and total 59, its objects to 6 and 60");
    fed.none.total = 30;
    fed.some.count = 4;
    assert_found(2, "all sessions sum to 7 and total 60");
    fed.program.refused_tallies = 1;
    assert_found(0, NULL);
}

static void a_session_with_more_on_channels(void **state)
{
    (void)state;
    fed.none = (struct nt_source_sum){ NT_MODEL_KIND_READ, 4, 40 };
    fed.some = (struct nt_source_sum){ NT_MODEL_KIND_READ, 2, 20 };
    assert_found(2, "session abc0000000000001 did 3 on channels, and 2 in all");
}

static void closed_objects(void **state)
{
    (void)state;
    static struct nt_source_tally gone = { NT_MODEL_KIND_READ, 2, 5, 3, 1 };
    fed.channel.gone = &gone;
    fed.channel.gone_count = 1;
    assert_found(2, "its objects to 8 and 65");
    fed.none.count = 5;
    fed.none.total = 35;
    assert_found(0, NULL);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_hold),
        TEST(a_total_that_does_not_follow),
        TEST(a_count_that_comes_again),
        TEST(a_tally_behind),
        TEST(a_tally_that_is_older),
        TEST(a_tally_with_another_total),
        TEST(a_maximum_too_small),
        TEST(a_maximum_behind),
        TEST(positions_missing),
        TEST(positions_lost),
        TEST(counts_missing),
        TEST(a_change_without_its_mark),
        TEST(sessions_that_do_not_sum),
        TEST(a_session_with_more_on_channels),
        TEST(closed_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
