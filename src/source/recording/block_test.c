/* SPDX-License-Identifier: BSD-3-Clause */
/* Every event comes back as it was, to the bit, whatever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "source/recording/block.h"
#include "source/recording/mend_test.h"
#include "source/recording/pack.h"

#define MANY 4000u

struct world {
    struct nt_event events[MANY];
    uint32_t threads[MANY];
    uint8_t data[MANY][64];
    uint64_t seed;
    unsigned picked; /* blocks of which some rows were read alone */
};

static struct world world;

static uint64_t dice(void)
{
    world.seed ^= world.seed << 13;
    world.seed ^= world.seed >> 7;
    world.seed ^= world.seed << 17;
    return world.seed * UINT64_C(0x2545f4914f6cdd1d);
}

static uint64_t extreme(void)
{
    static const uint64_t some[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, UINT32_MAX, 64, 127, 128
    };
    uint64_t which = dice() % 12;
    return which < 10 ? some[which] : dice() >> dice() % 64;
}

static void assert_event(const struct nt_event *got, const struct nt_event *want)
{
    struct nt_event a = *got, b = *want;
    assert_int_equal(a.data_size, b.data_size);
    if (a.data_size > 0) {
        assert_memory_equal(a.data, b.data, a.data_size);
    }
    a.data = b.data = NULL;
    assert_memory_equal(&a, &b, sizeof a);
}

/* With what may be read behind the parts left as it comes. */
struct parts {
    uint8_t *summary, *body;
    size_t summary_size, body_size;
};

static struct parts parts_of(struct recording_encoder *encoder)
{
    struct nt_buffer summary = { 0 }, body = { 0 };
    recording_encoder_finish(encoder, &summary, &body);
    assert_int_equal(summary.error, 0);
    assert_int_equal(body.error, 0);
    struct parts parts = { malloc(summary.size + PACK_SLACK), malloc(body.size + PACK_SLACK), summary.size, body.size };
    memcpy(parts.summary, summary.data, summary.size);
    if (body.size > 0) {
        memcpy(parts.body, body.data, body.size);
    }
    memset(parts.summary + summary.size, 0xa5, PACK_SLACK);
    memset(parts.body + body.size, 0xa5, PACK_SLACK);
    nt_buffer_fini(&summary);
    nt_buffer_fini(&body);
    return parts;
}

/* As who reads them gets them, `cut` bytes short. */
static struct recording_parts view(const struct parts *parts, size_t cut)
{
    return (struct recording_parts){ .summary = parts->summary,
                                     .body = parts->body,
                                     .summary_size = parts->summary_size,
                                     .body_size = parts->body_size - cut };
}

static void parts_free(struct parts *parts)
{
    free(parts->summary);
    free(parts->body);
}

static bool marked[RECORDING_EVENTS_MAX];

/* Marks some of the block's objects; returns how many. */
static uint32_t mark_some(struct recording_decoder *decoder, const struct recording_parts *all)
{
    const struct recording_object *objects;
    assert_int_equal(recording_decoder_objects(decoder, all, &objects), 0);
    uint32_t count = recording_decoder_head(decoder)->objects, marks = 0;
    unsigned share = 2 + (unsigned)(dice() % 60);
    for (uint32_t i = 0; i < count; i++) {
        marks += marked[i] = dice() % share == 0;
    }
    return marks;
}

static bool is_marked(const struct recording_object *objects, uint32_t count, const struct nt_event *event)
{
    for (uint32_t i = 0; i < count; i++) {
        if (objects[i].slot == event->object && objects[i].generation == event->generation &&
            objects[i].program == event->program) {
            return marked[i];
        }
    }
    fail();
    return false;
}

/* Rows of some objects alone are those rows of all, up to any row at a time. */
static void pick_some(struct recording_decoder *decoder, const struct recording_parts *all, size_t count)
{
    static struct recording_object objects[MANY];
    const struct recording_object *names;
    struct nt_event events[50];
    size_t at = 0;
    uint32_t end = 0;
    (void)mark_some(decoder, all);
    assert_int_equal(recording_decoder_objects(decoder, all, &names), 0);
    uint32_t object_count = recording_decoder_head(decoder)->objects;
    memcpy(objects, names, object_count * sizeof *names);
    int picked = recording_decoder_pick(decoder, all, marked);
    assert_true(picked >= 0);
    world.picked += picked > 0;
    while (picked > 0 && end < count) {
        int got;
        end += 1 + (uint32_t)(dice() % 500);
        end = end < count ? end : (uint32_t)count;
        while ((got = recording_decoder_next_picked(decoder, end, events, 1 + dice() % 50)) > 0) {
            for (int i = 0; i < got; i++, at++) {
                while (at < end && !is_marked(objects, object_count, &world.events[at])) {
                    at++;
                }
                assert_true(at < end);
                assert_event(&events[i], &world.events[at]);
            }
        }
        assert_int_equal(got, 0);
        for (; at < end; at++) {
            assert_false(is_marked(objects, object_count, &world.events[at]));
        }
    }
}

/* What has_session says is so. */
static void ask_for_sessions(struct recording_decoder *decoder, const struct recording_parts *all, size_t count)
{
    for (int round = 0; round < 8; round++) {
        uint64_t low = dice() % 2 && count > 0 ? world.events[dice() % count].session : extreme();
        uint64_t sessions[2] = { low, (low & ((UINT64_C(1) << 48) - 1)) | (dice() % 2 ? low & ~UINT64_C(0) << 48 : 0) };
        int has = 0;
        for (size_t i = 0; i < count; i++) {
            has |= world.events[i].session == sessions[0] || world.events[i].session == sessions[1];
        }
        assert_int_equal(recording_decoder_has_session(decoder, all, sessions, 2), has);
    }
}

/* Bytes that the block took. */
static size_t round_trip(size_t count)
{
    struct recording_encoder *encoder;
    struct recording_decoder *decoder;
    struct nt_event events[100];
    assert_int_equal(recording_encoder_new(&encoder), 0);
    assert_int_equal(recording_decoder_new(&decoder), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(recording_encoder_event(encoder, &world.events[i], world.threads[i]), 0);
    }
    struct parts parts = parts_of(encoder);
    assert_true(recording_encoder_is_empty(encoder));
    const struct recording_parts all = view(&parts, 0);
    assert_int_equal(recording_decoder_begin(decoder, &all), 0);
    assert_int_equal(recording_decoder_head(decoder)->rows, count);
    size_t at = 0;
    int got;
    while ((got = recording_decoder_next(decoder, events, 1 + dice() % 100)) > 0) {
        for (int i = 0; i < got; i++) {
            assert_event(&events[i], &world.events[at++]);
        }
    }
    assert_int_equal(got, 0);
    assert_int_equal(at, count);
    pick_some(decoder, &all, count);
    pick_some(decoder, &all, count);
    ask_for_sessions(decoder, &all, count);
    size_t size = parts.summary_size + parts.body_size;
    parts_free(&parts);
    recording_encoder_free(encoder);
    recording_decoder_free(decoder);
    return size;
}

static void anything(size_t i)
{
    struct nt_event *event = &world.events[i];
    *event = (struct nt_event){
        .time = extreme(),
        .ticks = extreme(),
        .session = extreme(),
        .value = extreme(),
        .count = extreme(),
        .total = extreme(),
        .argument = extreme(),
        .position = extreme(),
        .program = (uint32_t)(extreme() % RECORDING_PROGRAMS_MAX),
        .ring = (uint32_t)extreme(),
        .object = (uint32_t)extreme(),
        .generation = (uint32_t)extreme(),
        .merged = (uint32_t)extreme(),
        .kind = (uint16_t)extreme(),
        .flags = (uint16_t)extreme(),
        .setter = (uint32_t)extreme(),
    };
    world.threads[i] = (uint32_t)extreme();
    event->data_size = dice() % 4 == 0 ? (uint32_t)(dice() % 65) : 0;
    for (uint32_t k = 0; k < event->data_size; k++) {
        world.data[i][k] = (uint8_t)dice();
    }
    event->data = event->data_size > 0 ? world.data[i] : NULL;
}

static void junk_comes_back(void **state)
{
    (void)state;
    world.seed = 1;
    for (int round = 0; round < 60; round++) {
        size_t count = round < 20 ? (size_t)round : dice() % MANY;
        for (size_t i = 0; i < count; i++) {
            anything(i);
        }
        (void)round_trip(count);
    }
}

/* What programs do, with something odd now and then. */
static void plausible(size_t count, unsigned odd)
{
    uint64_t counts[40][4] = { { 0 } }, totals[40][4] = { { 0 } }, positions[5] = { 0 }, ticks = extreme(),
             time = 1 << 30;
    for (size_t i = 0; i < count; i++) {
        uint64_t object = dice() % 40, kind = dice() % 4, ring = object % 5, value = dice() % 2000;
        ticks += dice() % 3000;
        time = (UINT64_C(1) << 30) + (ticks * 10) / 29;
        anything(i);
        struct nt_event junk = world.events[i], *event = &world.events[i];
        uint32_t slots = junk.data_size > 0 ? 1 + (junk.data_size + 55) / 56 : 1;
        *event = (struct nt_event){
            .time = time,
            .ticks = ticks,
            .session = UINT64_C(0x7000000000000000) + i / 20 + dice() % 3,
            .value = value,
            .count = ++counts[object][kind],
            .total = totals[object][kind] += value,
            .position = positions[ring],
            .program = (uint32_t)ring % 2,
            .ring = (uint32_t)ring,
            .object = (uint32_t)object,
            .generation = 1,
            .merged = 1,
            .kind = (uint16_t)(1 + kind),
            .data = junk.data,
            .data_size = junk.data_size,
        };
        event->flags = junk.data_size > 0 ? NT_RECORD_DATA : 0;
        event->argument = junk.data_size > 0 ? (uint64_t)slots << 32 | junk.data_size : 0;
        positions[ring] += 64 * slots;
        world.threads[i] = 100 + (uint32_t)ring;
        if (odd != 0 && dice() % odd == 0) {
            junk.program = dice() % 2 && odd % 20 != 0 ? junk.program : event->program;
            junk.ring = odd % 20 != 0 ? junk.ring : event->ring; /* few rings */
            *event = junk;
        }
    }
}

static void programs_events_come_back(void **state)
{
    (void)state;
    world.seed = 2;
    for (int round = 0; round < 60; round++) {
        size_t count = dice() % MANY;
        plausible(count, (unsigned)(round % 5 * 45));
        (void)round_trip(count);
    }
    assert_true(world.picked > 40);
}

static void what_follows_costs_nothing(void **state)
{
    (void)state;
    world.seed = 3;
    for (size_t i = 0; i < MANY; i++) {
        world.events[i] = (struct nt_event){ .time = 1000 * i,
                                             .ticks = 3000 * i,
                                             .session = 5,
                                             .value = 7,
                                             .count = i + 1,
                                             .total = 7 * (i + 1),
                                             .position = 64 * i,
                                             .object = 1,
                                             .generation = 1,
                                             .merged = 1,
                                             .kind = 1 };
        world.threads[i] = 9;
    }
    size_t size = round_trip(MANY);
    assert_true(size < 1500);
}

static struct nt_merge_loss loss_of(uint32_t i)
{
    return (struct nt_merge_loss){
        .lost = { .program = i % 2, .ring = i, .from = 64 * i, .to = UINT64_MAX - i, .count = 3 * i },
        .from_time = i,
        .to_time = UINT64_MAX,
    };
}

static void assert_loss(const struct nt_merge_loss *got, const struct nt_merge_loss *want)
{
    assert_int_equal(got->lost.program, want->lost.program);
    assert_int_equal(got->lost.ring, want->lost.ring);
    assert_int_equal(got->lost.from, want->lost.from);
    assert_int_equal(got->lost.to, want->lost.to);
    assert_int_equal(got->lost.count, want->lost.count);
    assert_int_equal(got->from_time, want->from_time);
    assert_int_equal(got->to_time, want->to_time);
}

static void losses_and_threads_come_back(void **state)
{
    struct recording_encoder *encoder;
    struct recording_decoder *decoder;
    (void)state;
    world.seed = 4;
    plausible(10, 0);
    for (int i = 0; i < 10; i++) {
        world.events[i].data_size = 0;
    }
    world.threads[9] = 77;
    assert_int_equal(recording_encoder_new(&encoder), 0);
    assert_int_equal(recording_decoder_new(&decoder), 0);
    for (uint32_t i = 0; i < 10; i++) {
        const struct nt_merge_loss loss = loss_of(i);
        if (i % 3 == 0) {
            assert_int_equal(recording_encoder_loss(encoder, &loss), 0);
        }
        assert_int_equal(recording_encoder_event(encoder, &world.events[i], world.threads[i]), 0);
    }
    const struct nt_merge_loss last = { .lost = { .program = 1, .ring = NT_EVENT_NO_RING, .to = 64, .count = 1 } };
    assert_int_equal(recording_encoder_loss(encoder, &last), 0);
    struct parts parts = parts_of(encoder);
    const struct recording_parts all = view(&parts, 0);
    assert_int_equal(recording_decoder_begin(decoder, &all), 0);
    assert_int_equal(recording_decoder_head(decoder)->losses, 5);
    const struct recording_loss *losses = recording_decoder_losses(decoder);
    for (uint32_t i = 0; i < 4; i++) {
        const struct nt_merge_loss want = loss_of(3 * i);
        assert_int_equal(losses[i].before, 3 * i);
        assert_loss(&losses[i].loss, &want);
    }
    assert_int_equal(losses[4].before, 10);
    assert_loss(&losses[4].loss, &last);
    const struct recording_head *head = recording_decoder_head(decoder);
    const struct recording_thread *threads = recording_decoder_threads(decoder);
    assert_int_equal(threads[head->changes - 1].thread, 77);
    assert_int_equal(threads[head->changes - 1].position, world.events[9].position);
    assert_int_equal(threads[head->changes - 1].ring, world.events[9].ring);
    parts_free(&parts);
    recording_encoder_free(encoder);
    recording_decoder_free(decoder);
}

/* Reads what can be read of it, and some. */
static void read_anything(struct recording_decoder *decoder, const struct recording_parts *all)
{
    static struct nt_event events[MANY];
    int got;
    size_t rows = 0;
    if (recording_decoder_begin(decoder, all) == 0) {
        while ((got = recording_decoder_next(decoder, events, MANY)) > 0) {
            rows += (size_t)got;
        }
        assert_true(rows <= RECORDING_EVENTS_MAX);
    }
    const uint32_t *gaps;
    const struct recording_object *objects;
    const uint64_t session = dice() % 2 ? world.events[3].session : extreme();
    (void)recording_decoder_has_session(decoder, all, &session, 1);
    (void)recording_decoder_gaps(decoder, all, &gaps);
    if (recording_decoder_objects(decoder, all, &objects) != 0) {
        return;
    }
    (void)mark_some(decoder, all);
    if (recording_decoder_pick(decoder, all, marked) > 0) {
        rows = 0;
        while ((got = recording_decoder_next_picked(decoder, recording_decoder_head(decoder)->rows, events, MANY)) >
               0) {
            rows += (size_t)got;
        }
        assert_true(rows <= RECORDING_EVENTS_MAX);
        world.picked++;
    }
}

/* Whatever the bytes are, they are read within their bounds, and rows end. */
static void damage_is_survived(void **state)
{
    struct recording_encoder *encoder;
    struct recording_decoder *decoder;
    (void)state;
    world.seed = 5;
    world.picked = 0;
    plausible(700, 40);
    assert_int_equal(recording_encoder_new(&encoder), 0);
    assert_int_equal(recording_decoder_new(&decoder), 0);
    for (size_t i = 0; i < 700; i++) {
        assert_int_equal(recording_encoder_event(encoder, &world.events[i], world.threads[i]), 0);
    }
    struct parts parts = parts_of(encoder),
                 copy = { malloc(parts.summary_size + PACK_SLACK), malloc(parts.body_size + PACK_SLACK),
                          parts.summary_size, parts.body_size };
    for (int round = 0; round < 20000; round++) {
        memcpy(copy.summary, parts.summary, parts.summary_size + PACK_SLACK);
        memcpy(copy.body, parts.body, parts.body_size + PACK_SLACK);
        bool summary = dice() % 2;
        uint8_t *byte = summary ? &copy.summary[dice() % parts.summary_size] : &copy.body[dice() % parts.body_size];
        *byte = (uint8_t)dice();
        size_t cut = dice() % 8 == 0 ? dice() % parts.body_size : 0;
        if (round % 8 != 0) {
            recording_mend(copy.summary, copy.summary_size, copy.body, copy.body_size - cut);
        }
        const struct recording_parts all = view(&copy, cut);
        read_anything(decoder, &all);
    }
    assert_true(world.picked > 2000);
    parts_free(&copy);
    parts_free(&parts);
    recording_encoder_free(encoder);
    recording_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(junk_comes_back),
        cmocka_unit_test(programs_events_come_back),
        cmocka_unit_test(what_follows_costs_nothing),
        cmocka_unit_test(losses_and_threads_come_back),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
