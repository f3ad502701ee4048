/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter of access checks: each condition alone and all together, answers
 * that do not change, names that caches get later, words.
 */
#include "kalloc-tracer/access/access-filter.h"

#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/test-main.h"

/* A tracer with two of each id. */
typedef struct World {
    KtTracer *t;
    KtTaskId task[2];
    KtCacheId cache[2];
    KtStackId stack[2];
} World;

static World world_new(void)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    World w = { .t = kt_tracer_new(&config, NULL) };

    for (unsigned i = 0; i < 2; i++) {
        uint64_t frames[] = { 0x1000 + 0x100 * i, 0x5000 };
        g_autofree char *name = g_strdup_printf("cache-%u", i);
        char comm[16] = { 't', '0' + i };

        w.task[i] = kt_tracer_intern_task(w.t, 10 + i, comm);
        w.cache[i] = kt_tracer_add_cache(w.t, 0x100 * (i + 1), name, 8, 8);
        w.stack[i] = kt_tracer_intern_stack(w.t, frames, 2, GS_STOP_END);
    }
    return w;
}

/* Ask twice: the second answer is a stored one. */
static bool block(KtAccessFilter *f, const World *w, KtLayer layer, unsigned i)
{
    bool passes = kt_access_filter_block(f, layer, w->cache[i], w->stack[i]);

    g_assert_cmpint(kt_access_filter_block(f, layer, w->cache[i], w->stack[i]),
                    ==, passes);
    return passes;
}

static bool access_by(KtAccessFilter *f, const World *w, unsigned i, bool write)
{
    bool passes = kt_access_filter_access(f, w->task[i], write);

    g_assert_cmpint(kt_access_filter_access(f, w->task[i], write), ==, passes);
    return passes;
}

static void test_everything(void)
{
    World w = world_new();
    g_autoptr(KtAccessFilter) f =
        kt_access_filter_new(w.t, &(KtAccessSpec) { 0 });

    g_assert_null(kt_access_filter_text(&(KtAccessSpec) { 0 }));
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(block(f, &w, KT_LAYER_KMALLOC, i));
        g_assert_true(access_by(f, &w, i, i));
    }
    g_assert_true(kt_access_filter_block(f, KT_LAYER_LARGE, (KtCacheId) { 0 },
                                         (KtStackId) { 0 }));
    g_assert_true(kt_access_filter_access(f, (KtTaskId) { 0 }, false));
    kt_tracer_free(w.t);
}

static void test_blocks(void)
{
    World w = world_new();
    const KtAccessCode code = { 0x1100, 0x11ff };
    const KtAccessSpec specs[] = {
        { .cache = "*-1" }, { .code = &code, .n_code = 1 },
        { .cache = "cache-1", .layer = KT_LAYER_CACHE, .code = &code,
          .n_code = 1 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_autoptr(KtAccessFilter) f = kt_access_filter_new(w.t, &specs[i]);

        g_assert_false(block(f, &w, KT_LAYER_CACHE, 0));
        g_assert_true(block(f, &w, KT_LAYER_CACHE, 1));
        g_assert_cmpint(block(f, &w, KT_LAYER_KMALLOC, 1), ==,
                        specs[i].layer == KT_LAYER_NONE);
        g_assert_false(kt_access_filter_block(f, KT_LAYER_CACHE,
                                              (KtCacheId) { 0 },
                                              (KtStackId) { 0 }));
        g_assert_true(access_by(f, &w, 0, false));
    }
    kt_tracer_free(w.t);
}

static void test_accesses(void)
{
    World w = world_new();
    const KtAccessSpec specs[] = {
        { .has_pid = true, .pid = 11 }, { .task = "?1" },
        { .task = "t1", .writes = true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_autoptr(KtAccessFilter) f = kt_access_filter_new(w.t, &specs[i]);

        g_assert_false(access_by(f, &w, 0, true));
        g_assert_true(access_by(f, &w, 1, true));
        g_assert_cmpint(access_by(f, &w, 1, false), ==, !specs[i].writes);
        g_assert_false(kt_access_filter_access(f, (KtTaskId) { 0 }, true));
        g_assert_true(block(f, &w, KT_LAYER_CACHE, 0));
    }
    kt_tracer_free(w.t);
}

/* The kernel merges a new cache into one that is known. */
static void test_later_name(void)
{
    World w = world_new();
    g_autoptr(KtAccessFilter) f =
        kt_access_filter_new(w.t, &(KtAccessSpec) { .cache = "later" });

    g_assert_false(block(f, &w, KT_LAYER_CACHE, 0));
    kt_cache_alias_add(w.t, &(KtCacheAlias) { .cache_va = 0x100,
                                              .name = "later" });
    g_assert_true(block(f, &w, KT_LAYER_CACHE, 0));
    g_assert_false(block(f, &w, KT_LAYER_CACHE, 1));
    kt_tracer_free(w.t);
}

static void test_text(void)
{
    const KtAccessCode code = { 0x10, 0x1f };
    g_autofree char *text = kt_access_filter_text(&(KtAccessSpec) {
        .cache = "a", .layer = KT_LAYER_LARGE, .code = &code, .n_code = 1,
        .has_pid = true, .pid = 3, .writes = true });
    g_autofree char *task = kt_access_filter_text(&(KtAccessSpec) {
        .task = "x*" });

    g_assert_cmpstr(text, ==, "blocks of cache a, blocks of layer large, "
                    "blocks allocated in 10-1f, accesses of pid 3, stores "
                    "only");
    g_assert_cmpstr(task, ==, "accesses of tasks x*");
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/access-filter/everything", test_everything },
        { "/access-filter/blocks", test_blocks },
        { "/access-filter/accesses", test_accesses },
        { "/access-filter/later-name", test_later_name },
        { "/access-filter/text", test_text },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
