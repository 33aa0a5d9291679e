/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to be said of one file: what it is, what is in it, and whether it is whole. */
#ifndef NT_EXPORT_INFO_H
#define NT_EXPORT_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/objects.h"

struct nt_export_info {
    const char *path;
    const struct nt_model *model; /* linked, with its sessions: the newest snapshot in the file */
    bool recording;               /* else a log: `id`, times and all of blocks are 0 */
    bool ended;                   /* a recording that its recorder finished */
    bool thinned;                 /* events were left out on purpose */
    uint32_t version;             /* of the format */
    uint64_t id, created;
    uint64_t bytes; /* of the file */
    uint64_t blocks, event_blocks, event_bytes, table_blocks, table_bytes;
    /* What came when all of it was read: */
    uint64_t events;
    uint64_t first, last;      /* least and greatest time of events, ns since 1970; 0: there are none */
    uint64_t overwritten;      /* slots of rings that were overwritten, or never finished */
    uint64_t lost, not_logged; /* counts that no event shows; of a thinned one `lost` are those left out too */
    const char *damages;       /* lines, each closed by a newline: what cannot be read */
    size_t damages_size;
};

/* Sums over the model. */
struct nt_export_info_sums {
    uint64_t objects, closed; /* lives that have an entry, and those of them that have ended */
    uint64_t sessions;        /* that programs know of */
    uint64_t backed;          /* bytes of memory that logs used */
    uint64_t dropped, refused_objects, refused_tallies;
    uint64_t damages; /* lines */
};

struct nt_export_info_sums nt_export_info_sums(const struct nt_export_info *info);

void nt_export_text_info(const struct nt_export_info *info, struct nt_buffer *out);
void nt_export_json_info(const struct nt_export_info *info, struct nt_buffer *out);

#endif
