/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patterns of names: * and ? match bytes, whatever these are, and a pattern
 * with many stars needs no exponential time.
 */
#include "kalloc-tracer/api/kt-types.h"

#include "tests/lib/test-main.h"

TEST(test_match, "/name-pattern/match")
{
    g_assert_true(kt_name_matches("", ""));
    g_assert_true(kt_name_matches("*", ""));
    g_assert_true(kt_name_matches("kmalloc-*", "kmalloc-64"));
    g_assert_true(kt_name_matches("kmalloc-??", "kmalloc-64"));
    g_assert_true(kt_name_matches("*64", "kmalloc-64"));
    g_assert_true(kt_name_matches("k*-*4", "kmalloc-64"));
    g_assert_false(kt_name_matches("kmalloc", "kmalloc-64"));
    g_assert_false(kt_name_matches("kmalloc-?", "kmalloc-64"));
    g_assert_false(kt_name_matches("?", ""));
}

TEST(test_long, "/name-pattern/long")
{
    g_autofree char *stars = g_strnfill(2000, '*');
    g_autofree char *hard = g_strconcat("*a*a*a*a*a*a*a*a*a*a*a*a*b", NULL);
    g_autofree char *as = g_strnfill(2000, 'a');

    g_assert_true(kt_name_matches(stars, "x"));
    g_assert_false(kt_name_matches(hard, as));
}

/* Bytes that begin a character of UTF-8 are bytes like others. */
TEST(test_bytes, "/name-pattern/bytes")
{
    g_assert_true(kt_name_matches("?", "\xf0"));
    g_assert_true(kt_name_matches("a??", "a\xc3\xa4"));
    g_assert_false(kt_name_matches("a?", "a\xc3\xa4"));
    g_assert_true(kt_name_matches("*\xff", "\xf0\xff"));
}
