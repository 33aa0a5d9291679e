/* SPDX-License-Identifier: BSD-3-Clause */
/* What bare_count counts and bare_check expects: values follow from the number of the event, so that each event
   and each sum can be checked by itself, without a file that would slow the counting down. */
#ifndef TESTS_BARE_H
#define TESTS_BARE_H

#include <stdint.h>

#define BARE_CHANNELS 3 /* a thread; named "channel-…", of one thread each */
#define BARE_SHARED "shared"
#define BARE_SHARED_VALUE 7 /* of every event on it */
#define BARE_CYCLE 65536    /* values of a channel go round: 1, 2, … 65535, 0 */

static inline uint64_t bare_value(uint64_t count)
{
    return count % BARE_CYCLE;
}

/* The sum of the values of events 1 to count. */
static inline uint64_t bare_total(uint64_t count)
{
    uint64_t cycles = count / BARE_CYCLE, rest = count % BARE_CYCLE;
    return cycles * (BARE_CYCLE * (BARE_CYCLE - UINT64_C(1)) / 2) + rest * (rest + 1) / 2;
}

static inline uint64_t bare_max(uint64_t count)
{
    return count < BARE_CYCLE ? count : BARE_CYCLE - 1;
}

#endif
