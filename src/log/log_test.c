/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs: every way in which opening fails, one log opened twice, eight at once, and closing. */
#include <sys/resource.h>

#include "log/log_test.h"

/* A log that could not be had is one that ignores everything. */
static void assert_ignores(nt_log *log)
{
    struct nt_layout_tally tally;
    nt_kind kind = 1;
    nt_kind_options kind_options = NT_KIND_OPTIONS_INIT;
    kind_options.name = "some-kind";
    assert_non_null(log);
    assert_string_equal(nt_log_path(log), "");
    assert_int_equal(nt_log_object(log).handle, 0);
    nt_object object = test_channel(log, "x");
    assert_int_equal(object.handle, 0);
    nt_object_count(object, NT_WRITE, 1);
    nt_object_record(object, NT_WRITE, 1, NULL, 0);
    nt_object_mask_set(object, 1);
    assert_int_equal(nt_object_mask(object), 0);
    assert_int_equal(nt_object_tally(object, NT_WRITE, &tally), -ENOENT);
    assert_int_equal(nt_object_succeed(object).handle, 0);
    nt_object_close(object);
    assert_int_equal(nt_kind_new(log, &kind_options, &kind), 0);
    assert_int_equal(kind, NT_KIND_NONE);
    nt_log_close(log);
    nt_log_close(log);
}

static int open_error(const nt_log_options *options)
{
    nt_log *log = NULL;
    errno = 77;
    int error = nt_log_open(options, &log);
    assert_int_equal(errno, 77);
    if (error < 0)
        assert_ignores(log);
    else
        nt_log_close(log);
    return error;
}

static void bad_options(void **state)
{
    (void)state;
    char long_name[65], long_text[600];
    memset(long_name, 'n', 64);
    long_name[64] = '\0';
    memset(long_text, 'd', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    const nt_log_options bad[] = {
        { .size = 0 },
        { .size = LOG_OPTIONS_FIRST - 1 },
        { .size = sizeof(nt_log_options), .ring_bytes = 8192 },
        { .size = sizeof(nt_log_options), .ring_bytes = 16385 },
        { .size = sizeof(nt_log_options), .ring_bytes = 3 << 20 },
        { .size = sizeof(nt_log_options), .ring_bytes = UINT64_C(2) << 30 },
        { .size = sizeof(nt_log_options), .cap_bytes = 524287 },
        { .size = sizeof(nt_log_options), .cap_bytes = (UINT64_C(1) << 40) + 1 },
        { .size = sizeof(nt_log_options), .flags = 2 },
        { .size = sizeof(nt_log_options), .name = "a/b" },
        { .size = sizeof(nt_log_options), .name = ".." },
        { .size = sizeof(nt_log_options), .name = ".hidden" },
        { .size = sizeof(nt_log_options), .name = "a b" },
        { .size = sizeof(nt_log_options), .name = "\xc3\xa4" },
        { .size = sizeof(nt_log_options), .name = long_name },
        { .size = sizeof(nt_log_options), .node = long_text },
        { .size = sizeof(nt_log_options), .host = long_text },
        { .size = sizeof(nt_log_options), .clock_domain = long_text },
        { .size = sizeof(nt_log_options), .directory = long_text },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(open_error(&bad[i]), -EINVAL);
    for (int i = 0; i < 7; i++) {
        nt_log_options options = NT_LOG_OPTIONS_INIT;
        options.reserved[i] = 1;
        assert_int_equal(open_error(&options), -EINVAL);
    }
}

static void limits_that_are_allowed(void **state)
{
    (void)state;
    char name[64], text[256];
    memset(name, 'n', 63);
    name[63] = '\0';
    memset(text, 't', 255);
    text[255] = '\0';
    nt_log *log;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = name;
    options.node = options.host = options.clock_domain = text;
    options.cap_bytes = 524288;
    options.ring_bytes = 16384;
    assert_int_equal(nt_log_open(&options, &log), 0);
    struct view view = view_open(nt_log_path(log));
    assert_int_equal(view.header->string_size[NT_HEADER_NAME], 63);
    assert_memory_equal(view.header->name, name, 63);
    assert_int_equal(view.header->string_size[NT_HEADER_NODE], 255);
    assert_memory_equal(view.header->node, text, 255);
    assert_memory_equal(view.header->host, text, 255);
    assert_memory_equal(view.header->domain, text, 255);
    view_close(&view);
    nt_log_close(log);
    options.name = "A-z_0.9+";
    options.ring_bytes = UINT64_C(1) << 30;
    assert_int_equal(open_error(&options), 0);
}

static void switched_off(void **state)
{
    (void)state;
    setenv("NTSCOPE", "off", 1);
    assert_int_equal(open_error(NULL), -NT_EDISABLED);
    setenv("NTSCOPE", "on", 1);
    assert_int_equal(open_error(NULL), 0);
    unsetenv("NTSCOPE");
}

/* ---- directories ---- */

static int error_in(const char *directory)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.directory = directory;
    return open_error(&options);
}

static void directories(void **state)
{
    (void)state;
    char path[128], other[128];
    struct stat st;
    mode_t before = umask(0);
    snprintf(path, sizeof(path), "%s/new", test_directory);
    assert_int_equal(error_in(path), 0); /* made, for us alone, whatever the umask */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    umask(0777);
    snprintf(path, sizeof(path), "%s/new2", test_directory);
    assert_int_equal(error_in(path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    umask(before);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(error_in(path), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(error_in(path), -EPERM);
    assert_int_equal(chmod(path, 0720), 0);
    assert_int_equal(error_in(path), -EPERM);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(other, sizeof(other), "%s/link", test_directory);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(error_in(other), -ENOTDIR);
    snprintf(other, sizeof(other), "%s/no/parent", test_directory);
    assert_int_equal(error_in(other), -ENOENT);
    snprintf(other, sizeof(other), "%s/file", test_directory);
    assert_int_equal(close(open(other, O_CREAT | O_RDWR, 0600)), 0);
    assert_int_equal(error_in(other), -ENOTDIR);
}

/* Where the program is now is not where its children will be. */
static void relative_directories_stay_where_they_were(void **state)
{
    (void)state;
    struct stat st;
    pid_t child = fork();
    if (child == 0) {
        nt_log *log;
        nt_log_options options = NT_LOG_OPTIONS_INIT;
        options.directory = "logs";
        options.name = "relative";
        if (chdir(test_directory) != 0)
            _exit(1);
        int error = nt_log_open(&options, &log);
        nt_object object = test_channel(log, "x");
        if (mkdir("elsewhere", 0700) != 0 || chdir("elsewhere") != 0)
            _exit(2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            nt_object_count(object, NT_WRITE, 1);
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(stat("logs", &st) != 0 && (error == 0 || error == -EINVAL) ? 0 : 3);
    }
    assert_child_is_well(child);
}

static void directories_of_others(void **state)
{
    (void)state;
    char path[128];
    if (geteuid() != 0) {
        print_message("# not root: cannot be somebody else\n");
        return;
    }
    assert_int_equal(chmod(test_directory, 0755), 0);
    snprintf(path, sizeof(path), "%s/closed", test_directory);
    assert_int_equal(mkdir(path, 0700), 0);
    pid_t child = fork();
    if (child == 0) { /* may not read, may read, may not make */
        if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
            _exit(1);
        nt_log *log;
        nt_log_options options = NT_LOG_OPTIONS_INIT;
        options.directory = path;
        int closed = nt_log_open(&options, &log);
        options.directory = test_directory;
        int foreign = nt_log_open(&options, &log);
        char under[128];
        snprintf(under, sizeof(under), "%s/mine", test_directory);
        options.directory = under;
        int unwritable = nt_log_open(&options, &log);
        _exit(closed == -EACCES && foreign == -EPERM && unwritable == -ENOENT ? 0 : 2);
    }
    assert_child_is_well(child);
}

static void groups_may_read(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    nt_log *log;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    snprintf(path, sizeof(path), "%s/group", test_directory);
    options.directory = path;
    options.flags = NT_LOG_GROUP_READABLE;
    assert_int_equal(nt_log_open(&options, &log), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(stat(nt_log_path(log), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    nt_log_close(log);
    options.name = "closed-to-groups";
    options.flags = 0;
    assert_int_equal(nt_log_open(&options, &log), 0);
    assert_int_equal(stat(nt_log_path(log), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    nt_log_close(log);
}

static void file_size_limit(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        nt_log *log;
        struct rlimit limit = { 100000, 100000 };
        nt_log_options options = NT_LOG_OPTIONS_INIT;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(1);
        _exit(nt_log_open(&options, &log) == -EFBIG && nt_log_object(log).handle == 0 ? 0 : 2);
    }
    assert_child_is_well(child);
    child = fork();
    if (child == 0) { /* a smaller log fits */
        nt_log *log;
        struct rlimit limit = { 8 << 20, 8 << 20 };
        struct stat st;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(1);
        if (nt_log_open(NULL, &log) != 0 || stat(nt_log_path(log), &st) != 0 || st.st_size > 8 << 20)
            _exit(2);
        for (int i = 0; i < 100; i++)
            count_times(test_channel(log, "x"), NT_WRITE, 1, 1000);
        _exit(log->map.header->cap >= 524288 ? 0 : 3);
    }
    assert_child_is_well(child);
}

/* ---- several ---- */

static void opened_twice_is_one_log(void **state)
{
    (void)state;
    nt_log *first = test_log(0, 0), *second = test_log(0, 0);
    assert_ptr_equal(first, second);
    struct view view = view_open(nt_log_path(first));
    nt_object object = test_channel(first, "x");
    assert_int_equal(view.live->openers, 1);
    nt_log_close(second);
    assert_int_equal(view.live->state, NT_STATE_RUNNING);
    nt_object_count(object, NT_WRITE, 3);
    assert_sum(&view, object, NT_WRITE, 1, 3);
    nt_log_close(first);
    assert_int_equal(view.live->state, NT_STATE_CLOSED);
    assert_int_equal(view.live->openers, 0);
    assert_true(view.live->closed >= view.header->opened);
    view_close(&view);
}

static void eight_at_once(void **state)
{
    (void)state;
    nt_log *logs[9];
    nt_object objects[8];
    char name[16];
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = name;
    for (uint32_t i = 0; i < 9; i++) {
        snprintf(name, sizeof(name), "log-%u", i);
        assert_int_equal(nt_log_open(&options, &logs[i]), i < 8 ? 0 : -EMFILE);
        if (i < 8)
            objects[i] = test_channel(logs[i], "x");
    }
    assert_ignores(logs[8]);
    for (uint32_t i = 0; i < 8; i++)
        count_times(objects[i], NT_WRITE, i, 10 + i);
    for (uint32_t i = 0; i < 8; i++) { /* nobody counted on another's */
        struct view view = view_open(nt_log_path(logs[i]));
        assert_int_equal(view.header->index, objects[i].handle >> NT_LAYOUT_SLOT_BITS & 15);
        assert_sum(&view, objects[i], NT_WRITE, 10 + i, i * (10 + i));
        view_close(&view);
    }
    nt_log_close(logs[3]);
    snprintf(name, sizeof(name), "log-8");
    assert_int_equal(nt_log_open(&options, &logs[3]), 0);
    for (uint32_t i = 0; i < 8; i++)
        nt_log_close(logs[i]);
}

/* ---- after closing ---- */

static void a_closed_log_ignores_everything(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    nt_object exclusive = test_channel(log, "x"), shared = test_object(log, "y", (nt_object){ 0 }, NT_SHARED);
    count_times(exclusive, NT_WRITE, 1, 5);
    count_times(shared, NT_WRITE, 1, 5);
    nt_log_close(log);
    count_times(exclusive, NT_WRITE, 1, 5);
    count_times(shared, NT_WRITE, 1, 5);
    nt_object_record(exclusive, NT_WRITE, 1, NULL, 0);
    nt_object_close(exclusive);
    assert_int_equal(nt_object_succeed(shared).handle, 0);
    assert_sum(&view, exclusive, NT_WRITE, 5, 5);
    assert_sum(&view, shared, NT_WRITE, 5, 5);
    assert_ignores(log);
    view_close(&view);
}

/* A handle of a closed log is not one of the log that is opened next. */
static void handles_of_a_closed_log_hit_no_other(void **state)
{
    (void)state;
    nt_object old[3000];
    nt_log *log = test_log(0, 0);
    for (int i = 0; i < 3000; i++) {
        old[i] = test_object(log, "old", (nt_object){ 0 }, i % 2 ? NT_SHARED : NT_EXCLUSIVE);
        nt_object_count(old[i], NT_WRITE, 1);
    }
    nt_log_close(log);
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = "next";
    options.cap_bytes = 524288;
    options.ring_bytes = 16384;
    assert_int_equal(nt_log_open(&options, &log), 0);
    struct view view = view_open(nt_log_path(log));
    nt_object fresh[20];
    for (int i = 0; i < 20; i++) {
        fresh[i] = test_object(log, "new", (nt_object){ 0 }, i % 2 ? NT_SHARED : NT_EXCLUSIVE);
        nt_object_count(fresh[i], NT_WRITE, 100);
    }
    for (int i = 0; i < 3000; i++) {
        nt_object_count(old[i], NT_WRITE, 1);
        nt_object_mask_set(old[i], 0);
    }
    nt_object_close(old[5]);
    for (int i = 0; i < 20; i++) {
        assert_sum(&view, fresh[i], NT_WRITE, 1, 100);
        assert_int_equal(nt_object_mask(fresh[i]), NT_MASK_DEFAULT);
    }
    view_close(&view);
    nt_log_close(log);
}

/* A thread that has opened and closed many logs still logs. */
static void opened_and_closed_often(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        nt_log *log = test_log(0, 16384);
        struct view view = view_open(nt_log_path(log));
        nt_object object = test_channel(log, "x");
        count_times(object, NT_WRITE, 1, 3);
        assert_sum(&view, object, NT_WRITE, 3, 3);
        assert_int_equal(view.live->dropped_no_ring, 0);
        view_close(&view);
        nt_log_close(log);
    }
    assert_int_equal(open_error(NULL), 0);
}

static void closing_nothing(void **state)
{
    (void)state;
    nt_log_close(NULL);
    assert_string_equal(nt_log_path(NULL), "");
    assert_int_equal(nt_log_object(NULL).handle, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(bad_options),
        log_test(limits_that_are_allowed),
        log_test(switched_off),
        log_test(directories),
        log_test(relative_directories_stay_where_they_were),
        log_test(directories_of_others),
        log_test(groups_may_read),
        log_test(file_size_limit),
        log_test(opened_twice_is_one_log),
        log_test(eight_at_once),
        log_test(a_closed_log_ignores_everything),
        log_test(handles_of_a_closed_log_hit_no_other),
        log_test(opened_and_closed_often),
        log_test(closing_nothing),
    };
    return cmocka_run_group_tests_name("log/log", tests, NULL, NULL);
}
