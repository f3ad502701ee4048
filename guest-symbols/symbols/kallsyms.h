/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol table that a kernel carries for itself (CONFIG_KALLSYMS), found
 * in its read-only data without any symbol to start from.
 */
#ifndef GS_KALLSYMS_H
#define GS_KALLSYMS_H

#include "guest-symbols/image/image.h"
#include "guest-symbols/symbols/symtab.h"

/**
 * gs_kallsyms_decode() - find and decode the tables
 * @img: a kernel of 64 bits, little-endian, Linux 4.6 or newer; a raw image
 *       is rebased to the link address that its table contains
 * @errp: GS_ERROR_NO_SYMBOLS if there is no table, GS_ERROR_FORMAT if it is
 *        not consistent
 * Returns: (owned) a sealed table, or NULL.
 */
GsSymtab *gs_kallsyms_decode(GsImage *img, GError **errp);

#endif /* GS_KALLSYMS_H */
