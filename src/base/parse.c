/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers from text, see parse.h. */
#include "base/parse.h"

#include <nt/error.h>

int nt_parse_u64(const char *data, size_t size, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (size == 0)
        return -NT_ESYNTAX;
    for (size_t i = 0; i < size; i++) {
        if (data[i] < '0' || data[i] > '9')
            return -NT_ESYNTAX;
    }
    for (size_t i = 0; i < size; i++) {
        uint64_t digit = (uint64_t)(data[i] - '0');
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) || __builtin_add_overflow(number, digit, &number))
            return -ERANGE;
    }
    *ret_number = number;
    return 0;
}

int nt_parse_u32(const char *data, size_t size, uint32_t *ret_number)
{
    uint64_t number;
    int error = nt_parse_u64(data, size, &number);
    if (error != 0)
        return error;
    if (number > UINT32_MAX)
        return -ERANGE;
    *ret_number = (uint32_t)number;
    return 0;
}

int nt_parse_hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}
