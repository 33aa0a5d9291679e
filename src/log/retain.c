/* SPDX-License-Identifier: BSD-3-Clause */
/* How many logs of dead programs are kept: the newest 4 of a log name, at most 256 MiB and 1024 of a user's. A log is
   dead when its process, in our own pid namespace, is gone, a zombie, or is us before an exec. Whatever cannot
   be told is left alone. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "log/log.h"

#define KEEP_OF_NAME 4u
#define KEEP_BYTES UINT64_C(268435456)
#define DEAD_MAX 1024u
#define SUFFIX ".ntlog"

struct dead_log {
    int64_t made; /* ns since 1970 */
    uint64_t bytes;
    uint32_t name_size; /* of the log's name, the first part of `file` */
    char file[192];
};

struct retain_scratch {
    uint32_t count;
    char entries[16384] __attribute__((aligned(8)));
    struct dead_log dead[DEAD_MAX];
};

struct name_parts {
    uint32_t name_size;
    uint64_t pid_namespace, pid, start_time, image;
};

/* Takes a number off the end of text[0, *size), and the dot before it. */
static bool number_take(const char *text, size_t *size, unsigned base, uint64_t *ret_number)
{
    uint64_t value = 0, place = 1;
    size_t at = *size;
    while (at > 0 && text[at - 1] != '.') {
        char c = text[--at];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 99;
        if (digit >= base)
            return false;
        value += digit * place;
        place *= base;
    }
    if (at == 0 || at == *size)
        return false;
    *size = at - 1;
    *ret_number = value;
    return true;
}

/* NAME.PIDNS.PID.START.IMAGE.ntlog */
static bool name_split(const char *file, struct name_parts *ret_parts)
{
    size_t size = strlen(file), suffix = sizeof(SUFFIX) - 1;
    struct name_parts parts = { 0 };
    if (size <= suffix || size >= sizeof(((struct dead_log *)0)->file) || strcmp(file + size - suffix, SUFFIX) != 0)
        return false;
    size -= suffix;
    if (!number_take(file, &size, 16, &parts.image) || !number_take(file, &size, 10, &parts.start_time) ||
        !number_take(file, &size, 10, &parts.pid) || !number_take(file, &size, 10, &parts.pid_namespace) || !size)
        return false;
    parts.name_size = (uint32_t)size;
    *ret_parts = parts;
    return parts.pid <= UINT32_MAX;
}

static bool is_dead(const struct name_parts *parts, const struct log_identity *identity)
{
    if (!identity->pid_namespace || parts->pid_namespace != identity->pid_namespace)
        return false;
    if (parts->pid == identity->pid && parts->start_time == identity->start_time)
        return parts->image != identity->image;
    struct nt_process_status status;
    int error = nt_process_status((uint32_t)parts->pid, &status);
    if (error < 0)
        return error == -ESRCH;
    return status.start_time != parts->start_time || status.state == 'Z' || status.state == 'X';
}

/* Where a dead log is noted. As many as there are places stay: for one more the oldest is removed. NULL: the new
   one is the oldest. */
static struct dead_log *dead_place(struct retain_scratch *scratch, int directory, int64_t made)
{
    if (scratch->count < DEAD_MAX)
        return &scratch->dead[scratch->count++];
    struct dead_log *oldest = &scratch->dead[0];
    for (uint32_t i = 1; i < DEAD_MAX; i++)
        if (scratch->dead[i].made < oldest->made)
            oldest = &scratch->dead[i];
    if (oldest->made >= made)
        return NULL;
    unlinkat(directory, oldest->file, 0);
    return oldest;
}

static void entry_look(struct retain_scratch *scratch, int directory, const char *file,
                       const struct log_identity *identity)
{
    struct name_parts parts;
    struct stat st;
    if (!name_split(file, &parts) || !is_dead(&parts, identity))
        return;
    if (fstatat(directory, file, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_nlink != 1)
        return;
    int64_t made = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    struct dead_log *dead = dead_place(scratch, directory, made);
    if (!dead) {
        unlinkat(directory, file, 0);
        return;
    }
    dead->made = made;
    dead->bytes = (uint64_t)st.st_blocks * 512;
    dead->name_size = parts.name_size;
    memcpy(dead->file, file, strlen(file) + 1);
}

static void directory_read(struct retain_scratch *scratch, int directory, const struct log_identity *identity)
{
    for (;;) {
        long size = syscall(SYS_getdents64, directory, scratch->entries, sizeof(scratch->entries));
        if (size <= 0)
            return;
        for (long at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(scratch->entries + at);
            entry_look(scratch, directory, entry->d_name, identity);
            at += entry->d_reclen;
        }
    }
}

/* Newest first; insertion sort, for the list is short and nothing here may allocate. */
static void dead_sort(struct retain_scratch *scratch)
{
    for (uint32_t i = 1; i < scratch->count; i++) {
        struct dead_log moving = scratch->dead[i];
        uint32_t at = i;
        for (; at > 0 && scratch->dead[at - 1].made < moving.made; at--)
            scratch->dead[at] = scratch->dead[at - 1];
        scratch->dead[at] = moving;
    }
}

static uint32_t newer_of_name(const struct retain_scratch *scratch, uint32_t which)
{
    const struct dead_log *dead = &scratch->dead[which];
    uint32_t newer = 0;
    for (uint32_t i = 0; i < which; i++)
        newer += scratch->dead[i].name_size == dead->name_size &&
                 memcmp(scratch->dead[i].file, dead->file, dead->name_size) == 0;
    return newer;
}

static void retain_in(int directory, const struct log_identity *identity, const char *name)
{
    struct retain_scratch *scratch = mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                          -1, 0);
    if (scratch == MAP_FAILED)
        return;
    directory_read(scratch, directory, identity);
    dead_sort(scratch);
    uint64_t kept = 0;
    for (uint32_t i = 0; i < scratch->count; i++) {
        const struct dead_log *dead = &scratch->dead[i];
        bool same = dead->name_size == strlen(name) && memcmp(dead->file, name, dead->name_size) == 0;
        kept += dead->bytes;
        if (kept > KEEP_BYTES || (same && newer_of_name(scratch, i) >= KEEP_OF_NAME))
            unlinkat(directory, dead->file, 0);
    }
    munmap(scratch, sizeof(*scratch));
}

/* Called after each open, without a lock: with many files it takes a while. */
void log_retain(const struct log_settings *settings)
{
    char path[LOG_PATH];
    struct log_identity identity;
    const char *keep = secure_getenv("NTSCOPE_KEEP");
    if ((keep && strcmp(keep, "all") == 0) || log_identity(&identity) < 0)
        return;
    int directory = log_directory_open(settings, path, sizeof(path));
    if (directory < 0)
        return;
    retain_in(directory, &identity, settings->name);
    log_fd_close(directory);
}
