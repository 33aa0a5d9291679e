/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks as words: what they do, what is no word, and that what is written is read back as it was. */
#include "model/mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "model/feed_test.h"
#include "model/kinds.h"

#define BIT(kind) (UINT64_C(1) << NT_MODEL_KIND_##kind)
#define USER (UINT64_C(1) << 47)
#define ALL NT_LAYOUT_MASK_BITS

static struct nt_model model;

static int setup(void **state)
{
    struct nt_source_program program = feed_program(0, "alpha", "worker", 10);
    const struct nt_source_kind kind = { .kind = 64, .name = FEED_BYTES("checkout") };
    (void)state;
    return nt_model_add_program(&model, &program) == 0 && nt_model_add_kind(&model, &kind) == 0 &&
                   nt_model_link(&model) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    nt_model_fini(&model);
    return 0;
}

/* Applies words, a space between two. */
static uint64_t edited(const char *words, uint64_t mask)
{
    struct nt_model_mask_edit edit = { 0 };
    struct nt_bytes wrong;
    char *copy = strdup(words), *rest = copy;
    assert_non_null(copy);
    for (const char *word = strsep(&rest, " "); word; word = strsep(&rest, " ")) {
        if (nt_model_mask_word(&edit, &model, word, &wrong) != 0)
            fail_msg("%s: %.*s", word, (int)wrong.size, wrong.data);
    }
    free(copy);
    assert_int_equal(edit.clear & edit.set, 0);
    return nt_model_mask_apply(&edit, mask);
}

static void words_change_a_mask(void **state)
{
    static const struct {
        const char *words;
        uint64_t before, after;
    } cases[] = {
        { "+read", 0, BIT(READ) },
        { "-read", ALL, ALL & ~BIT(READ) },
        { "+read -poll", BIT(POLL) | BIT(WRITE), BIT(READ) | BIT(WRITE) },
        { "-poll +read", BIT(POLL) | BIT(WRITE), BIT(READ) | BIT(WRITE) },
        { "+read,write,disk-read", 0, BIT(READ) | BIT(WRITE) | BIT(DISK_READ) },
        { "=read,write", BIT(POLL), BIT(READ) | BIT(WRITE) },
        { "=read -read", ALL, 0 },
        { "+read -read", BIT(READ) | BIT(PING), BIT(PING) },
        { "-read +read", 0, BIT(READ) },
        { "-all", ALL, 0 },
        { "+all", 0, ALL },
        { "=all -poll", 0, ALL & ~BIT(POLL) },
        { "-all +ping", ALL, BIT(PING) },
        { "+all -checkout", 0, ALL & ~USER },
        { "+user", 0, USER },
        { "=checkout,read", ALL, USER | BIT(READ) },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (edited(cases[i].words, cases[i].before) != cases[i].after)
            fail_msg("%s", cases[i].words);
    }
}

static void only_words_are_words(void **state)
{
    static const struct {
        const char *word, *wrong;
    } cases[] = {
        { "", "" },
        { "read", "" },
        { "+", "" },
        { "+Read", "Read" },
        { "+reads", "reads" },
        { "+read,", "" },
        { "-read,,poll", "" },
        { "=read,none", "none" },
        { "+kind-64", "kind-64" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nt_model_mask_edit edit = { .set = BIT(PING) };
        struct nt_bytes wrong;
        if (nt_model_mask_word(&edit, &model, cases[i].word, &wrong) != -NT_ESYNTAX ||
            wrong.size != strlen(cases[i].wrong) || memcmp(wrong.data, cases[i].wrong, wrong.size) != 0)
            fail_msg("'%s'", cases[i].word);
        assert_true(edit.set == BIT(PING) && edit.clear == 0 && !edit.user);
    }
}

static void own_names_of_kinds_are_told_of(void **state)
{
    static const char *const words[] = { "+user", "+all", "+read", "+read,checkout" };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct nt_model_mask_edit edit = { 0 };
        struct nt_bytes wrong;
        assert_int_equal(nt_model_mask_word(&edit, &model, words[i], &wrong), 0);
        assert_int_equal(edit.user, i == 3);
    }
}

static void is_written_as_it_is_read(void **state)
{
    static const struct {
        uint64_t mask;
        const char *text;
    } cases[] = {
        { 0, "-all" },
        { UINT64_C(1) << 30, "-all" }, /* no kind */
        { ALL, "+all" },
        { ALL & ~(UINT64_C(1) << 30), "+all" },
        { ALL & ~BIT(POLL), "+all -poll" },
        { ALL & ~BIT(POLL) & ~BIT(READ) & ~USER, "+all -read,poll,user" },
        { BIT(READ) | BIT(WRITE), "=write,read" },
        { USER, "=user" },
    };
    struct nt_buffer text = { 0 };
    uint64_t random = 1;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nt_buffer_clear(&text);
        nt_model_mask_append(&text, cases[i].mask);
        nt_buffer_byte(&text, '\0');
        assert_string_equal(text.data, cases[i].text);
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t known = (UINT64_C(1) << (NT_MODEL_KIND_LOSS + 1)) - 2;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t mask = random >> 16 & (known | USER);
        nt_buffer_clear(&text);
        nt_model_mask_append(&text, mask);
        nt_buffer_byte(&text, '\0');
        assert_int_equal(edited(text.data, 0) & (known | USER), mask);
    }
    nt_buffer_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_change_a_mask),
        cmocka_unit_test(only_words_are_words),
        cmocka_unit_test(own_names_of_kinds_are_told_of),
        cmocka_unit_test(is_written_as_it_is_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
