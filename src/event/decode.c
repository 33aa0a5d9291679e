/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of events, see decode.h. */
#include "event/decode.h"

#include <string.h>

#include <nt/log_layout.h>

bool nt_event_field(const struct nt_event *event, uint8_t type, size_t *at, struct nt_event_value *ret_value)
{
    struct nt_event_value value = { .type = type };
    uint16_t size = 0;
    bool sized = type == NT_FIELD_BYTES || type == NT_FIELD_STRING;
    size_t left = event->data ? event->data_size - *at : 0;
    if (left < (sized ? sizeof size : sizeof value.as.u64))
        return false;
    const uint8_t *data = event->data + *at;
    if (sized) {
        memcpy(&size, data, sizeof size);
        if (left - sizeof size < size)
            return false;
        value.as.bytes = (struct nt_bytes){ (const char *)data + sizeof size, size };
        *at += sizeof size + size;
    } else {
        memcpy(&value.as, data, sizeof value.as.u64);
        *at += sizeof value.as.u64;
    }
    *ret_value = value;
    return true;
}
