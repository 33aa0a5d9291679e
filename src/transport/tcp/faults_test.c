/* SPDX-License-Identifier: BSD-3-Clause */
/* The golden session, served by us, with a fault at every byte: the peer's socket cut, ours cut while it sends,
   writes that take but some bytes, none, or are interrupted, reads likewise. What the peer gets is always a prefix of
   the golden bytes, all of them if nothing was cut; what was cut is told once, and the next session is whole. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "transport/tcp/script.h"

#define SAYS                                                                                                         \
    "00000000 00000015 00000000 0000000d 3132372e302e302e313a393a30 00000000 00000400 00000400 00000005 6161616161 " \
    "00000400 00000005 6161616161 00000001 00000400 00000002 00000400"
#define HEARS                                                                                                 \
    "00000000 00000000 00000400 00000400 00000005 6161616161 00000400 00000005 6161616161 00000001 00000400 " \
    "00000002 00000400"

/* How many bytes the peer says before it has heard so many. */
static const struct {
    size_t says, hears;
} steps[] = { { 29, 4 }, { 8, 8 }, { 13, 13 }, { 13, 13 }, { 8, 16 }, { 8, 0 } };
enum { STEPS = sizeof steps / sizeof steps[0], SAID = 79, HEARD = 54 };

/* ---- Faults: our calls stand in for the system's, for who is linked with this test ---- */

enum fault { NONE, SHORT, AGAIN, INTERRUPTED, BROKEN };

static struct {
    enum fault fault;
    bool reads;      /* else writes */
    size_t at, done; /* before that byte, of all that go that way */
    bool happened;
} plan;

static pthread_t peer_thread;
static atomic_bool peer_runs;

static bool is_peer(void)
{
    return peer_runs && pthread_equal(pthread_self(), peer_thread);
}

/* Whether the call fails; else how many bytes it may take. */
static bool fails(bool reads, size_t *size)
{
    if (plan.fault == NONE || plan.reads != reads || is_peer() || plan.happened) {
        return false;
    }
    if (plan.fault == SHORT) {
        *size = *size < plan.at ? *size : plan.at;
        return false;
    }
    if (plan.done < plan.at) { /* up to there, so that the next one begins there */
        *size = *size < plan.at - plan.done ? *size : plan.at - plan.done;
        return false;
    }
    plan.happened = true;
    errno = plan.fault == AGAIN ? EAGAIN : plan.fault == INTERRUPTED ? EINTR : reads ? ECONNRESET : EPIPE;
    return true;
}

static ssize_t limited(long number, int fd, const struct msghdr *message, int flags, size_t most)
{
    struct iovec parts[8];
    struct msghdr less = *message;
    size_t used = 0;
    for (; used < message->msg_iovlen && used < 8 && most > 0; used++) {
        parts[used] = message->msg_iov[used];
        parts[used].iov_len = parts[used].iov_len < most ? parts[used].iov_len : most;
        most -= parts[used].iov_len;
    }
    less.msg_iov = parts;
    less.msg_iovlen = used;
    return syscall(number, fd, &less, flags);
}

static ssize_t faulty(long number, bool reads, int fd, const struct msghdr *message, int flags)
{
    size_t size = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        size += message->msg_iov[i].iov_len;
    }
    if (fails(reads, &size)) {
        return -1;
    }
    ssize_t done = limited(number, fd, message, flags, size);
    if (done > 0 && plan.reads == reads && !is_peer()) {
        plan.done += (size_t)done;
    }
    return done;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return faulty(SYS_sendmsg, false, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return faulty(SYS_recvmsg, true, fd, message, flags);
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    struct iovec part = { bytes, size };
    const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    return faulty(SYS_recvmsg, true, fd, &message, flags);
}

/* ---- The peer ---- */

struct peer {
    nt_address address;
    size_t budget; /* bytes it says before it is gone */
    bool resets;   /* it goes without taking what was sent to it */
    uint8_t heard[HEARD + 64];
    size_t heard_size;
    bool ended; /* our end was seen */
    atomic_bool gone;
};

static bool peer_hear(struct peer *peer, int fd, size_t wanted)
{
    while (peer->heard_size < wanted) {
        ssize_t got = 0;
        if (script_readable(fd, SCRIPT_MS)) {
            got = recv(fd, peer->heard + peer->heard_size, sizeof peer->heard - peer->heard_size, 0);
        }
        if (got <= 0) {
            peer->ended = got == 0;
            return false;
        }
        peer->heard_size += (size_t)got;
    }
    return true;
}

static void *peer_main(void *arg)
{
    struct peer *peer = arg;
    uint8_t says[256];
    size_t said = 0, hears = 0, size = script_bytes(SAYS, says, sizeof says);
    int fd = script_dial(peer->address);
    struct linger now = { 1, 0 };
    (void)size;
    for (size_t i = 0; i < STEPS && said < peer->budget; i++) {
        size_t some = steps[i].says < peer->budget - said ? steps[i].says : peer->budget - said;
        if (send(fd, says + said, some, MSG_NOSIGNAL) < 0) {
            break;
        }
        said += some;
        hears += steps[i].hears;
        if (some == steps[i].says && !peer_hear(peer, fd, hears)) {
            break;
        }
    }
    if (peer->resets) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    } else if (!peer->ended) {
        (void)shutdown(fd, SHUT_WR);
        (void)peer_hear(peer, fd, sizeof peer->heard); /* whatever comes, up to the end */
    }
    close(fd);
    atomic_store(&peer->gone, true);
    return NULL;
}

/* ---- Our side: an echo ---- */

struct outcome {
    unsigned opened, messages, closed, lost;
};

static void echo(const struct script *script, const nt_delivery *delivery, nt_connection **back,
                 struct outcome *outcome)
{
    const struct iovec *parts;
    nt_address from = nt_delivery_address(delivery);
    switch (nt_delivery_type(delivery)) {
    case NT_DELIVERY_OPENED:
        outcome->opened++;
        (void)nt_endpoint_connect(script->endpoint, &from, NULL, NT_NONBLOCK, back);
        break;
    case NT_DELIVERY_RECEIVED:
        outcome->messages++;
        assert_int_equal(nt_delivery_parts(delivery, &parts), 1);
        assert_int_equal(parts->iov_len, 5);
        assert_memory_equal(parts->iov_base, "aaaaa", 5);
        if (*back != NULL) {
            (void)nt_connection_send(*back, parts, 1, 0);
        }
        break;
    case NT_DELIVERY_CLOSED:
        outcome->closed++;
        if (*back != NULL) {
            nt_connection_close(*back);
        }
        break;
    case NT_DELIVERY_ERROR:
        outcome->lost++;
        break;
    default:
        break;
    }
}

/* Until the peer is gone and nothing comes any more. */
static struct outcome serve(const struct script *script, struct peer *peer)
{
    struct outcome outcome = { 0 };
    nt_connection *back = NULL;
    peer_runs = true;
    assert_int_equal(pthread_create(&peer_thread, NULL, peer_main, peer), 0);
    for (int quiet = 0; quiet < 2;) {
        nt_delivery *delivery;
        if (nt_endpoint_receive(script->endpoint, 2, &delivery) != 0) {
            quiet += atomic_load(&peer->gone);
            continue;
        }
        echo(script, delivery, &back, &outcome);
        nt_delivery_unref(delivery);
    }
    assert_int_equal(pthread_join(peer_thread, NULL), 0);
    peer_runs = false;
    nt_connection_unref(back);
    return outcome;
}

static void check_prefix(const struct peer *peer)
{
    uint8_t hears[HEARD + 64];
    size_t size = script_bytes(HEARS, hears, sizeof hears);
    assert_int_equal(size, HEARD);
    assert_true(peer->heard_size <= size);
    assert_memory_equal(peer->heard, hears, peer->heard_size);
}

static void check_whole(const struct script *script)
{
    struct peer peer = { .address = nt_endpoint_address(script->endpoint), .budget = SAID };
    plan.fault = NONE;
    struct outcome outcome = serve(script, &peer);
    check_prefix(&peer);
    assert_int_equal(peer.heard_size, HEARD);
    assert_int_equal(outcome.opened, 1);
    assert_int_equal(outcome.messages, 2);
    assert_int_equal(outcome.closed, 1);
    assert_int_equal(outcome.lost, 0);
}

/* With what is planned, all of it passes all the same. */
static void check_unharmed(const struct script *script, enum fault fault, bool reads, size_t at)
{
    struct peer peer = { .address = nt_endpoint_address(script->endpoint), .budget = SAID };
    plan.fault = fault;
    plan.reads = reads;
    plan.at = at;
    plan.done = 0;
    plan.happened = false;
    struct outcome outcome = serve(script, &peer);
    plan.fault = NONE;
    assert_true(fault == SHORT || plan.happened);
    check_prefix(&peer);
    assert_int_equal(peer.heard_size, HEARD);
    assert_int_equal(outcome.messages, 2);
    assert_int_equal(outcome.lost, 0);
}

/* ---- Tests ---- */

static void test_peer_cut_anywhere(void **state)
{
    struct script script = script_open(NULL);
    (void)state;
    for (int resets = 0; resets < 2; resets++) {
        for (size_t budget = 0; budget < SAID; budget++) {
            struct peer peer = { .address = nt_endpoint_address(script.endpoint), .budget = budget, .resets = resets };
            struct outcome outcome = serve(&script, &peer);
            check_prefix(&peer);
            assert_true(outcome.messages <= 2 && outcome.lost <= 1);
            assert_true(outcome.opened == 1 || outcome.messages == 0);
            assert_int_equal(outcome.lost, budget >= 29 && budget < SAID - 8);
        }
    }
    check_whole(&script);
    script_close(&script);
}

static void test_writes_in_pieces(void **state)
{
    struct script script = script_open(NULL);
    (void)state;
    for (size_t most = 1; most <= 16; most++) {
        check_unharmed(&script, SHORT, false, most);
        check_unharmed(&script, SHORT, true, most);
    }
    script_close(&script);
}

static void test_nothing_now_anywhere(void **state)
{
    struct script script = script_open(NULL);
    (void)state;
    for (size_t at = 0; at < HEARD; at++) {
        check_unharmed(&script, AGAIN, false, at);
        check_unharmed(&script, INTERRUPTED, false, at);
    }
    for (size_t at = 0; at < SAID; at++) {
        check_unharmed(&script, AGAIN, true, at);
        check_unharmed(&script, INTERRUPTED, true, at);
    }
    script_close(&script);
}

/* Ours breaks while it sends: the peer has a prefix, we are told once, unless it was the last that was to be said. */
static void test_own_end_breaks_anywhere(void **state)
{
    struct script script = script_open(NULL);
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        for (size_t at = 0; at < (reads ? SAID : HEARD); at++) {
            struct peer peer = { .address = nt_endpoint_address(script.endpoint), .budget = SAID };
            plan.fault = BROKEN;
            plan.reads = reads;
            plan.at = at;
            plan.done = 0;
            plan.happened = false;
            struct outcome outcome = serve(&script, &peer);
            plan.fault = NONE;
            assert_true(plan.happened);
            check_prefix(&peer);
            assert_true(outcome.messages <= 2 && outcome.lost <= 1);
            assert_true(peer.heard_size <= (reads ? HEARD : at));
        }
    }
    check_whole(&script);
    script_close(&script);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_cut_anywhere),
        cmocka_unit_test(test_writes_in_pieces),
        cmocka_unit_test(test_nothing_now_anywhere),
        cmocka_unit_test(test_own_end_breaks_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
