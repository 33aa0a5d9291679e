/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in a file, as one JSON object in one line. */
#include <string.h>

#include "export/parts.h"

static void u64_member(struct nt_json *json, const char *key, uint64_t number)
{
    nt_json_key(json, key);
    nt_json_u64(json, number);
}

static void bool_member(struct nt_json *json, const char *key, bool value)
{
    nt_json_key(json, key);
    nt_json_bool(json, value);
}

static void write_programs(struct nt_json *json, const struct nt_model *model)
{
    nt_json_key(json, "processes");
    nt_json_array(json);
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_model_program *program = &model->programs[model->programs_order[i]];
        struct nt_bytes node = model->nodes[program->node].name;
        nt_json_object(json);
        nt_json_key(json, "node");
        nt_json_string(json, node.data, node.size);
        nt_export_json_program(json, program);
        nt_json_object_end(json);
    }
    nt_json_array_end(json);
}

static void write_recording(struct nt_json *json, const struct nt_export_info *info)
{
    nt_json_key(json, "id");
    nt_json_id(json, info->id);
    u64_member(json, "created", info->created);
    bool_member(json, "ended", info->ended);
    u64_member(json, "blocks", info->blocks);
    u64_member(json, "event_blocks", info->event_blocks);
    u64_member(json, "event_bytes", info->event_bytes);
    u64_member(json, "table_blocks", info->table_blocks);
    u64_member(json, "table_bytes", info->table_bytes);
}

static void write_damages(struct nt_json *json, const struct nt_export_info *info)
{
    nt_json_key(json, "damages");
    nt_json_array(json);
    for (size_t at = 0; at < info->damages_size;) {
        const char *end = memchr(info->damages + at, '\n', info->damages_size - at);
        size_t size = end ? (size_t)(end - info->damages) - at : info->damages_size - at;
        nt_json_string(json, info->damages + at, size);
        at += size + 1;
    }
    nt_json_array_end(json);
}

void nt_export_json_info(const struct nt_export_info *info, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    struct nt_export_info_sums sums = nt_export_info_sums(info);
    nt_json_object(&json);
    nt_json_key(&json, "file");
    nt_json_text(&json, info->path);
    nt_json_key(&json, "format");
    nt_json_word(&json, info->recording ? "recording" : "log");
    u64_member(&json, "version", info->version);
    u64_member(&json, "bytes", info->bytes);
    if (info->recording)
        write_recording(&json, info);
    if (info->first != 0) {
        u64_member(&json, "first", info->first);
        u64_member(&json, "last", info->last);
    }
    u64_member(&json, "events", info->events);
    u64_member(&json, "lost", info->lost);
    u64_member(&json, "not_logged", info->not_logged);
    u64_member(&json, "overwritten", info->overwritten);
    u64_member(&json, "dropped", sums.dropped);
    u64_member(&json, "refused_objects", sums.refused_objects);
    u64_member(&json, "refused_tallies", sums.refused_tallies);
    bool_member(&json, "thinned", info->thinned);
    bool_member(&json, "exact", sums.refused_tallies == 0);
    u64_member(&json, "objects", sums.objects);
    u64_member(&json, "closed", sums.closed);
    u64_member(&json, "sessions", sums.sessions);
    write_damages(&json, info);
    write_programs(&json, info->model);
    nt_json_object_end(&json);
    nt_buffer_byte(out, '\n');
}
