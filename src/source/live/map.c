/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, checking and mapping a log file. Which pages are there is asked of the file system (SEEK_DATA), not
   read from the log: reading a hole of a tmpfs through a mapping would allocate memory for it. */
#include "source/live/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nt/error.h>

#include "base/error.h"

/* More than any cap that a program can ask for; a larger file is a mistake or a trap. */
#define FILE_SIZE_MAX (UINT64_C(1) << 43)

/* ---- The header ---- */

__attribute__((format(printf, 2, 3))) static void say(char text[LIVE_MAP_TEXT], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, LIVE_MAP_TEXT, format, list);
    va_end(list);
}

struct region_rule {
    const char *name;
    uint32_t entry_size; /* bytes, 0: not looked at */
    uint64_t least;      /* bytes of the region; 0: it may be missing */
};

static const struct region_rule region_rules[LIVE_MAP_REGIONS] = {
    [NT_REGION_BITMAP] = { "bitmap", 0, 0 },
    [NT_REGION_REDO] = { "redo", sizeof(struct nt_layout_redo), sizeof(struct nt_layout_redo) },
    [NT_REGION_KINDS] = { "kinds", sizeof(struct nt_layout_kind), NT_LAYOUT_PAGE },
    [NT_REGION_CONTROL] = { "control", sizeof(uint64_t), NT_LAYOUT_PAGE },
    [NT_REGION_CHANGES] = { "changes", 0, 0 },
    [NT_REGION_OBJECTS] = { "objects", sizeof(struct nt_layout_object), NT_LAYOUT_PAGE },
    [NT_REGION_BLOCKS] = { "blocks", 64, NT_LAYOUT_PAGE },
    [NT_REGION_STRINGS] = { "strings", 16, NT_LAYOUT_PAGE },
    [NT_REGION_RINGS] = { "rings", sizeof(struct nt_layout_ring), NT_LAYOUT_PAGE },
    [NT_REGION_RECORDS] = { "records", NT_LAYOUT_SLOT, NT_LAYOUT_PAGE },
    [NT_REGION_SESSIONS] = { "sessions", sizeof(struct nt_layout_session), 0 },
    [NT_REGION_SETTLERS] = { "settlers", sizeof(struct nt_layout_settler), 0 },
    [NT_REGION_SETTLEMENT] = { "settlement", NT_LAYOUT_PAGE, 0 },
    [NT_REGION_GIVEN] = { "given", sizeof(uint64_t), 0 },
};

static const struct region_rule *region_rule(uint32_t id)
{
    return id < LIVE_MAP_REGIONS && region_rules[id].name != NULL ? &region_rules[id] : NULL;
}

static int check_region(const struct nt_layout_header *header, uint32_t number, char *ret_text)
{
    const struct nt_layout_region *region = &header->regions[number];
    const struct region_rule *rule = region_rule(region->id);
    const char *name = rule != NULL ? rule->name : "unknown";
    if (region->offset % NT_LAYOUT_PAGE != 0 || region->size % NT_LAYOUT_PAGE != 0) {
        say(ret_text, "region %u (%s) is not page-aligned", region->id, name);
        return -NT_EFORMAT;
    }
    if (region->offset < 2 * NT_LAYOUT_PAGE || region->offset > header->file_size ||
        region->size > header->file_size - region->offset) {
        say(ret_text, "region %u (%s) lies outside of the file", region->id, name);
        return -NT_EFORMAT;
    }
    if (rule == NULL) {
        return 0;
    }
    if (rule->entry_size != 0 && region->entry_size != rule->entry_size) {
        say(ret_text, "region %u (%s) has entries of %u bytes, not %u", region->id, name, region->entry_size,
            rule->entry_size);
        return -NT_EFORMAT;
    }
    if (region->size < rule->least) {
        say(ret_text, "region %u (%s) is too small", region->id, name);
        return -NT_EFORMAT;
    }
    for (uint32_t i = 0; i < number; i++) {
        const struct nt_layout_region *other = &header->regions[i];
        bool apart = region->offset >= other->offset + other->size || other->offset >= region->offset + region->size;
        if (region->id == other->id || !apart) {
            say(ret_text, "regions %u and %u overlap", other->id, region->id);
            return -NT_EFORMAT;
        }
    }
    return 0;
}

static int check_regions(const struct nt_layout_header *header, char *ret_text)
{
    if (header->region_count > NT_LAYOUT_REGIONS) {
        say(ret_text, "%u regions, at most %u are possible", header->region_count, NT_LAYOUT_REGIONS);
        return -NT_EFORMAT;
    }
    bool there[LIVE_MAP_REGIONS] = { false };
    for (uint32_t i = 0; i < header->region_count; i++) {
        int error = check_region(header, i, ret_text);
        if (error < 0) {
            return error;
        }
        if (region_rule(header->regions[i].id) != NULL) {
            there[header->regions[i].id] = true;
        }
    }
    for (uint32_t id = 0; id < LIVE_MAP_REGIONS; id++) {
        if (region_rules[id].least > 0 && !there[id]) {
            say(ret_text, "region %u (%s) is missing", id, region_rules[id].name);
            return -NT_EFORMAT;
        }
    }
    return 0;
}

static int check_strings(const struct nt_layout_header *header, char *ret_text)
{
    static const uint16_t room[NT_HEADER_STRINGS] = {
        [NT_HEADER_HOST] = sizeof header->host, [NT_HEADER_DOMAIN] = sizeof header->domain,
        [NT_HEADER_NODE] = sizeof header->node, [NT_HEADER_PROGRAM] = sizeof header->program,
        [NT_HEADER_NAME] = sizeof header->name,
    };
    for (int i = 0; i < NT_HEADER_STRINGS; i++) {
        if (header->string_size[i] > room[i]) {
            say(ret_text, "string %d of the header has %u bytes, at most %u are possible", i, header->string_size[i],
                room[i]);
            return -NT_EFORMAT;
        }
    }
    return 0;
}

int live_map_check(const struct nt_layout_header *header, uint64_t size, char ret_text[LIVE_MAP_TEXT])
{
    enum { VERSION_BYTE = 7 };
    if (memcmp(header->magic, NT_LAYOUT_MAGIC, VERSION_BYTE) != 0) {
        say(ret_text, "not a log: wrong magic at byte 0");
        return -NT_EFORMAT;
    }
    if (header->magic[VERSION_BYTE] != NT_LAYOUT_VERSION || header->version != NT_LAYOUT_VERSION) {
        unsigned version = header->magic[VERSION_BYTE] != NT_LAYOUT_VERSION ? header->magic[VERSION_BYTE]
                                                                            : header->version;
        say(ret_text, "log of version %u, this build reads %u", version, NT_LAYOUT_VERSION);
        return -NT_EVERSION;
    }
    if (header->header_size != sizeof *header) {
        say(ret_text, "header of %u bytes, not %zu", header->header_size, sizeof *header);
        return -NT_EFORMAT;
    }
    if (header->file_size % NT_LAYOUT_PAGE != 0 || header->file_size < 2 * NT_LAYOUT_PAGE ||
        header->file_size > FILE_SIZE_MAX) {
        say(ret_text, "size of %llu bytes in the header is not possible", (unsigned long long)header->file_size);
        return -NT_EFORMAT;
    }
    if (size < header->file_size) {
        say(ret_text, "truncated: ends at byte %llu of %llu", (unsigned long long)size,
            (unsigned long long)header->file_size);
        return -NT_ETRUNCATED;
    }
    int error = check_regions(header, ret_text);
    return error < 0 ? error : check_strings(header, ret_text);
}

/* ---- The file ---- */

static void map_take_header(struct live_map *map)
{
    map->size = map->header.file_size;
    for (uint32_t i = 0; i < map->header.region_count; i++) {
        const struct nt_layout_region *region = &map->header.regions[i];
        if (region_rule(region->id) != NULL) {
            map->regions[region->id] = (struct live_map_region){ region->offset, region->size };
        }
    }
}

static int fail_system(char *ret_text, const char *what)
{
    int error = errno;
    say(ret_text, "%s%s", what, nt_error_text(error));
    return -error;
}

static int check_file(const struct stat *status, const struct live_map_owner *owner, char *ret_text)
{
    if (!S_ISREG(status->st_mode)) {
        say(ret_text, "not a regular file");
        return -EINVAL;
    }
    if (!owner->any && status->st_uid != owner->uid) {
        say(ret_text, "owned by user %u, not by %u as its directory", (unsigned)status->st_uid, owner->uid);
        return -EPERM;
    }
    if (!owner->any && status->st_nlink != 1) {
        say(ret_text, "has %lu names, not one", (unsigned long)status->st_nlink);
        return -EPERM;
    }
    return 0;
}

static int map_file(struct live_map *map, const struct live_map_owner *owner, char *ret_text)
{
    struct stat status;
    if (fstat(map->fd, &status) != 0) {
        return fail_system(ret_text, "");
    }
    int error = check_file(&status, owner, ret_text);
    if (error < 0) {
        return error;
    }
    map->device = status.st_dev;
    map->inode = status.st_ino;
    map->uid = status.st_uid;
    /* Read, not mapped: needs no guard yet, and a hole stays a hole. */
    ssize_t have = pread(map->fd, &map->header, sizeof map->header, 0);
    if (have < 0) {
        return fail_system(ret_text, "");
    }
    if ((size_t)have < sizeof map->header) {
        bool log = have >= 8 && memcmp(map->header.magic, NT_LAYOUT_MAGIC, 7) == 0;
        say(ret_text, log ? "truncated: ends at byte %zd, within the header" : "not a log: only %zd bytes", have);
        return log ? -NT_ETRUNCATED : -NT_EFORMAT;
    }
    error = live_map_check(&map->header, (uint64_t)status.st_size, ret_text);
    if (error < 0) {
        return error;
    }
    map_take_header(map);
    map->backed = calloc((map->size / NT_LAYOUT_PAGE + 63) / 64, sizeof *map->backed);
    void *base = map->backed != NULL ? mmap(NULL, map->size, PROT_READ, MAP_SHARED, map->fd, 0) : MAP_FAILED;
    if (base == MAP_FAILED) {
        return fail_system(ret_text, "cannot be mapped: ");
    }
    map->base = base;
    map->guard = live_guard_new(base, map->size);
    return map->guard != NULL ? 0 : fail_system(ret_text, "");
}

/* Learns of the pages around one that is asked for. Whether that one is there. */
static bool map_learn(struct live_map *map, uint64_t page, uint64_t *ret_next)
{
    const uint64_t pages = map->size / NT_LAYOUT_PAGE;
    off_t data = lseek(map->fd, (off_t)(page * NT_LAYOUT_PAGE), SEEK_DATA);
    uint64_t first = data < 0 ? pages : (uint64_t)data / NT_LAYOUT_PAGE;
    if (data < 0 && errno != ENXIO) {
        /* A file system that cannot tell; none that keeps files in memory. */
        first = page;
        data = (off_t)(page * NT_LAYOUT_PAGE);
    }
    *ret_next = first;
    if (first > page) {
        return false;
    }
    /* Holes may begin within a page where blocks are smaller; there they cost nothing to read. */
    off_t hole = lseek(map->fd, data, SEEK_HOLE);
    uint64_t end = hole < 0 ? pages : ((uint64_t)hole + NT_LAYOUT_PAGE - 1) / NT_LAYOUT_PAGE;
    end = end < pages ? end : pages;
    for (uint64_t i = page; i < end; i++) {
        map->backed[i / 64] |= UINT64_C(1) << i % 64;
    }
    return page < end;
}

static inline bool map_knows_page(const struct live_map *map, uint64_t page)
{
    return !map->file || (map->backed[page / 64] >> page % 64 & 1) != 0;
}

/* Whether the program had memory there, as it says itself. */
static bool map_claims(struct live_map *map, uint64_t page)
{
    const struct live_map_region *bitmap = &map->regions[NT_REGION_BITMAP];
    uint64_t at = bitmap->offset + page / 8, next;
    if (page / 8 >= bitmap->size ||
        (!map_knows_page(map, at / NT_LAYOUT_PAGE) && !map_learn(map, at / NT_LAYOUT_PAGE, &next))) {
        return false;
    }
    return (live_load8(map->base + at) >> page % 8 & 1) != 0;
}

/* Copying a file may leave out pages of zeros. They are taken for there where the program says so, near others that
   are: so that what begins in a page can be read to its end, and no file can claim much. The file is not read there,
   which might give it memory: zeros are mapped in its place. */
static bool map_is_zeros(struct live_map *map, uint64_t page)
{
    enum { NEAR = 4 };
    if (!map->named || !map_claims(map, page)) {
        return false;
    }
    uint64_t from = page > NEAR ? page - NEAR : 0;
    off_t data = lseek(map->fd, (off_t)(from * NT_LAYOUT_PAGE), SEEK_DATA);
    if (data < 0 || (uint64_t)data / NT_LAYOUT_PAGE > page + NEAR) {
        return false;
    }
    void *at = (void *)(uintptr_t)(map->base + page * NT_LAYOUT_PAGE);
    if (mmap(at, NT_LAYOUT_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return false;
    }
    map->backed[page / 64] |= UINT64_C(1) << page % 64;
    return true;
}

static inline bool map_has_page(struct live_map *map, uint64_t page)
{
    uint64_t next;
    return map_knows_page(map, page) || map_learn(map, page, &next) || map_is_zeros(map, page);
}

static bool map_has(struct live_map *map, uint64_t offset, uint64_t size)
{
    uint64_t last = (offset + size - 1) / NT_LAYOUT_PAGE;
    for (uint64_t page = offset / NT_LAYOUT_PAGE; page <= last; page++) {
        if (!map_has_page(map, page)) {
            return false;
        }
    }
    return true;
}

int live_map_open(struct live_map *map, int directory, const char *name, const struct live_map_owner *owner,
                  char ret_text[LIVE_MAP_TEXT])
{
    /* O_NONBLOCK: a fifo of that name must not hold us up. A named file may be a link to one. */
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (owner->any ? 0 : O_NOFOLLOW);
    *map = (struct live_map){ .file = true, .named = owner->any, .fd = openat(directory, name, flags) };
    int error = map->fd < 0 ? fail_system(ret_text, "") : 0;
    if (error < 0) {
        *map = (struct live_map){ 0 };
        return error;
    }
    error = map_file(map, owner, ret_text);
    if (error == 0 && !map_has(map, 0, 2 * NT_LAYOUT_PAGE)) {
        say(ret_text, "the first two pages are missing");
        error = -NT_EFORMAT;
    }
    if (error < 0) {
        live_map_close(map);
    }
    return error;
}

int live_map_open_memory(struct live_map *map, const void *data, size_t size, char ret_text[LIVE_MAP_TEXT])
{
    *map = (struct live_map){ 0 };
    if (size < sizeof map->header) {
        say(ret_text, "not a log: only %zu bytes", size);
        return -NT_EFORMAT;
    }
    memcpy(&map->header, data, sizeof map->header);
    int error = live_map_check(&map->header, size, ret_text);
    if (error < 0) {
        *map = (struct live_map){ 0 };
        return error;
    }
    map_take_header(map);
    map->base = data;
    return 0;
}

void live_map_close(struct live_map *map)
{
    live_guard_free(map->guard);
    if (map->file && map->base != NULL) {
        /* munmap takes no pointer to const, but does not write. */
        (void)munmap((void *)(uintptr_t)map->base, map->size);
    }
    free(map->backed);
    if (map->file) {
        (void)close(map->fd);
    }
    *map = (struct live_map){ 0 };
}

/* ---- Access ---- */

const void *live_map_at(struct live_map *map, enum nt_layout_region_id region, uint64_t offset, uint64_t size)
{
    const struct live_map_region *at = &map->regions[region];
    if (offset > at->size || size > at->size - offset || size == 0) {
        return NULL;
    }
    return map_has(map, at->offset + offset, size) ? map->base + at->offset + offset : NULL;
}

uint64_t live_map_next(struct live_map *map, enum nt_layout_region_id region, uint64_t offset)
{
    const struct live_map_region *at = &map->regions[region];
    if (offset >= at->size) {
        return at->size;
    }
    uint64_t page = (at->offset + offset) / NT_LAYOUT_PAGE;
    uint64_t next = page;
    if (map_has_page(map, page) || map_learn(map, page, &next)) {
        return offset;
    }
    uint64_t found = next * NT_LAYOUT_PAGE - at->offset;
    return found < at->size ? found : at->size;
}

bool live_map_known(const struct live_map *map, enum nt_layout_region_id region, uint64_t offset)
{
    const struct live_map_region *at = &map->regions[region];
    return offset < at->size && map_knows_page(map, (at->offset + offset) / NT_LAYOUT_PAGE);
}

const struct nt_layout_live *live_map_live(const struct live_map *map)
{
    return (const void *)(map->base + NT_LAYOUT_PAGE);
}

int live_map_state(const struct live_map *map)
{
    return map->guard != NULL && live_guard_hit(map->guard) ? -NT_ETRUNCATED : 0;
}

#if defined(__SANITIZE_THREAD__)
#define PAIR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PAIR_TSAN 1
#endif
#endif

#if defined(__x86_64__) && !defined(PAIR_TSAN)
/* One movdqa: at once on processors with AVX (Intel SDM 3A 9.1.1, AMD likewise); older ones may load the halves
   apart, so there two loads must agree. */
static inline struct nt_layout_pair pair_load(const struct nt_layout_pair *pair)
{
    typedef unsigned long long halves __attribute__((vector_size(16), may_alias));
    halves both = *(const volatile halves *)(const void *)pair;
    return (struct nt_layout_pair){ both[0], both[1] };
}

static bool pair_loads_at_once(void)
{
    return __builtin_cpu_supports("avx") != 0;
}
#elif defined(PAIR_TSAN)
static inline struct nt_layout_pair pair_load(const struct nt_layout_pair *pair)
{
    unsigned __int128 both = __atomic_load_n((const unsigned __int128 *)(const void *)pair, __ATOMIC_RELAXED);
    return (struct nt_layout_pair){ (uint64_t)both, (uint64_t)(both >> 64) };
}

static bool pair_loads_at_once(void)
{
    return true;
}
#else
static inline struct nt_layout_pair pair_load(const struct nt_layout_pair *pair)
{
    return (struct nt_layout_pair){ live_load64(&pair->count), live_load64(&pair->total) };
}

static bool pair_loads_at_once(void)
{
    return false;
}
#endif

struct nt_layout_pair live_pair_load(const struct nt_layout_pair *pair)
{
    enum { TURNS = 64 };
    struct nt_layout_pair now = pair_load(pair);
    if (pair_loads_at_once()) {
        return now;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        struct nt_layout_pair again = pair_load(pair);
        if (again.count == now.count && again.total == now.total) {
            break;
        }
        now = again;
    }
    return now;
}
