/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs, see runs.h. On an exclusive object, whose session a record carries says whose it is; what is missing before it
   is that session's only if it is one count and the record is not the first of its run. The last read before a boundary
   may have been joined by the session behind it, which an event says that may be lost: while the object's joins are not
   all known, it is nobody's. On a shared object each record stands for itself. */
#include "model/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log_layout.h>

#include "model/kinds.h"
#include "model/sessions.h"

#define SESSION_JOIN 4u /* NT_SESSION_JOIN: value of a session event */

struct pair {
    uint64_t count, total;
};

struct sum {
    uint64_t session;
    uint32_t stream;
    struct pair known;
    struct pair doubt; /* part of it */
};

struct stream { /* one kind on one object */
    uint32_t program, slot, generation;
    uint16_t kind;
    bool shared, mixed;
    bool ends;           /* `end` is known */
    bool missed;         /* a join could not be put where it belongs */
    uint32_t object;     /* index, NT_MODEL_NONE: gone */
    struct pair end;     /* the object's tally */
    struct pair settled; /* of it, before the run that goes on */
    struct pair at;      /* of the last record */
    uint64_t seen;       /* counts of records, of a shared object */
    uint64_t unknown;    /* counts that may be anybody's */
    uint64_t doubts;     /* counts that another session may have joined */
    uint64_t last;       /* session of the record at `at`, and: */
    uint64_t last_value;
    bool last_own;    /* it is of a run, and one count */
    uint64_t join_at; /* a read that is missing so far and belongs to `join`; 0: none */
    uint64_t join;
};

struct table { /* an index that grows */
    struct nt_model_index index;
    size_t room;
};

struct nt_runs {
    const struct nt_model *model;
    bool (*wanted)(void *arg, uint64_t session);
    void *arg;
    struct stream *streams;
    uint32_t stream_count, stream_room;
    struct table stream_table;
    struct sum *sums;
    uint32_t sum_count, sum_room;
    struct table sum_table;
    struct nt_run_sum *told;
    size_t told_count;
};

static int grow(void **entries, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return 0;
    if (count >= NT_RUNS_MAX)
        return -E2BIG;
    uint32_t more = *room > 0 ? *room * 2 : 64;
    void *moved = realloc(*entries, more * size);
    if (!moved)
        return -ENOMEM;
    *entries = moved;
    *room = more;
    return 0;
}

/* ---- Streams ---- */

struct stream_key {
    const struct nt_runs *runs;
    uint32_t program, slot, generation, kind;
};

static bool is_stream(const void *arg, uint32_t position)
{
    const struct stream_key *key = arg;
    const struct stream *stream = &key->runs->streams[position];
    return stream->slot == key->slot && stream->generation == key->generation && stream->kind == key->kind &&
           stream->program == key->program;
}

static uint32_t *stream_cell(const struct nt_runs *runs, uint32_t program, uint32_t slot, uint32_t generation,
                             uint32_t kind)
{
    const struct stream_key key = { runs, program, slot, generation, kind };
    const uint32_t words[4] = { program, slot, generation, kind };
    return nt_model_index_cell(&runs->stream_table.index, nt_model_hash((uintptr_t)runs, words, sizeof words),
                               is_stream, &key);
}

static int streams_grow(struct nt_runs *runs)
{
    struct nt_model_index index;
    size_t room = runs->stream_table.room > 0 ? 2 * runs->stream_table.room : 256;
    int error = nt_model_index_init(&index, room);
    if (error != 0)
        return error;
    nt_model_index_fini(&runs->stream_table.index);
    runs->stream_table = (struct table){ index, room };
    for (uint32_t i = 0; i < runs->stream_count; i++) {
        const struct stream *stream = &runs->streams[i];
        *stream_cell(runs, stream->program, stream->slot, stream->generation, stream->kind) = i;
    }
    return 0;
}

/* What the snapshot says of it. */
static void stream_describe(const struct nt_runs *runs, struct stream *stream, bool shared)
{
    stream->object = nt_model_find(runs->model, stream->program, stream->slot, stream->generation);
    stream->shared = shared;
    if (stream->object == NT_MODEL_NONE)
        return;
    const struct nt_source_object *told = &runs->model->objects[stream->object].told;
    stream->shared = told->discipline != 0;
    stream->mixed = told->mixed || told->unsettled;
    stream->ends = true;
    for (size_t i = 0; i < told->tally_count; i++) {
        if (told->tallies[i].kind != stream->kind)
            continue;
        stream->end = (struct pair){ told->tallies[i].count, told->tallies[i].total };
        if (told->settled)
            stream->settled = (struct pair){ told->settled[i].count, told->settled[i].total };
    }
}

static int stream_find(struct nt_runs *runs, uint32_t program, const struct nt_event *event, uint16_t kind,
                       struct stream **ret_stream)
{
    int error = runs->stream_count >= runs->stream_table.room ? streams_grow(runs) : 0;
    if (error != 0)
        return error;
    uint32_t *cell = stream_cell(runs, program, event->object, event->generation, kind);
    if (*cell == NT_MODEL_NONE) {
        void *streams = runs->streams;
        error = grow(&streams, runs->stream_count, &runs->stream_room, sizeof *runs->streams);
        runs->streams = streams;
        if (error != 0)
            return error;
        struct stream *stream = &runs->streams[runs->stream_count];
        *stream =
            (struct stream){ .program = program, .slot = event->object, .generation = event->generation, .kind = kind };
        stream_describe(runs, stream, (event->flags & NT_EVENT_SHARED) != 0);
        *cell = runs->stream_count++;
    }
    *ret_stream = &runs->streams[*cell];
    return 0;
}

/* ---- Sums ---- */

struct sum_key {
    const struct nt_runs *runs;
    uint64_t session;
    uint32_t stream;
};

static bool is_sum(const void *arg, uint32_t position)
{
    const struct sum_key *key = arg;
    const struct sum *sum = &key->runs->sums[position];
    return sum->session == key->session && sum->stream == key->stream;
}

static uint32_t *sum_cell(const struct nt_runs *runs, uint64_t session, uint32_t stream)
{
    const struct sum_key key = { runs, session, stream };
    const uint64_t words[2] = { session, stream };
    return nt_model_index_cell(&runs->sum_table.index, nt_model_hash((uintptr_t)runs, words, sizeof words), is_sum,
                               &key);
}

static int sums_grow(struct nt_runs *runs)
{
    struct nt_model_index index;
    size_t room = runs->sum_table.room > 0 ? 2 * runs->sum_table.room : 256;
    int error = nt_model_index_init(&index, room);
    if (error != 0)
        return error;
    nt_model_index_fini(&runs->sum_table.index);
    runs->sum_table = (struct table){ index, room };
    for (uint32_t i = 0; i < runs->sum_count; i++)
        *sum_cell(runs, runs->sums[i].session, runs->sums[i].stream) = i;
    return 0;
}

/* NULL of a session that nobody asks for. */
static int sum_find(struct nt_runs *runs, const struct stream *stream, uint64_t session, struct sum **ret_sum)
{
    uint32_t number = (uint32_t)(stream - runs->streams);
    *ret_sum = NULL;
    if (runs->wanted && !runs->wanted(runs->arg, session))
        return 0;
    int error = runs->sum_count >= runs->sum_table.room ? sums_grow(runs) : 0;
    if (error != 0)
        return error;
    uint32_t *cell = sum_cell(runs, session, number);
    if (*cell == NT_MODEL_NONE) {
        void *sums = runs->sums;
        error = grow(&sums, runs->sum_count, &runs->sum_room, sizeof *runs->sums);
        runs->sums = sums;
        if (error != 0)
            return error;
        runs->sums[runs->sum_count] = (struct sum){ .session = session, .stream = number };
        *cell = runs->sum_count++;
    }
    *ret_sum = &runs->sums[*cell];
    return 0;
}

/* `doubt`: it may turn out not to be its. Both may be taken away again. */
static int add(struct nt_runs *runs, const struct stream *stream, uint64_t session, struct pair known,
               struct pair doubt)
{
    struct sum *sum;
    int error = sum_find(runs, stream, session, &sum);
    if (error == 0 && sum) {
        sum->known.count += known.count;
        sum->known.total += known.total;
        sum->doubt.count += doubt.count;
        sum->doubt.total += doubt.total;
    }
    return error;
}

static const struct pair nothing = { 0, 0 };

/* ---- Events ---- */

/* The last record turns out to be the last of its run, or what follows it is missing: another session may have joined
   it. */
static int last_in_doubt(struct nt_runs *runs, struct stream *stream)
{
    if (stream->kind != NT_MODEL_KIND_READ || !stream->last_own)
        return 0;
    stream->last_own = false;
    stream->doubts++;
    return add(runs, stream, stream->last, nothing, (struct pair){ 1, stream->last_value });
}

/* Of what is missing before `start`, what lies in the run that goes on is the object's session's. */
static int missing_of_run(struct nt_runs *runs, const struct stream *stream, struct pair *start)
{
    if (!stream->ends || stream->mixed || start->count <= stream->settled.count)
        return 0;
    struct pair from = stream->at.count > stream->settled.count ? stream->at : stream->settled;
    struct pair part = { start->count - from.count, start->total - from.total };
    *start = from;
    return add(runs, stream, runs->model->objects[stream->object].told.session, part, nothing);
}

/* What is missing between the last record and one that begins at `start`. */
static int missing(struct nt_runs *runs, struct stream *stream, struct pair start, const struct nt_event *event)
{
    int error = missing_of_run(runs, stream, &start);
    struct pair gap = { start.count - stream->at.count, start.total - stream->at.total };
    bool joined = gap.count == 1 && stream->join_at == start.count;
    bool own = event->count - 1 == start.count && !stream->mixed &&
               (event->flags & (NT_RECORD_FIRST | NT_RECORD_IN)) == 0;
    uint64_t join = stream->join;
    stream->join_at = stream->join_at <= event->count ? 0 : stream->join_at;
    if (error == 0 && gap.count == 1 && (joined || own))
        return add(runs, stream, joined ? join : event->session, gap, nothing);
    stream->unknown += gap.count;
    return error;
}

static int take_ordered(struct nt_runs *runs, struct stream *stream, const struct nt_event *event)
{
    uint64_t merged = event->merged > 0 ? event->merged : 1;
    struct pair sum = { merged, event->value };
    struct pair start = { event->count - merged, event->total - event->value };
    if (event->count < merged || start.count < stream->at.count)
        return 0; /* one that comes late: it was missing, and stays so */
    bool boundary = (event->flags & (NT_RECORD_FIRST | NT_RECORD_IN)) != 0 || start.count != stream->at.count;
    int error = boundary ? last_in_doubt(runs, stream) : 0;
    if (error == 0 && start.count != stream->at.count)
        error = missing(runs, stream, start, event);
    if (error == 0)
        error = add(runs, stream, event->session, sum, nothing);
    stream->at = (struct pair){ event->count, event->total };
    stream->last = event->session;
    stream->last_value = event->value;
    stream->last_own = merged == 1 && (event->flags & NT_RECORD_IN) == 0;
    stream->missed = stream->missed || merged > 1;
    return error;
}

static int take_shared(struct nt_runs *runs, struct stream *stream, const struct nt_event *event)
{
    uint64_t merged = event->merged > 0 ? event->merged : 1;
    stream->seen += merged;
    return add(runs, stream, event->session, (struct pair){ merged, event->value }, nothing);
}

/* The session holds from a read on that was counted in the one before. */
static int take_join(struct nt_runs *runs, uint32_t program, const struct nt_event *event)
{
    struct stream *joins, *reads;
    int error = stream_find(runs, program, event, NT_MODEL_KIND_SESSION, &joins);
    if (error != 0 || (joins->ends && event->count > joins->end.count))
        return error;
    joins->seen++;
    if (event->argument == 0)
        return 0;
    error = stream_find(runs, program, event, NT_MODEL_KIND_READ, &reads);
    if (error != 0 || (reads->ends && event->argument > reads->end.count))
        return error;
    if (event->argument > reads->at.count) {
        reads->join_at = event->argument;
        reads->join = event->session;
        return 0;
    }
    if (event->argument < reads->at.count || !reads->last_own) {
        reads->missed = reads->missed || event->argument < reads->at.count;
        return 0;
    }
    struct pair read = { 1, reads->last_value };
    reads->last_own = false;
    error = add(runs, reads, reads->last, (struct pair){ -read.count, -read.total }, nothing);
    return error == 0 ? add(runs, reads, event->session, read, nothing) : error;
}

/* Kinds whose events name a session that they are not counted in. */
static bool is_about(unsigned kind)
{
    return kind == NT_MODEL_KIND_SESSION || kind == NT_MODEL_KIND_OPEN || kind == NT_MODEL_KIND_CLOSE ||
           kind == NT_MODEL_KIND_EPOCH || kind == NT_MODEL_KIND_MASK;
}

int nt_runs_event(struct nt_runs *runs, uint32_t program, const struct nt_event *event)
{
    struct stream *stream;
    if (event->kind == NT_MODEL_KIND_SESSION && event->value == SESSION_JOIN)
        return take_join(runs, program, event);
    if (is_about(event->kind) || event->ring == NT_EVENT_NO_RING)
        return 0;
    int error = stream_find(runs, program, event, event->kind, &stream);
    if (error != 0 || (stream->ends && event->count > stream->end.count))
        return error; /* later than the snapshot */
    return stream->shared ? take_shared(runs, stream, event) : take_ordered(runs, stream, event);
}

/* ---- The end ---- */

static const struct nt_source_object *object_of(const struct nt_runs *runs, const struct stream *stream)
{
    return stream->object != NT_MODEL_NONE ? &runs->model->objects[stream->object].told : NULL;
}

/* Up to the object's tally. What is not settled of it was counted in the object's session. */
static int stream_end(struct nt_runs *runs, struct stream *stream)
{
    const struct nt_source_object *told = object_of(runs, stream);
    struct pair gap = { stream->end.count - stream->at.count, stream->end.total - stream->at.total };
    struct pair run = { stream->end.count - stream->settled.count, stream->end.total - stream->settled.total };
    if (!stream->ends) {
        stream->unknown++;
        return last_in_doubt(runs, stream);
    }
    if (stream->shared) {
        stream->unknown = stream->end.count - stream->seen;
        return 0;
    }
    if (stream->mixed && stream->at.count > 0) { /* records may or may not be part of the run */
        stream->unknown += gap.count;
        return last_in_doubt(runs, stream);
    }
    if (stream->settled.count < stream->at.count) /* the last record is part of it, and joined by nobody */
        return add(runs, stream, told->session, gap, nothing);
    stream->unknown += stream->settled.count - stream->at.count;
    int error = last_in_doubt(runs, stream);
    return error == 0 ? add(runs, stream, told->session, run, nothing) : error;
}

/* Runs that go on without any record left. */
static int objects_end(struct nt_runs *runs)
{
    for (uint32_t i = 0; i < runs->model->object_count; i++) {
        const struct nt_source_object *told = &runs->model->objects[i].told;
        bool asked = !told->discipline && (!runs->wanted || runs->wanted(runs->arg, told->session));
        for (size_t k = 0; asked && k < told->tally_count; k++) {
            const struct nt_event event = { .object = told->slot, .generation = told->generation };
            struct stream *stream;
            int error = is_about(told->tallies[k].kind)
                            ? 0
                            : stream_find(runs, told->program, &event, told->tallies[k].kind, &stream);
            if (error != 0)
                return error;
        }
    }
    return 0;
}

/* Whether the program had no room for some counts: those may be of any session, and may have been joins. */
static bool lacks_counts(const struct nt_runs *runs, const struct stream *stream)
{
    return runs->model->programs[stream->program].told.refused_tallies > 0;
}

/* Whether every join on the object of a stream was seen and put where it belongs. */
static bool joins_are_known(const struct nt_runs *runs, const struct stream *reads)
{
    const struct nt_source_object *told = object_of(runs, reads);
    if (!told || reads->missed || lacks_counts(runs, reads))
        return false;
    const struct nt_source_tally *tally = nt_model_sum(told->tallies, told->tally_count, NT_MODEL_KIND_SESSION);
    const uint32_t *cell = stream_cell(runs, reads->program, reads->slot, reads->generation, NT_MODEL_KIND_SESSION);
    uint64_t seen = cell && *cell != NT_MODEL_NONE ? runs->streams[*cell].seen : 0;
    return seen == (tally ? tally->count : 0);
}

static void sum_tell(struct nt_runs *runs, const struct sum *sum)
{
    const struct stream *stream = &runs->streams[sum->stream];
    bool doubt = stream->doubts > 0 && !joins_are_known(runs, stream);
    struct nt_run_sum told = { .session = sum->session,
                               .program = stream->program,
                               .slot = stream->slot,
                               .generation = stream->generation,
                               .object = stream->object,
                               .kind = stream->kind,
                               .exact = stream->unknown == 0 && !doubt && !lacks_counts(runs, stream),
                               .count = sum->known.count - (doubt ? sum->doubt.count : 0),
                               .total = sum->known.total - (doubt ? sum->doubt.total : 0) };
    if (told.count != 0 || told.total != 0)
        runs->told[runs->told_count++] = told;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_shares(const struct nt_run_sum *a, const struct nt_run_sum *b)
{
    int order = compare_u64(a->session, b->session);
    order = order != 0 ? order : compare_u64(a->program, b->program);
    return order != 0 ? order : compare_u64(a->kind, b->kind);
}

static int compare_by_share(const void *left, const void *right)
{
    const struct nt_run_sum *a = left, *b = right;
    int order = compare_shares(a, b);
    order = order != 0 ? order : compare_u64(a->slot, b->slot);
    return order != 0 ? order : compare_u64(a->generation, b->generation);
}

static int compare_by_object(const void *left, const void *right)
{
    const struct nt_run_sum *a = left, *b = right;
    int order = compare_u64(a->session, b->session);
    order = order != 0 ? order : compare_u64(a->program, b->program);
    order = order != 0 ? order : compare_u64(a->slot, b->slot);
    order = order != 0 ? order : compare_u64(a->generation, b->generation);
    return order != 0 ? order : compare_u64(a->kind, b->kind);
}

/* All that the program knows of the session and kind. False: it is not known exactly. */
static bool share_of(const struct nt_model *model, const struct nt_run_sum *sum, struct pair *ret_sum)
{
    uint32_t index = sum->session != 0 ? nt_model_session_find(model, sum->session) : NT_MODEL_SESSION_NO;
    uint32_t at = index != NT_MODEL_NONE && model->sessions ? model->sessions->sessions[index].shares : NT_MODEL_NONE;
    while (at != NT_MODEL_NONE && model->sessions->shares[at].program != sum->program)
        at = model->sessions->shares[at].next;
    if (at == NT_MODEL_NONE || model->sessions->shares[at].bound != NT_MODEL_EXACT)
        return false;
    const struct nt_model_share *share = &model->sessions->shares[at];
    *ret_sum = nothing;
    for (size_t i = 0; i < share->sum_count; i++) {
        if (share->sums[i].kind == sum->kind)
            *ret_sum = (struct pair){ share->sums[i].count, share->sums[i].total };
    }
    return true;
}

/* Where all that is known adds up to all that there is, each part is exact. */
static void add_up(struct nt_runs *runs)
{
    for (size_t first = 0, end; first < runs->told_count; first = end) {
        struct pair known = nothing, share;
        for (end = first; end < runs->told_count && compare_shares(&runs->told[first], &runs->told[end]) == 0; end++) {
            known.count += runs->told[end].count;
            known.total += runs->told[end].total;
        }
        bool whole = share_of(runs->model, &runs->told[first], &share) && share.count == known.count &&
                     share.total == known.total;
        for (size_t i = first; i < end && whole; i++)
            runs->told[i].exact = true;
    }
}

int nt_runs_finish(struct nt_runs *runs)
{
    int error = objects_end(runs);
    for (uint32_t i = 0; i < runs->stream_count && error == 0; i++) {
        if (runs->streams[i].kind != NT_MODEL_KIND_SESSION)
            error = stream_end(runs, &runs->streams[i]);
    }
    runs->told = error == 0 ? calloc((size_t)runs->sum_count + 1, sizeof *runs->told) : NULL;
    if (!runs->told)
        return error != 0 ? error : -ENOMEM;
    for (uint32_t i = 0; i < runs->sum_count; i++)
        sum_tell(runs, &runs->sums[i]);
    qsort(runs->told, runs->told_count, sizeof *runs->told, compare_by_share);
    add_up(runs);
    qsort(runs->told, runs->told_count, sizeof *runs->told, compare_by_object);
    return 0;
}

const struct nt_run_sum *nt_runs_sums(const struct nt_runs *runs, size_t *ret_count)
{
    *ret_count = runs->told_count;
    return runs->told;
}

int nt_runs_new(const struct nt_model *model, bool (*wanted)(void *arg, uint64_t session), void *arg,
                struct nt_runs **ret_runs)
{
    struct nt_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return -ENOMEM;
    *runs = (struct nt_runs){ .model = model, .wanted = wanted, .arg = arg };
    *ret_runs = runs;
    return 0;
}

void nt_runs_free(struct nt_runs *take_runs)
{
    if (!take_runs)
        return;
    nt_model_index_fini(&take_runs->stream_table.index);
    nt_model_index_fini(&take_runs->sum_table.index);
    free(take_runs->streams);
    free(take_runs->sums);
    free(take_runs->told);
    free(take_runs);
}
