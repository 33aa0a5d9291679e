/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope session: which sessions there are and what was counted in them, over all programs. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/sources.h"
#include "export/export.h"
#include "model/runs.h"
#include "model/sessions.h"
#include "source/merge.h"

#define TOP_SHIFT 48 /* the bits above are the same in all descendants of a session */

struct values {
    bool json, tree;
    const char *format, *directory, *sort;
};

static const struct nt_cli_option options[] = {
    { 't', "tree", NULL, "sessions below their parents, with sums of all that is below",
      offsetof(struct values, tree) },
    { 's', "sort", "ORDER", "traffic (default: most bytes first) or last (latest first)",
      offsetof(struct values, sort) },
    { 'j', "json", NULL, "the same as --format json", offsetof(struct values, json) },
    { 0, "format", "FORMAT", "text (default) or json", offsetof(struct values, format) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "Without a SESSION: a list of all, and at its end what was counted in none, and in older ones that found no room.\n"
    "A SESSION is an id (16 hex digits, or a decimal number) or a name, in which `*`, `?` and `[a-z]` are patterns;\n"
    "then all that is known of it is shown: sums by kind, with those of the sessions below it, by process, and by\n"
    "channel. An argument that is a log file or a recording is read instead of live logs.\n"
    "Sums are exact unless marked: >= means that many at least, <= at most, ~ about (JSON: \"exact\": false, and "
    "\"bound\"). Where a program had no room for some counts (`ntscope stat` says so), all are marked.\n"
    "By channel they come from the events that are left, and are exact where the boundaries of a session are among\n"
    "them, or where they add up to all that its program knows of it.\n"
    "\n"
    "  ntscope session --tree\n"
    "  ntscope session 'GET /*' | less\n"
    "  ntscope session --json 9f3a000000000001 | jq .\n";

struct program { /* of an event, found before */
    uint32_t number, index;
};

struct job {
    struct nt_cli *cli;
    struct values values;
    const struct nt_export_format *format;
    struct nt_cli_sources sources;
    struct nt_model_session_pick *picks;
    size_t pick_count;
    bool *matched; /* by pick */
    struct nt_model model;
    struct nt_source *source;
    struct nt_runs *runs;
    uint32_t *indexes;
    size_t index_count;
    uint64_t tops[1024]; /* a bit for the upper bits of each session that is picked */
    struct program last;
    uint64_t looked_at; /* when the snapshot was begun */
};

static void job_fini(struct job *job)
{
    nt_runs_free(job->runs);
    nt_source_free(job->source);
    nt_model_fini(&job->model);
    free(job->picks);
    free(job->matched);
    free(job->indexes);
}

/* ---- What is asked for ---- */

static int take_pick(struct job *job, const char *given)
{
    const struct nt_bytes name = { given, strlen(given) };
    const char *wrong = nt_model_session_pick(name, &job->picks[job->pick_count]);
    if (wrong) {
        char after[96];
        (void)snprintf(after, sizeof after, "': %s", wrong);
        nt_cli_say_of(job->cli, "bad session '", given, after);
        return -EINVAL;
    }
    job->pick_count++;
    return 0;
}

/* Log files to the front. */
static int split(struct job *job, const struct nt_cli_arguments *given)
{
    int error = 0;
    job->picks = calloc((size_t)given->plain_count + 1, sizeof *job->picks);
    job->matched = calloc((size_t)given->plain_count + 1, sizeof *job->matched);
    if (!job->picks || !job->matched) {
        nt_cli_say(job->cli, "%s", nt_error_text(-ENOMEM));
        return -ENOMEM;
    }
    job->sources.files = given->plain;
    for (int i = 0; i < given->plain_count && error == 0; i++) {
        if (nt_cli_sources_is_file(given->plain[i]))
            job->sources.files[job->sources.file_count++] = given->plain[i];
        else
            error = take_pick(job, given->plain[i]);
    }
    return error;
}

/* Whether one of the arguments picks it; all of them if there are none. */
static bool is_picked(struct job *job, const struct nt_model_session *session)
{
    bool picked = job->pick_count == 0;
    for (size_t i = 0; i < job->pick_count; i++) {
        if (nt_model_session_is_picked(session, &job->picks[i]))
            picked = job->matched[i] = true;
    }
    return picked;
}

/* In a tree, one that is below another is shown with that. */
static int pick_all(struct job *job)
{
    const struct nt_model_sessions *sessions = job->model.sessions;
    uint32_t shown = 0; /* up to here all is in a tree already */
    free(job->indexes);
    job->index_count = 0;
    job->indexes = calloc(sessions->count, sizeof *job->indexes);
    if (!job->indexes)
        return -ENOMEM;
    for (uint32_t i = 0; i < sessions->order_count; i++) {
        const struct nt_model_session *session = &sessions->sessions[sessions->order[i]];
        if (!is_picked(job, session) || (job->values.tree && i < shown))
            continue;
        job->indexes[job->index_count++] = sessions->order[i];
        shown = i + session->below + 1;
    }
    return 0;
}

static int say_unmatched(struct job *job)
{
    int code = NT_CLI_OK;
    for (size_t i = 0; i < job->pick_count; i++) {
        if (!job->matched[i]) {
            nt_cli_say_of(job->cli, "no session matches '", job->picks[i].text.data, "'");
            code = NT_CLI_NOTHING;
        }
    }
    return code;
}

/* ---- Events ---- */

static uint64_t clock_now(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What runs are wanted of: those that are picked, and what may turn out to be below them. */
static bool is_wanted(void *arg, uint64_t session)
{
    const struct job *job = arg;
    return session != 0 && (job->tops[session >> TOP_SHIFT >> 6] >> (session >> TOP_SHIFT) % 64 & 1) != 0;
}

static void want(struct job *job, uint64_t session)
{
    job->tops[session >> TOP_SHIFT >> 6] |= UINT64_C(1) << (session >> TOP_SHIFT) % 64;
}

static int take_event(struct job *job, const struct nt_event *event)
{
    if (job->last.index == NT_MODEL_NONE || job->last.number != event->program)
        job->last = (struct program){ event->program, nt_model_program_index(&job->model, event->program) };
    if (job->last.index == NT_MODEL_NONE)
        return 0; /* came after the snapshot */
    /* So did a session of a running program that the snapshot does not have. */
    bool later = job->sources.file_count == 0 && event->time > job->looked_at &&
                 nt_model_session_find(&job->model, event->session) == NT_MODEL_NONE;
    int error = later ? 0 : nt_model_session_event(&job->model, event);
    return error == 0 && job->runs ? nt_runs_event(job->runs, job->last.index, event) : error;
}

/* All that the rings hold now, in order. */
static int read_events(struct job *job)
{
    enum { ITEMS = 1024 };
    const struct nt_merge_options merge_options = { .no_hold = true };
    struct nt_merge_item *items = calloc(ITEMS, sizeof *items);
    struct nt_merge *merge = NULL;
    int error = items ? nt_merge_new(job->source, &merge_options, &merge) : -ENOMEM;
    for (int count = 1; error == 0 && count > 0;) {
        count = nt_merge_flush(merge, items, ITEMS);
        error = count < 0 ? count : 0;
        for (int i = 0; i < count && error == 0; i++) {
            if (items[i].event)
                error = take_event(job, items[i].event);
        }
    }
    nt_merge_free(merge);
    free(items);
    return error;
}

/* Before events are read: of which sessions runs are wanted. */
static int begin_runs(struct job *job)
{
    if (job->pick_count == 0 || job->values.tree)
        return 0;
    int error = pick_all(job);
    for (size_t i = 0; i < job->index_count && error == 0; i++)
        want(job, job->model.sessions->sessions[job->indexes[i]].id);
    for (size_t i = 0; i < job->pick_count; i++) {
        for (size_t k = 0; k < job->picks[i].id_count; k++)
            want(job, job->picks[i].ids[k]);
    }
    return error == 0 ? nt_runs_new(&job->model, is_wanted, job, &job->runs) : error;
}

/* ---- All of it ---- */

static int read_sessions(struct job *job)
{
    job->last.index = NT_MODEL_NONE;
    int error = nt_model_link_sessions(&job->model);
    if (error == 0)
        error = begin_runs(job);
    if (error == 0)
        error = read_events(job);
    if (error == 0)
        error = nt_model_link_sessions(&job->model); /* events told more of them */
    if (error == 0 && job->runs)
        error = nt_runs_finish(job->runs);
    return error == 0 ? pick_all(job) : error;
}

static void write_sessions(struct job *job)
{
    struct nt_export_sessions input = {
        .model = &job->model,
        .indexes = job->indexes,
        .count = job->index_count,
        .tree = job->values.tree,
        .detail = job->runs != NULL,
        .rest = job->pick_count == 0,
        .now = job->cli->now,
    };
    if (job->runs)
        input.runs = nt_runs_sums(job->runs, &input.run_count);
    bool last = job->values.sort && strcmp(job->values.sort, "last") == 0;
    nt_model_sort_sessions(&job->model, job->indexes, job->index_count, last ? NT_MODEL_BY_LAST : NT_MODEL_BY_TRAFFIC,
                           job->values.tree);
    job->format->sessions(&input, &job->cli->out);
}

static int run_job(struct job *job)
{
    int code = nt_cli_sources_open(job->cli, &job->sources, &job->source);
    job->looked_at = clock_now();
    if (code == NT_CLI_OK)
        code = nt_cli_sources_look(job->cli, job->source, NT_CLI_LOOK_SESSIONS, &job->model);
    if (code == NT_CLI_NOTHING)
        nt_cli_sources_say_nothing(job->cli, &job->sources);
    if (job->model.program_count == 0)
        return code;
    int error = read_sessions(job);
    if (error != 0) {
        nt_cli_say(job->cli, "cannot read the sessions: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (job->index_count > 0 || job->pick_count == 0)
        write_sessions(job);
    int matched = say_unmatched(job);
    return code == NT_CLI_OK ? matched : code;
}

static int check_options(struct job *job, const struct nt_cli_arguments *given)
{
    const struct values *values = &job->values;
    const char *format = values->format ? values->format : values->json ? "json" : nt_export_formats[0]->name;
    job->format = nt_export_find(format);
    if (!job->format) {
        nt_cli_say_of(job->cli, "unknown format '", format, "' (ntscope session --help tells more)");
        return NT_CLI_USAGE;
    }
    if (values->sort && strcmp(values->sort, "last") != 0 && strcmp(values->sort, "traffic") != 0) {
        nt_cli_say_of(job->cli, "unknown order '", values->sort,
                      "': traffic or last (ntscope session --help tells more)");
        return NT_CLI_USAGE;
    }
    if (given->rest_count > 0) {
        nt_cli_say(job->cli, "session takes no command (ntscope session --help tells more)");
        return NT_CLI_USAGE;
    }
    return NT_CLI_OK;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job *job = calloc(1, sizeof *job);
    struct nt_cli_arguments given;
    if (!job) {
        nt_cli_say(cli, "%s", nt_error_text(-ENOMEM));
        return NT_CLI_BAD;
    }
    job->cli = cli;
    int code = nt_cli_options_parse(cli, command, count, arguments, &job->values, &given);
    if (code != 0) {
        code = code < 0 ? NT_CLI_OK : code;
    } else {
        code = check_options(job, &given);
        if (code == NT_CLI_OK)
            job->sources.directory = job->values.directory;
        if (code == NT_CLI_OK && split(job, &given) != 0)
            code = NT_CLI_BAD;
        if (code == NT_CLI_OK)
            code = run_job(job);
    }
    job_fini(job);
    free(job);
    return code;
}

const struct nt_cli_command nt_cli_session = {
    .name = "session",
    .arguments = "[--tree] [--sort ORDER] [--json] [--dir DIR] [SESSION…] [FILE…]",
    .summary = "Shows the sessions of all programs, and what was counted in them.",
    .text = text,
    .options = options,
    .run = run,
};
