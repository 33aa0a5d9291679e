/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of streams, see streams.h. The index is made anew, twice as large, when it is half full. */
#include "model/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 256u

struct sought {
    const struct nt_streams *streams;
    const struct nt_stream *stream;
};

static bool is_sought(const void *arg, uint32_t position)
{
    const struct sought *sought = arg;
    return memcmp(&sought->streams->streams[position], sought->stream, sizeof *sought->stream) == 0;
}

static uint32_t *cell_of(const struct nt_streams *streams, const struct nt_stream *stream)
{
    const struct sought sought = { streams, stream };
    uint64_t hash = nt_model_hash((uintptr_t)streams->index.cells, stream, sizeof *stream);
    return nt_model_index_cell(&streams->index, hash, is_sought, &sought);
}

void nt_streams_fini(struct nt_streams *streams)
{
    free(streams->streams);
    nt_model_index_fini(&streams->index);
    *streams = (struct nt_streams){ 0 };
}

void nt_streams_clear(struct nt_streams *streams)
{
    if (streams->count > 0)
        memset(streams->index.cells, 0xff, (streams->index.mask + 1) * sizeof *streams->index.cells);
    streams->count = 0;
}

uint32_t nt_streams_find(const struct nt_streams *streams, const struct nt_stream *stream)
{
    return streams->count > 0 ? *cell_of(streams, stream) : NT_MODEL_NONE;
}

static int index_grow(struct nt_streams *streams)
{
    struct nt_model_index index;
    size_t room = streams->index_room > 0 ? 2 * streams->index_room : ROOM_LEAST;
    int error = nt_model_index_init(&index, room);
    if (error != 0)
        return error;
    nt_model_index_fini(&streams->index);
    streams->index = index;
    streams->index_room = room;
    for (uint32_t i = 0; i < streams->count; i++)
        *cell_of(streams, &streams->streams[i]) = i;
    return 0;
}

/* The caller's array always has as many entries as there is room for streams. */
static int streams_grow(struct nt_streams *streams, void **entries, size_t size)
{
    uint32_t room = streams->room > 0 ? 2 * streams->room : ROOM_LEAST;
    if (streams->count >= NT_STREAMS_MAX)
        return -E2BIG;
    void *more = reallocarray(streams->streams, room, sizeof *streams->streams);
    if (!more)
        return -ENOMEM;
    streams->streams = more;
    more = reallocarray(*entries, room, size);
    if (!more)
        return -ENOMEM;
    *entries = more;
    streams->room = room;
    return 0;
}

int nt_streams_get(struct nt_streams *streams, const struct nt_stream *stream, void **entries, size_t size,
                   uint32_t *ret_number)
{
    int error = streams->count >= streams->index_room ? index_grow(streams) : 0;
    if (error != 0)
        return error;
    uint32_t *cell = cell_of(streams, stream);
    if (*cell == NT_MODEL_NONE) {
        error = streams->count >= streams->room ? streams_grow(streams, entries, size) : 0;
        if (error != 0)
            return error;
        streams->streams[streams->count] = *stream;
        memset((char *)*entries + streams->count * size, 0, size);
        *cell = streams->count++;
    }
    *ret_number = *cell;
    return 0;
}
