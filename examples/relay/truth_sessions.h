/* SPDX-License-Identifier: BSD-3-Clause */
/* What each session did on each object, worked out from a truth file's series. */
#ifndef RELAY_TRUTH_SESSIONS_H
#define RELAY_TRUTH_SESSIONS_H

#include "text.h"
#include "truth.h"

/* Prints, each with a comma in front,
   "sessions": those that the process made;
   "session_sums": count and total of each session, object and kind, of what is over; session 0 is none;
   "in_flight": operations that were begun and are not over, at most one a thread: whether they are in the log, and
   in which of the two sessions, nobody can say; of a join, neither whether the read has followed.
   0 or a negative errno value. */
int truth_print_sessions(struct text *out, const struct truth *truth);

#endif
