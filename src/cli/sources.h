/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of kinds of sources, and reading them into a model. */
#ifndef NT_CLI_SOURCES_H
#define NT_CLI_SOURCES_H

#include <stdbool.h>

#include "cli/cli.h"
#include "model/objects.h"
#include "model/session_names.h"
#include "source/source.h"

struct nt_cli_sources {
    const char *directory; /* of live logs; NULL: the default */
    char **files;          /* if there are any, these alone are read */
    int file_count;
    bool sessions; /* are read and linked too */
};

/* Whether it is a regular file that begins as one that some source reads. */
bool nt_cli_sources_is_file(const char *path);
bool nt_cli_sources_is_recording(const char *path);
/* Of a command that takes files alone: all that is given. NT_CLI_OK, or after saying which is none NT_CLI_BAD. */
int nt_cli_sources_take_files(struct nt_cli *cli, const struct nt_cli_arguments *given, struct nt_cli_sources *sources);
/* Adds one snapshot of all to an empty model and links it. What cannot be read is said, one line each; the rest
   is read. Returns NT_CLI_OK, NT_CLI_BAD if something could not be read (the model is empty then if that was
   everything), or NT_CLI_NOTHING, without a word, if there is nothing at all. */
int nt_cli_sources_read(struct nt_cli *cli, const struct nt_cli_sources *sources, struct nt_model *model);
/* Opens all of them as one source, for what goes on with it. Returns NT_CLI_OK or, after saying why, NT_CLI_BAD. */
int nt_cli_sources_open(struct nt_cli *cli, const struct nt_cli_sources *sources, struct nt_source **ret_source);
/* Whether they are logs, live or files, that a program may write to. */
bool nt_cli_sources_are_logs(const struct nt_cli_sources *sources);
enum {
    NT_CLI_LOOK_QUIET = 1,   /* nothing is said of what cannot be read */
    NT_CLI_LOOK_SESSIONS = 2 /* sessions are read too, and not linked yet */
};
/* The same as nt_cli_sources_read, of a source that is open; `how`: NT_CLI_LOOK_…. */
int nt_cli_sources_look(struct nt_cli *cli, struct nt_source *source, unsigned how, struct nt_model *model);
/* Adds the names of the sessions that its programs know, if it cannot be asked for one when it is needed. 0 or a
   negative code. */
int nt_cli_sources_session_names(struct nt_source *source, struct nt_session_names *names);
/* Says that there are no logs, and where. */
void nt_cli_sources_say_nothing(struct nt_cli *cli, const struct nt_cli_sources *sources);
/* Removes logs of dead programs, or (dry) only lists them. The same results. */
int nt_cli_sources_clean(struct nt_cli *cli, const char *directory, bool dry);

#endif
