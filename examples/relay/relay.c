/* SPDX-License-Identifier: BSD-3-Clause */
/* An example of a message-passing program that is watched: the parent makes sockets and processes, waits for
   all of them, and prints what they counted. It opens no log itself. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "roles.h"

enum { POLL_MS = 100 };

struct child {
    char name[32];
    pid_t pid; /* 0: reaped */
    int status;
};

struct relay {
    const struct options *options;
    struct links links;
    struct child *children; /* source, router, workers, sink */
    unsigned count;
    int lines; /* the parent's end: one message, one line */
    char **texts;
    size_t text_count;
};

void role_complain(const struct program *program, const char *what, int error)
{
    char line[256];
    int length = snprintf(line, sizeof line, "relay: %s: %s: %s\n", program->name, what, strerror(-error));
    if (length > 0)
        (void)!write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* ---- What the children share ---- */

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; fds && i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int make_lifelines(unsigned workers, int **ret_ends, int **ret_lives)
{
    *ret_ends = calloc(workers, sizeof **ret_ends);
    *ret_lives = calloc(workers, sizeof **ret_lives);
    if (!*ret_ends || !*ret_lives)
        return -ENOMEM;
    for (unsigned i = 0; i < workers; i++) {
        int fds[2];
        if (pipe(fds) < 0)
            return -errno;
        (*ret_ends)[i] = fds[0];
        (*ret_lives)[i] = fds[1];
    }
    return 0;
}

static int make_links(struct relay *relay)
{
    struct links *links = &relay->links;
    int pair[2], lines[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, lines) < 0)
        return -errno;
    links->source = pair[0];
    links->router = pair[1];
    wire_timeout(pair[0], relay->options->timeout);
    wire_timeout(pair[1], relay->options->timeout);
    relay->lines = lines[0];
    links->lines = lines[1];
    int room = 2 * PROGRAM_LINE;
    setsockopt(lines[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    links->router_listener = wire_listen(true, &links->router_address);
    links->sink_listener = wire_listen(false, &links->sink_address);
    if (links->router_listener < 0 || links->sink_listener < 0)
        return links->router_listener < 0 ? links->router_listener : links->sink_listener;
    int result = make_lifelines(relay->options->workers, &links->router_lifelines, &links->router_lives);
    return result < 0 ? result : make_lifelines(relay->options->workers, &links->sink_lifelines, &links->sink_lives);
}

/* In a child: closes what others of the relay must be seen to close. number: of a worker, 0 none. */
static void keep_links(struct relay *relay, bool source, bool router, bool sink, unsigned number)
{
    struct links *links = &relay->links;
    unsigned workers = relay->options->workers;
    close(relay->lines);
    if (!source)
        close(links->source);
    if (!router) {
        close(links->router);
        close(links->router_listener);
        close_all(links->router_lifelines, workers);
    }
    if (!sink) {
        close(links->sink_listener);
        close_all(links->sink_lifelines, workers);
    }
    for (unsigned i = 0; i < workers; i++) {
        if (i + 1 == number)
            continue;
        close(links->router_lives[i]);
        close(links->sink_lives[i]);
    }
}

/* ---- Children ---- */

static int run_role(struct relay *relay, unsigned index)
{
    unsigned workers = relay->options->workers;
    bool sink = index == workers + 2;
    unsigned number = index >= 2 && !sink ? index - 1 : 0;
    keep_links(relay, index == 0, index == 1, sink, number);
    struct program program;
    if (program_open(&program, relay->options, relay->children[index].name, relay->links.lines) < 0)
        return 1;
    int code;
    if (index == 0)
        code = source_run(&program, &relay->links);
    else if (index == 1)
        code = router_run(&program, &relay->links);
    else if (sink)
        code = sink_run(&program, &relay->links);
    else
        code = worker_run(&program, &relay->links, number);
    program_close(&program);
    return code;
}

static int start_children(struct relay *relay)
{
    unsigned workers = relay->options->workers;
    for (unsigned i = 0; i < relay->count; i++) {
        struct child *child = &relay->children[i];
        if (i >= 2 && i < workers + 2)
            snprintf(child->name, sizeof child->name, "worker-%u", i - 1);
        else
            snprintf(child->name, sizeof child->name, "%s", i == 0 ? "source" : i == 1 ? "router" : "sink");
        child->pid = fork();
        if (child->pid == 0)
            _exit(run_role(relay, i));
        if (child->pid < 0) {
            child->pid = 0;
            child->status = -1;
            return -errno;
        }
    }
    return 0;
}

/* The parent keeps none of the children's descriptors: they see each other end. */
static void drop_links(struct relay *relay)
{
    struct links *links = &relay->links;
    unsigned workers = relay->options->workers;
    int fds[] = { links->source, links->router, links->router_listener, links->sink_listener, links->lines };
    close_all(fds, sizeof fds / sizeof *fds);
    int *lines[] = { links->router_lifelines, links->router_lives, links->sink_lifelines, links->sink_lives };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        close_all(lines[i], workers);
        free(lines[i]);
    }
}

/* ---- Waiting ---- */

/* One line of a child. False once nobody can send one any more. */
static bool take_line(struct relay *relay, char *buffer)
{
    ssize_t got = recv(relay->lines, buffer, PROGRAM_LINE, 0);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    char **texts = realloc(relay->texts, (relay->text_count + 1) * sizeof *texts);
    char *text = strndup(buffer, (size_t)got);
    if (texts)
        relay->texts = texts;
    if (texts && text)
        texts[relay->text_count++] = text;
    else
        free(text);
    return true;
}

/* How many have ended so far. */
static unsigned reap(struct relay *relay, int flags)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < relay->count; i++) {
        struct child *child = &relay->children[i];
        if (child->pid > 0 && waitpid(child->pid, &child->status, flags) == child->pid)
            child->pid = 0;
        ended += child->pid == 0;
    }
    return ended;
}

static void kill_children(struct relay *relay)
{
    for (unsigned i = 0; i < relay->count; i++)
        if (relay->children[i].pid > 0)
            kill(relay->children[i].pid, SIGKILL);
}

struct deadline {
    uint64_t limit; /* UINT64_MAX: none yet */
    bool killed;
};

/* Once one child has ended, the others follow within their timeouts, and helpers that a dead worker left behind
   do so too; those that do not are ended, or left. False: no use in waiting any longer. */
static bool deadline_stands(struct deadline *deadline, struct relay *relay)
{
    uint64_t grace = (2 * relay->options->timeout + 5) * 1000000000u;
    unsigned ended = reap(relay, WNOHANG);
    if (deadline->limit == UINT64_MAX && ended > 0)
        deadline->limit = watch_clock() + grace;
    if (watch_clock() < deadline->limit)
        return true;
    if (deadline->killed || ended == relay->count)
        return false;
    fprintf(stderr, "relay: processes that do not end are killed\n");
    kill_children(relay);
    deadline->killed = true;
    deadline->limit = watch_clock() + 1000000000u;
    return true;
}

/* Takes lines until nobody can send one any more. */
static void wait_for_children(struct relay *relay)
{
    char *buffer = malloc(PROGRAM_LINE);
    struct deadline deadline = { .limit = UINT64_MAX };
    for (bool open = buffer != NULL; open;) {
        if (wire_wait(relay->lines, POLL_MS) > 0)
            open = take_line(relay, buffer);
        else
            open = deadline_stands(&deadline, relay);
    }
    reap(relay, 0);
    free(buffer);
}

/* ---- Output ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines by the name of their process, then how each ended. 0 or 1. */
static int print_outcome(struct relay *relay)
{
    int code = 0;
    qsort(relay->texts, relay->text_count, sizeof *relay->texts, compare_texts);
    for (size_t i = 0; i < relay->text_count; i++) {
        fputs(relay->texts[i], stdout);
        free(relay->texts[i]);
    }
    free(relay->texts);
    fputs("{\"ended\":{", stdout);
    for (unsigned i = 0; i < relay->count; i++) {
        const struct child *child = &relay->children[i];
        bool exited = WIFEXITED(child->status);
        printf("%s\"%s\":{\"%s\":%d}", i ? "," : "", child->name, exited ? "exit" : "signal",
               exited ? WEXITSTATUS(child->status) : WTERMSIG(child->status));
        if (child->status != 0)
            code = 1;
    }
    fputs("}}\n", stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "relay: standard output: %s\n", strerror(errno));
        code = 1;
    }
    return code;
}

static int relay_run(const struct options *options)
{
    struct relay relay = { .options = options, .count = options->workers + 3, .lines = -1 };
    relay.children = calloc(relay.count, sizeof *relay.children);
    int result = relay.children ? make_links(&relay) : -ENOMEM;
    if (result < 0) {
        fprintf(stderr, "relay: sockets: %s\n", strerror(-result));
        return 1;
    }
    result = start_children(&relay);
    drop_links(&relay);
    if (result < 0) {
        fprintf(stderr, "relay: fork: %s\n", strerror(-result));
        kill_children(&relay);
    }
    wait_for_children(&relay);
    int code = print_outcome(&relay);
    free(relay.children);
    return result < 0 ? 1 : code;
}

int main(int argc, char **argv)
{
    struct command command;
    if (options_parse(argc, argv, &command) < 0)
        return 2;
    if (command.help) {
        options_help();
        return 0;
    }
    if (command.print_truth)
        return truth_print_directory(command.print_truth) < 0;
    if (!command.options.log && setenv("NTSCOPE", "off", 1) < 0)
        return 1;
    const char *truth = command.options.truth;
    if (truth && mkdir(truth, 0700) < 0 && errno != EEXIST) {
        fprintf(stderr, "relay: %s: %s\n", truth, strerror(errno));
        return 1;
    }
    return relay_run(&command.options);
}
