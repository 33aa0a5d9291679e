/* SPDX-License-Identifier: BSD-3-Clause */
/* The first event of a thread: it gets its ring. thread-start: the threads of a round stay, so that each gets a
   new ring; thread-start-again: each ends before the next one starts and continues its predecessor's.
   Against making and joining a thread that does nothing. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <nt/log.h>

#include "harness.h"
#include "scratch.h"

#define THREADS 16u
#define CAP (UINT64_C(256) << 20) /* rings of full size for all */

struct starter {
    nt_object object;
    sem_t *started, *end; /* told when the event is done; waited for before the thread ends. NULL: it ends at once */
    double ns;            /* of the first event */
};

static void *first_event(void *arg)
{
    struct starter *starter = arg;
    uint64_t start = bench_ticks();
    nt_object_count(starter->object, NT_WRITE, 1);
    starter->ns = (double)(bench_ticks() - start) * bench_ns_per_tick();
    if (starter->started != NULL) {
        (void)sem_post(starter->started);
        (void)sem_wait(starter->end);
    }
    return NULL;
}

static void *nothing(void *arg)
{
    return arg;
}

static double median(const double *values)
{
    static struct bench_samples samples;
    samples.count = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        bench_samples_add(&samples, values[i]);
    }
    return bench_samples_percentile(&samples, 0.5);
}

static double create_and_join(void)
{
    double ns[THREADS] = { 0 };
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        uint64_t start = bench_ticks();
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            (void)pthread_join(thread, NULL);
        }
        ns[i] = (double)(bench_ticks() - start) * bench_ns_per_tick();
    }
    return median(ns);
}

static double start_and_stay(const nt_object *objects)
{
    struct starter starters[THREADS];
    pthread_t threads[THREADS];
    sem_t started, end;
    double ns[THREADS] = { 0 };
    unsigned count = 0;
    (void)sem_init(&started, 0, 0);
    (void)sem_init(&end, 0, 0);
    for (; count < THREADS; count++) {
        starters[count] = (struct starter){ objects[count], &started, &end, 0 };
        if (pthread_create(&threads[count], NULL, first_event, &starters[count]) != 0) {
            break;
        }
        (void)sem_wait(&started);
    }
    for (unsigned i = 0; i < count; i++) {
        (void)sem_post(&end);
    }
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
        ns[i] = starters[i].ns;
    }
    (void)sem_destroy(&started);
    (void)sem_destroy(&end);
    return median(ns);
}

static double start_in_turn(const nt_object *objects)
{
    double ns[THREADS] = { 0 };
    for (unsigned i = 0; i < THREADS; i++) {
        struct starter starter = { objects[i], NULL, NULL, 0 };
        pthread_t thread;
        if (pthread_create(&thread, NULL, first_event, &starter) == 0) {
            (void)pthread_join(thread, NULL);
        }
        ns[i] = starter.ns;
    }
    return median(ns);
}

static struct bench_samples plain, fresh, again;

static int measure_once(void *arg)
{
    nt_object objects[THREADS];
    (void)arg;
    nt_log *log = scratch_log("thread", 0, CAP);
    if (log == NULL) {
        return -1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        objects[i] = scratch_object(log, "thread-", i, NT_MASK_DEFAULT);
        nt_object_count(objects[i], NT_WRITE, 1);
    }
    bench_samples_add(&plain, create_and_join());
    bench_samples_add(&fresh, start_and_stay(objects));
    bench_samples_add(&again, start_in_turn(objects));
    int error = scratch_log_is_whole(log) ? 0 : -1;
    scratch_log_free(log);
    return error;
}

static int measure(void)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 60 });
    (void)bench_ns_per_tick();
    for (unsigned round = 0; round < rounds; round++) {
        if (scratch_in_thread(measure_once, NULL) != 0) {
            return -1;
        }
    }
    const struct bench_row rows[] = {
        { .name = "thread-create", .unit = "ns" },
        { .name = "thread-start", .unit = "ns", .against = "thread-create" },
        { .name = "thread-start-again", .unit = "ns", .against = "thread-create" },
    };
    bench_report(&rows[0], &plain, NULL);
    bench_report(&rows[1], &fresh, &plain);
    bench_report(&rows[2], &again, &plain);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "thread-create thread-start thread-start-again", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
