/* SPDX-License-Identifier: BSD-3-Clause */
/* See wire.h. */
#include "transport/tcp/wire.h"

#include <string.h>

int wire_frame(const uint8_t *bytes, size_t size, struct wire_frame *ret_frame)
{
    if (size < 4) {
        return 0;
    }
    struct wire_frame frame = { .type = wire_get(bytes) };
    switch (frame.type) {
    case WIRE_CLOSE_ENDPOINT:
    case WIRE_PROBE:
    case WIRE_PROBE_ACK:
        *ret_frame = frame;
        return 4;
    case WIRE_OPEN:
    case WIRE_CLOSE:
    case WIRE_CLOSE_SOCKET:
        break;
    default:
        if (frame.type < WIRE_FIRST) {
            *ret_frame = frame;
            return -1;
        }
        frame.number = frame.type;
        frame.type = WIRE_FIRST;
    }
    if (size < WIRE_HEAD_MAX) {
        return 0;
    }
    *(frame.type == WIRE_FIRST ? &frame.length : &frame.number) = wire_get(bytes + 4);
    *ret_frame = frame;
    return WIRE_HEAD_MAX;
}

int64_t wire_greeting(const uint8_t *bytes, size_t size, uint32_t most, struct wire_greeting *ret_greeting)
{
    struct wire_greeting greeting = { 0 };
    if (size < 8) {
        return 8;
    }
    greeting.version = wire_get(bytes);
    greeting.length = wire_get(bytes + 4);
    if (greeting.version == 0) {
        if (size < 16) {
            return 16;
        }
        greeting.endpoint = wire_get(bytes + 8);
        greeting.address_size = wire_get(bytes + 12);
        greeting.address = bytes + 16;
        if (greeting.address_size > most) {
            return -1;
        }
        if (size - 16 < greeting.address_size) {
            return 16 + (int64_t)greeting.address_size;
        }
    }
    *ret_greeting = greeting;
    return 0;
}

void wire_greeting_put(uint8_t *bytes, uint32_t endpoint, uint32_t address_size)
{
    wire_put(bytes, 0);
    wire_put(bytes + 4, 8 + address_size);
    wire_put(bytes + 8, endpoint);
    wire_put(bytes + 12, address_size);
}

bool wire_address(const void *bytes, size_t size, struct wire_address *ret_address)
{
    const char *text = bytes;
    const char *second = size > 0 ? memrchr(text, ':', size) : NULL;
    const char *first = second != NULL ? memrchr(text, ':', (size_t)(second - text)) : NULL;
    uint64_t endpoint = 0;
    if (first == NULL || first == text || second == first + 1 || second + 1 == text + size ||
        memchr(text, 0, size) != NULL) {
        return false;
    }
    for (const char *at = second + 1; at < text + size; at++) {
        if (*at < '0' || *at > '9' || (endpoint = endpoint * 10 + (uint64_t)(*at - '0')) > UINT32_MAX) {
            return false;
        }
    }
    *ret_address = (struct wire_address){ text, first + 1, (size_t)(first - text), (size_t)(second - first - 1),
                                          (uint32_t)endpoint };
    return true;
}
