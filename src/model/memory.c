/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for many small copies that end together, see memory.h. */
#include "model/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 65536u

struct nt_model_memory { /* one chunk; the newest comes first */
    struct nt_model_memory *next;
    size_t used, room;
    _Alignas(max_align_t) char bytes[];
};

static void *memory_take(struct nt_model_memory **memory, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    size = size > 0 ? (size + 15) & ~(size_t)15 : 16;
    struct nt_model_memory *chunk = *memory;
    if (!chunk || size > chunk->room - chunk->used) {
        size_t room = size > CHUNK ? size : CHUNK;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->next = *memory;
        chunk->used = 0;
        chunk->room = room;
        *memory = chunk;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

void *nt_model_memory_copy(struct nt_model_memory **memory, const void *data, size_t size)
{
    void *copy = memory_take(memory, size);
    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

void *nt_model_memory_zero(struct nt_model_memory **memory, size_t size)
{
    void *zeros = memory_take(memory, size);
    if (zeros)
        memset(zeros, 0, size);
    return zeros;
}

void nt_model_memory_free(struct nt_model_memory *take_memory)
{
    while (take_memory) {
        struct nt_model_memory *next = take_memory->next;
        free(take_memory);
        take_memory = next;
    }
}
