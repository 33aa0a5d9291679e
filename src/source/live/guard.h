/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a mapped file that another process may cut at any moment: the fault (SIGBUS) turns the rest of the
   mapping into zeros and is remembered, so that what reads goes on, with nonsense, up to its next check.
   Knows nothing of what is mapped. */
#ifndef NT_SOURCE_LIVE_GUARD_H
#define NT_SOURCE_LIVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct live_guard;

/* Guards a mapping of whole pages until live_guard_free. Puts the SIGBUS handler in front of the one that stands
   there (the process's, for all threads), which gets what is not ours. NULL: out of memory. */
struct live_guard *live_guard_new(void *base, size_t size);
/* Before the mapping goes. NULL is ignored. */
void live_guard_free(struct live_guard *take_guard);
/* Whether a page was missing: what was read since then is worthless. */
bool live_guard_hit(const struct live_guard *guard);

#endif
