/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp backend's table, its transports and endpoints. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

static struct tcp *tcp_of_core(struct nt_transport *transport)
{
    return (struct tcp *)(void *)transport;
}

/* ---- Transports ---- */

static int tcp_open(struct nt_transport *transport)
{
    struct tcp *tcp = tcp_of_core(transport);
    tcp->listener.fd = -1;
    tcp->scratch = malloc(TCP_SCRATCH + WIRE_HEAD_MAX);
    tcp->host = strdup(transport->options.external_host);
    if (tcp->scratch == NULL || tcp->host == NULL) {
        return -ENOMEM;
    }
    return transport->options.flags & NT_TRANSPORT_UNADDRESSABLE ? 0 : incoming_listen(tcp);
}

static void tcp_close(struct nt_transport *transport)
{
    struct tcp *tcp = tcp_of_core(transport);
    int fd = tcp->listener.fd;
    transport_timer_clear(transport, &tcp->backoff);
    if (fd >= 0) {
        transport_watch_clear(transport, &tcp->listener);
        (void)shutdown(fd, SHUT_RDWR); /* a child that has it too would go on listening */
        close(fd);
    }
    while (tcp->pending != NULL) {
        socket_close(tcp->pending);
    }
}

/* Whether everything has left that is to. */
static bool tcp_flushed(struct nt_transport *transport)
{
    const struct tcp *tcp = tcp_of_core(transport);
    const struct tcp_socket *socket;
    DL_FOREACH(tcp->ending, socket)
    {
        if (!socket->shut) {
            return false;
        }
    }
    return true;
}

static void tcp_fini(struct nt_transport *transport)
{
    struct tcp *tcp = tcp_of_core(transport);
    while (tcp->ending != NULL) {
        socket_close(tcp->ending);
    }
    if (tcp->listener.fd >= 0) {
        close(tcp->listener.fd);
    }
    free(tcp->scratch);
    free(tcp->host);
    free(tcp->port);
}

/* ---- Endpoints ---- */

static int tcp_endpoint_open(struct nt_endpoint *endpoint)
{
    struct tcp *tcp = tcp_of_core(endpoint->transport);
    int size;
    if (tcp->core.options.flags & NT_TRANSPORT_UNADDRESSABLE) {
        uint64_t random[2];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
            return -ENOMEM;
        }
        size = asprintf(&endpoint->address, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)random[0],
                        (unsigned)(random[0] >> 32 & 0xffff), (unsigned)(random[0] >> 52),
                        (unsigned)(0x8000 | (random[1] & 0x3fff)), (unsigned long long)(random[1] >> 16));
    } else {
        size = asprintf(&endpoint->address, "%s:%s:%u", tcp->host, tcp->port, tcp->endpoints);
    }
    if (size < 0) {
        endpoint->address = NULL;
        return -ENOMEM;
    }
    tcp->endpoints++;
    endpoint->address_size = (size_t)size;
    return 0;
}

static void tcp_endpoint_close(struct nt_endpoint *endpoint)
{
    struct transport_peer *core, *next;
    HASH_ITER(hh, endpoint->peers, core, next)
    {
        struct tcp_peer *peer = tcp_peer_of(core);
        if (peer->parked != NULL) {
            socket_close(peer->parked);
            peer->parked = NULL;
        }
        if (peer->state == PEER_VALID || peer->state == PEER_CLOSING) {
            struct tcp_socket *socket = peer->socket;
            if (peer->state == PEER_VALID) {
                (void)bundle_control(peer, WIRE_CLOSE_ENDPOINT, 0);
            }
            transport_timer_clear(&tcp_of(peer)->core, &peer->probe);
            transport_timer_clear(&tcp_of(peer)->core, &peer->closing);
            peer->socket = NULL;
            peer->state = PEER_NONE;
            socket_end(socket);
        } else {
            dial_stop(peer);
        }
    }
}

/* ---- Driving ---- */

static uint64_t tcp_flush(struct nt_transport *transport, uint64_t since)
{
    struct tcp *tcp = tcp_of_core(transport);
    while (tcp->gathering != NULL && tcp->gathering->since <= since) { /* oldest first */
        bundle_send_gathered(tcp->gathering);
    }
    return tcp->gathering != NULL ? tcp->gathering->since : 0;
}

static bool tcp_quick(struct nt_transport *transport)
{
    struct tcp_socket *hot = tcp_of_core(transport)->hot;
    return hot != NULL && !hot->paused && bundle_read(hot);
}

/* ---- Connections ---- */

static void tcp_connect(struct nt_connection *connection)
{
    struct tcp_peer *peer = tcp_peer_of(connection->peer);
    peer_ref(&peer->core);
    if (peer->state == PEER_VALID) {
        (void)bundle_open(connection);
    } else if (peer->state == PEER_NONE) {
        dial(peer);
    } else if (peer->state != PEER_CLOSING) {
        dial_extend(peer, connection);
    } /* and it waits for what becomes of the bundle */
    peer_settle(&peer->core);
    peer_unref(&peer->core);
}

static int tcp_send(struct nt_connection *connection, const struct iovec *parts, int count, size_t size,
                    struct transport_lend *lend)
{
    struct tcp_peer *peer = tcp_peer_of(connection->peer);
    uint8_t head[WIRE_HEAD_MAX];
    enum { SOME = 15 };
    struct iovec all[1 + SOME] = { { head, sizeof head } };
    lend = size > TCP_LEND ? lend : NULL;
    if (socket_waiting(peer->socket) >= tcp_of(peer)->core.options.max_peer ||
        (lend != NULL && peer->socket->lent != NULL)) { /* one at a time */
        return -EAGAIN;
    }
    wire_put(head, connection->number);
    wire_put(head + 4, (uint32_t)size);
    struct iovec *list = all;
    if (count > SOME) {
        list = malloc(((size_t)count + 1) * sizeof *list);
        if (list == NULL) {
            return -ENOBUFS;
        }
        list[0] = all[0];
    }
    if (count > 0) {
        memcpy(list + 1, parts, (size_t)count * sizeof *parts);
    }
    int error = socket_send_message(peer->socket, list, count + 1, size, lend);
    if (list != all) {
        free(list);
    }
    if (error != 0) { /* part of it may have left: nothing can be sent on this socket any more */
        bundle_lose(peer, strerrordesc_np(-error));
        return -ECONNRESET;
    }
    connection->messages++;
    return 0;
}

static bool tcp_has_room(const struct transport_peer *core)
{
    const struct tcp_peer *peer = (const struct tcp_peer *)(const void *)core;
    return peer->socket == NULL || socket_waiting(peer->socket) <= socket_low_water(tcp_of(peer));
}

static void tcp_connection_close(struct nt_connection *connection)
{
    struct tcp_peer *peer = tcp_peer_of(connection->peer);
    if (peer->state != PEER_VALID) {
        return;
    }
    int error = bundle_control(peer, WIRE_CLOSE, connection->number);
    if (error != 0) {
        bundle_lose(peer, strerrordesc_np(-error));
    } else {
        bundle_try_close(peer);
    }
}

/* ---- Peers ---- */

static void tcp_room(struct transport_peer *core)
{
    struct tcp_peer *peer = tcp_peer_of(core);
    if (peer->socket != NULL && peer->socket->role == SOCKET_BUNDLE) {
        peer->socket->paused = false;
        if (socket_watch(peer->socket) != 0) {
            bundle_lose(peer, "no memory");
        }
    }
}

static bool tcp_busy(const struct transport_peer *core)
{
    const struct tcp_peer *peer = (const struct tcp_peer *)(const void *)core;
    return peer->state != PEER_NONE || peer->parked != NULL;
}

static int tcp_ping(struct transport_peer *peer)
{
    return bundle_probe(tcp_peer_of(peer), true);
}

static int tcp_peer_close(struct transport_peer *core)
{
    struct tcp_peer *peer = tcp_peer_of(core);
    if (peer->state != PEER_VALID && peer->state != PEER_CLOSING) {
        return -ENOENT;
    }
    bundle_lose(peer, "closed by nt_endpoint_peer_close");
    transport_changed(&tcp_of(peer)->core);
    return 0;
}

const struct transport_backend transport_tcp = {
    .name = "tcp",
    .transport_size = sizeof(struct tcp),
    .peer_size = sizeof(struct tcp_peer),
    .helper = true,
    .open = tcp_open,
    .close = tcp_close,
    .flushed = tcp_flushed,
    .fini = tcp_fini,
    .endpoint_open = tcp_endpoint_open,
    .endpoint_close = tcp_endpoint_close,
    .connect = tcp_connect,
    .send = tcp_send,
    .flush = tcp_flush,
    .quick = tcp_quick,
    .has_room = tcp_has_room,
    .connection_close = tcp_connection_close,
    .room = tcp_room,
    .ping = tcp_ping,
    .peer_close = tcp_peer_close,
    .busy = tcp_busy,
};
