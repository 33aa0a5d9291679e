/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the grammar of paths (path.c) and picking from the tree (select.c): a set of positions in a path, one
   bit each. Bit i says that the first i components are matched. Inside the model. */
#ifndef NT_MODEL_PATH_MATCH_H
#define NT_MODEL_PATH_MATCH_H

#include "model/path.h"

/* What one component of the tree goes by. */
struct nt_model_names {
    struct nt_bytes names[3];
    size_t count;
    uint32_t slot, generation; /* of an object; generation 0: none */
};

/* Positions before the first component; anywhere: as if `**` stood before it. */
uint64_t nt_model_path_start(const struct nt_model_path *path, bool anywhere);
/* Positions after one more component. */
uint64_t nt_model_path_step(const struct nt_model_path *path, uint64_t positions, const struct nt_model_names *names);
/* Those of the positions from which one more component may lead to the end of the path, or to its field. */
uint64_t nt_model_path_near_end(const struct nt_model_path *path, uint64_t positions);
/* Whether the whole path is matched. */
bool nt_model_path_reached(const struct nt_model_path *path, uint64_t positions);
/* Whether all but the last component are matched and that is a field's name. */
bool nt_model_path_at_field(const struct nt_model_path *path, uint64_t positions);
enum nt_model_field nt_model_path_field(const struct nt_model_path *path);
bool nt_model_path_from_node(const struct nt_model_path *path);
/* Appends a program's component. */
void nt_model_program_append(struct nt_buffer *buffer, const struct nt_model_program *program);

#endif
