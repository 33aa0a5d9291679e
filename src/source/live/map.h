/* SPDX-License-Identifier: BSD-3-Clause */
/* One log file, mapped for reading: opened safely, its header checked once, its pages touched only where there
   is memory behind them. What lies in the regions is still anybody's bytes: load once, check, use.
   Knows the regions, not what is in them. */
#ifndef NT_SOURCE_LIVE_MAP_H
#define NT_SOURCE_LIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nt/log_layout.h>

#include "source/live/guard.h"

struct live_map_region {
    uint64_t offset; /* in the file */
    uint64_t size;   /* 0: there is no such region */
};

enum { LIVE_MAP_REGIONS = NT_REGION_GIVEN + 1 };

struct live_map {
    const uint8_t *base; /* NULL: nothing is mapped */
    uint64_t size;
    bool file;  /* false: memory of the caller, all of it there */
    bool named; /* the user's choice: perhaps a copy */
    int fd;
    uint64_t device, inode;
    uint32_t uid;                                     /* the file's owner */
    struct nt_layout_header header;                   /* the copy that was checked */
    struct live_map_region regions[LIVE_MAP_REGIONS]; /* by id */
    uint64_t *backed;                                 /* a bit a page: known to be there */
    struct live_guard *guard;
};

enum { LIVE_MAP_TEXT = 256 };

/* Whose file it must be. */
struct live_map_owner {
    bool any;     /* a file that the user named: no more is asked than that it is a regular one */
    uint32_t uid; /* else it is this user's, and has one name only */
};

/* Opens `name` below the directory (AT_FDCWD too). Returns 0 or a negative code and one line of text that says
   what is wrong and where, without the file's name: -NT_EFORMAT, -NT_EVERSION, -NT_ETRUNCATED, -EPERM, ….
   *map is all zeros on failure. */
int live_map_open(struct live_map *map, int directory, const char *name, const struct live_map_owner *owner,
                  char ret_text[LIVE_MAP_TEXT]);
/* The same for a log that already lies in memory, page-aligned. */
int live_map_open_memory(struct live_map *map, const void *data, size_t size, char ret_text[LIVE_MAP_TEXT]);
/* A map of zeros, or one that could not be opened, is ignored. */
void live_map_close(struct live_map *map);

/* Checks a copy of a header. `size` is the file's. */
int live_map_check(const struct nt_layout_header *header, uint64_t size, char ret_text[LIVE_MAP_TEXT]);

/* `size` bytes at `offset` of a region, or NULL: outside of it, or no memory there. */
const void *live_map_at(struct live_map *map, enum nt_layout_region_id region, uint64_t offset, uint64_t size);
/* Whether that place was found to have memory before; asks nobody. */
bool live_map_known(const struct live_map *map, enum nt_layout_region_id region, uint64_t offset);
/* The first offset at or after `offset` in the region from which on something is there; its size if nothing is. */
uint64_t live_map_next(struct live_map *map, enum nt_layout_region_id region, uint64_t offset);
/* The page that the program changes as it goes. */
const struct nt_layout_live *live_map_live(const struct live_map *map);
/* 0, or -NT_ETRUNCATED once the file was cut while it was read: then nothing that was read counts. */
int live_map_state(const struct live_map *map);

/* A pair as the writer stored it, both halves at once. */
struct nt_layout_pair live_pair_load(const struct nt_layout_pair *pair);

static inline uint64_t live_load64(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint32_t live_load32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint8_t live_load8(const uint8_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

#endif
