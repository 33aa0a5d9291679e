/* SPDX-License-Identifier: BSD-3-Clause */
/* User-defined kinds: declared once, and events with fields, cut where they do not fit. */
#include "log/log_test.h"

static const nt_field all_types[] = {
    { "u64", NT_FIELD_U64, 0 },     { "i64", NT_FIELD_I64, 0 },       { "f64", NT_FIELD_F64, 0 },
    { "bytes", NT_FIELD_BYTES, 0 }, { "string", NT_FIELD_STRING, 0 }, { "id", NT_FIELD_ID, 0 },
};

static nt_kind_options kind_options(const char *name, const nt_field *fields, uint32_t count)
{
    nt_kind_options options = NT_KIND_OPTIONS_INIT;
    options.name = name;
    options.fields = fields;
    options.field_count = count;
    return options;
}

static int declare(nt_log *log, const char *name, const nt_field *fields, uint32_t count, nt_kind *ret_kind)
{
    nt_kind_options options = kind_options(name, fields, count);
    return nt_kind_new(log, &options, ret_kind);
}

/* ---- declaring ---- */

static void a_kind_is_written_down(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_kind kind = 77;
    nt_kind_options options = kind_options("my-kind", all_types, 6);
    options.keep = 1;
    assert_int_equal(nt_kind_new(log, &options, &kind), 0);
    assert_int_equal(kind, NT_LAYOUT_USER_KIND);
    assert_int_equal(view.live->kinds, 1);
    const struct nt_layout_kind *entry = view_at(&view, NT_REGION_KINDS, 0);
    assert_int_equal(entry->number, kind);
    assert_int_equal(entry->policy, 1);
    assert_int_equal(entry->name_size, 7);
    assert_memory_equal(entry->name, "my-kind", 7);
    assert_int_equal(entry->field_count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(entry->fields[i].type, all_types[i].type);
        assert_int_equal(entry->fields[i].name_size, strlen(all_types[i].name));
        assert_memory_equal(entry->fields[i].name, all_types[i].name, entry->fields[i].name_size);
    }
    view_close(&view);
    nt_log_close(log);
}

static void the_same_name_again(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_kind first, again = 0, other;
    assert_int_equal(declare(log, "a", all_types, 3, &first), 0);
    assert_int_equal(declare(log, "b", all_types, 3, &other), 0);
    assert_int_equal(declare(log, "a", all_types, 3, &again), 0);
    assert_int_equal(again, first);
    assert_int_equal(other, first + 1);
    assert_int_equal(declare(log, "a", all_types, 2, &again), -EEXIST);
    assert_int_equal(again, 0);
    assert_int_equal(declare(log, "a", all_types + 1, 3, &again), -EEXIST);
    nt_kind_options options = kind_options("a", all_types, 3);
    options.keep = 1;
    assert_int_equal(nt_kind_new(log, &options, &again), -EEXIST);
    assert_int_equal(log->map.live->kinds, 2);
    nt_log_close(log);
}

static void bad_declarations(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",         "A",    "a b",        "a_b", "a/b",
        "\xc3\xa4", "read", "disk-write", NULL,  "123456789-123456789-123456789-123456789-123456789-1234567"
    };
    nt_log *log = test_log(0, 0);
    nt_kind kind;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        kind = 77;
        assert_int_equal(declare(log, names[i], all_types, 1, &kind), -EINVAL);
        assert_int_equal(kind, NT_KIND_NONE);
    }
    nt_field fields[17];
    for (int i = 0; i < 17; i++)
        fields[i] = (nt_field){ "f", NT_FIELD_U64, 0 };
    assert_int_equal(declare(log, "x", fields, 17, &kind), -EINVAL);
    assert_int_equal(declare(log, "x", NULL, 1, &kind), -EINVAL);
    assert_int_equal(nt_kind_new(log, NULL, &kind), -EINVAL);
    assert_int_equal(declare(NULL, "x", fields, 1, &kind), -EINVAL);
    fields[3].type = 0;
    assert_int_equal(declare(log, "x", fields, 4, &kind), -EINVAL);
    fields[3].type = NT_FIELD_ID + 1;
    assert_int_equal(declare(log, "x", fields, 4, &kind), -EINVAL);
    fields[3] = (nt_field){ "", NT_FIELD_U64, 0 };
    assert_int_equal(declare(log, "x", fields, 4, &kind), -EINVAL);
    fields[3].name = NULL;
    assert_int_equal(declare(log, "x", fields, 4, &kind), -EINVAL);
    fields[3].name = "1234567890123456789012345678901"; /* 31 */
    assert_int_equal(declare(log, "x", fields, 4, &kind), -EINVAL);
    assert_int_equal(log->map.live->kinds, 0);
    fields[3].name = "123456789012345678901234567890";
    assert_int_equal(declare(log, "123456789-123456789-123456789-123456789-123456789-123456", fields, 16, &kind), 0);
    assert_int_equal(kind, NT_LAYOUT_USER_KIND);
    nt_log_close(log);
}

/* What this version does not know it refuses. */
static void unknown_bytes_are_refused(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_kind kind;
    for (int i = 0; i < 4; i++) {
        nt_kind_options options = kind_options("x", all_types, 1);
        options.reserved[i] = 1;
        assert_int_equal(nt_kind_new(log, &options, &kind), -EINVAL);
    }
    nt_field field = { "f", NT_FIELD_U64, 1 };
    assert_int_equal(declare(log, "x", &field, 1, &kind), -EINVAL);
    nt_kind_options options = kind_options("x", all_types, 1);
    options.size = KIND_OPTIONS_FIRST - 1;
    assert_int_equal(nt_kind_new(log, &options, &kind), -EINVAL);
    assert_int_equal(log->map.live->kinds, 0);
    nt_log_close(log);
}

static void there_are_191(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    char name[16];
    nt_kind kind;
    for (uint32_t i = 0; i < 191; i++) {
        snprintf(name, sizeof(name), "kind-%u", i);
        assert_int_equal(declare(log, name, NULL, 0, &kind), 0);
        assert_int_equal(kind, 64 + i);
        nt_object_count(object, kind, i);
    }
    assert_int_equal(declare(log, "more", NULL, 0, &kind), -ENOSPC);
    assert_int_equal(kind, NT_KIND_NONE);
    assert_int_equal(declare(log, "kind-190", NULL, 0, &kind), 0);
    assert_int_equal(kind, 254);
    for (uint32_t i = 0; i < 191; i++)
        assert_sum(&view, object, 64 + i, 1, i);
    view_close(&view);
    nt_log_close(log);
}

static void without_a_log_kinds_are_ignored(void **state)
{
    (void)state;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    nt_kind kind = 77;
    options.ring_bytes = 1;
    assert_int_equal(nt_log_open(&options, &log), -EINVAL);
    assert_int_equal(declare(log, "x", NULL, 0, &kind), 0);
    assert_int_equal(kind, NT_KIND_NONE);
}

/* ---- events with fields ---- */

/* Puts together what the continuation slots of an event hold; returns the bytes. */
static size_t payload_read(const struct view *view, const struct nt_layout_ring *ring, uint64_t position,
                           unsigned char *payload)
{
    const struct nt_layout_record *head = view_record(view, ring, position);
    uint32_t slots = (uint32_t)(head->argument >> 32);
    assert_true(view_written(view, ring, position));
    assert_true(record_flags(head) & NT_RECORD_DATA);
    for (uint32_t i = 1; i < slots; i++) {
        const struct nt_layout_continuation *slot = (const void *)view_record(view, ring, position + i * 64);
        assert_true(view_written(view, ring, position + i * 64));
        assert_int_equal(slot->commit & 0xffff, NT_LAYOUT_CONTINUATION);
        memcpy(payload + (i - 1) * 56, slot->first, 8);
        memcpy(payload + (i - 1) * 56 + 8, slot->rest, 48);
    }
    size_t size = head->argument & UINT32_MAX;
    assert_int_equal(slots, 1 + (size + 55) / 56);
    for (size_t i = size; i < (slots - 1) * 56; i++)
        assert_int_equal(payload[i], 0); /* nothing of the program's memory gets into the file */
    return size;
}

static void fields_in_their_order(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_kind kind;
    unsigned char payload[5000], wanted[] = "\x08\x07\x06\x05\x04\x03\x02\x01\xfe\xff\xff\xff\xff\xff\xff\xff"
                                            "\0\0\0\0\0\0\xf8\x3f\x03\0a\0b\x05\0hello\x2a\0\0\0\0\0\0";
    nt_value values[6] = { { .as = { .u64 = UINT64_C(0x0102030405060708) }, .size = 0 },
                           { .as = { .i64 = -2 }, .size = 0 },
                           { .as = { .f64 = 1.5 }, .size = 0 },
                           { .as = { .data = "a\0b" }, .size = 3 },
                           { .as = { .data = "hello" }, .size = 5 },
                           { .as = { .u64 = 42 }, .size = 0 } };
    assert_int_equal(declare(log, "all", all_types, 6, &kind), 0);
    nt_object_record_at(object, kind, 9, values, 6, 1234);
    const struct nt_layout_record *head = view_record(&view, view_ring(&view, 0), nth(2));
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(2), payload), 44);
    assert_memory_equal(payload, wanted, 44);
    assert_int_equal(head->time, 1234);
    assert_int_equal(head->value, 9);
    assert_int_equal(head->sum.count, 1);
    assert_int_equal(head->sum.total, 9);
    assert_false(record_flags(head) & NT_RECORD_TRUNCATED);
    assert_sum(&view, object, kind, 1, 9);
    nt_object_count(object, kind, 1); /* without fields */
    assert_int_equal(record_flags(view_record(&view, view_ring(&view, 0), nth(4))), 0);
    view_close(&view);
    nt_log_close(log);
}

static void missing_values_are_zero(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_object(log, "x", (nt_object){ 0 }, NT_SHARED);
    nt_kind kind;
    unsigned char payload[5000], zero[64] = { 0 };
    nt_value value = { .as = { .data = NULL }, .size = 9 };
    assert_int_equal(declare(log, "a", all_types, 6, &kind), 0);
    nt_object_record(object, kind, 1, NULL, 0);
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(2), payload), 36);
    assert_memory_equal(payload, zero, 36);
    assert_int_equal(declare(log, "b", all_types + 3, 1, &kind), 0);
    nt_object_record(object, kind, 1, &value, 1);
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(4), payload), 2);
    assert_memory_equal(payload, zero, 2);
    /* kinds without a declaration have no fields */
    nt_object_record(object, NT_WRITE, 1, &value, 1);
    nt_object_record(object, 200, 1, &value, 1);
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(6), payload), 0);
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(7), payload), 0);
    assert_sum(&view, object, 200, 1, 1);
    view_close(&view);
    nt_log_close(log);
}

/* A log, and how far its only ring was written. */
struct cut {
    nt_log *log;
    struct view view;
    nt_object object;
    nt_kind kind;
    uint64_t position;
    size_t room;
};

static struct cut cut_open(uint64_t ring_bytes, size_t room)
{
    static const nt_field fields[2] = { { "data", NT_FIELD_BYTES, 0 }, { "after", NT_FIELD_U64, 0 } };
    struct cut cut = { .log = test_log(1 << 20, ring_bytes), .position = nth(2), .room = room };
    cut.view = view_open(nt_log_path(cut.log));
    cut.object = test_channel(cut.log, "x");
    assert_int_equal(declare(cut.log, "x", fields, 2, &cut.kind), 0);
    return cut;
}

static void cut_close(struct cut *cut)
{
    view_close(&cut->view);
    nt_log_close(cut->log);
}

/* One event of `size` bytes; at most `room` bytes get in, the size before them included. */
static void cut_one(struct cut *cut, size_t size)
{
    static char data[70000];
    unsigned char payload[5000];
    uint16_t kept;
    nt_value values[2] = { { .as = { .data = data }, .size = size }, { .as = { .u64 = 7 }, .size = 0 } };
    const struct nt_layout_ring *ring = view_ring(&cut->view, 0);
    memset(data, 'z', sizeof(data));
    nt_object_record(cut->object, cut->kind, 1, values, 2);
    size_t got = payload_read(&cut->view, ring, cut->position, payload);
    memcpy(&kept, payload, sizeof(kept));
    assert_int_equal(got, size + 10 < cut->room ? size + 10 : cut->room);
    assert_int_equal(kept, size + 2 < cut->room ? size : cut->room - 2);
    for (size_t i = 0; i < kept; i++)
        assert_int_equal(payload[2 + i], 'z');
    const struct nt_layout_record *head = view_record(&cut->view, ring, cut->position);
    assert_int_equal(!!(record_flags(head) & NT_RECORD_TRUNCATED), size + 10 > cut->room);
    cut->position += (head->argument >> 32) * 64;
    nt_object_count(cut->object, NT_WRITE, 1); /* what comes next is whole */
    assert_true(view_written(&cut->view, ring, cut->position));
    assert_int_equal(record_kind(view_record(&cut->view, ring, cut->position)), NT_WRITE);
    cut->position += 64;
}

static void cut_at_4096_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,    1,    45,   46,   47,   54,   1000, 4000, 4078,  4079,  4085,
                                    4086, 4087, 4088, 4093, 4094, 4095, 4096, 5000, 65535, 65536, 70000 };
    struct cut cut = cut_open(65536, 4096);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        cut_one(&cut, sizes[i]);
    for (size_t size = 3900; size < 4200; size++)
        cut_one(&cut, size);
    cut_close(&cut);
}

/* An eighth of a ring of 16 KiB is 32 slots: 31 for the fields. */
static void cut_in_small_rings(void **state)
{
    (void)state;
    struct cut cut = cut_open(16384, 31 * 56);
    for (size_t size = 1600; size < 1900; size++)
        cut_one(&cut, size);
    for (size_t size = 0; size < 300; size++)
        cut_one(&cut, size);
    cut_close(&cut);
}

/* A cut says that it is one even where no byte of the next field fitted. */
static void a_cut_between_fields(void **state)
{
    (void)state;
    static char data[5000];
    unsigned char payload[5000];
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_kind kind;
    nt_field fields[2] = { { "data", NT_FIELD_BYTES, 0 }, { "more", NT_FIELD_BYTES, 0 } };
    nt_value values[2] = { { .as = { .data = data }, .size = 4093 }, { .as = { .data = data }, .size = 0 } };
    assert_int_equal(declare(log, "x", fields, 2, &kind), 0);
    nt_object_record(object, kind, 1, values, 2);
    assert_int_equal(payload_read(&view, view_ring(&view, 0), nth(2), payload), 4095);
    assert_int_equal(record_flags(view_record(&view, view_ring(&view, 0), nth(2))),
                     NT_RECORD_DATA | NT_RECORD_TRUNCATED | NT_RECORD_FIRST);
    view_close(&view);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(a_kind_is_written_down), log_test(the_same_name_again),
        log_test(bad_declarations),       log_test(unknown_bytes_are_refused),
        log_test(there_are_191),          log_test(without_a_log_kinds_are_ignored),
        log_test(fields_in_their_order),  log_test(missing_values_are_zero),
        log_test(cut_at_4096_bytes),      log_test(cut_in_small_rings),
        log_test(a_cut_between_fields),
    };
    return cmocka_run_group_tests_name("log/kind", tests, NULL, NULL);
}
