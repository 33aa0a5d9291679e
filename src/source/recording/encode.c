/* SPDX-License-Identifier: BSD-3-Clause */
/* Making blocks of events, see block.h. While events come, each is split into columns, of which those that can be
   predicted keep only what was predicted wrongly; at the end they are put in their order and packed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log_layout.h>

#include "source/recording/block.h"
#include "source/recording/index.h"
#include "source/recording/lines.h"
#include "source/recording/pack.h"

#define ROWS RECORDING_EVENTS_MAX

enum { COUNT, TOTAL, MERGED, FLAGS, POSITION, SETTER, DATA_SIZE, RING, LISTS };

struct object {
    uint32_t program, slot, generation;
    uint32_t place; /* in the order that is stored */
    uint32_t line;
};

struct stream {
    uint32_t object; /* number in the block */
    uint16_t kind;
    uint16_t flags;                      /* of its last event */
    uint32_t rows;                       /* how many are its */
    uint32_t ring;                       /* of its last event: number in the block */
    uint64_t session;                    /* of its last event */
    uint64_t count, total;               /* of its last event */
    uint64_t count_before, total_before; /* its first one */
    uint32_t at, row;                    /* while rows are put in its order */
};

struct ring {
    uint32_t program, ring;
    uint64_t first, next; /* positions: of its first event, and expected */
    uint32_t thread;
};

struct recording_encoder {
    struct recording_head head;
    struct object *objects;
    struct stream *streams;
    struct ring *rings;
    uint64_t *sessions;
    struct recording_loss *losses;
    struct recording_thread *changes; /* `ring` is its number in the block */
    struct recording_index object_index, stream_index, ring_index, session_index;
    /* by row */
    uint64_t *time, *ticks, *session, *value, *argument;
    uint32_t *stream_of, *ring_of, *session_of;
    struct pack_list lists[LISTS];
    uint64_t position_bits, argument_bits; /* all of them */
    struct nt_buffer data;
    uint64_t *room;    /* for a column */
    uint64_t *scratch; /* and another */
    uint32_t *order;   /* of streams, objects or sessions */
    void (*on_object)(void *arg, const struct nt_event *event);
    void *on_object_arg;
};

/* ---- Memory ---- */

void recording_encoder_free(struct recording_encoder *take_encoder)
{
    struct recording_encoder *e = take_encoder;
    if (e == NULL) {
        return;
    }
    free(e->objects);
    free(e->streams);
    free(e->rings);
    free(e->sessions);
    free(e->losses);
    free(e->changes);
    recording_index_fini(&e->object_index);
    recording_index_fini(&e->stream_index);
    recording_index_fini(&e->ring_index);
    recording_index_fini(&e->session_index);
    free(e->time);
    free(e->ticks);
    free(e->session);
    free(e->value);
    free(e->argument);
    free(e->stream_of);
    free(e->ring_of);
    free(e->session_of);
    for (int i = 0; i < LISTS; i++) {
        free(e->lists[i].rows);
        free(e->lists[i].values);
    }
    nt_buffer_fini(&e->data);
    free(e->room);
    free(e->scratch);
    free(e->order);
    free(e);
}

static bool take_memory(struct recording_encoder *e)
{
    bool all = true;
    all &= (e->objects = malloc(ROWS * sizeof *e->objects)) != NULL;
    all &= (e->streams = malloc(ROWS * sizeof *e->streams)) != NULL;
    all &= (e->rings = malloc(ROWS * sizeof *e->rings)) != NULL;
    all &= (e->sessions = malloc(ROWS * sizeof *e->sessions)) != NULL;
    all &= (e->losses = malloc(RECORDING_LOSSES_MAX * sizeof *e->losses)) != NULL;
    all &= (e->changes = malloc(ROWS * sizeof *e->changes)) != NULL;
    all &= (e->time = malloc(ROWS * sizeof *e->time)) != NULL;
    all &= (e->ticks = malloc(ROWS * sizeof *e->ticks)) != NULL;
    all &= (e->session = malloc(ROWS * sizeof *e->session)) != NULL;
    all &= (e->value = malloc(ROWS * sizeof *e->value)) != NULL;
    all &= (e->argument = malloc(ROWS * sizeof *e->argument)) != NULL;
    all &= (e->stream_of = malloc(ROWS * sizeof *e->stream_of)) != NULL;
    all &= (e->ring_of = malloc(ROWS * sizeof *e->ring_of)) != NULL;
    all &= (e->session_of = malloc(ROWS * sizeof *e->session_of)) != NULL;
    for (int i = 0; i < LISTS; i++) {
        all &= (e->lists[i].rows = malloc(ROWS * sizeof *e->lists[i].rows)) != NULL;
        all &= (e->lists[i].values = malloc(ROWS * sizeof *e->lists[i].values)) != NULL;
    }
    all &= (e->room = malloc(ROWS * sizeof *e->room)) != NULL;
    all &= (e->scratch = malloc(ROWS * sizeof *e->scratch)) != NULL;
    all &= (e->order = malloc(2 * ROWS * sizeof *e->order)) != NULL;
    return all;
}

static void encoder_clear(struct recording_encoder *e)
{
    e->head = (struct recording_head){ .first = UINT64_MAX, .session_first = UINT64_MAX };
    recording_index_clear(&e->object_index);
    recording_index_clear(&e->stream_index);
    recording_index_clear(&e->ring_index);
    recording_index_clear(&e->session_index);
    for (int i = 0; i < LISTS; i++) {
        e->lists[i].listed = 0;
    }
    e->position_bits = e->argument_bits = 0;
    nt_buffer_clear(&e->data);
}

int recording_encoder_new(struct recording_encoder **ret_encoder)
{
    struct recording_encoder *e = calloc(1, sizeof *e);
    if (e == NULL || !take_memory(e)) {
        recording_encoder_free(e);
        return -ENOMEM;
    }
    encoder_clear(e);
    *ret_encoder = e;
    return 0;
}

bool recording_encoder_is_full(const struct recording_encoder *encoder)
{
    return encoder->head.rows == ROWS || encoder->head.losses == RECORDING_LOSSES_MAX ||
           encoder->data.size >= RECORDING_DATA_MAX;
}

bool recording_encoder_is_empty(const struct recording_encoder *encoder)
{
    return encoder->head.rows == 0 && encoder->head.losses == 0;
}

void recording_encoder_on_object(struct recording_encoder *encoder,
                                 void (*call)(void *arg, const struct nt_event *event), void *arg)
{
    encoder->on_object = call;
    encoder->on_object_arg = arg;
}

/* ---- What events name ---- */

static uint32_t object_of(struct recording_encoder *e, const struct nt_event *event)
{
    uint32_t hash = recording_hash((uint64_t)event->object << 32 | event->generation, event->program), at = hash;
    uint32_t found;
    while ((found = recording_index_next(&e->object_index, hash, &at)) != RECORDING_NONE) {
        const struct object *object = &e->objects[found];
        if (object->slot == event->object && object->generation == event->generation &&
            object->program == event->program) {
            return found;
        }
    }
    found = e->head.objects;
    if (recording_index_add(&e->object_index, hash, found) != 0) {
        return RECORDING_NONE;
    }
    e->objects[e->head.objects++] = (struct object){
        .program = event->program,
        .slot = event->object,
        .generation = event->generation,
    };
    if (e->on_object != NULL) {
        e->on_object(e->on_object_arg, event);
    }
    return found;
}

static uint32_t stream_add(struct recording_encoder *e, const struct nt_event *event, uint32_t hash)
{
    uint32_t object = object_of(e, event), number = e->head.streams;
    if (object == RECORDING_NONE || recording_index_add(&e->stream_index, hash, number) != 0) {
        return RECORDING_NONE;
    }
    e->streams[e->head.streams++] = (struct stream){
        .object = object,
        .kind = event->kind,
        .ring = RECORDING_NONE,
        .count = event->count - event->merged,
        .total = event->total - event->value,
        .count_before = event->count - event->merged,
        .total_before = event->total - event->value,
    };
    return number;
}

static uint32_t stream_find(struct recording_encoder *e, const struct nt_event *event)
{
    uint32_t hash = recording_hash((uint64_t)event->object << 32 | event->generation,
                                   (uint64_t)event->program << 16 | event->kind),
             at = hash, found;
    while ((found = recording_index_next(&e->stream_index, hash, &at)) != RECORDING_NONE) {
        const struct stream *stream = &e->streams[found];
        const struct object *object = &e->objects[stream->object];
        if (object->slot == event->object && object->generation == event->generation && stream->kind == event->kind &&
            object->program == event->program) {
            return found;
        }
    }
    return stream_add(e, event, hash);
}

static uint32_t ring_find(struct recording_encoder *e, const struct nt_event *event)
{
    uint32_t hash = recording_hash(event->ring, event->program), at = hash, found;
    while ((found = recording_index_next(&e->ring_index, hash, &at)) != RECORDING_NONE) {
        if (e->rings[found].ring == event->ring && e->rings[found].program == event->program) {
            return found;
        }
    }
    found = e->head.rings;
    if (recording_index_add(&e->ring_index, hash, found) != 0) {
        return RECORDING_NONE;
    }
    e->rings[e->head.rings++] = (struct ring){
        .program = event->program,
        .ring = event->ring,
        .first = event->position,
        .next = event->position,
        .thread = RECORDING_NONE, /* so that the first one is told in any case */
    };
    return found;
}

static uint32_t session_find(struct recording_encoder *e, uint64_t session)
{
    uint32_t hash = recording_hash(session, 0), at = hash, found;
    while ((found = recording_index_next(&e->session_index, hash, &at)) != RECORDING_NONE) {
        if (e->sessions[found] == session) {
            return found;
        }
    }
    found = e->head.sessions;
    if (recording_index_add(&e->session_index, hash, found) != 0) {
        return RECORDING_NONE;
    }
    e->sessions[e->head.sessions++] = session;
    uint64_t low = recording_session_low(session);
    if (session != 0) {
        e->head.session_first = low < e->head.session_first ? low : e->head.session_first;
        e->head.session_last = low > e->head.session_last ? low : e->head.session_last;
    }
    return found;
}

/* ---- Taking events ---- */

static inline void list(struct recording_encoder *e, int which, uint64_t value)
{
    struct pack_list *list = &e->lists[which];
    if (value != 0) {
        list->rows[list->listed] = e->head.rows;
        list->values[list->listed++] = value;
    }
}

static void take_ring(struct recording_encoder *e, const struct nt_event *event, struct stream *stream, uint32_t number)
{
    struct ring *ring = &e->rings[number];
    uint32_t row = e->head.rows;
    uint32_t expected = stream->ring != RECORDING_NONE ? stream->ring : row > 0 ? e->ring_of[row - 1] : 0;
    uint64_t off = pack_zigzag(event->position - ring->next);
    e->ring_of[row] = number;
    stream->ring = number;
    list(e, RING, number != expected ? (uint64_t)number + 1 : 0);
    list(e, POSITION, off);
    e->position_bits |= off;
    ring->next = event->position + recording_span(event);
}

static void take_thread(struct recording_encoder *e, const struct nt_event *event, uint32_t number, uint32_t thread)
{
    if (thread != e->rings[number].thread) {
        e->rings[number].thread = thread;
        e->changes[e->head.changes++] =
            (struct recording_thread){ .ring = number, .position = event->position, .thread = thread };
    }
}

static void take_numbers(struct recording_encoder *e, const struct nt_event *event, struct stream *stream)
{
    bool changed = stream->session != event->session && stream->rows > 0;
    uint16_t flags = recording_flags(stream->flags, changed);
    list(e, COUNT, pack_zigzag(event->count - (stream->count + event->merged)));
    list(e, TOTAL, pack_zigzag(event->total - (stream->total + event->value)));
    list(e, MERGED, (uint32_t)(event->merged - 1));
    list(e, FLAGS, event->flags ^ flags);
    list(e, SETTER, event->setter);
    list(e, DATA_SIZE, event->data_size);
    stream->count = event->count;
    stream->total = event->total;
    stream->flags = event->flags;
    stream->session = event->session;
    stream->rows++;
}

int recording_encoder_event(struct recording_encoder *encoder, const struct nt_event *event, uint32_t thread)
{
    struct recording_encoder *e = encoder;
    uint32_t row = e->head.rows;
    if (row == ROWS || event->data_size > NT_SOURCE_DATA) {
        return -E2BIG;
    }
    uint32_t number = stream_find(e, event);
    if (number == RECORDING_NONE) {
        return -ENOMEM;
    }
    struct stream *stream = &e->streams[number];
    uint32_t ring = row > 0 && stream->ring != RECORDING_NONE ? stream->ring : 0;
    if (e->head.rings == 0 || e->rings[ring].ring != event->ring || e->rings[ring].program != event->program) {
        ring = ring_find(e, event);
    }
    if (ring == RECORDING_NONE) {
        return -ENOMEM;
    }
    nt_buffer_append(&e->data, event->data, event->data_size);
    if (e->data.error != 0) {
        return e->data.error;
    }
    e->time[row] = event->time;
    e->ticks[row] = event->ticks;
    e->value[row] = event->value;
    e->argument[row] = event->argument;
    e->argument_bits |= event->argument;
    e->stream_of[row] = number;
    e->session[row] = event->session;
    e->head.first = event->time < e->head.first ? event->time : e->head.first;
    e->head.last = event->time > e->head.last ? event->time : e->head.last;
    take_ring(e, event, stream, ring);
    take_thread(e, event, ring, thread);
    take_numbers(e, event, stream);
    e->head.rows++;
    return 0;
}

int recording_encoder_loss(struct recording_encoder *encoder, const struct nt_merge_loss *loss)
{
    if (encoder->head.losses == RECORDING_LOSSES_MAX) {
        return -E2BIG;
    }
    encoder->losses[encoder->head.losses++] = (struct recording_loss){ encoder->head.rows, *loss };
    return 0;
}

/* ---- The summary ---- */

static int by_rows(const void *left, const void *right, void *arg)
{
    const struct recording_encoder *e = arg;
    const struct stream *a = &e->streams[*(const uint32_t *)left], *b = &e->streams[*(const uint32_t *)right];
    if (a->rows != b->rows) {
        return a->rows > b->rows ? -1 : 1;
    }
    return *(const uint32_t *)left < *(const uint32_t *)right ? -1 : 1;
}

static int by_name(const void *left, const void *right, void *arg)
{
    const struct recording_encoder *e = arg;
    const struct object *a = &e->objects[*(const uint32_t *)left], *b = &e->objects[*(const uint32_t *)right];
    if (a->program != b->program) {
        return a->program < b->program ? -1 : 1;
    }
    if (a->slot != b->slot) {
        return a->slot < b->slot ? -1 : 1;
    }
    return a->generation < b->generation ? -1 : a->generation > b->generation;
}

static void order_by(struct recording_encoder *e, uint32_t count,
                     int (*compare)(const void *left, const void *right, void *arg))
{
    for (uint32_t i = 0; i < count; i++) {
        e->order[i] = i;
    }
    qsort_r(e->order, count, sizeof *e->order, compare, e);
}

static void write_objects(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t count = e->head.objects, slot = 0;
    order_by(e, count, by_name);
    for (uint32_t i = 0; i < count; i++) {
        e->objects[e->order[i]].place = i;
        e->room[i] = e->objects[e->order[i]].program;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = pack_zigzag((uint64_t)e->objects[e->order[i]].slot - slot);
        slot = e->objects[e->order[i]].slot;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->objects[e->order[i]].generation;
    }
    pack_column(out, e->room, count);
    uint32_t line = 0;
    for (uint32_t i = 0; i < count; i++) {
        line += i > 0 && e->objects[e->order[i]].program != e->objects[e->order[i - 1]].program;
        e->objects[e->order[i]].line = line;
    }
}

/* Streams in their order, the busiest first; `at` is then where their rows begin in it. */
static void write_streams(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t count = e->head.streams, at = 0;
    order_by(e, count, by_rows);
    for (uint32_t i = 0; i < count; i++) {
        struct stream *stream = &e->streams[e->order[i]];
        stream->at = at;
        stream->row = 0;
        at += stream->rows;
        e->room[i] = e->objects[stream->object].place;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->streams[e->order[i]].kind;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->streams[e->order[i]].rows;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->streams[e->order[i]].count_before;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->streams[e->order[i]].total_before;
    }
    pack_column(out, e->room, count);
}

static void write_rings(struct recording_encoder *e, struct nt_buffer *out)
{
    for (uint32_t i = 0; i < e->head.rings; i++) {
        pack_number(out, e->rings[i].program);
        pack_number(out, e->rings[i].ring);
        pack_number(out, e->rings[i].first);
    }
    for (uint32_t i = 0; i < e->head.changes; i++) {
        pack_number(out, e->changes[i].ring);
        pack_number(out, e->changes[i].position);
        pack_number(out, e->changes[i].thread);
    }
}

/* All at once: so many look-ups at a time are no slower than one. */
static int number_sessions(struct recording_encoder *e)
{
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->session_of[row] = session_find(e, e->session[row]);
        if (e->session_of[row] == RECORDING_NONE) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* Numbers in the block by the low 48 bits of the session, by counting 16 bits at a time. */
static const uint32_t *order_sessions(struct recording_encoder *e)
{
    uint32_t *from = e->order, *to = e->order + ROWS, count = e->head.sessions;
    for (uint32_t i = 0; i < count; i++) {
        from[i] = i;
    }
    for (unsigned shift = 0; shift < 48; shift += 12) {
        uint32_t starts[4097] = { 0 };
        for (uint32_t i = 0; i < count; i++) {
            starts[(e->sessions[i] >> shift & 4095) + 1]++;
        }
        if (count > 0 && starts[(e->sessions[0] >> shift & 4095) + 1] == count) {
            continue;
        }
        for (unsigned i = 1; i < 4097; i++) {
            starts[i] += starts[i - 1];
        }
        for (uint32_t i = 0; i < count; i++) {
            to[starts[e->sessions[from[i]] >> shift & 4095]++] = from[i];
        }
        uint32_t *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Sessions get the places that they are stored in as their numbers. */
static void write_sessions(struct recording_encoder *e, struct nt_buffer *out)
{
    const uint32_t *order = order_sessions(e);
    uint32_t count = e->head.sessions, *places = (uint32_t *)(void *)e->scratch;
    uint64_t low = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t next = recording_session_low(e->sessions[order[i]]);
        e->room[i] = next - low;
        low = next;
        places[order[i]] = i;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = e->sessions[order[i]] >> 48;
    }
    pack_column(out, e->room, count);
    for (uint32_t i = 0; i < e->head.rows; i++) {
        e->session_of[i] = places[e->session_of[i]];
    }
}

static void write_losses(const struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < e->head.losses; i++) {
        const struct nt_merge_loss *loss = &e->losses[i].loss;
        pack_number(out, e->losses[i].before - row);
        pack_number(out, loss->lost.program);
        pack_number(out, loss->lost.ring);
        pack_number(out, loss->lost.from);
        pack_number(out, loss->lost.to - loss->lost.from);
        pack_number(out, loss->lost.count);
        pack_number(out, loss->from_time);
        pack_number(out, loss->to_time);
        row = e->losses[i].before;
    }
}

/* ---- The body ---- */

/* Of each stream, which rows are its: how many lie between them. */
static void write_rows(struct recording_encoder *e, struct nt_buffer *out)
{
    for (uint32_t row = 0; row < e->head.rows; row++) {
        struct stream *stream = &e->streams[e->stream_of[row]];
        e->room[stream->at] = row - stream->row;
        e->stream_of[row] = stream->at++; /* where the row stands in the order of streams */
        stream->row = row + 1;
    }
    pack_column(out, e->room, e->head.rows);
}

static void write_grouped(struct recording_encoder *e, const uint64_t *values, struct nt_buffer *out)
{
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->room[e->stream_of[row]] = values[row];
    }
    pack_column(out, e->room, e->head.rows);
}

/* The time of the first of each frame by itself, so that a frame can be read without those before it. */
static void write_times(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t rows = e->head.rows, frames = 0;
    uint64_t start = e->head.first;
    for (uint32_t row = 0; row < rows; row += PACK_FRAME) {
        e->room[frames++] = pack_zigzag(e->time[row] - start);
        start = e->time[row];
    }
    pack_column(out, e->room, frames);
    for (uint32_t row = 1; row < rows; row++) {
        e->room[row] = pack_zigzag(e->time[row] - e->time[row - 1]);
    }
    for (uint32_t row = 0; row < rows; row += PACK_FRAME) {
        e->room[row] = row + 1 < rows ? e->room[row + 1] : 0; /* takes no room of its own */
    }
    pack_column(out, e->room, rows);
}

/* The line of the program that each row is of goes before `stream_of` says something else. */
static uint32_t line_of(const struct recording_encoder *e, uint32_t row)
{
    return e->objects[e->streams[e->stream_of[row]].object].line;
}

static int write_ticks(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t count = e->head.objects > 0 ? e->objects[e->order[e->head.objects - 1]].line + 1 : 0;
    struct recording_line *lines = calloc((size_t)count + 1, sizeof *lines);
    if (lines == NULL) {
        return nt_buffer_fail(out, -ENOMEM);
    }
    for (uint32_t row = 0; row < e->head.rows; row++) {
        recording_line_see(&lines[line_of(e, row)], e->time[row], e->ticks[row]);
    }
    for (uint32_t i = 0; i < count; i++) {
        recording_line_draw(&lines[i]);
    }
    for (uint32_t row = 0; row < e->head.rows; row++) {
        struct recording_line *line = &lines[line_of(e, row)];
        e->room[row] = e->ticks[row] - recording_line_at(line, e->time[row]);
        line->least = (int64_t)e->room[row] < line->least ? (int64_t)e->room[row] : line->least;
    }
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->room[row] -= (uint64_t)lines[line_of(e, row)].least;
    }
    for (uint32_t i = 0; i < count; i++) {
        pack_number(out, pack_zigzag(lines[i].time - e->head.first));
        pack_number(out, lines[i].ticks + (uint64_t)lines[i].least);
        pack_number(out, lines[i].slope);
    }
    free(lines);
    pack_column(out, e->room, e->head.rows);
    return 0;
}

static void write_ring_of(struct recording_encoder *e, struct nt_buffer *out)
{
    bool expected = e->lists[RING].listed <= e->head.rows / 8;
    nt_buffer_byte(out, expected);
    if (expected) {
        pack_list(out, &e->lists[RING], e->head.rows, e->room);
        return;
    }
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->room[row] = e->ring_of[row];
    }
    pack_column(out, e->room, e->head.rows);
}

/* How often the session of an object's (or a ring's) last event is not that of the next; their rows into `room`. */
static uint32_t session_misses(struct recording_encoder *e, const uint32_t *owner_of, uint32_t owners)
{
    uint32_t *last = (uint32_t *)(void *)e->scratch, misses = 0;
    memset(last, 0xff, owners * sizeof *last);
    for (uint32_t row = 0; row < e->head.rows; row++) {
        uint32_t owner = owner_of[row];
        if (last[owner] != e->session_of[row]) {
            last[owner] = e->session_of[row];
            e->room[misses++] = row;
        }
    }
    return misses;
}

static void write_session_misses(struct recording_encoder *e, uint32_t misses, struct nt_buffer *out)
{
    pack_number(out, misses);
    for (uint32_t i = 0; i < misses; i++) {
        e->scratch[i] = e->room[i] - (i > 0 ? e->room[i - 1] + 1 : 0);
    }
    pack_column(out, e->scratch, misses);
    for (uint32_t i = 0; i < misses; i++) {
        e->scratch[i] = e->session_of[e->room[i]];
    }
    pack_column(out, e->scratch, misses);
}

/* Before write_rows: needs the streams of rows. */
static void write_session_of(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t *object_of_row = e->order;
    uint32_t rows = e->head.rows;
    for (uint32_t row = 0; row < rows; row++) {
        object_of_row[row] = e->streams[e->stream_of[row]].object;
    }
    uint32_t by_ring = session_misses(e, e->ring_of, e->head.rings);
    uint32_t by_object = session_misses(e, object_of_row, e->head.objects);
    uint32_t least = by_ring < by_object ? by_ring : by_object;
    if (least > rows / 4 * 3) {
        nt_buffer_byte(out, RECORDING_SESSION_PLAIN);
        for (uint32_t row = 0; row < rows; row++) {
            e->room[row] = e->session_of[row];
        }
        pack_column(out, e->room, rows);
        return;
    }
    if (by_ring < by_object) {
        (void)session_misses(e, e->ring_of, e->head.rings);
    }
    nt_buffer_byte(out, by_ring < by_object ? RECORDING_SESSION_BY_RING : RECORDING_SESSION_BY_OBJECT);
    write_session_misses(e, least, out);
}

/* Positions are divisible by 64, or nearly all of them: bits that none has are left out. */
static void write_positions(struct recording_encoder *e, struct nt_buffer *out)
{
    struct pack_list *off = &e->lists[POSITION];
    unsigned shift = e->position_bits != 0 ? (unsigned)__builtin_ctzll(e->position_bits) : 0;
    for (size_t i = 0; i < off->listed; i++) {
        off->values[i] >>= shift;
    }
    nt_buffer_byte(out, (char)shift);
    pack_list(out, off, e->head.rows, e->room);
}

void recording_encoder_finish(struct recording_encoder *encoder, struct nt_buffer *summary, struct nt_buffer *body)
{
    struct recording_encoder *e = encoder;
    e->head.data = (uint32_t)e->data.size;
    if (e->head.rows == 0) {
        e->head.first = 0;
    }
    if (number_sessions(e) != 0) {
        (void)nt_buffer_fail(summary, -ENOMEM);
        encoder_clear(e);
        return;
    }
    nt_buffer_append(summary, &e->head, sizeof e->head);
    write_rings(e, summary);
    write_sessions(e, summary);
    write_losses(e, summary);
    write_objects(e, summary);
    (void)write_ticks(e, body); /* in the order of objects */
    write_times(e, body);
    write_ring_of(e, body);
    write_session_of(e, body);
    write_streams(e, summary);
    write_rows(e, body);
    write_grouped(e, e->value, body);
    write_grouped(e, e->argument, body);
    write_positions(e, body);
    static const int lists[] = { COUNT, TOTAL, MERGED, FLAGS, SETTER, DATA_SIZE };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        pack_list(body, &e->lists[lists[i]], e->head.rows, e->room);
    }
    nt_buffer_append(body, e->data.data, e->data.size);
    encoder_clear(e);
}
