/* SPDX-License-Identifier: BSD-3-Clause */
/* Against the running kernel: this process, children with hostile names, stopped, dead, and waited for. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void self_is_running(void **state)
{
    (void)state;
    struct nt_process_status status;
    errno = 77;
    assert_int_equal(nt_process_status((uint32_t)getpid(), &status), 0);
    assert_int_equal(errno, 77);
    assert_int_equal(status.state, 'R');
    assert_true(status.start_time > 0);
}

/* A child that names itself, tells that it did, and sleeps. */
static pid_t child_named(const char *name)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* does not outlive a test that fails */
        (void)prctl(PR_SET_NAME, name, 0, 0, 0);
        if (write(pipes[1], "x", 1) == 1) {
            (void)pause();
        }
        _exit(0);
    }
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    return pid;
}

static void hostile_names(void **state)
{
    (void)state;
    static const char *const names[] = { "x) T 1 1 1 (y", ") ) )", "(((", "a b\nc", ") Z 0 0 0 0 0 0" };
    struct nt_process_status self;
    assert_int_equal(nt_process_status((uint32_t)getpid(), &self), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pid_t pid = child_named(names[i]);
        struct nt_process_status status;
        assert_int_equal(nt_process_status((uint32_t)pid, &status), 0);
        assert_true(status.state == 'S' || status.state == 'R');
        /* The child is younger than this process and was made less than a minute ago. */
        assert_true(status.start_time >= self.start_time);
        assert_true(status.start_time - self.start_time < (uint64_t)(60 * sysconf(_SC_CLK_TCK)));
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}

static void stopped_dead_and_gone(void **state)
{
    (void)state;
    pid_t pid = child_named("child");
    struct nt_process_status status;
    int wait_status;
    (void)kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &wait_status, WUNTRACED), pid);
    assert_int_equal(nt_process_status((uint32_t)pid, &status), 0);
    assert_int_equal(status.state, 'T');
    (void)kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(nt_process_status((uint32_t)pid, &status), 0);
    assert_int_equal(status.state, 'Z');
    assert_int_equal(nt_process_maps((uint32_t)pid, 1, 1), -ESRCH);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    status.state = '?';
    assert_int_equal(nt_process_status((uint32_t)pid, &status), -ESRCH);
    assert_int_equal(status.state, '?');
    assert_int_equal(nt_process_maps((uint32_t)pid, 1, 1), -ESRCH);
}

static void *outlive(void *arg)
{
    (void)pause();
    return arg;
}

/* The kernel calls a process a zombie once its first thread ended; the others may go on for days. */
static void first_thread_ended(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_t thread;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, outlive, NULL) != 0) {
            _exit(1);
        }
        pthread_exit(NULL);
    }
    char path[64], text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int turn = 0; turn < 1000; turn++) {
        FILE *stream = fopen(path, "r");
        assert_non_null(stream);
        assert_non_null(fgets(text, sizeof text, stream));
        (void)fclose(stream);
        if (strstr(text, ") Z ")) {
            break;
        }
        (void)usleep(1000);
    }
    assert_non_null(strstr(text, ") Z "));
    struct nt_process_status status;
    assert_int_equal(nt_process_status((uint32_t)pid, &status), 0);
    assert_int_equal(status.state, 'S');
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void namespace_and_boot_id(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    assert_int_equal(nt_process_pid_namespace(), status.st_ino);
    uint8_t id[16], zero[16] = { 0 };
    assert_int_equal(nt_process_boot_id(id), 0);
    assert_memory_not_equal(id, zero, 16);
    char text[40], line[64] = "";
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                               id[i]);
    }
    FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof line, stream));
    (void)fclose(stream);
    assert_memory_equal(line, text, 36);
}

/* Enough mappings that the table takes many reads, and the file's line lies anywhere in them. */
static void maps_finds_a_file(void **state)
{
    (void)state;
    enum { PAGES = 400 };
    char path[] = "/tmp/process_test.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, PAGES * 4096L), 0);
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    uint32_t pid = (uint32_t)getpid();
    assert_int_equal(nt_process_maps(pid, status.st_dev, status.st_ino), 0);
    char *crowd = mmap(NULL, PAGES * 4096L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(crowd != MAP_FAILED);
    for (int i = 0; i < PAGES; i += 2) {
        assert_int_equal(mprotect(crowd + i * 4096L, 4096, PROT_READ | PROT_WRITE), 0);
    }
    for (int i = 0; i < PAGES; i++) {
        /* In the middle of other mappings, so that the line moves through the reader's buffer. */
        void *map = mmap(crowd + i * 4096L, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, fd, i * 4096L);
        assert_true(map != MAP_FAILED);
        assert_int_equal(nt_process_maps(pid, status.st_dev, status.st_ino), 1);
        assert_int_equal(nt_process_maps(pid, status.st_dev, status.st_ino + 1000000007), 0);
        assert_int_equal(nt_process_maps(pid, status.st_dev + 1, status.st_ino), 0);
        map = mmap(crowd + i * 4096L, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        assert_true(map != MAP_FAILED);
        assert_int_equal(nt_process_maps(pid, status.st_dev, status.st_ino), 0);
    }
    assert_int_equal(munmap(crowd, PAGES * 4096L), 0);
    (void)unlink(path);
    (void)close(fd);
}

static void needs_no_descriptor_left_behind(void **state)
{
    (void)state;
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct nt_process_status status;
    uint8_t id[16];
    for (int i = 0; i < 10; i++) {
        (void)nt_process_status((uint32_t)getpid(), &status);
        (void)nt_process_boot_id(id);
        (void)nt_process_maps((uint32_t)getpid(), 0, 1);
    }
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, before + 1);
    (void)close(before);
    (void)close(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_is_running),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(stopped_dead_and_gone),
        cmocka_unit_test(first_thread_ended),
        cmocka_unit_test(namespace_and_boot_id),
        cmocka_unit_test(maps_finds_a_file),
        cmocka_unit_test(needs_no_descriptor_left_behind),
    };
    return cmocka_run_group_tests_name("base/process", tests, NULL, NULL);
}
