/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers at their limits, and all that is none. */
#include "base/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <nt/error.h>

static void limits(void **state)
{
    (void)state;
    uint64_t number = 1;
    uint32_t small = 1;
    assert_int_equal(nt_parse_u64("0", 1, &number), 0);
    assert_true(number == 0);
    assert_int_equal(nt_parse_u64("00018446744073709551615", 23, &number), 0);
    assert_true(number == UINT64_MAX);
    assert_int_equal(nt_parse_u64("18446744073709551616", 20, &number), -ERANGE);
    assert_int_equal(nt_parse_u64("99999999999999999999999", 23, &number), -ERANGE);
    assert_true(number == UINT64_MAX);
    assert_int_equal(nt_parse_u32("4294967295", 10, &small), 0);
    assert_int_equal(small, UINT32_MAX);
    assert_int_equal(nt_parse_u32("4294967296", 10, &small), -ERANGE);
}

static void no_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = { "", " 1", "1 ", "+1", "-1", "0x1", "1.0", "1e3", "\xd9\xa1", "1_0" };
    uint64_t number = 42;
    uint32_t small = 42;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(nt_parse_u64(texts[i], strlen(texts[i]), &number), -NT_ESYNTAX);
        assert_int_equal(nt_parse_u32(texts[i], strlen(texts[i]), &small), -NT_ESYNTAX);
    }
    assert_int_equal(nt_parse_u64("1\0", 2, &number), -NT_ESYNTAX);
    assert_true(number == 42 && small == 42);
}

static void hex_digits(void **state)
{
    (void)state;
    for (int byte = -128; byte < 128; byte++) {
        int expected = -1;
        if (byte >= '0' && byte <= '9')
            expected = byte - '0';
        if ((byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'))
            expected = (byte | 0x20) - 'a' + 10;
        assert_int_equal(nt_parse_hex_digit((char)byte), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(hex_digits),
    };
    return cmocka_run_group_tests_name("base/parse", tests, NULL, NULL);
}
