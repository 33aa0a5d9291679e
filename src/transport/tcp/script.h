/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: a peer that does what the test says, byte by byte, on a socket of its own; bytes are written in hex. */
#ifndef NT_TRANSPORT_TCP_SCRIPT_H
#define NT_TRANSPORT_TCP_SCRIPT_H

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <nt/transport.h>

#define SCRIPT_MS 5000 /* that anything may take */

static inline int script_listen(uint16_t *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static inline int script_accept(int listener)
{
    struct pollfd poll_fd = { listener, POLLIN, 0 };
    assert_int_equal(poll(&poll_fd, 1, SCRIPT_MS), 1);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* To an endpoint's address, host:port:number. */
static inline int script_dial(nt_address address)
{
    char text[64];
    unsigned port = 0;
    assert_true(address.size < sizeof text);
    memcpy(text, address.bytes, address.size);
    text[address.size] = 0;
    assert_int_equal(sscanf(text, "127.0.0.1:%u:", &port), 1);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Hex into bytes, blanks passed over; how many. */
static inline size_t script_bytes(const char *hex, uint8_t *bytes, size_t room)
{
    size_t size = 0;
    for (unsigned byte; *hex; hex += 2) {
        hex += strspn(hex, " ");
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        assert_true(size < room);
        bytes[size++] = (uint8_t)byte;
    }
    return size;
}

static inline void script_say(int fd, const char *hex)
{
    uint8_t bytes[4096];
    size_t size = script_bytes(hex, bytes, sizeof bytes);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

static inline bool script_readable(int fd, int timeout_ms)
{
    struct pollfd poll_fd = { fd, POLLIN, 0 };
    return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* The next bytes are these. */
static inline void script_expect(int fd, const char *hex)
{
    uint8_t wanted[4096], got[4096];
    size_t size = script_bytes(hex, wanted, sizeof wanted), have = 0;
    while (have < size) {
        assert_true(script_readable(fd, SCRIPT_MS));
        ssize_t some = recv(fd, got + have, size - have, 0);
        assert_true(some > 0);
        have += (size_t)some;
    }
    assert_memory_equal(got, wanted, size);
}

/* Nothing follows but the end. */
static inline void script_expect_end(int fd)
{
    uint8_t byte;
    assert_true(script_readable(fd, SCRIPT_MS));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

/* Nothing comes for a while. */
static inline void script_expect_nothing(int fd)
{
    assert_false(script_readable(fd, 50));
}

/* The greeting of `from` (16 bytes and its address) that asks for endpoint `number`. */
static inline void script_greet(int fd, uint32_t number, const char *from)
{
    char hex[512];
    size_t size = strlen(from);
    int at = snprintf(hex, sizeof hex, "00000000%08zx%08x%08zx", size + 8, number, size);
    for (size_t i = 0; i < size; i++) {
        at += snprintf(hex + at, sizeof hex - (size_t)at, "%02x", (unsigned char)from[i]);
    }
    script_say(fd, hex);
}

/* ---- The side under test ---- */

struct script {
    nt_transport *transport;
    nt_endpoint *endpoint;
};

static inline struct script script_open(const struct nt_transport_options *options)
{
    struct script script;
    assert_int_equal(nt_transport_open(options, &script.transport), 0);
    assert_int_equal(nt_endpoint_new(script.transport, NULL, &script.endpoint), 0);
    return script;
}

static inline void script_close(struct script *script)
{
    nt_transport_close(script->transport);
    nt_endpoint_unref(script->endpoint);
    nt_transport_unref(script->transport);
}

/* The next delivery is of that type. The caller's. */
static inline nt_delivery *script_await(const struct script *script, enum nt_delivery_kind type)
{
    nt_delivery *delivery = NULL;
    assert_int_equal(nt_endpoint_receive(script->endpoint, SCRIPT_MS, &delivery), 0);
    if (nt_delivery_type(delivery) != type) {
        print_error("%s instead of %s: %s\n", nt_delivery_name(nt_delivery_type(delivery)), nt_delivery_name(type),
                    nt_delivery_text(delivery));
    }
    assert_int_equal(nt_delivery_type(delivery), type);
    return delivery;
}

static inline void script_await_only(const struct script *script, enum nt_delivery_kind type)
{
    nt_delivery_unref(script_await(script, type));
}

static inline void script_await_message(const struct script *script, const char *text)
{
    nt_delivery *delivery = script_await(script, NT_DELIVERY_RECEIVED);
    const struct iovec *parts;
    int count = nt_delivery_parts(delivery, &parts);
    assert_int_equal(count, *text != 0);
    if (count > 0) {
        assert_int_equal(parts[0].iov_len, strlen(text));
        assert_memory_equal(parts[0].iov_base, text, strlen(text));
    }
    nt_delivery_unref(delivery);
}

/* The bundle is lost, and why. */
static inline void script_await_loss(const struct script *script, const char *reason)
{
    nt_delivery *delivery = script_await(script, NT_DELIVERY_ERROR);
    assert_int_equal(nt_delivery_code(delivery), -ECONNRESET);
    assert_string_equal(nt_delivery_text(delivery), reason);
    nt_delivery_unref(delivery);
}

static inline void script_await_nothing(const struct script *script)
{
    nt_delivery *delivery = NULL;
    assert_int_equal(nt_endpoint_receive(script->endpoint, 50, &delivery), -EAGAIN);
}

static inline nt_address script_text_address(const char *text)
{
    return (nt_address){ text, strlen(text) };
}

#endif
