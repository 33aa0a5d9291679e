/* SPDX-License-Identifier: BSD-3-Clause */
/* The file: what its header says, that no descriptor stays open, that every page in use is marked, and what happens
   to it under the program. */
#include <pthread.h>

#include "log/log_test.h"

static void the_header_says_who(void **state)
{
    (void)state;
    struct log_identity identity;
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    nt_log *log;
    options.name = "name";
    options.node = "node";
    options.host = "host";
    options.clock_domain = "domain";
    options.cap_bytes = 3 << 20;
    options.ring_bytes = 32768;
    assert_int_equal(nt_log_open(&options, &log), 0);
    assert_int_equal(log_identity(&identity), 0);
    struct view view = view_open(nt_log_path(log));
    const struct nt_layout_header *header = view.header;
    assert_memory_equal(header->magic, "NTLOG\r\n\001", 8);
    assert_int_equal(header->version, 1);
    assert_int_equal(header->header_size, 4096);
    assert_int_equal(header->file_size, view.size);
    assert_int_equal(header->cap, 3 << 20);
    assert_int_equal(header->ring_bytes, 32768);
    assert_int_equal(header->pid, getpid());
    assert_int_equal(header->uid, geteuid());
    assert_int_equal(header->start_time, identity.start_time);
    assert_int_equal(header->pid_namespace, identity.pid_namespace);
    assert_memory_equal(header->boot_id, identity.boot_id, 16);
    assert_int_not_equal(header->id, 0);
    assert_int_equal(header->origin, 0);
    assert_string_equal(header->name, "name");
    assert_string_equal(header->node, "node");
    assert_string_equal(header->host, "host");
    assert_string_equal(header->domain, "domain");
    assert_string_equal(header->program, program_invocation_short_name);
    assert_int_equal(view.live->state, NT_STATE_RUNNING);
    assert_true(view.live->clock_pairs >= 1);
    assert_true(view.live->clock[0].ticks > 0 && view.live->clock[0].monotonic > 0);
    assert_true(view.live->clock[0].realtime > UINT64_C(1700000000000000000));
    view_close(&view);
    nt_log_close(log);
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void no_descriptor_stays_open(void **state)
{
    (void)state;
    unsigned before = descriptors();
    nt_log *log = test_log(0, 0);
    count_times(test_channel(log, "x"), NT_WRITE, 1, 100);
    assert_int_equal(descriptors(), before);
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.directory = "/proc/1/no";
    nt_log *none;
    assert_true(nt_log_open(&options, &none) < 0);
    options.name = "other";
    options.directory = test_directory;
    options.cap_bytes = UINT64_C(1) << 40; /* may or may not fit the address space */
    nt_log_open(&options, &none);
    assert_int_equal(descriptors(), before);
    nt_log_close(none);
    nt_log_close(log);
}

static bool is_marked(const struct view *view, uint64_t page)
{
    const uint64_t *bitmap = view_at(view, NT_REGION_BITMAP, 0);
    return bitmap[page / 64] >> page % 64 & 1;
}

static void assert_backed(const struct view *view, uint64_t cap)
{
    uint64_t backed = 0;
    for (uint64_t page = 0; page < view->size / NT_LAYOUT_PAGE; page++)
        backed += is_marked(view, page) ? NT_LAYOUT_PAGE : 0;
    assert_int_equal(view->live->backed, backed);
    assert_true(backed <= cap);
}

/* No page is used that has no bit, `backed` counts the bits, and the cap holds, whatever is done. */
static void every_page_in_use_is_marked(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 65536);
    struct view view = view_open(nt_log_path(log));
    static const unsigned char zero[NT_LAYOUT_PAGE];
    for (int i = 0; i < 3000; i++) {
        nt_object object = test_channel(log, "a name that takes a cell of its own");
        for (nt_kind kind = 1; kind < (nt_kind)(i % 9) + 2; kind++)
            nt_object_count(object, kind, 1);
        if (i % 3)
            nt_object_close(object);
    }
    for (uint64_t page = 0; page < view.size / NT_LAYOUT_PAGE; page++) {
        if (!is_marked(&view, page))
            assert_memory_equal(view.base + page * NT_LAYOUT_PAGE, zero, NT_LAYOUT_PAGE);
    }
    assert_backed(&view, 1 << 20);
    view_close(&view);
    nt_log_close(log);
}

enum { STEP = 16 }; /* pages, more than are kept for blocks */

struct taker { /* backs pages of its part of the file until the cap is reached */
    nt_log *log;
    pthread_barrier_t *start;
    uint64_t from, pages;
};

static void *taker_run(void *arg)
{
    const struct taker *taker = arg;
    struct log_map *map = &taker->log->map;
    pthread_barrier_wait(taker->start);
    for (uint64_t i = 0; i < taker->pages; i += STEP) {
        if (!log_back(map, map->base + (taker->from + i) * NT_LAYOUT_PAGE, STEP * NT_LAYOUT_PAGE))
            break;
    }
    return NULL;
}

/* Threads that take its last pages at the same time do not go beyond it, and leave none of it taken for nothing. */
static void the_cap_holds_for_all_threads(void **state)
{
    (void)state;
    enum { THREADS = 8, ROUNDS = 100 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        struct taker takers[THREADS];
        pthread_barrier_t start;
        nt_log *log = test_log(1 << 19, 65536);
        struct view view = view_open(nt_log_path(log));
        uint64_t part = view.size / NT_LAYOUT_PAGE / THREADS;
        assert_true(part * NT_LAYOUT_PAGE > (1 << 19) / 2);
        assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
        for (uint64_t i = 0; i < THREADS; i++) {
            takers[i] = (struct taker){ log, &start, i * part, part };
            assert_int_equal(pthread_create(&threads[i], NULL, taker_run, &takers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
        assert_backed(&view, 1 << 19);
        assert_true(view.live->backed + (1 << 19) / 32 + STEP * NT_LAYOUT_PAGE > 1 << 19);
        view_close(&view);
        nt_log_close(log);
    }
}

/* Programs are called whatever who starts them likes. */
static void programs_with_long_names(void **state)
{
    (void)state;
    static char name[100001];
    static const size_t sizes[] = { 63, 64, 65, 127, 500, 3000, 100000 };
    char *before = program_invocation_short_name;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(name, 'a' + (int)i, sizes[i]); /* unlike the others' */
        name[sizes[i]] = '\0';
        program_invocation_short_name = name;
        nt_log *log;
        nt_log_options options = NT_LOG_OPTIONS_INIT;
        char log_name[16];
        snprintf(log_name, sizeof(log_name), "log-%zu", i);
        options.name = i % 2 ? log_name : NULL;
        assert_int_equal(nt_log_open(&options, &log), 0);
        struct view view = view_open(nt_log_path(log));
        assert_int_equal(view.header->string_size[NT_HEADER_PROGRAM], sizes[i] < 64 ? sizes[i] : 64);
        assert_memory_equal(view.header->program, name, sizes[i] < 64 ? sizes[i] : 64);
        assert_int_equal(view.header->string_size[NT_HEADER_NAME], i % 2 ? 5 : 63);
        assert_int_equal(view.header->unused[0], 0);
        nt_object object = test_channel(log, "x");
        nt_object_count(object, NT_WRITE, 1);
        assert_sum(&view, object, NT_WRITE, 1, 1);
        view_close(&view);
        nt_log_close(log);
    }
    program_invocation_short_name = before;
}

static void odd_program_names_become_log_names(void **state)
{
    (void)state;
    static char name[] = ".a b/\xff(x)";
    char *before = program_invocation_short_name;
    nt_log *log;
    program_invocation_short_name = name;
    assert_int_equal(nt_log_open(NULL, &log), 0);
    assert_string_equal(log->settings.name, "_a_b___x_");
    nt_log_close(log);
    name[0] = '\0';
    assert_int_equal(nt_log_open(NULL, &log), 0);
    assert_string_equal(log->settings.name, "program");
    nt_log_close(log);
    program_invocation_short_name = before;
}

static void a_removed_file_harms_nobody(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 65536);
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    assert_int_equal(unlink(nt_log_path(log)), 0);
    count_times(object, NT_WRITE, 1, 10000);
    nt_object_count(test_channel(log, "y"), NT_WRITE, 1);
    assert_sum(&view, object, NT_WRITE, 10000, 10000);
    nt_log_close(log);
    assert_int_equal(view.live->state, NT_STATE_CLOSED);
    view_close(&view);
}

/* What has our name and is not ours is left as it is. */
static void a_file_in_the_way(void **state)
{
    (void)state;
    char path[LOG_PATH], bytes[3 * 4096] = "something else", read_back[3 * 4096];
    nt_log *log = test_log(0, 0);
    memcpy(path, nt_log_path(log), sizeof(path));
    nt_log_close(log);
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    options.name = "test";
    assert_int_equal(nt_log_open(&options, &log), -EEXIST);
    assert_string_equal(nt_log_path(log), "");
    assert_int_equal(pread(fd, read_back, sizeof(read_back), 0), sizeof(read_back));
    assert_memory_equal(bytes, read_back, sizeof(bytes));
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_int_equal(nt_log_open(&options, &log), -EPERM);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(the_header_says_who),         log_test(no_descriptor_stays_open),
        log_test(every_page_in_use_is_marked), log_test(the_cap_holds_for_all_threads),
        log_test(programs_with_long_names),    log_test(odd_program_names_become_log_names),
        log_test(a_removed_file_harms_nobody), log_test(a_file_in_the_way),
    };
    return cmocka_run_group_tests_name("log/file", tests, NULL, NULL);
}
