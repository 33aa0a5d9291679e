/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that are paths of objects, and those that are log files instead. */
#ifndef NT_CLI_PATHS_H
#define NT_CLI_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/sources.h"
#include "model/path.h"

struct nt_cli_paths { /* all zeros: none */
    const char **given;
    struct nt_model_path **parsed;
    size_t count;
    bool not_a_log; /* one of these is a file */
};

/* Log files to the front of `plain` and into `sources`, all others parsed as paths. 0, or a negative code after
   saying what is wrong. */
int nt_cli_paths_split(struct nt_cli *cli, const struct nt_cli_arguments *given, struct nt_cli_sources *sources,
                       struct nt_cli_paths *paths);
void nt_cli_paths_fini(struct nt_cli_paths *paths);
/* Says of a path that matches nothing, if it is a file, that it is not a log, or if it is named like one, that there is
   none; remembers that. Whether it was so. */
bool nt_cli_paths_say_file(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number);
/* The same, or that nothing in the model matches it, but perhaps something like it. */
void nt_cli_paths_say_unmatched(struct nt_cli *cli, struct nt_cli_paths *paths, size_t number,
                                const struct nt_model *model);

#endif
