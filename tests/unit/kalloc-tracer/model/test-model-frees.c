/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frees of every kind of block by every kind of function: what is an error, and
 * whether the block is free afterwards, as in the kernel.
 */
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

/* A block that is in the map of the tracer: allocated or freed. */
static KtBlockState state_of(FedTracer *w, uint64_t va)
{
    KtBlock b;

    g_assert_true(find(w, va, &b));
    return b.state;
}

/* Every family on every layer: 1 = may free. What Linux refuses stays live. */
TEST(families, "/frees/families")
{
    static const uint8_t may[KT_FAMILY__COUNT][KT_LAYER__COUNT] = {
        /*                     -  kmalloc large cache vmalloc percpu */
        [KT_FAMILY_ANY] =    { 0, 1, 1, 1, 1, 1 },
        [KT_FAMILY_KFREE] =  { 0, 1, 1, 1, 0, 0 },
        [KT_FAMILY_CACHE] =  { 0, 1, 0, 1, 0, 0 },
        [KT_FAMILY_VFREE] =  { 0, 0, 0, 0, 1, 0 },
        [KT_FAMILY_PERCPU] = { 0, 0, 0, 0, 0, 1 },
        [KT_FAMILY_KMALLOC] = { 0, 1, 1, 0, 0, 0 },
        [KT_FAMILY_ZONE] =   { 0, 0, 0, 1, 0, 0 },
    };

    for (unsigned f = 0; f < KT_FAMILY__COUNT; f++) {
        for (unsigned l = KT_LAYER_KMALLOC;
             f != KT_FAMILY_PAGES && l < KT_LAYER_PAGES; l++) {
            g_auto(FedTracer) w = fed_tracer_new(true);
            bool frees = may[f][l] || f == KT_FAMILY_KMALLOC ||
                         f == KT_FAMILY_ZONE;

            alloc_in(&w, l, VA, 64, 3);
            free_by(&w, f, VA, 3);
            g_assert_cmpint(state_of(&w, VA), ==,
                            frees ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED);
            expect(&w, may[f][l] ? "" : "wrong-family");
        }
    }
}

/* One wrong call is one error: the right free that follows is none. */
TRACER_TEST(a_refused_free_leaves_the_block_live,
            "/frees/a-refused-free-leaves-the-block-live")
{
    alloc(&w, VA, 4096);
    free_by(&w, KT_FAMILY_VFREE, VA, 0);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 1);
    kfree(&w, VA);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    alloc_in(&w, KT_LAYER_VMALLOC, VA, 8192, 0);
    kfree(&w, VA);
    free_by(&w, KT_FAMILY_CACHE, VA, 1);
    free_by(&w, KT_FAMILY_VFREE, VA, 0);
    expect(&w, "wrong-family wrong-family wrong-family");
}

/* vfree() in an interrupt, of which it is unknown that it is one: the worker's
 * call is the second half of the same mistake. */
TRACER_TEST(a_refused_free_that_was_queued_is_told_once,
            "/frees/a-refused-free-that-was-queued-is-told-once")
{
    KtEvent ev = { .kind = KT_EV_FREE, .va = VA, .family = KT_FAMILY_VFREE };

    alloc(&w, VA, 4096);
    ev.flags = KT_EVF_QUEUES;
    push(&w, ev);
    ev.flags = KT_EVF_WORKER;
    push(&w, ev);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_DEFERRED), ==, 1);
    kfree(&w, VA);
    expect(&w, "wrong-family");
}

/* kfree() frees the compound page, and vfree() the area, that contains the
 * address. */
TEST(what_is_freed_from_inside, "/frees/what-is-freed-from-inside")
{
    static const struct {
        KtLayer layer;
        KtFamily family;
        unsigned offset;
        bool freed;
    } cases[] = {
        { KT_LAYER_KMALLOC, KT_FAMILY_KFREE, 64, false },
        { KT_LAYER_LARGE, KT_FAMILY_KFREE, 64, true },
        { KT_LAYER_LARGE, KT_FAMILY_VFREE, 4096, false },
        { KT_LAYER_VMALLOC, KT_FAMILY_VFREE, 4096, true },
        { KT_LAYER_VMALLOC, KT_FAMILY_VFREE, 64, false },
        { KT_LAYER_VMALLOC, KT_FAMILY_KFREE, 4096, false },
        { KT_LAYER_PERCPU, KT_FAMILY_PERCPU, 8, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(FedTracer) w = fed_tracer_new(true);

        alloc_in(&w, cases[i].layer, VA, 16384, 0);
        free_by(&w, cases[i].family, VA + cases[i].offset, 0);
        g_assert_cmpint(state_of(&w, VA), ==,
                        cases[i].freed ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED);
        expect(&w, "interior-free");
    }
}

/* ---- tags ---------------------------------------------------------------- */

static void push_tagged(FedTracer *w, KtEventKind kind, uint8_t tag)
{
    push(w, (KtEvent) {
        .kind = kind, .va = VA, .size = 64, .actual = 64, .gfp = 0xcc0,
        .layer = kind == KT_EV_ALLOC ? KT_LAYER_KMALLOC : KT_LAYER_NONE,
        .family = kind == KT_EV_FREE ? KT_FAMILY_KFREE : KT_FAMILY_ANY,
        .tag = tag,
    });
}

/* Two lives at one address, of which the first has tag @first. */
static FedTracer two_lives(bool complete, uint8_t first, uint8_t second)
{
    FedTracer w = fed_tracer_new(complete);

    push_tagged(&w, KT_EV_ALLOC, first);
    push_tagged(&w, KT_EV_FREE, first);
    push_tagged(&w, KT_EV_ALLOC, second);
    return w;
}

/* The kernel refuses the pointer of the first life. The owner's is right. */
TEST(pointer_of_an_earlier_life, "/frees/pointer-of-an-earlier-life")
{
    g_auto(FedTracer) w = two_lives(true, 0xd1, 0x2e);
    KtBlock b;

    push_tagged(&w, KT_EV_FREE, 0xd1);
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_ALLOCATED);
    push_tagged(&w, KT_EV_FREE, 0x2e);
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmphex(b.gfp, ==, 0xcc0);
    expect(&w, "double-free");
}

/* A pointer without a tag fits each life, and a life without a tag each
 * pointer. */
TEST(unknown_tags_decide_nothing, "/frees/unknown-tags-decide-nothing")
{
    static const uint8_t rows[][2] = { { 0x2e, 0 }, { 0, 0xd1 }, { 0, 0 },
                                       { 0x2e, 0x2e } };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(FedTracer) w = two_lives(true, 0x11, rows[i][0]);

        push_tagged(&w, KT_EV_FREE, rows[i][1]);
        g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
        expect(&w, "");
    }
}

/* The block may have had another life in the gap. */
TEST(tag_of_a_block_from_before_a_gap,
     "/frees/tag-of-a-block-from-before-a-gap")
{
    g_auto(FedTracer) w = two_lives(true, 0xd1, 0x2e);

    off_and_on(&w);
    push_tagged(&w, KT_EV_FREE, 0x77);
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
    expect(&w, "");
}

/* kfree_rcu() of an old pointer is accepted; the free is refused later. */
TEST(pointer_of_an_earlier_life_is_queued,
     "/frees/pointer-of-an-earlier-life-is-queued")
{
    g_auto(FedTracer) w = two_lives(true, 0xd1, 0x2e);

    push_tagged(&w, KT_EV_RCU_QUEUE, 0xd1);
    push_tagged(&w, KT_EV_FREE, 0xd1);
    push_tagged(&w, KT_EV_RCU_QUEUE, 0x2e);
    push_tagged(&w, KT_EV_FREE, 0x2e);
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
    expect(&w, "double-free");
}

/* Areas of vmalloc() and large blocks are freed by any pointer. */
TEST(tags_of_pages_decide_nothing, "/frees/tags-of-pages-decide-nothing")
{
    static const struct {
        KtLayer layer;
        KtFamily family;
    } rows[] = { { KT_LAYER_VMALLOC, KT_FAMILY_VFREE },
                 { KT_LAYER_LARGE, KT_FAMILY_KFREE } };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(FedTracer) w = fed_tracer_new(true);

        push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA, .size = 16384,
                             .layer = rows[i].layer, .tag = 0x2e });
        push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = VA,
                             .family = rows[i].family, .tag = 0xd1 });
        g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
        expect(&w, "");
    }
}

/* ---- what is no memory --------------------------------------------------- */

/* An error pointer is no memory in any boot, also in one that began late. */
TEST(no_memory_is_freed, "/frees/no-memory-is-freed")
{
    g_auto(FedTracer) w = fed_tracer_new(false);

    kfree(&w, (uint64_t)-2);
    free_by(&w, KT_FAMILY_VFREE, KT_ERROR_POINTER, 0);
    free_by(&w, KT_FAMILY_CACHE, 0, 1);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 0);
    g_assert_cmpuint(counter(&w, KT_CNT_EV_FREE), ==, 3);
    expect(&w, "invalid-free invalid-free invalid-free");
}

TEST(no_memory_is_queued, "/frees/no-memory-is-queued")
{
    g_auto(FedTracer) w = fed_tracer_new(false);

    kfree_rcu(&w, (uint64_t)-2);
    kfree(&w, (uint64_t)-2);
    g_assert_cmpuint(stats(&w).errors, ==, 1);
    kfree(&w, (uint64_t)-2);
    expect(&w, "invalid-free invalid-free");
}

TRACER_TEST(wrong_cache, "/frees/wrong-cache")
{
    KtBlock b;

    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    free_by(&w, KT_FAMILY_CACHE, VA, 2);
    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    free_by(&w, KT_FAMILY_CACHE, VA, 0);
    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    free_by(&w, KT_FAMILY_KFREE, VA, 2);
    alloc_in(&w, KT_LAYER_KMALLOC, VA, 64, 0);
    free_by(&w, KT_FAMILY_CACHE, VA, 2);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpuint(b.cache.v, ==, 2);
    expect(&w, "wrong-cache");
}

/* Since 7.0 the kernel keeps such an object. */
TRACER_TEST(wrong_cache_of_a_strict_kernel,
            "/frees/wrong-cache-of-a-strict-kernel")
{
    alloc_in(&w, KT_LAYER_CACHE, VA, 64, 1);
    push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = VA, .cache = { 2 },
                         .family = KT_FAMILY_CACHE, .flags = KT_EVF_STRICT });
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_ALLOCATED);
    free_by(&w, KT_FAMILY_CACHE, VA, 1);
    g_assert_cmpint(state_of(&w, VA), ==, KT_BLOCK_FREED);
    expect(&w, "wrong-cache");
}

/* ---- pages --------------------------------------------------------------- */

#define GFP_KERNEL 0xcc0
#define GFP_COMP 0x40000

static void alloc_pages(FedTracer *w, uint64_t va, unsigned n, uint32_t gfp)
{
    push(w, (KtEvent) { .kind = KT_EV_ALLOC, .va = va, .size = n * 4096ull,
                        .actual = n * 4096ull, .layer = KT_LAYER_PAGES,
                        .gfp = gfp });
}

static void free_pages(FedTracer *w, uint64_t va, unsigned n, uint8_t flags)
{
    push(w, (KtEvent) { .kind = KT_EV_FREE, .va = va, .size = n * 4096ull,
                        .family = KT_FAMILY_PAGES, .flags = flags });
}

/* What is known of the pages decides whether another order is wrong. */
TEST(another_order, "/frees/another-order")
{
    static const struct {
        unsigned n, freed, offset;
        uint32_t gfp;
        uint8_t flags;
        const char *kinds;
    } cases[] = {
        { 32, 32, 0, GFP_KERNEL, KT_EVF_ORDER, "" },
        /* not split; in pieces after split_page(); not the order of a block */
        { 32, 8, 0, GFP_KERNEL, KT_EVF_ORDER | KT_EVF_UNSPLIT, "wrong-order" },
        { 32, 8, 0, GFP_KERNEL, KT_EVF_ORDER, "" },
        { 32, 8, 0, GFP_KERNEL, KT_EVF_UNSPLIT, "" },
        /* a compound page; one that was split; pages of compaction */
        { 32, 8, 0, GFP_COMP, KT_EVF_ORDER | KT_EVF_OTHER_ORDER,
          "wrong-order" },
        { 32, 8, 0, GFP_COMP, KT_EVF_ORDER | KT_EVF_UNSPLIT, "" },
        { 32, 8, 0, 0, KT_EVF_ORDER | KT_EVF_UNSPLIT, "" },
        /* the rest of a block */
        { 3, 1, 0, GFP_KERNEL, KT_EVF_ORDER | KT_EVF_UNSPLIT, "" },
        { 32, 8, 8, GFP_KERNEL, KT_EVF_ORDER | KT_EVF_UNSPLIT, "" },
        /* more than the block; pages that are freed together */
        { 2, 4, 0, GFP_KERNEL, KT_EVF_ORDER, "wrong-order" },
        { 2, 4, 0, GFP_KERNEL, 0, "" },
    };
    const uint64_t at = 0xffff888000100000;

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(FedTracer) w = fed_tracer_new(true);
        uint64_t va = at + 4096 * cases[i].offset;

        alloc_pages(&w, at, cases[i].n, cases[i].gfp);
        free_pages(&w, va, cases[i].freed, cases[i].flags);
        g_assert_cmpint(state_of(&w, va), ==, KT_BLOCK_FREED);
        if (cases[i].freed < cases[i].n && !cases[i].offset) {
            g_assert_cmpint(state_of(&w, at + 4096 * cases[i].freed), ==,
                            KT_BLOCK_ALLOCATED);
        }
        expect(&w, cases[i].kinds);
    }
}

/* The pages' own allocation is shown, unless they are those of a slab. */
TRACER_TEST(pages_by_functions_of_blocks, "/frees/pages-by-functions-of-blocks")
{
    alloc_pages(&w, VA, 2, GFP_KERNEL);
    kfree(&w, VA);
    kfree(&w, VA + 4096);
    free_by(&w, KT_FAMILY_VFREE, VA, 0);
    free_by(&w, KT_FAMILY_PERCPU, VA, 0);
    push(&w, (KtEvent) { .kind = KT_EV_FREE, .va = VA, .cache = { 1 },
                         .family = KT_FAMILY_KFREE,
                         .flags = KT_EVF_SLAB_READ });
    g_assert_cmpuint(stats(&w).live_blocks, ==, 1);
    free_pages(&w, VA, 2, KT_EVF_ORDER);
    kfree(&w, VA);
    expect(&w, "wrong-family interior-free wrong-family invalid-free "
               "invalid-free invalid-free");
}

/* kfree() takes pages that are no compound page for a single one. */
TRACER_TEST(what_kfree_frees_of_pages, "/frees/what-kfree-frees-of-pages")
{
    alloc_pages(&w, 0xffff888000100000, 4, GFP_KERNEL);
    kfree(&w, 0xffff888000100000);
    free_pages(&w, 0xffff888000100000, 1, KT_EVF_ORDER | KT_EVF_UNSPLIT);
    g_assert_cmpint(state_of(&w, 0xffff888000100000), ==, KT_BLOCK_FREED);
    g_assert_cmpint(state_of(&w, 0xffff888000101000), ==, KT_BLOCK_ALLOCATED);
    expect(&w, "wrong-family");
}

TRACER_TEST(blocks_by_functions_of_pages, "/frees/blocks-by-functions-of-pages")
{
    alloc_pages(&w, VA, 4, GFP_COMP);
    alloc_in(&w, KT_LAYER_LARGE, VA, 16384, 0);
    free_pages(&w, VA, 4, KT_EVF_ORDER);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    g_assert_cmpuint(stats(&w).errors, ==, 1);
    /* Objects of a slab: one call is one error. */
    alloc_pages(&w, VA, 1, GFP_COMP);
    alloc(&w, VA, 64);
    alloc(&w, VA + 64, 64);
    free_pages(&w, VA, 1, KT_EVF_ORDER);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 2);
    kfree(&w, VA);
    kfree(&w, VA + 64);
    /* The slab is empty: its pages are freed rightly. */
    alloc_pages(&w, VA, 1, GFP_COMP);
    free_pages(&w, VA, 1, KT_EVF_ORDER);
    expect(&w, "wrong-family wrong-family");
}

/* ---- caches -------------------------------------------------------------- */

static void destroy(FedTracer *w, uint16_t cache)
{
    push(w, (KtEvent) { .kind = KT_EV_DESTROY, .va = VA + 0x8000,
                        .cache = { cache } });
}

/* The errors of objects that are left in a cache: first object and count of
 * each. */
typedef struct LeftErrors {
    uint64_t va[32], n[32];
    bool has_block;
    unsigned errors;
} LeftErrors;

static bool read_left(const KtError *e, void *opaque)
{
    LeftErrors *l = opaque;

    g_assert_cmpint(e->kind, ==, KT_ERR_OBJECTS_LEFT);
    g_assert_cmpint(e->has_block, ==, l->has_block);
    l->va[l->errors] = e->block.va;
    l->n[l->errors++] = e->size;
    return true;
}

static LeftErrors errors_of(FedTracer *w, bool has_block)
{
    LeftErrors l = { .has_block = has_block };

    kt_query_begin(w->t);
    kt_query_errors(w->t, 0, UINT64_MAX, read_left, &l);
    kt_query_end(w->t);
    return l;
}

static void alloc_by(FedTracer *w, uint32_t stack, uint16_t cache, uint64_t va)
{
    push(w, (KtEvent) { .kind = KT_EV_ALLOC, .va = va, .size = 64,
                        .layer = KT_LAYER_CACHE, .cache = { cache },
                        .stack = { stack } });
}

/* An error for each stack. Freed objects and those of others do not count, and
 * the objects stay live. */
TRACER_TEST(objects_left_in_a_cache, "/frees/objects-left-in-a-cache")
{
    LeftErrors l;

    alloc_by(&w, 1, 1, VA);
    alloc_by(&w, 1, 1, VA + 64);
    alloc_by(&w, 2, 1, VA + 128);
    alloc_by(&w, 2, 1, VA + 192);
    alloc_by(&w, 1, 2, VA + 256);
    free_by(&w, KT_FAMILY_CACHE, VA + 128, 1);
    destroy(&w, 1);
    l = errors_of(&w, true);
    g_assert_cmpuint(l.errors, ==, 2);
    g_assert_cmphex(l.va[0], ==, VA);
    g_assert_cmpuint(l.n[0], ==, 2);
    g_assert_cmphex(l.va[1], ==, VA + 192);
    g_assert_cmpuint(l.n[1], ==, 1);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 4);
    g_assert_cmpuint(counter(&w, KT_CNT_EV_DESTROY), ==, 1);
    expect(&w, "objects-left objects-left");
}

/* The kernel says that there are some, so the error stands without them. */
TEST(objects_left_that_are_unknown, "/frees/objects-left-that-are-unknown")
{
    g_auto(FedTracer) w = fed_tracer_new(false);
    LeftErrors l;

    alloc_by(&w, 1, 1, VA);
    off_and_on(&w);
    destroy(&w, 1);
    destroy(&w, 0);
    l = errors_of(&w, false);
    g_assert_cmpuint(l.errors, ==, 2);
    g_assert_cmpuint(l.n[0], ==, 0);
    expect(&w, "objects-left objects-left");
}

TRACER_TEST(stacks_of_objects_left_are_bounded,
            "/frees/stacks-of-objects-left-are-bounded")
{
    for (unsigned i = 1; i <= 40; i++) {
        alloc_by(&w, i, 1, VA + 64 * i);
    }
    destroy(&w, 1);
    g_assert_cmpuint(errors_of(&w, true).errors, ==, 16);
}
