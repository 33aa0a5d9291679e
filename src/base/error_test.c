/* SPDX-License-Identifier: BSD-3-Clause */
/* Every code has words, of either sign; what is none has too. */
#include "base/error.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <nt/error.h>

static void codes_have_words(void **state)
{
    (void)state;
    static const int codes[] = { NT_EFORMAT, NT_EVERSION, NT_ETRUNCATED, NT_EDISABLED,
                                 NT_ESYNTAX, NT_EFORKED,  ENOENT,        ENOMEM };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_string_equal(nt_error_text(codes[i]), nt_error_text(-codes[i]));
        assert_string_not_equal(nt_error_text(codes[i]), "unknown error");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(nt_error_text(codes[i]), nt_error_text(codes[j]));
    }
    assert_string_equal(nt_error_text(-ENOENT), "No such file or directory");
    assert_string_equal(nt_error_text(0), "no error");
}

static void other_numbers_too(void **state)
{
    (void)state;
    static const int codes[] = { INT_MIN, INT_MAX, 4000, -4000, 9999, 10007 };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        assert_string_equal(nt_error_text(codes[i]), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_words),
        cmocka_unit_test(other_numbers_too),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
