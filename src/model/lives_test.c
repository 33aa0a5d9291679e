/* SPDX-License-Identifier: BSD-3-Clause */
/* What events name: known, not known, gone since; and which of them paths pick: those that a selection has. */
#include "model/lives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"

enum { PATHS = 4 };

static struct nt_lives *lives;
static struct nt_model_path *paths[PATHS];
static size_t path_count;

static void begin(const char *first, const char *second)
{
    const char *const texts[] = { first, second };
    const char *reason;
    for (path_count = 0; path_count < 2 && texts[path_count]; path_count++)
        assert_int_equal(nt_model_path_new(texts[path_count], strlen(texts[path_count]), &paths[path_count], &reason),
                         0);
    assert_int_equal(nt_lives_new(paths, path_count, &lives), 0);
}

static void end(void)
{
    nt_lives_free(lives);
    while (path_count > 0)
        nt_model_path_free(paths[--path_count]);
}

static struct nt_source_rare rare; /* of orders; all zeros: nothing */

/* Programs 7 (alpha/worker) and 9 (beta/orders); under each tcp, and under that orders, "a/b", one without a name. */
static void feed(struct nt_model *model, unsigned without)
{
    static const char *const names[] = { "root", "tcp", "orders", "a/b", "" };
    const struct nt_source_program programs[] = { feed_program(7, "alpha", "worker", 10),
                                                  feed_program(9, "beta", "orders", 11) };
    static const struct nt_source_tally reads[] = { { NT_MODEL_KIND_READ, 1, 1, 1, 1 } };
    nt_model_source(model);
    for (uint32_t i = 0; i < 2; i++) {
        const struct nt_source_field field = { .type = 1, .name = FEED_BYTES("price") };
        const struct nt_source_kind kind = {
            .program = programs[i].number, .kind = 64, .name = FEED_BYTES("trade"), .fields = &field, .field_count = 1
        };
        assert_int_equal(nt_model_add_program(model, &programs[i]), 0);
        if (i == 0)
            assert_int_equal(nt_model_add_kind(model, &kind), 0);
        for (uint32_t slot = 0; slot < 5; slot++) {
            struct nt_source_object object = feed_object(programs[i].number, slot, slot > 1, names[slot]);
            object.tallies = reads;
            object.tally_count = 1;
            object.rare = slot == 2 && rare.remote_node.size > 0 ? &rare : NULL;
            if (slot == 0 || slot != without)
                assert_int_equal(nt_model_add_object(model, &object), 0);
        }
    }
    assert_int_equal(nt_model_link(model), 0);
}

static void take(unsigned without)
{
    struct nt_model model = { 0 };
    feed(&model, without);
    assert_int_equal(nt_lives_take(lives, &model), 0);
    assert_int_equal(model.program_count, 0);
}

static void is(struct nt_bytes bytes, const char *text)
{
    if (bytes.size != strlen(text) || memcmp(bytes.data, text, bytes.size) != 0)
        fail_msg("'%.*s' is not '%s'", (int)bytes.size, bytes.data, text);
}

static void names_what_is_known(void **state)
{
    char room[NT_MODEL_KIND_ROOM];
    (void)state;
    begin(NULL, NULL);
    take(0);
    const struct nt_life *life = nt_lives_find(lives, 7, 2, 1);
    assert_true(life && life->known && life->program->known);
    is(life->name, "orders");
    is(life->path, "alpha/worker/tcp/orders");
    is(life->below, "tcp/orders");
    is(life->program->full_name, "worker.10");
    is(life->program->node, "alpha");
    assert_int_equal(life->program->id, 0xabc7);
    is(nt_life_kind(life, NT_MODEL_KIND_READ, room), "read");
    is(nt_life_kind(life, 64, room), "trade");
    is(nt_life_kind(life, 65, room), "kind-65");
    assert_int_equal(nt_life_declared(life, 64)->field_count, 1);
    is(nt_life_declared(life, 64)->fields[0].name, "price");
    assert_null(nt_life_declared(life, 65));
    assert_true(nt_life_picked(lives, life, 64));
    life = nt_lives_find(lives, 9, 3, 1);
    is(life->name, "a/b");
    is(life->below, "tcp/a\\/b");
    is(nt_life_kind(life, 64, room), "kind-64");
    life = nt_lives_find(lives, 9, 4, 1);
    is(life->name, "#4.1");
    is(life->path, "beta/orders/tcp/#4.1");
    life = nt_lives_find(lives, 9, 0, 1);
    is(life->path, "beta/orders");
    is(life->below, "");
    end();
}

/* The other end may be told of later. */
static void learns_of_the_other_end(void **state)
{
    (void)state;
    begin(NULL, NULL);
    take(0);
    assert_int_equal(nt_lives_find(lives, 7, 2, 1)->remote_node.size, 0);
    rare.remote_node = feed_bytes("beta");
    take(0);
    is(nt_lives_find(lives, 7, 2, 1)->remote_node, "beta");
    assert_int_equal(nt_lives_find(lives, 7, 2, 1)->remote_process.size, 0);
    rare.remote_process = feed_bytes("sink");
    take(0);
    is(nt_lives_find(lives, 7, 2, 1)->remote_node, "beta");
    is(nt_lives_find(lives, 7, 2, 1)->remote_process, "sink");
    is(nt_lives_find(lives, 7, 2, 1)->path, "alpha/worker/tcp/orders");
    assert_int_equal(nt_lives_find(lives, 7, 3, 1)->remote_process.size, 0);
    rare = (struct nt_source_rare){ 0 };
    take(2);
    is(nt_lives_find(lives, 7, 2, 1)->remote_process, "sink");
    end();
}

static void makes_names_for_what_is_not(void **state)
{
    (void)state;
    begin(NULL, NULL);
    const struct nt_life *life = nt_lives_find(lives, 7, 2, 1);
    assert_true(life && !life->known && !life->program->known);
    is(life->path, "*/program-7/#2.1");
    is(life->below, "#2.1");
    is(life->program->full_name, "program-7");
    take(2);
    life = nt_lives_find(lives, 7, 2, 1);
    assert_true(!life->known && life->program->known);
    is(life->path, "alpha/worker.10/#2.1");
    take(3);
    life = nt_lives_find(lives, 7, 2, 1);
    assert_true(life->known);
    is(life->path, "alpha/worker/tcp/orders");
    life = nt_lives_find(lives, 7, 2, 2);
    assert_true(!life->known);
    end();
}

/* What an event asked for stays when the next snapshot has it no more. */
static void remembers_what_was_there(void **state)
{
    struct nt_model none = { 0 };
    char room[NT_MODEL_KIND_ROOM];
    (void)state;
    begin(NULL, NULL);
    take(0);
    assert_true(nt_lives_find(lives, 7, 2, 1)->known);
    take(2);
    is(nt_lives_find(lives, 7, 2, 1)->path, "alpha/worker/tcp/orders");
    assert_int_equal(nt_model_link(&none), 0);
    assert_int_equal(nt_lives_take(lives, &none), 0);
    const struct nt_life *life = nt_lives_find(lives, 7, 2, 1);
    assert_true(life->known);
    is(life->path, "alpha/worker/tcp/orders");
    is(nt_life_kind(life, 64, room), "trade");
    assert_false(nt_lives_find(lives, 7, 3, 1)->known);
    end();
}

/* Each life and kind is picked as a selection has it, for kinds that were counted; and for others likewise. */
static void picks_as_a_selection_does(void **state)
{
    static const char *const texts[] = {
        "orders",        "beta",        "beta/orders", "alpha/worker", "worker",          "10",
        "worker.10/tcp", "*/worker/**", "tcp/orders",  "orders/read",  "tcp/orders/read", "**/read",
        "alpha/**/read", "#2.1",        "tcp/#4.1",    "a\\/b",        "worker/read",     "/beta/orders/tcp",
        "nothing",       "tcp/*/re?d",  "**",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct nt_model model = { 0 };
        struct nt_model_selection selection;
        begin(texts[i], NULL);
        take(0);
        feed(&model, 0);
        assert_int_equal(nt_model_selection_init(&selection, &model), 0);
        int found = nt_model_select(&selection, paths[0], false);
        assert_true(found > 0 || strcmp(texts[i], "nothing") == 0);
        assert_int_equal(nt_model_selection_close(&selection), 0);
        for (uint32_t at = 0; at < model.object_count; at++) {
            const struct nt_source_object *told = &model.objects[at].told;
            const struct nt_life *life = nt_lives_find(lives, model.programs[told->program].told.number, told->slot,
                                                       told->generation);
            bool wanted = nt_model_selected(&selection, at, NT_MODEL_KIND_READ);
            if (nt_life_picked(lives, life, NT_MODEL_KIND_READ) != wanted)
                fail_msg("%s: %.*s is not %d", texts[i], (int)life->path.size, life->path.data, wanted);
            bool whole = selection.objects[at] == NT_MODEL_PICKED_WHOLE;
            if (nt_life_picked(lives, life, NT_MODEL_KIND_PING) != whole)
                fail_msg("%s: ping of %.*s is not %d", texts[i], (int)life->path.size, life->path.data, whole);
        }
        nt_model_selection_fini(&selection);
        nt_model_fini(&model);
        end();
    }
}

static void picks_by_any_path(void **state)
{
    (void)state;
    begin("a\\/b", "worker/tcp/orders/trade");
    take(0);
    assert_true(nt_life_picked(lives, nt_lives_find(lives, 9, 3, 1), 1));
    assert_true(nt_life_picked(lives, nt_lives_find(lives, 7, 2, 1), 64));
    assert_false(nt_life_picked(lives, nt_lives_find(lives, 7, 2, 1), 1));
    assert_false(nt_life_picked(lives, nt_lives_find(lives, 9, 2, 1), 64));
    assert_false(nt_life_picked(lives, nt_lives_find(lives, 9, 77, 1), 1));
    assert_true(nt_lives_program(lives, 7)->picked && nt_lives_program(lives, 9)->picked);
    end();
    begin("alpha", NULL);
    take(0);
    assert_true(nt_lives_program(lives, 7)->picked);
    assert_false(nt_lives_program(lives, 9)->picked);
    assert_false(nt_lives_program(lives, 5)->picked);
    end();
}

static void is_bounded(void **state)
{
    (void)state;
    begin("orders", NULL);
    take(0);
    for (uint32_t generation = 1; generation < 3 * NT_LIVES_MOST; generation++) {
        const struct nt_life *life = nt_lives_find(lives, 7, 2, generation);
        assert_true(life && life->known == (generation == 1));
        if (generation % 10000 == 0)
            take(0);
        if (generation % 1000 == 0)
            assert_true(nt_lives_program(lives, 7)->picked && nt_lives_program(lives, 9)->picked);
    }
    assert_true(nt_lives_find(lives, 7, 2, 1)->known);
    assert_true(nt_life_picked(lives, nt_lives_find(lives, 7, 2, 1), 1));
    end();
}

/* Many objects under one with a long path: as bytes that are no text it is four times as long. */
static void long_paths_are_bounded(void **state)
{
    enum { DEEP = 47, MANY = 20000 };
    static char name[255];
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(7, "alpha", "worker", 10);
    (void)state;
    memset(name, 0xff, sizeof name);
    begin("alpha", NULL);
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (uint32_t slot = 0; slot < DEEP + MANY; slot++) {
        struct nt_source_object object = feed_object(7, slot, slot < DEEP ? slot - 1 : DEEP - 1, "x");
        object.parent_generation = slot > 0;
        object.name = (struct nt_bytes){ name, sizeof name };
        assert_int_equal(nt_model_add_object(&model, &object), 0);
    }
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(nt_lives_take(lives, &model), 0);
    for (uint32_t slot = 0; slot < DEEP + MANY; slot++) {
        const struct nt_life *life = nt_lives_find(lives, 7, slot, 1);
        assert_true(life && life->known && nt_life_picked(lives, life, 1));
        assert_true(slot < DEEP || life->path.size > 40000);
        assert_in_range(nt_lives_bytes(lives), 1, NT_LIVES_BYTES + (1 << 20)); /* of some 800 MB */
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_is_known),
        cmocka_unit_test(makes_names_for_what_is_not),
        cmocka_unit_test(learns_of_the_other_end),
        cmocka_unit_test(remembers_what_was_there),
        cmocka_unit_test(picks_as_a_selection_does),
        cmocka_unit_test(picks_by_any_path),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(long_paths_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
