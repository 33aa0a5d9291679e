/* SPDX-License-Identifier: BSD-3-Clause */
/* Points in time as people write and read them; inside they are nanoseconds since 1970. Reads no clock and knows
   no zone but the one that a text names. */
#ifndef NT_BASE_TIME_H
#define NT_BASE_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* RFC 3339 ("2024-05-01T10:00:00.25Z", "2024-05-01 12:00:00+02:00"; a day alone is its first moment in UTC), digits
   beyond nanoseconds are cut; or a length of time before `now`: "-5s", with ns, us, ms, s, m, h or d.
   0, -NT_ESYNTAX, or -ERANGE (no such day or hour, before 1970, after 2554, earlier than 1970 from now). */
int nt_time_parse(const char *data, size_t size, uint64_t now, uint64_t *ret_time);
/* Appends RFC 3339 in UTC with all nine digits: exact, always 30 characters. */
void nt_time_append(struct nt_buffer *buffer, uint64_t time);

#endif
