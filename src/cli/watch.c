/* SPDX-License-Identifier: BSD-3-Clause */
/* Going through events in order, see watch.h. */
#include "cli/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "export/export.h"

#define MS UINT64_C(1000000)

enum {
    POLL_MS = 10,       /* between two looks for events, if there were none … */
    BUSY_MS = 1,        /* … or some: a ring may be lapped within a dozen ms */
    ALIVE_MS = 200,     /* between two looks whether anybody still runs */
    SLACK_MS = 10,      /* that an event's time may be wrong by, against ours */
    STALE_MS = 500,     /* between two looks at what may be said of objects later, at least … */
    STALE_SHARE = 50,   /* … and so many times as long as one look takes */
    NAMELESS_MS = 1000, /* for so long a session has no name: the log that has it may not have been found yet */
};

static volatile sig_atomic_t interrupted;

void nt_cli_watch_fini(struct nt_cli_watch *watch)
{
    nt_merge_free(watch->merge);
    nt_lives_free(watch->lives);
    nt_session_names_free(watch->sessions);
    nt_source_free(watch->source);
    nt_filter_free(watch->filter);
    nt_buffer_fini(&watch->data);
}

uint64_t nt_cli_watch_now(int clock)
{
    struct timespec now = { 0 };
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* ---- What the filter asks ---- */

/* A name is there before any event of its session: who asks when the event has come gets it, unless the program has
   forgotten it. It is not asked again, which it might have by then. */
struct nt_bytes nt_cli_watch_session(struct nt_cli_watch *watch, const struct nt_event *event)
{
    uint64_t session = event->session;
    struct nt_bytes name = { "", 0 };
    if (!watch->sessions || session == 0)
        return name;
    name = nt_session_names_find(watch->sessions, session);
    struct nt_cli_nameless *nameless = &watch->nameless[(session ^ session >> 48) % NT_CLI_WATCH_NAMELESS];
    if (name.size > 0 || !watch->source->ops->session_name ||
        (nameless->session == session && nt_cli_watch_now(CLOCK_MONOTONIC) < nameless->until))
        return name;
    name = (struct nt_bytes){ watch->session_room,
                              nt_source_session_name(watch->source, session, watch->session_room) };
    if (name.size == 0)
        *nameless = (struct nt_cli_nameless){ session, nt_cli_watch_now(CLOCK_MONOTONIC) + NAMELESS_MS * MS };
    else if (nt_session_names_add(watch->sessions, session, name) == 0)
        name = nt_session_names_find(watch->sessions, session);
    return name;
}

static size_t names_of(void *arg, const struct nt_event *event, enum nt_column column,
                       struct nt_bytes names[NT_FILTER_NAMES])
{
    struct nt_cli_watch *watch = arg;
    switch (column) {
    case NT_COLUMN_PROCESS:
        names[0] = watch->program->name;
        names[1] = watch->program->full_name;
        names[2] = watch->program->pid;
        return watch->program->known ? 3 : 1;
    case NT_COLUMN_NODE:
        names[0] = watch->program->node;
        return 1;
    case NT_COLUMN_OBJECT:
        names[0] = watch->life->name;
        return 1;
    case NT_COLUMN_PATH:
        names[0] = watch->life->path;
        return 1;
    case NT_COLUMN_KIND:
        names[0] = nt_life_kind(watch->life, event->kind, watch->room);
        return 1;
    case NT_COLUMN_REMOTE_NODE:
        names[0] = watch->life->remote_node;
        return names[0].size > 0;
    case NT_COLUMN_REMOTE_PROCESS:
        names[0] = watch->life->remote_process;
        return names[0].size > 0;
    case NT_COLUMN_SESSION:
        names[0] = nt_cli_watch_session(watch, event);
        return names[0].size > 0;
    case NT_COLUMN_DATA:
        nt_buffer_clear(&watch->data);
        nt_export_event_data(event, watch->life, &watch->data);
        names[0] = (struct nt_bytes){ watch->data.data, watch->data.size };
        return watch->data.error == 0 && !(watch->data.size == 4 && memcmp(watch->data.data, "null", 4) == 0);
    default:
        return 0;
    }
}

static bool number_of(void *arg, const struct nt_event *event, enum nt_column column, uint64_t *ret_number)
{
    const struct nt_cli_watch *watch = arg;
    switch (column) {
    case NT_COLUMN_THREAD:
        *ret_number = nt_source_thread(watch->source, event->program, event->ring, event->position);
        return *ret_number != 0;
    case NT_COLUMN_TIME_RAW:
        *ret_number = event->time;
        return true;
    case NT_COLUMN_LOG:
        *ret_number = watch->program->id;
        return true;
    default:
        return false;
    }
}

/* ---- Names ---- */

/* A new snapshot for the names of what came since the last one. */
static int refresh(struct nt_cli_watch *watch)
{
    struct nt_model model __attribute__((cleanup(nt_model_fini))) = { 0 };
    uint64_t before = nt_cli_watch_now(CLOCK_MONOTONIC);
    bool first = watch->looked_at == 0;
    watch->looked_at = nt_cli_watch_now(CLOCK_REALTIME);
    int code = nt_cli_sources_look(watch->cli, watch->source, first ? 0 : NT_CLI_LOOK_QUIET, &model);
    if (first)
        watch->code = code;
    /* Half fed models are empty: what was known before stays. */
    int error = first || model.program_count > 0 ? nt_lives_take(watch->lives, &model) : 0;
    watch->look_cost = watch->debt = nt_cli_watch_now(CLOCK_MONOTONIC) - before;
    return error;
}

/* Whether the items name anything that another snapshot may tell of: not known, and not gone before the last one.
   0, 1 or -ENOMEM. */
static int any_unknown(struct nt_cli_watch *watch, const struct nt_merge_item *items, size_t count)
{
    int unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const struct nt_event *event = items[i].event;
        if (!event)
            continue;
        const struct nt_life *life = nt_lives_find(watch->lives, event->program, event->object, event->generation);
        if (!life)
            return -ENOMEM;
        bool known = life->known && (event->data_size == 0 || nt_life_declared(life, event->kind));
        if (!known && event->time + SLACK_MS * MS >= watch->looked_at)
            unknown = 1;
    }
    return unknown;
}

/* Whether what is known is so old that more may have been said since. */
static bool is_stale(const struct nt_cli_watch *watch)
{
    uint64_t least = watch->look_cost * STALE_SHARE;
    least = least > STALE_MS * MS ? least : STALE_MS * MS;
    return watch->follow && nt_cli_watch_now(CLOCK_REALTIME) - watch->looked_at > least;
}

/* 0 or -ENOMEM; output that cannot be written is for who looks at it. */
static int take_items(struct nt_cli_watch *watch, const struct nt_merge_item *items, size_t count)
{
    int error = watch->lives ? any_unknown(watch, items, count) : 0;
    if (error > 0 || (error == 0 && count > 0 && watch->lives && is_stale(watch)))
        error = refresh(watch);
    for (size_t i = 0; i < count && error >= 0; i++)
        error = watch->item(watch->arg, &items[i]);
    return error < 0 ? error : 0;
}

/* ---- The condition ---- */

int nt_cli_watch_where(struct nt_cli_watch *watch, const char *where)
{
    struct nt_filter_error wrong = { 0 };
    char before[64];
    int error = where ? nt_filter_new(where, strlen(where), watch->cli->now, &watch->filter, &wrong) : 0;
    if (error == -ENOMEM) {
        nt_cli_say(watch->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (error == 0)
        return NT_CLI_OK;
    (void)snprintf(before, sizeof before, "--where, character %zu: ", wrong.column);
    nt_cli_say_of(watch->cli, before, wrong.text, "");
    return NT_CLI_USAGE;
}

bool nt_cli_watch_matches(struct nt_cli_watch *watch, const struct nt_event *event, const struct nt_life *life)
{
    watch->life = life;
    watch->program = life->program;
    watch->context.unknown = event->ring == NT_EVENT_NO_RING ? 1u << NT_COLUMN_RING : 0;
    return !watch->filter || nt_filter_match(watch->filter, event, &watch->context);
}

bool nt_cli_watch_may_match(struct nt_cli_watch *watch, const struct nt_event *event, const struct nt_life *life,
                            const struct nt_lives_program *program, uint32_t known)
{
    watch->life = life;
    watch->program = program;
    watch->context.unknown = ~known;
    return !watch->filter || nt_filter_possible(watch->filter, event, &watch->context);
}

/* ---- Reading ---- */

/* Hands out all that there is, and what was waited for. */
static int drain(struct nt_cli_watch *watch)
{
    int error = 0, count = 1;
    while (error == 0 && count > 0 && watch->cli->out.error == 0) {
        count = nt_merge_flush(watch->merge, watch->items, NT_CLI_WATCH_ITEMS);
        error = count < 0 ? count : take_items(watch, watch->items, (size_t)count);
    }
    return error;
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

static bool anybody_alive(struct nt_cli_watch *watch)
{
    if (watch->alive)
        return watch->alive(watch->arg);
    struct census census = { .named = watch->sources.file_count > 0 };
    const struct nt_source_sink sink = { .program = count_alive, .arg = &census };
    return nt_source_snapshot(watch->source, &sink) != 0 || census.alive > 0;
}

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Waits a little, and as long as looking for names took. Whether the output's reader is still there. */
static bool pause_shortly(struct nt_cli_watch *watch, int least)
{
    struct pollfd out = { .fd = watch->cli->out_fd };
    uint64_t pause = watch->debt / MS < 1000 ? watch->debt / MS : 1000;
    watch->debt = 0;
    return poll(&out, 1, (int)pause < least ? least : (int)pause) <= 0 || (out.revents & POLLERR) == 0;
}

/* One round of following: 0; 1: that is enough; or a negative code. Also whether there is more now, or how long to
   pause. */
static int follow_once(struct nt_cli_watch *watch, bool *ret_more, int *ret_pause)
{
    int count = nt_merge_next(watch->merge, nt_cli_watch_now(CLOCK_REALTIME), watch->items, NT_CLI_WATCH_ITEMS);
    int error = count < 0 ? count : take_items(watch, watch->items, (size_t)count);
    *ret_pause = count > 0 ? BUSY_MS : POLL_MS;
    *ret_more = count == NT_CLI_WATCH_ITEMS && watch->debt < POLL_MS * MS;
    return error == 0 && watch->idle ? watch->idle(watch->arg) : error;
}

static int follow(struct nt_cli_watch *watch)
{
    /* The second one ends it at once. */
    const struct sigaction once = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    uint64_t looked = 0;
    int error = 0;
    bool alive = true, reader = true;
    (void)sigaction(SIGINT, &once, NULL);
    (void)sigaction(SIGTERM, &once, NULL);
    while (error == 0 && alive && reader && !interrupted && watch->cli->out.error == 0) {
        bool more = false;
        int pause = POLL_MS;
        uint64_t now = nt_cli_watch_now(CLOCK_REALTIME);
        error = follow_once(watch, &more, &pause);
        if (watch->until < now && now - watch->until > 2 * NT_MERGE_HOLD_NS)
            break; /* also if programs are faster, and there is always more */
        if (error != 0 || more)
            continue;
        (void)nt_buffer_flush(&watch->cli->out);
        if (nt_cli_watch_now(CLOCK_MONOTONIC) - looked >= ALIVE_MS * MS) {
            looked = nt_cli_watch_now(CLOCK_MONOTONIC);
            alive = anybody_alive(watch);
        }
        reader = pause_shortly(watch, pause);
    }
    return error >= 0 && reader ? drain(watch) : error < 0 ? error : 0;
}

/* ---- ---- */

int nt_cli_watch_look(struct nt_cli_watch *watch, struct nt_model_path *const *paths, size_t path_count, bool sessions)
{
    watch->context = (struct nt_filter_context){ .names = names_of, .number = number_of, .arg = watch };
    int error = nt_lives_new(paths, path_count, &watch->lives);
    if (error == 0)
        error = refresh(watch);
    if (error == 0 && (sessions || (watch->filter && (nt_filter_names(watch->filter) >> NT_COLUMN_SESSION & 1))))
        error = nt_session_names_new(&watch->sessions);
    if (error != 0 || !watch->sessions)
        return error;
    error = nt_cli_sources_session_names(watch->source, watch->sessions);
    return error == -ENOMEM ? error : 0; /* what cannot be read has no names */
}

#define COLUMNS_OF_LIVES                                                                             \
    (1u << NT_COLUMN_LOG | 1u << NT_COLUMN_PROCESS | 1u << NT_COLUMN_NODE | 1u << NT_COLUMN_OBJECT | \
     1u << NT_COLUMN_PATH)

/* Whether the condition and the paths leave anything of that life, of which no more is known. */
static int wants_life(void *arg, uint32_t program, uint32_t object, uint32_t generation)
{
    struct nt_cli_watch *watch = arg;
    const struct nt_event event = { .program = program, .object = object, .generation = generation };
    const struct nt_life *life = nt_lives_find(watch->lives, program, object, generation);
    if (!life)
        return -ENOMEM;
    return nt_life_may_be_picked(watch->lives, life) &&
           nt_cli_watch_may_match(watch, &event, life, life->program, COLUMNS_OF_LIVES);
}

int nt_cli_watch_select(struct nt_cli_watch *watch, bool paths, uint64_t since, uint64_t until)
{
    struct nt_filter_bounds bounds = { .until = UINT64_MAX };
    int error = watch->filter ? nt_filter_bounds(watch->filter, &bounds) : 0;
    if (error != 0)
        return error;
    bool lives = paths || (watch->filter && (nt_filter_columns(watch->filter) & COLUMNS_OF_LIVES) != 0);
    const struct nt_source_wanted wanted = {
        .since = since > bounds.since ? since : bounds.since,
        .until = until < bounds.until ? until : bounds.until,
        .sessions = bounds.sessions,
        .session_count = bounds.session_count,
        .life = lives ? wants_life : NULL,
        .arg = watch,
    };
    error = nt_source_select(watch->source, &wanted);
    watch->selected = error > 0;
    return error < 0 ? error : 0;
}

int nt_cli_watch_run(struct nt_cli_watch *watch)
{
    const struct nt_merge_options options = { .no_hold = !watch->follow };
    int error = nt_merge_new(watch->source, &options, &watch->merge);
    if (error != 0)
        return error;
    return watch->follow ? follow(watch) : drain(watch);
}
