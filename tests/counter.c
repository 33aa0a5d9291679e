/* SPDX-License-Identifier: BSD-3-Clause */
/* counter LOG NODE RING: a program that counts as it is told, line by line, and answers each line with one of its own.
   RING is the bytes of a ring, 0 the default. It ends when its standard input does, `leave`: without closing its log.
     object PARENT shared|exclusive NAME   makes an object (PARENT - none); NAME in hex; answers its number
     count OBJECT KIND VALUE TIMES         counts on it
     session OBJECT ID                     sets its session
     fields OBJECT VALUE                   records one of the kind "order" with a field of each type
     new PARENT NAME                       makes a session; answers its id; NAME in hex
     end SESSION / stand SESSION           says so of a session
     join OBJECT SESSION VALUE             puts the message just read into a session
     remote OBJECT NODE PROCESS            says what is at the other end; both in hex
     mask OBJECT MASK                      sets its mask from inside
     close OBJECT / succeed OBJECT         ends it / begins its next epoch
     start OBJECT KIND MICROSECONDS        a thread that counts 1 and pauses, again and again
     stop                                  ends all threads
     tally OBJECT KIND                     answers count and total */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log.h>

enum { OBJECTS = 32768, THREADS = 8, LINE = 1024 };

struct thread {
    pthread_t id;
    nt_object object;
    nt_kind kind;
    unsigned pause;
};

static nt_log *log_;
static nt_kind order;
static nt_object objects[OBJECTS];
static int object_count;
static struct thread threads[THREADS];
static int thread_count;
static int stop; /* atomic */

static size_t parse_hex(const char *hex, char *ret_bytes, size_t room)
{
    size_t size = 0;
    for (; hex[0] && hex[1] && size < room; hex += 2) {
        char digits[3] = { hex[0], hex[1], 0 };
        ret_bytes[size++] = (char)strtoul(digits, NULL, 16);
    }
    return size;
}

static int declare(void)
{
    static const nt_field fields[] = {
        { "price", NT_FIELD_U64, 0 }, { "change", NT_FIELD_I64, 0 },  { "rate", NT_FIELD_F64, 0 },
        { "raw", NT_FIELD_BYTES, 0 }, { "note", NT_FIELD_STRING, 0 }, { "id", NT_FIELD_ID, 0 },
    };
    nt_kind_options options = NT_KIND_OPTIONS_INIT;
    options.name = "order";
    options.fields = fields;
    options.field_count = sizeof(fields) / sizeof(fields[0]);
    return nt_kind_new(log_, &options, &order);
}

static void record(nt_object object, uint64_t value)
{
    static const char raw[] = "\0\xff\x1b", note[] = "a\"\x1b[31m\xe2\x80\xae";
    const nt_value values[] = {
        { .as = { .u64 = UINT64_MAX }, .size = 0 },
        { .as = { .i64 = INT64_MIN }, .size = 0 },
        { .as = { .f64 = 0.1 }, .size = 0 },
        { .as = { .data = raw }, .size = sizeof raw - 1 },
        { .as = { .data = note }, .size = sizeof note - 1 },
        { .as = { .u64 = value }, .size = 0 },
    };
    nt_object_record(object, order, value, values, 6);
}

static nt_session session_new(uint64_t parent, const char *name)
{
    char bytes[LINE];
    bytes[parse_hex(name, bytes, sizeof bytes - 1)] = '\0';
    return nt_session_new(log_, bytes, parent);
}

static void remote(nt_object object, const char *node, const char *process)
{
    char nodes[256], processes[256];
    nodes[parse_hex(node, nodes, sizeof nodes - 1)] = '\0';
    processes[parse_hex(process, processes, sizeof processes - 1)] = '\0';
    (void)nt_object_remote_set(object, nodes, processes);
}

static void *run(void *arg)
{
    const struct thread *thread = arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        nt_object_count(thread->object, thread->kind, 1);
        if (thread->pause)
            usleep(thread->pause);
    }
    return NULL;
}

static int make(const char *parent, const char *discipline, const char *name)
{
    char bytes[NT_LAYOUT_NAME];
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    if (object_count == OBJECTS)
        return -1;
    options.name = bytes;
    options.name_size = parse_hex(name, bytes, sizeof bytes);
    options.discipline = strcmp(discipline, "shared") == 0 ? NT_SHARED : NT_EXCLUSIVE;
    if (parent[0] != '-')
        options.parent = objects[strtoul(parent, NULL, 10) % OBJECTS];
    objects[object_count] = nt_object_new(log_, &options);
    return object_count++;
}

static void start(nt_object object, nt_kind kind, unsigned pause)
{
    if (thread_count == THREADS)
        return;
    struct thread *thread = &threads[thread_count];
    *thread = (struct thread){ .object = object, .kind = kind, .pause = pause };
    thread_count += pthread_create(&thread->id, NULL, run, thread) == 0;
}

static void stop_all(void)
{
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    while (thread_count > 0)
        (void)pthread_join(threads[--thread_count].id, NULL);
    __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
}

static void tell(nt_object object, nt_kind kind)
{
    struct nt_layout_tally tally = { 0 };
    (void)nt_object_tally(object, kind, &tally);
    printf("%" PRIu64 " %" PRIu64 "\n", tally.sum.count, tally.sum.total);
}

/* Commands about sessions and ends. Whether it was one. */
static bool obey_session(const char *command, char words[4][LINE], const uint64_t numbers[4])
{
    nt_object object = objects[numbers[0] % OBJECTS];
    if (strcmp(command, "new") == 0)
        printf("%" PRIu64 "\n", session_new(numbers[0], words[1]));
    else if (strcmp(command, "end") == 0)
        nt_session_end(log_, numbers[0]);
    else if (strcmp(command, "stand") == 0)
        nt_session_stand(log_, numbers[0]);
    else if (strcmp(command, "join") == 0)
        nt_object_session_join(object, numbers[1], numbers[2]);
    else if (strcmp(command, "remote") == 0)
        remote(object, words[1], words[2]);
    else
        return false;
    if (strcmp(command, "new") != 0)
        puts("ok");
    return true;
}

/* Words behind the command; numbers of those that are. */
static void obey(const char *command, char words[4][LINE], const uint64_t numbers[4])
{
    nt_object *object = &objects[numbers[0] % OBJECTS];
    nt_kind kind = (nt_kind)numbers[1];
    if (obey_session(command, words, numbers))
        return;
    if (strcmp(command, "object") == 0) {
        printf("%d\n", make(words[0], words[1], words[2]));
        return;
    }
    if (strcmp(command, "tally") == 0) {
        tell(*object, kind);
        return;
    }
    if (strcmp(command, "count") == 0) {
        for (uint64_t i = 0; i < numbers[3]; i++)
            nt_object_count(*object, kind, numbers[2]);
    } else if (strcmp(command, "session") == 0) {
        nt_object_session_set(*object, numbers[1]);
    } else if (strcmp(command, "fields") == 0) {
        record(*object, numbers[1]);
    } else if (strcmp(command, "mask") == 0) {
        nt_object_mask_set(*object, numbers[1]);
    } else if (strcmp(command, "close") == 0) {
        nt_object_close(*object);
    } else if (strcmp(command, "succeed") == 0) {
        *object = nt_object_succeed(*object);
    } else if (strcmp(command, "start") == 0) {
        start(*object, kind, (unsigned)numbers[2]);
    } else if (strcmp(command, "stop") == 0) {
        stop_all();
    } else if (strcmp(command, "leave") == 0) {
        _exit(0);
    } else {
        puts("unknown");
        return;
    }
    puts("ok");
}

int main(int argc, char **argv)
{
    char line[LINE];
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    if (argc != 4)
        return 2;
    options.name = argv[1];
    options.node = argv[2];
    options.ring_bytes = strtoull(argv[3], NULL, 0);
    if (nt_log_open(&options, &log_) < 0 || declare() < 0)
        return 1;
    puts("ready");
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        char command[LINE] = "", words[4][LINE] = { "", "", "", "" };
        uint64_t numbers[4];
        (void)sscanf(line, "%1023s %1023s %1023s %1023s %1023s", command, words[0], words[1], words[2], words[3]);
        for (int i = 0; i < 4; i++)
            numbers[i] = strtoull(words[i], NULL, 0);
        obey(command, words, numbers);
        (void)fflush(stdout);
    }
    stop_all();
    nt_log_close(log_);
    return 0;
}
