/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of several rings put in order of time: how many a second one reader takes. drain-4 and drain-64: so many
   threads wrote a ring of 1 MiB each, each event somewhere at random among those of the others, so that no guess which
   ring comes next is better than another; then all is taken out at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nt/log.h>

#include "harness.h"
#include "scratch.h"
#include "source/live/live.h"
#include "source/merge.h"

#define RING (UINT64_C(1) << 20)
/* That many fit beside the chunks that are given up. */
#define RING_EVENTS (RING / 64 / 8 * 7)
#define CAP (UINT64_C(256) << 20)
#define WRITERS_MAX 64u
#define APART 16u /* ticks between two events of all rings together: less than they take */
#define ROOM 1024u

struct writers {
    nt_log *log;
    uint32_t count;
    pthread_t threads[WRITERS_MAX];
    pthread_barrier_t begin, end;
    nt_time base, until;
    uint64_t events; /* for each to write, 0: end */
};

struct writer {
    struct writers *writers;
    uint32_t number;
};

struct drain {
    struct writers writers;
    struct nt_merge *merge;
    uint64_t events, counts;
    int error;
};

/* ---- Writing ---- */

static void write_events(const struct writers *writers, nt_object object, uint64_t *seed)
{
    const uint64_t step = (uint64_t)writers->count * APART;
    for (uint64_t i = 0; i < writers->events; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + 1;
        nt_object_count_at(object, NT_WRITE, i, writers->base + i * step + (*seed >> 33) % step);
    }
}

static void *write_always(void *arg)
{
    const struct writer writer = *(struct writer *)arg;
    struct writers *writers = writer.writers;
    nt_object object = scratch_object(writers->log, "object-", writer.number, NT_MASK_DEFAULT);
    uint64_t seed = writer.number;
    free(arg);
    (void)pthread_barrier_wait(&writers->end); /* all objects were opened before the first of their events */
    for (;;) {
        (void)pthread_barrier_wait(&writers->begin);
        if (writers->events == 0) {
            return NULL;
        }
        write_events(writers, object, &seed);
        (void)pthread_barrier_wait(&writers->end);
    }
}

static void writers_write(struct writers *writers, uint64_t events)
{
    nt_time now = nt_now();
    writers->base = now > writers->until ? now : writers->until;
    writers->until = writers->base + events * writers->count * APART;
    writers->events = events;
    (void)pthread_barrier_wait(&writers->begin);
    if (events != 0) {
        (void)pthread_barrier_wait(&writers->end);
    }
}

static bool writers_start(struct writers *writers, nt_log *log, uint32_t count)
{
    writers->log = log;
    (void)pthread_barrier_init(&writers->begin, NULL, count + 1);
    (void)pthread_barrier_init(&writers->end, NULL, count + 1);
    for (; writers->count < count; writers->count++) {
        struct writer *writer = malloc(sizeof *writer);
        if (writer == NULL) {
            return false;
        }
        *writer = (struct writer){ writers, writers->count };
        if (pthread_create(&writers->threads[writers->count], NULL, write_always, writer) != 0) {
            free(writer);
            return false;
        }
    }
    (void)pthread_barrier_wait(&writers->end);
    return true;
}

static void writers_end(struct writers *writers)
{
    writers_write(writers, 0);
    for (uint32_t i = 0; i < writers->count; i++) {
        (void)pthread_join(writers->threads[i], NULL);
    }
    (void)pthread_barrier_destroy(&writers->begin);
    (void)pthread_barrier_destroy(&writers->end);
}

/* ---- Reading ---- */

static void drain_prepare(void *state, uint64_t operations)
{
    struct drain *drain = state;
    writers_write(&drain->writers, operations / drain->writers.count);
}

static void drain_all(void *state, uint64_t operations)
{
    static struct nt_merge_item items[ROOM];
    struct drain *drain = state;
    int count;
    (void)operations;
    while ((count = nt_merge_flush(drain->merge, items, ROOM)) > 0) {
        for (int i = 0; i < count; i++) {
            drain->counts += items[i].event != NULL ? items[i].event->merged : 0;
        }
    }
    drain->error = count;
}

/* Everything came, and in order. */
static bool drain_is_whole(const struct drain *drain, const char *row, uint64_t operations)
{
    struct nt_merge_stats stats = nt_merge_stats(drain->merge);
    bool whole = drain->error == 0 && stats.losses == 0 && stats.late == 0 && stats.twice == 0 &&
                 drain->counts == stats.events - drain->events && drain->counts > 0 && drain->counts % operations == 0;
    if (!whole) {
        fprintf(stderr, "bench: %s: error %d, %llu read, %llu late, %llu losses\n", row, drain->error,
                (unsigned long long)drain->counts, (unsigned long long)stats.late, (unsigned long long)stats.losses);
    }
    return whole;
}

static int drain_run(struct drain *drain, const char *row, struct bench_samples *samples)
{
    const char *path = nt_log_path(drain->writers.log);
    const struct nt_live_options options = { .files = &path, .file_count = 1 };
    const struct nt_merge_options defaults = { .hold_ns = 0 };
    struct nt_source *source;
    if (nt_source_live_open(&options, &source) != 0) {
        return -1;
    }
    bool whole = nt_merge_new(source, &defaults, &drain->merge) == 0;
    if (whole) {
        uint64_t operations = RING_EVENTS * drain->writers.count;
        drain_all(drain, 0);
        drain->events = nt_merge_stats(drain->merge).events;
        drain->counts = 0;
        const struct bench_variant variant = { row, drain_all, drain, drain_prepare };
        const struct bench_plan plan = { .clock = BENCH_CLOCK_THREAD_CPU,
                                         .operations = operations,
                                         .rounds = drain->writers.count > 4 ? 15 : 30,
                                         .batches = drain->writers.count > 4 ? 2 : 16 };
        bench_compare(&plan, &variant, 1, samples);
        whole = drain_is_whole(drain, row, operations);
        nt_merge_free(drain->merge);
    }
    nt_source_free(source);
    return whole ? 0 : -1;
}

static int measure(const char *row, uint32_t rings, double least)
{
    struct bench_samples *each = bench_memory(sizeof *each), *rate = bench_memory(sizeof *rate);
    struct drain drain = { .events = 0 };
    nt_log *log = scratch_log(row, RING, CAP);
    if (log == NULL || each == NULL || rate == NULL) {
        return -1;
    }
    if (!writers_start(&drain.writers, log, rings)) {
        fprintf(stderr, "bench: %s: cannot start %u threads\n", row, (unsigned)rings);
        _exit(1); /* those that there are wait for the others */
    }
    writers_write(&drain.writers, RING_EVENTS / 2);
    int error = drain_run(&drain, row, each);
    writers_end(&drain.writers);
    error = scratch_log_is_whole(log) ? error : -1;
    scratch_log_free(log);
    if (error != 0) {
        return error;
    }
    for (unsigned i = 0; i < each->count; i++) {
        bench_samples_add(rate, 1000 / each->values[i]);
    }
    rate->quiet = each->quiet;
    bench_report(&(struct bench_row){ .name = row, .unit = "M/s", .min_median = least }, rate, NULL);
    return 0;
}

static int measure_4(void)
{
    return measure("drain-4", 4, 25);
}

static int measure_64(void)
{
    return measure("drain-64", WRITERS_MAX, 8);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "drain-4", measure_4 },
        { "drain-64", measure_64 },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
