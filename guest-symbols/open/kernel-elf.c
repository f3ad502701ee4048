/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens kernels of any kind by the symbol table (.symtab) of their ELF file.
 * Runs while a kernel is opened, in that thread; no state.
 *
 * Facts that a Linux image contains come from a GsElfOptions here. Such a
 * kernel runs at the addresses where it is linked.
 */
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/base/bytes.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/symbols/symtab.h"

#include <elf.h>
#include <string.h>

#define TEXT_MAX        16
#define LOWEST          4096    /* in the first page there is no code */

/* The file; image.c has looked at its header. */
typedef struct File {
    GsBytes c;
    uint64_t entry, shoff;
    unsigned shnum;
} File;

/* ---- symbols ------------------------------------------------------------ */

static bool take(const File *f, uint64_t at, void *to, size_t len)
{
    GsBytes c = f->c;
    const uint8_t *from;

    gs_bytes_seek(&c, at);
    from = gs_bytes_take(&c, len);
    if (from) {
        memcpy(to, from, len);
    }
    return from != NULL;
}

static bool open_file(File *f, const void *data, size_t len, GError **errp)
{
    Elf64_Ehdr h;

    gs_bytes_init(&f->c, data, len, "ELF header");
    if (len < SELFMAG || memcmp(data, ELFMAG, SELFMAG) ||
        !take(f, 0, &h, sizeof(h))) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "not an ELF file, as a kernel with a profile has to be");
    }
    f->entry = GUINT64_FROM_LE(h.e_entry);
    f->shoff = GUINT64_FROM_LE(h.e_shoff);
    f->shnum = GUINT16_FROM_LE(h.e_shnum);
    return true;
}

static bool section(const File *f, unsigned i, Elf64_Shdr *sh)
{
    return i < f->shnum && f->shoff < f->c.len &&
           take(f, f->shoff + (uint64_t)i * sizeof(*sh), sh, sizeof(*sh));
}

static bool find_symtab(const File *f, Elf64_Shdr *syms, Elf64_Shdr *names)
{
    for (unsigned i = 0; section(f, i, syms); i++) {
        if (GUINT32_FROM_LE(syms->sh_type) == SHT_SYMTAB) {
            return section(f, GUINT32_FROM_LE(syms->sh_link), names);
        }
    }
    return false;
}

/* Returns nm's letter: the kind of section, in upper case for a global
 * symbol. */
static char letter_of(const File *f, const Elf64_Sym *sym)
{
    unsigned index = GUINT16_FROM_LE(sym->st_shndx);
    Elf64_Shdr sh = { 0 };
    char letter = 'D';

    if (index == SHN_ABS) {
        letter = 'A';
    } else if (section(f, index, &sh)) {
        uint64_t flags = GUINT64_FROM_LE(sh.sh_flags);

        letter = flags & SHF_EXECINSTR ? 'T' :
                 !(flags & SHF_WRITE) ? 'R' :
                 GUINT32_FROM_LE(sh.sh_type) == SHT_NOBITS ? 'B' : 'D';
    }
    return ELF64_ST_BIND(sym->st_info) == STB_WEAK ? 'W' :
           ELF64_ST_BIND(sym->st_info) == STB_GLOBAL ? letter :
           g_ascii_tolower(letter);
}

/* Is it a symbol of code or data? */
static bool is_wanted(const Elf64_Sym *sym)
{
    unsigned type = ELF64_ST_TYPE(sym->st_info);

    return (type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC) &&
           sym->st_shndx != SHN_UNDEF;
}

/* The assembler's mapping symbols ("$x") are not names. */
static bool is_name(const char *name)
{
    return *name && *name != '$';
}

static const char *name_of(const File *f, const Elf64_Shdr *names,
                           const Elf64_Sym *sym, size_t *len)
{
    GsBytes c = f->c;
    uint64_t at = GUINT64_FROM_LE(names->sh_offset);

    if (at >= f->c.len) {
        return NULL;
    }
    gs_bytes_seek(&c, at + GUINT32_FROM_LE(sym->st_name));
    return gs_bytes_str(&c, GS_SYMBOL_NAME_MAX, len);
}

static bool add_symbol(const File *f, uint64_t at, const Elf64_Shdr *names,
                       GsSymtab *tab)
{
    const char *name;
    Elf64_Sym sym;
    size_t len;

    if (!take(f, at, &sym, sizeof(sym))) {
        return false;
    }
    if (!is_wanted(&sym)) {
        return true;
    }
    name = name_of(f, names, &sym, &len);
    return name && (!is_name(name) ||
                    gs_symtab_add(tab, GUINT64_FROM_LE(sym.st_value),
                                  letter_of(f, &sym), name, len));
}

static GsSymtab *read_symbols(const File *f, GError **errp)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    Elf64_Shdr syms, names;
    uint64_t at, n;

    if (!find_symtab(f, &syms, &names)) {
        return gs_fail(errp, GS_ERROR_NO_SYMBOLS,
                       "no symbol table (.symtab): is the file stripped?");
    }
    at = MIN(GUINT64_FROM_LE(syms.sh_offset), f->c.len);
    n = GUINT64_FROM_LE(syms.sh_size) / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < n; i++) {
        if (!add_symbol(f, at + i * sizeof(Elf64_Sym), &names, tab)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "symbol %u of the file is cut off, or its name too "
                           "long or not readable", (unsigned)i);
        }
    }
    return g_steal_pointer(&tab);
}

GsSymtab *gs_kernel_elf_symbols(GBytes *bytes, const GsImage *img,
                                GError **errp)
{
    GsSymtab *tab;
    const void *data;
    size_t len;
    File f;

    data = g_bytes_get_data(bytes, &len);
    tab = open_file(&f, data, len, errp) ? read_symbols(&f, errp) : NULL;
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
    for (size_t i = 0; i < gs_image_n_sections(k->image) &&
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

    for (size_t i = 0; i < gs_image_n_sections(k->image); i++) {
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
    const void *data = g_bytes_get_data(bytes, &len);
    GsSymbol sym;
    File f;

    if (!open_file(&f, data, len, errp)) {
        return false;
    }
    k->image = gs_image_new(bytes, errp);
    k->symtab = k->image ? read_symbols(&f, errp) : NULL;
    if (!k->symtab) {
        return false;
    }
    gs_symtab_seal(k->symtab, k->image);
    k->arch = gs_arch_of_machine(gs_image_machine(k->image));
    k->start = f.entry;
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
