/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes an ELF file of symbols; see elf-file.h. Sections and symbols are kept
 * as they are added, because local symbols come before global ones in a file.
 */
#include "guest-symbols/export/elf-file.h"
#include "guest-symbols/base/bytes.h"

#include <elf.h>

/* Numbers from SHN_LORESERVE on have other meanings. Four sections follow. */
#define SECTIONS_MAX (SHN_LORESERVE - 8)
G_STATIC_ASSERT(GS_ELF_ABS == SHN_ABS);

/*
 * @sections: Elf64_Shdr, the first one is empty
 * @symbols: Elf64_Sym
 * @names, @section_names: of symbols and sections; both begin with a NUL
 */
struct GsElfFile {
    unsigned machine;
    GArray *sections;
    GArray *symbols;
    GByteArray *names, *section_names;
    bool failed;
};

GsElfFile *gs_elf_file_new(unsigned machine)
{
    GsElfFile *f = g_new0(GsElfFile, 1);
    const Elf64_Shdr none = { 0 };

    f->machine = machine;
    f->sections = g_array_new(false, false, sizeof(Elf64_Shdr));
    f->symbols = g_array_new(false, false, sizeof(Elf64_Sym));
    f->names = g_byte_array_new();
    f->section_names = g_byte_array_new();
    g_array_append_val(f->sections, none);
    g_byte_array_append(f->names, (const uint8_t *)"", 1);
    g_byte_array_append(f->section_names, (const uint8_t *)"", 1);
    return f;
}

void gs_elf_file_free(GsElfFile *f)
{
    if (f) {
        g_array_unref(f->sections);
        g_array_unref(f->symbols);
        g_byte_array_unref(f->names);
        g_byte_array_unref(f->section_names);
        g_free(f);
    }
}

/* Return where in @names the name is. */
static uint32_t add_name(GsElfFile *f, GByteArray *names, const char *name)
{
    GsOut out = gs_out(names);
    uint32_t at = names->len;

    gs_out_bytes(&out, name, strlen(name) + 1);
    f->failed |= out.failed;
    return out.failed ? 0 : at;
}

/* Fields of a file are little-endian, as all kernels here are. */
static void set_header(Elf64_Shdr *h, uint32_t name, uint32_t type,
                       uint64_t flags, uint64_t addr, uint64_t size)
{
    *h = (Elf64_Shdr) {
        .sh_name = GUINT32_TO_LE(name), .sh_type = GUINT32_TO_LE(type),
        .sh_flags = GUINT64_TO_LE(flags), .sh_addr = GUINT64_TO_LE(addr),
        .sh_size = GUINT64_TO_LE(size), .sh_addralign = GUINT64_TO_LE(1),
    };
}

GsElfSection gs_elf_file_add_section(GsElfFile *f, const char *name,
                                     uint64_t start, uint64_t end, bool code)
{
    Elf64_Shdr h;

    if (f->sections->len >= SECTIONS_MAX) {
        return GS_ELF_ABS;
    }
    set_header(&h, add_name(f, f->section_names, name), SHT_NOBITS,
               SHF_ALLOC | (code ? SHF_EXECINSTR : SHF_WRITE), start,
               end - start);
    g_array_append_val(f->sections, h);
    return f->sections->len - 1;
}

size_t gs_elf_file_add_symbol(GsElfFile *f, const GsElfSymbol *sym)
{
    unsigned type = sym->function ? STT_FUNC : STT_OBJECT;
    Elf64_Sym s = {
        .st_name = GUINT32_TO_LE(add_name(f, f->names, sym->name)),
        .st_info = ELF64_ST_INFO(sym->global ? STB_GLOBAL : STB_LOCAL,
                                 sym->section == GS_ELF_ABS ? STT_NOTYPE :
                                                              type),
        .st_shndx = GUINT16_TO_LE(sym->section),
        .st_value = GUINT64_TO_LE(sym->va),
        .st_size = GUINT64_TO_LE(sym->size),
    };

    g_array_append_val(f->symbols, s);
    return f->symbols->len - 1;
}

void gs_elf_file_set_global(GsElfFile *f, size_t i)
{
    Elf64_Sym *s = &g_array_index(f->symbols, Elf64_Sym, i);

    s->st_info = ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(s->st_info));
}

size_t gs_elf_file_n_symbols(const GsElfFile *f)
{
    return f->symbols->len;
}

/* ---- the file ----------------------------------------------------------- */

/* Append bytes to the file, as a section. */
static Elf64_Shdr *put_section(GsElfFile *f, GsOut *out, const char *name,
                               uint32_t type, const void *bytes, size_t len)
{
    static const uint8_t zeros[8];
    Elf64_Shdr h;

    gs_out_bytes(out, zeros, -out->to->len & 7);
    set_header(&h, add_name(f, f->section_names, name), type, 0, 0, len);
    h.sh_offset = GUINT64_TO_LE(out->to->len);
    h.sh_addralign = GUINT64_TO_LE(8);
    gs_out_bytes(out, bytes, len);
    g_array_append_val(f->sections, h);
    return &g_array_index(f->sections, Elf64_Shdr, f->sections->len - 1);
}

/* Append those of @f with this binding. */
static void add_bound(const GsElfFile *f, GArray *to, unsigned binding)
{
    for (unsigned i = 0; i < f->symbols->len; i++) {
        const Elf64_Sym *s = &g_array_index(f->symbols, Elf64_Sym, i);

        if (ELF64_ST_BIND(s->st_info) == binding) {
            g_array_append_vals(to, s, 1);
        }
    }
}

static void put_symbols(GsElfFile *f, GsOut *out)
{
    g_autoptr(GArray) ordered = g_array_new(false, true, sizeof(Elf64_Sym));
    unsigned n_local;
    Elf64_Shdr *h;

    g_array_set_size(ordered, 1);       /* the first one is empty */
    add_bound(f, ordered, STB_LOCAL);
    n_local = ordered->len;
    add_bound(f, ordered, STB_GLOBAL);
    h = put_section(f, out, ".symtab", SHT_SYMTAB, ordered->data,
                    (size_t)ordered->len * sizeof(Elf64_Sym));
    h->sh_link = GUINT32_TO_LE(f->sections->len);
    h->sh_info = GUINT32_TO_LE(n_local);
    h->sh_entsize = GUINT64_TO_LE(sizeof(Elf64_Sym));
    put_section(f, out, ".strtab", SHT_STRTAB, f->names->data, f->names->len);
}

/* The names of sections are complete when their own section has a name. */
static void put_section_names(GsElfFile *f, GsOut *out)
{
    static const char name[] = ".shstrtab";
    Elf64_Shdr *h = put_section(f, out, name, SHT_STRTAB, NULL, 0);

    h->sh_size = GUINT64_TO_LE(f->section_names->len);
    gs_out_bytes(out, f->section_names->data, f->section_names->len);
}

/* Kernels of riscv64 are built with instructions of two bytes. If the file does
 * not say so, lldb takes no address for code that is no multiple of 4. */
static Elf64_Word flags_of(unsigned machine)
{
    return machine == EM_RISCV ? EF_RISCV_RVC : 0;
}

static Elf64_Ehdr file_header(const GsElfFile *f, uint64_t sections_at)
{
    return (Elf64_Ehdr) {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                     ELFDATA2LSB, EV_CURRENT },
        .e_type = GUINT16_TO_LE(ET_EXEC),
        .e_machine = GUINT16_TO_LE(f->machine),
        .e_version = GUINT32_TO_LE(EV_CURRENT),
        .e_shoff = GUINT64_TO_LE(sections_at),
        .e_flags = GUINT32_TO_LE(flags_of(f->machine)),
        .e_ehsize = GUINT16_TO_LE(sizeof(Elf64_Ehdr)),
        .e_shentsize = GUINT16_TO_LE(sizeof(Elf64_Shdr)),
        .e_shnum = GUINT16_TO_LE(f->sections->len),
        .e_shstrndx = GUINT16_TO_LE(f->sections->len - 1),
    };
}

GByteArray *gs_elf_file_end(GsElfFile *f, const GByteArray *debug_frame)
{
    static const uint8_t zeros[sizeof(Elf64_Ehdr)];
    g_autoptr(GByteArray) file = g_byte_array_new();
    GsOut out = gs_out(file);
    Elf64_Ehdr header;

    gs_out_bytes(&out, zeros, sizeof(zeros));
    if (debug_frame->len) {
        put_section(f, &out, ".debug_frame", SHT_PROGBITS, debug_frame->data,
                    debug_frame->len);
    }
    put_symbols(f, &out);
    put_section_names(f, &out);
    gs_out_bytes(&out, zeros, -file->len & 7);
    header = file_header(f, file->len);
    gs_out_bytes(&out, f->sections->data,
                 (size_t)f->sections->len * sizeof(Elf64_Shdr));
    if (out.failed || f->failed) {
        return NULL;
    }
    memcpy(file->data, &header, sizeof(header));
    return g_steal_pointer(&file);
}
