/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of programs that were built with other versions of the library, in the helper and through each call that
   takes some. */
#include "log/log_test.h"

struct version1 { /* 24 bytes */
    size_t size;
    uint64_t first;
    uint32_t second, reserved;
};

struct version2 {
    struct version1 old;
    uint64_t third;
};

static void of_the_same_version(void **state)
{
    (void)state;
    struct version2 given = { { sizeof(given), 1, 2, 3 }, 4 }, taken;
    assert_true(log_options_take(&taken, sizeof(taken), sizeof(struct version1), &given));
    assert_memory_equal(&taken, &given, sizeof(given));
}

static void of_an_older_version(void **state)
{
    (void)state;
    const struct version1 given = { sizeof(given), 1, 2, 3 };
    struct version2 taken;
    memset(&taken, 0xff, sizeof(taken));
    assert_true(log_options_take(&taken, sizeof(taken), sizeof(given), &given));
    assert_memory_equal(&taken, &given, sizeof(given));
    assert_int_equal(taken.third, 0);
}

static void of_a_newer_version(void **state)
{
    (void)state;
    struct version2 given = { { sizeof(given), 1, 2, 3 }, 0 };
    struct version1 taken[2];
    memset(taken, 0xff, sizeof(taken));
    assert_true(log_options_take(taken, sizeof(taken[0]), sizeof(taken[0]), &given));
    assert_memory_equal(taken, &given, sizeof(taken[0]));
    assert_int_equal(taken[1].first, UINT64_MAX); /* not written beyond */
    for (int byte = 0; byte < 8; byte++) {
        given.third = UINT64_C(1) << 8 * byte;
        taken[0].first = 77;
        assert_false(log_options_take(taken, sizeof(taken[0]), sizeof(taken[0]), &given));
        assert_int_equal(taken[0].first, 77);
    }
}

static void of_no_version(void **state)
{
    (void)state;
    static unsigned char given[8192], taken[64];
    static const size_t sizes[] = { 0, 1, sizeof(struct version1) - 1, 4097, 8192, SIZE_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memcpy(given, &sizes[i], sizeof(sizes[i]));
        assert_false(log_options_take(taken, sizeof(taken), sizeof(struct version1), given));
    }
    const size_t largest = 4096;
    memcpy(given, &largest, sizeof(largest));
    assert_true(log_options_take(taken, sizeof(taken), sizeof(struct version1), given));
    given[4095] = 1;
    assert_false(log_options_take(taken, sizeof(taken), sizeof(struct version1), given));
}

/* ---- through the calls ---- */

#define NEWER(type)             \
    struct {                    \
        type options;           \
        uint64_t unheard_of[2]; \
    }

static void opening_a_log(void **state)
{
    (void)state;
    NEWER(nt_log_options) newer = { .options = { .size = sizeof(newer), .name = "newer" } };
    nt_log *log;
    assert_int_equal(nt_log_open(&newer.options, &log), 0);
    assert_non_null(strstr(nt_log_path(log), "/newer."));
    nt_log_close(log);
    newer.unheard_of[1] = 1;
    assert_int_equal(nt_log_open(&newer.options, &log), -EINVAL);
    const nt_log_options older = { .size = LOG_OPTIONS_FIRST, .name = "older" };
    assert_int_equal(nt_log_open(&older, &log), 0);
    nt_log_close(log);
    const nt_log_options none = { .size = LOG_OPTIONS_FIRST - 1, .name = "older" };
    assert_int_equal(nt_log_open(&none, &log), -EINVAL);
}

static void making_an_object(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    NEWER(nt_object_options) newer = { .options = { .size = sizeof(newer), .name = "x", .kind = NT_OBJECT_FILE } };
    struct view view = view_open(nt_log_path(log));
    nt_object object = nt_object_new(log, &newer.options);
    assert_int_equal(view_object(&view, object)->kind, NT_OBJECT_FILE);
    newer.unheard_of[0] = 1;
    assert_int_equal(nt_object_new(log, &newer.options).handle, 0);
    nt_object_options older = { .size = OBJECT_OPTIONS_FIRST, .name = "x" };
    assert_true(nt_object_new(log, &older).handle != 0);
    older.size--;
    assert_int_equal(nt_object_new(log, &older).handle, 0);
    view_close(&view);
    nt_log_close(log);
}

static void declaring_a_kind(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    NEWER(nt_kind_options) newer = { .options = { .size = sizeof(newer), .name = "newer" } };
    nt_kind kind;
    assert_int_equal(nt_kind_new(log, &newer.options, &kind), 0);
    assert_int_equal(kind, NT_LAYOUT_USER_KIND);
    newer.unheard_of[1] = UINT64_C(1) << 63;
    assert_int_equal(nt_kind_new(log, &newer.options, &kind), -EINVAL);
    nt_kind_options older = { .size = KIND_OPTIONS_FIRST, .name = "older" };
    assert_int_equal(nt_kind_new(log, &older, &kind), 0);
    older.size--;
    assert_int_equal(nt_kind_new(log, &older, &kind), -EINVAL);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_same_version),
        cmocka_unit_test(of_an_older_version),
        cmocka_unit_test(of_a_newer_version),
        cmocka_unit_test(of_no_version),
        log_test(opening_a_log),
        log_test(making_an_object),
        log_test(declaring_a_kind),
    };
    return cmocka_run_group_tests_name("log/options", tests, NULL, NULL);
}
