/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding one session, or one object of some 10,000 events, in a recording of 10 M events (traffic.h): from opening
   it to the last event in order, with the file in the page cache and without; and `ntscope events --where` as a
   whole, with its start, the names of things, and its text. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness.h"
#include "source/merge.h"
#include "source/recording/recording.h"
#include "traffic.h"

enum {
    EVENTS = 10000000,
    BATCH = 4096,
    SOUGHT = 64, /* sessions and objects, in turn */
    FIRST = 134, /* objects in the order of how busy they are: from here on they have 10,000 events at most */
    PATIENCE = 6 /* seconds for undisturbed rounds */
};

static struct {
    struct nt_source source; /* tells the channels */
    struct traffic traffic;
    struct nt_event events[BATCH];
    uint64_t sessions[SOUGHT];
    char path[64];
} kept;

static int tell(struct nt_source *source, const struct nt_source_sink *sink)
{
    const struct nt_source_program program = {
        .state = NT_PROGRAM_EXITED, .id = 1, .pid = 7, .rings = TRAFFIC_RINGS, .name = { "busy", 4 }, .path = "busy"
    };
    int error = sink->program(sink->arg, &program);
    (void)source;
    for (uint32_t i = 0; i < TRAFFIC_OBJECTS && error == 0; i++) {
        char name[32];
        int size = snprintf(name, sizeof name, "channel-%u", i);
        const struct nt_source_object object = {
            .slot = i + 1, .generation = 1, .kind = 3, .name = { name, (size_t)size }, .mask = UINT64_MAX
        };
        error = sink->object(sink->arg, &object);
    }
    return error;
}

/* ---- The recording ---- */

static int write_events(struct nt_recording *recording)
{
    int error = 0;
    traffic_init(&kept.traffic, 1);
    for (size_t made = 0; made < EVENTS && error == 0; made += BATCH) {
        size_t count = EVENTS - made < BATCH ? EVENTS - made : BATCH;
        traffic_make(&kept.traffic, kept.events, count);
        for (size_t i = 0; i < count && error == 0; i++) {
            const struct nt_event *event = &kept.events[i];
            if ((made + i) % (EVENTS / SOUGHT) == EVENTS / SOUGHT / 2) {
                kept.sessions[(made + i) / (EVENTS / SOUGHT)] = event->session;
            }
            error = nt_recording_event(recording, event, 100 + event->ring);
        }
    }
    return error;
}

static int make(void)
{
    static const struct nt_source_ops ops = { .name = "busy", .snapshot = tell };
    const char *folder = getenv("TMPDIR");
    struct nt_recording *recording = NULL;
    (void)snprintf(kept.path, sizeof kept.path, "%.40s/ntscope-find-XXXXXX", folder != NULL ? folder : "/tmp");
    int file = mkostemp(kept.path, O_CLOEXEC);
    kept.source.ops = &ops;
    int error = file >= 0 ? nt_recording_new(file, 1, false, &recording) : -1;
    error = error == 0 ? nt_recording_tables(recording, &kept.source, 1, NULL, NULL) : error;
    error = error == 0 ? write_events(recording) : error;
    error = error == 0 ? nt_recording_finish(recording, 2) : error;
    nt_recording_free(recording);
    if (file >= 0 && (fsync(file) != 0 || close(file) != 0)) {
        error = -1;
    }
    if (error != 0) {
        fprintf(stderr, "bench: find: cannot write %s\n", kept.path);
    }
    return error;
}

/* What is in no cache is read from the disk. */
static void drop(void)
{
    int file = open(kept.path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(file);
    }
}

/* ---- Finding ---- */

static void condition(bool session, unsigned round, char where[64])
{
    if (session) {
        (void)snprintf(where, 64, "session = '%016llx'", (unsigned long long)kept.sessions[round % SOUGHT]);
    } else {
        (void)snprintf(where, 64, "object = 'channel-%u'", FIRST + round % SOUGHT);
    }
}

static int is_wanted(void *arg, uint32_t program, uint32_t object, uint32_t generation)
{
    (void)program;
    (void)generation;
    return object == *(const unsigned *)arg;
}

/* How many events came, or -1. Not all of them are asked for: whoever reads looks at them again. */
static int read_found(struct nt_source *source)
{
    static struct nt_merge_item items[1024];
    const struct nt_merge_options options = { .no_hold = true };
    struct nt_merge *merge;
    int count = nt_merge_new(source, &options, &merge), all = 0;
    while (count >= 0 && (count = nt_merge_flush(merge, items, 1024)) > 0) {
        all += count;
    }
    nt_merge_free(merge);
    return count < 0 ? -1 : all;
}

/* 0, or -1: failed. */
static int find_here(bool session, unsigned round, struct command_cost *ret_cost)
{
    const char *const paths[] = { kept.path };
    const struct nt_recording_options options = { .files = paths, .file_count = 1 };
    unsigned object = FIRST + round % SOUGHT + 1;
    struct nt_source_wanted wanted = { .until = UINT64_MAX };
    struct nt_source *source;
    if (session) {
        wanted.sessions = &kept.sessions[round % SOUGHT];
        wanted.session_count = 1;
    } else {
        wanted.life = is_wanted;
        wanted.arg = &object;
    }
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    if (nt_source_recording_open(&options, &source) != 0) {
        return -1;
    }
    int found = nt_source_select(source, &wanted) == 1 ? read_found(source) : -1;
    nt_source_free(source);
    ret_cost->wall_ms = (double)(bench_clock_ns(BENCH_CLOCK_WALL) - start) / 1e6;
    return found > 0 ? 0 : -1;
}

struct way {
    bool session, cold, command;
};

/* 1: disturbed, 0, or -1: failed. */
static int find_once(const struct way *way, unsigned round, struct command_cost *ret_cost)
{
    char where[64];
    condition(way->session, round, where);
    char *const command[] = { (char *)(uintptr_t)command_path("ntscope"), "events", "--where", where, kept.path, NULL };
    if (way->cold) {
        drop();
    }
    bool quiet = bench_wait_quiet();
    if (way->command) {
        return command_run(command, true, ret_cost) != 0 ? -1 : ret_cost->preempted > 0;
    }
    int error = find_here(way->session, round, ret_cost);
    return error != 0 ? error : !(quiet && bench_is_quiet());
}

static int measure(const struct way *way, unsigned rounds, struct bench_samples *samples)
{
    bool cold = way->cold;
    uint64_t patience = bench_clock_ns(BENCH_CLOCK_WALL) + PATIENCE * UINT64_C(1000000000) / (cold ? 4 : 1);
    unsigned quiet = 0;
    struct command_cost cost;
    int result = cold ? 0 : find_once(way, 0, &cost);
    while (result >= 0 && samples->count < rounds) {
        result = find_once(way, samples->count, &cost);
        if (result == 0 || (result > 0 && bench_clock_ns(BENCH_CLOCK_WALL) > patience)) {
            bench_samples_add(samples, cost.wall_ms);
            quiet += result == 0;
        }
    }
    samples->quiet = (double)quiet / rounds;
    return result < 0 ? -1 : 0;
}

static int measure_all(void)
{
    static const struct {
        struct bench_row row;
        struct way way;
    } all[] = {
        { { .name = "find-session", .unit = "ms", .max_median = 10 }, { true, false, false } },
        { { .name = "find-object", .unit = "ms", .max_median = 10 }, { false, false, false } },
        { { .name = "find-session-cold", .unit = "ms" }, { true, true, false } },
        { { .name = "find-object-cold", .unit = "ms" }, { false, true, false } },
        { { .name = "find-session-command", .unit = "ms" }, { true, false, true } },
        { { .name = "find-object-command", .unit = "ms" }, { false, false, true } },
    };
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = SOUGHT });
    int error = make();
    for (size_t i = 0; i < sizeof all / sizeof all[0] && error == 0; i++) {
        struct bench_samples *samples = bench_memory(sizeof *samples);
        error = measure(&all[i].way, all[i].way.cold ? 5 : rounds, samples);
        if (error == 0) {
            bench_report(&all[i].row, samples, NULL);
        }
    }
    if (getenv("BENCH_KEEP") == NULL) {
        (void)unlink(kept.path);
    }
    return error;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "find-session find-object find-session-cold find-object-cold find-session-command find-object-command",
          measure_all },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
