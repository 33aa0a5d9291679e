/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: what a record says, how large rings are, whose they are one after another, and what is dropped. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "log/log_test.h"

static void a_record_says_all_of_an_event(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_object_count_at(object, NT_READ, 5, 111);
    nt_object_count_with(object, NT_READ, 6, 222);
    const struct nt_layout_ring *ring = view_ring(&view, 0);
    const struct nt_layout_record *record = view_record(&view, ring, nth(2));
    assert_int_equal(record->commit, NT_LAYOUT_COMMIT(nth(2), NT_READ | NT_RECORD_FIRST << 8));
    assert_int_equal(record->commit >> 16, 2);
    assert_int_equal(record->time, 111);
    assert_int_equal(record->session, 0);
    assert_int_equal(record->value, 5);
    assert_int_equal(record->sum.count, 1);
    assert_int_equal(record->sum.total, 5);
    assert_int_equal(record->argument, 0);
    assert_int_equal(record->object & ((1u << 28) - 1), handle_slot(object));
    assert_int_equal(record->generation, handle_generation(object));
    record = view_record(&view, ring, nth(3));
    assert_int_equal(record->sum.count, 2);
    assert_int_equal(record->sum.total, 11);
    assert_int_equal(record->argument, 222);
    view_close(&view);
    nt_log_close(log);
}

/* The oldest are overwritten; what was announced is never taken back; nothing lies beyond it. */
static void the_oldest_are_overwritten(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 16384, 65536, 1 << 20 };
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    char name[16];
    options.name = name;
    for (size_t i = 0; i < 3; i++) {
        nt_log *log;
        snprintf(name, sizeof(name), "size-%zu", i);
        options.ring_bytes = sizes[i];
        assert_int_equal(nt_log_open(&options, &log), 0);
        struct view view = view_open(nt_log_path(log));
        nt_object object = test_channel(log, "x");
        const struct nt_layout_ring *ring = view_ring(&view, 0);
        assert_int_equal(ring->size, sizes[i]);
        assert_true(ring->chunk <= ring->size / 8 && ring->chunk % 64 == 0);
        uint64_t position = nth(2), slots = sizes[i] / 64 * 5 / 2;
        for (uint64_t n = 1; n <= slots; n++, position += 64) {
            nt_object_count(object, NT_WRITE, n);
            const struct nt_layout_record *record = view_record(&view, ring, position);
            assert_true(view_written(&view, ring, position));
            assert_int_equal(record->sum.count, n);
            assert_true(ring->reserved >= position + 64 && ring->reserved <= position + ring->chunk);
            assert_true(ring->backed >= (position + 64 < ring->size ? position + 64 : ring->size));
        }
        assert_int_equal(ring->dropped, 0);
        for (uint64_t back = 64; back < ring->size - ring->chunk; back += 64)
            assert_true(view_written(&view, ring, position - back));
        view_close(&view);
        nt_log_close(log);
    }
}

/* ---- threads ---- */

struct task {
    nt_object object;
    uint64_t count;
    uint32_t tid;
    pthread_barrier_t *wait;
};

static void *task_run(void *arg)
{
    struct task *task = arg;
    task->tid = (uint32_t)syscall(SYS_gettid);
    for (uint64_t i = 0; i < task->count; i++)
        nt_object_count(task->object, NT_WRITE, 1);
    if (task->wait) {
        pthread_barrier_wait(task->wait);
        pthread_barrier_wait(task->wait);
    }
    return NULL;
}

static void thread_run(struct task *task)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, task_run, task), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_next_thread_goes_on_in_the_ring(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 65536);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    const struct nt_layout_ring *ring = view_ring(&view, 1); /* ring 0 is this thread's */
    uint64_t position = nth(1);
    for (uint32_t i = 0; i < 30; i++) {
        struct task task = { .object = object, .count = 1 + i * 7 };
        thread_run(&task);
        assert_int_equal(view.live->rings, 2);
        assert_int_equal(ring->owners, i + 1);
        const struct nt_layout_owner *owner = &ring->owner[i % NT_LAYOUT_OWNERS];
        assert_int_equal(owner->from, position);
        assert_int_equal(owner->tid, task.tid);
        assert_int_equal(ring->state, NT_RING_IDLE);
        for (uint64_t n = 0; n < task.count; n++, position += 64)
            assert_true(view_written(&view, ring, position));
        assert_false(view_written(&view, ring, position));
        assert_int_equal(ring->position, position);
        if (i > 0)
            assert_true(ring->owner[(i - 1) % NT_LAYOUT_OWNERS].since <= owner->since);
    }
    view_close(&view);
    nt_log_close(log);
}

/* Of several idle rings the one that was given back first is taken, so that history lasts longest. */
static void the_longest_idle_ring_is_taken(void **state)
{
    (void)state;
    enum { THREADS = 5 };
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    pthread_t threads[THREADS];
    pthread_barrier_t waits[THREADS];
    struct task tasks[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_barrier_init(&waits[i], NULL, 2);
        tasks[i] = (struct task){ .object = object, .count = 3, .wait = &waits[i] };
        assert_int_equal(pthread_create(&threads[i], NULL, task_run, &tasks[i]), 0);
        pthread_barrier_wait(&waits[i]);
    }
    assert_int_equal(view.live->rings, 1 + THREADS);
    static const uint32_t ends[THREADS] = { 3, 0, 4, 2, 1 };
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_barrier_wait(&waits[ends[i]]);
        assert_int_equal(pthread_join(threads[ends[i]], NULL), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        struct task task = { .object = object, .count = 1 };
        thread_run(&task);
        assert_int_equal(view_ring(&view, 1 + ends[i])->owners, 2);
        pthread_barrier_destroy(&waits[i]);
    }
    assert_int_equal(view.live->rings, 1 + THREADS);
    view_close(&view);
    nt_log_close(log);
}

/* Full-size rings while they use less than half of the cap, then 64 KiB ones, then none. */
static void rings_get_smaller_then_none(void **state)
{
    (void)state;
    enum { THREADS = 120 };
    nt_log *log = test_log(8 << 20, 1 << 20);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    pthread_t threads[THREADS];
    pthread_barrier_t wait;
    pthread_barrier_init(&wait, NULL, THREADS + 1);
    struct task task = { .object = object, .count = 10, .wait = &wait };
    struct task tasks[THREADS];
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = task;
        assert_int_equal(pthread_create(&threads[i], NULL, task_run, &tasks[i]), 0);
    }
    pthread_barrier_wait(&wait);
    uint32_t large = 0, small = 0;
    for (uint32_t i = 0; i < view.live->rings; i++) {
        const struct nt_layout_ring *ring = view_ring(&view, i);
        large += ring->size == 1 << 20;
        small += ring->size == 65536;
        for (uint32_t k = 0; k < i; k++)
            assert_true(view_ring(&view, k)->offset + view_ring(&view, k)->size <= ring->offset);
    }
    assert_int_equal(large, 4);
    assert_int_equal(small, 64);
    assert_int_equal(view.live->rings, 68);
    assert_int_equal(view.live->dropped_no_ring, (THREADS + 1 - 68) * 10);
    assert_sum(&view, object, NT_WRITE, THREADS * 10, THREADS * 10);
    pthread_barrier_wait(&wait);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&wait);
    view_close(&view);
    nt_log_close(log);
}

/* A thread that got no ring asks again now and then, and logs once there is one. */
static void a_ring_is_asked_for_again(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    uint32_t held = 0;
    uint64_t position;
    struct nt_layout_ring *rings[64];
    while ((rings[held] = log_ring_take(log, &position)) != NULL)
        assert_true(++held < 64);
    struct task task = { .object = object, .count = 1000 };
    thread_run(&task);
    assert_int_equal(view.live->dropped_no_ring, 1000);
    pthread_t thread;
    pthread_barrier_t wait;
    pthread_barrier_init(&wait, NULL, 2);
    struct task waiting = { .object = object, .count = 1000, .wait = &wait };
    assert_int_equal(pthread_create(&thread, NULL, task_run, &waiting), 0);
    pthread_barrier_wait(&wait);
    log_ring_give(rings[0], nth(1));
    pthread_barrier_wait(&wait);
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct task later = { .object = object, .count = 10 };
    thread_run(&later);
    assert_true(view_written(&view, rings[0], nth(1)));
    assert_int_equal(view.live->dropped_no_ring, 2000);
    pthread_barrier_destroy(&wait);
    view_close(&view);
    nt_log_close(log);
}

/* Two lives of a thread that is gone without a word: its ring is taken when no other is to be had, and goes on
   where nothing was announced, also if it had never logged anything. */
static void rings_of_threads_that_ended_silently(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    uint32_t held = 0;
    uint64_t position;
    struct nt_layout_ring *rings[64];
    while ((rings[held] = log_ring_take(log, &position)) != NULL)
        assert_true(++held < 64);
    assert_true(held > 2);
    rings[0]->owner[0].tid = rings[1]->owner[0].tid = 0x3fffffff; /* above any pid */
    rings[1]->reserved = 3 * 1024;
    const uint64_t from[2] = { nth(1), 3 * 1024 };
    for (int i = 0; i < 2; i++) {
        struct task task = { .object = object, .count = 5 };
        pthread_t thread;
        pthread_barrier_t wait;
        pthread_barrier_init(&wait, NULL, 2);
        task.wait = &wait;
        assert_int_equal(pthread_create(&thread, NULL, task_run, &task), 0);
        pthread_barrier_wait(&wait);
        assert_int_equal(rings[i]->owners, 2);
        assert_int_equal(rings[i]->owner[1].from, from[i]);
        assert_int_equal(rings[i]->owner[1].tid, task.tid);
        for (uint64_t n = 0; n < 5; n++)
            assert_true(view_written(&view, rings[i], from[i] + n * 64));
        rings[i]->owner[1].tid = (uint32_t)syscall(SYS_gettid); /* or the next turn would take it again */
        pthread_barrier_wait(&wait);
        assert_int_equal(pthread_join(thread, NULL), 0);
        rings[i]->state = NT_RING_OWNED;
        pthread_barrier_destroy(&wait);
    }
    view_close(&view);
    nt_log_close(log);
}

/* ---- handlers in the middle of an event ---- */

/* An event that is open while a handler logs more than a ring holds: the handler's go elsewhere, for the open one may
   still be written. */
static void an_open_event_is_not_lapped(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    for (uint32_t before = 0; before < 6 * 37; before += 37) {
        count_times(object, NT_WRITE, 1, before);
        struct nt_ring_ *ring = nt_thread_->log[log->index].ring;
        const struct nt_layout_ring *shared = ring->shared;
        uint64_t written = view.live->rings, position = ring->cur;
        ring->open = 1;
        nt_take_(&ring->cur, NT_LAYOUT_SLOT);
        count_times(object, NT_WRITE, 1, 1000); /* the handler's */
        assert_true(shared->reserved <= position + shared->size);
        assert_int_equal(view.live->rings, written + 1);
        assert_int_equal(shared->state, NT_RING_RETIRED);
        ring->open = 0;
    }
    view_close(&view);
    nt_log_close(log);
}

#if TEST_ASAN || TEST_TSAN
enum { BURST = 40, STRIDE = 61 }; /* sanitizers' own instructions are many */
#else
enum { BURST = 40, STRIDE = 1 };
#endif

static nt_object burst_object, burst_own;
static volatile uint64_t burst_reserved;
static const struct nt_layout_ring *burst_ring;

static void burst(int signal)
{
    (void)signal;
    count_times(burst_own, NT_READ, 1, BURST);
    burst_reserved = burst_ring->reserved;
}

/* The child: makes ready, lets itself be stepped through one event, and looks at what became of it. */
static void stepped_child(const struct view *view, uint32_t before)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, burst);
    count_times(burst_object, NT_WRITE, 3, before);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    nt_object_count(burst_object, NT_WRITE, 3);
    raise(SIGSTOP);
    ptrace(PTRACE_DETACH, 0, 0, 0);
    count_times(burst_object, NT_WRITE, 3, 5);
    uint64_t counts[2] = { 0, 0 }, position = nth(3);
    for (; position < nth(3) + (before + 6 + BURST) * 64 && view_written(view, burst_ring, position); position += 64) {
        const struct nt_layout_record *record = view_record(view, burst_ring, position);
        if (record->sum.count != ++counts[record_kind(record) == NT_READ])
            _exit(2); /* out of order, or twice */
    }
    if (counts[0] != before + 6 || (counts[1] != BURST && counts[1] != 0))
        _exit(3); /* one is missing */
    if (burst_ring->reserved < burst_reserved || burst_ring->reserved < position || burst_ring->dropped)
        _exit(4); /* announced space went back */
    _exit(view_tally(view, view_object(view, burst_object), NT_WRITE)->sum.count == before + 6 ? 0 : 5);
}

/* Steps through the event and delivers the signal after `steps` instructions; false: the event ended before. */
static bool burst_after(pid_t child, uint32_t steps)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    for (uint32_t i = 0; i < steps; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP) {
            ptrace(PTRACE_DETACH, child, 0, 0);
            return false;
        }
    }
    ptrace(PTRACE_CONT, child, 0, SIGUSR1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    ptrace(PTRACE_DETACH, child, 0, 0);
    return true;
}

/* A handler that logs two chunks full, after every instruction of an event: of one that needs a new chunk, and of
   one that does not. */
static void a_handler_at_every_instruction(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 2; turn++) {
        bool inside = true;
        for (uint32_t steps = 0; inside; steps += STRIDE) {
            pid_t child = fork();
            if (child == 0) {
                nt_log *log = test_log(524288, 16384);
                struct view view = view_open(nt_log_path(log));
                burst_object = test_channel(log, "outer");
                burst_own = test_channel(log, "inner");
                burst_ring = view_ring(&view, 0);
                /* the last slot of a chunk of 16, or one in the middle */
                stepped_child(&view, turn ? 14 + 16 - 1 : 14 + 8);
            }
            inside = burst_after(child, steps);
            assert_child_is_well(child);
            assert_true(steps < 20000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(a_record_says_all_of_an_event),        log_test(the_oldest_are_overwritten),
        log_test(the_next_thread_goes_on_in_the_ring),  log_test(the_longest_idle_ring_is_taken),
        log_test(rings_get_smaller_then_none),          log_test(a_ring_is_asked_for_again),
        log_test(rings_of_threads_that_ended_silently), log_test(an_open_event_is_not_lapped),
        log_test(a_handler_at_every_instruction),
    };
    return cmocka_run_group_tests_name("log/ring", tests, NULL, NULL);
}
