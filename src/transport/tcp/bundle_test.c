/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol on the wire, against a peer that is scripted byte by byte: the golden session in both roles, what a
   peer may do, and what loses it its bundle. */
#include "transport/tcp/script.h"

#define OWN "127.0.0.1:45998:0" /* as in the golden session */
#define OWN_HEX "3132372e302e302e313a34353939383a30"
#define PEER "127.0.0.1:9:0"

static struct script open_own(void)
{
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    options.external_port = "45998";
    return script_open(&options);
}

/* The port that is really listened at is not the one that it claims. */
static struct script open_reachable(void)
{
    return script_open(NULL);
}

/* A peer that is accepted, on a socket of its own. */
static int accepted_peer(const struct script *script)
{
    int fd = script_dial(nt_endpoint_address(script->endpoint));
    script_greet(fd, 0, PEER);
    script_expect(fd, "00000000");
    return fd;
}

/* ---- The golden session ---- */

static void connect_without_waiting(const struct script *script, uint16_t port, nt_connection **ret_connection)
{
    char to[64];
    (void)snprintf(to, sizeof to, "127.0.0.1:%u:0", port);
    nt_address address = script_text_address(to);
    assert_int_equal(nt_endpoint_connect(script->endpoint, &address, NULL, NT_NONBLOCK, ret_connection), 0);
}

static void send_text(nt_connection *connection, const char *text)
{
    struct iovec part = { (void *)(uintptr_t)text, strlen(text) };
    assert_int_equal(nt_connection_send(connection, &part, 1, 0), 0);
}

static void test_golden_client(void **state)
{
    uint16_t port;
    int listener = script_listen(&port);
    struct script script = open_own();
    nt_connection *connection;
    (void)state;
    connect_without_waiting(&script, port, &connection);
    int fd = script_accept(listener);
    script_expect(fd, "00000000 00000019 00000000 00000011" OWN_HEX);
    script_say(fd, "00000000");
    script_await_only(&script, NT_DELIVERY_CONNECTED);
    script_expect(fd, "00000000 00000400");
    script_say(fd, "00000000 00000400");
    nt_delivery *opened = script_await(&script, NT_DELIVERY_OPENED);
    assert_int_equal(nt_delivery_id(opened), UINT64_C(0x100000400));
    nt_delivery_unref(opened);
    for (int i = 0; i < 2; i++) {
        send_text(connection, "aaaaa");
        script_expect(fd, "00000400 00000005 6161616161");
        script_say(fd, "00000400 00000005 6161616161");
        script_await_message(&script, "aaaaa");
    }
    nt_connection_close(connection);
    script_expect(fd, "00000001 00000400");
    script_say(fd, "00000001 00000400 00000002 00000400");
    script_await_only(&script, NT_DELIVERY_CLOSED);
    script_expect(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    script_await_nothing(&script);
    nt_connection_unref(connection);
    script_close(&script);
    close(listener);
}

static void test_golden_server(void **state)
{
    struct script script = open_reachable();
    uint16_t port;
    int listener = script_listen(&port); /* holds the peer's address */
    char from[64];
    (void)state;
    (void)snprintf(from, sizeof from, "127.0.0.1:%u:0", port);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(fd, 0, from);
    script_expect(fd, "00000000");
    script_say(fd, "00000000 00000400");
    nt_delivery *opened = script_await(&script, NT_DELIVERY_OPENED);
    nt_address address = nt_delivery_address(opened);
    nt_connection *back;
    assert_int_equal(address.size, strlen(from));
    assert_memory_equal(address.bytes, from, address.size);
    assert_int_equal(nt_endpoint_connect(script.endpoint, &address, NULL, 0, &back), 0); /* over the same socket */
    nt_delivery_unref(opened);
    script_expect(fd, "00000000 00000400");
    for (int i = 0; i < 2; i++) {
        script_say(fd, "00000400 00000005 6161616161");
        script_await_message(&script, "aaaaa");
        send_text(back, "aaaaa");
        script_expect(fd, "00000400 00000005 6161616161");
    }
    script_say(fd, "00000001 00000400");
    script_await_only(&script, NT_DELIVERY_CLOSED);
    nt_connection_close(back);
    nt_connection_unref(back);
    script_expect(fd, "00000001 00000400 00000002 00000400");
    script_say(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    script_await_nothing(&script);
    script_close(&script);
    close(listener);
}

/* ---- What comes in pieces, and what is odd ---- */

static void test_byte_by_byte(void **state)
{
    static const char *const bytes[] = { "00", "00", "00", "00", "00", "00", "04", "00", "00", "00",
                                         "04", "00", "00", "00", "00", "03", "61", "62", "63" };
    struct script script = open_reachable();
    int fd = accepted_peer(&script);
    (void)state;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        script_say(fd, bytes[i]);
        usleep(1000);
    }
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_await_message(&script, "abc");
    script_say(fd, "00000400 00000000"); /* an empty message is one */
    script_await_message(&script, "");
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    script_close(&script);
}

/* All that loses a peer its bundle, and the reason that is told; a neighbour's goes on. */
static void test_faults(void **state)
{
    static const struct {
        const char *bytes, *reason;
        int opened; /* deliveries before the loss */
    } faults[] = {
        { "00000400 00000001 61", "the peer sent on what it had not opened, connection 1024", 0 },
        { "00000000 00000400 00000000 00000400", "the peer opened twice connection 1024", 1 },
        { "00000000 00000005", "the peer opened the reserved connection 5", 0 },
        { "00000000 000003ff", "the peer opened the reserved connection 1023", 0 },
        { "00000006", "the peer sent a control that does not exist, 6", 0 },
        { "000003ff 00000000", "the peer sent a control that does not exist, 1023", 0 },
        { "00000001 00000400", "the peer closed what it had not opened, connection 1024", 0 },
        { "00000000 00000400 00000400 ffffffff", "the peer sent a message that is too long, bytes 4294967295", 1 },
        { "474554202f20485454502f312e310d0a", "the peer sent on what it had not opened, connection 1195725856", 0 },
        { "16030100", "the peer sent on what it had not opened, connection 369295616", 0 },
    };
    struct script script = open_reachable();
    (void)state;
    int neighbour = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(neighbour, 0, "127.0.0.1:10:0");
    script_expect(neighbour, "00000000");
    script_say(neighbour, "00000000 00000400");
    script_await_only(&script, NT_DELIVERY_OPENED);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        int fd = accepted_peer(&script);
        script_say(fd, faults[i].bytes);
        if (strlen(faults[i].bytes) == 8) {
            script_say(fd, "00000000"); /* of a head that takes 8 bytes */
        }
        for (int j = 0; j < faults[i].opened; j++) {
            script_await_only(&script, NT_DELIVERY_OPENED);
        }
        script_await_loss(&script, faults[i].reason);
        close(fd);
        script_say(neighbour, "00000400 00000002 6f6b");
        script_await_message(&script, "ok");
    }
    close(neighbour);
    script_close(&script);
}

static void test_probes(void **state)
{
    struct script script = open_reachable();
    int fd = accepted_peer(&script);
    nt_address peer = script_text_address(PEER);
    (void)state;
    script_say(fd, "00000005 00000004"); /* an answer that nobody asked for is passed over; a probe is answered */
    script_expect(fd, "00000005");
    assert_int_equal(nt_endpoint_ping(script.endpoint, &peer), 0);
    assert_int_equal(nt_endpoint_ping(script.endpoint, &peer), -EALREADY);
    script_expect(fd, "00000004");
    script_say(fd, "00000005");
    nt_delivery *pinged = script_await(&script, NT_DELIVERY_PINGED);
    assert_true(nt_delivery_code(pinged) > 0);
    nt_delivery_unref(pinged);
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    assert_int_equal(nt_endpoint_ping(script.endpoint, &peer), -ENOENT);
    script_close(&script);
}

/* ---- Closing ---- */

/* Theirs opens again while ours closes: the bundle stays. */
static void test_close_crosses_open(void **state)
{
    uint16_t port;
    int listener = script_listen(&port);
    struct script script = open_reachable();
    nt_connection *connection;
    (void)state;
    connect_without_waiting(&script, port, &connection);
    int fd = script_accept(listener);
    uint8_t greeting[256];
    assert_true(recv(fd, greeting, sizeof greeting, 0) > 16);
    script_say(fd, "00000000");
    script_await_only(&script, NT_DELIVERY_CONNECTED);
    script_expect(fd, "00000000 00000400");
    nt_connection_close(connection);
    nt_connection_unref(connection);
    script_expect(fd, "00000001 00000400 00000002 00000000");
    script_say(fd, "00000000 00000400"); /* sent before they saw that */
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_say(fd, "00000400 00000001 78");
    script_await_message(&script, "x");
    script_say(fd, "00000001 00000400 00000002 00000400");
    script_await_only(&script, NT_DELIVERY_CLOSED);
    script_expect(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    script_close(&script);
    close(listener);
}

/* CloseSocket that names another last connection than ours: we go on, for they will see ours. */
static void test_close_socket_of_another(void **state)
{
    uint16_t port;
    int listener = script_listen(&port);
    struct script script = open_reachable();
    nt_connection *connection;
    (void)state;
    connect_without_waiting(&script, port, &connection);
    int fd = script_accept(listener);
    uint8_t greeting[256];
    assert_true(recv(fd, greeting, sizeof greeting, 0) > 16);
    script_say(fd, "00000000");
    script_await_only(&script, NT_DELIVERY_CONNECTED);
    script_expect(fd, "00000000 00000400");
    script_say(fd, "00000000 00000400 00000002 00000000");
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_await_only(&script, NT_DELIVERY_CLOSED); /* CloseSocket closes what is open from there */
    send_text(connection, "y");
    script_expect(fd, "00000400 00000001 79");
    nt_connection_close(connection);
    nt_connection_unref(connection);
    script_expect(fd, "00000001 00000400 00000002 00000400");
    script_say(fd, "00000002 00000000"); /* not the last one: still closing */
    script_expect_nothing(fd);
    script_say(fd, "00000004");
    script_expect(fd, "00000005"); /* also while closing */
    script_say(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    script_await_nothing(&script);
    script_close(&script);
    close(listener);
}

static void test_close_endpoint(void **state)
{
    struct script script = open_reachable();
    int fd = accepted_peer(&script);
    (void)state;
    script_say(fd, "00000000 00000400 00000000 00000401");
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_say(fd, "00000003 00000400 00000001 61"); /* what is behind it is not looked at */
    script_await_only(&script, NT_DELIVERY_CLOSED);
    script_await_only(&script, NT_DELIVERY_CLOSED);
    script_await_nothing(&script); /* we had nothing open to them */
    close(fd);
    fd = accepted_peer(&script);
    nt_endpoint_close(script.endpoint);
    script_expect(fd, "00000003");
    script_expect_end(fd);
    close(fd);
    script_await_only(&script, NT_DELIVERY_ENDPOINT_CLOSED);
    nt_delivery *none;
    assert_int_equal(nt_endpoint_receive(script.endpoint, -1, &none), -ESHUTDOWN);
    assert_int_equal(nt_endpoint_receive(script.endpoint, -1, &none), -ESHUTDOWN);
    script_close(&script);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_client),
        cmocka_unit_test(test_golden_server),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_close_crosses_open),
        cmocka_unit_test(test_close_socket_of_another),
        cmocka_unit_test(test_close_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
