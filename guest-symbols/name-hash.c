/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash of names: see name-hash.h. As that of stacks (paths.c) it multiplies
 * words by a secret, and takes both halves of the product: what two names
 * differ in then tells nothing of how their hashes differ.
 */
#include "name-hash.h"

#include <string.h>

static uint64_t salt, secret;

static void make_secret(void)
{
    static gsize made;

    if (g_once_init_enter(&made)) {
        salt = (uint64_t)g_random_int() << 32 | g_random_int();
        secret = (uint64_t)g_random_int() << 32 | g_random_int() | 1;
        g_once_init_leave(&made, 1);
    }
}

static inline uint64_t fold(uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)word * secret;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_of(const char *text, size_t len)
{
    uint64_t word = 0;

    memcpy(&word, text, len);
    return word;
}

/* The last word of a long name overlaps the one before it. */
uint32_t gs_name_hash(const char *name, size_t len)
{
    uint64_t h;
    size_t i = 0;

    make_secret();
    h = fold(salt + len);
    for (; i + 8 < len; i += 8) {
        h = fold(h ^ word_of(name + i, 8));
    }
    return fold(h ^ (len >= 8 ? word_of(name + len - 8, 8)
                              : word_of(name, len)));
}

guint gs_name_hash_str(gconstpointer name)
{
    return gs_name_hash(name, strlen(name));
}
