/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage: are all functions hooked that allocate, or free, memory of a kind?
 *
 * A kernel can lack the symbol of a function that it has: only exported symbols
 * are known, or the compiler inlined or cloned the function. Then blocks are
 * missing in the map, or stay live in it, and what looks like an error may be
 * right. kt_hooks_resolve() asks once for each boot. QEMU-free.
 */
#ifndef KT_HOOK_COVERAGE_H
#define KT_HOOK_COVERAGE_H

#include "kalloc-tracer/hooks/hooks.h"

/** struct KtHookCoverage - bits 1 << KtLayer of layers for which a function is
 *  missing that allocates (@allocs) or frees (@frees) */
typedef struct KtHookCoverage {
    unsigned allocs;
    unsigned frees;
} KtHookCoverage;

/** kt_hook_coverage() - Find what is missing. @h: rows are found. For tables
 *  other than Linux's nothing is missing. */
KtHookCoverage kt_hook_coverage(const KtHooks *h, const KtHookTable *table,
                                const GsKernel *k);
/** kt_hook_family_layers() - Return the layers, as bits, that functions of
 *  @family free. */
unsigned kt_hook_family_layers(KtFamily family);

#endif /* KT_HOOK_COVERAGE_H */
