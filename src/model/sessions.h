/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions over all programs: their names, parents and times, what each program counted in them, and sums with all that
   is below them. Built from what a snapshot told and, if wanted, from events; trusts no parent that it is told of.
   Feed it (nt_model_add_given, nt_model_add_session, nt_model_session_event), link it, then read it. */
#ifndef NT_MODEL_SESSIONS_H
#define NT_MODEL_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "model/index.h"
#include "model/objects.h"
#include "source/source.h"

#define NT_MODEL_SESSIONS (1u << 25) /* at most; beyond: -E2BIG */
#define NT_MODEL_OWN_KINDS 1024u     /* names of user-defined kinds, over all programs; beyond: one for the others */
#define NT_MODEL_SESSION_NO 0u       /* index of what was counted in no session */
#define NT_MODEL_SESSION_OLDER 1u    /* index of what sessions had that found no room */
#define NT_MODEL_SESSION_FIRST 2u    /* index of the first session */

/* How far sums can be trusted. */
enum nt_model_bound {
    NT_MODEL_EXACT,
    NT_MODEL_LEAST, /* some of it was given up, or could not be read */
    NT_MODEL_MOST,  /* it has some of others */
    NT_MODEL_ABOUT  /* both */
};

struct nt_model_sum {
    uint32_t kind; /* see nt_model_session_kind: the same for all programs */
    uint64_t count, total;
};

struct nt_model_share { /* what one program counted in one session */
    uint32_t program;   /* index in the model */
    uint32_t next;      /* of the same session */
    bool made;          /* made it, and remembers it */
    bool overdue;       /* in the stead of a later one */
    enum nt_model_bound bound;
    const struct nt_source_sum *sums; /* by the program's kinds */
    size_t sum_count;
};

struct nt_model_session {
    uint64_t id;
    uint64_t parent_id;           /* 0: none known */
    struct nt_bytes name;         /* size 0: none known */
    uint64_t opened_at, ended_at; /* ns since 1970, 0: not known, or has not ended */
    uint64_t first, last;         /* time of what is known of it first and last: events, if they were fed; 0: none */
    uint32_t shares, share_count; /* first of them; in the order of programs once linked */
    bool known;                   /* some program remembers making it */
    bool standing;
    /* once linked: */
    bool adrift;          /* its parent is below it: it stands as a root */
    uint32_t parent;      /* index, NT_MODEL_NONE: a root */
    uint32_t child, next; /* first child, next sibling: in the order of their opening */
    uint32_t place;       /* in the model's order */
    uint32_t root, depth; /* of a root itself, 0 */
    uint32_t below;       /* number of descendants */
    enum nt_model_bound bound, all_bound;
    const struct nt_model_sum *own, *all; /* of itself, and with all below it; by kind */
    size_t own_count, all_count;
};

struct nt_model_own_kind { /* a user-defined kind: programs may have it under different numbers */
    struct nt_bytes name;
};

struct nt_model_sessions {
    struct nt_model_session *sessions;
    uint32_t count, room;
    struct nt_model_share *shares;
    uint32_t share_count, share_room;
    struct nt_model_index index; /* by id */
    size_t index_room;
    struct nt_source_given *given; /* of programs by index; pages are copies */
    uint32_t given_count;
    uint32_t *order; /* each session before what is below it, siblings as they opened; without the two first */
    uint32_t order_count;
    struct nt_bytes *own_kinds; /* names: number 256 and on */
    uint32_t own_kind_count, own_kind_room;
    bool linked;
    struct nt_model_memory *memory;
    struct nt_model_memory *link_memory; /* of sums, which each linking makes anew */
    size_t below_room;                   /* sums with what is below */
};

void nt_model_sessions_fini(struct nt_model_sessions *sessions);

/* 0, -ENOMEM, -E2BIG, or -EINVAL for one of a program that was not told. */
int nt_model_add_given(struct nt_model *model, const struct nt_source_given *given);
int nt_model_add_session(struct nt_model *model, const struct nt_source_session *session);
/* Times, parents and ends that an event tells. In any order. */
int nt_model_session_event(struct nt_model *model, const struct nt_event *event);
/* Makes the tree and the sums; after nt_model_link. */
int nt_model_link_sessions(struct nt_model *model);

/* Index of a session, or NT_MODEL_NONE. */
uint32_t nt_model_session_find(const struct nt_model *model, uint64_t id);
/* Name of a kind of struct nt_model_sum. */
struct nt_bytes nt_model_session_kind(const struct nt_model *model, uint32_t kind);
/* The sum of a kind; all zeros if there is none. */
struct nt_model_sum nt_model_session_sum(const struct nt_model_sum *sums, size_t count, uint32_t kind);

enum nt_model_session_order {
    NT_MODEL_BY_TRAFFIC, /* bytes written and read, most first */
    NT_MODEL_BY_LAST     /* latest first */
};
/* Sorts indexes. `all`: by the sums with what is below. */
void nt_model_sort_sessions(const struct nt_model *model, uint32_t *indexes, size_t count,
                            enum nt_model_session_order by, bool all);

/* What picks sessions: an id of 16 hex digits, a decimal one, or a name with the globs of expressions. 16 decimal
   digits may be meant either way, and pick both. */
struct nt_model_session_pick {
    struct nt_bytes text;
    uint64_t ids[2];
    size_t id_count; /* 0: a name */
};
/* NULL, or what is wrong with the text, in a few static words. */
const char *nt_model_session_pick(struct nt_bytes text, struct nt_model_session_pick *ret_pick);
bool nt_model_session_is_picked(const struct nt_model_session *session, const struct nt_model_session_pick *pick);

#endif
