/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts that no event shows: given events in order, says which counts of an object and kind are missing between two
   that came, and whether they were not logged (the object's mask was off for the kind at some time in between) or
   lost. For every life of an object and every kind, at any time,
       counts that came + missing - found  =  last - first + 1.
   Knows no ring and reads no clock.

   On an exclusive object counts come in order, so that what is missing is told before the event that shows it. On a
   shared one (NT_EVENT_SHARED) they may come in a slightly different order than times: there it is told only when
   events have gone on for `patience_ns`, or at the end. A count that comes after it was told as missing is told as
   found. */
#ifndef NT_MODEL_GAPS_H
#define NT_MODEL_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"

#define NT_GAPS_PATIENCE_NS UINT64_C(50000000)
#define NT_GAPS_OBJECTS ((size_t)1 << 18) /* of some 300 bytes each */

enum nt_gap_why {
    NT_GAP_LOST,       /* overwritten, dropped, or never finished */
    NT_GAP_NOT_LOGGED, /* the kind was masked off for some of the time: some may have been lost too */
    NT_GAP_FOUND       /* came late: told as missing before, and now not missing any more */
};

struct nt_gap {
    enum nt_gap_why why;
    uint16_t kind;
    uint32_t program; /* its number, as in events */
    uint32_t object, generation;
    uint64_t first, last;        /* counts: last - first + 1 of them */
    uint64_t from_time, to_time; /* of the object's events of the kind before and behind it */
};

/* All zeros: the defaults. */
struct nt_gaps_options {
    uint64_t patience_ns; /* in the time of events */
    size_t objects;       /* lives followed at most: beyond that the ones that had no event for longest are forgotten,
                             and begin anew when they come again */
};

struct nt_gaps_stats {
    uint64_t lost, not_logged, found; /* counts told */
    uint64_t forgotten;               /* lives */
    uint64_t odd;                     /* events whose count came before, or cannot be */
    size_t objects;                   /* followed now */
};

struct nt_gaps;

/* 0 or -ENOMEM. */
int nt_gaps_new(const struct nt_gaps_options *options, struct nt_gaps **ret_gaps);
/* NULL is ignored. */
void nt_gaps_free(struct nt_gaps *take_gaps);

/* The next event, before it is shown. Returns how many gaps are to be taken first, or -ENOMEM. */
int nt_gaps_event(struct nt_gaps *gaps, const struct nt_event *event);
/* Events up to that time went by that are not given, as nothing is missing of what they are of. Likewise. */
int nt_gaps_pass(struct nt_gaps *gaps, uint64_t time);
/* No more events: what was waited for is told. Returns how many gaps are to be taken. Events may come again after. */
int nt_gaps_flush(struct nt_gaps *gaps);
/* The next gap that was found, in order; false: no more. */
bool nt_gaps_take(struct nt_gaps *gaps, struct nt_gap *ret_gap);

struct nt_gaps_stats nt_gaps_stats(const struct nt_gaps *gaps);

#endif
