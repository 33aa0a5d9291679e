/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap over the lanes that hold something, by the time of what they would hand out next. What a lane gives lies in
   runs within segments that all lanes share; items point there. A lane that may have more is never out of the heap:
   only then is the top the first of all.
   Lanes stay in their own order by themselves: an event whose time goes back is the first of all as soon as the one
   before it is out. One from the future takes the place of the one before it. */
#include "source/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT = 1024, /* events */
    SEGMENT_LOSSES = 64,
    SEGMENT_DATA = 64 * 1024, /* bytes of what the events carry */
    SEGMENT_LEAST = 64,       /* with room for less events a new one is begun */
    READ = 256,               /* events of a lane at once */
    READ_LOSSES = 16,
    SPARE = 16, /* segments that are kept for later */
};

#define AHEAD_NS UINT64_C(1000000000)
#define NEVER UINT64_MAX

struct segment {
    struct segment *next; /* spare ones */
    uint32_t runs;
    uint32_t used, losses_used;
    size_t data_used;
    struct nt_merge_loss losses[SEGMENT_LOSSES];
    struct nt_event events[SEGMENT];
    uint8_t data[SEGMENT_DATA];
};

/* What one read of a lane gave, and was not handed out yet. */
struct run {
    struct run *next;
    struct segment *segment;
    const struct nt_event *at, *end; /* `at` stays: it is the first one */
    struct nt_merge_loss *losses;
    uint32_t loss_at, loss_count;
    uint64_t passed; /* time of what was left out before it */
};

struct lane {
    struct run *first, *last;
    const struct nt_event *at, *end; /* the event to come next, and the end of its run */
    struct nt_merge_loss *loss;      /* to come before that, or NULL */
    uint64_t loss_before;            /* events from this position on have a loss before them */
    const struct nt_event *stop;     /* of an ordered source: likewise this event, or the end of the run */
    uint64_t key;                    /* time of what comes next, in the heap */
    uint64_t position;               /* of the ring: what is before it came already */
    uint64_t time;                   /* of the last event that came, 0 none */
    uint32_t program, ring;
    bool ahead; /* the event to come next */
    bool done;  /* nothing more before the next look */
    bool queued;
};

struct place {
    uint64_t key;
    uint32_t lane;
};

struct nt_merge {
    struct nt_source *source;
    uint64_t hold;
    size_t memory;
    struct lane *lanes;
    uint32_t lane_count, lane_room;
    struct place *heap; /* as much room as there are lanes */
    uint32_t heap_count;
    bool flushing;
    uint64_t ahead_from; /* later times are ahead */
    uint64_t high;       /* latest time that came out and was not ahead */
    uint64_t previous;   /* time that came out last */
    uint64_t passed;     /* time of what was left out since */
    struct segment *current, *spare;
    size_t spare_count;
    struct run *retired; /* items may point to them until the next call */
    struct run *spare_runs;
    struct nt_merge_stats stats;
};

/* ---- Memory ---- */

static void segment_clear(struct segment *segment)
{
    segment->used = segment->losses_used = 0;
    segment->data_used = 0;
}

static struct segment *segment_new(struct nt_merge *merge)
{
    struct segment *segment = merge->spare;
    if (segment != NULL) {
        merge->spare = segment->next;
        merge->spare_count--;
    } else {
        segment = malloc(sizeof *segment);
    }
    if (segment != NULL) {
        segment->runs = 0;
        segment_clear(segment);
        merge->stats.bytes += sizeof *segment;
        if (merge->stats.bytes > merge->stats.bytes_max) {
            merge->stats.bytes_max = merge->stats.bytes;
        }
    }
    return segment;
}

static void segment_free(struct nt_merge *merge, struct segment *take_segment)
{
    merge->stats.bytes -= sizeof *take_segment;
    if (merge->spare_count < SPARE) {
        take_segment->next = merge->spare;
        merge->spare = take_segment;
        merge->spare_count++;
    } else {
        free(take_segment);
    }
}

/* A segment with room for a read. */
static struct segment *segment_get(struct nt_merge *merge)
{
    struct segment *current = merge->current;
    if (current != NULL && current->runs == 0) {
        segment_clear(current);
    }
    if (current == NULL || SEGMENT - current->used < SEGMENT_LEAST || current->losses_used == SEGMENT_LOSSES ||
        sizeof current->data - current->data_used < NT_SOURCE_DATA) {
        struct segment *segment = segment_new(merge);
        if (segment == NULL) {
            return NULL;
        }
        merge->current = segment;
    }
    return merge->current;
}

static struct run *run_new(struct nt_merge *merge)
{
    struct run *run = merge->spare_runs;
    if (run != NULL) {
        merge->spare_runs = run->next;
    } else {
        run = malloc(sizeof *run);
    }
    if (run != NULL) {
        *run = (struct run){ .next = NULL };
    }
    return run;
}

static void run_free(struct nt_merge *merge, struct run *take_run)
{
    struct segment *segment = take_run->segment;
    if (segment != NULL && --segment->runs == 0 && segment != merge->current) {
        segment_free(merge, segment);
    }
    take_run->next = merge->spare_runs;
    merge->spare_runs = take_run;
}

/* What was handed out by the call before stands no more. */
static void forget_retired(struct nt_merge *merge)
{
    while (merge->retired != NULL) {
        struct run *run = merge->retired;
        merge->retired = run->next;
        run_free(merge, run);
    }
}

/* ---- The heap ---- */

static int compare64(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

/* At the same time: what explains others first, losses before events, the counts of one object in their order, else by
   lanes. */
static bool is_before_at_once(const struct nt_merge *merge, uint32_t left, uint32_t right)
{
    const struct lane *a = &merge->lanes[left], *b = &merge->lanes[right];
    int order = (left != 0) - (right != 0);
    order = order != 0 ? order : (a->loss == NULL) - (b->loss == NULL);
    if (order == 0 && a->loss == NULL) {
        const struct nt_event *x = a->at, *y = b->at;
        order = compare64(x->program, y->program);
        order = order != 0 ? order : compare64(x->object, y->object);
        order = order != 0 ? order : compare64(x->generation, y->generation);
        order = order != 0 ? order : compare64(x->kind, y->kind);
        order = order != 0 ? order : compare64(x->count, y->count);
    }
    return order != 0 ? order < 0 : left < right;
}

static bool is_before(const struct nt_merge *merge, const struct place *left, const struct place *right)
{
    return left->key < right->key || (left->key == right->key && is_before_at_once(merge, left->lane, right->lane));
}

/* Puts `place` where the top is, or further down. */
static void heap_sink(struct nt_merge *merge, struct place place)
{
    struct place *heap = merge->heap;
    uint32_t count = merge->heap_count, at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && is_before(merge, &heap[child + 1], &heap[child]);
        if (!is_before(merge, &heap[child], &place)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = place;
}

static void heap_add(struct nt_merge *merge, uint32_t lane)
{
    struct place place = { merge->lanes[lane].key, lane };
    uint32_t at = merge->heap_count++;
    while (at > 0 && is_before(merge, &place, &merge->heap[(at - 1) / 2])) {
        merge->heap[at] = merge->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merge->heap[at] = place;
    merge->lanes[lane].queued = true;
}

static void heap_drop_top(struct nt_merge *merge)
{
    merge->lanes[merge->heap[0].lane].queued = false;
    merge->heap_count--;
    if (merge->heap_count > 0) {
        heap_sink(merge, merge->heap[merge->heap_count]);
    }
}

/* ---- Lanes ---- */

static void lane_key(const struct nt_merge *merge, struct lane *lane, const struct nt_event *event)
{
    lane->ahead = event->time > merge->ahead_from;
    lane->key = lane->ahead ? lane->key : event->time;
}

static void lane_pop(struct nt_merge *merge, struct lane *lane)
{
    struct run *run = lane->first;
    lane->first = run->next;
    if (lane->first == NULL) {
        lane->last = NULL;
    }
    run->next = merge->retired;
    merge->retired = run;
}

/* The ring of what the lane's first run holds. */
static void run_ring(const struct run *run, uint32_t *ret_program, uint32_t *ret_ring)
{
    bool event = run->at < run->end;
    *ret_program = event ? run->at->program : run->losses[0].lost.program;
    *ret_ring = event ? run->at->ring : run->losses[0].lost.ring;
}

/* A lane's number may be given to another ring. */
static void lane_begin_run(struct nt_merge *merge, struct lane *lane, const struct run *run)
{
    uint32_t program, ring;
    if (run->passed != 0) { /* what it would have made late is late all the same */
        merge->passed = run->passed > merge->passed ? run->passed : merge->passed;
        merge->high = run->passed > merge->high ? run->passed : merge->high;
    }
    run_ring(run, &program, &ring);
    if (program != lane->program || ring != lane->ring) {
        lane->program = program;
        lane->ring = ring;
        lane->position = lane->time = 0;
    }
}

static bool settle_loss(const struct nt_merge *merge, struct lane *lane, const struct run *run)
{
    const struct nt_event *behind = lane->at < lane->end ? lane->at : NULL;
    const struct run *next = run->next;
    if (behind == NULL && next != NULL && next->at < next->end && next->at->ring == lane->ring &&
        next->at->program == lane->program) {
        behind = next->at;
    }
    if (behind == NULL && !lane->done) {
        return false; /* what comes behind it is known soon */
    }
    lane->loss = &run->losses[run->loss_at];
    lane->loss->from_time = lane->time;
    lane->loss->to_time = behind != NULL ? behind->time : 0;
    if (behind != NULL) {
        lane_key(merge, lane, behind);
    }
    return true;
}

/* The run has nothing more: the next one, if there is any. */
static void lane_next_run(struct nt_merge *merge, struct lane *lane)
{
    lane_pop(merge, lane);
    lane->at = lane->end = NULL;
    if (lane->first != NULL) {
        lane_begin_run(merge, lane, lane->first);
        lane->at = lane->first->at;
        lane->end = lane->first->end;
    }
}

/* Of an ordered source: everything comes as it was given. */
static bool lane_settle_ordered(struct nt_merge *merge, struct lane *lane)
{
    for (struct run *run; (run = lane->first) != NULL; lane_next_run(merge, lane)) {
        struct nt_merge_loss *loss = run->loss_at < run->loss_count ? &run->losses[run->loss_at] : NULL;
        const struct nt_event *before = loss != NULL && loss->lost.before < run->end - run->at
                                            ? run->at + loss->lost.before
                                            : run->end;
        if (lane->at < lane->end) {
            lane_key(merge, lane, lane->at);
        }
        if (loss != NULL && before <= lane->at) {
            lane->loss = loss;
            return true;
        }
        if (lane->at < lane->end) {
            lane->stop = before;
            return true;
        }
    }
    return false;
}

/* Finds what the lane hands out next. False: it has to be read first. */
static bool lane_settle(struct nt_merge *merge, struct lane *lane)
{
    lane->loss = NULL;
    if (merge->source->ops->ordered) {
        return lane_settle_ordered(merge, lane);
    }
    for (struct run *run; (run = lane->first) != NULL;) {
        bool event = lane->at < lane->end;
        const struct nt_source_loss *lost = run->loss_at < run->loss_count ? &run->losses[run->loss_at].lost : NULL;
        if (lost != NULL && lost->to <= lane->position) {
            run->loss_at++;
        } else if (event && lane->at->position < lane->position) {
            lane->at++;
            merge->stats.held--;
            merge->stats.twice++;
        } else if (lost != NULL && (!event || lost->to <= lane->at->position)) {
            return settle_loss(merge, lane, run);
        } else if (event) {
            lane->loss_before = lost != NULL ? lost->to : NEVER;
            lane_key(merge, lane, lane->at);
            return true;
        } else {
            lane_next_run(merge, lane);
        }
    }
    return false;
}

static void lane_push(struct nt_merge *merge, struct lane *lane, struct run *run)
{
    if (lane->last != NULL) {
        lane->last->next = run;
    } else {
        lane->first = run;
        lane_begin_run(merge, lane, run);
        lane->at = run->at;
        lane->end = run->end;
    }
    lane->last = run;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

/* What one read gave is the segment's from now on. */
static void run_fill(struct run *run, struct segment *segment, const struct nt_source_batch *batch, uint32_t count)
{
    run->segment = segment;
    run->at = batch->events;
    run->end = batch->events + count;
    run->losses = segment->losses + segment->losses_used;
    run->loss_count = (uint32_t)batch->loss_count;
    run->passed = batch->passed;
    for (uint32_t i = 0; i < run->loss_count; i++) {
        const struct nt_source_loss *lost = &batch->losses[i];
        run->losses[i] = (struct nt_merge_loss){ *lost, lost->from_time, lost->to_time };
    }
    segment->runs++;
    segment->used += count;
    segment->losses_used += run->loss_count;
    segment->data_used += batch->data_used;
}

/* Reads some of a lane. 0, or an error, after which it may be tried again. */
static int lane_read(struct nt_merge *merge, uint32_t number)
{
    struct lane *lane = &merge->lanes[number];
    struct segment *segment = segment_get(merge);
    struct run *run = segment != NULL ? run_new(merge) : NULL;
    if (run == NULL) {
        return -ENOMEM;
    }
    struct nt_source_loss losses[READ_LOSSES];
    struct nt_source_batch batch = {
        .events = segment->events + segment->used,
        .room = at_most(SEGMENT - segment->used, READ),
        .losses = losses,
        .loss_room = at_most(SEGMENT_LOSSES - segment->losses_used, READ_LOSSES),
        .data = segment->data + segment->data_used,
        .data_room = sizeof segment->data - segment->data_used,
    };
    int count = merge->source->ops->read_lane(merge->source, number, &batch);
    if (count <= 0 && (count < 0 || batch.loss_count == 0)) {
        lane->done = count == 0;
        run_free(merge, run);
        return count;
    }
    run_fill(run, segment, &batch, (uint32_t)count);
    merge->stats.held += (size_t)count;
    lane_push(merge, lane, run);
    return 0;
}

/* Lane 0 is read again after each other: what it has to say on their events is then there. */
static int read_lane_0(struct nt_merge *merge)
{
    struct lane *lane = &merge->lanes[0];
    int error = lane_read(merge, 0);
    while (error == 0 && !lane->done) {
        error = lane_read(merge, 0);
    }
    if (error == 0 && !lane->queued && lane_settle(merge, lane)) {
        heap_add(merge, 0);
    }
    return error;
}

/* Brings a lane that is not in the heap there, unless it has nothing before the next look. */
static int lane_ready(struct nt_merge *merge, uint32_t number)
{
    struct lane *lane = &merge->lanes[number];
    while (!lane_settle(merge, lane)) {
        if (lane->done) {
            return 0;
        }
        int error = lane_read(merge, number);
        if (error == 0 && number != 0) {
            error = read_lane_0(merge);
        }
        if (error < 0) {
            return error;
        }
    }
    heap_add(merge, number);
    return 0;
}

/* ---- Looking ---- */

static int lanes_grow(struct nt_merge *merge, uint32_t count)
{
    if (count > merge->lane_room) {
        uint32_t room = count > 2 * merge->lane_room ? count : 2 * merge->lane_room;
        struct lane *lanes = reallocarray(merge->lanes, room, sizeof *lanes);
        if (lanes == NULL) {
            return -ENOMEM;
        }
        merge->lanes = lanes;
        struct place *heap = reallocarray(merge->heap, room, sizeof *heap);
        if (heap == NULL) {
            return -ENOMEM;
        }
        merge->heap = heap;
        merge->lane_room = room;
    }
    for (; merge->lane_count < count; merge->lane_count++) {
        merge->lanes[merge->lane_count] = (struct lane){ .program = UINT32_MAX };
    }
    return 0;
}

/* Asks the source what there is; from here on every lane may have more. */
static int look(struct nt_merge *merge)
{
    int count = merge->source->ops->lanes(merge->source);
    int error = count < 0 ? count : lanes_grow(merge, (uint32_t)count);
    for (uint32_t i = 0; i < merge->lane_count && error == 0; i++) {
        merge->lanes[i].done = false;
    }
    return error;
}

/* Each lane is in the heap or has nothing before the next look. */
static int ready_all(struct nt_merge *merge)
{
    int error = 0;
    for (uint32_t i = 0; i < merge->lane_count && error == 0; i++) {
        if (!merge->lanes[i].queued) {
            error = lane_ready(merge, i);
        }
    }
    return error;
}

/* Takes what the lanes have before it is overwritten, turn by turn, as long as there is memory. Returns whether it
   lacked: then some is not read. */
static int read_ahead(struct nt_merge *merge)
{
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < merge->lane_count; i++) {
            if (merge->lanes[i].done) {
                continue;
            }
            if (merge->stats.bytes >= merge->memory) {
                return 1;
            }
            int error = lane_read(merge, i);
            if (error < 0) {
                return error;
            }
            more = more || !merge->lanes[i].done;
        }
    }
    return 0;
}

/* ---- Handing out ---- */

static void put_event(struct nt_merge *merge, const struct lane *lane, uint64_t due, struct nt_merge_item *item)
{
    uint64_t time = lane->at->time;
    bool late = time < merge->high || time < merge->previous;
    *item = (struct nt_merge_item){ .event = lane->at, .late = late, .ahead = lane->ahead };
    if (!lane->ahead && time > merge->high) {
        merge->high = time;
    }
    merge->previous = time;
    merge->stats.late += late;
    merge->stats.ahead += lane->ahead;
    merge->stats.early += lane->key > due;
    merge->stats.events++;
    merge->stats.held--;
}

/* Hands out what the top lane has first and goes on to its next; that is in the heap again, or has nothing. */
static int put_top(struct nt_merge *merge, uint64_t due, struct nt_merge_item *item)
{
    uint32_t number = merge->heap[0].lane;
    struct lane *lane = &merge->lanes[number];
    uint64_t passed = merge->passed;
    merge->passed = 0;
    if (lane->loss == NULL) {
        put_event(merge, lane, due, item);
        item->passed = passed;
        const struct nt_event *next = lane->at + 1;
        if (next < lane->end &&
            (lane->stop != NULL ? next < lane->stop
                                : next->position > lane->at->position && next->position < lane->loss_before)) {
            lane->at = next;
            lane_key(merge, lane, next);
            __builtin_prefetch(&next[2].time); /* lanes are too many for the processor to see */
            __builtin_prefetch(&next[2].position);
            heap_sink(merge, (struct place){ lane->key, number });
            return 0;
        }
        lane->time = lane->at->time;
        lane->position = lane->at->position + 1;
        lane->at = next;
    } else {
        *item = (struct nt_merge_item){ .loss = lane->loss, .passed = passed };
        merge->stats.losses++;
        merge->stats.lost += lane->loss->lost.count;
        lane->position = lane->loss->lost.to;
        lane->first->loss_at++;
    }
    heap_drop_top(merge);
    return lane_ready(merge, number);
}

/* Hands out what has a key up to `limit`. */
static int put_items(struct nt_merge *merge, uint64_t limit, uint64_t due, struct nt_merge_item *items, size_t room)
{
    size_t count = 0;
    int error = 0;
    room = room < INT32_MAX ? room : INT32_MAX;
    while (count < room && error == 0 && merge->heap_count > 0 && merge->heap[0].key <= limit) {
        error = put_top(merge, due, &items[count++]);
    }
    return count > 0 ? (int)count : error;
}

int nt_merge_next(struct nt_merge *merge, uint64_t now, struct nt_merge_item *items, size_t room)
{
    forget_retired(merge);
    merge->flushing = false;
    merge->ahead_from = now < NEVER - AHEAD_NS ? now + AHEAD_NS : NEVER;
    int lacking = look(merge);
    if (lacking == 0) {
        lacking = read_ahead(merge);
    }
    int error = lacking < 0 ? lacking : read_lane_0(merge);
    error = error < 0 ? error : ready_all(merge);
    if (error < 0) {
        return error;
    }
    uint64_t due = now > merge->hold ? now - merge->hold : 0;
    return put_items(merge, lacking > 0 ? NEVER : due, due, items, room);
}

int nt_merge_flush(struct nt_merge *merge, struct nt_merge_item *items, size_t room)
{
    forget_retired(merge);
    merge->ahead_from = NEVER;
    int error = merge->flushing ? 0 : look(merge);
    merge->flushing = error == 0;
    if (error == 0) {
        error = ready_all(merge);
    }
    if (error < 0) {
        return error;
    }
    int count = put_items(merge, NEVER, NEVER, items, room);
    merge->flushing = count != 0;
    return count;
}

uint64_t nt_merge_due(const struct nt_merge *merge)
{
    if (merge->heap_count == 0) {
        return NEVER;
    }
    uint64_t key = merge->heap[0].key;
    return key < NEVER - merge->hold ? key + merge->hold : NEVER;
}

struct nt_merge_stats nt_merge_stats(const struct nt_merge *merge)
{
    return merge->stats;
}

/* ---- ---- */

int nt_merge_new(struct nt_source *source, const struct nt_merge_options *options, struct nt_merge **ret_merge)
{
    struct nt_merge *merge = calloc(1, sizeof *merge);
    if (merge == NULL) {
        return -ENOMEM;
    }
    merge->source = source;
    merge->hold = options->hold_ns != 0 ? options->hold_ns : NT_MERGE_HOLD_NS;
    if (options->no_hold) {
        merge->hold = 0;
    }
    merge->memory = options->memory != 0 ? options->memory : NT_MERGE_MEMORY;
    *ret_merge = merge;
    return 0;
}

static void runs_free(struct run *take_runs)
{
    while (take_runs != NULL) {
        struct run *next = take_runs->next;
        free(take_runs);
        take_runs = next;
    }
}

void nt_merge_free(struct nt_merge *take_merge)
{
    if (take_merge == NULL) {
        return;
    }
    for (uint32_t i = 0; i < take_merge->lane_count; i++) {
        struct lane *lane = &take_merge->lanes[i];
        if (lane->last != NULL) {
            lane->last->next = take_merge->retired;
            take_merge->retired = lane->first;
        }
    }
    forget_retired(take_merge);
    free(take_merge->current);
    while (take_merge->spare != NULL) {
        struct segment *next = take_merge->spare->next;
        free(take_merge->spare);
        take_merge->spare = next;
    }
    runs_free(take_merge->spare_runs);
    free(take_merge->lanes);
    free(take_merge->heap);
    free(take_merge);
}
