/* SPDX-License-Identifier: BSD-3-Clause */
/* What few objects have, see rare.h. Notes are written once and stand for as long as the life does, so each is copied
   at once; whether the life stood is looked at by the caller. */
#include "source/live/rare.h"

#include <string.h>

#define STRING_UNIT 16u
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

static void notes_read(struct live_rare *rare, struct live_map *map, uint32_t unit)
{
    for (unsigned hop = 0; unit != 0 && hop < NOTES_MAX; hop++) {
        struct nt_layout_note note;
        uint64_t at = (uint64_t)unit * STRING_UNIT;
        const void *shared = live_map_at(map, NT_REGION_STRINGS, at, sizeof note);
        if (shared == NULL) {
            return;
        }
        memcpy(&note, shared, sizeof note);
        const void *bytes = live_map_at(map, NT_REGION_STRINGS, at + sizeof note, note.size);
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

const struct nt_source_rare *live_rare_read(struct live_rare *rare, struct live_map *map,
                                            const struct nt_layout_object *entry)
{
    /* acquire: partner is the writer's release store of the link to a whole note */
    uint32_t notes = __atomic_load_n(&entry->notes, __ATOMIC_ACQUIRE);
    if (notes == 0) {
        return NULL;
    }
    rare->told = (struct nt_source_rare){ .links = rare->links };
    rare->size = 0;
    notes_read(rare, map, notes);
    return rare->size > 0 ? &rare->told : NULL;
}
