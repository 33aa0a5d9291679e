/* SPDX-License-Identifier: BSD-3-Clause */
/* What one log counted in which session, and the sessions that it knows by name. Every count that was made before
   live_sessions_begin is in exactly one session's sum, also while the program goes on; see session.c for what can be
   said where it changes sessions faster than they are read. Memory is in proportion to what the log has: some four
   times its cells, and 100 bytes for each tally of an object in a session. */
#ifndef NT_SOURCE_LIVE_SESSION_H
#define NT_SOURCE_LIVE_SESSION_H

#include <stdint.h>

#include "source/live/clock.h"
#include "source/live/map.h"
#include "source/source.h"

struct live_sessions;

struct live_sessions *live_sessions_new(void); /* NULL: no memory */
void live_sessions_free(struct live_sessions *take_sessions);

/* For each log: begin, then live_sessions_object for each object, all of which are read after begin, then
   live_sessions_tell. 0, -ENOMEM or -E2BIG. */
int live_sessions_begin(struct live_sessions *sessions, struct live_map *map);
int live_sessions_object(struct live_sessions *sessions, const struct nt_source_object *object);
/* Tells the sink's `given` and `session`. `moving`: the objects' sums may not go together. Returns what the sink
   returned last, or a negative code. */
int live_sessions_tell(struct live_sessions *sessions, const struct live_clock *clock, uint32_t program, bool moving,
                       const struct nt_source_sink *sink);
/* What in the log cannot be, in one line; NULL: nothing was found. Stands until the next begin. */
const char *live_sessions_odd(const struct live_sessions *sessions);

/* The name of a session that the log's program made and remembers: its size, 0: not known, or none. */
size_t live_session_name(struct live_map *map, uint64_t session, char room[NT_SOURCE_SESSION_NAME]);

/* For tests: is called between looks at the log, NULL: nothing is. */
void live_sessions_between(struct live_sessions *sessions, void (*call)(void *arg), void *arg);

#endif
