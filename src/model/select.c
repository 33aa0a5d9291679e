/* SPDX-License-Identifier: BSD-3-Clause */
/* What paths pick from the tree, see path.h. Each object is looked at once a path, whatever the depth. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "model/path_match.h"

#define KINDS 256u

struct walk {
    struct nt_model_selection *selection;
    const struct nt_model_path *path;
    bool numbers;        /* looks for numbers, else for branches */
    uint64_t *positions; /* by object */
    size_t found;
    int error;
};

int nt_model_selection_init(struct nt_model_selection *selection, const struct nt_model *model)
{
    *selection = (struct nt_model_selection){ .model = model };
    selection->nodes = calloc((size_t)model->node_count + 1, 1);
    selection->programs = calloc((size_t)model->program_count + 1, 1);
    selection->objects = calloc((size_t)model->object_count + 1, 1);
    if (selection->nodes && selection->programs && selection->objects)
        return 0;
    nt_model_selection_fini(selection);
    return -ENOMEM;
}

void nt_model_selection_fini(struct nt_model_selection *selection)
{
    if (!selection)
        return;
    free(selection->nodes);
    free(selection->programs);
    free(selection->objects);
    free(selection->kinds);
    free(selection->numbers);
    *selection = (struct nt_model_selection){ 0 };
}

/* ---- What an object has ---- */

static void set_kinds(uint64_t set[4], const struct nt_source_tally *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sums[i].kind < KINDS)
            set[sums[i].kind / 64] |= UINT64_C(1) << (sums[i].kind % 64);
    }
}

static void object_kinds(const struct nt_source_object *told, uint64_t set[4])
{
    memset(set, 0, 4 * sizeof *set);
    set_kinds(set, told->tallies, told->tally_count);
    set_kinds(set, told->gone, told->gone_count);
    set_kinds(set, told->base, told->base_count);
    set_kinds(set, told->lineage, told->lineage_count);
}

static bool find_value(const struct nt_source_object *told, const struct nt_model_pick *pick,
                       struct nt_source_tally *ret_sum)
{
    const struct nt_source_tally *own = nt_model_sum(told->tallies, told->tally_count, pick->kind);
    const struct nt_source_tally *sum = own;
    switch (pick->field) {
    case NT_MODEL_FIELD_LINEAGE_COUNT:
    case NT_MODEL_FIELD_LINEAGE_TOTAL:
        if (!sum)
            sum = nt_model_sum(told->lineage, told->lineage_count, pick->kind);
        if (!sum)
            sum = nt_model_sum(told->base, told->base_count, pick->kind);
        break;
    case NT_MODEL_FIELD_BASE_COUNT:
    case NT_MODEL_FIELD_BASE_TOTAL:
        sum = nt_model_sum(told->base, told->base_count, pick->kind);
        break;
    case NT_MODEL_FIELD_CLOSED_COUNT:
    case NT_MODEL_FIELD_CLOSED_TOTAL:
        sum = nt_model_sum(told->gone, told->gone_count, pick->kind);
        break;
    default:
        break;
    }
    if (sum)
        *ret_sum = *sum;
    return sum != NULL;
}

uint64_t nt_model_pick_value(const struct nt_model *model, const struct nt_model_pick *pick, uint64_t *ret_count)
{
    const struct nt_model_object *object = &model->objects[pick->object];
    struct nt_source_tally sum = { 0 };
    (void)find_value(&object->told, pick, &sum);
    *ret_count = 1;
    switch (pick->field) {
    case NT_MODEL_FIELD_LINEAGE_COUNT:
        return nt_model_lineage(object, pick->kind).count;
    case NT_MODEL_FIELD_LINEAGE_TOTAL:
        return nt_model_lineage(object, pick->kind).total;
    case NT_MODEL_FIELD_MAX:
        return sum.max;
    case NT_MODEL_FIELD_LAST:
        return sum.last;
    case NT_MODEL_FIELD_MEAN:
        *ret_count = sum.count;
        return sum.total;
    case NT_MODEL_FIELD_COUNT:
    case NT_MODEL_FIELD_BASE_COUNT:
    case NT_MODEL_FIELD_CLOSED_COUNT:
        return sum.count;
    default:
        return sum.total;
    }
}

/* ---- Walking ---- */

static int add_number(struct nt_model_selection *selection, const struct nt_model_pick *pick)
{
    if (selection->number_count == selection->number_room) {
        size_t room = selection->number_room > 0 ? selection->number_room * 2 : 64;
        struct nt_model_pick *numbers = realloc(selection->numbers, room * sizeof *numbers);
        if (!numbers)
            return -ENOMEM;
        selection->numbers = numbers;
        selection->number_room = room;
    }
    selection->numbers[selection->number_count++] = *pick;
    return 0;
}

static int add_kind(struct nt_model_selection *selection, uint32_t object, unsigned kind)
{
    if (!selection->kinds) {
        selection->kinds = calloc((size_t)selection->model->object_count + 1, sizeof *selection->kinds);
        if (!selection->kinds)
            return -ENOMEM;
    }
    selection->kinds[object][kind / 64] |= UINT64_C(1) << (kind % 64);
    if (selection->objects[object] < NT_MODEL_PICKED_KINDS)
        selection->objects[object] = NT_MODEL_PICKED_KINDS;
    return 0;
}

static void visit_kind(struct walk *walk, uint32_t index, unsigned kind)
{
    const struct nt_model *model = walk->selection->model;
    const struct nt_model_object *object = &model->objects[index];
    char room[NT_MODEL_KIND_ROOM];
    const struct nt_model_names names = {
        .names = { nt_model_kind(nt_model_program_of(model, object), kind, room) },
        .count = 1,
    };
    uint64_t positions = nt_model_path_step(walk->path, walk->positions[index], &names);
    if (!walk->numbers && nt_model_path_reached(walk->path, positions)) {
        walk->error = add_kind(walk->selection, index, kind);
        walk->found++;
    } else if (walk->numbers && nt_model_path_at_field(walk->path, positions)) {
        const struct nt_model_pick pick = { index, (uint16_t)kind, (uint16_t)nt_model_path_field(walk->path) };
        struct nt_source_tally sum;
        if (!find_value(&object->told, &pick, &sum))
            return;
        walk->error = add_number(walk->selection, &pick);
        walk->found++;
    }
}

static void visit_kinds(struct walk *walk, uint32_t index)
{
    uint64_t set[4];
    object_kinds(&walk->selection->model->objects[index].told, set);
    for (unsigned word = 0; word < 4; word++) {
        for (; set[word] != 0 && walk->error == 0; set[word] &= set[word] - 1)
            visit_kind(walk, index, word * 64 + (unsigned)__builtin_ctzll(set[word]));
    }
}

static void visit_object(struct walk *walk, uint32_t index, uint64_t positions)
{
    const struct nt_model_object *object = &walk->selection->model->objects[index];
    const struct nt_model_program *program = nt_model_program_of(walk->selection->model, object);
    if (index != program->root) {
        char room[32];
        struct nt_model_names names = {
            .names = { object->told.name }, .count = 1, .slot = object->told.slot, .generation = object->told.generation
        };
        if (object->told.name.size == 0) {
            int size = snprintf(room, sizeof room, "#%u.%u", object->told.slot, object->told.generation);
            names.names[0] = (struct nt_bytes){ room, (size_t)size };
        }
        positions = nt_model_path_step(walk->path, positions, &names);
        if (!walk->numbers && nt_model_path_reached(walk->path, positions)) {
            walk->selection->objects[index] = NT_MODEL_PICKED_WHOLE;
            walk->found++;
        }
    }
    walk->positions[index] = positions;
    if (nt_model_path_near_end(walk->path, positions) != 0)
        visit_kinds(walk, index);
}

static void visit_program(struct walk *walk, uint32_t index, uint64_t positions)
{
    const struct nt_model *model = walk->selection->model;
    const struct nt_model_program *program = &model->programs[index];
    const struct nt_model_names names = {
        .names = { program->told.name, program->pid, program->full_name },
        .count = 3,
    };
    positions = nt_model_path_step(walk->path, positions, &names);
    if (!walk->numbers && nt_model_path_reached(walk->path, positions)) {
        walk->selection->programs[index] = NT_MODEL_PICKED_WHOLE;
        walk->found++;
    }
    for (uint32_t i = 0; i < program->order_count && walk->error == 0; i++) {
        uint32_t at = model->order[program->order_first + i];
        uint32_t parent = model->objects[at].parent;
        visit_object(walk, at, parent == NT_MODEL_NONE ? positions : walk->positions[parent]);
    }
}

static void visit_node(struct walk *walk, uint32_t index, uint64_t positions)
{
    const struct nt_model *model = walk->selection->model;
    const struct nt_model_node *node = &model->nodes[index];
    const struct nt_model_names names = { .names = { node->name }, .count = 1 };
    positions = nt_model_path_step(walk->path, positions, &names);
    if (!walk->numbers && nt_model_path_reached(walk->path, positions)) {
        walk->selection->nodes[index] = NT_MODEL_PICKED_WHOLE;
        walk->found++;
    }
    for (uint32_t i = 0; i < node->programs_count && walk->error == 0; i++)
        visit_program(walk, model->programs_order[node->programs_first + i], positions);
}

static void walk_nodes(struct walk *walk, bool anywhere)
{
    uint64_t start = nt_model_path_start(walk->path, anywhere);
    for (uint32_t i = 0; i < walk->selection->model->node_count && walk->error == 0; i++)
        visit_node(walk, i, start);
}

/* From a node first; from anywhere if that finds nothing. */
static void walk_tree(struct walk *walk, bool numbers)
{
    walk->numbers = numbers;
    walk_nodes(walk, false);
    if (walk->found == 0 && !nt_model_path_from_node(walk->path))
        walk_nodes(walk, true);
}

/* ---- Which life a path names ---- */

/* Every distinct path gets a number of its own, compared exactly: names are not trusted to hash well. */
struct place {
    uint32_t parent; /* place */
    uint8_t rank;    /* the best of the picks here */
    struct nt_bytes name;
};

struct places {
    struct place *entries;
    uint32_t count;
    struct nt_model_index index;
    uint32_t *of_object; /* by index */
    uint32_t *of_pick;   /* by number */
};

struct sought {
    const struct places *places;
    uint32_t parent;
    struct nt_bytes name;
};

static bool is_place(const void *arg, uint32_t position)
{
    const struct sought *sought = arg;
    const struct place *place = &sought->places->entries[position];
    return place->parent == sought->parent && place->name.size == sought->name.size &&
           memcmp(place->name.data, sought->name.data, sought->name.size) == 0;
}

static uint32_t find_place(struct places *places, uint32_t parent, struct nt_bytes name)
{
    const struct sought sought = { places, parent, name };
    uint64_t hash = nt_model_hash((uintptr_t)places->entries + parent, name.data, name.size);
    uint32_t *cell = nt_model_index_cell(&places->index, hash, is_place, &sought);
    if (*cell == NT_MODEL_NONE) {
        *cell = places->count++;
        places->entries[*cell] = (struct place){ .parent = parent, .name = name };
    }
    return *cell;
}

static void places_fini(struct places *places)
{
    free(places->entries);
    free(places->of_object);
    free(places->of_pick);
    nt_model_index_fini(&places->index);
}

/* Objects without a name are told apart by their ids, as their paths are. */
static struct nt_bytes place_name(const struct nt_model_object *object)
{
    _Static_assert(offsetof(struct nt_source_object, generation) ==
                       offsetof(struct nt_source_object, slot) + sizeof object->told.slot,
                   "slot and generation stand together");
    if (object->told.name.size > 0)
        return object->told.name;
    return (struct nt_bytes){ (const char *)&object->told + offsetof(struct nt_source_object, slot), 8 };
}

/* Places of all objects, and room for those of so many picks. */
static int places_init(struct places *places, const struct nt_model *model, size_t picks)
{
    size_t room = (size_t)model->object_count + model->program_count + model->node_count + picks + 1;
    places->entries = calloc(room, sizeof *places->entries);
    places->of_object = calloc((size_t)model->object_count + 1, sizeof *places->of_object);
    places->of_pick = calloc(picks + 1, sizeof *places->of_pick);
    if (!places->entries || !places->of_object || !places->of_pick || nt_model_index_init(&places->index, room) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_model_program *program = &model->programs[model->programs_order[i]];
        uint32_t node = find_place(places, NT_MODEL_NONE, model->nodes[program->node].name);
        uint32_t place = find_place(places, node, program->told.name);
        for (uint32_t j = 0; j < program->order_count; j++) {
            uint32_t at = model->order[program->order_first + j];
            const struct nt_model_object *object = &model->objects[at];
            uint32_t above = object->parent == NT_MODEL_NONE ? place : places->of_object[object->parent];
            places->of_object[at] = at == program->root ? place : find_place(places, above, place_name(object));
        }
    }
    return 0;
}

/* How much of a life an object has: 2 it goes on, 1 the last of its lineage, 0 another one took over. */
static uint8_t rank_of(const struct nt_model *model, uint32_t index)
{
    const struct nt_model_object *object = &model->objects[index];
    if (object->successor != NT_MODEL_NONE)
        return 0;
    return object->told.closed || !nt_model_alive(nt_model_program_of(model, object)) ? 1 : 2;
}

/* The place of a number: its object's, and below that its kind's name. */
static uint32_t place_of(struct places *places, const struct nt_model *model, const struct nt_model_pick *pick)
{
    char room[NT_MODEL_KIND_ROOM];
    const struct nt_model_object *object = &model->objects[pick->object];
    struct nt_bytes name = nt_model_kind(nt_model_program_of(model, object), pick->kind, room);
    if (name.data == room)
        name = (struct nt_bytes){ (const char *)&pick->kind, sizeof pick->kind };
    return find_place(places, places->of_object[pick->object], name);
}

/* Of the numbers from `first` on, keeps those of the best rank at each path. */
static int keep_best(struct nt_model_selection *selection, size_t first)
{
    const struct nt_model *model = selection->model;
    struct nt_model_pick *picks = selection->numbers + first;
    size_t count = selection->number_count - first;
    struct places places __attribute__((cleanup(places_fini))) = { 0 };
    int error = places_init(&places, model, count);
    if (error != 0)
        return error;
    for (size_t i = 0; i < count; i++) {
        places.of_pick[i] = place_of(&places, model, &picks[i]);
        struct place *place = &places.entries[places.of_pick[i]];
        uint8_t rank = rank_of(model, picks[i].object);
        place->rank = rank > place->rank ? rank : place->rank;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (rank_of(model, picks[i].object) == places.entries[places.of_pick[i]].rank)
            picks[kept++] = picks[i];
    }
    selection->number_count = first + kept;
    return 0;
}

int nt_model_select(struct nt_model_selection *selection, const struct nt_model_path *path, bool all)
{
    uint64_t *positions = calloc((size_t)selection->model->object_count + 1, sizeof *positions);
    if (!positions)
        return -ENOMEM;
    struct walk walk = { .selection = selection, .path = path, .positions = positions };
    size_t first = selection->number_count;
    if (nt_model_path_field(path) != NT_MODEL_FIELD_NONE)
        walk_tree(&walk, true);
    if (walk.found == 0 && walk.error == 0) {
        walk_tree(&walk, false);
        selection->branches += walk.found;
    } else if (walk.error == 0 && !all && walk.found > 1) {
        walk.error = keep_best(selection, first);
        walk.found = selection->number_count - first;
    }
    free(positions);
    if (walk.error != 0)
        return walk.error;
    return walk.found < INT_MAX ? (int)walk.found : INT_MAX;
}

int nt_model_select_from_node(const struct nt_model *model, const struct nt_model_path *path)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    uint64_t *positions = calloc((size_t)model->object_count + 1, sizeof *positions);
    struct walk walk = { .selection = &selection, .path = path, .positions = positions };
    walk.error = positions ? nt_model_selection_init(&selection, model) : -ENOMEM;
    if (walk.error == 0)
        walk_nodes(&walk, false);
    free(positions);
    if (walk.error != 0)
        return walk.error;
    return walk.found < INT_MAX ? (int)walk.found : INT_MAX;
}

/* ---- Closing ---- */

static void raise_to(uint8_t *picked, enum nt_model_picked to)
{
    if (*picked < to)
        *picked = (uint8_t)to;
}

static void spread_down(struct nt_model_selection *selection, const struct nt_model_program *program, bool whole)
{
    const struct nt_model *model = selection->model;
    for (uint32_t i = 0; i < program->order_count; i++) {
        uint32_t at = model->order[program->order_first + i];
        uint32_t parent = model->objects[at].parent;
        if (whole || (parent != NT_MODEL_NONE && selection->objects[parent] == NT_MODEL_PICKED_WHOLE))
            selection->objects[at] = NT_MODEL_PICKED_WHOLE;
    }
}

static bool spread_up(struct nt_model_selection *selection, const struct nt_model_program *program)
{
    const struct nt_model *model = selection->model;
    bool any = false;
    for (uint32_t i = program->order_count; i > 0; i--) {
        uint32_t at = model->order[program->order_first + i - 1];
        uint32_t parent = model->objects[at].parent;
        if (selection->objects[at] == NT_MODEL_PICKED_NOT)
            continue;
        any = true;
        if (parent != NT_MODEL_NONE)
            raise_to(&selection->objects[parent], NT_MODEL_PICKED_ABOVE);
    }
    return any;
}

int nt_model_selection_close(struct nt_model_selection *selection)
{
    const struct nt_model *model = selection->model;
    if (selection->branches > 0) {
        for (size_t i = 0; i < selection->number_count; i++) {
            int error = add_kind(selection, selection->numbers[i].object, selection->numbers[i].kind);
            if (error != 0)
                return error;
        }
        selection->number_count = 0;
    }
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_model_program *program = &model->programs[i];
        if (selection->nodes[program->node] == NT_MODEL_PICKED_WHOLE)
            selection->programs[i] = NT_MODEL_PICKED_WHOLE;
        spread_down(selection, program, selection->programs[i] == NT_MODEL_PICKED_WHOLE);
        if (spread_up(selection, program))
            raise_to(&selection->programs[i], NT_MODEL_PICKED_ABOVE);
        if (selection->programs[i] != NT_MODEL_PICKED_NOT)
            raise_to(&selection->nodes[program->node], NT_MODEL_PICKED_ABOVE);
    }
    return 0;
}

bool nt_model_selected(const struct nt_model_selection *selection, uint32_t object, unsigned kind)
{
    if (!selection || selection->objects[object] == NT_MODEL_PICKED_WHOLE)
        return true;
    if (selection->objects[object] != NT_MODEL_PICKED_KINDS || kind >= KINDS)
        return false;
    return selection->kinds[object][kind / 64] >> (kind % 64) & 1;
}
