/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says with the library comes back from the source: of its objects, and of what it did. */
#include "source/live/live.h"

#include <nt/link.h>

#include "log/log_test.h"

/* ---- A program's log, and what was read of it ---- */

enum { OBJECTS = 8, EVENTS = 256 };

struct reading {
    struct nt_source *source;
    struct nt_source_object objects[OBJECTS];
    struct nt_source_rare rares[OBJECTS];
    struct nt_source_link links[OBJECTS][2];
    struct nt_source_histogram histograms[OBJECTS][2];
    struct nt_source_bucket buckets[OBJECTS][2][32];
    struct nt_source_tally tallies[OBJECTS][16], bases[OBJECTS][16];
    char text[1 << 16];
    size_t object_count, text_size;
    struct nt_event events[EVENTS];
    size_t event_count;
};

static struct nt_bytes keep(struct reading *reading, struct nt_bytes bytes)
{
    char *to = reading->text + reading->text_size;
    assert_true(bytes.size <= sizeof reading->text - reading->text_size);
    memcpy(to, bytes.data, bytes.size);
    reading->text_size += bytes.size;
    return (struct nt_bytes){ to, bytes.size };
}

static void keep_rare(struct reading *reading, struct nt_source_object *object, size_t number)
{
    struct nt_source_rare *rare = &reading->rares[number];
    if (!object->rare)
        return;
    *rare = *object->rare;
    rare->remote_node = keep(reading, rare->remote_node);
    rare->remote_process = keep(reading, rare->remote_process);
    for (size_t i = 0; i < rare->link_count; i++) {
        reading->links[number][i] = rare->links[i];
        reading->links[number][i].key = keep(reading, rare->links[i].key);
    }
    rare->links = reading->links[number];
    for (size_t i = 0; i < rare->histogram_count; i++) {
        reading->histograms[number][i] = rare->histograms[i];
        assert_true(rare->histograms[i].bucket_count <= 32);
        memcpy(reading->buckets[number][i], rare->histograms[i].buckets,
               rare->histograms[i].bucket_count * sizeof(struct nt_source_bucket));
        reading->histograms[number][i].buckets = reading->buckets[number][i];
    }
    rare->histograms = reading->histograms[number];
    object->rare = rare;
}

static int take_object(void *arg, const struct nt_source_object *told)
{
    struct reading *reading = arg;
    size_t number = reading->object_count++;
    assert_true(number < OBJECTS && told->tally_count <= 16 && told->base_count <= 16);
    struct nt_source_object *object = &reading->objects[number];
    *object = *told;
    object->name = keep(reading, object->name);
    memcpy(reading->tallies[number], told->tallies, told->tally_count * sizeof *told->tallies);
    memcpy(reading->bases[number], told->base, told->base_count * sizeof *told->base);
    object->tallies = reading->tallies[number];
    object->base = reading->bases[number];
    keep_rare(reading, object, number);
    return 0;
}

static void take_bad(void *arg, const char *path, int error, const char *text)
{
    (void)arg;
    (void)error;
    fail_msg("%s: %s", path, text);
}

static struct reading *read_all(void)
{
    struct reading *reading = calloc(1, sizeof *reading);
    assert_non_null(reading);
    const struct nt_live_options options = { .directory = test_directory };
    const struct nt_source_sink sink = { .object = take_object, .bad = take_bad, .arg = reading };
    struct nt_source_loss losses[4];
    size_t lost;
    assert_int_equal(nt_source_live_open(&options, &reading->source), 0);
    assert_int_equal(nt_source_snapshot(reading->source, &sink), 0);
    int count = reading->source->ops->read(reading->source, reading->events, EVENTS, losses, 4, &lost);
    assert_true(count >= 0);
    assert_int_equal(lost, 0);
    reading->event_count = (size_t)count;
    return reading;
}

static void reading_free(struct reading *reading)
{
    nt_source_free(reading->source);
    free(reading);
}

static const struct nt_source_object *object_of(const struct reading *reading, nt_object object)
{
    for (size_t i = 0; i < reading->object_count; i++)
        if (reading->objects[i].slot == handle_slot(object))
            return &reading->objects[i];
    fail_msg("no object %u", handle_slot(object));
    return NULL;
}

static const struct nt_event *event_of(const struct reading *reading, nt_object object, nt_kind kind, uint64_t count)
{
    for (size_t i = 0; i < reading->event_count; i++) {
        const struct nt_event *event = &reading->events[i];
        if (event->object == handle_slot(object) && event->kind == kind && event->count == count)
            return event;
    }
    return NULL;
}

static const struct nt_source_tally *tally_of(const struct nt_source_tally *tallies, size_t count, nt_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (tallies[i].kind == kind)
            return &tallies[i];
    return NULL;
}

static void assert_bytes(struct nt_bytes bytes, const void *data, size_t size)
{
    assert_int_equal(bytes.size, size);
    assert_memory_equal(bytes.data, data, size);
}

/* ---- Links, names of the other end, bases ---- */

static void links_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object writer = test_channel(log, "writer"), reader = test_channel(log, "reader"),
              plain = test_channel(log, "x");
    nt_link_key key, loop;
    assert_int_not_equal(nt_log_id(log), 0);
    assert_int_equal(nt_link_key_memory(nt_log_id(log), 1, UINT64_MAX, &key), 0);
    assert_int_equal(nt_link_key_memory(nt_log_id(log), 2, 0, &loop), 0);
    assert_int_equal(nt_object_link_set(writer, NT_LINK_WRITE, NT_PAIR_COUNT, key.bytes, key.size), 0);
    assert_int_equal(nt_object_link_set(reader, NT_LINK_READ, NT_PAIR_COUNT, key.bytes, key.size), 0);
    assert_int_equal(nt_object_link_set(reader, NT_LINK_WRITE, NT_PAIR_BYTES, loop.bytes, loop.size), 0);
    struct reading *reading = read_all();
    const struct nt_source_rare *rare = object_of(reading, writer)->rare;
    assert_non_null(rare);
    assert_int_equal(rare->link_count, 1);
    assert_int_equal(rare->links[0].direction, NT_LINK_WRITE);
    assert_int_equal(rare->links[0].pairing, NT_PAIR_COUNT);
    assert_bytes(rare->links[0].key, key.bytes, key.size);
    rare = object_of(reading, reader)->rare;
    assert_int_equal(rare->link_count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool reads = rare->links[i].direction == NT_LINK_READ;
        assert_true(reads || rare->links[i].direction == NT_LINK_WRITE);
        assert_int_equal(rare->links[i].pairing, reads ? NT_PAIR_COUNT : NT_PAIR_BYTES);
        assert_bytes(rare->links[i].key, reads ? key.bytes : loop.bytes, key.size);
    }
    assert_int_not_equal(rare->links[0].direction, rare->links[1].direction);
    assert_null(object_of(reading, plain)->rare);
    reading_free(reading);
    nt_log_close(log);
}

static void names_of_the_other_end_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object both = test_channel(log, "both"), one = test_channel(log, "one");
    assert_int_equal(nt_object_remote_set(both, "node \xff\n", "sink"), 0);
    assert_int_equal(nt_object_remote_set(one, NULL, "sink"), 0);
    struct reading *reading = read_all();
    const struct nt_source_rare *rare = object_of(reading, both)->rare;
    assert_bytes(rare->remote_node, "node \xff\n", 7);
    assert_bytes(rare->remote_process, "sink", 4);
    assert_int_equal(rare->link_count, 0);
    rare = object_of(reading, one)->rare;
    assert_int_equal(rare->remote_node.size, 0);
    assert_bytes(rare->remote_process, "sink", 4);
    reading_free(reading);
    nt_log_close(log);
}

static void bases_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_base_set(object, NT_WRITE, UINT64_MAX, 77), 0);
    nt_object_count(object, NT_WRITE, 5);
    struct reading *reading = read_all();
    const struct nt_source_object *told = object_of(reading, object);
    assert_int_equal(told->base_count, 1);
    assert_int_equal(told->base[0].kind, NT_WRITE);
    assert_int_equal(told->base[0].count, UINT64_MAX);
    assert_int_equal(told->base[0].total, 77);
    assert_int_equal(tally_of(told->tallies, told->tally_count, NT_WRITE)->count, 1);
    assert_int_equal(event_of(reading, object, NT_WRITE, 1)->total, 5); /* an event has what was counted here */
    reading_free(reading);
    nt_log_close(log);
}

/* ---- Histograms ---- */

static void histograms_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object objects[2] = { test_channel(log, "exclusive"), test_object(log, "shared", (nt_object){ 0 }, NT_SHARED) };
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(nt_object_histogram(objects[i], NT_PING), 0);
        assert_int_equal(nt_object_histogram(objects[i], NT_WRITE), 0);
        for (uint64_t value = 1; value; value <<= 8) { /* 1, 2^8 … 2^56 */
            nt_object_count(objects[i], NT_WRITE, value);
            nt_object_count(objects[i], NT_READ, value);
        }
        count_times(objects[i], NT_WRITE, 0, 3);
    }
    struct reading *reading = read_all();
    for (size_t i = 0; i < 2; i++) {
        const struct nt_source_object *object = object_of(reading, objects[i]);
        assert_int_equal(object->rare->histogram_count, 1); /* nothing was counted of the other kind */
        const struct nt_source_histogram *histogram = &object->rare->histograms[0];
        assert_int_equal(histogram->kind, NT_WRITE);
        assert_int_equal(histogram->bucket_count, 9);
        assert_int_equal(histogram->buckets[0].high, 0);
        assert_int_equal(histogram->buckets[0].count, 3);
        for (size_t k = 1; k < 9; k++) {
            assert_int_equal(histogram->buckets[k].high, UINT64_C(1) << 8 * (k - 1));
            assert_int_equal(histogram->buckets[k].count, 1);
        }
        const struct nt_source_tally *tally = tally_of(object->tallies, object->tally_count, NT_WRITE);
        assert_int_equal(tally->count, 11);
        assert_int_equal(tally->total, UINT64_C(0x0101010101010101));
        assert_int_equal(event_of(reading, objects[i], NT_WRITE, 8)->value, UINT64_C(1) << 56);
    }
    reading_free(reading);
    nt_log_close(log);
}

/* ---- Cuts ---- */

static void waits_and_actor_switches_come_back(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = "actor";
    options.kind = NT_OBJECT_ACTOR;
    nt_object actors[2] = { nt_object_new(log, &options), nt_object_new(log, &options) };
    nt_object channel = test_channel(log, "x");
    nt_actor_switch(actors[0]);
    nt_object_count(channel, NT_READ, 10);
    nt_actor_switch(actors[1]);
    nt_object_count(channel, NT_WAIT, 1234567);
    nt_actor_switch(actors[0]);
    nt_actor_switch((nt_object){ 0 });
    struct reading *reading = read_all();
    const struct nt_event *events[] = {
        event_of(reading, actors[0], NT_ACTOR, 1), event_of(reading, channel, NT_READ, 1),
        event_of(reading, actors[1], NT_ACTOR, 1), event_of(reading, channel, NT_WAIT, 1),
        event_of(reading, actors[0], NT_ACTOR, 2),
    };
    for (size_t i = 0; i < 5; i++) {
        assert_non_null(events[i]);
        assert_true(i == 0 || events[i]->position > events[i - 1]->position); /* in the ring where they happened */
        assert_int_equal(events[i]->ring, events[0]->ring);
    }
    assert_int_equal(events[3]->value, 1234567);
    assert_null(event_of(reading, actors[0], NT_ACTOR, 3));
    assert_int_equal(object_of(reading, actors[0])->kind, NT_OBJECT_ACTOR);
    reading_free(reading);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(links_come_back),      log_test(names_of_the_other_end_come_back),   log_test(bases_come_back),
        log_test(histograms_come_back), log_test(waits_and_actor_switches_come_back),
    };
    return cmocka_run_group_tests_name("source/live/written", tests, NULL, NULL);
}
