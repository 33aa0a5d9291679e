/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams get numbers in the order of their coming, and keep them however many there are. */
#include "model/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 5000 };

static struct nt_stream nth(uint32_t number)
{
    return (struct nt_stream){ number % 3, number, 1 + number % 7, number % 200 };
}

static void numbers(void **state)
{
    (void)state;
    struct nt_streams streams = { 0 };
    void *entries = NULL; /* of uint64_t */
    uint32_t number;
    struct nt_stream stream = nth(0);
    assert_int_equal(nt_streams_find(&streams, &stream), NT_MODEL_NONE);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < MANY; i++) {
            stream = nth(i);
            assert_int_equal(nt_streams_get(&streams, &stream, &entries, sizeof(uint64_t), &number), 0);
            assert_int_equal(number, i);
            assert_int_equal(((uint64_t *)entries)[i], turn * (i + 1));
            ((uint64_t *)entries)[i] = i + 1;
        }
    }
    assert_int_equal(streams.count, MANY);
    stream = nth(17);
    assert_int_equal(nt_streams_find(&streams, &stream), 17);
    stream.kind++;
    assert_int_equal(nt_streams_find(&streams, &stream), NT_MODEL_NONE);
    nt_streams_clear(&streams);
    stream = nth(17);
    assert_int_equal(nt_streams_find(&streams, &stream), NT_MODEL_NONE);
    assert_int_equal(nt_streams_get(&streams, &stream, &entries, sizeof(uint64_t), &number), 0);
    assert_int_equal(number, 0);
    assert_int_equal(((uint64_t *)entries)[0], 0);
    nt_streams_fini(&streams);
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
