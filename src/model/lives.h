/* SPDX-License-Identifier: BSD-3-Clause */
/* What events name: programs, kinds and lives of objects by the numbers that events carry. An event is often shown
   after what it names is gone; so what one snapshot told is kept when the next one comes, as far as events asked for
   it. Also which events some paths pick, whether the object has counted that kind before or not.
   Reads no source: whoever finds something not known takes a new snapshot and gives it here. */
#ifndef NT_MODEL_LIVES_H
#define NT_MODEL_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/objects.h"
#include "model/path.h"

#define NT_LIVES_MOST 65536u              /* that are kept at once … */
#define NT_LIVES_BYTES ((size_t)64 << 20) /* … with what they say; beyond that all are let go and looked for anew */

struct nt_lives_program {
    uint32_t number;           /* within the source */
    bool known;                /* some snapshot told of it */
    bool picked;               /* the paths picked something of it in some snapshot */
    uint64_t id;               /* of the log */
    struct nt_bytes name;      /* of the log; "program-N" if it is not known */
    struct nt_bytes full_name; /* NAME.PID */
    struct nt_bytes pid;
    struct nt_bytes node;
    const struct nt_source_kind **kinds; /* the user-defined ones by number, or NULL */
};

struct nt_life {
    const struct nt_lives_program *program;
    uint32_t object, generation;
    bool known;            /* some snapshot told of it */
    struct nt_bytes name;  /* "#slot.generation" if it has none */
    struct nt_bytes path;  /* as nt_model_path_append writes it */
    struct nt_bytes below; /* the part of that behind the program; "" for the program's own object */
    struct nt_bytes remote_node, remote_process; /* the other end; size 0: no snapshot has told yet */
};

struct nt_lives;

/* The paths are borrowed; none: everything is picked. 0 or -ENOMEM. */
int nt_lives_new(struct nt_model_path *const *paths, size_t path_count, struct nt_lives **ret_lives);
void nt_lives_free(struct nt_lives *take_lives);

/* A snapshot of one source, linked. The model is taken over in any case, and is all zeros then. 0 or -ENOMEM. */
int nt_lives_take(struct nt_lives *lives, struct nt_model *take_model);
/* The newest one that was taken. */
const struct nt_model *nt_lives_model(const struct nt_lives *lives);

/* Whose event it is. It stands until the next call of these. NULL: out of memory. What no snapshot told of is made up,
   with `known` false, and looked for again after the next nt_lives_take, as is the other end. */
const struct nt_life *nt_lives_find(struct nt_lives *lives, uint32_t program, uint32_t object, uint32_t generation);
/* Likewise a program. */
const struct nt_lives_program *nt_lives_program(struct nt_lives *lives, uint32_t program);
/* Memory that is used for what was asked for, besides the snapshot. */
size_t nt_lives_bytes(const struct nt_lives *lives);
/* A user-defined kind of the program, or NULL: not known. */
const struct nt_source_kind *nt_life_declared(const struct nt_life *life, unsigned kind);
/* Name of an event kind in the program: built in, declared, or "kind-N" (written to room). */
struct nt_bytes nt_life_kind(const struct nt_life *life, unsigned kind, char room[NT_MODEL_KIND_ROOM]);
/* Whether the paths pick that kind of it: the object, something above it, or the kind itself. */
bool nt_life_picked(const struct nt_lives *lives, const struct nt_life *life, unsigned kind);
/* Whether they may pick any kind of it. */
bool nt_life_may_be_picked(const struct nt_lives *lives, const struct nt_life *life);

#endif
