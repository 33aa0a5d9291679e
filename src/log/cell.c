/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells: the sum of each session and kind that one thread counted. Groups of a page, split one after the other as
   they fill; at the limit those used longest ago go to their parents or to `older`. Only the outermost change of a
   thread works here, so that nothing runs in between but handlers that append moves. Whenever the program ends, a
   reader finds each move in its cell or not; docs/format.md, "Sessions", says how. */
#include <string.h>

#include "log/log.h"

#define CELLS NT_LAYOUT_CELLS
/* Cells of a group on average before the next is made: the groups that are not split yet hold up to twice as many, and
   some more by chance. */
#define FILL (CELLS * 11 / 32)
#define SPLITS 16u        /* of a full group, until it is its turn */
#define CROWDED 24u       /* steps of a search: a group where they are needed is halved when none can be made */
#define RETRY_CELLS 1024u /* new cells before memory is asked for again */
#define STEP_PAGES 16u

struct fold { /* one run */
    struct nt_log *log;
    struct nt_settler_ *settler;
    struct nt_layout_cell *crowded[8];
    uint32_t crowded_count;
};

static struct nt_layout_cell *group_of(const struct nt_layout_cell *cell)
{
    return (struct nt_layout_cell *)(void *)((uintptr_t)cell / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE);
}

static struct nt_layout_cell *group_at(const struct nt_settler_ *settler, uint32_t group)
{
    uint32_t extent = 31u - (uint32_t)__builtin_clz(2 * group + 1);
    return (struct nt_layout_cell *)(void *)(settler->extent[extent] + (uint64_t)group * NT_LAYOUT_PAGE);
}

static uint64_t cell_hash(const struct nt_layout_cell *cell)
{
    return nt_layout_hash_(cell->session, cell->state & 0xff);
}

/* ---- one cell ---- */

/* Writes all of it, its state last. */
static void cell_put(struct nt_layout_cell *cell, uint64_t session, uint64_t state, nt_pair_ sum)
{
    __atomic_store_n(&cell->session, session, __ATOMIC_RELAXED);
    nt_pair_copy_(&cell->sum, sum);
    __atomic_store_n(&cell->state, state, __ATOMIC_RELEASE);
}

/* Adds what move `number` says. While it is being changed the cell is marked, and the redo area has what it will be. */
static inline __attribute__((always_inline)) nt_pair_ cell_add(struct nt_settler_ *settler, struct nt_layout_cell *cell,
                                                               uint64_t number, nt_pair_ sum)
{
    struct nt_layout_settler *shared = settler->shared;
    uint64_t state = cell->state, after = (state & 0xffff) | (number + 1) << 16;
    sum += nt_pair_load_(&cell->sum);
    nt_pair_copy_(&shared->redo, sum);
    __atomic_store_n(&shared->redo_state, after, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->state, state | NT_CELL_BUSY << 8, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    nt_pair_copy_(&cell->sum, sum);
    __atomic_store_n(&cell->state, after, __ATOMIC_RELEASE);
    return sum;
}

/* Whether a cell whose search begins at `home` may not lie at `hole`, when it lies at `at` behind it. */
static bool stays(uint32_t home, uint32_t hole, uint32_t at)
{
    return (at - home) % CELLS < (at - hole) % CELLS;
}

/* Empties a place and moves up those behind it that were searched for past it. */
static void cell_delete(struct nt_settler_ *settler, struct nt_layout_cell *cell)
{
    struct nt_layout_cell *group = group_of(cell);
    uint32_t hole = (uint32_t)(cell - group);
    for (uint32_t i = 1, at = (hole + 1) % CELLS; i < CELLS && group[at].state; i++, at = (at + 1) % CELLS) {
        if (stays((uint32_t)(cell_hash(&group[at]) >> 58) * 2, hole, at))
            continue;
        __atomic_store_n(&group[hole].state, 0, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        cell_put(&group[hole], group[at].session, group[at].state, nt_pair_load_(&group[at].sum));
        /* release: a reader who finds the old place changed sees that it must look again */
        __atomic_store_n(&settler->shared->shifts, settler->shared->shifts + 1, __ATOMIC_RELEASE);
        hole = at;
    }
    __atomic_store_n(&group[hole].state, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    settler->shared->cells--;
}

static void crowd(struct fold *fold, struct nt_layout_cell *group)
{
    if (fold->crowded_count < sizeof(fold->crowded) / sizeof(fold->crowded[0]))
        fold->crowded[fold->crowded_count++] = group;
}

/* The cell, or the place where it belongs: then its state is 0. NULL: neither. */
static struct nt_layout_cell *cell_search(struct fold *fold, uint64_t session, nt_kind kind)
{
    struct nt_layout_cell *home = nt_cell_home_(fold->settler, session, kind);
    struct nt_layout_cell *group = group_of(home);
    uint32_t from = (uint32_t)(home - group);
    for (uint32_t i = 0; i < CELLS; i++) {
        struct nt_layout_cell *cell = &group[(from + i) % CELLS];
        if (!cell->state || (cell->session == session && (cell->state & 0xff) == kind)) {
            if (i > CROWDED)
                crowd(fold, group);
            return cell;
        }
    }
    crowd(fold, group); /* ids that follow each other fill a group without a long search */
    return NULL;
}

/* ---- growing ---- */

/* Pages of the settlement region, not yet backed; 0: there are none left. */
static uint32_t pages_new(struct nt_log *log, uint32_t pages)
{
    struct nt_layout_live *live = log->map.live;
    struct log_guard guard;
    uint32_t first = 0;
    log_guard_enter(&guard);
    if (log_lock(&live->lock)) {
        if (live->settlement_pages + pages <= log->map.settlement_max) {
            first = live->settlement_pages;
            live->settlement_pages += pages;
        }
        log_unlock(&live->lock);
    }
    log_guard_leave(&guard);
    return first;
}

/* The next extent has as many pages as there are groups already. */
static bool extent_new(struct nt_log *log, struct nt_settler_ *settler, uint32_t extent, uint32_t pages)
{
    uint32_t first = pages_new(log, pages);
    if (!first)
        return false;
    __atomic_store_n(&settler->shared->extent[extent], first, __ATOMIC_RELEASE);
    log_settler_extent(&log->map, settler, extent);
    return true;
}

/* Makes sure that the page of the next group is there. */
static bool group_back(struct nt_log *log, struct nt_settler_ *settler)
{
    struct nt_layout_settler *shared = settler->shared;
    struct nt_layout_live *live = log->map.live;
    uint32_t group = settler->groups, extent = 32u - (uint32_t)__builtin_clz(group);
    uint32_t first = UINT32_C(1) << (extent - 1);
    if (extent >= NT_LAYOUT_EXTENTS || (!shared->extent[extent] && !extent_new(log, settler, extent, first)))
        return false;
    if (group < shared->backed)
        return true;
    uint32_t pages = 2 * first - group < STEP_PAGES ? 2 * first - group : STEP_PAGES;
    uint64_t bytes = (uint64_t)pages * NT_LAYOUT_PAGE;
    if (__atomic_load_n(&live->settlement_backed, __ATOMIC_RELAXED) + bytes > log->map.header->cap / 4 ||
        !log_back(&log->map, group_at(settler, group), bytes))
        return false;
    __atomic_fetch_add(&live->settlement_backed, bytes, __ATOMIC_RELAXED);
    shared->backed = group + pages;
    return true;
}

/* Copies the cells that belong to the new group, lets readers see it, then takes them out of the old one. */
static void group_split(struct nt_settler_ *settler)
{
    uint32_t group = settler->groups, mask = settler->mask;
    if (group > mask)
        mask = mask * 2 + 1;
    struct nt_layout_cell *from = group_at(settler, group & mask >> 1), *to = group_at(settler, group);
    memset(to, 0, NT_LAYOUT_PAGE);
    for (uint32_t i = 0; i < CELLS; i++) {
        uint64_t hash = cell_hash(&from[i]);
        if (!from[i].state || ((uint32_t)hash & mask) != group)
            continue;
        uint32_t at = (uint32_t)(hash >> 58) * 2;
        while (to[at].state)
            at = (at + 1) % CELLS;
        cell_put(&to[at], from[i].session, from[i].state, nt_pair_load_(&from[i].sum));
        settler->shared->cells++;
    }
    settler->mask = mask;
    settler->groups = group + 1;
    __atomic_store_n(&settler->shared->groups, group + 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < CELLS; i++)
        while (from[i].state && ((uint32_t)cell_hash(&from[i]) & mask) == group) {
            __atomic_store_n(&settler->shared->shifts, settler->shared->shifts + 1, __ATOMIC_RELEASE);
            cell_delete(settler, &from[i]);
        }
}

/* Whether the cells grew by a group. */
static bool grow(struct fold *fold)
{
    struct nt_settler_ *settler = fold->settler;
    if (settler->retry) {
        settler->retry--;
        return false;
    }
    if (!group_back(fold->log, settler)) {
        settler->retry = RETRY_CELLS;
        return false;
    }
    group_split(settler);
    return true;
}

/* The cell, made if need be; NULL: there is no room for it. */
static struct nt_layout_cell *cell_make(struct fold *fold, uint64_t session, nt_kind kind, uint64_t number)
{
    struct nt_settler_ *settler = fold->settler;
    struct nt_layout_cell *cell = cell_search(fold, session, kind);
    if (cell && cell->state)
        return cell;
    bool more = settler->shared->cells >= (uint64_t)settler->groups * FILL;
    for (uint32_t i = 0; (more || !cell) && i < SPLITS && grow(fold); i++, more = false)
        cell = cell_search(fold, session, kind);
    if (!cell)
        return NULL;
    cell_put(cell, session, kind | number << 16, (nt_pair_){ 0, 0 });
    settler->shared->cells++;
    return cell;
}

/* The cell of `older`: there always is one. */
static struct nt_layout_cell *cell_older(const struct fold *fold, nt_kind kind)
{
    const struct nt_settler_ *settler = fold->settler;
    /* from the buffer on, not from the map: if a handler forked, the map is the parent's now */
    int64_t pages = (int64_t)settler->shared->older - settler->shared->moves;
    struct nt_layout_cell *cells = &((struct nt_layout_cell *)(void *)settler->moves)[pages * CELLS];
    if (!cells[kind].state)
        cell_put(&cells[kind], 0, kind, (nt_pair_){ 0, 0 });
    return &cells[kind];
}

/* ---- one move ---- */

static void fold_to(struct fold *fold, struct nt_layout_move *move, uint64_t number)
{
    nt_kind kind = (nt_kind)(move->commit & 0xff);
    bool older = move->commit >> 8 & NT_MOVE_OLDER;
    struct nt_layout_cell *cell = older ? NULL : cell_make(fold, move->session, kind, number);
    if (!cell) {
        if (!older) { /* a reader must know where it goes before it is there */
            log_session_given(&fold->log->map, move->session);
            __atomic_store_n(&move->commit, move->commit | NT_MOVE_OLDER << 8, __ATOMIC_RELEASE);
            __atomic_thread_fence(__ATOMIC_RELEASE);
        }
        cell = cell_older(fold, kind);
    }
    (void)cell_add(fold->settler, cell, number, nt_pair_load_(&move->sum));
}

static void fold_given(struct fold *fold, const struct nt_layout_move *move, uint64_t number)
{
    const nt_pair_ nothing = { 0, 0 };
    struct nt_layout_cell *cell = cell_search(fold, move->from, (nt_kind)(move->commit & 0xff));
    if (!cell || !cell->state)
        return;
    nt_pair_ rest = cell_add(fold->settler, cell, number, nothing - nt_pair_load_(&move->sum));
    if (!rest[0])
        cell_delete(fold->settler, cell);
}

/* The quick way: the move goes to a session whose cell is where it was looked for when the move was written, or close
   behind. False: it takes more. */
static inline bool fold_quick(struct nt_settler_ *settler, const struct nt_layout_move *move, uint64_t number)
{
    uint64_t commit = move->commit, session = move->session;
    struct nt_layout_cell *cell = (struct nt_layout_cell *)(uintptr_t)move->home;
    if (commit >> 8 != (number + 1) << 8) /* also one with flags, and one never finished */
        return false;
    for (; cell->session != session || (cell->state & 0xff) != (commit & 0xff); cell++)
        if (!cell->state || (uintptr_t)(cell + 1) % NT_LAYOUT_PAGE == 0)
            return false;
    (void)cell_add(settler, cell, number, nt_pair_load_(&move->sum));
    return true;
}

static void fold_one(struct fold *fold, struct nt_layout_move *move, uint64_t number)
{
    if (move->commit >> 16 != number + 1) /* its change was left: it counts for nothing */
        return;
    fold_to(fold, move, number);
    if (move->commit >> 8 & NT_MOVE_GIVEN)
        fold_given(fold, move, number);
}

/* Those that were appended, in order, up to `end`. */
static void fold_moves(struct fold *fold, uint64_t end)
{
    struct nt_settler_ *settler = fold->settler;
    uint64_t number = settler->folded;
    uint32_t groups = settler->groups; /* while no group is split what `home` says holds */
    for (; number < end; number++) {
        struct nt_layout_move *move = &settler->moves[number % NT_LAYOUT_MOVES];
        if (groups != settler->groups || !fold_quick(settler, move, number))
            fold_one(fold, move, number);
    }
    settler->folded = number;
    __atomic_store_n(&settler->shared->folded, number, __ATOMIC_RELEASE);
}

/* ---- giving up ---- */

/* Its sum goes to the parent's cell, if this log knows the parent, else to `older`. */
static void give_up(struct fold *fold, const struct nt_layout_cell *cell)
{
    struct nt_settler_ *settler = fold->settler;
    uint64_t parent = log_session_parent(&fold->log->map, cell->session);
    uint64_t flags = NT_MOVE_GIVEN | (parent ? 0 : NT_MOVE_OLDER);
    const struct nt_moved_ moved = { parent, cell->session, nt_pair_load_(&cell->sum), { 0, 0 } };
    log_session_given(&fold->log->map, cell->session);
    if (parent)
        log_session_got(&fold->log->map, parent);
    uint64_t *given = parent ? &settler->shared->given_parent : &settler->shared->given_older;
    __atomic_store_n(given, *given + 1, __ATOMIC_RELAXED);
    nt_move_put_(settler, nt_take_(&settler->next, 1), (cell->state & 0xff) | flags << 8, &moved);
    fold_moves(fold, settler->next);
}

/* The value that as many lie below as above (C. A. R. Hoare's selection, 1961). */
static uint64_t median(uint64_t *values, uint32_t count)
{
    uint32_t low = 0, high = count - 1, middle = count / 2;
    while (low < high) {
        uint64_t pivot = values[middle];
        uint32_t i = low, j = high;
        do {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i <= j) {
                uint64_t swap = values[i];
                values[i++] = values[j];
                values[j] = swap;
                j -= j > 0;
            }
        } while (i <= j && i < count);
        if (j < middle)
            low = i;
        if (middle < i)
            high = j;
    }
    return values[middle];
}

/* Gives up the half of a group that was used longest ago. */
static void group_halve(struct fold *fold, struct nt_layout_cell *group)
{
    uint64_t used[CELLS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < CELLS; i++)
        if (group[i].state)
            used[count++] = group[i].state >> 16;
    if (count < CELLS / 2)
        return;
    uint64_t limit = median(used, count);
    for (uint32_t i = 0, turns = 0; i < CELLS && turns < 2 * CELLS; turns++) {
        const struct nt_layout_cell *cell = &group[i];
        if (cell->state && cell->state >> 16 <= limit)
            give_up(fold, cell);
        else
            i++;
    }
}

void log_cells_fold(struct nt_log *log, struct nt_settler_ *settler, uint32_t left)
{
    struct fold fold = { .log = log, .settler = settler };
    uint64_t end = __atomic_load_n(&settler->next, __ATOMIC_RELAXED) - left;
    __atomic_store_n(&settler->shared->folding, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if ((int64_t)(end - settler->folded) > 0)
        fold_moves(&fold, end);
    uint32_t crowded = fold.crowded_count;
    if (crowded && settler->retry) { /* no group can be made */
        fold_moves(&fold, settler->next);
        for (uint32_t i = 0; i < crowded; i++)
            group_halve(&fold, fold.crowded[i]);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&settler->shared->folding, 0, __ATOMIC_RELAXED);
}
