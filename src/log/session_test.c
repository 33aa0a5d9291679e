/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: what they sum to after any order of changes, also of shared objects, handlers, ended threads and closed
   objects; what the first record after a change says; names and parents. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "log/session_test.h"

#define assert_session(view, session, kind, wanted_count, wanted_total)         \
    do {                                                                        \
        struct session_sums sums_ = session_sums(view);                         \
        struct nt_layout_pair sum_ = session_sum(&sums_, session, kind, false); \
        session_sums_fini(&sums_);                                              \
        assert_int_equal(sum_.count, wanted_count);                             \
        assert_int_equal(sum_.total, wanted_total);                             \
    } while (0)

static void counts_belong_to_the_session_of_the_moment(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x"), other = test_channel(log, "y");
    nt_object_count(object, NT_WRITE, 5);
    nt_object_session_set(object, 77);
    assert_int_equal(nt_object_session(object), 77);
    nt_object_count(object, NT_WRITE, 10);
    nt_object_count(object, NT_READ, 1);
    nt_object_session_set(other, 77);
    nt_object_count(other, NT_WRITE, 100);
    assert_session(&view, 77, NT_WRITE, 2, 110); /* while it runs */
    nt_object_session_set(object, UINT64_MAX);
    nt_object_count(object, NT_WRITE, 20);
    nt_object_session_set(object, 77);
    nt_object_count(object, NT_WRITE, 30);
    nt_object_session_set(object, 0);
    nt_object_count(object, NT_WRITE, 40);
    assert_session(&view, 0, NT_WRITE, 2, 45);
    assert_session(&view, 77, NT_WRITE, 3, 140);
    assert_session(&view, 77, NT_READ, 1, 1);
    assert_session(&view, UINT64_MAX, NT_WRITE, 1, 20);
    view_close(&view);
    nt_log_close(log);
}

static void ids_of_all_sizes(void **state)
{
    (void)state;
    static const uint64_t ids[] = {
        1, UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX
    };
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    for (size_t turn = 0; turn < 100; turn++)
        for (size_t i = 0; i < 6; i++) {
            nt_object_session_set(object, ids[i]);
            nt_object_count(object, NT_WRITE, ids[i]);
        }
    nt_object_session_set(object, 0);
    for (size_t i = 0; i < 6; i++)
        assert_session(&view, ids[i], NT_WRITE, 100, ids[i] * 100);
    view_close(&view);
    nt_log_close(log);
}

/* More kinds than an entry holds: the rest of the tallies is in blocks. */
static void all_kinds_settle(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    for (uint64_t session = 1; session <= 3; session++) {
        nt_object_session_set(object, session);
        for (nt_kind kind = 1; kind < 255; kind++)
            nt_object_count(object, kind, session * kind);
    }
    nt_object_session_set(object, 9);
    for (uint64_t session = 1; session <= 3; session++)
        for (nt_kind kind = 1; kind < 255; kind++)
            assert_session(&view, session, kind, 1, session * kind);
    view_close(&view);
    nt_log_close(log);
}

/* That an object was opened and closed is of no session, also where more of these kinds was counted. */
static void opening_and_closing_is_of_none(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (nt_kind other = 0; other < 4; other++) { /* the tallies lie in the entry, or in a block */
        nt_object object = test_channel(log, "x");
        for (nt_kind kind = 0; kind < other; kind++)
            nt_object_count(object, 100 + kind, 1);
        nt_object_session_set(object, 5 + other);
        nt_object_count(object, NT_OPEN, 10);
        nt_object_count(object, NT_CLOSE, 20);
        assert_session(&view, 5 + other, NT_OPEN, 1, 10);
        nt_object_close(object);
        assert_session(&view, 5 + other, NT_OPEN, 1, 10);
        assert_session(&view, 5 + other, NT_CLOSE, 1, 20);
    }
    view_close(&view);
    nt_log_close(log);
}

static void sessions_that_go_with_the_count(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object above = test_channel(log, "above");
    nt_object_session_set(above, 5);
    nt_object shared = test_object(log, "s", above, NT_SHARED), own = test_object(log, "e", above, NT_EXCLUSIVE);
    nt_object_session_set(shared, 6); /* it has none */
    assert_int_equal(nt_object_session(shared), 0);
    assert_int_equal(nt_object_session(own), 5);
    for (uint64_t i = 1; i <= 1000; i++) {
        nt_object_count_in(shared, i % 10, NT_WRITE, i);
        nt_object_count_in_at(own, i % 10, NT_READ, i, 1000);
    }
    nt_object_count(shared, NT_WRITE, 1);
    nt_object_count(own, NT_READ, 1);
    uint64_t total = 0;
    for (uint64_t i = 10; i <= 1000; i += 10)
        total += i;
    for (uint64_t session = 0; session < 10; session++) {
        uint64_t sum = session ? total - 100 * (10 - session) : total;
        assert_session(&view, session, NT_WRITE, 100 + !session, sum + !session);
        assert_session(&view, session, NT_READ, 100 + (session == 5), sum + (session == 5));
    }
    assert_sum(&view, shared, NT_WRITE, 1001, 500501);
    view_close(&view);
    nt_log_close(log);
}

static void a_message_joins(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_object_count(object, NT_READ, 7);
    nt_object_count(object, NT_READ, 8);
    nt_object_session_join(object, 50, 8);
    nt_object_count(object, NT_WRITE, 1);
    nt_object_count(object, NT_READ, 9);
    nt_object_session_join(object, 60, 9);
    nt_object_session_join(object, 60, 9); /* is in it already */
    nt_object_count(object, NT_READ, 10);
    nt_object_session_join(object, 0, 10);
    assert_session(&view, 0, NT_READ, 2, 17);
    assert_session(&view, 50, NT_READ, 1, 8);
    assert_session(&view, 50, NT_WRITE, 1, 1);
    assert_session(&view, 60, NT_READ, 1, 9);
    const struct nt_layout_ring *ring = view_ring(&view, 0);
    const struct nt_layout_record *record = view_record(&view, ring, nth(4));
    assert_int_equal(record_kind(record), NT_SESSION);
    assert_int_equal(record->session, 50);
    assert_int_equal(record->value, NT_SESSION_JOIN);
    assert_int_equal(record->argument, 2);
    view_close(&view);
    nt_log_close(log);
}

/* The first record of a kind after a change says where the session began; no other does. */
static void the_first_is_flagged(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 1 << 20);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    const nt_kind kinds[] = { NT_WRITE, NT_READ, NT_PING, NT_POLL, NT_QUEUE, 70, 90, 200 };
    nt_object_mask_set(object, NT_MASK_ALL);
    const struct nt_layout_ring *ring = view_ring(&view, 0);
    uint64_t position = nth(2);
    for (uint64_t session = 0; session < 20; session++) {
        nt_object_session_set(object, session);
        for (int turn = 0; turn < 3; turn++)
            for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++, position += 64) {
                nt_object_count(object, kinds[i], 1);
                const struct nt_layout_record *record = view_record(&view, ring, position);
                assert_int_equal(record->session, session);
                assert_int_equal(record_kind(record), kinds[i]);
                assert_int_equal(record_flags(record), turn ? 0 : NT_RECORD_FIRST);
            }
    }
    nt_object_count_in(object, 1000, NT_WRITE, 1);
    assert_int_equal(record_flags(view_record(&view, ring, position)), NT_RECORD_IN);
    assert_int_equal(view_object(&view, object)->flags, NT_OBJECT_MIXED);
    nt_object_session_set(object, 2000);
    nt_object_mask_set(object, 0); /* the boundary is not logged: what is logged later does not stand for it */
    nt_object_count(object, NT_WRITE, 1);
    nt_object_mask_set(object, NT_MASK_ALL);
    nt_object_count(object, NT_WRITE, 1);
    assert_int_equal(record_flags(view_record(&view, ring, position + 64)), 0);
    view_close(&view);
    nt_log_close(log);
}

/* An object that ends leaves its sums with its session, also when its slot is used again. */
static void the_closed_stay_counted(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct view view = view_open(nt_log_path(log));
    for (uint64_t i = 0; i < 3000; i++) {
        nt_object object = test_channel(log, "x");
        nt_object_session_set(object, 1 + i % 7);
        nt_object_count(object, NT_WRITE, i);
        if (i % 3 == 0)
            object = nt_object_succeed(object);
        nt_object_count(object, NT_READ, 1);
        nt_object_close(object);
    }
    uint64_t counts[7] = { 0 }, totals[7] = { 0 };
    for (uint64_t i = 0; i < 3000; i++) {
        counts[i % 7]++;
        totals[i % 7] += i;
    }
    for (uint64_t i = 0; i < 7; i++) {
        assert_session(&view, 1 + i, NT_WRITE, counts[i], totals[i]);
        assert_session(&view, 1 + i, NT_READ, counts[i], counts[i]);
    }
    assert_session(&view, 0, NT_WRITE, 0, 0);
    view_close(&view);
    nt_log_close(log);
}

/* ---- handlers and threads ---- */

static nt_object handler_own, handler_shared;
static uint64_t handler_counts[8], handler_runs;

/* Changes the session of an object of its own, and counts on a shared one. */
static void handler(int signal)
{
    (void)signal;
    for (int i = 0; i < 3; i++) {
        uint64_t session = 1 + handler_runs++ % 7;
        nt_object_session_set(handler_own, session);
        nt_object_count(handler_own, NT_READ, session);
        nt_object_count_in(handler_shared, session, NT_READ, session);
        handler_counts[session] += 2;
    }
}

static void handlers_that_change_sessions(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 1 << 20);
    struct view view = view_open(nt_log_path(log));
    handler_own = test_channel(log, "h");
    handler_shared = test_object(log, "hs", (nt_object){ 0 }, NT_SHARED);
    nt_object object = test_channel(log, "x");
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t counts[100] = { 0 };
    for (uint64_t i = 0; i < 300000 || handler_runs < 1000; i++) {
        nt_object_session_set(object, 100 + i % 97);
        nt_object_count(object, NT_WRITE, i % 97);
        counts[i % 97]++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    for (uint64_t i = 0; i < 97; i++)
        assert_session(&view, 100 + i, NT_WRITE, counts[i], counts[i] * i);
    /* on a machine that is busy enough, handlers may come faster than what they interrupt goes on */
    for (uint64_t session = 1; session < 8 && !view.live->unsettled; session++)
        assert_session(&view, session, NT_READ, handler_counts[session], handler_counts[session] * session);
    view_close(&view);
    nt_log_close(log);
}

struct thread_task {
    nt_object shared;
    nt_log *log;
    uint64_t first;
};

static void *thread_run(void *arg)
{
    const struct thread_task *task = arg;
    nt_object object = test_channel(task->log, "t");
    for (uint64_t i = 0; i < 500; i++) {
        nt_object_session_set(object, 1 + (task->first + i) % 50);
        nt_object_count(object, NT_WRITE, 1);
        nt_object_count_in(task->shared, 1 + i % 50, NT_READ, 2);
    }
    return NULL;
}

/* Threads come and go; what one leaves in its buffer the next one goes on with. */
static void threads_hand_on_what_they_have(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    struct thread_task task = { test_object(log, "s", (nt_object){ 0 }, NT_SHARED), log, 0 };
    for (uint64_t turn = 0; turn < 20; turn++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, thread_run, &task), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(view.live->settlers <= 3);
    for (uint64_t session = 1; session <= 50; session++) {
        assert_session(&view, session, NT_WRITE, 600, 600);
        assert_session(&view, session, NT_READ, 600, 1200);
    }
    view_close(&view);
    nt_log_close(log);
}

/* A forked child has totals of its own. */
static void a_child_has_its_own(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_object_session_set(object, 5);
    nt_object_count(object, NT_WRITE, 1);
    nt_object_session_set(object, 6);
    nt_object_count(object, NT_WRITE, 10);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(object, NT_WRITE, 100);
        nt_object_session_set(object, 7);
        nt_object_count(object, NT_WRITE, 1000);
        nt_object_session_set(object, 0);
        struct view own = view_open(nt_log_path(log));
        assert_session(&own, 5, NT_WRITE, 0, 0);
        assert_session(&own, 6, NT_WRITE, 1, 100);
        assert_session(&own, 7, NT_WRITE, 1, 1000);
        _exit(own.header->origin == view.header->id ? 0 : 1);
    }
    assert_child_is_well(child);
    nt_object_session_set(object, 0);
    assert_session(&view, 5, NT_WRITE, 1, 1);
    assert_session(&view, 6, NT_WRITE, 1, 10);
    assert_session(&view, 7, NT_WRITE, 0, 0);
    view_close(&view);
    nt_log_close(log);
}

/* ---- names and parents ---- */

static void names_and_parents(void **state)
{
    (void)state;
    char longer[200];
    memset(longer, 'n', sizeof(longer));
    longer[199] = '\0';
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_session root = nt_session_new(log, "GET /", 0), part = nt_session_new(log, longer, root);
    nt_session foreign = nt_session_new(log, NULL, UINT64_C(0xabcd000000000001));
    assert_int_equal(part >> 48, root >> 48);
    assert_int_equal(foreign >> 48, 0xabcd);
    assert_int_equal((part - root) & 0xffffffffffff, 1);
    const struct nt_layout_session *entry = view_at(&view, NT_REGION_SESSIONS, 0);
    assert_int_equal(entry[0].id, root);
    assert_int_equal(entry[0].parent, 0);
    assert_memory_equal(entry[0].name, "GET /", 5);
    assert_int_equal(entry[0].name_size, 5);
    assert_int_equal(entry[1].id, part);
    assert_int_equal(entry[1].parent, root);
    assert_int_equal(entry[1].name_size, sizeof(entry[1].name));
    assert_int_equal(entry[2].name_size, 0);
    nt_session_stand(log, root);
    assert_int_equal(entry[0].flags, NT_SESSION_STANDS);
    assert_int_equal(entry[0].ended, 0);
    nt_session_end(log, root);
    assert_int_not_equal(entry[0].ended, 0);
    nt_session_end(log, 12345); /* somebody else's */
    const struct nt_layout_ring *ring = view_ring(&view, 0);
    static const uint64_t what[] = { NT_SESSION_NEW,      NT_SESSION_NEW, NT_SESSION_NEW,
                                     NT_SESSION_STANDING, NT_SESSION_END, NT_SESSION_END };
    const nt_session whose[] = { root, part, foreign, root, root, 12345 };
    const nt_session parents[] = { 0, root, UINT64_C(0xabcd000000000001), 0, 0, 0 };
    for (uint64_t i = 0; i < 6; i++) {
        const struct nt_layout_record *record = view_record(&view, ring, nth(1 + i));
        assert_int_equal(record_kind(record), NT_SESSION);
        assert_int_equal(record->value, what[i]);
        assert_int_equal(record->session, whose[i]);
        assert_int_equal(record->argument, parents[i]);
    }
    assert_session(&view, root, NT_SESSION, 0, 0); /* about it, not in it */
    view_close(&view);
    nt_log_close(log);
}

/* The newest sessions are remembered; roots are spread. */
static void many_sessions(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct view view = view_open(nt_log_path(log));
    uint64_t room = view_region(&view, NT_REGION_SESSIONS)->size / sizeof(struct nt_layout_session);
    bool seen[256] = { false };
    int spread = 0;
    nt_session last = 0;
    for (uint64_t i = 0; i < 3 * room; i++) {
        last = nt_session_new(log, "s", 0);
        spread += !seen[last >> 56];
        seen[last >> 56] = true;
    }
    assert_true(spread == 256 || room < 1000);
    assert_true(spread > 200);
    assert_int_equal(view.live->sessions, 3 * room);
    const struct nt_layout_session *entry = view_at(&view, NT_REGION_SESSIONS, room - 1);
    assert_int_equal(entry->id, last);
    assert_non_null(log_session_find(&log->map, last));
    assert_null(log_session_find(&log->map, last - room));
    view_close(&view);
    nt_log_close(log);
}

/* Of a session that was given up the log says so also when its name has made room for others. */
static void the_given_are_not_forgotten(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct view view = view_open(nt_log_path(log));
    uint64_t room = view_region(&view, NT_REGION_SESSIONS)->size / sizeof(struct nt_layout_session);
    nt_session given = nt_session_new(log, "given", 0), kept = nt_session_new(log, "kept", 0);
    log_session_given(&log->map, given);
    log_session_given(&log->map, 12345); /* somebody else's */
    log_session_got(&log->map, kept);
    log_session_got(&log->map, 54321);
    for (uint64_t i = 0; i <= room; i++) {
        assert_true(session_has(&view, kept, NT_SESSION_GOT));
        assert_true(session_has(&view, 54321, NT_SESSION_GOT));
        assert_false(session_has(&view, given, NT_SESSION_GOT));
        assert_false(session_was_given(&view, 54321));
        assert_true(session_was_given(&view, given));
        assert_true(session_was_given(&view, 12345));
        assert_false(session_was_given(&view, kept));
        (void)nt_session_new(log, "other", 0);
    }
    assert_null(log_session_find(&log->map, given));
    nt_session parent = nt_session_new(log, "parent", 0), child = nt_session_new(log, "child", parent);
    assert_int_equal(log_session_parent(&log->map, child), parent);
    assert_int_equal(log_session_parent(&log->map, given), 0);
    log->map.live->sessions += room; /* others are made, and not in their places yet */
    log_session_given(&log->map, child);
    assert_true(session_was_given(&view, child));
    view_close(&view);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(counts_belong_to_the_session_of_the_moment),
        log_test(ids_of_all_sizes),
        log_test(all_kinds_settle),
        log_test(opening_and_closing_is_of_none),
        log_test(sessions_that_go_with_the_count),
        log_test(a_message_joins),
        log_test(the_first_is_flagged),
        log_test(the_closed_stay_counted),
        log_test(handlers_that_change_sessions),
        log_test(threads_hand_on_what_they_have),
        log_test(a_child_has_its_own),
        log_test(names_and_parents),
        log_test(many_sessions),
        log_test(the_given_are_not_forgotten),
    };
    return cmocka_run_group_tests_name("log/session", tests, NULL, NULL);
}
