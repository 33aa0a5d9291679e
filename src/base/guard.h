/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a mapped file that another process may cut at any moment: the fault (SIGBUS) turns the rest of the
   mapping into zeros and is remembered, so that what reads goes on, with nonsense, up to its next check.
   Knows nothing of what is mapped. */
#ifndef NT_BASE_GUARD_H
#define NT_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct nt_guard;

/* Guards a mapping of whole pages until nt_guard_free. Puts the SIGBUS handler in front of the one that stands
   there (the process's, for all threads), which gets what is not ours. NULL: out of memory. */
struct nt_guard *nt_guard_new(void *base, size_t size);
/* Before the mapping goes. NULL is ignored. */
void nt_guard_free(struct nt_guard *take_guard);
/* Whether a page was missing: what was read since then is worthless. */
bool nt_guard_hit(const struct nt_guard *guard);

#endif
