/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The consumer thread applies events in order, beside producers and queries,
 * without being asked to.
 */
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kt.h"

#define BASE 0xffff888000000000ull
#define N 20000

static KtTracer *tracer_new(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.n_cpus = 2;
    config.history_bytes = 1 << 20;
    return kt_tracer_new(&config, NULL);
}

static void push(KtTracer *t, unsigned cpu, KtEventKind kind, uint64_t va)
{
    const KtEvent ev = {
        .kind = kind, .va = va, .size = 64, .actual = 64,
        .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_KFREE,
    };

    kt_tracer_push(t, cpu, &ev);
}

/* As long as a test may take; the thread takes some milliseconds. */
static void await_counter(KtTracer *t, KtCounter c, uint64_t n)
{
    while (kt_tracer_counter(t, c) < n) {
        g_usleep(1000);
    }
    g_assert_cmpuint(kt_tracer_counter(t, c), ==, n);
}

TEST(applies_without_being_asked, "/tracer/applies-without-being-asked")
{
    g_autoptr(KtTracer) t = tracer_new();

    kt_tracer_start(t);
    for (unsigned i = 0; i < 10; i++) {
        push(t, 0, KT_EV_ALLOC, BASE + i * 64);
    }
    await_counter(t, KT_CNT_EV_ALLOC, 10);
    while (!kt_tracer_counter(t, KT_CNT_APPLY_NS)) {
        g_usleep(1000);             /* it is told when the batch is done */
    }
    push(t, 0, KT_EV_FREE, BASE);
    await_counter(t, KT_CNT_EV_FREE, 1);
}

TEST(stops_and_leaves_the_rest_to_others, "/tracer/stops")
{
    g_autoptr(KtTracer) t = tracer_new();
    KtStats stats;

    kt_tracer_start(t);
    kt_tracer_stop(t);
    kt_tracer_stop(t);
    for (unsigned i = 0; i < N; i++) {
        push(t, 0, KT_EV_ALLOC, BASE + i * 64ull);
    }
    stats = tracer_stats(t);
    g_assert_cmpuint(stats.live_blocks, ==, N);
}

typedef struct Producer {
    KtTracer *t;
    unsigned cpu;
} Producer;

/* Each block is freed before it is allocated anew. */
static gpointer produce(gpointer opaque)
{
    const Producer *p = opaque;
    uint64_t base = BASE + ((uint64_t)p->cpu << 32);

    for (unsigned i = 0; i < N; i++) {
        push(p->t, p->cpu, KT_EV_ALLOC, base + i % 100 * 64);
        push(p->t, p->cpu, KT_EV_FREE, base + i % 100 * 64);
    }
    return NULL;
}

TEST(beside_producers_and_queries, "/tracer/beside-producers-and-queries")
{
    g_autoptr(KtTracer) t = tracer_new();
    Producer p[2] = { { t, 0 }, { t, 1 } };
    GThread *thread[2];
    KtStats stats;

    kt_tracer_start(t);
    for (unsigned i = 0; i < 2; i++) {
        thread[i] = g_thread_new("produce", produce, &p[i]);
    }
    for (unsigned i = 0; i < 50; i++) {
        stats = tracer_stats(t);
        g_assert_cmpuint(stats.live_blocks, <=, 2);
        g_assert_cmpuint(stats.errors, ==, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        g_thread_join(thread[i]);
    }
    stats = tracer_stats(t);
    g_assert_cmpuint(stats.events, ==, 4 * N);
    g_assert_cmpuint(stats.freed_blocks, ==, 200);
    g_assert_cmpuint(stats.errors, ==, 0);
}
