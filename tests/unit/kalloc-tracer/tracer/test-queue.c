/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue and the tracer's lock with several threads: no event is lost, and
 * events are applied in the order in which they were pushed.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/tracer/queue.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtQueue, kt_queue_free)

#define THREADS     8
#define ROUNDS      20000

TEST(order_of_one_thread, "/queue/order-of-one-thread")
{
    KtQueue *q = kt_queue_new();
    unsigned n;

    for (unsigned i = 1; i <= 3 * KT_QUEUE_SLOTS; i++) {
        KtEvent ev = { .va = i, .seq = 99 };
        uint64_t seq = kt_queue_reserve(q);
        const KtEvent *out;

        g_assert_cmpuint(seq, ==, i);
        kt_queue_publish(q, seq, &ev);
        out = kt_queue_peek(q, 10, &n);
        g_assert_cmpuint(n, ==, 1);
        g_assert_cmpuint(out->va, ==, i);
        g_assert_cmpuint(out->seq, ==, i);
        kt_queue_consume(q, 1);
    }
    kt_queue_free(q);
    kt_queue_free(NULL);
}

TEST(stops_at_an_unfilled_place, "/queue/stops-at-an-unfilled-place")
{
    g_autoptr(KtQueue) q = kt_queue_new();
    const KtEvent ev = { .va = 1 };
    uint64_t first = kt_queue_reserve(q);
    uint64_t second = kt_queue_reserve(q);
    unsigned n;

    kt_queue_publish(q, second, &ev);
    kt_queue_peek(q, 10, &n);
    g_assert_cmpuint(n, ==, 0);
    kt_queue_publish(q, first, &ev);
    kt_queue_peek(q, 10, &n);
    g_assert_cmpuint(n, ==, 2);
    kt_queue_peek(q, 1, &n);
    g_assert_cmpuint(n, ==, 1);
}

TEST(full_ring_is_not_ready, "/queue/full-ring-is-not-ready")
{
    g_autoptr(KtQueue) q = kt_queue_new();
    const KtEvent ev = { .va = 1 };
    unsigned n;

    for (unsigned i = 0; i < KT_QUEUE_SLOTS; i++) {
        uint64_t seq = kt_queue_reserve(q);

        g_assert_true(kt_queue_ready(q, seq));
        kt_queue_publish(q, seq, &ev);
    }
    g_assert_false(kt_queue_ready(q, kt_queue_reserve(q)));
    kt_queue_peek(q, 5, &n);
    g_assert_cmpuint(n, ==, 5);
    kt_queue_consume(q, n);
    g_assert_true(kt_queue_ready(q, KT_QUEUE_SLOTS + 5));
    g_assert_false(kt_queue_ready(q, KT_QUEUE_SLOTS + 6));
}

/* ---- threads ------------------------------------------------------------ */

typedef struct World {
    KtTracer *t;
    unsigned turn;          /* atomic: who owns the shared block */
    bool stop;              /* atomic */
} World;

typedef struct Worker {
    World *w;
    pthread_t thread;
    unsigned cpu;
} Worker;

static void push(Worker *k, KtEventKind kind, uint64_t va, uint64_t us)
{
    const KtEvent ev = {
        .kind = kind, .va = va, .size = 64, .actual = 64, .us = us,
        .cpu = k->cpu, .layer = KT_LAYER_KMALLOC, .family = KT_FAMILY_KFREE,
    };

    kt_tracer_push(k->w->t, k->cpu, &ev);
    kt_tracer_count(k->w->t, KT_CNT_RETURN_FOREIGN, 1);
}

/* Blocks of its own: allocated and freed in turns. */
static void own_block(Worker *k, unsigned i)
{
    uint64_t va = 0xffff888000000000 + k->cpu * 0x100000 + i / 2 % 64 * 64;

    push(k, i % 2 ? KT_EV_FREE : KT_EV_ALLOC, va, i);
}

/* One block that goes round: whoever has the turn allocates and frees it.
 * Any reordering between threads would be an overlap or a double free. */
static void shared_block(Worker *k, unsigned i)
{
    if (__atomic_load_n(&k->w->turn, __ATOMIC_ACQUIRE) % THREADS != k->cpu) {
        return;
    }
    push(k, KT_EV_ALLOC, 0xffffc90000000000, i);
    push(k, KT_EV_FREE, 0xffffc90000000000, i);
    __atomic_fetch_add(&k->w->turn, 1, __ATOMIC_RELEASE);
}

static void *produce(void *opaque)
{
    Worker *k = opaque;
    uint64_t pc[4] = { 1, 2, 3 };
    char comm[16] = "worker";

    for (unsigned i = 0; i < ROUNDS; i++) {
        own_block(k, i);
        shared_block(k, i);
        if (i % 16 == 0) {
            pc[3] = i % 512;
            kt_tracer_intern_stack(k->w->t, pc, 4, GS_STOP_END);
            kt_tracer_intern_task(k->w->t, i % 256, comm);
            kt_tracer_add_cache(k->w->t, i % 128, "cache", 8, 8);
        }
    }
    return NULL;
}

/* What a reader sees is consistent: no error, all that was counted. */
static void *ask(void *opaque)
{
    World *w = opaque;
    uint64_t before = 0;

    while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
        KtStats s;
        KtBlock b;

        kt_query_begin(w->t);
        kt_query_stats(w->t, &s);
        kt_query_find(w->t, 0xffffc90000000000, &b);
        kt_query_end(w->t);
        g_assert_cmpuint(s.errors, ==, 0);
        g_assert_cmpuint(s.events, >=, before);
        before = s.events;
        kt_tracer_counter(w->t, KT_CNT_EV_ALLOC);
        sched_yield();
    }
    return NULL;
}

static void start(World *w, Worker *k)
{
    for (unsigned i = 0; i < THREADS; i++) {
        k[i] = (Worker) { .w = w, .cpu = i };
        g_assert_cmpint(pthread_create(&k[i].thread, NULL, produce, &k[i]),
                        ==, 0);
    }
}

static void join(Worker *k)
{
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(k[i].thread, NULL);
    }
}

static void check_totals(World *w)
{
    uint64_t shared = 2ull * w->turn;
    KtStats s = tracer_stats(w->t);

    g_assert_cmpuint(s.errors, ==, 0);
    g_assert_cmpuint(s.events, ==, (uint64_t)THREADS * ROUNDS + shared);
    g_assert_cmpuint(s.live_blocks, ==, 0);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_EV_ALLOC), ==,
                     s.events / 2);
    g_assert_cmpuint(kt_tracer_counter(w->t, KT_CNT_RETURN_FOREIGN), ==,
                     s.events);
    g_assert_cmpuint(s.tasks, ==, 16);
    g_assert_cmpuint(s.caches, ==, 8);
}

static KtTracer *new_tracer(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;

    config.n_cpus = THREADS;
    config.history_bytes = 1 << 20;
    return kt_tracer_new(&config, NULL);
}

TEST(order_of_many_threads, "/queue/order-of-many-threads")
{
    World w = { .t = new_tracer() };
    Worker k[THREADS];
    pthread_t reader;

    kt_tracer_set_complete(w.t, true);
    start(&w, k);
    g_assert_cmpint(pthread_create(&reader, NULL, ask, &w), ==, 0);
    join(k);
    __atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
    pthread_join(reader, NULL);
    check_totals(&w);
    kt_tracer_free(w.t);
}

/* Long queries: producers fill the ring, wait, and go on. */
TEST(producers_wait_for_a_long_query, "/queue/producers-wait-for-a-long-query")
{
    World w = { .t = new_tracer() };
    Worker k[THREADS];

    start(&w, k);
    for (unsigned i = 0; i < 20; i++) {
        kt_query_begin(w.t);
        g_usleep(5000);
        kt_query_end(w.t);
    }
    join(k);
    check_totals(&w);
    kt_tracer_free(w.t);
}

/* Switches and resets at any moment; the sums cannot be told, but nothing
 * may break or hang. */
TEST(switches_while_pushing, "/queue/switches-while-pushing")
{
    World w = { .t = new_tracer() };
    Worker k[THREADS];

    start(&w, k);
    for (unsigned i = 0; i < 200; i++) {
        kt_tracer_set_enabled(w.t, i % 2);
        kt_tracer_set_complete(w.t, i % 3 == 0);
        if (i % 4 == 0) {
            kt_tracer_clear(w.t);
        } else if (i % 4 == 2) {
            kt_tracer_reset(w.t);
        }
        kt_tracer_cache_destroyed(w.t, (KtCacheId) { i % 9 });
    }
    join(k);
    kt_tracer_free(w.t);
}
