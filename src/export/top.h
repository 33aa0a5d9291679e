/* SPDX-License-Identifier: BSD-3-Clause */
/* A view of rates as lines of text: two of summary, loss if there is any, the heads of columns, rows. */
#ifndef NT_EXPORT_TOP_H
#define NT_EXPORT_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/rates.h"

struct nt_export_top {
    const struct nt_rates *rates;
    const struct nt_rate_view *view;
    const struct nt_rate_row *rows; /* that are shown */
    size_t count;
    size_t first, all; /* how many come before them, and how many there are */
    uint64_t now;      /* ns since 1970 */
    size_t width;      /* of lines, in columns; 0: as long as they are */
    bool plain;        /* nothing but ASCII */
    bool paused;
};

/* Lines above the rows, the last of which is the heads. */
size_t nt_export_top_lines(const struct nt_export_top *top);
/* Appends all lines, each closed by a newline. */
void nt_export_top(const struct nt_export_top *top, struct nt_buffer *out);

#endif
