/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model's rules: each kind of error, what is no error, what happens to
 * blocks and names, and events of a hostile guest.
 */
#include <string.h>

#include "kalloc-tracer/model/blocks.h"
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

/* ---- frees -------------------------------------------------------------- */

TRACER_TEST(plain_life, "/model/plain-life")
{
    KtBlock b;

    alloc(&w, VA, 64);
    g_assert_true(find(&w, VA + 63, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
    g_assert_false(find(&w, VA + 64, &b));
    kfree(&w, VA);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_FREED);
    g_assert_cmpuint(b.free_us, ==, 101);
    alloc(&w, VA, 32);
    g_assert_cmpuint(stats(&w).history_rows, ==, 1);
    expect(&w, "");
}

TEST(double_free, "/model/double-free")
{
    g_auto(FedTracer) w = fed_tracer_new(false);

    alloc(&w, VA, 64);
    kfree(&w, VA);
    kfree(&w, VA);
    kfree(&w, VA);
    expect(&w, "double-free double-free");
}

TRACER_TEST(invalid_free, "/model/invalid-free")
{
    kfree(&w, VA);
    alloc(&w, VA, 64);
    kfree(&w, VA);
    kfree(&w, VA + 8);
    kfree(&w, VA + 64);
    expect(&w, "invalid-free invalid-free invalid-free");
}

TEST(unknown_free_of_late_tracing, "/model/unknown-free-of-late-tracing")
{
    g_auto(FedTracer) w = fed_tracer_new(false);

    kfree(&w, VA);
    alloc(&w, VA, 64);
    kfree(&w, VA);
    kfree(&w, VA + 8);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 2);
    expect(&w, "");
}

TEST(interior_free, "/model/interior-free")
{
    g_auto(FedTracer) w = fed_tracer_new(false);
    KtBlock b;

    alloc(&w, VA, 64);
    kfree(&w, VA + 8);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
    kfree(&w, VA);
    expect(&w, "interior-free");
}

TRACER_TEST(pages_are_apart, "/model/pages-are-apart")
{
    KtBlock b;

    alloc_in(&w, KT_LAYER_PAGES, VA, 4096, 0);
    alloc(&w, VA, 64);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpint(b.layer, ==, KT_LAYER_KMALLOC);
    g_assert_true(find(&w, VA + 64, &b));
    g_assert_cmpint(b.layer, ==, KT_LAYER_PAGES);
    kfree(&w, VA);
    free_by(&w, KT_FAMILY_PAGES, VA, 0);
    free_by(&w, KT_FAMILY_PAGES, VA, 0);
    expect(&w, "double-free");
}

static void free_sized(FedTracer *w, uint64_t va, uint64_t size)
{
    push(w, (KtEvent) {
        .kind = KT_EV_FREE, .va = va, .size = size,
        .family = KT_FAMILY_KMALLOC, .flags = KT_EVF_SIZED,
    });
}

/* What was asked for counts, not what was reserved. */
TRACER_TEST(wrong_size, "/model/wrong-size")
{
    const uint64_t sizes[] = { 64, 0, 5ull << 32 };
    KtBlock b;

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        alloc(&w, VA, sizes[i]);
        free_sized(&w, VA, sizes[i]);
    }
    alloc(&w, VA, 64);
    free_sized(&w, VA, 80);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_FREED);
    free_sized(&w, VA, 80);
    expect(&w, "wrong-size double-free");
}

/* ---- kfree_rcu ---------------------------------------------------------- */

TRACER_TEST(queued_then_freed, "/model/rcu/queued-then-freed")
{
    KtBlock b;

    alloc(&w, VA, 64);
    kfree_rcu(&w, VA);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpint(b.state, ==, KT_BLOCK_ALLOCATED);
    g_assert_true(b.rcu_queued);
    g_assert_cmpuint(b.rcu_us, ==, 101);
    kfree(&w, VA);
    g_assert_true(find(&w, VA, &b));
    g_assert_true(b.rcu_queued);
    g_assert_cmpuint(b.free_us, ==, 102);
    expect(&w, "");
}

/* One mistake, one error: the second free was told when it was queued. */
TRACER_TEST(queued_twice_is_told_once, "/model/rcu/queued-twice-is-told-once")
{
    alloc(&w, VA, 64);
    kfree_rcu(&w, VA);
    kfree_rcu(&w, VA);
    kfree(&w, VA);
    kfree(&w, VA);
    g_assert_cmpuint(stats(&w).errors, ==, 1);
    kfree(&w, VA);
    expect(&w, "double-free double-free");
}

TRACER_TEST(queued_when_freed, "/model/rcu/queued-when-freed")
{
    alloc(&w, VA, 64);
    kfree(&w, VA);
    kfree_rcu(&w, VA);
    kfree(&w, VA);
    expect(&w, "double-free");
}

TRACER_TEST(freed_while_queued, "/model/rcu/freed-while-queued")
{
    alloc(&w, VA, 64);
    kfree_rcu(&w, VA);
    kfree(&w, VA);
    kfree(&w, VA);
    expect(&w, "double-free");
}

TRACER_TEST(queue_of_unknown, "/model/rcu/unknown")
{
    kfree_rcu(&w, VA);
    alloc(&w, VA, 64);
    kfree_rcu(&w, VA + 8);
    g_assert_cmpuint(counter(&w, KT_CNT_EV_UNKNOWN), ==, 2);
    expect(&w, "");
}

/* ---- allocations -------------------------------------------------------- */

TRACER_TEST(overlap_is_told_once, "/model/overlap-is-told-once")
{
    KtBlock b;

    for (unsigned i = 0; i < 8; i++) {
        alloc(&w, VA + i * 64, 64);
    }
    alloc(&w, VA + 32, 128);
    g_assert_false(find(&w, VA, &b));
    g_assert_true(find(&w, VA + 159, &b));
    g_assert_cmphex(b.va, ==, VA + 32);
    g_assert_false(find(&w, VA + 160, &b));
    g_assert_true(find(&w, VA + 192, &b));
    g_assert_cmpuint(stats(&w).live_blocks, ==, 6);
    g_assert_cmpuint(stats(&w).history_rows, ==, 3);
    expect(&w, "overlap");
}

TRACER_TEST(no_bytes, "/model/no-bytes")
{
    KtBlock b;

    push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA,
                         .layer = KT_LAYER_KMALLOC });
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpuint(kt_block_len(&b), ==, 0);
    g_assert_false(find(&w, VA + 1, &b));
    push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA + 8, .actual = 8,
                         .layer = KT_LAYER_KMALLOC });
    g_assert_true(find(&w, VA + 15, &b));
    g_assert_cmpuint(b.requested, ==, 0);
    kfree(&w, VA);
    kfree(&w, VA + 8);
    expect(&w, "");
}

TRACER_TEST(resized, "/model/resized")
{
    KtBlock b;

    push(&w, (KtEvent) { .kind = KT_EV_ALLOC, .va = VA, .size = 40,
                         .actual = 64, .layer = KT_LAYER_KMALLOC });
    resize(&w, VA, 60);
    g_assert_true(find(&w, VA, &b));
    g_assert_cmpuint(b.requested, ==, 60);
    g_assert_cmpuint(b.actual, ==, 64);
    alloc(&w, VA + 64, 8);
    resize(&w, VA, 70);
    g_assert_true(find(&w, VA + 69, &b));
    g_assert_cmphex(b.va, ==, VA);
    resize(&w, VA + 1, 5);
    g_assert_cmpuint(counter(&w, KT_CNT_EV_UNKNOWN), ==, 1);
    g_assert_cmpuint(stats(&w).live_bytes, ==, 70);
    expect(&w, "overlap");
}

/* ---- gaps and boots ----------------------------------------------------- */

/* Whatever happens to blocks from before a gap, it is nobody's fault. */
TRACER_TEST(nothing_is_certain_after_a_gap, "/model/gap/nothing-is-certain")
{
    alloc(&w, VA, 64);
    alloc(&w, VA + 64, 64);
    alloc_in(&w, KT_LAYER_VMALLOC, VA + 128, 64, 0);
    alloc(&w, VA + 192, 64);
    kfree(&w, VA + 64);
    alloc(&w, VA + 256, 64);
    off_and_on(&w);
    alloc(&w, VA, 64);
    kfree(&w, VA + 64);
    kfree(&w, VA + 128);
    kfree(&w, VA + 200);
    kfree(&w, VA + 4096);
    kfree_rcu(&w, VA + 64);
    g_assert_cmpuint(counter(&w, KT_CNT_RETIRED_GAP), ==, 1);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 4);
    g_assert_cmpuint(counter(&w, KT_CNT_GAPS), ==, 1);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    /* But what is seen after it is. */
    kfree(&w, VA);
    kfree(&w, VA);
    kfree(&w, VA + 256);
    kfree(&w, VA + 256);
    expect(&w, "double-free double-free");
}

/* A call that is lost may be handed what is freed while it goes on, long after
 * it was entered. What lives is nobody else's. */
TRACER_TEST(a_lost_call_hands_out_what_is_freed, "/model/gap/lost-call")
{
    push(&w, (KtEvent) { .kind = KT_EV_GAP, .flags = KT_EVF_UNSEEN });
    kt_tracer_clear(w.t);
    alloc(&w, VA, 64);
    kfree(&w, VA);
    kfree(&w, VA);
    kfree_rcu(&w, VA);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    alloc(&w, VA, 64);
    kfree(&w, VA + 8);
    alloc(&w, VA, 64);
    expect(&w, "interior-free overlap");
}

static void assert_all_old(const KtBlocks *b, bool old)
{
    for (uint32_t i = 1; i < b->rec.used; i++) {
        g_assert_cmpint(kt_rec(b, i)->old, ==, old);
    }
}

/* A guest may have gaps as often as it likes, with a million blocks. */
TEST(a_gap_looks_at_what_is_new, "/model/gap/looks-at-what-is-new")
{
    const unsigned n = 300000;
    const KtEvent ev = { .va = VA, .size = 64 };
    KtBlocks b;

    kt_blocks_init(&b, NULL);
    g_assert_cmpuint(kt_blocks_age(&b), ==, 0);
    for (unsigned i = 0; i < n; i++) {
        kt_blocks_set(&b, kt_blocks_new(&b), &ev);
    }
    assert_all_old(&b, false);
    g_assert_cmpuint(kt_blocks_age(&b), ==, n);
    assert_all_old(&b, true);
    g_assert_cmpuint(kt_blocks_age(&b), ==, 0);
    kt_blocks_set_freed(&b, 1, &ev);
    kt_blocks_unset(&b, n / 2);
    kt_blocks_set(&b, n / 2, &ev);
    kt_blocks_unset(&b, n / 4);
    kt_blocks_copy(&b, n / 4, n / 2, VA, 32);
    kt_blocks_set_freed(&b, n, &ev);
    g_assert_cmpuint(kt_blocks_age(&b), <=, 4 * 64);
    assert_all_old(&b, true);
    g_assert_cmpuint(kt_blocks_age(&b), ==, 0);
    kt_blocks_deinit(&b);
}

TRACER_TEST(switching_on_twice_is_no_gap, "/model/gap/on-twice-is-none")
{
    g_assert_true(kt_tracer_enabled(w.t));
    kt_tracer_set_enabled(w.t, true);
    g_assert_cmpuint(counter(&w, KT_CNT_GAPS), ==, 0);
    kt_tracer_set_enabled(w.t, false);
    g_assert_false(kt_tracer_enabled(w.t));
    kt_tracer_set_enabled(w.t, false);
    g_assert_cmpuint(counter(&w, KT_CNT_GAPS), ==, 0);
}

TRACER_TEST(clear_forgets, "/model/clear-forgets")
{
    KtBlock b;

    alloc(&w, VA, 64);
    kfree(&w, VA + 1);
    kt_tracer_clear(w.t);
    g_assert_false(find(&w, VA, &b));
    kfree(&w, VA);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==, 1);
    expect(&w, "");
}

TRACER_TEST(reset_begins_a_boot, "/model/reset-begins-a-boot")
{
    char comm[17];
    uint32_t pid;
    KtTaskId task = kt_tracer_intern_task(w.t, 7, "a\0c4567890123456");
    KtBlock b;

    alloc(&w, VA, 64);
    alloc(&w, VA + 64, 64);
    kfree(&w, VA + 64);
    kt_tracer_reset(w.t);
    g_assert_false(find(&w, VA, &b));
    g_assert_cmpuint(stats(&w).previous_live_blocks, ==, 1);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    g_assert_true(kt_tracer_task(w.t, task, &pid, comm));
    g_assert_cmpstr(comm, ==, "a");
    /* Not complete before somebody says so. */
    kfree(&w, VA);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    kt_tracer_set_complete(w.t, true);
    kfree(&w, VA);
    kt_tracer_reset(w.t);
    g_assert_cmpuint(stats(&w).previous_live_blocks, ==, 0);
    expect(&w, "");
}

/* ---- limits ------------------------------------------------------------- */

TRACER_TEST(errors_are_bounded, "/model/errors-are-bounded")
{
    for (unsigned i = 0; i < 65536 + 10; i++) {
        kfree(&w, VA + i * 8);
    }
    g_assert_cmpuint(stats(&w).errors, ==, 65536);
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_ERROR), ==, 10);
}

TEST(map_is_bounded, "/model/map-is-bounded")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_auto(FedTracer) w = { .us = 1 };
    unsigned n = 1000000;

    config.map_bytes = 16 * 1024 * 1024;
    w.t = kt_tracer_new(&config, NULL);
    kt_tracer_set_complete(w.t, true);
    for (unsigned i = 0; i < n; i++) {
        alloc(&w, VA + i * 64ull, 64);
    }
    g_assert_cmpuint(stats(&w).map_bytes, <, 32 * 1024 * 1024);
    g_assert_cmpuint(stats(&w).live_blocks, >, 100000);
    g_assert_cmpuint(counter(&w, KT_CNT_DROP_BLOCK), ==,
                     n - stats(&w).live_blocks);
    for (unsigned i = 0; i < n; i++) {
        kfree(&w, VA + i * 64ull);
    }
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNKNOWN), ==,
                     counter(&w, KT_CNT_DROP_BLOCK));
    expect(&w, "");
}

/* One allocation over a million blocks, again and again. */
TRACER_TEST(overlap_storm, "/model/overlap-storm")
{
    const unsigned n = 1000000;

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < n; i++) {
            alloc(&w, VA + i * 8ull, 8);
        }
        alloc(&w, VA - 4096, UINT64_MAX);
        g_assert_cmpuint(stats(&w).live_blocks, ==, 1);
    }
}

TRACER_TEST(wrapping_sizes, "/model/wrapping-sizes")
{
    KtBlock b;

    alloc(&w, UINT64_MAX, UINT64_MAX);
    alloc(&w, UINT64_MAX - 99, 50);
    alloc(&w, 0, 1);
    g_assert_true(find(&w, UINT64_MAX, &b));
    g_assert_cmphex(b.requested, ==, UINT64_MAX);
    g_assert_true(find(&w, 0, &b));
    g_assert_cmpuint(b.requested, ==, 1);
    alloc(&w, 0x8000000000000000, UINT64_MAX);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 2);
    g_assert_true(find(&w, UINT64_MAX, &b));
    g_assert_cmphex(b.va, ==, 0x8000000000000000);
    kfree(&w, 0x8000000000000000);
    expect(&w, "overlap");
}

/* Fields out of range are survived. */
TRACER_TEST(nonsense, "/model/nonsense")
{
    for (unsigned i = 0; i < 256; i++) {
        KtEvent ev;

        memset(&ev, i, sizeof(ev));
        kt_tracer_push(w.t, 0, &ev);
        ev.kind = 1 + i % 5;
        kt_tracer_push(w.t, 0, &ev);
        ev.layer = 1 + i % 6;
        kt_tracer_push(w.t, 0, &ev);
    }
    stats(&w);
}

/* Multiples of the size that glib's table has by then, and of what undoes its
 * factor of 11: by its own hash all of them have one place, and each block
 * waits for a look at thousands, half a minute in all. */
TEST(chosen_gfps, "/model/chosen-gfps")
{
    KtBlocks b;
    uint32_t index;

    kt_blocks_init(&b, NULL);
    index = kt_blocks_new(&b);
    for (unsigned i = 0; i < 64 * 32768; i++) {
        const KtEvent ev = { .va = VA, .size = 64,
                             .gfp = i % 32768 * 65521 * 0xba2e8ba3 };
        KtBlock out;

        kt_blocks_set(&b, index, &ev);
        kt_blocks_get(&b, index, &out);
        g_assert_cmphex(out.gfp, ==, ev.gfp);
        kt_blocks_unset(&b, index);
    }
    kt_blocks_deinit(&b);
}
