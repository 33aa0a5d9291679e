/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams by what they are of, see follow.h. When they are too many, those that did not come for longest are let go. */
#include "source/recording/follow.h"

#include <stdlib.h>
#include <string.h>

struct follow_stream {
    struct follow_key key;
    uint32_t block; /* in which it came last */
    uint64_t last;
};

static uint32_t hash_of(const struct follow_key *key)
{
    return recording_hash((uint64_t)key->slot << 32 | key->generation, (uint64_t)key->program << 16 | key->kind);
}

static struct follow_stream *find(const struct recording_follow *follow, const struct follow_key *key)
{
    uint32_t hash = hash_of(key), at = hash, found;
    while ((found = recording_index_next(&follow->index, hash, &at)) != RECORDING_NONE) {
        const struct follow_key *other = &follow->streams[found].key;
        if (other->slot == key->slot && other->generation == key->generation && other->kind == key->kind &&
            other->program == key->program) {
            return &follow->streams[found];
        }
    }
    return NULL;
}

static void let_go(struct recording_follow *follow)
{
    uint32_t oldest = follow->block, kept = 0;
    for (uint32_t i = 0; i < follow->count; i++) {
        oldest = follow->streams[i].block < oldest ? follow->streams[i].block : oldest;
    }
    uint32_t middle = oldest + (follow->block - oldest) / 2;
    recording_index_clear(&follow->index);
    for (uint32_t i = 0; i < follow->count && kept < FOLLOW_STREAMS / 2; i++) {
        if (follow->streams[i].block > middle &&
            recording_index_add(&follow->index, hash_of(&follow->streams[i].key), kept) == 0) {
            follow->streams[kept++] = follow->streams[i];
        }
    }
    follow->count = kept;
    follow->vast = true;
}

static bool make_room(struct recording_follow *follow)
{
    if (follow->count == FOLLOW_STREAMS) {
        let_go(follow);
    }
    if (follow->count == follow->room) {
        uint32_t room = follow->room != 0 ? 2 * follow->room : 256;
        struct follow_stream *streams = reallocarray(follow->streams, room, sizeof *streams);
        if (streams == NULL) {
            return false;
        }
        follow->streams = streams;
        follow->room = room;
    }
    return true;
}

enum follow_how recording_follow(struct recording_follow *follow, const struct follow_key *key, uint64_t before,
                                 uint64_t last)
{
    struct follow_stream *stream = find(follow, key);
    if (stream != NULL) {
        enum follow_how how = before == stream->last ? FOLLOW_ON : before > stream->last ? FOLLOW_BEYOND : FOLLOW_BACK;
        stream->last = last > stream->last ? last : stream->last;
        stream->block = follow->block;
        return how;
    }
    enum follow_how how = follow->vast && before != 0 ? FOLLOW_UNKNOWN : FOLLOW_ON;
    if (!make_room(follow) || recording_index_add(&follow->index, hash_of(key), follow->count) != 0) {
        follow->vast = true;
        return how;
    }
    follow->streams[follow->count++] = (struct follow_stream){ *key, follow->block, last };
    return how;
}

void recording_follow_fini(struct recording_follow *follow)
{
    free(follow->streams);
    recording_index_fini(&follow->index);
    *follow = (struct recording_follow){ 0 };
}
