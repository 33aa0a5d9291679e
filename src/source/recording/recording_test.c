/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings: what was told and given comes back; and of what is cut, flipped or cannot be written, all whole blocks
   do, what does not is told with its offset, and nothing is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "source/recording/file.h"
#include "source/recording/recording.h"
#include "source/recording/table.h"

enum { BLOCKS = 3, EACH = 12, EVENTS = BLOCKS * EACH, ROOM = 7 };

#define TEXT(literal)               \
    {                               \
        literal, sizeof literal - 1 \
    }

/* ---- A source of everything ---- */

struct world {
    struct nt_source source;
    uint64_t events; /* of the program: a snapshot is not the one before */
};

static const struct nt_source_tally tallies[] = { { 1, 2, 3, 4, 5 }, { 70, UINT64_MAX, UINT64_MAX, 1, 0 } };
static const struct nt_source_pair settled[] = { { 1, 2 }, { 3, UINT64_MAX } };
static const struct nt_source_link links[] = { { 1, 2, TEXT("key\0of it") }, { 2, 0, TEXT("") } };
static const struct nt_source_bucket buckets[] = { { 0, 0, 1 }, { 5, 9, 2 }, { UINT64_MAX, UINT64_MAX, 3 } };
static const struct nt_source_histogram histograms[] = { { 1, buckets, 3 }, { 70, buckets + 2, 1 } };
static const struct nt_source_rare rare = { TEXT("there"), TEXT(""), links, 2, histograms, 2 };
static const struct nt_source_field fields[] = { { NT_FIELD_U64, TEXT("id") }, { NT_FIELD_STRING, TEXT("na\nme") } };
static const struct nt_source_sum sums[] = { { 1, 5, 6 }, { 2, 7, UINT64_MAX } };

static void tell_program(const struct world *world, uint32_t number, const struct nt_source_sink *sink)
{
    const struct nt_source_program program = { .number = number,
                                               .id = 0x1234 + number,
                                               .origin = 9,
                                               .start_time = 1,
                                               .started = 2,
                                               .ended = 3,
                                               .events = world->events,
                                               .overwritten = 4,
                                               .dropped = 5,
                                               .refused_objects = 6,
                                               .refused_tallies = 7,
                                               .unsettled = 8,
                                               .backed = 9,
                                               .cap = UINT64_MAX,
                                               .pid = 10,
                                               .uid = UINT32_MAX,
                                               .rings = 2,
                                               .objects = 3,
                                               .sessions = 4,
                                               .remembers = 3,
                                               .forgets = true,
                                               .moving = number == 1,
                                               .state = NT_PROGRAM_EXITED,
                                               .host = TEXT("host"),
                                               .domain = TEXT("domain"),
                                               .node = TEXT(""),
                                               .program = TEXT("a program"),
                                               .name = TEXT("na\0me"),
                                               .path = "/a/path" };
    const struct nt_source_kind kind = { number, 70, true, TEXT("order"), fields, 2 };
    struct nt_source_object object = { .program = number,
                                       .slot = 1,
                                       .generation = 2,
                                       .parent = 3,
                                       .parent_generation = 4,
                                       .previous = 5,
                                       .previous_generation = 6,
                                       .epoch = 7,
                                       .kind = 5,
                                       .discipline = 1,
                                       .described = 2,
                                       .closed = true,
                                       .mixed = true,
                                       .session = UINT64_MAX,
                                       .mask = 0xff,
                                       .opened_at = 10,
                                       .closed_at = 11,
                                       .name = TEXT("orders"),
                                       .tallies = tallies,
                                       .tally_count = 2,
                                       .settled = settled,
                                       .gone = tallies,
                                       .gone_count = 1,
                                       .base = tallies + 1,
                                       .base_count = 1,
                                       .rare = &rare };
    assert_int_equal(sink->program(sink->arg, &program), 0);
    assert_int_equal(sink->kind(sink->arg, &kind), 0);
    assert_int_equal(sink->object(sink->arg, &object), 0);
    object = (struct nt_source_object){
        .program = number, .slot = 9, .generation = 1, .unsettled = true, .lineage = tallies, .lineage_count = 2
    };
    assert_int_equal(sink->object(sink->arg, &object), 0);
}

static int world_snapshot(struct nt_source *source, const struct nt_source_sink *sink)
{
    const struct world *world = (const struct world *)(const void *)source;
    static uint64_t page[NT_LAYOUT_PAGE / 8] = { 1, 2, UINT64_MAX };
    const uint64_t *const pages[] = { NULL, page, NULL };
    for (uint32_t number = 0; number < 2; number++) {
        tell_program(world, number, sink);
        const struct nt_source_given given = { number, false, pages, number == 0 ? 3 : 0 };
        struct nt_source_session session = { .program = number,
                                             .id = 77,
                                             .known = true,
                                             .standing = true,
                                             .overdue = true,
                                             .given = true,
                                             .parent = 3,
                                             .opened_at = 4,
                                             .ended_at = 5,
                                             .name = TEXT("request"),
                                             .sums = sums,
                                             .sum_count = 2 };
        assert_int_equal(sink->given(sink->arg, &given), 0);
        assert_int_equal(sink->session(sink->arg, &session), 0);
        session = (struct nt_source_session){ .program = number, .older = true, .got = true };
        assert_int_equal(sink->session(sink->arg, &session), 0);
    }
    return 0;
}

static const struct nt_source_ops world_ops = { .name = "world", .snapshot = world_snapshot };

/* What is told, as bytes. */
static int put_program(void *arg, const struct nt_source_program *program)
{
    table_put_program(arg, program);
    return 0;
}

static int put_kind(void *arg, const struct nt_source_kind *kind)
{
    table_put_kind(arg, kind);
    return 0;
}

static int put_object(void *arg, const struct nt_source_object *object)
{
    table_put_object(arg, object);
    return 0;
}

static int put_given(void *arg, const struct nt_source_given *given)
{
    table_put_given(arg, given);
    return 0;
}

static int put_session(void *arg, const struct nt_source_session *session)
{
    table_put_session(arg, session);
    return 0;
}

static struct nt_buffer told_by(struct nt_source *source)
{
    struct nt_buffer told = { 0 };
    const struct nt_source_sink sink = { .program = put_program,
                                         .kind = put_kind,
                                         .object = put_object,
                                         .arg = &told,
                                         .given = put_given,
                                         .session = put_session };
    assert_int_equal(nt_source_snapshot(source, &sink), 0);
    assert_int_equal(told.error, 0);
    return told;
}

/* ---- A small recording ---- */

struct small {
    int file;
    char path[64];
    uint8_t *bytes;
    size_t size;
    struct nt_event events[EVENTS];
    uint64_t offsets[16]; /* of its blocks */
    uint64_t ends[16];
    uint16_t types[16];
    uint32_t first[16]; /* of the events in the block */
    size_t blocks;
    struct nt_buffer told[2]; /* by its two snapshots */
};

static struct small small;

/* One of each block is of an object that no other is of; no count is missing. */
static bool is_rare(uint32_t i)
{
    return i % EACH == 7;
}

static uint64_t count_of(uint32_t i)
{
    return is_rare(i) ? i / EACH + 1 : i / 2 + 1 - (i % 2 != 0 ? (i + EACH - 8) / EACH : 0);
}

static struct nt_event event_of(uint32_t i)
{
    static const uint8_t data[] = "some fields of a kind";
    return (struct nt_event){ .time = 1000 + 10 * i,
                              .ticks = 30 * i,
                              .session = 7 + i / 5,
                              .value = i,
                              .count = count_of(i),
                              .total = (uint64_t)i * (i + 1) / 2,
                              .position = 64 * (i / 2),
                              .program = i % 2,
                              .ring = i % 2,
                              .object = is_rare(i) ? 5 : 1,
                              .generation = 2,
                              .merged = 1,
                              .kind = 1,
                              .data = i % 6 == 0 ? data : NULL,
                              .data_size = i % 6 == 0 ? 9 + i / 6 : 0,
                              .flags = i % 6 == 0 ? NT_RECORD_DATA : 0,
                              .argument = i % 6 == 0 ? (UINT64_C(1) << 32) + 9 : 0 };
}

static int scratch_file(const char *name, char path[64])
{
    int file = memfd_create(name, MFD_CLOEXEC);
    assert_true(file >= 0);
    (void)snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

static void small_blocks(void)
{
    uint64_t offset = sizeof(struct recording_header);
    uint32_t events = 0;
    while (offset < small.size) {
        struct recording_block block;
        memcpy(&block, small.bytes + offset, sizeof block);
        small.offsets[small.blocks] = offset;
        small.types[small.blocks] = block.type;
        small.first[small.blocks] = events;
        events += block.type == RECORDING_EVENTS ? EACH : 0;
        offset += (sizeof block + block.summary_size + block.body_size + 7) / 8 * 8;
        small.ends[small.blocks++] = offset;
    }
    assert_int_equal(offset, small.size);
    assert_int_equal(events, EVENTS);
}

/* Tables, events, tables, events, events, end. */
static int small_make(void **state)
{
    struct world world = { .source.ops = &world_ops };
    struct nt_recording *recording;
    (void)state;
    small.file = scratch_file("small", small.path);
    assert_int_equal(nt_recording_new(small.file, 5, false, &recording), 0);
    assert_true(nt_recording_wants_tables(recording));
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (i % EACH == 0 && i / EACH < 2) {
            world.events = i;
            assert_int_equal(nt_recording_tables(recording, &world.source, i, NULL, NULL), 0);
            small.told[i / EACH] = told_by(&world.source);
        }
        small.events[i] = event_of(i);
        if (i == 5) {
            const struct nt_merge_loss loss = { { .program = 1, .ring = 1, .from = 64, .to = 128, .count = 1 }, 3, 4 };
            assert_int_equal(nt_recording_loss(recording, &loss), 0);
        }
        assert_int_equal(nt_recording_event(recording, &small.events[i], 100 + i % 2), 0);
        if (i % EACH == EACH - 1) {
            assert_int_equal(nt_recording_flush(recording), 0);
        }
    }
    assert_int_equal(nt_recording_finish(recording, 9), 0);
    assert_int_equal(nt_recording_stats(recording).events, EVENTS);
    assert_int_equal(nt_recording_stats(recording).lost, 1);
    small.size = nt_recording_stats(recording).bytes;
    assert_int_equal(lseek(small.file, 0, SEEK_END), small.size);
    nt_recording_free(recording);
    small.bytes = malloc(small.size);
    assert_int_equal(pread(small.file, small.bytes, small.size, 0), small.size);
    small_blocks();
    return 0;
}

static int small_free(void **state)
{
    (void)state;
    (void)close(small.file);
    free(small.bytes);
    nt_buffer_fini(&small.told[0]);
    nt_buffer_fini(&small.told[1]);
    return 0;
}

/* ---- Reading ---- */

struct heard {
    unsigned times;
    uint64_t offset; /* that the last one named */
    int error;
};

static void hear(void *arg, const char *path, int error, const char *text)
{
    struct heard *heard = arg;
    const char *offset = strstr(text, "offset ");
    assert_non_null(path);
    assert_true(text[0] != '\0' && strchr(text, '\n') == NULL);
    heard->times++;
    heard->error = error;
    heard->offset = offset != NULL ? strtoull(offset + 7, NULL, 10) : UINT64_MAX;
}

static struct nt_source *open_one(const char *path, struct heard *heard)
{
    const struct nt_recording_options options = { &path, 1, hear, heard };
    struct nt_source *source;
    *heard = (struct heard){ 0 };
    assert_int_equal(nt_source_recording_open(&options, &source), 0);
    return source;
}

static bool is_same(const struct nt_event *got, const struct nt_event *want)
{
    struct nt_event a = *got, b = *want;
    bool same = a.data_size == b.data_size && (a.data_size == 0 || memcmp(a.data, b.data, a.data_size) == 0);
    a.data = b.data = NULL;
    return same && memcmp(&a, &b, sizeof a) == 0;
}

/* Reads all through the lanes; a bit for each of the events that came, which must be what was given, in order. */
static uint64_t read_all(struct nt_source *source, unsigned *ret_losses)
{
    struct nt_event events[ROOM];
    struct nt_source_loss losses[2];
    uint8_t data[NT_SOURCE_DATA];
    uint64_t came = 0;
    uint32_t at = 0;
    *ret_losses = 0;
    assert_int_equal(source->ops->lanes(source), 2);
    for (;;) {
        struct nt_source_batch batch = { events, ROOM, losses, 2, data, sizeof data, 0, 0, 0 };
        int count = source->ops->read_lane(source, 1, &batch);
        assert_true(count >= 0);
        if (count == 0 && batch.loss_count == 0) {
            return came;
        }
        for (int i = 0; i < count; i++) {
            while (at < EVENTS && !is_same(&events[i], &small.events[at])) {
                at++;
            }
            assert_true(at < EVENTS);
            assert_int_equal(nt_source_thread(source, events[i].program, events[i].ring, events[i].position),
                             100 + at % 2);
            came |= UINT64_C(1) << at++;
        }
        *ret_losses += (unsigned)batch.loss_count;
    }
}

static int wants_rare(void *arg, uint32_t program, uint32_t object, uint32_t generation)
{
    (void)arg;
    (void)program;
    (void)generation;
    return object == 5;
}

static bool is_asked(const struct nt_event *event, unsigned how, const struct nt_source_wanted *wanted)
{
    return ((how & 1) == 0 || event->session == wanted->sessions[0]) && ((how & 2) == 0 || event->object == 5) &&
           event->time >= wanted->since && event->time <= wanted->until;
}

/* Reads what is asked for: `how` 1 one session, 2 one object, 4 a time. All that comes was given, and what is
   asked for comes but for `missing` events, a bit each. */
static void find_some(const char *path, unsigned how, uint64_t missing, bool losses)
{
    struct heard heard;
    unsigned lost;
    const uint64_t session = small.events[14].session;
    struct nt_source *source = open_one(path, &heard);
    const struct nt_source_wanted wanted = { .since = (how & 4) != 0 ? small.events[10].time : 0,
                                             .until = (how & 4) != 0 ? small.events[20].time : UINT64_MAX,
                                             .sessions = &session,
                                             .session_count = how & 1,
                                             .life = (how & 2) != 0 ? wants_rare : NULL };
    assert_true(nt_source_select(source, &wanted) >= 0);
    uint64_t came = read_all(source, &lost);
    assert_true((how & 2) == 0 || losses == 0 ||
                (came & ~(UINT64_C(1) << 7 | UINT64_C(1) << 19 | UINT64_C(1) << 31)) == 0);
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (is_asked(&small.events[i], how, &wanted) && (missing >> i & 1) == 0) {
            assert_true((came >> i & 1) != 0);
        }
    }
    assert_true(!losses || lost == 1);
    nt_source_free(source);
}

static uint64_t events_of_block(size_t block)
{
    return small.types[block] == RECORDING_EVENTS ? ((UINT64_C(1) << EACH) - 1) << small.first[block] : 0;
}

static bool is_told(struct nt_source *source, int snapshot)
{
    struct nt_buffer told = told_by(source);
    bool same = snapshot < 0 ? told.size == 0
                             : told.size == small.told[snapshot].size &&
                                   memcmp(told.data, small.told[snapshot].data, told.size) == 0;
    nt_buffer_fini(&told);
    return same;
}

/* ---- Tests ---- */

static void all_comes_back(void **state)
{
    struct heard heard;
    unsigned losses;
    (void)state;
    struct nt_source *source = open_one(small.path, &heard);
    assert_true(is_told(source, 1));
    assert_int_equal(read_all(source, &losses), (UINT64_C(1) << EVENTS) - 1);
    assert_int_equal(losses, 1);
    assert_true(is_told(source, 1));
    assert_int_equal(heard.times, 0);
    nt_source_free(source);
}

static void some_is_found(void **state)
{
    (void)state;
    for (unsigned how = 1; how < 8; how++) {
        find_some(small.path, how, 0, true);
    }
}

/* Of two files the programs have numbers of their own, and the merged events are in order. */
static void files_are_merged(void **state)
{
    const char *const paths[] = { small.path, small.path };
    struct heard heard = { 0 };
    const struct nt_recording_options options = { paths, 2, hear, &heard };
    const struct nt_merge_options merge_options = { .no_hold = true };
    struct nt_merge_item items[5];
    struct nt_source *source;
    struct nt_merge *merge;
    uint64_t time = 0;
    size_t events = 0, losses = 0;
    int count;
    (void)state;
    assert_int_equal(nt_source_recording_open(&options, &source), 0);
    assert_int_equal(nt_merge_new(source, &merge_options, &merge), 0);
    while ((count = nt_merge_flush(merge, items, 5)) > 0) {
        for (int i = 0; i < count; i++) {
            if (items[i].loss != NULL) {
                assert_int_equal(items[i].loss->from_time, 3);
                assert_int_equal(items[i].loss->to_time, 4);
                assert_true(events == 2 * 5 || events == 2 * 5 + 1 || events == 2 * 5 - 1);
                losses++;
                continue;
            }
            assert_true(items[i].event->time >= time && !items[i].late);
            time = items[i].event->time;
            struct nt_event event = *items[i].event;
            event.program %= RECORDING_PROGRAMS_MAX;
            assert_true(is_same(&event, &small.events[events++ / 2]));
        }
    }
    assert_int_equal(count, 0);
    assert_int_equal(events, 2 * EVENTS);
    assert_int_equal(losses, 2);
    assert_int_equal(heard.times, 0);
    nt_merge_free(merge);
    nt_source_free(source);
}

/* The newest snapshot that is whole within the first so many blocks; -1: none. */
static int snapshot_within(size_t blocks)
{
    int snapshot = -1;
    for (size_t i = 0; i < blocks; i++) {
        snapshot += small.types[i] == RECORDING_TABLES;
    }
    return snapshot;
}

static void every_cut_is_survived(void **state)
{
    char path[64];
    int file = scratch_file("cut", path);
    (void)state;
    assert_int_equal(pwrite(file, small.bytes, small.size, 0), small.size);
    for (size_t size = small.size; size-- > 0;) {
        struct heard heard;
        unsigned losses;
        uint64_t wanted = 0;
        size_t blocks = 0, cut;
        assert_int_equal(ftruncate(file, (off_t)size), 0);
        struct nt_source *source = open_one(path, &heard);
        for (; blocks < small.blocks && small.ends[blocks] <= size; blocks++) {
            wanted |= events_of_block(blocks);
        }
        assert_int_equal(heard.times, 1);
        assert_int_equal(heard.error, -NT_ETRUNCATED);
        cut = blocks > 0 ? small.ends[blocks - 1] : sizeof(struct recording_header);
        assert_true(size < sizeof(struct recording_header) ? heard.offset == UINT64_MAX : heard.offset == cut);
        assert_true(is_told(source, snapshot_within(blocks)));
        assert_int_equal(read_all(source, &losses), wanted);
        assert_int_equal(heard.times, 1);
        nt_source_free(source);
        find_some(path, 1 + (unsigned)(size % 7), ~wanted, false);
    }
    (void)close(file);
}

static size_t block_at(size_t offset)
{
    size_t block = 0;
    while (block < small.blocks && small.ends[block] <= offset) {
        block++;
    }
    return block;
}

static void every_flip_is_survived(void **state)
{
    char path[64];
    int file = scratch_file("flip", path);
    (void)state;
    assert_int_equal(pwrite(file, small.bytes, small.size, 0), small.size);
    for (size_t bit = 0; bit < 8 * small.size; bit++) {
        size_t offset = bit / 8, block = block_at(offset);
        uint8_t byte = small.bytes[offset] ^ (uint8_t)(1u << bit % 8);
        bool header = offset < sizeof(struct recording_header);
        struct heard heard;
        unsigned losses;
        assert_int_equal(pwrite(file, &byte, 1, (off_t)offset), 1);
        struct nt_source *source = open_one(path, &heard);
        struct nt_buffer told = told_by(source);
        uint64_t came = read_all(source, &losses);
        assert_true(heard.times >= 1);
        if (offset < 7) {
            assert_int_equal(heard.error, -NT_EFORMAT);
            assert_int_equal(came, 0);
        } else {
            uint64_t wanted = (UINT64_C(1) << EVENTS) - 1 - (header ? 0 : events_of_block(block));
            int snapshot = !header && block == 2 ? 0 : 1; /* the older one, where the newer one is damaged */
            assert_int_equal(came, wanted);
            assert_int_equal(heard.times, 1);
            assert_int_equal(heard.offset, header ? 0 : small.offsets[block]);
            assert_int_equal(told.size, small.told[snapshot].size);
            assert_memory_equal(told.data, small.told[snapshot].data, told.size);
        }
        nt_buffer_fini(&told);
        nt_source_free(source);
        uint64_t missing = offset < 7 ? UINT64_MAX : header ? 0 : events_of_block(block);
        find_some(path, 1 + (unsigned)(bit % 7), missing, offset >= 7 && block != 1);
        assert_int_equal(pwrite(file, &small.bytes[offset], 1, (off_t)offset), 1);
    }
    (void)close(file);
}

static void odd_files_are_told(void **state)
{
    static const char *const paths[] = { "/nonexistent", "/", "/dev/null", "/proc/self/exe" };
    struct heard heard;
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        unsigned losses;
        struct nt_source *source = open_one(paths[i], &heard);
        assert_int_equal(heard.times, 1);
        assert_int_equal(read_all(source, &losses), 0);
        assert_true(is_told(source, -1));
        nt_source_free(source);
    }
    int file = scratch_file("version", path);
    struct recording_header header;
    memcpy(&header, small.bytes, sizeof header);
    header.magic[7] = 2;
    header.version = 2;
    header.hash = recording_header_hash(&header);
    assert_int_equal(pwrite(file, &header, sizeof header, 0), sizeof header);
    nt_source_free(open_one(path, &heard));
    assert_int_equal(heard.error, -NT_EVERSION);
    (void)close(file);
}

/* A block of a later version is passed over. */
static void unknown_blocks_are_skipped(void **state)
{
    struct heard heard;
    unsigned losses;
    char path[64];
    int file = scratch_file("unknown", path);
    size_t cut = small.ends[small.blocks - 3]; /* without directory and end */
    struct recording_block block = { .type = 99, .number = 5 };
    (void)state;
    memcpy(block.mark, RECORDING_MARK, sizeof block.mark);
    assert_int_equal(pwrite(file, small.bytes, cut, 0), cut);
    block.summary_hash = block.body_hash = UINT64_C(0x2d06800538d394c2); /* of nothing */
    block.hash = recording_block_hash(&block, cut);
    assert_int_equal(pwrite(file, &block, sizeof block, (off_t)cut), sizeof block);
    struct nt_source *source = open_one(path, &heard);
    assert_int_equal(heard.times, 1);
    assert_int_equal(heard.error, -NT_ETRUNCATED);
    assert_int_equal(heard.offset, cut + sizeof block);
    assert_int_equal(read_all(source, &losses), (UINT64_C(1) << EVENTS) - 1);
    nt_source_free(source);
    (void)close(file);
}

/* Where there is no room, what was written before it is whole. */
static void a_full_disk_leaves_blocks(void **state)
{
    struct world world = { .source.ops = &world_ops };
    struct rlimit before, little;
    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t room = 0; room < small.size; room += 97) {
        struct nt_recording *recording = NULL;
        struct heard heard;
        unsigned losses;
        char path[64];
        int file = scratch_file("full", path);
        little = (struct rlimit){ room, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
        int error = nt_recording_new(file, 5, false, &recording);
        if (error == 0) {
            error = nt_recording_tables(recording, &world.source, 0, NULL, NULL);
            for (uint32_t i = 0; i < EVENTS && error == 0; i++) {
                error = nt_recording_event(recording, &small.events[i], 100 + i % 2);
                error = error == 0 && i % EACH == EACH - 1 ? nt_recording_flush(recording) : error;
            }
            error = error == 0 ? nt_recording_finish(recording, 1) : error;
            assert_true(error == 0 || nt_recording_flush(recording) == error);
            nt_recording_free(recording);
        }
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        struct nt_source *source = open_one(path, &heard);
        (void)read_all(source, &losses);
        assert_int_equal(heard.times, error != 0);
        assert_true(error == 0 || heard.error == -NT_ETRUNCATED);
        assert_true(heard.offset == UINT64_MAX || error == 0 || heard.offset == (uint64_t)lseek(file, 0, SEEK_END));
        nt_source_free(source);
        (void)close(file);
    }
}

static void tables_are_written_when_they_changed(void **state)
{
    struct world world = { .source.ops = &world_ops };
    struct nt_recording *recording;
    char path[64];
    int file = scratch_file("tables", path);
    struct nt_event event = event_of(0);
    (void)state;
    assert_int_equal(nt_recording_new(file, 5, false, &recording), 0);
    assert_int_equal(nt_recording_tables(recording, &world.source, 1, NULL, NULL), 0);
    uint64_t bytes = nt_recording_stats(recording).bytes;
    assert_int_equal(nt_recording_tables(recording, &world.source, 2, NULL, NULL), 0);
    assert_int_equal(nt_recording_stats(recording).bytes, bytes);
    assert_false(nt_recording_wants_tables(recording));
    assert_int_equal(nt_recording_event(recording, &event, 1), 0);
    assert_false(nt_recording_wants_tables(recording));
    event.object = 4711;
    assert_int_equal(nt_recording_event(recording, &event, 1), 0);
    assert_true(nt_recording_wants_tables(recording));
    world.events = 1;
    assert_int_equal(nt_recording_tables(recording, &world.source, 2, NULL, NULL), 0);
    assert_true(nt_recording_stats(recording).bytes > bytes);
    event.program = RECORDING_PROGRAMS_MAX;
    assert_int_equal(nt_recording_event(recording, &event, 1), -E2BIG);
    nt_recording_free(recording);
    (void)close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_back),
        cmocka_unit_test(some_is_found),
        cmocka_unit_test(files_are_merged),
        cmocka_unit_test(every_cut_is_survived),
        cmocka_unit_test(every_flip_is_survived),
        cmocka_unit_test(odd_files_are_told),
        cmocka_unit_test(unknown_blocks_are_skipped),
        cmocka_unit_test(a_full_disk_leaves_blocks),
        cmocka_unit_test(tables_are_written_when_they_changed),
    };
    return cmocka_run_group_tests(tests, small_make, small_free);
}
