/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink: takes results over every connection that workers and jobs make, checks them, and keeps the newest
   in a file. It ends when all workers have ended and nothing is left to read. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "roles.h"

enum { CONNECTIONS = 256, FILE_SLOTS = 64, FILE_SLOT = 4096 };

struct supplier { /* a worker */
    struct channel results;
    uint64_t announced; /* results, by its END */
    uint64_t taken;
    bool known, ended; /* has connected; said that it is done */
    bool alive;        /* its lifeline stands */
};

struct sink {
    struct program *program;
    const struct links *links;
    struct watch transport, collector, jobs, file_watch;
    struct supplier *suppliers;
    struct channel *open_jobs; /* short connections, fd -1: a free place */
    struct pollfd *entries;
    int file; /* -1: none */
    uint64_t slot;
    nt_session standing; /* as the workers tell */
    bool failed;
};

static void sink_open_file(struct sink *sink)
{
    const char *directory = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/relay-sink-XXXXXX", directory && *directory ? directory : "/tmp");
    sink->file = mkostemp(path, O_CLOEXEC);
    if (sink->file < 0)
        watch_count(&sink->file_watch, NT_ERROR, (uint64_t)errno);
    else
        unlink(path);
}

static void sink_fail(struct sink *sink, const char *what, int error)
{
    sink->failed = true;
    role_complain(sink->program, what, error);
}

/* Keeps it, in a place that newer ones will take. */
static void sink_write(struct sink *sink, const struct message *message)
{
    size_t size = message->frame.size < FILE_SLOT ? message->frame.size : FILE_SLOT;
    uint64_t at = sink->slot++ % FILE_SLOTS * FILE_SLOT;
    ssize_t put = pwrite(sink->file, message->payload, size, (off_t)at);
    if (put < 0)
        watch_count(&sink->file_watch, NT_ERROR, (uint64_t)errno);
    else
        watch_count_with(&sink->file_watch, NT_DISK_WRITE, (uint64_t)put, at);
}

/* The last part of a request; then it is done. */
static void sink_keep(struct sink *sink, const struct message *message)
{
    struct watch *self = &sink->program->self;
    struct session part = watch_session_part(self, "store", message->frame.session);
    watch_session_set(&sink->file_watch, part.id);
    if (sink->file >= 0 && message->frame.size > 0)
        sink_write(sink, message);
    watch_session_part_end(self, &part);
    watch_session_end(self, &(struct session){ .id = message->frame.session });
}

/* What keeps connections up comes in the session that stands. */
static void sink_learn(struct sink *sink, nt_session standing)
{
    if (sink->standing != standing)
        watch_session_stand(&sink->program->self, &(struct session){ .id = standing });
    sink->standing = standing;
}

/* Checks and keeps one message of a worker. 1: go on, 0: this connection is done, or a negative errno value. */
static int sink_take(struct sink *sink, const struct message *message)
{
    const struct frame *frame = &message->frame;
    if (frame->worker < 1 || frame->worker > sink->program->options->workers)
        return -EBADMSG;
    struct supplier *supplier = &sink->suppliers[frame->worker - 1];
    switch (frame->type) {
    case FRAME_RESULT:
        supplier->taken++;
        sink_keep(sink, message);
        return 1;
    case FRAME_AGAIN:
        sink_learn(sink, frame->session);
        return 0;
    case FRAME_END:
        sink_learn(sink, frame->session);
        supplier->announced = frame->id;
        supplier->ended = true;
        return 0;
    default:
        return -EBADMSG;
    }
}

/* Reads one message; shuts the channel at its end. */
static void sink_read(struct sink *sink, struct channel *channel, const char *what)
{
    struct message *message = NULL;
    int result = channel_receive(channel, &sink->collector, &message);
    if (result == 1)
        result = sink_take(sink, message);
    if (result < 0)
        sink_fail(sink, what, result);
    if (result <= 0)
        channel_shut(channel);
    message_free(message);
}

/* ---- Connections ---- */

static void sink_adopt_worker(struct sink *sink, const struct channel *fresh, const struct message *hello,
                              uint64_t took)
{
    struct supplier *supplier = &sink->suppliers[hello->frame.worker - 1];
    /* What it wrote to the connection before lies there whole, up to its end. */
    while (supplier->results.fd >= 0)
        sink_read(sink, &supplier->results, "results");
    supplier->results.fd = fresh->fd;
    supplier->results.received = fresh->received;
    if (supplier->known) {
        watch_succeed(&supplier->results.watch);
    } else {
        char name[32];
        snprintf(name, sizeof name, "worker-%u", (unsigned)hello->frame.worker);
        watch_open(sink->program, &supplier->results.watch,
                   &(struct watch_options){ &sink->collector, name, NT_OBJECT_CHANNEL, false, false });
    }
    watch_session_set(&supplier->results.watch, hello->frame.session);
    watch_count(&supplier->results.watch, supplier->known ? NT_RECONNECT : NT_ACCEPT, took);
    supplier->known = true;
    channel_read_counts(&supplier->results, hello);
}

static void sink_adopt_job(struct sink *sink, struct channel *fresh, const struct message *hello, uint64_t took)
{
    size_t at = 0;
    while (at < CONNECTIONS && sink->open_jobs[at].fd >= 0)
        at++;
    if (at == CONNECTIONS) { /* cannot be: it is not polled for more */
        channel_shut(fresh);
        return;
    }
    struct channel *job = &sink->open_jobs[at];
    char name[32];
    snprintf(name, sizeof name, "job-%llu", (unsigned long long)hello->frame.id);
    job->fd = fresh->fd;
    job->received = fresh->received;
    job->session_first = true;
    watch_open(sink->program, &job->watch,
               &(struct watch_options){ &sink->jobs, name, NT_OBJECT_CHANNEL, false, true });
    watch_session_set(&job->watch, hello->frame.session);
    watch_count(&job->watch, NT_ACCEPT, took);
    channel_read_counts(job, hello);
}

static void sink_accept(struct sink *sink)
{
    uint64_t before = watch_clock();
    struct channel fresh = { .fd = wire_accept(sink->links->sink_listener, sink->program->options->timeout) };
    if (fresh.fd < 0)
        return;
    struct message *hello = NULL;
    int result = channel_receive_hello(&fresh, &hello);
    uint64_t took = watch_clock() - before;
    if (result != 1 || hello->frame.worker < 1 || hello->frame.worker > sink->program->options->workers)
        channel_shut(&fresh); /* it died, or is no worker of ours */
    else if (hello->frame.id == 0)
        sink_adopt_worker(sink, &fresh, hello, took);
    else
        sink_adopt_job(sink, &fresh, hello, took);
    message_free(hello);
}

static void sink_read_job(struct sink *sink, struct channel *job)
{
    sink_read(sink, job, "jobs");
    if (job->fd < 0)
        watch_close(&job->watch);
}

/* ---- The loop ---- */

/* All descriptors that something can come from; places stay the same, -1 where there is none now. Returns how
   many could still bring something. */
static unsigned sink_entries(struct sink *sink)
{
    unsigned workers = sink->program->options->workers, waiting = 0;
    struct pollfd *entry = sink->entries;
    *entry++ = (struct pollfd){ .fd = sink->links->sink_listener, .events = POLLIN };
    for (unsigned i = 0; i < workers; i++) {
        struct supplier *supplier = &sink->suppliers[i];
        waiting += supplier->alive || supplier->results.fd >= 0;
        *entry++ = (struct pollfd){ .fd = supplier->alive ? sink->links->sink_lifelines[i] : -1, .events = POLLIN };
        *entry++ = (struct pollfd){ .fd = supplier->results.fd, .events = POLLIN };
    }
    unsigned jobs = 0;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        jobs += sink->open_jobs[i].fd >= 0;
        *entry++ = (struct pollfd){ .fd = sink->open_jobs[i].fd, .events = POLLIN };
    }
    if (jobs == CONNECTIONS)
        sink->entries[0].fd = -1;
    return waiting + jobs;
}

static int sink_poll(struct sink *sink, int timeout_ms)
{
    nfds_t count = 1 + 2 * sink->program->options->workers + CONNECTIONS;
    int ready;
    do
        ready = poll(sink->entries, count, timeout_ms);
    while (ready < 0 && errno == EINTR);
    return ready < 0 ? -errno : ready;
}

/* Looks, and waits if there is nothing. */
static int sink_wait(struct sink *sink, bool last)
{
    uint64_t before = watch_clock();
    int ready = sink_poll(sink, 0);
    if (ready != 0 || last)
        return ready;
    uint64_t looked = watch_clock();
    watch_count(&sink->collector, NT_POLL, looked - before);
    ready = sink_poll(sink, (int)sink->program->options->timeout * 1000);
    if (ready > 0)
        watch_count(&sink->collector, NT_WAIT, watch_clock() - looked);
    return ready == 0 ? -ETIMEDOUT : ready;
}

static void sink_serve(struct sink *sink)
{
    unsigned workers = sink->program->options->workers;
    const struct pollfd *entry = sink->entries + 1 + 2 * workers;
    for (unsigned i = 0; i < CONNECTIONS; i++, entry++)
        if (entry->fd >= 0 && entry->revents)
            sink_read_job(sink, &sink->open_jobs[i]);
    entry = sink->entries + 1;
    for (unsigned i = 0; i < workers; i++, entry += 2) {
        struct supplier *supplier = &sink->suppliers[i];
        if (entry[0].revents)
            supplier->alive = false;
        if (entry[1].fd >= 0 && entry[1].revents)
            sink_read(sink, &supplier->results, "results");
    }
    if (sink->entries[0].revents) /* last: it changes what the other entries stand for */
        sink_accept(sink);
}

/* Until nothing can come: no worker lives, no connection is open, none waits to be accepted. */
static void sink_loop(struct sink *sink)
{
    for (;;) {
        bool last = sink_entries(sink) == 0;
        int ready = sink_wait(sink, last);
        if (ready < 0)
            sink_fail(sink, "results", ready);
        if (ready < 0 || (ready == 0 && last))
            return;
        sink_serve(sink);
    }
}

static bool sink_init(struct sink *sink)
{
    unsigned workers = sink->program->options->workers;
    sink->suppliers = calloc(workers, sizeof *sink->suppliers);
    sink->open_jobs = calloc(CONNECTIONS, sizeof *sink->open_jobs);
    sink->entries = calloc(1 + 2 * (size_t)workers + CONNECTIONS, sizeof *sink->entries);
    if (!sink->suppliers || !sink->open_jobs || !sink->entries)
        return false;
    for (unsigned i = 0; i < workers; i++) {
        sink->suppliers[i].results.fd = -1;
        sink->suppliers[i].alive = true;
    }
    for (unsigned i = 0; i < CONNECTIONS; i++)
        sink->open_jobs[i].fd = -1;
    struct program *program = sink->program;
    watch_open(program, &sink->transport, &(struct watch_options){ .name = "unix", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &sink->collector,
               &(struct watch_options){ &sink->transport, "collector", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &sink->jobs,
               &(struct watch_options){ &sink->transport, "jobs", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &sink->file_watch, &(struct watch_options){ .name = "results", .kind = NT_OBJECT_FILE });
    sink_open_file(sink);
    return true;
}

/* Whether every worker said how much it sent, and all of it came. */
static void sink_judge(struct sink *sink)
{
    for (unsigned i = 0; i < sink->program->options->workers; i++) {
        const struct supplier *supplier = &sink->suppliers[i];
        if (supplier->ended && supplier->taken == supplier->announced)
            continue;
        char what[64];
        snprintf(what, sizeof what, "results of worker-%u", i + 1);
        sink_fail(sink, what, -ENODATA);
    }
}

static void sink_fini(struct sink *sink)
{
    for (unsigned i = 0; sink->open_jobs && i < CONNECTIONS; i++) {
        if (sink->open_jobs[i].fd < 0)
            continue;
        channel_shut(&sink->open_jobs[i]);
        watch_close(&sink->open_jobs[i].watch);
    }
    for (unsigned i = 0; sink->suppliers && i < sink->program->options->workers; i++) {
        channel_shut(&sink->suppliers[i].results);
        if (sink->suppliers[i].known)
            watch_close(&sink->suppliers[i].results.watch);
    }
    if (sink->file >= 0)
        close(sink->file);
    free(sink->suppliers);
    free(sink->open_jobs);
    free(sink->entries);
}

int sink_run(struct program *program, struct links *links)
{
    struct sink sink = { .program = program, .links = links, .file = -1 };
    if (!sink_init(&sink)) {
        sink_fini(&sink);
        return 1;
    }
    sink_loop(&sink);
    sink_judge(&sink);
    sink_fini(&sink);
    watch_close(&sink.file_watch);
    watch_close(&sink.jobs);
    watch_close(&sink.collector);
    watch_close(&sink.transport);
    return sink.failed;
}
