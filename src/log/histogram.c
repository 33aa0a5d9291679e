/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms of the values of a kind, kept for those who ask. The tally of such a kind lies in a block, so that the
   quick path, which knows the tallies of the entry only, leaves each count of it to the slow one. */
#include <errno.h>

#include "log/log.h"

static struct nt_layout_histogram *histogram_at(const struct log_map *map, uint32_t unit)
{
    return unit && unit < map->block_max ? (struct nt_layout_histogram *)(void *)(map->blocks + (uint64_t)unit * 64)
                                         : NULL;
}

struct nt_layout_histogram *log_histogram(const struct log_map *map, const struct nt_layout_object *entry,
                                          const struct nt_layout_tally *tally)
{
    int number;
    const struct nt_layout_tally_block *block = log_tally_block(map, entry, tally, &number);
    return block ? histogram_at(map, block->histogram[number]) : NULL;
}

void log_histogram_add(struct nt_layout_histogram *histogram, uint64_t value, bool locked)
{
    uint64_t *count = &histogram->count[nt_layout_bucket_(value)];
    if (locked)
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Under the lock. */
static int histogram_new(struct log_map *map, struct nt_layout_object *entry, nt_kind kind)
{
    const struct nt_layout_tally *tally = log_tally_find(map, entry, kind);
    if (tally)
        return log_histogram(map, entry, tally) ? 0 : -EBUSY;
    uint32_t unit = log_block_new(map, NT_LAYOUT_HISTOGRAM_UNITS);
    struct nt_layout_histogram *histogram = histogram_at(map, unit);
    struct log_tally_place place;
    if (!histogram)
        return -ENOSPC;
    if (!log_tally_place(map, entry, &place)) {
        log_block_free(map, unit, NT_LAYOUT_HISTOGRAM_UNITS);
        return -ENOSPC;
    }
    histogram->owner = (uint32_t)(entry - map->objects);
    histogram->kind = (uint8_t)kind;
    histogram->scale = 3;
    place.block->histogram[place.number] = unit; /* before the kind, which is stored with release */
    (void)log_tally_start(&place, entry, kind);
    return 0;
}

int nt_object_histogram(nt_object object, nt_kind kind)
{
    struct nt_log *log;
    struct log_guard guard;
    if (kind == NT_KIND_NONE || kind >= NT_LAYOUT_CONTINUATION || kind == NT_OPEN || kind == NT_CLOSE ||
        kind == NT_EPOCH)
        return -EINVAL;
    if (!object.handle)
        return 0;
    struct nt_layout_object *entry = log_object_use(object, &log);
    if (!entry)
        return -ENOENT;
    int error = -ENOSPC;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        error = histogram_new(&log->map, entry, kind);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    return error;
}

void log_histograms_pass(const struct log_map *from_map, const struct nt_layout_object *from, struct log_map *to_map,
                         struct nt_layout_object *to)
{
    uint32_t unit = __atomic_load_n(&from->blocks, __ATOMIC_ACQUIRE);
    for (uint32_t hops = 0; unit && unit < from_map->block_max && hops < NT_LAYOUT_KINDS; hops++) {
        const struct nt_layout_tally_block *block = (const void *)(from_map->blocks + (uint64_t)unit * 64);
        for (int i = 0; i < 4; i++)
            if (block->kind[i] && block->histogram[i])
                (void)histogram_new(to_map, to, block->kind[i]);
        unit = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE);
    }
}

void log_histograms_free(struct log_map *map, const struct nt_layout_tally_block *block)
{
    for (int i = 0; i < 4; i++)
        if (block->histogram[i])
            log_block_free(map, block->histogram[i], NT_LAYOUT_HISTOGRAM_UNITS);
}
