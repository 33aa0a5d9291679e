/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects: made, named, closed, succeeded, masked, and their slots used again. */
#include <signal.h>

#include "log/log_test.h"

static void what_is_written_down(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    nt_object parent = test_channel(log, "parent");
    options.name = "child";
    options.kind = NT_OBJECT_ENDPOINT;
    options.discipline = NT_SHARED;
    options.parent = parent;
    nt_time before = nt_now();
    nt_object child = nt_object_new(log, &options);
    const struct nt_layout_object *entry = view_object(&view, child);
    assert_non_null(entry);
    assert_int_equal(entry->kind, NT_OBJECT_ENDPOINT);
    assert_int_equal(entry->discipline, 1);
    assert_true(entry->generation & NT_LAYOUT_LOCKED);
    assert_int_equal(entry->life, NT_LIFE_OPEN);
    assert_int_equal(entry->described, 0);
    assert_int_equal(entry->parent, handle_slot(parent));
    assert_int_equal(entry->parent_generation, handle_generation(parent));
    assert_int_equal(entry->previous_generation, 0);
    assert_true(entry->opened >= before && entry->opened <= nt_now());
    assert_int_equal(entry->closed, 0);
    const struct nt_layout_object *above = view_object(&view, parent);
    assert_int_equal(above->kind, NT_OBJECT_CHANNEL);
    assert_int_equal(above->parent, 0);
    assert_int_equal(above->parent_generation, handle_generation(nt_log_object(log)));
    assert_int_equal(view.live->living, 3);
    nt_object_close(child);
    assert_int_equal(entry->life, NT_LIFE_CLOSED);
    assert_true(entry->closed >= entry->opened);
    assert_int_equal(view.live->living, 2);
    view_close(&view);
    nt_log_close(log);
}

static void the_programs_own_object(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object root = nt_log_object(log);
    const struct nt_layout_object *entry = view_object(&view, root);
    assert_int_equal(handle_slot(root), 0);
    assert_int_equal(entry->kind, NT_OBJECT_PROCESS);
    assert_int_equal(entry->parent_generation, 0);
    assert_memory_equal(view_name(&view, entry), "test", 4);
    nt_object_count(root, NT_ERROR, 5);
    nt_object_close(root); /* ignored: it is the log's */
    assert_int_equal(nt_object_succeed(root).handle, 0);
    nt_object_count(root, NT_ERROR, 5);
    assert_sum(&view, root, NT_ERROR, 2, 10);
    view_close(&view);
    nt_log_close(log);
}

static void names(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    char name[301];
    for (size_t i = 0; i < 300; i++)
        name[i] = (char)(i % 255 + 1);
    name[300] = '\0';
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    const size_t sizes[] = { 1, 15, 16, 17, 254, 255, 256, 300 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        options.name = name;
        options.name_size = sizes[i];
        const struct nt_layout_object *entry = view_object(&view, nt_object_new(log, &options));
        assert_int_equal(entry->name_size, sizes[i] < 255 ? sizes[i] : 255);
        assert_memory_equal(view_name(&view, entry), name, entry->name_size);
    }
    options.name_size = 0;
    assert_int_equal(view_object(&view, nt_object_new(log, &options))->name_size, 255);
    options.name = "a\0b\xff\033[31m";
    options.name_size = 8;
    assert_memory_equal(view_name(&view, view_object(&view, nt_object_new(log, &options))), options.name, 8);
    options.name = "";
    options.name_size = 0;
    assert_int_equal(view_object(&view, nt_object_new(log, &options))->name_size, 0);
    options.name = NULL;
    assert_int_equal(view_object(&view, nt_object_new(log, &options))->name_size, 0);
    options.name_size = 200; /* of no name */
    nt_object none = nt_object_new(log, &options);
    assert_true(!none.handle || view_object(&view, none)->name_size == 0);
    view_close(&view);
    nt_log_close(log);
}

static void bad_options_make_nothing(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    for (int i = 0; i < 9; i++) {
        nt_object_options options = NT_OBJECT_OPTIONS_INIT;
        options.name = "x";
        if (i < 5)
            options.reserved[i] = 1;
        options.size = i == 5 ? OBJECT_OPTIONS_FIRST - 1 : sizeof(options);
        options.discipline = i == 6 ? 2 : NT_SHARED;
        options.kind = i == 7 ? 256 : NT_OBJECT_FILE;
        options.flags = i == 8 ? 2 : 0;
        assert_int_equal(nt_object_new(log, &options).handle, 0);
    }
    assert_int_equal(nt_object_new(log, NULL).handle, 0);
    assert_int_equal(nt_object_new(NULL, NULL).handle, 0);
    assert_int_equal(log->map.live->slots, 1);
    nt_log_close(log);
}

/* ---- closing and using again ---- */

static void what_is_gone_is_ignored_and_counted(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        count_times(object, NT_WRITE, 2, 5);
        nt_object_close(object);
        uint64_t stale = view.live->stale, reserved = view_ring(&view, 0)->reserved;
        count_times(object, NT_WRITE, 2, 5);
        nt_object_count_at(object, NT_READ, 2, 1);
        nt_object_record(object, NT_WRITE, 2, NULL, 0);
        nt_object_mask_set(object, 0);
        assert_int_equal(nt_object_mask(object), 0);
        assert_int_equal(nt_object_succeed(object).handle, 0);
        nt_object_close(object);
        assert_int_equal(view.live->stale, stale + 11);
        assert_sum(&view, object, NT_WRITE, 5, 10);
        assert_null(view_tally(&view, view_object(&view, object), NT_READ));
        assert_int_equal(view_ring(&view, 0)->reserved, reserved);
        assert_int_equal(view.live->free_count, discipline + 1);
    }
    view_close(&view);
    nt_log_close(log);
}

static void the_zero_handle_is_ignored(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    const nt_object none = { 0 };
    nt_object_count(none, NT_WRITE, 1);
    nt_object_count(nt_log_object(log), NT_WRITE, 1); /* the thread counts now */
    nt_object_count(none, NT_WRITE, 1);
    nt_object_count_with(none, NT_WRITE, 1, 1);
    nt_object_record(none, NT_WRITE, 1, NULL, 0);
    nt_object_mask_set(none, 0);
    nt_object_close(none);
    assert_int_equal(nt_object_succeed(none).handle, 0);
    assert_int_equal(nt_object_mask(none), 0);
    assert_sum(&view, nt_log_object(log), NT_WRITE, 1, 1);
    assert_int_equal(nt_object_mask(nt_log_object(log)), NT_MASK_DEFAULT);
    view_close(&view);
    nt_log_close(log);
}

/* 32 closed slots stay readable in the smallest log; then the one that was closed first is used again. */
static void slots_are_used_again_longest_closed_first(void **state)
{
    (void)state;
    enum { OBJECTS = 60 };
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object objects[OBJECTS];
    uint32_t order[OBJECTS], slots;
    for (uint32_t i = 0; i < OBJECTS; i++)
        objects[i] = test_channel(log, "old");
    slots = view.live->slots;
    for (uint32_t i = 0; i < OBJECTS; i++) { /* any order */
        order[i] = i * 37 % OBJECTS;
        nt_object_close(objects[order[i]]);
    }
    for (uint32_t i = 0; i < OBJECTS - 32; i++) {
        nt_object old = objects[order[i]], fresh = test_object(log, "new", (nt_object){ 0 }, i % 2);
        assert_int_equal(handle_slot(fresh), handle_slot(old));
        assert_int_equal(handle_generation(fresh) & ~NT_LAYOUT_LOCKED, handle_generation(old) + 1);
        assert_int_equal(handle_generation(fresh) >> 31, i % 2);
        assert_null(view_object(&view, old));
        assert_memory_equal(view_name(&view, view_object(&view, fresh)), "new", 3);
        nt_object_count(old, NT_WRITE, 1); /* does not hit the new life */
        assert_null(view_tally(&view, view_object(&view, fresh), NT_WRITE));
        assert_int_equal(view.live->free_count, OBJECTS - 1 - i);
    }
    assert_int_equal(view.live->slots, slots);
    assert_int_equal(handle_slot(test_channel(log, "x")), slots);
    view_close(&view);
    nt_log_close(log);
}

/* Objects opened and closed without end: no sum is lost, memory stays within the cap. */
static void thousands_of_lives(void **state)
{
    (void)state;
    enum { LIVES = 5000 };
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent");
    uint64_t count = 0, total = 0;
    char name[300];
    memset(name, 'n', sizeof(name));
    name[299] = '\0';
    for (uint64_t i = 0; i < LIVES; i++) {
        nt_object_options options = NT_OBJECT_OPTIONS_INIT;
        options.name = name;
        options.name_size = i % 256;
        options.parent = parent;
        nt_object child = nt_object_new(log, &options);
        assert_int_not_equal(child.handle, 0);
        for (nt_kind kind = 20; kind < 20 + i % 12; kind++)
            nt_object_count(child, kind, i);
        nt_object_count(child, NT_WRITE, i);
        nt_object_close(child);
    }
    for (uint32_t slot = 1; slot < view.live->slots; slot++) {
        const struct nt_layout_tally *tally = view_tally(&view, view_entry(&view, slot), NT_WRITE);
        count += tally ? tally->sum.count : 0;
        total += tally ? tally->sum.total : 0;
    }
    const struct nt_layout_extra *closed = view_extra(&view, view_object(&view, parent), NT_WRITE);
    assert_int_equal(count + closed->closed.count, LIVES);
    assert_int_equal(total + closed->closed.total, (uint64_t)LIVES * (LIVES - 1) / 2);
    assert_int_equal(view.live->refused_objects, 0);
    assert_int_equal(view.live->refused_tallies, 0);
    assert_true(view.live->backed <= 524288);
    view_close(&view);
    nt_log_close(log);
}

static void without_room_objects_are_refused_and_counted(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    uint32_t made = 0;
    nt_object last = { 0 }, object;
    while ((object = test_channel(log, "x")).handle) {
        last = object;
        nt_object_count(object, NT_WRITE, 3);
        assert_true(++made < 10000);
    }
    assert_true(made > 500);
    assert_int_equal(view.live->refused_objects, 1);
    assert_true(view.live->backed <= 524288);
    nt_object_count(object, NT_WRITE, 1);
    assert_sum(&view, last, NT_WRITE, 1, 3);
    nt_object_close(last);
    assert_int_equal(handle_slot(test_channel(log, "y")), handle_slot(last));
    view_close(&view);
    nt_log_close(log);
}

/* ---- epochs ---- */

static void a_successor_names_what_it_succeeds(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent"), before = parent;
    nt_object object = test_object(log, "channel", parent, NT_EXCLUSIVE);
    nt_object_mask_set(object, NT_MASK(NT_READ) | NT_MASK(NT_EPOCH));
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        const struct nt_layout_object *entry = view_object(&view, object);
        assert_int_equal(entry->epoch, epoch);
        assert_memory_equal(view_name(&view, entry), "channel", 7);
        assert_int_equal(entry->parent, handle_slot(parent));
        assert_int_equal(nt_object_mask(object), NT_MASK(NT_READ) | NT_MASK(NT_EPOCH));
        const struct nt_layout_extra *extra = view_extra(&view, entry, NT_READ);
        if (epoch > 0) {
            assert_int_equal(entry->previous, handle_slot(before));
            assert_int_equal(entry->previous_generation, handle_generation(before));
            assert_int_equal(view_object(&view, before)->life, NT_LIFE_CLOSED);
            assert_true(extra->holds & NT_EXTRA_LINEAGE);
            assert_int_equal(extra->lineage.count, 10 * epoch);
            assert_int_equal(extra->lineage.total, 10 * (epoch * (epoch + 1) / 2));
        } else {
            assert_null(extra);
        }
        count_times(object, NT_READ, epoch + 1, 10); /* from zero */
        assert_sum(&view, object, NT_READ, 10, 10 * (epoch + 1));
        before = object;
        object = nt_object_succeed(object);
        assert_int_not_equal(object.handle, 0);
        nt_object_count(before, NT_READ, 1);
        assert_sum(&view, before, NT_READ, 10, 10 * (epoch + 1));
    }
    assert_int_equal(view.live->living, 3);
    view_close(&view);
    nt_log_close(log);
}

static void a_succession_is_logged(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x"), next = nt_object_succeed(object);
    nt_object_close(next);
    const struct nt_layout_ring *ring = view_ring(&view, 0);
    static const nt_kind kinds[] = { NT_OPEN, NT_CLOSE, NT_EPOCH, NT_CLOSE };
    for (uint64_t i = 0; i < 4; i++) {
        const struct nt_layout_record *record = view_record(&view, ring, nth(i + 1));
        assert_true(view_written(&view, ring, nth(i + 1)));
        assert_int_equal(record_kind(record), kinds[i]);
        assert_int_equal(record->generation, handle_generation(i < 2 ? object : next));
        assert_int_equal(record->sum.count, 1);
    }
    const struct nt_layout_record *epoch = view_record(&view, ring, nth(3));
    assert_int_equal(epoch->argument & UINT32_MAX, handle_slot(object));
    assert_int_equal(epoch->argument >> 32, handle_generation(object));
    view_close(&view);
    nt_log_close(log);
}

/* ---- masks ---- */

static void masks_are_inherited_at_creation(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object parent = test_channel(log, "parent"), child = test_object(log, "child", parent, 0);
    assert_int_equal(nt_object_mask(parent), NT_MASK_DEFAULT);
    assert_int_equal(nt_object_mask(parent) & NT_MASK(NT_POLL), 0);
    nt_object_mask_set(parent, NT_MASK(NT_PING));
    assert_int_equal(nt_object_mask(child), NT_MASK_DEFAULT);
    assert_int_equal(nt_object_mask(test_object(log, "child", parent, 0)), NT_MASK(NT_PING));
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.parent = parent;
    options.mask = ~UINT64_C(0);
    assert_int_equal(nt_object_mask(nt_object_new(log, &options)), NT_MASK(NT_PING));
    options.flags = NT_OBJECT_MASKED;
    assert_int_equal(nt_object_mask(nt_object_new(log, &options)), NT_MASK_ALL);
    options.mask = 0;
    assert_int_equal(nt_object_mask(nt_object_new(log, &options)), 0);
    nt_log_close(log);
}

/* What is masked is counted and not logged; kinds from 47 on share a bit. */
static void masked_events_are_counted_alone(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        uint64_t position = nth(discipline ? 9 : 2);
        const struct nt_layout_ring *ring = view_ring(&view, 0);
        nt_object_mask_set(object, NT_MASK(NT_READ));
        count_times(object, NT_WRITE, 1, 4);
        count_times(object, 46, 1, 4);
        assert_false(view_written(&view, ring, position));
        nt_object_count(object, NT_READ, 1);
        assert_true(view_written(&view, ring, position));
        nt_object_mask_set(object, NT_MASK(60));
        nt_object_count(object, 47, 1);
        nt_object_count(object, 200, 1);
        nt_object_count(object, 46, 1);
        nt_object_count(object, NT_READ, 1);
        assert_true(view_written(&view, ring, position + 128));
        assert_false(view_written(&view, ring, position + 192));
        nt_object_mask_set(object, NT_MASK_ALL);
        nt_object_count(object, NT_WRITE, 1);
        const struct nt_layout_record *record = view_record(&view, ring, position + 192);
        assert_int_equal(record_kind(record), NT_WRITE); /* says what the masked ones summed to */
        assert_int_equal(record->sum.count, 5);
        assert_sum(&view, object, 46, 5, 5);
        assert_sum(&view, object, NT_READ, 2, 2);
        nt_object_mask_set(object, 0);
        nt_object_close(object); /* not logged either */
        nt_object_count(test_channel(log, "y"), NT_WRITE, 1);
    }
    view_close(&view);
    nt_log_close(log);
}

static void masks_change_from_outside(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    uint64_t *word = view_at(&view, NT_REGION_CONTROL, handle_slot(object));
    assert_int_equal(*word >> 48, handle_generation(object));
    *word = (*word & ~NT_MASK_ALL) | NT_MASK(NT_READ);
    nt_object_count(object, NT_WRITE, 1);
    assert_false(view_written(&view, view_ring(&view, 0), nth(2)));
    nt_object_count(object, NT_READ, 1);
    assert_true(view_written(&view, view_ring(&view, 0), nth(2)));
    assert_int_equal(nt_object_mask(object), NT_MASK(NT_READ));
    nt_object_mask_set(object, NT_MASK(NT_WRITE));
    const struct nt_layout_change *change = view_at(&view, NT_REGION_CHANGES, handle_slot(object) + 1);
    const struct nt_layout_changes *changes = view_at(&view, NT_REGION_CHANGES, 0);
    assert_int_equal(change->before & NT_MASK_ALL, NT_MASK(NT_READ));
    assert_int_equal(change->after & NT_MASK_ALL, NT_MASK(NT_WRITE));
    assert_int_equal(change->setter, getpid());
    assert_true(change->time > 0);
    assert_int_equal(change->check, nt_layout_change_check(change));
    assert_int_equal(changes->count, 1);
    /* what changes nothing is no change */
    nt_object_mask_set(object, NT_MASK(NT_WRITE));
    assert_int_equal(changes->count, 1);
    nt_object_mask_set(object, NT_MASK(NT_READ));
    assert_int_equal(changes->count, 2);
    view_close(&view);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(what_is_written_down),
        log_test(the_programs_own_object),
        log_test(names),
        log_test(bad_options_make_nothing),
        log_test(what_is_gone_is_ignored_and_counted),
        log_test(the_zero_handle_is_ignored),
        log_test(slots_are_used_again_longest_closed_first),
        log_test(thousands_of_lives),
        log_test(without_room_objects_are_refused_and_counted),
        log_test(a_successor_names_what_it_succeeds),
        log_test(a_succession_is_logged),
        log_test(masks_are_inherited_at_creation),
        log_test(masked_events_are_counted_alone),
        log_test(masks_change_from_outside),
    };
    return cmocka_run_group_tests_name("log/object", tests, NULL, NULL);
}
