/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the sums of a closed object into its parent's `closed`, so that its slot can be used again and no total
   is lost. A redo area makes it one step for a reader, even if the program dies inside. */
#include <string.h>

#include "log/log.h"

struct fold {
    struct log_map *map;
    struct nt_layout_object *from, *to;
    bool failed;
};

static struct nt_layout_object *fold_parent(struct log_map *map, const struct nt_layout_object *entry)
{
    uint32_t parent = entry->parent;
    if (entry->parent_generation && parent < map->slot_max &&
        log_is_backed(map, &map->objects[parent], sizeof(map->objects[parent])) &&
        map->objects[parent].generation == entry->parent_generation)
        return &map->objects[parent];
    return &map->objects[0]; /* the parent went first: the program's own object takes it */
}

static void fold_add(struct fold *fold, nt_kind kind, struct nt_layout_pair sum, uint64_t max, uint64_t last)
{
    struct nt_layout_redo *redo = fold->map->redo;
    struct nt_layout_redo_entry *entry = NULL;
    for (uint32_t i = 0; i < redo->count; i++)
        if (redo->entries[i].kind == kind)
            entry = &redo->entries[i];
    if (!entry) {
        const struct nt_layout_extra *extra = log_extra_new(fold->map, fold->to, kind);
        if (!extra || redo->count == NT_LAYOUT_KINDS) {
            fold->failed = true;
            return;
        }
        entry = &redo->entries[redo->count++];
        *entry = (struct nt_layout_redo_entry){ .kind = (uint8_t)kind };
        if (extra->holds & NT_EXTRA_CLOSED) {
            entry->closed = extra->closed;
            entry->max = extra->closed_max;
            entry->last = extra->closed_last;
        }
    }
    entry->closed.count += sum.count;
    entry->closed.total += sum.total;
    entry->max = max > entry->max ? max : entry->max;
    entry->last = last > entry->last ? last : entry->last;
}

static void fold_tally(void *arg, nt_kind kind, const struct nt_layout_tally *tally)
{
    fold_add(arg, kind, log_pair_load(&tally->sum), tally->max, tally->last);
}

static void fold_collect(struct fold *fold)
{
    const struct nt_layout_object *from = fold->from;
    log_tally_each(fold->map, from, fold_tally, fold);
    for (uint32_t at = from->extras; at && at < fold->map->block_max;) {
        const struct nt_layout_extra *extra = (const void *)(fold->map->blocks + (uint64_t)at * 64);
        if (extra->holds & NT_EXTRA_CLOSED)
            fold_add(fold, extra->kind, extra->closed, extra->closed_max, extra->closed_last);
        at = extra->next;
    }
    /* once a life, and without a tally unless somebody counted more of them */
    const struct nt_layout_pair once = { 1, 0 };
    if (!log_tally_find(fold->map, from, NT_OPEN))
        fold_add(fold, NT_OPEN, once, 0, from->opened);
    if (!log_tally_find(fold->map, from, NT_CLOSE))
        fold_add(fold, NT_CLOSE, once, 0, from->closed);
}

static void fold_apply(struct fold *fold)
{
    struct nt_layout_redo *redo = fold->map->redo;
    for (uint32_t i = 0; i < redo->count; i++) {
        const struct nt_layout_redo_entry *entry = &redo->entries[i];
        struct nt_layout_extra *extra = log_extra(fold->map, fold->to, entry->kind);
        nt_pair_copy_(&extra->closed, (nt_pair_){ entry->closed.count, entry->closed.total });
        __atomic_store_n(&extra->closed_max, entry->max, __ATOMIC_RELAXED);
        __atomic_store_n(&extra->closed_last, entry->last, __ATOMIC_RELAXED);
        __atomic_store_n(&extra->holds, extra->holds | NT_EXTRA_CLOSED, __ATOMIC_RELEASE);
    }
}

/* Empties an entry that readers take for free already, but for its name's cell and what its slot has been. */
static void entry_clear(struct log_map *map, struct nt_layout_object *entry)
{
    uint32_t next;
    for (uint32_t at = entry->blocks; at && at < map->block_max; at = next) {
        const struct nt_layout_tally_block *block = (const void *)(map->blocks + (uint64_t)at * 64);
        next = block->next;
        log_histograms_free(map, block);
        log_block_free(map, at, 4);
    }
    for (uint32_t at = entry->extras; at && at < map->block_max; at = next) {
        next = ((struct nt_layout_extra *)(void *)(map->blocks + (uint64_t)at * 64))->next;
        log_block_free(map, at, 2);
    }
    log_notes_free(map, entry);
    uint32_t free_next = entry->next_free, name = entry->name;
    uint16_t room = entry->name_room;
    memset(entry, 0, offsetof(struct nt_layout_object, last_generation));
    entry->next_free = free_next;
    entry->name = name;
    entry->name_room = room;
}

bool log_fold(struct log_map *map, uint32_t slot)
{
    struct nt_layout_redo *redo = map->redo;
    struct nt_layout_object *from = &map->objects[slot];
    if (from->life != NT_LIFE_CLOSED) /* a slot whose making failed holds nothing */
        return true;
    struct fold fold = { map, from, fold_parent(map, from), false };
    redo->count = 0;
    fold_collect(&fold);
    if (fold.failed)
        return false;
    redo->slot = slot;
    redo->generation = from->generation;
    redo->parent = (uint32_t)(fold.to - map->objects);
    redo->parent_generation = fold.to->generation;
    /* release: partner is the reader that finds the life gone; it sees at least this number, and no later one without
       the generation of the life in between */
    __atomic_store_n(&from->folded, (uint32_t)(redo->sequence / 2 + 1), __ATOMIC_RELEASE);
    /* from here on readers take the parent's sums from the redo area and the object as gone; partner: their
       acquire loads of the sequence before and after */
    __atomic_store_n(&redo->sequence, redo->sequence + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    fold_apply(&fold);
    __atomic_store_n(&from->life, NT_LIFE_FOLDED, __ATOMIC_RELEASE);
    __atomic_store_n(&from->generation, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&redo->sequence, redo->sequence + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    entry_clear(map, from);
    return true;
}
