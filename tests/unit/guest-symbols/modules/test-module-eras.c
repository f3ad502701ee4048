/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of modules at a time: other modules lie at the same addresses before
 * and after. The tests know which module they added when.
 */
#include "tests/lib/module-table.h"
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

static void add_a(ModuleTable *t)
{
    static const GsModuleSymbol syms[] = {
        { BASE + 0x100, "first", 'T' }, { BASE + 0x3000, "data", 'd' },
    };

    add_at(t, ID_A, "alpha", BASE, syms, G_N_ELEMENTS(syms));
}

typedef struct Visit {
    uint64_t va[4];
    unsigned n;
} Visit;

static bool visit(const GsSymbol *sym, void *opaque)
{
    Visit *v = opaque;

    v->va[v->n++] = sym->va;
    return true;
}

/* Return the era of a backtrace that is taken now and has one frame, at @va. */
static uint32_t era_of(ModuleTable *t, uint64_t va)
{
    return gs_modules_era(t->modules, &va, 1).all;
}

static void assert_named_at(ModuleTable *t, uint64_t va, uint32_t era,
                            const char *module)
{
    GsSymbol s = { 0 };

    gs_modules_symbolize(t->modules, va, era, &s);
    g_assert_cmpstr(s.module, ==, module);
    g_assert_true(!module ||
                  s.load == gs_modules_load_at(t->modules, va, era));
}

/* Three modules at one place: a stack of each time has the names of its time,
 * also while other modules come and go elsewhere. */
TEST(test_names_of_their_time, "/module-eras/names-of-their-time")
{
    static const GsModuleSymbol f[] = { { BASE + 0x80, "f", 't' } };
    static const GsModuleSymbol g[] = { { BASE + 0x40, "g", 't' } };
    static const GsModuleSymbol far[] = { { BASE + 0x90000, "far", 't' } };
    g_autoptr(ModuleTable) t = module_table_new();
    uint32_t a, b, c;

    add_a(t);
    a = era_of(t, BASE + 0x100);
    module_table_drop(t, ID_A);
    add_at(t, ID_B, "elsewhere", BASE + 0x90000, far, 1);
    g_assert_cmpuint(era_of(t, BASE + 0x100), ==, a);
    add_at(t, ID_A, "beta", BASE, f, 1);
    b = era_of(t, BASE + 0x100);
    module_table_drop(t, ID_A);
    add_at(t, ID_A, "gamma", BASE, g, 1);
    c = era_of(t, BASE + 0x100);
    g_assert_true(a && a < b && b < c);
    assert_named_at(t, BASE + 0x100, a, "alpha");
    assert_named_at(t, BASE + 0x100, b, "beta");
    assert_named_at(t, BASE + 0x100, c, "gamma");
    assert_named_at(t, BASE + 0x100, GS_ERA_NOW, "gamma");
    assert_named_at(t, BASE + 0x50, b, NULL);
    assert_named_at(t, BASE + 0x50, c, "gamma");
}

/* A stack through two modules has the era of the one that was loaded later. The
 * first frame has one of its own: callers are told apart by it. */
TEST(test_era_of_two_modules, "/module-eras/era-of-two")
{
    static const GsModuleSymbol far[] = { { BASE + 0x90000, "far", 't' } };
    const uint64_t pc[] = { BASE + 0x110, BASE + 0x90010, 0x1000 };
    g_autoptr(ModuleTable) t = module_table_new();
    GsStackEra era;

    add_a(t);
    era = gs_modules_era(t->modules, pc, 3);
    g_assert_cmpuint(era.all, ==, era.first);
    add_at(t, ID_B, "elsewhere", BASE + 0x90000, far, 1);
    era = gs_modules_era(t->modules, pc, 3);
    g_assert_cmpuint(era.all, >, era.first);
    assert_named_at(t, pc[0], era.all, "alpha");
    assert_named_at(t, pc[0], era.first, "alpha");
    assert_named_at(t, pc[1], era.all, "elsewhere");
    assert_named_at(t, pc[1], era.first, NULL);
    era = gs_modules_era(t->modules, pc + 2, 1);
    g_assert_cmpuint(era.all + era.first, ==, 0);
}

/* A module that is loaded again as it was has the number of its first load:
 * a loop of loads adds no stacks and no memory. */
TEST(test_loaded_again, "/module-eras/loaded-again")
{
    static const GsModuleSymbol f[] = { { BASE + 0x80, "f", 't' } };
    g_autoptr(ModuleTable) t = module_table_new();
    uint64_t bytes;
    uint32_t a;

    add_a(t);
    a = era_of(t, BASE + 0x100);
    bytes = gs_modules_bytes(t->modules);
    for (int i = 0; i < 100; i++) {
        module_table_drop(t, ID_A);
        add_a(t);
        g_assert_cmpuint(era_of(t, BASE + 0x100), ==, a);
    }
    g_assert_cmpuint(gs_modules_bytes(t->modules), ==, bytes);
    module_table_drop(t, ID_A);
    add_at(t, ID_B, "beta", BASE, f, 1);
    module_table_drop(t, ID_B);
    add_a(t);
    g_assert_cmpuint(era_of(t, BASE + 0x100), >, a);
    assert_named_at(t, BASE + 0x100, a, "alpha");
    assert_named_at(t, BASE + 0x100, a + 1, "beta");
}

/* What was evicted has no name, also if an older module at the place has. */
TEST(test_evicted_has_no_name, "/module-eras/evicted")
{
    g_autoptr(ModuleTable) t = module_table_new();
    uint32_t last = 0;

    for (int i = 0; i < 2100; i++) {
        GsModuleSymbol s = { BASE + i, "f", 't' };

        add_at(t, ID_A, "mod", BASE, &s, 1);
        g_assert_cmpuint(era_of(t, BASE + i), >, last);
        last = era_of(t, BASE + i);
        module_table_drop(t, ID_A);
    }
    assert_named_at(t, BASE + 0x1000, 1, NULL);
    assert_named_at(t, BASE + 0x1000, last - 1000, "mod");
    assert_named_at(t, BASE + 0x1000, last, "mod");
    g_assert_cmpuint(gs_modules_n_evicted(t->modules), >, 0);
    g_assert_cmpuint(gs_modules_n_evicted(t->modules), ==, 0);
}

TEST(test_functions_of_all_times, "/module-eras/functions-of-all-times")
{
    static const GsModuleSymbol f[] = { { BASE + 0x80, "first", 't' } };
    g_autoptr(ModuleTable) t = module_table_new();
    Visit v = { 0 };
    GsSymbol s;

    add_a(t);
    module_table_drop(t, ID_A);
    add_at(t, ID_B, "beta", BASE, f, 1);
    g_assert_cmpuint(gs_modules_foreach_named(t->modules, "first", false, visit,
                                              &v), ==, 1);
    v.n = 0;
    g_assert_cmpuint(gs_modules_foreach_named(t->modules, "first", true, visit,
                                              &v), ==, 2);
    g_assert_cmphex(v.va[0], ==, BASE + 0x80);
    g_assert_cmphex(v.va[1], ==, BASE + 0x100);
    g_assert_true(gs_modules_lookup(t->modules, "alpha", "data", &s));
    g_assert_cmpuint(s.load, ==, 1);
}
