/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope: runs the command that is named. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/child.h"
#include "cli/cli.h"

static int run(struct nt_cli *cli, int count, char **arguments)
{
    if (count == 0) {
        nt_cli_say(cli, "no command given (ntscope --help lists all)");
        return NT_CLI_USAGE;
    }
    const char *name = arguments[0];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return nt_cli_help.run(cli, &nt_cli_help, count - 1, arguments + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        nt_buffer_text(&cli->out, "ntscope " NT_CLI_VERSION "\n");
        return NT_CLI_OK;
    }
    const struct nt_cli_command *command = nt_cli_find(name);
    return command ? command->run(cli, command, count - 1, arguments + 1) : nt_cli_unknown(cli, name);
}

/* Streams that are closed would be taken by files that are opened later. */
static void fill_streams(void)
{
    int file;
    do
        file = open("/dev/null", O_RDONLY); /* so that writing fails */
    while (file >= 0 && file <= STDERR_FILENO);
    if (file > STDERR_FILENO)
        (void)close(file);
}

int main(int count, char **arguments)
{
    struct nt_cli cli;
    fill_streams();
    nt_cli_child_limits();
    nt_cli_init(&cli, STDOUT_FILENO, stderr);
    int code = run(&cli, count > 0 ? count - 1 : 0, arguments + 1);
    code = nt_cli_finish(&cli, code);
    /* Some file systems tell only now that there was no room. */
    if (close(STDOUT_FILENO) != 0 && errno != EBADF) {
        nt_cli_say(&cli, "cannot write the output: %s", nt_error_text(errno));
        code = NT_CLI_BAD;
    }
    return code;
}
