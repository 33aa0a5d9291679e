/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes as one JSON object. */
#include <stdio.h>

#include "export/parts.h"

static void u64_member(struct nt_json *json, const char *key, uint64_t number)
{
    nt_json_key(json, key);
    nt_json_u64(json, number);
}

static void change_member(struct nt_json *json, const char *key, uint64_t before, uint64_t after)
{
    nt_json_key(json, key);
    nt_buffer_text(json->out, after < before ? "-" : "");
    nt_json_u64(json, after < before ? before - after : after - before);
}

static void rate_member(struct nt_json *json, const char *key, uint64_t before, uint64_t after, uint64_t length)
{
    char text[40];
    int size = snprintf(text, sizeof text, "%.3f", (double)(after - before) * 1e9 / (double)length);
    nt_json_key(json, key);
    nt_json_raw(json, text, size > 0 && (size_t)size < sizeof text ? (size_t)size : 0);
}

static void write_side(struct nt_json *json, const char *key, const struct nt_diff_side *side)
{
    nt_json_key(json, key);
    if (!side->there) {
        nt_json_raw(json, "null", 4);
        return;
    }
    nt_json_object(json);
    u64_member(json, "count", side->count);
    u64_member(json, "total", side->total);
    nt_json_key(json, "bound");
    nt_json_word(json, nt_export_bound(side->bound));
    nt_json_object_end(json);
}

static void write_row(struct nt_json *json, const struct nt_diff_row *row, uint64_t length)
{
    const struct nt_diff_side *before = &row->sides[0], *after = &row->sides[1];
    nt_json_line(json);
    nt_json_object(json);
    nt_json_key(json, "path");
    nt_json_string(json, row->path.data, row->path.size);
    nt_json_key(json, "kind");
    nt_json_string(json, row->kind.data, row->kind.size);
    nt_json_key(json, "change");
    nt_json_word(json, nt_export_change(row));
    if (row->folded) {
        nt_json_key(json, "closed_earlier");
        nt_json_bool(json, true);
    }
    if (after->there) {
        change_member(json, "count", before->count, after->count);
        change_member(json, "total", before->total, after->total);
        nt_json_key(json, "exact");
        nt_json_bool(json, nt_export_change_exact(row));
    }
    if (after->there && length > 0 && after->count >= before->count && after->total >= before->total) {
        rate_member(json, "count_rate", before->count, after->count, length);
        rate_member(json, "total_rate", before->total, after->total, length);
    }
    write_side(json, "before", before);
    write_side(json, "after", after);
    nt_json_object_end(json);
}

void nt_export_json_diff(const struct nt_export_diff *input, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    uint64_t length = nt_export_diff_length(input);
    nt_json_object(&json);
    for (int side = 0; side < 2; side++) {
        nt_json_key(&json, side == 0 ? "from" : "to");
        nt_json_object(&json);
        nt_json_key(&json, "file");
        nt_json_text(&json, input->moments[side].file);
        u64_member(&json, "time", input->moments[side].time);
        nt_json_object_end(&json);
    }
    u64_member(&json, "length", length);
    if (input->more > 0)
        u64_member(&json, "more", input->more);
    nt_json_key(&json, "changes");
    nt_json_array(&json);
    for (size_t i = 0; i < input->count; i++)
        write_row(&json, &input->rows[i], length);
    nt_json_array_end(&json);
    nt_json_object_end(&json);
    nt_buffer_byte(out, '\n');
}
