/* SPDX-License-Identifier: BSD-3-Clause */
/* Truth files: making, mapping, counting. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "truth.h"

enum { OBJECT_ROOM = 32768, SESSION_ROOM = 262144, TALLY_ROOM = 262144, SERIES_ROOM = 4194304, PATH_ROOM = 512 };

static size_t truth_size(const struct truth_header *header)
{
    return sizeof *header + (size_t)header->object_room * sizeof(struct truth_object) +
           (size_t)header->session_room * sizeof(struct truth_session) +
           (size_t)header->tally_room * sizeof(struct truth_tally) +
           (size_t)header->series_room * sizeof(struct truth_series);
}

static void truth_place(struct truth *truth, void *map, size_t size)
{
    truth->header = map;
    truth->objects = (struct truth_object *)(void *)((char *)map + sizeof(struct truth_header));
    truth->sessions = (struct truth_session *)(void *)(truth->objects + truth->header->object_room);
    truth->tallies = (struct truth_tally *)(void *)(truth->sessions + truth->header->session_room);
    truth->series = (struct truth_series *)(void *)(truth->tallies + truth->header->tally_room);
    truth->size = size;
}

/* The path, or where it is made before it is whole. */
static int truth_path(char path[PATH_ROOM], const char *directory, const char *name, const char *suffix)
{
    int length = snprintf(path, PATH_ROOM, "%s/%s.%d%s", directory, name, (int)getpid(), suffix);
    return length < 0 || length >= PATH_ROOM ? -ENAMETOOLONG : 0;
}

/* A file of that size, or -1 where there is no directory. */
static int truth_create(const char *directory, const char *name, size_t size, int *ret_fd)
{
    char path[PATH_ROOM];
    *ret_fd = -1;
    if (!directory)
        return 0;
    int result = truth_path(path, directory, name, ".tmp");
    int fd = result < 0 ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return result < 0 ? result : -errno;
    if (ftruncate(fd, (off_t)size) < 0) {
        result = -errno;
        close(fd);
        return result;
    }
    *ret_fd = fd;
    return 0;
}

/* Who is killed before this leaves no truth file. */
static int truth_publish(const char *directory, const char *name)
{
    char from[PATH_ROOM], to[PATH_ROOM];
    if (!directory)
        return 0;
    int result = truth_path(from, directory, name, ".tmp");
    if (result == 0)
        result = truth_path(to, directory, name, TRUTH_SUFFIX);
    if (result == 0 && rename(from, to) < 0)
        result = -errno;
    return result;
}

static struct truth_header truth_describe(const char *name, bool helper, bool detailed)
{
    struct truth_header header = { .magic = TRUTH_MAGIC, .size = sizeof header, .pid = (uint32_t)getpid() };
    snprintf(header.name, sizeof header.name, "%s", name);
    header.helper = helper;
    header.object_room = OBJECT_ROOM;
    header.session_room = detailed ? SESSION_ROOM : 0;
    header.tally_room = TALLY_ROOM;
    header.series_room = detailed ? SERIES_ROOM : 0;
    return header;
}

int truth_open(const char *directory, const char *name, bool helper, struct truth *ret_truth)
{
    const struct truth_header header = truth_describe(name, helper, directory != NULL);
    size_t size = truth_size(&header);
    int fd, error = truth_create(directory, name, size, &fd);
    if (error)
        return error;
    int flags = MAP_SHARED | (directory ? 0 : MAP_ANONYMOUS | MAP_NORESERVE);
    struct truth_header *map = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    error = map == MAP_FAILED ? -errno : 0;
    if (fd >= 0)
        close(fd);
    if (error)
        return error;
    memcpy(map, &header, sizeof header);
    truth_place(ret_truth, map, size);
    ret_truth->detailed = directory != NULL;
    error = truth_publish(directory, name);
    if (error)
        truth_close(ret_truth);
    return error;
}

static bool truth_is_whole(const struct truth_header *header, size_t size)
{
    return memcmp(header->magic, TRUTH_MAGIC, sizeof header->magic) == 0 && header->size == sizeof *header &&
           memchr(header->name, 0, sizeof header->name) && header->object_room <= OBJECT_ROOM &&
           header->session_room <= SESSION_ROOM && header->tally_room <= TALLY_ROOM &&
           header->series_room <= SERIES_ROOM && header->objects <= header->object_room &&
           header->sessions <= header->session_room && header->tallies <= header->tally_room &&
           header->series <= header->series_room && size == truth_size(header);
}

int truth_load(const char *path, struct truth *ret_truth)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat status;
    int error = fstat(fd, &status) < 0 ? -errno : 0;
    if (!error && (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(struct truth_header)))
        error = -EBADMSG;
    void *map = MAP_FAILED;
    if (!error) {
        map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        error = map == MAP_FAILED ? -errno : 0;
    }
    close(fd);
    if (error)
        return error;
    if (!truth_is_whole(map, (size_t)status.st_size)) {
        munmap(map, (size_t)status.st_size);
        return -EBADMSG;
    }
    truth_place(ret_truth, map, (size_t)status.st_size);
    ret_truth->detailed = true;
    return 0;
}

void truth_close(struct truth *truth)
{
    if (truth->header)
        munmap(truth->header, truth->size);
    *truth = (struct truth){ 0 };
}

/* Takes the next number below room; the counter itself never passes it, so that a file is always whole. */
static uint32_t truth_take(_Atomic uint32_t *used, uint32_t room, _Atomic uint64_t *overflow)
{
    uint32_t number = atomic_load_explicit(used, memory_order_relaxed);
    do {
        if (number >= room) {
            atomic_fetch_add_explicit(overflow, 1, memory_order_relaxed);
            return UINT32_MAX;
        }
    } while (
        !atomic_compare_exchange_weak_explicit(used, &number, number + 1, memory_order_relaxed, memory_order_relaxed));
    return number;
}

uint32_t truth_object_add(struct truth *truth, const char *path, uint32_t flags)
{
    struct truth_header *header = truth->header;
    uint32_t number = truth_take(&header->objects, header->object_room, &header->overflow);
    if (number == UINT32_MAX)
        return number;
    struct truth_object *object = &truth->objects[number];
    snprintf(object->path, sizeof object->path, "%s", path);
    atomic_store_explicit(&object->flags, flags, memory_order_relaxed);
    atomic_store_explicit(&object->ready, 1, memory_order_release); /* with the reader of a dead one's file */
    return number;
}

uint32_t truth_tally_add(struct truth *truth, uint32_t object, uint32_t kind)
{
    struct truth_header *header = truth->header;
    uint32_t number = truth_take(&header->tallies, header->tally_room, &header->overflow);
    if (number == UINT32_MAX)
        return number;
    truth->tallies[number].object = object;
    atomic_store_explicit(&truth->tallies[number].kind, kind, memory_order_release); /* as above */
    return number;
}

uint32_t truth_session_add(struct truth *truth, const char *name, uint64_t parent)
{
    struct truth_header *header = truth->header;
    uint32_t number = truth_take(&header->sessions, header->session_room, &header->overflow);
    if (number == UINT32_MAX)
        return number;
    struct truth_session *session = &truth->sessions[number];
    session->parent = parent;
    snprintf(session->name, sizeof session->name, "%s", name);
    atomic_store_explicit(&session->ready, 1, memory_order_release); /* as above */
    return number;
}

static uint32_t truth_append(struct truth *truth, uint32_t tally, const struct truth_entry *entry)
{
    struct truth_header *header = truth->header;
    uint64_t at = atomic_load_explicit(&header->series, memory_order_relaxed);
    do {
        if (at >= header->series_room) {
            atomic_fetch_add_explicit(&header->overflow, 1, memory_order_relaxed);
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&header->series, &at, at + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    struct truth_series *series = &truth->series[at];
    series->joins = entry->joins;
    series->value = entry->value;
    series->session = entry->session;
    series->own = entry->own;
    atomic_store_explicit(&series->tally, tally + 1, memory_order_release); /* as above */
    return (uint32_t)at + 1;
}

uint32_t truth_begin(struct truth *truth, uint32_t tally, const struct truth_entry *entry)
{
    uint32_t number = truth->detailed ? truth_append(truth, tally, entry) : 0;
    uint64_t value = entry->value;
    struct truth_tally *t = &truth->tallies[tally];
    uint64_t done = atomic_load_explicit(&t->done, memory_order_relaxed);
    uint64_t next = done + 1;
    t->state[next & 1].total = t->state[done & 1].total + value;
    t->state[next & 1].max = t->state[done & 1].max > value ? t->state[done & 1].max : value;
    atomic_store_explicit(&t->begun, next, memory_order_release);
    /* The library's plain stores must stay behind: a killed thread's stores come in program order, so keeping
       the compiler from moving them is enough. */
    atomic_signal_fence(memory_order_seq_cst);
    return number;
}

void truth_end(struct truth *truth, uint32_t tally)
{
    atomic_signal_fence(memory_order_seq_cst); /* and here in front */
    struct truth_tally *t = &truth->tallies[tally];
    uint64_t begun = atomic_load_explicit(&t->begun, memory_order_relaxed);
    atomic_store_explicit(&t->done, begun, memory_order_release);
}

void truth_read(const struct truth_tally *tally, struct truth_sum *ret_done, struct truth_sum *ret_begun)
{
    uint64_t done = atomic_load_explicit(&tally->done, memory_order_acquire);
    uint64_t begun = atomic_load_explicit(&tally->begun, memory_order_acquire);
    *ret_done = (struct truth_sum){ done, tally->state[done & 1].total, tally->state[done & 1].max };
    *ret_begun = (struct truth_sum){ begun, tally->state[begun & 1].total, tally->state[begun & 1].max };
}

void truth_sum_add(struct truth_sum *sum, const struct truth_sum *more)
{
    sum->count += more->count;
    sum->total += more->total;
    if (sum->max < more->max)
        sum->max = more->max;
}

const char *truth_kind_name(uint32_t kind)
{
    static const char *const names[TRUTH_KINDS] = {
#define NT_KIND(number, symbol, name, unit, policy, text) [number] = name,
#include <nt/kinds.def>
#undef NT_KIND
        [TRUTH_KINDS - 1] = "request-done",
    };
    return kind < TRUTH_KINDS && names[kind] ? names[kind] : "?";
}
