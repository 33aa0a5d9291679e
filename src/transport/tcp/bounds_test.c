/* SPDX-License-Identifier: BSD-3-Clause */
/* What is bounded: times, lookups, what waits; and options of other sizes. */
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "transport/tcp/script.h"

/* ---- Names, as slow as the test wants them ---- */

static atomic_uint looking, most_looking, looked;
static atomic_bool slow;

/* In place of the system's: numbers at once; names when they may, and none is known. */
int getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict hints,
                struct addrinfo **restrict ret_found)
{
    struct in_addr number;
    if (inet_pton(AF_INET, host, &number) != 1) {
        if (hints->ai_flags & AI_NUMERICHOST) {
            return EAI_NONAME;
        }
        unsigned now = atomic_fetch_add(&looking, 1) + 1, most = atomic_load(&most_looking);
        while (now > most && !atomic_compare_exchange_weak(&most_looking, &most, now)) {
        }
        while (atomic_load(&slow)) {
            usleep(1000);
        }
        atomic_fetch_sub(&looking, 1);
        atomic_fetch_add(&looked, 1);
        return EAI_NONAME;
    }
    struct {
        struct addrinfo info;
        struct sockaddr_in address;
    } *found = calloc(1, sizeof *found);
    if (found == NULL) {
        return EAI_MEMORY;
    }
    found->address = (struct sockaddr_in){ .sin_family = AF_INET,
                                           .sin_addr = number,
                                           .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
    found->info = (struct addrinfo){ .ai_family = AF_INET,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_addr = (struct sockaddr *)&found->address,
                                     .ai_addrlen = sizeof found->address };
    *ret_found = &found->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *take_found)
{
    free(take_found);
}

static nt_connection *connect_later(const struct script *script, const char *to, uint32_t timeout_ms)
{
    struct nt_connect_options options = NT_CONNECT_OPTIONS_INIT;
    nt_address address = script_text_address(to);
    nt_connection *connection = NULL;
    options.timeout_ms = timeout_ms;
    assert_int_equal(nt_endpoint_connect(script->endpoint, &address, &options, NT_NONBLOCK, &connection), 0);
    return connection;
}

static void await_connected(const struct script *script, int64_t code)
{
    nt_delivery *delivery = script_await(script, NT_DELIVERY_CONNECTED);
    assert_int_equal(nt_delivery_code(delivery), code);
    nt_delivery_unref(delivery);
}

/* More names than threads: the rest wait for their turn, all are looked up, none is forgotten. */
static void test_lookups(void **state)
{
    enum { NAMES = 50, AT_A_TIME = 16 };
    struct script script = script_open(NULL);
    nt_connection *connections[NAMES];
    (void)state;
    atomic_store(&slow, true);
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name%d:1:0", i);
        connections[i] = connect_later(&script, name, 0);
    }
    while (atomic_load(&looking) < AT_A_TIME) {
        usleep(1000);
    }
    script_await_nothing(&script);
    atomic_store(&slow, false);
    for (int i = 0; i < NAMES; i++) {
        await_connected(&script, -ENOENT);
    }
    assert_int_equal(atomic_load(&looked), NAMES);
    assert_int_equal(atomic_load(&most_looking), AT_A_TIME);
    for (int i = 0; i < NAMES; i++) {
        nt_connection_unref(connections[i]);
    }
    script_close(&script);
}

/* Whose time ends while they wait for their turn are not looked up any more. */
static void test_lookups_late(void **state)
{
    enum { NAMES = 20, AT_A_TIME = 16 };
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    (void)state;
    options.connect_timeout_ms = 100;
    struct script script = script_open(&options);
    atomic_store(&looked, 0);
    atomic_store(&slow, true);
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "late%d:1:0", i);
        nt_connection_unref(connect_later(&script, name, 0));
    }
    for (int i = 0; i < NAMES; i++) {
        await_connected(&script, -ETIMEDOUT);
    }
    atomic_store(&slow, false);
    script_close(&script);
    while (atomic_load(&looked) < AT_A_TIME) {
        usleep(1000);
    }
    usleep(50000);
    assert_int_equal(atomic_load(&looked), AT_A_TIME);
}

/* ---- Times ---- */

/* A connect that may take longer than the transport's do. */
static void test_long_connect(void **state)
{
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    uint16_t port;
    char to[64];
    uint8_t greeting[256];
    int listener = script_listen(&port);
    (void)state;
    options.connect_timeout_ms = 100;
    struct script script = script_open(&options);
    (void)snprintf(to, sizeof to, "127.0.0.1:%u:0", port);
    nt_connection *first = connect_later(&script, to, 0), *second = connect_later(&script, to, SCRIPT_MS);
    int fd = script_accept(listener);
    await_connected(&script, -ETIMEDOUT); /* the first */
    script_await_nothing(&script);
    assert_true(recv(fd, greeting, sizeof greeting, 0) > 16);
    script_expect_nothing(fd);
    script_say(fd, "00000000");
    script_expect(fd, "00000000 00000400");
    await_connected(&script, 0);
    nt_connection_unref(first);
    nt_connection_unref(second);
    close(fd);
    close(listener);
    script_close(&script);
}

/* A probe that is put off because the peer lives is measured from its begin. */
static void test_ping_time(void **state)
{
    enum { PROBE_MS = 500, STEP_MS = 50, STEPS = 14 };
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    nt_address peer = script_text_address("127.0.0.1:9:0");
    (void)state;
    options.probe_timeout_ms = PROBE_MS;
    struct script script = script_open(&options);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(fd, 0, "127.0.0.1:9:0");
    script_expect(fd, "00000000");
    assert_int_equal(nt_endpoint_ping(script.endpoint, &peer), 0);
    script_expect(fd, "00000004");
    for (int i = 0; i < STEPS; i++) {
        usleep(STEP_MS * 1000);
        script_say(fd, "00000004");
        script_expect(fd, "00000005");
    }
    script_say(fd, "00000005");
    nt_delivery *pinged = script_await(&script, NT_DELIVERY_PINGED);
    assert_true(nt_delivery_code(pinged) >= INT64_C(1000000) * STEP_MS * STEPS);
    nt_delivery_unref(pinged);
    close(fd);
    script_close(&script);
}

/* ---- What waits ---- */

/* WRITABLE comes when something can be sent, however little may wait. */
static void test_small_quota(void **state)
{
    enum { QUOTA = 16 << 10, BLOCK = 8 << 10 };
    static uint8_t block[BLOCK];
    static uint8_t sink[1 << 20];
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    struct iovec part = { block, sizeof block };
    nt_address peer = script_text_address("127.0.0.1:9:0");
    nt_connection *connection;
    nt_delivery *delivery = NULL;
    (void)state;
    options.max_peer = QUOTA;
    struct script script = script_open(&options);
    int fd = script_dial(nt_endpoint_address(script.endpoint));
    script_greet(fd, 0, "127.0.0.1:9:0");
    script_expect(fd, "00000000");
    assert_int_equal(nt_endpoint_connect(script.endpoint, &peer, NULL, 0, &connection), 0);
    for (int round = 0; round < 5; round++) {
        while (nt_connection_send(connection, &part, 1, NT_NONBLOCK) == 0) {
        }
        while (nt_endpoint_receive(script.endpoint, 0, &delivery) == -EAGAIN) {
            (void)recv(fd, sink, sizeof sink, MSG_DONTWAIT);
        }
        assert_int_equal(nt_delivery_type(delivery), NT_DELIVERY_WRITABLE);
        nt_delivery_unref(delivery);
        assert_int_equal(nt_connection_send(connection, &part, 1, NT_NONBLOCK), 0);
    }
    nt_connection_unref(connection);
    close(fd);
    script_close(&script);
}

/* ---- Long messages of senders that wait ---- */

struct sending {
    nt_connection *connection;
    uint8_t *bytes;
    size_t size;
    int result;
    atomic_bool done;
};

static void *sending_main(void *arg)
{
    struct sending *sending = arg;
    struct iovec parts[] = { { sending->bytes, 3 }, { sending->bytes, 0 }, { sending->bytes + 3, sending->size - 3 } };
    sending->result = nt_connection_send(sending->connection, parts, 3, 0);
    atomic_store(&sending->done, true);
    return NULL;
}

static size_t memory_used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}

static int peer_up(const struct script *script, nt_connection **ret_first, nt_connection **ret_second)
{
    nt_address peer = script_text_address("127.0.0.1:9:0");
    int fd = script_dial(nt_endpoint_address(script->endpoint));
    script_greet(fd, 0, "127.0.0.1:9:0");
    script_expect(fd, "00000000");
    assert_int_equal(nt_endpoint_connect(script->endpoint, &peer, NULL, 0, ret_first), 0);
    assert_int_equal(nt_endpoint_connect(script->endpoint, &peer, NULL, 0, ret_second), 0);
    script_expect(fd, "00000000 00000400 00000000 00000401");
    return fd;
}

/* Nothing of it is copied, and what others send meanwhile comes behind it; those long ones too, in turn. */
static void test_lent(void **state)
{
    enum { SIZE = 0x2000000, OTHERS = 3 };
    struct script script = script_open(NULL);
    struct sending sendings[OTHERS];
    pthread_t threads[OTHERS];
    nt_connection *first, *second;
    int fd = peer_up(&script, &first, &second);
    uint8_t *bytes = malloc(SIZE), *got = malloc(SIZE);
    struct iovec small = { (void *)(uintptr_t) "z", 1 };
    (void)state;
    assert_non_null(bytes);
    assert_non_null(got);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = pattern(i);
    }
    size_t before = memory_used();
    for (int i = 0; i < OTHERS; i++) {
        sendings[i] = (struct sending){ first, bytes, SIZE, 1, false };
        assert_int_equal(pthread_create(&threads[i], NULL, sending_main, &sendings[i]), 0);
    }
    assert_true(script_readable(fd, SCRIPT_MS));
    usleep(50000);
    assert_int_equal(nt_connection_send(second, &small, 1, NT_NONBLOCK), 0);
    assert_true(memory_used() < before + SIZE / 4);
    for (int i = 0; i < OTHERS; i++) {
        assert_false(atomic_load(&sendings[i].done));
    }
    bool seen_small = false;
    for (int i = 0; i < OTHERS; i++) {
        script_expect(fd, "00000400 02000000");
        assert_int_equal(recv(fd, got, SIZE, MSG_WAITALL), SIZE);
        assert_memory_equal(got, bytes, SIZE);
        if (!seen_small) {
            script_expect(fd, "00000401 00000001 7a");
            seen_small = true;
        }
    }
    for (int i = 0; i < OTHERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(sendings[i].result, 0);
    }
    free(bytes);
    free(got);
    nt_connection_unref(first);
    nt_connection_unref(second);
    close(fd);
    script_close(&script);
}

/* The peer goes in the midst of it, or we close: the sender is told, and its memory is its own again. */
static void test_lent_lost(void **state)
{
    enum { SIZE = 0x1000000 };
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
        options.flush_timeout_ms = 50;
        struct script script = script_open(&options);
        pthread_t thread;
        nt_connection *first, *second;
        int fd = peer_up(&script, &first, &second);
        struct sending sending = { first, calloc(1, SIZE), SIZE, 1, false };
        assert_non_null(sending.bytes);
        assert_int_equal(pthread_create(&thread, NULL, sending_main, &sending), 0);
        script_expect(fd, "00000400 01000000 00");
        if (closes) {
            nt_endpoint_close(script.endpoint);
        } else {
            close(fd);
        }
        pthread_join(thread, NULL);
        assert_int_equal(sending.result, -ECONNRESET);
        free(sending.bytes);
        nt_connection_unref(first);
        nt_connection_unref(second);
        if (closes) {
            close(fd);
        }
        script_close(&script);
    }
}

/* As long as a message may be, at $TEST_SCALE 1, comes whole; a byte more is refused before any leaves. */
static void test_longest(void **state)
{
    const char *scale = getenv("TEST_SCALE");
    size_t size = scale != NULL && strcmp(scale, "1") == 0 ? UINT32_MAX : 0x3ffffff;
    struct nt_transport_options options = NT_TRANSPORT_OPTIONS_INIT;
    pthread_t thread;
    const struct iovec *parts;
    nt_connection *connection;
    nt_delivery *delivery = NULL;
    (void)state;
    options.max_message = size;
    options.max_peer = options.max_transport = (uint64_t)size * 2;
    struct script from = script_open(&options), to = script_open(&options);
    nt_address address = nt_endpoint_address(to.endpoint);
    assert_int_equal(nt_endpoint_connect(from.endpoint, &address, NULL, 0, &connection), 0);
    script_await_only(&to, NT_DELIVERY_OPENED);
    struct sending sending = { connection, malloc(size + 1), size, 1, false };
    assert_non_null(sending.bytes);
    for (size_t i = 0; i <= size; i += 4093) {
        sending.bytes[i] = pattern(i);
    }
    struct iovec halves[] = { { sending.bytes, size / 2 + 1 }, { sending.bytes, size - size / 2 } };
    assert_int_equal(nt_connection_send(connection, halves, 2, 0), -EMSGSIZE);
    script_await_nothing(&to);
    sending.bytes[size - 1] = 7;
    assert_int_equal(pthread_create(&thread, NULL, sending_main, &sending), 0);
    assert_int_equal(nt_endpoint_receive(to.endpoint, 120000, &delivery), 0);
    pthread_join(thread, NULL);
    assert_int_equal(sending.result, 0);
    assert_int_equal(nt_delivery_type(delivery), NT_DELIVERY_RECEIVED);
    assert_int_equal(nt_delivery_parts(delivery, &parts), 1);
    assert_int_equal(parts[0].iov_len, size);
    const uint8_t *got = parts[0].iov_base;
    for (size_t i = 0; i < size - 1; i += 4093) {
        assert_int_equal(got[i], pattern(i));
    }
    assert_int_equal(got[size - 1], 7);
    free(sending.bytes);
    nt_delivery_unref(delivery);
    nt_connection_unref(connection);
    script_close(&from);
    script_close(&to);
}

/* ---- Options of other versions ---- */

static void test_options(void **state)
{
    struct {
        nt_transport_options options;
        uint64_t later;
    } longer = { NT_TRANSPORT_OPTIONS_INIT, 0 };
    struct {
        nt_endpoint_options options;
        uint64_t later;
    } endpoint_longer = { NT_ENDPOINT_OPTIONS_INIT, 0 };
    struct {
        nt_connect_options options;
        uint64_t later;
    } connect_longer = { NT_CONNECT_OPTIONS_INIT, 0 };
    nt_transport *transport;
    nt_endpoint *endpoint;
    nt_connection *connection;
    (void)state;
    longer.options.size = endpoint_longer.options.size = connect_longer.options.size = 0;
    assert_int_equal(nt_transport_open(&longer.options, &transport), -EINVAL);
    longer.options.size = sizeof longer;
    longer.later = 1; /* asks for what there is not */
    assert_int_equal(nt_transport_open(&longer.options, &transport), -EINVAL);
    longer.later = 0;
    assert_int_equal(nt_transport_open(&longer.options, &transport), 0);
    assert_int_equal(nt_endpoint_new(transport, &endpoint_longer.options, &endpoint), -EINVAL);
    endpoint_longer.options.size = sizeof endpoint_longer;
    assert_int_equal(nt_endpoint_new(transport, &endpoint_longer.options, &endpoint), 0);
    nt_address own = nt_endpoint_address(endpoint);
    assert_int_equal(nt_endpoint_connect(endpoint, &own, &connect_longer.options, 0, &connection), -EINVAL);
    connect_longer.options.size = sizeof connect_longer;
    connect_longer.later = 1;
    assert_int_equal(nt_endpoint_connect(endpoint, &own, &connect_longer.options, 0, &connection), -EINVAL);
    connect_longer.later = 0;
    assert_int_equal(nt_endpoint_connect(endpoint, &own, &connect_longer.options, 0, &connection), 0);
    nt_connection_unref(connection);
    nt_endpoint_unref(endpoint);
    nt_transport_unref(transport);
}

/* ---- A connection that is asked for its ids while it gets them ---- */

static void *ask_main(void *arg)
{
    const nt_connection *connection = arg;
    while (nt_connection_id(connection) == 0 || nt_connection_bundle(connection) == 0) {
        usleep(100);
    }
    return NULL;
}

static void test_ids(void **state)
{
    uint16_t port;
    char to[64];
    pthread_t thread;
    int listener = script_listen(&port);
    struct script script = script_open(NULL);
    (void)state;
    (void)snprintf(to, sizeof to, "127.0.0.1:%u:0", port);
    nt_connection *connection = connect_later(&script, to, 0);
    int fd = script_accept(listener);
    assert_int_equal(pthread_create(&thread, NULL, ask_main, connection), 0);
    usleep(1000);
    script_say(fd, "00000000");
    await_connected(&script, 0);
    pthread_join(thread, NULL);
    nt_connection_unref(connection);
    close(fd);
    close(listener);
    script_close(&script);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookups),   cmocka_unit_test(test_lookups_late), cmocka_unit_test(test_long_connect),
        cmocka_unit_test(test_ping_time), cmocka_unit_test(test_small_quota),  cmocka_unit_test(test_lent),
        cmocka_unit_test(test_lent_lost), cmocka_unit_test(test_longest),      cmocka_unit_test(test_options),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
