/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists in words: no comma in front, one between two parts. */
#include "kalloc-tracer/api/kt-types.h"
#include "tests/lib/test-main.h"

TEST(test_parts, "/text-parts/parts")
{
    g_autoptr(GString) s = g_string_new(NULL);

    kt_add_part(s, "pid %u", 7u);
    g_assert_cmpstr(s->str, ==, "pid 7");
    kt_add_part(s, "%s", "stores only");
    kt_add_part(s, "x");
    g_assert_cmpstr(s->str, ==, "pid 7, stores only, x");
}
