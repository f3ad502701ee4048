/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model's rules for pages, which are freed in other pieces than they were
 * allocated in and are passed on inside the allocator, and for objects whose
 * slab was freed.
 */
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

static void alloc_pages(FedTracer *w, uint64_t va, unsigned n, uint8_t flags)
{
    push(w, (KtEvent) {
        .kind = KT_EV_ALLOC, .va = va, .size = n * 4096ull,
        .actual = n * 4096ull, .layer = KT_LAYER_PAGES, .stack = { 1 },
        .flags = flags,
    });
}

static void free_pages(FedTracer *w, uint64_t va, unsigned n, uint8_t flags)
{
    push(w, (KtEvent) {
        .kind = KT_EV_FREE, .va = va, .size = n * 4096ull,
        .family = KT_FAMILY_PAGES, .stack = { 2 }, .flags = flags,
    });
}

static void expect_pages(FedTracer *w, uint64_t va, uint64_t start, unsigned n,
                         KtBlockState state)
{
    KtBlock b;

    g_assert_true(find(w, va, &b));
    g_assert_cmphex(b.va, ==, start);
    g_assert_cmpuint(b.requested, ==, n * 4096ull);
    g_assert_cmpuint(b.actual, ==, n * 4096ull);
    g_assert_cmpint(b.state, ==, state);
    g_assert_cmpuint(b.alloc_us, ==, 100);
    g_assert_cmpuint(b.alloc_stack.v, ==, 1);
    g_assert_cmpuint(b.free_stack.v, ==, state == KT_BLOCK_FREED ? 2 : 0);
}

/* A balloon: its page ends when the host gets it, and is nobody's when it comes
 * back. Neither is an error. */
TRACER_TEST(removed_pages_end_and_come_back, "/model/pages/removed")
{
    KtBlock b;

    alloc_pages(&w, VA, 1, 0);
    free_pages(&w, VA, 1, KT_EVF_REMOVED);
    expect_pages(&w, VA, VA, 1, KT_BLOCK_FREED);
    g_assert_true(find(&w, VA, &b) && b.removed);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 0);
    g_assert_cmpuint(counter(&w, KT_CNT_REMOVED_BLOCKS), ==, 1);
    g_assert_cmpuint(counter(&w, KT_CNT_REMOVED_BYTES), ==, 4096);
    free_pages(&w, VA, 1, 0);
    g_assert_false(find(&w, VA, &b));
    g_assert_cmpuint(stats(&w).history_rows, ==, 1);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_PAGES_UNKNOWN), ==, 0);
    alloc_pages(&w, VA, 1, 0);
    g_assert_true(find(&w, VA, &b) && !b.removed);
    expect(&w, "");
}

/* Memory is unplugged: everything in it ends, a block at its end in part. What
 * was freed there before is a past life, so a later free is no second one. */
TRACER_TEST(blocks_end_with_their_memory, "/model/pages/unplugged")
{
    KtBlock b;

    alloc_pages(&w, VA, 2, 0);
    alloc_pages(&w, VA + 0x2000, 1, 0);
    free_pages(&w, VA + 0x2000, 1, 0);
    alloc_pages(&w, VA + 0x3000, 4, 0);
    push(&w, (KtEvent) {
        .kind = KT_EV_ALLOC, .va = VA + 0x1000, .size = 64, .actual = 64,
        .layer = KT_LAYER_KMALLOC, .stack = { 1 },
    });
    free_pages(&w, VA, 5, KT_EVF_REMOVED);
    g_assert_false(find(&w, VA + 0x2000, &b));
    g_assert_true(find(&w, VA + 0x1000, &b) && b.removed);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 1);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 2 * 4096);
    g_assert_cmpuint(counter(&w, KT_CNT_REMOVED_BLOCKS), ==, 3);
    free_pages(&w, VA, 5, KT_EVF_REMOVED);
    g_assert_cmpuint(counter(&w, KT_CNT_REMOVED_BLOCKS), ==, 3);
    free_pages(&w, VA + 0x2000, 1, 0);
    free_pages(&w, VA, 8, KT_EVF_FRESH);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    expect(&w, "");
}

/* split_page() and the split of a huge page: any part, in any order. */
TRACER_TEST(pages_come_back_in_parts, "/model/pages/in-parts")
{
    alloc_pages(&w, VA, 8, 0);
    free_pages(&w, VA + 0x2000, 2, 0);
    expect_pages(&w, VA + 0x1000, VA, 2, KT_BLOCK_ALLOCATED);
    expect_pages(&w, VA + 0x3000, VA + 0x2000, 2, KT_BLOCK_FREED);
    expect_pages(&w, VA + 0x7000, VA + 0x4000, 4, KT_BLOCK_ALLOCATED);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 6 * 4096);
    free_pages(&w, VA, 1, 0);
    expect_pages(&w, VA, VA, 1, KT_BLOCK_FREED);
    expect_pages(&w, VA + 0x1000, VA + 0x1000, 1, KT_BLOCK_ALLOCATED);
    free_pages(&w, VA + 0x7000, 1, 0);
    expect_pages(&w, VA + 0x4000, VA + 0x4000, 3, KT_BLOCK_ALLOCATED);
    free_pages(&w, VA, 8, 0);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 0);
    g_assert_cmpuint(stats(&w).freed_blocks, ==, 5);
    alloc_pages(&w, VA, 8, 0);
    g_assert_cmpuint(stats(&w).history_rows, ==, 5);
    expect(&w, "");
}

TRACER_TEST(pages_of_nobody, "/model/pages/of-nobody")
{
    free_pages(&w, VA, 1, 0);
    free_pages(&w, VA, 1024, KT_EVF_FRESH);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_PAGES_UNKNOWN), ==, 2);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 0);
    expect(&w, "");
}

TRACER_TEST(pages_freed_twice, "/model/pages/freed-twice")
{
    alloc_pages(&w, VA, 4, 0);
    free_pages(&w, VA, 4, 0);
    /* The same call once more, new memory, part of it: no error. */
    free_pages(&w, VA, 4, KT_EVF_AGAIN);
    free_pages(&w, VA, 4, KT_EVF_FRESH);
    free_pages(&w, VA, 2, 0);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_PAGES_UNKNOWN), ==, 2);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    free_pages(&w, VA, 4, 0);
    expect(&w, "double-free");
}

TRACER_TEST(pages_told_of_again, "/model/pages/told-of-again")
{
    alloc_pages(&w, VA, 2, 0);
    alloc_pages(&w, VA, 1, KT_EVF_IF_NEW);
    alloc_pages(&w, VA + 0x1000, 1, KT_EVF_IF_NEW);
    expect_pages(&w, VA + 0x1000, VA, 2, KT_BLOCK_ALLOCATED);
    free_pages(&w, VA, 2, 0);
    w.us = 100;
    alloc_pages(&w, VA, 1, KT_EVF_IF_NEW);
    expect_pages(&w, VA, VA, 1, KT_BLOCK_ALLOCATED);
    expect(&w, "");
}

TRACER_TEST(pages_change_hands, "/model/pages/change-hands")
{
    alloc_pages(&w, VA, 8, 0);
    w.us = 100;
    alloc_pages(&w, VA + 0x1000, 2, KT_EVF_TAKE);
    expect_pages(&w, VA, VA, 1, KT_BLOCK_ALLOCATED);
    expect_pages(&w, VA + 0x2000, VA + 0x1000, 2, KT_BLOCK_ALLOCATED);
    expect_pages(&w, VA + 0x3000, VA + 0x3000, 5, KT_BLOCK_ALLOCATED);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 8 * 4096);
    alloc_pages(&w, VA, 1, 0);
    expect(&w, "overlap");
}

/* kfree() of an object whose slab was given back. */
TEST(slab_was_given_back, "/model/slab/given-back")
{
    static const struct {
        KtLayer layer;
        uint16_t of, now;
        uint8_t flags;
        const char *kind;
    } cases[] = {
        { KT_LAYER_KMALLOC, 1, 1, KT_EVF_SLAB_READ, "double-free" },
        { KT_LAYER_KMALLOC, 1, 0, KT_EVF_SLAB_READ, "invalid-free" },
        { KT_LAYER_CACHE, 1, 0, KT_EVF_SLAB_READ, "invalid-free" },
        { KT_LAYER_CACHE, 1, 2, KT_EVF_SLAB_READ, "invalid-free" },
        { KT_LAYER_CACHE, 1, 0, 0, "double-free" },
        { KT_LAYER_KMALLOC, 0, 0, KT_EVF_SLAB_READ, "double-free" },
        { KT_LAYER_LARGE, 0, 0, KT_EVF_SLAB_READ, "double-free" },
        { KT_LAYER_LARGE, 0, 2, KT_EVF_SLAB_READ, "double-free" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(FedTracer) w = fed_tracer_new(true);

        alloc_in(&w, cases[i].layer, VA, 64, cases[i].of);
        for (unsigned n = 0; n < 2; n++) {
            push(&w, (KtEvent) {
                .kind = KT_EV_FREE, .va = VA, .family = KT_FAMILY_KFREE,
                .cache = { n ? cases[i].now : cases[i].of },
                .flags = cases[i].flags,
            });
        }
        expect(&w, cases[i].kind);
    }
}

/* What a page says of itself is not what the caller says of the block. */
TRACER_TEST(a_page_names_no_cache, "/model/slab/names-no-cache")
{
    KtBlock b;

    alloc_in(&w, KT_LAYER_LARGE, VA, 16384, 0);
    push(&w, (KtEvent) {
        .kind = KT_EV_FREE, .va = VA, .family = KT_FAMILY_KFREE,
        .cache = { 2 }, .flags = KT_EVF_SLAB_READ,
    });
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpuint(b.cache.v, ==, 0);
    expect(&w, "");
}

/* Pages are handed out where a freed block was: a query finds the pages. */
TRACER_TEST(pages_come_after_a_freed_block, "/model/pages/after-a-block")
{
    KtBlock b;

    alloc_pages(&w, VA, 4, 0);
    w.us = 101;
    alloc_in(&w, KT_LAYER_LARGE, VA, 4 * 4096, 0);
    g_assert_true(find(&w, VA, &b) && b.layer == KT_LAYER_LARGE);
    kfree(&w, VA);
    g_assert_true(find(&w, VA, &b) && b.state == KT_BLOCK_FREED);
    g_assert_cmpint(b.layer, ==, KT_LAYER_LARGE);
    g_assert_false(find_earlier(&w, VA, &b));
    free_pages(&w, VA, 4, 0);
    w.us = 102;
    alloc_pages(&w, VA, 2, 0);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(find(&w, VA + i * 4096, &b));
        g_assert_cmpint(b.layer, ==, KT_LAYER_PAGES);
        g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
        g_assert_true(find_earlier(&w, VA + i * 4096, &b));
        g_assert_cmpint(b.layer, ==, KT_LAYER_LARGE);
    }
    g_assert_true(find(&w, VA + 3 * 4096, &b));
    g_assert_cmpint(b.layer, ==, KT_LAYER_LARGE);
    g_assert_false(find_earlier(&w, VA + 3 * 4096, &b));
}

/* No page has a reference: the kernel frees nothing. */
TRACER_TEST(pages_without_references, "/model/pages/without-references")
{
    alloc_pages(&w, VA, 4, 0);
    free_pages(&w, VA, 4, KT_EVF_UNREFERENCED);
    free_pages(&w, VA + 0x8000, 1, KT_EVF_UNREFERENCED);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_PAGES_UNKNOWN), ==, 2);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    free_pages(&w, VA + 0x1000, 1, KT_EVF_UNREFERENCED);
    expect_pages(&w, VA, VA, 4, KT_BLOCK_ALLOCATED);
    expect(&w, "interior-free");
}

TRACER_TEST(freed_pages_without_references,
            "/model/pages/freed-without-references")
{
    alloc_pages(&w, VA, 4, 0);
    free_pages(&w, VA, 4, 0);
    free_pages(&w, VA, 4, KT_EVF_UNREFERENCED);
    expect_pages(&w, VA, VA, 4, KT_BLOCK_FREED);
    expect(&w, "double-free");
}

/* Since 7.0 the pages of a slab have no references. */
TRACER_TEST(objects_without_references,
            "/model/pages/objects-without-references")
{
    KtBlock b;

    alloc_pages(&w, VA, 1, 0);
    alloc_in(&w, KT_LAYER_KMALLOC, VA + 64, 64, 1);
    free_pages(&w, VA, 1, KT_EVF_UNREFERENCED);
    g_assert_true(find(&w, VA + 64, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
    expect(&w, "wrong-family");
}

/* An object is freed, its slab is given back, and the page allocator hands out
 * the page again. What is freed at that address then are the new pages. */
TEST(pages_of_a_former_slab, "/model/pages/of-a-former-slab")
{
    static const struct {
        KtFamily family;
        uint16_t cache;
        bool newer;         /* the pages were handed out after the object */
        const char *kind;
    } cases[] = {
        { KT_FAMILY_CACHE, 0, true, "invalid-free" },
        { KT_FAMILY_KFREE, 0, true, "wrong-family" },
        { KT_FAMILY_VFREE, 0, true, "wrong-family" },
        /* they are the object's slab, or another one */
        { KT_FAMILY_CACHE, 0, false, "double-free" },
        { KT_FAMILY_CACHE, 2, true, "double-free" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(FedTracer) w = fed_tracer_new(true);
        bool newer = cases[i].newer;
        KtBlock b;

        alloc_pages(&w, VA, 1, 0);
        alloc_in(&w, KT_LAYER_KMALLOC, VA, 24, 1);
        free_by(&w, KT_FAMILY_KFREE, VA, 1);
        if (newer) {
            free_pages(&w, VA, 1, 0);
            alloc_pages(&w, VA, 2, 0);
        }
        push(&w, (KtEvent) {
            .kind = KT_EV_FREE, .va = VA, .family = cases[i].family,
            .cache = { cases[i].cache }, .flags = KT_EVF_SLAB_READ,
        });
        g_assert_true(find(&w, VA + 0x800, &b));
        g_assert_cmpuint(b.requested, ==, newer ? 8192 : 4096);
        g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
        expect(&w, cases[i].kind);
    }
}

/* kfree_rcu() queues such an address, and frees it later: one error. */
TRACER_TEST(queued_pages_of_a_former_slab,
            "/model/pages/queued-of-a-former-slab")
{
    alloc_in(&w, KT_LAYER_KMALLOC, VA, 24, 1);
    kfree(&w, VA);
    alloc_pages(&w, VA, 2, 0);
    kfree_rcu(&w, VA);
    kfree(&w, VA);
    expect(&w, "wrong-family");
}
