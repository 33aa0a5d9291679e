/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of things by the hash of what they are: the caller keeps the things, and compares. Grows by itself. */
#ifndef NT_SOURCE_RECORDING_INDEX_H
#define NT_SOURCE_RECORDING_INDEX_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RECORDING_NONE UINT32_MAX

struct recording_index { /* all zeros: empty */
    uint64_t *cells;     /* hash << 32 | number + 1 */
    uint32_t room, count;
};

static inline uint32_t recording_hash(uint64_t first, uint64_t second)
{
    uint64_t hash = (first ^ (second * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32);
}

/* The next number with that hash; *at is the hash at first. RECORDING_NONE: no more. */
static inline uint32_t recording_index_next(const struct recording_index *index, uint32_t hash, uint32_t *at)
{
    if (index->room == 0) {
        return RECORDING_NONE;
    }
    for (uint64_t cell; (cell = index->cells[*at & (index->room - 1)]) != 0;) {
        ++*at;
        if (cell >> 32 == hash) {
            return (uint32_t)cell - 1;
        }
    }
    return RECORDING_NONE;
}

static inline void recording_index_put_(uint64_t *cells, uint32_t room, uint64_t cell)
{
    uint32_t at = (uint32_t)(cell >> 32);
    while (cells[at & (room - 1)] != 0) {
        at++;
    }
    cells[at & (room - 1)] = cell;
}

/* 0 or -ENOMEM. */
static inline int recording_index_add(struct recording_index *index, uint32_t hash, uint32_t number)
{
    if (index->count >= index->room / 2) {
        uint32_t room = index->room != 0 ? 2 * index->room : 1024;
        uint64_t *cells = calloc(room, sizeof *cells);
        if (cells == NULL) {
            return -ENOMEM;
        }
        for (uint32_t i = 0; i < index->room; i++) {
            if (index->cells[i] != 0) {
                recording_index_put_(cells, room, index->cells[i]);
            }
        }
        free(index->cells);
        index->cells = cells;
        index->room = room;
    }
    recording_index_put_(index->cells, index->room, (uint64_t)hash << 32 | (number + 1));
    index->count++;
    return 0;
}

static inline void recording_index_clear(struct recording_index *index)
{
    if (index->count != 0) {
        memset(index->cells, 0, index->room * sizeof *index->cells);
    }
    index->count = 0;
}

static inline void recording_index_fini(struct recording_index *index)
{
    free(index->cells);
    *index = (struct recording_index){ 0 };
}

#endif
