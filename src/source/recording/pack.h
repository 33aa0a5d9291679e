/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of numbers in few bytes: all alike, few that are not 0, or frames of 128 of which each stores what is above
   its least number in so many bits, and what does not fit apart (patched frame of reference). Also numbers in 7 bits a
   byte. Knows no event. docs/format.md, "Columns", has the bytes. */
#ifndef NT_SOURCE_RECORDING_PACK_H
#define NT_SOURCE_RECORDING_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define PACK_FRAME 128u
#define PACK_FRAMES 512u /* of a column that is cut into groups, at most */
#define PACK_SLACK 16u   /* bytes that must be readable behind what is unpacked, whatever they are */

static inline uint64_t pack_zigzag(uint64_t value)
{
    return (value << 1) ^ (0 - (value >> 63));
}

static inline uint64_t pack_unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

/* ---- Packing ---- */

void pack_number(struct nt_buffer *out, uint64_t value);
void pack_bytes(struct nt_buffer *out, const void *data, size_t size); /* its size, then the bytes */
void pack_column(struct nt_buffer *out, const uint64_t *values, size_t count);
/* A column that is 0 but in `listed` rows, which ascend. `room`: for `count` numbers. */
struct pack_list {
    uint32_t *rows;
    uint64_t *values;
    size_t listed;
};

/* Columns that are cut into groups of 128, each of which can be read alone: `out` gets what all have in common,
   `frames` what is each group's own, until it is put together group by group. */
struct pack_framed {
    bool framed;                       /* else there are no frames */
    uint32_t begin, ends[PACK_FRAMES]; /* in `frames` */
};
void pack_framed(struct pack_framed *column, struct nt_buffer *out, struct nt_buffer *frames, const uint64_t *values,
                 size_t count);
void pack_framed_list(struct pack_framed *column, struct nt_buffer *out, struct nt_buffer *frames,
                      const struct pack_list *list, size_t count, uint64_t *room);

/* ---- Unpacking ---- */

/* What is to be unpacked. The first thing that is not right makes it bad: from then on it gives zeros. */
struct pack_in {
    const uint8_t *at, *end;
    bool bad;
};

uint64_t unpack_number(struct pack_in *in);
/* The same, bad if it is above `most`. */
uint64_t unpack_at_most(struct pack_in *in, uint64_t most);
/* That many bytes in place, or NULL. */
const uint8_t *unpack_bytes(struct pack_in *in, size_t size);
/* A whole column. */
void unpack_column(struct pack_in *in, uint64_t *values, size_t count);
/* A whole column of `count` numbers, of which only some are wanted, by rows that ascend. */
void unpack_some(struct pack_in *in, size_t count, const uint32_t *rows, size_t some, uint64_t *values);

/* A whole column of which some numbers are looked at, in any order. */
struct pack_table {
    const uint8_t *frames[PACK_FRAMES + 1];
    uint32_t count;
    bool framed;
    uint64_t value; /* else */
};
void unpack_table(struct pack_in *in, size_t count, struct pack_table *table);
uint64_t pack_table_number(const struct pack_table *table, uint32_t row);

/* A column that is cut into groups. */
struct pack_cursor {
    struct pack_in in; /* listed numbers to come */
    uint8_t mode;
    uint32_t count;
    uint32_t sparse_left;
    uint64_t sparse_row;            /* of the next one */
    const uint8_t *view, *view_end; /* of a frame that was passed over, and how many numbers it has */
    uint32_t view_count;
    bool dirty; /* `values` are not what a frame of zeros has */
    uint64_t values[PACK_FRAME];
};

/* Takes from `in` what all groups of a column of `count` numbers have in common. */
void pack_cursor_begin(struct pack_cursor *cursor, struct pack_in *in, size_t count);
/* One that is not there: zeros. */
void pack_cursor_none(struct pack_cursor *cursor);
/* The up to 128 numbers from row `at` on, which is never less than before, into `values`; takes from `group` what is
   the group's own. What is bad is told by either. */
void pack_cursor_take(struct pack_cursor *cursor, struct pack_in *group, uint32_t at);
/* Likewise, into `values`. */
void pack_cursor_take_into(struct pack_cursor *cursor, struct pack_in *group, uint32_t at, uint64_t *values);
/* Passes over the numbers that pack_cursor_take would take; then one of them, or the first so many into `values`, as
   far as they are there. */
void pack_cursor_view(struct pack_cursor *cursor, struct pack_in *group, uint32_t at);
uint64_t pack_cursor_number(const struct pack_cursor *cursor, unsigned row);
void pack_cursor_numbers(struct pack_cursor *cursor, unsigned count);
/* Every number is `values[0]`. */
static inline bool pack_cursor_is_constant(const struct pack_cursor *cursor)
{
    return cursor->mode == 0;
}

#endif
