/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keyed hash: of names, numbers and stacks that a guest or a file
 * chooses. The key is random and made once in each process, so nobody can
 * choose values that collide.
 *
 * Used by every hash table of this project and by the walk cache. Any thread.
 * gs.h declares gs_number_hash() and gs_number_hash_direct(), which are
 * defined in name-hash.c too.
 */
#ifndef GS_NAME_HASH_H
#define GS_NAME_HASH_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

/** gs_name_hash() - hash @len bytes. */
uint32_t gs_name_hash(const char *name, size_t len);
/** gs_name_hash_str() - hash a C string: a GHashFunc, in g_str_hash()'s
 *  place. */
guint gs_name_hash_str(gconstpointer name);

/* ---- the key, for the walk cache ---------------------------------------- */

/**
 * struct GsSecret - the key
 * @salt: what a hash begins with
 * @factor: odd
 */
typedef struct GsSecret {
    uint64_t salt, factor;
} GsSecret;
extern G_GNUC_INTERNAL GsSecret gs_secret;

/** gs_secret_make() - make the key, unless it is made. Each thread calls this
 *  before it first uses gs_secret or gs_fold(). */
void gs_secret_make(void);

/** gs_fold() - multiply by the secret factor and return the exclusive or of
 *  both halves of the product: how two words differ then says nothing about
 *  how their hashes differ. */
static inline uint64_t gs_fold(uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)word * gs_secret.factor;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif /* GS_NAME_HASH_H */
