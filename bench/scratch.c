/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs in a folder of their own; see scratch.h. */
#include "scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
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

/* The offset of the rings' directory in the file, 0 if it cannot be told. */
static off_t rings_of(const struct nt_layout_header *header)
{
    for (uint32_t i = 0; i < header->region_count && i < NT_LAYOUT_REGIONS; i++) {
        if (header->regions[i].id == NT_REGION_RINGS) {
            return (off_t)header->regions[i].offset;
        }
    }
    return 0;
}

bool scratch_log_is_whole(const nt_log *log)
{
    struct nt_layout_header header;
    struct nt_layout_live live;
    uint64_t dropped = 0;
    int file = open(nt_log_path(log), O_RDONLY | O_CLOEXEC);
    bool good = file >= 0 && pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                pread(file, &live, sizeof live, NT_LAYOUT_PAGE) == (ssize_t)sizeof live;
    for (uint32_t i = 0; good && i < live.rings; i++) {
        struct nt_layout_ring ring;
        good = pread(file, &ring, sizeof ring, rings_of(&header) + (off_t)(i * sizeof ring)) == (ssize_t)sizeof ring;
        dropped += good ? ring.dropped : 0;
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (!good || live.dropped_no_ring + dropped + live.refused_objects + live.refused_tallies + live.stale > 0) {
        fprintf(
            stderr, "bench: log %s: dropped without a ring %llu, in rings %llu, refused objects %llu, tallies %llu\n",
            nt_log_path(log), good ? (unsigned long long)live.dropped_no_ring : 0, (unsigned long long)dropped,
            good ? (unsigned long long)live.refused_objects : 0, good ? (unsigned long long)live.refused_tallies : 0);
        return false;
    }
    return true;
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

struct job {
    int (*run)(void *arg);
    void *arg;
    int result;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    job->result = job->run(job->arg);
    return NULL;
}

int scratch_in_thread(int (*run)(void *arg), void *arg)
{
    struct job job = { run, arg, -1 };
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_job, &job) != 0 || pthread_join(thread, NULL) != 0) {
        fprintf(stderr, "bench: no thread\n");
        return -1;
    }
    return job.result;
}
