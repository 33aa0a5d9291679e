/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests and fuzzing only: a small log made in memory by writing the structs of the layout by hand, the way a
   program would leave it. Independent of the library that writes logs, so that the two check each other. */
#ifndef NT_SOURCE_LIVE_BUILD_H
#define NT_SOURCE_LIVE_BUILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nt/log_layout.h>

enum {
    BUILD_RING = 65536, /* bytes of a ring */
    BUILD_CHUNK = 8192, /* more than a page */
    BUILD_RINGS = 2,
    BUILD_SLOTS = 16, /* objects */
    BUILD_REGIONS = 14,
    BUILD_SETTLEMENT = 16,                                            /* pages */
    BUILD_RECORDS = 2 * 4096 + 4096 + 16384 + 5 * 4096 + 8192 + 4096, /* where they begin */
    BUILD_SIZE = BUILD_RECORDS + BUILD_RINGS * BUILD_RING + (3 + BUILD_SETTLEMENT) * 4096,
};

struct build {
    uint8_t *data; /* BUILD_SIZE bytes, page-aligned */
    struct nt_layout_header *header;
    struct nt_layout_live *live;
    uint64_t *bitmap;
    struct nt_layout_redo *redo;
    struct nt_layout_kind *kinds;
    uint64_t *control;
    struct nt_layout_changes *changes; /* the head; the changes of the slots are behind it */
    struct nt_layout_object *objects;
    uint8_t *blocks;
    char *strings;
    struct nt_layout_ring *rings;
    uint8_t *records;
    struct nt_layout_session *sessions;
    struct nt_layout_settler *settlers;
    uint8_t *settlement;
    uint64_t *given;
};

struct build_plan {
    uint32_t id, entry_size;
    uint64_t size;
};

static inline void build_regions(struct build *build)
{
    static const struct build_plan plan[BUILD_REGIONS] = {
        { NT_REGION_BITMAP, 8, 4096 },
        { NT_REGION_REDO, sizeof(struct nt_layout_redo), 16384 },
        { NT_REGION_KINDS, sizeof(struct nt_layout_kind), 4096 },
        { NT_REGION_CONTROL, 8, 4096 },
        { NT_REGION_CHANGES, sizeof(struct nt_layout_change), 4096 },
        { NT_REGION_OBJECTS, sizeof(struct nt_layout_object), 4096 },
        { NT_REGION_BLOCKS, 64, 8192 },
        { NT_REGION_STRINGS, 16, 4096 },
        { NT_REGION_RINGS, sizeof(struct nt_layout_ring), 4096 },
        { NT_REGION_RECORDS, 64, BUILD_RINGS * BUILD_RING },
        { NT_REGION_SESSIONS, sizeof(struct nt_layout_session), 4096 },
        { NT_REGION_SETTLERS, sizeof(struct nt_layout_settler), 4096 },
        { NT_REGION_SETTLEMENT, NT_LAYOUT_PAGE, BUILD_SETTLEMENT * 4096 },
        { NT_REGION_GIVEN, 8, 4096 },
    };
    uint64_t offset = 2 * NT_LAYOUT_PAGE;
    for (uint32_t i = 0; i < BUILD_REGIONS; i++) {
        build->header->regions[i] = (struct nt_layout_region){
            .id = plan[i].id, .entry_size = plan[i].entry_size, .offset = offset, .size = plan[i].size
        };
        offset += plan[i].size;
    }
    build->header->region_count = BUILD_REGIONS;
    build->header->file_size = offset;
}

static inline void *build_at(const struct build *build, enum nt_layout_region_id id)
{
    return build->data + build->header->regions[id - 1].offset;
}

static inline void build_string(struct nt_layout_header *header, int which, char *at, const char *text)
{
    memcpy(at, text, strlen(text));
    header->string_size[which] = (uint16_t)strlen(text);
}

static inline void build_header(struct nt_layout_header *header)
{
    memcpy(header->magic, NT_LAYOUT_MAGIC, 8);
    header->version = NT_LAYOUT_VERSION;
    header->header_size = sizeof *header;
    header->cap = 1 << 20;
    header->id = 0x1122334455667788;
    header->pid = 4242;
    header->start_time = 99;
    header->pid_namespace = 4026531836;
    header->opened = 1000;
    header->ring_bytes = BUILD_RING;
    memset(header->boot_id, 0xb0, sizeof header->boot_id);
    build_string(header, NT_HEADER_HOST, header->host, "host-1");
    build_string(header, NT_HEADER_DOMAIN, header->domain, "domain-1");
    build_string(header, NT_HEADER_NODE, header->node, "node-1");
    build_string(header, NT_HEADER_PROGRAM, header->program, "program-1");
    build_string(header, NT_HEADER_NAME, header->name, "name-1");
}

/* A log of one program without objects; its clock counts nanoseconds, 1000 of them at 1 s after 1970. */
static inline bool build_init(struct build *build)
{
    *build = (struct build){ .data = aligned_alloc(NT_LAYOUT_PAGE, BUILD_SIZE) };
    if (build->data == NULL) {
        return false;
    }
    memset(build->data, 0, BUILD_SIZE);
    build->header = (void *)build->data;
    build->live = (void *)(build->data + NT_LAYOUT_PAGE);
    build_regions(build);
    build_header(build->header);
    build->bitmap = build_at(build, NT_REGION_BITMAP);
    build->redo = build_at(build, NT_REGION_REDO);
    build->kinds = build_at(build, NT_REGION_KINDS);
    build->control = build_at(build, NT_REGION_CONTROL);
    build->changes = build_at(build, NT_REGION_CHANGES);
    build->objects = build_at(build, NT_REGION_OBJECTS);
    build->blocks = build_at(build, NT_REGION_BLOCKS);
    build->strings = build_at(build, NT_REGION_STRINGS);
    build->rings = build_at(build, NT_REGION_RINGS);
    build->records = build_at(build, NT_REGION_RECORDS);
    build->sessions = build_at(build, NT_REGION_SESSIONS);
    build->settlers = build_at(build, NT_REGION_SETTLERS);
    build->settlement = build_at(build, NT_REGION_SETTLEMENT);
    build->given = build_at(build, NT_REGION_GIVEN);
    build->live->clock_pairs = 1;
    build->live->clock[0] = (struct nt_layout_clock_pair){ .ticks = 1000, .monotonic = 1000, .realtime = 1000000000 };
    build->live->blocks = 1;
    build->live->strings = 1;
    return true;
}

static inline void build_fini(struct build *build)
{
    free(build->data);
    *build = (struct build){ 0 };
}

/* The whole image to a descriptor. */
static inline bool build_write(const struct build *build, int fd)
{
    return pwrite(fd, build->data, BUILD_SIZE, 0) == BUILD_SIZE;
}

/* An open object; named after its slot's letter. */
static inline struct nt_layout_object *build_object(struct build *build, uint32_t slot, uint32_t generation)
{
    struct nt_layout_object *object = &build->objects[slot];
    build->strings[16 * (slot + 1)] = (char)('a' + slot);
    object->name = slot + 1;
    object->name_size = 1;
    object->name_room = 16;
    object->kind = slot == 0 ? 1 : 6;
    object->life = NT_LIFE_OPEN;
    object->parent_generation = slot == 0 ? 0 : build->objects[0].generation;
    object->opened = 2000 + slot;
    object->live = object->generation = object->last_generation = generation;
    build->control[slot] = 0x7ffe | (uint64_t)(generation & 0xffff) << NT_LAYOUT_MASK_KINDS;
    if (build->live->slots <= slot) {
        build->live->slots = slot + 1;
    }
    build->live->living++;
    return object;
}

static inline void build_tally(struct nt_layout_tally *tally, uint64_t count, uint64_t total)
{
    *tally = (struct nt_layout_tally){ .sum = { count, total }, .max = total, .last = 3000 };
}

/* Gives an object's entry a tally in one of its three places. */
static inline void build_own(struct nt_layout_object *object, int place, uint8_t kind, uint64_t count, uint64_t total)
{
    build_tally(&object->tally[place], count, total);
    object->tally_kind[place] = kind;
}

static inline struct nt_layout_tally_block *build_block(struct build *build, uint32_t unit, uint32_t owner)
{
    struct nt_layout_tally_block *block = (void *)(build->blocks + 64 * (size_t)unit);
    memset(block, 0, sizeof *block);
    block->owner = owner;
    return block;
}

static inline struct nt_layout_histogram *build_histogram(struct build *build, uint32_t unit, uint32_t owner,
                                                          uint8_t kind)
{
    struct nt_layout_histogram *histogram = (void *)(build->blocks + 64 * (size_t)unit);
    memset(histogram, 0, sizeof *histogram);
    histogram->owner = owner;
    histogram->kind = kind;
    histogram->scale = 3;
    return histogram;
}

static inline struct nt_layout_extra *build_extra(struct build *build, uint32_t unit, uint32_t owner, uint8_t kind)
{
    struct nt_layout_extra *extra = (void *)(build->blocks + 64 * (size_t)unit);
    memset(extra, 0, sizeof *extra);
    extra->owner = owner;
    extra->kind = kind;
    return extra;
}

static inline struct nt_layout_change *build_change(const struct build *build, uint32_t slot)
{
    return (struct nt_layout_change *)(void *)build->changes + 1 + slot;
}

/* A note of an object, at a unit of the string region, before the one at `next`. */
static inline struct nt_layout_note *build_note(struct build *build, uint32_t unit, uint8_t what, const char *bytes,
                                                uint32_t next)
{
    struct nt_layout_note *note = (void *)(build->strings + 16 * (size_t)unit);
    *note = (struct nt_layout_note){ .next = next, .size = (uint16_t)strlen(bytes), .what = what };
    memcpy(note + 1, bytes, strlen(bytes));
    return note;
}

/* Ring 0 or 1, all of it there, nothing written. */
static inline struct nt_layout_ring *build_ring(struct build *build, uint32_t number)
{
    struct nt_layout_ring *ring = &build->rings[number];
    ring->offset = number * (uint64_t)BUILD_RING;
    ring->size = BUILD_RING;
    ring->chunk = BUILD_CHUNK;
    ring->backed = BUILD_RING;
    ring->state = NT_RING_OWNED;
    ring->owners = 1;
    if (build->live->rings <= number) {
        build->live->rings = number + 1;
    }
    return ring;
}

static inline struct nt_layout_record *build_slot(struct build *build, uint32_t number, uint64_t position)
{
    const struct nt_layout_ring *ring = &build->rings[number];
    return (void *)(build->records + ring->offset + (position & (ring->size - 1)));
}

static inline uint64_t build_commit(uint64_t position, uint8_t kind, uint8_t flags)
{
    return (position / NT_LAYOUT_SLOT + 1) << 16 | (uint64_t)flags << 8 | kind;
}

/* Announces the chunk of a position. */
static inline void build_reserve(struct build *build, uint32_t number, uint64_t position)
{
    struct nt_layout_ring *ring = &build->rings[number];
    uint64_t end = (position & ~(ring->chunk - 1)) + ring->chunk;
    if (ring->reserved < end) {
        ring->reserved = end;
    }
}

/* A finished write of the object in slot 1; its words tell the position it was written for. */
static inline void build_record(struct build *build, uint32_t number, uint64_t position)
{
    build_reserve(build, number, position);
    struct nt_layout_record *record = build_slot(build, number, position);
    uint64_t n = position / NT_LAYOUT_SLOT + 1;
    *record = (struct nt_layout_record){
        .time = 5000 + n,
        .session = n * 3,
        .value = n * 5,
        .sum = { n, n * 7 },
        .argument = n * 11,
        .object = 1,
        .generation = 1,
        .commit = build_commit(position, 1, 0),
    };
}

/* A finished event with fields: a head and its continuations, filled with bytes 0, 1, 2 … */
static inline uint32_t build_long(struct build *build, uint32_t number, uint64_t position, uint32_t bytes)
{
    uint32_t slots = 1 + (bytes + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED;
    for (uint32_t i = 1; i < slots; i++) {
        build_reserve(build, number, position + i * (uint64_t)NT_LAYOUT_SLOT);
        struct nt_layout_continuation *part = (void *)build_slot(build, number,
                                                                 position + i * (uint64_t)NT_LAYOUT_SLOT);
        uint8_t payload[NT_LAYOUT_CONTINUED];
        for (uint32_t k = 0; k < NT_LAYOUT_CONTINUED; k++) {
            payload[k] = (uint8_t)((i - 1) * NT_LAYOUT_CONTINUED + k);
        }
        memcpy(part->first, payload, sizeof part->first);
        memcpy(part->rest, payload + sizeof part->first, sizeof part->rest);
        part->commit = build_commit(position + i * (uint64_t)NT_LAYOUT_SLOT, NT_LAYOUT_CONTINUATION, 0);
    }
    build_record(build, number, position);
    struct nt_layout_record *record = build_slot(build, number, position);
    record->argument = bytes | (uint64_t)slots << 32;
    record->commit = build_commit(position, NT_LAYOUT_USER_KIND, NT_RECORD_DATA);
    return slots;
}

/* Session number `number` of this log. */
static inline struct nt_layout_session *build_session(struct build *build, uint32_t number, const char *name)
{
    struct nt_layout_session *session = &build->sessions[number];
    session->id = UINT64_C(0x5e55) << NT_LAYOUT_SESSION_BITS | (build->header->session_first + number);
    session->parent = number != 0 ? session[-1].id : 0;
    session->opened = 2500 + number;
    session->name_size = (uint8_t)strlen(name);
    memcpy(session->name, name, strlen(name));
    if (build->live->sessions <= number) {
        build->live->sessions = number + 1;
    }
    return session;
}

/* Settler 0 or 1, of six pages: two of moves, a group of cells, two of `older`, another group. */
static inline struct nt_layout_settler *build_settler(struct build *build, uint32_t number)
{
    struct nt_layout_settler *settler = &build->settlers[number];
    uint32_t page = 1 + 6 * number;
    settler->state = NT_RING_OWNED;
    settler->moves = page;
    settler->extent[0] = page + 2;
    settler->older = page + 3;
    settler->extent[1] = page + 5;
    settler->groups = 2;
    if (build->live->settlers <= number) {
        build->live->settlers = number + 1;
    }
    return settler;
}

static inline struct nt_layout_cell *build_cells(const struct build *build, uint32_t page)
{
    return (void *)(build->settlement + page * (size_t)NT_LAYOUT_PAGE);
}

/* In the first place from that of its hash on that is free. */
static inline struct nt_layout_cell *build_cell(struct build *build, uint32_t number, uint64_t session, uint8_t kind,
                                                uint64_t moves)
{
    const struct nt_layout_settler *settler = &build->settlers[number];
    uint64_t hash = nt_layout_hash_(session, kind), at = hash >> 57;
    struct nt_layout_cell *cells = build_cells(build, settler->extent[hash & 1]);
    while (cells[at % NT_LAYOUT_CELLS].state != 0) {
        at++;
    }
    struct nt_layout_cell *cell = &cells[at % NT_LAYOUT_CELLS];
    *cell = (struct nt_layout_cell){ .session = session, .state = moves << 16 | kind, .sum = { moves, 10 * moves } };
    return cell;
}

/* What `object` counted in `session` since; nothing else of it changes. */
static inline struct nt_layout_move *build_move(struct build *build, uint32_t settler, uint64_t number,
                                                uint64_t session, uint32_t object)
{
    struct nt_layout_move *moves = (void *)build_cells(build, build->settlers[settler].moves);
    struct nt_layout_move *move = &moves[number % NT_LAYOUT_MOVES];
    *move = (struct nt_layout_move){ .session = session, .sum = { 1, 10 }, .after = { 1, 10 } };
    move->from = object | (uint64_t)build->objects[object].generation << 32;
    move->commit = (number + 1) << 16 | 1;
    return move;
}

static inline void build_kind(struct build *build, uint32_t number, const char *name)
{
    struct nt_layout_kind *kind = &build->kinds[number];
    *kind = (struct nt_layout_kind){ .number = (uint8_t)(NT_LAYOUT_USER_KIND + number), .field_count = 1 };
    kind->name_size = (uint8_t)strlen(name);
    memcpy(kind->name, name, strlen(name));
    kind->fields[0] = (struct nt_layout_field){ .type = NT_FIELD_BYTES, .name_size = 4, .name = "data" };
    if (build->live->kinds <= number) {
        build->live->kinds = number + 1;
    }
}

#endif
