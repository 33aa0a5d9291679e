/* SPDX-License-Identifier: BSD-3-Clause */
/* A bounded queue of messages between threads. Its length in bytes is counted, inside the queue's own lock, on
   an object that is therefore exclusive although several threads come by, each time in the session of the message. */
#ifndef RELAY_QUEUE_H
#define RELAY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;
    struct message *head, **tail;
    size_t length, room; /* messages */
    uint64_t bytes;
    bool closed;
    struct watch watch;
};

/* The watch is opened by the caller afterwards. */
void queue_init(struct queue *queue, size_t room);
/* Frees what is left in it. */
void queue_fini(struct queue *queue);
/* Waits for room. Takes the message. */
void queue_push(struct queue *queue, struct message *take_message);
/* Waits for a message; NULL once the queue is closed and empty. The caller frees. */
struct message *queue_pop(struct queue *queue);
/* NULL if none is there now. */
struct message *queue_try_pop(struct queue *queue);
/* Nothing comes any more. */
void queue_close(struct queue *queue);

#endif
