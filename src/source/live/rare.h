/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading what few objects have: the program's notes of them, histograms. Knows no file and no ring. */
#ifndef NT_SOURCE_LIVE_RARE_H
#define NT_SOURCE_LIVE_RARE_H

#include <stdbool.h>
#include <stddef.h>

#include <nt/log_layout.h>

#include "source/live/map.h"
#include "source/source.h"

/* Large; most of it is touched only where objects have that much. */
struct live_rare {
    struct live_map *map;
    bool any; /* `told` holds something */
    struct nt_source_rare told;
    struct nt_source_link links[2];
    struct nt_source_histogram histograms[NT_LAYOUT_KINDS]; /* in the order of the kinds */
    size_t size, bucket_count;
    char bytes[2 * NT_LAYOUT_LINK_KEY + 2 * NT_LAYOUT_NAME];
    struct nt_source_bucket buckets[NT_LAYOUT_KINDS * NT_LAYOUT_BUCKETS];
};

/* For each object anew; then what it has, in any order. As always it holds only if the life still stands afterwards. */
void live_rare_begin(struct live_rare *rare, struct live_map *map);
void live_rare_notes(struct live_rare *rare, const struct nt_layout_object *entry);
/* The histogram, if there is one, of a tally of the object in that slot. */
void live_rare_histogram(struct live_rare *rare, const struct nt_layout_tally_block *block, int number, uint32_t slot);
/* NULL: nothing. */
const struct nt_source_rare *live_rare_told(const struct live_rare *rare);

#endif
