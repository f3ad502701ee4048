/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code of a kernel allocates pages for the blocks of another allocator:
 * backing-code.def. QEMU-free.
 */
#ifndef KT_BACKING_CODE_H
#define KT_BACKING_CODE_H

#include "kalloc-tracer/api/kt-types.h"

/**
 * kt_backing_code() - find the functions of backing-code.def
 * @k: (borrowed for the call) its slide is set
 *
 * Any thread. Returns: (owned, nullable) KtCodeRange, ascending; NULL if the
 * kernel has none of them.
 */
GArray *kt_backing_code(const GsKernel *k);

#endif /* KT_BACKING_CODE_H */
