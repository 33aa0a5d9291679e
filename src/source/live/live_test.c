/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole source over directories of logs made by hand, with processes that live, stop, die, close their log
   or become others. */
#include "source/live/world.h"

static void runs_stops_crashes(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", true);
    assert_int_equal(state_now(world), NT_PROGRAM_RUNNING);
    assert_int_equal(world->told.programs[0].pid, pid);
    (void)kill(pid, SIGSTOP);
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_int_equal(state_now(world), NT_PROGRAM_STOPPED);
    (void)kill(pid, SIGCONT);
    siginfo_t info;
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(state_now(world), NT_PROGRAM_CRASHED); /* a zombie */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(state_now(world), NT_PROGRAM_CRASHED);
    assert_int_equal(world->told.programs[0].ended, 0);
}

static void closes_its_log(void **state)
{
    struct world *world = *state;
    world->build.live->closed = 9000;
    pid_t pid = child_of(world, "a.ntlog", true);
    poke_state(world, "a.ntlog", NT_STATE_CLOSED);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    assert_false(world->told.programs[0].replaced);
    assert_true(world->told.programs[0].ended != 0);
    child_end(pid);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    assert_false(world->told.programs[0].replaced);
    assert_true(world->told.programs[0].ended > world->told.programs[0].started);
}

static void becomes_another_program(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", false);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    assert_true(world->told.programs[0].replaced);
    child_end(pid);
    assert_int_equal(state_now(world), NT_PROGRAM_CRASHED);
}

/* One that closed its log and lives on maps it no more. */
static void closes_its_log_and_goes_on(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", false);
    poke_state(world, "a.ntlog", NT_STATE_CLOSED);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    assert_false(world->told.programs[0].replaced);
    child_end(pid);
}

/* A look at the mappings that found the file holds for a while, one that did not does not. */
static void looks_again(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", false);
    struct nt_source *source = open_world(world);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(snapshot(world, source), 0);
        assert_int_equal(world->told.programs[0].state, NT_PROGRAM_EXITED);
    }
    nt_source_free(source);
    child_end(pid);
}

/* Where the kernel shows other numbers for a mapped file than for an open one, nothing can be told from them. */
static void numbers_that_do_not_compare(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", false);
    char path[128], text[LIVE_MAP_TEXT];
    const struct live_map_owner owner = { .any = true };
    struct live_map map;
    struct live_machine machine;
    path_of(world, "a.ntlog", path);
    live_machine_init(&machine);
    assert_int_equal(live_map_open(&map, AT_FDCWD, path, &owner, text), 0);
    struct live_state now = { 0 };
    live_state_look(&now, &map, &machine, false, 0);
    assert_true(now.replaced && now.gone);
    map.device++;
    now = (struct live_state){ 0 };
    live_state_look(&now, &map, &machine, false, 0);
    assert_int_equal(now.state, NT_PROGRAM_RUNNING);
    assert_false(now.replaced || now.gone);
    live_map_close(&map);
    child_end(pid);
}

static void somebody_else(void **state)
{
    struct world *world = *state;
    struct nt_layout_header *header = world->build.header;
    pid_t pid = child_of(world, "a.ntlog", true);
    struct nt_layout_header right = *header;
    /* the pid was given again */
    header->start_time = right.start_time + 1;
    poke(world, "a.ntlog", 0, header, sizeof *header);
    assert_int_equal(state_now(world), NT_PROGRAM_CRASHED);
    /* another container: the same pid there is another process here */
    *header = right;
    header->pid_namespace++;
    poke(world, "a.ntlog", 0, header, sizeof *header);
    assert_int_equal(state_now(world), NT_PROGRAM_UNKNOWN);
    poke_state(world, "a.ntlog", NT_STATE_CLOSED);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    poke_state(world, "a.ntlog", NT_STATE_RUNNING);
    header->pid_namespace = 0;
    poke(world, "a.ntlog", 0, header, sizeof *header);
    assert_int_equal(state_now(world), NT_PROGRAM_UNKNOWN);
    /* before the machine was started again */
    *header = right;
    header->boot_id[5] ^= 1;
    poke(world, "a.ntlog", 0, header, sizeof *header);
    assert_int_equal(state_now(world), NT_PROGRAM_CRASHED);
    poke_state(world, "a.ntlog", NT_STATE_CLOSED);
    assert_int_equal(state_now(world), NT_PROGRAM_EXITED);
    poke_state(world, "a.ntlog", NT_STATE_RUNNING);
    memset(header->boot_id, 0, sizeof header->boot_id);
    poke(world, "a.ntlog", 0, header, sizeof *header);
    assert_int_equal(state_now(world), NT_PROGRAM_UNKNOWN);
    child_end(pid);
}

static enum nt_program_state named_state(struct world *world, const char *name)
{
    char path[128];
    const char *files[] = { path };
    path_of(world, name, path);
    const struct nt_live_options options = { .files = files, .file_count = 1 };
    struct nt_source *source;
    assert_int_equal(nt_source_live_open(&options, &source), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.bad_count, 0);
    assert_int_equal(world->told.program_count, 1);
    assert_int_equal(read_events(world, source, ROOM), 21);
    nt_source_free(source);
    return world->told.programs[0].state;
}

/* A copy says nothing of the program; the file that it maps does. */
static void named_files(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", true);
    put(world, "copy");
    assert_int_equal(named_state(world, "a.ntlog"), NT_PROGRAM_RUNNING);
    assert_int_equal(named_state(world, "copy"), NT_PROGRAM_UNKNOWN);
    child_end(pid);
    assert_int_equal(named_state(world, "copy"), NT_PROGRAM_UNKNOWN);
    poke_state(world, "copy", NT_STATE_CLOSED);
    assert_int_equal(named_state(world, "copy"), NT_PROGRAM_EXITED);
    world->build.header->boot_id[0] ^= 1;
    put(world, "far");
    assert_int_equal(named_state(world, "far"), NT_PROGRAM_UNKNOWN);
    world->build.header->pid_namespace ^= 1;
    put(world, "farther");
    assert_int_equal(named_state(world, "farther"), NT_PROGRAM_UNKNOWN);
}

/* What tools that copy files make of one: pages of zeros are left out. */
static void put_without_zeros(struct world *world, const char *name)
{
    static const uint8_t zeros[NT_LAYOUT_PAGE];
    char path[128];
    path_of(world, name, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, BUILD_SIZE), 0);
    for (size_t at = 0; at < BUILD_SIZE; at += sizeof zeros) {
        const uint8_t *page = world->build.data + at;
        if (memcmp(page, zeros, sizeof zeros) != 0) {
            assert_int_equal(pwrite(fd, page, sizeof zeros, (off_t)at), sizeof zeros);
        }
    }
    (void)close(fd);
}

/* All that a file says. */
static void read_named(struct world *world, const char *name, struct world *ret_seen)
{
    char path[128];
    const char *files[] = { path };
    path_of(world, name, path);
    const struct nt_live_options options = { .files = files, .file_count = 1 };
    struct nt_source *source;
    assert_int_equal(nt_source_live_open(&options, &source), 0);
    assert_int_equal(snapshot(world, source), 0);
    *ret_seen = *world;
    size_t count = (size_t)read_events(ret_seen, source, ROOM);
    ret_seen->told.kinds += 1000 * count; /* how many are there to be compared */
    nt_source_free(source);
}

static void copies_without_zeros(void **state)
{
    struct world *world = *state;
    struct build *build = &world->build;
    char path[128];
    struct stat before, after;
    struct world *dense = calloc(1, sizeof *dense), *sparse = calloc(1, sizeof *sparse);
    assert_true(dense != NULL && sparse != NULL);
    memset(build->bitmap, 0xff, BUILD_SIZE / NT_LAYOUT_PAGE / 8 + 1);
    size_t unclaimed = (size_t)(build->records - build->data) / NT_LAYOUT_PAGE + 1;
    build->bitmap[unclaimed / 64] &= ~(UINT64_C(1) << unclaimed % 64);
    /* a block that ends on a page of zeros */
    build->objects[1].blocks = 60;
    struct nt_layout_tally_block *block = build_block(build, 60, 1);
    build_tally(&block->tally[0], 7, 70);
    block->kind[0] = 1;
    build->objects[1].tally_kind[0] = 0;
    /* a fold that did not end: its area is four pages, all but the first zeros */
    (void)build_object(build, 2, 5);
    build_own(&build->objects[2], 0, 1, 3, 30);
    build->redo->slot = 2;
    build->redo->generation = 5;
    build->redo->parent_generation = 1;
    build->redo->count = 1;
    build->redo->entries[0] = (struct nt_layout_redo_entry){ .kind = 1, .closed = { 3, 30 } };
    build->redo->sequence = 1;
    /* rings that are used here and there */
    for (uint64_t i = 20; i < NT_LAYOUT_PAGE / SLOT; i++) {
        build_record(build, 0, i * SLOT); /* up to the end of a page */
    }
    build_record(build, 1, 4 * BUILD_CHUNK);
    build_record(build, 1, 4 * BUILD_CHUNK + 4032);
    put(world, "dense");
    put_without_zeros(world, "sparse");
    read_named(world, "dense", dense);
    path_of(world, "sparse", path);
    assert_int_equal(stat(path, &before), 0);
    read_named(world, "sparse", sparse);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_blocks, before.st_blocks);
    assert_int_equal(dense->told.writes, 7);
    assert_int_equal(dense->told.objects, 2);
    assert_int_equal(dense->told.kinds, 67001);
    assert_int_equal(sparse->told.writes, dense->told.writes);
    assert_int_equal(sparse->told.objects, dense->told.objects);
    assert_int_equal(sparse->told.kinds, dense->told.kinds);
    assert_int_equal(sparse->told.programs[0].events, dense->told.programs[0].events);
    for (size_t i = 0; i < dense->told.kinds / 1000; i++) {
        assert_int_equal(sparse->events[i].ring, dense->events[i].ring);
        assert_int_equal(sparse->events[i].position, dense->events[i].position);
        assert_int_equal(sparse->events[i].total, dense->events[i].total);
    }
    assert_int_equal(dense->loss_count, 2);
    assert_int_equal(sparse->loss_count, 2);
    assert_memory_equal(sparse->losses, dense->losses, 2 * sizeof dense->losses[0]);
    free(dense);
    free(sparse);
}

/* ---- Snapshots ---- */

static void tells_everything(void **state)
{
    struct world *world = *state;
    struct nt_layout_live *live = world->build.live;
    live->dropped_no_ring = 3;
    world->build.rings[1].dropped = 4;
    live->refused_objects = 5;
    live->refused_tallies = 6;
    live->backed = 7777;
    for (uint64_t at = 0; at < RING + SLOT; at += SLOT) {
        build_record(&world->build, 1, at);
    }
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    const struct told *told = &world->told;
    const struct nt_source_program *program = &told->programs[0];
    assert_int_equal(told->bad_count, 0);
    assert_int_equal(told->program_count, 1);
    assert_string_equal(told->names[0], "name-1");
    assert_non_null(strstr(told->paths[0], "/a.ntlog"));
    assert_int_equal(program->id, 0x1122334455667788);
    assert_int_equal(program->pid, 4242);
    assert_int_equal(program->uid, geteuid());
    assert_int_equal(program->rings, 2);
    assert_int_equal(program->objects, 2);
    assert_int_equal(program->events, 20 + RING / SLOT + 1);
    assert_int_equal(program->overwritten, BUILD_CHUNK / SLOT);
    assert_int_equal(program->dropped, 7);
    assert_int_equal(program->refused_objects, 5);
    assert_int_equal(program->refused_tallies, 6);
    assert_int_equal(program->backed, 7777);
    assert_int_equal(program->started, 1000000000);
    assert_int_equal(told->kinds, 1);
    assert_int_equal(told->fields, 1);
    assert_int_equal(told->objects, 2);
    assert_int_equal(told->writes, 5);
    assert_int_equal(told->write_total, 50);
    /* and again the same */
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(told->objects, 2);
    assert_int_equal(told->programs[0].number, 0);
    nt_source_free(source);
}

struct mover {
    struct world *world;
    int looks;
};

static void move_once(void *arg)
{
    struct mover *mover = arg;
    const struct build *build = &mover->world->build;
    const uint64_t sequence = 2;
    const uint32_t gone = 0, folded = 1;
    if (++mover->looks == 3) { /* object 1 was read, object 2 was not */
        poke(mover->world, "a.ntlog", (size_t)((uint8_t *)&build->objects[1].folded - build->data), &folded,
             sizeof folded);
        poke(mover->world, "a.ntlog", (size_t)((uint8_t *)&build->objects[1].generation - build->data), &gone,
             sizeof gone);
        poke(mover->world, "a.ntlog", (size_t)((uint8_t *)&build->redo->sequence - build->data), &sequence,
             sizeof sequence);
    }
}

/* An object goes and nobody has its sums. */
static void what_moves_is_said_to(void **state)
{
    struct world *world = *state;
    struct mover mover = { .world = world };
    (void)build_object(&world->build, 2, 1);
    world->build.objects[0].generation = 0;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    nt_source_live_between(source, move_once, &mover);
    assert_int_equal(snapshot(world, source), 0);
    assert_true(world->told.programs[0].moving);
    assert_int_equal(world->told.objects, 2);
    assert_int_equal(snapshot(world, source), 0);
    assert_false(world->told.programs[0].moving);
    assert_int_equal(world->told.objects, 1);
    nt_source_free(source);
}

static void ends_when_it_is_told_to(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    put(world, "b.ntlog");
    struct nt_source *source = open_world(world);
    world->told.stop_at = 3;
    assert_int_equal(snapshot(world, source), 42);
    assert_int_equal(world->told.objects, 3);
    const struct nt_source_sink nobody = { 0 };
    assert_int_equal(nt_source_snapshot(source, &nobody), 0);
    nt_source_free(source);
}

static void skips_pages_that_are_not_there(void **state)
{
    struct world *world = *state;
    char path[128];
    put(world, "a.ntlog");
    path_of(world, "a.ntlog", path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    const struct nt_layout_region *objects = &world->build.header->regions[5];
    assert_int_equal(
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)objects->offset, (off_t)objects->size), 0);
    struct stat before, after;
    assert_int_equal(fstat(fd, &before), 0);
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.objects, 0);
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_blocks, before.st_blocks);
    nt_source_free(source);
    (void)close(fd);
}

static void bad_files_are_told_and_the_rest_is_read(void **state)
{
    struct world *world = *state;
    char path[128];
    put(world, "a.ntlog");
    put(world, ".tmp-1-2-3");
    put(world, "unrelated.log");
    put(world, ".hidden.ntlog");
    put(world, "cut.ntlog");
    path_of(world, "cut.ntlog", path);
    assert_int_equal(truncate(path, 50000), 0);
    world->build.header->magic[7] = 9;
    put(world, "future.ntlog");
    world->build.header->magic[7] = 1;
    world->build.rings[1].size = 12345;
    world->build.kinds[0].number = 77;
    put(world, "rings.ntlog");
    struct nt_source *source = open_world(world);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(snapshot(world, source), 0);
        const struct told *told = &world->told;
        assert_int_equal(told->program_count, 2);
        assert_int_equal(told->bad_count, 4);
        assert_int_equal(told->errors[0], -NT_ETRUNCATED);
        assert_non_null(strstr(told->bad[0], "/cut.ntlog: truncated: ends at byte 50000 of "));
        assert_int_equal(told->errors[1], -NT_EVERSION);
        assert_non_null(strstr(told->bad[1], "/future.ntlog: log of version 9, this build reads 1"));
        assert_non_null(strstr(told->bad[2], "/rings.ntlog: ring 1 has an impossible size or place; skipped"));
        assert_non_null(strstr(told->bad[3], "/rings.ntlog: a user-defined kind cannot be read"));
        assert_string_equal(source->text, told->bad[3]);
        assert_int_equal(told->objects, 4);
    }
    /* 20 + 1 of the one, 20 of the other */
    assert_int_equal(read_events(world, source, ROOM), 41);
    nt_source_free(source);
}

static void directories(void **state)
{
    struct world *world = *state;
    char path[128];
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(chmod(world->directory, 0702), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.program_count, 0);
    assert_int_equal(world->told.bad_count, 1);
    assert_int_equal(world->told.errors[0], -EPERM);
    assert_non_null(strstr(world->told.bad[0], "others may write to the directory"));
    assert_int_equal(chmod(world->directory, 0720), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.errors[0], -EPERM);
    assert_int_equal(chmod(world->directory, 0750), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.bad_count, 0);
    assert_int_equal(world->told.program_count, 1);
    nt_source_free(source);
    /* one that is not there: bad if it was asked for */
    path_of(world, "none", path);
    const struct nt_live_options options = { .directory = path };
    assert_int_equal(nt_source_live_open(&options, &source), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.bad_count, 1);
    assert_int_equal(world->told.errors[0], -ENOENT);
    nt_source_free(source);
    const struct nt_live_options defaults = { 0 };
    assert_int_equal(setenv("NTSCOPE_DIR", path, 1), 0);
    assert_int_equal(nt_source_live_open(&defaults, &source), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.bad_count, 0);
    /* it comes to be */
    assert_int_equal(setenv("NTSCOPE_DIR", world->directory, 1), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.program_count, 1);
    nt_source_free(source);
    (void)unsetenv("NTSCOPE_DIR");
}

/* Root sees all users' directories, and believes each only if it is that user's. */
static void all_users(void **state)
{
    struct world *world = *state;
    if (geteuid() != 0) {
        skip();
    }
    static const char *const paths[] = { "/dev/shm/ntscope-4000000001", "/dev/shm/ntscope-4000000002" };
    char file[2][64];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mkdir(paths[i], 0700), 0);
        (void)snprintf(file[i], sizeof file[i], "%s/a.ntlog", paths[i]);
        int fd = open(file[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && build_write(&world->build, fd));
        assert_int_equal(fchown(fd, 4000000001, 0), 0);
        (void)close(fd);
        assert_int_equal(chown(paths[i], 4000000001, 0), 0);
    }
    const struct nt_live_options options = { 0 };
    struct nt_source *source;
    assert_int_equal(nt_source_live_open(&options, &source), 0);
    int result = snapshot(world, source);
    nt_source_free(source);
    for (int i = 0; i < 2; i++) {
        (void)unlink(file[i]);
        (void)rmdir(paths[i]);
    }
    assert_int_equal(result, 0);
    /* beside what else runs on this machine */
    int seen = 0, refused = 0;
    for (size_t i = 0; i < world->told.program_count; i++) {
        seen += strcmp(world->told.paths[i], file[0]) == 0 && world->told.programs[i].uid == 4000000001;
        assert_string_not_equal(world->told.paths[i], file[1]);
    }
    for (size_t i = 0; i < world->told.bad_count; i++) {
        refused += strstr(world->told.bad[i], "ntscope-4000000002: the directory belongs to another user") != NULL;
    }
    assert_true(seen == 1 || world->told.program_count == PROGRAMS);
    assert_true(refused == 1 || world->told.bad_count == TEXTS);
}

/* ---- Events ---- */

static void sleep_ms(long ms)
{
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&pause, NULL);
}

static void reads_all_rings_of_all_programs(void **state)
{
    struct world *world = *state;
    put(world, "a.ntlog");
    put(world, "b.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(read_events(world, source, ROOM), 42);
    size_t of[2][2] = { { 0 } };
    for (size_t i = 0; i < 42; i++) {
        const struct nt_event *event = &world->events[i];
        assert_true(event->program < 2 && event->ring < 2);
        of[event->program][event->ring]++;
        assert_int_equal(event->time - 1000000000 + 1000, event->ticks);
        if (event->ring == 1) {
            assert_int_equal(event->data_size, 100);
            assert_int_equal(event->data[99], 99);
        }
    }
    assert_int_equal(of[0][0], 20);
    assert_int_equal(of[0][1], 1);
    assert_int_equal(of[1][0], 20);
    assert_int_equal(of[1][1], 1);
    assert_int_equal(read_events(world, source, ROOM), 0);
    /* the program goes on, a new ring comes, a new program comes */
    char path[128];
    path_of(world, "a.ntlog", path);
    for (uint64_t i = 20; i < 23; i++) {
        build_record(&world->build, 0, i * SLOT);
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(build_write(&world->build, fd));
    (void)close(fd);
    put(world, "c.ntlog");
    sleep_ms(150);
    assert_int_equal(read_events(world, source, ROOM), 3 + 24);
    assert_int_equal(read_events(world, source, ROOM), 0);
    nt_source_free(source);
}

static void nobody_starves(void **state)
{
    struct world *world = *state;
    for (uint64_t at = 0; at < RING / 2; at += SLOT) {
        build_record(&world->build, 0, at);
        build_record(&world->build, 1, at);
    }
    put(world, "a.ntlog");
    put(world, "b.ntlog");
    struct nt_source *source = open_world(world);
    bool seen[4] = { false };
    for (int turn = 0; turn < 4; turn++) {
        assert_int_equal(read_events(world, source, 10), 10);
        seen[world->events[0].program * 2 + world->events[0].ring] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    nt_source_free(source);
}

/* What is not finished is waited for while the program lives, and lost when it is dead. */
static void holes(void **state)
{
    struct world *world = *state;
    build_slot(&world->build, 0, 7 * SLOT)->commit = 0;
    pid_t pid = child_of(world, "a.ntlog", true);
    struct nt_source *source = open_world(world);
    assert_int_equal(read_events(world, source, ROOM), 8);
    assert_int_equal(world->loss_count, 0);
    child_end(pid);
    sleep_ms(150);
    assert_int_equal(read_events(world, source, ROOM), 12);
    assert_int_equal(world->loss_count, 1);
    assert_int_equal(world->losses[0].from, 7 * SLOT);
    assert_int_equal(world->losses[0].to, 8 * SLOT);
    assert_int_equal(read_events(world, source, ROOM), 0);
    assert_int_equal(world->loss_count, 0);
    nt_source_free(source);
}

static void asks_for_room(void **state)
{
    struct world *world = *state;
    struct nt_source *source = open_world(world);
    size_t losses;
    assert_int_equal(source->ops->read(source, world->events, 0, world->losses, 1, &losses), -EINVAL);
    assert_int_equal(source->ops->read(source, world->events, 1, world->losses, 0, &losses), -EINVAL);
    assert_int_equal(source->ops->read(source, world->events, 1, world->losses, 1, &losses), 0);
    assert_int_equal(losses, 0);
    nt_source_free(source);
}

static void cut_while_it_is_open(void **state)
{
    struct world *world = *state;
    char path[128];
    put(world, "a.ntlog");
    put(world, "b.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    path_of(world, "a.ntlog", path);
    assert_int_equal(truncate(path, 8192), 0);
    assert_int_equal(read_events(world, source, ROOM), 21);
    for (int i = 0; i < 21; i++) {
        assert_int_equal(world->events[i].program, 1);
    }
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.program_count, 1);
    assert_int_equal(world->told.bad_count, 2);
    assert_int_equal(world->told.errors[0], -NT_ETRUNCATED);
    assert_non_null(strstr(world->told.bad[0], "a.ntlog: truncated while it was read"));
    assert_non_null(strstr(world->told.bad[1], "a.ntlog: truncated: ends at byte 8192 of "));
    nt_source_free(source);
}

static void cut_in_a_snapshot(void **state)
{
    struct world *world = *state;
    char path[128];
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.objects, 2);
    path_of(world, "a.ntlog", path);
    /* the objects are gone, the rings' directory too */
    assert_int_equal(truncate(path, (off_t)world->build.header->regions[5].offset), 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.objects, 0);
    assert_int_equal(world->told.bad_count, 1);
    assert_int_equal(world->told.errors[0], -NT_ETRUNCATED);
    nt_source_free(source);
}

/* Its file is removed: followed on while the program lives, let go of when it is dead. */
static void removed_while_it_is_open(void **state)
{
    struct world *world = *state;
    pid_t pid = child_of(world, "a.ntlog", true);
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    drop(world, "a.ntlog");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(snapshot(world, source), 0);
        assert_int_equal(world->told.program_count, 1);
    }
    child_end(pid);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.program_count, 0);
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(read_events(world, source, ROOM), 0);
    nt_source_free(source);
}

/* The owners of a ring say whose a position is, as far as they are remembered. */
static void threads_of_positions(void **state)
{
    struct world *world = *state;
    struct nt_layout_ring *ring = &world->build.rings[0];
    for (uint32_t n = 0; n < 3; n++) {
        ring->owner[n] = (struct nt_layout_owner){ .from = n * 10 * SLOT, .tid = 11 + n };
    }
    ring->owners = 3;
    put(world, "a.ntlog");
    struct nt_source *source = open_world(world);
    assert_int_equal(snapshot(world, source), 0);
    uint32_t program = world->told.programs[0].number;
    static const uint64_t slots[] = { 0, 9, 10, 19, 20, 1000 };
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(nt_source_thread(source, program, 0, slots[i] * SLOT), 11 + (i / 2));
    }
    assert_int_equal(nt_source_thread(source, program, 1, 0), 0); /* nobody is known */
    assert_int_equal(nt_source_thread(source, program, 2, 0), 0);
    assert_int_equal(nt_source_thread(source, program, NT_EVENT_NO_RING, 0), 0);
    assert_int_equal(nt_source_thread(source, program + 1, 0, 0), 0);
    /* Of many the newest; the oldest entry may be the next one's already. */
    struct nt_layout_owner owners[NT_LAYOUT_OWNERS];
    uint32_t count = 20;
    for (uint32_t n = count - NT_LAYOUT_OWNERS; n < count; n++) {
        owners[n % NT_LAYOUT_OWNERS] = (struct nt_layout_owner){ .from = n * 10 * SLOT, .tid = 100 + n };
    }
    size_t at = world->build.header->regions[NT_REGION_RINGS - 1].offset;
    poke(world, "a.ntlog", at + offsetof(struct nt_layout_ring, owner), owners, sizeof owners);
    poke(world, "a.ntlog", at + offsetof(struct nt_layout_ring, owners), &count, sizeof count);
    assert_int_equal(nt_source_thread(source, program, 0, 205 * SLOT), 119);
    assert_int_equal(nt_source_thread(source, program, 0, 95 * SLOT), 109);
    assert_int_equal(nt_source_thread(source, program, 0, 85 * SLOT), 0);
    assert_int_equal(nt_source_thread(source, program, 0, 5 * SLOT), 0);
    nt_source_free(source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(runs_stops_crashes),
        TEST(closes_its_log),
        TEST(becomes_another_program),
        TEST(closes_its_log_and_goes_on),
        TEST(looks_again),
        TEST(numbers_that_do_not_compare),
        TEST(somebody_else),
        TEST(named_files),
        TEST(copies_without_zeros),
        TEST(tells_everything),
        TEST(what_moves_is_said_to),
        TEST(ends_when_it_is_told_to),
        TEST(skips_pages_that_are_not_there),
        TEST(bad_files_are_told_and_the_rest_is_read),
        TEST(directories),
        TEST(all_users),
        TEST(reads_all_rings_of_all_programs),
        TEST(nobody_starves),
        TEST(holes),
        TEST(asks_for_room),
        TEST(cut_while_it_is_open),
        TEST(cut_in_a_snapshot),
        TEST(removed_while_it_is_open),
        TEST(threads_of_positions),
    };
    return cmocka_run_group_tests_name("source/live/live", tests, NULL, NULL);
}
