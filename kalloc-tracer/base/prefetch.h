/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prefetch: start to load what will be used soon. */
#ifndef KT_PREFETCH_H
#define KT_PREFETCH_H

/**
 * kt_prefetch() - start to load the line at @at, to be written
 *
 * gcc takes a function that does nothing but prefetch for one without effect,
 * and drops the calls of it (12.2 does). The empty instruction is an effect.
 */
static inline void kt_prefetch(const void *at)
{
    __builtin_prefetch(at, 1);
    __asm__ volatile("" : : "r"(at));
}

#endif /* KT_PREFETCH_H */
