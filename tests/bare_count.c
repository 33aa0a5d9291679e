/* SPDX-License-Identifier: BSD-3-Clause */
/* bare_count THREADS RING MILLISECONDS: threads that count a few nanoseconds apart, on channels of their own and on
   one shared object. Says "ready"; ends after that time (0: never) and prints how often it counted on each object,
   as lines "name count". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log.h>

#include "bare.h"

enum { THREADS = 16 };

struct counter {
    pthread_t thread;
    nt_object channels[BARE_CHANNELS];
    uint64_t counts[BARE_CHANNELS], shared_count;
};

static nt_object shared;
static _Atomic bool over;

static void *counter_main(void *argument)
{
    struct counter *counter = argument;
    nt_time at = nt_now(); /* one for all: the clock is most of what counting costs */
    while (!over) {
        for (unsigned i = 0; i < 240; i++) {
            uint64_t count = ++counter->counts[i % BARE_CHANNELS];
            nt_object_count_at(counter->channels[i % BARE_CHANNELS], NT_WRITE, bare_value(count), at);
        }
        for (unsigned i = 0; i < 16; i++) {
            counter->shared_count++;
            nt_object_count_at(shared, NT_WRITE, BARE_SHARED_VALUE, at);
        }
    }
    return NULL;
}

static nt_object make(nt_log *log, const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return nt_object_new(log, &options);
}

static void name_channel(char name[32], unsigned thread, unsigned channel)
{
    snprintf(name, 32, "channel-%u-%u", thread, channel);
}

static void print_counts(const struct counter *counters, unsigned threads)
{
    uint64_t shared_count = 0;
    for (unsigned i = 0; i < threads; i++) {
        shared_count += counters[i].shared_count;
        for (unsigned k = 0; k < BARE_CHANNELS; k++) {
            char name[32];
            name_channel(name, i, k);
            printf("%s %llu\n", name, (unsigned long long)counters[i].counts[k]);
        }
    }
    printf("%s %llu\n", BARE_SHARED, (unsigned long long)shared_count);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: bare_count THREADS RING MILLISECONDS\n", stderr);
        return 2;
    }
    unsigned threads = (unsigned)strtoul(argv[1], NULL, 10), time = (unsigned)strtoul(argv[3], NULL, 10);
    static struct counter counters[THREADS];
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.ring_bytes = strtoull(argv[2], NULL, 10);
    nt_log *log;
    if (threads > THREADS || nt_log_open(&options, &log) < 0)
        return 1;
    shared = make(log, BARE_SHARED, NT_SHARED);
    for (unsigned i = 0; i < threads; i++) {
        for (unsigned k = 0; k < BARE_CHANNELS; k++) {
            char name[32];
            name_channel(name, i, k);
            counters[i].channels[k] = make(log, name, NT_EXCLUSIVE);
        }
        if (pthread_create(&counters[i].thread, NULL, counter_main, &counters[i]) != 0)
            return 1;
    }
    puts("ready");
    fflush(stdout);
    if (time == 0)
        pause();
    usleep(time * 1000);
    over = true;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(counters[i].thread, NULL);
    print_counts(counters, threads);
    nt_log_close(log);
    return 0;
}
