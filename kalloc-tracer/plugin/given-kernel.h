/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel and the profile that the options kernel= and profile= name. */
#ifndef KT_GIVEN_KERNEL_H
#define KT_GIVEN_KERNEL_H

#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/plugin/options.h"

/**
 * struct KtGivenKernel - what was opened; owned
 * @kernel: NULL if kernel= is not set or cannot be used
 * @profile: NULL if the guest runs Linux
 */
typedef struct KtGivenKernel {
    GsKernel *kernel;
    KtProfile *profile;
} KtGivenKernel;

/**
 * kt_given_kernel_open() - Open the files that @o names
 * @out: (out) the caller owns what it points at, also after an error
 * @table: set to the profile's rows, which it borrows rules from
 * @arch: the guest's architecture
 * @errp: one line
 *
 * QEMU's main thread, at install. Does nothing if kernel= is not set.
 *
 * Returns: false if a file cannot be used.
 */
bool kt_given_kernel_open(KtGivenKernel *out, KtHookTable *table,
                          const GsArch *arch, const KtOptions *o,
                          GError **errp);

#endif /* KT_GIVEN_KERNEL_H */
