/* SPDX-License-Identifier: BSD-3-Clause */
/* A million objects: what making one costs, how long one call took at most, what one occupies with two kinds
   counted on it. Names are like "conn-123456". A round makes them all in a log of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nt/log.h>

#include "harness.h"
#include "scratch.h"

#define OBJECTS UINT32_C(1000000)
#define STALL_ROUNDS 5
#define SEGMENT UINT32_C(1000)
#define CAP (UINT64_C(2) << 30)

/* Names made before, so that only the library is measured. */
struct names {
    char text[OBJECTS][16];
};

static struct names *names;
static struct bench_calls calls;
static struct bench_samples each, each_noisy, cpu, wall, spin_cpu, spin_wall, backed, blocks;

static struct names *names_new(void)
{
    struct names *made = malloc(sizeof *made);
    for (uint32_t i = 0; made != NULL && i < OBJECTS; i++) {
        (void)snprintf(made->text[i], sizeof made->text[i], "conn-%06u", i);
    }
    return made;
}

static nt_object object_new(nt_log *log, uint32_t number)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = names->text[number];
    return nt_object_new(log, &options);
}

/* What the log says that it occupies, and what its file does. */
struct memory {
    double backed, blocks;
};

static int memory_of(const nt_log *log, struct memory *ret_memory)
{
    struct nt_layout_live live;
    struct stat status;
    int file = open(nt_log_path(log), O_RDONLY | O_CLOEXEC);
    bool good = file >= 0 && fstat(file, &status) == 0 &&
                pread(file, &live, sizeof live, NT_LAYOUT_PAGE) == (ssize_t)sizeof live;
    if (file >= 0) {
        (void)close(file);
    }
    if (!good) {
        perror("bench: object-memory");
        return -1;
    }
    ret_memory->backed = (double)live.backed;
    ret_memory->blocks = (double)status.st_blocks * 512;
    return 0;
}

/* Nanoseconds each: of all, and of those made while nobody else worked on the core, if that is a tenth. */
static int create(void *arg)
{
    (void)arg;
    nt_log *log = scratch_log("object-new", 0, CAP);
    if (log == NULL) {
        return -1;
    }
    uint64_t all = 0, undisturbed = 0;
    uint32_t quiet = 0;
    for (uint32_t i = 0; i < OBJECTS; i += SEGMENT) {
        bool was_quiet = bench_wait_quiet();
        uint64_t start = bench_clock_ns(BENCH_CLOCK_THREAD_CPU);
        for (uint32_t j = i; j < i + SEGMENT; j++) {
            (void)object_new(log, j);
        }
        uint64_t took = bench_clock_ns(BENCH_CLOCK_THREAD_CPU) - start;
        all += took;
        if (was_quiet && bench_is_quiet()) {
            undisturbed += took;
            quiet += SEGMENT;
        }
    }
    bench_samples_add(&each, quiet > OBJECTS / 10 ? (double)undisturbed / quiet : (double)all / OBJECTS);
    bench_samples_add(&each_noisy, (double)all / OBJECTS);
    int error = scratch_log_is_whole(log) ? 0 : -1;
    scratch_log_free(log);
    return error;
}

/* The longest call; with no log, the same without one. */
static struct bench_stall create_stalls(nt_log *log)
{
    struct bench_stall worst = { 0, 0 };
    float *us = calls.us + (size_t)calls.current * OBJECTS;
    for (uint32_t i = 0; i < OBJECTS; i++) {
        struct bench_watch watch;
        bench_watch_start(&watch);
        if (log != NULL) {
            (void)object_new(log, i);
        }
        double took = bench_watch_stop(&watch, &worst);
        us[i] = log != NULL ? (float)took : us[i];
    }
    return worst;
}

static int stall(void *arg)
{
    (void)arg;
    nt_log *log = scratch_log("object-stall", 0, CAP);
    if (log == NULL) {
        return -1;
    }
    struct bench_stall made = create_stalls(log);
    struct bench_stall spun = create_stalls(NULL);
    calls.current++;
    bench_samples_add(&cpu, made.cpu_us);
    bench_samples_add(&wall, made.wall_us);
    bench_samples_add(&spin_cpu, spun.cpu_us);
    bench_samples_add(&spin_wall, spun.wall_us);
    int error = scratch_log_is_whole(log) ? 0 : -1;
    scratch_log_free(log);
    return error;
}

static int occupy(void *arg)
{
    (void)arg;
    nt_log *log = scratch_log("object-memory", 0, CAP);
    struct memory before, after;
    if (log == NULL) {
        return -1;
    }
    /* the ring is there, all of it, before the first look */
    for (uint32_t i = 0; i < 1u << 15; i++) {
        nt_object_count(nt_log_object(log), NT_WRITE, i);
    }
    int error = memory_of(log, &before);
    for (uint32_t i = 0; i < OBJECTS && error == 0; i++) {
        nt_object object = object_new(log, i);
        nt_object_count(object, NT_WRITE, i);
        nt_object_count(object, NT_READ, i);
    }
    if (error != 0 || memory_of(log, &after) != 0 || !scratch_log_is_whole(log)) {
        error = -1;
    } else {
        bench_samples_add(&backed, (after.backed - before.backed) / OBJECTS);
        bench_samples_add(&blocks, (after.blocks - before.blocks) / OBJECTS);
    }
    scratch_log_free(log);
    return error;
}

/* Runs it that often, with names made before. */
static int repeat(int (*run)(void *arg), unsigned times)
{
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = times });
    int error = 0;
    (void)bench_ns_per_tick();
    names = names_new();
    if (names == NULL) {
        fprintf(stderr, "bench: object: no memory\n");
        return -1;
    }
    for (unsigned round = 0; round < rounds && error == 0; round++) {
        error = scratch_in_thread(run, NULL);
    }
    free(names);
    return error;
}

static int measure_new(void)
{
    if (repeat(create, 7) != 0) {
        return -1;
    }
    bench_report(&(struct bench_row){ .name = "object-new", .unit = "ns", .max_median = 1000 }, &each, NULL);
    bench_report(&(struct bench_row){ .name = "object-new-noisy", .unit = "ns", .against = "object-new" }, &each_noisy,
                 &each);
    return 0;
}

static int measure_stall(void)
{
    static struct bench_samples longest;
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = STALL_ROUNDS });
    if (bench_calls_init(&calls, OBJECTS, rounds) != 0 || repeat(stall, STALL_ROUNDS) != 0) {
        return -1;
    }
    bench_samples_add(&longest, bench_calls_longest(&calls));
    bench_calls_fini(&calls);
    const struct bench_row rows[] = {
        { .name = "object-new-stall", .unit = "us", .max_median = 1000 },
        { .name = "object-new-stall-any", .unit = "us", .against = "object-new-spin" },
        { .name = "object-new-spin", .unit = "us" },
        { .name = "object-new-stall-wall", .unit = "us", .against = "object-new-spin-wall" },
        { .name = "object-new-spin-wall", .unit = "us" },
    };
    bench_report(&rows[0], &longest, NULL);
    bench_report(&rows[1], &cpu, &spin_cpu);
    bench_report(&rows[2], &spin_cpu, NULL);
    bench_report(&rows[3], &wall, &spin_wall);
    bench_report(&rows[4], &spin_wall, NULL);
    return 0;
}

static int measure_memory(void)
{
    if (repeat(occupy, 1) != 0) {
        return -1;
    }
    bench_report(&(struct bench_row){ .name = "object-memory", .unit = "bytes", .max_median = 512 }, &backed, NULL);
    bench_report(&(struct bench_row){ .name = "object-memory-file", .unit = "bytes", .against = "object-memory" },
                 &blocks, &backed);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "object-new object-new-noisy", measure_new },
        { "object-new-stall object-new-stall-any object-new-spin object-new-stall-wall object-new-spin-wall",
          measure_stall },
        { "object-memory object-memory-file", measure_memory },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
