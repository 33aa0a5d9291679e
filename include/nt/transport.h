/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between endpoints, as Network.Transport has them: a transport has endpoints; an endpoint has an address,
   one queue of deliveries, and one-way connections to other endpoints, any number of which share one socket (a
   bundle). What belongs to one bundle, both ways, fails together; nothing is connected again by itself: the next
   connect makes a new bundle. Messages of one connection come whole and in order, or the bundle is lost. Threads:
   every call may be made from any thread, in any order, unless it says otherwise. Calls that wait drive the
   transport's I/O meanwhile; a helper thread drives it when nobody does. No call may be made in a signal handler.
   None is a cancellation point: a thread that is cancelled in one ends behind it.
   Handles: what a call gives is the caller's, until it is unreferenced; closing does not free. Fork: in a child every
   call fails with -NT_EFORKED and touches nothing.
   Errors: 0 or a positive result, or a negative code; nt_transport_code says what Network.Transport calls it. */
#ifndef NT_TRANSPORT_H
#define NT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <nt/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NT_API
#define NT_API __attribute__((visibility("default")))
#endif

typedef struct nt_transport nt_transport;
typedef struct nt_endpoint nt_endpoint;
typedef struct nt_connection nt_connection; /* one end: outgoing, which may send, or incoming */
typedef struct nt_delivery nt_delivery;     /* what Network.Transport calls an event */

/* Bytes that name an endpoint: equal or not, nothing else is promised. Borrowed. */
typedef struct nt_address {
    const void *bytes;
    size_t size;
} nt_address;

enum nt_reliability { NT_RELIABLE_ORDERED = 0, NT_RELIABLE_UNORDERED = 1, NT_UNRELIABLE = 2 };

enum {
    NT_NONBLOCK = 1u /* do not wait: -EAGAIN, nothing was taken */
};

#define NT_DELIVERY_TYPE(number, symbol, name, text) NT_DELIVERY_##symbol = number,
enum nt_delivery_kind {
#include <nt/transport.def>
    NT_DELIVERY_NONE = 0
};
#undef NT_DELIVERY_TYPE

enum nt_transport_call {
    NT_CALL_NEW_ENDPOINT,
    NT_CALL_CONNECT,
    NT_CALL_NEW_MULTICAST,
    NT_CALL_RESOLVE_MULTICAST,
    NT_CALL_SEND,
    NT_CALL_EVENT
};

/* What Network.Transport calls that error of that call ("ConnectTimeout"); of an unknown one, the most general. Of
   -EAGAIN, -EINVAL, -EMSGSIZE, which it does not have: the same. Static. */
NT_API const char *nt_transport_code(enum nt_transport_call call, int error);

/* ---- Transports ---- */

enum {
    NT_TRANSPORT_UNADDRESSABLE = 1u, /* nobody can connect to its endpoints but over bundles that they made */
    NT_TRANSPORT_DELAY = 2u,         /* tcp: let the system gather small writes (no TCP_NODELAY) */
    NT_TRANSPORT_KEEPALIVE = 4u,     /* tcp: SO_KEEPALIVE */
    NT_TRANSPORT_CHECK_HOST = 8u     /* tcp: refuse peers that claim another numeric host than they come from */
};

/* Faults of the memory backend: in millionths of messages or connects, drawn from the seed. */
typedef struct nt_transport_faults {
    uint64_t seed;
    uint32_t drop;     /* messages that vanish */
    uint32_t reorder;  /* messages that the next one of the connection overtakes */
    uint32_t lose;     /* messages that break their bundle instead */
    uint32_t refuse;   /* connects that fail with -ENOENT */
    uint32_t delay_ms; /* each message and event takes up to so long; those of one peer stay in order */
} nt_transport_faults;

/* Start from NT_TRANSPORT_OPTIONS_INIT. Zero or NULL means the default. */
typedef struct nt_transport_options {
    size_t size;                       /* of this struct, set by NT_TRANSPORT_OPTIONS_INIT */
    const char *backend;               /* "tcp", "memory"; default: tcp */
    const char *host;                  /* tcp: to listen at; default: 127.0.0.1. IPv6 too */
    const char *port;                  /* tcp: to listen at, a number or a service; default: one that is free */
    const char *external_host;         /* tcp: what addresses say; default: host */
    const char *external_port;         /* … default: the port that is listened at */
    uint32_t flags;                    /* NT_TRANSPORT_… */
    uint32_t backlog;                  /* tcp: default: SOMAXCONN */
    uint32_t connect_timeout_ms;       /* the name's lookup, the handshake, incoming ones too; default: 10 s */
    uint32_t probe_timeout_ms;         /* for the answer to a probe; default: 10 s */
    uint32_t probe_idle_ms;            /* probe peers that were silent for so long; default: never */
    uint32_t flush_timeout_ms;         /* what close waits for messages to leave; default: 1 s */
    uint32_t user_timeout_ms;          /* tcp: TCP_USER_TIMEOUT; default: the system's */
    uint32_t max_address;              /* bytes of a peer's address; default: 1 KiB */
    uint64_t max_message;              /* bytes, at most 2^32 - 1; default: 64 MiB */
    uint64_t max_peer;                 /* bytes that may wait, each way, a peer; default: 64 MiB */
    uint64_t max_transport;            /* bytes that may wait to be received, all peers; default: 256 MiB */
    const nt_transport_faults *faults; /* memory */
    uint32_t gather_us; /* tcp: how long small messages of a burst (many, with nothing received in between) may wait to
                            leave together; default: 200; UINT32_MAX: not at all */
    uint32_t reserved[5]; /* zero */
} nt_transport_options;
#define NT_TRANSPORT_OPTIONS_INIT            \
    {                                        \
        .size = sizeof(nt_transport_options) \
    }

/* options may be NULL. 0, -EINVAL (bad options), -ENOENT (no such backend or host), -EADDRINUSE, -EACCES, -EMFILE,
   -ENOMEM … */
NT_API int nt_transport_open(const nt_transport_options *options, nt_transport **ret_transport);
/* Closes all endpoints and the listening socket; what waits to be sent may leave for flush_timeout_ms. */
NT_API void nt_transport_close(nt_transport *transport);
NT_API nt_transport *nt_transport_ref(nt_transport *transport);
/* The last one closes it, if nobody did. NULL is ignored, here and in all others of that name. */
NT_API void nt_transport_unref(nt_transport *take_transport);

/* ---- Endpoints ---- */

enum {
    NT_ENDPOINT_OUTGOING = 1u /* outgoing connections are told of too */
};

/* Start from NT_ENDPOINT_OPTIONS_INIT. */
typedef struct nt_endpoint_options {
    size_t size; /* of this struct, set by NT_ENDPOINT_OPTIONS_INIT */
    uint32_t flags;
    uint32_t reserved[7]; /* zero */
} nt_endpoint_options;
#define NT_ENDPOINT_OPTIONS_INIT            \
    {                                       \
        .size = sizeof(nt_endpoint_options) \
    }

/* options may be NULL. 0, -EINVAL, -ENOMEM, -ESHUTDOWN (the transport is closed). */
NT_API int nt_endpoint_new(nt_transport *transport, const nt_endpoint_options *options, nt_endpoint **ret_endpoint);
/* Its connections are closed, peers told. What waits in the queue can be received still, then ENDPOINT_CLOSED, then
   -ESHUTDOWN for ever. Waits up to flush_timeout_ms for messages to leave. */
NT_API void nt_endpoint_close(nt_endpoint *endpoint);
NT_API nt_endpoint *nt_endpoint_ref(nt_endpoint *endpoint);
NT_API void nt_endpoint_unref(nt_endpoint *take_endpoint);
/* Stands until the endpoint is unreferenced. */
NT_API nt_address nt_endpoint_address(const nt_endpoint *endpoint);

/* The next delivery. timeout_ms: -1 waits for ever, 0 drives the transport's I/O once and does not wait. 0, -EAGAIN
   (nothing came in time), -ESHUTDOWN (closed, and all was received). */
NT_API int nt_endpoint_receive(nt_endpoint *endpoint, int timeout_ms, nt_delivery **ret_delivery);
/* A descriptor that can be polled: readable while nt_endpoint_receive with timeout 0 has something to do or to give.
   The endpoint's: never read, write or close it. Or a negative code. */
NT_API int nt_endpoint_fd(nt_endpoint *endpoint);

/* Makes a new bundle to that peer the only way to talk to it: all connections are lost, here and there. 0; -ENOENT:
   there is none. */
NT_API int nt_endpoint_peer_close(nt_endpoint *endpoint, const nt_address *address);
/* Probes the peer; PINGED follows, or the bundle is lost. 0; -ENOENT: there is no bundle; -EALREADY. */
NT_API int nt_endpoint_ping(nt_endpoint *endpoint, const nt_address *address);

/* ---- Connections ---- */

/* Start from NT_CONNECT_OPTIONS_INIT. */
typedef struct nt_connect_options {
    size_t size;          /* of this struct, set by NT_CONNECT_OPTIONS_INIT */
    uint32_t timeout_ms;  /* default: the transport's */
    uint32_t reliability; /* enum nt_reliability; the backends give the best that there is to all */
    uint32_t reserved[6]; /* zero */
} nt_connect_options;
#define NT_CONNECT_OPTIONS_INIT            \
    {                                      \
        .size = sizeof(nt_connect_options) \
    }

/* Opens a connection to an endpoint, itself too. NT_NONBLOCK: *ret_connection is there at once, may not send yet, and
   CONNECTED follows, also if it failed. 0 or -ENOENT, -ECONNREFUSED, -ETIMEDOUT, -ENOMEM, -EINVAL (options). */
NT_API int nt_endpoint_connect(nt_endpoint *endpoint, const nt_address *address, const nt_connect_options *options,
                               uint32_t flags, nt_connection **ret_connection);
/* Sends a message that consists of the parts, in order; they are the caller's again when it returns. NT_NONBLOCK:
   -EAGAIN if the peer has too much to take; WRITABLE follows. 0, -EMSGSIZE, -EINVAL, -ENOTCONN (closed from here),
   -ECONNRESET (the bundle is lost), -ENOBUFS (to itself: the queue is full). */
NT_API int nt_connection_send(nt_connection *connection, const struct iovec *parts, int count, uint32_t flags);
/* What was sent leaves, nothing is sent any more. Does not wait. Of an incoming one: see nt_connection_reject. */
NT_API void nt_connection_close(nt_connection *connection);
NT_API nt_connection *nt_connection_ref(nt_connection *connection);
NT_API void nt_connection_unref(nt_connection *take_connection);
/* Of an incoming one: what comes on it is thrown away from now on, and nothing is told of it any more. The peer does
   not learn of it. 0, or -EINVAL: it is outgoing. */
NT_API int nt_connection_reject(nt_connection *connection);
/* Incoming: unique in its endpoint. Outgoing: the number that the peer knows it by, 0 while it is not connected. */
NT_API uint64_t nt_connection_id(const nt_connection *connection);
/* The bundle it belongs to: unique in the transport. 0: none yet. */
NT_API uint64_t nt_connection_bundle(const nt_connection *connection);
/* The other end's. Stands until the connection is unreferenced. */
NT_API nt_address nt_connection_address(const nt_connection *connection);

/* ---- Deliveries: never changed, so that any thread may look at them ---- */

NT_API void nt_delivery_unref(nt_delivery *take_delivery);
NT_API nt_delivery *nt_delivery_ref(nt_delivery *delivery);
NT_API enum nt_delivery_kind nt_delivery_type(const nt_delivery *delivery);
/* The end here that it is about, borrowed; NULL: none. */
NT_API nt_connection *nt_delivery_connection(const nt_delivery *delivery);
/* Its id, 0: none. */
NT_API uint64_t nt_delivery_id(const nt_delivery *delivery);
/* The bundle that it is about; what is lost with it: all connections with the same. */
NT_API uint64_t nt_delivery_bundle(const nt_delivery *delivery);
/* Of RECEIVED: its place among the connection's messages, from 1 on. */
NT_API uint64_t nt_delivery_number(const nt_delivery *delivery);
/* The message in one piece; its bytes stand until the delivery is unreferenced. Returns how many parts: 0 or 1. */
NT_API int nt_delivery_parts(const nt_delivery *delivery, const struct iovec **ret_parts);
/* The other end's; empty if it is about none. */
NT_API nt_address nt_delivery_address(const nt_delivery *delivery);
NT_API enum nt_reliability nt_delivery_reliability(const nt_delivery *delivery);
/* Of ERROR, CONNECTED, OUTGOING_CLOSED: a negative code, or 0. Of PINGED: nanoseconds. */
NT_API int64_t nt_delivery_code(const nt_delivery *delivery);
/* What happened, in words; "" if nothing needs to be said. */
NT_API const char *nt_delivery_text(const nt_delivery *delivery);
/* "Received", "ConnectionLost" …: what Network.Transport calls a type. Static; NULL: there is no such type. */
NT_API const char *nt_delivery_name(enum nt_delivery_kind type);

/* ---- Multicast: no backend has it yet, all answer -EOPNOTSUPP ---- */

typedef struct nt_multicast nt_multicast;
NT_API int nt_multicast_new(nt_endpoint *endpoint, nt_multicast **ret_group);
NT_API int nt_multicast_resolve(nt_endpoint *endpoint, const nt_address *address, nt_multicast **ret_group);

#ifdef __cplusplus
}
#endif
#endif
