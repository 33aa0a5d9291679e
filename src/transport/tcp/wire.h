/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of network-transport-tcp, protocol version 0: handshakes, frames and addresses. Pure: bytes in, numbers
   out. All numbers are unsigned, 32 bits, big-endian. Source: network-transport-tcp 0.8.6. */
#ifndef NT_TRANSPORT_TCP_WIRE_H
#define NT_TRANSPORT_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an acceptor answers. */
enum wire_answer {
    WIRE_ACCEPTED = 0,
    WIRE_INVALID = 1, /* no such endpoint */
    WIRE_CROSSED = 2,
    WIRE_HOST_MISMATCH = 3,                /* three strings follow: claimed, numeric, resolved host */
    WIRE_UNSUPPORTED_VERSION = 0xffffffffu /* the version wanted follows */
};

/* What comes first in a frame; from WIRE_FIRST on it is the connection that a message is for. */
enum wire_type {
    WIRE_OPEN = 0,           /* connection */
    WIRE_CLOSE = 1,          /* connection */
    WIRE_CLOSE_SOCKET = 2,   /* last connection that the peer opened, 0: none */
    WIRE_CLOSE_ENDPOINT = 3, /* nothing */
    WIRE_PROBE = 4,          /* nothing */
    WIRE_PROBE_ACK = 5,      /* nothing */
    WIRE_FIRST = 1024        /* length, and so many bytes */
};

#define WIRE_HEAD_MAX 8u /* bytes before a message */

struct wire_frame {
    uint32_t type;   /* enum wire_type */
    uint32_t number; /* of the connection; of WIRE_CLOSE_SOCKET: of the last one */
    uint32_t length; /* of the message behind the head */
};

/* Reads the head of a frame. Returns its bytes; 0: there are too few; -1: a type that does not exist (in `type`). */
int wire_frame(const uint8_t *bytes, size_t size, struct wire_frame *ret_frame);

/* What the initiator of a socket sends first. */
struct wire_greeting {
    uint32_t version;
    uint32_t length;        /* of what follows these two; of other versions: all that is known */
    uint32_t endpoint;      /* that is wanted */
    const uint8_t *address; /* of the initiator, in the bytes given; may be empty */
    uint32_t address_size;
};

/* Reads as much as there is. Returns 0: whole; else how many bytes it takes at least to go on (more than `size`); -1:
   the address is longer than `most`. Of another version than 0, 8 bytes are whole. */
int64_t wire_greeting(const uint8_t *bytes, size_t size, uint32_t most, struct wire_greeting *ret_greeting);
/* Into 16 bytes; the address is to follow. */
void wire_greeting_put(uint8_t *bytes, uint32_t endpoint, uint32_t address_size);

static inline void wire_put(uint8_t *bytes, uint32_t number)
{
    bytes[0] = (uint8_t)(number >> 24);
    bytes[1] = (uint8_t)(number >> 16);
    bytes[2] = (uint8_t)(number >> 8);
    bytes[3] = (uint8_t)number;
}

static inline uint32_t wire_get(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* host:port:endpoint, taken apart from the right; the endpoint is decimal, of 32 bits. */
struct wire_address {
    const char *host, *port; /* not terminated */
    size_t host_size, port_size;
    uint32_t endpoint;
};

/* False: it is none. */
bool wire_address(const void *bytes, size_t size, struct wire_address *ret_address);

#endif
