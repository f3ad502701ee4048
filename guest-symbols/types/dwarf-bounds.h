/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bounds of entries of DWARF (DIEs). libdw reads attributes one by one, and
 * checks that each begins before the end of the unit only if its form has a
 * length. So the entry
 *
 *     DW_FORM_data8, DW_FORM_string       at the last byte of a unit
 *
 * makes it search for the end of a text from 7 bytes behind the unit on,
 * without a limit (libdw 0.188, __libdw_form_val_compute_len()). Each entry is
 * checked before libdw goes over its attributes.
 *
 * Any thread that owns the Dwarf handle.
 */
#ifndef GS_DWARF_BOUNDS_H
#define GS_DWARF_BOUNDS_H

#include <elfutils/libdw.h>
#include <glib.h>
#include <stdbool.h>

/** GsDwarfRead - read an attribute, which begins within its unit */
typedef void GsDwarfRead(void *opaque, Dwarf_Attribute *a);

/** gs_dwarf_read_attrs() - call @read for each attribute of @die. Returns:
 *  false if one does not begin within its unit, or has no end; then what was
 *  read before is not to be used. */
bool gs_dwarf_read_attrs(Dwarf_Die *die, GsDwarfRead *read, void *opaque);
/** gs_dwarf_die_fits() - does each attribute of @die begin within its unit? */
bool gs_dwarf_die_fits(Dwarf_Die *die);
/** gs_dwarf_units_fit() - check the first entry of each unit: libdw reads some
 *  of its attributes when it reads the unit. @errp: one line */
bool gs_dwarf_units_fit(Dwarf *dwarf, GError **errp);

#endif /* GS_DWARF_BOUNDS_H */
