/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that would command a terminal, and names that must come through as they are. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_shown(const char *data, size_t size, const char *shown)
{
    struct nt_buffer buffer = { 0 };
    nt_text_append(&buffer, data, size);
    assert_int_equal(buffer.size, strlen(shown));
    if (buffer.size > 0)
        assert_memory_equal(buffer.data, shown, buffer.size);
    nt_buffer_fini(&buffer);
}
#define ASSERT_SHOWN(literal, shown) assert_shown(literal, sizeof(literal) - 1, shown)

static void assert_path(const char *data, const char *shown)
{
    struct nt_buffer buffer = { 0 };
    nt_text_append_path(&buffer, data, strlen(data));
    nt_buffer_byte(&buffer, '\0');
    assert_string_equal(buffer.data, shown);
    nt_buffer_fini(&buffer);
}

static void good_names_pass(void **state)
{
    (void)state;
    ASSERT_SHOWN("", "");
    ASSERT_SHOWN("orders-1 \"x\" /*?#", "orders-1 \"x\" /*?#");
    ASSERT_SHOWN("Größe 注文 \xf0\x9f\x9a\x80 \xd7\xa9\xd7\x9c", "Größe 注文 \xf0\x9f\x9a\x80 \xd7\xa9\xd7\x9c");
}

static void hostile_names_are_escaped(void **state)
{
    (void)state;
    ASSERT_SHOWN("a\x1b[31mb", "a\\x1b[31mb");
    ASSERT_SHOWN("\r\n\t\b\a\0", "\\x0d\\x0a\\x09\\x08\\x07\\x00");
    ASSERT_SHOWN("\x7f", "\\x7f");
    ASSERT_SHOWN("\xc2\x9b"
                 "31m",
                 "\\xc2\\x9b31m"); /* C1: CSI */
    ASSERT_SHOWN("\xe2\x80\xae"
                 "txt",
                 "\\xe2\\x80\\xaetxt"); /* right-to-left override */
    ASSERT_SHOWN("\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c", "\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c");
    ASSERT_SHOWN("\xe2\x80\xa8", "\\xe2\\x80\\xa8");          /* line separator */
    ASSERT_SHOWN("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"); /* a tag */
    ASSERT_SHOWN("back\\slash", "back\\\\slash");
}

static void bytes_that_are_no_text_are_escaped(void **state)
{
    (void)state;
    ASSERT_SHOWN("\xff\xfe", "\\xff\\xfe");
    ASSERT_SHOWN("\x9b"
                 "31m",
                 "\\x9b31m");
    ASSERT_SHOWN("\xc0\xaf", "\\xc0\\xaf");                   /* overlong */
    ASSERT_SHOWN("\xe0\x80\xaf", "\\xe0\\x80\\xaf");          /* overlong */
    ASSERT_SHOWN("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    ASSERT_SHOWN("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
    ASSERT_SHOWN("x\xe2\x82", "x\\xe2\\x82");                 /* cut short */
    ASSERT_SHOWN("\xe2\x82x", "\\xe2\\x82x");
}

static void nothing_hostile_ever_comes_out(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    char name[4];
    for (uint32_t i = 0; i < 0x1000000; i += 251) {
        name[0] = (char)(i >> 16);
        name[1] = (char)(i >> 8);
        name[2] = (char)i;
        name[3] = (char)(i * 7);
        nt_buffer_clear(&buffer);
        nt_text_append(&buffer, name, sizeof name);
        for (size_t at = 0; at < buffer.size;) {
            uint32_t point;
            size_t length = nt_text_decode(buffer.data + at, buffer.size - at, &point);
            assert_true(length > 0 && !nt_text_is_hostile(point));
            at += length;
        }
    }
    nt_buffer_fini(&buffer);
}

static void path_components(void **state)
{
    (void)state;
    assert_path("orders", "orders");
    assert_path("a/b*c?d\\e", "a\\/b\\*c\\?d\\\\e");
    assert_path("#1.2", "\\#1.2");
    assert_path("x#1", "x#1");
    assert_path("\x1b", "\\x1b");
}

static void widths(void **state)
{
    (void)state;
    assert_int_equal(nt_text_width("", 0), 0);
    assert_int_equal(nt_text_width("abc", 3), 3);
    assert_int_equal(nt_text_width("\xc3\xb6", 2), 1);
    assert_int_equal(nt_text_width("\xe6\xb3\xa8\xe6\x96\x87", 6), 4);
    assert_int_equal(nt_text_width("e\xcc\x81", 3), 1);
    assert_int_equal(nt_text_width("\xff\xff", 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names_pass),
        cmocka_unit_test(hostile_names_are_escaped),
        cmocka_unit_test(bytes_that_are_no_text_are_escaped),
        cmocka_unit_test(nothing_hostile_ever_comes_out),
        cmocka_unit_test(path_components),
        cmocka_unit_test(widths),
    };
    return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
