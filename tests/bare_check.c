/* SPDX-License-Identifier: BSD-3-Clause */
/* bare_check [--live] [--killed] LOGS: reads the logs of bare_count, with --live over and over until standard input
   ends, as fast as it can, so that it is overtaken again and again. Each event and each sum must be what bare.h
   says. Prints one JSON line; exit 0: all holds, 1: not, 2: usage. */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log.h>

#include "bare.h"
#include "source/live/live.h"

enum { OBJECTS = 256, RINGS = 64, ROOM = 4096, ERRORS_SHOWN = 20 };

struct object {
    uint32_t program, slot, generation;
    char name[32];
    struct nt_source_tally sum;
    uint64_t seen; /* count of the last event */
};

struct check {
    struct nt_source *source;
    struct object objects[OBJECTS];
    size_t object_count;
    uint64_t next[RINGS]; /* position, of the one program's rings */
    uint64_t events, lost, errors, sums;
    bool killed;
};

__attribute__((format(printf, 2, 3))) static void complain(struct check *check, const char *format, ...)
{
    if (check->errors++ >= ERRORS_SHOWN)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* ---- Snapshots ---- */

static struct object *find_object(struct check *check, uint32_t slot, uint32_t generation)
{
    for (size_t i = 0; i < check->object_count; i++)
        if (check->objects[i].slot == slot && check->objects[i].generation == generation)
            return &check->objects[i];
    return NULL;
}

static int take_object(void *arg, const struct nt_source_object *told)
{
    struct check *check = arg;
    struct object *object = find_object(check, told->slot, told->generation);
    if (told->kind != NT_OBJECT_CHANNEL)
        return 0;
    if (!object) {
        if (check->object_count == OBJECTS)
            return -ENOMEM;
        object = &check->objects[check->object_count++];
        *object = (struct object){ .program = told->program, .slot = told->slot, .generation = told->generation };
        memcpy(object->name, told->name.data, told->name.size < 31 ? told->name.size : 31);
    }
    for (size_t i = 0; i < told->tally_count; i++)
        if (told->tallies[i].kind == NT_WRITE)
            object->sum = told->tallies[i];
    return 0;
}

static void take_bad(void *arg, const char *path, int error, const char *text)
{
    complain(arg, "%s: %d %s", path, error, text);
}

static bool is_shared(const struct object *object)
{
    return strcmp(object->name, BARE_SHARED) == 0;
}

static void snapshot(struct check *check)
{
    const struct nt_source_sink sink = { .object = take_object, .bad = take_bad, .arg = check };
    int result = nt_source_snapshot(check->source, &sink);
    if (result < 0)
        complain(check, "snapshot: %d %s", result, check->source->text);
    for (size_t i = 0; i < check->object_count; i++) {
        const struct object *object = &check->objects[i];
        uint64_t count = object->sum.count;
        uint64_t total = is_shared(object) ? count * BARE_SHARED_VALUE : bare_total(count);
        check->sums++;
        if (object->sum.total != total)
            complain(check, "%s: %" PRIu64 " events sum to %" PRIu64 ", not to %" PRIu64, object->name, count,
                     object->sum.total, total);
    }
}

/* ---- Events ---- */

static void take_place(struct check *check, uint32_t ring, uint64_t from, uint64_t to)
{
    if (ring >= RINGS)
        return;
    uint64_t *next = &check->next[ring];
    if (from != *next)
        complain(check, "ring %" PRIu32 ": position %" PRIu64 " follows on %" PRIu64, ring, from, *next);
    *next = to;
}

static void take_event(struct check *check, const struct nt_event *event)
{
    check->events++;
    if (event->kind != NT_WRITE)
        return;
    struct object *object = find_object(check, event->object, event->generation);
    if (!object)
        snapshot(check);
    if (!object && !(object = find_object(check, event->object, event->generation))) {
        complain(check, "an event of object %" PRIu32 ".%" PRIu32 ", which there is not", event->object,
                 event->generation);
        return;
    }
    bool shared = is_shared(object);
    uint64_t value = shared ? BARE_SHARED_VALUE : bare_value(event->count);
    uint64_t total = shared ? event->count * BARE_SHARED_VALUE : bare_total(event->count);
    if (event->value != value || event->total != total || event->count == 0 ||
        (!shared && event->count <= object->seen))
        complain(check,
                 "%s: event %" PRIu64 " after %" PRIu64 " has value %" PRIu64 " and total %" PRIu64 ", not %" PRIu64
                 " and %" PRIu64,
                 object->name, event->count, object->seen, event->value, event->total, value, total);
    if (object->seen < event->count)
        object->seen = event->count;
}

/* Events and losses come apart; each ring's are in order. */
static size_t read_some(struct check *check)
{
    static struct nt_event events[ROOM];
    static struct nt_source_loss losses[ROOM];
    size_t loss_count = 0, loss = 0;
    int count = check->source->ops->read(check->source, events, ROOM, losses, ROOM, &loss_count);
    if (count < 0) {
        complain(check, "read: %d %s", count, check->source->text);
        return 0;
    }
    bool *told = calloc(loss_count + 1, sizeof *told);
    for (int i = 0; told && i < count; i++) {
        for (loss = 0; loss < loss_count; loss++) {
            if (told[loss] || losses[loss].ring != events[i].ring || losses[loss].from > events[i].position)
                continue;
            told[loss] = true;
            take_place(check, losses[loss].ring, losses[loss].from, losses[loss].to);
        }
        take_place(check, events[i].ring, events[i].position, events[i].position + NT_LAYOUT_SLOT);
        take_event(check, &events[i]);
    }
    for (loss = 0; told && loss < loss_count; loss++) {
        check->lost += losses[loss].count;
        if (!told[loss])
            take_place(check, losses[loss].ring, losses[loss].from, losses[loss].to);
    }
    free(told);
    return (size_t)count + loss_count;
}

static bool input_open(void)
{
    struct pollfd entry = { .fd = STDIN_FILENO, .events = POLLIN };
    char byte;
    return poll(&entry, 1, 0) <= 0 || read(STDIN_FILENO, &byte, 1) > 0;
}

/* No event says more than the table, and the maximum is at most one event behind. */
static void last_look(struct check *check)
{
    snapshot(check);
    for (size_t i = 0; i < check->object_count; i++) {
        const struct object *object = &check->objects[i];
        uint64_t count = object->sum.count, max = is_shared(object) ? BARE_SHARED_VALUE : bare_max(count);
        uint64_t before = is_shared(object) && count > 1 ? max : count > 0 ? bare_max(count - 1) : 0;
        if (object->seen > count)
            complain(check, "%s: an event is number %" PRIu64 ", the table says %" PRIu64, object->name, object->seen,
                     count);
        if (object->sum.max != (count ? max : 0) && !(check->killed && object->sum.max == before))
            complain(check, "%s: maximum %" PRIu64 " of %" PRIu64 " events", object->name, object->sum.max, count);
    }
}

int main(int argc, char **argv)
{
    static struct check check;
    bool live = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        live |= strcmp(argv[i], "--live") == 0;
        check.killed |= strcmp(argv[i], "--killed") == 0;
    }
    if (argc - i != 1) {
        fputs("usage: bare_check [--live] [--killed] LOGS\n", stderr);
        return 2;
    }
    const struct nt_live_options options = { .directory = argv[i] };
    if (nt_source_live_open(&options, &check.source) < 0)
        return 2;
    while (live && input_open()) {
        snapshot(&check);
        for (unsigned k = 0; k < 64 && read_some(&check) > 0; k++)
            ;
    }
    snapshot(&check);
    while (read_some(&check) > 0)
        ;
    last_look(&check);
    printf("{\"objects\":%zu,\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"sums\":%" PRIu64 ",\"errors\":%" PRIu64
           "}\n",
           check.object_count, check.events, check.lost, check.sums, check.errors);
    nt_source_free(check.source);
    return check.errors > 0;
}
