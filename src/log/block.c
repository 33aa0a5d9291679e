/* SPDX-License-Identifier: BSD-3-Clause */
/* Room in the block and string regions: taken from the end, given back to lists by size. Call with the log's
   lock held. */
#include <string.h>

#include "log/log.h"

#define STEP UINT64_C(65536)
#define STEP_FIRST UINT64_C(16384)

/* Makes sure that [offset, offset + bytes) of a region that grows from its start is backed. */
static bool region_grow(struct log_map *map, unsigned char *region, uint64_t offset, uint64_t bytes, uint64_t limit)
{
    if (offset + bytes > limit)
        return false;
    if (log_is_backed(map, region + offset, bytes))
        return true;
    uint64_t from = offset / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE;
    uint64_t step = from < STEP ? STEP_FIRST : STEP;
    if (step > limit - from)
        step = limit - from;
    /* a smaller step may still fit when a whole one does not */
    return log_back(map, region + from, step < bytes ? bytes : step) || log_back(map, region + offset, bytes);
}

static uint32_t *block_list(const struct log_map *map, uint32_t units)
{
    return units == NT_LAYOUT_HISTOGRAM_UNITS ? &map->live->free_histogram : &map->live->free_block[units == 2];
}

uint32_t log_block_new(struct log_map *map, uint32_t units)
{
    uint32_t *list = block_list(map, units);
    uint32_t block = *list;
    if (block) {
        memcpy(list, map->blocks + (uint64_t)block * 64, sizeof(*list));
    } else {
        block = map->live->blocks;
        /* tallies and histograms leave what folds may need */
        if (units != 2 && !log_is_backed(map, map->blocks + (uint64_t)block * 64, (uint64_t)units * 64) &&
            __atomic_load_n(&map->live->backed, __ATOMIC_RELAXED) + map->header->cap / 32 > map->header->cap)
            return 0;
        if (block > map->block_max - units ||
            !region_grow(map, map->blocks, (uint64_t)block * 64, (uint64_t)units * 64, (uint64_t)map->block_max * 64))
            return 0;
        map->live->blocks = block + units;
    }
    memset(map->blocks + (uint64_t)block * 64, 0, (size_t)units * 64);
    return block;
}

void log_block_free(struct log_map *map, uint32_t block, uint32_t units)
{
    uint32_t *list = block_list(map, units);
    memcpy(map->blocks + (uint64_t)block * 64, list, sizeof(*list));
    *list = block;
}

static uint32_t string_class(size_t size)
{
    uint32_t class = 0;
    while ((size_t)16 << class < size)
        class ++;
    return class;
}

uint32_t log_string_new(struct log_map *map, size_t size)
{
    uint32_t class = string_class(size);
    uint32_t *list = &map->live->free_string[class];
    uint32_t units = 1u << class, cell = *list;
    if (cell) {
        memcpy(list, map->strings + (uint64_t)cell * 16, sizeof(*list));
        return cell;
    }
    cell = map->live->strings;
    if (cell > map->string_max - units ||
        !region_grow(map, map->strings, (uint64_t)cell * 16, (uint64_t)units * 16, (uint64_t)map->string_max * 16))
        return 0;
    map->live->strings = cell + units;
    return cell;
}

void log_string_free(struct log_map *map, uint32_t string, size_t size)
{
    uint32_t *list = &map->live->free_string[string_class(size)];
    memcpy(map->strings + (uint64_t)string * 16, list, sizeof(*list));
    *list = string;
}

/* Gives an entry its name, in the cell it has if that is large enough. */
bool log_string_set(struct log_map *map, struct nt_layout_object *entry, const char *data, size_t size)
{
    if (!entry->name || entry->name_room < size) {
        uint32_t cell = log_string_new(map, size);
        if (!cell)
            return false;
        if (entry->name)
            log_string_free(map, entry->name, entry->name_room);
        entry->name = cell;
        entry->name_room = (uint16_t)(16u << string_class(size));
    }
    memcpy(map->strings + (uint64_t)entry->name * 16, data, size);
    entry->name_size = (uint16_t)size;
    return true;
}
