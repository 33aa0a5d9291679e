/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for many small copies that end together. */
#ifndef NT_MODEL_MEMORY_H
#define NT_MODEL_MEMORY_H

#include <stddef.h>

struct nt_model_memory;

/* Copies bytes, aligned for any type; *memory is NULL at first. NULL: out of memory. size 0 gives a pointer
   that is not NULL. */
void *nt_model_memory_copy(struct nt_model_memory **memory, const void *data, size_t size);
/* The same, filled with zeros. */
void *nt_model_memory_zero(struct nt_model_memory **memory, size_t size);
void nt_model_memory_free(struct nt_model_memory *take_memory);

#endif
