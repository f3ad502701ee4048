/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The named sets of functions: they have KEDR's 102 functions, and give each
 * one the name that a kernel has for it.
 *
 * KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...]: the symbols of real kernels, too.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"
#include "kalloc-tracer/calls/function-sets.h"

#include <string.h>

/* KEDR's groups, and how many functions each has. */
static const struct {
    const char *set;
    unsigned n;
} groups[] = {
    { "@common_mm", 31 }, { "@ioremap", 7 },  { "@vmm", 9 },
    { "@mem_util", 18 },  { "@kasprintf", 2 }, { "@uaccess", 6 },
    { "@mutex", 6 },      { "@spinlock", 12 }, { "@schedule", 9 },
    { "@waitqueue", 8 },  { "@capable", 1 },
};

static unsigned count(const KtFunctionSet *set)
{
    unsigned n = 0;

    while (kt_function_set_function(set, n)) {
        n++;
    }
    return n;
}

TEST(test_groups, "/function-sets/groups")
{
    g_autofree char *names = kt_function_set_names();
    unsigned all = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(groups); i++) {
        const KtFunctionSet *set = kt_function_set_find(groups[i].set);

        g_assert_nonnull(set);
        g_assert_cmpuint(count(set), ==, groups[i].n);
        g_assert_nonnull(strstr(names, groups[i].set));
        all += groups[i].n;
    }
    g_assert_null(kt_function_set_nth(G_N_ELEMENTS(groups)));
    g_assert_cmpuint(all, ==, 102 + 7);     /* @ioremap is in @common_mm, too */
}

TEST(test_find, "/function-sets/find")
{
    const KtFunctionSet *vmm = kt_function_set_find("vmm");

    g_assert_cmpstr(vmm->name, ==, "vmm");
    g_assert_true(kt_function_set_find("@vmm") == vmm);
    g_assert_true(kt_function_set_find("@virtual_mm") == vmm);
    g_assert_null(kt_function_set_find("@"));
    g_assert_null(kt_function_set_find("@@vmm"));
    g_assert_null(kt_function_set_find("vm"));
}

/* Is the name one of the words? */
static bool has_word(void *opaque, const char *name)
{
    const char *const *words = opaque;

    return g_strv_contains(words, name);
}

TEST(test_resolve, "/function-sets/resolve")
{
    static const char *const words[] = {
        "_copy_from_user", "__arch_copy_from_user", "_copy_to_user",
        "memdup_user", NULL,
    };
    unsigned missing;
    g_auto(GStrv) names =
        kt_function_set_resolve(kt_function_set_find("uaccess"), has_word,
                                (void *)words, &missing);

    /* the best name wins; copy_from_user and _copy_from_user are one */
    g_assert_cmpuint(g_strv_length(names), ==, 3);
    g_assert_cmpstr(names[0], ==, "__arch_copy_from_user");
    g_assert_cmpstr(names[1], ==, "_copy_to_user");
    g_assert_cmpstr(names[2], ==, "memdup_user");
    g_assert_cmpuint(missing, ==, 1);       /* strndup_user */
}

/* _copy_from_user() of riscv64 calls __asm_copy_from_user(): a driver does
 * not. */
TEST(test_resolve_riscv64, "/function-sets/resolve-riscv64")
{
    static const char *const words[] = {
        "__asm_copy_from_user", "_copy_from_user", "__asm_copy_to_user",
        "_copy_to_user", NULL,
    };
    unsigned missing;
    g_auto(GStrv) names =
        kt_function_set_resolve(kt_function_set_find("uaccess"), has_word,
                                (void *)words, &missing);

    g_assert_cmpuint(g_strv_length(names), ==, 2);
    g_assert_cmpstr(names[0], ==, "_copy_from_user");
    g_assert_cmpstr(names[1], ==, "_copy_to_user");
}

/* Each name is a C identifier, and no row is in the table twice. */
TEST(test_rows, "/function-sets/rows")
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const KtFunctionSet *set;
    const KtSetFunction *f;

    for (unsigned s = 0; (set = kt_function_set_nth(s)); s++) {
        for (unsigned i = 0; (f = kt_function_set_function(set, i)); i++) {
            g_assert_cmpuint(strspn(f->names, "abcdefghijklmnopqrstuvwxyz_"
                                    "0123456789 "), ==, strlen(f->names));
            g_assert_null(strstr(f->names, "  "));
            if (strcmp(set->name, "ioremap")) {
                g_assert_true(g_hash_table_add(seen, (char *)f->name));
            }
        }
    }
    g_assert_cmpuint(g_hash_table_size(seen), ==, 102);
}

/* ---- real kernels -------------------------------------------------------- */

static bool has_symbol(void *opaque, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(opaque, name, &sym);
}

typedef struct Count {
    unsigned same, renamed, inner, replaced, missing;
} Count;

static void count_function(const GsKernel *k, const KtSetFunction *f, Count *n)
{
    g_autofree char *name = kt_set_function_in(f, has_symbol, (void *)k);

    if (!name) {
        g_test_message("missing: %s", f->name);
        n->missing++;
    } else if (f->how == KT_SET_INNER) {
        n->inner++;
    } else if (f->how == KT_SET_GONE) {
        n->replaced++;
    } else if (!strcmp(name, f->name)) {
        n->same++;
    } else {
        n->renamed++;
    }
}

static void check_kernel(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);
    const KtFunctionSet *set;
    const KtSetFunction *f;
    Count n = { 0 };

    g_assert_no_error(err);
    for (unsigned s = 0; (set = kt_function_set_nth(s)); s++) {
        for (unsigned i = 0; strcmp(set->name, "ioremap") &&
             (f = kt_function_set_function(set, i)); i++) {
            count_function(k, f, &n);
        }
    }
    g_test_message("%s: %u with KEDR's name, %u renamed, %u inlined, %u "
                   "replaced, %u missing", path, n.same, n.renamed, n.inner,
                   n.replaced, n.missing);
    g_assert_cmpuint(n.missing, ==, 0);
}

TEST(test_real_kernels, "/function-sets/real-kernels")
{
    const char *list = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = NULL;

    if (!list || !*list) {
        g_test_skip("KA_TEST_KERNELS is not set");
        return;
    }
    paths = g_strsplit(list, ":", -1);
    for (unsigned i = 0; paths[i]; i++) {
        check_kernel(paths[i]);
    }
}
