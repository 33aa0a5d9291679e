/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON, see json.h. */
#include "base/json.h"

#include <string.h>

#include "base/text.h"

static void value_begin(struct nt_json *json)
{
    if (json->comma)
        nt_buffer_byte(json->out, ',');
    json->comma = true;
}

static void container_begin(struct nt_json *json, char bracket)
{
    value_begin(json);
    nt_buffer_byte(json->out, bracket);
    json->comma = false;
}

static void container_end(struct nt_json *json, char bracket)
{
    nt_buffer_byte(json->out, bracket);
    json->comma = true;
}

void nt_json_object(struct nt_json *json)
{
    container_begin(json, '{');
}

void nt_json_object_end(struct nt_json *json)
{
    container_end(json, '}');
}

void nt_json_array(struct nt_json *json)
{
    container_begin(json, '[');
}

void nt_json_array_end(struct nt_json *json)
{
    container_end(json, ']');
}

static void append_unit(struct nt_buffer *out, uint32_t unit)
{
    const char escaped[6] = { '\\',
                              'u',
                              "0123456789abcdef"[unit >> 12 & 15],
                              "0123456789abcdef"[unit >> 8 & 15],
                              "0123456789abcdef"[unit >> 4 & 15],
                              "0123456789abcdef"[unit & 15] };
    nt_buffer_append(out, escaped, sizeof escaped);
}

static void append_point(struct nt_buffer *out, uint32_t point)
{
    if (point == '"' || point == '\\') {
        const char escaped[2] = { '\\', (char)point };
        nt_buffer_append(out, escaped, sizeof escaped);
    } else if (point < 0x10000) {
        append_unit(out, point);
    } else {
        append_unit(out, 0xd800 + ((point - 0x10000) >> 10));
        append_unit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
    }
}

/* Characters that need no look at all. */
static const bool plain[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true, ['.'] = true, ['_'] = true,
};

static void append_string(struct nt_buffer *out, const char *data, size_t size)
{
    size_t from = 0; /* of what is passed as it is */
    nt_buffer_byte(out, '"');
    for (size_t at = 0; at < size;) {
        uint32_t point = (unsigned char)data[at];
        size_t length = 1;
        if (plain[point]) {
            at++;
            continue;
        }
        if (point < 0x20 || point >= 0x7f)
            length = nt_text_decode(data + at, size - at, &point);
        if (length > 0 && point != '"' && point != '\\' && !nt_text_is_hostile(point)) {
            at += length;
            continue;
        }
        nt_buffer_append(out, data + from, at - from);
        if (length > 0)
            append_point(out, point);
        else
            append_unit(out, 0xdc00u + (unsigned char)data[at]);
        at += length > 0 ? length : 1;
        from = at;
    }
    nt_buffer_append(out, data + from, size - from);
    nt_buffer_byte(out, '"');
}

void nt_json_key_bytes(struct nt_json *json, const char *data, size_t size)
{
    value_begin(json);
    append_string(json->out, data, size);
    nt_buffer_byte(json->out, ':');
    json->comma = false;
}

void nt_json_string(struct nt_json *json, const char *data, size_t size)
{
    value_begin(json);
    append_string(json->out, data, size);
}

void nt_json_text(struct nt_json *json, const char *text)
{
    nt_json_string(json, text, strlen(text));
}

void nt_json_bool(struct nt_json *json, bool value)
{
    value_begin(json);
    nt_buffer_text(json->out, value ? "true" : "false");
}

void nt_json_id(struct nt_json *json, uint64_t id)
{
    value_begin(json);
    nt_buffer_byte(json->out, '"');
    nt_buffer_hex64(json->out, id);
    nt_buffer_byte(json->out, '"');
}

void nt_json_raw(struct nt_json *json, const char *data, size_t size)
{
    value_begin(json);
    nt_buffer_append(json->out, data, size);
}

void nt_json_line(struct nt_json *json)
{
    if (json->comma)
        nt_buffer_byte(json->out, ',');
    nt_buffer_byte(json->out, '\n');
    json->comma = false;
}
