/* SPDX-License-Identifier: BSD-3-Clause */
/* The process is looked at first and the log's state word after: a process seen dead can have changed nothing
   since, so a clean end is never told as a crash. */
#include "source/live/state.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"

enum presence {
    PRESENCE_UNKNOWN,
    PRESENCE_GONE,
    PRESENCE_RUNNING,
    PRESENCE_STOPPED,
    PRESENCE_UNMAPPED, /* there, but without the file */
};

static bool is_zero(const uint8_t id[16])
{
    static const uint8_t zero[16];
    return memcmp(id, zero, sizeof zero) == 0;
}

void live_machine_init(struct live_machine *machine)
{
    (void)nt_process_boot_id(machine->boot_id);
    machine->pid_namespace = nt_process_pid_namespace();
}

bool live_machine_is_boot(const struct live_machine *machine, const uint8_t boot_id[16])
{
    return !is_zero(boot_id) && memcmp(machine->boot_id, boot_id, sizeof machine->boot_id) == 0;
}

static uint64_t now_ms(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum presence look_mapped(struct live_state *state, const struct live_map *map, uint32_t patience)
{
    uint64_t now = now_ms();
    if (state->mapped_at != 0 && now - state->mapped_at < patience) {
        return PRESENCE_RUNNING;
    }
    int mapped = nt_process_maps(map->header.pid, map->device, map->inode);
    if (mapped > 0) {
        state->mapped_at = now;
    }
    /* Not readable is no answer: another user's, or one that is just ending. Nor is a table that shows other numbers
       than stat does, as on btrfs and some overlays: there our own mapping of the file cannot be found either. */
    bool gone = mapped == 0 && nt_process_maps((uint32_t)getpid(), map->device, map->inode) > 0;
    return gone ? PRESENCE_UNMAPPED : PRESENCE_RUNNING;
}

static enum presence look(struct live_state *state, const struct live_map *map, const struct live_machine *machine,
                          uint32_t patience)
{
    const struct nt_layout_header *header = &map->header;
    if (is_zero(header->boot_id) || is_zero(machine->boot_id)) {
        return PRESENCE_UNKNOWN;
    }
    if (!live_machine_is_boot(machine, header->boot_id)) {
        return PRESENCE_GONE;
    }
    if (header->pid_namespace != machine->pid_namespace || header->pid_namespace == 0) {
        return PRESENCE_UNKNOWN;
    }
    struct nt_process_status status;
    int error = nt_process_status(header->pid, &status);
    if (error < 0) {
        return error == -ESRCH ? PRESENCE_GONE : PRESENCE_UNKNOWN;
    }
    if (status.start_time != header->start_time || status.state == 'Z' || status.state == 'X') {
        return PRESENCE_GONE;
    }
    enum presence presence = look_mapped(state, map, patience);
    if (presence == PRESENCE_RUNNING && (status.state == 'T' || status.state == 't')) {
        return PRESENCE_STOPPED;
    }
    return presence;
}

static bool is_closed(const struct live_map *map)
{
    /* acquire: partner is the writer's release store, its last one */
    return __atomic_load_n(&live_map_live(map)->state, __ATOMIC_ACQUIRE) == NT_STATE_CLOSED;
}

static enum nt_program_state state_of(enum presence presence, bool named)
{
    switch (presence) {
    case PRESENCE_RUNNING:
        return NT_PROGRAM_RUNNING;
    case PRESENCE_STOPPED:
        return NT_PROGRAM_STOPPED;
    case PRESENCE_GONE:
        return named ? NT_PROGRAM_UNKNOWN : NT_PROGRAM_CRASHED;
    case PRESENCE_UNMAPPED:
        return named ? NT_PROGRAM_UNKNOWN : NT_PROGRAM_EXITED;
    case PRESENCE_UNKNOWN:
        break;
    }
    return NT_PROGRAM_UNKNOWN;
}

void live_state_look(struct live_state *state, const struct live_map *map, const struct live_machine *machine,
                     bool named, uint32_t patience)
{
    enum presence presence = look(state, map, machine, patience);
    bool closed = is_closed(map);
    if (presence == PRESENCE_UNMAPPED && !closed) {
        /* It may have been closed then and opened again since. */
        presence = look(state, map, machine, 0);
        closed = is_closed(map);
    }
    state->state = closed ? NT_PROGRAM_EXITED : state_of(presence, named);
    state->replaced = presence == PRESENCE_UNMAPPED && !closed && !named;
    /* A program that closed its log may open it again as long as it lives. */
    state->gone = !named && (presence == PRESENCE_GONE || state->replaced);
    state->frozen = presence == PRESENCE_GONE || presence == PRESENCE_UNMAPPED ||
                    (presence == PRESENCE_UNKNOWN && named);
}
