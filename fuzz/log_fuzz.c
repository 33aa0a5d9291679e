/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes in a log: the input is a list of changes to a small valid log, so that what it breaks lies deep, or,
   after a byte 255, the whole file. Between steps the file changes under the reader, as a running program, a
   hostile one, or one that cuts it would do. What is told is checked against what a source promises, what comes of
   it in order of time against what the merge does, its sessions against what a tree is; and they are shown. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "export/export.h"
#include "model/gaps.h"
#include "model/runs.h"
#include "model/sessions.h"
#include "source/live/build.h"
#include "source/live/live.h"
#include "source/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    ROOM = 512,
    LOSSES = 8,
    READS_MAX = 64,
    STEPS_MAX = 8,
    WAYS = 7,      /* a list, trees, all of each, as text and JSON; and all in the statistics */
    RINGS_MAX = 8, /* of the image's directory */
    WHOLE_FILE = 255,
};

/* What a change does: the low half of its first byte. 0 and 1 are the first two pages, 2 to 11 the regions. A step with
   n in the upper half changes something at each n-th look of its snapshot. */
enum { CHANGE_CUT = 12, CHANGE_HOLE = 13, CHANGE_STEP = 14, CHANGE_EVENT = 15 };

struct input {
    const uint8_t *data;
    size_t size;
};

static struct build build;
static int file = -1;
static char path[64];
struct told {
    uint64_t ring_end[RINGS_MAX]; /* position that was told of last, of this program: */
    uint32_t program;
    uint64_t serial;         /* of the last event without a ring */
    uint64_t high, previous; /* times */
};
static struct told as_read, as_merged;
static volatile uint8_t sink_byte;

static struct shown { /* what is told in one step */
    struct nt_model model;
    struct nt_runs *runs;
    int error;    /* the first; then it is not shown */
    unsigned way; /* how it is shown; from WAYS on it is not */
} shown;

static struct meddle { /* with a snapshot under way */
    struct input *input;
    unsigned every, left; /* looks; every 0: never */
} meddle;

static bool change(struct input *input);

static void fail(const char *what)
{
    (void)fprintf(stderr, "log_fuzz: %s\n", what);
    abort();
}

static void show(int error)
{
    if (error != 0 && error != -E2BIG && error != -EINVAL) {
        fail("a model that failed");
    }
    shown.error = shown.error != 0 ? shown.error : error;
}

static void touch(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        sink_byte = (uint8_t)(sink_byte + bytes[i]);
    }
}

/* ---- What is told ---- */

static int take_program(void *arg, const struct nt_source_program *program)
{
    (void)arg;
    touch(program->host.data, program->host.size);
    touch(program->domain.data, program->domain.size);
    touch(program->node.data, program->node.size);
    touch(program->program.data, program->program.size);
    touch(program->name.data, program->name.size);
    if (program->overwritten > program->events) {
        fail("more overwritten than written");
    }
    show(nt_model_add_program(&shown.model, program));
    return 0;
}

static int take_kind(void *arg, const struct nt_source_kind *kind)
{
    (void)arg;
    touch(kind->name.data, kind->name.size);
    for (size_t i = 0; i < kind->field_count; i++) {
        touch(kind->fields[i].name.data, kind->fields[i].name.size);
    }
    if (kind->kind < NT_LAYOUT_USER_KIND || kind->kind >= NT_LAYOUT_CONTINUATION) {
        fail("a user-defined kind of an impossible number");
    }
    show(nt_model_add_kind(&shown.model, kind));
    return 0;
}

static void take_tallies(const struct nt_source_tally *tallies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tallies[i].kind == 0 || tallies[i].kind >= NT_LAYOUT_CONTINUATION ||
            (i > 0 && tallies[i].kind <= tallies[i - 1].kind)) {
            fail("kinds out of order");
        }
    }
}

static void take_histograms(const struct nt_source_rare *rare)
{
    for (size_t i = 0; i < rare->histogram_count; i++) {
        const struct nt_source_histogram *histogram = &rare->histograms[i];
        uint64_t next = 0;
        if (histogram->kind == 0 || histogram->kind >= NT_LAYOUT_CONTINUATION || histogram->bucket_count == 0 ||
            (i > 0 && histogram->kind <= rare->histograms[i - 1].kind)) {
            fail("a histogram that cannot be");
        }
        for (size_t k = 0; k < histogram->bucket_count; k++) {
            const struct nt_source_bucket *bucket = &histogram->buckets[k];
            if (bucket->count == 0 || bucket->low < next || bucket->high < bucket->low || (k > 0 && next == 0)) {
                fail("a bucket that cannot be");
            }
            next = bucket->high + 1;
        }
    }
}

static void take_rare(const struct nt_source_rare *rare)
{
    uint32_t directions = 0;
    if (rare == NULL) {
        return;
    }
    take_histograms(rare);
    touch(rare->remote_node.data, rare->remote_node.size);
    touch(rare->remote_process.data, rare->remote_process.size);
    if (rare->remote_node.size > NT_LAYOUT_NAME || rare->remote_process.size > NT_LAYOUT_NAME) {
        fail("a name that is too long");
    }
    for (size_t i = 0; i < rare->link_count; i++) {
        const struct nt_source_link *link = &rare->links[i];
        touch(link->key.data, link->key.size);
        if (link->key.size == 0 || link->key.size > NT_LAYOUT_LINK_KEY || link->direction == 0 || link->direction > 3 ||
            (link->direction & directions) != 0 || link->pairing > NT_PAIR_ID) {
            fail("a link that cannot be");
        }
        directions |= link->direction;
    }
}

static int take_object(void *arg, const struct nt_source_object *object)
{
    (void)arg;
    touch(object->name.data, object->name.size);
    take_tallies(object->tallies, object->tally_count);
    take_tallies(object->gone, object->gone_count);
    take_tallies(object->base, object->base_count);
    take_tallies(object->lineage, object->lineage_count);
    take_rare(object->rare);
    if (object->generation == 0 || object->slot >> NT_LAYOUT_SLOT_BITS != 0) {
        fail("an object that cannot be");
    }
    show(nt_model_add_object(&shown.model, object));
    return 0;
}

static void take_bad(void *arg, const char *bad_path, int error, const char *text)
{
    (void)arg;
    touch(bad_path, strlen(bad_path));
    touch(text, strlen(text));
    if (error >= 0 || strchr(text, '\n') != NULL) {
        fail("an error that is none");
    }
}

/* A file that was cut and mended is another program. */
static void take_number(struct told *told, uint32_t program)
{
    if (program != told->program) {
        memset(told->ring_end, 0, sizeof told->ring_end);
        told->program = program;
    }
}

static void take_loss(struct told *told, const struct nt_source_loss *loss)
{
    take_number(told, loss->program);
    if (loss->ring >= RINGS_MAX || loss->from >= loss->to || loss->from % NT_LAYOUT_SLOT != 0 ||
        loss->count != (loss->to - loss->from) / NT_LAYOUT_SLOT) {
        fail("a loss that cannot be");
    }
}

static void take_mask(struct told *told, const struct nt_event *event)
{
    if (event->kind != 13 || event->position <= told->serial || event->generation == 0 ||
        (event->value | event->argument) >> NT_LAYOUT_MASK_KINDS != 0 || event->count != 0 || event->data_size != 0) {
        fail("a changed mask that cannot be");
    }
    told->serial = event->position;
}

/* Events of a ring come in the order of their places, each once. */
static void take_event(struct told *told, const struct nt_event *event)
{
    if (event->object >> NT_LAYOUT_SLOT_BITS != 0) {
        fail("an event of an object that cannot be");
    }
    if (event->ring == NT_EVENT_NO_RING) {
        take_mask(told, event);
        return;
    }
    take_number(told, event->program);
    if (event->ring >= RINGS_MAX || event->position % NT_LAYOUT_SLOT != 0 || event->kind == 0 ||
        event->kind >= NT_LAYOUT_CONTINUATION || event->data_size > NT_SOURCE_DATA) {
        fail("an event that cannot be");
    }
    if (event->position < told->ring_end[event->ring]) {
        fail("an event told twice");
    }
    uint64_t slots = 1 + (event->data_size + NT_LAYOUT_CONTINUED - 1) / NT_LAYOUT_CONTINUED;
    told->ring_end[event->ring] = event->position + slots * NT_LAYOUT_SLOT;
    touch(event->data, event->data_size);
}

static void take_item(const struct nt_merge_item *item, struct nt_gaps *gaps)
{
    struct told *told = &as_merged;
    struct nt_gap gap;
    if (item->loss != NULL) {
        take_loss(told, &item->loss->lost);
        return;
    }
    const struct nt_event *event = item->event;
    take_event(told, event);
    if (item->late != (event->time < told->high || event->time < told->previous)) {
        fail("a mark of being late where there should be none, or none where there should be one");
    }
    told->previous = event->time;
    told->high = !item->ahead && event->time > told->high ? event->time : told->high;
    int count = nt_gaps_event(gaps, event);
    for (; nt_gaps_take(gaps, &gap); count--) {
        if (gap.first > gap.last || gap.first == 0) {
            fail("a gap that cannot be");
        }
    }
    if (count != 0) {
        fail("gaps that were not told");
    }
}

/* Some that are due, then all. */
static void step_merged(struct nt_merge *merge, struct nt_gaps *gaps)
{
    static struct nt_merge_item items[ROOM];
    for (int turn = 0; turn < READS_MAX; turn++) {
        bool due = turn % 8 == 0;
        int count = due ? nt_merge_next(merge, 1000000000 + (uint64_t)turn * 1000, items, ROOM)
                        : nt_merge_flush(merge, items, ROOM);
        if (count < 0 || count > ROOM) {
            fail("a merge that failed");
        }
        for (int i = 0; i < count; i++) {
            take_item(&items[i], gaps);
        }
        if (count == 0 && !due) {
            return;
        }
    }
}

static void between_looks(void *arg)
{
    (void)arg;
    if (meddle.every > 0 && --meddle.left == 0 && meddle.input->size > 0) {
        meddle.left = meddle.every;
        meddle.every = change(meddle.input) ? meddle.every : 0;
    }
}

static int take_given(void *arg, const struct nt_source_given *given)
{
    (void)arg;
    (void)nt_source_given_has(given, 1, false);
    show(nt_model_add_given(&shown.model, given));
    return 0;
}

static int take_session(void *arg, const struct nt_source_session *session)
{
    (void)arg;
    touch(session->name.data, session->name.size);
    for (size_t i = 0; i < session->sum_count; i++) {
        if (session->sums[i].kind == 0 || session->sums[i].kind >= NT_LAYOUT_CONTINUATION ||
            (i > 0 && session->sums[i].kind <= session->sums[i - 1].kind)) {
            fail("kinds of a session out of order");
        }
    }
    if (session->older && session->id != 0) {
        fail("a session that cannot be");
    }
    show(nt_model_add_session(&shown.model, session));
    return 0;
}

/* ---- What is shown of its sessions ---- */

/* Each once, parents before what is below them. */
static void check_tree(const struct nt_model_sessions *sessions)
{
    if (sessions->order_count + NT_MODEL_SESSION_FIRST != sessions->count) {
        fail("a tree that has not all sessions");
    }
    for (uint32_t i = 0; i < sessions->order_count; i++) {
        const struct nt_model_session *session = &sessions->sessions[sessions->order[i]];
        const struct nt_model_session *parent = &sessions->sessions[session->parent];
        if (session->place != i || session->below >= sessions->order_count - i) {
            fail("a session in a wrong place");
        }
        if (session->parent != NT_MODEL_NONE &&
            (parent->place >= i || i > parent->place + parent->below || session->depth != parent->depth + 1)) {
            fail("a session that is not below its parent");
        }
    }
}

static void check_text(const struct nt_buffer *out)
{
    if (out->error != 0 || out->size == 0 || out->data[out->size - 1] != '\n') {
        fail("sessions that are not shown");
    }
    for (size_t i = 0; i < out->size; i++) {
        if ((uint8_t)out->data[i] < ' ' && out->data[i] != '\n') {
            fail("a name that can command a terminal");
        }
    }
}

static void show_sessions(const struct nt_export_format *format, const uint32_t *indexes, size_t count)
{
    bool detail = shown.way / 2 == 2 && count > 0;
    struct nt_export_sessions input = { .model = &shown.model, .indexes = indexes, .count = count, .now = 5000 };
    struct nt_buffer out = { 0 };
    input.tree = shown.way / 2 == 1;
    input.detail = detail;
    input.rest = !detail;
    input.runs = nt_runs_sums(shown.runs, &input.run_count);
    format->sessions(&input, &out);
    check_text(&out);
    nt_buffer_fini(&out);
}

static void show_stat(void)
{
    const struct nt_export_input input = { .model = &shown.model };
    struct nt_buffer out = { 0 };
    nt_export_json.stat(&input, &out);
    check_text(&out);
    nt_buffer_fini(&out);
}

/* One way a step, as showing takes longer than all else. */
static void show_all(void)
{
    const struct nt_model_sessions *sessions = shown.model.sessions;
    bool tree = shown.way / 2 == 1;
    uint32_t *indexes = calloc((size_t)sessions->order_count + 1, sizeof *indexes);
    size_t count = 0;
    if (indexes == NULL) {
        fail("no memory");
    }
    for (size_t i = 0; i < sessions->order_count; i++) {
        if (!tree || sessions->sessions[sessions->order[i]].parent == NT_MODEL_NONE) {
            indexes[count++] = sessions->order[i];
        }
    }
    nt_model_sort_sessions(&shown.model, indexes, count, tree ? NT_MODEL_BY_LAST : NT_MODEL_BY_TRAFFIC, tree);
    if (shown.way == WAYS - 1) {
        show_stat();
    } else {
        show_sessions(nt_export_formats[shown.way % 2], indexes, count);
    }
    free(indexes);
}

static void shown_begin(unsigned way)
{
    shown = (struct shown){ .way = way };
    nt_model_source(&shown.model);
}

/* When all was told, before events are. */
static void shown_linked(void)
{
    if (shown.error == 0) {
        show(nt_model_link(&shown.model));
        show(nt_model_link_sessions(&shown.model));
        show(nt_runs_new(&shown.model, NULL, NULL, &shown.runs));
    }
}

static void shown_event(const struct nt_event *event)
{
    uint32_t index = nt_model_program_index(&shown.model, event->program);
    if (shown.error == 0 && index != NT_MODEL_NONE) {
        show(nt_model_session_event(&shown.model, event));
        show(nt_runs_event(shown.runs, index, event));
    }
}

static void shown_end(void)
{
    if (shown.error == 0) {
        show(nt_model_link_sessions(&shown.model));
        show(nt_runs_finish(shown.runs));
    }
    if (shown.error == 0) {
        check_tree(shown.model.sessions);
        if (shown.way < WAYS) {
            show_all();
        }
    }
    nt_runs_free(shown.runs);
    nt_model_fini(&shown.model);
    shown = (struct shown){ 0 };
}

static void step(struct nt_source *source, unsigned way)
{
    static struct nt_event events[ROOM];
    struct nt_source_loss losses[LOSSES];
    const struct nt_source_sink sink = {
        .program = take_program,
        .kind = take_kind,
        .object = take_object,
        .bad = take_bad,
        .given = take_given,
        .session = take_session,
    };
    nt_source_live_between(source, between_looks, NULL);
    shown_begin(way);
    (void)nt_source_snapshot(source, &sink);
    shown_linked();
    meddle.every = 0;
    for (int turn = 0; turn < READS_MAX; turn++) {
        size_t lost = 0;
        int count = source->ops->read(source, events, ROOM, losses, LOSSES, &lost);
        if (count < 0 || count > ROOM || lost > LOSSES) {
            fail("a read that failed");
        }
        for (size_t i = 0; i < lost; i++) {
            take_loss(&as_read, &losses[i]);
        }
        for (int i = 0; i < count; i++) {
            take_event(&as_read, &events[i]);
            shown_event(&events[i]);
        }
        if (count == 0 && lost == 0) {
            break;
        }
    }
    shown_end();
}

/* ---- The file ---- */

static void make_objects(void)
{
    (void)build_object(&build, 0, 1);
    for (uint32_t slot = 1; slot < 5; slot++) {
        struct nt_layout_object *object = build_object(&build, slot, slot);
        build_own(object, 0, 1, slot, slot * 10);
        build_own(object, 1, 2, slot, slot * 20);
    }
    build.objects[3].life = NT_LIFE_CLOSED;
    build.objects[3].closed = 4000;
    build.objects[1].blocks = 4;
    struct nt_layout_tally_block *block = build_block(&build, 4, 1);
    build_tally(&block->tally[0], 3, 30);
    block->kind[0] = NT_LAYOUT_USER_KIND;
    block->next = 8;
    block = build_block(&build, 8, 1);
    build_tally(&block->tally[1], 3, 30);
    block->kind[1] = 4;
    block->histogram[1] = 20;
    struct nt_layout_histogram *histogram = build_histogram(&build, 20, 1, 4);
    histogram->count[0] = histogram->count[9] = histogram->count[NT_LAYOUT_BUCKETS - 1] = 1;
    build.objects[0].extras = 2;
    struct nt_layout_extra *extra = build_extra(&build, 2, 0, 1);
    extra->holds = NT_EXTRA_CLOSED | NT_EXTRA_BASE | NT_EXTRA_LINEAGE;
    extra->closed = extra->base = extra->lineage = (struct nt_layout_pair){ 100, 1000 };
    extra->next = 12;
    (void)build_extra(&build, 12, 0, 2);
    build.objects[2].notes = 100;
    (void)build_note(&build, 100, NT_NOTE_LINK_WRITE, "\001key", 102);
    (void)build_note(&build, 102, NT_NOTE_REMOTE_NODE, "node-2", 104);
    (void)build_note(&build, 104, NT_NOTE_REMOTE_PROCESS, "sink", 106);
    (void)build_note(&build, 106, NT_NOTE_LINK_READ, "\200key", 0);
    build.redo->slot = build.redo->generation = 4;
    build.redo->parent_generation = 1;
    build.redo->count = 1;
    build.redo->entries[0] = (struct nt_layout_redo_entry){ .kind = 1, .closed = { 104, 1040 } };
    build_kind(&build, 0, "trade");
}

static void make_rings(void)
{
    (void)build_ring(&build, 0);
    (void)build_ring(&build, 1);
    for (uint64_t at = 0; at < 200 * (uint64_t)NT_LAYOUT_SLOT; at += NT_LAYOUT_SLOT) {
        build_record(&build, 0, at);
    }
    uint64_t position = BUILD_RING + 3 * BUILD_CHUNK;
    for (uint32_t bytes = 0; bytes < 2000; bytes += 300) {
        position += build_long(&build, 1, position, bytes) * (uint64_t)NT_LAYOUT_SLOT;
        build_record(&build, 1, position);
        position += NT_LAYOUT_SLOT;
    }
}

static void make_sessions(void)
{
    (void)build_session(&build, 0, "root");
    (void)build_session(&build, 1, "part");
    build.objects[1].session = build.sessions[1].id;
    build.objects[2].session = 7;
    for (uint32_t i = 0; i < 2; i++) {
        (void)build_settler(&build, i);
        build.settlers[i].folded = 40;
        for (uint64_t k = 1; k < 40; k++) {
            (void)build_cell(&build, i, k % 3 != 0 ? k : build.sessions[k % 2].id, 1 + k % 2, k);
        }
        (void)build_move(&build, i, 40, 7, 2);
        (void)build_move(&build, i, 41, 8, 1);
        build_move(&build, i, 42, 9, 1)->commit |= NT_MOVE_GIVEN << 8;
        build_cells(&build, build.settlers[i].older)[1] = (struct nt_layout_cell){ .state = 9 << 16 | 1,
                                                                                   .sum = { 4, 5 } };
    }
    build.given[3] = UINT64_MAX;
}

static bool make_file(void)
{
    if (file < 0) {
        file = memfd_create("log", MFD_CLOEXEC);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        if (!build_init(&build)) {
            return false;
        }
        make_objects();
        make_rings();
        make_sessions();
    }
    return ftruncate(file, BUILD_SIZE) == 0;
}

/* ---- Changes ---- */

static void file_put(const void *data, size_t size, uint64_t offset)
{
    if (pwrite(file, data, size, (off_t)offset) != (ssize_t)size) {
        fail("the memory file cannot be written");
    }
}

static void file_cut(uint64_t size)
{
    if (ftruncate(file, (off_t)size) != 0) {
        fail("the memory file cannot be cut");
    }
}

static uint32_t take(struct input *input, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = 0; i < bytes && input->size > 0; i++) {
        value |= (uint32_t)*input->data << 8 * i;
        input->data++;
        input->size--;
    }
    return value;
}

static uint64_t target_offset(unsigned target)
{
    return target < 2 ? target * (uint64_t)NT_LAYOUT_PAGE : build.header->regions[target - 2].offset;
}

/* A slot as a writer would leave it, but for its kind, flags and argument. */
static void change_event(struct input *input, unsigned ring)
{
    uint64_t position = (uint64_t)take(input, 2) * NT_LAYOUT_SLOT;
    struct nt_layout_record record = { .object = 1, .generation = 1, .sum = { 1, 1 } };
    record.commit = build_commit(position, (uint8_t)take(input, 1), (uint8_t)take(input, 1));
    record.argument = take(input, 2);
    record.argument |= (uint64_t)take(input, 1) << 32;
    uint64_t at = target_offset(11) + ring * (uint64_t)BUILD_RING + position % BUILD_RING;
    file_put(&record, sizeof record, at);
}

static void change_bytes(struct input *input, unsigned target)
{
    uint64_t offset = target_offset(target) + take(input, 2) * 4;
    size_t count = take(input, 1) % 32;
    count = count < input->size ? count : input->size;
    file_put(input->data, count, offset);
    input->data += count;
    input->size -= count;
}

/* One change; false: a step is due. */
static bool change(struct input *input)
{
    unsigned first = take(input, 1);
    switch (first % 16) {
    case CHANGE_STEP:
        meddle = (struct meddle){ input, first / 16, first / 16 };
        return false;
    case CHANGE_CUT:
        file_cut(take(input, 1) * UINT64_C(1024));
        return true;
    case CHANGE_HOLE:
        (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(take(input, 1) * NT_LAYOUT_PAGE),
                        NT_LAYOUT_PAGE);
        return true;
    case CHANGE_EVENT:
        change_event(input, first / 16 % 2);
        return true;
    default:
        change_bytes(input, first % 16);
        return true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { data, size };
    if (!make_file()) {
        return 0;
    }
    if (size > 0 && data[0] == WHOLE_FILE) {
        file_cut(0);
        file_put(data + 1, size - 1, 0);
        input.size = 0;
    } else {
        (void)build_write(&build, file);
    }
    const char *files[] = { path };
    const struct nt_live_options options = { .files = files, .file_count = 1 };
    const struct nt_merge_options merge_options = { .hold_ns = 100, .memory = 1 };
    const struct nt_gaps_options gaps_options = { .patience_ns = 100, .objects = 3 };
    struct nt_source *source = NULL, *merged = NULL;
    struct nt_merge *merge = NULL;
    struct nt_gaps *gaps = NULL;
    bool open = nt_source_live_open(&options, &source) == 0 && nt_source_live_open(&options, &merged) == 0 &&
                nt_merge_new(merged, &merge_options, &merge) == 0 && nt_gaps_new(&gaps_options, &gaps) == 0;
    meddle.every = 0;
    as_read = as_merged = (struct told){ .program = UINT32_MAX };
    unsigned way = size > 0 ? data[size / 2] : 0;
    for (int steps = 0; open && steps < STEPS_MAX; steps++) {
        while (input.size > 0 && change(&input)) {
        }
        step(source, way++ % (2 * WAYS));
        step_merged(merge, gaps);
        if (input.size == 0) {
            break;
        }
    }
    nt_gaps_free(gaps);
    nt_merge_free(merge);
    nt_source_free(merged);
    nt_source_free(source);
    return 0;
}
