/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope top: statistics and rates, live in the terminal, or as plain text again and again. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/screen.h"
#include "cli/sources.h"
#include "cli/watch.h"
#include "export/top.h"
#include "model/rates.h"

#define MS UINT64_C(1000000)

enum {
    SCREEN_MS = 100, /* from one frame to the next */
    BATCH_MS = 1000,
    LEAST_MS = 20,
    MOST_MS = 3600000,
    FILTER = 128
};

struct values {
    bool batch, tree, busy, reverse;
    const char *delay, *frames, *sort, *filter, *directory;
};

static const struct nt_cli_option options[] = {
    { 'd', "delay", "SECONDS", "from one frame to the next (default: 0.1; as plain text 1)",
      offsetof(struct values, delay) },
    { 'n', "frames", "N", "end after N frames", offsetof(struct values, frames) },
    { 'b', "batch", NULL, "plain text, as where stdout is no terminal", offsetof(struct values, batch) },
    { 's', "sort", "COLUMN", "sort by that column (default: EVENTS/S)", offsetof(struct values, sort) },
    { 'r', "reverse", NULL, "the least first", offsetof(struct values, reverse) },
    { 'f', "filter", "TEXT", "only paths and kinds that have TEXT in them", offsetof(struct values, filter) },
    { 't', "tree", NULL, "as a tree, not sorted", offsetof(struct values, tree) },
    { 'i', "busy", NULL, "only what was counted in the last second", offsetof(struct values, busy) },
    { 0, "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

#define NT_TOP_KEY(key, shown, action, text) "  " shown "  " text "\n"
static const char text[] = "Keys\n"
#include "cli/keys.def"
                           "\nColumns\n"
#define NT_RATE_COLUMN(symbol, head, text) "  " head ": " text "\n"
#include "model/rates.def"
#undef NT_RATE_COLUMN
                           "  VALUES: the distribution of values from the least to the greatest, where one is kept\n"
                           "\n"
                           "Rates are those of the last second. What was lost is told above the columns. An argument "
                           "that is a log file or a\n"
                           "recording is read instead of live logs.\n"
                           "\n"
                           "  ntscope top\n"
                           "  ntscope top -b -n 2 -d 5 --busy | tail -n +4\n";
#undef NT_TOP_KEY

static const char *const heads[NT_RATE_COLUMNS] = {
#define NT_RATE_COLUMN(symbol, head, text) head,
#include "model/rates.def"
#undef NT_RATE_COLUMN
};

struct top {
    struct nt_cli *cli;
    struct values values;
    struct nt_cli_sources sources;
    struct nt_source *source;
    struct nt_rates *rates;
    struct nt_rate_view view;
    struct nt_cli_screen *screen; /* NULL: plain text */
    struct nt_buffer lines;
    char filter[FILTER];
    char before[FILTER]; /* the filter, while another is typed */
    uint64_t frames, delay_ms;
    uint64_t seen_at; /* of the snapshot that is shown, ns since 1970 */
    size_t first;     /* row */
    size_t page;      /* rows that fit */
    bool paused, typing, help, quit;
    int code;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void top_fini(struct top *top)
{
    nt_cli_screen_close(top->screen);
    nt_rates_free(top->rates);
    nt_source_free(top->source);
    nt_buffer_fini(&top->lines);
}

/* ---- Keys ---- */

static void sort_by(struct top *top, enum nt_rate_column column)
{
    top->view.sort = column;
    top->view.tree = false;
    top->first = 0;
}

static void press_quit(struct top *top)
{
    top->quit = true;
}

static void press_help(struct top *top)
{
    top->help = !top->help;
}

static void press_events(struct top *top)
{
    sort_by(top, NT_RATE_COUNT_RATE);
}

static void press_value(struct top *top)
{
    sort_by(top, NT_RATE_TOTAL_RATE);
}

static void press_total(struct top *top)
{
    sort_by(top, NT_RATE_TOTAL);
}

static void press_name(struct top *top)
{
    sort_by(top, NT_RATE_OBJECT);
}

static void press_left(struct top *top)
{
    sort_by(top, top->view.sort > 0 ? top->view.sort - 1 : 0);
}

static void press_right(struct top *top)
{
    sort_by(top, top->view.sort + 1 < NT_RATE_COLUMNS ? top->view.sort + 1 : top->view.sort);
}

static void press_reverse(struct top *top)
{
    top->view.reverse = !top->view.reverse;
}

static void press_tree(struct top *top)
{
    top->view.tree = !top->view.tree;
    top->first = 0;
}

static void press_busy(struct top *top)
{
    top->view.busy = !top->view.busy;
}

static void press_filter(struct top *top)
{
    memcpy(top->before, top->filter, sizeof top->filter);
    top->filter[0] = '\0';
    top->typing = true;
}

static void press_clear(struct top *top)
{
    top->filter[0] = '\0';
}

static void press_pause(struct top *top)
{
    top->paused = !top->paused;
}

static void press_faster(struct top *top)
{
    top->delay_ms = top->delay_ms / 2 > LEAST_MS ? top->delay_ms / 2 : LEAST_MS;
}

static void press_slower(struct top *top)
{
    top->delay_ms = top->delay_ms * 2 < MOST_MS ? top->delay_ms * 2 : MOST_MS;
}

static void press_up(struct top *top)
{
    top->first -= top->first > 0;
}

static void press_down(struct top *top)
{
    top->first++;
}

static void press_page_up(struct top *top)
{
    top->first = top->first > top->page ? top->first - top->page : 0;
}

static void press_page_down(struct top *top)
{
    top->first += top->page;
}

static void press_home(struct top *top)
{
    top->first = 0;
}

static void press_end(struct top *top)
{
    top->first = SIZE_MAX / 2;
}

static const struct {
    int key;
    const char *shown;
    void (*press)(struct top *top);
    const char *text;
} keys[] = {
#define NT_TOP_KEY(key, shown, action, text) { key, shown, press_##action, text },
#include "cli/keys.def"
#undef NT_TOP_KEY
};

/* While a filter is typed it holds at once. */
static void type(struct top *top, int key)
{
    size_t size = strlen(top->filter);
    if (key == NT_CLI_KEY_ENTER) {
        top->typing = false;
    } else if (key == NT_CLI_KEY_ESCAPE) {
        top->typing = false;
        memcpy(top->filter, top->before, sizeof top->filter);
    } else if (key == NT_CLI_KEY_BACKSPACE) {
        do
            top->filter[size > 0 ? --size : 0] = '\0';
        while (size > 0 && (top->filter[size - 1] & 0x80) != 0 && (top->filter[size - 1] & 0x40) == 0);
    } else if (key >= ' ' && key < 256 && size + 1 < sizeof top->filter) {
        top->filter[size] = (char)key;
        top->filter[size + 1] = '\0';
    }
    top->first = 0;
}

static void press(struct top *top, int key)
{
    if (key == NT_CLI_KEY_NONE || key == NT_CLI_KEY_RESIZE)
        return;
    if (top->typing) {
        type(top, key);
        return;
    }
    if (top->help) {
        top->help = false;
        top->quit = key == 'q';
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].key == key) {
            keys[i].press(top);
            return;
        }
    }
}

/* ---- Frames ---- */

/* NT_CLI_OK, or a code after which there is nothing to show. */
static int look(struct top *top)
{
    struct nt_model model = { 0 };
    bool first = top->seen_at == 0;
    uint64_t now = nt_cli_watch_now(CLOCK_MONOTONIC);
    int code = nt_cli_sources_look(top->cli, top->source, first ? 0 : NT_CLI_LOOK_QUIET, &model);
    top->seen_at = nt_cli_watch_now(CLOCK_REALTIME);
    if (first)
        top->code = code == NT_CLI_BAD ? code : NT_CLI_OK;
    if (first && model.program_count == 0) {
        if (code == NT_CLI_NOTHING)
            nt_cli_sources_say_nothing(top->cli, &top->sources);
        return code == NT_CLI_OK ? NT_CLI_NOTHING : code;
    }
    int error = nt_rates_take(top->rates, &model, now);
    if (error == 0)
        return NT_CLI_OK;
    nt_cli_say(top->cli, "%s", nt_error_text(error));
    return NT_CLI_BAD;
}

/* Puts the frame into the lines. */
static int make_frame(struct top *top, size_t *ret_heads)
{
    struct nt_export_top shown = {
        .rates = top->rates, .view = &top->view, .now = top->seen_at, .paused = top->paused
    };
    int error = nt_rates_rows(top->rates, &top->view, &shown.rows, &shown.all);
    if (error != 0) {
        nt_cli_say(top->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    shown.count = shown.all;
    *ret_heads = nt_export_top_lines(&shown) - 1;
    if (top->screen) {
        size_t rows = nt_cli_screen_rows(top->screen), above = *ret_heads + 1 + top->typing;
        shown.width = nt_cli_screen_columns(top->screen);
        shown.plain = nt_cli_screen_is_plain(top->screen);
        top->page = rows > above ? rows - above : 0;
        size_t most = shown.all > top->page ? shown.all - top->page : 0;
        top->first = top->first < most ? top->first : most;
        shown.first = top->first;
        shown.rows += top->first;
        shown.count = shown.all - top->first < top->page ? shown.all - top->first : top->page;
    }
    nt_buffer_clear(&top->lines);
    nt_export_top(&shown, &top->lines);
    return NT_CLI_OK;
}

static void make_help(struct top *top)
{
    nt_buffer_clear(&top->lines);
    nt_buffer_text(&top->lines, "Keys (any goes back)\n\n");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        nt_buffer_print(&top->lines, "  %-5s  %s\n", keys[i].shown, keys[i].text);
}

static int draw(struct top *top)
{
    char bottom[FILTER + 16] = "/";
    size_t heads_at = 0;
    int code = NT_CLI_OK;
    if (top->help)
        make_help(top);
    else
        code = make_frame(top, &heads_at);
    memcpy(bottom + 1, top->filter, strlen(top->filter) + 1);
    if (code == NT_CLI_OK && top->lines.error == 0)
        nt_cli_screen_draw(top->screen, top->lines.data, top->lines.size, heads_at, top->typing ? bottom : NULL);
    return code;
}

/* Keys until the next frame is due; once in any case, however late it is. */
static int wait_for_keys(struct top *top, uint64_t due)
{
    int code = NT_CLI_OK;
    uint64_t now = nt_cli_watch_now(CLOCK_MONOTONIC);
    do {
        int key = nt_cli_screen_key(top->screen, top->paused ? -1 : now < due ? (int)((due - now) / MS) + 1 : 0);
        press(top, key);
        if (key != NT_CLI_KEY_NONE && !interrupted)
            code = draw(top);
        now = nt_cli_watch_now(CLOCK_MONOTONIC);
    } while (code == NT_CLI_OK && !top->quit && !interrupted && (top->paused || now < due));
    return code;
}

static int show_frames(struct top *top)
{
    int code = NT_CLI_OK;
    for (uint64_t frame = 0; frame < top->frames && code == NT_CLI_OK && !top->quit && !interrupted; frame++) {
        uint64_t begun = nt_cli_watch_now(CLOCK_MONOTONIC);
        code = frame > 0 ? look(top) : NT_CLI_OK;
        if (code == NT_CLI_OK)
            code = draw(top);
        if (code == NT_CLI_OK)
            code = wait_for_keys(top, begun + top->delay_ms * MS);
    }
    return code;
}

/* Whether the time is over and the output's reader still there. */
static bool pause_batch(struct top *top, uint64_t due)
{
    struct pollfd out = { .fd = top->cli->out_fd };
    bool reader = true;
    for (uint64_t now; !interrupted && reader && (now = nt_cli_watch_now(CLOCK_MONOTONIC)) < due;)
        reader = poll(&out, 1, (int)((due - now) / MS) + 1) <= 0 || (out.revents & POLLERR) == 0;
    return reader && !interrupted;
}

static int write_frames(struct top *top)
{
    struct nt_buffer *out = &top->cli->out;
    int code = NT_CLI_OK;
    size_t heads_at;
    uint64_t due = nt_cli_watch_now(CLOCK_MONOTONIC);
    for (uint64_t frame = 0; frame < top->frames && code == NT_CLI_OK; frame++) {
        due += top->delay_ms * MS;
        code = frame > 0 ? look(top) : NT_CLI_OK;
        if (code == NT_CLI_OK)
            code = make_frame(top, &heads_at);
        nt_buffer_text(out, frame > 0 ? "\n" : "");
        nt_buffer_append(out, top->lines.data, top->lines.size);
        if (nt_buffer_flush(out) != 0 || (frame + 1 < top->frames && !pause_batch(top, due)))
            break;
    }
    return code;
}

/* ---- What is asked for ---- */

static int parse_delay(struct top *top)
{
    char *end = NULL;
    double seconds = top->values.delay ? strtod(top->values.delay, &end) : 0;
    top->delay_ms = top->screen || !top->values.batch ? SCREEN_MS : BATCH_MS;
    if (!top->values.delay)
        return NT_CLI_OK;
    if (end == top->values.delay || *end != '\0' || !(seconds >= 0.02 && seconds <= 3600)) {
        nt_cli_say_of(top->cli, "--delay '", top->values.delay, "' is no number of seconds from 0.02 to 3600");
        return NT_CLI_USAGE;
    }
    top->delay_ms = (uint64_t)(seconds * 1000);
    return NT_CLI_OK;
}

static int parse_sort(struct top *top)
{
    const char *sort = top->values.sort;
    for (int column = 0; sort && column < NT_RATE_COLUMNS; column++) {
        if (strcasecmp(sort, heads[column]) == 0) {
            top->view.sort = (enum nt_rate_column)column;
            return NT_CLI_OK;
        }
    }
    if (!sort)
        return NT_CLI_OK;
    nt_cli_say_of(top->cli, "unknown column '", sort, "' (ntscope top --help tells more)");
    return NT_CLI_USAGE;
}

static int parse_values(struct top *top)
{
    const struct values *values = &top->values;
    top->values.batch = values->batch || !isatty(STDOUT_FILENO);
    top->frames = UINT64_MAX;
    top->view.tree = values->tree;
    top->view.busy = values->busy;
    top->view.reverse = values->reverse;
    top->view.filter = top->filter;
    if (values->filter) {
        if (strlen(values->filter) >= sizeof top->filter) {
            nt_cli_say(top->cli, "--filter takes up to %d bytes", FILTER - 1);
            return NT_CLI_USAGE;
        }
        memcpy(top->filter, values->filter, strlen(values->filter) + 1);
    }
    if (values->frames &&
        (nt_parse_u64(values->frames, strlen(values->frames), &top->frames) != 0 || top->frames == 0)) {
        nt_cli_say_of(top->cli, "--frames '", values->frames, "' is no number from 1 on");
        return NT_CLI_USAGE;
    }
    int code = parse_delay(top);
    return code == NT_CLI_OK ? parse_sort(top) : code;
}

static void take_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction action = { .sa_handler = interrupt };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sigaction(numbers[i], &action, NULL);
}

static int run_frames(struct top *top)
{
    int code = look(top);
    if (code != NT_CLI_OK)
        return code;
    take_signals();
    if (top->values.batch)
        return write_frames(top);
    int error = nt_cli_screen_open(&top->screen);
    if (error == 0)
        return show_frames(top);
    nt_cli_say(top->cli, "%s",
               error == -ENOTSUP ? "this kind of terminal is not known ($TERM): try --batch" : nt_error_text(error));
    return NT_CLI_BAD;
}

static int run_top(struct top *top, const struct nt_cli_command *command, int count, char **arguments)
{
    struct nt_cli_arguments given;
    int code = nt_cli_options_parse(top->cli, command, count, arguments, &top->values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.dashes) {
        nt_cli_say(top->cli, "top runs no command (ntscope top --help tells more)");
        return NT_CLI_USAGE;
    }
    code = parse_values(top);
    if (code == NT_CLI_OK)
        code = nt_cli_sources_take_files(top->cli, &given, &top->sources);
    top->sources.directory = top->values.directory;
    if (code == NT_CLI_OK)
        code = nt_cli_sources_open(top->cli, &top->sources, &top->source);
    if (code != NT_CLI_OK)
        return code;
    int error = nt_rates_new(&top->rates);
    if (error != 0) {
        nt_cli_say(top->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    code = run_frames(top);
    return code == NT_CLI_OK ? top->code : code;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct top top __attribute__((cleanup(top_fini))) = { .cli = cli };
    return run_top(&top, command, count, arguments);
}

const struct nt_cli_command nt_cli_top = {
    .name = "top",
    .arguments = "[-d SECONDS] [-n N] [--batch] [--sort COLUMN] [--filter TEXT] [--tree] [--dir DIR] [FILE…]",
    .summary = "Shows statistics and rates live in the terminal.",
    .text = text,
    .options = options,
    .run = run,
};
