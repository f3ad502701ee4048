/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbols that a kernel exports to its modules, found in its memory without
 * any symbol to start from. A kernel with modules has them without
 * CONFIG_KALLSYMS.
 */
#ifndef GS_EXPORTS_H
#define GS_EXPORTS_H

#include "guest-symbols/image/image.h"
#include "guest-symbols/symbols/symtab.h"

/**
 * gs_exports_decode() - find and decode the tables
 * @img: a kernel in guest memory, Linux 5.4 or newer
 * @at: (out) address of the first table; all code is below
 *
 * Returns: (owned) a sealed table of exact symbols, see gs_symtab_set_exact();
 * NULL if there is none.
 */
GsSymtab *gs_exports_decode(const GsImage *img, uint64_t *at);

#endif /* GS_EXPORTS_H */
