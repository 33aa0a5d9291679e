/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash index over an array that somebody else holds: finds positions by hash, leaves comparing to the
   caller. Sized once, never deleted from. */
#ifndef NT_MODEL_INDEX_H
#define NT_MODEL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NT_MODEL_NONE UINT32_MAX

struct nt_model_index { /* all zeros: holds nothing */
    uint32_t *cells;    /* positions, NT_MODEL_NONE free */
    size_t mask;
};

/* Room for `count` entries. 0 or -ENOMEM. */
int nt_model_index_init(struct nt_model_index *index, size_t count);
void nt_model_index_fini(struct nt_model_index *index);
/* The cell of the entry that `same` says is the one sought, or the free cell where it belongs. NULL only if
   the index was never given room. */
uint32_t *nt_model_index_cell(const struct nt_model_index *index, uint64_t hash,
                              bool (*same)(const void *arg, uint32_t position), const void *arg);
/* Mixes bytes into a hash. Not against somebody who knows the seed. */
uint64_t nt_model_hash(uint64_t seed, const void *data, size_t size);

#endif
