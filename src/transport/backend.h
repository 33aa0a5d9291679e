/* SPDX-License-Identifier: BSD-3-Clause */
/* What a backend has to do. Its structs begin with those of core.h, whose sizes it says. All calls but `fini` are made
   with the transport locked, by any thread, and must not block. */
#ifndef NT_TRANSPORT_BACKEND_H
#define NT_TRANSPORT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct nt_transport;
struct nt_endpoint;
struct nt_connection;
struct nt_delivery;
struct transport_peer;
struct transport_lend;

struct transport_backend {
    const char *name;
    size_t transport_size, peer_size; /* bytes of its structs */
    bool helper;                      /* it has I/O that must go on when nobody waits */

    /* The transport was filled with zeros and options. 0 or a negative code; after a failure `fini` is called. */
    int (*open)(struct nt_transport *transport);
    /* Takes no new peers: all endpoints are closed. */
    void (*close)(struct nt_transport *transport);
    /* Whether everything that was sent has left; asked until it is so, or the time is up. */
    bool (*flushed)(struct nt_transport *transport);
    /* Not locked; nobody has it any more. */
    void (*fini)(struct nt_transport *transport);

    /* Gives it an address, which it frees with free. */
    int (*endpoint_open)(struct nt_endpoint *endpoint);
    /* Tells the peers; the connections end behind this call. */
    void (*endpoint_close)(struct nt_endpoint *endpoint);

    /* Begins: connection_opened or connection_failed follow, in this call or later. It is in its peer's
       `connecting`. */
    void (*connect)(struct nt_connection *connection);
    /* One message, of an open connection. 0; -EAGAIN: too much waits, nothing was taken; -ECONNRESET, -ENOBUFS. `lend`:
       the sender waits until that is held no more, so that the parts may be read until then; NULL: it does not. */
    int (*send)(struct nt_connection *connection, const struct iovec *parts, int count, size_t size,
                struct transport_lend *lend);
    /* Whether so little waits to leave that a sender that waits should go on. */
    bool (*has_room)(const struct transport_peer *peer);
    /* Sends what was gathered before `since`, ns. Returns when the oldest of the rest was, 0: there is none. May be
       NULL. */
    uint64_t (*flush)(struct nt_transport *transport, uint64_t since);
    /* Something came without asking the system what is ready: looks at whoever was heard of last. May be NULL. */
    bool (*quick)(struct nt_transport *transport);
    /* Was open, and is not any more. */
    void (*connection_close)(struct nt_connection *connection);
    /* So many deliveries were received that there is room for more. */
    void (*room)(struct transport_peer *peer);
    /* 0, or -ENOENT: there is no bundle, -EALREADY. */
    int (*ping)(struct transport_peer *peer);
    /* Breaks the bundle. 0 or -ENOENT. */
    int (*peer_close)(struct transport_peer *peer);
    /* Takes a delivery, to post it with delivery_post_now later. False: not this one. May be NULL. */
    bool (*hold)(struct transport_peer *peer, struct nt_delivery *take_delivery);
    /* Whether it is at something with the peer, though there is no bundle. May be NULL. */
    bool (*busy)(const struct transport_peer *peer);
    /* Nobody refers to the peer any more; may be NULL. */
    void (*peer_fini)(struct transport_peer *peer);
};

extern const struct transport_backend transport_tcp;
extern const struct transport_backend transport_memory;

#endif
