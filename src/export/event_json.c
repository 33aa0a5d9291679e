/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as JSON, one object a line, in the columns of event/columns.def. Numbers are exact, ids 16 hex digits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <nt/log_layout.h>

#include "base/json.h"
#include "event/decode.h"
#include "event/filter.h"
#include "export/event.h"
#include "model/kinds.h"
#include "model/mask.h"

enum { FLAG_BITS = 16 };

const char *nt_export_why_text(enum nt_export_why why)
{
    static const char *const texts[] = {
        [NT_EXPORT_OVERWRITTEN] = "overwritten", [NT_EXPORT_LOST] = "lost",   [NT_EXPORT_NOT_LOGGED] = "not logged",
        [NT_EXPORT_LEFT_OUT] = "left out",       [NT_EXPORT_FOUND] = "found",
    };
    return texts[why];
}

/* ---- Values ---- */

static void write_null(struct nt_json *json)
{
    nt_json_raw(json, "null", 4);
}

static void write_f64(struct nt_json *json, double value)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        nt_json_text(json, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    /* the shortest of these that is the same number */
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    nt_json_raw(json, text, strlen(text));
}

static void write_bytes(struct nt_json *json, const char *data, size_t size)
{
    struct nt_buffer digits = { 0 };
    for (size_t i = 0; i < size; i++) {
        nt_buffer_byte(&digits, "0123456789abcdef"[(unsigned char)data[i] >> 4]);
        nt_buffer_byte(&digits, "0123456789abcdef"[(unsigned char)data[i] & 15]);
    }
    nt_json_string(json, digits.data, digits.size);
    (void)nt_buffer_fail(json->out, digits.error);
    nt_buffer_fini(&digits);
}

static void write_value(struct nt_json *json, const struct nt_event_value *value)
{
    char text[24];
    switch (value->type) {
    case NT_FIELD_I64:
        (void)snprintf(text, sizeof text, "%lld", (long long)value->as.i64);
        nt_json_raw(json, text, strlen(text));
        break;
    case NT_FIELD_F64:
        write_f64(json, value->as.f64);
        break;
    case NT_FIELD_BYTES:
        write_bytes(json, value->as.bytes.data, value->as.bytes.size);
        break;
    case NT_FIELD_STRING:
        nt_json_string(json, value->as.bytes.data, value->as.bytes.size);
        break;
    case NT_FIELD_ID:
        nt_json_id(json, value->as.u64);
        break;
    default:
        nt_json_u64(json, value->as.u64);
        break;
    }
}

/* ---- Data ---- */

static void write_kind_name(void *arg, const char *name)
{
    nt_json_word(arg, name);
}

static void write_mask(struct nt_json *json, const char *key, uint64_t mask)
{
    nt_json_key(json, key);
    nt_json_array(json);
    nt_model_mask_each(mask, write_kind_name, json);
    nt_json_array_end(json);
}

static void write_change(struct nt_json *json, const struct nt_event *event)
{
    nt_json_object(json);
    write_mask(json, "before", event->argument);
    write_mask(json, "after", event->value);
    nt_json_key(json, "setter");
    if (event->setter != 0)
        nt_json_u64(json, event->setter);
    else
        write_null(json);
    nt_json_object_end(json);
}

/* Fields that are not there any more, as the event was cut, are left out. */
static void write_fields(struct nt_json *json, const struct nt_event *event, const struct nt_source_kind *kind)
{
    struct nt_event_value value;
    size_t at = 0;
    nt_json_object(json);
    for (size_t i = 0; i < kind->field_count && nt_event_field(event, kind->fields[i].type, &at, &value); i++) {
        nt_json_key_bytes(json, kind->fields[i].name.data, kind->fields[i].name.size);
        write_value(json, &value);
    }
    nt_json_object_end(json);
}

static void write_data(struct nt_json *json, const struct nt_event *event, const struct nt_life *life)
{
    const struct nt_source_kind *kind = nt_life_declared(life, event->kind);
    if (event->kind == NT_MODEL_KIND_MASK && event->ring == NT_EVENT_NO_RING) {
        write_change(json, event);
    } else if (event->data_size == 0) {
        write_null(json);
    } else if (kind) {
        write_fields(json, event, kind);
    } else { /* of a kind that nobody declared */
        nt_json_object(json);
        nt_json_key(json, "undeclared");
        write_bytes(json, (const char *)event->data, event->data_size);
        nt_json_object_end(json);
    }
}

void nt_export_event_data(const struct nt_event *event, const struct nt_life *life, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    write_data(&json, event, life);
}

/* ---- Columns ---- */

static void write_flags(struct nt_json *json, unsigned flags)
{
    nt_json_array(json);
    for (unsigned bit = 0; bit < FLAG_BITS; bit++) {
        if ((flags >> bit & 1) && nt_event_flag_name(bit))
            nt_json_word(json, nt_event_flag_name(bit));
    }
    nt_json_array_end(json);
}

static void write_name(struct nt_json *json, struct nt_bytes name)
{
    nt_json_string(json, name.data, name.size);
}

static void write_known_name(struct nt_json *json, struct nt_bytes name)
{
    if (name.size > 0)
        write_name(json, name);
    else
        write_null(json);
}

static void write_known(struct nt_json *json, uint64_t number, bool known)
{
    if (known)
        nt_json_u64(json, number);
    else
        write_null(json);
}

static void write_names(struct nt_json *json, enum nt_column column, const struct nt_export_event *line)
{
    char room[NT_MODEL_KIND_ROOM];
    switch (column) {
    case NT_COLUMN_PROCESS:
        write_name(json, line->life->program->full_name);
        break;
    case NT_COLUMN_NODE:
        write_name(json, line->life->program->node);
        break;
    case NT_COLUMN_PATH:
        write_name(json, line->life->path);
        break;
    case NT_COLUMN_KIND:
        write_name(json, nt_life_kind(line->life, line->event->kind, room));
        break;
    case NT_COLUMN_FLAGS:
        write_flags(json, line->event->flags);
        break;
    case NT_COLUMN_REMOTE_NODE:
        write_known_name(json, line->life->remote_node);
        break;
    case NT_COLUMN_REMOTE_PROCESS:
        write_known_name(json, line->life->remote_process);
        break;
    case NT_COLUMN_DATA:
        write_data(json, line->event, line->life);
        break;
    default: /* not known yet */
        write_null(json);
        break;
    }
}

static void write_column(struct nt_json *json, enum nt_column column, const struct nt_export_event *line)
{
    const struct nt_event *event = line->event;
    switch (column) {
    case NT_COLUMN_TIME:
    case NT_COLUMN_TIME_RAW:
        nt_json_u64(json, event->time);
        break;
    case NT_COLUMN_LOG:
        nt_json_id(json, line->life->program->id);
        break;
    case NT_COLUMN_RING:
        write_known(json, event->ring, event->ring != NT_EVENT_NO_RING);
        break;
    case NT_COLUMN_POSITION:
        nt_json_u64(json, event->position);
        break;
    case NT_COLUMN_THREAD:
        write_known(json, line->thread, line->thread != 0);
        break;
    case NT_COLUMN_OBJECT:
        nt_json_id(json, (uint64_t)event->generation << 32 | event->object);
        break;
    case NT_COLUMN_SESSION:
        nt_json_id(json, event->session);
        break;
    case NT_COLUMN_COUNT:
        nt_json_u64(json, event->count);
        break;
    case NT_COLUMN_VALUE:
        nt_json_u64(json, event->value);
        break;
    case NT_COLUMN_TOTAL:
        nt_json_u64(json, event->total);
        break;
    case NT_COLUMN_N:
        nt_json_u64(json, event->merged);
        break;
    case NT_COLUMN_ARGUMENT:
        nt_json_u64(json, event->argument);
        break;
    default:
        write_names(json, column, line);
        break;
    }
}

void nt_export_json_event(const struct nt_export_event *event, struct nt_export_lines *lines, struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    (void)lines;
    nt_json_object(&json);
    for (unsigned column = 0; column < NT_COLUMNS; column++) {
        nt_json_key(&json, nt_column_name(column));
        write_column(&json, column, event);
    }
    nt_json_object_end(&json);
    nt_buffer_byte(out, '\n');
}

/* ---- What is missing ---- */

/* What is known of it in the columns of an event, and what only something missing says. */
void nt_export_json_missing(const struct nt_export_missing *missing, struct nt_export_lines *lines,
                            struct nt_buffer *out)
{
    struct nt_json json = { .out = out };
    const struct nt_life *life = missing->life;
    char room[NT_MODEL_KIND_ROOM];
    uint64_t time = missing->to_time != 0 ? missing->to_time : missing->from_time;
    (void)lines;
    nt_json_object(&json);
    nt_json_key(&json, "time");
    write_known(&json, time, time != 0);
    nt_json_key(&json, "log");
    nt_json_id(&json, missing->program->id);
    nt_json_key(&json, "ring");
    write_known(&json, missing->ring, !life);
    nt_json_key(&json, "process");
    write_name(&json, missing->program->full_name);
    nt_json_key(&json, "node");
    write_name(&json, missing->program->node);
    nt_json_key(&json, "kind");
    nt_json_word(&json, "loss");
    nt_json_key(&json, "count");
    nt_json_u64(&json, missing->count);
    nt_json_key(&json, "reason");
    nt_json_word(&json, nt_export_why_text(missing->why));
    if (life) {
        nt_json_key(&json, "object");
        nt_json_id(&json, (uint64_t)life->generation << 32 | life->object);
        nt_json_key(&json, "path");
        write_name(&json, life->path);
        nt_json_key(&json, "of");
        write_name(&json, nt_life_kind(life, missing->kind, room));
    }
    nt_json_key(&json, "first");
    nt_json_u64(&json, missing->first);
    nt_json_key(&json, "last");
    nt_json_u64(&json, missing->last);
    nt_json_key(&json, "from_time");
    write_known(&json, missing->from_time, missing->from_time != 0);
    nt_json_key(&json, "to_time");
    write_known(&json, missing->to_time, missing->to_time != 0);
    nt_json_object_end(&json);
    nt_buffer_byte(out, '\n');
}
