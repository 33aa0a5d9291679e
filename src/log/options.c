/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs of options that grow from version to version: a program may have been built with fewer members than the
   library, or with more. */
#include <string.h>

#include "log/log.h"

#define OPTIONS_SIZE_MAX 4096u /* a size beyond it was never set */

bool log_options_take(void *ret_options, size_t size, size_t first_size, const void *options)
{
    size_t given;
    memcpy(&given, options, sizeof(given));
    if (given < first_size || given > OPTIONS_SIZE_MAX)
        return false;
    const unsigned char *bytes = options;
    for (size_t i = size; i < given; i++)
        if (bytes[i])
            return false;
    memset(ret_options, 0, size);
    memcpy(ret_options, options, given < size ? given : size);
    return true;
}
