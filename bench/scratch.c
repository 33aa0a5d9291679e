/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs in a folder of their own; see scratch.h. */
#include "scratch.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/dev/shm/ntscope-bench-XXXXXX";
static bool made;
static pid_t maker;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    (void)remove(path);
    return 0;
}

static void remove_folder(void)
{
    if (getpid() == maker) {
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

const char *scratch_directory(void)
{
    if (made) {
        return folder;
    }
    if (mkdtemp(folder) == NULL) {
        perror("bench: /dev/shm");
        return NULL;
    }
    made = true;
    maker = getpid();
    (void)atexit(remove_folder);
    return folder;
}

nt_log *scratch_log(const char *name, uint64_t ring_bytes, uint64_t cap_bytes)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log = NULL;
    options.name = name;
    options.directory = scratch_directory();
    options.ring_bytes = ring_bytes;
    options.cap_bytes = cap_bytes;
    if (options.directory == NULL) {
        return NULL;
    }
    int error = nt_log_open(&options, &log);
    if (error != 0) {
        fprintf(stderr, "bench: log %s: error %d\n", name, error);
        nt_log_close(log);
        return NULL;
    }
    return log;
}

void scratch_log_free(nt_log *take_log)
{
    if (take_log == NULL) {
        return;
    }
    char path[1024];
    (void)snprintf(path, sizeof path, "%s", nt_log_path(take_log));
    nt_log_close(take_log);
    (void)unlink(path);
}

nt_object scratch_object(nt_log *log, const char *prefix, uint32_t number, uint64_t mask)
{
    char name[64];
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    (void)snprintf(name, sizeof name, "%s%u", prefix, number);
    options.name = name;
    options.mask = mask;
    options.flags = NT_OBJECT_MASKED;
    return nt_object_new(log, &options);
}
