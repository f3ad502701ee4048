/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A kernel for walks by frame records: without ORC, with the types of arm64. */
#ifndef FRAME_KERNEL_H
#define FRAME_KERNEL_H

#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "tests/lib/frame-types.h"

/** struct FrameSymbol - a function of the kernel */
typedef struct FrameSymbol {
    uint64_t va;
    const char *name;
} FrameSymbol;

/** frame_symtab() - make the symbols of a kernel; they end at the next one.
 *  Returns: (owned) */
struct GsSymtab *frame_symtab(const FrameSymbol *symbols, size_t n);
/**
 * frame_kernel_init() - make the kernel
 * @k: all zero; see frame_kernel_clear()
 * @image, @text: its addresses
 * @symbols: ascending
 * @meta: as in frame_types_new()
 */
void frame_kernel_init(GsKernel *k, const GsArch *arch, GsRange image,
                       GsRange text, const FrameSymbol *symbols, size_t n,
                       bool meta);
void frame_kernel_clear(GsKernel *k);

#endif /* FRAME_KERNEL_H */
