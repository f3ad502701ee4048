/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free pointers: the word in a free object that leads to the next one.
 *
 *     PLAIN       the address of the next object
 *     XOR         address ^ cache.random ^ address of the word
 *     XOR_SWAP    the same, with the bytes of the last in reverse order (from
 *                 5.7, and in some older kernels)
 *
 * Types do not say which. The lists do: in the right form they end with 0, and
 * have only slots of their slab.
 */
#ifndef KT_FREE_POINTER_H
#define KT_FREE_POINTER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum KtFreeForm {
    KT_FREE_PLAIN,
    KT_FREE_XOR,
    KT_FREE_XOR_SWAP,
    KT_FREE__COUNT,
    KT_FREE_UNKNOWN = KT_FREE__COUNT,
} KtFreeForm;

/** kt_free_pointer() - decode a free pointer. @random: of the cache; @at:
 *  address of the word, without a tag; @stored: the word. Returns: the address
 *  of the next object, which may have a tag. */
uint64_t kt_free_pointer(KtFreeForm form, uint64_t random, uint64_t at,
                         uint64_t stored);

#endif /* KT_FREE_POINTER_H */
