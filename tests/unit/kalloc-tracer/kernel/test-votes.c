/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtVotes: the offset that all witnesses have is found, and only after enough
 * witnesses; a contradiction is final.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/kernel/witnesses.h"

/* A struct of 16 numbers, and the value that is looked for. */
typedef struct Row {
    unsigned member[16];
    unsigned value;
} Row;

static bool has_value(const void *witness, uint32_t at)
{
    const Row *row = witness;

    return row->member[at] == row->value;
}

static void cast(KtVotes *v, const Row *row)
{
    kt_votes_cast(v, has_value, row, G_N_ELEMENTS(row->member), 1);
}

TEST(others_are_removed_one_by_one, "/votes/others-are-removed")
{
    KtVotes v = { 0 };

    cast(&v, &(Row) { { 7, 1, 7, 7 }, 7 });
    g_assert_cmpuint(v.n, ==, 3);
    cast(&v, &(Row) { { 8, 8, 0, 8 }, 8 });
    g_assert_cmpuint(v.n, ==, 2);
    g_assert_cmpuint(kt_votes_only(&v, 1), ==, KT_NO_MEMBER);
    cast(&v, &(Row) { { 0, 0, 0, 9 }, 9 });
    g_assert_cmpuint(v.n, ==, 1);
    g_assert_cmpuint(kt_votes_only(&v, 3), ==, 3);
}

TEST(few_witnesses_are_not_enough, "/votes/few-witnesses")
{
    KtVotes v = { 0 };

    cast(&v, &(Row) { { 0, 5 }, 5 });
    cast(&v, &(Row) { { 0, 6 }, 6 });
    g_assert_cmpuint(kt_votes_only(&v, 3), ==, KT_NO_MEMBER);
    g_assert_cmpuint(kt_votes_only(&v, 2), ==, 1);
}

TEST(contradiction_is_final, "/votes/contradiction")
{
    KtVotes v = { 0 };

    cast(&v, &(Row) { { 0, 5 }, 5 });
    cast(&v, &(Row) { { 6, 0 }, 6 });
    g_assert_true(v.contradicted);
    for (unsigned i = 1; i < 32; i++) {
        cast(&v, &(Row) { { 0, i }, i });
        g_assert_cmpuint(kt_votes_only(&v, 1), ==, KT_NO_MEMBER);
    }
    g_assert_cmpuint(v.seen, ==, 2);
}

/* Another member was found at one of the places. */
TEST(place_is_removed, "/votes/remove")
{
    KtVotes v = { 0 };

    cast(&v, &(Row) { { 7, 1, 7, 7 }, 7 });
    kt_votes_remove(&v, 1);
    g_assert_cmpuint(v.n, ==, 3);
    kt_votes_remove(&v, 2);
    kt_votes_remove(&v, 0);
    g_assert_cmpuint(kt_votes_only(&v, 1), ==, 3);
}

static bool has_any(const void *witness, uint32_t at)
{
    return at < *(const uint32_t *)witness;
}

TEST(witness_with_many_places_does_not_begin, "/votes/many-places")
{
    uint32_t many = KT_VOTES_MAX + 1, few = KT_VOTES_MAX;
    KtVotes v = { 0 };

    kt_votes_cast(&v, has_any, &many, 4096, 1);
    g_assert_cmpuint(v.seen, ==, 0);
    g_assert_false(v.contradicted);
    kt_votes_cast(&v, has_any, &few, 4096, 1);
    g_assert_cmpuint(v.seen, ==, 1);
    g_assert_cmpuint(v.n, ==, KT_VOTES_MAX);
    g_assert_false(v.contradicted);
}

TEST(step_is_kept, "/votes/step")
{
    uint32_t few = 40;
    KtVotes v = { 0 };

    kt_votes_cast(&v, has_any, &few, 4096, 8);
    g_assert_cmpuint(v.n, ==, 5);
    g_assert_cmpuint(v.at[4], ==, 32);
}
