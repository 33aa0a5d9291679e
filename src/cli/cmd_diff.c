/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope diff: what changed between two recordings or log files, or two moments of one. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "export/export.h"
#include "model/diff.h"

struct values {
    bool json, all;
    const char *sort, *lines;
};

static const struct nt_cli_option options[] = {
    { 's', "sort", "ORDER", "count (default: what was counted more or less often first) or total",
      offsetof(struct values, sort) },
    { 'n', "lines", "N", "the N largest changes only", offsetof(struct values, lines) },
    { 'a', "all", NULL, "what has not changed too", offsetof(struct values, all) },
    { 'j', "json", NULL, "one JSON object instead of text", offsetof(struct values, json) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "A and B are recordings or log files, FILE for its end or FILE@TIME; TIME is 2024-05-01T10:00:00.5Z, with any "
    "offset,\n"
    "a day, or a length of time before now: -5s, -3m, -1h. Between them are, by object and kind, how many were "
    "counted\n"
    "and what their values sum to, by second too; new and closed objects, and those that are gone from the tables of "
    "B:\n"
    "their last sums. Objects are the same if their paths are; of a program whose log only one side knows, the "
    "process\n"
    "id is no part of its path, so that one run can be held against another.\n"
    "What was counted at a TIME is known from the events before and behind it. Where some of these are missing, it is\n"
    "marked by ~. The exit code is 1 if nothing has changed.\n"
    "\n"
    "  ntscope diff yesterday.ntrec today.ntrec\n"
    "  ntscope diff night.ntrec@2024-05-01T03:00:00Z night.ntrec@2024-05-01T03:05:00Z --sort total -n 20\n";

struct side {
    char *file; /* ours, without the time */
    struct nt_moment moment;
    struct nt_model model;
    struct nt_cli_watch watch;
};

struct job {
    struct nt_cli *cli;
    struct values values;
    enum nt_diff_order order;
    uint64_t lines;
    struct side sides[2];
    struct nt_diff *diff;
};

static void job_fini(struct job *job)
{
    for (int i = 0; i < 2; i++) {
        nt_cli_watch_fini(&job->sides[i].watch);
        nt_model_fini(&job->sides[i].model);
        nt_moment_fini(&job->sides[i].moment);
        free(job->sides[i].file);
    }
    nt_diff_free(job->diff);
}

/* ---- What is asked for ---- */

static int take_side(struct job *job, struct side *side, const char *given)
{
    char *at = strrchr(given, '@');
    side->moment.time = NT_MOMENT_END;
    side->file = strdup(given);
    if (!side->file) {
        nt_cli_say(job->cli, "%s", nt_error_text(-ENOMEM));
        return NT_CLI_BAD;
    }
    if (!nt_cli_sources_is_file(given) && at) {
        side->file[at - given] = '\0';
        if (nt_time_parse(at + 1, strlen(at + 1), job->cli->now, &side->moment.time) != 0) {
            nt_cli_say_of(job->cli, "'", at + 1,
                          "' is neither a time (2024-05-01T10:00:00Z) nor a length of one (-5s)");
            return NT_CLI_USAGE;
        }
    }
    if (nt_cli_sources_is_file(side->file))
        return NT_CLI_OK;
    nt_cli_say_of(job->cli, "", side->file, " is neither a log nor a recording");
    return NT_CLI_BAD;
}

static int parse_values(struct job *job)
{
    const struct values *values = &job->values;
    job->lines = UINT64_MAX;
    if (values->sort && strcmp(values->sort, "total") != 0 && strcmp(values->sort, "count") != 0) {
        nt_cli_say_of(job->cli, "unknown order '", values->sort, "' (ntscope diff --help tells more)");
        return NT_CLI_USAGE;
    }
    job->order = values->sort && strcmp(values->sort, "total") == 0 ? NT_DIFF_BY_TOTAL : NT_DIFF_BY_COUNT;
    if (values->lines && nt_parse_u64(values->lines, strlen(values->lines), &job->lines) != 0) {
        nt_cli_say_of(job->cli, "--lines '", values->lines, "' is no number");
        return NT_CLI_USAGE;
    }
    return NT_CLI_OK;
}

/* ---- Reading ---- */

static int take_item(void *arg, const struct nt_merge_item *item)
{
    struct side *side = arg;
    return item->event ? nt_moment_event(&side->moment, item->event) : 0;
}

/* The end needs no event. */
static int read_side(struct job *job, struct side *side)
{
    struct nt_cli_watch *watch = &side->watch;
    watch->cli = job->cli;
    watch->sources.files = &side->file;
    watch->sources.file_count = 1;
    watch->item = take_item;
    watch->arg = side;
    int code = nt_cli_sources_open(job->cli, &watch->sources, &watch->source);
    if (code != NT_CLI_OK)
        return code;
    code = nt_cli_sources_look(job->cli, watch->source, 0, &side->model);
    int error = side->moment.time != NT_MOMENT_END ? nt_cli_watch_run(watch) : 0;
    if (error == 0)
        return code == NT_CLI_NOTHING ? NT_CLI_OK : code;
    nt_cli_say(job->cli, "cannot read events: %s", nt_error_text(error));
    return NT_CLI_BAD;
}

static int write_diff(struct job *job)
{
    struct nt_export_diff input = { .count = 0 };
    const struct side *sides = job->sides;
    int error = nt_diff_new(&job->diff);
    for (int i = 0; i < 2 && error == 0; i++) {
        uint64_t end = nt_diff_time(&sides[i].model), time = sides[i].moment.time;
        input.moments[i] = (struct nt_export_moment){ sides[i].file, time != NT_MOMENT_END ? time : end };
        error = nt_diff_add(job->diff, i, &sides[i].model, &sides[i].moment, &sides[1 - i].model);
    }
    if (error != 0) {
        nt_cli_say(job->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    input.rows = nt_diff_rows(job->diff, job->order, job->values.all, &input.count);
    size_t found = input.count;
    if (found > job->lines) {
        input.count = (size_t)job->lines;
        input.more = found - input.count;
    }
    (job->values.json ? &nt_export_json : &nt_export_text)->diff(&input, &job->cli->out);
    return found > 0 ? NT_CLI_OK : NT_CLI_NOTHING;
}

static int run_job(struct job *job, const struct nt_cli_command *command, int count, char **arguments)
{
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(job->cli, command, count, arguments, &job->values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.dashes || given.plain_count != 2) {
        nt_cli_say(job->cli, "diff takes two files, or moments of files (ntscope diff --help tells more)");
        return NT_CLI_USAGE;
    }
    code = parse_values(job);
    for (int i = 0; i < 2 && code == NT_CLI_OK; i++)
        code = take_side(job, &job->sides[i], given.plain[i]);
    if (code != NT_CLI_OK)
        return code;
    for (int i = 0; i < 2; i++) {
        int one = read_side(job, &job->sides[i]);
        code = one > code ? one : code;
    }
    int wrote = write_diff(job);
    return wrote > code ? wrote : code;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        nt_cli_say(cli, "%s", nt_error_text(-ENOMEM));
        return NT_CLI_BAD;
    }
    job->cli = cli;
    int code = run_job(job, command, count, arguments);
    job_fini(job);
    free(job);
    return code;
}

const struct nt_cli_command nt_cli_diff = {
    .name = "diff",
    .arguments = "[--sort ORDER] [-n N] [--all] [--json] FILE[@TIME] FILE[@TIME]",
    .summary = "Shows what changed between two recordings or logs, or two moments of one.",
    .text = text,
    .options = options,
    .run = run,
};
