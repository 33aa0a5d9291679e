/* SPDX-License-Identifier: BSD-3-Clause */
/* All objects of one log with sums that go together: what was counted when it was begun is in exactly one of them, even
   while the program folds closed objects into their parents all the time. Knows no file and no ring. */
#ifndef NT_SOURCE_LIVE_SNAPSHOT_H
#define NT_SOURCE_LIVE_SNAPSHOT_H

#include <stdbool.h>

#include "source/live/object.h"

struct live_snapshot;

struct live_snapshot *live_snapshot_new(void); /* NULL: no memory */
void live_snapshot_free(struct live_snapshot *take_snapshot);

/* Reads all objects; what was taken before is gone. 0, -ENOMEM, or -E2BIG. */
int live_snapshot_take(struct live_snapshot *snapshot, struct live_objects *objects);
/* Whether no way was found to make the sums go together: some may be missing or there twice. */
bool live_snapshot_is_moving(const struct live_snapshot *snapshot);
/* Passes each object that counts to the sink, as its `object`, and forgets it. Returns what that returned last. */
int live_snapshot_tell(struct live_snapshot *snapshot, const struct nt_source_sink *sink);

/* For tests: is called before each look at the log, NULL: nothing is. */
void live_snapshot_between(struct live_snapshot *snapshot, void (*call)(void *arg), void *arg);

#endif
