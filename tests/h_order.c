/* SPDX-License-Identifier: BSD-3-Clause */
/* h_order RING-BYTES THREADS [HANDLERS]: threads that count in every way that puts events out of order. Each has an
   object of its own, counted also with times that go back; all count on a shared one and, under a lock, on an exclusive
   one; the first switches the mask of one off and on. With HANDLERS a timer's handler counts too, in the middle of
   whatever goes on. Does what it is told on standard input: "run N" rounds of each thread, "go" on until "halt"; says
   "done" to each. At its end one JSON line says how many counts were made while the mask was off. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

enum { THREADS_MAX = 16, HANDLER_EVERY_NS = 50000, BACK = 3000000 /* ticks */ };

struct worker {
    pthread_t thread;
    unsigned number;
    nt_object own, in_handler;
    uint64_t rounds; /* so far */
    uint64_t seed;
};

static nt_log *test_log;
static nt_object shared_object, locked_object, masked_object;
static nt_kind data_kind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker workers[THREADS_MAX];
static __thread struct worker *my_worker;
static pthread_barrier_t begin, end;
static uint64_t rounds; /* to run, UINT64_MAX: until `halt` */
static int halt;
static bool quit, handlers;
static uint64_t while_off;

static void handler(int number)
{
    (void)number;
    if (!my_worker)
        return;
    nt_object_count(my_worker->in_handler, NT_WRITE, 1);
    nt_object_count(shared_object, NT_WRITE, 1);
}

static void count_masked(uint64_t round)
{
    if (round % 400 == 200)
        nt_object_mask_set(masked_object, NT_MASK_DEFAULT & ~NT_MASK(NT_WRITE));
    if (round % 400 == 300)
        nt_object_mask_set(masked_object, NT_MASK_DEFAULT);
    while_off += round % 400 >= 200 && round % 400 < 300;
    nt_object_count(masked_object, NT_WRITE, 1);
}

static void run_round(struct worker *worker)
{
    uint64_t round = worker->rounds++;
    nt_object_count(worker->own, NT_WRITE, round);
    if (round % 3 == 0)
        nt_object_count(shared_object, NT_WRITE, 1);
    if (round % 5 == 0) {
        worker->seed = worker->seed * UINT64_C(6364136223846793005) + 1;
        nt_object_count_at(worker->own, NT_READ, 1, nt_now() - (worker->seed >> 33) % BACK);
    }
    if (round % 7 == 0) {
        pthread_mutex_lock(&lock);
        nt_object_count(locked_object, NT_WRITE, 1);
        pthread_mutex_unlock(&lock);
    }
    if (round % 101 == 0) {
        char text[300];
        memset(text, 'a' + (int)worker->number, sizeof(text));
        const nt_value value = { .as = { .data = text }, .size = 1 + round % sizeof(text) };
        nt_object_record(worker->own, data_kind, 1, &value, 1);
    }
    if (worker->number == 0)
        count_masked(round);
}

static void timer_start(timer_t *timer)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
    const struct itimerspec often = { { 0, HANDLER_EVERY_NS }, { 0, HANDLER_EVERY_NS } };
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, timer) == 0)
        timer_settime(*timer, 0, &often, NULL);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    my_worker = worker;
    for (;;) {
        timer_t timer;
        pthread_barrier_wait(&begin);
        if (quit)
            return NULL;
        if (handlers)
            timer_start(&timer);
        for (uint64_t i = 0; i < rounds && !__atomic_load_n(&halt, __ATOMIC_RELAXED); i++)
            run_round(worker);
        if (handlers)
            timer_delete(timer);
        pthread_barrier_wait(&end);
    }
}

static nt_object object_new(const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return nt_object_new(test_log, &options);
}

static void start(unsigned threads)
{
    static const nt_field field = { .name = "text", .type = NT_FIELD_STRING };
    shared_object = object_new("shared", NT_SHARED);
    locked_object = object_new("locked", NT_EXCLUSIVE);
    masked_object = object_new("masked", NT_EXCLUSIVE);
    const nt_kind_options kind = { .size = sizeof(kind), .name = "text", .fields = &field, .field_count = 1 };
    nt_kind_new(test_log, &kind, &data_kind);
    pthread_barrier_init(&begin, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    signal(SIGUSR1, handler);
    for (unsigned i = 0; i < threads; i++) {
        char name[32];
        snprintf(name, sizeof(name), "own-%u", i);
        workers[i].own = object_new(name, NT_EXCLUSIVE);
        snprintf(name, sizeof(name), "handler-%u", i);
        workers[i].in_handler = object_new(name, NT_EXCLUSIVE);
        workers[i].number = i;
        workers[i].seed = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            exit(2);
    }
}

static void done(void)
{
    puts("done");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = "order";
    options.ring_bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    options.cap_bytes = UINT64_C(256) << 20;
    if (threads == 0 || threads > THREADS_MAX || nt_log_open(&options, &test_log) != 0)
        return 2;
    handlers = argc > 3;
    start(threads);
    bool going = false;
    for (char line[64]; fgets(line, sizeof(line), stdin);) {
        if (going) { /* whatever it is: halt */
            __atomic_store_n(&halt, 1, __ATOMIC_RELAXED);
            pthread_barrier_wait(&end);
            going = false;
        } else {
            __atomic_store_n(&halt, 0, __ATOMIC_RELAXED);
            going = strcmp(line, "go\n") == 0;
            rounds = going ? UINT64_MAX : strtoull(line + 4, NULL, 10);
            pthread_barrier_wait(&begin);
            if (!going)
                pthread_barrier_wait(&end);
        }
        done();
    }
    quit = true;
    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    nt_log_close(test_log);
    printf("{\"while_off\":%llu}\n", (unsigned long long)while_off);
    return 0;
}
