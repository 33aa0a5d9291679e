/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope events: what happened, in order, one line each. The source is merged, names are looked up, gaps are worked
   out, and what was asked for is written. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "cli/sources.h"
#include "event/filter.h"
#include "export/export.h"
#include "model/gaps.h"
#include "model/lives.h"
#include "source/merge.h"

#define MS UINT64_C(1000000)

enum {
    ITEMS = 1024,       /* in one batch */
    POLL_MS = 10,       /* between two looks for events */
    ALIVE_MS = 200,     /* between two looks whether anybody still runs */
    SLACK_MS = 10,      /* that an event's time may be wrong by, against ours */
    STALE_MS = 500,     /* between two looks at what may be said of objects later, at least … */
    STALE_SHARE = 50,   /* … and so many times as long as one look takes */
    SESSIONS_MS = 1000, /* between two looks for the names of sessions, likewise */
};

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
    "name of a kind may be its last part. An argument that is a log file is read instead of live logs.\n"
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
    struct nt_cli_sources sources;
    struct nt_cli_paths paths;
    struct nt_filter *filter; /* NULL: all */
    uint64_t since, until;
    struct nt_source *source;
    struct nt_lives *lives;
    struct nt_session_names *sessions; /* NULL: nobody asks for them */
    struct nt_gaps *gaps;
    struct nt_merge *merge;
    struct nt_filter_context context;
    struct nt_export_lines lines;
    struct nt_merge_item items[ITEMS];
    /* what the filter asks about */
    const struct nt_life *life;
    const struct nt_lives_program *program;
    struct nt_buffer data;
    char room[NT_MODEL_KIND_ROOM];
    uint64_t looked_at;   /* when names were looked for, ns since 1970; 0: never */
    uint64_t look_cost;   /* how long that took, ns */
    uint64_t debt;        /* what was not paused for yet of that */
    uint64_t sessions_at; /* when names of sessions will be looked for, ns of the monotonic clock */
    uint64_t written;
    int code; /* of what could not be read */
};

static volatile sig_atomic_t interrupted;

static void job_fini(struct job *job)
{
    nt_merge_free(job->merge);
    nt_gaps_free(job->gaps);
    nt_lives_free(job->lives);
    nt_session_names_free(job->sessions);
    nt_source_free(job->source);
    nt_filter_free(job->filter);
    nt_cli_paths_fini(&job->paths);
    nt_buffer_fini(&job->data);
}

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now = { 0 };
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* ---- What the filter asks ---- */

static struct nt_bytes session_name(const struct job *job, const struct nt_event *event)
{
    const struct nt_bytes none = { "", 0 };
    return job->sessions && event->session != 0 ? nt_session_names_find(job->sessions, event->session) : none;
}

static size_t names_of(void *arg, const struct nt_event *event, enum nt_column column,
                       struct nt_bytes names[NT_FILTER_NAMES])
{
    struct job *job = arg;
    switch (column) {
    case NT_COLUMN_PROCESS:
        names[0] = job->program->name;
        names[1] = job->program->full_name;
        names[2] = job->program->pid;
        return job->program->known ? 3 : 1;
    case NT_COLUMN_NODE:
        names[0] = job->program->node;
        return 1;
    case NT_COLUMN_OBJECT:
        names[0] = job->life->name;
        return 1;
    case NT_COLUMN_PATH:
        names[0] = job->life->path;
        return 1;
    case NT_COLUMN_KIND:
        names[0] = nt_life_kind(job->life, event->kind, job->room);
        return 1;
    case NT_COLUMN_REMOTE_NODE:
        names[0] = job->life->remote_node;
        return names[0].size > 0;
    case NT_COLUMN_REMOTE_PROCESS:
        names[0] = job->life->remote_process;
        return names[0].size > 0;
    case NT_COLUMN_SESSION:
        names[0] = session_name(job, event);
        return names[0].size > 0;
    case NT_COLUMN_DATA:
        nt_buffer_clear(&job->data);
        nt_export_event_data(event, job->life, &job->data);
        names[0] = (struct nt_bytes){ job->data.data, job->data.size };
        return job->data.error == 0 && !(job->data.size == 4 && memcmp(job->data.data, "null", 4) == 0);
    default:
        return 0;
    }
}

static bool number_of(void *arg, const struct nt_event *event, enum nt_column column, uint64_t *ret_number)
{
    const struct job *job = arg;
    switch (column) {
    case NT_COLUMN_THREAD:
        *ret_number = nt_source_thread(job->source, event->program, event->ring, event->position);
        return *ret_number != 0;
    case NT_COLUMN_TIME_RAW:
        *ret_number = event->time;
        return true;
    case NT_COLUMN_LOG:
        *ret_number = job->program->id;
        return true;
    default:
        return false;
    }
}

/* ---- Names ---- */

/* A new snapshot for the names of what came since the last one. */
static int refresh(struct job *job)
{
    struct nt_model model __attribute__((cleanup(nt_model_fini))) = { 0 };
    uint64_t before = clock_now(CLOCK_MONOTONIC);
    bool first = job->looked_at == 0;
    job->looked_at = clock_now(CLOCK_REALTIME);
    int code = nt_cli_sources_look(job->cli, job->source, first ? 0 : NT_CLI_LOOK_QUIET, &model);
    if (first)
        job->code = code;
    /* Half fed models are empty: what was known before stays. */
    int error = first || model.program_count > 0 ? nt_lives_take(job->lives, &model) : 0;
    job->look_cost = job->debt = clock_now(CLOCK_MONOTONIC) - before;
    return error;
}

/* Names of sessions are kept by the programs that made them, beside sums that are much to read: so not too often. */
static int refresh_sessions(struct job *job)
{
    uint64_t before = clock_now(CLOCK_MONOTONIC);
    if (!job->sessions || before < job->sessions_at)
        return 0;
    int error = nt_cli_sources_session_names(job->source, job->sessions);
    uint64_t after = clock_now(CLOCK_MONOTONIC), least = (after - before) * STALE_SHARE;
    job->sessions_at = after + (least > SESSIONS_MS * MS ? least : SESSIONS_MS * MS);
    return error == -ENOMEM ? error : 0; /* what cannot be read has no names */
}

/* Whether the items name anything that another snapshot may tell of: not known, and not gone before the last one.
   0, 1 or -ENOMEM. */
static int any_unknown(struct job *job, const struct nt_merge_item *items, size_t count)
{
    int unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const struct nt_event *event = items[i].event;
        if (!event)
            continue;
        const struct nt_life *life = nt_lives_find(job->lives, event->program, event->object, event->generation);
        if (!life)
            return -ENOMEM;
        bool known = life->known && (event->data_size == 0 || nt_life_declared(life, event->kind));
        if (!known && event->time + SLACK_MS * MS >= job->looked_at)
            unknown = 1;
    }
    return unknown;
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
    job->life = missing->life;
    job->program = missing->program;
    job->context.unknown = ~known;
    if (!job->filter || nt_filter_possible(job->filter, &event, &job->context))
        job->format->missing(missing, &job->lines, &job->cli->out);
}

static int take_loss(struct job *job, const struct nt_merge_loss *loss)
{
    const struct nt_lives_program *program = nt_lives_program(job->lives, loss->lost.program);
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

static int take_gaps(struct job *job)
{
    struct nt_gap gap;
    while (nt_gaps_take(job->gaps, &gap)) {
        const struct nt_life *life = nt_lives_find(job->lives, gap.program, gap.object, gap.generation);
        const struct nt_export_missing missing = {
            .why = gap.why == NT_GAP_LOST         ? NT_EXPORT_LOST
                   : gap.why == NT_GAP_NOT_LOGGED ? NT_EXPORT_NOT_LOGGED
                                                  : NT_EXPORT_FOUND,
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
        if (nt_life_picked(job->lives, life, gap.kind))
            write_missing(job, &missing);
    }
    return 0;
}

static int take_event(struct job *job, const struct nt_merge_item *item)
{
    struct nt_event event = *item->event;
    event.flags |= (uint16_t)((item->late ? NT_EVENT_LATE : 0) | (item->ahead ? NT_EVENT_AHEAD : 0));
    int error = nt_gaps_event(job->gaps, &event);
    if (error > 0)
        error = take_gaps(job);
    if (error < 0)
        return error;
    const struct nt_life *life = nt_lives_find(job->lives, event.program, event.object, event.generation);
    if (!life)
        return -ENOMEM;
    if (!is_between(job, event.time, event.time) || !nt_life_picked(job->lives, life, event.kind))
        return 0;
    job->life = life;
    job->program = life->program;
    job->context.unknown = event.ring == NT_EVENT_NO_RING ? 1u << NT_COLUMN_RING : 0;
    if (job->filter && !nt_filter_match(job->filter, &event, &job->context))
        return 0;
    const struct nt_export_event line = {
        .event = &event,
        .life = life,
        .thread = nt_source_thread(job->source, event.program, event.ring, event.position),
        .session = session_name(job, &event),
    };
    job->format->event(&line, &job->lines, &job->cli->out);
    job->written++;
    return 0;
}

/* Whether what is known is so old that more may have been said since. */
static bool is_stale(const struct job *job)
{
    uint64_t least = job->look_cost * STALE_SHARE;
    least = least > STALE_MS * MS ? least : STALE_MS * MS;
    return job->values.follow && clock_now(CLOCK_REALTIME) - job->looked_at > least;
}

/* 0 or -ENOMEM; output that cannot be written is for who looks at it. */
static int take_items(struct job *job, const struct nt_merge_item *items, size_t count)
{
    int error = any_unknown(job, items, count);
    if (error > 0 || (error == 0 && count > 0 && is_stale(job)))
        error = refresh(job);
    if (error >= 0 && count > 0 && job->values.follow)
        error = refresh_sessions(job);
    for (size_t i = 0; i < count && error >= 0; i++)
        error = items[i].event ? take_event(job, &items[i]) : take_loss(job, items[i].loss);
    return error < 0 ? error : 0;
}

/* ---- Reading ---- */

/* Hands out all that there is, and what was waited for. */
static int drain(struct job *job)
{
    int error = 0, count = 1;
    while (error == 0 && count > 0 && job->cli->out.error == 0) {
        count = nt_merge_flush(job->merge, job->items, ITEMS);
        error = count < 0 ? count : take_items(job, job->items, (size_t)count);
    }
    if (error == 0)
        error = nt_gaps_flush(job->gaps);
    return error > 0 ? take_gaps(job) : error;
}

struct census {
    bool named; /* files: what cannot be told to live does not */
    size_t alive;
};

static int count_alive(void *arg, const struct nt_source_program *program)
{
    struct census *census = arg;
    census->alive += program->state == NT_PROGRAM_RUNNING || program->state == NT_PROGRAM_STOPPED ||
                     (program->state == NT_PROGRAM_UNKNOWN && !census->named);
    return 0;
}

static bool anybody_alive(struct job *job)
{
    struct census census = { .named = job->sources.file_count > 0 };
    const struct nt_source_sink sink = { .program = count_alive, .arg = &census };
    return nt_source_snapshot(job->source, &sink) != 0 || census.alive > 0;
}

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Waits a little, and as long as looking for names took. Whether the output's reader is still there. */
static bool pause_shortly(struct job *job)
{
    struct pollfd out = { .fd = job->cli->out_fd };
    uint64_t pause = job->debt / MS;
    job->debt = 0;
    return poll(&out, 1,
                pause < POLL_MS ? POLL_MS
                : pause < 1000  ? (int)pause
                                : 1000) <= 0 ||
           (out.revents & POLLERR) == 0;
}

static int follow(struct job *job)
{
    /* The second one ends it at once. */
    const struct sigaction once = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    uint64_t looked = 0;
    int error = 0;
    bool alive = true, reader = true;
    (void)sigaction(SIGINT, &once, NULL);
    (void)sigaction(SIGTERM, &once, NULL);
    while (error == 0 && alive && reader && !interrupted && job->cli->out.error == 0) {
        uint64_t now = clock_now(CLOCK_REALTIME);
        int count = nt_merge_next(job->merge, now, job->items, ITEMS);
        error = count < 0 ? count : take_items(job, job->items, (size_t)count);
        if (error != 0 || (count == ITEMS && job->debt < POLL_MS * MS))
            continue;
        (void)nt_buffer_flush(&job->cli->out);
        if (job->until < now && now - job->until > 2 * NT_MERGE_HOLD_NS)
            break;
        if (clock_now(CLOCK_MONOTONIC) - looked >= ALIVE_MS * MS) {
            looked = clock_now(CLOCK_MONOTONIC);
            alive = anybody_alive(job);
        }
        reader = pause_shortly(job);
    }
    return error == 0 && reader ? drain(job) : error;
}

/* ---- The command ---- */

static int check_paths(struct job *job)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    int error = nt_model_selection_init(&selection, nt_lives_model(job->lives));
    for (size_t i = 0; i < job->paths.count && error >= 0; i++) {
        error = nt_model_select(&selection, job->paths.parsed[i], true);
        if (error == 0)
            nt_cli_paths_say_unmatched(job->cli, &job->paths, i, nt_lives_model(job->lives));
    }
    return error < 0 ? error : 0;
}

/* The first look at what there is. 0 or -ENOMEM. */
static int look_first(struct job *job)
{
    bool names = job->filter && (nt_filter_names(job->filter) >> NT_COLUMN_SESSION & 1);
    int error = nt_lives_new(job->paths.parsed, job->paths.count, &job->lives);
    if (error == 0)
        error = refresh(job);
    if (error == 0 && (names || job->format == &nt_export_text))
        error = nt_session_names_new(&job->sessions);
    return error == 0 ? refresh_sessions(job) : error;
}

static int read_events(struct job *job)
{
    const struct nt_merge_options merge_options = { .no_hold = !job->values.follow };
    const struct nt_gaps_options gaps_options = { 0 };
    int error = job->values.follow ? 0 : check_paths(job);
    if (error == 0)
        error = nt_gaps_new(&gaps_options, &job->gaps);
    if (error == 0)
        error = nt_merge_new(job->source, &merge_options, &job->merge);
    if (error != 0)
        return error;
    return job->values.follow ? follow(job) : drain(job);
}

static int run_events(struct job *job)
{
    int error = look_first(job);
    bool nothing = error == 0 && nt_lives_model(job->lives)->program_count == 0;
    if (nothing && job->code == NT_CLI_NOTHING)
        nt_cli_sources_say_nothing(job->cli, &job->sources);
    if (nothing)
        return job->code;
    if (error == 0)
        error = read_events(job);
    if (error != 0) {
        nt_cli_say(job->cli, "cannot read events: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (job->code == NT_CLI_BAD || job->paths.not_a_log)
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

static int parse_where(struct job *job)
{
    const char *where = job->values.where;
    struct nt_filter_error wrong = { 0 };
    char before[64];
    int error = where ? nt_filter_new(where, strlen(where), job->cli->now, &job->filter, &wrong) : 0;
    if (error == -ENOMEM) {
        nt_cli_say(job->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (error == 0)
        return NT_CLI_OK;
    (void)snprintf(before, sizeof before, "--where, character %zu: ", wrong.column);
    nt_cli_say_of(job->cli, before, wrong.text, "");
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
    return code == 0 ? parse_where(job) : code;
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
    job->context = (struct nt_filter_context){ .names = names_of, .number = number_of, .arg = job };
    job->sources.directory = job->values.directory;
    code = parse_values(job);
    if (code != NT_CLI_OK)
        return code;
    if (nt_cli_paths_split(job->cli, &given, &job->sources, &job->paths) != 0)
        return NT_CLI_BAD;
    code = nt_cli_sources_open(job->cli, &job->sources, &job->source);
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
