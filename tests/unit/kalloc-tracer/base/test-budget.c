/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory budget: the share of each part, what remains, and an exact total
 * while several threads use it.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/base/budget.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtBudget, kt_budget_free)

TEST(budget_is_a_bound, "/budget/is-a-bound")
{
    g_autoptr(KtBudget) b = kt_budget_new(1600);

    g_assert_true(kt_budget_take(b, KT_MEM_FIXED, 600));
    g_assert_false(kt_budget_take(b, KT_MEM_FIXED, 1001));
    /* An eighth is left for the others. */
    g_assert_false(kt_budget_take(b, KT_MEM_BLOCKS, 801));
    g_assert_cmpuint(kt_budget_lack(b, KT_MEM_BLOCKS, 801), ==, 1);
    g_assert_true(kt_budget_take(b, KT_MEM_BLOCKS, 800));
    g_assert_true(kt_budget_take(b, KT_MEM_NAMES, 100));
    /* A sixteenth is all that names get. */
    g_assert_false(kt_budget_take(b, KT_MEM_NAMES, 1));
    g_assert_cmpuint(kt_budget_lack(b, KT_MEM_NAMES, 1), ==, 0);
    g_assert_cmpuint(kt_budget_total(b), ==, 1500);
    kt_budget_release(b, KT_MEM_BLOCKS, 800);
    g_assert_cmpuint(kt_budget_total(b), ==, 700);
    kt_budget_cap(b, KT_MEM_BLOCKS, 100);
    g_assert_false(kt_budget_take(b, KT_MEM_BLOCKS, 101));
}

TEST(room_is_what_can_be_taken, "/budget/room-is-what-can-be-taken")
{
    g_autoptr(KtBudget) b = kt_budget_new(1600);

    g_assert_cmpuint(kt_budget_room(b, KT_MEM_KERNEL), ==, 800);
    kt_budget_set(b, KT_MEM_KERNEL, 300);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_KERNEL), ==, 500);
    g_assert_cmpuint(kt_budget_total(b), ==, 300);
    kt_budget_charge(b, KT_MEM_FIXED, 1000);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_KERNEL), ==, 300);
    g_assert_true(kt_budget_take(b, KT_MEM_KERNEL, 300));
    g_assert_false(kt_budget_take(b, KT_MEM_KERNEL, 1));
    kt_budget_set(b, KT_MEM_KERNEL, 100);
    g_assert_cmpuint(kt_budget_total(b), ==, 1100);
}

/* Of blocks that are about to go others may have the bytes, not the share. */
TEST(loan_is_of_its_part, "/budget/loan-is-of-its-part")
{
    g_autoptr(KtBudget) b = kt_budget_new(1600);

    g_assert_true(kt_budget_take(b, KT_MEM_FIXED, 400));
    g_assert_true(kt_budget_take(b, KT_MEM_BLOCKS, 900));
    g_assert_true(kt_budget_take(b, KT_MEM_ERRORS, 100));
    kt_budget_lend(b, KT_MEM_BLOCKS, 900);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_ERRORS), ==, 0);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_NAMES), ==, 100);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_BLOCKS), ==, 900);
    kt_budget_lend(b, KT_MEM_ERRORS, 100);
    g_assert_true(kt_budget_take(b, KT_MEM_ERRORS, 100));
    g_assert_false(kt_budget_take(b, KT_MEM_ERRORS, 1));
    g_assert_true(kt_budget_take(b, KT_MEM_BLOCKS, 900));
    kt_budget_release(b, KT_MEM_BLOCKS, 900);
    kt_budget_release(b, KT_MEM_ERRORS, 100);
    kt_budget_unlend(b, KT_MEM_BLOCKS, 900);
    kt_budget_unlend(b, KT_MEM_ERRORS, 100);
    g_assert_cmpuint(kt_budget_room(b, KT_MEM_ERRORS), ==, 0);
    g_assert_cmpuint(kt_budget_total(b), ==, 1400);
}

static gpointer take_and_give(gpointer opaque)
{
    KtBudget *b = opaque;
    unsigned n = 0;

    for (unsigned i = 0; i < 200000; i++) {
        if (kt_budget_take(b, KT_MEM_FIXED, 7)) {
            g_assert_cmpuint(kt_budget_total(b), <=, 20);
            kt_budget_release(b, KT_MEM_FIXED, 7);
            n++;
        }
    }
    return GUINT_TO_POINTER(n);
}

TEST(budget_holds_among_threads, "/budget/holds-among-threads")
{
    g_autoptr(KtBudget) b = kt_budget_new(20);
    GThread *t[4];
    unsigned taken = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
        t[i] = g_thread_new(NULL, take_and_give, b);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
        taken += GPOINTER_TO_UINT(g_thread_join(t[i]));
    }
    g_assert_cmpuint(taken, >, 0);
    g_assert_cmpuint(kt_budget_total(b), ==, 0);
}
