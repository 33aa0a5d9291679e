/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that others open: the listening one, the handshake, and what to do with a peer that we have a bundle with,
   or are making one with. Names are never looked up here. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

#define ACCEPTS 64 /* at a time */
#define BACKOFF (100 * TRANSPORT_MS)
#define HOST 64

/* ---- The listening socket ---- */

static void incoming_late(struct transport_timer *timer)
{
    socket_close((struct tcp_socket *)(void *)((char *)timer - offsetof(struct tcp_socket, timer)));
}

void incoming_begin(struct tcp *tcp, int take_fd)
{
    if (tcp->pending_count >= TCP_PENDING_MAX) {
        socket_close(tcp->pending);
    }
    struct tcp_socket *socket = socket_new(tcp, take_fd, SOCKET_PARKED);
    if (socket == NULL) {
        return;
    }
    socket_options(tcp, take_fd);
    socket->role = SOCKET_INCOMING;
    socket->timer.fire = incoming_late;
    DL_APPEND(tcp->pending, socket);
    tcp->pending_count++;
    transport_timer_set(&tcp->core, &socket->timer,
                        transport_now() + tcp->core.options.connect_timeout_ms * TRANSPORT_MS);
}

static void listener_again(struct transport_timer *timer)
{
    struct tcp *tcp = (struct tcp *)(void *)((char *)timer - offsetof(struct tcp, backoff));
    if (!tcp->core.closed) {
        (void)transport_watch_set(&tcp->core, &tcp->listener, tcp->listener.fd, EPOLLIN);
    }
}

static void listener_ready(struct transport_watch *watch, uint32_t events)
{
    struct tcp *tcp = (struct tcp *)(void *)((char *)watch - offsetof(struct tcp, listener));
    (void)events;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            incoming_begin(tcp, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            (void)transport_watch_set(&tcp->core, watch, watch->fd, 0);
            tcp->backoff.fire = listener_again;
            transport_timer_set(&tcp->core, &tcp->backoff, transport_now() + BACKOFF);
            return;
        }
        if (errno == EAGAIN) {
            return;
        }
    }
}

/* The port that it was given, as text. */
static int port_of(int fd, char **ret_port)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        return -errno;
    }
    if (getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0) {
        return -EINVAL;
    }
    *ret_port = strdup(port);
    return *ret_port != NULL ? 0 : -ENOMEM;
}

static int listen_at(const struct tcp *tcp, const struct addrinfo *at)
{
    static const int on = 1, off = 0;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, (int)tcp->core.options.backlog) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int incoming_listen(struct tcp *tcp)
{
    const struct nt_transport_options *options = &tcp->core.options;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
    if (getaddrinfo(options->host, options->port, &hints, &found) != 0) {
        return -ENOENT;
    }
    int fd = -ENOENT;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = listen_at(tcp, at);
    }
    freeaddrinfo(found);
    if (fd < 0) {
        return fd;
    }
    int error = 0;
    if (options->external_port != NULL) {
        tcp->port = strdup(options->external_port);
        error = tcp->port != NULL ? 0 : -ENOMEM;
    } else {
        error = port_of(fd, &tcp->port);
    }
    tcp->listener.ready = listener_ready;
    if (error == 0) {
        error = transport_watch_set(&tcp->core, &tcp->listener, fd, EPOLLIN);
    }
    if (error != 0) {
        close(fd);
    }
    return error;
}

/* ---- Answers ---- */

static int answer(struct tcp_socket *socket, enum wire_answer what)
{
    uint8_t bytes[8] = { 0 };
    struct iovec part = { bytes, what == WIRE_UNSUPPORTED_VERSION ? 8 : 4 };
    wire_put(bytes, (uint32_t)what);
    return socket_send(socket, &part, 1);
}

void incoming_answer(struct tcp_socket *take_socket, enum wire_answer what)
{
    if (answer(take_socket, what) != 0) {
        socket_close(take_socket);
    } else {
        socket_end(take_socket);
    }
}

/* Off the list of those whose handshake is not done. */
static void pending_leave(struct tcp_socket *socket)
{
    if (socket->role == SOCKET_INCOMING) {
        DL_DELETE(socket->tcp->pending, socket);
        socket->tcp->pending_count--;
    }
    transport_timer_clear(&socket->tcp->core, &socket->timer);
    socket->role = SOCKET_PARKED;
}

void incoming_accept(struct tcp_socket *take_socket, struct tcp_peer *peer)
{
    pending_leave(take_socket);
    free(take_socket->greeting);
    take_socket->greeting = NULL;
    if (answer(take_socket, WIRE_ACCEPTED) != 0) {
        socket_close(take_socket);
        bundle_over(peer);
        return;
    }
    bundle_begin(peer, take_socket);
}

/* Decided on when our own request is answered, or our bundle is settled. */
static void park(struct tcp_socket *socket, struct tcp_peer *peer)
{
    if (peer->parked != NULL) { /* whoever asks again has given up what it asked for before */
        socket_close(peer->parked);
    }
    pending_leave(socket);
    socket->paused = true;
    socket->peer = peer;
    peer->parked = socket;
    (void)socket_watch(socket);
}

/* ---- Decisions ---- */

/* Whether the address is greater, bytewise, a shorter one smaller than one that begins with it. */
static bool is_greater(const struct nt_endpoint *endpoint, const struct transport_peer *peer)
{
    size_t least = endpoint->address_size < peer->address_size ? endpoint->address_size : peer->address_size;
    int order = memcmp(endpoint->address, peer->address, least);
    return order != 0 ? order > 0 : endpoint->address_size > peer->address_size;
}

static void decide(struct tcp_socket *socket, struct tcp_peer *peer)
{
    switch (peer->state) {
    case PEER_NONE:
    case PEER_CROSSED:
        incoming_accept(socket, peer);
        break;
    case PEER_LOOKUP:
    case PEER_DIAL:
    case PEER_GREET:
        if (is_greater(peer->core.endpoint, &peer->core)) {
            park(socket, peer);
        } else {
            incoming_answer(socket, WIRE_CROSSED);
        }
        break;
    case PEER_VALID: /* a new life of theirs, if the old one does not answer */
        incoming_answer(socket, WIRE_CROSSED);
        (void)bundle_probe(peer, false);
        break;
    case PEER_CLOSING:
        park(socket, peer);
        break;
    }
}

/* A name for a peer that has none: a random UUID (RFC 9562, version 4). */
static size_t make_name(char name[37])
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return 0;
    }
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    size_t at = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        at += (size_t)snprintf(name + at, 37 - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
    }
    return at;
}

/* Whether a numeric host is claimed that the socket does not come from. */
static bool host_differs(const struct tcp_socket *socket, const struct wire_address *claimed, char from[HOST])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    uint8_t bytes[16], other[16];
    char host[HOST];
    if (claimed->host_size >= sizeof host || getpeername(socket->watch.fd, (struct sockaddr *)&address, &size) < 0 ||
        getnameinfo((struct sockaddr *)&address, size, from, HOST, NULL, 0, NI_NUMERICHOST) != 0) {
        return true;
    }
    memcpy(host, claimed->host, claimed->host_size);
    host[claimed->host_size] = 0;
    int family = strchr(host, ':') != NULL ? AF_INET6 : AF_INET;
    if (inet_pton(family, host, bytes) != 1) { /* a name */
        return false;
    }
    if (strncmp(from, "::ffff:", 7) == 0 && family == AF_INET) {
        memmove(from, from + 7, strlen(from + 7) + 1);
    }
    return inet_pton(family, from, other) != 1 || memcmp(bytes, other, family == AF_INET ? 4 : 16) != 0;
}

static void answer_mismatch(struct tcp_socket *socket, const struct wire_address *claimed, const char *from)
{
    uint8_t sizes[4][4];
    uint32_t from_size = (uint32_t)strlen(from);
    struct iovec parts[] = {
        { sizes[0], 4 },
        { sizes[1], 4 },
        { (void *)(uintptr_t)claimed->host, claimed->host_size },
        { sizes[2], 4 },
        { (void *)(uintptr_t)from, from_size },
        { sizes[3], 4 },
        { (void *)(uintptr_t)from, from_size }, /* nothing is resolved here */
    };
    wire_put(sizes[0], WIRE_HOST_MISMATCH);
    wire_put(sizes[1], (uint32_t)claimed->host_size);
    wire_put(sizes[2], from_size);
    wire_put(sizes[3], from_size);
    if (socket_send(socket, parts, sizeof parts / sizeof parts[0]) != 0) {
        socket_close(socket);
    } else {
        socket_end(socket);
    }
}

static struct nt_endpoint *endpoint_find(const struct tcp *tcp, uint32_t number)
{
    struct nt_endpoint *endpoint;
    DL_FOREACH(tcp->core.endpoints, endpoint)
    {
        struct wire_address own;
        if (wire_address(endpoint->address, endpoint->address_size, &own) && own.endpoint == number) {
            return endpoint;
        }
    }
    return NULL;
}

static void greeted(struct tcp_socket *socket, const struct wire_greeting *greeting)
{
    struct nt_endpoint *endpoint = endpoint_find(socket->tcp, greeting->endpoint);
    const char *address = (const char *)greeting->address;
    size_t size = greeting->address_size;
    struct wire_address claimed;
    char name[37], from[HOST] = "";
    if (size > 0 && !wire_address(address, size, &claimed)) {
        socket_close(socket);
        return;
    }
    if (endpoint == NULL) {
        incoming_answer(socket, WIRE_INVALID);
        return;
    }
    if (size > 0 && socket->tcp->core.options.flags & NT_TRANSPORT_CHECK_HOST && host_differs(socket, &claimed, from)) {
        answer_mismatch(socket, &claimed, from);
        return;
    }
    if (size == 0) {
        address = name;
        size = make_name(name);
    }
    struct tcp_peer *peer = size > 0 ? tcp_peer_of(peer_get(endpoint, address, size)) : NULL;
    if (peer == NULL || peer_is_self(&peer->core)) { /* nobody else has this address */
        socket_close(socket);
        return;
    }
    decide(socket, peer);
}

/* ---- Reading a greeting: never a byte behind it ---- */

static bool room_for(struct tcp_socket *socket, size_t size)
{
    if (size > socket->greeting_room) {
        uint8_t *greeting = realloc(socket->greeting, size);
        if (greeting == NULL) {
            return false;
        }
        socket->greeting = greeting;
        socket->greeting_room = size;
    }
    return true;
}

/* False: it is closed, or there is nothing to read now. */
static bool receive(struct tcp_socket *socket, uint8_t *bytes, size_t size, size_t *ret_got)
{
    ssize_t got;
    do {
        got = recv(socket->watch.fd, bytes, size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            socket_close(socket);
        }
        return false;
    }
    *ret_got = (size_t)got;
    return true;
}

/* Another version: the one that is spoken here is said, and what follows is thrown away. False: closed. */
static bool other_version(struct tcp_socket *socket, const struct wire_greeting *greeting)
{
    if (answer(socket, WIRE_UNSUPPORTED_VERSION) != 0) {
        socket_close(socket);
        return false;
    }
    socket->skip = greeting->length;
    socket->greeting_size = 0;
    return true;
}

void incoming_ready(struct tcp_socket *socket)
{
    uint32_t most = socket->tcp->core.options.max_address;
    if (socket_waiting(socket) > 0 && (socket_flush(socket) != 0 || socket_watch(socket) != 0)) {
        socket_close(socket);
        return;
    }
    for (;;) {
        struct wire_greeting greeting;
        size_t got;
        if (socket->skip > 0) {
            size_t room = socket->skip < TCP_SCRATCH ? (size_t)socket->skip : TCP_SCRATCH;
            if (!receive(socket, socket->tcp->scratch, room, &got)) {
                return;
            }
            socket->skip -= got;
            continue;
        }
        int64_t needed = wire_greeting(socket->greeting, socket->greeting_size, most, &greeting);
        if (needed == 0 && greeting.version == 0) {
            greeted(socket, &greeting);
            return;
        }
        if (needed == 0) {
            if (!other_version(socket, &greeting)) {
                return;
            }
            continue;
        }
        if (needed < 0 || !room_for(socket, (size_t)needed)) {
            socket_close(socket);
            return;
        }
        if (!receive(socket, socket->greeting + socket->greeting_size, (size_t)needed - socket->greeting_size, &got)) {
            return;
        }
        socket->greeting_size += got;
    }
}
