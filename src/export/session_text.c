/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions as text for people: a list or a tree with their traffic, or one after the other with all that is known. What
   is not exact says so in front of the number: >=, <=, ~. It goes over the rows twice, to measure and to write. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "export/parts.h"
#include "export/session.h"
#include "model/kinds.h"
#include "model/path.h"

#define NAME_MOST 48u
#define NAME_LEAST 16u /* of a list, also where it gets wider than: */
#define WIDE 100u
#define INDENTED 20u /* levels */

const struct nt_run_sum *nt_export_session_runs(const struct nt_export_sessions *input, uint64_t session,
                                                size_t *ret_count)
{
    size_t low = 0, high = input->run_count, end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (input->runs[middle].session < session)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < input->run_count && input->runs[end].session == session;)
        end++;
    *ret_count = end - low;
    return input->runs + low;
}

const char *nt_export_bound(enum nt_model_bound bound)
{
    static const char *const names[] = {
        [NT_MODEL_EXACT] = "exact",
        [NT_MODEL_LEAST] = "at least",
        [NT_MODEL_MOST] = "at most",
        [NT_MODEL_ABOUT] = "about",
    };
    return (unsigned)bound < sizeof names / sizeof *names ? names[bound] : "about";
}

/* ---- Tables ---- */

#define COLUMNS 9

struct table {
    struct nt_buffer *out; /* NULL: measures */
    struct nt_buffer cells[COLUMNS];
    size_t widths[COLUMNS];
    int columns;
    size_t name_most;
    uint32_t right; /* a bit a column that is aligned to the right */
};

static void table_clear(struct table *table)
{
    for (int column = 0; column < table->columns; column++)
        nt_buffer_clear(&table->cells[column]);
}

static void table_fini(struct table *table)
{
    for (int column = 0; column < COLUMNS; column++)
        nt_buffer_fini(&table->cells[column]);
}

static void cell_write(const struct table *table, int column, bool last)
{
    const struct nt_buffer *cell = &table->cells[column];
    size_t taken = nt_text_width(cell->data, cell->size);
    size_t room = table->widths[column] > taken ? table->widths[column] - taken : 0;
    bool right = table->right >> column & 1;
    nt_buffer_repeat(table->out, ' ', right ? room : 0);
    nt_buffer_append(table->out, cell->data, cell->size);
    nt_buffer_repeat(table->out, ' ', right || last ? 0 : room);
    nt_buffer_text(table->out, last ? "\n" : "  ");
}

/* The row that the cells have. */
static void table_row(struct table *table)
{
    int count = table->columns;
    while (count > 1 && table->cells[count - 1].size == 0)
        count--;
    for (int column = 0; column < table->columns; column++) {
        const struct nt_buffer *cell = &table->cells[column];
        size_t taken = nt_text_width(cell->data, cell->size);
        if (!table->out && taken > table->widths[column])
            table->widths[column] = taken;
        if (table->out && column < count)
            cell_write(table, column, column + 1 == count);
        if (table->out)
            (void)nt_buffer_fail(table->out, cell->error);
    }
    table_clear(table);
}

static void table_heads(struct table *table, const char *const *heads)
{
    for (int column = 0; column < table->columns; column++)
        nt_buffer_text(&table->cells[column], heads[column]);
    table_row(table);
}

static void number(struct nt_buffer *cell, uint64_t value, enum nt_model_bound bound)
{
    static const char *const marks[] = { "", ">= ", "<= ", "~ " };
    nt_buffer_text(cell, marks[bound]);
    nt_buffer_u64(cell, value);
}

/* ---- A list ---- */

enum { SESSION, NAME, BELOW, PROCESSES, WRITES, WRITTEN, READS, READ, LAST };

static const char *const list_heads[COLUMNS] = {
    [SESSION] = "SESSION", [NAME] = "NAME",   [BELOW] = "BELOW", [PROCESSES] = "PROCESSES", [WRITES] = "WRITES",
    [WRITTEN] = "BYTES",   [READS] = "READS", [READ] = "BYTES",  [LAST] = "LAST",
};

/* A name, cut to what fits. */
static void name_cell(struct nt_buffer *cell, struct nt_bytes name, size_t most)
{
    struct nt_buffer shown = { 0 };
    size_t size = 0, fits = 0, width = 0, length;
    uint32_t point;
    nt_text_append(&shown, name.data, name.size);
    while (size < shown.size && (length = nt_text_decode(shown.data + size, shown.size - size, &point)) > 0) {
        width += nt_text_width(shown.data + size, length);
        size += length;
        if (width < most) /* with what shows that it goes on */
            fits = size;
    }
    size = width > most ? fits : size;
    nt_buffer_append(cell, shown.data, size);
    nt_buffer_text(cell, size < shown.size ? "…" : "");
    (void)nt_buffer_fail(cell, shown.error);
    nt_buffer_fini(&shown);
}

static void traffic_cells(struct table *table, const struct nt_model_session *session, bool all)
{
    const struct nt_model_sum *sums = all ? session->all : session->own;
    size_t count = all ? session->all_count : session->own_count;
    enum nt_model_bound bound = all ? session->all_bound : session->bound;
    struct nt_model_sum written = nt_model_session_sum(sums, count, NT_MODEL_KIND_WRITE);
    struct nt_model_sum read = nt_model_session_sum(sums, count, NT_MODEL_KIND_READ);
    number(&table->cells[WRITES], written.count, bound);
    number(&table->cells[WRITTEN], written.total, bound);
    number(&table->cells[READS], read.count, bound);
    number(&table->cells[READ], read.total, bound);
}

static void list_row(struct table *table, const struct nt_export_sessions *input,
                     const struct nt_model_session *session, uint32_t level)
{
    struct nt_buffer *first = &table->cells[SESSION];
    nt_buffer_repeat(first, ' ', 2 * (level < INDENTED ? level : INDENTED));
    if (level > INDENTED)
        nt_buffer_print(first, "[%u] ", level);
    nt_buffer_hex64(first, session->id);
    name_cell(&table->cells[NAME], session->name, table->name_most);
    nt_buffer_u64(&table->cells[BELOW], session->below);
    nt_buffer_u64(&table->cells[PROCESSES], session->share_count);
    traffic_cells(table, session, input->tree);
    if (session->last != 0 && input->now > session->last)
        nt_export_age(&table->cells[LAST], input->now - session->last);
    else
        nt_buffer_text(&table->cells[LAST], session->last != 0 ? "0ms" : "-");
    table_row(table);
}

static void rest_rows(struct table *table, const struct nt_export_sessions *input)
{
    static const char *const names[] = { "(none)", "(older)" };
    for (uint32_t i = NT_MODEL_SESSION_NO; i <= NT_MODEL_SESSION_OLDER; i++) {
        const struct nt_model_session *session = &input->model->sessions->sessions[i];
        if (i == NT_MODEL_SESSION_OLDER && session->own_count == 0)
            continue;
        nt_buffer_text(&table->cells[SESSION], names[i]);
        nt_buffer_u64(&table->cells[PROCESSES], session->share_count);
        traffic_cells(table, session, false);
        table_row(table);
    }
}

static void list_rows(struct table *table, const struct nt_export_sessions *input)
{
    const struct nt_model_sessions *sessions = input->model->sessions;
    for (size_t i = 0; i < input->count; i++) {
        const struct nt_model_session *session = &sessions->sessions[input->indexes[i]];
        uint32_t end = session->place + (input->tree ? session->below : 0);
        for (uint32_t at = session->place; at <= end; at++) {
            const struct nt_model_session *one = &sessions->sessions[sessions->order[at]];
            list_row(table, input, one, one->depth - session->depth);
        }
    }
    if (input->rest)
        rest_rows(table, input);
}

/* What the other columns leave of a line. */
static void fit_names(struct table *table)
{
    size_t taken = 0;
    for (int column = 0; column < COLUMNS; column++)
        taken += column == NAME ? 0 : table->widths[column] + 2;
    table->name_most = taken + NAME_LEAST < WIDE ? WIDE - taken : NAME_LEAST;
    if (table->widths[NAME] > table->name_most)
        table->widths[NAME] = table->name_most;
}

static void write_list(const struct nt_export_sessions *input, struct nt_buffer *out)
{
    struct table table __attribute__((cleanup(table_fini))) = {
        .columns = COLUMNS,
        .name_most = NAME_MOST,
        .right = 1u << BELOW | 1u << PROCESSES | 1u << WRITES | 1u << WRITTEN | 1u << READS | 1u << READ | 1u << LAST,
    };
    table_heads(&table, list_heads);
    list_rows(&table, input);
    fit_names(&table);
    table.out = out;
    table_heads(&table, list_heads);
    list_rows(&table, input);
}

/* ---- All of one ---- */

enum { WHERE, KIND, COUNT, TOTAL, UNIT, PARTS };

static void part_row(struct table *table, struct nt_bytes kind, unsigned built_in, const struct nt_source_pair *sum,
                     enum nt_model_bound bound)
{
    const char *unit = nt_model_kind_unit(built_in);
    nt_text_append(&table->cells[KIND], kind.data, kind.size);
    number(&table->cells[COUNT], sum->count, bound);
    number(&table->cells[TOTAL], sum->total, bound);
    nt_buffer_text(&table->cells[UNIT], unit ? unit : "");
    table_row(table);
}

static void sum_rows(struct table *table, const struct nt_model *model, const struct nt_model_sum *sums, size_t count,
                     enum nt_model_bound bound)
{
    for (size_t i = 0; i < count; i++) {
        const struct nt_source_pair sum = { sums[i].count, sums[i].total };
        part_row(table, nt_model_session_kind(model, sums[i].kind), sums[i].kind, &sum, bound);
    }
    if (count == 0) {
        nt_buffer_text(&table->cells[KIND], bound == NT_MODEL_EXACT ? "nothing" : "nothing that is known");
        table_row(table);
    }
}

static void share_rows(struct table *table, const struct nt_model *model, const struct nt_model_share *share)
{
    const struct nt_model_program *program = &model->programs[share->program];
    char room[NT_MODEL_KIND_ROOM];
    for (size_t i = 0; i < share->sum_count; i++) {
        const struct nt_source_pair sum = { share->sums[i].count, share->sums[i].total };
        if (i == 0) {
            struct nt_bytes node = model->nodes[program->node].name;
            nt_buffer_text(&table->cells[WHERE], "  ");
            nt_text_append_path(&table->cells[WHERE], node.data, node.size);
            nt_buffer_byte(&table->cells[WHERE], '/');
            nt_text_append_path(&table->cells[WHERE], program->full_name.data, program->full_name.size);
        }
        part_row(table, nt_model_kind(program, share->sums[i].kind, room), share->sums[i].kind, &sum, share->bound);
    }
}

static void run_row(struct table *table, const struct nt_model *model, const struct nt_run_sum *run)
{
    const struct nt_model_program *program = &model->programs[run->program];
    const struct nt_source_pair sum = { run->count, run->total };
    char room[NT_MODEL_KIND_ROOM];
    struct nt_buffer *where = &table->cells[WHERE];
    nt_buffer_text(where, "  ");
    if (run->object != NT_MODEL_NONE) {
        nt_model_path_append(where, model, run->object);
    } else {
        nt_text_append_path(where, program->full_name.data, program->full_name.size);
        nt_buffer_print(where, "/#%u.%u", run->slot, run->generation);
    }
    part_row(table, nt_model_kind(program, run->kind, room), run->kind, &sum,
             run->exact ? NT_MODEL_EXACT : NT_MODEL_LEAST);
}

static void where(struct table *table, const char *text)
{
    nt_buffer_text(&table->cells[WHERE], text);
}

static void detail_rows(struct table *table, const struct nt_export_sessions *input,
                        const struct nt_model_session *session)
{
    const struct nt_model_sessions *sessions = input->model->sessions;
    size_t count;
    where(table, "all");
    sum_rows(table, input->model, session->own, session->own_count, session->bound);
    if (session->below > 0) {
        nt_buffer_print(&table->cells[WHERE], "with %u below", session->below);
        sum_rows(table, input->model, session->all, session->all_count, session->all_bound);
    }
    where(table, "by process");
    if (session->shares != NT_MODEL_NONE)
        table_row(table);
    for (uint32_t at = session->shares; at != NT_MODEL_NONE; at = sessions->shares[at].next)
        share_rows(table, input->model, &sessions->shares[at]);
    table_clear(table);
    const struct nt_run_sum *runs = nt_export_session_runs(input, session->id, &count);
    where(table, "by channel");
    if (count > 0)
        table_row(table);
    for (size_t i = 0; i < count; i++)
        run_row(table, input->model, &runs[i]);
    table_clear(table);
}

static void fact_time(struct nt_buffer *out, const struct nt_export_sessions *input, const char *what, uint64_t time)
{
    if (time == 0)
        return;
    nt_buffer_text(out, what);
    nt_time_append(out, time);
    if (input->now > time) {
        nt_buffer_text(out, ", ");
        nt_export_age(out, input->now - time);
        nt_buffer_text(out, " ago");
    }
    nt_buffer_byte(out, '\n');
}

static void fact_length(struct nt_buffer *out, const struct nt_model_session *session)
{
    if (session->first == 0 || session->last <= session->first)
        return;
    uint64_t length = session->last - session->first;
    nt_buffer_text(out, "  from first to last ");
    if (length < 1000000)
        nt_buffer_print(out, "%" PRIu64 ".%03" PRIu64 "us\n", length / 1000, length % 1000);
    else if (length < 1000000000)
        nt_buffer_print(out, "%" PRIu64 ".%03" PRIu64 "ms\n", length / 1000000, length / 1000 % 1000);
    else
        nt_buffer_print(out, "%" PRIu64 ".%03" PRIu64 "s\n", length / 1000000000, length / 1000000 % 1000);
}

static void fact_session(struct nt_buffer *out, const struct nt_model *model, const char *what, uint64_t id)
{
    uint32_t index = nt_model_session_find(model, id);
    nt_buffer_text(out, what);
    nt_buffer_hex64(out, id);
    if (index != NT_MODEL_NONE && model->sessions->sessions[index].name.size > 0) {
        nt_buffer_text(out, "  ");
        name_cell(out, model->sessions->sessions[index].name, SIZE_MAX);
    }
    nt_buffer_byte(out, '\n');
}

static void write_facts(const struct nt_export_sessions *input, const struct nt_model_session *session,
                        struct nt_buffer *out)
{
    const struct nt_model_session *all = input->model->sessions->sessions;
    fact_session(out, input->model, "session ", session->id);
    if (session->parent_id != 0)
        fact_session(out, input->model, "  parent  ", session->parent_id);
    if (session->depth > 1)
        fact_session(out, input->model, "  root    ", all[session->root].id);
    if (session->standing)
        nt_buffer_text(out, "  stands: many flows share it\n");
    fact_time(out, input, "  opened  ", session->opened_at);
    if (session->first != session->opened_at)
        fact_time(out, input, "  first   ", session->first);
    if (session->last != session->ended_at && session->last != session->first)
        fact_time(out, input, "  last    ", session->last);
    fact_time(out, input, "  ended   ", session->ended_at);
    fact_length(out, session);
    if (session->bound == NT_MODEL_LEAST || session->bound == NT_MODEL_ABOUT)
        nt_buffer_text(out, "  some of its sums found no room, and are its parent's, or older\n");
    if (session->bound == NT_MODEL_MOST || session->bound == NT_MODEL_ABOUT)
        nt_buffer_text(out, "  it has sums of sessions below it that found no room\n");
}

static void write_detail(const struct nt_export_sessions *input, const struct nt_model_session *session,
                         struct nt_buffer *out)
{
    static const char *const heads[] = { "", "EVENT", "COUNT", "TOTAL", "" };
    struct table table __attribute__((cleanup(table_fini))) = {
        .columns = PARTS,
        .right = 1u << COUNT | 1u << TOTAL,
    };
    write_facts(input, session, out);
    table_heads(&table, heads);
    detail_rows(&table, input, session);
    table.out = out;
    table_heads(&table, heads);
    detail_rows(&table, input, session);
}

void nt_export_text_sessions(const struct nt_export_sessions *input, struct nt_buffer *out)
{
    if (!input->detail) {
        write_list(input, out);
        return;
    }
    for (size_t i = 0; i < input->count; i++) {
        if (i > 0)
            nt_buffer_byte(out, '\n');
        write_detail(input, &input->model->sessions->sessions[input->indexes[i]], out);
    }
}
