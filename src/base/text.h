/* SPDX-License-Identifier: BSD-3-Clause */
/* Names are bytes that others chose; this is how they are shown to people. What could command a terminal
   or turn text around (control characters, escape, C1, bidi marks, line separators, tags, bytes that are no
   UTF-8) is written as \xHH, byte by byte, and a backslash as \\: unambiguous, and what paths take back. */
#ifndef NT_BASE_TEXT_H
#define NT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The character at the start of the bytes: its length in bytes, and its code point; 0 if there is none
   that is valid UTF-8 (overlong forms, surrogates and what lies beyond U+10FFFF are not). */
size_t nt_text_decode(const char *data, size_t size, uint32_t *ret_point);
/* Whether a character must not reach a terminal. */
bool nt_text_is_hostile(uint32_t point);
/* Appends a name for people to read. */
void nt_text_append(struct nt_buffer *buffer, const char *data, size_t size);
/* The same as one component of a path: `/`, `*`, `?` and a leading `#` are escaped by a backslash too. */
void nt_text_append_path(struct nt_buffer *buffer, const char *data, size_t size);
/* Columns that shown text takes on a terminal. */
size_t nt_text_width(const char *data, size_t size);

#endif
