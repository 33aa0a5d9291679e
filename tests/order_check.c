/* SPDX-License-Identifier: BSD-3-Clause */
/* order_check [--memory BYTES] [--room N] LOGS

   Holds what the merge and the gap tracking make of the logs in a directory against what they promise: times never go
   back unmarked, each place of a ring is an event or lost, once, in order; and for each object and kind
       came + missing - found = last - first + 1.
   Does what it is told on standard input: "flush" reads all there is, "follow" reads as it comes until the next line.
   Answers each, and the end of its input, with one JSON line of what came since the last one. Exit code 0: all holds,
   1: not, 2: usage. */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

#include "model/gaps.h"
#include "source/live/live.h"
#include "source/merge.h"

enum { RINGS_MAX = 2048, TRACKS = 65536, ROOM_MAX = 4096 };

struct ring {
    uint32_t program, ring;
    uint64_t position; /* next */
    unsigned losses;   /* since the last answer */
};

struct track { /* events of one kind on one object */
    uint32_t program, object, generation;
    uint16_t kind;
    uint64_t first, last, came; /* came 0: free */
    uint64_t lost, not_logged, found;
};

struct check {
    struct nt_source *source;
    struct nt_merge *merge;
    struct nt_gaps *gaps;
    size_t room;
    struct ring rings[RINGS_MAX];
    size_t ring_count;
    struct track tracks[TRACKS];
    uint64_t high, previous;                    /* times */
    uint64_t events, masks, losses, lost, late; /* since the last answer */
    unsigned errors;
    FILE *names; /* of objects, in JSON; or NULL */
};

__attribute__((format(printf, 2, 3))) static void wrong(struct check *check, const char *format, ...)
{
    va_list list;
    if (check->errors++ >= 10)
        return;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

/* ---- What comes ---- */

static void take_place(struct check *check, uint32_t program, uint32_t number, uint64_t from, uint64_t to, bool loss)
{
    size_t i = 0;
    while (i < check->ring_count && (check->rings[i].program != program || check->rings[i].ring != number))
        i++;
    if (i == RINGS_MAX) {
        wrong(check, "too many rings");
        return;
    }
    if (i == check->ring_count)
        check->rings[check->ring_count++] = (struct ring){ .program = program, .ring = number };
    struct ring *ring = &check->rings[i];
    if (from != ring->position)
        wrong(check, "program %" PRIu32 " ring %" PRIu32 ": %s at %" PRIu64 " follows on %" PRIu64, program, number,
              loss ? "loss" : "event", from, ring->position);
    ring->position = to;
    ring->losses += loss;
}

static struct track *track_of(struct check *check, uint32_t program, uint32_t object, uint32_t generation,
                              uint16_t kind)
{
    uint32_t at = (program * 31 + object * 7 + generation * 3 + kind) % TRACKS;
    for (unsigned i = 0; i < TRACKS; i++, at = (at + 1) % TRACKS) {
        struct track *track = &check->tracks[at];
        if (track->came == 0 || (track->program == program && track->object == object &&
                                 track->generation == generation && track->kind == kind))
            return track;
    }
    fputs("order_check: too many objects\n", stderr);
    exit(2);
}

static void take_gaps(struct check *check)
{
    struct nt_gap gap;
    while (nt_gaps_take(check->gaps, &gap)) {
        struct track *track = track_of(check, gap.program, gap.object, gap.generation, gap.kind);
        uint64_t *sums[] = { &track->lost, &track->not_logged, &track->found };
        if (track->came == 0)
            wrong(check, "a gap where nothing came");
        *sums[gap.why] += gap.last - gap.first + 1;
    }
}

static void take_event(struct check *check, const struct nt_merge_item *item)
{
    const struct nt_event *event = item->event;
    if (item->late != (event->time < check->high || event->time < check->previous))
        wrong(check, "time %" PRIu64 " after %" PRIu64 "%s", event->time, check->previous,
              item->late ? ", marked as late" : "");
    if (item->ahead)
        wrong(check, "time %" PRIu64 " is ahead", event->time);
    check->previous = event->time;
    check->high = event->time > check->high ? event->time : check->high;
    check->late += item->late;
    if (nt_gaps_event(check->gaps, event) < 0)
        wrong(check, "gaps: no memory");
    if (event->ring == NT_EVENT_NO_RING) {
        take_gaps(check);
        check->masks++;
        return;
    }
    uint64_t slots = 1 + (event->data_size + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED;
    take_place(check, event->program, event->ring, event->position, event->position + slots * NT_LAYOUT_SLOT, false);
    struct track *track = track_of(check, event->program, event->object, event->generation, event->kind);
    if (track->came++ == 0)
        *track = (struct track){
            event->program, event->object, event->generation, event->kind, event->count, event->count, 1, 0, 0, 0
        };
    track->first = event->count < track->first ? event->count : track->first;
    track->last = event->count > track->last ? event->count : track->last;
    for (uint32_t i = 1; i < event->data_size; i++)
        if (event->data_size > 2 && i > 2 && event->data[i] != event->data[i - 1])
            wrong(check, "fields that nobody recorded");
    check->events++;
    take_gaps(check);
}

static void take_items(struct check *check, const struct nt_merge_item *items, int count)
{
    if (count < 0)
        wrong(check, "read: %d %s", count, check->source->text);
    for (int i = 0; i < count; i++) {
        const struct nt_merge_loss *loss = items[i].loss;
        if (items[i].event) {
            take_event(check, &items[i]);
            continue;
        }
        check->losses++;
        check->lost += loss->lost.count;
        take_place(check, loss->lost.program, loss->lost.ring, loss->lost.from, loss->lost.to, true);
        if (loss->lost.count != (loss->lost.to - loss->lost.from) / NT_LAYOUT_SLOT)
            wrong(check, "a loss of another size");
    }
}

/* ---- Reading ---- */

static struct nt_merge_item items[ROOM_MAX];

static void flush(struct check *check)
{
    int count;
    while ((count = nt_merge_flush(check->merge, items, check->room)) > 0)
        take_items(check, items, count);
    take_items(check, items, count);
    if (nt_gaps_flush(check->gaps) < 0)
        wrong(check, "gaps: no memory");
    take_gaps(check);
}

static void follow(struct check *check)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    do {
        struct timespec now;
        int count;
        do {
            clock_gettime(CLOCK_REALTIME, &now);
            count = nt_merge_next(check->merge, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, items,
                                  check->room);
            take_items(check, items, count);
        } while (count == (int)check->room);
    } while (poll(&input, 1, 1) == 0);
}

/* ---- Answers ---- */

static void answer(struct check *check, const char *more)
{
    unsigned most = 0, with = 0;
    for (size_t i = 0; i < check->ring_count; i++) {
        struct ring *ring = &check->rings[i];
        most = ring->losses > most ? ring->losses : most;
        with += ring->losses > 0;
        ring->losses = 0;
    }
    struct nt_merge_stats stats = nt_merge_stats(check->merge);
    struct nt_gaps_stats gaps = nt_gaps_stats(check->gaps);
    printf("{\"events\":%" PRIu64 ",\"masks\":%" PRIu64 ",\"late\":%" PRIu64 ",\"losses\":%" PRIu64 ",\"lost\":%" PRIu64
           ",\"rings\":%zu,\"rings_with_losses\":%u,\"most_losses\":%u,\"early\":%" PRIu64 ",\"twice\":%" PRIu64
           ",\"bytes_max\":%zu,\"odd\":%" PRIu64 ",\"forgotten\":%" PRIu64 ",\"errors\":%u%s}\n",
           check->events, check->masks, check->late, check->losses, check->lost, check->ring_count, with, most,
           stats.early, stats.twice, stats.bytes_max, gaps.odd, gaps.forgotten, check->errors, more);
    fflush(stdout);
    check->events = check->masks = check->late = check->losses = check->lost = 0;
}

/* The law, for each. */
static void check_tracks(struct check *check)
{
    for (unsigned i = 0; i < TRACKS; i++) {
        const struct track *track = &check->tracks[i];
        if (track->came > 0 &&
            track->came + track->lost + track->not_logged - track->found != track->last - track->first + 1)
            wrong(check,
                  "program %" PRIu32 " object %" PRIu32 ".%" PRIu32 " kind %u: %" PRIu64 " came, %" PRIu64
                  " lost, %" PRIu64 " not logged, %" PRIu64 " found, from %" PRIu64 " to %" PRIu64,
                  track->program, track->object, track->generation, track->kind, track->came, track->lost,
                  track->not_logged, track->found, track->first, track->last);
    }
}

static int tell_object(void *arg, const struct nt_source_object *object)
{
    struct check *check = arg;
    for (size_t i = 0; i < object->tally_count; i++) {
        const struct nt_source_tally *tally = &object->tallies[i];
        const struct track *track = track_of(check, object->program, object->slot, object->generation, tally->kind);
        if (track->came == 0 || tally->kind != NT_WRITE)
            continue;
        fprintf(check->names,
                ",\"%" PRIu32 ".%.*s\":{\"tally\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64
                ",\"came\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"not_logged\":%" PRIu64 ",\"found\":%" PRIu64 "}",
                object->program, (int)object->name.size, object->name.data, tally->count, track->first, track->last,
                track->came, track->lost, track->not_logged, track->found);
        if (track->last > tally->count)
            wrong(check, "object %" PRIu32 ": count %" PRIu64 " of %" PRIu64, object->slot, track->last, tally->count);
    }
    return 0;
}

static void finish(struct check *check)
{
    char *text = NULL;
    size_t size = 0;
    flush(check);
    check_tracks(check);
    const struct nt_source_sink sink = { .object = tell_object, .arg = check };
    check->names = open_memstream(&text, &size);
    if (!check->names || nt_source_snapshot(check->source, &sink) < 0)
        wrong(check, "snapshot: %s", check->source->text);
    if (check->names)
        fclose(check->names);
    answer(check, text ? text : "");
    free(text);
}

static bool parse(int argc, char **argv, struct nt_merge_options *options, struct check *check, const char **ret_logs)
{
    int i = 1;
    check->room = 1000;
    for (; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--memory") == 0)
            options->memory = value;
        else if (strcmp(argv[i], "--room") == 0 && value > 0 && value <= ROOM_MAX)
            check->room = value;
        else
            return false;
    }
    *ret_logs = argv[i];
    return i + 1 == argc;
}

int main(int argc, char **argv)
{
    static struct check check;
    struct nt_merge_options options = { .hold_ns = 0 };
    struct nt_live_options live = { .directory = NULL };
    const struct nt_gaps_options gaps = { .patience_ns = 0 };
    if (!parse(argc, argv, &options, &check, &live.directory)) {
        fputs("usage: order_check [--memory BYTES] [--room N] LOGS\n", stderr);
        return 2;
    }
    if (nt_source_live_open(&live, &check.source) < 0 || nt_merge_new(check.source, &options, &check.merge) < 0 ||
        nt_gaps_new(&gaps, &check.gaps) < 0)
        return 2;
    setvbuf(stdin, NULL, _IONBF, 0); /* what poll says is true */
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        if (strcmp(line, "follow\n") == 0)
            follow(&check);
        else
            flush(&check);
        answer(&check, "");
    }
    finish(&check);
    nt_gaps_free(check.gaps);
    nt_merge_free(check.merge);
    nt_source_free(check.source);
    return check.errors > 0;
}
