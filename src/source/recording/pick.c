/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading some rows of a block of events, see block.h: sections of the summary and groups of the body that are needed
   are checked and unpacked, all others stay where they are. */
#include <errno.h>
#include <string.h>

#include "source/recording/decoder.h"

#define MANY 8u  /* of so many rows one is wanted: then all are read */
#define NEAR 12u /* groups that are got at once have no more than so many less one between them */
#define NOWHERE UINT32_MAX

int recording_decoder_lists(struct recording_decoder *decoder, const struct recording_parts *parts)
{
    int error = decoder_head(decoder, parts);
    error = error == 0 ? decoder_lists(decoder) : error;
    if (error != 0) {
        decoder->head = (struct recording_head){ 0 };
    }
    decoder->row = decoder->head.rows;
    return error;
}

/* ---- Sessions ---- */

/* Sessions are in the order of their low bits. */
static bool has_session(const struct recording_decoder *d, uint64_t session)
{
    uint32_t begin = 0, end = d->head.sessions;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (pack_table_number(&d->lows, middle) < recording_session_low(session)) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; begin < d->head.sessions; begin++) {
        uint64_t low = pack_table_number(&d->lows, begin);
        if (low != recording_session_low(session)) {
            return false;
        }
        if (pack_table_number(&d->uppers, begin) == session >> 48) {
            return true;
        }
    }
    return false;
}

int recording_decoder_has_session(struct recording_decoder *decoder, const struct recording_parts *parts,
                                  const uint64_t *sessions, size_t count)
{
    int error = decoder_head(decoder, parts);
    if (error != 0) {
        return error;
    }
    error = decoder_session_tables(decoder);
    bool has = false;
    for (size_t i = 0; i < count && error == 0 && !has; i++) {
        has = has_session(decoder, sessions[i]);
    }
    return error == 0 ? has : error;
}

/* ---- Objects ---- */

int recording_decoder_objects(struct recording_decoder *decoder, const struct recording_parts *parts,
                              const struct recording_object **ret_objects)
{
    int error = decoder_head(decoder, parts);
    error = error == 0 ? decoder_objects(decoder) : error;
    *ret_objects = decoder->names;
    return error;
}

int recording_decoder_gaps(struct recording_decoder *decoder, const struct recording_parts *parts,
                           const uint32_t **ret_places)
{
    int error = decoder_head(decoder, parts);
    if (error != 0) {
        return error;
    }
    struct pack_in in = decoder_section(decoder, RECORDING_STREAMS);
    decoder_gaps(decoder, &in);
    *ret_places = decoder->gaps;
    return in.bad ? -NT_EFORMAT : 0;
}

/* ---- Rows ---- */

static bool is_pickable(const struct recording_decoder *d)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < d->picked_count; i++) {
        rows += d->streams[d->picked[i]].rows;
    }
    return d->ring_mode == RECORDING_RING_FEW && rows <= d->head.rows / MANY;
}

/* A group of the columns by stream: its numbers up to `count` from `from` on belong to the stream from `row` on.
   Returns the row behind, NOWHERE if it cannot be. */
static uint32_t take_rows(struct recording_decoder *d, uint32_t number, uint32_t group, uint32_t row)
{
    struct decoder_stream *stream = &d->streams[number];
    uint32_t at = group * PACK_FRAME, from = stream->at > at ? stream->at : at, end = stream->at + stream->rows;
    end = end < at + PACK_FRAME ? end : at + PACK_FRAME;
    for (uint32_t i = from; i < end; i++, row++) {
        uint64_t passed = d->cursors[FRAMED_ROWS].values[i - at];
        if (passed >= d->head.rows - row || (d->marks[(row + passed) / 64] >> (row + passed) % 64 & 1) != 0) {
            return NOWHERE;
        }
        row += (uint32_t)passed;
        d->marks[row / 64] |= UINT64_C(1) << row % 64;
        d->stream_of[row] = number;
        d->values[i] = d->cursors[FRAMED_VALUE].values[i - at];
        d->arguments[i] = d->cursors[FRAMED_ARGUMENT].values[i - at];
    }
    return row;
}

static bool group_take(struct recording_decoder *d, uint32_t group)
{
    uint32_t number = decoder_groups(d) + group;
    struct pack_in in = decoder_group(d, number);
    if (!decoder_fetch(d, number, number) || !decoder_group_is_whole(d, number)) {
        return false;
    }
    for (int i = FRAMED_ROWS; i < FRAMED; i++) {
        pack_cursor_take(&d->cursors[i], &in, group * PACK_FRAME);
    }
    return !in.bad;
}

/* Marks the rows of the streams. Streams ascend, and so do their groups. */
static int mark_rows(struct recording_decoder *d)
{
    uint32_t taken = NOWHERE;
    memset(d->marks, 0, sizeof d->marks);
    for (uint32_t i = 0; i < d->picked_count; i++) {
        const struct decoder_stream *stream = &d->streams[d->picked[i]];
        uint32_t group = stream->at / PACK_FRAME, last = (stream->at + stream->rows - 1) / PACK_FRAME, row = 0;
        for (; group <= last; group++) {
            if (group != taken && !group_take(d, group)) {
                return -NT_EFORMAT;
            }
            taken = group;
            row = take_rows(d, d->picked[i], group, row);
            if (row == NOWHERE) {
                return -NT_EFORMAT;
            }
        }
    }
    return 0;
}

static bool has_marks(const struct recording_decoder *d, uint32_t group)
{
    const uint32_t words = PACK_FRAME / 64;
    return (d->marks[words * group] | d->marks[words * group + 1]) != 0;
}

/* Gets the groups of marked rows. To read some more of a file takes less time than to ask again. */
static bool fetch_marked(struct recording_decoder *d)
{
    uint32_t first = NOWHERE, last = 0;
    for (uint32_t i = 0; i < decoder_groups(d); i++) {
        if (!has_marks(d, i)) {
            continue;
        }
        if (first != NOWHERE && i - last > NEAR) {
            if (!decoder_fetch(d, first, last)) {
                return false;
            }
            first = NOWHERE;
        }
        first = first == NOWHERE ? i : first;
        last = i;
    }
    return first == NOWHERE || decoder_fetch(d, first, last);
}

/* All are checked before any row is handed out. */
static bool groups_are_whole(struct recording_decoder *d)
{
    bool whole = fetch_marked(d);
    for (uint32_t i = 0; i < decoder_groups(d) && whole; i++) {
        whole = !has_marks(d, i) || decoder_group_is_whole(d, i);
    }
    return whole;
}

static bool is_zero(const struct recording_decoder *d, int column)
{
    return pack_cursor_is_constant(&d->cursors[column]) && d->cursors[column].values[0] == 0;
}

static int pick(struct recording_decoder *d, const bool *wanted)
{
    int error = decoder_lists(d);
    error = error == 0 ? decoder_objects(d) : error;
    error = error == 0 ? decoder_streams(d, wanted) : error;
    error = error == 0 ? decoder_columns(d) : error;
    if (error != 0 || !is_pickable(d)) {
        return error;
    }
    error = decoder_session_tables(d);
    error = error == 0 ? mark_rows(d) : error;
    if (error == 0 && !groups_are_whole(d)) {
        error = -NT_EFORMAT;
    }
    d->plain = is_zero(d, FRAMED_POSITION) && is_zero(d, FRAMED_SPAN) && is_zero(d, FRAMED_DATA_SIZE) &&
               d->session_mode != RECORDING_SESSION_BY_RING;
    d->group = NOWHERE;
    return error == 0 ? 1 : error;
}

int recording_decoder_pick(struct recording_decoder *decoder, const struct recording_parts *parts, const bool *wanted)
{
    int result = decoder_head(decoder, parts);
    result = result == 0 ? pick(decoder, wanted) : result;
    if (result < 0) {
        decoder->head = (struct recording_head){ 0 };
    }
    return result;
}

/* The next marked row before `end`; NOWHERE: none. */
static uint32_t next_marked(const struct recording_decoder *d, uint32_t end)
{
    for (uint32_t row = d->row; row < end; row = (row / 64 + 1) * 64) {
        uint64_t word = d->marks[row / 64] >> row % 64;
        if (word != 0) {
            row += (uint32_t)__builtin_ctzll(word);
            return row < end ? row : NOWHERE;
        }
    }
    return NOWHERE;
}

/* Of these every number up to a row is needed, of all others that of the row alone. */
static bool is_needed_before(int column)
{
    return column == FRAMED_RING || column == FRAMED_TIME || column == FRAMED_POSITION || column == FRAMED_SPAN ||
           column == FRAMED_DATA_SIZE;
}

static bool view_group(struct recording_decoder *d, uint32_t group)
{
    struct pack_in in = decoder_group(d, group);
    bool bad = false;
    for (int i = FRAMED_TIME; i < FRAMED_ROWS; i++) {
        pack_cursor_view(&d->cursors[i], &in, group * PACK_FRAME);
        bad = bad || d->cursors[i].in.bad;
    }
    d->data = in.at;
    d->data_end = in.end;
    d->time = decoder_start(d, group);
    return !bad && !in.bad;
}

static bool begin_group(struct recording_decoder *d, uint32_t group)
{
    if (!view_group(d, group)) {
        return false;
    }
    const bool by_ring = d->session_mode == RECORDING_SESSION_BY_RING;
    for (uint32_t i = 0; i < d->head.rings; i++) {
        uint32_t base = group * d->head.rings + i;
        uint64_t session = by_ring ? pack_table_number(&d->ring_sessions, base) : 0;
        d->rings[i].next = d->rings[i].first + pack_table_number(&d->bases, base);
        d->rings[i].session = session > 0 && session <= d->head.sessions ? (uint32_t)session - 1 : RECORDING_NONE;
    }
    while (d->miss_at < d->miss_count && d->misses[d->miss_at] < group * PACK_FRAME) {
        d->miss_at++;
    }
    d->group = group;
    d->at = d->seen = 0;
    return true;
}

/* What is needed of the row's numbers, and of those before it. */
static void see_row(struct recording_decoder *d, uint32_t at)
{
    uint32_t seen = d->seen == 0 ? at + 1 : PACK_FRAME, left = d->head.rows - d->group * PACK_FRAME;
    seen = seen < left ? seen : left;
    for (int i = FRAMED_TIME; i < FRAMED_ROWS; i++) {
        if (!is_needed_before(i)) {
            d->cursors[i].values[at] = pack_cursor_number(&d->cursors[i], at);
        } else if (at >= d->seen) {
            pack_cursor_numbers(&d->cursors[i], seen);
        }
    }
    d->seen = at >= d->seen ? seen : d->seen;
}

/* Goes on to a row of the group: what those before it take of times, rings and data. */
static bool pass_rows(struct recording_decoder *d, uint32_t to)
{
    const uint64_t *const times = d->cursors[FRAMED_TIME].values, *const rings = d->cursors[FRAMED_RING].values;
    const uint64_t *const positions = d->cursors[FRAMED_POSITION].values, *const spans = d->cursors[FRAMED_SPAN].values;
    const uint64_t *const sizes = d->cursors[FRAMED_DATA_SIZE].values;
    uint64_t data = 0;
    for (uint32_t at = d->plain ? to : d->at; at < to; at++) {
        if (rings[at] >= d->head.rings) {
            return false;
        }
        struct decoder_ring *ring = &d->rings[rings[at]];
        uint64_t span = ring->ring == NT_EVENT_NO_RING ? 1 : 64 * (1 + spans[at]);
        ring->next += pack_unzigzag(positions[at] << d->position_shift) + span;
        data += sizes[at] <= NT_SOURCE_DATA ? sizes[at] : NT_SOURCE_DATA;
    }
    for (uint32_t at = d->at > 0 ? d->at : 1; at < to; at++) {
        d->time += pack_unzigzag(times[at]);
    }
    if (data > (size_t)(d->data_end - d->data)) {
        return false;
    }
    d->data += data;
    d->at = to;
    return true;
}

/* Where all events of the ring take the same, the rows before it in the group are all that counts. */
static uint64_t plain_position(const struct recording_decoder *d, uint32_t at)
{
    const uint64_t *const rings = d->cursors[FRAMED_RING].values;
    uint64_t before = 0, stride = d->rings[d->ring].ring == NT_EVENT_NO_RING ? 1 : 64;
    for (uint32_t i = 0; i < at; i++) {
        before += rings[i] == d->ring;
    }
    return d->rings[d->ring].next + stride * before;
}

/* Rows up to that one that have another session than their ring or object before. */
static void pass_misses(struct recording_decoder *d, uint32_t row)
{
    const uint64_t *const rings = d->cursors[FRAMED_RING].values;
    for (; d->miss_at < d->miss_count && d->misses[d->miss_at] < row; d->miss_at++) {
        uint64_t session = d->miss_sessions[d->miss_at];
        if (d->session_mode == RECORDING_SESSION_BY_RING) {
            d->rings[rings[d->misses[d->miss_at] % PACK_FRAME]].session = session < d->head.sessions ? (uint32_t)session
                                                                                                     : RECORDING_NONE;
        }
    }
}

static bool take_row(struct recording_decoder *d, uint32_t row, struct nt_event *event)
{
    uint32_t at = row % PACK_FRAME;
    struct decoder_stream *stream = &d->streams[d->stream_of[row]];
    if (row / PACK_FRAME != d->group && !begin_group(d, row / PACK_FRAME)) {
        return false;
    }
    see_row(d, at);
    if (!pass_rows(d, at)) {
        return false;
    }
    d->row = row;
    pass_misses(d, row);
    const uint8_t *data = d->data;
    if (!decoder_row(d, stream, at, event)) {
        return false;
    }
    event->session = recording_session_low(pack_table_number(&d->lows, stream->session)) |
                     pack_table_number(&d->uppers, stream->session) << 48;
    d->data = data; /* pass_rows goes over it */
    event->time = d->time + (at > 0 ? pack_unzigzag(d->cursors[FRAMED_TIME].values[at]) : 0);
    event->ticks = recording_line_at(&d->lines[stream->line], event->time) + d->cursors[FRAMED_TICKS].values[at];
    event->position = (d->plain ? plain_position(d, at) : d->rings[d->ring].next) +
                      pack_unzigzag(d->cursors[FRAMED_POSITION].values[at] << d->position_shift);
    d->row = row + 1;
    return true;
}

int recording_decoder_next_picked(struct recording_decoder *decoder, uint32_t end, struct nt_event *events, size_t room)
{
    struct recording_decoder *d = decoder;
    size_t count = 0;
    for (uint32_t row; count < room && (row = next_marked(d, end)) != NOWHERE; count++) {
        if (!take_row(d, row, &events[count])) {
            d->head.rows = d->row;
            return -NT_EFORMAT;
        }
    }
    if (count < room && d->row < end) {
        d->row = end;
    }
    return (int)count;
}
