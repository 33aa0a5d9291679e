/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing recordings, see recording.h. A block is put together whole and written at once; its place in the directory is
   noted when it is in the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

#include "base/buffer.h"
#include "source/recording/block.h"
#include "source/recording/file.h"
#include "source/recording/format.h"
#include "source/recording/index.h"
#include "source/recording/recording.h"
#include "source/recording/table.h"

enum {
    PART = 256 * 1024, /* bytes of tables in one block, about */
    LEVEL = 3,         /* of their compression */
    SHARE = 4,         /* so many times the bytes of a snapshot in events, and another is due */
};

struct life {
    uint32_t program, slot, generation;
};

struct nt_recording {
    int file;
    int error; /* of the first write that failed */
    uint64_t offset, blocks;
    struct recording_encoder *encoder;
    struct nt_buffer summary, body, packed, tables;
    ZSTD_CCtx *zstd;
    struct recording_places places;
    struct nt_recording_stats stats;
    uint64_t snapshots;
    uint64_t tables_hash;
    uint64_t tables_bytes, tables_events; /* written for the last snapshot, and of events up to then */
    struct recording_index lives;         /* that the last one told */
    struct life *life;
    uint32_t life_count, life_room;
    int told_error;
    bool unknown; /* an event names another */
};

/* ---- Bytes ---- */

static int write_all(struct nt_recording *recording, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t done = pwrite(recording->file, at, size, (off_t)(recording->stats.bytes));
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? -errno : -ENOSPC;
        }
        at += done;
        size -= (size_t)done;
        recording->stats.bytes += (uint64_t)done;
    }
    return 0;
}

static int fail(struct nt_recording *recording, int error)
{
    if (recording->error == 0) {
        recording->error = error;
        recording->stats.bytes = recording->offset;
        (void)!ftruncate(recording->file, (off_t)recording->offset);
    }
    return recording->error;
}

static uint64_t hash_of(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

/* The head, but for its own hash. Of events the summary's head has all other hashes. */
static void head_init(struct recording_block *block, unsigned type, const struct nt_buffer *summary,
                      const struct nt_buffer *body)
{
    static const uint8_t mark[8] = RECORDING_MARK;
    bool events = type == RECORDING_EVENTS;
    memcpy(block->mark, mark, sizeof mark);
    block->type = (uint16_t)type;
    block->summary_size = (uint32_t)summary->size;
    block->body_size = (uint32_t)body->size;
    block->summary_hash = hash_of(summary->data, events ? sizeof(struct recording_head) : summary->size);
    block->body_hash = events ? 0 : hash_of(body->data, body->size);
}

/* Appends the summary and body as a block. Their buffers are emptied. */
static int write_block(struct nt_recording *recording, unsigned type, struct recording_place *place)
{
    static const uint8_t zeros[8] = { 0 };
    struct nt_buffer *summary = &recording->summary, *body = &recording->body;
    int error = summary->error != 0 ? summary->error : body->error;
    bool zstd = type == RECORDING_TABLES;
    size_t raw = body->size;
    if (error == 0 && zstd) {
        nt_buffer_clear(&recording->packed);
        error = nt_buffer_reserve(&recording->packed, ZSTD_compressBound(raw));
    }
    if (error == 0 && zstd) {
        size_t size = ZSTD_compressCCtx(recording->zstd, recording->packed.data, recording->packed.room, body->data,
                                        raw, LEVEL);
        error = ZSTD_isError(size) ? -ENOMEM : 0;
        recording->packed.size = size;
        body = &recording->packed;
    }
    if (error != 0) {
        return fail(recording, error);
    }
    struct recording_block block = { .flags = zstd ? RECORDING_ZSTD : 0,
                                     .body_raw = (uint32_t)raw,
                                     .number = recording->blocks };
    head_init(&block, type, summary, body);
    block.hash = recording_block_hash(&block, recording->offset);
    size_t padding = (8 - (summary->size + body->size) % 8) % 8;
    error = write_all(recording, &block, sizeof block);
    error = error != 0 ? error : write_all(recording, summary->data, summary->size);
    error = error != 0 ? error : write_all(recording, body->data, body->size);
    error = error != 0 ? error : write_all(recording, zeros, padding);
    nt_buffer_clear(&recording->summary);
    nt_buffer_clear(&recording->body);
    if (error != 0) {
        return fail(recording, error);
    }
    place->offset = recording->offset;
    place->type = (uint16_t)type;
    place->size = recording->stats.bytes - recording->offset;
    recording->offset = recording->stats.bytes;
    recording->blocks++;
    error = recording_places_add(&recording->places, place);
    return error != 0 ? fail(recording, error) : 0;
}

/* ---- Events ---- */

static void see_object(void *arg, const struct nt_event *event)
{
    struct nt_recording *recording = arg;
    uint32_t hash = recording_hash((uint64_t)event->object << 32 | event->generation, event->program), at = hash, found;
    while ((found = recording_index_next(&recording->lives, hash, &at)) != RECORDING_NONE) {
        const struct life *life = &recording->life[found];
        if (life->slot == event->object && life->generation == event->generation && life->program == event->program) {
            return;
        }
    }
    recording->unknown = true;
}

int nt_recording_flush(struct nt_recording *recording)
{
    if (recording->error != 0 || recording_encoder_is_empty(recording->encoder)) {
        return recording->error;
    }
    struct recording_place place = { 0 };
    uint64_t before = recording->offset;
    recording_encoder_finish(recording->encoder, &recording->summary, &recording->body);
    if (recording->summary.error == 0) {
        recording_place_events(&place, (const uint8_t *)recording->summary.data);
    }
    int error = write_block(recording, RECORDING_EVENTS, &place);
    recording->stats.event_bytes += recording->offset - before;
    return error;
}

int nt_recording_event(struct nt_recording *recording, const struct nt_event *event, uint32_t thread)
{
    if (recording->error != 0 || event->program >= RECORDING_PROGRAMS_MAX) {
        return recording->error != 0 ? recording->error : -E2BIG;
    }
    int error = recording_encoder_event(recording->encoder, event, thread);
    if (error != 0) {
        return error;
    }
    recording->stats.events++;
    return recording_encoder_is_full(recording->encoder) ? nt_recording_flush(recording) : 0;
}

int nt_recording_loss(struct nt_recording *recording, const struct nt_merge_loss *loss)
{
    if (recording->error != 0 || loss->lost.program >= RECORDING_PROGRAMS_MAX) {
        return recording->error != 0 ? recording->error : -E2BIG;
    }
    int error = recording_encoder_loss(recording->encoder, loss);
    if (error != 0) {
        return error;
    }
    recording->stats.losses++;
    recording->stats.lost += loss->lost.count;
    return recording_encoder_is_full(recording->encoder) ? nt_recording_flush(recording) : 0;
}

/* ---- Tables ---- */

struct taking {
    struct nt_recording *recording;
    void (*bad)(void *arg, const char *path, int error, const char *text);
    void *arg;
};

static struct nt_buffer *tables_of(void *arg)
{
    return &((struct taking *)arg)->recording->tables;
}

static int take_program(void *arg, const struct nt_source_program *program)
{
    if (program->number >= RECORDING_PROGRAMS_MAX) {
        return -E2BIG;
    }
    table_put_program(tables_of(arg), program);
    return tables_of(arg)->error;
}

static int take_kind(void *arg, const struct nt_source_kind *kind)
{
    table_put_kind(tables_of(arg), kind);
    return tables_of(arg)->error;
}

static int take_given(void *arg, const struct nt_source_given *given)
{
    table_put_given(tables_of(arg), given);
    return tables_of(arg)->error;
}

static int take_session(void *arg, const struct nt_source_session *session)
{
    table_put_session(tables_of(arg), session);
    return tables_of(arg)->error;
}

static int know_life(struct nt_recording *recording, const struct nt_source_object *object)
{
    if (recording->life_count == recording->life_room) {
        uint32_t room = recording->life_room != 0 ? 2 * recording->life_room : 256;
        struct life *life = reallocarray(recording->life, room, sizeof *life);
        if (life == NULL) {
            return -ENOMEM;
        }
        recording->life = life;
        recording->life_room = room;
    }
    recording->life[recording->life_count] = (struct life){ object->program, object->slot, object->generation };
    uint32_t hash = recording_hash((uint64_t)object->slot << 32 | object->generation, object->program);
    return recording_index_add(&recording->lives, hash, recording->life_count++);
}

static int take_object(void *arg, const struct nt_source_object *object)
{
    table_put_object(tables_of(arg), object);
    int error = know_life(((struct taking *)arg)->recording, object);
    return error != 0 ? error : tables_of(arg)->error;
}

static void take_bad(void *arg, const char *path, int error, const char *text)
{
    const struct taking *taking = arg;
    if (taking->bad != NULL) {
        taking->bad(taking->arg, path, error, text);
    }
}

static int write_parts(struct nt_recording *recording, uint64_t now)
{
    const char *tables = recording->tables.data != NULL ? recording->tables.data : ""; /* nothing is told */
    const uint8_t *at = (const uint8_t *)tables;
    size_t left = recording->tables.size;
    struct recording_part part = { .snapshot = ++recording->snapshots, .time = now };
    int error = 0;
    do {
        size_t size = 0, entry;
        while (size < PART && (entry = table_entry_size(at + size, left - size)) != 0) {
            size += entry;
        }
        struct recording_place place = { .first = now, .last = now };
        part.last = size == left;
        nt_buffer_append(&recording->summary, &part, sizeof part);
        nt_buffer_append(&recording->body, at, size);
        error = write_block(recording, RECORDING_TABLES, &place);
        part.part++;
        at += size;
        left -= size;
    } while (error == 0 && part.last == 0);
    return error;
}

int nt_recording_tables(struct nt_recording *recording, struct nt_source *source, uint64_t now,
                        void (*bad)(void *arg, const char *path, int error, const char *text), void *arg)
{
    struct taking taking = { recording, bad, arg };
    const struct nt_source_sink sink = { .program = take_program,
                                         .kind = take_kind,
                                         .object = take_object,
                                         .bad = take_bad,
                                         .arg = &taking,
                                         .given = take_given,
                                         .session = take_session };
    if (recording->error != 0) {
        return recording->error;
    }
    nt_buffer_clear(&recording->tables);
    recording_index_clear(&recording->lives);
    recording->life_count = 0;
    int error = nt_source_snapshot(source, &sink);
    if (error != 0) {
        return error;
    }
    recording->unknown = false;
    uint64_t before = recording->offset, hash = hash_of(recording->tables.data, recording->tables.size);
    if (recording->snapshots == 0 || hash != recording->tables_hash) {
        recording->tables_hash = hash;
        error = write_parts(recording, now);
        recording->tables_bytes = recording->offset - before;
    }
    recording->tables_events = recording->stats.event_bytes;
    return error;
}

bool nt_recording_wants_tables(const struct nt_recording *recording)
{
    return recording->snapshots == 0 || recording->unknown ||
           recording->stats.event_bytes - recording->tables_events > SHARE * recording->tables_bytes;
}

/* ---- ---- */

static int write_directory(struct nt_recording *recording)
{
    const struct recording_places *places = &recording->places;
    struct recording_place place = { 0 };
    recording_places_pack(places, &recording->body);
    uint64_t count = places->count;
    nt_buffer_append(&recording->summary, &count, sizeof count);
    if (recording->body.size > RECORDING_BODY_MAX) { /* it is found by its blocks then */
        nt_buffer_clear(&recording->summary);
        nt_buffer_clear(&recording->body);
        return 0;
    }
    return write_block(recording, RECORDING_DIRECTORY, &place);
}

int nt_recording_finish(struct nt_recording *recording, uint64_t now)
{
    struct recording_place place = { 0 };
    int error = nt_recording_flush(recording);
    uint64_t directory = recording->offset;
    if (error == 0) {
        error = write_directory(recording);
    }
    if (error != 0) {
        return error;
    }
    const struct recording_end end = {
        .directory = recording->offset != directory ? directory : 0,
        .blocks = recording->blocks,
        .events = recording->stats.events,
        .losses = recording->stats.losses,
        .lost = recording->stats.lost,
        .time = now,
    };
    nt_buffer_append(&recording->summary, &end, sizeof end);
    return write_block(recording, RECORDING_END, &place);
}

struct nt_recording_stats nt_recording_stats(const struct nt_recording *recording)
{
    return recording->stats;
}

void nt_recording_free(struct nt_recording *take_recording)
{
    if (take_recording == NULL) {
        return;
    }
    recording_encoder_free(take_recording->encoder);
    nt_buffer_fini(&take_recording->summary);
    nt_buffer_fini(&take_recording->body);
    nt_buffer_fini(&take_recording->packed);
    nt_buffer_fini(&take_recording->tables);
    (void)ZSTD_freeCCtx(take_recording->zstd);
    recording_places_fini(&take_recording->places);
    recording_index_fini(&take_recording->lives);
    free(take_recording->life);
    free(take_recording);
}

int nt_recording_new(int file, uint64_t now, bool thinned, struct nt_recording **ret_recording)
{
    struct nt_recording *recording = calloc(1, sizeof *recording);
    struct recording_header header = { .version = RECORDING_VERSION,
                                       .header_size = sizeof header,
                                       .created = now,
                                       .flags = thinned ? RECORDING_THINNED : 0 };
    if (recording == NULL) {
        return -ENOMEM;
    }
    recording->file = file;
    recording->zstd = ZSTD_createCCtx();
    int error = recording_encoder_new(&recording->encoder);
    if (error == 0) {
        recording_encoder_on_object(recording->encoder, see_object, recording);
        memcpy(header.magic, RECORDING_MAGIC, sizeof header.magic);
        if (getentropy(&header.id, sizeof header.id) != 0) {
            header.id = now;
        }
        header.hash = recording_header_hash(&header);
        error = recording->zstd != NULL ? write_all(recording, &header, sizeof header) : -ENOMEM;
    }
    if (error != 0) {
        (void)!ftruncate(file, 0);
        nt_recording_free(recording);
        return error;
    }
    recording->offset = recording->stats.bytes;
    *ret_recording = recording;
    return 0;
}
