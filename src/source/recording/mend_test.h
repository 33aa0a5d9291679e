/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the hashes within a block of events right, so that what they protect is reached: for tests and fuzzing. */
#ifndef NT_SOURCE_RECORDING_MEND_TEST_H
#define NT_SOURCE_RECORDING_MEND_TEST_H

#include <string.h>

#include <xxhash.h>

#include "source/recording/block.h"
#include "source/recording/pack.h"

/* Groups of the body: their ends and hashes are the last of the summary. */
static inline void mend_groups(uint8_t *summary, size_t summary_size, const uint8_t *body, size_t body_size,
                               uint32_t rows)
{
    size_t groups = 2 * (((size_t)rows + PACK_FRAME - 1) / PACK_FRAME);
    uint32_t begin = 0, end;
    if (rows > RECORDING_EVENTS_MAX || groups * 12 > summary_size - sizeof(struct recording_head)) {
        return;
    }
    uint8_t *hashes = summary + summary_size - groups * 8, *ends = hashes - groups * 4;
    for (size_t i = 0; i < groups; i++, begin = end) {
        memcpy(&end, ends + 4 * i, sizeof end);
        if (end < begin || end > body_size) {
            return;
        }
        uint64_t hash = XXH3_64bits(body + begin, end - begin);
        memcpy(hashes + 8 * i, &hash, sizeof hash);
    }
}

static inline void recording_mend(uint8_t *summary, size_t summary_size, const uint8_t *body, size_t body_size)
{
    struct recording_head head;
    size_t at = sizeof head;
    if (summary_size < sizeof head) {
        return;
    }
    memcpy(&head, summary, sizeof head);
    mend_groups(summary, summary_size, body, body_size, head.rows);
    for (int i = 0; i < RECORDING_SECTIONS && head.sizes[i] <= summary_size - at; i++) {
        head.hashes[i] = XXH3_64bits(summary + at, head.sizes[i]);
        at += head.sizes[i];
    }
    memcpy(summary, &head, sizeof head);
}

#endif
