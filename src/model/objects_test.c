/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees from arrays: order, missing and circular parents, lives, depth, kinds, and what is not believed. */
#include "model/objects.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "model/feed_test.h"
#include "model/kinds.h"

static void feed(struct nt_model *model, const struct nt_source_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(nt_model_add_object(model, &objects[i]), 0);
    assert_int_equal(nt_model_link(model), 0);
}

static void feed_one(struct nt_model *model, const struct nt_source_object *objects, size_t count)
{
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    nt_model_source(model);
    assert_int_equal(nt_model_add_program(model, &program), 0);
    feed(model, objects, count);
}

/* The tree as text: names in order, a digit of depth before each. */
static void assert_tree(const struct nt_model *model, const char *expected)
{
    struct nt_buffer buffer = { 0 };
    for (uint32_t i = 0; i < model->order_count; i++) {
        const struct nt_model_object *object = &model->objects[model->order[i]];
        nt_buffer_print(&buffer, "%s%u", i > 0 ? " " : "", object->depth);
        nt_model_name_append(&buffer, object);
    }
    nt_buffer_byte(&buffer, '\0');
    assert_string_equal(buffer.data, expected);
    nt_buffer_fini(&buffer);
}

static void empty(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(model.order_count, 0);
    assert_int_equal(nt_model_find(&model, 0, 0, 1), NT_MODEL_NONE);
    nt_model_fini(&model);
    nt_model_fini(NULL);
}

static void parents_may_come_after_children(void **state)
{
    (void)state;
    struct nt_source_object objects[] = {
        feed_object(0, 3, 2, "c"), feed_object(0, 4, 2, "d"), feed_object(0, 2, 1, "b"),
        feed_object(0, 5, 1, "e"), feed_object(0, 1, 0, "a"), feed_object(0, 0, 0, "p"),
    };
    struct nt_model model = { 0 };
    feed_one(&model, objects, 6);
    assert_tree(&model, "0p 1a 2b 3c 3d 2e");
    assert_int_equal(model.objects[nt_model_find(&model, 0, 4, 1)].told.slot, 4);
    assert_int_equal(nt_model_find(&model, 0, 4, 2), NT_MODEL_NONE);
    nt_model_fini(&model);
}

static void siblings_as_they_opened(void **state)
{
    (void)state;
    struct nt_source_object objects[] = {
        feed_object(0, 1, 0, "late"), feed_object(0, 2, 0, "early"), feed_object(0, 0, 0, "p"),
        feed_object(0, 3, 0, "same"), feed_object(0, 4, 0, "same2"),
    };
    objects[0].opened_at = 900;
    objects[1].opened_at = 5;
    objects[2].opened_at = 1000; /* the program's own comes first all the same */
    objects[3].opened_at = objects[4].opened_at = 7;
    struct nt_model model = { 0 };
    feed_one(&model, objects, 5);
    assert_tree(&model, "0p 1early 1same 1same2 1late");
    nt_model_fini(&model);
}

static void missing_parents(void **state)
{
    (void)state;
    struct nt_source_object objects[] = { feed_object(0, 0, 0, "p"), feed_object(0, 1, 9, "orphan"),
                                          feed_object(0, 2, 1, "child"), feed_object(0, 3, 0, "kin") };
    objects[3].parent_generation = 2; /* an earlier life of slot 0, of which nothing is known */
    struct nt_model model = { 0 };
    feed_one(&model, objects, 4);
    assert_tree(&model, "0p 0orphan 1child 0kin");
    assert_true(model.objects[1].adrift && model.objects[3].adrift);
    assert_false(model.objects[0].adrift || model.objects[2].adrift);
    nt_model_fini(&model);
}

static void circles_are_cut(void **state)
{
    (void)state;
    struct nt_source_object objects[] = {
        feed_object(0, 0, 0, "p"), feed_object(0, 1, 3, "a"),    feed_object(0, 2, 1, "b"),
        feed_object(0, 3, 2, "c"), feed_object(0, 4, 4, "self"), feed_object(0, 5, 2, "tail"),
    };
    struct nt_model model = { 0 };
    feed_one(&model, objects, 6);
    assert_int_equal(model.order_count, 6);
    unsigned adrift = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 6; i++) {
        adrift += model.objects[model.order[i]].adrift;
        seen |= 1u << model.objects[model.order[i]].told.slot;
    }
    assert_int_equal(adrift, 2);
    assert_int_equal(seen, 63);
    nt_model_fini(&model);
}

static void lives(void **state)
{
    (void)state;
    struct nt_source_object objects[] = { feed_object(0, 0, 0, "p"), feed_object(0, 1, 0, "x"),
                                          feed_object(0, 1, 0, "x"), feed_object(0, 1, 0, "x"),
                                          feed_object(0, 2, 0, "told twice") };
    struct nt_source_object twice = feed_object(0, 2, 0, "another");
    const struct nt_source_tally own[] = { { 1, 5, 50, 20, 9 }, { 2, 1, UINT64_MAX, 1, 1 } };
    const struct nt_source_tally before[] = { { 1, 7, 70, 30, 8 }, { 2, 1, 2, 3, 4 }, { 5, 1, 1, 1, 1 } };
    const struct nt_source_tally base[] = { { 1, 100, 1000, 0, 0 }, { 3, 4, 40, 0, 0 } };
    objects[2].generation = 2;
    objects[2].previous = 1;
    objects[2].previous_generation = 1;
    objects[3].generation = 3;
    objects[3].previous = 1;
    objects[3].previous_generation = 2;
    objects[3].tallies = own;
    objects[3].tally_count = 2;
    objects[3].lineage = before;
    objects[3].lineage_count = 3;
    objects[3].base = base;
    objects[3].base_count = 2;
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(nt_model_add_object(&model, &objects[i]), 0);
    feed(&model, &twice, 1);
    assert_tree(&model, "0p 1x 1x 1x 1told twice");
    const struct nt_model_object *last = &model.objects[nt_model_find(&model, 0, 1, 3)];
    assert_int_equal(last->previous, nt_model_find(&model, 0, 1, 2));
    assert_int_equal(last->successor, NT_MODEL_NONE);
    assert_int_equal(model.objects[nt_model_find(&model, 0, 1, 1)].successor, nt_model_find(&model, 0, 1, 2));
    assert_int_equal(nt_model_lineage(last, 1).count, 112);
    assert_int_equal(nt_model_lineage(last, 1).total, 1120);
    assert_int_equal(nt_model_lineage(last, 2).total, 1); /* modulo 2^64 */
    assert_int_equal(nt_model_lineage(last, 3).count, 4);
    assert_int_equal(nt_model_lineage(last, 5).count, 1);
    assert_int_equal(nt_model_lineage(last, 6).count, 0);
    nt_model_fini(&model);
}

static void predecessors_may_lie(void **state)
{
    (void)state;
    struct nt_source_object objects[] = { feed_object(0, 1, 0, "a"), feed_object(0, 2, 0, "b"),
                                          feed_object(0, 3, 0, "c") };
    objects[0].previous = 2;
    objects[0].previous_generation = 1;
    objects[1].previous = 1;
    objects[1].previous_generation = 1;
    objects[2].previous = 3;
    objects[2].previous_generation = 1;
    struct nt_model model = { 0 };
    feed_one(&model, objects, 3);
    assert_int_equal(model.order_count, 3);
    assert_int_equal(model.objects[2].successor, NT_MODEL_NONE);
    nt_model_fini(&model);
}

static void what_is_past(void **state)
{
    (void)state;
    struct nt_source_object objects[] = {
        feed_object(0, 0, 0, "p"), feed_object(0, 1, 0, "a"), feed_object(0, 2, 1, "b"),
        feed_object(0, 3, 0, "c"), feed_object(0, 4, 3, "d"),
    };
    for (int i = 1; i < 5; i++)
        objects[i].closed = i != 2;
    struct nt_model model = { 0 };
    feed_one(&model, objects, 5);
    static const bool past[] = { false, false, false, true, true };
    for (int i = 0; i < 5; i++)
        assert_int_equal(model.objects[i].past, past[i]);
    nt_model_fini(&model);
}

static void what_is_fed_is_copied(void **state)
{
    (void)state;
    char name[] = "name", node[] = "node", kind[] = "kind", field[] = "field";
    struct nt_source_tally sums[] = { { 1, 2, 3, 4, 5 } };
    struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_source_field fields[] = { { 1, { field, 5 } } };
    struct nt_source_kind declared = { .kind = 64, .name = { kind, 4 }, .fields = fields, .field_count = 1 };
    struct nt_source_object object = feed_object(0, 1, 0, "x");
    struct nt_model model = { 0 };
    char far_node[] = "far", far_process[] = "away", key[] = "key";
    struct nt_source_link links[] = { { 1, 2, { key, 3 } } };
    struct nt_source_bucket buckets[] = { { 5, 6, 7 } };
    struct nt_source_histogram histograms[] = { { 9, buckets, 1 } };
    struct nt_source_rare rare = { { far_node, 3 }, { far_process, 4 }, links, 1, histograms, 1 };
    object.rare = &rare;
    program.node = (struct nt_bytes){ node, 4 };
    object.name = (struct nt_bytes){ name, 4 };
    object.tallies = object.gone = object.base = object.lineage = sums;
    object.tally_count = object.gone_count = object.base_count = object.lineage_count = 1;
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_int_equal(nt_model_add_kind(&model, &declared), 0);
    assert_int_equal(nt_model_add_object(&model, &object), 0);
    memset(name, 'z', 4);
    memset(node, 'z', 4);
    memset(kind, 'z', 4);
    memset(field, 'z', 5);
    memset(far_node, 'z', 3);
    memset(far_process, 'z', 4);
    memset(key, 'z', 3);
    memset(links, 0, sizeof links);
    memset(buckets, 0, sizeof buckets);
    memset(histograms, 0, sizeof histograms);
    memset(&rare, 0, sizeof rare);
    memset(sums, 0, sizeof sums);
    memset(fields, 0, sizeof fields);
    assert_int_equal(nt_model_link(&model), 0);
    assert_memory_equal(model.objects[0].told.name.data, "name", 4);
    assert_memory_equal(model.nodes[0].name.data, "node", 4);
    assert_int_equal(model.objects[0].told.lineage[0].total, 3);
    assert_memory_equal(model.programs[0].declared[64]->name.data, "kind", 4);
    assert_memory_equal(model.programs[0].declared[64]->fields[0].name.data, "field", 5);
    const struct nt_source_rare *told = model.objects[0].told.rare;
    assert_memory_equal(told->remote_node.data, "far", 3);
    assert_memory_equal(told->remote_process.data, "away", 4);
    assert_int_equal(told->link_count, 1);
    assert_int_equal(told->links[0].pairing, 2);
    assert_memory_equal(told->links[0].key.data, "key", 3);
    assert_int_equal(told->histogram_count, 1);
    assert_int_equal(told->histograms[0].kind, 9);
    assert_int_equal(told->histograms[0].buckets[0].count, 7);
    nt_model_fini(&model);
}

static void nodes_and_namesakes(void **state)
{
    (void)state;
    struct nt_source_program programs[] = { feed_program(0, "b", "w", 3), feed_program(1, "a", "w", 2),
                                            feed_program(2, "b", "v", 1), feed_program(3, "b", "w", 1) };
    struct nt_model model = { 0 };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(nt_model_add_program(&model, &programs[i]), 0);
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(model.node_count, 2);
    assert_memory_equal(model.nodes[0].name.data, "a", 1);
    assert_int_equal(model.nodes[1].programs_count, 3);
    static const uint32_t order[] = { 1, 2, 3, 0 };
    assert_memory_equal(model.programs_order, order, sizeof order);
    assert_true(model.programs[0].namesake && model.programs[3].namesake);
    assert_false(model.programs[1].namesake || model.programs[2].namesake);
    nt_model_fini(&model);
}

static void sources_number_their_own(void **state)
{
    (void)state;
    struct nt_source_program first = feed_program(0, "n", "one", 1), second = feed_program(0, "n", "two", 2);
    struct nt_source_object object = feed_object(0, 1, 0, "x"), stray = feed_object(5, 1, 0, "x");
    struct nt_source_kind kind = { .program = 5, .kind = 64, .name = feed_bytes("k") };
    struct nt_model model = { 0 };
    nt_model_source(&model);
    assert_int_equal(nt_model_add_program(&model, &first), 0);
    assert_int_equal(nt_model_add_object(&model, &object), 0);
    nt_model_source(&model);
    assert_int_equal(nt_model_add_object(&model, &object), -EINVAL);
    assert_int_equal(nt_model_add_program(&model, &second), 0);
    assert_int_equal(nt_model_add_object(&model, &object), 0);
    assert_int_equal(nt_model_add_object(&model, &stray), -EINVAL);
    assert_int_equal(nt_model_add_kind(&model, &kind), -EINVAL);
    assert_int_equal(nt_model_link(&model), 0);
    assert_int_equal(model.objects[0].told.program, 0);
    assert_int_equal(model.objects[1].told.program, 1);
    nt_model_fini(&model);
}

static void assert_kind(const struct nt_model *model, unsigned kind, const char *name)
{
    char room[NT_MODEL_KIND_ROOM];
    struct nt_bytes found = nt_model_kind(&model->programs[0], kind, room);
    assert_int_equal(found.size, strlen(name));
    assert_memory_equal(found.data, name, found.size);
}

static void names_of_kinds(void **state)
{
    (void)state;
    static const struct nt_source_kind kinds[] = {
        { .kind = 64, .name = FEED_BYTES("checkout") }, { .kind = 65, .name = FEED_BYTES("write") },
        { .kind = 66, .name = FEED_BYTES("checkout") }, { .kind = 67, .name = FEED_BYTES("kind-70") },
        { .kind = 68, .name = FEED_BYTES("") },         { .kind = 1, .name = FEED_BYTES("mine") },
        { .kind = 300, .name = FEED_BYTES("far") },     { .kind = 64, .name = FEED_BYTES("again") },
    };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_model model = { 0 };
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    assert_kind(&model, 64, "kind-64");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(nt_model_add_kind(&model, &kinds[i]), 0);
    assert_kind(&model, 1, "write");
    assert_kind(&model, 17, "disk-write");
    assert_kind(&model, 64, "checkout");
    assert_kind(&model, 65, "kind-65");
    assert_kind(&model, 66, "kind-66");
    assert_kind(&model, 67, "kind-67");
    assert_kind(&model, 68, "kind-68");
    assert_kind(&model, 300, "kind-300");
    assert_kind(&model, 65535, "kind-65535");
    assert_string_equal(nt_model_kind_unit(1), "bytes");
    assert_string_equal(nt_model_object_kind_name(6), "channel");
    assert_null(nt_model_kind_name(0));
    assert_null(nt_model_kind_name(255));
    assert_null(nt_model_object_kind_name(0));
    assert_null(nt_model_object_kind_name(200));
    nt_model_fini(&model);
}

/* One long chain, told from its end; and as many siblings, in the worst order. */
static void large_and_deep(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_model model = { 0 };
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (uint32_t i = DEEP; i > 0; i--) {
        struct nt_source_object link = feed_object(0, i, i - 1, "link"), leaf = feed_object(0, DEEP + i, 0, "");
        leaf.opened_at = (uint64_t)i * 2654435761u % 1000003;
        assert_int_equal(nt_model_add_object(&model, &link), 0);
        assert_int_equal(nt_model_add_object(&model, &leaf), 0);
    }
    clock_t before = clock();
    assert_int_equal(nt_model_link(&model), 0);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 5);
    assert_int_equal(model.order_count, 2 * DEEP);
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < model.order_count; i++) {
        uint32_t depth = model.objects[model.order[i]].depth;
        deepest = depth > deepest ? depth : deepest;
    }
    assert_int_equal(deepest, DEEP - 1);
    nt_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty),
        cmocka_unit_test(parents_may_come_after_children),
        cmocka_unit_test(siblings_as_they_opened),
        cmocka_unit_test(missing_parents),
        cmocka_unit_test(circles_are_cut),
        cmocka_unit_test(lives),
        cmocka_unit_test(predecessors_may_lie),
        cmocka_unit_test(what_is_past),
        cmocka_unit_test(what_is_fed_is_copied),
        cmocka_unit_test(nodes_and_namesakes),
        cmocka_unit_test(sources_number_their_own),
        cmocka_unit_test(names_of_kinds),
        cmocka_unit_test(large_and_deep),
    };
    return cmocka_run_group_tests_name("model/objects", tests, NULL, NULL);
}
