/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all hashes of names, numbers and stacks are made of that a guest or a
 * file chooses: another secret in each process, so that nobody can choose
 * such as collide. Internal to guest-symbols.
 */
#ifndef GS_SECRET_H
#define GS_SECRET_H

#include <glib.h>
#include <stdint.h>

/** struct GsSecret - @salt: what a hash begins with; @factor: odd */
typedef struct GsSecret {
    uint64_t salt, factor;
} GsSecret;
extern G_GNUC_INTERNAL GsSecret gs_secret;

/** gs_secret_make() - before the first hash of each thread; any thread. */
void gs_secret_make(void);

/** gs_fold() - both halves of the product with the secret: what two words
 *  differ in then tells nothing of how their hashes differ. */
static inline uint64_t gs_fold(uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)word * gs_secret.factor;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif /* GS_SECRET_H */
