/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Areas of vmalloc(): the end of the last page is bad, until the area is freed;
 * other sizes of the same pages; areas far away; memory. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/access/vm-areas.h"

#define BASE  0xffffc90000000000ull
#define PAGE  4096u
#define FAR   ((uint64_t)8 << 40)

static bool is_good(const KtVmAreas *a, uint64_t va)
{
    const KtShadow *s = kt_vm_areas_shadow(a);

    return !s || kt_shadow_is_good(s, va, 1);
}

TEST(end_of_the_last_page_is_bad, "/vm-areas/last-page")
{
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(NULL);
    KtShadowState state;
    uint64_t bad;

    g_assert_cmpint(kt_vm_areas_set(a, BASE, 2 * PAGE - 200, PAGE, false), ==,
                    KT_AREA_OK);
    g_assert_true(is_good(a, BASE));
    g_assert_true(is_good(a, BASE + 2 * PAGE - 201));
    g_assert_false(is_good(a, BASE + 2 * PAGE - 200));
    g_assert_false(is_good(a, BASE + 2 * PAGE - 1));
    g_assert_true(is_good(a, BASE + 2 * PAGE));
    g_assert_true(kt_shadow_find_bad(kt_vm_areas_shadow(a), BASE, 2 * PAGE,
                                     &bad, &state));
    g_assert_cmphex(bad, ==, BASE + 2 * PAGE - 200);
    g_assert_cmpint(state, ==, KT_SHADOW_SLACK);
}

TEST(freed_areas_are_unknown, "/vm-areas/freed")
{
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(NULL);

    kt_vm_areas_freed(a, BASE);
    kt_vm_areas_set(a, BASE, 10, PAGE, false);
    kt_vm_areas_set(a, BASE + 2 * PAGE, 20, PAGE, false);
    kt_vm_areas_freed(a, BASE + 1);
    g_assert_false(is_good(a, BASE + 10));
    kt_vm_areas_freed(a, BASE);
    g_assert_true(is_good(a, BASE + 10));
    g_assert_false(is_good(a, BASE + 2 * PAGE + 20));
    kt_vm_areas_clear(a);
    g_assert_true(is_good(a, BASE + 2 * PAGE + 20));
}

TEST(areas_whose_free_was_not_seen_go, "/vm-areas/unseen-free")
{
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(NULL);

    kt_vm_areas_set(a, BASE, 3 * PAGE + 8, PAGE, false);
    kt_vm_areas_set(a, BASE, 4 * PAGE, PAGE, false);
    g_assert_true(is_good(a, BASE + 3 * PAGE + 8));
}

TEST(other_sizes_of_the_same_pages, "/vm-areas/resize")
{
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(NULL);

    kt_vm_areas_set(a, BASE, 3 * PAGE - 8, PAGE, false);
    kt_vm_areas_set(a, BASE, PAGE, PAGE, true);
    g_assert_true(is_good(a, BASE + PAGE - 1));
    g_assert_false(is_good(a, BASE + PAGE));
    g_assert_false(is_good(a, BASE + 3 * PAGE - 1));
    kt_vm_areas_set(a, BASE, 2 * PAGE + 100, PAGE, true);
    g_assert_true(is_good(a, BASE + 2 * PAGE + 99));
    g_assert_false(is_good(a, BASE + 2 * PAGE + 100));
    kt_vm_areas_set(a, BASE, 3 * PAGE, PAGE, true);
    g_assert_true(is_good(a, BASE + 3 * PAGE - 1));
}

TEST(areas_that_are_not_checked, "/vm-areas/not-checked")
{
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(NULL);
    const uint64_t areas[][3] = {
        /* A module, first: no shadow is made there. */
        { 0xffffffffc0000000, 100, KT_AREA_OUTSIDE },
        { BASE, 100, KT_AREA_OK },
        { BASE + FAR, 100, KT_AREA_OUTSIDE },
        { 0xffffffffc0000000, 100, KT_AREA_OUTSIDE },
        /* No slack, or no area. */
        { BASE + FAR, PAGE, KT_AREA_OK },
        { BASE + FAR, 0, KT_AREA_OK },
        { BASE + 1, 100, KT_AREA_OK },
        { -(uint64_t)PAGE, 100, KT_AREA_OK },
        { BASE, UINT64_MAX, KT_AREA_OK },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(areas); i++) {
        g_assert_cmpuint(kt_vm_areas_set(a, areas[i][0], areas[i][1], PAGE,
                                         false), ==, areas[i][2]);
        g_assert_cmpint(kt_vm_areas_shadow(a) != NULL, ==, i > 0);
    }
    g_assert_cmpuint(kt_vm_areas_set(a, BASE + FAR, 100, PAGE, true), ==,
                     KT_AREA_OUTSIDE);
}

/* The budget refuses the codes, then the node of the tree. */
TEST(areas_without_memory, "/vm-areas/no-memory")
{
    KtBudget *budget = kt_budget_new(KT_BUDGET_MIN);
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(budget);

    for (unsigned pages = 2; pages--;) {
        kt_budget_cap(budget, KT_MEM_SHADOW, pages * PAGE);
        g_assert_cmpint(kt_vm_areas_set(a, BASE, 100, PAGE, false), ==,
                        KT_AREA_NO_MEMORY);
        g_assert_true(is_good(a, BASE + 100));
        g_assert_cmpint(kt_vm_areas_set(a, BASE + FAR, 100, PAGE, false), ==,
                        KT_AREA_OUTSIDE);
    }
    g_clear_pointer(&a, kt_vm_areas_free);
    g_assert_cmpuint(kt_budget_used(budget, KT_MEM_SHADOW), ==, 0);
    kt_budget_free(budget);
}

TEST(memory_is_charged, "/vm-areas/memory")
{
    KtBudget *budget = kt_budget_new(0);
    g_autoptr(KtVmAreas) a = kt_vm_areas_new(budget);
    uint64_t one;

    kt_vm_areas_set(a, BASE, 100, PAGE, false);
    one = kt_budget_used(budget, KT_MEM_SHADOW);
    g_assert_cmpuint(one, >, 4096);
    kt_vm_areas_set(a, BASE + PAGE, 100, PAGE, false);
    g_assert_cmpuint(kt_budget_used(budget, KT_MEM_SHADOW), >, one);
    kt_vm_areas_freed(a, BASE);
    g_assert_cmpuint(kt_budget_used(budget, KT_MEM_SHADOW), ==, one);
    g_clear_pointer(&a, kt_vm_areas_free);
    g_assert_cmpuint(kt_budget_used(budget, KT_MEM_SHADOW), ==, 0);
    kt_budget_free(budget);
}
