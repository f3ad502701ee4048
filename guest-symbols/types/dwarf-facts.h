/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes of an entry of DWARF (a DIE): name, size, place, type and so on.
 * dwarf-types.c asks for them. Any thread that owns the Dwarf handle.
 *
 * libdw reads attributes one by one, and checks that each begins before the end
 * of the unit only if its form has a length. So the entry
 *
 *     DW_FORM_data8, DW_FORM_string       at the last byte of a unit
 *
 * makes it search for the end of a text from 7 bytes behind the unit on,
 * without a limit (libdw 0.188, __libdw_form_val_compute_len()). Each entry is
 * checked before libdw goes over its attributes.
 */
#ifndef GS_DWARF_FACTS_H
#define GS_DWARF_FACTS_H

#include <elfutils/libdw.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** struct GsDwarfFacts - attributes of a DIE, found in one pass; 0 or NULL if
 *  it has no such attribute
 *  @name: (borrowed) a string of the file
 *  @size: bytes; @bit_size, @bit_offset, @data_bit: bits
 *  @place: offset of a member in its struct, in bytes
 *  @upper: largest index of an array
 *  @value: of an enumerator
 *  @type: what DW_AT_type refers to, see gs_dwarf_target() */
typedef struct GsDwarfFacts {
    const char *name;
    uint64_t size, line, encoding, count, bit_size, bit_offset;
    int64_t upper, place, data_bit, value;
    bool has_size, has_upper, has_place, has_data_bit, has_bit_offset;
    bool has_type, is_declaration;
    Dwarf_Attribute type;
} GsDwarfFacts;

/** gs_dwarf_facts() - read the attributes of @die. */
GsDwarfFacts gs_dwarf_facts(Dwarf_Die *die);
/** gs_dwarf_target() - find the type that an entry refers to; false if it
 *  refers to none. */
bool gs_dwarf_target(GsDwarfFacts *f, Dwarf_Die *die);
/** gs_dwarf_child() - find the first entry inside @die; false if there is
 *  none. */
bool gs_dwarf_child(Dwarf_Die *die, Dwarf_Die *child);
/** gs_dwarf_next() - go to the next entry beside @die; false at the end, and if
 *  the next one is not behind it: a damaged file can lead back. */
bool gs_dwarf_next(Dwarf_Die *die);
/** gs_dwarf_units_fit() - check the first entry of each unit: libdw reads some
 *  of its attributes when it reads the unit. @errp: one line */
bool gs_dwarf_units_fit(Dwarf *dwarf, GError **errp);

#endif /* GS_DWARF_FACTS_H */
