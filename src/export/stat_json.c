/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics tree as one JSON value. Objects nest to a bounded depth, as readers of JSON bound theirs; what
   is deeper follows its parent as a sibling and names it. */
#include <limits.h>
#include <string.h>

#include <nt/log_layout.h>

#include "export/parts.h"
#include "model/histogram.h"
#include "model/kinds.h"

#define DEPTH 100u
#define MASK_KINDS NT_LAYOUT_MASK_KINDS

struct writer {
    struct nt_json json;
    const struct nt_export_input *input;
    struct nt_buffer mask_text; /* of the mask written last: they are mostly alike */
    uint64_t mask;
    uint32_t unclosed; /* objects whose list of objects is open */
};

static uint64_t object_id(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

static void u64_member(struct nt_json *json, const char *key, uint64_t number)
{
    nt_json_key(json, key);
    nt_json_u64(json, number);
}

#define APPEND(out, literal) nt_buffer_append(out, literal, sizeof(literal) - 1)

static void write_bounds(struct nt_json *json, const char *key, const struct nt_source_bucket *bucket)
{
    nt_json_key(json, key);
    nt_json_object(json);
    u64_member(json, "low", bucket->low);
    u64_member(json, "high", bucket->high);
    nt_json_object_end(json);
}

/* Quantiles are told by the bucket that they lie in: no more is known. */
static void write_histogram(struct nt_json *json, const struct nt_source_histogram *histogram)
{
    nt_json_key(json, "histogram");
    nt_json_object(json);
    write_bounds(json, "p50", nt_model_quantile(histogram, 500));
    write_bounds(json, "p90", nt_model_quantile(histogram, 900));
    write_bounds(json, "p99", nt_model_quantile(histogram, 990));
    nt_json_key(json, "buckets");
    nt_json_array(json);
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        const struct nt_source_bucket *bucket = &histogram->buckets[i];
        nt_json_object(json);
        u64_member(json, "low", bucket->low);
        u64_member(json, "high", bucket->high);
        u64_member(json, "count", bucket->count);
        nt_json_object_end(json);
    }
    nt_json_array_end(json);
    nt_json_object_end(json);
}

/* `full`: with maximum and time, else only what sums have. Most of the output is this: it is put together here. */
static void write_sum(struct nt_json *json, const struct nt_source_tally *sum, bool full,
                      const struct nt_source_histogram *histogram)
{
    struct nt_buffer *out = json->out;
    APPEND(out, "{\"count\":");
    nt_buffer_u64(out, sum->count);
    APPEND(out, ",\"total\":");
    nt_buffer_u64(out, sum->total);
    if (full) {
        APPEND(out, ",\"max\":");
        nt_buffer_u64(out, sum->max);
    }
    APPEND(out, ",\"mean\":");
    if (sum->count > 0)
        nt_buffer_ratio(out, sum->total, sum->count, 6, true);
    else
        APPEND(out, "null");
    if (full) {
        APPEND(out, ",\"last\":");
        nt_buffer_u64(out, sum->last);
    }
    json->comma = true;
    if (histogram)
        write_histogram(json, histogram);
    APPEND(out, "}");
    json->comma = true;
}

static void kind_key(struct writer *writer, uint32_t index, unsigned kind)
{
    const struct nt_model *model = writer->input->model;
    char room[NT_MODEL_KIND_ROOM];
    const char *built_in = nt_model_kind_name(kind);
    if (built_in) {
        nt_json_key(&writer->json, built_in);
        return;
    }
    struct nt_bytes name = nt_model_kind(nt_model_program_of(model, &model->objects[index]), kind, room);
    nt_json_key_bytes(&writer->json, name.data, name.size);
}

static void write_sums(struct writer *writer, const char *key, uint32_t index, const struct nt_source_tally *sums,
                       size_t count)
{
    struct nt_json *json = &writer->json;
    bool full = strcmp(key, "base") != 0, own = strcmp(key, "tallies") == 0;
    const struct nt_source_object *told = &writer->input->model->objects[index].told;
    nt_json_key(json, key);
    nt_json_object(json);
    for (size_t i = 0; i < count; i++) {
        if (!nt_model_selected(writer->input->selection, index, sums[i].kind))
            continue;
        kind_key(writer, index, sums[i].kind);
        write_sum(json, &sums[i], full, own ? nt_model_histogram(told, sums[i].kind) : NULL);
    }
    nt_json_object_end(json);
}

struct cursor {
    const struct nt_source_tally *sums;
    size_t left;
};

/* The next kind that any of the lists has, behind `after`; UINT_MAX: none. */
static unsigned next_kind(struct cursor *cursors, size_t count, unsigned after)
{
    unsigned next = UINT_MAX;
    for (size_t i = 0; i < count; i++) {
        for (; cursors[i].left > 0 && cursors[i].sums->kind <= after; cursors[i].left--)
            cursors[i].sums++;
        if (cursors[i].left > 0 && cursors[i].sums->kind < next)
            next = cursors[i].sums->kind;
    }
    return next;
}

/* Own sums, those of all predecessors, and what was counted before; nothing if there were no predecessors. */
static void write_lineage(struct writer *writer, uint32_t index)
{
    const struct nt_model_object *object = &writer->input->model->objects[index];
    const struct nt_source_object *told = &object->told;
    struct nt_json *json = &writer->json;
    if (told->lineage_count == 0)
        return;
    nt_json_key(json, "lineage");
    nt_json_object(json);
    struct cursor lists[] = { { told->tallies, told->tally_count },
                              { told->lineage, told->lineage_count },
                              { told->base, told->base_count } };
    for (unsigned kind = 0; (kind = next_kind(lists, 3, kind)) != UINT_MAX;) {
        if (!nt_model_selected(writer->input->selection, index, kind))
            continue;
        struct nt_source_tally sum = nt_model_lineage(object, kind);
        kind_key(writer, index, kind);
        write_sum(json, &sum, false, NULL);
    }
    nt_json_object_end(json);
}

static void write_mask(struct writer *writer, uint64_t mask)
{
    if (writer->mask_text.size == 0 || writer->mask != mask) {
        struct nt_json json = { .out = &writer->mask_text };
        nt_buffer_clear(&writer->mask_text);
        writer->mask = mask;
        nt_json_array(&json);
        for (unsigned kind = 0; kind + 1 < MASK_KINDS; kind++) {
            if ((mask >> kind & 1) && nt_model_kind_name(kind))
                nt_json_word(&json, nt_model_kind_name(kind));
        }
        if (mask >> (MASK_KINDS - 1) & 1)
            nt_json_word(&json, "user");
        nt_json_array_end(&json);
        (void)nt_buffer_fail(writer->json.out, writer->mask_text.error);
    }
    nt_json_key(&writer->json, "mask");
    nt_json_raw(&writer->json, writer->mask_text.data, writer->mask_text.size);
}

static void flag(struct nt_json *json, const char *key, bool value)
{
    if (!value)
        return;
    nt_json_key(json, key);
    nt_json_bool(json, true);
}

static void write_name(struct nt_json *json, const char *key, struct nt_bytes name)
{
    if (name.size == 0)
        return;
    nt_json_key(json, key);
    nt_json_string(json, name.data, name.size);
}

static void write_hex(struct nt_json *json, const char *key, struct nt_bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    nt_json_key(json, key);
    nt_buffer_byte(json->out, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];
        const char pair[2] = { digits[byte >> 4], digits[byte & 15] };
        nt_buffer_append(json->out, pair, 2);
    }
    nt_buffer_byte(json->out, '"');
    json->comma = true;
}

static void word_member(struct nt_json *json, const char *key, const char *word)
{
    if (!word)
        return;
    nt_json_key(json, key);
    nt_json_word(json, word);
}

static void write_links(struct nt_json *json, const struct nt_source_rare *rare)
{
    static const char *const directions[] = { NULL, "write", "read", "both" };
    if (rare->link_count == 0)
        return;
    nt_json_key(json, "links");
    nt_json_array(json);
    for (size_t i = 0; i < rare->link_count; i++) {
        const struct nt_source_link *link = &rare->links[i];
        nt_json_object(json);
        word_member(json, "direction", directions[link->direction & 3]);
        word_member(json, "pairing", nt_model_pairing_name(link->pairing));
        word_member(json, "type", nt_model_link_type_name(link->key.size > 0 ? (unsigned char)link->key.data[0] : 0));
        write_hex(json, "key", link->key);
        nt_json_object_end(json);
    }
    nt_json_array_end(json);
}

/* What is said of some objects only. */
static void write_rare(struct writer *writer, uint32_t index)
{
    const struct nt_model_object *object = &writer->input->model->objects[index];
    const struct nt_source_object *told = &object->told;
    struct nt_json *json = &writer->json;
    if (told->closed)
        u64_member(json, "closed_at", told->closed_at);
    if (told->previous_generation != 0) {
        nt_json_key(json, "previous");
        nt_json_id(json, object_id(told->previous, told->previous_generation));
    }
    if (object->adrift || object->depth >= DEPTH) {
        nt_json_key(json, "parent");
        nt_json_id(json, object_id(told->parent, told->parent_generation));
    }
    if (told->rare) {
        write_name(json, "remote_node", told->rare->remote_node);
        write_name(json, "remote_process", told->rare->remote_process);
        write_links(json, told->rare);
    }
    flag(json, "forked", told->described & NT_DESCRIBED_FORKED);
    flag(json, "late", told->described & NT_DESCRIBED_LATE);
    flag(json, "undescribed", told->described & NT_DESCRIBED_UNKNOWN);
    if (told->base_count > 0)
        write_sums(writer, "base", index, told->base, told->base_count);
    write_lineage(writer, index);
}

static const char *object_state(const struct nt_model_object *object)
{
    if (object->successor != NT_MODEL_NONE)
        return "superseded";
    return object->told.closed ? "closed" : "open";
}

/* The object up to the start of its list of objects. */
static void open_object(struct writer *writer, uint32_t index)
{
    const struct nt_model_object *object = &writer->input->model->objects[index];
    const struct nt_source_object *told = &object->told;
    struct nt_json *json = &writer->json;
    char room[NT_MODEL_KIND_ROOM];
    struct nt_bytes kind = nt_model_object_kind(object, room);
    nt_json_line(json);
    nt_json_object(json);
    nt_json_key(json, "id");
    nt_json_id(json, object_id(told->slot, told->generation));
    nt_json_key(json, "kind");
    nt_json_string(json, kind.data, kind.size);
    nt_json_key(json, "name");
    nt_json_string(json, told->name.data, told->name.size);
    nt_json_key(json, "state");
    nt_json_word(json, object_state(object));
    nt_json_key(json, "session");
    nt_json_id(json, told->session);
    write_mask(writer, told->mask);
    u64_member(json, "epoch", told->epoch);
    nt_json_key(json, "discipline");
    nt_json_word(json, told->discipline == 0 ? "exclusive" : "shared");
    u64_member(json, "opened_at", told->opened_at);
    flag(json, "ancestor", nt_export_picked(writer->input, index) == NT_MODEL_PICKED_ABOVE);
    write_rare(writer, index);
    write_sums(writer, "tallies", index, told->tallies, told->tally_count);
    write_sums(writer, "closed", index, told->gone, told->gone_count);
    nt_json_key(json, "objects");
    nt_json_array(json);
    writer->unclosed++;
}

static void close_objects(struct writer *writer, uint32_t down_to)
{
    for (; writer->unclosed > down_to; writer->unclosed--) {
        nt_json_array_end(&writer->json);
        nt_json_object_end(&writer->json);
    }
}

static void write_program(struct writer *writer, const struct nt_model_program *program)
{
    const struct nt_model *model = writer->input->model;
    struct nt_json *json = &writer->json;
    nt_json_line(json);
    nt_json_object(json);
    nt_export_json_program(json, program);
    nt_json_key(json, "objects");
    nt_json_array(json);
    for (uint32_t i = 0; i < program->order_count; i++) {
        uint32_t index = model->order[program->order_first + i];
        uint32_t depth = model->objects[index].depth;
        if (nt_export_picked(writer->input, index) == NT_MODEL_PICKED_NOT)
            continue;
        close_objects(writer, depth < DEPTH ? depth : DEPTH - 1);
        open_object(writer, index);
    }
    close_objects(writer, 0);
    nt_json_array_end(json);
    nt_json_object_end(json);
}

static void write_node(struct writer *writer, uint32_t index)
{
    const struct nt_model *model = writer->input->model;
    const struct nt_model_node *node = &model->nodes[index];
    struct nt_json *json = &writer->json;
    nt_json_line(json);
    nt_json_object(json);
    nt_json_key(json, "name");
    nt_json_string(json, node->name.data, node->name.size);
    nt_json_key(json, "processes");
    nt_json_array(json);
    for (uint32_t i = 0; i < node->programs_count; i++) {
        uint32_t program = model->programs_order[node->programs_first + i];
        if (nt_export_has_program(writer->input, program))
            write_program(writer, &model->programs[program]);
    }
    nt_json_array_end(json);
    nt_json_object_end(json);
}

void nt_export_json_stat(const struct nt_export_input *input, struct nt_buffer *out)
{
    struct writer writer = { .json = { .out = out }, .input = input };
    struct nt_json *json = &writer.json;
    nt_json_object(json);
    nt_json_key(json, "nodes");
    nt_json_array(json);
    for (uint32_t i = 0; i < input->model->node_count; i++) {
        if (!input->selection || input->selection->nodes[i] != NT_MODEL_PICKED_NOT)
            write_node(&writer, i);
    }
    nt_json_array_end(json);
    nt_export_json_session_tree(json, input->model, !input->selection);
    nt_json_object_end(json);
    nt_buffer_byte(out, '\n');
    nt_buffer_fini(&writer.mask_text);
}
