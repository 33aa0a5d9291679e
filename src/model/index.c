/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash index over an array, see index.h. */
#include "model/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int nt_model_index_init(struct nt_model_index *index, size_t count)
{
    size_t room = 16;
    if (count > NT_MODEL_NONE / 2)
        return -ENOMEM;
    while (room < count * 2)
        room *= 2;
    uint32_t *cells = malloc(room * sizeof *cells);
    if (!cells)
        return -ENOMEM;
    memset(cells, 0xff, room * sizeof *cells);
    *index = (struct nt_model_index){ .cells = cells, .mask = room - 1 };
    return 0;
}

void nt_model_index_fini(struct nt_model_index *index)
{
    if (!index)
        return;
    free(index->cells);
    *index = (struct nt_model_index){ 0 };
}

uint32_t *nt_model_index_cell(const struct nt_model_index *index, uint64_t hash,
                              bool (*same)(const void *arg, uint32_t position), const void *arg)
{
    if (!index->cells)
        return NULL;
    size_t at = (size_t)hash & index->mask;
    while (index->cells[at] != NT_MODEL_NONE && !same(arg, index->cells[at]))
        at = (at + 1) & index->mask;
    return &index->cells[at];
}

static uint64_t mix(uint64_t value)
{
    /* The finaliser of splitmix64. */
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint64_t nt_model_hash(uint64_t seed, const void *data, size_t size)
{
    uint64_t hash = mix(seed + size + UINT64_C(0x9e3779b97f4a7c15));
    const char *bytes = data;
    while (size > 0) {
        uint64_t word = 0;
        size_t part = size < sizeof word ? size : sizeof word;
        memcpy(&word, bytes, part);
        hash = mix(hash ^ word) + seed;
        bytes += part;
        size -= part;
    }
    return hash;
}
