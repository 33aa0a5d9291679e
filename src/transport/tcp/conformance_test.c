/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios of network-transport-tcp's own tests, each under its name, and what belongs to sockets: names, IPv6,
   descriptors that run out. The other end is scripted where it must misbehave. What means something else here:

   scenario              why
   InvalidConnect        the malformed address is closed without an answer, as there; our own connects never send one
   UnnecessaryConnect    disabled there for a race: here all but the first are answered Crossed, always
   CheckPeerHostResolve  names are never looked up while accepting: a claimed name is believed
   UnreachableConnect    where 128.0.0.1 answers nothing it takes the timeout, where it is refused it is not found */
#include "transport/conformance_test.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/resource.h>

#include "transport/tcp/script.h"
#include "transport/tcp/wire.h"

#define PEER "127.0.0.1:9:0"

static nt_transport *open_at(const char *host, const char *external_host, uint32_t flags)
{
    nt_transport_options options = options_of("tcp");
    options.host = host;
    options.external_host = external_host;
    options.flags = flags;
    options.connect_timeout_ms = 5000;
    return transport_at(&options);
}

static void close_all(nt_transport *transport)
{
    nt_transport_close(transport);
    nt_transport_unref(transport);
}

static nt_address to_port(char text[64], uint16_t port)
{
    (void)snprintf(text, 64, "127.0.0.1:%u:0", port);
    return address_of(text);
}

/* A scripted peer that was accepted. */
static int peer_of(const nt_endpoint *endpoint, const char *name)
{
    int fd = script_dial(nt_endpoint_address(endpoint));
    script_greet(fd, 0, name);
    script_expect(fd, "00000000");
    return fd;
}

static void random_port(void **state)
{
    nt_transport *one = open_at(NULL, NULL, 0), *two = open_at(NULL, NULL, 0);
    nt_endpoint *a = endpoint_in(one), *b = endpoint_in(two);
    (void)state;
    must(nt_endpoint_address(a).size != nt_endpoint_address(b).size ||
         memcmp(nt_endpoint_address(a).bytes, nt_endpoint_address(b).bytes, nt_endpoint_address(a).size) != 0);
    drop(connect_to(a, b));
    expect(b, NT_DELIVERY_OPENED);
    nt_endpoint_unref(a);
    nt_endpoint_unref(b);
    close_all(one);
    close_all(two);
}

/* Gone with connections open, both ways; then the peer can come again. */
static void early_disconnect(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = peer_of(endpoint, PEER);
        script_say(fd, "00000000 00000400");
        expect(endpoint, NT_DELIVERY_OPENED);
        nt_connection *back = NULL;
        must(try_connect(endpoint, address_of(PEER), 0, &back) == 0);
        script_expect(fd, "00000000 00000400");
        close(fd);
        must(strcmp(expect_lost(endpoint).address, PEER) == 0);
        must(send_text(back, "lost") == -ECONNRESET);
        drop(back);
    }
    expect_nothing(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* Orderly, though connections are open: they are closed. */
static void early_close_socket(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int fd = peer_of(endpoint, PEER);
    script_say(fd, "00000000 00000400 00000002 00000000");
    expect(endpoint, NT_DELIVERY_OPENED);
    expect(endpoint, NT_DELIVERY_CLOSED);
    script_expect(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    expect_nothing(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* We said CloseSocket. */
static int closing_peer(nt_endpoint *endpoint, int listener, nt_address to)
{
    nt_connection *connection = NULL;
    must(nt_endpoint_connect(endpoint, &to, NULL, NT_NONBLOCK, &connection) == 0);
    int fd = script_accept(listener);
    uint8_t greeting[16];
    must(recv(fd, greeting, 16, MSG_WAITALL) == 16);
    for (uint32_t i = wire_get(greeting + 12); i > 0; i--) {
        must(recv(fd, greeting, 1, MSG_WAITALL) == 1);
    }
    script_say(fd, "00000000");
    must(expect(endpoint, NT_DELIVERY_CONNECTED).code == 0);
    script_expect(fd, "00000000 00000400");
    drop(connection);
    script_expect(fd, "00000001 00000400 00000002 00000000");
    return fd;
}

/* Theirs opens crosses our CloseSocket: it is passed over, and the bundle goes on. */
static void ignore_close_socket(void **state)
{
    char text[64];
    uint16_t port;
    int listener = script_listen(&port);
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int fd = closing_peer(endpoint, listener, to_port(text, port));
    nt_connection *waits = NULL;
    nt_address to = address_of(text);
    must(nt_endpoint_connect(endpoint, &to, NULL, NT_NONBLOCK, &waits) == 0);
    script_say(fd, "00000000 00000400 00000400 00000002 6869");
    struct event event = next(endpoint);
    while (event.type != NT_DELIVERY_RECEIVED) { /* opened, and connected */
        event = next(endpoint);
    }
    must(event.size == 2);
    script_expect(fd, "00000000 00000401");
    must(send_text(waits, "on") == 0);
    script_expect(fd, "00000401 00000002 6f6e");
    close(fd);
    close(listener);
    drop(waits);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* No answer to CloseSocket: a connect waits for one, no longer than it may; when it comes, connects go on. */
static void block_after_close_socket(void **state)
{
    char text[64];
    uint16_t port;
    int listener = script_listen(&port);
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int fd = closing_peer(endpoint, listener, to_port(text, port));
    must(connect_error(endpoint, address_of(text), 100) == -ETIMEDOUT);
    must(strcmp(nt_transport_code(NT_CALL_CONNECT, -ETIMEDOUT), "ConnectTimeout") == 0);
    script_expect_nothing(fd);
    script_say(fd, "00000002 00000400");
    script_expect_end(fd);
    close(fd);
    close(closing_peer(endpoint, listener, address_of(text)));
    close(listener);
    endpoint_drop(endpoint);
    close_all(transport);
}

static void invalid_address(void **state)
{
    static const char *const addresses[] = { "InvalidAddress", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:9:x",
                                             "127.0.0.1:9:",   "::",        ":::",          "127.0.0.1:9:4294967296" };
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        must(connect_error(endpoint, address_of(addresses[i]), 0) == -ECONNREFUSED);
    }
    uint16_t port;
    char text[64];
    close(script_listen(&port));
    must(connect_error(endpoint, to_port(text, port), 0) == -ENOENT); /* nobody listens */
    nt_endpoint *other = endpoint_in(transport);
    endpoint_drop(other);
    must(connect_error(endpoint, nt_endpoint_address(endpoint), 0) == 0);
    endpoint_drop(endpoint);
    close_all(transport);
}

static void invalid_connect(void **state)
{
    static const char *const addresses[] = { "InvalidAddress", "127.0.0.1:9:", "::" };
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int fd = script_dial(nt_endpoint_address(endpoint));
        script_greet(fd, 0, addresses[i]);
        script_expect_end(fd);
        close(fd);
    }
    int fd = script_dial(nt_endpoint_address(endpoint));
    script_greet(fd, 7, PEER); /* no such endpoint */
    script_expect(fd, "00000001");
    script_expect_end(fd);
    close(fd);
    expect_nothing(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

static void *many_main(void *arg)
{
    nt_endpoint *server = arg;
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoints[2] = { endpoint_in(transport), endpoint_in(transport) };
    for (int i = 0; i < 2; i++) {
        nt_connection *connection = connect_to(endpoints[i], server);
        must(send_text(connection, "hello") == 0);
        drop(connection);
    }
    close_all(transport);
    nt_endpoint_unref(endpoints[0]);
    nt_endpoint_unref(endpoints[1]);
    return NULL;
}

static void many(void **state)
{
    enum { THREADS = 10 };
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *server = endpoint_in(transport);
    pthread_t threads[THREADS];
    int came = 0;
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = thread_start(many_main, server);
    }
    for (int i = 0; i < 6 * THREADS; i++) { /* opened, a message, closed */
        came += next(server).type == NT_DELIVERY_RECEIVED;
    }
    must(came == 2 * THREADS);
    for (int i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
    }
    endpoint_drop(server);
    close_all(transport);
}

/* Sockets that break in the midst: every endpoint of the transport lives on. */
static void break_transport(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = script_dial(nt_endpoint_address(endpoint));
        struct linger reset = { .l_onoff = 1 };
        if (i % 2 != 0) {
            script_say(fd, "00000000 00000019");
        }
        must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
        close(fd);
    }
    close(peer_of(endpoint, PEER));
    expect_lost(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* Half an end: noticed, and told. */
static void unidirectional_error(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    for (int i = 0; i < 3; i++) { /* by a send, a close, a connect, or before them */
        int fd = peer_of(endpoint, PEER);
        nt_connection *connection = NULL, *other = NULL;
        must(try_connect(endpoint, address_of(PEER), 0, &connection) == 0);
        must(shutdown(fd, SHUT_WR) == 0);
        if (i == 0) {
            while (send_text(connection, "until it is noticed") == 0) {
                (void)receive_for(endpoint, 0).result;
            }
        } else if (i == 1) {
            nt_connection_close(connection);
        } else if (try_connect(endpoint, address_of(PEER), 50, &other) == 0) {
            drop(other);
        }
        if (i > 0) {
            struct event event = receive_for(endpoint, 1000);
            must(event.result != 0 || event.type == NT_DELIVERY_ERROR);
        }
        drop(connection);
        close(fd);
        while (receive_for(endpoint, 20).result == 0) {
        }
    }
    endpoint_drop(endpoint);
    close_all(transport);
}

static void invalid_close_connection(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int fd = peer_of(endpoint, PEER);
    script_say(fd, "00000001 00000400");
    must(strstr(expect_lost(endpoint).bytes, "closed what it had not opened") != NULL);
    script_expect_end(fd);
    close(fd);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* The peer says nothing at all: at any point of its life. */
static void close_silent_peer(void **state)
{
    char text[64];
    uint16_t port;
    int listener = script_listen(&port);
    (void)state;
    for (int i = 0; i < 3; i++) {
        nt_transport *transport = open_at(NULL, NULL, 0);
        nt_endpoint *endpoint = endpoint_in(transport);
        nt_connection *connection = NULL;
        nt_address to = to_port(text, port);
        int fd = -1;
        if (i == 0) { /* never answers the handshake */
            must(nt_endpoint_connect(endpoint, &to, NULL, NT_NONBLOCK, &connection) == 0);
            must(receive_for(endpoint, 20).result == -EAGAIN);
        } else if (i == 1) { /* never answers CloseSocket */
            fd = closing_peer(endpoint, listener, to);
        } else {
            fd = peer_of(endpoint, PEER);
            must(try_connect(endpoint, address_of(PEER), 0, &connection) == 0);
        }
        uint64_t before = clock_ns();
        nt_endpoint_close(endpoint);
        nt_transport_close(transport);
        must(clock_ns() - before < 5 * UINT64_C(1000000000));
        nt_connection_unref(connection);
        nt_endpoint_unref(endpoint);
        nt_transport_unref(transport);
        if (fd >= 0) {
            close(fd);
        } else {
            close(script_accept(listener));
        }
    }
    close(listener);
}

static void check_peer_host(void **state)
{
    static const struct {
        const char *claims;
        int error;
    } cases[] = { { "128.0.0.1", -ECONNREFUSED }, { "127.0.0.1", 0 }, { "localhost", 0 } };
    nt_transport *server = open_at(NULL, NULL, NT_TRANSPORT_CHECK_HOST);
    nt_endpoint *b = endpoint_in(server);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nt_transport *client = open_at(NULL, cases[i].claims, 0);
        nt_endpoint *a = endpoint_in(client);
        must(connect_error(a, nt_endpoint_address(b), 0) == cases[i].error);
        nt_endpoint_unref(a);
        close_all(client);
    }
    endpoint_drop(b);
    close_all(server);
}

static void unreachable_self_connect(void **state)
{
    nt_transport *transport = open_at(NULL, "128.0.0.1", 0);
    nt_endpoint *self = endpoint_in(transport);
    (void)state;
    nt_connection *connection = connect_to(self, self);
    expect(self, NT_DELIVERY_OPENED);
    must(send_text(connection, "no socket") == 0);
    expect_text(self, "no socket");
    drop(connection);
    endpoint_drop(self);
    close_all(transport);
}

static void unreachable_connect(void **state)
{
    nt_transport *transport = open_at(NULL, "128.0.0.1", 0);
    nt_endpoint *a = endpoint_in(transport), *b = endpoint_in(transport);
    (void)state;
    int error = connect_error(a, nt_endpoint_address(b), 200);
    must(error == -ENOENT || error == -ETIMEDOUT || error == -ECONNREFUSED);
    endpoint_drop(a);
    endpoint_drop(b);
    close_all(transport);
}

static void unnecessary_connect(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int first = peer_of(endpoint, PEER);
    for (int i = 0; i < 10; i++) {
        int fd = script_dial(nt_endpoint_address(endpoint));
        script_greet(fd, 0, PEER);
        script_expect(fd, "00000002");
        script_expect_end(fd);
        close(fd);
    }
    script_expect(first, "00000004");
    script_say(first, "00000005 00000000 00000400 00000400 00000002 6869");
    expect(endpoint, NT_DELIVERY_OPENED);
    expect_text(endpoint, "hi");
    close(first);
    expect_lost(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* ---- Sockets ---- */

static void ipv6(void **state)
{
    nt_transport *transport = NULL;
    nt_transport_options options = options_of("tcp");
    options.host = "::1";
    (void)state;
    int error = nt_transport_open(&options, &transport);
    if (error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT || error == -ENOENT) {
        skip(); /* this system has no IPv6 */
    }
    must(error == 0);
    nt_transport *other = transport_at(&options);
    nt_endpoint *a = endpoint_in(transport), *b = endpoint_in(other);
    nt_connection *connection = connect_to(a, b);
    expect(b, NT_DELIVERY_OPENED);
    must(send_text(connection, "six") == 0);
    expect_text(b, "six");
    drop(connection);
    nt_endpoint_unref(a);
    nt_endpoint_unref(b);
    close_all(transport);
    close_all(other);
}

/* A bare system may know no names at all. */
static const char *local_name(void)
{
    struct addrinfo *found;
    if (getaddrinfo("localhost", NULL, NULL, &found) != 0) {
        return "127.0.0.1";
    }
    freeaddrinfo(found);
    return "localhost";
}

/* Names are looked up aside: meanwhile the others go on. */
static void names(void **state)
{
    nt_transport *transport = open_at(local_name(), NULL, 0), *client = open_at(NULL, NULL, 0);
    nt_endpoint *server = endpoint_in(transport), *a = endpoint_in(client);
    nt_connection *none = NULL;
    (void)state;
    nt_address unknown = address_of("no-such-host.invalid:80:0");
    must(nt_endpoint_connect(a, &unknown, NULL, NT_NONBLOCK, &none) == 0);
    nt_connection *connection = connect_to(a, server);
    expect(server, NT_DELIVERY_OPENED);
    must(send_text(connection, "goes on") == 0);
    expect_text(server, "goes on");
    struct event event = expect(a, NT_DELIVERY_CONNECTED);
    must(event.code == -ENOENT || event.code == -ETIMEDOUT);
    drop(none);
    drop(connection);
    endpoint_drop(a);
    endpoint_drop(server);
    close_all(client);
    close_all(transport);
}

/* Lets so many descriptors more be opened. Returns the limit before. */
static struct rlimit leave_descriptors(int more)
{
    struct rlimit before = { 0 }, low;
    int next_one = dup(0);
    must(next_one >= 0 && close(next_one) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    low = before;
    low.rlim_cur = (rlim_t)(next_one + more);
    must(setrlimit(RLIMIT_NOFILE, &low) == 0);
    return before;
}

/* What failed closes nothing that is not its own. */
static void no_descriptors(void **state)
{
    (void)state;
    for (int more = 0; more < 4; more++) {
        nt_transport_options options = options_of("tcp");
        nt_transport *none = NULL;
        struct rlimit before = leave_descriptors(more);
        must(nt_transport_open(&options, &none) < 0 && none == NULL);
        must(setrlimit(RLIMIT_NOFILE, &before) == 0);
        must(fcntl(0, F_GETFD) >= 0);
    }
}

static uint64_t cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

/* None is left for a socket that comes: it waits without being asked for all the time, and is accepted later. */
static void accept_backs_off(void **state)
{
    nt_transport *transport = open_at(NULL, NULL, 0);
    nt_endpoint *endpoint = endpoint_in(transport);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    unsigned port;
    (void)state;
    must(sscanf(nt_endpoint_address(endpoint).bytes, "127.0.0.1:%u:", &port) == 1);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0);
    struct rlimit before = leave_descriptors(0);
    must(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    script_greet(fd, 0, PEER);
    uint64_t since = cpu_ns();
    must(receive_for(endpoint, 300).result == -EAGAIN);
    must(cpu_ns() - since < 150 * UINT64_C(1000000));
    must(!script_readable(fd, 0));
    must(setrlimit(RLIMIT_NOFILE, &before) == 0);
    script_expect(fd, "00000000");
    close(fd);
    endpoint_drop(endpoint);
    close_all(transport);
}

/* A length is looked at before a byte of it is read. */
static void max_length(void **state)
{
    nt_transport_options options = options_of("tcp");
    options.max_message = 5;
    options.max_address = 40;
    nt_transport *transport = transport_at(&options);
    nt_endpoint *endpoint = endpoint_in(transport);
    (void)state;
    int fd = peer_of(endpoint, PEER);
    script_say(fd, "00000000 00000400 00000400 00000005 6161616161 00000400 ffffffff");
    expect(endpoint, NT_DELIVERY_OPENED);
    expect_text(endpoint, "aaaaa");
    must(strstr(expect_lost(endpoint).bytes, "too long, bytes 4294967295") != NULL);
    script_expect_end(fd);
    close(fd);
    fd = script_dial(nt_endpoint_address(endpoint));
    script_say(fd, "00000000 ffffffff 00000000 00000029");
    script_expect_end(fd);
    close(fd);
    expect_nothing(endpoint);
    endpoint_drop(endpoint);
    close_all(transport);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_TCP(random_port, "RandomPort"),
        TEST_TCP(early_disconnect, "EarlyDisconnect, Reconnect"),
        TEST_TCP(early_close_socket, "EarlyCloseSocket"),
        TEST_TCP(ignore_close_socket, "IgnoreCloseSocket"),
        TEST_TCP(block_after_close_socket, "BlockAfterCloseSocket"),
        TEST_TCP(invalid_address, "InvalidAddress"),
        TEST_TCP(invalid_connect, "InvalidConnect"),
        TEST_TCP(many, "Many"),
        TEST_TCP(break_transport, "BreakTransport"),
        TEST_TCP(unidirectional_error, "UnidirectionalError"),
        TEST_TCP(invalid_close_connection, "InvalidCloseConnection"),
        TEST_TCP(max_length, "MaxLength"),
        TEST_TCP(close_silent_peer, "CloseEndPoint, the peer is silent"),
        TEST_TCP(check_peer_host, "CheckPeerHostReject, CheckPeerHostResolve"),
        TEST_TCP(unreachable_self_connect, "UnreachableSelfConnect"),
        TEST_TCP(unreachable_connect, "UnreachableConnect"),
        TEST_TCP(unnecessary_connect, "UnnecessaryConnect"),
        TEST_TCP(ipv6, "IPv6"),
        TEST_TCP(names, "names"),
        TEST_TCP(no_descriptors, "no descriptors for a transport"),
        TEST_TCP(accept_backs_off, "no descriptors to accept"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
