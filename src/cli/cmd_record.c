/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope record: keeps what happens in a file. Events are taken in order as they come, and written block by block. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "source/recording/recording.h"

#define MS UINT64_C(1000000)

enum {
    FLUSH_MS = 1000,   /* that what was read waits at most before it is written */
    TABLES_MS = 500,   /* between two snapshots, at least … */
    TABLES_SHARE = 50, /* … and so many times as long as one takes */
};

struct values {
    const char *output, *where, *length, *directory;
};

static const struct nt_cli_option options[] = {
    { 'o', "output", "FILE", "the recording (default: ntscope-DATE-TIME.ntrec); replaced if it is one already",
      offsetof(struct values, output) },
    { 'w', "where", "EXPR", "only events of which EXPR is true (ntscope events --help)",
      offsetof(struct values, where) },
    { 0, "for", "LENGTH", "end after that time: 10s, 5m, 1h", offsetof(struct values, length) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "What the rings of the logs hold already comes first, then what happens, until no program runs any more, the time\n"
    "of --for is over, or it is interrupted. With CMD, it is run, and its logs and those of its children are recorded\n"
    "until it ends; the exit code is CMD's then. An argument that is a log file or a recording is read instead of "
    "live\n"
    "logs, several are merged.\n"
    "What was found missing is recorded too; totals are exact whatever is missing. A recording can be read up to its\n"
    "last whole block, of one second at most, however its recorder ended: `ps`, `stat`, `events` and `session` take\n"
    "it as a FILE.\n"
    "\n"
    "  ntscope record -o night.ntrec --where \"kind <> 'poll'\" --for 8h\n"
    "  ntscope events night.ntrec --since 2024-05-01T03:00:00Z\n";

struct job {
    struct nt_cli *cli;
    struct values values;
    struct nt_cli_watch watch;
    struct nt_cli_child child;
    bool command;
    int command_code; /* -1: it runs */
    char name[64];    /* by default */
    const char *path;
    int file;
    struct nt_recording *recording;
    uint64_t deadline;              /* all of the monotonic clock; UINT64_MAX: none */
    uint64_t flushed_at, tables_at; /* when that is done again */
    bool bad;
};

static void job_fini(struct job *job)
{
    nt_recording_free(job->recording);
    nt_cli_watch_fini(&job->watch);
    if (job->file >= 0)
        (void)close(job->file);
}

/* ---- What comes ---- */

static void take_bad(void *arg, const char *path, int error, const char *why)
{
    struct job *job = arg;
    char after[256];
    (void)snprintf(after, sizeof after, ": %s", why && why[0] ? why : nt_error_text(error));
    if (!job->bad)
        nt_cli_say_of(job->cli, "", path, after);
    job->bad = true;
}

static int take_tables(struct job *job)
{
    uint64_t before = nt_cli_watch_now(CLOCK_MONOTONIC);
    int error = nt_recording_tables(job->recording, job->watch.source, nt_cli_watch_now(CLOCK_REALTIME), take_bad, job);
    uint64_t after = nt_cli_watch_now(CLOCK_MONOTONIC), least = (after - before) * TABLES_SHARE;
    job->tables_at = after + (least > TABLES_MS * MS ? least : TABLES_MS * MS);
    return error;
}

/* A change of a mask is kept whatever is asked for: without it what was not logged would look lost. */
static int take_item(void *arg, const struct nt_merge_item *item)
{
    struct job *job = arg;
    const struct nt_event *event = item->event;
    if (!event)
        return nt_recording_loss(job->recording, item->loss);
    if (job->watch.filter && event->ring != NT_EVENT_NO_RING) {
        const struct nt_life *life = nt_lives_find(job->watch.lives, event->program, event->object, event->generation);
        if (!life)
            return -ENOMEM;
        if (!nt_cli_watch_matches(&job->watch, event, life))
            return 0;
    }
    uint32_t thread = nt_source_thread(job->watch.source, event->program, event->ring, event->position);
    return nt_recording_event(job->recording, event, thread);
}

static int idle(void *arg)
{
    struct job *job = arg;
    uint64_t now = nt_cli_watch_now(CLOCK_MONOTONIC);
    int error = 0;
    if (now >= job->tables_at && nt_recording_wants_tables(job->recording))
        error = take_tables(job);
    if (error == 0 && now >= job->flushed_at) {
        job->flushed_at = now + FLUSH_MS * MS;
        error = nt_recording_flush(job->recording);
    }
    return error == 0 ? now >= job->deadline : error;
}

static bool command_runs(void *arg)
{
    struct job *job = arg;
    if (job->command_code < 0)
        job->command_code = nt_cli_child_poll(&job->child);
    return job->command_code < 0;
}

/* ---- The file ---- */

/* Whether something other than a recording stands there. */
static bool is_in_the_way(const char *path)
{
    struct stat status;
    char magic[sizeof NT_RECORDING_MAGIC - 1];
    bool recording = false;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return lstat(path, &status) == 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0) {
        recording = status.st_size == 0 || (read(file, magic, sizeof magic) == (ssize_t)sizeof magic &&
                                            memcmp(magic, NT_RECORDING_MAGIC, sizeof magic) == 0);
        (void)close(file);
    }
    return !recording;
}

static int say_unwritten(struct job *job, int error)
{
    char after[200];
    (void)snprintf(after, sizeof after, ": %s%s", nt_error_text(error),
                   job->recording ? "; what was written before can be read" : "");
    nt_cli_say_of(job->cli, "cannot write ", job->path, after);
    return NT_CLI_BAD;
}

/* Who reads the recording that is replaced goes on with the old one. */
static int open_file(struct job *job)
{
    int error = 0;
    if (is_in_the_way(job->path)) {
        nt_cli_say_of(job->cli, "will not write over ", job->path, ": it is not a recording");
        return NT_CLI_BAD;
    }
    if (unlink(job->path) != 0 && errno != ENOENT)
        error = errno;
    if (error == 0)
        job->file = open(job->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
    if (error == 0 && job->file < 0)
        error = errno;
    if (error == 0)
        error = nt_recording_new(job->file, nt_cli_watch_now(CLOCK_REALTIME),
                                 job->watch.filter != NULL || job->watch.source->thinned, &job->recording);
    return error == 0 ? NT_CLI_OK : say_unwritten(job, error);
}

static void name_file(struct job *job)
{
    time_t now = (time_t)(job->cli->now / (1000 * MS));
    struct tm tm;
    job->path = job->values.output;
    if (job->path)
        return;
    (void)localtime_r(&now, &tm);
    (void)strftime(job->name, sizeof job->name, "ntscope-%Y%m%d-%H%M%S.ntrec", &tm);
    job->path = job->name;
}

/* ---- The command ---- */

static void say_recorded(struct job *job)
{
    struct nt_recording_stats stats = nt_recording_stats(job->recording);
    char before[160], after[80] = "";
    (void)snprintf(before, sizeof before, "%llu events, %llu lost, %llu bytes in ", (unsigned long long)stats.events,
                   (unsigned long long)stats.lost, (unsigned long long)stats.bytes);
    if (stats.events > 0)
        (void)snprintf(after, sizeof after, ", %.2f bytes an event", (double)stats.event_bytes / (double)stats.events);
    nt_cli_say_of(job->cli, before, job->path, after);
}

/* Reads until the end, and ends the recording. */
static int record(struct job *job)
{
    uint64_t now = nt_cli_watch_now(CLOCK_MONOTONIC);
    job->flushed_at = now + FLUSH_MS * MS;
    int error = job->watch.filter ? nt_cli_watch_look(&job->watch, NULL, 0, false) : 0;
    if (error == 0)
        error = take_tables(job);
    if (error == 0)
        error = nt_cli_watch_run(&job->watch);
    if (error == 0)
        error = take_tables(job);
    if (error == 0)
        error = nt_recording_finish(job->recording, nt_cli_watch_now(CLOCK_REALTIME));
    if (error != 0)
        return say_unwritten(job, error);
    say_recorded(job);
    return job->bad || job->watch.code == NT_CLI_BAD ? NT_CLI_BAD : NT_CLI_OK;
}

static int count_program(void *arg, const struct nt_source_program *program)
{
    (void)program;
    ++*(size_t *)arg;
    return 0;
}

static bool is_nothing_there(struct job *job)
{
    size_t programs = 0;
    const struct nt_source_sink sink = { .program = count_program, .arg = &programs };
    return nt_source_snapshot(job->watch.source, &sink) == 0 && programs == 0;
}

static int record_sources(struct job *job)
{
    int code = nt_cli_sources_open(job->cli, &job->watch.sources, &job->watch.source);
    if (code != NT_CLI_OK)
        return code;
    if (!job->command && job->watch.sources.file_count == 0 && is_nothing_there(job)) {
        nt_cli_sources_say_nothing(job->cli, &job->watch.sources);
        return NT_CLI_NOTHING;
    }
    code = open_file(job);
    return code == NT_CLI_OK ? record(job) : code;
}

static int record_command(struct job *job, char **command)
{
    int error = nt_cli_child_begin(&job->child, job->values.directory), code = 126;
    job->command = true;
    job->command_code = -1;
    job->watch.alive = command_runs;
    if (error == 0) {
        job->watch.sources.directory = job->child.directory;
        code = nt_cli_sources_open(job->cli, &job->watch.sources, &job->watch.source);
        code = code == NT_CLI_OK ? open_file(job) : code;
        code = code == NT_CLI_OK ? nt_cli_child_start(&job->child, job->cli, command) : code;
        if (job->child.pid != 0) {
            code = record(job);
            while (command_runs(job)) /* recorded or not, it is waited for */
                (void)usleep(10000);
            code = code == NT_CLI_OK || job->command_code != 0 ? job->command_code : code;
        }
    } else {
        nt_cli_say(job->cli, "cannot make a directory for the logs: %s", nt_error_text(error));
    }
    nt_cli_child_end(&job->child, false);
    return code;
}

static int parse_length(struct job *job)
{
    char back[40];
    uint64_t then;
    job->deadline = UINT64_MAX;
    if (!job->values.length)
        return NT_CLI_OK;
    int size = snprintf(back, sizeof back, "-%s", job->values.length);
    if (size < 0 || (size_t)size >= sizeof back || job->values.length[0] == '-' ||
        nt_time_parse(back, (size_t)size, job->cli->now, &then) != 0) {
        nt_cli_say_of(job->cli, "--for '", job->values.length, "' is no length of time (10s, 5m, 1h)");
        return NT_CLI_USAGE;
    }
    job->deadline = nt_cli_watch_now(CLOCK_MONOTONIC) + (job->cli->now - then);
    return NT_CLI_OK;
}

static int run_job(struct job *job, const struct nt_cli_command *command, int count, char **arguments)
{
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(job->cli, command, count, arguments, &job->values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.dashes && (given.rest_count == 0 || given.plain_count > 0)) {
        nt_cli_say(job->cli, "%s (ntscope record --help tells more)",
                   given.rest_count == 0 ? "no command behind --" : "files and a command do not go together");
        return NT_CLI_USAGE;
    }
    struct nt_cli_watch *watch = &job->watch;
    *watch = (struct nt_cli_watch){ .cli = job->cli, .until = UINT64_MAX, .item = take_item, .idle = idle, .arg = job };
    watch->sources.directory = job->values.directory;
    watch->follow = given.plain_count == 0;
    code = parse_length(job);
    if (code == NT_CLI_OK)
        code = nt_cli_watch_where(watch, job->values.where);
    if (code == NT_CLI_OK)
        code = nt_cli_sources_take_files(job->cli, &given, &watch->sources);
    if (code != NT_CLI_OK)
        return code;
    name_file(job);
    job->cli->out_fd = -1; /* nobody waits for what goes there */
    return given.dashes ? record_command(job, given.rest) : record_sources(job);
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli, .file = -1 };
    return run_job(&job, command, count, arguments);
}

const struct nt_cli_command nt_cli_record = {
    .name = "record",
    .arguments = "[-o FILE] [--where EXPR] [--for LENGTH] [--dir DIR] [FILE…] [-- CMD…]",
    .summary = "Keeps what happens in a file, to be read like the logs themselves.",
    .text = text,
    .options = options,
    .run = run,
};
