/* SPDX-License-Identifier: BSD-3-Clause */
/* Which logs `nt_live_remove_dead` removes, and which never. */
#include "source/live/world.h"

struct cleaned {
    size_t removed, kept, bad;
    char text[512];
};

static void clean_removed(void *arg, const char *path)
{
    struct cleaned *cleaned = arg;
    cleaned->removed++;
    assert_int_equal(access(path, F_OK), -1);
}

static void clean_kept(void *arg, const char *path, enum nt_program_state state)
{
    struct cleaned *cleaned = arg;
    cleaned->kept++;
    assert_int_equal(access(path, F_OK), 0);
    assert_int_not_equal(state, NT_PROGRAM_CRASHED);
}

static void clean_bad(void *arg, const char *path, int error, const char *text)
{
    struct cleaned *cleaned = arg;
    cleaned->bad++;
    (void)snprintf(cleaned->text, sizeof cleaned->text, "%s: %d: %s", path, error, text);
}

static int clean(struct world *world, struct cleaned *cleaned)
{
    *cleaned = (struct cleaned){ 0 };
    const struct nt_live_options options = { .directory = world->directory };
    const struct nt_live_clean_sink sink = { clean_removed, clean_kept, clean_bad, cleaned };
    return nt_live_remove_dead(&options, &sink);
}

static void removes_the_dead_only(void **state)
{
    struct world *world = *state;
    struct cleaned cleaned;
    pid_t dead = child_of(world, "dead.ntlog", true);
    child_end(dead);
    pid_t live = child_of(world, "live.ntlog", true);
    pid_t closed = child_of(world, "closed.ntlog", false);
    poke_state(world, "closed.ntlog", NT_STATE_CLOSED);
    pid_t replaced = child_of(world, "replaced.ntlog", false);
    world->build.header->pid_namespace ^= 1;
    put(world, "elsewhere.ntlog");
    world->build.header->pid_namespace ^= 1;
    world->build.header->boot_id[0] ^= 1;
    put(world, "before.ntlog");
    world->build.header->magic[7] = 2;
    put(world, "future.ntlog");
    put(world, "unrelated");
    assert_int_equal(clean(world, &cleaned), 3);
    assert_int_equal(cleaned.removed, 3);
    assert_int_equal(cleaned.kept, 3);
    assert_int_equal(cleaned.bad, 1);
    assert_non_null(strstr(cleaned.text, "future.ntlog"));
    assert_false(is_there(world, "dead.ntlog"));
    assert_false(is_there(world, "replaced.ntlog"));
    assert_false(is_there(world, "before.ntlog"));
    assert_true(is_there(world, "live.ntlog"));
    assert_true(is_there(world, "closed.ntlog"));
    assert_true(is_there(world, "elsewhere.ntlog"));
    assert_true(is_there(world, "unrelated"));
    child_end(live);
    child_end(closed);
    child_end(replaced);
    assert_int_equal(clean(world, &cleaned), 2);
    assert_int_equal(clean(world, &cleaned), 0);
}

static void removes_what_was_never_finished(void **state)
{
    struct world *world = *state;
    struct cleaned cleaned;
    pid_t dead = child_of(world, ".tmp-1", true);
    child_end(dead);
    pid_t live = child_of(world, ".tmp-2", true);
    char path[128];
    path_of(world, ".tmp-3", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* just begun */
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(clean(world, &cleaned), 1);
    assert_int_equal(cleaned.kept, 0);
    assert_int_equal(cleaned.bad, 0);
    assert_false(is_there(world, ".tmp-1"));
    assert_true(is_there(world, ".tmp-2"));
    assert_true(is_there(world, ".tmp-3"));
    child_end(live);
}

static void removes_no_links(void **state)
{
    struct world *world = *state;
    struct cleaned cleaned;
    char path[128], other[128];
    pid_t dead = child_of(world, "dead.ntlog", true);
    child_end(dead);
    path_of(world, "dead.ntlog", path);
    path_of(world, "second.ntlog", other);
    assert_int_equal(link(path, other), 0);
    path_of(world, "third.ntlog", other);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(clean(world, &cleaned), 0);
    assert_int_equal(cleaned.bad, 3);
    assert_true(is_there(world, "dead.ntlog"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(removes_the_dead_only),
        TEST(removes_what_was_never_finished),
        TEST(removes_no_links),
    };
    return cmocka_run_group_tests_name("source/live/clean", tests, NULL, NULL);
}
