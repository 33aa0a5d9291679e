/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading blocks of events, see block.h. The lists of the summary and what is stored stream by stream are unpacked at
   once, the other columns a frame at a time, as its rows are put together. */
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "source/recording/block.h"
#include "source/recording/index.h"
#include "source/recording/lines.h"
#include "source/recording/pack.h"

#define ROWS RECORDING_EVENTS_MAX
#define AHEAD 8u /* rows that memory is asked for before they are read */

enum { START, TIME, TICKS, RING, SESSION, POSITION, COUNT, TOTAL, MERGED, FLAGS, SETTER, DATA_SIZE, CURSORS };

struct object {
    uint32_t program, slot, generation;
    uint32_t session;
    uint32_t line;
};

struct stream {
    uint64_t count, total;
    uint32_t at; /* of its next row in the order of streams */
    uint32_t object, line;
    uint32_t program, slot, generation;
    uint32_t ring, session;
    uint16_t kind, flags;
};

struct ring {
    uint32_t program, ring;
    uint64_t next;
    uint32_t session;
};

struct recording_decoder {
    struct recording_head head;
    struct object *objects;
    struct stream *streams;
    struct ring *rings;
    uint64_t *sessions;
    struct recording_loss *losses;
    struct recording_thread *changes;
    struct recording_line *lines;
    uint32_t line_count;
    uint32_t *stream_of;          /* by row */
    uint64_t *values, *arguments; /* by stream */
    uint64_t argument;            /* of all rows, if they are alike */
    bool arguments_alike;
    uint64_t *places; /* while lists are read */
    size_t rows_room, losses_room;
    uint64_t *misses, *miss_sessions; /* rows, and numbers of sessions */
    uint32_t miss_count, miss_at;
    uint8_t session_mode, ring_mode, position_shift;
    struct pack_cursor cursors[CURSORS];
    const uint64_t *frame[CURSORS];
    const uint8_t *data, *data_end;
    uint64_t time; /* of the row before */
    uint64_t start;
    uint32_t row, ring;
};

/* ---- Memory ---- */

static void memory_free(struct recording_decoder *d)
{
    free(d->objects);
    free(d->streams);
    free(d->rings);
    free(d->sessions);
    free(d->changes);
    free(d->lines);
    free(d->stream_of);
    free(d->values);
    free(d->arguments);
    free(d->places);
    free(d->misses);
    free(d->miss_sessions);
    d->rows_room = 0;
}

void recording_decoder_free(struct recording_decoder *take_decoder)
{
    if (take_decoder != NULL) {
        memory_free(take_decoder);
        free(take_decoder->losses);
        free(take_decoder);
    }
}

int recording_decoder_new(struct recording_decoder **ret_decoder)
{
    *ret_decoder = calloc(1, sizeof **ret_decoder);
    return *ret_decoder != NULL ? 0 : -ENOMEM;
}

/* Room for what the block has: nothing in it is more than its rows. */
static int take_memory(struct recording_decoder *d)
{
    size_t room = 256;
    if (d->head.losses > d->losses_room) {
        free(d->losses);
        d->losses = malloc(d->head.losses * sizeof *d->losses);
        d->losses_room = d->losses != NULL ? d->head.losses : 0;
    }
    while (room < d->head.rows) {
        room *= 2;
    }
    if (room > d->rows_room) {
        memory_free(d);
        bool all = true;
        all &= (d->objects = malloc(room * sizeof *d->objects)) != NULL;
        all &= (d->streams = malloc(room * sizeof *d->streams)) != NULL;
        all &= (d->rings = malloc(room * sizeof *d->rings)) != NULL;
        all &= (d->sessions = malloc(room * sizeof *d->sessions)) != NULL;
        all &= (d->changes = malloc(room * sizeof *d->changes)) != NULL;
        all &= (d->lines = malloc(room * sizeof *d->lines)) != NULL;
        all &= (d->stream_of = malloc(room * sizeof *d->stream_of)) != NULL;
        all &= (d->values = malloc(room * sizeof *d->values)) != NULL;
        all &= (d->arguments = malloc(room * sizeof *d->arguments)) != NULL;
        all &= (d->places = malloc(room * sizeof *d->places)) != NULL;
        all &= (d->misses = malloc(room * sizeof *d->misses)) != NULL;
        all &= (d->miss_sessions = malloc(room * sizeof *d->miss_sessions)) != NULL;
        d->rows_room = all ? room : 0;
    }
    return d->rows_room != 0 && d->losses_room >= d->head.losses ? 0 : -ENOMEM;
}

/* ---- The summary ---- */

static bool head_is_possible(const struct recording_head *head)
{
    return head->rows <= ROWS && head->losses <= RECORDING_LOSSES_MAX && head->objects <= head->rows &&
           head->streams <= head->rows && head->rings <= head->rows && head->sessions <= head->rows &&
           head->changes <= head->rows && head->data <= RECORDING_DATA_MAX + NT_SOURCE_DATA &&
           (head->rows == 0) == (head->streams == 0);
}

static void read_rings(struct recording_decoder *d, struct pack_in *in)
{
    for (uint32_t i = 0; i < d->head.rings; i++) {
        struct ring *ring = &d->rings[i];
        ring->program = (uint32_t)unpack_at_most(in, RECORDING_PROGRAMS_MAX - 1);
        ring->ring = (uint32_t)unpack_at_most(in, UINT32_MAX);
        ring->next = unpack_number(in);
        ring->session = RECORDING_NONE;
    }
    for (uint32_t i = 0; i < d->head.changes && d->head.rings > 0; i++) {
        const struct ring *ring = &d->rings[unpack_at_most(in, d->head.rings - 1)];
        d->changes[i].program = ring->program;
        d->changes[i].ring = ring->ring;
        d->changes[i].position = unpack_number(in);
        d->changes[i].thread = (uint32_t)unpack_at_most(in, UINT32_MAX);
    }
}

static void read_sessions(struct recording_decoder *d, struct pack_in *in)
{
    uint64_t low = 0;
    unpack_column(in, d->places, d->head.sessions);
    unpack_column(in, d->sessions, d->head.sessions);
    for (uint32_t i = 0; i < d->head.sessions; i++) {
        low += d->places[i];
        d->sessions[i] = d->sessions[i] << 48 | recording_session_low(low);
    }
}

static void read_losses(struct recording_decoder *d, struct pack_in *in)
{
    uint64_t row = 0;
    for (uint32_t i = 0; i < d->head.losses; i++) {
        struct recording_loss *loss = &d->losses[i];
        row += unpack_at_most(in, d->head.rows - row);
        *loss = (struct recording_loss){ .before = (uint32_t)row };
        loss->loss.lost.program = (uint32_t)unpack_at_most(in, RECORDING_PROGRAMS_MAX - 1);
        loss->loss.lost.ring = (uint32_t)unpack_at_most(in, UINT32_MAX);
        loss->loss.lost.from = unpack_number(in);
        loss->loss.lost.to = loss->loss.lost.from + unpack_number(in);
        loss->loss.lost.count = unpack_number(in);
        loss->loss.from_time = unpack_number(in);
        loss->loss.to_time = unpack_number(in);
    }
}

static void read_objects(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t count = d->head.objects, line = 0;
    uint64_t slot = 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] >= RECORDING_PROGRAMS_MAX ||
                  (i > 0 && d->places[i] < d->objects[i - 1].program);
        d->objects[i].program = (uint32_t)d->places[i];
        line += i > 0 && d->objects[i].program != d->objects[i - 1].program;
        d->objects[i].line = line;
        d->objects[i].session = RECORDING_NONE;
    }
    d->line_count = count > 0 ? line + 1 : 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        slot += pack_unzigzag(d->places[i]);
        in->bad = in->bad || slot > UINT32_MAX;
        d->objects[i].slot = (uint32_t)slot;
    }
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] > UINT32_MAX;
        d->objects[i].generation = (uint32_t)d->places[i];
    }
}

static void read_streams(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t count = d->head.streams;
    uint64_t at = 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        in->bad = d->places[i] >= d->head.objects;
        if (!in->bad) {
            const struct object *object = &d->objects[d->places[i]];
            d->streams[i] = (struct stream){
                .object = (uint32_t)d->places[i],
                .line = object->line,
                .program = object->program,
                .slot = object->slot,
                .generation = object->generation,
                .ring = RECORDING_NONE,
                .session = RECORDING_NONE,
            };
        }
    }
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] > UINT16_MAX;
        d->streams[i].kind = (uint16_t)d->places[i];
    }
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] == 0 || d->places[i] > d->head.rows - at;
        d->streams[i].at = (uint32_t)at;
        at += in->bad ? 0 : d->places[i];
    }
    in->bad = in->bad || at != d->head.rows;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        d->streams[i].count = d->places[i];
    }
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        d->streams[i].total = d->places[i];
    }
}

static int read_summary(struct recording_decoder *d, struct pack_in *in)
{
    const uint8_t *head = unpack_bytes(in, sizeof d->head);
    if (head == NULL) {
        return -NT_EFORMAT;
    }
    memcpy(&d->head, head, sizeof d->head);
    if (!head_is_possible(&d->head)) {
        return -NT_EFORMAT;
    }
    int error = take_memory(d);
    if (error != 0) {
        return error;
    }
    read_rings(d, in);
    read_sessions(d, in);
    read_losses(d, in);
    read_objects(d, in);
    if (!in->bad) {
        read_streams(d, in);
    }
    return in->bad || in->at != in->end ? -NT_EFORMAT : 0;
}

/* ---- The body ---- */

static void cursor_begin(struct recording_decoder *d, int which, struct pack_in *in, size_t count)
{
    pack_cursor_begin(&d->cursors[which], in, count);
    d->frame[which] = d->cursors[which].values;
}

static void read_lines(struct recording_decoder *d, struct pack_in *in)
{
    for (uint32_t i = 0; i < d->line_count; i++) {
        d->lines[i].time = d->head.first + pack_unzigzag(unpack_number(in));
        d->lines[i].ticks = unpack_number(in);
        d->lines[i].slope = unpack_number(in);
    }
}

static uint8_t read_byte(struct pack_in *in, uint8_t most)
{
    const uint8_t *byte = unpack_bytes(in, 1);
    in->bad = in->bad || *byte > most;
    return in->bad ? 0 : *byte;
}

static void read_session_of(struct recording_decoder *d, struct pack_in *in)
{
    d->session_mode = read_byte(in, RECORDING_SESSION_BY_RING);
    d->miss_count = d->miss_at = 0;
    if (d->session_mode == RECORDING_SESSION_PLAIN) {
        cursor_begin(d, SESSION, in, d->head.rows);
        return;
    }
    d->miss_count = (uint32_t)unpack_at_most(in, d->head.rows);
    unpack_column(in, d->misses, d->miss_count);
    unpack_column(in, d->miss_sessions, d->miss_count);
    uint64_t row = 0;
    for (uint32_t i = 0; i < d->miss_count; i++) {
        in->bad = in->bad || d->misses[i] >= d->head.rows - row;
        row += in->bad ? 0 : d->misses[i];
        d->misses[i] = row;
        row += !in->bad;
    }
}

static void read_rows(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t rows = d->head.rows;
    unpack_column(in, d->places, rows);
    memset(d->stream_of, 0xff, rows * sizeof *d->stream_of);
    for (uint32_t i = 0, stream = 0, end; stream < d->head.streams && !in->bad; stream++) {
        uint64_t row = 0;
        end = stream + 1 < d->head.streams ? d->streams[stream + 1].at : rows;
        for (; i < end; i++, row++) {
            row += d->places[i];
            if (row >= rows || d->places[i] >= rows || d->stream_of[row] != RECORDING_NONE) {
                in->bad = true;
                break;
            }
            d->stream_of[row] = stream;
        }
    }
}

static int read_body(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t rows = d->head.rows, frames = (rows + PACK_FRAME - 1) / PACK_FRAME;
    read_lines(d, in);
    cursor_begin(d, TICKS, in, rows);
    cursor_begin(d, START, in, frames);
    cursor_begin(d, TIME, in, rows);
    d->ring_mode = read_byte(in, 1);
    cursor_begin(d, RING, in, rows);
    read_session_of(d, in);
    read_rows(d, in);
    unpack_column(in, d->values, rows);
    d->arguments_alike = in->at < in->end && in->at[0] == 0;
    unpack_column(in, d->arguments_alike ? &d->argument : d->arguments, d->arguments_alike ? 1 : rows);
    d->position_shift = read_byte(in, 63);
    cursor_begin(d, POSITION, in, rows);
    for (int i = COUNT; i < CURSORS; i++) {
        cursor_begin(d, i, in, rows);
    }
    d->data = unpack_bytes(in, d->head.data);
    d->data_end = d->data != NULL ? d->data + d->head.data : NULL;
    return in->bad || in->at != in->end ? -NT_EFORMAT : 0;
}

int recording_decoder_begin(struct recording_decoder *decoder, const uint8_t *summary, size_t summary_size,
                            const uint8_t *body, size_t body_size)
{
    struct pack_in in = { summary, summary + summary_size, false }, rest = { body, body + body_size, false };
    int error = read_summary(decoder, &in);
    if (error == 0) {
        error = read_body(decoder, &rest);
    }
    if (error != 0) {
        decoder->head = (struct recording_head){ 0 };
    }
    decoder->row = decoder->ring = 0;
    decoder->time = decoder->start = decoder->head.first;
    return error;
}

/* ---- Rows ---- */

static bool next_frame(struct recording_decoder *d)
{
    bool bad = false;
    if (d->row / PACK_FRAME % PACK_FRAME == 0) {
        (void)pack_cursor_next(&d->cursors[START]);
    }
    for (int i = TIME; i < CURSORS; i++) {
        if (i != SESSION || d->session_mode == RECORDING_SESSION_PLAIN) {
            (void)pack_cursor_next(&d->cursors[i]);
            bad = bad || d->cursors[i].in.bad;
        }
    }
    d->start += pack_unzigzag(d->frame[START][d->row / PACK_FRAME % PACK_FRAME]);
    d->time = d->start;
    return !bad && !d->cursors[START].in.bad;
}

static inline uint32_t row_ring(const struct recording_decoder *d, const struct stream *stream, uint32_t at)
{
    uint64_t told = d->frame[RING][at];
    if (d->ring_mode == 0) {
        return told < d->head.rings ? (uint32_t)told : RECORDING_NONE;
    }
    told = told != 0 ? told - 1 : stream->ring != RECORDING_NONE ? stream->ring : d->ring;
    return told < d->head.rings ? (uint32_t)told : RECORDING_NONE;
}

static inline uint32_t row_session(struct recording_decoder *d, const struct stream *stream, uint32_t ring, uint32_t at)
{
    uint64_t told;
    if (d->session_mode == RECORDING_SESSION_PLAIN) {
        told = d->frame[SESSION][at];
        return told < d->head.sessions ? (uint32_t)told : RECORDING_NONE;
    }
    uint32_t *last = d->session_mode == RECORDING_SESSION_BY_RING ? &d->rings[ring].session
                                                                  : &d->objects[stream->object].session;
    if (d->miss_at < d->miss_count && d->misses[d->miss_at] == d->row) {
        told = d->miss_sessions[d->miss_at++];
        *last = told < d->head.sessions ? (uint32_t)told : RECORDING_NONE;
    }
    return *last;
}

static inline void row_numbers(struct recording_decoder *d, struct stream *stream, uint32_t at, struct nt_event *event)
{
    event->merged = (uint32_t)d->frame[MERGED][at] + 1;
    event->value = d->values[stream->at];
    event->argument = d->arguments_alike ? d->argument : d->arguments[stream->at];
    stream->at++;
    stream->count += event->merged + pack_unzigzag(d->frame[COUNT][at]);
    stream->total += event->value + pack_unzigzag(d->frame[TOTAL][at]);
    event->count = stream->count;
    event->total = stream->total;
}

static inline bool row_data(struct recording_decoder *d, uint32_t at, struct nt_event *event)
{
    uint64_t size = d->frame[DATA_SIZE][at];
    event->data = NULL;
    event->data_size = 0;
    if (size != 0) {
        if (size > NT_SOURCE_DATA || size > (size_t)(d->data_end - d->data)) {
            return false;
        }
        event->data = d->data;
        event->data_size = (uint32_t)size;
        d->data += size;
    }
    return true;
}

/* The next rows, all of one frame. Returns how many; fewer: the next one cannot be. */
static uint32_t rows_take(struct recording_decoder *d, struct nt_event *restrict events, uint32_t count)
{
    const uint64_t *const times = d->frame[TIME], *const ticks = d->frame[TICKS], *const flags = d->frame[FLAGS];
    const uint64_t *const positions = d->frame[POSITION], *const setters = d->frame[SETTER];
    const uint64_t *const sessions = d->sessions;
    const uint32_t *const stream_of = d->stream_of + d->row;
    const unsigned shift = d->position_shift;
    uint32_t at = d->row % PACK_FRAME, i = 0;
    uint64_t time = d->time;
    for (; i < count; i++, at++, d->row++) {
        struct nt_event *event = &events[i];
        struct stream *stream = &d->streams[stream_of[i]];
        if (i + AHEAD < count) { /* one of many streams, of each of which the next value is elsewhere */
            __builtin_prefetch(&d->values[d->streams[stream_of[i + AHEAD]].at]);
        }
        uint32_t number = row_ring(d, stream, at);
        uint32_t session = number != RECORDING_NONE ? row_session(d, stream, number, at) : RECORDING_NONE;
        if (session == RECORDING_NONE || !row_data(d, at, event) || d->rings[number].program != stream->program) {
            break;
        }
        struct ring *ring = &d->rings[number];
        bool changed = stream->session != session && stream->session != RECORDING_NONE;
        time += at > 0 ? pack_unzigzag(times[at]) : 0;
        event->flags = recording_flags(stream->flags, changed) ^ (uint16_t)flags[at];
        event->time = time;
        event->ticks = recording_line_at(&d->lines[stream->line], time) + ticks[at];
        event->session = sessions[session];
        row_numbers(d, stream, at, event);
        event->program = stream->program;
        event->ring = ring->ring;
        event->object = stream->slot;
        event->generation = stream->generation;
        event->kind = stream->kind;
        event->setter = (uint32_t)setters[at];
        event->position = ring->next + pack_unzigzag(positions[at] << shift);
        ring->next = event->position + recording_span(event);
        stream->flags = event->flags;
        stream->session = session;
        stream->ring = d->ring = number;
    }
    d->time = time;
    return i;
}

int recording_decoder_next(struct recording_decoder *decoder, struct nt_event *events, size_t room)
{
    struct recording_decoder *d = decoder;
    size_t count = 0;
    while (count < room && d->row < d->head.rows) {
        uint32_t frame = PACK_FRAME - d->row % PACK_FRAME, left = d->head.rows - d->row;
        frame = frame < left ? frame : left;
        frame = frame < room - count ? frame : (uint32_t)(room - count);
        uint32_t taken = d->row % PACK_FRAME != 0 || next_frame(d) ? rows_take(d, events + count, frame) : 0;
        count += taken;
        if (taken < frame) {
            d->head.rows = d->row;
            return -NT_EFORMAT;
        }
    }
    return (int)count;
}

const struct recording_head *recording_decoder_head(const struct recording_decoder *decoder)
{
    return &decoder->head;
}

uint32_t recording_decoder_at(const struct recording_decoder *decoder)
{
    return decoder->row;
}

const struct recording_loss *recording_decoder_losses(const struct recording_decoder *decoder)
{
    return decoder->losses;
}

const struct recording_thread *recording_decoder_threads(const struct recording_decoder *decoder)
{
    return decoder->changes;
}
