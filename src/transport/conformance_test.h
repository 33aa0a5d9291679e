/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests only: worlds of endpoints over any backend, what came as plain values, and checks that any thread may make.
   A world is called "tcp" (one transport), "tcp/2" (two, each with its own driver) or "memory". */
#ifndef NT_TRANSPORT_CONFORMANCE_TEST_H
#define NT_TRANSPORT_CONFORMANCE_TEST_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <nt/transport.h>

#define UNUSED __attribute__((unused))
#define PATIENCE 60000 /* ms: nothing takes so long, but what never comes */

/* For each world the test is given its name as the state. */
#define TEST_IN(function, name, world)                                       \
    {                                                                        \
        world " " name, function, test_begin, NULL, (void *)(uintptr_t)world \
    }
#define TEST_TCP(function, name) TEST_IN(function, name, "tcp")
#define TEST_MEMORY(function, name) TEST_IN(function, name, "memory")
#define TEST_ALL(function, name) \
    TEST_IN(function, name, "tcp"), TEST_IN(function, name, "tcp/2"), TEST_IN(function, name, "memory")

/* ---- Checks, how often ---- */

UNUSED static pthread_t test_thread;

UNUSED static int test_begin(void **state)
{
    (void)state;
    test_thread = pthread_self();
    return 0;
}

/* In a thread of a test cmocka cannot be told: the program ends. */
UNUSED static void must_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "# %s:%d: not so: %s\n", file, line, what);
    if (!pthread_equal(pthread_self(), test_thread)) {
        abort();
    }
    _fail(file, line);
}
#define must(condition) ((condition) ? (void)0 : must_fail(#condition, __FILE__, __LINE__))

/* `full` times at $TEST_SCALE 1; ordinary runs have 1/10. */
UNUSED static int scaled(int full, int least)
{
    const char *text = getenv("TEST_SCALE");
    double above = 1, below = 1;
    if (text == NULL || sscanf(text, "%lf/%lf", &above, &below) < 1 || below <= 0) {
        above = 1;
        below = 10;
    }
    int some = (int)((double)full * above / below);
    return some > least ? some : least;
}

UNUSED static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

UNUSED static uint64_t chance(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

UNUSED static pthread_t thread_start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}

UNUSED static void thread_join(pthread_t thread)
{
    must(pthread_join(thread, NULL) == 0);
}

/* ---- Worlds ---- */

struct world {
    bool memory;
    nt_transport *here, *there; /* the same one, or two */
};

UNUSED static nt_transport_options options_of(const char *name)
{
    nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    options.backend = strcmp(name, "memory") == 0 ? "memory" : "tcp";
    return options;
}

UNUSED static nt_transport *transport_at(const nt_transport_options *options)
{
    nt_transport *transport = NULL;
    must(nt_transport_open(options, &transport) == 0);
    return transport;
}

UNUSED static struct world world_with(void **state, const nt_transport_options *options)
{
    const char *name = *state;
    struct world world = { .memory = strcmp(name, "memory") == 0 };
    world.here = transport_at(options);
    world.there = strcmp(name, "tcp/2") == 0 ? transport_at(options) : world.here;
    return world;
}

UNUSED static struct world world_open(void **state)
{
    nt_transport_options options = options_of(*state);
    return world_with(state, &options);
}

UNUSED static void world_close(struct world *world)
{
    if (world->there != world->here) {
        nt_transport_close(world->there);
        nt_transport_unref(world->there);
    }
    nt_transport_close(world->here);
    nt_transport_unref(world->here);
}

UNUSED static nt_endpoint *endpoint_in(nt_transport *transport)
{
    nt_endpoint *endpoint = NULL;
    must(nt_endpoint_new(transport, NULL, &endpoint) == 0);
    return endpoint;
}

UNUSED static void endpoint_drop(nt_endpoint *endpoint)
{
    nt_endpoint_close(endpoint);
    nt_endpoint_unref(endpoint);
}

/* ---- Connections ---- */

UNUSED static nt_address address_of(const char *text)
{
    return (nt_address){ text, strlen(text) };
}

UNUSED static int try_connect(nt_endpoint *from, nt_address address, uint32_t timeout_ms,
                              nt_connection **ret_connection)
{
    nt_connect_options options = NT_CONNECT_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    return nt_endpoint_connect(from, &address, &options, 0, ret_connection);
}

/* What a connect says that should fail. */
UNUSED static int connect_error(nt_endpoint *from, nt_address address, uint32_t timeout_ms)
{
    nt_connection *connection = NULL;
    int error = try_connect(from, address, timeout_ms, &connection);
    must((error == 0) == (connection != NULL));
    if (error == 0) {
        nt_connection_close(connection);
        nt_connection_unref(connection);
    }
    return error;
}

UNUSED static nt_connection *connect_to(nt_endpoint *from, const nt_endpoint *to)
{
    nt_connection *connection = NULL;
    must(try_connect(from, nt_endpoint_address(to), 0, &connection) == 0);
    return connection;
}

UNUSED static nt_connection *connect_later(nt_endpoint *from, const nt_endpoint *to)
{
    nt_connection *connection = NULL;
    nt_address address = nt_endpoint_address(to);
    must(nt_endpoint_connect(from, &address, NULL, NT_NONBLOCK, &connection) == 0);
    return connection;
}

UNUSED static void drop(nt_connection *connection)
{
    nt_connection_close(connection);
    nt_connection_unref(connection);
}

UNUSED static int send_bytes(nt_connection *connection, const void *bytes, size_t size, uint32_t flags)
{
    struct iovec part = { (void *)(uintptr_t)bytes, size };
    return nt_connection_send(connection, &part, 1, flags);
}

UNUSED static int send_text(nt_connection *connection, const char *text)
{
    return send_bytes(connection, text, strlen(text), 0);
}

/* ---- What came ---- */

struct event {
    int result; /* of the receive */
    enum nt_delivery_kind type;
    uint64_t id, bundle, number;
    int64_t code;
    size_t size;
    char bytes[64]; /* its begin, or the whole text of what is no message */
    char address[128];
};

UNUSED static struct event event_of(const nt_delivery *delivery)
{
    struct event event = {
        .type = nt_delivery_type(delivery),
        .id = nt_delivery_id(delivery),
        .bundle = nt_delivery_bundle(delivery),
        .number = nt_delivery_number(delivery),
        .code = nt_delivery_code(delivery),
    };
    const struct iovec *parts;
    nt_address address = nt_delivery_address(delivery);
    if (nt_delivery_parts(delivery, &parts) > 0) {
        event.size = parts[0].iov_len;
        memcpy(event.bytes, parts[0].iov_base, event.size < sizeof event.bytes ? event.size : sizeof event.bytes - 1);
    } else {
        (void)snprintf(event.bytes, sizeof event.bytes, "%s", nt_delivery_text(delivery));
    }
    (void)snprintf(event.address, sizeof event.address, "%.*s", (int)address.size, (const char *)address.bytes);
    return event;
}

UNUSED static struct event receive_for(nt_endpoint *endpoint, int timeout_ms)
{
    nt_delivery *delivery = NULL;
    struct event event = { 0 };
    int result = nt_endpoint_receive(endpoint, timeout_ms, &delivery);
    must((result == 0) == (delivery != NULL));
    if (result == 0) {
        event = event_of(delivery);
        nt_delivery_unref(delivery);
    }
    event.result = result;
    return event;
}

UNUSED static struct event next(nt_endpoint *endpoint)
{
    struct event event = receive_for(endpoint, PATIENCE);
    must(event.result == 0);
    return event;
}

UNUSED static struct event expect(nt_endpoint *endpoint, enum nt_delivery_kind type)
{
    struct event event = next(endpoint);
    if (event.type != type) {
        fprintf(stderr, "# %s came, not %s: %s\n", nt_delivery_name(event.type), nt_delivery_name(type), event.bytes);
    }
    must(event.type == type);
    return event;
}

UNUSED static struct event expect_text(nt_endpoint *endpoint, const char *text)
{
    struct event event = expect(endpoint, NT_DELIVERY_RECEIVED);
    must(event.size == strlen(text) && memcmp(event.bytes, text, event.size) == 0);
    return event;
}

UNUSED static struct event expect_lost(nt_endpoint *endpoint)
{
    struct event event = expect(endpoint, NT_DELIVERY_ERROR);
    must(event.code == -ECONNRESET);
    must(strcmp(nt_transport_code(NT_CALL_EVENT, (int)event.code), "EventConnectionLost") == 0);
    return event;
}

/* Nothing is there, nor comes soon. */
UNUSED static void expect_nothing(nt_endpoint *endpoint)
{
    must(receive_for(endpoint, 15).result == -EAGAIN);
}

UNUSED static bool is_address(const struct event *event, const nt_endpoint *endpoint)
{
    nt_address address = nt_endpoint_address(endpoint);
    return strlen(event->address) == address.size && memcmp(event->address, address.bytes, address.size) == 0;
}

/* ---- The echo server of the original's tests: connects back, echoes, closes when they close ---- */

enum { BACKS = 1024 };

struct server {
    nt_endpoint *endpoint;
    pthread_t thread;
    struct back {
        uint64_t id, bundle; /* of theirs; 0: free */
        nt_connection *connection;
    } backs[BACKS];
};

UNUSED static struct back *back_find(struct server *server, uint64_t id)
{
    for (struct back *back = server->backs; back < server->backs + BACKS; back++) {
        if (back->id == id) {
            return back;
        }
    }
    return NULL;
}

UNUSED static void back_close(struct back *back)
{
    drop(back->connection);
    *back = (struct back){ 0 };
}

UNUSED static void serve(struct server *server, const nt_delivery *delivery)
{
    const struct iovec *parts;
    nt_address address = nt_delivery_address(delivery);
    enum nt_delivery_kind type = nt_delivery_type(delivery);
    struct back *back = back_find(server, type == NT_DELIVERY_OPENED ? 0 : nt_delivery_id(delivery));
    switch (type) {
    case NT_DELIVERY_OPENED:
        must(back != NULL);
        if (nt_endpoint_connect(server->endpoint, &address, NULL, 0, &back->connection) == 0) {
            back->id = nt_delivery_id(delivery);
            back->bundle = nt_delivery_bundle(delivery);
        }
        break;
    case NT_DELIVERY_RECEIVED:
        if (back != NULL) {
            int count = nt_delivery_parts(delivery, &parts);
            (void)nt_connection_send(back->connection, parts, count, 0);
        }
        break;
    case NT_DELIVERY_CLOSED:
        if (back != NULL) {
            back_close(back);
        }
        break;
    case NT_DELIVERY_ERROR:
        for (back = server->backs; back < server->backs + BACKS; back++) {
            if (back->id != 0 && back->bundle == nt_delivery_bundle(delivery)) {
                back_close(back);
            }
        }
        break;
    default:
        break;
    }
}

UNUSED static void *server_main(void *arg)
{
    struct server *server = arg;
    nt_delivery *delivery;
    while (nt_endpoint_receive(server->endpoint, -1, &delivery) == 0) {
        serve(server, delivery);
        nt_delivery_unref(delivery);
    }
    return NULL;
}

UNUSED static struct server *server_start(nt_transport *transport)
{
    struct server *server = calloc(1, sizeof *server);
    must(server != NULL);
    server->endpoint = endpoint_in(transport);
    server->thread = thread_start(server_main, server);
    return server;
}

/* Ends by closing its endpoint, which wakes it up. */
UNUSED static void server_stop(struct server *server)
{
    nt_endpoint_close(server->endpoint);
    thread_join(server->thread);
    for (struct back *back = server->backs; back < server->backs + BACKS; back++) {
        if (back->id != 0) {
            back_close(back);
        }
    }
    nt_endpoint_unref(server->endpoint);
    free(server);
}

#endif
