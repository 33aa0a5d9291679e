/* SPDX-License-Identifier: BSD-3-Clause */
/* Events against the truth: each by itself, their places in the rings, and what is left after thinning. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log.h>

#include "events_verify.h"

enum { ERRORS_SHOWN = 20 };

void verify_error(struct verify *verify, const char *format, ...)
{
    if (verify->errors++ >= ERRORS_SHOWN)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

struct seen_program *verify_program(const struct verify *verify, uint32_t number)
{
    for (size_t i = 0; i < verify->reading->program_count; i++)
        if (verify->reading->programs[i].number == number)
            return &verify->reading->programs[i];
    return NULL;
}

struct truth_process *verify_truth(struct verify *verify, uint32_t number)
{
    struct seen_program *program = verify_program(verify, number);
    struct truth_process *process = program ? truth_index_process(verify->truth, program->pid) : NULL;
    if (!process)
        verify_error(verify, "program %" PRIu32 ": no process of pid %" PRIu32 " kept a truth", number,
                     program ? program->pid : 0);
    return process;
}

static bool is_own_word(uint32_t kind) /* of the log: counted by itself */
{
    return kind == NT_OPEN || kind == NT_CLOSE || kind == NT_EPOCH;
}

/* Not dropped by any sampler. */
static bool is_kept(uint32_t kind)
{
#define NT_KIND(number, symbol, name, unit, policy, text) [number] = #policy,
    static const char *const policies[NT_LAYOUT_USER_KIND] = {
#include <nt/kinds.def>
    };
#undef NT_KIND
    return kind < NT_LAYOUT_USER_KIND && policies[kind] && strcmp(policies[kind], "keep") == 0;
}

/* ---- Each event by itself ---- */

static void event_error(struct verify *verify, const struct seen *event, const char *what)
{
    verify_error(verify,
                 "event of program %" PRIu32 " ring %" PRIu32 " position %" PRIu64 ", object %" PRIu32 ".%" PRIu32
                 ", %s number %" PRIu64 ", value %" PRIu64 ", total %" PRIu64 ": %s",
                 event->program, event->ring, event->position, event->object, event->generation & ~NT_LAYOUT_LOCKED,
                 truth_kind_name(event->kind), event->count, event->value, event->total, what);
}

/* A session is known to begin at the first of its kind after a change. */
static const char *session_fault(const struct seen *event, const struct truth_counts *counts)
{
    const uint64_t *session = &counts->sessions[event->count - 1];
    if (event->session != *session)
        return "not the session that it was counted in";
    bool changed = event->count > 1 && session[-1] != session[0];
    if (changed && !(event->flags & (NT_RECORD_FIRST | NT_RECORD_IN)))
        return "the session's first, and does not say so";
    return NULL;
}

/* What one thread counted is known value by value; of several threads the order is not. */
static const char *event_fault(const struct seen *event, const struct truth_counts *counts)
{
    if (event->count == 0 || event->count > counts->begun.count)
        return "more than were counted";
    if (counts->tallies > 1)
        return truth_has_value(counts, event->value) ? NULL : "a value that nobody counted";
    if (event->count > counts->value_count)
        return "more than the series has";
    if (event->value != counts->values[event->count - 1])
        return "not the value that was counted";
    if (event->total != counts->totals[event->count - 1])
        return "not the total that was counted";
    return session_fault(event, counts);
}

static void verify_event(struct verify *verify, const struct seen *event)
{
    const struct seen_program *program = verify_program(verify, event->program);
    struct truth_process *process = verify_truth(verify, event->program);
    if (!process)
        return;
    uint32_t life = truth_life(process, event->object, event->generation);
    bool own = event->object == program->life[0] && event->generation == program->life[1];
    if (own && event->kind == NT_SESSION)
        return; /* about a session, not in it; their sum is in the table */
    if (life == TRUTH_NO_LIFE) {
        /* Killed while it made the object, the process had not yet noted the handle. */
        if (!verify->killed || !is_own_word(event->kind))
            event_error(verify, event, "an object that nobody made");
        return;
    }
    verify->checked_events++;
    if (is_own_word(event->kind)) {
        if (event->count != 1)
            event_error(verify, event, "happens once a life");
        return;
    }
    const struct truth_counts *counts = truth_counts_of(process, life, event->kind);
    const char *fault = counts ? event_fault(event, counts) : "a kind that nobody counted";
    if (fault && !(program->refused_tallies && counts && verify_lacks(verify, event, counts)))
        event_error(verify, event, fault);
}

/* qsort, which may not be handed an array that is not there. */
static void sort(void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count > 0)
        qsort(array, count, size, compare);
}

/* ---- Shared objects: consecutive counts ---- */

static int compare_counts(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

static bool same_tally(const struct seen *a, const struct seen *b)
{
    return a->program == b->program && a->object == b->object && a->generation == b->generation && a->kind == b->kind;
}

static void verify_neighbours(struct verify *verify)
{
    struct reading *reading = verify->reading;
    sort(reading->events, reading->event_count, sizeof *reading->events, compare_counts);
    for (size_t i = 1; i < reading->event_count; i++) {
        const struct seen *before = &reading->events[i - 1], *event = &reading->events[i];
        if (!same_tally(before, event))
            continue;
        if (event->count == before->count)
            event_error(verify, event, "a number that another event has");
        else if (event->count == before->count + 1 && event->total != before->total + event->value)
            event_error(verify, event, "not its neighbour's total and its value");
    }
}

/* ---- Places in rings ---- */

struct place { /* what became of some slots of a ring: an event, or a loss */
    uint32_t program, ring;
    uint64_t from, to;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    if (x->ring != y->ring)
        return x->ring < y->ring ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static size_t collect_places(struct verify *verify, struct place *ret_places)
{
    const struct reading *reading = verify->reading;
    size_t count = 0;
    for (size_t i = 0; i < reading->event_count; i++) {
        const struct seen *event = &reading->events[i];
        ret_places[count++] = (struct place){ event->program, event->ring, event->position,
                                              event->position + event->slots * (uint64_t)NT_LAYOUT_SLOT };
    }
    for (size_t i = 0; i < reading->loss_count; i++) {
        const struct nt_source_loss *loss = &reading->losses[i];
        if (loss->to <= loss->from || loss->count != (loss->to - loss->from) / NT_LAYOUT_SLOT)
            verify_error(verify,
                         "program %" PRIu32 " ring %" PRIu32 ": a loss of %" PRIu64 " slots from %" PRIu64
                         " to %" PRIu64,
                         loss->program, loss->ring, loss->count, loss->from, loss->to);
        ret_places[count++] = (struct place){ loss->program, loss->ring, loss->from, loss->to };
    }
    qsort(ret_places, count, sizeof *ret_places, compare_places);
    return count;
}

/* Each place of a ring begins where the one before it ended, the first where rings start. */
static void walk_places(struct verify *verify, const struct place *places, size_t count, uint64_t *slots)
{
    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i], *before = i ? &places[i - 1] : NULL;
        bool same = before && before->program == place->program && before->ring == place->ring;
        uint64_t at = same ? before->to : NT_LAYOUT_RING_START;
        if (place->from != at)
            verify_error(verify,
                         "program %" PRIu32 " ring %" PRIu32 ": position %" PRIu64 " follows on %" PRIu64 ": %s",
                         place->program, place->ring, place->from, at,
                         place->from > at ? "neither read nor lost in between" : "read twice");
        const struct seen_program *program = verify_program(verify, place->program);
        if (program)
            slots[program - verify->reading->programs] += (place->to - place->from) / NT_LAYOUT_SLOT;
    }
}

/* A thread that was killed in the middle of an event leaves slots that no event stands behind: they are its end. */
static void verify_written(struct verify *verify, const struct seen_program *program, uint64_t slots)
{
    enum { SLOTS_OF_ONE = 2 }; /* of the relay's own kind, the longest */
    uint64_t most = slots + (verify->killed ? SLOTS_OF_ONE * (uint64_t)program->rings : 0);
    if (program->events < slots || program->events > most)
        verify_error(verify,
                     "program %" PRIu32 ": %" PRIu64 " slots were written, %" PRIu64 " were read or told as lost",
                     program->number, program->events, slots);
}

static void verify_places(struct verify *verify)
{
    const struct reading *reading = verify->reading;
    struct place *places = calloc(reading->event_count + reading->loss_count + 1, sizeof *places);
    uint64_t *slots = calloc(reading->program_count + 1, sizeof *slots);
    if (places && slots)
        walk_places(verify, places, collect_places(verify, places), slots);
    else
        verify_error(verify, "out of memory");
    for (size_t i = 0; slots && i < reading->program_count; i++)
        if (reading->programs[i].present)
            verify_written(verify, &reading->programs[i], slots[i]);
    free(slots);
    free(places);
}

void verify_events(struct verify *verify)
{
    for (size_t i = 0; i < verify->reading->event_count; i++)
        verify_event(verify, &verify->reading->events[i]);
    verify_neighbours(verify);
    verify_places(verify);
}

/* ---- What is left after thinning ---- */

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool same_ring(const struct seen *a, const struct seen *b)
{
    return a->program == b->program && a->ring == b->ring;
}

static int compare_positions(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    struct place p = { x->program, x->ring, x->position, 0 }, q = { y->program, y->ring, y->position, 0 };
    return compare_places(&p, &q);
}

struct run { /* what is left of a ring's events, in order */
    const struct seen *next, *end;
};

static size_t split_rings(const struct reading *reading, struct run *ret_runs)
{
    size_t count = 0;
    for (size_t i = 0; i < reading->event_count; i++) {
        const struct seen *event = &reading->events[i];
        if (i == 0 || !same_ring(event, event - 1))
            ret_runs[count++].next = event;
        ret_runs[count - 1].end = event + 1;
    }
    return count;
}

/* Drops what a sampler may drop, doubles some of the rest, and lets rings overtake each other while each keeps
   its order. The events come sorted by position. Returns how many are left. */
static size_t thin(uint64_t seed, struct run *runs, size_t rings, struct seen *ret_events)
{
    static const uint64_t shares[] = { 0, 300, 900, 990, 1000 }; /* dropped, of 1000 */
    uint64_t drop = shares[next_random(&seed) % 5];
    size_t count = 0;
    while (rings > 0) {
        struct run *run = &runs[next_random(&seed) % rings];
        for (uint64_t left = 1 + next_random(&seed) % 64; left > 0 && run->next < run->end; left--) {
            const struct seen *event = run->next++;
            if (!is_kept(event->kind) && next_random(&seed) % 1000 < drop)
                continue;
            for (uint64_t copies = next_random(&seed) % 10 == 0 ? 2 : 1; copies > 0; copies--)
                ret_events[count++] = *event;
        }
        if (run->next == run->end)
            *run = runs[--rings];
    }
    return count;
}

/* A consumer that knows nothing but what it is handed: for each tally what the survivors say about the first
   and the last of them, and about what lies between. */
struct survivor {
    struct seen first, last;
    uint64_t covered_count, covered_total; /* by survivors themselves, each once */
};

/* Survivors sorted by tally and count; doubles are the same count of the same tally. */
static size_t consume(struct seen *events, size_t count, struct survivor *ret_survivors)
{
    qsort(events, count, sizeof *events, compare_counts);
    size_t tallies = 0;
    for (size_t i = 0; i < count; i++) {
        struct survivor *now = tallies ? &ret_survivors[tallies - 1] : NULL;
        if (!now || !same_tally(&now->last, &events[i])) {
            ret_survivors[tallies++] = (struct survivor){ events[i], events[i], 1, events[i].value };
            continue;
        }
        if (now->last.count == events[i].count)
            continue;
        now->last = events[i];
        now->covered_count++;
        now->covered_total += events[i].value;
    }
    return tallies;
}

static void verify_survivor(struct verify *verify, const struct survivor *survivor)
{
    struct truth_process *process = verify_truth(verify, survivor->last.program);
    uint32_t life = process ? truth_life(process, survivor->last.object, survivor->last.generation) : TRUTH_NO_LIFE;
    const struct truth_counts *counts = life == TRUTH_NO_LIFE ? NULL
                                                              : truth_counts_of(process, life, survivor->last.kind);
    if (!counts || is_own_word(survivor->last.kind) || counts->tallies > 1 ||
        verify_lacks(verify, &survivor->last, counts))
        return; /* told of above, or nothing is known of the order */
    const struct seen *first = &survivor->first, *last = &survivor->last;
    if (first->count == 0 || last->count > counts->value_count)
        return;
    verify->checked_sums++;
    uint64_t up_to_first = counts->totals[first->count - 1], up_to_last = counts->totals[last->count - 1];
    if (last->total != up_to_last)
        event_error(verify, last, "the sum up to it is another");
    if (last->total - first->total != up_to_last - up_to_first)
        event_error(verify, last, "the sum since the first survivor is another");
    if (survivor->covered_count == last->count && survivor->covered_total != last->total)
        event_error(verify, last, "all survived, and their sum is another");
}

void verify_thinned(struct verify *verify, uint64_t seed)
{
    struct reading *reading = verify->reading;
    sort(reading->events, reading->event_count, sizeof *reading->events, compare_positions);
    struct seen *events = calloc(2 * reading->event_count + 1, sizeof *events);
    struct survivor *survivors = calloc(2 * reading->event_count + 1, sizeof *survivors);
    struct run *runs = calloc(reading->event_count + 1, sizeof *runs);
    if (events && survivors && runs) {
        size_t count = thin(seed, runs, split_rings(reading, runs), events);
        size_t tallies = consume(events, count, survivors);
        for (size_t i = 0; i < tallies; i++)
            verify_survivor(verify, &survivors[i]);
    } else {
        verify_error(verify, "out of memory");
    }
    free(events);
    free(survivors);
    free(runs);
}
