/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks changed from outside: of the life that was meant and no other, by many at once without losing a bit, in files
   that are cut, and how soon a program that counts minds it. */
#include "source/live/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <nt/error.h>
#include <nt/log.h>

#include "source/live/build.h"
#include "source/live/clock.h"
#include "source/live/live.h"

#define WORD(mask, generation) ((mask) | (uint64_t)((generation)&0xffff) << NT_LAYOUT_MASK_KINDS)
#define START UINT64_C(0x7ffe)

enum { GENERATION = 5 << 16 | 7 };

struct fixture {
    struct build build; /* its pointers are into the shared mapping of the file */
    uint8_t *image;
    int file;
    struct live_map map;
    struct live_control control;
};

static void share(struct fixture *fixture)
{
    struct build *build = &fixture->build;
    ptrdiff_t by = 0;
    fixture->file = memfd_create("log", MFD_CLOEXEC);
    assert_true(fixture->file >= 0 && ftruncate(fixture->file, BUILD_SIZE) == 0);
    assert_true(build_write(build, fixture->file));
    fixture->image = build->data;
    build->data = mmap(NULL, BUILD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->file, 0);
    assert_ptr_not_equal(build->data, MAP_FAILED);
    by = build->data - fixture->image;
    build->control = (void *)((uint8_t *)build->control + by);
    build->changes = (void *)((uint8_t *)build->changes + by);
    build->objects = (void *)((uint8_t *)build->objects + by);
}

static void open_file(struct fixture *fixture)
{
    const struct live_map_owner any = { .any = true };
    char text[LIVE_MAP_TEXT], path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fixture->file);
    assert_int_equal(live_map_open(&fixture->map, AT_FDCWD, path, &any, text), 0);
    assert_int_equal(live_control_open(&fixture->control, &fixture->map), 0);
}

static void close_file(struct fixture *fixture)
{
    live_control_close(&fixture->control);
    live_map_close(&fixture->map);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    for (uint32_t slot = 0; slot < 4; slot++) {
        (void)build_object(&fixture->build, slot, slot == 3 ? GENERATION | NT_LAYOUT_LOCKED : 1);
    }
    share(fixture);
    open_file(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    close_file(fixture);
    (void)munmap(fixture->build.data, BUILD_SIZE);
    (void)close(fixture->file);
    fixture->build.data = fixture->image;
    build_fini(&fixture->build);
    free(fixture);
    return 0;
}

static int change(struct fixture *fixture, uint32_t slot, uint32_t generation, uint64_t clear, uint64_t set,
                  uint64_t mask[2])
{
    struct nt_live_mask all = {
        .object = slot, .generation = generation, .clear = clear, .set = set, .before = mask[0], .after = mask[1]
    };
    int error = live_control_change(&fixture->control, &fixture->map, &all);
    mask[0] = all.before;
    mask[1] = all.after;
    return error;
}

/* ---- Which word ---- */

static void changes_the_life_that_is_meant(void **state)
{
    struct fixture *fixture = *state;
    const struct build *build = &fixture->build;
    const struct nt_layout_change *entry = build_change(build, 3);
    uint64_t mask[2] = { 0, 0 }, ticks;
    assert_int_equal(change(fixture, 3, GENERATION, 6, 1 << 20, mask), 0);
    assert_int_equal(mask[0], START);
    assert_int_equal(mask[1], (START & ~UINT64_C(6)) | 1 << 20);
    assert_int_equal(build->control[3], WORD(mask[1], GENERATION));
    assert_int_equal(entry->before, WORD(mask[0], GENERATION));
    assert_int_equal(entry->after, WORD(mask[1], GENERATION));
    assert_int_equal(entry->setter, getpid());
    assert_int_equal(entry->check, nt_layout_change_check(entry));
    assert_int_equal(build->changes->count, 1);
    /* the image's ticks are nanoseconds */
    assert_true(live_clock_ticks(false, &ticks));
    assert_true(entry->time <= ticks && ticks - entry->time < UINT64_C(60000000000));
    /* the upper bits are not for the taking */
    assert_int_equal(change(fixture, 3, GENERATION, UINT64_MAX, UINT64_C(1) << 60 | 2, mask), 0);
    assert_int_equal(build->control[3], WORD(2, GENERATION));
    assert_int_equal(build->changes->count, 2);
    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_int_equal(build->control[slot], WORD(START, 1));
        assert_int_equal(build_change(build, slot)->check, 0);
    }
}

static void leaves_other_lives_alone(void **state)
{
    static const struct {
        uint32_t slot, generation;
    } others[] = { { 3, GENERATION + 1 },
                   { 3, 7 },
                   { 3, GENERATION + (1 << 16) },
                   { 1, 2 },
                   { 1, 0 },
                   { 4, 1 },
                   { 511, 1 },
                   { 512, 1 },
                   { 1 << 27, 1 },
                   { UINT32_MAX, 1 } };
    struct fixture *fixture = *state;
    const struct build *build = &fixture->build;
    uint64_t mask[2] = { 42, 43 };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(change(fixture, others[i].slot, others[i].generation, UINT64_MAX, 0, mask), -ESTALE);
    }
    /* a word that is of another life already, an entry that is not yet, and the other way round */
    build->control[2] = WORD(START, 2);
    assert_int_equal(change(fixture, 2, 1, UINT64_MAX, 0, mask), -ESTALE);
    build->control[2] = WORD(START, 1);
    build->objects[2].last_generation = 2;
    assert_int_equal(change(fixture, 2, 1, UINT64_MAX, 0, mask), -ESTALE);
    assert_int_equal(build->control[2], WORD(START, 1));
    assert_int_equal(build->control[3], WORD(START, GENERATION));
    assert_int_equal(build->control[1], WORD(START, 1));
    assert_int_equal(build->changes->count, 0);
    assert_true(mask[0] == 42 && mask[1] == 43);
}

static void changes_nothing_to_the_same(void **state)
{
    struct fixture *fixture = *state;
    uint64_t mask[2] = { 0, 0 };
    assert_int_equal(change(fixture, 1, 1, 1 << 20, 2, mask), 0);
    assert_int_equal(mask[0], START);
    assert_int_equal(mask[1], START);
    assert_int_equal(fixture->build.changes->count, 0);
    assert_int_equal(build_change(&fixture->build, 1)->check, 0);
}

/* ---- The file ---- */

static uint64_t blocks_of(int file)
{
    struct stat status;
    assert_int_equal(fstat(file, &status), 0);
    return (uint64_t)status.st_blocks;
}

/* A page that has no memory gets none. */
static void backs_no_hole(void **state)
{
    struct fixture *fixture = *state;
    uint64_t mask[2] = { 0, 0 };
    off_t at = (off_t)fixture->map.regions[NT_REGION_CHANGES].offset;
    close_file(fixture); /* it remembers what was there */
    assert_int_equal(fallocate(fixture->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, NT_LAYOUT_PAGE), 0);
    uint64_t blocks = blocks_of(fixture->file);
    open_file(fixture);
    assert_int_equal(change(fixture, 1, 1, UINT64_MAX, 0, mask), -ESTALE);
    assert_int_equal(fixture->build.control[1], WORD(START, 1));
    assert_int_equal(blocks_of(fixture->file), blocks);
}

static void survives_a_file_that_is_cut(void **state)
{
    struct fixture *fixture = *state;
    uint64_t mask[2] = { 42, 43 };
    close_file(fixture); /* the test's frame has put its signal handlers before those of the guard */
    open_file(fixture);
    assert_int_equal(change(fixture, 1, 1, 2, 0, mask), 0); /* all of it was seen to be there */
    assert_int_equal(ftruncate(fixture->file, 3 * NT_LAYOUT_PAGE), 0);
    mask[0] = mask[1] = 42;
    assert_true(change(fixture, 1, 1, UINT64_MAX, 0, mask) < 0);
    assert_int_equal(mask[0], 42);
    assert_true(change(fixture, 1, 1, UINT64_MAX, 0, mask) < 0);
}

static void opens_nothing_that_is_no_file(void **state)
{
    struct fixture *fixture = *state;
    struct live_control control = { 0 };
    struct live_map memory;
    char text[LIVE_MAP_TEXT];
    assert_int_equal(live_map_open_memory(&memory, fixture->image, BUILD_SIZE, text), 0);
    assert_int_equal(live_control_open(&control, &memory), -EINVAL);
    assert_null(control.words.base);
    live_control_close(&control);
    live_map_close(&memory);
}

/* ---- Many at once ---- */

enum { SETTERS = 4, TIMES = 20000 };

struct setter {
    pthread_t thread;
    struct fixture *fixture;
    unsigned bit;
    uint64_t changes;
    bool wrong;
};

/* Only this one touches its bit, so it must always be as it was left. */
static void *set_and_clear(void *arg)
{
    struct setter *setter = arg;
    const uint64_t bit = UINT64_C(1) << setter->bit;
    bool on = true; /* as all bits of the image are */
    for (unsigned i = 0; i < TIMES; i++) {
        uint64_t mask[2] = { 0, 0 };
        int error = change(setter->fixture, 3, GENERATION, on ? bit : 0, on ? 0 : bit, mask);
        if (error == -EAGAIN) {
            continue;
        }
        setter->wrong = setter->wrong || error != 0 || ((mask[0] & bit) != 0) != on || ((mask[1] & bit) != 0) == on;
        setter->changes++;
        on = !on;
    }
    return NULL;
}

static void loses_no_change_of_several(void **state)
{
    struct fixture *fixture = *state;
    struct setter setters[SETTERS];
    uint64_t changes = 0, mask = START;
    for (unsigned i = 0; i < SETTERS; i++) {
        setters[i] = (struct setter){ .fixture = fixture, .bit = 1 + i };
        assert_int_equal(pthread_create(&setters[i].thread, NULL, set_and_clear, &setters[i]), 0);
    }
    for (unsigned i = 0; i < SETTERS; i++) {
        assert_int_equal(pthread_join(setters[i].thread, NULL), 0);
        assert_false(setters[i].wrong);
        assert_true(setters[i].changes > 0);
        changes += setters[i].changes;
        mask ^= (setters[i].changes & 1) << setters[i].bit;
    }
    assert_int_equal(fixture->build.control[3], WORD(mask, GENERATION));
    assert_int_equal(fixture->build.changes->count, changes);
}

/* ---- A program that counts ---- */

struct program {
    char directory[64];
    nt_log *log;
    nt_object object;
    struct nt_source *source;
    struct nt_live_mask mask; /* whose: as a snapshot told it */
    pthread_t thread;
    bool stop; /* atomic */
};

static int take_object(void *arg, const struct nt_source_object *object)
{
    struct program *program = arg;
    if (object->name.size == 6 && memcmp(object->name.data, "orders", 6) == 0) {
        program->mask = (struct nt_live_mask){ .program = object->program,
                                               .object = object->slot,
                                               .generation = object->generation };
    }
    return 0;
}

static int program_setup(void **state)
{
    struct program *program = calloc(1, sizeof *program);
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_object_options object = NT_OBJECT_OPTIONS_INIT;
    assert_non_null(program);
    (void)snprintf(program->directory, sizeof program->directory, "/dev/shm/control_test.XXXXXX");
    assert_non_null(mkdtemp(program->directory));
    options.directory = program->directory;
    object.name = "orders";
    assert_int_equal(nt_log_open(&options, &program->log), 0);
    program->object = nt_object_new(program->log, &object);
    const struct nt_live_options live = { .directory = program->directory };
    const struct nt_source_sink sink = { .object = take_object, .arg = program };
    assert_int_equal(nt_source_live_open(&live, &program->source), 0);
    assert_int_equal(nt_source_snapshot(program->source, &sink), 0);
    assert_true(program->mask.generation != 0);
    *state = program;
    return 0;
}

static int program_teardown(void **state)
{
    struct program *program = *state;
    nt_source_free(program->source);
    (void)unlink(nt_log_path(program->log));
    nt_log_close(program->log);
    (void)rmdir(program->directory);
    free(program);
    return 0;
}

static uint64_t counted(const struct program *program)
{
    struct nt_layout_tally tally = { 0 };
    (void)nt_object_tally(program->object, NT_READ, &tally);
    return tally.sum.count;
}

/* How many events of the object and kind are among what the source has not given yet. */
static uint64_t logged(struct program *program)
{
    static struct nt_event events[4096];
    struct nt_source_loss losses[16];
    size_t lost;
    uint64_t found = 0;
    int count;
    do {
        count = program->source->ops->read(program->source, events, 4096, losses, 16, &lost);
        for (int i = 0; i < count; i++) {
            found += events[i].kind == NT_READ && events[i].object == program->mask.object;
        }
        for (size_t i = 0; i < lost; i++) {
            found += losses[i].count;
        }
    } while (count > 0 || lost > 0);
    return found;
}

static void *count_on(void *arg)
{
    struct program *program = arg;
    while (!__atomic_load_n(&program->stop, __ATOMIC_RELAXED)) {
        nt_object_count(program->object, NT_READ, 1);
    }
    return NULL;
}

static void wait_counted(const struct program *program, uint64_t more)
{
    uint64_t until = counted(program) + more;
    while (counted(program) < until) {
        (void)usleep(100);
    }
}

/* Once the word is another, no event but the one on its way is logged that should not be, and each that should. The
   tally tells how many were counted in the meantime: it is not time that this waits for. */
static void takes_effect_at_the_next_event(void **state)
{
    enum { TURNS = 100, MORE = 2000 };
    struct program *program = *state;
    const uint64_t bit = NT_MASK(NT_READ);
    assert_int_equal(pthread_create(&program->thread, NULL, count_on, program), 0);
    uint64_t most = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        wait_counted(program, 1);
        program->mask.clear = bit;
        program->mask.set = 0;
        assert_int_equal(nt_live_mask_change(program->source, &program->mask), 0);
        assert_true((program->mask.before & bit) != 0 && (program->mask.after & bit) == 0);
        uint64_t before = counted(program); /* at most one of these is not in the ring yet */
        (void)logged(program);
        wait_counted(program, MORE);
        uint64_t late = logged(program);
        assert_in_range(late, 0, 1);
        most = late > most ? late : most;
        program->mask.clear = 0;
        program->mask.set = bit;
        assert_int_equal(nt_live_mask_change(program->source, &program->mask), 0);
        uint64_t after = counted(program);
        assert_true(after - before >= MORE);
        wait_counted(program, MORE);
        assert_true(logged(program) >= MORE - 1);
    }
    __atomic_store_n(&program->stop, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(program->thread, NULL), 0);
    (void)printf("# events logged after a kind was masked off: at most %llu of %d counted\n", (unsigned long long)most,
                 MORE);
}

static void tells_what_it_cannot(void **state)
{
    struct program *program = *state;
    struct nt_live_mask mask = program->mask;
    mask.clear = UINT64_MAX;
    mask.program++;
    assert_int_equal(nt_live_mask_change(program->source, &mask), -ESRCH);
    mask = program->mask;
    mask.generation++;
    assert_int_equal(nt_live_mask_change(program->source, &mask), -ESTALE);
    assert_int_equal(nt_object_mask(program->object), NT_MASK_DEFAULT);
    /* one that has closed its log */
    mask = program->mask;
    nt_log_close(program->log);
    const struct nt_source_sink sink = { .object = take_object, .arg = program };
    assert_int_equal(nt_source_snapshot(program->source, &sink), 0);
    assert_int_equal(nt_live_mask_change(program->source, &mask), -ESRCH);
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.directory = program->directory;
    assert_int_equal(nt_log_open(&options, &program->log), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_the_life_that_is_meant, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_other_lives_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_nothing_to_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(backs_no_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(survives_a_file_that_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(opens_nothing_that_is_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(loses_no_change_of_several, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_effect_at_the_next_event, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(tells_what_it_cannot, program_setup, program_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
