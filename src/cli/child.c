/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a command, see child.h. Signals are taken by waiting for them, so there are no handlers. */
#include "cli/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* ---- The directory ---- */

static int make_inside(const char *directory, char **ret_path)
{
    /* Absolute, as the command may go elsewhere. */
    char *absolute = realpath(directory, NULL);
    char *path = NULL;
    int error = 0;
    if (!absolute)
        return -errno;
    if (asprintf(&path, "%s/ntscope-run-XXXXXX", absolute) < 0) {
        path = NULL;
        error = -ENOMEM;
    } else if (!mkdtemp(path)) {
        error = -errno;
        free(path);
    }
    free(absolute);
    if (error == 0)
        *ret_path = path;
    return error;
}

static int make_directory(const char *inside, char **ret_path)
{
    const char *directory = inside ? inside : secure_getenv("NTSCOPE_DIR");
    if (!directory || directory[0] == '\0') {
        int error = make_inside("/dev/shm", ret_path);
        return error == 0 ? 0 : make_inside("/tmp", ret_path);
    }
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return -errno;
    return make_inside(directory, ret_path);
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    if (directory) {
        for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
        (void)closedir(directory);
    }
    (void)rmdir(path);
}

int nt_cli_child_begin(struct nt_cli_child *child, const char *inside)
{
    static const int taken[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    child->directory = NULL;
    child->pid = 0;
    (void)sigemptyset(&child->taken);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        (void)sigaddset(&child->taken, taken[i]);
    (void)sigprocmask(SIG_BLOCK, &child->taken, &child->before);
    /* Ignored, a child would end without a trace. */
    (void)sigaction(SIGCHLD, &by_default, &child->on_child);
    return make_directory(inside, &child->directory);
}

static void signals_give_back(const struct nt_cli_child *child)
{
    (void)sigaction(SIGCHLD, &child->on_child, NULL);
    (void)sigprocmask(SIG_SETMASK, &child->before, NULL);
}

void nt_cli_child_end(struct nt_cli_child *child, bool keep)
{
    /* What was meant for the command must not end us as well. */
    const struct timespec at_once = { 0 };
    while (sigtimedwait(&child->taken, NULL, &at_once) > 0)
        ;
    if (child->directory && !keep)
        remove_directory(child->directory);
    free(child->directory);
    child->directory = NULL;
    signals_give_back(child);
}

/* ---- The command ---- */

/* ---- Descriptors: one a log ---- */

static struct rlimit files_before;

void nt_cli_child_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    files_before = limit;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void exec(const struct nt_cli_child *child, char **command, int tell)
{
    if (files_before.rlim_max != 0)
        (void)setrlimit(RLIMIT_NOFILE, &files_before);
    if (setenv("NTSCOPE_DIR", child->directory, 1) == 0 && setenv("NTSCOPE_KEEP", "all", 1) == 0) {
        signals_give_back(child);
        (void)execvp(command[0], command);
    }
    int error = errno;
    (void)!write(tell, &error, sizeof error);
    _exit(127);
}

/* The exit code; -1: it runs. */
static int look(struct nt_cli_child *child)
{
    int status;
    pid_t ended = waitpid(child->pid, &status, WNOHANG);
    if (ended == 0)
        return -1;
    int code = ended < 0 ? 126 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    child->pid = 0;
    return code;
}

/* The terminal sends to the whole foreground group, the command included. */
static void pass_on(const struct nt_cli_child *child, int number, const siginfo_t *info)
{
    if (number > 0 && number != SIGCHLD && info->si_code != SI_KERNEL)
        (void)kill(child->pid, number);
}

static int wait_for(struct nt_cli_child *child)
{
    int code;
    while ((code = look(child)) < 0) {
        siginfo_t info;
        int number = sigwaitinfo(&child->taken, &info);
        pass_on(child, number, &info);
    }
    return code;
}

int nt_cli_child_poll(struct nt_cli_child *child)
{
    const struct timespec at_once = { 0 };
    siginfo_t info;
    int number, code = look(child);
    while (code < 0 && (number = sigtimedwait(&child->taken, &info, &at_once)) > 0)
        pass_on(child, number, &info);
    return code;
}

static int say_failed(struct nt_cli *cli, const char *command, int error)
{
    char after[128];
    (void)snprintf(after, sizeof after, ": %s", nt_error_text(error));
    nt_cli_say_of(cli, "cannot run ", command, after);
    return error == ENOENT ? 127 : 126;
}

int nt_cli_child_start(struct nt_cli_child *child, struct nt_cli *cli, char **command)
{
    int tell[2];
    if (pipe2(tell, O_CLOEXEC) != 0)
        return say_failed(cli, command[0], errno);
    (void)fflush(cli->talk);
    pid_t pid = fork();
    if (pid == 0)
        exec(child, command, tell[1]);
    int error = pid < 0 ? errno : 0;
    (void)close(tell[1]);
    if (pid > 0 && read(tell[0], &error, sizeof error) != (ssize_t)sizeof error)
        error = 0; /* closed by a successful exec */
    (void)close(tell[0]);
    child->pid = pid > 0 ? pid : 0;
    if (error != 0 && pid > 0)
        (void)wait_for(child);
    return error == 0 ? 0 : say_failed(cli, command[0], error);
}

int nt_cli_child_run(struct nt_cli_child *child, struct nt_cli *cli, char **command)
{
    int code = nt_cli_child_start(child, cli, command);
    return child->pid != 0 ? wait_for(child) : code;
}
