/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope clean: removes what dead programs left behind. */
#include <stddef.h>

#include "cli/cli.h"
#include "cli/sources.h"

struct values {
    bool dry;
    const char *directory;
};

static const struct nt_cli_option options[] = {
    { 'n', "dry-run", NULL, "only list what would be removed", offsetof(struct values, dry) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct values values = { 0 };
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(cli, command, count, arguments, &values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.plain_count > 0 || given.rest_count > 0) {
        nt_cli_say(cli, "clean takes no arguments (ntscope clean --help tells more)");
        return NT_CLI_USAGE;
    }
    code = nt_cli_sources_clean(cli, values.directory, values.dry);
    if (code == NT_CLI_NOTHING) {
        nt_cli_say(cli, "nothing to remove");
        return NT_CLI_OK;
    }
    return code;
}

const struct nt_cli_command nt_cli_clean = {
    .name = "clean",
    .arguments = "[--dry-run] [--dir DIR]",
    .summary = "Removes the logs of dead programs and lists them.",
    .text = "The log of a program that lives, or of which that cannot be told, is never removed.\n",
    .options = options,
    .run = run,
};
