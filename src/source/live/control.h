/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing masks in a log from outside: the control and the changes region alone are mapped for writing, of the very
   file that is read; a word is only changed while it is of the life that was meant (docs/format.md, "Control").
   Whatever goes wrong, the program is not harmed. */
#ifndef NT_SOURCE_LIVE_CONTROL_H
#define NT_SOURCE_LIVE_CONTROL_H

#include <stdint.h>

#include "source/live/guard.h"
#include "source/live/live.h"
#include "source/live/map.h"

struct live_control_region {
    uint8_t *base; /* NULL: not mapped */
    uint64_t size;
    struct live_guard *guard;
};

struct live_control { /* all zeros: not open */
    struct live_control_region words, changes;
};

/* 0 or a negative errno value: most likely -EACCES. */
int live_control_open(struct live_control *control, const struct live_map *map);
/* One that is not open is ignored. */
void live_control_close(struct live_control *control);

/* Does to a mask what nt_live_mask_change is to do. 0; -ESTALE: the life is over; -EAGAIN: others change it all the
   time; -EOPNOTSUPP: the log's clock cannot be read here; -NT_ETRUNCATED: the file was cut. */
int live_control_change(struct live_control *control, struct live_map *map, struct nt_live_mask *mask);

#endif
