/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arming of access checks: what the user wants, what capture says, and the
 * places that explain accesses, up to their limit. */
#include "kalloc-tracer/access/arming.h"

#include "kalloc-tracer/tracer/tracer.h"
#include "tests/lib/bare-tracer.h"
#include "tests/lib/test-main.h"

static void count_change(void *opaque)
{
    ++*(unsigned *)opaque;
}

static KtAccessInfo info_of(KtTracer *t)
{
    KtAccessInfo info = { 0 };

    kt_access_info(t, &info);
    return info;
}

TEST(test_wish, "/arming/wish")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtArming *a = kt_arming_of(t);
    unsigned changes = 0;
    g_autoptr(KtAccessFilter) f = NULL;
    g_autofree char *text = NULL;
    KtAccessInfo info = info_of(t);

    kt_arming_on_change(a, count_change, &changes);
    g_assert_true(!info.wanted && !info.armed && !info.text);
    g_assert_null(kt_arming_filter(a));
    kt_access_arm(t, &(KtAccessSpec) { .block.cache = "x" });
    kt_access_arm(t, &(KtAccessSpec) { .writes = true });
    f = kt_arming_filter(a);
    g_assert_nonnull(f);
    info = info_of(t);
    text = info.text;
    g_assert_true(info.wanted && !info.armed);
    g_assert_cmpstr(text, ==, "stores only");
    g_assert_true(kt_access_disarm(t));
    g_assert_false(kt_access_disarm(t));
    g_assert_cmpuint(changes, ==, 4);
}

TEST(test_state, "/arming/state")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtArming *a = kt_arming_of(t);
    KtAccessInfo info;

    kt_arming_begun(a, 17);
    info = info_of(t);
    g_assert_true(info.armed && info.since_us == 17 && !info.why_not);
    kt_arming_ended(a, "no reason");
    info = info_of(t);
    g_assert_false(info.armed);
    g_assert_cmpstr(info.why_not, ==, "no reason");
}

typedef struct Sum {
    unsigned places, eras;
    uint64_t n[KT_ACCESS__COUNT];
} Sum;

static bool add_place(const KtAccessPlace *place, void *opaque)
{
    Sum *s = opaque;

    s->places++;
    s->n[place->why] += place->n;
    s->eras |= 1u << place->era;
    return true;
}

static bool stop(const KtAccessPlace *place, void *opaque)
{
    ++*(unsigned *)opaque;
    return false;
}

TEST(test_places, "/arming/places")
{
    g_autoptr(KtTracer) t = bare_tracer(0);
    KtArming *a = kt_arming_of(t);
    Sum sum = { 0 };
    unsigned calls = 0;

    for (unsigned i = 0; i < 5; i++) {
        kt_arming_explain(a, KT_ACCESS_OVERREAD, 0x1000, 0);
    }
    kt_arming_explain(a, KT_ACCESS_PAGE_GONE, 0x1000, 0);
    kt_arming_explain(a, KT_ACCESS_OVERREAD, 0x2000, 3);
    /* Another module has the address now. */
    kt_arming_explain(a, KT_ACCESS_OVERREAD, 0x2000, 7);
    kt_access_places(t, add_place, &sum);
    g_assert_cmpuint(sum.places, ==, 4);
    g_assert_cmphex(sum.eras, ==, 1 << 0 | 1 << 3 | 1 << 7);
    g_assert_cmpuint(sum.n[KT_ACCESS_OVERREAD], ==, 7);
    g_assert_cmpuint(sum.n[KT_ACCESS_PAGE_GONE], ==, 1);
    kt_access_places(t, stop, &calls);
    g_assert_cmpuint(calls, ==, 1);
    kt_arming_begun(a, 1);
    sum = (Sum) { 0 };
    kt_access_places(t, add_place, &sum);
    g_assert_cmpuint(sum.places, ==, 0);
    for (unsigned i = 0; i < 10000; i++) {
        kt_arming_explain(a, KT_ACCESS_BY_ALLOCATOR, 0x1000 + i, 0);
    }
    kt_access_places(t, add_place, &sum);
    g_assert_cmpuint(sum.places, ==, 4096);
    g_assert_cmpuint(kt_tracer_counter(t, KT_CNT_ACCESS_PLACES), ==,
                     10000 - 4096);
}
