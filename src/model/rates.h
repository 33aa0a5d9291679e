/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast things are counted, from one snapshot after another; and the rows of a view of them: sorted, filtered, or as
   the tree. Reads no clock: it is told when a snapshot was taken. */
#ifndef NT_MODEL_RATES_H
#define NT_MODEL_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/objects.h"

/* A kind on an object; in a tree also an object that counted nothing, and a program. */
struct nt_rate_row {
    uint32_t program;    /* indexes in the model */
    uint32_t object;     /* NT_MODEL_NONE: the program itself */
    uint32_t tally;      /* number among the object's own; NT_MODEL_NONE: none */
    bool label;          /* the first row of its object or program */
    double count, total; /* by second, over the last second or since the snapshot before, if that is longer */
    double key;          /* what it was sorted by, if that is a number */
};

#define NT_RATE_COLUMN(symbol, head, text) NT_RATE_##symbol,
enum nt_rate_column {
#include "model/rates.def"
    NT_RATE_COLUMNS
};
#undef NT_RATE_COLUMN

struct nt_rate_view {
    enum nt_rate_column sort;
    bool reverse;       /* least first, or names from Z to A */
    bool tree;          /* in the order of the tree, whatever `sort` says */
    bool busy;          /* only what was counted lately */
    const char *filter; /* part of a path or the name of a kind, in any case; NULL or empty: all */
};

struct nt_rate_sums {
    uint64_t programs, alive, objects; /* objects: open */
    double count;                      /* events by second, all kinds */
    double bytes;                      /* read and written by second */
};

struct nt_rates;

/* 0 or -ENOMEM. */
int nt_rates_new(struct nt_rates **ret_rates);
/* NULL is ignored. */
void nt_rates_free(struct nt_rates *take_rates);
/* A snapshot of one source, linked, taken at `now` (ns of any clock that only goes on). The model is taken over in any
   case, and is all zeros then. 0, -ENOMEM or -E2BIG. */
int nt_rates_take(struct nt_rates *rates, struct nt_model *take_model, uint64_t now);
/* The newest one. */
const struct nt_model *nt_rates_model(const struct nt_rates *rates);
struct nt_rate_sums nt_rates_sums(const struct nt_rates *rates);
/* The rows of a view, until the next call of this or nt_rates_take. 0 or -ENOMEM. */
int nt_rates_rows(struct nt_rates *rates, const struct nt_rate_view *view, const struct nt_rate_row **ret_rows,
                  size_t *ret_count);

#endif
