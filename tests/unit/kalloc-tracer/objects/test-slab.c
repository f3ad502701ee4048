/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Caches and slabs: which caches there are, what is read of them, and what is
 * said of kernels whose slabs cannot be shown.
 */
#include "kalloc-tracer/api/kt-slabs.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "guest-symbols/types/btf.h"

static KtSlabs *slabs_of(const SlabGuest *g)
{
    g_autoptr(GError) err = NULL;
    KtSlabs *s = kt_slabs_new(&g->o, &err);

    g_assert_no_error(err);
    return s;
}

/* A cache is found if an event named it, or if the kernel's list has it; what
 * lies in no slab of "kmem_cache" is none. */
TEST(test_caches, "/slab/caches")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
    g_autoptr(GArray) caches = NULL;
    g_autoptr(KtSlabs) s = NULL;

    sg_add_cache(g, 1, "one", 64);
    sg_add_cache(g, 3, "three", 64);
    kt_tracer_add_cache(g->t, SG_IMAGE + 0x100, "boot", 64, 64);
    kt_tracer_add_cache(g->t, SG_DIRECT + 40 * 4096, "freed", 64, 64);
    sg_put(g, sg_cache(1) + 40, SG_IMAGE + 0x800, 8);   /* the list's head */
    sg_put(g, SG_IMAGE + 0x800, sg_cache(3) + 40, 8);
    s = slabs_of(g);
    caches = kt_slabs_caches(s);
    g_assert_cmpuint(caches->len, ==, 3);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmphex(g_array_index(caches, uint64_t, i), ==,
                        sg_cache((unsigned[]) { 0, 1, 3 }[i]));
    }
}

TEST(test_endless_list, "/slab/endless-list")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
    g_autoptr(KtSlabs) s = slabs_of(g);
    g_autoptr(GArray) caches = NULL;

    sg_add_cache(g, 1, "one", 64);
    sg_put(g, sg_cache(1) + 40, sg_cache(1) + 40, 8);
    caches = kt_slabs_caches(s);
    g_assert_cmpuint(caches->len, ==, 2);
}

TEST(test_cache, "/slab/cache")
{
    for (SgKind kind = SG_5_10; kind <= SG_7_3; kind++) {
        g_autoptr(SlabGuest) g = slab_guest_new(kind, SG_SWAP);
        g_autoptr(KtSlabs) s = slabs_of(g);
        KtSlabNumbers n;
        KtSlabCache c;

        sg_add_cache(g, 1, "kmalloc-96", 96);
        sg_add_slab(g, 1, 16, NULL, 0);
        g_assert_true(kt_slabs_cache(s, sg_cache(1), &c));
        g_assert_cmpstr(c.name, ==, "kmalloc-96");
        g_assert_cmpuint(c.size, ==, 96);
        g_assert_cmpuint(c.per_slab, ==, 42);
        g_assert_cmpuint(c.offset, ==, 48);
        g_assert_true(c.hardened);
        g_assert_cmpuint(c.sheaf_capacity, ==,
                         kind == SG_7_3 ? SG_CAPACITY : 0);
        kt_slabs_numbers(s, &c, &n);
        g_assert_cmpuint(n.slabs, ==, 1);
        g_assert_cmpuint(n.objects, ==, 42);
    }
}

/* Numbers that make no sense are no cache. */
TEST(test_no_cache, "/slab/no-cache")
{
    static const struct {
        unsigned at, bytes;
        uint64_t v;
    } row[] = {
        { 4, 4, 0 }, { 4, 4, 1u << 30 }, { 8, 4, 97 }, { 12, 4, 89 },
        { 16, 4, 0 }, { 16, 4, 43 }, { 16, 4, 13 << 16 | 42 },
        { 20, 4, 43 }, { 28, 4, 96 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
        g_autoptr(KtSlabs) s = slabs_of(g);
        KtSlabCache c;

        sg_add_cache(g, 1, "one", 96);
        g_assert_true(kt_slabs_cache(s, sg_cache(1), &c));
        sg_put(g, sg_cache(1) + row[i].at, row[i].v, row[i].bytes);
        g_assert_false(kt_slabs_cache(s, sg_cache(1), &c));
    }
}

TEST(test_slots, "/slab/slots")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
    g_autoptr(KtSlabs) s = slabs_of(g);
    const uint64_t base = SG_DIRECT + 16 * 4096;
    KtSlabCache c;
    KtSlab slab;

    sg_add_cache(g, 1, "one", 96);
    sg_put(g, sg_cache(1) + 28, 8, 4);          /* red_left_pad */
    sg_put(g, sg_cache(1) + 8, 80, 4);
    sg_add_slab(g, 1, 16, (unsigned[]) { 5 }, 1);
    g_assert_true(kt_slabs_cache(s, sg_cache(1), &c));
    g_assert_true(kt_slabs_slab_of(s, base + 1000, &slab));
    g_assert_true(slab.is_slab);
    g_assert_cmphex(slab.base, ==, base);
    g_assert_cmpuint(kt_slab_len(s, &c, &slab), ==, 4096);
    g_assert_cmpuint(slab.objects, ==, 42);
    g_assert_cmpuint(slab.inuse, ==, 41);
    g_assert_cmphex(kt_slab_object(&c, &slab, 2), ==, base + 200);
    g_assert_cmpuint(kt_slab_slot(&c, &slab, base + 200), ==, 2);
    g_assert_cmpuint(kt_slab_slot(&c, &slab, base + 192), ==, KT_NO_SLOT);
    g_assert_cmpuint(kt_slab_slot(&c, &slab, base + 8 + 42 * 96), ==,
                     KT_NO_SLOT);
    g_assert_cmpuint(kt_slab_slot(&c, &slab, base), ==, KT_NO_SLOT);
    g_assert_cmpuint(kt_slab_slot_around(&c, &slab, base + 191), ==, 1);
    g_assert_cmpuint(kt_slab_slot_around(&c, &slab, base + 42 * 96), ==,
                     KT_NO_SLOT);
}

/* The second page of a slab leads to the first. */
TEST(test_compound, "/slab/compound")
{
    static const uint64_t heads[] = {
        SG_VMEMMAP + 16 * 64 + 1,   /* compound_head */
        -128ull | 1,                /* compound_info: a mask */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
        g_autoptr(KtSlabs) s = slabs_of(g);
        KtSlab slab;

        sg_add_cache(g, 1, "one", 64);
        sg_add_slab(g, 1, 16, NULL, 0);
        sg_put(g, sg_struct(17) + 56, heads[i], 8);
        g_assert_true(kt_slabs_slab_of(s, SG_DIRECT + 17 * 4096 + 5, &slab));
        g_assert_cmphex(slab.base, ==, SG_DIRECT + 16 * 4096);
    }
}

TEST(test_no_page, "/slab/no-page")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
    g_autoptr(KtSlabs) s = slabs_of(g);
    KtSlab slab;

    g_assert_false(kt_slabs_slab_of(s, 0, &slab));
    g_assert_false(kt_slabs_slab_of(s, SG_DIRECT + 64 * 4096, &slab));
    g_assert_false(kt_slabs_slab_of(s, UINT64_MAX, &slab));
    g_assert_false(kt_slabs_slab(s, SG_VMEMMAP + 8, &slab));
    g_assert_true(kt_slabs_slab_of(s, SG_DIRECT + 40 * 4096, &slab));
    g_assert_false(slab.is_slab);
}

/* ---- kernels whose slabs are not shown ----------------------------------- */

static void expect_error(const KtObjects *o, const char *what)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(kt_slabs_new(o, &err));
    g_assert_nonnull(strstr(err->message, what));
}

TEST(test_unknown, "/slab/unknown")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
    KtObjects o = g->o;

    o.vm = NULL;
    expect_error(&o, "a journal has none");
    o = g->o;
    o.kernel = NULL;
    expect_error(&o, "not known");
    g->vm.vmemmap = 0;
    expect_error(&g->o, "direct map");
    g->vm.vmemmap = SG_VMEMMAP;
    g_clear_pointer(&g->k.btf, gs_btf_free);
    expect_error(&g->o, "CONFIG_DEBUG_INFO_BTF");
}

/* Types of a kernel: a kmem_cache with a @member, and a struct @type. */
TEST(test_other_allocators, "/slab/other-allocators")
{
    static const struct {
        const char *member, *type, *why;
    } row[] = {
        { "cpu_cache", "array_cache", "the allocator is SLAB" },
        { "refcount", "slob_block", "the allocator is SLOB" },
        { "refcount", "slab", "SLAB or SLOB" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = slab_guest_new(SG_6_12, SG_SWAP);
        struct btf *types = btf__new_empty();
        int t_long = btf__add_int(types, "long", 8, 0);

        btf__add_struct(types, "kmem_cache", 16);
        btf__add_field(types, "name", t_long, 0, 0);
        btf__add_field(types, row[i].member, t_long, 64, 0);
        btf__add_struct(types, row[i].type, 8);
        gs_btf_free(g->k.btf);
        g->k.btf = types_end(types);
        expect_error(&g->o, row[i].why);
    }
}
