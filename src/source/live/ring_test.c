/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings made by hand: holes, laps, long events, threads that took over, nonsense; and one that a thread writes
   while it is read, every accepted word checked. */
#include "source/live/ring.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <nt/error.h>

#include "source/live/build.h"

#define SLOT ((uint64_t)NT_LAYOUT_SLOT)
#define CHUNK ((uint64_t)BUILD_CHUNK)
#define RING ((uint64_t)BUILD_RING)

enum { ROOM = 4096, LOSSES = 64, DATA = 65536 };

static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

struct fixture {
    struct build build;
    struct live_map map;
    struct live_ring ring;
    struct live_ring_out out;
    struct nt_event events[ROOM];
    struct nt_source_loss losses[LOSSES];
    uint8_t data[DATA];
};

static void attach(struct fixture *fixture)
{
    char text[LIVE_MAP_TEXT];
    assert_int_equal(live_map_open_memory(&fixture->map, fixture->build.data, BUILD_SIZE, text), 0);
    assert_int_equal(live_ring_init(&fixture->ring, &fixture->map, 5, 1), 0);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    (void)build_ring(&fixture->build, 0);
    (void)build_ring(&fixture->build, 1);
    attach(fixture);
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

/* Reads with all the room there is. Returns how many events. */
static size_t take(struct fixture *fixture, bool frozen)
{
    fixture->out = (struct live_ring_out){
        .events = fixture->events,
        .room = ROOM,
        .losses = fixture->losses,
        .loss_room = LOSSES,
        .data = fixture->data,
        .data_room = DATA,
    };
    live_ring_read(&fixture->ring, frozen, &nanoseconds, &fixture->out);
    return fixture->out.count;
}

static void records(struct fixture *fixture, uint64_t from, uint64_t to)
{
    for (uint64_t position = from; position < to; position += SLOT) {
        build_record(&fixture->build, 1, position);
    }
}

/* What build_record wrote. */
static bool event_is(const struct nt_event *event, uint64_t position)
{
    uint64_t n = position / SLOT + 1;
    return event->position == position && event->ticks == 5000 + n && event->time == 5000 + n &&
           event->session == n * 3 && event->value == n * 5 && event->count == n && event->total == n * 7 &&
           event->object == 1 && event->generation == 1 && event->program == 5 && event->ring == 1 &&
           event->merged == 1;
}

static void assert_events(const struct fixture *fixture, size_t first, size_t count, uint64_t position)
{
    assert_true(first + count <= fixture->out.count);
    for (size_t i = 0; i < count; i++) {
        const struct nt_event *event = &fixture->events[first + i];
        assert_true(event_is(event, position + i * SLOT));
        assert_int_equal(event->kind, 1);
        assert_int_equal(event->argument, (position / SLOT + i + 1) * 11);
        assert_null(event->data);
    }
}

static void assert_loss(const struct fixture *fixture, size_t which, uint64_t from, uint64_t to)
{
    assert_true(which < fixture->out.loss_count);
    const struct nt_source_loss *loss = &fixture->losses[which];
    assert_int_equal(loss->from, from);
    assert_int_equal(loss->to, to);
    assert_int_equal(loss->count, (to - from) / SLOT);
    assert_int_equal(loss->program, 5);
    assert_int_equal(loss->ring, 1);
}

static void reads_in_order_and_resumes(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(take(fixture, false), 0);
    records(fixture, 0, 10 * SLOT);
    assert_int_equal(take(fixture, false), 10);
    assert_events(fixture, 0, 10, 0);
    assert_int_equal(take(fixture, false), 0);
    records(fixture, 10 * SLOT, 3 * CHUNK);
    assert_int_equal(take(fixture, false), 3 * CHUNK / SLOT - 10);
    assert_events(fixture, 0, fixture->out.count, 10 * SLOT);
    /* around the ring, as long as the reader keeps up */
    for (uint64_t lap = 3 * CHUNK; lap < 5 * RING; lap += 4 * CHUNK) {
        records(fixture, lap, lap + 4 * CHUNK);
        assert_int_equal(take(fixture, false), 4 * CHUNK / SLOT);
        assert_events(fixture, 0, 4 * CHUNK / SLOT, lap);
        assert_int_equal(fixture->out.loss_count, 0);
    }
}

static void flags_and_generation(void **state)
{
    struct fixture *fixture = *state;
    build_record(&fixture->build, 1, 0);
    struct nt_layout_record *record = build_slot(&fixture->build, 1, 0);
    record->commit = build_commit(0, 254, NT_RECORD_FIRST);
    record->generation = 9 | NT_LAYOUT_LOCKED;
    assert_int_equal(take(fixture, false), 1);
    assert_int_equal(fixture->events[0].kind, 254);
    assert_int_equal(fixture->events[0].flags, NT_RECORD_FIRST | NT_EVENT_SHARED);
    assert_int_equal(fixture->events[0].generation, 9);
}

/* ---- Holes ---- */

static void unfinish(struct fixture *fixture, uint64_t position)
{
    build_slot(&fixture->build, 1, position)->commit = 0;
}

static void newest_chunk_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, 8 * SLOT);
    unfinish(fixture, 3 * SLOT);
    assert_int_equal(take(fixture, false), 3);
    assert_int_equal(take(fixture, false), 0);
    assert_int_equal(fixture->out.loss_count, 0);
    build_record(&fixture->build, 1, 3 * SLOT);
    assert_int_equal(take(fixture, false), 5);
    assert_events(fixture, 0, 5, 3 * SLOT);
    assert_int_equal(fixture->out.loss_count, 0);
}

static void passed_hole_is_lost_once(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, CHUNK + 2 * SLOT);
    unfinish(fixture, 3 * SLOT);
    unfinish(fixture, 4 * SLOT);
    unfinish(fixture, 9 * SLOT);
    assert_int_equal(take(fixture, false), CHUNK / SLOT + 2 - 3);
    assert_int_equal(fixture->out.loss_count, 2);
    assert_loss(fixture, 0, 3 * SLOT, 5 * SLOT);
    assert_loss(fixture, 1, 9 * SLOT, 10 * SLOT);
    assert_events(fixture, 0, 3, 0);
    assert_events(fixture, 3, 4, 5 * SLOT);
    assert_events(fixture, 7, fixture->out.count - 7, 10 * SLOT);
    /* finished too late: not told again */
    build_record(&fixture->build, 1, 3 * SLOT);
    assert_int_equal(take(fixture, false), 0);
    assert_int_equal(fixture->out.loss_count, 0);
}

/* A long event that begins in one chunk and ends in the next is written back to front: its head is not lost just
   because the next chunk is announced. */
static void long_event_under_way_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, CHUNK - 2 * SLOT);
    uint64_t head = CHUNK - 2 * SLOT;
    (void)build_long(&fixture->build, 1, head, 300);
    unfinish(fixture, head);
    assert_int_equal(take(fixture, false), CHUNK / SLOT - 2);
    assert_int_equal(fixture->out.loss_count, 0);
    assert_int_equal(take(fixture, false), 0);
    assert_int_equal(fixture->out.loss_count, 0);
    (void)build_long(&fixture->build, 1, head, 300);
    assert_int_equal(take(fixture, false), 1);
    assert_int_equal(fixture->events[0].data_size, 300);
    assert_int_equal(fixture->out.loss_count, 0);
}

static void the_dead_leave_holes_and_an_end(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, 8 * SLOT);
    unfinish(fixture, 3 * SLOT);
    unfinish(fixture, 7 * SLOT);
    assert_int_equal(take(fixture, true), 6);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, 3 * SLOT, 4 * SLOT);
    assert_int_equal(take(fixture, true), 0);
    assert_int_equal(fixture->out.loss_count, 0);
    /* a long event whose head was never written is part of the end */
    (void)build_long(&fixture->build, 1, 7 * SLOT, 200);
    unfinish(fixture, 7 * SLOT);
    assert_int_equal(take(fixture, true), 0);
    assert_int_equal(fixture->out.loss_count, 0);
}

static void a_slot_of_another_lap_is_a_hole(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, RING);
    fixture->ring.at = RING;
    records(fixture, RING, RING + 3 * SLOT);
    build_reserve(&fixture->build, 1, RING + CHUNK);
    /* the slots behind still hold their first lap's numbers */
    assert_int_equal(take(fixture, false), 3);
    assert_int_equal(fixture->ring.at, RING + 3 * SLOT);
    assert_int_equal(take(fixture, true), 0);
    assert_int_equal(fixture->out.loss_count, 0);
}

static void who_took_over_left_no_loss(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_ring *shared = &fixture->build.rings[1];
    records(fixture, 0, 5 * SLOT); /* this thread ended without giving the ring back */
    shared->owners = 2;
    shared->owner[1].from = CHUNK;
    records(fixture, CHUNK, CHUNK + 3 * SLOT);
    assert_int_equal(take(fixture, false), 8);
    assert_int_equal(fixture->out.loss_count, 0);
    assert_events(fixture, 5, 3, CHUNK);
}

/* ---- Laps ---- */

static void overtaken_reader_jumps(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, 2 * RING + 5 * SLOT);
    /* announced up to 2 * RING + CHUNK: one chunk of the last lap is given up */
    uint64_t oldest = RING + CHUNK;
    assert_int_equal(take(fixture, false), (2 * RING + 5 * SLOT - oldest) / SLOT);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, 0, oldest);
    assert_events(fixture, 0, fixture->out.count, oldest);
}

/* Slots that are announced again must not be believed, even while they still look whole. */
static void announced_chunk_is_not_believed(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, RING);
    assert_int_equal(take(fixture, false), RING / SLOT);
    fixture->ring.at = 0;
    fixture->build.rings[1].reserved = RING + CHUNK;
    assert_int_equal(take(fixture, false), (RING - CHUNK) / SLOT);
    assert_loss(fixture, 0, 0, CHUNK);
    assert_events(fixture, 0, fixture->out.count, CHUNK);
}

static void losses_in_a_row_are_one(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, 2 * RING);
    uint64_t oldest = RING;
    unfinish(fixture, oldest);
    build_slot(&fixture->build, 1, oldest + SLOT)->commit = build_commit(oldest + SLOT, NT_LAYOUT_CONTINUATION, 0);
    build_slot(&fixture->build, 1, oldest + 2 * SLOT)->commit = build_commit(oldest + 2 * SLOT, 0, 0);
    assert_int_equal(take(fixture, false), RING / SLOT - 3);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, 0, oldest + 3 * SLOT);
}

/* ---- Long events ---- */

static void long_events_are_whole(void **state)
{
    struct fixture *fixture = *state;
    static const uint32_t sizes[] = { 0, 1, 55, 56, 57, 112, 113, 1000, 4095, 4096 };
    uint64_t position = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        position += build_long(&fixture->build, 1, position, sizes[i]) * SLOT;
    }
    build_record(&fixture->build, 1, position);
    assert_int_equal(take(fixture, false), sizeof sizes / sizeof *sizes + 1);
    assert_int_equal(fixture->out.loss_count, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct nt_event *event = &fixture->events[i];
        assert_int_equal(event->kind, NT_LAYOUT_USER_KIND);
        assert_int_equal(event->flags, NT_RECORD_DATA);
        assert_int_equal(event->data_size, sizes[i]);
        assert_true((event->data != NULL) == (sizes[i] > 0));
        for (uint32_t k = 0; k < sizes[i]; k++) {
            assert_int_equal(event->data[k], (uint8_t)k);
        }
    }
    assert_true(event_is(&fixture->events[sizeof sizes / sizeof *sizes], position));
}

static void long_event_around_the_end_of_the_ring(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, RING - 3 * SLOT);
    assert_int_equal(take(fixture, false), RING / SLOT - 3);
    (void)build_long(&fixture->build, 1, RING - 3 * SLOT, 500);
    assert_int_equal(take(fixture, false), 1);
    assert_int_equal(fixture->events[0].data_size, 500);
    for (uint32_t k = 0; k < 500; k++) {
        assert_int_equal(fixture->events[0].data[k], (uint8_t)k);
    }
}

static void orphans_are_not_events(void **state)
{
    struct fixture *fixture = *state;
    /* the head lies in a chunk that is given up, the rest does not */
    records(fixture, 0, RING);
    uint64_t head = RING + CHUNK - 2 * SLOT;
    records(fixture, RING, head);
    uint64_t end = head + build_long(&fixture->build, 1, head, 300) * SLOT;
    records(fixture, end, 2 * RING + SLOT);
    uint64_t oldest = RING + CHUNK;
    assert_int_equal(take(fixture, false), (2 * RING + SLOT - end) / SLOT);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_true(end > oldest);
    assert_loss(fixture, 0, 0, end);
    assert_events(fixture, 0, fixture->out.count, end);
}

static void long_event_with_a_hole_is_lost_whole(void **state)
{
    struct fixture *fixture = *state;
    uint32_t slots = build_long(&fixture->build, 1, 0, 300);
    build_record(&fixture->build, 1, slots * SLOT);
    unfinish(fixture, 3 * SLOT);
    assert_int_equal(take(fixture, true), 1);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, 0, slots * SLOT);
    assert_true(event_is(&fixture->events[0], slots * SLOT));
}

static void long_events_that_cannot_be(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t arguments[] = {
        300 | UINT64_C(6) << 32,        /* a slot too few */
        300 | UINT64_C(8) << 32,        /* one too many */
        4097 | UINT64_C(75) << 32,      /* too long */
        UINT32_MAX | UINT64_C(7) << 32, /* far too long */
        UINT64_MAX,
        UINT64_C(1) << 32 | 57,
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        (void)build_long(&fixture->build, 1, 0, 300);
        build_slot(&fixture->build, 1, 0)->argument = arguments[i];
        build_record(&fixture->build, 1, 7 * SLOT);
        attach(fixture);
        assert_int_equal(take(fixture, true), 1);
        assert_int_equal(fixture->out.loss_count, 1);
        assert_loss(fixture, 0, 0, 7 * SLOT);
    }
    /* all of it there, but longer than one may be */
    uint64_t slots = build_long(&fixture->build, 1, 0, NT_LAYOUT_PAYLOAD + 1);
    build_record(&fixture->build, 1, slots * SLOT);
    attach(fixture);
    assert_int_equal(take(fixture, true), 1);
    assert_loss(fixture, 0, 0, slots * SLOT);
    /* an event of its own where the middle should be */
    memset(build_slot(&fixture->build, 1, 0), 0, RING);
    (void)build_long(&fixture->build, 1, 0, 300);
    build_record(&fixture->build, 1, 3 * SLOT);
    build_record(&fixture->build, 1, 7 * SLOT);
    attach(fixture);
    assert_int_equal(take(fixture, true), 2);
    assert_loss(fixture, 0, 0, 3 * SLOT);
    assert_loss(fixture, 1, 4 * SLOT, 7 * SLOT);
}

/* One that says it goes on behind what is announced. */
static void long_event_beyond_the_end(void **state)
{
    struct fixture *fixture = *state;
    (void)build_long(&fixture->build, 1, CHUNK - SLOT, 100);
    fixture->build.rings[1].reserved = CHUNK; /* went back */
    fixture->ring.at = CHUNK - SLOT;
    assert_int_equal(take(fixture, true), 0);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, CHUNK - SLOT, CHUNK);
}

static void nonsense_is_lost(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, 6 * SLOT);
    build_slot(&fixture->build, 1, SLOT)->commit = build_commit(SLOT, 0, 0);
    build_slot(&fixture->build, 1, 2 * SLOT)->object |= 1u << NT_LAYOUT_SLOT_BITS; /* the program's own bits */
    build_slot(&fixture->build, 1, 4 * SLOT)->commit = build_commit(4 * SLOT, 255, NT_RECORD_DATA);
    assert_int_equal(take(fixture, false), 4);
    assert_int_equal(fixture->events[1].object, 1);
    assert_int_equal(fixture->out.loss_count, 2);
    assert_loss(fixture, 0, SLOT, 2 * SLOT);
    assert_loss(fixture, 1, 4 * SLOT, 5 * SLOT);
}

/* ---- Memory that is not there ---- */

static void never_backed_is_lost(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_ring *shared = &fixture->build.rings[1];
    uint64_t there = RING / 2;
    shared->backed = there;
    records(fixture, 0, there);
    assert_int_equal(take(fixture, false), there / SLOT);
    /* what lies beyond is not looked at, though it seems whole */
    records(fixture, there, RING);
    assert_int_equal(take(fixture, false), 0);
    assert_int_equal(take(fixture, true), 0);
    records(fixture, RING, RING + SLOT);
    assert_int_equal(take(fixture, false), 1);
    assert_int_equal(fixture->out.loss_count, 1);
    assert_loss(fixture, 0, there, RING);
    assert_events(fixture, 0, 1, RING);
    /* then memory is found */
    shared->backed = RING;
    records(fixture, RING + SLOT, 2 * RING);
    assert_int_equal(take(fixture, false), RING / SLOT - 1);
    assert_int_equal(fixture->out.loss_count, 0);
}

static void backed_beyond_the_ring(void **state)
{
    struct fixture *fixture = *state;
    fixture->build.rings[1].backed = UINT64_MAX;
    records(fixture, 0, RING);
    assert_int_equal(take(fixture, false), RING / SLOT);
    assert_int_equal(fixture->ring.there, RING);
}

/* ---- Room ---- */

static void little_room(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, CHUNK + SLOT);
    unfinish(fixture, 2 * SLOT);
    unfinish(fixture, 5 * SLOT);
    unfinish(fixture, 8 * SLOT);
    size_t events = 0, lost = 0;
    for (int turn = 0; turn < 300; turn++) {
        struct nt_event event;
        struct nt_source_loss loss;
        struct live_ring_out out = { .events = &event, .room = 1, .losses = &loss, .loss_room = 1 };
        live_ring_read(&fixture->ring, false, &nanoseconds, &out);
        /* a loss comes before the event that follows it, or alone */
        if (out.loss_count > 0 && out.count > 0) {
            assert_true(loss.to <= event.position);
        }
        events += out.count;
        lost += out.loss_count > 0 ? loss.count : 0;
    }
    assert_int_equal(events, CHUNK / SLOT + 1 - 3);
    assert_int_equal(lost, 3);
}

/* What is told in one go leaves no gap, whichever room ends it. */
static void little_room_for_losses(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, CHUNK + SLOT);
    for (uint64_t hole = 2 * SLOT; hole < CHUNK / 2; hole += 3 * SLOT) {
        unfinish(fixture, hole);
    }
    uint64_t slots = 0, end = 0;
    for (int turn = 0; turn < 100; turn++) {
        struct nt_source_loss loss;
        struct live_ring_out out = { .events = fixture->events, .room = ROOM, .losses = &loss, .loss_room = 1 };
        live_ring_read(&fixture->ring, false, &nanoseconds, &out);
        slots += out.count + (out.loss_count > 0 ? loss.count : 0);
        if (out.count > 0 && fixture->events[out.count - 1].position + SLOT > end) {
            end = fixture->events[out.count - 1].position + SLOT;
        }
        if (out.loss_count > 0 && loss.to > end) {
            end = loss.to;
        }
        assert_int_equal(slots * SLOT, end);
    }
    assert_int_equal(end, CHUNK + SLOT);
}

static void no_room_for_data_yet(void **state)
{
    struct fixture *fixture = *state;
    uint64_t position = 0;
    for (int i = 0; i < 3; i++) {
        position += build_long(&fixture->build, 1, position, 3000) * SLOT;
    }
    for (int i = 0; i < 3; i++) {
        fixture->out = (struct live_ring_out){
            .events = fixture->events,
            .room = ROOM,
            .losses = fixture->losses,
            .loss_room = LOSSES,
            .data = fixture->data,
            .data_room = NT_LAYOUT_PAYLOAD,
        };
        live_ring_read(&fixture->ring, false, &nanoseconds, &fixture->out);
        assert_int_equal(fixture->out.count, 1);
        assert_int_equal(fixture->events[0].data_size, 3000);
    }
}

/* ---- Directory entries ---- */

static void impossible_rings(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        uint64_t offset, size, chunk;
    } entries[] = {
        { 0, 0, 0 },
        { 0, RING, 0 },
        { 0, RING, 32 },
        { 0, RING - 1, CHUNK },
        { 0, RING + RING / 2, CHUNK },
        { 0, RING, CHUNK + 1 },
        { 0, RING, RING / 4 },
        { 0, RING, RING },
        { 0, UINT64_C(1) << 63, CHUNK },
        { 1, RING, CHUNK },
        { 64, RING, CHUNK },
        { RING + 4096, RING, CHUNK },
        { 2 * RING, RING, CHUNK },
        { UINT64_MAX - 4095, RING, CHUNK },
        { 0, 4 * RING, CHUNK },
    };
    struct nt_layout_ring *shared = &fixture->build.rings[1];
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        shared->offset = entries[i].offset;
        shared->size = entries[i].size;
        shared->chunk = entries[i].chunk;
        assert_int_equal(live_ring_init(&fixture->ring, &fixture->map, 5, 1), -NT_EFORMAT);
    }
    assert_int_equal(live_ring_init(&fixture->ring, &fixture->map, 5, 8), -ENOENT);
    assert_int_equal(live_ring_init(&fixture->ring, &fixture->map, 5, UINT32_MAX), -ENOENT);
}

static void impossible_reservations(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t values[] = { 1, 63, UINT64_MAX, UINT64_MAX - 63, UINT64_MAX - RING + 1 };
    records(fixture, 0, 4 * SLOT);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fixture->build.rings[1].reserved = values[i];
        assert_int_equal(take(fixture, false), 0);
        assert_int_equal(take(fixture, true), 0);
    }
    /* one that went back */
    fixture->build.rings[1].reserved = CHUNK;
    assert_int_equal(take(fixture, false), 4);
    fixture->build.rings[1].reserved = 0;
    assert_int_equal(take(fixture, false), 0);
}

/* ---- How far it was written ---- */

static void extent(void **state)
{
    struct fixture *fixture = *state;
    struct live_ring_extent now = live_ring_extent(&fixture->ring, false);
    assert_int_equal(now.used, 0);
    for (uint64_t end = SLOT; end < 3 * RING; end += 7 * SLOT) {
        for (uint64_t at = end - SLOT < 7 * SLOT ? 0 : end - 7 * SLOT; at < end; at += SLOT) {
            build_record(&fixture->build, 1, at);
        }
        for (int frozen = 0; frozen < 2; frozen++) {
            now = live_ring_extent(&fixture->ring, frozen != 0);
            assert_int_equal(now.used, end / SLOT);
            uint64_t reserved = fixture->build.rings[1].reserved;
            assert_int_equal(now.overwritten, reserved > RING ? (reserved - RING) / SLOT : 0);
        }
    }
}

static void extent_with_holes(void **state)
{
    struct fixture *fixture = *state;
    records(fixture, 0, CHUNK + 10 * SLOT);
    for (uint64_t hole = CHUNK - 4 * SLOT; hole < CHUNK + 9 * SLOT; hole += SLOT) {
        unfinish(fixture, hole);
        assert_int_equal(live_ring_extent(&fixture->ring, true).used, CHUNK / SLOT + 10);
        assert_int_equal(live_ring_extent(&fixture->ring, false).used, CHUNK / SLOT + 10);
        build_record(&fixture->build, 1, hole);
    }
    /* the last event runs into a chunk of which nothing else is written */
    (void)build_long(&fixture->build, 1, 2 * CHUNK - SLOT, 100);
    assert_int_equal(live_ring_extent(&fixture->ring, true).used, 2 * CHUNK / SLOT + 2);
    /* a chunk is announced of which nothing is written yet */
    records(fixture, 2 * CHUNK, 3 * CHUNK);
    build_reserve(&fixture->build, 1, 3 * CHUNK);
    assert_int_equal(live_ring_extent(&fixture->ring, true).used, 3 * CHUNK / SLOT);
    assert_int_equal(live_ring_extent(&fixture->ring, false).used, 3 * CHUNK / SLOT);
}

/* ---- Nonsense everywhere ---- */

static uint64_t random_state = 88172645463325252;

static uint64_t random_next(void)
{
    /* xorshift64 (Marsaglia 2003) */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Whatever is in the ring: positions rise, and events and losses cover them without a gap. */
static void covers_everything_once(void **state)
{
    struct fixture *fixture = *state;
    for (int turn = 0; turn < 2000; turn++) {
        uint64_t end = random_next() % (3 * RING) & ~(SLOT - 1);
        memset(build_slot(&fixture->build, 1, 0), 0, RING);
        build_ring(&fixture->build, 1)->reserved = 0;
        for (uint64_t at = 0; at < end;) {
            at += random_next() % 8 == 0 ? build_long(&fixture->build, 1, at, (uint32_t)(random_next() % 600)) * SLOT
                                         : (build_record(&fixture->build, 1, at), SLOT);
        }
        for (uint64_t i = random_next() % 40; i > 0; i--) {
            struct nt_layout_record *record = build_slot(&fixture->build, 1, random_next() % RING & ~(SLOT - 1));
            ((uint64_t *)(void *)record)[random_next() % 8] ^= UINT64_C(1) << random_next() % 64;
        }
        attach(fixture);
        uint64_t at = 0;
        bool frozen = random_next() % 2 != 0;
        (void)take(fixture, frozen);
        for (size_t e = 0, l = 0; e < fixture->out.count || l < fixture->out.loss_count;) {
            if (l < fixture->out.loss_count && fixture->losses[l].from == at) {
                at = fixture->losses[l].to;
                l++;
                continue;
            }
            assert_true(e < fixture->out.count);
            const struct nt_event *event = &fixture->events[e++];
            assert_int_equal(event->position, at);
            at += SLOT + (event->data_size + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED * SLOT;
        }
        assert_int_equal(at, fixture->ring.at);
    }
}

/* ---- Overtaken in the middle of a run ---- */

/* The writer of the next lap comes at the very moment when the reader, in the middle of a chunk, touches its
   second page. */
static struct fixture *lap_fixture;
static uint64_t lap_position;

static void lap_now(int number)
{
    (void)number;
    (void)mprotect(lap_fixture->build.data, BUILD_SIZE, PROT_READ | PROT_WRITE);
    records(lap_fixture, lap_position + RING, lap_position + RING + CHUNK);
}

/* A chunk is lost from `from` on; then comes what is left of the old lap, then a gap, then the new lap's chunk. */
static void assert_overtaken(const struct fixture *fixture, uint64_t from)
{
    uint64_t stands = lap_position + CHUNK;
    assert_int_equal(fixture->out.loss_count, 2);
    assert_loss(fixture, 0, from, stands);
    assert_loss(fixture, 1, RING, lap_position + RING);
    assert_int_equal(fixture->out.count, (RING - stands + CHUNK) / SLOT);
    assert_events(fixture, 0, (RING - stands) / SLOT, stands);
    assert_events(fixture, (RING - stands) / SLOT, CHUNK / SLOT, lap_position + RING);
}

static void overtaken_within_a_run(void **state)
{
    struct fixture *fixture = *state;
    struct sigaction action = { .sa_handler = lap_now }, before;
    records(fixture, 0, RING);
    lap_fixture = fixture;
    lap_position = 2 * CHUNK;
    fixture->ring.at = lap_position;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    uint8_t *page = (uint8_t *)build_slot(&fixture->build, 1, lap_position) + 4096;
    assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
    (void)take(fixture, false);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    /* of the first page all was loaded, of the second nothing: none of it counts */
    assert_overtaken(fixture, lap_position);
}

static void overtaken_within_a_long_event(void **state)
{
    struct fixture *fixture = *state;
    struct sigaction action = { .sa_handler = lap_now }, before;
    records(fixture, 0, RING);
    lap_fixture = fixture;
    lap_position = 2 * CHUNK;
    fixture->ring.at = lap_position + 4096 - 2 * SLOT;
    (void)build_long(&fixture->build, 1, fixture->ring.at, 300);
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    uint8_t *page = (uint8_t *)build_slot(&fixture->build, 1, lap_position) + 4096;
    assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
    (void)take(fixture, false);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_overtaken(fixture, lap_position + 4096 - 2 * SLOT);
}

/* ---- A thread writes ---- */

enum { WRITES = 400000 };

struct writer {
    struct build *build;
    uint64_t written; /* position */
    bool done;
};

static void writer_announce(struct nt_layout_ring *ring, uint64_t position)
{
    __atomic_store_n(&ring->reserved, (position & ~(CHUNK - 1)) + CHUNK, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* As the library does it; every 50th slot is left open for a while, every 1000th for ever. */
static void *write_records(void *arg)
{
    struct writer *writer = arg;
    struct nt_layout_ring *ring = &writer->build->rings[1];
    uint64_t open = UINT64_MAX;
    for (uint64_t n = 1; n <= WRITES; n++) {
        uint64_t position = (n - 1) * SLOT;
        if (position % CHUNK == 0) {
            writer_announce(ring, position);
        }
        struct nt_layout_record *record = build_slot(writer->build, 1, position);
        __atomic_store_n(&record->time, 5000 + n, __ATOMIC_RELAXED);
        __atomic_store_n(&record->session, n * 3, __ATOMIC_RELAXED);
        __atomic_store_n(&record->value, n * 5, __ATOMIC_RELAXED);
        __atomic_store_n(&record->sum.count, n, __ATOMIC_RELAXED);
        __atomic_store_n(&record->sum.total, n * 7, __ATOMIC_RELAXED);
        __atomic_store_n(&record->argument, n * 11, __ATOMIC_RELAXED);
        __atomic_store_n(&record->object, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&record->generation, 1, __ATOMIC_RELAXED);
        if (open != UINT64_MAX) {
            __atomic_store_n(&build_slot(writer->build, 1, open)->commit, build_commit(open, 1, 0), __ATOMIC_RELEASE);
            open = UINT64_MAX;
        }
        if (n % 1000 == 0) {
            continue;
        }
        if (n % 50 == 0) {
            open = position;
            continue;
        }
        __atomic_store_n(&record->commit, build_commit(position, 1, 0), __ATOMIC_RELEASE);
        __atomic_store_n(&writer->written, position + SLOT, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&writer->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void read_while_written(void **state)
{
    struct fixture *fixture = *state;
    struct writer writer = { .build = &fixture->build };
    pthread_t thread;
    memset(build_slot(&fixture->build, 1, 0), 0, RING);
    assert_int_equal(pthread_create(&thread, NULL, write_records, &writer), 0);
    uint64_t read = 0, lost = 0, next = 0;
    for (bool done = false, last = false; !last;) {
        last = done;
        done = __atomic_load_n(&writer.done, __ATOMIC_ACQUIRE);
        uint64_t before = fixture->ring.at;
        (void)take(fixture, done);
        for (size_t i = 0; i < fixture->out.count; i++) {
            const struct nt_event *event = &fixture->events[i];
            assert_true(event->position >= next && event_is(event, event->position));
            next = event->position + SLOT;
        }
        read += fixture->out.count;
        uint64_t lost_now = 0;
        for (size_t i = 0; i < fixture->out.loss_count; i++) {
            lost_now += fixture->losses[i].count;
        }
        lost += lost_now;
        assert_int_equal((fixture->ring.at - before) / SLOT, fixture->out.count + lost_now);
        /* the end that is told never runs ahead of what is announced, nor far behind what was written */
        uint64_t written = __atomic_load_n(&writer.written, __ATOMIC_ACQUIRE);
        struct live_ring_extent now = live_ring_extent(&fixture->ring, false);
        assert_true(now.used >= now.overwritten);
        assert_true(now.used + 2 * CHUNK / SLOT >= written / SLOT || written > fixture->build.rings[1].reserved);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* the last slot of all is open for ever */
    assert_int_equal(read + lost, WRITES - 1);
    assert_true(read > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(reads_in_order_and_resumes),
        TEST(flags_and_generation),
        TEST(newest_chunk_is_waited_for),
        TEST(passed_hole_is_lost_once),
        TEST(long_event_under_way_is_waited_for),
        TEST(the_dead_leave_holes_and_an_end),
        TEST(a_slot_of_another_lap_is_a_hole),
        TEST(who_took_over_left_no_loss),
        TEST(overtaken_reader_jumps),
        TEST(announced_chunk_is_not_believed),
        TEST(losses_in_a_row_are_one),
        TEST(long_events_are_whole),
        TEST(long_event_around_the_end_of_the_ring),
        TEST(orphans_are_not_events),
        TEST(long_event_with_a_hole_is_lost_whole),
        TEST(long_events_that_cannot_be),
        TEST(long_event_beyond_the_end),
        TEST(nonsense_is_lost),
        TEST(never_backed_is_lost),
        TEST(backed_beyond_the_ring),
        TEST(little_room),
        TEST(little_room_for_losses),
        TEST(no_room_for_data_yet),
        TEST(impossible_rings),
        TEST(impossible_reservations),
        TEST(extent),
        TEST(extent_with_holes),
        TEST(covers_everything_once),
        TEST(overtaken_within_a_run),
        TEST(overtaken_within_a_long_event),
        TEST(read_while_written),
    };
    return cmocka_run_group_tests_name("source/live/ring", tests, NULL, NULL);
}
