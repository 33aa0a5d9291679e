/* SPDX-License-Identifier: BSD-3-Clause */
/* Times as text: what RFC 3339 allows, what it does not, and each day there and back against the C library. */
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <nt/error.h>

#define NOW UINT64_C(1700000000123456789)

static int parse(const char *text, uint64_t *ret_time)
{
    return nt_time_parse(text, strlen(text), NOW, ret_time);
}

static void reads_points(void **state)
{
    static const struct {
        const char *text;
        uint64_t time;
    } cases[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01T00:00:00.000000001Z", 1 },
        { "2024-02-29T23:59:59.999999999Z", UINT64_C(1709251199999999999) },
        { "2024-02-29t23:59:59.9999999999999z", UINT64_C(1709251199999999999) },
        { "2024-05-01 12:00:00+02:00", UINT64_C(1714557600000000000) },
        { "2024-05-01T04:30:00-05:30", UINT64_C(1714557600000000000) },
        { "2024-05-01T10:00:00.25Z", UINT64_C(1714557600250000000) },
        { "2024-05-01", UINT64_C(1714521600000000000) },
        { "2016-12-31T23:59:60Z", UINT64_C(1483228800000000000) },
        { "2554-07-21T23:34:33.709551615Z", UINT64_MAX },
        { "1970-01-01T01:00:00+01:00", 0 },
        { "-0s", NOW },
        { "-5s", NOW - UINT64_C(5000000000) },
        { "-250ms", NOW - 250000000 },
        { "-7us", NOW - 7000 },
        { "-7ns", NOW - 7 },
        { "-2m", NOW - UINT64_C(120000000000) },
        { "-3h", NOW - UINT64_C(10800000000000) },
        { "-1d", NOW - UINT64_C(86400000000000) },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t time = 12345;
        if (parse(cases[i].text, &time) != 0 || time != cases[i].time)
            fail_msg("%s: %llu", cases[i].text, (unsigned long long)time);
    }
}

static void refuses_others(void **state)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {
        { "", NT_ESYNTAX },
        { "now", NT_ESYNTAX },
        { "-", NT_ESYNTAX },
        { "-5", NT_ESYNTAX },
        { "-s", NT_ESYNTAX },
        { "-5 s", NT_ESYNTAX },
        { "-5S", NT_ESYNTAX },
        { "--5s", NT_ESYNTAX },
        { "-1.5s", NT_ESYNTAX },
        { "5s", NT_ESYNTAX },
        { "2024", NT_ESYNTAX },
        { "2024-5-1", NT_ESYNTAX },
        { "2024-05-01T10:00:00", NT_ESYNTAX },
        { "2024-05-01T10:00Z", NT_ESYNTAX },
        { "2024-05-01T10:00:00.Z", NT_ESYNTAX },
        { "2024-05-01T10:00:00Z ", NT_ESYNTAX },
        { "2024-05-01T10:00:00+0200", NT_ESYNTAX },
        { "2024-05-01_10:00:00Z", NT_ESYNTAX },
        { "2024-13-01T10:00:00Z", ERANGE },
        { "2024-00-01T10:00:00Z", ERANGE },
        { "2023-02-29", ERANGE },
        { "2024-02-30", ERANGE },
        { "1900-02-29", ERANGE },
        { "2024-05-00", ERANGE },
        { "2024-05-01T24:00:00Z", ERANGE },
        { "2024-05-01T10:60:00Z", ERANGE },
        { "2024-05-01T10:00:61Z", ERANGE },
        { "2024-05-01T10:00:00+24:00", ERANGE },
        { "1969-12-31T23:59:59Z", ERANGE },
        { "1970-01-01T00:00:00+00:01", ERANGE },
        { "2554-07-21T23:34:33.709551616Z", ERANGE },
        { "9999-12-31T23:59:59Z", ERANGE },
        { "0000-01-01T00:00:00Z", ERANGE },
        { "-99999999999999999999s", ERANGE },
        { "-18446744073709551615h", ERANGE },
        { "-1000000d", ERANGE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t time = 12345;
        int error = parse(cases[i].text, &time);
        if (error != -cases[i].error || time != 12345)
            fail_msg("%s: %d", cases[i].text, error);
    }
    uint64_t time;
    assert_int_equal(nt_time_parse("2024-05-01\0", 11, NOW, &time), -NT_ESYNTAX);
}

/* Each day of the range, at a moment of it that differs. */
static void goes_there_and_back(void **state)
{
    const uint64_t step = UINT64_C(86399999999973);
    struct nt_buffer text = { 0 };
    (void)state;
    for (uint64_t time = 0; time < UINT64_MAX - step; time += step) {
        char wanted[64];
        struct tm parts;
        time_t seconds = (time_t)(time / 1000000000);
        uint64_t again;
        nt_buffer_clear(&text);
        nt_time_append(&text, time);
        assert_non_null(gmtime_r(&seconds, &parts));
        size_t size = strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S", &parts);
        (void)snprintf(wanted + size, sizeof wanted - size, ".%09uZ", (unsigned)(time % 1000000000));
        assert_int_equal(text.size, 30);
        assert_memory_equal(text.data, wanted, text.size);
        assert_int_equal(nt_time_parse(text.data, text.size, NOW, &again), 0);
        assert_int_equal(again, time);
    }
    nt_buffer_clear(&text);
    nt_time_append(&text, UINT64_MAX);
    assert_memory_equal(text.data, "2554-07-21T23:34:33.709551615Z", text.size);
    nt_buffer_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_points),
        cmocka_unit_test(refuses_others),
        cmocka_unit_test(goes_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
