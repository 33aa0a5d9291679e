/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that processes of a relay play:

       source ──requests──▸ router ──orders──▸ worker-1 … worker-N ──results──▸ sink

   Each is called in a process of its own and returns its exit code: 0, or 1 if anything did not come about. */
#ifndef RELAY_ROLES_H
#define RELAY_ROLES_H

#include "wire.h"

struct links {          /* descriptors that the parent makes for all; a role closes those that are not its own */
    int source, router; /* a pair of connected sockets */
    int router_listener, sink_listener;
    struct address router_address, sink_address;
    /* A pipe for each worker and either side: the worker alone holds the writing end, so that its end can be
       seen by who waits for it to connect. */
    int *router_lifelines, *sink_lifelines; /* reading ends */
    int *router_lives, *sink_lives;         /* writing ends */
    int lines;                              /* to the parent */
};

int source_run(struct program *program, struct links *links);
int router_run(struct program *program, struct links *links);
int worker_run(struct program *program, struct links *links, unsigned number);
int sink_run(struct program *program, struct links *links);

/* One line on standard error: what failed, in which process. */
void role_complain(const struct program *program, const char *what, int error);

/* ---- Helpers of a worker ---- */

struct worker;
struct view;
/* Forks a helper, has it handle the request and a few that wait behind it, and takes its results. Takes the
   message. 0 or 1. */
int helper_run(struct worker *worker, struct view *view, struct message *take_message);

#endif
