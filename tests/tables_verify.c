/* SPDX-License-Identifier: BSD-3-Clause */
/* The object tables of the logs against the truth. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log.h>

#include "events_verify.h"

/* Sums by kind. */
struct sums {
    struct truth_sum done[TRUTH_KINDS], begun[TRUTH_KINDS];
};

static const struct nt_source_tally *find_tally(const struct nt_source_tally *tallies, size_t count, uint32_t kind)
{
    for (size_t i = 0; i < count; i++)
        if (tallies[i].kind == kind)
            return &tallies[i];
    return NULL;
}

/* The log's own words: at most once a life, told as sums or not, values the log's own. */
static bool once_a_life(uint32_t kind)
{
    return kind == NT_OPEN || kind == NT_CLOSE || kind == NT_EPOCH;
}

/* ---- One sum ---- */

struct claim { /* what a log says of one sum, and what it is about */
    const struct truth_process *process;
    const char *path, *what;
    uint32_t kind;
    struct truth_sum said;
    bool has_max;
};

static void verify_claim(struct verify *verify, const struct claim *claim, const struct truth_sum *done,
                         const struct truth_sum *begun)
{
    const struct truth_sum *said = &claim->said;
    bool claim_max = claim->has_max;
    bool within = said->count >= done->count && said->count <= begun->count && said->total >= done->total &&
                  said->total <= begun->total;
    /* Where nothing is in flight the two are one. Of one thread the pair is one or the other, never a mix. */
    if (within && begun->count - done->count == 1)
        within = (said->count == done->count) == (said->total == done->total) || done->total == begun->total;
    if (verify->without_room && said->count < done->count) {
        /* Only as many as its log says are without a tally; of lineages that is not known. */
        verify->lacking += claim->has_max ? done->count - said->count : 0;
        within = said->total <= begun->total;
        claim_max = false;
    }
    bool max = !claim_max || (said->max >= done->max && said->max <= begun->max);
    verify->checked_sums++;
    if (!within || !max)
        verify_error(verify,
                     "pid %" PRIu32 " (%s) %s %s %s: the log says %" PRIu64 " sum %" PRIu64 " max %" PRIu64
                     ", the truth is %" PRIu64 " sum %" PRIu64 " max %" PRIu64 " to %" PRIu64 " sum %" PRIu64
                     " max %" PRIu64,
                     claim->process->truth.header->pid, claim->process->truth.header->name, claim->path,
                     truth_kind_name(claim->kind), claim->what, said->count, said->total, said->max, done->count,
                     done->total, done->max, begun->count, begun->total, begun->max);
}

static struct truth_sum sum_of(const struct nt_source_tally *tally)
{
    return tally ? (struct truth_sum){ tally->count, tally->total, tally->max } : (struct truth_sum){ 0 };
}

static void add_counts(struct sums *sums, const struct truth_counts *counts)
{
    truth_sum_add(&sums->done[counts->kind], &counts->done);
    truth_sum_add(&sums->begun[counts->kind], &counts->begun);
}

static void add_life(struct sums *sums, const struct truth_process *process, uint32_t life)
{
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        const struct truth_counts *counts = truth_counts_of(process, life, kind);
        if (counts)
            add_counts(sums, counts);
    }
}

/* ---- One object ---- */

static struct truth_sum said_of(const struct nt_source_tally *tally, uint32_t kind)
{
    struct truth_sum said = sum_of(tally);
    if (once_a_life(kind))
        said.total = said.max = 0;
    return said;
}

static void verify_own(struct verify *verify, const struct seen_object *object, const struct truth_process *process,
                       uint32_t life)
{
    const struct truth_object *truth = &process->truth.objects[life];
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        const struct nt_source_tally *tally = find_tally(object->tallies, object->tally_count, kind);
        const struct truth_counts *counts = truth_counts_of(process, life, kind);
        if ((!tally && !counts) || (once_a_life(kind) && !tally))
            continue;
        /* Every life came to be, as a successor or not, here or before the fork. */
        const struct truth_sum none = { .count = kind == NT_OPEN };
        struct claim claim = { process, truth->path, "", kind, said_of(tally, kind), true };
        verify_claim(verify, &claim, counts ? &counts->done : &none, counts ? &counts->begun : &none);
    }
    for (size_t i = 0; i < object->tally_count; i++)
        if (object->tallies[i].kind >= TRUTH_KINDS)
            verify_error(verify, "%s: a kind %u that does not exist", truth->path, object->tallies[i].kind);
}

static void verify_closed(struct verify *verify, const struct seen_object *object, const struct truth_process *process,
                          uint32_t life)
{
    const struct truth_object *truth = &process->truth.objects[life];
    const struct truth_counts *closes = truth_counts_of(process, life, NT_CLOSE);
    bool ended = atomic_load(&truth->flags) & TRUTH_CLOSED;
    bool ending = closes && closes->begun.count > 0; /* killed in the middle of it */
    if (object->closed != ended && !(verify->killed && ending))
        verify_error(verify, "pid %" PRIu32 " %s: %s, says the log", process->truth.header->pid, truth->path,
                     object->closed ? "closed" : "open");
}

static int compare_objects(const void *a, const void *b)
{
    const struct seen_object *x = a, *y = b;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* A slot shows one life at a time. */
static const struct seen_object *find_object(const struct reading *reading, uint32_t program, uint32_t slot,
                                             uint32_t generation)
{
    struct seen_object key = { .program = program, .slot = slot };
    if (reading->object_count == 0)
        return NULL;
    const struct seen_object *found = bsearch(&key, reading->objects, reading->object_count, sizeof key,
                                              compare_objects);
    return found && found->generation == generation ? found : NULL;
}

/* What the log itself says of all before a life that is still in the table: its lineage, and its own sums. */
static bool add_said(struct sums *sums, const struct verify *verify, uint32_t program,
                     const struct truth_process *process, uint32_t life)
{
    uint64_t handle = process->truth.objects[life].handle;
    const struct seen_object *object = find_object(verify->reading, program, truth_slot(handle),
                                                   truth_generation(handle));
    for (uint32_t kind = 1; object && kind < TRUTH_KINDS; kind++) {
        struct truth_sum own = sum_of(find_tally(object->tallies, object->tally_count, kind));
        struct truth_sum before = sum_of(find_tally(object->lineage, object->lineage_count, kind));
        truth_sum_add(&sums->done[kind], &own);
        truth_sum_add(&sums->done[kind], &before);
        sums->begun[kind] = sums->done[kind];
    }
    return object != NULL;
}

/* Of a predecessor that is in the table the log's own word is taken, as it is checked by itself: chains are long. */
static void verify_lineage(struct verify *verify, const struct seen_object *object, const struct truth_process *process,
                           uint32_t life)
{
    struct sums sums = { 0 };
    const struct truth_object *truth = &process->truth.objects[life];
    if (object->epoch != truth->epoch)
        verify_error(verify, "%s: epoch %" PRIu32 ", the truth is %" PRIu32, truth->path, object->epoch, truth->epoch);
    uint32_t previous = truth->previous;
    if (!previous || !add_said(&sums, verify, object->program, process, previous - 1))
        for (; previous; previous = process->truth.objects[previous - 1].previous)
            add_life(&sums, process, previous - 1);
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        if (once_a_life(kind))
            continue;
        struct truth_sum said = sum_of(find_tally(object->lineage, object->lineage_count, kind));
        struct claim claim = { process, truth->path, "of its predecessors", kind, said, false };
        verify_claim(verify, &claim, &sums.done[kind], &sums.begun[kind]);
    }
}

/* Names up to the program's own object, joined as the truth does. False if an ancestor is missing. */
static bool object_path(const struct verify *verify, const struct seen_object *object, char path[TRUTH_PATH])
{
    const struct seen_object *above = object;
    size_t at = TRUTH_PATH - 1;
    path[at] = 0;
    for (unsigned depth = 0; depth < 16; depth++) {
        size_t length = strlen(above->name);
        if (length + 1 > at)
            return false;
        at -= length;
        memcpy(path + at, above->name, length);
        above = find_object(verify->reading, above->program, above->parent, above->parent_generation);
        if (!above)
            return false;
        if (above->kind == NT_OBJECT_PROCESS) {
            memmove(path, path + at, TRUTH_PATH - at);
            return true;
        }
        path[--at] = '/';
    }
    return false;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Of an orphan, and of its children, the log knows the end of the path only. */
static void verify_path(struct verify *verify, const struct seen_object *object, const struct truth_object *truth,
                        bool refusals)
{
    char path[TRUTH_PATH];
    bool known = object_path(verify, object, path);
    size_t length = known ? strlen(path) : 0, whole = strlen(truth->path);
    if (!known || length > whole || strcmp(truth->path + whole - length, path) != 0 || (length < whole && !refusals))
        verify_error(verify, "object %" PRIu32 ".%" PRIu32 ": path %s, the truth is %s", object->slot,
                     object->generation, known ? path : "unknown", truth->path);
}

/* ---- One program ---- */

/* Whether the log has it below that path, "" being the process. */
static bool is_below(const struct truth_object *object, const char *path)
{
    size_t length = strlen(path);
    const char *name = last_name(object->path);
    if (atomic_load(&object->flags) & TRUTH_ORPHAN)
        return length == 0;
    size_t above = name == object->path ? 0 : (size_t)(name - object->path) - 1;
    return above == length && memcmp(object->path, path, length) == 0;
}

/* Lives that are no longer in the table (found: 0) were added to what they were below (found: 2 then). */
static void verify_gone(struct verify *verify, const struct seen_object *parent, struct truth_process *process,
                        const char *path)
{
    struct sums sums = { 0 };
    for (uint32_t life = 0; life < process->truth.header->objects; life++) {
        const struct truth_object *object = &process->truth.objects[life];
        if (!object->ready || !object->handle || process->found[life] || !is_below(object, path))
            continue;
        process->found[life] = 2;
        add_life(&sums, process, life);
        if (!truth_counts_of(process, life, NT_OPEN)) {
            sums.done[NT_OPEN].count++;
            sums.begun[NT_OPEN].count++;
        }
        verify->folded++;
    }
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        const struct nt_source_tally *gone = find_tally(parent->gone, parent->gone_count, kind);
        if (!gone && kind == NT_EPOCH)
            continue;
        struct truth_sum said = said_of(gone, kind);
        struct claim claim = { process, path, "of children that are gone", kind, said, true };
        verify_claim(verify, &claim, &sums.done[kind], &sums.begun[kind]);
    }
}

static bool is_inherited(const struct truth_process *process, uint32_t life)
{
    return atomic_load(&process->truth.objects[life].flags) & TRUTH_INHERITED;
}

static void verify_refusals(struct verify *verify, const struct seen_program *program,
                            const struct truth_process *process, uint64_t *ret_refused)
{
    uint64_t refused = 0;
    for (uint32_t life = 0; life < process->truth.header->objects; life++) {
        const struct truth_object *object = &process->truth.objects[life];
        const struct truth_object *previous = object->previous ? &process->truth.objects[object->previous - 1] : NULL;
        /* What succeeds nothing, or stands for an object that the parent had not, is not asked for. */
        if (atomic_load(&object->flags) & TRUTH_REFUSED && !is_inherited(process, life) &&
            !(previous && atomic_load(&previous->flags) & TRUTH_REFUSED))
            refused++;
    }
    *ret_refused = refused;
    if (refused != program->refused_objects && !(verify->killed && refused + 1 == program->refused_objects))
        verify_error(verify, "pid %" PRIu32 " (%s): %" PRIu64 " objects were refused, says the log; it is %" PRIu64,
                     program->pid, process->truth.header->name, program->refused_objects, refused);
}

/* Whether anything was counted on it but the log's own words. */
static bool has_counts(const struct seen_object *object)
{
    for (size_t i = 0; i < object->tally_count; i++)
        if (!once_a_life(object->tallies[i].kind))
            return true;
    return false;
}

static void verify_object(struct verify *verify, const struct seen_object *object, struct truth_process *process,
                          bool refusals)
{
    uint32_t life = truth_life(process, object->slot, object->generation);
    if (object->kind == NT_OBJECT_PROCESS) {
        if (life != TRUTH_NO_LIFE && !process->found[life]++)
            verify_own(verify, object, process, life);
        return;
    }
    if (life == TRUTH_NO_LIFE) {
        /* A forked child's table also has the ancestors of what it used; a killed one died while making it. */
        bool expected = object->described & NT_DESCRIBED_FORKED || verify->killed;
        if (!expected || has_counts(object))
            verify_error(verify, "pid %" PRIu32 ": object %" PRIu32 ".%" PRIu32 " (%s) that nobody made",
                         process->truth.header->pid, object->slot, object->generation, object->name);
        return;
    }
    if (process->found[life]++)
        verify_error(verify, "object %" PRIu32 ".%" PRIu32 " is told twice", object->slot, object->generation);
    const struct truth_object *truth = &process->truth.objects[life];
    verify_path(verify, object, truth, refusals);
    verify_own(verify, object, process, life);
    verify_closed(verify, object, process, life);
    if (!is_inherited(process, life))
        verify_lineage(verify, object, process, life);
}

/* Of a process that was killed at its first count on an object from before the fork: nothing is done yet. */
static bool is_unused(const struct verify *verify, const struct truth_process *process, uint32_t life)
{
    bool used = false;
    for (uint32_t kind = 1; kind < TRUTH_KINDS && !used; kind++) {
        const struct truth_counts *counts = truth_counts_of(process, life, kind);
        used = counts && counts->done.count;
    }
    return verify->killed && is_inherited(process, life) && !used;
}

static void verify_missing(struct verify *verify, const struct seen_program *program, struct truth_process *process)
{
    const struct reading *reading = verify->reading;
    for (size_t i = 0; i < reading->object_count; i++) {
        const struct seen_object *object = &reading->objects[i];
        char path[TRUTH_PATH] = "";
        if (object->program != program->number || object->gone_count == 0)
            continue;
        if (object->kind == NT_OBJECT_PROCESS || object_path(verify, object, path))
            verify_gone(verify, object, process, path);
    }
    for (uint32_t life = 0; life < process->truth.header->objects; life++) {
        const struct truth_object *object = &process->truth.objects[life];
        if (object->ready && object->handle && !process->found[life] && !is_unused(verify, process, life))
            verify_error(verify, "pid %" PRIu32 " %s: neither in the log nor among what is gone", program->pid,
                         object->path);
    }
}

/* Events never say more than the table. */
static void verify_ahead(struct verify *verify)
{
    const struct reading *reading = verify->reading;
    const struct seen_object *object = NULL;
    for (size_t i = 0; i < reading->event_count; i++) {
        const struct seen *event = &reading->events[i];
        if (once_a_life(event->kind))
            continue;
        if (!object || object->program != event->program || object->slot != event->object ||
            object->generation != event->generation)
            object = find_object(reading, event->program, event->object, event->generation);
        if (!object)
            continue; /* its life is over and its slot serves another */
        const struct nt_source_tally *tally = find_tally(object->tallies, object->tally_count, event->kind);
        if (!tally || tally->count < event->count || (tally->count == event->count && tally->total != event->total))
            verify_error(verify,
                         "program %" PRIu32 " object %" PRIu32 ".%" PRIu32 " (%s) %s: an event says %" PRIu64
                         " sum %" PRIu64 ", the table %" PRIu64 " sum %" PRIu64,
                         event->program, object->slot, object->generation, object->name, truth_kind_name(event->kind),
                         event->count, event->total, tally ? tally->count : 0, tally ? tally->total : 0);
    }
}

static void verify_program_table(struct verify *verify, const struct seen_program *program)
{
    struct truth_process *process = verify_truth(verify, program->number);
    if (!process)
        return;
    uint64_t refused;
    memset(process->found, 0, process->truth.header->objects);
    verify_refusals(verify, program, process, &refused);
    verify->without_room = program->refused_tallies;
    verify->lacking = 0;
    for (size_t i = 0; i < verify->reading->object_count; i++)
        if (verify->reading->objects[i].program == program->number)
            verify_object(verify, &verify->reading->objects[i], process, refused > 0);
    verify_missing(verify, program, process);
    if (!verify->killed && verify->lacking != verify->without_room)
        verify_error(verify, "pid %" PRIu32 ": %" PRIu64 " counts are lacking, the log says %" PRIu64, program->pid,
                     verify->lacking, verify->without_room);
    bool live = program->state == NT_PROGRAM_RUNNING || program->state == NT_PROGRAM_STOPPED;
    if (live || (!verify->killed && program->state != NT_PROGRAM_EXITED))
        verify_error(verify, "pid %" PRIu32 ": state %d after its end", program->pid, (int)program->state);
    if (process->truth.header->helper != (program->origin != 0))
        verify_error(verify, "pid %" PRIu32 ": %s", program->pid,
                     program->origin ? "the log names a parent, but it was not forked" : "the log names no parent");
}

void verify_sort(struct verify *verify)
{
    struct reading *reading = verify->reading;
    if (reading->object_count > 0)
        qsort(reading->objects, reading->object_count, sizeof *reading->objects, compare_objects);
}

bool verify_lacks(const struct verify *verify, const struct seen *event, const struct truth_counts *counts)
{
    const struct seen_object *object = find_object(verify->reading, event->program, event->object, event->generation);
    const struct nt_source_tally *tally = object ? find_tally(object->tallies, object->tally_count, event->kind) : NULL;
    const struct seen_program *program = verify_program(verify, event->program);
    return program && program->refused_tallies && (!tally || tally->count < counts->done.count);
}

void verify_tables(struct verify *verify)
{
    const struct reading *reading = verify->reading;
    for (size_t i = 1; i < reading->object_count; i++)
        if (compare_objects(&reading->objects[i - 1], &reading->objects[i]) == 0)
            verify_error(verify, "program %" PRIu32 ": slot %" PRIu32 " is told twice", reading->objects[i].program,
                         reading->objects[i].slot);
    for (size_t i = 0; i < verify->reading->program_count; i++)
        if (verify->reading->programs[i].present)
            verify_program_table(verify, &verify->reading->programs[i]);
    verify_ahead(verify);
}
