/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hashes of numbers that a guest or a file chooses, for GHashTable: by a
 * secret that each run makes anew. Who knows those of glib can choose numbers
 * that all have the same, and each look at the table goes through all of them.
 */
#ifndef KT_SECRET_HASH_H
#define KT_SECRET_HASH_H

#include <glib.h>

/** kt_secret_hash() - of the uint64_t at @key; with g_int64_equal(). */
guint kt_secret_hash(gconstpointer key);
/** kt_secret_hash_direct() - of the number that @key is; with
 *  g_direct_equal(). */
guint kt_secret_hash_direct(gconstpointer key);

#endif /* KT_SECRET_HASH_H */
