/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording as a file of blocks, see file.h. */
#include "source/recording/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

#include <nt/error.h>

#include "base/error.h"
#include "source/recording/block.h"
#include "source/recording/pack.h"

#define HEAD sizeof(struct recording_block)

enum { TEXT = 200, CHUNK = 64 * 1024, COLUMNS = 9 };

static const uint8_t mark[8] = RECORDING_MARK;

uint64_t recording_header_hash(const struct recording_header *header)
{
    return XXH3_64bits(header, offsetof(struct recording_header, hash));
}

uint64_t recording_block_hash(const struct recording_block *block, uint64_t offset)
{
    return XXH3_64bits_withSeed(block, offsetof(struct recording_block, hash), offset);
}

/* ---- Places ---- */

int recording_places_add(struct recording_places *places, const struct recording_place *place)
{
    if (places->count == places->room) {
        size_t room = places->room != 0 ? 2 * places->room : 64;
        struct recording_place *more = reallocarray(places->places, room, sizeof *more);
        if (more == NULL) {
            return -ENOMEM;
        }
        places->places = more;
        places->room = room;
    }
    places->places[places->count++] = *place;
    return 0;
}

void recording_places_fini(struct recording_places *places)
{
    free(places->places);
    *places = (struct recording_places){ 0 };
}

static uint64_t place_number(const struct recording_place *place, int column)
{
    const uint64_t numbers[COLUMNS] = { place->size,          place->type,         place->rows,
                                        place->losses,        place->first,        place->last - place->first,
                                        place->session_first, place->session_last, place->flags };
    return numbers[column];
}

static void place_set(struct recording_place *place, int column, uint64_t number)
{
    uint64_t *const numbers[COLUMNS] = {
        &place->size, NULL, NULL, NULL, &place->first, &place->last, &place->session_first, &place->session_last, NULL
    };
    if (column == 1) {
        place->type = (uint16_t)number;
    } else if (column == 2) {
        place->rows = (uint32_t)number;
    } else if (column == 3) {
        place->losses = (uint32_t)number;
    } else if (column == 8) {
        place->flags = (uint32_t)number;
    } else {
        *numbers[column] = number + (column == 5 ? place->first : 0);
    }
}

void recording_places_pack(const struct recording_places *places, struct nt_buffer *out)
{
    uint64_t *numbers = malloc((places->count + 1) * sizeof *numbers);
    if (numbers == NULL) {
        (void)nt_buffer_fail(out, -ENOMEM);
        return;
    }
    for (int column = 0; column < COLUMNS; column++) {
        for (size_t i = 0; i < places->count; i++) {
            numbers[i] = place_number(&places->places[i], column);
        }
        pack_column(out, numbers, places->count);
    }
    free(numbers);
}

void recording_place_events(struct recording_place *place, const uint8_t *summary)
{
    struct recording_head head;
    memcpy(&head, summary, sizeof head);
    place->rows = head.rows;
    place->losses = head.losses;
    place->first = head.first;
    place->last = head.last;
    place->session_first = head.session_first;
    place->session_last = head.session_last;
    place->flags = head.flags;
}

/* ---- Reading ---- */

static int read_at(const struct recording_file *file, void *data, size_t size, uint64_t offset)
{
    char *at = data;
    while (size > 0) {
        ssize_t done = pread(file->file, at, size, (off_t)offset);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? -errno : -NT_ETRUNCATED;
        }
        at += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return 0;
}

static void tell(const struct recording_file *file, int error, const char *text)
{
    if (file->bad != NULL) {
        file->bad(file->arg, error, text);
    }
}

static void tell_damage(const struct recording_file *file, uint64_t offset, uint64_t size)
{
    char text[TEXT];
    (void)snprintf(text, sizeof text, "damaged at offset %" PRIu64 ": %" PRIu64 " bytes are not read", offset, size);
    tell(file, -NT_EFORMAT, text);
}

static bool block_is_whole(const struct recording_block *block, uint64_t offset)
{
    return memcmp(block->mark, mark, sizeof mark) == 0 && block->hash == recording_block_hash(block, offset) &&
           block->summary_size <= RECORDING_SUMMARY_MAX && block->body_size <= RECORDING_BODY_MAX &&
           block->body_raw <= RECORDING_BODY_MAX;
}

static uint64_t block_size(const struct recording_block *block)
{
    return (HEAD + block->summary_size + block->body_size + 7) / 8 * 8;
}

/* What of the block is stored, into `stored`. */
static int read_stored(const struct recording_file *file, uint64_t offset, size_t size, struct nt_buffer *stored)
{
    nt_buffer_clear(stored);
    if (nt_buffer_reserve(stored, size + PACK_SLACK) != 0) {
        return -ENOMEM;
    }
    int error = read_at(file, stored->data, size, offset);
    stored->size = error == 0 ? size : 0;
    memset(stored->data + stored->size, 0, PACK_SLACK);
    return error;
}

static bool ends_in_zeros(const struct nt_buffer *stored, size_t from)
{
    bool zeros = true;
    for (size_t i = from; i < stored->size; i++) {
        zeros = zeros && stored->data[i] == 0;
    }
    return zeros;
}

static int expand(struct recording_read *read)
{
    const struct recording_block *block = &read->block;
    if ((block->flags & RECORDING_ZSTD) == 0) {
        return block->body_raw == block->body_size ? 0 : -NT_EFORMAT;
    }
    nt_buffer_clear(&read->raw);
    if (nt_buffer_reserve(&read->raw, block->body_raw + PACK_SLACK) != 0) {
        return -ENOMEM;
    }
    size_t size = ZSTD_decompress(read->raw.data, block->body_raw, read->body, block->body_size);
    if (ZSTD_isError(size) || size != block->body_raw) {
        return -NT_EFORMAT;
    }
    memset(read->raw.data + size, 0, PACK_SLACK);
    read->body = (const uint8_t *)read->raw.data;
    read->body_size = size;
    return 0;
}

static bool is_place_of(const struct recording_block *block, const struct recording_place *place)
{
    return block_is_whole(block, place->offset) && block->type == place->type && block_size(block) == place->size;
}

/* Bytes of the summary that its hash is of. */
static size_t hashed_size(const struct recording_block *block)
{
    const size_t head = sizeof(struct recording_head);
    return block->type == RECORDING_EVENTS && block->summary_size > head ? head : block->summary_size;
}

static int read_checked(const struct recording_file *file, const struct recording_place *place, bool all,
                        struct recording_read *read)
{
    int error = read_at(file, &read->block, HEAD, place->offset);
    const struct recording_block *block = &read->block;
    if (error == 0 && !is_place_of(block, place)) {
        error = -NT_EFORMAT;
    }
    if (error == 0) {
        error = read_stored(file, place->offset + HEAD, all ? place->size - HEAD : hashed_size(block), &read->stored);
    }
    if (error != 0) {
        return error;
    }
    read->summary = (const uint8_t *)read->stored.data;
    read->summary_size = hashed_size(block);
    if (XXH3_64bits(read->summary, read->summary_size) != block->summary_hash) {
        return -NT_EFORMAT;
    }
    if (!all) {
        return 0;
    }
    read->body = read->summary + block->summary_size;
    read->body_size = block->body_size;
    if (XXH3_64bits(read->body, read->body_size) != block->body_hash ||
        !ends_in_zeros(&read->stored, block->summary_size + read->body_size)) {
        return -NT_EFORMAT;
    }
    return expand(read);
}

/* What could not be read is told. */
static int tell_error(const struct recording_file *file, const struct recording_place *place, int error)
{
    if (error == -NT_ETRUNCATED) {
        tell(file, error, "truncated while it was read");
    } else if (error == -NT_EFORMAT) {
        tell_damage(file, place->offset, place->size);
    } else if (error != 0 && error != -ENOMEM) {
        tell(file, error, nt_error_text(error));
        error = -NT_EFORMAT;
    }
    return error;
}

int recording_file_read(const struct recording_file *file, const struct recording_place *place, bool all,
                        struct recording_read *read)
{
    return tell_error(file, place, read_checked(file, place, all, read));
}

static int fetch(void *arg, size_t from, size_t size, uint8_t *to)
{
    const struct recording_read *read = arg;
    return read_at(read->file, to, size, read->body_offset + from);
}

/* All of the body, or where to get some of it. */
static int find_body(const struct recording_file *file, const struct recording_place *place, bool all,
                     struct recording_read *read, struct recording_parts *parts)
{
    const struct recording_block *block = &read->block;
    read->file = file;
    read->body_offset = place->offset + HEAD + block->summary_size;
    if (!all) {
        parts->fetch = fetch;
        parts->arg = read;
        return 0;
    }
    size_t size = place->size - HEAD - block->summary_size;
    nt_buffer_clear(&read->raw);
    if (nt_buffer_reserve(&read->raw, size + PACK_SLACK) != 0) {
        return -ENOMEM;
    }
    memset(read->raw.data + size, 0, PACK_SLACK);
    int error = read_at(file, read->raw.data, size, read->body_offset);
    parts->body = (const uint8_t *)read->raw.data;
    bool zeros = true;
    for (size_t i = block->body_size; i < size && error == 0; i++) {
        zeros = zeros && parts->body[i] == 0;
    }
    return error == 0 && !zeros ? -NT_EFORMAT : error;
}

static int events_checked(const struct recording_file *file, const struct recording_place *place, bool all,
                          struct recording_read *read, struct recording_parts *ret_parts)
{
    int error = read_at(file, &read->block, HEAD, place->offset);
    const struct recording_block *block = &read->block;
    if (error == 0 && (!is_place_of(block, place) || (block->flags & RECORDING_ZSTD) != 0 ||
                       block->summary_size < sizeof(struct recording_head) || block->body_raw != block->body_size)) {
        error = -NT_EFORMAT;
    }
    error = error == 0 ? read_stored(file, place->offset + HEAD, block->summary_size, &read->stored) : error;
    if (error != 0) {
        return error;
    }
    struct recording_parts parts = { .summary = (const uint8_t *)read->stored.data,
                                     .summary_size = block->summary_size,
                                     .body_size = block->body_size };
    if (XXH3_64bits(parts.summary, hashed_size(block)) != block->summary_hash) {
        return -NT_EFORMAT;
    }
    error = find_body(file, place, all, read, &parts);
    *ret_parts = parts;
    return error;
}

int recording_file_events(const struct recording_file *file, const struct recording_place *place, bool all,
                          struct recording_read *read, struct recording_parts *ret_parts)
{
    return tell_error(file, place, events_checked(file, place, all, read, ret_parts));
}

void recording_file_tell(const struct recording_file *file, const struct recording_place *place)
{
    (void)tell_error(file, place, -NT_EFORMAT);
}

void recording_read_fini(struct recording_read *read)
{
    nt_buffer_fini(&read->stored);
    nt_buffer_fini(&read->raw);
}

/* ---- Finding blocks one by one ---- */

struct scan {
    struct recording_file *file;
    uint64_t offset, expected; /* number of the next block */
    struct recording_read read;
};

/* The next place behind `offset` where a block may begin; the file's size: none. */
static int find_block(const struct recording_file *file, uint64_t offset, uint64_t *ret_found)
{
    static uint8_t chunk[CHUNK + HEAD];
    for (; offset + HEAD <= file->size; offset += CHUNK) {
        size_t size = file->size - offset < sizeof chunk ? file->size - offset : sizeof chunk;
        int error = read_at(file, chunk, size, offset);
        if (error != 0) {
            return error;
        }
        for (size_t i = 0; i + HEAD <= size && i < CHUNK; i += 8) {
            struct recording_block block;
            memcpy(&block, chunk + i, sizeof block);
            if (block_is_whole(&block, offset + i)) {
                *ret_found = offset + i;
                return 0;
            }
        }
    }
    *ret_found = file->size;
    return 0;
}

static void tell_cut(const struct recording_file *file, uint64_t offset)
{
    char text[TEXT];
    if (offset == file->size) {
        (void)snprintf(text, sizeof text, "ends at offset %" PRIu64 " without an end: its recorder was stopped",
                       offset);
    } else {
        (void)snprintf(text, sizeof text,
                       "ends within a block at offset %" PRIu64 ": the last %" PRIu64 " bytes are not read", offset,
                       file->size - offset);
    }
    tell(file, -NT_ETRUNCATED, text);
}

/* A whole head stands there: takes the block, or tells what is wrong with it. */
static int scan_block(struct scan *scan, const struct recording_block *block)
{
    struct recording_file *file = scan->file;
    struct recording_place place = { .offset = scan->offset, .size = block_size(block), .type = block->type };
    int error = recording_file_read(file, &place, false, &scan->read);
    if (error == 0 && block->number != scan->expected) {
        char text[TEXT];
        (void)snprintf(text, sizeof text, "blocks are missing before offset %" PRIu64, scan->offset);
        tell(file, -NT_EFORMAT, text);
    }
    scan->expected = block->number + 1;
    scan->offset += place.size;
    file->ended = file->ended || place.type == RECORDING_END; /* damaged or not */
    if (error != 0) {
        return error == -NT_EFORMAT ? 0 : error; /* told: the next one may be whole */
    }
    if (place.type == RECORDING_EVENTS && scan->read.summary_size >= sizeof(struct recording_head)) {
        recording_place_events(&place, scan->read.summary);
    }
    return recording_places_add(&file->places, &place);
}

static int scan_damage(struct scan *scan)
{
    uint64_t found;
    int error = find_block(scan->file, scan->offset + 8, &found);
    if (error != 0) {
        return error;
    }
    tell_damage(scan->file, scan->offset, found - scan->offset);
    scan->offset = found;
    scan->expected = UINT64_MAX;
    return 0;
}

/* One step: a block, or damage. Returns 1 at the end of what is whole. */
static int scan_step(struct scan *scan)
{
    struct recording_file *file = scan->file;
    struct recording_block block;
    if (file->size - scan->offset < HEAD) {
        return 1;
    }
    int error = read_at(file, &block, HEAD, scan->offset);
    if (error != 0) {
        return error;
    }
    if (!block_is_whole(&block, scan->offset)) {
        error = scan_damage(scan);
        return error == 0 && scan->offset == file->size ? 2 : error;
    }
    if (block_size(&block) > file->size - scan->offset) {
        return 1;
    }
    if (scan->expected == UINT64_MAX) {
        scan->expected = block.number; /* what is missing was told */
    }
    return scan_block(scan, &block);
}

static int scan_blocks(struct recording_file *file)
{
    struct scan scan = { .file = file, .offset = sizeof(struct recording_header) };
    int step = 0;
    while (step == 0 && scan.offset < file->size) {
        step = scan_step(&scan);
    }
    if (step >= 0 && step != 2 && (!file->ended || scan.offset != file->size)) {
        tell_cut(file, scan.offset);
    }
    recording_read_fini(&scan.read);
    return step < 0 ? step : 0;
}

/* ---- The directory ---- */

static int read_columns(struct recording_file *file, const struct recording_read *read, uint64_t count, uint64_t end)
{
    struct pack_in in = { read->body, read->body + read->body_size, false };
    uint64_t *numbers = malloc((count + 1) * sizeof *numbers);
    file->places.places = calloc(count + 1, sizeof *file->places.places);
    if (numbers == NULL || file->places.places == NULL) {
        free(numbers);
        return -ENOMEM;
    }
    file->places.count = file->places.room = count;
    for (int column = 0; column < COLUMNS; column++) {
        unpack_column(&in, numbers, count);
        for (uint64_t i = 0; i < count; i++) {
            place_set(&file->places.places[i], column, numbers[i]);
        }
    }
    free(numbers);
    uint64_t offset = sizeof(struct recording_header);
    for (uint64_t i = 0; i < count && !in.bad; i++) {
        struct recording_place *place = &file->places.places[i];
        in.bad = place->size < HEAD || place->size > end - offset || place->size % 8 != 0;
        place->offset = offset;
        offset += place->size;
    }
    return in.bad || in.at != in.end || offset != end ? -NT_EFORMAT : 0;
}

/* 0; -NT_EFORMAT: there is none that can be used. */
static int read_directory(struct recording_file *file)
{
    struct recording_read read = { .summary = NULL };
    const uint64_t size = HEAD + RECORDING_END_SUMMARY;
    struct recording_place place = { .offset = file->size - size, .size = size, .type = RECORDING_END };
    struct recording_end end;
    uint64_t count = 0;
    if (file->size < sizeof(struct recording_header) + size || read_checked(file, &place, true, &read) != 0) {
        recording_read_fini(&read);
        return -NT_EFORMAT;
    }
    memcpy(&end, read.summary, sizeof end);
    int error = -NT_EFORMAT;
    if (end.directory >= sizeof(struct recording_header) && end.directory < place.offset) {
        place = (struct recording_place){ .offset = end.directory,
                                          .size = place.offset - end.directory,
                                          .type = RECORDING_DIRECTORY };
        error = recording_file_read(file, &place, true, &read);
    }
    if (error == 0 && read.summary_size >= sizeof count) {
        memcpy(&count, read.summary, sizeof count);
        error = count <= file->size / HEAD ? read_columns(file, &read, count, end.directory) : -NT_EFORMAT;
    }
    recording_read_fini(&read);
    file->ended = error == 0;
    if (error != 0) {
        recording_places_fini(&file->places);
    }
    return error;
}

/* ---- ---- */

static int open_checked(struct recording_file *file)
{
    struct recording_header header;
    struct stat status;
    if (fstat(file->file, &status) != 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode)) {
        return -EINVAL;
    }
    file->size = (uint64_t)status.st_size;
    int error = read_at(file, &header, sizeof header, 0);
    if (error != 0) {
        return error;
    }
    if (memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic - 1) != 0) {
        return -NT_EFORMAT;
    }
    if (header.hash != recording_header_hash(&header)) {
        tell_damage(file, 0, sizeof header); /* all else can be read without */
    } else if (header.version != RECORDING_VERSION || header.magic[7] != RECORDING_VERSION) {
        return -NT_EVERSION;
    }
    file->thinned = (header.flags & RECORDING_THINNED) != 0;
    error = read_directory(file);
    return error == -NT_EFORMAT ? scan_blocks(file) : error;
}

int recording_file_open(struct recording_file *file, const char *path, recording_bad *bad, void *arg)
{
    *file = (struct recording_file){ .bad = bad, .arg = arg };
    file->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = file->file < 0 ? -errno : open_checked(file);
    if (error == -NT_EFORMAT) {
        tell(file, error, "not a recording");
    } else if (error == -NT_ETRUNCATED) {
        tell(file, error, "a recording that ends before its first block");
    } else if (error == -EINVAL) {
        tell(file, error, "not a regular file");
    } else if (error != 0 && error != -ENOMEM) {
        tell(file, error, nt_error_text(error));
    }
    if (error != 0) {
        recording_file_close(file);
    }
    return error;
}

void recording_file_close(struct recording_file *file)
{
    if (file->file >= 0) {
        (void)close(file->file);
    }
    file->file = -1;
    recording_places_fini(&file->places);
}
