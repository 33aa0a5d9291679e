/* SPDX-License-Identifier: BSD-3-Clause */
/* kill_counter TRUTH THREADS RING SEED: threads that do nothing but count, on objects of their own, on a shared
   one, on ones that come and go, until somebody kills them: nearly every instruction is one inside an operation
   of the log or of the truth. Keeps the relay's kind of truth. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"

enum { CHANNELS = 4, MARGIN = 4096 };

struct counter {
    struct program *program;
    struct watch channels[CHANNELS], shared, brief;
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
           header->tallies + MARGIN > header->tally_room)
        pause();
}

static void counter_renew(struct counter *counter, uint64_t random)
{
    struct watch *channel = &counter->channels[random % CHANNELS];
    if (random & 1024) {
        watch_succeed(channel);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "brief-%u", counter->number);
    watch_open(counter->program, &counter->brief,
               &(struct watch_options){ .name = name, .kind = NT_OBJECT_CHANNEL, .brief = true });
    watch_count(&counter->brief, NT_WRITE, random >> 40);
    watch_close(&counter->brief);
}

static void counter_done(struct watch *channel, uint64_t value)
{
    char path[] = "/item/0";
    path[sizeof path - 2] = (char)('0' + value % 10);
    watch_done(channel, &(struct watch_done){ value % 10, value, path, 0.5 });
}

static void *counter_main(void *argument)
{
    struct counter *counter = argument;
    static const nt_kind kinds[] = { NT_WRITE, NT_READ, NT_WAIT, NT_ERROR, NT_PING, NT_POLL, NT_QUEUE };
    for (;;) {
        counter_rest(counter->program->truth.header);
        for (unsigned i = 0; i < 256; i++) {
            uint64_t random = counter_random(counter), value = random >> 44;
            struct watch *channel = &counter->channels[random % CHANNELS];
            nt_kind kind = kinds[(random >> 8) % (sizeof kinds / sizeof *kinds)];
            unsigned choice = (unsigned)(random >> 16) % 64;
            if (choice == 0)
                counter_renew(counter, random);
            else if (choice < 8)
                counter_done(channel, value);
            else if (choice < 24)
                watch_count(&counter->shared, kind, value);
            else if (choice < 40)
                watch_count_at(channel, kind, value, nt_now());
            else
                watch_count(channel, kind, value);
        }
    }
    return NULL;
}

static void counter_open(struct counter *counter, struct program *program, const struct watch *shared, unsigned number)
{
    *counter = (struct counter){ .program = program, .shared = watch_share(shared), .number = number };
    counter->random = program_random(program) | 1;
    for (unsigned i = 0; i < CHANNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "channel-%u-%u", number, i);
        watch_open(program, &counter->channels[i], &(struct watch_options){ .name = name, .kind = NT_OBJECT_CHANNEL });
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: kill_counter TRUTH THREADS RING SEED\n", stderr);
        return 2;
    }
    unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
    struct options options = { .truth = argv[1],
                               .ring_bytes = strtoull(argv[3], NULL, 10),
                               .seed = strtoull(argv[4], NULL, 10) };
    struct program program;
    struct watch shared;
    struct counter *counters = calloc(threads, sizeof *counters);
    if (!counters || program_open(&program, &options, "counter", -1) < 0)
        return 1;
    watch_open(&program, &shared, &(struct watch_options){ .name = "shared", .kind = NT_OBJECT_OTHER, .shared = true });
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        counter_open(&counters[i], &program, &shared, i);
        if (pthread_create(&thread, NULL, counter_main, &counters[i]) != 0)
            return 1;
    }
    pause();
    return 0;
}
