/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the settlers of one log while their threads change sessions, or after these are dead: the moves that wait in
   their buffers and the cells that others are in already. How they are written is in docs/format.md, "Sessions".
   Knows no object. */
#ifndef NT_SOURCE_LIVE_SETTLER_H
#define NT_SOURCE_LIVE_SETTLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "source/live/map.h"
#include "source/live/session_sums.h"

#define LIVE_SETTLERS_MAX 4096u /* as many as a library makes */

enum { LIVE_MOVE_PAGES = NT_LAYOUT_MOVES * sizeof(struct nt_layout_move) / NT_LAYOUT_PAGE };

struct live_move {
    uint64_t number;
    uint64_t session; /* where it goes, not 0 */
    uint64_t from;    /* the object, slot | generation << 32; 0: a shared one; with NT_MOVE_GIVEN: a session */
    struct nt_source_pair sum, after;
    uint32_t settler;
    uint8_t kind;
    uint8_t flags; /* NT_MOVE_… */
    bool late;     /* came after the cells were read, or while they were */
};

struct live_settler {
    const struct nt_layout_settler *shared;              /* NULL: cannot be used */
    const struct nt_layout_move *moves[LIVE_MOVE_PAGES]; /* NULL: a page of zeros that a copy left out */
    uint64_t folded; /* moves with smaller numbers are in the cells that were read */
    uint64_t end;    /* moves with numbers from here on are late */
    uint64_t later;  /* what `folded` was in the end */
    uint64_t given;  /* cells given up when it was first looked at */
    uint32_t early;  /* its moves that are not late: so many, from `early_first` on */
    uint32_t early_first;
    bool gave; /* gave up cells while they were read */
};

struct live_settlers {
    struct live_map *map;
    struct live_session_sums *sums; /* where cells go */
    struct live_settler *all;
    uint32_t count;
    struct live_move *moves;
    uint32_t move_count, move_room;
    uint64_t *claimed; /* a bit a page of the settlement region */
    uint64_t pages;    /* of it */
    bool moving;       /* something changed faster than it could be read */
    bool lost;         /* late moves were overwritten before they were read */
    uint32_t odd;      /* things that cannot be */
    char text[128];    /* the first of them */
    void (*call)(void *arg);
    void *call_arg;
};

/* Takes up the settlers that there are, and copies the moves that wait. 0 or -ENOMEM. */
int live_settlers_begin(struct live_settlers *settlers, struct live_map *map, struct live_session_sums *sums);
/* Reads all cells. 0, -ENOMEM or -E2BIG. */
int live_settlers_cells(struct live_settlers *settlers);
/* Copies the moves that came since, as far as they are still there. 0 or -ENOMEM. */
int live_settlers_late(struct live_settlers *settlers);
void live_settlers_fini(struct live_settlers *settlers);

#endif
