/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading one object of a log while the program counts on it, closes it, folds it into its parent and gives its
   slot away: what comes out is one life with exact sums. Knows no file and no ring. */
#ifndef NT_SOURCE_LIVE_OBJECT_H
#define NT_SOURCE_LIVE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "source/live/clock.h"
#include "source/live/map.h"
#include "source/live/rare.h"
#include "source/source.h"

struct live_sums { /* in the order of the kinds */
    struct nt_source_tally tallies[NT_LAYOUT_KINDS];
    size_t count;
};

/* What a fold that is under way says; see nt_layout_redo. */
struct live_redo {
    bool known;     /* `sequence` was loaded */
    bool under_way; /* it is odd, and what follows was copied whole */
    uint64_t sequence;
    uint32_t slot, generation;
    uint32_t parent, parent_generation;
    struct live_sums sums; /* the parent's new `closed` */
};

/* Everything that reading objects of one log needs; large, so one for all objects. */
struct live_objects {
    struct live_map *map;
    const struct live_clock *clock;
    uint32_t program;
    struct live_redo redo;
    struct live_sums own, gone, base, lineage;
    struct live_rare rare;
    char name[NT_LAYOUT_NAME];
    struct nt_source_object object; /* points into the above */
};

void live_objects_init(struct live_objects *objects, struct live_map *map, const struct live_clock *clock,
                       uint32_t program);
/* Slots that were ever used. */
uint32_t live_objects_slots(const struct live_objects *objects);
/* Reads the object of a slot into objects->object. False: none to tell of (free, folded, being made). */
bool live_objects_read(struct live_objects *objects, uint32_t slot);

#endif
