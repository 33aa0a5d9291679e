/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing masks, see control.h. */
#include "source/live/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nt/error.h>

#include "source/live/clock.h"

static void region_close(struct live_control_region *region)
{
    live_guard_free(region->guard);
    if (region->base != NULL) {
        (void)munmap(region->base, region->size);
    }
    *region = (struct live_control_region){ 0 };
}

static int region_open(struct live_control_region *region, int fd, const struct live_map_region *at)
{
    if (at->size == 0) {
        return -NT_EFORMAT;
    }
    void *base = mmap(NULL, at->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at->offset);
    if (base == MAP_FAILED) {
        return -errno;
    }
    region->base = base;
    region->size = at->size;
    region->guard = live_guard_new(base, at->size);
    return region->guard != NULL ? 0 : -ENOMEM;
}

int live_control_open(struct live_control *control, const struct live_map *map)
{
    char path[32];
    if (!map->file) {
        return -EINVAL;
    }
    /* The file that was checked when it was opened for reading, whatever its name stands for by now. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", map->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    int error = region_open(&control->words, fd, &map->regions[NT_REGION_CONTROL]);
    if (error == 0) {
        error = region_open(&control->changes, fd, &map->regions[NT_REGION_CHANGES]);
    }
    (void)close(fd);
    if (error < 0) {
        live_control_close(control);
    }
    return error;
}

void live_control_close(struct live_control *control)
{
    region_close(&control->words);
    region_close(&control->changes);
}

/* Where to write the entry of a region, if there is memory; a hole is not written to. */
static void *entry_at(const struct live_control_region *region, struct live_map *map, enum nt_layout_region_id id,
                      uint64_t number, uint64_t size)
{
    bool there = number < region->size / size && live_map_at(map, id, number * size, size) != NULL;
    return there ? region->base + number * size : NULL;
}

static bool is_life(struct live_map *map, uint32_t slot, uint32_t generation)
{
    const struct nt_layout_object *object = live_map_at(map, NT_REGION_OBJECTS, (uint64_t)slot * sizeof *object,
                                                        sizeof *object);
    return object != NULL && (live_load32(&object->last_generation) & ~NT_LAYOUT_LOCKED) == generation;
}

static int word_change(uint64_t *word, bool tsc, const struct nt_live_mask *mask, struct nt_layout_change *ret_change)
{
    enum { TRIES = 1000 };
    struct nt_layout_change change = { .before = live_load64(word), .setter = (uint32_t)getpid() };
    for (int i = 0; i < TRIES; i++) {
        if (change.before >> NT_LAYOUT_MASK_KINDS != (mask->generation & 0xffff)) {
            return -ESTALE;
        }
        change.after = (change.before & ~(mask->clear & NT_LAYOUT_MASK_BITS)) | (mask->set & NT_LAYOUT_MASK_BITS);
        if (!live_clock_ticks(tsc, &change.time)) { /* before the first event that the change decides on */
            return -EOPNOTSUPP;
        }
        if (change.after == change.before || __atomic_compare_exchange_n(word, &change.before, change.after, false,
                                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            *ret_change = change;
            return 0;
        }
    }
    return -EAGAIN;
}

/* Others may be at it too, from any process; readers know a change that two wrote at once by its check. */
static void change_store(struct nt_layout_change *shared, const struct nt_layout_change *change)
{
    __atomic_store_n(&shared->time, change->time, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->before, change->before, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->after, change->after, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->setter, change->setter, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->check, nt_layout_change_check(change), __ATOMIC_RELEASE);
}

int live_control_change(struct live_control *control, struct live_map *map, struct nt_live_mask *mask)
{
    struct nt_layout_change change = { .before = 0 };
    uint64_t slot = mask->object;
    uint64_t *word = entry_at(&control->words, map, NT_REGION_CONTROL, slot, sizeof *word);
    struct nt_layout_changes *head = entry_at(&control->changes, map, NT_REGION_CHANGES, 0, sizeof *head);
    struct nt_layout_change *entry = entry_at(&control->changes, map, NT_REGION_CHANGES, slot + 1, sizeof *entry);
    if (word == NULL || head == NULL || entry == NULL || !is_life(map, mask->object, mask->generation)) {
        return -ESTALE;
    }
    int error = word_change(word, (map->header.flags & NT_HEADER_CLOCK_TSC) != 0, mask, &change);
    if (error == 0 && change.before != change.after) {
        change_store(entry, &change);
        /* release: partner is the acquire of readers, who look at the changes when this has become another */
        __atomic_fetch_add(&head->count, 1, __ATOMIC_RELEASE);
    }
    if (live_guard_hit(control->words.guard) || live_guard_hit(control->changes.guard)) {
        return -NT_ETRUNCATED;
    }
    if (error == 0) {
        mask->before = change.before & NT_LAYOUT_MASK_BITS;
        mask->after = change.after & NT_LAYOUT_MASK_BITS;
    }
    return error;
}
