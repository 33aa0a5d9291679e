/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums by session as they are read from logs that the library writes: of one at rest, of one that was killed, and of
   one that stands still at any instruction they are what the independent view of the file says. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "source/live/build.h"
#include "source/live/session_test.h"

/* ---- At rest ---- */

static void what_the_view_says(uint64_t cap, uint32_t sessions, bool *ret_given)
{
    uint64_t seed = seed_new();
    struct program *program = program_new(seed, cap, sessions);
    struct reader *reader = reader_new(nt_log_path(program->log));
    struct view view = view_open(nt_log_path(program->log));
    for (int turn = 0; turn < turns(20); turn++) {
        for (int i = 0; i < 1 + turn * 4; i++) {
            program_go(program);
        }
        read_all(reader);
        check_view(reader, &view);
        check_whole(reader);
        assert_true(told_of(reader, 0, false)->exact);
    }
    struct outcome outcome = { 0 };
    truth_begin(program);
    *ret_given = reader->given || told_of(reader, 0, true) != NULL;
    if (!*ret_given) {
        check_truth(reader, program, &outcome);
        assert_int_equal(outcome.least + outcome.none_most, 0);
    }
    view_close(&view);
    reader_free(reader);
    program_free(program);
}

static void at_rest(void **state)
{
    (void)state;
    bool given = true;
    what_the_view_says(1 << 22, 60, &given);
    assert_false(given);
    what_the_view_says(1 << 23, SESSIONS, &given);
    assert_false(given);
}

/* ---- Killed ---- */

struct child {
    uint64_t steps;
    uint64_t stop; /* after so many steps it does, and is traced, and goes on alone; 0: never */
    char path[LOG_PATH];
};

static void child_run(struct child *child, uint64_t seed, bool tight)
{
    struct program *program = program_new(seed, 1 << 20, SESSIONS);
    (void)snprintf(child->path, sizeof child->path, "%s", nt_log_path(program->log));
    program->at_once = 300;
    if (tight) {
        program->log->map.live->settlement_backed = program->log->map.header->cap / 4;
    }
    for (;;) {
        program_go(program);
        __atomic_store_n(&child->steps, program->steps, __ATOMIC_SEQ_CST);
        if (child->stop != 0 && program->steps >= child->stop) {
            (void)ptrace(PTRACE_TRACEME, 0, 0, 0);
            (void)raise(SIGSTOP);
            for (;;) {
                step(program);
            }
        }
    }
}

/* Wherever a program ended, the reader finds what the view finds. */
static void killed(void **state)
{
    (void)state;
    struct child *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child != MAP_FAILED);
    uint64_t random = seed_new();
    print_message("# seed %lu\n", random);
    for (int turn = 0; turn < turns(40); turn++) {
        uint64_t seed = chance(&random), enough = 500 + chance(&random) % 20000;
        child->steps = child->stop = 0;
        (void)fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            child_run(child, seed, turn % 2 != 0);
        }
        while (__atomic_load_n(&child->steps, __ATOMIC_SEQ_CST) < enough) {
            (void)usleep(50);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        struct view view = view_open(child->path);
        struct reader *reader = reader_new(child->path);
        read_all(reader);
        check_view(reader, &view);
        check_whole(reader);
        reader_free(reader);
        view_close(&view);
        (void)unlink(child->path);
    }
    (void)munmap(child, sizeof *child);
}

/* The same where it stands still at any instruction. */
static void stepped(uint64_t seed, bool tight, struct child *child)
{
    int status;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        child->stop = 200 + seed % 3000;
        child_run(child, seed, tight);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    struct view view = view_open(child->path);
    struct reader *reader = reader_new(child->path);
    for (int i = 0; i < turns(20000) && WIFSTOPPED(status); i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (chance(&seed) % 32 == 0) {
            read_all(reader);
            check_view(reader, &view);
            check_whole(reader);
        }
    }
    reader_free(reader);
    view_close(&view);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)unlink(child->path);
}

static void at_any_instruction(void **state)
{
    (void)state;
    struct child *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child != MAP_FAILED);
    uint64_t random = seed_new();
    print_message("# seed %lu\n", random);
    for (int turn = 0; turn < turns(4); turn++) {
        stepped(chance(&random), turn % 2 != 0, child);
    }
    (void)munmap(child, sizeof *child);
}

/* So many that their cells find no room: what was given up is with the parents and in `older`, and is known of. */
static void beyond_the_room(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct reader *reader = reader_new(nt_log_path(log));
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    log->map.live->settlement_backed = log->map.header->cap / 4; /* no more groups */
    for (uint64_t i = 0; i < 6000; i++) {
        nt_session own = i % 4 == 0 ? nt_session_new(log, "own", 0) : 0;
        own = i % 4 == 1 ? nt_session_new(log, "part", UINT64_C(0x1234000000000001)) : own;
        nt_object_session_set(object, own != 0 ? own : UINT64_C(0x5000000000000000) + i % 1000);
        nt_object_count(object, NT_WRITE, i);
        if (i % 500 == 499) {
            read_all(reader);
            check_view(reader, &view);
            check_whole(reader);
        }
    }
    assert_true(reader->given);
    assert_non_null(told_of(reader, 0, true));
    size_t exact = 0, least = 0;
    for (size_t i = 0; i < reader->told_count; i++) {
        exact += reader->told[i].exact;
        least += !reader->told[i].exact;
    }
    assert_true(exact > 0 && least > 500); /* how many are exact hangs on the ids: some 20 to 90 */
    view_close(&view);
    reader_free(reader);
    nt_log_close(log);
}

static void names_parents_and_ends(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct reader *reader = reader_new(nt_log_path(log));
    nt_session root = nt_session_new(log, "GET /", 0), part = nt_session_new(log, "part\n", root);
    nt_session without = nt_session_new(log, NULL, UINT64_MAX);
    nt_session_stand(log, root);
    nt_session_end(log, part);
    nt_object object = test_channel(log, "x");
    nt_object_session_set(object, UINT64_MAX);
    nt_object_count(object, NT_WRITE, UINT64_MAX);
    read_all(reader);
    const struct told_session *told = told_of(reader, root, false);
    assert_true(told->known && told->exact && told->standing && !told->ended && told->parent == 0);
    assert_string_equal(told->name, "GET /");
    told = told_of(reader, part, false);
    assert_true(told->known && !told->standing && told->ended && told->parent == root);
    assert_string_equal(told->name, "part\n");
    told = told_of(reader, without, false);
    assert_true(told->known && told->parent == UINT64_MAX);
    assert_string_equal(told->name, "");
    told = told_of(reader, UINT64_MAX, false);
    assert_true(!told->known && told->exact);
    struct nt_layout_pair sum = session_sum(&reader->sums, UINT64_MAX, NT_WRITE, false);
    assert_int_equal(sum.count, 1);
    assert_int_equal(sum.total, UINT64_MAX);
    assert_int_equal(reader->told_count, 5);
    /* The name alone, without a look at all of them; also of one that was made since. */
    char room[NT_SOURCE_SESSION_NAME];
    nt_session later = nt_session_new(log, "later", 0);
    assert_int_equal(live_session_name(&reader->map, root, room), 5);
    assert_memory_equal(room, "GET /", 5);
    assert_int_equal(live_session_name(&reader->map, later, room), 5);
    assert_memory_equal(room, "later", 5);
    assert_int_equal(live_session_name(&reader->map, without, room), 0);
    assert_int_equal(live_session_name(&reader->map, later + 1, room), 0);
    assert_int_equal(live_session_name(&reader->map, later ^ UINT64_C(1) << 63, room), 0);
    assert_int_equal(live_session_name(&reader->map, UINT64_MAX, room), 0);
    assert_int_equal(live_session_name(&reader->map, 0, room), 0);
    reader_free(reader);
    nt_log_close(log);
}

/* Somebody was long at a place while others made so many that it was another's: it keeps its own, and says so. */
static void a_session_in_the_place_of_a_later_one(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 0);
    struct reader *reader = reader_new(nt_log_path(log));
    const uint32_t places = log->map.session_max;
    nt_session made[5], later = 0;
    for (int i = 0; i < 5; i++)
        made[i] = nt_session_new(log, "early", 0);
    log->map.sessions[3].flags |= 128; /* WRITTEN, of src/log/session.c */
    for (uint32_t i = 5; i < places + 5; i++)
        later = nt_session_new(log, "late", 0);
    log->map.sessions[3].flags &= 127;
    read_all(reader);
    assert_int_equal(reader->told_count, 1 + places);
    const struct told_session *told = told_of(reader, made[3], false);
    assert_true(told->known && told->overdue);
    assert_string_equal(told->name, "early");
    size_t overdue = 0;
    for (size_t i = 0; i < reader->told_count; i++)
        overdue += reader->told[i].overdue;
    assert_int_equal(overdue, 1);
    assert_true(told_of(reader, later, false)->known && !told_of(reader, later, false)->overdue);
    reader_free(reader);
    nt_log_close(log);
}

/* Sums for which there is no room go to none, which says so too. */
static void without_any_room(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct view view = view_open(nt_log_path(log));
    struct reader *reader = reader_new(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    nt_object_count(object, NT_WRITE, 1);
    read_all(reader);
    assert_true(told_of(reader, 0, false)->exact);
    ((struct nt_layout_live *)(void *)(view.base + NT_LAYOUT_PAGE))->settlement_pages = INT32_MAX;
    nt_object_session_set(object, 5);
    nt_object_count(object, NT_WRITE, 10);
    nt_object_session_set(object, 0);
    read_all(reader);
    assert_int_equal(session_sum(&reader->sums, 0, NT_WRITE, false).count, 2);
    const struct told_session *none = told_of(reader, 0, false);
    assert_true(none->got && !none->given);
    reader_free(reader);
    view_close(&view);
    nt_log_close(log);
}

/* A copy may lack pages of zeros. */
static void read_from_a_copy(void **state)
{
    (void)state;
    static const unsigned char zeros[NT_LAYOUT_PAGE];
    nt_log *log = test_log(1 << 20, 16384);
    nt_object object = test_channel(log, "x");
    for (uint64_t i = 0; i < 300; i++) {
        nt_object_session_set(object, 1 + i % 100);
        nt_object_count(object, NT_WRITE, i);
    }
    struct view view = view_open(nt_log_path(log));
    char path[128];
    (void)snprintf(path, sizeof path, "%s/copy", test_directory);
    int copy = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(copy >= 0);
    assert_int_equal(ftruncate(copy, (off_t)view.size), 0);
    for (size_t at = 0; at < view.size; at += sizeof zeros) {
        if (memcmp(view.base + at, zeros, sizeof zeros) != 0) {
            assert_int_equal(pwrite(copy, view.base + at, sizeof zeros, (off_t)at), sizeof zeros);
        }
    }
    (void)close(copy);
    struct reader *reader = reader_new(path);
    read_all(reader);
    check_view(reader, &view);
    check_whole(reader);
    reader_free(reader);
    view_close(&view);
    nt_log_close(log);
}

/* ---- Cells ---- */

static struct nt_layout_cell *cell_of(const struct view *view, const struct nt_layout_settler *settler,
                                      uint64_t session, uint32_t kind)
{
    struct nt_layout_cell *cells = view_at(view, NT_REGION_SETTLEMENT, settler->extent[0]);
    for (uint32_t i = 0; i < NT_LAYOUT_CELLS; i++) {
        if (cells[i].session == session && (cells[i].state & 0xff) == kind) {
            return &cells[i];
        }
    }
    return NULL;
}

/* A thread ended while it changed a cell: what the cell would have is in the redo area. */
static void left_busy(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct reader *reader = reader_new(nt_log_path(log));
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    for (uint64_t i = 0; i < 200; i++) {
        nt_object_session_set(object, 5 + i % 3);
        nt_object_count(object, NT_WRITE, 7);
    }
    struct nt_layout_settler *settler = view_at(&view, NT_REGION_SETTLERS, 0);
    struct nt_layout_cell *cell = cell_of(&view, settler, 6, NT_WRITE);
    assert_non_null(cell);
    const struct nt_layout_cell before = *cell;
    settler->redo = (struct nt_layout_pair){ before.sum.count, before.sum.total };
    settler->redo_state = before.state;
    cell->state = ((before.state >> 16) - 5) << 16 | NT_CELL_BUSY << 8 | NT_WRITE;
    cell->sum.count = 1; /* half of it */
    read_all(reader);
    check_view(reader, &view);
    check_whole(reader);
    assert_int_equal(session_sum(&reader->sums, 6, NT_WRITE, false).count, 67);
    assert_int_equal(session_sum(&reader->sums, 6, NT_WRITE, false).total, 67 * 7);
    assert_true(told_of(reader, 6, false)->exact);
    /* the same cell at two places: the one with more moves in it counts */
    *cell = before;
    struct nt_layout_cell *other = cell;
    while (other->state != 0) {
        other++;
    }
    *other = before;
    other->state -= UINT64_C(3) << 16;
    other->sum.count = 1;
    read_all(reader);
    check_view(reader, &view);
    assert_int_equal(session_sum(&reader->sums, 6, NT_WRITE, false).count, 67);
    view_close(&view);
    reader_free(reader);
    nt_log_close(log);
}

struct shifting {
    struct nt_layout_settler *settler;
    struct nt_layout_cell *from, *to;
    int look, at;
};

/* A cell moves up, as when one before it is deleted, to a place that was read already. */
static void shift_look(void *arg)
{
    struct shifting *shifting = arg;
    if (shifting->look++ == shifting->at) {
        *shifting->to = *shifting->from;
        shifting->from->state = 0;
        shifting->settler->shifts++;
    }
}

static void moved_while_read(void **state)
{
    (void)state;
    nt_log *log = test_log(0, 0);
    struct reader *reader = reader_new(nt_log_path(log));
    struct view view = view_open(nt_log_path(log));
    nt_object object = test_channel(log, "x");
    uint64_t session = 1;
    while (nt_layout_hash_(session, NT_WRITE) >> 57 < NT_LAYOUT_CELLS / 2) {
        session++;
    }
    for (uint64_t i = 0; i < 200; i++) {
        nt_object_session_set(object, session + i % 2);
        nt_object_count(object, NT_WRITE, 1);
    }
    struct shifting shifting = { .settler = view_at(&view, NT_REGION_SETTLERS, 0) };
    shifting.from = cell_of(&view, shifting.settler, session, NT_WRITE);
    shifting.to = view_at(&view, NT_REGION_SETTLEMENT, shifting.settler->extent[0]);
    assert_true(shifting.from - shifting.to >= NT_LAYOUT_CELLS / 2);
    reader->call = shift_look;
    reader->call_arg = &shifting;
    for (bool there = true; there; shifting.at++) {
        shifting.look = 0;
        read_all(reader);
        check_view(reader, &view);
        assert_int_equal(session_sum(&reader->sums, session, NT_WRITE, false).count, 100);
        there = shifting.look > shifting.at;
        if (!there) {
            break;
        }
        *shifting.from = *shifting.to;
        shifting.to->state = 0;
    }
    view_close(&view);
    reader_free(reader);
    nt_log_close(log);
}

/* ---- Files that no library writes ---- */

enum { PART = 60 }; /* a session that cells have */

/* Cells of sessions 50 to 69 in two settlers, and two moves that wait in each. */
static void build_all(struct build *build)
{
    assert_true(build_init(build));
    for (uint32_t slot = 0; slot < 3; slot++) {
        build_own(build_object(build, slot, 1), 0, NT_WRITE, 1000, 10000);
    }
    build->objects[1].session = 80;
    (void)build_session(build, 0, "root");
    (void)build_session(build, 1, "part");
    for (uint32_t i = 0; i < 2; i++) {
        (void)build_settler(build, i);
        build->settlers[i].folded = 20;
        for (uint64_t k = 0; k < 20; k++) {
            (void)build_cell(build, i, 50 + k, NT_WRITE, 1 + k);
        }
        (void)build_move(build, i, 20, PART, 2);
        (void)build_move(build, i, 21, 90, 2);
    }
    build->objects[2].settled[0] = (struct nt_layout_pair){ 1, 10 };
}

static void build_read(struct build *build, struct reader *reader)
{
    char text[LIVE_MAP_TEXT];
    assert_int_equal(live_map_open_memory(&reader->map, build->data, BUILD_SIZE, text), 0);
    read_again(reader);
    live_map_close(&reader->map);
}

static void wrong_nothing(struct build *build)
{
    (void)build;
}

static void wrong_count(struct build *build)
{
    build->live->settlers = UINT32_MAX;
}

static void wrong_moves(struct build *build)
{
    build->settlers[0].moves = UINT32_MAX;
}

static void wrong_moves_of_none(struct build *build)
{
    build->settlers[0].moves = 0;
}

static void wrong_older(struct build *build)
{
    build->settlers[0].older = BUILD_SETTLEMENT - 1; /* has two pages */
}

static void wrong_extent(struct build *build)
{
    build->settlers[0].extent[0] = BUILD_SETTLEMENT;
}

static void wrong_extent_of_many(struct build *build)
{
    build->settlers[0].groups = UINT32_MAX;
    for (uint32_t i = 1; i < NT_LAYOUT_EXTENTS; i++) {
        build->settlers[0].extent[i] = 1;
    }
}

static void wrong_same_pages(struct build *build)
{
    build->settlers[1] = build->settlers[0];
}

static void wrong_same_groups(struct build *build)
{
    build->settlers[1].extent[0] = build->settlers[0].extent[0];
}

static void hostile_tables(void **state)
{
    (void)state;
    static const struct {
        void (*wrong)(struct build *build);
        const char *odd;
        uint64_t least, most; /* counts of PART */
    } cases[] = {
        { wrong_nothing, NULL, 24, 24 },
        { wrong_count, "4294967295 settlers, more than there can be", 24, 24 },
        { wrong_moves, "settler 0 uses page 4294967295 of the settlement region, which is not there", 12, 12 },
        { wrong_moves_of_none, "settler 0 uses page 0 of the settlement region, which is not there", 12, 12 },
        { wrong_older, "settler 0 uses page 16 of the settlement region, which is not there", 24, 24 },
        { wrong_extent, "settler 0: extent 0 lies outside of the settlement region", 13, 24 },
        { wrong_extent_of_many, "settler 0 uses page 1 of the settlement region, which is in use", 13, 24 },
        { wrong_same_pages, "settler 1 uses page 1 of the settlement region, which is in use", 12, 12 },
        { wrong_same_groups, "settler 1 uses page 3 of the settlement region, which is in use", 13, 24 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build build;
        struct reader *reader = reader_new(NULL);
        build_all(&build);
        cases[i].wrong(&build);
        build_read(&build, reader);
        const char *odd = live_sessions_odd(reader->sessions);
        assert_true((odd != NULL) == (cases[i].odd != NULL));
        if (odd != NULL) {
            assert_non_null(strstr(odd, cases[i].odd));
        }
        struct nt_layout_pair sum = session_sum(&reader->sums, PART, NT_WRITE, false);
        assert_in_range(sum.count, cases[i].least, cases[i].most);
        assert_int_equal(sum.total, sum.count * 10);
        assert_int_equal(session_sum(&reader->sums, 80, NT_WRITE, false).count, 1000);
        check_whole(reader);
        reader_free(reader);
        build_fini(&build);
    }
}

/* Cells, moves and names that cannot be are left out, and nothing else. */
static void hostile_entries(void **state)
{
    (void)state;
    struct build build;
    struct reader *reader = reader_new(NULL);
    build_all(&build);
    build_cell(&build, 0, 70, NT_LAYOUT_CONTINUATION, 5);
    build_cell(&build, 0, 71, 0, 5); /* of no kind */
    build_cell(&build, 0, 0, NT_WRITE, 5);
    struct nt_layout_cell *busy = build_cell(&build, 0, 72, NT_WRITE, 5);
    busy->state |= NT_CELL_BUSY << 8;
    build.settlers[0].redo_state = 5 << 16 | NT_READ;              /* not this one's */
    build_move(&build, 0, 22, 73, 2)->commit += UINT64_C(1) << 16; /* in another's place */
    build_move(&build, 0, 23, 0, 2);
    build_move(&build, 0, 24, 74, 2)->commit |= 0xff;
    build_move(&build, 0, 25, 75, 7)->from = 7; /* of an object of no generation */
    build_move(&build, 0, 26, 50, 2)->commit |= NT_MOVE_GIVEN << 8;
    build_move(&build, 0, 20 + NT_LAYOUT_MOVES * 9 + 9, 76, 2); /* far ahead of those that are folded */
    build.sessions[1].name_size = 255;
    build.sessions[2].id = build.sessions[1].id;     /* in another's place */
    build.sessions[3].id = build.sessions[1].id + 2; /* not made yet */
    build_read(&build, reader);
    assert_null(live_sessions_odd(reader->sessions));
    check_whole(reader);
    for (uint64_t id = 70; id <= 76; id++) {
        bool is = id == 72 || id == 75;
        assert_true(is || session_sum(&reader->sums, id, NT_WRITE, false).count == 0);
    }
    assert_int_equal(session_sum(&reader->sums, PART, NT_WRITE, false).count, 24);
    const struct told_session *told = told_of(reader, build.sessions[1].id, false);
    assert_true(told != NULL && told->known);
    assert_int_equal(strlen(told->name), 4);
    size_t known = 0;
    for (size_t i = 0; i < reader->told_count; i++) {
        known += reader->told[i].known;
    }
    assert_int_equal(known, 2);
    char room[NT_SOURCE_SESSION_NAME], text[LIVE_MAP_TEXT];
    uint64_t id = build.sessions[1].id;
    assert_int_equal(live_map_open_memory(&reader->map, build.data, BUILD_SIZE, text), 0);
    assert_int_equal(live_session_name(&reader->map, id, room), sizeof build.sessions[1].name);
    assert_int_equal(live_session_name(&reader->map, id + 1, room), 0);
    assert_int_equal(live_session_name(&reader->map, id + 2, room), 0);
    reader_free(reader);
    build_fini(&build);
}

/* Logs of before there were sessions. */
static void without_the_regions(void **state)
{
    (void)state;
    struct build build;
    struct reader *reader = reader_new(NULL);
    build_all(&build);
    build.header->region_count = 10;
    build_read(&build, reader);
    assert_string_equal(live_sessions_odd(reader->sessions), "2 settlers, more than there can be");
    assert_int_equal(reader->told_count, 2); /* none, and that of an object */
    check_whole(reader);
    build.live->settlers = 0;
    build_read(&build, reader);
    assert_null(live_sessions_odd(reader->sessions));
    reader_free(reader);
    build_fini(&build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(at_rest),
        log_test(beyond_the_room),
        log_test(names_parents_and_ends),
        log_test(at_rest),
        log_test(beyond_the_room),
        log_test(without_any_room),
        log_test(a_session_in_the_place_of_a_later_one),
        log_test(read_from_a_copy),
        log_test(left_busy),
        log_test(moved_while_read),
        log_test(hostile_tables),
        log_test(hostile_entries),
        log_test(without_the_regions),
        log_test(killed),
        log_test(at_any_instruction),
    };
    return cmocka_run_group_tests_name("source/live/session", tests, NULL, NULL);
}
