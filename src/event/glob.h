/* SPDX-License-Identifier: BSD-3-Clause */
/* SQL's GLOB: the whole text must match; `*` any bytes, `?` one character, `[a-z]` one of these, `[^a-z]` one that is
   not. A `]` that comes first in brackets is itself. Bytes that are no UTF-8 are characters of their own. */
#ifndef NT_EVENT_GLOB_H
#define NT_EVENT_GLOB_H

#include <stdbool.h>

#include "base/bytes.h"

/* NULL, or what is wrong with the pattern, in a few static words. */
const char *nt_glob_check(struct nt_bytes pattern);
/* Takes pattern × text steps at most, whatever stars there are. A pattern that is wrong matches nothing. */
bool nt_glob_match(struct nt_bytes pattern, struct nt_bytes text);

#endif
