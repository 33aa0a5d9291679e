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
#define PACK_SLACK 16u /* bytes that must be readable behind what is unpacked, whatever they are */

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
/* The same of a column that is 0 but in `listed` rows, which ascend. `room`: for `count` numbers. */
struct pack_list {
    uint32_t *rows;
    uint64_t *values;
    size_t listed;
};
void pack_list(struct nt_buffer *out, const struct pack_list *list, size_t count, uint64_t *room);

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

/* A column read frame by frame. */
struct pack_cursor {
    struct pack_in in;
    uint8_t mode;
    uint32_t count, at;   /* numbers in all, and taken */
    uint32_t sparse_left; /* listed numbers to come */
    uint64_t sparse_row;  /* of the next one */
    uint32_t dirty;       /* numbers in `values` that are not what a frame of zeros has */
    uint64_t values[PACK_FRAME];
};

/* Begins a column of `count` numbers, and takes it from `in`. */
void pack_cursor_begin(struct pack_cursor *cursor, struct pack_in *in, size_t count);
/* The next up to 128 numbers. They stand until the next call. What is bad is told by cursor->in.bad. */
const uint64_t *pack_cursor_next(struct pack_cursor *cursor);
/* Passes over the next frame without unpacking it. */
void pack_cursor_skip(struct pack_cursor *cursor);
/* Every number is that one. */
static inline bool pack_cursor_is_always(const struct pack_cursor *cursor, uint64_t value)
{
    return cursor->mode == 0 && cursor->values[0] == value;
}

#endif
