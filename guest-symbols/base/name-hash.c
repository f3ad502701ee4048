/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hash of names: see name-hash.h. */
#include "guest-symbols/base/name-hash.h"

#include <string.h>

#include "guest-symbols/base/secret.h"

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
