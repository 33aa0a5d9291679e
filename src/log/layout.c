/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the regions of a log lie, for a given cap: every region is as large as it could ever become, most of
   it never backed by memory. */
#include <string.h>

#include "log/log.h"

#define PER_OBJECT (sizeof(struct nt_layout_object) + sizeof(uint64_t) + sizeof(struct nt_layout_change))
#define SLOTS_MIN 256u
#define RINGS_MAX 4096u
#define REGION_ALIGN UINT64_C(65536)

struct region_plan {
    enum nt_layout_region_id id;
    uint32_t entry_size;
    uint64_t entries;
};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static uint64_t regions_place(struct nt_layout_header *header, const struct region_plan *plan, uint32_t count)
{
    uint64_t at = 2 * NT_LAYOUT_PAGE;
    for (uint32_t i = 0; i < count; i++) {
        struct nt_layout_region *region = &header->regions[i];
        region->id = plan[i].id;
        region->entry_size = plan[i].entry_size;
        region->offset = at;
        region->size = round_up(plan[i].entries * plan[i].entry_size, NT_LAYOUT_PAGE);
        at = round_up(at + region->size, plan[i].id < NT_REGION_CONTROL ? NT_LAYOUT_PAGE : REGION_ALIGN);
    }
    header->region_count = count;
    return at;
}

/* Fills in the regions; returns the size of the file. */
uint64_t log_layout_plan(struct nt_layout_header *header, uint64_t cap)
{
    uint64_t slots = clamp(round_up(cap / PER_OBJECT, SLOTS_MIN), SLOTS_MIN, NT_SLOT_MASK_);
    uint64_t rings = clamp(cap / 16384, 8, RINGS_MAX);
    struct region_plan plan[] = {
        { NT_REGION_BITMAP, 8, 0 }, /* set below */
        { NT_REGION_REDO, sizeof(struct nt_layout_redo), 1 },
        { NT_REGION_KINDS, sizeof(struct nt_layout_kind), NT_LAYOUT_CONTINUATION - NT_LAYOUT_USER_KIND },
        { NT_REGION_CONTROL, 8, slots },
        { NT_REGION_CHANGES, sizeof(struct nt_layout_change), round_up(slots, 16) + 1 }, /* behind a head */
        { NT_REGION_OBJECTS, sizeof(struct nt_layout_object), slots },
        { NT_REGION_BLOCKS, 64, clamp(cap / 64, 256, UINT32_MAX / 64) },
        { NT_REGION_STRINGS, 16, clamp(cap / 2 / 16, 1024, UINT32_MAX / 16) },
        { NT_REGION_RINGS, sizeof(struct nt_layout_ring), rings },
        { NT_REGION_RECORDS, 64, round_up(cap, REGION_ALIGN) / 64 },
        { NT_REGION_SESSIONS, sizeof(struct nt_layout_session), clamp(cap / 8 / 128, 256, UINT32_MAX / 128) },
        { NT_REGION_SETTLERS, sizeof(struct nt_layout_settler), rings },
        { NT_REGION_SETTLEMENT, NT_LAYOUT_PAGE, clamp(cap / NT_LAYOUT_PAGE, 64, UINT32_MAX / NT_LAYOUT_PAGE) },
        { NT_REGION_GIVEN, 8, clamp(round_up(cap / 64, NT_LAYOUT_PAGE), NT_LAYOUT_PAGE, UINT32_MAX) / 8 },
    };
    const uint32_t count = sizeof(plan) / sizeof(plan[0]);
    uint64_t pages = regions_place(header, plan, count) / NT_LAYOUT_PAGE;
    /* the bitmap counts its own pages too; one more page covers what it adds */
    plan[0].entries = round_up(pages + pages / 4096 + 64, 64) / 64;
    header->cap = cap;
    header->file_size = regions_place(header, plan, count);
    return header->file_size;
}

static const struct nt_layout_region *region_find(const struct nt_layout_header *header, uint32_t id)
{
    for (uint32_t i = 0; i < header->region_count && i < NT_LAYOUT_REGIONS; i++)
        if (header->regions[i].id == id)
            return &header->regions[i];
    return NULL;
}

static unsigned char *region_at(const struct log_map *map, uint32_t id, uint32_t *ret_entries)
{
    const struct nt_layout_region *region = region_find(map->header, id);
    if (!region || region->offset % NT_LAYOUT_PAGE || !region->entry_size || region->offset > map->size ||
        region->size > map->size - region->offset)
        return NULL;
    uint64_t entries = region->size / region->entry_size;
    *ret_entries = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries;
    return map->base + region->offset;
}

static struct nt_layout_change *behind_head(unsigned char *changes)
{
    return changes ? (struct nt_layout_change *)(void *)(changes + sizeof(struct nt_layout_changes)) : NULL;
}

bool log_layout_bind(struct log_map *map)
{
    uint32_t words, redos, changes, controls, units;
    map->header = (const struct nt_layout_header *)(void *)map->base;
    map->live = (struct nt_layout_live *)(void *)(map->base + NT_LAYOUT_PAGE);
    map->bitmap = (uint64_t *)(void *)region_at(map, NT_REGION_BITMAP, &words);
    map->redo = (struct nt_layout_redo *)(void *)region_at(map, NT_REGION_REDO, &redos);
    map->kinds = (struct nt_layout_kind *)(void *)region_at(map, NT_REGION_KINDS, &map->kind_max);
    map->control = (uint64_t *)(void *)region_at(map, NT_REGION_CONTROL, &controls);
    map->changes = behind_head(region_at(map, NT_REGION_CHANGES, &changes));
    map->objects = (struct nt_layout_object *)(void *)region_at(map, NT_REGION_OBJECTS, &map->slot_max);
    map->blocks = region_at(map, NT_REGION_BLOCKS, &map->block_max);
    map->strings = region_at(map, NT_REGION_STRINGS, &map->string_max);
    map->rings = (struct nt_layout_ring *)(void *)region_at(map, NT_REGION_RINGS, &map->ring_max);
    map->records = region_at(map, NT_REGION_RECORDS, &units);
    map->record_bytes = (uint64_t)units * NT_LAYOUT_SLOT;
    map->sessions = (struct nt_layout_session *)(void *)region_at(map, NT_REGION_SESSIONS, &map->session_max);
    map->settlers = (struct nt_layout_settler *)(void *)region_at(map, NT_REGION_SETTLERS, &map->settler_max);
    map->settlement = region_at(map, NT_REGION_SETTLEMENT, &map->settlement_max);
    map->given = (uint64_t *)(void *)region_at(map, NT_REGION_GIVEN, &map->given_max);
    if (map->kind_max > NT_LAYOUT_CONTINUATION - NT_LAYOUT_USER_KIND)
        map->kind_max = NT_LAYOUT_CONTINUATION - NT_LAYOUT_USER_KIND;
    return map->bitmap && map->redo && map->kinds && map->control && map->changes && map->objects && map->blocks &&
           map->strings && map->rings && map->records && map->sessions && map->settlers && map->settlement &&
           map->given;
}
