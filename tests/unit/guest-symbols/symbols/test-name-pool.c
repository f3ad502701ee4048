/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of names keeps one copy of each name, within its bounds, also if
 * names are chosen to collide.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/symbols/name-pool.h"

#include <string.h>

TEST(test_one_copy, "/name-pool/one-copy")
{
    g_autoptr(GsNamePool) pool = gs_name_pool_new(64);
    char again[] = "kfree";
    const char *name = gs_name_pool_intern(pool, "kfree");

    g_assert_cmpstr(name, ==, "kfree");
    g_assert_true(gs_name_pool_intern(pool, again) == name);
    g_assert_true(gs_name_pool_find(pool, again) == name);
    g_assert_null(gs_name_pool_find(pool, "kfre"));
}

TEST(test_bounds, "/name-pool/bounds")
{
    g_autoptr(GsNamePool) pool = gs_name_pool_new(10);

    g_assert_nonnull(gs_name_pool_intern(pool, "12345"));
    g_assert_null(gs_name_pool_intern(pool, "1234"));
    g_assert_nonnull(gs_name_pool_intern(pool, "123"));
    g_assert_nonnull(gs_name_pool_intern(pool, "12345"));
}

/* Where these collide it takes many minutes. */
TEST(test_chosen_to_collide, "/name-pool/chosen-to-collide")
{
    enum { BITS = 18 };
    g_autoptr(GsNamePool) pool = gs_name_pool_new(64u << 20);

    for (unsigned i = 0; i < 1u << BITS; i++) {
        char name[2 * BITS + 1] = "";

        for (unsigned bit = 0; bit < BITS; bit++) {
            memcpy(name + 2 * bit, i >> bit & 1 ? "bA" : "ab", 2);
        }
        g_assert_nonnull(gs_name_pool_intern(pool, name));
    }
}
