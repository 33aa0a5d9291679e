/* SPDX-License-Identifier: BSD-3-Clause */
/* Link keys byte by byte, as docs/format.md has them, written down by hand; what has two spellings has one key; what is
   no channel has none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>
#include <nt/link.h>

static const nt_link_host host = {
    { 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf },
    UINT64_C(0x00000000f0000098),
};
#define HOST "b0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
#define NETWORK "00000000f0000098"

union any {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static union any address(const char *text, uint16_t port)
{
    union any made;
    memset(&made, 0, sizeof(made));
    if (inet_pton(AF_INET, text, &made.v4.sin_addr) == 1) {
        made.v4.sin_family = AF_INET;
        made.v4.sin_port = htons(port);
    } else {
        memset(&made, 0, sizeof(made));
        assert_int_equal(inet_pton(AF_INET6, text, &made.v6.sin6_addr), 1);
        made.v6.sin6_family = AF_INET6;
        made.v6.sin6_port = htons(port);
    }
    return made;
}

static void assert_key(const nt_link_key *key, const char *hex)
{
    char text[2 * NT_LAYOUT_LINK_KEY + 1];
    for (size_t i = 0; i < key->size; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", key->bytes[i]);
    text[2 * key->size] = 0;
    assert_string_equal(text, hex);
}

static void tcp(const char *writer, const char *reader, const char *hex)
{
    union any from = address(writer, 0x1234), to = address(reader, 80);
    nt_link_key key;
    assert_int_equal(nt_link_key_tcp(&from.any, &to.any, &host, &key), 0);
    assert_key(&key, hex);
}

static void keys_of_tcp(void **state)
{
    (void)state;
    tcp("192.0.2.1", "198.51.100.7", "0100c00002011234c63364070050");
    tcp("198.51.100.7", "192.0.2.1", "0100c63364071234c00002010050"); /* the other direction */
    tcp("2001:db8::1", "2001:db8::2",
        "0101"
        "20010db8000000000000000000000001"
        "1234"
        "20010db8000000000000000000000002"
        "0050");
    /* IPv4 in an IPv6 socket, at one end or at both */
    tcp("::ffff:192.0.2.1", "198.51.100.7", "0100c00002011234c63364070050");
    tcp("::ffff:192.0.2.1", "::ffff:198.51.100.7", "0100c00002011234c63364070050");
    /* loopback, whichever end it is */
    tcp("127.0.0.1", "127.0.0.1", "01027f00000112347f0000010050" HOST NETWORK);
    tcp("127.1.2.3", "192.0.2.1", "01027f0102031234c00002010050" HOST NETWORK);
    tcp("192.0.2.1", "127.0.0.1", "0102c000020112347f0000010050" HOST NETWORK);
    tcp("::ffff:127.0.0.1", "127.0.0.1", "01027f00000112347f0000010050" HOST NETWORK);
    tcp("::1", "::1",
        "0103"
        "00000000000000000000000000000001"
        "1234"
        "00000000000000000000000000000001"
        "0050" HOST NETWORK);
}

/* The scope is a number of the one host's own. */
static void scopes_are_left_out(void **state)
{
    (void)state;
    union any from = address("fe80::1", 1), to = address("fe80::2", 2), scoped = from;
    nt_link_key key, other;
    scoped.v6.sin6_scope_id = 7;
    scoped.v6.sin6_flowinfo = 9;
    assert_int_equal(nt_link_key_tcp(&from.any, &to.any, NULL, &key), 0);
    assert_int_equal(nt_link_key_tcp(&scoped.any, &to.any, NULL, &other), 0);
    assert_int_equal(key.size, other.size);
    assert_memory_equal(key.bytes, other.bytes, key.size);
}

static void what_is_no_tcp_has_no_key(void **state)
{
    (void)state;
    union any v4 = address("192.0.2.1", 1), v6 = address("2001:db8::1", 2), loopback = address("127.0.0.1", 3);
    union any local = { .local = { .sun_family = AF_UNIX } };
    nt_link_key key = { .size = 77 };
    assert_int_equal(nt_link_key_tcp(&v4.any, &v6.any, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_tcp(&v4.any, &local.any, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_tcp(&v4.any, NULL, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_tcp(NULL, &v4.any, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_tcp(&v4.any, &loopback.any, NULL, &key), -EINVAL);
    assert_int_equal(key.size, 77);
    assert_int_equal(nt_link_key_tcp(&v4.any, &v4.any, NULL, &key), 0);
}

static void keys_of_transports(void **state)
{
    (void)state;
    union any initiator = address("192.0.2.1", 0x1234), acceptor = address("198.51.100.7", 80);
    nt_link_transport transport = { .sender = "h1:1:0", .sender_size = 6, .receiver = "h2:2:0", .receiver_size = 6 };
    nt_link_key key;
    transport.number = UINT64_C(0x0102030405060708);
    /* names only: ports were changed on the way */
    assert_int_equal(nt_link_key_transport(&transport, NULL, &key), 0);
    assert_key(&key, "0208"
                     "000668313a313a30"
                     "000668323a323a30"
                     "0102030405060708");
    /* names and ports */
    transport.initiator = &initiator.any;
    transport.acceptor = &acceptor.any;
    transport.initiator_writes = true;
    assert_int_equal(nt_link_key_transport(&transport, NULL, &key), 0);
    assert_key(&key, "021c"
                     "000668313a313a30"
                     "000668323a323a30"
                     "c00002011234"
                     "c63364070050"
                     "0102030405060708");
    /* ports only: the peer has no address of its own; the other direction */
    transport.sender = transport.receiver = NULL;
    transport.initiator_writes = false;
    assert_int_equal(nt_link_key_transport(&transport, NULL, &key), 0);
    assert_key(&key, "0204"
                     "c00002011234"
                     "c63364070050"
                     "0102030405060708");
    /* loopback, IPv6 */
    initiator = acceptor = address("::1", 9);
    assert_int_equal(nt_link_key_transport(&transport, &host, &key), 0);
    assert_key(&key, "0207"
                     "000000000000000000000000000000010009"
                     "000000000000000000000000000000010009" HOST NETWORK "0102030405060708");
    assert_int_equal(nt_link_key_transport(&transport, NULL, &key), -EINVAL);
}

static void transports_that_say_too_little_or_too_much(void **state)
{
    (void)state;
    static const char name[1025] = { 'x' };
    union any end = address("192.0.2.1", 1);
    nt_link_key key;
    const nt_link_transport nothing = { .number = 1 };
    const nt_link_transport one_name = { .sender = "x", .sender_size = 1 };
    const nt_link_transport one_end = { .initiator = &end.any };
    nt_link_transport names = { .sender = name, .receiver = name, .sender_size = 1024, .receiver_size = 1024 };
    names.initiator = names.acceptor = &end.any;
    assert_int_equal(nt_link_key_transport(&nothing, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_transport(&one_name, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_transport(&one_end, &host, &key), -EINVAL);
    assert_int_equal(nt_link_key_transport(&names, &host, &key), 0);
    assert_int_equal(key.size, 2 + 2 * 1026 + 2 * 6 + 8);
    names.receiver_size = 1025;
    assert_int_equal(nt_link_key_transport(&names, &host, &key), -EINVAL);
}

static void keys_of_other_channels(void **state)
{
    (void)state;
    nt_link_key key;
    assert_int_equal(nt_link_key_unix(&host, 0x1122334455667788, 9, &key), 0);
    assert_key(&key, "03" HOST "11223344556677880000000000000009");
    assert_int_equal(nt_link_key_pipe(&host, makedev(0x12, 0x345), 0x1122334455667788, &key), 0);
    assert_key(&key, "04" HOST "00000012000003451122334455667788");
    assert_int_equal(nt_link_key_memory(0x1122334455667788, 1, UINT64_MAX, &key), 0);
    assert_key(&key, "0511223344556677880000000000000001ffffffffffffffff");
    assert_int_equal(nt_link_key_unix(NULL, 1, 2, &key), -EINVAL);
    assert_int_equal(nt_link_key_pipe(NULL, 1, 2, &key), -EINVAL);
}

/* Both ends of a real connection and a real pipe make the same bytes. */
static void two_ends_agree(void **state)
{
    (void)state;
    nt_link_host here;
    nt_link_key keys[2];
    int ends[2];
    assert_int_equal(nt_link_host_get(&here), 0);
    assert_int_not_equal(here.network, 0);
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 2; i++) {
        struct stat status;
        assert_int_equal(fstat(ends[i], &status), 0);
        assert_int_equal(nt_link_key_pipe(&here, status.st_dev, status.st_ino, &keys[i]), 0);
        close(ends[i]);
    }
    assert_int_equal(keys[0].size, keys[1].size);
    assert_memory_equal(keys[0].bytes, keys[1].bytes, keys[0].size);

    /* one end speaks IPv6 and is told of an IPv4 peer in IPv6's words */
    int listener = socket(AF_INET6, SOCK_STREAM, 0), no = 0;
    union any any = { .v6 = { .sin6_family = AF_INET6 } }, from, to;
    socklen_t size = sizeof(any.v6);
    if (listener < 0) /* no IPv6 on this machine */
        skip();
    assert_int_equal(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)), 0);
    assert_int_equal(bind(listener, &any.any, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, &any.any, &size), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    to = address("127.0.0.1", ntohs(any.v6.sin6_port));
    assert_int_equal(connect(ends[0], &to.any, sizeof(to.v4)), 0);
    ends[1] = accept(listener, NULL, NULL);
    assert_true(ends[1] >= 0);
    for (int i = 0; i < 2; i++) {
        socklen_t from_size = sizeof(from), to_size = sizeof(to);
        assert_int_equal(getsockname(ends[i], &from.any, &from_size), 0);
        assert_int_equal(getpeername(ends[i], &to.any, &to_size), 0);
        const struct sockaddr *writer = i == 0 ? &from.any : &to.any, *reader = i == 0 ? &to.any : &from.any;
        assert_int_equal(nt_link_key_tcp(writer, reader, &here, &keys[i]), 0);
        close(ends[i]);
    }
    close(listener);
    assert_int_equal(keys[0].size, keys[1].size);
    assert_memory_equal(keys[0].bytes, keys[1].bytes, keys[0].size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_tcp),
        cmocka_unit_test(scopes_are_left_out),
        cmocka_unit_test(what_is_no_tcp_has_no_key),
        cmocka_unit_test(keys_of_transports),
        cmocka_unit_test(transports_that_say_too_little_or_too_much),
        cmocka_unit_test(keys_of_other_channels),
        cmocka_unit_test(two_ends_agree),
    };
    return cmocka_run_group_tests_name("log/link", tests, NULL, NULL);
}
