/* SPDX-License-Identifier: BSD-3-Clause */
/* What the unit tests of the log share: a directory that goes away again, logs with a few options, and a view of
   a log file that finds its way by the layout alone, without any code of the log or of its reader. */
#ifndef LOG_LOG_TEST_H
#define LOG_LOG_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/log.h"

#define UNUSED __attribute__((unused))

/* What the test is built with. */
#if defined(__has_feature) /* clang */
#define TEST_ASAN __has_feature(address_sanitizer)
#define TEST_TSAN __has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#endif

/* ---- the directory ---- */

static char test_directory[64];

UNUSED static int directory_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* A cmocka setup and its teardown: a new directory, with every test's logs in it. */
UNUSED static int directory_setup(void **state)
{
    (void)state;
    memcpy(test_directory, "/tmp/log_test.XXXXXX", sizeof("/tmp/log_test.XXXXXX"));
    if (!mkdtemp(test_directory))
        return -1;
    return setenv("NTSCOPE_DIR", test_directory, 1) || unsetenv("NTSCOPE") || unsetenv("NTSCOPE_KEEP");
}

UNUSED static int directory_teardown(void **state)
{
    (void)state;
    return nftw(test_directory, directory_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define log_test(test) cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

/* ---- logs and objects ---- */

UNUSED static nt_log *test_log(uint64_t cap, uint64_t ring)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    options.name = "test";
    options.cap_bytes = cap;
    options.ring_bytes = ring;
    assert_int_equal(nt_log_open(&options, &log), 0);
    return log;
}

UNUSED static nt_object test_object(nt_log *log, const char *name, nt_object parent, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.parent = parent;
    options.discipline = discipline;
    return nt_object_new(log, &options);
}

UNUSED static nt_object test_channel(nt_log *log, const char *name)
{
    return test_object(log, name, (nt_object){ 0 }, NT_EXCLUSIVE);
}

UNUSED static void count_times(nt_object object, nt_kind kind, uint64_t value, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        nt_object_count(object, kind, value);
}

/* A child that does something and says with its exit code whether all was well. */
UNUSED static void assert_child_is_well(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the view ---- */

struct view {
    unsigned char *base;
    size_t size;
    const struct nt_layout_header *header;
    const struct nt_layout_live *live;
};

UNUSED static struct view view_open(const char *path)
{
    struct view view;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    view.size = (size_t)st.st_size;
    view.base = mmap(NULL, view.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(view.base != MAP_FAILED);
    close(fd);
    view.header = (const void *)view.base;
    view.live = (const void *)(view.base + NT_LAYOUT_PAGE);
    return view;
}

UNUSED static void view_close(struct view *view)
{
    munmap(view->base, view->size);
}

UNUSED static const struct nt_layout_region *view_region(const struct view *view, uint32_t id)
{
    for (uint32_t i = 0; i < view->header->region_count; i++)
        if (view->header->regions[i].id == id)
            return &view->header->regions[i];
    return NULL;
}

UNUSED static void *view_at(const struct view *view, uint32_t id, uint64_t index)
{
    const struct nt_layout_region *region = view_region(view, id);
    return view->base + region->offset + index * region->entry_size;
}

static inline uint32_t handle_slot(nt_object object)
{
    return (uint32_t)object.handle & ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1);
}

static inline uint32_t handle_generation(nt_object object)
{
    return (uint32_t)(object.handle >> 32);
}

UNUSED static struct nt_layout_object *view_entry(const struct view *view, uint32_t slot)
{
    return view_at(view, NT_REGION_OBJECTS, slot);
}

UNUSED static struct nt_layout_object *view_object(const struct view *view, nt_object object)
{
    struct nt_layout_object *entry = view_entry(view, handle_slot(object));
    return entry->generation == handle_generation(object) ? entry : NULL;
}

UNUSED static const char *view_name(const struct view *view, const struct nt_layout_object *entry)
{
    return view_at(view, NT_REGION_STRINGS, entry->name);
}

/* The tally of a kind, NULL if there is none. */
UNUSED static const struct nt_layout_tally *view_tally(const struct view *view, const struct nt_layout_object *entry,
                                                       nt_kind kind)
{
    for (int i = 0; i < 3; i++)
        if (entry->tally_kind[i] == kind)
            return &entry->tally[i];
    for (uint32_t at = entry->blocks; at;) {
        const struct nt_layout_tally_block *block = view_at(view, NT_REGION_BLOCKS, at);
        for (int i = 0; i < 4; i++)
            if (block->kind[i] == kind)
                return &block->tally[i];
        at = block->next;
    }
    return NULL;
}

UNUSED static const struct nt_layout_extra *view_extra(const struct view *view, const struct nt_layout_object *entry,
                                                       nt_kind kind)
{
    for (uint32_t at = entry->extras; at;) {
        const struct nt_layout_extra *extra = view_at(view, NT_REGION_BLOCKS, at);
        if (extra->kind == kind)
            return extra;
        at = extra->next;
    }
    return NULL;
}

UNUSED static struct nt_layout_ring *view_ring(const struct view *view, uint32_t number)
{
    return view_at(view, NT_REGION_RINGS, number);
}

UNUSED static const struct nt_layout_record *view_record(const struct view *view, const struct nt_layout_ring *ring,
                                                         uint64_t position)
{
    return (const void *)((const unsigned char *)view_at(view, NT_REGION_RECORDS, 0) + ring->offset +
                          (position & (ring->size - 1)));
}

/* The position of a ring's n-th slot, from 1, while all events take one slot. */
UNUSED static uint64_t nth(uint64_t n)
{
    const uint64_t first = NT_LAYOUT_COMMIT(UINT64_C(0), 0) ? 0 : NT_LAYOUT_SLOT; /* slot number 0 is never used */
    return first + (n - 1) * NT_LAYOUT_SLOT;
}

/* Whether the slot at a position was written in this lap. */
UNUSED static bool view_written(const struct view *view, const struct nt_layout_ring *ring, uint64_t position)
{
    return view_record(view, ring, position)->commit >> 16 == NT_LAYOUT_COMMIT(position, 0) >> 16;
}

UNUSED static uint32_t record_kind(const struct nt_layout_record *record)
{
    return (uint32_t)record->commit & 0xff;
}

UNUSED static uint32_t record_flags(const struct nt_layout_record *record)
{
    return (uint32_t)record->commit >> 8 & 0xff;
}

#define assert_sum(view, object, kind, wanted_count, wanted_total)             \
    do {                                                                       \
        const struct nt_layout_object *entry_ = view_object(view, object);     \
        assert_non_null(entry_);                                               \
        const struct nt_layout_tally *tally_ = view_tally(view, entry_, kind); \
        assert_non_null(tally_);                                               \
        assert_int_equal(tally_->sum.count, wanted_count);                     \
        assert_int_equal(tally_->sum.total, wanted_total);                     \
    } while (0)

#endif
