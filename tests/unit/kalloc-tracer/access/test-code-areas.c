/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of addresses, against a byte for each address. */
#include "kalloc-tracer/access/arming.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define BASE 0xffffffffc0000000ull
#define LEN  200u

static void test_empty(void)
{
    g_autoptr(KtCodeAreas) a = kt_code_areas_new();

    g_assert_false(kt_code_areas_has(a, 0));
    g_assert_false(kt_code_areas_has(a, BASE));
    kt_code_areas_add(a, BASE, BASE);
    kt_code_areas_add(a, BASE + 1, BASE);
    g_assert_cmpuint(a->len, ==, 0);
    g_assert_false(kt_code_areas_has(a, BASE));
}

static void test_ends(void)
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
static void test_many(void)
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

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/code-areas/empty", test_empty },
        { "/code-areas/ends", test_ends },
        { "/code-areas/many", test_many },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
