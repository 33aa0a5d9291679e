/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of sessions that are interrupted where it hurts: by a handler that jumps out, forks, or changes sessions too.
   To be there at a certain instruction, the page that it stores to is made read-only. */
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "log/session_test.h"

#define SESSIONS 150u

/* ---- interruptions ---- */

static struct {
    void *page;
    void (*call)(void);
    ucontext_t back;
    volatile bool jumped;
} trap;

static void trap_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if ((uintptr_t)info->si_addr - (uintptr_t)trap.page >= NT_LAYOUT_PAGE)
        abort();
    mprotect(trap.page, NT_LAYOUT_PAGE, PROT_READ | PROT_WRITE);
    trap.call();
}

/* The next store to the page that holds `at` calls. */
static void trap_set(const void *at, void (*call)(void))
{
    struct sigaction action = { .sa_sigaction = trap_handler, .sa_flags = SA_SIGINFO | SA_NODEFER };
    trap.page = (void *)((uintptr_t)at / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE);
    trap.call = call;
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    assert_int_equal(mprotect(trap.page, NT_LAYOUT_PAGE, PROT_READ), 0);
}

static void trap_end(void)
{
    signal(SIGSEGV, SIG_DFL);
}

static void jump_out(void)
{
    trap.jumped = true;
    setcontext(&trap.back); /* with the signals of then, as siglongjmp does */
}

/* Does it until it stores to the page that holds `at`, where a handler jumps out of it. */
static void leave(void (*change)(nt_object object), nt_object object, const void *at)
{
    trap.jumped = false;
    getcontext(&trap.back);
    if (!trap.jumped) {
        trap_set(at, jump_out);
        change(object);
        abort(); /* it did not store there */
    }
    trap_end();
}

/* ---- objects ---- */

static nt_log *the_log;

static struct nt_layout_object *entry_of(nt_object object)
{
    return &the_log->map.objects[(uint32_t)object.handle & NT_SLOT_MASK_];
}

/* The first of so many objects that begins a page, so that no other object is in the way. */
static nt_object object_apart(const char *name)
{
    for (;;) {
        nt_object object = test_channel(the_log, name);
        if ((uintptr_t)entry_of(object) % NT_LAYOUT_PAGE == 0) {
            for (int i = 0; i < 15; i++)
                test_channel(the_log, "filler");
            return object;
        }
    }
}

static uint64_t counted[SESSIONS + 1];

static void count_in_all(nt_object object)
{
    for (uint32_t i = 1; i <= SESSIONS; i++) {
        nt_object_session_set(object, i);
        nt_object_count(object, NT_WRITE, 1);
        counted[i]++;
    }
}

/* Whether each session has what was counted in it. `may_lack`: or less, and says so. */
static bool sums_are_right(bool may_lack)
{
    struct view view = view_open(nt_log_path(the_log));
    struct session_sums sums = session_sums(&view);
    bool right = true;
    for (uint32_t i = 1; i <= SESSIONS && right; i++) {
        struct nt_layout_pair sum = session_sum(&sums, i, NT_WRITE, false);
        bool lacks = may_lack && session_was_given(&view, i) && sum.count < counted[i];
        right = (lacks || sum.count == counted[i]) && sum.total == sum.count;
        if (!right)
            print_message("# session %u: %lu, %lu, but counted %lu\n", i, sum.count, sum.total, counted[i]);
    }
    session_sums_fini(&sums);
    view_close(&view);
    return right;
}

static void assert_sums(bool may_lack)
{
    assert_true(sums_are_right(may_lack));
}

/* ---- tests ---- */

static void *leave_a_fold(void *arg)
{
    nt_object object = test_channel(the_log, arg);
    for (int i = 0; i < 3; i++)
        count_in_all(object);
    const struct nt_layout_settler *settler = &the_log->map.settlers[0];
    leave(count_in_all, object, the_log->map.settlement + (uint64_t)settler->extent[1] * NT_LAYOUT_PAGE);
    return NULL;
}

static void *go_on(void *arg)
{
    nt_object object = test_channel(the_log, arg);
    for (int i = 0; i < 10; i++)
        count_in_all(object);
    return NULL;
}

static void a_thread_that_leaves_a_fold(void **state)
{
    (void)state;
    pthread_t thread;
    the_log = test_log(0, 0);
    memset(counted, 0, sizeof(counted));
    assert_int_equal(pthread_create(&thread, NULL, leave_a_fold, "first"), 0);
    pthread_join(thread, NULL);
    assert_sums(false);
    assert_int_equal(pthread_create(&thread, NULL, go_on, "second"), 0);
    pthread_join(thread, NULL);
    assert_sums(false);
    nt_log_close(the_log);
}

static nt_object left;

static void set_two(nt_object object)
{
    nt_object_session_set(object, 2);
}

static void leave_a_change(void)
{
    left = object_apart("left");
    nt_object_session_set(left, 1);
    for (int i = 0; i < 5; i++, counted[1]++)
        nt_object_count(left, NT_WRITE, 1);
    leave(set_two, left, entry_of(left)); /* the move is written, and nothing is settled */
    assert_sums(false);
    nt_object_count_in(left, 3, NT_WRITE, 1);
    counted[3]++;
    assert_sums(false);
    count_in_all(left);
    assert_sums(true);
}

static void *take_over(void *arg)
{
    (void)arg;
    count_in_all(left);
    return NULL;
}

static void *leave_and_end(void *arg)
{
    (void)arg;
    nt_object_session_set(left, 1);
    nt_object_count(left, NT_WRITE, 1);
    counted[1]++;
    leave(set_two, left, entry_of(left));
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
    pthread_join(thread, NULL);
}

static void a_change_that_is_left(void **state)
{
    (void)state;
    the_log = test_log(0, 0);
    memset(counted, 0, sizeof(counted));
    leave_a_change();
    run(take_over);
    assert_sums(true);
    run(leave_and_end);
    run(take_over);
    assert_sums(true);
    nt_log_close(the_log);
}

/* ---- handlers in handlers ---- */

#define KIND_FIRST 100u
#define KIND_MANY 20u

static nt_object outer, few, many, more;

static void set_more(void)
{
    nt_object_session_set(more, 8);
}

static void set_many(void)
{
    const struct nt_settler_ *settler = nt_thread_->log[the_log->index].settler;
    for (uint32_t i = 10; settler->next - settler->folded < 95; i++) {
        nt_object_session_set(few, i);
        nt_object_count(few, NT_WRITE, 1);
        counted[i]++;
    }
    trap_set(entry_of(many), set_more);
    nt_object_session_set(many, 7);
}

static void handlers_in_handlers(void **state)
{
    (void)state;
    the_log = test_log(0, 0);
    memset(counted, 0, sizeof(counted));
    outer = object_apart("outer");
    many = object_apart("many");
    few = test_channel(the_log, "few");
    more = test_channel(the_log, "more");
    nt_object_session_set(outer, 1);
    nt_object_session_set(many, 2);
    nt_object_session_set(more, 3);
    nt_object_count(outer, NT_WRITE, 1);
    counted[1]++;
    for (uint32_t kind = KIND_FIRST; kind < KIND_FIRST + KIND_MANY; kind++) {
        nt_object_count(many, kind, 1);
        nt_object_count(more, kind, 1);
    }
    trap_set(entry_of(outer), set_many);
    nt_object_session_set(outer, 6);
    trap_end();
    assert_sums(true);
    for (int i = 0; i < 3; i++)
        count_in_all(few);
    assert_sums(true);
    struct view view = view_open(nt_log_path(the_log));
    struct session_sums sums = session_sums(&view);
    for (uint32_t kind = KIND_FIRST; kind < KIND_FIRST + KIND_MANY; kind++)
        for (uint32_t i = 2; i <= 3; i++)
            assert_true(session_was_given(&view, i) || session_sum(&sums, i, kind, false).count == 1);
    session_sums_fini(&sums);
    view_close(&view);
    nt_log_close(the_log);
}

/* ---- forks ---- */

static pid_t forked;

static void fork_and_change(void)
{
    forked = fork();
    if (forked == 0) {
        nt_object_session_set(few, 3);
        nt_object_count(few, NT_WRITE, 1);
        nt_object_session_set(few, 4);
    }
}

static void a_handler_that_forks_in_a_change(void **state)
{
    (void)state;
    the_log = test_log(0, 0);
    memset(counted, 0, sizeof(counted));
    outer = object_apart("outer");
    few = test_channel(the_log, "few");
    for (int i = 0; i < 5; i++)
        count_in_all(few);
    nt_object_session_set(outer, 1);
    nt_object_count(outer, NT_WRITE, 1);
    counted[1]++;
    trap_set(entry_of(outer), fork_and_change);
    nt_object_session_set(outer, 2);
    trap_end();
    if (forked != 0) {
        assert_child_is_well(forked);
        assert_sums(false);
        nt_log_close(the_log);
        return;
    }
    memset(counted, 0, sizeof(counted));
    counted[3]++;
    for (int i = 0; i < 3; i++)
        count_in_all(few);
    _exit(sums_are_right(true) ? 0 : 1);
}

static void fork_and_wait(void)
{
    forked = fork();
    if (forked != 0)
        waitpid(forked, NULL, 0); /* what the child does comes first */
}

static void a_handler_that_forks_in_a_fold(void **state)
{
    (void)state;
    the_log = test_log(1 << 20, 0);
    nt_session sessions[SESSIONS];
    few = test_channel(the_log, "few");
    nt_object_session_set(few, 1);
    nt_object_count(few, NT_PING, 1);
    nt_object_session_set(few, 0);
    the_log->map.live->settlement_pages = the_log->map.settlement_max; /* no group can be made */
    for (uint32_t i = 0; i < SESSIONS; i++)
        sessions[i] = nt_session_new(the_log, NULL, 0);
    forked = -1;
    trap_set(the_log->map.sessions, fork_and_wait); /* the first that is given up */
    for (uint32_t i = 0; i < 10 * SESSIONS; i++) {
        nt_object_session_set(few, sessions[i % SESSIONS]);
        nt_object_count(few, NT_WRITE, 1);
        if (forked == 0)
            _exit(0);
    }
    nt_object_session_set(few, 0);
    trap_end();
    assert_true(forked > 0);
    struct view view = view_open(nt_log_path(the_log));
    struct session_sums sums = session_sums(&view);
    uint64_t all = session_sum(&sums, 0, NT_WRITE, true).count;
    for (uint32_t i = 0; i < SESSIONS; i++)
        all += session_sum(&sums, sessions[i], NT_WRITE, false).count;
    assert_int_equal(all, 10 * SESSIONS);
    const unsigned char *unused = settlement_page(&view, 0);
    for (uint32_t i = 0; i < NT_LAYOUT_PAGE; i++)
        assert_int_equal(unused[i], 0); /* the child wrote nothing here */
    assert_int_equal(session_sum(&sums, 0, NT_WRITE, false).count, 0);
    session_sums_fini(&sums);
    view_close(&view);
    nt_log_close(the_log);
}

int main(void)
{
    if (TEST_TSAN) {
        puts("1..0 # SKIP the thread sanitizer does not care for handlers that jump");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        log_test(a_thread_that_leaves_a_fold),    log_test(a_change_that_is_left),
        log_test(handlers_in_handlers),           log_test(a_handler_that_forks_in_a_change),
        log_test(a_handler_that_forks_in_a_fold),
    };
    return cmocka_run_group_tests_name("log/settle", tests, NULL, NULL);
}
