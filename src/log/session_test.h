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
    size_t count, room; /* room: a power of two, at least twice the count; the places are found by hash */
};

static inline size_t sums_place(const struct session_sums *sums, uint64_t session, uint32_t kind, bool older)
{
    size_t at = (size_t)nt_layout_hash_(session, kind + 256 * older) & (sums->room - 1);
    while (sums->sums[at].kind && (sums->sums[at].kind != kind || sums->sums[at].older != older ||
                                   (!older && sums->sums[at].session != session)))
        at = (at + 1) & (sums->room - 1);
    return at;
}

UNUSED static struct session_sum *sums_at(struct session_sums *sums, uint64_t session, uint32_t kind, bool older)
{
    session = older ? 0 : session;
    if (2 * sums->count >= sums->room) {
        struct session_sums more = { calloc(sums->room ? 2 * sums->room : 64, sizeof(*sums->sums)), sums->count,
                                     sums->room ? 2 * sums->room : 64 };
        if (!more.sums)
            abort();
        for (size_t i = 0; i < sums->room; i++)
            if (sums->sums[i].kind)
                more.sums[sums_place(&more, sums->sums[i].session, sums->sums[i].kind, sums->sums[i].older)] =
                    sums->sums[i];
        free(sums->sums);
        *sums = more;
    }
    struct session_sum *sum = &sums->sums[sums_place(sums, session, kind, older)];
    if (!sum->kind) {
        *sum = (struct session_sum){ .session = session, .kind = kind, .older = older };
        sums->count++;
    }
    return sum;
}

UNUSED static const unsigned char *settlement_page(const struct view *view, uint64_t page)
{
    return view_at(view, NT_REGION_SETTLEMENT, page);
}

UNUSED static void sums_cell(const struct nt_layout_settler *settler, const struct nt_layout_cell *cell, bool older,
                             struct session_sums *sums)
{
    uint64_t state = cell->state;
    struct nt_layout_pair sum = cell->sum;
    if (!state)
        return;
    if (state >> 8 & NT_CELL_BUSY) {
        state = settler->redo_state;
        sum = settler->redo;
    }
    struct session_sum *to = sums_at(sums, cell->session, state & 0xff, older);
    if (!to->cell || state >> 16 > to->moves)
        *to = (struct session_sum){ to->session, to->kind, to->older, true, state >> 16, sum.count, sum.total };
}

UNUSED static void sums_cells(const struct view *view, const struct nt_layout_settler *settler,
                              struct session_sums *sums)
{
    for (uint32_t group = 0; group < settler->groups; group++) {
        uint32_t extent = 0;
        while ((UINT32_C(1) << extent) <= group)
            extent++;
        uint64_t page = settler->extent[extent] + (uint64_t)group - (group ? UINT64_C(1) << (extent - 1) : 0);
        const struct nt_layout_cell *cells = (const void *)settlement_page(view, page);
        for (uint32_t i = 0; i < NT_LAYOUT_CELLS; i++)
            sums_cell(settler, &cells[i], false, sums);
    }
    const struct nt_layout_cell *older = (const void *)settlement_page(view, settler->older);
    for (uint32_t kind = 0; kind < NT_LAYOUT_KINDS; kind++)
        sums_cell(settler, &older[kind], true, sums);
}

UNUSED static const struct nt_layout_move *move_at(const struct view *view, const struct nt_layout_settler *settler,
                                                   uint64_t number)
{
    const struct nt_layout_move *moves = (const void *)settlement_page(view, settler->moves);
    const struct nt_layout_move *move = &moves[number % NT_LAYOUT_MOVES];
    return move->commit >> 16 == number + 1 ? move : NULL;
}

UNUSED static void sums_moves(const struct view *view, const struct nt_layout_settler *settler,
                              struct session_sums *sums)
{
    for (uint64_t number = settler->folded; number < settler->folded + NT_LAYOUT_MOVES; number++) {
        const struct nt_layout_move *move = move_at(view, settler, number);
        if (!move)
            continue;
        uint32_t kind = move->commit & 0xff;
        uint64_t flags = move->commit >> 8 & 0xff;
        struct session_sum *to = sums_at(sums, move->session, kind, flags & NT_MOVE_OLDER);
        if (to->moves <= number) {
            to->count += move->sum.count;
            to->total += move->sum.total;
        }
        struct session_sum *of = flags & NT_MOVE_GIVEN ? sums_at(sums, move->from, kind, false) : NULL;
        if (of && of->cell && of->moves <= number) {
            of->count -= move->sum.count;
            of->total -= move->sum.total;
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
            if (move && (move->commit & 0xff) == kind && !(move->commit >> 8 & NT_MOVE_GIVEN) &&
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
    struct session_sum *own = sums_at(sums, entry->session, kind, false);
    own->count += sum.count - settled.count;
    own->total += sum.total - settled.total;
    if (entry->session) { /* all that some session has is taken from none's, which has the rest */
        struct session_sum *none = sums_at(sums, 0, kind, false);
        none->count += settled.count;
        none->total += settled.total;
        return;
    }
    own->count += settled.count;
    own->total += settled.total;
}

/* Whether the redo area holds in place of the object's sum of closed children. */
UNUSED static bool is_redone(const struct view *view, uint32_t slot, uint32_t kind)
{
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    for (uint32_t i = 0; redo->sequence % 2 && redo->parent == slot && i < redo->count; i++)
        if (redo->entries[i].kind == kind)
            return true;
    return false;
}

UNUSED static void sums_closed(struct session_sums *sums, uint32_t kind, const struct nt_layout_pair *closed)
{
    struct session_sum *none = sums_at(sums, 0, kind, false);
    if (kind != NT_OPEN && kind != NT_CLOSE) {
        none->count += closed->count;
        none->total += closed->total;
    }
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
        if (extra->holds & NT_EXTRA_CLOSED && !is_redone(view, slot, extra->kind))
            sums_closed(sums, extra->kind, &extra->closed);
        at = extra->next;
    }
}

/* The object that is being put into its parent's `closed` counts no more: the redo area has it. */
UNUSED static bool is_folding(const struct view *view, uint32_t slot, uint32_t generation)
{
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    return redo->sequence % 2 && redo->slot == slot && redo->generation == generation;
}

UNUSED static void sums_redo(const struct view *view, struct session_sums *sums)
{
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    for (uint32_t i = 0; redo->sequence % 2 && i < redo->count; i++)
        sums_closed(sums, redo->entries[i].kind, &redo->entries[i].closed);
}

/* One sum for each session and kind; session 0 is none, which has what no other has. */
UNUSED static struct session_sums session_sums(const struct view *view)
{
    struct session_sums sums = { 0 };
    for (uint32_t slot = 0; slot < view->live->slots; slot++) {
        const struct nt_layout_object *entry = view_entry(view, slot);
        if (entry->generation && (entry->life == NT_LIFE_OPEN || entry->life == NT_LIFE_CLOSED) &&
            !is_folding(view, slot, entry->generation))
            sums_object(view, &sums, slot);
    }
    sums_redo(view, &sums);
    for (uint32_t i = 0; i < view->live->settlers; i++) {
        const struct nt_layout_settler *settler = view_at(view, NT_REGION_SETTLERS, i);
        struct session_sums part = { 0 };
        sums_cells(view, settler, &part);
        sums_moves(view, settler, &part);
        /* what a settler has goes to the session and away from none */
        for (size_t k = 0; k < part.room; k++) {
            struct session_sum one = part.sums[k];
            if (!one.kind)
                continue;
            struct session_sum *none = sums_at(&sums, 0, one.kind, false);
            none->count -= one.count;
            none->total -= one.total;
            struct session_sum *to = sums_at(&sums, one.session, one.kind, one.older);
            to->count += one.count;
            to->total += one.total;
        }
        free(part.sums);
    }
    return sums;
}

UNUSED static struct nt_layout_pair session_sum(const struct session_sums *sums, uint64_t session, uint32_t kind,
                                                bool older)
{
    if (!sums->room)
        return (struct nt_layout_pair){ 0, 0 };
    const struct session_sum *sum = &sums->sums[sums_place(sums, older ? 0 : session, kind, older)];
    return (struct nt_layout_pair){ sum->count, sum->total };
}

/* Whether a flag says of a session's sum that it is not all (NT_SESSION_FOLDED), or not its own alone (…_GOT). */
UNUSED static bool session_has(const struct view *view, uint64_t session, uint8_t flag)
{
    const struct nt_layout_region *region = view_region(view, NT_REGION_SESSIONS);
    uint64_t number = (session - view->header->session_first) & ((UINT64_C(1) << NT_LAYOUT_SESSION_BITS) - 1);
    if (number < view->live->sessions) {
        const struct nt_layout_session *entry = view_at(view, NT_REGION_SESSIONS,
                                                        number % (region->size / sizeof(*entry)));
        if (entry->id == session)
            return entry->flags & flag;
    }
    const uint64_t *words = view_at(view, NT_REGION_GIVEN, 0);
    for (int i = 0; i < NT_LAYOUT_GIVEN_BITS; i++) {
        uint64_t hash = nt_layout_hash_(session, flag == NT_SESSION_GOT);
        uint64_t bit = nt_layout_given_(hash, i, view_region(view, NT_REGION_GIVEN)->size / 8);
        if (!(words[bit / 64] >> bit % 64 & 1))
            return view->live->given_unknown;
    }
    return true;
}

/* Whether a session's sum is the least it can be: some of it was given up. */
UNUSED static bool session_was_given(const struct view *view, uint64_t session)
{
    return session_has(view, session, NT_SESSION_FOLDED);
}

UNUSED static void session_sums_fini(struct session_sums *sums)
{
    free(sums->sums);
}

#endif
