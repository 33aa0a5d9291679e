/* SPDX-License-Identifier: BSD-3-Clause */
/* What events name, see lives.h. Entries are made when an event asks for them, from the newest snapshot; all that they
   say is copied. When there are many, all are let go at once: those that are still there come back by themselves. */
#include "model/lives.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/kinds.h"
#include "model/memory.h"
#include "model/path_match.h"

#define KINDS 256u
#define PROGRAM UINT32_MAX /* "slot" of an entry that is a program's */

/* One life or program, by its three numbers. */
struct entry {
    struct nt_life life;
    uint32_t number; /* of the program */
    uint32_t round;  /* of the snapshot that it was last looked for in */
    bool whole;      /* picked with all that it counts */
    uint64_t *near;  /* by path: positions from which the name of a kind may lead to its end; NULL: none */
    struct nt_lives_program program;
};

struct nt_lives {
    struct nt_model_path *const *paths;
    size_t path_count;
    bool *anywhere; /* by path: it matches as if `**` stood before it */
    struct nt_model model;
    uint32_t round;
    struct entry **entries; /* as they came */
    uint32_t count, room;
    struct nt_model_index index;
    size_t index_room;
    struct nt_model_memory *memory; /* of entries and what they say */
    size_t bytes;                   /* of that */
    struct nt_buffer text;
    struct entry *last; /* that was found */
};

int nt_lives_new(struct nt_model_path *const *paths, size_t path_count, struct nt_lives **ret_lives)
{
    struct nt_lives *lives = calloc(1, sizeof *lives);
    if (!lives)
        return -ENOMEM;
    lives->paths = paths;
    lives->path_count = path_count;
    lives->anywhere = calloc(path_count + 1, sizeof *lives->anywhere);
    if (!lives->anywhere) {
        free(lives);
        return -ENOMEM;
    }
    *ret_lives = lives;
    return 0;
}

static void forget(struct nt_lives *lives)
{
    nt_model_memory_free(lives->memory);
    nt_model_index_fini(&lives->index);
    lives->memory = NULL;
    lives->bytes = 0;
    lives->index_room = 0;
    lives->count = 0;
    lives->last = NULL;
}

void nt_lives_free(struct nt_lives *take_lives)
{
    if (!take_lives)
        return;
    forget(take_lives);
    nt_model_fini(&take_lives->model);
    nt_buffer_fini(&take_lives->text);
    free(take_lives->entries);
    free(take_lives->anywhere);
    free(take_lives);
}

size_t nt_lives_bytes(const struct nt_lives *lives)
{
    return lives->bytes;
}

const struct nt_model *nt_lives_model(const struct nt_lives *lives)
{
    return &lives->model;
}

/* ---- The table ---- */

struct sought {
    const struct nt_lives *lives;
    uint32_t number, object, generation;
};

static bool is_entry(const struct entry *entry, const struct sought *sought)
{
    return entry->life.object == sought->object && entry->life.generation == sought->generation &&
           entry->number == sought->number;
}

static bool is_sought(const void *arg, uint32_t position)
{
    const struct sought *sought = arg;
    return is_entry(sought->lives->entries[position], sought);
}

static uint32_t *cell_of(const struct nt_lives *lives, const struct sought *sought)
{
    const uint32_t key[3] = { sought->number, sought->object, sought->generation };
    return nt_model_index_cell(&lives->index, nt_model_hash((uintptr_t)lives, key, sizeof key), is_sought, sought);
}

/* Room for one entry more, in the list and in the index. */
static bool make_room(struct nt_lives *lives)
{
    if (lives->count == lives->room) {
        uint32_t room = lives->room > 0 ? lives->room * 2 : 64;
        struct entry **entries = reallocarray(lives->entries, room, sizeof(struct entry *));
        if (!entries)
            return false;
        lives->entries = entries;
        lives->room = room;
    }
    if (lives->count < lives->index_room)
        return true;
    struct nt_model_index index = { 0 };
    if (nt_model_index_init(&index, lives->room) != 0)
        return false;
    nt_model_index_fini(&lives->index);
    lives->index = index;
    lives->index_room = lives->room;
    for (uint32_t i = 0; i < lives->count; i++) {
        const struct entry *entry = lives->entries[i];
        const struct sought sought = { lives, entry->number, entry->life.object, entry->life.generation };
        *cell_of(lives, &sought) = i;
    }
    return true;
}

static void *take_zeros(struct nt_lives *lives, size_t size)
{
    lives->bytes += size;
    return nt_model_memory_zero(&lives->memory, size);
}

static void *take_copy(struct nt_lives *lives, const void *data, size_t size)
{
    lives->bytes += size;
    return nt_model_memory_copy(&lives->memory, data, size);
}

/* The entry of those numbers, a new one if there is none. NULL: out of memory. */
static struct entry *find_entry(struct nt_lives *lives, const struct sought *sought)
{
    if (!make_room(lives))
        return NULL;
    uint32_t *cell = cell_of(lives, sought);
    if (*cell != NT_MODEL_NONE)
        return lives->entries[*cell];
    struct entry *entry = take_zeros(lives, sizeof *entry);
    if (!entry)
        return NULL;
    entry->number = sought->number;
    entry->life.object = sought->object;
    entry->life.generation = sought->generation;
    entry->round = lives->round - 1;
    *cell = lives->count;
    lives->entries[lives->count++] = entry;
    return entry;
}

static bool keep(struct nt_lives *lives, struct nt_bytes *bytes)
{
    const char *copy = take_copy(lives, bytes->data, bytes->size);
    if (copy)
        bytes->data = copy;
    return copy != NULL;
}

/* ---- Programs ---- */

static uint32_t model_program(const struct nt_model *model, uint32_t number)
{
    for (uint32_t i = 0; i < model->program_count; i++) {
        if (model->programs[i].told.number == number)
            return i;
    }
    return NT_MODEL_NONE;
}

static struct nt_source_kind *keep_kind(struct nt_lives *lives, const struct nt_source_kind *declared)
{
    struct nt_source_kind *kind = take_copy(lives, declared, sizeof *declared);
    struct nt_source_field *fields = take_copy(lives, declared->fields, declared->field_count * sizeof *fields);
    if (!kind || !fields || !keep(lives, &kind->name))
        return NULL;
    for (size_t i = 0; i < kind->field_count; i++) {
        if (!keep(lives, &fields[i].name))
            return NULL;
    }
    kind->fields = fields;
    return kind;
}

/* Kinds that were declared since. */
static bool keep_kinds(struct nt_lives *lives, struct nt_lives_program *program, const struct nt_model_program *from)
{
    if (!from->declared)
        return true;
    if (!program->kinds)
        program->kinds = take_zeros(lives, KINDS * sizeof *program->kinds);
    for (unsigned kind = 0; program->kinds && kind < KINDS; kind++) {
        if (program->kinds[kind] || !from->declared[kind])
            continue;
        struct nt_source_kind *kept = keep_kind(lives, from->declared[kind]);
        if (!kept)
            return false;
        kept->name = from->kinds[kind]; /* empty where another kind has the name */
        if (!keep(lives, &kept->name))
            return false;
        program->kinds[kind] = kept;
    }
    return program->kinds != NULL;
}

static bool fill_program(struct nt_lives *lives, struct entry *entry)
{
    struct nt_lives_program *program = &entry->program;
    uint32_t index = model_program(&lives->model, entry->number);
    entry->round = lives->round;
    if (index != NT_MODEL_NONE) {
        const struct nt_model_program *from = &lives->model.programs[index];
        if (!program->known) {
            *program = (struct nt_lives_program){ .number = entry->number,
                                                  .known = true,
                                                  .picked = program->picked,
                                                  .id = from->told.id,
                                                  .name = from->told.name,
                                                  .full_name = from->full_name,
                                                  .pid = from->pid,
                                                  .node = from->told.node };
            if (!keep(lives, &program->name) || !keep(lives, &program->full_name) || !keep(lives, &program->pid) ||
                !keep(lives, &program->node))
                return false;
        }
        return keep_kinds(lives, program, from);
    }
    if (!program->known && program->name.size == 0) {
        char name[32];
        int size = snprintf(name, sizeof name, "program-%u", entry->number);
        program->number = entry->number;
        program->name = (struct nt_bytes){ name, (size_t)size };
        if (!keep(lives, &program->name))
            return false;
        program->full_name = program->name;
        program->pid = program->node = (struct nt_bytes){ "", 0 };
    }
    return true;
}

static struct nt_lives_program *find_program(struct nt_lives *lives, uint32_t number)
{
    const struct sought sought = { lives, number, PROGRAM, PROGRAM };
    struct entry *entry = find_entry(lives, &sought);
    if (!entry || (entry->round != lives->round && !fill_program(lives, entry)))
        return NULL;
    return &entry->program;
}

const struct nt_lives_program *nt_lives_program(struct nt_lives *lives, uint32_t program)
{
    return find_program(lives, program);
}

/* ---- What paths pick ---- */

/* Where the paths stand on the way down from the node. */
struct descent {
    const struct nt_lives *lives;
    uint64_t *positions; /* by path */
    bool reached;
};

static void descend(struct descent *descent, const struct nt_model_names *names)
{
    for (size_t i = 0; i < descent->lives->path_count; i++) {
        const struct nt_model_path *path = descent->lives->paths[i];
        descent->positions[i] = nt_model_path_step(path, descent->positions[i], names);
        descent->reached = descent->reached || nt_model_path_reached(path, descent->positions[i]);
    }
}

/* Through the node and the program. */
static void descend_to_program(struct descent *descent, const struct nt_lives_program *program)
{
    const struct nt_model_names node = { .names = { program->node }, .count = 1 };
    const struct nt_model_names names = { .names = { program->name, program->full_name, program->pid },
                                          .count = program->known ? 3 : 1 };
    for (size_t i = 0; i < descent->lives->path_count; i++)
        descent->positions[i] = nt_model_path_start(descent->lives->paths[i], descent->lives->anywhere[i]);
    descend(descent, &node);
    descend(descent, &names);
}

static void descend_to_object(struct descent *descent, const struct nt_model_object *object)
{
    char room[32];
    struct nt_model_names names = {
        .names = { object->told.name }, .count = 1, .slot = object->told.slot, .generation = object->told.generation
    };
    if (object->told.name.size == 0) {
        int size = snprintf(room, sizeof room, "#%u.%u", object->told.slot, object->told.generation);
        names.names[0] = (struct nt_bytes){ room, (size_t)size };
    }
    descend(descent, &names);
}

/* Through all objects from the program's own on, that excluded. False: out of memory. */
static bool descend_chain(struct descent *descent, uint32_t index)
{
    const struct nt_model *model = &descent->lives->model;
    uint32_t depth = model->objects[index].depth + 1, length = 0;
    uint32_t *chain = malloc(depth * sizeof *chain);
    if (!chain)
        return false;
    for (uint32_t at = index; at != NT_MODEL_NONE && length < depth; at = model->objects[at].parent)
        chain[length++] = at;
    while (length > 0) {
        const struct nt_model_object *object = &model->objects[chain[--length]];
        if (chain[length] != nt_model_program_of(model, object)->root)
            descend_to_object(descent, object);
    }
    free(chain);
    return true;
}

/* `index`: in the model, or NT_MODEL_NONE. */
static bool pick(struct nt_lives *lives, struct entry *entry, uint32_t index)
{
    if (lives->path_count == 0) {
        entry->whole = true;
        return true;
    }
    if (!entry->near)
        entry->near = take_zeros(lives, lives->path_count * sizeof *entry->near);
    struct descent descent = { .lives = lives, .positions = entry->near };
    if (!entry->near)
        return false;
    descend_to_program(&descent, entry->life.program);
    if (index == NT_MODEL_NONE) {
        const struct nt_model_object unknown = { .told = { .slot = entry->life.object,
                                                           .generation = entry->life.generation } };
        descend_to_object(&descent, &unknown);
    } else if (!descend_chain(&descent, index)) {
        return false;
    }
    entry->whole = descent.reached;
    return true;
}

bool nt_life_picked(const struct nt_lives *lives, const struct nt_life *life, unsigned kind)
{
    const struct entry *entry = (const void *)life; /* its first member */
    char room[NT_MODEL_KIND_ROOM];
    if (entry->whole)
        return true;
    const struct nt_model_names names = { .names = { nt_life_kind(life, kind, room) }, .count = 1 };
    for (size_t i = 0; i < lives->path_count; i++) {
        const struct nt_model_path *path = lives->paths[i];
        if (nt_model_path_near_end(path, entry->near[i]) != 0 &&
            nt_model_path_reached(path, nt_model_path_step(path, entry->near[i], &names)))
            return true;
    }
    return false;
}

bool nt_life_may_be_picked(const struct nt_lives *lives, const struct nt_life *life)
{
    const struct entry *entry = (const void *)life; /* its first member */
    bool may = entry->whole;
    for (size_t i = 0; i < lives->path_count && !may; i++)
        may = nt_model_path_near_end(lives->paths[i], entry->near[i]) != 0;
    return may;
}

/* ---- Lives ---- */

static bool fill_unknown(struct nt_lives *lives, struct entry *entry)
{
    struct nt_life *life = &entry->life;
    nt_buffer_clear(&lives->text);
    if (life->program->node.size > 0)
        nt_text_append_path(&lives->text, life->program->node.data, life->program->node.size);
    else
        nt_buffer_byte(&lives->text, '*');
    nt_buffer_byte(&lives->text, '/');
    nt_text_append_path(&lives->text, life->program->full_name.data, life->program->full_name.size);
    size_t below = lives->text.size + 1;
    nt_buffer_print(&lives->text, "/#%u.%u", life->object, life->generation);
    life->path = (struct nt_bytes){ lives->text.data, lives->text.size };
    if (lives->text.error != 0 || !keep(lives, &life->path))
        return false;
    life->below = life->name = (struct nt_bytes){ life->path.data + below, life->path.size - below };
    return pick(lives, entry, NT_MODEL_NONE);
}

static bool fill_known(struct nt_lives *lives, struct entry *entry, uint32_t index)
{
    const struct nt_model_object *object = &lives->model.objects[index];
    const struct nt_model_program *program = nt_model_program_of(&lives->model, object);
    struct nt_life *life = &entry->life;
    nt_buffer_clear(&lives->text);
    nt_model_name_append(&lives->text, object);
    life->name = object->told.name.size > 0 ? object->told.name
                                            : (struct nt_bytes){ lives->text.data, lives->text.size };
    if (lives->text.error != 0 || !keep(lives, &life->name))
        return false;
    nt_buffer_clear(&lives->text);
    nt_model_program_path_append(&lives->text, &lives->model, object->told.program);
    size_t above = lives->text.size;
    nt_buffer_clear(&lives->text);
    nt_model_path_append(&lives->text, &lives->model, index);
    life->path = (struct nt_bytes){ lives->text.data, lives->text.size };
    if (lives->text.error != 0 || !keep(lives, &life->path))
        return false;
    above += index != program->root; /* the slash */
    life->below = (struct nt_bytes){ life->path.data + above, life->path.size - above };
    life->known = true;
    return pick(lives, entry, index);
}

/* What is said of a life later than that it is there. */
static bool fill_remote(struct nt_lives *lives, struct nt_life *life, uint32_t index)
{
    const struct nt_source_rare *rare = lives->model.objects[index].told.rare;
    if (!rare)
        return true;
    struct nt_bytes node = rare->remote_node, process = rare->remote_process;
    if (!keep(lives, &node) || !keep(lives, &process))
        return false;
    life->remote_node = node;
    life->remote_process = process;
    return true;
}

static bool is_whole(const struct nt_life *life)
{
    return life->known && life->remote_node.size > 0 && life->remote_process.size > 0;
}

static bool fill_life(struct nt_lives *lives, struct entry *entry)
{
    uint32_t program = model_program(&lives->model, entry->number);
    uint32_t index = NT_MODEL_NONE;
    entry->round = lives->round;
    if (program != NT_MODEL_NONE)
        index = nt_model_find(&lives->model, program, entry->life.object, entry->life.generation);
    if (index != NT_MODEL_NONE)
        return (entry->life.known || fill_known(lives, entry, index)) && fill_remote(lives, &entry->life, index);
    return entry->life.path.size > 0 || fill_unknown(lives, entry);
}

/* Notes of which programs anything is picked. */
static int pick_programs(struct nt_lives *lives)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    int error = nt_model_selection_init(&selection, &lives->model);
    for (size_t i = 0; i < lives->path_count && error >= 0; i++)
        error = nt_model_select(&selection, lives->paths[i], true);
    if (error >= 0)
        error = nt_model_selection_close(&selection);
    for (uint32_t i = 0; i < lives->model.program_count && error >= 0; i++) {
        struct nt_lives_program *program = find_program(lives, lives->model.programs[i].told.number);
        if (!program)
            return -ENOMEM;
        program->picked = program->picked || lives->path_count == 0 || selection.programs[i] != NT_MODEL_PICKED_NOT;
    }
    return error < 0 ? error : 0;
}

/* Programs alone, of which there may be many, do not make it full. */
static bool is_full(const struct nt_lives *lives)
{
    return lives->count > NT_LIVES_MOST + 2 * (size_t)lives->model.program_count ||
           lives->bytes > NT_LIVES_BYTES + 8192 * (size_t)lives->model.program_count;
}

const struct nt_life *nt_lives_find(struct nt_lives *lives, uint32_t program, uint32_t object, uint32_t generation)
{
    const struct sought sought = { lives, program, object, generation };
    if (lives->last && is_entry(lives->last, &sought))
        return &lives->last->life;
    if (is_full(lives)) {
        forget(lives);
        if (pick_programs(lives) != 0)
            return NULL;
    }
    const struct nt_lives_program *of = find_program(lives, program);
    struct entry *entry = of ? find_entry(lives, &sought) : NULL;
    if (!entry)
        return NULL;
    entry->life.program = of;
    if (!is_whole(&entry->life) && entry->round != lives->round && !fill_life(lives, entry))
        return NULL;
    lives->last = entry;
    return &entry->life;
}

const struct nt_source_kind *nt_life_declared(const struct nt_life *life, unsigned kind)
{
    return life->program->kinds && kind < KINDS ? life->program->kinds[kind] : NULL;
}

struct nt_bytes nt_life_kind(const struct nt_life *life, unsigned kind, char room[NT_MODEL_KIND_ROOM])
{
    const char *name = nt_model_kind_name(kind);
    const struct nt_source_kind *declared = nt_life_declared(life, kind);
    if (name)
        return (struct nt_bytes){ name, strlen(name) };
    if (declared && declared->name.size > 0)
        return declared->name;
    int size = snprintf(room, NT_MODEL_KIND_ROOM, "kind-%u", kind);
    return (struct nt_bytes){ room, (size_t)size };
}

/* ---- Snapshots ---- */

/* A path means what it means in the first snapshot that has anything: from a node on if it matches so, else as if
   `**` stood before it. */
static int settle_paths(struct nt_lives *lives)
{
    int found = 0;
    for (size_t i = 0; i < lives->path_count && found >= 0; i++) {
        found = nt_model_path_from_node(lives->paths[i]) ? 1
                                                         : nt_model_select_from_node(&lives->model, lives->paths[i]);
        lives->anywhere[i] = found == 0;
    }
    return found < 0 ? found : 0;
}

int nt_lives_take(struct nt_lives *lives, struct nt_model *take_model)
{
    bool first = lives->model.program_count == 0;
    nt_model_fini(&lives->model);
    lives->model = *take_model;
    *take_model = (struct nt_model){ 0 };
    lives->round++;
    lives->last = NULL;
    if (first)
        forget(lives);
    int error = first ? settle_paths(lives) : 0;
    return error == 0 ? pick_programs(lives) : error;
}
