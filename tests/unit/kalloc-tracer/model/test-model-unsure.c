/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model's rules for events that do not say all: frees that may only queue,
 * frees by a worker, memory of functions that are not hooked, and frees that
 * name some address in the block.
 */
#include "tests/lib/fed-tracer.h"
#include "tests/lib/test-main.h"

static void event(FedTracer *w, KtEventKind kind, KtFamily family, uint64_t va,
                  unsigned flags)
{
    const KtEvent ev = {
        .kind = kind, .va = va, .size = 64, .layer = KT_LAYER_VMALLOC,
        .family = family, .flags = flags, .stack = { flags + 1 },
    };

    push(w, ev);
}

static void vmalloc(FedTracer *w)
{
    event(w, KT_EV_ALLOC, 0, VA, 0);
}

static void vfree(FedTracer *w, unsigned flags)
{
    event(w, KT_EV_FREE, KT_FAMILY_VFREE, VA, flags);
}

TRACER_TEST(the_worker_repeats_one_free, "/unsure/the-worker-repeats-one-free")
{
    vmalloc(&w);
    vfree(&w, KT_EVF_QUEUES);
    vfree(&w, KT_EVF_WORKER);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_DEFERRED), ==, 1);
    vfree(&w, KT_EVF_WORKER);
    expect(&w, "double-free");
}

TRACER_TEST(others_do_not_repeat_it, "/unsure/others-do-not-repeat-it")
{
    vmalloc(&w);
    vfree(&w, KT_EVF_QUEUES);
    vfree(&w, KT_EVF_QUEUES);
    vfree(&w, KT_EVF_WORKER);
    expect(&w, "double-free");
}

TEST(whoever_may_be_the_worker_repeats_one_free,
     "/unsure/whoever-may-be-the-worker-repeats-one-free")
{
    const unsigned flags = KT_EVF_QUEUES | KT_EVF_MAYBE_WORKER;
    g_auto(FedTracer) w = fed_tracer_new(true);

    vmalloc(&w);
    vfree(&w, flags);
    vfree(&w, flags);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNJUDGED), ==, 1);
    vfree(&w, flags);
    vmalloc(&w);
    vfree(&w, flags);
    expect(&w, "double-free");
}

TRACER_TEST(the_same_call_queues_what_it_freed,
            "/unsure/the-same-call-queues-what-it-freed")
{
    vmalloc(&w);
    event(&w, KT_EV_FREE, KT_FAMILY_VFREE, VA, KT_EVF_AGAIN);
    event(&w, KT_EV_RCU_QUEUE, 0, VA, KT_EVF_AGAIN);
    g_assert_cmpuint(stats(&w).errors, ==, 0);
    event(&w, KT_EV_RCU_QUEUE, 0, VA, KT_EVF_AGAIN | KT_EVF_SIZED);
    expect(&w, "double-free");
}

TRACER_TEST(memory_without_hooks_is_not_judged,
            "/unsure/memory-without-hooks-is-not-judged")
{
    vfree(&w, KT_EVF_UNSURE);
    vmalloc(&w);
    vfree(&w, KT_EVF_UNSURE);
    vfree(&w, KT_EVF_UNSURE);
    g_assert_cmpuint(counter(&w, KT_CNT_FREE_UNHOOKED), ==, 2);
    vmalloc(&w);
    event(&w, KT_EV_ALLOC, 0, VA, KT_EVF_UNSURE);
    g_assert_cmpuint(counter(&w, KT_CNT_ALLOC_UNJUDGED), ==, 1);
    kfree(&w, VA);
    expect(&w, "wrong-family");
}

TRACER_TEST(a_free_inside_is_never_an_error,
            "/unsure/a-free-inside-is-never-an-error")
{
    event(&w, KT_EV_FREE, KT_FAMILY_ANY, VA + 8, KT_EVF_INSIDE);
    alloc(&w, VA, 64);
    event(&w, KT_EV_FREE, KT_FAMILY_ANY, VA + 8, KT_EVF_INSIDE);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    event(&w, KT_EV_FREE, KT_FAMILY_ANY, VA + 8, KT_EVF_INSIDE);
    vmalloc(&w);
    event(&w, KT_EV_FREE, KT_FAMILY_ANY, VA + 8, KT_EVF_INSIDE);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 1);
    event(&w, KT_EV_FREE, KT_FAMILY_VFREE, VA, KT_EVF_INSIDE);
    g_assert_cmpuint(stats(&w).live_blocks, ==, 0);
    expect(&w, "");
}
