/* SPDX-License-Identifier: BSD-3-Clause */
/* What a snapshot tells, as bytes and back: one entry a call of the sink. An entry says how long it is, so that one of
   a later version, which may have more behind, can be read. docs/format.md, "Tables", has the bytes. */
#ifndef NT_SOURCE_RECORDING_TABLE_H
#define NT_SOURCE_RECORDING_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "source/recording/pack.h"
#include "source/source.h"

#define TABLE_ENTRY_MAX (4u << 20)

/* What the summary of a block of tables says. */
struct recording_part {
    uint64_t snapshot; /* its number, from 1 on */
    uint64_t time;     /* when it was taken, ns since 1970 */
    uint32_t part;     /* from 0 on */
    uint32_t last;     /* 1: the last one */
};
_Static_assert(sizeof(struct recording_part) == 24, "drawn in docs/format.md");

/* Appends one entry; failures stay in the buffer. */
void table_put_program(struct nt_buffer *out, const struct nt_source_program *program);
void table_put_kind(struct nt_buffer *out, const struct nt_source_kind *kind);
void table_put_object(struct nt_buffer *out, const struct nt_source_object *object);
void table_put_given(struct nt_buffer *out, const struct nt_source_given *given);
void table_put_session(struct nt_buffer *out, const struct nt_source_session *session);

/* Bytes of the entry that begins there, its head included; 0: it is not there whole. */
size_t table_entry_size(const uint8_t *at, size_t size);

/* Tells the sink what the entries say. Numbers of programs are raised by `base`. 0, what the sink returned, -ENOMEM, or
   -NT_EFORMAT. */
int table_tell(const uint8_t *entries, size_t size, uint32_t base, const struct nt_source_sink *sink);

#endif
