/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON into a buffer: valid text whatever the bytes, numbers exact. Who calls keeps the grammar
   (a key before each value of an object); commas come by themselves, at any depth.
   Strings are bytes. Valid UTF-8 passes; control characters, quote, backslash, DEL, C1, bidi marks and other
   characters that text.h calls hostile are escaped; a byte 0xHH that is not UTF-8 becomes the lone surrogate
   \udcHH, as Python's "surrogateescape" has it: no valid text contains one, so it can be undone. */
#ifndef NT_BASE_JSON_H
#define NT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct nt_json {
    struct nt_buffer *out;
    bool comma; /* the next value has one before it */
};

void nt_json_object(struct nt_json *json);
void nt_json_object_end(struct nt_json *json);
void nt_json_array(struct nt_json *json);
void nt_json_array_end(struct nt_json *json);
/* A key that needs no escapes. */
static inline void nt_json_key(struct nt_json *json, const char *key)
{
    nt_buffer_append(json->out, &",\""[!json->comma], 1u + json->comma);
    nt_buffer_text(json->out, key);
    nt_buffer_append(json->out, "\":", 2);
    json->comma = false;
}
/* A string that needs no escapes. */
static inline void nt_json_word(struct nt_json *json, const char *word)
{
    nt_buffer_append(json->out, &",\""[!json->comma], 1u + json->comma);
    nt_buffer_text(json->out, word);
    nt_buffer_byte(json->out, '"');
    json->comma = true;
}
void nt_json_key_bytes(struct nt_json *json, const char *data, size_t size);
void nt_json_string(struct nt_json *json, const char *data, size_t size);
void nt_json_text(struct nt_json *json, const char *text);
static inline void nt_json_u64(struct nt_json *json, uint64_t number)
{
    nt_buffer_append(json->out, ",", json->comma);
    nt_buffer_u64(json->out, number);
    json->comma = true;
}
void nt_json_bool(struct nt_json *json, bool value);
/* A string of 16 hex digits. */
void nt_json_id(struct nt_json *json, uint64_t id);
/* Text that is one JSON value already. */
void nt_json_raw(struct nt_json *json, const char *data, size_t size);
/* A line break before the next value. */
void nt_json_line(struct nt_json *json);

#endif
