/* SPDX-License-Identifier: BSD-3-Clause */
/* `ntscope top` in a terminal of 50 rows of 160, ten frames a second, on a program with 10,000 channels of two kinds
   each that goes on counting: CPU time and bytes sent to the terminal, a frame. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nt/log.h>

#include "command.h"
#include "harness.h"
#include "scratch.h"

enum { CHANNELS = 10000, FRAMES = 20, EVENTS = 200 };

static struct bench_samples cpu, bytes;
static nt_object objects[CHANNELS];

static void go_on_counting(uint32_t *chance)
{
    for (uint32_t i = 0; i < EVENTS; i++) {
        *chance = *chance * 1664525 + 1013904223;
        nt_object object = objects[(*chance >> 8) % CHANNELS];
        nt_object_count(object, NT_WRITE, i);
        nt_object_count(object, NT_READ, i);
    }
}

/* Reads what it draws until it has ended. */
static uint64_t drain(int terminal)
{
    static char data[65536];
    struct pollfd in = { .fd = terminal, .events = POLLIN };
    uint32_t chance = 1;
    uint64_t sum = 0;
    ssize_t size = 1;
    while (size > 0 || (size < 0 && errno == EINTR)) {
        go_on_counting(&chance);
        size = poll(&in, 1, 2) > 0 ? read(terminal, data, sizeof data) : 1;
        sum += in.revents != 0 && size > 0 ? (uint64_t)size : 0;
    }
    return sum;
}

static int measure_once(const char *program)
{
    const struct winsize size = { .ws_row = 50, .ws_col = 160 };
    char frames[16];
    struct rusage usage;
    int terminal, status;
    (void)snprintf(frames, sizeof frames, "%d", FRAMES);
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    if (child < 0) {
        return -1;
    }
    if (child == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)execl(program, "ntscope", "top", "-n", frames, (char *)NULL);
        _exit(127);
    }
    uint64_t drawn = drain(terminal);
    (void)close(terminal);
    if (wait4(child, &status, 0, &usage) != child || status != 0) {
        (void)fprintf(stderr, "ntscope top ended with status %d\n", status);
        return -1;
    }
    double spent = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    bench_samples_add(&cpu, spent / FRAMES);
    bench_samples_add(&bytes, (double)drawn / FRAMES);
    return 0;
}

static int measure(void)
{
    const char *program = command_path("ntscope");
    nt_log *log = scratch_log("top", 0, 0);
    int error = log != NULL && setenv("NTSCOPE_DIR", scratch_directory(), 1) == 0 ? 0 : -1;
    if (error != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        objects[i] = scratch_object(log, "conn-", i, NT_MASK_DEFAULT);
        nt_object_count(objects[i], NT_WRITE, i);
        nt_object_count(objects[i], NT_READ, i);
    }
    unsigned rounds = bench_rounds(&(struct bench_plan){ .rounds = 5 });
    for (unsigned i = 0; i < rounds && error == 0; i++) {
        error = measure_once(program);
    }
    error = scratch_log_is_whole(log) ? error : -1;
    scratch_log_free(log);
    if (error != 0) {
        return error;
    }
    const struct bench_row rows[] = {
        { .name = "top-10k", .unit = "ms", .max_median = 30 },
        { .name = "top-10k-drawn", .unit = "bytes", .max_median = 8000 },
    };
    bench_report(&rows[0], &cpu, NULL);
    bench_report(&rows[1], &bytes, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = { { "top-10k top-10k-drawn", measure } };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
