/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes of DWARF's entries, and their bounds, see dwarf-facts.h. libdw
 * reads the bytes. The sizes of forms are those of DWARF 5, 7.5.6, and of GNU's
 * forms for split and shared units.
 */
#include "guest-symbols/types/dwarf-facts.h"

#include <dwarf.h>
#include <string.h>

#include "guest-symbols/api/gs-types.h"
#include "guest-symbols/base/bytes.h"

/* No compiler writes an entry with so many attributes. */
#define ATTRS_MAX 256

/* ---- entries that libdw knows -------------------------------------------- */

/* Return where the unit of @die ends. libdw has checked its length. */
static const uint8_t *unit_end(Dwarf_Die *die)
{
    const uint8_t *unit = (const uint8_t *)die->addr - dwarf_cuoffset(die);
    uint32_t len = gs_u32_at(unit);

    return len != UINT32_MAX ? unit + 4 + len :
                               unit + 12 + gs_u64_at(unit + 4);
}

/* Read an attribute, which begins within its unit. */
typedef void ReadAttr(void *opaque, Dwarf_Attribute *a);

/*
 * struct Walk - over the attributes of an entry
 * @end: of the unit
 * @fits: each attribute so far begins before @end
 * @read, @opaque: (nullable) the caller's function
 */
typedef struct Walk {
    const uint8_t *end;
    bool fits;
    ReadAttr *read;
    void *opaque;
} Walk;

/* Libdw calls this before it looks for the end of the attribute. The value of
 * DW_FORM_implicit_const is in the abbreviation. */
static int check_and_read(Dwarf_Attribute *a, void *opaque)
{
    Walk *w = opaque;

    w->fits = a->form == DW_FORM_implicit_const || a->valp <= w->end;
    if (!w->fits) {
        return DWARF_CB_ABORT;
    }
    if (w->read) {
        w->read(w->opaque, a);
    }
    return DWARF_CB_OK;
}

/* Call @read for each attribute of @die. Returns: false if one does not begin
 * within its unit, or has no end; then what was read before is not to be
 * used. */
static bool read_attrs(Dwarf_Die *die, ReadAttr *read, void *opaque)
{
    Walk w = { .fits = true, .read = read, .opaque = opaque };

    if (!die->addr) {           /* of a unit without entries */
        return false;
    }
    w.end = unit_end(die);
    return dwarf_getattrs(die, check_and_read, &w, 0) >= 0 && w.fits;
}

static bool die_fits(Dwarf_Die *die)
{
    return read_attrs(die, NULL, NULL);
}

/* ---- attributes ---------------------------------------------------------- */

static uint64_t number(Dwarf_Attribute *a)
{
    Dwarf_Word v = 0;

    return dwarf_formudata(a, &v) ? 0 : v;
}

/* Compilers write only negative values with a signed form. libdw would take
 * the top bit of the others as a sign, too. */
static int64_t signed_number(Dwarf_Attribute *a)
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
                                                  signed_number(a);
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
    case DW_AT_const_value:
        f->value = signed_number(a);
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

    return read_attrs(die, read_attr, &f) ? f : (GsDwarfFacts) { 0 };
}

bool gs_dwarf_target(GsDwarfFacts *f, Dwarf_Die *die)
{
    return f->has_type && dwarf_formref_die(&f->type, die);
}

bool gs_dwarf_child(Dwarf_Die *die, Dwarf_Die *child)
{
    return die_fits(die) && !dwarf_child(die, child);
}

bool gs_dwarf_next(Dwarf_Die *die)
{
    Dwarf_Die next;

    if (!die_fits(die) || dwarf_siblingof(die, &next) ||
        next.addr <= die->addr) {
        return false;
    }
    *die = next;
    return true;
}

/* ---- first entries ------------------------------------------------------- */

/* What the header of a unit says */
typedef struct Unit {
    Dwarf_Off next, abbrev;
    size_t header;
    Dwarf_Half version;
    uint8_t address, offset;
} Unit;

/* Return the bytes of a form that has a fixed number, -1 for others. */
static int fixed_size(const Unit *u, unsigned form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return u->address;
    case DW_FORM_ref_addr:
        return u->version == 2 ? u->address : u->offset;
    case DW_FORM_sec_offset:
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return u->offset;
    default:
        return -1;
    }
}

static void skip_leb(GsBytes *in)
{
    while (gs_bytes_u8(in) & 0x80) {
    }
}

/* Go over a value. A form that is not known makes @in fail. */
static void skip_value(GsBytes *in, const Unit *u, unsigned form)
{
    int size = fixed_size(u, form);

    if (size >= 0) {
        gs_bytes_take(in, size);
        return;
    }
    switch (form) {
    case DW_FORM_string:
        gs_bytes_str(in, gs_bytes_left(in), NULL);
        break;
    case DW_FORM_block1:
        gs_bytes_take(in, gs_bytes_u8(in));
        break;
    case DW_FORM_block2:
        gs_bytes_take(in, gs_bytes_u16(in));
        break;
    case DW_FORM_block4:
        gs_bytes_take(in, gs_bytes_u32(in));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        gs_bytes_take(in, gs_bytes_varint(in, UINT32_MAX));
        break;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        skip_leb(in);
        break;
    default:
        gs_bytes_fail(in, "form %#x", form);
        break;
    }
}

/* Go over the values of an entry. @abbrev: its abbreviation, from the first
 * name on */
static bool attrs_fit(GsBytes *in, const Unit *u, GsBytes *abbrev)
{
    for (unsigned i = 0; i < ATTRS_MAX; i++) {
        uint64_t name = gs_bytes_varint(abbrev, UINT64_MAX);
        uint64_t form = gs_bytes_varint(abbrev, UINT32_MAX);

        if (!name && !form) {
            return gs_bytes_ok(in) && gs_bytes_ok(abbrev);
        }
        if (form == DW_FORM_implicit_const) {
            skip_leb(abbrev);
        }
        skip_value(in, u, form);
    }
    return false;
}

/* Go behind the names and forms of an abbreviation. */
static void skip_abbrev(GsBytes *abbrev)
{
    uint64_t name, form;

    do {
        name = gs_bytes_varint(abbrev, UINT64_MAX);
        form = gs_bytes_varint(abbrev, UINT32_MAX);
        if (form == DW_FORM_implicit_const) {
            skip_leb(abbrev);
        }
    } while (gs_bytes_ok(abbrev) && (name || form));
}

/* Check the first entry of a unit. If .debug_abbrev does not have the
 * abbreviation of the entry, libdw reads no attributes, so the entry fits. */
static bool unit_fits(const Unit *u, GsBytes in, GsBytes abbrev)
{
    uint64_t code = gs_bytes_varint(&in, UINT64_MAX), now;

    gs_bytes_seek(&abbrev, u->abbrev);
    while (code && (now = gs_bytes_varint(&abbrev, UINT64_MAX))) {
        gs_bytes_varint(&abbrev, UINT64_MAX);   /* tag */
        gs_bytes_u8(&abbrev);                   /* has it children? */
        if (now == code) {
            return attrs_fit(&in, u, &abbrev);
        }
        skip_abbrev(&abbrev);
    }
    return gs_bytes_ok(&in) && gs_bytes_ok(&abbrev);
}

/* Find .debug_@name; before it had a standard form, a compressed section was
 * .zdebug_@name. libdw has expanded it. */
static GsBytes find_section(Elf *elf, const char *wanted)
{
    Elf_Scn *scn = NULL;
    size_t names = 0;
    Elf_Data *data;
    GElf_Shdr shdr;

    elf_getshdrstrndx(elf, &names);
    while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &shdr)) {
        const char *name = elf_strptr(elf, names, shdr.sh_name);

        if (name && (g_str_has_prefix(name, ".debug_") ||
                     g_str_has_prefix(name, ".zdebug_")) &&
            !strcmp(strchr(name, '_') + 1, wanted)) {
            data = elf_getdata(scn, NULL);
            return gs_bytes(data ? data->d_buf : NULL, data ? data->d_size : 0);
        }
    }
    return gs_bytes(NULL, 0);
}

/* @section: "info", or "types": units of types alone, in DWARF 4 */
static bool section_fits(Dwarf *dwarf, const char *section, GError **errp)
{
    GsBytes all = find_section(dwarf_getelf(dwarf), section);
    GsBytes abbrev = find_section(dwarf_getelf(dwarf), "abbrev");
    uint64_t signature, *types = *section == 't' ? &signature : NULL;
    Unit u;

    for (Dwarf_Off at = 0;
         !dwarf_next_unit(dwarf, at, &u.next, &u.header, &u.version, &u.abbrev,
                          &u.address, &u.offset, types, NULL); at = u.next) {
        GsBytes in = all;

        in.len = MIN(in.len, u.next);
        gs_bytes_seek(&in, at + u.header);
        if (u.next <= at || !unit_fits(&u, in, abbrev)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "DWARF: the first entry of the unit at %#"
                           G_GINT64_MODIFIER
                           "x of .debug_%s does not fit in it", (uint64_t)at,
                           section);
        }
    }
    return true;
}

bool gs_dwarf_units_fit(Dwarf *dwarf, GError **errp)
{
    return section_fits(dwarf, "info", errp) &&
           section_fits(dwarf, "types", errp);
}
