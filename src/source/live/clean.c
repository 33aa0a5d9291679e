/* SPDX-License-Identifier: BSD-3-Clause */
/* Removing what dead programs left behind. A name is only removed while it still names the file that was found
   dead; names hold the process's identity and image, so that no living program makes the same one. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "source/live/live.h"
#include "source/live/scan.h"
#include "source/live/state.h"

struct clean {
    const struct nt_live_clean_sink *sink;
    struct live_machine machine;
    int removed;
};

static void clean_bad(void *arg, const char *path, int error, const char *text)
{
    const struct clean *clean = arg;
    if (clean->sink->bad != NULL) {
        clean->sink->bad(clean->sink->arg, path, error, text);
    }
}

static void clean_remove(struct clean *clean, const struct live_scan_file *file, const struct stat *found)
{
    struct stat now;
    if (fstatat(file->directory, file->name, &now, AT_SYMLINK_NOFOLLOW) != 0 || now.st_ino != found->st_ino ||
        now.st_dev != found->st_dev) {
        return; /* another file by now, or none: not ours to remove */
    }
    if (unlinkat(file->directory, file->name, 0) != 0) {
        int error = -errno;
        if (error != -ENOENT) {
            clean_bad(clean, file->path, error, nt_error_text(error));
        }
        return;
    }
    clean->removed++;
    if (clean->sink->removed != NULL) {
        clean->sink->removed(clean->sink->arg, file->path);
    }
}

/* Whether the header on disk is still the one that was found dead. */
static bool is_same_log(const struct live_map *map)
{
    struct nt_layout_header header;
    return pread(map->fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
           memcmp(&header, &map->header, sizeof header) == 0;
}

/* An unfinished log gets its header and its name within milliseconds; one that is a minute old and has none was
   left behind. */
static void clean_unfinished(struct clean *clean, const struct live_scan_file *file)
{
    enum { OLD_SECONDS = 60 };
    struct stat found;
    struct timespec now;
    if (fstatat(file->directory, file->name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) &&
        found.st_uid == file->owner.uid && found.st_nlink == 1 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        now.tv_sec - found.st_ctim.tv_sec > OLD_SECONDS) {
        clean_remove(clean, file, &found);
    }
}

static int clean_file(void *arg, const struct live_scan_file *file)
{
    struct clean *clean = arg;
    struct live_map map;
    char text[LIVE_MAP_TEXT];
    int error = live_map_open(&map, file->directory, file->name, &file->owner, text);
    if (error < 0) {
        if (file->temporary) {
            clean_unfinished(clean, file);
        } else if (error != -ENOENT) {
            clean_bad(clean, file->path, error, text);
        }
        return 0;
    }
    struct live_state state = { 0 };
    live_state_look(&state, &map, &clean->machine, false, 0);
    struct stat found;
    if (!state.gone || live_map_state(&map) < 0) {
        if (clean->sink->kept != NULL && !file->temporary) {
            clean->sink->kept(clean->sink->arg, file->path, state.state);
        }
    } else if (fstat(map.fd, &found) == 0 && is_same_log(&map)) {
        clean_remove(clean, file, &found);
    }
    live_map_close(&map);
    return 0;
}

int nt_live_remove_dead(const struct nt_live_options *options, const struct nt_live_clean_sink *sink)
{
    struct clean clean = { .sink = sink };
    struct live_scan scan;
    live_machine_init(&clean.machine);
    int error = live_scan_init(&scan, options->directory, NULL, 0);
    if (error < 0) {
        return error;
    }
    const struct live_scan_sink scan_sink = { clean_file, clean_bad, &clean };
    error = live_scan_run(&scan, &scan_sink);
    live_scan_fini(&scan);
    return error < 0 ? error : clean.removed;
}
