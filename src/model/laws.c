/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises held against what came, see laws.h. What needs events alone is looked at as they come, what needs tables at
   the end. */
#include "model/laws.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gaps.h"
#include "model/kinds.h"
#include "model/runs.h"
#include "model/sessions.h"
#include "model/streams.h"

#define KINDS 256u
#define SLOT 64u /* bytes */

/* Of one kind on one object. */
struct track {
    uint64_t count, total, session, time; /* of the event with the highest count */
    uint64_t value;                       /* likewise; 0 of one that stands for several */
    uint64_t most, most_count;            /* greatest value below that one, and its count */
    bool shared;
};

struct ring {
    uint64_t next; /* position */
    bool begun;
};

struct pair {
    uint64_t count, total;
};

struct nt_laws {
    const struct nt_model *before;
    struct nt_laws_options options;
    struct nt_gaps *gaps;
    struct nt_runs *runs;
    struct nt_streams streams, rings;
    struct track *tracks;
    struct ring *positions;
    uint64_t *lost;    /* counts that are missing, by the number of a program; less what was found */
    uint64_t *slots;   /* likewise, that were lost in rings */
    uint32_t programs; /* that there is room for */
    uint64_t odd;      /* that the gaps knew of before */
    struct nt_violation *violations;
    size_t violation_count, violation_room;
    struct nt_laws_stats stats;
    int error;
};

/* ---- Violations ---- */

static void violate(struct nt_laws *laws, const struct nt_violation *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void violate(struct nt_laws *laws, const struct nt_violation *where, const char *format, ...)
{
    va_list arguments;
    laws->stats.violations++;
    if (laws->violation_count >= NT_LAWS_KEPT)
        return;
    if (laws->violation_count == laws->violation_room) {
        size_t room = laws->violation_room > 0 ? 2 * laws->violation_room : 16;
        struct nt_violation *more = reallocarray(laws->violations, room, sizeof *more);
        if (!more) {
            laws->error = -ENOMEM;
            return;
        }
        laws->violations = more;
        laws->violation_room = room;
    }
    struct nt_violation *violation = &laws->violations[laws->violation_count++];
    *violation = *where;
    va_start(arguments, format);
    (void)vsnprintf(violation->text, sizeof violation->text, format, arguments);
    va_end(arguments);
}

static struct nt_violation at_event(unsigned law, const struct nt_event *event)
{
    return (struct nt_violation){ .law = law,
                                  .program = event->program,
                                  .slot = event->object,
                                  .generation = event->generation,
                                  .kind = event->kind };
}

/* ---- Programs ---- */

static int program_room(struct nt_laws *laws, uint32_t program)
{
    if (program < laws->programs)
        return 0;
    if (program >= NT_MODEL_PROGRAMS)
        return -E2BIG;
    uint32_t room = 2 * (program + 8);
    uint64_t *lost = reallocarray(laws->lost, room, sizeof *lost);
    laws->lost = lost ? lost : laws->lost;
    uint64_t *slots = lost ? reallocarray(laws->slots, room, sizeof *slots) : NULL;
    if (!slots)
        return -ENOMEM;
    laws->slots = slots;
    memset(lost + laws->programs, 0, (room - laws->programs) * sizeof *lost);
    memset(slots + laws->programs, 0, (room - laws->programs) * sizeof *slots);
    laws->programs = room;
    return 0;
}

/* ---- Rings ---- */

static int find_ring(struct nt_laws *laws, uint32_t program, uint32_t number, struct ring **ret_ring)
{
    const struct nt_stream key = { .program = program, .slot = number };
    void *positions = laws->positions;
    uint32_t at;
    int error = nt_streams_get(&laws->rings, &key, &positions, sizeof *laws->positions, &at);
    laws->positions = positions;
    if (error == 0)
        *ret_ring = &laws->positions[at];
    return error;
}

static void ring_goes_on(struct nt_laws *laws, struct ring *ring, uint32_t program, uint32_t number, uint64_t from,
                         uint64_t to)
{
    const struct nt_violation where = { .law = 1, .gap = true, .program = program };
    if (ring->begun && from != ring->next)
        violate(laws, &where,
                "ring %" PRIu32 ": after position %" PRIu64 " comes %" PRIu64 ", and nothing tells of what is %s",
                number, ring->next, from, from > ring->next ? "between" : "there twice");
    ring->begun = true;
    ring->next = to;
}

int nt_laws_loss(struct nt_laws *laws, const struct nt_merge_loss *loss)
{
    struct ring *ring;
    int error = program_room(laws, loss->lost.program);
    if (error == 0)
        error = find_ring(laws, loss->lost.program, loss->lost.ring, &ring);
    if (error != 0)
        return error;
    laws->slots[loss->lost.program] += loss->lost.count;
    laws->stats.slots_lost += loss->lost.count;
    ring_goes_on(laws, ring, loss->lost.program, loss->lost.ring, loss->lost.from, loss->lost.to);
    return 0;
}

static int take_position(struct nt_laws *laws, const struct nt_event *event)
{
    struct ring *ring;
    uint64_t slots = event->flags & NT_RECORD_DATA ? event->argument >> 32 : 1;
    if (event->ring == NT_EVENT_NO_RING || laws->options.thinned)
        return 0;
    int error = find_ring(laws, event->program, event->ring, &ring);
    if (error == 0)
        ring_goes_on(laws, ring, event->program, event->ring, event->position, event->position + SLOT * slots);
    return error;
}

/* ---- Counts ---- */

static int take_gaps(struct nt_laws *laws)
{
    struct nt_gap gap;
    while (nt_gaps_take(laws->gaps, &gap)) {
        uint64_t count = gap.last - gap.first + 1;
        int error = program_room(laws, gap.program);
        if (error != 0)
            return error;
        if (gap.why == NT_GAP_LOST) {
            laws->lost[gap.program] += count;
            laws->stats.lost += count;
        } else if (gap.why == NT_GAP_NOT_LOGGED) {
            laws->stats.not_logged += count;
        } else {
            laws->lost[gap.program] -= count < laws->lost[gap.program] ? count : laws->lost[gap.program];
            laws->stats.lost -= count < laws->stats.lost ? count : laws->stats.lost;
        }
    }
    return 0;
}

static void follow(struct nt_laws *laws, const struct track *track, const struct nt_event *event)
{
    struct nt_violation where = at_event(1, event);
    if (event->total != track->total + event->value)
        violate(laws, &where, "#%" PRIu64 " has total %" PRIu64 ", and the next one, of value %" PRIu64 ", %" PRIu64,
                track->count, track->total, event->value, event->total);
    where.law = 2;
    if (!track->shared && event->session != track->session && (event->flags & (NT_RECORD_FIRST | NT_RECORD_IN)) == 0)
        violate(laws, &where, "#%" PRIu64 " has another session than the one before and is not marked as its first",
                event->count);
}

static int take_count(struct nt_laws *laws, const struct nt_event *event)
{
    const struct nt_stream key = { event->program, event->object, event->generation, event->kind };
    uint64_t merged = event->merged > 0 ? event->merged : 1;
    void *tracks = laws->tracks;
    uint32_t number;
    int error = nt_streams_get(&laws->streams, &key, &tracks, sizeof *laws->tracks, &number);
    laws->tracks = tracks;
    if (error != 0)
        return error;
    struct track *track = &laws->tracks[number];
    uint64_t value = merged == 1 ? event->value : 0;
    if (track->count != 0 && event->count - merged == track->count)
        follow(laws, track, event);
    track->shared = track->shared || (event->flags & NT_EVENT_SHARED) != 0;
    if (event->count < track->count) { /* comes late */
        track->most_count = value > track->most ? event->count : track->most_count;
        track->most = value > track->most ? value : track->most;
        return 0;
    }
    track->most_count = track->value > track->most ? track->count : track->most_count;
    track->most = track->value > track->most ? track->value : track->most;
    track->count = event->count;
    track->total = event->total;
    track->session = event->session;
    track->time = event->time;
    track->value = value;
    return 0;
}

/* Counts that come again, or cannot be. */
static void look_for_odd(struct nt_laws *laws, const struct nt_event *event)
{
    struct nt_gaps_stats stats = nt_gaps_stats(laws->gaps);
    const struct nt_violation where = at_event(1, event);
    if (stats.odd != laws->odd && stats.forgotten == 0)
        violate(laws, &where, "#%" PRIu64 " comes again, or after counts that were said to be all before it",
                event->count);
    laws->odd = stats.odd;
}

/* Where there are more sessions and channels than can be added up, that is left out. */
static int take_run(struct nt_laws *laws, const struct nt_event *event)
{
    uint32_t index = nt_model_program_index(laws->before, event->program);
    int error = index != NT_MODEL_NONE ? nt_runs_event(laws->runs, index, event) : 0;
    if (error != -E2BIG)
        return error;
    nt_runs_free(laws->runs);
    laws->runs = NULL;
    return 0;
}

int nt_laws_event(struct nt_laws *laws, const struct nt_event *event)
{
    laws->stats.events++;
    int error = program_room(laws, event->program);
    if (error == 0)
        error = take_position(laws, event);
    if (error == 0)
        error = nt_gaps_event(laws->gaps, event);
    if (error > 0)
        error = take_gaps(laws);
    if (error == 0)
        look_for_odd(laws, event);
    if (error == 0 && event->count != 0)
        error = take_count(laws, event);
    if (error == 0 && laws->runs)
        error = take_run(laws, event);
    return error != 0 ? error : laws->error;
}

/* ---- Tables ---- */

/* The sum of the table may be later than the events, and where it is not later it must be the same. */
static void check_tally(struct nt_laws *laws, const struct track *track, const struct nt_stream *stream,
                        const struct nt_source_tally *tally, bool later)
{
    const struct nt_violation where = { .law = 1,
                                        .program = stream->program,
                                        .slot = stream->slot,
                                        .generation = stream->generation,
                                        .kind = stream->kind };
    laws->stats.tallies++;
    if (track->count > tally->count && (later || track->time < tally->last))
        violate(laws, &where, "its tally is %" PRIu64 ", and there is an event #%" PRIu64, tally->count, track->count);
    else if (track->count == tally->count && track->total != tally->total)
        violate(laws, &where, "its tally of %" PRIu64 " has total %" PRIu64 ", and event #%" PRIu64 " %" PRIu64,
                tally->count, tally->total, track->count, track->total);
    else if (later && !track->shared && track->most > tally->max)
        violate(laws, &where, "its maximum is %" PRIu64 ", and event #%" PRIu64 " has %" PRIu64, tally->max,
                track->most_count, track->most);
}

static void check_tallies(struct nt_laws *laws, const struct nt_model *after, bool later)
{
    for (uint32_t i = 0; i < laws->streams.count; i++) {
        const struct nt_stream *stream = &laws->streams.streams[i];
        uint32_t program = nt_model_program_index(after, stream->program);
        uint32_t object = program != NT_MODEL_NONE ? nt_model_find(after, program, stream->slot, stream->generation)
                                                   : NT_MODEL_NONE;
        if (object == NT_MODEL_NONE || stream->kind == NT_MODEL_KIND_EPOCH)
            continue; /* the life is part of its parent's sums, or came after the table; an epoch has no tally */
        const struct nt_source_object *told = &after->objects[object].told;
        const struct nt_source_tally *tally = nt_model_sum(told->tallies, told->tally_count, stream->kind);
        const struct nt_source_tally none = { .kind = (uint16_t)stream->kind };
        bool refused = after->programs[program].told.refused_tallies > 0;
        if (tally || !refused)
            check_tally(laws, &laws->tracks[i], stream, tally ? tally : &none,
                        later || !nt_model_alive(&after->programs[program]));
    }
}

static void check_losses(struct nt_laws *laws, const struct nt_model *after)
{
    for (uint32_t i = 0; i < after->program_count; i++) {
        const struct nt_source_program *told = &after->programs[i].told;
        const struct nt_violation where = { .law = 1, .gap = true, .program = told->number };
        if (told->number >= laws->programs || laws->options.thinned)
            continue;
        uint64_t lost = laws->lost[told->number], slots = laws->slots[told->number];
        if (lost > slots + told->dropped)
            violate(laws, &where,
                    "%" PRIu64 " counts are missing, of which %" PRIu64 " slots lost and %" PRIu64
                    " events dropped tell",
                    lost, slots, told->dropped);
    }
}

/* ---- Sessions ---- */

static void add_tallies(struct pair *sums, const struct nt_source_tally *tallies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sums[tallies[i].kind % KINDS].count += tallies[i].count;
        sums[tallies[i].kind % KINDS].total += tallies[i].total;
    }
}

/* Sums by program and kind, of objects and of sessions. */
static int add_up(const struct nt_model *model, struct pair **ret_objects, struct pair **ret_sessions)
{
    struct pair *objects = calloc((size_t)model->program_count * KINDS, sizeof *objects);
    struct pair *sessions = calloc((size_t)model->program_count * KINDS, sizeof *sessions);
    if (!objects || !sessions) {
        free(objects);
        free(sessions);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct nt_source_object *told = &model->objects[i].told;
        add_tallies(objects + (size_t)told->program * KINDS, told->tallies, told->tally_count);
        add_tallies(objects + (size_t)told->program * KINDS, told->gone, told->gone_count);
    }
    for (uint32_t i = 0; i < model->sessions->count; i++) {
        for (uint32_t at = model->sessions->sessions[i].shares; at != NT_MODEL_NONE;
             at = model->sessions->shares[at].next) {
            const struct nt_model_share *share = &model->sessions->shares[at];
            struct pair *sums = sessions + (size_t)share->program * KINDS;
            for (size_t k = 0; k < share->sum_count; k++) {
                sums[share->sums[k].kind % KINDS].count += share->sums[k].count;
                sums[share->sums[k].kind % KINDS].total += share->sums[k].total;
            }
        }
    }
    *ret_objects = objects;
    *ret_sessions = sessions;
    return 0;
}

static int check_sums(struct nt_laws *laws, const struct nt_model *after)
{
    struct pair *objects, *sessions;
    int error = add_up(after, &objects, &sessions);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < after->program_count; i++) {
        const struct nt_source_program *told = &after->programs[i].told;
        for (uint32_t kind = 0; kind < KINDS && !told->moving && told->refused_tallies == 0; kind++) {
            const struct pair *object = &objects[(size_t)i * KINDS + kind],
                              *session = &sessions[(size_t)i * KINDS + kind];
            const struct nt_violation where = { .law = 2, .program = told->number, .kind = kind };
            laws->stats.sums += object->count != 0;
            if (object->count != session->count || object->total != session->total)
                violate(laws, &where,
                        "all sessions sum to %" PRIu64 " and total %" PRIu64 ", its objects to %" PRIu64
                        " and %" PRIu64,
                        session->count, session->total, object->count, object->total);
        }
    }
    free(objects);
    free(sessions);
    return 0;
}

static const struct nt_model_share *share_of(const struct nt_model *model, uint64_t session, uint32_t program)
{
    uint32_t index = session == 0 ? NT_MODEL_SESSION_NO : nt_model_session_find(model, session);
    uint32_t at = index != NT_MODEL_NONE ? model->sessions->sessions[index].shares : NT_MODEL_NONE;
    while (at != NT_MODEL_NONE && model->sessions->shares[at].program != program)
        at = model->sessions->shares[at].next;
    return at != NT_MODEL_NONE ? &model->sessions->shares[at] : NULL;
}

static uint64_t count_of(const struct nt_model_share *share, uint16_t kind)
{
    for (size_t i = 0; i < share->sum_count; i++) {
        if (share->sums[i].kind == kind)
            return share->sums[i].count;
    }
    return 0;
}

/* By program and kind: what a session did on channels is at most what the program knows of it. */
static void check_session(struct nt_laws *laws, uint64_t session, const struct nt_streams *streams,
                          const uint64_t *counts)
{
    for (uint32_t i = 0; i < streams->count; i++) {
        const struct nt_stream *stream = &streams->streams[i];
        const struct nt_source_program *told = &laws->before->programs[stream->program].told;
        const struct nt_model_share *share = share_of(laws->before, session, stream->program);
        const struct nt_violation where = { .law = 2, .program = told->number, .kind = stream->kind };
        if (!share || (share->bound != NT_MODEL_EXACT && share->bound != NT_MODEL_MOST) || told->moving)
            continue;
        uint64_t all = count_of(share, (uint16_t)stream->kind);
        laws->stats.runs++;
        if (counts[i] > all)
            violate(laws, &where, "session %016" PRIx64 " did %" PRIu64 " on channels, and %" PRIu64 " in all", session,
                    counts[i], all);
    }
}

static int check_runs(struct nt_laws *laws)
{
    size_t count;
    int error = nt_runs_finish(laws->runs);
    if (error != 0)
        return error == -E2BIG ? 0 : error;
    const struct nt_run_sum *sums = nt_runs_sums(laws->runs, &count);
    struct nt_streams streams = { 0 };
    void *counts = NULL; /* of uint64_t: of one session */
    for (size_t i = 0, next; i < count && error == 0; i = next) {
        nt_streams_clear(&streams);
        for (next = i; next < count && sums[next].session == sums[i].session && error == 0; next++) {
            const struct nt_stream key = { .program = sums[next].program, .kind = sums[next].kind };
            uint32_t at;
            error = nt_streams_get(&streams, &key, &counts, sizeof(uint64_t), &at);
            if (error == 0)
                ((uint64_t *)counts)[at] += sums[next].count;
        }
        if (error == 0)
            check_session(laws, sums[i].session, &streams, counts);
    }
    nt_streams_fini(&streams);
    free(counts);
    return error;
}

/* ---- ---- */

int nt_laws_new(const struct nt_model *before, const struct nt_laws_options *options, struct nt_laws **ret_laws)
{
    const struct nt_gaps_options gaps_options = { 0 };
    struct nt_laws *laws = calloc(1, sizeof *laws);
    if (!laws)
        return -ENOMEM;
    laws->before = before;
    laws->options = *options;
    int error = nt_gaps_new(&gaps_options, &laws->gaps);
    if (error == 0 && before->sessions)
        error = nt_runs_new(before, NULL, NULL, &laws->runs);
    if (error != 0) {
        nt_laws_free(laws);
        return error;
    }
    *ret_laws = laws;
    return 0;
}

void nt_laws_free(struct nt_laws *take_laws)
{
    if (!take_laws)
        return;
    nt_gaps_free(take_laws->gaps);
    nt_runs_free(take_laws->runs);
    nt_streams_fini(&take_laws->streams);
    nt_streams_fini(&take_laws->rings);
    free(take_laws->tracks);
    free(take_laws->positions);
    free(take_laws->lost);
    free(take_laws->slots);
    free(take_laws->violations);
    free(take_laws);
}

/* What may come of events that could not be read is no violation then. */
static void drop_gaps(struct nt_laws *laws)
{
    size_t kept = 0;
    for (size_t i = 0; i < laws->violation_count; i++) {
        if (!laws->violations[i].gap)
            laws->violations[kept++] = laws->violations[i];
    }
    laws->stats.violations -= laws->violation_count - kept;
    laws->violation_count = kept;
}

int nt_laws_finish(struct nt_laws *laws, const struct nt_model *after, unsigned how)
{
    bool later = (how & NT_LAWS_LATER) != 0;
    int error = nt_gaps_flush(laws->gaps);
    if (error > 0)
        error = take_gaps(laws);
    if (error != 0)
        return error;
    check_tallies(laws, after, later);
    if (nt_gaps_stats(laws->gaps).forgotten == 0)
        check_losses(laws, after);
    if (after->sessions)
        error = check_sums(laws, after);
    if (error == 0 && later && laws->runs && after == laws->before)
        error = check_runs(laws);
    if (how & NT_LAWS_PARTLY)
        drop_gaps(laws);
    laws->stats.streams = laws->streams.count;
    return error != 0 ? error : laws->error;
}

const struct nt_violation *nt_laws_violations(const struct nt_laws *laws, size_t *ret_count)
{
    *ret_count = laws->violation_count;
    return laws->violations;
}

struct nt_laws_stats nt_laws_stats(const struct nt_laws *laws)
{
    return laws->stats;
}
