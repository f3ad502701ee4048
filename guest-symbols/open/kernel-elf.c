/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens kernels of any kind by the symbol table (.symtab) of their ELF file.
 * Runs while a kernel is opened, in that thread; no state.
 *
 * Facts that a Linux image contains come from a GsElfOptions here. Such a
 * kernel runs at the addresses where it is linked.
 */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/image/elf-sections.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define TEXT_MAX        16
#define NOT_ELF         "not an ELF file, as a kernel with a profile has to be"
#define LOWEST          4096    /* in the first page there is no code */

/* ---- symbols ------------------------------------------------------------ */

/* Returns nm's letter: the kind of section, in upper case for a global
 * symbol. */
static char letter_of(Elf *elf, const GElf_Sym *sym)
{
    char letter = 'D';
    GElf_Shdr sh;

    if (sym->st_shndx == SHN_ABS) {
        letter = 'A';
    } else if (gelf_getshdr(elf_getscn(elf, sym->st_shndx), &sh)) {
        letter = sh.sh_flags & SHF_EXECINSTR ? 'T' :
                 !(sh.sh_flags & SHF_WRITE) ? 'R' :
                 sh.sh_type == SHT_NOBITS ? 'B' : 'D';
    }
    return GELF_ST_BIND(sym->st_info) == STB_WEAK ? 'W' :
           GELF_ST_BIND(sym->st_info) == STB_GLOBAL ? letter :
           g_ascii_tolower(letter);
}

/* Is it a symbol of code or data? The assembler's mapping symbols ("$x") are
 * not names. */
static bool is_wanted(const GElf_Sym *sym, const char *name)
{
    unsigned type = GELF_ST_TYPE(sym->st_info);

    return (type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC) &&
           sym->st_shndx != SHN_UNDEF && (!name || (*name && *name != '$'));
}

static bool add_symbol(Elf *elf, const GElf_Sym *sym, const char *name,
                       GsSymtab *tab)
{
    return !is_wanted(sym, name) ||
           (name && gs_symtab_add(tab, sym->st_value, letter_of(elf, sym), name,
                                  strlen(name)));
}

static GsSymtab *read_symbols(Elf *elf, GError **errp)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    GElf_Shdr shdr;
    Elf_Scn *scn = gs_elf_section(elf, NULL, SHT_SYMTAB, &shdr);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    size_t n = data ? data->d_size / sizeof(Elf64_Sym) : 1;

    if (!scn) {
        return gs_fail(errp, GS_ERROR_NO_SYMBOLS,
                       "no symbol table (.symtab): is the file stripped?");
    }
    for (size_t i = 0; i < n; i++) {
        GElf_Sym sym;

        if (!gelf_getsym(data, i, &sym) ||
            !add_symbol(elf, &sym, elf_strptr(elf, shdr.sh_link, sym.st_name),
                        tab)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "symbol %u of the file is cut off, or its name too "
                           "long or not readable", (unsigned)i);
        }
    }
    return g_steal_pointer(&tab);
}

/* @entry: (out, nullable) the address where the kernel starts */
static GsSymtab *symbols_of(GBytes *bytes, uint64_t *entry, GError **errp)
{
    size_t len;
    const void *data = g_bytes_get_data(bytes, &len);
    Elf *elf = gs_elf_begin(data, len);
    GsSymtab *tab = NULL;
    GElf_Ehdr h;

    if (gelf_getehdr(elf, &h)) {
        tab = read_symbols(elf, errp);
        *entry = h.e_entry;
    } else {
        gs_fail(errp, GS_ERROR_FORMAT, NOT_ELF);
    }
    elf_end(elf);
    return tab;
}

GsSymtab *gs_kernel_elf_symbols(GBytes *bytes, const GsImage *img,
                                GError **errp)
{
    uint64_t entry;
    GsSymtab *tab = symbols_of(bytes, &entry, errp);

    if (tab) {
        gs_symtab_seal(tab, img);
    }
    return tab;
}

/* ---- the kernel --------------------------------------------------------- */

/* A kernel is in the upper half of the address space; otherwise its addresses
 * begin with its lowest section. */
static void find_low(GsKernel *k)
{
    for (size_t i = 0; i < k->image->sections->len &&
         !gs_symbol_slides(k->start); i++) {
        uint64_t va = gs_image_nth_section(k->image, i)->va;

        if (va >= LOWEST && (!k->low || va < k->low)) {
            k->low = va;
        }
    }
}

static bool load_text(GsKernel *k, GError **errp)
{
    GsRange all = { UINT64_MAX, 0 };
    GsRange text[TEXT_MAX], image = { UINT64_MAX, 0 };
    size_t n = 0;

    for (size_t i = 0; i < k->image->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(k->image, i);

        if (s->va < gs_kernel_lowest(k)) {
            continue;
        }
        image.start = MIN(image.start, s->va);
        image.end = MAX(image.end, s->va + s->len);
        if (s->exec && n < TEXT_MAX) {
            all.start = MIN(all.start, s->va);
            all.end = MAX(all.end, s->va + s->len);
            text[n++] = (GsRange) { s->va, s->va + s->len };
        }
    }
    if (!n) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "no code where the kernel starts, at 0x%"
                       G_GINT64_MODIFIER "x, or above", k->start);
    }
    k->text[0] = all;
    return gs_orc_set_load(k->orc, image, text, n, NULL, errp);
}

static bool find_function(const GsKernel *k, const char *name, GsSymbol *sym,
                          GError **errp)
{
    if (gs_symtab_lookup(k->symtab, name, sym)) {
        return true;
    }
    return gs_fail(errp, GS_ERROR_FORMAT,
                   "no symbol \"%s\", where the profile says that it starts",
                   name);
}

static bool load(GsKernel *k, GBytes *bytes, const GsElfOptions *o,
                 GError **errp)
{
    size_t len;
    const uint8_t *data = g_bytes_get_data(bytes, &len);
    GsSymbol sym;

    if (len < sizeof(Elf64_Ehdr) || memcmp(data, ELFMAG, SELFMAG)) {
        return gs_fail(errp, GS_ERROR_FORMAT, NOT_ELF);
    }
    k->image = gs_image_new(bytes, errp);
    k->symtab = k->image ? symbols_of(bytes, &k->start, errp) : NULL;
    if (!k->symtab) {
        return false;
    }
    gs_symtab_seal(k->symtab, k->image);
    k->arch = gs_arch_of_machine(k->image->machine);
    if (o->start) {
        if (!find_function(k, o->start, &sym, errp)) {
            return false;
        }
        k->start = sym.va;
    }
    find_low(k);
    gs_symtab_set_low(k->symtab, k->low);
    return load_text(k, errp);
}

GsKernel *gs_kernel_new_elf_from_data(const void *data, size_t len,
                                      const GsElfOptions *o, GError **errp)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, len);
    g_autoptr(GsKernel) k = gs_kernel_new_empty();

    k->plain = true;
    k->page_shift = 12;
    k->va_bits = o->va_bits;
    k->outermost = g_strdupv((char **)o->outermost);
    return load(k, bytes, o, errp) ? g_steal_pointer(&k) : NULL;
}

GsKernel *gs_kernel_open_elf(const char *path, const GsElfOptions *o,
                             GError **errp)
{
    g_autoptr(GBytes) bytes = gs_kernel_read_file(path, errp);
    GsKernel *k = NULL;
    const void *data;
    size_t len;

    if (bytes) {
        data = g_bytes_get_data(bytes, &len);
        k = gs_kernel_new_elf_from_data(data, len, o, errp);
    }
    if (!k) {
        g_prefix_error(errp, "%s: ", path);
    }
    return k;
}
