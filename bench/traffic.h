/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as a busy program makes them, for what keeps and finds them: 1000 objects of which few are busy (Zipf), sizes
   that are log-normal, some 20 events a session with 4096 sessions at work at a time, four rings, 2 M events/s by a
   clock of 2.9 ticks a nanosecond. The same seed gives the same events. */
#ifndef NT_BENCH_TRAFFIC_H
#define NT_BENCH_TRAFFIC_H

#include <stdint.h>

#include "event/event.h"

#define TRAFFIC_OBJECTS 1000u
#define TRAFFIC_SESSIONS 4096u
#define TRAFFIC_RINGS 4u

struct traffic_object {
    uint64_t count[2], total[2];
    uint64_t session; /* of its last event */
};

struct traffic {
    uint64_t seed, made;
    double time; /* ns */
    uint64_t next_session;
    double shares[TRAFFIC_OBJECTS]; /* of all events, of it and those before */
    struct traffic_object objects[TRAFFIC_OBJECTS];
    uint64_t sessions[TRAFFIC_SESSIONS];
    uint64_t positions[TRAFFIC_RINGS];
};

void traffic_init(struct traffic *traffic, uint64_t seed);
void traffic_make(struct traffic *traffic, struct nt_event *events, size_t count);

#endif
