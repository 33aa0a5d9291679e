/* SPDX-License-Identifier: BSD-3-Clause */
/* A piece of memory that somebody else holds. */
#ifndef NT_BASE_BYTES_H
#define NT_BASE_BYTES_H

#include <stddef.h>

struct nt_bytes { /* borrowed, not terminated, any bytes */
    const char *data;
    size_t size;
};

#endif
