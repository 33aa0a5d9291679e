/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes and histograms made by hand: what each says, and what is made of those that no program would write. */
#include "source/live/object.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "source/live/build.h"

enum {
    WRITE = NT_NOTE_LINK_WRITE,
    READ = NT_NOTE_LINK_READ,
    NODE = NT_NOTE_REMOTE_NODE,
    PROCESS = NT_NOTE_REMOTE_PROCESS
};

struct fixture {
    struct build build;
    struct live_map map;
    struct live_objects objects;
};

static const struct live_clock nanoseconds = { .scale = INT64_C(1) << LIVE_CLOCK_SHIFT };

/* Puts the strings and blocks where there is more room: half of what the rings have. */
static void make_room(struct build *build)
{
    struct nt_layout_region *regions = build->header->regions, *records = &regions[NT_REGION_RECORDS - 1];
    uint64_t quarter = records->size / 4;
    regions[NT_REGION_STRINGS - 1].offset = records->offset;
    regions[NT_REGION_BLOCKS - 1].offset = records->offset + quarter;
    regions[NT_REGION_STRINGS - 1].size = regions[NT_REGION_BLOCKS - 1].size = quarter;
    records->offset += 2 * quarter;
    records->size -= 2 * quarter;
    build->strings = build_at(build, NT_REGION_STRINGS);
    build->blocks = build_at(build, NT_REGION_BLOCKS);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char text[LIVE_MAP_TEXT];
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    make_room(&fixture->build);
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

static const struct nt_source_rare *rare_of(struct fixture *fixture, uint32_t slot)
{
    assert_true(live_objects_read(&fixture->objects, slot));
    return fixture->objects.object.rare;
}

static void assert_text(struct nt_bytes bytes, const char *text)
{
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

static void all_that_notes_say(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    assert_null(rare_of(fixture, 1));
    build->objects[1].notes = 100;
    build_note(build, 100, WRITE, "to", 103)->pairing = NT_PAIR_COUNT;
    build_note(build, 103, PROCESS, "sink", 106);
    build_note(build, 106, READ, "from", 109)->pairing = NT_PAIR_ID;
    build_note(build, 109, NODE, "node-2", 0);
    const struct nt_source_rare *rare = rare_of(fixture, 1);
    assert_non_null(rare);
    assert_text(rare->remote_node, "node-2");
    assert_text(rare->remote_process, "sink");
    assert_int_equal(rare->link_count, 2);
    assert_int_equal(rare->links[0].direction, WRITE);
    assert_int_equal(rare->links[0].pairing, NT_PAIR_COUNT);
    assert_text(rare->links[0].key, "to");
    assert_int_equal(rare->links[1].direction, READ);
    assert_int_equal(rare->links[1].pairing, NT_PAIR_ID);
    assert_text(rare->links[1].key, "from");
    assert_null(rare_of(fixture, 0)); /* nothing stays of the object before */
    build->objects[0].notes = 103;
    build_note(build, 103, WRITE | READ, "loop", 0);
    rare = rare_of(fixture, 0);
    assert_int_equal(rare->link_count, 1);
    assert_int_equal(rare->links[0].direction, WRITE | READ);
    assert_int_equal(rare->remote_node.size + rare->remote_process.size, 0);
}

/* What was said before is not said again; in any order, and round in circles. */
static void each_once(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    build->objects[1].notes = 100;
    build_note(build, 100, READ, "from", 103);
    build_note(build, 103, WRITE | READ, "both", 106);
    build_note(build, 106, NODE, "a", 109);
    build_note(build, 109, NODE, "b", 100);
    const struct nt_source_rare *rare = rare_of(fixture, 1);
    assert_int_equal(rare->link_count, 1);
    assert_text(rare->links[0].key, "from");
    assert_text(rare->remote_node, "a");
    build_note(build, 109, WRITE, "to", 100);
    build_note(build, 103, READ, "again", 106);
    assert_int_equal(rare_of(fixture, 1)->link_count, 2);
    build_note(build, 100, READ, "from", 100);
    assert_int_equal(rare_of(fixture, 1)->link_count, 1);
}

/* The largest of everything fits; a byte more is not taken. */
static void the_largest(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    static const struct {
        uint32_t unit;
        uint8_t what;
        uint16_t most;
    } notes[] = { { 100, WRITE, NT_LAYOUT_LINK_KEY },
                  { 400, NODE, NT_LAYOUT_NAME },
                  { 500, READ, NT_LAYOUT_LINK_KEY },
                  { 800, PROCESS, NT_LAYOUT_NAME } };
    for (unsigned more = 0; more < 2; more++) {
        build->objects[1].notes = notes[0].unit;
        for (size_t i = 0; i < 4; i++) {
            struct nt_layout_note *note = build_note(build, notes[i].unit, notes[i].what, "",
                                                     i < 3 ? notes[i + 1].unit : 0);
            note->size = (uint16_t)(notes[i].most + more);
            memset(note + 1, 'a' + (int)i, note->size);
        }
        const struct nt_source_rare *rare = rare_of(fixture, 1);
        if (more) {
            assert_null(rare);
            continue;
        }
        assert_int_equal(rare->link_count, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(rare->links[i].key.size, NT_LAYOUT_LINK_KEY);
            assert_int_equal(rare->links[i].key.data[0], i == 0 ? 'a' : 'c');
            assert_int_equal(rare->links[i].key.data[NT_LAYOUT_LINK_KEY - 1], i == 0 ? 'a' : 'c');
        }
        assert_int_equal(rare->remote_node.size, NT_LAYOUT_NAME);
        assert_int_equal(rare->remote_node.data[NT_LAYOUT_NAME - 1], 'b');
        assert_int_equal(rare->remote_process.size, NT_LAYOUT_NAME);
        assert_int_equal(rare->remote_process.data[NT_LAYOUT_NAME - 1], 'd');
    }
}

static void notes_that_lead_astray(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    uint32_t units = (uint32_t)(build->header->regions[NT_REGION_STRINGS - 1].size / 16);
    const uint32_t nowhere[] = { units, units + 1, UINT32_MAX, UINT32_MAX / 16 };
    for (size_t i = 0; i < 4; i++) {
        build->objects[1].notes = nowhere[i];
        assert_null(rare_of(fixture, 1));
    }
    /* up to the region's last byte, and beyond it */
    build->objects[1].notes = units - 1;
    build_note(build, units - 1, NODE, "12345678", nowhere[1]);
    assert_text(rare_of(fixture, 1)->remote_node, "12345678");
    build_note(build, units - 1, NODE, "12345678", 0)->size = 9;
    assert_null(rare_of(fixture, 1));
    build_note(build, units - 1, NODE, "", 0);
    assert_null(rare_of(fixture, 1));
}

/* Unknown notes are passed over: a later version may have more. */
static void notes_of_no_meaning(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    static const uint8_t odd[] = { 0, NODE | WRITE, NODE | PROCESS, 16, 255 };
    build->objects[1].notes = 100;
    build_note(build, 103, PROCESS, "sink", 0);
    for (size_t i = 0; i < sizeof odd; i++) {
        build_note(build, 100, odd[i], "odd", 103);
        const struct nt_source_rare *rare = rare_of(fixture, 1);
        assert_int_equal(rare->link_count, 0);
        assert_int_equal(rare->remote_node.size, 0);
        assert_text(rare->remote_process, "sink");
    }
    build_note(build, 100, READ, "odd", 103)->pairing = NT_PAIR_ID + 1;
    assert_int_equal(rare_of(fixture, 1)->link_count, 0);
}

/* ---- Histograms ---- */

/* Object 1 with a block at unit 4, tallies of four kinds in it, the first one's histogram at unit 8. */
static struct nt_layout_histogram *make_histogram(struct fixture *fixture)
{
    static const uint8_t kinds[4] = { 7, 5, 9, 3 };
    struct build *build = &fixture->build;
    build->objects[1].blocks = 4;
    struct nt_layout_tally_block *block = build_block(build, 4, 1);
    for (int i = 0; i < 4; i++) {
        build_tally(&block->tally[i], 3, 30);
        block->kind[i] = kinds[i];
    }
    block->histogram[0] = 8;
    struct nt_layout_histogram *histogram = build_histogram(build, 8, 1, kinds[0]);
    histogram->count[0] = 1;
    return histogram;
}

static void buckets_with_their_bounds(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_histogram *histogram = make_histogram(fixture);
    histogram->count[1] = 2;
    histogram->count[9] = 3;
    histogram->count[nt_layout_bucket_(1000)] = 4;
    histogram->count[NT_LAYOUT_BUCKETS - 1] = UINT64_MAX;
    const struct nt_source_rare *rare = rare_of(fixture, 1);
    assert_int_equal(rare->histogram_count, 1);
    assert_int_equal(rare->link_count, 0);
    assert_int_equal(rare->histograms[0].kind, 7);
    assert_int_equal(rare->histograms[0].bucket_count, 5);
    /* of 2^(79/8) = 939.01 to 2^10; the last one from 2^(511/8) on */
    static const struct nt_source_bucket wanted[] = { { 0, 0, 1 },
                                                      { 1, 1, 2 },
                                                      { 2, 2, 3 },
                                                      { 940, 1024, 4 },
                                                      { UINT64_C(0xeac0c6e7dd24392f), UINT64_MAX, UINT64_MAX } };
    assert_memory_equal(rare->histograms[0].buckets, wanted, sizeof wanted);
    assert_null(rare_of(fixture, 0));
}

/* Between powers of two below 16 there are not eight whole numbers: what lies in the buckets between them is a lie. */
static void all_buckets(void **state)
{
    struct fixture *fixture = *state;
    struct nt_layout_histogram *histogram = make_histogram(fixture);
    for (uint32_t i = 0; i < NT_LAYOUT_BUCKETS; i++) {
        histogram->count[i] = i + 1;
    }
    const struct nt_source_rare *rare = rare_of(fixture, 1);
    const struct nt_source_histogram *told = &rare->histograms[0];
    uint64_t next = 0, sum = 0;
    for (size_t i = 0; i < told->bucket_count; i++) {
        const struct nt_source_bucket *bucket = &told->buckets[i];
        assert_int_equal(bucket->low, next); /* no value is in none, none in two */
        assert_true(bucket->low <= bucket->high);
        assert_int_equal(bucket->count, nt_layout_bucket_(bucket->high) + 1);
        next = bucket->high + 1;
        sum++;
    }
    assert_int_equal(next, 0); /* up to 2^64 - 1 */
    uint32_t empty = 0;
    for (uint32_t i = 1; i < NT_LAYOUT_BUCKETS; i++) {
        empty += nt_layout_bucket_high_(i) == nt_layout_bucket_high_(i - 1);
    }
    assert_int_equal(told->bucket_count, NT_LAYOUT_BUCKETS - empty);
    assert_true(empty > 10 && empty < 30);
}

static void several_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    static const uint8_t kinds[4] = { 7, 5, 9, 3 };
    (void)make_histogram(fixture);
    struct nt_layout_tally_block *block = (void *)(build->blocks + (size_t)64 * 4);
    for (uint32_t i = 1; i < 4; i++) {
        block->histogram[i] = 8 + i * NT_LAYOUT_HISTOGRAM_UNITS;
        build_histogram(build, block->histogram[i], 1, kinds[i])->count[9] = i;
    }
    const struct nt_source_rare *rare = rare_of(fixture, 1);
    assert_int_equal(rare->histogram_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rare->histograms[i].kind, 3 + 2 * i);
        assert_int_equal(rare->histograms[i].bucket_count, 1);
    }
    assert_int_equal(rare->histograms[0].buckets[0].count, 3);
    assert_int_equal(rare->histograms[3].buckets[0].count, 2);
    /* the same kind again: the first one counts */
    block->kind[3] = 9;
    build_histogram(build, block->histogram[3], 1, 9)->count[0] = 77;
    rare = rare_of(fixture, 1);
    assert_int_equal(rare->histogram_count, 3);
    assert_int_equal(rare->histograms[2].kind, 9);
    assert_int_equal(rare->histograms[2].buckets[0].count, 2);
}

static void histograms_that_lead_astray(void **state)
{
    struct fixture *fixture = *state;
    struct build *build = &fixture->build;
    struct nt_layout_histogram *histogram = make_histogram(fixture);
    struct nt_layout_tally_block *block = (void *)(build->blocks + (size_t)64 * 4);
    uint32_t units = (uint32_t)(build->header->regions[NT_REGION_BLOCKS - 1].size / 64);
    const uint32_t nowhere[] = { units - NT_LAYOUT_HISTOGRAM_UNITS + 1, units, UINT32_MAX, 4 };
    assert_non_null(rare_of(fixture, 1));
    for (size_t i = 0; i < 4; i++) {
        block->histogram[0] = nowhere[i];
        assert_null(rare_of(fixture, 1));
    }
    block->histogram[0] = units - NT_LAYOUT_HISTOGRAM_UNITS; /* the last that fits */
    build_histogram(build, block->histogram[0], 1, 7)->count[3] = 0;
    assert_null(rare_of(fixture, 1)); /* nothing in it */
    block->histogram[0] = 8;
    histogram->owner = 0;
    assert_null(rare_of(fixture, 1));
    histogram->owner = 1;
    histogram->kind = 8;
    assert_null(rare_of(fixture, 1));
    histogram->kind = 7;
    histogram->scale = 4;
    assert_null(rare_of(fixture, 1));
    histogram->scale = 3;
    assert_non_null(rare_of(fixture, 1));
    block->kind[0] = histogram->kind = 255;
    assert_null(rare_of(fixture, 1));
    block->kind[0] = histogram->kind = 0;
    assert_null(rare_of(fixture, 1));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_that_notes_say),
        TEST(each_once),
        TEST(the_largest),
        TEST(notes_that_lead_astray),
        TEST(notes_of_no_meaning),
        TEST(buckets_with_their_bounds),
        TEST(all_buckets),
        TEST(several_in_order),
        TEST(histograms_that_lead_astray),

    };
    return cmocka_run_group_tests_name("source/live/rare", tests, NULL, NULL);
}
