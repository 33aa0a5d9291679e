/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope info: what is in a recording or a log file. All of it is read, so that what is damaged is found. */
#include <stddef.h>
#include <sys/stat.h>

#include <nt/log_layout.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "export/export.h"
#include "model/gaps.h"
#include "model/sessions.h"
#include "source/recording/recording.h"

struct values {
    bool json;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "one JSON object a file instead of text", offsetof(struct values, json) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "All of the file is read, so that whatever is damaged is found and told with its offset; the exit code is 3 then.\n"
    "EVENTS are those that can be read; lost are counts between them that no event shows, not logged those that masks "
    "left\n"
    "out. Of a log file the same is told of what its rings hold now. Times in JSON are ns since 1970.\n"
    "\n"
    "  ntscope info night.ntrec\n"
    "  ntscope info --json *.ntrec | jq '{file, events, lost}'\n";

struct job {
    struct nt_cli *cli;
    const struct nt_export_format *format;
    struct nt_export_info info;
    struct nt_cli_watch watch;
    struct nt_gaps *gaps;
    struct nt_model model;
    struct nt_buffer damages;
};

static void job_fini(struct job *job)
{
    nt_gaps_free(job->gaps);
    nt_cli_watch_fini(&job->watch);
    nt_model_fini(&job->model);
    nt_buffer_fini(&job->damages);
    job->cli->damages = NULL;
}

/* ---- What is in it ---- */

/* What comes late is no longer missing. */
static void take_gaps(struct job *job)
{
    struct nt_gap gap;
    while (nt_gaps_take(job->gaps, &gap)) {
        uint64_t count = gap.last - gap.first + 1;
        if (gap.why == NT_GAP_NOT_LOGGED)
            job->info.not_logged += count;
        else if (gap.why == NT_GAP_LOST)
            job->info.lost += count;
        else
            job->info.lost -= count < job->info.lost ? count : job->info.lost;
    }
}

static int take_item(void *arg, const struct nt_merge_item *item)
{
    struct job *job = arg;
    struct nt_export_info *info = &job->info;
    if (item->loss) {
        info->overwritten += item->loss->lost.count;
        return 0;
    }
    uint64_t time = item->event->time;
    info->events++;
    info->first = info->first == 0 || time < info->first ? time : info->first;
    info->last = time > info->last ? time : info->last;
    int error = nt_gaps_event(job->gaps, item->event);
    if (error > 0)
        take_gaps(job);
    if (error >= 0 && nt_model_program_index(&job->model, item->event->program) != NT_MODEL_NONE)
        error = nt_model_session_event(&job->model, item->event);
    return error < 0 ? error : 0;
}

static int read_all(struct job *job)
{
    const struct nt_gaps_options gaps_options = { 0 };
    int error = nt_gaps_new(&gaps_options, &job->gaps);
    (void)nt_cli_sources_look(job->cli, job->watch.source, NT_CLI_LOOK_SESSIONS, &job->model);
    if (error == 0)
        error = nt_model_link_sessions(&job->model);
    if (error == 0)
        error = nt_cli_watch_run(&job->watch);
    if (error == 0)
        error = nt_gaps_flush(job->gaps);
    if (error < 0)
        return error;
    take_gaps(job);
    return nt_model_link_sessions(&job->model); /* events told more of them */
}

/* ---- What it is ---- */

static void describe(struct job *job, const char *path)
{
    struct nt_recording_info told = { 0 };
    struct nt_export_info *info = &job->info;
    struct stat status;
    *info = (struct nt_export_info){ .path = path, .model = &job->model, .version = NT_LAYOUT_VERSION };
    info->bytes = stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
    info->recording = nt_cli_sources_is_recording(path);
    if (!info->recording || nt_recording_info(path, &told) != 0)
        return;
    info->version = told.version;
    info->ended = told.ended;
    info->thinned = told.thinned;
    info->id = told.id;
    info->created = told.created;
    info->bytes = told.bytes;
    info->blocks = told.blocks;
    info->event_blocks = told.event_blocks;
    info->event_bytes = told.event_bytes;
    info->table_blocks = told.table_blocks;
    info->table_bytes = told.table_bytes;
}

static int info_file(struct nt_cli *cli, const struct nt_export_format *format, char **file)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli, .format = format };
    struct nt_cli_watch *watch = &job.watch;
    watch->cli = cli;
    watch->sources.files = file;
    watch->sources.file_count = 1;
    watch->item = take_item;
    watch->arg = &job;
    describe(&job, *file);
    cli->damages = &job.damages;
    int code = nt_cli_sources_open(cli, &watch->sources, &watch->source);
    int error = code == NT_CLI_OK ? read_all(&job) : 0;
    if (error != 0) {
        nt_cli_say(cli, "cannot read the file: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (code != NT_CLI_OK)
        return code;
    job.info.damages = job.damages.data;
    job.info.damages_size = job.damages.size;
    format->info(&job.info, &cli->out);
    return job.damages.size > 0 || cli->damaged ? NT_CLI_BAD : NT_CLI_OK;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct values values = { 0 };
    struct nt_cli_arguments given;
    struct nt_cli_sources sources = { 0 };
    int code = nt_cli_options_parse(cli, command, count, arguments, &values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.dashes || given.plain_count == 0) {
        nt_cli_say(cli, "info takes recordings and log files (ntscope info --help tells more)");
        return NT_CLI_USAGE;
    }
    code = nt_cli_sources_take_files(cli, &given, &sources);
    for (int i = 0; i < sources.file_count && cli->out.error == 0; i++) {
        int one = info_file(cli, values.json ? &nt_export_json : &nt_export_text, &sources.files[i]);
        code = one > code ? one : code;
    }
    return code;
}

const struct nt_cli_command nt_cli_info = {
    .name = "info",
    .arguments = "[--json] FILE…",
    .summary = "Shows what is in a recording or a log file, and whether it is whole.",
    .text = text,
    .options = options,
    .run = run,
};
