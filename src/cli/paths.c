/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that are paths, see paths.h. */
#include "cli/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

static int parse_path(struct nt_cli *cli, const char *given, struct nt_cli_paths *paths)
{
    const char *reason;
    int error = nt_model_path_new(given, strlen(given), &paths->parsed[paths->count], &reason);
    if (error == 0) {
        paths->given[paths->count++] = given;
    } else if (error == -ENOMEM) {
        nt_cli_say(cli, "%s", nt_error_text(error));
    } else {
        char after[64];
        (void)snprintf(after, sizeof after, "': %s", reason);
        nt_cli_say_of(cli, "bad path '", given, after);
    }
    return error;
}

int nt_cli_paths_split(struct nt_cli *cli, const struct nt_cli_arguments *given, struct nt_cli_sources *sources,
                       struct nt_cli_paths *paths)
{
    int error = 0;
    paths->given = calloc((size_t)given->plain_count + 1, sizeof *paths->given);
    paths->parsed = calloc((size_t)given->plain_count + 1, sizeof(struct nt_model_path *));
    if (!paths->given || !paths->parsed) {
        nt_cli_say(cli, "%s", nt_error_text(-ENOMEM));
        return -ENOMEM;
    }
    sources->files = given->plain;
    for (int i = 0; i < given->plain_count && error == 0; i++) {
        if (nt_cli_sources_is_file(given->plain[i]))
            sources->files[sources->file_count++] = given->plain[i];
        else
            error = parse_path(cli, given->plain[i], paths);
    }
    return error;
}

void nt_cli_paths_fini(struct nt_cli_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        nt_model_path_free(paths->parsed[i]);
    free(paths->given);
    free(paths->parsed);
    *paths = (struct nt_cli_paths){ 0 };
}

bool nt_cli_paths_say_file(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number)
{
    struct stat status;
    if (stat(paths->given[number], &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    nt_cli_say_of(cli, "", paths->given[number], ": not a log, and no object matches it as a path");
    paths->not_a_log = true;
    return true;
}

void nt_cli_paths_say_unmatched(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number)
{
    if (!nt_cli_paths_say_file(cli, paths, number))
        nt_cli_say_of(cli, "nothing matches '", paths->given[number], "'");
}
