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
    const struct nt_layout_redo *redo_shared; /* NULL: not found yet */
    struct live_redo redo;
    bool torn; /* its session moved while one of its tallies was read */
    bool any_settled;
    struct nt_source_pair settled_of[NT_LAYOUT_KINDS]; /* by kind, of those in `own` */
    struct nt_source_pair settled[NT_LAYOUT_KINDS];    /* by place in `own` */
    struct live_sums own, gone, base, lineage;
    struct live_rare rare;
    char name[NT_LAYOUT_NAME];
    struct nt_source_object object; /* points into the above */
    /* of the object read last: */
    bool whole;     /* no fold moved meanwhile, else `gone` may be of two moments */
    uint64_t folds; /* if so: `gone` has the folds into it up to this number */
};

void live_objects_init(struct live_objects *objects, struct live_map *map, const struct live_clock *clock,
                       uint32_t program);
/* Slots that were ever used. */
uint32_t live_objects_slots(const struct live_objects *objects);
uint32_t live_objects_slots_in(const struct live_map *map);
/* Units of the block region, or NULL: there is no such unit, or no memory. */
const void *live_objects_unit(struct live_map *map, uint32_t unit, uint64_t size);
/* Reads the object of a slot into objects->object. False: none to tell of (free, folded, being made). */
bool live_objects_read(struct live_objects *objects, uint32_t slot);

/* Opening and closing need not be counted one by one on the object: that it is there says it. What is one of these two
   can be left out of its own sums, and added again. */
bool live_sums_is_end(const struct nt_source_object *object, const struct nt_source_tally *tally);
void live_sums_add_ends(struct live_sums *own, const struct nt_source_object *object);

/* ---- Folds, see "Sums over a program" in docs/format.md ---- */

/* Moves when a fold begins and when it ends: what was read while it stood still fits together. */
uint64_t live_objects_sequence(struct live_objects *objects);

enum live_presence {
    LIVE_GONE, /* the slot has another life, or none */
    LIVE_LEAF, /* it stands, and nothing was folded into it that had ended when this was called */
    LIVE_HOLDER
};
enum live_presence live_objects_look(struct live_objects *objects, uint32_t slot, uint32_t generation);

struct live_fold {
    uint64_t number; /* 0: none is under way */
    uint32_t slot, generation;
};
/* The fold that is under way: its life may stand in its slot but counts in its parent. All that ended before can be
   seen from now on. False: they move too fast. */
bool live_objects_fold(struct live_objects *objects, struct live_fold *ret_fold);

/* For a life that was found gone: it was folded by no later fold than *ret_number; by that very one, if the result is
   true. */
bool live_objects_folded(struct live_objects *objects, uint32_t slot, uint32_t generation, uint64_t *ret_number);

#endif
