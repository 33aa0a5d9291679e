/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints, and the peers that they know. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/core.h"

/* ---- References ---- */

static void endpoint_ref(struct nt_endpoint *endpoint)
{
    atomic_fetch_add_explicit(&endpoint->refs, 1, memory_order_relaxed);
}

static void endpoint_unref(struct nt_endpoint *take_endpoint)
{
    TRANSPORT_UNCANCELLED;
    if (atomic_fetch_sub_explicit(&take_endpoint->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (take_endpoint->poll >= 0) {
        close(take_endpoint->poll);
        close(take_endpoint->event);
    }
    nt_delivery_unref(take_endpoint->last);
    transport_unref(take_endpoint->transport);
    free(take_endpoint->address);
    free(take_endpoint);
}

nt_endpoint *nt_endpoint_ref(nt_endpoint *endpoint)
{
    if (!transport_is_forked(endpoint->transport)) {
        atomic_fetch_add_explicit(&endpoint->users, 1, memory_order_relaxed);
    }
    return endpoint;
}

/* Closed, and nobody can receive: what waits in the queue would keep everything alive. */
static void endpoint_empty(struct nt_endpoint *endpoint)
{
    struct nt_delivery *delivery;
    while (endpoint->closed && (delivery = delivery_take(endpoint)) != NULL) {
        nt_delivery_unref(delivery);
    }
}

void nt_endpoint_unref(nt_endpoint *take_endpoint)
{
    TRANSPORT_UNCANCELLED;
    if (take_endpoint == NULL || transport_is_forked(take_endpoint->transport) ||
        atomic_fetch_sub_explicit(&take_endpoint->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct nt_transport *transport = take_endpoint->transport;
    transport_ref(transport);
    if (transport_enter(transport)) {
        endpoint_empty(take_endpoint);
        transport_leave(transport);
    }
    endpoint_unref(take_endpoint);
    transport_unref(transport);
}

nt_address nt_endpoint_address(const nt_endpoint *endpoint)
{
    return (nt_address){ endpoint->address, endpoint->address_size };
}

/* ---- Peers ---- */

struct transport_peer *peer_find(const struct nt_endpoint *endpoint, const void *address, size_t size)
{
    struct transport_peer *peer;
    HASH_FIND(hh, endpoint->peers, address, size, peer);
    return peer;
}

struct transport_peer *peer_get(struct nt_endpoint *endpoint, const void *address, size_t size)
{
    struct transport_peer *peer = peer_find(endpoint, address, size);
    if (peer != NULL) {
        return peer;
    }
    peer = calloc(1, endpoint->transport->backend->peer_size);
    char *copy = peer != NULL ? malloc(size + 1) : NULL;
    if (copy == NULL) {
        free(peer);
        return NULL;
    }
    memcpy(copy, address, size);
    copy[size] = 0;
    peer->address = copy;
    peer->address_size = size;
    endpoint_ref(endpoint);
    peer->endpoint = endpoint;
    atomic_init(&peer->refs, 1); /* the list's */
    HASH_ADD_KEYPTR(hh, endpoint->peers, peer->address, size, peer);
    if (peer->hh.tbl == NULL) {
        peer_unref(peer);
        return NULL;
    }
    peer->listed = true;
    return peer;
}

void peer_ref(struct transport_peer *peer)
{
    atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
}

void peer_unref(struct transport_peer *take_peer)
{
    if (atomic_fetch_sub_explicit(&take_peer->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (take_peer->endpoint->transport->backend->peer_fini != NULL) {
        take_peer->endpoint->transport->backend->peer_fini(take_peer);
    }
    endpoint_unref(take_peer->endpoint);
    free(take_peer->address);
    free(take_peer);
}

void peer_settle(struct transport_peer *peer)
{
    const struct transport_backend *backend = peer->endpoint->transport->backend;
    if (peer->listed && peer->bundle == 0 && peer->first == NULL && peer->connecting == NULL &&
        (backend->busy == NULL || !backend->busy(peer))) {
        HASH_DELETE(hh, peer->endpoint->peers, peer);
        peer->listed = false;
        peer_unref(peer);
    }
}

void peer_begin(struct transport_peer *peer)
{
    peer->bundle = ++peer->endpoint->transport->bundles;
    peer->heavy = ++peer->endpoint->heavy;
    peer->numbers = 0;
}

/* ---- The queue ---- */

void endpoint_signal(struct nt_endpoint *endpoint)
{
    static const uint64_t one = 1;
    uint64_t count;
    if (endpoint->event < 0 || endpoint->receiving > 0) { /* who receives looks at it behind that */
        return;
    }
    bool wanted = endpoint->ready != NULL || endpoint->closed;
    if (wanted == endpoint->signalled) {
        return;
    }
    ssize_t done = wanted ? write(endpoint->event, &one, sizeof one) : read(endpoint->event, &count, sizeof count);
    endpoint->signalled = done == (ssize_t)sizeof one ? wanted : endpoint->signalled;
}

static int receive(struct nt_endpoint *endpoint, uint64_t deadline, struct nt_delivery **ret_delivery)
{
    for (bool turned = false;; turned = true) {
        struct nt_delivery *delivery = delivery_take(endpoint);
        if (delivery != NULL) {
            *ret_delivery = delivery;
            return 0;
        }
        if (endpoint->closed) {
            return -ESHUTDOWN;
        }
        if (deadline != TRANSPORT_NEVER && turned && (deadline == 0 || transport_now() >= deadline)) {
            return -EAGAIN;
        }
        transport_turn(endpoint->transport, deadline);
    }
}

int nt_endpoint_receive(nt_endpoint *endpoint, int timeout_ms, nt_delivery **ret_delivery)
{
    TRANSPORT_UNCANCELLED;
    struct nt_transport *transport = endpoint->transport;
    uint64_t deadline = timeout_ms < 0 ? TRANSPORT_NEVER : 0;
    if (timeout_ms > 0) {
        deadline = transport_now() + (uint64_t)timeout_ms * TRANSPORT_MS;
    }
    if (!transport_enter(transport)) {
        return -NT_EFORKED;
    }
    endpoint->receiving++;
    transport->takes++;
    int result = receive(endpoint, deadline, ret_delivery);
    endpoint->receiving--;
    endpoint_signal(endpoint);
    transport_leave(transport);
    return result;
}

static int endpoint_poll(struct nt_endpoint *endpoint)
{
    int poll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event in = { .events = EPOLLIN };
    int error = poll < 0 || event < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, event, &in) < 0 ? -errno : 0;
    if (error == 0 && !endpoint->closed) {
        error = transport_mirror(endpoint->transport, poll);
    }
    if (error != 0) {
        close(poll);
        close(event);
        return error;
    }
    endpoint->poll = poll;
    endpoint->event = event;
    endpoint_signal(endpoint);
    return 0;
}

int nt_endpoint_fd(nt_endpoint *endpoint)
{
    TRANSPORT_UNCANCELLED;
    if (!transport_enter(endpoint->transport)) {
        return -NT_EFORKED;
    }
    int result = endpoint->poll >= 0 ? 0 : endpoint_poll(endpoint);
    result = result == 0 ? endpoint->poll : result;
    transport_leave(endpoint->transport);
    return result;
}

/* ---- Beginning and end ---- */

static bool options_bad(const struct nt_endpoint_options *options)
{
    uint32_t reserved = options->flags & ~(uint32_t)NT_ENDPOINT_OUTGOING;
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++) {
        reserved |= options->reserved[i];
    }
    return reserved != 0;
}

static int endpoint_open(struct nt_transport *transport, struct nt_endpoint *endpoint)
{
    int error = transport->closed ? -ESHUTDOWN : transport->backend->endpoint_open(endpoint);
    if (error != 0) {
        return error;
    }
    endpoint_ref(endpoint); /* the list's */
    DL_APPEND(transport->endpoints, endpoint);
    return 0;
}

int nt_endpoint_new(nt_transport *transport, const nt_endpoint_options *options, nt_endpoint **ret_endpoint)
{
    TRANSPORT_UNCANCELLED;
    struct nt_endpoint_options taken = NT_ENDPOINT_OPTIONS_INIT;
    if ((options != NULL && !transport_options_take(&taken, sizeof taken, ENDPOINT_OPTIONS_FIRST, options)) ||
        options_bad(&taken)) {
        return -EINVAL;
    }
    struct nt_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (endpoint == NULL) {
        return -ENOMEM;
    }
    endpoint->flags = taken.flags;
    endpoint->poll = endpoint->event = -1;
    atomic_init(&endpoint->users, 1);
    atomic_init(&endpoint->refs, 1);
    int error = -NT_EFORKED;
    if (transport_enter(transport)) {
        endpoint->transport = transport;
        transport_ref(transport);
        endpoint->last = delivery_new(NT_DELIVERY_ENDPOINT_CLOSED, NULL, 0);
        error = endpoint->last != NULL ? endpoint_open(transport, endpoint) : -ENOMEM;
        transport_leave(transport);
        if (error != 0) {
            endpoint_unref(endpoint);
        }
    } else {
        free(endpoint);
    }
    if (error == 0) {
        *ret_endpoint = endpoint;
    }
    return error;
}

/* ENDPOINT_CLOSED was made with the endpoint, so that it comes even without memory; it is `last` from now on. */
void endpoint_shut(struct nt_endpoint *endpoint)
{
    struct transport_peer *peer, *next;
    endpoint->closed = true; /* from here on nothing is posted */
    endpoint->transport->backend->endpoint_close(endpoint);
    HASH_ITER(hh, endpoint->peers, peer, next)
    {
        peer_ref(peer);
        peer_refuse(peer, -ECONNREFUSED, "the endpoint is closed");
        peer_end(peer, false);
        peer_settle(peer);
        peer_unref(peer);
    }
    DL_DELETE(endpoint->transport->endpoints, endpoint);
    if (atomic_load_explicit(&endpoint->users, memory_order_acquire) == 0) {
        endpoint_empty(endpoint);
    }
    endpoint_signal(endpoint);
    transport_changed(endpoint->transport);
    endpoint_unref(endpoint);
}

void nt_endpoint_close(nt_endpoint *endpoint)
{
    TRANSPORT_UNCANCELLED;
    struct nt_transport *transport = endpoint->transport;
    if (!transport_enter(transport)) {
        return;
    }
    uint64_t until = transport_now() + transport->options.flush_timeout_ms * TRANSPORT_MS;
    if (!endpoint->closed) {
        endpoint_shut(endpoint);
    }
    while (!transport->backend->flushed(transport) && transport_now() < until) {
        transport_turn(transport, until);
    }
    transport_leave(transport);
}
