/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of numbers, see pack.h. */
#include "source/recording/pack.h"

#include <errno.h>
#include <string.h>

enum {
    CONSTANT = 0, /* one number */
    SPARSE = 1,   /* how many, then (rows passed over, number) each; all others are 0 */
    FRAMES = 2,   /* width, exceptions, least, bits, exceptions each */
    NUMBER = 10,  /* bytes of a number at most */
};

static unsigned length_of(uint64_t value)
{
    return value != 0 ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* ---- Packing ---- */

static size_t number_put(uint8_t *at, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) {
        at[size++] = (uint8_t)(value | 0x80);
    }
    at[size++] = (uint8_t)value;
    return size;
}

void pack_number(struct nt_buffer *out, uint64_t value)
{
    uint8_t bytes[NUMBER];
    nt_buffer_append(out, bytes, number_put(bytes, value));
}

void pack_bytes(struct nt_buffer *out, const void *data, size_t size)
{
    pack_number(out, size);
    nt_buffer_append(out, data, size);
}

/* The width that takes fewest bits, exceptions included. */
static unsigned frame_width(const uint16_t counts[65], unsigned longest, size_t count)
{
    size_t least = SIZE_MAX;
    unsigned best = longest;
    for (unsigned width = 0; width <= longest; width++) {
        if (width > 0 && counts[width] == 0) {
            continue;
        }
        size_t bits = count * width;
        for (unsigned length = width + 1; length <= longest && bits < least; length++) {
            bits += (size_t)counts[length] * (8 + 8 * ((length - width + 6) / 7));
        }
        if (bits < least) {
            least = bits;
            best = width;
        }
    }
    return best;
}

static void store64(uint8_t *at, uint64_t word)
{
    memcpy(at, &word, sizeof word);
}

/* Writes up to 8 bytes behind the bits. */
static uint8_t *bits_put(uint8_t *at, const uint64_t *values, size_t count, unsigned width)
{
    uint64_t held = 0;
    unsigned bits = 0;
    const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    for (size_t i = 0; i < count && width > 0; i++) {
        uint64_t value = values[i] & mask;
        held |= value << bits;
        bits += width;
        if (bits >= 64) {
            store64(at, held);
            at += 8;
            bits -= 64;
            held = bits > 0 ? value >> (width - bits) : 0;
        }
    }
    store64(at, held);
    return at + (bits + 7) / 8;
}

/* How many numbers have how many bits. */
static void count_lengths(const uint64_t *above, size_t count, uint16_t zeros, uint16_t counts[65])
{
    uint16_t others[65] = { 0 };
    memset(counts, 0, 65 * sizeof *counts);
    /* two of them: an addition need not wait for the one before it */
    for (size_t i = 0; i < count; i += 2) {
        counts[length_of(above[i] | 1)]++;
        others[length_of((i + 1 < count ? above[i + 1] : 0) | 1)]++;
    }
    for (unsigned i = 1; i < 65; i++) {
        counts[i] = (uint16_t)(counts[i] + others[i]);
    }
    counts[1] = (uint16_t)(counts[1] - zeros - count % 2);
    counts[0] = zeros;
}

static void frame_pack(struct nt_buffer *out, const uint64_t *values, size_t count)
{
    uint64_t above[PACK_FRAME], least = values[0], other = values[count - 1], all = 0;
    uint16_t counts[65], zeros = 0;
    if (nt_buffer_reserve(out, 2 + NUMBER + PACK_FRAME * (8 + 1 + NUMBER) + 8) != 0) {
        return;
    }
    for (size_t i = 0; i + 1 < count; i += 2) { /* two of them, as above */
        least = values[i] < least ? values[i] : least;
        other = values[i + 1] < other ? values[i + 1] : other;
    }
    least = least < other ? least : other;
    for (size_t i = 0; i < count; i++) {
        above[i] = values[i] - least;
        all |= above[i];
        zeros = (uint16_t)(zeros + (above[i] == 0));
    }
    unsigned width = length_of(all);
    if (width > 2 || (count - zeros) * 16 < count * width) { /* else exceptions cannot be worth it */
        count_lengths(above, count, zeros, counts);
        width = frame_width(counts, width, count);
    }
    uint8_t *begin = (uint8_t *)out->data + out->size, *at = begin + 2;
    at += number_put(at, least);
    at = bits_put(at, above, count, width);
    unsigned exceptions = 0;
    if (width < length_of(all)) {
        for (size_t i = 0; i < count; i++) {
            if (above[i] >> width != 0) {
                *at++ = (uint8_t)i;
                at += number_put(at, above[i] >> width);
                exceptions++;
            }
        }
    }
    begin[0] = (uint8_t)width;
    begin[1] = (uint8_t)exceptions;
    out->size += (size_t)(at - begin);
}

/* Mode, bytes of the body: these are not known yet. Returns where. */
static size_t column_begin(struct nt_buffer *out, unsigned mode)
{
    const uint32_t none = 0;
    nt_buffer_byte(out, (char)mode);
    nt_buffer_append(out, &none, sizeof none);
    return out->size;
}

static void column_end(struct nt_buffer *out, size_t begin)
{
    if (out->error == 0) {
        uint32_t size = (uint32_t)(out->size - begin);
        memcpy(out->data + begin - sizeof size, &size, sizeof size);
    }
}

/* Both a column by itself and one that is cut begin with it. */
static void put_sparse(struct nt_buffer *out, const struct pack_list *list)
{
    uint32_t row = 0;
    pack_number(out, list->listed);
    for (size_t i = 0; i < list->listed; i++) {
        pack_number(out, list->rows[i] - row);
        pack_number(out, list->values[i]);
        row = list->rows[i] + 1;
    }
}

static void pack_constant(struct nt_buffer *out, uint64_t value)
{
    size_t begin = column_begin(out, CONSTANT);
    pack_number(out, value);
    column_end(out, begin);
}

static void pack_frames(struct nt_buffer *out, const uint64_t *values, size_t count)
{
    size_t begin = column_begin(out, FRAMES);
    for (size_t i = 0; i < count; i += PACK_FRAME) {
        frame_pack(out, values + i, count - i < PACK_FRAME ? count - i : PACK_FRAME);
    }
    column_end(out, begin);
}

/* Less than what the frames' own heads would take. */
static size_t sparse_most(size_t count)
{
    return count / PACK_FRAME * 2;
}

static bool are_alike(const uint64_t *values, size_t count)
{
    bool alike = true;
    for (size_t i = 1; i < count && alike; i++) {
        alike = values[i] == values[0];
    }
    return alike;
}

void pack_column(struct nt_buffer *out, const uint64_t *values, size_t count)
{
    if (are_alike(values, count)) {
        pack_constant(out, count > 0 ? values[0] : 0);
    } else {
        pack_frames(out, values, count);
    }
}

void pack_framed(struct pack_framed *column, struct nt_buffer *out, struct nt_buffer *frames, const uint64_t *values,
                 size_t count)
{
    column->framed = !are_alike(values, count);
    nt_buffer_byte(out, column->framed ? FRAMES : CONSTANT);
    if (!column->framed) {
        pack_number(out, count > 0 ? values[0] : 0);
        return;
    }
    column->begin = (uint32_t)frames->size;
    for (size_t i = 0; i < count; i += PACK_FRAME) {
        frame_pack(frames, values + i, count - i < PACK_FRAME ? count - i : PACK_FRAME);
        column->ends[i / PACK_FRAME] = (uint32_t)frames->size;
    }
}

void pack_framed_list(struct pack_framed *column, struct nt_buffer *out, struct nt_buffer *frames,
                      const struct pack_list *list, size_t count, uint64_t *room)
{
    column->framed = false;
    if (list->listed == 0) {
        nt_buffer_byte(out, CONSTANT);
        pack_number(out, 0);
    } else if (list->listed <= sparse_most(count)) {
        nt_buffer_byte(out, SPARSE);
        put_sparse(out, list);
    } else {
        memset(room, 0, count * sizeof *room);
        for (size_t i = 0; i < list->listed; i++) {
            room[list->rows[i]] = list->values[i];
        }
        pack_framed(column, out, frames, room, count);
    }
}

/* ---- Unpacking ---- */

static uint64_t unpack_bad(struct pack_in *in)
{
    in->bad = true;
    in->at = in->end;
    return 0;
}

uint64_t unpack_number(struct pack_in *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        uint8_t byte = *in->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    return unpack_bad(in);
}

uint64_t unpack_at_most(struct pack_in *in, uint64_t most)
{
    uint64_t value = unpack_number(in);
    return value <= most ? value : unpack_bad(in);
}

const uint8_t *unpack_bytes(struct pack_in *in, size_t size)
{
    const uint8_t *at = in->at;
    if ((size_t)(in->end - at) < size) {
        (void)unpack_bad(in);
        return NULL;
    }
    in->at += size;
    return at;
}

static uint64_t load64(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t bits_at(const uint8_t *at, size_t bit, unsigned width)
{
    if (width <= 56) {
        return (load64(at + bit / 8) >> bit % 8) & ((UINT64_C(1) << width) - 1);
    }
    unsigned __int128 word = (unsigned __int128)load64(at + bit / 8 + 8) << 64 | load64(at + bit / 8);
    return (uint64_t)(word >> bit % 8) & (UINT64_MAX >> (64 - width));
}

/* Reads up to PACK_SLACK bytes behind the bits. Eight numbers take `width` bytes: where each of them begins is the same
   in all such. */
static void bits_take(const uint8_t *at, uint64_t *values, size_t count, unsigned width, uint64_t least)
{
    const uint64_t mask = (UINT64_C(1) << width % 64) - 1;
    size_t i = 0;
    if (width <= 7) {
        for (; i + 8 <= count; i += 8, at += width) {
            uint64_t word = load64(at);
            for (unsigned k = 0; k < 8; k++, word >>= width) {
                values[i + k] = least + (word & mask);
            }
        }
    } else if (width <= 56) {
        const uint8_t *const second = at + width / 8, *const third = at + 2 * width / 8,
                             *const fourth = at + 3 * width / 8;
        const uint8_t *const fifth = at + 4 * width / 8, *const sixth = at + 5 * width / 8;
        const uint8_t *const seventh = at + 6 * width / 8, *const eighth = at + 7 * width / 8;
        for (size_t byte = 0; i + 8 <= count; i += 8, byte += width) {
            values[i] = least + (load64(at + byte) & mask);
            values[i + 1] = least + ((load64(second + byte) >> width % 8) & mask);
            values[i + 2] = least + ((load64(third + byte) >> 2 * width % 8) & mask);
            values[i + 3] = least + ((load64(fourth + byte) >> 3 * width % 8) & mask);
            values[i + 4] = least + ((load64(fifth + byte) >> 4 * width % 8) & mask);
            values[i + 5] = least + ((load64(sixth + byte) >> 5 * width % 8) & mask);
            values[i + 6] = least + ((load64(seventh + byte) >> 6 * width % 8) & mask);
            values[i + 7] = least + ((load64(eighth + byte) >> 7 * width % 8) & mask);
        }
        at += i / 8 * width;
    }
    for (size_t bit = 0, from = i - i % 8; i < count; i++) {
        bit = (i - (width <= 56 ? from : 0)) * width;
        values[i] = least + bits_at(at, bit, width);
    }
}

struct frame {
    unsigned width, exceptions;
    uint64_t least;
    const uint8_t *bits;
};

static bool frame_begin(struct pack_in *in, size_t count, struct frame *ret_frame)
{
    const uint8_t *head = unpack_bytes(in, 2);
    if (head == NULL || head[0] > 64 || head[1] > count) {
        (void)unpack_bad(in);
        return false;
    }
    ret_frame->width = head[0];
    ret_frame->exceptions = head[1];
    ret_frame->least = unpack_number(in);
    ret_frame->bits = unpack_bytes(in, (count * head[0] + 7) / 8);
    return ret_frame->bits != NULL;
}

static void frame_exceptions(struct pack_in *in, const struct frame *frame, uint64_t *values, size_t count)
{
    for (unsigned i = 0; i < frame->exceptions; i++) {
        const uint8_t *row = unpack_bytes(in, 1);
        uint64_t high = unpack_number(in);
        if (row == NULL || *row >= count || frame->width == 64) {
            (void)unpack_bad(in);
            return;
        }
        values[*row] += high << frame->width;
    }
}

static void frame_take(struct pack_in *in, uint64_t *values, size_t count)
{
    struct frame frame;
    if (!frame_begin(in, count, &frame)) {
        memset(values, 0, count * sizeof *values);
        return;
    }
    bits_take(frame.bits, values, count, frame.width, frame.least);
    frame_exceptions(in, &frame, values, count);
}

/* Passes over the frame; what of it was looked at is in *ret_frame. */
static bool frame_pass(struct pack_in *in, size_t count, struct frame *ret_frame)
{
    if (!frame_begin(in, count, ret_frame)) {
        return false;
    }
    for (unsigned i = 0; i < ret_frame->exceptions; i++) {
        (void)unpack_bytes(in, 1);
        (void)unpack_number(in);
    }
    in->bad = in->bad || (ret_frame->exceptions > 0 && ret_frame->width == 64);
    return !in->bad;
}

/* One number of a frame that was passed over: `in` begins where its exceptions do. */
static uint64_t frame_number(const struct frame *frame, struct pack_in in, unsigned row)
{
    uint64_t value = frame->least + bits_at(frame->bits, (size_t)row * frame->width, frame->width);
    for (unsigned i = 0; i < frame->exceptions; i++) {
        const uint8_t *at = unpack_bytes(&in, 1);
        uint64_t high = unpack_number(&in);
        value += at != NULL && *at == row ? high << frame->width : 0;
    }
    return value;
}

static void sparse_next(struct pack_cursor *cursor, uint64_t before)
{
    if (cursor->sparse_left > 0) {
        cursor->sparse_row = before + unpack_number(&cursor->in);
        if (cursor->sparse_row < before || cursor->sparse_row >= cursor->count) {
            (void)unpack_bad(&cursor->in);
        }
    }
    if (cursor->sparse_left == 0 || cursor->in.bad) {
        cursor->sparse_left = 0;
        cursor->sparse_row = UINT64_MAX;
    }
}

/* What is listed is passed over, so as to know where it ends. */
static void sparse_begin(struct pack_cursor *cursor, struct pack_in *in)
{
    uint32_t listed = (uint32_t)unpack_at_most(in, cursor->count);
    cursor->in = *in;
    for (uint32_t i = 0; i < 2 * listed && !in->bad; i++) {
        (void)unpack_number(in);
    }
    cursor->in.end = in->at;
    cursor->in.bad = in->bad;
    cursor->sparse_left = listed;
    sparse_next(cursor, 0);
}

void pack_cursor_begin(struct pack_cursor *cursor, struct pack_in *in, size_t count)
{
    const uint8_t *mode = unpack_bytes(in, 1);
    *cursor = (struct pack_cursor){ .count = (uint32_t)count };
    if (mode == NULL || *mode > FRAMES) {
        (void)unpack_bad(in);
        return;
    }
    cursor->mode = *mode;
    if (cursor->mode == CONSTANT) {
        uint64_t value = unpack_number(in);
        for (size_t i = 0; i < PACK_FRAME; i++) {
            cursor->values[i] = value;
        }
    } else if (cursor->mode == SPARSE) {
        sparse_begin(cursor, in);
    }
}

void pack_cursor_none(struct pack_cursor *cursor)
{
    *cursor = (struct pack_cursor){ .mode = CONSTANT };
}

static void sparse_take(struct pack_cursor *cursor, uint32_t at, size_t count)
{
    if (cursor->dirty) {
        memset(cursor->values, 0, sizeof cursor->values);
    }
    cursor->dirty = false;
    while (cursor->sparse_row < at + count) {
        uint64_t value = unpack_number(&cursor->in), row = cursor->sparse_row;
        if (row >= at) {
            cursor->values[row - at] = value;
            cursor->dirty = true;
        }
        cursor->sparse_left--;
        sparse_next(cursor, row + 1);
    }
}

void pack_cursor_take(struct pack_cursor *cursor, struct pack_in *group, uint32_t at)
{
    size_t count = cursor->count - at < PACK_FRAME ? cursor->count - at : PACK_FRAME;
    if (cursor->mode == SPARSE) {
        sparse_take(cursor, at, count);
    } else if (cursor->mode == FRAMES) {
        frame_take(group, cursor->values, count);
    }
}

void pack_cursor_take_into(struct pack_cursor *cursor, struct pack_in *group, uint32_t at, uint64_t *values)
{
    size_t count = cursor->count - at < PACK_FRAME ? cursor->count - at : PACK_FRAME;
    if (cursor->mode == FRAMES) {
        frame_take(group, values, count);
    } else {
        pack_cursor_take(cursor, group, at);
        memcpy(values, cursor->values, count * sizeof *values);
    }
}

void pack_cursor_view(struct pack_cursor *cursor, struct pack_in *group, uint32_t at)
{
    if (cursor->mode != FRAMES) {
        pack_cursor_take(cursor, group, at);
        return;
    }
    struct frame frame = { 0 };
    size_t count = cursor->count - at < PACK_FRAME ? cursor->count - at : PACK_FRAME;
    const struct pack_in before = *group;
    cursor->view = before.at;
    cursor->view_count = frame_pass(group, count, &frame) ? (uint32_t)count : 0;
    cursor->view_end = group->at;
}

uint64_t pack_cursor_number(const struct pack_cursor *cursor, unsigned row)
{
    struct pack_in in = { cursor->view, cursor->view_end, false };
    struct frame frame;
    if (cursor->mode != FRAMES) {
        return cursor->values[row];
    }
    return row < cursor->view_count && frame_begin(&in, cursor->view_count, &frame) ? frame_number(&frame, in, row) : 0;
}

void pack_cursor_numbers(struct pack_cursor *cursor, unsigned count)
{
    struct pack_in in = { cursor->view, cursor->view_end, false };
    struct frame frame;
    if (cursor->mode != FRAMES || count > cursor->view_count || !frame_begin(&in, cursor->view_count, &frame)) {
        return;
    }
    bits_take(frame.bits, cursor->values, count, frame.width, frame.least);
    for (unsigned i = 0; i < frame.exceptions; i++) {
        const uint8_t *row = unpack_bytes(&in, 1);
        uint64_t high = unpack_number(&in);
        if (row != NULL && *row < count) {
            cursor->values[*row] += high << frame.width;
        }
    }
}

/* What a whole column begins with. False: it cannot be one. */
static bool column_take(struct pack_in *in, uint8_t *ret_mode, struct pack_in *ret_rest)
{
    const uint8_t *head = unpack_bytes(in, 1 + sizeof(uint32_t));
    uint32_t size = 0;
    if (head != NULL) {
        memcpy(&size, head + 1, sizeof size);
    }
    const uint8_t *body = head != NULL ? unpack_bytes(in, size) : NULL;
    if (body == NULL || (head[0] != CONSTANT && head[0] != FRAMES)) {
        (void)unpack_bad(in);
        return false;
    }
    *ret_mode = head[0];
    *ret_rest = (struct pack_in){ body, body + size, false };
    return true;
}

void unpack_column(struct pack_in *in, uint64_t *values, size_t count)
{
    struct pack_in rest;
    uint8_t mode;
    if (!column_take(in, &mode, &rest)) {
        memset(values, 0, count * sizeof *values);
        return;
    }
    if (mode == CONSTANT) {
        uint64_t value = unpack_number(&rest);
        for (size_t i = 0; i < count; i++) {
            values[i] = value;
        }
    }
    for (size_t i = 0; i < count && mode == FRAMES; i += PACK_FRAME) {
        frame_take(&rest, values + i, count - i < PACK_FRAME ? count - i : PACK_FRAME);
    }
    in->bad = in->bad || rest.bad || rest.at != rest.end;
}

void unpack_some(struct pack_in *in, size_t count, const uint32_t *rows, size_t some, uint64_t *values)
{
    struct pack_in rest;
    uint8_t mode;
    size_t k = 0;
    if (!column_take(in, &mode, &rest)) {
        memset(values, 0, some * sizeof *values);
        return;
    }
    uint64_t value = mode == CONSTANT ? unpack_number(&rest) : 0;
    for (; k < some && mode == CONSTANT; k++) {
        values[k] = value;
    }
    for (size_t i = 0; i < count && mode == FRAMES; i += PACK_FRAME) {
        size_t frame_count = count - i < PACK_FRAME ? count - i : PACK_FRAME;
        struct pack_in before = rest;
        struct frame frame;
        if (!frame_pass(&rest, frame_count, &frame)) {
            break;
        }
        before.at = frame.bits + (frame_count * frame.width + 7) / 8;
        for (; k < some && rows[k] < i + frame_count; k++) {
            values[k] = frame_number(&frame, before, (unsigned)(rows[k] - i));
        }
    }
    memset(values + k, 0, (some - k) * sizeof *values);
    in->bad = in->bad || rest.bad || rest.at != rest.end;
}

void unpack_table(struct pack_in *in, size_t count, struct pack_table *table)
{
    struct pack_in rest;
    struct frame frame;
    uint8_t mode;
    table->framed = false;
    table->value = table->count = 0;
    if (!column_take(in, &mode, &rest)) {
        return;
    }
    table->framed = mode == FRAMES;
    if (!table->framed) {
        table->value = unpack_number(&rest);
    }
    table->frames[0] = rest.at;
    for (uint32_t i = 0; table->framed && table->count < count && i < PACK_FRAMES; i++) {
        size_t some = count - table->count < PACK_FRAME ? count - table->count : PACK_FRAME;
        if (!frame_pass(&rest, some, &frame)) {
            break;
        }
        table->frames[i + 1] = rest.at;
        table->count += (uint32_t)some;
    }
    in->bad = in->bad || rest.bad || rest.at != rest.end;
}

uint64_t pack_table_number(const struct pack_table *table, uint32_t row)
{
    if (!table->framed || row >= table->count) {
        return table->value;
    }
    uint32_t number = row / PACK_FRAME, left = table->count - number * PACK_FRAME;
    struct pack_in in = { table->frames[number], table->frames[number + 1], false };
    struct frame frame;
    return frame_begin(&in, left < PACK_FRAME ? left : PACK_FRAME, &frame) ? frame_number(&frame, in, row % PACK_FRAME)
                                                                           : 0;
}
