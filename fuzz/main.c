/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replays corpus files through one fuzz target, as a test that prints TAP: one case a file.
 * Arguments are files or folders of files. Knows nothing of what the target reads.
 */
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static int cases;
static int failures;

static void report(const char *path, const char *problem)
{
    cases++;
    if (problem != NULL) {
        failures++;
        printf("not ok %d - %s: %s\n", cases, path, problem);
    } else {
        printf("ok %d - %s\n", cases, path);
    }
}

/* The bytes in memory of exactly their size, so that a sanitizer sees a read past the end. */
static const char *replay_stream(FILE *stream, size_t size)
{
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL) {
        return "out of memory";
    }
    const char *problem = NULL;
    if (fread(data, 1, size, stream) != size) {
        problem = "short read";
    } else {
        (void)LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return problem;
}

static void replay_file(const char *path, size_t size)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        report(path, strerror(errno));
        return;
    }
    /* Named first: a crash leaves the culprit as the last line. */
    printf("# %s\n", path);
    (void)fflush(stdout);
    report(path, replay_stream(stream, size));
    (void)fclose(stream);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void replay_path(const char *path);

static void replay_folder(const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, by_name);
    if (n < 0) {
        report(path, strerror(errno));
        return;
    }
    for (int i = 0; i < n; i++) {
        char child[4096];
        if (entries[i]->d_name[0] != '.') {
            (void)snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
            replay_path(child);
        }
        free(entries[i]);
    }
    free(entries);
}

static void replay_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        report(path, strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        replay_folder(path);
    } else {
        replay_file(path, (size_t)status.st_size);
    }
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize != NULL) {
        (void)LLVMFuzzerInitialize(&argc, &argv);
    }
    for (int i = 1; i < argc; i++) {
        replay_path(argv[i]);
    }
    if (cases == 0) {
        report("corpus", "no file to replay");
    }
    printf("1..%d\n", cases);
    return failures > 0 ? 1 : 0;
}
