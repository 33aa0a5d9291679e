/* SPDX-License-Identifier: BSD-3-Clause */
/* A life is one object's, a track what came of one kind on it, a range some counts of a track that are missing. A range
   waits as long as it may still be filled (shared objects), then it is told; told ones are remembered for a while,
   because events come late. All three lie in pools and name each other by number. */
#include "model/gaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/index.h"
#include "model/kinds.h"

#define NONE NT_MODEL_NONE
#define MASK_KINDS 48u /* kinds from the last one on share its bit */
#define MASK_ALL ((UINT64_C(1) << MASK_KINDS) - 1)
#define RANGES_MAX 65536u
#define REMEMBERED 20u                     /* times the patience */
#define BACK_NS INT64_C(10000000000)       /* time that goes back so far is another clock's */
#define ROOM_READY (2 * TRACK_RANGES + 8u) /* gaps that an event may tell, but for those that waited */

enum { TRACK_RANGES = 16 };

struct range {
    uint64_t first, last;
    uint64_t from_time, to_time;
    uint64_t since; /* time of the event that showed it */
    uint32_t life, track;
    uint32_t next;           /* of the track: older; or a free one */
    uint32_t before, behind; /* in its queue */
    enum nt_gap_why why;
    bool told;
};

struct track {
    uint64_t first, last; /* counts that came */
    uint64_t time;        /* of the last event */
    uint64_t forgotten;   /* counts told as missing that no range remembers */
    uint32_t next;        /* of the life; or a free one */
    uint32_t ranges;      /* the newest */
    uint32_t range_count;
    uint16_t kind;
    bool off; /* the kind was masked off at some time since that event */
};

struct life {
    uint32_t program, object, generation;
    uint32_t next; /* in its bucket; or a free one */
    uint32_t tracks;
    uint32_t ended_next;
    uint64_t mask;      /* as the last change left it */
    uint64_t off;       /* bits of kinds that were off around the last changes … */
    uint64_t off_until; /* … up to here, for threads that had looked before */
    bool used, recent, ended;
    bool masked;    /* `mask` is known */
    bool uncertain; /* it was changed, nobody knows how */
};

struct queue {
    uint32_t first, last;
};

struct pool {
    void *entries;
    uint32_t count, room;
    uint32_t free; /* linked by `next` */
};

struct nt_gaps {
    uint64_t patience;
    uint32_t life_max;
    struct pool lives, tracks, ranges;
    uint32_t *buckets;
    uint32_t bucket_count;
    uint32_t newest;            /* life of the event before */
    uint32_t hand;              /* life to be forgotten next, unless it had events lately */
    struct queue ended;         /* lives */
    struct queue waiting, told; /* ranges */
    struct nt_gap *ready;
    size_t ready_first, ready_count, ready_room;
    struct nt_gaps_stats stats;
};

static struct life *life_at(const struct nt_gaps *gaps, uint32_t number)
{
    return (struct life *)gaps->lives.entries + number;
}

static struct track *track_at(const struct nt_gaps *gaps, uint32_t number)
{
    return (struct track *)gaps->tracks.entries + number;
}

static struct range *range_at(const struct nt_gaps *gaps, uint32_t number)
{
    return (struct range *)gaps->ranges.entries + number;
}

/* ---- Room: all that an event may need is there before anything is changed ---- */

static int array_grow(void **array, size_t *room, size_t needed, size_t size)
{
    if (needed <= *room) {
        return 0;
    }
    size_t more = needed > 2 * *room ? needed : 2 * *room;
    void *grown = reallocarray(*array, more, size);
    if (grown == NULL) {
        return -ENOMEM;
    }
    *array = grown;
    *room = more;
    return 0;
}

static int pool_grow(struct pool *pool, uint32_t more, size_t size)
{
    size_t room = pool->room;
    int error = array_grow(&pool->entries, &room, (size_t)pool->count + more, size);
    pool->room = (uint32_t)room;
    return error;
}

static int ready_grow(struct nt_gaps *gaps, size_t more)
{
    if (gaps->ready_first == gaps->ready_count) {
        gaps->ready_first = gaps->ready_count = 0;
    }
    void *ready = gaps->ready;
    int error = array_grow(&ready, &gaps->ready_room, gaps->ready_count + more, sizeof *gaps->ready);
    gaps->ready = ready;
    return error;
}

static uint32_t life_hash(uint32_t program, uint32_t object, uint32_t generation)
{
    uint64_t hash = ((uint64_t)program << 32 | object) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ generation) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32);
}

static uint32_t *bucket_of(const struct nt_gaps *gaps, const struct life *life)
{
    return &gaps->buckets[life_hash(life->program, life->object, life->generation) & (gaps->bucket_count - 1)];
}

static int buckets_grow(struct nt_gaps *gaps)
{
    if (gaps->stats.objects < gaps->bucket_count) {
        return 0;
    }
    uint32_t count = gaps->bucket_count != 0 ? 2 * gaps->bucket_count : 64;
    uint32_t *buckets = malloc(count * sizeof *buckets);
    if (buckets == NULL) {
        return -ENOMEM;
    }
    memset(buckets, 0xff, count * sizeof *buckets);
    free(gaps->buckets);
    gaps->buckets = buckets;
    gaps->bucket_count = count;
    for (uint32_t i = 0; i < gaps->lives.count; i++) {
        struct life *life = life_at(gaps, i);
        if (life->used) {
            uint32_t *bucket = bucket_of(gaps, life);
            life->next = *bucket;
            *bucket = i;
        }
    }
    return 0;
}

static int prepare(struct nt_gaps *gaps)
{
    int error = ready_grow(gaps, ROOM_READY);
    error = error != 0 ? error : pool_grow(&gaps->lives, 1, sizeof(struct life));
    error = error != 0 ? error : pool_grow(&gaps->tracks, 1, sizeof(struct track));
    error = error != 0 ? error : pool_grow(&gaps->ranges, TRACK_RANGES + 2, sizeof(struct range));
    return error != 0 ? error : buckets_grow(gaps);
}

/* ---- Telling ---- */

static void tell(struct nt_gaps *gaps, const struct range *range, enum nt_gap_why why, uint64_t first, uint64_t last)
{
    const struct life *life = life_at(gaps, range->life);
    gaps->ready[gaps->ready_count++] = (struct nt_gap){
        .why = why,
        .kind = track_at(gaps, range->track)->kind,
        .program = life->program,
        .object = life->object,
        .generation = life->generation,
        .first = first,
        .last = last,
        .from_time = range->from_time,
        .to_time = range->to_time,
    };
    uint64_t *sums[] = {
        [NT_GAP_LOST] = &gaps->stats.lost,
        [NT_GAP_NOT_LOGGED] = &gaps->stats.not_logged,
        [NT_GAP_FOUND] = &gaps->stats.found,
    };
    *sums[why] += last - first + 1;
}

/* ---- Ranges ---- */

static struct queue *queue_of(struct nt_gaps *gaps, const struct range *range)
{
    return range->told ? &gaps->told : &gaps->waiting;
}

static void queue_add(struct nt_gaps *gaps, uint32_t number)
{
    struct range *range = range_at(gaps, number);
    struct queue *queue = queue_of(gaps, range);
    range->before = queue->last;
    range->behind = NONE;
    if (queue->last != NONE) {
        range_at(gaps, queue->last)->behind = number;
    } else {
        queue->first = number;
    }
    queue->last = number;
}

static void queue_remove(struct nt_gaps *gaps, uint32_t number)
{
    const struct range *range = range_at(gaps, number);
    struct queue *queue = queue_of(gaps, range);
    if (range->before != NONE) {
        range_at(gaps, range->before)->behind = range->behind;
    } else {
        queue->first = range->behind;
    }
    if (range->behind != NONE) {
        range_at(gaps, range->behind)->before = range->before;
    } else {
        queue->last = range->before;
    }
}

static void range_tell(struct nt_gaps *gaps, uint32_t number)
{
    struct range *range = range_at(gaps, number);
    queue_remove(gaps, number);
    range->told = true;
    queue_add(gaps, number);
    tell(gaps, range, range->why, range->first, range->last);
}

/* A copy of `range` in the track's list and its queue. There is room. */
static void range_new(struct nt_gaps *gaps, const struct range *range)
{
    struct pool *pool = &gaps->ranges;
    uint32_t number = pool->free;
    if (number != NONE) {
        pool->free = range_at(gaps, number)->next;
    } else {
        number = pool->count++;
    }
    struct track *track = track_at(gaps, range->track);
    struct range *fresh = range_at(gaps, number);
    *fresh = *range;
    fresh->next = track->ranges;
    track->ranges = number;
    track->range_count++;
    queue_add(gaps, number);
}

static void range_free(struct nt_gaps *gaps, uint32_t number)
{
    struct range *range = range_at(gaps, number);
    struct track *track = track_at(gaps, range->track);
    uint32_t *link = &track->ranges;
    while (*link != number) {
        link = &range_at(gaps, *link)->next;
    }
    *link = range->next;
    track->range_count--;
    queue_remove(gaps, number);
    range->next = gaps->ranges.free;
    gaps->ranges.free = number;
}

/* Tells it if it waits; only the sum of it is remembered. */
static void range_forget(struct nt_gaps *gaps, uint32_t number)
{
    struct range *range = range_at(gaps, number);
    if (!range->told) {
        range_tell(gaps, number);
    }
    track_at(gaps, range->track)->forgotten += range->last - range->first + 1;
    range_free(gaps, number);
}

static uint32_t oldest_of(const struct nt_gaps *gaps, const struct track *track)
{
    uint32_t number = track->ranges;
    while (range_at(gaps, number)->next != NONE) {
        number = range_at(gaps, number)->next;
    }
    return number;
}

/* Counts are missing. */
static void range_open(struct nt_gaps *gaps, const struct range *range, bool wait)
{
    const struct track *track = track_at(gaps, range->track);
    if (track->range_count >= TRACK_RANGES) {
        range_forget(gaps, oldest_of(gaps, track));
    } else if (gaps->ranges.free == NONE && gaps->ranges.count >= RANGES_MAX) {
        range_forget(gaps, gaps->told.first != NONE ? gaps->told.first : gaps->waiting.first);
    }
    range_new(gaps, range);
    if (!wait) {
        range_tell(gaps, track->ranges);
    }
}

/* Takes [first, last] out of a range that it lies in. */
static void range_cut(struct nt_gaps *gaps, uint32_t number, uint64_t first, uint64_t last)
{
    struct range *range = range_at(gaps, number);
    struct range rest = *range;
    if (range->told) {
        tell(gaps, range, NT_GAP_FOUND, first, last);
    }
    if (first == range->first && last == range->last) {
        range_free(gaps, number);
    } else if (first == range->first) {
        range->first = last + 1;
    } else {
        range->last = first - 1;
        if (last < rest.last) {
            rest.first = last + 1;
            range_new(gaps, &rest);
        }
    }
}

/* Counts that were missing came. Returns how many of them no range knew. */
static uint64_t ranges_fill(struct nt_gaps *gaps, const struct track *track, uint64_t first, uint64_t last)
{
    uint64_t unknown = last - first + 1;
    for (uint32_t number = track->ranges, next; number != NONE; number = next) {
        const struct range *range = range_at(gaps, number);
        uint64_t from = range->first > first ? range->first : first;
        uint64_t to = range->last < last ? range->last : last;
        next = range->next;
        if (from <= to) {
            unknown -= to - from + 1;
            range_cut(gaps, number, from, to);
        }
    }
    return unknown;
}

static bool is_over(uint64_t since, uint64_t now, uint64_t patience)
{
    int64_t past = (int64_t)(now - since);
    return past >= (int64_t)patience || past < -BACK_NS;
}

static int expire(struct nt_gaps *gaps, uint64_t now)
{
    while (gaps->waiting.first != NONE && is_over(range_at(gaps, gaps->waiting.first)->since, now, gaps->patience)) {
        int error = ready_grow(gaps, ROOM_READY + 1);
        if (error != 0) {
            return error;
        }
        range_tell(gaps, gaps->waiting.first);
    }
    while (gaps->told.first != NONE &&
           is_over(range_at(gaps, gaps->told.first)->since, now, gaps->patience * REMEMBERED)) {
        range_forget(gaps, gaps->told.first);
    }
    return 0;
}

/* ---- Lives ---- */

static int life_free(struct nt_gaps *gaps, uint32_t number)
{
    struct life *life = life_at(gaps, number);
    while (life->tracks != NONE) {
        struct track *track = track_at(gaps, life->tracks);
        int error = ready_grow(gaps, ROOM_READY + TRACK_RANGES);
        if (error != 0) {
            return error;
        }
        while (track->ranges != NONE) {
            range_forget(gaps, oldest_of(gaps, track));
        }
        uint32_t next = track->next;
        track->next = gaps->tracks.free;
        gaps->tracks.free = life->tracks;
        life->tracks = next;
    }
    uint32_t *link = bucket_of(gaps, life);
    while (*link != number) {
        link = &life_at(gaps, *link)->next;
    }
    *link = life->next;
    life->used = false;
    life->next = gaps->lives.free;
    gaps->lives.free = number;
    gaps->newest = gaps->newest == number ? NONE : gaps->newest;
    gaps->stats.objects--;
    return 0;
}

/* Makes room for another one: an object that has ended, else one that had no event for long. */
static int lives_thin(struct nt_gaps *gaps)
{
    if (gaps->ended.first != NONE) {
        uint32_t number = gaps->ended.first;
        uint32_t next = life_at(gaps, number)->ended_next;
        int error = life_free(gaps, number);
        if (error == 0) {
            gaps->ended.first = next;
            gaps->ended.last = next == NONE ? NONE : gaps->ended.last;
        }
        return error;
    }
    for (;; gaps->hand++) {
        gaps->hand = gaps->hand < gaps->lives.count ? gaps->hand : 0;
        struct life *life = life_at(gaps, gaps->hand);
        if (life->used && !life->recent) {
            gaps->stats.forgotten++;
            return life_free(gaps, gaps->hand);
        }
        life->recent = false;
    }
}

static int life_get(struct nt_gaps *gaps, const struct nt_event *event, uint32_t *ret_number)
{
    const struct life wanted = { .program = event->program, .object = event->object, .generation = event->generation };
    uint32_t number = gaps->newest;
    if (number == NONE || memcmp(life_at(gaps, number), &wanted, offsetof(struct life, next)) != 0) {
        number = *bucket_of(gaps, &wanted);
    }
    while (number != NONE && memcmp(life_at(gaps, number), &wanted, offsetof(struct life, next)) != 0) {
        number = life_at(gaps, number)->next;
    }
    if (number == NONE) {
        int error = gaps->stats.objects >= gaps->life_max ? lives_thin(gaps) : 0;
        if (error != 0) {
            return error;
        }
        number = gaps->lives.free;
        if (number != NONE) {
            gaps->lives.free = life_at(gaps, number)->next;
        } else {
            number = gaps->lives.count++;
        }
        uint32_t *bucket = bucket_of(gaps, &wanted);
        struct life *life = life_at(gaps, number);
        *life = wanted;
        life->tracks = life->ended_next = NONE;
        life->used = true;
        life->next = *bucket;
        *bucket = number;
        gaps->stats.objects++;
    }
    life_at(gaps, number)->recent = true;
    gaps->newest = number;
    *ret_number = number;
    return 0;
}

static void life_end(struct nt_gaps *gaps, uint32_t number)
{
    struct life *life = life_at(gaps, number);
    if (life->ended) {
        return;
    }
    life->ended = true;
    if (gaps->ended.last != NONE) {
        life_at(gaps, gaps->ended.last)->ended_next = number;
    } else {
        gaps->ended.first = number;
    }
    gaps->ended.last = number;
}

/* ---- Masks ---- */

static uint64_t bit_of(unsigned kind)
{
    return UINT64_C(1) << (kind < MASK_KINDS ? kind : MASK_KINDS - 1);
}

static bool is_off(const struct life *life, unsigned kind)
{
    return life->uncertain || (life->masked && (life->mask & bit_of(kind)) == 0);
}

static void mask_changed(struct nt_gaps *gaps, struct life *life, const struct nt_event *event)
{
    uint64_t off = ~(event->value & event->argument) & MASK_ALL;
    life->uncertain = event->setter == 0 && event->value == event->argument;
    if (life->uncertain || (life->masked && life->mask != event->argument)) {
        off = MASK_ALL; /* and changes before it that nobody saw */
    }
    life->off = life->off_until >= event->time ? life->off | off : off;
    life->off_until = event->time + gaps->patience > event->time ? event->time + gaps->patience : UINT64_MAX;
    life->mask = event->value;
    life->masked = true;
    for (uint32_t number = life->tracks; number != NONE; number = track_at(gaps, number)->next) {
        struct track *track = track_at(gaps, number);
        if ((off & bit_of(track->kind)) == 0) {
            continue;
        }
        track->off = true;
        for (uint32_t i = track->ranges; i != NONE; i = range_at(gaps, i)->next) {
            struct range *range = range_at(gaps, i);
            range->why = range->told ? range->why : NT_GAP_NOT_LOGGED;
        }
    }
}

/* ---- Counts ---- */

static void track_new(struct nt_gaps *gaps, struct life *life, const struct nt_event *event, uint64_t first)
{
    uint32_t number = gaps->tracks.free;
    if (number != NONE) {
        gaps->tracks.free = track_at(gaps, number)->next;
    } else {
        number = gaps->tracks.count++;
    }
    *track_at(gaps, number) = (struct track){
        .first = first,
        .last = event->count,
        .time = event->time,
        .next = life->tracks,
        .ranges = NONE,
        .kind = event->kind,
        .off = is_off(life, event->kind),
    };
    life->tracks = number;
}

static enum nt_gap_why why_missing(const struct life *life, const struct track *track)
{
    bool around = (life->off & bit_of(track->kind)) != 0 && track->time <= life->off_until;
    return track->off || around ? NT_GAP_NOT_LOGGED : NT_GAP_LOST;
}

/* Counts that are not above those that came: late ones. */
static void came_later(struct nt_gaps *gaps, struct range *range, const struct nt_event *event, uint64_t first)
{
    struct track *track = track_at(gaps, range->track);
    uint64_t last = event->count < track->last ? event->count : track->last;
    if (last < track->first) {
        range->first = last + 1;
        range->last = track->first - 1;
        track->first = first;
        if (range->first <= range->last) {
            range_open(gaps, range, (event->flags & NT_EVENT_SHARED) != 0);
        }
        return;
    }
    uint64_t unknown = first < track->first ? UINT64_MAX : ranges_fill(gaps, track, first, last);
    if (unknown == last - first + 1 && unknown <= track->forgotten) {
        track->forgotten -= unknown;
        tell(gaps, range, NT_GAP_FOUND, first, last);
    } else if (unknown != 0) {
        gaps->stats.odd++;
    }
    track->last = event->count > track->last ? event->count : track->last;
}

static void counted(struct nt_gaps *gaps, uint32_t number, const struct nt_event *event)
{
    struct life *life = life_at(gaps, number);
    uint64_t merged = event->merged != 0 && event->merged <= event->count ? event->merged : 1;
    uint64_t first = event->count - merged + 1;
    uint32_t at = life->tracks;
    while (at != NONE && track_at(gaps, at)->kind != event->kind) {
        at = track_at(gaps, at)->next;
    }
    if (at == NONE) {
        track_new(gaps, life, event, first);
        return;
    }
    struct track *track = track_at(gaps, at);
    struct range range = { .life = number, .track = at, .since = event->time };
    range.from_time = track->time;
    range.to_time = event->time;
    range.why = why_missing(life, track);
    if (first <= track->last) {
        came_later(gaps, &range, event, first);
        return;
    }
    range.first = track->last + 1;
    range.last = first - 1;
    track->last = event->count;
    if (range.first <= range.last) {
        range_open(gaps, &range, (event->flags & NT_EVENT_SHARED) != 0);
    }
    track->time = event->time;
    track->off = is_off(life, event->kind);
}

/* ---- ---- */

int nt_gaps_new(const struct nt_gaps_options *options, struct nt_gaps **ret_gaps)
{
    struct nt_gaps *gaps = calloc(1, sizeof *gaps);
    if (gaps == NULL) {
        return -ENOMEM;
    }
    size_t objects = options->objects != 0 ? options->objects : NT_GAPS_OBJECTS;
    gaps->life_max = objects < NONE / 2 ? (uint32_t)objects : NONE / 2;
    gaps->patience = options->patience_ns != 0 ? options->patience_ns : NT_GAPS_PATIENCE_NS;
    gaps->patience = gaps->patience < (uint64_t)BACK_NS ? gaps->patience : (uint64_t)BACK_NS;
    gaps->lives.free = gaps->tracks.free = gaps->ranges.free = gaps->newest = NONE;
    gaps->ended = gaps->waiting = gaps->told = (struct queue){ NONE, NONE };
    *ret_gaps = gaps;
    return 0;
}

void nt_gaps_free(struct nt_gaps *take_gaps)
{
    if (take_gaps != NULL) {
        free(take_gaps->lives.entries);
        free(take_gaps->tracks.entries);
        free(take_gaps->ranges.entries);
        free(take_gaps->buckets);
        free(take_gaps->ready);
        free(take_gaps);
    }
}

int nt_gaps_event(struct nt_gaps *gaps, const struct nt_event *event)
{
    uint32_t number;
    int error = prepare(gaps);
    error = error != 0 ? error : expire(gaps, event->time);
    error = error != 0 ? error : life_get(gaps, event, &number);
    if (error != 0) {
        return error;
    }
    if (event->ring == NT_EVENT_NO_RING && event->kind == NT_MODEL_KIND_MASK) {
        mask_changed(gaps, life_at(gaps, number), event);
    } else if (event->count != 0) {
        counted(gaps, number, event);
    }
    if (event->kind == NT_MODEL_KIND_CLOSE) {
        life_end(gaps, number);
    }
    return (int)(gaps->ready_count - gaps->ready_first);
}

int nt_gaps_pass(struct nt_gaps *gaps, uint64_t time)
{
    int error = ready_grow(gaps, ROOM_READY);
    error = error != 0 ? error : expire(gaps, time);
    return error != 0 ? error : (int)(gaps->ready_count - gaps->ready_first);
}

int nt_gaps_flush(struct nt_gaps *gaps)
{
    while (gaps->waiting.first != NONE) {
        int error = ready_grow(gaps, 1);
        if (error != 0) {
            return error;
        }
        range_tell(gaps, gaps->waiting.first);
    }
    return (int)(gaps->ready_count - gaps->ready_first);
}

bool nt_gaps_take(struct nt_gaps *gaps, struct nt_gap *ret_gap)
{
    if (gaps->ready_first == gaps->ready_count) {
        return false;
    }
    *ret_gap = gaps->ready[gaps->ready_first++];
    return true;
}

struct nt_gaps_stats nt_gaps_stats(const struct nt_gaps *gaps)
{
    return gaps->stats;
}
