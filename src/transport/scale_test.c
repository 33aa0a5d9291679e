/* SPDX-License-Identifier: BSD-3-Clause */
/* Many connections, many peers, and what they cost; and that peers are answered while nobody receives. */
#include "transport/conformance_test.h"

#include <malloc.h>
#include <sys/resource.h>

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Both ends of each are here. */
static void ten_thousand_connections(void **state)
{
    enum { COUNT = 10000 };
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection **connections = calloc(COUNT, sizeof *connections);
    drop(connect_to(a, b));
    expect(b, NT_DELIVERY_OPENED);
    expect(b, NT_DELIVERY_CLOSED);
    size_t before = heap_bytes();
    for (int i = 0; i < COUNT; i++) {
        connections[i] = connect_to(a, b);
    }
    for (int i = 0; i < COUNT; i++) {
        expect(b, NT_DELIVERY_OPENED);
    }
    size_t each = (heap_bytes() - before) / COUNT / 2;
    print_message("# %zu bytes an end of a connection\n", each);
    must(each <= 1024); /* a sanitizer's heap says nothing: 0 */
    for (int i = 0; i < COUNT; i++) {
        must(send_text(connections[i], "ping") == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        must(expect_text(b, "ping").number == 1);
    }
    for (int i = 0; i < COUNT; i++) {
        drop(connections[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        expect(b, NT_DELIVERY_CLOSED);
    }
    free(connections);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* As many as the system lets us have descriptors for: a socket is three here, with both ends and what is on its way. */
static int peers_possible(int wanted)
{
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return limit.rlim_cur / 4 < (rlim_t)wanted ? (int)(limit.rlim_cur / 4) : wanted;
}

static void thousand_peers(void **state)
{
    int count = peers_possible(scaled(1000, 200));
    struct world world = world_open(state);
    nt_endpoint *server = endpoint_in(world.there);
    nt_endpoint **clients = calloc((size_t)count, sizeof(nt_endpoint *));
    nt_connection **connections = calloc((size_t)count, sizeof(nt_connection *));
    for (int i = 0; i < count; i++) {
        clients[i] = endpoint_in(world.here);
        connections[i] = connect_later(clients[i], server);
    }
    for (int i = 0; i < count; i++) {
        must(expect(clients[i], NT_DELIVERY_CONNECTED).code == 0);
        must(send_text(connections[i], "ping") == 0);
    }
    for (int i = 0, pings = 0; i < 2 * count; i++) {
        pings += next(server).type == NT_DELIVERY_RECEIVED;
        must(i < 2 * count - 1 || pings == count);
    }
    for (int i = 0; i < count; i++) {
        drop(connections[i]);
        endpoint_drop(clients[i]);
    }
    free(connections);
    free(clients);
    endpoint_drop(server);
    world_close(&world);
}

/* The helper answers; the quickest of some shows what it takes when the machine has time. */
static void unattended(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *server = endpoint_in(world.there), *client = endpoint_in(world.here);
    nt_address address = nt_endpoint_address(server);
    uint64_t connect_best = UINT64_MAX, ping_best = UINT64_MAX;
    nt_connection *first = connect_to(client, server);
    sleep((unsigned)scaled(5, 2));
    for (int i = 0; i < 20; i++) {
        nt_endpoint *another = endpoint_in(world.here);
        uint64_t begin = clock_ns();
        nt_connection *connection = connect_to(another, server);
        uint64_t took = clock_ns() - begin;
        connect_best = took < connect_best ? took : connect_best;
        must(nt_endpoint_ping(client, &address) == 0);
        took = (uint64_t)expect(client, NT_DELIVERY_PINGED).code;
        ping_best = took < ping_best ? took : ping_best;
        drop(connection);
        endpoint_drop(another);
    }
    print_message("# a handshake in %.2f ms, a probe in %.2f ms\n", 1e-6 * (double)connect_best,
                  1e-6 * (double)ping_best);
    must(connect_best <= 10 * UINT64_C(1000000) && ping_best <= 10 * UINT64_C(1000000));
    drop(first);
    endpoint_drop(client);
    endpoint_drop(server);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ALL(ten_thousand_connections, "10,000 connections"),
        TEST_ALL(thousand_peers, "1,000 peers"),
        TEST_ALL(unattended, "nobody receives"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
