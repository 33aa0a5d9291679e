/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by session as a log file holds them at this moment, found by docs/format.md alone: what the tests hold the
   library's writing and the reader's reading against. Slow and simple on purpose. */
#ifndef LOG_SESSION_TEST_H
#define LOG_SESSION_TEST_H

#include "log/log_test.h"

struct session_sum {
    uint64_t session;
    uint32_t kind;
    bool older, cell;
    uint64_t moves; /* in it */
    uint64_t count, total;
};

struct session_sums {
    struct session_sum *sums;
    size_t count, room;
};

UNUSED static struct session_sum *sums_at(struct session_sums *sums, uint64_t session, uint32_t kind, bool older,
                                          size_t from)
{
    for (size_t i = from; i < sums->count; i++)
        if (sums->sums[i].kind == kind && sums->sums[i].older == older && (older || sums->sums[i].session == session))
            return &sums->sums[i];
    if (sums->count == sums->room) {
        sums->room = sums->room ? 2 * sums->room : 64;
        sums->sums = realloc(sums->sums, sums->room * sizeof(*sums->sums));
        if (!sums->sums)
            abort();
    }
    sums->sums[sums->count] = (struct session_sum){ .session = older ? 0 : session, .kind = kind, .older = older };
    return &sums->sums[sums->count++];
}

UNUSED static const unsigned char *settlement_page(const struct view *view, uint64_t page)
{
    return view_at(view, NT_REGION_SETTLEMENT, page);
}

UNUSED static void sums_cell(const struct nt_layout_settler *settler, const struct nt_layout_cell *cell, bool older,
                             struct session_sums *sums, size_t from)
{
    uint64_t state = cell->state;
    struct nt_layout_pair sum = cell->sum;
    if (!state)
        return;
    if (state >> 8 & NT_CELL_BUSY) {
        state = settler->redo_state;
        sum = settler->redo;
    }
    struct session_sum *to = sums_at(sums, cell->session, state & 0xff, older, from);
    if (!to->cell || state >> 16 > to->moves)
        *to = (struct session_sum){ to->session, to->kind, to->older, true, state >> 16, sum.count, sum.total };
}

UNUSED static void sums_cells(const struct view *view, const struct nt_layout_settler *settler,
                              struct session_sums *sums, size_t from)
{
    for (uint32_t group = 0; group < settler->groups; group++) {
        uint32_t extent = 0;
        while ((UINT32_C(1) << extent) <= group)
            extent++;
        uint64_t page = settler->extent[extent] + (uint64_t)group - (group ? UINT64_C(1) << (extent - 1) : 0);
        const struct nt_layout_cell *cells = (const void *)settlement_page(view, page);
        for (uint32_t i = 0; i < NT_LAYOUT_CELLS; i++)
            sums_cell(settler, &cells[i], false, sums, from);
    }
    const struct nt_layout_cell *older = (const void *)settlement_page(view, settler->older);
    for (uint32_t kind = 0; settler->older && kind < NT_LAYOUT_KINDS; kind++)
        sums_cell(settler, &older[kind], true, sums, from);
}

UNUSED static const struct nt_layout_move *move_at(const struct view *view, const struct nt_layout_settler *settler,
                                                   uint64_t number)
{
    const struct nt_layout_move *moves = (const void *)settlement_page(view, settler->moves);
    const struct nt_layout_move *move = &moves[number % NT_LAYOUT_MOVES];
    return move->commit >> 16 == number + 1 ? move : NULL;
}

UNUSED static void sums_moves(const struct view *view, const struct nt_layout_settler *settler,
                              struct session_sums *sums, size_t from)
{
    for (uint64_t number = settler->folded; number < settler->folded + NT_LAYOUT_MOVES; number++) {
        const struct nt_layout_move *move = move_at(view, settler, number);
        if (!move)
            continue;
        uint32_t kind = move->commit & 0xff;
        uint64_t flags = move->commit >> 8 & 0xff;
        if (!(flags & NT_MOVE_NONE)) {
            struct session_sum *to = sums_at(sums, move->session, kind, flags & NT_MOVE_OLDER, from);
            if (to->moves <= number) {
                to->count += move->sum.count;
                to->total += move->sum.total;
            }
        }
        if (flags & NT_MOVE_FROM && move->from) {
            struct session_sum *of = sums_at(sums, move->from, kind, flags & NT_MOVE_TAKE, from);
            if (of->moves <= number && (of->cell || !(flags & NT_MOVE_EVICT))) {
                of->count -= move->sum.count;
                of->total -= move->sum.total;
            }
        }
    }
}

/* What is settled of a tally: also what a move says that was written just before. */
UNUSED static struct nt_layout_pair settled_of(const struct view *view, uint32_t slot, uint32_t generation,
                                               uint32_t kind, struct nt_layout_pair settled)
{
    for (uint32_t i = 0; i < view->live->settlers; i++) {
        const struct nt_layout_settler *settler = view_at(view, NT_REGION_SETTLERS, i);
        for (uint64_t number = settler->folded; number < settler->folded + NT_LAYOUT_MOVES; number++) {
            const struct nt_layout_move *move = move_at(view, settler, number);
            if (move && (move->commit & 0xff) == kind && !(move->commit >> 8 & NT_MOVE_FROM) &&
                ((uint32_t)move->from & ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1)) == slot &&
                (uint32_t)(move->from >> 32) == generation && (int64_t)(move->after.count - settled.count) > 0)
                settled = move->after;
        }
    }
    return settled;
}

UNUSED static void sums_rest(const struct view *view, struct session_sums *sums, uint32_t slot, uint32_t kind,
                             struct nt_layout_pair sum, struct nt_layout_pair settled)
{
    const struct nt_layout_object *entry = view_entry(view, slot);
    settled = settled_of(view, slot, entry->generation, kind, settled);
    struct session_sum *own = sums_at(sums, entry->session, kind, false, 0);
    own->count += sum.count - settled.count;
    own->total += sum.total - settled.total;
    if (entry->session) { /* all that some session has is taken from none's, which has the rest */
        struct session_sum *none = sums_at(sums, 0, kind, false, 0);
        none->count += settled.count;
        none->total += settled.total;
        return;
    }
    own->count += settled.count;
    own->total += settled.total;
}

UNUSED static void sums_object(const struct view *view, struct session_sums *sums, uint32_t slot)
{
    const struct nt_layout_object *entry = view_entry(view, slot);
    for (int i = 0; i < 3; i++)
        if (entry->tally_kind[i])
            sums_rest(view, sums, slot, entry->tally_kind[i], entry->tally[i].sum, entry->settled[i]);
    for (uint32_t at = entry->blocks; at;) {
        const struct nt_layout_tally_block *block = view_at(view, NT_REGION_BLOCKS, at);
        for (int i = 0; i < 4; i++)
            if (block->kind[i])
                sums_rest(view, sums, slot, block->kind[i], block->tally[i].sum, block->settled[i]);
        at = block->next;
    }
    for (uint32_t at = entry->extras; at;) {
        const struct nt_layout_extra *extra = view_at(view, NT_REGION_BLOCKS, at);
        struct session_sum *none = sums_at(sums, 0, extra->kind, false, 0);
        if (extra->holds & NT_EXTRA_CLOSED && extra->kind != NT_OPEN && extra->kind != NT_CLOSE) {
            none->count += extra->closed.count;
            none->total += extra->closed.total;
        }
        at = extra->next;
    }
}

/* One sum for each session and kind; session 0 is none, which has what no other has. Not for files in which an object
   is being folded. */
UNUSED static struct session_sums session_sums(const struct view *view)
{
    struct session_sums sums = { 0 };
    for (uint32_t slot = 0; slot < view->live->slots; slot++) {
        const struct nt_layout_object *entry = view_entry(view, slot);
        if (entry->generation && (entry->life == NT_LIFE_OPEN || entry->life == NT_LIFE_CLOSED))
            sums_object(view, &sums, slot);
    }
    size_t own = sums.count;
    for (uint32_t i = 0; i < view->live->settlers; i++) {
        const struct nt_layout_settler *settler = view_at(view, NT_REGION_SETTLERS, i);
        size_t from = sums.count;
        sums_cells(view, settler, &sums, from);
        sums_moves(view, settler, &sums, from);
    }
    /* what the settlers have goes to the session and away from none */
    size_t all = sums.count;
    for (size_t i = own; i < all; i++) {
        struct session_sum one = sums.sums[i];
        struct session_sum *none = sums_at(&sums, 0, one.kind, false, 0);
        none->count -= one.count;
        none->total -= one.total;
        sums.sums[i].kind = 0;
        struct session_sum *to = sums_at(&sums, one.session, one.kind, one.older, 0);
        to->count += one.count;
        to->total += one.total;
    }
    return sums;
}

UNUSED static struct nt_layout_pair session_sum(const struct session_sums *sums, uint64_t session, uint32_t kind,
                                                bool older)
{
    for (size_t i = 0; i < sums->count; i++)
        if (sums->sums[i].kind == kind && sums->sums[i].older == older && (older || sums->sums[i].session == session))
            return (struct nt_layout_pair){ sums->sums[i].count, sums->sums[i].total };
    return (struct nt_layout_pair){ 0, 0 };
}

UNUSED static void session_sums_fini(struct session_sums *sums)
{
    free(sums->sums);
}

#endif
