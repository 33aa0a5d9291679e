/* SPDX-License-Identifier: BSD-3-Clause */
/* What changed from one moment to another, by object and kind. Objects are the same if their paths are: that of a
   program is NODE/NAME.PID if its log is known to both sides, else NODE/NAME, so that one run can be held against the
   next.
   Lives of one path are summed up; so are, apart, those that their parents have taken up. */
#ifndef NT_MODEL_DIFF_H
#define NT_MODEL_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/moment.h"
#include "model/objects.h"

struct nt_diff_side {
    bool there;
    bool closed; /* all lives of that path */
    uint64_t count, total;
    enum nt_model_bound bound;
};

struct nt_diff_row {
    struct nt_bytes path, kind;
    const char *unit; /* of the total; NULL: not known */
    bool folded;      /* of objects below it that are gone from the tables */
    struct nt_diff_side sides[2];
};

enum nt_diff_order {
    NT_DIFF_BY_COUNT, /* most counts more or less first */
    NT_DIFF_BY_TOTAL
};

struct nt_diff;

int nt_diff_new(struct nt_diff **ret_diff);
/* NULL is ignored. */
void nt_diff_free(struct nt_diff *take_diff);
/* Adds a side: a snapshot, linked, of one source, and the moment; `other` is the other side's. 0 or -ENOMEM. */
int nt_diff_add(struct nt_diff *diff, int side, const struct nt_model *model, const struct nt_moment *moment,
                const struct nt_model *other);
/* Once both sides were added. `all`: what has not changed too. The rows stand until the diff is freed. */
const struct nt_diff_row *nt_diff_rows(struct nt_diff *diff, enum nt_diff_order by, bool all, size_t *ret_count);

/* Latest time that a snapshot tells of. */
uint64_t nt_diff_time(const struct nt_model *model);

#endif
