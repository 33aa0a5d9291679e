/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope events: what happened, in order, one line each. The source is merged, names are looked up, gaps are worked
   out, and what was asked for is written. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "cli/watch.h"
#include "export/export.h"
#include "model/gaps.h"

struct values {
    bool json, follow;
    const char *format, *directory, *where, *since, *until;
};

static const struct nt_cli_option options[] = {
    { 'f', "follow", NULL, "go on, until no program runs any more or it is interrupted",
      offsetof(struct values, follow) },
    { 'w', "where", "EXPR", "only events of which EXPR is true", offsetof(struct values, where) },
    { 's', "since", "TIME", "only events from TIME on", offsetof(struct values, since) },
    { 'u', "until", "TIME", "only events up to TIME", offsetof(struct values, until) },
    { 'j', "json", NULL, "the same as --format json", offsetof(struct values, json) },
    { 0, "format", "FORMAT", "text (default) or json: one object a line", offsetof(struct values, format) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "Without -f: all that the rings of the logs hold now. With it, that first and then what comes, each event some 50 "
    "ms\n"
    "after it happened. An OBJECT is a path or a pattern, as `ntscope stat` takes it, and stands for all below it; "
    "the\n"
    "name of a kind may be its last part. An argument that is a log file or a recording is read instead of live logs.\n"
    "TIME is 2024-05-01T10:00:00.5Z, with any offset, a day, or a length of time before now: -5s, -200ms, -3m, -1h.\n"
    "EXPR is that of an SQL WHERE: comparisons, IN, BETWEEN, GLOB, IS NULL, AND, OR, NOT and parentheses over\n"
    "\n"
#define NT_COLUMN(symbol, name, type, text) "  " #name ": " text "\n"
#include "event/columns.def"
#undef NT_COLUMN
    "\n"
    "Of flags there are\n"
    "\n"
#define NT_EVENT_FLAG(bit, name, text) "  " name ": " text "\n"
#include "event/flags.def"
#undef NT_EVENT_FLAG
    "\n"
    "  ntscope events -f worker-1\n"
    "  ntscope events --since -5s --where \"kind = 'read' AND value >= 65536\" | less\n"
    "  ntscope events --json --where \"session = '9f3a000000000001' OR flags = 'late'\" '**/orders'\n"
    "\n"
    "A line is: time, program, object, kind, value, #count, total, and where there are any: argument, session, flags\n"
    "(but data and shared), fields.\n"
    "What is missing is told in its place, in lines with -- (JSON: kind \"loss\" and a reason): slots of a ring that\n"
    "were overwritten; counts of an object and kind that were lost, or not logged as the mask said so. It is told\n"
    "unless the paths, times and EXPR rule out that it was of what is asked for.\n";

struct job {
    struct nt_cli *cli;
    struct values values;
    const struct nt_export_format *format;
    struct nt_cli_paths paths;
    uint64_t since, until;
    struct nt_cli_watch watch;
    struct nt_gaps *gaps;
    struct nt_export_lines lines;
    uint64_t written;
};

static void job_fini(struct job *job)
{
    nt_gaps_free(job->gaps);
    nt_cli_watch_fini(&job->watch);
    nt_cli_paths_fini(&job->paths);
}

/* ---- Lines ---- */

static bool is_between(const struct job *job, uint64_t from, uint64_t to)
{
    return (to == 0 || to >= job->since) && from <= job->until;
}

static void write_missing(struct job *job, const struct nt_export_missing *missing)
{
    const struct nt_event event = { .kind = missing->kind,
                                    .object = missing->life ? missing->life->object : 0,
                                    .generation = missing->life ? missing->life->generation : 0,
                                    .ring = missing->ring };
    uint32_t known = 1u << NT_COLUMN_LOG | 1u << NT_COLUMN_PROCESS | 1u << NT_COLUMN_NODE;
    if (missing->life)
        known |= 1u << NT_COLUMN_OBJECT | 1u << NT_COLUMN_PATH | 1u << NT_COLUMN_KIND;
    else
        known |= 1u << NT_COLUMN_RING;
    if (!is_between(job, missing->from_time, missing->to_time))
        return;
    if (nt_cli_watch_may_match(&job->watch, &event, missing->life, missing->program, known))
        job->format->missing(missing, &job->lines, &job->cli->out);
}

static int take_loss(struct job *job, const struct nt_merge_loss *loss)
{
    const struct nt_lives_program *program = nt_lives_program(job->watch.lives, loss->lost.program);
    const struct nt_export_missing missing = {
        .why = NT_EXPORT_OVERWRITTEN,
        .program = program,
        .ring = loss->lost.ring,
        .count = loss->lost.count,
        .first = loss->lost.from,
        .last = loss->lost.to,
        .from_time = loss->from_time,
        .to_time = loss->to_time,
    };
    if (!program)
        return -ENOMEM;
    if (program->picked || job->paths.count == 0)
        write_missing(job, &missing);
    return 0;
}

static enum nt_export_why why_of(const struct job *job, enum nt_gap_why why)
{
    if (why == NT_GAP_LOST)
        return job->watch.source->thinned ? NT_EXPORT_LEFT_OUT : NT_EXPORT_LOST;
    return why == NT_GAP_NOT_LOGGED ? NT_EXPORT_NOT_LOGGED : NT_EXPORT_FOUND;
}

static int take_gaps(struct job *job)
{
    struct nt_gap gap;
    while (nt_gaps_take(job->gaps, &gap)) {
        const struct nt_life *life = nt_lives_find(job->watch.lives, gap.program, gap.object, gap.generation);
        const struct nt_export_missing missing = {
            .why = why_of(job, gap.why),
            .program = life ? life->program : NULL,
            .life = life,
            .kind = gap.kind,
            .count = gap.last - gap.first + 1,
            .first = gap.first,
            .last = gap.last,
            .from_time = gap.from_time,
            .to_time = gap.to_time,
        };
        if (!life)
            return -ENOMEM;
        if (nt_life_picked(job->watch.lives, life, gap.kind))
            write_missing(job, &missing);
    }
    return 0;
}

/* Of a life of which some events were left out no count is missing. */
static int see_counts(struct job *job, const struct nt_event *event)
{
    struct nt_source *source = job->watch.source;
    bool complete = !job->watch.selected ||
                    source->ops->complete(source, event->program, event->object, event->generation);
    return complete ? nt_gaps_event(job->gaps, event) : nt_gaps_pass(job->gaps, event->time);
}

static int take_event(struct job *job, const struct nt_merge_item *item)
{
    struct nt_event event = *item->event;
    event.flags |= (uint16_t)((item->late ? NT_EVENT_LATE : 0) | (item->ahead ? NT_EVENT_AHEAD : 0));
    int error = see_counts(job, &event);
    if (error > 0)
        error = take_gaps(job);
    if (error < 0)
        return error;
    const struct nt_life *life = nt_lives_find(job->watch.lives, event.program, event.object, event.generation);
    if (!life)
        return -ENOMEM;
    if (!is_between(job, event.time, event.time) || !nt_life_picked(job->watch.lives, life, event.kind))
        return 0;
    if (!nt_cli_watch_matches(&job->watch, &event, life))
        return 0;
    const struct nt_export_event line = {
        .event = &event,
        .life = life,
        .thread = nt_source_thread(job->watch.source, event.program, event.ring, event.position),
        .session = nt_cli_watch_session(&job->watch, &event),
    };
    job->format->event(&line, &job->lines, &job->cli->out);
    job->written++;
    return 0;
}

/* ---- The command ---- */

/* What is followed may come later: it is said all the same, for a path may be mistyped. */
static void say_unmatched(struct job *job, size_t number)
{
    if (!job->watch.follow)
        nt_cli_paths_say_unmatched(job->cli, &job->paths, number, nt_lives_model(job->watch.lives));
    else if (!nt_cli_paths_say_file(job->cli, &job->paths, number))
        nt_cli_say_of(job->cli, "nothing matches '", job->paths.given[number], "' so far");
}

static int check_paths(struct job *job)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    int error = nt_model_selection_init(&selection, nt_lives_model(job->watch.lives));
    for (size_t i = 0; i < job->paths.count && error >= 0; i++) {
        error = nt_model_select(&selection, job->paths.parsed[i], true);
        if (error == 0)
            say_unmatched(job, i);
    }
    return error < 0 ? error : 0;
}

static int take_item(void *arg, const struct nt_merge_item *item)
{
    struct job *job = arg;
    int error = item->passed != 0 ? nt_gaps_pass(job->gaps, item->passed) : 0;
    if (error > 0)
        error = take_gaps(job);
    if (error < 0)
        return error;
    return item->event ? take_event(arg, item) : take_loss(arg, item->loss);
}

/* 0 or a negative code. */
static int read_events(struct job *job)
{
    const struct nt_gaps_options gaps_options = { 0 };
    int error = check_paths(job);
    if (error == 0)
        error = nt_gaps_new(&gaps_options, &job->gaps);
    if (error == 0 && !job->watch.follow)
        error = nt_cli_watch_select(&job->watch, job->paths.count > 0, job->since, job->until);
    if (error == 0)
        error = nt_cli_watch_run(&job->watch);
    if (error == 0)
        error = nt_gaps_flush(job->gaps);
    return error > 0 ? take_gaps(job) : error;
}

static int run_events(struct job *job)
{
    struct nt_cli_watch *watch = &job->watch;
    int error = nt_cli_watch_look(watch, job->paths.parsed, job->paths.count, job->format == &nt_export_text);
    bool nothing = error == 0 && nt_lives_model(watch->lives)->program_count == 0;
    if (nothing && watch->code == NT_CLI_NOTHING)
        nt_cli_sources_say_nothing(job->cli, &watch->sources);
    if (nothing)
        return watch->code;
    if (error == 0)
        error = read_events(job);
    if (error != 0) {
        nt_cli_say(job->cli, "cannot read events: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (watch->code == NT_CLI_BAD || job->paths.not_a_log)
        return NT_CLI_BAD;
    return job->written > 0 ? NT_CLI_OK : NT_CLI_NOTHING;
}

static int parse_time(struct job *job, const char *option, const char *given, uint64_t *ret_time)
{
    char before[32];
    int error = given ? nt_time_parse(given, strlen(given), job->cli->now, ret_time) : 0;
    if (error == 0)
        return 0;
    (void)snprintf(before, sizeof before, "%s '", option);
    nt_cli_say_of(job->cli, before, given,
                  error == -ERANGE ? "': there is no such time"
                                   : "' is neither a time (2024-05-01T10:00:00Z) nor a length of one (-5s)");
    return NT_CLI_USAGE;
}

static int parse_values(struct job *job)
{
    const struct values *values = &job->values;
    const char *format = values->format ? values->format : values->json ? "json" : nt_export_formats[0]->name;
    job->until = UINT64_MAX;
    job->format = nt_export_find(format);
    if (!job->format) {
        nt_cli_say_of(job->cli, "unknown format '", format, "' (ntscope events --help tells more)");
        return NT_CLI_USAGE;
    }
    int code = parse_time(job, "--since", values->since, &job->since);
    if (code == 0)
        code = parse_time(job, "--until", values->until, &job->until);
    return code == 0 ? nt_cli_watch_where(&job->watch, values->where) : code;
}

static int run_job(struct job *job, const struct nt_cli_command *command, int count, char **arguments)
{
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(job->cli, command, count, arguments, &job->values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.rest_count > 0) {
        nt_cli_say(job->cli, "events runs no command (ntscope events --help tells more)");
        return NT_CLI_USAGE;
    }
    struct nt_cli_watch *watch = &job->watch;
    watch->cli = job->cli;
    watch->sources.directory = job->values.directory;
    code = parse_values(job);
    if (code != NT_CLI_OK)
        return code;
    if (nt_cli_paths_split(job->cli, &given, &watch->sources, &job->paths) != 0)
        return NT_CLI_BAD;
    watch->follow = job->values.follow;
    watch->until = job->until;
    watch->item = take_item;
    watch->arg = job;
    code = nt_cli_sources_open(job->cli, &watch->sources, &watch->source);
    return code == NT_CLI_OK ? run_events(job) : code;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli };
    return run_job(&job, command, count, arguments);
}

const struct nt_cli_command nt_cli_events = {
    .name = "events",
    .arguments = "[-f] [--json] [--where EXPR] [--since TIME] [--until TIME] [--dir DIR] [OBJECT…] [FILE…]",
    .summary = "Shows what happened, in order, one line an event, and what is missing in its place.",
    .text = text,
    .options = options,
    .run = run,
};
