/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live trace of a whole tracer: what frees carry, also in a batch with the
 * allocation; the memory limit; what a reset, ka clear and another trace do.
 */
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"

static void push(KtTracer *t, KtEventKind kind, uint64_t va, uint64_t size)
{
    kt_tracer_push(t, 0, &(KtEvent) {
        .kind = kind, .va = va, .size = size, .layer = KT_LAYER_KMALLOC,
        .family = KT_FAMILY_KFREE });
}

static GArray *read_trace(KtTracer *t, uint64_t after)
{
    GArray *out = g_array_new(FALSE, FALSE, sizeof(KtTraced));
    uint64_t missing;

    kt_query_begin(t);
    kt_query_trace(t, after, UINT32_MAX, out, &missing);
    kt_query_end(t);
    return out;
}

static KtTraceInfo info_of(KtTracer *t)
{
    KtTraceInfo info;

    kt_query_begin(t);
    kt_query_trace_info(t, &info);
    kt_query_end(t);
    return info;
}

/* Nobody waits between the events: all are applied in batches. */
TEST(test_blocks, "/trace/blocks")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GArray) got = NULL;

    push(t, KT_EV_ALLOC, 0x1000, 1);
    g_assert_true(kt_trace_start(t, &(KtTraceSpec) { .ring = 5000 }, NULL));
    for (unsigned i = 0; i < 1000; i++) {
        push(t, KT_EV_ALLOC, 0x100000, i + 1);
        push(t, KT_EV_FREE, 0x100000, 0);
    }
    push(t, KT_EV_FREE, 0x1000, 0);
    push(t, KT_EV_FREE, 0x2000, 0);
    got = read_trace(t, 0);
    g_assert_cmpuint(got->len, ==, 2002);
    for (unsigned i = 0; i < 2001; i++) {
        const KtTraced *e = &g_array_index(got, KtTraced, i);
        bool is_free = i & 1 || i == 2000;

        g_assert_true(e->block.known == is_free);
        g_assert_cmpuint(e->block.size, ==,
                         i == 2000 ? 1 : is_free ? i / 2 + 1 : 0);
    }
    g_assert_false(g_array_index(got, KtTraced, 2001).block.known);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_TRACE_EVENTS), ==, 2002);
}

TEST(test_stop, "/trace/stop")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GArray) got = NULL;

    g_assert_false(kt_trace_stop(t));
    g_assert_false(info_of(t).any);
    g_assert_true(kt_trace_start(t, &(KtTraceSpec) { .ring = 3 }, NULL));
    push(t, KT_EV_ALLOC, 0x1000, 1);
    g_assert_true(kt_trace_stop(t));
    push(t, KT_EV_ALLOC, 0x2000, 1);
    got = read_trace(t, 0);
    g_assert_cmpuint(got->len, ==, 1);
    g_assert_false(info_of(t).on);
    g_assert_true(info_of(t).any);
}

TEST(test_boots, "/trace/boots")
{
    static const uint8_t kinds[] = {
        KT_TRACED_EVENT, KT_TRACED_CLEAR, KT_TRACED_EVENT, KT_TRACED_EVENT,
        KT_TRACED_RESET, KT_TRACED_EVENT,
    };
    g_autoptr(KtTracer) t = bare_tracer(0);
    g_autoptr(GArray) got = NULL;

    g_assert_true(kt_trace_start(t, &(KtTraceSpec) { .ring = 30 }, NULL));
    push(t, KT_EV_ALLOC, 0x1000, 1);
    kt_tracer_clear(t);
    push(t, KT_EV_ALLOC, 0x2000, 1);
    kt_tracer_reset(t);
    push(t, KT_EV_ALLOC, 0x3000, 1);
    got = read_trace(t, 0);
    g_assert_cmpuint(got->len, ==, G_N_ELEMENTS(kinds));
    for (unsigned i = 0; i < got->len; i++) {
        g_assert_cmpuint(g_array_index(got, KtTraced, i).kind, ==, kinds[i]);
    }
    g_assert_cmpuint(info_of(t).boot, ==, 6);
    g_assert_cmpuint(info_of(t).last, ==, 6);
}

/* A ring that does not fit changes nothing. */
TEST(test_limit, "/trace/limit")
{
    g_autoptr(KtTracer) t = bare_tracer(64 << 20);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) got = NULL;
    KtStats stats;

    g_assert_true(kt_trace_start(t, &(KtTraceSpec) { .ring = 100 }, NULL));
    push(t, KT_EV_ALLOC, 0x1000, 1);
    g_assert_false(kt_trace_start(t, &(KtTraceSpec) { .ring = 1 << 20 },
                                  &error));
    g_assert_nonnull(error);
    push(t, KT_EV_ALLOC, 0x2000, 1);
    got = read_trace(t, 0);
    g_assert_cmpuint(got->len, ==, 2);
    stats = tracer_stats(t);
    g_assert_cmpuint(stats.part_bytes[KT_MEM_TRACE], ==,
                     100 * sizeof(KtTraced));
    g_assert_true(kt_trace_start(t, &(KtTraceSpec) { .ring = 50 }, NULL));
    g_assert_cmpuint(info_of(t).place, ==, 2);
}
