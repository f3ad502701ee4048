/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The debug file of a kernel has the symbols of the kernel and its modules at
 * run-time addresses, in sections of code and data, and call frame information
 * of all code. Oracle: libelf and libdw read the file.
 */
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <inttypes.h>
#include <string.h>

#define SLIDE       0x1c000000ull
#define MODULE      0xffffffffc0100000ull

static const char map[] =
    "0000000000000000 D __per_cpu_start\n"
    "0000000000000040 D current_task\n"
    "0000000000000080 D __per_cpu_end\n"
    "ffffffff80ff0000 d before\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000040 t helper\n"
    "ffffffff81000040 t helper_too\n"
    "ffffffff81000080 T start_kernel\n"
    "ffffffff81000100 T _etext\n"
    "ffffffff81800000 D table\n"
    "ffffffff82000000 T _sinittext\n"
    "ffffffff82000000 T init_one\n"
    "ffffffff82000040 T _einittext\n"
    "ffffffff83000000 B _end\n";

static GsKernel *open_map(void)
{
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "System.map",
                                          NULL);

    g_assert_nonnull(k);
    return k;
}

/* Give the kernel an ORC table of one rule. */
static void add_orc(GsKernel *k)
{
    static const OrcRow row = { 0xffffffff81000000ull, GS_ORC_CALL, R_SP, 8 };
    const GsRange all = { 0xffffffff81000000ull, 0xffffffff83000000ull };
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4,
                                            0xffffffff82800000ull, &row, 1);
    GsOrcRaw raw = orc_writer_raw(&a);

    g_assert_true(gs_orc_set_load(k->orc, all, &all, 1, &raw, NULL));
}

static void add_module(GsKernel *k, uint64_t va, const char *name)
{
    const GsModuleSymbol syms[] = {
        { va + 0x100, "mod_exit", 't' },
        { va, "mod_init", 'T' },
        { va, "init_module", 'T' },
    };

    g_assert_true(gs_kernel_add_module_data(k, va + 0x800, name, va, 0x1000,
                                            syms, G_N_ELEMENTS(syms), 0, NULL,
                                            NULL, 0, NULL));
}

/* ---- the file ----------------------------------------------------------- */

typedef struct Reader {
    GsDebugFile file;
    Elf *elf;
} Reader;

static void reader_deinit(Reader *r)
{
    elf_end(r->elf);
    gs_debug_file_deinit(&r->file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reader, reader_deinit)

static Reader read_file(const GsKernel *k, bool unloaded)
{
    Reader r = { 0 };
    GElf_Ehdr header;

    g_assert_true(gs_kernel_debug_file(k, NULL, unloaded, &r.file, NULL));
    elf_version(EV_CURRENT);
    r.elf = elf_memory((char *)r.file.bytes->data, r.file.bytes->len);
    g_assert_nonnull(gelf_getehdr(r.elf, &header));
    g_assert_cmpuint(header.e_type, ==, ET_EXEC);
    g_assert_cmpuint(header.e_machine, ==, EM_X86_64);
    return r;
}

static const char *name_at(Elf *elf, size_t table, size_t at)
{
    const char *name = elf_strptr(elf, table, at);

    g_assert_nonnull(name);
    return name;
}

/* Return (owned) the section of index @i as "NAME start-end", and x if it has
 * code. */
static char *section(Elf *elf, size_t i)
{
    GElf_Shdr h;
    size_t names;

    if (i == SHN_ABS) {
        return g_strdup("absolute");
    }
    g_assert_cmpint(elf_getshdrstrndx(elf, &names), ==, 0);
    g_assert_nonnull(gelf_getshdr(elf_getscn(elf, i), &h));
    return g_strdup_printf("%s %" PRIx64 "-%" PRIx64 "%s",
                           name_at(elf, names, h.sh_name), h.sh_addr,
                           h.sh_addr + h.sh_size,
                           h.sh_flags & SHF_EXECINSTR ? " x" : "");
}

static Elf_Scn *symbols(Elf *elf, GElf_Shdr *h)
{
    Elf_Scn *scn = NULL;

    do {
        scn = elf_nextscn(elf, scn);
        g_assert_nonnull(gelf_getshdr(scn, h));
    } while (h->sh_type != SHT_SYMTAB);
    return scn;
}

/* Return (owned) the symbol @name as "va+size, section". */
static char *symbol(Elf *elf, const char *name)
{
    GElf_Shdr h;
    Elf_Data *data = elf_getdata(symbols(elf, &h), NULL);
    GElf_Sym sym;

    for (int i = 0; gelf_getsym(data, i, &sym); i++) {
        g_assert_true((GELF_ST_BIND(sym.st_info) == STB_LOCAL) ==
                      ((unsigned)i < h.sh_info));
        if (!strcmp(name_at(elf, h.sh_link, sym.st_name), name)) {
            g_autofree char *in = section(elf, sym.st_shndx);

            return g_strdup_printf("%" PRIx64 "+%" PRIx64 ", %s", sym.st_value,
                                   sym.st_size, in);
        }
    }
    return g_strdup("none");
}

#define ASSERT_SYMBOL(r, name, text) do { \
        g_autofree char *symbol_ = symbol((r)->elf, name); \
        g_assert_cmpstr(symbol_, ==, text); \
    } while (0)

/* Return how many bytes behind its register the CFA at @pc is; -1: unknown. */
static int64_t cfa_at(Elf *elf, uint64_t pc)
{
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    g_autofree Dwarf_Frame *frame = NULL;
    Dwarf_CFI *cfi = dwarf_getcfi(dwarf);
    int64_t off = -1;
    Dwarf_Op *op;
    size_t n;

    if (cfi && !dwarf_cfi_addrframe(cfi, pc, &frame)) {
        g_assert_cmpint(dwarf_frame_cfa(frame, &op, &n), ==, 0);
        g_assert_cmpuint(op[0].atom, ==, DW_OP_bregx);
        off = op[0].number2;
    }
    dwarf_end(dwarf);
    return off;
}

/* ---- cases -------------------------------------------------------------- */

TEST(kernel_proper, "/debug-file/kernel")
{
    g_autoptr(GsKernel) k = open_map();
    g_auto(Reader) r = { 0 };

    gs_kernel_set_slide(k, SLIDE);
    r = read_file(k, false);
    g_assert_cmpuint(r.file.n_symbols, ==, 15);
    g_assert_cmpuint(r.file.n_ranges, ==, 0);
    g_assert_cmpstr(r.file.unwind, ==, "nothing");
    ASSERT_SYMBOL(&r, "current_task", "40+0, absolute");
    ASSERT_SYMBOL(&r, "before",
                  "ffffffff9cff0000+10000, "
                  ".data ffffffff9cff0000-ffffffff9d000000");
    ASSERT_SYMBOL(&r, "helper", "ffffffff9d000040+40, "
                  ".text ffffffff9d000000-ffffffff9d000100 x");
    ASSERT_SYMBOL(&r, "start_kernel", "ffffffff9d000080+80, "
                  ".text ffffffff9d000000-ffffffff9d000100 x");
    ASSERT_SYMBOL(&r, "table", "ffffffff9d800000+800000, "
                  ".data.2 ffffffff9d000100-ffffffff9e000000");
    ASSERT_SYMBOL(&r, "_end", "ffffffff9f000000+1, "
                  ".data.3 ffffffff9e000040-ffffffff9f000001");
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9d000040ull), ==, -1);
}

/* Find the symbol that is the @n-th of those at @va, in the order of the
 * file. Returns: its name, NULL if there is none. */
static const char *nth_at(Elf *elf, uint64_t va, unsigned n, GElf_Sym *sym)
{
    GElf_Shdr h;
    Elf_Data *data = elf_getdata(symbols(elf, &h), NULL);

    for (int i = 0; gelf_getsym(data, i, sym); i++) {
        if (sym->st_value == va && !n--) {
            return name_at(elf, h.sh_link, sym->st_name);
        }
    }
    return NULL;
}

static void assert_one(const GsKernel *k, Elf *elf, uint64_t va)
{
    GElf_Sym first, other;
    GsSymbol ours;

    g_assert_true(gs_kernel_symbolize(k, va, &ours));
    g_assert_nonnull(nth_at(elf, va, 0, &other));
    g_assert_cmpint(GELF_ST_BIND(other.st_info), ==, STB_LOCAL);
    g_assert_cmpuint(other.st_size, ==, 0);
    g_assert_cmpstr(nth_at(elf, va, 1, &first), ==, ours.name);
    g_assert_cmpint(GELF_ST_BIND(first.st_info), ==, STB_GLOBAL);
    g_assert_cmpuint(first.st_size, ==, 0x40);
    g_assert_null(nth_at(elf, va, 2, &other));
}

/* Of several symbols at an address one is global and has the size: the one that
 * ka prints. The others are local. */
TEST(one_of_several, "/debug-file/one-of-several")
{
    g_autoptr(GsKernel) k = open_map();
    g_auto(Reader) r = read_file(k, false);

    assert_one(k, r.elf, 0xffffffff81000000ull);
    assert_one(k, r.elf, 0xffffffff81000040ull);
}

TEST(modules, "/debug-file/modules")
{
    g_autoptr(GsKernel) k = open_map();
    g_auto(Reader) r = { 0 };

    add_module(k, MODULE, "first");
    add_module(k, MODULE + 0x2000, "second");
    r = read_file(k, false);
    g_assert_cmpuint(r.file.n_modules, ==, 2);
    g_assert_cmpuint(r.file.n_symbols, ==, 15 + 6);
    ASSERT_SYMBOL(&r, "mod_exit", "ffffffffc0100100+f00, .text.first "
                  "ffffffffc0100000-ffffffffc0101000 x");
}

/* What lies over an unloaded module is named, and that module is not. */
TEST(unloaded, "/debug-file/unloaded")
{
    g_autoptr(GsKernel) k = open_map();
    uint64_t stamp = gs_kernel_stamp(k);

    add_module(k, MODULE, "gone");
    g_assert_cmpuint(gs_kernel_stamp(k), !=, stamp);
    stamp = gs_kernel_stamp(k);
    gs_kernel_drop_module(k, MODULE + 0x800);
    g_assert_cmpuint(gs_kernel_stamp(k), !=, stamp);
    {
        g_auto(Reader) without = read_file(k, false);
        g_auto(Reader) with = read_file(k, true);

        ASSERT_SYMBOL(&without, "mod_exit", "none");
        ASSERT_SYMBOL(&with, "mod_exit", "ffffffffc0100100+f00, .text.gone "
                      "ffffffffc0100000-ffffffffc0101000 x");
        g_assert_cmpuint(with.file.n_covered, ==, 0);
    }
    add_module(k, MODULE, "new");
    {
        g_auto(Reader) with = read_file(k, true);

        ASSERT_SYMBOL(&with, "mod_exit", "ffffffffc0100100+f00, .text.new "
                      "ffffffffc0100000-ffffffffc0101000 x");
        g_assert_cmpuint(with.file.n_covered, ==, 3);
    }
}

TEST(call_frames, "/debug-file/call-frames")
{
    g_autoptr(GsKernel) k = open_map();
    g_auto(Reader) r = { 0 };

    add_orc(k);
    gs_kernel_set_slide(k, SLIDE);
    add_module(k, MODULE, "plain");
    r = read_file(k, false);
    g_assert_cmpstr(r.file.unwind, ==, "ORC");
    g_assert_cmpuint(r.file.n_ranges, ==, 3 + 1 + 2);
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9d000000ull - 1), ==, -1);
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9d000000ull), ==, 8);
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9d0000ffull), ==, 8);
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9d000100ull), ==, -1);
    g_assert_cmpint(cfa_at(r.elf, 0xffffffff9e000010ull), ==, 8);
    g_assert_cmpint(cfa_at(r.elf, MODULE + 0x10), ==, 16);
}
