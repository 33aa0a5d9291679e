/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of slots lies within one chunk and is accepted or thrown away as a whole: commit words are loaded with
   acquire, the rest relaxed, then an acquire fence, then `reserved`. If that has not come past the run's chunk
   by a whole ring, no word of it can have been overwritten before it was loaded (rings announce a chunk, with a
   release fence behind, before they touch it). */
#include "source/live/ring.h"

#include <errno.h>
#include <string.h>

#include <nt/error.h>

#define SLOT ((uint64_t)NT_LAYOUT_SLOT)
#define NUMBER_SHIFT 16
#define NO_POSITION UINT64_MAX

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

int live_ring_init(struct live_ring *ring, struct live_map *map, uint32_t program, uint32_t number)
{
    const struct nt_layout_ring *shared = live_map_at(map, NT_REGION_RINGS, (uint64_t)number * sizeof *shared,
                                                      sizeof *shared);
    if (shared == NULL) {
        return -ENOENT;
    }
    uint64_t offset = live_load64(&shared->offset);
    uint64_t size = live_load64(&shared->size);
    uint64_t chunk = live_load64(&shared->chunk);
    uint64_t room = map->regions[NT_REGION_RECORDS].size;
    if (!is_power_of_two(size) || !is_power_of_two(chunk) || chunk < SLOT || chunk > size / 8 || size > room ||
        offset > room - size || offset % NT_LAYOUT_PAGE != 0) {
        return -NT_EFORMAT;
    }
    *ring = (struct live_ring){
        .map = map,
        .shared = shared,
        .slots = map->base + map->regions[NT_REGION_RECORDS].offset + offset,
        .offset = offset,
        .size = size,
        .chunk = chunk,
        .until = NO_POSITION,
        .blocked_at = NO_POSITION,
        .program = program,
        .number = number,
    };
    return 0;
}

/* ---- Single slots ---- */

static bool page_is_there(const struct live_ring *ring, uint64_t place)
{
    return !ring->holes || live_map_known(ring->map, NT_REGION_RECORDS, ring->offset + place);
}

/* Finds out which pages are there, up to `backed`. */
static void ring_look_holes(struct live_ring *ring, uint64_t backed)
{
    uint64_t at = ring->offset + ring->there, end = ring->offset + backed;
    while (at < end) {
        at = live_map_next(ring->map, NT_REGION_RECORDS, at);
        while (at < end && live_map_known(ring->map, NT_REGION_RECORDS, at)) {
            at += NT_LAYOUT_PAGE - at % NT_LAYOUT_PAGE;
        }
    }
    ring->holes = true;
    ring->there = backed;
}

/* Looks again how much of the ring has memory behind it. */
static void ring_look_there(struct live_ring *ring, bool frozen)
{
    /* acquire: partner is the writer's release once the pages are there */
    uint64_t backed = __atomic_load_n(&ring->shared->backed, __ATOMIC_ACQUIRE);
    backed = backed < ring->size ? backed & ~(SLOT - 1) : ring->size;
    if (backed <= ring->there) {
        return;
    }
    if (live_map_at(ring->map, NT_REGION_RECORDS, ring->offset + ring->there, backed - ring->there) != NULL) {
        ring->there = backed;
    } else if (frozen) {
        ring_look_holes(ring, backed);
    }
}

static const struct nt_layout_record *slot_at(const struct live_ring *ring, uint64_t position)
{
    return (const void *)(ring->slots + (position & (ring->size - 1)));
}

/* The low half of the commit word (kind, flags), or -1: not committed under this position's number. */
static int slot_commit(const struct live_ring *ring, uint64_t position)
{
    uint64_t place = position & (ring->size - 1);
    if (place >= ring->there || !page_is_there(ring, place)) {
        return -1;
    }
    /* acquire: partner is the writer's release store of this word, its last one to the slot */
    uint64_t commit = __atomic_load_n(&slot_at(ring, position)->commit, __ATOMIC_ACQUIRE);
    uint64_t low = commit ^ (position / SLOT + 1) << NUMBER_SHIFT;
    return low >> NUMBER_SHIFT == 0 ? (int)low : -1;
}

static uint8_t commit_kind(int commit)
{
    return (uint8_t)commit;
}

/* Whether what was loaded of the chunk at `start` counts. `ret_reserved`: as it is now. */
static bool chunk_stands(const struct live_ring *ring, uint64_t start, uint64_t *ret_reserved)
{
    /* Orders all loads of slots before the load of `reserved`; partner: the writer's release fence after it
       announced a chunk. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    *ret_reserved = live_load64(&ring->shared->reserved);
    return *ret_reserved <= start + ring->size;
}

/* The oldest position that nobody may be overwriting, given `reserved`. */
static uint64_t ring_oldest(const struct live_ring *ring, uint64_t reserved)
{
    uint64_t oldest = reserved > ring->size ? reserved - ring->size : 0;
    return (oldest + ring->chunk - 1) & ~(ring->chunk - 1);
}

static uint64_t chunk_of(const struct live_ring *ring, uint64_t position)
{
    return position & ~(ring->chunk - 1);
}

/* ---- Runs of plain events ---- */

/* Fills one event from a slot; the caller knows that it is committed. */
static inline void event_take(struct nt_event *event, const struct nt_layout_record *record,
                              const struct live_ring *ring, const struct live_clock *clock)
{
    uint64_t ticks = live_load64(&record->time);
    event->ticks = ticks;
    event->time = live_clock_time(clock, ticks);
    event->session = live_load64(&record->session);
    event->value = live_load64(&record->value);
    event->count = live_load64(&record->sum.count);
    event->total = live_load64(&record->sum.total);
    event->argument = live_load64(&record->argument);
    event->program = ring->program;
    event->ring = ring->number;
    event->object = live_load32(&record->object) & ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1);
    uint32_t generation = live_load32(&record->generation);
    event->generation = generation & ~NT_LAYOUT_LOCKED;
    event->flags = (generation & NT_LAYOUT_LOCKED) != 0 ? NT_EVENT_SHARED : 0;
    event->merged = 1;
    event->data = NULL;
    event->data_size = 0;
    event->setter = 0;
}

/* Copies plain events from `position` on, at most `limit`; returns how many. All slots lie in memory that is
   there and in one chunk. */
static size_t run_take(const struct live_ring *ring, uint64_t position, size_t limit, const struct live_clock *clock,
                       struct nt_event *events)
{
    const struct nt_layout_record *record = slot_at(ring, position);
    uint64_t number = (position / SLOT + 1) << NUMBER_SHIFT;
    size_t taken = 0;
    for (; taken < limit; taken++, record++, number += UINT64_C(1) << NUMBER_SHIFT) {
        /* acquire: partner is the writer's release store of this word, its last one to the slot */
        uint64_t low = __atomic_load_n(&record->commit, __ATOMIC_ACQUIRE) ^ number;
        uint8_t kind = (uint8_t)low;
        if (low > UINT16_MAX || (uint8_t)(kind + 1) <= 1 || (low >> 8 & NT_RECORD_DATA) != 0) {
            break;
        }
        struct nt_event *event = &events[taken];
        event_take(event, record, ring, clock);
        event->position = position + taken * SLOT;
        event->kind = kind;
        event->flags |= (uint16_t)(low >> 8);
    }
    return taken;
}

/* ---- Losses ---- */

/* Notes that [from, to) is lost; adjoining losses become one. False: no room to tell an earlier one. */
static bool loss_flush(struct live_ring *ring, struct live_ring_out *out)
{
    if (ring->lost_from == ring->lost_to) {
        return true;
    }
    if (out->loss_count == out->loss_room) {
        return false;
    }
    out->losses[out->loss_count++] = (struct nt_source_loss){
        .program = ring->program,
        .ring = ring->number,
        .from = ring->lost_from,
        .to = ring->lost_to,
        .count = (ring->lost_to - ring->lost_from) / SLOT,
    };
    ring->lost_from = ring->lost_to;
    return true;
}

static bool loss_add(struct live_ring *ring, uint64_t to, struct live_ring_out *out)
{
    if (ring->lost_from != ring->lost_to && ring->lost_to != ring->at && !loss_flush(ring, out)) {
        return false;
    }
    if (ring->lost_from == ring->lost_to) {
        ring->lost_from = ring->at;
    }
    ring->lost_to = to;
    ring->at = to;
    return true;
}

/* ---- What is not a plain event ---- */

enum step {
    STEP_ON,   /* look again */
    STEP_FULL, /* no room for what comes next */
    STEP_WAIT, /* nothing more for now */
};

/* Bytes of the fields that the event at `position` carries, or -1: what it says cannot be. */
static int64_t payload_size(const struct nt_layout_record *record, uint64_t *ret_slots)
{
    uint64_t argument = live_load64(&record->argument);
    uint64_t bytes = (uint32_t)argument;
    uint64_t slots = 1 + (bytes + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED;
    *ret_slots = slots;
    return bytes <= NT_LAYOUT_PAYLOAD && argument >> 32 == slots ? (int64_t)bytes : -1;
}

static void payload_take(const struct nt_layout_continuation *slot, uint8_t bytes[NT_LAYOUT_CONTINUED])
{
    uint64_t words[NT_LAYOUT_SLOT / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        words[i] = live_load64((const uint64_t *)(const void *)slot + i);
    }
    memcpy(bytes, words, sizeof slot->first);
    memcpy(bytes + sizeof slot->first, words + 2, sizeof slot->rest);
}

/* Copies the continuation slots of the event at ring->at. */
static bool payload_copy(const struct live_ring *ring, uint64_t slots, uint64_t bytes, uint8_t *to)
{
    for (uint64_t i = 1; i < slots; i++) {
        uint64_t position = ring->at + i * SLOT;
        int commit = slot_commit(ring, position);
        if (commit < 0 || commit_kind(commit) != NT_LAYOUT_CONTINUATION) {
            return false;
        }
        uint8_t part[NT_LAYOUT_CONTINUED];
        payload_take((const void *)slot_at(ring, position), part);
        uint64_t done = (i - 1) * sizeof part;
        memcpy(to + done, part, bytes - done < sizeof part ? bytes - done : sizeof part);
    }
    return true;
}

/* An event with fields: whole or lost. */
static enum step read_long(struct live_ring *ring, int commit, const struct live_clock *clock,
                           struct live_ring_out *out)
{
    const struct nt_layout_record *record = slot_at(ring, ring->at);
    uint64_t slots, reserved;
    int64_t bytes = payload_size(record, &slots);
    if (bytes > 0 && (uint64_t)bytes > out->data_room - out->data_used) {
        return STEP_FULL;
    }
    struct nt_event event;
    event_take(&event, record, ring, clock);
    event.position = ring->at;
    event.kind = commit_kind(commit);
    event.flags |= (uint16_t)(commit >> 8);
    uint8_t *data = out->data + out->data_used;
    bool whole = bytes >= 0 && payload_copy(ring, slots, (uint64_t)bytes, data);
    if (!chunk_stands(ring, chunk_of(ring, ring->at), &reserved)) {
        return STEP_ON;
    }
    if (!whole || ring->at + slots * SLOT > reserved) {
        return loss_add(ring, ring->at + SLOT, out) ? STEP_ON : STEP_FULL;
    }
    if (!loss_flush(ring, out)) {
        return STEP_FULL;
    }
    event.data = bytes > 0 ? data : NULL;
    event.data_size = (uint32_t)bytes;
    out->events[out->count++] = event;
    out->data_used += (size_t)bytes;
    ring->at += slots * SLOT;
    return STEP_ON;
}

/* The next event's start behind a hole, or NO_POSITION. */
static uint64_t find_head(const struct live_ring *ring, uint64_t from, uint64_t reserved)
{
    uint64_t position = from;
    while (position < reserved) {
        uint64_t place = position & (ring->size - 1);
        if (place >= ring->there) {
            position += ring->size - place; /* the rest of this lap has no memory */
            continue;
        }
        if (!page_is_there(ring, place)) {
            position += NT_LAYOUT_PAGE - place % NT_LAYOUT_PAGE;
            continue;
        }
        int commit = slot_commit(ring, position);
        if (commit >= 0 && commit_kind(commit) != NT_LAYOUT_CONTINUATION) {
            return position;
        }
        position += SLOT;
    }
    return NO_POSITION;
}

/* Whether a thread took the ring over at this position: the one before it ended and left the rest of its chunk
   unused. */
static bool is_takeover(const struct live_ring *ring, uint64_t position)
{
    for (int i = 0; i < (int)NT_LAYOUT_OWNERS; i++) {
        if (live_load64(&ring->shared->owner[i].from) == position) {
            return true;
        }
    }
    return false;
}

uint32_t live_ring_thread(const struct live_ring *ring, uint64_t position)
{
    const struct nt_layout_ring *shared = ring->shared;
    /* acquire: partner is the writer's release once the entry is whole */
    uint32_t owners = __atomic_load_n(&shared->owners, __ATOMIC_ACQUIRE);
    for (uint32_t age = 1; age <= owners && age < NT_LAYOUT_OWNERS; age++) {
        const struct nt_layout_owner *owner = &shared->owner[(owners - age) % NT_LAYOUT_OWNERS];
        if (live_load64(&owner->from) > position) {
            continue;
        }
        uint32_t thread = live_load32(&owner->tid);
        /* Orders the loads of the entry before the second look; a newer owner's takes its place only later. */
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return live_load32(&shared->owners) - owners + age < NT_LAYOUT_OWNERS ? thread : 0;
    }
    return 0;
}

/* A slot that is not finished. While its chunk is the newest, it may still be. Later it is lost, once an event
   behind it shows that the writer went on; what no event is behind is the end. */
static enum step read_hole(struct live_ring *ring, bool frozen, uint64_t reserved, struct live_ring_out *out)
{
    if (!frozen && reserved <= chunk_of(ring, ring->at) + ring->chunk) {
        return STEP_WAIT;
    }
    if (frozen && ring->blocked_at == ring->at && ring->blocked_by == reserved) {
        return STEP_WAIT;
    }
    uint64_t head = find_head(ring, ring->at + SLOT, reserved);
    uint64_t now;
    if (!chunk_stands(ring, chunk_of(ring, ring->at), &now)) {
        return STEP_ON;
    }
    if (head == NO_POSITION) {
        ring->blocked_at = ring->at;
        ring->blocked_by = reserved;
        return STEP_WAIT;
    }
    if (is_takeover(ring, head)) {
        ring->at = head;
        return STEP_ON;
    }
    return loss_add(ring, head, out) ? STEP_ON : STEP_FULL;
}

static enum step read_odd(struct live_ring *ring, bool frozen, uint64_t reserved, const struct live_clock *clock,
                          struct live_ring_out *out)
{
    int commit = slot_commit(ring, ring->at);
    if (commit < 0) {
        return read_hole(ring, frozen, reserved, out);
    }
    uint8_t kind = commit_kind(commit);
    if (kind != 0 && kind != NT_LAYOUT_CONTINUATION && (commit >> 8 & NT_RECORD_DATA) != 0) {
        return read_long(ring, commit, clock, out);
    }
    if (kind != 0 && kind != NT_LAYOUT_CONTINUATION) {
        return STEP_ON; /* finished just now */
    }
    /* A continuation whose head is gone, or nonsense. */
    return loss_add(ring, ring->at + SLOT, out) ? STEP_ON : STEP_FULL;
}

/* ---- Reading ---- */

static size_t run_limit(const struct live_ring *ring, uint64_t reserved, size_t room)
{
    uint64_t end = chunk_of(ring, ring->at) + ring->chunk;
    uint64_t place = ring->at & (ring->size - 1);
    uint64_t bytes = (end < reserved ? end : reserved) - ring->at;
    uint64_t there = place < ring->there && page_is_there(ring, place) ? ring->there - place : 0;
    if (ring->holes) {
        uint64_t page = NT_LAYOUT_PAGE - place % NT_LAYOUT_PAGE;
        there = there < page ? there : page;
    }
    bytes = bytes < there ? bytes : there;
    return bytes / SLOT < room ? (size_t)(bytes / SLOT) : room;
}

/* A reader that is overtaken again and again gives up more each time, up to half of the ring. */
static enum step read_jump(struct live_ring *ring, uint64_t reserved, unsigned overtaken, struct live_ring_out *out)
{
    uint64_t margin = overtaken < 2 ? 0 : ring->chunk << (overtaken < 16 ? overtaken - 2 : 14);
    if (margin > ring->size / 2) {
        margin = ring->size / 2;
    }
    return loss_add(ring, ring_oldest(ring, reserved) + margin, out) ? STEP_ON : STEP_FULL;
}

static enum step read_run(struct live_ring *ring, bool frozen, uint64_t reserved, const struct live_clock *clock,
                          struct live_ring_out *out)
{
    size_t limit = run_limit(ring, reserved, out->room - out->count);
    size_t taken = limit > 0 ? run_take(ring, ring->at, limit, clock, out->events + out->count) : 0;
    if (taken == 0) {
        return read_odd(ring, frozen, reserved, clock, out);
    }
    uint64_t now;
    if (!chunk_stands(ring, chunk_of(ring, ring->at), &now)) {
        return STEP_ON; /* overtaken */
    }
    if (!loss_flush(ring, out)) {
        return STEP_FULL;
    }
    out->count += taken;
    ring->at += taken * SLOT;
    return STEP_ON;
}

void live_ring_look(struct live_ring *ring)
{
    ring->until = live_load64(&ring->shared->reserved);
}

void live_ring_read(struct live_ring *ring, bool frozen, const struct live_clock *clock, struct live_ring_out *out)
{
    enum { OVERTAKEN_MAX = 64, IDLE_MAX = 64 };
    enum step step = STEP_ON;
    unsigned overtaken = 0, idle = 0;
    uint64_t before = ring->at;
    /* Idle turns end too: words that change behind our back must not keep us here. */
    while (step == STEP_ON && out->count < out->room && overtaken < OVERTAKEN_MAX && idle < IDLE_MAX) {
        idle = ring->at == before ? idle + 1 : 0;
        before = ring->at;
        /* acquire: partner is the writer's release fence; pages that are told of as backed before are seen */
        uint64_t reserved = __atomic_load_n(&ring->shared->reserved, __ATOMIC_ACQUIRE);
        if (reserved % SLOT != 0 || reserved >= UINT64_MAX - 2 * ring->size) {
            break; /* nonsense */
        }
        if (ring->at < ring_oldest(ring, reserved)) {
            step = read_jump(ring, reserved, overtaken++, out);
            continue;
        }
        if (ring->at >= reserved || ring->at >= ring->until) {
            break;
        }
        ring_look_there(ring, frozen);
        step = read_run(ring, frozen, reserved, clock, out);
    }
    /* What does not fit is told next time. */
    (void)loss_flush(ring, out);
}

/* ---- How far it was written ---- */

/* Whether this slot, or one shortly behind it, is committed. */
static bool is_used(const struct live_ring *ring, uint64_t position, uint64_t end)
{
    enum { NEAR = 4 };
    for (uint64_t i = 0; i < NEAR && position + i * SLOT < end; i++) {
        if (slot_commit(ring, position + i * SLOT) >= 0) {
            return true;
        }
    }
    return false;
}

/* The end of what is used within [start, end): few looks, for each disturbs a thread that writes there. */
static uint64_t end_search(const struct live_ring *ring, uint64_t start, uint64_t end)
{
    uint64_t low = start, high = end; /* slots below low are used, from high on they are not */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2 / SLOT * SLOT;
        if (is_used(ring, middle, end)) {
            low = middle + SLOT;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t end_scan(const struct live_ring *ring, uint64_t start, uint64_t end)
{
    while (end > start && slot_commit(ring, end - SLOT) < 0) {
        end -= SLOT;
    }
    return end;
}

struct live_ring_extent live_ring_extent(struct live_ring *ring, bool frozen)
{
    struct live_ring_extent extent = { 0, 0 };
    uint64_t reserved = __atomic_load_n(&ring->shared->reserved, __ATOMIC_ACQUIRE);
    if (reserved % SLOT != 0 || reserved == 0) {
        return extent;
    }
    ring_look_there(ring, frozen);
    uint64_t oldest = ring_oldest(ring, reserved);
    uint64_t start = reserved > 2 * ring->chunk ? reserved - 2 * ring->chunk : 0;
    uint64_t end = frozen ? end_scan(ring, start, reserved) : end_search(ring, start, reserved);
    extent.used = end / SLOT;
    extent.overwritten = (oldest < end ? oldest : end) / SLOT;
    return extent;
}
