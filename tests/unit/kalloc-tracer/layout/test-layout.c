/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of kernel structs, in types made by hand: names of older versions,
 * members that a kernel lacks, and a kernel without types.
 */
#include <bpf/btf.h>
#include <string.h>

#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/types/btf.h"
#include "kalloc-tracer/api/kt-structs.h"
#include "kalloc-tracer/layout/layout.h"
#include "tests/lib/test-main.h"

static GsBtf *make_types(void)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, 0);
    int t_int = btf__add_int(b, "int", 4, 0);
    int t_array = btf__add_array(b, t_int, t_long, 0);
    const void *raw;
    GsBtf *types;
    __u32 len;

    btf__add_struct(b, "task_struct", 64);
    btf__add_field(b, "tgid", t_int, 8 * 8, 0);
    btf__add_field(b, "real_parent", t_long, 8 * 16, 0);
    btf__add_field(b, "real_start_time", t_long, 8 * 24, 0);
    btf__add_struct(b, "page", 64);
    btf__add_field(b, "slab_cache", t_long, 8 * 24, 0);
    btf__add_struct(b, "slab_sheaf", 32);
    btf__add_field(b, "size", t_int, 8 * 16, 0);
    btf__add_field(b, "objects", t_array, 8 * 32, 0);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

static GsKernel *make_kernel(bool types)
{
    static const char symbols[] = "ffffffff81000000 T _stext\n"
                                  "ffffffff81000000 T _text\n"
                                  "ffffffff82000000 T _etext\n"
                                  "ffffffff82100000 R linux_banner\n";
    GsKernel *k = gs_kernel_new_from_data(symbols, strlen(symbols), "map",
                                          NULL);

    g_assert_nonnull(k);
    k->btf = types ? make_types() : NULL;
    return k;
}

TEST(the_first_name_counts_that_the_types_have,
     "/layout/the-first-name-counts-that-the-types-have")
{
    g_autoptr(GsKernel) k = make_kernel(true);

    g_assert_cmpuint(kt_member(k, KT_M_TASK_TGID), ==, 8);
    g_assert_cmpuint(kt_member(k, KT_M_TASK_START), ==, 24);
    g_assert_cmpuint(kt_member(k, KT_M_SLAB_CACHE), ==, 24);
    g_assert_cmpuint(kt_member(k, KT_M_TASK_PID), ==, KT_NO_MEMBER);
}

TEST(a_layout_has_all_members, "/layout/a-layout-has-all-members")
{
    g_autoptr(GsKernel) k = make_kernel(true);
    KtLayout l;

    g_assert_true(kt_layout_find(&l, k, KT_M_TASK_TGID, KT_M_TASK_START));
    g_assert_false(kt_layout_has_all(&l, KT_M_TASK_PID, KT_M_TASK_START));
    for (KtMember m = 0; m < KT_M__COUNT; m++) {
        g_assert_cmpuint(l.at[m], ==, kt_member(k, m));
        g_assert_true(kt_layout_has(&l, m) == (l.size[m] != 0));
    }
    g_assert_cmpuint(l.size[KT_M_SHEAF_SIZE], ==, 4);
    g_assert_cmpuint(l.at[KT_M_SHEAF_OBJECTS], ==, 32);
    g_assert_cmpuint(l.size[KT_M_SHEAF_OBJECTS], ==, 1);
}

TEST(without_types_there_are_no_members,
     "/layout/without-types-there-are-no-members")
{
    g_autoptr(GsKernel) k = make_kernel(false);
    const GsKernel *const kernels[] = { k, NULL };
    KtLayout l;

    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++) {
        kt_layout_init(&l, kernels[i]);
        for (KtMember m = 0; m < KT_M__COUNT; m++) {
            g_assert_false(kt_layout_has(&l, m));
            g_assert_cmpuint(l.size[m], ==, 0);
        }
    }
}

TEST(each_row_has_its_texts, "/layout/each-row-has-its-texts")
{
    g_autoptr(GsKernel) k = make_kernel(true);
    KtMemberRow row;
    unsigned found = 0, i = 0;

    for (; kt_member_row(k, i, &row); i++) {
        g_auto(GStrv) name = g_strsplit(row.names, "|", 0);

        for (unsigned n = 0; name[n]; n++) {
            g_assert_nonnull(strchr(name[n], '.'));
        }
        g_assert_true(*row.purpose && *row.without);
        found += row.found;
    }
    g_assert_cmpuint(i, ==, KT_M__COUNT);
    g_assert_cmpuint(found, ==, 6);
}
