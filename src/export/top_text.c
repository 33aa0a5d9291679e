/* SPDX-License-Identifier: BSD-3-Clause */
/* A view of rates as text, see top.h. Columns have fixed widths, so that nothing moves but numbers; the object comes
   last. Narrow lines have fewer columns, and paths without their beginning. */
#include "export/top.h"

#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "export/parts.h"
#include "model/histogram.h"
#include "model/kinds.h"
#include "model/path.h"

#define BAR 8u /* cells of a histogram */
#define INDENTED 20u

static const char *const heads[NT_RATE_COLUMNS] = {
#define NT_RATE_COLUMN(symbol, head, text) head,
#include "model/rates.def"
#undef NT_RATE_COLUMN
};

static const size_t widths[NT_RATE_COLUMNS] = {
    [NT_RATE_COUNT_RATE] = 9, [NT_RATE_TOTAL_RATE] = 9, [NT_RATE_COUNT] = 12, [NT_RATE_TOTAL] = 9,  [NT_RATE_MEAN] = 9,
    [NT_RATE_MAX] = 9,        [NT_RATE_LAST] = 6,       [NT_RATE_KIND] = 11,  [NT_RATE_OBJECT] = 0,
};

/* Lines less wide than that do without the column, unless it is the one that is sorted by. */
static const size_t least_widths[NT_RATE_COLUMNS] = {
    [NT_RATE_COUNT] = 50, [NT_RATE_TOTAL] = 70, [NT_RATE_LAST] = 90, [NT_RATE_MAX] = 110, [NT_RATE_MEAN] = 120
};

static bool is_sorted_by(const struct nt_export_top *top, int column)
{
    return !top->view->tree && top->view->sort == (enum nt_rate_column)column;
}

static bool has_column(const struct nt_export_top *top, int column)
{
    return top->width == 0 || top->width >= least_widths[column] || is_sorted_by(top, column);
}

/* ---- Cells ---- */

/* In at most six characters: 999, 12.3k, 4.56M; with a unit of bytes or of time. */
static void append_short(struct nt_buffer *out, double number, const char *unit)
{
    static const char *const thousands[] = { "", "k", "M", "G", "T", "P", "E" };
    static const char *const times[] = { "ns", "us", "ms", "s", "ks", "Ms", "Gs" };
    bool time = unit && strcmp(unit, "ns") == 0;
    size_t step = 0;
    while (number >= 999.5 && step < 6) {
        number /= 1000;
        step++;
    }
    int decimals = number >= 99.95 || (step == 0 && number == (double)(uint64_t)number) ? 0 : number >= 9.995 ? 1 : 2;
    nt_buffer_print(out, "%.*f%s", decimals, number, (time ? times : thousands)[step]);
    nt_buffer_text(out, unit && strcmp(unit, "bytes") == 0 ? "B" : "");
}

/* Of a histogram, the counts from its least to its greatest bucket, in up to eight cells. */
static void append_bar(struct nt_buffer *out, const struct nt_source_histogram *histogram, bool plain)
{
    static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char dots[] = " .:-=+*#@";
    uint64_t cells[BAR] = { 0 }, most = 1;
    for (size_t i = 0; histogram && i < histogram->bucket_count; i++) {
        uint64_t *cell = &cells[histogram->bucket_count > BAR ? i * BAR / histogram->bucket_count : i];
        *cell += histogram->buckets[i].count;
        most = *cell > most ? *cell : most;
    }
    for (size_t i = 0; i < BAR; i++) {
        size_t level = (size_t)(((double)cells[i] * 8 + (double)most - 1) / (double)most);
        level = level > 8 ? 8 : level;
        if (plain)
            nt_buffer_byte(out, dots[level]);
        else
            nt_buffer_text(out, blocks[level]);
    }
}

static void append_number(const struct nt_export_top *top, const struct nt_rate_row *row,
                          const struct nt_source_tally *tally, int column, struct nt_buffer *out)
{
    const char *unit = nt_model_kind_unit(tally->kind);
    switch (column) {
    case NT_RATE_COUNT_RATE:
        append_short(out, row->count, NULL);
        break;
    case NT_RATE_TOTAL_RATE:
        append_short(out, row->total, unit);
        break;
    case NT_RATE_COUNT:
        nt_buffer_u64(out, tally->count);
        break;
    case NT_RATE_TOTAL:
        append_short(out, (double)tally->total, unit);
        break;
    case NT_RATE_MEAN:
        append_short(out, tally->count > 0 ? (double)tally->total / (double)tally->count : 0, unit);
        break;
    case NT_RATE_MAX:
        append_short(out, (double)tally->max, unit);
        break;
    default:
        if (tally->last != 0 && top->now >= tally->last)
            nt_export_age(out, top->now - tally->last);
        break;
    }
}

/* The end of a path, in that many columns. */
static void append_end(struct nt_buffer *out, const struct nt_buffer *path, size_t room)
{
    size_t at = 0, width = nt_text_width(path->data, path->size);
    if (width > room)
        nt_buffer_text(out, "..");
    while (at < path->size && width > room) {
        uint32_t point;
        size_t size = nt_text_decode(path->data + at, path->size - at, &point);
        at += size > 0 ? size : 1;
        width = nt_text_width(path->data + at, path->size - at) + 2;
    }
    nt_buffer_append(out, path->data + at, path->size - at);
}

/* In a tree the name, below its parent's. `used`: columns of the line so far. */
static void append_label(const struct nt_export_top *top, const struct nt_rate_row *row, size_t used,
                         struct nt_buffer *out)
{
    const struct nt_model *model = nt_rates_model(top->rates);
    if (!top->view->tree) {
        struct nt_buffer path = { 0 };
        nt_model_path_append(&path, model, row->object);
        append_end(out, &path, top->width == 0 ? SIZE_MAX : top->width > used ? top->width - used : 0);
        (void)nt_buffer_fail(out, path.error);
        nt_buffer_fini(&path);
        return;
    }
    if (!row->label)
        return;
    if (row->object == NT_MODEL_NONE || row->object == model->programs[row->program].root) {
        if (row->object != NT_MODEL_NONE)
            return;
        nt_model_program_path_append(out, model, row->program);
        nt_buffer_print(out, "  %s", nt_export_state(model->programs[row->program].told.state));
        return;
    }
    const struct nt_model_object *object = &model->objects[row->object];
    uint32_t level = object->depth > 0 ? object->depth : 1; /* what stands for the program is not shown */
    nt_buffer_repeat(out, ' ', 2 * (level < INDENTED ? level : INDENTED));
    nt_model_name_append(out, object);
    nt_buffer_text(out, object->told.closed ? "  closed" : "");
}

/* ---- Lines ---- */

/* Ends the line that began there: cut to the width, and without what a plain terminal cannot show. */
static void line_end(const struct nt_export_top *top, struct nt_buffer *out, size_t from)
{
    size_t at = from, width = 0;
    while (at < out->size && out->error == 0) {
        uint32_t point = (unsigned char)out->data[at];
        size_t size = point < 0x80 ? 1 : nt_text_decode(out->data + at, out->size - at, &point);
        size = size > 0 ? size : 1;
        if (top->plain && point >= 0x80) {
            out->data[at] = '?';
            memmove(out->data + at + 1, out->data + at + size, out->size - at - size);
            out->size -= size - 1;
            size = 1;
        }
        width += nt_text_width(out->data + at, size);
        if (top->width != 0 && width > top->width)
            out->size = at;
        at += size;
    }
    while (out->error == 0 && out->size > from && out->data[out->size - 1] == ' ')
        out->size--;
    nt_buffer_byte(out, '\n');
}

static void write_cell(struct nt_buffer *out, const struct nt_buffer *cell, int column)
{
    size_t taken = nt_text_width(cell->data, cell->size);
    size_t room = widths[column] > taken ? widths[column] - taken : 0;
    bool right = column < NT_RATE_KIND;
    nt_buffer_repeat(out, ' ', right ? room : 0);
    nt_buffer_append(out, cell->data, cell->size);
    nt_buffer_repeat(out, ' ', right ? 1 : room + 1);
}

static bool has_bars(const struct nt_model *model)
{
    bool bars = false;
    for (uint32_t i = 0; i < model->object_count && !bars; i++)
        bars = model->objects[i].told.rare && model->objects[i].told.rare->histogram_count > 0;
    return bars;
}

static void write_row(const struct nt_export_top *top, const struct nt_rate_row *row, bool bars, struct nt_buffer *out)
{
    const struct nt_model *model = nt_rates_model(top->rates);
    const struct nt_source_object *told = row->object != NT_MODEL_NONE ? &model->objects[row->object].told : NULL;
    const struct nt_source_tally *tally = told && row->tally != NT_MODEL_NONE ? &told->tallies[row->tally] : NULL;
    struct nt_buffer cell = { 0 };
    char room[NT_MODEL_KIND_ROOM];
    size_t from = out->size;
    for (int column = 0; column < NT_RATE_OBJECT; column++) {
        if (!has_column(top, column))
            continue;
        nt_buffer_clear(&cell);
        if (tally && column == NT_RATE_KIND) {
            struct nt_bytes kind = nt_model_kind(&model->programs[row->program], tally->kind, room);
            nt_text_append(&cell, kind.data, kind.size);
        } else if (tally) {
            append_number(top, row, tally, column, &cell);
        }
        write_cell(out, &cell, column);
    }
    (void)nt_buffer_fail(out, cell.error);
    nt_buffer_fini(&cell);
    if (bars) {
        append_bar(out, tally ? nt_model_histogram(told, tally->kind) : NULL, top->plain);
        nt_buffer_byte(out, ' ');
    }
    append_label(top, row, nt_text_width(out->data + from, out->size - from), out);
    line_end(top, out, from);
}

/* A mark says by which column it is sorted. */
static void write_heads(const struct nt_export_top *top, bool bars, struct nt_buffer *out)
{
    struct nt_buffer cell = { 0 };
    size_t from = out->size;
    for (int column = 0; column < NT_RATE_COLUMNS; column++) {
        bool sorted = is_sorted_by(top, column);
        if (!has_column(top, column))
            continue;
        if (bars && column == NT_RATE_OBJECT)
            nt_buffer_text(out, "VALUES   ");
        nt_buffer_clear(&cell);
        nt_buffer_text(&cell, heads[column]);
        nt_buffer_text(&cell, sorted ? top->view->reverse ? "^" : "v" : "");
        write_cell(out, &cell, column);
    }
    (void)nt_buffer_fail(out, cell.error);
    nt_buffer_fini(&cell);
    line_end(top, out, from);
}

static struct nt_source_program losses(const struct nt_model *model)
{
    struct nt_source_program sum = { 0 };
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_source_program *told = &model->programs[i].told;
        sum.overwritten += told->overwritten;
        sum.dropped += told->dropped;
        sum.refused_objects += told->refused_objects;
        sum.refused_tallies += told->refused_tallies;
    }
    return sum;
}

static void write_summary(const struct nt_export_top *top, struct nt_buffer *out)
{
    struct nt_rate_sums sums = nt_rates_sums(top->rates);
    size_t from = out->size;
    nt_buffer_text(out, "ntscope ");
    nt_time_append(out, top->now);
    out->size -= out->size - from > 11 ? 11 : 0; /* to the second */
    nt_buffer_print(out, "Z  programs %llu, alive %llu  objects open %llu", (unsigned long long)sums.programs,
                    (unsigned long long)sums.alive, (unsigned long long)sums.objects);
    nt_buffer_text(out, top->paused ? "  PAUSED" : "");
    line_end(top, out, from);
    from = out->size;
    append_short(out, sums.count, NULL);
    nt_buffer_text(out, " events/s  ");
    append_short(out, sums.bytes, "bytes");
    nt_buffer_print(out, "/s read and written  rows %zu-%zu of %zu", top->count > 0 ? top->first + 1 : 0,
                    top->first + top->count, top->all);
    if (top->view->filter && top->view->filter[0] != '\0') {
        nt_buffer_text(out, "  filter ");
        nt_text_append(out, top->view->filter, strlen(top->view->filter));
    }
    nt_buffer_text(out, top->view->busy ? "  busy ones" : "");
    line_end(top, out, from);
}

static void write_loss(const struct nt_export_top *top, const struct nt_source_program *lost, struct nt_buffer *out)
{
    size_t from = out->size;
    nt_buffer_print(out, "lost: %llu overwritten, %llu dropped", (unsigned long long)lost->overwritten,
                    (unsigned long long)lost->dropped);
    if (lost->refused_objects > 0)
        nt_buffer_print(out, ", %llu objects had no room", (unsigned long long)lost->refused_objects);
    if (lost->refused_tallies > 0)
        nt_buffer_print(out, ", %llu counts had no room: totals are at least what is shown",
                        (unsigned long long)lost->refused_tallies);
    else
        nt_buffer_text(out, "; totals stay exact");
    line_end(top, out, from);
}

static bool lost_any(const struct nt_source_program *lost)
{
    return lost->overwritten + lost->dropped + lost->refused_objects + lost->refused_tallies > 0;
}

size_t nt_export_top_lines(const struct nt_export_top *top)
{
    const struct nt_source_program lost = losses(nt_rates_model(top->rates));
    return lost_any(&lost) ? 4 : 3;
}

void nt_export_top(const struct nt_export_top *top, struct nt_buffer *out)
{
    const struct nt_source_program lost = losses(nt_rates_model(top->rates));
    bool bars = has_bars(nt_rates_model(top->rates));
    write_summary(top, out);
    if (lost_any(&lost))
        write_loss(top, &lost, out);
    write_heads(top, bars, out);
    for (size_t i = 0; i < top->count; i++)
        write_row(top, &top->rows[i], bars, out);
}
