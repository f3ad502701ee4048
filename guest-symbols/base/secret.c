/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The secret of hashes: see secret.h. */
#include "guest-symbols/base/secret.h"

#include "guest-symbols/gs.h"

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

uint32_t gs_secret_hash(uint64_t number)
{
    uint64_t folded;

    gs_secret_make();
    folded = gs_fold(number ^ gs_secret.salt);
    return folded ^ folded >> 32;
}
