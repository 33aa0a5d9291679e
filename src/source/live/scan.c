/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories are opened without following a link, and believed only if nobody but their owner can write them. */
#include "source/live/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define SHM "/dev/shm"
#define PREFIX "ntscope-"
#define SUFFIX ".ntlog"
#define TEMPORARY ".tmp-"

int live_scan_init(struct live_scan *scan, const char *directory, const char *const *files, size_t file_count)
{
    *scan = (struct live_scan){ 0 };
    bool whole = true;
    if (directory != NULL) {
        scan->directory = strdup(directory);
        whole = scan->directory != NULL;
    }
    if (whole && file_count > 0) {
        scan->files = calloc(file_count, sizeof *scan->files);
        whole = scan->files != NULL;
    }
    for (size_t i = 0; whole && i < file_count; i++) {
        scan->files[i] = strdup(files[i]);
        whole = scan->files[i] != NULL;
        scan->file_count = i + 1;
    }
    if (!whole) {
        live_scan_fini(scan);
        return -ENOMEM;
    }
    return 0;
}

void live_scan_fini(struct live_scan *scan)
{
    for (size_t i = 0; i < scan->file_count; i++) {
        free(scan->files[i]);
    }
    free(scan->files);
    free(scan->directory);
    *scan = (struct live_scan){ 0 };
}

/* ---- One directory ---- */

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name), end = strlen(suffix);
    return size > end && memcmp(name + size - end, suffix, end) == 0;
}

static bool is_temporary(const char *name)
{
    return strncmp(name, TEMPORARY, sizeof TEMPORARY - 1) == 0;
}

static int is_log(const struct dirent *entry)
{
    return is_temporary(entry->d_name) || (entry->d_name[0] != '.' && ends_with(entry->d_name, SUFFIX));
}

static int scan_names(int directory, const char *path, uint32_t uid, const struct live_scan_sink *sink)
{
    struct dirent **entries = NULL;
    int count = scandirat(directory, ".", &entries, is_log, alphasort);
    if (count < 0) {
        int error = -errno;
        sink->bad(sink->arg, path, error, nt_error_text(error));
        return error == -ENOMEM ? error : 0;
    }
    int result = 0;
    for (int i = 0; i < count; i++) {
        char full[PATH_MAX];
        int size = snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        if (result == 0 && size > 0 && (size_t)size < sizeof full) {
            struct live_scan_file file = {
                .directory = directory,
                .name = entries[i]->d_name,
                .path = full,
                .owner = { .uid = uid },
                .temporary = is_temporary(entries[i]->d_name),
            };
            result = sink->file(sink->arg, &file);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

/* The user whose directory it must be; ANYONE: it was named, so its owner decides. */
#define ANYONE UINT64_MAX

static const char *check_directory(const struct stat *status, uint64_t uid)
{
    if (uid != ANYONE && status->st_uid != uid) {
        return "the directory belongs to another user";
    }
    return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "others may write to the directory" : NULL;
}

static int scan_directory(const char *path, uint64_t uid, bool must_exist, const struct live_scan_sink *sink)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (uid == ANYONE ? 0 : O_NOFOLLOW));
    if (directory < 0) {
        int error = -errno;
        if (error != -ENOENT || must_exist) {
            sink->bad(sink->arg, path, error, nt_error_text(error));
        }
        return 0;
    }
    struct stat status;
    int result = 0;
    if (fstat(directory, &status) != 0) {
        int error = -errno;
        sink->bad(sink->arg, path, error, nt_error_text(error));
    } else if (check_directory(&status, uid) != NULL) {
        sink->bad(sink->arg, path, -EPERM, check_directory(&status, uid));
    } else {
        result = scan_names(directory, path, status.st_uid, sink);
    }
    (void)close(directory);
    return result;
}

/* ---- Which directories ---- */

/* "ntscope-UID": the user, or ANYONE if the name is not of that form. */
static uint64_t directory_user(const char *name)
{
    enum { DIGITS_MAX = 10 };
    const char *digits = name + sizeof PREFIX - 1;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 || *digits == '\0' || strlen(digits) > DIGITS_MAX) {
        return ANYONE;
    }
    uint64_t uid = 0;
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9') {
            return ANYONE;
        }
        uid = uid * 10 + (uint64_t)(*digits - '0');
    }
    return uid;
}

static int is_user_directory(const struct dirent *entry)
{
    return directory_user(entry->d_name) != ANYONE;
}

static int scan_all_users(const struct live_scan_sink *sink)
{
    struct dirent **entries = NULL;
    int count = scandir(SHM, &entries, is_user_directory, alphasort);
    int result = 0;
    for (int i = 0; i < count; i++) {
        char path[sizeof SHM + 1 + NAME_MAX];
        (void)snprintf(path, sizeof path, SHM "/%s", entries[i]->d_name);
        if (result == 0) {
            result = scan_directory(path, directory_user(entries[i]->d_name), false, sink);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

int live_scan_run(const struct live_scan *scan, const struct live_scan_sink *sink)
{
    int result = 0;
    for (size_t i = 0; i < scan->file_count && result == 0; i++) {
        struct live_scan_file file = {
            .directory = AT_FDCWD,
            .name = scan->files[i],
            .path = scan->files[i],
            .owner = { .any = true },
        };
        result = sink->file(sink->arg, &file);
    }
    if (scan->file_count > 0) {
        return result;
    }
    const char *environment = secure_getenv("NTSCOPE_DIR");
    if (scan->directory != NULL) {
        return scan_directory(scan->directory, ANYONE, true, sink);
    }
    if (environment != NULL && environment[0] != '\0') {
        return scan_directory(environment, ANYONE, false, sink);
    }
    if (geteuid() == 0) {
        return scan_all_users(sink);
    }
    char path[sizeof SHM "/" PREFIX + 20];
    (void)snprintf(path, sizeof path, SHM "/" PREFIX "%u", (unsigned)geteuid());
    return scan_directory(path, geteuid(), false, sink);
}
