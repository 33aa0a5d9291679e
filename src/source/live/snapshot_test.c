/* SPDX-License-Identifier: BSD-3-Clause */
/* A program made by hand that makes, counts, closes and folds objects between any two looks of a snapshot at its log:
   all that it counted before must be there once. */
#include "source/live/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "source/live/build.h"

enum { WRITE = 1, CLOSE = 9, OPEN = 15 };
enum { KINDS = 3, EXTRA_UNITS = 2 * KINDS };
static const uint8_t kinds[KINDS] = { WRITE, OPEN, CLOSE };

struct sums {
    uint64_t count[KINDS], total[KINDS];
};

enum { LIVES = 2048, TOLD = 64 };

struct life { /* as it really was */
    uint32_t slot, generation;
    uint32_t taker; /* what it was folded into, 0: the program's own object, or nothing yet */
    uint64_t place; /* how many lives that had taken then, 0: it was not folded */
};

struct told {
    uint32_t life;
    uint64_t taken; /* lives */
};

enum stage { REST, PREPARED, BEGUN, FILLED, FOLDED, LEFT };

struct program {
    struct build build;
    struct live_map map;
    struct live_objects objects;
    struct live_snapshot *snapshot;
    struct sums truth;
    uint32_t generation[BUILD_SLOTS];
    uint32_t closed[BUILD_SLOTS], closed_count; /* slots, longest closed first */
    uint32_t quarantine;
    enum stage stage; /* of the fold under way */
    uint64_t random;
    uint32_t looks;      /* until the program goes on */
    uint32_t seldom;     /* how many looks it lets pass at most */
    uint32_t steps_left; /* then it rests */
    bool counting;       /* else all that is counted was so before */
    bool lying;          /* its log says what no program\'s does */
    void (*trick)(struct program *program);
    struct life lives[LIVES];
    uint32_t life_count;
    uint32_t life_in[BUILD_SLOTS]; /* the latest */
    struct sums sums;              /* told */
    struct told told[TOLD];
    uint32_t told_count;
};

static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

static uint32_t below(struct program *program, uint32_t limit)
{
    uint64_t x = program->random; /* xorshift64* */
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    program->random = x;
    return (uint32_t)((x * UINT64_C(2685821657736338717)) >> 33) % limit;
}

/* ---- What the program does ---- */

static void count(struct program *program, uint32_t slot, uint64_t value)
{
    struct nt_layout_object *entry = &program->build.objects[slot];
    entry->tally_kind[0] = WRITE;
    entry->tally[0].sum.count++;
    entry->tally[0].sum.total += value;
    program->truth.count[0]++;
    program->truth.total[0] += value;
}

static void make(struct program *program, uint32_t slot, uint32_t parent)
{
    struct nt_layout_object *entry = &program->build.objects[slot];
    uint32_t folded = entry->folded;
    assert_int_equal(entry->generation, 0);
    *entry = (struct nt_layout_object){ .folded = folded };
    entry->last_generation = ++program->generation[slot];
    (void)build_object(&program->build, slot, program->generation[slot]);
    entry->parent = parent;
    entry->parent_generation = slot == 0 ? 0 : program->build.objects[parent].generation;
    assert_true(program->life_count < LIVES);
    program->lives[program->life_count] = (struct life){ .slot = slot, .generation = entry->generation };
    program->life_in[slot] = program->life_count++;
    program->truth.count[1]++;
}

static void end(struct program *program, uint32_t slot)
{
    struct nt_layout_object *entry = &program->build.objects[slot];
    entry->live = 0;
    entry->closed = 9000;
    entry->life = NT_LIFE_CLOSED;
    program->closed[program->closed_count++] = slot;
    program->truth.count[2]++;
}

/* Each slot has places of its own for its extras, in the order of the kinds. */
static struct nt_layout_extra *extra_of(struct program *program, uint32_t slot, int which)
{
    return (void *)(program->build.blocks + 64 * (size_t)(2 + EXTRA_UNITS * slot + 2 * (uint32_t)which));
}

static void extras_make(struct program *program, uint32_t slot)
{
    if (program->build.objects[slot].extras != 0) {
        return;
    }
    for (int i = 0; i < KINDS; i++) {
        uint32_t unit = 2 + EXTRA_UNITS * slot + 2 * (uint32_t)i;
        struct nt_layout_extra *extra = build_extra(&program->build, unit, slot, kinds[i]);
        extra->next = i + 1 < KINDS ? unit + 2 : 0;
    }
    program->build.objects[slot].extras = 2 + EXTRA_UNITS * slot;
}

static void fold_prepare(struct program *program)
{
    struct nt_layout_redo *redo = program->build.redo;
    uint32_t slot = program->closed[0];
    struct nt_layout_object *entry = &program->build.objects[slot];
    uint32_t to = entry->parent;
    if (program->build.objects[to].generation != entry->parent_generation) {
        to = 0;
    }
    extras_make(program, to);
    redo->slot = slot;
    redo->generation = entry->generation;
    redo->parent = to;
    redo->parent_generation = program->build.objects[to].generation;
    redo->count = KINDS;
    for (int i = 0; i < KINDS; i++) {
        struct nt_layout_pair own = i == 0 ? entry->tally[0].sum : (struct nt_layout_pair){ 1, 0 };
        struct nt_layout_pair before = extra_of(program, to, i)->closed;
        struct nt_layout_pair gone = entry->extras != 0 ? extra_of(program, slot, i)->closed
                                                        : (struct nt_layout_pair){ 0 };
        redo->entries[i] = (struct nt_layout_redo_entry){
            .kind = kinds[i],
            .closed = { before.count + own.count + gone.count, before.total + own.total + gone.total },
        };
    }
    entry->folded = (uint32_t)(redo->sequence / 2 + 1);
    program->lives[program->life_in[slot]].taker = program->life_in[to];
    program->lives[program->life_in[slot]].place = redo->entries[1].closed.count;
}

static void fold_fill(struct program *program)
{
    const struct nt_layout_redo *redo = program->build.redo;
    for (int i = 0; i < KINDS; i++) {
        struct nt_layout_extra *extra = extra_of(program, redo->parent, i);
        extra->closed = redo->entries[i].closed;
        extra->holds = NT_EXTRA_CLOSED;
    }
}

static void fold_leave(struct program *program)
{
    struct nt_layout_object *entry = &program->build.objects[program->build.redo->slot];
    *entry = (struct nt_layout_object){ .last_generation = entry->last_generation, .folded = entry->folded };
    program->closed_count--;
    memmove(program->closed, program->closed + 1, program->closed_count * sizeof program->closed[0]);
}

/* One of the steps of a fold, as the writer makes them. */
static void fold_step(struct program *program)
{
    struct nt_layout_redo *redo = program->build.redo;
    struct nt_layout_object *entry = &program->build.objects[redo->slot];
    switch (program->stage) {
    case REST:
        fold_prepare(program);
        break;
    case PREPARED:
        redo->sequence++;
        break;
    case BEGUN:
        fold_fill(program);
        break;
    case FILLED:
        entry->life = NT_LIFE_FOLDED;
        break;
    case FOLDED:
        entry->generation = 0;
        redo->sequence++;
        break;
    case LEFT:
        fold_leave(program);
        break;
    }
    program->stage = program->stage == LEFT ? REST : program->stage + 1;
}

static void fold_whole(struct program *program)
{
    do {
        fold_step(program);
    } while (program->stage != REST);
}

static uint32_t some_slot(struct program *program, uint8_t life)
{
    uint32_t start = below(program, BUILD_SLOTS - 1);
    for (uint32_t i = 0; i < BUILD_SLOTS - 1; i++) {
        uint32_t slot = 1 + (start + i) % (BUILD_SLOTS - 1);
        if (program->build.objects[slot].life == life) {
            return slot;
        }
    }
    return 0;
}

static uint32_t some_parent(struct program *program)
{
    uint32_t slot = below(program, BUILD_SLOTS);
    uint8_t life = program->build.objects[slot].life;
    return program->build.objects[slot].generation != 0 && life != NT_LIFE_FOLDED ? slot : 0;
}

static void step(struct program *program)
{
    if (program->stage != REST) { /* under the lock: nobody makes or closes meanwhile */
        fold_step(program);
        return;
    }
    uint32_t open = some_slot(program, NT_LIFE_OPEN), free_slot = some_slot(program, NT_LIFE_FREE);
    if (program->closed_count > program->quarantine) {
        fold_step(program);
    } else if (free_slot != 0 && below(program, 2) == 0) {
        make(program, free_slot, some_parent(program));
    } else if (program->counting && below(program, 3) == 0) {
        count(program, open, below(program, 1000));
    } else if (open != 0) {
        end(program, open);
    }
}

/* ---- Looking ---- */

static void goes_on(void *arg)
{
    struct program *program = arg;
    if (program->trick != NULL) {
        program->trick(program);
        return;
    }
    if (program->looks > 0) {
        program->looks--;
        return;
    }
    program->looks = below(program, program->seldom);
    for (uint32_t n = 1 + below(program, 8); n > 0 && program->steps_left > 0; n--) {
        program->steps_left--;
        step(program);
    }
}

static void sums_add(struct sums *sums, const struct nt_source_tally *tallies, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        for (int k = 0; k < KINDS; k++) {
            sums->count[k] += tallies[i].kind == kinds[k] ? tallies[i].count : 0;
            sums->total[k] += tallies[i].kind == kinds[k] ? tallies[i].total : 0;
        }
    }
}

static int tell_object(void *arg, const struct nt_source_object *object)
{
    struct program *program = arg;
    struct told *told = &program->told[program->told_count++];
    struct sums gone = { 0 };
    assert_true(program->told_count <= TOLD);
    told->life = LIVES;
    for (uint32_t i = 0; i < program->life_count; i++) {
        if (program->lives[i].slot == object->slot && program->lives[i].generation == object->generation) {
            told->life = i;
        }
    }
    assert_true(told->life < LIVES);
    assert_int_equal(object->name.size, 1);
    assert_int_equal(object->name.data[0], 'a' + object->slot);
    sums_add(&gone, object->gone, object->gone_count);
    told->taken = gone.count[1];
    sums_add(&program->sums, object->tallies, object->tally_count);
    sums_add(&program->sums, object->gone, object->gone_count);
    return 0;
}

/* In how many of the objects that were told of a life is. */
static uint32_t times_told(const struct program *program, uint32_t life)
{
    uint32_t times = 0, holder = life;
    uint64_t place = 0; /* of what it is in */
    for (;;) {
        for (uint32_t i = 0; i < program->told_count; i++) {
            times += program->told[i].life == holder && program->told[i].taken >= place;
        }
        if (program->lives[holder].place == 0) {
            return times;
        }
        place = program->lives[holder].place;
        holder = program->lives[holder].taker;
    }
}

/* All that was there before once, all that came since at most once. */
static void assert_once(const struct program *program, uint32_t before)
{
    for (uint32_t life = 0; life < program->life_count; life++) {
        assert_in_range(times_told(program, life), life < before, 1);
    }
}

/* Whether the sums go together. */
static bool look(struct program *program)
{
    const struct nt_source_sink sink = { .object = tell_object, .arg = program };
    program->sums = (struct sums){ 0 };
    program->told_count = 0;
    uint32_t before = program->life_count;
    live_objects_init(&program->objects, &program->map, &nanoseconds, 3);
    assert_int_equal(live_snapshot_take(program->snapshot, &program->objects), 0);
    bool moving = live_snapshot_is_moving(program->snapshot);
    assert_int_equal(live_snapshot_tell(program->snapshot, &sink), 0);
    if (!moving && !program->lying) {
        assert_once(program, before);
    }
    return !moving;
}

static void assert_between(const struct sums *low, const struct sums *sums, const struct sums *high)
{
    for (int k = 0; k < KINDS; k++) {
        assert_in_range(sums->count[k], low->count[k], high->count[k]);
        assert_in_range(sums->total[k], low->total[k], high->total[k]);
    }
}

static void assert_exact(struct program *program)
{
    assert_between(&program->truth, &program->sums, &program->truth);
}

static int setup(void **state)
{
    struct program *program = calloc(1, sizeof *program);
    char text[LIVE_MAP_TEXT];
    assert_non_null(program);
    assert_true(build_init(&program->build));
    assert_int_equal(live_map_open_memory(&program->map, program->build.data, BUILD_SIZE, text), 0);
    program->snapshot = live_snapshot_new();
    assert_non_null(program->snapshot);
    program->random = 1;
    program->seldom = 1;
    make(program, 0, 0);
    *state = program;
    return 0;
}

static int teardown(void **state)
{
    struct program *program = *state;
    live_snapshot_free(program->snapshot);
    live_map_close(&program->map);
    build_fini(&program->build);
    free(program);
    return 0;
}

/* ---- One fold at one moment ---- */

static uint32_t trick_after; /* looks */

static void fold_once(struct program *program)
{
    if (trick_after-- == 0) {
        fold_whole(program);
    }
}

static void fold_by_steps(struct program *program)
{
    if (trick_after > 0) {
        trick_after--;
    } else if (program->closed_count > 0) {
        fold_step(program);
    }
}

/* Parents before and behind their children, and one whose parent went first. */
static void family(struct program *program)
{
    make(program, 5, 0);
    make(program, 2, 5);  /* its parent is read later */
    make(program, 9, 5);  /* its parent is read before */
    make(program, 12, 9); /* two down */
    make(program, 3, 0);
    make(program, 4, 3);
    for (uint32_t slot = 0; slot <= 12; slot++) {
        if (program->build.objects[slot].life == NT_LIFE_OPEN) {
            count(program, slot, UINT64_C(1) << slot);
        }
    }
    end(program, 3);
    end(program, 4); /* folded into the program's own object: its parent is gone by then */
    end(program, 12);
    end(program, 2);
    end(program, 9);
    end(program, 5);
}

static void at_every_moment(void (*trick)(struct program *program))
{
    bool late = false;
    for (uint32_t moment = 0; !late; moment++) {
        void *state;
        (void)setup(&state);
        struct program *program = state;
        family(program);
        trick_after = moment;
        program->trick = trick;
        live_snapshot_between(program->snapshot, goes_on, program);
        assert_true(look(program));
        assert_exact(program);
        late = program->build.redo->sequence == 0;
        program->trick = NULL;
        while (program->closed_count > 0) {
            fold_whole(program);
        }
        assert_true(look(program));
        assert_exact(program);
        (void)teardown(&state);
    }
}

static void one_fold_at_any_moment(void **state)
{
    (void)state;
    at_every_moment(fold_once);
}

static void folds_step_by_step_from_any_moment(void **state)
{
    (void)state;
    at_every_moment(fold_by_steps);
}

/* The program died, or stands, in the middle of a fold. */
static void folds_that_never_end(void **state)
{
    struct program *program = *state;
    family(program);
    while (program->closed_count > 0) {
        fold_step(program);
        assert_true(look(program));
        assert_exact(program);
    }
}

/* It begins one while it is looked at, and goes no further. */
static uint32_t trick_steps;

static void fold_some_steps(struct program *program)
{
    if (trick_after > 0) {
        trick_after--;
    } else if (trick_steps > 0) {
        trick_steps--;
        fold_step(program);
    }
}

static void folds_begun_and_never_ended(void **state)
{
    (void)state;
    for (uint32_t steps = 1; steps <= 36; steps++) {
        for (uint32_t moment = 0; moment < 30; moment++) {
            void *one;
            (void)setup(&one);
            struct program *program = one;
            family(program);
            trick_after = moment;
            trick_steps = steps;
            program->trick = fold_some_steps;
            live_snapshot_between(program->snapshot, goes_on, program);
            assert_true(look(program));
            assert_exact(program);
            (void)teardown(&one);
        }
    }
}

static uint32_t trick_look, trick_first, trick_second;

static void make_and_fold(struct program *program)
{
    uint32_t now = trick_look++;
    if (now == trick_first) {
        fold_whole(program);
        make(program, 2, 12);
        make(program, 9, 2);
        count(program, 9, 7);
    }
    if (now == trick_second) {
        end(program, 9);
        end(program, 2);
        fold_whole(program);
        fold_whole(program);
    }
}

/* A parent in a slot that was passed already, its child in one that was not; both go before the end. */
static void made_behind_the_reader(void **state)
{
    (void)state;
    for (trick_first = 3; trick_first < 9; trick_first++) {
        for (trick_second = trick_first + 1; trick_second < 50; trick_second++) {
            void *one;
            (void)setup(&one);
            struct program *program = one;
            make(program, 12, 0);
            make(program, 1, 0);
            end(program, 1);
            trick_look = 0;
            program->trick = make_and_fold;
            live_snapshot_between(program->snapshot, goes_on, program);
            assert_true(look(program));
            (void)teardown(&one);
        }
    }
}

/* ---- Any program ---- */

static void any_program(uint64_t seed, uint32_t seldom, uint32_t *moving)
{
    void *state;
    (void)setup(&state);
    struct program *program = state;
    program->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    program->seldom = seldom;
    program->quarantine = below(program, 6);
    program->counting = true;
    /* the numbers of folds are kept in 32 bits */
    program->build.redo->sequence = below(program, 3) == 0 ? (UINT64_C(1) << 33) - 2 * below(program, 40) : 0;
    for (uint32_t i = below(program, 200); i > 0; i--) {
        step(program);
    }
    program->counting = below(program, 2) == 0;
    live_snapshot_between(program->snapshot, goes_on, program);
    for (int turn = 0; turn < 4; turn++) {
        program->steps_left = 1 + below(program, 400);
        struct sums before = program->truth;
        if (look(program)) {
            assert_between(&before, &program->sums, &program->truth);
        } else {
            ++*moving;
        }
    }
    program->steps_left = 0;
    assert_true(look(program));
    assert_exact(program);
    (void)teardown(&state);
}

static uint64_t seed_now;
static uint32_t seldom_now;

static int say_seed(void **state)
{
    (void)state;
    print_message("last seed %llu, a step every %u looks\n", (unsigned long long)seed_now, seldom_now);
    return 0;
}

static void any_program_at_any_speed(void **state)
{
    (void)state;
    static const uint32_t seldom[] = { 1, 2, 5, 20 };
    uint32_t moving = 0;
    for (size_t i = 0; i < sizeof seldom / sizeof *seldom; i++) {
        seldom_now = seldom[i];
        for (seed_now = 1; seed_now <= 1500; seed_now++) {
            any_program(seed_now, seldom[i], &moving);
        }
    }
    assert_int_equal(moving, 0);
}

/* ---- What no program does ---- */

static void go_away(struct program *program)
{
    if (trick_after > 0) {
        trick_after--;
        return;
    }
    for (uint32_t slot = 0; slot < BUILD_SLOTS; slot++) {
        program->build.objects[slot].generation = 0;
    }
    program->build.redo->sequence += 2;
}

/* Nobody has their sums; it is said, and it ends. */
static void all_gone_and_no_fold(void **state)
{
    struct program *program = *state;
    program->lying = true;
    family(program);
    /* parents in a circle */
    program->build.objects[5].parent = 12;
    program->build.objects[5].parent_generation = 1;
    /* one of itself */
    program->build.objects[3].parent = 3;
    program->trick = go_away;
    live_snapshot_between(program->snapshot, goes_on, program);
    for (uint32_t moment = 1; moment < 40; moment++) {
        for (uint32_t slot = 0; slot < BUILD_SLOTS; slot++) {
            program->build.objects[slot].generation = program->generation[slot];
        }
        trick_after = moment;
        (void)look(program);
    }
}

/* A log without the object that takes what has no parent. */
static void moving_is_said(void **state)
{
    struct program *program = *state;
    program->lying = true;
    make(program, 2, 0);
    make(program, 4, 0);
    end(program, 2);
    program->build.objects[0].generation = 0;
    trick_after = 3; /* slot 2 was read, slot 4 was not */
    program->trick = fold_once;
    live_snapshot_between(program->snapshot, goes_on, program);
    assert_false(look(program));
    assert_int_equal(program->told_count, 2); /* what is there is told */
    trick_after = UINT32_MAX;
    assert_true(look(program));
}

/* ---- What few objects have ---- */

static struct nt_layout_histogram *some_histogram;

/* Of the program's own object, which is read again whenever anything was folded: its notes and a histogram. */
static void rare_make(struct program *program)
{
    struct build *build = &program->build;
    struct nt_layout_tally_block *block = build_block(build, 40, 0); /* where slots have their extras that have none */
    build_tally(&block->tally[0], 1, 1);
    block->kind[0] = 64;
    block->histogram[0] = 63;
    some_histogram = build_histogram(build, 63, 0, 64);
    some_histogram->count[1] = 1;
    build->objects[0].blocks = 40;
    (void)build_note(build, 100, NT_NOTE_LINK_WRITE, "to", 0);
    build->objects[0].notes = 100;
}

static void fold_and_say_more(struct program *program)
{
    if (trick_after-- == 0) {
        (void)build_note(&program->build, 110, NT_NOTE_REMOTE_NODE, "node-2", 100);
        program->build.objects[0].notes = 110;
        some_histogram->count[9] = 1;
        fold_whole(program);
    }
}

static uint32_t rare_more; /* times that it was told whole */

static int tell_rare(void *arg, const struct nt_source_object *object)
{
    (void)arg;
    const struct nt_source_rare *rare = object->rare;
    if (object->slot != 0) {
        assert_null(rare);
        return 0;
    }
    assert_int_equal(rare->link_count, 1);
    assert_int_equal(rare->links[0].key.size, 2);
    assert_memory_equal(rare->links[0].key.data, "to", 2);
    assert_int_equal(rare->histogram_count, 1);
    assert_in_range(rare->histograms[0].bucket_count, 1, 2);
    assert_int_equal(rare->histograms[0].buckets[0].high, 1);
    if (rare->remote_node.size > 0) {
        assert_memory_equal(rare->remote_node.data, "node-2", 6);
        rare_more++;
    }
    return 0;
}

static void what_was_said_is_told(void **state)
{
    (void)state;
    const struct nt_source_sink sink = { .object = tell_rare };
    rare_more = 0;
    for (uint32_t moment = 0; moment < 40; moment++) {
        void *made;
        (void)setup(&made);
        struct program *program = made;
        family(program);
        rare_make(program);
        trick_after = moment;
        program->trick = fold_and_say_more;
        live_snapshot_between(program->snapshot, goes_on, program);
        live_objects_init(&program->objects, &program->map, &nanoseconds, 3);
        assert_int_equal(live_snapshot_take(program->snapshot, &program->objects), 0);
        assert_int_equal(live_snapshot_tell(program->snapshot, &sink), 0);
        (void)teardown(&made);
    }
    assert_in_range(rare_more, 2, 39); /* also by being read again */
}

static int tell_until(void *arg, const struct nt_source_object *object)
{
    uint32_t *left = arg;
    (void)object;
    return --*left == 0 ? 42 : 0;
}

static void a_sink_that_had_enough(void **state)
{
    struct program *program = *state;
    uint32_t left = 3;
    const struct nt_source_sink sink = { .object = tell_until, .arg = &left };
    family(program);
    live_objects_init(&program->objects, &program->map, &nanoseconds, 3);
    assert_int_equal(live_snapshot_take(program->snapshot, &program->objects), 0);
    assert_int_equal(live_snapshot_tell(program->snapshot, &sink), 42);
    assert_int_equal(left, 0);
    assert_int_equal(live_snapshot_tell(program->snapshot, &sink), 0); /* nothing is there twice */
    assert_int_equal(left, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fold_at_any_moment),
        cmocka_unit_test(folds_step_by_step_from_any_moment),
        cmocka_unit_test(made_behind_the_reader),
        TEST(folds_that_never_end),
        cmocka_unit_test(folds_begun_and_never_ended),
        cmocka_unit_test_teardown(any_program_at_any_speed, say_seed),
        TEST(all_gone_and_no_fold),
        TEST(moving_is_said),
        cmocka_unit_test(what_was_said_is_told),
        TEST(a_sink_that_had_enough),
    };
    return cmocka_run_group_tests_name("source/live/snapshot", tests, NULL, NULL);
}
