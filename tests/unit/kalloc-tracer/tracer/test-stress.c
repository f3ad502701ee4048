/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads push, query, clear, reset, switch and check at once beside the
 * consumer thread. No event is lost, the self-check finds nothing, and the
 * thread sanitizer sees the locks.
 */
#include <inttypes.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/pending-calls.h"
#include "kalloc-tracer/tracer/tracer.h"

#define BASE 0xffff888000000000ull
#define PRODUCERS 3
/* Each sort; -m thorough asks for more. */
#define DISTURBANCES (g_test_thorough() ? 48u : 16u)

typedef struct World {
    KtTracer *t;
    KtPendingCalls *calls;
    bool stop;              /* atomic: producers and queries are to end */
} World;

typedef struct Producer {
    World *w;
    unsigned cpu;
    uint64_t pushed;
} Producer;

static uint32_t roll(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static KtEvent some_event(const World *w, uint64_t *state, unsigned cpu)
{
    static const char comm[16] = "task";
    static const KtEventKind kinds[] = {
        KT_EV_ALLOC, KT_EV_ALLOC, KT_EV_FREE, KT_EV_RESIZE, KT_EV_RCU_QUEUE,
    };
    uint32_t number = roll(state);
    uint64_t frames[] = { 1 + number % 40, 1000 };
    bool pages = number % 7 == 0;

    return (KtEvent) {
        .kind = kinds[number % G_N_ELEMENTS(kinds)],
        .va = BASE + (number >> 8) % 4096 * 32,
        .size = 1 + number % 200,
        .us = number % 1000,
        .cpu = cpu,
        .layer = pages ? KT_LAYER_PAGES : KT_LAYER_KMALLOC,
        .family = pages ? KT_FAMILY_PAGES : KT_FAMILY_KFREE,
        .flags = pages ? KT_EVF_TAKE : 0,
        .stack = kt_tracer_intern_stack(w->t, frames, 2, GS_STOP_END),
        .task = kt_tracer_intern_task(w->t, number % 50, comm),
        .cache = kt_tracer_add_cache(w->t, 1 + number % 9, "cache", 8, 8),
        .gfp = number % 5,
    };
}

/* Calls of this thread alone, one inside the other. */
static void call_and_return(World *w, unsigned cpu, uint32_t number)
{
    KtPendingCall call = {
        .sp = ((uint64_t)cpu + 1) << 20 | (number & 0xff) << 3,
        .ra = number,
    };
    KtPendingCall out;
    unsigned stale;

    g_assert_true(kt_pending_calls_push(w->calls, &call, &stale));
    g_assert_cmpuint(stale, ==, 0);
    g_assert_true(kt_pending_calls_pop(w->calls, call.sp, call.ra, &out));
    g_assert_false(kt_pending_calls_pop(w->calls, call.sp, call.ra, &out));
}

static bool goes_on(const World *w)
{
    return !__atomic_load_n(&w->stop, __ATOMIC_RELAXED);
}

static gpointer produce(gpointer opaque)
{
    Producer *p = opaque;
    uint64_t state = p->cpu;

    while (goes_on(p->w)) {
        KtEvent ev = some_event(p->w, &state, p->cpu);

        kt_tracer_push(p->w->t, p->cpu, &ev);
        call_and_return(p->w, p->cpu, roll(&state));
        p->pushed++;
    }
    return NULL;
}

static bool count_block(const KtBlock *b, void *opaque)
{
    return ++*(unsigned *)opaque < 1000;
}

/* All of one moment. */
static void adds_up(const KtStats *s)
{
    g_assert_cmpuint(s->events, ==, s->counter[KT_CNT_EV_ALLOC] +
                     s->counter[KT_CNT_EV_FREE] +
                     s->counter[KT_CNT_EV_RESIZE] +
                     s->counter[KT_CNT_EV_RCU] + s->counter[KT_CNT_GAPS]);
}

static void ask(World *w, uint32_t number)
{
    KtTracer *t = w->t;
    uint64_t va = BASE + number % 100000;
    unsigned n = 0;
    KtStats stats;
    KtBlock b;

    kt_query_begin(t);
    kt_query_range(t, va, va + 4096, count_block, &n);
    kt_query_alloc_pc(t, number % 40, number % 40, count_block, &n);
    kt_query_free_pc(t, 1000, 1000, count_block, &n);
    kt_query_history(t, va, count_block, &n);
    kt_query_stats(t, &stats);
    adds_up(&stats);
    if (kt_query_find(t, va, &b)) {
        g_assert_cmphex(b.va, <=, va);
    }
    kt_query_end(t);
}

static void violated(KtCheckRule rule, const char *where, void *opaque)
{
    g_error("%s: %s: %s", (const char *)opaque, kt_check_name(rule), where);
}

static void examine(World *w)
{
    const KtCheckFns fns = {
        .violation = violated, .opaque = (char *)"asked",
    };
    KtCheckReport report;

    kt_query_begin(w->t);
    kt_query_check(w->t, &fns, &report);
    kt_query_end(w->t);
    g_assert_cmpuint(report.violations, ==, 0);
}

static gpointer query(gpointer opaque)
{
    uint64_t state = 77;

    while (goes_on(opaque)) {
        ask(opaque, roll(&state));
    }
    return NULL;
}

/* As the main loop does. */
static void disturb(World *w)
{
    for (unsigned i = 0; i < DISTURBANCES; i++) {
        switch (i % 16) {
        case 0:
            kt_tracer_clear(w->t);
            break;
        case 3:
            kt_tracer_set_enabled(w->t, false);
            kt_tracer_set_enabled(w->t, true);
            break;
        case 5:
            kt_tracer_reset(w->t);
            kt_tracer_set_complete(w->t, i & 16);
            break;
        default:
            examine(w);
        }
        g_usleep(2000);
    }
}

static uint64_t sum_of_kinds(KtTracer *t)
{
    return kt_tracer_counter(t, KT_CNT_EV_ALLOC) +
           kt_tracer_counter(t, KT_CNT_EV_FREE) +
           kt_tracer_counter(t, KT_CNT_EV_RESIZE) +
           kt_tracer_counter(t, KT_CNT_EV_RCU);
}

TEST(holds_together_whatever_comes, "/stress/holds-together-whatever-comes")
{
    const KtConfig config = {
        .n_cpus = PRODUCERS, .history_bytes = 64 * 1024, .max_stacks = 1000,
    };
    World w = { kt_tracer_new(&config, NULL), kt_pending_calls_new() };
    Producer p[PRODUCERS];
    GThread *thread[PRODUCERS + 1];
    uint64_t pushed = 0;

    kt_tracer_add_check(w.t, KT_CHECK_CALLS, kt_pending_calls_check,
                        w.calls);
    kt_tracer_set_check(w.t, violated, (char *)"running");
    kt_tracer_start(w.t);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        p[i] = (Producer) { &w, i };
        thread[i] = g_thread_new("produce", produce, &p[i]);
    }
    thread[PRODUCERS] = g_thread_new("query", query, &w);
    disturb(&w);
    __atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i <= PRODUCERS; i++) {
        g_thread_join(thread[i]);
        pushed += i < PRODUCERS ? p[i].pushed : 0;
    }
    examine(&w);
    g_test_message("events %" PRIu64 ", gaps %" PRIu64 ", rounds %" PRIu64
                   ", whole %" PRIu64, pushed,
                   kt_tracer_counter(w.t, KT_CNT_GAPS),
                   kt_tracer_counter(w.t, KT_CNT_CHECK_ROUNDS),
                   kt_tracer_counter(w.t, KT_CNT_CHECK_WHOLE));
    g_assert_cmpuint(sum_of_kinds(w.t), ==, pushed);
    g_assert_cmpuint(kt_tracer_counter(w.t, KT_CNT_CHECK_VIOLATIONS), ==, 0);
    kt_tracer_free(w.t);
    kt_pending_calls_free(w.calls);
}
