/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of connections: connecting, sending, closing; and what becomes of all those of a bundle. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "transport/core.h"

/* ---- References ---- */

static void connection_unref(struct nt_connection *take_connection)
{
    if (atomic_fetch_sub_explicit(&take_connection->refs, 1, memory_order_acq_rel) == 1) {
        peer_unref(take_connection->peer);
        free(take_connection);
    }
}

nt_connection *nt_connection_ref(nt_connection *connection)
{
    atomic_fetch_add_explicit(&connection->refs, 1, memory_order_relaxed);
    return connection;
}

static struct nt_transport *transport_of(const struct nt_connection *connection)
{
    return connection->peer->endpoint->transport;
}

void nt_connection_unref(nt_connection *take_connection)
{
    if (take_connection != NULL && !transport_is_forked(transport_of(take_connection))) {
        connection_unref(take_connection);
    }
}

uint64_t nt_connection_id(const nt_connection *connection)
{
    return atomic_load_explicit(&connection->id, memory_order_relaxed);
}

uint64_t nt_connection_bundle(const nt_connection *connection)
{
    return atomic_load_explicit(&connection->bundle, memory_order_relaxed);
}

nt_address nt_connection_address(const nt_connection *connection)
{
    return (nt_address){ connection->peer->address, connection->peer->address_size };
}

/* ---- Making ---- */

static void connection_timeout(struct transport_timer *timer)
{
    struct nt_connection *connection = (struct nt_connection *)(void *)((char *)timer -
                                                                        offsetof(struct nt_connection, timeout));
    struct transport_peer *peer = connection->peer;
    peer_ref(peer);
    connection_failed(connection, -ETIMEDOUT, "the connect took too long");
    peer_settle(peer);
    peer_unref(peer);
}

static struct nt_connection *connection_new(struct transport_peer *peer, uint32_t reliability)
{
    struct nt_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    peer_ref(peer);
    connection->peer = peer;
    connection->reliability = (uint8_t)reliability;
    connection->timeout.fire = connection_timeout;
    atomic_init(&connection->refs, 1);
    return connection;
}

static uint64_t connection_number(const struct nt_connection *connection)
{
    return connection->peer->heavy << 32 | connection->number;
}

struct nt_connection *connection_accept(struct transport_peer *peer, uint32_t number, uint32_t reliability)
{
    struct nt_connection *connection = connection_new(peer, reliability);
    if (connection == NULL) {
        return NULL;
    }
    connection->is_incoming = true;
    connection->number = number;
    connection->state = CONNECTION_OPEN;
    connection->id = connection_number(connection);
    connection->bundle = peer->bundle;
    HASH_ADD(hh, peer->incoming, number, sizeof connection->number, connection);
    if (connection->hh.tbl == NULL) {
        connection_unref(connection);
        return NULL;
    }
    delivery_tell(peer, NT_DELIVERY_OPENED, connection, 0, "");
    return connection;
}

struct nt_connection *connection_incoming(const struct transport_peer *peer, uint32_t number)
{
    struct nt_connection *connection;
    HASH_FIND(hh, peer->incoming, &number, sizeof number, connection);
    return connection;
}

void connection_end(struct nt_connection *connection)
{
    struct transport_peer *peer = connection->peer;
    HASH_DELETE(hh, peer->incoming, connection);
    if (connection->state == CONNECTION_OPEN) {
        connection->state = CONNECTION_CLOSED;
        delivery_tell(peer, NT_DELIVERY_CLOSED, connection, 0, "");
    }
    connection_unref(connection);
}

int connection_opened(struct nt_connection *connection, uint32_t number)
{
    struct transport_peer *peer = connection->peer;
    struct nt_transport *transport = transport_of(connection);
    connection->number = number;
    HASH_ADD(hh, peer->outgoing, number, sizeof connection->number, connection);
    if (connection->hh.tbl == NULL) {
        connection_failed(connection, -ENOMEM, "no memory");
        return -ENOMEM;
    }
    DL_DELETE(peer->connecting, connection);
    transport_timer_clear(transport, &connection->timeout);
    connection->state = CONNECTION_OPEN;
    connection->id = connection_number(connection);
    connection->bundle = peer->bundle;
    if (!connection->waits) {
        delivery_tell(peer, NT_DELIVERY_CONNECTED, connection, 0, "");
    }
    if (peer->endpoint->flags & NT_ENDPOINT_OUTGOING) {
        delivery_tell(peer, NT_DELIVERY_OUTGOING_OPENED, connection, 0, "");
    }
    transport_changed(transport);
    return 0;
}

void connection_failed(struct nt_connection *connection, int error, const char *text)
{
    struct transport_peer *peer = connection->peer;
    DL_DELETE(peer->connecting, connection);
    transport_timer_clear(transport_of(connection), &connection->timeout);
    connection->state = CONNECTION_LOST;
    connection->error = error;
    if (!connection->waits) {
        delivery_tell(peer, NT_DELIVERY_CONNECTED, connection, error, text);
    }
    transport_changed(transport_of(connection));
    connection_unref(connection);
}

void peer_refuse(struct transport_peer *peer, int error, const char *text)
{
    while (peer->connecting != NULL) {
        connection_failed(peer->connecting, error, text);
    }
}

/* ---- A bundle's end ---- */

static void unblock(struct nt_connection *connection)
{
    if (connection->is_blocked) {
        DL_DELETE(connection->peer->blocked, connection);
        connection->is_blocked = false;
    }
}

static void outgoing_end(struct nt_connection *connection, enum connection_state state, int error)
{
    struct transport_peer *peer = connection->peer;
    HASH_DELETE(hh, peer->outgoing, connection);
    unblock(connection);
    connection->state = (uint8_t)state;
    if (peer->endpoint->flags & NT_ENDPOINT_OUTGOING) {
        delivery_tell(peer, NT_DELIVERY_OUTGOING_CLOSED, connection, error, "");
    }
    connection_unref(connection);
}

static void bundle_over(struct transport_peer *peer)
{
    struct nt_connection *connection, *next;
    HASH_ITER(hh, peer->outgoing, connection, next)
    {
        outgoing_end(connection, CONNECTION_LOST, -ECONNRESET);
    }
    HASH_ITER(hh, peer->incoming, connection, next)
    {
        HASH_DELETE(hh, peer->incoming, connection);
        connection->state = connection->state == CONNECTION_REJECTED ? CONNECTION_REJECTED : CONNECTION_LOST;
        connection_unref(connection);
    }
    peer->bundle = 0;
    transport_changed(peer->endpoint->transport);
}

void peer_lose(struct transport_peer *peer, const char *text)
{
    uint64_t bundle = peer->bundle;
    bundle_over(peer);
    peer->bundle = bundle; /* for what is told */
    delivery_tell(peer, NT_DELIVERY_ERROR, NULL, -ECONNRESET, text);
    peer->bundle = 0;
}

void peer_end(struct transport_peer *peer, bool tell)
{
    struct nt_connection *connection, *next;
    if (tell) {
        HASH_ITER(hh, peer->incoming, connection, next)
        {
            connection_end(connection);
        }
    }
    bundle_over(peer);
}

void peer_writable(struct transport_peer *peer)
{
    while (peer->blocked != NULL) {
        struct nt_connection *connection = peer->blocked;
        unblock(connection);
        delivery_tell(peer, NT_DELIVERY_WRITABLE, connection, 0, "");
    }
    transport_changed(peer->endpoint->transport);
}

/* ---- Connect ---- */

static bool options_bad(const struct nt_connect_options *options)
{
    uint32_t reserved = 0;
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++) {
        reserved |= options->reserved[i];
    }
    return options->reliability > NT_UNRELIABLE || reserved != 0;
}

/* Locked. The reference is the caller's. */
static int connect_begin(struct nt_endpoint *endpoint, const nt_address *address,
                         const struct nt_connect_options *options, bool waits, struct nt_connection **ret_connection)
{
    struct nt_transport *transport = endpoint->transport;
    uint32_t timeout = options->timeout_ms != 0 ? options->timeout_ms : transport->options.connect_timeout_ms;
    if (endpoint->closed || address->size == 0 || address->size > transport->options.max_address) {
        return -ECONNREFUSED;
    }
    struct transport_peer *peer = peer_get(endpoint, address->bytes, address->size);
    struct nt_connection *connection = peer != NULL ? connection_new(peer, options->reliability) : NULL;
    if (connection == NULL) {
        if (peer != NULL) {
            peer_settle(peer);
        }
        return -ENOMEM;
    }
    connection->waits = waits;
    DL_APPEND(peer->connecting, connection);
    *ret_connection = nt_connection_ref(connection);
    transport_timer_set(transport, &connection->timeout, transport_now() + timeout * TRANSPORT_MS);
    if (peer_is_self(peer)) {
        self_connect(connection);
    } else {
        transport->backend->connect(connection);
    }
    return 0;
}

int nt_endpoint_connect(nt_endpoint *endpoint, const nt_address *address, const nt_connect_options *options,
                        uint32_t flags, nt_connection **ret_connection)
{
    TRANSPORT_UNCANCELLED;
    struct nt_connect_options taken = NT_CONNECT_OPTIONS_INIT;
    struct nt_transport *transport = endpoint->transport;
    struct nt_connection *connection = NULL;
    if ((options != NULL && !transport_options_take(&taken, sizeof taken, CONNECT_OPTIONS_FIRST, options)) ||
        options_bad(&taken) || flags & ~(uint32_t)NT_NONBLOCK) {
        return -EINVAL;
    }
    if (!transport_enter(transport)) {
        return -NT_EFORKED;
    }
    int error = connect_begin(endpoint, address, &taken, !(flags & NT_NONBLOCK), &connection);
    while (error == 0 && !(flags & NT_NONBLOCK) && connection->state == CONNECTION_CONNECTING) {
        transport_turn(transport, TRANSPORT_NEVER); /* its timeout ends it */
    }
    if (error == 0 && !(flags & NT_NONBLOCK)) {
        error = connection->error;
    }
    transport_leave(transport);
    if (error != 0) {
        nt_connection_unref(connection);
    } else {
        *ret_connection = connection;
    }
    return error;
}

/* ---- Send ---- */

/* Bytes of all parts; SIZE_MAX: no such message is sent. */
static size_t parts_size(const struct iovec *parts, int count, uint64_t most)
{
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        if (__builtin_add_overflow(size, parts[i].iov_len, &size)) {
            return SIZE_MAX;
        }
    }
    return size <= most ? size : SIZE_MAX;
}

static int send_state(const struct nt_connection *connection)
{
    switch (connection->state) {
    case CONNECTION_OPEN:
        return 0;
    case CONNECTION_CONNECTING:
        return -EAGAIN;
    case CONNECTION_CLOSED:
        return -ENOTCONN;
    default:
        return -ECONNRESET;
    }
}

static int send_one(struct nt_connection *connection, const struct iovec *parts, int count, size_t size,
                    struct transport_lend *lend)
{
    int result = send_state(connection);
    if (result != 0) {
        return result;
    }
    if (peer_is_self(connection->peer)) {
        return self_send(connection, parts, count, size);
    }
    return transport_of(connection)->backend->send(connection, parts, count, size, lend);
}

static int send_waiting(struct nt_connection *connection, const struct iovec *parts, int count, size_t size)
{
    struct nt_transport *transport = transport_of(connection);
    struct transport_lend lend = { .held = false };
    int result;
    while ((result = send_one(connection, parts, count, size, &lend)) == -EAGAIN) {
        transport_turn(transport, TRANSPORT_NEVER);
    }
    while (lend.held) {
        transport_turn(transport, TRANSPORT_NEVER);
    }
    free(lend.parts);
    if (lend.left > 0) { /* the bundle was lost on the way */
        return -ECONNRESET;
    }
    while (!peer_is_self(connection->peer) && result == 0 && connection->state == CONNECTION_OPEN &&
           !transport->backend->has_room(connection->peer)) {
        transport_turn(transport, TRANSPORT_NEVER);
    }
    return result;
}

static int send_at_once(struct nt_connection *connection, const struct iovec *parts, int count, size_t size)
{
    int result = send_one(connection, parts, count, size, NULL);
    if (result == -EAGAIN && connection->state == CONNECTION_OPEN && !connection->is_blocked) {
        DL_APPEND(connection->peer->blocked, connection);
        connection->is_blocked = true;
    }
    return result;
}

int nt_connection_send(nt_connection *connection, const struct iovec *parts, int count, uint32_t flags)
{
    TRANSPORT_UNCANCELLED;
    struct nt_transport *transport = transport_of(connection);
    if (count < 0 || flags & ~(uint32_t)NT_NONBLOCK || connection->is_incoming) {
        return -EINVAL;
    }
    size_t size = parts_size(parts, count, transport->options.max_message);
    if (size == SIZE_MAX) {
        return -EMSGSIZE;
    }
    if (!transport_enter(transport)) {
        return -NT_EFORKED;
    }
    int result = flags & NT_NONBLOCK ? send_at_once(connection, parts, count, size)
                                     : send_waiting(connection, parts, count, size);
    transport_leave(transport);
    return result;
}

/* ---- Close ---- */

static void connection_close(struct nt_connection *connection)
{
    struct transport_peer *peer = connection->peer;
    uint8_t state = connection->state;
    if (state == CONNECTION_CONNECTING) {
        connection->waits = true; /* nobody is to be told */
        connection_failed(connection, -ENOTCONN, "");
    } else if (state == CONNECTION_OPEN) {
        outgoing_end(connection, CONNECTION_CLOSED, 0);
        if (peer_is_self(peer)) {
            self_close(connection);
        } else {
            peer->endpoint->transport->backend->connection_close(connection);
        }
    }
    connection->state = CONNECTION_CLOSED;
    peer_settle(peer);
    transport_changed(peer->endpoint->transport);
}

void nt_connection_close(nt_connection *connection)
{
    TRANSPORT_UNCANCELLED;
    struct nt_transport *transport = transport_of(connection);
    if (connection->is_incoming || !transport_enter(transport)) {
        return;
    }
    connection_close(connection);
    transport_leave(transport);
}

int nt_connection_reject(nt_connection *connection)
{
    TRANSPORT_UNCANCELLED;
    if (!connection->is_incoming) {
        return -EINVAL;
    }
    if (!transport_enter(transport_of(connection))) {
        return -NT_EFORKED;
    }
    if (connection->state == CONNECTION_OPEN) {
        connection->state = CONNECTION_REJECTED;
    }
    transport_leave(transport_of(connection));
    return 0;
}

/* ---- Peers, from outside ---- */

int nt_endpoint_peer_close(nt_endpoint *endpoint, const nt_address *address)
{
    TRANSPORT_UNCANCELLED;
    if (!transport_enter(endpoint->transport)) {
        return -NT_EFORKED;
    }
    struct transport_peer *peer = peer_find(endpoint, address->bytes, address->size);
    int error = peer != NULL && !peer_is_self(peer) ? endpoint->transport->backend->peer_close(peer) : -ENOENT;
    transport_leave(endpoint->transport);
    return error;
}

int nt_endpoint_ping(nt_endpoint *endpoint, const nt_address *address)
{
    TRANSPORT_UNCANCELLED;
    if (!transport_enter(endpoint->transport)) {
        return -NT_EFORKED;
    }
    struct transport_peer *peer = peer_find(endpoint, address->bytes, address->size);
    int error = peer != NULL && !peer_is_self(peer) ? endpoint->transport->backend->ping(peer) : -ENOENT;
    transport_leave(endpoint->transport);
    return error;
}
