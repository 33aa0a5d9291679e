/* SPDX-License-Identifier: BSD-3-Clause */
/* How names are shown to people, see text.h. */
#include "base/text.h"

struct range {
    uint32_t first, last;
};

static bool range_holds(const struct range *ranges, size_t count, uint32_t point)
{
    for (size_t i = 0; i < count && point >= ranges[i].first; i++) {
        if (point <= ranges[i].last)
            return true;
    }
    return false;
}

size_t nt_text_decode(const char *data, size_t size, uint32_t *ret_point)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (size == 0)
        return 0;
    unsigned char first = (unsigned char)data[0];
    if (first < 0x80) {
        *ret_point = first;
        return 1;
    }
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > size)
        return 0;
    uint32_t point = first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        unsigned char next = (unsigned char)data[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (next & 0x3fu);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *ret_point = point;
    return length;
}

bool nt_text_is_hostile(uint32_t point)
{
    static const struct range hostile[] = {
        { 0x00, 0x1f },     { 0x7f, 0x9f },     { 0x61c, 0x61c },   { 0x200e, 0x200f },   { 0x2028, 0x202e },
        { 0x2066, 0x2069 }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
    };
    if (point >= 0x20 && point < 0x7f)
        return false;
    return range_holds(hostile, sizeof hostile / sizeof *hostile, point);
}

static void append_escaped(struct nt_buffer *buffer, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)data[i];
        const char escaped[4] = { '\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15] };
        nt_buffer_append(buffer, escaped, sizeof escaped);
    }
}

/* Characters that pass in every kind of text, so that most names are copied at once. */
static const bool plain[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true, ['.'] = true, ['_'] = true,
};

static void append_shown(struct nt_buffer *buffer, const char *data, size_t size, const char *special)
{
    size_t from = 0; /* of what is passed as it is */
    for (size_t at = 0; at < size;) {
        uint32_t point = (unsigned char)data[at];
        size_t length = 1;
        if (plain[point]) {
            at++;
            continue;
        }
        if (point < 0x20 || point >= 0x7f)
            length = nt_text_decode(data + at, size - at, &point);
        bool hostile = length == 0 || nt_text_is_hostile(point);
        bool escape = point == '\\';
        for (const char *byte = special; length == 1 && *byte; byte++)
            escape = escape || point == (unsigned char)*byte;
        if (hostile || escape) {
            nt_buffer_append(buffer, data + from, at - from);
            from = at;
        }
        length = length > 0 ? length : 1;
        if (hostile) {
            append_escaped(buffer, data + at, length);
            from = at + length;
        } else if (escape) {
            nt_buffer_byte(buffer, '\\');
        }
        at += length;
    }
    nt_buffer_append(buffer, data + from, size - from);
}

void nt_text_append(struct nt_buffer *buffer, const char *data, size_t size)
{
    append_shown(buffer, data, size, "");
}

void nt_text_append_path(struct nt_buffer *buffer, const char *data, size_t size)
{
    if (size > 0 && data[0] == '#')
        nt_buffer_byte(buffer, '\\');
    append_shown(buffer, data, size, "/*?");
}

size_t nt_text_width(const char *data, size_t size)
{
    static const struct range none[] = { { 0x300, 0x36f }, { 0x200b, 0x200d }, { 0xfe00, 0xfe0f } };
    static const struct range wide[] = {
        { 0x1100, 0x115f }, { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
        { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd },
    };
    size_t width = 0;
    for (size_t at = 0; at < size;) {
        uint32_t point = (unsigned char)data[at];
        size_t length = point < 0x80 ? 1 : nt_text_decode(data + at, size - at, &point);
        at += length > 0 ? length : 1;
        if (point < 0x300)
            width++;
        else if (range_holds(wide, sizeof wide / sizeof *wide, point))
            width += 2;
        else if (!range_holds(none, sizeof none / sizeof *none, point))
            width++;
    }
    return width;
}
