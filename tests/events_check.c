/* SPDX-License-Identifier: BSD-3-Clause */
/* events_check [--live] [--killed] [--pause MS] [--seed N] LOGS TRUTH

   Reads all events of the logs in the directory LOGS: with --live while their programs run, until standard input
   ends, pausing up to MS milliseconds between reads, so that rings overrun. Then holds events, losses and object
   tables against the truth files of the relay. Prints one JSON line; exit 0: all holds, 1: not, 2: usage. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

#include "events_verify.h"
#include "source/live/live.h"

struct check {
    struct nt_source *source;
    struct reading reading;
    struct verify verify;
    const char *logs, *truth;
    bool live;
    uint64_t pause_ms, seed;
};

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 1024;
    array = realloc(array, *room * size);
    if (!array) {
        fputs("events_check: out of memory\n", stderr);
        exit(2);
    }
    return array;
}

static uint64_t check_random(struct check *check)
{
    check->seed = check->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return check->seed >> 33;
}

/* ---- Snapshots ---- */

static int take_program(void *arg, const struct nt_source_program *program)
{
    struct check *check = arg;
    struct reading *reading = &check->reading;
    struct seen_program *seen = verify_program(&check->verify, program->number);
    if (!seen) {
        reading->programs = realloc(reading->programs, (reading->program_count + 1) * sizeof *reading->programs);
        if (!reading->programs)
            return -ENOMEM;
        seen = &reading->programs[reading->program_count++];
        *seen = (struct seen_program){ .number = program->number, .pid = program->pid, .id = program->id };
    }
    if (seen->id != program->id || seen->pid != program->pid)
        verify_error(&check->verify, "program %" PRIu32 " is now another one", program->number);
    seen->origin = program->origin;
    seen->rings = program->rings;
    seen->events = program->events;
    seen->refused_objects = program->refused_objects;
    seen->refused_tallies = program->refused_tallies;
    seen->dropped = program->dropped;
    seen->state = program->state;
    seen->present = true;
    return 0;
}

static struct nt_source_tally *copy_tallies(const struct nt_source_tally *tallies, size_t count)
{
    struct nt_source_tally *copy = malloc((count + 1) * sizeof *copy);
    if (copy && count)
        memcpy(copy, tallies, count * sizeof *copy);
    return copy;
}

static int take_object(void *arg, const struct nt_source_object *object)
{
    struct check *check = arg;
    struct reading *reading = &check->reading;
    struct seen_program *program = verify_program(&check->verify, object->program);
    if (program && object->kind == NT_OBJECT_PROCESS) {
        program->life[0] = object->slot;
        program->life[1] = object->generation;
    }
    reading->objects = grow(reading->objects, reading->object_count, &reading->object_room, sizeof *reading->objects);
    reading->objects[reading->object_count++] = (struct seen_object){
        .program = object->program,
        .slot = object->slot,
        .generation = object->generation,
        .parent = object->parent,
        .parent_generation = object->parent_generation,
        .previous = object->previous,
        .previous_generation = object->previous_generation,
        .epoch = object->epoch,
        .kind = object->kind,
        .discipline = object->discipline,
        .described = object->described,
        .closed = object->closed,
        .name = strndup(object->name.data ? object->name.data : "", object->name.size),
        .tallies = copy_tallies(object->tallies, object->tally_count),
        .gone = copy_tallies(object->gone, object->gone_count),
        .lineage = copy_tallies(object->lineage, object->lineage_count),
        .tally_count = object->tally_count,
        .gone_count = object->gone_count,
        .lineage_count = object->lineage_count,
    };
    return 0;
}

static void take_bad(void *arg, const char *path, int error, const char *text)
{
    struct check *check = arg;
    verify_error(&check->verify, "%s: %d %s", path, error, text);
}

static void forget_objects(struct reading *reading)
{
    for (size_t i = 0; i < reading->object_count; i++) {
        free(reading->objects[i].name);
        free(reading->objects[i].tallies);
        free(reading->objects[i].gone);
        free(reading->objects[i].lineage);
    }
    reading->object_count = 0;
    for (size_t i = 0; i < reading->program_count; i++)
        reading->programs[i].present = false;
}

static void snapshot(struct check *check)
{
    forget_objects(&check->reading);
    const struct nt_source_sink sink = {
        .program = take_program, .object = take_object, .bad = take_bad, .arg = check
    };
    int result = nt_source_snapshot(check->source, &sink);
    if (result < 0)
        verify_error(&check->verify, "snapshot: %d %s", result, check->source->text);
}

/* ---- Events ---- */

/* The fields of the relay's own kind, against what is known of them. */
static bool is_done_event(const struct nt_event *event)
{
    const uint8_t *at = event->data;
    uint64_t id, latency;
    double load;
    uint16_t length;
    if (event->data_size < 26)
        return false;
    memcpy(&id, at, 8);
    memcpy(&latency, at + 8, 8);
    memcpy(&length, at + 16, 2);
    if (event->data_size != 26u + length)
        return false;
    memcpy(&load, at + 18 + length, 8);
    char path[32];
    int wanted = snprintf(path, sizeof path, "/item/%" PRIu64, id % 1000);
    return length == wanted && memcmp(at + 18, path, length) == 0 && latency == event->value && load >= 0 && load <= 1;
}

static void take_event(struct check *check, const struct nt_event *event)
{
    struct reading *reading = &check->reading;
    uint32_t slots = 1;
    if (event->ring == NT_EVENT_NO_RING)
        return; /* a mask that was changed: nobody counted it */
    if (event->flags & NT_RECORD_DATA) {
        slots += (uint32_t)((event->data_size + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED);
        if (!is_done_event(event))
            verify_error(&check->verify,
                         "program %" PRIu32 " ring %" PRIu32 " position %" PRIu64 ": fields that nobody recorded",
                         event->program, event->ring, event->position);
    }
    if (event->merged != 1)
        verify_error(&check->verify, "an event of a log stands for %" PRIu32, event->merged);
    reading->events = grow(reading->events, reading->event_count, &reading->event_room, sizeof *reading->events);
    reading->events[reading->event_count++] = (struct seen){ event->position, event->session, event->value,
                                                             event->count,    event->total,   event->program,
                                                             event->ring,     event->object,  event->generation,
                                                             event->kind,     event->flags,   slots };
}

/* Returns how many events there were. */
static size_t read_some(struct check *check)
{
    enum { ROOM = 4096 };
    static struct nt_event events[ROOM];
    static struct nt_source_loss losses[ROOM];
    struct reading *reading = &check->reading;
    size_t room = check->live ? 1 + check_random(check) % ROOM : ROOM;
    size_t loss_count = 0;
    int count = check->source->ops->read(check->source, events, room, losses, room, &loss_count);
    if (count < 0) {
        verify_error(&check->verify, "read: %d %s", count, check->source->text);
        return 0;
    }
    for (int i = 0; i < count; i++)
        take_event(check, &events[i]);
    for (size_t i = 0; i < loss_count; i++) {
        reading->losses = grow(reading->losses, reading->loss_count, &reading->loss_room, sizeof *reading->losses);
        reading->losses[reading->loss_count++] = losses[i];
    }
    return (size_t)count + loss_count;
}

static bool input_open(int timeout_ms)
{
    struct pollfd entry = { .fd = STDIN_FILENO, .events = POLLIN };
    char byte;
    if (poll(&entry, 1, timeout_ms) <= 0)
        return true;
    return read(STDIN_FILENO, &byte, 1) > 0;
}

/* While programs run, reads in between; a snapshot now and then, for programs that come and go. */
static void follow(struct check *check)
{
    do {
        snapshot(check);
        for (unsigned i = 0; i < 8 && read_some(check) > 0; i++)
            ;
    } while (input_open(check->pause_ms ? (int)(check_random(check) % check->pause_ms) : 1));
}

/* ---- ---- */

static void print_outcome(const struct check *check)
{
    const struct reading *reading = &check->reading;
    uint64_t lost = 0, refused = 0, dropped = 0;
    for (size_t i = 0; i < reading->loss_count; i++)
        lost += reading->losses[i].count;
    for (size_t i = 0; i < reading->program_count; i++) {
        refused += reading->programs[i].refused_objects + reading->programs[i].refused_tallies;
        dropped += reading->programs[i].dropped;
    }
    printf("{\"programs\":%zu,\"events\":%zu,\"lost\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"refused\":%" PRIu64
           ",\"objects\":%zu,\"folded\":%lu,\"checked_events\":%lu,\"checked_sums\":%lu,\"errors\":%u}\n",
           reading->program_count, reading->event_count, lost, dropped, refused, reading->object_count,
           check->verify.folded, check->verify.checked_events, check->verify.checked_sums, check->verify.errors);
}

static bool parse(int argc, char **argv, struct check *check)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--live") == 0)
            check->live = true;
        else if (strcmp(argv[i], "--killed") == 0)
            check->verify.killed = true;
        else if (strcmp(argv[i], "--pause") == 0 && i + 1 < argc)
            check->pause_ms = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            check->seed = strtoull(argv[++i], NULL, 10);
        else
            return false;
    }
    if (argc - i != 2)
        return false;
    check->logs = argv[i];
    check->truth = argv[i + 1];
    return true;
}

int main(int argc, char **argv)
{
    struct check check = { .seed = 1 };
    struct truth_index truth;
    check.verify.reading = &check.reading;
    check.verify.truth = &truth;
    if (!parse(argc, argv, &check)) {
        fputs("usage: events_check [--live] [--killed] [--pause MS] [--seed N] LOGS TRUTH\n", stderr);
        return 2;
    }
    const struct nt_live_options options = { .directory = check.logs };
    if (nt_source_live_open(&options, &check.source) < 0)
        return 2;
    uint64_t seed = check.seed;
    if (check.live)
        follow(&check);
    check.live = false;
    snapshot(&check);
    while (read_some(&check) > 0)
        ;
    snapshot(&check);
    if (!truth_index_load(check.truth, &truth))
        return 2;
    verify_sort(&check.verify);
    verify_events(&check.verify);
    verify_thinned(&check.verify, seed);
    verify_tables(&check.verify);
    print_outcome(&check);
    forget_objects(&check.reading);
    free(check.reading.objects);
    free(check.reading.events);
    free(check.reading.losses);
    free(check.reading.programs);
    truth_index_fini(&truth);
    nt_source_free(check.source);
    return check.verify.errors > 0;
}
