/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope stat: the statistics of programs that log, of log files, or of a command that it runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "cli/sources.h"
#include "export/export.h"

struct values {
    bool json, all, keep;
    const char *format, *directory, *output;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "the same as --format json", offsetof(struct values, json) },
    { 'f', "format", "FORMAT", "text (default) or json", offsetof(struct values, format) },
    { 'a', "all", NULL, "every life: closed objects one by one, numbers of past lives too",
      offsetof(struct values, all) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 'o', "output", "FILE", "write the statistics to FILE", offsetof(struct values, output) },
    { 'k', "keep", NULL, "with CMD: keep its logs and say where they are", offsetof(struct values, keep) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "A PATH picks branches or numbers: NODE/PROGRAM/OBJECT/…[/KIND[/FIELD]]. In it `*` stands for any bytes of one\n"
    "component, `?` for one character, `**` for any number of components; a backslash takes the meaning from\n"
    "the next character, \\xHH is a byte, #SLOT.GENERATION an object by its id. PROGRAM is the name of a log, a\n"
    "process id, or NAME.PID. A path that does not begin at a node matches anywhere. FIELD is count, total, max, "
    "mean,\n"
    "last, lineage_count, lineage_total (with all earlier epochs), base_count, base_total (before the log),\n"
    "closed_count or closed_total (of children that are gone). One number is printed alone, several as\n"
    "path TAB number. Of equal paths the one that lives gives the number; --all shows every life.\n"
    "\n"
    "  ntscope stat 'worker/**/orders/write/total'\n"
    "  ntscope stat --json '*/worker-1/**/orders'\n"
    "\n"
    "An argument that is a log file or a recording is read instead of live logs. With CMD, it is run, and what its\n"
    "logs and those of its children say at its end goes to stderr (or -o FILE); the exit code is CMD's: 128 + signal "
    "if it was\n"
    "killed, 127 not found, 126 could not be run.\n"
    "Totals are exact whatever was lost; loss is told first, on stderr where the output is numbers or JSON.\n";

struct job {
    struct nt_cli *cli;
    struct values values;
    const struct nt_export_format *format;
    struct nt_cli_sources sources;
    struct nt_cli_paths paths;
    int unmatched;
};

static void job_fini(struct job *job)
{
    nt_cli_paths_fini(&job->paths);
}

static int select_paths(struct job *job, const struct nt_model *model, struct nt_model_selection *selection)
{
    for (size_t i = 0; i < job->paths.count; i++) {
        int count = nt_model_select(selection, job->paths.parsed[i], job->values.all);
        if (count < 0)
            return count;
        if (count == 0) {
            job->unmatched++;
            nt_cli_paths_say_unmatched(job->cli, &job->paths, i, model);
        }
    }
    return nt_model_selection_close(selection);
}

static void say_loss(struct job *job, const struct nt_export_input *input)
{
    struct nt_buffer loss = { 0 };
    nt_export_loss(input, "ntscope: lost: ", &loss);
    if (loss.size > 0)
        (void)fwrite(loss.data, 1, loss.size, job->cli->talk);
    nt_buffer_fini(&loss);
}

static void write_selected(struct job *job, const struct nt_export_input *input)
{
    bool numbers = input->selection && input->selection->number_count > 0;
    if (numbers || !job->format->loss_inside)
        say_loss(job, input);
    (numbers ? job->format->numbers : job->format->stat)(input, &job->cli->out);
}

/* Writes what the paths pick of the model; nothing if that is nothing. */
static int write_model(struct job *job, const struct nt_model *model)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    struct nt_export_input input = { .model = model, .all = job->values.all, .now = job->cli->now };
    if (job->paths.count > 0) {
        int error = nt_model_selection_init(&selection, model);
        if (error == 0)
            error = select_paths(job, model, &selection);
        if (error != 0) {
            nt_cli_say(job->cli, "%s", nt_error_text(error));
            return NT_CLI_BAD;
        }
        input.selection = &selection;
    }
    if (!input.selection || selection.branches > 0 || selection.number_count > 0)
        write_selected(job, &input);
    if (job->paths.not_a_log)
        return NT_CLI_BAD;
    return job->unmatched > 0 ? NT_CLI_NOTHING : NT_CLI_OK;
}

/* There are no logs at all: what was meant as one is said to be none, else where they were looked for. */
static int say_nothing(struct job *job)
{
    for (size_t i = 0; i < job->paths.count; i++)
        (void)nt_cli_paths_say_file(job->cli, &job->paths, i);
    if (job->paths.not_a_log)
        return NT_CLI_BAD;
    nt_cli_sources_say_nothing(job->cli, &job->sources);
    return NT_CLI_NOTHING;
}

static int stat_logs(struct job *job)
{
    struct nt_model model __attribute__((cleanup(nt_model_fini))) = { 0 };
    int read_code = nt_cli_sources_read(job->cli, &job->sources, &model);
    if (read_code == NT_CLI_NOTHING)
        return say_nothing(job);
    if (model.program_count == 0)
        return read_code;
    int code = write_model(job, &model);
    return code > read_code ? code : read_code;
}

/* All is in the model before the command's logs are removed, and they are before anything is written. */
static int stat_command(struct job *job, char **command)
{
    struct nt_model model __attribute__((cleanup(nt_model_fini))) = { 0 };
    struct nt_cli_child child;
    struct nt_cli *cli = job->cli;
    int code = 126;
    int error = nt_cli_child_begin(&child, job->values.directory);
    if (error == 0) {
        job->sources.directory = child.directory;
        code = nt_cli_child_run(&child, cli, command);
        (void)nt_cli_sources_read(cli, &job->sources, &model);
        if (model.program_count == 0 && code != 126 && code != 127)
            nt_cli_say_of(cli, "", command[0], " opened no log");
    } else {
        nt_cli_say(cli, "cannot make a directory for the logs: %s", nt_error_text(error));
    }
    if (child.directory && job->values.keep)
        nt_cli_say_of(cli, "the logs are in ", child.directory, "");
    nt_cli_child_end(&child, job->values.keep);
    /* Whoever reads the statistics may go away: the exit code is still the command's. */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    nt_cli_init(cli, cli->out_fd, cli->talk);
    if (model.program_count > 0)
        (void)write_model(job, &model);
    (void)nt_buffer_flush(&cli->out);
    (void)signal(SIGPIPE, before);
    return code;
}

static int run_job(struct job *job, const struct nt_cli_arguments *given)
{
    if (!given->dashes)
        return stat_logs(job);
    if (given->rest_count == 0 || job->sources.file_count > 0) {
        nt_cli_say(job->cli, "%s (ntscope stat --help tells more)",
                   given->rest_count == 0 ? "no command behind --" : "files and a command do not go together");
        return NT_CLI_USAGE;
    }
    return stat_command(job, given->rest);
}

/* Where the statistics go, if not to stdout. Returns -1 if that cannot be opened. */
static int open_output(struct job *job, bool command)
{
    if (!job->values.output)
        return command ? STDERR_FILENO : job->cli->out_fd;
    if (nt_cli_sources_is_file(job->values.output)) {
        nt_cli_say_of(job->cli, "will not write over the log ", job->values.output, "");
        return -1;
    }
    /* not truncated: what is there stands until something is written in its place */
    int file = open(job->values.output, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (file < 0) {
        int error = errno;
        char after[128];
        (void)snprintf(after, sizeof after, ": %s", nt_error_text(error));
        nt_cli_say_of(job->cli, "cannot write ", job->values.output, after);
    }
    return file;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli };
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(cli, command, count, arguments, &job.values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    const char *format = job.values.format ? job.values.format : job.values.json ? "json" : nt_export_formats[0]->name;
    job.format = nt_export_find(format);
    if (!job.format) {
        nt_cli_say_of(cli, "unknown format '", format, "' (ntscope stat --help tells more)");
        return NT_CLI_USAGE;
    }
    job.sources.directory = job.values.directory;
    if (nt_cli_paths_split(cli, &given, &job.sources, &job.paths) != 0)
        return NT_CLI_BAD;
    job.sources.sessions = job.format->sessions_inside && job.paths.count == 0;
    int out = open_output(&job, given.dashes);
    if (out < 0)
        return NT_CLI_BAD;
    cli->out_fd = out;
    code = run_job(&job, &given);
    if (job.values.output) {
        code = nt_cli_finish(cli, code);
        off_t end = lseek(out, 0, SEEK_CUR);
        if (end > 0 && ftruncate(out, end) != 0 && errno != EINVAL) {
            nt_cli_say_of(cli, "cannot cut ", job.values.output, " behind what was written");
            code = code == NT_CLI_OK ? NT_CLI_BAD : code;
        }
        (void)close(out);
    }
    return code;
}

const struct nt_cli_command nt_cli_stat = {
    .name = "stat",
    .arguments = "[--json] [--all] [--dir DIR] [-o FILE] [PATH…] [FILE…] [-- CMD…]",
    .summary = "Shows the statistics of all programs that have a log, exact whatever was lost.",
    .text = text,
    .options = options,
    .run = run,
};
