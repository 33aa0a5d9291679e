/* SPDX-License-Identifier: BSD-3-Clause */
/* What few objects have, see rare.h. Notes are written once and stand for as long as the life does, so each is copied
   at once; whether the life stood is looked at by the caller. */
#include "source/live/rare.h"

#include <string.h>

#define STRING_UNIT 16u
#define BLOCK_UNIT 64u
#define NOTES_MAX 16u /* a longer chain runs in a circle */
#define LINK_BITS ((unsigned)NT_NOTE_LINK_WRITE | NT_NOTE_LINK_READ)

static uint32_t links_directions(const struct live_rare *rare)
{
    uint32_t directions = 0;
    for (size_t i = 0; i < rare->told.link_count; i++) {
        directions |= rare->links[i].direction;
    }
    return directions;
}

/* Takes what no note before it said. The room is for one of each. */
static bool note_take(struct live_rare *rare, const struct nt_layout_note *note, struct nt_bytes bytes)
{
    struct nt_source_rare *told = &rare->told;
    if (note->what == NT_NOTE_REMOTE_NODE || note->what == NT_NOTE_REMOTE_PROCESS) {
        struct nt_bytes *name = note->what == NT_NOTE_REMOTE_NODE ? &told->remote_node : &told->remote_process;
        if (name->size > 0 || bytes.size > NT_LAYOUT_NAME) {
            return false;
        }
        *name = bytes;
        return true;
    }
    if (note->what == 0 || (note->what & ~LINK_BITS) != 0 || (note->what & links_directions(rare)) != 0 ||
        note->pairing > NT_PAIR_ID || bytes.size > NT_LAYOUT_LINK_KEY) {
        return false;
    }
    rare->links[told->link_count++] =
        (struct nt_source_link){ .direction = note->what, .pairing = note->pairing, .key = bytes };
    return true;
}

static void notes_read(struct live_rare *rare, uint32_t unit)
{
    for (unsigned hop = 0; unit != 0 && hop < NOTES_MAX; hop++) {
        struct nt_layout_note note;
        uint64_t at = (uint64_t)unit * STRING_UNIT;
        const void *shared = live_map_at(rare->map, NT_REGION_STRINGS, at, sizeof note);
        if (shared == NULL) {
            return;
        }
        memcpy(&note, shared, sizeof note);
        const void *bytes = live_map_at(rare->map, NT_REGION_STRINGS, at + sizeof note, note.size);
        const struct nt_bytes copy = { rare->bytes + rare->size, note.size };
        if (bytes == NULL) {
            return;
        }
        if (note_take(rare, &note, copy)) {
            memcpy(rare->bytes + rare->size, bytes, note.size);
            rare->size += note.size;
        }
        unit = note.next;
    }
}

static void rare_start(struct live_rare *rare)
{
    if (!rare->any) {
        rare->any = true;
        rare->size = rare->bucket_count = 0;
        rare->told = (struct nt_source_rare){ .links = rare->links, .histograms = rare->histograms };
    }
}

void live_rare_begin(struct live_rare *rare, struct live_map *map)
{
    rare->map = map;
    rare->any = false;
}

void live_rare_notes(struct live_rare *rare, const struct nt_layout_object *entry)
{
    /* acquire: partner is the writer's release store of the link to a whole note */
    uint32_t notes = __atomic_load_n(&entry->notes, __ATOMIC_ACQUIRE);
    if (notes != 0) {
        rare_start(rare);
        notes_read(rare, notes);
    }
}

const struct nt_source_rare *live_rare_told(const struct live_rare *rare)
{
    return rare->any && rare->size + rare->bucket_count > 0 ? &rare->told : NULL;
}

/* ---- Histograms ---- */

/* Where the kind belongs; false: it is there. */
static bool histogram_place(const struct live_rare *rare, uint8_t kind, size_t *ret_place)
{
    size_t place = rare->told.histogram_count;
    while (place > 0 && rare->histograms[place - 1].kind >= kind) {
        place--;
    }
    *ret_place = place;
    return place == rare->told.histogram_count || rare->histograms[place].kind != kind;
}

static size_t buckets_read(struct live_rare *rare, const struct nt_layout_histogram *shared)
{
    struct nt_source_bucket *buckets = &rare->buckets[rare->bucket_count];
    size_t count = 0;
    uint64_t low = 0;
    for (uint32_t i = 0; i < NT_LAYOUT_BUCKETS; i++) {
        uint64_t high = nt_layout_bucket_high_(i), inside = live_load64(&shared->count[i]);
        if (inside != 0 && low <= high) {
            buckets[count++] = (struct nt_source_bucket){ low, high, inside };
        }
        low = high + 1;
    }
    return count;
}

void live_rare_histogram(struct live_rare *rare, const struct nt_layout_tally_block *block, int number, uint32_t slot)
{
    enum { SCALE = 3 };
    uint8_t kind = live_load8(&block->kind[number]);
    uint32_t unit = live_load32(&block->histogram[number]);
    if (unit == 0 || kind == 0 || kind == NT_LAYOUT_CONTINUATION) {
        return;
    }
    const struct nt_layout_histogram *shared = live_map_at(rare->map, NT_REGION_BLOCKS, (uint64_t)unit * BLOCK_UNIT,
                                                           sizeof *shared);
    if (shared == NULL || live_load32(&shared->owner) != slot || live_load8(&shared->kind) != kind ||
        live_load8(&shared->scale) != SCALE) {
        return;
    }
    rare_start(rare);
    size_t place, count;
    if (!histogram_place(rare, kind, &place) || (count = buckets_read(rare, shared)) == 0) {
        return;
    }
    struct nt_source_histogram *at = &rare->histograms[place];
    memmove(at + 1, at, (rare->told.histogram_count - place) * sizeof *at);
    *at = (struct nt_source_histogram){ kind, &rare->buckets[rare->bucket_count], count };
    rare->told.histogram_count++;
    rare->bucket_count += count;
}
