/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends connect at once: all that a scripted peer may do then, byte by byte; and answers that refuse. Addresses are
   compared bytewise: the host that we claim makes ours the greater or the smaller one. */
#include <errno.h>

#include "transport/tcp/script.h"

struct crossing {
    struct script script;
    int listener; /* the peer's */
    char peer[64];
    char own[64]; /* where it really listens: the peer's socket goes there */
};

static struct crossing crossing_open(bool greater, uint32_t connect_ms, uint32_t probe_ms)
{
    struct crossing crossing;
    uint16_t port, own;
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    char text[16];
    close(script_listen(&own)); /* one that is free */
    (void)snprintf(text, sizeof text, "%u", own);
    options.port = text;
    options.external_host = greater ? "z" : "0";
    options.connect_timeout_ms = connect_ms;
    options.probe_timeout_ms = probe_ms;
    crossing.listener = script_listen(&port);
    (void)snprintf(crossing.peer, sizeof crossing.peer, "127.0.0.1:%u:0", port);
    (void)snprintf(crossing.own, sizeof crossing.own, "127.0.0.1:%u:0", own);
    crossing.script = script_open(&options);
    return crossing;
}

static void crossing_close(struct crossing *crossing)
{
    script_close(&crossing->script);
    close(crossing->listener);
}

static nt_connection *connect_begin(const struct crossing *crossing)
{
    nt_connection *connection = NULL;
    nt_address address = script_text_address(crossing->peer);
    assert_int_equal(nt_endpoint_connect(crossing->script.endpoint, &address, NULL, NT_NONBLOCK, &connection), 0);
    return connection;
}

static void drop(nt_connection *connection)
{
    nt_connection_close(connection);
    nt_connection_unref(connection);
}

/* Our greeting came to the peer, whole. */
static int accept_greeting(const struct crossing *crossing)
{
    nt_address own = nt_endpoint_address(crossing->script.endpoint);
    uint8_t greeting[256];
    size_t have = 0;
    int fd = script_accept(crossing->listener);
    while (have < 16 + own.size) {
        assert_true(script_readable(fd, SCRIPT_MS));
        ssize_t got = recv(fd, greeting + have, 16 + own.size - have, 0);
        assert_true(got > 0);
        have += (size_t)got;
    }
    assert_memory_equal(greeting + 16, own.bytes, own.size);
    return fd;
}

/* The peer's request. */
static int request(const struct crossing *crossing)
{
    int fd = script_dial(script_text_address(crossing->own));
    script_greet(fd, 0, crossing->peer);
    return fd;
}

static void await_connected(const struct crossing *crossing, int64_t code)
{
    nt_delivery *delivery = script_await(&crossing->script, NT_DELIVERY_CONNECTED);
    assert_int_equal(nt_delivery_code(delivery), code);
    nt_delivery_unref(delivery);
}

/* The bundle carries a message to us and one to them. */
static void exchange(const struct crossing *crossing, int fd, nt_connection *connection)
{
    struct iovec part = { (void *)(uintptr_t) "y", 1 };
    script_say(fd, "00000000 00000400 00000400 00000001 78");
    script_await_only(&crossing->script, NT_DELIVERY_OPENED);
    script_await_message(&crossing->script, "x");
    assert_int_equal(nt_connection_send(connection, &part, 1, 0), 0);
    script_expect(fd, "00000400 00000001 79");
}

/* A bundle that is up, our connection 1024 open. */
static int bundle_up(const struct crossing *crossing, nt_connection **ret_connection)
{
    *ret_connection = connect_begin(crossing);
    int fd = accept_greeting(crossing);
    script_say(fd, "00000000");
    await_connected(crossing, 0);
    script_expect(fd, "00000000 00000400");
    return fd;
}

/* ---- Ours is under way ---- */

static void test_greater_ours_crossed(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    (void)state;
    nt_connection *connection = connect_begin(&crossing);
    int ours = accept_greeting(&crossing), theirs = request(&crossing);
    script_expect_nothing(theirs); /* parked */
    script_say(ours, "00000002");
    script_expect(theirs, "00000000 00000000 00000400");
    script_expect_end(ours);
    await_connected(&crossing, 0);
    exchange(&crossing, theirs, connection);
    nt_connection_unref(connection);
    close(ours);
    close(theirs);
    script_await_loss(&crossing.script, "the peer closed the socket");
    crossing_close(&crossing);
}

static void test_greater_ours_failed(void **state)
{
    static const char *const failures[] = { "", "00000001", "00000003 00000000 00000000 00000000", "ffffffff 00000001",
                                            "00000007" };
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        struct crossing crossing = crossing_open(true, 0, 0);
        nt_connection *connection = connect_begin(&crossing);
        int ours = accept_greeting(&crossing), theirs = request(&crossing);
        script_expect_nothing(theirs);
        script_say(ours, failures[i]);
        close(ours);
        script_expect(theirs, "00000000 00000000 00000400");
        await_connected(&crossing, 0);
        exchange(&crossing, theirs, connection);
        nt_connection_unref(connection);
        close(theirs);
        crossing_close(&crossing);
    }
}

static void test_greater_ours_accepted(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    (void)state;
    nt_connection *connection = connect_begin(&crossing);
    int ours = accept_greeting(&crossing), theirs = request(&crossing);
    script_expect_nothing(theirs);
    script_say(ours, "00000000");
    script_expect(ours, "00000000 00000400");
    script_expect_end(theirs); /* without an answer */
    await_connected(&crossing, 0);
    exchange(&crossing, ours, connection);
    nt_connection_unref(connection);
    close(ours);
    close(theirs);
    crossing_close(&crossing);
}

/* They ask again while the first request is parked: that one is given up. */
static void test_greater_asked_twice(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    (void)state;
    nt_connection *connection = connect_begin(&crossing);
    int ours = accept_greeting(&crossing), first = request(&crossing);
    script_expect_nothing(first);
    int second = request(&crossing);
    script_expect_end(first);
    script_expect_nothing(second);
    script_say(ours, "00000002");
    script_expect(second, "00000000 00000000 00000400");
    await_connected(&crossing, 0);
    exchange(&crossing, second, connection);
    nt_connection_unref(connection);
    close(ours);
    close(first);
    close(second);
    crossing_close(&crossing);
}

static void test_smaller(void **state)
{
    struct crossing crossing = crossing_open(false, 0, 0);
    (void)state;
    nt_connection *connection = connect_begin(&crossing);
    int ours = accept_greeting(&crossing), theirs = request(&crossing);
    script_expect(theirs, "00000002"); /* at once */
    script_expect_end(theirs);
    script_say(ours, "00000000");
    script_expect(ours, "00000000 00000400");
    await_connected(&crossing, 0);
    exchange(&crossing, ours, connection);
    nt_connection_unref(connection);
    close(ours);
    close(theirs);
    crossing_close(&crossing);
}

/* "Crossed", then theirs comes. */
static void test_crossed_then_theirs(void **state)
{
    (void)state;
    for (int greater = 0; greater < 2; greater++) {
        struct crossing crossing = crossing_open(greater, 0, 0);
        nt_connection *connection = connect_begin(&crossing);
        int ours = accept_greeting(&crossing);
        script_say(ours, "00000002");
        script_expect_end(ours);
        script_await_nothing(&crossing.script);
        int theirs = request(&crossing);
        script_expect(theirs, "00000000 00000000 00000400");
        await_connected(&crossing, 0);
        exchange(&crossing, theirs, connection);
        nt_connection_unref(connection);
        close(ours);
        close(theirs);
        crossing_close(&crossing);
    }
}

/* "Crossed", and theirs never comes: the time ends it, and the next connect begins anew. */
static void test_crossed_alone(void **state)
{
    struct crossing crossing = crossing_open(true, 200, 0);
    (void)state;
    nt_connection *connection = connect_begin(&crossing);
    int fd = accept_greeting(&crossing);
    script_say(fd, "00000002");
    await_connected(&crossing, -ETIMEDOUT);
    script_expect_end(fd);
    close(fd);
    drop(connection);
    fd = bundle_up(&crossing, &connection);
    exchange(&crossing, fd, connection);
    nt_connection_unref(connection);
    close(fd);
    crossing_close(&crossing);
}

/* ---- There is a bundle ---- */

static void test_valid_alive(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    nt_connection *connection;
    (void)state;
    int old = bundle_up(&crossing, &connection), new = request(&crossing);
    script_expect(new, "00000002");
    script_expect_end(new);
    script_expect(old, "00000004");
    script_say(old, "00000005");
    exchange(&crossing, old, connection); /* and no PINGED: nobody asked */
    nt_connection_unref(connection);
    close(old);
    close(new);
    crossing_close(&crossing);
}

static void test_valid_dead(void **state)
{
    struct crossing crossing = crossing_open(false, 0, 100);
    nt_connection *connection;
    struct iovec part = { (void *)(uintptr_t) "y", 1 };
    (void)state;
    int old = bundle_up(&crossing, &connection), new = request(&crossing);
    script_expect(new, "00000002");
    script_expect_end(new);
    script_expect(old, "00000004");
    script_await_loss(&crossing.script, "a probe was not answered in time");
    assert_int_equal(nt_connection_send(connection, &part, 1, 0), -ECONNRESET);
    script_expect_end(old);
    close(new);
    close(old);
    drop(connection);
    new = request(&crossing);
    script_expect(new, "00000000");
    script_say(new, "00000000 00000400");
    script_await_only(&crossing.script, NT_DELIVERY_OPENED);
    close(new);
    crossing_close(&crossing);
}

/* ---- It is closing ---- */

static int closing_parked(struct crossing *crossing, int *ret_theirs)
{
    nt_connection *connection;
    int old = bundle_up(crossing, &connection);
    drop(connection);
    script_expect(old, "00000001 00000400 00000002 00000000");
    *ret_theirs = request(crossing);
    script_expect_nothing(*ret_theirs); /* parked */
    return old;
}

static void test_closing_closed(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    int theirs, old = closing_parked(&crossing, &theirs);
    (void)state;
    script_say(old, "00000002 00000400");
    script_expect_end(old);
    script_expect(theirs, "00000000");
    script_say(theirs, "00000000 00000400 00000400 00000001 78");
    script_await_only(&crossing.script, NT_DELIVERY_OPENED);
    script_await_message(&crossing.script, "x");
    close(old);
    close(theirs);
    crossing_close(&crossing);
}

/* A connect that waits goes over theirs. */
static void test_closing_closed_connect(void **state)
{
    struct crossing crossing = crossing_open(false, 0, 0);
    int theirs, old = closing_parked(&crossing, &theirs);
    nt_connection *connection = connect_begin(&crossing);
    (void)state;
    script_await_nothing(&crossing.script);
    script_say(old, "00000002 00000400");
    script_expect(theirs, "00000000 00000000 00000400");
    await_connected(&crossing, 0);
    exchange(&crossing, theirs, connection);
    nt_connection_unref(connection);
    close(old);
    close(theirs);
    crossing_close(&crossing);
}

static void test_closing_lost(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    int theirs, old = closing_parked(&crossing, &theirs);
    (void)state;
    close(old);
    script_expect(theirs, "00000000");
    script_await_nothing(&crossing.script); /* nothing was open: nothing is lost */
    close(theirs);
    crossing_close(&crossing);
}

static void test_closing_valid(void **state)
{
    struct crossing crossing = crossing_open(true, 0, 0);
    int theirs, old = closing_parked(&crossing, &theirs);
    nt_connection *connection = connect_begin(&crossing);
    (void)state;
    script_expect_nothing(old);
    script_say(old, "00000000 00000400"); /* sent before they saw CloseSocket */
    script_expect(theirs, "00000002");
    script_expect_end(theirs);
    script_expect(old, "00000000 00000401"); /* what waited */
    script_await_only(&crossing.script, NT_DELIVERY_OPENED);
    await_connected(&crossing, 0);
    script_say(old, "00000400 00000001 78");
    script_await_message(&crossing.script, "x");
    nt_connection_unref(connection);
    close(old);
    close(theirs);
    crossing_close(&crossing);
}

/* Nobody answers CloseSocket: what waits for that goes on all the same. */
static void test_closing_silent(void **state)
{
    (void)state;
    for (int parked = 0; parked < 2; parked++) {
        struct crossing crossing = crossing_open(true, 1000, 200);
        int theirs = -1, old, new;
        nt_connection *connection;
        if (parked) {
            old = closing_parked(&crossing, &theirs);
        } else {
            old = bundle_up(&crossing, &connection);
            drop(connection);
            script_expect(old, "00000001 00000400 00000002 00000000");
        }
        connection = connect_begin(&crossing);
        if (parked) {
            script_expect(theirs, "00000000 00000000 00000400");
            new = theirs;
        } else {
            new = accept_greeting(&crossing);
            script_say(new, "00000000");
            script_expect(new, "00000000 00000400");
        }
        await_connected(&crossing, 0);
        script_expect_end(old);
        exchange(&crossing, new, connection);
        nt_connection_unref(connection);
        close(old);
        close(new);
        crossing_close(&crossing);
    }
}

/* ---- Answers that refuse ---- */

static void test_answers(void **state)
{
    static const struct {
        const char *bytes;
        int64_t code;
    } answers[] = {
        { "00000001", -ENOENT },       { "00000003 00000001 31 00000001 32 00000001 33", -ECONNREFUSED },
        { "00000004", -ECONNREFUSED }, { "00000400", -ECONNREFUSED },
        { "fffffffe", -ECONNREFUSED }, { "ffffffff 00000007", -ECONNREFUSED },
        { "0000", -ECONNREFUSED }, /* and the end */
    };
    (void)state;
    struct crossing crossing = crossing_open(true, 0, 0);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        nt_connection *connection = connect_begin(&crossing);
        int fd = accept_greeting(&crossing);
        script_say(fd, answers[i].bytes);
        (void)shutdown(fd, SHUT_WR);
        await_connected(&crossing, answers[i].code);
        close(fd);
        drop(connection);
    }
    script_await_nothing(&crossing.script);
    crossing_close(&crossing);
}

static void test_host_mismatch(void **state)
{
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    (void)state;
    options.flags = NT_TRANSPORT_CHECK_HOST;
    struct script script = script_open(&options);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(fd, 0, "10.0.0.1:9:0");
    script_expect(fd, "00000003 00000008 31302e302e302e31 00000009 3132372e302e302e31 00000009 3132372e302e302e31");
    script_expect_end(fd);
    close(fd);
    fd = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(fd, 0, "127.0.0.1:9:0");
    script_expect(fd, "00000000");
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    script_close(&script);
}

/* Another version first: ours is said, the rest is passed over, and ours is taken on the same socket. */
static void test_versions(void **state)
{
    struct script script = script_open(NULL);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    (void)state;
    script_say(fd, "00000007 00000003 aabb");
    script_expect(fd, "ffffffff 00000000");
    script_say(fd, "cc");
    script_greet(fd, 0, "127.0.0.1:9:0");
    script_expect(fd, "00000000");
    script_say(fd, "00000000 00000400");
    script_await_only(&script, NT_DELIVERY_OPENED);
    close(fd);
    script_close(&script);
}

/* ---- Names of peers ---- */

/* A peer without an address gets a name; it can be connected to while its socket lives, and not behind that. */
static void test_unaddressable(void **state)
{
    struct script script = script_open(NULL);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    nt_connection *back, *none = NULL;
    char name[37];
    (void)state;
    script_greet(fd, 0, "");
    script_expect(fd, "00000000");
    script_say(fd, "00000000 00000400");
    nt_delivery *opened = script_await(&script, NT_DELIVERY_OPENED);
    nt_address address = nt_delivery_address(opened);
    assert_int_equal(address.size, 36);
    memcpy(name, address.bytes, 36);
    name[36] = 0;
    assert_int_equal(name[14], '4'); /* random */
    assert_int_equal(strspn(name, "0123456789abcdef-"), 36);
    nt_delivery_unref(opened);
    address = script_text_address(name);
    assert_int_equal(nt_endpoint_connect(script.endpoint, &address, NULL, 0, &back), 0);
    script_expect(fd, "00000000 00000400");
    close(fd);
    script_await_loss(&script, "the peer closed the socket");
    assert_int_equal(nt_endpoint_connect(script.endpoint, &address, NULL, 0, &none), -ECONNREFUSED);
    nt_connection_unref(back);
    script_close(&script);
}

/* Two spellings of one host are two peers: each has its bundle, and is lost for itself. */
static void test_two_spellings(void **state)
{
    static const char *const names[] = { "localhost:9:0", "127.0.0.1:9:0" };
    struct script script = script_open(NULL);
    int fds[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        fds[i] = script_dial(nt_endpoint_address(script.endpoint));
        script_greet(fds[i], 0, names[i]);
        script_expect(fds[i], "00000000"); /* not crossed */
        script_say(fds[i], "00000000 00000400");
        nt_delivery *opened = script_await(&script, NT_DELIVERY_OPENED);
        nt_address address = nt_delivery_address(opened);
        assert_int_equal(address.size, strlen(names[i]));
        assert_memory_equal(address.bytes, names[i], address.size);
        assert_int_equal(nt_delivery_id(opened), ((uint64_t)i + 1) << 32 | 1024);
        nt_delivery_unref(opened);
    }
    close(fds[0]);
    script_await_loss(&script, "the peer closed the socket");
    script_say(fds[1], "00000400 00000001 78");
    script_await_message(&script, "x");
    close(fds[1]);
    script_close(&script);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greater_ours_crossed),
        cmocka_unit_test(test_greater_ours_failed),
        cmocka_unit_test(test_greater_ours_accepted),
        cmocka_unit_test(test_greater_asked_twice),
        cmocka_unit_test(test_smaller),
        cmocka_unit_test(test_crossed_then_theirs),
        cmocka_unit_test(test_crossed_alone),
        cmocka_unit_test(test_valid_alive),
        cmocka_unit_test(test_valid_dead),
        cmocka_unit_test(test_closing_closed),
        cmocka_unit_test(test_closing_closed_connect),
        cmocka_unit_test(test_closing_lost),
        cmocka_unit_test(test_closing_valid),
        cmocka_unit_test(test_closing_silent),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_host_mismatch),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unaddressable),
        cmocka_unit_test(test_two_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
