/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions from the command line, looked at with events whose columns are partly NULL: what is true must not be
   true with a NOT before it, and is true still with two, in parentheses, and beside itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "event/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW UINT64_C(1700000000000000000)
#define SLACK 32u /* what a text around the input takes */

enum { EVENTS = 4, ALL = (1 << EVENTS) - 1 };

static const struct nt_event events[EVENTS] = {
    { 0 },
    { .time = NOW, .session = 1, .value = 2, .count = 1, .total = 2, .merged = 1, .kind = 1, .generation = 1 },
    { .time = NOW, .session = UINT64_MAX, .value = UINT64_MAX, .count = UINT64_MAX, .kind = 64, .flags = UINT16_MAX },
    { .time = 5, .session = 1, .value = (UINT64_C(1) << 53) + 1, .argument = 3, .kind = 18, .object = 7 },
};

static size_t names(void *arg, const struct nt_event *event, enum nt_column column,
                    struct nt_bytes ret_names[NT_FILTER_NAMES])
{
    static const char *const texts[] = { "", "worker-1", "77", "a/b*[c]\xff" };
    (void)arg;
    size_t count = (column + (size_t)(event - events)) % (NT_FILTER_NAMES + 1);
    for (size_t i = 0; i < count; i++)
        ret_names[i] = (struct nt_bytes){ texts[i], strlen(texts[i]) };
    return count;
}

static bool number(void *arg, const struct nt_event *event, enum nt_column column, uint64_t *ret_number)
{
    (void)arg;
    *ret_number = (uint64_t)(event - events);
    return (column + (size_t)(event - events)) % 2 == 0;
}

/* The input between two texts, as a set of the events of which it is true; -1: it is refused. */
static int matches(const char *before, const uint8_t *data, size_t size, const char *after, int *ret_possible)
{
    static char text[NT_FILTER_BYTES + SLACK];
    const struct nt_filter_context context = { names, number, NULL, 0 };
    struct nt_filter_error error;
    struct nt_filter *filter = NULL;
    size_t start = strlen(before), end = strlen(after);
    if (size > 0)
        memcpy(text + start, data, size);
    memcpy(text, before, start);
    memcpy(text + start + size, after, end);
    int result = nt_filter_new(text, start + size + end, NOW, &filter, &error);
    if (result != 0) {
        if (result != -NT_ESYNTAX || error.column == 0 || error.column > start + size + end + 1 || !error.text[0] ||
            strlen(error.text) >= sizeof error.text)
            abort();
        return -1;
    }
    int found = 0;
    *ret_possible = 0;
    for (int i = 0; i < EVENTS; i++) {
        found |= nt_filter_match(filter, &events[i], &context) << i;
        *ret_possible |= nt_filter_possible(filter, &events[i], &context) << i;
    }
    nt_filter_free(filter);
    return found;
}

static void expect(const char *what, bool holds)
{
    if (holds)
        return;
    (void)fprintf(stderr, "expr_fuzz: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > NT_FILTER_BYTES - SLACK)
        return 0;
    int possible, not_possible, same_possible, beside_possible;
    int found = matches("", data, size, "", &possible);
    if (found < 0)
        return 0;
    /* Parentheses may be one too many. */
    int inverse = matches("NOT (", data, size, ")", &not_possible);
    int same = matches("not not(", data, size, ")", &same_possible);
    int beside = matches("n = n AND(", data, size, ")", &beside_possible);
    expect("what is true is not possible", (found & ~possible) == 0);
    expect("what is not false is not possible", inverse < 0 || possible == (ALL & ~inverse));
    expect("what is not true is not false or NULL", inverse < 0 || not_possible == (ALL & ~found));
    expect("two NOTs change something", same < 0 || (same == found && same_possible == possible));
    expect("a condition that is true changes something",
           beside < 0 || (beside == found && beside_possible == possible));
    return 0;
}
