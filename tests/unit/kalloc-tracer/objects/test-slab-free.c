/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is an object free, by the lists: on each kind of list, in all forms of free
 * pointers; and if a list is wrong, or the page is another cache's.
 */
#include "kalloc-tracer/objects/slab-slots.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#define CACHE   SG_LISTED
#define OTHER   2u
#define SIZE    SG_LISTED_SIZE
#define PAGE    4096u

static uint64_t slot_at(unsigned page, unsigned slot)
{
    return SG_DIRECT + page * PAGE + slot * SIZE + 100;
}

static KtAnswer ask(SlabGuest *g, unsigned cache, unsigned page, unsigned slot)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtSlabs) s = kt_slabs_new(&g->o, &err);
    KtFreeQuestion q[] = {
        { .va = slot_at(page, slot), .cache = sg_cache(cache) },
        { .va = slot_at(page, slot) + 1, .cache = sg_cache(cache) },
    };

    g_assert_no_error(err);
    kt_slabs_ask_free(s, q, G_N_ELEMENTS(q));
    g_assert_cmpint(q[0].answer, ==, q[1].answer);
    return q[0].answer;
}

TEST(test_lists, "/slab-free/lists")
{
    static const struct {
        SgKind kind;
        SgForm form;
    } row[] = {
        { SG_5_10, SG_PLAIN }, { SG_5_10, SG_XOR }, { SG_6_12, SG_PLAIN },
        { SG_6_12, SG_SWAP },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = slab_guest_with_lists(row[i].kind,
                                                       row[i].form);

        g_assert_cmpint(ask(g, CACHE, 16, 9), ==, KT_YES);
        g_assert_cmpint(ask(g, CACHE, 16, 5), ==, KT_YES);
        g_assert_cmpint(ask(g, CACHE, 17, 1), ==, KT_YES);
        g_assert_cmpint(ask(g, CACHE, 16, 1), ==, KT_NO);
        g_assert_cmpint(ask(g, CACHE, 17, 4), ==, KT_NO);
        g_assert_cmpint(ask(g, CACHE, 18, 0), ==, KT_NO);
    }
}

TEST(test_sheaves, "/slab-free/sheaves")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_7_3, SG_PLAIN);
    uint64_t full[SG_CAPACITY];

    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    sg_add_slab(g, CACHE, 16, NULL, 0);
    for (unsigned i = 0; i < SG_CAPACITY; i++) {
        full[i] = sg_object(g, CACHE, 16, i);
    }
    sg_add_sheaf(g, CACHE, 0, (uint64_t[]) { sg_object(g, CACHE, 16, 12) }, 1);
    sg_add_sheaf(g, CACHE, 1, full, SG_CAPACITY);
    sg_set_sheaves(g, CACHE, 0, 0, UINT_MAX, UINT_MAX);
    sg_set_barn(g, CACHE, true, (unsigned[]) { 1 }, 1);
    g_assert_cmpint(ask(g, CACHE, 16, 12), ==, KT_YES);
    g_assert_cmpint(ask(g, CACHE, 16, 2), ==, KT_YES);
    g_assert_cmpint(ask(g, CACHE, 16, 7), ==, KT_NO);
}

/* The memory went on: who had the object has it no more. */
TEST(test_gone, "/slab-free/gone")
{
    g_autoptr(SlabGuest) g = slab_guest_with_lists(SG_6_12, SG_SWAP);

    sg_add_cache(g, OTHER, "other", SIZE);
    g_assert_cmpint(ask(g, OTHER, 16, 1), ==, KT_YES);
    g_assert_cmpint(ask(g, CACHE, 30, 1), ==, KT_YES);
}

/* A list that leaves its slab tells nothing of what is not on it. */
TEST(test_broken, "/slab-free/broken")
{
    g_autoptr(SlabGuest) g = slab_guest_with_lists(SG_6_12, SG_PLAIN);
    g_autoptr(GError) err = NULL;
    g_autoptr(KtSlabs) s = kt_slabs_new(&g->o, &err);
    KtFreeQuestion q = { .va = SG_VMEMMAP, .cache = sg_cache(CACHE) };

    kt_slabs_ask_free(s, &q, 1);
    g_assert_cmpint(q.answer, ==, KT_UNKNOWN);
    q.cache = 0x1000;
    kt_slabs_ask_free(s, &q, 1);
    g_assert_cmpint(q.answer, ==, KT_UNKNOWN);
    sg_set_next(g, CACHE, 16, 8, 0x1234);
    g_assert_cmpint(ask(g, CACHE, 16, 2), ==, KT_YES);
    g_assert_cmpint(ask(g, CACHE, 16, 5), ==, KT_UNKNOWN);
    g_assert_cmpint(ask(g, CACHE, 18, 0), ==, KT_UNKNOWN);
}
