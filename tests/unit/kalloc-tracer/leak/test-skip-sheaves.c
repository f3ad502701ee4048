/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The array of a struct slab_sheaf keeps no object alive. */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#define OBJECT  LG_OBJECT(7)
#define CACHE   (LG_DIRECT + LG_AT_SLAB + 0x4000)
#define SHEAF   (LG_DIRECT + LG_AT_SLAB + 0x4800)
#define ROOM    4u              /* sheaf_capacity */
#define SIZE    (LG_SHEAF_OBJECTS + 8 * ROOM)

TEST(test_only_a_sheafs_objects, "/leak-sheaves/only-a-sheafs-objects")
{
    static const struct {
        unsigned requested, capacity, at;
        uint64_t cache;
        bool counts;
    } row[] = {
        { SIZE, ROOM, LG_SHEAF_OBJECTS, CACHE, false },
        { SIZE, ROOM, SIZE - 8, CACHE, false },
        { SIZE, ROOM, 0, CACHE, true },             /* before the objects */
        { SIZE, ROOM, LG_SHEAF_OBJECTS - 8, CACHE, true },
        { SIZE + 8, ROOM, LG_SHEAF_OBJECTS, CACHE, true },  /* another size */
        { SIZE, ROOM + 1, LG_SHEAF_OBJECTS, CACHE, true },
        { SIZE, UINT32_MAX, LG_SHEAF_OBJECTS, CACHE, true },
        { SIZE, 0, LG_SHEAF_OBJECTS, CACHE, true },
        { SIZE, ROOM, LG_SHEAF_OBJECTS, CACHE + 8, true },  /* no cache */
        { SIZE, ROOM, LG_SHEAF_OBJECTS, SHEAF, true },
        { SIZE, ROOM, LG_SHEAF_OBJECTS, 0, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        KtCacheId caches = kt_tracer_add_cache(g->t, LG_CACHE(3), "kmem_cache",
                                               LG_KMEM_CACHE_SIZE,
                                               LG_KMEM_CACHE_SIZE);
        KtCacheId sheaves = kt_tracer_add_cache(g->t, LG_CACHE(4),
                                                "kmalloc-128", 128, 128);

        lg_alloc(g, CACHE, LG_KMEM_CACHE_SIZE, KT_LAYER_CACHE, caches);
        lg_alloc_sized(g, SHEAF, row[i].requested, 128, KT_LAYER_KMALLOC,
                       sheaves);
        lg_put(g, LG_IMAGE + LG_ROOT, CACHE);
        lg_put(g, LG_IMAGE + LG_ROOT + 8, SHEAF);
        lg_put(g, CACHE + LG_KMEM_CACHE_CAPACITY, row[i].capacity);
        lg_put(g, SHEAF + LG_SHEAF_CACHE, row[i].cache);
        lg_put(g, SHEAF + row[i].at, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
        g_assert_cmpint(lg_place_of(g, OBJECT, SHEAF + row[i].at), ==,
                        row[i].counts ? KT_PLACE_BLOCK : KT_PLACE_FREELIST);
    }
}
