/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle in the making: the name is looked up (by a thread, unless it is numeric), every address that it has is
   tried, then the handshake. All of it within the connect timeout. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

/* ---- Names ---- */

struct lookup {
    struct tcp_peer *peer; /* a reference */
    uint64_t number;
    char *host, *port;
    struct addrinfo *found;
};

static void lookup_free(struct lookup *take_lookup)
{
    free(take_lookup->host);
    free(take_lookup->port);
    free(take_lookup);
}

static const struct addrinfo hints_named = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
static const struct addrinfo hints_numeric = { .ai_family = AF_UNSPEC,
                                               .ai_socktype = SOCK_STREAM,
                                               .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

static void dial_next(struct tcp_peer *peer, int error);

static void *lookup_main(void *arg)
{
    struct lookup *lookup = arg;
    struct tcp_peer *peer = lookup->peer;
    struct nt_transport *transport = peer->core.endpoint->transport;
    if (getaddrinfo(lookup->host, lookup->port, &hints_named, &lookup->found) != 0) {
        lookup->found = NULL;
    }
    transport_ref(transport);
    if (transport_enter(transport)) {
        if (peer->state == PEER_LOOKUP && peer->lookup == lookup->number) {
            peer->found = peer->next = lookup->found;
            lookup->found = NULL;
            dial_next(peer, -ENOENT);
            transport_changed(transport);
        }
        transport_leave(transport);
    }
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    peer_unref(&peer->core);
    lookup_free(lookup);
    transport_unref(transport);
    return NULL;
}

static int lookup_start(struct lookup *take_lookup)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    peer_ref(&take_lookup->peer->core);
    int error = pthread_create(&thread, NULL, lookup_main, take_lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_detach(thread);
    } else {
        peer_unref(&take_lookup->peer->core);
        lookup_free(take_lookup);
    }
    return -error;
}

static struct lookup *lookup_new(struct tcp_peer *peer, const struct wire_address *address)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        return NULL;
    }
    lookup->peer = peer;
    lookup->number = ++peer->lookup;
    lookup->host = strndup(address->host, address->host_size);
    lookup->port = strndup(address->port, address->port_size);
    if (lookup->host == NULL || lookup->port == NULL) {
        lookup_free(lookup);
        return NULL;
    }
    return lookup;
}

/* ---- Ends ---- */

static void found_clear(struct tcp_peer *peer)
{
    if (peer->found != NULL) {
        freeaddrinfo(peer->found);
    }
    peer->found = peer->next = NULL;
}

void dial_stop(struct tcp_peer *peer)
{
    socket_close(peer->socket);
    peer->socket = NULL;
    found_clear(peer);
    transport_timer_clear(&tcp_of(peer)->core, &peer->dialing);
    peer->state = PEER_NONE;
}

/* Connects fail with that, unless the peer came to us meanwhile. */
static void dial_fail(struct tcp_peer *peer, int error, const char *text)
{
    peer_ref(&peer->core);
    dial_stop(peer);
    if (peer->parked == NULL) {
        peer_refuse(&peer->core, error, text);
    }
    bundle_over(peer);
    peer_unref(&peer->core);
}

static void dial_late(struct transport_timer *timer)
{
    struct tcp_peer *peer = (struct tcp_peer *)(void *)((char *)timer - offsetof(struct tcp_peer, dialing));
    dial_fail(peer, -ETIMEDOUT, "the connect took too long");
}

/* ---- Connecting ---- */

static int dial_at(struct tcp_peer *peer, const struct addrinfo *at)
{
    struct tcp *tcp = tcp_of(peer);
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ? -ENOMEM : -ECONNREFUSED;
    }
    socket_options(tcp, fd);
    if (connect(fd, at->ai_addr, at->ai_addrlen) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -ENOENT;
    }
    struct tcp_socket *socket = socket_new(tcp, fd, SOCKET_OUTGOING);
    if (socket == NULL) {
        return -ENOMEM;
    }
    socket->peer = peer;
    peer->socket = socket;
    peer->state = PEER_DIAL;
    return 0;
}

/* The next address of the name; none is left: it failed with that. */
static void dial_next(struct tcp_peer *peer, int error)
{
    while (peer->next != NULL) {
        const struct addrinfo *at = peer->next;
        peer->next = at->ai_next;
        error = dial_at(peer, at);
        if (error == 0) {
            return;
        }
    }
    dial_fail(peer, error, error == -ENOENT ? "nobody listens there" : strerrordesc_np(-error));
}

void dial(struct tcp_peer *peer)
{
    struct tcp *tcp = tcp_of(peer);
    struct wire_address address;
    if (!wire_address(peer->core.address, peer->core.address_size, &address)) {
        peer_refuse(&peer->core, -ECONNREFUSED, "not an address: host:port:endpoint");
        return;
    }
    peer->dialing.fire = dial_late;
    peer->state = PEER_LOOKUP;
    transport_timer_set(&tcp->core, &peer->dialing,
                        transport_now() + tcp->core.options.connect_timeout_ms * TRANSPORT_MS);
    struct lookup *lookup = lookup_new(peer, &address);
    if (lookup == NULL) {
        dial_fail(peer, -ENOMEM, "no memory");
        return;
    }
    int unknown = getaddrinfo(lookup->host, lookup->port, &hints_numeric, &lookup->found);
    if (unknown == 0) {
        peer->found = peer->next = lookup->found;
        lookup_free(lookup);
        dial_next(peer, -ENOENT);
    } else if (lookup_start(lookup) != 0) {
        dial_fail(peer, -ENOMEM, "no thread for the lookup of a name");
    }
}

/* ---- The handshake ---- */

static void greet(struct tcp_socket *socket)
{
    struct tcp_peer *peer = socket->peer;
    struct nt_endpoint *endpoint = peer->core.endpoint;
    struct wire_address address;
    bool unaddressable = peer->core.endpoint->transport->options.flags & NT_TRANSPORT_UNADDRESSABLE;
    uint32_t size = unaddressable ? 0 : (uint32_t)endpoint->address_size;
    uint8_t head[16];
    struct iovec parts[] = { { head, sizeof head }, { endpoint->address, size } };
    (void)wire_address(peer->core.address, peer->core.address_size, &address);
    wire_greeting_put(head, address.endpoint, size);
    peer->state = PEER_GREET;
    if (socket_send(socket, parts, 2) != 0 || socket_watch(socket) != 0) {
        dial_fail(peer, -ECONNREFUSED, "the handshake could not be sent");
    }
}

static void connected(struct tcp_socket *socket)
{
    struct tcp_peer *peer = socket->peer;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error != 0) {
        socket_close(socket);
        peer->socket = NULL;
        dial_next(peer, -ENOENT);
        return;
    }
    greet(socket);
}

static void accepted(struct tcp_peer *peer)
{
    struct tcp_socket *socket = peer->socket, *parked = peer->parked;
    peer_ref(&peer->core);
    peer->parked = NULL;
    peer->socket = NULL;
    if (parked != NULL) { /* they gave up what they had asked for, or it is an old one */
        socket_close(parked);
    }
    found_clear(peer);
    bundle_begin(peer, socket);
    bundle_try_close(peer); /* whoever wanted it has given up */
    peer_unref(&peer->core);
}

/* They are connecting to us too, and theirs is taken. */
static void crossed(struct tcp_peer *peer)
{
    struct tcp_socket *parked = peer->parked;
    socket_close(peer->socket);
    peer->socket = NULL;
    found_clear(peer);
    peer->state = PEER_CROSSED; /* until theirs comes, or the time is up */
    if (parked != NULL) {
        peer->parked = NULL;
        incoming_accept(parked, peer);
    }
}

static void answered(struct tcp_peer *peer, uint32_t answer)
{
    switch (answer) {
    case WIRE_ACCEPTED:
        accepted(peer);
        break;
    case WIRE_INVALID:
        dial_fail(peer, -ENOENT, "there is no such endpoint");
        break;
    case WIRE_CROSSED:
        crossed(peer);
        break;
    case WIRE_HOST_MISMATCH:
        dial_fail(peer, -ECONNREFUSED, "the peer says that we claim another host than we come from");
        break;
    case WIRE_UNSUPPORTED_VERSION:
        dial_fail(peer, -ECONNREFUSED, "the peer does not speak version 0 of the protocol");
        break;
    default:
        dial_fail(peer, -ECONNREFUSED, "the peer gave an answer that does not exist");
    }
}

void dial_ready(struct tcp_socket *socket)
{
    struct tcp_peer *peer = socket->peer;
    if (peer->state == PEER_DIAL) {
        connected(socket);
        return;
    }
    if (socket_waiting(socket) > 0 && (socket_flush(socket) != 0 || socket_watch(socket) != 0)) {
        dial_fail(peer, -ECONNREFUSED, "the handshake could not be sent");
        return;
    }
    ssize_t got;
    do {
        got = recv(socket->watch.fd, socket->head + socket->head_size, 4 - socket->head_size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        dial_fail(peer, -ECONNREFUSED, "the peer ended the handshake");
        return;
    }
    socket->head_size += got > 0 ? (uint32_t)got : 0;
    if (socket->head_size == 4) {
        uint32_t answer = wire_get(socket->head);
        socket->head_size = 0;
        answered(peer, answer);
    }
}
