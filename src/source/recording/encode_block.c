/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing a block of events, see block.h: its lists are put in their order, its columns packed and cut into groups of
   128 rows, so that a group can be read alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "source/recording/encoder.h"
#include "source/recording/lines.h"

/* ---- The summary ---- */

static int by_rows(const void *left, const void *right, void *arg)
{
    const struct recording_encoder *e = arg;
    const struct encoder_stream *a = &e->streams[*(const uint32_t *)left], *b = &e->streams[*(const uint32_t *)right];
    if (a->rows != b->rows) {
        return a->rows > b->rows ? -1 : 1;
    }
    return *(const uint32_t *)left < *(const uint32_t *)right ? -1 : 1;
}

static int by_name(const void *left, const void *right, void *arg)
{
    const struct recording_encoder *e = arg;
    const struct encoder_object *a = &e->objects[*(const uint32_t *)left], *b = &e->objects[*(const uint32_t *)right];
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
        struct encoder_stream *stream = &e->streams[e->order[i]];
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
        e->room[i] = e->streams[e->order[i]].at + e->streams[e->order[i]].rows;
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
    for (uint32_t i = 0; i < count; i++) {
        e->room[i] = recording_session_low(e->sessions[order[i]]);
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

static void put_framed(struct recording_encoder *e, int which)
{
    pack_framed(&e->framed[which], &e->columns, &e->frames, e->room, e->head.rows);
}

static void put_list(struct recording_encoder *e, int which, int list)
{
    pack_framed_list(&e->framed[which], &e->columns, &e->frames, &e->lists[list], e->head.rows, e->room);
}

/* Of each stream, which rows are its: how many lie between them. */
static void write_rows(struct recording_encoder *e)
{
    for (uint32_t row = 0; row < e->head.rows; row++) {
        struct encoder_stream *stream = &e->streams[e->stream_of[row]];
        e->room[stream->at] = row - stream->row;
        e->stream_of[row] = stream->at++; /* where the row stands in the order of streams */
        stream->row = row + 1;
    }
    put_framed(e, FRAMED_ROWS);
}

static void write_by_stream(struct recording_encoder *e, const uint64_t *values, int which)
{
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->room[e->stream_of[row]] = values[row];
    }
    put_framed(e, which);
}

/* The time of the first of each frame by itself, so that a frame can be read without those before it. */
static void write_times(struct recording_encoder *e)
{
    uint32_t rows = e->head.rows, frames = 0;
    for (uint32_t row = 0; row < rows; row += PACK_FRAME) {
        e->room[frames++] = e->time[row] - e->head.first;
    }
    pack_column(&e->columns, e->room, frames);
    for (uint32_t row = 1; row < rows; row++) {
        e->room[row] = pack_zigzag(e->time[row] - e->time[row - 1]);
    }
    for (uint32_t row = 0; row < rows; row += PACK_FRAME) {
        e->room[row] = row + 1 < rows ? e->room[row + 1] : 0; /* takes no room of its own */
    }
    put_framed(e, FRAMED_TIME);
}

/* The line of the program that each row is of goes before `stream_of` says something else. */
static uint32_t line_of(const struct recording_encoder *e, uint32_t row)
{
    return e->objects[e->streams[e->stream_of[row]].object].line;
}

static void write_ticks(struct recording_encoder *e)
{
    uint32_t count = e->head.objects > 0 ? e->objects[e->order[e->head.objects - 1]].line + 1 : 0;
    struct recording_line *lines = calloc((size_t)count + 1, sizeof *lines);
    if (lines == NULL) {
        (void)nt_buffer_fail(&e->columns, -ENOMEM);
        return;
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
        pack_number(&e->columns, pack_zigzag(lines[i].time - e->head.first));
        pack_number(&e->columns, lines[i].ticks + (uint64_t)lines[i].least);
        pack_number(&e->columns, lines[i].slope);
    }
    free(lines);
    put_framed(e, FRAMED_TICKS);
}

/* Where rings are before the first row of each group: what they went on by since their first event. */
static void write_bases(struct recording_encoder *e)
{
    uint32_t groups = (e->head.rows + PACK_FRAME - 1) / PACK_FRAME, count = 0;
    for (uint32_t group = 0; group < groups; group++) {
        for (uint32_t i = 0; i < e->head.rings; i++) {
            e->room[count++] = i < e->base_counts[group] ? e->bases[group][i] - e->rings[i].first : 0;
        }
    }
    pack_column(&e->columns, e->room, count);
}

/* Few rings are told of each row, so that rows can be read without those before them. */
static void write_ring_of(struct recording_encoder *e)
{
    bool few = e->head.rings <= FEW_RINGS;
    bool expected = !few && e->lists[RING].listed <= e->head.rows / 8;
    nt_buffer_byte(&e->columns, few ? RECORDING_RING_FEW : expected ? RECORDING_RING_BY_STREAM : RECORDING_RING_PLAIN);
    if (expected) {
        put_list(e, FRAMED_RING, RING);
        return;
    }
    for (uint32_t row = 0; row < e->head.rows; row++) {
        e->room[row] = e->ring_of[row];
    }
    put_framed(e, FRAMED_RING);
    if (few) {
        write_bases(e);
    }
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

static void write_session_misses(struct recording_encoder *e, uint32_t misses)
{
    e->framed[FRAMED_SESSION].framed = false;
    pack_number(&e->columns, misses);
    for (uint32_t i = 0; i < misses; i++) {
        e->scratch[i] = e->room[i] - (i > 0 ? e->room[i - 1] + 1 : 0);
    }
    pack_column(&e->columns, e->scratch, misses);
    for (uint32_t i = 0; i < misses; i++) {
        e->scratch[i] = e->session_of[e->room[i]];
    }
    pack_column(&e->columns, e->scratch, misses);
}

/* By group and ring: the session of the ring's row before, its place + 1, 0 none. */
static void write_ring_sessions(struct recording_encoder *e)
{
    uint32_t rows = e->head.rows, rings = e->head.rings, count = 0;
    uint64_t last[FEW_RINGS] = { 0 };
    for (uint32_t row = 0; row < rows; row++) {
        if (row % PACK_FRAME == 0) {
            memcpy(e->room + count, last, rings * sizeof *last);
            count += rings;
        }
        last[e->ring_of[row]] = (uint64_t)e->session_of[row] + 1;
    }
    pack_column(&e->columns, e->room, count);
}

/* Before write_rows: needs the streams of rows. */
static void write_session_of(struct recording_encoder *e)
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
        nt_buffer_byte(&e->columns, RECORDING_SESSION_PLAIN);
        for (uint32_t row = 0; row < rows; row++) {
            e->room[row] = e->session_of[row];
        }
        put_framed(e, FRAMED_SESSION);
        return;
    }
    if (by_ring < by_object) {
        (void)session_misses(e, e->ring_of, e->head.rings);
    }
    nt_buffer_byte(&e->columns, by_ring < by_object ? RECORDING_SESSION_BY_RING : RECORDING_SESSION_BY_OBJECT);
    write_session_misses(e, least);
    if (by_ring < by_object && e->head.rings <= FEW_RINGS) {
        write_ring_sessions(e);
    }
}

/* Positions are divisible by 64, or nearly all of them: bits that none has are left out. */
static void write_positions(struct recording_encoder *e)
{
    struct pack_list *off = &e->lists[POSITION];
    unsigned shift = e->position_bits != 0 ? (unsigned)__builtin_ctzll(e->position_bits) : 0;
    for (size_t i = 0; i < off->listed; i++) {
        off->values[i] >>= shift;
    }
    nt_buffer_byte(&e->columns, (char)shift);
    put_list(e, FRAMED_POSITION, POSITION);
}

/* ---- Groups ---- */

static void put_frames(struct recording_encoder *e, int from, int end, uint32_t group, struct nt_buffer *body)
{
    for (int i = from; i < end; i++) {
        const struct pack_framed *column = &e->framed[i];
        if (column->framed) {
            uint32_t begin = group > 0 ? column->ends[group - 1] : column->begin;
            nt_buffer_append(body, e->frames.data + begin, column->ends[group] - begin);
        }
    }
}

/* Frames of the columns by row, and of those by stream, group by group; ends and hashes of the groups go with the
   columns. */
static void write_groups(struct recording_encoder *e, struct nt_buffer *body)
{
    uint32_t groups = (e->head.rows + PACK_FRAME - 1) / PACK_FRAME;
    size_t start = body->size;
    uint64_t *hashes = e->scratch;
    uint32_t *ends = (uint32_t *)(void *)e->room;
    for (uint32_t i = 0; i < 2 * groups && e->frames.error == 0; i++) {
        size_t begin = body->size;
        if (i < groups) {
            uint32_t data = i > 0 ? e->data_ends[i - 1] : 0;
            put_frames(e, 0, FRAMED_ROWS, i, body);
            if (e->data_ends[i] > data) {
                nt_buffer_append(body, e->data.data + data, e->data_ends[i] - data);
            }
        } else {
            put_frames(e, FRAMED_ROWS, FRAMED, i - groups, body);
        }
        ends[i] = (uint32_t)(body->size - start);
        const char *group = body->size > begin ? body->data + begin : "";
        hashes[i] = body->error == 0 ? XXH3_64bits(group, body->size - begin) : 0;
    }
    nt_buffer_append(&e->columns, ends, 2 * groups * sizeof *ends);
    nt_buffer_append(&e->columns, hashes, 2 * groups * sizeof *hashes);
}

/* ---- All of it ---- */

static void end_section(struct recording_encoder *e, enum recording_section section, size_t begin,
                        const struct nt_buffer *summary)
{
    if (summary->error == 0) {
        e->head.sizes[section] = (uint32_t)(summary->size - begin);
        e->head.hashes[section] = XXH3_64bits(summary->data + begin, summary->size - begin);
    }
}

static void note_gaps(struct recording_encoder *e)
{
    for (uint32_t i = 0; i < e->head.streams; i++) {
        struct encoder_stream *stream = &e->streams[i];
        struct encoder_object *object = &e->objects[stream->object];
        const struct follow_key key = { object->program, object->slot, object->generation, stream->kind };
        if (stream->uncounted == stream->rows) {
            continue;
        }
        enum follow_how how = recording_follow(&e->follow, &key, stream->count_before, stream->count);
        stream->odd |= stream->uncounted > 0 || how == FOLLOW_BACK;
        stream->gaps |= stream->odd || how != FOLLOW_ON;
        object->gaps |= stream->gaps;
        if (stream->odd || (stream->gaps && stream->shared)) {
            e->head.flags |= RECORDING_UNSTEADY;
        }
    }
    e->follow.block++;
    e->head.flags |= e->follow.vast ? RECORDING_VAST : 0;
}

/* After the objects, in whose order they are. */
static void write_gaps(struct recording_encoder *e, struct nt_buffer *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0, last = 0; i < e->head.objects; i++) {
        if (e->objects[e->order[i]].gaps) {
            e->room[count++] = i - last;
            last = i;
        }
    }
    e->head.gaps = count;
    e->head.flags |= count > 0 ? RECORDING_GAPS : 0;
    pack_column(out, e->room, count);
}

static void write_columns(struct recording_encoder *e)
{
    nt_buffer_clear(&e->columns);
    nt_buffer_clear(&e->frames);
    write_ticks(e); /* in the order of objects */
    write_times(e);
    write_ring_of(e);
    write_session_of(e);
}

static void write_rest(struct recording_encoder *e, struct nt_buffer *body)
{
    static const int lists[] = { SPAN, COUNT, TOTAL, MERGED, FLAGS, SETTER, DATA_SIZE };
    write_rows(e);
    write_by_stream(e, e->value, FRAMED_VALUE);
    write_by_stream(e, e->argument, FRAMED_ARGUMENT);
    write_positions(e);
    for (int i = 0; i < (int)(sizeof lists / sizeof lists[0]); i++) {
        put_list(e, FRAMED_SPAN + i, lists[i]);
    }
    write_groups(e, body);
}

void encoder_write(struct recording_encoder *encoder, struct nt_buffer *summary, struct nt_buffer *body)
{
    struct recording_encoder *e = encoder;
    size_t head = summary->size, begin = head + sizeof e->head;
    e->head.data = (uint32_t)e->data.size;
    if (e->head.rows == 0) {
        e->head.first = 0;
    }
    note_gaps(e);
    nt_buffer_append(summary, &e->head, sizeof e->head); /* keeps its place */
    write_rings(e, summary);
    write_losses(e, summary);
    end_section(e, RECORDING_LISTS, begin, summary);
    begin = summary->size;
    write_sessions(e, summary);
    end_section(e, RECORDING_SESSIONS, begin, summary);
    begin = summary->size;
    write_objects(e, summary);
    end_section(e, RECORDING_OBJECTS, begin, summary);
    begin = summary->size;
    write_gaps(e, summary);
    write_columns(e); /* in the order of objects, which streams undo */
    write_streams(e, summary);
    end_section(e, RECORDING_STREAMS, begin, summary);
    begin = summary->size;
    write_rest(e, body);
    nt_buffer_append(summary, e->columns.data, e->columns.size);
    end_section(e, RECORDING_COLUMNS, begin, summary);
    if (e->columns.error != 0 || e->frames.error != 0 || body->error != 0) {
        (void)nt_buffer_fail(summary, -ENOMEM);
    }
    if (summary->error == 0) {
        memcpy(summary->data + head, &e->head, sizeof e->head);
    }
}
