/* SPDX-License-Identifier: BSD-3-Clause */
/* Framed messages on stream sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"

enum { FRAME_MAGIC = 0x52454c59, BACKLOG = 1024 };

/* ---- Messages ---- */

static bool forked;

void message_forked(void)
{
    forked = true;
}

static struct message *message_map(size_t size)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

struct message *message_new(enum frame_type type, nt_session session, uint64_t id, uint32_t size)
{
    struct message *message = forked ? message_map(sizeof *message + size) : malloc(sizeof *message + size);
    if (message) {
        message->next = NULL;
        message->frame =
            (struct frame){ .magic = FRAME_MAGIC, .type = (uint16_t)type, .size = size, .id = id, .session = session };
    }
    return message;
}

void message_free(struct message *take_message)
{
    if (!forked)
        free(take_message);
    else if (take_message)
        munmap(take_message, sizeof *take_message + take_message->frame.size);
}

uint64_t message_size(const struct message *message)
{
    return sizeof message->frame + message->frame.size;
}

uint32_t message_checksum(const struct message *message) /* FNV-1a */
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < message->frame.size; i++)
        hash = (hash ^ message->payload[i]) * 16777619u;
    return hash;
}

/* ---- Bytes ---- */

static int send_all(int fd, struct iovec *parts, size_t count)
{
    struct msghdr header = { .msg_iov = parts, .msg_iovlen = count };
    while (header.msg_iovlen > 0) {
        ssize_t sent = sendmsg(fd, &header, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        while (header.msg_iovlen > 0 && (size_t)sent >= header.msg_iov->iov_len) {
            sent -= (ssize_t)header.msg_iov->iov_len;
            header.msg_iov++;
            header.msg_iovlen--;
        }
        if (header.msg_iovlen > 0) {
            header.msg_iov->iov_base = (char *)header.msg_iov->iov_base + sent;
            header.msg_iov->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

/* 1, 0 at the end of the stream in front of the first byte, or a negative errno value. */
static int receive_all(int fd, void *data, size_t size, int flags)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = recv(fd, (char *)data + have, size - have, have ? 0 : flags);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return flags & MSG_DONTWAIT && have == 0 ? -EAGAIN : -ETIMEDOUT;
        if (got < 0)
            return -errno;
        if (got == 0)
            return have == 0 ? 0 : -ECONNRESET;
        have += (size_t)got;
    }
    return 1;
}

int wire_wait(int fd, uint64_t timeout_ms)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    int result;
    do
        result = poll(&entry, 1, (int)timeout_ms);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

/* ---- Channels ---- */

int channel_send(struct channel *channel, nt_session session, struct message *message)
{
    watch_session_set(&channel->watch, session);
    message->frame.sequence = channel->sent + 1;
    struct iovec parts[2] = {
        { &message->frame, sizeof message->frame },
        { message->payload, message->frame.size },
    };
    nt_time at = nt_now(); /* before anybody can see the bytes */
    int result = channel->fd < 0 ? -ENOTCONN : send_all(channel->fd, parts, 2);
    if (result < 0) {
        watch_count(&channel->watch, NT_ERROR, (uint64_t)-result);
        return result;
    }
    channel->sent++;
    watch_count_at(&channel->watch, NT_WRITE, message_size(message), at);
    return 0;
}

int channel_signal(struct channel *channel, nt_session session, enum frame_type type, uint64_t id, uint16_t worker)
{
    struct message *message = message_new(type, session, id, 0);
    if (!message)
        return -ENOMEM;
    message->frame.worker = worker;
    int result = channel_send(channel, session, message);
    message_free(message);
    return result;
}

/* The header: a look, then, if nothing is there, a wait. */
static int receive_frame(struct channel *channel, struct watch *waiter, struct frame *ret_frame)
{
    uint64_t before = watch_clock();
    int result = receive_all(channel->fd, ret_frame, sizeof *ret_frame, MSG_DONTWAIT);
    if (result != -EAGAIN)
        return result;
    uint64_t looked = watch_clock();
    if (waiter)
        watch_count(waiter, NT_POLL, looked - before);
    result = receive_all(channel->fd, ret_frame, sizeof *ret_frame, 0);
    if (waiter && result == 1)
        watch_count(waiter, NT_WAIT, watch_clock() - looked);
    return result;
}

static int receive_message(struct channel *channel, struct watch *waiter, struct message **ret_message)
{
    struct frame frame;
    int result = channel->fd < 0 ? -ENOTCONN : receive_frame(channel, waiter, &frame);
    if (result <= 0)
        return result;
    if (frame.magic != FRAME_MAGIC || frame.size > WIRE_PAYLOAD_MAX || frame.sequence != channel->received + 1)
        return -EBADMSG;
    struct message *message = message_new((enum frame_type)frame.type, frame.session, frame.id, frame.size);
    if (!message)
        return -ENOMEM;
    message->frame = frame;
    result = receive_all(channel->fd, message->payload, frame.size, 0);
    if (result <= 0) {
        message_free(message);
        return result < 0 ? result : -ECONNRESET;
    }
    channel->received++;
    *ret_message = message;
    return 1;
}

int channel_receive(struct channel *channel, struct watch *waiter, struct message **ret_message)
{
    watch_session_set(&channel->watch, 0); /* whose message comes next is not known */
    int result = receive_message(channel, waiter ? waiter : &channel->watch, ret_message);
    if (result < 0)
        watch_count(&channel->watch, NT_ERROR, (uint64_t)-result);
    if (result == 1)
        channel_read_counts(channel, *ret_message);
    return result;
}

int channel_receive_hello(struct channel *channel, struct message **ret_message)
{
    int result = receive_message(channel, NULL, ret_message);
    if (result == 1 && (*ret_message)->frame.type != FRAME_HELLO) {
        free(*ret_message);
        *ret_message = NULL;
        return -EBADMSG;
    }
    return result;
}

void channel_read_counts(struct channel *channel, const struct message *message)
{
    uint64_t size = message_size(message);
    if (channel->session_first)
        watch_session_set(&channel->watch, message->frame.session);
    watch_count(&channel->watch, NT_READ, size);
    watch_session_join(&channel->watch, message->frame.session, size);
}

void channel_shut(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = -1;
    channel->sent = channel->received = 0;
}

/* ---- Sockets ---- */

void wire_timeout(int fd, uint64_t timeout_s)
{
    struct timeval time = { .tv_sec = (time_t)timeout_s };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails on Unix ones, which need it not */
}

static int listen_on(int family, const struct sockaddr *address, socklen_t size, struct address *ret_address)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    ret_address->size = sizeof ret_address->storage;
    if (bind(fd, address, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&ret_address->storage, &ret_address->size) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int wire_listen(bool tcp, struct address *ret_address)
{
    if (tcp) {
        struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = listen_on(AF_INET, (struct sockaddr *)&loopback, sizeof loopback, ret_address);
        if (fd >= 0)
            return fd;
    }
    /* A Unix address of nothing but its family: the kernel chooses an abstract name. */
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    return listen_on(AF_UNIX, (struct sockaddr *)&any, sizeof any.sun_family, ret_address);
}

int wire_connect(const struct address *address, uint64_t timeout_s)
{
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    wire_timeout(fd, timeout_s);
    int result;
    do
        result = connect(fd, (const struct sockaddr *)&address->storage, address->size);
    while (result < 0 && errno == EINTR);
    if (result < 0) {
        result = errno == EAGAIN ? -ETIMEDOUT : -errno;
        close(fd);
        return result;
    }
    return fd;
}

int wire_accept(int listener, uint64_t timeout_s)
{
    int fd;
    do
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0)
        return -errno;
    wire_timeout(fd, timeout_s);
    return fd;
}
