/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON: programs and numbers, and what a program's entry says wherever it stands. The tree is stat_json.c. */
#include "export/parts.h"

static void bytes_member(struct nt_json *json, const char *key, struct nt_bytes bytes)
{
    nt_json_key(json, key);
    nt_json_string(json, bytes.data, bytes.size);
}

static void u64_member(struct nt_json *json, const char *key, uint64_t number)
{
    nt_json_key(json, key);
    nt_json_u64(json, number);
}

void nt_export_json_program(struct nt_json *json, const struct nt_model_program *program)
{
    const struct nt_source_program *told = &program->told;
    nt_json_key(json, "id");
    nt_json_id(json, told->id);
    u64_member(json, "pid", told->pid);
    bytes_member(json, "name", told->name);
    nt_json_key(json, "state");
    nt_json_text(json, nt_export_state(told->state));
    u64_member(json, "lost", told->overwritten + told->dropped);
    u64_member(json, "overwritten", told->overwritten);
    u64_member(json, "dropped", told->dropped);
    u64_member(json, "refused_objects", told->refused_objects);
    u64_member(json, "refused_tallies", told->refused_tallies);
    u64_member(json, "events", told->events);
    bytes_member(json, "program", told->program);
    bytes_member(json, "host", told->host);
    bytes_member(json, "domain", told->domain);
    u64_member(json, "uid", told->uid);
    u64_member(json, "started", told->started);
    if (told->ended != 0)
        u64_member(json, "ended", told->ended);
    nt_json_key(json, "replaced");
    nt_json_bool(json, told->replaced);
    if (told->moving) {
        nt_json_key(json, "moving");
        nt_json_bool(json, true);
    }
    if (told->origin != 0) {
        nt_json_key(json, "origin");
        nt_json_id(json, told->origin);
    }
    u64_member(json, "rings", told->rings);
    u64_member(json, "open", told->objects);
    u64_member(json, "backed", told->backed);
    u64_member(json, "cap", told->cap);
    nt_json_key(json, "path");
    nt_json_text(json, told->path);
}

static void write_programs(const struct nt_export_input *input, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    const struct nt_model *model = input->model;
    nt_json_object(&json);
    nt_json_key(&json, "processes");
    nt_json_array(&json);
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_model_program *program = &model->programs[model->programs_order[i]];
        nt_json_line(&json);
        nt_json_object(&json);
        bytes_member(&json, "node", model->nodes[program->node].name);
        nt_export_json_program(&json, program);
        nt_json_object_end(&json);
    }
    nt_json_array_end(&json);
    nt_json_object_end(&json);
    nt_buffer_byte(out, '\n');
}

static void write_value(struct nt_buffer *out, const struct nt_model *model, const struct nt_model_pick *pick)
{
    uint64_t count;
    uint64_t value = nt_model_pick_value(model, pick, &count);
    if (count > 0)
        nt_buffer_ratio(out, value, count, 6, true);
    else
        nt_buffer_text(out, "null");
}

static void write_numbers(const struct nt_export_input *input, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    const struct nt_model_selection *selection = input->selection;
    if (selection->number_count == 1) {
        write_value(out, input->model, &selection->numbers[0]);
        nt_buffer_byte(out, '\n');
        return;
    }
    struct nt_buffer path = { 0 };
    nt_json_array(&json);
    for (size_t i = 0; i < selection->number_count; i++) {
        nt_buffer_clear(&path);
        nt_model_pick_append(&path, input->model, &selection->numbers[i]);
        (void)nt_buffer_fail(out, path.error);
        nt_json_line(&json);
        nt_json_object(&json);
        nt_json_key(&json, "path");
        nt_json_string(&json, path.data, path.size);
        nt_json_key(&json, "value");
        write_value(out, input->model, &selection->numbers[i]);
        json.comma = true;
        nt_json_object_end(&json);
    }
    nt_json_array_end(&json);
    nt_buffer_byte(out, '\n');
    nt_buffer_fini(&path);
}

const struct nt_export_format nt_export_json = {
    .name = "json",
    .text = "one JSON value",
    .stat = nt_export_json_stat,
    .numbers = write_numbers,
    .programs = write_programs,
    .sessions = nt_export_json_sessions,
    .info = nt_export_json_info,
    .diff = nt_export_json_diff,
    .sessions_inside = true,
    .event = nt_export_json_event,
    .missing = nt_export_json_missing,
};
