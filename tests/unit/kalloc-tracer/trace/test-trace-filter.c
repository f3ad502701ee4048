/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter of the live trace: each condition alone, for each kind of event,
 * with and without a known block; answers for an id do not change.
 */
#include "kalloc-tracer/trace/trace.h"

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/test-main.h"
#include "tests/lib/two-of-each.h"

/* An event by everything of number @by, about a block of number @of. */
static KtTraced entry(const TwoOfEach *w, KtEventKind kind, unsigned by,
                      unsigned of)
{
    static const KtLayer layer[] = { KT_LAYER_KMALLOC, KT_LAYER_CACHE };
    KtTraced e = {
        .ev = { .kind = kind, .task = w->task[by], .stack = w->stack[by] },
        .block = {
            .known = kind != KT_EV_ALLOC, .size = 0x10 * (of + 1),
            .layer = layer[of], .cache = w->cache[of], .task = w->task[of],
            .stack = w->stack[of],
        },
    };

    if (kind == KT_EV_ALLOC) {
        e.ev.size = e.block.size;
        e.ev.layer = e.block.layer;
        e.ev.cache = e.block.cache;
        e.block = (KtTracedBlock) { 0 };
    }
    return e;
}

static bool passes(const TwoOfEach *w, const KtBlockSpec *spec,
                   const KtTraced *e)
{
    KtBlockFilter *f = kt_block_filter_new(w->t, spec);
    bool first = kt_trace_filter_passes(f, e);

    g_assert_true(kt_trace_filter_passes(f, e) == first);
    kt_block_filter_free(f);
    return first;
}

/* @spec is about number 0; @by: it is about who does it, too. */
static void check(const TwoOfEach *w, const KtBlockSpec *spec, bool by)
{
    static const KtEventKind kinds[] = {
        KT_EV_ALLOC, KT_EV_FREE, KT_EV_RCU_QUEUE, KT_EV_RESIZE,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(kinds) * 4; i++) {
        KtTraced e = entry(w, kinds[i / 4], i & 1, i >> 1 & 1);
        bool alloc = kinds[i / 4] == KT_EV_ALLOC;
        bool want = (by && !(i & 1)) || (!(i >> 1 & 1) && (!by || !alloc));

        if (alloc && spec->n_code) {
            want = !(i & 1);
        }
        g_assert_true(passes(w, spec, &e) == want);
    }
    g_assert_true(passes(w, spec, &(KtTraced) { .ev.kind = KT_EV_GAP }));
}

TWO_TEST(test_conditions, "/trace-filter/conditions")
{
    const KtCodeRange code[] = { { 0x9000, 0x9010 }, { 0x1000, 0x1010 } };

    check(&w, &(KtBlockSpec) { .task = "t0*" }, true);
    check(&w, &(KtBlockSpec) { .has_pid = true, .pid = 10 }, true);
    check(&w, &(KtBlockSpec) { .cache = "*-0" }, false);
    check(&w, &(KtBlockSpec) { .layer = KT_LAYER_KMALLOC }, false);
    check(&w, &(KtBlockSpec) {
        .has_size = true, .size_lo = 1, .size_hi = 0x10 }, false);
    check(&w, &(KtBlockSpec) { .code = code, .n_code = 2 }, false);
}

/* Nothing is known of the block: conditions about it are false. */
TWO_TEST(test_unknown_block, "/trace-filter/unknown-block")
{
    const KtCodeRange code = { 0x1000, 0x1010 };
    KtTraced e = entry(&w, KT_EV_FREE, 0, 0);

    e.block = (KtTracedBlock) { 0 };
    g_assert_true(passes(&w, &(KtBlockSpec) { .task = "t0" }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .task = "t1" }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .cache = "*" }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .layer = KT_LAYER_CACHE }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) {
        .has_size = true, .size_hi = UINT64_MAX }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .code = &code, .n_code = 1 },
                          &e));
    e.ev.cache = w.cache[1];
    g_assert_true(passes(&w, &(KtBlockSpec) { .cache = "cache-1" }, &e));
}

TWO_TEST(test_resize, "/trace-filter/resize")
{
    const KtBlockSpec spec = { .has_size = true, .size_lo = 1, .size_hi = 15 };
    KtTraced e = entry(&w, KT_EV_RESIZE, 0, 0);

    g_assert_false(passes(&w, &spec, &e));
    e.ev.size = 15;
    g_assert_true(passes(&w, &spec, &e));
    e.ev.size = 16;
    e.block.size = 3;
    g_assert_true(passes(&w, &spec, &e));
}

/* Ids that do not exist, and those beyond what a memo has. */
TWO_TEST(test_ids, "/trace-filter/ids")
{
    KtTraced e = { .ev = {
        .kind = KT_EV_ALLOC, .task = { UINT32_MAX }, .stack = { UINT32_MAX },
        .cache = { UINT16_MAX } } };

    g_assert_true(passes(&w, &(KtBlockSpec) { 0 }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .task = "*" }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) { .cache = "*" }, &e));
    g_assert_false(passes(&w, &(KtBlockSpec) {
        .code = &(KtCodeRange) { 0, UINT64_MAX }, .n_code = 1 }, &e));
}
