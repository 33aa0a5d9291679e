/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects made by hand: sums in every place where they can stand, folds stopped half-way, chains in circles; and
   lives that come and go in one slot while they are read. */
#include "source/live/object.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "source/live/build.h"

enum { WRITE = 1, READ = 2, POLL = 4, CLOSE = 9, OPEN = 15 };

struct fixture {
    struct build build;
    struct live_map map;
    struct live_objects objects;
};

static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char text[LIVE_MAP_TEXT];
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    (void)build_object(&fixture->build, 0, 1);
    (void)build_object(&fixture->build, 1, 7);
    assert_int_equal(live_map_open_memory(&fixture->map, fixture->build.data, BUILD_SIZE, text), 0);
    live_objects_init(&fixture->objects, &fixture->map, &nanoseconds, 3);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    live_map_close(&fixture->map);
    build_fini(&fixture->build);
    free(fixture);
    return 0;
}

static const struct nt_source_object *read_slot(struct fixture *fixture, uint32_t slot)
{
    return live_objects_read(&fixture->objects, slot) ? &fixture->objects.object : NULL;
}

static const struct nt_source_tally *find(const struct nt_source_tally *tallies, size_t count, uint16_t kind)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || tallies[i - 1].kind < tallies[i].kind);
        if (tallies[i].kind == kind) {
            return &tallies[i];
        }
    }
    return NULL;
}

static void assert_sum(const struct nt_source_tally *tallies, size_t size, uint16_t kind, uint64_t count,
                       uint64_t total)
{
    const struct nt_source_tally *tally = find(tallies, size, kind);
    assert_non_null(tally);
    assert_int_equal(tally->count, count);
    assert_int_equal(tally->total, total);
}

static void describes(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    entry->generation = entry->live = 7 | NT_LAYOUT_LOCKED;
    entry->parent_generation = 1 | NT_LAYOUT_LOCKED;
    entry->previous = 5;
    entry->previous_generation = 2 | NT_LAYOUT_LOCKED;
    entry->epoch = 4;
    entry->discipline = 1;
    entry->described = NT_DESCRIBED_FORKED;
    entry->session = 0xfeed;
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_non_null(object);
    assert_int_equal(object->program, 3);
    assert_int_equal(object->slot, 1);
    assert_int_equal(object->generation, 7);
    assert_int_equal(object->parent, 0);
    assert_int_equal(object->parent_generation, 1);
    assert_int_equal(object->previous, 5);
    assert_int_equal(object->previous_generation, 2);
    assert_int_equal(object->epoch, 4);
    assert_int_equal(object->kind, 6);
    assert_int_equal(object->discipline, 1);
    assert_int_equal(object->described, NT_DESCRIBED_FORKED);
    assert_int_equal(object->session, 0xfeed);
    assert_int_equal(object->mask, 0x7ffe);
    assert_int_equal(object->opened_at, 2001);
    assert_int_equal(object->closed_at, 0);
    assert_false(object->closed);
    assert_int_equal(object->name.size, 1);
    assert_memory_equal(object->name.data, "b", 1);
    assert_int_equal(live_objects_slots(&fixture->objects), 2);
}

static void sums_of_all_places_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    build_own(entry, 0, 200, 1, 10);
    build_own(entry, 1, WRITE, 2, 20);
    build_own(entry, 2, 100, 3, 30);
    entry->blocks = 4;
    struct nt_layout_tally_block *block = build_block(&fixture->build, 4, 1);
    build_tally(&block->tally[0], 4, 40);
    block->kind[0] = READ;
    build_tally(&block->tally[3], 5, 50);
    block->kind[3] = 254;
    block->next = 8;
    block = build_block(&fixture->build, 8, 1);
    build_tally(&block->tally[2], UINT64_MAX, UINT64_MAX);
    block->kind[2] = 64;
    build_tally(&block->tally[1], 9, 9);
    block->kind[1] = 255;  /* no kind */
    block->kind[0] = POLL; /* not counted yet */
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_non_null(object);
    assert_int_equal(object->tally_count, 7);
    assert_sum(object->tallies, object->tally_count, WRITE, 2, 20);
    assert_sum(object->tallies, object->tally_count, READ, 4, 40);
    assert_sum(object->tallies, object->tally_count, OPEN, 1, 0);
    assert_sum(object->tallies, object->tally_count, 64, UINT64_MAX, UINT64_MAX);
    assert_sum(object->tallies, object->tally_count, 100, 3, 30);
    assert_sum(object->tallies, object->tally_count, 200, 1, 10);
    assert_sum(object->tallies, object->tally_count, 254, 5, 50);
    const struct nt_source_tally *tally = find(object->tallies, object->tally_count, WRITE);
    assert_int_equal(tally->max, 20);
    assert_int_equal(tally->last, 3000);
}

static void extras(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    entry->extras = 2;
    struct nt_layout_extra *extra = build_extra(&fixture->build, 2, 1, READ);
    extra->holds = NT_EXTRA_BASE | NT_EXTRA_CLOSED | NT_EXTRA_LINEAGE;
    extra->base = (struct nt_layout_pair){ 1, 2 };
    extra->closed = (struct nt_layout_pair){ 3, 4 };
    extra->closed_max = 5;
    extra->closed_last = 6;
    extra->lineage = (struct nt_layout_pair){ 7, 8 };
    extra->next = 6;
    extra = build_extra(&fixture->build, 6, 1, WRITE);
    extra->holds = NT_EXTRA_CLOSED;
    extra->base = extra->lineage = (struct nt_layout_pair){ 9, 9 };
    extra->closed = (struct nt_layout_pair){ 10, 11 };
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_non_null(object);
    assert_int_equal(object->base_count, 1);
    assert_int_equal(object->gone_count, 2);
    assert_int_equal(object->lineage_count, 1);
    assert_sum(object->base, 1, READ, 1, 2);
    assert_sum(object->gone, 2, READ, 3, 4);
    assert_sum(object->gone, 2, WRITE, 10, 11);
    assert_sum(object->lineage, 1, READ, 7, 8);
    assert_int_equal(find(object->gone, 2, READ)->max, 5);
    assert_int_equal(find(object->gone, 2, READ)->last, 6);
    assert_int_equal(object->tally_count, 1); /* open */
}

static void open_and_close_go_without_saying(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_int_equal(object->tally_count, 1);
    assert_sum(object->tallies, 1, OPEN, 1, 0);
    assert_int_equal(object->tallies[0].last, 2001);
    assert_int_equal(object->tallies[0].max, 0);
    entry->life = NT_LIFE_CLOSED;
    entry->closed = 4000;
    entry->live = 0;
    object = read_slot(fixture, 1);
    assert_true(object->closed);
    assert_int_equal(object->closed_at, 4000);
    assert_int_equal(object->tally_count, 2);
    assert_sum(object->tallies, 2, CLOSE, 1, 0);
    assert_int_equal(find(object->tallies, 2, CLOSE)->last, 4000);
    /* counted by the program itself: told as it is */
    build_own(entry, 0, OPEN, 5, 6);
    build_own(entry, 1, CLOSE, 7, 8);
    object = read_slot(fixture, 1);
    assert_int_equal(object->tally_count, 2);
    assert_sum(object->tallies, 2, OPEN, 5, 6);
    assert_sum(object->tallies, 2, CLOSE, 7, 8);
}

static void not_told(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    static const uint8_t lives[] = { NT_LIFE_FREE, NT_LIFE_FOLDED, 4, 255 };
    for (size_t i = 0; i < sizeof lives; i++) {
        entry->life = lives[i];
        assert_null(read_slot(fixture, 1));
    }
    entry->life = NT_LIFE_OPEN;
    assert_non_null(read_slot(fixture, 1));
    entry->generation = 0;
    assert_null(read_slot(fixture, 1));
    assert_null(read_slot(fixture, BUILD_SLOTS));
    assert_null(read_slot(fixture, UINT32_MAX));
}

/* ---- Folds ---- */

static void fold_half_way(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_redo *redo = fixture->build.redo;
    struct nt_layout_object *parent = &fixture->build.objects[0], *child = &fixture->build.objects[1];
    build_own(child, 0, WRITE, 2, 20);
    parent->extras = 2;
    struct nt_layout_extra *extra = build_extra(&fixture->build, 2, 0, WRITE);
    extra->holds = NT_EXTRA_CLOSED;
    extra->closed = (struct nt_layout_pair){ 100, 1000 };
    redo->slot = 1;
    redo->generation = 7 | NT_LAYOUT_LOCKED;
    redo->parent = 0;
    redo->parent_generation = 1;
    redo->count = 2;
    redo->entries[0] = (struct nt_layout_redo_entry){ .kind = WRITE, .closed = { 102, 1020 }, .max = 20, .last = 3000 };
    redo->entries[1] = (struct nt_layout_redo_entry){ .kind = OPEN, .closed = { 1, 0 } };
    /* prepared, not begun */
    redo->sequence = 2;
    assert_non_null(read_slot(fixture, 1));
    const struct nt_source_object *object = read_slot(fixture, 0);
    assert_int_equal(object->gone_count, 1);
    assert_sum(object->gone, 1, WRITE, 100, 1000);
    /* begun: at every step of it the same */
    redo->sequence = 3;
    for (int step = 0; step < 3; step++) {
        assert_null(read_slot(fixture, 1));
        object = read_slot(fixture, 0);
        assert_int_equal(object->gone_count, 2);
        assert_sum(object->gone, 2, WRITE, 102, 1020);
        assert_sum(object->gone, 2, OPEN, 1, 0);
        assert_int_equal(find(object->gone, 2, WRITE)->max, 20);
        assert_int_equal(find(object->gone, 2, WRITE)->last, 3000);
        if (step == 0) {
            extra->closed = (struct nt_layout_pair){ 102, 1020 };
        } else {
            child->life = NT_LIFE_FOLDED;
            child->generation = 0;
        }
    }
    /* done */
    redo->sequence = 4;
    assert_null(read_slot(fixture, 1));
    object = read_slot(fixture, 0);
    assert_int_equal(object->gone_count, 1);
    assert_sum(object->gone, 1, WRITE, 102, 1020);
}

static void folds_of_others_do_not_matter(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_redo *redo = fixture->build.redo;
    redo->slot = 1;
    redo->generation = 6; /* an earlier life of the slot */
    redo->parent = 0;
    redo->parent_generation = 2;
    redo->count = UINT32_MAX;
    for (int i = 0; i < (int)NT_LAYOUT_KINDS; i++) {
        redo->entries[i] = (struct nt_layout_redo_entry){ .kind = (uint8_t)i, .closed = { 1, 1 } };
    }
    redo->sequence = 1;
    assert_non_null(read_slot(fixture, 1));
    const struct nt_source_object *object = read_slot(fixture, 0);
    assert_non_null(object);
    assert_int_equal(object->gone_count, 0);
    /* all kinds at once, and more than there are */
    redo->parent_generation = 1;
    redo->sequence = 3;
    object = read_slot(fixture, 0);
    assert_int_equal(object->gone_count, 254);
}

/* ---- Chains ---- */

static void chains_in_circles(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    entry->blocks = 4;
    struct nt_layout_tally_block *block = build_block(&fixture->build, 4, 1);
    build_tally(&block->tally[0], 4, 40);
    block->kind[0] = WRITE;
    block->next = 4;
    entry->extras = 2;
    struct nt_layout_extra *extra = build_extra(&fixture->build, 2, 1, READ);
    extra->holds = NT_EXTRA_CLOSED;
    extra->closed = (struct nt_layout_pair){ 1, 1 };
    extra->next = 2;
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_int_equal(object->tally_count, 2);
    assert_sum(object->tallies, 2, WRITE, 4, 40);
    assert_int_equal(object->gone_count, 1);
    /* two long */
    block->next = 8;
    block = build_block(&fixture->build, 8, 1);
    block->next = 4;
    object = read_slot(fixture, 1);
    assert_int_equal(object->tally_count, 2);
}

static void chains_that_lead_astray(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    /* the last unit of the region, beyond it, far beyond */
    static const uint32_t units[] = { 125, 126, 127, 128, 129, UINT32_MAX, UINT32_MAX / 64, 1u << 26 };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        entry->blocks = entry->extras = units[i];
        const struct nt_source_object *object = read_slot(fixture, 1);
        assert_non_null(object);
        assert_int_equal(object->tally_count, 1);
        assert_int_equal(object->gone_count, 0);
    }
    /* a block of somebody else */
    entry->blocks = 4;
    entry->extras = 2;
    struct nt_layout_tally_block *block = build_block(&fixture->build, 4, 2);
    build_tally(&block->tally[0], 4, 40);
    block->kind[0] = WRITE;
    struct nt_layout_extra *extra = build_extra(&fixture->build, 2, 2, READ);
    extra->holds = NT_EXTRA_CLOSED;
    extra->closed = (struct nt_layout_pair){ 1, 1 };
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_int_equal(object->tally_count, 1);
    assert_int_equal(object->gone_count, 0);
}

static void names_that_lead_astray(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    static const uint32_t units[] = { 0, 256, 257, UINT32_MAX };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        entry->name = units[i];
        assert_int_equal(read_slot(fixture, 1)->name.size, 0);
    }
    entry->name = 255; /* the last one: 16 bytes */
    entry->name_size = 17;
    assert_int_equal(read_slot(fixture, 1)->name.size, 0);
    entry->name_size = 16;
    assert_int_equal(read_slot(fixture, 1)->name.size, 16);
    entry->name = 2;
    entry->name_size = 255;
    assert_int_equal(read_slot(fixture, 1)->name.size, 255);
    entry->name_size = 256;
    assert_int_equal(read_slot(fixture, 1)->name.size, 0);
    entry->name_size = UINT16_MAX;
    assert_int_equal(read_slot(fixture, 1)->name.size, 0);
}

static void slots_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    fixture->build.live->slots = UINT32_MAX;
    assert_int_equal(live_objects_slots(&fixture->objects), BUILD_SLOTS);
    fixture->build.live->slots = 0;
    assert_int_equal(live_objects_slots(&fixture->objects), 0);
}

/* ---- Moving under the reader ---- */

static struct fixture *moving;
static uint64_t moving_folds;

/* Comes when the reader touches the blocks of the object in slot 1: it is folded and the slot is given away. */
static void move_now(int number)
{
    (void)number;
    (void)mprotect(moving->build.data, BUILD_SIZE, PROT_READ | PROT_WRITE);
    struct nt_layout_object *entry = &moving->build.objects[1];
    struct nt_layout_tally_block *block = build_block(&moving->build, 64, 1);
    build_tally(&block->tally[0], 77, 770);
    block->kind[0] = WRITE;
    moving->build.redo->sequence += 2 * moving_folds;
    entry->generation = 8;
    entry->opened = 2222;
    entry->name = 3;
    moving->build.strings[48] = 'x';
}

static void give_away(struct fixture *fixture, uint64_t folds)
{
    struct sigaction action = { .sa_handler = move_now }, before;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    /* unit 64 is the second page of the blocks, which nothing else lies on */
    entry->blocks = 64;
    struct nt_layout_tally_block *block = build_block(&fixture->build, 64, 1);
    build_tally(&block->tally[0], 5, 50);
    block->kind[0] = WRITE;
    moving = fixture;
    moving_folds = folds;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    assert_int_equal(mprotect(fixture->build.blocks + 4096, 4096, PROT_NONE), 0);
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_non_null(object);
    assert_int_equal(object->generation, 8);
    assert_int_equal(object->opened_at, 2222);
    assert_memory_equal(object->name.data, "x", 1);
    assert_sum(object->tallies, object->tally_count, WRITE, 77, 770);
}

static void given_away_in_the_middle(void **state)
{
    give_away(*state, 1);
}

static void used_again_in_the_middle(void **state)
{
    give_away(*state, 0);
}

/* Comes when the reader touches the extras of the object in slot 0: a fold into it begins. */
static void fold_now(int number)
{
    (void)number;
    (void)mprotect(moving->build.data, BUILD_SIZE, PROT_READ | PROT_WRITE);
    struct nt_layout_redo *redo = moving->build.redo;
    redo->slot = 1;
    redo->generation = 7;
    redo->parent_generation = 1;
    redo->count = 1;
    redo->entries[0] = (struct nt_layout_redo_entry){ .kind = WRITE, .closed = { 102, 1020 } };
    redo->sequence++;
}

static void folded_in_the_middle(void **state)
{
    struct fixture *fixture = *state;
    struct sigaction action = { .sa_handler = fold_now }, before;
    fixture->build.objects[0].extras = 64;
    struct nt_layout_extra *extra = build_extra(&fixture->build, 64, 0, WRITE);
    extra->holds = NT_EXTRA_CLOSED;
    extra->closed = (struct nt_layout_pair){ 100, 1000 };
    moving = fixture;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    assert_int_equal(mprotect(fixture->build.blocks + 4096, 4096, PROT_NONE), 0);
    const struct nt_source_object *object = read_slot(fixture, 0);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_non_null(object);
    assert_sum(object->gone, object->gone_count, WRITE, 102, 1020);
    assert_null(read_slot(fixture, 1));
}

/* ---- A thread makes, counts, closes and folds ---- */

enum { LIVES = 30000, COUNTS = 10, VALUE = 7 };

struct writer {
    struct build *build;
    bool done;
};

static void pair_store(struct nt_layout_pair *pair, uint64_t count, uint64_t total)
{
#if defined(__SANITIZE_THREAD__)
    __atomic_store_n((unsigned __int128 *)(void *)pair, (unsigned __int128)total << 64 | count, __ATOMIC_RELAXED);
#else
    typedef unsigned long long halves __attribute__((vector_size(16), may_alias));
    *(volatile halves *)(void *)pair = (halves){ count, total };
#endif
}

#define STORE(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELAXED)
#define PUBLISH(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)

static void life_fold(struct build *build, uint32_t generation)
{
    struct nt_layout_redo *redo = build->redo;
    struct nt_layout_object *entry = &build->objects[1];
    struct nt_layout_extra *extra = (void *)(build->blocks + 128);
    uint64_t count = extra->closed.count + COUNTS;
    STORE(redo->slot, 1u);
    STORE(redo->generation, generation);
    STORE(redo->parent, 0u);
    STORE(redo->parent_generation, 1u);
    STORE(redo->count, 1u);
    STORE(redo->entries[0].kind, (uint8_t)WRITE);
    STORE(redo->entries[0].closed.count, count);
    STORE(redo->entries[0].closed.total, count * VALUE);
    PUBLISH(redo->sequence, redo->sequence + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    pair_store(&extra->closed, count, count * VALUE);
    PUBLISH(extra->holds, (uint8_t)NT_EXTRA_CLOSED);
    PUBLISH(entry->life, (uint8_t)NT_LIFE_FOLDED);
    PUBLISH(entry->generation, 0u);
    PUBLISH(redo->sequence, redo->sequence + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void life_live(struct build *build, uint32_t generation)
{
    struct nt_layout_object *entry = &build->objects[1];
    STORE(entry->tally_kind[0], (uint8_t)0);
    pair_store(&entry->tally[0].sum, 0, 0);
    STORE(entry->opened, 100000 + generation);
    STORE(entry->epoch, generation);
    PUBLISH(entry->life, (uint8_t)NT_LIFE_OPEN);
    PUBLISH(entry->generation, generation);
    PUBLISH(entry->tally_kind[0], (uint8_t)WRITE);
    for (uint64_t i = 1; i <= COUNTS; i++) {
        pair_store(&entry->tally[0].sum, i, i * VALUE);
    }
    STORE(entry->closed, 200000 + generation);
    PUBLISH(entry->life, (uint8_t)NT_LIFE_CLOSED);
}

static void *write_lives(void *arg)
{
    struct writer *writer = arg;
    for (uint32_t generation = 8; generation < 8 + LIVES; generation++) {
        life_live(writer->build, generation);
        life_fold(writer->build, generation);
    }
    PUBLISH(writer->done, true);
    return NULL;
}

static void check_child(const struct nt_source_object *object)
{
    const struct nt_source_tally *tally = find(object->tallies, object->tally_count, WRITE);
    assert_int_equal(object->opened_at, 100000 + object->generation);
    assert_int_equal(object->epoch, object->generation);
    assert_true(tally == NULL || tally->total == tally->count * VALUE);
    if (object->closed) {
        assert_non_null(tally);
        assert_int_equal(tally->count, COUNTS);
        assert_int_equal(object->closed_at, 200000 + object->generation);
    }
}

static void lives_come_and_go(void **state)
{
    struct fixture *fixture = *state;
    struct writer writer = { .build = &fixture->build };
    fixture->build.objects[1].generation = 0;
    fixture->build.objects[1].life = NT_LIFE_FREE;
    fixture->build.objects[0].extras = 2;
    (void)build_extra(&fixture->build, 2, 0, WRITE);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_lives, &writer), 0);
    uint64_t gone = 0, read = 0;
    uint32_t generation = 0;
    for (bool done = false; !done;) {
        done = __atomic_load_n(&writer.done, __ATOMIC_ACQUIRE);
        const struct nt_source_object *object = read_slot(fixture, 1);
        if (object != NULL) {
            check_child(object);
            assert_true(object->generation >= generation);
            generation = object->generation;
        }
        object = read_slot(fixture, 0);
        if (object == NULL) /* a fold began at each of a bounded number of tries */
            continue;
        read++;
        const struct nt_source_tally *tally = find(object->gone, object->gone_count, WRITE);
        if (tally != NULL) {
            assert_int_equal(tally->count % COUNTS, 0);
            assert_int_equal(tally->total, tally->count * VALUE);
            assert_true(tally->count >= gone);
            gone = tally->count;
        }
        /* what the child was folded into is never behind the child */
        assert_true(generation < 8 || gone >= (uint64_t)(generation - 8) * COUNTS);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(read > 0);
    assert_int_equal(gone, (uint64_t)LIVES * COUNTS);
}

/* ---- Sessions ---- */

enum { READS = 100000, SESSION = 77 };

static void pair_put(struct nt_layout_pair *pair, uint64_t count, uint64_t total)
{
    typedef unsigned long long halves __attribute__((vector_size(16), may_alias));
#if defined(__SANITIZE_THREAD__)
    __atomic_store_n((unsigned __int128 *)(void *)pair, (unsigned __int128)total << 64 | count, __ATOMIC_RELAXED);
    (void)sizeof(halves);
#else
    *(volatile halves *)(void *)pair = (halves){ count, total };
#endif
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Counts of one session measure 1, those of the other 1000. */
static void *change_sessions(void *arg)
{
    struct writer *writer = arg;
    struct nt_layout_object *entry = &writer->build->objects[1];
    uint64_t count = 0, total = 0;
    for (uint64_t i = 0; !__atomic_load_n(&writer->done, __ATOMIC_RELAXED); i++) {
        pair_put(&entry->settled[0], count, total);
        __atomic_store_n(&entry->session, SESSION + i % 2, __ATOMIC_RELEASE);
        for (uint64_t k = 0; k < i % 4; k++) {
            count++;
            total += i % 2 != 0 ? 1000 : 1;
            pair_put(&entry->tally[0].sum, count, total);
        }
    }
    return NULL;
}

/* What is not settled was counted in the session that is told with it. */
static void session_changes(void **state)
{
    struct fixture *fixture = *state;
    struct writer writer = { .build = &fixture->build };
    fixture->build.objects[1].tally_kind[0] = WRITE;
    fixture->build.objects[1].session = SESSION;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, change_sessions, &writer), 0);
    uint64_t still = 0;
    for (int i = 0; i < READS || still == 0; i++) {
        const struct nt_source_object *object = read_slot(fixture, 1);
        assert_non_null(object);
        const struct nt_source_tally *tally = find(object->tallies, object->tally_count, WRITE);
        size_t place = tally != NULL ? (size_t)(tally - object->tallies) : 0;
        if (tally == NULL || object->settled == NULL) {
            continue;
        }
        uint64_t count = tally->count - object->settled[place].count;
        uint64_t total = tally->total - object->settled[place].total;
        assert_int_equal(total, object->unsettled ? 0 : count * (object->session == SESSION ? 1 : 1000));
        still += !object->unsettled;
    }
    __atomic_store_n(&writer.done, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void settled_in_all_places(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_object *entry = &fixture->build.objects[1];
    build_own(entry, 0, 200, 5, 50);
    build_own(entry, 1, WRITE, 3, 30);
    entry->settled[0] = (struct nt_layout_pair){ 2, 20 };
    entry->blocks = 4;
    struct nt_layout_tally_block *block = build_block(&fixture->build, 4, 1);
    build_tally(&block->tally[2], 9, 90);
    block->kind[2] = READ;
    block->settled[2] = (struct nt_layout_pair){ 8, 80 };
    entry->session = SESSION;
    entry->flags = NT_OBJECT_MIXED;
    const struct nt_source_object *object = read_slot(fixture, 1);
    assert_true(object->mixed && !object->unsettled);
    assert_int_equal(object->tally_count, 4);
    assert_non_null(object->settled);
    static const uint64_t wanted[4][3] = { { WRITE, 0, 0 }, { READ, 8, 80 }, { OPEN, 1, 0 }, { 200, 2, 20 } };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(object->tallies[i].kind, wanted[i][0]);
        assert_int_equal(object->settled[i].count, wanted[i][1]);
        assert_int_equal(object->settled[i].total, wanted[i][2]);
    }
    object = read_slot(fixture, 0);
    assert_null(object->settled);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(describes),
        TEST(sums_of_all_places_in_order),
        TEST(extras),
        TEST(open_and_close_go_without_saying),
        TEST(not_told),
        TEST(fold_half_way),
        TEST(folds_of_others_do_not_matter),
        TEST(chains_in_circles),
        TEST(chains_that_lead_astray),
        TEST(names_that_lead_astray),
        TEST(slots_are_bounded),
        TEST(given_away_in_the_middle),
        TEST(used_again_in_the_middle),
        TEST(folded_in_the_middle),
        TEST(lives_come_and_go),
        TEST(session_changes),
        TEST(settled_in_all_places),
    };
    return cmocka_run_group_tests_name("source/live/object", tests, NULL, NULL);
}
