/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the masks of one log, whoever made them: from the control words, and from what their setters wrote beside
   them. A setter may be at it, or have died at it: what does not check is not told. docs/format.md, "Control".
   Knows no other part of a log. */
#ifndef NT_SOURCE_LIVE_CHANGE_H
#define NT_SOURCE_LIVE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "event/event.h"
#include "source/live/clock.h"
#include "source/live/map.h"

/* For how long a changed control word waits for its setter to say who it is. */
#define LIVE_CHANGE_GRACE_MS 20u

struct live_change_known { /* of an object's control word and the entry beside it */
    uint64_t word;
    uint64_t tail;  /* the entry's setter and check */
    uint64_t time;  /* of the newest change that was told, 0: none */
    uint32_t since; /* ms, not 0: since then the two do not fit */
    bool seen;
};

struct live_changes {
    struct live_map *map;
    uint32_t program;
    bool begun;
    uint64_t count;                  /* of changes, as the log told it at the last look */
    uint64_t uncounted;              /* changes that were told before the log counted them */
    struct live_change_known *known; /* by slot */
    uint32_t known_count, known_room;
    uint32_t waiting;      /* objects with a `since` */
    uint32_t next;         /* slot: where a thorough look goes on */
    uint64_t looked;       /* ns since 1970: nothing that was not told is older */
    uint64_t waiting_from; /* the same, when the first of those that wait was still as before */
};

struct live_change {
    uint64_t time, ticks;
    uint64_t since;         /* ns since 1970: changes that were not told are not older */
    uint64_t before, after; /* control words */
    uint64_t order;         /* in which they were found */
    uint32_t program, slot, generation, setter;
    bool others; /* there were others since then */
};

struct live_change_list { /* all zeros: empty */
    struct live_change *changes;
    size_t first, count, room; /* [first, count) were not taken yet */
    bool sorted;               /* these are in order of time */
    uint64_t order, serial;
};

/* The oldest ones, as events of kind mask. Returns how many. */
size_t live_change_list_take(struct live_change_list *list, struct nt_event *events, size_t room);
void live_change_list_fini(struct live_change_list *list);

/* What a look needs to know of the time. */
struct live_change_moment {
    uint32_t ms;     /* of a clock that only goes on; not 0 */
    uint64_t time;   /* ns since 1970 */
    uint64_t opened; /* the log, ns since 1970 */
    bool frozen;     /* nobody changes the log any more */
    bool thorough;   /* look for changes that no setter told of, too: some part of the objects a time */
};

void live_changes_init(struct live_changes *changes, struct live_map *map, uint32_t program);
void live_changes_fini(struct live_changes *changes);
/* Whether there is something to look at. If not, `time` (ns since 1970, a little before now; 0: not known) is
   remembered: changes that come are later. Costs one load. */
bool live_changes_pending(struct live_changes *changes, uint64_t time);
/* Adds what is new to the list. Only the last of several changes of a mask between two looks is known: before it one
   of nobody says that there were others, at the time of the look before. 0 or -ENOMEM. */
int live_changes_look(struct live_changes *changes, const struct live_clock *clock,
                      const struct live_change_moment *moment, struct live_change_list *list);

#endif
