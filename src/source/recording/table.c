/* SPDX-License-Identifier: BSD-3-Clause */
/* What a snapshot tells, see table.h. */
#include "source/recording/table.h"

#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "source/recording/format.h"

enum { PROGRAM = 1, KIND = 2, OBJECT = 3, GIVEN = 4, SESSION = 5 };
enum {
    SUMS_MAX = 256, /* kinds that one thing has sums of */
    BUCKETS_MAX = 514,
    LINKS_MAX = 3,
    PAGES_MAX = 65536,
};

/* ---- Writing ---- */

static void put_text(struct nt_buffer *out, struct nt_bytes bytes)
{
    pack_bytes(out, bytes.data, bytes.size);
}

static void put_flags(struct nt_buffer *out, const bool *flags, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        bits |= (uint64_t)flags[i] << i;
    }
    pack_number(out, bits);
}

/* The entry's size, 4 bytes, is known at its end. */
static size_t entry_begin(struct nt_buffer *out, unsigned what)
{
    const uint32_t none = 0;
    nt_buffer_byte(out, (char)what);
    nt_buffer_append(out, &none, sizeof none);
    return out->size;
}

static void entry_end(struct nt_buffer *out, size_t begin)
{
    if (out->error == 0) {
        uint32_t size = (uint32_t)(out->size - begin);
        memcpy(out->data + begin - sizeof size, &size, sizeof size);
    }
}

static void put_numbers(struct nt_buffer *out, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pack_number(out, numbers[i]);
    }
}

void table_put_program(struct nt_buffer *out, const struct nt_source_program *program)
{
    const struct nt_source_program *p = program;
    const uint64_t numbers[] = {
        p->number,      p->id,      p->origin,          p->start_time,      p->started,   p->ended,          p->events,
        p->overwritten, p->dropped, p->refused_objects, p->refused_tallies, p->unsettled, p->backed,         p->cap,
        p->pid,         p->uid,     p->rings,           p->objects,         p->sessions,  (uint64_t)p->state
    };
    const bool flags[] = { p->forgets, p->replaced, p->moving };
    const char *path = p->path != NULL ? p->path : "";
    size_t begin = entry_begin(out, PROGRAM);
    put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    put_flags(out, flags, sizeof flags / sizeof flags[0]);
    put_text(out, p->host);
    put_text(out, p->domain);
    put_text(out, p->node);
    put_text(out, p->program);
    put_text(out, p->name);
    put_text(out, (struct nt_bytes){ path, strlen(path) });
    pack_number(out, p->remembers);
    entry_end(out, begin);
}

void table_put_kind(struct nt_buffer *out, const struct nt_source_kind *kind)
{
    size_t begin = entry_begin(out, KIND);
    pack_number(out, kind->program);
    pack_number(out, kind->kind);
    pack_number(out, kind->keep);
    put_text(out, kind->name);
    pack_number(out, kind->field_count);
    for (size_t i = 0; i < kind->field_count; i++) {
        pack_number(out, kind->fields[i].type);
        put_text(out, kind->fields[i].name);
    }
    entry_end(out, begin);
}

static void put_tallies(struct nt_buffer *out, const struct nt_source_tally *tallies, size_t count)
{
    pack_number(out, count);
    for (size_t i = 0; i < count; i++) {
        const struct nt_source_tally *t = &tallies[i];
        const uint64_t numbers[] = { t->kind, t->count, t->total, t->max, t->last };
        put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    }
}

static void put_rare(struct nt_buffer *out, const struct nt_source_rare *rare)
{
    put_text(out, rare->remote_node);
    put_text(out, rare->remote_process);
    pack_number(out, rare->link_count);
    for (size_t i = 0; i < rare->link_count; i++) {
        pack_number(out, rare->links[i].direction);
        pack_number(out, rare->links[i].pairing);
        put_text(out, rare->links[i].key);
    }
    pack_number(out, rare->histogram_count);
    for (size_t i = 0; i < rare->histogram_count; i++) {
        const struct nt_source_histogram *histogram = &rare->histograms[i];
        pack_number(out, histogram->kind);
        pack_number(out, histogram->bucket_count);
        for (size_t k = 0; k < histogram->bucket_count; k++) {
            const struct nt_source_bucket *bucket = &histogram->buckets[k];
            pack_number(out, bucket->low);
            pack_number(out, bucket->high - bucket->low);
            pack_number(out, bucket->count);
        }
    }
}

void table_put_object(struct nt_buffer *out, const struct nt_source_object *object)
{
    const struct nt_source_object *o = object;
    const uint64_t numbers[] = {
        o->program,  o->slot, o->generation, o->parent,    o->parent_generation, o->previous, o->previous_generation,
        o->epoch,    o->kind, o->discipline, o->described, o->session,           o->mask,     o->opened_at,
        o->closed_at
    };
    const bool flags[] = { o->closed, o->mixed, o->unsettled, o->settled != NULL, o->rare != NULL };
    size_t begin = entry_begin(out, OBJECT);
    put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    put_flags(out, flags, sizeof flags / sizeof flags[0]);
    put_text(out, o->name);
    put_tallies(out, o->tallies, o->tally_count);
    put_tallies(out, o->gone, o->gone_count);
    put_tallies(out, o->base, o->base_count);
    put_tallies(out, o->lineage, o->lineage_count);
    for (size_t i = 0; o->settled != NULL && i < o->tally_count; i++) {
        pack_number(out, o->settled[i].count);
        pack_number(out, o->settled[i].total);
    }
    if (o->rare != NULL) {
        put_rare(out, o->rare);
    }
    entry_end(out, begin);
}

static void put_pages(struct nt_buffer *out, const struct nt_source_given *given)
{
    size_t passed = 0, there = 0;
    for (size_t i = 0; i < given->page_count; i++) {
        there += given->pages[i] != NULL;
    }
    pack_number(out, given->page_count);
    pack_number(out, there);
    for (size_t i = 0; i < given->page_count; i++) {
        passed++;
        if (given->pages[i] == NULL || nt_buffer_reserve(out, NT_LAYOUT_PAGE + 16) != 0) {
            continue;
        }
        pack_number(out, passed - 1);
        passed = 0;
        for (size_t k = 0; k < NT_LAYOUT_PAGE / sizeof(uint64_t); k++) {
            uint64_t word = __atomic_load_n(&given->pages[i][k], __ATOMIC_RELAXED); /* partner: the program's setting */
            nt_buffer_append(out, &word, sizeof word);
        }
    }
}

void table_put_given(struct nt_buffer *out, const struct nt_source_given *given)
{
    const struct nt_source_given none = { 0 };
    size_t begin = entry_begin(out, GIVEN), before = out->size;
    pack_number(out, given->program);
    pack_number(out, given->all);
    put_pages(out, given);
    if (out->error == 0 && (out->size - begin > TABLE_ENTRY_MAX || given->page_count > PAGES_MAX)) {
        out->size = before; /* more than is kept: any may be */
        pack_number(out, given->program);
        pack_number(out, 1);
        put_pages(out, &none);
    }
    entry_end(out, begin);
}

void table_put_session(struct nt_buffer *out, const struct nt_source_session *session)
{
    const struct nt_source_session *s = session;
    const uint64_t numbers[] = { s->program, s->id, s->parent, s->opened_at, s->ended_at };
    const bool flags[] = { s->older, s->known, s->standing, s->given, s->got, s->overdue };
    size_t begin = entry_begin(out, SESSION);
    put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    put_flags(out, flags, sizeof flags / sizeof flags[0]);
    put_text(out, s->name);
    pack_number(out, s->sum_count);
    for (size_t i = 0; i < s->sum_count; i++) {
        pack_number(out, s->sums[i].kind);
        pack_number(out, s->sums[i].count);
        pack_number(out, s->sums[i].total);
    }
    entry_end(out, begin);
}

/* ---- Reading ---- */

/* What an entry's lists are put into; taken back with the entry. */
struct memory {
    uint8_t *bytes;
    size_t used, room;
};

struct reading {
    struct pack_in in;
    struct memory memory;
    uint32_t base;
    const struct nt_source_sink *sink;
};

enum { EXPANDS = 16 }; /* bytes of lists that one byte of an entry makes, at most */

/* Pages that are not there take no bytes. */
static int memory_begin(struct memory *memory, size_t entry, bool pages)
{
    size_t room = entry * EXPANDS + (pages ? PAGES_MAX * sizeof(void *) : 0) + NT_LAYOUT_PAGE;
    memory->used = 0;
    if (memory->room < room) {
        free(memory->bytes);
        memory->bytes = malloc(room);
        memory->room = memory->bytes != NULL ? room : 0;
    }
    return memory->bytes != NULL ? 0 : -ENOMEM;
}

/* How many there are, each of which takes at least `least` bytes of the entry, and room for them. */
static void *take_list(struct reading *reading, size_t most, size_t each, size_t least, size_t *ret_count)
{
    struct memory *memory = &reading->memory;
    size_t left = (size_t)(reading->in.end - reading->in.at);
    size_t count = unpack_at_most(&reading->in, most);
    if (count * least > left || count * each > memory->room - memory->used) {
        reading->in.bad = true;
        count = 0;
    }
    void *list = memory->bytes + memory->used;
    memset(list, 0, count * each);
    memory->used += (count * each + 7) / 8 * 8;
    *ret_count = count;
    return list;
}

static struct nt_bytes take_text(struct reading *reading)
{
    size_t size = unpack_at_most(&reading->in, TABLE_ENTRY_MAX);
    const uint8_t *bytes = unpack_bytes(&reading->in, size);
    return bytes != NULL ? (struct nt_bytes){ (const char *)bytes, size } : (struct nt_bytes){ "", 0 };
}

static uint64_t take(struct reading *reading)
{
    return unpack_number(&reading->in);
}

static uint32_t take32(struct reading *reading)
{
    return (uint32_t)unpack_at_most(&reading->in, UINT32_MAX);
}

static uint32_t take_number_of_program(struct reading *reading)
{
    return reading->base + (uint32_t)unpack_at_most(&reading->in, RECORDING_PROGRAMS_MAX - 1);
}

/* A file says how programs were when it was made: whoever lived then is not known to live now. */
static enum nt_program_state take_state(struct reading *reading)
{
    uint64_t state = take(reading);
    return state == NT_PROGRAM_EXITED    ? NT_PROGRAM_EXITED
           : state == NT_PROGRAM_CRASHED ? NT_PROGRAM_CRASHED
                                         : NT_PROGRAM_UNKNOWN;
}

static int tell_program(struct reading *reading)
{
    struct nt_source_program p = { 0 };
    p.number = take_number_of_program(reading);
    uint64_t *const counts[] = { &p.id,        &p.origin,      &p.start_time, &p.started,         &p.ended,
                                 &p.events,    &p.overwritten, &p.dropped,    &p.refused_objects, &p.refused_tallies,
                                 &p.unsettled, &p.backed,      &p.cap };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *counts[i] = take(reading);
    }
    p.pid = take32(reading);
    p.uid = take32(reading);
    p.rings = take32(reading);
    p.objects = take32(reading);
    p.sessions = take(reading);
    p.state = take_state(reading);
    uint64_t flags = take(reading);
    p.forgets = flags & 1;
    p.replaced = flags >> 1 & 1;
    p.moving = flags >> 2 & 1;
    p.host = take_text(reading);
    p.domain = take_text(reading);
    p.node = take_text(reading);
    p.program = take_text(reading);
    p.name = take_text(reading);
    struct nt_bytes path = take_text(reading);
    p.remembers = reading->in.at < reading->in.end ? take(reading) : p.forgets ? 0 : p.sessions;
    char *copy = strndup(path.data, path.size);
    if (copy == NULL) {
        return -ENOMEM;
    }
    p.path = copy;
    int result = 0;
    if (!reading->in.bad && reading->sink->program != NULL) {
        result = reading->sink->program(reading->sink->arg, &p);
    }
    free(copy);
    return result;
}

static int tell_kind(struct reading *reading)
{
    struct nt_source_kind kind = { .program = take_number_of_program(reading) };
    kind.kind = (uint16_t)unpack_at_most(&reading->in, UINT16_MAX);
    kind.keep = unpack_at_most(&reading->in, 1) != 0;
    kind.name = take_text(reading);
    struct nt_source_field *fields = take_list(reading, NT_LAYOUT_FIELDS, sizeof *fields, 2, &kind.field_count);
    for (size_t i = 0; i < kind.field_count; i++) {
        fields[i].type = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
        fields[i].name = take_text(reading);
        reading->in.bad = reading->in.bad || fields[i].type < NT_FIELD_U64 || fields[i].type > NT_FIELD_ID;
    }
    kind.fields = fields;
    return reading->in.bad || reading->sink->kind == NULL ? 0 : reading->sink->kind(reading->sink->arg, &kind);
}

/* In the order of kinds, none twice. */
static uint16_t take_kind(struct reading *reading, uint16_t before, size_t number)
{
    uint64_t kind = unpack_at_most(&reading->in, UINT16_MAX);
    if (number > 0 && kind <= before) {
        reading->in.bad = true;
    }
    return (uint16_t)kind;
}

static const struct nt_source_tally *take_tallies(struct reading *reading, size_t *ret_count)
{
    struct nt_source_tally *tallies = take_list(reading, SUMS_MAX, sizeof *tallies, 5, ret_count);
    for (size_t i = 0; i < *ret_count; i++) {
        tallies[i].kind = take_kind(reading, i > 0 ? tallies[i - 1].kind : 0, i);
        tallies[i].count = take(reading);
        tallies[i].total = take(reading);
        tallies[i].max = take(reading);
        tallies[i].last = take(reading);
    }
    return tallies;
}

static void take_histogram(struct reading *reading, struct nt_source_histogram *histogram)
{
    struct nt_source_bucket *buckets = take_list(reading, BUCKETS_MAX, sizeof *buckets, 3, &histogram->bucket_count);
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        buckets[i].low = take(reading);
        buckets[i].high = buckets[i].low + take(reading);
        buckets[i].count = take(reading);
        reading->in.bad = reading->in.bad || buckets[i].high < buckets[i].low || buckets[i].count == 0 ||
                          (i > 0 && buckets[i].low <= buckets[i - 1].high);
    }
    reading->in.bad = reading->in.bad || histogram->bucket_count == 0;
    histogram->buckets = buckets;
}

static void take_rare(struct reading *reading, struct nt_source_rare *rare)
{
    rare->remote_node = take_text(reading);
    rare->remote_process = take_text(reading);
    struct nt_source_link *links = take_list(reading, LINKS_MAX, sizeof *links, 3, &rare->link_count);
    for (size_t i = 0; i < rare->link_count; i++) {
        links[i].direction = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
        links[i].pairing = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
        links[i].key = take_text(reading);
    }
    rare->links = links;
    struct nt_source_histogram *histograms = take_list(reading, SUMS_MAX, sizeof *histograms, 2,
                                                       &rare->histogram_count);
    for (size_t i = 0; i < rare->histogram_count; i++) {
        histograms[i].kind = take_kind(reading, i > 0 ? histograms[i - 1].kind : 0, i);
        take_histogram(reading, &histograms[i]);
    }
    rare->histograms = histograms;
}

static void take_object_head(struct reading *reading, struct nt_source_object *o)
{
    uint32_t *const names[] = { &o->slot,     &o->generation,          &o->parent, &o->parent_generation,
                                &o->previous, &o->previous_generation, &o->epoch };
    o->program = take_number_of_program(reading);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *names[i] = take32(reading);
    }
    o->kind = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
    o->discipline = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
    o->described = (uint8_t)unpack_at_most(&reading->in, UINT8_MAX);
    o->session = take(reading);
    o->mask = take(reading);
    o->opened_at = take(reading);
    o->closed_at = take(reading);
}

static int tell_object(struct reading *reading)
{
    struct nt_source_object o = { 0 };
    struct nt_source_rare rare = { 0 };
    if (reading->sink->object == NULL) {
        return 0;
    }
    take_object_head(reading, &o);
    uint64_t flags = take(reading);
    o.closed = flags & 1;
    o.mixed = flags >> 1 & 1;
    o.unsettled = flags >> 2 & 1;
    o.name = take_text(reading);
    o.tallies = take_tallies(reading, &o.tally_count);
    o.gone = take_tallies(reading, &o.gone_count);
    o.base = take_tallies(reading, &o.base_count);
    o.lineage = take_tallies(reading, &o.lineage_count);
    if (flags >> 3 & 1) {
        struct nt_source_pair *settled = (void *)(reading->memory.bytes + reading->memory.used);
        size_t left = reading->memory.room - reading->memory.used;
        reading->in.bad = reading->in.bad || o.tally_count * sizeof *settled > left;
        for (size_t i = 0; i < o.tally_count && !reading->in.bad; i++) {
            settled[i].count = take(reading);
            settled[i].total = take(reading);
        }
        reading->memory.used += reading->in.bad ? 0 : o.tally_count * sizeof *settled;
        o.settled = settled;
    }
    if (flags >> 4 & 1) {
        take_rare(reading, &rare);
        o.rare = &rare;
    }
    return reading->in.bad ? 0 : reading->sink->object(reading->sink->arg, &o);
}

static int tell_given(struct reading *reading)
{
    struct nt_source_given given = { .program = take_number_of_program(reading) };
    struct memory *memory = &reading->memory;
    given.all = unpack_at_most(&reading->in, 1) != 0;
    const uint64_t **pages = take_list(reading, PAGES_MAX, sizeof *pages, 0, &given.page_count);
    size_t there = unpack_at_most(&reading->in, given.page_count), at = 0;
    for (size_t i = 0; i < there && !reading->in.bad; i++) {
        at += unpack_at_most(&reading->in, given.page_count - at);
        const uint8_t *bytes = unpack_bytes(&reading->in, NT_LAYOUT_PAGE);
        if (bytes == NULL || at >= given.page_count || memory->room - memory->used < NT_LAYOUT_PAGE) {
            reading->in.bad = true;
            break;
        }
        pages[at++] = memcpy(memory->bytes + memory->used, bytes, NT_LAYOUT_PAGE);
        memory->used += NT_LAYOUT_PAGE;
    }
    given.pages = pages;
    return reading->in.bad || reading->sink->given == NULL ? 0 : reading->sink->given(reading->sink->arg, &given);
}

static int tell_session(struct reading *reading)
{
    struct nt_source_session s = { 0 };
    if (reading->sink->session == NULL) {
        return 0;
    }
    s.program = take_number_of_program(reading);
    s.id = take(reading);
    s.parent = take(reading);
    s.opened_at = take(reading);
    s.ended_at = take(reading);
    uint64_t flags = take(reading);
    s.older = flags & 1;
    s.known = flags >> 1 & 1;
    s.standing = flags >> 2 & 1;
    s.given = flags >> 3 & 1;
    s.got = flags >> 4 & 1;
    s.overdue = flags >> 5 & 1;
    s.name = take_text(reading);
    struct nt_source_sum *sums = take_list(reading, SUMS_MAX, sizeof *sums, 3, &s.sum_count);
    for (size_t i = 0; i < s.sum_count; i++) {
        sums[i].kind = take_kind(reading, i > 0 ? sums[i - 1].kind : 0, i);
        sums[i].count = take(reading);
        sums[i].total = take(reading);
    }
    s.sums = sums;
    return reading->in.bad ? 0 : reading->sink->session(reading->sink->arg, &s);
}

size_t table_entry_size(const uint8_t *at, size_t size)
{
    const size_t head = 1 + sizeof(uint32_t);
    uint32_t entry;
    if (size < head) {
        return 0;
    }
    memcpy(&entry, at + 1, sizeof entry);
    return entry <= size - head ? head + entry : 0;
}

static int tell_entry(struct reading *reading, unsigned what)
{
    switch (what) {
    case PROGRAM:
        return tell_program(reading);
    case KIND:
        return tell_kind(reading);
    case OBJECT:
        return tell_object(reading);
    case GIVEN:
        return tell_given(reading);
    case SESSION:
        return tell_session(reading);
    default: /* of a later version */
        return 0;
    }
}

int table_tell(const uint8_t *entries, size_t size, uint32_t base, const struct nt_source_sink *sink)
{
    struct reading reading = { .base = base, .sink = sink };
    int result = 0;
    while (size > 0 && result == 0) {
        size_t entry = table_entry_size(entries, size), head = 1 + sizeof(uint32_t);
        if (entry == 0 || entry > TABLE_ENTRY_MAX + head) {
            result = -NT_EFORMAT;
            break;
        }
        reading.in = (struct pack_in){ entries + head, entries + entry, false };
        result = memory_begin(&reading.memory, entry, entries[0] == GIVEN);
        if (result == 0) {
            result = tell_entry(&reading, entries[0]);
        }
        if (result == 0 && reading.in.bad) {
            result = -NT_EFORMAT;
        }
        entries += entry;
        size -= entry;
    }
    free(reading.memory.bytes);
    return result;
}
