/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is mapped at an address: a page that has an address in the direct map,
 * too, memory without a page, or nothing.
 */
#include "kalloc-tracer/api/kt-mapping.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#define AREA    0xffffc90000000000ull   /* maps page 20 */
#define DEVICE  0xffffc90000010000ull
#define NOTHING 0xffffc90000020000ull
#define PAGE    4096u
#define APIC    0xfee00000ull

static bool translate(void *opaque, unsigned vcpu, uint64_t va, uint64_t *phys)
{
    uint64_t page = va & -(uint64_t)PAGE;

    *phys = va % PAGE + (page == AREA ? 20 * PAGE : page == DEVICE ? APIC :
                         page - SG_DIRECT);
    return page != NOTHING;
}

static SlabGuest *guest_new(void)
{
    SlabGuest *g = slab_guest_new(SG_6_12, SG_PLAIN);

    g->vm.translate = translate;
    return g;
}

static bool find(const SlabGuest *g, uint64_t va, KtMapping *m)
{
    return kt_address_mapping(&(KtAddress) { .va = va, .o = g->o }, m);
}

TEST(test_second_mapping, "/address-space/mapping/leads-to-the-direct-map")
{
    g_autoptr(SlabGuest) g = guest_new();
    KtMapping m;

    g_assert_true(find(g, AREA + 0x123, &m));
    g_assert_cmphex(m.phys, ==, 20 * PAGE + 0x123);
    g_assert_cmphex(m.va, ==, SG_DIRECT + 20 * PAGE + 0x123);
}

TEST(test_device, "/address-space/mapping/of-a-device-has-no-page")
{
    g_autoptr(SlabGuest) g = guest_new();
    KtMapping m;

    g_assert_true(find(g, DEVICE + 0x20, &m));
    g_assert_cmphex(m.phys, ==, APIC + 0x20);
    g_assert_cmphex(m.va, ==, 0);
}

TEST(test_no_second, "/address-space/mapping/is-no-second-one")
{
    g_autoptr(SlabGuest) g = guest_new();
    KtMapping m;

    g_assert_false(find(g, SG_DIRECT + 20 * PAGE, &m));
    g_assert_false(find(g, NOTHING, &m));
    g_assert_false(find(g, 0x1000, &m));
}

TEST(test_no_types, "/address-space/mapping/without-types")
{
    g_autoptr(SlabGuest) g = guest_new();
    const GsBtf *btf = g->k.btf;
    uint64_t va;
    KtMapping m;

    g->k.btf = NULL;
    g_assert_true(find(g, AREA + 0x123, &m));
    g_assert_cmphex(m.va, ==, SG_DIRECT + 20 * PAGE + 0x123);
    g_assert_false(find(g, SG_DIRECT + 20 * PAGE, &m));
    g_assert_true(kt_objects_physical(&g->o, 20 * PAGE, &va));
    g_assert_cmphex(va, ==, SG_DIRECT + 20 * PAGE);
    g_assert_false(kt_objects_physical(&g->o, APIC, &va));
    g->vm.translate = NULL;
    g_assert_false(kt_objects_physical(&g->o, 20 * PAGE, &va));
    g->k.btf = (GsBtf *)btf;
}

TEST(test_unknown, "/address-space/mapping/unknown-is-no-guess")
{
    g_autoptr(SlabGuest) g = guest_new();
    KtMapping m;

    g->vm.vmemmap = 0;
    g_assert_true(find(g, AREA, &m));
    g_assert_cmphex(m.va, ==, 0);
    g->vm.translate = NULL;
    g_assert_false(find(g, AREA, &m));
    g->o.vm = NULL;
    g_assert_false(find(g, AREA, &m));
}
