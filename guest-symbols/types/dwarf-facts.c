/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes of DWARF's entries, see dwarf-facts.h. libdw reads the bytes.
 */
#include "guest-symbols/types/dwarf-facts.h"

#include <dwarf.h>

#include "guest-symbols/types/dwarf-bounds.h"

static uint64_t number(Dwarf_Attribute *a)
{
    Dwarf_Word v = 0;

    return dwarf_formudata(a, &v) ? 0 : v;
}

/* Compilers write only negative values with a signed form. libdw would take
 * the top bit of the others as a sign, too. */
int64_t gs_dwarf_number(Dwarf_Attribute *a)
{
    Dwarf_Sword v = 0;

    switch (dwarf_whatform(a)) {
    case DW_FORM_sdata:
    case DW_FORM_implicit_const:
        return dwarf_formsdata(a, &v) ? 0 : v;
    default:
        return number(a);
    }
}

/* The place of a member is a number, or, in old DWARF, "add N". */
static bool read_place(Dwarf_Attribute *a, int64_t *place)
{
    Dwarf_Op *op;
    size_t n;
    Dwarf_Word v;

    if (!dwarf_formudata(a, &v)) {
        *place = v;
        return true;
    }
    if (dwarf_getlocation(a, &op, &n) || n != 1 ||
        op->atom != DW_OP_plus_uconst) {
        return false;
    }
    *place = op->number;
    return true;
}

static void read_bits(GsDwarfFacts *f, Dwarf_Attribute *a)
{
    switch (dwarf_whatattr(a)) {
    case DW_AT_bit_size:
        f->bit_size = number(a);
        break;
    case DW_AT_bit_offset:
        f->has_bit_offset = true;
        f->bit_offset = number(a);
        break;
    case DW_AT_data_bit_offset:
        f->has_data_bit = true;
        f->data_bit = number(a);
        break;
    case DW_AT_data_member_location:
        f->has_place = read_place(a, &f->place);
        break;
    }
}

static void read_array(GsDwarfFacts *f, Dwarf_Attribute *a)
{
    f->has_upper = true;
    f->upper = dwarf_whatattr(a) == DW_AT_count ? (int64_t)(number(a) - 1) :
                                                  gs_dwarf_number(a);
}

static void read_attr(void *opaque, Dwarf_Attribute *a)
{
    GsDwarfFacts *f = opaque;

    switch (dwarf_whatattr(a)) {
    case DW_AT_name:
        f->name = dwarf_formstring(a);
        break;
    case DW_AT_byte_size:
        f->has_size = true;
        f->size = number(a);
        break;
    case DW_AT_decl_line:
        f->line = number(a);
        break;
    case DW_AT_encoding:
        f->encoding = number(a);
        break;
    case DW_AT_type:
        f->has_type = true;
        f->type = *a;
        break;
    case DW_AT_declaration:
        f->is_declaration = true;
        break;
    case DW_AT_count:
    case DW_AT_upper_bound:
        read_array(f, a);
        break;
    default:
        read_bits(f, a);
        break;
    }
}

GsDwarfFacts gs_dwarf_facts(Dwarf_Die *die)
{
    GsDwarfFacts f = { 0 };

    return gs_dwarf_read_attrs(die, read_attr, &f) ? f : (GsDwarfFacts) { 0 };
}

bool gs_dwarf_target(GsDwarfFacts *f, Dwarf_Die *die)
{
    return f->has_type && dwarf_formref_die(&f->type, die);
}

bool gs_dwarf_child(Dwarf_Die *die, Dwarf_Die *child)
{
    return gs_dwarf_die_fits(die) && !dwarf_child(die, child);
}

bool gs_dwarf_next(Dwarf_Die *die)
{
    Dwarf_Die next;

    if (!gs_dwarf_die_fits(die) || dwarf_siblingof(die, &next) ||
        next.addr <= die->addr) {
        return false;
    }
    *die = next;
    return true;
}
