/* SPDX-License-Identifier: BSD-3-Clause */
/* What a change of session and one count cost their caller together, against floor64 in the same rounds: 16 objects in
   turn, each time the session drawn anew from so many (uniform revisits), all of which have their cells already.
   -again is the same with one session after the other, as where ids count up. */
#include <stdio.h>
#include <stdlib.h>

#include <nt/log.h>

#include "floor.h"
#include "harness.h"
#include "scratch.h"

#define FEW UINT32_C(16)
#define RING (UINT64_C(1) << 20)
#define CAP (UINT64_C(1) << 30)
#define BASE UINT64_C(0x5e55000000000000)
#define ROUNDS 30

struct changes {
    nt_object objects[FEW];
    uint64_t sessions; /* how many */
    uint64_t random, next;
};

#define INLINED __attribute__((flatten)) static void

INLINED run_changes(void *state, uint64_t operations)
{
    struct changes *kept = state;
    struct changes changes = *kept;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object object = changes.objects[i % FEW];
        changes.random = changes.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t drawn = (changes.random >> 32) * changes.sessions >> 32;
        nt_object_session_set(object, BASE + drawn);
        nt_object_count(object, NT_WRITE, i);
    }
    kept->random = changes.random;
}

INLINED run_again(void *state, uint64_t operations)
{
    struct changes *kept = state;
    struct changes changes = *kept;
    uint64_t next = changes.next;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object object = changes.objects[i % FEW];
        nt_object_session_set(object, BASE + next);
        nt_object_count(object, NT_WRITE, i);
        next = next + 1 < changes.sessions ? next + 1 : 0;
    }
    kept->next = next;
}

struct want {
    const char *name, *again;
    uint64_t sessions;
    double max_ratio;
};

static const struct want wants[] = {
    { "event-session-16", "event-session-16-again", 16, 2.0 },
    { "event-session-64k", "event-session-64k-again", 65536, 2.3 },
    { "event-session-1m", "event-session-1m-again", 1000000, 3.5 },
};

static int changes_init(struct changes *changes, nt_log *log, uint64_t sessions)
{
    *changes = (struct changes){ .sessions = sessions, .random = 1 };
    for (uint32_t i = 0; i < FEW; i++) {
        changes->objects[i] = scratch_object(log, "session-", i, NT_MASK_DEFAULT);
    }
    run_again(changes, 2 * sessions); /* each has its cell */
    run_changes(changes, 2 * RING / 64);
    return changes->objects[FEW - 1].handle != 0 ? 0 : -1;
}

static int compare(const struct want *want)
{
    struct bench_samples samples[3] = { 0 };
    struct floor64 floor;
    struct changes changes;
    nt_log *log = scratch_log("session", RING, CAP);
    int error = log != NULL && floor64_init(&floor) == 0 && changes_init(&changes, log, want->sessions) == 0 ? 0 : -1;
    if (error == 0) {
        const struct bench_variant variants[3] = {
            { "floor64", floor64_run, &floor, NULL },
            { want->name, run_changes, &changes, NULL },
            { want->again, run_again, &changes, NULL },
        };
        const struct bench_plan plan = { .clock = BENCH_CLOCK_TSC, .rounds = ROUNDS, .operations = 16384 };
        bench_compare(&plan, variants, 3, samples);
        error = scratch_log_is_whole(log) ? 0 : -1;
        floor64_fini(&floor);
    }
    scratch_log_free(log);
    if (error == 0) {
        bench_report(
            &(struct bench_row){ .name = want->name, .unit = "ns", .against = "floor64", .max_ratio = want->max_ratio },
            &samples[1], &samples[0]);
        bench_report(&(struct bench_row){ .name = want->again, .unit = "ns", .against = "floor64" }, &samples[2],
                     &samples[0]);
    }
    return error;
}

static int few(void)
{
    return compare(&wants[0]);
}

static int some(void)
{
    return compare(&wants[1]);
}

static int many(void)
{
    return compare(&wants[2]);
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "event-session-16 event-session-16-again", few },
        { "event-session-64k event-session-64k-again", some },
        { "event-session-1m event-session-1m-again", many },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
