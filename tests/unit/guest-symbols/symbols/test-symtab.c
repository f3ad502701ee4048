/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol table: order and extents of symbols, lookup by name, and
 * addresses just outside a symbol.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/symbols/symtab-internal.h"

#include <malloc.h>

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

TEST(test_lookup, "/symtab/lookup")
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

TEST(test_symbolize, "/symtab/symbolize")
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
TEST(test_section_end, "/symtab/section-end")
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

TEST(test_percpu_not_symbolized, "/symtab/percpu")
{
    g_autoptr(GsSymtab) tab = make_table(false);

    expect_at(tab, 0x0, NULL, 0, 0);
    expect_at(tab, 0x48, NULL, 0, 0);
    expect_at(tab, 0x1000, NULL, 0, 0);
}

/* Since 6.15 percpu variables of x86-64 are linked among the others. */
TEST(test_percpu_high, "/symtab/percpu-linked-high")
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
TEST(test_unknown_size, "/symtab/unknown-size")
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    gs_symtab_add(tab, TEXT, 'T', "only", 4);
    gs_symtab_seal(tab, NULL);
    expect_at(tab, TEXT, "only", TEXT, 0);
    expect_at(tab, TEXT + 1, NULL, 0, 0);
}

TEST(test_empty, "/symtab/empty")
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

TEST(test_foreach, "/symtab/foreach-named")
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

/* Link-time optimisation renamed what was static: it is found by both names,
 * behind one that has just the name. */
TEST(test_link_time, "/symtab/link-time")
{
    static const Sym renamed[] = {
        { TEXT + 0x10, 't', "refill.llvm.15033911" },
        { TEXT + 0x20, 't', "both.llvm.1" }, { TEXT + 0x30, 't', "both" },
        { TEXT + 0x40, 't', "copy.isra.0" },
        { TEXT + 0x50, 't', "part.lto_priv.0" },
        { TEXT + 0x60, 't', "twice.__uniq.77.llvm.1" },
        { TEXT + 0x70, 't', "odd.llvm.x" }, { TEXT + 0x80, 't', ".llvm.1" },
    };
    static const struct { const char *name; uint64_t at; } rows[] = {
        { "refill", 0x10 }, { "refill.llvm.15033911", 0x10 },
        { "both", 0x30 }, { "both.llvm.1", 0x20 }, { "part", 0x50 },
        { "twice", 0x60 }, { "twice.__uniq.77.llvm.1", 0x60 },
        { "copy", 0 }, { "refill.llvm.2", 0 }, { "refil", 0 }, { "odd", 0 },
        { "", 0 }, { ".llvm.1", 0x80 },
    };
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    g_autoptr(GArray) vas = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GsSymbol sym;

    for (size_t i = 0; i < G_N_ELEMENTS(renamed); i++) {
        const Sym *s = &renamed[i];

        g_assert_true(gs_symtab_add(tab, s->va, s->type, s->name,
                                    strlen(s->name)));
    }
    gs_symtab_seal(tab, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpint(gs_symtab_lookup(tab, rows[i].name, &sym), ==,
                        rows[i].at != 0);
        g_assert_cmphex(rows[i].at ? sym.va : 0, ==,
                        rows[i].at ? TEXT + rows[i].at : 0);
    }
    g_assert_cmpuint(gs_symtab_foreach_named(tab, "both", collect, vas), ==, 2);
    g_assert_cmpuint(gs_symtab_foreach_named(tab, "both.llvm.1", collect, vas),
                     ==, 1);
}

/* A million symbols of one name must not take quadratic time. */
TEST(test_many_duplicates, "/symtab/many-duplicates")
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

/*
 * Very many of one address that cover nothing, and one that does behind them.
 * It takes minutes to go over them each time that somebody asks.
 */
TEST(test_many_of_an_address, "/symtab/many-of-an-address")
{
    enum { N = 1 << 20 };
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    for (unsigned i = 0; i < N; i++) {
        char name[16];

        snprintf(name, sizeof(name), "value_%x", i);
        g_assert_true(gs_symtab_add(tab, TEXT, 'a', name, strlen(name)));
    }
    gs_symtab_add(tab, TEXT, 't', "__work", 6);
    gs_symtab_add(tab, TEXT + 0x100, 'T', "_etext", 6);
    gs_symtab_seal(tab, NULL);
    for (unsigned i = 0; i < 10000; i++) {
        expect_at(tab, TEXT + i % 0x100, "__work", TEXT, 0x100);
    }
}

TEST(test_caps, "/symtab/caps")
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

TEST(test_suggest, "/symtab/suggest")
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

/* ---- room --------------------------------------------------------------- */

/* As many as a distribution kernel has, and names of 26 characters of the
 * words that kernels' are made of; three of ten with a twin. */
#define REAL_FUNCTIONS  140000u
#define REAL_TWINS      60000u
#define REAL_BYTES_MAX  (4u << 20)

static const char *const words[] = {
    "kmem", "cache", "alloc", "free", "init", "exit", "register", "device",
    "driver", "queue", "request", "update", "inode", "dentry", "lookup",
    "handler", "event", "timer", "task", "sched", "group", "page", "folio",
    "table", "range", "flush", "sync", "async", "net", "sock", "packet",
    "filter", "trace", "probe", "state", "show", "store", "attr", "sysfs",
    "debug", "xfs", "ext4", "btrfs", "nfs", "tcp", "udp", "ipv6", "route",
};

static const char *word(GRand *rand)
{
    return words[g_rand_int_range(rand, 0, G_N_ELEMENTS(words))];
}

static char *real_name(GRand *rand, unsigned i)
{
    unsigned n = g_rand_int_range(rand, 2, 5);
    GString *s = g_string_new(word(rand));

    while (n--) {
        g_string_append_printf(s, "_%s", word(rand));
    }
    if (i % 4 == 0) {
        g_string_append_printf(s, ".%u", i);
    }
    return g_string_free(s, FALSE);
}

/*
 * Names written as kallsyms writes them: characters are tokens of their own,
 * and other codes stand for pairs of letters, about two characters a code.
 */
typedef struct Coder {
    GsNameCodes *codes;
    uint8_t code_of[128][128];      /* of a pair; 0: none */
    unsigned next;
    GByteArray *names;
} Coder;

static void add_pairs(Coder *c, const char *text)
{
    for (const char *p = text; p[0] && p[1]; p += 2) {
        uint8_t *code = &c->code_of[(uint8_t)p[0]][(uint8_t)p[1]];

        while (!*code && g_ascii_isgraph(c->next)) {
            c->next++;
        }
        if (!*code && c->next < 256) {
            *code = c->next++;
            gs_codes_set(c->codes, *code, p, 2);
        }
    }
}

static void coder_init(Coder *c)
{
    memset(c, 0, sizeof(*c));
    c->codes = gs_codes_new_plain();
    c->next = 1;
    c->names = g_byte_array_new();
    add_pairs(c, "__pfx_");
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        add_pairs(c, words[i]);
    }
}

/* Returns: where the entry of @text, a type letter and name, begins. */
static size_t coder_put(Coder *c, const char *text)
{
    uint8_t entry[2 + GS_CODES_TEXT_MAX], codes[GS_CODES_TEXT_MAX], *end;
    size_t at = c->names->len, n = 0;

    for (const char *p = text; *p; p++) {
        uint8_t pair = c->code_of[(uint8_t)p[0]][(uint8_t)p[1]];

        codes[n++] = pair ? pair : (uint8_t)*p;
        p += pair != 0;
    }
    end = gs_codes_put_length(entry, n);
    memcpy(end, codes, n);
    g_byte_array_append(c->names, entry, end + n - entry);
    return at;
}

/* (owned) a table of a kernel's names, in tokens; not sealed, and its
 * bytes in @coded are to be kept until it is sealed. */
static GsSymtab *new_real(GPtrArray *names, GByteArray **coded)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(size_t));
    GsSymtab *tab;
    static Coder c;

    coder_init(&c);
    for (unsigned i = 0; i < REAL_FUNCTIONS; i++) {
        char *name = real_name(rand, i);
        g_autofree char *typed = g_strconcat("t", name, NULL);
        g_autofree char *twin = g_strconcat("t__pfx_", name, NULL);
        size_t own = coder_put(&c, typed), twins = coder_put(&c, twin);

        g_array_append_val(at, twins);
        g_array_append_val(at, own);
        g_ptr_array_add(names, name);
    }
    tab = gs_symtab_new_coded(c.codes, c.names->data);
    for (unsigned i = 0; i < REAL_FUNCTIONS; i++) {
        uint64_t va = TEXT + 0x80 * i;

        if (i < REAL_TWINS) {
            g_assert_true(gs_symtab_add_coded(
                tab, va, g_array_index(at, size_t, 2 * i)));
        }
        g_assert_true(gs_symtab_add_coded(
            tab, va + 0x10, g_array_index(at, size_t, 2 * i + 1)));
    }
    *coded = c.names;
    return tab;
}

static void expect_real(const GsSymtab *tab, uint64_t va, const char *name)
{
    GsSymbol sym;

    g_assert_true(gs_symtab_symbolize(tab, va, &sym));
    g_assert_cmphex(sym.va, ==, va);
    g_assert_cmpstr(sym.name, ==, name);
    g_assert_true(gs_symtab_lookup(tab, name, &sym));
    g_assert_cmphex(sym.va, <=, va);
    g_assert_cmpstr(sym.name, ==, name);
}

TEST(test_real_size, "/symtab/real-size")
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GByteArray) coded = NULL;
    g_autoptr(GsSymtab) tab = new_real(names, &coded);

    gs_symtab_seal(tab, NULL);
    g_assert_cmpuint(gs_symtab_n(tab), ==, REAL_FUNCTIONS + REAL_TWINS);
    g_test_message("%zu symbols in %zu bytes", gs_symtab_n(tab),
                   gs_symtab_bytes(tab));
    g_assert_cmpuint(gs_symtab_bytes(tab), <=, REAL_BYTES_MAX);
    for (unsigned i = 0; i < REAL_FUNCTIONS; i++) {
        g_autofree char *twin = g_strconcat("__pfx_", names->pdata[i], NULL);

        expect_real(tab, TEXT + 0x80 * i + 0x10, names->pdata[i]);
        if (i < REAL_TWINS) {
            expect_real(tab, TEXT + 0x80 * i, twin);
        }
    }
}

/* What malloc handed out is what gs_symtab_bytes() says, but for its own
 * overhead. */
TEST(test_bytes_are_all, "/symtab/bytes-are-all")
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GByteArray) coded = NULL;
    g_autoptr(GsSymtab) tab = new_real(names, &coded);
    struct mallinfo2 with, without;
    size_t bytes;

    gs_symtab_seal(tab, NULL);
    bytes = gs_symtab_bytes(tab);
    with = mallinfo2();
    g_clear_pointer(&tab, gs_symtab_free);
    without = mallinfo2();
    g_assert_cmpuint(with.uordblks + with.hblkhd, <=,
                     without.uordblks + without.hblkhd + bytes + 65536);
}

/* Absolute values, low ones and such that are far apart. */
TEST(test_far_apart, "/symtab/far-apart")
{
    static const uint64_t vas[] = {
        0, 5, UINT32_MAX, 1ull << 32, 1ull << 40, TEXT, TEXT + 0x10,
        UINT64_MAX - 1,
    };
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(vas); i++) {
        char name[] = { 'v', 'a', '0' + i, 0 };

        g_assert_true(gs_symtab_add(tab, vas[i], vas[i] < TEXT ? 'A' : 'T',
                                    name, 3));
    }
    gs_symtab_seal(tab, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(vas); i++) {
        char name[] = { 'v', 'a', '0' + i, 0 };

        expect_named(tab, name, vas[i], i + 1 < G_N_ELEMENTS(vas) ?
                     vas[i + 1] - vas[i] : 0);
    }
    expect_at(tab, TEXT - 1, NULL, 0, 0);
    expect_at(tab, TEXT + 0xf, "va5", TEXT, 0x10);
    expect_at(tab, UINT64_MAX - 1, "va7", UINT64_MAX - 1, 0);
}

/* Names that begin as a twin's does, and are none or no plain one. */
TEST(test_twins, "/symtab/twins")
{
    static const Sym of[] = {
        { TEXT, 't', "__pfx_" }, { TEXT + 1, 't', "__pfx_a" },
        { TEXT + 2, 'T', "a" }, { TEXT + 3, 't', "__pfx___pfx_b" },
        { TEXT + 4, 't', "__pfx_b" }, { TEXT + 5, 't', "b" },
        { TEXT + 6, 't', "__pfx_c" }, { TEXT + 7, 't', "cc" },
        { TEXT + 8, 't', "__pfx_d" },
    };
    g_autoptr(GsSymtab) tab = gs_symtab_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(of); i++) {
        g_assert_true(gs_symtab_add(tab, of[i].va, of[i].type, of[i].name,
                                    strlen(of[i].name)));
    }
    gs_symtab_seal(tab, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(of); i++) {
        GsSymbol sym;

        expect_at(tab, of[i].va, of[i].name, of[i].va,
                  i + 1 < G_N_ELEMENTS(of));
        g_assert_true(gs_symtab_lookup(tab, of[i].name, &sym));
        g_assert_cmphex(sym.va, ==, of[i].va);
        g_assert_cmpint(sym.type, ==, of[i].type);
    }
}
