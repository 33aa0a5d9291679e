/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards, locks, clocks and what a thread needs to count: that nothing waits without bound, that signals come back
   as they were, and that threads find and leave what they need. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "log/log_test.h"

static void guards_put_signals_back(void **state)
{
    (void)state;
    sigset_t mine, now;
    struct log_guard outer, inner;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &mine, NULL), 0);
    errno = 77;
    log_guard_enter(&outer);
    log_guard_enter(&inner);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int signal = 1; signal < 32; signal++)
        assert_true(sigismember(&now, signal) == 1 || signal == SIGKILL || signal == SIGSTOP);
    log_guard_leave(&inner);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGTERM), 1);
    log_guard_leave(&outer);
    assert_int_equal(errno, 77);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGTERM), 0);
    assert_int_equal(sigismember(&now, SIGUSR1), 1);
    sigemptyset(&mine);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
}

static void a_lock_is_waited_for_within_bounds(void **state)
{
    (void)state;
    uint32_t lock = 0;
    struct timespec before, after;
    assert_true(log_lock(&lock));
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_false(log_lock(&lock));
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec <= 10); /* milliseconds, but for a busy machine */
    log_unlock(&lock);
    assert_true(log_lock(&lock));
}

/* A table whose lock somebody left behind: events go on to be counted, new things are refused, nothing hangs. */
static void a_lock_left_behind(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_object_count(object, NT_WRITE, 1);
    assert_true(log_lock(&log->map.live->lock));
    nt_object_count(object, NT_WRITE, 1);
    nt_object_count(object, NT_READ, 1);
    assert_int_equal(test_channel(log, "y").handle, 0);
    nt_object_close(object);
    assert_sum(&view, object, NT_WRITE, 2, 2);
    assert_int_equal(view.live->refused_tallies, 1);
    assert_int_equal(view.live->refused_objects, 1);
    log_unlock(&log->map.live->lock);
    nt_object_count(object, NT_READ, 1);
    assert_sum(&view, object, NT_READ, 1, 1);
    view_close(&view);
    nt_log_close(log);
}

/* ---- clocks ---- */

static void clocks_and_their_pairs(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    const struct nt_layout_live *live = log->map.live;
    nt_time last = nt_now();
    for (int i = 0; i < 1000; i++) {
        nt_time now = nt_now();
        assert_true(now >= last);
        last = now;
    }
    uint64_t pairs = live->clock_pairs;
    log_clock_pair(log, false); /* not due */
    assert_int_equal(live->clock_pairs, pairs);
    for (uint64_t i = 0; i < 2 * NT_LAYOUT_CLOCK_PAIRS; i++) {
        log_clock_pair(log, true);
        const struct nt_layout_clock_pair *pair = &live->clock[(pairs + i) % NT_LAYOUT_CLOCK_PAIRS];
        assert_true(pair->ticks >= last && pair->ticks <= nt_now());
        if (!(log->map.header->flags & NT_HEADER_CLOCK_TSC))
            assert_true(pair->monotonic - pair->ticks < 100000000);
        last = pair->ticks;
    }
    assert_int_equal(live->clock_pairs, pairs + 2 * NT_LAYOUT_CLOCK_PAIRS);
    log->next_clock_pair = 0;
    count_times(test_channel(log, "x"), NT_WRITE, 1, 5000); /* a new chunk looks whether one is due */
    assert_int_equal(live->clock_pairs, pairs + 2 * NT_LAYOUT_CLOCK_PAIRS + 1);
    nt_log_close(log);
}

/* ---- threads ---- */

struct task {
    nt_object object;
    pthread_key_t key;
    int rounds;
};

static void *task_run(void *arg)
{
    struct task *task = arg;
    pthread_setspecific(task->key, task);
    nt_object_count(task->object, NT_WRITE, 1);
    return NULL;
}

/* Runs after ours in some rounds, as all destructors of keys made later do. */
static void task_ended(void *arg)
{
    struct task *task = arg;
    for (int i = 0; i < 100; i++)
        nt_object_count(task->object, NT_READ, 1);
    if (__atomic_sub_fetch(&task->rounds, 1, __ATOMIC_RELAXED) > 0)
        pthread_setspecific(task->key, task);
}

static void destructors_that_count(void **state)
{
    (void)state;
#if TEST_TSAN
    print_message("# the thread sanitizer takes a thread for ended before its destructors run\n");
    return;
#endif
    nt_log *log = test_log(1 << 20, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    static struct task tasks[100];
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        tasks[i] = (struct task){ .object = object, .rounds = 1 + i % 5 };
        assert_int_equal(pthread_key_create(&tasks[i].key, task_ended), 0);
        assert_int_equal(pthread_create(&thread, NULL, task_run, &tasks[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(pthread_key_delete(tasks[i].key), 0);
    }
    uint64_t rounds = 0; /* the C library stops after four */
    for (int i = 0; i < 100; i++)
        rounds += (uint64_t)(1 + i % 5 < 4 ? 1 + i % 5 : 4);
    assert_sum(&view, object, NT_WRITE, 100, 100);
    assert_sum(&view, object, NT_READ, 100 * rounds, 100 * rounds);
    assert_int_equal(view.live->dropped_no_ring, 0);
    view_close(&view);
    nt_log_close(log);
}

/* An ended thread gives its memory back: no more blocks are made than threads are alive at once. */
static void blocks_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    struct task task = { .object = object, .rounds = 1 };
    const struct nt_thread_ *seen = NULL;
    assert_int_equal(pthread_key_create(&task.key, NULL), 0);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, task_run, &task), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        const struct nt_thread_ *free_block = log_process()->free_threads;
        assert_non_null(free_block);
        assert_true(!seen || seen == free_block);
        seen = free_block;
    }
    assert_int_equal(pthread_key_delete(task.key), 0);
    nt_log_close(log);
}

/* ---- threads that can have nothing ---- */

static pthread_barrier_t starving;

static void *starving_run(void *arg)
{
    struct task *task = arg;
    pthread_barrier_wait(&starving); /* all have their stacks; then there is no memory any more */
    pthread_barrier_wait(&starving);
    nt_object_count(task->object, NT_WRITE, 1);
    nt_object_count(task->object, NT_WRITE, 1);
    nt_object_record(task->object, NT_WRITE, 1, NULL, 0);
    pthread_barrier_wait(&starving);
    return NULL;
}

/* A thread without memory of its own to count with still counts; its events are dropped. */
static void sums_need_no_memory(void **state)
{
    (void)state;
    enum { THREADS = 40 };
#if TEST_ASAN || TEST_TSAN
    print_message("# sanitizers need memory themselves\n");
    return;
#endif
    pid_t child = fork();
    if (child == 0) {
        nt_log *log = test_log(0, 16384);
        struct view view = view_open(nt_log_path(log));
        struct task task = { .object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED) };
        pthread_t threads[THREADS];
        nt_object_count(task.object, NT_WRITE, 1);
        pthread_barrier_init(&starving, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, starving_run, &task) != 0)
                _exit(1);
        pthread_barrier_wait(&starving);
        struct rlimit limit = { 4096, 4096 };
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(2);
        pthread_barrier_wait(&starving);
        pthread_barrier_wait(&starving);
        const struct nt_layout_tally *tally = view_tally(&view, view_object(&view, task.object), NT_WRITE);
        if (tally->sum.count != 3 * THREADS + 1 || tally->sum.total != 3 * THREADS + 1)
            _exit(3);
        _exit(view.live->dropped_no_ring > 0 ? 0 : 4);
    }
    assert_child_is_well(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(guards_put_signals_back), log_test(a_lock_is_waited_for_within_bounds),
        log_test(a_lock_left_behind),      log_test(clocks_and_their_pairs),
        log_test(destructors_that_count),  log_test(blocks_come_back),
        log_test(sums_need_no_memory),
    };
    return cmocka_run_group_tests_name("log/thread", tests, NULL, NULL);
}
