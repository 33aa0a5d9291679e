/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds what was read from the logs of a relay against what its processes counted themselves. */
#ifndef TESTS_EVENTS_VERIFY_H
#define TESTS_EVENTS_VERIFY_H

#include "source/source.h"
#include "truth_index.h"

struct seen { /* an event that was read */
    uint64_t position, session, value, count, total;
    uint32_t program, ring, object, generation;
    uint16_t kind;
    uint16_t flags;
    uint32_t slots; /* that it takes in its ring */
};

struct seen_object { /* as the last snapshot told it */
    uint32_t program, slot, generation, parent, parent_generation, previous, previous_generation, epoch;
    uint8_t kind, discipline, described;
    bool closed;
    char *name; /* terminated; the relay's names are plain */
    struct nt_source_tally *tallies, *gone, *lineage;
    size_t tally_count, gone_count, lineage_count;
};

struct seen_program {
    uint32_t number, pid, rings;
    uint64_t id, origin, events, refused_objects, refused_tallies, dropped;
    enum nt_program_state state;
    bool present;     /* in the last snapshot */
    uint32_t life[2]; /* slot and generation of its own object */
};

struct reading {
    struct seen *events;
    size_t event_count, event_room;
    struct nt_source_loss *losses;
    size_t loss_count, loss_room;
    struct seen_program *programs;
    size_t program_count;
    struct seen_object *objects; /* of the last snapshot */
    size_t object_count, object_room;
};

struct verify {
    const struct truth_index *truth;
    struct reading *reading;
    bool killed;                    /* processes were killed: an operation may be in flight */
    uint64_t without_room, lacking; /* of the program whose table is looked at: counts without a tally, by its log
                                       and by the truth */
    unsigned errors;
    unsigned long checked_events, checked_sums, folded;
};

__attribute__((format(printf, 2, 3))) void verify_error(struct verify *verify, const char *format, ...);
struct seen_program *verify_program(const struct verify *verify, uint32_t number);
/* The truth of a program; NULL after an error was counted. */
struct truth_process *verify_truth(struct verify *verify, uint32_t number);

/* Orders the objects of the last snapshot; before all else. */
void verify_sort(struct verify *verify);
/* Whether the table has fewer of that kind than were counted, there having been no room for a tally. */
bool verify_lacks(const struct verify *verify, const struct seen *event, const struct truth_counts *counts);
/* Each event says what was counted; no event twice; every position read or told as lost. */
void verify_events(struct verify *verify);
/* Law 1 on what is left after events were dropped, doubled and put in another order. */
void verify_thinned(struct verify *verify, uint64_t seed);
/* The table of every log is the truth, or within the operation in flight. */
void verify_tables(struct verify *verify);

#endif
