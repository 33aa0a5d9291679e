/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios of network-transport-tests 0.3, each under its name, over every backend; those of network-transport-tcp
   are in tcp/conformance_test.c. What is not here, or means something else in C:

   scenario            backend   why
   SelfSend            all       the payload that raises when it is looked at: C has none; sent is what is there
   ExceptionOnReceive  all       there are no exceptions: receive fails with -ESHUTDOWN, every time
   SendException       all       a send that raises while it looks at its payload: here one that fails in the system
   SendException       memory    nothing fails by itself: its fault `lose`
   Kill                all       a thread that is cancelled: it ends between two calls
   CloseTransport      memory    a transport is one world: both ends are closed by it
   anything multicast  all       no backend has it; -EOPNOTSUPP, in events_test.c */
#include "transport/conformance_test.h"

#include <sys/socket.h>

#include "transport/tcp/tcp.h"

/* ---- Pings ---- */

struct pinging {
    nt_endpoint *client;
    const nt_endpoint *server;
    const char *text;
    int times;
};

static void *pinging_main(void *arg)
{
    const struct pinging *pinging = arg;
    nt_connection *connection = connect_to(pinging->client, pinging->server);
    struct event opened = expect(pinging->client, NT_DELIVERY_OPENED);
    must(is_address(&opened, pinging->server) && opened.id != 0);
    for (int i = 0; i < pinging->times; i++) {
        must(send_text(connection, pinging->text) == 0);
        struct event event = expect_text(pinging->client, pinging->text);
        must(event.id == opened.id && event.number == (uint64_t)i + 1);
    }
    drop(connection);
    must(expect(pinging->client, NT_DELIVERY_CLOSED).id == opened.id);
    return NULL;
}

static void ping_pong(void **state)
{
    struct world world = world_open(state);
    struct server *server = server_start(world.there);
    struct pinging pinging = { endpoint_in(world.here), server->endpoint, "ping", scaled(10000, 100) };
    pinging_main(&pinging);
    server_stop(server);
    endpoint_drop(pinging.client);
    world_close(&world);
}

static void end_points(void **state)
{
    struct world world = world_open(state);
    struct server *server = server_start(world.there);
    struct pinging pingings[] = {
        { endpoint_in(world.here), server->endpoint, "pingA", scaled(10000, 100) },
        { endpoint_in(world.here), server->endpoint, "pingB", scaled(10000, 100) },
        { endpoint_in(world.there), server->endpoint, "pingC", scaled(10000, 100) },
    };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        threads[i] = thread_start(pinging_main, &pingings[i]);
    }
    for (int i = 0; i < 3; i++) {
        thread_join(threads[i]);
        endpoint_drop(pingings[i].client);
    }
    server_stop(server);
    world_close(&world);
}

/* ---- Two connections ---- */

struct sending {
    nt_connection *connection;
    const char *text;
    int times;
};

static void *sending_main(void *arg)
{
    const struct sending *sending = arg;
    for (int i = 0; i < sending->times; i++) {
        must(send_text(sending->connection, sending->text) == 0);
    }
    return NULL;
}

/* Of two connections each gets back what was sent on it, on one number. */
static void expect_both(nt_endpoint *client, const uint64_t ids[2], int first, int second)
{
    int left[2] = { first, second };
    while (left[0] + left[1] > 0) {
        struct event event = expect(client, NT_DELIVERY_RECEIVED);
        int which = event.id == ids[0] ? 0 : 1;
        must(event.id == ids[which] && left[which]-- > 0);
        must(event.size == 5 && memcmp(event.bytes, which == 0 ? "pingA" : "pingB", 5) == 0);
    }
}

static void connections(void **state)
{
    struct world world = world_open(state);
    struct server *server = server_start(world.there);
    nt_endpoint *client = endpoint_in(world.here);
    int times = scaled(10000, 100);
    struct sending sendings[2] = { { NULL, "pingA", times }, { NULL, "pingB", times } };
    uint64_t ids[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        sendings[i].connection = connect_to(client, server->endpoint);
        ids[i] = expect(client, NT_DELIVERY_OPENED).id;
    }
    must(ids[0] != ids[1]);
    for (int i = 0; i < 2; i++) {
        threads[i] = thread_start(sending_main, &sendings[i]);
    }
    expect_both(client, ids, times, times);
    for (int i = 0; i < 2; i++) {
        thread_join(threads[i]);
        drop(sendings[i].connection);
        must(expect(client, NT_DELIVERY_CLOSED).id == ids[i]);
    }
    server_stop(server);
    endpoint_drop(client);
    world_close(&world);
}

static void close_one_connection(void **state)
{
    struct world world = world_open(state);
    struct server *server = server_start(world.there);
    nt_endpoint *client = endpoint_in(world.here);
    int times = scaled(10000, 100);
    nt_connection *a = connect_to(client, server->endpoint);
    uint64_t ids[2] = { expect(client, NT_DELIVERY_OPENED).id, 0 };
    nt_connection *b = connect_to(client, server->endpoint);
    ids[1] = expect(client, NT_DELIVERY_OPENED).id;
    for (int i = 0; i < times; i++) {
        must(send_text(a, "pingA") == 0 && send_text(b, "pingB") == 0);
        expect_both(client, ids, 1, 1);
    }
    drop(a);
    must(expect(client, NT_DELIVERY_CLOSED).id == ids[0]);
    for (int i = 0; i < times; i++) {
        must(send_text(b, "pingB") == 0);
        must(expect_text(client, "pingB").id == ids[1]);
    }
    drop(b);
    must(expect(client, NT_DELIVERY_CLOSED).id == ids[1]);
    server_stop(server);
    endpoint_drop(client);
    world_close(&world);
}

static void close_one_direction(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    int times = scaled(10000, 100);
    nt_connection *ab = connect_to(a, b);
    uint64_t at_b = expect(b, NT_DELIVERY_OPENED).id;
    nt_connection *ba = connect_to(b, a);
    uint64_t at_a = expect(a, NT_DELIVERY_OPENED).id;
    for (int i = 0; i < times; i++) {
        must(send_text(ab, "ping") == 0 && expect_text(b, "ping").id == at_b);
    }
    drop(ab);
    must(expect(b, NT_DELIVERY_CLOSED).id == at_b);
    for (int i = 0; i < times; i++) {
        must(send_text(ba, "ping") == 0 && expect_text(a, "ping").id == at_a);
    }
    drop(ba);
    must(expect(a, NT_DELIVERY_CLOSED).id == at_a);
    expect_nothing(a);
    expect_nothing(b);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* ---- The racy ones ---- */

struct reopening {
    nt_endpoint *client;
    const nt_endpoint *server;
    int rounds, times;
};

static void *reopening_main(void *arg)
{
    const struct reopening *reopening = arg;
    for (int i = 0; i < reopening->rounds; i++) {
        nt_connection *connection = connect_to(reopening->client, reopening->server);
        for (int k = 0; k < reopening->times; k++) {
            must(send_text(connection, "ping") == 0);
        }
        drop(connection);
    }
    return NULL;
}

/* The number of those of a round is unlike all before; the order holds for each connection. */
static void close_reopen(void **state)
{
    struct world world = world_open(state);
    struct reopening reopening = { endpoint_in(world.here), NULL, scaled(1000, 20), 5 };
    nt_endpoint *server = endpoint_in(world.there);
    reopening.server = server;
    pthread_t thread = thread_start(reopening_main, &reopening);
    uint64_t before = 0;
    for (int i = 0; i < reopening.rounds; i++) {
        uint64_t id = expect(server, NT_DELIVERY_OPENED).id;
        must(id != before);
        for (int k = 0; k < reopening.times; k++) {
            struct event event = expect_text(server, "ping");
            must(event.id == id && event.number == (uint64_t)k + 1);
        }
        must(expect(server, NT_DELIVERY_CLOSED).id == id);
        before = id;
    }
    thread_join(thread);
    expect_nothing(server);
    expect_nothing(reopening.client);
    endpoint_drop(reopening.client);
    endpoint_drop(server);
    world_close(&world);
}

static void *parallel_main(void *arg)
{
    const struct pinging *pinging = arg;
    nt_connection *connection = connect_to(pinging->client, pinging->server);
    must(send_text(connection, "ping") == 0);
    drop(connection);
    return NULL;
}

/* Opened, one message, closed: each of so many. */
static void expect_parallel(nt_endpoint *client, int count)
{
    enum { MOST = 16 };
    struct {
        uint64_t id;
        int came;
    } seen[MOST] = { 0 };
    static const enum nt_delivery_kind order[] = { NT_DELIVERY_OPENED, NT_DELIVERY_RECEIVED, NT_DELIVERY_CLOSED };
    int known = 0;
    for (int i = 0; i < 3 * count; i++) {
        struct event event = next(client);
        int at = 0;
        while (at < known && seen[at].id != event.id) {
            at++;
        }
        if (event.type == NT_DELIVERY_OPENED) {
            must(at == known && known < count);
            seen[known++].id = event.id;
        }
        must(at < known && seen[at].came < 3 && event.type == order[seen[at].came++]);
    }
}

static void parallel_connects(void **state)
{
    enum { THREADS = 8 };
    struct world world = world_open(state);
    struct server *server = server_start(world.there);
    struct pinging pinging = { endpoint_in(world.here), server->endpoint, "", 1 };
    int rounds = scaled(1000, 10);
    for (int i = 0; i < rounds; i++) {
        pthread_t threads[THREADS];
        for (int k = 0; k < THREADS; k++) {
            threads[k] = thread_start(parallel_main, &pinging);
        }
        expect_parallel(pinging.client, THREADS);
        for (int k = 0; k < THREADS; k++) {
            thread_join(threads[k]);
        }
    }
    expect_nothing(pinging.client);
    server_stop(server);
    endpoint_drop(pinging.client);
    world_close(&world);
}

struct crossing {
    nt_endpoint *from;
    const nt_endpoint *to;
    pthread_barrier_t *barrier;
    int rounds;
};

static void *crossing_main(void *arg)
{
    const struct crossing *crossing = arg;
    for (int i = 0; i < crossing->rounds; i++) {
        pthread_barrier_wait(crossing->barrier);
        nt_connection *connection = connect_to(crossing->from, crossing->to);
        must(send_text(connection, "crossed") == 0);
        uint64_t id = expect(crossing->from, NT_DELIVERY_OPENED).id;
        must(expect_text(crossing->from, "crossed").id == id);
        if (i % 2 != 0) { /* else closes cross with connects, too */
            pthread_barrier_wait(crossing->barrier);
        }
        drop(connection);
        must(expect(crossing->from, NT_DELIVERY_CLOSED).id == id);
    }
    return NULL;
}

static void crossing(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    pthread_barrier_t barrier;
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    struct crossing crossings[2] = { { a, b, &barrier, scaled(1000, 20) }, { b, a, &barrier, scaled(1000, 20) } };
    pthread_t thread = thread_start(crossing_main, &crossings[0]);
    crossing_main(&crossings[1]);
    thread_join(thread);
    pthread_barrier_destroy(&barrier);
    expect_nothing(a);
    expect_nothing(b);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* Cancelled anywhere: connecting, sending, closing. */
static void connection_cancelled(void *arg)
{
    nt_connection **connection = arg;
    if (*connection != NULL) {
        drop(*connection);
    }
}

static void *killed_main(void *arg)
{
    const struct pinging *pinging = arg;
    for (;;) {
        nt_connection *volatile connection = NULL;
        pthread_cleanup_push(connection_cancelled, (void *)(uintptr_t)&connection);
        nt_connection *made = connect_to(pinging->client, pinging->server);
        connection = made;
        for (int i = 0; i < 3; i++) {
            must(send_text(made, pinging->text) == 0);
        }
        pthread_testcancel();
        pthread_cleanup_pop(1);
    }
    return NULL;
}

/* All that comes until that connection closes: whole messages, each connection's in order. */
static void expect_whole(nt_endpoint *endpoint, const char *text, const char *last)
{
    for (;;) {
        struct event event = next(endpoint);
        must(event.type != NT_DELIVERY_ERROR);
        if (event.type == NT_DELIVERY_RECEIVED) {
            bool is_last = event.size == strlen(last) && memcmp(event.bytes, last, event.size) == 0;
            must(is_last || (event.size == strlen(text) && memcmp(event.bytes, text, event.size) == 0));
            if (is_last) {
                return;
            }
        }
    }
}

static void kill_threads(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *client = endpoint_in(world.here), *server = endpoint_in(world.there);
    struct pinging pinging = { client, server, "a message that is whole, or not there", 0 };
    uint64_t random = 1;
    int rounds = scaled(1000, 20);
    for (int i = 0; i < rounds; i++) {
        pthread_t thread = thread_start(killed_main, &pinging);
        usleep((useconds_t)(chance(&random) % 500));
        must(pthread_cancel(thread) == 0);
        thread_join(thread);
        nt_connection *connection = connect_to(client, server);
        must(send_text(connection, "last") == 0);
        drop(connection);
        expect_whole(server, pinging.text, "last");
    }
    endpoint_drop(client);
    endpoint_drop(server);
    world_close(&world);
}

/* ---- Closed connections ---- */

static void send_after_close(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *client = endpoint_in(world.here), *server = endpoint_in(world.there);
    int rounds = scaled(100, 10);
    for (int i = 0; i < rounds; i++) {
        nt_connection *a = connect_to(client, server), *b = connect_to(client, server);
        expect(server, NT_DELIVERY_OPENED);
        expect(server, NT_DELIVERY_OPENED);
        nt_connection_close(b);
        must(send_text(b, "closed") == -ENOTCONN);
        must(send_text(a, "open") == 0);
        expect(server, NT_DELIVERY_CLOSED);
        expect_text(server, "open");
        nt_connection_close(a);
        must(send_text(a, "closed") == -ENOTCONN && send_text(b, "closed") == -ENOTCONN);
        expect(server, NT_DELIVERY_CLOSED);
        must(strcmp(nt_transport_code(NT_CALL_SEND, -ENOTCONN), "SendClosed") == 0);
        drop(a);
        drop(b);
    }
    expect_nothing(server);
    endpoint_drop(client);
    endpoint_drop(server);
    world_close(&world);
}

static void close_twice(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *client = endpoint_in(world.here), *server = endpoint_in(world.there);
    int rounds = scaled(100, 10);
    for (int i = 0; i < rounds; i++) {
        nt_connection *a = connect_to(client, server), *b = connect_to(client, server);
        uint64_t at_a = expect(server, NT_DELIVERY_OPENED).id, at_b = expect(server, NT_DELIVERY_OPENED).id;
        nt_connection_close(b);
        nt_connection_close(b);
        must(expect(server, NT_DELIVERY_CLOSED).id == at_b);
        must(send_text(a, "open") == 0);
        must(expect_text(server, "open").id == at_a);
        nt_connection_close(a);
        nt_connection_close(a);
        nt_connection_close(b);
        must(expect(server, NT_DELIVERY_CLOSED).id == at_a);
        drop(a);
        drop(b);
    }
    expect_nothing(server);
    endpoint_drop(client);
    endpoint_drop(server);
    world_close(&world);
}

/* ---- To itself ---- */

static void send_to_self(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *self = endpoint_in(world.here);
    nt_connection *connection = connect_to(self, self);
    uint64_t id = expect(self, NT_DELIVERY_OPENED).id;
    struct iovec parts[] = { { (void *)(uintptr_t) "one ", 4 }, { NULL, 0 }, { (void *)(uintptr_t) "message", 7 } };
    must(nt_connection_send(connection, parts, 3, 0) == 0);
    must(expect_text(self, "one message").id == id);
    must(nt_connection_send(connection, NULL, 0, 0) == 0);
    must(expect(self, NT_DELIVERY_RECEIVED).size == 0);
    drop(connection);
    must(expect(self, NT_DELIVERY_CLOSED).id == id);
    endpoint_drop(self);
    world_close(&world);
}

static void connect_to_self(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *self = endpoint_in(world.here);
    struct sending sending = { connect_to(self, self), "ping", scaled(10000, 100) };
    pthread_t thread = thread_start(sending_main, &sending);
    struct event opened = expect(self, NT_DELIVERY_OPENED);
    must(is_address(&opened, self));
    for (int i = 0; i < sending.times; i++) {
        must(expect_text(self, "ping").id == opened.id);
    }
    thread_join(thread);
    drop(sending.connection);
    must(expect(self, NT_DELIVERY_CLOSED).id == opened.id);
    nt_connection *again = connect_to(self, self);
    must(expect(self, NT_DELIVERY_OPENED).id != opened.id); /* unique in its endpoint */
    drop(again);
    expect(self, NT_DELIVERY_CLOSED);
    expect_nothing(self);
    endpoint_drop(self);
    world_close(&world);
}

static void connect_to_self_twice(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *self = endpoint_in(world.here);
    int times = scaled(10000, 100);
    struct sending sendings[2] = { { connect_to(self, self), "pingA", times },
                                   { connect_to(self, self), "pingB", times } };
    uint64_t ids[2] = { expect(self, NT_DELIVERY_OPENED).id, expect(self, NT_DELIVERY_OPENED).id };
    pthread_t threads[2];
    must(ids[0] != ids[1]);
    for (int i = 0; i < 2; i++) {
        threads[i] = thread_start(sending_main, &sendings[i]);
    }
    expect_both(self, ids, times, times);
    for (int i = 0; i < 2; i++) {
        thread_join(threads[i]);
        drop(sendings[i].connection);
        must(expect(self, NT_DELIVERY_CLOSED).id == ids[i]);
    }
    endpoint_drop(self);
    world_close(&world);
}

static void close_self(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *one = endpoint_in(world.here), *two = endpoint_in(world.here), *none = NULL;
    nt_connection *a = connect_to(one, one), *b = connect_to(one, one), *c = connect_to(two, two);
    expect(one, NT_DELIVERY_OPENED);
    expect(one, NT_DELIVERY_OPENED);
    expect(two, NT_DELIVERY_OPENED);
    nt_connection_close(a);
    expect(one, NT_DELIVERY_CLOSED);
    must(send_text(a, "closed") == -ENOTCONN && send_text(b, "open") == 0);
    expect_text(one, "open");
    nt_endpoint_close(one);
    expect(one, NT_DELIVERY_ENDPOINT_CLOSED);
    must(send_text(b, "its endpoint is closed") == -ECONNRESET);
    must(strcmp(nt_transport_code(NT_CALL_SEND, -ECONNRESET), "SendFailed") == 0);
    must(connect_error(one, nt_endpoint_address(one), 0) == -ECONNREFUSED);
    must(strcmp(nt_transport_code(NT_CALL_CONNECT, -ECONNREFUSED), "ConnectFailed") == 0);
    must(send_text(c, "open") == 0);
    expect_text(two, "open");
    nt_transport_close(world.here);
    expect(two, NT_DELIVERY_ENDPOINT_CLOSED);
    must(send_text(c, "its transport is closed") == -ECONNRESET);
    must(connect_error(two, nt_endpoint_address(two), 0) == -ECONNREFUSED);
    must(nt_endpoint_new(world.here, NULL, &none) == -ESHUTDOWN);
    must(strcmp(nt_transport_code(NT_CALL_NEW_ENDPOINT, -ESHUTDOWN), "NewEndPointFailed") == 0);
    drop(a);
    drop(b);
    drop(c);
    nt_endpoint_unref(one);
    nt_endpoint_unref(two);
    world_close(&world);
}

/* ---- Closed endpoints and transports ---- */

/* Nothing works any more, and nothing hangs. */
static void expect_dead(nt_endpoint *endpoint, const nt_endpoint *other, nt_connection *connection)
{
    expect(endpoint, NT_DELIVERY_ENDPOINT_CLOSED);
    must(receive_for(endpoint, 0).result == -ESHUTDOWN);
    must(connect_error(endpoint, nt_endpoint_address(other), 0) == -ECONNREFUSED);
    must(send_text(connection, "of a closed endpoint") == -ECONNRESET);
    nt_connection_close(connection);
    must(send_text(connection, "closed by now") == -ENOTCONN);
    nt_connection_close(connection);
}

/* Without a connection back the end is orderly; with one, that one is lost. */
static void close_end_point(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *server = endpoint_in(world.there);
    int rounds = scaled(100, 10);
    for (int i = 0; i < rounds; i++) {
        bool back = i % 2 != 0;
        nt_endpoint *client = endpoint_in(world.here);
        nt_connection *connection = connect_to(client, server), *answer = NULL;
        struct event opened = expect(server, NT_DELIVERY_OPENED);
        if (back) {
            answer = connect_to(server, client);
            expect(client, NT_DELIVERY_OPENED);
        }
        must(send_text(connection, "the last one") == 0);
        nt_endpoint_close(client);
        must(expect_text(server, "the last one").id == opened.id);
        must(expect(server, NT_DELIVERY_CLOSED).id == opened.id);
        if (back) {
            struct event lost = expect_lost(server);
            must(is_address(&lost, client) && lost.bundle == opened.bundle);
            must(send_text(answer, "lost") == -ECONNRESET);
            drop(answer);
        }
        expect_dead(client, server, connection);
        must(connect_error(server, nt_endpoint_address(client), 0) == -ENOENT);
        nt_connection_unref(connection);
        nt_endpoint_unref(client);
    }
    expect_nothing(server);
    endpoint_drop(server);
    world_close(&world);
}

static void close_transport(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *server = endpoint_in(world.there), *one = endpoint_in(world.here), *two = endpoint_in(world.here);
    nt_connection *a = connect_to(one, server), *b = connect_to(two, server), *c = connect_to(server, one);
    nt_endpoint *none = NULL;
    expect(server, NT_DELIVERY_OPENED);
    expect(server, NT_DELIVERY_OPENED);
    expect(one, NT_DELIVERY_OPENED);
    nt_transport_close(world.here);
    nt_transport_close(world.here);
    if (world.here != world.there) {
        int closed = 0, lost = 0;
        for (int i = 0; i < 3; i++) {
            struct event event = next(server);
            closed += event.type == NT_DELIVERY_CLOSED;
            lost += event.type == NT_DELIVERY_ERROR && is_address(&event, one);
        }
        must(closed == 2 && lost == 1);
        expect_nothing(server);
        nt_connection *self = connect_to(server, server); /* it lives on */
        expect(server, NT_DELIVERY_OPENED);
        drop(self);
        expect(server, NT_DELIVERY_CLOSED);
        must(connect_error(server, nt_endpoint_address(two), 0) == -ENOENT);
    }
    expect_dead(one, server, a);
    expect_dead(two, server, b);
    must(nt_endpoint_new(world.here, NULL, &none) == -ESHUTDOWN);
    must(send_text(c, "lost") == -ECONNRESET);
    nt_connection_unref(a);
    nt_connection_unref(b);
    drop(c);
    nt_endpoint_unref(one);
    nt_endpoint_unref(two);
    endpoint_drop(server);
    world_close(&world);
}

static void connect_closed_end_point(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *client = endpoint_in(world.here), *server = endpoint_in(world.there);
    nt_endpoint_close(server);
    must(connect_error(client, nt_endpoint_address(server), 0) == -ENOENT);
    must(strcmp(nt_transport_code(NT_CALL_CONNECT, -ENOENT), "ConnectNotFound") == 0);
    nt_endpoint_unref(server);
    endpoint_drop(client);
    world_close(&world);
}

static void *receiving_main(void *arg)
{
    int closed = 0;
    struct event event;
    while ((event = receive_for(arg, -1)).result == 0) {
        closed += event.type == NT_DELIVERY_ENDPOINT_CLOSED;
    }
    must(event.result == -ESHUTDOWN);
    return (void *)(intptr_t)closed;
}

/* Those that wait meanwhile too; one of them is told of the end. */
static void exception_on_receive(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *one = endpoint_in(world.here), *two = endpoint_in(world.here);
    pthread_t threads[3];
    intptr_t told = 0;
    for (int i = 0; i < 3; i++) {
        threads[i] = thread_start(receiving_main, one);
    }
    usleep(2000);
    nt_endpoint_close(one);
    for (int i = 0; i < 3; i++) {
        void *closed;
        must(pthread_join(threads[i], &closed) == 0);
        told += (intptr_t)closed;
    }
    must(told == 1);
    nt_transport_close(world.here);
    expect(two, NT_DELIVERY_ENDPOINT_CLOSED);
    for (int i = 0; i < 3; i++) {
        must(receive_for(one, 0).result == -ESHUTDOWN && receive_for(two, -1).result == -ESHUTDOWN);
        must(receive_for(one, 10).result == -ESHUTDOWN);
    }
    nt_endpoint_unref(one);
    nt_endpoint_unref(two);
    world_close(&world);
}

/* ---- A send that fails ---- */

/* The system takes nothing more on this bundle's socket. */
static void break_sending(nt_endpoint *from, const nt_endpoint *to)
{
    must(transport_enter(from->transport));
    struct transport_peer *peer = peer_find(from, to->address, to->address_size);
    must(peer != NULL && tcp_peer_of(peer)->socket != NULL);
    must(shutdown(tcp_peer_of(peer)->socket->watch.fd, SHUT_WR) == 0);
    transport_leave(from->transport);
}

static void send_exception(void **state)
{
    nt_transport_options options = options_of(*state);
    nt_transport_faults faults = { .seed = 1, .lose = 1000000 };
    options.faults = &faults;
    struct world world = world_with(state, &options);
    nt_endpoint *client = endpoint_in(world.here), *server = endpoint_in(world.there);
    int rounds = scaled(100, 10);
    for (int i = 0; i < rounds; i++) {
        nt_connection *a = connect_to(client, server), *b = connect_to(client, server);
        struct event opened = expect(server, NT_DELIVERY_OPENED);
        expect(server, NT_DELIVERY_OPENED);
        if (!world.memory) {
            break_sending(client, server);
        }
        must(send_text(a, "cannot leave") == -ECONNRESET);
        struct event here = expect_lost(client), there = expect_lost(server);
        must(is_address(&here, server) && is_address(&there, client));
        must(here.bundle == nt_connection_bundle(a) && there.bundle == opened.bundle);
        must(send_text(b, "same bundle") == -ECONNRESET);
        drop(a);
        drop(b);
    }
    nt_connection *again = connect_to(client, server);
    must(expect(server, NT_DELIVERY_OPENED).id != 0);
    if (!world.memory) {
        must(send_text(again, "works") == 0);
        expect_text(server, "works");
    }
    drop(again);
    expect(server, NT_DELIVERY_CLOSED);
    endpoint_drop(client);
    endpoint_drop(server);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ALL(ping_pong, "PingPong"),
        TEST_ALL(end_points, "EndPoints"),
        TEST_ALL(connections, "Connections"),
        TEST_ALL(close_one_connection, "CloseOneConnection"),
        TEST_ALL(close_one_direction, "CloseOneDirection"),
        TEST_ALL(close_reopen, "CloseReopen"),
        TEST_ALL(parallel_connects, "ParallelConnects"),
        TEST_ALL(send_to_self, "SelfSend"),
        TEST_ALL(send_after_close, "SendAfterClose"),
        TEST_ALL(crossing, "Crossing"),
        TEST_ALL(close_twice, "CloseTwice"),
        TEST_ALL(connect_to_self, "ConnectToSelf"),
        TEST_ALL(connect_to_self_twice, "ConnectToSelfTwice"),
        TEST_ALL(close_self, "CloseSelf"),
        TEST_ALL(close_end_point, "CloseEndPoint"),
        TEST_ALL(close_transport, "CloseTransport"),
        TEST_ALL(connect_closed_end_point, "ConnectClosedEndPoint"),
        TEST_ALL(exception_on_receive, "ExceptionOnReceive"),
        TEST_ALL(send_exception, "SendException"),
        TEST_ALL(kill_threads, "Kill"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
