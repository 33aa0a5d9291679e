/* SPDX-License-Identifier: BSD-3-Clause */
/* What sessions did on objects, from the events that are left: on one object and kind the counts of one session are
   runs between two boundaries. A boundary is known from the first record after a change of session, from the start of
   the object, and, of the run that goes on, from the object itself. What no record and no boundary tells of may be
   anybody's; then a session has at least what is known of it, unless that is all that its program knows of it.
   Give it the model of a snapshot, then all events that were read after it, each object's in order of their counts as
   far as they have one (shared objects' in any order); finish; read it. Knows no ring and reads no clock. */
#ifndef NT_MODEL_RUNS_H
#define NT_MODEL_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "model/objects.h"

#define NT_RUNS_MAX (UINT32_C(1) << 24) /* objects and kinds, and sums, each; beyond: -E2BIG */

struct nt_run_sum {   /* of one session on one object and kind */
    uint64_t session; /* 0: none */
    uint32_t program; /* index in the model */
    uint32_t slot, generation;
    uint32_t object; /* index in the model, NT_MODEL_NONE: it is gone */
    uint16_t kind;
    bool exact; /* else at least */
    uint64_t count, total;
};

struct nt_runs;

/* `wanted`: sums of these sessions only; NULL: of all. The model is linked, also its sessions if there are any, and
   stands as long. 0 or -ENOMEM. */
int nt_runs_new(const struct nt_model *model, bool (*wanted)(void *arg, uint64_t session), void *arg,
                struct nt_runs **ret_runs);
/* NULL is ignored. */
void nt_runs_free(struct nt_runs *take_runs);

/* `program`: its index in the model, whatever the event says. 0, -ENOMEM or -E2BIG. */
int nt_runs_event(struct nt_runs *runs, uint32_t program, const struct nt_event *event);
/* No more events. 0 or -ENOMEM, -E2BIG. */
int nt_runs_finish(struct nt_runs *runs);
/* By session, program, object, kind. Stands until the runs are freed. */
const struct nt_run_sum *nt_runs_sums(const struct nt_runs *runs, size_t *ret_count);

#endif
