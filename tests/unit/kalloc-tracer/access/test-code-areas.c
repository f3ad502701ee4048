/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of addresses, against a byte for each address. */
#include "kalloc-tracer/access/arming.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define BASE 0xffffffffc0000000ull
#define LEN  200u

TEST(test_empty, "/code-areas/empty")
{
    g_autoptr(KtCodeAreas) a = kt_code_areas_new();

    g_assert_false(kt_code_areas_has(a, 0));
    g_assert_false(kt_code_areas_has(a, BASE));
    kt_code_areas_add(a, BASE, BASE);
    kt_code_areas_add(a, BASE + 1, BASE);
    g_assert_cmpuint(a->len, ==, 0);
    g_assert_false(kt_code_areas_has(a, BASE));
}

TEST(test_ends, "/code-areas/ends")
{
    g_autoptr(KtCodeAreas) a = kt_code_areas_new();

    kt_code_areas_add(a, BASE + 0x2000, BASE + 0x3000);
    kt_code_areas_add(a, BASE, BASE + 0x1000);
    g_assert_false(kt_code_areas_has(a, BASE - 1));
    g_assert_true(kt_code_areas_has(a, BASE));
    g_assert_true(kt_code_areas_has(a, BASE + 0xfff));
    g_assert_false(kt_code_areas_has(a, BASE + 0x1000));
    g_assert_false(kt_code_areas_has(a, BASE + 0x1fff));
    g_assert_true(kt_code_areas_has(a, BASE + 0x2fff));
    g_assert_false(kt_code_areas_has(a, BASE + 0x3000));
}

/* Areas in any order, also one in another. */
TEST(test_many, "/code-areas/many")
{
    for (unsigned round = 0; round < 200; round++) {
        g_autoptr(KtCodeAreas) a = kt_code_areas_new();
        bool in[LEN] = { false };

        for (unsigned i = 0; i < 12; i++) {
            unsigned from = g_test_rand_int_range(0, LEN);
            unsigned to = from + g_test_rand_int_range(0, 30);

            to = MIN(to, LEN);
            kt_code_areas_add(a, BASE + from, BASE + to);
            memset(&in[from], true, to - from);
        }
        for (unsigned i = 0; i < LEN; i++) {
            g_assert_cmpint(kt_code_areas_has(a, BASE + i), ==, in[i]);
        }
    }
}
