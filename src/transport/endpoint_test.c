/* SPDX-License-Identifier: BSD-3-Clause */
/* What the original does not have, or does not promise: connects that do not wait, a descriptor to poll, timeouts,
   events of outgoing connections, rejecting, closing a peer, pings, bundles, handles that outlive what they name,
   forks, limits. */
#include "transport/conformance_test.h"

#include <poll.h>
#include <sys/wait.h>

/* ---- Names and codes ---- */

static void names_and_codes(void **state)
{
    (void)state;
#define NT_DELIVERY_TYPE(number, symbol, name, text)      \
    must(NT_DELIVERY_##symbol == (number) && *text != 0); \
    must(strcmp(nt_delivery_name(NT_DELIVERY_##symbol), name) == 0);
#define NT_TRANSPORT_CODE(name, of, code, when) must(strcmp(nt_transport_code(NT_CALL_##of, -(code)), name) == 0);
#include <nt/transport.def>
#undef NT_DELIVERY_TYPE
#undef NT_TRANSPORT_CODE
    must(nt_delivery_name(NT_DELIVERY_NONE) == NULL && nt_delivery_name((enum nt_delivery_kind)12) == NULL);
    must(strcmp(nt_transport_code(NT_CALL_CONNECT, -EPERM), "ConnectFailed") == 0);
    must(strcmp(nt_transport_code(NT_CALL_SEND, -EAGAIN), "would block") == 0);
    must(strcmp(nt_transport_code(NT_CALL_SEND, -EMSGSIZE), "too long") == 0);
}

static void multicast_is_unsupported(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *endpoint = endpoint_in(world.here);
    nt_multicast *group = NULL;
    nt_address address = address_of("group");
    must(nt_multicast_new(endpoint, &group) == -EOPNOTSUPP);
    must(nt_multicast_resolve(endpoint, &address, &group) == -EOPNOTSUPP && group == NULL);
    endpoint_drop(endpoint);
    world_close(&world);
}

static void bad_options(void **state)
{
    nt_transport_options options = options_of(*state);
    nt_transport *transport = NULL;
    options.flags = 1u << 31;
    must(nt_transport_open(&options, &transport) == -EINVAL);
    options = options_of(*state);
    options.reserved[sizeof options.reserved / sizeof *options.reserved - 1] = 1;
    must(nt_transport_open(&options, &transport) == -EINVAL);
    options = options_of(*state);
    options.max_message = UINT64_C(1) << 32;
    must(nt_transport_open(&options, &transport) == -EINVAL);
    options = options_of(*state);
    options.backend = "pigeons";
    must(nt_transport_open(&options, &transport) == -ENOENT && transport == NULL);

    struct world world = world_open(state);
    nt_endpoint_options bad_endpoint = NT_ENDPOINT_OPTIONS_INIT;
    nt_connect_options bad_connect = NT_CONNECT_OPTIONS_INIT;
    nt_endpoint *endpoint = endpoint_in(world.here), *none = NULL;
    nt_connection *connection = NULL;
    nt_address address = nt_endpoint_address(endpoint);
    bad_endpoint.flags = 1u << 31;
    must(nt_endpoint_new(world.here, &bad_endpoint, &none) == -EINVAL && none == NULL);
    bad_connect.reliability = 3;
    must(nt_endpoint_connect(endpoint, &address, &bad_connect, 0, &connection) == -EINVAL);
    must(nt_endpoint_connect(endpoint, &address, NULL, 2, &connection) == -EINVAL && connection == NULL);
    connection = connect_to(endpoint, endpoint);
    must(nt_connection_send(connection, NULL, -1, 0) == -EINVAL);
    must(nt_connection_send(connection, NULL, 0, 2) == -EINVAL);
    must(nt_connection_reject(connection) == -EINVAL);
    drop(connection);
    endpoint_drop(endpoint);
    world_close(&world);
}

static void limits(void **state)
{
    nt_transport_options options = options_of(*state);
    options.max_message = 100;
    options.max_address = 20;
    struct world world = world_with(state, &options);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    static const char bytes[101], long_address[] = "12.12.12.123:12345:10";
    struct iovec huge[2] = { { (void *)(uintptr_t)bytes, SIZE_MAX }, { (void *)(uintptr_t)bytes, 2 } };
    must(connect_error(a, (nt_address){ long_address, 21 }, 0) == -ECONNREFUSED);
    must(connect_error(a, (nt_address){ "", 0 }, 0) == -ECONNREFUSED);
    nt_connection *connection = connect_to(a, b);
    expect(b, NT_DELIVERY_OPENED);
    must(send_bytes(connection, bytes, 101, 0) == -EMSGSIZE);
    must(nt_connection_send(connection, huge, 2, 0) == -EMSGSIZE);
    must(nt_connection_send(connection, huge, 1, 0) == -EMSGSIZE);
    must(send_bytes(connection, bytes, 100, 0) == 0);
    must(expect(b, NT_DELIVERY_RECEIVED).size == 100);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* More parts than one system call takes, empty ones, and none. */
static void many_parts(void **state)
{
    enum { PARTS = 3000 };
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    struct iovec parts[PARTS];
    uint8_t bytes[PARTS];
    for (int i = 0; i < PARTS; i++) {
        bytes[i] = (uint8_t)(i * 7);
        parts[i] = (struct iovec){ bytes + i, i % 5 != 0 };
    }
    expect(b, NT_DELIVERY_OPENED);
    must(nt_connection_send(connection, parts, PARTS, 0) == 0);
    must(nt_connection_send(connection, parts, 0, 0) == 0 && nt_connection_send(connection, parts, 1, 0) == 0);
    nt_delivery *delivery = NULL;
    const struct iovec *got = NULL;
    must(nt_endpoint_receive(b, PATIENCE, &delivery) == 0 && nt_delivery_parts(delivery, &got) == 1);
    must(got->iov_len == PARTS - PARTS / 5);
    for (size_t i = 0, at = 0; i < PARTS; i++) {
        must(i % 5 == 0 || ((const uint8_t *)got->iov_base)[at++] == bytes[i]);
    }
    nt_delivery_unref(delivery);
    must(expect(b, NT_DELIVERY_RECEIVED).size == 0 && expect(b, NT_DELIVERY_RECEIVED).number == 3);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* ---- Without waiting ---- */

static void connect_without_waiting(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there), *gone = endpoint_in(world.there);
    nt_endpoint_close(gone);
    for (int i = 0; i < 3; i++) {
        nt_connection *connection = connect_later(a, i < 2 ? b : a);
        struct event done = expect(a, NT_DELIVERY_CONNECTED);
        must(done.code == 0 && done.id != 0 && is_address(&done, i < 2 ? b : a));
        must(nt_connection_id(connection) == done.id && nt_connection_bundle(connection) == done.bundle);
        nt_endpoint *there = i < 2 ? b : a;
        uint64_t id = expect(there, NT_DELIVERY_OPENED).id;
        must(send_bytes(connection, "at once", 7, NT_NONBLOCK) == 0);
        must(expect_text(there, "at once").id == id);
        drop(connection);
        must(expect(there, NT_DELIVERY_CLOSED).id == id);
    }
    nt_connection *none = connect_later(a, gone);
    must(expect(a, NT_DELIVERY_CONNECTED).code == -ENOENT);
    must(nt_connection_id(none) == 0 && nt_connection_bundle(none) == 0);
    must(send_text(none, "to nobody") == -ECONNRESET);
    drop(none);
    must(nt_endpoint_connect(gone, &(nt_address){ "1", 1 }, NULL, NT_NONBLOCK, &none) == -ECONNREFUSED);
    nt_endpoint_unref(gone);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* Given up before it is done: nothing is told of it, and nothing stays. */
static void connect_given_up(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    int rounds = scaled(200, 20);
    for (int i = 0; i < rounds; i++) {
        nt_connection *connection = connect_later(a, b);
        if (i % 3 == 1) {
            (void)receive_for(b, 0);
        }
        drop(connection);
    }
    nt_connection *last = connect_to(a, b);
    must(send_text(last, "last") == 0);
    struct event event;
    do {
        event = next(b);
        must(event.type != NT_DELIVERY_ERROR);
    } while (event.type != NT_DELIVERY_RECEIVED);
    drop(last);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

static void receive_with_timeout(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *endpoint = endpoint_in(world.here);
    must(receive_for(endpoint, 0).result == -EAGAIN);
    uint64_t before = clock_ns();
    must(receive_for(endpoint, 30).result == -EAGAIN);
    must(clock_ns() - before >= 30 * UINT64_C(1000000));
    nt_connection *connection = connect_to(endpoint, endpoint);
    must(receive_for(endpoint, 0).type == NT_DELIVERY_OPENED);
    must(receive_for(endpoint, 30).result == -EAGAIN);
    drop(connection);
    must(receive_for(endpoint, 30).type == NT_DELIVERY_CLOSED);
    endpoint_drop(endpoint);
    world_close(&world);
}

/* ---- A loop around descriptors ---- */

static bool is_readable(nt_endpoint *endpoint, int timeout_ms)
{
    struct pollfd at = { .fd = nt_endpoint_fd(endpoint), .events = POLLIN };
    must(at.fd >= 0);
    return poll(&at, 1, timeout_ms) == 1;
}

/* What comes, as a program with a loop of its own takes it. */
static struct event polled(nt_endpoint *endpoint)
{
    for (;;) {
        struct event event = receive_for(endpoint, 0);
        if (event.result == 0) {
            return event;
        }
        must(event.result == -EAGAIN);
        must(is_readable(endpoint, PATIENCE));
    }
}

static void expect_unreadable(nt_endpoint *endpoint)
{
    while (is_readable(endpoint, 10)) {
        must(receive_for(endpoint, 0).result == -EAGAIN);
    }
}

static void *poking_main(void *arg)
{
    usleep(3000);
    must(send_text(arg, "poke") == 0);
    return NULL;
}

static void polled_descriptor(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    must(nt_endpoint_fd(a) == nt_endpoint_fd(a));
    expect_unreadable(a);
    expect_unreadable(b);
    nt_connection *ab = connect_later(a, b), *ba = connect_later(b, a), *aa = connect_later(a, a);
    int opened = 0, rounds = scaled(1000, 50);
    for (int i = 0; i < 4; i++) { /* connected, and opened by b and by itself */
        opened += polled(a).type == NT_DELIVERY_OPENED;
    }
    must(opened == 2 && polled(b).result == 0 && polled(b).result == 0);
    for (int i = 0; i < rounds; i++) {
        must(send_bytes(ab, "ping", 4, NT_NONBLOCK) == 0 && polled(b).size == 4);
        must(send_bytes(ba, "pong!", 5, NT_NONBLOCK) == 0 && polled(a).size == 5);
    }
    expect_unreadable(a);
    expect_unreadable(b);
    nt_connection *from[] = { aa, ba };
    for (int i = 0; i < 2; i++) { /* another thread's doing */
        pthread_t thread = thread_start(poking_main, from[i]);
        must(polled(a).type == NT_DELIVERY_RECEIVED);
        thread_join(thread);
    }
    must(send_text(aa, "stays") == 0 && is_readable(a, 0) && is_readable(a, 0));
    must(polled(a).type == NT_DELIVERY_RECEIVED);
    expect_unreadable(a);
    drop(ab);
    drop(ba);
    drop(aa);
    must(polled(a).type == NT_DELIVERY_CLOSED && polled(a).type == NT_DELIVERY_CLOSED);
    nt_endpoint_close(a);
    must(is_readable(a, 0) && receive_for(a, 0).type == NT_DELIVERY_ENDPOINT_CLOSED);
    must(is_readable(a, 0) && receive_for(a, 0).result == -ESHUTDOWN);
    nt_endpoint_unref(a);
    endpoint_drop(b);
    world_close(&world);
}

/* ---- Outgoing connections, rejected ones, peers ---- */

static void outgoing_events(void **state)
{
    struct world world = world_open(state);
    nt_endpoint_options options = NT_ENDPOINT_OPTIONS_INIT;
    nt_endpoint *a = NULL, *b = endpoint_in(world.there);
    options.flags = NT_ENDPOINT_OUTGOING;
    must(nt_endpoint_new(world.here, &options, &a) == 0);
    nt_connection *one = connect_to(a, b);
    struct event opened = expect(a, NT_DELIVERY_OUTGOING_OPENED);
    must(opened.id == nt_connection_id(one) && opened.bundle == nt_connection_bundle(one) && is_address(&opened, b));
    nt_connection *two = connect_later(a, b);
    must(expect(a, NT_DELIVERY_CONNECTED).id == expect(a, NT_DELIVERY_OUTGOING_OPENED).id);
    must(nt_connection_id(one) != nt_connection_id(two));
    nt_connection_close(one);
    struct event closed = expect(a, NT_DELIVERY_OUTGOING_CLOSED);
    must(closed.id == opened.id && closed.code == 0 && closed.bundle == opened.bundle);
    nt_address address = nt_endpoint_address(b);
    must(nt_endpoint_peer_close(a, &address) == 0);
    closed = expect(a, NT_DELIVERY_OUTGOING_CLOSED);
    must(closed.id == nt_connection_id(two) && closed.code == -ECONNRESET && closed.bundle == opened.bundle);
    must(expect_lost(a).bundle == opened.bundle);
    drop(one);
    drop(two);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

static nt_connection *opened_by(nt_endpoint *endpoint)
{
    nt_delivery *delivery = NULL;
    must(nt_endpoint_receive(endpoint, PATIENCE, &delivery) == 0);
    must(nt_delivery_type(delivery) == NT_DELIVERY_OPENED);
    nt_connection *connection = nt_connection_ref(nt_delivery_connection(delivery));
    must(nt_connection_id(connection) == nt_delivery_id(delivery));
    must(nt_connection_bundle(connection) == nt_delivery_bundle(delivery));
    nt_delivery_unref(delivery);
    return connection;
}

static void rejected(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *unwanted = connect_to(a, b), *wanted = connect_to(a, b);
    nt_connection *incoming = opened_by(b);
    uint64_t id = expect(b, NT_DELIVERY_OPENED).id;
    must(send_text(unwanted, "before") == 0);
    must(send_text(wanted, "both came") == 0);
    usleep(20000); /* so that it waits in the queue when it is rejected */
    must(nt_connection_send(incoming, NULL, 0, 0) == -EINVAL);
    nt_connection_close(incoming);
    must(nt_connection_reject(incoming) == 0 && nt_connection_reject(incoming) == 0);
    must(expect_text(b, "both came").id == id);
    must(send_text(unwanted, "behind") == 0); /* the sender does not learn of it */
    must(send_text(wanted, "still") == 0);
    must(expect_text(b, "still").id == id);
    drop(unwanted);
    drop(wanted);
    must(expect(b, NT_DELIVERY_CLOSED).id == id);
    expect_nothing(b);
    must(nt_connection_reject(incoming) == 0);
    nt_connection_unref(incoming);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

static void peer_closed(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_address to_a = nt_endpoint_address(a), to_b = nt_endpoint_address(b);
    must(nt_endpoint_peer_close(a, &to_b) == -ENOENT && nt_endpoint_peer_close(a, &to_a) == -ENOENT);
    int rounds = scaled(100, 10);
    for (int i = 0; i < rounds; i++) {
        nt_connection *ab = connect_to(a, b), *ba = connect_to(b, a);
        struct event at_b = expect(b, NT_DELIVERY_OPENED), at_a = expect(a, NT_DELIVERY_OPENED);
        must(nt_endpoint_peer_close(i % 2 != 0 ? a : b, i % 2 != 0 ? &to_b : &to_a) == 0);
        struct event lost_a = expect_lost(a), lost_b = expect_lost(b);
        must(lost_a.bundle == at_a.bundle && lost_b.bundle == at_b.bundle);
        must(is_address(&lost_a, b) && is_address(&lost_b, a));
        must(send_text(ab, "lost") == -ECONNRESET && send_text(ba, "lost") == -ECONNRESET);
        drop(ab);
        drop(ba);
    }
    must(nt_endpoint_peer_close(a, &to_b) == -ENOENT);
    expect_nothing(a);
    expect_nothing(b);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

static void pinged(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_address to_a = nt_endpoint_address(a), to_b = nt_endpoint_address(b);
    must(nt_endpoint_ping(a, &to_b) == -ENOENT && nt_endpoint_ping(a, &to_a) == -ENOENT);
    nt_connection *connection = connect_to(a, b);
    struct event opened = expect(b, NT_DELIVERY_OPENED);
    for (int i = 0; i < 20; i++) {
        must(nt_endpoint_ping(a, &to_b) == 0);
        int again = nt_endpoint_ping(a, &to_b);
        must(again == 0 || again == -EALREADY); /* it may have been answered */
        struct event event = expect(a, NT_DELIVERY_PINGED);
        must(event.code > 0 && is_address(&event, b) && event.bundle == nt_connection_bundle(connection));
        if (again == 0) {
            expect(a, NT_DELIVERY_PINGED);
        }
    }
    must(nt_endpoint_ping(b, &to_a) == 0 && expect(b, NT_DELIVERY_PINGED).bundle == opened.bundle);
    expect_nothing(a);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* One bundle a pair, for both directions; a new one behind a loss; the others stay. */
static void bundles(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there), *c = endpoint_in(world.there);
    nt_connection *to_b = connect_to(a, b), *more = connect_to(a, b), *to_c = connect_to(a, c), *back;
    uint64_t first = nt_connection_bundle(to_b), other = nt_connection_bundle(to_c);
    must(first != 0 && first == nt_connection_bundle(more) && other != 0 && other != first);
    back = connect_to(b, a);
    must(expect(a, NT_DELIVERY_OPENED).bundle == first);
    uint64_t there = nt_connection_bundle(back);
    must(expect(b, NT_DELIVERY_OPENED).bundle == there && expect(b, NT_DELIVERY_OPENED).bundle == there);
    nt_endpoint_close(b);
    must(expect(a, NT_DELIVERY_CLOSED).bundle == first && expect_lost(a).bundle == first);
    must(send_text(to_b, "lost") == -ECONNRESET && send_text(more, "lost") == -ECONNRESET);
    must(send_text(to_c, "another bundle") == 0);
    expect(c, NT_DELIVERY_OPENED);
    expect_text(c, "another bundle");
    nt_address address = nt_endpoint_address(c);
    must(nt_endpoint_peer_close(a, &address) == 0 && expect_lost(a).bundle == other);
    expect_lost(c);
    drop(to_c);
    to_c = connect_to(a, c);
    must(nt_connection_bundle(to_c) != other && nt_connection_bundle(to_c) != first);
    drop(to_b);
    drop(more);
    drop(back);
    drop(to_c);
    nt_endpoint_unref(b);
    endpoint_drop(a);
    endpoint_drop(c);
    world_close(&world);
}

/* ---- What outlives ---- */

static void handles_outlive(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b), *incoming = opened_by(b);
    must(send_text(connection, "kept") == 0 && send_text(connection, "waits") == 0);
    nt_delivery *kept = NULL;
    must(nt_endpoint_receive(b, PATIENCE, &kept) == 0);
    nt_delivery *twice = nt_delivery_ref(kept);
    uint64_t id = nt_connection_id(connection);
    must(receive_for(b, PATIENCE).size == 5);
    nt_endpoint_ref(a);
    nt_transport_ref(world.here);
    world_close(&world);
    nt_address address = nt_connection_address(connection);
    must(address.size > 0 && nt_connection_id(connection) == id && nt_connection_bundle(connection) != 0);
    must(send_text(connection, "too late") == -ECONNRESET);
    nt_endpoint_unref(a);
    nt_transport_unref(world.here);
    must(receive_for(a, 0).type == NT_DELIVERY_ENDPOINT_CLOSED && receive_for(a, 0).result == -ESHUTDOWN);
    must(nt_endpoint_address(a).size > 0 && nt_endpoint_fd(a) >= 0);
    nt_endpoint_unref(a);
    nt_endpoint_unref(b);
    nt_delivery_unref(kept);
    struct event event = event_of(twice);
    must(event.size == 4 && memcmp(event.bytes, "kept", 4) == 0 && event.number == 1 && event.address[0] != 0);
    must(nt_delivery_connection(twice) == incoming && nt_delivery_reliability(twice) == NT_RELIABLE_ORDERED);
    nt_delivery_unref(twice);
    must(nt_connection_reject(incoming) == 0);
    nt_connection_unref(incoming);
    drop(connection);
    nt_connection_unref(NULL);
    nt_delivery_unref(NULL);
    nt_endpoint_unref(NULL);
    nt_transport_unref(NULL);
}

/* ---- Forks ---- */

static int calls_of_child(struct world *world, nt_endpoint *endpoint, nt_connection *connection, nt_delivery *delivery)
{
    nt_address address = nt_endpoint_address(endpoint);
    nt_endpoint *none = NULL;
    nt_connection *other = NULL;
    nt_delivery *got = NULL;
    nt_multicast *group = NULL;
    const int wrong[] = {
        nt_endpoint_new(world->here, NULL, &none) != -NT_EFORKED,
        nt_endpoint_receive(endpoint, -1, &got) != -NT_EFORKED,
        nt_endpoint_fd(endpoint) != -NT_EFORKED,
        nt_endpoint_connect(endpoint, &address, NULL, 0, &other) != -NT_EFORKED,
        nt_endpoint_peer_close(endpoint, &address) != -NT_EFORKED,
        nt_endpoint_ping(endpoint, &address) != -NT_EFORKED,
        nt_connection_send(connection, NULL, 0, 0) != -NT_EFORKED,
        nt_connection_reject(nt_delivery_connection(delivery)) != -NT_EFORKED,
        nt_multicast_new(endpoint, &group) != -NT_EFORKED,
        nt_multicast_resolve(endpoint, &address, &group) != -NT_EFORKED,
    };
    int result = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        result = wrong[i] && result == 0 ? (int)i + 1 : result;
    }
    nt_connection_close(connection);
    nt_endpoint_close(endpoint);
    nt_transport_close(world->here);
    nt_delivery_unref(delivery);
    nt_connection_unref(connection);
    nt_endpoint_unref(endpoint);
    nt_transport_unref(world->here);
    return result;
}

static void forked(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b), *self = connect_to(a, a);
    nt_delivery *delivery = NULL;
    must(nt_endpoint_receive(a, PATIENCE, &delivery) == 0);
    expect(b, NT_DELIVERY_OPENED);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            alarm(20);
            _exit(calls_of_child(&world, a, i % 2 != 0 ? connection : self, delivery));
        }
        must(send_text(connection, "goes on") == 0);
        expect_text(b, "goes on");
        int status;
        must(waitpid(child, &status, 0) == child && WIFEXITED(status));
        must(WEXITSTATUS(status) == 0);
        must(send_text(self, "goes on") == 0);
        expect_text(a, "goes on");
    }
    nt_delivery_unref(delivery);
    drop(connection);
    expect(b, NT_DELIVERY_CLOSED);
    drop(self);
    endpoint_drop(a);
    endpoint_drop(b);
    world_close(&world);
}

/* A child that has the parent's descriptors keeps no bundle alive, nor an address. */
static void closed_while_a_child_lives(void **state)
{
    struct world world = world_open(state);
    nt_endpoint *a = endpoint_in(world.here), *b = endpoint_in(world.there);
    nt_connection *connection = connect_to(a, b);
    int end[2];
    char byte;
    expect(b, NT_DELIVERY_OPENED);
    must(pipe(end) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        close(end[1]);
        _exit(read(end[0], &byte, 1) != 0);
    }
    nt_address address = nt_endpoint_address(b);
    must(nt_endpoint_peer_close(a, &address) == 0);
    expect_lost(a);
    expect_lost(b);
    drop(connection);
    nt_endpoint_close(b);
    if (world.there != world.here) {
        nt_transport_close(world.there);
    }
    must(connect_error(a, address, 2000) == -ENOENT);
    close(end[0]);
    close(end[1]);
    must(waitpid(child, NULL, 0) == child);
    nt_endpoint_unref(b);
    endpoint_drop(a);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN(names_and_codes, "names and codes", "any"),
        TEST_ALL(multicast_is_unsupported, "multicast is unsupported"),
        TEST_ALL(bad_options, "bad options"),
        TEST_ALL(limits, "limits"),
        TEST_ALL(many_parts, "many parts"),
        TEST_ALL(connect_without_waiting, "connect without waiting"),
        TEST_ALL(connect_given_up, "a connect is given up"),
        TEST_ALL(receive_with_timeout, "receive with a timeout"),
        TEST_ALL(polled_descriptor, "a descriptor to poll"),
        TEST_ALL(outgoing_events, "events of outgoing connections"),
        TEST_ALL(rejected, "a connection is rejected"),
        TEST_ALL(peer_closed, "a peer is closed"),
        TEST_ALL(pinged, "pings"),
        TEST_ALL(bundles, "bundles"),
        TEST_ALL(handles_outlive, "handles outlive"),
        TEST_ALL(forked, "calls of a child"),
        TEST_ALL(closed_while_a_child_lives, "closed while a child lives"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
