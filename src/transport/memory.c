/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of one transport in one process: the tests' double, which can also delay, drop, reorder, break and
   refuse, by a seed. Both ends of a bundle are two peers that know each other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/core.h"

#define FIRST 1024u

struct memory {
    struct nt_transport core;
    uint64_t random;
    uint64_t addresses; /* the last one given */
};

struct held {
    struct held *next, *prev;
    struct nt_delivery *delivery;
    uint64_t due;
};

struct memory_peer {
    struct transport_peer core;
    struct memory_peer *mate; /* of the bundle, NULL: there is none. A reference */
    struct held *held;        /* in order */
    struct transport_timer timer;
    struct nt_delivery *overtaken; /* waits for the next one of its connection */
};

static struct memory_peer *memory_peer_of(struct transport_peer *peer)
{
    return (struct memory_peer *)(void *)peer;
}

static struct memory *memory_of(const struct transport_peer *peer)
{
    return (struct memory *)(void *)peer->endpoint->transport;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(struct memory *memory)
{
    uint64_t z = memory->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool happens(struct memory *memory, uint32_t millionths)
{
    return millionths != 0 && draw(memory) % 1000000 < millionths;
}

static void held_post(struct memory_peer *peer, uint64_t until);
static void memory_peer_fini(struct transport_peer *core);
static void overtaken_post(struct memory_peer *mate, const struct nt_connection *incoming);

/* ---- Transports and endpoints ---- */

static int memory_open(struct nt_transport *transport)
{
    struct memory *memory = (struct memory *)(void *)transport;
    memory->random = transport->faults.seed;
    return 0;
}

static void memory_close(struct nt_transport *transport)
{
    (void)transport;
}

static bool memory_flushed(struct nt_transport *transport)
{
    (void)transport;
    return true;
}

static void memory_fini(struct nt_transport *transport)
{
    (void)transport;
}

static int memory_endpoint_open(struct nt_endpoint *endpoint)
{
    struct memory *memory = (struct memory *)(void *)endpoint->transport;
    int size = asprintf(&endpoint->address, "%llu", (unsigned long long)++memory->addresses);
    if (size < 0) {
        endpoint->address = NULL;
        return -ENOMEM;
    }
    endpoint->address_size = (size_t)size;
    return 0;
}

/* ---- Bundles ---- */

static void part(struct memory_peer *peer)
{
    struct memory_peer *mate = peer->mate;
    peer->mate = NULL;
    if (mate != NULL) {
        peer_unref(&mate->core);
    }
}

/* Neither end has a connection any more: the bundle goes, and nobody is told. */
static void bundle_settle(struct memory_peer *peer)
{
    struct memory_peer *mate = peer->mate;
    if (mate == NULL || peer->core.outgoing != NULL || mate->core.outgoing != NULL) {
        return;
    }
    peer_ref(&mate->core);
    peer_end(&peer->core, false);
    peer_end(&mate->core, false);
    part(mate);
    part(peer);
    peer_settle(&mate->core);
    peer_unref(&mate->core);
}

static void bundle_lose(struct memory_peer *peer, const char *text)
{
    struct memory_peer *mate = peer->mate;
    if (mate == NULL) {
        return;
    }
    peer_ref(&peer->core);
    peer_ref(&mate->core);
    memory_peer_fini(&peer->core); /* what waits to be overtaken is lost too */
    memory_peer_fini(&mate->core);
    part(mate);
    part(peer);
    peer_lose(&mate->core, text);
    peer_lose(&peer->core, text);
    peer_settle(&mate->core);
    peer_settle(&peer->core);
    peer_unref(&mate->core);
    peer_unref(&peer->core);
}

/* The other ends learn of it as of an orderly end: lost is what they had opened themselves. */
static void memory_endpoint_close(struct nt_endpoint *endpoint)
{
    struct transport_peer *peer, *next;
    HASH_ITER(hh, endpoint->peers, peer, next)
    {
        struct memory_peer *mate = memory_peer_of(peer)->mate;
        memory_peer_fini(peer);
        if (memory_peer_of(peer)->held != NULL) {
            held_post(memory_peer_of(peer), UINT64_MAX); /* into a closed queue: they are freed */
        }
        if (mate == NULL) {
            continue;
        }
        struct nt_connection *connection, *other;
        peer_ref(&mate->core);
        HASH_ITER(hh, mate->core.incoming, connection, other)
        {
            overtaken_post(mate, connection);
            connection_end(connection);
        }
        if (mate->core.outgoing != NULL) {
            peer_lose(&mate->core, "the endpoint was closed");
        } else {
            peer_end(&mate->core, false);
        }
        part(mate);
        part(memory_peer_of(peer));
        peer_settle(&mate->core);
        peer_unref(&mate->core);
    }
}

static struct nt_endpoint *endpoint_find(const struct transport_peer *peer)
{
    struct nt_endpoint *endpoint;
    DL_FOREACH(peer->endpoint->transport->endpoints, endpoint)
    {
        if (endpoint->address_size == peer->address_size &&
            memcmp(endpoint->address, peer->address, peer->address_size) == 0) {
            return endpoint;
        }
    }
    return NULL;
}

/* Both ends of a new bundle. */
static int bundle_make(struct memory_peer *peer, struct nt_endpoint *there)
{
    const struct nt_endpoint *here = peer->core.endpoint;
    struct memory_peer *mate = memory_peer_of(peer_get(there, here->address, here->address_size));
    if (mate == NULL) {
        return -ENOMEM;
    }
    peer_ref(&mate->core);
    peer_ref(&peer->core);
    peer->mate = mate;
    mate->mate = peer;
    peer_begin(&peer->core);
    peer_begin(&mate->core);
    return 0;
}

static void memory_connect(struct nt_connection *connection)
{
    struct memory_peer *peer = memory_peer_of(connection->peer);
    struct memory *memory = memory_of(&peer->core);
    struct nt_endpoint *there = endpoint_find(&peer->core);
    int error = there == NULL || happens(memory, memory->core.faults.refuse) ? -ENOENT : 0;
    if (error == 0 && peer->mate == NULL) {
        error = bundle_make(peer, there);
    }
    if (error != 0) {
        connection_failed(connection, error, "nobody has that address");
        peer_settle(&peer->core);
        return;
    }
    uint32_t number = peer->core.numbers == 0 ? FIRST : peer->core.numbers + 1;
    peer->core.numbers = number;
    if (connection_opened(connection, number) == 0 &&
        connection_accept(&peer->mate->core, number, NT_RELIABLE_ORDERED) == NULL) {
        bundle_lose(peer, "no memory");
    }
    transport_changed(&memory->core);
}

/* ---- Messages ---- */

static void overtaken_post(struct memory_peer *mate, const struct nt_connection *incoming)
{
    struct nt_delivery *overtaken = mate->overtaken;
    if (overtaken != NULL && overtaken->connection == incoming) {
        mate->overtaken = NULL;
        delivery_post(&mate->core, overtaken);
    }
}

/* Takes the message. */
static void deliver(struct memory_peer *mate, const struct nt_connection *incoming, struct nt_delivery *take_message)
{
    struct memory *memory = memory_of(&mate->core);
    if (happens(memory, memory->core.faults.drop)) {
        nt_delivery_unref(take_message);
    } else if (mate->overtaken == NULL && happens(memory, memory->core.faults.reorder)) {
        mate->overtaken = take_message;
        return;
    } else {
        delivery_post(&mate->core, take_message);
    }
    overtaken_post(mate, incoming);
}

static int memory_send(struct nt_connection *connection, const struct iovec *parts, int count, size_t size,
                       struct transport_lend *lend)
{
    (void)lend;
    struct memory_peer *peer = memory_peer_of(connection->peer), *mate = peer->mate;
    struct memory *memory = memory_of(&peer->core);
    if (mate->core.held >= memory->core.options.max_peer) {
        mate->core.full = true;
        return -EAGAIN;
    }
    struct nt_connection *incoming = connection_incoming(&mate->core, connection->number);
    if (happens(memory, memory->core.faults.lose) || incoming == NULL) {
        bundle_lose(peer, "lost on demand");
        return -ECONNRESET;
    }
    if (incoming->state == CONNECTION_OPEN) {
        struct nt_delivery *message = delivery_message(incoming, parts, count, size);
        if (message == NULL) {
            bundle_lose(peer, "no memory");
            return -ECONNRESET;
        }
        deliver(mate, incoming, message);
    }
    connection->messages++;
    transport_changed(&memory->core);
    return 0;
}

static bool memory_has_room(const struct transport_peer *peer)
{
    (void)peer;
    return true;
}

static void memory_connection_close(struct nt_connection *connection)
{
    struct memory_peer *peer = memory_peer_of(connection->peer), *mate = peer->mate;
    struct nt_connection *incoming = mate != NULL ? connection_incoming(&mate->core, connection->number) : NULL;
    if (incoming != NULL) {
        overtaken_post(mate, incoming);
        connection_end(incoming);
    }
    bundle_settle(peer);
}

/* The mate's senders go on. */
static void memory_room(struct transport_peer *peer)
{
    struct memory_peer *mate = memory_peer_of(peer)->mate;
    if (mate != NULL) {
        peer_writable(&mate->core);
    }
}

static int memory_ping(struct transport_peer *peer)
{
    if (memory_peer_of(peer)->mate == NULL) {
        return -ENOENT;
    }
    delivery_tell(peer, NT_DELIVERY_PINGED, NULL, 1, "");
    transport_changed(peer->endpoint->transport);
    return 0;
}

static int memory_peer_close(struct transport_peer *peer)
{
    if (memory_peer_of(peer)->mate == NULL) {
        return -ENOENT;
    }
    bundle_lose(memory_peer_of(peer), "closed by nt_endpoint_peer_close");
    return 0;
}

/* ---- Delay ---- */

/* What is late waits in no queue, but counts as if it did. */
static void late_count(struct transport_peer *core, const struct nt_delivery *delivery, int sign)
{
    uint64_t cost = delivery_cost(delivery) * (uint64_t)sign;
    core->held += cost;
    core->endpoint->transport->held += cost;
}

static void held_post(struct memory_peer *peer, uint64_t until)
{
    struct transport_peer *core = &peer->core;
    while (peer->held != NULL && peer->held->due <= until) {
        struct held *held = peer->held;
        DL_DELETE(peer->held, held);
        late_count(core, held->delivery, -1);
        delivery_post_now(core, held->delivery);
        free(held);
    }
    if (peer->held != NULL) {
        transport_timer_set(core->endpoint->transport, &peer->timer, peer->held->due);
    } else {
        transport_timer_clear(core->endpoint->transport, &peer->timer);
        peer_settle(core);
        peer_unref(core);
    }
}

static void held_due(struct transport_timer *timer)
{
    struct memory_peer *peer = (struct memory_peer *)(void *)((char *)timer - offsetof(struct memory_peer, timer));
    struct nt_transport *transport = peer->core.endpoint->transport;
    held_post(peer, transport_now());
    transport_changed(transport);
}

static bool memory_hold(struct transport_peer *core, struct nt_delivery *take_delivery)
{
    struct memory_peer *peer = memory_peer_of(core);
    struct memory *memory = memory_of(core);
    uint32_t delay = memory->core.faults.delay_ms;
    struct held *held = delay != 0 ? malloc(sizeof *held) : NULL;
    if (held == NULL) {
        return false;
    }
    *held = (struct held){ .delivery = take_delivery,
                           .due = transport_now() + draw(memory) % (delay * TRANSPORT_MS + 1) };
    if (peer->held == NULL) {
        peer_ref(core);
        peer->timer.fire = held_due;
        transport_timer_set(&memory->core, &peer->timer, held->due);
    } else if (held->due < peer->held->prev->due) { /* the list's last one: order is kept */
        held->due = peer->held->prev->due;
    }
    DL_APPEND(peer->held, held);
    late_count(core, take_delivery, 1);
    return true;
}

/* Nobody refers to it, or the endpoint is closed. */
static void memory_peer_fini(struct transport_peer *core)
{
    struct memory_peer *peer = memory_peer_of(core);
    nt_delivery_unref(peer->overtaken);
    peer->overtaken = NULL;
}

static bool memory_busy(const struct transport_peer *core)
{
    return ((const struct memory_peer *)(const void *)core)->held != NULL;
}

const struct transport_backend transport_memory = {
    .name = "memory",
    .transport_size = sizeof(struct memory),
    .peer_size = sizeof(struct memory_peer),
    .open = memory_open,
    .close = memory_close,
    .flushed = memory_flushed,
    .fini = memory_fini,
    .endpoint_open = memory_endpoint_open,
    .endpoint_close = memory_endpoint_close,
    .connect = memory_connect,
    .send = memory_send,
    .has_room = memory_has_room,
    .connection_close = memory_connection_close,
    .room = memory_room,
    .ping = memory_ping,
    .peer_close = memory_peer_close,
    .hold = memory_hold,
    .busy = memory_busy,
    .peer_fini = memory_peer_fini,
};
