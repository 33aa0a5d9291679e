/* SPDX-License-Identifier: BSD-3-Clause */
/* Options from one table a command: the parser and `--help` are made from the same rows. */
#ifndef NT_CLI_OPTIONS_H
#define NT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct nt_cli;
struct nt_cli_command;

struct nt_cli_option {
    char letter;          /* 0: none */
    const char *name;     /* long name; NULL closes a table */
    const char *argument; /* what its argument is called; NULL: it takes none */
    const char *text; /* of one that takes one of two words: "ONE (…) or OTHER …", so that shells complete them */
    size_t offset;    /* in the values: of a bool (no argument) or a const char * */
};

/* What is not an option. */
struct nt_cli_arguments {
    char **plain; /* moved to the front of the arguments */
    int plain_count;
    char **rest; /* behind "--" */
    int rest_count;
    bool dashes; /* there was a "--" */
};

/* Sets values by the table. Options may stand anywhere before "--". Returns 0; or, after saying what is wrong,
   NT_CLI_USAGE; or -1 after "--help" has been answered. */
int nt_cli_options_parse(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments,
                         void *values, struct nt_cli_arguments *ret_arguments);
/* Writes the help of a command to the output. */
void nt_cli_options_help(struct nt_cli *cli, const struct nt_cli_command *command);

#endif
