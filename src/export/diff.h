/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to be said of changes from one moment to another. */
#ifndef NT_EXPORT_DIFF_H
#define NT_EXPORT_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/diff.h"

struct nt_export_moment {
    const char *file;
    uint64_t time; /* ns since 1970; 0: not known */
};

struct nt_export_diff {
    struct nt_export_moment moments[2];
    const struct nt_diff_row *rows; /* in this order */
    size_t count;                   /* that are shown */
    size_t more;                    /* that are not */
};

/* new, gone, closed, changed, same */
const char *nt_export_change(const struct nt_diff_row *row);
/* Whether the difference of sums is exact. */
bool nt_export_change_exact(const struct nt_diff_row *row);
/* ns from the first moment to the second; 0: there is none, and no rates. */
uint64_t nt_export_diff_length(const struct nt_export_diff *input);

void nt_export_text_diff(const struct nt_export_diff *input, struct nt_buffer *out);
void nt_export_json_diff(const struct nt_export_diff *input, struct nt_buffer *out);

#endif
