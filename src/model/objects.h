/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree node → program → objects, built from what a snapshot of sources told. It copies all it is given,
   trusts no link in it, and reads no clock, file or socket.
   Feed it (nt_model_source before each source, then the nt_model_add_… calls), link it once, then read it. */
#ifndef NT_MODEL_OBJECTS_H
#define NT_MODEL_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/index.h"
#include "source/source.h"

#define NT_MODEL_OBJECTS (1u << 24)  /* objects at most; beyond: -E2BIG */
#define NT_MODEL_PROGRAMS (1u << 20) /* programs at most */
#define NT_MODEL_KIND_ROOM 16u

/* One life of an object. */
struct nt_model_object {
    struct nt_source_object told; /* `program` is the index in the model */
    uint32_t parent;              /* index, NT_MODEL_NONE: stands under the program itself */
    uint32_t first, next;         /* first child, next sibling: in the order of their opening */
    uint32_t previous, successor; /* other lives of its lineage, if they are still there */
    uint32_t depth;               /* 0: stands under the program itself */
    bool adrift;                  /* names a parent that is not there, or one of its own descendants */
    bool past;                    /* it and all below it are closed */
};

struct nt_model_program {
    struct nt_source_program told;
    struct nt_bytes full_name; /* NAME.PID */
    struct nt_bytes pid;       /* its end */
    uint32_t node;             /* index */
    uint32_t first;            /* of the objects that stand under it */
    uint32_t root;             /* the object that stands for the program itself, or NT_MODEL_NONE */
    uint32_t order_first;      /* its objects are model.order[order_first … + order_count) */
    uint32_t order_count;
    bool namesake;                    /* another program of the node has the same name */
    struct nt_bytes *kinds;           /* names of user-defined kinds by number, or NULL */
    struct nt_source_kind **declared; /* the same, as they were told, or NULL */
};

struct nt_model_node {
    struct nt_bytes name;
    uint32_t programs_first; /* its programs are model.programs_order[programs_first … + programs_count) */
    uint32_t programs_count;
};

struct nt_model {                /* all zeros: empty */
    struct nt_model_node *nodes; /* by name */
    uint32_t node_count;
    struct nt_model_program *programs; /* as they came */
    uint32_t program_count, program_room;
    uint32_t *programs_order;        /* by node, name, start */
    struct nt_model_object *objects; /* as they came */
    uint32_t object_count, object_room;
    uint32_t *order; /* program by program, each object before what is below it, siblings as they opened */
    uint32_t order_count;
    uint32_t source_first;              /* first program of the source that is being told */
    struct nt_model_index lives;        /* by program, slot, generation */
    struct nt_model_memory *memory;     /* copies of bytes and sums */
    struct nt_model_sessions *sessions; /* see sessions.h; NULL: none were told */
};

void nt_model_fini(struct nt_model *model);

/* What comes now is from another source: its program numbers start anew. */
void nt_model_source(struct nt_model *model);
/* 0, -ENOMEM, -E2BIG, or -EINVAL for an object or kind of a program that was not told. */
int nt_model_add_program(struct nt_model *model, const struct nt_source_program *program);
int nt_model_add_kind(struct nt_model *model, const struct nt_source_kind *kind);
int nt_model_add_object(struct nt_model *model, const struct nt_source_object *object);
/* The index of a program by its number in the source that is being told; NT_MODEL_NONE: it was not told. */
uint32_t nt_model_program_index(const struct nt_model *model, uint32_t number);
/* Makes the tree. Parents that are missing, or circular, are replaced by the program. 0 or -ENOMEM. */
int nt_model_link(struct nt_model *model);

/* Index of a life, or NT_MODEL_NONE. After nt_model_link. */
uint32_t nt_model_find(const struct nt_model *model, uint32_t program, uint32_t slot, uint32_t generation);
/* Whether the program may still count: running, stopped or not known to have ended. */
bool nt_model_alive(const struct nt_model_program *program);
/* Sum of one kind, NULL if there is none. */
const struct nt_source_tally *nt_model_sum(const struct nt_source_tally *sums, size_t count, unsigned kind);
/* Count and total of a kind over all lives of the lineage so far, what was counted before the log knew this one
   included; max and last are the life's own. */
struct nt_source_tally nt_model_lineage(const struct nt_model_object *object, unsigned kind);

/* Name of an event kind in a program: built in, declared by the program, or "kind-N" (written to room). */
struct nt_bytes nt_model_kind(const struct nt_model_program *program, unsigned kind, char room[NT_MODEL_KIND_ROOM]);
/* Name of an object's kind, or "kind-N". */
struct nt_bytes nt_model_object_kind(const struct nt_model_object *object, char room[NT_MODEL_KIND_ROOM]);
/* Appends the object's name for people to read; "#slot.generation" if it has none. */
void nt_model_name_append(struct nt_buffer *buffer, const struct nt_model_object *object);

static inline const struct nt_model_program *nt_model_program_of(const struct nt_model *model,
                                                                 const struct nt_model_object *object)
{
    return &model->programs[object->told.program];
}

#endif
