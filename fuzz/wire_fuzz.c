/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that come over a socket: as a handshake and what follows, as frames of a peer that was accepted, and as the
   answer to our own handshake. The first byte chooses which, the second how large the pieces are. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RAW, ACCEPTED, ANSWER, MODES };

#define FROM "127.0.0.1:9:0"

static nt_transport *transport;
static nt_endpoint *endpoint;
static int listener = -1;
static char listens[64];

static void begin(void)
{
    nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    options.max_message = 65536;
    options.max_peer = 1 << 20;
    options.connect_timeout_ms = 2;
    options.flush_timeout_ms = 2;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (nt_transport_open(&options, &transport) != 0 || nt_endpoint_new(transport, NULL, &endpoint) != 0 ||
        bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        abort();
    }
    (void)snprintf(listens, sizeof listens, "127.0.0.1:%u:0", ntohs(address.sin_port));
}

/* Takes what there is; all that is told must be as the interface says. */
static void drain(void)
{
    for (int idle = 0; idle < 2;) {
        nt_delivery *delivery;
        if (nt_endpoint_receive(endpoint, 0, &delivery) != 0) {
            idle++;
            continue;
        }
        const struct iovec *parts;
        nt_address address = nt_delivery_address(delivery);
        int count = nt_delivery_parts(delivery, &parts);
        if (nt_delivery_name(nt_delivery_type(delivery)) == NULL || address.size > 1024 || count < 0 || count > 1 ||
            (count == 1 && parts[0].iov_len > 65536) || strlen(nt_delivery_text(delivery)) > 4096) {
            abort();
        }
        nt_delivery_unref(delivery);
    }
}

static void say(int fd, const uint8_t *data, size_t size, size_t piece)
{
    while (size > 0) {
        size_t some = size < piece ? size : piece;
        if (send(fd, data, some, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            return;
        }
        data += some;
        size -= some;
        drain();
    }
}

static void as_peer(const uint8_t *data, size_t size, size_t piece, bool accepted)
{
    int ends[2];
    uint8_t greeting[16 + sizeof FROM - 1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return;
    }
    wire_greeting_put(greeting, 0, sizeof FROM - 1);
    memcpy(greeting + 16, FROM, sizeof FROM - 1);
    if (!transport_enter(transport)) {
        abort();
    }
    incoming_begin((struct tcp *)(void *)transport, ends[1]);
    transport_leave(transport);
    if (accepted) {
        say(ends[0], greeting, sizeof greeting, sizeof greeting);
    }
    say(ends[0], data, size, piece);
    close(ends[0]);
    drain();
}

static void as_acceptor(const uint8_t *data, size_t size, size_t piece)
{
    nt_address to = { listens, strlen(listens) };
    nt_connection *connection;
    if (nt_endpoint_connect(endpoint, &to, NULL, NT_NONBLOCK, &connection) != 0) {
        return;
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    drain();
    if (fd >= 0) {
        say(fd, data, size, piece);
        close(fd);
    }
    nt_connection_close(connection);
    nt_connection_unref(connection);
    (void)nt_endpoint_peer_close(endpoint, &to);
    drain();
}

static void as_bytes(const uint8_t *data, size_t size)
{
    struct wire_frame frame;
    struct wire_greeting greeting;
    struct wire_address address;
    int head = wire_frame(data, size, &frame);
    if (head > (int)WIRE_HEAD_MAX || (head > 0 && (size_t)head > size)) {
        abort();
    }
    if (wire_greeting(data, size, 1024, &greeting) == 0 && greeting.version == 0 && greeting.address_size + 16 > size) {
        abort();
    }
    if (wire_address(data, size, &address) && address.host_size + address.port_size + 2 >= size) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (listener < 0) {
        begin();
    }
    if (size < 2 || size > 16384) {
        return 0;
    }
    unsigned mode = data[0] % MODES;
    size_t piece = (size_t)1 << data[1] % 14;
    data += 2;
    size -= 2;
    piece = piece > size / 64 ? piece : size / 64 + 1;
    as_bytes(data, size);
    if (mode == ANSWER) {
        as_acceptor(data, size, piece);
    } else {
        as_peer(data, size, piece, mode == ACCEPTED);
    }
    return 0;
}
