/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at events with a compiled filter, see filter.h. NOT was pushed down to the single comparisons when it was
   compiled. What is left, AND and OR, is true of true and "not true" exactly where SQL's three values make it
   true: so a comparison with NULL simply is not true. And likewise it is not false of "not false" and false. */
#include "event/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event/filter_program.h"
#include "event/glob.h"

const char *nt_column_name(enum nt_column column)
{
    static const char *const names[] = {
#define NT_COLUMN(symbol, name, type, text) #name,
#include "event/columns.def"
#undef NT_COLUMN
    };
    return column < NT_COLUMNS ? names[column] : NULL;
}

const char *nt_event_flag_name(unsigned bit)
{
    static const char *const names[] = {
#define NT_EVENT_FLAG(bit, name, text) [bit] = name,
#include "event/flags.def"
#undef NT_EVENT_FLAG
    };
    return bit < sizeof names / sizeof *names ? names[bit] : NULL;
}

enum filter_type filter_type_of(enum nt_column column)
{
    static const uint8_t types[] = {
#define NT_COLUMN(symbol, name, type, text) FILTER_##type,
#include "event/columns.def"
#undef NT_COLUMN
    };
    return types[column];
}

int filter_compare_texts(struct nt_bytes a, struct nt_bytes b)
{
    if (a.size != b.size)
        return a.size < b.size ? -1 : 1;
    return a.size > 0 ? memcmp(a.data, b.data, a.size) : 0;
}

struct look {
    const struct nt_filter *filter;
    const struct nt_event *event;
    const struct nt_filter_context *context;
};

enum truth { FALSE, TRUE, UNKNOWN };

/* ---- What an event says ---- */

static bool is_unknown(const struct look *look, enum nt_column column)
{
    return look->context->unknown >> column & 1;
}

static bool number_of(const struct look *look, enum nt_column column, uint64_t *ret_number)
{
    const struct nt_event *event = look->event;
    if (is_unknown(look, column))
        return false;
    switch (column) {
    case NT_COLUMN_TIME:
        *ret_number = event->time;
        return true;
    case NT_COLUMN_RING:
        *ret_number = event->ring;
        return true;
    case NT_COLUMN_POSITION:
        *ret_number = event->position;
        return true;
    case NT_COLUMN_OBJECT:
        *ret_number = (uint64_t)event->generation << 32 | event->object;
        return true;
    case NT_COLUMN_KIND:
        *ret_number = event->kind;
        return true;
    case NT_COLUMN_SESSION:
        *ret_number = event->session;
        return true;
    case NT_COLUMN_COUNT:
        *ret_number = event->count;
        return true;
    case NT_COLUMN_VALUE:
        *ret_number = event->value;
        return true;
    case NT_COLUMN_TOTAL:
        *ret_number = event->total;
        return true;
    case NT_COLUMN_N:
        *ret_number = event->merged;
        return true;
    case NT_COLUMN_ARGUMENT:
        *ret_number = event->argument;
        return true;
    case NT_COLUMN_FLAGS:
        *ret_number = event->flags;
        return true;
    default:
        return look->context->number && look->context->number(look->context->arg, event, column, ret_number);
    }
}

static size_t names_of(const struct look *look, enum nt_column column, struct nt_bytes names[NT_FILTER_NAMES])
{
    if (is_unknown(look, column) || !look->context->names)
        return 0;
    return look->context->names(look->context->arg, look->event, column, names);
}

/* ---- One comparison ---- */

static enum truth compare(const struct look *look, const struct filter_step *step)
{
    uint64_t left, right = step->number;
    if (!number_of(look, step->column, &left) || (step->other != NT_COLUMNS && !number_of(look, step->other, &right)))
        return UNKNOWN;
    switch (step->operation) {
    case FILTER_LESS:
        return left < right;
    case FILTER_LESS_EQUAL:
        return left <= right;
    default:
        return left == right;
    }
}

static bool has_number(const struct look *look, const struct filter_step *step, uint64_t number)
{
    const uint64_t *numbers = look->filter->numbers;
    size_t low = step->numbers, high = low + step->number_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (numbers[middle] == number)
            return true;
        if (numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool has_text(const struct look *look, const struct filter_step *step, struct nt_bytes text)
{
    const struct nt_bytes *texts = look->filter->texts;
    size_t low = step->texts, high = low + step->text_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = filter_compare_texts(texts[middle], text);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static enum truth is_in(const struct look *look, const struct filter_step *step)
{
    struct nt_bytes names[NT_FILTER_NAMES];
    uint64_t number;
    bool known = filter_type_of(step->column) != FILTER_NAME && number_of(look, step->column, &number);
    if (known && ((filter_type_of(step->column) == FILTER_FLAGS && (number & step->number) != 0) ||
                  has_number(look, step, number)))
        return TRUE;
    if (step->text_count == 0)
        return known ? FALSE : UNKNOWN;
    size_t count = names_of(look, step->column, names);
    for (size_t i = 0; i < count; i++) {
        if (has_text(look, step, names[i]))
            return TRUE;
    }
    return known || count > 0 ? FALSE : UNKNOWN;
}

static bool is_id(enum nt_column column)
{
    return filter_type_of(column) == FILTER_ID || filter_type_of(column) == FILTER_NAMED_ID;
}

static enum truth globs(const struct look *look, const struct filter_step *step)
{
    struct nt_bytes names[NT_FILTER_NAMES];
    struct nt_bytes pattern = look->filter->texts[step->texts];
    uint64_t number;
    bool known = is_id(step->column) && number_of(look, step->column, &number);
    if (known) {
        char digits[16];
        for (size_t i = sizeof digits; i > 0; i--, number >>= 4)
            digits[i - 1] = "0123456789abcdef"[number & 15];
        if (nt_glob_match(pattern, (struct nt_bytes){ digits, sizeof digits }))
            return TRUE;
    }
    size_t count = filter_type_of(step->column) != FILTER_ID ? names_of(look, step->column, names) : 0;
    for (size_t i = 0; i < count; i++) {
        if (nt_glob_match(pattern, names[i]))
            return TRUE;
    }
    return known || count > 0 ? FALSE : UNKNOWN;
}

static enum truth is_null(const struct look *look, const struct filter_step *step)
{
    struct nt_bytes names[NT_FILTER_NAMES];
    uint64_t number;
    if (is_unknown(look, step->column))
        return UNKNOWN;
    if (filter_type_of(step->column) == FILTER_NAME)
        return names_of(look, step->column, names) == 0;
    return !number_of(look, step->column, &number);
}

static enum truth truth_of(const struct look *look, const struct filter_step *step)
{
    switch (step->operation) {
    case FILTER_SET:
        return is_in(look, step);
    case FILTER_GLOB:
        return globs(look, step);
    case FILTER_NULL:
        return is_null(look, step);
    default:
        return compare(look, step);
    }
}

/* `unknown`: where a comparison goes that is neither true nor false. */
static bool run(const struct nt_filter *filter, const struct nt_event *event, const struct nt_filter_context *context,
                bool unknown)
{
    const struct look look = { filter, event, context };
    uint32_t at = filter->start;
    while (at < FILTER_REJECT) {
        const struct filter_step *step = &filter->steps[at];
        enum truth truth = truth_of(&look, step);
        bool yes = truth == UNKNOWN ? unknown : (truth == TRUE) != step->negate;
        at = yes ? step->on_true : step->on_false;
    }
    return at == FILTER_ACCEPT;
}

bool nt_filter_match(const struct nt_filter *filter, const struct nt_event *event,
                     const struct nt_filter_context *context)
{
    return run(filter, event, context, false);
}

bool nt_filter_possible(const struct nt_filter *filter, const struct nt_event *event,
                        const struct nt_filter_context *context)
{
    return run(filter, event, context, true);
}

uint32_t nt_filter_names(const struct nt_filter *filter)
{
    uint32_t columns = 0;
    for (uint32_t i = 0; i < filter->step_count; i++) {
        const struct filter_step *step = &filter->steps[i];
        bool texts = (step->operation == FILTER_SET || step->operation == FILTER_GLOB) && step->text_count > 0;
        if (texts || (step->operation == FILTER_NULL && filter_type_of(step->column) == FILTER_NAME))
            columns |= UINT32_C(1) << step->column;
    }
    return columns;
}

uint32_t nt_filter_columns(const struct nt_filter *filter)
{
    uint32_t columns = 0;
    for (uint32_t i = 0; i < filter->step_count; i++) {
        const struct filter_step *step = &filter->steps[i];
        columns |= UINT32_C(1) << step->column | (step->other < NT_COLUMNS ? UINT32_C(1) << step->other : 0);
    }
    return columns;
}

/* ---- What must hold ---- */

/* Whether the condition can be true although that step does not hold. `room`: for
   twice as many numbers as there are steps, and a mark each. */
static bool is_true_without(const struct nt_filter *filter, uint32_t without, uint32_t *room, bool *seen)
{
    uint32_t count = 0;
    memset(seen, 0, filter->step_count * sizeof *seen);
    room[count++] = filter->start;
    while (count > 0) {
        uint32_t at = room[--count];
        if (at == FILTER_ACCEPT)
            return true;
        if (at >= filter->step_count || seen[at])
            continue;
        const struct filter_step *step = &filter->steps[at];
        seen[at] = true;
        room[count++] = step->on_false;
        if (at != without)
            room[count++] = step->on_true;
    }
    return false;
}

static void bound_time(const struct filter_step *step, struct nt_filter_bounds *bounds)
{
    uint64_t since = 0, until = UINT64_MAX, number = step->number;
    if (step->operation == FILTER_EQUAL && !step->negate)
        since = until = number;
    else if (step->operation == FILTER_LESS && step->negate)
        since = number;
    else if (step->operation == FILTER_LESS)
        until = number > 0 ? number - 1 : 0;
    else if (step->operation == FILTER_LESS_EQUAL && step->negate)
        since = number < UINT64_MAX ? number + 1 : number;
    else if (step->operation == FILTER_LESS_EQUAL)
        until = number;
    bounds->since = since > bounds->since ? since : bounds->since;
    bounds->until = until < bounds->until ? until : bounds->until;
}

static void bound_session(const struct nt_filter *filter, const struct filter_step *step,
                          struct nt_filter_bounds *bounds)
{
    bool set = step->operation == FILTER_SET;
    size_t count = set ? step->number_count : 1;
    if (count == 0 || (bounds->session_count > 0 && bounds->session_count <= count))
        return;
    bounds->session_count = count;
    bounds->sessions = set ? filter->numbers + step->numbers : &step->number;
}

static bool is_bound(const struct filter_step *step)
{
    if (step->other != NT_COLUMNS || step->operation == FILTER_NULL || step->operation == FILTER_GLOB)
        return false;
    if (step->column == NT_COLUMN_TIME)
        return step->operation != FILTER_SET;
    return step->column == NT_COLUMN_SESSION && !step->negate && step->text_count == 0 &&
           (step->operation == FILTER_SET || step->operation == FILTER_EQUAL);
}

int nt_filter_bounds(const struct nt_filter *filter, struct nt_filter_bounds *ret_bounds)
{
    struct nt_filter_bounds bounds = { .until = UINT64_MAX };
    uint32_t *room = calloc(2 * (size_t)filter->step_count + 2, sizeof *room);
    bool *seen = calloc(filter->step_count + 1, sizeof *seen);
    for (uint32_t i = 0; room && seen && i < filter->step_count; i++) {
        const struct filter_step *step = &filter->steps[i];
        if (!is_bound(step) || is_true_without(filter, i, room, seen))
            continue;
        if (step->column == NT_COLUMN_TIME)
            bound_time(step, &bounds);
        else
            bound_session(filter, step, &bounds);
    }
    bool all = room && seen;
    free(room);
    free(seen);
    if (!all)
        return -ENOMEM;
    *ret_bounds = bounds;
    return 0;
}

void nt_filter_free(struct nt_filter *take_filter)
{
    if (!take_filter)
        return;
    free(take_filter->steps);
    free(take_filter->numbers);
    free(take_filter->texts);
    free(take_filter->bytes);
    free(take_filter);
}
