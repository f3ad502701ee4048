/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of modules, and reads of struct module in both layouts, from
 * correct and from hostile guest memory.
 */
#include "tests/lib/module-table.h"
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"

#define BASE 0xffffffffc0100000ull
#define ID_A 0xffffffffc0103000ull
#define ID_B 0xffffffffc0203000ull

static void add_at(ModuleTable *t, uint64_t id, const char *name,
                   uint64_t base, const GsModuleSymbol *syms, size_t n)
{
    g_autoptr(GError) err = NULL;

    module_table_add(t, id, name, base, syms, n, &err);
    g_assert_no_error(err);
}

static size_t n_modules(const ModuleTable *t)
{
    return gs_modules_counts(t->modules).modules;
}

static const GsModuleSymbol syms_a[] = {
    { .va = BASE + 0x200, .name = "second", .type = 't' },
    { .va = BASE + 0x100, .name = "first", .type = 'T' },
    { .va = BASE + 0x200, .name = "second_alias", .type = 'T' },
    { .va = BASE + 0x300, .name = "twice", .type = 't' },
    { .va = BASE + 0x400, .name = "twice", .type = 't' },
    { .va = BASE + 0x3000, .name = "data", .type = 'd' },
};

static void add_a(ModuleTable *t)
{
    add_at(t, ID_A, "alpha", BASE, syms_a, G_N_ELEMENTS(syms_a));
}

static void assert_names(ModuleTable *t, uint64_t va, const char *name,
                         uint64_t size)
{
    GsSymbol s;

    g_assert_true(gs_modules_symbolize(t->modules, va, GS_ERA_NOW, &s));
    g_assert_cmpstr(s.name, ==, name);
    g_assert_cmpuint(s.size, ==, size);
}

static void assert_nameless(ModuleTable *t, uint64_t va)
{
    GsSymbol s;

    g_assert_false(gs_modules_symbolize(t->modules, va, GS_ERA_NOW, &s));
}

/* A case with an empty table @t. */
#define TABLE_TEST(fn, path) \
    TEST_IN(g_autoptr(ModuleTable), ModuleTable *t, \
            module_table_new(), fn, path)

TABLE_TEST(test_symbolize, "/modules/symbolize")
{
    assert_nameless(t, BASE);
    add_a(t);
    assert_nameless(t, BASE + 0xff);
    assert_names(t, BASE + 0x100, "first", 0x100);
    assert_names(t, BASE + 0x1ff, "first", 0x100);
    assert_names(t, BASE + 0x2ff, "second", 0x100);
    assert_names(t, BASE + MODULE_SIZE - 1, "data", 0x1000);
    assert_nameless(t, BASE + MODULE_SIZE);
    assert_nameless(t, BASE - 1);
    assert_nameless(t, UINT64_MAX);
}

TEST(test_lookup, "/modules/lookup")
{
    static const GsModuleSymbol syms_b[] = {
        { .va = BASE + 0x100100, .name = "first", .type = 't' },
        { .va = BASE + 0x100200, .name = "twice", .type = 'T' },
    };
    g_autoptr(ModuleTable) t = module_table_new();
    GsSymbol s;

    add_a(t);
    g_assert_true(gs_modules_lookup(t->modules, NULL, "twice", &s));
    g_assert_cmphex(s.va, ==, BASE + 0x300);
    add_at(t, ID_B, "beta", BASE + 0x100000, syms_b, 2);
    g_assert_true(gs_modules_lookup(t->modules, NULL, "first", &s));
    g_assert_cmphex(s.va, ==, BASE + 0x100);
    g_assert_true(gs_modules_lookup(t->modules, NULL, "twice", &s));
    g_assert_cmphex(s.va, ==, BASE + 0x100200);
    g_assert_cmpstr(s.module, ==, "beta");
    g_assert_true(gs_modules_lookup(t->modules, "alpha", "twice", &s));
    g_assert_cmphex(s.va, ==, BASE + 0x300);
    g_assert_false(gs_modules_lookup(t->modules, "beta", "data", &s));
    g_assert_false(gs_modules_lookup(t->modules, "gamma", "data", &s));
    g_assert_false(gs_modules_lookup(t->modules, NULL, "alpha", &s));
    g_assert_false(gs_modules_lookup(t->modules, NULL, "nothing", &s));
}

typedef struct Visit {
    uint64_t va[4];
    unsigned n;
    unsigned stop_after;
    const GsModules *m;
} Visit;

static bool visit(const GsSymbol *sym, void *opaque)
{
    Visit *v = opaque;
    GsSymbol again;

    /* Asking from inside must not hang. */
    g_assert_true(gs_modules_symbolize(v->m, sym->va, GS_ERA_NOW, &again));
    v->va[v->n++] = sym->va;
    return v->n != v->stop_after;
}

TABLE_TEST(test_foreach, "/modules/foreach")
{
    Visit v = { .m = t->modules };
    Visit one = { .m = t->modules, .stop_after = 1 };

    add_a(t);
    g_assert_cmpuint(gs_modules_foreach_named(t->modules, "twice", false, visit,
                                              &v), ==, 2);
    g_assert_cmphex(v.va[0], ==, BASE + 0x300);
    g_assert_cmphex(v.va[1], ==, BASE + 0x400);
    g_assert_cmpuint(gs_modules_foreach_named(t->modules, "twice", false, visit,
                                              &one), ==, 1);
    g_assert_cmpuint(gs_modules_foreach_named(t->modules, "none", false, visit,
                                              &v), ==, 0);
}

TABLE_TEST(test_drop_keeps_names, "/modules/drop-keeps-names")
{
    GsSymbol s;

    add_a(t);
    g_assert_true(gs_modules_is_text(t->modules, BASE));
    g_assert_cmpuint(n_modules(t), ==, 1);
    g_assert_cmpuint(gs_modules_counts(t->modules).symbols, ==, 6);
    module_table_drop(t, ID_A);
    g_assert_false(gs_modules_is_text(t->modules, BASE));
    g_assert_cmpuint(n_modules(t), ==, 0);
    g_assert_cmpuint(gs_modules_counts(t->modules).symbols, ==, 0);
    assert_names(t, BASE + 0x100, "first", 0x100);
    g_assert_true(gs_modules_lookup(t->modules, "alpha", "data", &s));
}

TEST(test_range_reused, "/modules/range-reused")
{
    static const GsModuleSymbol other[] = {
        { .va = BASE + 0x1100, .name = "other", .type = 'T' },
    };
    g_autoptr(ModuleTable) t = module_table_new();

    add_a(t);
    module_table_drop(t, ID_A);
    add_at(t, ID_B, "beta", BASE + 0x1000, other, 1);
    assert_nameless(t, BASE + 0x100);
    assert_nameless(t, BASE + 0x1000);
    assert_names(t, BASE + 0x1100, "other", MODULE_SIZE - 0x100);
    g_assert_cmpuint(n_modules(t), ==, 1);
    /* Over a live one whose unloading was missed. */
    add_a(t);
    assert_nameless(t, BASE + MODULE_SIZE + 0x100);
    g_assert_cmpuint(n_modules(t), ==, 1);
}

TABLE_TEST(test_replaced_and_cleared, "/modules/replaced-and-cleared")
{
    const char *name;
    GsSymbol s;

    add_a(t);
    g_assert_true(gs_modules_symbolize(t->modules, BASE + 0x100, GS_ERA_NOW,
                                       &s));
    name = s.name;
    add_at(t, ID_A, "alpha", BASE + 0x10000, NULL, 0);
    g_assert_cmpuint(n_modules(t), ==, 1);
    g_assert_cmpuint(gs_modules_counts(t->modules).symbols, ==, 0);
    assert_names(t, BASE + 0x100, "first", 0x100);
    gs_modules_clear(t->modules);
    g_assert_cmpuint(n_modules(t), ==, 0);
    assert_nameless(t, BASE + 0x100);
    g_assert_cmpstr(name, ==, "first");
}

TABLE_TEST(test_many_loads, "/modules/many-loads")
{
    uint64_t id = ID_A;

    for (int i = 0; i < 3000; i++, id += 64) {
        GsModuleSymbol s = {
            .va = BASE + i * MODULE_SIZE, .name = "f", .type = 't'
        };

        add_at(t, id, "mod", s.va, &s, 1);
        module_table_drop(t, id);
    }
    g_assert_cmpuint(n_modules(t), ==, 0);
    assert_nameless(t, BASE);
    assert_names(t, BASE + 2999 * MODULE_SIZE, "f", MODULE_SIZE);
    g_assert_cmpuint(gs_orc_set_n_retired(t->orc), ==, 0);
}

/* A thousand symbols of a module at @base; false when it is refused. */
static bool add_thousand(ModuleTable *t, uint64_t id, uint64_t base)
{
    g_autofree GsModuleSymbol *s = g_new(GsModuleSymbol, 1000);
    g_autoptr(GError) err = NULL;

    for (int i = 0; i < 1000; i++) {
        s[i] = (GsModuleSymbol) { .va = base + i, .name = "f", .type = 't' };
    }
    return module_table_add(t, id, "mod", base, s, 1000, &err);
}

/* Where there is room for two, a third is refused while both are loaded; the
 * names of one that is gone make way for it. */
TABLE_TEST(test_bounded_room, "/modules/bounded-room")
{
    uint64_t bytes;

    g_assert_true(add_thousand(t, ID_A, BASE));
    bytes = gs_modules_bytes(t->modules);
    g_assert_cmpuint(bytes, >, 24 * 1000);
    g_assert_cmpuint(bytes, <, 64 * 1000);
    gs_modules_set_room(t->modules, 3 * bytes);
    g_assert_true(add_thousand(t, ID_A + 64, BASE + MODULE_SIZE));
    gs_modules_set_room(t->modules, bytes);
    g_assert_false(add_thousand(t, ID_A + 128, BASE + 2 * MODULE_SIZE));
    g_assert_cmpuint(n_modules(t), ==, 2);
    module_table_drop(t, ID_A);
    assert_names(t, BASE, "f", 1);
    g_assert_true(add_thousand(t, ID_A + 128, BASE + 2 * MODULE_SIZE));
    assert_nameless(t, BASE);
    assert_names(t, BASE + MODULE_SIZE, "f", 1);
    assert_names(t, BASE + 2 * MODULE_SIZE, "f", 1);
    g_assert_cmpuint(gs_modules_bytes(t->modules), <=, 2 * bytes);
}

static gpointer query_main(gpointer opaque)
{
    ModuleTable *t = opaque;
    GsSymbol s;

    for (int i = 0; i < 3000; i++) {
        if (gs_modules_symbolize(t->modules, BASE + 0x100, GS_ERA_NOW, &s)) {
            g_assert_cmpstr(s.name, ==, "first");
        }
        gs_modules_lookup(t->modules, NULL, "twice", &s);
        gs_modules_is_text(t->modules, BASE);
    }
    return NULL;
}

TABLE_TEST(test_race, "/modules/race")
{
    GThread *thread = g_thread_new("query", query_main, t);

    for (int i = 0; i < 1000; i++) {
        add_a(t);
        module_table_drop(t, ID_A);
    }
    g_thread_join(thread);
}

/* ---- struct module ---------------------------------------------------- */

/* One flat piece of guest memory at GUEST; everything lies in it. */
#define GUEST 0xffff888000000000ull

typedef struct FakeMem {
    uint8_t bytes[0x4000];
} FakeMem;

static bool fake_read(void *opaque, uint64_t va, void *buf, size_t len)
{
    FakeMem *f = opaque;

    if (va < GUEST || va - GUEST > sizeof(f->bytes) ||
        len > sizeof(f->bytes) - (va - GUEST)) {
        return false;
    }
    memcpy(buf, f->bytes + (va - GUEST), len);
    return true;
}

static void poke(FakeMem *f, uint32_t off, uint64_t v, size_t len)
{
    v = GUINT64_TO_LE(v);
    memcpy(f->bytes + off, &v, len);
}

enum {
    STRUCT = 0x100, KALLSYMS = 0x400, SYMTAB = 0x800, STRTAB = 0x1000,
    TYPETAB = 0x1800, ORC_IP = 0x2000, ORC = 0x2800,
};

static const GsModuleShape shape_6_3 = {
    .size = 0x200, .name = 24, .name_size = 56,
    .mem = {
        { .base = 0x80, .size = 0x88, .text_size = 0x8c },
        { .base = 0xa0, .size = 0xa8, .text_size = 0xac },
    },
    .n_mem = 2,
    .has_kallsyms = true, .kallsyms = 0xc0,
    .sym_symtab = 0, .sym_num = 8, .sym_strtab = 16,
    .has_typetab = true, .sym_typetab = 24,
    .has_orc = true, .num_orcs = 0xd0, .orc_ip = 0xd8, .orc = 0xe0,
};

static const GsModuleShape shape_6_4 = {
    .size = 0x200, .name = 24, .name_size = 56,
    .mem = {
        { .base = 0x80, .size = 0x88, .text = true },
        { .base = 0x90, .size = 0x98 },
        { .base = 0xa0, .size = 0xa8, .text = true },
    },
    .n_mem = 3,
    .has_kallsyms = true, .kallsyms = 0xc0,
    .sym_symtab = 0, .sym_num = 8, .sym_strtab = 16,
    .has_typetab = true, .sym_typetab = 24,
    .has_orc = true, .num_orcs = 0xd0, .orc_ip = 0xd8, .orc = 0xe0,
};

static void put_sym(FakeMem *f, unsigned i, uint32_t name, uint8_t info,
                    uint16_t shndx, uint64_t va)
{
    uint32_t at = SYMTAB + 24 * i;

    poke(f, at, name, 4);
    poke(f, at + 4, info, 1);
    poke(f, at + 6, shndx, 2);
    poke(f, at + 8, va, 8);
}

static FakeMem *fake_new(void)
{
    static const char strtab[] = "\0init\0ext\0.Llabel\0va\x1br\0elsewhere";
    FakeMem *f = g_new0(FakeMem, 1);

    g_strlcpy((char *)f->bytes + STRUCT + 24, "fake", 56);
    poke(f, STRUCT + 0xc0, GUEST + KALLSYMS, 8);
    poke(f, STRUCT + 0xd0, 2, 4);
    poke(f, STRUCT + 0xd8, GUEST + ORC_IP, 8);
    poke(f, STRUCT + 0xe0, GUEST + ORC, 8);
    poke(f, KALLSYMS, GUEST + SYMTAB, 8);
    poke(f, KALLSYMS + 8, 6, 4);
    poke(f, KALLSYMS + 16, GUEST + STRTAB, 8);
    poke(f, KALLSYMS + 24, GUEST + TYPETAB, 8);
    memcpy(f->bytes + STRTAB, strtab, sizeof(strtab));
    memcpy(f->bytes + TYPETAB, "?tUtbt", 6);
    put_sym(f, 1, 1, 0x02, 1, BASE + 0x10);
    put_sym(f, 2, 6, 0x12, 0, BASE + 0x20);             /* undefined */
    put_sym(f, 3, 10, 0x02, 1, BASE + 0x30);            /* a label */
    put_sym(f, 4, 18, 0x01, 2, BASE + 0x1010);
    put_sym(f, 5, 23, 0x02, 1, 0xffffffff81000000ull);  /* not its own */
    poke(f, ORC_IP, (uint32_t)(BASE - (GUEST + ORC_IP)), 4);
    return f;
}

static void layout_old(FakeMem *f)
{
    poke(f, STRUCT + 0x80, BASE, 8);
    poke(f, STRUCT + 0x88, 0x2000, 4);
    poke(f, STRUCT + 0x8c, 0x1000, 4);
}

static void layout_new(FakeMem *f)
{
    poke(f, STRUCT + 0x80, BASE, 8);
    poke(f, STRUCT + 0x88, 0x1000, 4);
    poke(f, STRUCT + 0x90, BASE + 0x1000, 8);
    poke(f, STRUCT + 0x98, 0x1000, 4);
}

static void check_info(const GsModuleInfo *info)
{
    g_assert_cmpstr(info->name, ==, "fake");
    g_assert_cmpuint(info->n_text, ==, 1);
    g_assert_cmphex(info->text[0].start, ==, BASE);
    g_assert_cmphex(info->text[0].end, ==, BASE + 0x1000);
    g_assert_cmphex(info->mem[info->n_mem - 1].end, ==, BASE + 0x2000);
    g_assert_cmpuint(info->n_syms, ==, 2);
    g_assert_cmpstr(info->syms[0].name, ==, "init");
    g_assert_cmpint(info->syms[0].type, ==, 't');
    g_assert_cmpstr(info->syms[1].name, ==, "va?r");
    g_assert_cmpint(info->syms[1].type, ==, 'b');
    g_assert_cmpuint(info->n_orc, ==, 2);
    g_assert_cmphex(info->orc_ip_va, ==, GUEST + ORC_IP);
}

TEST(test_read, "/modules/read")
{
    g_autofree FakeMem *old = fake_new(), *new = fake_new();
    GsMem mem_old = { fake_read, old }, mem_new = { fake_read, new };
    g_autoptr(GsModuleInfo) info_old = NULL;
    g_autoptr(GsModuleInfo) info_new = NULL;
    g_autoptr(GError) err = NULL;

    layout_old(old);
    info_old = gs_module_read(&shape_6_3, &mem_old, GUEST + STRUCT, &err);
    g_assert_no_error(err);
    check_info(info_old);
    layout_new(new);
    info_new = gs_module_read(&shape_6_4, &mem_new, GUEST + STRUCT, &err);
    g_assert_no_error(err);
    check_info(info_new);
}

TEST(test_read_without_typetab, "/modules/read-without-typetab")
{
    g_autofree FakeMem *f = fake_new();
    GsMem mem = { fake_read, f };
    GsModuleShape shape = shape_6_3;
    g_autoptr(GsModuleInfo) info = NULL;

    layout_old(f);
    put_sym(f, 1, 1, 0x12, 1, BASE + 0x10);
    shape.has_typetab = false;
    info = gs_module_read(&shape, &mem, GUEST + STRUCT, NULL);
    g_assert_nonnull(info);
    g_assert_cmpint(info->syms[0].type, ==, 'T');
    g_assert_cmpint(info->syms[1].type, ==, 'd');
}

/* One lie each, in a struct module that is fine otherwise. */
static const struct {
    uint32_t off;
    uint64_t value;
    size_t len;
    bool fatal;
} lies[] = {
    { STRUCT + 24, 0, 1, true },                    /* no name */
    { STRUCT + 0x80, 0x1000, 8, true },             /* user address */
    { STRUCT + 0x80, 0, 8, true },                  /* nowhere */
    { STRUCT + 0x80, UINT64_MAX - 4, 8, true },     /* wraps */
    { STRUCT + 0x88, UINT32_MAX, 4, true },         /* huge */
    { STRUCT + 0x8c, UINT32_MAX, 4, false },        /* text beyond the area */
    { STRUCT + 0xc0, 8, 8, true },                  /* bad pointers */
    { STRUCT + 0xc0, 0, 8, false },                 /* no symbols at all */
    { KALLSYMS, 8, 8, true },
    { KALLSYMS + 8, UINT32_MAX, 4, true },
    { KALLSYMS + 8, 0x10000, 4, true },
    { KALLSYMS + 8, 0, 4, false },
    { KALLSYMS + 16, 8, 8, true },
    { KALLSYMS + 24, 8, 8, false },
    { SYMTAB + 24, UINT32_MAX, 4, true },
    { SYMTAB + 24, 0x100000, 4, true },
    { STRUCT + 0xd0, UINT32_MAX, 4, true },
    { STRUCT + 0xd0, 0x8000, 4, true },
    { STRUCT + 0xd8, 8, 8, true },
    { STRUCT + 0xe0, 8, 8, true },
    { STRUCT + 0xe0, 0, 8, false },
};

TEST(test_read_lies, "/modules/read-lies")
{
    for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
        g_autofree FakeMem *f = fake_new();
        GsMem mem = { fake_read, f };
        g_autoptr(GsModuleInfo) info = NULL;
        g_autoptr(GError) err = NULL;

        layout_old(f);
        poke(f, lies[i].off, lies[i].value, lies[i].len);
        info = gs_module_read(&shape_6_3, &mem, GUEST + STRUCT, &err);
        if (lies[i].fatal) {
            g_assert_null(info);
            g_assert_error(err, GS_ERROR, GS_ERROR_GUEST);
        } else {
            g_assert_no_error(err);
            g_assert_nonnull(info);
        }
    }
}

TEST(test_read_unreadable, "/modules/read-unreadable")
{
    g_autofree FakeMem *f = fake_new();
    GsMem mem = { fake_read, f };
    g_autoptr(GError) err = NULL;

    g_assert_null(gs_module_read(&shape_6_3, &mem, 0x1000, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_GUEST);
}
