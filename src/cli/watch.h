/* SPDX-License-Identifier: BSD-3-Clause */
/* Going through the events of sources in order, once or as they come: with the names of what they name, and a condition
   on them. What becomes of an event is for who watches. */
#ifndef NT_CLI_WATCH_H
#define NT_CLI_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/sources.h"
#include "event/filter.h"
#include "model/lives.h"
#include "model/session_names.h"
#include "source/merge.h"

enum {
    NT_CLI_WATCH_ITEMS = 1024,   /* in one batch */
    NT_CLI_WATCH_NAMELESS = 1024 /* sessions of which it is remembered that they have no name */
};

struct nt_cli_nameless { /* a session */
    uint64_t session, until;
};

struct nt_cli_watch {
    /* set by who watches */
    struct nt_cli *cli;
    struct nt_cli_sources sources;
    bool follow;    /* go on while programs run */
    uint64_t until; /* ns since 1970: later events are not waited for */
    /* The next event or loss; the names it needs were looked for. 0 or a negative code. */
    int (*item)(void *arg, const struct nt_merge_item *item);
    /* While following, every few milliseconds, busy or not. 0; 1: that is enough; or a negative code. May be NULL. */
    int (*idle)(void *arg);
    /* Whether anything can come yet, asked while following; NULL: while a program lives. */
    bool (*alive)(void *arg);
    void *arg;

    struct nt_filter *filter; /* NULL: all */
    struct nt_source *source;
    struct nt_lives *lives;            /* NULL: no names are asked for */
    struct nt_session_names *sessions; /* likewise */
    int code;                          /* of what could not be read */
    bool selected;                     /* not all events come, see nt_cli_watch_select */

    /* its own */
    struct nt_merge *merge;
    struct nt_filter_context context;
    struct nt_merge_item items[NT_CLI_WATCH_ITEMS];
    const struct nt_life *life; /* whose event the filter is asked about */
    const struct nt_lives_program *program;
    struct nt_buffer data;
    char room[NT_MODEL_KIND_ROOM];
    uint64_t looked_at; /* when names were looked for, ns since 1970; 0: never */
    uint64_t look_cost; /* how long that took, ns */
    uint64_t debt;      /* what was not paused for yet of that */
    char session_room[NT_SOURCE_SESSION_NAME];
    struct nt_cli_nameless nameless[NT_CLI_WATCH_NAMELESS];
};

void nt_cli_watch_fini(struct nt_cli_watch *watch);
/* Compiles the condition of --where; NULL: none. NT_CLI_OK, or after saying what is wrong another code. */
int nt_cli_watch_where(struct nt_cli_watch *watch, const char *where);
/* Whether the condition is true of the event of that life. */
bool nt_cli_watch_matches(struct nt_cli_watch *watch, const struct nt_event *event, const struct nt_life *life);
/* Whether it may be of one of which only the columns `known` are known. `life` may be NULL. */
bool nt_cli_watch_may_match(struct nt_cli_watch *watch, const struct nt_event *event, const struct nt_life *life,
                            const struct nt_lives_program *program, uint32_t known);
/* The name of the event's session, empty if there is none. */
struct nt_bytes nt_cli_watch_session(struct nt_cli_watch *watch, const struct nt_event *event);
/* Takes the first look at the source, for names. `sessions`: those of sessions too. 0 or a negative code. */
int nt_cli_watch_look(struct nt_cli_watch *watch, struct nt_model_path *const *paths, size_t path_count, bool sessions);
/* Before it is run, unless it follows: lets the source leave out what the condition, the paths of nt_cli_watch_look and
   the times rule out, whether it is an event or one that is missing. 0 or a negative code. */
int nt_cli_watch_select(struct nt_cli_watch *watch, bool paths, uint64_t since, uint64_t until);
/* Hands out all there is, and while following what comes. 0 or a negative code; what is interrupted has ended well. */
int nt_cli_watch_run(struct nt_cli_watch *watch);

/* ns of that clock. */
uint64_t nt_cli_watch_now(int clock);

#endif
