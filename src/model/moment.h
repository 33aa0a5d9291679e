/* SPDX-License-Identifier: BSD-3-Clause */
/* What had been counted at one moment, from a snapshot taken at any time after it and the events around it: the last
   event before the moment and the first one behind it each have the exact count and total there; they agree, or the
   truth lies between them.
   Feed it events, if there are any, in any order; then ask of each sum of the snapshot. Knows no ring and reads no
   clock. */
#ifndef NT_MODEL_MOMENT_H
#define NT_MODEL_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "model/objects.h"
#include "model/sessions.h"
#include "model/streams.h"

#define NT_MOMENT_END UINT64_MAX

struct nt_moment_sum {
    uint64_t count, total;
    enum nt_model_bound bound; /* of both; LEAST and MOST leave it open whether they are that or all there was */
};

struct nt_moment {             /* all zeros but for `time`: nothing was fed */
    uint64_t time;             /* ns since 1970; NT_MOMENT_END: that of the snapshot, of which no event need be fed */
    struct nt_streams streams; /* by the programs' numbers in their source */
    struct nt_moment_track *tracks;
};

void nt_moment_fini(struct nt_moment *moment);
/* 0, -ENOMEM or -E2BIG. */
int nt_moment_event(struct nt_moment *moment, const struct nt_event *event);
/* Whether that object was there, open or closed. */
bool nt_moment_has(const struct nt_moment *moment, const struct nt_model_object *object);
bool nt_moment_closed(const struct nt_moment *moment, const struct nt_model_object *object);
/* One of the object's own tallies. */
struct nt_moment_sum nt_moment_sum(const struct nt_moment *moment, const struct nt_model *model,
                                   const struct nt_model_object *object, const struct nt_source_tally *tally);

#endif
