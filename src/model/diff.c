/* SPDX-License-Identifier: BSD-3-Clause */
/* What changed, see diff.h. All sums of both sides are put in one list, sorted, and those of one path and kind become
   one row. */
#include "model/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/kinds.h"
#include "model/memory.h"
#include "model/path.h"

struct nt_diff {
    struct nt_diff_row *rows;
    size_t count, room;
    bool joined;
    struct nt_buffer text;
    struct nt_model_memory *memory;
};

int nt_diff_new(struct nt_diff **ret_diff)
{
    *ret_diff = calloc(1, sizeof **ret_diff);
    return *ret_diff ? 0 : -ENOMEM;
}

void nt_diff_free(struct nt_diff *take_diff)
{
    if (!take_diff)
        return;
    free(take_diff->rows);
    nt_buffer_fini(&take_diff->text);
    nt_model_memory_free(take_diff->memory);
    free(take_diff);
}

/* ---- Paths ---- */

static bool is_known(const struct nt_model *model, uint64_t id)
{
    bool known = false;
    for (uint32_t i = 0; i < model->program_count && !known; i++)
        known = model->programs[i].told.id == id;
    return known;
}

/* Empty: out of memory. */
static struct nt_bytes keep(struct nt_diff *diff)
{
    struct nt_bytes kept = { NULL, diff->text.size };
    if (diff->text.error == 0)
        kept.data = nt_model_memory_copy(&diff->memory, diff->text.data, diff->text.size);
    return kept;
}

static struct nt_bytes path_of(struct nt_diff *diff, const struct nt_model *model, uint32_t index, bool same_log)
{
    const struct nt_model_object *object = &model->objects[index];
    const struct nt_model_program *program = nt_model_program_of(model, object);
    struct nt_bytes node = model->nodes[program->node].name, name = same_log ? program->full_name : program->told.name;
    struct nt_buffer *text = &diff->text;
    nt_buffer_clear(text);
    nt_model_program_path_append(text, model, object->told.program);
    size_t above = text->size;
    nt_model_path_append(text, model, index);
    size_t below = 2 * above, end = text->size; /* the object's part, with its slash */
    nt_text_append_path(text, node.data, node.size);
    nt_buffer_byte(text, '/');
    nt_text_append_path(text, name.data, name.size);
    if (text->error == 0 && nt_buffer_reserve(text, end - below) == 0) {
        nt_buffer_append(text, text->data + below, end - below);
        text->size -= end;
        memmove(text->data, text->data + end, text->size);
    }
    return keep(diff);
}

/* ---- Rows ---- */

static int add(struct nt_diff *diff, const struct nt_diff_row *row)
{
    if (!row->path.data || !row->kind.data)
        return -ENOMEM;
    if (diff->count == diff->room) {
        size_t room = diff->room > 0 ? 2 * diff->room : 256;
        struct nt_diff_row *more = reallocarray(diff->rows, room, sizeof *more);
        if (!more)
            return -ENOMEM;
        diff->rows = more;
        diff->room = room;
    }
    diff->rows[diff->count++] = *row;
    return 0;
}

static void set_kind(struct nt_diff *diff, const struct nt_model_program *program, unsigned kind,
                     struct nt_diff_row *row)
{
    char room[NT_MODEL_KIND_ROOM];
    const char *name = nt_model_kind_name(kind);
    row->unit = nt_model_kind_unit(kind);
    if (name) {
        row->kind = (struct nt_bytes){ name, strlen(name) };
        return;
    }
    struct nt_bytes own = nt_model_kind(program, kind, room);
    row->kind = (struct nt_bytes){ nt_model_memory_copy(&diff->memory, own.data, own.size), own.size };
}

/* Sums that a parent has taken up are those of the snapshot: of an earlier moment they are not known. */
static int add_object(struct nt_diff *diff, int side, const struct nt_model *model, const struct nt_moment *moment,
                      uint32_t index, bool same_log)
{
    const struct nt_model_object *object = &model->objects[index];
    const struct nt_model_program *program = nt_model_program_of(model, object);
    const struct nt_source_object *told = &object->told;
    struct nt_diff_row row = { .path = path_of(diff, model, index, same_log) };
    int error = 0;
    for (size_t i = 0; i < told->tally_count && error == 0; i++) {
        struct nt_moment_sum sum = nt_moment_sum(moment, model, object, &told->tallies[i]);
        set_kind(diff, program, told->tallies[i].kind, &row);
        row.sides[side] = (struct nt_diff_side){ true, nt_moment_closed(moment, object), sum.count, sum.total,
                                                 sum.bound };
        error = add(diff, &row);
    }
    row.folded = true;
    for (size_t i = 0; i < told->gone_count && error == 0 && moment->time == NT_MOMENT_END; i++) {
        set_kind(diff, program, told->gone[i].kind, &row);
        row.sides[side] = (struct nt_diff_side){ true, true, told->gone[i].count, told->gone[i].total, NT_MODEL_EXACT };
        error = add(diff, &row);
    }
    return error;
}

int nt_diff_add(struct nt_diff *diff, int side, const struct nt_model *model, const struct nt_moment *moment,
                const struct nt_model *other)
{
    int error = 0;
    for (uint32_t i = 0; i < model->program_count && error == 0; i++) {
        const struct nt_model_program *program = &model->programs[i];
        bool same_log = is_known(other, program->told.id);
        for (uint32_t k = 0; k < program->order_count && error == 0; k++) {
            uint32_t index = model->order[program->order_first + k];
            if (nt_moment_has(moment, &model->objects[index]))
                error = add_object(diff, side, model, moment, index, same_log);
        }
    }
    return error;
}

/* ---- Order ---- */

static int compare_bytes(struct nt_bytes first, struct nt_bytes second)
{
    int order = memcmp(first.data, second.data, first.size < second.size ? first.size : second.size);
    return order != 0 ? order : (first.size > second.size) - (first.size < second.size);
}

static int by_name(const void *first, const void *second)
{
    const struct nt_diff_row *a = first, *b = second;
    int order = compare_bytes(a->path, b->path);
    order = order != 0 ? order : (int)a->folded - (int)b->folded;
    return order != 0 ? order : compare_bytes(a->kind, b->kind);
}

static uint64_t distance(uint64_t first, uint64_t second)
{
    return first > second ? first - second : second - first;
}

static int compare_change(const struct nt_diff_row *a, const struct nt_diff_row *b, bool total)
{
    uint64_t first = total ? distance(a->sides[0].total, a->sides[1].total)
                           : distance(a->sides[0].count, a->sides[1].count);
    uint64_t second = total ? distance(b->sides[0].total, b->sides[1].total)
                            : distance(b->sides[0].count, b->sides[1].count);
    return first != second ? (first < second ? 1 : -1) : by_name(a, b);
}

static int by_count(const void *first, const void *second)
{
    return compare_change(first, second, false);
}

static int by_total(const void *first, const void *second)
{
    return compare_change(first, second, true);
}

/* ---- Joining ---- */

static void join_side(struct nt_diff_side *side, const struct nt_diff_side *more)
{
    if (!more->there)
        return;
    side->closed = more->closed && (side->closed || !side->there);
    side->there = true;
    side->count += more->count;
    side->total += more->total;
    if (side->bound == NT_MODEL_EXACT)
        side->bound = more->bound;
    else if (more->bound != NT_MODEL_EXACT && more->bound != side->bound)
        side->bound = NT_MODEL_ABOUT;
}

static void join(struct nt_diff *diff)
{
    size_t count = 0;
    if (diff->joined)
        return;
    diff->joined = true;
    if (diff->count > 0)
        qsort(diff->rows, diff->count, sizeof *diff->rows, by_name);
    for (size_t i = 0; i < diff->count; i++) {
        if (count > 0 && by_name(&diff->rows[count - 1], &diff->rows[i]) == 0) {
            join_side(&diff->rows[count - 1].sides[0], &diff->rows[i].sides[0]);
            join_side(&diff->rows[count - 1].sides[1], &diff->rows[i].sides[1]);
        } else {
            diff->rows[count++] = diff->rows[i];
        }
    }
    diff->count = count;
}

static bool is_same(const struct nt_diff_row *row)
{
    const struct nt_diff_side *before = &row->sides[0], *after = &row->sides[1];
    return before->there == after->there && before->closed == after->closed && before->count == after->count &&
           before->total == after->total;
}

const struct nt_diff_row *nt_diff_rows(struct nt_diff *diff, enum nt_diff_order by, bool all, size_t *ret_count)
{
    size_t count = 0;
    join(diff);
    for (size_t i = 0; i < diff->count; i++) {
        if (all || !is_same(&diff->rows[i]))
            diff->rows[count++] = diff->rows[i];
    }
    diff->count = count;
    if (count > 0)
        qsort(diff->rows, count, sizeof *diff->rows, by == NT_DIFF_BY_TOTAL ? by_total : by_count);
    *ret_count = count;
    return diff->rows;
}

uint64_t nt_diff_time(const struct nt_model *model)
{
    uint64_t time = 0;
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_source_program *told = &model->programs[i].told;
        time = told->started > time ? told->started : time;
        time = told->ended > time ? told->ended : time;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct nt_source_object *told = &model->objects[i].told;
        time = told->closed_at > time ? told->closed_at : time;
        for (size_t k = 0; k < told->tally_count; k++)
            time = told->tallies[k].last > time ? told->tallies[k].last : time;
    }
    return time;
}
