/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on stream sockets: framed, numbered, checked, and counted on the channel's object. */
#ifndef RELAY_WIRE_H
#define RELAY_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "watch.h"

enum frame_type {
    FRAME_HELLO = 1, /* first on a connection: who speaks (worker), for what (id; 0: itself, else a job's); from the
                        source it brings the session that stands */
    FRAME_REQUEST,
    FRAME_RESULT,
    FRAME_PING,
    FRAME_PONG,
    FRAME_AGAIN, /* nothing follows on this connection; another one is made */
    FRAME_END    /* nothing follows; id: how many requests or results were sent in all */
};

struct frame { /* both ends run on one machine: native byte order */
    uint32_t magic;
    uint16_t type;
    uint16_t worker;
    uint32_t size;     /* of the payload */
    uint32_t checksum; /* of the request's payload, kept in the result */
    uint64_t id;
    uint64_t sequence; /* of the message on its connection, from 1 */
    uint64_t sent;     /* by the source, watch_clock */
    uint64_t session;  /* the request's; of what keeps connections up: the one that stands */
};
_Static_assert(sizeof(struct frame) == 48, "frame");

enum { WIRE_PAYLOAD_MAX = 16 * 1024 * 1024 };

struct message {
    struct message *next; /* for queues */
    struct frame frame;
    uint8_t payload[];
};

/* NULL: no memory. */
struct message *message_new(enum frame_type type, nt_session session, uint64_t id, uint32_t size);
/* NULL is ignored. */
void message_free(struct message *take_message);
/* In a child forked from a process of several threads, where malloc may be locked for ever: from here on
   messages are mapped. What was allocated before is not freed any more. */
void message_forked(void);
/* Bytes on the wire, which is what a write or read of it measures. */
uint64_t message_size(const struct message *message);
uint32_t message_checksum(const struct message *message);

struct channel {
    int fd; /* -1: none */
    uint64_t sent, received;
    bool session_first; /* a message's session is set before its read is counted; else the read joins it after */
    struct watch watch;
};

/* Sends it, whole, and counts a write in that session, the message's own or one below it; or counts an error and
   returns a negative errno value. The message stays the caller's. */
int channel_send(struct channel *channel, nt_session session, struct message *message);
/* The same of a message without payload, in its own session. */
int channel_signal(struct channel *channel, nt_session session, enum frame_type type, uint64_t id, uint16_t worker);
/* Looks for a message (a poll where there is none), waits for it (a wait), in no session, and counts the read, in the
   one that the message names. `waiter` is what poll and wait are counted on, NULL: the channel. 1 and a message that
   the caller frees, 0 at the end of the stream, or a negative errno value, counted as an error. */
int channel_receive(struct channel *channel, struct watch *waiter, struct message **ret_message);
/* The same where nothing is watched yet; channel_read_counts counts it when there is. */
int channel_receive_hello(struct channel *channel, struct message **ret_message);
void channel_read_counts(struct channel *channel, const struct message *message);
void channel_shut(struct channel *channel);

/* Waits until the socket is readable: 1, 0 when the time is over, or a negative errno value. */
int wire_wait(int fd, uint64_t timeout_ms);

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

/* A listening socket: TCP on the loopback interface, or where that is not to be had, and if !tcp, a Unix one
   of an abstract name. A descriptor or a negative errno value. */
int wire_listen(bool tcp, struct address *ret_address);
/* Each gives a blocking descriptor whose operations time out, or a negative errno value. */
int wire_connect(const struct address *address, uint64_t timeout_s);
int wire_accept(int listener, uint64_t timeout_s);
/* Sets the timeouts of a socket. */
void wire_timeout(int fd, uint64_t timeout_s);

#endif
