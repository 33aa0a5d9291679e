/* SPDX-License-Identifier: BSD-3-Clause */
/* The truth files of one relay, indexed: what life has which handle, which values were counted in which order. */
#ifndef TESTS_TRUTH_INDEX_H
#define TESTS_TRUTH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "truth.h"

/* One kind on one life. */
struct truth_counts {
    uint32_t life; /* number of its object within the process */
    uint32_t kind;
    unsigned tallies;             /* threads that counted */
    struct truth_sum done, begun; /* of all threads */
    const uint64_t *values;       /* as counted, thread after thread; of one thread: in the order of the counts */
    const uint64_t *sessions;     /* sessions[i]: that values[i] was counted in */
    const uint64_t *totals;       /* totals[i]: of values[0] to values[i]; of use where there is one thread */
    size_t value_count;           /* at least done.count; the one in flight may be among them */
    const uint64_t *sorted;       /* of several threads: the values in order of size */
};

struct truth_process {
    struct truth truth;
    struct truth_counts *counts; /* sorted by life, kind */
    size_t count;
    uint64_t *values, *sessions, *totals, *sorted;
    uint64_t *by_handle; /* slot << 32 | life + 1, sorted, of lives whose handle is known */
    size_t handle_count;
    uint8_t *found; /* by life: for the caller */
};

struct truth_index {
    struct truth_process *processes;
    size_t count;
};

/* Loads all files of a directory. False after a line on standard error. */
bool truth_index_load(const char *directory, struct truth_index *ret_index);
void truth_index_fini(struct truth_index *index);
struct truth_process *truth_index_process(const struct truth_index *index, uint32_t pid);

/* Slot and generation of a handle, without the bit that tells shared objects. */
uint32_t truth_slot(uint64_t handle);
uint32_t truth_generation(uint64_t handle);
#define TRUTH_NO_LIFE UINT32_MAX
/* The life of that slot and generation. */
uint32_t truth_life(const struct truth_process *process, uint32_t slot, uint32_t generation);
/* NULL: nothing of that kind was counted. */
const struct truth_counts *truth_counts_of(const struct truth_process *process, uint32_t life, uint32_t kind);
/* Whether anybody counted that value. */
bool truth_has_value(const struct truth_counts *counts, uint64_t value);
#endif
