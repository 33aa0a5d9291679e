/* SPDX-License-Identifier: BSD-3-Clause */
/* Grammar, exact numbers, and strings of any bytes. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_written(struct nt_buffer *buffer, const char *text)
{
    assert_int_equal(buffer->error, 0);
    nt_buffer_byte(buffer, '\0');
    assert_string_equal(buffer->data, text);
    nt_buffer_fini(buffer);
}

static void commas(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    struct nt_json json = { .out = &buffer };
    nt_json_object(&json);
    nt_json_key(&json, "a");
    nt_json_array(&json);
    nt_json_array_end(&json);
    nt_json_key(&json, "b");
    nt_json_array(&json);
    nt_json_u64(&json, 1);
    nt_json_bool(&json, true);
    nt_json_bool(&json, false);
    nt_json_object(&json);
    nt_json_object_end(&json);
    nt_json_word(&json, "w");
    nt_json_raw(&json, "[2]", 3);
    nt_json_array_end(&json);
    nt_json_key_bytes(&json, "\"c", 2);
    nt_json_id(&json, 255);
    nt_json_key(&json, "d");
    nt_json_word(&json, "x");
    nt_json_key(&json, "e");
    nt_json_array(&json);
    nt_json_line(&json);
    nt_json_u64(&json, 1);
    nt_json_line(&json);
    nt_json_u64(&json, 2);
    nt_json_array_end(&json);
    nt_json_object_end(&json);
    assert_written(&buffer, "{\"a\":[],\"b\":[1,true,false,{},\"w\",[2]],\"\\\"c\":\"00000000000000ff\",\"d\":\"x\","
                            "\"e\":[\n1,\n2]}");
}

static void numbers_are_exact(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    struct nt_json json = { .out = &buffer };
    nt_json_array(&json);
    nt_json_u64(&json, 0);
    nt_json_u64(&json, (UINT64_C(1) << 53) + 1);
    nt_json_u64(&json, UINT64_C(1) << 63);
    nt_json_u64(&json, UINT64_MAX);
    nt_json_array_end(&json);
    assert_written(&buffer, "[0,9007199254740993,9223372036854775808,18446744073709551615]");
}

static void assert_string(const char *data, size_t size, const char *text)
{
    struct nt_buffer buffer = { 0 };
    struct nt_json json = { .out = &buffer };
    nt_json_string(&json, data, size);
    assert_written(&buffer, text);
}
#define ASSERT_STRING(literal, text) assert_string(literal, sizeof(literal) - 1, text)

static void strings_of_any_bytes(void **state)
{
    (void)state;
    ASSERT_STRING("", "\"\"");
    ASSERT_STRING("plain /*", "\"plain /*\"");
    ASSERT_STRING("Gr\xc3\xb6\xc3\x9f"
                  "e \xf0\x9f\x9a\x80",
                  "\"Gr\xc3\xb6\xc3\x9f"
                  "e \xf0\x9f\x9a\x80\"");
    ASSERT_STRING("a\"b\\c", "\"a\\\"b\\\\c\"");
    ASSERT_STRING("\0\x01\n\x1b[31m\x7f", "\"\\u0000\\u0001\\u000a\\u001b[31m\\u007f\"");
    ASSERT_STRING("\xc2\x9b", "\"\\u009b\"");
    ASSERT_STRING("\xe2\x80\xae", "\"\\u202e\"");
    ASSERT_STRING("\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"");
    ASSERT_STRING("\xff", "\"\\udcff\"");
    ASSERT_STRING("\xed\xa0\xbd"
                  "x",
                  "\"\\udced\\udca0\\udcbdx\"");
    ASSERT_STRING("ok\xe2\x82", "\"ok\\udce2\\udc82\"");
}

static void deep_nesting(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    struct nt_json json = { .out = &buffer };
    for (int i = 0; i < 100000; i++)
        nt_json_array(&json);
    for (int i = 0; i < 100000; i++)
        nt_json_array_end(&json);
    assert_int_equal(buffer.size, 200000);
    nt_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(strings_of_any_bytes),
        cmocka_unit_test(deep_nesting),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
