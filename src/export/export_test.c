/* SPDX-License-Identifier: BSD-3-Clause */
/* All formats over models from arrays: the exact shape of JSON, exact numbers, text tables, loss, hostile names,
   deep and large trees, and selections. */
#include "export/export.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <nt/log_layout.h>

#include "base/text.h"
#include "export/parts.h"
#include "model/feed_test.h"

#define SECOND UINT64_C(1000000000)

static const struct nt_source_tally orders_sums[] = { { 1, 3, 30, 20, SECOND }, { 2, 3, 10, 5, 0 } };
static const struct nt_source_tally old_sums[] = { { 1, 7, 70, 30, SECOND } };
static const struct nt_source_tally gone_sums[] = { { 5, 2, 9, 8, SECOND }, { 15, 2, 0, 0, SECOND } };
static const struct nt_source_tally user_sums[] = { { 64, 1, UINT64_MAX, UINT64_MAX, 5 }, { 70, 0, 0, 0, 0 } };

static void add(struct nt_model *model, const struct nt_source_object *object)
{
    assert_int_equal(nt_model_add_object(model, object), 0);
}

/* n/p: in (endpoint, with closed sums) / orders (epoch 1 of two), spare (closed), and an orphan. */
static void small_model(struct nt_model *model)
{
    struct nt_source_program program = feed_program(0, "n", "p", 7);
    const struct nt_source_kind kind = { .kind = 64, .name = FEED_BYTES("checkout") };
    program.overwritten = 5;
    program.dropped = 2;
    assert_int_equal(nt_model_add_program(model, &program), 0);
    assert_int_equal(nt_model_add_kind(model, &kind), 0);
    struct nt_source_object root = feed_object(0, 0, 0, "p"), in = feed_object(0, 1, 0, "in"),
                            first = feed_object(0, 2, 1, "orders"), second = first,
                            spare = feed_object(0, 4, 1, "spare"), orphan = feed_object(0, 5, 77, "orphan");
    in.kind = 4;
    in.gone = gone_sums;
    in.gone_count = 2;
    first.closed = spare.closed = true;
    first.closed_at = spare.closed_at = SECOND;
    first.tallies = spare.tallies = old_sums;
    first.tally_count = spare.tally_count = 1;
    second.slot = 3;
    second.opened_at = 1003;
    second.previous = 2;
    second.previous_generation = 1;
    second.epoch = 1;
    second.tallies = orders_sums;
    second.tally_count = 2;
    second.lineage = old_sums;
    second.lineage_count = 1;
    second.session = 0xfeed;
    orphan.kind = 99;
    orphan.discipline = 1;
    orphan.described = 3;
    orphan.tallies = user_sums;
    orphan.tally_count = 2;
    orphan.base = old_sums;
    orphan.base_count = 1;
    add(model, &root);
    add(model, &in);
    add(model, &first);
    add(model, &second);
    add(model, &spare);
    add(model, &orphan);
    assert_int_equal(nt_model_link(model), 0);
}

typedef void (*writer)(const struct nt_export_input *input, struct nt_buffer *out);

static char *written(writer write, const struct nt_export_input *input)
{
    struct nt_buffer out = { 0 };
    write(input, &out);
    nt_buffer_byte(&out, '\0');
    assert_int_equal(out.error, 0);
    return out.data;
}

static void assert_written(writer write, const struct nt_export_input *input, const char *expected)
{
    char *text = written(write, input);
    assert_string_equal(text, expected);
    free(text);
}

static void select_paths(struct nt_model_selection *selection, const struct nt_model *model, const char *const *paths)
{
    assert_int_equal(nt_model_selection_init(selection, model), 0);
    for (; *paths; paths++) {
        struct nt_model_path *path;
        const char *reason;
        assert_int_equal(nt_model_path_new(*paths, strlen(*paths), &path, &reason), 0);
        assert_true(nt_model_select(selection, path, false) > 0);
        nt_model_path_free(path);
    }
    assert_int_equal(nt_model_selection_close(selection), 0);
}

#define PROGRAM                                                                                                      \
    "\"id\":\"000000000000abc0\",\"pid\":7,\"name\":\"p\",\"state\":\"running\",\"lost\":7,\"overwritten\":5,"       \
    "\"dropped\":2,\"refused_objects\":0,\"refused_tallies\":0,\"events\":0,\"program\":\"exe\",\"host\":\"host\","  \
    "\"domain\":\"domain\",\"uid\":0,\"started\":1000000000,\"replaced\":false,\"rings\":0,\"open\":0,\"backed\":0," \
    "\"cap\":0,\"path\":\"/logs/x.ntlog\""
#define OBJECT(id, kind, name, state) \
    "{\"id\":\"" id "\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"state\":\"" state "\","
#define NO_SESSION "\"session\":\"0000000000000000\","
#define MASK "\"mask\":[\"write\",\"read\"],"
#define OLD "{\"count\":7,\"total\":70,\"max\":30,\"mean\":10,\"last\":1000000000}"

static void json_tree(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    small_model(&model);
    const struct nt_export_input input = { .model = &model };
    assert_written(
        nt_export_json.stat, &input,
        "{\"nodes\":[\n{\"name\":\"n\",\"processes\":[\n{" PROGRAM
        ",\"objects\":[\n" OBJECT("0000000100000000", "process", "p", "open") NO_SESSION MASK
        "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1000,\"tallies\":{},\"closed\":{},\"objects\":["
        "\n" OBJECT("0000000100000001", "endpoint", "in", "open") NO_SESSION MASK
        "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1001,\"tallies\":{},"
        "\"closed\":{\"wait\":{\"count\":2,\"total\":9,\"max\":8,\"mean\":4.5,\"last\":1000000000},"
        "\"open\":{\"count\":2,\"total\":0,\"max\":0,\"mean\":0,\"last\":1000000000}},\"objects\":[\n" OBJECT(
            "0000000100000002", "channel", "orders", "superseded") NO_SESSION MASK
        "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1002,\"closed_at\":1000000000,\"tallies\":{"
        "\"write\":" OLD "},\"closed\":{},\"objects\":[]},\n" OBJECT(
            "0000000100000003", "channel", "orders",
            "open") "\"session\":\"000000000000feed\"," MASK
                    "\"epoch\":1,\"discipline\":\"exclusive\",\"opened_at\":1003,\"previous\":\"0000000100000002\","
                    "\"lineage\":{\"write\":{\"count\":10,\"total\":100,\"mean\":10},\"read\":{\"count\":3,\"total\":"
                    "10,"
                    "\"mean\":3.333333}},"
                    "\"tallies\":{\"write\":{\"count\":3,\"total\":30,\"max\":20,\"mean\":10,\"last\":1000000000},"
                    "\"read\":{\"count\":3,\"total\":10,\"max\":5,\"mean\":3.333333,\"last\":0}},\"closed\":{},"
                    "\"objects\":[]},\n" OBJECT("0000000100000004", "channel", "spare", "closed") NO_SESSION MASK
        "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1004,\"closed_at\":1000000000,\"tallies\":{"
        "\"write\":" OLD
        "},\"closed\":{},\"objects\":[]}]}]},\n" OBJECT("0000000100000005", "kind-99", "orphan", "open") NO_SESSION MASK
        "\"epoch\":0,\"discipline\":\"shared\",\"opened_at\":1005,\"parent\":\"000000010000004d\",\"forked\":true,"
        "\"late\":true,\"base\":{\"write\":{\"count\":7,\"total\":70,\"mean\":10}},"
        "\"tallies\":{\"checkout\":{\"count\":1,\"total\":18446744073709551615,\"max\":18446744073709551615,"
        "\"mean\":18446744073709551615,\"last\":5},\"kind-70\":{\"count\":0,\"total\":0,\"max\":0,\"mean\":null,"
        "\"last\":0}},\"closed\":{},\"objects\":[]}]}]}],\"sessions\":[]}\n");
    nt_model_fini(&model);
}

static void json_branches(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    small_model(&model);
    select_paths(&selection, &model, (const char *const[]){ "/n/p/in/spare/write", NULL });
    const struct nt_export_input input = { .model = &model, .selection = &selection };
    assert_written(nt_export_json.stat, &input,
                   "{\"nodes\":[\n{\"name\":\"n\",\"processes\":[\n{" PROGRAM
                   ",\"objects\":[\n" OBJECT("0000000100000000", "process", "p", "open") NO_SESSION MASK
                   "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1000,\"ancestor\":true,\"tallies\":{},"
                   "\"closed\":{},\"objects\":[\n" OBJECT("0000000100000001", "endpoint", "in", "open") NO_SESSION MASK
                   "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1001,\"ancestor\":true,\"tallies\":{},"
                   "\"closed\":{},\"objects\":[\n" OBJECT("0000000100000004", "channel", "spare", "closed")
                       NO_SESSION MASK
                   "\"epoch\":0,\"discipline\":\"exclusive\",\"opened_at\":1004,\"closed_at\":1000000000,"
                   "\"tallies\":{\"write\":" OLD "},\"closed\":{},\"objects\":[]}]}]}]}]}],\"sessions\":[]}\n");
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

static void numbers(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    small_model(&model);
    select_paths(&selection, &model, (const char *const[]){ "orphan/checkout/total", NULL });
    struct nt_export_input input = { .model = &model, .selection = &selection };
    assert_written(nt_export_text.numbers, &input, "18446744073709551615\n");
    assert_written(nt_export_json.numbers, &input, "18446744073709551615\n");
    nt_model_selection_fini(&selection);
    select_paths(&selection, &model,
                 (const char *const[]){ "orders/read/mean", "orders/write/lineage_total", "orphan/kind-70/mean",
                                        "orphan/write/base_count", "in/wait/closed_total", NULL });
    assert_written(nt_export_text.numbers, &input,
                   "n/p/in/orders/read/mean\t3.333333\nn/p/in/orders/write/lineage_total\t100\n"
                   "n/p/orphan/kind-70/mean\t-\nn/p/orphan/write/base_count\t7\nn/p/in/wait/closed_total\t9\n");
    assert_written(nt_export_json.numbers, &input,
                   "[\n{\"path\":\"n/p/in/orders/read/mean\",\"value\":3.333333},\n"
                   "{\"path\":\"n/p/in/orders/write/lineage_total\",\"value\":100},\n"
                   "{\"path\":\"n/p/orphan/kind-70/mean\",\"value\":null},\n"
                   "{\"path\":\"n/p/orphan/write/base_count\",\"value\":7},\n"
                   "{\"path\":\"n/p/in/wait/closed_total\",\"value\":9}]\n");
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

static void exact_numbers(void **state)
{
    (void)state;
    static const uint64_t values[] = { 0, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, UINT64_MAX };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct nt_model model = { 0 };
        struct nt_source_program program = feed_program(0, "n", "p", 7);
        const struct nt_source_tally sums[] = { { 1, values[i], values[i], values[i], values[i] } };
        struct nt_source_object object = feed_object(0, 1, 0, "x");
        object.tallies = sums;
        object.tally_count = 1;
        assert_int_equal(nt_model_add_program(&model, &program), 0);
        add(&model, &object);
        assert_int_equal(nt_model_link(&model), 0);
        const struct nt_export_input input = { .model = &model };
        char expected[256];
        char *json = written(nt_export_json.stat, &input), *text = written(nt_export_text.stat, &input);
        (void)snprintf(expected, sizeof expected, "{\"count\":%lu,\"total\":%lu,\"max\":%lu,\"mean\":%s,\"last\":%lu}",
                       values[i], values[i], values[i], values[i] ? "1" : "null", values[i]);
        assert_non_null(strstr(json, expected));
        (void)snprintf(expected, sizeof expected, " %lu bytes", values[i]);
        assert_non_null(strstr(text, expected));
        free(json);
        free(text);
        nt_model_fini(&model);
    }
}

static void text_tree(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    small_model(&model);
    struct nt_export_input input = { .model = &model, .now = 4 * SECOND };
    assert_written(nt_export_text.stat, &input,
                   "lost: n/p.7: 5 events overwritten, 2 events dropped; totals stay exact\n"
                   "NODE/PROGRAM/OBJECT       EVENT     COUNT                 TOTAL                         MAX"
                   "                     MEAN    LAST\n"
                   "n\n"
                   "  p  pid 7, running\n"
                   "    in  endpoint\n"
                   "      (2 closed and earlier ones)\n"
                   "                          write        14                   140 bytes                    30"
                   "                    10.00    3.0s\n"
                   "                          wait          2                     9 ns                        8"
                   "                     4.50    3.0s\n"
                   "      orders  channel, epoch 1\n"
                   "                          write         3                    30 bytes                    20"
                   "                    10.00    3.0s\n"
                   "                          read          3                    10 bytes                     5"
                   "                     3.33\n"
                   "        (all 2 epochs)    write        10                   100 bytes                      "
                   "                    10.00\n"
                   "                          read          3                    10 bytes                      "
                   "                     3.33\n"
                   "    orphan  kind-99, parent unknown\n"
                   "                          checkout      1  18446744073709551615        18446744073709551615"
                   "  18446744073709551615.00    3.9s\n"
                   "                          kind-70       0                     0                           0\n"
                   "      (before the fork, at most)\n"
                   "                          write         7                    70 bytes                      "
                   "                    10.00\n");
    input.all = true;
    char *all = written(nt_export_text.stat, &input);
    assert_non_null(strstr(all, "orders  channel, epoch 0, superseded"));
    assert_non_null(strstr(all, "spare  channel, closed"));
    assert_non_null(strstr(all, "(closed earlier)"));
    assert_non_null(strstr(all, "open "));
    free(all);
    nt_model_fini(&model);
}

/* What was counted before the log knew an object is in the sums of its lineage, also of kinds that nothing else has. */
static void bases(void **state)
{
    (void)state;
    static const struct nt_source_tally base[] = { { 1, 100, 1000, 0, 0 }, { 3, 4, 40, 0, 0 } };
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_source_object object = feed_object(0, 1, 0, "x");
    object.parent_generation = 0;
    object.epoch = 1;
    object.tallies = orders_sums;
    object.tally_count = 2;
    object.lineage = old_sums;
    object.lineage_count = 1;
    object.base = base;
    object.base_count = 2;
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    add(&model, &object);
    assert_int_equal(nt_model_link(&model), 0);
    const struct nt_export_input input = { .model = &model };
    char *json = written(nt_export_json.stat, &input);
    assert_non_null(strstr(json, "\"base\":{\"write\":{\"count\":100,\"total\":1000,\"mean\":10},"
                                 "\"ping\":{\"count\":4,\"total\":40,\"mean\":10}},"
                                 "\"lineage\":{\"write\":{\"count\":110,\"total\":1100,\"mean\":10},"
                                 "\"read\":{\"count\":3,\"total\":10,\"mean\":3.333333},"
                                 "\"ping\":{\"count\":4,\"total\":40,\"mean\":10}},"));
    assert_written(nt_export_text.stat, &input,
                   "NODE/PROGRAM/OBJECT      EVENT  COUNT  TOTAL        MAX   MEAN    LAST\n"
                   "n\n"
                   "  p  pid 7, running\n"
                   "    x  channel, epoch 1  write      3     30 bytes   20  10.00\n"
                   "                         read       3     10 bytes    5   3.33\n"
                   "      (all 2 epochs)     write    110   1100 bytes       10.00\n"
                   "                         read       3     10 bytes        3.33\n"
                   "                         ping       4     40 ns          10.00\n"
                   "      (before the log)   write    100   1000 bytes       10.00\n"
                   "                         ping       4     40 ns          10.00\n");
    free(json);
    struct nt_model_selection selection;
    select_paths(&selection, &model, (const char *const[]){ "x/ping/lineage_total", "x/write/lineage_count", NULL });
    const struct nt_export_input picked = { .model = &model, .selection = &selection };
    assert_written(nt_export_text.numbers, &picked, "n/p/x/ping/lineage_total\t40\nn/p/x/write/lineage_count\t110\n");
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

/* Who is at the other end, and by which keys it is known. */
static void links(void **state)
{
    (void)state;
    static const struct nt_source_link ends[] = {
        { NT_NOTE_LINK_WRITE, NT_PAIR_COUNT, FEED_BYTES("\001\377\000\"z") },
        { NT_NOTE_LINK_READ, NT_PAIR_ID, FEED_BYTES("\200") },
        { NT_NOTE_LINK_WRITE | NT_NOTE_LINK_READ, NT_PAIR_BYTES, FEED_BYTES("\177") },
    };
    static const struct nt_source_rare rare[] = {
        { FEED_BYTES("n\033[2J"), FEED_BYTES("sink\""), ends, 2, NULL, 0 },
        { FEED_BYTES("alpha"), { NULL, 0 }, NULL, 0, NULL, 0 },
        { { NULL, 0 }, FEED_BYTES("beta"), ends + 2, 1, NULL, 0 },
    };
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct nt_source_object object = feed_object(0, i + 1, 0, "x");
        object.parent_generation = 0;
        object.rare = i < 3 ? &rare[i] : NULL;
        add(&model, &object);
    }
    assert_int_equal(nt_model_link(&model), 0);
    const struct nt_export_input input = { .model = &model };
    char *json = written(nt_export_json.stat, &input);
    assert_non_null(strstr(json, "\"opened_at\":1001,\"remote_node\":\"n\\u001b[2J\",\"remote_process\":\"sink\\\"\","
                                 "\"links\":[{\"direction\":\"write\",\"pairing\":\"count\",\"type\":\"tcp\","
                                 "\"key\":\"01ff00227a\"},"
                                 "{\"direction\":\"read\",\"pairing\":\"id\",\"type\":\"own\",\"key\":\"80\"}],"
                                 "\"tallies\":{}"));
    assert_non_null(strstr(json, "\"opened_at\":1002,\"remote_node\":\"alpha\",\"tallies\":{}"));
    assert_non_null(strstr(json, "\"opened_at\":1003,\"remote_process\":\"beta\","
                                 "\"links\":[{\"direction\":\"both\",\"pairing\":\"bytes\",\"key\":\"7f\"}],"
                                 "\"tallies\":{}"));
    assert_non_null(strstr(json, "\"opened_at\":1004,\"tallies\":{}"));
    char *text = written(nt_export_text.stat, &input);
    assert_non_null(strstr(text, "    x  channel, to n\\x1b[2J/sink\"\n"));
    assert_non_null(strstr(text, "    x  channel, to node alpha\n"));
    assert_non_null(strstr(text, "    x  channel, to process beta\n"));
    assert_non_null(strstr(text, "    x  channel\n"));
    free(json);
    free(text);
    nt_model_fini(&model);
}

static void histograms(void **state)
{
    (void)state;
    static const struct nt_source_bucket buckets[] = { { 0, 0, 1 }, { 96, 104, 1 }, { 940, 1024, UINT64_MAX } };
    static const struct nt_source_histogram kept[] = { { 2, buckets, 3 }, { 3, buckets + 1, 1 } };
    static const struct nt_source_rare rare = { .histograms = kept, .histogram_count = 2 };
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    struct nt_source_object object = feed_object(0, 1, 0, "x");
    object.parent_generation = 0;
    object.tallies = orders_sums;
    object.tally_count = 2;
    object.base = old_sums;
    object.base_count = 1;
    object.rare = &rare;
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    add(&model, &object);
    assert_int_equal(nt_model_link(&model), 0);
    const struct nt_export_input input = { .model = &model };
    char *json = written(nt_export_json.stat, &input);
    assert_non_null(strstr(json, "\"tallies\":{\"write\":{\"count\":3,\"total\":30,\"max\":20,\"mean\":10,"
                                 "\"last\":1000000000},"
                                 "\"read\":{\"count\":3,\"total\":10,\"max\":5,\"mean\":3.333333,\"last\":0,"
                                 "\"histogram\":{\"p50\":{\"low\":940,\"high\":1024},"
                                 "\"p90\":{\"low\":940,\"high\":1024},\"p99\":{\"low\":940,\"high\":1024},"
                                 "\"buckets\":[{\"low\":0,\"high\":0,\"count\":1},"
                                 "{\"low\":96,\"high\":104,\"count\":1},"
                                 "{\"low\":940,\"high\":1024,\"count\":18446744073709551615}]}}},\"closed\""));
    free(json);
    char *text = written(nt_export_text.stat, &input);
    assert_non_null(strstr(text, "\n      (read: half up to 1024, 90% up to 1024, 99% up to 1024)\n"
                                 "      (ping: half up to 104, 90% up to 104, 99% up to 104)\n"
                                 "      (before the log)"));
    free(text);
    struct nt_model_selection selection;
    select_paths(&selection, &model, (const char *const[]){ "x/write", NULL });
    const struct nt_export_input picked = { .model = &model, .selection = &selection };
    text = written(nt_export_text.stat, &picked);
    assert_null(strstr(text, "half up to"));
    free(text);
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

static void text_branches(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    struct nt_model_selection selection;
    small_model(&model);
    select_paths(&selection, &model, (const char *const[]){ "in/orders/read", "spare", NULL });
    const struct nt_export_input input = { .model = &model, .selection = &selection };
    assert_written(nt_export_text.stat, &input,
                   "lost: n/p.7: 5 events overwritten, 2 events dropped; totals stay exact\n"
                   "NODE/PROGRAM/OBJECT             EVENT  COUNT  TOTAL        MAX   MEAN    LAST\n"
                   "n\n"
                   "  p  pid 7, running\n"
                   "    in  endpoint\n"
                   "      orders  channel, epoch 1  read       3     10 bytes    5   3.33\n"
                   "        (all 2 epochs)          read       3     10 bytes        3.33\n"
                   "      spare  channel, closed    write      7     70 bytes   30  10.00\n");
    nt_model_selection_fini(&selection);
    nt_model_fini(&model);
}

static void closed_in_an_ended_program(void **state)
{
    (void)state;
    for (uint32_t count = 64; count <= 65; count++) {
        struct nt_model model = { 0 };
        struct nt_source_program program = feed_program(0, "n", "p", 7);
        program.state = NT_PROGRAM_EXITED;
        assert_int_equal(nt_model_add_program(&model, &program), 0);
        const struct nt_source_object root = feed_object(0, 0, 0, "p");
        add(&model, &root);
        for (uint32_t i = 1; i <= count; i++) {
            struct nt_source_object object = feed_object(0, i, 0, "x");
            struct nt_source_object below = feed_object(0, 1000 + i, i, "y");
            object.closed = below.closed = true;
            object.tallies = below.tallies = old_sums;
            object.tally_count = below.tally_count = 1;
            add(&model, &object);
            add(&model, &below);
        }
        assert_int_equal(nt_model_link(&model), 0);
        const struct nt_export_input input = { .model = &model };
        char *text = written(nt_export_text.stat, &input);
        if (count == 64) {
            assert_non_null(strstr(text, "x  channel, closed"));
            assert_null(strstr(text, "(64 closed)"));
        } else {
            assert_null(strstr(text, "x  channel, closed"));
            assert_non_null(strstr(text, "(65 closed)"));
            assert_non_null(strstr(text, " 910 ")); /* 130 times 7 */
        }
        free(text);
        nt_model_fini(&model);
    }
}

static void programs(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    struct nt_source_program one = feed_program(0, "n", "p", 7), two = feed_program(1, "m", "long-name", 123456);
    one.state = NT_PROGRAM_EXITED;
    one.replaced = true;
    one.moving = true;
    one.ended = 3 * SECOND;
    one.origin = 9;
    two.state = NT_PROGRAM_CRASHED;
    two.events = 1000;
    two.overwritten = 900;
    two.backed = 1536 * 1024;
    two.rings = 2;
    two.objects = 3;
    assert_int_equal(nt_model_add_program(&model, &one), 0);
    assert_int_equal(nt_model_add_program(&model, &two), 0);
    assert_int_equal(nt_model_link(&model), 0);
    const struct nt_export_input input = { .model = &model, .now = 126 * SECOND };
    assert_written(nt_export_text.programs, &input,
                   "NAME         PID STATE         NODE RINGS OBJECTS EVENTS OVERWRITTEN DROPPED MEMORY   AGE\n"
                   "long-name 123456 crashed       m        2       3   1000         900       0   1.5M 2m05s\n"
                   "p              7 exited (exec) n        0       0      0           0       0     0B 2m05s\n");
    char *json = written(nt_export_json.programs, &input);
    assert_int_equal(strncmp(json, "{\"processes\":[\n{\"node\":\"m\",\"id\":\"000000000000abc1\",\"pid\":123456,", 62),
                     0);
    assert_non_null(
        strstr(json, "\"ended\":3000000000,\"replaced\":true,\"moving\":true,\"origin\":\"0000000000000009\","));
    free(json);
    nt_model_fini(&model);
}

static void loss(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    for (uint32_t i = 0; i < 12; i++) {
        struct nt_source_program program = feed_program(i, "n", "p", 10 + i);
        program.overwritten = i > 0 ? 1 : 0;
        program.refused_tallies = i == 1 ? 3 : 0;
        program.refused_objects = i == 2 ? 4 : 0;
        program.moving = i == 0 || i == 3;
        assert_int_equal(nt_model_add_program(&model, &program), 0);
    }
    assert_int_equal(nt_model_link(&model), 0);
    const struct nt_export_input input = { .model = &model };
    struct nt_buffer out = { 0 };
    nt_export_loss(&input, "ntscope: ", &out);
    nt_buffer_byte(&out, '\0');
    assert_non_null(strstr(out.data, "ntscope: n/p.10: moving: objects ended faster than they could be read; "
                                     "totals may miss or repeat some\n"));
    assert_non_null(strstr(out.data, "ntscope: n/p.13: 1 events overwritten, moving: objects ended faster than"));
    assert_non_null(strstr(out.data, "ntscope: n/p.11: 1 events overwritten, 3 counts had no room; "
                                     "totals are at least what is shown\n"));
    assert_non_null(
        strstr(out.data, "ntscope: n/p.12: 1 events overwritten, 4 objects had no room; totals stay exact\n"));
    assert_non_null(strstr(out.data, "ntscope: 4 more programs: 4 events overwritten; totals stay exact\n"));
    nt_buffer_fini(&out);
    nt_model_fini(&model);
}

static const struct nt_bytes hostile[] = {
    FEED_BYTES("\x1b]0;title\a\x1b[2J"),
    FEED_BYTES("\xe2\x80\xaegnp.exe"),
    FEED_BYTES("\"},{\"a\":[\""),
    FEED_BYTES("nul\0nul"),
    FEED_BYTES("\xff\xfe\x80"),
    FEED_BYTES("\xc2\x9b"
               "31m"),
    FEED_BYTES("a/b*c?d\\e#"),
    FEED_BYTES("\r\n\t"),
    FEED_BYTES(""),
    FEED_BYTES("\\u0041"),
    FEED_BYTES("%s%n"),
};

/* What must hold of any output: valid UTF-8 lines without anything that commands a terminal. */
static void assert_harmless(char *text)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        uint32_t point;
        size_t length = nt_text_decode(text + at, size - at, &point);
        assert_true(length > 0);
        assert_true(point == '\n' || point == '\t' || !nt_text_is_hostile(point));
        at += length;
    }
    free(text);
}

static void hostile_names(void **state)
{
    (void)state;
    char wide[255];
    memset(wide, 0x9b, sizeof wide);
    for (size_t i = 0; i <= sizeof hostile / sizeof *hostile; i++) {
        struct nt_bytes name = { wide, sizeof wide };
        if (i < sizeof hostile / sizeof *hostile)
            name = hostile[i];
        struct nt_model model = { 0 };
        struct nt_model_selection selection;
        struct nt_source_program program = feed_program(0, "", "", 7);
        struct nt_source_kind kind = { .kind = 64, .name = name };
        struct nt_source_object object = feed_object(0, 1, 0, "");
        const struct nt_source_tally sums[] = { { 1, 1, 1, 1, 1 }, { 64, 1, 1, 1, 1 } };
        program.node = program.name = program.program = program.host = program.domain = object.name = name;
        program.overwritten = 1;
        object.tallies = sums;
        object.tally_count = 2;
        assert_int_equal(nt_model_add_program(&model, &program), 0);
        assert_int_equal(nt_model_add_kind(&model, &kind), 0);
        add(&model, &object);
        assert_int_equal(nt_model_link(&model), 0);
        select_paths(&selection, &model, (const char *const[]){ "**/total", "**/count", NULL });
        struct nt_export_input input = { .model = &model, .now = 1 };
        for (size_t f = 0; nt_export_formats[f]; f++) {
            assert_harmless(written(nt_export_formats[f]->stat, &input));
            assert_harmless(written(nt_export_formats[f]->programs, &input));
        }
        input.selection = &selection;
        for (size_t f = 0; nt_export_formats[f]; f++)
            assert_harmless(written(nt_export_formats[f]->numbers, &input));
        nt_model_selection_fini(&selection);
        nt_model_fini(&model);
    }
}

static void chain_model(struct nt_model *model, uint32_t length)
{
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    assert_int_equal(nt_model_add_program(model, &program), 0);
    for (uint32_t i = 0; i < length; i++) {
        struct nt_source_object object = feed_object(0, i, i > 0 ? i - 1 : 0, "x");
        object.tallies = orders_sums;
        object.tally_count = 2;
        add(model, &object);
    }
    assert_int_equal(nt_model_link(model), 0);
}

static void deep_trees(void **state)
{
    (void)state;
    struct nt_model model = { 0 };
    chain_model(&model, 1000);
    const struct nt_export_input input = { .model = &model };
    char *json = written(nt_export_json.stat, &input);
    size_t depth = 0, deepest = 0, objects = 0;
    for (const char *at = json; *at; at++) {
        depth += *at == '{' || *at == '[';
        deepest = depth > deepest ? depth : deepest;
        depth -= *at == '}' || *at == ']';
        objects += strncmp(at, "\"kind\":", 7) == 0;
    }
    assert_int_equal(depth, 0);
    assert_int_equal(objects, 1000);
    assert_true(deepest < 220); /* jq reads 256 */
    assert_non_null(strstr(json, "\"parent\":\"00000001000003e6\""));
    free(json);
    char *text = written(nt_export_text.stat, &input);
    assert_non_null(strstr(text, "[1000] x  channel"));
    free(text);
    nt_model_fini(&model);
}

static void large_trees(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct nt_model model = { 0 };
    const struct nt_source_program program = feed_program(0, "n", "p", 7);
    assert_int_equal(nt_model_add_program(&model, &program), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct nt_source_object object = feed_object(0, i, 0, "channel");
        object.closed = i % 2;
        object.tallies = orders_sums;
        object.tally_count = 2;
        add(&model, &object);
    }
    clock_t before = clock();
    assert_int_equal(nt_model_link(&model), 0);
    struct nt_export_input input = { .model = &model };
    for (size_t f = 0; nt_export_formats[f]; f++)
        free(written(nt_export_formats[f]->stat, &input));
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 5);
    nt_model_fini(&model);
}

static void formats(void **state)
{
    (void)state;
    assert_ptr_equal(nt_export_formats[0], &nt_export_text);
    assert_ptr_equal(nt_export_find("json"), &nt_export_json);
    assert_null(nt_export_find("jso"));
    assert_null(nt_export_find(""));
    for (size_t i = 0; nt_export_formats[i]; i++) {
        assert_non_null(nt_export_formats[i]->stat);
        assert_non_null(nt_export_formats[i]->numbers);
        assert_non_null(nt_export_formats[i]->programs);
    }
}

static void ages(void **state)
{
    (void)state;
    static const struct {
        uint64_t nanoseconds;
        const char *text;
    } cases[] = {
        { 0, "0ms" },
        { SECOND - 1, "999ms" },
        { SECOND, "1.0s" },
        { 59 * SECOND + SECOND - 1, "59.9s" },
        { 60 * SECOND, "1m00s" },
        { 3599 * SECOND, "59m59s" },
        { 3600 * SECOND, "1h00m" },
        { 86399 * SECOND, "23h59m" },
        { 86400 * SECOND, "1d" },
        { UINT64_MAX, "213503d" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nt_buffer out = { 0 };
        nt_export_age(&out, cases[i].nanoseconds);
        nt_buffer_byte(&out, '\0');
        assert_string_equal(out.data, cases[i].text);
        nt_buffer_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_tree),     cmocka_unit_test(json_branches),
        cmocka_unit_test(numbers),       cmocka_unit_test(exact_numbers),
        cmocka_unit_test(text_tree),     cmocka_unit_test(bases),
        cmocka_unit_test(links),         cmocka_unit_test(histograms),
        cmocka_unit_test(text_branches), cmocka_unit_test(closed_in_an_ended_program),
        cmocka_unit_test(programs),      cmocka_unit_test(loss),
        cmocka_unit_test(hostile_names), cmocka_unit_test(deep_trees),
        cmocka_unit_test(large_trees),   cmocka_unit_test(formats),
        cmocka_unit_test(ages),
    };
    return cmocka_run_group_tests_name("export/export", tests, NULL, NULL);
}
