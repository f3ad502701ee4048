/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call points are found in a kernel of a few lines and in its modules, at each
 * boot and load; wrong requests change nothing. Compared with what the symbol
 * table says by hand.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/calls/call-points.h"

#include <string.h>

#define SLIDE   0x1e00000ull
#define MODULE  0xffffffffc0200000ull
#define BASE    0xffffffffc0100000ull

static const char map[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81001000 T kfree\n"
    "ffffffff81001000 T kfree_alias\n"
    "ffffffff81001100 T kfree_skb\n"
    "ffffffff81001200 t helper\n"
    "ffffffff81001300 t helper\n"
    "ffffffff81001400 t __pfx_mutex_lock\n"
    "ffffffff81001410 T mutex_lock\n"
    "ffffffff81001500 T mutex_unlock\n"
    "ffffffff81001600 t mutex_lock.cold\n"
    "ffffffff81001700 t small.isra.0\n"
    "ffffffff81001800 t renamed.llvm.77\n"
    "ffffffff82000000 T _etext\n"
    "ffffffff82100000 R linux_banner\n";

static GsKernel *new_kernel(void)
{
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "System.map",
                                          &err);

    g_assert_no_error(err);
    return k;
}

static void add_module(GsKernel *k, const char *name)
{
    const GsModuleSymbol syms[] = {
        { BASE + 0x10, "drv_open", 't' },
        { BASE + 0x80, "drv_read", 't' },
        { BASE + 0xc0, "drv_data", 'd' },
    };

    g_assert_true(gs_kernel_add_module_data(k, MODULE, name, BASE, 0x1000, syms,
                                            G_N_ELEMENTS(syms), 0, NULL, NULL,
                                            0, NULL));
}

static uint32_t add(KtCallPoints *p, const char *text, KtPointUse use,
                    GError **errp)
{
    const KtPointSpec spec = { .text = text, .use = use };

    return kt_call_points_add(p, &spec, errp);
}

static uint32_t watch(KtCallPoints *p, const char *text)
{
    g_autoptr(GError) err = NULL;
    uint32_t id = add(p, text, KT_POINT_WATCH, &err);

    g_assert_no_error(err);
    g_assert_cmpuint(id, !=, 0);
    return id;
}

static void refuse(KtCallPoints *p, const char *text, const char *part)
{
    g_autoptr(GError) err = NULL;

    g_assert_cmpuint(add(p, text, KT_POINT_WATCH, &err), ==, 0);
    g_assert_nonnull(err);
    if (!strstr(err->message, part)) {
        g_error("'%s' does not contain '%s'", err->message, part);
    }
}

static unsigned count(const KtCallPoints *p)
{
    const KtPointSet *s = kt_call_points_set(p);

    return s ? kt_point_set_count(s) : 0;
}

static const KtCallPoint *at(const KtCallPoints *p, uint64_t va)
{
    const KtPointSet *s = kt_call_points_set(p);

    return s ? kt_point_set_at(s, va) : NULL;
}

/* A case with a kernel @k. */
#define KERNEL_TEST(fn, path) \
    TEST_IN(g_autoptr(GsKernel), GsKernel *k, new_kernel(), fn, path)

KERNEL_TEST(names_and_globs, "/call-points/names-and-globs")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);

    kt_call_points_begin_boot(p, k);
    g_assert_null(kt_call_points_set(p));
    watch(p, "kfree");
    g_assert_cmpuint(count(p), ==, 1);
    watch(p, "helper");
    g_assert_cmpuint(count(p), ==, 3);
    watch(p, "mutex_*,small");
    g_assert_cmpuint(count(p), ==, 6);
    watch(p, "@mutex,@common_mm");
    g_assert_cmpuint(count(p), ==, 6);
    g_assert_true(at(p, 0xffffffff81001700)->clone);
    g_assert_false(at(p, 0xffffffff81001410)->clone);
    watch(p, "renamed");
    g_assert_cmpuint(count(p), ==, 7);
    g_assert_false(at(p, 0xffffffff81001800)->clone);
    g_assert_null(at(p, 0xffffffff81001400));
    g_assert_null(at(p, 0xffffffff81001600));
    kt_call_points_reclaim(p);
}

KERNEL_TEST(pages_of_entries, "/call-points/pages-of-entries")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);
    const KtPointSet *s;

    kt_call_points_begin_boot(p, k);
    watch(p, "kfree");
    s = kt_call_points_set(p);
    g_assert_true(kt_point_set_page(s, 0xffffffff81001ff0));
    g_assert_true(kt_point_set_page(s, 0xffffffff81000ff0));
    g_assert_false(kt_point_set_page(s, 0xffffffff81002000));
}

/* An alias is no point of its own. */
KERNEL_TEST(one_point_at_an_address, "/call-points/one-point-at-an-address")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);

    kt_call_points_begin_boot(p, k);
    watch(p, "kfree");
    add(p, "kfree_alias", KT_POINT_FAULT, NULL);
    g_assert_cmpuint(count(p), ==, 1);
    g_assert_cmpuint(at(p, 0xffffffff81001000)->uses, ==,
                     KT_POINT_WATCH | KT_POINT_FAULT);
}

KERNEL_TEST(wrong_requests, "/call-points/wrong-requests")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);

    kt_call_points_begin_boot(p, k);
    refuse(p, "mutex_lok", "mutex_lock");
    refuse(p, "kfree,nothing_like_it", "no function 'nothing_like_it'");
    refuse(p, "@mutx", "the sets are @common_mm, @ioremap");
    refuse(p, "@vmm", "none of the functions of @vmm");
    refuse(p, "zz*", "no function matches 'zz*'");
    refuse(p, "kfree,,helper", "empty name");
    refuse(p, "drv:", "empty name");
    g_assert_cmpuint(count(p), ==, 0);
    add_module(k, "drv");
    refuse(p, "drv:drv_close", "module drv has no function 'drv_close'");
    refuse(p, "drv:x*", "in module drv");
}

TEST(too_many_matches, "/call-points/too-many-matches")
{
    g_autoptr(GString) big = g_string_new("ffffffff81000000 T _stext\n"
                                          "ffffffff81000000 T _text\n");
    g_autoptr(GsKernel) k = NULL;
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);

    for (unsigned i = 0; i <= KT_POINT_MATCHES_MAX; i++) {
        g_string_append_printf(big, "ffffffff81%06x T many_%u\n",
                               0x1000 + i * 16, i);
    }
    g_string_append(big, "ffffffff82000000 T _etext\n"
                         "ffffffff82100000 R linux_banner\n");
    k = gs_kernel_new_from_data(big->str, big->len, "System.map", NULL);
    g_assert_nonnull(k);
    kt_call_points_begin_boot(p, k);
    refuse(p, "many_*", "4097 functions, the limit is 4096");
    watch(p, "many_1*");
    g_assert_cmpuint(count(p), >, 1000);
}

/* Pending before the kernel is known; found again where KASLR put it. */
KERNEL_TEST(boots, "/call-points/boots")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);
    KtPointNames *names = kt_call_points_names(p);
    KtPointName name;

    watch(p, "kfree");
    g_assert_cmpuint(count(p), ==, 0);
    kt_call_points_begin_boot(p, k);
    g_assert_nonnull(at(p, 0xffffffff81001000));
    kt_call_points_end_boot(p);
    g_assert_cmpuint(count(p), ==, 0);
    gs_kernel_set_slide(k, SLIDE);
    kt_call_points_begin_boot(p, k);
    g_assert_null(at(p, 0xffffffff81001000));
    g_assert_nonnull(at(p, 0xffffffff81001000 + SLIDE));
    g_assert_true(kt_point_names_get(names, (KtPointId) { 1 }, &name));
    g_assert_cmpstr(name.name, ==, "kfree");
    g_assert_false(kt_point_names_get(names, (KtPointId) { 2 }, &name));
}

KERNEL_TEST(modules, "/call-points/modules")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);
    uint16_t id;

    kt_call_points_begin_boot(p, k);
    watch(p, "my-drv:drv_open");
    watch(p, "kfree,my_drv:*read");
    g_assert_cmpuint(count(p), ==, 1);
    add_module(k, "my_drv");
    g_assert_cmpuint(kt_call_points_add_module(p, MODULE), ==, 2);
    g_assert_cmpstr(at(p, BASE + 0x10)->module, ==, "my_drv");
    id = at(p, BASE + 0x10)->id.v;
    kt_call_points_remove_module(p, MODULE);
    gs_kernel_drop_module(k, MODULE);
    g_assert_cmpuint(count(p), ==, 1);
    add_module(k, "other");
    g_assert_cmpuint(kt_call_points_add_module(p, MODULE), ==, 0);
    gs_kernel_drop_module(k, MODULE);
    add_module(k, "my_drv");
    g_assert_cmpuint(kt_call_points_add_module(p, MODULE), ==, 2);
    g_assert_cmpuint(at(p, BASE + 0x10)->id.v, ==, id);
}

typedef struct Changes {
    unsigned n, flushes;
} Changes;

static void on_change(void *opaque, bool flush)
{
    Changes *c = opaque;

    c->n++;
    c->flushes += flush;
}

KERNEL_TEST(remove_requests, "/call-points/remove-requests")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);
    Changes c = { 0 };
    uint32_t first;

    kt_call_points_on_change(p, on_change, &c);
    kt_call_points_begin_boot(p, k);
    first = watch(p, "kfree,mutex_lock");
    watch(p, "kfree");
    add(p, "kfree", KT_POINT_FAULT, NULL);
    g_assert_cmpuint(c.flushes, ==, 3);
    g_assert_cmpuint(kt_call_point_watch(at(p, 0xffffffff81001000))->id, ==, 2);
    g_assert_cmpuint(kt_call_points_remove(p, KT_POINT_FAULT, first), ==, 0);
    g_assert_cmpuint(kt_call_points_remove(p, KT_POINT_WATCH, first), ==, 1);
    g_assert_cmpuint(count(p), ==, 1);
    g_assert_cmpuint(kt_call_points_remove(p, KT_POINT_WATCH, 0), ==, 1);
    g_assert_cmpuint(at(p, 0xffffffff81001000)->uses, ==, KT_POINT_FAULT);
    g_assert_null(kt_call_point_watch(at(p, 0xffffffff81001000)));
    g_assert_cmpuint(kt_call_points_remove(p, KT_POINT_FAULT, 0), ==, 1);
    g_assert_null(kt_call_points_set(p));
    kt_call_points_reclaim(p);
    g_assert_cmpuint(c.n, ==, 6);
}

static void set_freed(void *opaque)
{
    *(bool *)opaque = true;
}

/* What belongs to a request is freed with it, also if it is refused. */
KERNEL_TEST(owned_data, "/call-points/owned-data")
{
    g_autoptr(KtCallPoints) p = kt_call_points_new(NULL);
    bool freed = false, refused = false;
    KtPointSpec spec = { "kfree", KT_POINT_FAULT, &freed, set_freed };

    kt_call_points_begin_boot(p, k);
    kt_call_points_add(p, &spec, NULL);
    kt_call_points_remove(p, KT_POINT_FAULT, 0);
    g_assert_false(freed);
    kt_call_points_reclaim(p);
    g_assert_true(freed);
    spec = (KtPointSpec) { "kfreee", KT_POINT_FAULT, &refused, set_freed };
    g_assert_cmpuint(kt_call_points_add(p, &spec, NULL), ==, 0);
    g_assert_true(refused);
}
