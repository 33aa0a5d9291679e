/* SPDX-License-Identifier: BSD-3-Clause */
/* Every check of the header with a value that breaks it; files that are not what they seem; files that change
   while they are read; memory that must not be allocated. */
#include "source/live/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <nt/error.h>

#include "source/live/build.h"

static const struct live_map_owner anybody = { .any = true };

struct fixture {
    struct build build;
    int fd; /* of a memory file that holds the image */
    char path[64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_true(build_init(&fixture->build));
    fixture->fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(fixture->fd >= 0);
    (void)snprintf(fixture->path, sizeof fixture->path, "/proc/self/fd/%d", fixture->fd);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    build_fini(&fixture->build);
    (void)close(fixture->fd);
    free(fixture);
    return 0;
}

static int open_image(struct fixture *fixture, struct live_map *map, char text[LIVE_MAP_TEXT])
{
    assert_true(build_write(&fixture->build, fixture->fd));
    return live_map_open(map, AT_FDCWD, fixture->path, &anybody, text);
}

static void assert_opens(struct fixture *fixture, struct live_map *map)
{
    char text[LIVE_MAP_TEXT] = "";
    int error = open_image(fixture, map, text);
    assert_string_equal(text, "");
    assert_int_equal(error, 0);
}

static void opens_and_reads(void **state)
{
    struct fixture *fixture = *state;
    struct live_map map;
    (void)build_object(&fixture->build, 0, 1);
    assert_opens(fixture, &map);
    assert_int_equal(map.size, BUILD_SIZE);
    assert_int_equal(live_map_live(&map)->slots, 1);
    const struct nt_layout_object *object = live_map_at(&map, NT_REGION_OBJECTS, 0, sizeof *object);
    assert_non_null(object);
    assert_int_equal(object->generation, 1);
    /* inside, at the end, beyond, far beyond, around the address space */
    assert_non_null(live_map_at(&map, NT_REGION_OBJECTS, 4096 - 256, 256));
    assert_null(live_map_at(&map, NT_REGION_OBJECTS, 4096 - 255, 256));
    assert_null(live_map_at(&map, NT_REGION_OBJECTS, 4096, 1));
    assert_null(live_map_at(&map, NT_REGION_OBJECTS, UINT64_MAX - 100, 256));
    assert_null(live_map_at(&map, NT_REGION_OBJECTS, 256, UINT64_MAX - 100));
    assert_null(live_map_at(&map, (enum nt_layout_region_id)0, 0, 1)); /* no such region */
    assert_int_equal(live_map_state(&map), 0);
    live_map_close(&map);
    live_map_close(&map);
}

/* One thing that is wrong with a header, and what is said of it. */
struct flaw {
    const char *text;
    int error;
    size_t at, size; /* bytes of the header that are replaced */
    uint64_t value;
};

#define HEADER(member) offsetof(struct nt_layout_header, member), sizeof(((struct nt_layout_header *)0)->member)
#define REGION(n, member)                                                                \
    offsetof(struct nt_layout_header, regions) + (n) * sizeof(struct nt_layout_region) + \
        offsetof(struct nt_layout_region, member),                                       \
        sizeof(((struct nt_layout_region *)0)->member)

static const struct flaw flaws[] = {
    { "not a log: wrong magic at byte 0", -NT_EFORMAT, 0, 1, 'X' },
    { "not a log: wrong magic at byte 0", -NT_EFORMAT, 6, 1, 0 },
    { "log of version 7, this build reads 1", -NT_EVERSION, 7, 1, 7 },
    { "log of version 7, this build reads 1", -NT_EVERSION, HEADER(version), 7 },
    { "log of version 0, this build reads 1", -NT_EVERSION, HEADER(version), 0 },
    { "header of 4095 bytes, not 4096", -NT_EFORMAT, HEADER(header_size), 4095 },
    { "truncated: ends at byte 270336 of 274432", -NT_ETRUNCATED, HEADER(file_size), BUILD_SIZE + 4096 },
    { "size of 270337 bytes in the header is not possible", -NT_EFORMAT, HEADER(file_size), BUILD_SIZE + 1 },
    { "size of 4096 bytes in the header is not possible", -NT_EFORMAT, HEADER(file_size), 4096 },
    { "size of 0 bytes in the header is not possible", -NT_EFORMAT, HEADER(file_size), 0 },
    { "size of 18446744073709547520 bytes in the header is not possible", -NT_EFORMAT, HEADER(file_size),
      UINT64_MAX - 4095 },
    { "region 14 (given) lies outside of the file", -NT_EFORMAT, HEADER(file_size), BUILD_SIZE - 4096 },
    { "17 regions, at most 16 are possible", -NT_EFORMAT, HEADER(region_count), 17 },
    { "4294967295 regions, at most 16 are possible", -NT_EFORMAT, HEADER(region_count), UINT32_MAX },
    { "region 10 (records) is missing", -NT_EFORMAT, HEADER(region_count), 9 },
    { "region 2 (redo) is missing", -NT_EFORMAT, HEADER(region_count), 0 },
    { "region 6 (objects) is missing", -NT_EFORMAT, REGION(5, id), 77 },
    { "region 6 (objects) is missing", -NT_EFORMAT, REGION(5, id), 0 },
    { "region 6 (objects) has entries of 255 bytes, not 256", -NT_EFORMAT, REGION(5, entry_size), 255 },
    { "region 6 (objects) has entries of 0 bytes, not 256", -NT_EFORMAT, REGION(5, entry_size), 0 },
    { "region 4 (control) has entries of 16 bytes, not 8", -NT_EFORMAT, REGION(3, entry_size), 16 },
    { "region 12 (settlers) has entries of 255 bytes, not 256", -NT_EFORMAT, REGION(11, entry_size), 255 },
    { "region 13 (settlement) has entries of 64 bytes, not 4096", -NT_EFORMAT, REGION(12, entry_size), 64 },
    { "region 6 (objects) is not page-aligned", -NT_EFORMAT, REGION(5, offset), 65 * 64 },
    { "region 6 (objects) is not page-aligned", -NT_EFORMAT, REGION(5, size), 4095 },
    { "region 6 (objects) is too small", -NT_EFORMAT, REGION(5, size), 0 },
    { "region 2 (redo) is too small", -NT_EFORMAT, REGION(1, size), 12288 },
    { "region 10 (records) lies outside of the file", -NT_EFORMAT, REGION(9, size), BUILD_SIZE },
    { "region 10 (records) lies outside of the file", -NT_EFORMAT, REGION(9, size), UINT64_MAX - 4095 },
    { "region 10 (records) lies outside of the file", -NT_EFORMAT, REGION(9, offset), BUILD_SIZE + 4096 },
    { "region 10 (records) lies outside of the file", -NT_EFORMAT, REGION(9, offset), UINT64_MAX - 4095 },
    { "region 1 (bitmap) lies outside of the file", -NT_EFORMAT, REGION(0, offset), 4096 },
    { "region 1 (bitmap) lies outside of the file", -NT_EFORMAT, REGION(0, offset), 0 },
    { "regions 6 and 7 overlap", -NT_EFORMAT, REGION(5, size), 8192 },
    { "regions 5 and 6 overlap", -NT_EFORMAT, REGION(5, offset), 2 * 4096 + 4096 + 16384 + 2 * 4096 },
    { "regions 3 and 3 overlap", -NT_EFORMAT, REGION(4, id), 3 },
    { "string 0 of the header has 257 bytes, at most 256 are possible", -NT_EFORMAT, HEADER(string_size[0]), 257 },
    { "string 4 of the header has 65535 bytes, at most 64 are possible", -NT_EFORMAT, HEADER(string_size[4]), 65535 },
};

static void each_flaw_is_told(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        const struct flaw *flaw = &flaws[i];
        struct live_map map;
        char text[LIVE_MAP_TEXT] = "", expected[LIVE_MAP_TEXT];
        build_regions(&fixture->build);
        build_header(fixture->build.header);
        if (strstr(flaw->text, "regions 3 and 3") != NULL) {
            fixture->build.header->regions[4].entry_size = sizeof(struct nt_layout_kind);
        }
        memcpy(fixture->build.data + flaw->at, &flaw->value, flaw->size);
        int error = open_image(fixture, &map, text);
        (void)snprintf(expected, sizeof expected, "%s", flaw->text);
        assert_string_equal(text, expected);
        assert_int_equal(error, flaw->error);
        assert_null(map.base);
        live_map_close(&map);
        /* and from memory */
        memset(text, 0, sizeof text);
        assert_int_equal(live_map_open_memory(&map, fixture->build.data, BUILD_SIZE, text), flaw->error);
        assert_string_equal(text, expected);
    }
}

static void regions_of_other_versions_are_skipped(void **state)
{
    struct fixture *fixture = *state;
    struct live_map map;
    fixture->build.header->regions[0].id = 4000; /* the bitmap: not needed to read */
    assert_opens(fixture, &map);
    live_map_close(&map);
}

static void cut_at_every_length(void **state)
{
    struct fixture *fixture = *state;
    static const off_t sizes[] = { 0, 1, 7, 8, 100, 4095, 4096, 4097, 8192, BUILD_SIZE - 4096, BUILD_SIZE - 1 };
    assert_true(build_write(&fixture->build, fixture->fd));
    for (size_t i = sizeof sizes / sizeof *sizes; i-- > 0;) {
        struct live_map map;
        char text[LIVE_MAP_TEXT] = "";
        assert_int_equal(ftruncate(fixture->fd, sizes[i]), 0);
        int error = live_map_open(&map, AT_FDCWD, fixture->path, &anybody, text);
        assert_int_equal(error, sizes[i] >= 8 ? -NT_ETRUNCATED : -NT_EFORMAT);
        char where[32];
        (void)snprintf(where, sizeof where, "%lld", (long long)sizes[i]);
        assert_non_null(strstr(text, where));
    }
}

static void other_things_than_logs(void **state)
{
    (void)state;
    char directory[] = "/tmp/map_test.XXXXXX", text[LIVE_MAP_TEXT];
    const struct live_map_owner me = { .uid = geteuid() }, other = { .uid = geteuid() + 1 };
    struct live_map map;
    struct build build;
    assert_non_null(mkdtemp(directory));
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(fd, "directory", 0700), 0);
    assert_int_equal(symlinkat("log", fd, "link"), 0);
    int log = openat(fd, "log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(build_init(&build) && build_write(&build, log));
    assert_int_equal(live_map_open(&map, fd, "fifo", &me, text), -EINVAL);
    assert_string_equal(text, "not a regular file");
    assert_int_equal(live_map_open(&map, fd, "directory", &me, text), -EINVAL);
    assert_int_equal(live_map_open(&map, fd, "link", &me, text), -ELOOP);
    assert_int_equal(live_map_open(&map, fd, "none", &me, text), -ENOENT);
    assert_string_equal(text, "No such file or directory");
    assert_int_equal(live_map_open(&map, fd, "log", &other, text), -EPERM);
    assert_int_equal(live_map_open(&map, fd, "log", &me, text), 0);
    live_map_close(&map);
    assert_int_equal(live_map_open(&map, fd, "link", &anybody, text), 0);
    live_map_close(&map);
    assert_int_equal(linkat(fd, "log", fd, "second", 0), 0);
    assert_int_equal(live_map_open(&map, fd, "log", &me, text), -EPERM);
    assert_string_equal(text, "has 2 names, not one");
    build_fini(&build);
    static const char *const names[] = { "fifo", "link", "log", "second" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(unlinkat(fd, names[i], 0), 0);
    }
    assert_int_equal(unlinkat(fd, "directory", AT_REMOVEDIR), 0);
    (void)close(log);
    (void)close(fd);
    assert_int_equal(rmdir(directory), 0);
}

/* ---- Holes ---- */

static long blocks_of(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return status.st_blocks;
}

static void holes_are_not_touched(void **state)
{
    struct fixture *fixture = *state;
    const struct nt_layout_region *objects = &fixture->build.header->regions[5];
    struct live_map map;
    assert_true(build_write(&fixture->build, fixture->fd));
    assert_int_equal(fallocate(fixture->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)objects->offset,
                               (off_t)(objects->size + 4096)),
                     0);
    char text[LIVE_MAP_TEXT];
    assert_int_equal(live_map_open(&map, AT_FDCWD, fixture->path, &anybody, text), 0);
    long before = blocks_of(fixture->fd);
    assert_null(live_map_at(&map, NT_REGION_OBJECTS, 0, 256));
    assert_int_equal(live_map_next(&map, NT_REGION_OBJECTS, 256), 4096);
    assert_null(live_map_at(&map, NT_REGION_BLOCKS, 64, 64));
    assert_null(live_map_at(&map, NT_REGION_BLOCKS, 4000, 200)); /* half of it */
    assert_int_equal(live_map_next(&map, NT_REGION_BLOCKS, 64), 4096);
    assert_int_equal(live_map_next(&map, NT_REGION_BLOCKS, 5000), 5000);
    assert_non_null(live_map_at(&map, NT_REGION_BLOCKS, 4096, 64));
    assert_int_equal(blocks_of(fixture->fd), before);
    /* the program goes on and backs the page */
    assert_int_equal(pwrite(fixture->fd, "x", 1, (off_t)objects->offset), 1);
    const char *object = live_map_at(&map, NT_REGION_OBJECTS, 0, 256);
    assert_non_null(object);
    assert_int_equal(*object, 'x');
    live_map_close(&map);
}

/* A copy may lack pages of zeros. What the log says of them is believed near pages that are there. */
static void zeros_that_were_left_out(void **state)
{
    enum { RECORDS_PAGE = BUILD_RECORDS / 4096 };
    struct fixture *fixture = *state;
    struct live_map map;
    char text[LIVE_MAP_TEXT];
    for (int page = 6; page < 12; page++) { /* claimed, but for two */
        uint64_t number = (uint64_t)RECORDS_PAGE + (uint64_t)page;
        fixture->build.bitmap[number / 64] |= page == 9 ? 0 : UINT64_C(1) << number % 64;
    }
    memset(fixture->build.records, 1, BUILD_RING);
    assert_true(build_write(&fixture->build, fixture->fd));
    off_t offset = (off_t)fixture->build.header->regions[NT_REGION_RECORDS - 1].offset;
    assert_int_equal(fallocate(fixture->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset + 5 * 4096, 11 * 4096),
                     0);
    for (int any = 0; any < 2; any++) {
        const struct live_map_owner owner = { .any = any != 0, .uid = geteuid() };
        char path[64] = "/dev/shm/map_test.XXXXXX";
        int copy = mkstemp(path);
        assert_true(copy >= 0);
        assert_int_equal(ftruncate(copy, BUILD_SIZE), 0);
        for (uint32_t page = 0; page < BUILD_SIZE / 4096; page++) {
            uint8_t bytes[4096];
            bool there = page < RECORDS_PAGE + 5 || page >= RECORDS_PAGE + 16;
            assert_int_equal(pread(fixture->fd, bytes, sizeof bytes, page * (off_t)4096), sizeof bytes);
            assert_true(!there || pwrite(copy, bytes, sizeof bytes, page * (off_t)4096) == sizeof bytes);
        }
        assert_int_equal(live_map_open(&map, AT_FDCWD, path, &owner, text), 0);
        for (uint64_t page = 0; page < 16; page++) {
            /* within four pages of the fifth, or of the seventeenth */
            bool near = page >= 6 && page <= 8;
            bool wanted = page < 5 || (any && near);
            const uint8_t *at = live_map_at(&map, NT_REGION_RECORDS, page * 4096, 4096);
            assert_int_equal(at != NULL, wanted);
            assert_true(at == NULL || at[4095] == (page < 5));
            assert_int_equal(live_map_known(&map, NT_REGION_RECORDS, page * 4096), wanted);
        }
        assert_int_equal(blocks_of(copy), (BUILD_SIZE / 4096 - 11) * 8); /* and none is there for it */
        live_map_close(&map);
        (void)close(copy);
        (void)unlink(path);
    }
}

static void first_pages_missing(void **state)
{
    struct fixture *fixture = *state;
    struct live_map map;
    char text[LIVE_MAP_TEXT];
    assert_true(build_write(&fixture->build, fixture->fd));
    assert_int_equal(fallocate(fixture->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096), 0);
    assert_int_equal(live_map_open(&map, AT_FDCWD, fixture->path, &anybody, text), -NT_EFORMAT);
    assert_string_equal(text, "the first two pages are missing");
}

/* ---- Files that are cut while they are read ---- */

static void cut_under_the_mapping(void **state)
{
    struct fixture *fixture = *state;
    struct live_map map, other;
    (void)build_object(&fixture->build, 0, 1);
    assert_opens(fixture, &map);
    assert_opens(fixture, &other);
    const struct nt_layout_object *object = live_map_at(&map, NT_REGION_OBJECTS, 0, sizeof *object);
    assert_int_equal(live_load32(&object->generation), 1);
    assert_int_equal(ftruncate(fixture->fd, 8192), 0);
    assert_int_equal(live_load32(&object->generation), 0);
    assert_int_equal(live_map_state(&map), -NT_ETRUNCATED);
    /* what lies before the fault still stands, what lies behind is zeros, up to the last byte */
    assert_int_equal(live_map_live(&map)->slots, 1);
    assert_int_equal(map.base[map.size - 1], 0);
    assert_int_equal(live_map_state(&other), 0);
    assert_int_equal(other.base[other.size - 1], 0);
    assert_int_equal(live_map_state(&other), -NT_ETRUNCATED);
    live_map_close(&map);
    live_map_close(&other);
    /* an entry that is used again starts clean */
    assert_opens(fixture, &map);
    assert_int_equal(live_map_state(&map), 0);
    live_map_close(&map);
}

enum { CUT_THREADS = 4, CUT_TURNS = 200 };

static void *cut_often(void *arg)
{
    struct build *build = arg;
    for (int turn = 0; turn < CUT_TURNS; turn++) {
        char path[64], text[LIVE_MAP_TEXT];
        struct live_map map;
        int fd = memfd_create("log", MFD_CLOEXEC);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (!build_write(build, fd) || live_map_open(&map, AT_FDCWD, path, &anybody, text) != 0 ||
            ftruncate(fd, 4096L * (turn % 20)) != 0) {
            return "could not be set up";
        }
        uint8_t sum = 0;
        for (uint64_t at = 0; at < map.size; at += 1024) {
            sum = (uint8_t)(sum + *(const volatile uint8_t *)(map.base + at));
        }
        bool cut = live_map_state(&map) == -NT_ETRUNCATED;
        live_map_close(&map);
        (void)close(fd);
        if (!cut) {
            return "was not told";
        }
    }
    return NULL;
}

static void many_threads_many_cuts(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[CUT_THREADS];
    for (int i = 0; i < CUT_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, cut_often, &fixture->build), 0);
    }
    for (int i = 0; i < CUT_THREADS; i++) {
        void *problem;
        assert_int_equal(pthread_join(threads[i], &problem), 0);
        assert_null(problem);
    }
}

enum { BEFORE_DEFAULT, BEFORE_HANDLER, BEFORE_CIRCLE, BEFORE_WAYS, HANDLED = 77 };

static struct sigaction circle_saved;

static void handle_exit(int number)
{
    (void)number;
    _exit(HANDLED);
}

/* Hands everything to who was there before it. */
static void handle_circle(int number, siginfo_t *info, void *context)
{
    circle_saved.sa_sigaction(number, info, context);
}

/* In a child: puts a handler in place, then ours in front of it, then faults on something else. */
static void fault_elsewhere(struct fixture *fixture, int before, bool sent)
{
    struct live_map map;
    char text[LIVE_MAP_TEXT];
    struct sigaction action = { .sa_handler = before == BEFORE_HANDLER ? handle_exit : SIG_DFL };
    (void)sigaction(SIGBUS, &action, NULL);
    if (live_map_open(&map, AT_FDCWD, fixture->path, &anybody, text) != 0) {
        _exit(2);
    }
    if (before == BEFORE_CIRCLE) {
        action = (struct sigaction){ .sa_sigaction = handle_circle, .sa_flags = SA_SIGINFO };
        (void)sigaction(SIGBUS, &action, &circle_saved);
        if (live_map_open(&map, AT_FDCWD, fixture->path, &anybody, text) != 0) {
            _exit(2);
        }
    }
    int fd = memfd_create("other", MFD_CLOEXEC);
    const volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (sent) {
        (void)raise(SIGBUS);
    } else {
        (void)*page;
    }
    _exit(0);
}

/* A SIGBUS that is not ours still ends the process, or reaches who wanted it. */
static void other_faults_are_passed_on(void **state)
{
    struct fixture *fixture = *state;
    assert_true(build_write(&fixture->build, fixture->fd));
    for (int way = 0; way < 2 * BEFORE_WAYS; way++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)alarm(10);
            fault_elsewhere(fixture, way / 2, way % 2 != 0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (way / 2 == BEFORE_HANDLER) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), HANDLED);
        } else {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGBUS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opens_and_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(each_flaw_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(regions_of_other_versions_are_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_at_every_length, setup, teardown),
        cmocka_unit_test(other_things_than_logs),
        cmocka_unit_test_setup_teardown(holes_are_not_touched, setup, teardown),
        cmocka_unit_test_setup_teardown(zeros_that_were_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(first_pages_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_under_the_mapping, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_many_cuts, setup, teardown),
        cmocka_unit_test_setup_teardown(other_faults_are_passed_on, setup, teardown),
    };
    return cmocka_run_group_tests_name("source/live/map", tests, NULL, NULL);
}
