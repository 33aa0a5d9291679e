/* SPDX-License-Identifier: BSD-3-Clause */
/* LTTng-UST beside us, in one process and the same rounds: a tracepoint of five integers into a snapshot session
   (overwrite, buffers per user), without and with the contexts vpid and vtid, for without them an event does not
   say which thread it came from. LTTng is not asked to count or sum, which our event does.
   Each row has a session daemon of its own, in a folder of its own; root becomes "nobody" for it, for root's daemon
   is the machine's. */
#include <stdio.h>

#include "harness.h"

#if !defined(NT_BENCH_LTTNG)

static int measure(void)
{
    fprintf(stderr,
            "bench: lttng, lttng-contexts: built without LTTng-UST; install liblttng-ust-dev and lttng-tools\n");
    return -1;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "lttng lttng-contexts", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}

#else

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

#include "floor.h"
#include "scratch.h"

#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_tracepoint.h"

#define FEW UINT32_C(16)
#define NOBODY 65534u
#define PATH_ROOM 256
#define START_SECONDS 20

extern char **environ;

/* ---- What is measured, in a process that the session daemon knows ---- */

struct few {
    nt_object objects[FEW];
};

__attribute__((flatten)) static void run_ours(void *state, uint64_t operations)
{
    const struct few few = *(const struct few *)state;
    for (uint64_t i = 0; i < operations; i++) {
        nt_object_count(few.objects[i % FEW], NT_WRITE, i);
    }
}

static void run_lttng(void *state, uint64_t operations)
{
    (void)state;
    for (uint64_t i = 0; i < operations; i++) {
        lttng_ust_tracepoint(ntscope_bench, message, i % FEW, 1, i, i, i);
    }
}

enum { FLOOR, OURS, LTTNG, VARIANTS };

static int measure_traced(const char *row)
{
    static struct bench_samples samples[VARIANTS];
    struct floor64 floor;
    struct few few;
    bool contexts = strcmp(row, "lttng-contexts") == 0;
    if (!lttng_ust_tracepoint_enabled(ntscope_bench, message)) {
        fprintf(stderr, "bench: %s: the session daemon did not enable the tracepoint\n", row);
        return -1;
    }
    nt_log *log = scratch_log("lttng", UINT64_C(1) << 20, 0);
    if (log == NULL || floor64_init(&floor) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < FEW; i++) {
        few.objects[i] = scratch_object(log, "object-", i, NT_MASK_DEFAULT);
    }
    const struct bench_variant variants[VARIANTS] = {
        [FLOOR] = { "floor64", floor64_run, &floor, NULL },
        [OURS] = { "event-on", run_ours, &few, NULL },
        [LTTNG] = { row, run_lttng, NULL, NULL },
    };
    bench_compare(&(struct bench_plan){ .clock = BENCH_CLOCK_TSC }, variants, VARIANTS, samples);
    bench_report(&(struct bench_row){ .name = row,
                                      .unit = "ns",
                                      .against = "event-on",
                                      .min_ratio = contexts ? 9 : 8,
                                      .beyond = "floor64",
                                      .less = &samples[FLOOR] },
                 &samples[LTTNG], &samples[OURS]);
    scratch_log_free(log);
    return 0;
}

/* ---- Its session ---- */

/* Exit code, or -1. Its output goes nowhere unless it fails. */
static int run_command(char *const *command)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) == 0) {
        (void)waitpid(child, &status, 0);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t daemon_start(const char *home)
{
    char *const command[] = { "lttng-sessiond", "--no-kernel", "--quiet", NULL };
    char socket[PATH_ROOM];
    pid_t daemon;
    (void)snprintf(socket, sizeof socket, "%s/.lttng/client-lttng-sessiond", home);
    if (posix_spawnp(&daemon, command[0], NULL, NULL, command, environ) != 0) {
        fprintf(stderr, "bench: lttng: no lttng-sessiond; install lttng-tools\n");
        return -1;
    }
    for (int i = 0; i < START_SECONDS * 20; i++) {
        if (access(socket, F_OK) == 0) {
            return daemon;
        }
        if (waitpid(daemon, NULL, WNOHANG) == daemon) {
            break;
        }
        (void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    fprintf(stderr, "bench: lttng: lttng-sessiond does not start\n");
    (void)kill(daemon, SIGKILL);
    return -1;
}

static void daemon_end(pid_t daemon)
{
    (void)kill(daemon, SIGTERM);
    for (int i = 0; i < 100; i++) {
        if (waitpid(daemon, NULL, WNOHANG) == daemon) {
            return;
        }
        (void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    (void)kill(daemon, SIGKILL);
    (void)waitpid(daemon, NULL, 0);
}

static int session_start(const char *home, bool contexts)
{
    char output[PATH_ROOM];
    (void)snprintf(output, sizeof output, "--output=%s/out", home);
    char *const create[] = { "lttng", "-q", "--no-sessiond", "create", "bench", "--snapshot", output, NULL };
    /* 1 MiB a processor, as our ring */
    char *const channel[] = { "lttng",
                              "-q",
                              "enable-channel",
                              "-u",
                              "-s",
                              "bench",
                              "--buffers-uid",
                              "--overwrite",
                              "--subbuf-size=256k",
                              "--num-subbuf=4",
                              "ch",
                              NULL };
    char *const event[] = { "lttng", "-q", "enable-event",          "-u", "-s", "bench",
                            "-c",    "ch", "ntscope_bench:message", NULL };
    char *const context[] = { "lttng", "-q", "add-context", "-u", "-s",   "bench", "-c",
                              "ch",    "-t", "vpid",        "-t", "vtid", NULL };
    char *const start[] = { "lttng", "-q", "start", "bench", NULL };
    if (run_command(create) != 0 || run_command(channel) != 0 || run_command(event) != 0 ||
        (contexts && run_command(context) != 0) || run_command(start) != 0) {
        fprintf(stderr, "bench: lttng: no session; lttng-tools of another version?\n");
        return -1;
    }
    return 0;
}

static uint64_t recorded_bytes;

static int record_add(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    if (type == FTW_F && strncmp(path + walk->base, "ch_", 3) == 0) {
        recorded_bytes += (uint64_t)status->st_size;
    }
    return 0;
}

/* That the events which were measured are there: most of one processor's buffer at least. */
static int session_check(const char *home)
{
    char output[PATH_ROOM];
    char *const record[] = { "lttng", "-q", "snapshot", "record", "-s", "bench", NULL };
    (void)snprintf(output, sizeof output, "%s/out", home);
    recorded_bytes = 0;
    if (run_command(record) != 0 || nftw(output, record_add, 8, FTW_PHYS) != 0 || recorded_bytes < 512u << 10) {
        fprintf(stderr, "bench: lttng: recorded %llu bytes only\n", (unsigned long long)recorded_bytes);
        return -1;
    }
    return 0;
}

/* In a process of its own: runs the daemon, and in it this program once more. Exit code. */
static int run_session(const char *row)
{
    const char *home = scratch_directory();
    char *const command[] = { "/proc/self/exe", "--traced", (char *)(uintptr_t)row, NULL };
    pid_t daemon, child;
    int status = -1;
    if (home == NULL || setenv("LTTNG_HOME", home, 1) != 0 || setenv("HOME", home, 1) != 0 ||
        setenv("LTTNG_UST_REGISTER_TIMEOUT", "10000", 1) != 0) {
        return 1;
    }
    daemon = daemon_start(home);
    if (daemon < 0) {
        return 1;
    }
    if (session_start(home, strcmp(row, "lttng-contexts") == 0) == 0 &&
        posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0) {
        (void)waitpid(child, &status, 0);
        status = session_check(home) == 0 ? status : -1;
    }
    daemon_end(daemon);
    return status == 0 ? 0 : 1;
}

static int measure(const char *row)
{
    int status = -1;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
            perror("bench: lttng: cannot become nobody");
            _exit(1);
        }
        exit(run_session(row));
    }
    if (child > 0) {
        (void)waitpid(child, &status, 0);
    }
    if (status != 0) {
        fprintf(stderr, "bench: %s: not measured\n", row);
    }
    return status == 0 ? 0 : -1;
}

static int measure_plain(void)
{
    return measure("lttng");
}

static int measure_contexts(void)
{
    return measure("lttng-contexts");
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "lttng", measure_plain }, { "lttng-contexts", measure_contexts } };
    if (argc == 3 && strcmp(argv[1], "--traced") == 0) {
        return measure_traced(argv[2]) == 0 ? 0 : 1;
    }
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}

#endif
