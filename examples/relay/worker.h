/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a worker share: reader, handling threads, writer, helpers. */
#ifndef RELAY_WORKER_H
#define RELAY_WORKER_H

#include "queue.h"
#include "roles.h"

struct worker {
    struct program *program;
    const struct links *links;
    uint16_t number;
    struct channel orders, results;
    struct watch tcp_transport, inbox, unix_transport, outbox, jobs, helpers;
    struct watch *idle;    /* channels that hardly anything happens on; NULL: none */
    struct watch requests; /* shared: every handling thread has a view of it */
    struct watch self;     /* the reading thread's view of the program's own object */
    struct queue backlog, outgoing;
    _Atomic nt_session standing; /* as the router tells; 0: not yet */
    _Atomic uint64_t sent;       /* results, over whatever connection */
    _Atomic bool failed;
};

struct view { /* a thread's, of the shared objects */
    struct watch requests;
    struct watch self; /* the program's own object */
};

/* Does what a request asks for and gives its result, which the caller frees; NULL: no memory. */
struct message *worker_handle(struct worker *worker, struct view *view, const struct message *request);
/* A failure that ends the worker with exit code 1 but not at once. */
void worker_fail(struct worker *worker, const char *what, int error);

#endif
