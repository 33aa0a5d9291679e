/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as a busy program makes them, see traffic.h. */
#include "traffic.h"

#include <math.h>
#include <string.h>

#include <nt/log.h>

static uint64_t dice(struct traffic *traffic)
{
    traffic->seed ^= traffic->seed << 13;
    traffic->seed ^= traffic->seed >> 7;
    traffic->seed ^= traffic->seed << 17;
    uint64_t number = traffic->seed * UINT64_C(0x2545f4914f6cdd1d);
    return number >> 32 | number << 32; /* the lower half is less random than the upper one */
}

/* Above 0, up to 1. */
static double part(struct traffic *traffic)
{
    return (double)(((dice(traffic) & UINT32_MAX) << 21) + 1) / 9007199254740992.0;
}

static uint64_t session_new(struct traffic *traffic)
{
    return dice(traffic) << 48 | traffic->next_session++;
}

void traffic_init(struct traffic *traffic, uint64_t seed)
{
    double sum = 0;
    memset(traffic, 0, sizeof *traffic);
    traffic->seed = seed * 2 + 1;
    traffic->time = 1.7e9;
    traffic->next_session = 1u << 20;
    for (uint32_t i = 0; i < TRAFFIC_OBJECTS; i++) {
        traffic->shares[i] = sum += 1.0 / (i + 1);
    }
    for (uint32_t i = 0; i < TRAFFIC_OBJECTS; i++) {
        traffic->shares[i] /= sum;
    }
    for (uint32_t i = 0; i < TRAFFIC_SESSIONS; i++) {
        traffic->sessions[i] = session_new(traffic);
    }
}

static uint32_t pick_object(struct traffic *traffic)
{
    double wanted = part(traffic);
    uint32_t low = 0, high = TRAFFIC_OBJECTS - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (traffic->shares[middle] < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t size_of_message(struct traffic *traffic)
{
    double normal = sqrt(-2 * log(part(traffic))) * cos(6.283185307179586 * part(traffic));
    return (uint64_t)(100 * exp(normal)) + 1;
}

static uint64_t pick_session(struct traffic *traffic)
{
    uint64_t *session = &traffic->sessions[dice(traffic) % TRAFFIC_SESSIONS];
    if (dice(traffic) % 20 == 0) {
        *session = session_new(traffic);
    }
    return *session;
}

void traffic_make(struct traffic *traffic, struct nt_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t number = pick_object(traffic), ring = number % TRAFFIC_RINGS, kind = dice(traffic) & 1;
        struct traffic_object *object = &traffic->objects[number];
        uint64_t session = pick_session(traffic), value = size_of_message(traffic);
        traffic->time += -log(part(traffic)) * 500;
        uint64_t ticks = (uint64_t)(traffic->time * 2.9);
        events[i] = (struct nt_event){
            .time = UINT64_C(1700000000000000000) + (uint64_t)((double)ticks / 2.9),
            .ticks = ticks,
            .session = session,
            .value = value,
            .count = ++object->count[kind],
            .total = object->total[kind] += value,
            .position = traffic->positions[ring],
            .ring = ring,
            .object = number + 1,
            .generation = 1,
            .merged = 1,
            .kind = (uint16_t)(kind != 0 ? NT_READ : NT_WRITE),
            .flags = session != object->session ? NT_RECORD_FIRST : 0,
        };
        object->session = session;
        traffic->positions[ring] += 64;
    }
    traffic->made += count;
}
