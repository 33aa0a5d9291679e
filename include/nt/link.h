/* SPDX-License-Identifier: BSD-3-Clause */
/* Link keys: bytes that both ends of a channel can make by themselves, alike at both and unlike those of any other
   link at the same time. Nothing is sent for it. docs/format.md, "Link keys", has them byte by byte.
   A key is of one direction: who reads names the same writer and reader as who writes does, and an object that does
   both has one key for each direction. Pass it to nt_object_link_set.
   All may be called from anywhere, handlers too. Errors: 0, or -EINVAL and what nt_link_host_get says. */
#ifndef NT_LINK_H
#define NT_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include <nt/log.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NT_LINK_TYPE(number, symbol, name, text) NT_LINK_##symbol = number,
enum nt_link_type {
#include <nt/links.def>
    NT_LINK_OWN = 128 /* the first one that applications may use as they like */
};
#undef NT_LINK_TYPE

typedef struct nt_link_key {
    size_t size;
    uint8_t bytes[NT_LAYOUT_LINK_KEY];
} nt_link_key;

/* Where addresses that do not leave a machine mean the same. */
typedef struct nt_link_host {
    uint8_t boot_id[16];
    uint64_t network; /* inode of the network namespace */
} nt_link_host;

/* The calling thread's. 0, or a negative code if /proc cannot be read; *ret_host is untouched then. */
NT_API int nt_link_host_get(nt_link_host *ret_host);

/* As getsockname and getpeername give them. host is used for loopback addresses only, and may be NULL for others. */
NT_API int nt_link_key_tcp(const struct sockaddr *writer, const struct sockaddr *reader, const nt_link_host *host,
                           nt_link_key *ret_key);

/* Start from all zeros. */
typedef struct nt_link_transport {
    const void *sender; /* its transport address; both NULL if one of them has none, or is not known at the other end */
    size_t sender_size; /* at most 1024 bytes */
    const void *receiver;
    size_t receiver_size;
    const struct sockaddr *initiator; /* of the TCP connection; both NULL where these are not the same at both ends */
    const struct sockaddr *acceptor;
    uint64_t number;       /* of the connection, as the sender gave it */
    bool initiator_writes; /* else the acceptor does */
} nt_link_transport;
/* Names or addresses must be there, or both. */
NT_API int nt_link_key_transport(const nt_link_transport *transport, const nt_link_host *host, nt_link_key *ret_key);

/* Inodes of the two sockets: one's own by fstat, the other's by sock_diag. */
NT_API int nt_link_key_unix(const nt_link_host *host, uint64_t writer, uint64_t reader, nt_link_key *ret_key);
/* st_dev and st_ino of either end. */
NT_API int nt_link_key_pipe(const nt_link_host *host, uint64_t device, uint64_t inode, nt_link_key *ret_key);
/* The log in which the queue was made, a serial number of the queue there, and a number of the link in the queue. */
NT_API int nt_link_key_memory(uint64_t log, uint64_t serial, uint64_t number, nt_link_key *ret_key);

#ifdef __cplusplus
}
#endif
#endif
