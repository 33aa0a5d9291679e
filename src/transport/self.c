/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint sends to itself goes straight into its own queue. Who receives is often who sends: a full queue is
   an error, never a wait. */
#include <errno.h>
#include <string.h>

#include "transport/core.h"

#define FIRST 1024u /* as on the wire */

bool peer_is_self(const struct transport_peer *peer)
{
    return peer->address_size == peer->endpoint->address_size &&
           memcmp(peer->address, peer->endpoint->address, peer->address_size) == 0;
}

struct nt_delivery *delivery_message(struct nt_connection *connection, const struct iovec *parts, int count,
                                     size_t size)
{
    struct nt_delivery *delivery = delivery_new(NT_DELIVERY_RECEIVED, connection, size);
    uint8_t *at = delivery != NULL ? delivery->bytes : NULL;
    for (int i = 0; i < count && at != NULL; i++) {
        if (parts[i].iov_len > 0) {
            memcpy(at, parts[i].iov_base, parts[i].iov_len);
            at += parts[i].iov_len;
        }
    }
    if (delivery != NULL) {
        delivery->number = ++connection->messages;
    }
    return delivery;
}

void self_connect(struct nt_connection *connection)
{
    struct transport_peer *peer = connection->peer;
    if (peer->bundle == 0) {
        peer->bundle = ++peer->endpoint->transport->bundles;
        peer->heavy = 0;
    }
    struct nt_endpoint *endpoint = peer->endpoint; /* the peer may be another one each time, the ids go on */
    uint32_t number = endpoint->selves == 0 ? FIRST : endpoint->selves + 1;
    endpoint->selves = number;
    if (connection_opened(connection, number) == 0 &&
        connection_accept(peer, number, connection->reliability) == NULL) {
        peer_lose(peer, "no memory");
    }
    transport_changed(endpoint->transport);
}

int self_send(struct nt_connection *connection, const struct iovec *parts, int count, size_t size)
{
    struct transport_peer *peer = connection->peer;
    struct nt_connection *incoming = connection_incoming(peer, connection->number);
    if (incoming == NULL) {
        return -ECONNRESET;
    }
    if (peer->held >= peer->endpoint->transport->options.max_peer) {
        return -ENOBUFS;
    }
    if (incoming->state == CONNECTION_OPEN) {
        struct nt_delivery *delivery = delivery_message(incoming, parts, count, size);
        if (delivery == NULL) {
            return -ENOBUFS;
        }
        delivery_post(peer, delivery);
    }
    connection->messages++;
    transport_changed(peer->endpoint->transport);
    return 0;
}

void self_close(struct nt_connection *connection)
{
    struct transport_peer *peer = connection->peer;
    struct nt_connection *incoming = connection_incoming(peer, connection->number);
    if (incoming != NULL) {
        connection_end(incoming);
    }
    if (peer->outgoing == NULL) {
        peer->bundle = 0;
    }
}
