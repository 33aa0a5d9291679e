/* SPDX-License-Identifier: BSD-3-Clause */
/* `ntscope record` as a whole: bytes an event of what examples/relay with its default options logs; and how much of
   what two threads log, a million events a second each, in small steps on time and not as fast as they can, it records
   through default rings, and with how much of a processor. The recorder runs ahead of ordinary programs, if that is
   allowed: the figure is of a machine that is idle otherwise. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "harness.h"
#include "scratch.h"
#include "source/merge.h"
#include "source/recording/recording.h"

enum {
    THREADS = 2,
    STEP = 1000,       /* events at once */
    STEP_NS = 1000000, /* and how long it takes from one to the next */
    STEPS = 2000,
    CHANNELS = 16 /* of a thread */
};

static char path[1200];

static int begin(void)
{
    const char *folder = scratch_directory();
    if (folder == NULL || setenv("NTSCOPE_DIR", folder, 1) != 0) {
        return -1;
    }
    const char *place = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%.1000s/ntscope-record-%d.ntrec", place != NULL ? place : "/tmp", (int)getpid());
    return 0;
}

/* Events that are in the recording, or -1. */
static int64_t recorded(void)
{
    static struct nt_event events[1024];
    const char *const paths[] = { path };
    const struct nt_recording_options options = { .files = paths, .file_count = 1 };
    struct nt_source_loss losses[64];
    struct nt_source *source;
    size_t lost = 0;
    int count = nt_source_recording_open(&options, &source);
    if (count != 0) {
        return -1;
    }
    int64_t all = 0;
    do {
        count = source->ops->read(source, events, 1024, losses, 64, &lost);
        all += count > 0 ? count : 0;
    } while (count > 0 || (count == 0 && lost > 0));
    nt_source_free(source);
    return count < 0 ? -1 : all;
}

/* ---- The relay ---- */

static int measure_relay(void)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 5 });
    struct bench_samples *size = bench_memory(sizeof *size);
    int error = begin();
    for (unsigned i = 0; i < rounds && error == 0; i++) {
        char relay[4096];
        struct command_cost cost;
        struct nt_recording_info info;
        (void)snprintf(relay, sizeof relay, "%s", command_path("examples/relay/relay"));
        char *const command[] = { (char *)(uintptr_t)command_path("ntscope"), "record", "-o", path, "--", relay, NULL };
        error = command_run(command, false, &cost);
        error = error == 0 ? nt_recording_info(path, &info) : error;
        int64_t count = error == 0 ? recorded() : -1;
        if (count > 0) {
            bench_samples_add(size, (double)info.event_bytes / (double)count);
        }
        error = count > 0 ? 0 : -1;
    }
    (void)unlink(path);
    if (error == 0) {
        bench_report(&(struct bench_row){ .name = "record-size-relay", .unit = "B", .max_median = 8 }, size, NULL);
    }
    return error;
}

/* ---- A busy program ---- */

struct busy {
    pthread_t thread;
    nt_object objects[CHANNELS];
};

/* One that had to wait long for a processor does not make up for it: it would be faster than it is to be. */
static void next_step(struct timespec *at)
{
    struct timespec now;
    at->tv_nsec += STEP_NS;
    at->tv_sec += at->tv_nsec / 1000000000;
    at->tv_nsec %= 1000000000;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t late = (now.tv_sec - at->tv_sec) * INT64_C(1000000000) + now.tv_nsec - at->tv_nsec;
    if (late > 4 * STEP_NS) {
        *at = now;
    }
}

static void *work(void *arg)
{
    const struct busy *busy = arg;
    struct timespec at;
    uint32_t chance = 1;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < STEP; j++) {
            chance = chance * 1664525 + 1013904223;
            nt_object_count(busy->objects[chance >> 28], chance & 1 << 16 ? NT_WRITE : NT_READ, chance >> 20);
        }
        next_step(&at);
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return NULL;
}

static int log_events(nt_log *log)
{
    static struct busy all[THREADS];
    int made = 0;
    for (int i = 0; i < THREADS; i++) {
        for (uint32_t j = 0; j < CHANNELS; j++) {
            all[i].objects[j] = scratch_object(log, i == 0 ? "left-" : "right-", j, NT_MASK_ALL);
        }
    }
    while (made < THREADS && pthread_create(&all[made].thread, NULL, work, &all[made]) == 0) {
        made++;
    }
    for (int i = 0; i < made; i++) {
        (void)pthread_join(all[i].thread, NULL);
    }
    return made == THREADS ? 0 : -1;
}

static int record_once(nt_log *log, struct bench_samples *kept, struct bench_samples *cpu, struct bench_samples *rate)
{
    char *const command[] = { (char *)(uintptr_t)command_path("ntscope"), "record", "-o", path, NULL };
    const struct timespec soon = { .tv_nsec = 300000000 };
    struct rusage usage;
    pid_t child;
    int status = -1;
    if (command_start(command, true, &child) != 0) {
        return -1;
    }
    (void)nanosleep(&soon, NULL);
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    int error = log_events(log);
    double wall = (double)(bench_clock_ns(BENCH_CLOCK_WALL) - start) / 1e9;
    (void)nanosleep(&soon, NULL);
    (void)kill(child, SIGINT);
    (void)wait4(child, &status, 0, &usage);
    int64_t count = error == 0 && status == 0 ? recorded() : -1;
    if (count < 0) {
        (void)fprintf(stderr, "bench: record-live: ntscope record ended with status %d\n", status);
        return -1;
    }
    double spent = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    double events = (double)THREADS * (STEPS * STEP + CHANNELS); /* each channel tells that it was opened */
    if (kept->count == 0 || 100 * (double)count / events < kept->values[0]) { /* no round may lose any */
        kept->values[0] = 100 * (double)count / events;
        kept->count = 1;
    }
    bench_samples_add(cpu, 100 * spent / wall);
    bench_samples_add(rate, events / wall / 1e6);
    return 0;
}

static int measure_live(void)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 3 });
    struct bench_samples *kept = bench_memory(3 * sizeof *kept), *cpu = kept + 1, *rate = kept + 2;
    int error = begin();
    for (unsigned i = 0; i < rounds && error == 0; i++) {
        nt_log *log = scratch_log("busy", 0, 0);
        (void)bench_wait_quiet();
        error = log != NULL ? record_once(log, kept, cpu, rate) : -1;
        error = log != NULL && !scratch_log_is_whole(log) ? -1 : error;
        scratch_log_free(log);
    }
    (void)unlink(path);
    if (error == 0) {
        bench_report(&(struct bench_row){ .name = "record-live", .unit = "% kept", .min_median = 100 }, kept, NULL);
        bench_report(&(struct bench_row){ .name = "record-live-cpu", .unit = "% of a core" }, cpu, NULL);
        bench_report(&(struct bench_row){ .name = "record-live-rate", .unit = "M/s" }, rate, NULL);
    }
    return error;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "record-size-relay", measure_relay },
        { "record-live record-live-cpu record-live-rate", measure_live },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
