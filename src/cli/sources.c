/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading sources, see sources.h. */
#include "cli/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nt/log_layout.h>

#include "base/error.h"
#include "base/text.h"
#include "model/sessions.h"
#include "source/live/live.h"
#include "source/recording/recording.h"

/* A kind of file, known by its first bytes. */
struct backend {
    const char *magic;
    size_t magic_size;
    int (*open)(struct nt_cli *cli, const char *const *files, size_t count, struct nt_source **ret_source);
};

static void say_bad(struct nt_cli *cli, const char *path, int error, const char *text)
{
    struct nt_buffer line = { 0 };
    if (cli->damages) {
        text = text && text[0] ? text : nt_error_text(error);
        nt_text_append(cli->damages, text, strlen(text));
        nt_buffer_byte(cli->damages, '\n');
        return;
    }
    nt_text_append(&line, path, strlen(path));
    nt_buffer_text(&line, ": ");
    text = text && text[0] ? text : nt_error_text(error);
    nt_text_append(&line, text, strlen(text));
    nt_cli_say(cli, "%.*s", (int)line.size, line.data ? line.data : "");
    nt_buffer_fini(&line);
}

static int open_logs(struct nt_cli *cli, const char *const *files, size_t count, struct nt_source **ret_source)
{
    (void)cli;
    const struct nt_live_options options = { .files = files, .file_count = count };
    return nt_source_live_open(&options, ret_source);
}

/* Found while it is read, perhaps long after it was opened. */
static void bad_recording(void *arg, const char *path, int error, const char *text)
{
    struct nt_cli *cli = arg;
    cli->damaged = true;
    say_bad(cli, path, error, text);
}

static int open_recordings(struct nt_cli *cli, const char *const *files, size_t count, struct nt_source **ret_source)
{
    const struct nt_recording_options options = { files, count, bad_recording, cli };
    return nt_source_recording_open(&options, ret_source);
}

/* The first one also takes what is none of them: it says what is wrong with it. The version, the last byte of a
   log's magic, is the source's to judge. */
static const struct backend backends[] = {
    { NT_LAYOUT_MAGIC, sizeof NT_LAYOUT_MAGIC - 2, open_logs },
    { NT_RECORDING_MAGIC, sizeof NT_RECORDING_MAGIC - 1, open_recordings },
};

struct reading {
    struct nt_cli *cli;
    struct nt_model *model;
    bool quiet;
    bool sessions, linked;
    bool bad;
};

static void free_source(struct nt_source **source)
{
    nt_source_free(*source);
}

static const struct backend *find_backend(const char *path)
{
    char start[64];
    struct stat status;
    const struct backend *found = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return NULL;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        ssize_t size = pread(file, start, sizeof start, 0);
        for (size_t i = 0; i < sizeof backends / sizeof *backends && !found; i++) {
            if (size >= (ssize_t)backends[i].magic_size &&
                memcmp(start, backends[i].magic, backends[i].magic_size) == 0)
                found = &backends[i];
        }
    }
    (void)close(file);
    return found;
}

bool nt_cli_sources_is_file(const char *path)
{
    return find_backend(path) != NULL;
}

bool nt_cli_sources_is_recording(const char *path)
{
    const struct backend *backend = find_backend(path);
    return backend && backend->open == open_recordings;
}

int nt_cli_sources_take_files(struct nt_cli *cli, const struct nt_cli_arguments *given, struct nt_cli_sources *sources)
{
    for (int i = 0; i < given->plain_count; i++) {
        if (!nt_cli_sources_is_file(given->plain[i])) {
            nt_cli_say_of(cli, "", given->plain[i], " is neither a log nor a recording");
            return NT_CLI_BAD;
        }
    }
    sources->files = given->plain;
    sources->file_count = given->plain_count;
    return NT_CLI_OK;
}

/* ---- Reading ---- */

static int take_program(void *arg, const struct nt_source_program *program)
{
    return nt_model_add_program(((struct reading *)arg)->model, program);
}

static int take_kind(void *arg, const struct nt_source_kind *kind)
{
    return nt_model_add_kind(((struct reading *)arg)->model, kind);
}

static int take_object(void *arg, const struct nt_source_object *object)
{
    return nt_model_add_object(((struct reading *)arg)->model, object);
}

static int take_given(void *arg, const struct nt_source_given *given)
{
    return nt_model_add_given(((struct reading *)arg)->model, given);
}

static int take_session(void *arg, const struct nt_source_session *session)
{
    return nt_model_add_session(((struct reading *)arg)->model, session);
}

static void take_bad(void *arg, const char *path, int error, const char *text)
{
    struct reading *reading = arg;
    reading->bad = true;
    if (!reading->quiet)
        say_bad(reading->cli, path, error, text);
}

static int read_source(struct reading *reading, struct nt_source *source)
{
    const struct nt_source_sink sink = {
        .program = take_program,
        .kind = take_kind,
        .object = take_object,
        .bad = take_bad,
        .given = reading->sessions ? take_given : NULL,
        .session = reading->sessions ? take_session : NULL,
        .arg = reading,
    };
    nt_model_source(reading->model);
    return nt_source_snapshot(source, &sink);
}

/* Each file by itself: a model can hold what several sources tell. */
static int read_files(struct reading *reading, const struct nt_cli_sources *sources)
{
    int error = 0;
    for (int i = 0; i < sources->file_count && error == 0; i++) {
        struct nt_source *source __attribute__((cleanup(free_source))) = NULL;
        const char *file = sources->files[i];
        const struct backend *backend = find_backend(file);
        error = (backend ? backend : &backends[0])->open(reading->cli, &file, 1, &source);
        if (error == 0)
            error = read_source(reading, source);
    }
    return error;
}

static int read_live(struct reading *reading, const char *directory)
{
    struct nt_source *source __attribute__((cleanup(free_source))) = NULL;
    const struct nt_live_options options = { .directory = directory };
    int error = nt_source_live_open(&options, &source);
    return error != 0 ? error : read_source(reading, source);
}

void nt_cli_sources_say_nothing(struct nt_cli *cli, const struct nt_cli_sources *sources)
{
    char by_default[32] = "/dev/shm/ntscope-*"; /* root's are everybody's */
    const char *directory = sources->directory ? sources->directory : secure_getenv("NTSCOPE_DIR");
    if (geteuid() != 0)
        (void)snprintf(by_default, sizeof by_default, "/dev/shm/ntscope-%u", (unsigned)geteuid());
    nt_cli_say_of(cli, "no logs in ", directory && directory[0] != '\0' ? directory : by_default, "");
}

/* Links what was read, and says what became of it. */
static int end_reading(struct reading *reading, int error)
{
    struct nt_model *model = reading->model;
    if (error == 0)
        error = nt_model_link(model);
    if (error == 0 && reading->linked)
        error = nt_model_link_sessions(model);
    if (error != 0) {
        nt_cli_say(reading->cli, "cannot read the logs: %s", nt_error_text(error));
        nt_model_fini(model); /* half fed, it must not be shown */
        return NT_CLI_BAD;
    }
    if (reading->bad)
        return NT_CLI_BAD;
    return model->program_count > 0 ? NT_CLI_OK : NT_CLI_NOTHING;
}

int nt_cli_sources_read(struct nt_cli *cli, const struct nt_cli_sources *sources, struct nt_model *model)
{
    struct reading reading = { .cli = cli, .model = model, .sessions = sources->sessions };
    reading.linked = sources->sessions;
    bool live = sources->file_count == 0;
    int error = live ? read_live(&reading, sources->directory) : read_files(&reading, sources);
    return end_reading(&reading, error);
}

int nt_cli_sources_look(struct nt_cli *cli, struct nt_source *source, unsigned how, struct nt_model *model)
{
    struct reading reading = { .cli = cli, .model = model };
    reading.quiet = (how & NT_CLI_LOOK_QUIET) != 0;
    reading.sessions = (how & NT_CLI_LOOK_SESSIONS) != 0;
    return end_reading(&reading, read_source(&reading, source));
}

static int take_session_name(void *arg, const struct nt_source_session *session)
{
    return session->known ? nt_session_names_add(arg, session->id, session->name) : 0;
}

int nt_cli_sources_session_names(struct nt_source *source, struct nt_session_names *names)
{
    if (source->ops->session_name)
        return 0; /* they are asked for one by one */
    const struct nt_source_sink sink = { .session = take_session_name, .arg = names };
    return nt_source_snapshot(source, &sink);
}

/* What reads all the files; NULL: no one thing does. */
static const struct backend *backend_of(const struct nt_cli_sources *sources)
{
    const struct backend *common = NULL;
    for (int i = 0; i < sources->file_count; i++) {
        const struct backend *backend = find_backend(sources->files[i]);
        backend = backend ? backend : &backends[0];
        if (common && backend != common)
            return NULL;
        common = backend;
    }
    return common;
}

int nt_cli_sources_open(struct nt_cli *cli, const struct nt_cli_sources *sources, struct nt_source **ret_source)
{
    const char *const *files = (const char *const *)sources->files;
    const struct nt_live_options options = { .directory = sources->directory };
    const struct backend *backend = backend_of(sources);
    if (sources->file_count > 0 && !backend) {
        nt_cli_say(cli, "logs and recordings are not read together: name files of one kind");
        return NT_CLI_BAD;
    }
    int error = backend ? backend->open(cli, files, (size_t)sources->file_count, ret_source)
                        : nt_source_live_open(&options, ret_source);
    if (error == 0)
        return NT_CLI_OK;
    nt_cli_say(cli, "cannot read the logs: %s", nt_error_text(error));
    return NT_CLI_BAD;
}

bool nt_cli_sources_are_logs(const struct nt_cli_sources *sources)
{
    return sources->file_count == 0 || backend_of(sources) == &backends[0];
}

/* ---- Cleaning ---- */

struct cleaning {
    struct nt_cli *cli;
    bool dry;
    bool bad;
    size_t found;
};

static void clean_removed(void *arg, const char *path)
{
    struct cleaning *cleaning = arg;
    cleaning->found++;
    nt_buffer_text(&cleaning->cli->out, cleaning->dry ? "would remove " : "removed ");
    nt_text_append(&cleaning->cli->out, path, strlen(path));
    nt_buffer_byte(&cleaning->cli->out, '\n');
}

static void clean_bad(void *arg, const char *path, int error, const char *text)
{
    struct cleaning *cleaning = arg;
    cleaning->bad = true;
    say_bad(cleaning->cli, path, error, text);
}

/* What a snapshot finds dead is what would be removed. */
static int clean_listed(void *arg, const struct nt_source_program *program)
{
    if (program->state == NT_PROGRAM_EXITED || program->state == NT_PROGRAM_CRASHED)
        clean_removed(arg, program->path);
    return 0;
}

static int clean_dry(struct cleaning *cleaning, const struct nt_live_options *options)
{
    struct nt_source *source __attribute__((cleanup(free_source))) = NULL;
    const struct nt_source_sink sink = { .program = clean_listed, .bad = clean_bad, .arg = cleaning };
    int error = nt_source_live_open(options, &source);
    return error != 0 ? error : nt_source_snapshot(source, &sink);
}

int nt_cli_sources_clean(struct nt_cli *cli, const char *directory, bool dry)
{
    struct cleaning cleaning = { .cli = cli, .dry = dry };
    const struct nt_live_options options = { .directory = directory };
    const struct nt_live_clean_sink sink = { .removed = clean_removed, .bad = clean_bad, .arg = &cleaning };
    int error = dry ? clean_dry(&cleaning, &options) : nt_live_remove_dead(&options, &sink);
    if (error < 0) {
        nt_cli_say(cli, "cannot clean: %s", nt_error_text(error));
        return NT_CLI_BAD;
    }
    if (cleaning.bad)
        return NT_CLI_BAD;
    return cleaning.found > 0 ? NT_CLI_OK : NT_CLI_NOTHING;
}
