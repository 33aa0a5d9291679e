/* SPDX-License-Identifier: BSD-3-Clause */
/* A change shows in two places that are not written at once: the control word first, then the entry beside it, whose
   check tells a whole one from one that two setters wrote at the same time or that one left half-way. What was seen
   of both is remembered for each object; a word that its entry does not explain is waited on for a while, then told as
   somebody's. */
#include "source/live/change.h"

#include <errno.h>
#include <stdlib.h>

enum live_kind {
#define NT_KIND(number, symbol, name, unit, policy, text) LIVE_KIND_##symbol = number,
#include <nt/kinds.def>
#undef NT_KIND
};

enum {
    GROUP = 128,           /* slots that are looked at together */
    THOROUGH = 512 * GROUP /* slots in one thorough look */
};

void live_changes_init(struct live_changes *changes, struct live_map *map, uint32_t program)
{
    *changes = (struct live_changes){ .map = map, .program = program };
}

void live_changes_fini(struct live_changes *changes)
{
    free(changes->known);
    *changes = (struct live_changes){ 0 };
}

static uint64_t changes_count(const struct live_changes *changes)
{
    const struct nt_layout_changes *shared = live_map_at(changes->map, NT_REGION_CHANGES, 0, sizeof *shared);
    /* acquire: partner is the release of a setter whose entry is whole */
    return shared != NULL ? __atomic_load_n(&shared->count, __ATOMIC_ACQUIRE) : 0;
}

bool live_changes_pending(struct live_changes *changes, uint64_t time)
{
    bool pending = !changes->begun || changes->waiting > 0 || changes_count(changes) != changes->count;
    changes->looked = pending || time == 0 ? changes->looked : time;
    return pending;
}

/* ---- Telling ---- */

static void list_settle(struct live_change_list *list)
{
    if (list->first == list->count) {
        list->first = list->count = 0;
    }
}

static int list_add(struct live_change_list *list, const struct live_change *change)
{
    if (list->count == list->room) {
        size_t room = list->room != 0 ? 2 * list->room : 64;
        struct live_change *all = reallocarray(list->changes, room, sizeof *all);
        if (all == NULL) {
            return -ENOMEM;
        }
        list->changes = all;
        list->room = room;
    }
    list->changes[list->count++] = *change;
    list->sorted = list->count - list->first == 1;
    return 0;
}

static int earlier(const void *left, const void *right)
{
    const struct live_change *a = left, *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

size_t live_change_list_take(struct live_change_list *list, struct nt_event *events, size_t room)
{
    if (list->first == list->count) {
        return 0;
    }
    if (!list->sorted) {
        qsort(list->changes + list->first, list->count - list->first, sizeof *list->changes, earlier);
        list->sorted = true;
    }
    size_t taken = 0;
    for (; taken < room && list->first < list->count; taken++, list->first++) {
        const struct live_change *change = &list->changes[list->first];
        events[taken] = (struct nt_event){
            .time = change->time,
            .ticks = change->ticks,
            .value = change->after & NT_LAYOUT_MASK_BITS,
            .argument = change->before & NT_LAYOUT_MASK_BITS,
            .position = ++list->serial,
            .program = change->program,
            .ring = NT_EVENT_NO_RING,
            .object = change->slot,
            .generation = change->generation,
            .merged = 1,
            .kind = LIVE_KIND_MASK,
            .setter = change->setter,
        };
    }
    return taken;
}

void live_change_list_fini(struct live_change_list *list)
{
    free(list->changes);
    *list = (struct live_change_list){ 0 };
}

/* ---- Looking ---- */

#define NO_TAIL UINT64_MAX /* of an entry that was not looked at yet */

struct look {
    struct live_changes *changes;
    const struct live_clock *clock;
    const struct live_change_moment *moment;
    struct live_change_list *list;
};

/* The whole generation that the control word has the low bits of; false: the life is over, or not there yet. */
static bool generation_of(struct live_changes *changes, uint32_t slot, uint64_t word, uint32_t *ret_generation)
{
    const struct nt_layout_object *object = live_map_at(changes->map, NT_REGION_OBJECTS,
                                                        (uint64_t)slot * sizeof *object, sizeof *object);
    uint32_t generation = object != NULL ? live_load32(&object->last_generation) & ~NT_LAYOUT_LOCKED : 0;
    *ret_generation = generation;
    return generation != 0 && (generation & 0xffff) == word >> NT_LAYOUT_MASK_KINDS;
}

/* since: nothing that was not told is older. others: there were changes between that one and this. */
static int tell(const struct look *look, uint32_t slot, const struct nt_layout_change *change, uint64_t time,
                uint64_t since, bool others)
{
    struct live_change told = {
        .time = time,
        .since = since,
        .ticks = change->time,
        .before = change->before,
        .after = change->after,
        .order = look->list->order += 2,
        .program = look->changes->program,
        .slot = slot,
        .setter = change->setter,
        .others = others,
    };
    if (!generation_of(look->changes, slot, change->after, &told.generation)) {
        return 0;
    }
    return list_add(look->list, &told);
}

/* What was found by a look that began when the list had `first`. If there were more changes than that, nobody knows of
   which of these objects. */
static int tell_others(struct live_change_list *list, size_t first, uint64_t count)
{
    size_t end = list->count;
    int error = 0;
    for (size_t i = first; i < end && error == 0; i++) {
        struct live_change change = list->changes[i];
        if (change.setter == 0 || (!change.others && count <= end - first)) {
            continue;
        }
        change.time = change.since;
        change.ticks = 0;
        change.after = change.before;
        change.setter = 0;
        change.order--; /* at the same time it comes first */
        error = list_add(list, &change);
    }
    return error;
}

static struct nt_layout_change entry_load(const struct nt_layout_change *shared)
{
    if (shared == NULL) {
        return (struct nt_layout_change){ 0 };
    }
    /* acquire: partner is the release of the setter, who stores it last */
    uint32_t check = __atomic_load_n(&shared->check, __ATOMIC_ACQUIRE);
    return (struct nt_layout_change){
        .time = live_load64(&shared->time),
        .before = live_load64(&shared->before),
        .after = live_load64(&shared->after),
        .setter = live_load32(&shared->setter),
        .check = check,
    };
}

static uint64_t tail_of(const struct nt_layout_change *entry)
{
    return (uint64_t)entry->check << 32 | entry->setter;
}

static void wait_end(struct live_changes *changes, struct live_change_known *known)
{
    changes->waiting -= known->since != 0;
    known->since = 0;
}

/* The word changed, or the entry, and nothing whole says how. */
static int look_unexplained(const struct look *look, uint32_t slot, uint64_t word, const struct nt_layout_change *entry,
                            bool fresh)
{
    struct live_changes *changes = look->changes;
    struct live_change_known *known = &changes->known[slot];
    const struct live_change_moment *moment = look->moment;
    if (known->since == 0) {
        known->since = moment->ms;
        changes->waiting_from = changes->waiting == 0 ? changes->looked : changes->waiting_from;
        changes->waiting++;
    }
    if (!moment->frozen && moment->ms - known->since < LIVE_CHANGE_GRACE_MS) {
        return 0;
    }
    const struct nt_layout_change unknown = { .before = known->word, .after = word };
    uint64_t time = fresh || changes->waiting_from == 0 ? moment->opened : changes->waiting_from;
    wait_end(changes, known);
    time = time > known->time ? time : known->time;
    known->word = word;
    known->tail = tail_of(entry);
    known->time = time;
    return tell(look, slot, &unknown, time, time, false);
}

static int look_change(const struct look *look, uint32_t slot, const struct nt_layout_change *entry, bool fresh)
{
    struct live_change_known *known = &look->changes->known[slot];
    uint64_t time = live_clock_time(look->clock, entry->time);
    uint64_t since = fresh ? look->moment->opened : look->changes->looked;
    bool others = !fresh && entry->before != known->word;
    since = since > known->time ? since : known->time;
    known->word = entry->after;
    known->time = time;
    return tell(look, slot, entry, time, since < time ? since : time, others);
}

static int look_slot(const struct look *look, uint32_t slot, const uint64_t *control,
                     const struct nt_layout_change *shared)
{
    struct live_changes *changes = look->changes;
    struct live_change_known *known = &changes->known[slot];
    struct nt_layout_change entry = entry_load(shared);
    /* acquire: partner is the release store that begins a life, behind an entry of zeros */
    uint64_t word = __atomic_load_n(control, __ATOMIC_ACQUIRE);
    bool fresh = !known->seen || (known->word ^ word) >> NT_LAYOUT_MASK_KINDS != 0;
    bool empty = (entry.time | entry.before | entry.after | tail_of(&entry)) == 0;
    if (fresh) {
        wait_end(changes, known);
        *known = (struct live_change_known){ .word = word, .tail = NO_TAIL, .seen = true };
    } else if (word == known->word && tail_of(&entry) == known->tail) {
        wait_end(changes, known);
        return 0;
    }
    known->tail = empty ? 0 : known->tail; /* a new life empties it */
    bool whole = entry.check != 0 && entry.check == nt_layout_change_check(&entry);
    int error = 0;
    if (whole && tail_of(&entry) != known->tail) {
        known->tail = tail_of(&entry);
        if ((entry.after ^ word) >> NT_LAYOUT_MASK_KINDS == 0) { /* else it is about an earlier life */
            error = look_change(look, slot, &entry, fresh);
        }
    }
    if (error == 0 && (word != known->word || tail_of(&entry) != known->tail)) {
        return look_unexplained(look, slot, word, &entry, fresh);
    }
    wait_end(changes, known);
    return error;
}

/* Slots [first, end) of one group: both of its parts are there, or they are skipped. */
static int look_group(const struct look *look, uint32_t first, uint32_t end)
{
    struct live_map *map = look->changes->map;
    const uint64_t size = sizeof(struct nt_layout_change);
    uint32_t count = end - first;
    const uint64_t *control = live_map_at(map, NT_REGION_CONTROL, first * sizeof *control, count * sizeof *control);
    if (control == NULL) {
        return 0;
    }
    const struct nt_layout_change *entries = live_map_at(map, NT_REGION_CHANGES, (first + UINT64_C(1)) * size,
                                                         count * size);
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        error = look_slot(look, first + i, control + i, entries != NULL ? entries + i : NULL);
    }
    return error;
}

static int look_range(const struct look *look, uint32_t first, uint32_t end)
{
    int error = 0;
    while (first < end && error == 0) {
        /* A forked child's slots begin where its parent's end. */
        uint64_t next = live_map_next(look->changes->map, NT_REGION_CONTROL, first * sizeof(uint64_t));
        next = next / sizeof(uint64_t);
        first = next > first ? (next < end ? (uint32_t)next : end) : first;
        uint32_t stop = first / GROUP * GROUP + GROUP;
        stop = stop < end ? stop : end;
        error = look_group(look, first, stop);
        first = stop;
    }
    return error;
}

static int changes_grow(struct live_changes *changes, uint32_t count)
{
    if (count > changes->known_room) {
        uint32_t room = count > 2 * changes->known_room ? count : 2 * changes->known_room;
        struct live_change_known *known = reallocarray(changes->known, room, sizeof *known);
        if (known == NULL) {
            return -ENOMEM;
        }
        changes->known = known;
        changes->known_room = room;
    }
    for (; changes->known_count < count; changes->known_count++) {
        changes->known[changes->known_count] = (struct live_change_known){ .seen = false };
    }
    return 0;
}

/* Slots that were used once and have a control word. */
static uint32_t changes_slots(const struct live_changes *changes)
{
    /* acquire: partner is the writer's release once the slots are there */
    uint64_t slots = __atomic_load_n(&live_map_live(changes->map)->slots, __ATOMIC_ACQUIRE);
    uint64_t room = changes->map->regions[NT_REGION_CONTROL].size / sizeof(uint64_t);
    uint64_t most = UINT64_C(1) << NT_LAYOUT_SLOT_BITS;
    room = room < most ? room : most;
    return (uint32_t)(slots < room ? slots : room);
}

/* What was found is all in the list, from `found` on; `count` is how many changes there should be. */
static int look_settle(struct live_changes *changes, struct live_change_list *list, size_t found, uint64_t count)
{
    uint64_t told = list->count - found, counted = count - changes->count;
    uint64_t expected = counted > changes->uncounted ? counted - changes->uncounted : 0;
    int error = tell_others(list, found, expected);
    if (error == 0) {
        changes->uncounted += told;
        changes->uncounted -= counted < changes->uncounted ? counted : changes->uncounted;
    }
    return error;
}

int live_changes_look(struct live_changes *changes, const struct live_clock *clock,
                      const struct live_change_moment *moment, struct live_change_list *list)
{
    const struct look look = { changes, clock, moment, list };
    uint64_t count = changes_count(changes);
    bool all = !changes->begun || count != changes->count || changes->waiting > 0;
    if (!all && !moment->thorough) {
        changes->looked = moment->time;
        return 0;
    }
    uint32_t slots = changes_slots(changes);
    int error = changes_grow(changes, slots);
    if (error < 0) {
        return error;
    }
    uint32_t first = all || changes->next >= slots ? 0 : changes->next;
    uint32_t end = all || slots - first < THOROUGH ? slots : first + THOROUGH;
    list_settle(list);
    size_t found = list->count;
    error = look_range(&look, first, end);
    if (error == 0) {
        error = look_settle(changes, list, found, count);
    }
    if (error == 0) {
        changes->next = end;
        changes->count = count;
        changes->begun = true;
        changes->looked = first == 0 && end == slots ? moment->time : changes->looked;
    }
    return error;
}
