/* SPDX-License-Identifier: BSD-3-Clause */
/* Totals by session are whole at every instruction and after any end: a child changes sessions by chance, is stepped
   through it or killed in it, and the test adds up what its file says. The child keeps its own account in shared
   memory. Seeds are printed. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include "log/session_test.h"

enum { THREADS = 4, SESSIONS = 4096, KINDS = 3 };
static const nt_kind kinds[KINDS] = { NT_WRITE, NT_READ, 70 };

/* One thread's account: written before and after each count, so that it is known but for the one under way. */
struct account {
    uint64_t begun, done; /* counts */
    uint32_t session, own, kind;
    uint64_t value;
    struct nt_layout_pair sums[SESSIONS][KINDS]; /* 0: none */
};

struct plan { /* what a child is to do */
    uint64_t seed;
    uint32_t sessions, threads;
    uint64_t cap;
    bool one_group;        /* its cells may not grow: sessions are given up early */
    bool step;             /* stop when all is warm, and again at the end */
    uint64_t warm, counts; /* counts of a thread before the stop, and in all; 0: for ever */
};

struct shared {
    uint64_t ids[SESSIONS];
    struct account accounts[THREADS];
    char path[LOG_PATH];
    uint64_t ready;
};

static struct plan plan;
static struct shared *shared;
static nt_log *child_log;
static nt_object shared_object;

static uint64_t chance(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void account_begin(struct account *account, uint32_t session, uint32_t own, uint32_t kind, uint64_t value)
{
    account->session = session;
    account->own = own;
    account->kind = kind;
    account->value = value;
    __atomic_store_n(&account->begun, account->begun + 1, __ATOMIC_SEQ_CST);
}

static void account_end(struct account *account)
{
    struct nt_layout_pair *sum = &account->sums[account->session][account->kind];
    nt_pair_copy_(sum, (nt_pair_){ sum->count + 1, sum->total + account->value });
    __atomic_store_n(&account->done, account->done + 1, __ATOMIC_SEQ_CST);
}

/* One step of a thread: a change of session, a count, a count of another session, a join, another life. */
static void step(struct account *account, uint64_t *random, nt_object *object, uint32_t *own)
{
    uint32_t session = (uint32_t)(chance(random) % plan.sessions), kind = (uint32_t)(chance(random) % KINDS);
    uint64_t value = chance(random) % 1000;
    switch (chance(random) % 16) {
    case 0:
        account_begin(account, session, 0, kind, value);
        nt_object_count_in(shared_object, shared->ids[session], kinds[kind], value);
        account_end(account);
        break;
    case 1:
        account_begin(account, session, *own, kind, value);
        nt_object_count_in(*object, shared->ids[session], kinds[kind], value);
        account_end(account);
        break;
    case 2:
        account_begin(account, session, *own, 1, value);
        nt_object_count(*object, NT_READ, value);
        nt_object_session_join(*object, shared->ids[session], value);
        *own = session;
        account_end(account);
        break;
    case 3:
        if (chance(random) % 64 == 0) {
            nt_object_close(*object);
            *object = test_channel(child_log, "x");
            nt_object_session_set(*object, shared->ids[*own]);
        }
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        nt_object_session_set(*object, shared->ids[session]);
        *own = session;
        break;
    default:
        account_begin(account, *own, *own, kind, value);
        nt_object_count(*object, kinds[kind], value);
        account_end(account);
    }
}

static void *child_run(void *arg)
{
    struct account *account = arg;
    uint64_t random = plan.seed + (uint64_t)(account - shared->accounts);
    nt_object object = test_channel(child_log, "x");
    uint32_t own = 0;
    for (uint64_t i = 0; !plan.counts || i < plan.counts; i++) {
        if (plan.step && i == plan.warm)
            raise(SIGSTOP);
        step(account, &random, &object, &own);
    }
    if (plan.step)
        raise(SIGSTOP);
    return NULL;
}

static void child(void)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.name = "cells";
    options.cap_bytes = plan.cap;
    options.ring_bytes = 16384;
    if (nt_log_open(&options, &child_log) != 0)
        _exit(1);
    for (uint32_t i = 1; i < plan.sessions; i++) /* of this log, of others, and parts of both */
        shared->ids[i] = i % 3 ? nt_session_new(child_log, "s", i % 3 == 2 ? shared->ids[i - 1] : 0)
                               : UINT64_C(0xfff0000000000000) + i;
    shared_object = test_object(child_log, "shared", (nt_object){ 0 }, NT_SHARED);
    if (plan.one_group)
        child_log->map.live->settlement_backed = plan.cap / 4;
    snprintf(shared->path, sizeof(shared->path), "%s", nt_log_path(child_log));
    __atomic_store_n(&shared->ready, 1, __ATOMIC_SEQ_CST);
    if (plan.step)
        ptrace(PTRACE_TRACEME, 0, 0, 0);
    pthread_t threads[THREADS];
    for (uint32_t i = 1; i < plan.threads; i++)
        if (pthread_create(&threads[i], NULL, child_run, &shared->accounts[i]) != 0)
            _exit(2);
    child_run(&shared->accounts[0]);
    for (uint32_t i = 1; i < plan.threads; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

static void shared_setup(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
}

static void shared_teardown(void)
{
    munmap(shared, sizeof(*shared));
}

/* Counts under way may be there or not; one that goes to a session of its own is for a moment its object's. */
static struct {
    uint64_t counts[SESSIONS][KINDS];
} doubt;

static void doubt_now(void)
{
    memset(&doubt, 0, sizeof(doubt));
    for (uint32_t i = 0; i < plan.threads; i++) {
        const struct account *account = &shared->accounts[i];
        if (account->begun == account->done)
            continue;
        doubt.counts[account->session][account->kind]++;
        if (account->own != account->session)
            doubt.counts[account->own][account->kind]++;
        /* the account may have been brought up to date already, but for its last word */
    }
}

static struct nt_layout_pair known(uint32_t session, uint32_t kind)
{
    struct nt_layout_pair sum = { 0, 0 };
    for (uint32_t i = 0; i < plan.threads; i++) {
        sum.count += shared->accounts[i].sums[session][kind].count;
        sum.total += shared->accounts[i].sums[session][kind].total;
    }
    return sum;
}

/* Whether a count more or less, under way, explains the difference. */
static bool is_near(struct nt_layout_pair sum, struct nt_layout_pair wanted, uint64_t in_doubt)
{
    int64_t counts = (int64_t)(sum.count - wanted.count);
    if (!in_doubt)
        return !counts && sum.total == wanted.total;
    return counts >= -(int64_t)in_doubt && counts <= (int64_t)in_doubt;
}

struct checks {
    uint64_t exact, given, older;
};

/* One session and kind against the account. `got`: it may have what others gave up. */
static void check_one(const struct session_sums *sums, uint32_t i, uint32_t k, bool given, bool got)
{
    struct nt_layout_pair sum = session_sum(sums, shared->ids[i], kinds[k], false), wanted = known(i, k);
    uint64_t in_doubt = doubt.counts[i][k];
    bool right = is_near(sum, wanted, in_doubt);
    if (got)
        right = given || sum.count + in_doubt >= wanted.count;
    else if (given)
        right = sum.count <= wanted.count + in_doubt;
    if (!right)
        fail_msg("seed %lu: session %u (%016lx) kind %u: %lu, %lu, but counted %lu, %lu (%lu in doubt)%s%s", plan.seed,
                 i, shared->ids[i], kinds[k], sum.count, sum.total, wanted.count, wanted.total, in_doubt,
                 given ? ", given up" : "", got ? ", got" : "");
}

/* Every session against the account. One that was given up, and one that got what others gave up, is not less or more
   than it can be; none is exact always, so nothing got lost between them. */
static void check(const struct view *view, struct checks *checks)
{
    struct session_sums sums = session_sums(view);
    doubt_now();
    assert_int_equal(view->live->unsettled, 0);
    for (uint32_t i = 0; i < plan.sessions; i++) {
        bool given = i && session_was_given(view, shared->ids[i]);
        bool got = i && session_has(view, shared->ids[i], NT_SESSION_GOT);
        for (uint32_t k = 0; k < KINDS; k++)
            check_one(&sums, i, k, given, got);
        checks->exact += !given && !got;
        checks->given += given;
    }
    for (uint32_t k = 0; k < KINDS; k++)
        checks->older += session_sum(&sums, 0, kinds[k], true).count;
    session_sums_fini(&sums);
}

static double scale(void)
{
    const char *text = getenv("TEST_SCALE");
    double above = 1, below = 1;
    if (text && sscanf(text, "%lf/%lf", &above, &below) < 1)
        above = 1;
    return text ? above / below : 1;
}

static uint64_t scaled(uint64_t times, uint64_t least)
{
    double wanted = (double)times * scale();
    return wanted > (double)least ? (uint64_t)wanted : least;
}

static uint64_t seed_new(void)
{
    const char *text = getenv("TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return text ? strtoull(text, NULL, 0) : (uint64_t)now.tv_nsec * 1000003 + (uint64_t)now.tv_sec;
}

/* ---- step by step ---- */

static void stepped(const struct plan *how, uint64_t steps, struct checks *checks)
{
    int status;
    plan = *how;
    shared_setup();
    print_message("# seed %lu, stepped\n", plan.seed);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    struct view view = view_open(shared->path);
    uint64_t random = plan.seed;
    for (uint64_t i = 0; i < steps; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP)
            break;
        if (chance(&random) % 8 == 0)
            check(&view, checks);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    view_close(&view);
    shared_teardown();
}

static void whole_at_every_instruction(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < scaled(20, 1); turn++) {
        struct checks checks = { 0 };
        uint64_t seed = seed_new() + turn;
        const struct plan calm = {
            .seed = seed, .sessions = 150, .threads = 1, .cap = 1 << 20, .step = true, .warm = 60 + seed % 400
        };
        stepped(&calm, 40000, &checks);
        assert_true(checks.exact && !checks.given);
    }
}

static void whole_while_sessions_are_given_up(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < scaled(20, 1); turn++) {
        struct checks checks = { 0 };
        uint64_t seed = seed_new() + turn;
        const struct plan tight = { .seed = seed,
                                    .sessions = 300,
                                    .threads = 1,
                                    .cap = 1 << 20,
                                    .one_group = true,
                                    .step = true,
                                    .warm = 800 + seed % 2000 };
        stepped(&tight, 60000, &checks);
        assert_true(checks.exact && checks.given && checks.older);
    }
}

/* ---- killed ---- */

static void killed(const struct plan *how, struct checks *checks)
{
    int status;
    plan = *how;
    shared_setup();
    print_message("# seed %lu, killed\n", plan.seed);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child();
    while (!__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST))
        usleep(100);
    struct view view = view_open(shared->path);
    uint64_t random = plan.seed;
    for (uint32_t i = 0; i < 3; i++)
        chance(&random);
    usleep((useconds_t)(chance(&random) % 8000));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    check(&view, checks);
    view_close(&view);
    unlink(shared->path);
    shared_teardown();
}

static void whole_after_any_end(void **state)
{
    (void)state;
    struct checks checks = { 0 };
    uint64_t first = seed_new(), turns = scaled(1000, 20);
    for (uint64_t turn = 0; turn < turns; turn++) {
        const struct plan plans[] = {
            { .sessions = 50, .threads = 2, .cap = 1 << 22 },
            { .sessions = SESSIONS, .threads = 2, .cap = 1 << 23 },
            { .sessions = SESSIONS, .threads = THREADS, .cap = 1 << 20 },
            { .sessions = 1000, .threads = 1, .cap = 1 << 20, .one_group = true },
        };
        struct plan how = plans[turn % 4];
        how.seed = first + turn;
        killed(&how, &checks);
    }
    assert_true(checks.exact && checks.given && checks.older);
}

int main(void)
{
    if (TEST_TSAN) {
        puts("1..0 # SKIP the thread sanitizer makes a store of 16 bytes two");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        log_test(whole_at_every_instruction),
        log_test(whole_while_sessions_are_given_up),
        log_test(whole_after_any_end),
    };
    return cmocka_run_group_tests_name("log/cell", tests, NULL, NULL);
}
