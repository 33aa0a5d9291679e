/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends connect to each other at once, or a peer connects that we have a bundle with: against a peer that is
   scripted byte by byte. Whose request counts is decided by the addresses, bytewise. */
#include "transport/tcp/script.h"

#define LOW "0.0.0.1" /* hosts that are claimed, below and above the scripted peer's */
#define HIGH "9.9.9.9"
#define TIMEOUT_MS 400

/* A peer that listens, and claims the very address that it listens at. */
struct peer {
    int listener;
    char address[64];
};

static struct peer peer_open(void)
{
    struct peer peer;
    uint16_t port;
    peer.listener = script_listen(&port);
    (void)snprintf(peer.address, sizeof peer.address, "127.0.0.1:%u:0", port);
    return peer;
}

static struct script open_as(const char *host)
{
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    options.external_host = host;
    options.connect_timeout_ms = TIMEOUT_MS;
    options.probe_timeout_ms = TIMEOUT_MS;
    return script_open(&options);
}

/* To where it really listens, whatever it claims. */
static int dial_own(const struct script *script)
{
    nt_address own = nt_endpoint_address(script->endpoint);
    char real[64];
    const char *port = memchr(own.bytes, ':', own.size);
    int size = snprintf(real, sizeof real, "127.0.0.1%.*s", (int)(own.size - (size_t)(port - (const char *)own.bytes)),
                        port);
    return script_dial((nt_address){ real, (size_t)size });
}

/* Begins to connect to the peer; what the peer got of it, up to our greeting's end. */
static int connecting(const struct script *script, const struct peer *peer, nt_connection **ret_connection)
{
    nt_address to = script_text_address(peer->address);
    nt_address own = nt_endpoint_address(script->endpoint);
    uint8_t greeting[128];
    size_t got = 0, size = 16 + own.size;
    assert_int_equal(nt_endpoint_connect(script->endpoint, &to, NULL, NT_NONBLOCK, ret_connection), 0);
    int fd = script_accept(peer->listener);
    while (got < size) {
        assert_true(script_readable(fd, SCRIPT_MS));
        ssize_t some = recv(fd, greeting + got, size - got, 0);
        assert_true(some > 0);
        got += (size_t)some;
    }
    assert_memory_equal(greeting + 16, own.bytes, own.size);
    return fd;
}

static void await_connected(const struct script *script, int error)
{
    nt_delivery *delivery = script_await(script, NT_DELIVERY_CONNECTED);
    assert_int_equal(nt_delivery_code(delivery), error);
    nt_delivery_unref(delivery);
}

static void connection_drop(nt_connection *connection)
{
    nt_connection_close(connection);
    nt_connection_unref(connection);
}

static void finish(struct script *script, struct peer *peer)
{
    script_close(script);
    close(peer->listener);
}

/* A request of theirs that is under way while ours waits for its answer. */
static int their_request(const struct script *script, const struct peer *peer)
{
    int fd = dial_own(script);
    script_greet(fd, 0, peer->address);
    return fd;
}

/* ---- Ours is the greater address: theirs waits until ours is answered ---- */

static void test_greater_crossed(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection), theirs = their_request(&script, &peer);
    script_expect_nothing(theirs);
    script_say(ours, "00000002");
    script_expect(theirs, "00000000 00000000 00000400"); /* accepted, and at once our connection */
    script_expect_end(ours);
    await_connected(&script, 0);
    close(ours);
    close(theirs);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

static void test_greater_failed(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection), theirs = their_request(&script, &peer);
    script_expect_nothing(theirs);
    close(ours); /* without an answer */
    script_expect(theirs, "00000000 00000000 00000400");
    await_connected(&script, 0);
    close(theirs);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

static void test_greater_accepted(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection), theirs = their_request(&script, &peer);
    script_expect_nothing(theirs);
    script_say(ours, "00000000");
    script_expect(ours, "00000000 00000400");
    await_connected(&script, 0);
    script_expect_end(theirs);
    close(theirs);
    close(ours);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

/* ---- Ours is the smaller one: theirs is refused at once, and ours goes on ---- */

static void test_smaller(void **state)
{
    struct script script = open_as(LOW);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection), theirs = their_request(&script, &peer);
    script_expect(theirs, "00000002");
    script_expect_end(theirs);
    close(theirs);
    script_say(ours, "00000000");
    script_expect(ours, "00000000 00000400");
    await_connected(&script, 0);
    close(ours);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

/* ---- The answer to ours is "crossed" ---- */

static void test_crossed_then_theirs(void **state)
{
    struct script script = open_as(LOW);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection);
    script_say(ours, "00000002");
    script_expect_end(ours);
    close(ours);
    int theirs = their_request(&script, &peer);
    script_expect(theirs, "00000000 00000000 00000400");
    await_connected(&script, 0);
    close(theirs);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

static void test_crossed_and_nothing(void **state)
{
    struct script script = open_as(LOW);
    struct peer peer = peer_open();
    nt_connection *connection;
    (void)state;
    int ours = connecting(&script, &peer, &connection);
    script_say(ours, "00000002");
    await_connected(&script, -ETIMEDOUT);
    close(ours);
    nt_connection_unref(connection);
    ours = connecting(&script, &peer, &connection); /* the next one begins anew */
    script_say(ours, "00000000");
    await_connected(&script, 0);
    script_expect(ours, "00000000 00000400");
    close(ours);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

/* ---- They ask while there is a bundle ---- */

static int accepted(const struct script *script, const struct peer *peer)
{
    int fd = their_request(script, peer);
    script_expect(fd, "00000000");
    return fd;
}

static void test_valid_and_alive(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    int old = accepted(&script, &peer), fresh = their_request(&script, &peer);
    script_expect(fresh, "00000002");
    script_expect_end(fresh);
    script_expect(old, "00000004");
    script_say(old, "00000005");
    script_say(old, "00000000 00000400");
    script_await_only(&script, NT_DELIVERY_OPENED);
    (void)usleep(2 * TIMEOUT_MS * 1000);
    script_say(old, "00000400 00000001 61"); /* it stays */
    script_await_message(&script, "a");
    close(fresh);
    close(old);
    script_await_loss(&script, "the peer closed the socket");
    finish(&script, &peer);
}

/* Nothing at all is heard of the old one, not even by the system: it is not there any more. */
static void test_valid_and_dead(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    int old = accepted(&script, &peer);
    close(old); /* whether that is seen first, or the request, there is one loss, and then room */
    script_await_loss(&script, "the peer closed the socket");
    int fresh = their_request(&script, &peer);
    script_expect(fresh, "00000000");
    close(fresh);
    script_await_loss(&script, "the peer closed the socket");
    finish(&script, &peer);
}

/* ---- They ask while we close ---- */

/* Ours is open and closed again: CloseSocket was said. */
static int closing(const struct script *script, const struct peer *peer)
{
    nt_connection *connection;
    int fd = connecting(script, peer, &connection);
    script_say(fd, "00000000");
    await_connected(script, 0);
    connection_drop(connection);
    script_expect(fd, "00000000 00000400 00000001 00000400 00000002 00000000");
    return fd;
}

static void test_closing_settled(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    int old = closing(&script, &peer), fresh = their_request(&script, &peer);
    script_expect_nothing(fresh);
    script_say(old, "00000002 00000400");
    script_expect(fresh, "00000000"); /* accepted once the old one is settled */
    script_expect_end(old);
    close(old);
    close(fresh);
    script_await_loss(&script, "the peer closed the socket");
    finish(&script, &peer);
}

static void test_closing_valid_again(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    int old = closing(&script, &peer), fresh = their_request(&script, &peer);
    script_expect_nothing(fresh);
    script_say(old, "00000000 00000400"); /* crossed our CloseSocket */
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_expect(fresh, "00000002");
    script_expect_end(fresh);
    close(fresh);
    close(old);
    script_await_loss(&script, "the peer closed the socket");
    finish(&script, &peer);
}

/* A connect waits for what becomes of a bundle that closes. */
static void test_connect_while_closing(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    nt_address to = script_text_address(peer.address);
    nt_connection *connection;
    (void)state;
    int old = closing(&script, &peer);
    assert_int_equal(nt_endpoint_connect(script.endpoint, &to, NULL, NT_NONBLOCK, &connection), 0);
    script_expect_nothing(old);
    script_say(old, "00000000 00000400"); /* it is valid again: over it */
    script_await_only(&script, NT_DELIVERY_OPENED);
    script_expect(old, "00000000 00000401");
    await_connected(&script, 0);
    close(old);
    script_await_loss(&script, "the peer closed the socket");
    connection_drop(connection);
    finish(&script, &peer);
}

/* ---- Other answers, other versions ---- */

static void test_refusals(void **state)
{
    static const struct {
        const char *answer;
        int error;
    } answers[] = {
        { "00000001", -ENOENT },
        { "00000003 00000001 61 00000001 62 00000000", -ECONNREFUSED },
        { "ffffffff 00000000", -ECONNREFUSED },
        { "00000007", -ECONNREFUSED },
    };
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        nt_connection *connection;
        int fd = connecting(&script, &peer, &connection);
        script_say(fd, answers[i].answer);
        await_connected(&script, answers[i].error);
        nt_connection_unref(connection);
        close(fd);
    }
    finish(&script, &peer);
}

static void test_another_version_first(void **state)
{
    struct script script = open_as(HIGH);
    struct peer peer = peer_open();
    (void)state;
    int fd = dial_own(&script);
    script_say(fd, "00000007 00000003 010203"); /* what version 7 has to say is passed over */
    script_expect(fd, "ffffffff 00000000");
    script_greet(fd, 0, peer.address);
    script_expect(fd, "00000000");
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    finish(&script, &peer);
}

/* It has no address: it gets one here, and can be connected to while its socket lives. */
static void test_unaddressable(void **state)
{
    struct script script = open_as(HIGH);
    nt_connection *back;
    (void)state;
    int fd = dial_own(&script);
    script_greet(fd, 0, "");
    script_expect(fd, "00000000");
    script_say(fd, "00000000 00000400");
    nt_delivery *opened = script_await(&script, NT_DELIVERY_OPENED);
    nt_address address = nt_delivery_address(opened);
    assert_int_equal(address.size, 36);
    assert_int_equal(nt_endpoint_connect(script.endpoint, &address, NULL, 0, &back), 0);
    script_expect(fd, "00000000 00000400");
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    nt_connection *again;
    assert_int_equal(nt_endpoint_connect(script.endpoint, &address, NULL, 0, &again), -ECONNREFUSED);
    nt_delivery_unref(opened);
    connection_drop(back);
    script_close(&script);
}

static void test_spellings_are_peers(void **state)
{
    struct script script = open_as(HIGH);
    (void)state;
    int one = dial_own(&script), other = dial_own(&script);
    script_greet(one, 0, "127.0.0.1:9:0");
    script_expect(one, "00000000");
    script_greet(other, 0, "localhost:9:0");
    script_expect(other, "00000000"); /* not crossed */
    close(one);
    script_await_loss(&script, "the peer closed the socket");
    script_say(other, "00000000 00000400");
    script_await_only(&script, NT_DELIVERY_OPENED);
    close(other);
    script_await_loss(&script, "the peer closed the socket");
    script_close(&script);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greater_crossed),       cmocka_unit_test(test_greater_failed),
        cmocka_unit_test(test_greater_accepted),      cmocka_unit_test(test_smaller),
        cmocka_unit_test(test_crossed_then_theirs),   cmocka_unit_test(test_crossed_and_nothing),
        cmocka_unit_test(test_valid_and_alive),       cmocka_unit_test(test_valid_and_dead),
        cmocka_unit_test(test_closing_settled),       cmocka_unit_test(test_closing_valid_again),
        cmocka_unit_test(test_connect_while_closing), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_another_version_first), cmocka_unit_test(test_unaddressable),
        cmocka_unit_test(test_spellings_are_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
