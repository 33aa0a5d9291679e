/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the regions lie, for small, odd and large caps, and what is not taken for a log. */
#include "log/log_test.h"

static const uint64_t caps[] = { 524288,         524288 + 4097,     1 << 20,          64 << 20,
                                 (64 << 20) + 1, UINT64_C(1) << 32, UINT64_C(1) << 40 };

#define CAPS (sizeof(caps) / sizeof(caps[0]))

static const struct nt_layout_region *region_of(const struct nt_layout_header *header, uint32_t id)
{
    for (uint32_t i = 0; i < header->region_count; i++)
        if (header->regions[i].id == id)
            return &header->regions[i];
    return NULL;
}

static void regions_do_not_overlap(void **state)
{
    (void)state;
    for (size_t i = 0; i < CAPS; i++) {
        struct nt_layout_header header = { 0 };
        uint64_t size = log_layout_plan(&header, caps[i]), end = 2 * NT_LAYOUT_PAGE;
        assert_int_equal(header.file_size, size);
        assert_int_equal(header.cap, caps[i]);
        assert_true(header.region_count <= NT_LAYOUT_REGIONS);
        for (uint32_t k = 0; k < header.region_count; k++) {
            const struct nt_layout_region *region = &header.regions[k];
            assert_int_equal(region->offset % NT_LAYOUT_PAGE, 0);
            assert_int_equal(region->size % NT_LAYOUT_PAGE, 0);
            assert_true(region->offset >= end);
            assert_true(region->size >= region->entry_size);
            end = region->offset + region->size;
        }
        assert_true(end <= size);
    }
}

static void each_region_has_its_entries(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = { { NT_REGION_REDO, sizeof(struct nt_layout_redo) },
                                         { NT_REGION_KINDS, sizeof(struct nt_layout_kind) },
                                         { NT_REGION_CONTROL, 8 },
                                         { NT_REGION_CHANGES, sizeof(struct nt_layout_change) },
                                         { NT_REGION_OBJECTS, sizeof(struct nt_layout_object) },
                                         { NT_REGION_RINGS, sizeof(struct nt_layout_ring) } };
    for (size_t i = 0; i < CAPS; i++) {
        struct nt_layout_header header = { 0 };
        log_layout_plan(&header, caps[i]);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
            assert_int_equal(region_of(&header, sizes[k][0])->entry_size, sizes[k][1]);
        uint64_t slots = region_of(&header, NT_REGION_OBJECTS)->size / sizeof(struct nt_layout_object);
        assert_true(region_of(&header, NT_REGION_CONTROL)->size / 8 >= slots);
        assert_true(region_of(&header, NT_REGION_CHANGES)->size / 32 > slots);
        assert_true(slots <= (UINT32_C(1) << NT_LAYOUT_SLOT_BITS));
        assert_true(region_of(&header, NT_REGION_RECORDS)->size >= caps[i]);
        assert_true(region_of(&header, NT_REGION_BLOCKS)->size / 64 <= UINT32_MAX);
    }
}

/* A page that the bitmap has no bit for could never be marked as backed. */
static void bitmap_covers_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < CAPS; i++) {
        struct nt_layout_header header = { 0 };
        uint64_t size = log_layout_plan(&header, caps[i]);
        assert_true(region_of(&header, NT_REGION_BITMAP)->size * 8 >= size / NT_LAYOUT_PAGE);
        assert_true(region_of(&header, NT_REGION_BITMAP)->size * 8 < size / NT_LAYOUT_PAGE * 2 + 3 * 32768);
    }
}

/* ---- binding ---- */

static struct log_map map_new(struct nt_layout_header **ret_header)
{
    struct log_map map = { .base = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) };
    assert_true(map.base != MAP_FAILED);
    *ret_header = (void *)map.base;
    map.size = log_layout_plan(*ret_header, 1 << 20);
    assert_true(map.size <= 8 << 20);
    return map;
}

static void map_free(struct log_map *map)
{
    munmap(map->base, 8 << 20);
}

static void binding_points_into_the_regions(void **state)
{
    (void)state;
    struct nt_layout_header *header;
    struct log_map map = map_new(&header);
    assert_true(log_layout_bind(&map));
    assert_ptr_equal(map.header, map.base);
    assert_ptr_equal(map.live, map.base + NT_LAYOUT_PAGE);
    assert_ptr_equal(map.objects, map.base + region_of(header, NT_REGION_OBJECTS)->offset);
    assert_ptr_equal(map.control, map.base + region_of(header, NT_REGION_CONTROL)->offset);
    assert_ptr_equal(map.records, map.base + region_of(header, NT_REGION_RECORDS)->offset);
    assert_int_equal(map.slot_max, region_of(header, NT_REGION_OBJECTS)->size / 256);
    assert_int_equal(map.block_max, region_of(header, NT_REGION_BLOCKS)->size / 64);
    assert_int_equal(map.string_max, region_of(header, NT_REGION_STRINGS)->size / 16);
    assert_int_equal(map.record_bytes, region_of(header, NT_REGION_RECORDS)->size);
    assert_int_equal(map.kind_max, 191);
    map_free(&map);
}

static void binding_refuses_bad_regions(void **state)
{
    (void)state;
    struct nt_layout_header *header;
    struct log_map map = map_new(&header);
    struct nt_layout_header good = *header;
    for (uint32_t i = 0; i < good.region_count; i++) {
        header->regions[i].offset++;
        assert_false(log_layout_bind(&map));
        *header = good;
        header->regions[i].offset = map.size + NT_LAYOUT_PAGE;
        assert_false(log_layout_bind(&map));
        *header = good;
        header->regions[i].size = map.size - header->regions[i].offset + 1;
        assert_false(log_layout_bind(&map));
        *header = good;
        header->regions[i].size = UINT64_MAX - 8;
        assert_false(log_layout_bind(&map));
        *header = good;
        header->regions[i].entry_size = 0;
        assert_false(log_layout_bind(&map));
        *header = good;
        header->regions[i].id = 4711;
        assert_false(log_layout_bind(&map));
        *header = good;
    }
    assert_true(log_layout_bind(&map));
    map_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_do_not_overlap),      cmocka_unit_test(each_region_has_its_entries),
        cmocka_unit_test(bitmap_covers_the_file),      cmocka_unit_test(binding_points_into_the_regions),
        cmocka_unit_test(binding_refuses_bad_regions),
    };
    return cmocka_run_group_tests_name("log/layout", tests, NULL, NULL);
}
