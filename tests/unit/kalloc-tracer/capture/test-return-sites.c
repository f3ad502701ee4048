/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A return site is found as soon as it is added, from any thread, and its
 * index never changes.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/capture/return-sites.h"
#include "tests/lib/empty-snapshot.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtReturnSites, kt_return_sites_free)

/* A case with an empty table @s. */
#define SITES_TEST(fn, path) \
    TEST_IN(g_autoptr(KtReturnSites), KtReturnSites *s, \
            kt_return_sites_new(), fn, path)

SITES_TEST(added_once_found_always, "/sites/added-once-found-always")
{
    bool added;
    uint32_t site = kt_return_sites_add(s, 0xffffffff81000010, KT_SITE_HOOK,
                                        (KtHookId) { 3 }, &added);

    g_assert_true(added);
    g_assert_cmpuint(
        kt_return_sites_find(s, 0xffffffff81000010, KT_SITE_ANY), ==, site);
    g_assert_cmpuint(kt_return_sites_wrapper(s, site).v, ==, 3);
    g_assert_cmphex(kt_return_sites_va(s, site), ==, 0xffffffff81000010);
    g_assert_cmpuint(
        kt_return_sites_add(s, 0xffffffff81000010, KT_SITE_HOOK,
                            (KtHookId) { 4 }, &added),
        ==, site);
    g_assert_false(added);
    g_assert_cmpuint(
        kt_return_sites_find(s, 0xffffffff81000018, KT_SITE_ANY), ==,
        KT_RETURN_SITE_NONE);
}

SITES_TEST(a_site_is_ready_when_said_so, "/sites/a-site-is-ready-when-said-so")
{
    bool added;
    uint32_t site = kt_return_sites_add(s, 0xffffffff81000010, KT_SITE_HOOK,
                                        (KtHookId) { 0 }, &added);

    g_assert_false(kt_return_sites_ready(s, site, KT_SITE_HOOK));
    kt_return_sites_set_ready(s, site, KT_SITE_HOOK);
    g_assert_true(kt_return_sites_ready(s, site, KT_SITE_HOOK));
    kt_return_sites_clear(s);
    g_assert_false(kt_return_sites_ready(s, site, KT_SITE_HOOK));
}

/* A site of call points is one until there are no points; then it is ready for
 * nobody. A site of hooks stays, with its wrapper, whoever added it. */
SITES_TEST(points_end, "/sites/points-end")
{
    const uint64_t both = 0xffffffff81000010, point = 0xffffffff81000020;
    uint32_t site;
    bool added;

    kt_return_sites_add(s, point, KT_SITE_POINT, (KtHookId) { 0 }, &added);
    site = kt_return_sites_add(s, both, KT_SITE_POINT, (KtHookId) { 0 },
                               &added);
    kt_return_sites_set_ready(s, site, KT_SITE_POINT);
    g_assert_cmpuint(kt_return_sites_find(s, both, KT_SITE_HOOK), ==,
                     KT_RETURN_SITE_NONE);
    g_assert_cmpuint(kt_return_sites_add(s, both, KT_SITE_HOOK,
                                         (KtHookId) { 3 }, &added),
                     ==, site);
    g_assert_true(added);
    g_assert_false(kt_return_sites_ready(s, site, KT_SITE_HOOK));
    kt_return_sites_end_points(s);
    g_assert_cmpuint(kt_return_sites_find(s, point, KT_SITE_ANY), ==,
                     KT_RETURN_SITE_NONE);
    g_assert_cmpuint(kt_return_sites_find(s, both, KT_SITE_ANY), ==, site);
    g_assert_cmpuint(kt_return_sites_wrapper(s, site).v, ==, 3);
    g_assert_false(kt_return_sites_ready(s, site, KT_SITE_POINT));
    kt_return_sites_add(s, point, KT_SITE_POINT, (KtHookId) { 0 }, &added);
    g_assert_true(added);
}

SITES_TEST(a_block_is_known_once_noted, "/sites/a-block-is-known-once-noted")
{
    g_assert_false(kt_return_sites_may_have_block(s, 0xffffffff81000010));
    kt_return_sites_add_block(s, 0xffffffff81000010);
    g_assert_true(kt_return_sites_may_have_block(s, 0xffffffff81000010));
    kt_return_sites_clear(s);
    g_assert_false(kt_return_sites_may_have_block(s, 0xffffffff81000010));
}

SITES_TEST(a_site_knows_who_returns_there,
           "/sites/a-site-knows-who-returns-there")
{
    bool added;
    uint32_t site = kt_return_sites_add(s, 0xffffffff81000010, KT_SITE_HOOK,
                                        (KtHookId) { 3 }, &added);

    g_assert_cmpuint(kt_return_sites_callee(s, 0xffffffff81000010).v, ==, 0);
    kt_return_sites_set_callee(s, site, (KtHookId) { 9 });
    g_assert_cmpuint(kt_return_sites_callee(s, 0xffffffff81000010).v, ==, 9);
    g_assert_cmpuint(kt_return_sites_wrapper(s, site).v, ==, 3);
    g_assert_cmpuint(kt_return_sites_callee(s, 0xffffffff81000018).v, ==, 0);
    kt_return_sites_clear(s);
    g_assert_cmpuint(kt_return_sites_callee(s, 0xffffffff81000010).v, ==, 0);
}

SITES_TEST(address_zero_is_none, "/sites/address-zero-is-none")
{
    bool added;

    kt_return_sites_add(s, 0, KT_SITE_HOOK, (KtHookId) { 0 }, &added);
    g_assert_false(added);
}

SITES_TEST(a_full_table_refuses, "/sites/full-table-refuses")
{
    unsigned n = 0;
    bool added;

    for (uint64_t i = 1; i <= 1u << 18; i++) {
        kt_return_sites_add(s, i * 16, KT_SITE_HOOK, (KtHookId) { 0 }, &added);
        n += added;
    }
    g_assert_cmpuint(n, <, 1u << 18);
    g_assert_cmpuint(n, >=, 1u << 16);
    kt_return_sites_clear(s);
    g_assert_cmpuint(kt_return_sites_find(s, 16, KT_SITE_ANY), ==,
                     KT_RETURN_SITE_NONE);
}

static gpointer add_many(gpointer data)
{
    bool added;

    for (uint64_t i = 1; i <= 20000; i++) {
        uint32_t site = kt_return_sites_add(data, i * 8, KT_SITE_HOOK,
                                            (KtHookId) { 7 }, &added);

        g_assert_cmphex(kt_return_sites_va(data, site), ==, i * 8);
        g_assert_cmpuint(kt_return_sites_wrapper(data, site).v, ==, 7);
    }
    return NULL;
}

SITES_TEST(threads_agree, "/sites/threads-agree")
{
    GThread *thread[4];

    for (int i = 0; i < 4; i++) {
        thread[i] = g_thread_new("adder", add_many, s);
    }
    for (int i = 0; i < 4; i++) {
        g_thread_join(thread[i]);
    }
}

/* ---- states ------------------------------------------------------------- */

static void unpack(void *s, GsBytes *u, const KtIdMap *ids)
{
    kt_return_sites_unpack(s, u, ids);
}

TEST(a_state_has_all, "/sites/state-has-all")
{
    KtReturnSites *s = kt_return_sites_new(), *to = kt_return_sites_new();
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);
    bool added;

    for (unsigned i = 1; i <= 100; i++) {
        kt_return_sites_add(s, UINT64_MAX / i, KT_SITE_HOOK,
                            (KtHookId) { i % 3 }, &added);
        kt_return_sites_add(s, i, KT_SITE_POINT, (KtHookId) { 0 }, &added);
    }
    kt_return_sites_pack(s, p);
    gs_stream_out_end(writer);
    g_assert_true(unpack_part(unpack, to, bytes, NULL));
    for (unsigned i = 1; i <= 100; i++) {
        uint32_t site = kt_return_sites_find(to, UINT64_MAX / i, KT_SITE_ANY);

        g_assert_cmpuint(site, ==, i - 1);
        g_assert_cmpuint(kt_return_sites_find(to, i, KT_SITE_ANY), ==,
                         KT_RETURN_SITE_NONE);
        g_assert_cmpuint(kt_return_sites_wrapper(to, site).v, ==, i % 3);
        g_assert_true(kt_return_sites_ready(to, site, KT_SITE_HOOK));
    }
    kt_return_sites_free(s);
    kt_return_sites_free(to);
}

SITES_TEST(a_state_has_no_more_than_fit, "/sites/state-has-no-more-than-fit")
{
    check_most(unpack, s, 1 << 17, "the number of return sites is 131073, at "
               "most 131072 is possible");
}
