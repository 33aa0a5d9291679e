/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers: a handling thread forks a process that handles a few requests over a pair of sockets. The child
   counts on objects that it inherited, on one that it makes itself, and in a truth of its own. Other threads may
   have held any lock at that moment: the child neither allocates from the heap nor uses stdio. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

enum { HELPER_BATCH = 4 };

/* Descriptors of the worker must not stay open in the child: its peers wait for their end. */
static void helper_keep(int fd, int lines)
{
    long limit = sysconf(_SC_OPEN_MAX);
    if (limit < 0 || limit > 4096)
        limit = 4096;
    for (int other = 3; other < limit; other++)
        if (other != fd && other != lines)
            close(other);
}

static int helper_loop(struct worker *worker, struct view *view, struct channel *channel)
{
    for (;;) {
        struct message *message = NULL;
        int status = channel_receive(channel, NULL, &message);
        if (status <= 0)
            return status < 0 ? status : -ECONNRESET;
        if (message->frame.type == FRAME_END) {
            message_free(message);
            return 0;
        }
        struct message *result = worker_handle(worker, view, message);
        status = result ? channel_send(channel, result->frame.session, result) : -ENOMEM;
        message_free(message);
        message_free(result);
        if (status < 0)
            return status;
    }
}

static int helper_main(struct worker *worker, struct view *view, struct channel *channel)
{
    helper_keep(channel->fd, worker->program->lines);
    message_forked();
    if (program_forked(worker->program) < 0)
        return 1;
    view->self = worker->program->self;
    struct watch own;
    watch_open(worker->program, &own,
               &(struct watch_options){ &worker->helpers, "own", NT_OBJECT_OTHER, false, false });
    int result = helper_loop(worker, view, channel);
    watch_count_with(&own, NT_QUEUE, channel->received, channel->sent);
    watch_close(&own);
    if (result < 0)
        role_complain(worker->program, "helper", result);
    program_close(worker->program);
    return result < 0;
}

/* One request and its result. Takes the message. */
static int helper_exchange(struct worker *worker, struct channel *channel, struct message *take_message)
{
    int status = channel_send(channel, take_message->frame.session, take_message);
    message_free(take_message);
    struct message *result = NULL;
    if (status == 0)
        status = channel_receive(channel, NULL, &result);
    if (status == 1)
        queue_push(&worker->outgoing, result);
    return status == 1 ? 0 : status < 0 ? status : -ECONNRESET;
}

static int helper_serve(struct worker *worker, struct channel *channel, struct message *take_message)
{
    int status = 0;
    for (unsigned i = 0; take_message && status == 0;) {
        status = helper_exchange(worker, channel, take_message);
        take_message = status == 0 && ++i < HELPER_BATCH ? queue_try_pop(&worker->backlog) : NULL;
    }
    return status < 0 ? status : channel_signal(channel, worker->standing, FRAME_END, 0, 0);
}

static int helper_reap(pid_t pid)
{
    int status;
    pid_t reaped;
    do
        reaped = waitpid(pid, &status, 0);
    while (reaped < 0 && errno == EINTR);
    return reaped == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

int helper_run(struct worker *worker, struct view *view, struct message *take_message)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        message_free(take_message);
        return 1;
    }
    wire_timeout(ends[0], worker->program->options->timeout);
    wire_timeout(ends[1], worker->program->options->timeout);
    char name[32];
    snprintf(name, sizeof name, "helper-%llu", (unsigned long long)take_message->frame.id);
    struct channel channel = { .fd = ends[0], .session_first = true };
    watch_open(worker->program, &channel.watch,
               &(struct watch_options){ &worker->helpers, name, NT_OBJECT_CHANNEL, false, true });
    pid_t pid = fork();
    if (pid == 0) {
        channel.fd = ends[1];
        _exit(helper_main(worker, view, &channel));
    }
    int status = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (status == 0)
        status = helper_serve(worker, &channel, take_message);
    else
        message_free(take_message);
    channel_shut(&channel);
    int reaped = pid < 0 ? 1 : helper_reap(pid);
    watch_close(&channel.watch);
    return status < 0 || reaped;
}
