/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope ps: which programs have a log, and how they are. */
#include <stddef.h>

#include "cli/cli.h"
#include "cli/sources.h"
#include "export/export.h"

struct values {
    bool json;
    const char *directory;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "one JSON value instead of a table", offsetof(struct values, json) },
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
    if (given.rest_count > 0) {
        nt_cli_say(cli, "ps takes log files and recordings only (ntscope ps --help tells more)");
        return NT_CLI_USAGE;
    }
    struct nt_model model __attribute__((cleanup(nt_model_fini))) = { 0 };
    const struct nt_cli_sources sources = { .directory = values.directory,
                                            .files = given.plain,
                                            .file_count = given.plain_count };
    code = nt_cli_sources_read(cli, &sources, &model);
    if (code == NT_CLI_NOTHING)
        nt_cli_sources_say_nothing(cli, &sources);
    const struct nt_export_input input = { .model = &model, .now = cli->now };
    if (model.program_count > 0)
        (values.json ? &nt_export_json : &nt_export_text)->programs(&input, &cli->out);
    return code;
}

const struct nt_cli_command nt_cli_ps = {
    .name = "ps",
    .arguments = "[--json] [--dir DIR] [FILE…]",
    .summary = "Shows the programs that have a log, or those of the log FILEs.",
    .text =
        "STATE is running, stopped (by a signal or a debugger), exited, \"exited (exec)\" (it replaced itself by "
        "another\n"
        "program), crashed (it ended without closing its log), or unknown (cannot be told: another pid namespace, a\n"
        "copied file). OVERWRITTEN events made room for newer ones, DROPPED ones found none; totals count both.\n"
        "AGE is the time since the log was opened.\n",
    .options = options,
    .run = run,
};
