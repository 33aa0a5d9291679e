/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event costs beside time: system calls, allocations, threads. Each phase runs warm in a child that is stopped
   at every system call, and prints `calls N` and `PHASE EVENTS ALLOCATIONS THREADS`. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nt/log.h>

enum { EVENTS = 100000, MARK = 4711 };

/* ---- allocations: the program's own functions stand before the C library's ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *before, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);

static volatile unsigned long allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *before, size_t size)
{
    allocations++;
    return __libc_realloc(before, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

/* ---- phases ---- */

static nt_log *test_log;
static nt_object exclusive, shared, closed, masked, many_kinds;
static nt_kind data_kind;

static nt_object object_new(const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return nt_object_new(test_log, &options);
}

static void exclusive_on(unsigned i)
{
    nt_object_count(exclusive, NT_WRITE, i);
}

static void shared_on(unsigned i)
{
    nt_object_count(shared, NT_WRITE, i);
}

static void masked_off(unsigned i)
{
    nt_object_count(masked, NT_WRITE, i);
}

static void timed(unsigned i)
{
    nt_object_count_at(exclusive, NT_READ, i, 1000 + i);
}

static void with_fields(unsigned i)
{
    nt_value value = { .as = { .data = "twelve bytes" }, .size = 12 };
    nt_object_record(exclusive, data_kind, i, &value, 1);
}

static void of_many_kinds(unsigned i)
{
    nt_object_count(many_kinds, 20 + i % 30, i);
}

static void on_closed(unsigned i)
{
    nt_object_count(closed, NT_WRITE, i);
}

/* What is counted where no log could be had. */
static void without_log(unsigned i)
{
    nt_object_count((nt_object){ 0 }, NT_WRITE, i);
}

static void looked_at(unsigned i)
{
    struct nt_layout_tally tally;
    nt_object_tally(exclusive, NT_WRITE, &tally);
    (void)i;
}

static const struct phase {
    const char *name;
    void (*run)(unsigned i);
} phases[] = {
    { "exclusive", exclusive_on },  { "shared", shared_on },
    { "masked-off", masked_off },   { "timed", timed },
    { "with-fields", with_fields }, { "many-kinds", of_many_kinds },
    { "closed-object", on_closed }, { "tally", looked_at },
    { "no-log", without_log },
};
enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

static void objects_make(void)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_kind_options kind_options = NT_KIND_OPTIONS_INIT;
    const nt_field field = { "data", NT_FIELD_BYTES, 0 };
    nt_log_open(&options, &test_log);
    kind_options.name = "data";
    kind_options.fields = &field;
    kind_options.field_count = 1;
    nt_kind_new(test_log, &kind_options, &data_kind);
    exclusive = object_new("exclusive", NT_EXCLUSIVE);
    shared = object_new("shared", NT_SHARED);
    closed = object_new("closed", NT_EXCLUSIVE);
    masked = object_new("masked", NT_EXCLUSIVE);
    many_kinds = object_new("many-kinds", NT_EXCLUSIVE);
    nt_object_mask_set(masked, 0);
    nt_object_close(closed);
}

static unsigned threads_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

/* A thread that comes when no ring is left: its events are dropped and counted. */
static void *dropping_run(void *arg)
{
    for (unsigned i = 0; i < EVENTS; i++)
        shared_on(i);
    syscall(MARK);
    for (unsigned i = 0; i < EVENTS; i++)
        shared_on(i);
    syscall(MARK);
    return arg;
}

static volatile int holding;

static void *holding_run(void *arg)
{
    if (!shared.handle)
        shared = object_new("shared", NT_SHARED);
    shared_on(1);
    __atomic_fetch_add(&holding, 1, __ATOMIC_RELEASE);
    pause();
    return arg;
}

static void dropping_phase(void)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    pthread_t holder;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.cap_bytes = 524288;
    options.ring_bytes = 16384;
    nt_log_open(&options, &test_log);
    for (int i = 1; i <= 40; i++) { /* one after another; more than there are rings */
        pthread_create(&holder, NULL, holding_run, NULL);
        while (__atomic_load_n(&holding, __ATOMIC_ACQUIRE) < i)
            usleep(1000);
    }
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    dropping_run(NULL);
    fflush(stdout);
    _exit(0);
}

/* The traced side; marks stand around what is counted. */
static void phases_run(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    objects_make();
    for (unsigned p = 0; p < PHASES; p++) {
        for (unsigned i = 0; i < EVENTS; i++) /* rings of 1 MiB go round */
            phases[p].run(i);
        unsigned long before = allocations;
        syscall(MARK);
        for (unsigned i = 0; i < EVENTS; i++)
            phases[p].run(i);
        syscall(MARK);
        unsigned long made = allocations - before;
        printf("%s %d %lu %u\n", phases[p].name, EVENTS, made, threads_count());
        fflush(stdout);
    }
    _exit(0);
}

/* The tracing side: system calls between the first mark and the second of each phase. */
static int calls_count(pid_t child)
{
    int status;
    bool inside = false, entering = true;
    unsigned long calls = 0;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (;;) {
        ptrace(PTRACE_SYSCALL, child, 0, 0);
        if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            continue;
        struct user_regs_struct registers;
        ptrace(PTRACE_GETREGS, child, 0, &registers);
        if (entering && registers.orig_rax == MARK) {
            if (inside)
                printf("calls %lu\n", calls);
            fflush(stdout);
            inside = !inside;
            calls = 0;
        } else if (entering && inside) {
            calls++;
        }
        entering = !entering;
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 4096);
    pid_t child = fork();
    if (child == 0 && argc > 1 && strcmp(argv[1], "dropping") == 0)
        dropping_phase();
    if (child == 0)
        phases_run();
    return calls_count(child);
}
