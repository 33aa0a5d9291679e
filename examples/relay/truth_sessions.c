/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by session from the series. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "truth_sessions.h"

struct belonging { /* one count, or the sum of several */
    uint64_t session;
    uint32_t object, kind;
    uint64_t count, total;
};

struct sorting {
    const struct truth *truth;
    struct belonging *counts; /* those that are over */
    size_t count;
    uint32_t *place;  /* by number in the series: where it is in counts + 1, 0: it is not over */
    uint64_t *seen;   /* by tally: entries so far */
    uint32_t *flying; /* numbers in the series */
    size_t flying_count;
};

static int sorting_init(struct sorting *sorting, const struct truth *truth)
{
    size_t series = (size_t)truth->header->series + 1, tallies = (size_t)truth->header->tallies + 1;
    *sorting = (struct sorting){ .truth = truth };
    sorting->counts = calloc(series, sizeof *sorting->counts);
    sorting->place = calloc(series, sizeof *sorting->place);
    sorting->seen = calloc(tallies, sizeof *sorting->seen);
    sorting->flying = calloc(tallies, sizeof *sorting->flying);
    return sorting->counts && sorting->place && sorting->seen && sorting->flying ? 0 : -ENOMEM;
}

static void sorting_fini(struct sorting *sorting)
{
    free(sorting->counts);
    free(sorting->place);
    free(sorting->seen);
    free(sorting->flying);
}

/* The count that a join takes with it; NULL: none that is over. */
static struct belonging *joined(const struct sorting *sorting, const struct truth_series *entry)
{
    uint32_t place = entry->joins && entry->joins <= sorting->truth->header->series ? sorting->place[entry->joins - 1]
                                                                                    : 0;
    return place ? &sorting->counts[place - 1] : NULL;
}

static void sort_entry(struct sorting *sorting, uint32_t number)
{
    const struct truth_series *entry = &sorting->truth->series[number];
    uint32_t tally_number = atomic_load_explicit(&entry->tally, memory_order_acquire) - 1;
    if (tally_number >= sorting->truth->header->tallies)
        return;
    const struct truth_tally *tally = &sorting->truth->tallies[tally_number];
    struct truth_sum done, begun;
    truth_read(tally, &done, &begun);
    uint64_t nth = ++sorting->seen[tally_number];
    if (nth > done.count) {
        if (nth <= begun.count)
            sorting->flying[sorting->flying_count++] = number;
        return;
    }
    struct belonging *read = joined(sorting, entry);
    if (read)
        read->session = entry->session;
    sorting->counts[sorting->count++] = (struct belonging){ entry->session, tally->object, tally->kind, 1,
                                                            entry->value };
    sorting->place[number] = (uint32_t)sorting->count;
}

static int compare(const void *a, const void *b)
{
    const struct belonging *x = a, *y = b;
    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static void add_up(struct sorting *sorting)
{
    size_t sums = 0;
    qsort(sorting->counts, sorting->count, sizeof *sorting->counts, compare);
    for (size_t i = 0; i < sorting->count; i++) {
        const struct belonging *one = &sorting->counts[i];
        if (sums == 0 || compare(one, &sorting->counts[sums - 1]) != 0) {
            sorting->counts[sums++] = *one;
            continue;
        }
        sorting->counts[sums - 1].count += one->count;
        sorting->counts[sums - 1].total += one->total;
    }
    sorting->count = sums;
}

/* ---- Printing ---- */

static void print_made(struct text *out, const struct truth *truth)
{
    static const char *const flag_names[] = { /* by bit */ "standing", "stands", "ending", "ended" };
    const char *comma = "";
    text_print(out, ",\n \"sessions\":[");
    for (uint32_t i = 0; i < truth->header->sessions; i++) {
        const struct truth_session *session = &truth->sessions[i];
        if (!atomic_load_explicit(&session->ready, memory_order_acquire))
            continue;
        text_print(out, "%s\n  {\"id\":\"%016" PRIx64 "\",\"parent\":\"%016" PRIx64 "\",\"name\":", comma,
                   (uint64_t)session->id, session->parent);
        text_string(out, session->name);
        for (size_t bit = 0; bit < sizeof flag_names / sizeof *flag_names; bit++)
            text_print(out, ",\"%s\":%s", flag_names[bit], text_bool(session->flags & (1u << bit)));
        text_print(out, "}");
        comma = ",";
    }
    text_print(out, "]");
}

static void print_flying(struct text *out, const struct sorting *sorting)
{
    const char *comma = "";
    text_print(out, ",\n \"in_flight\":[");
    for (size_t i = 0; i < sorting->flying_count; i++) {
        const struct truth_series *entry = &sorting->truth->series[sorting->flying[i]];
        const struct truth_tally *tally = &sorting->truth->tallies[entry->tally - 1];
        text_print(out,
                   "%s\n  {\"object\":%" PRIu32 ",\"kind\":\"%s\",\"value\":%" PRIu64 ",\"session\":\"%016" PRIx64
                   "\",\"own\":\"%016" PRIx64 "\"",
                   comma, tally->object, truth_kind_name(tally->kind), entry->value, entry->session, entry->own);
        const struct belonging *read = joined(sorting, entry);
        if (read)
            text_print(out, ",\"read\":{\"value\":%" PRIu64 ",\"session\":\"%016" PRIx64 "\"}", read->total,
                       read->session);
        text_print(out, "}");
        comma = ",";
    }
    text_print(out, "]");
}

static void print_sums(struct text *out, const struct sorting *sorting)
{
    const char *comma = "";
    text_print(out, ",\n \"session_sums\":[");
    for (size_t i = 0; i < sorting->count; i++) {
        const struct belonging *sum = &sorting->counts[i];
        text_print(out,
                   "%s\n  {\"session\":\"%016" PRIx64 "\",\"object\":%" PRIu32 ",\"kind\":\"%s\",\"count\":%" PRIu64
                   ",\"total\":%" PRIu64 "}",
                   comma, sum->session, sum->object, truth_kind_name(sum->kind), sum->count, sum->total);
        comma = ",";
    }
    text_print(out, "]");
}

int truth_print_sessions(struct text *out, const struct truth *truth)
{
    struct sorting sorting;
    int result = sorting_init(&sorting, truth);
    if (result == 0) {
        uint32_t series = (uint32_t)truth->header->series;
        for (uint32_t number = 0; number < series; number++)
            sort_entry(&sorting, number);
        print_made(out, truth);
        print_flying(out, &sorting);
        add_up(&sorting);
        print_sums(out, &sorting);
    }
    sorting_fini(&sorting);
    return result;
}
