/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a module's functions: any names that a guest may have. */
#include <string.h>

#include "tests/lib/test-main.h"
#include "kalloc-tracer/modules/module-names.h"

#define BASE    0xffffffffc0000000ull
#define ID      0xffffffffc0800000ull
#define ROOM    (64u << 20)

static GsKernel *kernel_new(const GsModuleSymbol *syms, size_t n)
{
    static const char map[] = "ffffffff81000000 T _stext\n"
                              "ffffffff81000800 T _etext\n"
                              "ffffffff82001000 B _end\n";
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "map", NULL);

    g_assert_nonnull(k);
    g_assert_true(gs_kernel_add_module_data(k, ID, "m", BASE, 0x1000, syms, n,
                                            0, NULL, NULL, 0, NULL));
    return k;
}

static void check(const KtModuleNames *n, uint64_t start, uint64_t pc,
                  const char *want)
{
    const GsModuleArea area = { start, BASE + 0x1000 };
    g_autofree char *name = kt_module_names_of(n, &area, pc);

    g_assert_cmpstr(name, ==, want);
}

/* Return addresses may be of the byte behind; what stands before the area is
 * no function of it. */
static void test_functions(void)
{
    static const GsModuleSymbol syms[] = {
        { BASE + 0x100, "local", 't' }, { BASE + 0x100, "f", 'T' },
        { BASE + 0x180, "data", 'd' }, { BASE + 0x200, "g", 'W' },
    };
    GsKernel *k = kernel_new(syms, G_N_ELEMENTS(syms));
    KtModuleNames *n = kt_module_names_new(k, ID, ROOM);

    check(n, BASE, BASE + 0x100, NULL);
    check(n, BASE, BASE + 0x101, "f+0x1[m]");
    check(n, BASE, BASE + 0x190, "f+0x90[m]");
    check(n, BASE, BASE + 0x200, "f+0x100[m]");
    check(n, BASE, BASE + 0x201, "g+0x1[m]");
    check(n, BASE + 0x800, BASE + 0x900, NULL);
    check(NULL, BASE, BASE + 0x101, NULL);
    kt_module_names_free(n);
    gs_kernel_free(k);
}

/* One of a million at one address is kept: the others name nothing, and each
 * look for a name would go through them. */
static void test_many_at_one_address(void)
{
    const unsigned many = 1u << 20;
    g_autofree GsModuleSymbol *syms = g_new(GsModuleSymbol, many);
    KtModuleNames *n;
    GsKernel *k;

    for (unsigned i = 0; i < many; i++) {
        syms[i] = (GsModuleSymbol) { BASE + 0x100, i ? "next" : "first", 't' };
    }
    k = kernel_new(syms, many);
    n = kt_module_names_new(k, ID, ROOM);
    g_assert_cmpuint(kt_module_names_bytes(n), <, 100);
    check(n, BASE, BASE + 0x900, "first+0x800[m]");
    check(n, BASE + 0x800, BASE + 0x900, NULL);
    kt_module_names_free(n);
    gs_kernel_free(k);
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/module-names/functions", test_functions },
        { "/module-names/many-at-one-address", test_many_at_one_address },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
