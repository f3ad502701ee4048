/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels other than Linux are read from ELF files with a symbol table. */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#define HIGH    0xfffffff02a000000ull
#define LOW     0x80000000ull
#define CODE    0x1000

/* A kernel at @base that starts at its base; its code is CODE bytes. */
static GBytes *elf_of(unsigned machine, uint64_t base, uint64_t entry)
{
    const ElfSymbol syms[] = {
        { "_entry", base, 1, STT_NOTYPE },
        { "$x", base, 1, STT_NOTYPE },
        { "start", base + 0x100, 1, STT_FUNC },
        { "kalloc", base + 0x200, 1, STT_FUNC },
        { "counter", base + 0x2000, 2, STT_OBJECT },
        { "kernel.c", 0, SHN_ABS, STT_FILE },
        { "extern", 0, SHN_UNDEF, STT_NOTYPE },
        { "SIZE", 0x40, SHN_ABS, STT_NOTYPE },
    };
    static const uint8_t code[CODE] = { 1, 2, 3, 4 };
    ElfWriter w;

    elf_writer_start(&w);
    w.machine = machine;
    w.entry = entry;
    elf_writer_add(&w, ".text", base, SHF_EXECINSTR, code, sizeof(code));
    elf_writer_add(&w, ".bss", base + 0x2000, SHF_WRITE, NULL, 0x100);
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    return elf_writer_finish(&w);
}

static GsKernel *open_bytes(GBytes *bytes, const GsElfOptions *o,
                            GError **errp)
{
    size_t len;
    const void *data = g_bytes_get_data(bytes, &len);

    return gs_kernel_new_elf_from_data(data, len, o, errp);
}

static GsKernel *kernel_of(unsigned machine, uint64_t base,
                           const GsElfOptions *o)
{
    g_autoptr(GBytes) bytes = elf_of(machine, base, base);
    g_autoptr(GError) err = NULL;
    GsKernel *k = open_bytes(bytes, o, &err);

    g_assert_no_error(err);
    return k;
}

TEST(symbols, "/elf-kernel/symbols")
{
    const GsElfOptions o = { 0 };
    g_autoptr(GsKernel) k = kernel_of(EM_AARCH64, HIGH, &o);
    GsSymbol sym;

    g_assert_cmpuint(gs_kernel_n_symbols(k), ==, 5);
    g_assert_true(gs_kernel_lookup(k, "kalloc", &sym));
    g_assert_cmphex(sym.va, ==, HIGH + 0x200);
    g_assert_cmpint(sym.type, ==, 'T');
    g_assert_true(gs_kernel_lookup(k, "counter", &sym));
    g_assert_cmpint(sym.type, ==, 'B');
    g_assert_true(gs_kernel_symbolize(k, HIGH + 0x180, &sym));
    g_assert_cmpstr(sym.name, ==, "start");
    g_assert_false(gs_kernel_symbolize(k, HIGH + CODE, &sym));
    g_assert_true(gs_kernel_is_text(k, HIGH + 0x200));
    g_assert_false(gs_kernel_is_text(k, HIGH + 0x2000));
    g_assert_true(gs_kernel_in_image(k, HIGH + 0x2000));
    g_assert_null(gs_kernel_banner(k));
    g_assert_false(gs_kernel_has_btf(k));
    g_assert_true(gs_kernel_is_plain(k));
}

TEST(it_starts_at_its_entry_or_where_told,
     "/elf-kernel/it-starts-at-its-entry-or-where-told")
{
    const GsElfOptions entry = { 0 }, named = { .start = "start" };
    g_autoptr(GsKernel) a = kernel_of(EM_RISCV, LOW, &entry);
    g_autoptr(GsKernel) b = kernel_of(EM_RISCV, LOW, &named);

    g_assert_cmphex(gs_kernel_start(a), ==, LOW);
    g_assert_cmphex(gs_kernel_start(b), ==, LOW + 0x100);
    g_assert_cmpstr(gs_kernel_arch(a)->name, ==, "riscv64");
}

/* One in the lower half is there from its lowest section up. */
TEST(its_part_of_the_address_space, "/elf-kernel/its-part-of-the-address-space")
{
    const GsElfOptions o = { 0 };
    g_autoptr(GsKernel) low = kernel_of(EM_RISCV, LOW, &o);
    g_autoptr(GsKernel) high = kernel_of(EM_AARCH64, HIGH, &o);
    GsSymbol sym;

    g_assert_cmphex(gs_kernel_lowest(low), ==, LOW);
    g_assert_cmphex(gs_kernel_lowest(high), ==, 1ull << 63);
    g_assert_true(gs_kernel_symbolize(low, LOW + 0x210, &sym));
    g_assert_cmpstr(sym.name, ==, "kalloc");
    g_assert_false(gs_kernel_symbolize(low, 0x40, &sym));
}

static void refused(GBytes *bytes, const GsElfOptions *o, const char *why)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(open_bytes(bytes, o, &err));
    g_assert_nonnull(err);
    g_assert_nonnull(strstr(err->message, why));
    g_assert_null(strchr(err->message, '\n'));
}

TEST(bad_files, "/elf-kernel/bad-files")
{
    const GsElfOptions o = { 0 }, named = { .start = "begin" };
    g_autoptr(GBytes) good = elf_of(EM_AARCH64, HIGH, HIGH);
    g_autoptr(GBytes) text = g_bytes_new_static("[kernel]\n", 9);
    g_autoptr(GBytes) none = g_bytes_new_static("", 0);
    g_autoptr(GBytes) above = elf_of(EM_AARCH64, LOW, HIGH);
    g_autoptr(GBytes) bare = NULL;
    ElfWriter w;

    elf_writer_start(&w);
    elf_writer_add(&w, ".text", HIGH, SHF_EXECINSTR, "code", 4);
    bare = elf_writer_finish(&w);
    refused(text, &o, "not an ELF file");
    refused(none, &o, "not an ELF file");
    refused(bare, &o, "no symbol table");
    refused(good, &named, "no symbol \"begin\"");
    refused(above, &o, "no code where the kernel starts");
}

/* @n times a symbol of @type, of a name of @len characters. */
static GBytes *elf_of_long_names(unsigned n, unsigned type, size_t len)
{
    g_autoptr(GByteArray) syms = g_byte_array_new();
    g_autoptr(GByteArray) names = g_byte_array_new();
    const Elf64_Sym sym = {
        .st_value = HIGH, .st_shndx = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL,
                                                                  type),
    };
    ElfWriter w;

    for (unsigned i = 0; i < n; i++) {
        g_byte_array_append(syms, (const uint8_t *)&sym, sizeof(sym));
    }
    g_byte_array_set_size(names, len + 1);
    memset(names->data, 'x', len);
    names->data[len] = 0;
    elf_writer_start(&w);
    w.machine = EM_AARCH64;
    w.entry = HIGH;
    elf_writer_add(&w, ".text", HIGH, SHF_EXECINSTR, "code", 4);
    elf_writer_table(&w, SHT_SYMTAB, syms);
    elf_writer_table(&w, SHT_STRTAB, names);
    return elf_writer_finish(&w);
}

/* A name that nobody wants has any length; to measure these takes minutes. */
TEST(long_names, "/elf-kernel/long-names")
{
    const GsElfOptions o = { 0 };
    g_autoptr(GBytes) unwanted = elf_of_long_names(400000, STT_SECTION,
                                                   8u << 20);
    g_autoptr(GBytes) most = elf_of_long_names(1, STT_FUNC,
                                               GS_SYMBOL_NAME_MAX);
    g_autoptr(GBytes) more = elf_of_long_names(1, STT_FUNC,
                                               GS_SYMBOL_NAME_MAX + 1);
    g_autoptr(GsKernel) a = open_bytes(unwanted, &o, NULL);
    g_autoptr(GsKernel) b = open_bytes(most, &o, NULL);

    g_assert_nonnull(a);
    g_assert_cmpuint(gs_kernel_n_symbols(a), ==, 0);
    g_assert_nonnull(b);
    g_assert_cmpuint(gs_kernel_n_symbols(b), ==, 1);
    refused(more, &o, "too long");
}

/* Any end of the file is survived, and told or not of importance. */
TEST(cut_files, "/elf-kernel/cut-files")
{
    const GsElfOptions o = { 0 };
    g_autoptr(GBytes) good = elf_of(EM_AARCH64, HIGH, HIGH);
    size_t len = g_bytes_get_size(good);

    for (size_t n = 0; n < len; n += 7) {
        g_autoptr(GBytes) cut = g_bytes_new_from_bytes(good, 0, n);
        g_autoptr(GError) err = NULL;
        g_autoptr(GsKernel) k = open_bytes(cut, &o, &err);

        g_assert_true(k || err);
    }
}

/* A vmlinux of Linux without kallsyms, whose code has @prologue. */
static GsKernel *linux_for(unsigned machine, const ElfSymbol *syms, unsigned n,
                           const void *prologue, size_t len, GError **errp)
{
    static const char banner[] =
        "Linux version 6.12.0-test (somebody@somewhere) #1\n";
    g_autoptr(GBytes) bytes = NULL;
    uint8_t code[CODE] = { 0 };
    const void *data;
    ElfWriter w;
    size_t size;

    for (unsigned i = 0; i < 16; i++) {
        memcpy(code + 64 * i, prologue, len);
    }
    elf_writer_start(&w);
    w.machine = machine;
    elf_writer_add(&w, ".text", HIGH, SHF_EXECINSTR, code, sizeof(code));
    elf_writer_add(&w, ".rodata", HIGH + 0x2000, 0, banner, sizeof(banner));
    elf_writer_symbols(&w, syms, n);
    bytes = elf_writer_finish(&w);
    data = g_bytes_get_data(bytes, &size);
    return gs_kernel_new_from_data(data, size, "vmlinux", errp);
}

static GsKernel *linux_of(const ElfSymbol *syms, unsigned n,
                          const void *prologue, size_t len, GError **errp)
{
    return linux_for(EM_X86_64, syms, n, prologue, len, errp);
}

/* Kernels of riscv64 keep frame pointers, or not. */
TEST(frame_pointers_of_riscv64, "/elf-kernel/frame-pointers-of-riscv64")
{
    /* addi sp,sp,-32; sd s0,16(sp); sd ra,24(sp); addi s0,sp,32 */
    static const uint8_t frame[] = { 0x01, 0x11, 0x22, 0xe8, 0x06, 0xec,
                                     0x00, 0x10 };
    /* the same without the compressed form: addi s0,sp,528 */
    static const uint8_t wide[] = { 0x01, 0x11, 0x22, 0xe8, 0x06, 0xec,
                                    0x13, 0x04, 0x01, 0x21 };
    static const uint8_t none[] = { 0x01, 0x11, 0x22, 0xe8, 0x06, 0xec,
                                    0x2a, 0x84 };       /* mv s0,a0 */
    static const struct {
        const uint8_t *code;
        size_t len;
        unsigned n;
        const char *by;
    } rows[] = {
        { frame, sizeof(frame), 18, "frame pointers" },
        { wide, sizeof(wide), 18, "frame pointers" },
        { none, sizeof(none), 18, "none" },
        { none, sizeof(none), 4, "frame pointers" },    /* too few to say */
    };
    ElfSymbol syms[18] = {
        { "_text", HIGH, 1, STT_NOTYPE },
        { "start_kernel", HIGH + 64, 1, STT_FUNC },
    };
    static char names[16][8];

    for (unsigned i = 0; i < 16; i++) {
        g_snprintf(names[i], sizeof(names[i]), "f%u", i);
        syms[2 + i] = (ElfSymbol) { names[i], HIGH + 64 * i, 1, STT_FUNC };
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) err = NULL;
        g_autoptr(GsKernel) k = linux_for(EM_RISCV, syms, rows[i].n,
                                          rows[i].code, rows[i].len, &err);

        g_assert_no_error(err);
        g_assert_cmpstr(gs_kernel_unwinder(k), ==, rows[i].by);
    }
}

TEST(linux_without_kallsyms, "/elf-kernel/linux-without-kallsyms")
{
    static const uint8_t frame[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xe8, 0, 0, 0, 0,
                                     0x55, 0x48, 0x89, 0xe5 };
    static const uint8_t none[] = { 0x55, 0x53, 0x48, 0x89, 0xfb };
    ElfSymbol syms[18] = {
        { "_text", HIGH, 1, STT_NOTYPE },
        { "start_kernel", HIGH + 64, 1, STT_FUNC },
    };
    static char names[16][8];
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = NULL, other = NULL, cut = NULL;

    for (unsigned i = 0; i < 16; i++) {
        g_snprintf(names[i], sizeof(names[i]), "f%u", i);
        syms[2 + i] = (ElfSymbol) { names[i], HIGH + 64 * i, 1, STT_FUNC };
    }
    k = linux_of(syms, 18, frame, sizeof(frame), &err);
    g_assert_no_error(err);
    g_assert_cmpstr(gs_kernel_symbols_from(k), ==, "ELF");
    g_assert_cmphex(gs_kernel_start(k), ==, HIGH + 64);
    g_assert_false(gs_kernel_is_plain(k));
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "frame pointers");
    other = linux_of(syms, 18, none, sizeof(none), &err);
    g_assert_no_error(err);
    g_assert_cmpstr(gs_kernel_unwinder(other), ==, "none");
    cut = linux_of(syms, 1, frame, sizeof(frame), &err);    /* no start */
    g_assert_null(cut);
    g_assert_error(err, GS_ERROR, GS_ERROR_NO_SYMBOLS);
}
