/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of the relay's output, in a buffer that the caller provides: nothing here allocates. */
#ifndef RELAY_TEXT_H
#define RELAY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct text { /* what does not fit is cut, or goes to a stream first if there is one */
    char *data;
    size_t room, size;
    FILE *stream;
};

__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);
/* In quotes. Names of the relay are plain; anything else would be a defect, and is made harmless. */
void text_string(struct text *text, const char *string);
const char *text_bool(bool value);

#endif
