/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope check: whether a recording, a log file or all live logs keep what is promised of tallies and of sessions. */
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "model/laws.h"
#include "model/path.h"
#include "model/sessions.h"
#include "source/recording/recording.h"

#define SHOWN 100u

struct values {
    bool all;
    const char *directory;
};

static const struct nt_cli_option options[] = {
    { 'a', "all", NULL, "show all violations, not the first 100 of each file", offsetof(struct values, all) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "Law 1: of each object and kind, counts that follow one another have totals that differ by the value, none comes\n"
    "twice, and the tables have the same counts, totals and maxima as the events; what is missing in a ring was told\n"
    "as lost, and no more counts are missing than were lost, dropped or not logged. Law 2: the first event of a kind\n"
    "after a change of session says so; over one program and kind all sessions, none and older included, sum to its\n"
    "objects, closed ones included; and no session did more on channels than it did in all.\n"
    "One line a violation, then one a file with what was looked at. Where events were left out on purpose, or are\n"
    "damaged, or are of programs that run, what is missing is not held against the file. The exit code is 0 if the "
    "laws hold, 1 if they do not, 3 "
    "if\n"
    "something could not be read.\n"
    "\n"
    "  ntscope check night.ntrec\n";

struct job {
    struct nt_cli *cli;
    struct values values;
    struct nt_cli_watch watch;
    struct nt_model before, after;
    struct nt_laws *laws;
};

static void job_fini(struct job *job)
{
    nt_laws_free(job->laws);
    nt_cli_watch_fini(&job->watch);
    nt_model_fini(&job->before);
    nt_model_fini(&job->after);
}

static int take_item(void *arg, const struct nt_merge_item *item)
{
    struct job *job = arg;
    return item->loss ? nt_laws_loss(job->laws, item->loss) : nt_laws_event(job->laws, item->event);
}

/* ---- What was found ---- */

static void write_violation(struct job *job, const struct nt_model *model, const struct nt_violation *violation)
{
    struct nt_buffer *out = &job->cli->out;
    char room[NT_MODEL_KIND_ROOM];
    uint32_t program = nt_model_program_index(model, violation->program), object = NT_MODEL_NONE;
    nt_buffer_print(out, "law %u: ", violation->law);
    if (program == NT_MODEL_NONE) {
        nt_buffer_print(out, "program %u", violation->program);
    } else {
        object = nt_model_find(model, program, violation->slot, violation->generation);
        if (object != NT_MODEL_NONE && violation->generation != 0)
            nt_model_path_append(out, model, object);
        else
            nt_model_program_path_append(out, model, program);
    }
    if (object == NT_MODEL_NONE && violation->generation != 0)
        nt_buffer_print(out, "/#%u.%u", violation->slot, violation->generation);
    if (violation->kind != 0 && program != NT_MODEL_NONE) {
        struct nt_bytes kind = nt_model_kind(&model->programs[program], violation->kind, room);
        nt_buffer_byte(out, ' ');
        nt_text_append(out, kind.data, kind.size);
    }
    nt_buffer_print(out, ": %s\n", violation->text);
}

static void write_summary(struct job *job, const char *name)
{
    const struct nt_laws_stats stats = nt_laws_stats(job->laws);
    struct nt_buffer *out = &job->cli->out;
    nt_text_append(out, name, strlen(name));
    nt_buffer_text(out, ": ");
    if (stats.violations == 0)
        nt_buffer_text(out, "laws 1 and 2 hold");
    else
        nt_buffer_print(out, "%llu violations", (unsigned long long)stats.violations);
    nt_buffer_print(out,
                    "; %llu events of %llu objects and kinds, %llu tallies, %llu sums of sessions, %llu by channel",
                    (unsigned long long)stats.events, (unsigned long long)stats.streams,
                    (unsigned long long)stats.tallies, (unsigned long long)stats.sums, (unsigned long long)stats.runs);
    if (stats.slots_lost + stats.lost + stats.not_logged > 0)
        nt_buffer_print(out, "; missing: %llu slots of rings, %llu counts lost, %llu not logged",
                        (unsigned long long)stats.slots_lost, (unsigned long long)stats.lost,
                        (unsigned long long)stats.not_logged);
    nt_buffer_text(out, job->watch.source->thinned ? "; events were left out on purpose\n" : "\n");
}

static int write_found(struct job *job, const char *name, const struct nt_model *model)
{
    size_t count;
    const struct nt_violation *violations = nt_laws_violations(job->laws, &count);
    size_t shown = job->values.all || count < SHOWN ? count : SHOWN;
    for (size_t i = 0; i < shown; i++)
        write_violation(job, model, &violations[i]);
    if (count > shown)
        nt_buffer_print(&job->cli->out, "and %zu more (--all shows them)\n", count - shown);
    write_summary(job, name);
    return count > 0 ? NT_CLI_NOTHING : NT_CLI_OK;
}

/* ---- Reading ---- */

/* The tables of a recording that was ended are later than all events. Rings of programs that run are read one after the
   other. */
static unsigned how_read(const struct job *job, bool recording, bool fixed)
{
    struct nt_recording_info info;
    bool damaged = job->cli->damaged || job->watch.code == NT_CLI_BAD;
    if (!recording)
        return NT_LAWS_LATER | (damaged || !fixed ? NT_LAWS_PARTLY : 0);
    bool ended = nt_recording_info(job->watch.sources.files[0], &info) == 0 && info.ended;
    return damaged ? NT_LAWS_PARTLY : ended ? NT_LAWS_LATER : 0;
}

static int look(struct job *job, bool quiet, struct nt_model *model)
{
    int code = nt_cli_sources_look(job->cli, job->watch.source, NT_CLI_LOOK_SESSIONS | (quiet ? NT_CLI_LOOK_QUIET : 0),
                                   model);
    job->watch.code = code == NT_CLI_BAD ? code : job->watch.code;
    return nt_model_link_sessions(model);
}

static bool is_any_alive(const struct nt_model *model)
{
    bool alive = false;
    for (uint32_t i = 0; i < model->program_count; i++)
        alive = alive || nt_model_alive(&model->programs[i]);
    return alive;
}

/* 0 or a negative code; `recording` and `fixed`: what is read does not change, and how it ends is known. */
static int read_all(struct job *job, bool recording, bool fixed)
{
    const struct nt_laws_options laws_options = { .thinned = job->watch.source->thinned };
    int error = nt_laws_new(&job->before, &laws_options, &job->laws);
    if (error == 0)
        error = nt_cli_watch_run(&job->watch);
    if (error == 0 && !fixed)
        error = look(job, true, &job->after);
    return error == 0 ? nt_laws_finish(job->laws, fixed ? &job->before : &job->after, how_read(job, recording, fixed))
                      : error;
}

static int check_source(struct job *job, const char *name, bool file)
{
    int error = look(job, false, &job->before);
    bool recording = file && nt_cli_sources_is_recording(job->watch.sources.files[0]);
    bool fixed = recording || !is_any_alive(&job->before);
    if (error == 0 && job->before.program_count == 0 && !file && job->watch.code == NT_CLI_OK) {
        nt_cli_sources_say_nothing(job->cli, &job->watch.sources);
        return NT_CLI_NOTHING;
    }
    if (error == 0)
        error = read_all(job, recording, fixed);
    if (error != 0) {
        nt_cli_say(job->cli, "cannot check: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    int code = write_found(job, name, fixed ? &job->before : &job->after);
    return job->watch.code == NT_CLI_BAD || job->cli->damaged ? NT_CLI_BAD : code;
}

static int check(struct nt_cli *cli, const struct values *values, char **file)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli, .values = *values };
    struct nt_cli_watch *watch = &job.watch;
    watch->cli = cli;
    watch->sources.directory = values->directory;
    watch->sources.files = file;
    watch->sources.file_count = file != NULL;
    watch->item = take_item;
    watch->arg = &job;
    cli->damaged = false;
    int code = nt_cli_sources_open(cli, &watch->sources, &watch->source);
    return code == NT_CLI_OK ? check_source(&job, file ? *file : "live logs", file != NULL) : code;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct values values = { 0 };
    struct nt_cli_arguments given;
    struct nt_cli_sources sources = { 0 };
    int code = nt_cli_options_parse(cli, command, count, arguments, &values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.dashes) {
        nt_cli_say(cli, "check runs no command (ntscope check --help tells more)");
        return NT_CLI_USAGE;
    }
    code = nt_cli_sources_take_files(cli, &given, &sources);
    if (code != NT_CLI_OK || sources.file_count == 0)
        return code == NT_CLI_OK ? check(cli, &values, NULL) : code;
    for (int i = 0; i < sources.file_count && cli->out.error == 0; i++) {
        int one = check(cli, &values, &sources.files[i]);
        code = one > code ? one : code;
    }
    return code;
}

const struct nt_cli_command nt_cli_check = {
    .name = "check",
    .arguments = "[--all] [--dir DIR] [FILE…]",
    .summary = "Verifies that events, tallies and sessions of recordings or logs agree.",
    .text = text,
    .options = options,
    .run = run,
};
