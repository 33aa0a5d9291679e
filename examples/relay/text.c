/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in a buffer. */
#include <stdarg.h>

#include "text.h"

void text_print(struct text *text, const char *format, ...)
{
    if (text->stream && text->room - text->size < 1024) {
        fwrite(text->data, 1, text->size, text->stream);
        text->size = 0;
    }
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->data + text->size, text->room - text->size, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->size += (size_t)length < text->room - text->size ? (size_t)length : text->room - text->size - 1;
}

void text_string(struct text *out, const char *string)
{
    text_print(out, "\"");
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c < 0x20 || c == '"' || c == '\\' || c > 0x7e)
            text_print(out, "\\u%04x", c);
        else
            text_print(out, "%c", c);
    }
    text_print(out, "\"");
}

const char *text_bool(bool value)
{
    return value ? "true" : "false";
}
