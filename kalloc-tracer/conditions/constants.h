/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers: error codes, capabilities, GFP flags. Any thread. */
#ifndef KT_CONSTANTS_H
#define KT_CONSTANTS_H

#include "kalloc-tracer/api/kt-types.h"

/** Bits of GFP flags, by the rows of gfp-flags.def. */
typedef enum KtGfpBit {
#define GS_GFP_BIT(name, bit) KT_GFP_##name,
#include "guest-symbols/api/gfp-flags.def"
    KT_GFP__COUNT
} KtGfpBit;

/** struct KtGfp - the GFP flags of a kernel, by KtGfpBit */
typedef struct KtGfp {
    uint32_t mask[KT_GFP__COUNT];
} KtGfp;

/** kt_gfp_find() - Find the flags of a kernel: by its types, or as kernels had
 *  them before 6.10. @k: (nullable). */
KtGfp kt_gfp_find(const GsKernel *k);

/** kt_constant_find() - Find a constant by its name: "GFP_KERNEL", "ENOMEM",
 *  "CAP_SYS_ADMIN". Returns: false if there is none. */
bool kt_constant_find(const KtGfp *gfp, const char *name, int64_t *value);
/** kt_constant_each() - Call @fn for each name. */
void kt_constant_each(void (*fn)(void *opaque, const char *name),
                      void *opaque);

#endif /* KT_CONSTANTS_H */
