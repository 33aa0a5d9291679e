/* SPDX-License-Identifier: BSD-3-Clause */
/* What the model holds, written in the formats of the world: one file a format, one static list of them.
   Knows no source, file or terminal; ages are counted from a time that is given. */
#ifndef NT_EXPORT_EXPORT_H
#define NT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "export/diff.h"
#include "export/event.h"
#include "export/info.h"
#include "export/session.h"
#include "model/objects.h"
#include "model/path.h"

struct nt_export_input {
    const struct nt_model *model;               /* linked */
    const struct nt_model_selection *selection; /* closed; NULL: everything */
    bool all;                                   /* closed objects one by one, where a format would sum them up */
    uint64_t now;                               /* ns since 1970; 0: not known, no ages */
};

/* All operations append to `out` and leave failures to its `error`; they allocate, and touch nothing else.
   All are mandatory. */
struct nt_export_format {
    const char *name;
    const char *text; /* what it is, a few words */
    /* The statistics tree, or the branches that the selection has. */
    void (*stat)(const struct nt_export_input *input, struct nt_buffer *out);
    /* The selection's numbers: one alone, or each with its path. */
    void (*numbers)(const struct nt_export_input *input, struct nt_buffer *out);
    /* Programs that have a log. */
    void (*programs)(const struct nt_export_input *input, struct nt_buffer *out);
    /* One event, or what is missing before the next one, as one line; `lines` is the same for all of an output. */
    void (*event)(const struct nt_export_event *event, struct nt_export_lines *lines, struct nt_buffer *out);
    void (*missing)(const struct nt_export_missing *missing, struct nt_export_lines *lines, struct nt_buffer *out);
    /* Sessions: a list, trees, or all of each. */
    void (*sessions)(const struct nt_export_sessions *input, struct nt_buffer *out);
    /* What is in one file. */
    void (*info)(const struct nt_export_info *info, struct nt_buffer *out);
    /* What changed from one moment to another. */
    void (*diff)(const struct nt_export_diff *input, struct nt_buffer *out);
    bool sessions_inside; /* `stat` shows all sessions where nothing is selected, if the model has them */
    bool loss_inside;     /* `stat` shows loss where people see it first; else it is told beside the output */
};

extern const struct nt_export_format nt_export_text;
extern const struct nt_export_format nt_export_json;

/* The formats, closed by NULL; the first one is the default. */
extern const struct nt_export_format *const nt_export_formats[];
/* NULL: there is none of that name. */
const struct nt_export_format *nt_export_find(const char *name);

/* What was lost, one line a program that lost anything; of more than a few, the rest in one line.
   Each line starts with `prefix`. Nothing lost: nothing. */
void nt_export_loss(const struct nt_export_input *input, const char *prefix, struct nt_buffer *out);

#endif
