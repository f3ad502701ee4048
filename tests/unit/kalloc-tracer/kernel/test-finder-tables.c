/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a kernel has besides its symbol table is found in guest memory: the
 * exported variables if kallsyms has functions only, types and unwind tables
 * if the file is a System.map.
 */
#include "tests/lib/exports-writer.h"
#include "tests/lib/kallsyms-writer.h"
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "kalloc-tracer/kernel/kernel-finder.h"

#include <string.h>

#define HUGE        0x200000ull
#define SLIDE       0x1a00000ull
#define TEXT        (KS_TEXT + SLIDE)
#define RODATA_AT   HUGE                    /* position in memory */
#define RODATA      (TEXT + RODATA_AT)
#define ORC_AT      (RODATA_AT + 0x10000)
#define TYPES_AT    (RODATA_AT + 0x20000)
#define EXPORTS_AT  (RODATA_AT + 0x40000)
#define STRINGS_AT  (RODATA_AT + 0x60000)
#define N_ORC       2000u

/* The kernel's memory, at TEXT. */
static uint8_t memory[2 * HUGE];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - va % 4096;
    return va - TEXT < sizeof(memory) ? memory + (va - TEXT) : NULL;
}

static void put_banner(void)
{
    memset(memory, 0, sizeof(memory));
    memcpy(memory + RODATA_AT + KS_BANNER_AT, KS_BANNER, sizeof(KS_BANNER));
}

static GsKernel *look(KtFinder *f, uint64_t va)
{
    uint64_t slide;
    bool complete;

    g_assert_true(kt_finder_wants(f, va));
    return kt_finder_try(f, va, &slide, &complete);
}

/* ---- exported variables -------------------------------------------------- */

static void put_kallsyms(void)
{
    static const KsSymbol symbols[] = {
        { TEXT, 'T', "_stext" },
        { TEXT + 0x200, 'T', "start_kernel" },
        { TEXT + 0x300, 'T', "kfree" },
        { TEXT + 0x400, 'T', "_etext" },
    };
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = symbols,
        .n = G_N_ELEMENTS(symbols), .va = RODATA + KS_TABLE,
    };

    ks_write(&w);
    memcpy(memory + RODATA_AT + KS_TABLE, w.out->data, w.out->len);
    g_byte_array_unref(w.out);
}

static void put_exports(void)
{
    ExportsWriter w = {
        .image = memory, .len = sizeof(memory), .va = TEXT, .at = EXPORTS_AT,
        .strings = STRINGS_AT, .relative = true,
    };

    exports_write_many(&w, "a", 40, TEXT + 0x100);
    exports_write(&w, "kfree", TEXT + 0x300);
    exports_write(&w, "vmemmap_base", RODATA + 0x8000);
}

TEST(exported_variables, "/finder-tables/exported-variables")
{
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), NULL, view);
    const GsKernel *k;
    GsSymbol sym;

    put_banner();
    put_kallsyms();
    put_exports();
    k = look(f, TEXT + 0xd3);
    g_assert_nonnull(k);
    g_assert_cmpstr(gs_kernel_symbols_from(k), ==, "kallsyms");
    g_assert_false(gs_kernel_lookup(k, "vmemmap_base", &sym));
    g_assert_true(gs_kernel_variable(k, "vmemmap_base", &sym));
    g_assert_cmphex(sym.va, ==, RODATA + 0x8000);
    g_assert_true(gs_kernel_variable(k, "kfree", &sym));
    g_assert_cmphex(sym.va, ==, TEXT + 0x300);
    g_assert_false(gs_kernel_variable(k, "page_offset_base", &sym));
}

/* ---- a System.map -------------------------------------------------------- */

static GsKernel *system_map(void)
{
    /* KS_TEXT, and the banner in .rodata */
    static const char text[] = "ffffffff81000000 T _stext\n"
                               "ffffffff81000200 T start_kernel\n"
                               "ffffffff81200000 T _etext\n"
                               "ffffffff81200040 R linux_banner\n";
    GsKernel *k = gs_kernel_new_from_data(text, strlen(text), "map", NULL);

    g_assert_nonnull(k);
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "none");
    return k;
}

static void put_orc(void)
{
    g_autofree OrcRow *rows = g_new0(OrcRow, N_ORC);
    g_auto(OrcArrays) orc = { 0 };

    for (unsigned i = 0; i < N_ORC; i++) {
        rows[i] = (OrcRow) {
            .va = TEXT + 16 * i, .type = GS_ORC_CALL, .sp = R_SP, .sp_off = 8,
            .bp = R_NONE,
        };
    }
    orc = orc_writer_finish(GS_ORC_LAYOUT_6_3, TEXT + ORC_AT, rows, N_ORC);
    memcpy(memory + ORC_AT, orc.ip, 4 * N_ORC);
    memcpy(memory + ORC_AT + 4 * N_ORC, orc.orc, 6 * N_ORC);
}

static void put_types(void)
{
    struct btf *types = btf__new_empty();
    g_autoptr(GBytes) raw = NULL;

    btf__add_struct(types, "kmem_cache", 256);
    raw = types_bytes(types);
    memcpy(memory + TYPES_AT, g_bytes_get_data(raw, NULL),
           g_bytes_get_size(raw));
}

TEST(the_rest_is_in_memory, "/finder-tables/the-rest-is-in-memory")
{
    g_autoptr(GsKernel) k = system_map();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);
    uint32_t size;

    put_banner();
    put_orc();
    put_types();
    g_assert_true(look(f, TEXT + 0x200) == k);
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "ORC");
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "BTF");
    g_assert_true(gs_kernel_type_size(k, "kmem_cache", &size));
    g_assert_cmpuint(size, ==, 256);
    g_assert_cmpstr(gs_kernel_symbols_from(k), ==, "System.map");
    g_assert_null(gs_kernel_banner(k));
}

TEST(nothing_is_in_memory, "/finder-tables/nothing-is-in-memory")
{
    g_autoptr(GsKernel) k = system_map();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);

    put_banner();
    g_assert_true(look(f, TEXT + 0x200) == k);
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "none");
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "none");
}

/* A System.map has no banner, so any kernel is taken for its own. But tables
 * of a kernel that has its banner elsewhere are not used. */
TEST(tables_of_another_kernel, "/finder-tables/tables-of-another-kernel")
{
    g_autoptr(GsKernel) k = system_map();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);

    put_banner();
    put_orc();
    put_types();
    memset(memory + RODATA_AT + KS_BANNER_AT, 0, sizeof(KS_BANNER));
    memcpy(memory + RODATA_AT + 0x1000, KS_BANNER, sizeof(KS_BANNER));
    g_assert_true(look(f, TEXT + 0x200) == k);
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "none");
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "none");
}

TEST(what_is_hidden_stays_hidden, "/finder-tables/what-is-hidden-stays-hidden")
{
    g_autoptr(GsKernel) k = system_map();
    g_autoptr(KtFinder) f = kt_finder_new(gs_arch_nth(0), k, view);

    kt_finder_set_without(f, "types+unwind");
    put_banner();
    put_orc();
    put_types();
    g_assert_true(look(f, TEXT + 0x200) == k);
    g_assert_cmpstr(gs_kernel_unwinder(k), ==, "none");
    g_assert_cmpstr(gs_kernel_types_from(k), ==, "none");
}
