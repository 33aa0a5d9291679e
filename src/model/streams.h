/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of streams, from 0 on as they come: a stream is one kind on one life of an object. What is known of each is
   the caller's, in arrays by that number. Knows no event. */
#ifndef NT_MODEL_STREAMS_H
#define NT_MODEL_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "model/index.h"

#define NT_STREAMS_MAX (UINT32_C(1) << 24) /* beyond: -E2BIG */

struct nt_stream {
    uint32_t program; /* number or index, as the caller likes */
    uint32_t slot, generation;
    uint32_t kind;
};

struct nt_streams { /* all zeros: none */
    struct nt_stream *streams;
    uint32_t count, room;
    struct nt_model_index index;
    size_t index_room;
};

void nt_streams_fini(struct nt_streams *streams);
/* Forgets all, and keeps the memory. */
void nt_streams_clear(struct nt_streams *streams);
/* The stream's number, NT_MODEL_NONE if it is new. */
uint32_t nt_streams_find(const struct nt_streams *streams, const struct nt_stream *stream);
/* The stream's number; a new one gets the next, and *entries, of `size` bytes each, room for it, filled with zeros.
   0, -ENOMEM or -E2BIG. */
int nt_streams_get(struct nt_streams *streams, const struct nt_stream *stream, void **entries, size_t size,
                   uint32_t *ret_number);

#endif
