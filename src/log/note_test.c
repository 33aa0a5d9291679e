/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says of an object once: what was counted before, its links, who is at the
   other end; in its own life, its successors' and a child's. */
#include <errno.h>

#include "log/log_test.h"

#define check(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

static void assert_pair(struct nt_layout_pair pair, uint64_t count, uint64_t total)
{
    assert_int_equal(pair.count, count);
    assert_int_equal(pair.total, total);
}

static const struct nt_layout_extra *extra_of(const struct view *view, nt_object object, nt_kind kind)
{
    return view_extra(view, view_object(view, object), kind);
}

static void a_base_is_kept_beside_the_counts(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    for (uint32_t discipline = NT_EXCLUSIVE; discipline <= NT_SHARED; discipline++) {
        nt_object object = test_object(log, "x", (nt_object){ 0 }, discipline);
        assert_int_equal(nt_object_base_set(object, NT_WRITE, 1000, UINT64_MAX), 0);
        nt_object_count(object, NT_READ, 5);
        nt_object_count(object, NT_WRITE, 7);
        assert_int_equal(nt_object_base_set(object, NT_POLL, 1, 0), 0);
        assert_sum(&view, object, NT_WRITE, 1, 7);
        const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
        assert_int_equal(extra->holds, NT_EXTRA_BASE);
        assert_pair(extra->base, 1000, UINT64_MAX);
        assert_pair(extra_of(&view, object, NT_POLL)->base, 1, 0);
        assert_null(extra_of(&view, object, NT_READ));
    }
    view_close(&view);
    nt_log_close(log);
}

static void a_base_comes_once_and_first(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x"), closed = test_channel(log, "y");
    nt_object_count(object, NT_READ, 0);
    assert_int_equal(nt_object_base_set(object, NT_READ, 1, 1), -EBUSY);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), 0);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), -EEXIST);
    nt_object_count(object, NT_WRITE, 1);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 1, 1), -EBUSY);
    assert_int_equal(nt_object_base_set(object, NT_KIND_NONE, 1, 1), -EINVAL);
    assert_int_equal(nt_object_base_set(object, 255, 1, 1), -EINVAL);
    assert_int_equal(nt_object_base_set(object, NT_PING, 0, 1), -EINVAL);
    assert_int_equal(nt_object_base_set((nt_object){ 0 }, NT_PING, 1, 1), 0);
    nt_object_close(closed);
    assert_int_equal(nt_object_base_set(closed, NT_PING, 1, 1), -ENOENT);
    nt_log_close(log);
}

static void no_room_for_a_base(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    nt_object object = test_channel(log, "x");
    while (log_block_new(&log->map, 2))
        ;
    assert_int_equal(nt_object_base_set(object, NT_READ, 1, 1), -ENOSPC);
    nt_object_count(object, NT_READ, 1);
    nt_log_close(log);
}

/* Each successor's lineage has all before it: counts and bases. */
static void a_lineage_has_the_bases(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    assert_int_equal(nt_object_base_set(object, NT_READ, 7, 70), 0);
    nt_object_count(object, NT_WRITE, 1);
    object = nt_object_succeed(object);
    const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
    assert_int_equal(extra->holds, NT_EXTRA_LINEAGE);
    assert_pair(extra->lineage, 101, 1001);
    assert_pair(extra_of(&view, object, NT_READ)->lineage, 7, 70);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 10, 20), 0);
    count_times(object, NT_WRITE, 2, 2);
    object = nt_object_succeed(object);
    assert_pair(extra_of(&view, object, NT_WRITE)->lineage, 113, 1025);
    assert_pair(extra_of(&view, object, NT_READ)->lineage, 7, 70);
    view_close(&view);
    nt_log_close(log);
}

/* What is folded into a parent was counted here: no base. */
static void a_base_is_not_folded(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    count_times(object, NT_WRITE, 3, 2);
    nt_object_close(object);
    assert_true(log_fold(&log->map, handle_slot(object)));
    const struct nt_layout_extra *extra = view_extra(&view, view_entry(&view, 0), NT_WRITE);
    assert_int_equal(extra->holds, NT_EXTRA_CLOSED);
    assert_pair(extra->closed, 2, 6);
    view_close(&view);
    nt_log_close(log);
}

static void a_child_starts_with_base_and_lineage(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x");
    count_times(object, NT_WRITE, 2, 3);
    object = nt_object_succeed(object);
    assert_int_equal(nt_object_base_set(object, NT_WRITE, 100, 1000), 0);
    nt_object_count(object, NT_WRITE, 5);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(object, NT_READ, 1);
        struct view view = view_open(nt_log_path(log));
        const struct nt_layout_extra *extra = extra_of(&view, object, NT_WRITE);
        check(extra->holds == (NT_EXTRA_BASE | NT_EXTRA_LINEAGE));
        check(extra->base.count == 101 && extra->base.total == 1005);
        check(extra->lineage.count == 3 && extra->lineage.total == 6);
        check(nt_object_base_set(object, NT_WRITE, 1, 1) == -EEXIST);
        check(nt_object_base_set(object, NT_PING, 1, 1) == 0);
        nt_object_count(object, NT_WRITE, 1);
        object = nt_object_succeed(object);
        extra = extra_of(&view, object, NT_WRITE);
        check(extra->holds == NT_EXTRA_LINEAGE);
        check(extra->lineage.count == 3 + 101 + 1 && extra->lineage.total == 6 + 1005 + 1);
        exit(0);
    }
    assert_child_is_well(child);
    nt_log_close(log);
}

/* ---- notes ---- */

static const struct nt_layout_note *note_of(const struct view *view, nt_object object, uint32_t what)
{
    const struct nt_layout_object *entry = view_object(view, object);
    for (uint32_t at = entry->notes; at;) {
        const struct nt_layout_note *note = view_at(view, NT_REGION_STRINGS, at);
        if (note->what == what)
            return note;
        at = note->next;
    }
    return NULL;
}

static bool note_is(const struct view *view, nt_object object, uint32_t what, const char *text)
{
    const struct nt_layout_note *note = note_of(view, object, what);
    return note && note->size == strlen(text) && memcmp(note + 1, text, note->size) == 0;
}

/* Strings in use and in lists, in units. */
static uint32_t strings_free(const nt_log *log)
{
    uint32_t units = 0;
    for (uint32_t class = 0; class < 12; class ++)
        for (uint32_t at = log->map.live->free_string[class]; at; units += 1u << class)
            memcpy(&at, log->map.strings + (uint64_t)at * 16, sizeof(at));
    return units;
}

static void links_have_a_key_a_direction(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x"), other = test_channel(log, "y");
    assert_int_equal(nt_object_link_set(object, NT_LINK_WRITE, NT_PAIR_COUNT, "to", 2), 0);
    assert_int_equal(nt_object_link_set(object, NT_LINK_WRITE, NT_PAIR_COUNT, "to", 2), -EEXIST);
    assert_int_equal(nt_object_link_set(object, NT_LINK_BOTH, NT_PAIR_COUNT, "to", 2), -EEXIST);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_BYTES, "from", 4), 0);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_BYTES, "from", 4), -EEXIST);
    assert_true(note_is(&view, object, NT_NOTE_LINK_WRITE, "to"));
    assert_true(note_is(&view, object, NT_NOTE_LINK_READ, "from"));
    assert_int_equal(note_of(&view, object, NT_NOTE_LINK_WRITE)->pairing, NT_PAIR_COUNT);
    assert_int_equal(note_of(&view, object, NT_NOTE_LINK_READ)->pairing, NT_PAIR_BYTES);
    assert_int_equal(nt_object_link_set(other, NT_LINK_BOTH, NT_PAIR_ID, "loop", 4), 0);
    assert_int_equal(nt_object_link_set(other, NT_LINK_READ, NT_PAIR_ID, "loop", 4), -EEXIST);
    assert_true(note_is(&view, other, NT_NOTE_LINK_WRITE | NT_NOTE_LINK_READ, "loop"));
    view_close(&view);
    nt_log_close(log);
}

static void links_of_every_size(void **state)
{
    (void)state;
    nt_log *log = test_log(8 << 20, 16384);
    struct view view = view_open(nt_log_path(log));
    enum { COUNT = 112 };
    static nt_object objects[COUNT];
    char key[NT_LAYOUT_LINK_KEY + 1];
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i < COUNT - 1 ? 1 + 36 * i : NT_LAYOUT_LINK_KEY;
        memset(key, (int)i, sizeof(key));
        objects[i] = test_channel(log, "x");
        assert_int_equal(nt_object_link_set(objects[i], NT_LINK_READ, NT_PAIR_NONE, key, size), 0);
    }
    assert_int_equal(note_of(&view, objects[COUNT - 1], NT_NOTE_LINK_READ)->size, NT_LAYOUT_LINK_KEY);
    for (size_t i = 0; i < COUNT; i++) { /* nobody wrote over anybody */
        const struct nt_layout_note *note = note_of(&view, objects[i], NT_NOTE_LINK_READ);
        memset(key, (int)i, sizeof(key));
        assert_memory_equal(note + 1, key, note->size);
    }
    assert_int_equal(nt_object_link_set(test_channel(log, "y"), NT_LINK_READ, 0, key, sizeof(key)), -EINVAL);
    view_close(&view);
    nt_log_close(log);
}

static void what_is_no_link_is_refused(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x"), closed = test_channel(log, "y");
    assert_int_equal(nt_object_link_set(object, 0, NT_PAIR_COUNT, "k", 1), -EINVAL);
    assert_int_equal(nt_object_link_set(object, 4, NT_PAIR_COUNT, "k", 1), -EINVAL);
    assert_int_equal(nt_object_link_set(object, 257, NT_PAIR_COUNT, "k", 1), -EINVAL);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_ID + 1, "k", 1), -EINVAL);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_ID, "k", 0), -EINVAL);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_ID, NULL, 1), -EINVAL);
    assert_int_equal(nt_object_link_set((nt_object){ 0 }, NT_LINK_READ, NT_PAIR_ID, "k", 1), 0);
    nt_object_close(closed);
    assert_int_equal(nt_object_link_set(closed, NT_LINK_READ, NT_PAIR_ID, "k", 1), -ENOENT);
    assert_int_equal(log->map.objects[handle_slot(object)].notes, 0);
    nt_log_close(log);
}

static void remote_names_come_together_or_apart(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object both = test_channel(log, "both"), apart = test_channel(log, "apart");
    char longest[257];
    memset(longest, 'n', sizeof(longest));
    longest[255] = 0;
    assert_int_equal(nt_object_remote_set(both, longest, "sink"), 0);
    assert_true(note_is(&view, both, NT_NOTE_REMOTE_NODE, longest));
    assert_true(note_is(&view, both, NT_NOTE_REMOTE_PROCESS, "sink"));
    assert_int_equal(nt_object_remote_set(both, NULL, "sink"), -EEXIST);
    assert_int_equal(nt_object_remote_set(both, NULL, ""), 0); /* says nothing */
    assert_int_equal(nt_object_remote_set(apart, "", "sink"), 0);
    assert_int_equal(nt_object_remote_set(apart, "alpha", "other"), -EEXIST); /* and so no node either */
    assert_null(note_of(&view, apart, NT_NOTE_REMOTE_NODE));
    assert_int_equal(nt_object_link_set(apart, NT_LINK_BOTH, NT_PAIR_COUNT, "k", 1), 0);
    assert_int_equal(nt_object_remote_set(apart, "alpha", NULL), 0);
    assert_true(note_is(&view, apart, NT_NOTE_REMOTE_NODE, "alpha"));
    assert_true(note_is(&view, apart, NT_NOTE_REMOTE_PROCESS, "sink"));
    longest[255] = 'n';
    longest[256] = 0;
    assert_int_equal(nt_object_remote_set(test_channel(log, "x"), longest, NULL), -EINVAL);
    assert_int_equal(nt_object_remote_set(test_channel(log, "x"), NULL, longest), -EINVAL);
    view_close(&view);
    nt_log_close(log);
}

static void a_successor_starts_without_notes(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object before = test_channel(log, "x");
    assert_int_equal(nt_object_link_set(before, NT_LINK_BOTH, NT_PAIR_COUNT, "k", 1), 0);
    assert_int_equal(nt_object_remote_set(before, "node", "process"), 0);
    nt_object object = nt_object_succeed(before);
    assert_int_equal(view_object(&view, object)->notes, 0);
    assert_true(note_is(&view, before, NT_NOTE_LINK_WRITE | NT_NOTE_LINK_READ, "k")); /* readable while it is there */
    assert_int_equal(nt_object_link_set(object, NT_LINK_BOTH, NT_PAIR_COUNT, "l", 1), 0);
    view_close(&view);
    nt_log_close(log);
}

/* With its slot an object gives back the room of its notes, and the next life does not find them. */
static void notes_go_with_the_life(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    static const char key[1000] = { 'k' };
    uint32_t used = 0;
    for (int turn = 0; turn < 100; turn++) {
        nt_object object = test_channel(log, "x");
        assert_int_equal(view_object(&view, object)->notes, 0);
        assert_int_equal(nt_object_link_set(object, NT_LINK_WRITE, NT_PAIR_COUNT, key, sizeof(key)), 0);
        assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_COUNT, key, 9), 0);
        assert_int_equal(nt_object_remote_set(object, "node", "process"), 0);
        nt_object_close(object);
        uint32_t free = strings_free(log);
        assert_true(log_fold(&log->map, handle_slot(object)));
        assert_int_equal(strings_free(log), free + 64 + 2 + 1 + 1);
        log->map.live->free_count = 0; /* the slot stays as it is, so that strings alone are looked at */
        used = turn == 0 ? view.live->strings : used;
    }
    assert_int_equal(view.live->strings, used + 99); /* names only */
    view_close(&view);
    nt_log_close(log);
}

static void a_child_has_its_parents_notes(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    nt_object object = test_channel(log, "x"), plain = test_channel(log, "y");
    assert_int_equal(nt_object_link_set(object, NT_LINK_WRITE, NT_PAIR_ID, "to", 2), 0);
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_COUNT, "from", 4), 0);
    assert_int_equal(nt_object_remote_set(object, "node", NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(object, NT_READ, 1);
        check(nt_object_remote_set(plain, NULL, "p") == 0);
        struct view view = view_open(nt_log_path(log));
        check(view.header->flags & NT_HEADER_FORKED);
        check(note_is(&view, object, NT_NOTE_LINK_WRITE, "to"));
        check(note_is(&view, object, NT_NOTE_LINK_READ, "from"));
        check(note_of(&view, object, NT_NOTE_LINK_WRITE)->pairing == NT_PAIR_ID);
        check(note_is(&view, object, NT_NOTE_REMOTE_NODE, "node"));
        check(note_is(&view, plain, NT_NOTE_REMOTE_PROCESS, "p"));
        check(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_COUNT, "from", 4) == -EEXIST);
        check(nt_object_remote_set(object, NULL, "p") == 0);
        exit(0);
    }
    assert_child_is_well(child);
    assert_int_equal(log->map.objects[handle_slot(plain)].notes, 0); /* the parent's log is its own */
    nt_log_close(log);
}

static void no_room_for_a_note(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    nt_object object = test_channel(log, "x");
    while (log_string_new(&log->map, 16))
        ;
    assert_int_equal(nt_object_link_set(object, NT_LINK_READ, NT_PAIR_COUNT, "k", 1), -ENOSPC);
    assert_int_equal(nt_object_remote_set(object, "n", "p"), -ENOSPC);
    assert_int_equal(log->map.objects[handle_slot(object)].notes, 0);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(a_base_is_kept_beside_the_counts),
        log_test(a_base_comes_once_and_first),
        log_test(no_room_for_a_base),
        log_test(a_lineage_has_the_bases),
        log_test(a_base_is_not_folded),
        log_test(a_child_starts_with_base_and_lineage),
        log_test(links_have_a_key_a_direction),
        log_test(links_of_every_size),
        log_test(what_is_no_link_is_refused),
        log_test(remote_names_come_together_or_apart),
        log_test(a_successor_starts_without_notes),
        log_test(notes_go_with_the_life),
        log_test(a_child_has_its_parents_notes),
        log_test(no_room_for_a_note),
    };
    return cmocka_run_group_tests_name("log/note", tests, NULL, NULL);
}
