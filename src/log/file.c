/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's directory and file: found or made safely, mapped, and backed by memory page by page, so that a full
   file system is an error here and never a SIGBUS in the program. Holds no descriptor once the file is mapped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "log/log.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CAP_MIN UINT64_C(524288)

static uint64_t mix(uint64_t value)
{
    /* splitmix64's finalizer (Steele, Lea, Flood 2014) */
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

int log_identity(struct log_identity *ret_identity)
{
    struct log_identity id = { .pid = (uint32_t)getpid(), .uid = (uint32_t)geteuid() };
    struct nt_process_status status;
    int error = nt_process_status(id.pid, &status);
    if (error < 0)
        return error;
    id.start_time = status.start_time;
    id.pid_namespace = nt_process_pid_namespace();
    nt_process_boot_id(id.boot_id);
    /* the kernel gives each exec 16 random bytes; mixed, for they also seed the stack protector */
    uint64_t random[2] = { 0, 0 };
    const void *given = (const void *)getauxval(AT_RANDOM); /* NOLINT: an address by contract */
    if (given)
        memcpy(random, given, sizeof(random));
    id.image = mix(mix(random[0]) + random[1]);
    *ret_identity = id;
    return 0;
}

/* ---- directory ---- */

static int directory_check(int fd, bool made_by_us, uint32_t flags)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (st.st_uid != geteuid())
        return -EPERM;
    mode_t mode = flags & NT_LOG_GROUP_READABLE ? 0750 : 0700;
    if (made_by_us && (st.st_mode & 0777) != mode)
        return fchmod(fd, mode) == 0 ? 0 : -errno;
    return st.st_mode & 022 ? -EPERM : 0;
}

/* Opens the directory, makes it if need be. Returns a descriptor or a negative code. */
int log_directory_open(const struct log_settings *settings, char *ret_path, size_t path_size)
{
    int size;
    if (settings->directory[0])
        size = snprintf(ret_path, path_size, "%s", settings->directory);
    else
        size = snprintf(ret_path, path_size, "/dev/shm/ntscope-%u", (unsigned)geteuid());
    if (size < 0 || (size_t)size >= path_size)
        return -ENAMETOOLONG;
    const char *last = strrchr(ret_path, '/');
    /* a directory of one run of `ntscope stat -- CMD` is not made again once that is over */
    bool may = strncmp(last ? last + 1 : ret_path, "ntscope-run-", 12) != 0;
    mode_t mode = settings->flags & NT_LOG_GROUP_READABLE ? 0750 : 0700;
    bool made = may && mkdir(ret_path, mode) == 0;
    if (made) /* whatever the umask is */
        chmod(ret_path, mode);
    int fd = log_openat(AT_FDCWD, ret_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = directory_check(fd, made, settings->flags);
    if (error < 0) {
        log_fd_close(fd);
        return error;
    }
    return fd;
}

/* ---- pages ---- */

bool log_is_backed(const struct log_map *map, const void *address, uint64_t bytes)
{
    uint64_t from = (uint64_t)((const unsigned char *)address - map->base);
    for (uint64_t page = from / NT_LAYOUT_PAGE; page <= (from + bytes - 1) / NT_LAYOUT_PAGE; page++)
        if (!(__atomic_load_n(&map->bitmap[page / 64], __ATOMIC_ACQUIRE) >> page % 64 & 1))
            return false;
    return true;
}

/* How many of them were not there. */
static uint64_t pages_mark(struct log_map *map, uint64_t first, uint64_t end)
{
    uint64_t fresh = 0;
    for (uint64_t page = first; page < end;) {
        uint64_t bits = 64 - page % 64 < end - page ? 64 - page % 64 : end - page;
        uint64_t word = (bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1) << page % 64;
        uint64_t before = __atomic_fetch_or(&map->bitmap[page / 64], word, __ATOMIC_RELEASE);
        fresh += (uint64_t)__builtin_popcountll(word & ~before);
        page += bits;
    }
    return fresh;
}

/* Takes room below the cap, so that threads together never go beyond it; what turns out not to be needed is given back.
   One that is killed meanwhile leaves it taken. */
static bool room_take(struct log_map *map, uint64_t size, uint64_t kept)
{
    uint64_t backed = __atomic_load_n(&map->live->backed, __ATOMIC_RELAXED);
    do {
        if (backed + size + kept > map->header->cap)
            return false;
    } while (!__atomic_compare_exchange_n(&map->live->backed, &backed, backed + size, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

bool log_back(struct log_map *map, const void *address, uint64_t bytes)
{
    int saved = errno;
    uint64_t from = (uint64_t)((const unsigned char *)address - map->base);
    uint64_t first = from / NT_LAYOUT_PAGE, end = (from + bytes + NT_LAYOUT_PAGE - 1) / NT_LAYOUT_PAGE;
    if (end * NT_LAYOUT_PAGE > map->size)
        end = map->size / NT_LAYOUT_PAGE;
    if (first >= end)
        return false;
    uint64_t size = (end - first) * NT_LAYOUT_PAGE;
    /* the last part of the cap is for blocks alone, so that closed objects can always be folded and used again */
    uint64_t kept = (const unsigned char *)address >= map->blocks && (const unsigned char *)address < map->strings
                        ? 0
                        : map->header->cap / 32;
    if (!room_take(map, size, kept))
        return false;
    bool done = madvise(map->base + first * NT_LAYOUT_PAGE, size, MADV_POPULATE_WRITE) == 0;
    uint64_t used = done ? pages_mark(map, first, end) * NT_LAYOUT_PAGE : 0;
    if (used < size)
        __atomic_fetch_sub(&map->live->backed, size - used, __ATOMIC_RELAXED);
    errno = saved;
    return done;
}

/* ---- file ---- */

static void *map_file(int fd, uint64_t size)
{
    /* Under mlockall(MCL_FUTURE) a writable mapping is populated at once, all of it: so map without access,
       unlock, and only then allow access. */
    void *base = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    munlock(base, size);
    if (mprotect(base, size, PROT_READ | PROT_WRITE) != 0) {
        munmap(base, size);
        return NULL;
    }
    return base;
}

static void string_put(struct nt_layout_header *header, int which, char *at, size_t room, const char *text)
{
    size_t size = strnlen(text, room);
    memcpy(at, text, size);
    header->string_size[which] = (uint16_t)size;
}

static void header_fill(struct nt_log *log, struct nt_layout_header *header, const struct log_identity *identity)
{
    const struct log_settings *settings = &log->settings;
    memcpy(header->magic, NT_LAYOUT_MAGIC, sizeof(header->magic));
    header->version = NT_LAYOUT_VERSION;
    header->header_size = sizeof(*header);
    header->flags = nt_clock_tsc_ ? NT_HEADER_CLOCK_TSC : 0;
    uint64_t name = mix(identity->pid_namespace + log->index);
    for (const char *c = settings->name; *c; c++)
        name = mix(name + (unsigned char)*c);
    header->id = mix(identity->image ^ mix(identity->start_time ^ (uint64_t)identity->pid << 32) ^ name);
    header->id += !header->id;
    header->session_first = log_session_first(header->id);
    header->pid = identity->pid;
    header->uid = identity->uid;
    header->start_time = identity->start_time;
    header->pid_namespace = identity->pid_namespace;
    header->image = identity->image;
    memcpy(header->boot_id, identity->boot_id, sizeof(header->boot_id));
    header->opened = nt_now();
    header->ring_bytes = settings->ring_bytes;
    header->index = log->index;
    header->origin = log->origin;
    header->origin_pid = log->origin_pid;
    header->flags |= log->origin ? NT_HEADER_FORKED : 0;
    string_put(header, NT_HEADER_HOST, header->host, sizeof(header->host), settings->host);
    string_put(header, NT_HEADER_DOMAIN, header->domain, sizeof(header->domain), settings->domain);
    string_put(header, NT_HEADER_NODE, header->node, sizeof(header->node), settings->node);
    string_put(header, NT_HEADER_PROGRAM, header->program, sizeof(header->program), program_invocation_short_name);
    string_put(header, NT_HEADER_NAME, header->name, sizeof(header->name), settings->name);
}

/* Plans a file that the process's limits allow: beyond that of a file's size ftruncate would not fail but kill, and
   of a limited address space the program wants most for itself. */
static int file_plan(struct nt_layout_header *plan, uint64_t cap)
{
    const struct {
        __rlimit_resource_t resource;
        uint64_t part;
        int error;
    } limits[] = { { RLIMIT_FSIZE, 1, -EFBIG }, { RLIMIT_AS, 8, -ENOMEM } };
    uint64_t size = log_layout_plan(plan, cap);
    for (int i = 0; i < 2; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
            continue;
        while (size > limit.rlim_cur / limits[i].part && cap / 2 >= CAP_MIN)
            size = log_layout_plan(plan, cap /= 2);
        if (size > limit.rlim_cur / limits[i].part)
            return limits[i].error;
    }
    return 0;
}

/* The file's first pages: header, live page, bitmap, redo. */
static int file_fill(struct nt_log *log, int fd, const struct log_identity *identity)
{
    struct nt_layout_header plan = { 0 };
    int error = file_plan(&plan, log->settings.cap_bytes);
    if (error < 0)
        return error;
    uint64_t size = plan.file_size;
    if (ftruncate(fd, (off_t)size) != 0)
        return -errno;
    struct log_map *map = &log->map;
    map->size = size;
    map->base = map_file(fd, size);
    if (!map->base)
        return -errno;
    uint64_t first = plan.regions[1].offset; /* all before the redo area */
    if (madvise(map->base, first, MADV_POPULATE_WRITE) != 0)
        return errno == EFAULT ? -ENOSPC : -errno;
    memcpy(map->base, &plan, sizeof(plan));
    header_fill(log, (struct nt_layout_header *)(void *)map->base, identity);
    if (!log_layout_bind(map))
        return -EINVAL;
    map->live->backed = pages_mark(map, 0, first / NT_LAYOUT_PAGE) * NT_LAYOUT_PAGE;
    map->live->lock = 1; /* held until the program's own object is there: log_open_file */
    map->live->blocks = 1;
    map->live->strings = 1;
    return log_back(map, map->redo, sizeof(*map->redo)) && log_object_root(log) ? 0 : -ENOSPC;
}

static int file_create(struct nt_log *log, int directory, const char *name, const struct log_identity *identity)
{
    char temporary[256];
    /* unlike any other process's, and any other copy's of the library in this one */
    snprintf(temporary, sizeof(temporary), ".tmp-%llu-%u-%llx-%llx-%u", (unsigned long long)identity->pid_namespace,
             identity->pid, (unsigned long long)identity->image, (unsigned long long)(uintptr_t)&log_table, log->index);
    mode_t mode = log->settings.flags & NT_LOG_GROUP_READABLE ? 0640 : 0600;
    unlinkat(directory, temporary, 0);
    int fd = log_openat(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int error = fchmod(fd, mode) == 0 ? file_fill(log, fd, identity) : -errno;
    /* the name appears only once the file is whole */
    if (error == 0 && renameat2(directory, temporary, directory, name, RENAME_NOREPLACE) != 0)
        error = -errno;
    if (error < 0)
        unlinkat(directory, temporary, 0);
    log_fd_close(fd);
    return error;
}

static bool file_is_ours(const struct log_map *map, const struct log_identity *identity)
{
    const struct nt_layout_header *header = (const struct nt_layout_header *)(void *)map->base;
    return memcmp(header->magic, NT_LAYOUT_MAGIC, sizeof(header->magic)) == 0 && header->pid == identity->pid &&
           header->start_time == identity->start_time && header->image == identity->image &&
           header->file_size == map->size;
}

static int file_check(int fd, uint64_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 || (uint64_t)st.st_size < 2 * NT_LAYOUT_PAGE)
        return -EPERM;
    *ret_size = (uint64_t)st.st_size;
    return 0;
}

/* Another copy of the library in this process may have made the file already. */
static int file_attach(struct nt_log *log, int directory, const char *name, const struct log_identity *identity)
{
    int fd = log_openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = file_check(fd, &log->map.size);
    if (error == 0) {
        log->map.base = map_file(fd, log->map.size);
        error = log->map.base ? 0 : -errno;
    }
    log_fd_close(fd);
    if (error < 0)
        return error;
    return file_is_ours(&log->map, identity) && log_layout_bind(&log->map) ? 0 : -EEXIST;
}

static void map_drop(struct log_map *map)
{
    if (map->base)
        munmap(map->base, map->size);
    memset(map, 0, sizeof(*map));
}

/* Finds or makes the file and maps it. 0: found, 1: made and locked, or a negative code and nothing is mapped. */
int log_file_open(struct nt_log *log, const struct log_identity *identity)
{
    char path[LOG_PATH], name[192];
    int directory = log_directory_open(&log->settings, path, sizeof(path));
    if (directory < 0)
        return directory;
    snprintf(name, sizeof(name), "%s.%llu.%u.%llu.%016llx.ntlog", log->settings.name,
             (unsigned long long)identity->pid_namespace, identity->pid, (unsigned long long)identity->start_time,
             (unsigned long long)identity->image);
    memset(&log->map, 0, sizeof(log->map));
    int error = -EEXIST;
    for (int turn = 0; turn < 2 && error == -EEXIST; turn++) {
        error = file_attach(log, directory, name, identity);
        if (error == -ENOENT) {
            error = file_create(log, directory, name, identity);
            error = error < 0 ? error : 1;
        }
        if (error < 0)
            map_drop(&log->map);
    }
    log_fd_close(directory);
    if (error < 0)
        return error;
    int size = snprintf(log->path, sizeof(log->path), "%s/%s", path, name);
    if (size < 0 || (size_t)size >= sizeof(log->path))
        log->path[0] = '\0';
    return error;
}
