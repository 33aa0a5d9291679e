/* SPDX-License-Identifier: BSD-3-Clause */
/* churn_check DIRECTORY THREADS CAP SNAPSHOTS SEED: a program makes, counts and closes objects in trees as fast as it
   can, so that closed ones are folded into their parents all the time, while snapshots of it are taken. Each must have
   no less than the program had counted before and no more than it had begun to count after. In the end it rests, or is
   killed in the middle (odd seeds). Prints one JSON line; exit 0: all holds, 1: not, 2: usage or no log. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nt/log.h>

#include "source/live/live.h"

enum { THREADS = 8, PLACES = 24, SHOWN = 10 };
enum figure { COUNT, TOTAL, OPENS, CLOSES, FIGURES };
static const char *const figure_names[FIGURES] = { "count", "total", "opens", "closes" };

/* Shared by both processes: each thread's figures are raised in `begun` before the log knows, in `done` after it. */
struct truth {
    struct {
        _Alignas(64) uint64_t begun[FIGURES];
        _Alignas(64) uint64_t done[FIGURES];
    } thread[THREADS];
    int started, stop, rests, failed;
};

static struct truth *truth;
static unsigned thread_count;
static uint64_t cap, seed;

static void raise_to(uint64_t *figure, uint64_t by)
{
    __atomic_store_n(figure, *figure + by, __ATOMIC_RELEASE);
}

/* ---- The program ---- */

struct worker {
    pthread_t thread;
    unsigned number;
    nt_log *log;
    nt_object places[PLACES];
    uint64_t random;
};

static uint64_t worker_random(struct worker *worker) /* xorshift64 */
{
    uint64_t x = worker->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return worker->random = x;
}

static void worker_make(struct worker *worker, nt_object *place, uint64_t random)
{
    uint64_t *begun = truth->thread[worker->number].begun, *done = truth->thread[worker->number].done;
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = "brief";
    options.parent = worker->places[random % PLACES]; /* the program's own if nobody is there */
    options.discipline = random >> 8 & 1 ? NT_SHARED : NT_EXCLUSIVE;
    options.flags = NT_OBJECT_MASKED;
    raise_to(&begun[OPENS], 1);
    *place = nt_object_new(worker->log, &options);
    if (!place->handle) {
        raise_to(&begun[OPENS], (uint64_t)-1);
        return;
    }
    raise_to(&done[OPENS], 1);
    for (uint64_t n = random >> 16 & 3; n > 0; n--) {
        uint64_t value = random >> 40;
        raise_to(&begun[COUNT], 1);
        raise_to(&begun[TOTAL], value);
        nt_object_count(*place, NT_WRITE, value);
        raise_to(&done[COUNT], 1);
        raise_to(&done[TOTAL], value);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    while (!__atomic_load_n(&truth->stop, __ATOMIC_ACQUIRE)) {
        uint64_t random = worker_random(worker);
        nt_object *place = &worker->places[(random >> 32) % PLACES];
        if (!place->handle) {
            worker_make(worker, place, random);
            continue;
        }
        raise_to(&truth->thread[worker->number].begun[CLOSES], 1);
        nt_object_close(*place); /* its children stay */
        raise_to(&truth->thread[worker->number].done[CLOSES], 1);
        *place = (nt_object){ 0 };
    }
    return NULL;
}

static void program_main(const char *directory)
{
    static struct worker workers[THREADS];
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = "churn";
    options.directory = directory;
    options.cap_bytes = cap;
    options.ring_bytes = 16384;
    nt_log *log;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    truth->failed = nt_log_open(&options, &log) != 0;
    for (unsigned i = 0; i < thread_count; i++) {
        workers[i].number = i;
        workers[i].log = log;
        workers[i].random = (seed + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        truth->failed |= pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0;
    }
    __atomic_store_n(&truth->started, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_join(workers[i].thread, NULL);
    __atomic_store_n(&truth->rests, 1, __ATOMIC_RELEASE);
    pause();
    _exit(0);
}

/* ---- Looking at it ---- */

struct check {
    struct nt_source *source;
    uint64_t figures[FIGURES], highest[FIGURES];
    uint64_t folded; /* lives in somebody's `closed` */
    uint64_t snapshots, moving, wrong;
    bool is_moving;
};

static int take_program(void *argument, const struct nt_source_program *program)
{
    struct check *check = argument;
    check->is_moving = program->moving;
    if (program->refused_tallies) {
        fprintf(stderr, "%" PRIu64 " counts were refused\n", program->refused_tallies);
        check->wrong++;
    }
    return 0;
}

static void add(struct check *check, const struct nt_source_tally *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check->figures[COUNT] += sums[i].kind == NT_WRITE ? sums[i].count : 0;
        check->figures[TOTAL] += sums[i].kind == NT_WRITE ? sums[i].total : 0;
        check->figures[OPENS] += sums[i].kind == NT_OPEN ? sums[i].count : 0;
        check->figures[CLOSES] += sums[i].kind == NT_CLOSE ? sums[i].count : 0;
    }
}

static int take_object(void *argument, const struct nt_source_object *object)
{
    struct check *check = argument;
    uint64_t before = check->figures[OPENS];
    add(check, object->gone, object->gone_count);
    check->folded += check->figures[OPENS] - before;
    add(check, object->tallies, object->tally_count);
    return 0;
}

static void figures_sum(uint64_t sums[FIGURES], bool begun)
{
    for (int i = 0; i < FIGURES; i++) {
        sums[i] = i == OPENS; /* the program's own object */
        for (unsigned n = 0; n < thread_count; n++)
            sums[i] += __atomic_load_n(begun ? &truth->thread[n].begun[i] : &truth->thread[n].done[i],
                                       __ATOMIC_ACQUIRE);
    }
}

static void look(struct check *check)
{
    const struct nt_source_sink sink = { .program = take_program, .object = take_object, .arg = check };
    uint64_t low[FIGURES], high[FIGURES];
    memset(check->figures, 0, sizeof check->figures);
    check->folded = 0;
    figures_sum(low, false);
    check->wrong += nt_source_snapshot(check->source, &sink) != 0;
    figures_sum(high, true);
    check->snapshots++;
    check->moving += check->is_moving;
    for (int i = 0; i < FIGURES && !check->is_moving; i++) {
        uint64_t now = check->figures[i];
        if ((now < low[i] || now > high[i] || now < check->highest[i]) && ++check->wrong <= SHOWN)
            fprintf(stderr,
                    "snapshot %" PRIu64 ", %s: %" PRIu64 " told, %" PRIu64 " to %" PRIu64 ", before %" PRIu64 "\n",
                    check->snapshots, figure_names[i], now, low[i], high[i], check->highest[i]);
        check->highest[i] = now;
    }
}

/* Resting or killed: exact, or as exact as can be. */
static void look_in_the_end(struct check *check, pid_t child)
{
    if (seed % 2) {
        kill(child, SIGKILL);
    } else {
        __atomic_store_n(&truth->stop, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&truth->rests, __ATOMIC_ACQUIRE))
            usleep(1000);
        look(check);
        look(check);
        kill(child, SIGTERM);
    }
    waitpid(child, NULL, 0);
    look(check);
    check->wrong += check->is_moving;
}

static int check_run(const char *directory, pid_t child, uint64_t snapshots)
{
    struct check check = { .wrong = 0 };
    const struct nt_live_options options = { .directory = directory };
    if (nt_source_live_open(&options, &check.source) != 0)
        return 2;
    while (!__atomic_load_n(&truth->started, __ATOMIC_ACQUIRE))
        usleep(1000);
    while (!truth->failed && check.snapshots < snapshots)
        look(&check);
    look_in_the_end(&check, child);
    printf("{\"snapshots\":%" PRIu64 ",\"moving\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"lives\":%" PRIu64
           ",\"folded\":%" PRIu64 "}\n",
           check.snapshots, check.moving, check.wrong, check.figures[OPENS], check.folded);
    nt_source_free(check.source);
    return truth->failed ? 2 : check.wrong != 0;
}

int main(int count, char **arguments)
{
    if (count != 6) {
        fprintf(stderr, "usage: churn_check DIRECTORY THREADS CAP SNAPSHOTS SEED\n");
        return 2;
    }
    thread_count = (unsigned)strtoul(arguments[2], NULL, 10);
    cap = strtoull(arguments[3], NULL, 10);
    seed = strtoull(arguments[5], NULL, 10);
    truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (thread_count == 0 || thread_count > THREADS || truth == MAP_FAILED)
        return 2;
    pid_t child = fork();
    if (child == 0)
        program_main(arguments[1]);
    return child < 0 ? 2 : check_run(arguments[1], child, strtoull(arguments[4], NULL, 10));
}
