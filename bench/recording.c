/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings of a busy program's events (traffic.h), beside its log's records of 64 bytes compressed by zstd at its
   fastest level: bytes an event, and how many a second one core writes and reads, hashes included, files left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#include "harness.h"
#include "source/recording/block.h"
#include "source/recording/pack.h"
#include "traffic.h"

enum { BLOCKS = 4, EACH = (int)RECORDING_EVENTS_MAX, EVENTS = BLOCKS * EACH, BATCH = 256, RECORD = 64 };

struct block {
    uint8_t *summary, *body, *packed;
    size_t summary_size, body_size, packed_size;
};

struct kept {
    struct traffic traffic;
    struct nt_event *events;
    uint8_t *records; /* as a log has them */
    struct recording_encoder *encoder;
    struct recording_decoder *decoder;
    struct nt_buffer summary, body;
    uint8_t *room;
    struct block blocks[BLOCKS];
    uint64_t sum;
    bool wrong;
};

/* ---- Both ways ---- */

static void encode_block(struct kept *kept, size_t block)
{
    for (size_t i = 0; i < EACH; i++) {
        kept->wrong |= recording_encoder_event(kept->encoder, &kept->events[block * EACH + i], 7) != 0;
    }
    nt_buffer_clear(&kept->summary);
    nt_buffer_clear(&kept->body);
    recording_encoder_finish(kept->encoder, &kept->summary, &kept->body);
    kept->wrong |= kept->summary.error != 0 || kept->body.error != 0;
    kept->sum ^= XXH3_64bits(kept->summary.data, sizeof(struct recording_head)); /* all others are in it */
}

static void encode(void *state, uint64_t operations)
{
    for (size_t i = 0; i < operations / EACH; i++) {
        encode_block(state, i % BLOCKS);
    }
}

static void decode(void *state, uint64_t operations)
{
    struct kept *kept = state;
    static struct nt_event events[BATCH];
    for (size_t i = 0; i < operations / EACH; i++) {
        const struct block *block = &kept->blocks[i % BLOCKS];
        int count;
        const struct recording_parts parts = { .summary = block->summary,
                                               .body = block->body,
                                               .summary_size = block->summary_size,
                                               .body_size = block->body_size };
        kept->sum ^= XXH3_64bits(block->summary, sizeof(struct recording_head)); /* all others are in it */
        kept->wrong |= recording_decoder_begin(kept->decoder, &parts) != 0;
        while ((count = recording_decoder_next(kept->decoder, events, BATCH)) > 0) {
            kept->sum += events[count - 1].total;
        }
        kept->wrong |= recording_decoder_at(kept->decoder) != EACH;
    }
}

static void compress(void *state, uint64_t operations)
{
    struct kept *kept = state;
    for (size_t i = 0; i < operations / EACH; i++) {
        kept->sum += ZSTD_compress(kept->room, ZSTD_compressBound((size_t)EACH * RECORD),
                                   kept->records + i % BLOCKS * EACH * RECORD, (size_t)EACH * RECORD, 1);
    }
}

static void expand(void *state, uint64_t operations)
{
    struct kept *kept = state;
    for (size_t i = 0; i < operations / EACH; i++) {
        const struct block *block = &kept->blocks[i % BLOCKS];
        kept->wrong |= ZSTD_decompress(kept->room, (size_t)EACH * RECORD, block->packed, block->packed_size) !=
                       (size_t)EACH * RECORD;
    }
}

/* ---- What is measured ---- */

static void put_record(uint8_t *at, const struct nt_event *event)
{
    const uint64_t words[RECORD / 8] = {
        event->ticks,    event->kind | (uint64_t)event->flags << 8 | (event->position / 64 + 1) << 16,
        event->session,  event->value,
        event->count,    event->total,
        event->argument, event->object | (uint64_t)event->generation << 32
    };
    memcpy(at, words, sizeof words);
}

static uint8_t *copy_of(const struct nt_buffer *buffer)
{
    uint8_t *copy = calloc(1, buffer->size + PACK_SLACK);
    if (copy != NULL) {
        memcpy(copy, buffer->data, buffer->size);
    }
    return copy;
}

static bool kept_init(struct kept *kept)
{
    size_t room = ZSTD_compressBound((size_t)EACH * RECORD);
    kept->events = malloc(EVENTS * sizeof *kept->events);
    kept->records = malloc((size_t)EVENTS * RECORD);
    kept->room = malloc(room);
    if (kept->events == NULL || kept->records == NULL || kept->room == NULL ||
        recording_encoder_new(&kept->encoder) != 0 || recording_decoder_new(&kept->decoder) != 0) {
        return false;
    }
    traffic_init(&kept->traffic, 1);
    traffic_make(&kept->traffic, kept->events, EVENTS);
    for (size_t i = 0; i < EVENTS; i++) {
        put_record(kept->records + i * RECORD, &kept->events[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        struct block *block = &kept->blocks[i];
        encode_block(kept, i);
        block->summary = copy_of(&kept->summary);
        block->body = copy_of(&kept->body);
        block->summary_size = kept->summary.size;
        block->body_size = kept->body.size;
        size_t size = ZSTD_compress(kept->room, room, kept->records + i * EACH * RECORD, (size_t)EACH * RECORD, 1);
        block->packed = malloc(size);
        block->packed_size = size;
        if (block->summary == NULL || block->body == NULL || block->packed == NULL || ZSTD_isError(size)) {
            return false;
        }
        memcpy(block->packed, kept->room, size);
    }
    return true;
}

static void report_size(const struct kept *kept)
{
    struct bench_samples *size = bench_memory(sizeof *size), *raw = bench_memory(sizeof *raw);
    for (size_t i = 0; i < BLOCKS; i++) {
        bench_samples_add(size, (double)(kept->blocks[i].summary_size + kept->blocks[i].body_size + 64) / EACH);
        bench_samples_add(raw, (double)kept->blocks[i].packed_size / EACH);
    }
    size->quiet = raw->quiet = 1;
    bench_report(&(struct bench_row){ .name = "zstd-raw-size", .unit = "B" }, raw, NULL);
    bench_report(&(struct bench_row){ .name = "record-size", .unit = "B", .against = "zstd-raw-size", .max_median = 8 },
                 size, raw);
}

/* ns an event as M events/s */
static struct bench_samples *rate_of(const struct bench_samples *each)
{
    struct bench_samples *rate = bench_memory(sizeof *rate);
    for (unsigned i = 0; i < each->count; i++) {
        bench_samples_add(rate, 1000 / each->values[i]);
    }
    rate->quiet = each->quiet;
    return rate;
}

static void measure_rate(struct kept *kept, const char *name, const char *against, double least,
                         void (*const runs[2])(void *state, uint64_t operations))
{
    struct bench_samples *each = bench_memory(2 * sizeof *each);
    const struct bench_variant variants[] = { { name, runs[0], kept, NULL }, { against, runs[1], kept, NULL } };
    const struct bench_plan plan = {
        .clock = BENCH_CLOCK_THREAD_CPU, .operations = EVENTS, .rounds = 15, .batches = 2
    };
    bench_compare(&plan, variants, 2, each);
    struct bench_samples *rate = rate_of(&each[0]), *raw = rate_of(&each[1]);
    bench_report(&(struct bench_row){ .name = against, .unit = "M/s" }, raw, NULL);
    bench_report(&(struct bench_row){ .name = name, .unit = "M/s", .against = against, .min_median = least }, rate,
                 raw);
}

static int measure_blocks(void)
{
    static struct kept kept;
    if (!kept_init(&kept)) {
        return -1;
    }
    report_size(&kept);
    measure_rate(&kept, "record-encode", "zstd-raw-encode", 10,
                 (void (*const[2])(void *, uint64_t)){ encode, compress });
    measure_rate(&kept, "record-decode", "zstd-raw-decode", 40, (void (*const[2])(void *, uint64_t)){ decode, expand });
    if (kept.wrong) {
        fprintf(stderr, "bench: record: what was written is not what was read\n");
    }
    return kept.wrong ? -1 : 0;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        { "record-size record-encode record-decode zstd-raw-size zstd-raw-encode zstd-raw-decode", measure_blocks },
    };
    return bench_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
