/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free slots of one slab: those of the lists that the allocator takes next, in
 * all forms of free pointers, and never one of another slab. A list that is
 * wrong, or that changes while it is read, has none.
 */
#include "kalloc-tracer/objects/slab-slots.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#define CACHE   SG_LISTED
#define SIZE    SG_LISTED_SIZE
#define PAGE    4096u

static void on_slot(void *opaque, const KtSlabCache *cache, uint64_t va)
{
    uint64_t off = va - SG_DIRECT;

    g_assert_cmphex(cache->va, ==, sg_cache(CACHE));
    g_assert_cmpuint(off % PAGE % SIZE, ==, 0);
    g_string_append_printf(opaque, " %u.%u", (unsigned)(off / PAGE),
                           (unsigned)(off % PAGE / SIZE));
}

/* Expect the free slots of the slab at a page. @ok: all lists are right */
static void expect(SlabGuest *g, unsigned page, const char *want, bool ok)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) err = NULL;
    g_autoptr(KtSlabs) s = kt_slabs_new(&g->o, &err);

    g_assert_no_error(err);
    g_assert_cmpint(kt_slabs_free_slots(s, SG_DIRECT + page * PAGE + 100,
                                        on_slot, text), ==, ok);
    g_assert_cmpstr(text->str, ==, want);
}

TEST(test_lists, "/slab-slots/lists")
{
    static const struct {
        SgKind kind;
        SgForm form;
    } row[] = {
        { SG_5_10, SG_PLAIN }, { SG_5_10, SG_XOR }, { SG_5_10, SG_SWAP },
        { SG_6_12, SG_PLAIN }, { SG_6_12, SG_XOR }, { SG_6_12, SG_SWAP },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = slab_guest_with_lists(row[i].kind,
                                                       row[i].form);

        expect(g, 16, " 16.2 16.8 16.5 16.9", true);
        expect(g, 17, " 17.3 17.1", true);
        expect(g, 18, "", true);
        expect(g, 30, "", false);
    }
}

TEST(test_sheaves, "/slab-slots/sheaves")
{
    g_autoptr(SlabGuest) g = slab_guest_new(SG_7_3, SG_SWAP);

    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    sg_add_slab(g, CACHE, 16, (unsigned[]) { 9, 4 }, 2);
    sg_add_slab(g, CACHE, 17, (unsigned[]) { 7 }, 1);
    sg_add_sheaf(g, CACHE, 0, (uint64_t[]) {
        sg_object(g, CACHE, 16, 1), sg_object(g, CACHE, 17, 2),
        sg_object(g, CACHE, 16, 3) }, 3);
    sg_add_sheaf(g, CACHE, 1, (uint64_t[]) {
        sg_object(g, CACHE, 16, 0) }, 1);
    sg_add_sheaf(g, CACHE, 2, (uint64_t[]) {
        sg_object(g, CACHE, 16, 6) }, 1);
    sg_set_sheaves(g, CACHE, 0, 0, 1, 2);
    /* A sheaf of kfree_rcu() has objects that still have readers. */
    expect(g, 16, " 16.1 16.3 16.0 16.9 16.4", true);
    expect(g, 17, " 17.2 17.7", true);
    sg_set_sheaves(g, CACHE, 0, 12, 1, UINT_MAX);
    expect(g, 16, " 16.0 16.9 16.4", false);
}

TEST(test_wrong, "/slab-slots/wrong")
{
    g_autoptr(SlabGuest) g = slab_guest_with_lists(SG_6_12, SG_SWAP);

    sg_set_next(g, CACHE, 16, 8, 0x4141414141414141ull);
    expect(g, 16, " 16.9", false);
    sg_set_next(g, CACHE, 16, 8, sg_object(g, CACHE, 16, 2));
    expect(g, 16, " 16.9", false);
    sg_set_next(g, CACHE, 16, 8, sg_object(g, CACHE, 17, 5));
    expect(g, 16, " 16.9", false);
    sg_set_counts(g, 16, 3, 15);
    expect(g, 16, "", false);
}

/* ---- a list that changes ------------------------------------------------- */

/* Another CPU frees slot 0 to the slab while its list is read. */
typedef struct Race {
    SlabGuest *g;
    bool (*read)(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                 size_t len);
    uint64_t at;
} Race;

static bool read_and_free(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                          size_t len)
{
    Race *r = opaque;
    bool ok = r->read(r->g, vcpu, va, buf, len);

    if (r->at && va - r->at < SIZE) {
        r->at = 0;
        sg_add_slab(r->g, CACHE, 17, (unsigned[]) { 0, 3, 1 }, 3);
    }
    return ok;
}

TEST(test_change, "/slab-slots/change")
{
    g_autoptr(SlabGuest) g = slab_guest_with_lists(SG_6_12, SG_SWAP);
    Race race = { g, g->vm.read, sg_object(g, CACHE, 17, 3) };
    KtVm vm = g->vm;

    vm.read = read_and_free;
    vm.opaque = &race;
    g->o.vm = &vm;
    expect(g, 17, "", false);
    expect(g, 17, " 17.0 17.3 17.1", true);
}
