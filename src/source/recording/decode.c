/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading blocks of events, see block.h. The lists of the summary and what is stored stream by stream are unpacked at
   once, the other columns a group at a time, as its rows are put together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "source/recording/decoder.h"

#define AHEAD 8u /* rows that memory is asked for before they are read */

/* ---- Memory ---- */

static void memory_free(struct recording_decoder *d)
{
    free(d->names);
    free(d->objects);
    free(d->streams);
    free(d->stream_object);
    free(d->gaps);
    free(d->picked);
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
    d->objects_known.known = false;
}

void recording_decoder_free(struct recording_decoder *take_decoder)
{
    if (take_decoder != NULL) {
        memory_free(take_decoder);
        free(take_decoder->losses);
        free(take_decoder->fetched);
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
        all &= (d->names = malloc(room * sizeof *d->names)) != NULL;
        all &= (d->stream_object = malloc(room * sizeof *d->stream_object)) != NULL;
        all &= (d->gaps = malloc(room * sizeof *d->gaps)) != NULL;
        all &= (d->picked = malloc(room * sizeof *d->picked)) != NULL;
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

/* Room for what is fetched of the body. */
static int take_body(struct recording_decoder *d)
{
    size_t size = d->parts.body_size + PACK_SLACK;
    if (size > d->fetched_room) {
        free(d->fetched);
        d->fetched = calloc(1, size);
        d->fetched_room = d->fetched != NULL ? size : 0;
    }
    d->parts.body = d->fetched;
    return d->fetched != NULL ? 0 : -ENOMEM;
}

static bool head_is_possible(const struct recording_head *head)
{
    return head->rows <= ROWS && head->losses <= RECORDING_LOSSES_MAX && head->objects <= head->rows &&
           head->streams <= head->rows && head->rings <= head->rows && head->sessions <= head->rows &&
           head->changes <= head->rows && head->data <= RECORDING_DATA_MAX + NT_SOURCE_DATA &&
           head->gaps <= head->objects && (head->rows == 0) == (head->streams == 0);
}

int decoder_head(struct recording_decoder *d, const struct recording_parts *parts)
{
    uint64_t size = sizeof d->head;
    if (parts->summary_size < sizeof d->head) {
        return -NT_EFORMAT;
    }
    memcpy(&d->head, parts->summary, sizeof d->head);
    for (int i = 0; i < RECORDING_SECTIONS; i++) {
        size += d->head.sizes[i];
    }
    if (!head_is_possible(&d->head) || size != parts->summary_size) {
        d->head = (struct recording_head){ 0 };
        return -NT_EFORMAT;
    }
    d->parts = *parts;
    d->row = d->ring = 0;
    int error = take_memory(d);
    return error == 0 && parts->fetch != NULL ? take_body(d) : error;
}

struct pack_in decoder_section(const struct recording_decoder *d, enum recording_section section)
{
    const uint8_t *at = d->parts.summary + sizeof d->head;
    for (int i = 0; i < (int)section; i++) {
        at += d->head.sizes[i];
    }
    bool bad = XXH3_64bits(at, d->head.sizes[section]) != d->head.hashes[section];
    return (struct pack_in){ at, bad ? at : at + d->head.sizes[section], bad };
}

static int end_section(const struct pack_in *in)
{
    return in->bad || in->at != in->end ? -NT_EFORMAT : 0;
}

static void read_rings(struct recording_decoder *d, struct pack_in *in)
{
    for (uint32_t i = 0; i < d->head.rings; i++) {
        struct decoder_ring *ring = &d->rings[i];
        ring->program = (uint32_t)unpack_at_most(in, RECORDING_PROGRAMS_MAX - 1);
        ring->ring = (uint32_t)unpack_at_most(in, UINT32_MAX);
        ring->first = ring->next = unpack_number(in);
        ring->session = RECORDING_NONE;
    }
    for (uint32_t i = 0; i < d->head.changes && d->head.rings > 0; i++) {
        const struct decoder_ring *ring = &d->rings[unpack_at_most(in, d->head.rings - 1)];
        d->changes[i].program = ring->program;
        d->changes[i].ring = ring->ring;
        d->changes[i].position = unpack_number(in);
        d->changes[i].thread = (uint32_t)unpack_at_most(in, UINT32_MAX);
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

int decoder_lists(struct recording_decoder *d)
{
    struct pack_in in = decoder_section(d, RECORDING_LISTS);
    read_rings(d, &in);
    read_losses(d, &in);
    return d->head.changes > 0 && d->head.rings == 0 ? -NT_EFORMAT : end_section(&in);
}

int decoder_sessions(struct recording_decoder *d)
{
    struct pack_in in = decoder_section(d, RECORDING_SESSIONS);
    unpack_column(&in, d->places, d->head.sessions);
    unpack_column(&in, d->sessions, d->head.sessions);
    for (uint32_t i = 0; i < d->head.sessions; i++) {
        d->sessions[i] = d->sessions[i] << 48 | recording_session_low(d->places[i]);
    }
    return end_section(&in);
}

int decoder_session_tables(struct recording_decoder *d)
{
    struct pack_in in = decoder_section(d, RECORDING_SESSIONS);
    unpack_table(&in, d->head.sessions, &d->lows);
    unpack_table(&in, d->head.sessions, &d->uppers);
    return end_section(&in);
}

static void read_objects(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t count = d->head.objects, line = 0;
    uint64_t slot = 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] >= RECORDING_PROGRAMS_MAX ||
                  (i > 0 && d->places[i] < d->names[i - 1].program);
        d->names[i].program = (uint32_t)d->places[i];
        line += i > 0 && d->names[i].program != d->names[i - 1].program;
        d->objects[i].line = line;
    }
    d->line_count = count > 0 ? line + 1 : 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        slot += pack_unzigzag(d->places[i]);
        in->bad = in->bad || slot > UINT32_MAX;
        d->names[i].slot = (uint32_t)slot;
    }
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        in->bad = in->bad || d->places[i] > UINT32_MAX;
        d->names[i].generation = (uint32_t)d->places[i];
    }
}

int decoder_objects(struct recording_decoder *d)
{
    const struct decoder_known now = { true, d->head.objects, d->head.sizes[RECORDING_OBJECTS],
                                       d->head.hashes[RECORDING_OBJECTS] };
    struct decoder_known *known = &d->objects_known;
    int error = 0;
    if (!known->known || known->count != now.count || known->size != now.size || known->hash != now.hash) {
        struct pack_in in = decoder_section(d, RECORDING_OBJECTS);
        read_objects(d, &in);
        error = end_section(&in);
        *known = now;
        known->known = error == 0;
    }
    for (uint32_t i = 0; i < d->head.objects; i++) {
        d->objects[i].session = RECORDING_NONE;
    }
    return error;
}

void decoder_gaps(struct recording_decoder *d, struct pack_in *in)
{
    uint64_t place = 0;
    unpack_column(in, d->places, d->head.gaps);
    for (uint32_t i = 0; i < d->head.gaps; i++) {
        place += d->places[i];
        in->bad = in->bad || place >= d->head.objects;
        d->gaps[i] = (uint32_t)place;
    }
}

static void stream_begin(struct recording_decoder *d, uint32_t number)
{
    uint32_t place = d->stream_object[number];
    const struct recording_object *name = &d->names[place];
    d->streams[number] = (struct decoder_stream){
        .object = place,
        .line = d->objects[place].line,
        .program = name->program,
        .slot = name->slot,
        .generation = name->generation,
        .ring = RECORDING_NONE,
        .session = RECORDING_NONE,
    };
}

static void read_stream_objects(struct recording_decoder *d, const bool *wanted, struct pack_in *in)
{
    uint32_t count = d->head.streams;
    d->picked_count = 0;
    unpack_column(in, d->places, count);
    for (uint32_t i = 0; i < count; i++) {
        if (d->places[i] >= d->head.objects) {
            in->bad = true;
            return;
        }
        d->stream_object[i] = (uint32_t)d->places[i];
        if (wanted == NULL || wanted[d->places[i]]) {
            d->picked[d->picked_count++] = i;
        }
    }
    for (uint32_t i = 0; i < d->picked_count; i++) {
        stream_begin(d, d->picked[i]);
    }
}

/* How many rows each of these has; all of them together have all there are. */
static void read_stream_rows(struct recording_decoder *d, struct pack_in *in)
{
    struct pack_table *ends = &d->stream_ends;
    unpack_table(in, d->head.streams, ends);
    for (uint32_t i = 0; i < d->picked_count; i++) {
        uint32_t number = d->picked[i];
        uint64_t begin = number > 0 ? pack_table_number(ends, number - 1) : 0, end = pack_table_number(ends, number);
        if (begin >= end || end > d->head.rows || (number + 1 == d->head.streams && end != d->head.rows)) {
            in->bad = true;
            return;
        }
        d->streams[number].at = (uint32_t)begin;
        d->streams[number].rows = (uint32_t)(end - begin);
    }
}

/* A column of what streams have, of those of which all is noted. */
static void take_picked(struct recording_decoder *d, struct pack_in *in)
{
    if (d->picked_count == d->head.streams) {
        unpack_column(in, d->places, d->head.streams);
    } else {
        unpack_some(in, d->head.streams, d->picked, d->picked_count, d->places);
    }
}

int decoder_streams(struct recording_decoder *d, const bool *wanted)
{
    struct pack_in in = decoder_section(d, RECORDING_STREAMS);
    decoder_gaps(d, &in);
    if (!in.bad) {
        read_stream_objects(d, wanted, &in);
    }
    if (in.bad) {
        return -NT_EFORMAT;
    }
    take_picked(d, &in);
    for (uint32_t i = 0; i < d->picked_count; i++) {
        in.bad = in.bad || d->places[i] > UINT16_MAX;
        d->streams[d->picked[i]].kind = (uint16_t)d->places[i];
    }
    read_stream_rows(d, &in);
    take_picked(d, &in);
    for (uint32_t i = 0; i < d->picked_count; i++) {
        d->streams[d->picked[i]].count = d->places[i];
    }
    take_picked(d, &in);
    for (uint32_t i = 0; i < d->picked_count; i++) {
        d->streams[d->picked[i]].total = d->places[i];
    }
    return end_section(&in);
}

/* ---- Columns ---- */

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
        pack_cursor_begin(&d->cursors[FRAMED_SESSION], in, d->head.rows);
        return;
    }
    pack_cursor_none(&d->cursors[FRAMED_SESSION]);
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

static void read_ring_of(struct recording_decoder *d, struct pack_in *in)
{
    d->ring_mode = read_byte(in, RECORDING_RING_FEW);
    pack_cursor_begin(&d->cursors[FRAMED_RING], in, d->head.rows);
    if (d->ring_mode == RECORDING_RING_FEW) {
        in->bad = in->bad || d->head.rings > FEW_RINGS;
        unpack_table(in, in->bad ? 0 : (size_t)decoder_groups(d) * d->head.rings, &d->bases);
    }
}

static void read_groups(struct recording_decoder *d, struct pack_in *in)
{
    uint32_t count = 2 * decoder_groups(d);
    d->group_ends = unpack_bytes(in, count * sizeof(uint32_t));
    d->group_hashes = unpack_bytes(in, count * sizeof(uint64_t));
}

int decoder_columns(struct recording_decoder *d)
{
    struct pack_in in = decoder_section(d, RECORDING_COLUMNS);
    uint32_t rows = d->head.rows;
    read_lines(d, &in);
    pack_cursor_begin(&d->cursors[FRAMED_TICKS], &in, rows);
    unpack_table(&in, decoder_groups(d), &d->starts);
    pack_cursor_begin(&d->cursors[FRAMED_TIME], &in, rows);
    read_ring_of(d, &in);
    if (in.bad) {
        return -NT_EFORMAT;
    }
    read_session_of(d, &in);
    if (d->session_mode == RECORDING_SESSION_BY_RING && d->ring_mode == RECORDING_RING_FEW) {
        unpack_table(&in, (size_t)decoder_groups(d) * d->head.rings, &d->ring_sessions);
    }
    for (int i = FRAMED_ROWS; i < FRAMED; i++) {
        pack_cursor_begin(&d->cursors[i], &in, rows);
    }
    d->arguments_alike = pack_cursor_is_constant(&d->cursors[FRAMED_ARGUMENT]);
    d->argument = d->cursors[FRAMED_ARGUMENT].values[0];
    d->position_shift = read_byte(&in, 63);
    for (int i = FRAMED_POSITION; i < FRAMED_ROWS; i++) {
        pack_cursor_begin(&d->cursors[i], &in, rows);
    }
    read_groups(d, &in);
    return end_section(&in);
}

/* ---- Groups ---- */

static uint32_t group_end(const struct recording_decoder *d, uint32_t number)
{
    uint32_t end;
    memcpy(&end, d->group_ends + number * sizeof end, sizeof end);
    return end;
}

struct pack_in decoder_group(const struct recording_decoder *d, uint32_t number)
{
    uint32_t begin = number > 0 ? group_end(d, number - 1) : 0, end = group_end(d, number);
    if (begin > end || end > d->parts.body_size) {
        return (struct pack_in){ d->parts.body, d->parts.body, true };
    }
    return (struct pack_in){ d->parts.body + begin, d->parts.body + end, false };
}

bool decoder_fetch(struct recording_decoder *d, uint32_t first, uint32_t last)
{
    struct pack_in in = decoder_group(d, first), end = decoder_group(d, last);
    if (in.bad || end.bad || end.end < in.at) {
        return false;
    }
    size_t from = (size_t)(in.at - d->parts.body), size = (size_t)(end.end - in.at);
    return d->parts.fetch == NULL || d->parts.fetch(d->parts.arg, from, size, d->fetched + from) == 0;
}

bool decoder_group_is_whole(const struct recording_decoder *d, uint32_t number)
{
    struct pack_in in = decoder_group(d, number);
    uint64_t hash;
    memcpy(&hash, d->group_hashes + number * sizeof hash, sizeof hash);
    return !in.bad && XXH3_64bits(in.at, (size_t)(in.end - in.at)) == hash;
}

bool decoder_take_group(struct recording_decoder *d, uint32_t at)
{
    struct pack_in in = decoder_group(d, at / PACK_FRAME);
    bool bad = false;
    for (int i = FRAMED_TIME; i < FRAMED_ROWS; i++) {
        pack_cursor_take(&d->cursors[i], &in, at);
        bad = bad || d->cursors[i].in.bad;
    }
    d->data = in.at;
    d->data_end = in.end;
    d->time = decoder_start(d, at / PACK_FRAME);
    return !bad && !in.bad;
}

/* ---- All of it ---- */

static bool read_by_stream(struct recording_decoder *d)
{
    uint32_t groups = decoder_groups(d);
    bool bad = false;
    for (uint32_t i = 0; i < groups; i++) {
        struct pack_in in = decoder_group(d, groups + i);
        uint32_t at = i * PACK_FRAME;
        pack_cursor_take_into(&d->cursors[FRAMED_ROWS], &in, at, d->places + at);
        pack_cursor_take_into(&d->cursors[FRAMED_VALUE], &in, at, d->values + at);
        if (!d->arguments_alike) {
            pack_cursor_take_into(&d->cursors[FRAMED_ARGUMENT], &in, at, d->arguments + at);
        }
        bad = bad || in.bad || in.at != in.end;
    }
    for (int i = FRAMED_ROWS; i < FRAMED; i++) {
        bad = bad || d->cursors[i].in.bad;
    }
    return !bad;
}

/* Which stream each row is of. */
static bool read_rows(struct recording_decoder *d)
{
    uint32_t rows = d->head.rows;
    memset(d->stream_of, 0xff, rows * sizeof *d->stream_of);
    for (uint32_t i = 0, stream = 0; stream < d->head.streams; stream++) {
        uint64_t row = 0;
        for (uint32_t end = i + d->streams[stream].rows; i < end; i++, row++) {
            row += d->places[i];
            if (row >= rows || d->places[i] >= rows || d->stream_of[row] != RECORDING_NONE) {
                return false;
            }
            d->stream_of[row] = stream;
        }
    }
    return true;
}

static int read_all(struct recording_decoder *d)
{
    d->objects_known.known = false; /* it may be damaged all the same */
    int error = decoder_lists(d);
    error = error == 0 ? decoder_sessions(d) : error;
    error = error == 0 ? decoder_objects(d) : error;
    error = error == 0 ? decoder_streams(d, NULL) : error;
    error = error == 0 ? decoder_columns(d) : error;
    uint32_t groups = 2 * decoder_groups(d);
    if (error == 0 && d->parts.body_size != (groups > 0 ? group_end(d, groups - 1) : 0)) {
        error = -NT_EFORMAT;
    }
    for (uint32_t i = 0; i < groups && error == 0; i++) {
        error = decoder_group_is_whole(d, i) ? 0 : -NT_EFORMAT;
    }
    return error == 0 && !(read_by_stream(d) && read_rows(d)) ? -NT_EFORMAT : error;
}

int recording_decoder_begin(struct recording_decoder *decoder, const struct recording_parts *parts)
{
    int error = decoder_head(decoder, parts);
    if (error == 0) {
        error = read_all(decoder);
    }
    if (error != 0) {
        decoder->head = (struct recording_head){ 0 };
    }
    return error;
}

/* ---- Rows ---- */

/* The next rows, all of one group. Returns how many; fewer: the next one cannot be. */
static uint32_t rows_take(struct recording_decoder *d, struct nt_event *restrict events, uint32_t count)
{
    const uint64_t *const times = d->cursors[FRAMED_TIME].values, *const ticks = d->cursors[FRAMED_TICKS].values;
    const uint64_t *const positions = d->cursors[FRAMED_POSITION].values;
    const uint32_t *const stream_of = d->stream_of + d->row;
    const uint64_t *const sessions = d->sessions;
    const unsigned shift = d->position_shift;
    uint32_t at = d->row % PACK_FRAME, i = 0;
    uint64_t time = d->time;
    for (; i < count; i++, at++, d->row++) {
        struct nt_event *event = &events[i];
        struct decoder_stream *stream = &d->streams[stream_of[i]];
        if (i + AHEAD < count) { /* one of many streams, of each of which the next value is elsewhere */
            __builtin_prefetch(&d->values[d->streams[stream_of[i + AHEAD]].at]);
        }
        if (!decoder_row(d, stream, at, event)) {
            break;
        }
        struct decoder_ring *ring = &d->rings[d->ring];
        event->session = sessions[event->session];
        time += at > 0 ? pack_unzigzag(times[at]) : 0;
        event->time = time;
        event->ticks = recording_line_at(&d->lines[stream->line], time) + ticks[at];
        event->position = ring->next + pack_unzigzag(positions[at] << shift);
        ring->next = event->position + recording_span(event);
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
        uint32_t taken = d->row % PACK_FRAME != 0 || decoder_take_group(d, d->row) ? rows_take(d, events + count, frame)
                                                                                   : 0;
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
