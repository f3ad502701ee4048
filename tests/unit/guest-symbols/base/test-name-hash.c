/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hash of names: equal names have equal hashes, and names that were chosen
 * to collide have different ones.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/base/name-hash.h"

#include <string.h>

#define BITS    12
#define NAMES   (1u << BITS)

static int by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* How often two of them are the same: one in 2^9 times here, by chance. */
static unsigned count_same(uint32_t *hash)
{
    unsigned n = 0;

    qsort(hash, NAMES, sizeof(*hash), by_value);
    for (unsigned i = 1; i < NAMES; i++) {
        n += hash[i] == hash[i - 1];
    }
    return n;
}

TEST(test_same_name_same_hash, "/name-hash/same-name-same-hash")
{
    static const char name[] = "kmem_cache_alloc_node_noprof";

    for (size_t len = 0; len < sizeof(name); len++) {
        g_autofree char *copy = g_strndup(name, len);

        g_assert_cmpuint(gs_name_hash(name, len), ==,
                         gs_name_hash_str(copy));
    }
}

/* "ab" or "bA" at each place: all that are as long collide in g_str_hash(). */
TEST(test_swapped_pairs, "/name-hash/swapped-pairs")
{
    g_autofree uint32_t *hash = g_new(uint32_t, NAMES);

    for (unsigned i = 0; i < NAMES; i++) {
        char name[2 * BITS];

        for (unsigned bit = 0; bit < BITS; bit++) {
            memcpy(name + 2 * bit, i >> bit & 1 ? "bA" : "ab", 2);
        }
        hash[i] = gs_name_hash(name, sizeof(name));
    }
    g_assert_cmpuint(count_same(hash), <, 4);
}

/*
 * Where words are multiplied by an odd number, a difference in the highest
 * bit of one stays there, and the next word can take it back; half of the
 * time so does the bit below, which visible characters differ in.
 */
TEST(test_high_bits, "/name-hash/high-bits")
{
    g_autofree uint32_t *hash = g_new(uint32_t, NAMES);

    for (unsigned i = 0; i < NAMES; i++) {
        char name[16 * BITS];

        memset(name, '0', sizeof(name));
        for (unsigned bit = 0; bit < BITS; bit++) {
            if (i >> bit & 1) {
                name[16 * bit + 7] ^= 0x40;
                name[16 * bit + 11] ^= 0x40;
                name[16 * bit + 15] ^= 0x40;
            }
        }
        hash[i] = gs_name_hash(name, sizeof(name));
    }
    g_assert_cmpuint(count_same(hash), <, 4);
}
