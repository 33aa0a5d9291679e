/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that are bounded, whoever does not receive; turns among peers; what close waits for; and the memory backend's
   faults, drawn from a seed. */
#include "transport/conformance_test.h"

enum { QUOTA = 256 << 10, BLOCK = 16 << 10 };

static nt_transport_options bounded(void **state)
{
    nt_transport_options options = options_of(*state);
    options.max_peer = QUOTA;
    return options;
}

/* Messages of one size that say which they are. */
static int send_number(nt_connection *connection, uint32_t number, uint32_t flags)
{
    static const uint8_t rest[BLOCK];
    struct iovec parts[2] = { { &number, sizeof number }, { (void *)(uintptr_t)rest, sizeof rest } };
    return nt_connection_send(connection, parts, 2, flags);
}

static void expect_number(nt_endpoint *endpoint, uint32_t number)
{
    struct event event = expect(endpoint, NT_DELIVERY_RECEIVED);
    uint32_t got;
    memcpy(&got, event.bytes, sizeof got);
    must(event.size == sizeof got + BLOCK && got == number);
}

/* Until nothing more is taken, now and a while later: how many. */
static uint32_t fill(nt_connection *connection, uint32_t from)
{
    int idle = 0;
    while (idle < 10) {
        int error = send_number(connection, from, NT_NONBLOCK);
        must(error == 0 || error == -EAGAIN);
        from += error == 0;
        idle = error == 0 ? 0 : idle + 1;
        if (error != 0) {
            usleep(10000);
        }
        must(from < 10000); /* bytes beyond any bound */
    }
    return from;
}

/* The receiver does not: what is taken is bounded. Then all of it comes, in order, and the sender is told to go on. */
static void nonblocking_send(void **state)
{
    nt_transport_options options = bounded(state);
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    uint32_t sent = fill(connection, 0), received = 0;
    must(sent >= QUOTA / (BLOCK + 100));
    expect(b, NT_DELIVERY_OPENED);
    for (int round = 0; round < 3; round++) {
        struct event event = { .result = -EAGAIN };
        while (event.result == -EAGAIN) {
            while (received < sent) {
                expect_number(b, received++);
            }
            event = receive_for(a, 20);
        }
        must(event.type == NT_DELIVERY_WRITABLE && event.id == nt_connection_id(connection));
        must(send_number(connection, sent, NT_NONBLOCK) == 0); /* as it was told */
        sent = fill(connection, sent + 1);
    }
    drop(connection);
    while (received < sent) {
        expect_number(b, received++);
    }
    expect(b, NT_DELIVERY_CLOSED);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

struct filling {
    nt_connection *connection;
    uint32_t times;
};

static void *filling_main(void *arg)
{
    const struct filling *filling = arg;
    for (uint32_t i = 0; i < filling->times; i++) {
        must(send_number(filling->connection, i, 0) == 0);
    }
    return NULL;
}

static void waiting_send(void **state)
{
    nt_transport_options options = bounded(state);
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    struct filling filling = { connect_to(a, b), (uint32_t)scaled(10000, 1000) };
    pthread_t thread = thread_start(filling_main, &filling);
    expect(b, NT_DELIVERY_OPENED);
    for (uint32_t i = 0; i < filling.times; i++) {
        expect_number(b, i);
    }
    thread_join(thread);
    drop(filling.connection);
    expect(b, NT_DELIVERY_CLOSED);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* Who waits for a receiver that does not is woken by the end. */
static void waiting_send_ends(void **state)
{
    nt_transport_options options = bounded(state);
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    (void)fill(connection, 0);
    nt_address address = nt_endpoint_address(b);
    must(nt_endpoint_peer_close(a, &address) == 0);
    must(send_number(connection, 0, NT_NONBLOCK) == -ECONNRESET);
    must(send_number(connection, 0, 0) == -ECONNRESET);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* One that is loud does not keep the others from being heard. */
static void turns_among_peers(void **state)
{
    enum { TIMES = 50 };
    struct world world = world_open(state);
    nt_endpoint *server = endpoint_in(world.there), *clients[3];
    nt_connection *connections[3];
    uint64_t ids[3], quiet_at = 0;
    for (int i = 0; i < 3; i++) {
        clients[i] = endpoint_in(world.here);
        connections[i] = connect_to(clients[i], server);
        ids[i] = expect(server, NT_DELIVERY_OPENED).id;
    }
    for (int i = 0; i < TIMES; i++) {
        must(send_text(connections[0], "loud") == 0 && send_text(connections[1], "loud") == 0);
    }
    must(send_text(connections[2], "quiet") == 0);
    usleep(100000);
    for (uint64_t i = 1; i <= 2 * TIMES + 1; i++) {
        struct event event = expect(server, NT_DELIVERY_RECEIVED);
        quiet_at = event.id == ids[2] ? i : quiet_at;
    }
    must(quiet_at != 0 && (quiet_at <= 6 || !world.memory));
    for (int i = 0; i < 3; i++) {
        drop(connections[i]);
        endpoint_drop(clients[i]);
    }
    endpoint_drop(server);
    world_close(&world);
}

static void full_self_queue(void **state)
{
    nt_transport_options options = bounded(state);
    struct world world = world_with(state, &options);
    nt_endpoint *self = endpoint_in(world.here);
    nt_connection *connection = connect_to(self, self);
    expect(self, NT_DELIVERY_OPENED);
    for (int round = 0; round < 3; round++) {
        uint32_t sent = 0;
        int error;
        while ((error = send_number(connection, sent, sent % 2)) == 0) {
            sent++;
        }
        must(error == -ENOBUFS && sent > QUOTA / BLOCK / 2 && sent < 2 * QUOTA / BLOCK);
        for (uint32_t i = 0; i < sent; i++) {
            expect_number(self, i);
        }
    }
    drop(connection);
    endpoint_drop(self);
    world_close(&world);
}

/* What was sent leaves before the end; who never takes it holds nobody up. */
static void close_flushes(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    uint32_t times = 500;
    for (uint32_t i = 0; i < times; i++) {
        must(send_number(connection, i, NT_NONBLOCK) == 0);
    }
    endpoint_drop(a);
    expect(b, NT_DELIVERY_OPENED);
    for (uint32_t i = 0; i < times; i++) {
        expect_number(b, i);
    }
    expect(b, NT_DELIVERY_CLOSED);
    nt_connection_unref(connection);
    endpoint_drop(b);
    world_close(&world);
}

/* ---- Faults of the memory backend ---- */

struct outcome {
    uint64_t hash;
    uint32_t received, overtaken, lost, refused;
};

/* So many messages, connecting again after each loss; the same seed has the same outcome. */
static struct outcome run(void **state, nt_transport_faults faults, uint32_t times)
{
    nt_transport_options options = options_of(*state);
    options.faults = &faults;
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = NULL;
    struct outcome outcome = { 0 };
    for (uint32_t i = 0; i < times; i++) {
        if (connection == NULL && try_connect(a, nt_endpoint_address(b), 0, &connection) != 0) {
            outcome.refused++;
            continue;
        }
        if (send_bytes(connection, &i, sizeof i, 0) != 0) {
            outcome.lost++;
            drop(connection);
            connection = NULL;
        }
    }
    if (connection != NULL) {
        drop(connection);
    }
    struct event event;
    uint32_t greatest = 0, number;
    while ((event = receive_for(b, faults.delay_ms != 0 ? 100 : 0)).result == 0) {
        memcpy(&number, event.bytes, sizeof number);
        if (event.type == NT_DELIVERY_RECEIVED) {
            outcome.received++;
            outcome.overtaken += number < greatest;
            greatest = number > greatest ? number : greatest;
            outcome.hash = outcome.hash * 31 + number;
        }
    }
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
    return outcome;
}

static void faults_by_seed(void **state)
{
    enum { TIMES = 2000 };
    struct outcome none = run(state, (nt_transport_faults){ .seed = 1 }, TIMES);
    must(none.received == TIMES && none.overtaken == 0 && none.lost == 0 && none.refused == 0);
    struct outcome dropped = run(state, (nt_transport_faults){ .seed = 1, .drop = 250000 }, TIMES);
    must(dropped.received > TIMES / 2 && dropped.received < TIMES && dropped.overtaken == 0);
    struct outcome reordered = run(state, (nt_transport_faults){ .seed = 1, .reorder = 250000 }, TIMES);
    must(reordered.received == TIMES && reordered.overtaken > TIMES / 8);
    struct outcome lost = run(state, (nt_transport_faults){ .seed = 1, .lose = 10000, .refuse = 300000 }, TIMES);
    must(lost.lost > 0 && lost.refused > 0 && lost.received == TIMES - lost.lost - lost.refused);
    struct outcome delayed = run(state, (nt_transport_faults){ .seed = 1, .delay_ms = 20 }, TIMES);
    must(delayed.hash == none.hash);
    nt_transport_faults all = { .seed = 7, .drop = 50000, .reorder = 50000, .lose = 5000, .refuse = 100000 };
    struct outcome one = run(state, all, TIMES), same = run(state, all, TIMES);
    all.seed = 8;
    struct outcome another = run(state, all, TIMES);
    must(one.hash == same.hash && one.lost == same.lost && one.refused == same.refused && one.hash != another.hash);
}

/* What is late, or waits to be overtaken, when the end comes. */
static void ends_amid_faults(void **state)
{
    static const nt_transport_faults kinds[] = { { .reorder = 1000000 }, { .delay_ms = 1000 } };
    for (int i = 0; i < 12; i++) {
        nt_transport_options options = options_of(*state);
        options.faults = &kinds[i % 2];
        struct world world = world_with(state, &options);
        nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
        nt_connection *connection = connect_to(a, b);
        nt_address address = nt_endpoint_address(b);
        must(send_text(connection, "late") == 0);
        if (i / 2 % 2 != 0) {
            must(nt_endpoint_peer_close(a, &address) == 0);
        } else if (i / 2 % 3 == 0) {
            nt_connection_close(connection);
        }
        nt_connection_unref(connection);
        endpoint_drop(i < 6 ? a : b);
        if (i % 2 == 0 && i / 2 % 2 == 0 && i < 6) { /* an orderly end takes nothing back */
            expect(b, NT_DELIVERY_OPENED);
            expect_text(b, "late");
            expect(b, NT_DELIVERY_CLOSED);
        }
        endpoint_drop(i < 6 ? b : a);
        world_close(&world);
    }
}

/* What is late counts as well. */
static void delay_is_bounded(void **state)
{
    nt_transport_options options = bounded(state);
    nt_transport_faults faults = { .delay_ms = 60000 };
    options.faults = &faults;
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    (void)fill(connection, 0);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ALL(nonblocking_send, "a send that does not wait"),
        TEST_ALL(waiting_send, "a send that waits"),
        TEST_ALL(waiting_send_ends, "a send that waits is ended"),
        TEST_ALL(turns_among_peers, "turns among peers"),
        TEST_ALL(full_self_queue, "its own queue is full"),
        TEST_ALL(close_flushes, "close flushes"),
        TEST_MEMORY(faults_by_seed, "faults by seed"),
        TEST_MEMORY(ends_amid_faults, "ends amid faults"),
        TEST_MEMORY(delay_is_bounded, "a delay is bounded"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
