/* SPDX-License-Identifier: BSD-3-Clause */
/* ntscope mask: what running programs log, shown and changed from outside. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "cli/sources.h"
#include "model/mask.h"
#include "source/live/live.h"

struct values {
    bool json;
    const char *directory;
};

static const struct nt_cli_option options[] = {
    { 'j', "json", NULL, "one JSON value instead of lines", offsetof(struct values, json) },
    { 'd', "dir", "DIR", "directory of the logs (default: $NTSCOPE_DIR, else /dev/shm/ntscope-UID)",
      offsetof(struct values, directory) },
    { 0, NULL, NULL, NULL, 0 },
};

static const char text[] =
    "An OBJECT is a path or a pattern, as `ntscope stat` takes it; all that is open below it is meant too. WORDs say\n"
    "which kinds of events it logs: +KIND these too, -KIND these no more, =KIND these alone; several are separated by\n"
    "commas. KIND is a kind's name, `all`, or `user`: all kinds that programs define share one bit of the mask.\n"
    "Without a WORD masks are shown, without an OBJECT those of all.\n"
    "\n"
    "  ntscope mask worker-1 +poll\n"
    "  ntscope mask '**/orders' -read,write\n"
    "  ntscope mask router =error,close\n"
    "\n"
    "Counting goes on whatever a mask says: totals stay exact. A change takes effect at the program's next event; it\n"
    "is among the events that `ntscope events` shows, with the process that made it. Nothing is printed of objects "
    "whose\n"
    "mask was so already. Objects made later inherit the mask of what they are made in.\n";

struct job {
    struct nt_cli *cli;
    struct values values;
    struct nt_cli_sources sources;
    struct nt_cli_paths paths;
    char **words;
    int word_count;
    struct nt_model_mask_edit edit;
    struct nt_source *source;
    struct nt_model model;
    struct nt_json json;
    struct nt_buffer line;
    size_t objects, changed; /* that match; of these, whose mask is another now */
    uint32_t ended;          /* programs that match and have ended */
    bool bad;
    bool told; /* why a path that matches has no masks */
};

static void job_fini(struct job *job)
{
    nt_cli_paths_fini(&job->paths);
    nt_model_fini(&job->model);
    nt_source_free(job->source);
    nt_buffer_fini(&job->line);
    free(job->words);
}

/* ---- Arguments ---- */

static const struct nt_cli_option *find_option(const char *argument)
{
    const struct nt_cli_option *option = options;
    while (option->name && option->letter != argument[1])
        option++;
    return option->name ? option : NULL;
}

/* A letter alone behind a dash is an option if there is one. */
static bool is_word(const char *argument)
{
    if (argument[0] == '+' || argument[0] == '=')
        return true;
    if (argument[0] != '-' || argument[1] == '-' || argument[1] == '\0')
        return false;
    return argument[2] != '\0' || (argument[1] != 'h' && !find_option(argument));
}

static bool takes_next(const char *argument)
{
    return strcmp(argument, "--dir") == 0 || (argument[0] == '-' && argument[1] == 'd' && argument[2] == '\0');
}

/* Moves words out of the arguments, whose number is returned, or -ENOMEM. */
static int take_words(struct job *job, int count, char **arguments)
{
    int kept = 0;
    job->words = calloc((size_t)count + 1, sizeof *job->words);
    if (!job->words)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--") == 0) {
            while (i < count)
                arguments[kept++] = arguments[i++];
            break;
        }
        bool option = takes_next(arguments[i]);
        if (!option && is_word(arguments[i]))
            job->words[job->word_count++] = arguments[i];
        else
            arguments[kept++] = arguments[i];
        if (option && i + 1 < count)
            arguments[kept++] = arguments[++i];
    }
    return kept;
}

static int parse_words(struct job *job)
{
    for (int i = 0; i < job->word_count; i++) {
        struct nt_bytes wrong;
        if (nt_model_mask_word(&job->edit, &job->model, job->words[i], &wrong) == 0)
            continue;
        struct nt_buffer name = { 0 };
        nt_buffer_append(&name, wrong.data, wrong.size);
        nt_buffer_byte(&name, '\0');
        nt_cli_say_of(job->cli, "no kind is called '", name.data ? name.data : "",
                      "' (ntscope mask --help tells more)");
        nt_buffer_fini(&name);
        return NT_CLI_USAGE;
    }
    if (job->edit.user)
        nt_cli_say(job->cli, "user-defined kinds share one bit of a mask: all of them are switched");
    return NT_CLI_OK;
}

/* ---- Output ---- */

static void append_kind(void *arg, const char *name)
{
    nt_json_word(arg, name);
}

static void write_json_mask(struct job *job, const char *key, uint64_t mask)
{
    nt_json_key(&job->json, key);
    nt_json_array(&job->json);
    nt_model_mask_each(mask, append_kind, &job->json);
    nt_json_array_end(&job->json);
}

static void write_json(struct job *job, uint32_t index, uint64_t before, uint64_t after)
{
    const struct nt_model_object *object = &job->model.objects[index];
    struct nt_json *json = &job->json;
    nt_json_line(json);
    nt_json_object(json);
    nt_json_key(json, "log");
    nt_json_id(json, nt_model_program_of(&job->model, object)->told.id);
    nt_json_key(json, "object");
    nt_json_id(json, (uint64_t)object->told.generation << 32 | object->told.slot);
    nt_json_key(json, "path");
    nt_json_string(json, job->line.data, job->line.size);
    if (job->word_count > 0)
        write_json_mask(job, "before", before);
    write_json_mask(job, job->word_count > 0 ? "after" : "mask", after);
    nt_json_object_end(json);
}

static void write_mask(struct job *job, uint32_t index, uint64_t before, uint64_t after)
{
    struct nt_buffer *out = &job->cli->out;
    nt_buffer_clear(&job->line);
    nt_model_path_append(&job->line, &job->model, index);
    if (nt_buffer_fail(out, job->line.error) != 0)
        return;
    if (job->values.json) {
        write_json(job, index, before, after);
        return;
    }
    nt_buffer_append(out, job->line.data, job->line.size);
    nt_buffer_text(out, "  ");
    if (job->word_count > 0) {
        nt_model_mask_append(out, before);
        nt_buffer_text(out, "  ->  ");
    }
    nt_model_mask_append(out, after);
    nt_buffer_byte(out, '\n');
}

/* ---- Objects ---- */

static void say_failed(struct job *job, const struct nt_model_program *program, int error)
{
    struct nt_buffer name = { 0 };
    char after[128];
    nt_model_program_path_append(&name, &job->model, (uint32_t)(program - job->model.programs));
    nt_buffer_byte(&name, '\0');
    (void)snprintf(after, sizeof after, ": its masks cannot be changed: %s", nt_error_text(error));
    nt_cli_say_of(job->cli, "", name.data ? name.data : "", after);
    nt_buffer_fini(&name);
    job->bad = true;
}

/* 0, also if its life has ended meanwhile; else its program is left alone from here on. */
static int change_mask(struct job *job, uint32_t index)
{
    const struct nt_model_object *object = &job->model.objects[index];
    const struct nt_model_program *program = nt_model_program_of(&job->model, object);
    struct nt_live_mask mask = { .program = program->told.number,
                                 .object = object->told.slot,
                                 .generation = object->told.generation,
                                 .clear = job->edit.clear,
                                 .set = job->edit.set };
    int error = nt_live_mask_change(job->source, &mask);
    if (error == -ESTALE)
        return 0;
    if (error == -ESRCH) {
        job->ended++;
        return error;
    }
    if (error < 0) {
        say_failed(job, program, error);
        return error;
    }
    job->objects++;
    if (mask.before != mask.after) {
        job->changed++;
        write_mask(job, index, mask.before, mask.after);
    }
    return 0;
}

static void visit_program(struct job *job, const struct nt_model_selection *selection,
                          const struct nt_model_program *program)
{
    for (uint32_t i = 0; i < program->order_count; i++) {
        uint32_t index = job->model.order[program->order_first + i];
        const struct nt_model_object *object = &job->model.objects[index];
        bool picked = job->paths.count == 0 || selection->objects[index] == NT_MODEL_PICKED_WHOLE;
        if (!picked || object->told.closed)
            continue;
        if (job->word_count > 0 && change_mask(job, index) != 0)
            return;
        if (job->word_count == 0) {
            job->objects++;
            write_mask(job, index, object->told.mask, object->told.mask);
        }
    }
}

/* Whether all that a path matches is kinds of objects, which have no masks of their own. 0, 1 or -ENOMEM. */
static int is_of_kinds(struct job *job, size_t number)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    int error = nt_model_selection_init(&selection, &job->model);
    int count = error == 0 ? nt_model_select(&selection, job->paths.parsed[number], true) : error;
    error = count > 0 ? nt_model_selection_close(&selection) : count;
    for (uint32_t i = 0; i < job->model.object_count && error == 0; i++) {
        if (selection.objects[i] == NT_MODEL_PICKED_WHOLE)
            return 0;
    }
    return error < 0 ? error : count > 0;
}

static int select_paths(struct job *job, struct nt_model_selection *selection)
{
    int error = nt_model_selection_init(selection, &job->model);
    for (size_t i = 0; i < job->paths.count && error == 0; i++) {
        int count = nt_model_select(selection, job->paths.parsed[i], true);
        error = count < 0 ? count : 0;
        if (count == 0)
            nt_cli_paths_say_unmatched(job->cli, &job->paths, i, &job->model);
        int kinds = count > 0 ? is_of_kinds(job, i) : 0;
        error = kinds < 0 ? kinds : error;
        if (kinds > 0) {
            nt_cli_say_of(job->cli, "'", job->paths.given[i],
                          "' names kinds of events: masks are objects' (+KIND, -KIND)");
            job->told = true;
        }
    }
    return error == 0 ? nt_model_selection_close(selection) : error;
}

static int end(struct job *job, size_t matched)
{
    struct nt_cli *cli = job->cli;
    if (job->ended > 0)
        nt_cli_say(cli, "%u program%s that match%s ended: nothing to change there", job->ended,
                   job->ended == 1 ? "" : "s", job->ended == 1 ? "es has" : " have");
    else if (job->objects == 0 && matched > 0 && !job->bad && !job->told)
        nt_cli_say(cli, "no open object matches");
    if (job->bad || job->paths.not_a_log)
        return NT_CLI_BAD;
    return job->objects > 0 ? NT_CLI_OK : NT_CLI_NOTHING;
}

static int run_objects(struct job *job)
{
    struct nt_model_selection selection __attribute__((cleanup(nt_model_selection_fini))) = { 0 };
    int error = select_paths(job, &selection);
    if (error != 0) {
        nt_cli_say(job->cli, "%s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    job->json.out = &job->cli->out;
    if (job->values.json)
        nt_json_array(&job->json);
    for (uint32_t i = 0; i < job->model.program_count; i++)
        visit_program(job, &selection, &job->model.programs[job->model.programs_order[i]]);
    if (job->values.json) {
        nt_json_array_end(&job->json);
        nt_buffer_byte(&job->cli->out, '\n');
    }
    return end(job, job->paths.count == 0 || selection.branches > 0);
}

static int run_job(struct job *job)
{
    int code = nt_cli_sources_open(job->cli, &job->sources, &job->source);
    int look_code = code == NT_CLI_OK ? nt_cli_sources_look(job->cli, job->source, 0, &job->model) : code;
    if (look_code == NT_CLI_NOTHING)
        nt_cli_sources_say_nothing(job->cli, &job->sources);
    if (job->model.program_count == 0)
        return look_code;
    code = parse_words(job);
    if (code == NT_CLI_OK)
        code = run_objects(job);
    return code > look_code ? code : look_code;
}

static int run(struct nt_cli *cli, const struct nt_cli_command *command, int count, char **arguments)
{
    struct job job __attribute__((cleanup(job_fini))) = { .cli = cli };
    struct nt_cli_arguments given;
    count = take_words(&job, count, arguments);
    if (count < 0) {
        nt_cli_say(cli, "%s", nt_error_text(count));
        return NT_CLI_BAD;
    }
    int code = nt_cli_options_parse(cli, command, count, arguments, &job.values, &given);
    if (code != 0)
        return code < 0 ? NT_CLI_OK : code;
    if (given.rest_count > 0 || (job.word_count > 0 && given.plain_count == 0)) {
        nt_cli_say(cli, "%s (ntscope mask --help tells more)",
                   given.rest_count > 0 ? "mask runs no command" : "of which OBJECT?");
        return NT_CLI_USAGE;
    }
    job.sources.directory = job.values.directory;
    if (nt_cli_paths_split(cli, &given, &job.sources, &job.paths) != 0)
        return NT_CLI_BAD;
    if (!nt_cli_sources_are_logs(&job.sources)) {
        nt_cli_say(cli, "mask takes no recordings: their programs are not asked any more");
        return NT_CLI_USAGE;
    }
    return run_job(&job);
}

const struct nt_cli_command nt_cli_mask = {
    .name = "mask",
    .arguments = "[--json] [--dir DIR] [OBJECT… [WORD…]]",
    .summary = "Changes which kinds of events running programs log, or shows it.",
    .text = text,
    .options = options,
    .run = run,
};
