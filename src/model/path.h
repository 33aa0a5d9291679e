/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths that pick what to show: NODE/PROGRAM/OBJECT/…[/KIND[/FIELD]].
     *    any bytes within one component     ?    one character
     **   as a component: any number of components, none included
     \/ \* \? \\ \#  that character itself      \xHH  that byte
     #SLOT.GENERATION  the object of that slot and generation, whatever its name
   A program goes by the name of its log, by its process id, or by NAME.PID. The object that stands for the
   program itself has no component of its own. A path that does not begin at a node matches as if `**` stood
   before it; a leading slash forbids that.
   KIND is an event kind of the object, FIELD one number of it:
     count total max mean last            the object's own
     lineage_count lineage_total          with all its predecessors
     base_count base_total                counted before the log knew it, as by the parent of a forked program
     closed_count closed_total            of children whose slots were used again */
#ifndef NT_MODEL_PATH_H
#define NT_MODEL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/objects.h"

#define NT_MODEL_PATH_COMPONENTS 62u
#define NT_MODEL_PATH_BYTES 16384u

enum nt_model_field {
    NT_MODEL_FIELD_NONE,
    NT_MODEL_FIELD_COUNT,
    NT_MODEL_FIELD_TOTAL,
    NT_MODEL_FIELD_MAX,
    NT_MODEL_FIELD_MEAN,
    NT_MODEL_FIELD_LAST,
    NT_MODEL_FIELD_LINEAGE_COUNT,
    NT_MODEL_FIELD_LINEAGE_TOTAL,
    NT_MODEL_FIELD_BASE_COUNT,
    NT_MODEL_FIELD_BASE_TOTAL,
    NT_MODEL_FIELD_CLOSED_COUNT,
    NT_MODEL_FIELD_CLOSED_TOTAL
};

struct nt_model_path;

/* 0; -ENOMEM; -NT_ESYNTAX, and *ret_reason says why in a few static words. */
int nt_model_path_new(const char *text, size_t size, struct nt_model_path **ret_path, const char **ret_reason);
void nt_model_path_free(struct nt_model_path *take_path);

/* One number of one object. */
struct nt_model_pick {
    uint32_t object;
    uint16_t kind;
    uint16_t field;
};

enum nt_model_picked {
    NT_MODEL_PICKED_NOT,
    NT_MODEL_PICKED_ABOVE, /* only what is below it */
    NT_MODEL_PICKED_KINDS, /* some of its kinds, and what is picked below it */
    NT_MODEL_PICKED_WHOLE  /* it and all below it */
};

/* What one or several paths pick from one linked model. */
struct nt_model_selection {
    const struct nt_model *model;
    uint8_t *nodes, *programs, *objects; /* enum nt_model_picked by index */
    uint64_t (*kinds)[4];                /* bit sets by object, for PICKED_KINDS; NULL: none yet */
    size_t branches;                     /* matches that are not numbers */
    struct nt_model_pick *numbers;       /* in the order of the tree */
    size_t number_count, number_room;
};

/* 0 or -ENOMEM. The model must stand for as long as the selection does. */
int nt_model_selection_init(struct nt_model_selection *selection, const struct nt_model *model);
void nt_model_selection_fini(struct nt_model_selection *selection);
/* Adds what the path picks: numbers if it ends in KIND/FIELD and there are any, else branches. Returns how many
   matched, at most INT_MAX; 0: nothing; or -ENOMEM. Of numbers whose paths are equal only those stay that
   belong to a life that goes on, if one does; all: every life's. */
int nt_model_select(struct nt_model_selection *selection, const struct nt_model_path *path, bool all);
/* How many branches it would pick if it began at a node: at most INT_MAX, or -ENOMEM. */
int nt_model_select_from_node(const struct nt_model *model, const struct nt_model_path *path);
/* Once all paths were added: marks what is above and below. If there are branches, numbers become kinds. */
int nt_model_selection_close(struct nt_model_selection *selection);
/* Whether the selection shows this kind of the object. NULL selects all. */
bool nt_model_selected(const struct nt_model_selection *selection, uint32_t object, unsigned kind);

/* The number that a pick names; for the mean: total, and *ret_count what it is to be divided by, else 1. */
uint64_t nt_model_pick_value(const struct nt_model *model, const struct nt_model_pick *pick, uint64_t *ret_count);
/* Appends the path of a program, NODE/PROGRAM. */
void nt_model_program_path_append(struct nt_buffer *buffer, const struct nt_model *model, uint32_t program);
/* Appends an object's path as it can be given back; a long one has `**` in its middle. */
void nt_model_path_append(struct nt_buffer *buffer, const struct nt_model *model, uint32_t object);
/* Appends the path of a number. */
void nt_model_pick_append(struct nt_buffer *buffer, const struct nt_model *model, const struct nt_model_pick *pick);

#endif
