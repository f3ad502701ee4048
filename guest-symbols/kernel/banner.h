/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The "Linux version ..." line of an image. Cold path, stateless. */
#ifndef GS_BANNER_H
#define GS_BANNER_H

#include "guest-symbols/image/image.h"
#include "guest-symbols/symbols/symtab.h"

/**
 * gs_banner_find() - the line of a kernel
 * @va: (out) its address in @img
 *
 * linux_banner is data, so kallsyms names it only with KALLSYMS_ALL; without,
 * it is the text itself that is looked for.
 *
 * Returns: (owned) printable, without newline; NULL: there is none.
 */
char *gs_banner_find(const GsImage *img, const GsSymtab *tab, uint64_t *va);

#endif /* GS_BANNER_H */
