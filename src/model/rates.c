/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates, see rates.h. What is known of a stream lies in a map that each snapshot fills anew from the one before, so
   that what is gone is forgotten. A rate follows what was counted since the last snapshot by the share that this is
   of a second. */
#include "model/rates.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/kinds.h"
#include "model/path.h"
#include "model/streams.h"

#define SECOND 1000000000.0

struct known {
    uint64_t count, total;
    double count_rate, total_rate;
};

struct map {
    struct nt_streams streams;
    struct known *known;
};

struct nt_rates {
    struct nt_model model;
    uint64_t taken; /* when; 0: never */
    struct map maps[2];
    unsigned now; /* the map of the newest snapshot */
    struct nt_rate_row *all, *rows;
    size_t all_count, room;
    struct nt_rate_sums sums;
    struct nt_buffer text;
};

int nt_rates_new(struct nt_rates **ret_rates)
{
    *ret_rates = calloc(1, sizeof **ret_rates);
    return *ret_rates ? 0 : -ENOMEM;
}

void nt_rates_free(struct nt_rates *take_rates)
{
    if (!take_rates)
        return;
    for (int i = 0; i < 2; i++) {
        nt_streams_fini(&take_rates->maps[i].streams);
        free(take_rates->maps[i].known);
    }
    nt_model_fini(&take_rates->model);
    nt_buffer_fini(&take_rates->text);
    free(take_rates->all);
    free(take_rates->rows);
    free(take_rates);
}

const struct nt_model *nt_rates_model(const struct nt_rates *rates)
{
    return &rates->model;
}

struct nt_rate_sums nt_rates_sums(const struct nt_rates *rates)
{
    return rates->sums;
}

/* ---- Taking a snapshot ---- */

/* Programs, objects without sums, and all sums. */
static int make_room(struct nt_rates *rates)
{
    const struct nt_model *model = &rates->model;
    size_t count = model->program_count + (size_t)model->object_count;
    for (uint32_t i = 0; i < model->object_count; i++)
        count += model->objects[i].told.tally_count;
    if (count <= rates->room)
        return 0;
    struct nt_rate_row *all = reallocarray(rates->all, count, sizeof *all);
    rates->all = all ? all : rates->all;
    struct nt_rate_row *rows = all ? reallocarray(rates->rows, count, sizeof *rows) : NULL;
    rates->rows = rows ? rows : rates->rows;
    rates->room = rows ? count : rates->room;
    return rows ? 0 : -ENOMEM;
}

static double follow(double rate, uint64_t before, uint64_t after, double past)
{
    double share = past < 1 ? past : 1;
    double now = after >= before && past > 0 ? (double)(after - before) / past : 0;
    rate += (now - rate) * share;
    return rate < 0.001 ? 0 : rate;
}

/* What an object had counted that was not there at the last snapshot was counted since. */
static int take_tally(struct nt_rates *rates, const struct nt_model_object *object, uint32_t tally, double past,
                      struct nt_rate_row *row)
{
    const struct nt_source_tally *told = &object->told.tallies[tally];
    const struct nt_stream key = { rates->model.programs[object->told.program].told.number, object->told.slot,
                                   object->told.generation, told->kind };
    struct map *map = &rates->maps[rates->now], *before = &rates->maps[!rates->now];
    void *entries = map->known;
    uint32_t number, old = nt_streams_find(&before->streams, &key);
    int error = nt_streams_get(&map->streams, &key, &entries, sizeof *map->known, &number);
    map->known = entries;
    if (error != 0)
        return error;
    struct known *known = &map->known[number];
    *known = old != NT_MODEL_NONE ? before->known[old] : (struct known){ 0 };
    if (rates->taken != 0) {
        known->count_rate = follow(known->count_rate, known->count, told->count, past);
        known->total_rate = follow(known->total_rate, known->total, told->total, past);
    }
    known->count = told->count;
    known->total = told->total;
    row->count = known->count_rate;
    row->total = known->total_rate;
    rates->sums.count += row->count;
    if (told->kind == NT_MODEL_KIND_READ || told->kind == NT_MODEL_KIND_WRITE)
        rates->sums.bytes += row->total;
    return 0;
}

/* Opening, closing and succession are the tree's own shape. */
static bool is_shape(unsigned kind)
{
    return kind == NT_MODEL_KIND_OPEN || kind == NT_MODEL_KIND_CLOSE || kind == NT_MODEL_KIND_EPOCH;
}

/* What is closed, with all below it, is not shown while its program goes on. */
static int take_object(struct nt_rates *rates, uint32_t index, double past)
{
    const struct nt_model_object *object = &rates->model.objects[index];
    if (object->past && nt_model_alive(&rates->model.programs[object->told.program]))
        return 0;
    struct nt_rate_row row = {
        .program = object->told.program, .object = index, .tally = NT_MODEL_NONE, .label = true
    };
    int error = 0;
    rates->sums.objects += !object->told.closed;
    for (uint32_t i = 0; i < object->told.tally_count && error == 0; i++) {
        if (is_shape(object->told.tallies[i].kind))
            continue;
        row.tally = i;
        error = take_tally(rates, object, i, past, &row);
        rates->all[rates->all_count++] = row;
        row.label = false;
    }
    if (row.label)
        rates->all[rates->all_count++] = row;
    return error;
}

static int take_all(struct nt_rates *rates, double past)
{
    const struct nt_model *model = &rates->model;
    int error = make_room(rates);
    rates->all_count = 0;
    rates->sums = (struct nt_rate_sums){ .programs = model->program_count };
    for (uint32_t i = 0; i < model->program_count && error == 0; i++) {
        uint32_t number = model->programs_order[i];
        const struct nt_model_program *program = &model->programs[number];
        rates->sums.alive += nt_model_alive(program);
        rates->all[rates->all_count++] =
            (struct nt_rate_row){ .program = number, .object = NT_MODEL_NONE, .tally = NT_MODEL_NONE, .label = true };
        for (uint32_t k = 0; k < program->order_count && error == 0; k++)
            error = take_object(rates, model->order[program->order_first + k], past);
    }
    return error;
}

int nt_rates_take(struct nt_rates *rates, struct nt_model *take_model, uint64_t now)
{
    nt_model_fini(&rates->model);
    rates->model = *take_model;
    *take_model = (struct nt_model){ 0 };
    rates->now = !rates->now;
    nt_streams_clear(&rates->maps[rates->now].streams);
    int error = take_all(rates, rates->taken != 0 && now > rates->taken ? (double)(now - rates->taken) / SECOND : 0);
    rates->taken = now;
    if (error != 0)
        rates->all_count = 0;
    return error;
}

/* ---- Rows ---- */

static bool has(const char *data, size_t size, const char *sought, size_t sought_size)
{
    for (size_t at = 0; at + sought_size <= size; at++) {
        size_t same = 0;
        while (same < sought_size && tolower((unsigned char)data[at + same]) == tolower((unsigned char)sought[same]))
            same++;
        if (same == sought_size)
            return true;
    }
    return false;
}

static struct nt_bytes kind_of(const struct nt_rates *rates, const struct nt_rate_row *row,
                               char room[NT_MODEL_KIND_ROOM])
{
    const struct nt_model_object *object = &rates->model.objects[row->object];
    return nt_model_kind(&rates->model.programs[row->program], object->told.tallies[row->tally].kind, room);
}

static void path_of(struct nt_rates *rates, const struct nt_rate_row *row)
{
    nt_buffer_clear(&rates->text);
    if (row->object == NT_MODEL_NONE)
        nt_model_program_path_append(&rates->text, &rates->model, row->program);
    else
        nt_model_path_append(&rates->text, &rates->model, row->object);
}

/* `path_found`: of the object; asked for once for all its rows. */
static bool is_found(struct nt_rates *rates, const struct nt_rate_row *row, const char *filter, size_t size,
                     bool *path_found)
{
    char room[NT_MODEL_KIND_ROOM];
    if (row->label) {
        path_of(rates, row);
        *path_found = has(rates->text.data, rates->text.size, filter, size);
    }
    if (*path_found || row->tally == NT_MODEL_NONE)
        return *path_found;
    struct nt_bytes kind = kind_of(rates, row, room);
    return has(kind.data, kind.size, filter, size);
}

/* Rows without numbers are for the tree: programs, and objects but those that stand for a program. */
static bool is_wanted(const struct nt_rates *rates, const struct nt_rate_view *view, const struct nt_rate_row *row)
{
    if (row->tally != NT_MODEL_NONE)
        return !view->busy || row->count > 0;
    if (row->object == NT_MODEL_NONE)
        return view->tree;
    return view->tree && !view->busy && row->object != rates->model.programs[row->program].root;
}

static const struct nt_source_tally *tally_of(const struct nt_rates *rates, const struct nt_rate_row *row)
{
    return &rates->model.objects[row->object].told.tallies[row->tally];
}

static double number_of(const struct nt_rates *rates, const struct nt_rate_row *row, enum nt_rate_column column)
{
    const struct nt_source_tally *tally = tally_of(rates, row);
    switch (column) {
    case NT_RATE_COUNT_RATE:
        return row->count;
    case NT_RATE_TOTAL_RATE:
        return row->total;
    case NT_RATE_COUNT:
        return (double)tally->count;
    case NT_RATE_TOTAL:
        return (double)tally->total;
    case NT_RATE_MEAN:
        return tally->count > 0 ? (double)tally->total / (double)tally->count : 0;
    case NT_RATE_MAX:
        return (double)tally->max;
    case NT_RATE_LAST:
        return (double)tally->last;
    default:
        return 0;
    }
}

static size_t pick_rows(struct nt_rates *rates, const struct nt_rate_view *view)
{
    size_t size = view->filter ? strlen(view->filter) : 0, count = 0;
    bool path_found = true;
    const struct nt_rate_row *labelled = NULL; /* whose label is not shown yet */
    for (size_t i = 0; i < rates->all_count; i++) {
        const struct nt_rate_row *row = &rates->all[i];
        bool found = size == 0 || is_found(rates, row, view->filter, size, &path_found);
        labelled = row->label ? row : labelled;
        if (!found || !is_wanted(rates, view, row))
            continue;
        rates->rows[count] = *row;
        rates->rows[count].key = row->tally != NT_MODEL_NONE ? number_of(rates, row, view->sort) : 0;
        rates->rows[count++].label = labelled != NULL || !view->tree;
        labelled = NULL;
    }
    return count;
}

struct order {
    struct nt_rates *rates;
    const struct nt_rate_view *view;
};

static int compare_names(struct nt_rates *rates, const struct nt_rate_row *a, const struct nt_rate_row *b)
{
    char rooms[2][NT_MODEL_KIND_ROOM];
    struct nt_bytes first = kind_of(rates, a, rooms[0]), second = kind_of(rates, b, rooms[1]);
    int order = memcmp(first.data, second.data, first.size < second.size ? first.size : second.size);
    return order != 0 ? order : (first.size > second.size) - (first.size < second.size);
}

/* Rows that are alike stay in the order of the tree, so that they do not jump about. */
static int compare(const struct nt_rate_row *a, const struct nt_rate_row *b, const struct order *order)
{
    int result = a->key != b->key ? (a->key < b->key ? 1 : -1) : 0;
    if (order->view->sort == NT_RATE_KIND)
        result = compare_names(order->rates, a, b);
    if (order->view->reverse)
        result = -result;
    return result;
}

/* Rows are in the order of the tree, which is that of names but for siblings: these come as they opened. */
static void turn(struct nt_rate_row *rows, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct nt_rate_row row = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = row;
    }
}

/* A merge sort: of equal rows the first one stays the first. */
static void sort_rows(struct nt_rate_row *rows, struct nt_rate_row *spare, size_t count, const struct order *order)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = from + width < count ? from + width : count;
            size_t end = from + 2 * width < count ? from + 2 * width : count;
            size_t left = from, right = middle;
            for (size_t at = from; at < end; at++) {
                bool take_left = left < middle && (right >= end || compare(&rows[left], &rows[right], order) <= 0);
                spare[at] = take_left ? rows[left++] : rows[right++];
            }
        }
        memcpy(rows, spare, count * sizeof *rows);
    }
}

int nt_rates_rows(struct nt_rates *rates, const struct nt_rate_view *view, const struct nt_rate_row **ret_rows,
                  size_t *ret_count)
{
    size_t count = pick_rows(rates, view);
    if (!view->tree && view->sort == NT_RATE_OBJECT && view->reverse) {
        turn(rates->rows, count);
    } else if (!view->tree && view->sort != NT_RATE_OBJECT && count > 1) {
        const struct order order = { rates, view };
        struct nt_rate_row *spare = malloc(count * sizeof *spare);
        if (!spare)
            return -ENOMEM;
        sort_rows(rates->rows, spare, count, &order);
        free(spare);
    }
    *ret_rows = rates->rows;
    *ret_count = count;
    return rates->text.error;
}
