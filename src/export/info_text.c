/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in a file, as text: a line a subject. */
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "export/parts.h"
#include "model/sessions.h"

#define PROGRAMS_LISTED 16u

struct nt_export_info_sums nt_export_info_sums(const struct nt_export_info *info)
{
    const struct nt_model *model = info->model;
    struct nt_export_info_sums sums = { .objects = model->object_count };
    for (uint32_t i = 0; i < model->object_count; i++)
        sums.closed += model->objects[i].told.closed;
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_source_program *told = &model->programs[i].told;
        sums.backed += told->backed;
        sums.dropped += told->dropped;
        sums.refused_objects += told->refused_objects;
        sums.refused_tallies += told->refused_tallies;
    }
    if (model->sessions)
        sums.sessions = model->sessions->count - NT_MODEL_SESSION_FIRST;
    for (size_t i = 0; i < info->damages_size; i++)
        sums.damages += info->damages[i] == '\n';
    return sums;
}

static void line_begin(struct nt_buffer *out, const char *label)
{
    size_t size = strlen(label);
    nt_buffer_text(out, "  ");
    nt_buffer_text(out, label);
    nt_buffer_repeat(out, ' ', size < 11 ? 11 - size : 1);
}

static void append_count(struct nt_buffer *out, const char *before, uint64_t count, const char *what)
{
    nt_buffer_text(out, before);
    nt_buffer_u64(out, count);
    nt_buffer_text(out, what);
    nt_buffer_text(out, count == 1 ? "" : "s");
}

/* The same, with a comma, unless there are none. */
static void append_more(struct nt_buffer *out, uint64_t count, const char *what)
{
    if (count == 0)
        return;
    nt_buffer_text(out, ", ");
    nt_buffer_u64(out, count);
    nt_buffer_text(out, what);
}

static void write_form(const struct nt_export_info *info, struct nt_buffer *out)
{
    line_begin(out, "format");
    nt_buffer_print(out, "%s, version %u", info->recording ? "recording" : "log", info->version);
    if (info->id != 0) {
        nt_buffer_text(out, ", id ");
        nt_buffer_hex64(out, info->id);
    }
    nt_buffer_byte(out, '\n');
    if (!info->recording)
        return;
    line_begin(out, "begun");
    if (info->created != 0)
        nt_time_append(out, info->created);
    else
        nt_buffer_text(out, "not known: the header is damaged");
    nt_buffer_text(out,
                   info->ended ? ", ended by its recorder\n" : ", has no end: it was cut, or its recorder stopped\n");
}

static void write_span(const struct nt_export_info *info, struct nt_buffer *out)
{
    line_begin(out, "span");
    if (info->first != 0) {
        nt_time_append(out, info->first);
        nt_buffer_text(out, " to ");
        nt_time_append(out, info->last);
        nt_buffer_text(out, ", ");
        nt_export_age(out, info->last - info->first);
        nt_buffer_byte(out, '\n');
    } else {
        nt_buffer_text(out, "no events\n");
    }
}

static void write_programs(const struct nt_export_info *info, struct nt_buffer *out)
{
    const struct nt_model *model = info->model;
    line_begin(out, "programs");
    nt_buffer_print(out, "%u", model->program_count);
    for (uint32_t i = 0; i < model->program_count && i < PROGRAMS_LISTED; i++) {
        const struct nt_model_program *program = &model->programs[model->programs_order[i]];
        nt_buffer_text(out, i == 0 ? ": " : ", ");
        nt_text_append(out, model->nodes[program->node].name.data, model->nodes[program->node].name.size);
        nt_buffer_byte(out, '/');
        nt_text_append(out, program->full_name.data, program->full_name.size);
        nt_buffer_print(out, " (%s)", nt_export_state(program->told.state));
    }
    if (model->program_count > PROGRAMS_LISTED)
        nt_buffer_print(out, ", and %u more", model->program_count - PROGRAMS_LISTED);
    nt_buffer_byte(out, '\n');
}

static void write_events(const struct nt_export_info *info, const struct nt_export_info_sums *sums,
                         struct nt_buffer *out)
{
    line_begin(out, "events");
    nt_buffer_u64(out, info->events);
    append_more(out, info->lost, info->thinned ? " left out or lost between them" : " lost between them");
    append_more(out, info->not_logged, " not logged, as masks said");
    nt_buffer_byte(out, '\n');
    line_begin(out, "loss");
    if (info->overwritten + sums->dropped + sums->refused_objects + sums->refused_tallies == 0) {
        nt_buffer_text(out, "none\n");
    } else {
        append_count(out, "", info->overwritten, " slot");
        nt_buffer_text(out, " overwritten or never finished");
        append_more(out, sums->dropped, " events dropped");
        append_more(out, sums->refused_objects, " objects had no room");
        append_more(out, sums->refused_tallies, " counts had no room");
        nt_buffer_byte(out, '\n');
    }
    line_begin(out, "exact");
    nt_buffer_text(out, sums->refused_tallies > 0 ? "totals are at least what is told" : "totals are exact");
    nt_buffer_text(out, info->thinned ? "; events were left out on purpose\n" : "; no event was left out on purpose\n");
}

static void write_size(const struct nt_export_info *info, uint64_t backed, struct nt_buffer *out)
{
    if (info->recording) {
        line_begin(out, "blocks");
        nt_buffer_u64(out, info->blocks);
        append_more(out, info->event_blocks, " of events");
        append_more(out, info->table_blocks, " of tables");
        nt_buffer_byte(out, '\n');
    }
    line_begin(out, "bytes");
    nt_buffer_u64(out, info->bytes);
    append_more(out, info->recording ? 0 : backed, " of them in use");
    if (info->recording && info->events > 0) {
        nt_buffer_text(out, ", of events ");
        nt_buffer_u64(out, info->event_bytes);
        nt_buffer_text(out, ", ");
        nt_buffer_ratio(out, info->event_bytes, info->events, 2, false);
        nt_buffer_text(out, " an event");
    }
    nt_buffer_byte(out, '\n');
}

static void write_checks(const struct nt_export_info *info, uint64_t damages, struct nt_buffer *out)
{
    line_begin(out, "checks");
    if (damages > 0) {
        append_count(out, "", damages, " damage");
        nt_buffer_byte(out, '\n');
    } else if (info->recording) {
        nt_buffer_text(out, "the checksums of all blocks hold\n");
    } else {
        nt_buffer_text(out, "a log has no checksums; all of it could be read\n");
    }
    for (size_t at = 0; at < info->damages_size;) {
        const char *end = memchr(info->damages + at, '\n', info->damages_size - at);
        size_t size = end ? (size_t)(end - info->damages) - at : info->damages_size - at;
        line_begin(out, "");
        nt_buffer_append(out, info->damages + at, size);
        nt_buffer_byte(out, '\n');
        at += size + 1;
    }
}

void nt_export_text_info(const struct nt_export_info *info, struct nt_buffer *out)
{
    struct nt_export_info_sums sums = nt_export_info_sums(info);
    nt_text_append(out, info->path, strlen(info->path));
    nt_buffer_byte(out, '\n');
    write_form(info, out);
    write_span(info, out);
    write_programs(info, out);
    line_begin(out, "objects");
    nt_buffer_u64(out, sums.objects);
    append_more(out, sums.closed, " of them closed");
    nt_buffer_byte(out, '\n');
    line_begin(out, "sessions");
    nt_buffer_u64(out, sums.sessions);
    nt_buffer_byte(out, '\n');
    write_events(info, &sums, out);
    write_size(info, sums.backed, out);
    write_checks(info, sums.damages, out);
}
