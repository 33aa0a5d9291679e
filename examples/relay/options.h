/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay's command line. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include "watch.h"

struct command {
    struct options options;
    const char *print_truth; /* a directory: print it and do nothing else */
    bool help;
};

/* 0, or -EINVAL after one line on standard error. */
int options_parse(int argc, char **argv, struct command *ret_command);
void options_help(void);

#endif
