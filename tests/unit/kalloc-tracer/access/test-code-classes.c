/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code classes of a kernel that has clones, aliases and padding, with the
 * user's rules and without; and of real kernels: KA_TEST_KERNELS and
 * KA_TEST_ARCH_KERNELS are <vmlinuz>[:<vmlinuz>...].
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/access/code-classes.h"

#include <string.h>

#define TEXT 0xffffffff81000000ull
#define SLIDE 0x1c000000ull
#define MODULE 0xffffffffc0100000ull

static const char symbols[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 T start_kernel\n"
    "ffffffff81000180 T __pfx_kfree\n"
    "ffffffff81000190 T kfree\n"
    "ffffffff81000200 t link_path_walk.part.0.constprop.0\n"
    "ffffffff81000300 T __memcpy\n"
    "ffffffff81000300 W memcpy\n"
    "ffffffff81000340 t memcpy_orig\n"
    "ffffffff81000380 t memset.isra.0\n"
    "ffffffff810003c0 T clear_page_rep\n"
    "ffffffff81000400 T kasan_report\n"
    "ffffffff81000480 T not_kasan_report\n"
    "ffffffff81000500 t kfree.cold\n"
    "ffffffff81000540 T my_hash\n"
    "ffffffff81000580 T _etext\n"
    "ffffffff81001000 D _sdata\n"
    "ffffffff81001000 D kmem_cache_free\n"
    "ffffffff81001100 T x86_64_start_kernel\n"
    "ffffffff83000000 B _end\n";

static GsKernel *open_kernel(void)
{
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(symbols, strlen(symbols),
                                          "System.map", &err);

    g_assert_no_error(err);
    gs_kernel_set_slide(k, SLIDE);
    return k;
}

static KtCodeClass class_at(const KtCodeClasses *c, uint64_t offset)
{
    const KtCodeRow *row = kt_code_classes_at(c, TEXT + SLIDE + offset);

    return row ? row->class : KT_CODE_PLAIN;
}

TEST(classes, "/code-classes/classes")
{
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtCodeClasses) c = kt_code_classes_new(k, NULL);

    g_assert_cmpint(class_at(c, 0x100), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x180), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x18f), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x190), ==, KT_CODE_ALLOCATOR);
    g_assert_cmpint(class_at(c, 0x1ff), ==, KT_CODE_ALLOCATOR);
    g_assert_cmpint(class_at(c, 0x200), ==, KT_CODE_OVERREAD);
    g_assert_cmpint(class_at(c, 0x300), ==, KT_CODE_RANGE);
    g_assert_cmpint(class_at(c, 0x340), ==, KT_CODE_RANGE);
    /* arguments of a clone are others */
    g_assert_cmpint(class_at(c, 0x380), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x3c0), ==, KT_CODE_RANGE);
    g_assert_cmpint(class_at(c, 0x400), ==, KT_CODE_ALLOCATOR);
    g_assert_cmpint(class_at(c, 0x480), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x500), ==, KT_CODE_ALLOCATOR);
    /* data with the name of a function */
    g_assert_cmpint(class_at(c, 0x1000), ==, KT_CODE_PLAIN);
    g_assert_null(kt_code_classes_at(c, 0));
    g_assert_null(kt_code_classes_at(c, UINT64_MAX));
    g_assert_null(kt_code_classes_at(c, TEXT + 0x190));
}

TEST(rows, "/code-classes/rows")
{
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtCodeClasses) c = kt_code_classes_new(k, NULL);
    const KtCodeRow *row = kt_code_classes_at(c, TEXT + SLIDE + 0x300);

    g_assert_cmpint(row->dst, ==, 0);
    g_assert_cmpint(row->src, ==, 1);
    g_assert_cmpint(row->n, ==, 2);
    g_assert_cmpint(row->unit, ==, 1);
    row = kt_code_classes_at(c, TEXT + SLIDE + 0x340);
    g_assert_cmpint(row->dst, ==, KT_NO_ARG);
    g_assert_cmpint(row->src, ==, KT_NO_ARG);
    row = kt_code_classes_at(c, TEXT + SLIDE + 0x3c0);
    g_assert_cmpint(row->dst, ==, 0);
    g_assert_cmpint(row->n, ==, KT_NO_ARG);
    g_assert_cmpint(row->unit, ==, 4096);
    row = kt_code_classes_at(c, TEXT + SLIDE + 0x200);
    g_assert_cmpstr(row->name, ==, "link_path_walk");
    g_assert_cmpint(row->max_past, ==, 7);
    g_assert_cmpint(row->max_before, ==, 0);
}

/* Each address is in exactly one stretch with one answer. */
TEST(stretches, "/code-classes/stretches")
{
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtCodeClasses) c = kt_code_classes_new(k, NULL);
    uint64_t va = 0, start, end;
    unsigned n = 0;

    do {
        bool is_in = kt_code_classes_function(c, va, &start, &end);
        int i = kt_code_classes_index(c, va);

        g_assert_cmphex(start, ==, va);
        g_assert_cmphex(start, <, end);
        g_assert_cmpint(is_in, ==, i >= 0);
        g_assert_true(!is_in || kt_code_classes_nth(c, i)->start == va);
        g_assert_cmpint(is_in, ==, !!kt_code_classes_at(c, end - 1));
        g_assert_cmpint(i, ==, is_in ? (int)n++ : -1);
        va = end;
    } while (end != UINT64_MAX);
    g_assert_nonnull(kt_code_classes_nth(c, n - 1));
    g_assert_null(kt_code_classes_nth(c, n));
}

static bool is_missing(const KtCodeClasses *c, const char *text)
{
    const char *names;

    for (unsigned i = 0; (names = kt_code_classes_missing(c, i)); i++) {
        if (!strcmp(names, text)) {
            return true;
        }
    }
    return false;
}

TEST(missing, "/code-classes/missing")
{
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtCodeClasses) c = kt_code_classes_new(k, NULL);

    g_assert_false(is_missing(c, "kfree"));
    g_assert_true(is_missing(c, "kmem_cache_free"));
    g_assert_true(is_missing(c, "___slab_alloc or __slab_alloc or "
                             "refill_objects or slab_alloc_node or "
                             "cache_alloc_refill"));
    /* rows of other architectures, and what can be inlined */
    g_assert_false(is_missing(c, "__arch_copy_from_user"));
    g_assert_false(is_missing(c, "copy_page or __pi_copy_page"));
}

/* SLAB has no function by a name of SLUB's, and gcc inlines one of the two that
 * get slabs. */
TEST(slab, "/code-classes/slab")
{
    static const char *const name[] = {
        "free_block", "cache_alloc_refill", "slabs_destroy", "drain_array",
        "cache_reap",
    };
    const char *end = strstr(symbols, "ffffffff81000580");
    g_autoptr(GString) text = g_string_new_len(symbols, end - symbols);
    g_autoptr(KtCodeClasses) c = NULL;
    g_autoptr(GsKernel) k = NULL;
    g_autoptr(GError) err = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        g_string_append_printf(text, "ffffffff810005%02x t %s\n", 0x48 + 8 * i,
                               name[i]);
    }
    g_string_append(text, end);
    k = gs_kernel_new_from_data(text->str, text->len, "System.map", &err);
    g_assert_no_error(err);
    gs_kernel_set_slide(k, SLIDE);
    c = kt_code_classes_new(k, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        g_assert_cmpint(class_at(c, 0x548 + 8 * i), ==, KT_CODE_ALLOCATOR);
    }
    for (unsigned i = 0; kt_code_classes_missing(c, i); i++) {
        g_assert_null(strstr(kt_code_classes_missing(c, i), "slab"));
    }
}

/* A name in two rows would be of the class of one of them only; rows of
 * allocators do not differ. Three architectures have rows of their own, and no
 * row has two of them. */
TEST(names_once, "/code-classes/names-once")
{
    static const struct {
        const char *arch, *names;
        bool is_allocator;
    } sources[] = {
#define KT_ALLOCATOR(need, names) { ARCH, names, true },
#define KT_LEAF(names) { ARCH, names, false },
#define KT_RANGE(need, names, ...) { ARCH, names, false },
#define KT_OVERREAD(names, ...) { ARCH, names, false },
#define KT_LOADS_OK(names) { ARCH, names, false },
#define ARCH "any"
#include "kalloc-tracer/access/access-code.def"
#undef ARCH
#define ARCH "x86-64"
#include "kalloc-tracer/access/code-x86_64.def"
#undef ARCH
#define ARCH "arm64"
#include "kalloc-tracer/access/code-arm64.def"
#undef ARCH
#define ARCH "riscv64"
#include "kalloc-tracer/access/code-riscv64.def"
    };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(sources); i++) {
        gpointer is_allocator = GINT_TO_POINTER(sources[i].is_allocator);
        g_auto(GStrv) names = g_strsplit(sources[i].names, " ", -1);

        for (unsigned n = 0; names[n]; n++) {
            char *key = g_strdup_printf("%s %s", sources[i].arch, names[n]);

            g_assert_cmpstr(names[n], !=, "");
            g_assert_true(!g_hash_table_contains(seen, key) ||
                          (is_allocator && g_hash_table_lookup(seen, key)));
            g_hash_table_insert(seen, key, is_allocator);
        }
    }
}

TEST(user, "/code-classes/user")
{
    static const char text[] = "overread my_hash past=3\n"
                               "plain kfree\n"
                               "plain kasan_*\n"
                               "leaf start_*\n"
                               "allocator nobody\n";
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtAccessRules) rules =
        kt_access_rules_new_from_data(text, strlen(text), "rules", NULL);
    g_autoptr(KtCodeClasses) c = kt_code_classes_new(k, rules);

    g_assert_cmpint(class_at(c, 0x540), ==, KT_CODE_OVERREAD);
    g_assert_cmpint(class_at(c, 0x190), ==, KT_CODE_PLAIN);
    g_assert_false(is_missing(c, "kfree"));
    g_assert_cmpint(class_at(c, 0x500), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x400), ==, KT_CODE_PLAIN);
    g_assert_cmpint(class_at(c, 0x100), ==, KT_CODE_LEAF);
    g_assert_cmpint(class_at(c, 0x300), ==, KT_CODE_RANGE);
    g_assert_cmpstr(kt_code_classes_unused(c, 0), ==, "nobody");
    g_assert_null(kt_code_classes_unused(c, 1));
}

/* ---- real kernels -------------------------------------------------------- */

static void check_kernel(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_open(path, &err);
    g_autoptr(KtCodeClasses) c = NULL;
    unsigned n[KT_CODE__COUNT] = { 0 };
    const KtCodeFunction *f;

    g_assert_no_error(err);
    c = kt_code_classes_new(k, NULL);
    for (unsigned i = 0; (f = kt_code_classes_nth(c, i)); i++) {
        g_assert_cmphex(f->start, <, f->end);
        n[f->row->class]++;
    }
    g_test_message("%s: %u allocator, %u range, %u leaf, %u overread, "
                   "%u loads-ok", path, n[KT_CODE_ALLOCATOR],
                   n[KT_CODE_RANGE], n[KT_CODE_LEAF], n[KT_CODE_OVERREAD],
                   n[KT_CODE_LOADS_OK]);
    for (unsigned i = 0; kt_code_classes_missing(c, i); i++) {
        g_error("%s: none of %s", path, kt_code_classes_missing(c, i));
    }
    g_assert_cmpuint(n[KT_CODE_ALLOCATOR], >, 40);
    g_assert_cmpuint(n[KT_CODE_RANGE], >, 5);
    g_assert_cmpuint(n[KT_CODE_LEAF], >, 5);
    g_assert_cmpuint(n[KT_CODE_OVERREAD], >, 6);
    g_assert_cmpuint(n[KT_CODE_LOADS_OK], >=, 2);
}

static void kernels(gconstpointer variable)
{
    const char *list = g_getenv(variable);
    g_auto(GStrv) paths = g_strsplit(list ? list : "", ":", -1);

    if (!paths[0]) {
        g_test_skip("no kernels");
        return;
    }
    for (size_t i = 0; paths[i]; i++) {
        check_kernel(paths[i]);
    }
}

TEST_WITH(kernels, "/code-classes/kernels", "KA_TEST_KERNELS")
TEST_WITH(kernels, "/code-classes/other-architectures", "KA_TEST_ARCH_KERNELS")

/* A module is loaded after the classes were made: which rules name it? */
TEST(later_module, "/code-classes/later-module")
{
    static const char text[] = "allocator my_pool_alloc\nallocator kfree*\n";
    static const GsModuleSymbol sym = { MODULE, "my_pool_alloc", 't' };
    static const GsModuleSymbol other = { MODULE + 0x10000, "other", 't' };
    g_autoptr(GsKernel) k = open_kernel();
    g_autoptr(KtAccessRules) rules =
        kt_access_rules_new_from_data(text, strlen(text), "rules", NULL);
    g_autoptr(KtCodeClasses) before = kt_code_classes_new(k, rules);
    g_autoptr(KtCodeClasses) after = NULL;

    gs_kernel_add_module_data(k, 0x1000, "m", MODULE, 0x1000, &sym, 1, 0, NULL,
                              NULL, 0, NULL);
    gs_kernel_add_module_data(k, 0x2000, "o", MODULE + 0x10000, 0x1000, &other,
                              1, 0, NULL, NULL, 0, NULL);
    g_assert_null(kt_code_classes_at(before, MODULE));
    g_assert_true(kt_access_rules_concern(rules, k, 0x1000));
    g_assert_false(kt_access_rules_concern(rules, k, 0x2000));
    g_assert_false(kt_access_rules_concern(NULL, k, 0x1000));
    after = kt_code_classes_new(k, rules);
    g_assert_cmpint(kt_code_classes_at(after, MODULE)->class, ==,
                    KT_CODE_ALLOCATOR);
}
