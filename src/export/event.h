/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, one line each, as they come: what a format needs beside the event itself, and what is missing between
   events. Inside it is the same for all formats; columns are those of event/columns.def. */
#ifndef NT_EXPORT_EVENT_H
#define NT_EXPORT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "event/event.h"
#include "model/lives.h"

struct nt_export_event {
    const struct nt_event *event;
    const struct nt_life *life;
    uint32_t thread;         /* 0: not known */
    struct nt_bytes session; /* its name, empty if it has none */
};

enum nt_export_why {
    NT_EXPORT_OVERWRITTEN, /* slots of a ring, whosever they were: overwritten, or never finished */
    NT_EXPORT_LOST,        /* counts of an object and kind that no event shows */
    NT_EXPORT_NOT_LOGGED,  /* the same, while the kind was masked off */
    NT_EXPORT_LEFT_OUT,    /* the same, of a recording that was not to have all: lost or not is not known */
    NT_EXPORT_FOUND        /* the same: told as missing before, they came after all */
};

/* What is missing between two events. */
struct nt_export_missing {
    enum nt_export_why why;
    const struct nt_lives_program *program;
    const struct nt_life *life; /* NULL: not of one object */
    uint16_t kind;              /* of the object */
    uint32_t ring;              /* if not of one object */
    uint64_t count;
    uint64_t first, last;        /* counts; of a ring: positions */
    uint64_t from_time, to_time; /* of the events before and behind, 0: none known */
};

/* How wide columns have become so far. All zeros at first. */
struct nt_export_lines {
    size_t process, object, kind;
};

/* The event's `data` as JSON: its fields; what a mask was and became; "null" if it has none. */
void nt_export_event_data(const struct nt_event *event, const struct nt_life *life, struct nt_buffer *out);
/* overwritten, lost, not logged, found */
const char *nt_export_why_text(enum nt_export_why why);

void nt_export_text_event(const struct nt_export_event *event, struct nt_export_lines *lines, struct nt_buffer *out);
void nt_export_text_missing(const struct nt_export_missing *missing, struct nt_export_lines *lines,
                            struct nt_buffer *out);
void nt_export_json_event(const struct nt_export_event *event, struct nt_export_lines *lines, struct nt_buffer *out);
void nt_export_json_missing(const struct nt_export_missing *missing, struct nt_export_lines *lines,
                            struct nt_buffer *out);

#endif
