/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and strings: given out once, used again by size, and refused when the cap is reached. */
#include "log/log_test.h"

static struct log_map *map_of(nt_log *log)
{
    return &log->map;
}

static unsigned char *block_at(struct log_map *map, uint32_t block)
{
    return map->blocks + (uint64_t)block * 64;
}

static void blocks_are_zeroed_and_apart(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct log_map *map = map_of(log);
    static const unsigned char zero[256];
    uint32_t last_end = 1; /* unit 0 is never used */
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t units = i % 3 ? 4 : 2, block = log_block_new(map, units);
        assert_true(block >= last_end);
        assert_memory_equal(block_at(map, block), zero, units * 64);
        memset(block_at(map, block), 0xff, units * 64);
        last_end = block + units;
    }
    nt_log_close(log);
}

static void blocks_are_used_again_by_size(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct log_map *map = map_of(log);
    static const unsigned char zero[256];
    uint32_t four[3], two[3];
    for (int i = 0; i < 3; i++) {
        four[i] = log_block_new(map, 4);
        two[i] = log_block_new(map, 2);
        memset(block_at(map, four[i]), 0xff, 256);
        memset(block_at(map, two[i]), 0xff, 128);
    }
    uint32_t used = map->live->blocks;
    for (int i = 0; i < 3; i++) {
        log_block_free(map, four[i], 4);
        log_block_free(map, two[i], 2);
    }
    for (int i = 2; i >= 0; i--) { /* last in, first out */
        assert_int_equal(log_block_new(map, 4), four[i]);
        assert_memory_equal(block_at(map, four[i]), zero, 256);
        assert_int_equal(log_block_new(map, 2), two[i]);
        assert_memory_equal(block_at(map, two[i]), zero, 128);
    }
    assert_int_equal(map->live->blocks, used);
    assert_int_equal(log_block_new(map, 4), used);
    nt_log_close(log);
}

/* Every unit given out is backed; the cap is kept; what was given out before stays as it was. */
static void blocks_end_at_the_cap(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct log_map *map = map_of(log);
    uint32_t blocks[8192], count = 0;
    while (count < 8192 && (blocks[count] = log_block_new(map, 4)) != 0) {
        assert_true(log_is_backed(map, block_at(map, blocks[count]), 256));
        memset(block_at(map, blocks[count]), (int)(count & 0x7f) + 1, 256);
        count++;
    }
    assert_true(count > 100 && count < 8192);
    assert_true(map->live->backed <= 524288);
    assert_int_equal(log_block_new(map, 4), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(block_at(map, blocks[i])[255], (int)(i & 0x7f) + 1);
    log_block_free(map, blocks[7], 4);
    assert_int_equal(log_block_new(map, 4), blocks[7]);
    nt_log_close(log);
}

/* ---- strings ---- */

static void assert_name(struct log_map *map, const struct nt_layout_object *entry, const char *name, size_t size)
{
    assert_int_equal(entry->name_size, size);
    assert_true(entry->name_room >= size);
    assert_memory_equal(map->strings + (uint64_t)entry->name * 16, name, size);
}

static void strings_of_all_sizes(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct log_map *map = map_of(log);
    static struct nt_layout_object entries[256];
    char name[256];
    memset(entries, 0, sizeof(entries));
    for (size_t size = 0; size < 256; size++) {
        memset(name, (int)size, sizeof(name));
        assert_true(log_string_set(map, &entries[size], name, size));
        assert_int_not_equal(entries[size].name, 0);
    }
    for (size_t size = 0; size < 256; size++) { /* nobody wrote over anybody */
        memset(name, (int)size, sizeof(name));
        assert_name(map, &entries[size], name, size);
    }
    nt_log_close(log);
}

static void a_longer_string_frees_the_old_cell(void **state)
{
    (void)state;
    nt_log *log = test_log(1 << 20, 16384);
    struct log_map *map = map_of(log);
    static struct nt_layout_object one, other;
    char name[256];
    memset(name, 'n', sizeof(name));
    assert_true(log_string_set(map, &one, name, 16));
    uint32_t cell = one.name;
    assert_true(log_string_set(map, &one, name, 3)); /* shorter: stays */
    assert_int_equal(one.name, cell);
    assert_int_equal(one.name_room, 16);
    assert_true(log_string_set(map, &one, name, 200));
    assert_int_not_equal(one.name, cell);
    assert_name(map, &one, name, 200);
    assert_true(log_string_set(map, &other, name, 10)); /* of the old one's size */
    assert_int_equal(other.name, cell);
    nt_log_close(log);
}

static void strings_end_at_the_cap(void **state)
{
    (void)state;
    nt_log *log = test_log(524288, 16384);
    struct log_map *map = map_of(log);
    static struct nt_layout_object entries[4096];
    char name[256];
    uint32_t count = 0;
    memset(entries, 0, sizeof(entries));
    memset(name, 'n', sizeof(name));
    while (count < 4096 && log_string_set(map, &entries[count], name, 255))
        count++;
    assert_true(count > 100 && count < 4096);
    assert_true(map->live->backed <= 524288);
    assert_int_equal(entries[count].name, 0);
    assert_int_equal(entries[count].name_size, 0);
    nt_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(blocks_are_zeroed_and_apart),
        log_test(blocks_are_used_again_by_size),
        log_test(blocks_end_at_the_cap),
        log_test(strings_of_all_sizes),
        log_test(a_longer_string_frees_the_old_cell),
        log_test(strings_end_at_the_cap),
    };
    return cmocka_run_group_tests_name("log/block", tests, NULL, NULL);
}
