/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests only: sums by session as the reader tells them, the independent view to hold them against, and a program
   that does by chance what programs may do, and keeps its own account. */
#ifndef NT_SOURCE_LIVE_SESSION_TEST_H
#define NT_SOURCE_LIVE_SESSION_TEST_H

#include "source/live/session.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "log/session_test.h"
#include "source/live/object.h"

enum { SESSIONS = 400, THREADS = 3, OBJECTS = 9, SHARED = 3, KINDS = 3, TOLD_MAX = 8192 };

UNUSED static const nt_kind kinds[KINDS] = { NT_WRITE, NT_READ, 70 };
UNUSED static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

UNUSED static uint64_t chance(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

UNUSED static uint64_t seed_new(void)
{
    const char *text = getenv("TEST_SEED");
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return text != NULL ? strtoull(text, NULL, 0) : (uint64_t)now.tv_nsec * 1000003 + (uint64_t)now.tv_sec;
}

/* How many of so many turns: fewer where $TEST_SCALE is below the 1/10 of ordinary runs. */
UNUSED static int turns(int full)
{
    const char *text = getenv("TEST_SCALE");
    double above = 1, below = 1;
    if (text == NULL || sscanf(text, "%lf/%lf", &above, &below) < 1 || above * 10 >= below) {
        return full;
    }
    int fewer = (int)((double)full * above * 10 / below);
    return fewer > 2 ? fewer : 2;
}

/* ---- Reading ---- */

struct told_session {
    uint64_t id, parent;
    bool older, known, given, got, exact, standing, overdue, ended;
    char name[96];
};

struct reader {
    struct live_map map;
    struct live_objects *objects;
    struct live_sessions *sessions;
    struct session_sums sums;
    struct nt_source_pair totals[NT_LAYOUT_KINDS]; /* of the objects */
    struct told_session told[TOLD_MAX];
    size_t told_count;
    bool given; /* there are sessions that were given up */
    void (*call)(void *arg);
    void *call_arg;
};

UNUSED static int take_given(void *arg, const struct nt_source_given *given)
{
    struct reader *reader = arg;
    assert_true(given->all || given->page_count != 0);
    assert_int_equal(given->program, 7);
    reader->given = true;
    return 0;
}

UNUSED static int take_session(void *arg, const struct nt_source_session *session)
{
    struct reader *reader = arg;
    assert_true(reader->told_count < TOLD_MAX);
    assert_int_equal(session->program, 7);
    assert_true(reader->told_count == 0 ? session->id == 0 && !session->older : session->id != 0 || session->older);
    for (size_t i = 0; i < session->sum_count; i++) {
        const struct nt_source_sum *sum = &session->sums[i];
        assert_true(i == 0 || sum->kind > session->sums[i - 1].kind);
        assert_true(sum->count != 0 || sum->total != 0);
        struct session_sum *to = sums_at(&reader->sums, session->id, sum->kind, session->older);
        assert_false(to->cell); /* told once */
        *to = (struct session_sum){ .session = session->id,
                                    .kind = sum->kind,
                                    .older = session->older,
                                    .cell = true,
                                    .count = sum->count,
                                    .total = sum->total };
    }
    struct told_session *told = &reader->told[reader->told_count++];
    *told = (struct told_session){ .id = session->id,
                                   .parent = session->parent,
                                   .older = session->older,
                                   .known = session->known,
                                   .given = session->given,
                                   .got = session->got,
                                   .exact = !session->given && !session->got,
                                   .standing = session->standing,
                                   .overdue = session->overdue,
                                   .ended = session->ended_at != 0 };
    assert_true(session->name.size < sizeof told->name);
    memcpy(told->name, session->name.data, session->name.size);
    return 0;
}

/* path NULL: of no log yet */
UNUSED static struct reader *reader_new(const char *path)
{
    char text[LIVE_MAP_TEXT];
    const struct live_map_owner owner = { .any = true };
    struct reader *reader = calloc(1, sizeof *reader);
    assert_non_null(reader);
    assert_true(path == NULL || live_map_open(&reader->map, AT_FDCWD, path, &owner, text) == 0);
    reader->objects = calloc(1, sizeof *reader->objects);
    reader->sessions = live_sessions_new();
    assert_true(reader->objects != NULL && reader->sessions != NULL);
    return reader;
}

UNUSED static void reader_free(struct reader *reader)
{
    live_map_close(&reader->map);
    live_sessions_free(reader->sessions);
    free(reader->objects);
    session_sums_fini(&reader->sums);
    free(reader);
}

UNUSED static void read_objects(struct reader *reader)
{
    live_objects_init(reader->objects, &reader->map, &nanoseconds, 7);
    uint32_t slots = live_objects_slots(reader->objects);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (reader->call != NULL) {
            reader->call(reader->call_arg);
        }
        if (!live_objects_read(reader->objects, slot)) {
            continue;
        }
        const struct nt_source_object *object = &reader->objects->object;
        assert_int_equal(live_sessions_object(reader->sessions, object), 0);
        for (size_t i = 0; i < object->tally_count; i++) {
            reader->totals[object->tallies[i].kind].count += object->tallies[i].count;
            reader->totals[object->tallies[i].kind].total += object->tallies[i].total;
        }
        for (size_t i = 0; i < object->gone_count; i++) {
            reader->totals[object->gone[i].kind].count += object->gone[i].count;
            reader->totals[object->gone[i].kind].total += object->gone[i].total;
        }
    }
}

UNUSED static void read_again(struct reader *reader)
{
    const struct nt_source_sink sink = { .given = take_given, .session = take_session, .arg = reader };
    session_sums_fini(&reader->sums);
    reader->sums = (struct session_sums){ 0 };
    memset(reader->totals, 0, sizeof reader->totals);
    reader->told_count = 0;
    reader->given = false;
    live_sessions_between(reader->sessions, reader->call, reader->call_arg);
    assert_int_equal(live_sessions_begin(reader->sessions, &reader->map), 0);
    read_objects(reader);
    assert_int_equal(live_sessions_tell(reader->sessions, &nanoseconds, 7, false, &sink), 0);
}

UNUSED static void read_all(struct reader *reader)
{
    read_again(reader);
    assert_null(live_sessions_odd(reader->sessions));
}

static const struct told_session *told_of(const struct reader *reader, uint64_t id, bool older)
{
    for (size_t i = 0; i < reader->told_count; i++) {
        if (reader->told[i].id == id && reader->told[i].older == older) {
            return &reader->told[i];
        }
    }
    return NULL;
}

/* What one has, the other has too. That objects were opened is nobody's in the view. */
UNUSED static void check_has(const struct session_sums *sums, const struct session_sums *others)
{
    for (size_t i = 0; i < sums->room; i++) {
        const struct session_sum *one = &sums->sums[i];
        if (one->kind == 0 || one->kind == NT_OPEN || one->kind == NT_CLOSE) {
            continue;
        }
        struct nt_layout_pair other = session_sum(others, one->session, one->kind, one->older);
        if (other.count != one->count || other.total != one->total) {
            fail_msg("session %016lx%s kind %u: %lu, %lu, but %lu, %lu", one->session, one->older ? " (older)" : "",
                     one->kind, one->count, one->total, other.count, other.total);
        }
    }
}

/* All that was told against the view of the same file; what is being folded at the moment it does not know. */
UNUSED static void check_view(const struct reader *reader, const struct view *view)
{
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    if (redo->sequence % 2 != 0) {
        return;
    }
    struct session_sums sums = session_sums(view);
    check_has(&sums, &reader->sums);
    check_has(&reader->sums, &sums);
    for (size_t i = 0; i < reader->told_count; i++) {
        const struct told_session *told = &reader->told[i];
        assert_int_equal(told->given, told->id != 0 && session_was_given(view, told->id));
        assert_int_equal(told->got, told->id != 0 && session_has(view, told->id, NT_SESSION_GOT));
    }
    session_sums_fini(&sums);
}

/* Sessions, none and older included, have what the objects have. */
UNUSED static void check_whole(const struct reader *reader)
{
    struct nt_source_pair sums[NT_LAYOUT_KINDS] = { 0 };
    for (size_t i = 0; i < reader->sums.room; i++) {
        const struct session_sum *one = &reader->sums.sums[i];
        sums[one->kind].count += one->kind != 0 ? one->count : 0;
        sums[one->kind].total += one->kind != 0 ? one->total : 0;
    }
    bool exact = told_of(reader, 0, false)->exact;
    for (uint32_t kind = 1; kind < NT_LAYOUT_KINDS; kind++) {
        bool clamped = !exact && session_sum(&reader->sums, 0, kind, false).count == 0;
        if (!clamped) {
            assert_int_equal(sums[kind].count, reader->totals[kind].count);
            assert_int_equal(sums[kind].total, reader->totals[kind].total);
        }
        assert_true((int64_t)session_sum(&reader->sums, 0, kind, false).count >= 0);
    }
}

/* ---- A program that does by chance what programs may do ---- */

struct truth {
    uint64_t count, total;
    uint64_t least, most; /* counts since the reader began */
};

struct program;

struct worker { /* a thread of it: a settler of its own */
    struct program *program;
    pthread_t thread;
    sem_t go, done;
    bool end;
};

struct program {
    nt_log *log;
    uint64_t random;
    uint32_t sessions;          /* as many of its sessions are used */
    uint32_t at_once;           /* steps at a time */
    uint64_t ids[SESSIONS];     /* 0: none */
    nt_object objects[OBJECTS]; /* the first SHARED are shared */
    uint32_t own[OBJECTS];      /* their sessions */
    struct truth truth[SESSIONS][KINDS];
    struct worker workers[THREADS];
    uint64_t steps;
};

UNUSED static void truth_add(struct program *program, uint32_t session, uint32_t kind, int64_t count, uint64_t total)
{
    struct truth *truth = &program->truth[session][kind];
    truth->count += (uint64_t)count;
    truth->total += total;
    truth->least = truth->count < truth->least ? truth->count : truth->least;
    truth->most = truth->count > truth->most ? truth->count : truth->most;
}

UNUSED static void step_other(struct program *program, uint32_t object, uint32_t session, uint64_t value)
{
    nt_object *handle = &program->objects[object];
    if (object < SHARED) {
        return;
    }
    switch (chance(&program->random) % 8) {
    case 0:
        nt_object_close(*handle);
        *handle = test_channel(program->log, "x");
        program->own[object] = 0;
        break;
    case 1:
        *handle = nt_object_succeed(*handle);
        break;
    default:
        nt_object_count(*handle, NT_READ, value);
        truth_add(program, program->own[object], 1, 1, value);
        if (session != program->own[object]) {
            truth_add(program, program->own[object], 1, -1, -value);
            truth_add(program, session, 1, 1, value);
        }
        nt_object_session_join(*handle, program->ids[session], value);
        program->own[object] = session;
    }
}

UNUSED static void step(struct program *program)
{
    uint32_t object = (uint32_t)(chance(&program->random) % OBJECTS);
    uint32_t session = (uint32_t)(chance(&program->random) % program->sessions);
    uint32_t kind = (uint32_t)(chance(&program->random) % KINDS);
    uint64_t value = chance(&program->random) << 32 | chance(&program->random);
    nt_object handle = program->objects[object];
    program->steps++;
    switch (chance(&program->random) % 8) {
    case 0:
        nt_object_count_in(handle, program->ids[session], kinds[kind], value);
        truth_add(program, session, kind, 1, value);
        break;
    case 1:
        step_other(program, object, session, value);
        break;
    case 2:
    case 3:
    case 4:
        nt_object_session_set(handle, program->ids[session]);
        program->own[object] = object < SHARED ? 0 : session;
        break;
    default:
        nt_object_count(handle, kinds[kind], value);
        truth_add(program, program->own[object], kind, 1, value);
    }
}

UNUSED static void steps(struct program *program)
{
    uint64_t count = 1 + chance(&program->random) % program->at_once;
    for (uint64_t i = 0; i < count; i++) {
        step(program);
    }
}

UNUSED static void *worker_run(void *arg)
{
    struct worker *worker = arg;
    for (;;) {
        while (sem_wait(&worker->go) != 0) {
        }
        if (worker->end) {
            return NULL;
        }
        steps(worker->program);
        (void)sem_post(&worker->done);
    }
}

/* One thread goes on for a while, now: mostly this one, that costs less. */
UNUSED static void program_go(void *arg)
{
    struct program *program = arg;
    struct worker *worker = &program->workers[chance(&program->random) % THREADS];
    if (chance(&program->random) % 8 != 0) {
        steps(program);
        return;
    }
    (void)sem_post(&worker->go);
    while (sem_wait(&worker->done) != 0) {
    }
}

UNUSED static struct program *program_new(uint64_t seed, uint64_t cap, uint32_t sessions)
{
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    print_message("# seed %lu\n", seed);
    *program = (struct program){ .random = seed, .sessions = sessions, .at_once = 8 };
    program->log = test_log(cap, 16384);
    for (uint32_t i = 1; i < sessions; i++) { /* of this log, of others, and parts of both */
        program->ids[i] = i % 3 != 0 ? nt_session_new(program->log, "s", i % 3 == 2 ? program->ids[i - 1] : 0)
                                     : UINT64_C(0xfff0000000000000) + i;
    }
    for (uint32_t i = 0; i < OBJECTS; i++) {
        program->objects[i] = test_object(program->log, "x", (nt_object){ 0 }, i < SHARED ? NT_SHARED : NT_EXCLUSIVE);
    }
    for (int i = 0; i < THREADS; i++) {
        struct worker *worker = &program->workers[i];
        worker->program = program;
        assert_int_equal(sem_init(&worker->go, 0, 0), 0);
        assert_int_equal(sem_init(&worker->done, 0, 0), 0);
        assert_int_equal(pthread_create(&worker->thread, NULL, worker_run, worker), 0);
    }
    return program;
}

UNUSED static void program_free(struct program *program)
{
    for (int i = 0; i < THREADS; i++) {
        program->workers[i].end = true;
        (void)sem_post(&program->workers[i].go);
        (void)pthread_join(program->workers[i].thread, NULL);
    }
    (void)unlink(nt_log_path(program->log));
    nt_log_close(program->log);
    free(program);
}

UNUSED static void truth_begin(struct program *program)
{
    for (uint32_t i = 0; i < program->sessions; i++) {
        for (uint32_t k = 0; k < KINDS; k++) {
            struct truth *truth = &program->truth[i][k];
            truth->least = truth->most = truth->count;
        }
    }
}

struct outcome {
    uint64_t exact, least, none_exact, none_most;
};

/* None may have what was on its way to others. */
UNUSED static bool sum_is_right(const struct truth *truth, struct nt_layout_pair sum, bool exact, bool none)
{
    bool most = sum.count <= truth->most, least = sum.count >= truth->least;
    if (exact) {
        return most && least && (truth->least != truth->most || sum.total == truth->total);
    }
    return none ? least || sum.count == 0 : most;
}

/* What was told against what was so since the reader began. */
UNUSED static void check_truth(const struct reader *reader, const struct program *program, struct outcome *outcome)
{
    for (uint32_t i = 0; i < program->sessions; i++) {
        const struct told_session *told = told_of(reader, program->ids[i], false);
        bool exact = told == NULL || told->exact;
        for (uint32_t k = 0; k < KINDS; k++) {
            const struct truth *truth = &program->truth[i][k];
            struct nt_layout_pair sum = session_sum(&reader->sums, program->ids[i], kinds[k], false);
            if (!sum_is_right(truth, sum, exact, i == 0)) {
                fail_msg("session %u (%016lx) kind %u: %lu, %lu, but counted %lu to %lu, %lu%s", i, program->ids[i],
                         kinds[k], sum.count, sum.total, truth->least, truth->most, truth->total,
                         exact ? "" : ", not exact");
            }
        }
        *(i != 0 ? exact ? &outcome->exact : &outcome->least : exact ? &outcome->none_exact : &outcome->none_most) += 1;
    }
}

#endif
