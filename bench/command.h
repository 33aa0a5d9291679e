/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of this build, run as a whole and measured from outside. */
#ifndef NT_BENCH_COMMAND_H
#define NT_BENCH_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command_cost {
    double wall_ms;
    double cpu_ms;     /* of the program and of all its children that it waited for */
    long preempted;    /* times that it had to give a processor to somebody */
    double foreign_ms; /* CPU time of everybody else meanwhile, to some 10 ms */
};

/* The path of a program in the build folder ($NTSCOPE_BUILD, else where this benchmark lies). Borrowed until the
   next call. */
const char *command_path(const char *name);

/* Runs it, its output thrown away; `ahead`: of ordinary programs, if that is allowed, so that its wall time is its
   own. 0, or -1 with a line on stderr if it did not exit with 0. */
int command_run(char *const *command, bool ahead, struct command_cost *ret_cost);
/* Starts it, to be waited for, with the output of this program; `ahead` as before. 0, or -1 with a line on stderr. */
int command_start(char *const *command, bool ahead, pid_t *ret_child);

#endif
