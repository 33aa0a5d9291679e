/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of backends, options, names of codes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/core.h"

static const struct transport_backend *const backends[] = { &transport_tcp, &transport_memory };

#define OPTIONS_SIZE_MAX 4096u /* a size beyond it was never set */

bool transport_options_take(void *ret_options, size_t size, size_t first_size, const void *options)
{
    const unsigned char *bytes = options;
    size_t given;
    memcpy(&given, options, sizeof given);
    if (given < first_size || given > OPTIONS_SIZE_MAX) {
        return false;
    }
    for (size_t i = size; i < given; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    memset(ret_options, 0, size);
    memcpy(ret_options, options, given < size ? given : size);
    return true;
}

static bool options_bad(const struct nt_transport_options *options)
{
    uint32_t known = NT_TRANSPORT_UNADDRESSABLE | NT_TRANSPORT_DELAY | NT_TRANSPORT_KEEPALIVE | NT_TRANSPORT_CHECK_HOST;
    uint32_t reserved = options->flags & ~known;
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++) {
        reserved |= options->reserved[i];
    }
    return reserved != 0 || options->max_message > UINT32_MAX;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static void options_fill(struct nt_transport_options *options)
{
    options->backend = options->backend != NULL ? options->backend : "tcp";
    options->host = options->host != NULL ? options->host : "127.0.0.1";
    options->port = options->port != NULL ? options->port : "0";
    options->external_host = options->external_host != NULL ? options->external_host : options->host;
    options->backlog = or_default(options->backlog, SOMAXCONN);
    options->connect_timeout_ms = or_default(options->connect_timeout_ms, 10000);
    options->probe_timeout_ms = or_default(options->probe_timeout_ms, 10000);
    options->flush_timeout_ms = or_default(options->flush_timeout_ms, 1000);
    options->max_address = or_default(options->max_address, 1024);
    options->gather_us = or_default(options->gather_us, 200);
    options->max_message = options->max_message != 0 ? options->max_message : 64u << 20;
    options->max_peer = options->max_peer != 0 ? options->max_peer : 64u << 20;
    options->max_transport = options->max_transport != 0 ? options->max_transport : 256u << 20;
}

int nt_transport_open(const nt_transport_options *options, nt_transport **ret_transport)
{
    TRANSPORT_UNCANCELLED;
    struct nt_transport_options filled = NT_TRANSPORT_OPTIONS_INIT;
    if (options != NULL &&
        (!transport_options_take(&filled, sizeof filled, TRANSPORT_OPTIONS_FIRST, options) || options_bad(&filled))) {
        return -EINVAL;
    }
    options_fill(&filled);
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backends[i]->name, filled.backend) == 0) {
            return transport_new(backends[i], &filled, ret_transport);
        }
    }
    return -ENOENT;
}

const char *nt_transport_code(enum nt_transport_call call, int error)
{
    const char *last = "";
    switch (-error) {
    case EAGAIN:
        return "would block";
    case EINVAL:
        return "invalid";
    case EMSGSIZE:
        return "too long";
    default:
        break;
    }
#define NT_TRANSPORT_CODE(name, of, code, when)              \
    if (call == NT_CALL_##of) {                              \
        if (error == -(code)) {                              \
            return name;                                     \
        }                                                    \
        last = strstr(name, "Failed") != NULL ? name : last; \
    }
#include <nt/transport.def>
#undef NT_TRANSPORT_CODE
    return last;
}

int nt_multicast_new(nt_endpoint *endpoint, nt_multicast **ret_group)
{
    (void)ret_group;
    return transport_is_forked(endpoint->transport) ? -NT_EFORKED : -EOPNOTSUPP;
}

int nt_multicast_resolve(nt_endpoint *endpoint, const nt_address *address, nt_multicast **ret_group)
{
    (void)address;
    (void)ret_group;
    return transport_is_forked(endpoint->transport) ? -NT_EFORKED : -EOPNOTSUPP;
}
