/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of exported symbols are found in memory in both forms. What is
 * not sorted, or whose names are none, is no table.
 */
#include "tests/lib/exports-writer.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define BASE    0xffffffff81000000ull
#define LEN     (1u << 20)
#define TABLE   0x80004u        /* aligned for the relative form only */
#define STRINGS 0xa0001u

static uint8_t memory[LEN];

static ExportsWriter writer(bool relative)
{
    memset(memory, 0, LEN);
    return (ExportsWriter) {
        .image = memory, .len = LEN, .va = BASE,
        .at = relative ? TABLE : TABLE + 4,
        .strings = STRINGS, .relative = relative,
    };
}

static void put_tables(ExportsWriter *w)
{
    exports_write_many(w, "a", 40, BASE + 0x1000);
    exports_write(w, "cpu_info", 0x19020);      /* per-CPU */
    exports_write(w, "kfree", BASE + 0x2000);
    exports_write(w, "kfree_const", BASE + 0x2000);
    exports_write(w, "variable", BASE + 0xb0000);
    w->at += w->relative ? 4 : 8;
    exports_write_many(w, "gpl_", 5, BASE + 0x4000);
}

static void found(gconstpointer relative)
{
    ExportsWriter w = writer(relative);
    g_autoptr(GsSymtab) tab = NULL;
    size_t start = w.at;
    uint64_t at = 0;
    GsSymbol sym;

    put_tables(&w);
    tab = exports_decode(&w, &at);
    g_assert_nonnull(tab);
    g_assert_cmphex(at, ==, BASE + start);
    g_assert_cmpuint(gs_symtab_n(tab), ==, 49);
    g_assert_true(gs_symtab_lookup(tab, "kfree", &sym));
    g_assert_cmphex(sym.va, ==, BASE + 0x2000);
    g_assert_cmpuint(sym.size, ==, 0);
    g_assert_cmpint(sym.type, ==, 'T');
    g_assert_true(gs_symtab_lookup(tab, "gpl_004", &sym));
    g_assert_cmphex(sym.va, ==, BASE + 0x4040);
    g_assert_true(gs_symtab_lookup(tab, "cpu_info", &sym));
    g_assert_cmphex(sym.va, ==, 0x19020);
    g_assert_true(gs_symtab_lookup(tab, "variable", &sym));
    g_assert_cmpint(sym.type, ==, 'D');
}

TEST(relative_form, "/exports/relative-form")
{
    found(GINT_TO_POINTER(1));
}

TEST(absolute_form, "/exports/absolute-form")
{
    found(NULL);
}

/* The function after kfree() may be one that is not exported. */
TEST(only_exact_addresses_have_names,
     "/exports/only-exact-addresses-have-names")
{
    ExportsWriter w = writer(true);
    g_autoptr(GsSymtab) tab = NULL;
    uint64_t at;
    GsSymbol sym;

    put_tables(&w);
    tab = exports_decode(&w, &at);
    g_assert_true(gs_symtab_symbolize(tab, BASE + 0x1000, &sym));
    g_assert_cmpstr(sym.name, ==, "a000");
    g_assert_false(gs_symtab_symbolize(tab, BASE + 0x1001, &sym));
    g_assert_false(gs_symtab_symbolize(tab, BASE + 0xfff, &sym));
    g_assert_false(gs_symtab_symbolize(tab, 0x19020, &sym));
}

static void assert_none(ExportsWriter *w)
{
    uint64_t at;

    g_assert_null(exports_decode(w, &at));
}

TEST(no_tables, "/exports/no-tables")
{
    ExportsWriter w = writer(true);

    assert_none(&w);
    exports_write_many(&w, "b", 40, BASE + 0x1000);     /* without kfree */
    assert_none(&w);
    w = writer(true);
    exports_write_many(&w, "a", 10, BASE + 0x1000);     /* too few */
    exports_write(&w, "kfree", BASE + 0x2000);
    assert_none(&w);
    w = writer(true);
    exports_write_many(&w, "z", 20, BASE + 0x1000);     /* not sorted */
    exports_write(&w, "kfree", BASE + 0x2000);
    exports_write_many(&w, "l", 20, BASE + 0x1000);
    assert_none(&w);
    w = writer(true);
    exports_write_many(&w, "a b", 40, BASE + 0x1000);   /* no names */
    exports_write(&w, "kfree", BASE + 0x2000);
    assert_none(&w);
    w = writer(true);
    exports_write_many(&w, "a", 40, BASE + LEN);        /* not in the image */
    exports_write(&w, "kfree", BASE + 0x2000);
    assert_none(&w);
}

/* All of memory looks like names and entries: the search is bounded. */
TEST(too_much_looks_like_one, "/exports/too-much-looks-like-one")
{
    ExportsWriter w = writer(true);

    memset(memory, 'a', LEN);
    assert_none(&w);
    for (w.at = 0; w.at + 12 <= LEN - 1024;) {
        w.strings = LEN - 512;
        exports_write(&w, "a", BASE);
    }
    memset(memory + LEN - 512, 'a', 511);
    assert_none(&w);
}
