/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of the source: each ring by itself, as far as it was written at the last look; masks that were changed; and
   all of them merged. */
#include "source/live/world.h"
#include "source/merge.h"

static int read_lane(struct world *world, struct nt_source *source, uint32_t lane)
{
    static uint8_t data[2 * NT_SOURCE_DATA];
    struct nt_source_batch batch = {
        .events = world->events,
        .room = ROOM,
        .losses = world->losses,
        .loss_room = LOSSES,
        .data = data,
        .data_room = sizeof data,
    };
    int count = source->ops->read_lane(source, lane, &batch);
    world->loss_count = batch.loss_count;
    return count;
}

static void write_again(struct world *world, const char *name)
{
    char path[128];
    path_of(world, name, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && build_write(&world->build, fd));
    (void)close(fd);
}

static void pause_ms(long ms)
{
    const struct timespec pause = { .tv_nsec = ms * 1000000 };
    (void)nanosleep(&pause, NULL);
}

static void change_mask(const struct world *world, uint32_t slot, uint64_t mask, uint64_t time, uint32_t setter)
{
    const struct build *build = &world->build;
    uint64_t before = build->control[slot], after = (before & ~NT_LAYOUT_MASK_BITS) | mask;
    struct nt_layout_change change = { .time = time, .before = before, .after = after, .setter = setter };
    change.check = nt_layout_change_check(&change);
    build->control[slot] = after;
    *build_change(build, slot) = change;
    build->changes->count++;
}

static void each_ring_is_a_lane(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    put(world, "b.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(source->ops->lanes(source), 5);
    size_t counts = 0;
    for (uint32_t lane = 4; lane > 0; lane--) {
        int count = read_lane(world, source, lane);
        assert_true(count == 20 || count == 1);
        for (int i = 1; i < count; i++) {
            assert_int_equal(world->events[i].program, world->events[0].program);
            assert_int_equal(world->events[i].ring, world->events[0].ring);
            assert_true(world->events[i].position > world->events[i - 1].position);
        }
        counts += (size_t)count;
        assert_int_equal(read_lane(world, source, lane), 0);
    }
    assert_int_equal(counts, 42);
    assert_int_equal(read_lane(world, source, 0), 0);
    assert_int_equal(read_lane(world, source, 5), -EINVAL);
    nt_source_free(source);
}

/* Reading ends at what was announced when it was looked. */
static void a_lane_ends_where_it_was_looked_at(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(source->ops->lanes(source), 3);
    const uint64_t chunk = BUILD_CHUNK / SLOT;
    for (uint64_t i = 20; i < chunk + 10; i++) {
        build_record(&world->build, 0, i * SLOT);
    }
    write_again(world, "a.ntlog");
    assert_int_equal(read_lane(world, source, 1), chunk); /* the chunk was announced then */
    assert_int_equal(read_lane(world, source, 1), 0);
    assert_int_equal(source->ops->lanes(source), 3);
    assert_int_equal(read_lane(world, source, 1), 10);
    nt_source_free(source);
}

static void numbers_are_given_again(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(source->ops->lanes(source), 3);
    drop(world, "a.ntlog");
    for (int i = 0; i < 3; i++) {
        pause_ms(120);
        assert_int_equal(source->ops->lanes(source), 3);
    }
    assert_int_equal(read_lane(world, source, 1), 0); /* it is gone, and so is its program */
    put(world, "b.ntlog");
    pause_ms(120);
    assert_int_equal(source->ops->lanes(source), 3);
    assert_int_equal(read_lane(world, source, 1) + read_lane(world, source, 2), 21);
    assert_int_equal(world->events[0].program, 1);
    nt_source_free(source);
}

/* ---- Masks ---- */

static void changed_masks_are_events(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(read_events(world, source, ROOM), 21);
    change_mask(world, 1, 6, 6000, 4321);
    write_again(world, "a.ntlog");
    assert_int_equal(read_events(world, source, ROOM), 1);
    const struct nt_event *event = &world->events[0];
    assert_int_equal(event->kind, 13);
    assert_int_equal(event->ticks, 6000);
    assert_int_equal(event->time, 1000005000); /* by the calibration of the log's domain */
    assert_int_equal(event->value, 6);
    assert_int_equal(event->argument, 0x7ffe);
    assert_int_equal(event->setter, 4321);
    assert_int_equal(event->object, 1);
    assert_int_equal(event->ring, NT_EVENT_NO_RING);
    assert_int_equal(read_events(world, source, ROOM), 0);
    nt_source_free(source);
}

/* A change is known before an event that it may explain is handed out, also if both come after the look. */
static void masks_and_events_are_merged(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    struct nt_merge *merge;
    struct nt_merge_item items[64];
    const struct nt_merge_options defaults = { .hold_ns = 0 };
    assert_int_equal(nt_merge_new(source, &defaults, &merge), 0);
    assert_int_equal(nt_merge_flush(merge, items, 1), 1);
    change_mask(world, 1, 6, 5021, 4321); /* when record 20 was written */
    build_record(&world->build, 0, 20 * SLOT);
    build_record(&world->build, 0, 21 * SLOT);
    write_again(world, "a.ntlog");
    int count = nt_merge_flush(merge, items, 64);
    assert_int_equal(count, 23);
    uint64_t before = 0;
    for (int i = 0; i < count; i++) {
        assert_non_null(items[i].event);
        assert_false(items[i].late);
        assert_true(items[i].event->ticks >= before);
        before = items[i].event->ticks;
        assert_int_equal(items[i].event->kind == 13, i == 20);
    }
    assert_int_equal(nt_merge_flush(merge, items, 64), 0);
    nt_merge_free(merge);
    nt_source_free(source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_ring_is_a_lane),      TEST(a_lane_ends_where_it_was_looked_at), TEST(numbers_are_given_again),
        TEST(changed_masks_are_events), TEST(masks_and_events_are_merged),
    };
    return cmocka_run_group_tests_name("source/live/lane", tests, NULL, NULL);
}
