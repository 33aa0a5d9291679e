/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by session and kind while they are put together: what the cells of several settlers say, of each which moves are
   in it, and what is added to that. Knows no log. */
#ifndef NT_SOURCE_LIVE_SESSION_SUMS_H
#define NT_SOURCE_LIVE_SESSION_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source.h"

#define LIVE_SESSION_SUMS_MAX (UINT32_C(1) << 25) /* sessions, kinds of all of them, cells, each; beyond: -E2BIG */
#define LIVE_SESSION_NONE UINT32_MAX

enum { LIVE_SESSION_NO = 0, LIVE_SESSION_OLDER = 1 }; /* the numbers of no session and of `older` */

struct live_session_cell {
    uint64_t moves; /* how many of its settler's, from the first one, are in it */
    struct nt_source_pair sum;
    uint32_t settler;
    uint32_t next; /* of the same session and kind */
};

struct live_session_sum {
    struct nt_source_pair more; /* than the cells have */
    uint32_t cells;             /* the newest settler's first */
    uint32_t next;              /* of the same session */
    uint8_t kind;
};

struct live_session {
    uint64_t id;
    uint32_t sums;
    bool shaken; /* its sums are at least what is here */
    bool told;
};

struct live_session_sums {
    struct live_session *sessions; /* by number */
    struct live_session_sum *sums;
    struct live_session_cell *cells;
    uint32_t *index; /* numbers of sessions by id */
    uint32_t session_count, session_room, sum_count, sum_room, cell_count, cell_room;
    uint64_t index_mask;
    uint64_t seed;
};

/* No session but the two that have no id. 0 or -ENOMEM. */
int live_session_sums_clear(struct live_session_sums *sums);
void live_session_sums_fini(struct live_session_sums *sums);

/* The number of a session, LIVE_SESSION_NONE: it is not there. */
uint32_t live_session_find(const struct live_session_sums *sums, uint64_t id);
/* The number of a session that is added if need be. 0, -ENOMEM or -E2BIG. */
int live_session_add(struct live_session_sums *sums, uint64_t id, uint32_t *ret_session);
/* The sum of a kind of a session, made if need be; stands until the next is made. */
int live_session_sum(struct live_session_sums *sums, uint32_t session, uint8_t kind, struct live_session_sum **ret_sum);
/* A cell of the settler read last: of two that are the same the one with more moves in it counts. */
int live_session_cell(struct live_session_sums *sums, uint32_t session, uint8_t kind,
                      const struct live_session_cell *cell);
/* The settler's cell of a session and kind, NULL: it has none. */
const struct live_session_cell *live_session_cell_of(const struct live_session_sums *sums, uint32_t session,
                                                     uint8_t kind, uint32_t settler);
/* All of a sum. */
struct nt_source_pair live_session_total(const struct live_session_sums *sums, const struct live_session_sum *sum);

static inline void live_pair_add(struct nt_source_pair *to, uint64_t count, uint64_t total)
{
    to->count += count;
    to->total += total;
}

#endif
