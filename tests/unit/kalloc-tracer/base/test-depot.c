/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack depot: equal stacks get the same id, from any thread, until the
 * depot is full.
 */
#include <pthread.h>
#include <string.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/kt.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtDepot, kt_depot_free)

#define THREADS 8
#define STACKS  40000

static unsigned make_stack(uint64_t *pc, uint32_t i)
{
    unsigned n = 1 + i % 20;

    for (unsigned k = 0; k < n; k++) {
        pc[k] = 0xffffffff81000000 + i * (k + 1);
    }
    return n;
}

static uint32_t intern(KtDepot *d, uint32_t i)
{
    uint64_t pc[20];
    unsigned n = make_stack(pc, i);

    return kt_depot_intern(d, pc, n, i % 5);
}

static void check(const KtDepot *d, uint32_t id, uint32_t i)
{
    uint64_t want[20];
    unsigned n_want = make_stack(want, i);
    unsigned n;
    uint64_t tag;
    const uint64_t *pc = kt_depot_get(d, id, &n, &tag);

    g_assert_cmpmem(pc, n * sizeof(*pc), want, n_want * sizeof(*want));
    g_assert_cmpuint(tag, ==, i % 5);
}

TEST(same_stack_same_id, "/depot/same-stack-same-id")
{
    g_autoptr(KtDepot) d = kt_depot_new(UINT32_MAX);
    const uint64_t a[] = { 1, 2, 3 };
    const uint64_t b[] = { 1, 2 };
    const uint64_t c[] = { 2, 1 };

    g_assert_cmpuint(kt_depot_intern(d, a, 3, 0), ==, 1);
    g_assert_cmpuint(kt_depot_intern(d, b, 2, 0), ==, 2);
    g_assert_cmpuint(kt_depot_intern(d, c, 2, 0), ==, 3);
    g_assert_cmpuint(kt_depot_intern(d, b, 2, 1), ==, 4);
    g_assert_cmpuint(kt_depot_intern(d, a, 3, 0), ==, 1);
    g_assert_cmpuint(kt_depot_intern(d, a, 0, 0), ==, 5);
    g_assert_cmpuint(kt_depot_count(d), ==, 5);
}

TEST(grows_and_keeps, "/depot/grows-and-keeps")
{
    g_autoptr(KtDepot) d = kt_depot_new(STACKS);
    unsigned n;
    uint64_t tag;
    uint64_t one = 1;
    const uint64_t *first;

    g_assert_cmpuint(intern(d, 0), ==, 1);
    first = kt_depot_get(d, 1, &n, &tag);
    for (uint32_t i = 1; i < STACKS; i++) {
        g_assert_cmpuint(intern(d, i), ==, i + 1);
    }
    for (uint32_t i = 0; i < STACKS; i++) {
        g_assert_cmpuint(intern(d, i), ==, i + 1);
        check(d, i + 1, i);
    }
    g_assert_true(kt_depot_get(d, 1, &n, &tag) == first);
    /* Full: the known ones stay known. */
    g_assert_cmpuint(kt_depot_intern(d, &one, 1, 9), ==, 0);
    g_assert_cmpuint(intern(d, 7), ==, 8);
    g_assert_cmpuint(kt_depot_bytes(d), <, 64 * 1024 * 1024);
}

TEST(unknown_ids_have_no_stack, "/depot/unknown-ids")
{
    KtDepot *d = kt_depot_new(10);
    unsigned n = 7;
    uint64_t tag = 7;

    intern(d, 1);
    g_assert_null(kt_depot_get(d, 0, &n, &tag));
    g_assert_cmpuint(n, ==, 0);
    g_assert_null(kt_depot_get(d, 2, &n, &tag));
    g_assert_null(kt_depot_get(d, UINT32_MAX, &n, &tag));
    kt_depot_free(d);
    kt_depot_free(NULL);
}

typedef struct Worker {
    pthread_t thread;
    KtDepot *d;
    unsigned nr;
    uint32_t id[STACKS];
} Worker;

/* Each in an order of its own, reading what it was given at once. */
static void *work(void *opaque)
{
    Worker *w = opaque;

    for (uint32_t k = 0; k < STACKS; k++) {
        uint32_t i = (k * 7919 + w->nr * 5003) % STACKS;

        w->id[i] = intern(w->d, i);
        check(w->d, w->id[i], i);
    }
    return NULL;
}

TEST(threads_agree, "/depot/threads-agree")
{
    g_autofree Worker *w = g_new0(Worker, THREADS);
    g_autoptr(KtDepot) d = kt_depot_new(UINT32_MAX);

    for (unsigned i = 0; i < THREADS; i++) {
        w[i].d = d;
        w[i].nr = i;
        g_assert_cmpint(pthread_create(&w[i].thread, NULL, work, &w[i]), ==,
                        0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
    }
    g_assert_cmpuint(kt_depot_count(d), ==, STACKS);
    for (unsigned i = 1; i < THREADS; i++) {
        g_assert_cmpmem(w[0].id, sizeof(w[0].id), w[i].id, sizeof(w[i].id));
    }
}

/* As the tracer offers it: the cap counted, long stacks cut. */
TEST(tracer_counts_and_cuts, "/depot/tracer-counts-and-cuts")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    uint64_t pc[KT_MAX_FRAMES + 1];
    g_autoptr(KtTracer) t = NULL;
    KtStackId id;
    unsigned n;
    GsStop stop;

    for (unsigned i = 0; i < G_N_ELEMENTS(pc); i++) {
        pc[i] = i;
    }
    config.max_stacks = 1;
    t = kt_tracer_new(&config, NULL);
    g_assert_cmpuint(kt_tracer_intern_stack(t, pc, 0, GS_STOP_END).v, ==, 0);
    id = kt_tracer_intern_stack(t, pc, KT_MAX_FRAMES + 1, GS_STOP_END);
    g_assert_nonnull(kt_tracer_stack(t, id, &n, &stop));
    g_assert_cmpuint(n, ==, KT_MAX_FRAMES);
    g_assert_cmpint(stop, ==, GS_STOP_DEPTH);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_DROP_STACK), ==, 0);
    g_assert_cmpuint(kt_tracer_intern_stack(t, pc, 3, GS_STOP_END).v, ==, 0);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_DROP_STACK), ==, 1);
}
