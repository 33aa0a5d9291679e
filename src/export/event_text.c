/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as text for people, one line each: time, program, object, kind, value, count, total, and then what few have:
   session, flags, fields. Columns only get wider as lines come. */
#include <stdio.h>
#include <string.h>

#include <nt/log_layout.h>

#include "base/text.h"
#include "base/time.h"
#include "event/decode.h"
#include "event/filter.h"
#include "export/event.h"
#include "model/kinds.h"
#include "model/mask.h"

enum { FLAG_BITS = 16, TIME_WIDTH = 30, PROCESS_MOST = 32, OBJECT_MOST = 48, KIND_MOST = 24 };
enum { SESSION_NEW = 1, SESSION_JOIN = 4 }; /* NT_SESSION_… of <nt/log.h>, which is the writing half's */

/* ---- Columns ---- */

/* Fills up what was written from `from` on. */
static void pad(struct nt_buffer *out, size_t from, size_t *width, size_t most)
{
    if (out->error != 0)
        return;
    size_t taken = nt_text_width(out->data + from, out->size - from);
    if (taken > *width)
        *width = taken < most ? taken : most;
    nt_buffer_repeat(out, ' ', (taken < *width ? *width - taken : 0) + 2);
}

static void write_time(struct nt_buffer *out, uint64_t time)
{
    if (time != 0) {
        nt_time_append(out, time);
    } else {
        nt_buffer_byte(out, '-');
        nt_buffer_repeat(out, ' ', TIME_WIDTH - 1);
    }
    nt_buffer_text(out, "  ");
}

/* `text` is a part of a path, and so can be shown already. */
static void write_place(struct nt_buffer *out, struct nt_export_lines *lines, struct nt_bytes process,
                        struct nt_bytes text)
{
    struct nt_buffer cell = { 0 };
    nt_text_append(&cell, process.data, process.size);
    pad(&cell, 0, &lines->process, PROCESS_MOST);
    size_t from = cell.size;
    nt_buffer_append(&cell, text.data, text.size);
    if (text.size == 0)
        nt_buffer_byte(&cell, '.');
    pad(&cell, from, &lines->object, OBJECT_MOST);
    nt_buffer_append(out, cell.data, cell.size);
    (void)nt_buffer_fail(out, cell.error);
    nt_buffer_fini(&cell);
}

static void write_kind(struct nt_buffer *out, struct nt_export_lines *lines, const struct nt_life *life, unsigned kind)
{
    struct nt_buffer cell = { 0 };
    char room[NT_MODEL_KIND_ROOM];
    struct nt_bytes name = nt_life_kind(life, kind, room);
    nt_text_append(&cell, name.data, name.size);
    pad(&cell, 0, &lines->kind, KIND_MOST);
    nt_buffer_append(out, cell.data, cell.size);
    (void)nt_buffer_fail(out, cell.error);
    nt_buffer_fini(&cell);
}

static void write_amount(struct nt_buffer *out, unsigned kind, uint64_t value)
{
    const char *unit = nt_model_kind_unit(kind);
    bool code = unit && strcmp(unit, "code") == 0;
    nt_buffer_text(out, code ? "code " : "");
    nt_buffer_u64(out, value);
    if (unit && !code && strcmp(unit, "count") != 0) {
        nt_buffer_byte(out, ' ');
        nt_buffer_text(out, unit);
    }
}

/* ---- What few have ---- */

/* Text in quotes, on one line, that cannot command a terminal, nor end the quotes and tell what is not so. */
static void write_quoted(struct nt_buffer *out, struct nt_bytes text, char quote)
{
    nt_buffer_byte(out, quote);
    for (size_t from = 0, at; from < text.size; from = at) {
        const char *found = memchr(text.data + from, quote, text.size - from);
        at = found ? (size_t)(found - text.data) : text.size;
        nt_text_append(out, text.data + from, at - from);
        if (found) {
            nt_buffer_byte(out, '\\');
            nt_buffer_byte(out, quote);
            at++;
        }
    }
    nt_buffer_byte(out, quote);
}

static void write_value(struct nt_buffer *out, const struct nt_event_value *value)
{
    switch (value->type) {
    case NT_FIELD_I64:
        nt_buffer_print(out, "%lld", (long long)value->as.i64);
        break;
    case NT_FIELD_F64:
        nt_buffer_print(out, "%.17g", value->as.f64);
        break;
    case NT_FIELD_BYTES:
        for (size_t i = 0; i < value->as.bytes.size; i++)
            nt_buffer_print(out, "%02x", (unsigned char)value->as.bytes.data[i]);
        break;
    case NT_FIELD_STRING:
        write_quoted(out, value->as.bytes, '"');
        break;
    case NT_FIELD_ID:
        nt_buffer_hex64(out, value->as.u64);
        break;
    default:
        nt_buffer_u64(out, value->as.u64);
        break;
    }
}

static void write_fields(struct nt_buffer *out, const struct nt_event *event, const struct nt_life *life)
{
    const struct nt_source_kind *kind = nt_life_declared(life, event->kind);
    struct nt_event_value value;
    size_t at = 0;
    if (event->data_size > 0 && !kind) {
        nt_buffer_print(out, "  %u bytes of fields that are not declared", (unsigned)event->data_size);
        return;
    }
    for (size_t i = 0; kind && i < kind->field_count; i++) {
        if (!nt_event_field(event, kind->fields[i].type, &at, &value))
            break;
        nt_buffer_text(out, i == 0 ? "  " : " ");
        nt_text_append(out, kind->fields[i].name.data, kind->fields[i].name.size);
        nt_buffer_byte(out, '=');
        write_value(out, &value);
    }
}

static void write_flags(struct nt_buffer *out, unsigned flags)
{
    /* Which are seen from the line itself, or are of no interest in one. */
    flags &= ~(NT_RECORD_DATA | NT_EVENT_SHARED);
    const char *before = "  ";
    for (unsigned bit = 0; bit < FLAG_BITS; bit++) {
        if (!(flags >> bit & 1) || !nt_event_flag_name(bit))
            continue;
        nt_buffer_text(out, before);
        nt_buffer_text(out, nt_event_flag_name(bit));
        before = " ";
    }
}

static void write_session(struct nt_buffer *out, const struct nt_export_event *line)
{
    if (line->event->session == 0)
        return;
    nt_buffer_text(out, "  session ");
    if (line->session.size > 0)
        write_quoted(out, line->session, '\'');
    else
        nt_buffer_hex64(out, line->event->session);
}

/* ---- Lines ---- */

/* What became of a session: the value says it, the argument what it has to do with. */
static void write_session_event(struct nt_buffer *out, const struct nt_event *event)
{
    static const char *const whats[] = { "code ", "new", "end", "standing", "join" };
    bool known = event->value > 0 && event->value < sizeof whats / sizeof *whats;
    nt_buffer_text(out, whats[known ? event->value : 0]);
    if (!known) {
        nt_buffer_u64(out, event->value);
    } else if (event->value == SESSION_NEW && event->argument != 0) {
        nt_buffer_text(out, " in ");
        nt_buffer_hex64(out, event->argument);
    } else if (event->value == SESSION_JOIN) {
        nt_buffer_text(out, " from read #");
        nt_buffer_u64(out, event->argument);
    }
}

static void write_change(struct nt_buffer *out, const struct nt_event *event)
{
    if (event->setter == 0 && event->value == event->argument) {
        nt_buffer_text(out, "changed, more often than was seen");
        return;
    }
    nt_model_mask_append(out, event->argument);
    nt_buffer_text(out, "  ->  ");
    nt_model_mask_append(out, event->value);
    if (event->setter != 0)
        nt_buffer_print(out, "  by process %u", event->setter);
}

void nt_export_text_event(const struct nt_export_event *line, struct nt_export_lines *lines, struct nt_buffer *out)
{
    const struct nt_event *event = line->event;
    write_time(out, event->time);
    write_place(out, lines, line->life->program->full_name, line->life->below);
    write_kind(out, lines, line->life, event->kind);
    if (event->kind == NT_MODEL_KIND_MASK && event->ring == NT_EVENT_NO_RING) {
        write_change(out, event);
    } else {
        if (event->kind == NT_MODEL_KIND_SESSION)
            write_session_event(out, event);
        else
            write_amount(out, event->kind, event->value);
        nt_buffer_text(out, "  #");
        nt_buffer_u64(out, event->count);
        nt_buffer_text(out, "  total ");
        nt_buffer_u64(out, event->total);
    }
    if (event->merged > 1)
        nt_buffer_print(out, "  of %u events", event->merged);
    if (event->argument != 0 && !(event->flags & NT_RECORD_DATA) && event->ring != NT_EVENT_NO_RING &&
        event->kind != NT_MODEL_KIND_SESSION) {
        nt_buffer_text(out, "  argument ");
        nt_buffer_u64(out, event->argument);
    }
    write_session(out, line);
    write_flags(out, event->flags);
    write_fields(out, event, line->life);
    nt_buffer_byte(out, '\n');
}

void nt_export_text_missing(const struct nt_export_missing *missing, struct nt_export_lines *lines,
                            struct nt_buffer *out)
{
    static const char *const whats[] = {
        [NT_EXPORT_OVERWRITTEN] = " overwritten",
        [NT_EXPORT_LOST] = " lost",
        [NT_EXPORT_NOT_LOGGED] = " not logged",
        [NT_EXPORT_LEFT_OUT] = " left out",
        [NT_EXPORT_FOUND] = " found that were told as missing",
    };
    const struct nt_life *life = missing->life;
    write_time(out, missing->to_time != 0 ? missing->to_time : missing->from_time);
    if (life) {
        write_place(out, lines, missing->program->full_name, life->below);
        write_kind(out, lines, life, missing->kind);
    } else {
        char ring[24];
        int size = snprintf(ring, sizeof ring, "ring %u", missing->ring);
        write_place(out, lines, missing->program->full_name, (struct nt_bytes){ ring, (size_t)size });
    }
    nt_buffer_text(out, "-- ");
    nt_buffer_u64(out, missing->count);
    nt_buffer_text(out, whats[missing->why]);
    if (life) {
        nt_buffer_text(out, ": #");
        nt_buffer_u64(out, missing->first);
        if (missing->last != missing->first) {
            nt_buffer_text(out, " to #");
            nt_buffer_u64(out, missing->last);
        }
    }
    nt_buffer_text(out, " --\n");
}
