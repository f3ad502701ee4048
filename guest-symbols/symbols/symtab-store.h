/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A symbol table as bytes, and back. For guest-symbols only.
 */
#ifndef GS_SYMTAB_STORE_H
#define GS_SYMTAB_STORE_H

#include "guest-symbols/base/bytes.h"
#include "guest-symbols/symbols/symtab.h"

/** gs_symtab_save() - append a sealed table to @out. */
void gs_symtab_save(const GsSymtab *tab, GsOut *out);
/** gs_symtab_load() - (owned) make a sealed table from these bytes, which are
 *  untrusted. Returns: NULL (GS_ERROR_FORMAT) if they are not a table. */
GsSymtab *gs_symtab_load(GsBytes *c, GError **errp);

#endif /* GS_SYMTAB_STORE_H */
