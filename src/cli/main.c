/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope: the table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/child.h"
#include "cli/cli.h"

#ifndef NT_CLI_VERSION
#define NT_CLI_VERSION "0.1.0"
#endif

static const struct nt_cli_command *const commands[] = { &nt_cli_ps,      &nt_cli_stat,   &nt_cli_top,  &nt_cli_events,
                                                         &nt_cli_session, &nt_cli_record, &nt_cli_info, &nt_cli_check,
                                                         &nt_cli_diff,    &nt_cli_mask,   &nt_cli_clean };

static const struct nt_cli_command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int help_all(struct nt_cli *cli)
{
    struct nt_buffer *out = &cli->out;
    nt_buffer_text(
        out, "usage: ntscope COMMAND [ARGUMENTS]\n"
             "Statistics and events of message-passing programs, read from their logs while they run and after.\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        nt_buffer_print(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    nt_buffer_text(out, "  help     Tells how to use a command: ntscope help COMMAND.\n"
                        "\n  -h, --help     this text\n  -V, --version  the version\n"
                        "\nExit codes: 0 done, 1 nothing matched, 2 wrong usage, 3 bad input or output that could not "
                        "be written.\n");
    return NT_CLI_OK;
}

static int unknown(struct nt_cli *cli, const char *name)
{
    nt_cli_say_of(cli, "unknown command '", name, "' (ntscope --help lists all)");
    return NT_CLI_USAGE;
}

static int help(struct nt_cli *cli, int count, char **arguments)
{
    if (count == 0)
        return help_all(cli);
    const struct nt_cli_command *command = find(arguments[0]);
    if (!command)
        return unknown(cli, arguments[0]);
    nt_cli_options_help(cli, command);
    return NT_CLI_OK;
}

static int run(struct nt_cli *cli, int count, char **arguments)
{
    if (count == 0) {
        nt_cli_say(cli, "no command given (ntscope --help lists all)");
        return NT_CLI_USAGE;
    }
    const char *name = arguments[0];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(cli, count - 1, arguments + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        nt_buffer_text(&cli->out, "ntscope " NT_CLI_VERSION "\n");
        return NT_CLI_OK;
    }
    const struct nt_cli_command *command = find(name);
    return command ? command->run(cli, command, count - 1, arguments + 1) : unknown(cli, name);
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
