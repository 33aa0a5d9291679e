/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves are copied before the cells: one that is folded meanwhile is found in its cell, which says so. Each cell is
   read whole, each group until no cell of it changed its place meanwhile, and groups in ascending order, because cells
   only ever move to later ones. */
#include "source/live/settler.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS NT_LAYOUT_CELLS
#define MOVES NT_LAYOUT_MOVES
#define GROUPS_MAX (UINT32_C(1) << (NT_LAYOUT_EXTENTS - 1))

/* A place of the buffer may be in use again before it says so, by the thread or by handlers within handlers. What lies
   that near behind the newest move is not trusted. */
#define NEAR 16u

static void between(const struct live_settlers *settlers)
{
    if (settlers->call != NULL) {
        settlers->call(settlers->call_arg);
    }
}

__attribute__((format(printf, 2, 3))) static void say_odd(struct live_settlers *settlers, const char *format, ...)
{
    if (settlers->odd++ == 0) {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(settlers->text, sizeof settlers->text, format, list);
        va_end(list);
    }
}

static bool is_kind(uint8_t kind)
{
    return kind != 0 && kind != NT_LAYOUT_CONTINUATION;
}

static struct nt_source_pair pair_of(const struct nt_layout_pair *shared)
{
    struct nt_layout_pair pair = live_pair_load(shared);
    return (struct nt_source_pair){ pair.count, pair.total };
}

/* acquire: partner is the writer's release once the move is in its cell */
static uint64_t folded_of(const struct nt_layout_settler *shared)
{
    return __atomic_load_n(&shared->folded, __ATOMIC_ACQUIRE);
}

static uint64_t given_of(const struct nt_layout_settler *shared)
{
    return live_load64(&shared->given_parent) + live_load64(&shared->given_older);
}

static uint32_t number_of(const struct live_settlers *settlers, const struct live_settler *settler)
{
    return (uint32_t)(settler - settlers->all);
}

/* ---- Pages ---- */

/* NULL: of a copy that left out pages of zeros. */
static const void *page_at(struct live_settlers *settlers, uint64_t page)
{
    return live_map_at(settlers->map, NT_REGION_SETTLEMENT, page * NT_LAYOUT_PAGE, NT_LAYOUT_PAGE);
}

/* A page is one settler's for one purpose; so what is read is never more than what is there. */
static bool page_claim(struct live_settlers *settlers, const struct live_settler *settler, uint64_t page)
{
    if (page == 0 || page >= settlers->pages) {
        say_odd(settlers, "settler %u uses page %llu of the settlement region, which is not there",
                number_of(settlers, settler), (unsigned long long)page);
        return false;
    }
    uint64_t *word = &settlers->claimed[page / 64], bit = UINT64_C(1) << page % 64;
    if ((*word & bit) != 0) {
        say_odd(settlers, "settler %u uses page %llu of the settlement region, which is in use",
                number_of(settlers, settler), (unsigned long long)page);
        return false;
    }
    *word |= bit;
    return true;
}

/* ---- Moves ---- */

static const struct nt_layout_move *move_at(const struct live_settler *settler, uint32_t place)
{
    enum { PAGE = MOVES / LIVE_MOVE_PAGES };
    const struct nt_layout_move *page = settler->moves[place / PAGE];
    return page != NULL ? &page[place % PAGE] : NULL;
}

/* The move in a place of the buffer. False: there is none, or it changed too often while it was read. */
static bool move_copy(const struct live_settler *settler, uint32_t place, struct live_move *ret_move)
{
    enum { TURNS = 4 };
    const struct nt_layout_move *shared = move_at(settler, place);
    for (int turn = 0; turn < TURNS && shared != NULL; turn++) {
        /* acquire: partner is the writer's release once the move is whole */
        uint64_t commit = __atomic_load_n(&shared->commit, __ATOMIC_ACQUIRE);
        if (commit >> 16 == 0 || ((commit >> 16) - 1) % MOVES != place) {
            return false;
        }
        *ret_move = (struct live_move){
            .number = (commit >> 16) - 1,
            .session = live_load64(&shared->session),
            .from = live_load64(&shared->from),
            .sum = pair_of(&shared->sum),
            .after = pair_of(&shared->after),
            .kind = (uint8_t)commit,
        };
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        uint64_t again = live_load64(&shared->commit);
        ret_move->flags = (uint8_t)(again >> 8); /* folding adds some */
        if (again >> 16 == commit >> 16) {
            return is_kind(ret_move->kind) && (ret_move->session != 0 || (ret_move->flags & NT_MOVE_OLDER) != 0);
        }
    }
    return false;
}

static int move_push(struct live_settlers *settlers, const struct live_move *move)
{
    if (settlers->move_count == settlers->move_room) {
        uint32_t room = settlers->move_room != 0 ? 2 * settlers->move_room : MOVES;
        struct live_move *moves = reallocarray(settlers->moves, room, sizeof *moves);
        if (moves == NULL) {
            return -ENOMEM;
        }
        settlers->moves = moves;
        settlers->move_room = room;
    }
    settlers->moves[settlers->move_count++] = *move;
    return 0;
}

/* The number behind that of the newest move. */
static uint64_t moves_end(const struct live_settler *settler)
{
    uint64_t end = 0;
    for (uint32_t place = 0; place < MOVES; place++) {
        const struct nt_layout_move *shared = move_at(settler, place);
        uint64_t number = shared != NULL ? live_load64(&shared->commit) >> 16 : 0;
        end = number > end && (number - 1) % MOVES == place ? number : end;
    }
    return end;
}

/* A move that waits is not overwritten before it is folded: while it still waits after it was copied, the copy is
   whole. What is folded by then will be found in the cells. */
static int settler_early(struct live_settlers *settlers, struct live_settler *settler)
{
    int error = 0;
    settler->early_first = settlers->move_count;
    settler->given = given_of(settler->shared);
    between(settlers);
    for (uint32_t place = 0; place < MOVES && error == 0; place++) {
        struct live_move move;
        if (!move_copy(settler, place, &move)) {
            continue;
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (move.number - folded_of(settler->shared) < MOVES) {
            move.settler = number_of(settlers, settler);
            error = move_push(settlers, &move);
        }
    }
    settler->early = settlers->move_count - settler->early_first;
    settler->end = moves_end(settler);
    settler->folded = folded_of(settler->shared);
    settler->end = settler->end > settler->folded ? settler->end : settler->folded;
    return error;
}

/* The moves that were copied early are in the order of their places. */
static struct live_move *early_at(struct live_settlers *settlers, const struct live_settler *settler, uint32_t place,
                                  uint32_t *cursor)
{
    if (settler->early == 0) {
        return NULL; /* there may be no moves at all */
    }
    struct live_move *early = &settlers->moves[settler->early_first];
    while (*cursor < settler->early && early[*cursor].number % MOVES < place) {
        ++*cursor;
    }
    return *cursor < settler->early && early[*cursor].number % MOVES == place ? &early[*cursor] : NULL;
}

/* What is in the buffer now, and was not when it was copied first. */
static int settler_late(struct live_settlers *settlers, struct live_settler *settler)
{
    struct live_move copies[MOVES];
    uint32_t count = 0, cursor = 0;
    between(settlers);
    for (uint32_t place = 0; place < MOVES; place++) {
        struct live_move *early = early_at(settlers, settler, place, &cursor);
        struct live_move *copy = &copies[count];
        if (!move_copy(settler, place, copy) || copy->number < settler->folded) {
            continue;
        }
        if (early != NULL && early->number == copy->number) {
            early->flags = copy->flags;
            continue;
        }
        copy->settler = number_of(settlers, settler);
        copy->late = true;
        count++;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t end = moves_end(settler);
    uint64_t whole = end > MOVES - NEAR ? end - (MOVES - NEAR) : 0;
    settlers->lost = settlers->lost || whole > settler->end;
    settler->gave = given_of(settler->shared) != settler->given;
    settler->later = folded_of(settler->shared);
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        if (copies[i].number >= whole && copies[i].number < settler->later + MOVES) {
            error = move_push(settlers, &copies[i]);
        }
    }
    return error;
}

/* ---- Cells ---- */

struct cell_copy {
    uint64_t session;
    uint8_t kind;
    bool whole; /* else it changed faster than it could be read */
    struct live_session_cell cell;
};

/* What a cell that is being changed will hold is in the settler's redo area, also if its thread ended in the middle.
   False: it is empty. */
static bool cell_copy(const struct nt_layout_settler *settler, const struct nt_layout_cell *shared,
                      struct cell_copy *ret_copy)
{
    enum { TURNS = 64 };
    ret_copy->whole = false;
    for (int turn = 0; turn < TURNS && !ret_copy->whole; turn++) {
        /* acquire: partner is the writer's release once the cell, or the redo area, is whole */
        uint64_t state = __atomic_load_n(&shared->state, __ATOMIC_ACQUIRE), used = state;
        if (state == 0) {
            return false;
        }
        ret_copy->session = live_load64(&shared->session);
        ret_copy->cell.sum = pair_of(&shared->sum);
        if ((state >> 8 & NT_CELL_BUSY) != 0) {
            used = live_load64(&settler->redo_state);
            ret_copy->cell.sum = pair_of(&settler->redo);
        }
        ret_copy->cell.moves = used >> 16;
        ret_copy->kind = (uint8_t)state;
        /* Orders the copies before the second look; partner: the writer's fence between state and the rest. */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        ret_copy->whole = live_load64(&shared->state) == state && (used & 0xff) == (state & 0xff);
    }
    return true;
}

/* `session`: its number, LIVE_SESSION_NONE: the cell says which. */
static int cell_take(struct live_settlers *settlers, const struct live_settler *settler,
                     const struct nt_layout_cell *shared, uint32_t session)
{
    struct cell_copy copy = { .cell.settler = number_of(settlers, settler) };
    if (!cell_copy(settler->shared, shared, &copy) || !is_kind(copy.kind)) {
        return 0;
    }
    if (session == LIVE_SESSION_NONE) {
        if (copy.session == 0) {
            return 0;
        }
        int error = live_session_add(settlers->sums, copy.session, &session);
        if (error < 0) {
            return error;
        }
    }
    if (!copy.whole) {
        settlers->sums->sessions[session].shaken = settlers->moving = true;
    }
    return live_session_cell(settlers->sums, session, copy.kind, &copy.cell);
}

/* A group, again if a cell of the settler changed its place meanwhile. */
static int group_read(struct live_settlers *settlers, const struct live_settler *settler,
                      const struct nt_layout_cell *cells)
{
    enum { TURNS = 16 };
    for (int turn = 0; turn < TURNS; turn++) {
        between(settlers);
        uint64_t shifts = __atomic_load_n(&settler->shared->shifts, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < CELLS; i++) {
            if (i == CELLS / 2) {
                between(settlers);
            }
            int error = cell_take(settlers, settler, &cells[i], LIVE_SESSION_NONE);
            if (error < 0) {
                return error;
            }
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (live_load64(&settler->shared->shifts) == shifts) {
            return 0;
        }
    }
    settlers->moving = true;
    return 0;
}

/* acquire: partner is the writer's release once the group is whole */
static uint32_t groups_of(const struct nt_layout_settler *shared)
{
    uint32_t groups = __atomic_load_n(&shared->groups, __ATOMIC_ACQUIRE);
    return groups < GROUPS_MAX ? groups : GROUPS_MAX;
}

/* The groups of one extent from `group` on, as many as there are now. */
static int extent_read(struct live_settlers *settlers, const struct live_settler *settler, uint32_t extent,
                       uint32_t *group)
{
    uint32_t first = extent != 0 ? UINT32_C(1) << (extent - 1) : 0, end = UINT32_C(1) << extent;
    uint64_t page = __atomic_load_n(&settler->shared->extent[extent], __ATOMIC_ACQUIRE);
    int error = 0;
    if (page == 0 || page + (end - first) > settlers->pages) {
        say_odd(settlers, "settler %u: extent %u lies outside of the settlement region", number_of(settlers, settler),
                extent);
        *group = end;
        return 0;
    }
    while (*group < end && *group < groups_of(settler->shared) && error == 0) {
        uint64_t at = page + (*group - first);
        uint64_t next = live_map_next(settlers->map, NT_REGION_SETTLEMENT, at * NT_LAYOUT_PAGE) / NT_LAYOUT_PAGE;
        if (next > at) {
            *group = next - page < end - first ? first + (uint32_t)(next - page) : end;
            continue;
        }
        const struct nt_layout_cell *cells = page_at(settlers, at);
        if (cells == NULL || !page_claim(settlers, settler, at)) {
            *group = end;
            return 0;
        }
        error = group_read(settlers, settler, cells);
        ++*group;
    }
    return error;
}

/* In ascending order, and on as long as there are more. */
static int groups_read(struct live_settlers *settlers, const struct live_settler *settler)
{
    uint32_t group = 0;
    int error = 0;
    while (group < groups_of(settler->shared) && error == 0) {
        uint32_t extent = group != 0 ? 32u - (uint32_t)__builtin_clz(group) : 0;
        error = extent_read(settlers, settler, extent, &group);
    }
    return error;
}

/* Before the groups: what is given up meanwhile is then found once at most. */
static int older_read(struct live_settlers *settlers, const struct live_settler *settler)
{
    enum { PAGES = NT_LAYOUT_KINDS / CELLS };
    uint64_t page = live_load32(&settler->shared->older);
    int error = 0;
    between(settlers);
    for (uint32_t i = 0; i < PAGES && page_claim(settlers, settler, page + i); i++) {
        const struct nt_layout_cell *cells = page_at(settlers, page + i);
        for (uint32_t k = 0; cells != NULL && k < CELLS && error == 0; k++) {
            if ((live_load64(&cells[k].state) & 0xff) == i * CELLS + k) {
                error = cell_take(settlers, settler, &cells[k], LIVE_SESSION_OLDER);
            }
        }
    }
    return error;
}

/* ---- All of them ---- */

/* It can be used if its buffer is where it may be. */
static void settler_take(struct live_settlers *settlers, struct live_settler *settler)
{
    uint32_t number = number_of(settlers, settler);
    const struct nt_layout_settler *shared = live_map_at(settlers->map, NT_REGION_SETTLERS, number * sizeof *shared,
                                                         sizeof *shared);
    uint64_t page = shared != NULL ? live_load32(&shared->moves) : 0;
    for (uint32_t i = 0; shared != NULL && i < LIVE_MOVE_PAGES; i++) {
        if (!page_claim(settlers, settler, page + i)) {
            return;
        }
        settler->moves[i] = page_at(settlers, page + i);
    }
    settler->shared = shared;
}

/* Takes up those that there are now. */
static int settlers_take(struct live_settlers *settlers)
{
    uint64_t there = settlers->map->regions[NT_REGION_SETTLERS].size / sizeof(struct nt_layout_settler);
    /* acquire: partner is the writer's release once the settler is whole */
    uint32_t count = __atomic_load_n(&live_map_live(settlers->map)->settlers, __ATOMIC_ACQUIRE);
    if (count > there || count > LIVE_SETTLERS_MAX) {
        say_odd(settlers, "%u settlers, more than there can be", count);
        count = (uint32_t)(there < LIVE_SETTLERS_MAX ? there : LIVE_SETTLERS_MAX);
    }
    if (count <= settlers->count) {
        return 0;
    }
    struct live_settler *all = reallocarray(settlers->all, count, sizeof *all);
    if (all == NULL) {
        return -ENOMEM;
    }
    settlers->all = all;
    for (; settlers->count < count; settlers->count++) {
        settlers->all[settlers->count] = (struct live_settler){ 0 };
        settler_take(settlers, &settlers->all[settlers->count]);
    }
    return 0;
}

int live_settlers_begin(struct live_settlers *settlers, struct live_map *map, struct live_session_sums *sums)
{
    *settlers =
        (struct live_settlers){ .map = map, .sums = sums, .call = settlers->call, .call_arg = settlers->call_arg };
    settlers->pages = map->regions[NT_REGION_SETTLEMENT].size / NT_LAYOUT_PAGE;
    settlers->claimed = calloc(settlers->pages / 64 + 1, sizeof *settlers->claimed);
    int error = settlers->claimed != NULL ? settlers_take(settlers) : -ENOMEM;
    for (uint32_t i = 0; i < settlers->count && error == 0; i++) {
        if (settlers->all[i].shared != NULL) {
            error = settler_early(settlers, &settlers->all[i]);
        }
    }
    return error;
}

int live_settlers_cells(struct live_settlers *settlers)
{
    int error = 0;
    for (uint32_t i = 0; i < settlers->count && error == 0; i++) {
        const struct live_settler *settler = &settlers->all[i];
        if (settler->shared != NULL) {
            error = older_read(settlers, settler);
            error = error == 0 ? groups_read(settlers, settler) : error;
        }
    }
    return error;
}

/* Of those that came since nothing was read: all their moves are late. */
int live_settlers_late(struct live_settlers *settlers)
{
    int error = settlers_take(settlers);
    for (uint32_t i = 0; i < settlers->count && error == 0; i++) {
        struct live_settler *settler = &settlers->all[i];
        if (settler->shared != NULL) {
            error = settler_late(settlers, settler);
            settlers->moving = settlers->moving || settler->gave;
        }
    }
    return error;
}

void live_settlers_fini(struct live_settlers *settlers)
{
    free(settlers->all);
    free(settlers->moves);
    free(settlers->claimed);
    *settlers = (struct live_settlers){ .call = settlers->call, .call_arg = settlers->call_arg };
}
