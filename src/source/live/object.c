/* SPDX-License-Identifier: BSD-3-Clause */
/* Two things move under the reader: the life in the slot (its generation is 0 while the description changes) and
   a fold (its sequence is odd from the moment on that its entries count instead of the object). Both are looked
   at before and after an object is read; if either moved, it is read again. A slot that changes hands all the
   time is not told of: its lives are over before they are read. */
#include "source/live/object.h"

#include <string.h>

#define UNIT 64u      /* bytes of a unit of the block region */
#define NAME_UNIT 16u /* bytes of a unit of the string region */

#define NT_KIND(number, symbol, name, unit, policy, text) KIND_##symbol = number,
enum builtin_kind {
#include <nt/kinds.def>
};
#undef NT_KIND

/* ---- Sums ---- */

/* Where the kind stands or belongs. */
static size_t sums_find(const struct live_sums *sums, uint8_t kind)
{
    size_t at = sums->count;
    while (at > 0 && sums->tallies[at - 1].kind >= kind) {
        at--;
    }
    return at;
}

static bool sums_have(const struct live_sums *sums, uint8_t kind)
{
    size_t at = sums_find(sums, kind);
    return at < sums->count && sums->tallies[at].kind == kind;
}

/* Puts the tally in its place; one that stands there already is replaced. */
static void sums_put(struct live_sums *sums, const struct nt_source_tally *tally)
{
    size_t at = sums_find(sums, (uint8_t)tally->kind);
    if (at == sums->count || sums->tallies[at].kind != tally->kind) {
        if (sums->count == NT_LAYOUT_KINDS) {
            return;
        }
        memmove(&sums->tallies[at + 1], &sums->tallies[at], (sums->count - at) * sizeof *sums->tallies);
        sums->count++;
    }
    sums->tallies[at] = *tally;
}

static bool is_kind(uint8_t kind)
{
    return kind != 0 && kind != NT_LAYOUT_CONTINUATION;
}

/* A pair that has no maximum and no time of its own. */
static void sums_put_pair(struct live_sums *sums, uint8_t kind, const struct nt_layout_pair *shared)
{
    struct nt_layout_pair sum = live_pair_load(shared);
    if (sum.count != 0) {
        sums_put(sums, &(struct nt_source_tally){ .kind = kind, .count = sum.count, .total = sum.total });
    }
}

/* What is settled of a tally, before it is loaded and after. A program that changes the session stores what is settled
   first; if neither moved, what the tally has beyond it was counted in that session. */
static void settled_put(struct live_objects *objects, const struct nt_layout_object *entry, uint8_t kind,
                        const struct nt_layout_pair *before, const struct nt_layout_pair *shared)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t session = live_load64(&entry->session);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    struct nt_layout_pair after = live_pair_load(shared);
    objects->torn = objects->torn || session != objects->object.session || after.count != before->count ||
                    after.total != before->total;
    objects->any_settled = objects->any_settled || after.count != 0 || after.total != 0;
    objects->settled_of[kind] = (struct nt_source_pair){ after.count, after.total };
}

static void own_put(struct live_objects *objects, const struct nt_layout_object *entry, const uint8_t *shared_kind,
                    const struct nt_layout_tally *shared, const struct nt_layout_pair *shared_settled)
{
    /* acquire: partner is the writer's release once the tally is zeroed */
    uint8_t kind = __atomic_load_n(shared_kind, __ATOMIC_ACQUIRE);
    if (!is_kind(kind)) {
        return;
    }
    struct nt_layout_pair settled = live_pair_load(shared_settled);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    struct nt_layout_pair sum = live_pair_load(&shared->sum);
    if (sum.count == 0) {
        return;
    }
    settled_put(objects, entry, kind, &settled, shared_settled);
    sums_put(&objects->own, &(struct nt_source_tally){
                                .kind = kind,
                                .count = sum.count,
                                .total = sum.total,
                                .max = live_load64(&shared->max),
                                .last = live_clock_time_or_0(objects->clock, live_load64(&shared->last)),
                            });
}

const void *live_objects_unit(struct live_map *map, uint32_t unit, uint64_t size)
{
    return unit == 0 ? NULL : live_map_at(map, NT_REGION_BLOCKS, (uint64_t)unit * UNIT, size);
}

/* A chain cannot be longer than there are kinds: one that is runs in a circle. */
static void own_read(struct live_objects *objects, const struct nt_layout_object *entry, uint32_t slot)
{
    enum { BLOCKS_MAX = NT_LAYOUT_KINDS / 4 };
    for (int i = 0; i < 3; i++) {
        own_put(objects, entry, &entry->tally_kind[i], &entry->tally[i], &entry->settled[i]);
    }
    /* acquire: partner is the writer's release store of the link to a finished block */
    uint32_t unit = __atomic_load_n(&entry->blocks, __ATOMIC_ACQUIRE);
    for (int hop = 0; hop < BLOCKS_MAX; hop++) {
        const struct nt_layout_tally_block *block = live_objects_unit(objects->map, unit, sizeof *block);
        if (block == NULL || live_load32(&block->owner) != slot) {
            return;
        }
        for (int i = 0; i < 4; i++) {
            own_put(objects, entry, &block->kind[i], &block->tally[i], &block->settled[i]);
            live_rare_histogram(&objects->rare, block, i, slot);
        }
        unit = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE);
    }
}

static void extra_read(struct live_objects *objects, const struct nt_layout_extra *extra)
{
    /* acquire: partner is the writer's release once the sums are there */
    uint8_t holds = __atomic_load_n(&extra->holds, __ATOMIC_ACQUIRE);
    uint8_t kind = live_load8(&extra->kind);
    if (!is_kind(kind)) {
        return;
    }
    if (holds & NT_EXTRA_BASE) {
        sums_put_pair(&objects->base, kind, &extra->base);
    }
    if (holds & NT_EXTRA_LINEAGE) {
        sums_put_pair(&objects->lineage, kind, &extra->lineage);
    }
    struct nt_layout_pair closed = live_pair_load(&extra->closed);
    if ((holds & NT_EXTRA_CLOSED) && closed.count != 0) {
        sums_put(&objects->gone, &(struct nt_source_tally){
                                     .kind = kind,
                                     .count = closed.count,
                                     .total = closed.total,
                                     .max = live_load64(&extra->closed_max),
                                     .last = live_clock_time_or_0(objects->clock, live_load64(&extra->closed_last)),
                                 });
    }
}

static void extras_read(struct live_objects *objects, const struct nt_layout_object *entry, uint32_t slot)
{
    uint32_t unit = __atomic_load_n(&entry->extras, __ATOMIC_ACQUIRE);
    for (unsigned hop = 0; hop < NT_LAYOUT_KINDS; hop++) {
        const struct nt_layout_extra *extra = live_objects_unit(objects->map, unit, sizeof *extra);
        if (extra == NULL || live_load32(&extra->owner) != slot) {
            return;
        }
        extra_read(objects, extra);
        unit = __atomic_load_n(&extra->next, __ATOMIC_ACQUIRE);
    }
}

/* ---- A fold under way ---- */

/* Looked for until it is there: this is asked for several times an object. */
static const struct nt_layout_redo *redo_at(struct live_objects *objects)
{
    if (objects->redo_shared == NULL) {
        objects->redo_shared = live_map_at(objects->map, NT_REGION_REDO, 0, sizeof(struct nt_layout_redo));
    }
    return objects->redo_shared;
}

/* acquire: partner is the writer's release store when the entries are there, and when they are applied */
static uint64_t redo_sequence(struct live_objects *objects)
{
    const struct nt_layout_redo *shared = redo_at(objects);
    return shared != NULL ? __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) : 0;
}

static void redo_copy(struct live_objects *objects, const struct nt_layout_redo *shared)
{
    struct live_redo *redo = &objects->redo;
    redo->slot = live_load32(&shared->slot);
    redo->generation = live_load32(&shared->generation) & ~NT_LAYOUT_LOCKED;
    redo->parent = live_load32(&shared->parent);
    redo->parent_generation = live_load32(&shared->parent_generation) & ~NT_LAYOUT_LOCKED;
    redo->sums.count = 0;
    uint32_t count = live_load32(&shared->count);
    for (uint32_t i = 0; i < count && i < NT_LAYOUT_KINDS; i++) {
        const struct nt_layout_redo_entry *entry = &shared->entries[i];
        uint8_t kind = live_load8(&entry->kind);
        if (is_kind(kind)) {
            sums_put(&redo->sums, &(struct nt_source_tally){
                                      .kind = kind,
                                      .count = live_load64(&entry->closed.count),
                                      .total = live_load64(&entry->closed.total),
                                      .max = live_load64(&entry->max),
                                      .last = live_clock_time_or_0(objects->clock, live_load64(&entry->last)),
                                  });
        }
    }
}

/* Brings objects->redo up to date. One that changes faster than it can be copied is taken for done: each of the
   sums is exact without it too, only who holds it may be told a moment late. */
static void redo_look(struct live_objects *objects)
{
    enum { TURNS = 16 };
    struct live_redo *redo = &objects->redo;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t sequence = redo_sequence(objects);
        if (redo->known && sequence == redo->sequence) {
            return;
        }
        redo->known = true;
        redo->under_way = false;
        redo->sequence = sequence;
        if (sequence % 2 == 0) {
            return;
        }
        redo_copy(objects, redo_at(objects));
        /* Orders the copy before the second look; partner: the writer's release store of the sequence. */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        redo->under_way = redo_sequence(objects) == sequence;
    }
}

/* Puts the fold in the place of what it is about to change. False: the object counts no more. */
static bool redo_apply(struct live_objects *objects, uint32_t slot, uint32_t generation)
{
    const struct live_redo *redo = &objects->redo;
    if (!redo->under_way) {
        return true;
    }
    if (redo->slot == slot && redo->generation == generation) {
        return false;
    }
    if (redo->parent == slot && redo->parent_generation == generation) {
        for (size_t i = 0; i < redo->sums.count; i++) {
            sums_put(&objects->gone, &redo->sums.tallies[i]);
        }
    }
    return true;
}

/* ---- An object ---- */

static void name_read(struct live_objects *objects, const struct nt_layout_object *entry)
{
    uint32_t unit = live_load32(&entry->name);
    size_t size = __atomic_load_n(&entry->name_size, __ATOMIC_RELAXED);
    const char *name = NULL;
    if (unit != 0 && size > 0 && size <= NT_LAYOUT_NAME) {
        name = live_map_at(objects->map, NT_REGION_STRINGS, (uint64_t)unit * NAME_UNIT, size);
    }
    if (name != NULL) {
        memcpy(objects->name, name, size);
    }
    objects->object.name = (struct nt_bytes){ objects->name, name != NULL ? size : 0 };
}

static uint64_t mask_read(struct live_objects *objects, uint32_t slot)
{
    const uint64_t *word = live_map_at(objects->map, NT_REGION_CONTROL, (uint64_t)slot * sizeof *word, sizeof *word);
    return word != NULL ? live_load64(word) & NT_LAYOUT_MASK_BITS : 0;
}

static void description_read(struct live_objects *objects, const struct nt_layout_object *entry, uint32_t slot,
                             uint32_t generation)
{
    struct nt_source_object *object = &objects->object;
    uint64_t opened = live_load64(&entry->opened);
    /* acquire: partner is the writer's release once the time of closing is there */
    bool closed = __atomic_load_n(&entry->life, __ATOMIC_ACQUIRE) == NT_LIFE_CLOSED;
    *object = (struct nt_source_object){
        .program = objects->program,
        .slot = slot,
        .generation = generation & ~NT_LAYOUT_LOCKED,
        .parent = live_load32(&entry->parent),
        .parent_generation = live_load32(&entry->parent_generation) & ~NT_LAYOUT_LOCKED,
        .previous = live_load32(&entry->previous),
        .previous_generation = live_load32(&entry->previous_generation) & ~NT_LAYOUT_LOCKED,
        .epoch = live_load32(&entry->epoch),
        .kind = live_load8(&entry->kind),
        .discipline = live_load8(&entry->discipline),
        .described = live_load8(&entry->described),
        .closed = closed,
        .mixed = (live_load8(&entry->flags) & NT_OBJECT_MIXED) != 0,
        .session = live_load64(&entry->session),
        .mask = mask_read(objects, slot),
        .opened_at = live_clock_time_or_0(objects->clock, opened),
    };
    object->closed_at = closed ? live_clock_time_or_0(objects->clock, live_load64(&entry->closed)) : 0;
    name_read(objects, entry);
}

static bool is_once(const struct nt_source_tally *tally, uint64_t at)
{
    return tally->count == 1 && tally->total == 0 && tally->max == 0 && tally->last == at;
}

bool live_sums_is_end(const struct nt_source_object *object, const struct nt_source_tally *tally)
{
    return (tally->kind == KIND_OPEN && is_once(tally, object->opened_at)) ||
           (tally->kind == KIND_CLOSE && object->closed && is_once(tally, object->closed_at));
}

void live_sums_add_ends(struct live_sums *own, const struct nt_source_object *object)
{
    if (!sums_have(own, KIND_OPEN)) {
        sums_put(own, &(struct nt_source_tally){ .kind = KIND_OPEN, .count = 1, .last = object->opened_at });
    }
    if (object->closed && !sums_have(own, KIND_CLOSE)) {
        sums_put(own, &(struct nt_source_tally){ .kind = KIND_CLOSE, .count = 1, .last = object->closed_at });
    }
}

/* Of one that did not keep still nothing is known to belong to its session; that it was opened and closed does not. */
static const struct nt_source_pair *settled_of_all(struct live_objects *objects)
{
    const struct nt_source_object *object = &objects->object;
    if (!objects->torn && !objects->any_settled && object->session == 0) {
        return NULL;
    }
    for (size_t i = 0; i < objects->own.count; i++) {
        const struct nt_source_tally *tally = &objects->own.tallies[i];
        bool all = objects->torn || live_sums_is_end(object, tally);
        objects->settled[i] = all ? (struct nt_source_pair){ tally->count, tally->total }
                                  : objects->settled_of[tally->kind];
    }
    return objects->settled;
}

static bool is_told(const struct nt_layout_object *entry)
{
    /* acquire: partner is the writer's release when it has folded it */
    uint8_t life = __atomic_load_n(&entry->life, __ATOMIC_ACQUIRE);
    return life == NT_LIFE_OPEN || life == NT_LIFE_CLOSED;
}

static const struct nt_layout_object *entry_at(struct live_objects *objects, uint32_t slot)
{
    return live_map_at(objects->map, NT_REGION_OBJECTS, (uint64_t)slot * sizeof(struct nt_layout_object),
                       sizeof(struct nt_layout_object));
}

/* acquire: partner is the writer's release once the description is whole, or the fold remembered */
static uint32_t entry_generation(const struct nt_layout_object *entry)
{
    return __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE) & ~NT_LAYOUT_LOCKED;
}

enum stands {
    STANDS_NOT,  /* another life is in the slot, or none */
    STANDS_SUMS, /* the same life; a fold began or ended meanwhile, perhaps of another object */
    STANDS,
};

/* One try. Whether there is a life to tell of. */
static bool object_try(struct live_objects *objects, const struct nt_layout_object *entry, uint32_t slot,
                       enum stands *ret_stands)
{
    redo_look(objects);
    /* acquire: partner is the writer's release once the description is whole */
    uint32_t generation = __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE);
    bool told = (generation & ~NT_LAYOUT_LOCKED) != 0 && is_told(entry);
    objects->torn = objects->any_settled = false;
    if (told) {
        objects->own.count = objects->gone.count = objects->base.count = objects->lineage.count = 0;
        live_rare_begin(&objects->rare, objects->map);
        description_read(objects, entry, slot, generation);
        own_read(objects, entry, slot);
        extras_read(objects, entry, slot);
        live_rare_notes(&objects->rare, entry);
        objects->object.rare = live_rare_told(&objects->rare);
        told = redo_apply(objects, slot, objects->object.generation);
    }
    /* Orders all of the above before the second look; partners: the writer's release fences after it took the
       generation away or moved the sequence. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool same = live_load32(&entry->generation) == generation && (!told || is_told(entry));
    *ret_stands = !same ? STANDS_NOT : redo_sequence(objects) == objects->redo.sequence ? STANDS : STANDS_SUMS;
    return told;
}

void live_objects_init(struct live_objects *objects, struct live_map *map, const struct live_clock *clock,
                       uint32_t program)
{
    objects->map = map;
    objects->clock = clock;
    objects->program = program;
    objects->redo_shared = NULL;
    objects->redo.known = false;
}

uint32_t live_objects_slots_in(const struct live_map *map)
{
    uint64_t room = map->regions[NT_REGION_OBJECTS].size / sizeof(struct nt_layout_object);
    /* acquire: partner is the writer's release once the slot is there */
    uint32_t slots = __atomic_load_n(&live_map_live(map)->slots, __ATOMIC_ACQUIRE);
    slots = slots < UINT32_C(1) << NT_LAYOUT_SLOT_BITS ? slots : UINT32_C(1) << NT_LAYOUT_SLOT_BITS;
    return slots < room ? slots : (uint32_t)room;
}

uint32_t live_objects_slots(const struct live_objects *objects)
{
    return live_objects_slots_in(objects->map);
}

bool live_objects_read(struct live_objects *objects, uint32_t slot)
{
    enum { TURNS = 16 };
    const struct nt_layout_object *entry = entry_at(objects, slot);
    bool told = false;
    enum stands stands = STANDS_NOT;
    for (int turn = 0; entry != NULL && turn < TURNS && (stands != STANDS || objects->torn); turn++) {
        told = object_try(objects, entry, slot, &stands);
    }
    if (!told || stands == STANDS_NOT) {
        return false;
    }
    objects->whole = stands == STANDS;
    objects->folds = (objects->redo.sequence + 1) / 2; /* one under way was put in its place */
    live_sums_add_ends(&objects->own, &objects->object);
    struct nt_source_object *object = &objects->object;
    object->tallies = objects->own.tallies;
    object->tally_count = objects->own.count;
    object->settled = settled_of_all(objects);
    object->unsettled = objects->torn;
    object->gone = objects->gone.tallies;
    object->gone_count = objects->gone.count;
    object->base = objects->base.tallies;
    object->base_count = objects->base.count;
    object->lineage = objects->lineage.tallies;
    object->lineage_count = objects->lineage.count;
    return true;
}

/* ---- Where a life is ---- */

uint64_t live_objects_sequence(struct live_objects *objects)
{
    return redo_sequence(objects);
}

enum live_presence live_objects_look(struct live_objects *objects, uint32_t slot, uint32_t generation)
{
    const struct nt_layout_object *entry = entry_at(objects, slot);
    if (entry == NULL || entry_generation(entry) != generation || !is_told(entry)) {
        return LIVE_GONE;
    }
    bool leaf = live_load32(&entry->extras) == 0;
    /* Orders that before the second look: the extras may have been those of no life any more. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (entry_generation(entry) != generation) {
        return LIVE_GONE;
    }
    return leaf ? LIVE_LEAF : LIVE_HOLDER;
}

bool live_objects_fold(struct live_objects *objects, struct live_fold *ret_fold)
{
    redo_look(objects);
    const struct live_redo *redo = &objects->redo;
    bool odd = redo->sequence % 2 != 0;
    if (odd && !redo->under_way) {
        return false;
    }
    *ret_fold = odd ? (struct live_fold){ (redo->sequence + 1) / 2, redo->slot, redo->generation }
                    : (struct live_fold){ 0 };
    return true;
}

static uint32_t generation_next(uint32_t generation)
{
    uint32_t next = (generation + 1) & ~NT_LAYOUT_LOCKED;
    return next != 0 ? next : 1;
}

bool live_objects_folded(struct live_objects *objects, uint32_t slot, uint32_t generation, uint64_t *ret_number)
{
    const struct nt_layout_object *entry = entry_at(objects, slot);
    if (entry == NULL) {
        *ret_number = UINT64_MAX;
        return false;
    }
    uint32_t folded = live_load32(&entry->folded);
    uint64_t sequence = redo_sequence(objects);
    uint64_t over = sequence / 2, begun = (sequence + 1) / 2;
    /* Orders the number before the generations; partner: the release store of a later number, behind which the
       generation of its life can be seen. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint32_t now = entry_generation(entry), latest = live_load32(&entry->last_generation) & ~NT_LAYOUT_LOCKED;
    /* only the low half is kept; it is near the number of those that are over */
    uint64_t number = over + (uint64_t)(int64_t)(int32_t)(folded - (uint32_t)over);
    bool only = now == 0 && latest == generation;
    bool next = now == latest && now == generation_next(generation) && number <= over;
    /* a later one may be announced already, but has not begun */
    *ret_number = number < begun ? number : begun;
    return only || next;
}
