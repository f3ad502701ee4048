/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keyed hash: see name-hash.h. Owns the key of the process. */
#include "guest-symbols/base/name-hash.h"
#include "guest-symbols/gs.h"

#include <string.h>

/* ---- the key ------------------------------------------------------------ */

GsSecret gs_secret;

static uint64_t random_word(void)
{
    return (uint64_t)g_random_int() << 32 | g_random_int();
}

void gs_secret_make(void)
{
    static gsize made;

    if (g_once_init_enter(&made)) {
        gs_secret.salt = random_word();
        gs_secret.factor = random_word() | 1;
        g_once_init_leave(&made, 1);
    }
}

/* ---- numbers ------------------------------------------------------------ */

static guint hash_number(uint64_t number)
{
    uint64_t folded;

    gs_secret_make();
    folded = gs_fold(number ^ gs_secret.salt);
    return folded ^ folded >> 32;
}

guint gs_number_hash(gconstpointer key)
{
    return hash_number(*(const uint64_t *)key);
}

guint gs_number_hash_direct(gconstpointer key)
{
    return hash_number(GPOINTER_TO_SIZE(key));
}

/* ---- names -------------------------------------------------------------- */

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

    gs_secret_make();
    h = gs_fold(gs_secret.salt + len);
    for (; i + 8 < len; i += 8) {
        h = gs_fold(h ^ word_of(name + i, 8));
    }
    return gs_fold(h ^ (len >= 8 ? word_of(name + len - 8, 8)
                                 : word_of(name, len)));
}

guint gs_name_hash_str(gconstpointer name)
{
    return gs_name_hash(name, strlen(name));
}
