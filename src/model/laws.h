/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what a source told and gave keeps what is promised of tallies and of sessions:
     tally    counts that follow one another have totals that differ by the value; no count comes twice; the tables are
              never behind the events before them; no total, count or maximum of theirs contradicts these;
     gaps     what is missing of a ring was told as lost, and no more counts are missing than were lost or dropped;
     session  the first record of a kind after a change of session says that it is; over one program and kind all
              sessions, none and older included, sum to the objects; no session did more on channels than in all.
   Give it the model of a snapshot, all events and losses in order, the model of a snapshot after these; read it. Knows
   no ring and reads no clock. */
#ifndef NT_MODEL_LAWS_H
#define NT_MODEL_LAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "model/objects.h"
#include "source/merge.h"

#define NT_LAWS_KEPT 10000u /* violations that are kept; all are counted */

struct nt_violation {
    unsigned law; /* 1 or 2 */
    bool gap;     /* may come of events that could not be read */
    uint32_t program;
    uint32_t slot, generation; /* generation 0: of the whole program */
    uint32_t kind;             /* 0: of none */
    char text[160];
};

/* What was looked at. */
struct nt_laws_stats {
    uint64_t events, streams; /* streams: objects and kinds that had events */
    uint64_t slots_lost;      /* in rings, as was told */
    uint64_t lost, not_logged;
    uint64_t tallies; /* that were held against events */
    uint64_t sums;    /* programs and kinds whose sessions were added up */
    uint64_t runs;    /* sums of sessions by channel that were held against those of programs */
    uint64_t violations;
};

/* All zeros: a log. */
struct nt_laws_options {
    bool thinned; /* events were left out on purpose: what is missing need not have been lost */
};

struct nt_laws;

/* `before` is linked, its sessions too, and stands as long. 0 or -ENOMEM. */
int nt_laws_new(const struct nt_model *before, const struct nt_laws_options *options, struct nt_laws **ret_laws);
/* NULL is ignored. */
void nt_laws_free(struct nt_laws *take_laws);

/* In order. 0 or a negative code. */
int nt_laws_event(struct nt_laws *laws, const struct nt_event *event);
int nt_laws_loss(struct nt_laws *laws, const struct nt_merge_loss *loss);

enum {
    NT_LAWS_LATER = 1, /* the snapshot was taken after all events */
    /* Some of the source could not be read, or was not read to the end because programs went on: what is missing is not
       held against it. */
    NT_LAWS_PARTLY = 2
};
/* No more events. `after`: as `before`, of the same source, or the same. `how`: NT_LAWS_…. 0 or a negative code. */
int nt_laws_finish(struct nt_laws *laws, const struct nt_model *after, unsigned how);

/* In the order in which they were found; after nt_laws_finish. */
const struct nt_violation *nt_laws_violations(const struct nt_laws *laws, size_t *ret_count);
struct nt_laws_stats nt_laws_stats(const struct nt_laws *laws);

#endif
