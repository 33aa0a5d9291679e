/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that log every 20 µs into small rings, several threads, while readers poll: h_ring RING-BYTES
   MILLISECONDS. Two readers read all rings by the protocol of docs/format.md: a thread of this process, always at the
   oldest place that is allowed, where writers are on its heels; and a child forked before the log was opened, which
   follows. Each accepted record must be one that was written: its fields follow from each other; and who follows
   misses none unless it was overtaken. Prints one line a reader and one for the sums; exit code 1 if anything was
   wrong. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nt/log.h>

enum { WRITERS = 3, RINGS = 64, OBJECTS = 16, HANDLER_EVERY_NS = 20000 };

/* ---- what is written ---- */

/* An own object's i-th event measures i: count = value, total = i (i + 1) / 2, argument = ~i. On the shared one every
   event measures 5 and has argument 55. An event with fields on an own object holds its value in each byte. */
struct writer {
    nt_object own, in_handler;
    uint64_t events, handler_events, data_events;
    timer_t timer;
};

static nt_log *test_log;
static nt_object shared_object;
static uint64_t shared_events;
static nt_kind data_kind;
static struct writer writers[WRITERS];
static __thread struct writer *my_writer;
static int stop;

static void shared_count(void)
{
    nt_object_count_with(shared_object, NT_WRITE, 5, 55);
    __atomic_fetch_add(&shared_events, 1, __ATOMIC_RELAXED);
}

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    struct writer *writer = my_writer;
    if (!writer)
        return;
    for (int i = 0; i < 2; i++) {
        uint64_t value = ++writer->handler_events;
        nt_object_count_with(writer->in_handler, NT_READ, value, ~value);
    }
    shared_count();
}

static void data_count(struct writer *writer)
{
    unsigned char bytes[700];
    uint64_t value = ++writer->data_events;
    nt_value field = { .as = { .data = bytes }, .size = 1 + value % sizeof(bytes) };
    memset(bytes, (int)(value & 0xff), field.size);
    nt_object_record(writer->own, data_kind, value, &field, 1);
}

static void *writer_run(void *arg)
{
    struct writer *writer = arg;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
    const struct itimerspec often = { { 0, HANDLER_EVERY_NS }, { 0, HANDLER_EVERY_NS } };
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    my_writer = writer;
    if (timer_create(CLOCK_MONOTONIC, &event, &writer->timer) != 0)
        return (void *)1;
    timer_settime(writer->timer, 0, &often, NULL);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 100; i++) {
            uint64_t value = ++writer->events;
            nt_object_count_with(writer->own, NT_WRITE, value, ~value);
        }
        shared_count();
        data_count(writer);
    }
    timer_delete(writer->timer);
    return NULL;
}

/* ---- reading ---- */

struct reader {
    const unsigned char *base;
    const struct nt_layout_live *live;
    const struct nt_layout_ring *rings;
    const unsigned char *records;
    uint64_t next[RINGS], reserved[RINGS];
    uint64_t dropped;          /* by all rings */
    uint64_t gaps_to[RINGS];   /* what was dropped may be missing up to this position and right behind; 0: nothing is */
    uint64_t last[OBJECTS][4]; /* count of the last event by object and kind; 0: not known */
    uint64_t accepted, rejected, data, torn, backwards, missed;
    bool oldest;
};

static bool reader_open(struct reader *reader, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    reader->base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (reader->base == MAP_FAILED)
        return false;
    const struct nt_layout_header *header = (const void *)reader->base;
    reader->live = (const void *)(reader->base + NT_LAYOUT_PAGE);
    for (uint32_t i = 0; i < header->region_count; i++) {
        if (header->regions[i].id == NT_REGION_RINGS)
            reader->rings = (const void *)(reader->base + header->regions[i].offset);
        if (header->regions[i].id == NT_REGION_RECORDS)
            reader->records = reader->base + header->regions[i].offset;
    }
    for (int i = 0; i < RINGS; i++)
        reader->next[i] = NT_LAYOUT_COMMIT(UINT64_C(0), 0) ? 0 : NT_LAYOUT_SLOT; /* slot number 0 is never used */
    return reader->rings && reader->records;
}

/* A slot's words, copied while others may write them. */
static void slot_copy(uint64_t to[8], const unsigned char *at)
{
    const uint64_t *from = (const void *)at;
    for (int i = 0; i < 8; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static bool payload_good(uint64_t slots[][8], uint32_t count, uint64_t value, uint32_t size)
{
    unsigned char bytes[80 * 56];
    uint16_t kept;
    for (uint32_t i = 1; i < count && i <= 80; i++) {
        memcpy(bytes + (i - 1) * 56, &slots[i][0], 8);
        memcpy(bytes + (i - 1) * 56 + 8, &slots[i][2], 48);
    }
    memcpy(&kept, bytes, sizeof(kept));
    if (kept != 1 + value % 700 || size != kept + 2u)
        return false;
    for (uint32_t i = 2; i < size; i++)
        if (bytes[i] != (value & 0xff))
            return false;
    return true;
}

static bool counted_good(const struct nt_layout_record *record)
{
    uint64_t value = record->value;
    if (value == 5 && record->argument == 55)
        return record->sum.total == 5 * record->sum.count;
    return record->sum.count == value && record->argument == ~value && record->sum.total == value * (value + 1) / 2;
}

static bool event_good(uint64_t slots[][8], uint32_t count)
{
    struct nt_layout_record record;
    memcpy(&record, slots[0], sizeof(record));
    uint32_t kind = record.commit & 0xff;
    uint64_t value = record.value;
    if (kind == NT_LAYOUT_CONTINUATION) /* of an event whose head is overwritten */
        return true;
    if (!record.time || record.session)
        return false;
    if (kind == NT_OPEN || kind == NT_CLOSE)
        return record.sum.count == 1 && record.sum.total == 0;
    if (kind == data_kind)
        return record.sum.count == value && record.sum.total == value * (value + 1) / 2 &&
               payload_good(slots, count, value, (uint32_t)record.argument);
    return (kind == NT_WRITE || kind == NT_READ) && counted_good(&record);
}

/* The event at a position: how many slots it has, 0 if it is not written (yet). */
static uint32_t event_read(const unsigned char *base, uint64_t size, uint64_t position, uint64_t slots[][8])
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *at = base + ((position + i * 64) & (size - 1));
        const struct nt_layout_record *record = (const void *)at;
        uint64_t commit = __atomic_load_n(&record->commit, __ATOMIC_ACQUIRE);
        bool continues = (commit & 0xff) == NT_LAYOUT_CONTINUATION;
        if (commit >> 16 != (NT_LAYOUT_COMMIT(position, 0) >> 16) + i || (i > 0 && !continues))
            return 0;
        slot_copy(slots[i], at);
        if (i == 0 && commit >> 8 & NT_RECORD_DATA)
            count = (uint32_t)(slots[0][6] >> 32);
        if (!count || count > 80)
            return 0;
    }
    return count;
}

/* Whether the event at that position may stand behind a gap. A drop is seen at once, the gap only where it is in its
   ring: anywhere up to the first event that was not reserved yet; and who drops may go on in another ring, which may be
   read earlier than what is left in the first. */
static bool follows_gap(struct reader *reader, uint32_t number, uint64_t position)
{
    uint64_t dropped = 0;
    uint32_t rings = __atomic_load_n(&reader->live->rings, __ATOMIC_ACQUIRE);
    rings = rings < RINGS ? rings : RINGS;
    for (uint32_t i = 0; i < rings; i++)
        dropped += __atomic_load_n(&reader->rings[i].dropped, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < rings && dropped != reader->dropped; i++)
        reader->gaps_to[i] = __atomic_load_n(&reader->rings[i].reserved, __ATOMIC_ACQUIRE) + 1;
    reader->dropped = dropped;
    if (!reader->gaps_to[number])
        return false;
    memset(reader->last, 0, sizeof(reader->last));
    if (position < reader->gaps_to[number])
        return true;
    reader->gaps_to[number] = 0;
    return false;
}

/* Events of an own object come in the order of their counts. */
static void follow_count(struct reader *reader, uint32_t number, uint64_t position, const uint64_t slot[8])
{
    struct nt_layout_record record;
    memcpy(&record, slot, sizeof(record));
    uint32_t kind = record.commit & 0xff, object = record.object & 0xfffffff;
    if (follows_gap(reader, number, position))
        return;
    if (object >= OBJECTS || (record.value == 5 && record.argument == 55))
        return;
    uint64_t *last = &reader->last[object][kind == data_kind ? 3 : kind & 3];
    if (kind == NT_WRITE || kind == NT_READ || kind == data_kind) {
        reader->missed += *last && record.sum.count != *last + 1;
        *last = record.sum.count;
    }
}

/* One step in a ring; false: nothing more to be had now. */
static bool ring_step(struct reader *reader, uint32_t number)
{
    static __thread uint64_t slots[81][8];
    const struct nt_layout_ring *ring = &reader->rings[number];
    const unsigned char *base = reader->records + ring->offset;
    uint64_t position = reader->next[number], size = ring->size, chunk = ring->chunk;
    uint64_t reserved = __atomic_load_n(&ring->reserved, __ATOMIC_ACQUIRE);
    reader->backwards += reserved < reader->reserved[number];
    reader->reserved[number] = reserved;
    if (position >= reserved)
        return false;
    if (reserved > (position & ~(chunk - 1)) + size) { /* overwritten: on with the oldest that is safe */
        reader->next[number] = reserved - size + (reader->oldest ? 0 : chunk);
        reader->rejected++;
        memset(reader->last, 0, sizeof(reader->last));
        return true;
    }
    uint32_t count = event_read(base, size, position, slots);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    reserved = __atomic_load_n(&ring->reserved, __ATOMIC_RELAXED);
    if (reserved > (position & ~(chunk - 1)) + size)
        return true; /* whatever it was */
    if (!count)      /* a slot that is not written, and later ones may be: a handler's while its event is open */
        return false;
    reader->accepted++;
    reader->data += count > 1;
    reader->torn += !event_good(slots, count);
    if (!reader->oldest)
        follow_count(reader, number, position, slots[0]);
    reader->next[number] = position + count * 64;
    return true;
}

static void reader_follow(struct reader *reader)
{
    uint32_t rings = __atomic_load_n(&reader->live->rings, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < rings && i < RINGS; i++) {
        if (reader->oldest && reader->reserved[i] > reader->rings[i].size)
            reader->next[i] = reader->reserved[i] - reader->rings[i].size;
        for (int steps = 0; steps < (reader->oldest ? 16 : 1000) && ring_step(reader, i); steps++)
            ;
    }
}

static int reader_end(const struct reader *reader, const char *name)
{
    bool good = !reader->torn && !reader->backwards && !reader->missed && reader->accepted > 1000 &&
                (reader->data > 10 || reader->oldest); /* longer ones are gone before one on their heels has them */
    printf("%s: %s\n", name, good ? "good" : "bad");
    fprintf(stderr, "%s: accepted %llu (%llu with fields) torn %llu missed %llu overtaken %llu backwards %llu\n", name,
            (unsigned long long)reader->accepted, (unsigned long long)reader->data, (unsigned long long)reader->torn,
            (unsigned long long)reader->missed, (unsigned long long)reader->rejected,
            (unsigned long long)reader->backwards);
    fflush(stdout);
    return good ? 0 : 1;
}

static void *reader_run(void *arg)
{
    struct reader *reader = arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        reader_follow(reader);
    return NULL;
}

/* The child: gets the path, reads until the pipe is closed. */
static int reader_process(int fd)
{
    static struct reader reader;
    char path[512];
    if (read(fd, path, sizeof(path)) <= 0 || !reader_open(&reader, path))
        return 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (read(fd, path, 1) != 0)
        reader_follow(&reader);
    return reader_end(&reader, "process");
}

/* ---- sums ---- */

static int sum_bad(nt_object object, nt_kind kind, uint64_t count, uint64_t total)
{
    struct nt_layout_tally tally;
    if (nt_object_tally(object, kind, &tally) == 0 && tally.sum.count == count && tally.sum.total == total)
        return 0;
    fprintf(stderr, "kind %u: count %llu total %llu, wanted %llu %llu\n", kind, (unsigned long long)tally.sum.count,
            (unsigned long long)tally.sum.total, (unsigned long long)count, (unsigned long long)total);
    return 1;
}

static int sums_bad(void)
{
    int bad = sum_bad(shared_object, NT_WRITE, shared_events, shared_events * 5);
    for (int i = 0; i < WRITERS; i++) {
        uint64_t n = writers[i].events, h = writers[i].handler_events, d = writers[i].data_events;
        bad += sum_bad(writers[i].own, NT_WRITE, n, n * (n + 1) / 2);
        bad += sum_bad(writers[i].in_handler, NT_READ, h, h * (h + 1) / 2);
        bad += sum_bad(writers[i].own, data_kind, d, d * (d + 1) / 2);
        bad += h < 100; /* the handlers did run */
    }
    return bad;
}

static nt_object object_new(const char *name, uint32_t discipline)
{
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = name;
    options.discipline = discipline;
    return nt_object_new(test_log, &options);
}

static bool log_open(uint64_t ring_bytes)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_kind_options kind_options = NT_KIND_OPTIONS_INIT;
    const nt_field field = { "data", NT_FIELD_BYTES, 0 };
    options.ring_bytes = ring_bytes;
    if (nt_log_open(&options, &test_log) != 0)
        return false;
    kind_options.name = "data";
    kind_options.fields = &field;
    kind_options.field_count = 1;
    nt_kind_new(test_log, &kind_options, &data_kind);
    shared_object = object_new("shared", NT_SHARED);
    for (int i = 0; i < WRITERS; i++) {
        writers[i].own = object_new("own", NT_EXCLUSIVE);
        writers[i].in_handler = object_new("in-handler", NT_EXCLUSIVE);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct reader reader = { .oldest = true };
    pthread_t threads[WRITERS], reading;
    int pipes[2], status = 0;
    if (argc < 3 || pipe2(pipes, O_CLOEXEC) != 0)
        return 2;
    data_kind = NT_LAYOUT_USER_KIND;
    pid_t child = fork();
    if (child == 0) {
        close(pipes[1]);
        return reader_process(pipes[0]);
    }
    close(pipes[0]);
    const struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigaction(SIGUSR1, &action, NULL);
    if (!log_open(strtoull(argv[1], NULL, 10)) || !reader_open(&reader, nt_log_path(test_log)) ||
        write(pipes[1], nt_log_path(test_log), strlen(nt_log_path(test_log)) + 1) < 0)
        return 2;
    pthread_create(&reading, NULL, reader_run, &reader);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writer_run, &writers[i]);
    usleep((useconds_t)strtoul(argv[2], NULL, 10) * 1000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(reading, NULL);
    close(pipes[1]);
    waitpid(child, &status, 0);
    int bad = sums_bad();
    printf("sums: %s\n", bad ? "bad" : "good");
    return reader_end(&reader, "thread") || bad || status ? 1 : 0;
}
