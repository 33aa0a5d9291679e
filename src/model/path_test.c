/* SPDX-License-Identifier: BSD-3-Clause */
/* The grammar of paths, what they pick, and which life of an object a number is of. */
#include "model/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <nt/error.h>

#include "model/feed_test.h"

/* Counts of kinds write (1) and read (2), and what else sums know. */
static const struct nt_source_tally both[] = { { 1, 3, 30, 20, 99 }, { 2, 4, 10, 5, 98 } };
static const struct nt_source_tally only_read[] = { { 2, 1, 100, 100, 97 } };
static const struct nt_source_tally only_user[] = { { 64, 2, 9, 5, 96 } };

static void add(struct nt_model *model, struct nt_source_object object, const struct nt_source_tally *sums,
                size_t count)
{
    object.tallies = sums;
    object.tally_count = count;
    assert_int_equal(nt_model_add_object(model, &object), 0);
}

/* alpha/worker (pid 10): in/orders, in/"a/b*c", in/"" ; alpha/worker (pid 11, crashed): in/orders;
   beta/gateway: in/orders (two lives), write, deep/in/orders. */
static int setup(void **state)
{
    struct nt_model *model = calloc(1, sizeof *model);
    struct nt_source_program programs[] = { feed_program(0, "alpha", "worker", 10),
                                            feed_program(1, "alpha", "worker", 11),
                                            feed_program(2, "beta", "gateway", 12) };
    const struct nt_source_kind kind = { .program = 2, .kind = 64, .name = FEED_BYTES("checkout") };
    programs[1].state = NT_PROGRAM_CRASHED;
    programs[1].started--;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nt_model_add_program(model, &programs[i]), 0);
        add(model, feed_object((uint32_t)i, 0, 0, programs[i].name.data), only_read, i == 2);
        add(model, feed_object((uint32_t)i, 1, 0, "in"), NULL, 0);
    }
    assert_int_equal(nt_model_add_kind(model, &kind), 0);
    add(model, feed_object(0, 2, 1, "orders"), both, 2);
    add(model, feed_object(0, 3, 1, "a/b*c"), both, 2);
    add(model, feed_object(0, 4, 1, ""), both, 2);
    add(model, feed_object(1, 2, 1, "orders"), both, 1);
    struct nt_source_object life = feed_object(2, 2, 1, "orders");
    life.closed = true;
    add(model, life, both, 2);
    life.closed = false;
    life.generation = 2;
    life.previous = 2;
    life.previous_generation = 1;
    life.lineage = both;
    life.lineage_count = 2;
    add(model, life, only_read, 1);
    add(model, feed_object(2, 3, 0, "write"), only_user, 1);
    add(model, feed_object(2, 4, 0, "deep"), NULL, 0);
    add(model, feed_object(2, 5, 4, "in"), NULL, 0);
    add(model, feed_object(2, 6, 5, "orders"), both, 2);
    assert_int_equal(nt_model_link(model), 0);
    *state = model;
    return 0;
}

static int teardown(void **state)
{
    nt_model_fini(*state);
    free(*state);
    return 0;
}

static int select_text(struct nt_model_selection *selection, const char *text, bool all)
{
    struct nt_model_path *path;
    const char *reason;
    assert_int_equal(nt_model_path_new(text, strlen(text), &path, &reason), 0);
    int count = nt_model_select(selection, path, all);
    nt_model_path_free(path);
    return count;
}

/* What a path picks, as text: numbers as path=value; else objects picked whole, or kinds of them. */
static void describe(const struct nt_model_selection *selection, struct nt_buffer *out)
{
    const struct nt_model *model = selection->model;
    for (size_t i = 0; i < selection->number_count; i++) {
        uint64_t count;
        nt_model_pick_append(out, model, &selection->numbers[i]);
        uint64_t value = nt_model_pick_value(model, &selection->numbers[i], &count);
        nt_buffer_byte(out, '=');
        nt_buffer_ratio(out, value, count, 6, true);
        nt_buffer_byte(out, ' ');
    }
    for (uint32_t i = 0; i < model->order_count; i++) {
        uint32_t at = model->order[i];
        if (selection->objects[at] < NT_MODEL_PICKED_KINDS)
            continue;
        nt_model_path_append(out, model, at);
        for (unsigned kind = 0; selection->objects[at] == NT_MODEL_PICKED_KINDS && kind < 256; kind++) {
            if (nt_model_selected(selection, at, kind))
                nt_buffer_print(out, ":%u", kind);
        }
        nt_buffer_byte(out, ' ');
    }
}

static void assert_picks_of(const struct nt_model *model, const char *text, bool all, const char *expected)
{
    struct nt_model_selection selection;
    struct nt_buffer out = { 0 };
    assert_int_equal(nt_model_selection_init(&selection, model), 0);
    (void)select_text(&selection, text, all);
    assert_int_equal(nt_model_selection_close(&selection), 0);
    describe(&selection, &out);
    nt_buffer_byte(&out, '\0');
    assert_string_equal(out.data, expected);
    nt_buffer_fini(&out);
    nt_model_selection_fini(&selection);
}

static void assert_picks(void **state, const char *text, const char *expected)
{
    assert_picks_of(*state, text, false, expected);
}

static void one_number(void **state)
{
    assert_picks(state, "alpha/worker.10/in/orders/write/total", "alpha/worker.10/in/orders/write/total=30 ");
    assert_picks(state, "/alpha/10/in/orders/write/count", "alpha/worker.10/in/orders/write/count=3 ");
    assert_picks(state, "10/in/orders/write/max", "alpha/worker.10/in/orders/write/max=20 ");
    assert_picks(state, "worker.10/in/orders/read/mean", "alpha/worker.10/in/orders/read/mean=2.5 ");
    assert_picks(state, "worker.10/in/orders/read/last", "alpha/worker.10/in/orders/read/last=98 ");
    assert_picks(state, "gateway/read/total", "beta/gateway/read/total=100 ");
}

static void globs(void **state)
{
    assert_picks(state, "beta/gateway/**/orders/read/count",
                 "beta/gateway/in/orders/read/count=1 beta/gateway/deep/in/orders/read/count=4 ");
    assert_picks(state, "*/worker.1?/in/o*s/write/total", "alpha/worker.10/in/orders/write/total=30 ");
    assert_picks(state, "worker.10/in/orders/*/count",
                 "alpha/worker.10/in/orders/write/count=3 alpha/worker.10/in/orders/read/count=4 ");
    assert_picks(state, "10/**/count",
                 "alpha/worker.10/in/orders/write/count=3 alpha/worker.10/in/orders/read/count=4 "
                 "alpha/worker.10/in/a\\/b\\*c/write/count=3 alpha/worker.10/in/a\\/b\\*c/read/count=4 "
                 "alpha/worker.10/in/#4.1/write/count=3 alpha/worker.10/in/#4.1/read/count=4 ");
    assert_picks(state, "**/deep/**/total",
                 "beta/gateway/deep/in/orders/write/total=30 beta/gateway/deep/in/orders/read/total=10 ");
}

static void escapes(void **state)
{
    assert_picks(state, "10/in/a\\/b\\*c/write/total", "alpha/worker.10/in/a\\/b\\*c/write/total=30 ");
    assert_picks(state, "10/in/a\\x2fb\\x2Ac/write/total", "alpha/worker.10/in/a\\/b\\*c/write/total=30 ");
    assert_picks(state, "10/in/a?b?c/write/total", "alpha/worker.10/in/a\\/b\\*c/write/total=30 ");
    assert_picks(state, "10/in/a\\/b\\*d/write/total", "");
    assert_picks(state, "10/in/#4.1/write/total", "alpha/worker.10/in/#4.1/write/total=30 ");
    assert_picks(state, "10/in/#2.1/write/total", "alpha/worker.10/in/orders/write/total=30 ");
    assert_picks(state, "10/in/\\#2.1/write/total", "");
    assert_picks(state, "10/in/#2.9/write/total", "");
}

static void branches(void **state)
{
    assert_picks(state, "worker.10/in",
                 "alpha/worker.10/in alpha/worker.10/in/orders "
                 "alpha/worker.10/in/a\\/b\\*c alpha/worker.10/in/#4.1 ");
    assert_picks(state, "worker.10/in/",
                 "alpha/worker.10/in alpha/worker.10/in/orders "
                 "alpha/worker.10/in/a\\/b\\*c alpha/worker.10/in/#4.1 ");
    assert_picks(state, "worker.11", "alpha/worker.11 alpha/worker.11/in alpha/worker.11/in/orders ");
    assert_picks(state, "10/in/orders/write", "alpha/worker.10/in/orders:1 ");
    /* Both the object of that name and the kind. */
    assert_picks(state, "beta/*/write", "beta/gateway/write ");
    assert_picks(state, "gateway/write/checkout/total", "beta/gateway/write/checkout/total=9 ");
    /* Named like a field, but there is no such number. */
    assert_picks(state, "10/total", "");
    assert_picks(state, "nobody", "");
    assert_picks(state, "/worker.10", "");
}

static void a_living_life_comes_first(void **state)
{
    assert_picks(state, "gateway/in/orders/read/total", "beta/gateway/in/orders/read/total=100 ");
    assert_picks_of(*state, "gateway/in/orders/read/total", true,
                    "beta/gateway/in/orders/read/total=10 beta/gateway/in/orders/read/total=100 ");
    /* The new life has not written: the old one's number is all there is. */
    assert_picks(state, "gateway/in/orders/write/total", "beta/gateway/in/orders/write/total=30 ");
    assert_picks(state, "worker/in/orders/write/total", "alpha/worker.10/in/orders/write/total=30 ");
    assert_picks(state, "11/in/orders/write/total", "alpha/worker.11/in/orders/write/total=30 ");
    assert_picks_of(*state, "worker/in/orders/write/total", true,
                    "alpha/worker.11/in/orders/write/total=30 alpha/worker.10/in/orders/write/total=30 ");
}

static void other_sums(void **state)
{
    assert_picks(state, "gateway/in/orders/read/lineage_total", "beta/gateway/in/orders/read/lineage_total=110 ");
    assert_picks(state, "gateway/in/orders/read/lineage_count", "beta/gateway/in/orders/read/lineage_count=5 ");
    assert_picks(state, "gateway/in/orders/write/lineage_count", "beta/gateway/in/orders/write/lineage_count=3 ");
    assert_picks(state, "10/in/orders/write/lineage_total", "alpha/worker.10/in/orders/write/lineage_total=30 ");
    assert_picks(state, "10/in/orders/write/base_total", "");
    assert_picks(state, "10/in/orders/write/closed_count", "");
}

static void several_paths(void **state)
{
    struct nt_model_selection selection;
    assert_int_equal(nt_model_selection_init(&selection, *state), 0);
    assert_int_equal(select_text(&selection, "10/in/orders/write/total", false), 1);
    assert_int_equal(select_text(&selection, "gateway/in/orders/read/total", false), 1);
    assert_int_equal(select_text(&selection, "nobody", false), 0);
    assert_int_equal(selection.number_count, 2);
    assert_int_equal(select_text(&selection, "gateway/deep", false), 1);
    assert_int_equal(nt_model_selection_close(&selection), 0);
    /* With a branch, numbers are shown as kinds. */
    assert_int_equal(selection.number_count, 0);
    struct nt_buffer out = { 0 };
    describe(&selection, &out);
    nt_buffer_byte(&out, '\0');
    assert_string_equal(out.data, "alpha/worker.10/in/orders:1 beta/gateway/in/orders:2 beta/gateway/deep "
                                  "beta/gateway/deep/in beta/gateway/deep/in/orders ");
    assert_int_equal(selection.nodes[0], NT_MODEL_PICKED_ABOVE);
    assert_int_equal(selection.programs[0], NT_MODEL_PICKED_ABOVE);
    assert_int_equal(selection.programs[1], NT_MODEL_PICKED_NOT);
    nt_buffer_fini(&out);
    nt_model_selection_fini(&selection);
}

static void assert_bad(const char *text, size_t size)
{
    struct nt_model_path *path = NULL;
    const char *reason = NULL;
    assert_int_equal(nt_model_path_new(text, size, &path, &reason), -NT_ESYNTAX);
    assert_non_null(reason);
    assert_null(path);
}

static void bad_paths(void **state)
{
    (void)state;
    static const char *const texts[] = { "", "/", "//", "a//b", "a\\", "a/\\", "\\x", "\\x1", "\\xg1", "\\x1g/a" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_bad(texts[i], strlen(texts[i]));
    char many[127], wide[16385];
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = i % 2 ? '/' : 'a';
    assert_bad(many, 125); /* 63 components */
    struct nt_model_path *path;
    const char *reason;
    assert_int_equal(nt_model_path_new(many, 123, &path, &reason), 0);
    nt_model_path_free(path);
    memset(wide, 'a', sizeof wide);
    assert_bad(wide, sizeof wide);
    assert_int_equal(nt_model_path_new(wide, sizeof wide - 1, &path, &reason), 0);
    nt_model_path_free(path);
    nt_model_path_free(NULL);
}

/* What is printed is taken back, whatever the name. */
static void hostile_names_come_back(void **state)
{
    (void)state;
    static const struct nt_bytes names[] = {
        FEED_BYTES("\x1b[31m\xe2\x80\xae\"\0\xff\\x"),
        FEED_BYTES("/"),
        FEED_BYTES("*"),
        FEED_BYTES("**"),
        FEED_BYTES("?"),
        FEED_BYTES("\\"),
        FEED_BYTES("#1.1"),
        FEED_BYTES("total"),
        FEED_BYTES("write"),
        FEED_BYTES(" "),
        FEED_BYTES("\n"),
        FEED_BYTES("."),
        FEED_BYTES(""),
        FEED_BYTES("\\x41"),
        FEED_BYTES("--json"),
    };
    struct nt_model model = { 0 };
    char wide[255];
    memset(wide, 0xfe, sizeof wide);
    for (size_t i = 0; i < sizeof names / sizeof *names + 1; i++) {
        struct nt_bytes name = { wide, sizeof wide };
        if (i < sizeof names / sizeof *names)
            name = names[i];
        struct nt_source_program program = feed_program((uint32_t)i, "n", "p", (uint32_t)i);
        struct nt_source_object object = feed_object((uint32_t)i, 1, 0, "");
        program.node = program.name = object.name = name;
        assert_int_equal(nt_model_add_program(&model, &program), 0);
        add(&model, object, both, 1);
    }
    assert_int_equal(nt_model_link(&model), 0);
    for (uint32_t i = 0; i < model.object_count; i++) {
        struct nt_model_selection selection;
        struct nt_buffer path = { 0 };
        const struct nt_model_pick pick = { i, 1, NT_MODEL_FIELD_TOTAL };
        nt_model_pick_append(&path, &model, &pick);
        nt_buffer_byte(&path, '\0');
        assert_int_equal(nt_model_selection_init(&selection, &model), 0);
        assert_int_equal(select_text(&selection, path.data, false), 1);
        assert_int_equal(selection.numbers[0].object, i);
        nt_model_selection_fini(&selection);
        nt_buffer_fini(&path);
    }
    nt_model_fini(&model);
}

static void assert_component(const char *pattern, const char *name, bool matches)
{
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    struct nt_source_program program = feed_program(0, name, "p", 1);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(nt_model_selection_init(&selection, &model), 0);
    char path[64];
    (void)snprintf(path, sizeof path, "/%s", pattern);
    assert_int_equal(select_text(&selection, path, false), matches);
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

static void components(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        { "a", "a", true },        { "a", "b", false },         { "a", "aa", false },      { "aa", "a", false },
        { "*", "", true },         { "*", "abc", true },        { "a*", "a", true },       { "*a", "ba", true },
        { "*a", "ab", false },     { "a*b*c", "abbc", true },   { "a*b*c", "acb", false }, { "***", "x", true },
        { "?", "", false },        { "?", "x", true },          { "?", "xy", false },      { "??", "xy", true },
        { "?", "\xc3\xb6", true }, { "??", "\xc3\xb6", false }, { "?", "\xff", true },     { "*\\*", "a*", true },
        { "*\\*", "ab", false },   { "*b?", "abbc", true },     { "*aab", "aaab", true },  { "\\a", "a", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_component(cases[i].pattern, cases[i].name, cases[i].matches);
}

/* A chain that is longer than any path, with names that all match in every way. */
static void large_and_deep(void **state)
{
    (void)state;
    enum { DEEP = 50000 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (uint32_t i = 0; i < DEEP; i++) {
        struct nt_source_object object = feed_object(0, i, i > 0 ? i - 1 : 0, "aaaaaaaaaaaaaaaa");
        object.closed = true;
        add(&model, object, both, 2);
    }
    assert_int_equal(nt_model_link(&model), 0);
    clock_t before = clock();
    assert_int_equal(nt_model_selection_init(&selection, &model), 0);
    assert_int_equal(select_text(&selection, "**/a*/**/*a*a*/**/*/**/total", false), 2 * (DEEP - 2));
    assert_int_equal(nt_model_selection_close(&selection), 0);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 10);
    struct nt_buffer path = { 0 };
    nt_model_pick_append(&path, &model, &selection.numbers[selection.number_count - 1]);
    nt_buffer_byte(&path, '\0');
    assert_non_null(strstr(path.data, "n/p/**/aaaa"));
    assert_true(path.size < 48 * 17 + 32);
    size_t found = selection.number_count;
    assert_true(select_text(&selection, path.data, false) > 0);
    assert_true(selection.number_count > found);
    nt_buffer_fini(&path);
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_number, setup, teardown),
        cmocka_unit_test_setup_teardown(globs, setup, teardown),
        cmocka_unit_test_setup_teardown(escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(branches, setup, teardown),
        cmocka_unit_test_setup_teardown(a_living_life_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(other_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(several_paths, setup, teardown),
        cmocka_unit_test(bad_paths),
        cmocka_unit_test(hostile_names_come_back),
        cmocka_unit_test(components),
        cmocka_unit_test(large_and_deep),
    };
    return cmocka_run_group_tests_name("model/path", tests, NULL, NULL);
}
