/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes as text: the two moments, and a line an object and kind. */
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "export/parts.h"

enum { COUNT, COUNT_RATE, TOTAL, TOTAL_RATE, UNIT, KIND, OBJECT, COLUMNS };

static const char *const heads[COLUMNS] = { "COUNT", "/S", "TOTAL", "/S", "", "KIND", "OBJECT" };

const char *nt_export_change(const struct nt_diff_row *row)
{
    const struct nt_diff_side *before = &row->sides[0], *after = &row->sides[1];
    if (!before->there)
        return "new";
    if (!after->there)
        return "gone";
    if (after->closed && !before->closed)
        return "closed";
    return before->count != after->count || before->total != after->total ? "changed" : "same";
}

bool nt_export_change_exact(const struct nt_diff_row *row)
{
    return row->sides[0].bound == NT_MODEL_EXACT && row->sides[1].bound == NT_MODEL_EXACT;
}

uint64_t nt_export_diff_length(const struct nt_export_diff *input)
{
    uint64_t from = input->moments[0].time, to = input->moments[1].time;
    return from != 0 && to > from ? to - from : 0;
}

/* Of what is gone, what it was. */
static void append_change(struct nt_buffer *out, uint64_t before, uint64_t after, const struct nt_diff_row *row)
{
    if (!row->sides[1].there) {
        after = before;
        before = 0;
    }
    nt_buffer_text(out, nt_export_change_exact(row) ? "" : "~");
    if (before != after)
        nt_buffer_byte(out, after > before ? '+' : '-');
    nt_buffer_u64(out, after > before ? after - before : before - after);
}

static void append_rate(struct nt_buffer *out, uint64_t before, uint64_t after, uint64_t length)
{
    if (length > 0 && after >= before)
        nt_buffer_print(out, "%.1f", (double)(after - before) * 1e9 / (double)length);
}

static void append_object(struct nt_buffer *out, const struct nt_diff_row *row)
{
    const char *change = nt_export_change(row);
    nt_buffer_append(out, row->path.data, row->path.size);
    nt_buffer_text(out, row->folded ? " (closed earlier)" : "");
    if (strcmp(change, "changed") != 0)
        nt_buffer_print(out, "  %s", change);
}

static void append_cell(const struct nt_export_diff *input, const struct nt_diff_row *row, int column,
                        struct nt_buffer *out)
{
    const struct nt_diff_side *before = &row->sides[0], *after = &row->sides[1];
    uint64_t length = after->there ? nt_export_diff_length(input) : 0;
    switch (column) {
    case COUNT:
        append_change(out, before->count, after->count, row);
        break;
    case COUNT_RATE:
        append_rate(out, before->count, after->count, length);
        break;
    case TOTAL:
        append_change(out, before->total, after->total, row);
        break;
    case TOTAL_RATE:
        append_rate(out, before->total, after->total, length);
        break;
    case UNIT:
        nt_buffer_text(out, row->unit && strcmp(row->unit, "count") != 0 ? row->unit : "");
        break;
    case KIND:
        nt_text_append(out, row->kind.data, row->kind.size);
        break;
    default:
        append_object(out, row);
        break;
    }
}

static void write_cell(struct nt_buffer *out, const struct nt_buffer *cell, size_t width, int column)
{
    size_t taken = nt_text_width(cell->data, cell->size), room = width > taken ? width - taken : 0;
    if (column < UNIT)
        nt_buffer_repeat(out, ' ', room);
    nt_buffer_append(out, cell->data, cell->size);
    if (column == OBJECT)
        nt_buffer_byte(out, '\n');
    else
        nt_buffer_repeat(out, ' ', (column < UNIT ? 0 : room) + (column == TOTAL_RATE ? 1 : 2));
}

static void write_rows(const struct nt_export_diff *input, struct nt_buffer *out)
{
    struct nt_buffer cell = { 0 };
    size_t widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++)
        widths[column] = strlen(heads[column]);
    for (size_t i = 0; i < input->count * OBJECT; i++) {
        nt_buffer_clear(&cell);
        append_cell(input, &input->rows[i / OBJECT], (int)(i % OBJECT), &cell);
        size_t width = nt_text_width(cell.data, cell.size);
        widths[i % OBJECT] = width > widths[i % OBJECT] ? width : widths[i % OBJECT];
    }
    for (int column = 0; column < COLUMNS; column++) {
        nt_buffer_clear(&cell);
        nt_buffer_text(&cell, heads[column]);
        write_cell(out, &cell, widths[column], column);
    }
    for (size_t i = 0; i < input->count * COLUMNS; i++) {
        nt_buffer_clear(&cell);
        append_cell(input, &input->rows[i / COLUMNS], (int)(i % COLUMNS), &cell);
        write_cell(out, &cell, widths[i % COLUMNS], (int)(i % COLUMNS));
        (void)nt_buffer_fail(out, cell.error);
    }
    nt_buffer_fini(&cell);
}

void nt_export_text_diff(const struct nt_export_diff *input, struct nt_buffer *out)
{
    uint64_t length = nt_export_diff_length(input);
    for (int side = 0; side < 2; side++) {
        const struct nt_export_moment *moment = &input->moments[side];
        nt_buffer_text(out, side == 0 ? "from  " : "to    ");
        nt_text_append(out, moment->file, strlen(moment->file));
        nt_buffer_text(out, " at ");
        nt_time_append(out, moment->time);
        if (side == 1 && length > 0) {
            nt_buffer_text(out, ", ");
            nt_export_age(out, length);
            nt_buffer_text(out, " later");
        }
        nt_buffer_byte(out, '\n');
    }
    if (input->count > 0)
        write_rows(input, out);
    if (input->more > 0)
        nt_buffer_print(out, "and %zu more\n", input->more);
}
