/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers from text, strictly: the whole text, digits only, nothing that does not fit. */
#ifndef NT_BASE_PARSE_H
#define NT_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Decimal digits. 0, -NT_ESYNTAX (empty, or anything but digits) or -ERANGE. */
int nt_parse_u64(const char *data, size_t size, uint64_t *ret_number);
int nt_parse_u32(const char *data, size_t size, uint32_t *ret_number);
/* One hex digit, 0 to 15, or -1. */
int nt_parse_hex_digit(char byte);

#endif
