/* SPDX-License-Identifier: BSD-3-Clause */
/* What formats of the same family share. Inside export. */
#ifndef NT_EXPORT_PARTS_H
#define NT_EXPORT_PARTS_H

#include "base/json.h"
#include "export/export.h"

/* Whether the selection has anything of the program. */
static inline bool nt_export_has_program(const struct nt_export_input *input, uint32_t program)
{
    return !input->selection || input->selection->programs[program] != NT_MODEL_PICKED_NOT;
}

/* How the selection has an object. */
static inline enum nt_model_picked nt_export_picked(const struct nt_export_input *input, uint32_t object)
{
    return input->selection ? (enum nt_model_picked)input->selection->objects[object] : NT_MODEL_PICKED_WHOLE;
}

/* running, stopped, exited, crashed, unknown */
const char *nt_export_state(enum nt_program_state state);
/* A length of time in at most six characters: 320ms, 4.2s, 3m05s, 2h07m, 12d. */
void nt_export_age(struct nt_buffer *out, uint64_t nanoseconds);

void nt_export_json_stat(const struct nt_export_input *input, struct nt_buffer *out);
/* The members of a program's object up to its objects; no braces. */
void nt_export_json_program(struct nt_json *json, const struct nt_model_program *program);
void nt_export_text_stat(const struct nt_export_input *input, struct nt_buffer *out);

#endif
