/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of sessions: found again, the first one kept, and not more of them than there may be. */
#include "model/session_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct nt_session_names *names;

static int setup(void **state)
{
    (void)state;
    return nt_session_names_new(&names);
}

static int teardown(void **state)
{
    (void)state;
    nt_session_names_free(names);
    return 0;
}

static void add(uint64_t session, const char *name)
{
    assert_int_equal(nt_session_names_add(names, session, (struct nt_bytes){ name, strlen(name) }), 0);
}

static bool is(uint64_t session, const char *name)
{
    struct nt_bytes found = nt_session_names_find(names, session);
    return found.size == strlen(name) && memcmp(found.data, name, found.size) == 0;
}

static void finds_names(void **state)
{
    (void)state;
    assert_true(is(0, "") && is(1, ""));
    add(1, "night run");
    add(UINT64_MAX, "");
    add(UINT64_MAX, "last");
    add(1, "another");
    assert_true(is(1, "night run") && is(UINT64_MAX, "last") && is(2, "") && is(0, ""));
}

static void holds_many_but_not_all(void **state)
{
    enum { MANY = 1000000 };
    char name[95];
    uint64_t found = 0;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[94] = '\0';
    for (uint64_t i = 1; i <= MANY; i++) {
        (void)snprintf(name, sizeof name, "%094llu", (unsigned long long)i);
        add(i << 16, name);
        assert_true(is(i << 16, name));
    }
    for (uint64_t i = 1; i <= MANY; i++)
        found += nt_session_names_find(names, i << 16).size > 0;
    assert_in_range(found, 1000, MANY / 2); /* all of them would take some 150 MB */
    assert_true(is((uint64_t)MANY << 16, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_names, setup, teardown),
        cmocka_unit_test_setup_teardown(holds_many_but_not_all, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
