/* SPDX-License-Identifier: BSD-3-Clause */
/* The source: reads the data of its requests from a file (the relay's own program) and sends them to the
   router, as fast as it is told; every 32nd message is a probe that it waits for. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "roles.h"

enum { PING_EVERY = 32 };

struct source {
    struct program *program;
    struct channel requests;
    struct watch transport, endpoint, data;
    struct session standing; /* of what keeps the relay's connections up */
    struct session *taken;   /* sessions that requests take in turn; NULL: each has its own */
    int file;                /* -1: none, requests are zeroes then */
    uint64_t file_size;
};

static void source_open(struct source *source, struct program *program, int fd)
{
    *source = (struct source){ .program = program, .requests.fd = fd };
    watch_open(program, &source->transport, &(struct watch_options){ .name = "unix", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &source->endpoint,
               &(struct watch_options){ &source->transport, "client", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &source->requests.watch,
               &(struct watch_options){ &source->endpoint, "requests", NT_OBJECT_CHANNEL, false, false });
    watch_open(program, &source->data, &(struct watch_options){ .name = "data", .kind = NT_OBJECT_FILE });
    source->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (source->file >= 0 && fstat(source->file, &status) == 0)
        source->file_size = (uint64_t)status.st_size;
}

static void source_close(struct source *source)
{
    if (source->file >= 0)
        close(source->file);
    channel_shut(&source->requests);
    watch_close(&source->data);
    watch_close(&source->requests.watch);
    watch_close(&source->endpoint);
    watch_close(&source->transport);
}

static int source_open_sessions(struct source *source)
{
    struct watch *self = &source->program->self;
    uint64_t count = source->program->options->session_count;
    source->standing = watch_session_new(self, "connections", 0);
    watch_session_stand(self, &source->standing);
    source->taken = count ? calloc(count, sizeof *source->taken) : NULL;
    if (count && !source->taken)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        char name[TRUTH_NAME];
        snprintf(name, sizeof name, "user %llu", (unsigned long long)i + 1);
        source->taken[i] = watch_session_new(self, name, 0);
    }
    return channel_signal(&source->requests, source->standing.id, FRAME_HELLO, 0, 0);
}

static nt_session source_session(struct source *source, uint64_t id)
{
    if (source->taken)
        return source->taken[id % source->program->options->session_count].id;
    char name[TRUTH_NAME];
    snprintf(name, sizeof name, "request %llu", (unsigned long long)id);
    return watch_session_new(&source->program->self, name, 0).id;
}

/* Fills the payload from the file, wherever the seed leads. */
static void source_read(struct source *source, struct message *message)
{
    uint32_t have = 0;
    while (have < message->frame.size) {
        uint64_t left = message->frame.size - have;
        uint64_t from = source->file_size ? program_random(source->program) % source->file_size : 0;
        ssize_t got = source->file < 0 ? -1 : pread(source->file, message->payload + have, left, (off_t)from);
        if (got <= 0) {
            watch_count(&source->data, NT_ERROR, (uint64_t)(got < 0 ? errno : EIO));
            memset(message->payload + have, 0, left);
            return;
        }
        watch_count(&source->data, NT_DISK_READ, (uint64_t)got);
        have += (uint32_t)got;
    }
}

static int source_send(struct source *source, uint64_t id)
{
    const struct options *options = source->program->options;
    uint64_t span = options->size_max - options->size_min + 1;
    uint32_t size = (uint32_t)(options->size_min + program_random(source->program) % span);
    struct message *message = message_new(FRAME_REQUEST, source_session(source, id), id, size);
    if (!message)
        return -ENOMEM;
    struct watch *self = &source->program->self;
    struct session part = watch_session_part(self, "fetch", message->frame.session);
    watch_session_set(&source->data, part.id);
    source_read(source, message);
    watch_session_part_end(self, &part);
    message->frame.checksum = message_checksum(message);
    message->frame.sent = watch_clock();
    int result = channel_send(&source->requests, message->frame.session, message);
    message_free(message);
    return result;
}

static int source_ping(struct source *source)
{
    uint64_t before = watch_clock();
    int result = channel_signal(&source->requests, source->standing.id, FRAME_PING, 0, 0);
    if (result < 0)
        return result;
    struct message *message = NULL;
    result = channel_receive(&source->requests, NULL, &message);
    if (result <= 0)
        return result < 0 ? result : -EPIPE;
    result = message->frame.type == FRAME_PONG ? 0 : -EBADMSG;
    message_free(message);
    if (result == 0)
        watch_count(&source->requests.watch, NT_PING, watch_clock() - before); /* in the pong's session */
    return result;
}

/* Keeps the rate: the n-th request is due n / rate seconds after the start. */
static void source_pace(const struct options *options, uint64_t start, uint64_t sent)
{
    if (options->rate == 0)
        return;
    uint64_t due = start + sent / options->rate * 1000000000u + sent % options->rate * 1000000000u / options->rate;
    struct timespec at = { .tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static int source_loop(struct source *source, uint64_t *ret_sent)
{
    const struct options *options = source->program->options;
    uint64_t start = watch_clock();
    uint64_t end = options->seconds ? start + options->seconds * 1000000000u : UINT64_MAX;
    int result = 0;
    for (*ret_sent = 0; result == 0 && (options->requests == 0 || *ret_sent < options->requests);) {
        source_pace(options, start, *ret_sent);
        if (watch_clock() >= end)
            break;
        result = source_send(source, *ret_sent + 1);
        if (result == 0 && ++*ret_sent % PING_EVERY == 0)
            result = source_ping(source);
    }
    return result;
}

int source_run(struct program *program, struct links *links)
{
    struct source source;
    source_open(&source, program, links->source);
    uint64_t sent;
    int result = source_open_sessions(&source);
    if (result == 0)
        result = source_loop(&source, &sent);
    if (result == 0)
        result = channel_signal(&source.requests, source.standing.id, FRAME_END, sent, 0);
    if (result < 0)
        role_complain(program, "requests", result);
    source_close(&source);
    free(source.taken);
    return result < 0;
}
