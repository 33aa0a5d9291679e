/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers. reader-1ms: CPU time of a writer at full speed while another process takes a snapshot every
   millisecond, against the same while that process sleeps. drain-1: events a second that one reader takes from one
   ring, with nothing done to them: of 1 MiB, and of 64 MiB, where they come from memory instead of a cache. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

#include "harness.h"
#include "scratch.h"
#include "source/live/live.h"

#define FEW UINT32_C(16)
#define WRITER_EVENTS UINT64_C(2000000) /* of a batch: some 25 samples */
#define RING (UINT64_C(1) << 20)
#define LARGE_RING (UINT64_C(64) << 20)
#define LARGE_CAP (UINT64_C(256) << 20)
#define READ_ROOM 1024u

/* What writer and reader share. */
struct control {
    int active; /* the reader is to take samples */
    uint64_t samples, failures;
    uint64_t cpu_ns; /* of the reader, for all samples */
};

struct few {
    nt_object objects[FEW];
    struct control *control;
};

static void few_init(struct few *few, nt_log *log)
{
    for (uint32_t i = 0; i < FEW; i++) {
        few->objects[i] = scratch_object(log, "object-", i, NT_MASK_DEFAULT);
    }
}

__attribute__((flatten)) static void count(const struct few *objects, uint64_t operations)
{
    const struct few few = *objects;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object_count(few.objects[i % FEW], NT_WRITE, i);
    }
}

/* ---- reader-1ms ---- */

static void run_alone(void *state, uint64_t operations)
{
    count(state, operations);
}

static void run_watched(void *state, uint64_t operations)
{
    struct few *few = state;
    __atomic_store_n(&few->control->active, 1, __ATOMIC_RELEASE);
    count(few, operations);
    __atomic_store_n(&few->control->active, 0, __ATOMIC_RELEASE);
}

static int see_object(void *arg, const struct nt_source_object *object)
{
    uint64_t *seen = arg;
    *seen += object->tally_count;
    return 0;
}

static uint64_t sample(struct nt_source *source)
{
    uint64_t seen = 0;
    const struct nt_source_sink sink = { .object = see_object, .arg = &seen };
    return nt_source_snapshot(source, &sink) == 0 ? seen : 0;
}

/* The other process: ends with its parent. */
static void read_always(struct control *control)
{
    const struct nt_live_options options = { .directory = scratch_directory() };
    struct nt_source *source;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nt_source_live_open(&options, &source) != 0) {
        _exit(1);
    }
    for (;;) {
        if (__atomic_load_n(&control->active, __ATOMIC_ACQUIRE)) {
            uint64_t start = bench_clock_ns(BENCH_CLOCK_THREAD_CPU);
            control->failures += sample(source) < FEW;
            control->cpu_ns += bench_clock_ns(BENCH_CLOCK_THREAD_CPU) - start;
            control->samples++;
        }
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

static int report_watched(struct few *few)
{
    static struct bench_samples samples[2], reader;
    const struct bench_variant variants[] = {
        { "writer-alone", run_alone, few, NULL },
        { "reader-1ms", run_watched, few, NULL },
    };
    const struct bench_plan plan = { .clock = BENCH_CLOCK_THREAD_CPU, .batches = 3, .operations = WRITER_EVENTS };
    bench_compare(&plan, variants, 2, samples);
    const struct control *control = few->control;
    if (control->samples == 0 || control->failures > 0) {
        fprintf(stderr, "bench: reader-1ms: %llu of %llu snapshots failed\n", (unsigned long long)control->failures,
                (unsigned long long)control->samples);
        return -1;
    }
    bench_samples_add(&reader, (double)control->cpu_ns / (double)control->samples / 1000);
    const struct bench_row rows[] = {
        { .name = "writer-alone", .unit = "ns" },
        { .name = "reader-1ms", .unit = "ns", .against = "writer-alone", .max_ratio = 1.05 },
        { .name = "reader-1ms-sample", .unit = "us" },
    };
    bench_report(&rows[0], &samples[0], NULL);
    bench_report(&rows[1], &samples[1], &samples[0]);
    bench_report(&rows[2], &reader, NULL);
    return 0;
}

static int measure_reader(void)
{
    struct few few = { .control = bench_memory(sizeof *few.control) };
    nt_log *log = scratch_log("reader", RING, 0);
    int error = -1;
    if (log == NULL || few.control == NULL) {
        return -1;
    }
    few_init(&few, log);
    count(&few, 2 * RING / 64);
    pid_t reader = fork();
    if (reader == 0) {
        read_always(few.control);
    }
    if (reader > 0) {
        error = report_watched(&few);
        (void)kill(reader, SIGKILL);
        (void)waitpid(reader, NULL, 0);
    }
    error = scratch_log_is_whole(log) ? error : -1;
    scratch_log_free(log);
    return error;
}

/* ---- drain-1 ---- */

struct drain {
    struct few few;
    struct nt_source *source;
    uint64_t read, lost;
    int error;
};

static void drain_prepare(void *state, uint64_t operations)
{
    const struct drain *drain = state;
    count(&drain->few, operations);
}

static void drain_all(void *state, uint64_t operations)
{
    static struct nt_event events[READ_ROOM];
    static struct nt_source_loss losses[64];
    struct drain *drain = state;
    int count;
    (void)operations;
    do {
        size_t loss_count;
        count = drain->source->ops->read(drain->source, events, READ_ROOM, losses, 64, &loss_count);
        drain->read += count > 0 ? (uint64_t)count : 0;
        for (size_t i = 0; i < loss_count; i++) {
            drain->lost += losses[i].count;
        }
    } while (count > 0);
    drain->error = count;
}

/* Each batch is seven eighths of a ring: that many fit beside the chunks that are given up. */
static int drain_run(struct drain *drain, const char *path, uint64_t ring, struct bench_samples *samples)
{
    const struct nt_live_options options = { .files = &path, .file_count = 1 };
    uint64_t events = ring / 64 / 8 * 7;
    if (nt_source_live_open(&options, &drain->source) != 0) {
        return -1;
    }
    (void)sample(drain->source);
    drain_all(drain, 0);
    drain->read = drain->lost = 0;
    const struct bench_variant variant = { "drain-1", drain_all, drain, drain_prepare };
    const struct bench_plan plan = { .clock = BENCH_CLOCK_THREAD_CPU,
                                     .operations = events,
                                     .rounds = ring > RING ? 30 : 60,
                                     .batches = ring > RING ? 2 : 16 };
    bench_compare(&plan, &variant, 1, samples);
    nt_source_free(drain->source);
    if (drain->error != 0 || drain->lost > 0 || drain->read == 0 || drain->read % events != 0) {
        fprintf(stderr, "bench: drain-1: error %d, %llu read, %llu lost\n", drain->error,
                (unsigned long long)drain->read, (unsigned long long)drain->lost);
        return -1;
    }
    return 0;
}

static int measure_ring(const char *row, uint64_t ring, uint64_t cap)
{
    struct bench_samples *each = bench_memory(sizeof *each), *rate = bench_memory(sizeof *rate);
    struct drain drain = { .read = 0 };
    nt_log *log = scratch_log(row, ring, cap);
    if (log == NULL || each == NULL || rate == NULL) {
        return -1;
    }
    few_init(&drain.few, log);
    count(&drain.few, 2 * ring / 64);
    int error = drain_run(&drain, nt_log_path(log), ring, each);
    error = scratch_log_is_whole(log) ? error : -1;
    scratch_log_free(log);
    if (error != 0) {
        return error;
    }
    for (unsigned i = 0; i < each->count; i++) {
        bench_samples_add(rate, 1000 / each->values[i]);
    }
    bench_report(&(struct bench_row){ .name = row, .unit = "M/s", .min_median = 50 }, rate, NULL);
    return 0;
}

static int measure_drain(void)
{
    return measure_ring("drain-1", RING, 0);
}

static int measure_drain_large(void)
{
    return measure_ring("drain-1-large", LARGE_RING, LARGE_CAP);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "writer-alone reader-1ms reader-1ms-sample", measure_reader },
        { "drain-1", measure_drain },
        { "drain-1-large", measure_drain_large },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
