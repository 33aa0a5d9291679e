/* SPDX-License-Identifier: BSD-3-Clause */
/* Making blocks of events, see block.h. While events come, each is split into columns, of which those that can be
   predicted keep only what was predicted wrongly; at the end they are put in their order and packed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log_layout.h>

#include "source/recording/encoder.h"
#include "source/recording/lines.h"

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
    nt_buffer_fini(&e->columns);
    nt_buffer_fini(&e->frames);
    recording_follow_fini(&e->follow);
    free(e->bases);
    free(e->framed);
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
    all &= (e->bases = malloc(GROUPS * sizeof *e->bases)) != NULL;
    all &= (e->framed = calloc(FRAMED, sizeof *e->framed)) != NULL;
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
        const struct encoder_object *object = &e->objects[found];
        if (object->slot == event->object && object->generation == event->generation &&
            object->program == event->program) {
            return found;
        }
    }
    found = e->head.objects;
    if (recording_index_add(&e->object_index, hash, found) != 0) {
        return RECORDING_NONE;
    }
    e->objects[e->head.objects++] = (struct encoder_object){
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
    e->streams[e->head.streams++] = (struct encoder_stream){
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
        const struct encoder_stream *stream = &e->streams[found];
        const struct encoder_object *object = &e->objects[stream->object];
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
    e->rings[e->head.rings++] = (struct encoder_ring){
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

static void note_bases(struct recording_encoder *e)
{
    uint32_t group = e->head.rows / PACK_FRAME, count = e->head.rings < FEW_RINGS ? e->head.rings : FEW_RINGS;
    for (uint32_t i = 0; i < count; i++) {
        e->bases[group][i] = e->rings[i].next;
    }
    e->base_counts[group] = count;
}

static void take_ring(struct recording_encoder *e, const struct nt_event *event, struct encoder_stream *stream,
                      uint32_t number)
{
    struct encoder_ring *ring = &e->rings[number];
    uint32_t row = e->head.rows;
    uint32_t expected = stream->ring != RECORDING_NONE ? stream->ring : row > 0 ? e->ring_of[row - 1] : 0;
    uint64_t off = pack_zigzag(event->position - ring->next), span = recording_span(event);
    e->ring_of[row] = number;
    stream->ring = number;
    list(e, RING, number != expected ? (uint64_t)number + 1 : 0);
    list(e, POSITION, off);
    list(e, SPAN, span >= 64 ? span / 64 - 1 : 0);
    e->position_bits |= off;
    ring->next = event->position + span;
}

static void take_thread(struct recording_encoder *e, const struct nt_event *event, uint32_t number, uint32_t thread)
{
    if (thread != e->rings[number].thread) {
        e->rings[number].thread = thread;
        e->changes[e->head.changes++] =
            (struct recording_thread){ .ring = number, .position = event->position, .thread = thread };
    }
}

/* The count is not that of the row before and the events that this one stands for; or there cannot be so many. */
static void note_gap(const struct nt_event *event, struct encoder_stream *stream, uint64_t off)
{
    if (event->count == 0) {
        stream->uncounted++; /* nobody looks for those */
        return;
    }
    stream->gaps = true;
    stream->odd |= (int64_t)off < 0 || (uint64_t)event->merged - 1 >= event->count;
}

static void take_numbers(struct recording_encoder *e, const struct nt_event *event, struct encoder_stream *stream)
{
    bool changed = stream->session != event->session && stream->rows > 0;
    uint16_t flags = recording_flags(stream->flags, changed);
    uint64_t off = event->count - (stream->count + event->merged);
    if (off != 0 || (uint64_t)event->merged - 1 >= event->count) {
        note_gap(event, stream, off);
    }
    stream->shared |= (event->flags & NT_EVENT_SHARED) != 0;
    list(e, COUNT, pack_zigzag(off));
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

static inline void note_time(struct recording_encoder *e, uint64_t time)
{
    e->head.flags |= time < e->high ? RECORDING_UNSORTED : 0;
    e->high = time > e->high ? time : e->high;
    e->head.first = time < e->head.first ? time : e->head.first;
    e->head.last = time > e->head.last ? time : e->head.last;
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
    struct encoder_stream *stream = &e->streams[number];
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
    e->data_ends[row / PACK_FRAME] = (uint32_t)e->data.size;
    if (row % PACK_FRAME == 0) {
        note_bases(e);
    }
    note_time(e, event->time);
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

void recording_encoder_finish(struct recording_encoder *encoder, struct nt_buffer *summary, struct nt_buffer *body)
{
    if (number_sessions(encoder) == 0) {
        encoder_write(encoder, summary, body);
    } else {
        (void)nt_buffer_fail(summary, -ENOMEM);
    }
    encoder_clear(encoder);
}
