/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the program of a log runs, and how it ended: from the log's header and state word, and from /proc. */
#ifndef NT_SOURCE_LIVE_STATE_H
#define NT_SOURCE_LIVE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "source/live/map.h"
#include "source/source.h"

struct live_machine { /* where we are */
    uint8_t boot_id[16];
    uint64_t pid_namespace;
};

struct live_state {
    enum nt_program_state state;
    bool replaced;      /* ended by exec */
    bool gone;          /* nobody will ever write this file again: its process is dead or became another program */
    bool frozen;        /* nobody writes it now, as far as can be told; true of copies */
    uint64_t mapped_at; /* ms of the coarse monotonic clock: when the process was last seen to map it; 0 never */
};

void live_machine_init(struct live_machine *machine);
/* Whether that is this boot of this machine. A boot id of zeros is nobody's. */
bool live_machine_is_boot(const struct live_machine *machine, const uint8_t boot_id[16]);

/* Looks again. `named`: a file that the user named, which may be a copy. `patience`: milliseconds for which an
   earlier look at the process's mappings holds (its table may be long). *state is zeros at first. */
void live_state_look(struct live_state *state, const struct live_map *map, const struct live_machine *machine,
                     bool named, uint32_t patience);

#endif
