/* SPDX-License-Identifier: BSD-3-Clause */
/* What sessions are called, by their ids. Names stay when the program that gave them has forgotten them, as its events
   may still be shown; when they are too many, all are let go, and those that are still told come again. */
#ifndef NT_MODEL_SESSION_NAMES_H
#define NT_MODEL_SESSION_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define NT_SESSION_NAMES_BYTES ((size_t)32 << 20) /* of memory, about */

struct nt_session_names;

/* 0 or -ENOMEM. */
int nt_session_names_new(struct nt_session_names **ret_names);
void nt_session_names_free(struct nt_session_names *take_names);
/* Keeps the first name of a session; one that is empty is none. 0 or -ENOMEM. */
int nt_session_names_add(struct nt_session_names *names, uint64_t session, struct nt_bytes name);
/* Empty if it has none. Stands until the next name is added. */
struct nt_bytes nt_session_names_find(const struct nt_session_names *names, uint64_t session);

#endif
