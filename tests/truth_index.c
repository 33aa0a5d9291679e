/* SPDX-License-Identifier: BSD-3-Clause */
/* Truth files, indexed. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nt/log.h>

#include "truth_index.h"

uint32_t truth_slot(uint64_t handle)
{
    return (uint32_t)handle & ((UINT32_C(1) << NT_LAYOUT_SLOT_BITS) - 1);
}

uint32_t truth_generation(uint64_t handle)
{
    return (uint32_t)(handle >> 32) & ~NT_LAYOUT_LOCKED;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void *take_memory(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) {
        fputs("truth: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* ---- Loading ---- */

/* Tally numbers in the order of life, kind, number. */
static const struct truth_tally *sorting; /* of the process being indexed */

static int compare_tallies(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct truth_tally *s = &sorting[x], *t = &sorting[y];
    if (s->object != t->object)
        return s->object < t->object ? -1 : 1;
    if (s->kind != t->kind)
        return s->kind < t->kind ? -1 : 1;
    return (x > y) - (x < y);
}

/* Where each tally's values begin in the array of all, in the order given. Returns how many values there are. */
static size_t place_values(const struct truth *truth, const uint32_t *order, size_t *starts)
{
    uint32_t tallies = truth->header->tallies;
    size_t *lengths = take_memory(tallies, sizeof *lengths);
    for (uint64_t i = 0; i < truth->header->series; i++)
        if (truth->series[i].tally && truth->series[i].tally <= tallies)
            lengths[truth->series[i].tally - 1]++;
    size_t total = 0;
    for (uint32_t i = 0; i < tallies; i++) {
        starts[order[i]] = total;
        total += lengths[order[i]];
    }
    free(lengths);
    return total;
}

static void fill_values(struct truth_process *process, const size_t *starts)
{
    const struct truth *truth = &process->truth;
    uint32_t tallies = truth->header->tallies;
    size_t *next = take_memory(tallies, sizeof *next);
    for (uint32_t i = 0; i < tallies; i++)
        next[i] = starts[i];
    for (uint64_t i = 0; i < truth->header->series; i++) {
        uint32_t tally = truth->series[i].tally;
        if (tally == 0 || tally > tallies)
            continue;
        size_t at = next[tally - 1]++;
        process->values[at] = truth->series[i].value;
        process->sessions[at] = truth->series[i].session;
        process->totals[at] = truth->series[i].value + (at > starts[tally - 1] ? process->totals[at - 1] : 0);
    }
    free(next);
}

static void group_tallies(struct truth_process *process, const uint32_t *order, const size_t *starts, size_t values)
{
    const struct truth *truth = &process->truth;
    uint32_t tallies = truth->header->tallies;
    struct truth_counts *counts = NULL;
    for (uint32_t i = 0; i < tallies; i++) {
        const struct truth_tally *tally = &truth->tallies[order[i]];
        if (tally->kind == 0)
            continue;
        if (!counts || counts->life != tally->object || counts->kind != tally->kind) {
            counts = &process->counts[process->count++];
            *counts = (struct truth_counts){ .life = tally->object,
                                             .kind = tally->kind,
                                             .values = process->values + starts[order[i]],
                                             .sessions = process->sessions + starts[order[i]],
                                             .totals = process->totals + starts[order[i]] };
        }
        struct truth_sum done, begun;
        truth_read(tally, &done, &begun);
        truth_sum_add(&counts->done, &done);
        truth_sum_add(&counts->begun, &begun);
        counts->tallies++;
        size_t end = i + 1 < tallies ? starts[order[i + 1]] : values;
        counts->value_count = end - (size_t)(counts->values - process->values);
    }
}

static void sort_values(struct truth_process *process, size_t values)
{
    process->sorted = take_memory(values, sizeof *process->sorted);
    memcpy(process->sorted, process->values, values * sizeof *process->sorted);
    for (size_t i = 0; i < process->count; i++) {
        struct truth_counts *counts = &process->counts[i];
        uint64_t *sorted = process->sorted + (counts->values - process->values);
        counts->sorted = sorted;
        if (counts->tallies > 1)
            qsort(sorted, counts->value_count, sizeof *sorted, compare_u64);
    }
}

static void index_handles(struct truth_process *process)
{
    const struct truth *truth = &process->truth;
    for (uint32_t i = 0; i < truth->header->objects; i++)
        if (truth->objects[i].ready && truth->objects[i].handle)
            process->by_handle[process->handle_count++] = (uint64_t)truth_slot(truth->objects[i].handle) << 32 |
                                                          (i + 1);
    qsort(process->by_handle, process->handle_count, sizeof *process->by_handle, compare_u64);
}

static void index_process(struct truth_process *process)
{
    const struct truth *truth = &process->truth;
    uint32_t tallies = truth->header->tallies, objects = truth->header->objects;
    uint32_t *order = take_memory(tallies, sizeof *order);
    size_t *starts = take_memory(tallies, sizeof *starts);
    for (uint32_t i = 0; i < tallies; i++)
        order[i] = i;
    sorting = truth->tallies;
    qsort(order, tallies, sizeof *order, compare_tallies);
    size_t values = place_values(truth, order, starts);
    process->values = take_memory(values, sizeof *process->values);
    process->sessions = take_memory(values, sizeof *process->sessions);
    process->totals = take_memory(values, sizeof *process->totals);
    process->counts = take_memory(tallies, sizeof *process->counts);
    process->by_handle = take_memory(objects, sizeof *process->by_handle);
    process->found = take_memory(objects, 1);
    fill_values(process, starts);
    group_tallies(process, order, starts, values);
    sort_values(process, values);
    index_handles(process);
    free(order);
    free(starts);
}

static bool load_file(const char *directory, const char *name, struct truth_index *index)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    struct truth_process *processes = realloc(index->processes, (index->count + 1) * sizeof *processes);
    if (!processes)
        return false;
    index->processes = processes;
    processes[index->count] = (struct truth_process){ 0 };
    int result = truth_load(path, &processes[index->count].truth);
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(-result));
        return false;
    }
    if (processes[index->count].truth.header->overflow) {
        fprintf(stderr, "%s: it had no room for all that was counted\n", path);
        return false;
    }
    index_process(&processes[index->count++]);
    return true;
}

bool truth_index_load(const char *directory, struct truth_index *ret_index)
{
    *ret_index = (struct truth_index){ 0 };
    DIR *stream = opendir(directory);
    if (!stream) {
        fprintf(stderr, "%s: %s\n", directory, strerror(errno));
        return false;
    }
    bool good = true;
    size_t suffix = strlen(TRUTH_SUFFIX);
    for (struct dirent *entry; good && (entry = readdir(stream));) {
        size_t length = strlen(entry->d_name);
        if (length > suffix && strcmp(entry->d_name + length - suffix, TRUTH_SUFFIX) == 0)
            good = load_file(directory, entry->d_name, ret_index);
    }
    closedir(stream);
    return good;
}

void truth_index_fini(struct truth_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        struct truth_process *process = &index->processes[i];
        free(process->values);
        free(process->sessions);
        free(process->totals);
        free(process->sorted);
        free(process->counts);
        free(process->by_handle);
        free(process->found);
        truth_close(&process->truth);
    }
    free(index->processes);
    *index = (struct truth_index){ 0 };
}

/* ---- Looking up ---- */

struct truth_process *truth_index_process(const struct truth_index *index, uint32_t pid)
{
    for (size_t i = 0; i < index->count; i++)
        if (index->processes[i].truth.header->pid == pid)
            return &index->processes[i];
    return NULL;
}

uint32_t truth_life(const struct truth_process *process, uint32_t slot, uint32_t generation)
{
    size_t low = 0, high = process->handle_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (process->by_handle[middle] >> 32 < slot)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < process->handle_count && process->by_handle[low] >> 32 == slot; low++) {
        uint32_t life = (uint32_t)process->by_handle[low] - 1;
        if (truth_generation(process->truth.objects[life].handle) == (generation & ~NT_LAYOUT_LOCKED))
            return life;
    }
    return TRUTH_NO_LIFE;
}

const struct truth_counts *truth_counts_of(const struct truth_process *process, uint32_t life, uint32_t kind)
{
    size_t low = 0, high = process->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct truth_counts *counts = &process->counts[middle];
        if (counts->life < life || (counts->life == life && counts->kind < kind))
            low = middle + 1;
        else
            high = middle;
    }
    const struct truth_counts *counts = &process->counts[low];
    return low < process->count && counts->life == life && counts->kind == kind ? counts : NULL;
}

bool truth_has_value(const struct truth_counts *counts, uint64_t value)
{
    return bsearch(&value, counts->sorted, counts->value_count, sizeof value, compare_u64) != NULL;
}
