/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp backend: what its files know of each other. One socket a bundle, non-blocking, looked at when the transport
   is driven. All calls are made with the transport locked. */
#ifndef NT_TRANSPORT_TCP_TCP_H
#define NT_TRANSPORT_TCP_TCP_H

#include <netdb.h>

#include "transport/core.h"
#include "transport/tcp/wire.h"

#define TCP_SCRATCH (256u << 10)
#define TCP_LEND (256u << 10) /* bytes: longer messages are not copied if the sender waits */
#define TCP_PENDING_MAX 1024u /* incoming sockets whose handshake is not done */

struct tcp_socket;

struct tcp {
    struct nt_transport core;
    struct transport_watch listener;
    struct lookup *lookups;         /* names that wait for a thread */
    uint32_t looking;               /* threads that look names up */
    struct transport_timer backoff; /* no descriptors: accepting goes on then */
    char *host, *port;              /* that addresses have */
    uint32_t endpoints;             /* how many were made */
    struct tcp_socket *pending;     /* incoming, handshake not done; oldest first */
    struct tcp_socket *ending;      /* what was sent leaves, what comes is thrown away */
    struct tcp_socket *gathering;   /* bundles whose messages wait to leave together */
    struct tcp_socket *hot;         /* the bundle that was heard of last */
    uint32_t pending_count;
    uint8_t *scratch; /* TCP_SCRATCH + WIRE_HEAD_MAX bytes */
};

enum tcp_state {
    PEER_NONE,    /* no bundle, nor one in the making */
    PEER_LOOKUP,  /* the name is looked up by a thread */
    PEER_DIAL,    /* the socket connects */
    PEER_GREET,   /* the answer to the handshake is awaited */
    PEER_CROSSED, /* … was "crossed": theirs is awaited */
    PEER_VALID,
    PEER_CLOSING /* we said CloseSocket: nothing is sent until that is settled */
};

struct tcp_peer {
    struct transport_peer core;
    enum tcp_state state;
    struct tcp_socket *socket; /* from PEER_DIAL on, but for PEER_CROSSED */
    struct tcp_socket *parked; /* theirs, to be decided on later */
    size_t unsent;             /* while closing: bytes that waited when it was looked at */
    uint32_t last_in;          /* the last connection that they opened, 0: none */
    uint64_t lookup;           /* number of the lookup that is awaited */
    struct addrinfo *found, *next;
    struct transport_timer dialing; /* the bundle in the making takes too long */
    struct transport_timer closing; /* the answer to CloseSocket does */
    struct transport_timer probe;   /* when the answer to one is late, or the next one is due */
    bool probing, asked;            /* asked: by the program */
    uint64_t probed, heard;         /* when */
    uint64_t probe_sent;            /* likewise; `probed` is put off by any sign of life */
};

enum tcp_role { SOCKET_INCOMING, SOCKET_OUTGOING, SOCKET_BUNDLE, SOCKET_ENDING, SOCKET_PARKED };

struct tcp_socket {
    struct transport_grave grave;
    struct transport_watch watch;
    struct transport_timer timer; /* handshakes, endings */
    struct tcp_socket *next, *prev;
    struct tcp *tcp;
    struct tcp_peer *peer; /* NULL: incoming, or ending */
    enum tcp_role role;
    bool paused, shut;           /* not read from; nothing is sent behind what waits */
    bool gathers;                /* what waits to be sent does so to leave together */
    uint32_t burst;              /* messages sent shortly after one another */
    uint64_t sent, takes, since; /* the last one: when, and the transport's takes then; since when it gathers */
    uint64_t skip;               /* bytes of a greeting of another version that are thrown away */
    uint8_t head[WIRE_HEAD_MAX]; /* the begin of a frame whose rest did not come yet */
    uint32_t head_size;
    struct nt_delivery *body; /* a message that did not come whole yet */
    size_t body_have;
    uint8_t *out; /* waits to be sent */
    size_t out_at, out_size, out_room;
    struct transport_lend *lent; /* waits among it, in a sender's memory */
    uint8_t *greeting;           /* incoming */
    size_t greeting_size, greeting_room;
};

/* ---- socket.c ---- */

/* Takes the descriptor: non-blocking, not inherited. NULL: no memory, and it is closed. */
struct tcp_socket *socket_new(struct tcp *tcp, int take_fd, enum tcp_role role);
/* Closed at once; what waits is thrown away. NULL is ignored. */
void socket_close(struct tcp_socket *take_socket);
/* What waits leaves, then its end is said, and what comes is thrown away until theirs; bounded. */
void socket_end(struct tcp_socket *take_socket);
/* Sends the parts, or keeps what does not leave at once. 0, or -errno: the socket is broken. */
int socket_send(struct tcp_socket *socket, const struct iovec *parts, int count);
/* The same with a message, which may wait for others of a burst, or, if it is long, in the memory that is lent. */
int socket_send_message(struct tcp_socket *socket, const struct iovec *parts, int count, size_t size,
                        struct transport_lend *lend);
/* Sends what waits. 0 or -errno. */
int socket_flush(struct tcp_socket *socket);
size_t socket_waiting(const struct tcp_socket *socket);
/* Bytes that wait, up to which senders that wait go on. */
size_t socket_low_water(const struct tcp *tcp);
/* Looks at it for what its role and its state need. */
int socket_watch(struct tcp_socket *socket);
/* TCP_NODELAY and what else the options say. */
void socket_options(const struct tcp *tcp, int fd);

/* ---- incoming.c ---- */

int incoming_listen(struct tcp *tcp);
/* A socket that somebody opened to here: its handshake is awaited. */
void incoming_begin(struct tcp *tcp, int take_fd);
void incoming_ready(struct tcp_socket *socket);
/* Answers that it is accepted and makes it the peer's bundle. */
void incoming_accept(struct tcp_socket *take_socket, struct tcp_peer *peer);
/* Answers, and ends it. */
void incoming_answer(struct tcp_socket *take_socket, enum wire_answer answer);

/* ---- dial.c ---- */

/* Begins a bundle to a peer in state PEER_NONE. */
void dial(struct tcp_peer *peer);
void dial_ready(struct tcp_socket *socket);
/* Gives up a bundle in the making; connects that wait are left as they are. */
void dial_stop(struct tcp_peer *peer);
/* One more waits for it: it may take as long as that one may. */
void dial_extend(struct tcp_peer *peer, const struct nt_connection *connection);

/* ---- bundle.c ---- */

/* The socket is up: what waits to be connected is. */
void bundle_begin(struct tcp_peer *peer, struct tcp_socket *take_socket);
/* Whether something came. */
bool bundle_read(struct tcp_socket *socket);
/* All that was sent could leave: go on. */
void bundle_flushed(struct tcp_peer *peer);
void bundle_lose(struct tcp_peer *peer, const char *text);
/* Sends what waits of a burst, or loses the bundle. */
void bundle_send_gathered(struct tcp_socket *socket);
int bundle_open(struct nt_connection *connection);
int bundle_control(struct tcp_peer *peer, uint32_t type, uint32_t number);
/* Nothing is open either way: says so. */
void bundle_try_close(struct tcp_peer *peer);
/* Asks whether it is there. 0, -EALREADY, -ENOENT. */
int bundle_probe(struct tcp_peer *peer, bool asked);
/* There is no bundle any more: goes on with what waits for that. */
void bundle_over(struct tcp_peer *peer);

static inline struct tcp_peer *tcp_peer_of(struct transport_peer *peer)
{
    return (struct tcp_peer *)(void *)peer;
}

static inline struct tcp *tcp_of(const struct tcp_peer *peer)
{
    return (struct tcp *)(void *)peer->core.endpoint->transport;
}

#endif
