/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording of any bytes, whose hashes are made right first, so that what they protect is reached: opened, told to a
   model, read through lanes and by threads; then again some of it, by lives, sessions and times. Whatever is in it, the
   reader stays within its bounds and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "export/export.h"
#include "model/objects.h"
#include "model/sessions.h"
#include "source/merge.h"
#include "source/recording/file.h"
#include "source/recording/mend_test.h"
#include "source/recording/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS = 64, SIZE_MAX_ = 1 << 20 };

/* Blocks, as far as their sizes lead, get the hashes that they should have. */
static void mend(uint8_t *bytes, size_t size)
{
    size_t offset = sizeof(struct recording_header);
    if (size < offset) {
        return;
    }
    struct recording_header header;
    memcpy(&header, bytes, sizeof header);
    header.hash = recording_header_hash(&header);
    memcpy(bytes, &header, sizeof header);
    while (size - offset >= sizeof(struct recording_block)) {
        struct recording_block block;
        memcpy(&block, bytes + offset, sizeof block);
        size_t stored = (size_t)block.summary_size + block.body_size;
        if (stored > size - offset - sizeof block) {
            return;
        }
        uint8_t *summary = bytes + offset + sizeof block;
        size_t hashed = block.summary_size;
        block.body_hash = XXH3_64bits(summary + block.summary_size, block.body_size);
        if (block.type == RECORDING_EVENTS) {
            recording_mend(summary, block.summary_size, summary + block.summary_size, block.body_size);
            hashed = hashed < sizeof(struct recording_head) ? hashed : sizeof(struct recording_head);
            block.body_raw = block.body_size;
        }
        block.summary_hash = XXH3_64bits(summary, hashed);
        block.hash = recording_block_hash(&block, offset);
        memcpy(bytes + offset, &block, sizeof block);
        size_t whole = (sizeof block + stored + 7) / 8 * 8;
        if (whole > size - offset) {
            return;
        }
        offset += whole;
    }
}

static void hear(void *arg, const char *path, int error, const char *text)
{
    (void)path;
    ++*(unsigned *)arg;
    if (error >= 0 || text[0] == '\0') {
        abort();
    }
}

static int take_program(void *arg, const struct nt_source_program *program)
{
    return nt_model_add_program(arg, program);
}

static int take_kind(void *arg, const struct nt_source_kind *kind)
{
    return nt_model_add_kind(arg, kind);
}

static int take_object(void *arg, const struct nt_source_object *object)
{
    return nt_model_add_object(arg, object);
}

static int take_given(void *arg, const struct nt_source_given *given)
{
    return nt_model_add_given(arg, given);
}

static int take_session(void *arg, const struct nt_source_session *session)
{
    return nt_model_add_session(arg, session);
}

static void show(struct nt_source *source)
{
    struct nt_model model = { 0 };
    struct nt_buffer out = { 0 };
    const struct nt_source_sink sink = { .program = take_program,
                                         .kind = take_kind,
                                         .object = take_object,
                                         .arg = &model,
                                         .given = take_given,
                                         .session = take_session };
    nt_model_source(&model);
    if (nt_source_snapshot(source, &sink) == 0 && nt_model_link(&model) == 0) {
        const struct nt_export_input input = { .model = &model, .all = true };
        nt_export_json.stat(&input, &out);
        nt_buffer_clear(&out);
        nt_export_text.stat(&input, &out);
        nt_buffer_clear(&out);
        nt_export_text.programs(&input, &out);
        (void)nt_model_link_sessions(&model);
    }
    nt_buffer_fini(&out);
    nt_model_fini(&model);
}

/* What is asked for of the events: some is in the first bytes, how in the last. */
struct asked {
    uint64_t sessions[3];
    uint32_t lives;
};

static int is_wanted(void *arg, uint32_t program, uint32_t object, uint32_t generation)
{
    const struct asked *asked = arg;
    return ((program ^ object ^ generation) & asked->lives) == 0;
}

/* The sessions and times of some event, so that anything is found. */
static void ask(const uint8_t *data, size_t size, const struct nt_event *some, struct nt_source_wanted *wanted,
                struct asked *asked)
{
    uint8_t how = size > 0 ? data[size - 1] : 0;
    memset(asked, 0, sizeof *asked);
    memcpy(asked->sessions, data, size < 16 ? size : 16);
    asked->sessions[2] = some->session;
    asked->lives = how >> 5;
    *wanted = (struct nt_source_wanted){ .until = UINT64_MAX, .arg = asked };
    if ((how & 1) != 0) {
        wanted->sessions = asked->sessions;
        wanted->session_count = 3;
    }
    if ((how & 2) != 0) {
        wanted->life = is_wanted;
    }
    if ((how & 4) != 0) {
        wanted->since = some->time;
    }
    if ((how & 8) != 0) {
        wanted->until = some->time;
    }
}

static void follow(struct nt_source *source, struct nt_event *ret_some)
{
    const struct nt_merge_options options = { .no_hold = true };
    struct nt_merge_item items[ITEMS];
    struct nt_merge *merge;
    volatile uint8_t seen = 0;
    int count;
    if (nt_merge_new(source, &options, &merge) != 0) {
        return;
    }
    while ((count = nt_merge_flush(merge, items, ITEMS)) > 0) {
        for (int i = 0; i < count; i++) {
            const struct nt_event *event = items[i].event;
            for (uint32_t k = 0; event != NULL && k < event->data_size; k++) {
                seen ^= event->data[k];
            }
            if (event != NULL) {
                (void)nt_source_thread(source, event->program, event->ring, event->position);
                (void)source->ops->complete(source, event->program, event->object, event->generation);
                *ret_some = *event;
            }
        }
    }
    (void)seen;
    nt_merge_free(merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    unsigned heard = 0;
    const char *const paths[] = { path };
    const struct nt_recording_options options = { paths, 1, hear, &heard };
    struct nt_source *source;
    int file = memfd_create("recording", MFD_CLOEXEC);
    uint8_t *bytes = malloc(size + 1);
    if (file < 0 || bytes == NULL || size > SIZE_MAX_) {
        abort();
    }
    memcpy(bytes, data, size);
    mend(bytes, size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (write(file, bytes, size) != (ssize_t)size || nt_source_recording_open(&options, &source) != 0) {
        abort();
    }
    struct nt_event some = { 0 };
    struct nt_source_wanted wanted;
    struct asked asked;
    show(source);
    follow(source, &some);
    nt_source_free(source);
    ask(bytes, size, &some, &wanted, &asked);
    if (nt_source_recording_open(&options, &source) != 0 || nt_source_select(source, &wanted) < 0) {
        abort();
    }
    follow(source, &some);
    nt_source_free(source);
    free(bytes);
    (void)close(file);
    return 0;
}
