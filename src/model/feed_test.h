/* SPDX-License-Identifier: BSD-3-Clause */
/* Models from arrays, for the tests of what stands on them. */
#ifndef NT_MODEL_FEED_TEST_H
#define NT_MODEL_FEED_TEST_H

#include <string.h>

#include "model/objects.h"

#define FEED_BYTES(literal)          \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static inline struct nt_bytes feed_bytes(const char *text)
{
    return (struct nt_bytes){ text, strlen(text) };
}

/* A running program. */
static inline struct nt_source_program feed_program(uint32_t number, const char *node, const char *name, uint32_t pid)
{
    return (struct nt_source_program){
        .number = number,
        .id = 0xabc0 + number,
        .started = 1000000000,
        .pid = pid,
        .state = NT_PROGRAM_RUNNING,
        .host = feed_bytes("host"),
        .domain = feed_bytes("domain"),
        .node = feed_bytes(node),
        .program = feed_bytes("exe"),
        .name = feed_bytes(name),
        .path = "/logs/x.ntlog",
    };
}

/* An open object of generation 1; parent 0 is the program's own object, which is slot 0 itself. */
static inline struct nt_source_object feed_object(uint32_t program, uint32_t slot, uint32_t parent, const char *name)
{
    return (struct nt_source_object){
        .program = program,
        .slot = slot,
        .generation = 1,
        .parent = parent,
        .parent_generation = slot > 0,
        .kind = slot > 0 ? 6 : 1,
        .mask = 6,
        .opened_at = 1000 + slot,
        .name = feed_bytes(name),
    };
}

#endif
