/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other names of caches: each once, found by patterns, dropped with the cache,
 * by a reset and by the limit, which is counted.
 */
#include "kalloc-tracer/api/kt-aliases.h"

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"

static void add(KtTracer *t, uint64_t va, const char *name)
{
    kt_cache_alias_add(t, &(KtCacheAlias) { .cache_va = va, .name = name });
}

static bool is_named(KtTracer *t, uint64_t va, const char *pattern)
{
    const KtCacheInfo cache = { .va = va, .name = "own" };

    return kt_cache_is_named(t, &cache, pattern);
}

static bool append(const KtCacheAlias *alias, void *opaque)
{
    g_string_append_printf(opaque, "%s ", alias->name);
    return true;
}

static void check_names(KtTracer *t, uint64_t va, const char *want)
{
    g_autoptr(GString) got = g_string_new(NULL);

    kt_cache_aliases(t, va, append, got);
    g_assert_cmpstr(got->str, ==, want);
}

TEST(test_names, "/cache-aliases/names")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    unsigned epoch = kt_cache_aliases_epoch(t);
    const KtCacheInfo gone = { .va = 1, .name = "own", .destroyed = true };

    add(t, 1, "one");
    g_assert_cmpuint(kt_cache_aliases_epoch(t), !=, epoch);
    add(t, 1, "one");
    add(t, 1, "t w\xc3o");
    add(t, 2, "three");
    check_names(t, 1, "one t?w?o ");
    g_assert_true(is_named(t, 1, "own"));
    g_assert_true(is_named(t, 1, "o*e"));
    g_assert_false(is_named(t, 1, "three"));
    g_assert_true(is_named(t, 2, "t*"));
    g_assert_false(kt_cache_is_named(t, &gone, "one"));
    kt_cache_alias_drop(t, 1);
    check_names(t, 1, "");
    check_names(t, 2, "three ");
    kt_tracer_clear(t);
    check_names(t, 2, "three ");
    kt_tracer_reset(t);
    check_names(t, 2, "");
}

TEST(test_limit, "/cache-aliases/limit")
{
    g_autoptr(KtTracer) t = bare_tracer(0);

    for (unsigned i = 0; i < KT_ALIASES_MAX + 2; i++) {
        g_autofree char *name = g_strdup_printf("name-%u", i);

        add(t, i, name);
    }
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_ALIAS_DROPPED), ==, 2);
    g_assert_true(is_named(t, 0, "name-0"));
    g_assert_false(is_named(t, KT_ALIASES_MAX, "name-*"));
}
