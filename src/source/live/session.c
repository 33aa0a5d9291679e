/* SPDX-License-Identifier: BSD-3-Clause */
/* A session has what the cells of all settlers say, what moves say that are not in the cells yet, and of each object
   that is in it now what that counted since it was settled: its rest. While the program runs these are read one after
   the other:

   1. The rests of all objects, to know later what was there at the beginning.
   2. The moves that wait, then the cells; each cell says up to which move it was read. Then which of the rests were
      still unmoved: these are in no cell.
   3. The objects, by whoever reads them: their sums are later than all moves read so far.
   4. The moves that came since, as far as they are still in their buffers.

   A move counts where its cell does not have it yet; a late one only if its object was read after it, because else the
   object's rest has it. A rest of step 1 that was moved before its object was read is in a cell, or its move is known,
   or it is taken as it was in step 1; only one that was moved while cells were read, and whose move was overwritten
   since (a thread changed sessions more than a hundred times meanwhile), may be in a cell or not: then its session has
   at least what is shown, and says so. Sessions that are given up meanwhile say so anyway.

   So for every session, what it had at the beginning <= what is shown <= what it has at the end, or it is marked; where
   nothing moves, that is one number. What no session has is none's: of a program that moves as fast as that, also what
   was on its way; and then none is marked, as it is where sums of sessions found no room and went there. */
#include "source/live/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/live/object.h"
#include "source/live/settler.h"

#define KINDS NT_LAYOUT_KINDS
#define GIVEN_PAGES (UINT64_C(1) << 20)
#define SLOT_MASK ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1)
#define SESSION_MASK ((UINT64_C(1) << NT_LAYOUT_SESSION_BITS) - 1)

/* A tally of an object. */
struct part {
    uint32_t slot, generation;
    uint8_t kind;
};

struct rest { /* as it was at the beginning */
    struct part part;
    bool mixed;
    bool moved; /* while cells were read */
    uint64_t session;
    struct nt_source_pair settled, sum;
    const struct nt_layout_pair *shared; /* where `settled` was read */
};

struct base { /* what was settled when the object was read */
    struct part part;
    bool mixed;
    uint32_t session; /* number of the one that has the rest */
    struct nt_source_pair settled;
};

struct live_sessions {
    struct live_map *map;
    struct live_session_sums sums;
    struct live_settlers settlers;
    struct rest *rests; /* in the order of their parts */
    size_t rest_count, rest_room;
    struct base *bases; /* in the order of their parts once all are there */
    size_t base_count, base_room;
    uint32_t *order; /* of moves of objects: by part */
    size_t order_count;
    struct nt_source_pair totals[KINDS]; /* of all objects */
    bool unsure;                         /* none may have what is some session's */
    uint64_t made;                       /* sessions, at the beginning */
    struct nt_source_sum told_sums[KINDS];
    char name[sizeof((struct nt_layout_session *)0)->name];
    const uint64_t **given; /* pages */
    struct nt_source_given told_given;
    void (*call)(void *arg);
    void *call_arg;
};

static void between(const struct live_sessions *sessions)
{
    if (sessions->call != NULL) {
        sessions->call(sessions->call_arg);
    }
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_parts(const struct part *a, const struct part *b)
{
    int order = compare_u32(a->slot, b->slot);
    order = order != 0 ? order : compare_u32(a->generation, b->generation);
    return order != 0 ? order : compare_u32(a->kind, b->kind);
}

/* Room for one more in an array that doubles. */
static int grow(void **entries, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return 0;
    }
    size_t more = *room != 0 ? 2 * *room : 64;
    void *moved = reallocarray(*entries, more, size);
    if (moved == NULL) {
        return -ENOMEM;
    }
    *entries = moved;
    *room = more;
    return 0;
}

static int session_add_sum(struct live_sessions *sessions, uint32_t session, uint8_t kind, struct nt_source_pair sum)
{
    struct live_session_sum *to;
    int error = live_session_sum(&sessions->sums, session, kind, &to);
    if (error == 0) {
        live_pair_add(&to->more, sum.count, sum.total);
    }
    return error;
}

static struct nt_source_pair pair_less(struct nt_source_pair a, struct nt_source_pair b)
{
    return (struct nt_source_pair){ a.count - b.count, a.total - b.total };
}

static bool pairs_equal(struct nt_source_pair a, struct nt_source_pair b)
{
    return a.count == b.count && a.total == b.total;
}

/* ---- 1: rests ---- */

static struct nt_source_pair pair_of(const struct nt_layout_pair *shared)
{
    struct nt_layout_pair pair = live_pair_load(shared);
    return (struct nt_source_pair){ pair.count, pair.total };
}

/* What is settled, the session, the sum, then the first two again the other way round: the program stores what is
   settled before the session. False: it does not keep still. */
static bool rest_read(const struct nt_layout_object *entry, const struct nt_layout_tally *tally, struct rest *rest)
{
    enum { TURNS = 8 };
    for (int turn = 0; turn < TURNS; turn++) {
        rest->settled = pair_of(rest->shared);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        rest->session = live_load64(&entry->session);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        rest->sum = pair_less(pair_of(&tally->sum), rest->settled);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool same = live_load64(&entry->session) == rest->session;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (same && pairs_equal(pair_of(rest->shared), rest->settled)) {
            return true;
        }
    }
    return false;
}

static int rest_take(struct live_sessions *sessions, const struct nt_layout_object *entry, struct rest *rest,
                     const struct nt_layout_tally *tally)
{
    if (rest->part.kind == 0 || rest->part.kind == NT_LAYOUT_CONTINUATION) {
        return 0;
    }
    if (!rest_read(entry, tally, rest)) {
        sessions->unsure = true;
        return 0;
    }
    if (rest->session == 0 || rest->sum.count == 0) {
        return 0;
    }
    void *rests = sessions->rests;
    int error = grow(&rests, sessions->rest_count, &sessions->rest_room, sizeof *rest);
    sessions->rests = rests;
    if (error == 0) {
        sessions->rests[sessions->rest_count++] = *rest;
    }
    return error;
}

static int blocks_rest(struct live_sessions *sessions, const struct nt_layout_object *entry, struct rest *rest)
{
    enum { BLOCKS_MAX = KINDS / 4 };
    uint32_t unit = __atomic_load_n(&entry->blocks, __ATOMIC_ACQUIRE);
    int error = 0;
    for (int hop = 0; hop < BLOCKS_MAX && error == 0; hop++) {
        const struct nt_layout_tally_block *block = live_objects_unit(sessions->map, unit, sizeof *block);
        if (block == NULL || live_load32(&block->owner) != rest->part.slot) {
            break;
        }
        for (int i = 0; i < 4 && error == 0; i++) {
            rest->part.kind = __atomic_load_n(&block->kind[i], __ATOMIC_ACQUIRE);
            rest->shared = &block->settled[i];
            error = rest_take(sessions, entry, rest, &block->tally[i]);
        }
        unit = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE);
    }
    return error;
}

static const struct nt_layout_object *entry_at(struct live_sessions *sessions, uint32_t slot)
{
    const struct nt_layout_object *entry;
    return live_map_at(sessions->map, NT_REGION_OBJECTS, slot * (uint64_t)sizeof *entry, sizeof *entry);
}

/* acquire: partner is the writer's release once the description is whole */
static uint32_t generation_of(const struct nt_layout_object *entry)
{
    return __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE) & ~NT_LAYOUT_LOCKED;
}

static int object_rests(struct live_sessions *sessions, uint32_t slot)
{
    const struct nt_layout_object *entry = entry_at(sessions, slot);
    struct rest rest = { .part.slot = slot };
    int error = 0;
    if (entry == NULL || live_load64(&entry->session) == 0) {
        return 0;
    }
    rest.part.generation = generation_of(entry);
    rest.mixed = (live_load8(&entry->flags) & NT_OBJECT_MIXED) != 0;
    size_t count = sessions->rest_count;
    for (int i = 0; i < 3 && rest.part.generation != 0 && error == 0; i++) {
        rest.part.kind = __atomic_load_n(&entry->tally_kind[i], __ATOMIC_ACQUIRE);
        rest.shared = &entry->settled[i];
        error = rest_take(sessions, entry, &rest, &entry->tally[i]);
    }
    if (rest.part.generation != 0 && error == 0) {
        error = blocks_rest(sessions, entry, &rest);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (generation_of(entry) != rest.part.generation) {
        sessions->rest_count = count; /* another's */
    }
    return error;
}

static int compare_rests(const void *a, const void *b)
{
    return compare_parts(&((const struct rest *)a)->part, &((const struct rest *)b)->part);
}

static int rests_read(struct live_sessions *sessions)
{
    const uint64_t size = sizeof(struct nt_layout_object);
    uint32_t slots = live_objects_slots_in(sessions->map);
    int error = 0;
    for (uint64_t slot = 0; slot < slots && error == 0; slot++) {
        uint64_t next = (live_map_next(sessions->map, NT_REGION_OBJECTS, slot * size) + size - 1) / size;
        slot = next > slot ? next : slot;
        if (slot < slots) {
            between(sessions);
            error = object_rests(sessions, (uint32_t)slot);
        }
    }
    if (sessions->rest_count != 0) {
        qsort(sessions->rests, sessions->rest_count, sizeof *sessions->rests, compare_rests);
    }
    return error;
}

/* Once the cells were read. */
static void rests_look(struct live_sessions *sessions)
{
    between(sessions);
    for (size_t i = 0; i < sessions->rest_count; i++) {
        struct rest *rest = &sessions->rests[i];
        const struct nt_layout_object *entry = entry_at(sessions, rest->part.slot);
        rest->moved = entry == NULL || !pairs_equal(pair_of(rest->shared), rest->settled);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        rest->moved = rest->moved || generation_of(entry) != rest->part.generation;
    }
}

int live_sessions_begin(struct live_sessions *sessions, struct live_map *map)
{
    sessions->map = map;
    sessions->rest_count = sessions->base_count = sessions->order_count = 0;
    memset(sessions->totals, 0, sizeof sessions->totals);
    sessions->unsure = false;
    sessions->made = live_load64(&live_map_live(map)->sessions);
    live_settlers_fini(&sessions->settlers);
    sessions->settlers.call = sessions->call;
    sessions->settlers.call_arg = sessions->call_arg;
    int error = live_session_sums_clear(&sessions->sums);
    error = error == 0 ? rests_read(sessions) : error;
    error = error == 0 ? live_settlers_begin(&sessions->settlers, map, &sessions->sums) : error;
    error = error == 0 ? live_settlers_cells(&sessions->settlers) : error;
    if (error == 0) {
        rests_look(sessions);
    }
    return error;
}

/* ---- 3: objects ---- */

static int base_take(struct live_sessions *sessions, const struct base *base)
{
    void *bases = sessions->bases;
    int error = grow(&bases, sessions->base_count, &sessions->base_room, sizeof *sessions->bases);
    sessions->bases = bases;
    if (error == 0) {
        sessions->bases[sessions->base_count++] = *base;
    }
    return error;
}

int live_sessions_object(struct live_sessions *sessions, const struct nt_source_object *object)
{
    const struct nt_source_pair nothing = { 0, 0 };
    bool in_one = object->session != 0;
    uint32_t session = LIVE_SESSION_NO;
    int error = in_one ? live_session_add(&sessions->sums, object->session, &session) : 0;
    for (size_t i = 0; i < object->gone_count; i++) {
        live_pair_add(&sessions->totals[object->gone[i].kind], object->gone[i].count, object->gone[i].total);
    }
    for (size_t i = 0; i < object->tally_count && error == 0; i++) {
        const struct nt_source_tally *tally = &object->tallies[i];
        const struct base base = { .part = { object->slot, object->generation, (uint8_t)tally->kind },
                                   .mixed = object->mixed,
                                   .session = session,
                                   .settled = object->settled != NULL ? object->settled[i] : nothing };
        live_pair_add(&sessions->totals[tally->kind], tally->count, tally->total);
        if (in_one || object->settled != NULL) {
            error = base_take(sessions, &base);
        }
        if (in_one && error == 0) {
            struct nt_source_pair sum = { tally->count, tally->total };
            error = session_add_sum(sessions, session, base.part.kind, pair_less(sum, base.settled));
        }
    }
    if (object->unsettled) {
        sessions->unsure = true;
        sessions->sums.sessions[session].shaken = true;
    }
    return error;
}

/* ---- 4: what counts ---- */

static struct part part_of(const struct live_move *move)
{
    return (struct part){ (uint32_t)move->from & SLOT_MASK, (uint32_t)(move->from >> 32) & ~NT_LAYOUT_LOCKED,
                          move->kind };
}

static bool is_of_object(const struct live_move *move)
{
    return (move->flags & NT_MOVE_GIVEN) == 0 && move->from != 0;
}

static int compare_bases(const void *a, const void *b)
{
    return compare_parts(&((const struct base *)a)->part, &((const struct base *)b)->part);
}

static int compare_moves(const void *a, const void *b, void *arg)
{
    const struct live_move *moves = arg;
    struct part left = part_of(&moves[*(const uint32_t *)a]), right = part_of(&moves[*(const uint32_t *)b]);
    return compare_parts(&left, &right);
}

/* Puts bases, and moves of objects, in the order of their parts. */
static int parts_sort(struct live_sessions *sessions)
{
    const struct live_settlers *settlers = &sessions->settlers;
    free(sessions->order);
    sessions->order = calloc((size_t)settlers->move_count + 1, sizeof *sessions->order);
    sessions->order_count = 0;
    if (sessions->order == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < settlers->move_count; i++) {
        if (is_of_object(&settlers->moves[i])) {
            sessions->order[sessions->order_count++] = i;
        }
    }
    qsort_r(sessions->order, sessions->order_count, sizeof *sessions->order, compare_moves, settlers->moves);
    if (sessions->base_count != 0) {
        qsort(sessions->bases, sessions->base_count, sizeof *sessions->bases, compare_bases);
    }
    return 0;
}

static struct part base_part(const struct live_sessions *sessions, size_t at)
{
    return sessions->bases[at].part;
}

static struct part rest_part(const struct live_sessions *sessions, size_t at)
{
    return sessions->rests[at].part;
}

static struct part move_part(const struct live_sessions *sessions, size_t at)
{
    return part_of(&sessions->settlers.moves[sessions->order[at]]);
}

/* The first in a sorted array whose part is not below. */
static size_t first_of(const struct live_sessions *sessions, size_t count,
                       struct part (*part_at)(const struct live_sessions *sessions, size_t at),
                       const struct part *wanted)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct part part = part_at(sessions, middle);
        if (compare_parts(&part, wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct base *base_find(const struct live_sessions *sessions, const struct part *part)
{
    size_t at = first_of(sessions, sessions->base_count, base_part, part);
    return at < sessions->base_count && compare_parts(&sessions->bases[at].part, part) == 0 ? &sessions->bases[at]
                                                                                            : NULL;
}

static bool same_life(const struct part *a, const struct part *b)
{
    return a->slot == b->slot && a->generation == b->generation;
}

/* Whether any tally of the life was there at the beginning, and is not told any more: it was folded into its parent. */
static bool is_folded(const struct live_sessions *sessions, const struct part *part)
{
    const struct part first = { part->slot, part->generation, 0 };
    size_t rest = first_of(sessions, sessions->rest_count, rest_part, &first);
    size_t base = first_of(sessions, sessions->base_count, base_part, &first);
    return rest < sessions->rest_count && same_life(&sessions->rests[rest].part, part) &&
           !(base < sessions->base_count && same_life(&sessions->bases[base].part, part));
}

enum counts {
    COUNTS_NOT,     /* the object's rest has it */
    COUNTS_UNKNOWN, /* it came late, and what it took may not be in any object's sum */
    COUNTS,
};

static enum counts move_counts(const struct live_sessions *sessions, const struct live_move *move)
{
    const struct part part = part_of(move);
    const struct base *base = is_of_object(move) ? base_find(sessions, &part) : NULL;
    if (base != NULL) {
        return (int64_t)(move->after.count - base->settled.count) <= 0 ? COUNTS : COUNTS_NOT;
    }
    return !move->late || (is_of_object(move) && is_folded(sessions, &part)) ? COUNTS : COUNTS_UNKNOWN;
}

/* One of the two cells that a move changes. */
struct side {
    bool in;                              /* the cell has the move in it */
    uint32_t session;                     /* number, LIVE_SESSION_NONE: not known so far */
    const struct live_session_cell *cell; /* NULL: was not there */
};

static struct side side_of(const struct live_sessions *sessions, const struct live_move *move, uint64_t id, bool older)
{
    struct side side = { .session = older ? LIVE_SESSION_OLDER : live_session_find(&sessions->sums, id) };
    side.cell = live_session_cell_of(&sessions->sums, side.session, move->kind, move->settler);
    side.in = side.cell != NULL && move->number < side.cell->moves;
    return side;
}

/* Adds what no cell has. One whose cell was given up since is in the cell that got it. */
static int move_add(struct live_sessions *sessions, const struct live_move *move, struct side *to)
{
    const struct live_settler *settler = &sessions->settlers.all[move->settler];
    if (to->cell == NULL && settler->gave && move->number < settler->later) {
        return 0;
    }
    int error = to->session == LIVE_SESSION_NONE ? live_session_add(&sessions->sums, move->session, &to->session) : 0;
    return error == 0 ? session_add_sum(sessions, to->session, move->kind, move->sum) : error;
}

/* What was given up goes from one cell to another. */
static int given_apply(struct live_sessions *sessions, const struct live_move *move, struct side *to)
{
    const struct nt_source_pair nothing = { 0, 0 };
    struct side from = side_of(sessions, move, move->from, false);
    if (move->late) {
        return 0;
    }
    int error = to->in ? 0 : move_add(sessions, move, to);
    return error == 0 && from.cell != NULL && !from.in
               ? session_add_sum(sessions, from.session, move->kind, pair_less(nothing, move->sum))
               : error;
}

static int move_apply(struct live_sessions *sessions, const struct live_move *move)
{
    struct side to = side_of(sessions, move, move->session, (move->flags & NT_MOVE_OLDER) != 0);
    if ((move->flags & NT_MOVE_GIVEN) != 0) {
        return given_apply(sessions, move, &to);
    }
    enum counts counts = to.in ? COUNTS_NOT : move_counts(sessions, move);
    sessions->unsure = sessions->unsure || counts == COUNTS_UNKNOWN;
    return counts == COUNTS ? move_add(sessions, move, &to) : 0;
}

/* A program that stopped between a move and what it stores next: what the move took is still in its object's rest. */
static int base_settle(struct live_sessions *sessions, const struct live_move *move)
{
    const struct part part = part_of(move);
    struct base *base = is_of_object(move) && !move->late ? base_find(sessions, &part) : NULL;
    if (base == NULL || (int64_t)(move->after.count - base->settled.count) <= 0) {
        return 0;
    }
    struct nt_source_pair less = pair_less(base->settled, move->after);
    base->settled = move->after;
    return base->session != LIVE_SESSION_NO ? session_add_sum(sessions, base->session, move->kind, less) : 0;
}

static int moves_apply(struct live_sessions *sessions)
{
    int error = 0;
    for (uint32_t i = 0; i < sessions->settlers.move_count && error == 0; i++) {
        error = base_settle(sessions, &sessions->settlers.moves[i]);
    }
    for (uint32_t i = 0; i < sessions->settlers.move_count && error == 0; i++) {
        error = move_apply(sessions, &sessions->settlers.moves[i]);
    }
    return error;
}

enum known { KNOWN_NOT, KNOWN_LATER, KNOWN };

/* Whether the first move of what was a rest is known, or only later ones. */
static enum known rest_is_known(const struct live_sessions *sessions, const struct rest *rest)
{
    size_t at = first_of(sessions, sessions->order_count, move_part, &rest->part);
    enum known known = KNOWN_NOT;
    for (; at < sessions->order_count && known != KNOWN; at++) {
        const struct live_move *move = &sessions->settlers.moves[sessions->order[at]];
        struct part part = part_of(move);
        if (compare_parts(&part, &rest->part) != 0) {
            break;
        }
        known = pairs_equal(pair_less(move->after, move->sum), rest->settled) ? KNOWN : KNOWN_LATER;
    }
    return known;
}

/* Moves were overwritten before they could be read. Adds a rest of the beginning if it is certain that it left its
   object, and that neither a cell nor a known move has it. */
static int rest_apply(struct live_sessions *sessions, const struct rest *rest)
{
    const struct base *base = base_find(sessions, &rest->part);
    enum known known = rest_is_known(sessions, rest);
    bool mixed = rest->mixed || (base != NULL ? base->mixed : known == KNOWN_LATER);
    uint32_t session;
    if ((base != NULL && pairs_equal(base->settled, rest->settled)) || (!mixed && known == KNOWN)) {
        return 0;
    }
    int error = live_session_add(&sessions->sums, rest->session, &session);
    if (error == 0 && (mixed || rest->moved)) {
        sessions->sums.sessions[session].shaken = true;
        return 0;
    }
    return error == 0 ? session_add_sum(sessions, session, rest->part.kind, rest->sum) : error;
}

static int rests_apply(struct live_sessions *sessions)
{
    int error = 0;
    for (size_t i = 0; i < sessions->rest_count && error == 0 && sessions->settlers.lost; i++) {
        error = rest_apply(sessions, &sessions->rests[i]);
    }
    return error;
}

/* What no session has. */
static int none_make(struct live_sessions *sessions)
{
    struct live_session_sums *sums = &sessions->sums;
    int error = 0;
    for (uint32_t i = LIVE_SESSION_OLDER; i < sums->session_count; i++) {
        for (uint32_t at = sums->sessions[i].sums; at != LIVE_SESSION_NONE; at = sums->sums[at].next) {
            struct nt_source_pair *total = &sessions->totals[sums->sums[at].kind];
            *total = pair_less(*total, live_session_total(sums, &sums->sums[at]));
        }
    }
    for (unsigned kind = 1; kind < KINDS && error == 0; kind++) {
        struct nt_source_pair *total = &sessions->totals[kind];
        if (sessions->unsure && (int64_t)total->count < 0) {
            *total = (struct nt_source_pair){ 0, 0 };
        }
        if (total->count != 0 || total->total != 0) {
            error = session_add_sum(sessions, LIVE_SESSION_NO, (uint8_t)kind, *total);
        }
    }
    bool unsettled = live_load64(&live_map_live(sessions->map)->unsettled) != 0; /* it has what found no room */
    sums->sessions[LIVE_SESSION_NO].shaken = sessions->unsure || unsettled;
    return error;
}

static int sums_finish(struct live_sessions *sessions)
{
    const struct live_settlers *settlers = &sessions->settlers;
    int error = live_settlers_late(&sessions->settlers);
    error = error == 0 ? parts_sort(sessions) : error;
    error = error == 0 ? moves_apply(sessions) : error;
    error = error == 0 ? rests_apply(sessions) : error;
    sessions->unsure = sessions->unsure || settlers->moving || settlers->lost;
    return error == 0 ? none_make(sessions) : error;
}

/* ---- Telling ---- */

/* The set of those that were given up: its pages lie in the log and are only borrowed. */
static int given_make(struct live_sessions *sessions, uint32_t program)
{
    uint64_t count = sessions->map->regions[NT_REGION_GIVEN].size / NT_LAYOUT_PAGE;
    struct nt_source_given *given = &sessions->told_given;
    free(sessions->given);
    sessions->given = NULL;
    *given = (struct nt_source_given){ .program = program };
    given->all = live_load64(&live_map_live(sessions->map)->given_unknown) != 0 || count > GIVEN_PAGES;
    for (uint64_t page = 0; page < count && !given->all; page++) {
        uint64_t at = live_map_next(sessions->map, NT_REGION_GIVEN, page * NT_LAYOUT_PAGE);
        page = at / NT_LAYOUT_PAGE;
        if (page >= count) {
            break;
        }
        if (sessions->given == NULL) {
            sessions->given = calloc(count, sizeof *sessions->given);
            if (sessions->given == NULL) {
                return -ENOMEM;
            }
        }
        sessions->given[page] = live_map_at(sessions->map, NT_REGION_GIVEN, at, NT_LAYOUT_PAGE);
        given->pages = sessions->given;
        given->page_count = count;
    }
    return 0;
}

/* The sums of a session, by kind. */
static size_t sums_list(struct live_sessions *sessions, uint32_t session)
{
    const struct live_session_sums *sums = &sessions->sums;
    struct nt_source_sum *list = sessions->told_sums;
    size_t count = 0;
    for (uint32_t at = sums->sessions[session].sums; at != LIVE_SESSION_NONE; at = sums->sums[at].next) {
        struct nt_source_pair total = live_session_total(sums, &sums->sums[at]);
        if (total.count == 0 && total.total == 0) {
            continue;
        }
        size_t place = count++;
        for (; place > 0 && list[place - 1].kind > sums->sums[at].kind; place--) {
            list[place] = list[place - 1];
        }
        list[place] = (struct nt_source_sum){ sums->sums[at].kind, total.count, total.total };
    }
    return count;
}

static uint64_t places_of(const struct live_map *map)
{
    return map->regions[NT_REGION_SESSIONS].size / sizeof(struct nt_layout_session);
}

/* Of a session that this log made. */
static uint64_t number_of(const struct live_map *map, uint64_t session)
{
    return (session - map->header.session_first) & SESSION_MASK;
}

/* Copies an entry of the table whole. False: there is none, or it is not in its place. */
static bool entry_copy(struct live_map *map, uint64_t place, struct nt_layout_session *ret_copy)
{
    const struct nt_layout_session *shared = live_map_at(map, NT_REGION_SESSIONS, place * sizeof *shared,
                                                         sizeof *shared);
    /* acquire: partner is the writer's release once the entry is whole */
    uint64_t id = shared != NULL ? __atomic_load_n(&shared->id, __ATOMIC_ACQUIRE) : 0;
    if (id == 0) {
        return false;
    }
    uint64_t number = number_of(map, id);
    uint64_t made = live_load64(&live_map_live(map)->sessions);
    ret_copy->id = id;
    ret_copy->parent = live_load64(&shared->parent);
    ret_copy->opened = live_load64(&shared->opened);
    ret_copy->ended = live_load64(&shared->ended);
    ret_copy->flags = live_load8(&shared->flags);
    ret_copy->name_size = live_load8(&shared->name_size);
    memcpy(ret_copy->name, shared->name, sizeof ret_copy->name);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return live_load64(&shared->id) == id && number % places_of(map) == place && number < made;
}

static size_t name_size(const struct nt_layout_session *entry)
{
    return entry->name_size < sizeof entry->name ? entry->name_size : sizeof entry->name;
}

size_t live_session_name(struct live_map *map, uint64_t session, char room[NT_SOURCE_SESSION_NAME])
{
    struct nt_layout_session entry;
    uint64_t places = places_of(map), number = number_of(map, session);
    if (places == 0 || number >= live_load64(&live_map_live(map)->sessions) ||
        !entry_copy(map, number % places, &entry) || entry.id != session || live_map_state(map) < 0) {
        return 0;
    }
    memcpy(room, entry.name, name_size(&entry));
    return name_size(&entry);
}

static void session_describe(struct live_sessions *sessions, const struct live_clock *clock,
                             const struct nt_layout_session *entry, struct nt_source_session *session)
{
    size_t size = name_size(entry);
    memcpy(sessions->name, entry->name, size);
    session->known = true;
    session->standing = (entry->flags & NT_SESSION_STANDS) != 0;
    session->overdue = number_of(sessions->map, entry->id) + places_of(sessions->map) < sessions->made;
    session->parent = entry->parent;
    session->opened_at = live_clock_time_or_0(clock, entry->opened);
    session->ended_at = live_clock_time_or_0(clock, entry->ended);
    session->name = (struct nt_bytes){ sessions->name, size };
    session->given = (entry->flags & NT_SESSION_FOLDED) != 0;
    session->got = (entry->flags & NT_SESSION_GOT) != 0;
}

struct telling {
    struct live_sessions *sessions;
    const struct live_clock *clock;
    const struct nt_source_sink *sink;
    uint32_t program;
};

/* Number LIVE_SESSION_NONE: of a session without sums. `entry` may be NULL. */
static int tell_one(struct telling *telling, uint64_t id, uint32_t number, const struct nt_layout_session *entry)
{
    struct live_sessions *sessions = telling->sessions;
    struct nt_source_session session = { .program = telling->program, .id = id };
    bool shaken = number != LIVE_SESSION_NONE && sessions->sums.sessions[number].shaken;
    session.sums = sessions->told_sums;
    session.name.data = sessions->name;
    if (number != LIVE_SESSION_NONE) {
        sessions->sums.sessions[number].told = true;
        session.sum_count = sums_list(sessions, number);
        session.older = number == LIVE_SESSION_OLDER;
    }
    if (entry != NULL) {
        session_describe(sessions, telling->clock, entry, &session);
    } else if (id != 0) {
        session.given = nt_source_given_has(&sessions->told_given, id, false);
        session.got = nt_source_given_has(&sessions->told_given, id, true);
    }
    *(number == LIVE_SESSION_NO ? &session.got : &session.given) |= shaken;
    if (entry == NULL && session.sum_count == 0 && !shaken && number != LIVE_SESSION_NO) {
        return 0;
    }
    return live_map_state(sessions->map) == 0 ? telling->sink->session(telling->sink->arg, &session) : 0;
}

/* Those with an entry in the table. */
static int tell_known(struct telling *telling)
{
    struct live_sessions *sessions = telling->sessions;
    const uint64_t size = sizeof(struct nt_layout_session), room = places_of(sessions->map);
    int result = 0;
    for (uint64_t place = 0; place < room && result == 0; place++) {
        uint64_t next = live_map_next(sessions->map, NT_REGION_SESSIONS, place * size) / size;
        place = next > place ? next : place;
        struct nt_layout_session entry;
        if (place < room && entry_copy(sessions->map, place, &entry)) {
            result = tell_one(telling, entry.id, live_session_find(&sessions->sums, entry.id), &entry);
        }
    }
    return result;
}

static int tell_all(struct telling *telling)
{
    struct live_sessions *sessions = telling->sessions;
    int result = tell_one(telling, 0, LIVE_SESSION_NO, NULL);
    result = result == 0 ? tell_known(telling) : result;
    for (uint32_t i = LIVE_SESSION_OLDER + 1; i < sessions->sums.session_count && result == 0; i++) {
        if (!sessions->sums.sessions[i].told) {
            result = tell_one(telling, sessions->sums.sessions[i].id, i, NULL);
        }
    }
    return result == 0 ? tell_one(telling, 0, LIVE_SESSION_OLDER, NULL) : result;
}

int live_sessions_tell(struct live_sessions *sessions, const struct live_clock *clock, uint32_t program, bool moving,
                       const struct nt_source_sink *sink)
{
    struct telling telling = { sessions, clock, sink, program };
    sessions->unsure = sessions->unsure || moving;
    int result = sums_finish(sessions);
    result = result == 0 ? given_make(sessions, program) : result;
    bool any = sessions->told_given.all || sessions->told_given.page_count != 0;
    if (result == 0 && any && sink->given != NULL && live_map_state(sessions->map) == 0) {
        result = sink->given(sink->arg, &sessions->told_given);
    }
    return result == 0 && sink->session != NULL ? tell_all(&telling) : result;
}

const char *live_sessions_odd(const struct live_sessions *sessions)
{
    return sessions->settlers.odd != 0 ? sessions->settlers.text : NULL;
}

void live_sessions_between(struct live_sessions *sessions, void (*call)(void *arg), void *arg)
{
    sessions->call = call;
    sessions->call_arg = arg;
}

struct live_sessions *live_sessions_new(void)
{
    return calloc(1, sizeof(struct live_sessions));
}

void live_sessions_free(struct live_sessions *take_sessions)
{
    if (take_sessions == NULL) {
        return;
    }
    live_session_sums_fini(&take_sessions->sums);
    live_settlers_fini(&take_sessions->settlers);
    free(take_sessions->rests);
    free(take_sessions->bases);
    free(take_sessions->order);
    free(take_sessions->given);
    free(take_sessions);
}
