/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of a kernel from the DWARF of its vmlinux, as a .BTF section: what
 * follows reads BTF only. Called once a file, by one thread.
 */
#ifndef GS_DWARF_TYPES_H
#define GS_DWARF_TYPES_H

#include "guest-symbols/gs.h"

#include <libelf.h>

/**
 * gs_dwarf_types() - convert the types of a file
 * @elf: (borrowed for the call) DWARF 2 to 5, compressed or not; fully linked
 *
 * Structs, unions, enums, typedefs and the names of functions' parameters. A
 * pointer has no target: nobody here asks for it.
 *
 * Returns: (owned) the section; NULL with GS_ERROR_FORMAT if there is no DWARF
 * or no type in it, or with GS_ERROR_UNSUPPORTED if the types exceed a limit.
 */
GByteArray *gs_dwarf_types(Elf *elf, GError **errp);

#endif /* GS_DWARF_TYPES_H */
