/* SPDX-License-Identifier: BSD-3-Clause */
/* The one grammar of conditions on events, docs/expr.md: SQL comparisons, AND, OR, NOT, IN, BETWEEN, GLOB, IS NULL
   over the columns of an event. A text is compiled once into a short program of comparisons, each of which names
   the next one for either outcome: no stack, no recursion, no allocation where events are looked at.
   Knows columns; what a thing is called, and what an event alone does not say, is asked of the caller. */
#ifndef NT_EVENT_FILTER_H
#define NT_EVENT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "event/event.h"

#define NT_FILTER_BYTES 16384u /* of a text */
#define NT_FILTER_DEPTH 64u    /* of parentheses */
#define NT_FILTER_NAMES 4u     /* that one thing goes by */

enum nt_column {
#define NT_COLUMN(symbol, name, type, text) NT_COLUMN_##symbol,
#include "event/columns.def"
#undef NT_COLUMN
    NT_COLUMNS
};

/* The column's name, and that of flag number `bit` of an event, or NULL. */
const char *nt_column_name(enum nt_column column);
const char *nt_event_flag_name(unsigned bit);

/* What the filter asks for; either may be NULL: then all that it would say is not known, which is SQL's NULL. */
struct nt_filter_context {
    /* Columns NAME, NAMED_ID and KIND: what the event's one goes by, at most NT_FILTER_NAMES names, borrowed until
       the next call. Returns how many; 0: NULL. */
    size_t (*names)(void *arg, const struct nt_event *event, enum nt_column column,
                    struct nt_bytes ret_names[NT_FILTER_NAMES]);
    /* Numbers and ids that struct nt_event does not have: log, time_raw, time_error, thread, link. False: NULL. */
    bool (*number)(void *arg, const struct nt_event *event, enum nt_column column, uint64_t *ret_number);
    void *arg;
    uint32_t unknown; /* 1 << column: what the event says there says nothing, as of one that was lost */
};
_Static_assert(NT_COLUMNS <= 32, "columns are bits");

struct nt_filter;

struct nt_filter_error {
    size_t column;  /* in characters, from 1 on */
    char text[200]; /* one line; bytes of the input are in it as they were */
};

/* `now`: what lengths of time such as '-5s' count back from. 0; -ENOMEM; or -NT_ESYNTAX and *ret_error. */
int nt_filter_new(const char *text, size_t size, uint64_t now, struct nt_filter **ret_filter,
                  struct nt_filter_error *ret_error);
void nt_filter_free(struct nt_filter *take_filter);
/* 1 << column of those whose names it asks for. */
uint32_t nt_filter_names(const struct nt_filter *filter);
/* 1 << column of those that it looks at. */
uint32_t nt_filter_columns(const struct nt_filter *filter);
/* What must hold of an event for the condition to be true: a time within, both included, and one of the sessions, in
   order, that are the filter's; session_count 0: any. 0 or -ENOMEM. */
struct nt_filter_bounds {
    uint64_t since, until;
    const uint64_t *sessions;
    size_t session_count;
};
int nt_filter_bounds(const struct nt_filter *filter, struct nt_filter_bounds *ret_bounds);
/* Whether the condition is true of the event: neither false nor NULL. */
bool nt_filter_match(const struct nt_filter *filter, const struct nt_event *event,
                     const struct nt_filter_context *context);
/* Whether it could be true, were more known: it is not false. */
bool nt_filter_possible(const struct nt_filter *filter, const struct nt_event *event,
                        const struct nt_filter_context *context);

#endif
