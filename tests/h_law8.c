/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that gets into situations with a log open: h_law8 SITUATION [NUMBER]. What it prints and its exit code must
   not depend on whether there is a log. What it counted it writes to $LAW8_TRUTH, one line an object and kind:
   path, object, kind, count, total, parted by tabs; the log must say the same. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <nt/log.h>

enum { EXIT_CODE = 7 };

static nt_log *test_log;
static long number;

/* ---- what it counts ---- */

struct channel {
    nt_object object;
    const char *name;
    uint64_t count, total;
};

static struct channel channel_new(const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return (struct channel){ .object = nt_object_new(test_log, &options), .name = name };
}

static void channel_count(struct channel *channel, uint64_t value, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++)
        nt_object_count(channel->object, NT_WRITE, value);
    channel->count += times;
    channel->total += times * value;
}

/* One write to the file: several processes tell theirs. */
static void truth_tell(const struct channel *channel)
{
    const char *path = getenv("LAW8_TRUTH");
    char line[1024];
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0)
        return;
    int size = snprintf(line, sizeof(line), "%s\t%s\twrite\t%llu\t%llu\n", nt_log_path(test_log), channel->name,
                        (unsigned long long)channel->count, (unsigned long long)channel->total);
    if (write(fd, line, (size_t)size) != size)
        _exit(99);
    close(fd);
}

static void log_open(void)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.cap_bytes = 8 << 20;
    options.ring_bytes = 65536;
    nt_log_open(&options, &test_log);
}

static int child_status(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* ---- situations ---- */

static int plain(void)
{
    log_open();
    struct channel exclusive = channel_new("exclusive", NT_EXCLUSIVE), shared = channel_new("shared", NT_SHARED);
    for (int i = 0; i < 100; i++) {
        channel_count(&exclusive, 3, 1000);
        channel_count(&shared, 5, 1000);
        char name[32];
        snprintf(name, sizeof(name), "more-%d", i);
        struct channel more = channel_new(name, NT_EXCLUSIVE);
        channel_count(&more, 1, 1);
    }
    truth_tell(&exclusive);
    truth_tell(&shared);
    printf("plain %llu\n", (unsigned long long)(exclusive.total + shared.total));
    return EXIT_CODE;
}

static void *count_a_little(void *arg)
{
    struct channel *channel = arg;
    for (int i = 0; i < 1000; i++)
        nt_object_count(channel->object, NT_WRITE, 1);
    __atomic_fetch_add(&channel->count, 1000, __ATOMIC_RELAXED);
    __atomic_fetch_add(&channel->total, 1000, __ATOMIC_RELAXED);
    return NULL;
}

/* Takes what the file system of the log has left, and then needs more of everything. */
static int full(void)
{
    static char bytes[65536];
    static struct channel many[3000];
    log_open();
    struct channel first = channel_new("first", NT_EXCLUSIVE), shared = channel_new("shared", NT_SHARED);
    memset(bytes, 1, sizeof(bytes));
    for (int i = 0; i < 3000; i++)
        many[i] = channel_new("many", i % 2 ? NT_SHARED : NT_EXCLUSIVE);
    channel_count(&first, 1, 100);
    pid_t child = fork();
    if (child == 0) /* makes its file before there is no room */
        channel_count(&many[0], 1, 1);
    int fd = open(getenv("LAW8_FILL"), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    for (size_t size = sizeof(bytes); size > 0; size /= 2)
        while (write(fd, bytes, size) > 0)
            ;
    for (int turn = 0; turn < 50; turn++)
        for (int i = 0; i < 3000; i++)
            channel_count(&many[i], 2, 1);
    channel_count(&first, 1, 100000);
    for (nt_kind kind = 20; kind < 60; kind++)
        nt_object_count(first.object, kind, 1);
    for (int i = 0; i < 3000; i++)
        channel_new("late", NT_EXCLUSIVE);
    pthread_t threads[20];
    for (int i = 0; i < 20; i++)
        pthread_create(&threads[i], NULL, count_a_little, &shared);
    for (int i = 0; i < 20; i++)
        pthread_join(threads[i], NULL);
    close(fd);
    if (child == 0)
        _exit(3);
    printf("full %d %llu\n", child_status(child), (unsigned long long)(first.total + shared.total));
    pid_t late = fork(); /* has no room for a file */
    if (late == 0) {
        channel_count(&first, 1, 10);
        _exit(4);
    }
    printf("late %d\n", child_status(late));
    truth_tell(&first);
    truth_tell(&shared);
    return EXIT_CODE;
}

static unsigned long status_field(const char *name)
{
    char line[256];
    unsigned long value = 0;
    FILE *stream = fopen("/proc/self/status", "re");
    while (stream && fgets(line, sizeof(line), stream))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoul(line + strlen(name), NULL, 10);
    if (stream)
        fclose(stream);
    return value;
}

/* Memory that is locked before the log is opened (number 0) must not grow by more than the log may use, 512 KiB; after
   (number 1) the program asks for all of what is mapped, and gets it. */
static int locked(void)
{
    int flags = number ? MCL_CURRENT | MCL_FUTURE : MCL_FUTURE;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.cap_bytes = 512 << 10;
    options.ring_bytes = 16384;
    if (number)
        nt_log_open(&options, &test_log);
    int error = mlockall(flags);
    if (!number)
        nt_log_open(&options, &test_log);
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE), shared = channel_new("shared", NT_SHARED);
    channel_count(&channel, 1, 100000);
    channel_count(&shared, 1, 100000);
    struct stat st = { .st_blocks = 0 };
    (void)stat(nt_log_path(test_log), &st);
    unsigned long while_open = status_field("VmLck:");
    truth_tell(&channel);
    truth_tell(&shared);
    nt_log_close(test_log);
    unsigned long after = status_field("VmLck:");
    bool little = number || (while_open < 1400 && after < 1400 && st.st_blocks * 512 <= 512 << 10);
    printf("locked %d %s %llu\n", error, little ? "little" : "much", (unsigned long long)channel.total);
    if (!little)
        fprintf(stderr, "locked: %lu kB, after closing %lu kB, file %ld blocks\n", while_open, after,
                (long)st.st_blocks);
    return EXIT_CODE;
}

/* Forks in between of counting, with threads that go on counting. */
struct crowd {
    struct channel channel;
    const int *stop;
};

static void *crowd_run(void *arg)
{
    struct crowd *crowd = arg;
    while (!__atomic_load_n(crowd->stop, __ATOMIC_RELAXED))
        channel_count(&crowd->channel, 3, 100);
    return NULL;
}

static int crowded_forks(void)
{
    static const char *const names[4] = { "one", "two", "three", "four" };
    int stop = 0, bad = 0;
    struct crowd crowds[4];
    pthread_t threads[4];
    log_open();
    struct channel own = channel_new("own", NT_EXCLUSIVE);
    for (int i = 0; i < 4; i++) {
        crowds[i] = (struct crowd){ .channel = channel_new(names[i], NT_EXCLUSIVE), .stop = &stop };
        pthread_create(&threads[i], NULL, crowd_run, &crowds[i]);
    }
    for (long i = 0; i < number; i++) {
        channel_count(&own, 1, 10);
        pid_t child = fork();
        if (child == 0) {
            struct channel channel = { .object = own.object, .name = "own" };
            channel_count(&channel, 7, 50);
            truth_tell(&channel);
            _exit(9);
        }
        bad += child_status(child) != 9;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        truth_tell(&crowds[i].channel);
    }
    truth_tell(&own);
    printf("forks %ld bad %d\n", number, bad);
    return EXIT_CODE;
}

/* ---- a handler that forks in the middle of a count ---- */

static volatile sig_atomic_t forks, is_child;

static void fork_handler(int signal)
{
    (void)signal;
    pid_t child = fork();
    if (child == 0) {
        const struct itimerval never = { { 0, 0 }, { 0, 0 } };
        setitimer(ITIMER_REAL, &never, NULL);
        is_child = 1;
    } else if (child > 0) {
        forks++;
    }
}

static int handler_forks(void)
{
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    log_open();
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE), shared = channel_new("shared", NT_SHARED);
    channel_count(&channel, 3, 1);
    channel_count(&shared, 3, 1);
    signal(SIGALRM, fork_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long turn = 0; forks < number; turn++) {
        channel_count(turn & 1 ? &channel : &shared, 3, 100);
        if (is_child)
            _exit(9);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    int bad = 0, status;
    while (wait(&status) > 0)
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 9;
    if (is_child)
        _exit(9);
    truth_tell(&channel);
    truth_tell(&shared);
    printf("handler forks bad %d\n", bad);
    return EXIT_CODE;
}

/* ---- handlers that jump out of whatever they interrupted ---- */

static ucontext_t jump_back;
static volatile sig_atomic_t jumps;
static struct channel jump_channel;

static void jump_handler(int signal)
{
    (void)signal;
    jumps++;
    nt_object_count(jump_channel.object, NT_WRITE, 1);
    setcontext(&jump_back); /* with the signals of then, as siglongjmp does */
}

static int handler_jumps(void)
{
    const struct itimerval often = { { 0, 3000 }, { 0, 3000 } }, never = { { 0, 0 }, { 0, 0 } };
    log_open();
    struct channel channel = channel_new("interrupted", NT_EXCLUSIVE), after = channel_new("after", NT_EXCLUSIVE);
    jump_channel = channel_new("handler", NT_SHARED);
    signal(SIGALRM, jump_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    getcontext(&jump_back);
    while (jumps < number) {
        channel_count(&channel, 1, 1);
        if (jumps % 4 == 3) /* out of the slow paths too */
            nt_object_close(channel_new("brief", NT_EXCLUSIVE).object);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    channel_count(&after, 3, 100000);
    jump_channel.count = jump_channel.total = (uint64_t)jumps;
    truth_tell(&after);
    truth_tell(&jump_channel);
    printf("jumps %d\n", jumps >= number);
    return EXIT_CODE;
}

/* ---- descriptors ---- */

static int close_all(void)
{
    char path[256], name[32];
    static char bytes[1000];
    log_open();
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE);
    channel_count(&channel, 1, 10);
    syscall(SYS_close_range, 3u, ~0u, 0);
    int fds[40];
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof(path), "%s.%d", getenv("LAW8_FILL"), i);
        fds[i] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        memset(bytes, i, sizeof(bytes));
        if (write(fds[i], bytes, sizeof(bytes)) != sizeof(bytes))
            return 98;
    }
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "more-%d", i);
        struct channel more = channel_new(name, NT_SHARED);
        channel_count(&more, 1, 1);
    }
    channel_count(&channel, 1, 10000);
    struct channel shared = channel_new("shared", NT_SHARED);
    pthread_t thread;
    pthread_create(&thread, NULL, count_a_little, &shared);
    pthread_join(thread, NULL);
    if (fork() == 0) {
        channel_count(&channel, 1, 10);
        _exit(0);
    }
    wait(NULL);
    bool same = true;
    for (int i = 0; i < 40; i++) {
        struct stat st;
        same = same && fds[i] == 3 + i && fstat(fds[i], &st) == 0 && st.st_size == sizeof(bytes);
        same = same && pread(fds[i], bytes, sizeof(bytes), 0) == sizeof(bytes);
        for (size_t k = 0; k < sizeof(bytes); k++)
            same = same && bytes[k] == i;
    }
    truth_tell(&channel);
    truth_tell(&shared);
    printf("close all: files %s\n", same ? "unchanged" : "changed");
    return EXIT_CODE;
}

/* ---- other programs ---- */

static char own_path[4096];

static int execs(void)
{
    char *const arguments[] = { own_path, (char[]){ "plain" }, NULL };
    log_open();
    struct channel channel = channel_new("before", NT_EXCLUSIVE);
    channel_count(&channel, 1, 1000);
    truth_tell(&channel);
    printf("exec\n");
    fflush(stdout);
    execv(own_path, arguments);
    return 97;
}

static int vforks(void)
{
    log_open();
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE);
    int bad = 0;
    for (int i = 0; i < 50; i++) {
        channel_count(&channel, 1, 100);
        /* the child shares everything until it execs */
        pid_t child = (pid_t)vfork();
        if (child == 0) {
            nt_object_count(channel.object, NT_WRITE, 1);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        channel.count++;
        channel.total++;
        bad += child_status(child);
    }
    truth_tell(&channel);
    printf("vforks bad %d\n", bad);
    return EXIT_CODE;
}

/* ---- threads ---- */

static int many_threads(void)
{
    log_open();
    struct channel shared = channel_new("shared", NT_SHARED);
    for (long i = 0; i < number; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, count_a_little, &shared);
        pthread_join(thread, NULL);
    }
    truth_tell(&shared);
    printf("threads %llu\n", (unsigned long long)shared.count);
    return EXIT_CODE;
}

static void *last_thread(void *arg)
{
    usleep(20000);
    count_a_little(arg);
    truth_tell(arg);
    printf("last thread\n");
    exit(EXIT_CODE);
}

/* The first thread ends before the program does. */
static int first_thread_ends(void)
{
    static struct channel shared;
    pthread_t thread;
    log_open();
    shared = channel_new("shared", NT_SHARED);
    channel_count(&shared, 1, 10);
    pthread_create(&thread, NULL, last_thread, &shared);
    pthread_exit(NULL);
}

/* ---- the program's end ---- */

static struct channel end_channel;

static void count_at_end(void)
{
    channel_count(&end_channel, 5, 1000);
    truth_tell(&end_channel);
    printf("at exit %llu\n", (unsigned long long)end_channel.count);
}

__attribute__((destructor)) static void count_at_very_end(void)
{
    if (end_channel.name)
        for (int i = 0; i < 1000; i++)
            nt_object_count(end_channel.object, NT_READ, 1);
}

static int at_exit(void)
{
    atexit(count_at_end);
    log_open();
    end_channel = channel_new("end", NT_EXCLUSIVE);
    channel_count(&end_channel, 1, 10);
    return EXIT_CODE;
}

/* ---- rights ---- */

static int drop_rights(void)
{
    log_open();
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE), shared = channel_new("shared", NT_SHARED);
    channel_count(&channel, 1, 100);
    int error = setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
    channel_count(&channel, 1, 100000);
    struct channel later = channel_new("later", NT_EXCLUSIVE);
    channel_count(&later, 1, 100);
    pthread_t thread;
    pthread_create(&thread, NULL, count_a_little, &shared);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        channel_count(&channel, 1, 100);
        channel_new("childs", NT_EXCLUSIVE);
        exit(9);
    }
    int status = child_status(child);
    truth_tell(&channel);
    truth_tell(&shared);
    truth_tell(&later);
    printf("rights %d child %d\n", error, status);
    return EXIT_CODE;
}

/* ---- others that have the log open ---- */

/* Tells that it runs, counts until its input ends, and counts a little more: the test does things meanwhile. */
static int until_told(void)
{
    static struct channel many[100];
    static char names[100][16];
    char byte;
    log_open();
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "many-%d", i);
        many[i] = channel_new(names[i], i % 2 ? NT_SHARED : NT_EXCLUSIVE);
    }
    printf("running\n");
    fflush(stdout);
    fcntl(0, F_SETFL, O_NONBLOCK);
    for (bool last = false; !last;) {
        last = read(0, &byte, 1) == 0;
        for (int i = 0; i < 100; i++)
            channel_count(&many[i], (uint64_t)i, 50);
    }
    for (int i = 0; i < 100; i++)
        truth_tell(&many[i]);
    printf("told\n");
    return EXIT_CODE;
}

static int unlinks(void)
{
    log_open();
    struct channel channel = channel_new("exclusive", NT_EXCLUSIVE);
    channel_count(&channel, 1, 10);
    unlink(nt_log_path(test_log));
    channel_count(&channel, 1, 100000);
    for (int i = 0; i < 1000; i++)
        channel_new("more", NT_EXCLUSIVE);
    pid_t child = fork();
    if (child == 0) {
        struct channel own = { .object = channel.object, .name = "exclusive" };
        channel_count(&own, 1, 10);
        truth_tell(&own);
        exit(9);
    }
    printf("unlink, child %d\n", child_status(child));
    return EXIT_CODE;
}

/* ---- closing while others count ---- */

static nt_object closing_objects[2];
static int closing_stop;

static void *closing_run(void *arg)
{
    uintptr_t which = (uintptr_t)arg;
    while (!__atomic_load_n(&closing_stop, __ATOMIC_RELAXED)) {
        nt_object object = { __atomic_load_n(&closing_objects[which % 2].handle, __ATOMIC_RELAXED) };
        for (int i = 0; i < 50; i++) {
            nt_object_count(object, NT_WRITE, 1);
            nt_object_count(object, 20 + (nt_kind)i, 1);
            nt_object_record(object, NT_READ, 1, NULL, 0);
        }
        if (which == 2)
            nt_object_close(channel_new("brief", NT_SHARED).object);
        nt_object_mask_set(object, nt_object_mask(object) ^ NT_MASK(NT_READ));
    }
    return NULL;
}

static void closing_start(pthread_t threads[3])
{
    log_open();
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, closing_run, (void *)i);
}

static void closing_close(void)
{
    for (int k = 0; k < 2; k++)
        __atomic_store_n(&closing_objects[k].handle, channel_new("x", (uint32_t)k).object.handle, __ATOMIC_RELAXED);
    usleep(300);
    nt_log_close(test_log);
}

static void closing_end(const pthread_t threads[3])
{
    __atomic_store_n(&closing_stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static int closing(void)
{
    pthread_t threads[3];
    closing_start(threads);
    closing_close();
    usleep(3000);
    closing_end(threads);
    printf("closed\n");
    return EXIT_CODE;
}

/* ---- which situation ---- */

static const struct situation {
    const char *name;
    int (*run)(void);
} situations[] = {
    { "plain", plain },
    { "full", full },
    { "locked", locked },
    { "crowded-forks", crowded_forks },
    { "handler-forks", handler_forks },
    { "handler-jumps", handler_jumps },
    { "close-all", close_all },
    { "execs", execs },
    { "vforks", vforks },
    { "many-threads", many_threads },
    { "first-thread-ends", first_thread_ends },
    { "at-exit", at_exit },
    { "drop-rights", drop_rights },
    { "until-told", until_told },
    { "unlinks", unlinks },
    { "closing", closing },
};

int main(int argc, char **argv)
{
    ssize_t size = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    own_path[size > 0 ? size : 0] = '\0';
    number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof(situations) / sizeof(situations[0]); i++)
        if (strcmp(argv[1], situations[i].name) == 0)
            return situations[i].run();
    fprintf(stderr, "h_law8: no such situation\n");
    return 2;
}
