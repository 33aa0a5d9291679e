/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by session of programs in motion: one goes on between any two looks of the reader, one has threads that never
   stop. Every session has what it had in that time or says that it may have more, and all of them add up to the
   sums of the objects. */
#include "source/live/session_test.h"

/* ---- In motion ---- */

/* The program goes on between any two looks. `at_once`: how far. */
static void goes_on(uint32_t at_once, uint32_t sessions, int turns, struct outcome *outcome)
{
    struct program *program = program_new(seed_new(), 1 << 23, sessions);
    struct reader *reader = reader_new(nt_log_path(program->log));
    program->at_once = at_once;
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; i < 20; i++) {
            program_go(program);
        }
        truth_begin(program);
        reader->call = program_go;
        reader->call_arg = program;
        read_all(reader);
        check_truth(reader, program, outcome);
        check_whole(reader);
        reader->call = NULL;
        read_all(reader);
        truth_begin(program);
        struct outcome rest = { 0 };
        check_truth(reader, program, &rest);
        assert_int_equal(rest.least + rest.none_most, 0);
    }
    reader_free(reader);
    program_free(program);
}

static void while_it_goes_on(void **state)
{
    (void)state;
    struct outcome outcome = { 0 };
    goes_on(2, 30, turns(12), &outcome);
    assert_true(outcome.exact > 50 * outcome.least);
    assert_int_equal(outcome.none_exact + outcome.none_most, turns(12));
}

/* Faster than it is read: buffers are overwritten many times between two looks. */
static void while_it_rushes_on(void **state)
{
    (void)state;
    struct outcome outcome = { 0 };
    goes_on(600, SESSIONS, turns(12), &outcome);
    assert_true(outcome.exact > outcome.least);
}

/* ---- One thing at each look ---- */

enum thing {
    THING_SET,
    THING_THREAD, /* by a new thread */
    THING_JOIN,
    THING_CLOSE,
    THING_IN,
    THING_IN_NONE,
    THING_GROW, /* many more sessions */
    THING_GIVE, /* more, and there is no room for them */
    THING_RUSH, /* the same, many of them */
    THING_NOTHING,
    THINGS
};

enum { OTHERS = 3000 };

struct script {
    nt_log *log;
    nt_object rests, others[4], shared;
    enum thing thing;
    bool hurry; /* from then on moves are overwritten between any two looks */
    int at, look;
    uint64_t next; /* session */
    uint64_t before[OTHERS], counts[OTHERS];
};

enum { X = 1000, WATCHED = 100 };

static void script_others(struct script *script, uint64_t sessions, int times)
{
    for (int i = 0; i < times; i++) {
        uint64_t session = script->next++ % sessions;
        nt_object_session_set(script->others[i % 4], UINT64_C(0x9000) + session);
        nt_object_count(script->others[i % 4], NT_READ, 1);
        script->counts[session]++;
    }
}

static void *script_thread(void *arg)
{
    struct script *script = arg;
    nt_object_session_set(script->rests, X + 1);
    return NULL;
}

static void script_thing(struct script *script)
{
    pthread_t thread;
    switch (script->thing) {
    case THING_SET:
        nt_object_session_set(script->rests, X + 1);
        nt_object_count(script->rests, NT_READ, 1);
        break;
    case THING_THREAD:
        assert_int_equal(pthread_create(&thread, NULL, script_thread, script), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        break;
    case THING_JOIN:
        nt_object_session_join(script->rests, X + 1, 1);
        break;
    case THING_CLOSE:
        nt_object_close(script->rests);
        break;
    case THING_IN:
        nt_object_count_in(script->rests, X + 1, NT_READ, 1);
        break;
    case THING_IN_NONE:
        nt_object_count_in(script->rests, 0, NT_READ, 1);
        break;
    case THING_GROW:
        script_others(script, OTHERS, 600);
        break;
    case THING_GIVE:
        script_others(script, 400, 70);
        break;
    case THING_RUSH:
        script_others(script, 400, 600);
        break;
    default:
        break;
    }
}

static void script_look(void *arg)
{
    struct script *script = arg;
    if (script->look == script->at) {
        script_thing(script);
    }
    if ((script->thing == THING_IN || script->thing == THING_IN_NONE) && script->look == script->at + 2) {
        nt_object_session_set(script->rests, X + 2);
    }
    if (script->hurry && script->look >= script->at) {
        script_others(script, 64, 300);
    }
    script->look++;
}

static bool gives(enum thing thing)
{
    return thing == THING_GIVE || thing == THING_RUSH;
}

static void script_check(const struct reader *reader, const struct script *script, struct outcome *outcome)
{
    bool exact = told_of(reader, X, false)->exact;
    uint64_t count = session_sum(&reader->sums, X, NT_READ, false).count;
    check_whole(reader);
    assert_true(count <= WATCHED && (!exact || count >= WATCHED - (script->thing == THING_JOIN)));
    outcome->exact += exact;
    outcome->least += !exact;
    assert_true(gives(script->thing) || told_of(reader, X + 3, false)->exact);
    assert_int_equal(session_sum(&reader->sums, X + 3, NT_READ, false).count, WATCHED);
    uint64_t none = session_sum(&reader->sums, 0, NT_READ, false).count;
    assert_true(!told_of(reader, 0, false)->exact || none <= (script->thing == THING_IN_NONE));
    for (uint64_t i = 0; i < OTHERS; i++) {
        const struct told_session *told = told_of(reader, UINT64_C(0x9000) + i, false);
        count = session_sum(&reader->sums, UINT64_C(0x9000) + i, NT_READ, false).count;
        assert_true(count <= script->counts[i]);
        assert_true((told != NULL && !told->exact) || reader->given || count >= script->before[i]);
    }
}

/* Returns whether there is such a look. */
static bool script_run(enum thing thing, bool hurry, int at, struct outcome *outcome)
{
    struct script script = { .log = test_log(1 << 20, 16384), .thing = thing, .hurry = hurry, .at = at };
    struct reader *reader = reader_new(nt_log_path(script.log));
    script.rests = test_channel(script.log, "rests");
    for (int i = 0; i < 4; i++) {
        script.others[i] = test_channel(script.log, "x");
    }
    nt_object last = test_channel(script.log, "rests too");
    if (gives(thing)) {
        script.log->map.live->settlement_backed = script.log->map.header->cap / 4; /* no more groups */
    }
    nt_object_session_set(last, X + 3);
    count_times(last, NT_READ, 1, WATCHED);
    nt_object_session_set(script.rests, X);
    count_times(script.rests, NT_READ, 1, WATCHED);
    script_others(&script, gives(thing) ? 400 : 64, 700);
    memcpy(script.before, script.counts, sizeof script.before);
    reader->call = script_look;
    reader->call_arg = &script;
    read_all(reader);
    script_check(reader, &script, outcome);
    bool there = script.look > at;
    reader_free(reader);
    (void)unlink(nt_log_path(script.log));
    nt_log_close(script.log);
    return there;
}

static void at_each_look(void **state)
{
    (void)state;
    for (int thing = 0; thing < THINGS; thing++) {
        for (int hurry = 0; hurry < 2; hurry++) {
            struct outcome outcome = { 0 };
            for (int at = 0; script_run((enum thing)thing, hurry != 0, at, &outcome); at += 12 / turns(12)) {
            }
            assert_true(outcome.exact > 0);
            assert_true(hurry || outcome.least == 0);
        }
    }
}

/* Threads that never stop, each on objects of its own, one session after the other; and one object that rests. */
struct runner {
    nt_log *log;
    nt_object shared;
    pthread_t thread;
    uint64_t ids[SESSIONS];
    uint64_t begun[SESSIONS], done[SESSIONS]; /* counts, that measured 1 each */
    uint64_t before[SESSIONS];                /* `done` when the reader began */
    bool end;
};

static void *runner_run(void *arg)
{
    struct runner *runner = arg;
    nt_object object = test_channel(runner->log, "x");
    for (uint32_t i = 0; !__atomic_load_n(&runner->end, __ATOMIC_RELAXED); i++) {
        uint32_t session = i * 7 % SESSIONS;
        nt_object_session_set(object, runner->ids[session]);
        for (uint32_t k = 0; k < 1 + i % 3; k++) {
            __atomic_fetch_add(&runner->begun[session], 1, __ATOMIC_SEQ_CST);
            if (i % 5 == 0) {
                nt_object_count_in(runner->shared, runner->ids[session], NT_WRITE, 1);
            } else {
                nt_object_count(object, NT_WRITE, 1);
            }
            __atomic_fetch_add(&runner->done[session], 1, __ATOMIC_SEQ_CST);
        }
    }
    nt_object_close(object);
    return NULL;
}

static void check_runner(const struct reader *reader, const struct runner *runner, bool rests, uint64_t *exact)
{
    for (uint32_t i = 0; i < SESSIONS; i++) {
        const struct told_session *told = told_of(reader, runner->ids[i], false);
        struct nt_layout_pair sum = session_sum(&reader->sums, runner->ids[i], NT_WRITE, false);
        assert_int_equal(sum.count, sum.total);
        assert_true(sum.count <= __atomic_load_n(&runner->begun[i], __ATOMIC_SEQ_CST));
        if (told == NULL || told->exact) {
            assert_true(sum.count >= runner->before[i]);
            ++*exact;
        }
        assert_true(!rests || sum.count == runner->done[i]);
    }
}

static void while_threads_run(void **state)
{
    (void)state;
    const int all = turns(30);
    struct runner *runners = calloc(THREADS, sizeof *runners);
    assert_non_null(runners);
    nt_log *log = test_log(1 << 24, 16384);
    struct reader *reader = reader_new(nt_log_path(log));
    nt_object rests = test_channel(log, "rests"), shared = test_object(log, "s", rests, NT_SHARED);
    for (uint64_t i = 1; i <= 3; i++) {
        nt_object_session_set(rests, i);
        nt_object_count(rests, NT_WRITE, i);
    }
    for (uint32_t t = 0; t < THREADS; t++) {
        runners[t].log = log;
        runners[t].shared = shared;
        for (uint64_t i = 0; i < SESSIONS; i++) {
            runners[t].ids[i] = UINT64_C(0x7000000000000000) + t * SESSIONS + i;
        }
        assert_int_equal(pthread_create(&runners[t].thread, NULL, runner_run, &runners[t]), 0);
    }
    uint64_t exact = 0;
    for (int turn = 0; turn <= all; turn++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            if (turn == all) {
                __atomic_store_n(&runners[t].end, true, __ATOMIC_RELAXED);
                assert_int_equal(pthread_join(runners[t].thread, NULL), 0);
            }
            for (uint32_t i = 0; i < SESSIONS; i++) {
                runners[t].before[i] = __atomic_load_n(&runners[t].done[i], __ATOMIC_SEQ_CST);
            }
        }
        read_all(reader);
        check_whole(reader);
        for (uint32_t t = 0; t < THREADS; t++) {
            check_runner(reader, &runners[t], turn == all, &exact);
        }
        for (uint64_t i = 1; i <= 3; i++) {
            assert_true(told_of(reader, i, false)->exact);
            assert_int_equal(session_sum(&reader->sums, i, NT_WRITE, false).total, i);
        }
    }
    assert_true(exact > (uint64_t)all * THREADS * SESSIONS / 2);
    reader_free(reader);
    nt_log_close(log);
    free(runners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(while_it_goes_on),
        log_test(while_it_rushes_on),
        log_test(at_each_look),
        log_test(while_threads_run),
    };
    return cmocka_run_group_tests_name("source/live/session_motion", tests, NULL, NULL);
}
