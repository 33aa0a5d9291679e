/* SPDX-License-Identifier: BSD-3-Clause */
/* What all commands share: where output goes, what exit codes mean, and what a command is. */
#ifndef NT_CLI_CLI_H
#define NT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/options.h"

#ifndef NT_CLI_VERSION
#define NT_CLI_VERSION "0.1.0"
#endif

#define NT_CLI_CODE(number, symbol, text) NT_CLI_##symbol = number,
enum nt_cli_code {
#include "cli/codes.def"
};
#undef NT_CLI_CODE

struct nt_cli {
    struct nt_buffer out; /* results; drains to `out_fd` */
    int out_fd;
    FILE *talk;   /* everything else */
    uint64_t now; /* ns since 1970 */
    bool damaged; /* some input was, and it was said: the exit code will tell */
    /* Lines of what cannot be read go there instead of being said, each closed by a newline; NULL: said. */
    struct nt_buffer *damages;
};

struct nt_cli_command {
    const char *name;
    const char *arguments;               /* as in its usage line */
    const char *summary;                 /* one line */
    const char *text;                    /* lines below its options, "" if none */
    const struct nt_cli_option *options; /* closed by one without a name */
    /* Takes the arguments behind its name; returns the exit code. */
    int (*run)(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments);
};

extern const struct nt_cli_command nt_cli_ps;
extern const struct nt_cli_command nt_cli_stat;
extern const struct nt_cli_command nt_cli_top;
extern const struct nt_cli_command nt_cli_events;
extern const struct nt_cli_command nt_cli_session;
extern const struct nt_cli_command nt_cli_record;
extern const struct nt_cli_command nt_cli_info;
extern const struct nt_cli_command nt_cli_check;
extern const struct nt_cli_command nt_cli_diff;
extern const struct nt_cli_command nt_cli_mask;
extern const struct nt_cli_command nt_cli_clean;
extern const struct nt_cli_command nt_cli_help;

/* All of them, closed by NULL. */
extern const struct nt_cli_command *const nt_cli_commands[];
/* NULL if there is none of that name. */
const struct nt_cli_command *nt_cli_find(const char *name);
/* Says that there is none; returns the exit code. */
int nt_cli_unknown(struct nt_cli *cli, const char *name);

/* Results go to that descriptor. */
void nt_cli_init(struct nt_cli *cli, int out_fd, FILE *talk);
/* Writes what is left of the output. Returns `code`, or NT_CLI_BAD after saying why it could not be written; a
   reader that went away is no failure to talk of. */
int nt_cli_finish(struct nt_cli *cli, int code);
/* Tells what exit codes mean, below the help of a command. */
void nt_cli_codes_help(struct nt_buffer *out);
/* One line on `talk`, "ntscope: …". */
void nt_cli_say(struct nt_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, with bytes that others chose, made safe, between the two texts. */
void nt_cli_say_of(struct nt_cli *cli, const char *before, const char *name, const char *after);

#endif
