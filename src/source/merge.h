/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a source in order of time: each lane (ring) is in order by itself, the lanes are merged by time, what is
   not old enough is held back for those that come a little later. Where times go back all the same, it is marked;
   what was lost comes in its place. Reads no clock: it is told what time it is. Knows no ring, file or model.

   The order: events of one lane come by position, whatever their times say; of different lanes the earlier one comes
   first; at the same time the one that counted first on the same object. Identity is (program, ring, position), and
   no identity comes twice. */
#ifndef NT_SOURCE_MERGE_H
#define NT_SOURCE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "source/source.h"

#define NT_MERGE_HOLD_NS UINT64_C(50000000)
#define NT_MERGE_MEMORY ((size_t)64 << 20)

struct nt_merge;

/* All zeros: the defaults. */
struct nt_merge_options {
    bool no_hold;     /* nothing is held back: `hold_ns` is not looked at */
    uint64_t hold_ns; /* an event comes out once it is that old; 0: NT_MERGE_HOLD_NS */
    /* Bytes of events held at most, 0: NT_MERGE_MEMORY. When it is full the oldest come out before they are due.
       What it takes to hold one small batch of each lane is not refused. */
    size_t memory;
};

/* Slots of a ring that were overwritten, or never finished. */
struct nt_merge_loss {
    struct nt_source_loss lost;  /* where: [from, to) of the ring, and how many slots */
    uint64_t from_time, to_time; /* of the ring's events before and behind it, 0: none known */
};

/* Exactly one of `event` and `loss` is not NULL. Both, and the event's data, stand until the next call of
   nt_merge_next or nt_merge_flush. */
struct nt_merge_item {
    const struct nt_event *event;
    const struct nt_merge_loss *loss;
    bool late;  /* earlier than something that came out before it: without this mark time never goes back */
    bool ahead; /* more than a second ahead of `now`: comes in its ring's order; what follows is not late for it, but
                   for the one that comes next */
    uint64_t passed; /* the latest time of events that the source left out just before it, 0: none */
};

struct nt_merge_stats {
    uint64_t events, losses; /* that came out */
    uint64_t lost;           /* slots of these losses */
    uint64_t late, ahead;    /* events */
    uint64_t early;          /* events that came out before they were due, for want of memory */
    uint64_t twice;          /* events that the source gave again: they did not come out again */
    size_t held;             /* events now */
    size_t bytes, bytes_max; /* of memory for events, now and at most so far */
};

/* The source is borrowed, and read by nobody else until nt_merge_free. 0 or -ENOMEM. */
int nt_merge_new(struct nt_source *source, const struct nt_merge_options *options, struct nt_merge **ret_merge);
/* NULL is ignored. */
void nt_merge_free(struct nt_merge *take_merge);

/* Takes a look at the source at time `now` (ns since 1970), and hands out up to `room` items that are due. Returns how
   many, 0: none now; or a negative code of the source (its text says more) or -ENOMEM, after which nothing is lost
   and it may be called again. Never blocks. For programs that run: call it every few milliseconds, with a new `now`,
   and on as long as it returns `room`. */
int nt_merge_next(struct nt_merge *merge, uint64_t now, struct nt_merge_item *items, size_t room);
/* Everything that is held or that the source has at the time of the first call, whether due or not; call it on until
   it returns 0, then all of that is out. For snapshots and files, and at the end of following. Ends even while
   programs write faster than it reads. No event is `ahead`. */
int nt_merge_flush(struct nt_merge *merge, struct nt_merge_item *items, size_t room);

/* When the first of what is held will be due; UINT64_MAX: nothing is held. */
uint64_t nt_merge_due(const struct nt_merge *merge);
struct nt_merge_stats nt_merge_stats(const struct nt_merge *merge);

#endif
