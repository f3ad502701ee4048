/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of numbers that others choose: see secret-hash.h. */
#include "kalloc-tracer/base/secret-hash.h"

#include "guest-symbols/gs.h"

guint kt_secret_hash(gconstpointer key)
{
    return gs_secret_hash(*(const uint64_t *)key);
}

guint kt_secret_hash_direct(gconstpointer key)
{
    return gs_secret_hash(GPOINTER_TO_SIZE(key));
}
