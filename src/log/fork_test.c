/* SPDX-License-Identifier: BSD-3-Clause */
/* Forked children: a log of their own at the first count, objects that name the parent's, and no byte of the
   parent's file changed. */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/process.h"
#include "log/log_test.h"

/* In a child assertions of cmocka would go on with the parent's tests. */
#define check(what)                                                                    \
    do {                                                                               \
        if (!(what)) {                                                                 \
            fprintf(stderr, "# %s:%d: in the child: %s\n", __FILE__, __LINE__, #what); \
            _exit(1);                                                                  \
        }                                                                              \
    } while (0)

struct family {
    nt_log *log;
    nt_object parent, exclusive, shared;
    struct view view; /* of the parent's file */
    unsigned char *before;
};

static struct family family_new(void)
{
    struct family family = { .log = test_log(2 << 20, 65536) };
    family.view = view_open(nt_log_path(family.log));
    family.parent = test_channel(family.log, "parent");
    family.exclusive = test_object(family.log, "exclusive", family.parent, NT_EXCLUSIVE);
    family.shared = test_object(family.log, "shared", family.parent, NT_SHARED);
    count_times(family.exclusive, NT_WRITE, 5, 10);
    count_times(family.shared, NT_READ, 7, 20);
    for (nt_kind kind = 30; kind < 40; kind++)
        nt_object_count(family.shared, kind, kind);
    return family;
}

/* Remembers every byte of the parent's file. */
static void family_freeze(struct family *family)
{
    family->before = malloc(family->view.size);
    assert_non_null(family->before);
    memcpy(family->before, family->view.base, family->view.size);
}

static void family_end(struct family *family)
{
    if (family->before)
        assert_memory_equal(family->before, family->view.base, family->view.size);
    free(family->before);
    view_close(&family->view);
    nt_log_close(family->log);
}

static bool base_is(const struct view *view, nt_object object, nt_kind kind, uint64_t count, uint64_t total)
{
    const struct nt_layout_object *entry = view_object(view, object);
    const struct nt_layout_extra *extra = entry ? view_extra(view, entry, kind) : NULL;
    return extra && extra->holds & NT_EXTRA_BASE && extra->base.count == count && extra->base.total == total;
}

static bool sum_is(const struct view *view, nt_object object, nt_kind kind, uint64_t count, uint64_t total)
{
    const struct nt_layout_object *entry = view_object(view, object);
    const struct nt_layout_tally *tally = entry ? view_tally(view, entry, kind) : NULL;
    return tally && tally->sum.count == count && tally->sum.total == total;
}

static void a_child_counts_for_itself(void **state)
{
    (void)state;
    struct family family = family_new();
    family_freeze(&family);
    pid_t child = fork();
    if (child == 0) {
        count_times(family.exclusive, NT_WRITE, 100, 3);
        count_times(family.shared, NT_READ, 100, 4);
        nt_object_count(family.shared, NT_WRITE, 1);
        check(strcmp(nt_log_path(family.log), "") != 0);
        struct view view = view_open(nt_log_path(family.log));
        check(view.header->id != family.view.header->id);
        check(view.header->origin == family.view.header->id);
        check(view.header->origin_pid == (uint32_t)getppid());
        check(view.header->flags & NT_HEADER_FORKED);
        check(view.header->pid == (uint32_t)getpid());
        check(sum_is(&view, family.exclusive, NT_WRITE, 3, 300));
        check(sum_is(&view, family.shared, NT_READ, 4, 400));
        check(base_is(&view, family.exclusive, NT_WRITE, 10, 50));
        check(base_is(&view, family.shared, NT_READ, 20, 140));
        check(base_is(&view, family.shared, 37, 1, 37));
        const struct nt_layout_object *entry = view_object(&view, family.exclusive);
        check(entry->described == (NT_DESCRIBED_FORKED | NT_DESCRIBED_LATE));
        check(entry->name_size == 9 && memcmp(view_name(&view, entry), "exclusive", 9) == 0);
        check(entry->parent == handle_slot(family.parent));
        check(entry->parent_generation == handle_generation(family.parent));
        check(view_object(&view, family.parent) != NULL); /* registered on the way */
        /* the first record is the child's own first count */
        const struct nt_layout_record *record = view_record(&view, view_ring(&view, 0), nth(1));
        check(record_kind(record) == NT_WRITE && record->sum.count == 1 && record->sum.total == 100);
        /* new objects do not take the slots of those that may still come */
        nt_object own = test_channel(family.log, "own");
        check(handle_slot(own) > handle_slot(family.shared));
        nt_object_count(own, NT_WRITE, 1);
        check(sum_is(&view, own, NT_WRITE, 1, 1));
        exit(0);
    }
    assert_child_is_well(child);
    family_end(&family);
}

/* Whatever is masked, the parent's tallies are not the child's. */
static void masked_counts_too(void **state)
{
    (void)state;
    struct family family = family_new();
    nt_object_mask_set(family.exclusive, 0);
    nt_object_mask_set(family.shared, 0);
    family_freeze(&family);
    pid_t child = fork();
    if (child == 0) {
        count_times(family.exclusive, NT_WRITE, 100, 3);
        count_times(family.shared, NT_READ, 100, 4);
        struct view view = view_open(nt_log_path(family.log));
        check(sum_is(&view, family.exclusive, NT_WRITE, 3, 300));
        check(sum_is(&view, family.shared, NT_READ, 4, 400));
        check(nt_object_mask(family.exclusive) == 0);
        exit(0);
    }
    assert_child_is_well(child);
    family_end(&family);
}

static unsigned files_count(void)
{
    unsigned count = 0;
    char command[128];
    snprintf(command, sizeof(command), "%s", test_directory);
    int directory = open(command, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char entries[8192];
    long size = syscall(SYS_getdents64, directory, entries, sizeof(entries));
    for (long at = 0; at < size; count++)
        at += *(const uint16_t *)(const void *)(entries + at + 16);
    close(directory);
    return count - 2;
}

static void who_does_not_count_has_no_log(void **state)
{
    (void)state;
    struct family family = family_new();
    family_freeze(&family);
    pid_t child = fork();
    if (child == 0)
        exit(0); /* an orderly end, which closes nothing of the parent's */
    assert_child_is_well(child);
    assert_int_equal(files_count(), 1);
    assert_int_equal(family.view.live->state, NT_STATE_RUNNING);
    child = fork();
    if (child == 0) { /* closing is no counting */
        nt_log_close(family.log);
        nt_object_count(family.exclusive, NT_WRITE, 1);
        exit(0);
    }
    assert_child_is_well(child);
    assert_int_equal(files_count(), 1);
    family_end(&family);
}

static void a_childs_end_is_its_own(void **state)
{
    (void)state;
    char path[LOG_PATH];
    struct family family = family_new();
    family_freeze(&family);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(family.exclusive, NT_WRITE, 1);
        check(write(pipes[1], nt_log_path(family.log), LOG_PATH) == LOG_PATH);
        exit(0);
    }
    assert_child_is_well(child);
    assert_int_equal(read(pipes[0], path, LOG_PATH), LOG_PATH);
    struct view view = view_open(path);
    assert_int_equal(view.live->state, NT_STATE_CLOSED);
    assert_int_equal(family.view.live->state, NT_STATE_RUNNING);
    view_close(&view);
    close(pipes[0]);
    close(pipes[1]);
    family_end(&family);
}

/* ---- grandchildren ---- */

static void grandchild_check(const struct family *family, bool child_counted)
{
    nt_object_count(family->exclusive, NT_WRITE, 1000);
    struct view view = view_open(nt_log_path(family->log));
    check(sum_is(&view, family->exclusive, NT_WRITE, 1, 1000));
    check(base_is(&view, family->exclusive, NT_WRITE, child_counted ? 13 : 10, child_counted ? 350 : 50));
    /* whose counts the base is of lives and may go on counting */
    check(view_object(&view, family->exclusive)->described & NT_DESCRIBED_LATE);
    nt_object_count(family->shared, NT_READ, 1); /* not used by the child in any case */
    check(base_is(&view, family->shared, NT_READ, 20, 140));
    check(view_object(&view, family->shared)->described & NT_DESCRIBED_LATE);
    exit(0);
}

static void grandchildren(void **state)
{
    (void)state;
    for (int child_counts = 0; child_counts < 2; child_counts++) {
        struct family family = family_new();
        family_freeze(&family);
        pid_t child = fork();
        if (child == 0) {
            if (child_counts)
                count_times(family.exclusive, NT_WRITE, 100, 3);
            pid_t grandchild = fork();
            int status;
            if (grandchild == 0)
                grandchild_check(&family, child_counts);
            check(waitpid(grandchild, &status, 0) == grandchild && WIFEXITED(status) && WEXITSTATUS(status) == 0);
            if (child_counts) {
                struct view view = view_open(nt_log_path(family.log));
                check(sum_is(&view, family.exclusive, NT_WRITE, 3, 300));
            }
            exit(0);
        }
        assert_child_is_well(child);
        family_end(&family);
    }
}

/* Once the parent is gone its sums are final, and the base is not late. */
static void an_orphans_base_is_final(void **state)
{
    (void)state;
    int pipes[2], gone[2];
    char said = 0;
    struct nt_process_status status;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipe(gone), 0);
    pid_t middle = fork();
    if (middle == 0) {
        struct family family = family_new();
        if (fork() == 0) {
            char byte;
            close(gone[1]);
            (void)!read(gone[0], &byte, 1); /* until the parent ended */
            for (int turn = 0; turn < 2000 && nt_process_status((uint32_t)family.view.header->pid, &status) == 0 &&
                               status.state != 'Z';
                 turn++)
                usleep(1000);
            nt_object_count(family.exclusive, NT_WRITE, 1);
            struct view view = view_open(nt_log_path(family.log));
            check(base_is(&view, family.exclusive, NT_WRITE, 10, 50));
            check(view_object(&view, family.exclusive)->described == NT_DESCRIBED_FORKED);
            check(write(pipes[1], "y", 1) == 1);
            _exit(0);
        }
        _exit(0);
    }
    close(gone[1]);
    close(pipes[1]);
    assert_child_is_well(middle);
    assert_int_equal(read(pipes[0], &said, 1), 1);
    assert_int_equal(said, 'y');
    close(pipes[0]);
    close(gone[0]);
}

/* ---- handles ---- */

static void kinds_keep_their_numbers(void **state)
{
    (void)state;
    struct family family = family_new();
    nt_kind_options options = NT_KIND_OPTIONS_INIT;
    nt_kind kind, again, fresh;
    options.name = "mine";
    assert_int_equal(nt_kind_new(family.log, &options, &kind), 0);
    family_freeze(&family);
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(family.exclusive, kind, 9);
        check(nt_kind_new(family.log, &options, &again) == 0 && again == kind);
        options.name = "childs";
        check(nt_kind_new(family.log, &options, &fresh) == 0 && fresh == kind + 1);
        struct view view = view_open(nt_log_path(family.log));
        check(sum_is(&view, family.exclusive, kind, 1, 9));
        check(view.live->kinds == 2);
        exit(0);
    }
    assert_child_is_well(child);
    family_end(&family);
}

/* A handle that was stale in the parent is stale in the child, and does not take the place of the slot's next life. */
static void stale_handles_stay_stale(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    nt_object objects[40], fresh, closed;
    for (int i = 0; i < 40; i++)
        objects[i] = test_channel(log, "old");
    for (int i = 0; i < 40; i++)
        nt_object_close(objects[i]);
    fresh = test_channel(log, "new");
    closed = objects[39];
    assert_int_equal(handle_slot(fresh), handle_slot(objects[0]));
    pid_t child = fork();
    if (child == 0) {
        nt_object_count(objects[0], NT_WRITE, 1);
        nt_object_count(closed, NT_WRITE, 1);
        nt_object_count(fresh, NT_WRITE, 5);
        struct view view = view_open(nt_log_path(log));
        check(sum_is(&view, fresh, NT_WRITE, 1, 5));
        check(view_object(&view, objects[0]) == NULL);
        check(view_object(&view, closed) == NULL);
        check(view.live->stale == 2);
        exit(0);
    }
    assert_child_is_well(child);
    nt_log_close(log);
}

/* What the parent closes or uses again after the fork is still the child's. */
static void what_the_parent_does_later(void **state)
{
    (void)state;
    int go[2];
    nt_log *log = test_log(524288, 16384);
    nt_object objects[40];
    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < 40; i++) {
        objects[i] = test_channel(log, "old");
        nt_object_count(objects[i], NT_WRITE, 3);
    }
    pid_t child = fork();
    if (child == 0) {
        char byte;
        check(read(go[0], &byte, 1) == 1);
        nt_object_count(objects[39], NT_WRITE, 1); /* closed by now */
        nt_object_count(objects[0], NT_WRITE, 5);  /* another life's by now */
        struct view view = view_open(nt_log_path(log));
        check(sum_is(&view, objects[39], NT_WRITE, 1, 1));
        check(base_is(&view, objects[39], NT_WRITE, 1, 3));
        check(sum_is(&view, objects[0], NT_WRITE, 1, 5));
        check(view_object(&view, objects[0])->described & NT_DESCRIBED_UNKNOWN);
        exit(0);
    }
    for (int i = 0; i < 40; i++)
        nt_object_close(objects[i]);
    assert_int_equal(handle_slot(test_channel(log, "new")), handle_slot(objects[0]));
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_child_is_well(child);
    close(go[0]);
    close(go[1]);
    nt_log_close(log);
}

/* ---- other ways to fork ---- */

static void raw_forks(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        struct family family = family_new();
        family_freeze(&family);
        pid_t child = (pid_t)(turn ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : syscall(SYS_fork));
        if (child == 0) {
            count_times(family.exclusive, NT_WRITE, 100, 3);
            count_times(family.shared, NT_READ, 100, 4);
            struct view view = view_open(nt_log_path(family.log));
            check(view.header->pid == (uint32_t)syscall(SYS_getpid));
            check(sum_is(&view, family.exclusive, NT_WRITE, 3, 300));
            check(base_is(&view, family.shared, NT_READ, 20, 140));
            _exit(0);
        }
        assert_child_is_well(child);
        family_end(&family);
    }
}

/* A child with the same pid as its parent, each in its own pid namespace. */
static void a_child_with_the_parents_pid(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("# not root: no pid namespaces\n");
        return;
    }
    pid_t outer = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, 0, 0, 0, 0);
    if (outer == 0) {
        struct family family = family_new(); /* as pid 1 */
        check(syscall(SYS_getpid) == 1);
        memcpy(family.before = malloc(family.view.size), family.view.base, family.view.size);
        check(unshare(CLONE_NEWPID) == 0);
        pid_t inner = fork();
        if (inner == 0) {
            check(syscall(SYS_getpid) == 1);
            count_times(family.exclusive, NT_WRITE, 100, 3);
            _exit(0);
        }
        int status;
        check(waitpid(inner, &status, 0) == inner && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        check(memcmp(family.before, family.view.base, family.view.size) == 0);
        _exit(0);
    }
    assert_child_is_well(outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(a_child_counts_for_itself),
        log_test(masked_counts_too),
        log_test(who_does_not_count_has_no_log),
        log_test(a_childs_end_is_its_own),
        log_test(grandchildren),
        log_test(an_orphans_base_is_final),
        log_test(kinds_keep_their_numbers),
        log_test(stale_handles_stay_stale),
        log_test(what_the_parent_does_later),
        log_test(raw_forks),
        log_test(a_child_with_the_parents_pid),
    };
    return cmocka_run_group_tests_name("log/fork", tests, NULL, NULL);
}
