/* SPDX-License-Identifier: BSD-3-Clause */
/* What every benchmark shares: paired rounds, medians, and one JSON line a figure on stdout.
   A round runs every variant in short batches, in random order; a variant's figure in a round is the
   10th percentile of its batches. Batches during which somebody else worked on the same core (a sibling
   of a hyperthreaded one slows everything but the clock) are measured again, for BENCH_PATIENCE seconds
   in all of the program; "quiet" tells which part of the batches had the core for themselves in the end.
   A row gives the median over rounds, the spread (90th minus 10th percentile) and the median of the
   paired ratios to a baseline. Knows nothing of what is measured. */
#ifndef NT_BENCH_HARNESS_H
#define NT_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_ROUNDS_MAX = 1000, BENCH_VARIANTS_MAX = 16 };

enum bench_clock {
    BENCH_CLOCK_TSC,         /* ticks of the processor, as nanoseconds: for batches of 1 to 100 us */
    BENCH_CLOCK_THREAD_CPU,  /* CPU time of the calling thread: for batches beyond 50 us */
    BENCH_CLOCK_PROCESS_CPU, /* CPU time of all threads of the process */
    BENCH_CLOCK_WALL
};

/* Something that runs `operations` times. */
struct bench_variant {
    const char *name;
    void (*run)(void *state, uint64_t operations);
    void *state;
    void (*prepare)(void *state, uint64_t operations); /* before each batch, not timed; or NULL */
};

/* Zero means the default. The environment overrides rounds (BENCH_ROUNDS), the seed (BENCH_SEED) and the
   patience (BENCH_PATIENCE, 30 seconds). */
struct bench_plan {
    enum bench_clock clock;
    unsigned rounds;     /* default 60 */
    unsigned batches;    /* of each variant in a round; default 16 */
    uint64_t operations; /* in a batch; default 1024 */
    uint64_t seed;       /* of the order; default 1 */
};

/* One figure a round. Rounds of the same number are pairs. */
struct bench_samples {
    unsigned count;
    double quiet; /* part of the batches that had the core for themselves; 0: not known */
    double values[BENCH_ROUNDS_MAX];
};

/* A row of the result. A limit of 0 is none. */
struct bench_row {
    const char *name;
    const char *unit;
    const char *against; /* name of the baseline, or NULL */
    double max_ratio, min_ratio;
    double max_median, min_median;
    const char *beyond; /* name of `less`, or NULL: the row also tells "excess", the median of the differences */
    const struct bench_samples *less;
    double max_excess;
    double max_worst; /* of the largest sample; the row then also tells "worst" */
};

/* A group of rows that are measured together. Returns 0, or -1 with a line on stderr that says why its
   rows are absent. */
struct bench_case {
    const char *rows; /* names, separated by spaces */
    int (*run)(void);
};

/* main() of a benchmark: `--list` prints the rows' names, names pick cases, none means all. Returns the
   exit code: 0, 1 if a case could not run, 2 for a name that no case has. */
int bench_main(int argc, char **argv, const struct bench_case *cases, size_t count);

/* Measures all variants in paired rounds: nanoseconds an operation, added to ret_samples[i] for variants[i].
   One untimed round goes before. Call it several times, with memory of its own each, where it matters which
   pages the system gives: they decide what shares a place in a cache. */
void bench_compare(const struct bench_plan *plan, const struct bench_variant *variants, size_t count,
                   struct bench_samples *ret_samples);

/* Prints the row. baseline may be NULL; otherwise it has as many rounds as samples. */
void bench_report(const struct bench_row *row, const struct bench_samples *samples,
                  const struct bench_samples *baseline);

/* For figures that are measured by other means; beyond BENCH_ROUNDS_MAX they are dropped. */
void bench_samples_add(struct bench_samples *samples, double value);
/* The value below which `part` (0 to 1) of the samples lie, interpolated; 0 if there is none. */
double bench_samples_percentile(const struct bench_samples *samples, double part);

/* The plan's number of rounds after defaults and the environment. */
unsigned bench_rounds(const struct bench_plan *plan);

/* Whether nobody else works on this core just now; takes about a microsecond, the first time a third of a second. */
bool bench_is_quiet(void);
/* Waits until it is so, as long as the program's patience lasts. */
bool bench_wait_quiet(void);

double bench_ns_per_tick(void);
uint64_t bench_clock_ns(enum bench_clock clock);
/* Keeps the calling thread on that processor. 0, or a negative errno value. */
int bench_pin(unsigned processor);
/* Memory that is there before it is measured; shared with children. NULL if there is none. */
void *bench_memory(size_t bytes);
void bench_memory_free(void *take_memory, size_t bytes);

/* The CPU time of each call of a sequence that is the same in every round. bench_calls_longest gives the longest
   call's, each taken at its median over the rounds: what delays the same call again and again is the library's
   doing, what hits one here and one there is the machine's. */
struct bench_calls {
    float *us;
    uint32_t count;   /* calls in a round */
    unsigned rounds;  /* that there is room for */
    unsigned current; /* round */
};
int bench_calls_init(struct bench_calls *calls, uint32_t count, unsigned rounds); /* 0 or -1: no memory */
void bench_calls_fini(struct bench_calls *calls);
double bench_calls_longest(const struct bench_calls *calls);

/* How long single calls take: the longest of those watched, microseconds. The CPU time of a call is what both the
   clock of CPU time around it and the ticks within agree on, the smaller one: neither is less than it. */
struct bench_stall {
    double cpu_us, wall_us;
};
struct bench_watch {
    uint64_t cpu, ticks;
};
static inline void bench_watch_start(struct bench_watch *watch);
/* Returns the call's CPU time, us. */
static inline double bench_watch_stop(const struct bench_watch *watch, struct bench_stall *worst);

static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#else
    return bench_clock_ns(BENCH_CLOCK_WALL);
#endif
}

static inline void bench_watch_start(struct bench_watch *watch)
{
    watch->cpu = bench_clock_ns(BENCH_CLOCK_THREAD_CPU);
    watch->ticks = bench_ticks();
}

static inline double bench_watch_stop(const struct bench_watch *watch, struct bench_stall *worst)
{
    double wall = (double)(bench_ticks() - watch->ticks) * bench_ns_per_tick() / 1000;
    double cpu = (double)(bench_clock_ns(BENCH_CLOCK_THREAD_CPU) - watch->cpu) / 1000;
    cpu = cpu < wall ? cpu : wall;
    worst->cpu_us = cpu > worst->cpu_us ? cpu : worst->cpu_us;
    worst->wall_us = wall > worst->wall_us ? wall : worst->wall_us;
    return cpu;
}

#endif
