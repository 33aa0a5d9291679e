/* SPDX-License-Identifier: BSD-3-Clause */
/* floor64: what no event of 64 bytes with a time can be cheaper than. One read of the clock and 64 bytes
   stored in sequence into a ring of 1 MiB, the pointer in a register; nothing else. */
#ifndef NT_BENCH_FLOOR_H
#define NT_BENCH_FLOOR_H

#include <stdint.h>

#include "harness.h"

#define FLOOR64_RING (UINT64_C(1) << 20)

struct floor64 {
    uint64_t *base; /* FLOOR64_RING bytes, from bench_memory */
    uint64_t *at;
};

/* A run function of a bench_variant; state is a struct floor64. */
static inline void floor64_run(void *state, uint64_t operations)
{
    struct floor64 *ring = (struct floor64 *)state;
    uint64_t *at = ring->at;
    uint64_t *const end = ring->base + FLOOR64_RING / sizeof(uint64_t);
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t now = bench_ticks();
        at[0] = now;
        at[1] = i;
        at[2] = i;
        at[3] = i;
        at[4] = i;
        at[5] = i;
        at[6] = i;
        at[7] = i;
        /* Each record is stored, none is merged with the next. */
        __asm__ volatile("" ::: "memory");
        at += 8;
        if (at == end) {
            at = ring->base;
        }
    }
    ring->at = at;
}

static inline void floor64_fini(struct floor64 *ring)
{
    bench_memory_free(ring->base, FLOOR64_RING);
}

/* 0, or -1 without memory. */
static inline int floor64_init(struct floor64 *ring)
{
    ring->base = (uint64_t *)bench_memory(FLOOR64_RING);
    ring->at = ring->base;
    return ring->base != NULL ? 0 : -1;
}

#endif
