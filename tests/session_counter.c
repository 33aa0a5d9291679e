/* SPDX-License-Identifier: BSD-3-Clause */
/* session_counter TRUTH THREADS RING CAP SESSIONS SEED: threads that do nothing but change sessions and count in them,
   out of SESSIONS each, until somebody kills them: nearly every instruction is one inside a settlement, a fold, or the
   truth. On objects of their own, on one that they take in turn, on a shared one, on ones that come and go; sessions
   are made, ended, nested, and of anybody's ids. Keeps the relay's kind of truth, and prints an empty line when all
   are under way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"

enum { CHANNELS = 3, MARGIN = 8192, BATCH = 256 };

static struct {
    struct program program;
    struct watch shared, common;
    pthread_mutex_t common_lock;
    uint64_t sessions;
    _Atomic unsigned under_way;
} all;

struct counter { /* one thread */
    struct watch channels[CHANNELS], shared, self, brief;
    struct session *made; /* newest of each place */
    uint64_t random;
    unsigned number;
};

static uint64_t counter_random(struct counter *counter) /* xorshift64 */
{
    uint64_t x = counter->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return counter->random = x;
}

/* The truth has an end; from there on there is nothing to do but wait. */
static void counter_rest(const struct truth_header *header)
{
    while (header->series + MARGIN > header->series_room || header->objects + MARGIN > header->object_room ||
           header->tallies + MARGIN > header->tally_room || header->sessions + MARGIN > header->session_room)
        pause();
}

/* One of the thread's own, one of everybody's, a number of no log, or none. */
static nt_session counter_pick(struct counter *counter, uint64_t random)
{
    static const nt_session odd[] = {
        1, UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX
    };
    uint64_t which = random / 16 % all.sessions;
    switch (random % 16) {
    case 0:
        return 0;
    case 1:
        return odd[which % (sizeof odd / sizeof *odd)];
    case 2:
    case 3:
        return UINT64_C(0x5e55000000000001) + which;
    default:
        return counter->made[which].id;
    }
}

static void counter_session(struct counter *counter, uint64_t random)
{
    struct session *session = &counter->made[random / 8 % all.sessions];
    switch (random % 8) {
    case 0:
        watch_session_end(&counter->self, session);
        break;
    case 1:
        watch_session_stand(&counter->self, session);
        break;
    default: {
        char name[TRUTH_NAME];
        snprintf(name, sizeof name, "session %u", (unsigned)(random >> 32) % 1000);
        nt_session parent = random & 64 ? counter_pick(counter, counter_random(counter)) : 0;
        *session = watch_session_new(&counter->self, name, parent);
    }
    }
}

/* Each a message of one session. */
static void counter_message(struct counter *counter, struct watch *channel, uint64_t random)
{
    nt_session session = counter_pick(counter, counter_random(counter));
    uint64_t value = random >> 44;
    if (random & 1) {
        watch_session_set(channel, session);
        watch_count(channel, random & 2 ? NT_WRITE : NT_READ, value);
    } else {
        watch_count(channel, NT_READ, value);
        watch_session_join(channel, session, value);
    }
}

static void counter_common(struct counter *counter, uint64_t random)
{
    pthread_mutex_lock(&all.common_lock);
    watch_session_set(&all.common, counter_pick(counter, counter_random(counter)));
    watch_count(&all.common, NT_QUEUE, random >> 44);
    pthread_mutex_unlock(&all.common_lock);
}

static void counter_renew(struct counter *counter, uint64_t random)
{
    if (random & 1) {
        watch_succeed(&counter->channels[random / 2 % CHANNELS]);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "brief-%u", counter->number);
    watch_open(&all.program, &counter->brief,
               &(struct watch_options){ .name = name, .kind = NT_OBJECT_CHANNEL, .brief = true });
    watch_session_set(&counter->brief, counter_pick(counter, counter_random(counter)));
    watch_count(&counter->brief, NT_WRITE, random >> 40);
    watch_close(&counter->brief);
}

static void counter_step(struct counter *counter)
{
    /* More than an entry has tallies for: the third channel's are in blocks, the slow way. */
    static const nt_kind kinds[] = { NT_ERROR, NT_PING, NT_POLL, NT_WAIT, NT_DISK_READ };
    uint64_t random = counter_random(counter), choice = random >> 32 & 63;
    struct watch *channel = &counter->channels[random >> 24 & 1];
    if (choice == 0)
        counter_renew(counter, random);
    else if (choice < 4)
        counter_session(counter, random);
    else if (choice < 10)
        watch_count_in(&counter->shared, counter_pick(counter, random >> 8), NT_READ + (random & 1), random >> 44);
    else if (choice < 14)
        watch_count_in(channel, counter_pick(counter, random >> 8), NT_WRITE, random >> 44);
    else if (choice < 18)
        watch_count(&counter->channels[2], kinds[random % (sizeof kinds / sizeof *kinds)], random >> 44);
    else if (choice < 22)
        counter_message(counter, &counter->channels[2], random);
    else if (choice < 28)
        counter_common(counter, random);
    else if (choice < 36)
        watch_count(channel, NT_WRITE, random >> 44);
    else
        counter_message(counter, channel, random);
}

static void *counter_main(void *argument)
{
    struct counter *counter = argument;
    for (uint64_t batch = 0;; batch++) {
        counter_rest(all.program.truth.header);
        for (unsigned i = 0; i < BATCH; i++)
            counter_step(counter);
        all.under_way += batch == 0;
    }
    return NULL;
}

static bool counter_open(struct counter *counter, unsigned number)
{
    *counter = (struct counter){ .number = number };
    counter->shared = watch_share(&all.shared);
    counter->self = watch_share(&all.program.self);
    counter->random = program_random(&all.program) | 1;
    counter->made = calloc(all.sessions, sizeof *counter->made);
    for (unsigned i = 0; i < CHANNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "channel-%u-%u", number, i);
        watch_open(&all.program, &counter->channels[i],
                   &(struct watch_options){ .name = name, .kind = NT_OBJECT_CHANNEL });
    }
    return counter->made != NULL;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs("usage: session_counter TRUTH THREADS RING CAP SESSIONS SEED\n", stderr);
        return 2;
    }
    unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
    struct options options = { .truth = argv[1],
                               .ring_bytes = strtoull(argv[3], NULL, 10),
                               .cap_bytes = strtoull(argv[4], NULL, 10),
                               .seed = strtoull(argv[6], NULL, 10),
                               .sessions = true };
    all.sessions = strtoull(argv[5], NULL, 10);
    struct counter *counters = calloc(threads, sizeof *counters);
    if (!counters || !all.sessions || program_open(&all.program, &options, "counter", -1) < 0)
        return 1;
    pthread_mutex_init(&all.common_lock, NULL);
    watch_open(&all.program, &all.shared,
               &(struct watch_options){ .name = "shared", .kind = NT_OBJECT_OTHER, .shared = true });
    watch_open(&all.program, &all.common, &(struct watch_options){ .name = "common", .kind = NT_OBJECT_OTHER });
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (!counter_open(&counters[i], i) || pthread_create(&thread, NULL, counter_main, &counters[i]) != 0)
            return 1;
    }
    while (all.under_way < threads)
        usleep(200);
    puts("");
    fflush(stdout);
    pause();
    return 0;
}
