/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a command whose logs are to be read afterwards, all of them and no others. Knows no log. */
#ifndef NT_CLI_CHILD_H
#define NT_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/cli.h"

struct nt_cli_child {
    char *directory; /* where its logs are; NULL: none was made */
    pid_t pid;       /* of the command; 0: none runs */
    sigset_t taken, before;
    struct sigaction on_child; /* as it was */
};

/* Lets this process open as many files as it may, one a log; a command that it runs gets the limit as it was. */
void nt_cli_child_limits(void);
/* Makes a fresh directory for logs, inside the one named, else inside $NTSCOPE_DIR, else in /dev/shm (or /tmp
   where that cannot be written), and takes SIGINT, SIGTERM, SIGHUP and SIGQUIT until the end, so that
   it will be removed. 0 or a negative errno value; the end must follow in either case. */
int nt_cli_child_begin(struct nt_cli_child *child, const char *inside);
/* Runs the command with that directory as $NTSCOPE_DIR, and with all dead logs kept; its standard streams, signal
   dispositions and environment are otherwise those of this process. Waits until it has ended; signals that
   another process sends meanwhile are passed on to it, those of the terminal reach it by themselves. Returns
   its exit code, 128 + signal, or after saying why it could not be run 127 (not found) or 126. */
int nt_cli_child_run(struct nt_cli_child *child, struct nt_cli *cli, char **command);
/* The same in two halves: starts it, and returns 0 or such an exit code … */
int nt_cli_child_start(struct nt_cli_child *child, struct nt_cli *cli, char **command);
/* … and looks, without waiting, whether it has ended: its exit code, or -1. Passes on signals that came since. */
int nt_cli_child_poll(struct nt_cli_child *child);
/* Removes the directory and the files in it, unless it is to be kept, and gives signals back. */
void nt_cli_child_end(struct nt_cli_child *child, bool keep);

#endif
