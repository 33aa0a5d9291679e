/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of several programs from arrays: merged, in trees, summed up, sorted, picked; and parents that cannot be. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"
#include "model/sessions.h"

enum { WRITE = NT_MODEL_KIND_WRITE, READ = NT_MODEL_KIND_READ, OWN = 64 };

static int setup(void **state)
{
    struct nt_model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    for (uint32_t i = 0; i < 3; i++) {
        const struct nt_source_program program = feed_program(i, "node", "p", 100 + i);
        assert_int_equal(nt_model_add_program(model, &program), 0);
    }
    *state = model;
    return 0;
}

static int teardown(void **state)
{
    nt_model_fini(*state);
    free(*state);
    return 0;
}

/* ---- Feeding ---- */

static void feed(struct nt_model *model, const struct nt_source_session *session)
{
    assert_int_equal(nt_model_add_session(model, session), 0);
}

/* Made by the program, and counted in by it. */
static void feed_made(struct nt_model *model, uint64_t id, uint64_t parent, const char *name, uint64_t count)
{
    const struct nt_source_sum sums[] = { { WRITE, count, 10 * count } };
    const struct nt_source_session session = { .id = id,
                                               .known = true,
                                               .parent = parent,
                                               .opened_at = 1000 + id % 1000,
                                               .name = feed_bytes(name),
                                               .sums = sums,
                                               .sum_count = count > 0 };
    feed(model, &session);
}

static void link_all(struct nt_model *model)
{
    assert_int_equal(nt_model_link(model), 0);
    assert_int_equal(nt_model_link_sessions(model), 0);
}

static const struct nt_model_session *session_of(const struct nt_model *model, uint64_t id)
{
    uint32_t index = nt_model_session_find(model, id);
    assert_int_not_equal(index, NT_MODEL_NONE);
    return &model->sessions->sessions[index];
}

static void assert_own(const struct nt_model *model, uint64_t id, uint32_t kind, uint64_t count, uint64_t total)
{
    const struct nt_model_session *session = session_of(model, id);
    struct nt_model_sum sum = nt_model_session_sum(session->own, session->own_count, kind);
    assert_int_equal(sum.count, count);
    assert_int_equal(sum.total, total);
}

static void assert_all(const struct nt_model *model, uint64_t id, uint32_t kind, uint64_t count, uint64_t total)
{
    const struct nt_model_session *session = session_of(model, id);
    struct nt_model_sum sum = nt_model_session_sum(session->all, session->all_count, kind);
    assert_int_equal(sum.count, count);
    assert_int_equal(sum.total, total);
}

/* ---- Tests ---- */

static void of_several_programs(void **state)
{
    struct nt_model *model = *state;
    const struct nt_source_sum first[] = { { WRITE, 1, UINT64_MAX }, { READ, UINT64_C(1) << 53 | 1, 7 } };
    const struct nt_source_sum second[] = { { WRITE, 2, 5 } };
    const struct nt_source_sum none[] = { { READ, 9, 9 } };
    feed(model, &(struct nt_source_session){ .sums = none, .sum_count = 1 });
    feed(model, &(struct nt_source_session){ .id = UINT64_MAX, .sums = first, .sum_count = 2 });
    feed(model, &(struct nt_source_session){ .program = 2, .sums = none, .sum_count = 1, .got = true });
    feed(model, &(struct nt_source_session){ .program = 2,
                                             .id = UINT64_MAX,
                                             .known = true,
                                             .standing = true,
                                             .opened_at = 50,
                                             .ended_at = 60,
                                             .name = FEED_BYTES("pool\n"),
                                             .sums = second,
                                             .sum_count = 1 });
    feed(model, &(struct nt_source_session){ .program = 2, .older = true, .sums = second, .sum_count = 1 });
    link_all(model);
    const struct nt_model_session *session = session_of(model, UINT64_MAX);
    assert_own(model, UINT64_MAX, WRITE, 3, 4);
    assert_own(model, UINT64_MAX, READ, UINT64_C(1) << 53 | 1, 7);
    assert_own(model, UINT64_MAX, OWN, 0, 0);
    assert_true(session->known && session->standing);
    assert_int_equal(session->bound, NT_MODEL_EXACT);
    assert_int_equal(session->name.size, 5);
    assert_int_equal(session->first, 50);
    assert_int_equal(session->last, 60);
    assert_int_equal(session->share_count, 2);
    assert_int_equal(model->sessions->shares[session->shares].program, 0);
    assert_int_equal(model->sessions->shares[model->sessions->shares[session->shares].next].program, 2);
    const struct nt_model_session *no = &model->sessions->sessions[NT_MODEL_SESSION_NO];
    assert_int_equal(nt_model_session_sum(no->own, no->own_count, READ).count, 18);
    assert_int_equal(no->bound, NT_MODEL_MOST);
    const struct nt_model_session *older = &model->sessions->sessions[NT_MODEL_SESSION_OLDER];
    assert_int_equal(nt_model_session_sum(older->own, older->own_count, WRITE).total, 5);
    assert_int_equal(nt_model_session_find(model, 0), NT_MODEL_NONE);
    assert_int_equal(nt_model_session_find(model, 1), NT_MODEL_NONE);
    assert_int_equal(model->sessions->order_count, 1);
    const struct nt_source_session lost = { .program = 7, .id = 1 };
    assert_int_equal(nt_model_add_session(model, &lost), -EINVAL);
}

/* The same kind under different numbers, and different kinds under the same number. */
static void own_kinds_go_by_name(void **state)
{
    struct nt_model *model = *state;
    const struct {
        uint32_t program;
        uint16_t kind;
        const char *name;
    } kinds[] = {
        { 0, 64, "trade" },
        { 0, 65, "quote" },
        { 1, 64, "quote" },
        { 1, 65, "trade" },
    };
    for (size_t i = 0; i < 4; i++) {
        const struct nt_source_kind kind = { .program = kinds[i].program,
                                             .kind = kinds[i].kind,
                                             .name = feed_bytes(kinds[i].name) };
        assert_int_equal(nt_model_add_kind(model, &kind), 0);
    }
    for (uint32_t program = 0; program < 3; program++) {
        const struct nt_source_sum sums[] = { { 64, 1 + program, 0 }, { 65, 10 + program, 0 } };
        feed(model, &(struct nt_source_session){ .program = program, .id = 5, .sums = sums, .sum_count = 2 });
    }
    link_all(model);
    const struct nt_model_session *session = session_of(model, 5);
    assert_int_equal(session->own_count, 4);
    uint64_t trade = 0, quote = 0, others = 0;
    for (size_t i = 0; i < session->own_count; i++) {
        struct nt_bytes name = nt_model_session_kind(model, session->own[i].kind);
        trade += name.size == 5 && memcmp(name.data, "trade", 5) == 0 ? session->own[i].count : 0;
        quote += name.size == 5 && memcmp(name.data, "quote", 5) == 0 ? session->own[i].count : 0;
        others += name.size == 7 && memcmp(name.data, "kind-6", 6) == 0 ? session->own[i].count : 0;
    }
    assert_int_equal(trade, 1 + 11);
    assert_int_equal(quote, 10 + 2);
    assert_int_equal(others, 3 + 12);
}

static void a_tree(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 1, 0, "root", 1);
    feed_made(model, 3, 2, "leaf", 4);
    feed_made(model, 2, 1, "part", 2);
    feed_made(model, 4, 1, "", 8);
    feed_made(model, 5, 99, "foreign", 16); /* whose parent nobody tells */
    link_all(model);
    assert_all(model, 1, WRITE, 15, 150);
    assert_own(model, 1, WRITE, 1, 10);
    assert_all(model, 2, WRITE, 6, 60);
    assert_all(model, 3, WRITE, 4, 40);
    assert_all(model, 99, WRITE, 16, 160);
    assert_own(model, 99, WRITE, 0, 0);
    assert_int_equal(session_of(model, 3)->depth, 2);
    assert_int_equal(session_of(model, 3)->root, nt_model_session_find(model, 1));
    assert_int_equal(session_of(model, 1)->below, 3);
    assert_int_equal(session_of(model, 5)->root, nt_model_session_find(model, 99));
    assert_false(session_of(model, 99)->known);
    static const uint64_t order[] = { 99, 5, 1, 2, 3, 4 };
    assert_int_equal(model->sessions->order_count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(model->sessions->sessions[model->sessions->order[i]].id, order[i]);
}

/* Some of its parts were given up: the parent has them, and the whole has all that is there. */
static void bounds_go_up(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 1, 0, "root", 1);
    const struct nt_source_sum sums[] = { { WRITE, 1, 10 } };
    feed(model,
         &(struct nt_source_session){ .id = 2, .known = true, .parent = 1, .got = true, .sums = sums, .sum_count = 1 });
    feed(model, &(struct nt_source_session){ .id = 3, .known = true, .parent = 2, .given = true });
    feed(model, &(struct nt_source_session){ .id = 4, .given = true, .got = true });
    link_all(model);
    assert_int_equal(session_of(model, 1)->bound, NT_MODEL_EXACT);
    assert_int_equal(session_of(model, 1)->all_bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, 2)->bound, NT_MODEL_MOST);
    assert_int_equal(session_of(model, 2)->all_bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, 3)->bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, 4)->bound, NT_MODEL_ABOUT);
    assert_int_equal(session_of(model, 4)->all_bound, NT_MODEL_LEAST);
}

/* Of a session that it tells nothing of, a program may have given up all that it had. */
static void given_up_by_others(void **state)
{
    struct nt_model *model = *state;
    static uint64_t page[512];
    const uint64_t *const pages[] = { NULL, page };
    const struct nt_source_given given = { .program = 1, .pages = pages, .page_count = 2 };
    uint64_t in = 0, out = 0;
    memset(page, 0xff, sizeof page);
    for (uint64_t id = 1; in == 0 || out == 0; id++)
        *(nt_source_given_has(&given, id, false) ? &in : &out) = id;
    assert_int_equal(nt_model_add_given(model, &given), 0);
    memset(page, 0, sizeof page); /* it has a copy */
    feed_made(model, in, 0, "in", 1);
    feed_made(model, out, 0, "out", 1);
    const struct nt_source_session own = { .program = 1, .id = in + 1000000 };
    feed(model, &own);
    link_all(model);
    assert_int_equal(session_of(model, in)->bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, out)->bound, NT_MODEL_EXACT);
    const struct nt_source_given all = { .program = 2, .all = true }, lost = { .program = 3 };
    assert_int_equal(nt_model_add_given(model, &all), 0);
    assert_int_equal(nt_model_add_given(model, &lost), -EINVAL);
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, out)->bound, NT_MODEL_LEAST);
}

/* A program had no room for some counts: they may have been of any session. */
static void counts_without_room(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 1, 0, "told", 1);
    feed(model, &(struct nt_source_session){ .program = 2, .id = 1, .got = true });
    feed_made(model, 2, 0, "of others", 1);
    link_all(model);
    assert_int_equal(session_of(model, 1)->bound, NT_MODEL_MOST);
    assert_int_equal(session_of(model, 2)->bound, NT_MODEL_EXACT);
    model->programs[2].told.refused_tallies = 1;
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, 1)->bound, NT_MODEL_ABOUT);
    assert_int_equal(session_of(model, 2)->bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, 2)->all_bound, NT_MODEL_LEAST);
    for (uint32_t at = session_of(model, 1)->shares; at != NT_MODEL_NONE; at = model->sessions->shares[at].next) {
        const struct nt_model_share *share = &model->sessions->shares[at];
        assert_int_equal(share->bound, share->program == 2 ? NT_MODEL_ABOUT : NT_MODEL_EXACT);
    }
}

/* A program forgot names and parents of old sessions: what one of another program has below it may be more. */
static void descendants_that_are_forgotten(void **state)
{
    struct nt_model *model = *state;
    const uint64_t top = UINT64_C(0xabcd) << 48;
    struct nt_source_program program = feed_program(3, "node", "forgets", 5);
    program.forgets = true;
    assert_int_equal(nt_model_add_program(model, &program), 0);
    feed_made(model, top | 1, 0, "root", 1);
    feed_made(model, UINT64_C(0xeeee) << 48, 0, "other", 1);
    const struct nt_source_sum sums[] = { { WRITE, 1, 10 } };
    feed(model, &(struct nt_source_session){ .program = 3, .id = top | 77, .sums = sums, .sum_count = 1 });
    feed(model,
         &(struct nt_source_session){ .program = 3, .id = top | 78, .known = true, .sums = sums, .sum_count = 1 });
    link_all(model);
    assert_int_equal(session_of(model, top | 1)->bound, NT_MODEL_EXACT);
    assert_int_equal(session_of(model, top | 1)->all_bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, UINT64_C(0xeeee) << 48)->all_bound, NT_MODEL_EXACT);
    assert_int_equal(session_of(model, top | 77)->all_bound, NT_MODEL_EXACT);
    assert_int_equal(session_of(model, top | 78)->all_bound, NT_MODEL_EXACT); /* it remembers what came later */
    /* It gave up sums of sessions that it does not remember. */
    static const uint64_t page[NT_LAYOUT_PAGE / 8];
    const uint64_t *const none[] = { NULL }, *const some[] = { page };
    struct nt_source_given given = { .program = 3, .pages = none, .page_count = 1 };
    assert_int_equal(nt_model_add_given(model, &given), 0);
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, UINT64_C(0xeeee) << 48)->all_bound, NT_MODEL_EXACT);
    given.pages = some;
    assert_int_equal(nt_model_add_given(model, &given), 0);
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, UINT64_C(0xeeee) << 48)->all_bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, top | 78)->all_bound, NT_MODEL_EXACT);
    /* Of two that it should remember it remembers one that is older than both. */
    model->programs[nt_model_program_index(model, 3)].told.remembers = 1;
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, top | 78)->all_bound, NT_MODEL_EXACT);
    uint32_t share = session_of(model, top | 78)->shares;
    model->sessions->shares[share].overdue = true;
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, top | 78)->all_bound, NT_MODEL_LEAST);
    model->sessions->shares[share].overdue = false;
    model->programs[nt_model_program_index(model, 3)].told.remembers = 2; /* it had no room for one */
    assert_int_equal(nt_model_link_sessions(model), 0);
    assert_int_equal(session_of(model, top | 78)->all_bound, NT_MODEL_LEAST);
}

static void parents_that_cannot_be(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 1, 1, "its own", 1);
    feed_made(model, 2, 3, "a", 1);
    feed_made(model, 3, 4, "b", 1);
    feed_made(model, 4, 2, "c", 1);
    feed_made(model, 5, 4, "below the circle", 1);
    link_all(model);
    assert_int_equal(model->sessions->order_count, 5);
    uint64_t roots = 0, total = 0, adrift = 0;
    for (uint32_t i = NT_MODEL_SESSION_FIRST; i < model->sessions->count; i++) {
        const struct nt_model_session *session = &model->sessions->sessions[i];
        adrift += session->adrift;
        roots += session->parent == NT_MODEL_NONE;
        total += session->parent == NT_MODEL_NONE ? nt_model_session_sum(session->all, session->all_count, WRITE).count
                                                  : 0;
    }
    assert_int_equal(roots, 2);
    assert_int_equal(adrift, 2);
    assert_int_equal(total, 5);
}

static void as_deep_as_there_are(void **state)
{
    struct nt_model *model = *state;
    enum { DEEP = 200000 };
    for (uint64_t i = 1; i <= DEEP; i++)
        feed_made(model, i, i - 1, "", 1);
    link_all(model);
    assert_all(model, 1, WRITE, DEEP, 10 * (uint64_t)DEEP);
    assert_int_equal(session_of(model, DEEP)->depth, DEEP - 1);
    assert_int_equal(session_of(model, DEEP)->root, nt_model_session_find(model, 1));
}

/* Below each other, the last one with many kinds; each has that many events of its own. */
static void feed_line(struct nt_model *model, uint64_t deep, uint64_t own)
{
    struct nt_source_sum sums[180];
    for (uint32_t i = 0; i < 180; i++)
        sums[i] = (struct nt_source_sum){ (uint16_t)(64 + i), 1, i };
    for (uint64_t i = 1; i < deep; i++)
        feed_made(model, i, i - 1, "", own);
    feed(model, &(struct nt_source_session){
                    .id = deep, .known = true, .parent = deep - 1, .opened_at = 1, .sums = sums, .sum_count = 180 });
    link_all(model);
}

static void many_kinds_far_below_others(void **state)
{
    struct nt_model *model = *state;
    enum { DEEP = 50000 };
    feed_line(model, DEEP, 0);
    assert_int_equal(session_of(model, 1)->all_count, 180);
    assert_int_equal(session_of(model, 1)->all_bound, NT_MODEL_EXACT);
    assert_int_equal(model->sessions->below_room, 0); /* one copy is all of theirs */
}

/* As many sums as sessions times kinds are not kept. */
static void more_sums_than_are_kept(void **state)
{
    struct nt_model *model = *state;
    enum { DEEP = 50000 };
    feed_line(model, DEEP, 1);
    assert_true(model->sessions->below_room < UINT64_C(40) * DEEP);
    const struct nt_model_session *first = session_of(model, 1), *close = session_of(model, DEEP - 1);
    struct nt_model_sum writes = nt_model_session_sum(first->all, first->all_count, WRITE);
    assert_int_equal(first->all_bound, NT_MODEL_LEAST);
    assert_true(writes.count >= 1 && writes.count < DEEP);
    assert_int_equal(close->all_bound, NT_MODEL_EXACT);
    assert_int_equal(close->all_count, 181);
    size_t room = model->sessions->below_room;
    assert_int_equal(nt_model_link_sessions(model), 0); /* takes no more */
    assert_int_equal(model->sessions->below_room, room);
}

/* ---- Against sums that are made the slow way ---- */

enum { MANY = 60 };

static void sum_below(const uint64_t *parents, const uint64_t *counts, uint64_t id, int depth, uint64_t *sum)
{
    *sum += counts[id];
    assert_true(depth < MANY);
    for (uint64_t child = 1; child < MANY; child++) {
        if (parents[child] == id)
            sum_below(parents, counts, child, depth + 1, sum);
    }
}

static void forests_by_chance(void **state)
{
    uint64_t random = (uint64_t)time(NULL);
    print_message("# seed %lu\n", random);
    for (int turn = 0; turn < 200; turn++) {
        uint64_t parents[MANY] = { 0 }, counts[MANY] = { 0 };
        struct nt_model *model = *state;
        for (uint64_t id = 1; id < MANY; id++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            parents[id] = (random >> 33) % id; /* no circles */
            counts[id] = random >> 45;
        }
        for (uint64_t i = 1; i < MANY; i++) {
            uint64_t id = 1 + (i * 37) % (MANY - 1);
            feed_made(model, id, parents[id], "x", counts[id]);
        }
        link_all(model);
        for (uint64_t id = 1; id < MANY; id++) {
            uint64_t sum = 0;
            sum_below(parents, counts, id, 0, &sum);
            assert_all(model, id, WRITE, sum, 10 * sum);
        }
        (void)teardown(state);
        (void)setup(state);
    }
}

static void events_tell_too(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 2, 0, "known", 1);
    const struct nt_event events[] = {
        { .time = 500, .session = 1, .kind = NT_MODEL_KIND_SESSION, .value = 1, .argument = 9 },
        { .time = 400, .session = 1, .kind = WRITE },
        { .time = 700, .session = 1, .kind = NT_MODEL_KIND_SESSION, .value = 2 },
        { .time = 600, .session = 2, .kind = NT_MODEL_KIND_SESSION, .value = 3 },
        { .time = 650, .session = 2, .kind = NT_MODEL_KIND_SESSION, .value = 1, .argument = 9 },
        { .time = 900, .session = 0, .kind = WRITE },
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        assert_int_equal(nt_model_session_event(model, &events[i]), 0);
    link_all(model);
    const struct nt_model_session *session = session_of(model, 1);
    assert_int_equal(session->first, 400);
    assert_int_equal(session->last, 700);
    assert_int_equal(session->opened_at, 500);
    assert_int_equal(session->ended_at, 700);
    assert_int_equal(session->parent, nt_model_session_find(model, 9));
    assert_int_equal(session->bound, NT_MODEL_LEAST); /* no program tells sums of it */
    assert_int_equal(session_of(model, 9)->bound, NT_MODEL_LEAST);
    assert_int_equal(session_of(model, 2)->bound, NT_MODEL_EXACT);
    assert_true(session_of(model, 2)->standing);
    assert_int_equal(session_of(model, 2)->parent, NT_MODEL_NONE);
    assert_int_equal(session_of(model, 2)->last, 1002);
}

static void sorted(void **state)
{
    struct nt_model *model = *state;
    feed_made(model, 1, 0, "a", 5);
    feed_made(model, 2, 1, "b", 50);
    feed_made(model, 3, 0, "c", 7);
    link_all(model);
    uint32_t indexes[3];
    for (uint32_t i = 0; i < 3; i++)
        indexes[i] = NT_MODEL_SESSION_FIRST + i;
    static const uint64_t by_own[] = { 2, 3, 1 }, by_all[] = { 1, 2, 3 }, by_last[] = { 3, 2, 1 };
    nt_model_sort_sessions(model, indexes, 3, NT_MODEL_BY_TRAFFIC, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(model->sessions->sessions[indexes[i]].id, by_own[i]);
    nt_model_sort_sessions(model, indexes, 3, NT_MODEL_BY_TRAFFIC, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(model->sessions->sessions[indexes[i]].id, by_all[i]);
    nt_model_sort_sessions(model, indexes, 3, NT_MODEL_BY_LAST, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(model->sessions->sessions[indexes[i]].id, by_last[i]);
}

static bool picks(const char *text, uint64_t id, const char *name)
{
    struct nt_model_session_pick pick;
    const struct nt_model_session session = { .id = id, .name = feed_bytes(name) };
    assert_null(nt_model_session_pick(feed_bytes(text), &pick));
    return nt_model_session_is_picked(&session, &pick);
}

static void picked(void **state)
{
    (void)state;
    assert_true(picks("18446744073709551615", UINT64_MAX, ""));
    assert_true(picks("ffffffffffffffff", UINT64_MAX, ""));
    assert_true(picks("FFFFFFFFFFFFFFFF", UINT64_MAX, ""));
    assert_true(picks("0000000000000012", 18, ""));
    assert_true(picks("0000000000000012", 12, ""));
    assert_true(picks("9007199254740993", (UINT64_C(1) << 53) + 1, ""));
    assert_true(picks("9007199254740993", UINT64_C(0x9007199254740993), ""));
    assert_true(picks("12", 12, ""));
    assert_false(picks("12", 18, ""));
    assert_true(picks("12", 5, "12"));
    assert_false(picks("*", 5, ""));
    assert_true(picks("*", 5, "x"));
    assert_true(picks("GET /*", 5, "GET /index"));
    assert_false(picks("GET /", 5, "GET /index"));
    struct nt_model_session_pick pick;
    assert_non_null(nt_model_session_pick(feed_bytes(""), &pick));
    assert_non_null(nt_model_session_pick(feed_bytes("[a"), &pick));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(of_several_programs),
        TEST(own_kinds_go_by_name),
        TEST(a_tree),
        TEST(bounds_go_up),
        TEST(given_up_by_others),
        TEST(counts_without_room),
        TEST(descendants_that_are_forgotten),
        TEST(parents_that_cannot_be),
        TEST(as_deep_as_there_are),
        TEST(many_kinds_far_below_others),
        TEST(more_sums_than_are_kept),
        TEST(forests_by_chance),
        TEST(events_tell_too),
        TEST(sorted),
        TEST(picked),
    };
    return cmocka_run_group_tests_name("model/sessions", tests, NULL, NULL);
}
