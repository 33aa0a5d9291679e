/* SPDX-License-Identifier: BSD-3-Clause */
/* What one count costs its caller, against floor64 in the same rounds. Each loop is what a caller would write:
   the handles in an array of its own, one call a turn; the loop's own cost is part of every figure, as it is of
   floor64's. The calls are inlined, as the compiler does it where a program has one; where it has several the
   compiler may make one local function of them, which the rows -call show. count-alone is the library's inline
   path with what concerns masks and records left out. event-cold runs long batches, so that what is in the caches
   is its own working set, as in a program that does this; event-cold-others runs short ones among all the others,
   as in a program that does much else between two events. */
#include <stdio.h>
#include <stdlib.h>

#include <nt/log.h>

#include "floor.h"
#include "harness.h"
#include "scratch.h"

#define FEW UINT32_C(16)
#define MANY UINT32_C(10000)
#define RING (UINT64_C(1) << 20)
#define PLACEMENTS 16
#define PLACEMENT_ROUNDS 5

/* Objects, counted on in turn. */
struct few {
    nt_object objects[FEW];
};

/* Objects, counted on in a random order that comes again after all had their turn. */
struct many {
    nt_object *objects;
    uint32_t next;
};

#define INLINED __attribute__((flatten)) static void

INLINED run_on(void *state, uint64_t operations)
{
    const struct few few = *(const struct few *)state;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object_count(few.objects[i % FEW], NT_WRITE, i);
    }
}

__attribute__((noinline)) static void call(nt_object object, uint64_t value)
{
    nt_object_count(object, NT_WRITE, value);
}

static void run_call(void *state, uint64_t operations)
{
    const struct few few = *(const struct few *)state;
    for (uint64_t i = 0; i < operations; i++) {
        call(few.objects[i % FEW], i);
    }
}

INLINED run_at(void *state, uint64_t operations)
{
    const struct few few = *(const struct few *)state;
    nt_time now = nt_now();
    for (uint64_t i = 0; i < operations; i++) {
        nt_object_count_at(few.objects[i % FEW], NT_WRITE, i, now);
    }
}

INLINED run_cold(void *state, uint64_t operations)
{
    struct many *many = state;
    uint32_t next = many->next;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object_count(many->objects[next], NT_WRITE, i);
        next = next + 1 < MANY ? next + 1 : 0;
    }
    many->next = next;
}

/* As nt_count_ of <nt/log_inline.h>, without mask, clock and record. */
static inline void count_alone(nt_object object, nt_kind kind, uint64_t value)
{
    uint32_t slot = (uint32_t)object.handle & NT_SLOT_MASK_;
    uint32_t index = (uint32_t)object.handle >> NT_LAYOUT_SLOT_BITS;
    struct nt_thread_ *thread = nt_thread_;
    unsigned char *objects = __atomic_load_n(&thread->wiped[index].objects, __ATOMIC_RELAXED);
    struct nt_layout_object *entry = (struct nt_layout_object *)(void *)objects + slot;
    struct nt_layout_tally *tally;
    if (NT_UNLIKELY_(!objects) ||
        NT_UNLIKELY_(__atomic_load_n(&entry->live, __ATOMIC_RELAXED) != (uint32_t)(object.handle >> 32)) ||
        NT_UNLIKELY_(!(tally = nt_tally_inline_(entry, kind)))) {
        nt_count_slow_(object, kind, value, 0, 0, false);
        return;
    }
    nt_pair_add_(&tally->sum, value);
    nt_tally_max_(tally, value);
}

INLINED run_count_alone(void *state, uint64_t operations)
{
    const struct few few = *(const struct few *)state;
    for (uint64_t i = 0; i < operations; i++) {
        count_alone(few.objects[i % FEW], NT_WRITE, i);
    }
}

static void few_init(struct few *few, nt_log *log, const char *prefix, uint64_t mask)
{
    for (uint32_t i = 0; i < FEW; i++) {
        few->objects[i] = scratch_object(log, prefix, i, mask);
    }
}

static void shared_init(struct few *few, nt_log *log)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = "shared";
    options.discipline = NT_SHARED;
    for (uint32_t i = 0; i < FEW; i++) {
        few->objects[i] = nt_object_new(log, &options);
    }
}

static int many_init(struct many *many, nt_log *log)
{
    uint64_t random = 1;
    many->next = 0;
    many->objects = calloc(MANY, sizeof many->objects[0]);
    if (many->objects == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        many->objects[i] = scratch_object(log, "many-", i, NT_MASK_DEFAULT);
    }
    for (uint32_t i = MANY; i > 1; i--) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t j = (uint32_t)((random >> 33) % i);
        nt_object held = many->objects[i - 1];
        many->objects[i - 1] = many->objects[j];
        many->objects[j] = held;
    }
    return 0;
}

enum { FLOOR, ALONE, OFF, OFF_CALL, ON, ON_CALL, AT, SHARED, HISTOGRAM, COLD_OTHERS, VARIANTS };
enum { COLD = 1, COLD_VARIANTS };

static void report(const struct bench_samples *samples)
{
    const struct bench_row rows[VARIANTS] = {
        [ALONE] = { .name = "count-alone" },
        [OFF] = { .name = "event-off", .beyond = "count-alone", .less = &samples[ALONE], .max_excess = 1 },
        [OFF_CALL] = { .name = "event-off-call" },
        [ON] = { .name = "event-on", .max_ratio = 1.35 },
        [ON_CALL] = { .name = "event-on-call" },
        [AT] = { .name = "event-at", .max_ratio = 0.45 },
        [SHARED] = { .name = "event-shared", .max_ratio = 3 },
        [HISTOGRAM] = { .name = "event-histogram" },
        [COLD_OTHERS] = { .name = "event-cold-others" },
    };
    for (int i = ALONE; i < VARIANTS; i++) {
        struct bench_row row = rows[i];
        row.unit = "ns";
        row.against = "floor64";
        bench_report(&row, &samples[i], &samples[FLOOR]);
    }
}

static void compare_few(nt_log *log, struct floor64 *floor, struct many *many, struct bench_samples *samples)
{
    struct few on, off, alone, shared, histogram;
    few_init(&on, log, "on-", NT_MASK_DEFAULT);
    few_init(&off, log, "off-", 0);
    few_init(&alone, log, "alone-", 0);
    shared_init(&shared, log);
    few_init(&histogram, log, "histogram-", NT_MASK_DEFAULT);
    for (uint32_t i = 0; i < FEW; i++) {
        (void)nt_object_histogram(histogram.objects[i], NT_WRITE);
    }
    const struct bench_variant variants[VARIANTS] = {
        [FLOOR] = { "floor64", floor64_run, floor, NULL },
        [ALONE] = { "count-alone", run_count_alone, &alone, NULL },
        [OFF] = { "event-off", run_on, &off, NULL },
        [OFF_CALL] = { "event-off-call", run_call, &off, NULL },
        [ON] = { "event-on", run_on, &on, NULL },
        [ON_CALL] = { "event-on-call", run_call, &on, NULL },
        [AT] = { "event-at", run_at, &on, NULL },
        [SHARED] = { "event-shared", run_on, &shared, NULL },
        [HISTOGRAM] = { "event-histogram", run_on, &histogram, NULL },
        [COLD_OTHERS] = { "event-cold-others", run_cold, many, NULL },
    };
    run_on(&on, 2 * RING / 64); /* the ring has all its memory */
    const struct bench_plan plan = { .clock = BENCH_CLOCK_TSC, .rounds = PLACEMENT_ROUNDS };
    bench_compare(&plan, variants, VARIANTS, samples);
}

static void compare_many(struct floor64 *floor, struct many *many, struct bench_samples *samples)
{
    const struct bench_variant variants[COLD_VARIANTS] = {
        [FLOOR] = { "floor64", floor64_run, floor, NULL },
        [COLD] = { "event-cold", run_cold, many, NULL },
    };
    const struct bench_plan plan = { .clock = BENCH_CLOCK_TSC, .rounds = PLACEMENT_ROUNDS, .operations = 8192 };
    bench_compare(&plan, variants, COLD_VARIANTS, samples);
}

/* One placement: a log and a floor ring of their own, warm. */
static int placement(void *arg)
{
    struct bench_samples *samples = arg;
    struct floor64 floor;
    struct many many = { .objects = NULL };
    nt_log *log = scratch_log("event", RING, 0);
    int error = log != NULL && floor64_init(&floor) == 0 && many_init(&many, log) == 0 ? 0 : -1;
    if (error == 0) {
        compare_few(log, &floor, &many, samples);
        compare_many(&floor, &many, samples + VARIANTS);
        error = scratch_log_is_whole(log) ? 0 : -1;
        floor64_fini(&floor);
    }
    free(many.objects);
    scratch_log_free(log);
    return error;
}

static int measure(void)
{
    static struct bench_samples samples[VARIANTS + COLD_VARIANTS];
    for (int i = 0; i < PLACEMENTS; i++) {
        if (scratch_in_thread(placement, samples) != 0) {
            return -1;
        }
    }
    report(samples);
    bench_report(&(struct bench_row){ .name = "event-cold", .unit = "ns", .against = "floor64", .max_ratio = 4 },
                 &samples[VARIANTS + COLD], &samples[VARIANTS + FLOOR]);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "count-alone event-off event-off-call event-on event-on-call event-at event-shared event-histogram "
          "event-cold-others event-cold",
          measure },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
