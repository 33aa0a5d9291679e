/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the grammar (filter_parse.c) and looking at events (filter.c): the compiled program. Inside event. */
#ifndef NT_EVENT_FILTER_PROGRAM_H
#define NT_EVENT_FILTER_PROGRAM_H

#include "event/filter.h"

enum filter_type { FILTER_NUMBER, FILTER_TIME, FILTER_ID, FILTER_NAMED_ID, FILTER_NAME, FILTER_KIND, FILTER_FLAGS };

enum filter_operation {
    FILTER_LESS,       /* the column's number, than `number` or `other` */
    FILTER_LESS_EQUAL, /* likewise */
    FILTER_EQUAL,      /* likewise */
    FILTER_SET,        /* its number is one of `numbers`, or one of its flags of `number`, or a name of `texts` */
    FILTER_GLOB,       /* a name, or the digits of an id, match the one text */
    FILTER_NULL
};

#define FILTER_ACCEPT UINT32_MAX
#define FILTER_REJECT (UINT32_MAX - 1)

struct filter_step {
    uint8_t operation; /* enum filter_operation */
    uint8_t column;
    uint8_t other;              /* a column to compare with, or NT_COLUMNS */
    bool negate;                /* what is not NULL counts the other way round */
    uint32_t on_true, on_false; /* next step, or FILTER_… */
    uint64_t number;
    uint32_t numbers, number_count; /* in order, from that one on */
    uint32_t texts, text_count;     /* likewise; by size, then bytes */
};

/* Steps name later ones only: running through them ends. */
struct nt_filter {
    struct filter_step *steps;
    uint64_t *numbers;
    struct nt_bytes *texts;
    char *bytes;
    uint32_t start;
    uint32_t step_count, step_room;
    uint32_t number_count, number_room;
    uint32_t text_count, text_room;
};

enum filter_type filter_type_of(enum nt_column column);
/* The order of texts in a set. */
int filter_compare_texts(struct nt_bytes a, struct nt_bytes b);

#endif
