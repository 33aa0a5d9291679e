/* SPDX-License-Identifier: BSD-3-Clause */
/* The merge over a source made of arrays, which shows of each lane as much as a test has written so far. */
#include "source/merge.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOT UINT64_C(64)
#define MS UINT64_C(1000000)
#define START (UINT64_C(1000) * 1000 * MS) /* time of most tests */

enum { LANES = 40, ROOM = 512 };

struct entry {
    struct nt_event event;
    struct nt_source_loss loss; /* count 0: none; comes before the event */
    bool only_loss;
};

struct lane {
    struct entry *entries;
    size_t count, room; /* written */
    size_t until, read; /* at the last look; so far */
    bool loss_told;     /* of entries[read] */
    uint64_t position;  /* next */
};

struct fake {
    struct nt_source source;
    struct lane lanes[LANES];
    uint32_t lane_count;
    int fail_lanes;      /* error of the next look */
    int fail_read;       /* error of a read … */
    unsigned fail_after; /* … after so many */
    unsigned reads, looks;
    uint32_t grows;      /* a lane that gets another event with each look and read, UINT32_MAX: none */
    uint32_t explains;   /* reading this lane adds an event to lane 0, UINT32_MAX: none */
    size_t read_at_most; /* events of one read, 0: no limit */
};

struct fixture {
    struct fake fake;
    struct nt_merge *merge;
    struct nt_merge_item items[ROOM];
    int count;
};

/* ---- The source ---- */

static struct fake *fake_of(struct nt_source *source)
{
    return (struct fake *)(void *)source;
}

static struct entry *write_entry(struct fake *fake, uint32_t number)
{
    struct lane *lane = &fake->lanes[number];
    if (lane->count == lane->room) {
        lane->room = lane->room != 0 ? 2 * lane->room : 16;
        lane->entries = realloc(lane->entries, lane->room * sizeof *lane->entries);
        assert_non_null(lane->entries);
    }
    fake->lane_count = fake->lane_count > number ? fake->lane_count : number + 1;
    struct entry *entry = &lane->entries[lane->count++];
    *entry = (struct entry){ .only_loss = false };
    return entry;
}

/* One event of the ring that the lane is; each of an object of its own. */
static struct nt_event *write_event(struct fake *fake, uint32_t number, uint64_t time)
{
    struct entry *entry = write_entry(fake, number);
    struct lane *lane = &fake->lanes[number];
    entry->event = (struct nt_event){
        .time = time,
        .position = lane->position,
        .program = 7,
        .ring = number == 0 ? NT_EVENT_NO_RING : number,
        .object = number,
        .generation = 1,
        .kind = 1,
        .count = lane->count,
        .merged = 1,
    };
    lane->position += number == 0 ? 1 : SLOT;
    return &entry->event;
}

/* A loss of so many slots, before the next event that is written. */
static void write_loss(struct fake *fake, uint32_t number, uint64_t slots)
{
    struct entry *entry = write_entry(fake, number);
    struct lane *lane = &fake->lanes[number];
    entry->only_loss = true;
    entry->loss = (struct nt_source_loss){
        .program = 7, .ring = number, .from = lane->position, .to = lane->position + slots * SLOT, .count = slots
    };
    lane->position += slots * SLOT;
}

static int fake_lanes(struct nt_source *source)
{
    struct fake *fake = fake_of(source);
    fake->looks++;
    if (fake->fail_lanes != 0) {
        int error = fake->fail_lanes;
        fake->fail_lanes = 0;
        return error;
    }
    for (uint32_t i = 0; i < fake->lane_count; i++) {
        fake->lanes[i].until = fake->lanes[i].count;
    }
    return (int)fake->lane_count;
}

static void copy_data(struct nt_event *event, struct nt_source_batch *batch)
{
    if (event->data != NULL) {
        memcpy(batch->data + batch->data_used, event->data, event->data_size);
        event->data = batch->data + batch->data_used;
        batch->data_used += event->data_size;
    }
}

static int take(struct fake *fake, struct lane *lane, size_t end, struct nt_source_batch *batch)
{
    size_t count = 0, room = batch->room;
    if (fake->read_at_most != 0 && fake->read_at_most < room) {
        room = fake->read_at_most;
    }
    for (; lane->read < end; lane->read++) {
        const struct entry *entry = &lane->entries[lane->read];
        bool full = entry->only_loss ? batch->loss_count == batch->loss_room : count == room;
        if (full || batch->data_room - batch->data_used < entry->event.data_size) {
            break;
        }
        if (entry->only_loss) {
            batch->losses[batch->loss_count++] = entry->loss;
            continue;
        }
        batch->events[count] = entry->event;
        copy_data(&batch->events[count++], batch);
    }
    return (int)count;
}

static int fake_read_lane(struct nt_source *source, uint32_t number, struct nt_source_batch *batch)
{
    struct fake *fake = fake_of(source);
    struct lane *lane = &fake->lanes[number];
    batch->loss_count = batch->data_used = 0;
    assert_true(batch->room > 0 && batch->loss_room > 0 && batch->data_room >= NT_SOURCE_DATA);
    if (number != 0 && fake->reads++ == fake->fail_after && fake->fail_read != 0) {
        int error = fake->fail_read;
        fake->fail_read = 0;
        return error;
    }
    if (number == fake->grows) {
        write_event(fake, number, START + lane->count);
    }
    int count = take(fake, lane, number == 0 ? lane->count : lane->until, batch);
    if (number == fake->explains && count > 0) {
        write_event(fake, 0, batch->events[0].time - 1)->kind = 13;
    }
    return count;
}

static const struct nt_source_ops fake_ops = { .name = "fake", .lanes = fake_lanes, .read_lane = fake_read_lane };

/* ---- ---- */

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->fake.source.ops = &fake_ops;
    fixture->fake.lane_count = 1;
    fixture->fake.grows = fixture->fake.explains = UINT32_MAX;
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    nt_merge_free(fixture->merge);
    for (int i = 0; i < LANES; i++) {
        free(fixture->fake.lanes[i].entries);
    }
    free(fixture);
    return 0;
}

static void begin(struct fixture *fixture, const struct nt_merge_options *options)
{
    assert_int_equal(nt_merge_new(&fixture->fake.source, options, &fixture->merge), 0);
}

static void begin_default(struct fixture *fixture)
{
    const struct nt_merge_options options = { .hold_ns = 0 };
    begin(fixture, &options);
}

static void next(struct fixture *fixture, uint64_t now)
{
    fixture->count = nt_merge_next(fixture->merge, now, fixture->items, ROOM);
    assert_true(fixture->count >= 0);
}

static void flush(struct fixture *fixture)
{
    fixture->count = nt_merge_flush(fixture->merge, fixture->items, ROOM);
    assert_true(fixture->count >= 0);
}

/* "lane:time" of each item, time after START; '*' late, '+' ahead; losses as "lane-slots". */
static const char *told(const struct fixture *fixture)
{
    static char text[8192];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < fixture->count; i++) {
        const struct nt_merge_item *item = &fixture->items[i];
        assert_true((item->event == NULL) != (item->loss == NULL));
        const char *between = i > 0 ? " " : "";
        int size;
        if (item->event != NULL) {
            size = snprintf(text + used, sizeof text - used, "%s%u:%lld%s%s", between, item->event->object,
                            (long long)(item->event->time - START), item->late ? "*" : "", item->ahead ? "+" : "");
        } else {
            size = snprintf(text + used, sizeof text - used, "%s%u-%u", between, item->loss->lost.ring,
                            (unsigned)item->loss->lost.count);
        }
        used += (size_t)size;
    }
    return text;
}

/* ---- Order ---- */

static void merges_lanes_by_time(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    static const uint64_t times[3][4] = { { 1, 4, 7, 8 }, { 2, 3, 9, 10 }, { 0, 5, 6, 11 } };
    for (uint32_t i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            write_event(fake, 1 + i, START + times[i][k]);
        }
    }
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "3:0 1:1 2:2 2:3 1:4 3:5 3:6 1:7 1:8 2:9 2:10 3:11");
    flush(fixture);
    assert_int_equal(fixture->count, 0);
    struct nt_merge_stats stats = nt_merge_stats(fixture->merge);
    assert_int_equal(stats.events, 12);
    assert_int_equal(stats.late + stats.early + stats.ahead + stats.twice + stats.held, 0);
}

/* Whatever their times say. */
static void a_ring_keeps_its_order(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    static const uint64_t times[] = { 10, 30, 20, 25, 40 };
    for (int i = 0; i < 5; i++) {
        write_event(fake, 1, START + times[i]);
    }
    write_event(fake, 2, START + 22);
    write_event(fake, 2, START + 35);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "1:10 2:22 1:30 1:20* 1:25* 2:35 1:40");
    assert_int_equal(nt_merge_stats(fixture->merge).late, 2);
}

static void little_room_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    for (uint64_t i = 0; i < 600; i++) {
        write_event(fake, 1 + (uint32_t)(i * 7 % 3), START + i);
    }
    begin_default(fixture);
    for (uint64_t i = 0; i < 600; i++) {
        struct nt_merge_item item;
        assert_int_equal(nt_merge_flush(fixture->merge, &item, 1), 1);
        assert_int_equal(item.event->time, START + i);
        assert_false(item.late);
        assert_int_equal(fake->looks, 1);
    }
    struct nt_merge_item item;
    assert_int_equal(nt_merge_flush(fixture->merge, &item, 1), 0);
}

static void counts_of_one_object_at_one_time(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    static const uint64_t counts[] = { 3, 1, 4, 2 };
    for (uint32_t i = 0; i < 4; i++) {
        struct nt_event *event = write_event(fake, 1 + i, START);
        event->object = 9;
        event->count = counts[i];
    }
    begin_default(fixture);
    flush(fixture);
    assert_int_equal(fixture->count, 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(fixture->items[i].event->count, i + 1);
        assert_false(fixture->items[i].late);
    }
}

/* ---- Holding back ---- */

static void holds_back(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    begin_default(fixture);
    next(fixture, START);
    assert_int_equal(nt_merge_due(fixture->merge), UINT64_MAX);
    write_event(fake, 1, START + 10 * MS);
    next(fixture, START + 20 * MS);
    assert_int_equal(fixture->count, 0);
    assert_int_equal(nt_merge_due(fixture->merge), START + 60 * MS);
    /* comes later, is earlier */
    write_event(fake, 2, START + 5 * MS);
    next(fixture, START + 55 * MS);
    assert_string_equal(told(fixture), "2:5000000");
    next(fixture, START + 60 * MS - 1);
    assert_int_equal(fixture->count, 0);
    next(fixture, START + 60 * MS);
    assert_string_equal(told(fixture), "1:10000000");
    assert_int_equal(nt_merge_due(fixture->merge), UINT64_MAX);
    /* comes too late */
    write_event(fake, 2, START + 8 * MS);
    write_event(fake, 2, START + 12 * MS);
    next(fixture, START + 70 * MS);
    assert_string_equal(told(fixture), "2:8000000* 2:12000000");
    write_event(fake, 3, 2);
    next(fixture, 3); /* a clock that was set back far */
    assert_int_equal(fixture->count, 0);
}

static void other_holds(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    const struct nt_merge_options little = { .hold_ns = 100 }, none = { .no_hold = true, .hold_ns = 100 };
    write_event(fake, 1, START + 10);
    begin(fixture, &little);
    next(fixture, START + 109);
    assert_int_equal(fixture->count, 0);
    next(fixture, START + 110);
    assert_int_equal(fixture->count, 1);
    nt_merge_free(fixture->merge);
    begin(fixture, &none);
    write_event(fake, 1, START + 120);
    write_event(fake, 1, START + 130);
    next(fixture, START + 120);
    assert_string_equal(told(fixture), "1:120");
    assert_int_equal(nt_merge_due(fixture->merge), START + 130);
    next(fixture, 5); /* a clock that was set back */
    assert_int_equal(fixture->count, 0);
    flush(fixture);
    assert_string_equal(told(fixture), "1:130");
}

static void what_is_ahead_delays_nobody(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    begin_default(fixture);
    write_event(fake, 1, START);
    write_event(fake, 1, START + 5000 * MS);
    write_event(fake, 1, START + 2);
    write_event(fake, 1, UINT64_MAX);
    write_event(fake, 2, START + 1);
    write_event(fake, 2, START + 3);
    next(fixture, START + 50 * MS + 3);
    assert_string_equal(told(fixture), "1:0 1:5000000000+ 2:1* 1:2 1:-1000000000001+ 2:3*");
    assert_int_equal(nt_merge_stats(fixture->merge).ahead, 2);
    /* up to a second it may be the clocks: then its time is waited for */
    write_event(fake, 2, START + 900 * MS);
    next(fixture, START + 100 * MS);
    assert_int_equal(fixture->count, 0);
    next(fixture, START + 950 * MS);
    assert_string_equal(told(fixture), "2:900000000");
    /* nothing is ahead where no time is known */
    write_event(fake, 2, START + 50000 * MS);
    write_event(fake, 1, START + 50000 * MS + 1);
    flush(fixture);
    assert_string_equal(told(fixture), "2:50000000000 1:50000000001");
}

/* ---- Losses ---- */

static void losses_come_in_their_place(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    write_loss(fake, 1, 3);
    write_event(fake, 1, START + 5);
    write_event(fake, 1, START + 6);
    write_loss(fake, 1, 10);
    write_loss(fake, 1, 11);
    write_event(fake, 1, START + 20);
    write_event(fake, 2, START + 10);
    write_loss(fake, 2, 4);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "1-3 1:5 1:6 2:10 2-4 1-10 1-11 1:20");
    const struct nt_merge_loss *first = fixture->items[0].loss, *second = fixture->items[5].loss;
    assert_int_equal(first->from_time, 0);
    assert_int_equal(first->to_time, START + 5);
    assert_int_equal(first->lost.program, 7);
    assert_int_equal(first->lost.from, 0);
    assert_int_equal(first->lost.to, 3 * SLOT);
    assert_int_equal(second->from_time, START + 6);
    assert_int_equal(second->to_time, START + 20);
    assert_int_equal(second->lost.from, 5 * SLOT);
    assert_int_equal(second->lost.to, 15 * SLOT);
    /* the last one: nothing came behind it */
    assert_int_equal(fixture->items[4].loss->from_time, START + 10);
    assert_int_equal(fixture->items[4].loss->to_time, 0);
    assert_int_equal(nt_merge_stats(fixture->merge).losses, 4);
    assert_int_equal(nt_merge_stats(fixture->merge).lost, 28);
}

static void at_one_time_losses_come_first(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    write_event(fake, 1, START);
    write_event(fake, 2, START);
    write_loss(fake, 3, 2);
    write_event(fake, 3, START);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "3-2 1:0 2:0 3:0");
}

/* What is behind a loss is read before it is told. */
static void losses_know_what_is_behind_them(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    fake->read_at_most = 1;
    write_event(fake, 1, START);
    write_loss(fake, 1, 1);
    write_event(fake, 1, START + 60);
    write_event(fake, 2, START + 30);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "1:0 2:30 1-1 1:60");
    assert_int_equal(fixture->items[2].loss->to_time, START + 60);
}

static void many_losses(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    for (uint64_t i = 0; i < 200; i++) {
        write_loss(fake, 1, 1 + i);
        if (i % 50 == 49) {
            write_event(fake, 1, START + i);
        }
    }
    begin_default(fixture);
    flush(fixture);
    assert_int_equal(fixture->count, 204);
    for (uint64_t i = 0, k = 0; i < 200; i++, k++) {
        assert_int_equal(fixture->items[k].loss->lost.count, 1 + i);
        assert_int_equal(fixture->items[k].loss->from_time, i < 50 ? 0 : START + i / 50 * 50 - 1);
        if (i % 50 == 49) {
            assert_int_equal(fixture->items[++k].event->time, START + i);
        }
    }
}

/* ---- Identity ---- */

static void nothing_comes_twice(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    for (int i = 0; i < 3; i++) {
        write_event(fake, 1, START + (uint64_t)i);
    }
    write_event(fake, 1, START + 9)->position = 1 * SLOT;
    write_event(fake, 1, START + 9)->position = 2 * SLOT;
    fake->lanes[1].position = 3 * SLOT;
    write_event(fake, 1, START + 10);
    write_loss(fake, 1, 2);
    write_event(fake, 1, START + 11);
    fake->lanes[1].position = 4 * SLOT;
    write_loss(fake, 1, 2);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "1:0 1:1 1:2 1:10 1-2 1:11");
    flush(fixture);
    fake->lanes[1].read = 0;
    flush(fixture);
    assert_int_equal(fixture->count, 0);
    assert_int_equal(nt_merge_stats(fixture->merge).twice, 2 + 7);
    assert_int_equal(nt_merge_stats(fixture->merge).held, 0);
}

static void a_lane_becomes_another_ring(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    begin_default(fixture);
    write_event(fake, 1, START + 100);
    write_event(fake, 1, START + 110);
    write_loss(fake, 1, 5);
    fake->lanes[1].position = 0;
    for (uint64_t i = 0; i < 2; i++) {
        struct nt_event *event = write_event(fake, 1, START + 50 + i);
        event->program = 8;
        event->object = 5;
    }
    fake->read_at_most = 2;
    flush(fixture);
    assert_string_equal(told(fixture), "1:100 1:110 1-5 5:50* 5:51*");
    assert_int_equal(fixture->items[2].loss->to_time, 0);
    assert_int_equal(nt_merge_stats(fixture->merge).twice, 0);
}

/* ---- What stands ---- */

static void data_stands_until_the_next_call(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    static uint8_t data[300][NT_SOURCE_DATA];
    for (uint32_t i = 0; i < 300; i++) {
        memset(data[i], (int)i + 1, sizeof data[i]);
        struct nt_event *event = write_event(fake, 1 + i % 2, START + i);
        event->data = data[i];
        event->data_size = i % 3 == 0 ? NT_SOURCE_DATA : i;
    }
    begin_default(fixture);
    flush(fixture);
    assert_int_equal(fixture->count, 300);
    for (uint32_t i = 0; i < 300; i++) {
        const struct nt_event *event = fixture->items[i].event;
        assert_int_equal(event->time, START + i);
        assert_int_equal(event->data_size, i % 3 == 0 ? NT_SOURCE_DATA : i);
        assert_true(event->data_size == 0 ||
                    (event->data != data[i] && !memcmp(event->data, data[i], event->data_size)));
    }
}

/* ---- Memory ---- */

/* A backlog that is far larger than the memory comes in order all the same. */
static void a_backlog_larger_than_memory(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    enum { EVENTS = 60000 };
    for (uint64_t i = 0; i < EVENTS; i++) { /* lane 1 first, then lane 2, then by turns */
        uint32_t lane = i < EVENTS / 3 ? 1 : i < EVENTS / 3 * 2 ? 2 : 1 + (uint32_t)(i % 7);
        write_event(fake, lane, START + i);
    }
    const struct nt_merge_options options = { .memory = 500000 };
    begin(fixture, &options);
    uint64_t at = 0;
    do {
        next(fixture, START + 10);
        for (int i = 0; i < fixture->count; i++, at++) {
            assert_int_equal(fixture->items[i].event->time, START + at);
            assert_false(fixture->items[i].late);
        }
    } while (fixture->count > 0);
    struct nt_merge_stats stats = nt_merge_stats(fixture->merge);
    assert_true(at < EVENTS); /* what memory can hold is held back */
    assert_true(at > EVENTS - 5000);
    assert_int_equal(stats.early, at); /* none was due */
    assert_int_equal(stats.held, EVENTS - at);
    assert_true(stats.bytes_max < 3 * 500000);
    next(fixture, START + EVENTS + 50 * MS);
    for (; fixture->count > 0; next(fixture, START + EVENTS + 50 * MS)) {
        at += (uint64_t)fixture->count;
    }
    assert_int_equal(at, EVENTS);
    assert_int_equal(nt_merge_stats(fixture->merge).early, stats.early);
    assert_int_equal(nt_merge_stats(fixture->merge).late, 0);
}

/* Without holding back memory stays small, however much there is. */
static void flushing_takes_little_memory(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    enum { EVENTS = 200000 };
    for (uint64_t i = 0; i < EVENTS; i++) {
        write_event(fake, 1 + (uint32_t)(i * i % 4), START + i);
    }
    begin_default(fixture);
    uint64_t at = 0;
    for (flush(fixture); fixture->count > 0; flush(fixture)) {
        for (int i = 0; i < fixture->count; i++) {
            assert_int_equal(fixture->items[i].event->time, START + at++);
        }
    }
    assert_int_equal(at, EVENTS);
    assert_true(nt_merge_stats(fixture->merge).bytes_max < 2000000);
}

/* ---- The source moves ---- */

static void flushing_ends(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    begin_default(fixture);
    write_event(fake, 1, START);
    fake->grows = 1;
    int calls = 0;
    for (flush(fixture); fixture->count > 0; flush(fixture)) {
        assert_true(++calls < 10);
    }
    assert_int_equal(nt_merge_stats(fixture->merge).events, 1);
    fake->grows = UINT32_MAX;
    flush(fixture);
    assert_true(fixture->count > 0); /* a new look */
}

static void lanes_come_later(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    begin_default(fixture);
    for (uint32_t i = 1; i < LANES; i++) {
        write_event(fake, i, START + i);
        write_event(fake, 1 + i / 2, START + i);
        next(fixture, START + 50 * MS + i);
        assert_int_equal(fixture->count, 2);
        assert_false(fixture->items[0].late || fixture->items[1].late);
    }
}

/* What lane 0 has to say on an event is known when that comes. */
static void lane_0_comes_first(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    fake->explains = 2;
    write_event(fake, 1, START);
    write_event(fake, 1, START + 5);
    write_event(fake, 2, START + 10);
    begin_default(fixture);
    flush(fixture);
    assert_string_equal(told(fixture), "1:0 1:5 0:9 2:10");
    const struct nt_merge_options none = { .no_hold = true };
    nt_merge_free(fixture->merge);
    begin(fixture, &none);
    write_event(fake, 2, START + 20);
    next(fixture, START + 20);
    assert_string_equal(told(fixture), "0:19 2:20");
}

static void errors_lose_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct fake *fake = &fixture->fake;
    for (uint64_t i = 0; i < 2000; i++) {
        write_event(fake, 1 + (uint32_t)(i % 3), START + i);
    }
    begin_default(fixture);
    fake->fail_lanes = -EIO;
    assert_int_equal(nt_merge_flush(fixture->merge, fixture->items, ROOM), -EIO);
    fake->fail_lanes = -EIO;
    assert_int_equal(nt_merge_next(fixture->merge, START, fixture->items, ROOM), -EIO);
    uint64_t at = 0;
    unsigned errors = 0;
    for (int count = 1; count != 0;) {
        if (count > 0) { /* after an error one call goes well */
            fake->fail_read = -EAGAIN;
            fake->fail_after = fake->reads + (unsigned)(at % 3);
        }
        count = nt_merge_flush(fixture->merge, fixture->items, 100);
        errors += count < 0;
        for (int i = 0; i < count; i++) {
            assert_int_equal(fixture->items[i].event->time, START + at++);
            assert_false(fixture->items[i].late);
        }
    }
    assert_int_equal(at, 2000);
    assert_true(errors > 0);
}

/* ---- Anything ---- */

struct random {
    uint64_t seed;
};

static uint64_t draw(struct random *random, uint64_t below)
{
    random->seed = random->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random->seed >> 33) % below;
}

struct follower { /* holds what came against what was written */
    uint64_t position[LANES];
    uint64_t high, previous;
    uint64_t events, lost, late;
};

static void follow(struct follower *follower, const struct fixture *fixture)
{
    for (int i = 0; i < fixture->count; i++) {
        const struct nt_merge_item *item = &fixture->items[i];
        if (item->loss != NULL) {
            assert_int_equal(item->loss->lost.from, follower->position[item->loss->lost.ring]);
            follower->position[item->loss->lost.ring] = item->loss->lost.to;
            follower->lost += item->loss->lost.count;
            continue;
        }
        const struct nt_event *event = item->event;
        assert_int_equal(event->position, follower->position[event->ring]);
        follower->position[event->ring] = event->position + SLOT;
        bool back = event->time < follower->previous || event->time < follower->high;
        assert_int_equal(item->late, back);
        follower->previous = event->time;
        follower->high = !item->ahead && event->time > follower->high ? event->time : follower->high;
        follower->events++;
        follower->late += item->late;
    }
}

/* Threads stamp, then are delayed, then write; the reader looks now and then, with little room at times. */
static void run_random(struct fixture *fixture, uint64_t seed, bool on_time)
{
    struct fake *fake = &fixture->fake;
    struct random random = { seed };
    struct follower follower = { .events = 0 };
    uint64_t written = 0, lost = 0, last[LANES] = { 0 };
    const struct nt_merge_options options = { .hold_ns = 1000, .memory = draw(&random, 2) ? 1 : 0 };
    uint32_t lanes = 1 + (uint32_t)draw(&random, LANES - 1);
    begin(fixture, &options);
    for (uint64_t now = START; now < START + 50000; now += draw(&random, 20)) {
        uint32_t lane = 1 + (uint32_t)draw(&random, lanes);
        uint64_t time = now - draw(&random, on_time ? 500 : 3000);
        time = on_time && time < last[lane] ? last[lane] : time;
        last[lane] = time;
        if (draw(&random, 20) == 0) {
            uint64_t slots = 1 + draw(&random, 5);
            write_loss(fake, lane, slots);
            lost += slots;
        }
        (void)write_event(fake, lane, !on_time && draw(&random, 500) == 0 ? now + 2000 * MS : time);
        written++;
        if (draw(&random, 10) == 0) {
            fixture->count = nt_merge_next(fixture->merge, now, fixture->items, 1 + draw(&random, ROOM));
            assert_true(fixture->count >= 0);
            follow(&follower, fixture);
        }
    }
    for (flush(fixture); fixture->count > 0; flush(fixture)) {
        follow(&follower, fixture);
    }
    assert_int_equal(follower.events, written);
    assert_int_equal(follower.lost, lost);
    assert_int_equal(nt_merge_stats(fixture->merge).late, follower.late);
    if (on_time && options.memory == 0) {
        assert_int_equal(follower.late, 0);
        assert_int_equal(nt_merge_stats(fixture->merge).early, 0);
    } else if (!on_time) {
        assert_true(follower.late > 0);
    }
}

static void anything(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        void *fixture;
        (void)setup(&fixture);
        run_random(fixture, seed, seed % 2 == 0);
        (void)teardown(&fixture);
    }
}

static void empty(void **state)
{
    struct fixture *fixture = *state;
    nt_merge_free(NULL);
    begin_default(fixture);
    flush(fixture);
    next(fixture, 0);
    next(fixture, UINT64_MAX);
    assert_int_equal(fixture->count, 0);
    assert_int_equal(nt_merge_next(fixture->merge, 1, NULL, 0), 0);
    assert_int_equal(nt_merge_due(fixture->merge), UINT64_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(merges_lanes_by_time),
        TEST(a_ring_keeps_its_order),
        TEST(little_room_changes_nothing),
        TEST(counts_of_one_object_at_one_time),
        TEST(holds_back),
        TEST(other_holds),
        TEST(what_is_ahead_delays_nobody),
        TEST(losses_come_in_their_place),
        TEST(at_one_time_losses_come_first),
        TEST(losses_know_what_is_behind_them),
        TEST(many_losses),
        TEST(nothing_comes_twice),
        TEST(a_lane_becomes_another_ring),
        TEST(data_stands_until_the_next_call),
        TEST(a_backlog_larger_than_memory),
        TEST(flushing_takes_little_memory),
        TEST(flushing_ends),
        TEST(lanes_come_later),
        TEST(lane_0_comes_first),
        TEST(errors_lose_nothing),
        TEST(anything),
        TEST(empty),
    };
    return cmocka_run_group_tests_name("source/merge", tests, NULL, NULL);
}
