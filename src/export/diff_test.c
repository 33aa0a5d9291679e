/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of changes, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"

#define BYTES(literal)               \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static const struct nt_diff_row rows[] = {
    { BYTES("n/p/a"),
      BYTES("read"),
      "bytes",
      false,
      { { true, false, 5, 50, NT_MODEL_EXACT }, { true, false, 25, 40, NT_MODEL_EXACT } } },
    { BYTES("n/p/b"),
      BYTES("own"),
      NULL,
      false,
      { { true, false, 1, 7, NT_MODEL_LEAST }, { true, true, 4, 17, NT_MODEL_EXACT } } },
    { BYTES("n/p"),
      BYTES("wait"),
      "ns",
      true,
      { { false, false, 0, 0, NT_MODEL_EXACT }, { true, true, 2, 8, NT_MODEL_EXACT } } },
    { BYTES("n/q"),
      BYTES("open"),
      "count",
      false,
      { { true, false, 1, 0, NT_MODEL_EXACT }, { false, false, 0, 0, NT_MODEL_EXACT } } },
};

static struct nt_export_diff input(void)
{
    return (struct nt_export_diff){
        .moments = { { "a\x1b", 1000000000 }, { "b", 3000000000 } }, .rows = rows, .count = 4, .more = 1
    };
}

static void assert_shown(const struct nt_export_format *format, const struct nt_export_diff *diff, const char *expected)
{
    struct nt_buffer out = { 0 };
    format->diff(diff, &out);
    nt_buffer_byte(&out, '\0');
    assert_int_equal(out.error, 0);
    assert_string_equal(out.data, expected);
    nt_buffer_fini(&out);
}

static void as_text(void **state)
{
    (void)state;
    const struct nt_export_diff diff = input();
    assert_shown(&nt_export_text, &diff,
                 "from  a\\x1b at 1970-01-01T00:00:01.000000000Z\n"
                 "to    b at 1970-01-01T00:00:03.000000000Z, 2.0s later\n"
                 "COUNT    /S  TOTAL   /S        KIND  OBJECT\n"
                 "  +20  10.0    -10      bytes  read  n/p/a\n"
                 "  ~+3   1.5   ~+10  5.0        own   n/p/b  closed\n"
                 "   +2   1.0     +8  4.0 ns     wait  n/p (closed earlier)  new\n"
                 "   +1            0             open  n/q  gone\n"
                 "and 1 more\n");
}

static void as_json(void **state)
{
    (void)state;
    const struct nt_export_diff diff = input();
    assert_shown(
        &nt_export_json, &diff,
        "{\"from\":{\"file\":\"a\\u001b\",\"time\":1000000000},\"to\":{\"file\":\"b\",\"time\":3000000000},"
        "\"length\":2000000000,\"more\":1,\"changes\":[\n"
        "{\"path\":\"n/p/a\",\"kind\":\"read\",\"change\":\"changed\",\"count\":20,\"total\":-10,"
        "\"exact\":true,\"before\":{\"count\":5,\"total\":50,\"bound\":\"exact\"},"
        "\"after\":{\"count\":25,\"total\":40,\"bound\":\"exact\"}},\n"
        "{\"path\":\"n/p/b\",\"kind\":\"own\",\"change\":\"closed\",\"count\":3,\"total\":10,\"exact\":false,"
        "\"count_rate\":1.500,\"total_rate\":5.000,\"before\":{\"count\":1,\"total\":7,\"bound\":\"at least\"},"
        "\"after\":{\"count\":4,\"total\":17,\"bound\":\"exact\"}},\n"
        "{\"path\":\"n/p\",\"kind\":\"wait\",\"change\":\"new\",\"closed_earlier\":true,\"count\":2,\"total\":8,"
        "\"exact\":true,\"count_rate\":1.000,\"total_rate\":4.000,\"before\":null,"
        "\"after\":{\"count\":2,\"total\":8,\"bound\":\"exact\"}},\n"
        "{\"path\":\"n/q\",\"kind\":\"open\",\"change\":\"gone\","
        "\"before\":{\"count\":1,\"total\":0,\"bound\":\"exact\"},\"after\":null}]}\n");
}

/* Without a length of time there are no rates. */
static void backwards(void **state)
{
    (void)state;
    struct nt_export_diff diff = input();
    diff.moments[1].time = 1000000000;
    diff.count = 1;
    diff.more = 0;
    assert_shown(&nt_export_text, &diff,
                 "from  a\\x1b at 1970-01-01T00:00:01.000000000Z\n"
                 "to    b at 1970-01-01T00:00:01.000000000Z\n"
                 "COUNT  /S  TOTAL  /S        KIND  OBJECT\n"
                 "  +20        -10     bytes  read  n/p/a\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_text),
        cmocka_unit_test(as_json),
        cmocka_unit_test(backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
