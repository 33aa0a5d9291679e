/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the counts of a kind on an object go on in a block where they ended in one before: then nothing is missing
   between, and whoever looks for what is missing need not read all blocks. */
#ifndef NT_SOURCE_RECORDING_FOLLOW_H
#define NT_SOURCE_RECORDING_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "source/recording/index.h"

#define FOLLOW_STREAMS (1u << 18) /* remembered at most */

struct recording_follow { /* all zeros: nothing came so far */
    struct recording_index index;
    struct follow_stream *streams;
    uint32_t count, room;
    uint32_t block; /* number of the current one */
    bool vast;      /* some that came are not remembered */
};

struct follow_key {
    uint32_t program, slot, generation;
    uint16_t kind;
};

enum follow_how {
    FOLLOW_ON,     /* or it is new */
    FOLLOW_BEYOND, /* counts are missing */
    FOLLOW_BACK,   /* counts came before */
    FOLLOW_UNKNOWN
};

/* Of one stream of the current block the count before its first event, and that of its last one. */
enum follow_how recording_follow(struct recording_follow *follow, const struct follow_key *key, uint64_t before,
                                 uint64_t last);
void recording_follow_fini(struct recording_follow *follow);

#endif
