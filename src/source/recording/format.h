/* SPDX-License-Identifier: BSD-3-Clause */
/* The recording file, version 1: what a file and each of its blocks begin with, and the limits that a reader holds
   them to. docs/format.md draws the same, and what is in the blocks, and changes in the same commit. All numbers are
   little-endian. */
#ifndef NT_SOURCE_RECORDING_FORMAT_H
#define NT_SOURCE_RECORDING_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* The last byte is the version. */
#define RECORDING_MAGIC "NTREC\r\n\001"
#define RECORDING_VERSION 1u
/* What each block begins with. */
#define RECORDING_MARK "\361NTBLK\r\n"

struct recording_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t header_size; /* 64 */
    uint64_t id;          /* of this recording, unlike any other's */
    uint64_t created;     /* ns since 1970 */
    uint32_t flags;       /* RECORDING_THINNED */
    uint32_t spare;
    uint64_t spare2[2];
    uint64_t hash; /* XXH3 of the 56 bytes before */
};

enum {
    RECORDING_THINNED = 1u /* events were left out on purpose */
};

enum recording_type {
    RECORDING_EVENTS = 1,     /* events and losses, in order */
    RECORDING_TABLES = 2,     /* a part of what a snapshot told */
    RECORDING_END = 3,        /* nothing follows */
    RECORDING_DIRECTORY = 4,  /* where the blocks are */
    RECORDING_CHECKPOINT = 5, /* kept: tallies of objects and sessions at one moment of a sampled recording */
    RECORDING_INDEX = 6       /* kept: which blocks hold what, beyond what these say of themselves */
};

enum {
    RECORDING_ZSTD = 1u /* the body is compressed */
};

/* A summary, which says what is in the block and is never compressed, and a body follow; then zeros up to the next
   multiple of 8. */
struct recording_block {
    uint8_t mark[8];
    uint16_t type; /* enum recording_type; a reader skips types that it does not know */
    uint16_t flags;
    uint32_t spare;
    uint32_t summary_size; /* bytes */
    uint32_t body_size;    /* as it is stored */
    uint32_t body_raw;     /* as it was before it was compressed */
    uint32_t spare2;
    uint64_t number;       /* of the block in the file, from 0 on */
    uint64_t summary_hash; /* XXH3 of the summary; of events: of its head, which has hashes of the rest */
    uint64_t body_hash;    /* XXH3 of the body as it is stored; of events: 0, the groups have theirs */
    uint64_t hash;         /* XXH3 of the 56 bytes before, seeded with the file's id xor the block's offset */
};

_Static_assert(sizeof(struct recording_header) == 64, "drawn in docs/format.md");
_Static_assert(sizeof(struct recording_block) == 64, "drawn in docs/format.md");
_Static_assert(offsetof(struct recording_header, created) == 24, "drawn in docs/format.md");
_Static_assert(offsetof(struct recording_block, number) == 32, "drawn in docs/format.md");

/* ---- Limits ---- */
#define RECORDING_SUMMARY_MAX (8u << 20)
#define RECORDING_BODY_MAX (32u << 20)
#define RECORDING_EVENTS_MAX 65536u       /* in one block */
#define RECORDING_LOSSES_MAX 65536u       /* in one block */
#define RECORDING_DATA_MAX (4u << 20)     /* bytes of fields in one block, beyond which it takes no more events */
#define RECORDING_PROGRAMS_MAX (1u << 20) /* numbers of programs */
#define RECORDING_BLOCKS_MAX (UINT64_C(1) << 26)

#define RECORDING_END_SUMMARY 64u /* bytes: the end lies at a known place of a file that has one */

#endif
