/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of commands, see cli.h. */
#include <string.h>

#include "cli/cli.h"

const struct nt_cli_command *const nt_cli_commands[] = {
    &nt_cli_ps,     &nt_cli_stat, &nt_cli_top,   &nt_cli_events, &nt_cli_session,
    &nt_cli_record, &nt_cli_info, &nt_cli_check, &nt_cli_diff,   &nt_cli_mask,
    &nt_cli_clean,  &nt_cli_help, NULL
};

const struct nt_cli_command *nt_cli_find(const char *name)
{
    for (size_t i = 0; nt_cli_commands[i]; i++) {
        if (strcmp(nt_cli_commands[i]->name, name) == 0)
            return nt_cli_commands[i];
    }
    return NULL;
}

int nt_cli_unknown(struct nt_cli *cli, const char *name)
{
    nt_cli_say_of(cli, "unknown command '", name, "' (ntscope --help lists all)");
    return NT_CLI_USAGE;
}
