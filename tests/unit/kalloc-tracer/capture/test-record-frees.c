/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vfree() in a kernel that does not say whether it runs in an interrupt: the
 * kernel of these tests has no types. Each area is freed once, and calls of the
 * worker are no second free; what is an error is still reported. Also vmap(),
 * kvfree_rcu_cb(), and kernels that lack symbols of allocator functions.
 */
#include "tests/lib/fake-capture.h"
#include "tests/lib/test-main.h"

#define AREA 0xffffc90000100000ull

static void vmalloc(FakeCapture *w)
{
    call(w, 0, VMALLOC, 4096);
    leave_kmalloc(w, 0, AREA);
}

static uint64_t errors(FakeCapture *w)
{
    return stats_of(w).errors;
}

static uint64_t live(FakeCapture *w)
{
    return stats_of(w).live_blocks;
}

static FakeCapture *started(void)
{
    FakeCapture *w = fake_capture_new(NULL, false);

    test_qemu_run(START);
    vmalloc(w);
    return w;
}

/* @atomic: the place that vfree_atomic() is entered from */
static void freed_in_an_interrupt(unsigned atomic)
{
    g_autoptr(FakeCapture) w = started();

    call(w, 2, VFREE, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    call(w, atomic, VFREE_ATOMIC, AREA);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_DEFERRED), ==, 1);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_UNJUDGED), ==, 0);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 1);
}

TEST(the_worker_ends_what_vfree_queued_by_a_call,
     "/vfree/the-worker-ends-what-vfree-queued-by-a-call")
{
    freed_in_an_interrupt(IN_VFREE);
}

TEST(the_worker_ends_what_vfree_queued_by_a_jump,
     "/vfree/the-worker-ends-what-vfree-queued-by-a-jump")
{
    freed_in_an_interrupt(2);
}

/* A case with a capture @w that has started. */
#define STARTED_TEST(fn, path) \
    TEST_IN(g_autoptr(FakeCapture), FakeCapture *w, started(), fn, path)

STARTED_TEST(two_calls_from_elsewhere_are_a_double_free,
             "/vfree/two-calls-from-elsewhere-are-a-double-free")
{
    call(w, 2, VFREE, AREA);
    call(w, 2, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 1);
}

STARTED_TEST(what_is_queued_after_its_free_is_an_error,
             "/vfree/what-is-queued-after-its-free-is-an-error")
{
    call(w, 2, VFREE, AREA);
    call(w, 3, VFREE_ATOMIC, AREA);
    g_assert_cmpuint(errors(w), ==, 1);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 1);
}

STARTED_TEST(what_was_queued_is_freed_by_the_worker,
             "/vfree/what-was-queued-is-freed-by-the-worker")
{
    call(w, 2, VFREE_ATOMIC, AREA);
    g_assert_cmpuint(live(w), ==, 1);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_DEFERRED), ==, 0);
}

STARTED_TEST(an_unknown_area_is_an_invalid_free,
             "/vfree/an-unknown-area-is-an-invalid-free")
{
    call(w, 2, VFREE, AREA + 0x10000);
    call(w, IN_WORKER, VFREE, AREA + 0x20000);
    g_assert_cmpuint(errors(w), ==, 2);
}

/* ---- vmap() -------------------------------------------------------------- */

static void vmap(FakeCapture *w, uint64_t flags)
{
    *test_qemu_reg(GS_REG_ARG1) = 3;
    *test_qemu_reg(GS_REG_ARG2) = flags;
    call(w, 0, VMAP, 0);
    leave_kmalloc(w, 0, AREA + 0x10000);
}

STARTED_TEST(an_area_that_owns_its_pages_is_a_block,
             "/vmap/an-area-that-owns-its-pages-is-a-block")
{
    KtBlock b;

    vmap(w, 0x200);
    kt_query_begin(w->t);
    g_assert_true(kt_query_find(w->t, AREA + 0x12fff, &b));
    kt_query_end(w->t);
    g_assert_cmpuint(b.requested, ==, 3 * 4096);
    g_assert_cmpint(b.layer, ==, KT_LAYER_VMALLOC);
    call(w, 2, VFREE, AREA + 0x10000);
    g_assert_cmpuint(live(w), ==, 1);
    vmap(w, 0x204);
    call(w, 2, VUNMAP, AREA + 0x10000);
    g_assert_cmpuint(live(w), ==, 1);
    call(w, 2, VUNMAP, AREA + 0x20000);
    g_assert_cmpuint(errors(w), ==, 0);
}

STARTED_TEST(another_area_is_none, "/vmap/another-area-is-none")
{
    vmap(w, 4);
    call(w, 2, VUNMAP, AREA + 0x10000);
    g_assert_cmpuint(live(w), ==, 1);
    g_assert_cmpuint(errors(w), ==, 0);
}

/* The kernel removes the area, and its pages are lost. */
STARTED_TEST(an_area_of_vmalloc_is_not_for_vunmap,
             "/vmap/an-area-of-vmalloc-is-not-for-vunmap")
{
    call(w, 2, VUNMAP, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    g_assert_cmpuint(errors(w), ==, 1);
}

/* Although vmap() made blocks: those have no gfp flags. */
STARTED_TEST(vmap_has_no_gfp_flags, "/vmap/has-no-gfp-flags")
{
    vmap(w, 0x200);
    run_kmalloc(w, BLOCK);
    call(w, 2, VUNMAP, BLOCK);
    g_assert_cmpuint(live(w), ==, 3);
    g_assert_cmpuint(errors(w), ==, 1);
    call(w, 2, VUNMAP, AREA + 0x10000);
    g_assert_cmpuint(live(w), ==, 2);
    g_assert_cmpuint(errors(w), ==, 1);
}

/* What is no area is refused. */
STARTED_TEST(a_block_of_kmalloc_is_not_for_vunmap,
             "/vmap/a-block-of-kmalloc-is-not-for-vunmap")
{
    run_kmalloc(w, BLOCK);
    call(w, 2, VUNMAP, BLOCK);
    g_assert_cmpuint(live(w), ==, 2);
    g_assert_cmpuint(errors(w), ==, 1);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 1);
}

/* ---- kvfree_rcu_cb() ----------------------------------------------------- */

STARTED_TEST(the_callback_frees_what_contains_its_argument,
             "/rcu-callback/frees-what-contains-its-argument")
{
    run_kmalloc(w, BLOCK);
    call(w, 2, RCU_CALLBACK, BLOCK + 32);
    g_assert_cmpuint(live(w), ==, 1);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 0);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 1);
}

/* vfree() follows, with an event of its own. */
STARTED_TEST(the_callback_leaves_vmalloc_to_vfree,
             "/rcu-callback/leaves-vmalloc-to-vfree")
{
    call(w, 2, RCU_CALLBACK, AREA + 32);
    g_assert_cmpuint(live(w), ==, 1);
    call(w, 3, VFREE, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    g_assert_cmpuint(errors(w), ==, 0);
}

/* ---- functions without symbols ------------------------------------------- */

static FakeCapture *started_without(const char *words)
{
    FakeCapture *w = fake_capture_new(NULL, true);

    g_assert_true(gs_kernel_hide(w->file, words));
    test_qemu_run(START);
    return w;
}

TEST(areas_of_a_missing_vmalloc_are_not_judged,
     "/coverage/areas-of-a-missing-vmalloc")
{
    g_autoptr(FakeCapture) w = started_without("symbol:__vmalloc_node_range");

    call(w, 2, VFREE, AREA);
    call(w, 2, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_UNHOOKED), ==, 2);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 1);
}

TEST(objects_of_a_missing_kmalloc_are_not_judged,
     "/coverage/objects-of-a-missing-kmalloc")
{
    g_autoptr(FakeCapture) w = started_without("symbol:kmem_cache_alloc");

    run_kmalloc(w, BLOCK);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK + 4096);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_UNHOOKED), ==, 2);
}

TEST(memory_that_a_missing_function_frees_is_not_judged,
     "/coverage/memory-that-a-missing-function-frees")
{
    g_autoptr(FakeCapture) w = started_without("symbol:kmem_cache_free");

    run_kmalloc(w, BLOCK);
    run_kmalloc(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_ALLOC_UNJUDGED), ==, 1);
    run_kfree(w, BLOCK);
    run_kfree(w, BLOCK);
    g_assert_cmpuint(errors(w), ==, 1);
}

/* ---- the worker has no symbol ------------------------------------------- */

static FakeCapture *started_without_worker(void)
{
    FakeCapture *w = fake_capture_new(NULL, true);

    g_assert_true(gs_kernel_hide(w->file, "symbol:delayed_vfree_work"));
    test_qemu_run(START);
    vmalloc(w);
    return w;
}

TEST(one_more_vfree_is_not_judged, "/vfree/one-more-vfree-is-not-judged")
{
    g_autoptr(FakeCapture) w = started_without_worker();

    call(w, 2, VFREE, AREA);
    call(w, 2, VFREE_ATOMIC, AREA);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 0);
    g_assert_cmpuint(counter_of(w, KT_CNT_FREE_UNJUDGED), ==, 1);
    call(w, 3, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 1);
}

TEST(vfree_atomic_is_the_free_then, "/vfree/vfree-atomic-is-the-free-then")
{
    g_autoptr(FakeCapture) w = started_without_worker();

    call(w, 2, VFREE_ATOMIC, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(errors(w), ==, 0);
    vmalloc(w);
    g_assert_cmpuint(live(w), ==, 1);
    call(w, IN_WORKER, VFREE, AREA);
    g_assert_cmpuint(live(w), ==, 0);
    g_assert_cmpuint(errors(w), ==, 0);
}
