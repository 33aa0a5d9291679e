/* SPDX-License-Identifier: BSD-3-Clause */
/* GLOB against a plain recursive matcher, over all short patterns and texts of a small alphabet. */
#include "event/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct nt_bytes bytes(const char *text)
{
    return (struct nt_bytes){ text, strlen(text) };
}

/* Only for the alphabet of the test: one-byte characters, no ranges. */
static bool oracle(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return oracle(pattern + 1, text) || (*text != '\0' && oracle(pattern, text + 1));
    if (*text == '\0')
        return false;
    if (*pattern == '?')
        return oracle(pattern + 1, text + 1);
    if (*pattern != '[')
        return *pattern == *text && oracle(pattern + 1, text + 1);
    bool invert = pattern[1] == '^', found = false;
    const char *at = pattern + 1 + invert;
    do
        found = *at++ == *text || found;
    while (*at != ']');
    return found != invert && oracle(at + 1, text + 1);
}

static void spell(unsigned number, const char *const *parts, unsigned count, char *to)
{
    for (*to = '\0'; number > 0; number = (number - 1) / count) {
        size_t size = strlen(parts[(number - 1) % count]);
        to = (char *)memcpy(to, parts[(number - 1) % count], size + 1) + size;
    }
}

static void agrees_with_the_oracle(void **state)
{
    static const char *const parts[] = { "a", "b", "*", "?", "[a]", "[^a]", "[]b]", "[^]]" };
    static const char *const letters[] = { "a", "b", "]" };
    enum { PATTERNS = 8 + 64 + 512 + 4096 + 32768, TEXTS = 3 + 9 + 27 + 81 + 243 };
    unsigned matches = 0;
    (void)state;
    for (unsigned i = 0; i <= PATTERNS; i += i > 4680 ? 7 : 1) {
        char pattern[32], text[16];
        spell(i, parts, 8, pattern);
        assert_null(nt_glob_check(bytes(pattern)));
        for (unsigned k = 0; k <= TEXTS; k++) {
            spell(k, letters, 3, text);
            bool wanted = oracle(pattern, text);
            matches += wanted;
            if (nt_glob_match(bytes(pattern), bytes(text)) != wanted)
                fail_msg("'%s' GLOB '%s' is not %d", text, pattern, wanted);
        }
    }
    assert_true(matches > 100000);
}

static void knows_characters_and_ranges(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        { "", "", true },
        { "", "a", false },
        { "*", "", true },
        { "a*", "A", false },
        { "?", "\xc3\xa9", true }, /* é */
        { "??", "\xc3\xa9", false },
        { "?", "\xff", true },
        { "\xff", "\xff", true },
        { "[\xc3\xa0-\xc3\xbc]", "\xc3\xa9", true },
        { "[^\xc3\xa0-\xc3\xbc]", "\xc3\xa9", false },
        { "[a-c]x", "bx", true },
        { "[a-c]x", "dx", false },
        { "[a-]", "-", true },
        { "[a-]", "b", false },
        { "[-a]", "-", true },
        { "[^a-c]", "d", true },
        { "[]-a]", "^", true }, /* from ] to a */
        { "[*]", "*", true },
        { "[*]", "x", false },
        { "*/orders", "node/worker/tcp/orders", true },
        { "*/orders", "node/worker/tcp/orders/x", false },
        { "a*b*c", "a-b-b-c-c", true },
        { "a*b*c", "a-c-b", false },
        { "**?**", "", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (nt_glob_match(bytes(cases[i].pattern), bytes(cases[i].text)) != cases[i].matches)
            fail_msg("'%s' GLOB '%s'", cases[i].text, cases[i].pattern);
    }
    assert_true(nt_glob_match((struct nt_bytes){ "a\0b*", 4 }, (struct nt_bytes){ "a\0bc", 4 }));
    assert_false(nt_glob_match((struct nt_bytes){ "a\0b", 3 }, (struct nt_bytes){ "a\0c", 3 }));
}

static void refuses_open_brackets(void **state)
{
    static const char *const wrong[] = { "[", "[a", "x[^", "[]", "[^]", "*[a-", "[a-]b[" };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_non_null(nt_glob_check(bytes(wrong[i])));
        assert_false(nt_glob_match(bytes(wrong[i]), bytes("a")));
    }
}

/* Backtracking over every star would take longer than there is time. */
static void is_never_slow(void **state)
{
    enum { STARS = 4000, LETTERS = 16000 };
    char *pattern = malloc(2 * STARS + 1), *text = malloc(LETTERS);
    (void)state;
    assert_true(pattern && text);
    for (size_t i = 0; i < STARS; i++)
        memcpy(pattern + 2 * i, "*a", 2);
    pattern[2 * STARS] = 'b';
    memset(text, 'a', LETTERS);
    assert_false(nt_glob_match((struct nt_bytes){ pattern, 2 * STARS + 1 }, (struct nt_bytes){ text, LETTERS }));
    free(pattern);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_oracle),
        cmocka_unit_test(knows_characters_and_ranges),
        cmocka_unit_test(refuses_open_brackets),
        cmocka_unit_test(is_never_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
