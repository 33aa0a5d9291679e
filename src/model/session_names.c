/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of sessions, see session_names.h. */
#include "model/session_names.h"

#include <errno.h>
#include <stdlib.h>

#include "model/index.h"
#include "model/memory.h"

struct entry {
    uint64_t session;
    struct nt_bytes name;
};

struct nt_session_names {
    struct entry *entries;
    uint32_t count, room;
    struct nt_model_index index;
    struct nt_model_memory *memory; /* of the names */
    size_t bytes;                   /* of all */
};

int nt_session_names_new(struct nt_session_names **ret_names)
{
    struct nt_session_names *names = calloc(1, sizeof *names);
    if (!names)
        return -ENOMEM;
    *ret_names = names;
    return 0;
}

static void forget(struct nt_session_names *names)
{
    nt_model_memory_free(names->memory);
    nt_model_index_fini(&names->index);
    free(names->entries);
    *names = (struct nt_session_names){ 0 };
}

void nt_session_names_free(struct nt_session_names *take_names)
{
    if (!take_names)
        return;
    forget(take_names);
    free(take_names);
}

struct sought {
    const struct nt_session_names *names;
    uint64_t session;
};

static bool is_sought(const void *arg, uint32_t position)
{
    const struct sought *sought = arg;
    return sought->names->entries[position].session == sought->session;
}

/* NULL: nothing was ever added. */
static uint32_t *cell_of(const struct nt_session_names *names, uint64_t session)
{
    const struct sought sought = { names, session };
    uint64_t hash = nt_model_hash((uintptr_t)names, &session, sizeof session);
    return nt_model_index_cell(&names->index, hash, is_sought, &sought);
}

static int grow(struct nt_session_names *names)
{
    uint32_t room = names->room > 0 ? names->room * 2 : 64;
    struct nt_model_index index = { 0 };
    struct entry *entries = reallocarray(names->entries, room, sizeof *entries);
    if (!entries)
        return -ENOMEM;
    names->entries = entries;
    if (nt_model_index_init(&index, room) != 0)
        return -ENOMEM;
    nt_model_index_fini(&names->index);
    names->index = index;
    names->bytes += (room - names->room) * (sizeof *entries + 2 * sizeof *index.cells);
    names->room = room;
    for (uint32_t i = 0; i < names->count; i++)
        *cell_of(names, entries[i].session) = i;
    return 0;
}

int nt_session_names_add(struct nt_session_names *names, uint64_t session, struct nt_bytes name)
{
    if (name.size == 0 || nt_session_names_find(names, session).size > 0)
        return 0;
    if (names->bytes > NT_SESSION_NAMES_BYTES)
        forget(names);
    if (names->count == names->room && grow(names) != 0)
        return -ENOMEM;
    const char *copy = nt_model_memory_copy(&names->memory, name.data, name.size);
    if (!copy)
        return -ENOMEM;
    names->bytes += name.size + 16;
    *cell_of(names, session) = names->count;
    names->entries[names->count++] = (struct entry){ session, { copy, name.size } };
    return 0;
}

struct nt_bytes nt_session_names_find(const struct nt_session_names *names, uint64_t session)
{
    const uint32_t *cell = cell_of(names, session);
    return cell && *cell != NT_MODEL_NONE ? names->entries[*cell].name : (struct nt_bytes){ "", 0 };
}
