/* SPDX-License-Identifier: BSD-3-Clause */
/* made_recording SEED FILE: writes a recording of events as odd as events get: many rings, losses, gaps in counts,
   counts that come late or twice, masks, shared objects, merged events, fields, times that go back, small blocks,
   objects that no snapshot tells. What is odd, and how often, is the seed's. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nt/log_layout.h>

#include "source/recording/recording.h"

enum { OBJECTS = 64, KINDS = 3, RINGS = 24, MASK = 13, START = 1700000000 };

static struct {
    struct nt_source source;
    uint64_t seed;
    uint32_t programs, objects, rings, rows, block, sessions;
    unsigned loss, gap, back, shared, late, merged, data, mask, quiet; /* one in so many; 0: never */
    uint64_t time, counts[OBJECTS][KINDS], totals[OBJECTS][KINDS], positions[RINGS], masks[OBJECTS], changes;
} made;

static uint64_t dice(void)
{
    made.seed ^= made.seed << 13;
    made.seed ^= made.seed >> 7;
    made.seed ^= made.seed << 17;
    return made.seed * UINT64_C(0x2545f4914f6cdd1d) >> 11;
}

static bool now_and_then(unsigned every)
{
    return every != 0 && dice() % every == 0;
}

static unsigned some(unsigned most)
{
    return dice() % 2 != 0 ? 0 : 1 + (unsigned)(dice() % most);
}

static void plan(uint64_t seed)
{
    made.seed = seed * 2 + 1;
    for (int i = 0; i < 20; i++) {
        (void)dice();
    }
    made.programs = 1 + (uint32_t)(dice() % 3);
    made.objects = 4 + (uint32_t)(dice() % (OBJECTS - 4));
    made.rings = 1 + (uint32_t)(dice() % (dice() % 2 != 0 ? 6 : RINGS));
    made.rows = 200 + (uint32_t)(dice() % 12000);
    made.block = 20 + (uint32_t)(dice() % (dice() % 2 != 0 ? 300 : 9000));
    made.sessions = 1 + (uint32_t)(dice() % 40);
    made.loss = some(400);
    made.gap = some(2000);
    made.back = dice() % 3 == 0 ? some(3000) : 0;
    made.shared = dice() % 3 == 0 ? some(4) : 0;
    made.late = dice() % 3 == 0 ? some(2000) : 0;
    made.merged = some(30);
    made.data = some(30);
    made.mask = some(500);
    made.quiet = some(300);
    made.time = START * UINT64_C(1000000000);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        made.masks[i] = ~UINT64_C(0);
    }
}

/* ---- What is told ---- */

static int tell_objects(const struct nt_source_sink *sink)
{
    int error = 0;
    for (uint32_t i = 0; i + 1 < made.objects && error == 0; i++) { /* but the last */
        char name[32];
        int size = snprintf(name, sizeof name, "channel-%u", i % 50);
        const struct nt_source_object object = { .program = i % made.programs,
                                                 .slot = i + 1,
                                                 .generation = 1,
                                                 .kind = 3,
                                                 .name = { name, (size_t)size },
                                                 .mask = made.masks[i] };
        error = sink->object(sink->arg, &object);
    }
    return error;
}

static int tell(struct nt_source *source, const struct nt_source_sink *sink)
{
    int error = 0;
    (void)source;
    for (uint32_t i = 0; i < made.programs && error == 0; i++) {
        char name[32];
        int size = snprintf(name, sizeof name, "worker-%u", i);
        const struct nt_source_program program = { .number = i,
                                                   .id = 77 + i,
                                                   .pid = 100 + i,
                                                   .state = NT_PROGRAM_EXITED,
                                                   .node = { "node", 4 },
                                                   .name = { name, (size_t)size },
                                                   .path = name };
        error = sink->program(sink->arg, &program);
    }
    return error == 0 ? tell_objects(sink) : error;
}

static const struct nt_source_ops ops = { .name = "made", .snapshot = tell };

/* ---- Events ---- */

static uint64_t session_of(uint32_t row)
{
    if (now_and_then(20)) {
        return 0;
    }
    uint64_t number = row / 200 + dice() % made.sessions;
    return made.block % 2 != 0 ? number * UINT64_C(0x9e3779b97f4a7c15) : UINT64_C(0x1234) << 48 | number;
}

static void change_mask(uint32_t object, struct nt_event *event)
{
    uint64_t before = made.masks[object];
    made.masks[object] ^= UINT64_C(1) << (1 + dice() % KINDS);
    *event = (struct nt_event){ .time = made.time,
                                .ticks = made.time * 3,
                                .value = made.masks[object],
                                .argument = before,
                                .position = made.changes++,
                                .program = object % made.programs,
                                .ring = NT_EVENT_NO_RING,
                                .object = object + 1,
                                .generation = 1,
                                .merged = 1,
                                .kind = MASK,
                                .setter = (uint32_t)(dice() % 2) };
}

static void count(uint32_t row, struct nt_event *event)
{
    static const uint8_t fields[100] = "what a program says of it";
    uint32_t object = (uint32_t)(dice() % made.objects * (dice() % made.objects) / made.objects);
    uint32_t kind = (uint32_t)(dice() % KINDS);
    uint32_t ring = (object + (uint32_t)now_and_then(10)) % made.rings, merged = 1;
    if ((made.masks[object] >> (1 + kind) & 1) == 0) {
        made.counts[object][kind]++; /* goes on, unseen */
        kind = (kind + 1) % KINDS;
    }
    if (now_and_then(made.gap)) {
        made.counts[object][kind] += 1 + dice() % 5;
    }
    if (now_and_then(made.merged)) {
        merged = 1 + (uint32_t)(dice() % 9);
    }
    uint64_t value = dice() % 3000, counted = made.counts[object][kind] += merged;
    if (now_and_then(made.back) && counted > 12) {
        counted -= 1 + dice() % 3;
        merged = 1;
    }
    *event = (struct nt_event){ .time = made.time - (now_and_then(made.late) ? dice() % 200000000 : 0),
                                .ticks = made.time * 3,
                                .session = session_of(row),
                                .value = value,
                                .count = counted,
                                .total = made.totals[object][kind] += value,
                                .argument = dice() % 4 == 0 ? dice() % 100 : 0,
                                .position = made.positions[ring],
                                .program = object % made.programs,
                                .ring = ring,
                                .object = object + 1,
                                .generation = 1,
                                .merged = merged,
                                .kind = (uint16_t)(1 + kind),
                                .flags = made.shared != 0 && object % made.shared == 0 ? NT_EVENT_SHARED : 0 };
    if (now_and_then(made.data)) {
        event->data = fields;
        event->data_size = 1 + (uint32_t)(dice() % 99);
        event->flags |= NT_RECORD_DATA;
        event->argument = (uint64_t)(1 + (event->data_size + 55) / 56) << 32 | event->data_size;
    }
    made.positions[ring] += event->data_size > 0 ? 64 * (event->argument >> 32) : 64;
}

static int lose(struct nt_recording *recording)
{
    uint32_t ring = (uint32_t)(dice() % made.rings);
    const struct nt_merge_loss loss = { { .program = ring % made.programs,
                                          .ring = ring,
                                          .from = made.positions[ring],
                                          .to = made.positions[ring] + 640,
                                          .count = 10 },
                                        made.time - 5000,
                                        made.time + 5000 };
    made.positions[ring] += 640;
    return nt_recording_loss(recording, &loss);
}

static int write_row(struct nt_recording *recording, uint32_t row)
{
    struct nt_event event;
    made.time += dice() % 20000 + (now_and_then(made.quiet) ? 30000000 : 0);
    int error = now_and_then(made.loss) ? lose(recording) : 0;
    if (now_and_then(made.mask)) {
        change_mask((uint32_t)(dice() % made.objects), &event);
    } else {
        count(row, &event);
    }
    if (error == 0) {
        error = nt_recording_event(recording, &event, event.ring == NT_EVENT_NO_RING ? 0 : 500 + event.ring);
    }
    return error == 0 && row % made.block == made.block - 1 ? nt_recording_flush(recording) : error;
}

int main(int argc, char **argv)
{
    struct nt_recording *recording;
    if (argc != 3) {
        return 2;
    }
    plan(strtoull(argv[1], NULL, 10));
    made.source.ops = &ops;
    int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || nt_recording_new(file, made.time, false, &recording) != 0) {
        return 1;
    }
    int error = nt_recording_tables(recording, &made.source, made.time, NULL, NULL);
    for (uint32_t row = 0; row < made.rows && error == 0; row++) {
        error = write_row(recording, row);
    }
    if (error == 0) {
        error = dice() % 4 == 0 ? nt_recording_flush(recording) : nt_recording_finish(recording, made.time);
    }
    nt_recording_free(recording);
    return error == 0 && close(file) == 0 ? 0 : 1;
}
