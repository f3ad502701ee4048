/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guest-symbols itself needs of the table of architectures, see
 * struct GsArch in gs.h. Constant data.
 */
#ifndef GS_ARCH_H
#define GS_ARCH_H

#include "guest-symbols/gs.h"

typedef struct GsSymtab GsSymtab;

/** gs_arch_of_machine() - (static, nullable) by ELF's e_machine. */
const GsArch *gs_arch_of_machine(unsigned machine);
/** gs_arch_of_symbols() - (static) by a symbol that only its kernels have. */
const GsArch *gs_arch_of_symbols(const GsSymtab *tab);
/** gs_arch_image_start() - (static, nullable) the symbol that is where an Image
 *  begins, if that is not _text. */
const char *gs_arch_image_start(const GsArch *arch);
/** gs_arch_page_shift() - log2 of the page size of @k. */
unsigned gs_arch_page_shift(const GsKernel *k);

#endif /* GS_ARCH_H */
