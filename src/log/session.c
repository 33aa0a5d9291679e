/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: made, ended, said to stand; set on objects, and joined with the message that brought them. */
#include <errno.h>
#include <string.h>

#include "log/log.h"

#define LOW_BITS NT_LAYOUT_SESSION_BITS
#define LOW_MASK ((UINT64_C(1) << LOW_BITS) - 1)
#define WRITTEN 128u /* flag of an entry, of no use to a reader: a session is being put there */
#define STEP UINT64_C(65536)
#define STEP_FIRST UINT64_C(4096)

/* ---- the table of sessions ---- */

static struct nt_layout_session *entry_at(const struct log_map *map, uint64_t number)
{
    return &map->sessions[number % map->session_max];
}

static bool entry_back(struct log_map *map, struct nt_layout_session *entry)
{
    if (log_is_backed(map, entry, sizeof(*entry)))
        return true;
    uint64_t at = (uint64_t)(entry - map->sessions) * sizeof(*entry) / NT_LAYOUT_PAGE * NT_LAYOUT_PAGE;
    uint64_t step = at < STEP ? STEP_FIRST : STEP, size = (uint64_t)map->session_max * sizeof(*entry);
    if (step > size - at)
        step = size - at;
    return log_back(map, (unsigned char *)map->sessions + at, step) || log_back(map, entry, sizeof(*entry));
}

struct nt_layout_session *log_session_find(const struct log_map *map, uint64_t session)
{
    uint64_t number = (session - map->header->session_first) & LOW_MASK;
    if (number >= __atomic_load_n(&map->live->sessions, __ATOMIC_RELAXED))
        return NULL;
    /* until another one is put there, however many have been made since: readers look at its flags then */
    struct nt_layout_session *entry = entry_at(map, number);
    return log_is_backed(map, entry, sizeof(*entry)) && __atomic_load_n(&entry->id, __ATOMIC_ACQUIRE) == session ? entry
                                                                                                                 : NULL;
}

uint64_t log_session_parent(const struct log_map *map, uint64_t session)
{
    const struct nt_layout_session *entry = log_session_find(map, session);
    uint64_t parent = entry ? __atomic_load_n(&entry->parent, __ATOMIC_RELAXED) : 0;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* partner: entry_fill, which takes the id away before the parent */
    return entry && __atomic_load_n(&entry->id, __ATOMIC_RELAXED) == session ? parent : 0;
}

/* Three bits for each id; readers do the same. */
static void flag_note(struct log_map *map, uint64_t session, uint8_t flag)
{
    uint64_t hash = nt_layout_hash_(session, flag == NT_SESSION_GOT);
    for (int i = 0; i < NT_LAYOUT_GIVEN_BITS; i++) {
        uint64_t bit = nt_layout_given_(hash, i, map->given_max);
        uint64_t *word = &map->given[bit / 64];
        if (log_is_backed(map, word, sizeof(*word)) || log_back(map, word, sizeof(*word)))
            __atomic_fetch_or(word, UINT64_C(1) << bit % 64, __ATOMIC_RELAXED);
        else
            __atomic_store_n(&map->live->given_unknown, 1, __ATOMIC_RELAXED);
    }
}

static void flags_note(struct log_map *map, uint64_t session, uint8_t flags)
{
    if (flags & NT_SESSION_FOLDED)
        flag_note(map, session, NT_SESSION_FOLDED);
    if (flags & NT_SESSION_GOT)
        flag_note(map, session, NT_SESSION_GOT);
}

static void session_flag(struct log_map *map, uint64_t session, uint8_t flag)
{
    struct nt_layout_session *entry = log_session_find(map, session);
    if (entry) {
        __atomic_fetch_or(&entry->flags, flag, __ATOMIC_SEQ_CST);
        /* partner: entry_take, which takes the id away before it looks at the flags */
        if (__atomic_load_n(&entry->id, __ATOMIC_SEQ_CST) == session)
            return;
    }
    flag_note(map, session, flag);
}

void log_session_given(struct log_map *map, uint64_t session)
{
    session_flag(map, session, NT_SESSION_FOLDED);
}

void log_session_got(struct log_map *map, uint64_t session)
{
    session_flag(map, session, NT_SESSION_GOT);
}

/* The place becomes that of session `number`, unless somebody is at it or a later one has it: then nobody remembers
   this one. That the old one's sums are the least or the most they can be is not forgotten with it. */
static bool entry_take(struct log_map *map, struct nt_layout_session *entry, uint64_t number)
{
    uint8_t flags = __atomic_fetch_or(&entry->flags, WRITTEN, __ATOMIC_SEQ_CST);
    if (flags & WRITTEN)
        return false;
    uint64_t id = __atomic_load_n(&entry->id, __ATOMIC_SEQ_CST);
    if (id && ((id - map->header->session_first) & LOW_MASK) > number) {
        __atomic_fetch_and(&entry->flags, (uint8_t)~WRITTEN, __ATOMIC_SEQ_CST);
        return false;
    }
    flags_note(map, id, flags); /* before they are gone: the program may end at any moment */
    __atomic_store_n(&entry->id, 0, __ATOMIC_SEQ_CST);
    flags_note(map, id, __atomic_exchange_n(&entry->flags, WRITTEN, __ATOMIC_SEQ_CST));
    return true;
}

/* Like a random number, from the log's id and the session's number (splitmix64: S. Vigna, public domain). */
static uint64_t mix(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t log_session_first(uint64_t id)
{
    return mix(id) & LOW_MASK;
}

static void entry_fill(struct nt_log *log, uint64_t number, uint64_t id, const char *name, nt_session parent)
{
    struct nt_layout_session *entry = entry_at(&log->map, number);
    if (!entry_back(&log->map, entry) || !entry_take(&log->map, entry, number))
        return;
    size_t size = name ? strnlen(name, sizeof(entry->name)) : 0;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&entry->parent, parent, __ATOMIC_RELAXED); /* who looks the old one up may be at it, or */
    entry->opened = nt_now();
    __atomic_store_n(&entry->ended, 0, __ATOMIC_RELAXED); /* who ends it */
    entry->name_size = (uint8_t)size;
    memcpy(entry->name, name ? name : "", size);
    __atomic_store_n(&entry->id, id, __ATOMIC_RELEASE);
    __atomic_fetch_and(&entry->flags, (uint8_t)~WRITTEN, __ATOMIC_RELEASE);
}

/* What happened to a session is an event of the program's object. It is about the session and not counted in it. */
static void session_event(struct nt_log *log, nt_session session, uint64_t what, uint64_t argument)
{
    const struct log_count count = {
        .object = nt_log_object(log),
        .kind = NT_SESSION,
        .value = what,
        .argument = argument,
        .about = true,
        .session = session,
    };
    log_count(&count);
}

nt_session nt_session_new(nt_log *log, const char *name, nt_session parent)
{
    if (!log || !log->used || !log_thread_enter(log))
        return 0;
    struct nt_layout_live *live = log->map.live;
    uint64_t id = 0, number = 0;
    while (!id) {
        number = __atomic_fetch_add(&live->sessions, 1, __ATOMIC_RELAXED);
        uint64_t low = (log->map.header->session_first + number) & LOW_MASK;
        id = low | (parent ? parent & ~LOW_MASK : mix(log->map.header->id + number) << LOW_BITS);
    }
    entry_fill(log, number, id, name, parent);
    session_event(log, id, NT_SESSION_NEW, parent);
    return id;
}

/* A later session may take the place at any moment. It has not ended with the one before it, and if it ends meanwhile
   that stands. */
static void entry_end(struct nt_layout_session *entry, nt_session session)
{
    uint64_t now = nt_now(), before = __atomic_load_n(&entry->ended, __ATOMIC_SEQ_CST);
    do {
        if (__atomic_load_n(&entry->id, __ATOMIC_SEQ_CST) != session)
            return;
    } while (!__atomic_compare_exchange_n(&entry->ended, &before, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    if (__atomic_load_n(&entry->id, __ATOMIC_SEQ_CST) != session)
        (void)__atomic_compare_exchange_n(&entry->ended, &now, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void nt_session_end(nt_log *log, nt_session session)
{
    if (!log || !session || !log->used || !log_thread_enter(log))
        return;
    struct nt_layout_session *entry = log_session_find(&log->map, session);
    if (entry)
        entry_end(entry, session);
    session_event(log, session, NT_SESSION_END, 0);
}

void nt_session_stand(nt_log *log, nt_session session)
{
    if (!log || !session || !log->used || !log_thread_enter(log))
        return;
    struct nt_layout_session *entry = log_session_find(&log->map, session);
    if (entry)
        __atomic_fetch_or(&entry->flags, NT_SESSION_STANDS, __ATOMIC_RELAXED);
    session_event(log, session, NT_SESSION_STANDING, 0);
}

/* ---- on objects ---- */

static struct nt_layout_object *object_use(nt_object object, struct nt_log **ret_log, struct nt_thread_log_ **ret_part)
{
    struct nt_log *log = log_of(object);
    struct nt_thread_log_ *part = log ? log_thread_enter(log) : NULL;
    *ret_log = log;
    *ret_part = part;
    return part ? log_object_enter(log, object) : NULL;
}

void nt_session_set_slow_(nt_object object, nt_session session)
{
    struct nt_log *log;
    struct nt_thread_log_ *part;
    struct nt_layout_object *entry = object_use(object, &log, &part);
    if (!entry || entry->discipline == NT_SHARED || entry->session == session)
        return;
    log_settle(log, part, entry, object, NULL);
    __atomic_store_n(&entry->session, session, __ATOMIC_RELAXED);
}

nt_session nt_object_session(nt_object object)
{
    struct nt_log *log;
    struct nt_thread_log_ *part;
    const struct nt_layout_object *entry = object_use(object, &log, &part);
    return entry ? __atomic_load_n(&entry->session, __ATOMIC_RELAXED) : 0;
}

void nt_object_session_join(nt_object object, nt_session session, uint64_t value)
{
    struct nt_log *log;
    struct nt_thread_log_ *part;
    struct nt_layout_object *entry = object_use(object, &log, &part);
    if (!entry || entry->discipline == NT_SHARED || entry->session == session)
        return;
    const struct nt_layout_tally *tally = log_tally_find(&log->map, entry, NT_READ);
    const struct log_join join = { tally, session, value };
    log_settle(log, part, entry, object, tally ? &join : NULL);
    __atomic_store_n(&entry->session, session, __ATOMIC_RELAXED);
    const struct log_count count = {
        .object = object,
        .kind = NT_SESSION,
        .value = NT_SESSION_JOIN,
        .argument = tally ? log_pair_load(&tally->sum).count : 0,
    };
    log_count(&count);
}
