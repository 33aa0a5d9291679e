/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of objects, see objects.h. Links that were told are followed only after circles in them were cut;
   no step recurses and none is quadratic. */
#include "model/objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/kinds.h"
#include "model/memory.h"
#include "model/sessions.h"

#define KINDS 256u

void nt_model_fini(struct nt_model *model)
{
    if (!model)
        return;
    free(model->nodes);
    free(model->programs);
    free(model->programs_order);
    free(model->objects);
    free(model->order);
    nt_model_sessions_fini(model->sessions);
    free(model->sessions);
    nt_model_index_fini(&model->lives);
    nt_model_memory_free(model->memory);
    *model = (struct nt_model){ 0 };
}

/* ---- Feeding ---- */

void nt_model_source(struct nt_model *model)
{
    model->source_first = model->program_count;
}

static int copy_bytes(struct nt_model *model, struct nt_bytes *bytes)
{
    const char *copy = nt_model_memory_copy(&model->memory, bytes->data, bytes->size);
    if (!copy)
        return -ENOMEM;
    bytes->data = copy;
    return 0;
}

static int copy_sums(struct nt_model *model, const struct nt_source_tally **sums, size_t count)
{
    if (count == 0)
        return 0;
    const void *copy = nt_model_memory_copy(&model->memory, *sums, count * sizeof **sums);
    if (!copy)
        return -ENOMEM;
    *sums = copy;
    return 0;
}

static int copy_links(struct nt_model *model, struct nt_source_rare *rare)
{
    if (rare->link_count == 0)
        return 0;
    struct nt_source_link *links = nt_model_memory_copy(&model->memory, rare->links, rare->link_count * sizeof *links);
    for (size_t i = 0; links && i < rare->link_count; i++) {
        if (copy_bytes(model, &links[i].key) != 0)
            return -ENOMEM;
    }
    rare->links = links;
    return links ? 0 : -ENOMEM;
}

static int copy_histograms(struct nt_model *model, struct nt_source_rare *rare)
{
    if (rare->histogram_count == 0)
        return 0;
    struct nt_source_histogram *histograms = nt_model_memory_copy(&model->memory, rare->histograms,
                                                                  rare->histogram_count * sizeof *histograms);
    for (size_t i = 0; histograms && i < rare->histogram_count; i++) {
        struct nt_source_histogram *histogram = &histograms[i];
        histogram->buckets = nt_model_memory_copy(&model->memory, histogram->buckets,
                                                  histogram->bucket_count * sizeof *histogram->buckets);
        if (!histogram->buckets)
            return -ENOMEM;
    }
    rare->histograms = histograms;
    return histograms ? 0 : -ENOMEM;
}

static int copy_settled(struct nt_model *model, struct nt_source_object *object)
{
    if (!object->settled)
        return 0;
    const void *copy = nt_model_memory_copy(&model->memory, object->settled,
                                            object->tally_count * sizeof *object->settled);
    object->settled = copy;
    return copy ? 0 : -ENOMEM;
}

static int copy_rare(struct nt_model *model, const struct nt_source_rare **rare)
{
    if (!*rare)
        return 0;
    struct nt_source_rare *copy = nt_model_memory_copy(&model->memory, *rare, sizeof *copy);
    if (!copy || copy_bytes(model, &copy->remote_node) != 0 || copy_bytes(model, &copy->remote_process) != 0)
        return -ENOMEM;
    *rare = copy;
    return copy_links(model, copy) == 0 ? copy_histograms(model, copy) : -ENOMEM;
}

/* Room for one entry more in an array that doubles. */
static int grow(void **entries, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return 0;
    uint32_t more = *room > 0 ? *room * 2 : 64;
    void *moved = realloc(*entries, more * size);
    if (!moved)
        return -ENOMEM;
    *entries = moved;
    *room = more;
    return 0;
}

/* NAME.PID */
static int name_fully(struct nt_model *model, struct nt_model_program *program)
{
    char pid[16];
    size_t size = (size_t)snprintf(pid, sizeof pid, ".%u", program->told.pid);
    size_t before = program->told.name.size;
    char *name = nt_model_memory_zero(&model->memory, before + size);
    if (!name)
        return -ENOMEM;
    if (before > 0)
        memcpy(name, program->told.name.data, before);
    memcpy(name + before, pid, size);
    program->full_name = (struct nt_bytes){ name, before + size };
    program->pid = (struct nt_bytes){ name + before + 1, size - 1 };
    return 0;
}

int nt_model_add_program(struct nt_model *model, const struct nt_source_program *program)
{
    if (model->program_count >= NT_MODEL_PROGRAMS)
        return -E2BIG;
    struct nt_model_program new = { .told = *program, .first = NT_MODEL_NONE, .root = NT_MODEL_NONE };
    struct nt_bytes path = { program->path ? program->path : "", 0 };
    path.size = strlen(path.data) + 1;
    if (copy_bytes(model, &new.told.host) != 0 || copy_bytes(model, &new.told.domain) != 0 ||
        copy_bytes(model, &new.told.node) != 0 || copy_bytes(model, &new.told.program) != 0 ||
        copy_bytes(model, &new.told.name) != 0 || copy_bytes(model, &path) != 0 || name_fully(model, &new) != 0)
        return -ENOMEM;
    new.told.path = path.data;
    void *programs = model->programs;
    int error = grow(&programs, model->program_count, &model->program_room, sizeof new);
    model->programs = programs;
    if (error == 0)
        model->programs[model->program_count++] = new;
    return error;
}

/* Objects of one program come together, the last one's first. */
uint32_t nt_model_program_index(const struct nt_model *model, uint32_t number)
{
    for (uint32_t i = model->program_count; i > model->source_first; i--) {
        if (model->programs[i - 1].told.number == number)
            return i - 1;
    }
    return NT_MODEL_NONE;
}

static bool is_own_name(struct nt_bytes name)
{
    if (name.size == 0 || (name.size >= 5 && memcmp(name.data, "kind-", 5) == 0))
        return false;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const char *taken = nt_model_kind_name(kind);
        if (taken && strlen(taken) == name.size && memcmp(taken, name.data, name.size) == 0)
            return false;
    }
    return true;
}

/* A name counts only if no other kind of the program has it: names are keys in outputs. */
static bool is_free_name(const struct nt_model_program *program, struct nt_bytes name)
{
    if (!is_own_name(name))
        return false;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct nt_bytes taken = program->kinds[kind];
        if (taken.size == name.size && memcmp(taken.data, name.data, name.size) == 0)
            return false;
    }
    return true;
}

static struct nt_source_kind *copy_kind(struct nt_model *model, const struct nt_source_kind *kind)
{
    struct nt_source_kind *copy = nt_model_memory_copy(&model->memory, kind, sizeof *kind);
    struct nt_source_field *fields = nt_model_memory_copy(&model->memory, kind->fields,
                                                          kind->field_count * sizeof *fields);
    if (!copy || !fields || copy_bytes(model, &copy->name) != 0)
        return NULL;
    for (size_t i = 0; i < kind->field_count; i++) {
        if (copy_bytes(model, &fields[i].name) != 0)
            return NULL;
    }
    copy->fields = fields;
    return copy;
}

int nt_model_add_kind(struct nt_model *model, const struct nt_source_kind *kind)
{
    uint32_t index = nt_model_program_index(model, kind->program);
    if (index == NT_MODEL_NONE)
        return -EINVAL;
    if (kind->kind >= KINDS || nt_model_kind_name(kind->kind))
        return 0;
    struct nt_model_program *program = &model->programs[index];
    if (!program->kinds) {
        program->kinds = nt_model_memory_zero(&model->memory, KINDS * sizeof *program->kinds);
        program->declared = nt_model_memory_zero(&model->memory, KINDS * sizeof *program->declared);
        if (!program->kinds || !program->declared) {
            program->kinds = NULL;
            return -ENOMEM;
        }
    }
    if (program->declared[kind->kind])
        return 0;
    struct nt_source_kind *copy = copy_kind(model, kind);
    if (!copy)
        return -ENOMEM;
    copy->program = index;
    program->declared[kind->kind] = copy;
    if (is_free_name(program, copy->name))
        program->kinds[kind->kind] = copy->name;
    return 0;
}

int nt_model_add_object(struct nt_model *model, const struct nt_source_object *object)
{
    uint32_t program = NT_MODEL_NONE;
    if (model->object_count > 0)
        program = model->objects[model->object_count - 1].told.program;
    if (program == NT_MODEL_NONE || program < model->source_first ||
        model->programs[program].told.number != object->program)
        program = nt_model_program_index(model, object->program);
    if (program == NT_MODEL_NONE)
        return -EINVAL;
    if (model->object_count >= NT_MODEL_OBJECTS)
        return -E2BIG;
    struct nt_model_object new = { .told = *object };
    new.told.program = program;
    if (copy_bytes(model, &new.told.name) != 0 || copy_sums(model, &new.told.tallies, object->tally_count) != 0 ||
        copy_sums(model, &new.told.gone, object->gone_count) != 0 ||
        copy_sums(model, &new.told.base, object->base_count) != 0 ||
        copy_sums(model, &new.told.lineage, object->lineage_count) != 0 || copy_settled(model, &new.told) != 0 ||
        copy_rare(model, &new.told.rare) != 0)
        return -ENOMEM;
    void *objects = model->objects;
    int error = grow(&objects, model->object_count, &model->object_room, sizeof new);
    model->objects = objects;
    if (error == 0)
        model->objects[model->object_count++] = new;
    return error;
}

/* ---- Linking: lives ---- */

struct life {
    const struct nt_model *model;
    uint32_t program, slot, generation;
};

static bool is_life(const void *arg, uint32_t position)
{
    const struct life *life = arg;
    const struct nt_source_object *told = &life->model->objects[position].told;
    return told->slot == life->slot && told->generation == life->generation && told->program == life->program;
}

static uint32_t *life_cell(const struct nt_model *model, uint32_t program, uint32_t slot, uint32_t generation)
{
    const struct life life = { model, program, slot, generation };
    const uint32_t key[3] = { program, slot, generation };
    /* seeded by what stays when the model is moved */
    uint64_t hash = nt_model_hash((uintptr_t)model->lives.cells, key, sizeof key);
    return nt_model_index_cell(&model->lives, hash, is_life, &life);
}

uint32_t nt_model_find(const struct nt_model *model, uint32_t program, uint32_t slot, uint32_t generation)
{
    const uint32_t *cell = life_cell(model, program, slot, generation);
    return cell ? *cell : NT_MODEL_NONE;
}

/* Fills the index; a life told twice is taken once: the first one's index goes to `order`. */
static int index_lives(struct nt_model *model)
{
    int error = nt_model_index_init(&model->lives, model->object_count);
    if (error != 0)
        return error;
    model->order_count = 0;
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct nt_source_object *told = &model->objects[i].told;
        uint32_t *cell = life_cell(model, told->program, told->slot, told->generation);
        if (*cell != NT_MODEL_NONE)
            continue;
        *cell = i;
        model->order[model->order_count++] = i;
    }
    return 0;
}

static void resolve(struct nt_model *model, uint32_t index)
{
    struct nt_model_object *object = &model->objects[index];
    const struct nt_source_object *told = &object->told;
    object->parent = NT_MODEL_NONE;
    if (told->parent_generation != 0) {
        object->parent = nt_model_find(model, told->program, told->parent, told->parent_generation);
        if (object->parent == index)
            object->parent = NT_MODEL_NONE;
        object->adrift = object->parent == NT_MODEL_NONE;
    }
    if (told->previous_generation != 0) {
        object->previous = nt_model_find(model, told->program, told->previous, told->previous_generation);
        if (object->previous == index)
            object->previous = NT_MODEL_NONE;
        if (object->previous != NT_MODEL_NONE)
            model->objects[object->previous].successor = index;
    }
}

/* Cuts circles of parents. `depth` is scratch: 0 not seen, then the number of the walk that saw it. */
static void cut_circles(struct nt_model *model)
{
    for (uint32_t i = 0; i < model->order_count; i++) {
        uint32_t walk = i + 1;
        uint32_t at = model->order[i];
        while (at != NT_MODEL_NONE && model->objects[at].depth == 0) {
            struct nt_model_object *object = &model->objects[at];
            object->depth = walk;
            if (object->parent != NT_MODEL_NONE && model->objects[object->parent].depth == walk) {
                object->parent = NT_MODEL_NONE;
                object->adrift = true;
            }
            at = object->parent;
        }
    }
}

/* ---- Linking: order ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_bytes(struct nt_bytes a, struct nt_bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : compare_u64(a.size, b.size);
}

static int compare_objects(const void *left, const void *right, void *arg)
{
    const struct nt_model *model = arg;
    const struct nt_source_object *a = &model->objects[*(const uint32_t *)left].told;
    const struct nt_source_object *b = &model->objects[*(const uint32_t *)right].told;
    if (a->program != b->program)
        return compare_u64(a->program, b->program);
    if (a->opened_at != b->opened_at)
        return compare_u64(a->opened_at, b->opened_at);
    if (a->slot != b->slot)
        return compare_u64(a->slot, b->slot);
    return compare_u64(a->generation, b->generation);
}

static int compare_programs(const void *left, const void *right, void *arg)
{
    const struct nt_model *model = arg;
    uint32_t at = *(const uint32_t *)left, bt = *(const uint32_t *)right;
    const struct nt_source_program *a = &model->programs[at].told, *b = &model->programs[bt].told;
    int order = compare_bytes(a->node, b->node);
    order = order != 0 ? order : compare_bytes(a->name, b->name);
    order = order != 0 ? order : compare_u64(a->started, b->started);
    order = order != 0 ? order : compare_u64(a->pid, b->pid);
    return order != 0 ? order : compare_u64(at, bt);
}

static void sort_objects(struct nt_model *model)
{
    bool sorted = true; /* as they mostly come */
    for (uint32_t i = 1; i < model->order_count && sorted; i++)
        sorted = compare_objects(&model->order[i - 1], &model->order[i], model) <= 0;
    if (!sorted)
        qsort_r(model->order, model->order_count, sizeof *model->order, compare_objects, model);
}

/* The object that stands for each program: the first of its kind without a parent. */
static void find_roots(struct nt_model *model)
{
    for (uint32_t i = model->order_count; i > 0; i--) {
        uint32_t index = model->order[i - 1];
        const struct nt_source_object *told = &model->objects[index].told;
        if (told->kind == NT_MODEL_OBJECT_PROCESS && told->parent_generation == 0)
            model->programs[told->program].root = index;
    }
}

/* Lists of children, in the order of `order` but a program's own object first; after it `order` may be written
   anew. */
static void list_children(struct nt_model *model)
{
    for (uint32_t i = model->order_count; i > 0; i--) {
        uint32_t index = model->order[i - 1];
        struct nt_model_object *object = &model->objects[index];
        struct nt_model_program *program = &model->programs[object->told.program];
        uint32_t *head = object->parent != NT_MODEL_NONE ? &model->objects[object->parent].first : &program->first;
        if (index == program->root)
            continue;
        object->next = *head;
        *head = index;
    }
    for (uint32_t i = 0; i < model->program_count; i++) {
        struct nt_model_program *program = &model->programs[i];
        if (program->root == NT_MODEL_NONE)
            continue;
        model->objects[program->root].next = program->first;
        program->first = program->root;
    }
}

/* Writes the objects of one program to `order`, each before what is below it. */
static void order_program(struct nt_model *model, struct nt_model_program *program)
{
    uint32_t at = program->first, depth = 0;
    program->order_first = model->order_count;
    while (at != NT_MODEL_NONE) {
        struct nt_model_object *object = &model->objects[at];
        object->depth = depth;
        object->past = object->told.closed;
        model->order[model->order_count++] = at;
        if (object->first != NT_MODEL_NONE) {
            at = object->first;
            depth++;
            continue;
        }
        while (object->next == NT_MODEL_NONE && object->parent != NT_MODEL_NONE) {
            object = &model->objects[object->parent];
            depth--;
        }
        at = object->next;
    }
    program->order_count = model->order_count - program->order_first;
}

/* What has anything open below it is not past. */
static void mark_past(struct nt_model *model)
{
    for (uint32_t i = model->order_count; i > 0; i--) {
        const struct nt_model_object *object = &model->objects[model->order[i - 1]];
        if (!object->past && object->parent != NT_MODEL_NONE)
            model->objects[object->parent].past = false;
    }
}

static int link_nodes(struct nt_model *model)
{
    model->programs_order = calloc(model->program_count + 1, sizeof *model->programs_order);
    model->nodes = calloc(model->program_count + 1, sizeof *model->nodes);
    if (!model->programs_order || !model->nodes)
        return -ENOMEM;
    for (uint32_t i = 0; i < model->program_count; i++)
        model->programs_order[i] = i;
    qsort_r(model->programs_order, model->program_count, sizeof *model->programs_order, compare_programs, model);
    const struct nt_model_program *before = NULL;
    for (uint32_t i = 0; i < model->program_count; i++) {
        struct nt_model_program *program = &model->programs[model->programs_order[i]];
        if (!before || compare_bytes(before->told.node, program->told.node) != 0) {
            model->nodes[model->node_count++] = (struct nt_model_node){ .name = program->told.node,
                                                                        .programs_first = i };
        } else if (compare_bytes(before->told.name, program->told.name) == 0) {
            program->namesake = true;
            model->programs[model->programs_order[i - 1]].namesake = true;
        }
        model->nodes[model->node_count - 1].programs_count++;
        program->node = model->node_count - 1;
        before = program;
    }
    return 0;
}

int nt_model_link(struct nt_model *model)
{
    model->order = calloc((size_t)model->object_count + 1, sizeof *model->order);
    if (!model->order)
        return -ENOMEM;
    int error = link_nodes(model);
    if (error == 0)
        error = index_lives(model);
    if (error != 0)
        return error;
    for (uint32_t i = 0; i < model->object_count; i++) {
        struct nt_model_object *object = &model->objects[i];
        object->parent = object->first = object->next = NT_MODEL_NONE;
        object->previous = object->successor = NT_MODEL_NONE;
    }
    for (uint32_t i = 0; i < model->order_count; i++)
        resolve(model, model->order[i]);
    cut_circles(model);
    sort_objects(model);
    find_roots(model);
    list_children(model);
    model->order_count = 0;
    for (uint32_t i = 0; i < model->program_count; i++)
        order_program(model, &model->programs[model->programs_order[i]]);
    mark_past(model);
    return 0;
}

/* ---- Reading ---- */

bool nt_model_alive(const struct nt_model_program *program)
{
    return program->told.state == NT_PROGRAM_RUNNING || program->told.state == NT_PROGRAM_STOPPED ||
           program->told.state == NT_PROGRAM_UNKNOWN;
}

const struct nt_source_tally *nt_model_sum(const struct nt_source_tally *sums, size_t count, unsigned kind)
{
    for (size_t i = 0; i < count; i++) {
        if (sums[i].kind == kind)
            return &sums[i];
    }
    return NULL;
}

struct nt_source_tally nt_model_lineage(const struct nt_model_object *object, unsigned kind)
{
    struct nt_source_tally sum = { .kind = (uint16_t)kind };
    const struct nt_source_tally *own = nt_model_sum(object->told.tallies, object->told.tally_count, kind);
    const struct nt_source_tally *before[2] = {
        nt_model_sum(object->told.lineage, object->told.lineage_count, kind),
        nt_model_sum(object->told.base, object->told.base_count, kind),
    };
    if (own)
        sum = *own;
    for (int i = 0; i < 2; i++) {
        if (before[i]) {
            sum.count += before[i]->count;
            sum.total += before[i]->total;
        }
    }
    return sum;
}

static struct nt_bytes kind_number(unsigned kind, char room[NT_MODEL_KIND_ROOM])
{
    int size = snprintf(room, NT_MODEL_KIND_ROOM, "kind-%u", kind);
    return (struct nt_bytes){ room, (size_t)size };
}

struct nt_bytes nt_model_kind(const struct nt_model_program *program, unsigned kind, char room[NT_MODEL_KIND_ROOM])
{
    const char *name = nt_model_kind_name(kind);
    if (name)
        return (struct nt_bytes){ name, strlen(name) };
    if (program->kinds && kind < KINDS && program->kinds[kind].size > 0)
        return program->kinds[kind];
    return kind_number(kind, room);
}

struct nt_bytes nt_model_object_kind(const struct nt_model_object *object, char room[NT_MODEL_KIND_ROOM])
{
    const char *name = nt_model_object_kind_name(object->told.kind);
    if (name)
        return (struct nt_bytes){ name, strlen(name) };
    return kind_number(object->told.kind, room);
}

void nt_model_name_append(struct nt_buffer *buffer, const struct nt_model_object *object)
{
    if (object->told.name.size > 0)
        nt_text_append(buffer, object->told.name.data, object->told.name.size);
    else
        nt_buffer_print(buffer, "#%u.%u", object->told.slot, object->told.generation);
}
