/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings as a source, see recording.h. Lane n + 1 is file n, in the order that it was written in. */
#include "source/recording/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/error.h>

#include "source/recording/reader.h"
#include "source/recording/table.h"

enum {
    TOLD = 1000,          /* damages that are told of one file */
    OWNERS = 4096,        /* threads remembered of a ring */
    FILES = 4096,         /* at once */
    DATA_ROOM = 64 * 1024 /* fields in one batch of `read` */
};

static struct recording_source *recording_of(struct nt_source *source)
{
    return (struct recording_source *)(void *)source;
}

/* Snapshots may meet the same damage again and again. */
static bool is_told(struct reader *reader, const char *text)
{
    uint64_t hash = 0;
    for (const char *at = text; *at != '\0'; at++) {
        hash = recording_hash(hash, (uint64_t)*at);
    }
    uint32_t at = (uint32_t)hash;
    return reader->told.count >= TOLD || recording_index_next(&reader->told, (uint32_t)hash, &at) != RECORDING_NONE ||
           recording_index_add(&reader->told, (uint32_t)hash, 0) != 0;
}

static void reader_bad(void *arg, int error, const char *text)
{
    struct reader *reader = arg;
    struct recording_source *recording = reader->source;
    if (is_told(reader, text)) {
        return;
    }
    (void)snprintf(recording->source.text, sizeof recording->source.text, "%s: %s", reader->path, text);
    if (recording->bad != NULL) {
        recording->bad(recording->arg, reader->path, error, text);
    }
}

/* ---- Snapshots ---- */

static int read_part(struct reader *reader, size_t place, bool all, struct recording_part *ret_part)
{
    int error = recording_file_read(&reader->file, &reader->file.places.places[place], all, &reader->tables);
    if (error == 0 && reader->tables.summary_size < sizeof *ret_part) {
        error = -NT_EFORMAT;
    }
    if (error == 0) {
        memcpy(ret_part, reader->tables.summary, sizeof *ret_part);
    }
    return error;
}

/* The first block of the snapshot whose last one is at `last`; SIZE_MAX: some are missing. */
static size_t snapshot_first(struct reader *reader, size_t last)
{
    struct recording_part part, before;
    if (read_part(reader, last, false, &part) != 0 || part.last == 0) {
        return SIZE_MAX;
    }
    size_t at = last;
    for (; part.part > 0; part = before) {
        do {
            if (at-- == 0) {
                return SIZE_MAX;
            }
        } while (reader->file.places.places[at].type != RECORDING_TABLES);
        if (read_part(reader, at, false, &before) != 0 || before.snapshot != part.snapshot ||
            before.part != part.part - 1) {
            return SIZE_MAX;
        }
    }
    return at;
}

static void tell_contents(struct reader *reader, size_t place, int error)
{
    char text[100];
    if (error == -NT_EFORMAT) {
        (void)snprintf(text, sizeof text, "damaged at offset %llu: what the block says cannot be",
                       (unsigned long long)reader->file.places.places[place].offset);
        reader_bad(reader, error, text);
    }
}

static int tell_places(struct reader *reader, size_t first, size_t last, const struct nt_source_sink *sink)
{
    const struct recording_place *places = reader->file.places.places;
    struct recording_part part;
    int result = 0;
    for (size_t i = first; i <= last && result == 0; i++) {
        if (places[i].type == RECORDING_TABLES) {
            result = read_part(reader, i, true, &part);
            if (result == 0) {
                result = table_tell(reader->tables.body, reader->tables.body_size, reader->base, sink);
                tell_contents(reader, i, result);
            }
        }
    }
    return result;
}

static int check_object(void *arg, const struct nt_source_object *object)
{
    (void)arg;
    (void)object;
    return 0;
}

static int check_session(void *arg, const struct nt_source_session *session)
{
    (void)arg;
    (void)session;
    return 0;
}

/* The newest snapshot that is whole: all of it is read before anything of it is told. */
static int tell_reader(struct reader *reader, const struct nt_source_sink *sink)
{
    const struct recording_place *places = reader->file.places.places;
    const struct nt_source_sink nobody = { .object = check_object, .session = check_session };
    for (size_t last = reader->file.places.count; last-- > 0;) {
        if (places[last].type != RECORDING_TABLES) {
            continue;
        }
        size_t first = snapshot_first(reader, last);
        int result = first != SIZE_MAX ? tell_places(reader, first, last, &nobody) : -NT_EFORMAT;
        if (result == 0) {
            return tell_places(reader, first, last, sink);
        }
        if (result != -NT_EFORMAT) {
            return result;
        }
    }
    return 0;
}

static int recording_snapshot(struct nt_source *source, const struct nt_source_sink *sink)
{
    struct recording_source *recording = recording_of(source);
    int result = 0;
    for (size_t i = 0; i < recording->count && result == 0; i++) {
        if (recording->readers[i].open) {
            result = tell_reader(&recording->readers[i], sink);
        }
    }
    return result;
}

/* ---- Threads ---- */

static struct owners *owners_find(const struct reader *reader, uint32_t program, uint32_t ring)
{
    uint32_t hash = recording_hash(ring, program), at = hash, found;
    while ((found = recording_index_next(&reader->ring_index, hash, &at)) != RECORDING_NONE) {
        if (reader->rings[found].ring == ring && reader->rings[found].program == program) {
            return &reader->rings[found];
        }
    }
    return NULL;
}

static struct owners *owners_add(struct reader *reader, uint32_t program, uint32_t ring)
{
    if (reader->ring_count == reader->ring_room) {
        uint32_t room = reader->ring_room != 0 ? 2 * reader->ring_room : 16;
        struct owners *rings = reallocarray(reader->rings, room, sizeof *rings);
        if (rings == NULL) {
            return NULL;
        }
        reader->rings = rings;
        reader->ring_room = room;
    }
    if (recording_index_add(&reader->ring_index, recording_hash(ring, program), reader->ring_count) != 0) {
        return NULL;
    }
    reader->rings[reader->ring_count] = (struct owners){ .program = program, .ring = ring };
    return &reader->rings[reader->ring_count++];
}

static int owners_take(struct owners *owners, uint64_t position, uint32_t thread)
{
    const struct owner *last = owners->count > 0 ? &owners->owners[owners->count - 1] : NULL;
    if (last != NULL && (last->thread == thread || last->position >= position)) {
        return 0;
    }
    if (owners->count == OWNERS) { /* the older half */
        memmove(owners->owners, owners->owners + OWNERS / 2, OWNERS / 2 * sizeof *owners->owners);
        owners->count = OWNERS / 2;
    }
    if (owners->count == owners->room) {
        uint32_t room = owners->room != 0 ? 2 * owners->room : 4;
        struct owner *more = reallocarray(owners->owners, room, sizeof *more);
        if (more == NULL) {
            return -ENOMEM;
        }
        owners->owners = more;
        owners->room = room;
    }
    owners->owners[owners->count++] = (struct owner){ position, thread };
    return 0;
}

static int take_threads(struct reader *reader)
{
    const struct recording_thread *threads = recording_decoder_threads(reader->decoder);
    uint32_t count = recording_decoder_head(reader->decoder)->changes;
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        struct owners *owners = owners_find(reader, threads[i].program, threads[i].ring);
        if (owners == NULL) {
            owners = owners_add(reader, threads[i].program, threads[i].ring);
        }
        error = owners != NULL ? owners_take(owners, threads[i].position, threads[i].thread) : -ENOMEM;
    }
    return error;
}

static struct reader *reader_of(struct recording_source *recording, uint32_t program)
{
    for (size_t i = 0; i < recording->count; i++) {
        struct reader *reader = &recording->readers[i];
        if (program >= reader->base && program - reader->base < RECORDING_PROGRAMS_MAX) {
            return reader;
        }
    }
    return NULL;
}

static uint32_t recording_thread(struct nt_source *source, uint32_t program, uint32_t ring, uint64_t position)
{
    const struct reader *reader = reader_of(recording_of(source), program);
    const struct owners *owners = reader != NULL ? owners_find(reader, program - reader->base, ring) : NULL;
    uint32_t low = 0, high = owners != NULL ? owners->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (owners->owners[middle].position <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? owners->owners[low - 1].thread : 0;
}

/* ---- Events ---- */

/* Begins a block of events: how its rows are read, or -ENOMEM or, after telling, -NT_EFORMAT. */
static int begin_block(struct reader *reader, const struct recording_place *place)
{
    struct recording_parts parts;
    int result = reader->finder != NULL ? finder_begin(reader, place)
                                        : recording_file_events(&reader->file, place, true, &reader->read, &parts);
    if (reader->finder == NULL && result == 0) {
        result = recording_decoder_begin(reader->decoder, &parts);
        if (result == -NT_EFORMAT) {
            recording_file_tell(&reader->file, place);
        }
    }
    reader->loss_at = reader->stash_at = reader->stash_count = 0;
    if (result >= 0 && result != READER_NOTHING) {
        int error = take_threads(reader);
        result = error != 0 ? error : result;
    }
    return result;
}

/* Whoever goes through all is told of all damage. */
static int check_block(struct reader *reader, const struct recording_place *place)
{
    int error = reader->finder == NULL ? recording_file_read(&reader->file, place, true, &reader->tables) : 0;
    return error == -ENOMEM ? error : 0;
}

static void pass(struct reader *reader, const struct recording_place *place)
{
    if (place->rows > 0) {
        reader->passed = place->last > reader->passed ? place->last : reader->passed;
    }
}

/* Begins the next block of events that can be read. 1; 0: there is none; or -ENOMEM. */
static int next_block(struct reader *reader)
{
    const struct recording_places *places = &reader->file.places;
    if (reader->mode != READER_ALL && reader->place > 0) {
        pass(reader, &places->places[reader->place - 1]); /* as far as it was not read */
    }
    reader->mode = READER_ALL;
    reader->begun = false;
    for (; reader->place < places->count; reader->place++) {
        const struct recording_place *place = &places->places[reader->place];
        int result = place->type == RECORDING_EVENTS ? begin_block(reader, place) : check_block(reader, place);
        if (result == -ENOMEM) {
            return result;
        }
        if (place->type == RECORDING_EVENTS && result >= 0 && result != READER_NOTHING) {
            reader->mode = (enum reader_mode)result;
            reader->begun = true;
            reader->place++;
            return 1;
        }
        if (result == READER_NOTHING) {
            pass(reader, place);
        }
    }
    return 0;
}

/* Rows of the block that were not handed out begin here. */
static uint32_t next_row(const struct reader *reader)
{
    return reader->stash_at < reader->stash_count ? reader->stash_row : recording_decoder_at(reader->decoder);
}

/* Whether the block has nothing left. */
static bool block_is_done(const struct reader *reader)
{
    const struct recording_head *head = recording_decoder_head(reader->decoder);
    return !reader->begun || (next_row(reader) >= head->rows && reader->loss_at >= head->losses);
}

/* Rows that follow before row `end`, those that are not asked for left out. */
static int decode(struct reader *reader, uint32_t end, struct nt_event *events, size_t room)
{
    uint32_t left = end - recording_decoder_at(reader->decoder);
    room = room < left ? room : left;
    int count = reader->mode == READER_PICKED
                    ? recording_decoder_next_picked(reader->decoder, end, events, room)
                    : recording_decoder_next(reader->decoder, events, reader->mode == READER_NONE ? 0 : room);
    if (count < 0) {
        tell_contents(reader, reader->place - 1, count);
        reader->loss_at = UINT32_MAX; /* nor is anything behind it told */
        return 0;
    }
    if (reader->mode != READER_SOME) {
        return count;
    }
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (finder_wants(reader->finder, &events[i])) {
            events[kept++] = events[i];
        }
    }
    return kept;
}

/* Events that have data, as far as there is room for it: what they point to goes with the block. */
static size_t take_with_data(struct reader *reader, uint32_t end, struct nt_source_batch *batch, size_t from)
{
    size_t count = 0;
    if (reader->stash_at == reader->stash_count) {
        uint32_t row = recording_decoder_at(reader->decoder);
        reader->stash_at = 0;
        reader->stash_count = (uint32_t)decode(reader, end, reader->stash, READER_STASH);
        reader->stash_row = row;
    }
    for (; from + count < batch->room && reader->stash_at < reader->stash_count; count++, reader->stash_at++) {
        struct nt_event *event = &batch->events[from + count];
        *event = reader->stash[reader->stash_at];
        if (event->data_size > batch->data_room - batch->data_used) {
            break;
        }
        if (event->data_size > 0) {
            event->data = memcpy(batch->data + batch->data_used, event->data, event->data_size);
            batch->data_used += event->data_size;
        }
    }
    return count;
}

/* Events up to the next loss. Returns how many. */
static size_t take_events(struct reader *reader, struct nt_source_batch *batch, size_t from)
{
    const struct recording_head *head = recording_decoder_head(reader->decoder);
    const struct recording_loss *losses = recording_decoder_losses(reader->decoder);
    uint32_t end = reader->loss_at < head->losses ? losses[reader->loss_at].before : head->rows;
    size_t count = head->data > 0 ? take_with_data(reader, end, batch, from)
                                  : (size_t)decode(reader, end, batch->events + from, batch->room - from);
    for (size_t i = 0; i < count; i++) {
        batch->events[from + i].program += reader->base;
    }
    return count;
}

/* Losses that come before the next event. */
static void take_losses(struct reader *reader, struct nt_source_batch *batch, size_t before)
{
    const struct recording_head *head = recording_decoder_head(reader->decoder);
    const struct recording_loss *losses = recording_decoder_losses(reader->decoder);
    uint32_t row = next_row(reader);
    for (; reader->loss_at < head->losses && losses[reader->loss_at].before <= row &&
           batch->loss_count < batch->loss_room;
         reader->loss_at++) {
        const struct nt_merge_loss *loss = &losses[reader->loss_at].loss;
        struct nt_source_loss *told = &batch->losses[batch->loss_count++];
        *told = loss->lost;
        told->program += reader->base;
        told->before = (uint32_t)before;
        told->from_time = loss->from_time;
        told->to_time = loss->to_time;
    }
}

/* What of the block there is room for. Returns how many events; none, and the block is not done: there is no more
   room. */
static size_t take_block(struct reader *reader, struct nt_source_batch *batch, size_t from)
{
    size_t count = 0;
    while (from + count < batch->room && batch->loss_count < batch->loss_room && !block_is_done(reader)) {
        uint32_t row = next_row(reader), losses = reader->loss_at;
        take_losses(reader, batch, from + count);
        size_t some = batch->loss_count < batch->loss_room ? take_events(reader, batch, from + count) : 0;
        if (some == 0 && next_row(reader) == row && reader->loss_at == losses) {
            break;
        }
        count += some;
    }
    return count;
}

static int read_reader(struct reader *reader, struct nt_source_batch *batch)
{
    size_t count = 0;
    batch->loss_count = batch->data_used = 0;
    batch->passed = 0;
    while (reader->open && count < batch->room && batch->loss_count < batch->loss_room) {
        bool nothing = count == 0 && batch->loss_count == 0;
        if (block_is_done(reader)) {
            int more = nothing || reader->finder == NULL ? next_block(reader) : 0; /* what was left out is between */
            if (more < 0 && nothing) {
                return more;
            }
            if (more <= 0) {
                break;
            }
        }
        count += take_block(reader, batch, count);
        if (!block_is_done(reader)) {
            break;
        }
    }
    if (count > 0 || batch->loss_count > 0) {
        batch->passed = reader->passed;
        reader->passed = 0;
    }
    return (int)count;
}

static int recording_lanes(struct nt_source *source)
{
    return (int)recording_of(source)->count + 1;
}

static int recording_read_lane(struct nt_source *source, uint32_t lane, struct nt_source_batch *batch)
{
    struct recording_source *recording = recording_of(source);
    if (batch->room == 0 || batch->loss_room == 0 || batch->data_room < NT_SOURCE_DATA || lane > recording->count) {
        return -EINVAL;
    }
    batch->loss_count = batch->data_used = 0;
    return lane == 0 ? 0 : read_reader(&recording->readers[lane - 1], batch);
}

static int recording_read(struct nt_source *source, struct nt_event *events, size_t room, struct nt_source_loss *losses,
                          size_t loss_room, size_t *ret_losses)
{
    struct recording_source *recording = recording_of(source);
    struct nt_source_batch batch = { .events = events,
                                     .room = room,
                                     .losses = losses,
                                     .loss_room = loss_room,
                                     .data = recording->data,
                                     .data_room = DATA_ROOM };
    if (room == 0 || loss_room == 0) {
        return -EINVAL;
    }
    int count = 0;
    for (size_t i = 0; i < recording->count && count == 0 && batch.loss_count == 0; i++) {
        count = read_reader(&recording->readers[i], &batch);
    }
    *ret_losses = batch.loss_count;
    return count;
}

/* ---- The source ---- */

static void reader_fini(struct reader *reader)
{
    if (reader->open) {
        recording_file_close(&reader->file);
    }
    recording_decoder_free(reader->decoder);
    finder_free(reader->finder);
    recording_read_fini(&reader->read);
    recording_read_fini(&reader->tables);
    for (uint32_t i = 0; i < reader->ring_count; i++) {
        free(reader->rings[i].owners);
    }
    free(reader->rings);
    recording_index_fini(&reader->ring_index);
    recording_index_fini(&reader->told);
    free(reader->path);
}

static void recording_free(struct nt_source *take_source)
{
    struct recording_source *recording = recording_of(take_source);
    for (size_t i = 0; i < recording->count; i++) {
        reader_fini(&recording->readers[i]);
    }
    free(recording->readers);
    free(recording->data);
    free(recording);
}

static int recording_select(struct nt_source *source, const struct nt_source_wanted *wanted)
{
    struct recording_source *recording = recording_of(source);
    /* Of several files that are merged what is left out would decide what comes first. */
    return recording->count == 1 && recording->readers[0].open ? finder_new(&recording->readers[0], wanted) : 0;
}

static bool recording_complete(struct nt_source *source, uint32_t program, uint32_t object, uint32_t generation)
{
    const struct recording_source *recording = recording_of(source);
    return recording->count != 1 || recording->readers[0].finder == NULL ||
           finder_is_complete(recording->readers[0].finder, program, object, generation);
}

static const struct nt_source_ops recording_ops = {
    .name = "recording",
    .ordered = true,
    .snapshot = recording_snapshot,
    .read = recording_read,
    .lanes = recording_lanes,
    .read_lane = recording_read_lane,
    .select = recording_select,
    .complete = recording_complete,
    .thread = recording_thread,
    .free = recording_free,
};

static int reader_init(struct reader *reader, struct recording_source *recording, const char *path)
{
    reader->source = recording;
    reader->base = (uint32_t)(reader - recording->readers) * RECORDING_PROGRAMS_MAX;
    reader->path = strdup(path);
    int error = reader->path != NULL ? recording_decoder_new(&reader->decoder) : -ENOMEM;
    if (error == 0) {
        error = recording_file_open(&reader->file, path, reader_bad, reader);
        reader->open = error == 0;
        recording->source.thinned = recording->source.thinned || (reader->open && reader->file.thinned);
    }
    return error == -ENOMEM ? error : 0; /* what cannot be read was told */
}

int nt_recording_info(const char *path, struct nt_recording_info *ret_info)
{
    struct recording_file file;
    struct recording_header header;
    int error = recording_file_open(&file, path, NULL, NULL);
    if (error != 0) {
        return error;
    }
    *ret_info = (struct nt_recording_info){
        .version = RECORDING_VERSION,
        .ended = file.ended,
        .thinned = file.thinned,
        .bytes = file.size,
        .blocks = file.places.count,
    };
    if (pread(file.file, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        header.hash == recording_header_hash(&header)) {
        ret_info->id = header.id;
        ret_info->created = header.created;
    }
    for (size_t i = 0; i < file.places.count; i++) {
        const struct recording_place *place = &file.places.places[i];
        bool events = place->type == RECORDING_EVENTS, tables = place->type == RECORDING_TABLES;
        ret_info->blocks -= place->type == RECORDING_DIRECTORY || place->type == RECORDING_END;
        ret_info->event_blocks += events;
        ret_info->event_bytes += events ? place->size : 0;
        ret_info->table_blocks += tables;
        ret_info->table_bytes += tables ? place->size : 0;
    }
    recording_file_close(&file);
    return 0;
}

int nt_source_recording_open(const struct nt_recording_options *options, struct nt_source **ret_source)
{
    struct recording_source *recording = calloc(1, sizeof *recording);
    size_t count = options->file_count < FILES ? options->file_count : FILES;
    if (recording == NULL) {
        return -ENOMEM;
    }
    recording->source.ops = &recording_ops;
    recording->bad = options->bad;
    recording->arg = options->arg;
    recording->readers = calloc(count + 1, sizeof *recording->readers);
    recording->data = malloc(DATA_ROOM);
    int error = recording->readers != NULL && recording->data != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && error == 0; i++) {
        recording->count = i + 1;
        error = reader_init(&recording->readers[i], recording, options->files[i]);
    }
    if (error != 0) {
        recording_free(&recording->source);
        return error;
    }
    for (size_t i = count; i < options->file_count && recording->bad != NULL; i++) {
        recording->bad(recording->arg, options->files[i], -E2BIG, "not read: too many files at once");
    }
    *ret_source = &recording->source;
    return 0;
}
