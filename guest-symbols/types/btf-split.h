/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of a module: a .BTF section that continues the kernel's.
 *
 *     kernel   types 1 ... n-1         names at 0 ... len-1
 *     module   types n, n+1, ...       names at len, len+1, ...
 *
 * A module that is built elsewhere continues a small base of its own, its
 * section .BTF.base (since 6.11): names and sizes of the types of the kernel
 * that it uses. Its types are relocated: each type of the small base becomes
 * the type of the kernel with that name and size.
 */
#ifndef GS_BTF_SPLIT_H
#define GS_BTF_SPLIT_H

#include "guest-symbols/types/btf-records.h"

/**
 * gs_btf_relocate() - let a module's types continue the kernel's
 * @split: continues @small
 * @small: records of its section .BTF.base
 * @base: (borrowed while @split is used) the kernel's
 *
 * @split is changed, and no longer needs @small.
 * Returns: false with GS_ERROR_FORMAT if the kernel has no such types.
 */
bool gs_btf_relocate(GsBtfRecords *split, const GsBtfRecords *small,
                     const GsBtfRecords *base, GError **errp);

#endif /* GS_BTF_SPLIT_H */
