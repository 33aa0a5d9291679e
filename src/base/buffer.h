/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that grow, for building output. The first failure (out of memory, a drain that failed) is kept:
   appends after it do nothing, so that a writer checks once, at its end. Knows no format. */
#ifndef NT_BASE_BUFFER_H
#define NT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NT_BUFFER_DRAIN 65536u /* bytes kept at most while there is a drain */

struct nt_buffer { /* all zeros: empty */
    char *data;    /* NULL while empty; not terminated */
    size_t size;
    size_t room; /* 0 after a failure */
    int error;   /* 0, or the first failure */
    /* Takes what is full, whole: 0 or a negative code. NULL: everything is kept. */
    int (*drain)(void *arg, const char *data, size_t size);
    void *arg;
};

void nt_buffer_fini(struct nt_buffer *buffer);
/* Empties it and forgets its error; keeps its memory. */
void nt_buffer_clear(struct nt_buffer *buffer);
/* Room for that many bytes more: 0, or the buffer's error. */
int nt_buffer_reserve(struct nt_buffer *buffer, size_t size);
/* Keeps a failure, unless there was one already, and lets the bytes go. Returns the one kept. */
int nt_buffer_fail(struct nt_buffer *buffer, int error);

static inline void nt_buffer_append(struct nt_buffer *buffer, const void *data, size_t size)
{
    if (size == 0 || (size > buffer->room - buffer->size && nt_buffer_reserve(buffer, size) != 0))
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

static inline void nt_buffer_text(struct nt_buffer *buffer, const char *text)
{
    nt_buffer_append(buffer, text, strlen(text));
}

static inline void nt_buffer_byte(struct nt_buffer *buffer, char byte)
{
    nt_buffer_append(buffer, &byte, 1);
}

void nt_buffer_repeat(struct nt_buffer *buffer, char byte, size_t times);
void nt_buffer_u64(struct nt_buffer *buffer, uint64_t number);
/* How many digits it has. */
unsigned nt_buffer_digits(uint64_t number);
/* total / count, exact, rounded to at most 6 decimals; trim: without zeros at the end. count is not 0. */
void nt_buffer_ratio(struct nt_buffer *buffer, uint64_t total, uint64_t count, unsigned decimals, bool trim);
/* 16 hex digits. */
void nt_buffer_hex64(struct nt_buffer *buffer, uint64_t number);
void nt_buffer_print(struct nt_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Passes what is left to the drain, if there is one. Returns the buffer's error. */
int nt_buffer_flush(struct nt_buffer *buffer);

#endif
