/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading what few objects have: the program's notes of them. Knows no file and no ring. */
#ifndef NT_SOURCE_LIVE_RARE_H
#define NT_SOURCE_LIVE_RARE_H

#include <stddef.h>

#include <nt/log_layout.h>

#include "source/live/map.h"
#include "source/source.h"

struct live_rare {
    struct nt_source_rare told; /* points into the following */
    struct nt_source_link links[2];
    char bytes[2 * NT_LAYOUT_LINK_KEY + 2 * NT_LAYOUT_NAME];
    size_t size;
};

/* Copies what the entry has to rare->told; returns it, or NULL if that is nothing. As always it holds only if the life
   still stands afterwards. */
const struct nt_source_rare *live_rare_read(struct live_rare *rare, struct live_map *map,
                                            const struct nt_layout_object *entry);

#endif
