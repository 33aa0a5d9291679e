/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says of an object once: what was counted before the log knew it, which link it is an end of, who is at
   the other end. */
#include <errno.h>
#include <string.h>

#include "log/log.h"

/* Signals are blocked and the log is locked between the two, if the result is true. */
static bool note_begin(struct nt_log *log, struct log_guard *guard)
{
    log_guard_enter(guard);
    if (log_lock(&log->map.live->lock))
        return true;
    log_guard_leave(guard);
    return false;
}

static void note_end(struct nt_log *log, struct log_guard *guard)
{
    log_unlock(&log->map.live->lock);
    log_guard_leave(guard);
}

/* ---- what was counted before ---- */

/* Under the lock: whoever counts a kind for the first time makes its tally under it. */
static int base_put(struct log_map *map, struct nt_layout_object *entry, nt_kind kind, nt_pair_ base)
{
    const struct nt_layout_tally *tally = log_tally_find(map, entry, kind);
    if (tally && log_pair_load(&tally->sum).count)
        return -EBUSY;
    struct nt_layout_extra *extra = log_extra_new(map, entry, kind);
    if (!extra)
        return -ENOSPC;
    if (extra->holds & NT_EXTRA_BASE)
        return -EEXIST;
    nt_pair_copy_(&extra->base, base);
    /* release: partner is the reader, who looks at the base only then */
    __atomic_store_n(&extra->holds, extra->holds | NT_EXTRA_BASE, __ATOMIC_RELEASE);
    return 0;
}

int nt_object_base_set(nt_object object, nt_kind kind, uint64_t count, uint64_t total)
{
    struct nt_log *log;
    struct log_guard guard;
    if (kind == NT_KIND_NONE || kind >= NT_LAYOUT_CONTINUATION || (!count && total))
        return -EINVAL;
    if (!object.handle)
        return 0;
    struct nt_layout_object *entry = log_object_use(object, &log);
    if (!entry)
        return -ENOENT;
    if (!note_begin(log, &guard))
        return -ENOSPC;
    int error = base_put(&log->map, entry, kind, (nt_pair_){ count, total });
    note_end(log, &guard);
    return error;
}

/* ---- notes ---- */

#define NOTES_MAX 4u /* each has a bit of its own */

static struct nt_layout_note *note_at(const struct log_map *map, uint32_t string)
{
    return string && string < map->string_max ? (struct nt_layout_note *)(void *)(map->strings + (uint64_t)string * 16)
                                              : NULL;
}

static uint32_t notes_have(const struct log_map *map, const struct nt_layout_object *entry)
{
    uint32_t what = 0, hops = 0;
    for (const struct nt_layout_note *note = note_at(map, entry->notes); note && hops < NOTES_MAX;
         note = note_at(map, note->next), hops++)
        what |= note->what;
    return what;
}

struct saying { /* one note to be */
    uint8_t what, pairing;
    uint16_t size; /* 0: nothing is said */
    const void *bytes;
};

/* Puts it before the others; under the lock. */
static bool note_put(struct log_map *map, struct nt_layout_object *entry, const struct saying *saying)
{
    if (!saying->size)
        return true;
    uint32_t string = log_string_new(map, sizeof(struct nt_layout_note) + saying->size);
    struct nt_layout_note *note = note_at(map, string);
    if (!note)
        return false;
    *note = (struct nt_layout_note){
        .next = entry->notes, .size = saying->size, .what = saying->what, .pairing = saying->pairing
    };
    memcpy(note + 1, saying->bytes, saying->size);
    /* release: partner is the reader, who follows the link to a whole note */
    __atomic_store_n(&entry->notes, string, __ATOMIC_RELEASE);
    return true;
}

static int notes_put(nt_object object, const struct saying *sayings, unsigned count)
{
    struct nt_log *log;
    struct log_guard guard;
    if (!object.handle)
        return 0;
    struct nt_layout_object *entry = log_object_use(object, &log);
    if (!entry)
        return -ENOENT;
    if (!note_begin(log, &guard))
        return -ENOSPC;
    int error = 0;
    uint32_t have = notes_have(&log->map, entry);
    for (unsigned i = 0; i < count; i++)
        if (sayings[i].size && have & sayings[i].what)
            error = -EEXIST;
    for (unsigned i = 0; i < count && !error; i++)
        if (!note_put(&log->map, entry, &sayings[i]))
            error = -ENOSPC;
    note_end(log, &guard);
    return error;
}

int nt_object_link_set(nt_object object, uint32_t direction, uint32_t pairing, const void *key, size_t size)
{
    if (!direction || direction > NT_LINK_BOTH || pairing > NT_PAIR_ID || !key || !size || size > NT_LAYOUT_LINK_KEY)
        return -EINVAL;
    const struct saying saying = { (uint8_t)direction, (uint8_t)pairing, (uint16_t)size, key };
    return notes_put(object, &saying, 1);
}

int nt_object_remote_set(nt_object object, const char *node, const char *process)
{
    size_t node_size = node ? strlen(node) : 0, process_size = process ? strlen(process) : 0;
    if (node_size > NT_LAYOUT_NAME || process_size > NT_LAYOUT_NAME)
        return -EINVAL;
    const struct saying sayings[] = { { NT_NOTE_REMOTE_NODE, 0, (uint16_t)node_size, node },
                                      { NT_NOTE_REMOTE_PROCESS, 0, (uint16_t)process_size, process } };
    return notes_put(object, sayings, 2);
}

void log_notes_copy(struct log_map *to_map, struct nt_layout_object *to, const struct log_map *from_map,
                    const struct nt_layout_object *from)
{
    uint32_t string = __atomic_load_n(&from->notes, __ATOMIC_ACQUIRE);
    for (uint32_t hops = 0; hops < NOTES_MAX; hops++) {
        const struct nt_layout_note *note = note_at(from_map, string);
        /* the ancestor may be at it: what is not whole is not followed */
        if (!note || !log_is_backed(from_map, note, sizeof(*note)) || note->size > NT_LAYOUT_LINK_KEY ||
            !log_is_backed(from_map, note, sizeof(*note) + note->size))
            return;
        const struct saying saying = { note->what, note->pairing, note->size, note + 1 };
        if (!(notes_have(to_map, to) & saying.what))
            (void)note_put(to_map, to, &saying);
        string = note->next;
    }
}

void log_notes_free(struct log_map *map, const struct nt_layout_object *entry)
{
    uint32_t string = entry->notes;
    for (struct nt_layout_note *note; (note = note_at(map, string)) != NULL;) {
        uint32_t next = note->next;
        log_string_free(map, string, sizeof(*note) + note->size);
        string = next;
    }
}
