/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of KtShadow once more, with one record for each byte of guest
 * memory. Single-threaded. */
#ifndef NAIVE_SHADOW_H
#define NAIVE_SHADOW_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of an operation in the input of naive_shadow_run(). */
#define NAIVE_SHADOW_OPERATION 7

/** naive_shadow_run() - apply the operations that @data describes to a shadow
 *  and to the naive one, and abort if they differ. */
void naive_shadow_run(const uint8_t *data, size_t len);

#endif /* NAIVE_SHADOW_H */
