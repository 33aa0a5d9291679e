/* SPDX-License-Identifier: BSD-3-Clause */
/* Link keys, see <nt/link.h> and docs/format.md. Knows no log. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <nt/link.h>

#include "base/process.h"

#define TRANSPORT_ADDRESS 1024u

/* The second byte of a key with addresses. */
enum { FLAG_IPV6 = 1u, FLAG_HOST = 2u, FLAG_ADDRESSES = 4u, FLAG_NAMES = 8u, FLAG_INITIATOR_WRITES = 16u };

/* What is put into a key always fits. */
NT_LAYOUT_ASSERT(NT_LAYOUT_LINK_KEY >= 2 + 2 * (2 + TRANSPORT_ADDRESS) + 2 * (16 + 2) + 24 + 8);

static void put_bytes(nt_link_key *key, const void *bytes, size_t size)
{
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

/* Big-endian. */
static void put_number(nt_link_key *key, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0)
        key->bytes[key->size++] = (uint8_t)(number >> 8 * bytes);
}

static void put_host(nt_link_key *key, const nt_link_host *host)
{
    put_bytes(key, host->boot_id, sizeof(host->boot_id));
    put_number(key, host->network, 8);
}

int nt_link_host_get(nt_link_host *ret_host)
{
    nt_link_host host;
    struct stat status;
    int saved = errno, error = nt_process_boot_id(host.boot_id);
    if (error == 0 && syscall(SYS_newfstatat, AT_FDCWD, "/proc/thread-self/ns/net", &status, 0) != 0)
        error = -errno;
    errno = saved;
    if (error < 0)
        return error;
    host.network = status.st_ino;
    *ret_host = host;
    return 0;
}

/* ---- addresses ---- */

struct address {
    unsigned size; /* 4 or 16 */
    uint8_t bytes[16];
    uint16_t port;
};

/* An IPv4 address has one form, also where it is written as an IPv6 one. */
static bool address_take(const struct sockaddr *from, struct address *ret_address)
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    struct address address = { 0 };
    if (from && from->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, from, sizeof(v4));
        address.size = 4;
        memcpy(address.bytes, &v4.sin_addr, 4);
        address.port = ntohs(v4.sin_port);
    } else if (from && from->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, from, sizeof(v6));
        bool is_mapped = memcmp(&v6.sin6_addr, mapped, sizeof(mapped)) == 0;
        address.size = is_mapped ? 4 : 16;
        memcpy(address.bytes, (const uint8_t *)&v6.sin6_addr + 16 - address.size, address.size);
        address.port = ntohs(v6.sin6_port);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

static bool address_is_loopback(const struct address *address)
{
    static const uint8_t v6[16] = { [15] = 1 };
    return address->size == 4 ? address->bytes[0] == 127 : memcmp(address->bytes, v6, sizeof(v6)) == 0;
}

static void put_address(nt_link_key *key, const struct address *address)
{
    put_bytes(key, address->bytes, address->size);
    put_number(key, address->port, 2);
}

struct addresses {
    struct address first, second;
    uint32_t flags;
};

/* False: they are no two ends of a TCP connection, or need a host that is not told. */
static bool addresses_take(const struct sockaddr *first, const struct sockaddr *second, const nt_link_host *host,
                           struct addresses *ret)
{
    if (!address_take(first, &ret->first) || !address_take(second, &ret->second) || ret->first.size != ret->second.size)
        return false;
    bool local = address_is_loopback(&ret->first) || address_is_loopback(&ret->second);
    ret->flags = (ret->first.size == 16 ? FLAG_IPV6 : 0) | (local ? FLAG_HOST : 0);
    return !local || host;
}

static void put_addresses(nt_link_key *key, const struct addresses *addresses, const nt_link_host *host)
{
    put_address(key, &addresses->first);
    put_address(key, &addresses->second);
    if (addresses->flags & FLAG_HOST)
        put_host(key, host);
}

/* ---- keys ---- */

int nt_link_key_tcp(const struct sockaddr *writer, const struct sockaddr *reader, const nt_link_host *host,
                    nt_link_key *ret_key)
{
    struct addresses addresses;
    if (!addresses_take(writer, reader, host, &addresses))
        return -EINVAL;
    ret_key->size = 0;
    put_number(ret_key, NT_LINK_TCP, 1);
    put_number(ret_key, addresses.flags, 1);
    put_addresses(ret_key, &addresses, host);
    return 0;
}

static bool names_good(const nt_link_transport *transport)
{
    return transport->sender && transport->receiver && transport->sender_size <= TRANSPORT_ADDRESS &&
           transport->receiver_size <= TRANSPORT_ADDRESS;
}

int nt_link_key_transport(const nt_link_transport *transport, const nt_link_host *host, nt_link_key *ret_key)
{
    struct addresses addresses = { .flags = 0 };
    bool names = transport->sender || transport->receiver, ports = transport->initiator || transport->acceptor;
    if ((!names && !ports) || (names && !names_good(transport)) ||
        (ports && !addresses_take(transport->initiator, transport->acceptor, host, &addresses)))
        return -EINVAL;
    ret_key->size = 0;
    put_number(ret_key, NT_LINK_TRANSPORT, 1);
    put_number(ret_key,
               addresses.flags | (ports ? FLAG_ADDRESSES : 0) | (names ? FLAG_NAMES : 0) |
                   (transport->initiator_writes ? FLAG_INITIATOR_WRITES : 0),
               1);
    if (names) {
        put_number(ret_key, transport->sender_size, 2);
        put_bytes(ret_key, transport->sender, transport->sender_size);
        put_number(ret_key, transport->receiver_size, 2);
        put_bytes(ret_key, transport->receiver, transport->receiver_size);
    }
    if (ports)
        put_addresses(ret_key, &addresses, host);
    put_number(ret_key, transport->number, 8);
    return 0;
}

int nt_link_key_unix(const nt_link_host *host, uint64_t writer, uint64_t reader, nt_link_key *ret_key)
{
    if (!host)
        return -EINVAL;
    ret_key->size = 0;
    put_number(ret_key, NT_LINK_UNIX, 1);
    put_bytes(ret_key, host->boot_id, sizeof(host->boot_id));
    put_number(ret_key, writer, 8);
    put_number(ret_key, reader, 8);
    return 0;
}

int nt_link_key_pipe(const nt_link_host *host, uint64_t device, uint64_t inode, nt_link_key *ret_key)
{
    if (!host)
        return -EINVAL;
    ret_key->size = 0;
    put_number(ret_key, NT_LINK_PIPE, 1);
    put_bytes(ret_key, host->boot_id, sizeof(host->boot_id));
    put_number(ret_key, major(device), 4);
    put_number(ret_key, minor(device), 4);
    put_number(ret_key, inode, 8);
    return 0;
}

int nt_link_key_memory(uint64_t log, uint64_t serial, uint64_t number, nt_link_key *ret_key)
{
    ret_key->size = 0;
    put_number(ret_key, NT_LINK_MEMORY, 1);
    put_number(ret_key, log, 8);
    put_number(ret_key, serial, 8);
    put_number(ret_key, number, 8);
    return 0;
}
