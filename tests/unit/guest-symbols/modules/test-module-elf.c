/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A module is read from its ELF file in guest memory, as the loader leaves it:
 * headers with addresses, symbols with values. If two sources contradict each
 * other, nothing is read.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/modules/module-read.h"

#define BASE    0xffffffffc0100000ull       /* the module's areas */
#define FILE_AT 0xffffc90000200000ull       /* its file */
#define AREAS   0x6000u
#define MODULE  (BASE + 0x1000)
#define NAME_AT 0x18u                       /* in struct module */

enum { TEXT = 1, INIT, SELF, BSS, ORC_IP, ORC, MODINFO };

/* Guest memory: the areas and the file; @file may be changed by a test. */
typedef struct World {
    uint8_t areas[AREAS];
    uint8_t *file;
    size_t len;
    GsModuleFile at;
} World;

static bool copy(const uint8_t *from, uint64_t start, size_t size, uint64_t va,
                 void *buf, size_t len)
{
    if (va < start || va - start > size || len > size - (va - start)) {
        return false;
    }
    memcpy(buf, from + (va - start), len);
    return true;
}

static bool read_world(void *opaque, uint64_t va, void *buf, size_t len)
{
    const World *w = opaque;

    return copy(w->areas, BASE, AREAS, va, buf, len) ||
           copy(w->file, FILE_AT, w->len, va, buf, len);
}

static Elf64_Ehdr *header(World *w)
{
    return (Elf64_Ehdr *)w->file;
}

static Elf64_Shdr *sections(World *w)
{
    return (Elf64_Shdr *)(w->file + header(w)->e_shoff);
}

/* Move the section headers to where a compiler expects them. */
static void align_sections(World *w)
{
    size_t from = header(w)->e_shoff, to = (w->len + 7) & ~(size_t)7;
    size_t size = header(w)->e_shnum * sizeof(Elf64_Shdr);

    w->file = g_realloc(w->file, to + size);
    memmove(w->file + to, w->file + from, size);
    header(w)->e_shoff = to;
    w->len = to + size;
}

static void write_file(World *w, const char *modinfo, size_t len)
{
    static const ElfSymbol symbols[] = {
        { "init_module", BASE + 0x4000, INIT, STT_FUNC },
        { "fake_function", BASE + 0x10, TEXT, STT_FUNC },
        { "fake_counter", BASE + 0x1100, BSS, STT_OBJECT },
        { "__kmalloc_noprof", 0xffffffff81234560, 0, STT_NOTYPE },
        { "$x", BASE, TEXT, STT_NOTYPE },
    };
    static const uint8_t zeros[0x100];
    ElfWriter e;
    GBytes *bytes;

    elf_writer_start(&e);
    elf_writer_add(&e, ".text", BASE, SHF_EXECINSTR, zeros, 0x30);
    elf_writer_add(&e, ".init.text", BASE + 0x4000, SHF_EXECINSTR, zeros, 0x20);
    elf_writer_add(&e, ".gnu.linkonce.this_module", MODULE, SHF_WRITE, zeros,
                   0x100);
    elf_writer_add(&e, ".bss", BASE + 0x1100, SHF_WRITE, NULL, 0x40);
    elf_writer_add(&e, ".orc_unwind_ip", BASE + 0x2800, 0, zeros, 2 * 4);
    elf_writer_add(&e, ".orc_unwind", BASE + 0x2808, 0, zeros, 2 * 6);
    elf_writer_add(&e, ".modinfo", 0, 0, modinfo, len);
    e.sec[MODINFO].sh_flags = 0;
    elf_writer_symbols(&e, symbols, G_N_ELEMENTS(symbols));
    bytes = elf_writer_finish(&e);
    w->file = g_bytes_unref_to_data(bytes, &w->len);
    align_sections(w);
}

/* What is not moved to an area stays in the file. */
static World *world_new(void)
{
    static const char modinfo[] = "license=GPL\0name=fake\0vermagic=6.12";
    World *w = g_new0(World, 1);

    write_file(w, modinfo, sizeof(modinfo));
    header(w)->e_type = ET_REL;
    for (unsigned i = 1; i < header(w)->e_shnum; i++) {
        Elf64_Shdr *sh = &sections(w)[i];

        if (!sh->sh_addr) {
            sh->sh_addr = FILE_AT + sh->sh_offset;
        }
    }
    g_strlcpy((char *)w->areas + (MODULE - BASE) + NAME_AT, "fake", 56);
    w->at = (GsModuleFile) { FILE_AT, FILE_AT + header(w)->e_shoff };
    return w;
}

static void world_free(World *w)
{
    g_free(w->file);
    g_free(w);
}

static GsModuleInfo *read_module(World *w)
{
    const GsMem mem = { read_world, w };
    g_autoptr(GError) err = NULL;
    GsModuleInfo *info = gs_module_read_elf(&mem, MODULE, &w->at, &err);

    g_assert_true(!info == !!err);
    return info;
}

static void assert_range(const GsRange *r, uint64_t start, uint64_t end)
{
    g_assert_cmphex(r->start, ==, start);
    g_assert_cmphex(r->end, ==, end);
}

static void assert_symbol(const GsModuleSymbol *s, const char *name,
                          uint64_t va, char type)
{
    g_assert_cmpstr(s->name, ==, name);
    g_assert_cmphex(s->va, ==, va);
    g_assert_cmpint(s->type, ==, type);
}

/* Sections of one area follow each other, up to the alignment of a page. */
TEST(whole, "/module-elf/whole")
{
    World *w = world_new();
    g_autoptr(GsModuleInfo) info = read_module(w);

    g_assert_nonnull(info);
    g_assert_cmpstr(info->name, ==, "fake");
    g_assert_cmpuint(info->n_mem, ==, 3);
    assert_range(&info->mem[0], BASE, BASE + 0x1140);
    assert_range(&info->mem[1], BASE + 0x2800, BASE + 0x2814);
    assert_range(&info->mem[2], BASE + 0x4000, BASE + 0x4020);
    g_assert_cmpuint(info->n_text, ==, 2);
    assert_range(&info->text[0], BASE, BASE + 0x30);
    assert_range(&info->text[1], BASE + 0x4000, BASE + 0x4020);
    g_assert_cmpuint(info->n_syms, ==, 3);
    assert_symbol(&info->syms[0], "init_module", BASE + 0x4000, 'T');
    assert_symbol(&info->syms[1], "fake_function", BASE + 0x10, 'T');
    assert_symbol(&info->syms[2], "fake_counter", BASE + 0x1100, 'D');
    g_assert_cmpuint(info->n_orc, ==, 2);
    g_assert_cmphex(info->orc_ip_va, ==, BASE + 0x2800);
    world_free(w);
}

/* The compiler shuffled struct module (RANDSTRUCT). */
TEST(name_is_anywhere, "/module-elf/name-is-anywhere")
{
    World *w = world_new();
    g_autoptr(GsModuleInfo) info = NULL;
    char *self = (char *)w->areas + (MODULE - BASE);

    memset(self, 0, 0x100);
    g_strlcpy(self + 0xfb, "fake", 5);
    info = read_module(w);
    g_assert_nonnull(info);
    g_assert_cmpstr(info->name, ==, "fake");
    world_free(w);
}

static void other_struct(World *w)
{
    sections(w)[SELF].sh_addr += 0x40;
}

static void other_sections(World *w)
{
    w->at.sections += sizeof(Elf64_Shdr);
}

static void other_name(World *w)
{
    w->areas[MODULE - BASE + NAME_AT] = 'F';
}

static void longer_name(World *w)
{
    w->areas[MODULE - BASE + NAME_AT + 4] = 's';
}

static void no_modinfo(World *w)
{
    sections(w)[MODINFO].sh_name = 0;
}

static void empty_modinfo(World *w)
{
    sections(w)[MODINFO].sh_size = 0;
}

static void not_elf(World *w)
{
    w->file[0] = 0;
}

static void elf_of_32_bits(World *w)
{
    header(w)->e_ident[EI_CLASS] = ELFCLASS32;
}

static void program(World *w)
{
    header(w)->e_type = ET_EXEC;
}

static void too_many_sections(World *w)
{
    header(w)->e_shnum = UINT16_MAX;
}

static void no_names(World *w)
{
    header(w)->e_shstrndx = header(w)->e_shnum;
}

static void section_of_a_program(World *w)
{
    sections(w)[BSS].sh_addr = 0x400000;
}

static void huge_section(World *w)
{
    sections(w)[BSS].sh_size = UINT64_MAX;
}

static void no_memory(World *w)
{
    for (unsigned i = TEXT; i <= ORC; i++) {
        sections(w)[i].sh_flags = 0;
    }
}

static void short_orc(World *w)
{
    sections(w)[ORC].sh_size = 6;
}

static void unreadable_symbols(World *w)
{
    sections(w)[MODINFO + 1].sh_addr = 0;
}

TEST(contradictions, "/module-elf/contradictions")
{
    static void (*const cases[])(World *w) = {
        other_struct, other_sections, other_name, longer_name, no_modinfo,
        empty_modinfo, not_elf, elf_of_32_bits, program, too_many_sections,
        no_names, section_of_a_program, huge_section, no_memory, short_orc,
        unreadable_symbols,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        World *w = world_new();

        cases[i](w);
        g_test_message("case %zu", i);
        g_assert_null(read_module(w));
        world_free(w);
    }
}

/* Each byte of the file may be anything. */
TEST(any_byte, "/module-elf/any-byte")
{
    for (unsigned flip = 1; flip < 256; flip <<= 1) {
        World *w = world_new();

        for (size_t i = 0; i < w->len; i++) {
            w->file[i] ^= flip;
            gs_module_info_free(read_module(w));
            w->file[i] ^= flip;
        }
        world_free(w);
    }
}
