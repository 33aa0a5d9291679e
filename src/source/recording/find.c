/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding what is asked for in a file, block by block: from what the directory says of a block, then from lists in its
   summary, then in groups of its columns. All losses come all the same; so do all events of lives of which counts are
   missing, since these may be asked for whatever events are. Blocks in which times go back are read as a whole: which
   events are late, and what had been waited for then, depends on all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "source/recording/lines.h"
#include "source/recording/reader.h"

struct life {
    struct recording_object name;
    bool wanted;
    bool gaps; /* counts of it are missing */
};

struct finder {
    struct nt_source_wanted wanted;
    uint64_t *sessions; /* in the order of their low 48 bits */
    bool restricted;    /* to times or sessions: not all events of a life are asked for */
    bool any_gaps;      /* any life has gaps, and these matter */
    bool steady;        /* what counts are missing is known at once */
    struct life *lives;
    uint32_t count, room;
    struct recording_index index;
    /* of the block: */
    bool rest;              /* events may be asked for for their time and session */
    bool *marks, *complete; /* by place of the object: wanted; all its events come */
    bool any_marked, any_complete;
    uint64_t marked_hash; /* of the list of objects that these are of */
    uint32_t marked_count;
    bool marked;
};

/* ---- Lives ---- */

static bool is_life(const struct recording_object *left, const struct recording_object *right)
{
    return left->slot == right->slot && left->generation == right->generation && left->program == right->program;
}

static uint32_t life_hash(const struct recording_object *name)
{
    return recording_hash((uint64_t)name->slot << 32 | name->generation, name->program);
}

static struct life *life_find(const struct finder *finder, const struct recording_object *name)
{
    uint32_t hash = life_hash(name), at = hash, found;
    while ((found = recording_index_next(&finder->index, hash, &at)) != RECORDING_NONE) {
        if (is_life(&finder->lives[found].name, name)) {
            return &finder->lives[found];
        }
    }
    return NULL;
}

/* Whether anything of it is asked for is found out once. 0 or a negative code. */
static int life_get(struct finder *finder, const struct recording_object *name, struct life **ret_life)
{
    struct life *life = life_find(finder, name);
    if (life != NULL) {
        *ret_life = life;
        return 0;
    }
    const struct nt_source_wanted *wanted = &finder->wanted;
    int is_wanted = wanted->life != NULL ? wanted->life(wanted->arg, name->program, name->slot, name->generation) : 1;
    if (is_wanted < 0) {
        return is_wanted;
    }
    if (finder->count == finder->room) {
        uint32_t room = finder->room != 0 ? 2 * finder->room : 256;
        struct life *lives = reallocarray(finder->lives, room, sizeof *lives);
        if (lives == NULL) {
            return -ENOMEM;
        }
        finder->lives = lives;
        finder->room = room;
    }
    if (recording_index_add(&finder->index, life_hash(name), finder->count) != 0) {
        return -ENOMEM;
    }
    finder->lives[finder->count] = (struct life){ .name = *name, .wanted = is_wanted > 0 };
    *ret_life = &finder->lives[finder->count++];
    return 0;
}

static bool is_complete(const struct finder *finder, const struct life *life)
{
    return life->wanted && (!finder->restricted || life->gaps);
}

/* Marks the objects of the block. Many blocks have the same. */
static int mark_objects(struct reader *reader, const struct recording_parts *parts)
{
    struct finder *finder = reader->finder;
    const struct recording_object *objects;
    int error = recording_decoder_objects(reader->decoder, parts, &objects);
    const struct recording_head *head = recording_decoder_head(reader->decoder);
    uint64_t hash = head->hashes[RECORDING_OBJECTS];
    if (error != 0 || (finder->marked && finder->marked_hash == hash && finder->marked_count == head->objects)) {
        return error;
    }
    finder->any_marked = finder->any_complete = finder->marked = false;
    for (uint32_t i = 0; i < head->objects; i++) {
        struct life *life;
        error = life_get(finder, &objects[i], &life);
        if (error != 0) {
            return error;
        }
        finder->marks[i] = life->wanted;
        finder->complete[i] = is_complete(finder, life);
        finder->any_marked |= finder->marks[i];
        finder->any_complete |= finder->complete[i];
    }
    finder->marked = true;
    finder->marked_hash = hash;
    finder->marked_count = head->objects;
    return 0;
}

/* ---- Blocks ---- */

static bool is_in_range(const struct finder *finder, const struct recording_place *place)
{
    bool in = finder->wanted.session_count == 0;
    for (size_t i = 0; i < finder->wanted.session_count && !in; i++) {
        uint64_t low = recording_session_low(finder->sessions[i]);
        in = finder->sessions[i] == 0 || (low >= place->session_first && low <= place->session_last);
    }
    return in && place->rows > 0 && place->first <= finder->wanted.until && place->last >= finder->wanted.since;
}

/* What is told twice of it is said once. */
static int begin_all(struct reader *reader, const struct recording_place *place, enum reader_mode mode)
{
    struct recording_parts parts;
    int error = recording_file_events(&reader->file, place, true, &reader->read, &parts);
    error = error == 0 ? recording_decoder_begin(reader->decoder, &parts) : error;
    return error != 0 ? error : (int)mode;
}

static int begin_picked(struct reader *reader, const struct recording_parts *parts, const struct recording_place *place,
                        const bool *marks)
{
    int picked = recording_decoder_pick(reader->decoder, parts, marks);
    return picked < 0 ? picked : picked > 0 ? READER_PICKED : begin_all(reader, place, READER_SOME);
}

static int begin_none(struct reader *reader, const struct recording_parts *parts, const struct recording_place *place)
{
    if (place->losses == 0) {
        return READER_NOTHING;
    }
    int error = recording_decoder_lists(reader->decoder, parts);
    return error != 0 ? error : READER_NONE;
}

/* The objects were marked, and `rest` is known, if they matter. */
static int begin_some(struct reader *reader, const struct recording_parts *parts, const struct recording_place *place)
{
    const struct finder *finder = reader->finder;
    const struct nt_source_wanted *wanted = &finder->wanted;
    if (finder->rest && wanted->session_count > 0) {
        return begin_all(reader, place, READER_SOME);
    }
    if (finder->rest) {
        return wanted->life == NULL ? begin_all(reader, place, READER_ALL)
                                    : begin_picked(reader, parts, place, finder->marks);
    }
    return finder->any_gaps && finder->any_complete ? begin_picked(reader, parts, place, finder->complete)
                                                    : begin_none(reader, parts, place);
}

static int begin(struct reader *reader, const struct recording_parts *parts, const struct recording_place *place)
{
    struct finder *finder = reader->finder;
    const struct nt_source_wanted *wanted = &finder->wanted;
    if (finder->rest && wanted->session_count > 0) {
        int has = recording_decoder_has_session(reader->decoder, parts, finder->sessions, wanted->session_count);
        if (has < 0) {
            return has;
        }
        finder->rest = has > 0;
    }
    if ((finder->rest && wanted->life != NULL) || finder->any_gaps) {
        int error = mark_objects(reader, parts);
        if (error != 0) {
            return error;
        }
        finder->rest = finder->rest && (wanted->life == NULL || finder->any_marked);
    }
    return begin_some(reader, parts, place);
}

int finder_begin(struct reader *reader, const struct recording_place *place)
{
    struct finder *finder = reader->finder;
    struct recording_parts parts;
    bool whole = (place->flags & RECORDING_UNSORTED) != 0 || (!finder->steady && place->losses > 0);
    finder->rest = is_in_range(finder, place);
    if (!whole && !finder->rest && !finder->any_gaps && place->losses == 0) {
        return READER_NOTHING;
    }
    int result = whole ? 0 : recording_file_events(&reader->file, place, false, &reader->read, &parts);
    if (result != 0) {
        return result;
    }
    result = whole ? begin_all(reader, place, READER_ALL) : begin(reader, &parts, place);
    if (result == -NT_EFORMAT) {
        recording_file_tell(&reader->file, place);
    }
    return result;
}

static bool is_of_sessions(const struct finder *finder, uint64_t session)
{
    bool of = finder->wanted.session_count == 0;
    for (size_t i = 0; i < finder->wanted.session_count && !of; i++) {
        of = finder->sessions[i] == session;
    }
    return of;
}

bool finder_wants(const struct finder *finder, const struct nt_event *event)
{
    const struct nt_source_wanted *wanted = &finder->wanted;
    bool rest = finder->rest && is_of_sessions(finder, event->session) && event->time >= wanted->since &&
                event->time <= wanted->until;
    if ((rest && wanted->life == NULL) || (!rest && finder->restricted && !finder->any_gaps)) {
        return rest;
    }
    const struct recording_object name = { event->program, event->object, event->generation };
    const struct life *life = life_find(finder, &name);
    return life == NULL || (rest && life->wanted) || is_complete(finder, life);
}

bool finder_is_complete(struct finder *finder, uint32_t program, uint32_t object, uint32_t generation)
{
    const struct recording_object name = { program, object, generation };
    struct life *life = finder->restricted ? life_find(finder, &name) : NULL;
    if (!finder->restricted && life_get(finder, &name, &life) != 0) {
        return false;
    }
    return life != NULL && is_complete(finder, life);
}

/* ---- What is asked for ---- */

/* The lives of a block of which counts are missing. */
static int note_gaps(struct reader *reader, const struct recording_place *place)
{
    struct recording_parts parts;
    const struct recording_object *objects;
    const uint32_t *gaps = NULL;
    int error = recording_file_events(&reader->file, place, false, &reader->read, &parts);
    error = error == 0 ? recording_decoder_objects(reader->decoder, &parts, &objects) : error;
    error = error == 0 ? recording_decoder_gaps(reader->decoder, &parts, &gaps) : error;
    for (uint32_t i = 0; error == 0 && i < recording_decoder_head(reader->decoder)->gaps; i++) {
        struct life *life;
        error = life_get(reader->finder, &objects[gaps[i]], &life);
        if (error == 0) {
            life->gaps = true;
            reader->finder->any_gaps |= life->wanted;
        }
    }
    return error;
}

static int note_all_gaps(struct reader *reader)
{
    const struct recording_places *places = &reader->file.places;
    uint32_t flags = 0;
    int error = 0;
    for (size_t i = 0; i < places->count; i++) {
        flags |= places->places[i].flags;
    }
    if ((flags & RECORDING_VAST) != 0 && (flags & RECORDING_GAPS) != 0) {
        return -NT_EFORMAT; /* who goes through all may have forgotten what was missing */
    }
    reader->finder->steady = (flags & RECORDING_UNSTEADY) == 0;
    for (size_t i = 0; i < places->count && error == 0 && reader->finder->restricted; i++) {
        if ((places->places[i].flags & RECORDING_GAPS) != 0) {
            error = note_gaps(reader, &places->places[i]);
        }
    }
    return error;
}

static int compare_low(const void *left, const void *right)
{
    uint64_t a = recording_session_low(*(const uint64_t *)left), b = recording_session_low(*(const uint64_t *)right);
    return a < b ? -1 : a > b;
}

static bool take_memory(struct finder *finder)
{
    size_t count = finder->wanted.session_count;
    finder->sessions = malloc((count + 1) * sizeof *finder->sessions);
    finder->marks = malloc(RECORDING_EVENTS_MAX * sizeof *finder->marks);
    finder->complete = malloc(RECORDING_EVENTS_MAX * sizeof *finder->complete);
    if (finder->sessions == NULL || finder->marks == NULL || finder->complete == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(finder->sessions, finder->wanted.sessions, count * sizeof *finder->sessions);
        qsort(finder->sessions, count, sizeof *finder->sessions, compare_low);
    }
    return true;
}

int finder_new(struct reader *reader, const struct nt_source_wanted *wanted)
{
    bool restricted = wanted->since > 0 || wanted->until < UINT64_MAX || wanted->session_count > 0;
    if (!restricted && wanted->life == NULL) {
        return 0;
    }
    struct finder *finder = calloc(1, sizeof *finder);
    if (finder == NULL) {
        return -ENOMEM;
    }
    finder->wanted = *wanted;
    finder->restricted = restricted;
    reader->finder = finder;
    int error = take_memory(finder) ? note_all_gaps(reader) : -ENOMEM;
    if (error == 0) {
        return 1;
    }
    finder_free(finder);
    reader->finder = NULL;
    return error == -NT_EFORMAT || error == -NT_ETRUNCATED ? 0 : error; /* damage was told */
}

void finder_free(struct finder *take_finder)
{
    if (take_finder != NULL) {
        free(take_finder->sessions);
        free(take_finder->marks);
        free(take_finder->complete);
        free(take_finder->lives);
        recording_index_fini(&take_finder->index);
        free(take_finder);
    }
}
