/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Big pages that a scan does not read: hugetlb pages and crashkernel= memory,
 * also if the guest's lists and ranges are wrong.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#define STRUCT(at)  lg_struct(at)
#define OBJECT      LG_OBJECT(5)

/* A hugetlb page is in a list of its size. An endless list ends the walk. */
TEST(test_hugetlb_pages, "/leak-big-pages/hugetlb-pages")
{
    static const unsigned list[] = { LG_HSTATE_ACTIVE, LG_HSTATE_FREE };
    const uint64_t page = LG_AT_KERNEL + 0x1000;

    for (unsigned i = 0; i < G_N_ELEMENTS(list); i++) {
        const uint64_t head = LG_IMAGE + LG_HSTATES + list[i];
        g_autoptr(LeakGuest) g = leak_guest_new();

        lg_put(g, LG_DIRECT + page + 0x100, OBJECT);
        lg_put(g, head, STRUCT(page) + LG_PAGE_LRU);
        lg_put(g, STRUCT(page) + LG_PAGE_LRU, head);
        g_assert_false(lg_is_leaked(g, OBJECT));
        lg_put(g, LG_IMAGE + LG_MAX_HSTATE, 1);
        g_assert_true(lg_is_leaked(g, OBJECT));
        lg_put(g, STRUCT(page) + LG_PAGE_LRU, STRUCT(page) + LG_PAGE_LRU);
        g_assert_true(lg_is_leaked(g, OBJECT));
        lg_put(g, head, LG_OBJECT(3));          /* no struct page */
        g_assert_false(lg_is_leaked(g, OBJECT));
    }
}

TEST(test_crashkernel, "/leak-big-pages/crashkernel")
{
    static const struct {
        uint64_t start, end;
        bool counts;
    } row[] = {
        { LG_AT_KERNEL + 0x1000, LG_AT_KERNEL + 0x1fff, false },
        { LG_AT_KERNEL, LG_AT_KERNEL + 0xfff, true }, { 0, 0, true },
        { LG_AT_KERNEL + 0x1000, ~0ull, false }, { ~0ull - 1, ~0ull, true },
        { LG_AT_KERNEL + 0x2000, LG_AT_KERNEL, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();

        lg_put(g, LG_DIRECT + LG_AT_KERNEL + 0x1100, OBJECT);
        lg_put(g, LG_IMAGE + LG_CRASHK_RES, row[i].start);
        lg_put(g, LG_IMAGE + LG_CRASHK_RES + 8, row[i].end);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
    }
}
