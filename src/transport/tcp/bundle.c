/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle that is up: frames, opening and closing, probes. What a peer does against the protocol loses it its
   bundle, with the reason, and disturbs nobody else. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/tcp/tcp.h"

#define READS 4 /* of one socket before it is the next one's turn */

/* ---- Sending ---- */

int bundle_control(struct tcp_peer *peer, uint32_t type, uint32_t number)
{
    uint8_t bytes[8];
    struct iovec part = { bytes, type <= WIRE_CLOSE_SOCKET ? 8 : 4 };
    wire_put(bytes, type);
    wire_put(bytes + 4, number);
    return socket_send(peer->socket, &part, 1);
}

/* A bundle that cannot be sent to is lost. */
static int control_or_lose(struct tcp_peer *peer, uint32_t type, uint32_t number)
{
    int error = bundle_control(peer, type, number);
    if (error != 0) {
        bundle_lose(peer, strerrordesc_np(-error));
    }
    return error;
}

void bundle_flushed(struct tcp_peer *peer)
{
    if (socket_waiting(peer->socket) <= socket_low_water(tcp_of(peer))) {
        peer_writable(&peer->core);
    }
}

/* ---- Beginning and end ---- */

static void probe_late(struct transport_timer *timer);

static void idle_probe(struct tcp_peer *peer)
{
    uint32_t idle = tcp_of(peer)->core.options.probe_idle_ms;
    if (idle != 0 && !peer->probing) {
        peer->probe.fire = probe_late;
        transport_timer_set(&tcp_of(peer)->core, &peer->probe, peer->heard + idle * TRANSPORT_MS);
    }
}

void bundle_begin(struct tcp_peer *peer, struct tcp_socket *take_socket)
{
    struct tcp *tcp = tcp_of(peer);
    transport_timer_clear(&tcp->core, &peer->dialing);
    transport_timer_clear(&tcp->core, &take_socket->timer);
    take_socket->role = SOCKET_BUNDLE;
    take_socket->peer = peer;
    take_socket->paused = peer->core.full;
    peer->socket = take_socket;
    peer->state = PEER_VALID;
    peer->last_in = 0;
    peer->heard = transport_now();
    peer_begin(&peer->core);
    idle_probe(peer);
    if (socket_watch(take_socket) != 0) {
        bundle_lose(peer, "no memory");
        return;
    }
    uint64_t bundle = peer->core.bundle;
    while (peer->core.bundle == bundle && peer->core.connecting != NULL) {
        if (bundle_open(peer->core.connecting) != 0) {
            break;
        }
    }
    transport_changed(&tcp->core);
}

/* Takes the socket off a peer that has no bundle from here on. */
static struct tcp_socket *bundle_leave(struct tcp_peer *peer)
{
    struct tcp_socket *socket = peer->socket;
    transport_timer_clear(&tcp_of(peer)->core, &peer->probe);
    transport_timer_clear(&tcp_of(peer)->core, &peer->closing);
    peer->probing = peer->asked = false;
    peer->socket = NULL;
    peer->state = PEER_NONE;
    return socket;
}

void bundle_over(struct tcp_peer *peer)
{
    struct tcp_socket *parked = peer->parked;
    peer_ref(&peer->core);
    peer->parked = NULL;
    if (parked != NULL) {
        incoming_accept(parked, peer);
    } else if (peer->core.connecting != NULL) {
        dial(peer);
    }
    peer_settle(&peer->core);
    peer_unref(&peer->core);
}

void bundle_lose(struct tcp_peer *peer, const char *text)
{
    bool valid = peer->state == PEER_VALID;
    peer_ref(&peer->core);
    socket_close(bundle_leave(peer));
    if (valid) {
        peer_lose(&peer->core, text);
    } else { /* while closing there is nothing to lose */
        peer_end(&peer->core, true);
    }
    bundle_over(peer);
    peer_unref(&peer->core);
}

void bundle_send_gathered(struct tcp_socket *socket)
{
    int error = socket_send(socket, NULL, 0);
    if (error != 0) {
        bundle_lose(socket->peer, strerrordesc_np(-error));
    }
}

/* Both ends know that nothing is open. */
static void bundle_close(struct tcp_peer *peer, bool reply)
{
    peer_ref(&peer->core);
    if (reply) {
        (void)bundle_control(peer, WIRE_CLOSE_SOCKET, peer->last_in);
    }
    struct tcp_socket *socket = bundle_leave(peer);
    peer_end(&peer->core, true);
    socket_end(socket);
    bundle_over(peer);
    peer_unref(&peer->core);
}

static void closing_late(struct transport_timer *timer);

/* Connects that come meanwhile wait for the answer: half of what they have is left to them. */
static void closing_begin(struct tcp_peer *peer)
{
    struct nt_transport *transport = &tcp_of(peer)->core;
    uint64_t probe = transport->options.probe_timeout_ms, connect = transport->options.connect_timeout_ms;
    peer->closing.fire = closing_late;
    transport_timer_set(transport, &peer->closing,
                        transport_now() + (probe < connect ? probe : connect) * TRANSPORT_MS / 2);
}

/* It stays away: what was sent still leaves, but nobody waits for an answer. */
static void closing_late(struct transport_timer *timer)
{
    struct tcp_peer *peer = (struct tcp_peer *)(void *)((char *)timer - offsetof(struct tcp_peer, closing));
    if (socket_waiting(peer->socket) > 0 && peer->unsent != socket_waiting(peer->socket)) {
        peer->unsent = socket_waiting(peer->socket); /* it takes what waits, slowly */
        closing_begin(peer);
        return;
    }
    bundle_close(peer, false);
}

void bundle_try_close(struct tcp_peer *peer)
{
    if (peer->state == PEER_VALID && peer->core.outgoing == NULL && peer->core.incoming == NULL &&
        control_or_lose(peer, WIRE_CLOSE_SOCKET, peer->last_in) == 0) {
        peer->state = PEER_CLOSING;
        peer->unsent = socket_waiting(peer->socket);
        closing_begin(peer);
    }
}

/* ---- Connections ---- */

int bundle_open(struct nt_connection *connection)
{
    struct tcp_peer *peer = tcp_peer_of(connection->peer);
    if (peer->core.numbers == UINT32_MAX) {
        connection_failed(connection, -ENOMEM, "the bundle has no number left for it");
        return 0;
    }
    uint32_t number = peer->core.numbers == 0 ? WIRE_FIRST : peer->core.numbers + 1;
    int error = bundle_control(peer, WIRE_OPEN, number);
    if (error != 0) { /* the connect goes on with the next bundle */
        bundle_lose(peer, strerrordesc_np(-error));
        return error;
    }
    peer->core.numbers = number;
    return connection_opened(connection, number);
}

/* ---- Probes ---- */

int bundle_probe(struct tcp_peer *peer, bool asked)
{
    struct tcp *tcp = tcp_of(peer);
    if (peer->state != PEER_VALID) {
        return -ENOENT;
    }
    if (peer->probing) {
        int result = asked && peer->asked ? -EALREADY : 0;
        peer->asked = peer->asked || asked;
        return result;
    }
    peer->probing = true;
    peer->asked = asked;
    peer->probed = peer->probe_sent = transport_now();
    peer->probe.fire = probe_late;
    transport_timer_set(&tcp->core, &peer->probe, peer->probed + tcp->core.options.probe_timeout_ms * TRANSPORT_MS);
    (void)control_or_lose(peer, WIRE_PROBE, 0);
    return 0;
}

/* Whether the peer's system acknowledged anything since. */
static bool kernel_heard(const struct tcp_peer *peer, uint64_t since)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(peer->socket->watch.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        return false;
    }
    uint64_t ago = (transport_now() - since) / TRANSPORT_MS;
    return info.tcpi_last_ack_recv < ago || info.tcpi_last_data_recv < ago;
}

static void probe_late(struct transport_timer *timer)
{
    struct tcp_peer *peer = (struct tcp_peer *)(void *)((char *)timer - offsetof(struct tcp_peer, probe));
    struct tcp *tcp = tcp_of(peer);
    uint64_t now = transport_now();
    if (!peer->probing) {
        if (now - peer->heard >= tcp->core.options.probe_idle_ms * TRANSPORT_MS) {
            (void)bundle_probe(peer, false);
        } else {
            idle_probe(peer);
        }
        return;
    }
    if (peer->heard < peer->probed && !kernel_heard(peer, peer->probed + TRANSPORT_MS)) {
        bundle_lose(peer, "a probe was not answered in time");
        return;
    }
    peer->probed = now;
    transport_timer_set(&tcp->core, timer, now + tcp->core.options.probe_timeout_ms * TRANSPORT_MS);
}

static void probe_answered(struct tcp_peer *peer)
{
    if (!peer->probing) { /* nobody asked: ignored */
        return;
    }
    transport_timer_clear(&tcp_of(peer)->core, &peer->probe);
    if (peer->asked) {
        delivery_tell(&peer->core, NT_DELIVERY_PINGED, NULL, (int64_t)(transport_now() - peer->probe_sent), "");
    }
    peer->probing = peer->asked = false;
    idle_probe(peer);
}

/* ---- Frames ---- */

static void fault(struct tcp_peer *peer, const char *what, uint32_t number)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%s %u", what, number);
    bundle_lose(peer, text);
}

static void frame_open(struct tcp_peer *peer, uint32_t number)
{
    if (number < WIRE_FIRST) {
        fault(peer, "the peer opened the reserved connection", number);
    } else if (connection_incoming(&peer->core, number) != NULL) {
        fault(peer, "the peer opened twice connection", number);
    } else if (connection_accept(&peer->core, number, NT_RELIABLE_ORDERED) == NULL) {
        bundle_lose(peer, "no memory");
    } else {
        peer->last_in = number;
        if (peer->state == PEER_CLOSING) { /* theirs crossed our CloseSocket, which they will pass over */
            peer->state = PEER_VALID;
            transport_timer_clear(&tcp_of(peer)->core, &peer->closing);
            uint64_t bundle = peer->core.bundle;
            struct tcp_socket *parked = peer->parked;
            peer->parked = NULL;
            if (parked != NULL) {
                incoming_answer(parked, WIRE_CROSSED);
            }
            while (peer->core.bundle == bundle && peer->core.connecting != NULL &&
                   bundle_open(peer->core.connecting) == 0) {
            }
        }
    }
}

static void frame_close(struct tcp_peer *peer, uint32_t number)
{
    struct nt_connection *connection = connection_incoming(&peer->core, number);
    if (connection == NULL) {
        fault(peer, "the peer closed what it had not opened, connection", number);
        return;
    }
    connection_end(connection);
}

static void frame_close_socket(struct tcp_peer *peer, uint32_t number)
{
    bool knows = number == peer->core.numbers; /* the last one that we opened */
    if (peer->state == PEER_CLOSING) {
        if (knows) {
            bundle_close(peer, false);
        }
        return;
    }
    struct nt_connection *connection, *next;
    HASH_ITER(hh, peer->core.incoming, connection, next)
    {
        connection_end(connection);
    }
    if (peer->core.outgoing == NULL && knows) {
        bundle_close(peer, true);
    }
}

/* Their endpoint is gone. */
static void frame_close_endpoint(struct tcp_peer *peer)
{
    struct nt_connection *connection, *next;
    HASH_ITER(hh, peer->core.incoming, connection, next)
    {
        connection_end(connection);
    }
    if (peer->core.outgoing != NULL) {
        bundle_lose(peer, "the peer's endpoint was closed");
    } else {
        bundle_close(peer, false);
    }
}

static void frame_control(struct tcp_peer *peer, const struct wire_frame *frame)
{
    switch (frame->type) {
    case WIRE_OPEN:
        frame_open(peer, frame->number);
        break;
    case WIRE_CLOSE:
        frame_close(peer, frame->number);
        break;
    case WIRE_CLOSE_SOCKET:
        frame_close_socket(peer, frame->number);
        break;
    case WIRE_CLOSE_ENDPOINT:
        frame_close_endpoint(peer);
        break;
    case WIRE_PROBE:
        (void)control_or_lose(peer, WIRE_PROBE_ACK, 0);
        break;
    default:
        probe_answered(peer);
    }
}

/* ---- Reading ---- */

/* A message that came whole. */
static void message_done(struct tcp_peer *peer, struct nt_delivery *take_message)
{
    struct nt_connection *connection = take_message->connection;
    take_message->number = ++connection->messages;
    if (connection->state == CONNECTION_OPEN) {
        delivery_post(&peer->core, take_message);
    } else {
        nt_delivery_unref(take_message);
    }
}

/* Begins a message: how many of the bytes are its. -1: the bundle is lost. */
static int64_t message_begin(struct tcp_socket *socket, const struct wire_frame *frame, const uint8_t *bytes,
                             size_t size)
{
    struct tcp_peer *peer = socket->peer;
    struct nt_connection *connection = connection_incoming(&peer->core, frame->number);
    if (connection == NULL) {
        fault(peer, "the peer sent on what it had not opened, connection", frame->number);
        return -1;
    }
    if (frame->length > tcp_of(peer)->core.options.max_message) {
        fault(peer, "the peer sent a message that is too long, bytes", frame->length);
        return -1;
    }
    struct nt_delivery *message = delivery_new(NT_DELIVERY_RECEIVED, connection, frame->length);
    if (message == NULL) {
        bundle_lose(peer, "no memory for a message");
        return -1;
    }
    size_t have = size < frame->length ? size : frame->length;
    memcpy(message->bytes, bytes, have);
    if (have == frame->length) {
        message_done(peer, message);
    } else {
        socket->body = message;
        socket->body_have = have;
    }
    return (int64_t)have;
}

/* Goes through what came; what is left of the last frame is kept. */
static void parse(struct tcp_socket *socket, const uint8_t *bytes, size_t size)
{
    struct tcp_peer *peer = socket->peer;
    while (size > 0) {
        struct wire_frame frame;
        int head = wire_frame(bytes, size, &frame);
        if (head < 0) {
            fault(peer, "the peer sent a control that does not exist,", frame.type);
            return;
        }
        if (head == 0) {
            break;
        }
        bytes += head;
        size -= (size_t)head;
        if (frame.type == WIRE_FIRST) {
            int64_t used = message_begin(socket, &frame, bytes, size);
            if (used < 0) {
                return;
            }
            bytes += used;
            size -= (size_t)used;
        } else {
            frame_control(peer, &frame);
        }
        if (peer->socket != socket) { /* closed, lost, or another one by now */
            return;
        }
    }
    memcpy(socket->head, bytes, size);
    socket->head_size = (uint32_t)size;
}

/* As much as there is, at most what there is room for. */
static ssize_t read_some(struct tcp_socket *socket, uint8_t *scratch)
{
    struct nt_delivery *body = socket->body;
    struct iovec parts[2];
    int count = 0;
    if (body != NULL) {
        parts[count++] = (struct iovec){ body->bytes + socket->body_have, body->part.iov_len - socket->body_have };
    }
    parts[count++] = (struct iovec){ scratch, TCP_SCRATCH };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = (size_t)count };
    ssize_t got;
    do {
        got = recvmsg(socket->watch.fd, &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    return got;
}

static void take_bytes(struct tcp_socket *socket, uint8_t *scratch, size_t got)
{
    if (socket->body != NULL) {
        size_t left = socket->body->part.iov_len - socket->body_have, its = got < left ? got : left;
        socket->body_have += its;
        got -= its;
        if (its < left) {
            return;
        }
        struct nt_delivery *message = socket->body;
        socket->body = NULL;
        message_done(socket->peer, message);
    }
    uint8_t *from = scratch - socket->head_size;
    memcpy(from, socket->head, socket->head_size);
    got += socket->head_size;
    socket->head_size = 0;
    parse(socket, from, got);
}

/* More waits for this peer's endpoint than may: it is not read from until some of it was received. */
static bool is_full(struct tcp_peer *peer)
{
    const struct nt_transport *transport = &tcp_of(peer)->core;
    peer->core.full = peer->core.held >= transport->options.max_peer ||
                      (transport->held >= transport->options.max_transport && peer->core.held > 0);
    if (peer->core.full && peer->socket != NULL) {
        peer->socket->paused = true;
        (void)socket_watch(peer->socket);
    }
    return peer->core.full;
}

bool bundle_read(struct tcp_socket *socket)
{
    bool came = false;
    struct tcp_peer *peer = socket->peer;
    uint8_t *scratch = socket->tcp->scratch + WIRE_HEAD_MAX;
    peer_ref(&peer->core);
    for (int turn = 0; turn < READS; turn++) {
        size_t room = TCP_SCRATCH + (socket->body != NULL ? socket->body->part.iov_len - socket->body_have : 0);
        ssize_t got = read_some(socket, scratch);
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN) {
                bundle_lose(peer, got == 0 ? "the peer closed the socket" : strerrordesc_np(errno));
            }
            break;
        }
        peer->heard = transport_now();
        socket->tcp->hot = socket;
        came = true;
        take_bytes(socket, scratch, (size_t)got);
        if (peer->socket != socket || is_full(peer) || (size_t)got < room) {
            break;
        }
    }
    peer_unref(&peer->core);
    return came;
}
