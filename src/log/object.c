/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects: made, closed, succeeded, masked. */
#include <string.h>
#include <unistd.h>

#include "log/log.h"

#define STEP UINT64_C(65536)
#define STEP_FIRST UINT64_C(16384)
#define QUARANTINE_MAX 4096u /* closed slots kept readable before the oldest is used again */

struct nt_log *log_of(nt_object object)
{
    uint32_t index = (uint32_t)object.handle >> NT_LAYOUT_SLOT_BITS;
    return object.handle >> 32 && index < LOG_MAX && log_table[index].used ? &log_table[index] : NULL;
}

static nt_object object_of(const struct nt_log *log, uint32_t slot, uint32_t generation)
{
    return (nt_object){ (uint64_t)generation << 32 | (uint64_t)log->index << NT_LAYOUT_SLOT_BITS | slot };
}

/* ---- room ---- */

static bool array_back(struct log_map *map, void *entry, uint64_t entry_size, const void *base)
{
    if (log_is_backed(map, entry, entry_size))
        return true;
    uint64_t at = (uint64_t)((unsigned char *)entry - (const unsigned char *)base);
    uint64_t from = at / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE, step = at < STEP ? STEP_FIRST : STEP;
    unsigned char *first = (unsigned char *)entry - (at - from);
    return log_back(map, first, step) || log_back(map, entry, entry_size);
}

/* What stands before the changes of the objects. */
static struct nt_layout_changes *changes_head(const struct log_map *map)
{
    return (struct nt_layout_changes *)(void *)(map->changes - 1);
}

/* Backs all that belongs to a slot. */
bool log_object_back(struct log_map *map, uint32_t slot)
{
    return slot < map->slot_max && array_back(map, &map->objects[slot], sizeof(map->objects[0]), map->objects) &&
           array_back(map, &map->control[slot], sizeof(map->control[0]), map->control) &&
           array_back(map, changes_head(map), sizeof(struct nt_layout_changes), changes_head(map)) &&
           array_back(map, &map->changes[slot], sizeof(map->changes[0]), changes_head(map));
}

void log_control_init(struct log_map *map, uint32_t slot, uint32_t generation, uint64_t mask)
{
    memset(&map->changes[slot], 0, sizeof(map->changes[slot]));
    /* release: partner is the compare-and-swap of who sets masks from outside */
    __atomic_store_n(&map->control[slot],
                     (mask & NT_LAYOUT_MASK_BITS) | (uint64_t)(generation & 0xffff) << NT_LAYOUT_MASK_KINDS,
                     __ATOMIC_RELEASE);
}

static uint32_t quarantine(const struct log_map *map)
{
    uint64_t by_cap = map->header->cap / 16384;
    return by_cap < QUARANTINE_MAX ? (uint32_t)by_cap : QUARANTINE_MAX;
}

/* The slot that has been closed for longest, its sums put into its parent's. */
static bool slot_reuse(struct log_map *map, uint32_t *ret_slot)
{
    struct nt_layout_live *live = map->live;
    uint32_t slot = live->free_head;
    if (!live->free_count || slot >= map->slot_max || !log_fold(map, slot))
        return false;
    live->free_head = map->objects[slot].next_free;
    live->free_count--;
    *ret_slot = slot;
    return true;
}

static bool slot_new(struct log_map *map, uint32_t *ret_slot)
{
    struct nt_layout_live *live = map->live;
    if (live->free_count > quarantine(map) && slot_reuse(map, ret_slot))
        return true;
    uint32_t slot = live->slots;
    if (slot < map->slot_max && log_object_back(map, slot)) {
        /* release: partner is the reader, who looks at slots below only */
        __atomic_store_n(&live->slots, slot + 1, __ATOMIC_RELEASE);
        *ret_slot = slot;
        return true;
    }
    return slot_reuse(map, ret_slot);
}

static void slot_free(struct log_map *map, uint32_t slot)
{
    struct nt_layout_live *live = map->live;
    map->objects[slot].next_free = 0;
    if (live->free_count)
        map->objects[live->free_tail].next_free = slot;
    else
        live->free_head = slot;
    live->free_tail = slot;
    live->free_count++;
}

/* ---- making ---- */

static uint32_t generation_next(uint32_t generation, uint8_t discipline)
{
    uint32_t number = ((generation & ~NT_LAYOUT_LOCKED) + 1) & ~NT_LAYOUT_LOCKED;
    number += !number;
    return number | (discipline == NT_SHARED || !log_pair_is_atomic() ? NT_LAYOUT_LOCKED : 0);
}

/* Describes a life in a slot that is backed and holds none; the lock is held. False: no room for the name. */
bool log_object_fill(struct log_map *map, uint32_t slot, uint32_t generation, const struct log_object_plan *plan)
{
    struct nt_layout_object *entry = &map->objects[slot];
    if (!log_string_set(map, entry, plan->name, plan->name_size))
        return false;
    entry->session = plan->session;
    entry->epoch = plan->epoch;
    entry->kind = plan->kind;
    entry->discipline = plan->discipline;
    entry->described = plan->described;
    entry->parent = plan->parent;
    entry->parent_generation = plan->parent_generation;
    entry->previous = plan->previous;
    entry->previous_generation = plan->previous_generation;
    entry->opened = nt_now();
    entry->closed = 0;
    entry->last_generation = generation;
    __atomic_store_n(&entry->life, NT_LIFE_OPEN, __ATOMIC_RELEASE);
    log_control_init(map, slot, generation, plan->mask);
    __atomic_store_n(&map->live->living, map->live->living + 1, __ATOMIC_RELAXED);
    return true;
}

/* From here on readers see it and it may be counted on. */
void log_object_publish(struct nt_layout_object *entry)
{
    __atomic_store_n(&entry->generation, entry->last_generation, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->live, entry->last_generation & ~NT_LAYOUT_LOCKED, __ATOMIC_RELEASE);
}

/* Under the lock. The generation of the new life, not yet published; 0: no room. */
static uint32_t object_make(struct log_map *map, const struct log_object_plan *plan, uint32_t *ret_slot)
{
    uint32_t slot;
    if (!slot_new(map, &slot))
        return 0;
    uint32_t generation = generation_next(map->objects[slot].last_generation, plan->discipline);
    if (!log_object_fill(map, slot, generation, plan)) {
        slot_free(map, slot);
        return 0;
    }
    *ret_slot = slot;
    return generation;
}

/* An event of an object's beginning or end: `open` and `close` happen once a life and have no tally unless
   somebody counted more of them. */
struct state_event {
    nt_object object;
    nt_kind kind;
    nt_time at;
    uint64_t session, argument;
    struct nt_layout_pair sum;
    bool logged;
};

static void state_record(struct nt_log *log, const struct state_event *state)
{
    struct nt_thread_log_ *part = log_thread_enter(log);
    if (!part || !state->logged)
        return;
    struct nt_event_ event = { .time = state->at,
                               .session = state->session,
                               .argument = state->argument,
                               .object = state->object.handle,
                               .sum = { state->sum.count, state->sum.total } };
    log_record(log, part, state->kind, &event);
}

/* What is told of a new object once it is there, or not. */
static nt_object object_opened(struct nt_log *log, uint32_t slot, uint32_t generation, nt_kind kind)
{
    if (!generation) {
        __atomic_fetch_add(&log->map.live->refused_objects, 1, __ATOMIC_RELAXED);
        return (nt_object){ 0 };
    }
    const struct nt_layout_object *entry = &log->map.objects[slot];
    nt_object object = object_of(log, slot, generation);
    const struct state_event state = {
        .object = object,
        .kind = kind,
        .at = entry->opened,
        .session = entry->session,
        .argument = (uint64_t)entry->previous_generation << 32 | entry->previous,
        .sum = { 1, 0 },
        .logged = __atomic_load_n(&log->map.control[slot], __ATOMIC_RELAXED) & NT_MASK(kind),
    };
    state_record(log, &state);
    return object;
}

/* The program's own object, at slot 0; the lock is held. */
bool log_object_root(struct nt_log *log)
{
    struct log_object_plan plan = { .name = log->settings.name,
                                    .name_size = strlen(log->settings.name),
                                    .kind = NT_OBJECT_PROCESS,
                                    .discipline = NT_SHARED,
                                    .mask = NT_MASK_DEFAULT };
    uint32_t slot;
    if (!object_make(&log->map, &plan, &slot))
        return false;
    log_object_publish(&log->map.objects[slot]);
    return true;
}

nt_object nt_log_object(nt_log *log)
{
    if (!log || !log->used || !log_thread_enter(log))
        return (nt_object){ 0 };
    return object_of(log, 0, log->map.objects[0].generation);
}

static bool options_bad(const nt_object_options *options)
{
    uint32_t reserved = 0;
    for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
        reserved |= options->reserved[i];
    return reserved || options->discipline > NT_SHARED || options->kind > UINT8_MAX ||
           options->flags & ~(uint32_t)NT_OBJECT_MASKED;
}

static struct log_object_plan plan_new(const struct log_map *map, const nt_object_options *options,
                                       const struct nt_layout_object *parent)
{
    struct log_object_plan plan = { .name = options->name ? options->name : "", .name_size = options->name_size };
    if (!plan.name_size || !options->name)
        plan.name_size = strlen(plan.name);
    if (plan.name_size > NT_LAYOUT_NAME)
        plan.name_size = NT_LAYOUT_NAME;
    plan.kind = options->kind ? (uint8_t)options->kind : NT_OBJECT_CHANNEL;
    plan.discipline = (uint8_t)options->discipline;
    plan.mask = options->flags & NT_OBJECT_MASKED ? options->mask : NT_MASK_DEFAULT;
    if (parent) {
        plan.parent = (uint32_t)(parent - map->objects);
        plan.parent_generation = parent->generation;
        plan.session = plan.discipline == NT_SHARED ? 0 : parent->session;
        if (!(options->flags & NT_OBJECT_MASKED))
            plan.mask = __atomic_load_n(&map->control[plan.parent], __ATOMIC_RELAXED);
    }
    return plan;
}

nt_object nt_object_new(nt_log *log, const nt_object_options *given)
{
    const nt_object none = { 0 };
    nt_object_options taken;
    const nt_object_options *options = &taken;
    if (!log || !log->used || !given || !log_options_take(&taken, sizeof(taken), OBJECT_OPTIONS_FIRST, given) ||
        options_bad(options) || !log_thread_enter(log))
        return none;
    nt_object above = log_of(options->parent) == log ? options->parent : nt_log_object(log);
    struct log_object_plan plan = plan_new(&log->map, options, log_object_enter(log, above));
    struct log_guard guard;
    uint32_t slot = 0, generation = 0;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        generation = object_make(&log->map, &plan, &slot);
        if (generation)
            log_object_publish(&log->map.objects[slot]);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    return object_opened(log, slot, generation, NT_OPEN);
}

/* ---- using ---- */

struct nt_layout_object *log_object_enter(struct nt_log *log, nt_object object)
{
    uint32_t slot = (uint32_t)object.handle & NT_SLOT_MASK_, generation = (uint32_t)(object.handle >> 32);
    struct log_map *map = &log->map;
    if (slot < map->slot_max && log_is_backed(map, &map->objects[slot], sizeof(map->objects[slot])) &&
        log_object_is(&map->objects[slot], generation))
        return &map->objects[slot];
    bool refused = false;
    struct nt_layout_object *entry = log->ancestor_count ? log_fork_register(log, slot, generation, &refused) : NULL;
    if (!entry)
        __atomic_fetch_add(refused ? &map->live->refused_tallies : &map->live->stale, 1, __ATOMIC_RELAXED);
    return entry;
}

struct nt_layout_object *log_object_use(nt_object object, struct nt_log **ret_log)
{
    struct nt_log *log = log_of(object);
    if (!log || !log_thread_enter(log))
        return NULL;
    *ret_log = log;
    return log_object_enter(log, object);
}

/* Under the lock; nobody can count on it any more. Returns the event to be logged once the lock is free. */
static struct state_event object_end(struct nt_log *log, struct nt_layout_object *entry, nt_object object)
{
    struct log_map *map = &log->map;
    uint32_t slot = (uint32_t)(entry - map->objects);
    struct state_event state = {
        .object = object,
        .kind = NT_CLOSE,
        .at = nt_now(),
        .session = entry->session,
        .sum = { 1, 0 },
        .logged = __atomic_load_n(&map->control[slot], __ATOMIC_RELAXED) & NT_MASK(NT_CLOSE),
    };
    struct nt_layout_tally *tally = log_tally_find(map, entry, NT_CLOSE);
    if (tally) {
        nt_pair_ sum = log_tally_add(tally, 0, true);
        state.sum = (struct nt_layout_pair){ sum[0], sum[1] };
        if (entry->discipline != NT_SHARED) /* of no session */
            log_pair_store(log_settled(map, entry, tally), sum, object.handle >> 32 & NT_LAYOUT_LOCKED);
        tally->last = state.at;
    }
    entry->closed = state.at;
    __atomic_store_n(&entry->life, NT_LIFE_CLOSED, __ATOMIC_RELEASE);
    __atomic_store_n(&map->live->living, map->live->living - 1, __ATOMIC_RELAXED);
    slot_free(map, slot);
    return state;
}

/* Takes the life away from those who count; false: somebody else did. */
static bool object_retire(struct nt_layout_object *entry, nt_object object)
{
    uint32_t generation = (uint32_t)(object.handle >> 32);
    if (!log_object_is(entry, generation))
        return false;
    __atomic_store_n(&entry->live, 0, __ATOMIC_RELEASE);
    return true;
}

void nt_object_close(nt_object take_object)
{
    struct nt_log *log;
    struct nt_layout_object *entry = log_object_use(take_object, &log);
    if (!entry || entry == log->map.objects)
        return;
    struct log_guard guard;
    struct state_event state = { .logged = false };
    log_guard_enter(&guard);
    log_settle(log, log_thread_enter(log), entry, take_object, NULL);
    if (log_lock(&log->map.live->lock)) {
        if (object_retire(entry, take_object))
            state = object_end(log, entry, take_object);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    state_record(log, &state);
}

/* ---- epochs ---- */

struct lineage_step {
    struct log_map *map;
    const struct nt_layout_object *from;
    struct nt_layout_object *to;
};

static void lineage_add(void *arg, nt_kind kind, const struct nt_layout_tally *tally)
{
    const struct lineage_step *step = arg;
    struct nt_layout_extra *extra = log_extra_new(step->map, step->to, kind);
    if (!extra)
        return;
    struct nt_layout_pair own = log_pair_load(&tally->sum);
    extra->lineage.count += own.count;
    extra->lineage.total += own.total;
    extra->holds |= NT_EXTRA_LINEAGE;
}

/* The successor's lineage: its predecessor's, and its predecessor, with what that one had counted before the log knew
   it. Not yet visible to readers. */
static void lineage_pass(struct log_map *map, const struct nt_layout_object *from, struct nt_layout_object *to)
{
    struct lineage_step step = { map, from, to };
    uint32_t at = from->extras;
    while (at && at < map->block_max) {
        const struct nt_layout_extra *extra = (const void *)(map->blocks + (uint64_t)at * 64);
        const struct nt_layout_tally before = { .sum = extra->lineage }, base = { .sum = extra->base };
        if (extra->holds & NT_EXTRA_LINEAGE)
            lineage_add(&step, extra->kind, &before);
        if (extra->holds & NT_EXTRA_BASE)
            lineage_add(&step, extra->kind, &base);
        at = extra->next;
    }
    log_tally_each(map, from, lineage_add, &step);
    const struct nt_layout_tally once = { .sum = { 1, 0 } };
    if (!log_tally_find(map, from, NT_OPEN))
        lineage_add(&step, NT_OPEN, &once);
    if (!log_tally_find(map, from, NT_CLOSE))
        lineage_add(&step, NT_CLOSE, &once);
}

nt_object nt_object_succeed(nt_object take_object)
{
    const nt_object none = { 0 };
    struct nt_log *log;
    struct nt_layout_object *entry = log_object_use(take_object, &log);
    if (!entry || entry == log->map.objects)
        return none;
    char name[NT_LAYOUT_NAME];
    struct log_object_plan plan = { .name = name, .name_size = entry->name_size, .kind = entry->kind };
    memcpy(name, log->map.strings + (uint64_t)entry->name * 16, entry->name_size);
    plan.discipline = entry->discipline;
    plan.parent = entry->parent;
    plan.parent_generation = entry->parent_generation;
    plan.previous = (uint32_t)(entry - log->map.objects);
    plan.previous_generation = (uint32_t)(take_object.handle >> 32);
    plan.epoch = entry->epoch + 1;
    plan.session = entry->session;
    plan.mask = __atomic_load_n(&log->map.control[plan.previous], __ATOMIC_RELAXED);
    struct state_event state = { .logged = false };
    uint32_t slot = 0, generation = 0;
    struct log_guard guard;
    log_guard_enter(&guard);
    log_settle(log, log_thread_enter(log), entry, take_object, NULL);
    if (log_lock(&log->map.live->lock)) {
        if (object_retire(entry, take_object)) {
            generation = object_make(&log->map, &plan, &slot);
            state = object_end(log, entry, take_object);
            if (generation) {
                lineage_pass(&log->map, entry, &log->map.objects[slot]);
                log_histograms_pass(&log->map, entry, &log->map, &log->map.objects[slot]);
                log_object_publish(&log->map.objects[slot]);
            }
        }
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    state_record(log, &state);
    return object_opened(log, slot, generation, NT_EPOCH);
}

/* ---- masks ---- */

/* Others may be at it too, from any process; readers know a change that two wrote at once by its check. */
static void change_store(struct nt_layout_change *shared, const struct nt_layout_change *change)
{
    __atomic_store_n(&shared->time, change->time, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->before, change->before, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->after, change->after, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->setter, change->setter, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->check, nt_layout_change_check(change), __ATOMIC_RELEASE);
}

void nt_object_mask_set(nt_object object, uint64_t mask)
{
    struct nt_log *log;
    struct nt_layout_object *entry = log_object_use(object, &log);
    if (!entry)
        return;
    uint32_t slot = (uint32_t)(entry - log->map.objects);
    uint64_t *word = &log->map.control[slot];
    struct nt_layout_change change = { .before = __atomic_load_n(word, __ATOMIC_RELAXED) };
    do {
        bool other = change.before >> NT_LAYOUT_MASK_KINDS != (object.handle >> 32 & 0xffff); /* life */
        if (other || !((change.before ^ mask) & NT_LAYOUT_MASK_BITS))
            return;
        change.after = (change.before & ~NT_LAYOUT_MASK_BITS) | (mask & NT_LAYOUT_MASK_BITS);
        change.time = nt_now(); /* before the first event that the change decides on */
    } while (
        !__atomic_compare_exchange_n(word, &change.before, change.after, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    change.setter = (uint32_t)getpid();
    change_store(&log->map.changes[slot], &change);
    /* release: partner is the acquire of readers, who look at the changes when this has become another */
    __atomic_fetch_add(&changes_head(&log->map)->count, 1, __ATOMIC_RELEASE);
}

uint64_t nt_object_mask(nt_object object)
{
    struct nt_log *log;
    struct nt_layout_object *entry = log_object_use(object, &log);
    return entry ? __atomic_load_n(&log->map.control[entry - log->map.objects], __ATOMIC_RELAXED) & NT_MASK_ALL : 0;
}

int nt_object_tally(nt_object object, nt_kind kind, struct nt_layout_tally *ret_tally)
{
    struct nt_log *log;
    struct nt_layout_object *entry = log_object_use(object, &log);
    const struct nt_layout_tally *tally = entry ? log_tally_find(&log->map, entry, kind) : NULL;
    const struct nt_layout_pair none = { 0, 0 }, sum = tally ? log_pair_load(&tally->sum) : none;
    if (!sum.count)
        return -ENOENT;
    ret_tally->sum = sum;
    ret_tally->max = __atomic_load_n(&tally->max, __ATOMIC_RELAXED);
    ret_tally->last = __atomic_load_n(&tally->last, __ATOMIC_RELAXED);
    return 0;
}
