/* SPDX-License-Identifier: BSD-3-Clause */
/* Text for people: programs as a table, numbers, loss, ages. The tree is stat_text.c. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/parts.h"

#define LOSS_LINES 8u

const char *nt_export_state(enum nt_program_state state)
{
    static const char *const names[] = {
        [NT_PROGRAM_RUNNING] = "running", [NT_PROGRAM_STOPPED] = "stopped", [NT_PROGRAM_EXITED] = "exited",
        [NT_PROGRAM_CRASHED] = "crashed", [NT_PROGRAM_UNKNOWN] = "unknown",
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

static void append_two(struct nt_buffer *out, uint64_t first, const char *unit, uint64_t second)
{
    nt_buffer_u64(out, first);
    nt_buffer_text(out, unit);
    nt_buffer_text(out, second < 10 ? "0" : "");
    nt_buffer_u64(out, second);
}

void nt_export_age(struct nt_buffer *out, uint64_t nanoseconds)
{
    uint64_t seconds = nanoseconds / 1000000000;
    if (seconds == 0) {
        nt_buffer_u64(out, nanoseconds / 1000000);
        nt_buffer_text(out, "ms");
    } else if (seconds < 60) {
        nt_buffer_ratio(out, nanoseconds / 100000000, 10, 1, false);
        nt_buffer_byte(out, 's');
    } else if (seconds < 3600) {
        append_two(out, seconds / 60, "m", seconds % 60);
        nt_buffer_byte(out, 's');
    } else if (seconds < 86400) {
        append_two(out, seconds / 3600, "h", seconds / 60 % 60);
        nt_buffer_byte(out, 'm');
    } else {
        nt_buffer_u64(out, seconds / 86400);
        nt_buffer_byte(out, 'd');
    }
}

/* ---- Loss ---- */

static bool lost_any(const struct nt_source_program *told)
{
    return told->overwritten || told->dropped || told->refused_objects || told->refused_tallies || told->moving;
}

static void append_part(struct nt_buffer *out, size_t from, uint64_t count, const char *what)
{
    if (count == 0)
        return;
    nt_buffer_text(out, out->size > from ? ", " : "");
    nt_buffer_u64(out, count);
    nt_buffer_byte(out, ' ');
    nt_buffer_text(out, what);
}

static void append_loss(struct nt_buffer *out, const struct nt_source_program *told)
{
    struct nt_buffer parts = { 0 };
    append_part(&parts, 0, told->overwritten, "events overwritten");
    append_part(&parts, 0, told->dropped, "events dropped");
    append_part(&parts, 0, told->refused_objects, "objects had no room");
    append_part(&parts, 0, told->refused_tallies, "counts had no room");
    if (told->moving)
        nt_buffer_text(&parts, parts.size > 0 ? ", moving" : "moving");
    nt_buffer_text(&parts, told->moving
                               ? ": objects ended faster than they could be read; totals may miss or repeat some"
                           : told->refused_tallies ? "; totals are at least what is shown"
                                                   : "; totals stay exact");
    nt_buffer_append(out, parts.data, parts.size);
    (void)nt_buffer_fail(out, parts.error);
    nt_buffer_fini(&parts);
}

void nt_export_loss(const struct nt_export_input *input, const char *prefix, struct nt_buffer *out)
{
    const struct nt_model *model = input->model;
    struct nt_source_program rest = { 0 };
    uint32_t lines = 0, more = 0;
    for (uint32_t i = 0; i < model->program_count; i++) {
        uint32_t at = model->programs_order[i];
        const struct nt_model_program *program = &model->programs[at];
        const struct nt_source_program *told = &program->told;
        if (!nt_export_has_program(input, at) || !lost_any(told))
            continue;
        if (lines++ < LOSS_LINES) {
            nt_buffer_text(out, prefix);
            nt_text_append(out, model->nodes[program->node].name.data, model->nodes[program->node].name.size);
            nt_buffer_byte(out, '/');
            nt_text_append(out, program->full_name.data, program->full_name.size);
            nt_buffer_text(out, ": ");
            append_loss(out, told);
            nt_buffer_byte(out, '\n');
            continue;
        }
        more++;
        rest.overwritten += told->overwritten;
        rest.dropped += told->dropped;
        rest.refused_objects += told->refused_objects;
        rest.refused_tallies += told->refused_tallies;
        rest.moving = rest.moving || told->moving;
    }
    if (more == 0)
        return;
    nt_buffer_text(out, prefix);
    nt_buffer_print(out, "%u more programs: ", more);
    append_loss(out, &rest);
    nt_buffer_byte(out, '\n');
}

/* ---- Numbers ---- */

static void write_numbers(const struct nt_export_input *input, struct nt_buffer *out)
{
    const struct nt_model_selection *selection = input->selection;
    for (size_t i = 0; i < selection->number_count; i++) {
        uint64_t count;
        uint64_t value = nt_model_pick_value(input->model, &selection->numbers[i], &count);
        if (selection->number_count > 1) {
            nt_model_pick_append(out, input->model, &selection->numbers[i]);
            nt_buffer_byte(out, '\t');
        }
        if (count > 0)
            nt_buffer_ratio(out, value, count, 6, true);
        else
            nt_buffer_byte(out, '-');
        nt_buffer_byte(out, '\n');
    }
}

/* ---- Programs ---- */

enum { NAME, PID, STATE, NODE, RINGS, OBJECTS, EVENTS, OVERWRITTEN, DROPPED, MEMORY, AGE, COLUMNS };

static const struct {
    const char *head;
    bool right;
} columns[COLUMNS] = {
    [NAME] = { "NAME", false },      [PID] = { "PID", true },
    [STATE] = { "STATE", false },    [NODE] = { "NODE", false },
    [RINGS] = { "RINGS", true },     [OBJECTS] = { "OBJECTS", true },
    [EVENTS] = { "EVENTS", true },   [OVERWRITTEN] = { "OVERWRITTEN", true },
    [DROPPED] = { "DROPPED", true }, [MEMORY] = { "MEMORY", true },
    [AGE] = { "AGE", true },
};

static void append_memory(struct nt_buffer *out, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    size_t unit = 0;
    uint64_t size = bytes, rest = 0;
    while (size >= 1024) {
        rest = size % 1024;
        size /= 1024;
        unit++;
    }
    nt_buffer_u64(out, size);
    if (unit > 0 && size < 10)
        nt_buffer_print(out, ".%u", (unsigned)(rest * 10 / 1024));
    nt_buffer_byte(out, units[unit]);
}

static void append_cell(const struct nt_export_input *input, const struct nt_model_program *program, int column,
                        struct nt_buffer *out)
{
    const struct nt_source_program *told = &program->told;
    const uint64_t numbers[COLUMNS] = {
        [PID] = told->pid,
        [RINGS] = told->rings,
        [OBJECTS] = told->objects,
        [EVENTS] = told->events,
        [OVERWRITTEN] = told->overwritten,
        [DROPPED] = told->dropped,
    };
    switch (column) {
    case NAME:
        nt_text_append(out, told->name.data, told->name.size);
        break;
    case STATE:
        nt_buffer_text(out, nt_export_state(told->state));
        nt_buffer_text(out, told->replaced ? " (exec)" : "");
        break;
    case NODE:
        nt_text_append(out, told->node.data, told->node.size);
        break;
    case MEMORY:
        append_memory(out, told->backed);
        break;
    case AGE:
        if (input->now > told->started && told->started != 0)
            nt_export_age(out, input->now - told->started);
        else
            nt_buffer_byte(out, '-');
        break;
    default:
        nt_buffer_u64(out, numbers[column]);
        break;
    }
}

static void write_cell(struct nt_buffer *out, const char *data, size_t size, size_t width, int column)
{
    size_t taken = nt_text_width(data, size);
    size_t room = width > taken ? width - taken : 0;
    if (columns[column].right)
        nt_buffer_repeat(out, ' ', room);
    nt_buffer_append(out, data, size);
    if (!columns[column].right && column + 1 < COLUMNS)
        nt_buffer_repeat(out, ' ', room);
    nt_buffer_byte(out, column + 1 < COLUMNS ? ' ' : '\n');
}

static void write_programs(const struct nt_export_input *input, struct nt_buffer *out)
{
    const struct nt_model *model = input->model;
    struct nt_buffer cell = { 0 };
    size_t widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++)
        widths[column] = strlen(columns[column].head);
    for (uint32_t i = 0; i < model->program_count * COLUMNS; i++) {
        int column = (int)(i % COLUMNS);
        nt_buffer_clear(&cell);
        append_cell(input, &model->programs[i / COLUMNS], column, &cell);
        size_t width = nt_text_width(cell.data, cell.size);
        widths[column] = width > widths[column] ? width : widths[column];
    }
    for (int column = 0; column < COLUMNS; column++)
        write_cell(out, columns[column].head, strlen(columns[column].head), widths[column], column);
    for (uint32_t i = 0; i < model->program_count * COLUMNS; i++) {
        int column = (int)(i % COLUMNS);
        nt_buffer_clear(&cell);
        append_cell(input, &model->programs[model->programs_order[i / COLUMNS]], column, &cell);
        write_cell(out, cell.data, cell.size, widths[column], column);
        (void)nt_buffer_fail(out, cell.error);
    }
    nt_buffer_fini(&cell);
}

const struct nt_export_format nt_export_text = {
    .name = "text",
    .text = "for people",
    .stat = nt_export_text_stat,
    .numbers = write_numbers,
    .programs = write_programs,
    .sessions = nt_export_text_sessions,
    .info = nt_export_text_info,
    .diff = nt_export_text_diff,
    .event = nt_export_text_event,
    .missing = nt_export_text_missing,
    .loss_inside = true,
};
