/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A journal and a snapshot that an older version wrote are read in full. If
 * the format's version is another one, they are refused with one clear line.
 *
 * tests/data/README.md says what the files contain, and how they were made.
 */
#include <string.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/snapshot/snapshot.h"

#define VA          0xffff888000001000ull
#define CORE        0xffffffff81000110ull
#define CALLER      0xffffffff81000210ull
#define IN_MODULE   0xffffffffc0000018ull

/* What is read today. A version that reads older files, too, changes this. */
#define READS_JOURNAL   (KT_JOURNAL_VERSION == 2)
#define READS_SNAPSHOT  (KT_SNAPSHOT_VERSION >= 2)

/* ---- what is expected --------------------------------------------------- */

typedef struct Expected {
    char state;
    uint64_t va, requested, actual, alloc_us, free_us, rcu_us;
    KtLayer layer;
    uint64_t pc;
} Expected;

static const Expected snapshot_blocks[] = {
    { 'A', VA, 192, 200, 100, 0, 110, KT_LAYER_CACHE, IN_MODULE },
    { 'A', VA + 0x1000, 95, 96, 103, 0, 0, KT_LAYER_KMALLOC, CORE },
    { 'A', VA + 0x2000, 0x1800, 0x2000, 105, 0, 0, KT_LAYER_PAGES, CORE },
    { 'F', VA + 0x4000, 32, 32, 107, 108, 0, KT_LAYER_KMALLOC, CORE },
    { 'A', VA + 0x100000, 5ull << 30, 5ull << 30, 106, 0, 0,
      KT_LAYER_VMALLOC, CORE },
};

static const Expected journal_blocks[] = {
    { 'A', VA, 192, 200, 100, 0, 110, KT_LAYER_CACHE, IN_MODULE },
    { 'A', VA + 0x1000, 95, 96, 103, 0, 0, KT_LAYER_KMALLOC, CORE },
    { 'A', VA + 0x2000, 0x1800, 0x2000, 105, 0, 0, KT_LAYER_PAGES, CORE },
    { 'F', VA + 0x4000, 32, 32, 107, 108, 0, KT_LAYER_KMALLOC, CORE },
    { 'F', VA + 0x5000, 7, 8, 200, 201, 0, KT_LAYER_KMALLOC, CORE },
    { 'A', VA + 0x100000, 5ull << 30, 5ull << 30, 106, 0, 0,
      KT_LAYER_VMALLOC, CORE },
};

static const Expected past_life = {
    'F', VA + 0x1000, 100, 128, 101, 102, 0, KT_LAYER_KMALLOC, CORE
};

/* ---- comparing ---------------------------------------------------------- */

typedef struct Walk {
    KtTracer *t;
    const Expected *rows;
    unsigned n, at;
} Walk;

static void expect_stack(KtTracer *t, KtStackId id, uint64_t pc)
{
    unsigned n;
    GsStop stop;
    const uint64_t *frames = kt_tracer_stack(t, id, &n, &stop);

    g_assert_cmpuint(n, ==, 2);
    g_assert_cmphex(frames[0], ==, pc);
    g_assert_cmphex(frames[1], ==, CALLER);
    g_assert_cmpint(stop, ==, GS_STOP_END);
}

static void expect_task(KtTracer *t, KtTaskId id)
{
    char comm[17];
    uint32_t pid;

    g_assert_true(kt_tracer_task(t, id, &pid, comm));
    g_assert_cmpuint(pid, ==, 42);
    g_assert_cmpstr(comm, ==, "init");
}

static void expect_cache(KtTracer *t, KtCacheId id)
{
    KtCacheInfo info;

    g_assert_true(kt_tracer_cache(t, id, &info));
    g_assert_cmphex(info.va, ==, 0xffff888000c00000);
    g_assert_cmpstr(info.name, ==, "dentry");
    g_assert_cmpuint(info.object_size, ==, 192);
    g_assert_cmpuint(info.size, ==, 200);
}

/* The history keeps none of these. */
static void expect_origin(KtTracer *t, const KtBlock *b)
{
    g_assert_cmpuint(b->alloc_cpu, ==, 3);
    g_assert_cmpstr(kt_tracer_hook_name(t, b->hook), ==, "__kmalloc");
    expect_task(t, b->alloc_task);
}

static bool expect_block(const KtBlock *b, void *opaque)
{
    Walk *w = opaque;
    const Expected *e = &w->rows[w->at++];

    g_assert_cmpuint(w->at, <=, w->n);
    g_assert_cmpint("AF"[b->state], ==, e->state);
    g_assert_cmphex(b->va, ==, e->va);
    g_assert_cmpuint(b->requested, ==, e->requested);
    g_assert_cmpuint(b->actual, ==, e->actual);
    g_assert_cmpuint(b->alloc_us, ==, e->alloc_us);
    g_assert_cmpuint(b->free_us, ==, e->free_us);
    g_assert_cmpuint(b->rcu_us, ==, e->rcu_us);
    g_assert_cmpuint(b->layer, ==, e->layer);
    expect_stack(w->t, b->alloc_stack, e->pc);
    if (!b->past) {
        expect_origin(w->t, b);
    }
    if (e->layer == KT_LAYER_CACHE) {
        expect_cache(w->t, b->cache);
    }
    return true;
}

static bool expect_double_free(const KtError *e, void *opaque)
{
    Walk *w = opaque;

    w->at++;
    g_assert_cmpint(e->kind, ==, KT_ERR_DOUBLE_FREE);
    g_assert_cmphex(e->va, ==, VA + 0x4000);
    g_assert_cmpuint(e->us, ==, 109);
    g_assert_true(e->has_block);
    g_assert_cmpuint(e->block.free_us, ==, 108);
    expect_stack(w->t, e->stack, CORE);
    return true;
}

/* Between kt_query_begin() and kt_query_end(). */
static void expect_blocks(KtTracer *t, const Expected *rows, unsigned n)
{
    Walk w = { t, rows, n, 0 };
    Walk past = { t, &past_life, 1, 0 };
    Walk errors = { .t = t };

    kt_query_range(t, 0, UINT64_MAX, expect_block, &w);
    g_assert_cmpuint(w.at, ==, n);
    kt_query_history(t, VA + 0x1000, expect_block, &past);
    g_assert_cmpuint(past.at, ==, 1);
    kt_query_errors(t, 0, UINT64_MAX, expect_double_free, &errors);
    g_assert_cmpuint(errors.at, ==, 1);
}

static void expect_stats(KtTracer *t, unsigned freed, uint64_t last_us)
{
    KtStats s;
    KtTotals totals;

    kt_query_stats(t, &s);
    g_assert_cmpuint(s.live_blocks, ==, 4);
    g_assert_cmpuint(s.freed_blocks, ==, freed);
    g_assert_cmpuint(s.history_rows, ==, 1);
    g_assert_cmpuint(s.errors, ==, 1);
    g_assert_cmpuint(s.previous_live_blocks, ==, 1);
    g_assert_cmpuint(s.last_us, ==, last_us);
    g_assert_true(s.complete);
    g_assert_true(s.gap);
    g_assert_true(kt_query_totals(t, NULL, &totals));
    g_assert_cmpuint(totals.sum.allocs, ==, 4 + freed + 1);
    g_assert_cmpuint(totals.sum.frees, ==, freed + 1);
}

static void expect_tracer(KtTracer *t, const Expected *rows, unsigned n,
                          unsigned freed, uint64_t last_us)
{
    KtCheckReport report;

    kt_query_begin(t);
    expect_blocks(t, rows, n);
    expect_stats(t, freed, last_us);
    kt_query_check(t, &(KtCheckFns) { 0 }, &report);
    g_assert_cmpuint(report.violations, ==, 0);
    kt_query_end(t);
    g_assert_true(kt_tracer_enabled(t));
}

/* One line that has the word "version". */
static void expect_refused(const GError *err)
{
    g_assert_nonnull(err);
    g_assert_nonnull(strstr(err->message, "version"));
    g_assert_null(strchr(err->message, '\n'));
}

/* ---- snapshot ----------------------------------------------------------- */

static bool load_snapshot(KtTracer *t, GError **errp)
{
    g_autofree char *data = NULL;
    gsize len;
    GsBytes in;

    g_assert_true(g_file_get_contents(
        KA_SOURCE_DIR "/tests/data/version-2.snapshot", &data, &len, NULL));
    in = (GsBytes) { (uint8_t *)data, len };
    return kt_snapshot_load(t, gs_stream_from_bytes, &in, errp);
}

TEST(snapshot, "/old-files/snapshot")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    g_autoptr(GError) err = NULL;
    bool loaded = load_snapshot(t, &err);

    if (!READS_SNAPSHOT) {
        g_assert_false(loaded);
        expect_refused(err);
        return;
    }
    g_assert_no_error(err);
    g_assert_true(loaded);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_EV_ALLOC), ==, 7);
    expect_tracer(t, snapshot_blocks, G_N_ELEMENTS(snapshot_blocks), 1, 110);
}

/* Versions to 4 count all pages, and do not say for whom these are. */
TEST(pages_of_a_snapshot, "/old-files/pages-of-a-snapshot")
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtTracer) t = kt_tracer_new(&config, NULL);
    KtTotals totals;

    g_assert_true(load_snapshot(t, NULL));
    kt_query_begin(t);
    g_assert_true(kt_query_totals(t, NULL, &totals));
    kt_query_end(t);
    g_assert_cmpuint(totals.backing_unknown, ==, 1);
    g_assert_cmpuint(totals.backing_blocks, ==, 0);
    g_assert_cmpuint(totals.sum.allocs - totals.sum.frees, ==, 4);
}

/* ---- journal ------------------------------------------------------------ */

static bool on_event(void *opaque, const KtEvent *ev)
{
    GString *s = opaque;

    g_string_append_printf(s, "%u%s:%lx ", (unsigned)ev->us,
                           ev->kind == KT_EV_ALLOC ? "alloc" : "free",
                           (gulong)(ev->va - VA));
    return true;
}

static bool on_control(void *opaque, KtReplayControl c, uint64_t value)
{
    static const char *const name[] = {
        "reset", "clear", "complete", "enabled", "hole", "load"
    };
    GString *s = opaque;

    g_string_append_printf(s, "%s=%u ", name[c], (unsigned)value);
    return true;
}

static void expect_info(const KtReplay *r)
{
    const KtReplayInfo *info = kt_replay_info(r);

    g_assert_null(info->damage);
    g_assert_true(info->ended);
    g_assert_cmpuint(info->missing_bytes, ==, 0);
    g_assert_cmpuint(info->events, ==, 4);
    g_assert_cmpuint(info->read_events, ==, 4);
    g_assert_cmpuint(info->first_us, ==, 10);
    g_assert_cmpuint(info->last_us, ==, 201);
}

static void expect_symbol(const GsKernel *k, uint64_t va, const char *name,
                          const char *module)
{
    GsSymbol sym;

    g_assert_true(gs_kernel_symbolize(k, va, &sym));
    g_assert_cmpstr(sym.name, ==, name);
    g_assert_cmpstr(sym.module, ==, module);
}

static void expect_kernel(KtReplay *r)
{
    const GsKernel *k = kt_replay_kernel(r);
    GsModule mod;
    KtStatus status;

    g_assert_nonnull(k);
    expect_symbol(k, CORE, "kmalloc", NULL);
    expect_symbol(k, CALLER, "vfs_open", NULL);
    expect_symbol(k, IN_MODULE, "grab", "ext4");
    g_assert_true(gs_kernel_nth_module(k, 0, &mod));
    g_assert_false(mod.live);
    kt_replay_status(r, &status);
    g_assert_true(status.kernel_found);
    g_assert_cmpstr(status.why_no_kernel, ==, "why");
}

static bool expect_mark(const KtMarkInfo *mark, void *opaque)
{
    unsigned *n = opaque;

    ++*n;
    g_assert_cmpstr(mark->name, ==, "here");
    g_assert_cmpuint(mark->totals.sum.allocs, ==, 6);
    return true;
}

static void expect_marks(KtTracer *t)
{
    unsigned n = 0;

    kt_query_begin(t);
    kt_query_marks(t, expect_mark, &n);
    kt_query_end(t);
    g_assert_cmpuint(n, ==, 1);
}

static void expect_journal(KtReplay *r)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    const KtReplayPlan plan = {
        .until_us = UINT64_MAX, .apply = true, .event = on_event,
        .control = on_control, .opaque = seen,
    };

    kt_replay_run(r, &plan);
    g_assert_cmpstr(seen->str, ==, "complete=1 10alloc:0 reset=0 "
                    "20alloc:9000 load=0 200alloc:5000 201free:5000 ");
    expect_info(r);
    expect_kernel(r);
    expect_marks(kt_replay_tracer(r));
    expect_tracer(kt_replay_tracer(r), journal_blocks,
                  G_N_ELEMENTS(journal_blocks), 2, 201);
}

TEST(journal, "/old-files/journal")
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtReplay) r = kt_replay_open(
        KA_SOURCE_DIR "/tests/data/version-2.journal", &err);

    if (!READS_JOURNAL) {
        g_assert_null(r);
        expect_refused(err);
        return;
    }
    g_assert_no_error(err);
    expect_journal(r);
}
