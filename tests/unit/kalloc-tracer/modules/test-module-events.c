/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A module event has one place in the order of events. The report of an
 * unloaded module has the same time in the tracer and in the journal, also
 * while other vCPUs run.
 */
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/modules/module-events.h"

#include <string.h>
#include <unistd.h>

#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/tracer/tracer.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtModuleEvents, kt_module_events_free)

#define PUSHERS 3
#define LIVES 200
#define MODULE 0xffffffffc0100000ull
#define CODE 0xffffffffc0000000ull

static const char symbols[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000800 T _etext\n"
                              "ffffffff82001000 B _end\n";

/* ---- the list ----------------------------------------------------------- */

TEST(test_by_place, "/notes/by-place")
{
    g_autoptr(KtModuleEvents) n = kt_module_events_new(kt_module_free);
    KtModuleEvent note;

    g_assert_cmpuint(kt_module_events_next(n), ==, UINT64_MAX);
    kt_module_events_add(n, &(KtModuleEvent) { .after = 7 });
    kt_module_events_add(n, &(KtModuleEvent) { .after = 5 });
    kt_module_events_add(
        n, &(KtModuleEvent) { .after = 5, .kind = KT_MODULE_EVENT_GONE });
    g_assert_cmpuint(kt_module_events_next(n), ==, 5);
    g_assert_false(kt_module_events_pop(n, 4, &note));
    g_assert_true(kt_module_events_pop(n, 6, &note) &&
                  note.kind != KT_MODULE_EVENT_GONE);
    g_assert_true(kt_module_events_pop(n, 6, &note) &&
                  note.kind == KT_MODULE_EVENT_GONE);
    g_assert_cmpuint(kt_module_events_next(n), ==, 7);
    g_assert_false(kt_module_events_pop(n, 6, &note));
    g_assert_true(kt_module_events_pop(n, 7, &note) && note.after == 7);
    g_assert_cmpuint(kt_module_events_next(n), ==, UINT64_MAX);
}

TEST(test_freed_with_the_list, "/notes/freed-with-the-list")
{
    KtModuleEvents *n = kt_module_events_new(kt_module_free);

    kt_module_events_add(n, &(KtModuleEvent) { .frame = g_byte_array_new() });
    kt_module_events_free(n);
    kt_module_events_free(NULL);
}

TEST(test_events_before, "/notes/events-before")
{
    g_autoptr(KtModuleEvents) n = kt_module_events_new(kt_module_free);

    g_assert_cmpuint(kt_module_events_before(n, 100, 64), ==, 64);
    kt_module_events_add(n, &(KtModuleEvent) { .after = 150 });
    g_assert_cmpuint(kt_module_events_before(n, 50, 64), ==, 64);
    g_assert_cmpuint(kt_module_events_before(n, 86, 64), ==, 64);
    g_assert_cmpuint(kt_module_events_before(n, 87, 64), ==, 63);
    g_assert_cmpuint(kt_module_events_before(n, 149, 64), ==, 1);
    g_assert_cmpuint(kt_module_events_before(n, 150, 64), ==, 0);
    g_assert_cmpuint(kt_module_events_before(n, 164, 64), ==, 0);
}

/* ---- late ones ---------------------------------------------------------- */

#define EVENTS 5000000

typedef struct Late {
    KtTracer *t;
    bool stop;          /* atomic */
} Late;

static gpointer push_many(gpointer opaque)
{
    Late *l = opaque;

    for (unsigned i = 0; i < EVENTS; i++) {
        kt_tracer_push(l->t, 0, &(KtEvent) { .kind = KT_EV_GAP });
    }
    return NULL;
}

/* One for nearly every batch that is taken from the queue. */
static gpointer add_in_time(gpointer opaque)
{
    Late *l = opaque;

    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        uint64_t place = kt_queue_done(l->t->queue) + 30;

        kt_module_events_add(l->t->module_events,
                             &(KtModuleEvent) { .after = place });
        while (kt_queue_done(l->t->queue) < place &&
               !__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
            continue;
        }
    }
    return NULL;
}

/* As a vCPU does that read its place, and was delayed before it added the
 * note: as soon as the one before is taken. */
static gpointer add_late(gpointer opaque)
{
    Late *l = opaque;

    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        if (kt_module_events_next(l->t->module_events) >
            kt_queue_done(l->t->queue)) {
            kt_module_events_add(l->t->module_events,
                                 &(KtModuleEvent) { .after = 0 });
        }
    }
    return NULL;
}

/* Every event is applied once, and no note that is due is left. */
TEST(test_late, "/notes/late")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    Late l = { .t = t };
    GThread *late[2], *pusher;
    const GThreadFunc add[] = { add_in_time, add_late };
    KtStats stats;

    kt_tracer_start(t);
    for (unsigned i = 0; i < G_N_ELEMENTS(late); i++) {
        late[i] = g_thread_new("late", add[i], &l);
    }
    pusher = g_thread_new("push", push_many, &l);
    g_thread_join(pusher);
    __atomic_store_n(&l.stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < G_N_ELEMENTS(late); i++) {
        g_thread_join(late[i]);
    }
    stats = tracer_stats(t);
    g_assert_cmpuint(stats.events, ==, EVENTS);
    g_assert_cmpuint(kt_module_events_next(t->module_events), >, EVENTS);
}

/* ---- the order ---------------------------------------------------------- */

typedef struct Storm {
    KtTracer *t;
    GsKernel *k;
    KtStackId stack;
    unsigned cpu;
    bool stop;          /* atomic; of the first one */
    struct Storm *first;
} Storm;

static uint64_t now_us(void)
{
    return g_get_monotonic_time();
}

/* Blocks of the module's, by whatever vCPU runs its code. */
static gpointer push(gpointer opaque)
{
    Storm *s = opaque;
    uint64_t va = 0xffff888000000000ull + ((uint64_t)s->cpu << 32);

    for (unsigned i = 0; !__atomic_load_n(&s->first->stop, __ATOMIC_RELAXED);
         i++) {
        kt_tracer_push(s->t, s->cpu, &(KtEvent) {
            .kind = i % 2 ? KT_EV_FREE : KT_EV_ALLOC,
            .va = va + i / 2 % 64 * 64, .size = i % 2 ? 0 : 64,
            .actual = i % 2 ? 0 : 64, .us = now_us(), .cpu = s->cpu,
            .stack = s->stack, .layer = i % 2 ? 0 : KT_LAYER_KMALLOC });
    }
    return NULL;
}

static void come_and_go(Storm *s)
{
    const GsModuleSymbol f = { .va = CODE, .name = "f", .type = 't' };

    for (unsigned i = 0; i < LIVES; i++) {
        g_assert_true(gs_kernel_add_module_data(s->k, MODULE, "m", CODE,
                                                0x1000, &f, 1, 0, NULL, NULL,
                                                0, NULL));
        kt_tracer_save_module(s->t, s->k, MODULE);
        g_usleep(200);
        kt_tracer_drop_module(s->t, s->k, MODULE);
    }
}

static void run_storm(KtTracer *t, GsKernel *k)
{
    const uint64_t pc = CODE + 0x10;
    const KtStackId stack = kt_tracer_intern_stack(t, &pc, 1, GS_STOP_END);
    GThread *thread[PUSHERS];
    Storm s[PUSHERS];

    for (unsigned i = 0; i < PUSHERS; i++) {
        s[i] = (Storm) { t, k, stack, i, false, s };
        thread[i] = g_thread_new("push", push, &s[i]);
    }
    come_and_go(s);
    __atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < PUSHERS; i++) {
        g_thread_join(thread[i]);
    }
}

static bool list_report(const KtModuleReport *r, void *opaque)
{
    g_string_append_printf(opaque, "%" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                           "-%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
                           r->id, r->loaded_us, r->us, r->found);
    return true;
}

static char *reports(KtTracer *t)
{
    GString *out = g_string_new(NULL);

    kt_query_begin(t);
    kt_query_modules(t, list_report, out);
    kt_query_end(t);
    return g_string_free(out, FALSE);
}

static char *reports_of(const char *path)
{
    const KtReplayPlan plan = { .until_us = UINT64_MAX, .apply = true };
    g_autoptr(KtReplay) r = kt_replay_open(path, NULL);

    g_assert_nonnull(r);
    kt_replay_run(r, &plan);
    g_assert_null(kt_replay_info(r)->damage);
    return reports(kt_replay_tracer(r));
}

TEST(test_journal_tells_the_same, "/notes/journal-tells-the-same")
{
    g_autofree char *dir = g_dir_make_tmp("ka-notes-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "journal", NULL);
    g_autofree char *want = NULL, *got = NULL;
    GsKernel *k = gs_kernel_new_from_data(symbols, strlen(symbols), "test",
                                          NULL);
    KtConfig config = KT_CONFIG_DEFAULT;
    KtTracer *t;

    config.n_cpus = PUSHERS;
    config.journal = path;
    t = kt_tracer_new(&config, NULL);
    kt_tracer_start(t);
    kt_tracer_save_kernel(t, k, true);
    run_storm(t, k);
    want = reports(t);
    kt_tracer_free(t);
    gs_kernel_free(k);
    got = reports_of(path);
    unlink(path);
    rmdir(dir);
    g_assert_nonnull(strstr(want, G_STRINGIFY(LIVES) ": "));
    g_assert_cmpstr(got, ==, want);
}
