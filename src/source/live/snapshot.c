/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects are read one after the other. If no fold moved from the first to the last, all is well. Else a life and its
   parent were read at two moments, and the life's sums may be in both, or in neither. Folds have numbers: each reading
   of `closed` is known to have the folds up to one, and of each life that is gone it is known by which fold it went.
   So it can be told afterwards who has the life's sums, without waiting for the program to keep still:

   1. Every life that was read is looked at again: one that stands and holds others' sums is read again. So whatever was
      folded before any of this, seen or not, is in something that was read since, or that is gone.
   2. After the last reading, every life is looked at once more. One that stands is in nobody's `closed`. One that is
      gone is dropped if its parent's reading has its fold, and stays if it has not.
   3. One that went before the first step could read it again may have held what nobody saw: it must be dropped. If its
      parent's reading does not have it yet, or a number is not known, all is done again: the readings are then later
      than those folds. Once around is nearly always enough, and each further one takes what went meanwhile. */
#include "source/live/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NONE UINT32_MAX
#define CHUNK (UINT32_C(64) * 1024 + 64) /* bytes; given back as soon as told, for what the sink makes of it */
#define LIVES_MAX (UINT32_C(1) << 24)    /* beyond: -E2BIG */

enum { ROUNDS = 64 };

enum verdict {
    VERDICT_NONE,
    VERDICT_BUSY,    /* on the way up from a descendant */
    VERDICT_KEPT,    /* counts by itself */
    VERDICT_DROPPED, /* in the sums of what it was folded into */
    VERDICT_OPEN     /* cannot be told yet */
};

/* An object as it was read, packed: fresh memory is what a snapshot costs most. Name and sums lie behind it. */
struct taken {
    struct taken *next;
    uint64_t folds; /* its `gone` has the folds into it up to this number */
    const struct nt_source_tally *sums;
    const struct nt_source_rare *rare;
    struct nt_source_pair *settled;        /* of each tally, NULL: nothing */
    uint16_t tallies, gone, base, lineage; /* of the sums, in this order; without its ends */
    uint16_t settled_room;
    uint8_t name_size;
    bool dropped;
    unsigned char head[offsetof(struct nt_source_object, name)];
};
_Static_assert(NT_LAYOUT_NAME <= UINT8_MAX, "the size of a name fits");

struct life { /* what is known of a taken object, if folds moved */
    struct taken *taken;
    uint64_t folds;  /* see struct taken */
    uint64_t folded; /* if gone: by no later fold than this */
    uint32_t slot, generation;
    uint32_t above; /* its parent, NONE: the program's own object; if linked */
    uint32_t below; /* where the way up came from */
    uint8_t verdict;
    bool gone;
    bool exact;   /* it was that fold */
    bool linked;  /* `above` is known */
    bool settled; /* read, or found to hold nothing, since the first look around began */
};

struct chunk {
    struct chunk *next;
    uint32_t used;
    _Alignas(8) char bytes[CHUNK];
};
_Static_assert(sizeof(struct taken) + 4 * NT_LAYOUT_KINDS * sizeof(struct nt_source_tally) + NT_LAYOUT_NAME <= CHUNK,
               "any object fits");
_Static_assert(NT_LAYOUT_BUCKETS * sizeof(struct nt_source_bucket) <= CHUNK, "any histogram fits");

struct live_snapshot {
    struct live_objects *objects;
    struct taken *first, **last;
    uint32_t count;
    struct life *lives; /* in the same order; only if folds moved, as are: */
    uint32_t room;
    uint32_t *index; /* of lives by slot and generation; NONE: free */
    uint32_t index_mask;
    uint64_t folds_max; /* of all lives */
    bool moving;
    struct chunk *chunks, *chunk; /* all, and the one in use */
    struct live_sums own;         /* of what is told, and: */
    struct nt_source_pair settled[NT_LAYOUT_KINDS];
    void (*call)(void *arg);
    void *call_arg;
};

static void between(const struct live_snapshot *snapshot)
{
    if (snapshot->call != NULL) {
        snapshot->call(snapshot->call_arg);
    }
}

/* ---- Memory ---- */

static struct chunk *chunk_new(void)
{
    struct chunk *chunk = malloc(sizeof *chunk);
    if (chunk != NULL) {
        const uintptr_t page = NT_LAYOUT_PAGE, mask = ~(page - 1);
        uintptr_t first = ((uintptr_t)chunk + page - 1) & mask, end = (uintptr_t)(chunk + 1) & mask;
        /* all at once costs less than page by page; where it cannot be done, they come as ever */
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
        chunk->next = NULL;
        chunk->used = 0;
    }
    return chunk;
}

static void *memory_take(struct live_snapshot *snapshot, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    assert(size <= CHUNK);
    struct chunk *chunk = snapshot->chunk;
    if (chunk == NULL || size > CHUNK - chunk->used) {
        chunk = chunk_new();
        if (chunk == NULL) {
            return NULL;
        }
        *(snapshot->chunk != NULL ? &snapshot->chunk->next : &snapshot->chunks) = chunk;
        snapshot->chunk = chunk;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += (uint32_t)size;
    return taken;
}

static void memory_free(struct live_snapshot *snapshot)
{
    for (struct chunk *chunk = snapshot->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    snapshot->chunks = snapshot->chunk = NULL;
}

/* Frees the chunks before that of an object: all before it were told, and what was read again lies behind. */
static void memory_free_before(struct live_snapshot *snapshot, const struct taken *taken)
{
    for (struct chunk *chunk = snapshot->chunks;; chunk = snapshot->chunks) {
        uintptr_t at = (uintptr_t)taken - (uintptr_t)chunk;
        if (at < sizeof *chunk) {
            return;
        }
        snapshot->chunks = chunk->next;
        free(chunk);
    }
}

/* ---- Objects ---- */

/* Those that are packed. */
static size_t sums_count(const struct nt_source_object *object)
{
    size_t count = object->tally_count + object->gone_count + object->base_count + object->lineage_count;
    for (size_t i = 0; i < object->tally_count; i++) {
        count -= live_sums_is_end(object, &object->tallies[i]);
    }
    return count;
}

static struct nt_source_tally *sums_copy(struct nt_source_tally *to, const struct nt_source_tally *sums, size_t count)
{
    if (count != 0) {
        memcpy(to, sums, count * sizeof *sums);
    }
    return to + count;
}

static void pack(struct taken *taken, const struct nt_source_object *from, struct nt_source_tally *room)
{
    memcpy(taken->head, from, sizeof taken->head);
    taken->sums = room;
    taken->tallies = 0;
    taken->gone = (uint16_t)from->gone_count;
    taken->base = (uint16_t)from->base_count;
    taken->lineage = (uint16_t)from->lineage_count;
    for (size_t i = 0; i < from->tally_count; i++) {
        if (!live_sums_is_end(from, &from->tallies[i])) {
            *room++ = from->tallies[i];
            taken->tallies++;
        }
    }
    room = sums_copy(room, from->gone, from->gone_count);
    room = sums_copy(room, from->base, from->base_count);
    (void)sums_copy(room, from->lineage, from->lineage_count);
}

static int settled_take(struct live_snapshot *snapshot, struct taken *taken)
{
    const struct nt_source_object *from = &snapshot->objects->object;
    struct nt_source_pair *room = from->settled != NULL ? taken->settled : NULL;
    if (from->settled != NULL && (room == NULL || taken->settled_room < taken->tallies)) {
        room = memory_take(snapshot, taken->tallies * sizeof *room);
        taken->settled_room = taken->tallies;
        if (room == NULL) {
            return -ENOMEM;
        }
    }
    taken->settled = room;
    for (size_t i = 0; room != NULL && i < from->tally_count; i++) {
        if (!live_sums_is_end(from, &from->tallies[i])) {
            *room++ = from->settled[i];
        }
    }
    return 0;
}

static struct nt_bytes bytes_copy(char **room, struct nt_bytes bytes)
{
    char *to = *room;
    if (bytes.size != 0) {
        memcpy(to, bytes.data, bytes.size);
    }
    *room += bytes.size;
    return (struct nt_bytes){ to, bytes.size };
}

static bool rare_same(const struct nt_source_rare *a, const struct nt_source_rare *b)
{
    return a != NULL && b != NULL && a->link_count == b->link_count && a->remote_node.size == b->remote_node.size &&
           a->remote_process.size == b->remote_process.size && (a->histogram_count == 0 || b->histogram_count > 0);
}

/* Those that were read first stay: they need not be of the same moment as the sums. */
static int histograms_take(struct live_snapshot *snapshot, const struct nt_source_rare *from,
                           const struct nt_source_rare *before, struct nt_source_rare *to)
{
    if (before != NULL && before->histogram_count > 0) {
        to->histograms = before->histograms;
        to->histogram_count = before->histogram_count;
        return 0;
    }
    struct nt_source_histogram *histograms = memory_take(snapshot, from->histogram_count * sizeof *histograms);
    for (size_t i = 0; histograms != NULL && i < from->histogram_count; i++) {
        const struct nt_source_histogram *histogram = &from->histograms[i];
        size_t size = histogram->bucket_count * sizeof *histogram->buckets;
        struct nt_source_bucket *buckets = memory_take(snapshot, size);
        if (buckets == NULL) {
            return -ENOMEM;
        }
        memcpy(buckets, histogram->buckets, size);
        histograms[i] = (struct nt_source_histogram){ histogram->kind, buckets, histogram->bucket_count };
    }
    to->histograms = histograms;
    to->histogram_count = from->histogram_count;
    return histograms != NULL ? 0 : -ENOMEM;
}

/* What is there is never changed, only added to. */
static int rare_take(struct live_snapshot *snapshot, struct taken *taken)
{
    const struct nt_source_rare *from = snapshot->objects->object.rare;
    if (from == NULL || rare_same(from, taken->rare)) {
        return 0;
    }
    size_t size = sizeof *from + from->link_count * sizeof *from->links + from->remote_node.size +
                  from->remote_process.size;
    for (size_t i = 0; i < from->link_count; i++) {
        size += from->links[i].key.size;
    }
    struct nt_source_rare *to = memory_take(snapshot, size);
    if (to == NULL) {
        return -ENOMEM;
    }
    struct nt_source_link *links = (void *)(to + 1);
    char *room = (char *)(links + from->link_count);
    *to = (struct nt_source_rare){ .links = links, .link_count = from->link_count };
    to->remote_node = bytes_copy(&room, from->remote_node);
    to->remote_process = bytes_copy(&room, from->remote_process);
    for (size_t i = 0; i < from->link_count; i++) {
        links[i] = from->links[i];
        links[i].key = bytes_copy(&room, from->links[i].key);
    }
    int error = from->histogram_count > 0 ? histograms_take(snapshot, from, taken->rare, to) : 0;
    taken->rare = to;
    return error;
}

static struct nt_source_object unpack(const struct taken *taken)
{
    struct nt_source_object object = {
        .name = { (const char *)(taken + 1), taken->name_size },
        .tallies = taken->sums,
        .tally_count = taken->tallies,
        .gone = taken->sums + taken->tallies,
        .gone_count = taken->gone,
        .base = taken->sums + taken->tallies + taken->gone,
        .base_count = taken->base,
        .lineage = taken->sums + taken->tallies + taken->gone + taken->base,
        .lineage_count = taken->lineage,
        .rare = taken->rare,
    };
    memcpy(&object, taken->head, sizeof taken->head);
    return object;
}

/* Those of `own`, in its order: what was left out as its ends belongs to no session. */
static const struct nt_source_pair *settled_tell(struct live_snapshot *snapshot, const struct taken *taken)
{
    for (size_t i = 0, packed = 0; taken->settled != NULL && i < snapshot->own.count; i++) {
        const struct nt_source_tally *tally = &snapshot->own.tallies[i];
        bool end = packed == taken->tallies || tally->kind != taken->sums[packed].kind;
        snapshot->settled[i] = end ? (struct nt_source_pair){ tally->count, tally->total } : taken->settled[packed++];
    }
    return taken->settled != NULL ? snapshot->settled : NULL;
}

static int tell(struct live_snapshot *snapshot, const struct taken *taken, const struct nt_source_sink *sink)
{
    struct nt_source_object object = unpack(taken);
    snapshot->own.count = object.tally_count;
    (void)sums_copy(snapshot->own.tallies, object.tallies, object.tally_count);
    live_sums_add_ends(&snapshot->own, &object);
    object.tallies = snapshot->own.tallies;
    object.tally_count = snapshot->own.count;
    object.settled = settled_tell(snapshot, taken);
    return sink->object(sink->arg, &object);
}

/* Adds what was read last. */
static int take(struct live_snapshot *snapshot)
{
    const struct nt_source_object *from = &snapshot->objects->object;
    const size_t align = _Alignof(struct nt_source_tally);
    size_t name = (from->name.size + align - 1) / align * align;
    if (snapshot->count == LIVES_MAX) {
        return -E2BIG;
    }
    struct taken *taken = memory_take(snapshot, sizeof *taken + name + sums_count(from) * sizeof *taken->sums);
    if (taken == NULL) {
        return -ENOMEM;
    }
    memcpy(taken + 1, from->name.data, from->name.size);
    taken->name_size = (uint8_t)from->name.size;
    pack(taken, from, (void *)((char *)(taken + 1) + name));
    taken->rare = NULL;
    taken->settled = NULL;
    taken->next = NULL;
    taken->dropped = false;
    taken->folds = snapshot->objects->whole ? snapshot->objects->folds : 0;
    *snapshot->last = taken;
    snapshot->last = &taken->next;
    snapshot->count++;
    int error = settled_take(snapshot, taken);
    return error == 0 ? rare_take(snapshot, taken) : error;
}

/* Puts what was read last in the place of what was read of the same life before; its name stays. */
static int take_again(struct live_snapshot *snapshot, struct taken *taken)
{
    const struct nt_source_object *from = &snapshot->objects->object;
    struct nt_source_tally *room = (struct nt_source_tally *)(uintptr_t)taken->sums;
    if (sums_count(from) > (size_t)taken->tallies + taken->gone + taken->base + taken->lineage) {
        room = memory_take(snapshot, sums_count(from) * sizeof *room);
        if (room == NULL) {
            return -ENOMEM;
        }
    }
    pack(taken, from, room);
    int error = settled_take(snapshot, taken);
    return error == 0 ? rare_take(snapshot, taken) : error;
}

/* ---- Lives ---- */

static uint32_t *index_cell(const struct live_snapshot *snapshot, uint32_t slot, uint32_t generation)
{
    /* the finaliser of splitmix64; the seed keeps a log from being made so that all meet */
    uint64_t hash = ((uint64_t)generation << 32 | slot) + (uintptr_t)snapshot;
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    uint32_t at = (uint32_t)(hash >> 32) & snapshot->index_mask;
    for (;; at = (at + 1) & snapshot->index_mask) {
        uint32_t *cell = &snapshot->index[at];
        if (*cell == NONE || (snapshot->lives[*cell].slot == slot && snapshot->lives[*cell].generation == generation)) {
            return cell;
        }
    }
}

/* Room for all lives there are, and as many again. */
static int index_make(struct live_snapshot *snapshot)
{
    uint32_t cells = 64;
    while (cells < 4 * snapshot->count) {
        cells *= 2;
    }
    uint32_t *index = reallocarray(snapshot->index, cells, sizeof *index);
    if (index == NULL) {
        return -ENOMEM;
    }
    snapshot->index = index;
    snapshot->index_mask = cells - 1;
    memset(index, 0xff, cells * sizeof *index);
    for (uint32_t i = 0; i < snapshot->count; i++) {
        *index_cell(snapshot, snapshot->lives[i].slot, snapshot->lives[i].generation) = i;
    }
    return 0;
}

static int lives_grow(struct live_snapshot *snapshot)
{
    uint32_t room = snapshot->count + snapshot->count / 2 + 64;
    struct life *lives = reallocarray(snapshot->lives, room, sizeof *lives);
    if (lives == NULL) {
        return -ENOMEM;
    }
    snapshot->lives = lives;
    snapshot->room = room;
    return 0;
}

static void life_set(struct live_snapshot *snapshot, uint32_t number, struct taken *taken)
{
    struct nt_source_object object = unpack(taken);
    snapshot->lives[number] = (struct life){
        .taken = taken,
        .folds = taken->folds,
        .slot = object.slot,
        .generation = object.generation,
        .above = NONE,
    };
}

static int lives_make(struct live_snapshot *snapshot)
{
    int error = lives_grow(snapshot);
    if (error < 0) {
        return error;
    }
    uint32_t number = 0;
    for (struct taken *taken = snapshot->first; taken != NULL; taken = taken->next) {
        life_set(snapshot, number++, taken);
    }
    return index_make(snapshot);
}

/* Adds what was read last. */
static int life_add(struct live_snapshot *snapshot)
{
    struct taken **place = snapshot->last;
    int error = take(snapshot);
    if (error == 0 && snapshot->count > snapshot->room) {
        error = lives_grow(snapshot);
    }
    if (error < 0) {
        return error;
    }
    uint32_t added = snapshot->count - 1;
    life_set(snapshot, added, *place);
    if (snapshot->count > snapshot->index_mask / 2) {
        return index_make(snapshot);
    }
    *index_cell(snapshot, snapshot->lives[added].slot, snapshot->lives[added].generation) = added;
    return 0;
}

static void life_end(struct live_snapshot *snapshot, struct life *life)
{
    life->gone = true;
    life->exact = live_objects_folded(snapshot->objects, life->slot, life->generation, &life->folded);
}

/* ---- Looking again ---- */

/* Finds the parent among the lives. One that stands and is not there yet was made behind the reader's back, and before
   its child: it is read too. One that is gone never comes back: if the child still stands after this, its sums will go
   to the program's own object. */
static int life_link(struct live_snapshot *snapshot, uint32_t number)
{
    struct live_objects *objects = snapshot->objects;
    struct nt_source_object object = unpack(snapshot->lives[number].taken);
    uint32_t slot = object.parent, generation = object.parent_generation;
    if (snapshot->lives[number].linked) {
        return 0;
    }
    snapshot->lives[number].linked = true;
    if (generation == 0) {
        return 0;
    }
    uint32_t above = *index_cell(snapshot, slot, generation);
    between(snapshot);
    if (above == NONE && live_objects_look(objects, slot, generation) != LIVE_GONE &&
        live_objects_read(objects, slot) && objects->object.generation == generation) {
        above = snapshot->count;
        int error = life_add(snapshot);
        if (error < 0) {
            return error;
        }
    }
    snapshot->lives[number].above = above;
    return 0;
}

/* `folds` were over when the round began. */
static int life_look(struct live_snapshot *snapshot, uint32_t number, uint64_t folds)
{
    struct live_objects *objects = snapshot->objects;
    int error = life_link(snapshot, number);
    if (error < 0) {
        return error;
    }
    struct life *life = &snapshot->lives[number];
    between(snapshot);
    enum live_presence presence = live_objects_look(objects, life->slot, life->generation);
    if (presence == LIVE_LEAF && life->taken->gone == 0) {
        life->folds = folds > life->folds ? folds : life->folds;
        life->settled = true;
        return 0;
    }
    between(snapshot);
    if (presence == LIVE_GONE || !live_objects_read(objects, life->slot) ||
        objects->object.generation != life->generation) {
        life_end(snapshot, life);
        return 0;
    }
    life->settled = objects->whole;
    life->folds = objects->whole ? objects->folds : 0;
    return take_again(snapshot, life->taken);
}

static int look_around(struct live_snapshot *snapshot)
{
    uint64_t folds = live_objects_sequence(snapshot->objects) / 2;
    for (uint32_t i = 0; i < snapshot->count; i++) { /* there may come to be more */
        int error = snapshot->lives[i].gone ? 0 : life_look(snapshot, i, folds);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

/* Nothing is read any more from here on. False: it cannot be told what is under way. */
static bool look_who_is_gone(struct live_snapshot *snapshot)
{
    struct live_objects *objects = snapshot->objects;
    struct live_fold fold;
    between(snapshot);
    if (!live_objects_fold(objects, &fold)) {
        return false;
    }
    for (uint32_t i = 0; i < snapshot->count; i++) {
        struct life *life = &snapshot->lives[i];
        if (life->gone) {
            continue;
        }
        between(snapshot);
        if (fold.number != 0 && fold.slot == life->slot && fold.generation == life->generation) {
            life->gone = life->exact = true;
            life->folded = fold.number;
        } else if (live_objects_look(objects, life->slot, life->generation) == LIVE_GONE) {
            life_end(snapshot, life);
        }
    }
    return true;
}

/* ---- Who has whose sums ---- */

/* By what is known of the one that took its sums. */
static enum verdict judge_by(const struct life *life, const struct life *taker)
{
    if (life->folded <= taker->folds || taker->verdict == VERDICT_DROPPED) {
        return VERDICT_DROPPED;
    }
    return life->exact && life->settled && taker->verdict == VERDICT_KEPT ? VERDICT_KEPT : VERDICT_OPEN;
}

/* A life that is gone. Its parent took its sums if that was still there, else the program's own object did. */
static enum verdict judge(const struct live_snapshot *snapshot, const struct life *life)
{
    static const struct life nobody = { .verdict = VERDICT_KEPT };
    const struct life *root = snapshot->lives[0].slot == 0 ? &snapshot->lives[0] : &nobody;
    const struct life *parent = life->above != NONE ? &snapshot->lives[life->above] : root;
    if (life->exact && life->settled && life->folded > snapshot->folds_max) {
        return VERDICT_KEPT;
    }
    if (parent->gone && parent->exact && life->exact && parent->folded < life->folded) {
        parent = root;
    }
    enum verdict verdict = judge_by(life, parent);
    if (parent->gone && !(parent->exact && life->exact)) {
        return verdict == VERDICT_DROPPED && judge_by(life, root) == VERDICT_DROPPED ? VERDICT_DROPPED : VERDICT_OPEN;
    }
    return verdict;
}

/* The verdict on one life needs those on all above it. */
static void judge_up(struct live_snapshot *snapshot, uint32_t number)
{
    struct life *lives = snapshot->lives;
    uint32_t below = NONE;
    while (number != NONE && lives[number].verdict == VERDICT_NONE) {
        struct life *life = &lives[number];
        if (!life->gone) {
            life->verdict = life->settled ? VERDICT_KEPT : VERDICT_OPEN;
            break;
        }
        life->verdict = VERDICT_BUSY;
        life->below = below;
        below = number;
        number = life->above;
    }
    for (; below != NONE; below = lives[below].below) {
        lives[below].verdict = (uint8_t)judge(snapshot, &lives[below]);
    }
}

/* Whether there is a verdict on all. */
static bool judge_all(struct live_snapshot *snapshot)
{
    bool all = true;
    snapshot->folds_max = 0;
    for (uint32_t i = 0; i < snapshot->count; i++) {
        struct life *life = &snapshot->lives[i];
        life->verdict = VERDICT_NONE;
        snapshot->folds_max = life->folds > snapshot->folds_max ? life->folds : snapshot->folds_max;
    }
    for (uint32_t i = 0; i < snapshot->count; i++) {
        judge_up(snapshot, i);
        all = all && snapshot->lives[i].verdict != VERDICT_OPEN;
    }
    return all;
}

static int settle(struct live_snapshot *snapshot)
{
    int error = lives_make(snapshot);
    bool settled = false;
    for (int round = 0; round < ROUNDS && error == 0 && !settled && live_map_state(snapshot->objects->map) == 0;
         round++) {
        error = look_around(snapshot);
        settled = error == 0 && look_who_is_gone(snapshot) && judge_all(snapshot);
    }
    for (uint32_t i = 0; i < snapshot->count && error == 0; i++) {
        snapshot->lives[i].taken->dropped = snapshot->lives[i].verdict == VERDICT_DROPPED;
    }
    snapshot->moving = !settled;
    return error;
}

/* ---- The whole ---- */

static int read_all(struct live_snapshot *snapshot)
{
    const uint64_t size = sizeof(struct nt_layout_object);
    struct live_objects *objects = snapshot->objects;
    uint32_t slots = live_objects_slots(objects);
    int error = 0;
    for (uint64_t slot = 0; slot < slots && error == 0; slot++) {
        /* A forked child's slots begin where its parent's end: nothing lies before them. */
        uint64_t next = (live_map_next(objects->map, NT_REGION_OBJECTS, slot * size) + size - 1) / size;
        slot = next > slot ? next : slot;
        if (slot >= slots || live_map_state(objects->map) < 0) {
            break;
        }
        between(snapshot);
        if (live_objects_read(objects, (uint32_t)slot)) {
            error = take(snapshot);
        }
    }
    return error;
}

int live_snapshot_take(struct live_snapshot *snapshot, struct live_objects *objects)
{
    memory_free(snapshot);
    snapshot->objects = objects;
    snapshot->count = 0;
    snapshot->first = NULL;
    snapshot->last = &snapshot->first;
    snapshot->moving = false;
    uint64_t sequence = live_objects_sequence(objects);
    int error = read_all(snapshot);
    if (error < 0 || live_objects_sequence(objects) == sequence) {
        return error;
    }
    return settle(snapshot);
}

bool live_snapshot_is_moving(const struct live_snapshot *snapshot)
{
    return snapshot->moving;
}

int live_snapshot_tell(struct live_snapshot *snapshot, const struct nt_source_sink *sink)
{
    int result = 0;
    for (const struct taken *taken = snapshot->first; taken != NULL && result == 0; taken = taken->next) {
        memory_free_before(snapshot, taken);
        if (!taken->dropped) {
            result = tell(snapshot, taken, sink);
        }
    }
    memory_free(snapshot);
    snapshot->first = NULL;
    snapshot->last = &snapshot->first;
    snapshot->count = 0;
    return result;
}

void live_snapshot_between(struct live_snapshot *snapshot, void (*call)(void *arg), void *arg)
{
    snapshot->call = call;
    snapshot->call_arg = arg;
}

struct live_snapshot *live_snapshot_new(void)
{
    return calloc(1, sizeof(struct live_snapshot));
}

void live_snapshot_free(struct live_snapshot *take_snapshot)
{
    if (take_snapshot == NULL) {
        return;
    }
    memory_free(take_snapshot);
    free(take_snapshot->lives);
    free(take_snapshot->index);
    free(take_snapshot);
}
