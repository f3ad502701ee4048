/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the table of architectures that only guest-symbols uses; see
 * struct GsArch in gs-types.h for the rest. Constant data, any thread.
 */
#ifndef GS_ARCH_H
#define GS_ARCH_H

#include "guest-symbols/gs.h"

typedef struct GsSymtab GsSymtab;

/** gs_arch_of_machine() - (static, nullable) find a row by ELF's e_machine. */
const GsArch *gs_arch_of_machine(unsigned machine);
/** gs_arch_of_symbols() - (static) find a row by a symbol that only kernels of
 *  this architecture have. */
const GsArch *gs_arch_of_symbols(const GsSymtab *tab);
/** gs_arch_image_start() - (static, nullable) return the symbol at the start of
 *  an Image; NULL: _text. */
const char *gs_arch_image_start(const GsArch *arch);
/** gs_arch_page_shift() - return log2 of the page size of @k. */
unsigned gs_arch_page_shift(const GsKernel *k);

#endif /* GS_ARCH_H */
