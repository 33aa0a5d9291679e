/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs from arrays: each way in which a boundary is known or not; then objects that do by chance what they may do, of
   which some events are lost, against an account of what they did: what is told is never more than that, and where it
   is said to be exact it is that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <nt/log_layout.h>

#include "model/feed_test.h"
#include "model/kinds.h"
#include "model/runs.h"
#include "model/sessions.h"

enum { WRITE = NT_MODEL_KIND_WRITE, READ = NT_MODEL_KIND_READ, SESSION = NT_MODEL_KIND_SESSION, JOIN = 4 };
enum { OBJECTS = 4, SHARED = 3, KINDS = 3, SESSIONS = 8, EVENTS = 4000 };

static const uint16_t kinds[KINDS] = { WRITE, READ, SESSION };

struct pair {
    uint64_t count, total;
};

struct object {
    uint64_t session;
    bool mixed;
    struct pair sum[KINDS], settled[KINDS];
    uint64_t read; /* what the last read measured, if nothing was read since a session joined it: 0 */
};

struct world {
    struct object objects[OBJECTS];
    struct pair truth[OBJECTS][KINDS][SESSIONS];
    struct nt_event events[EVENTS];
    size_t count;
    uint64_t random;
    struct nt_model model;
    const struct nt_run_sum *sums;
    size_t sum_count;
    struct nt_runs *runs;
};

static uint64_t chance(struct world *world)
{
    world->random = world->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return world->random >> 33;
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct world));
    assert_non_null(*state);
    return 0;
}

static void world_clear(struct world *world)
{
    uint64_t random = world->random;
    nt_runs_free(world->runs);
    nt_model_fini(&world->model);
    memset(world, 0, sizeof *world);
    world->random = random;
}

static int teardown(void **state)
{
    world_clear(*state);
    free(*state);
    return 0;
}

/* ---- What a program does ---- */

static void record(struct world *world, uint32_t at, uint32_t kind, uint64_t session, uint64_t value, uint16_t flags)
{
    struct object *object = &world->objects[at];
    assert_true(world->count < EVENTS);
    object->sum[kind].count++;
    object->sum[kind].total += value;
    if ((flags & NT_RECORD_IN) == 0 && object->sum[kind].count - 1 == object->settled[kind].count)
        flags |= NT_RECORD_FIRST;
    world->events[world->count] = (struct nt_event){ .time = 1000 + world->count,
                                                     .session = session,
                                                     .value = value,
                                                     .count = object->sum[kind].count,
                                                     .total = object->sum[kind].total,
                                                     .object = at + 1,
                                                     .generation = 1,
                                                     .merged = 1,
                                                     .kind = kinds[kind],
                                                     .flags = flags };
    if (at == SHARED)
        world->events[world->count].flags |= NT_EVENT_SHARED;
    world->count++;
    world->truth[at][kind][session].count++;
    world->truth[at][kind][session].total += value;
}

static void count(struct world *world, uint32_t at, uint32_t kind, uint64_t value)
{
    record(world, at, kind, world->objects[at].session, value, 0);
    world->objects[at].read = kind == 1 ? value : world->objects[at].read;
}

static void count_in(struct world *world, uint32_t at, uint64_t session, uint32_t kind, uint64_t value)
{
    struct object *object = &world->objects[at];
    if (session == object->session) {
        count(world, at, kind, value);
        return;
    }
    record(world, at, kind, session, value, NT_RECORD_IN);
    object->mixed = true;
    if (kind == 1)
        object->read = 0;
    if (at != SHARED) {
        object->settled[kind].count++;
        object->settled[kind].total += value;
    }
}

static void set(struct world *world, uint32_t at, uint64_t session)
{
    struct object *object = &world->objects[at];
    if (session == object->session)
        return;
    memcpy(object->settled, object->sum, sizeof object->settled);
    object->session = session;
    object->read = 0;
}

static void join(struct world *world, uint32_t at, uint64_t session)
{
    struct object *object = &world->objects[at];
    uint64_t value = object->read, before = object->session;
    if (session == before || value == 0)
        return;
    world->truth[at][1][before].count--;
    world->truth[at][1][before].total -= value;
    world->truth[at][1][session].count++;
    world->truth[at][1][session].total += value;
    set(world, at, session);
    record(world, at, 2, session, JOIN, 0);
    world->events[world->count - 1].argument = object->sum[1].count;
}

/* ---- What is told of it ---- */

static void feed_objects(struct world *world)
{
    const struct nt_source_program program = feed_program(0, "node", "p", 7);
    assert_int_equal(nt_model_add_program(&world->model, &program), 0);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        const struct object *from = &world->objects[i];
        struct nt_source_tally tallies[KINDS];
        struct nt_source_pair settled[KINDS];
        struct nt_source_object object = feed_object(0, i + 1, 0, "x");
        object.session = from->session;
        object.mixed = from->mixed;
        object.discipline = i == SHARED;
        object.tallies = tallies;
        object.settled = settled;
        for (uint32_t k = 0; k < KINDS; k++) {
            if (from->sum[k].count == 0)
                continue;
            tallies[object.tally_count] =
                (struct nt_source_tally){ .kind = kinds[k], .count = from->sum[k].count, .total = from->sum[k].total };
            settled[object.tally_count++] = (struct nt_source_pair){ from->settled[k].count, from->settled[k].total };
        }
        assert_int_equal(nt_model_add_object(&world->model, &object), 0);
    }
}

static void feed_sessions(struct world *world)
{
    for (uint64_t session = 0; session < SESSIONS; session++) {
        struct nt_source_sum sums[KINDS];
        struct nt_source_session told = { .id = session, .sums = sums, .sum_count = 2, .given = session == 5 };
        for (uint32_t k = 0; k < 2; k++) {
            sums[k] = (struct nt_source_sum){ .kind = kinds[k] };
            for (uint32_t i = 0; i < OBJECTS; i++) {
                sums[k].count += world->truth[i][k][session].count;
                sums[k].total += world->truth[i][k][session].total;
            }
        }
        assert_int_equal(nt_model_add_session(&world->model, &told), 0);
    }
}

/* `lost`: of which events nothing is left. */
static void tell_fed(struct world *world, const bool *lost, bool (*wanted)(void *arg, uint64_t session))
{
    assert_int_equal(nt_model_link(&world->model), 0);
    if (world->model.sessions)
        assert_int_equal(nt_model_link_sessions(&world->model), 0);
    assert_int_equal(nt_runs_new(&world->model, wanted, NULL, &world->runs), 0);
    for (size_t i = 0; i < world->count; i++) {
        if (!lost || !lost[i])
            assert_int_equal(nt_runs_event(world->runs, 0, &world->events[i]), 0);
    }
    assert_int_equal(nt_runs_finish(world->runs), 0);
    world->sums = nt_runs_sums(world->runs, &world->sum_count);
}

static void tell(struct world *world, const bool *lost, bool sessions, bool (*wanted)(void *arg, uint64_t session))
{
    feed_objects(world);
    if (sessions)
        feed_sessions(world);
    tell_fed(world, lost, wanted);
}

static const struct nt_run_sum *sum_of(const struct world *world, uint32_t at, uint32_t kind, uint64_t session)
{
    for (size_t i = 0; i < world->sum_count; i++) {
        const struct nt_run_sum *sum = &world->sums[i];
        if (sum->slot == at + 1 && sum->kind == kinds[kind] && sum->session == session)
            return sum;
    }
    return NULL;
}

static void assert_sum(const struct world *world, uint64_t session, uint32_t kind, uint64_t counts, bool exact)
{
    const struct nt_run_sum *sum = sum_of(world, 0, kind, session);
    assert_int_equal(sum ? sum->count : 0, counts);
    assert_true(!sum || sum->exact == exact);
}

/* ---- One by one ---- */

/* Session 1 writes 3 times, session 2 twice, then 1 again. */
static void write_some(struct world *world)
{
    static const uint64_t sessions[] = { 1, 1, 1, 2, 2, 1, 1 };
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        set(world, 0, sessions[i]);
        count(world, 0, 0, 10 + i);
    }
}

static void nothing_is_lost(void **state)
{
    struct world *world = *state;
    write_some(world);
    tell(world, NULL, false, NULL);
    assert_int_equal(world->sum_count, 2);
    assert_sum(world, 1, 0, 5, true);
    assert_sum(world, 2, 0, 2, true);
    assert_int_equal(sum_of(world, 0, 0, 1)->total, 10 + 11 + 12 + 15 + 16);
}

/* The run that goes on is known from the object alone. */
static void all_is_lost(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { true, true, true, true, true, true, true };
    write_some(world);
    tell(world, lost, false, NULL);
    assert_int_equal(world->sum_count, 1);
    assert_sum(world, 1, 0, 2, false);
    assert_int_equal(sum_of(world, 0, 0, 1)->total, 15 + 16);
}

/* One count is missing, and what follows is not the first of its run: it was of the same. */
static void one_is_lost(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { true, false, false, true, false, false, true };
    write_some(world);
    tell(world, lost, false, NULL);
    assert_sum(world, 1, 0, 5, true);
    assert_sum(world, 2, 0, 2, true);
}

/* Before the first of a run: it may have been anybody's. */
static void one_is_lost_at_a_boundary(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false, false, false, false };
    write_some(world);
    tell(world, lost, false, NULL);
    assert_sum(world, 1, 0, 4, false);
    assert_sum(world, 2, 0, 2, false);
}

/* The same, and the program knows what each has in all. */
static void what_adds_up_is_exact(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false, false, false, false };
    write_some(world);
    tell(world, lost, true, NULL);
    assert_sum(world, 1, 0, 4, false);
    assert_sum(world, 2, 0, 2, true);
}

/* What it knows is not all that there was. */
static void what_adds_up_by_accident(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false, false, false, false };
    write_some(world);
    const struct nt_source_sum sums[] = { { WRITE, 4, 10 + 11 + 15 + 16 } };
    const struct nt_source_session told = { .id = 1, .sums = sums, .sum_count = 1, .given = true };
    feed_objects(world);
    assert_int_equal(nt_model_add_session(&world->model, &told), 0);
    tell_fed(world, lost, NULL);
    assert_sum(world, 1, 0, 4, false);
}

/* A run may hide in a gap between two records of another. */
static void a_run_that_is_lost(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, false, true, true, true, false };
    write_some(world);
    tell(world, lost, false, NULL);
    assert_sum(world, 1, 0, 3 + 2, false); /* what goes on is known of the object */
    assert_int_equal(sum_of(world, 0, 0, 1)->total, 10 + 11 + 12 + 15 + 16);
}

static void joined(void **state)
{
    struct world *world = *state;
    set(world, 0, 1);
    count(world, 0, 1, 10);
    count(world, 0, 1, 20);
    join(world, 0, 2);
    count(world, 0, 1, 30);
    join(world, 0, 3);
    tell(world, NULL, false, NULL);
    assert_sum(world, 1, 1, 1, true);
    assert_sum(world, 2, 1, 1, true);
    assert_sum(world, 3, 1, 1, true);
    assert_int_equal(sum_of(world, 0, 1, 2)->total, 20);
    assert_int_equal(sum_of(world, 0, 1, 3)->total, 30);
}

/* Its event comes when the read behind it came already: whose the read was is not known any more. */
static void a_join_is_late(void **state)
{
    struct world *world = *state;
    set(world, 0, 1);
    count(world, 0, 1, 10);
    count(world, 0, 1, 20);
    join(world, 0, 2);
    count(world, 0, 1, 30);
    struct nt_event event = world->events[2];
    world->events[2] = world->events[3];
    world->events[3] = event;
    tell(world, NULL, false, NULL);
    assert_sum(world, 1, 1, 1, false);
    assert_sum(world, 2, 1, 1, false);
}

/* Counts that found no room may be of any session, and a join among them leaves no trace but their number. */
static void counts_without_room(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false };
    set(world, 0, 1);
    count(world, 0, 1, 10);
    count(world, 0, 1, 20);
    join(world, 0, 2);
    count(world, 0, 1, 30);
    world->objects[0].sum[2] = (struct pair){ 0 };
    feed_objects(world);
    world->model.programs[0].told.refused_tallies = 1;
    tell_fed(world, lost, NULL);
    assert_sum(world, 1, 1, 1, false);
    assert_sum(world, 2, 1, 1, false);
    assert_int_equal(sum_of(world, 0, 1, 1)->total, 10);
}

/* Who joined the last read of a run is not known: it is nobody's. */
static void a_join_is_lost(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false, false };
    set(world, 0, 1);
    count(world, 0, 1, 10);
    count(world, 0, 1, 20);
    join(world, 0, 2);
    count(world, 0, 1, 30);
    join(world, 0, 3);
    tell(world, lost, false, NULL);
    assert_sum(world, 1, 1, 1, false);
    assert_sum(world, 2, 1, 0, false);
    assert_sum(world, 3, 1, 1, false);
}

/* The read is lost, and the event of its session is left. */
static void a_joined_read_is_lost(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, true, false, false };
    set(world, 0, 1);
    count(world, 0, 1, 10);
    count(world, 0, 1, 20);
    join(world, 0, 2);
    count(world, 0, 1, 30);
    tell(world, lost, false, NULL);
    assert_sum(world, 1, 1, 1, true);
    assert_sum(world, 2, 1, 2, true);
    assert_int_equal(sum_of(world, 0, 1, 2)->total, 50);
}

static void counted_in(void **state)
{
    struct world *world = *state;
    static const bool lost[] = { false, false, true, false, false };
    for (int turn = 0; turn < 2; turn++) {
        set(world, 0, 1);
        count(world, 0, 0, 10);
        count_in(world, 0, 2, 0, 20);
        count(world, 0, 0, 30);
        count_in(world, 0, 0, 0, 40);
        count(world, 0, 0, 50);
        tell(world, turn ? lost : NULL, false, NULL);
        assert_sum(world, 1, 0, turn ? 2 : 3, turn == 0);
        assert_sum(world, 2, 0, 1, turn == 0);
        assert_sum(world, 0, 0, 1, turn == 0);
        world_clear(world);
    }
}

static bool only_two(void *arg, uint64_t session)
{
    (void)arg;
    return session == 2;
}

static void only_what_is_asked_for(void **state)
{
    struct world *world = *state;
    write_some(world);
    tell(world, NULL, false, only_two);
    assert_int_equal(world->sum_count, 1);
    assert_sum(world, 2, 0, 2, true);
}

/* Of an object that is gone it is not known how far it counted. */
static void gone(void **state)
{
    struct world *world = *state;
    write_some(world);
    for (size_t i = 0; i < world->count; i++)
        world->events[i].generation = 2;
    tell(world, NULL, false, only_two);
    assert_int_equal(world->sum_count, 1);
    assert_int_equal(world->sums[0].count, 2);
    assert_int_equal(world->sums[0].object, NT_MODEL_NONE);
    assert_false(world->sums[0].exact);
}

/* ---- By chance ---- */

static void live(struct world *world, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        uint32_t at = (uint32_t)(chance(world) % OBJECTS), kind = (uint32_t)(chance(world) % 2);
        uint64_t session = chance(world) % SESSIONS, value = 1 + chance(world) % 1000;
        unsigned what = (unsigned)(chance(world) % 16);
        if (what == 0 && (at == SHARED || at == 2))
            count_in(world, at, session, kind, value);
        else if (what < 3 && at != SHARED)
            set(world, at, session);
        else if (what < 6 && at != SHARED) {
            count(world, at, 1, value);
            join(world, at, session);
        } else
            count(world, at, kind, value);
    }
}

/* Bursts, single ones, all that is old, joins, or a kind that was masked for a while. */
static bool is_lost(const struct world *world, size_t i, unsigned how, uint64_t dice)
{
    const bool lost[7] = {
        [2] = dice % 10 == 0,
        [3] = i < world->count / 2,
        [4] = world->events[i].kind == SESSION,
        [5] = dice % 200 == 0,
        [6] = i / 100 % 4 == 0 && world->events[i].kind == READ,
    };
    return lost[how];
}

static void lose(struct world *world, bool *lost, unsigned how)
{
    size_t burst = 0;
    for (size_t i = 0; i < world->count; i++) {
        uint64_t dice = chance(world);
        burst = burst > 0 ? burst - 1 : how == 1 && dice % 50 == 0 ? dice % 97 : 0;
        lost[i] = burst > 0 || is_lost(world, i, how, dice);
    }
}

static void check(const struct world *world, bool all, uint64_t *exact, uint64_t *least)
{
    for (size_t i = 0; i < world->sum_count; i++) {
        const struct nt_run_sum *sum = &world->sums[i];
        const struct pair *truth = &world->truth[sum->slot - 1][sum->kind == READ][sum->session];
        assert_true(sum->count <= truth->count && sum->total <= truth->total);
        assert_true(!sum->exact || (sum->count == truth->count && sum->total == truth->total));
        assert_true(sum->exact || !all);
        *(sum->exact ? exact : least) += 1;
    }
    for (uint32_t at = 0; at < OBJECTS; at++) {
        for (uint32_t kind = 0; kind < 2; kind++) {
            for (uint64_t session = 0; session < SESSIONS; session++)
                assert_true(!all || world->truth[at][kind][session].count == 0 || sum_of(world, at, kind, session));
        }
    }
}

static void lives_by_chance(void **state)
{
    struct world *world = *state;
    bool lost[EVENTS];
    uint64_t exact[7] = { 0 }, least[7] = { 0 };
    world->random = (uint64_t)time(NULL);
    print_message("# seed %lu\n", world->random);
    for (unsigned turn = 0; turn < 700; turn++) {
        unsigned how = turn % 7;
        live(world, 20 + chance(world) % 600);
        lose(world, lost, how);
        tell(world, lost, turn / 7 % 2 == 0, NULL);
        check(world, how == 0, &exact[how], &least[how]);
        world_clear(world);
    }
    for (unsigned how = 0; how < 7; how++) {
        assert_true(exact[how] > 0);
        assert_true(how == 0 || least[how] > 0);
        print_message("# %u: exact %lu, at least %lu\n", how, exact[how], least[how]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_lost),
        TEST(all_is_lost),
        TEST(one_is_lost),
        TEST(one_is_lost_at_a_boundary),
        TEST(what_adds_up_is_exact),
        TEST(what_adds_up_by_accident),
        TEST(a_run_that_is_lost),
        TEST(a_join_is_late),
        TEST(joined),
        TEST(counts_without_room),
        TEST(a_join_is_lost),
        TEST(a_joined_read_is_lost),
        TEST(counted_in),
        TEST(only_what_is_asked_for),
        TEST(gone),
        TEST(lives_by_chance),
    };
    return cmocka_run_group_tests_name("model/runs", tests, NULL, NULL);
}
