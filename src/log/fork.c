/* SPDX-License-Identifier: BSD-3-Clause */
/* A forked child's log: made at its first count, its objects registered one by one as they are used, each in
   the slot and generation that it has in the parent's log, with the parent's sums as its base. The parent's
   file is only read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/process.h"

#include "log/log.h"

#define DEPTH_MAX 64u
#define INHERITED_MAX UINT64_C(1048576) /* bytes of entries that a child backs at once */

static void ancestor_push(struct nt_log *log)
{
    uint32_t keep = log->ancestor_count < LOG_ANCESTORS ? log->ancestor_count : LOG_ANCESTORS - 1;
    const struct log_map *last = &log->ancestors[LOG_ANCESTORS - 1];
    if (log->ancestor_count == LOG_ANCESTORS && last->base)
        munmap(last->base, last->size);
    memmove(&log->ancestors[1], &log->ancestors[0], keep * sizeof(log->ancestors[0]));
    log->ancestors[0] = log->map;
    log->ancestor_count = keep + 1;
}

static void child_start(struct nt_log *log)
{
    const struct log_map *parent = &log->ancestors[0];
    log_kinds_copy(&log->map, parent);
    /* new objects go behind every slot that may be inherited */
    uint32_t slots = log->inherited < log->map.slot_max ? log->inherited : log->map.slot_max;
    if (slots > log->map.live->slots)
        __atomic_store_n(&log->map.live->slots, slots, __ATOMIC_RELEASE);
}

/* The quick path reads an inherited object's entry before it is registered: all of them must have memory, else
   that path is closed. */
static bool child_is_sparse(struct nt_log *log)
{
    uint64_t bytes = (uint64_t)log->inherited * sizeof(log->map.objects[0]);
    return log->inherited > log->map.slot_max || bytes > INHERITED_MAX ||
           (bytes && !log_is_backed(&log->map, log->map.objects, bytes) &&
            !log_back(&log->map, log->map.objects, bytes));
}

/* Makes the child's log in `fresh`, a copy, so that another thread that forks meanwhile passes on the parent's. */
static bool child_open(struct nt_log *fresh)
{
    struct log_identity identity;
    if (!fresh->map.base)
        return false;
    ancestor_push(fresh);
    const struct log_map *parent = &fresh->ancestors[0];
    fresh->origin = parent->header->id;
    fresh->origin_pid = parent->header->pid;
    fresh->inherited = __atomic_load_n(&parent->live->slots, __ATOMIC_ACQUIRE);
    fresh->next_clock_pair = 0;
    fresh->ended = false;
    int error = log_identity(&identity);
    if (error == 0)
        error = log_file_open(fresh, &identity);
    if (error < 0)
        return false;
    if (error == 1)
        child_start(fresh);
    log_opened(fresh, error == 1);
    fresh->sparse = child_is_sparse(fresh);
    return true;
}

static bool child_make(struct nt_log *log)
{
    struct nt_log *fresh = mmap(NULL, sizeof(*fresh), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return false;
    *fresh = *log;
    bool done = child_open(fresh);
    if (done)
        *log = *fresh;
    munmap(fresh, sizeof(*fresh));
    return done;
}

/* Signals are blocked. Serialised by the process's lock; the second thread finds it done. */
bool log_forked(struct nt_log *log)
{
    struct log_process *process = log_process();
    bool made = false;
    if (!process || !log_lock(&process->lock))
        return false;
    if (!process->mine[log->index] && !process->refused[log->index]) {
        made = !log->broken && child_make(log);
        process->mine[log->index] = made;
        process->refused[log->index] = !made;
    }
    bool mine = process->mine[log->index];
    log_unlock(&process->lock);
    if (made)
        log_retain(&log->settings);
    return mine;
}

/* ---- fork() itself ---- */

/* In the place of a map, at its addresses, in one step: threads may be counting there right now. Without access at
   first, and unlocked: under mlockall(MCL_FUTURE) all of it would be populated. */
void log_map_blank(struct log_map *map)
{
    void *blank = mmap(NULL, map->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blank == MAP_FAILED)
        return;
    munlock(blank, map->size);
    if (mprotect(blank, map->size, PROT_READ | PROT_WRITE) != 0 ||
        mremap(blank, map->size, map->size, MREMAP_MAYMOVE | MREMAP_FIXED, map->base) == MAP_FAILED)
        munmap(blank, map->size);
}

static uint64_t forked_at;

void log_fork_prepare(void)
{
    __atomic_store_n(&forked_at, nt_now(), __ATOMIC_RELAXED);
}

/* A handler may fork in the middle of an event, and the child finishes that event too, at the same addresses: so these
   must not be the parent's any more. The child reads the parent's log at others. */
void log_fork_child(void)
{
    int saved = errno;
    for (uint32_t i = 0; i < LOG_MAX; i++) {
        struct nt_log *log = &log_table[i];
        if (!log->used || !log->map.base)
            continue;
        struct log_map moved = log->map;
        moved.base = mremap(log->map.base, 0, log->map.size, MREMAP_MAYMOVE);
        if ((void *)moved.base == MAP_FAILED)
            continue;
        log_layout_bind(&moved);
        moved.left_at = __atomic_load_n(&forked_at, __ATOMIC_RELAXED);
        log_map_blank(&log->map);
        log->map = moved;
    }
    errno = saved;
}

/* ---- objects ---- */

static const struct nt_layout_object *ancestor_entry(const struct nt_log *log, uint32_t slot, uint32_t generation,
                                                     const struct log_map **ret_map)
{
    for (uint32_t i = 0; i < log->ancestor_count; i++) {
        const struct log_map *map = &log->ancestors[i];
        if (slot >= map->slot_max || !log_is_backed(map, &map->objects[slot], sizeof(map->objects[slot])))
            continue;
        const struct nt_layout_object *entry = &map->objects[slot];
        if (__atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE) == generation) {
            *ret_map = map;
            return entry;
        }
        if (entry->last_generation) /* the nearest that used the slot knows best */
            break;
    }
    return NULL;
}

/* Whether the handle was stale already when this process was forked. What the parent does later does not matter. */
static bool ancestor_stale(const struct nt_log *log, uint32_t slot, uint32_t generation)
{
    for (uint32_t i = 0; i < log->ancestor_count; i++) {
        const struct log_map *map = &log->ancestors[i];
        if (slot >= map->slot_max || !log_is_backed(map, &map->objects[slot], sizeof(map->objects[slot])))
            continue;
        const struct nt_layout_object *entry = &map->objects[slot];
        uint64_t closed = __atomic_load_n(&entry->closed, __ATOMIC_RELAXED);
        if (entry->generation)
            return entry->generation == generation ? closed && closed < map->left_at : entry->opened < map->left_at;
    }
    return false;
}

/* Whether the process of a log may still count there. */
static bool ancestor_lives(const struct log_map *map)
{
    struct nt_process_status status;
    if (map->header->pid_namespace != nt_process_pid_namespace())
        return true;
    int error = nt_process_status(map->header->pid, &status);
    return error != -ESRCH && (error < 0 || (status.start_time == map->header->start_time && status.state != 'Z'));
}

struct base_step {
    struct log_map *map;
    struct nt_layout_object *to;
};

static void base_add(void *arg, nt_kind kind, const struct nt_layout_tally *tally)
{
    const struct base_step *step = arg;
    struct nt_layout_extra *extra = log_extra_new(step->map, step->to, kind);
    if (!extra)
        return;
    struct nt_layout_pair sum = log_pair_load(&tally->sum);
    extra->base.count += sum.count;
    extra->base.total += sum.total;
    extra->holds |= NT_EXTRA_BASE;
}

static void lineage_take(const struct base_step *step, const struct nt_layout_extra *from)
{
    struct nt_layout_extra *extra = log_extra_new(step->map, step->to, from->kind);
    if (!extra)
        return;
    extra->lineage = log_pair_load(&from->lineage);
    extra->holds |= NT_EXTRA_LINEAGE;
}

/* The base: what the ancestor counted, and its own base. Its predecessors are the same. */
static void base_take(struct log_map *map, struct nt_layout_object *to, const struct log_map *from_map,
                      const struct nt_layout_object *from)
{
    struct base_step step = { map, to };
    for (uint32_t at = from->extras; at && at < from_map->block_max;) {
        const struct nt_layout_extra *extra = (const void *)(from_map->blocks + (uint64_t)at * 64);
        const struct nt_layout_tally before = { .sum = log_pair_load(&extra->base) };
        if (extra->holds & NT_EXTRA_BASE)
            base_add(&step, extra->kind, &before);
        if (extra->holds & NT_EXTRA_LINEAGE)
            lineage_take(&step, extra);
        at = extra->next;
    }
    log_tally_each(from_map, from, base_add, &step);
}

static void plan_describe(struct log_object_plan *plan, const struct log_map *from_map,
                          const struct nt_layout_object *from, bool parent_lives)
{
    plan->kind = from->kind;
    plan->discipline = from->discipline;
    plan->parent = from->parent;
    plan->parent_generation = from->parent_generation;
    plan->previous = from->previous;
    plan->previous_generation = from->previous_generation;
    plan->epoch = from->epoch;
    plan->session = from->session;
    plan->mask = from_map->control[from - from_map->objects];
    plan->described = NT_DESCRIBED_FORKED | (parent_lives ? NT_DESCRIBED_LATE : 0);
}

/* Puts away what a stale handle made. */
static bool unknown_end(struct log_map *map, uint32_t slot)
{
    struct nt_layout_object *entry = &map->objects[slot];
    if (!entry->live)
        return false;
    __atomic_store_n(&entry->live, 0, __ATOMIC_RELEASE);
    entry->closed = nt_now();
    __atomic_store_n(&entry->life, NT_LIFE_CLOSED, __ATOMIC_RELEASE);
    __atomic_store_n(&map->live->living, map->live->living - 1, __ATOMIC_RELAXED);
    return log_fold(map, slot);
}

/* One object, under the lock. */
static struct nt_layout_object *register_one(struct nt_log *log, uint32_t slot, uint32_t generation)
{
    struct log_map *map = &log->map;
    struct nt_layout_object *entry = &map->objects[slot];
    if (!log_object_back(map, slot))
        return NULL;
    const struct log_map *from_map;
    const struct nt_layout_object *from = ancestor_entry(log, slot, generation, &from_map);
    if (from && entry->described & NT_DESCRIBED_UNKNOWN && entry->last_generation != generation &&
        !unknown_end(map, slot)) /* registered for a handle of an earlier life */
        return NULL;
    /* registered by another thread, or closed since */
    if (entry->generation || entry->last_generation == generation || (!from && entry->last_generation))
        return log_object_is(entry, generation) ? entry : NULL;
    char name[NT_LAYOUT_NAME];
    struct log_object_plan plan = { .name = name, .kind = NT_OBJECT_OTHER, .mask = NT_MASK_DEFAULT };
    plan.described = NT_DESCRIBED_FORKED | NT_DESCRIBED_UNKNOWN;
    plan.parent_generation = map->objects[0].generation;
    if (from) {
        plan_describe(&plan, from_map, from, ancestor_lives(from_map));
        plan.name_size = from->name_size <= NT_LAYOUT_NAME ? from->name_size : NT_LAYOUT_NAME;
        memcpy(name, from_map->strings + (uint64_t)from->name * 16, plan.name_size);
    }
    if (!log_object_fill(map, slot, generation, &plan))
        return NULL;
    if (from) {
        base_take(map, entry, from_map, from);
        log_notes_copy(map, entry, from_map, from);
        log_histograms_pass(from_map, from, map, entry);
    }
    log_object_publish(entry);
    return entry;
}

static struct nt_layout_object *register_chain(struct nt_log *log, uint32_t slot, uint32_t generation)
{
    uint32_t slots[DEPTH_MAX], generations[DEPTH_MAX], depth = 0;
    const struct log_map *from_map;
    while (depth < DEPTH_MAX && slot && slot < log->map.slot_max) {
        slots[depth] = slot;
        generations[depth++] = generation;
        const struct nt_layout_object *from = ancestor_entry(log, slot, generation, &from_map);
        if (!from || !from->parent_generation)
            break;
        slot = from->parent;
        generation = from->parent_generation;
    }
    struct nt_layout_object *entry = NULL;
    while (depth > 0) {
        depth--;
        entry = register_one(log, slots[depth], generations[depth]);
    }
    return entry;
}

struct nt_layout_object *log_fork_register(struct nt_log *log, uint32_t slot, uint32_t generation, bool *ret_refused)
{
    if (!slot || slot >= log->inherited)
        return NULL;
    struct log_guard guard;
    struct nt_layout_object *entry = NULL;
    bool closed = false;
    log_guard_enter(&guard);
    if (ancestor_stale(log, slot, generation)) {
        closed = true;
    } else if (slot < log->map.slot_max && log_lock(&log->map.live->lock)) {
        entry = register_chain(log, slot, generation);
        closed = !entry && log_is_backed(&log->map, &log->map.objects[slot], sizeof(log->map.objects[slot])) &&
                 log->map.objects[slot].last_generation;
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    *ret_refused = !entry && !closed;
    return entry;
}
