/* SPDX-License-Identifier: BSD-3-Clause */
/* A forked child's log: made at its first count, its objects registered one by one as they are used, each in
   the slot and generation that it has in the parent's log, with the parent's sums as its base. The parent's
   file is only read. */
#include <string.h>
#include <unistd.h>

#include "log/log.h"

#define DEPTH_MAX 64u

static void ancestor_push(struct nt_log *log)
{
    uint32_t keep = log->ancestor_count < LOG_ANCESTORS ? log->ancestor_count : LOG_ANCESTORS - 1;
    memmove(&log->ancestors[1], &log->ancestors[0], keep * sizeof(log->ancestors[0]));
    log->ancestors[0] = log->map;
    log->ancestor_count = keep + 1;
}

static void child_start(struct nt_log *log)
{
    const struct log_map *parent = &log->ancestors[0];
    log_object_root(log);
    log_kinds_copy(&log->map, parent);
    /* new objects go behind every slot that may be inherited */
    uint32_t slots = __atomic_load_n(&parent->live->slots, __ATOMIC_ACQUIRE);
    if (slots > log->map.slot_max)
        slots = log->map.slot_max;
    if (slots > log->map.live->slots)
        __atomic_store_n(&log->map.live->slots, slots, __ATOMIC_RELEASE);
}

static bool child_open(struct nt_log *log)
{
    struct log_identity identity;
    ancestor_push(log);
    log->origin = log->ancestors[0].header->id;
    log->origin_pid = log->ancestors[0].header->pid;
    log->inherited = __atomic_load_n(&log->ancestors[0].live->slots, __ATOMIC_ACQUIRE);
    memset(&log->map, 0, sizeof(log->map));
    log->next_clock_pair = 0;
    int error = log_identity(&identity);
    if (error == 0)
        error = log_file_open(log, &identity);
    if (error < 0)
        return false;
    if (error == 1)
        child_start(log);
    log->ended = false;
    log_opened(log, error == 1);
    return true;
}

/* Signals are blocked. Serialised by the process's lock; the second thread finds it done. */
bool log_forked(struct nt_log *log)
{
    struct log_process *process = log_process();
    if (!process || !log_lock(&process->lock))
        return false;
    uint32_t self = (uint32_t)getpid();
    if (log->owner != self) {
        bool broken = log->broken || !child_open(log);
        log->broken = broken;
        process->refused[log->index] = broken;
        log->owner = self;
    }
    log_unlock(&process->lock);
    return !log->broken;
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
    }
    return NULL;
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

/* The base: what the ancestor counted, and its own base. */
static void base_take(struct log_map *map, struct nt_layout_object *to, const struct log_map *from_map,
                      const struct nt_layout_object *from)
{
    struct base_step step = { map, to };
    for (uint32_t at = from->extras; at && at < from_map->block_max;) {
        const struct nt_layout_extra *extra = (const void *)(from_map->blocks + (uint64_t)at * 64);
        struct nt_layout_tally before = { .sum = extra->base };
        if (extra->holds & NT_EXTRA_BASE)
            base_add(&step, extra->kind, &before);
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

/* One object, under the lock. */
static struct nt_layout_object *register_one(struct nt_log *log, uint32_t slot, uint32_t generation)
{
    struct log_map *map = &log->map;
    struct nt_layout_object *entry = &map->objects[slot];
    if (!log_object_back(map, slot))
        return NULL;
    if (entry->last_generation) /* registered by another thread, or closed since */
        return log_object_is(entry, generation) ? entry : NULL;
    const struct log_map *from_map;
    const struct nt_layout_object *from = ancestor_entry(log, slot, generation, &from_map);
    char name[NT_LAYOUT_NAME];
    struct log_object_plan plan = { .name = name, .kind = NT_OBJECT_OTHER, .mask = NT_MASK_DEFAULT };
    plan.described = NT_DESCRIBED_FORKED | NT_DESCRIBED_UNKNOWN;
    plan.parent_generation = map->objects[0].generation;
    if (from) {
        plan_describe(&plan, from_map, from, (uint32_t)getppid() == log->origin_pid);
        plan.name_size = from->name_size <= NT_LAYOUT_NAME ? from->name_size : NT_LAYOUT_NAME;
        memcpy(name, from_map->strings + (uint64_t)from->name * 16, plan.name_size);
    }
    if (!log_object_fill(map, slot, generation, &plan))
        return NULL;
    if (from)
        base_take(map, entry, from_map, from);
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

/* Registers an inherited object and those above it. NULL: not inherited, closed since, or no room. */
struct nt_layout_object *log_fork_register(struct nt_log *log, uint32_t slot, uint32_t generation)
{
    if (!slot || slot >= log->inherited || slot >= log->map.slot_max)
        return NULL;
    struct log_guard guard;
    struct nt_layout_object *entry = NULL;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        entry = register_chain(log, slot, generation);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    return entry;
}
