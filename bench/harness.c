/* SPDX-License-Identifier: BSD-3-Clause */
/* Paired rounds in random order, and rows of results; see harness.h. */
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_samples_percentile(const struct bench_samples *samples, double part)
{
    static double sorted[BENCH_ROUNDS_MAX];
    if (samples->count == 0) {
        return 0;
    }
    memcpy(sorted, samples->values, samples->count * sizeof sorted[0]);
    qsort(sorted, samples->count, sizeof sorted[0], compare_doubles);
    double position = part * (double)(samples->count - 1);
    unsigned below = (unsigned)position;
    unsigned above = below + 1 < samples->count ? below + 1 : below;
    return sorted[below] + (position - (double)below) * (sorted[above] - sorted[below]);
}

void bench_samples_add(struct bench_samples *samples, double value)
{
    if (samples->count < BENCH_ROUNDS_MAX) {
        samples->values[samples->count++] = value;
    }
}

uint64_t bench_clock_ns(enum bench_clock clock)
{
    static const clockid_t ids[] = {
        [BENCH_CLOCK_TSC] = CLOCK_MONOTONIC,
        [BENCH_CLOCK_THREAD_CPU] = CLOCK_THREAD_CPUTIME_ID,
        [BENCH_CLOCK_PROCESS_CPU] = CLOCK_PROCESS_CPUTIME_ID,
        [BENCH_CLOCK_WALL] = CLOCK_MONOTONIC,
    };
    struct timespec now;
    (void)clock_gettime(ids[clock], &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double bench_ns_per_tick(void)
{
    static double known;
    if (known > 0) {
        return known;
    }
    uint64_t start_ns = bench_clock_ns(BENCH_CLOCK_WALL);
    uint64_t start_ticks = bench_ticks();
    uint64_t end_ns;
    do {
        end_ns = bench_clock_ns(BENCH_CLOCK_WALL);
    } while (end_ns - start_ns < 50000000u);
    known = (double)(end_ns - start_ns) / (double)(bench_ticks() - start_ticks);
    return known;
}

int bench_pin(unsigned processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}

void *bench_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

/* A positive number of the environment, or the fallback. */
static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return fallback;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value == 0) {
        fprintf(stderr, "bench: %s is not a positive number: %s\n", name, text);
        exit(2);
    }
    return value;
}

unsigned bench_rounds(const struct bench_plan *plan)
{
    uint64_t rounds = setting("BENCH_ROUNDS", plan->rounds > 0 ? plan->rounds : 60);
    return rounds < BENCH_ROUNDS_MAX ? (unsigned)rounds : BENCH_ROUNDS_MAX;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(unsigned char *order, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = next_random(random) % i;
        unsigned char held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

/* Nanoseconds an operation of one batch. */
static double run_batch(enum bench_clock clock, const struct bench_variant *variant, uint64_t operations)
{
    if (clock == BENCH_CLOCK_TSC) {
        uint64_t start = bench_ticks();
        variant->run(variant->state, operations);
        uint64_t ticks = bench_ticks() - start;
        return (double)ticks * bench_ns_per_tick() / (double)operations;
    }
    uint64_t start = bench_clock_ns(clock);
    variant->run(variant->state, operations);
    return (double)(bench_clock_ns(clock) - start) / (double)operations;
}

void bench_compare(const struct bench_plan *plan, const struct bench_variant *variants, size_t count,
                   struct bench_samples *ret_samples)
{
    static struct bench_samples batch_samples[BENCH_VARIANTS_MAX];
    unsigned char order[BENCH_VARIANTS_MAX];
    unsigned rounds = bench_rounds(plan);
    unsigned batches = plan->batches > 0 ? plan->batches : 16;
    uint64_t operations = plan->operations > 0 ? plan->operations : 1024;
    uint64_t random = setting("BENCH_SEED", plan->seed > 0 ? plan->seed : 1);

    (void)bench_ns_per_tick();
    for (size_t i = 0; i < count; i++) {
        order[i] = (unsigned char)i;
        ret_samples[i].count = 0;
    }
    for (unsigned round = 0; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            batch_samples[i].count = 0;
        }
        for (unsigned batch = 0; batch < batches; batch++) {
            shuffle(order, count, &random);
            for (size_t i = 0; i < count; i++) {
                double figure = run_batch(plan->clock, &variants[order[i]], operations);
                bench_samples_add(&batch_samples[order[i]], figure);
            }
        }
        for (size_t i = 0; round > 0 && i < count; i++) {
            bench_samples_add(&ret_samples[i], bench_samples_percentile(&batch_samples[i], 0.1));
        }
    }
}

/* Appends a bound to the text and tells whether it holds; a limit of 0 is none. */
static bool check_limit(char *text, size_t size, const char *what, double value, double limit, bool at_most)
{
    if (limit <= 0) {
        return true;
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s %s %.6g", used > 0 ? ", " : "", what, at_most ? "<=" : ">=", limit);
    return at_most ? value <= limit : value >= limit;
}

void bench_report(const struct bench_row *row, const struct bench_samples *samples,
                  const struct bench_samples *baseline)
{
    char limit[256] = "";
    double median = bench_samples_percentile(samples, 0.5);
    double spread = bench_samples_percentile(samples, 0.9) - bench_samples_percentile(samples, 0.1);
    bool pass = check_limit(limit, sizeof limit, "median", median, row->max_median, true);
    pass &= check_limit(limit, sizeof limit, "median", median, row->min_median, false);
    printf("{\"name\":\"%s\",\"median\":%.6g,\"spread\":%.6g,\"unit\":\"%s\"", row->name, median, spread, row->unit);
    if (baseline != NULL && row->against != NULL) {
        static struct bench_samples ratios;
        ratios.count = 0;
        for (unsigned i = 0; i < samples->count && i < baseline->count; i++) {
            if (baseline->values[i] > 0) {
                bench_samples_add(&ratios, samples->values[i] / baseline->values[i]);
            }
        }
        double ratio = bench_samples_percentile(&ratios, 0.5);
        pass &= check_limit(limit, sizeof limit, "ratio", ratio, row->max_ratio, true);
        pass &= check_limit(limit, sizeof limit, "ratio", ratio, row->min_ratio, false);
        printf(",\"ratio\":%.6g,\"against\":\"%s\"", ratio, row->against);
    } else {
        printf(",\"ratio\":null,\"against\":null");
    }
    if (limit[0] != '\0') {
        printf(",\"limit\":\"%s\",\"pass\":%s", limit, pass ? "true" : "false");
    }
    printf("}\n");
    (void)fflush(stdout);
}

static bool has_row(const struct bench_case *bench, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = bench->rows; *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (length == size && memcmp(at, name, size) == 0) {
            return true;
        }
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

static void list_rows(const struct bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (const char *at = cases[i].rows; *at != '\0';) {
            size_t length = strcspn(at, " ");
            printf("%.*s\n", (int)length, at);
            at += length;
            at += strspn(at, " ");
        }
    }
}

static bool is_wanted(const struct bench_case *bench, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (has_row(bench, argv[i])) {
            return true;
        }
    }
    return argc < 2;
}

static bool is_known(const struct bench_case *cases, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (has_row(&cases[i], name)) {
            return true;
        }
    }
    return false;
}

int bench_main(int argc, char **argv, const struct bench_case *cases, size_t count)
{
    int failed = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_rows(cases, count);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        if (!is_known(cases, count, argv[i])) {
            fprintf(stderr, "bench: no row %s here\n", argv[i]);
            return 2;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&cases[i], argc, argv) && cases[i].run() != 0) {
            failed = 1;
        }
    }
    return failed;
}
