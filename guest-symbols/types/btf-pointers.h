/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in a struct: to what types do they point? Any thread, no lock.
 */
#ifndef GS_BTF_POINTERS_H
#define GS_BTF_POINTERS_H

#include "guest-symbols/types/btf.h"

/** gs_btf_pointers_at() - see gs_kernel_pointers_at() in gs-symbols.h. */
void gs_btf_pointers_at(const GsBtf *btf, const char *type, uint32_t at,
                        GsPointeeFn fn, void *opaque);

#endif /* GS_BTF_POINTERS_H */
