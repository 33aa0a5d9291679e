/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions, see sessions.h. Parents that were told are followed only after circles in them were cut; no step recurses
   and none is quadratic. */
#include "model/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "event/glob.h"
#include "model/kinds.h"
#include "model/memory.h"

#define KINDS 256u
#define SUMS_MOST (UINT32_C(1) << 20)    /* sums with what is below: so many, … */
#define SUMS_SHARE 16u                   /* … and that many a session; beyond, sums are the least they can be */
#define TOP_SHIFT NT_LAYOUT_SESSION_BITS /* the bits above are the same in all descendants */

enum { SESSION_NEW = 1, SESSION_END = 2, SESSION_STANDING = 3 }; /* NT_SESSION_…: values of a session event */

void nt_model_sessions_fini(struct nt_model_sessions *sessions)
{
    if (!sessions)
        return;
    free(sessions->sessions);
    free(sessions->shares);
    free(sessions->given);
    free(sessions->order);
    free(sessions->own_kinds);
    nt_model_index_fini(&sessions->index);
    nt_model_memory_free(sessions->memory);
    nt_model_memory_free(sessions->link_memory);
    *sessions = (struct nt_model_sessions){ 0 };
}

/* Room for one entry more in an array that doubles. */
static int grow(void **entries, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return 0;
    uint32_t more = *room > 0 ? *room * 2 : 64;
    void *moved = realloc(*entries, more * size);
    if (!moved)
        return -ENOMEM;
    *entries = moved;
    *room = more;
    return 0;
}

/* ---- By id ---- */

struct wanted {
    const struct nt_model_sessions *sessions;
    uint64_t id;
};

static bool is_session(const void *arg, uint32_t position)
{
    const struct wanted *wanted = arg;
    return wanted->sessions->sessions[position].id == wanted->id;
}

static uint32_t *index_cell(const struct nt_model_sessions *sessions, uint64_t id)
{
    const struct wanted wanted = { sessions, id };
    return nt_model_index_cell(&sessions->index, nt_model_hash((uintptr_t)sessions, &id, sizeof id), is_session,
                               &wanted);
}

uint32_t nt_model_session_find(const struct nt_model *model, uint64_t id)
{
    const uint32_t *cell = model->sessions && id != 0 ? index_cell(model->sessions, id) : NULL;
    return cell ? *cell : NT_MODEL_NONE;
}

static int index_grow(struct nt_model_sessions *sessions)
{
    struct nt_model_index index;
    size_t room = sessions->index_room > 0 ? 2 * sessions->index_room : 1024;
    int error = nt_model_index_init(&index, room);
    if (error != 0)
        return error;
    nt_model_index_fini(&sessions->index);
    sessions->index = index;
    sessions->index_room = room;
    for (uint32_t i = NT_MODEL_SESSION_FIRST; i < sessions->count; i++)
        *index_cell(sessions, sessions->sessions[i].id) = i;
    return 0;
}

static int session_push(struct nt_model_sessions *sessions, uint64_t id)
{
    if (sessions->count >= NT_MODEL_SESSIONS)
        return -E2BIG;
    void *entries = sessions->sessions;
    int error = grow(&entries, sessions->count, &sessions->room, sizeof *sessions->sessions);
    sessions->sessions = entries;
    if (error == 0)
        sessions->sessions[sessions->count++] = (struct nt_model_session){ .id = id,
                                                                           .name = { "", 0 },
                                                                           .shares = NT_MODEL_NONE,
                                                                           .parent = NT_MODEL_NONE,
                                                                           .child = NT_MODEL_NONE,
                                                                           .next = NT_MODEL_NONE };
    return error;
}

static int session_add(struct nt_model_sessions *sessions, uint64_t id, uint32_t *ret_index)
{
    int error = sessions->count >= sessions->index_room ? index_grow(sessions) : 0;
    if (error != 0)
        return error;
    uint32_t *cell = index_cell(sessions, id);
    if (*cell == NT_MODEL_NONE) {
        error = session_push(sessions, id);
        if (error != 0)
            return error;
        *cell = sessions->count - 1;
    }
    *ret_index = *cell;
    return 0;
}

/* The model's, made if need be. NULL: no memory. */
static struct nt_model_sessions *sessions_of(struct nt_model *model)
{
    if (model->sessions)
        return model->sessions;
    struct nt_model_sessions *sessions = calloc(1, sizeof *sessions);
    if (sessions && (session_push(sessions, 0) != 0 || session_push(sessions, 0) != 0 || index_grow(sessions) != 0)) {
        nt_model_sessions_fini(sessions);
        free(sessions);
        sessions = NULL;
    }
    model->sessions = sessions;
    return sessions;
}

/* ---- Feeding ---- */

/* Room for what is known of each program. */
static int given_room(struct nt_model_sessions *sessions, uint32_t programs)
{
    if (sessions->given_count >= programs)
        return 0;
    struct nt_source_given *given = realloc(sessions->given, programs * sizeof *given);
    if (!given)
        return -ENOMEM;
    memset(given + sessions->given_count, 0, (programs - sessions->given_count) * sizeof *given);
    sessions->given = given;
    sessions->given_count = programs;
    return 0;
}

int nt_model_add_given(struct nt_model *model, const struct nt_source_given *given)
{
    struct nt_model_sessions *sessions = sessions_of(model);
    uint32_t program = nt_model_program_index(model, given->program);
    if (!sessions || given_room(sessions, model->program_count) != 0)
        return -ENOMEM;
    if (program == NT_MODEL_NONE)
        return -EINVAL;
    struct nt_source_given *copy = &sessions->given[program];
    *copy = (struct nt_source_given){ .program = program, .all = given->all };
    bool any = false;
    for (size_t i = 0; i < given->page_count && !any; i++)
        any = given->pages[i] != NULL;
    if (given->all || !any)
        return 0; /* pages that are not there have nothing */
    const uint64_t **pages = nt_model_memory_zero(&sessions->memory, given->page_count * sizeof *pages);
    if (!pages)
        return -ENOMEM;
    for (size_t i = 0; i < given->page_count; i++) {
        if (!given->pages[i])
            continue;
        pages[i] = nt_model_memory_copy(&sessions->memory, given->pages[i], NT_LAYOUT_PAGE);
        if (!pages[i])
            return -ENOMEM;
    }
    copy->pages = pages;
    copy->page_count = given->page_count;
    return 0;
}

static enum nt_model_bound bound_of(bool given, bool got)
{
    return given ? got ? NT_MODEL_ABOUT : NT_MODEL_LEAST : got ? NT_MODEL_MOST : NT_MODEL_EXACT;
}

static enum nt_model_bound bound_with(enum nt_model_bound a, enum nt_model_bound b)
{
    return a == NT_MODEL_EXACT ? b : b == NT_MODEL_EXACT || a == b ? a : NT_MODEL_ABOUT;
}

static int share_add(struct nt_model_sessions *sessions, uint32_t index, uint32_t program,
                     const struct nt_source_session *told)
{
    struct nt_model_share share = { .program = program,
                                    .next = sessions->sessions[index].shares,
                                    .made = told->known,
                                    .overdue = told->overdue,
                                    .bound = bound_of(told->given, told->got),
                                    .sum_count = told->sum_count };
    share.sums = nt_model_memory_copy(&sessions->memory, told->sums, told->sum_count * sizeof *told->sums);
    if (!share.sums)
        return -ENOMEM;
    void *shares = sessions->shares;
    int error = grow(&shares, sessions->share_count, &sessions->share_room, sizeof share);
    sessions->shares = shares;
    if (error != 0)
        return error;
    sessions->sessions[index].shares = sessions->share_count;
    sessions->sessions[index].share_count++;
    sessions->shares[sessions->share_count++] = share;
    return 0;
}

/* At first: the earliest of two times, 0 being none. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void seen(struct nt_model_session *session, uint64_t time)
{
    session->first = earlier(session->first, time);
    session->last = later(session->last, time);
}

static int session_describe(struct nt_model_sessions *sessions, struct nt_model_session *session,
                            const struct nt_source_session *told)
{
    session->standing = session->standing || told->standing;
    session->opened_at = earlier(session->opened_at, told->opened_at);
    session->ended_at = later(session->ended_at, told->ended_at);
    seen(session, told->opened_at);
    seen(session, told->ended_at);
    if (session->known)
        return 0;
    session->known = true;
    session->parent_id = told->parent;
    const char *name = nt_model_memory_copy(&sessions->memory, told->name.data, told->name.size);
    session->name = (struct nt_bytes){ name, told->name.size };
    return name ? 0 : -ENOMEM;
}

int nt_model_add_session(struct nt_model *model, const struct nt_source_session *told)
{
    struct nt_model_sessions *sessions = sessions_of(model);
    uint32_t program = nt_model_program_index(model, told->program);
    uint32_t index = told->older ? NT_MODEL_SESSION_OLDER : NT_MODEL_SESSION_NO;
    if (!sessions)
        return -ENOMEM;
    if (program == NT_MODEL_NONE)
        return -EINVAL;
    int error = told->id != 0 ? session_add(sessions, told->id, &index) : 0;
    if (error == 0 && told->known)
        error = session_describe(sessions, &sessions->sessions[index], told);
    return error == 0 ? share_add(sessions, index, program, told) : error;
}

int nt_model_session_event(struct nt_model *model, const struct nt_event *event)
{
    struct nt_model_sessions *sessions = event->session != 0 ? sessions_of(model) : NULL;
    uint32_t index;
    if (event->session == 0)
        return 0;
    int error = sessions ? session_add(sessions, event->session, &index) : -ENOMEM;
    if (error != 0)
        return error;
    struct nt_model_session *session = &sessions->sessions[index];
    seen(session, event->time);
    if (event->kind != NT_MODEL_KIND_SESSION)
        return 0;
    if (event->value == SESSION_NEW) {
        session->parent_id = session->known ? session->parent_id : event->argument;
        session->opened_at = earlier(session->opened_at, event->time);
    }
    session->standing = session->standing || event->value == SESSION_STANDING;
    if (event->value == SESSION_END)
        session->ended_at = later(session->ended_at, event->time);
    return 0;
}

/* ---- Linking: the tree ---- */

/* Parents that nobody told of are sessions without sums. */
static int find_parents(struct nt_model_sessions *sessions)
{
    for (uint32_t i = NT_MODEL_SESSION_FIRST; i < sessions->count; i++) { /* there may come to be more */
        uint32_t parent = NT_MODEL_NONE;
        uint64_t id = sessions->sessions[i].parent_id;
        int error = id != 0 && id != sessions->sessions[i].id ? session_add(sessions, id, &parent) : 0;
        if (error != 0)
            return error;
        sessions->sessions[i].parent = parent;
        sessions->sessions[i].adrift = id != 0 && parent == NT_MODEL_NONE;
        sessions->sessions[i].depth = 0;
    }
    return 0;
}

/* `depth` is scratch: 0 not seen, then the number of the walk that saw it. */
static void cut_circles(struct nt_model_sessions *sessions)
{
    struct nt_model_session *all = sessions->sessions;
    for (uint32_t i = NT_MODEL_SESSION_FIRST; i < sessions->count; i++) {
        for (uint32_t at = i; at != NT_MODEL_NONE && all[at].depth == 0; at = all[at].parent) {
            all[at].depth = i;
            if (all[at].parent != NT_MODEL_NONE && all[all[at].parent].depth == i) {
                all[at].parent = NT_MODEL_NONE;
                all[at].adrift = true;
            }
        }
    }
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_opened(const void *left, const void *right, void *arg)
{
    const struct nt_model_session *all = arg;
    const struct nt_model_session *a = &all[*(const uint32_t *)left], *b = &all[*(const uint32_t *)right];
    int order = compare_u64(a->first, b->first);
    return order != 0 ? order : compare_u64(a->id, b->id);
}

/* Lists of children, each in the order of `sorted`; returns the list of roots. */
static uint32_t list_children(struct nt_model_sessions *sessions, const uint32_t *sorted, uint32_t count)
{
    struct nt_model_session *all = sessions->sessions;
    uint32_t roots = NT_MODEL_NONE;
    for (uint32_t i = count; i > 0; i--) {
        struct nt_model_session *session = &all[sorted[i - 1]];
        uint32_t *list = session->parent != NT_MODEL_NONE ? &all[session->parent].child : &roots;
        session->next = *list;
        *list = sorted[i - 1];
    }
    return roots;
}

/* Each before what is below it. */
static void order_tree(struct nt_model_sessions *sessions, uint32_t roots)
{
    struct nt_model_session *all = sessions->sessions;
    uint32_t at = roots, depth = 0;
    sessions->order_count = 0;
    while (at != NT_MODEL_NONE) {
        struct nt_model_session *session = &all[at];
        session->depth = depth;
        session->root = session->parent != NT_MODEL_NONE ? all[session->parent].root : at;
        session->below = 0;
        session->place = sessions->order_count;
        sessions->order[sessions->order_count++] = at;
        if (session->child != NT_MODEL_NONE) {
            at = session->child;
            depth++;
            continue;
        }
        while (at != NT_MODEL_NONE && all[at].next == NT_MODEL_NONE) {
            at = all[at].parent;
            depth -= at != NT_MODEL_NONE;
        }
        at = at != NT_MODEL_NONE ? all[at].next : NT_MODEL_NONE;
    }
}

static int make_tree(struct nt_model_sessions *sessions)
{
    uint32_t count = sessions->count - NT_MODEL_SESSION_FIRST;
    uint32_t *sorted = malloc((count + 1) * sizeof *sorted);
    free(sessions->order);
    sessions->order = malloc((count + 1) * sizeof *sessions->order);
    if (!sorted || !sessions->order) {
        free(sorted);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = NT_MODEL_SESSION_FIRST + i;
        sessions->sessions[sorted[i]].child = sessions->sessions[sorted[i]].next = NT_MODEL_NONE;
    }
    qsort_r(sorted, count, sizeof *sorted, compare_opened, sessions->sessions);
    order_tree(sessions, list_children(sessions, sorted, count));
    free(sorted);
    return 0;
}

/* ---- Linking: kinds ---- */

struct kinds { /* numbers for all programs, of those of each */
    const struct nt_model *model;
    struct nt_model_sessions *sessions;
    uint32_t **of; /* by program: of user-defined kinds; NULL: not needed so far */
    bool lacking;  /* some program had no room for counts */
};

static uint32_t own_kind_find(const struct nt_model_sessions *sessions, struct nt_bytes name)
{
    uint32_t at = 0;
    while (at < sessions->own_kind_count && (sessions->own_kinds[at].size != name.size ||
                                             memcmp(sessions->own_kinds[at].data, name.data, name.size) != 0))
        at++;
    return at;
}

/* Beyond so many all that come are one. */
static int own_kind_add(struct nt_model_sessions *sessions, struct nt_bytes name, uint32_t *ret_kind)
{
    static const struct nt_bytes others = { "(others)", sizeof "(others)" - 1 };
    uint32_t at = own_kind_find(sessions, name);
    if (at == sessions->own_kind_count && at >= NT_MODEL_OWN_KINDS - 1) {
        name = others;
        at = own_kind_find(sessions, name);
    }
    if (at == sessions->own_kind_count) {
        void *kinds = sessions->own_kinds;
        int error = grow(&kinds, at, &sessions->own_kind_room, sizeof *sessions->own_kinds);
        sessions->own_kinds = kinds;
        const char *copy = error == 0 ? nt_model_memory_copy(&sessions->memory, name.data, name.size) : NULL;
        if (!copy)
            return -ENOMEM;
        sessions->own_kinds[sessions->own_kind_count++] = (struct nt_bytes){ copy, name.size };
    }
    *ret_kind = KINDS + at;
    return 0;
}

static int kind_of(struct kinds *kinds, uint32_t program, unsigned kind, uint32_t *ret_kind)
{
    char room[NT_MODEL_KIND_ROOM];
    if (nt_model_kind_name(kind)) {
        *ret_kind = kind;
        return 0;
    }
    if (!kinds->of[program])
        kinds->of[program] = nt_model_memory_zero(&kinds->sessions->link_memory, KINDS * sizeof **kinds->of);
    if (!kinds->of[program])
        return -ENOMEM;
    uint32_t *known = &kinds->of[program][kind % KINDS];
    if (*known == 0) {
        struct nt_bytes name = nt_model_kind(&kinds->model->programs[program], kind, room);
        int error = own_kind_add(kinds->sessions, name, known);
        if (error != 0)
            return error;
    }
    *ret_kind = *known;
    return 0;
}

struct nt_bytes nt_model_session_kind(const struct nt_model *model, uint32_t kind)
{
    const char *name = nt_model_kind_name(kind);
    if (name)
        return (struct nt_bytes){ name, strlen(name) };
    const struct nt_model_sessions *sessions = model->sessions;
    if (sessions && kind >= KINDS && kind - KINDS < sessions->own_kind_count)
        return sessions->own_kinds[kind - KINDS];
    return (struct nt_bytes){ "", 0 };
}

/* ---- Linking: sums ---- */

struct sums { /* by kind */
    struct nt_model_sum *sums;
    size_t count, room;
};

/* A family of a few hundred kinds in a long line of sessions would otherwise take the product of both. */
static bool sums_take(struct nt_model_sessions *sessions, size_t room)
{
    size_t most = SUMS_MOST + (size_t)SUMS_SHARE * sessions->count;
    if (room > most - sessions->below_room)
        return false;
    sessions->below_room += room;
    return true;
}

/* `below`: of more than one session, for which there is not always room: -E2BIG. */
static int sums_add(struct nt_model_sessions *sessions, struct sums *to, const struct nt_model_sum *sum, bool below)
{
    size_t at = to->count;
    while (at > 0 && to->sums[at - 1].kind >= sum->kind)
        at--;
    if (at < to->count && to->sums[at].kind == sum->kind) {
        to->sums[at].count += sum->count;
        to->sums[at].total += sum->total;
        return 0;
    }
    if (to->count == to->room) {
        size_t room = to->room > 0 ? 2 * to->room : 2;
        if (below && !sums_take(sessions, room))
            return -E2BIG;
        struct nt_model_sum *more = nt_model_memory_zero(&sessions->link_memory, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        if (to->count > 0)
            memcpy(more, to->sums, to->count * sizeof *more);
        to->sums = more;
        to->room = room;
    }
    memmove(&to->sums[at + 1], &to->sums[at], (to->count - at) * sizeof *to->sums);
    to->sums[at] = *sum;
    to->count++;
    return 0;
}

/* Shares in the order of programs: they came so, and were put in front of each other. */
static void shares_turn(struct nt_model_sessions *sessions, struct nt_model_session *session)
{
    uint32_t turned = NT_MODEL_NONE;
    for (uint32_t at = session->shares; at != NT_MODEL_NONE;) {
        uint32_t next = sessions->shares[at].next;
        sessions->shares[at].next = turned;
        turned = at;
        at = next;
    }
    session->shares = turned;
}

/* Counts that found no room may have been of any session. */
static bool lacks_counts(const struct nt_model *model, uint32_t program)
{
    return model->programs[program].told.refused_tallies > 0;
}

static bool any_lacks_counts(const struct nt_model *model)
{
    for (uint32_t i = 0; i < model->program_count; i++) {
        if (lacks_counts(model, i))
            return true;
    }
    return false;
}

static int own_sums(struct kinds *kinds, struct nt_model_session *session)
{
    struct nt_model_sessions *sessions = kinds->sessions;
    struct sums own = { 0 };
    session->bound = kinds->lacking ? NT_MODEL_LEAST : NT_MODEL_EXACT;
    for (uint32_t at = session->shares; at != NT_MODEL_NONE; at = sessions->shares[at].next) {
        struct nt_model_share *share = &sessions->shares[at];
        if (lacks_counts(kinds->model, share->program))
            share->bound = bound_with(share->bound, NT_MODEL_LEAST);
        session->bound = bound_with(session->bound, share->bound);
        for (size_t i = 0; i < share->sum_count; i++) {
            struct nt_model_sum sum = { .count = share->sums[i].count, .total = share->sums[i].total };
            int error = kind_of(kinds, share->program, share->sums[i].kind, &sum.kind);
            if (error == 0)
                error = sums_add(sessions, &own, &sum, false);
            if (error != 0)
                return error;
        }
    }
    session->own = own.sums;
    session->own_count = own.count;
    return 0;
}

/* What programs that tell nothing of the session may have had in it. One that events or children alone tell of may have
   been counted in after the snapshot, or in a log that is gone. */
static void bounds_of_others(struct nt_model_sessions *sessions, struct nt_model_session *session)
{
    if (session->share_count == 0)
        session->bound = NT_MODEL_LEAST;
    for (uint32_t i = 0; i < sessions->given_count; i++) {
        const struct nt_source_given *given = &sessions->given[i];
        uint32_t at = session->shares;
        if (!given->all && given->page_count == 0)
            continue;
        while (at != NT_MODEL_NONE && sessions->shares[at].program != i)
            at = sessions->shares[at].next;
        if (at == NT_MODEL_NONE && nt_source_given_has(given, session->id, false))
            session->bound = bound_with(session->bound, NT_MODEL_LEAST);
    }
}

static int make_own(struct nt_model *model)
{
    struct nt_model_sessions *sessions = model->sessions;
    struct kinds kinds = { .model = model,
                           .sessions = sessions,
                           .of = calloc((size_t)model->program_count + 1, sizeof *kinds.of),
                           .lacking = any_lacks_counts(model) };
    int error = kinds.of ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < sessions->count && error == 0; i++) {
        if (!sessions->linked)
            shares_turn(sessions, &sessions->sessions[i]);
        error = own_sums(&kinds, &sessions->sessions[i]);
        if (i >= NT_MODEL_SESSION_FIRST)
            bounds_of_others(sessions, &sessions->sessions[i]);
    }
    free(kinds.of);
    sessions->linked = true;
    return error;
}

static int sums_add_all(struct nt_model_sessions *sessions, struct sums *to, const struct nt_model_sum *sums,
                        size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++)
        error = sums_add(sessions, to, &sums[i], true);
    return error;
}

/* Whose sums are all that there are of the parent's too; or NULL. */
static const struct nt_model_session *only_child_of(const struct nt_model_sessions *sessions,
                                                    const struct nt_model_session *parent)
{
    const struct nt_model_session *child = parent->child != NT_MODEL_NONE ? &sessions->sessions[parent->child] : NULL;
    return child && child->next == NT_MODEL_NONE && parent->own_count == 0 ? child : NULL;
}

/* With what is below it, of which all is in `below` already. What a session got of others it got of those. */
static int session_sum_up(struct nt_model_sessions *sessions, struct nt_model_session *session, struct sums *below)
{
    session->all = session->own;
    session->all_count = session->own_count;
    if (session->bound == NT_MODEL_LEAST || session->bound == NT_MODEL_ABOUT)
        session->all_bound = NT_MODEL_LEAST;
    if (session->child == NT_MODEL_NONE)
        return 0;
    const struct nt_model_session *only = only_child_of(sessions, session);
    if (only) {
        session->all = only->all;
        session->all_count = only->all_count;
        return 0;
    }
    int error = sums_add_all(sessions, below, session->own, session->own_count);
    if (error == -E2BIG) { /* its own alone are not too many */
        session->all_bound = NT_MODEL_LEAST;
        return 0;
    }
    session->all = below->sums;
    session->all_count = below->count;
    return error;
}

/* Adds what a child has, with all below it, to what is below its parent. */
static int parent_add(struct nt_model_sessions *sessions, const struct nt_model_session *session, struct sums *below)
{
    struct nt_model_session *parent = &sessions->sessions[session->parent];
    parent->below += 1 + session->below;
    if (session->all_bound != NT_MODEL_EXACT)
        parent->all_bound = NT_MODEL_LEAST;
    if (only_child_of(sessions, parent))
        return 0;
    int error = sums_add_all(sessions, below, session->all, session->all_count);
    if (error == -E2BIG)
        parent->all_bound = NT_MODEL_LEAST;
    return error == -E2BIG ? 0 : error;
}

/* From the leaves up. */
static int make_all(struct nt_model_sessions *sessions)
{
    struct sums *sums = calloc((size_t)sessions->count + 1, sizeof *sums);
    int error = sums ? 0 : -ENOMEM;
    for (uint32_t i = sessions->order_count; i > 0 && error == 0; i--) {
        uint32_t at = sessions->order[i - 1];
        struct nt_model_session *session = &sessions->sessions[at];
        error = session_sum_up(sessions, session, &sums[at]);
        if (error == 0 && session->parent != NT_MODEL_NONE)
            error = parent_add(sessions, session, &sums[session->parent]);
    }
    free(sums);
    return error;
}

/* ---- Linking: descendants that nobody remembers ---- */

static bool is_forgotten(const struct nt_model_session *session)
{
    return !session->known && session->parent_id == 0;
}

enum {
    FORGETS = 1, /* sessions that it made: there are later ones, or there was no room */
    LACKS = 2,   /* also later ones than some that it remembers */
    GAVE = 4     /* up sums of sessions that it does not remember: those may be of no session that is told */
};

static uint8_t *find_forgetful(const struct nt_model *model)
{
    const struct nt_model_sessions *sessions = model->sessions;
    uint8_t *flags = calloc((size_t)model->program_count + 1, sizeof *flags);
    uint32_t *made = calloc((size_t)model->program_count + 1, sizeof *made);
    for (uint32_t i = 0; made && i < sessions->share_count; i++)
        made[sessions->shares[i].program] += sessions->shares[i].made && !sessions->shares[i].overdue;
    for (uint32_t i = 0; flags && made && i < model->program_count; i++) {
        const struct nt_source_program *told = &model->programs[i].told;
        const struct nt_source_given *given = i < sessions->given_count ? &sessions->given[i] : NULL;
        if (made[i] < told->remembers)
            flags[i] = FORGETS | LACKS;
        else if (told->forgets)
            flags[i] = FORGETS;
        if (flags[i] != 0 && given && (given->all || given->page_count > 0))
            flags[i] |= GAVE;
    }
    if (!made) {
        free(flags);
        flags = NULL;
    }
    free(made);
    return flags;
}

struct forgetful { /* how many programs do, and how many of those gave up */
    uint32_t all, gave;
};

/* But for the one that made this one and remembers it: that remembers also all that it made later, unless it lacks
   some. */
static struct forgetful forgetful_of(const struct nt_model *model, const uint8_t *flags,
                                     const struct nt_model_session *session, struct forgetful all)
{
    for (uint32_t at = session->shares; at != NT_MODEL_NONE; at = model->sessions->shares[at].next) {
        const struct nt_model_share *share = &model->sessions->shares[at];
        uint8_t its = flags[share->program];
        if (share->made && (its & LACKS) == 0) {
            all.all -= (its & FORGETS) != 0;
            all.gave -= (its & GAVE) != 0;
        }
    }
    return all;
}

/* Sums with what is below are the least they can be where a session may have descendants that nobody remembers: with
   the same upper bits, and of a program that forgot some; or with sums that it gave up. */
static int find_forgotten(const struct nt_model *model)
{
    struct nt_model_sessions *sessions = model->sessions;
    struct forgetful programs = { 0 };
    uint8_t *flags = find_forgetful(model);
    uint32_t *forgotten = calloc(UINT32_C(1) << (64 - TOP_SHIFT), sizeof *forgotten);
    for (uint32_t i = 0; flags && i < model->program_count; i++) {
        programs.all += (flags[i] & FORGETS) != 0;
        programs.gave += (flags[i] & GAVE) != 0;
    }
    for (uint32_t i = NT_MODEL_SESSION_FIRST; forgotten && i < sessions->count; i++)
        forgotten[sessions->sessions[i].id >> TOP_SHIFT] += is_forgotten(&sessions->sessions[i]);
    for (uint32_t i = NT_MODEL_SESSION_FIRST; forgotten && flags && i < sessions->count; i++) {
        struct nt_model_session *session = &sessions->sessions[i];
        bool any = forgotten[session->id >> TOP_SHIFT] > is_forgotten(session);
        struct forgetful others = forgetful_of(model, flags, session, programs);
        session->all_bound = (any && others.all > 0) || others.gave > 0 ? NT_MODEL_LEAST : NT_MODEL_EXACT;
    }
    int error = flags && forgotten ? 0 : -ENOMEM;
    free(forgotten);
    free(flags);
    return error;
}

int nt_model_link_sessions(struct nt_model *model)
{
    struct nt_model_sessions *sessions = sessions_of(model);
    int error = sessions ? find_parents(sessions) : -ENOMEM;
    if (error != 0)
        return error;
    nt_model_memory_free(sessions->link_memory); /* what it was linked to before */
    sessions->link_memory = NULL;
    sessions->below_room = 0;
    cut_circles(sessions);
    error = make_tree(sessions);
    if (error == 0)
        error = make_own(model);
    if (error == 0)
        error = find_forgotten(model);
    return error == 0 ? make_all(sessions) : error;
}

/* ---- Reading ---- */

struct nt_model_sum nt_model_session_sum(const struct nt_model_sum *sums, size_t count, uint32_t kind)
{
    for (size_t i = 0; i < count; i++) {
        if (sums[i].kind == kind)
            return sums[i];
    }
    return (struct nt_model_sum){ .kind = kind };
}

struct sorting {
    const struct nt_model_session *sessions;
    enum nt_model_session_order by;
    bool all;
};

static uint64_t traffic(const struct nt_model_session *session, bool all)
{
    const struct nt_model_sum *sums = all ? session->all : session->own;
    size_t count = all ? session->all_count : session->own_count;
    uint64_t written = nt_model_session_sum(sums, count, NT_MODEL_KIND_WRITE).total;
    uint64_t read = nt_model_session_sum(sums, count, NT_MODEL_KIND_READ).total;
    return written + read < written ? UINT64_MAX : written + read;
}

static uint64_t messages(const struct nt_model_session *session, bool all)
{
    const struct nt_model_sum *sums = all ? session->all : session->own;
    size_t count = all ? session->all_count : session->own_count;
    return nt_model_session_sum(sums, count, NT_MODEL_KIND_WRITE).count +
           nt_model_session_sum(sums, count, NT_MODEL_KIND_READ).count;
}

static int compare_sessions(const void *left, const void *right, void *arg)
{
    const struct sorting *sorting = arg;
    const struct nt_model_session *a = &sorting->sessions[*(const uint32_t *)left];
    const struct nt_model_session *b = &sorting->sessions[*(const uint32_t *)right];
    int order = sorting->by == NT_MODEL_BY_LAST ? compare_u64(b->last, a->last)
                                                : compare_u64(traffic(b, sorting->all), traffic(a, sorting->all));
    if (order == 0)
        order = compare_u64(messages(b, sorting->all), messages(a, sorting->all));
    return order != 0 ? order : compare_u64(a->id, b->id);
}

void nt_model_sort_sessions(const struct nt_model *model, uint32_t *indexes, size_t count,
                            enum nt_model_session_order by, bool all)
{
    struct sorting sorting = { model->sessions->sessions, by, all };
    if (count > 0)
        qsort_r(indexes, count, sizeof *indexes, compare_sessions, &sorting);
}

/* 16 hex digits. */
static bool parse_id(struct nt_bytes text, uint64_t *ret_id)
{
    uint64_t id = 0;
    if (text.size != 16)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int digit = nt_parse_hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        id = id << 4 | (uint64_t)digit;
    }
    *ret_id = id;
    return true;
}

const char *nt_model_session_pick(struct nt_bytes text, struct nt_model_session_pick *ret_pick)
{
    struct nt_model_session_pick pick = { .text = text };
    if (text.size == 0)
        return "is empty";
    pick.id_count += parse_id(text, &pick.ids[pick.id_count]);
    pick.id_count += nt_parse_u64(text.data, text.size, &pick.ids[pick.id_count]) == 0;
    const char *wrong = pick.id_count > 0 ? NULL : nt_glob_check(text);
    if (!wrong)
        *ret_pick = pick;
    return wrong;
}

bool nt_model_session_is_picked(const struct nt_model_session *session, const struct nt_model_session_pick *pick)
{
    for (size_t i = 0; i < pick->id_count; i++) {
        if (session->id == pick->ids[i])
            return true;
    }
    if (session->name.size == pick->text.size && memcmp(session->name.data, pick->text.data, pick->text.size) == 0)
        return pick->text.size > 0;
    return pick->id_count == 0 && session->name.size > 0 && nt_glob_match(pick->text, session->name);
}
