/* SPDX-License-Identifier: BSD-3-Clause */
/* User-defined kinds and the events that carry their fields. */
#include <errno.h>
#include <string.h>

#include "log/log.h"

static const char *const builtin_names[] = {
#define NT_KIND(number, symbol, name, unit, policy, text) name,
#include <nt/kinds.def>
#undef NT_KIND
};

static bool name_good(const char *name, size_t size)
{
    if (!size || size > sizeof(((struct nt_layout_kind *)0)->name))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '-'))
            return false;
    for (size_t i = 0; i < sizeof(builtin_names) / sizeof(builtin_names[0]); i++)
        if (strcmp(name, builtin_names[i]) == 0)
            return false;
    return true;
}

static bool field_good(const nt_field *field)
{
    size_t size = field->name ? strlen(field->name) : 0;
    return size && size <= sizeof(((struct nt_layout_field *)0)->name) && !field->reserved &&
           field->type >= NT_FIELD_U64 && field->type <= NT_FIELD_ID;
}

static bool options_good(const nt_kind_options *options)
{
    uint32_t reserved = 0;
    for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
        reserved |= options->reserved[i];
    return !reserved && options->field_count <= NT_LAYOUT_FIELDS && (options->fields || !options->field_count);
}

/* Writes down what the options say; false: they are bad. */
static bool kind_describe(const nt_kind_options *given, struct nt_layout_kind *ret_kind)
{
    nt_kind_options taken;
    const nt_kind_options *options = &taken;
    if (!log_options_take(&taken, sizeof(taken), KIND_OPTIONS_FIRST, given))
        return false;
    struct nt_layout_kind kind = { .policy = options->keep != 0 };
    size_t size = options->name ? strlen(options->name) : 0;
    if (!options_good(options) || !size || !name_good(options->name, size))
        return false;
    kind.name_size = (uint8_t)size;
    memcpy(kind.name, options->name, size);
    kind.field_count = (uint8_t)options->field_count;
    for (uint32_t i = 0; i < options->field_count; i++) {
        const nt_field *field = &options->fields[i];
        if (!field_good(field))
            return false;
        size = strlen(field->name);
        kind.fields[i].type = (uint8_t)field->type;
        kind.fields[i].name_size = (uint8_t)size;
        memcpy(kind.fields[i].name, field->name, size);
    }
    *ret_kind = kind;
    return true;
}

static bool kind_same(const struct nt_layout_kind *a, const struct nt_layout_kind *b)
{
    return a->field_count == b->field_count && a->policy == b->policy &&
           memcmp(a->fields, b->fields, sizeof(a->fields)) == 0;
}

/* Under the lock. */
static int kind_add(struct log_map *map, struct nt_layout_kind *kind, nt_kind *ret_kind)
{
    uint32_t count = map->live->kinds;
    for (uint32_t i = 0; i < count; i++) {
        const struct nt_layout_kind *other = &map->kinds[i];
        if (other->name_size != kind->name_size || memcmp(other->name, kind->name, kind->name_size) != 0)
            continue;
        if (!kind_same(other, kind))
            return -EEXIST;
        *ret_kind = NT_LAYOUT_USER_KIND + i;
        return 0;
    }
    struct nt_layout_kind *entry = &map->kinds[count];
    if (count >= map->kind_max || (!log_is_backed(map, entry, sizeof(*entry)) && !log_back(map, entry, sizeof(*entry))))
        return -ENOSPC;
    kind->number = (uint8_t)(NT_LAYOUT_USER_KIND + count);
    *entry = *kind;
    /* release: partner is the reader, who looks at entries below only */
    __atomic_store_n(&map->live->kinds, count + 1, __ATOMIC_RELEASE);
    *ret_kind = NT_LAYOUT_USER_KIND + count;
    return 0;
}

int nt_kind_new(nt_log *log, const nt_kind_options *options, nt_kind *ret_kind)
{
    struct nt_layout_kind kind;
    *ret_kind = NT_KIND_NONE;
    if (!log || !options || !kind_describe(options, &kind))
        return -EINVAL;
    if (!log_thread_enter(log))
        return 0; /* no log: the kind is ignored, like everything */
    struct log_guard guard;
    int error = -ENOSPC;
    log_guard_enter(&guard);
    if (log_lock(&log->map.live->lock)) {
        error = kind_add(&log->map, &kind, ret_kind);
        log_unlock(&log->map.live->lock);
    }
    log_guard_leave(&guard);
    return error;
}

/* A forked child's kinds have the parent's numbers. */
void log_kinds_copy(struct log_map *to, const struct log_map *from)
{
    uint32_t count = __atomic_load_n(&from->live->kinds, __ATOMIC_ACQUIRE);
    if (count > from->kind_max)
        count = from->kind_max;
    if (count && log_back(to, to->kinds, count * sizeof(to->kinds[0]))) {
        memcpy(to->kinds, from->kinds, count * sizeof(to->kinds[0]));
        __atomic_store_n(&to->live->kinds, count, __ATOMIC_RELEASE);
    }
}

/* ---- events with fields ---- */

/* Bytes on their way into continuation slots. */
struct payload {
    uint32_t size, room;
    bool truncated;
    unsigned char bytes[NT_LAYOUT_PAYLOAD + NT_LAYOUT_CONTINUED]; /* the last slot is read whole */
};

static void payload_add(struct payload *payload, const void *data, size_t size)
{
    size_t fits = payload->room - payload->size;
    if (size > fits) {
        size = fits;
        payload->truncated = true;
    }
    if (size)
        memcpy(payload->bytes + payload->size, data, size);
    payload->size += (uint32_t)size;
}

static void payload_fields(struct payload *payload, const struct nt_layout_kind *kind, const nt_value *values,
                           unsigned count)
{
    for (unsigned i = 0; i < kind->field_count && i < NT_LAYOUT_FIELDS && !payload->truncated; i++) {
        const nt_value none = { .as = { 0 }, .size = 0 };
        const nt_value *value = i < count ? &values[i] : &none;
        if (kind->fields[i].type != NT_FIELD_BYTES && kind->fields[i].type != NT_FIELD_STRING) {
            payload_add(payload, &value->as.u64, sizeof(value->as.u64));
            continue;
        }
        size_t left = payload->room - payload->size;
        size_t size = value->as.data ? value->size : 0;
        if (left < sizeof(uint16_t)) {
            payload->truncated = true;
            return;
        }
        /* the size says what is there, so that a cut text still decodes */
        bool cut = size > left - sizeof(uint16_t);
        uint16_t kept = (uint16_t)(cut ? left - sizeof(uint16_t) : size);
        payload_add(payload, &kept, sizeof(kept));
        payload_add(payload, value->as.data, kept);
        payload->truncated |= cut;
    }
}

static void continuation_put(unsigned char *at, uint64_t position, const unsigned char *bytes)
{
    struct nt_layout_continuation *slot = (struct nt_layout_continuation *)(void *)at;
    uint64_t words[NT_LAYOUT_CONTINUED / 8];
    memcpy(words, bytes, sizeof(words));
    uint64_t *to = (uint64_t *)(void *)at;
    __atomic_store_n(&to[0], words[0], __ATOMIC_RELAXED);
    for (unsigned i = 1; i < NT_LAYOUT_CONTINUED / 8; i++)
        __atomic_store_n(&to[i + 1], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&slot->commit, NT_LAYOUT_COMMIT(position, NT_LAYOUT_CONTINUATION), __ATOMIC_RELEASE);
}

/* Head and continuations in one reservation, the head last. */
static void data_put(struct nt_ring_ *ring, struct payload *payload, uint64_t kind_flags, struct nt_event_ *event)
{
    uint32_t slots = 1 + (payload->size + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED;
    uint64_t bytes = (uint64_t)slots * NT_LAYOUT_SLOT;
    unsigned char *base = __atomic_load_n(&ring->base, __ATOMIC_RELAXED);
    uint64_t mask = __atomic_load_n(&ring->mask, __ATOMIC_RELAXED);
    event->argument = payload->size | (uint64_t)slots << 32;
    bool outermost = log_ring_open(ring);
    uint64_t position = nt_take_(&ring->cur, bytes);
    if ((int64_t)(position + bytes - NT_LAYOUT_SLOT) <= __atomic_load_n(&ring->limit, __ATOMIC_RELAXED) ||
        nt_ring_announce_(ring, position, bytes, (uint32_t)event->object >> NT_LAYOUT_SLOT_BITS)) {
        uint64_t flags = NT_RECORD_DATA | (payload->truncated ? NT_RECORD_TRUNCATED : 0);
        for (uint32_t i = 1; i < slots; i++)
            continuation_put(base + ((position + i * NT_LAYOUT_SLOT) & mask), position + i * NT_LAYOUT_SLOT,
                             payload->bytes + (size_t)(i - 1) * NT_LAYOUT_CONTINUED);
        nt_record_put_(base + (position & mask), position, kind_flags | flags << 8, event);
    }
    log_ring_close(ring, outermost);
}

static void data_log(struct nt_log *log, struct nt_thread_log_ *part, uint64_t kind_flags, struct nt_event_ *event,
                     const nt_value *values, unsigned count)
{
    struct payload payload;
    nt_kind kind = (nt_kind)(kind_flags & 0xff);
    struct nt_ring_ *ring = log_ring_of(log, part);
    if (!ring)
        return;
    /* an eighth of the ring at most, so that two such events never lap each other */
    uint64_t slots = (ring->mask + 1) / 8 / NT_LAYOUT_SLOT;
    uint64_t room = (slots - 1) * NT_LAYOUT_CONTINUED;
    payload.size = 0;
    payload.truncated = false;
    payload.room = room < NT_LAYOUT_PAYLOAD ? (uint32_t)room : NT_LAYOUT_PAYLOAD;
    const struct nt_layout_kind none = { 0 };
    bool known = kind >= NT_LAYOUT_USER_KIND &&
                 kind - NT_LAYOUT_USER_KIND < __atomic_load_n(&log->map.live->kinds, __ATOMIC_ACQUIRE);
    payload_fields(&payload, known ? &log->map.kinds[kind - NT_LAYOUT_USER_KIND] : &none, values, count);
    size_t tail = payload.size % NT_LAYOUT_CONTINUED; /* nothing of the stack gets into the file */
    if (tail)
        memset(payload.bytes + payload.size, 0, NT_LAYOUT_CONTINUED - tail);
    data_put(ring, &payload, kind_flags, event);
}

void nt_object_record_at(nt_object object, nt_kind kind, uint64_t value, const nt_value *values, unsigned count,
                         nt_time at)
{
    struct nt_log *log = log_of(object);
    if (!log || kind == NT_KIND_NONE || kind >= NT_LAYOUT_CONTINUATION)
        return;
    struct nt_thread_log_ *part = log_thread_enter(log);
    struct nt_layout_object *entry = part || log_is_ours(log) ? log_object_enter(log, object) : NULL;
    struct nt_layout_tally *tally = entry ? log_tally(log, entry, kind) : NULL;
    if (!tally)
        return;
    struct nt_layout_histogram *histogram = log_histogram(&log->map, entry, tally);
    bool locked = object.handle >> 32 & NT_LAYOUT_LOCKED;
    struct nt_event_ event = { at,
                               __atomic_load_n(&entry->session, __ATOMIC_RELAXED),
                               value,
                               0,
                               object.handle,
                               log_tally_add(tally, value, locked) };
    uint64_t first = nt_first_(event.sum, log_settled(&log->map, entry, tally));
    if (__atomic_load_n(&log->map.control[(uint32_t)object.handle & NT_SLOT_MASK_], __ATOMIC_RELAXED) & NT_MASK(kind))
        data_log(log, part, kind | first, &event, values, count);
    if (histogram)
        log_histogram_add(histogram, value, locked);
    log_tally_seen(tally, value, at);
}

void nt_object_record(nt_object object, nt_kind kind, uint64_t value, const nt_value *values, unsigned count)
{
    nt_object_record_at(object, kind, value, values, count, nt_now());
}
