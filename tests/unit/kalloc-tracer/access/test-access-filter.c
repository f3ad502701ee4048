/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter of access checks: each condition alone and all together, answers
 * that do not change, names that caches get later, words.
 */
#include "kalloc-tracer/access/arming.h"

#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/test-main.h"
#include "tests/lib/two-of-each.h"

#include <string.h>

#define MODULES 0xffffffffc0100000ull

/* Ask twice: the second answer is a stored one. */
static bool block(KtAccessFilter *f, const TwoOfEach *w, KtLayer layer,
                  unsigned i)
{
    bool passes = kt_access_filter_block(f, layer, w->cache[i], w->stack[i]);

    g_assert_cmpint(kt_access_filter_block(f, layer, w->cache[i], w->stack[i]),
                    ==, passes);
    return passes;
}

static bool access_by(KtAccessFilter *f, const TwoOfEach *w, unsigned i,
                      bool write)
{
    bool passes = kt_access_filter_access(f, w->task[i], write);

    g_assert_cmpint(kt_access_filter_access(f, w->task[i], write), ==, passes);
    return passes;
}

static bool is_few(const TwoOfEach *w, const KtAccessSpec *spec)
{
    g_autoptr(KtAccessFilter) f = kt_access_filter_new(w->t, spec);

    return kt_access_filter_is_few(f);
}

/* Areas of vmalloc() are not armed if few blocks are. */
TWO_TEST(test_few, "/access-filter/few")
{
    const KtAccessSpec cache = { .block.cache = "*" };
    g_autoptr(KtAccessFilter) f = kt_access_filter_new(w.t, &cache);

    g_assert_true(is_few(&w, &cache));
    g_assert_false(kt_access_filter_block(f, KT_LAYER_VMALLOC,
                                          (KtCacheId) { 0 }, w.stack[0]));
    g_assert_true(is_few(&w, &(KtAccessSpec) {
        .block.layer = KT_LAYER_LARGE }));
    g_assert_false(is_few(&w, &(KtAccessSpec) {
        .block.layer = KT_LAYER_VMALLOC }));
    g_assert_false(is_few(&w, &(KtAccessSpec) { 0 }));
}

TWO_TEST(test_everything, "/access-filter/everything")
{
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
}

TWO_TEST(test_blocks, "/access-filter/blocks")
{
    const KtCodeRange code = { 0x1100, 0x11ff };
    const KtAccessSpec specs[] = {
        { .block.cache = "*-1" }, { .block = { .code = &code, .n_code = 1 } },
        { .block = { .cache = "cache-1", .layer = KT_LAYER_CACHE,
                     .code = &code, .n_code = 1 } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_autoptr(KtAccessFilter) f = kt_access_filter_new(w.t, &specs[i]);

        g_assert_false(block(f, &w, KT_LAYER_CACHE, 0));
        g_assert_true(block(f, &w, KT_LAYER_CACHE, 1));
        g_assert_cmpint(block(f, &w, KT_LAYER_KMALLOC, 1), ==,
                        specs[i].block.layer == KT_LAYER_NONE);
        g_assert_false(kt_access_filter_block(f, KT_LAYER_CACHE,
                                              (KtCacheId) { 0 },
                                              (KtStackId) { 0 }));
        g_assert_true(access_by(f, &w, 0, false));
    }
}

TWO_TEST(test_accesses, "/access-filter/accesses")
{
    const KtAccessSpec specs[] = {
        { .block = { .has_pid = true, .pid = 11 } }, { .block.task = "?1" },
        { .block.task = "t1", .writes = true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(specs); i++) {
        g_autoptr(KtAccessFilter) f = kt_access_filter_new(w.t, &specs[i]);

        g_assert_false(access_by(f, &w, 0, true));
        g_assert_true(access_by(f, &w, 1, true));
        g_assert_cmpint(access_by(f, &w, 1, false), ==, !specs[i].writes);
        g_assert_false(kt_access_filter_access(f, (KtTaskId) { 0 }, true));
        g_assert_true(block(f, &w, KT_LAYER_CACHE, 0));
    }
}

/* The kernel merges a new cache into one that is known. */
TWO_TEST(test_later_name, "/access-filter/later-name")
{
    g_autoptr(KtAccessFilter) f =
        kt_access_filter_new(w.t, &(KtAccessSpec) { .block.cache = "later" });

    g_assert_false(block(f, &w, KT_LAYER_CACHE, 0));
    kt_cache_alias_add(w.t, &(KtCacheAlias) { .cache_va = 0x100,
                                              .name = "later" });
    g_assert_true(block(f, &w, KT_LAYER_CACHE, 0));
    g_assert_false(block(f, &w, KT_LAYER_CACHE, 1));
}

TWO_TEST(test_kinds, "/access-filter/kinds")
{
    g_autoptr(KtAccessFilter) any =
        kt_access_filter_new(w.t, &(KtAccessSpec) { 0 });
    g_autoptr(KtAccessFilter) one = kt_access_filter_new(
        w.t, &(KtAccessSpec) { .kinds = 1u << KT_ERR_OUT_OF_BOUNDS });

    g_assert_true(kt_access_filter_kind(any, KT_ERR_USE_AFTER_FREE));
    g_assert_true(kt_access_filter_kind(one, KT_ERR_OUT_OF_BOUNDS));
    g_assert_false(kt_access_filter_kind(one, KT_ERR_USE_AFTER_FREE));
}

/* The code of modules: those that are loaded, by a pattern. */
TEST(test_modules, "/access-filter/modules")
{
    static const char symbols[] = "ffffffff81000000 T _stext\n"
                                  "ffffffff81000000 T _text\n"
                                  "ffffffff81000100 T start_kernel\n"
                                  "ffffffff81001000 T _etext\n"
                                  "ffffffff83000000 B _end\n";
    g_auto(TwoOfEach) w = two_of_each();
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(symbols, strlen(symbols),
                                                    "System.map", NULL);
    g_autoptr(KtAccessFilter) all =
        kt_access_filter_new(w.t, &(KtAccessSpec) { 0 });
    g_autoptr(KtAccessFilter) some =
        kt_access_filter_new(w.t, &(KtAccessSpec) { .module = "ka_*" });
    g_autoptr(KtCodeAreas) areas = NULL;

    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = { "ka_one", "other", "ka_two" };

        g_assert_true(gs_kernel_add_module_data(
            k, 0x1000 * (i + 1), names[i], MODULES + 0x10000 * i, 0x1000, NULL,
            0, 0, NULL, NULL, 0, NULL));
    }
    gs_kernel_drop_module(k, 0x3000);
    g_assert_null(kt_access_filter_areas(all, k));
    g_assert_false(kt_access_filter_module(all, "ka_one"));
    g_assert_true(kt_access_filter_module(some, "ka_one"));
    g_assert_false(kt_access_filter_module(some, "other"));
    areas = kt_access_filter_areas(some, k);
    g_assert_true(kt_code_areas_has(areas, MODULES + 0xfff));
    g_assert_false(kt_code_areas_has(areas, MODULES + 0x10000));
    g_assert_false(kt_code_areas_has(areas, MODULES + 0x20000));
}

TEST(test_text, "/access-filter/text")
{
    const KtCodeRange code = { 0x10, 0x1f };
    g_autofree char *text = kt_access_filter_text(&(KtAccessSpec) {
        .block = {
            .cache = "a", .layer = KT_LAYER_LARGE, .code = &code, .n_code = 1,
            .has_pid = true, .pid = 3,
        },
        .module = "m", .writes = true,
        .kinds = 1u << KT_ERR_USE_AFTER_FREE | 1u << KT_ERR_OUT_OF_BOUNDS });
    g_autofree char *task = kt_access_filter_text(&(KtAccessSpec) {
        .block.task = "x*" });

    g_assert_cmpstr(text, ==, "blocks of cache a, blocks of layer large, "
                    "blocks allocated in 10-1f, accesses of pid 3, accesses by "
                    "code of module m, stores only, errors of kind "
                    "use-after-free or out-of-bounds");
    g_assert_cmpstr(task, ==, "accesses of tasks x*");
}
