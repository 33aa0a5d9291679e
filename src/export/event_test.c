/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as lines: every column, numbers exact, fields of every type whole and cut, names that would do harm, and what
   is missing. */
#include "export/event.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nt/log_layout.h>

#include "event/filter.h"
#include "export/export.h"
#include "model/feed_test.h"
#include "model/kinds.h"

#define TIME UINT64_C(1714557600123456789)
#define USER NT_LAYOUT_USER_KIND

static struct nt_lives *lives;
static struct nt_export_lines lines;
static struct nt_buffer out;
static char text[16384];

static const struct nt_source_field fields[] = {
    { NT_FIELD_U64, FEED_BYTES("price") },   { NT_FIELD_I64, FEED_BYTES("change") },
    { NT_FIELD_F64, FEED_BYTES("rate") },    { NT_FIELD_BYTES, FEED_BYTES("raw") },
    { NT_FIELD_STRING, FEED_BYTES("note") }, { NT_FIELD_ID, FEED_BYTES("order") },
};

static int setup(void **state)
{
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(3, "alpha", "work\x1b[31mer", 10);
    const struct nt_source_kind kind = { .program = 3,
                                         .kind = USER,
                                         .name = FEED_BYTES("tra\x1b"
                                                            "de"),
                                         .fields = fields,
                                         .field_count = 6 };
    struct nt_source_object root = feed_object(3, 0, 0, "worker");
    struct nt_source_object orders = feed_object(3, 1, 0,
                                                 "or\xe2\x80\xae"
                                                 "ders"); /* turns text around */
    (void)state;
    nt_model_source(&model);
    return nt_model_add_program(&model, &program) == 0 && nt_model_add_kind(&model, &kind) == 0 &&
                   nt_model_add_object(&model, &root) == 0 && nt_model_add_object(&model, &orders) == 0 &&
                   nt_model_link(&model) == 0 && nt_lives_new(NULL, 0, &lives) == 0 && nt_lives_take(lives, &model) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    nt_lives_free(lives);
    nt_buffer_fini(&out);
    return 0;
}

static const char *taken(void)
{
    assert_int_equal(out.error, 0);
    assert_in_range(out.size, 0, sizeof text - 1);
    memcpy(text, out.data, out.size);
    text[out.size] = '\0';
    nt_buffer_clear(&out);
    return text;
}

static struct nt_event an_event(void)
{
    return (struct nt_event){ .time = TIME,
                              .kind = NT_MODEL_KIND_READ,
                              .program = 3,
                              .ring = 2,
                              .position = 640,
                              .object = 1,
                              .generation = 1,
                              .count = 17,
                              .value = 512,
                              .total = 8704,
                              .merged = 1 };
}

static const char *json_of(const struct nt_event *event)
{
    const struct nt_export_event line = {
        .event = event, .life = nt_lives_find(lives, event->program, event->object, event->generation), .thread = 77
    };
    nt_export_json.event(&line, &lines, &out);
    return taken();
}

static const char *text_of(const struct nt_event *event)
{
    const struct nt_export_event line = {
        .event = event, .life = nt_lives_find(lives, event->program, event->object, event->generation)
    };
    memset(&lines, 0, sizeof lines);
    nt_export_text.event(&line, &lines, &out);
    return taken();
}

static void has(const char *line, const char *part)
{
    if (!strstr(line, part))
        fail_msg("%s has no %s", line, part);
}

static void json_has_every_column(void **state)
{
    struct nt_event event = an_event();
    event.session = 0xdeadbeef;
    event.argument = 9;
    event.flags = NT_RECORD_FIRST | NT_EVENT_SHARED | NT_EVENT_LATE;
    (void)state;
    assert_string_equal(json_of(&event),
                        "{\"time\":1714557600123456789,\"time_raw\":1714557600123456789,\"time_error\":null,"
                        "\"log\":\"000000000000abc3\",\"ring\":2,\"position\":640,\"thread\":77,"
                        "\"process\":\"work\\u001b[31mer.10\",\"node\":\"alpha\",\"object\":\"0000000100000001\","
                        "\"path\":\"alpha/work\\\\x1b[31mer/or\\\\xe2\\\\x80\\\\xaeders\",\"kind\":\"read\","
                        "\"session\":\"00000000deadbeef\",\"count\":17,\"value\":512,\"total\":8704,\"n\":1,"
                        "\"argument\":9,\"flags\":[\"first\",\"shared\",\"late\"],\"link\":null,"
                        "\"remote_node\":null,\"remote_process\":null,\"data\":null}\n");
}

static void text_is_one_line(void **state)
{
    struct nt_event event = an_event();
    (void)state;
    assert_string_equal(text_of(&event), "2024-05-01T10:00:00.123456789Z  work\\x1b[31mer.10  or\\xe2\\x80\\xaeders  "
                                         "read  512 bytes  #17  total 8704\n");
    event.object = 0;
    event.kind = NT_MODEL_KIND_ERROR;
    event.session = 0xdeadbeef;
    event.argument = 9;
    event.merged = 3;
    event.flags = NT_RECORD_FIRST | NT_EVENT_SHARED | NT_EVENT_LATE;
    assert_string_equal(text_of(&event), "2024-05-01T10:00:00.123456789Z  work\\x1b[31mer.10  .  error  code 512  #17  "
                                         "total 8704  of 3 events  argument 9  session 00000000deadbeef  first late\n");
    const struct nt_export_event named = { .event = &event,
                                           .life = nt_lives_find(lives, 3, 0, 1),
                                           .session = FEED_BYTES("night\n\x1brun") };
    nt_export_text.event(&named, &lines, &out);
    has(taken(), "  session 'night\\x0a\\x1brun'  first");
}

static void sessions_come_and_go(void **state)
{
    static const char *const texts[] = { "code 0  #",   "new in 00000000000000ab  #", "end  #",
                                         "standing  #", "join from read #171  #",     "code 5  #" };
    struct nt_event event = an_event();
    (void)state;
    event.kind = NT_MODEL_KIND_SESSION;
    event.session = 0xdeadbeef;
    event.argument = 0xab;
    for (event.value = 0; event.value < 6; event.value++) {
        has(text_of(&event), texts[event.value]);
        has(text_of(&event), "total 8704  session 00000000deadbeef\n");
    }
    event.value = 1;
    event.argument = 0;
    has(text_of(&event), "  session  new  #17");
}

static void numbers_are_exact(void **state)
{
    static const uint64_t odd[] = {
        0, 1, UINT64_C(1) << 31, UINT64_C(1) << 32, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX
    };
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        unsigned long long number = odd[i];
        char wanted[160];
        struct nt_event event = an_event();
        event.session = event.value = event.count = event.total = event.argument = event.position = number;
        (void)snprintf(wanted, sizeof wanted,
                       "\"session\":\"%016llx\",\"count\":%llu,\"value\":%llu,\"total\":%llu,\"n\":1,"
                       "\"argument\":%llu,",
                       number, number, number, number, number);
        has(json_of(&event), wanted);
        (void)snprintf(wanted, sizeof wanted, "\"position\":%llu,", number);
        has(json_of(&event), wanted);
        (void)snprintf(wanted, sizeof wanted, "  %llu bytes  #%llu  total %llu", number, number, number);
        has(text_of(&event), wanted);
        if (number > 0)
            (void)snprintf(wanted, sizeof wanted, "  argument %llu  session %016llx\n", number, number);
        has(text_of(&event), wanted);
    }
}

/* ---- Fields ---- */

static size_t put(uint8_t *data, size_t at, const void *bytes, size_t size)
{
    memcpy(data + at, bytes, size);
    return at + size;
}

static struct nt_event with_fields(uint8_t data[128])
{
    const uint64_t price = UINT64_MAX, order = 0xabc;
    const int64_t change = INT64_MIN;
    const double rate = 0.1;
    const uint16_t sizes[2] = { 3, 6 };
    size_t at = put(data, 0, &price, 8);
    at = put(data, at, &change, 8);
    at = put(data, at, &rate, 8);
    at = put(data, at, &sizes[0], 2);
    at = put(data, at, "\x00\xff\x1b", 3);
    at = put(data, at, &sizes[1], 2);
    at = put(data, at, "a\"\x1b[0m", 6);
    at = put(data, at, &order, 8);
    struct nt_event event = an_event();
    event.kind = USER;
    event.flags = NT_RECORD_DATA;
    event.data = data;
    event.data_size = (uint32_t)at;
    return event;
}

static void fields_are_decoded(void **state)
{
    uint8_t data[128];
    struct nt_event event = with_fields(data);
    (void)state;
    has(json_of(&event), "\"kind\":\"tra\\u001bde\",");
    has(json_of(&event),
        "\"data\":{\"price\":18446744073709551615,\"change\":-9223372036854775808,\"rate\":0.1,\"raw\":\"00ff1b\","
        "\"note\":\"a\\\"\\u001b[0m\",\"order\":\"0000000000000abc\"}}\n");
    has(text_of(&event), "  tra\\x1bde  512  #17  total 8704  price=18446744073709551615 change=-9223372036854775808 "
                         "rate=0.10000000000000001 raw=00ff1b note=\"a\\\"\\x1b[0m\" order=0000000000000abc\n");
    event.kind = USER + 1;
    has(json_of(&event), "\"kind\":\"kind-65\",");
    has(json_of(&event), "\"data\":{\"undeclared\":\"ffffffffffffffff00");
    has(text_of(&event), "45 bytes of fields that are not declared\n");
}

/* Wherever it was cut, what is there whole is told, and nothing behind it is touched. */
static void fields_may_be_cut(void **state)
{
    static const size_t ends[] = { 8, 16, 24, 29, 37, 45 };
    uint8_t data[128];
    (void)state;
    for (uint32_t size = 0; size <= 45; size++) {
        struct nt_event event = with_fields(data);
        uint8_t *exact = malloc(size > 0 ? size : 1);
        assert_non_null(exact);
        memcpy(exact, data, size);
        event.data = size > 0 ? exact : NULL;
        event.data_size = size;
        const char *line = strstr(json_of(&event), "\"data\":");
        size_t found = 0, wanted = 0;
        for (size_t i = 0; i < 6; i++) {
            char key[16];
            (void)snprintf(key, sizeof key, "\"%.*s\":", (int)fields[i].name.size, fields[i].name.data);
            found += strstr(line, key) != NULL;
            wanted += ends[i] <= size;
        }
        assert_int_equal(found, wanted);
        (void)text_of(&event);
        free(exact);
    }
}

static void floats_are_json(void **state)
{
    static const struct {
        double value;
        const char *json;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1.5, "1.5" },
        { 1e300, "1e+300" },
        { NAN, "\"NaN\"" },
        { INFINITY, "\"Infinity\"" },
        { -INFINITY, "\"-Infinity\"" },
        { 1.0 / 3, "0.3333333333333333" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t data[128];
        char wanted[64];
        struct nt_event event = with_fields(data);
        memcpy(data + 16, &cases[i].value, 8);
        (void)snprintf(wanted, sizeof wanted, "\"rate\":%s,", cases[i].json);
        has(json_of(&event), wanted);
    }
}

/* ---- Masks and gaps ---- */

static void changes_of_masks_are_told(void **state)
{
    struct nt_event event = an_event();
    event.kind = NT_MODEL_KIND_MASK;
    event.ring = NT_EVENT_NO_RING;
    event.count = event.total = 0;
    event.argument = NT_LAYOUT_MASK_BITS & ~(UINT64_C(1) << NT_MODEL_KIND_POLL);
    event.value = UINT64_C(1) << NT_MODEL_KIND_READ | UINT64_C(1) << 47;
    event.setter = 4711;
    (void)state;
    has(text_of(&event), "  mask  +all -poll  ->  =read,user  by process 4711\n");
    has(json_of(&event), "\"ring\":null,");
    has(json_of(&event), "\"data\":{\"before\":[\"write\",\"read\",\"ping\",\"wait\",");
    has(json_of(&event), "],\"after\":[\"read\",\"user\"],\"setter\":4711}}\n");
    event.setter = 0;
    has(text_of(&event), "  ->  =read,user\n");
    has(json_of(&event), "\"setter\":null}}\n");
    event.argument = event.value;
    has(text_of(&event), "  mask  changed, more often than was seen\n");
    has(json_of(&event), "\"data\":{\"before\":[\"read\",\"user\"],\"after\":[\"read\",\"user\"],\"setter\":null}}");
}

static void what_is_missing_is_told(void **state)
{
    struct nt_export_missing missing = { .why = NT_EXPORT_OVERWRITTEN,
                                         .program = nt_lives_program(lives, 3),
                                         .ring = 2,
                                         .count = 512,
                                         .first = 0,
                                         .last = 32768,
                                         .to_time = TIME };
    (void)state;
    memset(&lines, 0, sizeof lines);
    nt_export_text.missing(&missing, &lines, &out);
    assert_string_equal(taken(), "2024-05-01T10:00:00.123456789Z  work\\x1b[31mer.10  ring 2  -- 512 overwritten --\n");
    nt_export_json.missing(&missing, &lines, &out);
    assert_string_equal(taken(),
                        "{\"time\":1714557600123456789,\"log\":\"000000000000abc3\",\"ring\":2,"
                        "\"process\":\"work\\u001b[31mer.10\",\"node\":\"alpha\",\"kind\":\"loss\",\"count\":512,"
                        "\"reason\":\"overwritten\",\"first\":0,\"last\":32768,\"from_time\":null,"
                        "\"to_time\":1714557600123456789}\n");
    missing.life = nt_lives_find(lives, 3, 1, 1);
    missing.kind = NT_MODEL_KIND_READ;
    missing.why = NT_EXPORT_NOT_LOGGED;
    missing.first = 18;
    missing.last = 59;
    missing.count = 42;
    missing.from_time = missing.to_time = 0;
    nt_export_text.missing(&missing, &lines, &out);
    has(taken(), "-                               work\\x1b[31mer.10  or\\xe2\\x80\\xaeders  read  "
                 "-- 42 not logged: #18 to #59 --\n");
    nt_export_json.missing(&missing, &lines, &out);
    has(taken(),
        "\"count\":42,\"reason\":\"not logged\",\"object\":\"0000000100000001\",\"path\":\"alpha/work\\\\x1b[31mer/"
        "or\\\\xe2\\\\x80\\\\xaeders\",\"of\":\"read\",\"first\":18,\"last\":59,\"from_time\":null,"
        "\"to_time\":null}\n");
    missing.why = NT_EXPORT_LOST;
    missing.last = 18;
    missing.count = 1;
    nt_export_text.missing(&missing, &lines, &out);
    has(taken(), "  -- 1 lost: #18 --\n");
    missing.why = NT_EXPORT_FOUND;
    nt_export_text.missing(&missing, &lines, &out);
    has(taken(), "  -- 1 found that were told as missing: #18 --\n");
}

/* Columns get as wide as what was in them, up to a limit. */
static void columns_stay_in_line(void **state)
{
    struct nt_event event = an_event();
    const struct nt_export_event wide = { .event = &event, .life = nt_lives_find(lives, 3, 1, 1) };
    struct nt_event other = an_event();
    const struct nt_export_event narrow = { .event = &other, .life = nt_lives_find(lives, 3, 0, 1) };
    (void)state;
    other.object = 0;
    memset(&lines, 0, sizeof lines);
    nt_export_text.event(&wide, &lines, &out);
    size_t at = (size_t)(strstr(taken(), "  read  ") - text);
    nt_export_text.event(&narrow, &lines, &out);
    assert_memory_equal(taken() + at, "  read  ", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_every_column),   cmocka_unit_test(text_is_one_line),
        cmocka_unit_test(numbers_are_exact),       cmocka_unit_test(sessions_come_and_go),
        cmocka_unit_test(fields_are_decoded),      cmocka_unit_test(fields_may_be_cut),
        cmocka_unit_test(floats_are_json),         cmocka_unit_test(changes_of_masks_are_told),
        cmocka_unit_test(what_is_missing_is_told), cmocka_unit_test(columns_stay_in_line),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
