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

int bench_calls_init(struct bench_calls *calls, uint32_t count, unsigned rounds)
{
    *calls = (struct bench_calls){ .count = count, .rounds = rounds };
    calls->us = calloc((size_t)count * rounds, sizeof calls->us[0]);
    return calls->us != NULL ? 0 : -1;
}

void bench_calls_fini(struct bench_calls *calls)
{
    free(calls->us);
    calls->us = NULL;
}

double bench_calls_longest(const struct bench_calls *calls)
{
    static struct bench_samples one;
    double longest = 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        one.count = 0;
        for (unsigned round = 0; round < calls->rounds; round++) {
            bench_samples_add(&one, (double)calls->us[(size_t)round * calls->count + i]);
        }
        double median = bench_samples_percentile(&one, 0.5);
        longest = median > longest ? median : longest;
    }
    return longest;
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

void bench_memory_free(void *take_memory, size_t bytes)
{
    if (take_memory != NULL) {
        (void)munmap(take_memory, bytes);
    }
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
    if (variant->prepare != NULL) {
        variant->prepare(variant->state, operations);
    }
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

/* Ticks of a fixed piece of work that needs most of a core: who shares the core shows in it. */
static uint64_t probe_ticks(void)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    uint64_t start = bench_ticks();
    for (int i = 0; i < 1000; i++) {
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
        a++, b++, c++, d++, e++, f++;
    }
    return bench_ticks() - start;
}

/* Of the whole program, so that its parts agree on what quiet is. */
static struct {
    uint64_t best;   /* ticks of the probe when nobody disturbed it; 0: not known */
    uint64_t waited; /* ns */
    unsigned passes, kept_quiet;
} quiet;

static uint64_t probe(void)
{
    uint64_t ticks = probe_ticks();
    quiet.best = quiet.best == 0 || ticks < quiet.best ? ticks : quiet.best;
    return ticks;
}

/* Long enough for a moment in which even a busy machine leaves the core alone. */
static void probe_best(void)
{
    for (int i = 0; i < 60; i++) {
        for (int j = 0; j < 200; j++) {
            (void)probe();
        }
        (void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
}

bool bench_is_quiet(void)
{
    if (quiet.best == 0) {
        probe_best();
    }
    return probe() <= quiet.best + quiet.best / 10;
}

static bool is_patient(void)
{
    return quiet.waited < setting("BENCH_PATIENCE", 30) * 1000000000u;
}

bool bench_wait_quiet(void)
{
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    bool good;
    while (!(good = bench_is_quiet()) && is_patient()) {
        (void)nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
        quiet.waited += bench_clock_ns(BENCH_CLOCK_WALL) - start;
        start = bench_clock_ns(BENCH_CLOCK_WALL);
    }
    return good;
}

struct compare {
    const struct bench_plan *plan;
    const struct bench_variant *variants;
    size_t count;
    uint64_t operations;
    uint64_t random;
    unsigned char order[BENCH_VARIANTS_MAX];
    double figures[BENCH_VARIANTS_MAX];
};

/* One batch of each variant. False: somebody shared the core, and there is time to try again. */
static bool run_pass(struct compare *compare)
{
    bool good = bench_wait_quiet();
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    shuffle(compare->order, compare->count, &compare->random);
    for (size_t i = 0; i < compare->count; i++) {
        size_t at = compare->order[i];
        compare->figures[at] = run_batch(compare->plan->clock, &compare->variants[at], compare->operations);
    }
    good = bench_is_quiet() && good;
    if (!good && is_patient()) {
        quiet.waited += bench_clock_ns(BENCH_CLOCK_WALL) - start;
        return false;
    }
    quiet.passes++;
    quiet.kept_quiet += good;
    return true;
}

static void run_round(struct compare *compare, struct bench_samples *ret_samples)
{
    static struct bench_samples batch_samples[BENCH_VARIANTS_MAX];
    unsigned batches = compare->plan->batches > 0 ? compare->plan->batches : 16;
    for (size_t i = 0; i < compare->count; i++) {
        batch_samples[i].count = 0;
    }
    while (batch_samples[0].count < batches) {
        if (!run_pass(compare)) {
            continue;
        }
        for (size_t i = 0; i < compare->count; i++) {
            bench_samples_add(&batch_samples[i], compare->figures[i]);
        }
    }
    for (size_t i = 0; ret_samples != NULL && i < compare->count; i++) {
        bench_samples_add(&ret_samples[i], bench_samples_percentile(&batch_samples[i], 0.1));
    }
}

void bench_compare(const struct bench_plan *plan, const struct bench_variant *variants, size_t count,
                   struct bench_samples *ret_samples)
{
    static struct compare compare;
    unsigned rounds = bench_rounds(plan);
    compare = (struct compare){ .plan = plan, .variants = variants, .count = count };
    compare.operations = plan->operations > 0 ? plan->operations : 1024;
    compare.random = setting("BENCH_SEED", plan->seed > 0 ? plan->seed : 1);
    (void)bench_ns_per_tick();
    quiet.passes = quiet.kept_quiet = 0;
    (void)bench_is_quiet();
    for (size_t i = 0; i < count; i++) {
        compare.order[i] = (unsigned char)i;
    }
    for (unsigned round = 0; round <= rounds; round++) {
        run_round(&compare, round > 0 ? ret_samples : NULL);
    }
    for (size_t i = 0; i < count && quiet.passes > 0; i++) {
        ret_samples[i].quiet = (double)quiet.kept_quiet / quiet.passes;
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

/* The median over rounds of `samples` to `baseline`: their ratio or their difference. */
static double paired(const struct bench_samples *samples, const struct bench_samples *baseline, bool difference)
{
    static struct bench_samples found;
    found.count = 0;
    for (unsigned i = 0; i < samples->count && i < baseline->count; i++) {
        if (difference) {
            bench_samples_add(&found, samples->values[i] - baseline->values[i]);
        } else if (baseline->values[i] > 0) {
            bench_samples_add(&found, samples->values[i] / baseline->values[i]);
        }
    }
    return bench_samples_percentile(&found, 0.5);
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
        double ratio = paired(samples, baseline, false);
        pass &= check_limit(limit, sizeof limit, "ratio", ratio, row->max_ratio, true);
        pass &= check_limit(limit, sizeof limit, "ratio", ratio, row->min_ratio, false);
        printf(",\"ratio\":%.6g,\"against\":\"%s\"", ratio, row->against);
    } else {
        printf(",\"ratio\":null,\"against\":null");
    }
    if (row->beyond != NULL) {
        double excess = paired(samples, row->less, true);
        pass &= check_limit(limit, sizeof limit, "excess", excess, row->max_excess, true);
        printf(",\"excess\":%.6g,\"beyond\":\"%s\"", excess, row->beyond);
    }
    if (samples->quiet > 0) {
        printf(",\"quiet\":%.3g", samples->quiet);
    }
    if (row->max_worst > 0) {
        double worst = bench_samples_percentile(samples, 1);
        pass &= check_limit(limit, sizeof limit, "worst", worst, row->max_worst, true);
        printf(",\"worst\":%.6g", worst);
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
