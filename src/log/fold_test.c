/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of closed objects go to their parent's `closed`, whole at every instruction: a child is stepped through it
   while the test adds up what its file says. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "log/log_test.h"

/* Puts a closed object's slot back to use, as happens when room is short. */
static void fold(nt_log *log, nt_object object)
{
    assert_true(log_lock(&log->map.live->lock));
    assert_true(log_fold(&log->map, handle_slot(object)));
    log_unlock(&log->map.live->lock);
}

#define assert_closed(view, object, kind, wanted_count, wanted_total, wanted_max)                 \
    do {                                                                                          \
        const struct nt_layout_extra *extra_ = view_extra(view, view_object(view, object), kind); \
        assert_non_null(extra_);                                                                  \
        assert_true(extra_->holds &NT_EXTRA_CLOSED);                                              \
        assert_int_equal(extra_->closed.count, wanted_count);                                     \
        assert_int_equal(extra_->closed.total, wanted_total);                                     \
        assert_int_equal(extra_->closed_max, wanted_max);                                         \
    } while (0)

static void sums_go_to_the_parent(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    const struct nt_layout_redo *redo = view_at(&view, NT_REGION_REDO, 0);
    nt_object parent = test_channel(log, "parent");
    count_times(parent, NT_WRITE, 100, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        nt_object child = test_object(log, "child", parent, i % 2 ? NT_EXCLUSIVE : NT_SHARED);
        count_times(child, NT_WRITE, i, 10);
        for (nt_kind kind = 20; kind < 40; kind++)
            nt_object_count_at(child, kind, i, 1000 * i);
        nt_object_close(child);
        assert_sum(&view, child, NT_WRITE, 10, 10 * i); /* readable until its slot is needed */
        fold(log, child);
        assert_null(view_object(&view, child));
        assert_int_equal(redo->sequence, 2 * i);
        assert_int_equal(view_entry(&view, handle_slot(child))->folded, i);
        assert_int_equal(view_entry(&view, handle_slot(child))->last_generation, handle_generation(child));
        assert_closed(&view, parent, NT_WRITE, 10 * i, 10 * (i * (i + 1) / 2), i);
        assert_closed(&view, parent, 25, i, i * (i + 1) / 2, i);
        assert_closed(&view, parent, NT_OPEN, i, 0, 0);
        assert_closed(&view, parent, NT_CLOSE, i, 0, 0);
        assert_int_equal(view_extra(&view, view_object(&view, parent), 25)->closed_last, 1000 * i);
    }
    assert_sum(&view, parent, NT_WRITE, 1, 100); /* its own stay its own */
    view_close(&view);
    nt_log_close(log);
}

static void what_the_child_has_of_its_children_goes_along(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent"), child = test_object(log, "child", parent, 0);
    nt_object grandchild = test_object(log, "grandchild", child, 0);
    count_times(grandchild, NT_READ, 5, 3);
    count_times(child, NT_READ, 7, 2);
    count_times(child, NT_WRITE, 1, 1);
    nt_object_close(grandchild);
    fold(log, grandchild);
    nt_object_close(child);
    fold(log, child);
    assert_closed(&view, parent, NT_READ, 5, 29, 7);
    assert_closed(&view, parent, NT_WRITE, 1, 1, 1);
    assert_closed(&view, parent, NT_OPEN, 2, 0, 0);
    view_close(&view);
    nt_log_close(log);
}

/* A parent that went first: the program's own object takes the sums. */
static void no_parent_no_loss(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent"), child = test_object(log, "child", parent, 0);
    count_times(child, NT_READ, 5, 3);
    nt_object_close(parent);
    fold(log, parent);
    nt_object_close(child);
    fold(log, child);
    assert_closed(&view, nt_log_object(log), NT_READ, 3, 15, 5);
    assert_closed(&view, nt_log_object(log), NT_CLOSE, 2, 0, 0);
    view_close(&view);
    nt_log_close(log);
}

/* `open` and `close` that somebody counted as well are counted once with the life's own. */
static void counted_opens_and_closes(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent"), child = test_object(log, "child", parent, 0);
    nt_object_count(child, NT_OPEN, 3);
    nt_object_count(child, NT_CLOSE, 4);
    assert_sum(&view, child, NT_OPEN, 2, 3);
    nt_object_close(child);
    assert_sum(&view, child, NT_CLOSE, 2, 4);
    fold(log, child);
    assert_closed(&view, parent, NT_OPEN, 2, 3, 3);
    assert_closed(&view, parent, NT_CLOSE, 2, 4, 4);
    view_close(&view);
    nt_log_close(log);
}

static void without_room_nothing_changes(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct view view = view_open(nt_log_path(log));
    nt_object parent = test_channel(log, "parent"), child = test_object(log, "child", parent, 0);
    for (nt_kind kind = 1; kind < 60; kind++)
        nt_object_count(child, kind, kind);
    nt_object_close(child);
    while (log_block_new(&log->map, 2))
        ;
    assert_true(log_lock(&log->map.live->lock));
    assert_false(log_fold(&log->map, handle_slot(child)));
    log_unlock(&log->map.live->lock);
    for (nt_kind kind = 1; kind < 60; kind++)
        if (kind != NT_OPEN && kind != NT_CLOSE)
            assert_sum(&view, child, kind, 1, kind);
    const struct nt_layout_redo *redo = view_at(&view, NT_REGION_REDO, 0);
    assert_int_equal(redo->sequence % 2, 0);
    for (nt_kind kind = 1; kind < 60; kind++) {
        const struct nt_layout_extra *extra = view_extra(&view, view_object(&view, parent), kind);
        assert_true(!extra || !(extra->holds & NT_EXTRA_CLOSED));
    }
    view_close(&view);
    nt_log_close(log);
}

/* ---- stopped at every instruction ---- */

enum { LIVES = 60, COUNTED = 5 };

struct sums {
    struct nt_layout_pair kind[3];
};

static void sums_add(struct sums *sums, int which, struct nt_layout_pair pair)
{
    sums->kind[which].count += pair.count;
    sums->kind[which].total += pair.total;
}

static const nt_kind summed[3] = { NT_WRITE, 30, 31 };

/* The `closed` of an object's kind: from the redo area while a fold into it is under way. */
static const struct nt_layout_pair *closed_of(const struct view *view, const struct nt_layout_redo *redo, uint32_t slot,
                                              nt_kind kind)
{
    const struct nt_layout_object *entry = view_entry(view, slot);
    const struct nt_layout_extra *extra = view_extra(view, entry, kind);
    if (redo->sequence % 2 && redo->parent == slot && redo->parent_generation == entry->generation)
        for (uint32_t k = 0; k < redo->count; k++)
            if (redo->entries[k].kind == kind)
                return &redo->entries[k].closed;
    return extra && extra->holds & NT_EXTRA_CLOSED ? &extra->closed : NULL;
}

/* Whether there is an object to be read: not one that is on its way into its parent. */
static bool entry_holds(const struct view *view, const struct nt_layout_redo *redo, uint32_t slot)
{
    const struct nt_layout_object *entry = view_entry(view, slot);
    bool leaving = redo->sequence % 2 && redo->slot == slot && redo->generation == entry->generation;
    return entry->generation && (entry->life == NT_LIFE_OPEN || entry->life == NT_LIFE_CLOSED) && !leaving;
}

/* What a reader makes of an object, with a half-done fold completed. */
static void entry_add(const struct view *view, const struct nt_layout_redo *redo, uint32_t slot, struct sums *sums)
{
    for (int i = 0; i < 3 && entry_holds(view, redo, slot); i++) {
        const struct nt_layout_tally *tally = view_tally(view, view_entry(view, slot), summed[i]);
        const struct nt_layout_pair *closed = closed_of(view, redo, slot, summed[i]);
        if (tally)
            sums_add(sums, i, tally->sum);
        if (closed)
            sums_add(sums, i, *closed);
    }
}

static struct sums sums_of(const struct view *view)
{
    struct sums sums = { 0 };
    const struct nt_layout_redo *redo = view_at(view, NT_REGION_REDO, 0);
    for (uint32_t slot = 0; slot < view->live->slots; slot++)
        entry_add(view, redo, slot, &sums);
    return sums;
}

/* Makes many closed lives, tells where the log is, and then opens one more, for which one must be folded. */
static void stepped_child(int pipe_end)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.name = "stepped";
    options.cap_bytes = 524288;
    options.ring_bytes = 16384;
    if (nt_log_open(&options, &log) != 0)
        _exit(1);
    nt_object parent = test_channel(log, "parent");
    for (int i = 0; i < LIVES; i++) {
        nt_object child = test_object(log, "child", parent, 0);
        count_times(child, NT_WRITE, 3, COUNTED);
        count_times(child, 30, 4, COUNTED);
        for (nt_kind kind = 32; kind < 40; kind++) /* some in blocks */
            nt_object_count(child, kind, 5);
        count_times(child, 31, 5, COUNTED);
        nt_object_close(child);
    }
    uint32_t before = log->map.live->free_count;
    if (write(pipe_end, nt_log_path(log), strlen(nt_log_path(log)) + 1) < 0)
        _exit(2);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    nt_object fresh = test_channel(log, "fresh");
    raise(SIGSTOP);
    _exit(fresh.handle && log->map.live->free_count == before - 1 ? 0 : 3);
}

/* A life that is gone can be told from the next one, and by which fold it went. */
static void assert_remembered(const struct nt_layout_object *entry, uint32_t life, uint32_t folded)
{
    assert_in_range(entry->last_generation & ~NT_LAYOUT_LOCKED, life, life + 1);
    if ((entry->generation & ~NT_LAYOUT_LOCKED) != life)
        assert_int_equal(entry->folded, folded);
}

static void a_fold_is_whole_at_every_instruction(void **state)
{
    (void)state;
    int pipes[2], status;
    char path[LOG_PATH];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0)
        stepped_child(pipes[1]);
    assert_true(read(pipes[0], path, sizeof(path)) > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    struct view view = view_open(path);
    const struct nt_layout_redo *redo = view_at(&view, NT_REGION_REDO, 0);
    uint64_t sequence = redo->sequence, steps = 0, inside = 0;
    const struct nt_layout_object *leaving = view_entry(&view, view.live->free_head);
    uint32_t life = leaving->generation & ~NT_LAYOUT_LOCKED;
    for (;;) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP)
            break;
        struct sums sums = sums_of(&view);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(sums.kind[i].count, LIVES * COUNTED);
            assert_int_equal(sums.kind[i].total, (uint64_t)LIVES * COUNTED * (uint64_t)(3 + i));
        }
        assert_remembered(leaving, life, (uint32_t)(sequence / 2 + 1));
        steps++;
        inside += redo->sequence % 2;
    }
    assert_true(WIFSTOPPED(status));
    assert_int_equal(leaving->generation & ~NT_LAYOUT_LOCKED, life + 1);
    assert_int_equal(redo->sequence, sequence + 2); /* one fold happened, and was seen from inside */
    assert_true(inside > 10 && steps > inside);
    ptrace(PTRACE_CONT, child, 0, 0);
    assert_child_is_well(child);
    close(pipes[0]);
    close(pipes[1]);
    view_close(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(sums_go_to_the_parent),
        log_test(what_the_child_has_of_its_children_goes_along),
        log_test(no_parent_no_loss),
        log_test(counted_opens_and_closes),
        log_test(without_room_nothing_changes),
        log_test(a_fold_is_whole_at_every_instruction),
    };
    return cmocka_run_group_tests_name("log/fold", tests, NULL, NULL);
}
