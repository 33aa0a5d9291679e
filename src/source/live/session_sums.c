/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow, linked by numbers, see session_sums.h. */
#include "source/live/session_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more in an array that doubles. */
static int grow(void **entries, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return 0;
    }
    if (count >= LIVE_SESSION_SUMS_MAX) {
        return -E2BIG;
    }
    uint32_t more = *room != 0 ? 2 * *room : 64;
    void *moved = reallocarray(*entries, more, size);
    if (moved == NULL) {
        return -ENOMEM;
    }
    *entries = moved;
    *room = more;
    return 0;
}

/* ---- Sessions by id ---- */

static uint32_t *index_cell(const struct live_session_sums *sums, uint64_t id)
{
    /* the finaliser of splitmix64; the seed keeps a log from being made so that all meet */
    uint64_t hash = id + sums->seed;
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    uint64_t at = (hash ^ hash >> 31) & sums->index_mask;
    while (sums->index[at] != LIVE_SESSION_NONE && sums->sessions[sums->index[at]].id != id) {
        at = (at + 1) & sums->index_mask;
    }
    return &sums->index[at];
}

static int index_make(struct live_session_sums *sums, uint64_t room)
{
    uint32_t *index = malloc(room * sizeof *index);
    if (index == NULL) {
        return -ENOMEM;
    }
    memset(index, 0xff, room * sizeof *index);
    free(sums->index);
    sums->index = index;
    sums->index_mask = room - 1;
    for (uint32_t i = LIVE_SESSION_OLDER + 1; i < sums->session_count; i++) {
        *index_cell(sums, sums->sessions[i].id) = i;
    }
    return 0;
}

static int session_push(struct live_session_sums *sums, uint64_t id)
{
    void *sessions = sums->sessions;
    int error = grow(&sessions, sums->session_count, &sums->session_room, sizeof *sums->sessions);
    sums->sessions = sessions;
    if (error == 0) {
        sums->sessions[sums->session_count++] = (struct live_session){ .id = id, .sums = LIVE_SESSION_NONE };
    }
    return error;
}

void live_session_sums_fini(struct live_session_sums *sums)
{
    free(sums->sessions);
    free(sums->sums);
    free(sums->cells);
    free(sums->index);
    *sums = (struct live_session_sums){ 0 };
}

/* Memory of a log with many sessions is not kept for the next one. */
int live_session_sums_clear(struct live_session_sums *sums)
{
    live_session_sums_fini(sums);
    sums->seed = (uintptr_t)sums;
    int error = session_push(sums, 0);
    if (error == 0) {
        error = session_push(sums, 0);
    }
    return error == 0 ? index_make(sums, 64) : error;
}

uint32_t live_session_find(const struct live_session_sums *sums, uint64_t id)
{
    return *index_cell(sums, id);
}

int live_session_add(struct live_session_sums *sums, uint64_t id, uint32_t *ret_session)
{
    uint32_t *cell = index_cell(sums, id);
    if (*cell == LIVE_SESSION_NONE) {
        int error = session_push(sums, id);
        if (error < 0) {
            return error;
        }
        *cell = sums->session_count - 1;
        *ret_session = *cell;
        return sums->session_count > sums->index_mask / 2 ? index_make(sums, 2 * (sums->index_mask + 1)) : 0;
    }
    *ret_session = *cell;
    return 0;
}

/* ---- Sums ---- */

static struct live_session_sum *sum_find(const struct live_session_sums *sums, uint32_t session, uint8_t kind)
{
    uint32_t at = sums->sessions[session].sums;
    while (at != LIVE_SESSION_NONE && sums->sums[at].kind != kind) {
        at = sums->sums[at].next;
    }
    return at != LIVE_SESSION_NONE ? &sums->sums[at] : NULL;
}

int live_session_sum(struct live_session_sums *sums, uint32_t session, uint8_t kind, struct live_session_sum **ret_sum)
{
    struct live_session_sum *found = sum_find(sums, session, kind);
    if (found == NULL) {
        void *moved = sums->sums;
        int error = grow(&moved, sums->sum_count, &sums->sum_room, sizeof *sums->sums);
        sums->sums = moved;
        if (error < 0) {
            return error;
        }
        found = &sums->sums[sums->sum_count];
        *found =
            (struct live_session_sum){ .cells = LIVE_SESSION_NONE, .next = sums->sessions[session].sums, .kind = kind };
        sums->sessions[session].sums = sums->sum_count++;
    }
    *ret_sum = found;
    return 0;
}

int live_session_cell(struct live_session_sums *sums, uint32_t session, uint8_t kind,
                      const struct live_session_cell *cell)
{
    struct live_session_sum *sum;
    int error = live_session_sum(sums, session, kind, &sum);
    if (error < 0) {
        return error;
    }
    struct live_session_cell *newest = sum->cells != LIVE_SESSION_NONE ? &sums->cells[sum->cells] : NULL;
    if (newest != NULL && newest->settler == cell->settler) {
        if (newest->moves < cell->moves) {
            newest->moves = cell->moves;
            newest->sum = cell->sum;
        }
        return 0;
    }
    void *moved = sums->cells;
    error = grow(&moved, sums->cell_count, &sums->cell_room, sizeof *sums->cells);
    sums->cells = moved;
    if (error < 0) {
        return error;
    }
    sums->cells[sums->cell_count] = *cell;
    sums->cells[sums->cell_count].next = sum->cells;
    sum->cells = sums->cell_count++;
    return 0;
}

const struct live_session_cell *live_session_cell_of(const struct live_session_sums *sums, uint32_t session,
                                                     uint8_t kind, uint32_t settler)
{
    const struct live_session_sum *sum = session != LIVE_SESSION_NONE ? sum_find(sums, session, kind) : NULL;
    uint32_t at = sum != NULL ? sum->cells : LIVE_SESSION_NONE;
    while (at != LIVE_SESSION_NONE && sums->cells[at].settler > settler) {
        at = sums->cells[at].next;
    }
    return at != LIVE_SESSION_NONE && sums->cells[at].settler == settler ? &sums->cells[at] : NULL;
}

struct nt_source_pair live_session_total(const struct live_session_sums *sums, const struct live_session_sum *sum)
{
    struct nt_source_pair total = sum->more;
    for (uint32_t at = sum->cells; at != LIVE_SESSION_NONE; at = sums->cells[at].next) {
        live_pair_add(&total, sums->cells[at].sum.count, sums->cells[at].sum.total);
    }
    return total;
}
