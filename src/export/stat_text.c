/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics tree as text: what was lost first, then a line an object and kind, exact numbers, aligned. It goes
   over the tree twice, to measure columns and to write, and keeps no rows. What is closed is summed up in one
   line a parent while its program goes on, and where it is much. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/parts.h"
#include "model/histogram.h"
#include "model/kinds.h"

#include <nt/log_layout.h>

#define KINDS 256u
#define LISTED_CLOSED 64u /* closed children that are listed where the program has ended */
#define INDENTED 20u      /* levels */
#define LABEL_LEAST 24u
#define LABEL_MOST 48u
#define TOTAL_WIDTH 100u
#define TITLE "NODE/PROGRAM/OBJECT"

enum { EVENT, COUNT, TOTAL, UNIT, MAX, MEAN, LAST, COLUMNS };

struct writer {
    const struct nt_export_input *input;
    struct nt_buffer *out; /* NULL: measures */
    struct nt_buffer label;
    struct nt_buffer cells[COLUMNS];
    size_t label_width;
    size_t widths[COLUMNS];
    uint8_t *summed;                    /* by object: is in its parent's line of closed ones */
    bool pending;                       /* the label was not written yet */
    struct nt_source_tally sums[KINDS]; /* of what is closed; all zeros between two lines of it */
};

/* ---- Rows ---- */

static void label_begin(struct writer *writer, size_t level)
{
    nt_buffer_clear(&writer->label);
    nt_buffer_repeat(&writer->label, ' ', 2 * (level < INDENTED ? level : INDENTED));
    if (level > INDENTED)
        nt_buffer_print(&writer->label, "[%zu] ", level);
    writer->pending = true;
}

/* All but names of kinds are plain characters. */
static size_t cell_width(const struct writer *writer, int column)
{
    const struct nt_buffer *cell = &writer->cells[column];
    return column == EVENT ? nt_text_width(cell->data, cell->size) : cell->size;
}

static void write_cells(struct writer *writer, int count)
{
    static const bool right[COLUMNS] = { [COUNT] = true, [TOTAL] = true, [MAX] = true, [MEAN] = true, [LAST] = true };
    for (int column = 0; column < count; column++) {
        const struct nt_buffer *cell = &writer->cells[column];
        size_t taken = cell_width(writer, column);
        size_t room = writer->widths[column] > taken ? writer->widths[column] - taken : 0;
        nt_buffer_text(writer->out, column == UNIT ? " " : "  ");
        nt_buffer_repeat(writer->out, ' ', right[column] ? room : 0);
        nt_buffer_append(writer->out, cell->data, cell->size);
        nt_buffer_repeat(writer->out, ' ', right[column] || column + 1 == count ? 0 : room);
    }
}

/* The label, if it is not written yet, and the cells; a label that is too wide has a line of its own. */
static void write_row(struct writer *writer, bool with_cells)
{
    struct nt_buffer *out = writer->out;
    size_t width = 0;
    int count = with_cells ? COLUMNS : 0;
    while (count > 0 && writer->cells[count - 1].size == 0)
        count--;
    if (writer->pending) {
        width = nt_text_width(writer->label.data, writer->label.size);
        nt_buffer_append(out, writer->label.data, writer->label.size);
        writer->pending = false;
    }
    if (count > 0 && width > writer->label_width) {
        nt_buffer_byte(out, '\n');
        width = 0;
    }
    if (count > 0)
        nt_buffer_repeat(out, ' ', writer->label_width - width);
    write_cells(writer, count);
    nt_buffer_byte(out, '\n');
}

static void widen(size_t *width, size_t to)
{
    *width = to > *width ? to : *width;
}

static void measure_label(struct writer *writer)
{
    if (writer->pending)
        widen(&writer->label_width, nt_text_width(writer->label.data, writer->label.size));
    writer->pending = false;
}

/* The label alone, if it has not been written. */
static void label_end(struct writer *writer)
{
    if (writer->pending && writer->out)
        write_row(writer, false);
    writer->pending = false;
}

/* Opening, closing and succession are the tree's own shape: they are told only where they are asked for. */
static bool is_shape(const struct writer *writer, unsigned kind)
{
    bool shape = kind == NT_MODEL_KIND_OPEN || kind == NT_MODEL_KIND_CLOSE || kind == NT_MODEL_KIND_EPOCH;
    return shape && !writer->input->all;
}

static bool is_shown(const struct writer *writer, uint32_t index, unsigned kind)
{
    if (is_shape(writer, kind) && nt_export_picked(writer->input, index) != NT_MODEL_PICKED_KINDS)
        return false;
    return nt_model_selected(writer->input->selection, index, kind);
}

/* What write_sum would need, without writing it. */
static void measure_sum(struct writer *writer, struct nt_bytes kind, const char *unit,
                        const struct nt_source_tally *sum, bool full)
{
    size_t *widths = writer->widths;
    measure_label(writer);
    nt_buffer_clear(&writer->cells[EVENT]);
    nt_text_append(&writer->cells[EVENT], kind.data, kind.size);
    widen(&widths[EVENT], cell_width(writer, EVENT));
    widen(&widths[COUNT], nt_buffer_digits(sum->count));
    widen(&widths[TOTAL], nt_buffer_digits(sum->total));
    widen(&widths[UNIT], strlen(unit));
    widen(&widths[MAX], full ? nt_buffer_digits(sum->max) : 0);
    if (sum->count > 0) {
        uint64_t mean = sum->total / sum->count;
        widen(&widths[MEAN], nt_buffer_digits(mean < UINT64_MAX ? mean + 1 : mean) + 3); /* it may be rounded up */
    }
}

static void write_sum(struct writer *writer, struct nt_bytes kind, const char *unit, const struct nt_source_tally *sum,
                      bool full)
{
    struct nt_buffer *cells = writer->cells;
    for (int column = 0; column < COLUMNS; column++)
        nt_buffer_clear(&cells[column]);
    nt_text_append(&cells[EVENT], kind.data, kind.size);
    nt_buffer_u64(&cells[COUNT], sum->count);
    nt_buffer_u64(&cells[TOTAL], sum->total);
    nt_buffer_text(&cells[UNIT], unit);
    if (full)
        nt_buffer_u64(&cells[MAX], sum->max);
    if (sum->count > 0)
        nt_buffer_ratio(&cells[MEAN], sum->total, sum->count, 2, false);
    if (full && sum->last != 0 && writer->input->now >= sum->last)
        nt_export_age(&cells[LAST], writer->input->now - sum->last);
    write_row(writer, true);
}

/* One kind's row. `full`: the maximum and the time are known. */
static void sum_row(struct writer *writer, const struct nt_model_program *program, const struct nt_source_tally *sum,
                    bool full)
{
    char room[NT_MODEL_KIND_ROOM];
    struct nt_bytes kind = nt_model_kind(program, sum->kind, room);
    const char *unit = nt_model_kind_unit(sum->kind);
    if (!unit || strcmp(unit, "count") == 0)
        unit = "";
    (writer->out ? write_sum : measure_sum)(writer, kind, unit, sum, full);
}

static void sum_rows(struct writer *writer, uint32_t index, const struct nt_source_tally *sums, size_t count, bool full)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_model_program *program = nt_model_program_of(model, &model->objects[index]);
    for (size_t i = 0; i < count; i++) {
        if (is_shown(writer, index, sums[i].kind))
            sum_row(writer, program, &sums[i], full);
    }
}

/* ---- What is closed ---- */

static void add_sums(struct writer *writer, const struct nt_source_tally *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct nt_source_tally *sum = &writer->sums[sums[i].kind % KINDS];
        sum->kind = sums[i].kind;
        sum->count += sums[i].count;
        sum->total += sums[i].total;
        sum->max = sums[i].max > sum->max ? sums[i].max : sum->max;
        sum->last = sums[i].last > sum->last ? sums[i].last : sum->last;
    }
}

/* Adds an object and all below it. */
static void add_subtree(struct writer *writer, uint32_t top)
{
    const struct nt_model_object *objects = writer->input->model->objects;
    uint32_t at = top;
    for (;;) {
        const struct nt_source_object *told = &objects[at].told;
        add_sums(writer, told->tallies, told->tally_count);
        add_sums(writer, told->gone, told->gone_count);
        if (objects[at].first != NT_MODEL_NONE) {
            at = objects[at].first;
            continue;
        }
        while (at != top && objects[at].next == NT_MODEL_NONE)
            at = objects[at].parent;
        if (at == top)
            return;
        at = objects[at].next;
    }
}

/* Marks those of a list of siblings that are summed up; returns how many. */
static size_t mark_closed(struct writer *writer, const struct nt_model_program *program, uint32_t first)
{
    const struct nt_model_object *objects = writer->input->model->objects;
    size_t closed = 0;
    for (uint32_t at = first; at != NT_MODEL_NONE; at = objects[at].next)
        closed += objects[at].past;
    if (writer->input->all || (!nt_model_alive(program) && closed <= LISTED_CLOSED))
        return 0;
    for (uint32_t at = first; at != NT_MODEL_NONE; at = objects[at].next) {
        writer->summed[at] = objects[at].past;
        if (objects[at].past)
            add_subtree(writer, at);
    }
    return closed;
}

/* The line of what is closed below an object, or (index NT_MODEL_NONE) directly below the program. */
static void closed_rows(struct writer *writer, const struct nt_model_program *program, uint32_t index, size_t level)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_source_object *told = index == NT_MODEL_NONE ? NULL : &model->objects[index].told;
    uint32_t first = told ? model->objects[index].first : program->first;
    size_t closed = mark_closed(writer, program, first);
    bool older = told && told->gone_count > 0;
    if (older)
        add_sums(writer, told->gone, told->gone_count);
    if (closed == 0 && !older)
        return;
    label_begin(writer, level);
    if (closed > 0)
        nt_buffer_print(&writer->label, "(%zu closed%s)", closed, older ? " and earlier ones" : "");
    else
        nt_buffer_text(&writer->label, "(closed earlier)");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (writer->sums[kind].kind != 0 && !is_shape(writer, kind))
            sum_row(writer, program, &writer->sums[kind], true);
    }
    label_end(writer);
    memset(writer->sums, 0, sizeof writer->sums);
}

/* ---- The tree ---- */

/* Who is at the other end, if the program knew. */
static void remote_label(struct nt_buffer *label, const struct nt_source_rare *rare)
{
    if (!rare || rare->remote_node.size + rare->remote_process.size == 0)
        return;
    bool both = rare->remote_node.size > 0 && rare->remote_process.size > 0;
    nt_buffer_text(label, both ? ", to " : rare->remote_node.size > 0 ? ", to node " : ", to process ");
    nt_text_append(label, rare->remote_node.data, rare->remote_node.size);
    nt_buffer_text(label, both ? "/" : "");
    nt_text_append(label, rare->remote_process.data, rare->remote_process.size);
}

static void object_label(struct writer *writer, const struct nt_model_object *object)
{
    char room[NT_MODEL_KIND_ROOM];
    struct nt_bytes kind = nt_model_object_kind(object, room);
    struct nt_buffer *label = &writer->label;
    nt_model_name_append(label, object);
    nt_buffer_text(label, "  ");
    nt_buffer_append(label, kind.data, kind.size);
    if (object->told.epoch > 0 || object->successor != NT_MODEL_NONE)
        nt_buffer_print(label, ", epoch %u", object->told.epoch);
    if (object->successor != NT_MODEL_NONE)
        nt_buffer_text(label, ", superseded");
    else if (object->told.closed)
        nt_buffer_text(label, ", closed");
    if (object->adrift)
        nt_buffer_text(label, ", parent unknown");
    remote_label(label, object->told.rare);
}

/* Sums beside the object's own: of its lineage, of before the log knew it. */
static void other_rows(struct writer *writer, uint32_t index, size_t level)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_model_object *object = &model->objects[index];
    const struct nt_source_object *told = &object->told;
    const struct nt_model_program *program = nt_model_program_of(model, object);
    if (told->lineage_count > 0) {
        label_begin(writer, level);
        nt_buffer_print(&writer->label, "(all %u epochs)", told->epoch + 1);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            struct nt_source_tally sum = nt_model_lineage(object, kind);
            if (sum.count > 0 && is_shown(writer, index, kind))
                sum_row(writer, program, &sum, false);
        }
        label_end(writer);
    }
    if (told->base_count > 0) {
        label_begin(writer, level);
        nt_buffer_text(&writer->label, told->described & NT_DESCRIBED_FORKED ? "(before the fork" : "(before the log");
        nt_buffer_text(&writer->label, told->described & NT_DESCRIBED_LATE ? ", at most)" : ")");
        sum_rows(writer, index, told->base, told->base_count, false);
        label_end(writer);
    }
}

/* By the upper ends of the buckets that they lie in. */
static void histogram_rows(struct writer *writer, uint32_t index, size_t level)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_source_rare *rare = model->objects[index].told.rare;
    for (size_t i = 0; rare && i < rare->histogram_count; i++) {
        const struct nt_source_histogram *histogram = &rare->histograms[i];
        char room[NT_MODEL_KIND_ROOM];
        struct nt_bytes kind = nt_model_kind(nt_model_program_of(model, &model->objects[index]), histogram->kind, room);
        if (!is_shown(writer, index, histogram->kind))
            continue;
        label_begin(writer, level);
        nt_buffer_byte(&writer->label, '(');
        nt_text_append(&writer->label, kind.data, kind.size);
        nt_buffer_print(&writer->label, ": half up to %" PRIu64 ", 90%% up to %" PRIu64 ", 99%% up to %" PRIu64 ")",
                        nt_model_quantile(histogram, 500)->high, nt_model_quantile(histogram, 900)->high,
                        nt_model_quantile(histogram, 990)->high);
        label_end(writer);
    }
}

static void write_object(struct writer *writer, uint32_t index, size_t level)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_model_object *object = &model->objects[index];
    enum nt_model_picked picked = nt_export_picked(writer->input, index);
    if (index != nt_model_program_of(model, object)->root) {
        label_begin(writer, level);
        object_label(writer, object);
    }
    sum_rows(writer, index, object->told.tallies, object->told.tally_count, true);
    label_end(writer);
    if (picked != NT_MODEL_PICKED_ABOVE) {
        histogram_rows(writer, index, level + 1);
        other_rows(writer, index, level + 1);
    }
    if (picked == NT_MODEL_PICKED_WHOLE)
        closed_rows(writer, nt_model_program_of(model, object), index, level + 1);
}

static void program_label(struct writer *writer, const struct nt_model_program *program)
{
    const struct nt_source_program *told = &program->told;
    struct nt_buffer *label = &writer->label;
    nt_text_append(label, told->name.data, told->name.size);
    nt_buffer_print(label, "  pid %u, ", told->pid);
    nt_buffer_text(label, nt_export_state(told->state));
    nt_buffer_text(label, told->replaced ? " (exec)" : "");
}

/* The first object that is not below the one at `at`, in the program's order. */
static uint32_t skip_subtree(const struct nt_model *model, const struct nt_model_program *program, uint32_t at)
{
    uint32_t depth = model->objects[model->order[at]].depth;
    uint32_t end = program->order_first + program->order_count;
    do
        at++;
    while (at < end && model->objects[model->order[at]].depth > depth);
    return at;
}

static void write_program(struct writer *writer, uint32_t number)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_model_program *program = &model->programs[number];
    bool whole = !writer->input->selection || writer->input->selection->programs[number] == NT_MODEL_PICKED_WHOLE;
    label_begin(writer, 1);
    program_label(writer, program);
    if (program->root == NT_MODEL_NONE)
        label_end(writer);
    if (whole && program->root == NT_MODEL_NONE)
        closed_rows(writer, program, NT_MODEL_NONE, 2);
    uint32_t at = program->order_first, end = at + program->order_count;
    uint32_t top = NT_MODEL_NONE; /* the object directly under the program that the others are below */
    while (at < end) {
        uint32_t index = model->order[at];
        const struct nt_model_object *object = &model->objects[index];
        if (writer->summed[index] || nt_export_picked(writer->input, index) == NT_MODEL_PICKED_NOT) {
            at = skip_subtree(model, program, at);
            continue;
        }
        top = object->depth == 0 ? index : top;
        write_object(writer, index, object->depth + (top == program->root ? 1 : 2));
        at++;
    }
    label_end(writer);
}

static void write_tree(struct writer *writer)
{
    const struct nt_model *model = writer->input->model;
    memset(writer->summed, 0, model->object_count);
    for (uint32_t i = 0; i < model->node_count; i++) {
        const struct nt_model_node *node = &model->nodes[i];
        if (writer->input->selection && writer->input->selection->nodes[i] == NT_MODEL_PICKED_NOT)
            continue;
        label_begin(writer, 0);
        nt_text_append(&writer->label, node->name.data, node->name.size);
        label_end(writer);
        for (uint32_t j = 0; j < node->programs_count; j++) {
            uint32_t program = model->programs_order[node->programs_first + j];
            if (nt_export_has_program(writer->input, program))
                write_program(writer, program);
        }
    }
}

static const char *const heads[COLUMNS] = { "EVENT", "COUNT", "TOTAL", "", "MAX", "MEAN", "LAST" };

static void write_heads(struct writer *writer)
{
    label_begin(writer, 0);
    nt_buffer_text(&writer->label, TITLE);
    for (int column = 0; column < COLUMNS; column++) {
        nt_buffer_clear(&writer->cells[column]);
        nt_buffer_text(&writer->cells[column], heads[column]);
    }
    write_row(writer, true);
}

static void measure_heads(struct writer *writer)
{
    writer->label_width = strlen(TITLE);
    for (int column = 0; column < COLUMNS; column++)
        writer->widths[column] = strlen(heads[column]);
    writer->widths[LAST] = 6;
}

static void settle_widths(struct writer *writer)
{
    size_t others = 2 * COLUMNS - 1;
    for (int column = 0; column < COLUMNS; column++)
        others += writer->widths[column];
    size_t most = others + LABEL_LEAST < TOTAL_WIDTH ? TOTAL_WIDTH - others : LABEL_LEAST;
    most = most < LABEL_MOST ? most : LABEL_MOST;
    if (writer->label_width > most)
        writer->label_width = most;
}

static void writer_fini(struct writer *writer)
{
    free(writer->summed);
    nt_buffer_fini(&writer->label);
    for (int column = 0; column < COLUMNS; column++)
        nt_buffer_fini(&writer->cells[column]);
}

void nt_export_text_stat(const struct nt_export_input *input, struct nt_buffer *out)
{
    struct writer writer __attribute__((cleanup(writer_fini))) = { .input = input };
    writer.summed = malloc((size_t)input->model->object_count + 1);
    if (!writer.summed) {
        (void)nt_buffer_fail(out, -ENOMEM);
        return;
    }
    nt_export_loss(input, "lost: ", out);
    measure_heads(&writer);
    write_tree(&writer);
    settle_widths(&writer);
    writer.out = out;
    write_heads(&writer);
    write_tree(&writer);
    for (int column = 0; column < COLUMNS; column++)
        (void)nt_buffer_fail(out, writer.cells[column].error);
    (void)nt_buffer_fail(out, writer.label.error);
}
