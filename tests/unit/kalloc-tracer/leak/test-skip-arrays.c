/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arrays of free objects of SLAB keep no object alive: those of a CPU, of a
 * node, and of two nodes. What does not fit is not skipped. */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#define OBJECT  LG_OBJECT(7)
#define CACHE   (LG_DIRECT + LG_AT_SLAB + 0x4000)
#define NODE(i) (LG_DIRECT + LG_AT_SLAB + 0x4100 + 64ull * (i))
#define SHARED  (LG_DIRECT + LG_AT_SLAB + 0x4200)
#define TABLE   (LG_DIRECT + LG_AT_SLAB + 0x4300)
#define ALIEN   (LG_DIRECT + LG_AT_SLAB + 0x4400)
#define LIMIT   4u
#define SIZE    (LG_ARRAY_ENTRY + 8 * LIMIT)
#define CPU(i)  (LG_DIRECT + LG_AT_PERCPU + 4096ull * (i) + LG_PERCPU)

static void put_array(LeakGuest *g, uint64_t va)
{
    lg_put(g, va, 1 | (uint64_t)LIMIT << 32);
}

/* A cache of two nodes; everything is reached from variables. */
static LeakGuest *new_guest(void)
{
    LeakGuest *g = leak_guest_new();
    KtCacheId caches = kt_tracer_add_cache(g->t, LG_CACHE(3), "kmem_cache",
                                           LG_KMEM_CACHE_SIZE,
                                           LG_KMEM_CACHE_SIZE);
    KtCacheId other = kt_tracer_add_cache(g->t, LG_CACHE(4), "kmalloc-64", 64,
                                          64);
    static const uint64_t block[] = { NODE(0), NODE(1), SHARED, TABLE, ALIEN };

    lg_alloc(g, CACHE, LG_KMEM_CACHE_SIZE, KT_LAYER_CACHE, caches);
    lg_put(g, LG_IMAGE + LG_ROOT, CACHE);
    for (unsigned i = 0; i < G_N_ELEMENTS(block); i++) {
        lg_alloc(g, block[i], 64, KT_LAYER_KMALLOC, other);
        lg_put(g, LG_IMAGE + LG_ROOT + 8 + 8 * i, block[i]);
    }
    lg_put(g, LG_IMAGE + LG_NR_NODE_IDS, 2);
    lg_put(g, CACHE + LG_KMEM_CACHE_ARRAYS, LG_PERCPU);
    lg_put(g, CACHE + LG_KMEM_CACHE_NODE, NODE(0));
    lg_put(g, CACHE + LG_KMEM_CACHE_NODE + 8, NODE(1));
    lg_put(g, NODE(0) + LG_NODE_ALIEN, TABLE);
    lg_put(g, NODE(1) + LG_NODE_SHARED, SHARED);
    lg_put(g, TABLE + 8, ALIEN);
    put_array(g, CPU(0));
    put_array(g, CPU(1));
    put_array(g, SHARED);
    put_array(g, ALIEN + LG_ALIEN_ARRAY);
    return g;
}

TEST(test_only_entries, "/leak-arrays/only-entries")
{
    static const struct {
        uint64_t at;            /* refers to the object */
        uint64_t changed, to;   /* 0: nothing is */
        bool counts;
    } row[] = {
        { CPU(0) + LG_ARRAY_ENTRY, 0, 0, false },
        { CPU(1) + SIZE - 8, 0, 0, false },
        { CPU(0) + LG_ARRAY_ENTRY - 8, 0, 0, true },
        { SHARED + LG_ARRAY_ENTRY, 0, 0, false },
        { SHARED + SIZE - 8, 0, 0, false },
        { SHARED + LG_ARRAY_ENTRY - 8, 0, 0, true },
        { ALIEN + LG_ALIEN_ARRAY + LG_ARRAY_ENTRY, 0, 0, false },
        { ALIEN + LG_ALIEN_ARRAY + LG_ARRAY_ENTRY - 8, 0, 0, true },
        { TABLE, 0, 0, true },
        /* more entries than there is room, none, more free ones than entries */
        { SHARED + LG_ARRAY_ENTRY, SHARED, 7ull << 32, true },
        { SHARED + LG_ARRAY_ENTRY, SHARED, UINT64_MAX, true },
        { SHARED + LG_ARRAY_ENTRY, SHARED, 0, true },
        { SHARED + LG_ARRAY_ENTRY, SHARED, 5 | (uint64_t)LIMIT << 32, true },
        { CPU(0) + LG_ARRAY_ENTRY, CPU(1), 0, true },
        /* pointers into blocks, to other layers, and to nothing */
        { SHARED + LG_ARRAY_ENTRY, NODE(1) + LG_NODE_SHARED, SHARED + 8, true },
        { SHARED + LG_ARRAY_ENTRY, NODE(1) + LG_NODE_SHARED, LG_PERCPU, true },
        { SHARED + LG_ARRAY_ENTRY, NODE(1) + LG_NODE_SHARED, 8, true },
        { CPU(0) + LG_ARRAY_ENTRY, CACHE + LG_KMEM_CACHE_ARRAYS, SHARED, true },
        { ALIEN + LG_ALIEN_ARRAY + LG_ARRAY_ENTRY, NODE(0) + LG_NODE_ALIEN, 8,
          true },
        /* one node: the second one is not read */
        { SHARED + LG_ARRAY_ENTRY, LG_IMAGE + LG_NR_NODE_IDS, 1, true },
        { SHARED + LG_ARRAY_ENTRY, LG_IMAGE + LG_NR_NODE_IDS, UINT64_MAX,
          false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = new_guest();

        lg_put(g, LG_IMAGE + LG_ROOT + 64, LG_PERCPU);
        if (row[i].changed) {
            lg_put(g, row[i].changed, row[i].to);
        }
        lg_put(g, row[i].at, OBJECT);
        g_test_message("row %u", i);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
        g_assert_cmpint(lg_place_of(g, OBJECT, row[i].at), ==,
                        row[i].counts ? KT_PLACE_BLOCK : KT_PLACE_FREELIST);
    }
}

/* Two caches that claim the same array, and one that the tracer knows but that
 * is no block, as those of early boot. */
TEST(test_arrays_of_several_caches, "/leak-arrays/of-several-caches")
{
    g_autoptr(LeakGuest) g = new_guest();

    lg_put(g, LG_CACHE(0) + LG_KMEM_CACHE_NODE, NODE(1));
    lg_put(g, CACHE + LG_KMEM_CACHE_NODE, NODE(1));
    lg_put(g, NODE(0) + LG_NODE_ALIEN, 0);
    lg_put(g, SHARED + LG_ARRAY_ENTRY, OBJECT);
    g_assert_true(lg_is_leaked(g, OBJECT));
    g_assert_cmpint(lg_place_of(g, OBJECT, SHARED + LG_ARRAY_ENTRY), ==,
                    KT_PLACE_FREELIST);
    lg_put(g, CACHE + LG_KMEM_CACHE_NODE, 0);
    lg_put(g, CACHE + LG_KMEM_CACHE_NODE + 8, 0);
    g_assert_true(lg_is_leaked(g, OBJECT));
}
