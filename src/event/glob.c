/* SPDX-License-Identifier: BSD-3-Clause */
/* GLOB, see glob.h. Where something does not match, only the newest star is tried again, one character further: an
   earlier one could give nothing that this one cannot. */
#include "event/glob.h"

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { NOT_UTF8 = 0x110000 }; /* + byte: beyond all code points */

/* The character at `at`, which is moved behind it. There is one. */
static uint32_t take(struct nt_bytes text, size_t *at)
{
    uint32_t point;
    size_t length = nt_text_decode(text.data + *at, text.size - *at, &point);
    if (length == 0)
        point = NOT_UTF8 + (unsigned char)text.data[*at];
    *at += length > 0 ? length : 1;
    return point;
}

static bool is_at(struct nt_bytes text, size_t at, char byte)
{
    return at < text.size && text.data[at] == byte;
}

/* One class, from behind its bracket on; *at goes behind its end. Returns whether it has an end. */
static bool class_match(struct nt_bytes pattern, size_t *at, uint32_t point, bool *ret_matches)
{
    bool invert = is_at(pattern, *at, '^'), found = false;
    *at += invert;
    for (bool first = true; *at < pattern.size; first = false) {
        if (!first && pattern.data[*at] == ']') {
            ++*at;
            *ret_matches = found != invert;
            return true;
        }
        uint32_t low = take(pattern, at), high = low;
        if (is_at(pattern, *at, '-') && *at + 1 < pattern.size && pattern.data[*at + 1] != ']') {
            ++*at;
            high = take(pattern, at);
        }
        found = found || (point >= low && point <= high);
    }
    return false;
}

const char *nt_glob_check(struct nt_bytes pattern)
{
    bool matches;
    for (size_t at = 0; at < pattern.size;) {
        if (take(pattern, &at) == '[' && !class_match(pattern, &at, 0, &matches))
            return "a bracket is not closed";
    }
    return NULL;
}

/* One character of text against what is not a star. Both places go behind it. */
static bool step(struct nt_bytes pattern, size_t *at, struct nt_bytes text, size_t *text_at)
{
    bool matches = false;
    if (*at == pattern.size)
        return false;
    uint32_t point = take(text, text_at), wanted = take(pattern, at);
    if (wanted == '[')
        return class_match(pattern, at, point, &matches) && matches;
    return wanted == '?' || wanted == point;
}

bool nt_glob_match(struct nt_bytes pattern, struct nt_bytes text)
{
    size_t at = 0, text_at = 0;
    size_t star = SIZE_MAX, star_text = 0; /* behind the newest star, and where its text ends so far */
    while (text_at < text.size) {
        if (is_at(pattern, at, '*')) {
            star = ++at;
            star_text = text_at;
            continue;
        }
        if (step(pattern, &at, text, &text_at))
            continue;
        if (star == SIZE_MAX)
            return false;
        (void)take(text, &star_text);
        text_at = star_text;
        at = star;
    }
    while (is_at(pattern, at, '*'))
        at++;
    return at == pattern.size;
}
