/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System.map: the output of "nm -n vmlinux" as the kernel's scripts/mksysmap
 * filters it, one "<hex address> <type> <name>" a line.
 */
#ifndef GS_SYSTEMMAP_H
#define GS_SYSTEMMAP_H

#include "guest-symbols/symbols/symtab.h"

/** gs_systemmap_is() - does @data begin like a System.map? */
bool gs_systemmap_is(const uint8_t *data, size_t len);

/**
 * gs_systemmap_decode() - read all symbols of a System.map
 * @errp: GS_ERROR_FORMAT with the number of the line that is wrong;
 *        GS_ERROR_NO_SYMBOLS for the stub that Debian ships instead
 * Returns: (owned) a sealed table, or NULL.
 */
GsSymtab *gs_systemmap_decode(const uint8_t *data, size_t len, GError **errp);

#endif /* GS_SYSTEMMAP_H */
