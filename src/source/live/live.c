/* SPDX-License-Identifier: BSD-3-Clause */
/* The logs that are open, kept up to date with the directory; snapshots of them, and events from all their
   rings in turn. */
#include "source/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <nt/error.h>

#include "source/live/change.h"
#include "source/live/clock.h"
#include "source/live/control.h"
#include "source/live/map.h"
#include "source/live/object.h"
#include "source/live/ring.h"
#include "source/live/scan.h"
#include "source/live/session.h"
#include "source/live/snapshot.h"
#include "source/live/state.h"

enum {
    RESCAN_MS = 100,        /* how often reading looks for new programs */
    PATIENCE_MS = 1000,     /* for how long a look at a process's mappings holds */
    DATA_ROOM = 256 * 1024, /* fields of user-defined kinds in one batch */
    KINDS_MAX = NT_LAYOUT_CONTINUATION - NT_LAYOUT_USER_KIND,
};

struct live_log {
    struct live_map map;
    struct live_state state;
    struct live_clock_domain *domain;
    struct live_changes changes;
    struct live_control control;
    struct live_ring *rings; /* one that cannot be read has no `shared` */
    uint32_t ring_count, ring_room;
    uint32_t number;
    char *path;
    bool named;
    unsigned unseen; /* scans that did not find its file */
};

struct live_lane {
    struct live_log *log; /* NULL: the number is free */
    uint32_t ring;        /* index: rings move */
};

struct live_source {
    struct nt_source source;
    struct live_scan scan;
    struct live_machine machine;
    struct live_log **logs; /* by number */
    size_t log_count, log_room;
    struct live_clock_domain **domains;
    size_t domain_count;
    struct live_objects *objects;
    struct live_lane *lanes; /* number n + 1 */
    uint32_t lane_count, lane_room, lane_free;
    struct live_change_list changes; /* lane 0 */
    struct live_snapshot *snapshot;
    struct live_sessions *sessions;
    bool with_sessions; /* of the log that is told */
    uint8_t *data;
    uint64_t scanned_at; /* ms */
    bool thorough;       /* scanned since changes were looked for */
    uint32_t next_number;
    uint32_t turn; /* the lane to start reading with */
};

static struct live_source *live_of(struct nt_source *source)
{
    return (struct live_source *)(void *)source;
}

static uint64_t now_ms(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Keeps the newest line of what went wrong as the source's text too. */
static void tell_bad(struct live_source *live, const struct nt_source_sink *sink, const char *path, int error,
                     const char *text)
{
    (void)snprintf(live->source.text, sizeof live->source.text, "%s: %s", path, text);
    if (sink != NULL && sink->bad != NULL) {
        sink->bad(sink->arg, path, error, text);
    }
}

/* ---- Clocks ---- */

static struct live_clock_domain *domain_of(struct live_source *live, const struct live_log *log)
{
    const struct nt_layout_header *header = &log->map.header;
    bool tsc = (header->flags & NT_HEADER_CLOCK_TSC) != 0;
    for (size_t i = 0; i < live->domain_count; i++) {
        struct live_clock_domain *domain = live->domains[i];
        if (domain->tsc == tsc && domain->uid == log->map.uid &&
            memcmp(domain->boot_id, header->boot_id, sizeof domain->boot_id) == 0) {
            return domain;
        }
    }
    struct live_clock_domain **domains = reallocarray(live->domains, live->domain_count + 1, sizeof *live->domains);
    if (domains == NULL) {
        return NULL;
    }
    live->domains = domains;
    struct live_clock_domain *domain = calloc(1, sizeof *domain);
    if (domain != NULL) {
        memcpy(domain->boot_id, header->boot_id, sizeof domain->boot_id);
        domain->tsc = tsc;
        domain->uid = log->map.uid;
        live->domains[live->domain_count++] = domain;
    }
    return domain;
}

/* All pairs that the log holds are looked at: the oldest and the newest are somewhere among them, and one that
   is being written is ruled out by its successor's number. */
static void clock_collect(struct live_log *log)
{
    const struct nt_layout_live *live = live_map_live(&log->map);
    /* acquire: partner is the writer's release once the pair is whole */
    uint64_t pairs = __atomic_load_n(&live->clock_pairs, __ATOMIC_ACQUIRE);
    uint64_t first = pairs > NT_LAYOUT_CLOCK_PAIRS ? pairs - NT_LAYOUT_CLOCK_PAIRS + 1 : 0;
    for (uint64_t i = first; i < pairs; i++) {
        const struct nt_layout_clock_pair *shared = &live->clock[i % NT_LAYOUT_CLOCK_PAIRS];
        struct nt_layout_clock_pair pair = {
            .ticks = live_load64(&shared->ticks),
            .monotonic = live_load64(&shared->monotonic),
            .realtime = live_load64(&shared->realtime),
        };
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (live_load64(&live->clock_pairs) - i < NT_LAYOUT_CLOCK_PAIRS) {
            live_clock_add(log->domain, &pair);
        }
    }
}

static void clocks_settle(struct live_source *live)
{
    for (size_t i = 0; i < live->log_count; i++) {
        clock_collect(live->logs[i]);
    }
    for (size_t i = 0; i < live->domain_count; i++) {
        struct live_clock_domain *domain = live->domains[i];
        if (live_machine_is_boot(&live->machine, domain->boot_id)) {
            live_clock_add_now(domain);
        }
        live_clock_settle(domain);
    }
}

/* ---- Logs ---- */

static void log_free(struct live_log *take_log)
{
    if (take_log != NULL) {
        live_changes_fini(&take_log->changes);
        live_control_close(&take_log->control);
        live_map_close(&take_log->map);
        free(take_log->rings);
        free(take_log->path);
        free(take_log);
    }
}

static int lane_add(struct live_source *live, struct live_log *log, uint32_t ring)
{
    uint32_t number = 0;
    while (live->lane_free > 0 && number < live->lane_count && live->lanes[number].log != NULL) {
        number++;
    }
    if (live->lane_free == 0) {
        number = live->lane_count;
    }
    if (number == live->lane_room) {
        uint32_t room = live->lane_room != 0 ? 2 * live->lane_room : 16;
        struct live_lane *lanes = reallocarray(live->lanes, room, sizeof *lanes);
        if (lanes == NULL) {
            return -ENOMEM;
        }
        live->lanes = lanes;
        live->lane_room = room;
    }
    live->lane_free -= number < live->lane_count;
    live->lane_count += number == live->lane_count;
    live->lanes[number] = (struct live_lane){ .log = log, .ring = ring };
    return 0;
}

static void lanes_end(struct live_source *live, const struct live_log *log)
{
    for (uint32_t i = 0; i < live->lane_count; i++) {
        if (live->lanes[i].log == log) {
            live->lanes[i].log = NULL;
            live->lane_free++;
        }
    }
}

/* Takes up rings that are new. */
static int log_rings(struct live_source *live, struct live_log *log)
{
    /* acquire: partner is the writer's release once the entry is whole */
    uint32_t count = __atomic_load_n(&live_map_live(&log->map)->rings, __ATOMIC_ACQUIRE);
    while (log->ring_count < count) {
        if (log->ring_count == log->ring_room) {
            uint32_t room = log->ring_room != 0 ? 2 * log->ring_room : 8;
            struct live_ring *rings = reallocarray(log->rings, room, sizeof *rings);
            if (rings == NULL) {
                return -ENOMEM;
            }
            log->rings = rings;
            log->ring_room = room;
        }
        struct live_ring *ring = &log->rings[log->ring_count];
        *ring = (struct live_ring){ 0 };
        if (live_ring_init(ring, &log->map, log->number, log->ring_count) == -ENOENT) {
            break; /* more than there are */
        }
        if (lane_add(live, log, log->ring_count) < 0) {
            return -ENOMEM;
        }
        log->ring_count++;
    }
    return 0;
}

static struct live_log *log_find(struct live_source *live, const struct stat *status)
{
    for (size_t i = 0; i < live->log_count; i++) {
        struct live_log *log = live->logs[i];
        if (log->map.inode == status->st_ino && log->map.device == status->st_dev) {
            return log;
        }
    }
    return NULL;
}

static int log_add(struct live_source *live, struct live_log *log)
{
    if (live->log_count == live->log_room) {
        size_t room = live->log_room != 0 ? 2 * live->log_room : 16;
        struct live_log **logs = reallocarray(live->logs, room, sizeof *logs);
        if (logs == NULL) {
            return -ENOMEM;
        }
        live->logs = logs;
        live->log_room = room;
    }
    log->domain = domain_of(live, log);
    if (log->domain == NULL) {
        return -ENOMEM;
    }
    log->number = live->next_number++;
    live_changes_init(&log->changes, &log->map, log->number);
    live->logs[live->log_count++] = log;
    return 0;
}

struct refresh {
    struct live_source *live;
    const struct nt_source_sink *sink; /* NULL: nobody to tell */
};

static void refresh_bad(void *arg, const char *path, int error, const char *text)
{
    const struct refresh *refresh = arg;
    tell_bad(refresh->live, refresh->sink, path, error, text);
}

static int refresh_file(void *arg, const struct live_scan_file *file)
{
    const struct refresh *refresh = arg;
    struct live_source *live = refresh->live;
    struct stat status;
    if (file->temporary) {
        return 0;
    }
    if (fstatat(file->directory, file->name, &status, file->owner.any ? 0 : AT_SYMLINK_NOFOLLOW) == 0) {
        struct live_log *known = log_find(live, &status);
        if (known != NULL) {
            known->unseen = 0;
            return 0;
        }
    }
    struct live_log *log = calloc(1, sizeof *log);
    char *path = strdup(file->path);
    if (log == NULL || path == NULL) {
        free(path);
        free(log);
        return -ENOMEM;
    }
    log->path = path;
    log->named = file->owner.any;
    char text[LIVE_MAP_TEXT];
    int error = live_map_open(&log->map, file->directory, file->name, &file->owner, text);
    if (error == 0) {
        error = log_add(live, log);
        if (error < 0) {
            log_free(log);
        }
        return error;
    }
    /* One that went away between two looks is nobody's fault. */
    if (error != -ENOENT || file->owner.any) {
        tell_bad(live, refresh->sink, file->path, error, text);
    }
    log_free(log);
    return 0;
}

/* Lets go of logs that were cut, and of those whose file and process are both gone: after two scans, so that what
   they last wrote was read. */
static void refresh_drop(struct live_source *live, const struct nt_source_sink *sink)
{
    size_t kept = 0;
    for (size_t i = 0; i < live->log_count; i++) {
        struct live_log *log = live->logs[i];
        bool cut = live_map_state(&log->map) < 0;
        if (cut) {
            tell_bad(live, sink, log->path, -NT_ETRUNCATED, "truncated while it was read");
        }
        if (cut || (log->unseen > 1 && log->state.gone)) {
            lanes_end(live, log);
            log_free(log);
        } else {
            live->logs[kept++] = log;
        }
    }
    live->log_count = kept;
}

static int refresh_run(struct live_source *live, const struct nt_source_sink *sink)
{
    live->scanned_at = now_ms();
    refresh_drop(live, sink);
    for (size_t i = 0; i < live->log_count; i++) {
        live->logs[i]->unseen++;
    }
    struct refresh refresh = { live, sink };
    const struct live_scan_sink scan_sink = { refresh_file, refresh_bad, &refresh };
    int error = live_scan_run(&live->scan, &scan_sink);
    for (size_t i = 0; i < live->log_count; i++) {
        struct live_log *log = live->logs[i];
        live_state_look(&log->state, &log->map, &live->machine, log->named, PATIENCE_MS);
    }
    clocks_settle(live);
    live->thorough = true;
    return error;
}

/* ---- Snapshots ---- */

static struct nt_bytes header_string(const struct nt_layout_header *header, int which, const char *data)
{
    return (struct nt_bytes){ data, header->string_size[which] };
}

static void describe_identity(const struct live_log *log, struct nt_source_program *program)
{
    const struct nt_layout_header *header = &log->map.header;
    program->number = log->number;
    program->id = header->id;
    program->origin = header->origin;
    program->start_time = header->start_time;
    program->pid = header->pid;
    program->uid = log->named ? header->uid : log->map.uid;
    program->cap = header->cap;
    program->host = header_string(header, NT_HEADER_HOST, header->host);
    program->domain = header_string(header, NT_HEADER_DOMAIN, header->domain);
    program->node = header_string(header, NT_HEADER_NODE, header->node);
    program->program = header_string(header, NT_HEADER_PROGRAM, header->program);
    program->name = header_string(header, NT_HEADER_NAME, header->name);
    program->path = log->path;
}

static void describe_progress(struct live_log *log, struct nt_source_program *program)
{
    const struct nt_layout_live *shared = live_map_live(&log->map);
    const struct live_clock *clock = &log->domain->clock;
    program->started = live_clock_time_or_0(clock, log->map.header.opened);
    if (log->state.state == NT_PROGRAM_EXITED) {
        program->ended = live_clock_time_or_0(clock, live_load64(&shared->closed));
    }
    program->state = log->state.state;
    program->replaced = log->state.replaced;
    program->backed = live_load64(&shared->backed);
    program->objects = live_load32(&shared->living);
    program->refused_objects = live_load64(&shared->refused_objects);
    program->refused_tallies = live_load64(&shared->refused_tallies);
    program->sessions = live_load64(&shared->sessions);
    program->remembers = log->map.regions[NT_REGION_SESSIONS].size / sizeof(struct nt_layout_session);
    program->forgets = program->sessions > program->remembers;
    program->remembers = program->forgets ? program->remembers : program->sessions;
    program->unsettled = live_load64(&shared->unsettled);
    program->dropped = live_load64(&shared->dropped_no_ring);
    program->rings = log->ring_count;
    for (uint32_t i = 0; i < log->ring_count; i++) {
        struct live_ring *ring = &log->rings[i];
        if (ring->shared != NULL) {
            struct live_ring_extent extent = live_ring_extent(ring, log->state.frozen);
            program->events += extent.used;
            program->overwritten += extent.overwritten;
            program->dropped += live_load64(&ring->shared->dropped);
        }
    }
}

/* Copies the entry's fields; false: it cannot be. */
static bool kind_take(const struct nt_layout_kind *kind, struct nt_source_kind *ret_kind,
                      struct nt_source_field fields[NT_LAYOUT_FIELDS])
{
    if (kind->field_count > NT_LAYOUT_FIELDS || kind->name_size == 0 || kind->name_size > sizeof kind->name) {
        return false;
    }
    for (unsigned i = 0; i < kind->field_count; i++) {
        const struct nt_layout_field *field = &kind->fields[i];
        if (field->name_size > sizeof field->name || field->type < NT_FIELD_U64 || field->type > NT_FIELD_ID) {
            return false;
        }
        fields[i] = (struct nt_source_field){ .type = field->type, .name = { field->name, field->name_size } };
    }
    ret_kind->kind = kind->number;
    ret_kind->keep = kind->policy != 0;
    ret_kind->name = (struct nt_bytes){ kind->name, kind->name_size };
    ret_kind->fields = fields;
    ret_kind->field_count = kind->field_count;
    return true;
}

static int tell_kinds(struct live_source *live, struct live_log *log, const struct nt_source_sink *sink)
{
    /* acquire: partner is the writer's release once the entry is whole */
    uint32_t count = __atomic_load_n(&live_map_live(&log->map)->kinds, __ATOMIC_ACQUIRE);
    int result = 0;
    for (uint32_t i = 0; i < count && i < KINDS_MAX && result == 0; i++) {
        struct nt_layout_kind copy;
        struct nt_source_field fields[NT_LAYOUT_FIELDS];
        struct nt_source_kind kind = { .program = log->number };
        const void *shared = live_map_at(&log->map, NT_REGION_KINDS, (uint64_t)i * sizeof copy, sizeof copy);
        if (shared == NULL) {
            break;
        }
        memcpy(&copy, shared, sizeof copy); /* written once, before it was counted */
        if (live_map_state(&log->map) < 0) {
            break;
        }
        if (copy.number != NT_LAYOUT_USER_KIND + i || !kind_take(&copy, &kind, fields)) {
            tell_bad(live, sink, log->path, -NT_EFORMAT, "a user-defined kind cannot be read");
        } else if (sink->kind != NULL) {
            result = sink->kind(sink->arg, &kind);
        }
    }
    return result;
}

static void tell_rings(struct live_source *live, const struct live_log *log, const struct nt_source_sink *sink)
{
    for (uint32_t i = 0; i < log->ring_count; i++) {
        if (log->rings[i].shared == NULL) {
            char text[64];
            (void)snprintf(text, sizeof text, "ring %u has an impossible size or place; skipped", i);
            tell_bad(live, sink, log->path, -NT_EFORMAT, text);
        }
    }
}

/* Before anything of the log is told: whether its sums go together is said with the program. What is counted by session
   is read before the objects, which then have all of it. */
static int take_objects(struct live_source *live, struct live_log *log, const struct nt_source_sink *sink)
{
    int error = sink->session != NULL ? live_sessions_begin(live->sessions, &log->map) : 0;
    live->with_sessions = sink->session != NULL && error == 0;
    if (error == -E2BIG) {
        tell_bad(live, sink, log->path, error, "has more sums by session than can be read");
        error = 0;
    }
    live_objects_init(live->objects, &log->map, &log->domain->clock, log->number);
    return error == 0 ? live_snapshot_take(live->snapshot, live->objects) : error;
}

struct telling {
    struct live_source *live;
    const struct nt_source_sink *sink;
};

static int tell_object(void *arg, const struct nt_source_object *object)
{
    const struct telling *telling = arg;
    const struct nt_source_sink *sink = telling->sink;
    int result = telling->live->with_sessions ? live_sessions_object(telling->live->sessions, object) : 0;
    return result == 0 && sink->object != NULL ? sink->object(sink->arg, object) : result;
}

static int tell_sessions(struct live_source *live, struct live_log *log, const struct nt_source_sink *sink)
{
    bool moving = live_snapshot_is_moving(live->snapshot);
    int result = live_sessions_tell(live->sessions, &log->domain->clock, log->number, moving, sink);
    const char *odd = live_sessions_odd(live->sessions);
    if (odd != NULL && live_map_state(&log->map) == 0) {
        tell_bad(live, sink, log->path, -NT_EFORMAT, odd);
    }
    return result;
}

static int tell_objects(struct live_source *live, struct live_log *log, const struct nt_source_sink *sink)
{
    struct telling telling = { live, sink };
    const struct nt_source_sink objects = { .object = tell_object, .arg = &telling };
    int result = live_snapshot_tell(live->snapshot, &objects);
    return result == 0 && live->with_sessions ? tell_sessions(live, log, sink) : result;
}

static int tell_log(struct live_source *live, struct live_log *log, const struct nt_source_sink *sink)
{
    struct nt_source_program program = { 0 };
    bool objects = sink->object != NULL || sink->session != NULL;
    int result = objects ? take_objects(live, log, sink) : 0;
    if (result == 0) {
        result = log_rings(live, log);
    }
    if (result < 0) {
        return result;
    }
    program.moving = objects && live_snapshot_is_moving(live->snapshot);
    describe_identity(log, &program);
    describe_progress(log, &program);
    if (live_map_state(&log->map) < 0) {
        return 0; /* told at the end */
    }
    if (sink->program != NULL) {
        result = sink->program(sink->arg, &program);
    }
    if (result == 0) {
        tell_rings(live, log, sink);
        result = tell_kinds(live, log, sink);
    }
    return result == 0 && objects ? tell_objects(live, log, sink) : result;
}

static int live_snapshot(struct nt_source *source, const struct nt_source_sink *sink)
{
    struct live_source *live = live_of(source);
    int result = refresh_run(live, sink);
    for (size_t i = 0; i < live->log_count && result == 0; i++) {
        struct live_log *log = live->logs[i];
        if (log->unseen == 0 || !log->state.gone) {
            result = tell_log(live, log, sink);
        }
    }
    refresh_drop(live, sink);
    return result;
}

/* ---- Events ---- */

static bool out_is_full(const struct live_ring_out *out)
{
    return out->count == out->room || out->loss_count == out->loss_room ||
           out->data_room - out->data_used < NT_SOURCE_DATA;
}

static uint64_t now_ns(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Looks whether masks were changed. `now`: ns since 1970, 0: not known yet. */
static int look_changes(struct live_source *live, struct live_log *log, bool thorough, uint64_t now)
{
    const uint64_t slack = 1000000; /* between the real time and that of the log's ticks */
    bool pending = live_changes_pending(&log->changes, now > slack ? now - slack : 0);
    if (!pending && !thorough) {
        return 0;
    }
    const struct live_clock *clock = &log->domain->clock;
    const struct live_change_moment moment = {
        .ms = (uint32_t)now_ms() | 1,
        .time = (now != 0 ? now : now_ns()) - slack,
        .opened = live_clock_time(clock, log->map.header.opened),
        .frozen = log->state.frozen,
        .thorough = thorough,
    };
    return live_map_state(&log->map) < 0 ? 0 : live_changes_look(&log->changes, clock, &moment, &live->changes);
}

/* Programs, rings and masks that are new. */
static int look_around(struct live_source *live)
{
    int error = 0;
    if (now_ms() - live->scanned_at >= RESCAN_MS) {
        error = refresh_run(live, NULL);
    }
    for (size_t i = 0; i < live->log_count && error == 0; i++) {
        error = log_rings(live, live->logs[i]);
    }
    uint64_t now = now_ns(); /* before any of the looks */
    for (size_t i = 0; i < live->log_count && error == 0; i++) {
        error = look_changes(live, live->logs[i], live->thorough, now);
    }
    live->thorough = live->thorough && error < 0;
    return error;
}

/* Reads one ring; what came from a file that was cut is taken back. */
static void read_ring(struct live_log *log, struct live_ring *ring, struct live_ring_out *out)
{
    size_t count = out->count, losses = out->loss_count;
    if (ring->shared == NULL || live_map_state(&log->map) < 0) {
        return;
    }
    live_ring_read(ring, log->state.frozen, &log->domain->clock, out);
    if (live_map_state(&log->map) < 0) {
        out->count = count;
        out->loss_count = losses;
    }
}

static int read_lane(struct live_source *live, uint32_t lane, struct live_ring_out *out)
{
    if (lane == 0) {
        out->count += live_change_list_take(&live->changes, out->events + out->count, out->room - out->count);
        return 0;
    }
    struct live_log *log = live->lanes[lane - 1].log;
    if (log == NULL) {
        return 0;
    }
    read_ring(log, &log->rings[live->lanes[lane - 1].ring], out);
    return look_changes(live, log, false, 0); /* whatever decided on an event that was read is told of by now */
}

static int live_read(struct nt_source *source, struct nt_event *events, size_t room, struct nt_source_loss *losses,
                     size_t loss_room, size_t *ret_losses)
{
    struct live_source *live = live_of(source);
    if (room == 0 || loss_room == 0) {
        return -EINVAL;
    }
    int error = look_around(live);
    if (error < 0) {
        return error;
    }
    struct live_ring_out out = {
        .events = events,
        .room = room < INT32_MAX ? room : INT32_MAX,
        .losses = losses,
        .loss_room = loss_room,
        .data = live->data,
        .data_room = DATA_ROOM,
    };
    /* from the lane whose turn it is, once around; an error comes again */
    uint32_t count = live->lane_count + 1, start = live->turn % count;
    for (uint32_t i = 0; i < count && error == 0 && !out_is_full(&out); i++) {
        error = read_lane(live, (start + i) % count, &out);
        live->turn = (start + i) % count + 1;
    }
    if (error < 0 && out.count == 0 && out.loss_count == 0) {
        return error;
    }
    *ret_losses = out.loss_count;
    return (int)out.count;
}

static int live_lanes(struct nt_source *source)
{
    struct live_source *live = live_of(source);
    int error = look_around(live);
    for (size_t i = 0; i < live->log_count && error == 0; i++) {
        struct live_log *log = live->logs[i];
        for (uint32_t k = 0; k < log->ring_count; k++) {
            if (log->rings[k].shared != NULL && live_map_state(&log->map) == 0) {
                live_ring_look(&log->rings[k]);
            }
        }
    }
    return error < 0 ? error : (int)live->lane_count + 1;
}

static int live_read_lane(struct nt_source *source, uint32_t lane, struct nt_source_batch *batch)
{
    struct live_source *live = live_of(source);
    if (batch->room == 0 || batch->loss_room == 0 || batch->data_room < NT_SOURCE_DATA || lane > live->lane_count) {
        return -EINVAL;
    }
    struct live_ring_out out = {
        .events = batch->events,
        .room = batch->room < INT32_MAX ? batch->room : INT32_MAX,
        .losses = batch->losses,
        .loss_room = batch->loss_room,
        .data = batch->data,
        .data_room = batch->data_room,
    };
    int error = read_lane(live, lane, &out);
    if (error < 0 && out.count == 0 && out.loss_count == 0) {
        return error;
    }
    batch->loss_count = out.loss_count;
    batch->data_used = out.data_used;
    return (int)out.count;
}

/* ---- Programs by number ---- */

static struct live_log *log_of(const struct live_source *live, uint32_t number)
{
    size_t low = 0, high = live->log_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (live->logs[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < live->log_count && live->logs[low]->number == number ? live->logs[low] : NULL;
}

static uint32_t live_thread(struct nt_source *source, uint32_t program, uint32_t ring, uint64_t position)
{
    const struct live_log *log = log_of(live_of(source), program);
    if (log == NULL || ring >= log->ring_count || log->rings[ring].shared == NULL) {
        return 0;
    }
    uint32_t thread = live_ring_thread(&log->rings[ring], position);
    return live_map_state(&log->map) == 0 ? thread : 0;
}

static size_t live_name(struct nt_source *source, uint64_t session, char room[NT_SOURCE_SESSION_NAME])
{
    struct live_source *live = live_of(source);
    size_t size = 0;
    for (size_t i = 0; i < live->log_count && size == 0; i++) {
        if (live_map_state(&live->logs[i]->map) == 0) {
            size = live_session_name(&live->logs[i]->map, session, room);
        }
    }
    return size;
}

/* ---- Masks ---- */

/* A copied file looks like the log of a program elsewhere. */
static bool is_over(const struct live_log *log)
{
    return log->state.state == NT_PROGRAM_EXITED || log->state.state == NT_PROGRAM_CRASHED ||
           (log->state.state == NT_PROGRAM_UNKNOWN && log->named);
}

int nt_live_mask_change(struct nt_source *source, struct nt_live_mask *mask)
{
    struct live_log *log = log_of(live_of(source), mask->program);
    if (log == NULL || is_over(log)) {
        return -ESRCH;
    }
    int error = live_map_state(&log->map);
    if (error == 0 && log->control.words.base == NULL) {
        error = live_control_open(&log->control, &log->map);
    }
    return error == 0 ? live_control_change(&log->control, &log->map, mask) : error;
}

/* ---- The source ---- */

static void live_free(struct nt_source *take_source)
{
    struct live_source *live = live_of(take_source);
    for (size_t i = 0; i < live->log_count; i++) {
        log_free(live->logs[i]);
    }
    for (size_t i = 0; i < live->domain_count; i++) {
        free(live->domains[i]);
    }
    free(live->logs);
    free(live->domains);
    free(live->objects);
    free(live->lanes);
    live_change_list_fini(&live->changes);
    live_snapshot_free(live->snapshot);
    live_sessions_free(live->sessions);
    free(live->data);
    live_scan_fini(&live->scan);
    free(live);
}

void nt_source_live_between(struct nt_source *source, void (*call)(void *arg), void *arg)
{
    live_snapshot_between(live_of(source)->snapshot, call, arg);
    live_sessions_between(live_of(source)->sessions, call, arg);
}

static const struct nt_source_ops live_ops = {
    .name = "live",
    .snapshot = live_snapshot,
    .read = live_read,
    .lanes = live_lanes,
    .read_lane = live_read_lane,
    .thread = live_thread,
    .session_name = live_name,
    .free = live_free,
};

int nt_source_live_open(const struct nt_live_options *options, struct nt_source **ret_source)
{
    struct live_source *live = calloc(1, sizeof *live);
    if (live == NULL) {
        return -ENOMEM;
    }
    live->source.ops = &live_ops;
    live->objects = calloc(1, sizeof *live->objects);
    live->snapshot = live_snapshot_new();
    live->sessions = live_sessions_new();
    live->data = malloc(DATA_ROOM);
    int error = live_scan_init(&live->scan, options->directory, options->files, options->file_count);
    if (error < 0 || live->objects == NULL || live->snapshot == NULL || live->sessions == NULL || live->data == NULL) {
        live_free(&live->source);
        return -ENOMEM;
    }
    live_machine_init(&live->machine);
    *ret_source = &live->source;
    return 0;
}
