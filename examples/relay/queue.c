/* SPDX-License-Identifier: BSD-3-Clause */
/* The hand-off between the threads of a worker. */
#include "queue.h"

void queue_init(struct queue *queue, size_t room)
{
    *queue = (struct queue){ .room = room };
    queue->tail = &queue->head;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->filled, NULL);
    pthread_cond_init(&queue->drained, NULL);
}

void queue_fini(struct queue *queue)
{
    while (queue->head) {
        struct message *message = queue->head;
        queue->head = message->next;
        message_free(message);
    }
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->filled);
    pthread_cond_destroy(&queue->drained);
}

void queue_push(struct queue *queue, struct message *take_message)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->length >= queue->room)
        pthread_cond_wait(&queue->drained, &queue->lock);
    take_message->next = NULL;
    *queue->tail = take_message;
    queue->tail = &take_message->next;
    queue->length++;
    queue->bytes += message_size(take_message);
    watch_session_set(&queue->watch, take_message->frame.session);
    watch_count(&queue->watch, NT_QUEUE, queue->bytes);
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static struct message *queue_take(struct queue *queue, bool wait)
{
    pthread_mutex_lock(&queue->lock);
    while (wait && !queue->head && !queue->closed)
        pthread_cond_wait(&queue->filled, &queue->lock);
    struct message *message = queue->head;
    if (message) {
        queue->head = message->next;
        if (!queue->head)
            queue->tail = &queue->head;
        queue->length--;
        queue->bytes -= message_size(message);
        watch_session_set(&queue->watch, message->frame.session);
        watch_count(&queue->watch, NT_QUEUE, queue->bytes);
        pthread_cond_signal(&queue->drained);
    }
    pthread_mutex_unlock(&queue->lock);
    return message;
}

struct message *queue_pop(struct queue *queue)
{
    return queue_take(queue, true);
}

struct message *queue_try_pop(struct queue *queue)
{
    return queue_take(queue, false);
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}
