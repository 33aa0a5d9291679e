/* SPDX-License-Identifier: BSD-3-Clause */
/* Truth as JSON: whole files for a checker, one line a process for the relay's own output. A forked child makes
   its line too, so nothing of that allocates from the heap. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <nt/log.h>

#include "text.h"
#include "truth_sessions.h"

/* ---- Sums ---- */

struct kinds { /* of one object, or of one path, by kind */
    struct truth_sum done[TRUTH_KINDS], begun[TRUTH_KINDS];
};

static void kinds_add(struct kinds *kinds, const struct truth_tally *tally)
{
    uint32_t kind = atomic_load_explicit(&tally->kind, memory_order_acquire);
    if (kind == 0 || kind >= TRUTH_KINDS)
        return;
    struct truth_sum done, begun;
    truth_read(tally, &done, &begun);
    truth_sum_add(&kinds->done[kind], &done);
    truth_sum_add(&kinds->begun[kind], &begun);
}

static void print_sum(struct text *out, const struct truth_sum *sum)
{
    text_print(out, "{\"count\":%" PRIu64 ",\"total\":%" PRIu64 ",\"max\":%" PRIu64 "}", sum->count, sum->total,
               sum->max);
}

/* ---- Whole files ---- */

/* Tallies of each object as chains of numbers + 1: first[object], next[tally]. */
struct chains {
    uint32_t *first, *next;
};

static int chains_init(struct chains *chains, const struct truth *truth)
{
    uint32_t objects = truth->header->objects, tallies = truth->header->tallies;
    chains->first = calloc((size_t)objects + 1, sizeof *chains->first);
    chains->next = calloc((size_t)tallies + 1, sizeof *chains->next);
    if (!chains->first || !chains->next)
        return -ENOMEM;
    for (uint32_t i = 0; i < tallies; i++) {
        uint32_t object = truth->tallies[i].object;
        if (object >= objects)
            continue;
        chains->next[i] = chains->first[object];
        chains->first[object] = i + 1;
    }
    return 0;
}

static void chains_fini(struct chains *chains)
{
    free(chains->first);
    free(chains->next);
}

static void print_object(struct text *out, const struct truth *truth, uint32_t number, const struct kinds *kinds)
{
    static const char *const flag_names[] = { /* by bit */
                                              "shared", "short", "inherited", "refused",
                                              "closed", "many",  "orphan",    "program"
    };
    const struct truth_object *object = &truth->objects[number];
    uint32_t flags = atomic_load_explicit(&object->flags, memory_order_relaxed);
    text_print(out, "\n  {\"number\":%" PRIu32 ",\"path\":", number);
    text_string(out, object->path);
    text_print(out, ",\"handle\":\"%016" PRIx64 "\",\"epoch\":%" PRIu32,
               atomic_load_explicit(&object->handle, memory_order_relaxed), object->epoch);
    if (object->previous)
        text_print(out, ",\"previous\":%" PRIu32, object->previous - 1);
    for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
        text_print(out, ",\"%s\":%s", flag_names[i], text_bool(flags & (1u << i)));
    text_print(out, ",\"tallies\":{");
    const char *comma = "";
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        if (kinds->begun[kind].count == 0)
            continue;
        text_print(out, "%s\"%s\":{\"done\":", comma, truth_kind_name(kind));
        print_sum(out, &kinds->done[kind]);
        text_print(out, ",\"begun\":");
        print_sum(out, &kinds->begun[kind]);
        text_print(out, "}");
        comma = ",";
    }
    text_print(out, "}}");
}

static void print_objects(struct text *out, const struct truth *truth, const struct chains *chains)
{
    const char *comma = "";
    for (uint32_t i = 0; i < truth->header->objects; i++) {
        if (!atomic_load_explicit(&truth->objects[i].ready, memory_order_acquire))
            continue;
        struct kinds kinds = { 0 };
        for (uint32_t tally = chains->first[i]; tally; tally = chains->next[tally - 1])
            kinds_add(&kinds, &truth->tallies[tally - 1]);
        text_print(out, "%s", comma);
        print_object(out, truth, i, &kinds);
        comma = ",";
    }
}

static int print_truth(const struct truth *truth)
{
    const struct truth_header *header = truth->header;
    struct chains chains = { 0 };
    int result = chains_init(&chains, truth);
    if (result == 0) {
        char data[8192];
        struct text out = { .data = data, .room = sizeof data, .stream = stdout };
        text_print(&out, "{\"name\":");
        text_string(&out, header->name);
        text_print(&out, ",\"pid\":%" PRIu32 ",\"helper\":%s,\"ending\":%s,\"complete\":%s,\"overflow\":%" PRIu64,
                   header->pid, text_bool(header->helper), text_bool(header->ending), text_bool(header->complete),
                   (uint64_t)header->overflow);
        text_print(&out, ",\"objects\":[");
        print_objects(&out, truth, &chains);
        text_print(&out, "]");
        result = truth_print_sessions(&out, truth);
        text_print(&out, "}");
        fwrite(data, 1, out.size, stdout);
    }
    chains_fini(&chains);
    return result;
}

static int is_truth(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(TRUTH_SUFFIX);
    return length > suffix && strcmp(entry->d_name + length - suffix, TRUTH_SUFFIX) == 0;
}

static int print_file(const char *directory, const char *name, bool first)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    struct truth truth;
    int result = truth_load(path, &truth);
    if (result < 0) {
        fprintf(stderr, "relay: %s: %s\n", path, strerror(-result));
        return result;
    }
    fputs(first ? "\n" : ",\n", stdout);
    result = print_truth(&truth);
    truth_close(&truth);
    return result;
}

int truth_print_directory(const char *directory)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_truth, alphasort);
    if (count < 0) {
        int error = -errno;
        fprintf(stderr, "relay: %s: %s\n", directory, strerror(-error));
        return error;
    }
    int result = 0;
    bool first = true;
    fputs("{\"processes\":[", stdout);
    for (int i = 0; i < count; i++) {
        int printed = print_file(directory, entries[i]->d_name, first);
        first = first && printed < 0;
        result = printed < 0 ? printed : result;
        free(entries[i]);
    }
    free(entries);
    fputs("\n]}\n", stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "relay: standard output: %s\n", strerror(errno));
        result = -EIO;
    }
    return result;
}

/* ---- One line ---- */

enum { LINE_ROWS = 256 }; /* distinct paths of one process that a line holds */

struct row {
    char path[TRUTH_PATH];
    struct kinds kinds;
};

struct line {
    struct row rows[LINE_ROWS];
    size_t count;
    uint8_t order[LINE_ROWS];
};

/* Short-lived ones are one row, jobs/job-17 that of "jobs/…". */
static void row_path(const struct truth_object *object, char path[TRUTH_PATH])
{
    memcpy(path, object->path, TRUTH_PATH);
    char *last = strrchr(path, '/');
    if (atomic_load_explicit(&object->flags, memory_order_relaxed) & TRUTH_SHORT && last)
        snprintf(last, (size_t)(path + TRUTH_PATH - last), "/*");
}

static struct row *find_row(struct line *line, const struct truth_object *object)
{
    char path[TRUTH_PATH];
    row_path(object, path);
    for (size_t i = line->count; i-- > 0;)
        if (strcmp(line->rows[i].path, path) == 0)
            return &line->rows[i];
    if (line->count == LINE_ROWS)
        return NULL;
    memcpy(line->rows[line->count].path, path, sizeof path);
    return &line->rows[line->count++];
}

/* By path. */
static void sort_rows(struct line *line)
{
    for (size_t i = 0; i < line->count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(line->rows[line->order[at - 1]].path, line->rows[i].path) > 0; at--)
            line->order[at] = line->order[at - 1];
        line->order[at] = (uint8_t)i;
    }
}

static void print_row(struct text *out, const struct row *row)
{
    const char *comma = "";
    text_string(out, row->path);
    text_print(out, ":{");
    for (uint32_t kind = 1; kind < TRUTH_KINDS; kind++) {
        /* Open, close, epoch and session are the log's own words: without a log there are none. */
        bool own = kind == NT_OPEN || kind == NT_CLOSE || kind == NT_EPOCH || kind == NT_SESSION;
        if (row->kinds.done[kind].count == 0 || own)
            continue;
        text_print(out, "%s\"%s\":", comma, truth_kind_name(kind));
        print_sum(out, &row->kinds.done[kind]);
        comma = ",";
    }
    text_print(out, "}");
}

static void print_line(struct text *out, const struct truth_header *header, const struct line *line)
{
    text_print(out, "{\"process\":");
    text_string(out, header->name);
    text_print(out, ",\"pid\":%" PRIu32 ",\"helper\":%s,\"channels\":{", header->pid, text_bool(header->helper));
    for (size_t i = 0; i < line->count; i++) {
        text_print(out, "%s", i ? "," : "");
        print_row(out, &line->rows[line->order[i]]);
    }
    text_print(out, "}}\n");
}

size_t truth_line(const struct truth *truth, char *data, size_t room)
{
    const struct truth_header *header = truth->header;
    struct line *line = mmap(NULL, sizeof *line, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (line == MAP_FAILED)
        return 0;
    for (uint32_t i = 0; i < header->tallies; i++) {
        if (truth->tallies[i].object >= header->objects)
            continue;
        const struct truth_object *object = &truth->objects[truth->tallies[i].object];
        bool program = atomic_load_explicit(&object->flags, memory_order_relaxed) & TRUTH_PROGRAM;
        struct row *row = program ? NULL : find_row(line, object);
        if (row)
            kinds_add(&row->kinds, &truth->tallies[i]);
    }
    sort_rows(line);
    struct text out = { .data = data, .room = room };
    print_line(&out, header, line);
    munmap(line, sizeof *line);
    return out.size;
}
