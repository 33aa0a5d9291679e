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

static bool ends_as_log(const char *name)
{
    static const char *const ends[] = { ".ntlog", ".ntrec" };
    size_t size = strlen(name);
    bool so = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        so = so || (size > strlen(ends[i]) && strcmp(name + size - strlen(ends[i]), ends[i]) == 0);
    return so;
}

bool nt_cli_paths_say_file(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number)
{
    const char *given = paths->given[number];
    struct stat status;
    if (stat(given, &status) != 0) {
        if (!ends_as_log(given))
            return false;
        char after[128];
        (void)snprintf(after, sizeof after, ": %s", nt_error_text(errno));
        nt_cli_say_of(cli, "", given, after);
    } else if (S_ISREG(status.st_mode)) {
        nt_cli_say_of(cli, "", given, ": neither a log nor a recording, and no object matches it as a path");
    } else {
        return false;
    }
    paths->not_a_log = true;
    return true;
}

/* Whether the path would pick something; a copy of it with `**` put in at that byte. */
static char *would_match(const char *path, size_t at, const struct nt_model *model)
{
    char *with = NULL;
    const char *reason;
    struct nt_model_path *parsed = NULL;
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    if (asprintf(&with, "%.*s/**%s", (int)at, path, path + at) < 0)
        return NULL;
    bool matches = nt_model_path_new(with, strlen(with), &parsed, &reason) == 0 &&
                   nt_model_selection_init(&selection, model) == 0 && nt_model_select(&selection, parsed, false) > 0;
    nt_model_path_free(parsed);
    if (matches)
        return with;
    free(with);
    return NULL;
}

/* The commonest mistake: an object is named right under its program, with what lies between left out. */
static char *find_match(const char *path, const struct nt_model *model)
{
    enum { TRIES = 8 };
    char *found = NULL;
    int tries = 0;
    for (size_t at = 1; path[0] && path[at] && !found && tries < TRIES; at++) {
        if (path[at] == '/' && path[at - 1] != '\\' && path[at - 1] != '/') {
            found = would_match(path, at, model);
            tries++;
        }
    }
    return found;
}

void nt_cli_paths_say_unmatched(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number,
                                const struct nt_model *model)
{
    if (nt_cli_paths_say_file(cli, paths, number))
        return;
    char *match = find_match(paths->given[number], model);
    if (match)
        nt_cli_say_of(cli, "nothing matches so; did you mean '", match, "'?");
    else
        nt_cli_say_of(cli, "nothing matches '", paths->given[number], "'");
    free(match);
}
