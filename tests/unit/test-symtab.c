/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol table: order, names, extents, near misses.
 */
#include "../lib/elf-writer.h"
#include "../../guest-symbols/symtab.h"

#define TEXT    0xffffffff81000000ull
#define DATA    0xffffffff81100000ull

typedef struct Sym {
    uint64_t va;
    char type;
    const char *name;
} Sym;

static const Sym syms[] = {
    { 0x0, 'A', "__per_cpu_start" },
    { 0x40, 'A', "current_task" },
    { 0x80, 'A', "__per_cpu_end" },
    { TEXT, 'T', "_text" },
    { TEXT, 'T', "_stext" },
    { TEXT + 0x10, 't', "__pfx_init_once" },
    { TEXT + 0x20, 't', "init_once" },
    { TEXT + 0x60, 't', "init_once" },
    { TEXT + 0xa0, 'W', "weak_alias" },
    { TEXT + 0xa0, 'T', "__strong_alias" },
    { TEXT + 0xa0, 'T', "strong_alias" },
    { TEXT + 0x100, 't', "both_kinds" },
    { TEXT + 0x140, 'T', "both_kinds" },
    { TEXT + 0x180, 't', "both_kinds.cold" },
    { TEXT + 0x200, 'T', "kmem_cache_alloc_noprof" },
    { TEXT + 0x300, 'T', "kmem_cache_free" },
    { TEXT + 0x400, 'T', "_etext" },
    { DATA, 'D', "jiffies" },
    { DATA + 0x40, 'd', "last_of_data" },
};

static GsImage *make_image(void)
{
    static uint8_t bytes[0x800];
    g_autoptr(GBytes) elf = NULL;
    ElfWriter w;

    elf_writer_start(&w);
    elf_writer_add(&w, ".text", TEXT, SHF_EXECINSTR, bytes, sizeof(bytes));
    elf_writer_add(&w, ".data", DATA, SHF_WRITE, bytes, 0x60);
    elf = elf_writer_finish(&w);
    return gs_image_new(elf, NULL);
}

static GsSymtab *make_table(bool reversed)
{
    g_autoptr(GsImage) img = make_image();
    GsSymtab *tab = gs_symtab_new();
    size_t n = G_N_ELEMENTS(syms);

    for (size_t i = 0; i < n; i++) {
        const Sym *s = &syms[reversed ? n - 1 - i : i];

        g_assert_true(gs_symtab_add(tab, s->va, s->type, s->name,
                                    strlen(s->name)));
    }
    gs_symtab_seal(tab, img);
    return tab;
}

static void expect_at(const GsSymtab *tab, uint64_t va, const char *name,
                      uint64_t start, uint64_t size)
{
    GsSymbol sym;

    if (!name) {
        g_assert_false(gs_symtab_symbolize(tab, va, &sym));
        return;
    }
    g_assert_true(gs_symtab_symbolize(tab, va, &sym));
    g_assert_cmpstr(sym.name, ==, name);
    g_assert_cmphex(sym.va, ==, start);
    g_assert_cmphex(sym.size, ==, size);
    g_assert_null(sym.module);
}

static void expect_named(const GsSymtab *tab, const char *name, uint64_t va,
                         uint64_t size)
{
    GsSymbol sym;

    g_assert_true(gs_symtab_lookup(tab, name, &sym));
    g_assert_cmpstr(sym.name, ==, name);
    g_assert_cmphex(sym.va, ==, va);
    g_assert_cmphex(sym.size, ==, size);
}

static void test_lookup(void)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        g_autoptr(GsSymtab) tab = make_table(reversed);
        GsSymbol sym;

        g_assert_cmpuint(gs_symtab_n(tab), ==, G_N_ELEMENTS(syms));
        expect_named(tab, "init_once", TEXT + 0x20, 0x40);
        expect_named(tab, "both_kinds", TEXT + 0x140, 0x40);
        expect_named(tab, "both_kinds.cold", TEXT + 0x180, 0x80);
        expect_named(tab, "current_task", 0x40, 0x40);
        g_assert_false(gs_symtab_lookup(tab, "both_kinds.isra.0", &sym));
        g_assert_false(gs_symtab_lookup(tab, "", &sym));
    }
}

static void test_symbolize(void)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        g_autoptr(GsSymtab) tab = make_table(reversed);

        expect_at(tab, TEXT - 1, NULL, 0, 0);
        expect_at(tab, TEXT + 0x1f, "__pfx_init_once", TEXT + 0x10, 0x10);
        expect_at(tab, TEXT + 0x20, "init_once", TEXT + 0x20, 0x40);
        expect_at(tab, TEXT + 0x5f, "init_once", TEXT + 0x20, 0x40);
        expect_at(tab, TEXT + 0xff, "strong_alias", TEXT + 0xa0, 0x60);
        expect_at(tab, TEXT + 0x3ff, "kmem_cache_free", TEXT + 0x300, 0x100);
    }
}

/* Behind _etext but in .text; behind .text; behind .data. */
static void test_section_end(void)
{
    g_autoptr(GsSymtab) tab = make_table(false);

    expect_at(tab, TEXT + 0x400, NULL, 0, 0);
    expect_at(tab, TEXT + 0x7ff, NULL, 0, 0);
    expect_at(tab, TEXT + 0x800, NULL, 0, 0);
    expect_at(tab, DATA + 0x5f, "last_of_data", DATA + 0x40, 0x20);
    expect_at(tab, DATA + 0x60, NULL, 0, 0);
    expect_at(tab, UINT64_MAX, NULL, 0, 0);
    expect_named(tab, "_etext", TEXT + 0x400, 0);
}

static void test_percpu_not_symbolized(void)
{
    g_autoptr(GsSymtab) tab = make_table(false);

    expect_at(tab, 0x0, NULL, 0, 0);
    expect_at(tab, 0x48, NULL, 0, 0);
    expect_at(tab, 0x1000, NULL, 0, 0);
}

/* Since 6.15 percpu variables of x86-64 are linked among the others. */
static void test_percpu_high(void)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    gs_symtab_add(tab, DATA, 'D', "before", 6);
    gs_symtab_add(tab, DATA + 0x10, 'D', "__per_cpu_start", 15);
    gs_symtab_add(tab, DATA + 0x10, 'D', "variable", 8);
    gs_symtab_add(tab, DATA + 0x20, 'D', "__per_cpu_end", 13);
    gs_symtab_add(tab, DATA + 0x20, 'D', "after", 5);
    gs_symtab_add(tab, DATA + 0x40, 'D', "_end", 4);
    gs_symtab_seal(tab, NULL);
    expect_at(tab, DATA + 0xf, "before", DATA, 0x10);
    expect_at(tab, DATA + 0x10, NULL, 0, 0);
    expect_at(tab, DATA + 0x1f, NULL, 0, 0);
    expect_at(tab, DATA + 0x20, "after", DATA + 0x20, 0x20);
    expect_at(tab, DATA + 0x40, NULL, 0, 0);
}

/* The last symbol of a table without sections has no known end. */
static void test_unknown_size(void)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    gs_symtab_add(tab, TEXT, 'T', "only", 4);
    gs_symtab_seal(tab, NULL);
    expect_at(tab, TEXT, "only", TEXT, 0);
    expect_at(tab, TEXT + 1, NULL, 0, 0);
}

static void test_empty(void)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    GsSymbol sym;

    gs_symtab_seal(tab, NULL);
    g_assert_false(gs_symtab_lookup(tab, "a", &sym));
    expect_at(tab, TEXT, NULL, 0, 0);
}

static bool collect(const GsSymbol *sym, void *opaque)
{
    GArray *vas = opaque;

    g_array_append_val(vas, sym->va);
    return vas->len < 2;
}

static void test_foreach(void)
{
    g_autoptr(GsSymtab) tab = make_table(true);
    g_autoptr(GArray) vas = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    g_assert_cmpuint(gs_symtab_foreach_named(tab, "init_once", collect, vas),
                     ==, 2);
    g_assert_cmphex(g_array_index(vas, uint64_t, 0), ==, TEXT + 0x20);
    g_assert_cmphex(g_array_index(vas, uint64_t, 1), ==, TEXT + 0x60);
    g_assert_cmpuint(gs_symtab_foreach_named(tab, "none", collect, vas), ==,
                     0);
}

/* A million symbols of one name must not take quadratic time. */
static void test_many_duplicates(void)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    GsSymbol sym;

    for (unsigned i = 0; i < 1000000; i++) {
        gs_symtab_add(tab, TEXT + i, 't', "__func__.0", 10);
    }
    gs_symtab_seal(tab, NULL);
    g_assert_true(gs_symtab_lookup(tab, "__func__.0", &sym));
    g_assert_cmphex(sym.va, ==, TEXT);
}

static void test_caps(void)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    g_autofree char *name = g_strnfill(GS_SYMBOL_NAME_MAX + 1, 'x');

    g_assert_true(gs_symtab_add(tab, TEXT, 't', name, GS_SYMBOL_NAME_MAX));
    g_assert_false(gs_symtab_add(tab, TEXT, 't', name,
                                 GS_SYMBOL_NAME_MAX + 1));
}

static void expect_suggestion(const GsSymtab *tab, const char *typed,
                              const char *want)
{
    g_auto(GStrv) names = gs_symtab_suggest(tab, typed, 3);

    g_assert_cmpuint(g_strv_length(names), <=, 3);
    g_assert_cmpstr(names[0], ==, want);
}

static void test_suggest(void)
{
    g_autoptr(GsSymtab) tab = make_table(false);
    g_auto(GStrv) none = gs_symtab_suggest(tab, "kmem_cache_fre", 0);

    expect_suggestion(tab, "kmem_cache_fre", "kmem_cache_free");
    expect_suggestion(tab, "kmem_cahce_free", "kmem_cache_free");
    expect_suggestion(tab, "kmem_cache_alloc", "kmem_cache_alloc_noprof");
    expect_suggestion(tab, "kmem_cache_aloc", "kmem_cache_alloc_noprof");
    expect_suggestion(tab, "init_onc", "init_once");
    expect_suggestion(tab, "strong_alia", "strong_alias");
    expect_suggestion(tab, "something_else_entirely", NULL);
    expect_suggestion(tab, "", NULL);
    g_assert_null(none[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/symtab/lookup", test_lookup);
    g_test_add_func("/symtab/symbolize", test_symbolize);
    g_test_add_func("/symtab/section-end", test_section_end);
    g_test_add_func("/symtab/percpu", test_percpu_not_symbolized);
    g_test_add_func("/symtab/percpu-linked-high", test_percpu_high);
    g_test_add_func("/symtab/unknown-size", test_unknown_size);
    g_test_add_func("/symtab/empty", test_empty);
    g_test_add_func("/symtab/foreach-named", test_foreach);
    g_test_add_func("/symtab/many-duplicates", test_many_duplicates);
    g_test_add_func("/symtab/caps", test_caps);
    g_test_add_func("/symtab/suggest", test_suggest);
    return g_test_run();
}
