/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap map: sums stay as cells get larger, and there are never too many. */
#include "tests/lib/test-main.h"
#include "monitor-cmds/commands/commands.h"

#define BASE 0xffff888000000000ull

static KtBlock block(uint64_t va, uint64_t size, KtLayer layer)
{
    return (KtBlock) { .va = va, .requested = size, .actual = size,
                       .alloc_us = 7, .layer = layer,
                       .state = KT_BLOCK_ALLOCATED };
}

static void add(McHeapMap *m, uint64_t va, uint64_t size, KtLayer layer,
                uint64_t caller)
{
    KtBlock b = block(va, size, layer);

    mc_heap_map_add(m, &b, caller);
}

/* The bytes of all cells. */
static uint64_t bytes_of(const McHeapMap *m)
{
    uint64_t sum = 0;

    for (unsigned s = 0; s < MC_SPACE__COUNT; s++) {
        for (unsigned i = 0; i < m->cell[s]->len; i++) {
            const McMapCell *c = &g_array_index(m->cell[s], McMapCell, i);

            g_assert_true(!i || c[-1].va < c->va);
            sum += c->live + c->pages;
        }
    }
    return sum;
}

TEST(test_coarser, "/heap-map/coarser")
{
    g_autoptr(McHeapMap) m = mc_heap_map_new(64);

    for (unsigned i = 0; i < 1000; i++) {
        add(m, BASE + i * 0x3000, 0x2000, KT_LAYER_KMALLOC, i);
        g_assert_cmpuint(mc_heap_map_cells(m), <=, 64);
    }
    add(m, 0xffffc90000000000ull, 64, KT_LAYER_VMALLOC, 1);
    g_assert_cmpuint(bytes_of(m), ==, 1000 * 0x2000 + 64);
    g_assert_cmpuint(m->live, ==, bytes_of(m));
    g_assert_cmpuint(m->blocks, ==, 1001);
    g_assert_cmpuint(m->shift, >, MC_MAP_SHIFT);
}

/* A guest may have a block of any size; the last one ends where the address
 * space does. */
TEST(test_large, "/heap-map/large")
{
    g_autoptr(McHeapMap) m = mc_heap_map_new(64);

    add(m, 0, 1ull << 62, KT_LAYER_PAGES, 1);
    add(m, BASE, 0x1000, KT_LAYER_KMALLOC, 1);
    add(m, 0xffffffffffffff00ull, 0x100, KT_LAYER_KMALLOC, 1);
    g_assert_cmpuint(mc_heap_map_cells(m), <=, 64);
    g_assert_cmpuint(bytes_of(m), ==, (1ull << 62) + 0x1100);
}

TEST(test_pages_below_objects, "/heap-map/pages-below-objects")
{
    g_autoptr(McHeapMap) m = mc_heap_map_new(64);
    const McMapCell *c;

    add(m, BASE, 0x4000, KT_LAYER_PAGES, 1);
    add(m, BASE, 0x40, KT_LAYER_KMALLOC, 2);
    add(m, BASE + 0x1000, 0x40, KT_LAYER_KMALLOC, 3);
    add(m, BASE + 0x1040, 0x40, KT_LAYER_KMALLOC, 2);
    add(m, BASE + 0x1080, 0x40, KT_LAYER_KMALLOC, 2);
    g_assert_cmpuint(mc_heap_map_cells(m), ==, 4);
    c = mc_heap_map_at(m, MC_SPACE_DIRECT, BASE + 0x1fff);
    g_assert_cmpuint(c->pages, ==, 0x1000);
    g_assert_cmpuint(c->live, ==, 0xc0);
    g_assert_cmpuint(c->caller.key, ==, 2);
    g_assert_null(mc_heap_map_at(m, MC_SPACE_DIRECT, BASE + 0x4000));
    g_assert_null(mc_heap_map_at(m, MC_SPACE_VMALLOC, BASE));
}

TEST(test_choose, "/heap-map/choose")
{
    g_autoptr(McHeapMap) m = mc_heap_map_new(64);

    for (unsigned i = 0; i < 4; i++) {      /* cell i has i + 1 objects */
        for (unsigned k = 0; k <= i; k++) {
            add(m, BASE + i * 0x1000 + k * 0x100, 0x100, KT_LAYER_KMALLOC, 1);
        }
    }
    mc_heap_map_at(m, MC_SPACE_DIRECT, BASE + 0x3000)->listed = true;
    mc_heap_map_choose(m, 6);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_cmpint(mc_heap_map_at(m, MC_SPACE_DIRECT,
                                       BASE + i * 0x1000)->listed, ==,
                        i == 0 || i == 3);
    }
}
