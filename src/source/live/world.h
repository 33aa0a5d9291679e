/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests only: directories of logs made by hand, what a snapshot told of them, and processes that they name. */
#ifndef NT_SOURCE_LIVE_WORLD_H
#define NT_SOURCE_LIVE_WORLD_H

#include "source/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <nt/error.h>

#include "base/process.h"
#include "source/live/build.h"
#include "source/live/map.h"
#include "source/live/state.h"

#define SLOT ((uint64_t)NT_LAYOUT_SLOT)
#define RING ((uint64_t)BUILD_RING)

enum { PROGRAMS = 16, TEXTS = 16, ROOM = 4096, LOSSES = 64 };

/* What a snapshot told. */
struct told {
    struct nt_source_program programs[PROGRAMS];
    char names[PROGRAMS][64], paths[PROGRAMS][256];
    size_t program_count;
    size_t kinds, fields, objects, closed;
    uint64_t writes, write_total;
    char bad[TEXTS][512];
    int errors[TEXTS];
    size_t bad_count;
    int stop_at; /* object after which it is enough */
};

struct world {
    char directory[64];
    struct build build;
    struct told told;
    struct nt_event events[ROOM];
    struct nt_source_loss losses[LOSSES];
    size_t loss_count;
};

static inline int tell_program(void *arg, const struct nt_source_program *program)
{
    struct told *told = arg;
    if (told->program_count == PROGRAMS) {
        return 0;
    }
    size_t i = told->program_count++;
    told->programs[i] = *program;
    (void)snprintf(told->names[i], sizeof told->names[i], "%.*s", (int)program->name.size, program->name.data);
    (void)snprintf(told->paths[i], sizeof told->paths[i], "%s", program->path);
    return 0;
}

static inline int tell_kind(void *arg, const struct nt_source_kind *kind)
{
    struct told *told = arg;
    told->kinds++;
    told->fields += kind->field_count;
    assert_true(kind->kind >= NT_LAYOUT_USER_KIND);
    return 0;
}

static inline int tell_object(void *arg, const struct nt_source_object *object)
{
    struct told *told = arg;
    told->objects++;
    told->closed += object->closed;
    for (size_t i = 0; i < object->tally_count; i++) {
        if (object->tallies[i].kind == 1) {
            told->writes += object->tallies[i].count;
            told->write_total += object->tallies[i].total;
        }
    }
    return told->stop_at != 0 && told->objects == (size_t)told->stop_at ? 42 : 0;
}

static inline void tell_bad(void *arg, const char *path, int error, const char *text)
{
    struct told *told = arg;
    assert_null(strchr(text, '\n'));
    if (told->bad_count == TEXTS) {
        return;
    }
    told->errors[told->bad_count] = error;
    (void)snprintf(told->bad[told->bad_count++], sizeof told->bad[0], "%s: %s", path, text);
}

static inline int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    (void)snprintf(world->directory, sizeof world->directory, "/dev/shm/live_test.XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    assert_true(build_init(&world->build));
    (void)build_object(&world->build, 0, 1);
    build_own(build_object(&world->build, 1, 1), 0, 1, 5, 50);
    build_kind(&world->build, 0, "trade");
    (void)build_ring(&world->build, 0);
    (void)build_ring(&world->build, 1);
    for (uint64_t i = 0; i < 20; i++) {
        build_record(&world->build, 0, i * SLOT);
    }
    (void)build_long(&world->build, 1, 0, 100);
    (void)unsetenv("NTSCOPE_DIR");
    *state = world;
    return 0;
}

static inline void path_of(const struct world *world, const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", world->directory, name);
}

static inline void put(struct world *world, const char *name)
{
    char path[128];
    path_of(world, name, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(build_write(&world->build, fd));
    (void)close(fd);
}

static inline void drop(struct world *world, const char *name)
{
    char path[128];
    path_of(world, name, path);
    assert_int_equal(unlink(path), 0);
}

static inline bool is_there(struct world *world, const char *name)
{
    char path[128];
    path_of(world, name, path);
    return access(path, F_OK) == 0;
}

static inline int teardown(void **state)
{
    struct world *world = *state;
    char command[128];
    (void)snprintf(command, sizeof command, "%s", world->directory);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", command, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    build_fini(&world->build);
    free(world);
    return 0;
}

static inline struct nt_source *open_world(const struct world *world)
{
    const struct nt_live_options options = { .directory = world->directory };
    struct nt_source *source = NULL;
    assert_int_equal(nt_source_live_open(&options, &source), 0);
    return source;
}

static inline int snapshot(struct world *world, struct nt_source *source)
{
    int stop_at = world->told.stop_at;
    world->told = (struct told){ .stop_at = stop_at };
    const struct nt_source_sink sink = {
        .program = tell_program, .kind = tell_kind, .object = tell_object, .bad = tell_bad, .arg = &world->told
    };
    return nt_source_snapshot(source, &sink);
}

static inline int read_events(struct world *world, struct nt_source *source, size_t room)
{
    return source->ops->read(source, world->events, room, world->losses, LOSSES, &world->loss_count);
}

/* ---- Processes ---- */

/* A process that maps the file and waits; the header is made out to it. */
static inline pid_t child_of(struct world *world, const char *name, bool maps)
{
    int to_child[2], from_child[2];
    char path[128], byte = 'x';
    path_of(world, name, path);
    assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from_child, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* waits for the file, then for its end; does not outlive a test that fails */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = read(to_child[0], &byte, 1) == 1 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *map = maps ? mmap(NULL, BUILD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
        if (fd < 0 || map == MAP_FAILED || write(from_child[1], "x", 1) != 1) {
            _exit(1);
        }
        (void)pause();
        _exit(0);
    }
    struct nt_process_status status;
    struct nt_layout_header *header = world->build.header;
    assert_int_equal(nt_process_status((uint32_t)pid, &status), 0);
    header->pid = (uint32_t)pid;
    header->start_time = status.start_time;
    header->pid_namespace = nt_process_pid_namespace();
    assert_int_equal(nt_process_boot_id(header->boot_id), 0);
    put(world, name);
    assert_int_equal(write(to_child[1], "x", 1), 1);
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    for (int i = 0; i < 2; i++) {
        (void)close(to_child[i]);
        (void)close(from_child[i]);
    }
    return pid;
}

static inline void child_end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Changes a word of a file that is there. */
static inline void poke(struct world *world, const char *name, size_t at, const void *data, size_t size)
{
    char path[128];
    path_of(world, name, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, data, size, (off_t)at), (ssize_t)size);
    (void)close(fd);
}

static inline void poke_state(struct world *world, const char *name, uint32_t value)
{
    poke(world, name, NT_LAYOUT_PAGE + offsetof(struct nt_layout_live, state), &value, sizeof value);
}

static inline enum nt_program_state state_now(struct world *world)
{
    struct nt_source *source = open_world(world); /* a new one: remembers nothing */
    assert_int_equal(snapshot(world, source), 0);
    assert_int_equal(world->told.bad_count, 0);
    assert_int_equal(world->told.program_count, 1);
    nt_source_free(source);
    return world->told.programs[0].state;
}

#endif
