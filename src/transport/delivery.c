/* SPDX-License-Identifier: BSD-3-Clause */
/* Deliveries: made once, read by anybody. */
#include <stdlib.h>
#include <string.h>

#include "transport/core.h"

#define COST (sizeof(struct nt_delivery) + 16)

uint64_t delivery_cost(const struct nt_delivery *delivery)
{
    return COST + delivery->part.iov_len;
}

struct nt_delivery *delivery_new(enum nt_delivery_kind type, struct nt_connection *connection, size_t size)
{
    struct nt_delivery *delivery = malloc(sizeof *delivery + size + 1);
    if (delivery == NULL) {
        return NULL;
    }
    *delivery = (struct nt_delivery){
        .type = (uint8_t)type,
        .connection = connection,
        .part = { delivery->bytes, size },
        .parts = type == NT_DELIVERY_RECEIVED && size > 0,
        .text = "",
    };
    atomic_init(&delivery->refs, 1);
    if (connection != NULL) {
        nt_connection_ref(connection);
        delivery->id = connection->id;
        delivery->bundle = connection->bundle;
        delivery->reliability = connection->reliability;
        delivery->address = (nt_address){ connection->peer->address, connection->peer->address_size };
    }
    return delivery;
}

void delivery_post(struct transport_peer *peer, struct nt_delivery *take_delivery)
{
    const struct transport_backend *backend = peer->endpoint->transport->backend;
    if (take_delivery != NULL && (backend->hold == NULL || !backend->hold(peer, take_delivery))) {
        delivery_post_now(peer, take_delivery);
    }
}

void delivery_post_now(struct transport_peer *peer, struct nt_delivery *take_delivery)
{
    struct nt_endpoint *endpoint = peer->endpoint;
    if (endpoint->closed) {
        nt_delivery_unref(take_delivery);
        return;
    }
    take_delivery->next = NULL;
    if (peer->first == NULL) {
        peer->first = take_delivery;
        DL_APPEND(endpoint->ready, peer);
    } else {
        peer->last->next = take_delivery;
    }
    peer->last = take_delivery;
    peer->held += delivery_cost(take_delivery);
    endpoint->transport->held += delivery_cost(take_delivery);
    endpoint_signal(endpoint);
}

void delivery_tell(struct transport_peer *peer, enum nt_delivery_kind type, struct nt_connection *connection,
                   int64_t code, const char *text)
{
    size_t length = strlen(text);
    struct nt_delivery *delivery = delivery_new(type, connection, length + peer->address_size);
    if (delivery == NULL) {
        return;
    }
    memcpy(delivery->bytes, text, length);
    delivery->bytes[length] = 0;
    delivery->text = (const char *)delivery->bytes;
    if (connection == NULL) { /* of the peer: it may be gone when this is read */
        memcpy(delivery->bytes + length + 1, peer->address, peer->address_size);
        delivery->address = (nt_address){ delivery->bytes + length + 1, peer->address_size };
        delivery->bundle = peer->bundle;
    }
    delivery->code = code;
    delivery_post(peer, delivery);
}

static struct nt_delivery *take(struct nt_endpoint *endpoint, struct transport_peer *peer)
{
    struct nt_transport *transport = endpoint->transport;
    struct nt_delivery *delivery = peer->first;
    peer->first = delivery->next;
    DL_DELETE(endpoint->ready, peer);
    if (peer->first != NULL) { /* the next peer's turn */
        DL_APPEND(endpoint->ready, peer);
    }
    peer->held -= delivery_cost(delivery);
    transport->held -= delivery_cost(delivery);
    if (peer->full && peer->held <= transport->options.max_peer / 2 &&
        (transport->held < transport->options.max_transport || peer->held == 0)) {
        peer->full = false;
        transport->backend->room(peer);
    }
    if (peer->first == NULL) {
        peer_settle(peer);
    }
    return delivery;
}

struct nt_delivery *delivery_take(struct nt_endpoint *endpoint)
{
    struct nt_delivery *delivery;
    while (endpoint->ready != NULL) {
        delivery = take(endpoint, endpoint->ready);
        if (delivery->connection == NULL || delivery->connection->state != CONNECTION_REJECTED) {
            return delivery;
        }
        nt_delivery_unref(delivery);
    }
    delivery = endpoint->closed ? endpoint->last : NULL;
    endpoint->last = delivery != NULL ? NULL : endpoint->last;
    return delivery;
}

/* ---- What can be asked of one ---- */

nt_delivery *nt_delivery_ref(nt_delivery *delivery)
{
    atomic_fetch_add_explicit(&delivery->refs, 1, memory_order_relaxed);
    return delivery;
}

void nt_delivery_unref(nt_delivery *take_delivery)
{
    if (take_delivery != NULL && atomic_fetch_sub_explicit(&take_delivery->refs, 1, memory_order_acq_rel) == 1) {
        nt_connection_unref(take_delivery->connection);
        free(take_delivery);
    }
}

enum nt_delivery_kind nt_delivery_type(const nt_delivery *delivery)
{
    return (enum nt_delivery_kind)delivery->type;
}

nt_connection *nt_delivery_connection(const nt_delivery *delivery)
{
    return delivery->connection;
}

uint64_t nt_delivery_id(const nt_delivery *delivery)
{
    return delivery->id;
}

uint64_t nt_delivery_bundle(const nt_delivery *delivery)
{
    return delivery->bundle;
}

uint64_t nt_delivery_number(const nt_delivery *delivery)
{
    return delivery->number;
}

int nt_delivery_parts(const nt_delivery *delivery, const struct iovec **ret_parts)
{
    *ret_parts = &delivery->part;
    return delivery->parts;
}

nt_address nt_delivery_address(const nt_delivery *delivery)
{
    return delivery->address;
}

enum nt_reliability nt_delivery_reliability(const nt_delivery *delivery)
{
    return (enum nt_reliability)delivery->reliability;
}

int64_t nt_delivery_code(const nt_delivery *delivery)
{
    return delivery->code;
}

const char *nt_delivery_text(const nt_delivery *delivery)
{
    return delivery->text;
}

const char *nt_delivery_name(enum nt_delivery_kind type)
{
    switch (type) {
#define NT_DELIVERY_TYPE(number, symbol, name, text) \
    case NT_DELIVERY_##symbol:                       \
        return name;
#include <nt/transport.def>
#undef NT_DELIVERY_TYPE
    case NT_DELIVERY_NONE:
        break;
    }
    return NULL;
}
