/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hash of numbers: equal numbers have equal hashes, and most numbers that
 * were chosen to collide have different ones.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#include <stdbool.h>
#include <stdint.h>

#define NUMBERS 65536u

/* Of glib's hashes one has these alike, in one version or another. */
static uint64_t chosen(unsigned kind, uint64_t i)
{
    switch (kind) {
    case 0:
        return i << 32;
    case 1:
        return i << 48;
    case 2:
        return i << 32 | i;
    default:
        return i << 47 ^ i << 15;
    }
}

static int by_value(gconstpointer a, gconstpointer b)
{
    guint x = *(const guint *)a, y = *(const guint *)b;

    return (x > y) - (x < y);
}

static unsigned n_different(GHashFunc hash, unsigned kind, bool direct)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(guint));
    unsigned n = 0;

    for (unsigned i = 0; i < NUMBERS; i++) {
        uint64_t number = chosen(kind, i);
        guint h = hash(direct ? GSIZE_TO_POINTER(number) : (void *)&number);

        g_array_append_val(all, h);
    }
    g_array_sort(all, by_value);
    for (unsigned i = 0; i < NUMBERS; i++) {
        n += !i || g_array_index(all, guint, i) !=
                   g_array_index(all, guint, i - 1);
    }
    return n;
}

TEST(test_chosen_numbers, "/number-hash/chosen-numbers")
{
    for (unsigned kind = 0; kind < 4; kind++) {
        g_assert_cmpuint(n_different(gs_number_hash, kind, false), >,
                         NUMBERS - 1000);
        g_assert_cmpuint(n_different(gs_number_hash_direct, kind, true), >,
                         NUMBERS - 1000);
    }
}

TEST(test_same_number, "/number-hash/same-number")
{
    uint64_t a = 1ull << 63, b = a;

    g_assert_cmpuint(gs_number_hash(&a), ==, gs_number_hash(&b));
    g_assert_cmpuint(gs_number_hash(&a), ==,
                     gs_number_hash_direct(GSIZE_TO_POINTER(b)));
}
