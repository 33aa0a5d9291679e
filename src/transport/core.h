/* SPDX-License-Identifier: BSD-3-Clause */
/* What all backends stand on: transports with one lock, one driver and timers; endpoints with a queue a peer; ends of
   connections; deliveries. Knows no wire and no socket but those that a backend lets it watch. One lock a transport
   guards everything in it; "locked" means that the caller holds it. It is never held while a thread waits. References
   are counted by atomics and may be given back anywhere. */
#ifndef NT_TRANSPORT_CORE_H
#define NT_TRANSPORT_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION HASH_OAT /* the default one falls through in a switch, which clang warns of */
#include <uthash.h>
#include <utlist.h>

#include <nt/transport.h>

#include "transport/backend.h"

#define TRANSPORT_NEVER UINT64_MAX
#define TRANSPORT_MS UINT64_C(1000000)

/* ---- Things to do later, and descriptors to look at ---- */

struct transport_timer {
    struct transport_timer *next, *prev;
    uint64_t due;                                /* ns of the monotonic clock; 0: not set */
    void (*fire)(struct transport_timer *timer); /* locked; it is not set any more */
};

struct transport_watch {
    struct transport_watch *next, *prev; /* all that are watched */
    int fd;                              /* -1: not watched */
    uint32_t events;
    void (*ready)(struct transport_watch *watch, uint32_t events); /* locked */
};

/* What may not be freed yet, for a driver may have come back from the kernel with it. */
struct transport_grave {
    struct transport_grave *next;
    void (*bury)(struct transport_grave *grave);
};

struct nt_transport {
    const struct transport_backend *backend;
    atomic_uint users, refs; /* handles outside; these together count as one reference */
    pthread_mutex_t lock;
    pthread_cond_t changed, idle;        /* idle: the helper waits there */
    struct nt_transport_options options; /* no zeros for defaults in it; strings are the backend's */
    struct nt_transport_faults faults;
    int poll, wake, timer; /* descriptors: epoll, eventfd, timerfd */
    struct transport_watch wake_watch, timer_watch;
    struct transport_timer *timers; /* in no order */
    uint64_t armed;                 /* what the timerfd is set to, 0: nothing */
    struct transport_watch *watches;
    struct transport_grave *graves;
    struct nt_endpoint *endpoints;
    uint64_t bundles;              /* the last id given */
    uint64_t held;                 /* bytes that wait to be received */
    uint64_t drives;               /* how often somebody drove */
    uint64_t takes;                /* how often somebody asked for a delivery */
    uint64_t gathered;             /* when something was gathered last */
    uint32_t waiting;              /* threads that wait for `changed` */
    volatile unsigned char *alive; /* a page that a fork wipes */
    bool opened, closed, driven, blocked, woken, gathers, helper_runs, helper_stops, helper_dozes, helper_watches;
    pthread_t helper;
};

/* ---- Deliveries ---- */

struct nt_delivery {
    struct nt_delivery *next;
    atomic_uint refs;
    uint8_t type, reliability, parts;
    struct nt_connection *connection; /* a reference */
    uint64_t id, bundle, number;
    int64_t code;
    struct iovec part;  /* of `bytes` */
    nt_address address; /* `bytes`, or the connection's */
    const char *text;   /* likewise */
    uint8_t bytes[];
};

/* ---- Endpoints, peers, connections ---- */

struct nt_endpoint {
    struct nt_endpoint *next, *prev;
    struct nt_transport *transport; /* a reference */
    atomic_uint users, refs;        /* handles outside; these together count as one reference */
    char *address;
    size_t address_size;
    struct transport_peer *peers; /* by address */
    struct transport_peer *ready; /* those with deliveries, in turn */
    struct nt_delivery *last;     /* ENDPOINT_CLOSED, made in advance */
    uint64_t heavy;               /* the last id of a bundle in here, as the connections' ids have it */
    uint32_t selves;              /* the last number given to a connection to itself, 0: none */
    uint32_t flags, receiving;    /* threads in nt_endpoint_receive */
    int poll, event;              /* of nt_endpoint_fd, -1: nobody asked */
    bool closed, signalled;
};

/* Whoever has that address, one bundle after another. Lives while anything refers to it. */
struct transport_peer {
    UT_hash_handle hh;
    struct transport_peer *next, *prev; /* in `ready` */
    struct nt_endpoint *endpoint;       /* a reference */
    atomic_uint refs;
    struct nt_delivery *first, *last;
    uint64_t held;                             /* bytes of deliveries that wait */
    uint64_t bundle;                           /* 0: none */
    uint64_t heavy;                            /* of the bundle */
    uint32_t numbers;                          /* the last one given to a connection of the bundle from here, 0: none */
    struct nt_connection *outgoing, *incoming; /* open ones, by the number on the wire */
    struct nt_connection *connecting;          /* in order */
    struct nt_connection *blocked;             /* those whose send said -EAGAIN */
    bool listed, full;                         /* in `peers`; more than it may have waits, `room` is to be called */
    size_t address_size;
    char *address;
};

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_OPEN,
    CONNECTION_CLOSED, /* from here; of an incoming one: from there */
    CONNECTION_LOST,
    CONNECTION_REJECTED /* incoming: open, but nobody listens */
};

struct nt_connection {
    UT_hash_handle hh;                 /* in outgoing or incoming */
    struct nt_connection *next, *prev; /* in connecting or blocked */
    struct transport_peer *peer;       /* a reference */
    atomic_uint refs;
    uint32_t number; /* on the wire */
    uint8_t state, reliability;
    bool is_incoming, waits, is_blocked; /* waits: a thread waits in connect */
    int error;                           /* of a connect that failed */
    _Atomic uint64_t id, bundle;         /* may be asked for at any time, unlocked */
    uint64_t messages;
    struct transport_timer timeout;
};

/* Memory of a sender that waits, which a backend sends from instead of copying it. */
struct transport_lend {
    bool held;           /* the backend still reads it */
    struct iovec *parts; /* who lends frees them */
    int count, at;       /* parts; the first that did not leave whole */
    size_t offset, left; /* bytes of that part that left; that did not, of all */
    size_t before;       /* bytes that wait in front of it */
    uint8_t head[8];     /* the backend's own */
};

/* ---- Locking and waiting ---- */

uint64_t transport_now(void); /* ns, monotonic */
/* First in a call that locks or closes: it is no cancellation point, for a thread that ended in it would keep the lock
   or the driver's token. */
#define TRANSPORT_UNCANCELLED \
    __attribute__((cleanup(transport_cancel_restore), unused)) int cancel_state = transport_cancel_disable()
int transport_cancel_disable(void);
void transport_cancel_restore(const int *state);
/* False in a forked child: nothing may be touched. Else it is locked. */
bool transport_enter(struct nt_transport *transport);
void transport_leave(struct nt_transport *transport);
bool transport_is_forked(const struct nt_transport *transport);
enum { TRANSPORT_OPTIONS_FIRST = 136, ENDPOINT_OPTIONS_FIRST = 40, CONNECT_OPTIONS_FIRST = 40 }; /* first version's */
/* Options of a program that was built with fewer members than this, or with more, which must be zero: what is missing
   is zero. At least `first_size` bytes. */
bool transport_options_take(void *ret_options, size_t size, size_t first_size, const void *options);
int transport_new(const struct transport_backend *backend, const struct nt_transport_options *options,
                  struct nt_transport **ret_transport);
void transport_ref(struct nt_transport *transport);
void transport_unref(struct nt_transport *take_transport);
/* Locked: one turn of waiting, at most until the deadline: drives, or waits for who drives. */
void transport_turn(struct nt_transport *transport, uint64_t deadline);
/* Locked: something waits to be sent by the backend's `flush` within gather_us. */
void transport_gather(struct nt_transport *transport, uint64_t now);
/* Locked: something that another thread may wait for has changed. */
void transport_changed(struct nt_transport *transport);

/* Locked, all of them. */
void transport_timer_set(struct nt_transport *transport, struct transport_timer *timer, uint64_t due);
void transport_timer_clear(struct nt_transport *transport, struct transport_timer *timer);
int transport_watch_set(struct nt_transport *transport, struct transport_watch *watch, int fd, uint32_t events);
/* No more of its events; the descriptor is not closed. */
void transport_watch_clear(struct nt_transport *transport, struct transport_watch *watch);
/* All that is watched, and will be, is in that epoll descriptor too: it is readable when there is something to drive. 0
   or a negative code. */
int transport_mirror(struct nt_transport *transport, int poll);
/* Frees it once nobody can have it in hand. */
void transport_bury(struct nt_transport *transport, struct transport_grave *grave);

/* ---- Deliveries: made by backends, put into a peer's queue ---- */

/* NULL: no memory. The reference to the connection is taken. `size` bytes are the caller's to write. */
struct nt_delivery *delivery_new(enum nt_delivery_kind type, struct nt_connection *connection, size_t size);
/* Bytes that it counts for while it waits. */
uint64_t delivery_cost(const struct nt_delivery *delivery);
/* Locked. NULL is ignored: a delivery that there was no memory for is what a lost bundle is told by, later. */
void delivery_post(struct transport_peer *peer, struct nt_delivery *take_delivery);
/* The same, whatever the backend thinks of it. */
void delivery_post_now(struct transport_peer *peer, struct nt_delivery *take_delivery);
/* Locked: the next one, of the peers in turn; NULL: none. */
struct nt_delivery *delivery_take(struct nt_endpoint *endpoint);
/* Locked: posts one without a message; `connection` may be NULL, `text` is copied. */
void delivery_tell(struct transport_peer *peer, enum nt_delivery_kind type, struct nt_connection *connection,
                   int64_t code, const char *text);

/* ---- Peers and connections, locked ---- */

/* Closes it, once: nothing but ENDPOINT_CLOSED comes into its queue any more. */
void endpoint_shut(struct nt_endpoint *endpoint);
/* Makes the descriptor that can be polled say whether there is something. */
void endpoint_signal(struct nt_endpoint *endpoint);

struct transport_peer *peer_find(const struct nt_endpoint *endpoint, const void *address, size_t size);
/* Found or made; borrowed from the endpoint's list. NULL: no memory. */
struct transport_peer *peer_get(struct nt_endpoint *endpoint, const void *address, size_t size);
void peer_ref(struct transport_peer *peer);
void peer_unref(struct transport_peer *take_peer);
/* Takes it off the endpoint's list if it has neither bundle nor connections nor deliveries. */
void peer_settle(struct transport_peer *peer);
/* A new bundle: numbers for it. */
void peer_begin(struct transport_peer *peer);

/* An incoming connection: told to the endpoint. NULL: no memory. Borrowed. */
struct nt_connection *connection_accept(struct transport_peer *peer, uint32_t number, uint32_t reliability);
/* The peer closed it: told to the endpoint. */
void connection_end(struct nt_connection *connection);
/* A connect is done; the number is the one on the wire. */
int connection_opened(struct nt_connection *connection, uint32_t number);
void connection_failed(struct nt_connection *connection, int error, const char *text);
/* All connects that wait fail. */
void peer_refuse(struct transport_peer *peer, int error, const char *text);
/* The bundle is gone: all connections with it. `lost`: as an error that is told, with the reason; else silently but for
   ConnectionClosed of the incoming ones, if the peer is to be told of as closed. */
void peer_lose(struct transport_peer *peer, const char *text);
void peer_end(struct transport_peer *peer, bool tell);
/* Sends may go on. */
void peer_writable(struct transport_peer *peer);
struct nt_connection *connection_incoming(const struct transport_peer *peer, uint32_t number);

/* A message for an incoming connection, its bytes copied; not posted yet. NULL: no memory. */
struct nt_delivery *delivery_message(struct nt_connection *connection, const struct iovec *parts, int count,
                                     size_t size);

/* An endpoint's connections to itself: no backend sees them. */
bool peer_is_self(const struct transport_peer *peer);
void self_connect(struct nt_connection *connection);
int self_send(struct nt_connection *connection, const struct iovec *parts, int count, size_t size);
void self_close(struct nt_connection *connection);

#endif
