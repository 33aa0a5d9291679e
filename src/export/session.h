/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to be said of sessions. */
#ifndef NT_EXPORT_SESSION_H
#define NT_EXPORT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/json.h"
#include "model/objects.h"
#include "model/runs.h"
#include "model/sessions.h"

struct nt_export_sessions {
    const struct nt_model *model; /* linked, its sessions too */
    const uint32_t *indexes;      /* which, in this order */
    size_t count;
    bool tree;                     /* with all that is below each, and sums with that */
    bool detail;                   /* all that is known of each: by kind, process and channel */
    bool rest;                     /* and what no session has, and those that found no room */
    const struct nt_run_sum *runs; /* by session, of those at least; for channels */
    size_t run_count;
    uint64_t now; /* ns since 1970; 0: not known, no ages */
};

/* All runs of a session. */
const struct nt_run_sum *nt_export_session_runs(const struct nt_export_sessions *input, uint64_t session,
                                                size_t *ret_count);
/* exact, at least, at most, about */
const char *nt_export_bound(enum nt_model_bound bound);

void nt_export_text_sessions(const struct nt_export_sessions *input, struct nt_buffer *out);
void nt_export_json_sessions(const struct nt_export_sessions *input, struct nt_buffer *out);
/* The members "sessions", "no_session" and "older_sessions" of an object: all, as a tree; or the first alone, empty, if
   none are wanted or the model has none. */
void nt_export_json_session_tree(struct nt_json *json, const struct nt_model *model, bool wanted);

#endif
