/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of numbers that others choose: see secret-hash.h. */
#include "secret-hash.h"

#include <stdint.h>

/* Made once, before the first hash; the second is odd. */
static uint64_t secret[2];

static uint64_t random_word(void)
{
    return (uint64_t)g_random_int() << 32 | g_random_int();
}

static void make_secret(void)
{
    static gsize made;

    if (g_once_init_enter(&made)) {
        secret[0] = random_word();
        secret[1] = random_word() | 1;
        g_once_init_leave(&made, 1);
    }
}

static guint hash(uint64_t number)
{
    unsigned __int128 product;
    uint64_t folded;

    make_secret();
    product = (unsigned __int128)(number ^ secret[0]) * secret[1];
    folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    return folded ^ folded >> 32;
}

guint kt_secret_hash(gconstpointer key)
{
    return hash(*(const uint64_t *)key);
}

guint kt_secret_hash_direct(gconstpointer key)
{
    return hash(GPOINTER_TO_SIZE(key));
}
