/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions as JSON: flat or as trees, which nest to a bounded depth, as readers of JSON bound theirs; what is deeper
   follows its parent as a sibling, and names it as all do. */
#include "export/session.h"
#include "model/path.h"

#define DEPTH 100u

struct writer {
    struct nt_json json;
    const struct nt_model *model;
    const struct nt_export_sessions *input; /* NULL: the tree alone */
};

static void u64_member(struct nt_json *json, const char *key, uint64_t number)
{
    nt_json_key(json, key);
    nt_json_u64(json, number);
}

static void time_member(struct nt_json *json, const char *key, uint64_t time)
{
    if (time != 0)
        u64_member(json, key, time);
}

static void bytes_member(struct nt_json *json, const char *key, struct nt_bytes bytes)
{
    nt_json_key(json, key);
    nt_json_string(json, bytes.data, bytes.size);
}

static void id_member(struct nt_json *json, const char *key, uint64_t id)
{
    nt_json_key(json, key);
    nt_json_id(json, id);
}

static void bool_member(struct nt_json *json, const char *key, bool value)
{
    nt_json_key(json, key);
    nt_json_bool(json, value);
}

static void bound_members(struct nt_json *json, enum nt_model_bound bound)
{
    bool_member(json, "exact", bound == NT_MODEL_EXACT);
    if (bound != NT_MODEL_EXACT) {
        nt_json_key(json, "bound");
        nt_json_word(json, nt_export_bound(bound));
    }
}

/* ---- Sums ---- */

static void sum_members(struct nt_json *json, uint64_t count, uint64_t total)
{
    u64_member(json, "count", count);
    u64_member(json, "total", total);
}

static void write_sums(struct writer *writer, enum nt_model_bound bound, const struct nt_model_sum *sums, size_t count)
{
    struct nt_json *json = &writer->json;
    bound_members(json, bound);
    nt_json_key(json, "kinds");
    nt_json_object(json);
    for (size_t i = 0; i < count; i++) {
        struct nt_bytes kind = nt_model_session_kind(writer->model, sums[i].kind);
        nt_json_key_bytes(json, kind.data, kind.size);
        nt_json_object(json);
        sum_members(json, sums[i].count, sums[i].total);
        nt_json_object_end(json);
    }
    nt_json_object_end(json);
}

static void write_share(struct writer *writer, const struct nt_model_share *share)
{
    const struct nt_model_program *program = &writer->model->programs[share->program];
    struct nt_json *json = &writer->json;
    char room[NT_MODEL_KIND_ROOM];
    nt_json_object(json);
    id_member(json, "id", program->told.id);
    bytes_member(json, "node", writer->model->nodes[program->node].name);
    bytes_member(json, "name", program->told.name);
    u64_member(json, "pid", program->told.pid);
    bool_member(json, "made", share->made);
    bound_members(json, share->bound);
    nt_json_key(json, "kinds");
    nt_json_object(json);
    for (size_t i = 0; i < share->sum_count; i++) {
        struct nt_bytes kind = nt_model_kind(program, share->sums[i].kind, room);
        nt_json_key_bytes(json, kind.data, kind.size);
        nt_json_object(json);
        sum_members(json, share->sums[i].count, share->sums[i].total);
        nt_json_object_end(json);
    }
    nt_json_object_end(json);
    nt_json_object_end(json);
}

static void write_shares(struct writer *writer, const struct nt_model_session *session)
{
    const struct nt_model_sessions *sessions = writer->model->sessions;
    nt_json_key(&writer->json, "processes");
    nt_json_array(&writer->json);
    for (uint32_t at = session->shares; at != NT_MODEL_NONE; at = sessions->shares[at].next)
        write_share(writer, &sessions->shares[at]);
    nt_json_array_end(&writer->json);
}

static void write_run(struct writer *writer, const struct nt_run_sum *run)
{
    const struct nt_model_program *program = &writer->model->programs[run->program];
    struct nt_json *json = &writer->json;
    struct nt_buffer path = { 0 };
    char room[NT_MODEL_KIND_ROOM];
    nt_json_line(json);
    nt_json_object(json);
    id_member(json, "process", program->told.id);
    id_member(json, "object", (uint64_t)run->generation << 32 | run->slot);
    if (run->object != NT_MODEL_NONE) {
        nt_model_path_append(&path, writer->model, run->object);
        bytes_member(json, "path", (struct nt_bytes){ path.data, path.size });
    }
    bytes_member(json, "kind", nt_model_kind(program, run->kind, room));
    bound_members(json, run->exact ? NT_MODEL_EXACT : NT_MODEL_LEAST);
    sum_members(json, run->count, run->total);
    nt_json_object_end(json);
    (void)nt_buffer_fail(json->out, path.error);
    nt_buffer_fini(&path);
}

static void write_runs(struct writer *writer, const struct nt_model_session *session)
{
    size_t count;
    const struct nt_run_sum *runs = nt_export_session_runs(writer->input, session->id, &count);
    nt_json_key(&writer->json, "channels");
    nt_json_array(&writer->json);
    for (size_t i = 0; i < count; i++)
        write_run(writer, &runs[i]);
    nt_json_array_end(&writer->json);
}

/* ---- Sessions ---- */

/* Up to where the sessions below it would be. */
static void open_session(struct writer *writer, const struct nt_model_session *session)
{
    const struct nt_model_session *all = writer->model->sessions->sessions;
    struct nt_json *json = &writer->json;
    nt_json_line(json);
    nt_json_object(json);
    id_member(json, "id", session->id);
    if (session->name.size > 0)
        bytes_member(json, "name", session->name);
    if (session->parent_id != 0)
        id_member(json, "parent", session->parent_id);
    id_member(json, "root", all[session->root].id);
    u64_member(json, "depth", session->depth);
    u64_member(json, "below", session->below);
    bool_member(json, "known", session->known);
    bool_member(json, "standing", session->standing);
    time_member(json, "opened_at", session->opened_at);
    time_member(json, "ended_at", session->ended_at);
    time_member(json, "first", session->first);
    time_member(json, "last", session->last);
    write_sums(writer, session->bound, session->own, session->own_count);
    nt_json_key(json, "all");
    nt_json_object(json);
    write_sums(writer, session->all_bound, session->all, session->all_count);
    nt_json_object_end(json);
    write_shares(writer, session);
    if (writer->input && writer->input->detail)
        write_runs(writer, session);
}

static void write_session(struct writer *writer, uint32_t index)
{
    open_session(writer, &writer->model->sessions->sessions[index]);
    nt_json_object_end(&writer->json);
}

static void close_sessions(struct writer *writer, uint32_t *open, uint32_t down_to)
{
    for (; *open > down_to; --*open) {
        nt_json_array_end(&writer->json);
        nt_json_object_end(&writer->json);
    }
}

/* From `at` in the model's order on, all that is below it too. Returns where it ends. */
static uint32_t write_tree(struct writer *writer, uint32_t at)
{
    const struct nt_model_sessions *sessions = writer->model->sessions;
    uint32_t top = sessions->sessions[sessions->order[at]].depth, open = 0;
    do {
        const struct nt_model_session *session = &sessions->sessions[sessions->order[at]];
        uint32_t depth = session->depth - top;
        close_sessions(writer, &open, depth < DEPTH ? depth : DEPTH - 1);
        open_session(writer, session);
        nt_json_key(&writer->json, "sessions");
        nt_json_array(&writer->json);
        open++;
        at++;
    } while (at < sessions->order_count && sessions->sessions[sessions->order[at]].depth > top);
    close_sessions(writer, &open, 0);
    return at;
}

static void write_rest(struct writer *writer)
{
    static const char *const keys[] = { "no_session", "older_sessions" };
    for (uint32_t i = NT_MODEL_SESSION_NO; i <= NT_MODEL_SESSION_OLDER; i++) {
        const struct nt_model_session *session = &writer->model->sessions->sessions[i];
        nt_json_key(&writer->json, keys[i]);
        nt_json_object(&writer->json);
        write_sums(writer, session->bound, session->own, session->own_count);
        write_shares(writer, session);
        nt_json_object_end(&writer->json);
    }
}

void nt_export_json_session_tree(struct nt_json *json, const struct nt_model *model, bool wanted)
{
    struct writer writer = { .json = *json, .model = model };
    nt_json_key(&writer.json, "sessions");
    nt_json_array(&writer.json);
    wanted = wanted && model->sessions;
    for (uint32_t at = 0; wanted && at < model->sessions->order_count;)
        at = write_tree(&writer, at);
    nt_json_array_end(&writer.json);
    if (wanted)
        write_rest(&writer);
    *json = writer.json;
}

void nt_export_json_sessions(const struct nt_export_sessions *input, struct nt_buffer *out)
{
    struct writer writer = { .json = { .out = out }, .model = input->model, .input = input };
    struct nt_json *json = &writer.json;
    nt_json_object(json);
    nt_json_key(json, "sessions");
    nt_json_array(json);
    for (size_t i = 0; i < input->count; i++) {
        if (input->tree)
            (void)write_tree(&writer, input->model->sessions->sessions[input->indexes[i]].place);
        else
            write_session(&writer, input->indexes[i]);
    }
    nt_json_array_end(json);
    if (input->rest)
        write_rest(&writer);
    nt_json_object_end(json);
    nt_buffer_byte(out, '\n');
}
