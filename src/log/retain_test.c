/* SPDX-License-Identifier: BSD-3-Clause */
/* Which logs of dead programs go and which stay: real directories, files made up, processes real. */
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/process.h"
#include "log/log_test.h"

static struct log_identity self;

static int retain_setup(void **state)
{
    return directory_setup(state) || log_identity(&self);
}

#define retain_test(test) cmocka_unit_test_setup_teardown(test, retain_setup, directory_teardown)

/* A log's file of that name; times differ, so the order in which they are made is the order of their ages. */
static void file_make(const char *name, uint64_t bytes)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", test_directory, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    if (bytes)
        assert_int_equal(posix_fallocate(fd, 0, (off_t)bytes), 0);
    close(fd);
    usleep(12000); /* coarser than the clock of file times */
}

static void log_make(const char *name, uint64_t pid_namespace, uint64_t pid, uint64_t start_time, uint64_t image)
{
    char file[256];
    snprintf(file, sizeof(file), "%s.%llu.%llu.%llu.%016llx.ntlog", name, (unsigned long long)pid_namespace,
             (unsigned long long)pid, (unsigned long long)start_time, (unsigned long long)image);
    file_make(file, 0);
}

/* One that cannot live: no process started at that time. */
static void dead_make(const char *name, unsigned number)
{
    log_make(name, self.pid_namespace, self.pid, self.start_time + 1, number);
}

__attribute__((format(printf, 1, 2))) static bool is_there(const char *format, ...)
{
    char path[512];
    va_list arguments;
    int size = snprintf(path, sizeof(path), "%s/", test_directory);
    va_start(arguments, format);
    vsnprintf(path + size, sizeof(path) - (size_t)size, format, arguments);
    va_end(arguments);
    struct stat st;
    return lstat(path, &st) == 0;
}

static bool dead_is_there(const char *name, unsigned number)
{
    return is_there("%s.%llu.%u.%llu.%016x.ntlog", name, (unsigned long long)self.pid_namespace, self.pid,
                    (unsigned long long)self.start_time + 1, number);
}

static unsigned files_count(void)
{
    unsigned count = 0;
    DIR *directory = opendir(test_directory);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void retain(const char *name)
{
    struct log_settings settings = { .name = "" };
    memcpy(settings.name, name, strlen(name) + 1);
    memcpy(settings.directory, test_directory, sizeof(test_directory));
    log_retain(&settings);
}

static void newest_four_of_a_name_stay(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 7; i++)
        dead_make("a", i);
    retain("a");
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(dead_is_there("a", i), i >= 3);
    retain("a");
    assert_int_equal(files_count(), 4);
}

/* Names may hold dots and digits; "a" is no part of "a.1". */
static void other_names_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = { "a.1", "aa", "b" };
    for (unsigned i = 0; i < 6; i++) {
        dead_make("a", i);
        for (size_t k = 0; k < 3; k++)
            dead_make(names[k], i);
    }
    retain("a");
    assert_int_equal(files_count(), 4 + 18);
    retain("a.1");
    assert_int_equal(files_count(), 4 + 4 + 12);
}

static pid_t sleeper(struct nt_process_status *ret_status)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_int_equal(nt_process_status((uint32_t)child, ret_status), 0);
    return child;
}

static void live_and_foreign_ones_stay(void **state)
{
    (void)state;
    struct nt_process_status status;
    pid_t child = sleeper(&status);
    log_make("a", self.pid_namespace, self.pid, self.start_time, self.image);
    for (unsigned i = 0; i < 6; i++) {
        log_make("a", self.pid_namespace, (uint64_t)child, status.start_time, i);
        log_make("a", self.pid_namespace + 1, self.pid, self.start_time + 1, i);
    }
    for (unsigned i = 0; i < 6; i++)
        dead_make("a", i);
    retain("a");
    assert_int_equal(files_count(), 1 + 6 + 6 + 4);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    retain("a"); /* now the child's are dead, and older than the others */
    assert_int_equal(files_count(), 1 + 6 + 4);
    assert_true(dead_is_there("a", 5) && dead_is_there("a", 2));
}

static void zombies_and_reused_pids_are_dead(void **state)
{
    (void)state;
    struct nt_process_status status;
    pid_t child = sleeper(&status);
    for (unsigned i = 0; i < 4; i++)
        log_make("a", self.pid_namespace, (uint64_t)child, status.start_time, i);
    log_make("a", self.pid_namespace, (uint64_t)child, status.start_time - 1, 9); /* the pid's former owner */
    retain("a");
    assert_int_equal(files_count(), 5);
    siginfo_t info;
    kill(child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    retain("a"); /* all five are dead, the oldest goes */
    assert_int_equal(files_count(), 4);
    waitpid(child, NULL, 0);
}

/* Before an exec this process had the same pid and start time, and another image. */
static void own_logs_from_before_an_exec_are_dead(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 6; i++)
        log_make("a", self.pid_namespace, self.pid, self.start_time, self.image + i);
    log_make("a", self.pid_namespace, self.pid, self.start_time, self.image);
    retain("a");
    assert_int_equal(files_count(), 4 + 1);
    assert_true(is_there("a.%llu.%u.%llu.%016llx.ntlog", (unsigned long long)self.pid_namespace, self.pid,
                         (unsigned long long)self.start_time, (unsigned long long)self.image));
}

static void dead_ones_have_256_mib_in_all(void **state)
{
    (void)state;
    char file[256];
    for (unsigned i = 0; i < 4; i++) {
        snprintf(file, sizeof(file), "name-%u.%llu.%u.%llu.%016x.ntlog", i, (unsigned long long)self.pid_namespace,
                 self.pid, (unsigned long long)self.start_time + 1, i);
        file_make(file, 80 << 20);
    }
    retain("other");
    assert_int_equal(files_count(), 3); /* 240 MiB */
    assert_false(is_there("name-0.%llu.%u.%llu.%016x.ntlog", (unsigned long long)self.pid_namespace, self.pid,
                          (unsigned long long)self.start_time + 1, 0));
}

static void what_is_no_log_is_not_touched(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a.ntlog",        "a.1.2.3.ntlog",    ".1.2.3.4.ntlog", "a.1.2.3.4.ntlo",           "a.1.2.3.xyz.ntlog",
        "a.1..3.4.ntlog", "a.1.2.-3.4.ntlog", "ntlog",          "a.1.99999999999.3.4.ntlog"
    };
    char path[512], target[512];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        file_make(names[i], 0);
    for (unsigned i = 0; i < 6; i++) { /* a link, a second name and a directory, all named like dead logs */
        snprintf(path, sizeof(path), "%s/l.%llu.%u.1.%x.ntlog", test_directory, (unsigned long long)self.pid_namespace,
                 self.pid, i);
        snprintf(target, sizeof(target), "%s/a.ntlog", test_directory);
        int error = i % 3 == 0 ? symlink("/nowhere", path) : i % 3 == 1 ? link(target, path) : mkdir(path, 0700);
        assert_int_equal(error, 0);
    }
    unsigned before = files_count();
    retain("a");
    retain("l");
    assert_int_equal(files_count(), before);
}

static void others_files_stay(void **state)
{
    (void)state;
    char path[512];
    if (geteuid() != 0) { /* only root can make files that are another's */
        print_message("# not root: nobody else's files to be had\n");
        return;
    }
    for (unsigned i = 0; i < 6; i++)
        dead_make("a", i);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/a.%llu.%u.%llu.%016x.ntlog", test_directory,
                 (unsigned long long)self.pid_namespace, self.pid, (unsigned long long)self.start_time + 1, i);
        assert_int_equal(chown(path, 65534, 65534), 0);
    }
    retain("a");
    assert_int_equal(files_count(), 6);
}

static void keep_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        dead_make("a", i);
    setenv("NTSCOPE_KEEP", "all", 1);
    retain("a");
    assert_int_equal(files_count(), 6);
    setenv("NTSCOPE_KEEP", "none", 1);
    retain("a");
    assert_int_equal(files_count(), 4);
}

/* What each open does, once: five lives later four dead logs and the live one are there. */
static void opens_retain(void **state)
{
    (void)state;
    for (int life = 0; life < 7; life++) {
        pid_t child = fork();
        if (child == 0) {
            nt_log_options options = NT_LOG_OPTIONS_INIT;
            nt_log *log;
            options.name = "a";
            _exit(nt_log_open(&options, &log) == 0 && files_count() == (life < 4 ? (unsigned)life : 4) + 1 ? 0 : 1);
        }
        assert_child_is_well(child);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        retain_test(newest_four_of_a_name_stay),
        retain_test(other_names_are_left_alone),
        retain_test(live_and_foreign_ones_stay),
        retain_test(zombies_and_reused_pids_are_dead),
        retain_test(own_logs_from_before_an_exec_are_dead),
        retain_test(dead_ones_have_256_mib_in_all),
        retain_test(what_is_no_log_is_not_touched),
        retain_test(others_files_stay),
        retain_test(keep_all),
        retain_test(opens_retain),
    };
    return cmocka_run_group_tests_name("log/retain", tests, NULL, NULL);
}
