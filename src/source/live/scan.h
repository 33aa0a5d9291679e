/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding log files: in the user's directory, in all users' for root, or those that were named. Knows names and
   owners, not what is in a file. */
#ifndef NT_SOURCE_LIVE_SCAN_H
#define NT_SOURCE_LIVE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "source/live/map.h"

struct live_scan {
    char *directory; /* NULL: the default */
    char **files;    /* these instead, if there are any */
    size_t file_count;
};

struct live_scan_file {
    int directory;    /* descriptor */
    const char *name; /* below it */
    const char *path; /* to show */
    struct live_map_owner owner;
    bool temporary; /* ".tmp-…": not finished, or left behind */
};

/* A result of `file` other than 0 ends the scan, which returns it. */
struct live_scan_sink {
    int (*file)(void *arg, const struct live_scan_file *file);
    void (*bad)(void *arg, const char *path, int error, const char *text);
    void *arg;
};

/* Copies what it is given: directory may be NULL. 0 or -ENOMEM. */
int live_scan_init(struct live_scan *scan, const char *directory, const char *const *files, size_t file_count);
void live_scan_fini(struct live_scan *scan);
/* Tells the sink each file, by name within a directory. A directory that is not there is only bad if it was asked
   for. 0, the sink's result, or -ENOMEM. */
int live_scan_run(const struct live_scan *scan, const struct live_scan_sink *sink);

#endif
