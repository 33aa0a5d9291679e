/* SPDX-License-Identifier: BSD-3-Clause */
/* Growth, drains, exact numbers, and failures that stay. */
#include "base/buffer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_holds(const struct nt_buffer *buffer, const char *text)
{
    assert_int_equal(buffer->error, 0);
    assert_int_equal(buffer->size, strlen(text));
    if (buffer->size > 0)
        assert_memory_equal(buffer->data, text, buffer->size);
}

static void grows(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    for (int i = 0; i < 100000; i++)
        nt_buffer_append(&buffer, "0123456789", 10);
    assert_int_equal(buffer.size, 1000000);
    for (size_t i = 0; i < buffer.size; i++)
        assert_int_equal(buffer.data[i], '0' + (int)(i % 10));
    nt_buffer_clear(&buffer);
    nt_buffer_repeat(&buffer, '-', 3);
    nt_buffer_byte(&buffer, '>');
    nt_buffer_text(&buffer, " x");
    nt_buffer_append(&buffer, NULL, 0);
    assert_holds(&buffer, "---> x");
    nt_buffer_fini(&buffer);
    nt_buffer_fini(NULL);
    assert_null(buffer.data);
}

static void numbers_are_exact(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { 9, "9" },
        { 10, "10" },
        { 99, "99" },
        { 100, "100" },
        { 101, "101" },
        { (UINT64_C(1) << 53) + 1, "9007199254740993" },
        { UINT64_C(1) << 63, "9223372036854775808" },
        { UINT64_MAX, "18446744073709551615" },
    };
    struct nt_buffer buffer = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nt_buffer_clear(&buffer);
        nt_buffer_u64(&buffer, cases[i].number);
        assert_holds(&buffer, cases[i].text);
    }
    nt_buffer_clear(&buffer);
    nt_buffer_hex64(&buffer, UINT64_C(0x0123456789abcdef));
    assert_holds(&buffer, "0123456789abcdef");
    nt_buffer_fini(&buffer);
}

static void numbers_of_every_length(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    uint64_t number = 1;
    for (int i = 0; i < 20; i++) {
        for (int below = 0; below < 2; below++) {
            nt_buffer_clear(&buffer);
            nt_buffer_u64(&buffer, number - (uint64_t)below);
            nt_buffer_byte(&buffer, '\0');
            assert_true(strtoull(buffer.data, NULL, 10) == number - (uint64_t)below);
        }
        number *= 10;
    }
    nt_buffer_fini(&buffer);
}

static void ratios(void **state)
{
    (void)state;
    static const struct {
        uint64_t total, count;
        unsigned decimals;
        bool trim;
        const char *text;
    } cases[] = {
        { 64, 1, 6, true, "64" },
        { 64, 1, 2, false, "64.00" },
        { 1, 3, 6, true, "0.333333" },
        { 2, 3, 6, true, "0.666667" },
        { 5, 2, 6, true, "2.5" },
        { 1, 1000000, 6, true, "0.000001" },
        { 1, 10000000, 6, true, "0" },
        { 999999999, 1000, 2, false, "1000000.00" },
        { 7, 2, 0, false, "4" },
        { UINT64_MAX, 1, 6, true, "18446744073709551615" },
        { UINT64_MAX, 1, 2, false, "18446744073709551615.00" },
        { UINT64_MAX, 2, 6, true, "9223372036854775807.5" },
        { UINT64_MAX, UINT64_MAX, 6, true, "1" },
        { 0, UINT64_MAX, 6, true, "0" },
    };
    struct nt_buffer buffer = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nt_buffer_clear(&buffer);
        nt_buffer_ratio(&buffer, cases[i].total, cases[i].count, cases[i].decimals, cases[i].trim);
        assert_holds(&buffer, cases[i].text);
    }
    nt_buffer_fini(&buffer);
}

static void prints_short_and_long(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    char wide[1000];
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    nt_buffer_print(&buffer, "%d-%s", 7, "x");
    assert_holds(&buffer, "7-x");
    nt_buffer_clear(&buffer);
    nt_buffer_print(&buffer, "%s", wide);
    assert_holds(&buffer, wide);
    nt_buffer_fini(&buffer);
}

struct drained {
    size_t size, calls;
    int error; /* from the second call on */
};

static int drain(void *arg, const char *data, size_t size)
{
    struct drained *drained = arg;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(data[i], 'a' + (char)((drained->size + i) % 26));
    drained->size += size;
    return ++drained->calls > 1 ? drained->error : 0;
}

static void drains(void **state)
{
    (void)state;
    struct drained drained = { 0 };
    struct nt_buffer buffer = { .drain = drain, .arg = &drained };
    for (size_t i = 0; i < 500000; i++)
        nt_buffer_byte(&buffer, (char)('a' + i % 26));
    assert_true(drained.size >= 400000);
    assert_true(buffer.room <= 2 * NT_BUFFER_DRAIN);
    assert_int_equal(nt_buffer_flush(&buffer), 0);
    assert_int_equal(drained.size, 500000);
    nt_buffer_fini(&buffer);
}

static void a_failure_stays(void **state)
{
    (void)state;
    struct drained drained = { .error = -ENOSPC };
    struct nt_buffer buffer = { .drain = drain, .arg = &drained };
    for (size_t i = 0; i < 500000; i++)
        nt_buffer_byte(&buffer, (char)('a' + i % 26));
    assert_int_equal(drained.calls, 2);
    assert_int_equal(buffer.error, -ENOSPC);
    assert_int_equal(nt_buffer_flush(&buffer), -ENOSPC);
    nt_buffer_text(&buffer, "more");
    nt_buffer_repeat(&buffer, 'x', 10);
    nt_buffer_print(&buffer, "%d", 1);
    assert_int_equal(buffer.size, 0);
    nt_buffer_clear(&buffer);
    nt_buffer_byte(&buffer, 'y');
    assert_int_equal(buffer.size, 1);
    nt_buffer_fini(&buffer);
}

static void no_memory_is_a_failure(void **state)
{
    (void)state;
    struct nt_buffer buffer = { 0 };
    nt_buffer_text(&buffer, "x");
    assert_int_equal(nt_buffer_reserve(&buffer, SIZE_MAX), -ENOMEM);
    assert_int_equal(buffer.error, -ENOMEM);
    assert_int_equal(buffer.size, 0);
    nt_buffer_text(&buffer, "x");
    assert_int_equal(buffer.size, 0);
    nt_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(numbers_of_every_length),
        cmocka_unit_test(ratios),
        cmocka_unit_test(prints_short_and_long),
        cmocka_unit_test(drains),
        cmocka_unit_test(a_failure_stays),
        cmocka_unit_test(no_memory_is_a_failure),
    };
    return cmocka_run_group_tests_name("base/buffer", tests, NULL, NULL);
}
