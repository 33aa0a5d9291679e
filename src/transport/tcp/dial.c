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

#define LOOKUPS 16u /* threads at a time */

struct lookup {
    struct lookup *next, *prev; /* those that wait for their turn */
    struct tcp_peer *peer;      /* a reference */
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

/* Locked: whether somebody still waits for it. */
static bool lookup_wanted(const struct lookup *lookup)
{
    return lookup->peer->state == PEER_LOOKUP && lookup->peer->lookup == lookup->number;
}

/* Looks the name up, if that is still wanted, and returns the next one that waits, or NULL. */
static struct lookup *lookup_run(struct tcp *tcp, struct lookup *take_lookup, bool wanted, bool *ret_wanted)
{
    struct lookup *lookup = take_lookup, *next;
    struct tcp_peer *peer = lookup->peer;
    if (!wanted || getaddrinfo(lookup->host, lookup->port, &hints_named, &lookup->found) != 0) {
        lookup->found = NULL;
    }
    pthread_mutex_lock(&tcp->core.lock);
    if (wanted && lookup_wanted(lookup)) {
        peer->found = peer->next = lookup->found;
        lookup->found = NULL;
        dial_next(peer, -ENOENT);
        transport_changed(&tcp->core);
    }
    next = tcp->lookups;
    if (next != NULL) {
        DL_DELETE(tcp->lookups, next);
        *ret_wanted = lookup_wanted(next);
    } else {
        tcp->looking--;
    }
    transport_leave(&tcp->core);
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    peer_unref(&peer->core);
    lookup_free(lookup);
    return next;
}

static void *lookup_main(void *arg)
{
    struct lookup *lookup = arg;
    struct tcp *tcp = tcp_of(lookup->peer);
    bool wanted = true;
    transport_ref(&tcp->core);
    while (lookup != NULL) {
        lookup = lookup_run(tcp, lookup, wanted, &wanted);
    }
    transport_unref(&tcp->core);
    return NULL;
}

static int lookup_start(struct lookup *take_lookup)
{
    struct tcp *tcp = tcp_of(take_lookup->peer);
    pthread_t thread;
    sigset_t all, before;
    peer_ref(&take_lookup->peer->core);
    if (tcp->looking >= LOOKUPS) {
        DL_APPEND(tcp->lookups, take_lookup);
        return 0;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, lookup_main, take_lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        tcp->looking++;
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

void dial_extend(struct tcp_peer *peer, const struct nt_connection *connection)
{
    if (connection->timeout.due > peer->dialing.due) {
        transport_timer_set(&tcp_of(peer)->core, &peer->dialing, connection->timeout.due);
    }
}

void dial(struct tcp_peer *peer)
{
    struct tcp *tcp = tcp_of(peer);
    struct wire_address address;
    if (!wire_address(peer->core.address, peer->core.address_size, &address)) {
        peer_refuse(&peer->core, -ECONNREFUSED, "not an address: host:port:endpoint");
        return;
    }
    const struct nt_connection *connection;
    peer->dialing.fire = dial_late;
    peer->state = PEER_LOOKUP;
    transport_timer_set(&tcp->core, &peer->dialing,
                        transport_now() + tcp->core.options.connect_timeout_ms * TRANSPORT_MS);
    DL_FOREACH(peer->core.connecting, connection)
    {
        dial_extend(peer, connection);
    }
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
