/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker: one thread reads orders, several handle them, one writes results; queues lie between. Every so many
   results the connection is made anew, and some results go over a short connection of their own. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

enum { QUEUE_ROOM = 64, BAD_EVERY = 97, BAD_CODE = EILSEQ };

void worker_fail(struct worker *worker, const char *what, int error)
{
    if (!atomic_exchange(&worker->failed, true)) /* say it once */
        role_complain(worker->program, what, error);
}

/* ---- Handling ---- */

/* Reads it part by part, each in a session below the request's. */
static void worker_read(struct view *view, const struct message *request)
{
    uint64_t size = message_size(request), parts = view->self.program->options->parts;
    parts = parts ? parts : 1;
    for (uint64_t i = 0; i < parts; i++) {
        struct session part = watch_session_part(&view->self, "handle", request->frame.session);
        watch_count_in(&view->requests, part.id, NT_READ, size / parts + (i < size % parts));
        watch_session_part_end(&view->self, &part);
    }
}

struct message *worker_handle(struct worker *worker, struct view *view, const struct message *request)
{
    const struct frame *frame = &request->frame;
    struct message *result = message_new(FRAME_RESULT, frame->session, frame->id, frame->size / 4);
    if (!result)
        return NULL;
    result->frame.worker = worker->number;
    result->frame.checksum = message_checksum(request);
    result->frame.sent = frame->sent;
    memcpy(result->payload, request->payload, result->frame.size);
    worker_read(view, request);
    if (frame->id % BAD_EVERY == 0)
        watch_count_in(&view->requests, frame->session, NT_ERROR, BAD_CODE);
    char path[32];
    snprintf(path, sizeof path, "/item/%llu", (unsigned long long)(frame->id % 1000));
    watch_done(&view->requests, &(struct watch_done){ frame->id, watch_clock() - frame->sent, path,
                                                      (double)frame->size / (double)(WIRE_PAYLOAD_MAX) });
    return result;
}

/* ---- Connections to the sink ---- */

/* Says who speaks. */
static int worker_hello(struct worker *worker, struct channel *channel, nt_session session, uint64_t job)
{
    int result = channel_signal(channel, session, FRAME_HELLO, job, worker->number);
    if (result < 0)
        channel_shut(channel);
    return result;
}

static int worker_reconnect_results(struct worker *worker)
{
    nt_session standing = worker->standing;
    int result = channel_signal(&worker->results, standing, FRAME_AGAIN, 0, worker->number);
    channel_shut(&worker->results);
    if (result < 0)
        return result;
    uint64_t before = watch_clock();
    worker->results.fd = wire_connect(&worker->links->sink_address, worker->program->options->timeout);
    if (worker->results.fd < 0) {
        watch_count(&worker->results.watch, NT_ERROR, (uint64_t)-worker->results.fd);
        return worker->results.fd;
    }
    watch_succeed(&worker->results.watch);
    watch_count(&worker->results.watch, NT_RECONNECT, watch_clock() - before);
    return worker_hello(worker, &worker->results, standing, 0);
}

static int worker_write(struct worker *worker, struct message *message)
{
    uint64_t every = worker->program->options->reconnect_every;
    int result = every && worker->results.sent >= every ? worker_reconnect_results(worker) : 0;
    return result < 0 ? result : channel_send(&worker->results, message->frame.session, message);
}

static void *writer_main(void *argument)
{
    struct worker *worker = argument;
    bool broken = worker->results.fd < 0;
    for (struct message *message; (message = queue_pop(&worker->outgoing));) {
        int result = broken ? 0 : worker_write(worker, message);
        if (result < 0) {
            worker_fail(worker, "results", result);
            broken = true; /* the rest is taken from the queue all the same, or nobody could end */
        } else if (!broken) {
            worker->sent++;
        }
        message_free(message);
    }
    return NULL;
}

/* A result over a connection of its own, which is watched as long as it stands. */
static int worker_job(struct worker *worker, struct view *view, struct watch *watch, struct message *message)
{
    nt_session session = message->frame.session;
    char name[32];
    snprintf(name, sizeof name, "job-%llu", (unsigned long long)message->frame.id);
    uint64_t before = watch_clock();
    struct channel job = { .fd = wire_connect(&worker->links->sink_address, worker->program->options->timeout) };
    if (job.fd < 0) {
        watch_count_in(&view->requests, session, NT_ERROR, (uint64_t)-job.fd);
        return job.fd;
    }
    job.watch = *watch;
    watch_open(worker->program, &job.watch,
               &(struct watch_options){ &worker->jobs, name, NT_OBJECT_CHANNEL, false, true });
    watch_session_set(&job.watch, session);
    watch_count(&job.watch, NT_CONNECT, watch_clock() - before);
    int result = worker_hello(worker, &job, session, message->frame.id);
    if (result == 0)
        result = channel_send(&job, session, message);
    channel_shut(&job);
    watch_close(&job.watch);
    *watch = job.watch;
    if (result == 0)
        worker->sent++;
    return result;
}

/* ---- Threads ---- */

struct handler { /* a thread */
    struct worker *worker;
    struct view view;
    struct watch job; /* the last one's, to be used again */
};

static void handler_deliver(struct handler *handler, struct message *take_result)
{
    struct worker *worker = handler->worker;
    uint64_t churn = worker->program->options->churn;
    if (!churn || take_result->frame.id % churn != 0) {
        queue_push(&worker->outgoing, take_result);
        return;
    }
    int result = atomic_load(&worker->failed) ? 0 : worker_job(worker, &handler->view, &handler->job, take_result);
    if (result < 0)
        worker_fail(worker, "jobs", result);
    message_free(take_result);
}

static void *handler_main(void *argument)
{
    struct worker *worker = argument;
    struct handler handler = {
        .worker = worker,
        .view = { watch_share(&worker->requests), watch_share(&worker->program->self) },
    };
    uint64_t every = worker->program->options->fork_every;
    for (struct message *message; (message = queue_pop(&worker->backlog));) {
        if (every && message->frame.id % every == 0) {
            if (helper_run(worker, &handler.view, message) != 0)
                worker_fail(worker, "helper", -ECHILD);
            continue;
        }
        struct message *result = worker_handle(worker, &handler.view, message);
        message_free(message);
        if (result)
            handler_deliver(&handler, result);
        else
            worker_fail(worker, "requests", -ENOMEM);
    }
    return NULL;
}

static int worker_connect_orders(struct worker *worker, bool again)
{
    uint64_t before = watch_clock();
    worker->orders.fd = wire_connect(&worker->links->router_address, worker->program->options->timeout);
    if (worker->orders.fd < 0) {
        watch_count(&worker->orders.watch, NT_ERROR, (uint64_t)-worker->orders.fd);
        return worker->orders.fd;
    }
    if (again)
        watch_succeed(&worker->orders.watch);
    watch_session_set(&worker->orders.watch, worker->standing);
    watch_count(&worker->orders.watch, again ? NT_RECONNECT : NT_CONNECT, watch_clock() - before);
    return worker_hello(worker, &worker->orders, worker->standing, 0);
}

/* What keeps connections up comes in the session that stands. */
static void worker_learn(struct worker *worker, nt_session standing)
{
    if (worker->standing != standing)
        watch_session_stand(&worker->self, &(struct session){ .id = standing });
    worker->standing = standing;
}

/* Reads orders until the router says that there are no more. 0 or a negative errno value. */
static int reader_loop(struct worker *worker)
{
    uint64_t requests = 0;
    for (;;) {
        struct message *message = NULL;
        int result = channel_receive(&worker->orders, NULL, &message);
        if (result <= 0)
            return result < 0 ? result : -ECONNRESET;
        enum frame_type type = (enum frame_type)message->frame.type;
        uint64_t id = message->frame.id, session = message->frame.session;
        if (type == FRAME_REQUEST) {
            requests++;
            queue_push(&worker->backlog, message);
            continue;
        }
        message_free(message);
        worker_learn(worker, session);
        if (type == FRAME_END)
            return id == requests ? 0 : -EBADMSG;
        if (type != FRAME_AGAIN)
            return -EBADMSG;
        channel_shut(&worker->orders);
        result = worker_connect_orders(worker, true);
        if (result < 0)
            return result;
    }
}

/* A program with many connections has most of them idle: what they cost is room. */
static void worker_open_idle(struct worker *worker)
{
    uint64_t count = worker->program->options->idle;
    worker->idle = count ? calloc(count, sizeof *worker->idle) : NULL;
    for (uint64_t i = 0; worker->idle && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "idle-%llu", (unsigned long long)i + 1);
        watch_open(worker->program, &worker->idle[i],
                   &(struct watch_options){ &worker->outbox, name, NT_OBJECT_CHANNEL, false, true });
        watch_count(&worker->idle[i], NT_WRITE, i);
    }
}

static void worker_close_idle(struct worker *worker)
{
    for (uint64_t i = 0; worker->idle && i < worker->program->options->idle; i++)
        watch_close(&worker->idle[i]);
    free(worker->idle);
}

static void worker_open(struct worker *worker)
{
    struct program *program = worker->program;
    watch_open(program, &worker->tcp_transport, &(struct watch_options){ .name = "tcp", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &worker->inbox,
               &(struct watch_options){ &worker->tcp_transport, "inbox", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &worker->orders.watch,
               &(struct watch_options){ &worker->inbox, "orders", NT_OBJECT_CHANNEL, false, false });
    watch_open(program, &worker->unix_transport,
               &(struct watch_options){ .name = "unix", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &worker->outbox,
               &(struct watch_options){ &worker->unix_transport, "outbox", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &worker->results.watch,
               &(struct watch_options){ &worker->outbox, "results", NT_OBJECT_CHANNEL, false, false });
    watch_open(program, &worker->jobs,
               &(struct watch_options){ &worker->unix_transport, "jobs", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &worker->helpers,
               &(struct watch_options){ &worker->unix_transport, "helpers", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &worker->requests,
               &(struct watch_options){ .name = "requests", .kind = NT_OBJECT_OTHER, .shared = true });
    watch_open(program, &worker->backlog.watch, &(struct watch_options){ .name = "backlog", .kind = NT_OBJECT_OTHER });
    watch_open(program, &worker->outgoing.watch,
               &(struct watch_options){ .name = "outgoing", .kind = NT_OBJECT_OTHER });
    worker->self = watch_share(&program->self);
    worker_open_idle(worker);
}

static void worker_close(struct worker *worker)
{
    channel_shut(&worker->orders);
    channel_shut(&worker->results);
    worker_close_idle(worker);
    struct watch *watches[] = {
        &worker->outgoing.watch, &worker->backlog.watch, &worker->requests,      &worker->helpers,
        &worker->jobs,           &worker->results.watch, &worker->outbox,        &worker->unix_transport,
        &worker->orders.watch,   &worker->inbox,         &worker->tcp_transport,
    };
    for (size_t i = 0; i < sizeof watches / sizeof *watches; i++)
        watch_close(watches[i]);
    queue_fini(&worker->backlog);
    queue_fini(&worker->outgoing);
}

static int worker_connect_results(struct worker *worker)
{
    uint64_t before = watch_clock();
    worker->results.fd = wire_connect(&worker->links->sink_address, worker->program->options->timeout);
    if (worker->results.fd < 0) {
        watch_count(&worker->results.watch, NT_ERROR, (uint64_t)-worker->results.fd);
        return worker->results.fd;
    }
    watch_count(&worker->results.watch, NT_CONNECT, watch_clock() - before);
    return worker_hello(worker, &worker->results, 0, 0);
}

/* Starts the threads, reads, and brings all to their end. */
static void worker_work(struct worker *worker)
{
    unsigned wanted = worker->program->options->threads, started = 0;
    pthread_t writer, *handlers = calloc(wanted, sizeof *handlers);
    if (!handlers || pthread_create(&writer, NULL, writer_main, worker) != 0) {
        worker_fail(worker, "threads", -EAGAIN);
        free(handlers);
        return;
    }
    while (started < wanted && pthread_create(&handlers[started], NULL, handler_main, worker) == 0)
        started++;
    int result = started ? reader_loop(worker) : -EAGAIN;
    if (result < 0)
        worker_fail(worker, "orders", result);
    queue_close(&worker->backlog);
    for (unsigned i = 0; i < started; i++)
        pthread_join(handlers[i], NULL);
    queue_close(&worker->outgoing);
    pthread_join(writer, NULL);
    free(handlers);
}

int worker_run(struct program *program, struct links *links, unsigned number)
{
    struct worker worker = {
        .program = program,
        .links = links,
        .number = (uint16_t)number,
        .orders = { .fd = -1, .session_first = true },
        .results.fd = -1,
    };
    queue_init(&worker.backlog, QUEUE_ROOM);
    queue_init(&worker.outgoing, QUEUE_ROOM);
    worker_open(&worker);
    int result = worker_connect_results(&worker);
    if (result < 0)
        worker_fail(&worker, "results", result);
    result = worker_connect_orders(&worker, false);
    if (result < 0)
        worker_fail(&worker, "orders", result);
    else
        worker_work(&worker);
    if (worker.results.fd >= 0 && !worker.failed) {
        result = channel_signal(&worker.results, worker.standing, FRAME_END, worker.sent, worker.number);
        if (result < 0)
            worker_fail(&worker, "results", result);
    }
    worker_close(&worker);
    return worker.failed;
}
