/* SPDX-License-Identifier: BSD-3-Clause */
/* The router: hands each request to a worker, chosen by the request's number alone, over connections that the
   workers make; every so many messages it asks for a new one. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "roles.h"

struct peer { /* a worker */
    struct channel orders;
    uint64_t requests; /* sent to it */
    bool known, gone;
};

struct router {
    struct program *program;
    const struct links *links;
    struct channel requests;
    struct watch unix_transport, front, tcp_transport, dispatch;
    nt_session standing; /* as the source tells */
    struct peer *peers;
    bool failed;
};

static void router_open(struct router *router)
{
    struct program *program = router->program;
    watch_open(program, &router->unix_transport,
               &(struct watch_options){ .name = "unix", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &router->front,
               &(struct watch_options){ &router->unix_transport, "front", NT_OBJECT_ENDPOINT, false, false });
    watch_open(program, &router->requests.watch,
               &(struct watch_options){ &router->front, "requests", NT_OBJECT_CHANNEL, false, false });
    watch_open(program, &router->tcp_transport, &(struct watch_options){ .name = "tcp", .kind = NT_OBJECT_TRANSPORT });
    watch_open(program, &router->dispatch,
               &(struct watch_options){ &router->tcp_transport, "dispatch", NT_OBJECT_ENDPOINT, false, false });
}

static void router_lost(struct router *router, struct peer *peer, int error)
{
    char name[64];
    snprintf(name, sizeof name, "worker-%u", (unsigned)(peer - router->peers) + 1);
    role_complain(router->program, name, error);
    channel_shut(&peer->orders);
    peer->gone = true;
    router->failed = true;
}

/* Takes the connection that a worker makes. The descriptor's HELLO says whose it is. */
static struct peer *router_hello(struct router *router, struct channel *fresh, struct message **ret_hello)
{
    int result = channel_receive_hello(fresh, ret_hello);
    unsigned workers = router->program->options->workers;
    if (result != 1)
        return NULL;
    unsigned number = (*ret_hello)->frame.worker;
    return number >= 1 && number <= workers ? &router->peers[number - 1] : NULL;
}

static void router_accept(struct router *router)
{
    uint64_t before = watch_clock();
    struct channel fresh = { .fd = wire_accept(router->links->router_listener, router->program->options->timeout) };
    if (fresh.fd < 0)
        return;
    struct message *hello = NULL;
    struct peer *peer = router_hello(router, &fresh, &hello);
    if (!peer || peer->gone || peer->orders.fd >= 0) {
        channel_shut(&fresh); /* it died, or is no worker of ours */
        message_free(hello);
        return;
    }
    peer->orders.fd = fresh.fd;
    peer->orders.sent = 0;
    peer->orders.received = fresh.received;
    if (peer->known) {
        watch_succeed(&peer->orders.watch);
    } else {
        char name[32];
        snprintf(name, sizeof name, "worker-%u", (unsigned)hello->frame.worker);
        watch_open(router->program, &peer->orders.watch,
                   &(struct watch_options){ &router->dispatch, name, NT_OBJECT_CHANNEL, false, false });
    }
    watch_session_set(&peer->orders.watch, router->standing);
    watch_count(&peer->orders.watch, peer->known ? NT_RECONNECT : NT_ACCEPT, watch_clock() - before);
    peer->known = true;
    channel_read_counts(&peer->orders, hello);
    message_free(hello);
}

/* Accepts until the peer is connected; false if it ended or the time is over. */
static bool router_await(struct router *router, struct peer *peer)
{
    int lifeline = router->links->router_lifelines[peer - router->peers];
    bool alive = true;
    while (peer->orders.fd < 0 && !peer->gone) {
        struct pollfd entries[2] = {
            { .fd = router->links->router_listener, .events = POLLIN },
            { .fd = alive ? lifeline : -1, .events = POLLIN },
        };
        /* A worker that ended may have left a connection in the queue: look once more. */
        int ready = poll(entries, 2, alive ? (int)router->program->options->timeout * 1000 : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (entries[0].revents)
            router_accept(router);
        else if (!alive || ready <= 0)
            router_lost(router, peer, alive ? -ETIMEDOUT : -ECONNRESET);
        if (entries[1].revents)
            alive = false;
    }
    return !peer->gone;
}

/* Hands the request to the worker, after a new connection if one is due. */
static bool router_send(struct router *router, struct peer *peer, nt_session session, struct message *message)
{
    uint64_t every = router->program->options->reconnect_every;
    int result = 0;
    if (every && peer->orders.sent >= every) {
        result = channel_signal(&peer->orders, router->standing, FRAME_AGAIN, 0, 0);
        if (result == 0) {
            channel_shut(&peer->orders);
            if (!router_await(router, peer))
                return false;
        }
    }
    if (result == 0)
        result = channel_send(&peer->orders, session, message);
    if (result < 0) {
        router_lost(router, peer, result);
        return false;
    }
    peer->requests++;
    return true;
}

/* The worker of a request, or where that one is gone, the next. */
static int router_dispatch(struct router *router, struct message *message)
{
    unsigned workers = router->program->options->workers;
    struct session part = watch_session_part(&router->program->self, "route", message->frame.session);
    int result = -EPIPE;
    uint64_t hash = (message->frame.id * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    for (unsigned i = 0; result < 0 && i < workers; i++) {
        struct peer *peer = &router->peers[(hash + i) % workers];
        if (!peer->gone && router_send(router, peer, part.id, message))
            result = 0;
    }
    watch_session_part_end(&router->program->self, &part);
    return result;
}

/* The source says first which session stands. */
static void router_greet(struct router *router, const struct message *hello)
{
    router->standing = hello->frame.session;
    watch_session_stand(&router->program->self, &(struct session){ .id = router->standing });
}

/* 1: go on, 0: the source is done, or a negative errno value. */
static int router_step(struct router *router)
{
    struct message *message = NULL;
    int result = channel_receive(&router->requests, NULL, &message);
    if (result <= 0)
        return result < 0 ? result : -ECONNRESET; /* it ended without saying so */
    if (message->frame.type == FRAME_REQUEST)
        result = router_dispatch(router, message);
    else if (message->frame.type == FRAME_PING)
        result = channel_signal(&router->requests, router->standing, FRAME_PONG, 0, 0);
    else if (message->frame.type == FRAME_HELLO)
        router_greet(router, message);
    else
        result = message->frame.type == FRAME_END ? 1 : -EBADMSG;
    bool end = message->frame.type == FRAME_END;
    message_free(message);
    return result < 0 ? result : !end;
}

static void router_close(struct router *router)
{
    for (unsigned i = 0; i < router->program->options->workers; i++) {
        struct peer *peer = &router->peers[i];
        int result = peer->gone ? 0 : channel_signal(&peer->orders, router->standing, FRAME_END, peer->requests, 0);
        if (result < 0)
            router_lost(router, peer, result);
        channel_shut(&peer->orders);
        if (peer->known)
            watch_close(&peer->orders.watch);
    }
    channel_shut(&router->requests);
    watch_close(&router->dispatch);
    watch_close(&router->tcp_transport);
    watch_close(&router->requests.watch);
    watch_close(&router->front);
    watch_close(&router->unix_transport);
}

int router_run(struct program *program, struct links *links)
{
    unsigned workers = program->options->workers;
    struct router router = { .program = program, .links = links, .requests.fd = links->router };
    router.peers = calloc(workers, sizeof *router.peers);
    if (!router.peers)
        return 1;
    for (unsigned i = 0; i < workers; i++)
        router.peers[i].orders.fd = -1;
    router_open(&router);
    for (unsigned i = 0; i < workers; i++)
        router_await(&router, &router.peers[i]);
    int result;
    do
        result = router_step(&router);
    while (result == 1);
    if (result < 0)
        role_complain(program, "requests", result);
    router_close(&router);
    free(router.peers);
    return result < 0 || router.failed;
}
