/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes and watched objects: log and truth side by side. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

enum { REQUEST_DONE = TRUTH_KINDS - 1 };

uint64_t watch_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Processes ---- */

static void program_open_log(struct program *program)
{
    nt_log_options options = NT_LOG_OPTIONS_INIT;
    char node[64];
    options.name = program->name;
    if (program->options->node_per_process) {
        snprintf(node, sizeof node, "node-%s", program->name);
        options.node = node;
    }
    options.ring_bytes = program->options->ring_bytes;
    options.cap_bytes = program->options->cap_bytes;
    /* The result does not matter: without a log everything below is ignored. */
    (void)nt_log_open(&options, &program->log);

    static const nt_field fields[] = {
        { "id", NT_FIELD_ID, 0 },
        { "latency", NT_FIELD_U64, 0 },
        { "path", NT_FIELD_STRING, 0 },
        { "load", NT_FIELD_F64, 0 },
    };
    nt_kind_options kind = NT_KIND_OPTIONS_INIT;
    kind.name = truth_kind_name(REQUEST_DONE);
    kind.fields = fields;
    kind.field_count = sizeof fields / sizeof *fields;
    (void)nt_kind_new(program->log, &kind, &program->request_done);
}

int program_open(struct program *program, const struct options *options, const char *name, int lines)
{
    *program = (struct program){ .options = options, .lines = lines };
    snprintf(program->name, sizeof program->name, "%s", name);
    program->random = options->seed;
    for (const char *c = name; *c; c++)
        program->random = program->random * 31 + (unsigned char)*c;
    int result = truth_open(options->truth, name, false, &program->truth);
    if (result < 0) {
        fprintf(stderr, "relay: %s: truth under %s: %s\n", name, options->truth ? options->truth : "-",
                strerror(-result));
        return result;
    }
    program_open_log(program);
    watch_open_program(program, &program->self);
    return 0;
}

int program_forked(struct program *program)
{
    program->truth_number++;
    truth_close(&program->truth);
    int result = truth_open(program->options->truth, program->name, true, &program->truth);
    if (result == 0)
        watch_open_program(program, &program->self);
    return result;
}

void program_close(struct program *program)
{
    void *data = mmap(NULL, PROGRAM_LINE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data != MAP_FAILED) {
        size_t size = truth_line(&program->truth, data, PROGRAM_LINE);
        /* Nobody may be listening any more. */
        (void)send(program->lines, data, size, MSG_NOSIGNAL);
        munmap(data, PROGRAM_LINE);
    }
    program->truth.header->ending = 1;
    nt_log_close(program->log);
    program->truth.header->complete = 1;
    truth_close(&program->truth);
}

uint64_t program_random(struct program *program) /* splitmix64 */
{
    uint64_t z = program->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- Truth of an object ---- */

static struct truth_object *watch_truth(const struct watch *watch)
{
    return watch->truth == UINT32_MAX ? NULL : &watch->program->truth.objects[watch->truth];
}

static void watch_flag(const struct watch *watch, uint32_t flag)
{
    struct truth_object *object = watch_truth(watch);
    if (object)
        atomic_fetch_or_explicit(&object->flags, flag, memory_order_relaxed);
}

/* A new life in the truth, or, where lives are counted together or there is no room, one more of the last. */
static void watch_truth_new(struct watch *watch, uint32_t previous)
{
    struct truth *truth = &watch->program->truth;
    bool again = watch->truth_number == watch->program->truth_number + 1;
    uint32_t number = again && !truth->detailed ? UINT32_MAX : truth_object_add(truth, watch->path, watch->flags);
    watch->truth_number = watch->program->truth_number + 1;
    if (number == UINT32_MAX && again) {
        watch_flag(watch, TRUTH_MANY);
        return;
    }
    watch->truth = number;
    memset(watch->tally, 0, sizeof watch->tally);
    watch->read = 0;
    struct truth_object *object = watch_truth(watch);
    if (object && previous != UINT32_MAX) {
        object->previous = previous + 1;
        object->epoch = truth->objects[previous].epoch + 1;
    }
}

static void watch_handle(const struct watch *watch)
{
    struct truth_object *object = watch_truth(watch);
    if (object)
        atomic_store_explicit(&object->handle, watch->object.handle, memory_order_release);
    if (!watch->object.handle)
        watch_flag(watch, TRUTH_REFUSED);
}

/* An object that was made before the fork gets its place in the child's truth when it is first used. */
static uint32_t watch_tally(struct watch *watch, uint32_t kind)
{
    if (watch->truth_number != watch->program->truth_number + 1) {
        watch->truth_number = 0;
        watch->flags |= TRUTH_INHERITED;
        watch_truth_new(watch, UINT32_MAX);
        watch_handle(watch);
    }
    if (watch->truth == UINT32_MAX)
        return UINT32_MAX;
    if (!watch->tally[kind])
        watch->tally[kind] = truth_tally_add(&watch->program->truth, watch->truth, kind) + 1;
    return watch->tally[kind] - 1;
}

uint32_t watch_begin(struct watch *watch, uint32_t kind, const struct truth_entry *entry)
{
    uint32_t tally = watch_tally(watch, kind);
    uint32_t number = tally == UINT32_MAX ? 0 : truth_begin(&watch->program->truth, tally, entry);
    if (kind == NT_READ)
        watch->read = number;
    return tally;
}

/* In the object's own session. */
static uint32_t watch_begin_own(struct watch *watch, uint32_t kind, uint64_t value)
{
    const struct truth_entry entry = { .value = value, .session = watch->session, .own = watch->session };
    return watch_begin(watch, kind, &entry);
}

void watch_end(const struct watch *watch, uint32_t tally)
{
    if (tally != UINT32_MAX)
        truth_end(&watch->program->truth, tally);
}

/* ---- Objects ---- */

static void watch_name(struct watch *watch, const struct watch_options *options)
{
    int length = snprintf(watch->path, sizeof watch->path, "%s%s%s", options->parent ? options->parent->path : "",
                          options->parent ? "/" : "", options->name);
    if (length < 0 || (size_t)length >= sizeof watch->path)
        atomic_fetch_add(&watch->program->truth.header->overflow, 1); /* a path that is cut proves nothing */
    watch->flags = (options->shared ? TRUTH_SHARED : 0) | (options->brief ? TRUTH_SHORT : 0);
}

void watch_open(struct program *program, struct watch *watch, const struct watch_options *options)
{
    /* A brief one's place in the truth may serve the next; all else starts anew. */
    if (!options->brief || watch->program != program || !(watch->flags & TRUTH_SHORT))
        *watch = (struct watch){ .program = program, .truth = UINT32_MAX };
    bool below = options->parent && options->parent->object.handle;
    watch->session = below && !options->shared ? options->parent->session : 0; /* so does the library */
    watch_name(watch, options);
    watch_truth_new(watch, UINT32_MAX);

    nt_object_options object = NT_OBJECT_OPTIONS_INIT;
    object.name = options->name;
    object.kind = options->kind;
    object.discipline = options->shared ? NT_SHARED : NT_EXCLUSIVE;
    if (below)
        object.parent = options->parent->object;
    else if (options->parent)
        watch_flag(watch, TRUTH_ORPHAN);
    /* The library counts an object's open and close by itself, with values of its own. */
    uint32_t tally = watch_begin_own(watch, NT_OPEN, 0);
    watch->object = nt_object_new(program->log, &object);
    watch_handle(watch);
    watch_end(watch, tally);
}

void watch_open_program(struct program *program, struct watch *watch)
{
    *watch = (struct watch){ .program = program, .truth = UINT32_MAX, .flags = TRUTH_SHARED | TRUTH_PROGRAM };
    watch_truth_new(watch, UINT32_MAX);
    watch->object = nt_log_object(program->log);
    watch_handle(watch);
}

void watch_close(struct watch *watch)
{
    uint32_t tally = watch_begin_own(watch, NT_CLOSE, 0);
    nt_object_close(watch->object);
    watch_end(watch, tally);
    watch_flag(watch, TRUTH_CLOSED);
    watch->object = (nt_object){ 0 };
}

void watch_succeed(struct watch *watch)
{
    uint32_t before = watch->truth;
    uint32_t closing = watch_begin_own(watch, NT_CLOSE, 0);
    struct watch old = *watch;
    watch_truth_new(watch, before);
    uint32_t opening = watch_begin_own(watch, NT_EPOCH, 0);
    watch->object = nt_object_succeed(old.object);
    watch_handle(watch);
    watch_end(watch, opening);
    watch_end(&old, closing);
    if (watch->truth != before)
        watch_flag(&old, TRUTH_CLOSED);
}

struct watch watch_share(const struct watch *watch)
{
    struct watch other = *watch;
    memset(other.tally, 0, sizeof other.tally);
    return other;
}

void watch_count(struct watch *watch, nt_kind kind, uint64_t value)
{
    uint32_t tally = watch_begin_own(watch, kind, value);
    nt_object_count(watch->object, kind, value);
    watch_end(watch, tally);
}

void watch_count_at(struct watch *watch, nt_kind kind, uint64_t value, nt_time at)
{
    uint32_t tally = watch_begin_own(watch, kind, value);
    nt_object_count_at(watch->object, kind, value, at);
    watch_end(watch, tally);
}

void watch_count_with(struct watch *watch, nt_kind kind, uint64_t value, uint64_t argument)
{
    uint32_t tally = watch_begin_own(watch, kind, value);
    nt_object_count_with(watch->object, kind, value, argument);
    watch_end(watch, tally);
}

void watch_count_in(struct watch *watch, nt_session session, nt_kind kind, uint64_t value)
{
    const struct truth_entry entry = { .value = value, .session = session, .own = watch->session };
    uint32_t tally = watch_begin(watch, kind, &entry);
    nt_object_count_in(watch->object, session, kind, value);
    watch_end(watch, tally);
}

void watch_done(struct watch *watch, const struct watch_done *done)
{
    const nt_value values[] = {
        { .as.u64 = done->id, .size = 0 },
        { .as.u64 = done->latency, .size = 0 },
        { .as.data = done->path, .size = strlen(done->path) },
        { .as.f64 = done->load, .size = 0 },
    };
    uint32_t tally = watch_begin_own(watch, REQUEST_DONE, done->latency);
    nt_object_record(watch->object, watch->program->request_done, done->latency, values,
                     sizeof values / sizeof *values);
    watch_end(watch, tally);
}
