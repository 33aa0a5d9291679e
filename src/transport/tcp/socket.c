/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets: what waits to be sent, and how one ends so that nothing of it is lost. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

#define PARTS 64
#define LOW_WATER (256u << 10)
#define BURST 8u                 /* messages after which they are gathered */
#define BURST_NS UINT64_C(20000) /* between two of them, at most */
#define GATHER_MESSAGE 4096u     /* bytes: longer ones are not gathered */
#define GATHER (64u << 10)       /* bytes that leave at once */

static void socket_ready(struct transport_watch *watch, uint32_t events);
static void socket_late(struct transport_timer *timer);

static void socket_bury(struct transport_grave *grave)
{
    struct tcp_socket *socket = (struct tcp_socket *)(void *)grave;
    free(socket->out);
    free(socket->greeting);
    free(socket);
}

struct tcp_socket *socket_new(struct tcp *tcp, int take_fd, enum tcp_role role)
{
    struct tcp_socket *socket = calloc(1, sizeof *socket);
    if (socket == NULL) {
        close(take_fd);
        return NULL;
    }
    socket->tcp = tcp;
    socket->role = role;
    socket->grave.bury = socket_bury;
    socket->watch = (struct transport_watch){ .fd = -1, .ready = socket_ready };
    socket->timer.fire = socket_late;
    if (transport_watch_set(&tcp->core, &socket->watch, take_fd, role == SOCKET_OUTGOING ? EPOLLOUT : EPOLLIN) != 0) {
        close(take_fd);
        free(socket);
        return NULL;
    }
    return socket;
}

static void gather_end(struct tcp_socket *socket)
{
    if (socket->gathers) {
        DL_DELETE(socket->tcp->gathering, socket);
        socket->gathers = false;
    }
    socket->tcp->hot = socket->tcp->hot == socket ? NULL : socket->tcp->hot;
}

/* Its sender may go on. */
static void lend_end(struct tcp_socket *socket)
{
    socket->lent->held = false;
    socket->lent = NULL;
    transport_changed(&socket->tcp->core);
}

void socket_close(struct tcp_socket *take_socket)
{
    struct tcp_socket *socket = take_socket;
    if (socket == NULL) {
        return;
    }
    struct tcp *tcp = socket->tcp;
    int fd = socket->watch.fd;
    gather_end(socket);
    if (socket->lent != NULL) {
        lend_end(socket);
    }
    transport_timer_clear(&tcp->core, &socket->timer);
    transport_watch_clear(&tcp->core, &socket->watch);
    (void)shutdown(fd, SHUT_RDWR); /* a child may have it too, and close says nothing then */
    close(fd);
    nt_delivery_unref(socket->body);
    socket->body = NULL;
    if (socket->role == SOCKET_INCOMING) {
        DL_DELETE(tcp->pending, socket);
        tcp->pending_count--;
    } else if (socket->role == SOCKET_ENDING) {
        DL_DELETE(tcp->ending, socket);
        transport_changed(&tcp->core);
    }
    transport_bury(&tcp->core, &socket->grave);
}

void socket_end(struct tcp_socket *take_socket)
{
    struct tcp_socket *socket = take_socket;
    struct tcp *tcp = socket->tcp;
    gather_end(socket);
    if (socket->role == SOCKET_INCOMING) {
        DL_DELETE(tcp->pending, socket);
        tcp->pending_count--;
    }
    nt_delivery_unref(socket->body);
    socket->body = NULL;
    socket->role = SOCKET_ENDING;
    socket->peer = NULL;
    socket->paused = false;
    DL_APPEND(tcp->ending, socket);
    transport_timer_set(&tcp->core, &socket->timer,
                        transport_now() + tcp->core.options.flush_timeout_ms * TRANSPORT_MS);
    if (socket_flush(socket) != 0 || socket_watch(socket) != 0) {
        socket_close(socket);
    }
}

static void socket_late(struct transport_timer *timer)
{
    struct tcp_socket *socket = (struct tcp_socket *)(void *)((char *)timer - offsetof(struct tcp_socket, timer));
    socket_close(socket);
}

static size_t out_waiting(const struct tcp_socket *socket)
{
    return socket->out_size - socket->out_at;
}

size_t socket_waiting(const struct tcp_socket *socket)
{
    return out_waiting(socket) + (socket->lent != NULL ? socket->lent->left : 0);
}

size_t socket_low_water(const struct tcp *tcp)
{
    uint64_t half = tcp->core.options.max_peer / 2;
    return half < LOW_WATER ? (size_t)half : LOW_WATER;
}

int socket_watch(struct tcp_socket *socket)
{
    uint32_t events = socket->paused ? 0 : EPOLLIN;
    if (socket_waiting(socket) > 0) {
        events |= EPOLLOUT;
    }
    return transport_watch_set(&socket->tcp->core, &socket->watch, socket->watch.fd, events);
}

void socket_options(const struct tcp *tcp, int fd)
{
    static const int on = 1;
    unsigned timeout = tcp->core.options.user_timeout_ms;
    if (!(tcp->core.options.flags & NT_TRANSPORT_DELAY)) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (tcp->core.options.flags & NT_TRANSPORT_KEEPALIVE) {
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (timeout != 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    }
}

/* ---- Sending ---- */

static int out_append(struct tcp_socket *socket, const void *bytes, size_t size)
{
    size_t waiting = out_waiting(socket);
    if (socket->out_room - socket->out_size < size) {
        size_t room = socket->out_room != 0 ? socket->out_room : 4096;
        while (room < waiting + size) {
            room *= 2;
        }
        uint8_t *out = malloc(room);
        if (out == NULL) {
            return -ENOMEM;
        }
        if (waiting > 0) {
            memcpy(out, socket->out + socket->out_at, waiting);
        }
        free(socket->out);
        socket->out = out;
        socket->out_room = room;
        socket->out_at = 0;
        socket->out_size = waiting;
    }
    memcpy(socket->out + socket->out_size, bytes, size);
    socket->out_size += size;
    return 0;
}

/* How many bytes the system took; 0: none now; or -errno. */
static ssize_t send_some(const struct tcp_socket *socket, struct iovec *parts, size_t count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
    ssize_t sent;
    do {
        sent = sendmsg(socket->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -errno;
    }
    return sent;
}

/* Passes over `sent` bytes of the parts: where to go on. */
static int parts_skip(const struct iovec *parts, int count, int at, size_t *offset, size_t sent)
{
    for (; at < count && sent >= parts[at].iov_len - *offset; at++, *offset = 0) {
        sent -= parts[at].iov_len - *offset;
    }
    *offset += sent;
    return at;
}

static size_t parts_gather(const struct iovec *parts, int count, int at, size_t offset, struct iovec *batch,
                           size_t *ret_size)
{
    size_t used = 0, size = 0;
    for (; at < count && used < PARTS; at++, offset = 0) {
        if (parts[at].iov_len > offset) {
            batch[used].iov_base = (uint8_t *)parts[at].iov_base + offset;
            batch[used++].iov_len = parts[at].iov_len - offset;
            size += parts[at].iov_len - offset;
        }
    }
    *ret_size = size;
    return used;
}

static int keep(struct tcp_socket *socket, const struct iovec *parts, int count, size_t offset)
{
    int error = 0;
    for (int at = 0; at < count && error == 0; at++, offset = 0) {
        if (parts[at].iov_len > offset) {
            error = out_append(socket, (const uint8_t *)parts[at].iov_base + offset, parts[at].iov_len - offset);
        }
    }
    return error;
}

/* The rest of a message, which may begin within its head. */
static int lend_begin(struct tcp_socket *socket, struct transport_lend *lend, const struct iovec *parts, int count,
                      size_t offset)
{
    lend->parts = malloc((size_t)count * sizeof *parts);
    if (lend->parts == NULL) {
        return -ENOMEM;
    }
    memcpy(lend->parts, parts, (size_t)count * sizeof *parts);
    if (parts[0].iov_len <= sizeof lend->head) { /* the head, or as short as it: not the caller's, perhaps */
        memcpy(lend->head, parts[0].iov_base, parts[0].iov_len);
        lend->parts[0].iov_base = lend->head;
    }
    lend->count = count;
    lend->at = 0;
    lend->offset = offset;
    lend->left = 0;
    for (int i = 0; i < count; i++) {
        lend->left += parts[i].iov_len;
    }
    lend->left -= offset;
    lend->before = out_waiting(socket);
    lend->held = lend->left > 0;
    socket->lent = lend->held ? lend : NULL;
    return 0;
}

/* What waits of a burst leaves first, together; what does not leave now is looked at as any other. */
static int gather_send(struct tcp_socket *socket)
{
    DL_DELETE(socket->tcp->gathering, socket);
    socket->gathers = false;
    int error = socket_flush(socket);
    return error == 0 && socket_waiting(socket) > 0 ? socket_watch(socket) : error;
}

static int gather(struct tcp_socket *socket, const struct iovec *parts, int count, uint64_t now)
{
    int error = 0;
    if (!socket->gathers) {
        DL_APPEND(socket->tcp->gathering, socket);
        socket->gathers = true;
        socket->since = now;
    }
    for (int i = 0; i < count && error == 0; i++) {
        if (parts[i].iov_len > 0) {
            error = out_append(socket, parts[i].iov_base, parts[i].iov_len);
        }
    }
    transport_gather(&socket->tcp->core, now);
    return error == 0 && socket_waiting(socket) >= GATHER ? gather_send(socket) : error;
}

/* What does not leave at once stays where it is, if it is lent, else it is copied. */
static int send_or_keep(struct tcp_socket *socket, const struct iovec *parts, int count, struct transport_lend *lend)
{
    int at = 0, error = socket->gathers ? gather_send(socket) : 0;
    size_t offset = 0;
    if (error != 0) {
        return error;
    }
    bool stuck = socket_waiting(socket) > 0;
    while (!stuck && at < count) {
        struct iovec batch[PARTS];
        size_t size, used = parts_gather(parts, count, at, offset, batch, &size);
        if (used == 0) {
            return 0;
        }
        ssize_t sent = send_some(socket, batch, used);
        if (sent < 0) {
            return (int)sent;
        }
        stuck = (size_t)sent < size;
        at = parts_skip(parts, count, at, &offset, (size_t)sent);
    }
    if (at < count) {
        error = lend != NULL ? lend_begin(socket, lend, parts + at, count - at, offset)
                             : keep(socket, parts + at, count - at, offset);
    }
    return error == 0 && stuck ? socket_watch(socket) : error;
}

int socket_send_message(struct tcp_socket *socket, const struct iovec *parts, int count, size_t size,
                        struct transport_lend *lend)
{
    struct nt_transport *transport = &socket->tcp->core;
    uint64_t now = transport_now();
    bool quick = now - socket->sent < BURST_NS && socket->takes == transport->takes &&
                 transport->options.gather_us != UINT32_MAX;
    socket->burst = quick ? socket->burst + 1 : 0;
    socket->sent = now;
    socket->takes = transport->takes;
    if (socket->burst >= BURST && size <= GATHER_MESSAGE && (socket->gathers || socket_waiting(socket) == 0)) {
        return gather(socket, parts, count, now);
    }
    int error = send_or_keep(socket, parts, count, lend);
    socket->sent = transport_now();
    return error;
}

int socket_send(struct tcp_socket *socket, const struct iovec *parts, int count)
{
    return send_or_keep(socket, parts, count, NULL);
}

/* The next of what waits that is in one place. */
static size_t waiting_gather(const struct tcp_socket *socket, struct iovec *batch, size_t *ret_size)
{
    const struct transport_lend *lent = socket->lent;
    if (lent != NULL && lent->before == 0) {
        return parts_gather(lent->parts, lent->count, lent->at, lent->offset, batch, ret_size);
    }
    *ret_size = lent != NULL ? lent->before : out_waiting(socket);
    batch[0] = (struct iovec){ socket->out + socket->out_at, *ret_size };
    return 1;
}

static void waiting_left(struct tcp_socket *socket, size_t sent)
{
    struct transport_lend *lent = socket->lent;
    if (lent == NULL || lent->before > 0) {
        socket->out_at += sent;
        if (lent != NULL) {
            lent->before -= sent;
        }
        return;
    }
    lent->at = parts_skip(lent->parts, lent->count, lent->at, &lent->offset, sent);
    lent->left -= sent;
    if (lent->left == 0) {
        lend_end(socket);
    }
}

int socket_flush(struct tcp_socket *socket)
{
    while (socket_waiting(socket) > 0) {
        size_t size;
        struct iovec batch[PARTS];
        ssize_t sent = send_some(socket, batch, waiting_gather(socket, batch, &size));
        if (sent < 0) {
            return (int)sent;
        }
        waiting_left(socket, (size_t)sent);
        if ((size_t)sent < size) {
            return 0;
        }
    }
    socket->out_at = socket->out_size = 0;
    if (socket->out_room > 65536) { /* a socket that was stuck once need not keep that */
        free(socket->out);
        socket->out = NULL;
        socket->out_room = 0;
    }
    if (socket->role == SOCKET_ENDING && !socket->shut) {
        socket->shut = true;
        (void)shutdown(socket->watch.fd, SHUT_WR);
        transport_changed(&socket->tcp->core);
    }
    return 0;
}

/* ---- Ready ---- */

static void ending_ready(struct tcp_socket *socket)
{
    struct tcp *tcp = socket->tcp;
    ssize_t got;
    int turns = 16;
    do {
        got = recv(socket->watch.fd, tcp->scratch, TCP_SCRATCH, MSG_DONTWAIT);
    } while ((got > 0 && --turns > 0) || (got < 0 && errno == EINTR));
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        socket_close(socket);
    }
}

static void bundle_ready(struct tcp_socket *socket, uint32_t events)
{
    struct tcp_peer *peer = socket->peer;
    if (events & EPOLLOUT) {
        int error = socket_flush(socket);
        if (error == 0) {
            error = socket_watch(socket);
        }
        if (error != 0) {
            bundle_lose(peer, strerrordesc_np(-error));
            return;
        }
        bundle_flushed(peer);
    }
    if (socket->watch.fd >= 0 && socket->role == SOCKET_BUNDLE && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        (void)bundle_read(socket);
    }
}

static void socket_ready(struct transport_watch *watch, uint32_t events)
{
    struct tcp_socket *socket = (struct tcp_socket *)(void *)((char *)watch - offsetof(struct tcp_socket, watch));
    switch (socket->role) {
    case SOCKET_INCOMING:
        incoming_ready(socket);
        break;
    case SOCKET_OUTGOING:
        dial_ready(socket);
        break;
    case SOCKET_BUNDLE:
        bundle_ready(socket, events);
        break;
    case SOCKET_PARKED: /* not read from: it is gone */
        socket->peer->parked = NULL;
        socket_close(socket);
        break;
    case SOCKET_ENDING:
        if (events & EPOLLOUT && (socket_flush(socket) != 0 || socket_watch(socket) != 0)) {
            socket_close(socket);
            return;
        }
        ending_ready(socket);
        break;
    }
}
