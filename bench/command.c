/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs run and measured from outside; see command.h. */
#include "command.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

extern char **environ;

const char *command_path(const char *name)
{
    static char path[4096];
    const char *build = getenv("NTSCOPE_BUILD");
    if (build != NULL && *build != '\0') {
        (void)snprintf(path, sizeof path, "%s/%s", build, name);
        return path;
    }
    char self[2048] = "";
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    char *end = size > 0 ? strrchr(self, '/') : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    (void)snprintf(path, sizeof path, "%s/../%s", self, name);
    return path;
}

static double milliseconds(const struct timeval *time)
{
    return (double)time->tv_sec * 1000 + (double)time->tv_usec / 1000;
}

/* CPU time of the whole machine so far: all but idle (columns 4 and 5 of /proc/stat). 0 if it cannot be told. */
static double machine_ms(void)
{
    unsigned long long spent[8] = { 0 };
    FILE *stream = fopen("/proc/stat", "re");
    if (stream == NULL) {
        return 0;
    }
    int found = fscanf(stream, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &spent[0], &spent[1], &spent[2],
                       &spent[3], &spent[4], &spent[5], &spent[6], &spent[7]);
    (void)fclose(stream);
    double ticks = (double)(spent[0] + spent[1] + spent[2] + spent[5] + spent[6] + spent[7]);
    return found == 8 ? ticks * 1000 / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* Ahead of ordinary programs if that is allowed, so that wall time is the command's and not the scheduler's. */
static int spawn_ahead(pid_t *ret_child, const posix_spawn_file_actions_t *actions, char *const *command)
{
    posix_spawnattr_t ahead;
    const struct sched_param priority = { .sched_priority = 1 };
    (void)posix_spawnattr_init(&ahead);
    (void)posix_spawnattr_setschedpolicy(&ahead, SCHED_FIFO);
    (void)posix_spawnattr_setschedparam(&ahead, &priority);
    (void)posix_spawnattr_setflags(&ahead, POSIX_SPAWN_SETSCHEDULER);
    int error = posix_spawn(ret_child, command[0], actions, &ahead, command, environ);
    (void)posix_spawnattr_destroy(&ahead);
    return error;
}

int command_start(char *const *command, bool ahead, pid_t *ret_child)
{
    if ((ahead && spawn_ahead(ret_child, NULL, command) == 0) ||
        posix_spawn(ret_child, command[0], NULL, NULL, command, environ) == 0) {
        return 0;
    }
    fprintf(stderr, "bench: %s cannot be run\n", command[0]);
    return -1;
}

int command_run(char *const *command, bool ahead, struct command_cost *ret_cost)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t child;
    int status = -1;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    double machine = machine_ms();
    uint64_t start = bench_clock_ns(BENCH_CLOCK_WALL);
    if ((ahead && spawn_ahead(&child, &actions, command) == 0) ||
        posix_spawn(&child, command[0], &actions, NULL, command, environ) == 0) {
        (void)wait4(child, &status, 0, &usage);
    }
    uint64_t end = bench_clock_ns(BENCH_CLOCK_WALL);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (status != 0) {
        fprintf(stderr, "bench: %s did not end well (status %d)\n", command[0], status);
        return -1;
    }
    ret_cost->wall_ms = (double)(end - start) / 1e6;
    ret_cost->cpu_ms = milliseconds(&usage.ru_utime) + milliseconds(&usage.ru_stime);
    ret_cost->preempted = usage.ru_nivcsw;
    ret_cost->foreign_ms = machine_ms() - machine - ret_cost->cpu_ms;
    return 0;
}
