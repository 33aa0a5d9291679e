/* SPDX-License-Identifier: BSD-3-Clause */
/* The grammar of paths and how one component matches, see path.h. A path is matched against the tree as a set of
   positions in it, one bit each, carried from parent to child: each object is looked at once. */
#include "model/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/error.h>

#include "base/parse.h"
#include "base/text.h"
#include "model/path_match.h"

enum { TOKEN_ANY_BYTES = 256, TOKEN_ANY_CHARACTER = 257 };

struct component {
    uint16_t *tokens; /* bytes or TOKEN_… */
    size_t size;
    bool any_depth;
    bool literal;              /* no TOKEN_… and nothing escaped: may be a field's name */
    uint32_t slot, generation; /* generation 0: not an id */
};

struct nt_model_path {
    struct component components[NT_MODEL_PATH_COMPONENTS + 1]; /* the first is always `**` */
    size_t count;
    bool from_node;            /* began with a slash */
    enum nt_model_field field; /* that the last component names */
    uint64_t near_end;         /* positions from which one component may lead to the end, or to the field */
    uint16_t tokens[];
};

static const char *const field_names[] = {
    [NT_MODEL_FIELD_COUNT] = "count",
    [NT_MODEL_FIELD_TOTAL] = "total",
    [NT_MODEL_FIELD_MAX] = "max",
    [NT_MODEL_FIELD_MEAN] = "mean",
    [NT_MODEL_FIELD_LAST] = "last",
    [NT_MODEL_FIELD_LINEAGE_COUNT] = "lineage_count",
    [NT_MODEL_FIELD_LINEAGE_TOTAL] = "lineage_total",
    [NT_MODEL_FIELD_BASE_COUNT] = "base_count",
    [NT_MODEL_FIELD_BASE_TOTAL] = "base_total",
    [NT_MODEL_FIELD_CLOSED_COUNT] = "closed_count",
    [NT_MODEL_FIELD_CLOSED_TOTAL] = "closed_total",
};

/* ---- Parsing ---- */

/* One escape at text[at] == '\\'. Returns how many bytes it takes, 0 if it is none. */
static size_t parse_escape(const char *text, size_t size, size_t at, uint16_t *ret_token)
{
    if (at + 1 >= size)
        return 0;
    if (text[at + 1] != 'x') {
        *ret_token = (unsigned char)text[at + 1];
        return 2;
    }
    int high = at + 2 < size ? nt_parse_hex_digit(text[at + 2]) : -1;
    int low = at + 3 < size ? nt_parse_hex_digit(text[at + 3]) : -1;
    if (high < 0 || low < 0)
        return 0;
    *ret_token = (uint16_t)(high * 16 + low);
    return 4;
}

/* #SLOT.GENERATION */
static void parse_id(const char *text, size_t size, struct component *component)
{
    const char *dot = size > 0 && text[0] == '#' ? memchr(text, '.', size) : NULL;
    if (!dot)
        return;
    size_t before = (size_t)(dot - text);
    uint32_t slot, generation;
    if (nt_parse_u32(text + 1, before - 1, &slot) != 0 || nt_parse_u32(dot + 1, size - before - 1, &generation) != 0)
        return;
    component->slot = slot;
    component->generation = generation;
}

/* The component that begins at *at; leaves *at behind it. */
static const char *parse_component(const char *text, size_t size, size_t *at, struct component *component)
{
    size_t from = *at;
    component->literal = true;
    for (; *at < size && text[*at] != '/'; component->size++) {
        uint16_t token = (unsigned char)text[*at];
        size_t length = 1;
        if (token == '\\') {
            length = parse_escape(text, size, *at, &token);
            if (length == 0)
                return "a backslash escapes nothing";
            component->literal = false;
        } else if (token == '*' || token == '?') {
            token = token == '*' ? TOKEN_ANY_BYTES : TOKEN_ANY_CHARACTER;
            component->literal = false;
        }
        component->tokens[component->size] = token;
        *at += length;
    }
    if (*at == from)
        return "a component is empty";
    component->any_depth = *at - from == 2 && text[from] == '*' && text[from + 1] == '*';
    parse_id(text + from, *at - from, component);
    return NULL;
}

static const char *parse_components(struct nt_model_path *path, const char *text, size_t size)
{
    size_t at = 0;
    uint16_t *room = path->tokens;
    if (size > 0 && text[0] == '/') {
        path->from_node = true;
        at = 1;
    }
    if (at == size)
        return "it is empty";
    path->components[0].any_depth = true;
    path->count = 1;
    while (at < size) {
        if (path->count > NT_MODEL_PATH_COMPONENTS)
            return "it has more than 62 components";
        struct component *component = &path->components[path->count++];
        component->tokens = room;
        const char *reason = parse_component(text, size, &at, component);
        if (reason)
            return reason;
        room += component->size;
        at++; /* the slash; one at the end says nothing */
    }
    return NULL;
}

static enum nt_model_field find_field(const struct component *component)
{
    for (unsigned field = 1; component->literal && field < sizeof field_names / sizeof *field_names; field++) {
        size_t i = 0;
        while (i < component->size && field_names[field][i] &&
               component->tokens[i] == (unsigned char)field_names[field][i])
            i++;
        if (i == component->size && field_names[field][i] == '\0')
            return (enum nt_model_field)field;
    }
    return NT_MODEL_FIELD_NONE;
}

/* ---- Matching one component ---- */

/* Bytes that one token takes at the start of text, 0: it does not match. */
static size_t match_token(uint16_t token, const char *text, size_t size)
{
    uint32_t point;
    if (size == 0)
        return 0;
    if (token != TOKEN_ANY_CHARACTER)
        return token == (unsigned char)text[0];
    size_t length = nt_text_decode(text, size, &point);
    return length > 0 ? length : 1;
}

static bool match_tokens(const struct component *component, const char *text, size_t size)
{
    size_t token = 0, at = 0;
    size_t star = SIZE_MAX, star_at = 0; /* where the last * stands, and what it has taken up to */
    while (at < size || token < component->size) {
        if (token < component->size && component->tokens[token] == TOKEN_ANY_BYTES) {
            star = token++;
            star_at = at;
            continue;
        }
        size_t length = token < component->size ? match_token(component->tokens[token], text + at, size - at) : 0;
        if (length > 0) {
            token++;
            at += length;
            continue;
        }
        if (star == SIZE_MAX || star_at >= size)
            return false;
        token = star + 1;
        at = ++star_at;
    }
    return true;
}

static bool match_names(const struct component *component, const struct nt_model_names *names)
{
    if (component->generation != 0 && names->generation == component->generation && names->slot == component->slot)
        return true;
    for (size_t i = 0; i < names->count; i++) {
        if (match_tokens(component, names->names[i].data, names->names[i].size))
            return true;
    }
    return false;
}

/* ---- Sets of positions ---- */

/* `**` may stand for nothing. */
static uint64_t pass_any_depth(const struct nt_model_path *path, uint64_t positions)
{
    for (size_t i = 0; i < path->count; i++) {
        if ((positions >> i & 1) && path->components[i].any_depth)
            positions |= UINT64_C(2) << i;
    }
    return positions;
}

uint64_t nt_model_path_start(const struct nt_model_path *path, bool anywhere)
{
    return pass_any_depth(path, anywhere ? 1 : 2);
}

uint64_t nt_model_path_step(const struct nt_model_path *path, uint64_t positions, const struct nt_model_names *names)
{
    uint64_t next = 0;
    for (size_t i = 0; i < path->count && positions >> i; i++) {
        if (!(positions >> i & 1))
            continue;
        if (path->components[i].any_depth)
            next |= UINT64_C(1) << i;
        else if (match_names(&path->components[i], names))
            next |= UINT64_C(2) << i;
    }
    return pass_any_depth(path, next);
}

uint64_t nt_model_path_near_end(const struct nt_model_path *path, uint64_t positions)
{
    return positions & path->near_end;
}

bool nt_model_path_reached(const struct nt_model_path *path, uint64_t positions)
{
    return positions >> path->count & 1;
}

bool nt_model_path_at_field(const struct nt_model_path *path, uint64_t positions)
{
    return path->field != NT_MODEL_FIELD_NONE && (positions >> (path->count - 1) & 1);
}

enum nt_model_field nt_model_path_field(const struct nt_model_path *path)
{
    return path->field;
}

bool nt_model_path_from_node(const struct nt_model_path *path)
{
    return path->from_node;
}

/* ---- Making one ---- */

static uint64_t find_near_end(const struct nt_model_path *path)
{
    uint64_t near_end = 0;
    for (size_t i = 0; i < path->count; i++) {
        uint64_t from = pass_any_depth(path, UINT64_C(1) << i), to = 0;
        for (size_t j = i; j < path->count; j++) {
            if (from >> j & 1)
                to |= (path->components[j].any_depth ? UINT64_C(1) : UINT64_C(2)) << j;
        }
        to = pass_any_depth(path, to);
        if (nt_model_path_reached(path, to) || nt_model_path_at_field(path, to))
            near_end |= UINT64_C(1) << i;
    }
    return near_end;
}

int nt_model_path_new(const char *text, size_t size, struct nt_model_path **ret_path, const char **ret_reason)
{
    if (size > NT_MODEL_PATH_BYTES) {
        *ret_reason = "it is longer than 16384 bytes";
        return -NT_ESYNTAX;
    }
    struct nt_model_path *path = calloc(1, sizeof *path + size * sizeof *path->tokens);
    if (!path)
        return -ENOMEM;
    const char *reason = parse_components(path, text, size);
    if (reason) {
        nt_model_path_free(path);
        *ret_reason = reason;
        return -NT_ESYNTAX;
    }
    if (path->count > 2)
        path->field = find_field(&path->components[path->count - 1]);
    path->near_end = find_near_end(path);
    *ret_path = path;
    return 0;
}

void nt_model_path_free(struct nt_model_path *take_path)
{
    free(take_path);
}

/* ---- Writing ---- */

void nt_model_program_append(struct nt_buffer *buffer, const struct nt_model_program *program)
{
    struct nt_bytes name = program->told.name;
    if (program->namesake || name.size == 0)
        name = program->full_name;
    nt_text_append_path(buffer, name.data, name.size);
}

static void append_component(struct nt_buffer *buffer, const struct nt_model_object *object)
{
    nt_buffer_byte(buffer, '/');
    if (object->told.name.size > 0)
        nt_text_append_path(buffer, object->told.name.data, object->told.name.size);
    else
        nt_model_name_append(buffer, object);
}

void nt_model_program_path_append(struct nt_buffer *buffer, const struct nt_model *model, uint32_t program)
{
    struct nt_bytes node = model->nodes[model->programs[program].node].name;
    if (node.size > 0)
        nt_text_append_path(buffer, node.data, node.size);
    else
        nt_buffer_byte(buffer, '*');
    nt_buffer_byte(buffer, '/');
    nt_model_program_append(buffer, &model->programs[program]);
}

void nt_model_path_append(struct nt_buffer *buffer, const struct nt_model *model, uint32_t object)
{
    uint32_t chain[48]; /* from the object up */
    size_t length = 0;
    const struct nt_model_program *program = nt_model_program_of(model, &model->objects[object]);
    uint32_t at = object;
    while (at != NT_MODEL_NONE && at != program->root && length < sizeof chain / sizeof *chain) {
        chain[length++] = at;
        at = model->objects[at].parent;
    }
    nt_model_program_path_append(buffer, model, model->objects[object].told.program);
    if (at != NT_MODEL_NONE && at != program->root)
        nt_buffer_text(buffer, "/**");
    while (length > 0)
        append_component(buffer, &model->objects[chain[--length]]);
}

void nt_model_pick_append(struct nt_buffer *buffer, const struct nt_model *model, const struct nt_model_pick *pick)
{
    char room[NT_MODEL_KIND_ROOM];
    nt_model_path_append(buffer, model, pick->object);
    struct nt_bytes kind = nt_model_kind(nt_model_program_of(model, &model->objects[pick->object]), pick->kind, room);
    nt_buffer_byte(buffer, '/');
    nt_text_append_path(buffer, kind.data, kind.size);
    nt_buffer_byte(buffer, '/');
    nt_buffer_text(buffer, field_names[pick->field]);
}
