/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions: every comparison over the numbers where such things break, all small trees of AND, OR and NOT over
   true, false and NULL against a plain recursive evaluation, names, and what is refused and where. */
#include "event/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#define NOW UINT64_C(1700000000000000000)

/* What the context says: numbers by column, NULL where there is none. */
struct world {
    bool known[NT_COLUMNS];
    uint64_t numbers[NT_COLUMNS];
    const char *names[NT_COLUMNS][NT_FILTER_NAMES];
};

static size_t world_names(void *arg, const struct nt_event *event, enum nt_column column,
                          struct nt_bytes ret_names[NT_FILTER_NAMES])
{
    const struct world *world = arg;
    size_t count = 0;
    (void)event;
    for (; count < NT_FILTER_NAMES && world->names[column][count]; count++)
        ret_names[count] = (struct nt_bytes){ world->names[column][count], strlen(world->names[column][count]) };
    return count;
}

static bool world_number(void *arg, const struct nt_event *event, enum nt_column column, uint64_t *ret_number)
{
    const struct world *world = arg;
    (void)event;
    *ret_number = world->numbers[column];
    return world->known[column];
}

static bool match(const char *text, const struct nt_event *event, struct world *world)
{
    const struct nt_filter_context context = { world ? world_names : NULL, world ? world_number : NULL, world, 0 };
    struct nt_filter_error error;
    struct nt_filter *filter = NULL;
    if (nt_filter_new(text, strlen(text), NOW, &filter, &error) != 0)
        fail_msg("%s: at %zu: %s", text, error.column, error.text);
    bool matches = nt_filter_match(filter, event, &context);
    nt_filter_free(filter);
    return matches;
}

/* ---- Numbers ---- */

static const uint64_t odd[] = {
    0,
    1,
    2,
    UINT64_C(1) << 31,
    UINT64_C(1) << 32,
    (UINT64_C(1) << 53) - 1,
    UINT64_C(1) << 53,
    (UINT64_C(1) << 53) + 1,
    INT64_MAX,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) + 1,
    UINT64_MAX - 1,
    UINT64_MAX,
};
enum { ODD = sizeof odd / sizeof *odd };

static bool related(const char *symbol, uint64_t a, uint64_t b)
{
    if (strcmp(symbol, "=") == 0 || strcmp(symbol, "==") == 0)
        return a == b;
    if (strcmp(symbol, "<>") == 0 || strcmp(symbol, "!=") == 0)
        return a != b;
    if (symbol[1] == '=')
        return symbol[0] == '<' ? a <= b : a >= b;
    return symbol[0] == '<' ? a < b : a > b;
}

static void check(const char *text, const struct nt_event *event, bool wanted)
{
    if (match(text, event, NULL) != wanted)
        fail_msg("value %llu, total %llu: %s is not %d", (unsigned long long)event->value,
                 (unsigned long long)event->total, text, wanted);
}

static void compares_all_numbers_exactly(void **state)
{
    static const char *const symbols[] = { "=", "==", "<>", "!=", "<", "<=", ">", ">=" };
    (void)state;
    for (size_t i = 0; i < ODD * ODD * 8; i++) {
        uint64_t a = odd[i % ODD], b = odd[i / ODD % ODD];
        const char *symbol = symbols[i / ODD / ODD];
        const struct nt_event event = { .value = a, .total = b };
        unsigned long long number = b;
        bool wanted = related(symbol, a, b);
        char text[128];
        (void)snprintf(text, sizeof text, "value %s %llu", symbol, number);
        check(text, &event, wanted);
        (void)snprintf(text, sizeof text, "VALUE%s0x%llX", symbol, number);
        check(text, &event, wanted);
        (void)snprintf(text, sizeof text, "%llu %s value", number, symbol);
        check(text, &event, related(symbol, b, a));
        (void)snprintf(text, sizeof text, "value %s total", symbol);
        check(text, &event, wanted);
        (void)snprintf(text, sizeof text, "not value %s %llu", symbol, number);
        check(text, &event, !wanted);
        (void)snprintf(text, sizeof text, "NOT %llu %s value", number, symbol);
        check(text, &event, !related(symbol, b, a));
        (void)snprintf(text, sizeof text, "NOT(value %s total)", symbol);
        check(text, &event, !wanted);
    }
}

static void compares_ranges_and_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ODD * ODD * ODD; i++) {
        uint64_t a = odd[i % ODD], b = odd[i / ODD % ODD], c = odd[i / ODD / ODD];
        const struct nt_event event = { .value = a };
        unsigned long long low = b, high = c;
        bool between = b <= a && a <= c, in = a == b || a == c || a == 7;
        char text[128];
        (void)snprintf(text, sizeof text, "value BETWEEN %llu AND %llu", low, high);
        check(text, &event, between);
        (void)snprintf(text, sizeof text, "value not between %llu and %llu", low, high);
        check(text, &event, !between);
        (void)snprintf(text, sizeof text, "NOT value NOT BETWEEN %llu AND %llu AND value=value", low, high);
        check(text, &event, between);
        (void)snprintf(text, sizeof text, "value IN (%llu,7,%llu, %llu)", low, high, low);
        check(text, &event, in);
        (void)snprintf(text, sizeof text, "value NOT IN(%llu,7,%llu)", low, high);
        check(text, &event, !in);
    }
}

static void knows_every_column(void **state)
{
    const struct nt_event event = {
        .time = 101,
        .session = 102,
        .value = 103,
        .count = 104,
        .total = 105,
        .argument = 106,
        .position = 107,
        .ring = 109,
        .object = 110,
        .generation = 1,
        .merged = 111,
        .kind = 112,
        .flags = 1,
    };
    struct world world = { .names = { [NT_COLUMN_PROCESS] = { "worker-1", "worker-1.77", "77" },
                                      [NT_COLUMN_NODE] = { "alpha" },
                                      [NT_COLUMN_PATH] = { "alpha/worker-1/tcp/orders" },
                                      [NT_COLUMN_OBJECT] = { "orders" },
                                      [NT_COLUMN_REMOTE_NODE] = { "beta" },
                                      [NT_COLUMN_REMOTE_PROCESS] = { "sink" },
                                      [NT_COLUMN_DATA] = { "{\"price\":5}" } } };
    static const char *const trues[NT_COLUMNS] = {
        [NT_COLUMN_TIME] = "time = 101",
        [NT_COLUMN_TIME_RAW] = "time_raw = 201",
        [NT_COLUMN_TIME_ERROR] = "time_error = 202",
        [NT_COLUMN_LOG] = "log = '00000000000000cb'",
        [NT_COLUMN_RING] = "ring = 109",
        [NT_COLUMN_POSITION] = "position = 107",
        [NT_COLUMN_THREAD] = "thread = 204",
        [NT_COLUMN_PROCESS] = "process = 'worker-1'",
        [NT_COLUMN_NODE] = "node = 'alpha'",
        [NT_COLUMN_OBJECT] = "object = '000000010000006E'",
        [NT_COLUMN_PATH] = "path GLOB 'alpha/*/orders'",
        [NT_COLUMN_KIND] = "kind = 112",
        [NT_COLUMN_SESSION] = "session = '0000000000000066'",
        [NT_COLUMN_COUNT] = "count = 104",
        [NT_COLUMN_VALUE] = "value = 103",
        [NT_COLUMN_TOTAL] = "total = 105",
        [NT_COLUMN_N] = "n = 111",
        [NT_COLUMN_ARGUMENT] = "argument = 106",
        [NT_COLUMN_FLAGS] = "flags = 'first'",
        [NT_COLUMN_LINK] = "link = '00000000000000cd'",
        [NT_COLUMN_REMOTE_NODE] = "remote_node = 'beta'",
        [NT_COLUMN_REMOTE_PROCESS] = "remote_process = 'sink'",
        [NT_COLUMN_DATA] = "data GLOB '*\"price\":5*'",
    };
    static const enum nt_column asked[] = { NT_COLUMN_TIME_RAW, NT_COLUMN_TIME_ERROR, NT_COLUMN_LOG, NT_COLUMN_THREAD,
                                            NT_COLUMN_LINK };
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        world.known[asked[i]] = true;
        world.numbers[asked[i]] = 201 + i;
    }
    for (unsigned column = 0; column < NT_COLUMNS; column++) {
        char text[128];
        assert_non_null(trues[column]);
        assert_true(strncmp(trues[column], nt_column_name(column), strlen(nt_column_name(column))) == 0);
        if (!match(trues[column], &event, &world))
            fail_msg("%s", trues[column]);
        (void)snprintf(text, sizeof text, "NOT %s", trues[column]);
        if (match(text, &event, &world))
            fail_msg("%s", text);
        (void)snprintf(text, sizeof text, "%s IS NOT NULL AND NOT %s IS NULL", nt_column_name(column),
                       nt_column_name(column));
        if (!match(text, &event, &world))
            fail_msg("%s", text);
    }
    assert_null(nt_column_name(NT_COLUMNS));
}

/* ---- Trees ---- */

enum { FALSE, TRUE, UNKNOWN };

/* A tree over leaves a, b, c as text, and what it is where these are what they are. */
struct tree {
    char text[200];
    uint8_t value[27];
};
enum { LEVEL_1 = 6, LEVEL_2 = LEVEL_1 + LEVEL_1 * LEVEL_1 * 4, LEVEL_3 = 20000 };

static uint8_t both(uint8_t a, uint8_t b)
{
    if (a == FALSE || b == FALSE)
        return FALSE;
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : TRUE;
}

static uint8_t inverse(uint8_t a)
{
    return a == UNKNOWN ? UNKNOWN : !a;
}

static uint8_t either(uint8_t a, uint8_t b)
{
    return inverse(both(inverse(a), inverse(b)));
}

/* Leaf number 0 to 2 is `thread`, `time_error` or `time_raw` = 1; + 3: with NOT before it. */
static void leaf_make(struct tree *tree, unsigned number)
{
    static const char *const names[] = { "thread", "time_error", "time_raw" };
    static const unsigned power[] = { 1, 3, 9 };
    (void)snprintf(tree->text, sizeof tree->text, "%s%s = 1", number < 3 ? "" : "NOT ", names[number % 3]);
    for (unsigned i = 0; i < 27; i++) {
        tree->value[i] = (uint8_t)(i / power[number % 3] % 3);
        tree->value[i] = number < 3 ? tree->value[i] : inverse(tree->value[i]);
    }
}

/* Form: bit 0 OR, else AND; bit 1 NOT before all of it. */
static void tree_make(struct tree *tree, const struct tree *left, const struct tree *right, unsigned form)
{
    int size = snprintf(tree->text, sizeof tree->text, "%s((%s) %s (%s))", form & 2 ? "NOT " : "", left->text,
                        form & 1 ? "OR" : "AND", right->text);
    assert_in_range(size, 1, sizeof tree->text - 1);
    for (unsigned i = 0; i < 27; i++) {
        tree->value[i] = (form & 1 ? either : both)(left->value[i], right->value[i]);
        tree->value[i] = form & 2 ? inverse(tree->value[i]) : tree->value[i];
    }
}

static void tree_check(const struct tree *tree)
{
    static const enum nt_column leaves[] = { NT_COLUMN_THREAD, NT_COLUMN_TIME_ERROR, NT_COLUMN_TIME_RAW };
    const struct nt_event event = { 0 };
    struct world world;
    const struct nt_filter_context context = { world_names, world_number, &world, 0 };
    struct nt_filter_error error;
    struct nt_filter *filter = NULL;
    assert_int_equal(nt_filter_new(tree->text, strlen(tree->text), NOW, &filter, &error), 0);
    for (unsigned i = 0; i < 27; i++) {
        const unsigned values[] = { i % 3, i / 3 % 3, i / 9 };
        memset(&world, 0, sizeof world);
        for (unsigned k = 0; k < 3; k++) {
            world.known[leaves[k]] = values[k] != UNKNOWN;
            world.numbers[leaves[k]] = values[k];
        }
        if (nt_filter_match(filter, &event, &context) != (tree->value[i] == TRUE))
            fail_msg("%s with %u %u %u", tree->text, values[0], values[1], values[2]);
        if (nt_filter_possible(filter, &event, &context) != (tree->value[i] != FALSE))
            fail_msg("possibly %s with %u %u %u", tree->text, values[0], values[1], values[2]);
    }
    nt_filter_free(filter);
}

static void evaluates_every_small_tree(void **state)
{
    struct tree *trees = calloc(LEVEL_2, sizeof *trees), tree;
    unsigned count = 0, random = 12345;
    (void)state;
    assert_non_null(trees);
    for (; count < LEVEL_1; count++)
        leaf_make(&trees[count], count);
    for (unsigned i = 0; i < LEVEL_1 * LEVEL_1 * 4; i++)
        tree_make(&trees[count++], &trees[i % LEVEL_1], &trees[i / LEVEL_1 % LEVEL_1], i / LEVEL_1 / LEVEL_1);
    for (unsigned i = 0; i < count; i++)
        tree_check(&trees[i]);
    /* Of the larger ones, one in each few. */
    for (unsigned i = 0; i < LEVEL_3; i++) {
        random = random * 1103515245 + 12345;
        tree_make(&tree, &trees[random >> 8 & 127], &trees[(random >> 16) % count], random >> 30);
        tree_check(&tree);
    }
    free(trees);
}

/* NOT binds more than AND, AND more than OR, comparisons more than all of them. */
static void binds_as_sql_does(void **state)
{
    static const struct {
        const char *text, *same;
    } cases[] = {
        { "thread = 1 OR time_error = 1 AND time_raw = 1", "thread = 1 OR (time_error = 1 AND time_raw = 1)" },
        { "thread = 1 AND time_error = 1 OR time_raw = 1", "(thread = 1 AND time_error = 1) OR time_raw = 1" },
        { "NOT thread = 1 AND time_error = 1", "(NOT thread = 1) AND time_error = 1" },
        { "NOT thread = 1 OR time_error = 1", "(NOT thread = 1) OR time_error = 1" },
        { "NOT NOT NOT thread = 1", "NOT thread = 1" },
        { "thread BETWEEN 1 AND 1 AND time_error = 1", "(thread BETWEEN 1 AND 1) AND time_error = 1" },
        { "thread = 1 AND NOT time_error = 1 AND time_raw = 1", "thread=1 AND (NOT (time_error=1)) AND (time_raw=1)" },
    };
    const struct nt_event event = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned k = 0; k < 27; k++) {
            struct world world = { .numbers = { [NT_COLUMN_THREAD] = k % 3,
                                                [NT_COLUMN_TIME_ERROR] = k / 3 % 3,
                                                [NT_COLUMN_TIME_RAW] = k / 9 } };
            world.known[NT_COLUMN_THREAD] = k % 3 != UNKNOWN;
            world.known[NT_COLUMN_TIME_ERROR] = k / 3 % 3 != UNKNOWN;
            world.known[NT_COLUMN_TIME_RAW] = k / 9 != UNKNOWN;
            if (match(cases[i].text, &event, &world) != match(cases[i].same, &event, &world))
                fail_msg("%s with %u", cases[i].text, k);
        }
    }
}

/* ---- Names ---- */

static const struct {
    const char *text;
    bool matches;
} named[] = {
    { "process = 'worker-1'", true },
    { "process = 'worker-1.77'", true },
    { "process = '77'", true },
    { "process = 77", true },
    { "process = 78", false },
    { "process <> 77", false },
    { "process <> 'worker-2'", true },
    { "NOT process = 'worker-2'", true },
    { "process IN ('a', 'worker-1', 5)", true },
    { "process IN ('a', 77)", true },
    { "process NOT IN ('a', 77)", false },
    { "process NOT IN ('a', 'b', 'c')", true },
    { "process GLOB 'worker-?'", true },
    { "process NOT GLOB 'worker-?'", false },
    { "process GLOB 'w'", false },
    { "process = 'WORKER-1'", false },
    { "object = 'it''s'", true },
    { "object IN ('it''s')", true },
    { "object = '0000000300000000'", true },
    { "object = 0x300000000", true },
    { "object GLOB '*3*0'", true },
    { "object = ''", false },
    { "kind = 'checkout'", true },
    { "kind = 64", true },
    { "kind > 63", true },
    { "kind = 'read'", false },
    { "kind <> 'read'", true },
    { "kind IN ('read', 'checkout')", true },
    { "kind IN ('read', 64)", true },
    { "kind NOT IN ('read', 2, 'checkout')", false },
    { "kind GLOB 'check*'", true },
    { "kind = 'no such kind'", false },
    { "session = 'night run'", true },
    { "session = '00000000deadbeef'", true },
    { "session = '00000000DEADBEEF'", true },
    { "session <> '00000000deadbeef'", false },
    { "session = 'deadbeef'", false },
    { "session > '00000000deadbeee'", true },
    { "session IN ('x', '00000000deadbeef')", true },
    { "session IN (1, 2, 0xdeadbeef)", true },
    { "session GLOB '*deadbeef'", true },
    { "session GLOB 'night*'", true },
    { "session = object", false },
    { "flags = 'first'", true },
    { "flags = 'cut'", true },
    { "flags = 'data'", false },
    { "flags <> 'data'", true },
    { "flags IN ('data', 'cut')", true },
    { "flags NOT IN ('data')", true },
    { "flags = 5", true },
    { "flags = 4", false },
    { "flags IN ('data', 5)", true },
    { "time = '1970-01-01T00:00:00Z'", true },
    { "time > '1970-01-01T00:00:00Z'", false },
    { "time < '-5s'", true },
    { "time BETWEEN '1970-01-01' AND '-1h'", true },
    { "time IN ('1970-01-01', 5)", true },
    /* NULLs: nothing is true of them but that they are */
    { "node = 'x'", false },
    { "node <> 'x'", false },
    { "node NOT IN ('x')", false },
    { "node NOT GLOB 'x'", false },
    { "node IS NULL", true },
    { "NOT node IS NOT NULL", true },
    { "link IS NULL", true },
    { "link = 0 OR link <> 0", false },
    { "link GLOB '*'", false },
    { "link IN (0)", false },
    { "time_error < 5 OR time_error >= 5", false },
    { "thread NOT BETWEEN 1 AND 2", false },
};

static void compares_names(void **state)
{
    const struct nt_event event = { .kind = NT_LAYOUT_USER_KIND,
                                    .session = 0xdeadbeef,
                                    .flags = NT_RECORD_FIRST | NT_RECORD_TRUNCATED,
                                    .generation = 3 };
    struct world world = { .names = { [NT_COLUMN_PROCESS] = { "worker-1", "worker-1.77", "77" },
                                      [NT_COLUMN_OBJECT] = { "it's" },
                                      [NT_COLUMN_KIND] = { "checkout" },
                                      [NT_COLUMN_SESSION] = { "night run" } } };
    (void)state;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        char text[128];
        if (match(named[i].text, &event, &world) != named[i].matches)
            fail_msg("%s", named[i].text);
        (void)snprintf(text, sizeof text, "NOT (%s)", named[i].text);
        if (named[i].matches && match(text, &event, &world))
            fail_msg("%s", text);
    }
}

static void finds_one_of_many(void **state)
{
    enum { MANY = 1000 };
    char *text = malloc(NT_FILTER_BYTES);
    struct world world = { 0 };
    (void)state;
    assert_non_null(text);
    for (unsigned names = 0; names < 2; names++) {
        size_t size = (size_t)snprintf(text, NT_FILTER_BYTES, "%s IN (", names ? "process" : "value");
        for (unsigned i = 0; i < MANY; i++)
            size += (size_t)snprintf(text + size, NT_FILTER_BYTES - size, names ? "'p%u'," : "%u,",
                                     (i * 7919 % MANY) * 3);
        text[size - 1] = ')';
        text[size] = '\0';
        for (unsigned i = 0; i < 3 * MANY; i += 31) {
            char name[16];
            const struct nt_event event = { .value = i };
            (void)snprintf(name, sizeof name, "p%u", i);
            world.names[NT_COLUMN_PROCESS][0] = name;
            assert_int_equal(match(text, &event, &world), i % 3 == 0);
        }
    }
    free(text);
}

/* Of what was lost only some columns are known: whatever the others might have been is possible. */
static void tells_what_is_possible(void **state)
{
    static const struct {
        const char *text;
        bool possible;
    } cases[] = {
        { "kind = 'read'", true },
        { "kind = 'write'", false },
        { "value > 5", true },
        { "NOT value > 5", true },
        { "value IS NULL", true },
        { "value IS NOT NULL", true },
        { "kind = 'write' AND value > 5", false },
        { "kind = 'write' OR value > 5", true },
        { "NOT (kind = 'read' OR value > 5)", false },
        { "process = 'worker-1' AND value > 5", true },
        { "process = 'worker-2' AND value > 5", false },
        { "session = 0", true },
        { "session <> 0", true },
        { "session GLOB 'x*' AND flags = 'late'", true },
    };
    struct world world = { .names = { [NT_COLUMN_PROCESS] = { "worker-1" }, [NT_COLUMN_SESSION] = { "y" } } };
    const struct nt_event event = { .kind = 2 };
    const struct nt_filter_context context = {
        .names = world_names,
        .number = world_number,
        .arg = &world,
        .unknown = ~(1u << NT_COLUMN_KIND | 1u << NT_COLUMN_PROCESS),
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nt_filter_error error;
        struct nt_filter *filter = NULL;
        assert_int_equal(nt_filter_new(cases[i].text, strlen(cases[i].text), NOW, &filter, &error), 0);
        if (nt_filter_possible(filter, &event, &context) != cases[i].possible)
            fail_msg("%s", cases[i].text);
        nt_filter_free(filter);
    }
}

static void tells_what_must_hold(void **state)
{
    static const uint64_t five[] = { 5 }, both[] = { 5, 9 };
    static const struct {
        const char *text;
        uint64_t since, until;
        const uint64_t *sessions;
        size_t session_count;
    } cases[] = {
        { "session = 5", 0, UINT64_MAX, five, 1 },
        { "5 = session and value > 3", 0, UINT64_MAX, five, 1 },
        { "session in (9, 5)", 0, UINT64_MAX, both, 2 },
        { "session in (9, 5) and (value = 1 or kind = 2) and session = '0000000000000005'", 0, UINT64_MAX, five, 1 },
        { "session = 5 or value = 1", 0, UINT64_MAX, NULL, 0 },
        { "not session = 5", 0, UINT64_MAX, NULL, 0 },
        { "not (session <> 5 or value = 1)", 0, UINT64_MAX, five, 1 },
        { "session = 'a name'", 0, UINT64_MAX, NULL, 0 },
        { "session in (5, 'a name')", 0, UINT64_MAX, NULL, 0 },
        { "session = object and session is not null", 0, UINT64_MAX, NULL, 0 },
        { "time >= 7 and time < 9", 7, 8, NULL, 0 },
        { "7 < time and not time > 9", 8, 9, NULL, 0 },
        { "time between 7 and 9 and time <> 8", 7, 9, NULL, 0 },
        { "time not between 7 and 9", 0, UINT64_MAX, NULL, 0 },
        { "time = 7", 7, 7, NULL, 0 },
        { "time in (7, 9)", 0, UINT64_MAX, NULL, 0 },
        { "time < 0", 0, 0, NULL, 0 },
        { "(time > 3 or value = 1) and time_raw > 9", 0, UINT64_MAX, NULL, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nt_filter_bounds bounds;
        struct nt_filter_error error;
        struct nt_filter *filter = NULL;
        assert_int_equal(nt_filter_new(cases[i].text, strlen(cases[i].text), NOW, &filter, &error), 0);
        assert_int_equal(nt_filter_bounds(filter, &bounds), 0);
        if (bounds.since != cases[i].since || bounds.until != cases[i].until ||
            bounds.session_count != cases[i].session_count)
            fail_msg("%s", cases[i].text);
        for (size_t k = 0; k < bounds.session_count; k++)
            assert_int_equal(bounds.sessions[k], cases[i].sessions[k]);
        nt_filter_free(filter);
    }
}

static void tells_whose_names_it_asks_for(void **state)
{
    static const struct {
        const char *text;
        uint32_t columns;
    } cases[] = {
        { "session = '00000000deadbeef' OR session IN (1, 2) OR value > 5", 0 },
        { "NOT session = 'night run'", 1u << NT_COLUMN_SESSION },
        { "session IN (1, 'night run')", 1u << NT_COLUMN_SESSION },
        { "session GLOB 'dead*' AND kind = 'read'", 1u << NT_COLUMN_SESSION },
        { "session IS NULL", 0 },
        { "node IS NULL OR process = 5 AND kind = 'x'",
          1u << NT_COLUMN_NODE | 1u << NT_COLUMN_PROCESS | 1u << NT_COLUMN_KIND },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nt_filter_error error;
        struct nt_filter *filter = NULL;
        assert_int_equal(nt_filter_new(cases[i].text, strlen(cases[i].text), NOW, &filter, &error), 0);
        assert_int_equal(nt_filter_names(filter), cases[i].columns);
        nt_filter_free(filter);
    }
}

/* ---- What is refused ---- */

static const struct {
    const char *text;
    size_t column;
    const char *says;
} wrong[] = {
    { "", 1, "ends where a column or a value is expected" },
    { "   ", 4, "ends where a column or a value" },
    { "value", 6, "ends where a comparison" },
    { "value =", 8, "ends where a column or a value" },
    { "value = 1 AND", 14, "ends where a column or a value" },
    { "value = 1 AND OR", 15, "expected, not OR" },
    { "value = 1 value = 2", 11, "AND, OR or the end is expected, not value" },
    { "vlaue = 1", 1, "no column vlaue" },
    { "value = vlaue", 9, "no column vlaue" },
    { "kind = read", 8, "no column read (texts stand in single quotes)" },
    { "\xc3\xa9 = 1", 1, "byte 0xc3" },
    { "value = '\xc3\xa9\xc3\xa9'", 9, "value is a number, not a text" },
    { "node = '\xc3\xa9\xc3\xa9' x", 13, "not x" },
    { "value = \"5\"", 9, "single quotes" },
    { "value = 'abc", 9, "not closed" },
    { "value = 'abc''", 9, "not closed" },
    { "value = -1", 9, "no negative numbers" },
    { "value = 1.5", 10, ". means nothing" },
    { "value = 5k", 9, "5k is no number" },
    { "value = 0x", 9, "0x is no number" },
    { "value = 0xg", 9, "0xg is no number" },
    { "value = 18446744073709551616", 9, "at most 18446744073709551615" },
    { "value = 0x10000000000000000", 9, "at most 18446744073709551615" },
    { "value & 1", 7, "& means nothing" },
    { "value = 1; DROP", 10, "; means nothing" },
    { "(value = 1", 11, "ends where ) is expected" },
    { "value = 1)", 10, "not )" },
    { "()", 2, "not )" },
    { "value IN 1", 10, "( is expected, not 1" },
    { "value IN ()", 11, "not )" },
    { "value IN (1,)", 13, "not )" },
    { "value IN (1 2)", 13, ") is expected, not 2" },
    { "value IN (count)", 11, "a number or a text in quotes is expected, not count" },
    { "value IN ('x')", 11, "value is a number, not a text" },
    { "value NOT 1", 11, "IN, GLOB or BETWEEN is expected, not 1" },
    { "value BETWEEN 1 OR 2", 17, "AND is expected, not OR" },
    { "value IS 1", 10, "NULL is expected, not 1" },
    { "1 IN (1)", 1, "a column is expected, not 1" },
    { "1 = 1", 3, "neither side is a column" },
    { "'x' < 'y'", 5, "neither side is a column" },
    { "value GLOB '*'", 12, "value has no text" },
    { "time GLOB '*'", 11, "time has no text" },
    { "flags GLOB '*'", 12, "flags has no text" },
    { "path GLOB 5", 11, "a pattern is a text" },
    { "path GLOB '[a'", 11, "a bracket is not closed" },
    { "path < 'x'", 8, "what path says as text has no order" },
    { "path < 5", 8, "what path says as text has no order" },
    { "'x' < path", 1, "what path says as text has no order" },
    { "kind > 'read'", 8, "what kind says as text has no order" },
    { "session > 'x'", 11, "what session says as text has no order" },
    { "flags > 'late'", 9, "what flags says as text has no order" },
    { "flags = 'nonsense'", 9, "no flag 'nonsense'" },
    { "log = 'x'", 7, "log is an id: 16 hex digits" },
    { "link = 'deadbeef'", 8, "link is an id" },
    { "time = 'yesterday'", 8, "a time is written 2024-05-01T10:00:00Z" },
    { "time IN ('yesterday')", 10, "a time is written" },
    { "time = '2024-02-30'", 8, "no such time" },
    { "path = node", 1, "path is compared with texts" },
    { "value = node", 9, "node is compared with texts" },
    { "session = value", 11, "an id and a number" },
    { "NOT", 4, "ends where a column" },
    { "NULL = 1", 1, "not NULL" },
    { "value = NULL", 9, "not NULL" },
};

static void says_what_is_wrong_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct nt_filter *filter = NULL;
        struct nt_filter_error error = { 0 };
        int result = nt_filter_new(wrong[i].text, strlen(wrong[i].text), NOW, &filter, &error);
        if (result != -NT_ESYNTAX || filter || error.column != wrong[i].column || !strstr(error.text, wrong[i].says))
            fail_msg("%s: %d, at %zu: %s", wrong[i].text, result, error.column, error.text);
    }
    struct nt_filter *filter = NULL;
    struct nt_filter_error error = { 0 };
    assert_int_equal(nt_filter_new("value = 1\0", 10, NOW, &filter, &error), -NT_ESYNTAX);
    assert_int_equal(error.column, 10);
}

static void is_bounded(void **state)
{
    enum { ROOM = NT_FILTER_BYTES + 64 };
    char *text = malloc(ROOM);
    struct nt_filter *filter = NULL;
    struct nt_filter_error error;
    (void)state;
    assert_non_null(text);
    /* As deep as it may be, and one deeper. */
    for (unsigned depth = NT_FILTER_DEPTH; depth <= NT_FILTER_DEPTH + 1; depth++) {
        memset(text, '(', depth);
        memcpy(text + depth, "n = 1", 5);
        memset(text + depth + 5, ')', depth);
        int result = nt_filter_new(text, 2 * depth + 5, NOW, &filter, &error);
        assert_int_equal(result, depth == NT_FILTER_DEPTH ? 0 : -NT_ESYNTAX);
    }
    assert_int_equal(error.column, NT_FILTER_DEPTH + 1);
    nt_filter_free(filter);
    /* NOTs and conditions side by side are no depth. */
    memset(text, ' ', ROOM);
    for (size_t at = 0; at + 20 < NT_FILTER_BYTES; at += 4)
        memcpy(text + at, "NOT ", 4);
    memcpy(text + NT_FILTER_BYTES - 12, "value = 1   ", 12);
    assert_int_equal(nt_filter_new(text, NT_FILTER_BYTES, NOW, &filter, &error), 0);
    nt_filter_free(filter);
    for (size_t at = 0; at < NT_FILTER_BYTES - 8; at += 8)
        memcpy(text + at, at / 8 % 2 ? "n=3 and " : "n=1  or ", 8);
    memcpy(text + NT_FILTER_BYTES - 8, "n=2     ", 8);
    assert_int_equal(nt_filter_new(text, NT_FILTER_BYTES, NOW, &filter, &error), 0);
    const struct nt_event yes = { .merged = 1 }, no = { .merged = 5 };
    const struct nt_filter_context context = { 0 };
    assert_true(nt_filter_match(filter, &yes, &context));
    assert_false(nt_filter_match(filter, &no, &context));
    nt_filter_free(filter);
    assert_int_equal(nt_filter_new(text, NT_FILTER_BYTES + 1, NOW, &filter, &error), -NT_ESYNTAX);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_all_numbers_exactly),
        cmocka_unit_test(compares_ranges_and_sets),
        cmocka_unit_test(knows_every_column),
        cmocka_unit_test(evaluates_every_small_tree),
        cmocka_unit_test(binds_as_sql_does),
        cmocka_unit_test(compares_names),
        cmocka_unit_test(finds_one_of_many),
        cmocka_unit_test(tells_what_is_possible),
        cmocka_unit_test(tells_what_must_hold),
        cmocka_unit_test(tells_whose_names_it_asks_for),
        cmocka_unit_test(says_what_is_wrong_and_where),
        cmocka_unit_test(is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
