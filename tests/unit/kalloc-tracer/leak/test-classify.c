/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which blocks are in use, and by which word: kt_leak_classify(). And which
 * lost blocks own others: KtLeak.owner.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#define ROOT(n) (LG_IMAGE + LG_ROOT + 8ull * (n))
#define PAGE    (LG_DIRECT + LG_AT_KERNEL + 0x1000)

/* ---- classes ------------------------------------------------------------ */

typedef struct Want {
    uint64_t va;
    KtReach reach;
    KtPlace place;              /* of the holder, if kept */
    uint64_t at;                /* its address */
    bool among;
} Want;

static void ask(LeakGuest *g, const Want *want, unsigned n, GArray *out)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GError) err = NULL;

    for (unsigned i = n; i--;) {        /* in the wrong order */
        KtReached r = { .va = want[i].va };

        r.layer = want[i].va == PAGE ||
                  want[i].va == LG_DIRECT + LG_AT_USER ? KT_LAYER_PAGES :
                                                         KT_LAYER_CACHE;
        g_array_append_val(out, r);
    }
    g_assert_true(kt_leak_classify(g->t, &plan, out, &err));
    g_assert_no_error(err);
}

static const KtReached *answer(const GArray *out, uint64_t va)
{
    for (unsigned i = 0; i < out->len; i++) {
        const KtReached *r = &g_array_index(out, KtReached, i);

        if (r->va == va) {
            return r;
        }
    }
    g_assert_not_reached();
}

static void check(LeakGuest *g, const Want *want, unsigned n)
{
    g_autoptr(GArray) out = g_array_new(FALSE, TRUE, sizeof(KtReached));

    ask(g, want, n, out);
    for (unsigned i = 0; i < n; i++) {
        const KtReached *r = answer(out, want[i].va);

        g_test_message("%" G_GINT64_MODIFIER "x", want[i].va);
        g_assert_cmpint(r->reach, ==, want[i].reach);
        if (r->reach == KT_REACH_KEPT) {
            g_assert_cmpint(r->holder.place, ==, want[i].place);
            g_assert_cmpint(r->among, ==, want[i].among);
        }
        if (want[i].at) {
            g_assert_cmphex(r->holder.va, ==, want[i].at);
        }
    }
}

TEST(test_who_keeps_what, "/leak-classify/who-keeps-what")
{
    static const Want want[] = {
        { LG_OBJECT(1), KT_REACH_KEPT, KT_PLACE_DATA, ROOT(0) },
        { LG_OBJECT(2), KT_REACH_KEPT, KT_PLACE_BLOCK, LG_OBJECT(1) + 8,
          true },
        { LG_OBJECT(3), KT_REACH_KEPT, KT_PLACE_BLOCK, LG_OBJECT(10) + 16 },
        { LG_OBJECT(4), KT_REACH_LOST },
        { LG_OBJECT(5), KT_REACH_LOST },
        { LG_OBJECT(6), KT_REACH_KEPT, KT_PLACE_REGISTER },
        { LG_OBJECT(7), KT_REACH_KEPT, KT_PLACE_STACK,
          LG_TASK_STACK_VA(1) + 0x900 },
        { LG_OBJECT(8), KT_REACH_KEPT, KT_PLACE_PERCPU,
          LG_DIRECT + LG_AT_PERCPU + 0x1a00 },
        { LG_LARGE, KT_REACH_KEPT, KT_PLACE_BLOCK, LG_TASK(0) + 128 },
        { 0x1234000, KT_REACH_UNKNOWN },
    };
    g_autoptr(LeakGuest) g = leak_guest_new();

    g->reg = LG_OBJECT(6);
    lg_put(g, ROOT(0), LG_OBJECT(1));
    lg_put(g, ROOT(1), LG_OBJECT(10));
    lg_put(g, LG_OBJECT(1) + 8, LG_OBJECT(2));
    lg_put(g, LG_OBJECT(2) + 8, LG_OBJECT(1));  /* less sure than ROOT(0) */
    lg_put(g, LG_OBJECT(10) + 16, LG_OBJECT(3) + 8);
    lg_put(g, LG_OBJECT(4), LG_OBJECT(5));
    lg_put(g, LG_OBJECT(5), LG_OBJECT(1));      /* a lost block keeps nothing */
    lg_put(g, LG_TASK_STACK_VA(1) + 0x900, LG_OBJECT(7));
    lg_put(g, LG_DIRECT + LG_AT_PERCPU + 0x1a00, LG_OBJECT(8));
    lg_put(g, LG_TASK(0) + 128, lg_struct(LG_AT_LARGE));
    check(g, want, G_N_ELEMENTS(want));
}

/* Pages of the page allocator are blocks if they are asked for. */
TEST(test_pages, "/leak-classify/pages")
{
    static const Want lost[] = {
        { PAGE, KT_REACH_LOST },
        { LG_OBJECT(1), KT_REACH_LOST },
        { LG_DIRECT + LG_AT_USER, KT_REACH_KEPT, KT_PLACE__COUNT },
    };
    static const Want kept[] = {
        { PAGE, KT_REACH_KEPT, KT_PLACE_DATA, ROOT(0) },
        { LG_OBJECT(1), KT_REACH_KEPT, KT_PLACE_BLOCK, PAGE + 0x100 },
    };
    g_autoptr(LeakGuest) g = leak_guest_new();

    lg_alloc(g, PAGE, 4096, KT_LAYER_PAGES, (KtCacheId) { 0 });
    lg_alloc(g, LG_DIRECT + LG_AT_USER, 4096, KT_LAYER_PAGES,
             (KtCacheId) { 0 });
    lg_put(g, PAGE + 0x100, LG_OBJECT(1));
    check(g, lost, G_N_ELEMENTS(lost));
    lg_put(g, ROOT(0), lg_struct(LG_AT_KERNEL + 0x1000));
    check(g, kept, 1);
    lg_put(g, ROOT(0), PAGE);
    check(g, kept, 1);
}

LEAK_TEST(test_running, "/leak-classify/running")
{
    g_autoptr(GArray) out = g_array_new(FALSE, TRUE, sizeof(KtReached));
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GError) err = NULL;

    g->vm.running = true;
    g_assert_false(kt_leak_classify(g->t, &plan, out, &err));
    g_assert_nonnull(err);
}

/* ---- owners ------------------------------------------------------------- */

static uint64_t owner_of(const KtLeakReport *r, uint64_t va)
{
    for (unsigned i = 0; i < r->leaks->len; i++) {
        const KtLeak *leak = &g_array_index(r->leaks, KtLeak, i);

        if (leak->block.va == va) {
            return leak->owner;
        }
    }
    return 0;
}

TEST(test_owners, "/leak-classify/owners")
{
    static const struct {
        unsigned from, to, owner;   /* @from refers to @to, which @owner owns */
    } row[] = {
        { 2, 3, 2 }, { 3, 1, 2 },               /* a chain, not by address */
        { 4, 5, 4 }, { 5, 6, 4 }, { 6, 4, 4 },  /* a ring */
        { 7, 7, 7 },                            /* an empty list */
        { 8, 3, 2 },                            /* the first owner counts */
        { 9, 8, 9 },
    };
    g_autoptr(LeakGuest) g = leak_guest_new();
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_auto(KtLeakReport) r = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        lg_put(g, LG_OBJECT(row[i].from) + 8, LG_OBJECT(row[i].to) + 8);
    }
    g_assert_true(kt_leak_scan(g->t, &plan, &r, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_assert_cmphex(owner_of(&r, LG_OBJECT(row[i].to)), ==,
                        LG_OBJECT(row[i].owner));
    }
    g_assert_cmphex(owner_of(&r, LG_OBJECT(2)), ==, LG_OBJECT(2));
    g_assert_cmphex(owner_of(&r, LG_OBJECT(10)), ==, LG_OBJECT(10));
}
