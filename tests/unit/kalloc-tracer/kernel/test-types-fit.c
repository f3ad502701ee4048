/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A types file is believed after eight sizes agree, and refused, with the
 * numbers, by the first thing that cannot be so. What may be so (merged
 * caches, caches of no known struct) decides nothing.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "kalloc-tracer/kernel/types-fit.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/btf.h"

#include <string.h>

#define VA 0xffff888000001000ull

static unsigned n_refused;

static void on_refused(void *opaque)
{
    g_assert_true(opaque == &n_refused);
    n_refused++;
}

static GsKernel *make_kernel(void)
{
    static const struct { const char *name; uint32_t size; } rows[] = {
        { "kmem_cache_node", 64 }, { "file", 184 }, { "dentry", 192 },
        { "cred", 176 },
    };
    struct btf *types = btf__new_empty();
    GsKernel *k = gs_kernel_new_empty();
    int t_long = btf__add_int(types, "long", 8, 0);

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        btf__add_struct(types, rows[i].name, rows[i].size);
    }
    btf__add_struct(types, "kmem_cache", 256);
    btf__add_field(types, "name", t_long, 96 * 8, 0);
    k->btf = types_end(types);
    return k;
}

static GsKernel *kernel;

static KtTypesFit fit_new(void)
{
    n_refused = 0;
    return (KtTypesFit) {
        .kernel = kernel, .state = KT_TYPES_OPEN, .refused = on_refused,
        .opaque = &n_refused,
    };
}

TEST(eight_sizes_are_enough, "/types-fit/eight-sizes-are-enough")
{
    KtTypesFit f = fit_new();

    for (unsigned i = 0; i < 7; i++) {
        g_assert_true(kt_types_fit_cache(&f, VA, "filp", 184, 192));
        g_assert_true(kt_types_fit_is_open(&f));
    }
    g_assert_true(kt_types_fit_cache(&f, VA, "cred", 176, 192));
    g_assert_cmpuint(f.state, ==, KT_TYPES_FIT);
    g_assert_cmpuint(n_refused, ==, 0);
}

/* Another cache may have been merged into it; of some nothing is known. */
TEST(others_decide_nothing, "/types-fit/others-decide-nothing")
{
    KtTypesFit f = fit_new();

    g_assert_true(kt_types_fit_cache(&f, VA, "dentry", 224, 256));
    g_assert_true(kt_types_fit_cache(&f, VA, "kmalloc-64", 64, 64));
    g_assert_true(kt_types_fit_cache(&f, VA, "anon_vma", 104, 104));
    g_assert_true(kt_types_fit_task(&f, 0, "swapper/0\0\0\0\0\0\0"));
    g_assert_true(kt_types_fit_task(&f, 17, "\xff\xfe any name\0\0\0\0"));
    g_assert_true(kt_types_fit_is_open(&f));
    g_assert_cmpuint(f.agree, ==, 0);
}

static void expect_refused(KtTypesFit *f, bool result, const char *why)
{
    g_assert_false(result);
    g_assert_cmpuint(f->state, ==, KT_TYPES_REFUSED);
    g_assert_cmpuint(n_refused, ==, 1);
    g_assert_cmpstr(f->why, ==, why);
}

TEST(smaller_objects_refute, "/types-fit/smaller-objects-refute")
{
    KtTypesFit f = fit_new();

    expect_refused(&f, kt_types_fit_cache(&f, VA, "filp", 168, 192),
                   "struct file has 184 bytes there, objects of filp 168");
    g_assert_false(kt_types_fit_cache(&f, VA, NULL, 0, 0));
    g_assert_cmpuint(n_refused, ==, 1);         /* the first one counts */
}

TEST(much_larger_objects_refute, "/types-fit/much-larger-objects-refute")
{
    KtTypesFit f = fit_new();

    expect_refused(&f, kt_types_fit_cache(&f, VA, "filp", 320, 320),
                   "struct file has 184 bytes there, objects of filp 320");
}

TEST(no_name_refutes, "/types-fit/no-name-refutes")
{
    KtTypesFit none = fit_new(), odd;

    expect_refused(&none, kt_types_fit_cache(&none, VA, NULL, 8, 8),
                   "kmem_cache.name is at offset 96 there, but the kmem_cache "
                   "at 0xffff888000001000 has no name at it");
    odd = fit_new();
    g_assert_false(kt_types_fit_cache(&odd, VA, "\x90\x1f", 8, 8));
}

TEST(sizes_that_cannot_be_refute, "/types-fit/sizes-that-cannot-be-refute")
{
    static const uint32_t rows[][2] = {
        { 0, 8 }, { 16, 8 }, { 8, 1u << 30 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        KtTypesFit f = fit_new();

        g_assert_false(kt_types_fit_cache(&f, VA, "a", rows[i][0],
                                          rows[i][1]));
    }
}

TEST(tasks_that_cannot_be_refute, "/types-fit/tasks-that-cannot-be-refute")
{
    static const struct { uint32_t pid; char comm[17]; } rows[] = {
        { 5000000, "init\0\0\0\0\0\0\0\0\0\0\0" }, { 1, "0123456789abcdef" },
        { 0, "init\0\0\0\0\0\0\0\0\0\0\0" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        KtTypesFit f = fit_new();

        g_assert_false(kt_types_fit_task(&f, rows[i].pid, rows[i].comm));
        g_assert_cmpuint(n_refused, ==, 1);
    }
}

int main(int argc, char **argv)
{
    int rc;

    kernel = make_kernel();
    rc = test_run(argc, argv);
    gs_kernel_free(kernel);
    return rc;
}
