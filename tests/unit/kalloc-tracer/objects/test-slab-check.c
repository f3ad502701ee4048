/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of free objects against the map: each state of a block on each kind of
 * list, what is only in transit, and what is not sure.
 */
#include "kalloc-tracer/api/kt-slab-check.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CACHE   1u
#define OTHER   2u
#define SIZE    256u            /* 16 slots in a slab */
#define PAGE    16u
#define OBJECT(slot) sg_object(g, CACHE, PAGE, slot)

typedef enum State { NEVER, LIVE, QUEUED, FREED } State;

static void push(SlabGuest *g, KtEventKind kind, uint64_t va)
{
    KtEvent ev = { .kind = kind, .va = va, .size = 200, .actual = SIZE,
                   .us = 1, .layer = KT_LAYER_KMALLOC,
                   .family = KT_FAMILY_KMALLOC };

    kt_tracer_push(g->t, 0, &ev);
}

static void set_state(SlabGuest *g, uint64_t va, State state)
{
    if (state != NEVER) {
        push(g, KT_EV_ALLOC, va);
    }
    if (state == QUEUED) {
        push(g, KT_EV_RCU_QUEUE, va);
    } else if (state == FREED) {
        push(g, KT_EV_FREE, va);
    }
}

/* Another cache, whose lists say how free pointers are stored. */
static void add_other(SlabGuest *g)
{
    sg_add_cache(g, OTHER, "dentry", SIZE);
    for (unsigned page = 30; page < 33; page++) {
        sg_add_slab(g, OTHER, page, (unsigned[]) { 2, 9 }, 2);
    }
    sg_set_partial(g, OTHER, (unsigned[]) { 30, 31, 32, 0 });
}

/* A slab on the list of the node: slots 3, 5 and 7 are free, the others are
 * live. */
static SlabGuest *guest_new(SgKind kind)
{
    SlabGuest *g = slab_guest_new(kind, SG_SWAP);

    add_other(g);
    kt_tracer_set_complete(g->t, true);
    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    sg_add_slab(g, CACHE, PAGE, (unsigned[]) { 3, 5, 7 }, 3);
    sg_set_partial(g, CACHE, (unsigned[]) { PAGE, 0 });
    for (unsigned i = 0; i < 16; i++) {
        if (i != 3 && i != 5 && i != 7) {
            set_state(g, OBJECT(i), LIVE);
        }
    }
    return g;
}

/* Compare the findings with "name slot, name", and return the report. */
static KtSlabReport expect(const SlabGuest *g, const char *expected)
{
    g_autoptr(GString) s = g_string_new(NULL);
    g_autoptr(GError) err = NULL;
    KtSlabReport r;

    kt_slab_check(&g->o, "kmalloc-*", &r, &err);
    g_assert_no_error(err);
    for (unsigned i = 0; i < r.findings->len; i++) {
        const KtSlabFinding *f = &g_array_index(r.findings, KtSlabFinding, i);

        g_string_append_printf(s, "%s%s", i ? ", " : "",
                               kt_slab_finding_name(f->kind));
        if (f->slot != KT_NO_SLOT) {
            g_string_append_printf(s, " %u", f->slot);
            g_assert_cmphex(f->object, ==, OBJECT(f->slot));
        }
        g_assert_nonnull(kt_slab_finding_text(f->kind));
        g_assert_cmphex(f->cache.va, ==, sg_cache(CACHE));
    }
    g_assert_cmpstr(s->str, ==, expected);
    return r;
}

static void expect_only(const SlabGuest *g, const char *expected)
{
    KtSlabReport r = expect(g, expected);

    kt_slab_report_clear(&r);
}

TEST(test_free_list, "/slab-check/free-list")
{
    static const char *const expected[] = {
        [NEVER] = "", [LIVE] = "live-on-list 5", [QUEUED] = "early-free 5",
        [FREED] = "",
    };

    for (State state = NEVER; state <= FREED; state++) {
        g_autoptr(SlabGuest) g = guest_new(SG_6_12);
        g_auto(KtSlabReport) r = { 0 };

        set_state(g, OBJECT(5), state);
        r = expect(g, expected[state]);
        g_assert_cmpuint(r.caches, ==, 1);
        g_assert_cmpuint(r.slabs, ==, 1);
        g_assert_cmpuint(r.objects, ==, 3);
        g_assert_cmpuint(r.transit + r.unsure, ==, 0);
    }
}

/* Slot 9 is in a sheaf: of the CPU, or one that waits for a grace period. */
TEST(test_sheaves, "/slab-check/sheaves")
{
    static const struct {
        State state;
        const char *main, *rcu;
    } row[] = {
        { NEVER, "", "foreign 9" },
        { LIVE, "live-on-list 9", "live-on-list 9" },
        { QUEUED, "early-free 9", "" },
        { FREED, "", "" },
    };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = slab_guest_new(SG_7_3, SG_SWAP);
        bool rcu = i % 2;

        kt_tracer_set_complete(g->t, true);
        sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
        sg_add_slab(g, CACHE, PAGE, (unsigned[]) { 3 }, 1);
        sg_set_partial(g, CACHE, (unsigned[]) { PAGE, 0 });
        sg_add_sheaf(g, CACHE, 0, (uint64_t[]) { OBJECT(9) }, 1);
        sg_add_sheaf(g, CACHE, 1, NULL, 0);
        sg_set_sheaves(g, CACHE, 0, rcu, UINT_MAX, rcu ? 0 : UINT_MAX);
        sg_set_sheaves(g, CACHE, 1, UINT_MAX, UINT_MAX, UINT_MAX);
        set_state(g, OBJECT(9), row[i / 2].state);
        expect_only(g, rcu ? row[i / 2].rcu : row[i / 2].main);
    }
}

/* In use for the kernel, but not live in the map: nothing is wrong. */
TEST(test_transit, "/slab-check/transit")
{
    g_autoptr(SlabGuest) g = guest_new(SG_6_12);
    g_auto(KtSlabReport) r = { 0 };

    push(g, KT_EV_FREE, OBJECT(0));
    push(g, KT_EV_FREE, OBJECT(8));
    r = expect(g, "");
    g_assert_cmpuint(r.transit, ==, 2);
}

/* Numbers do not agree while a vCPU holds the lock of the node, or the bit of
 * the slab. */
TEST(test_locks, "/slab-check/locks")
{
    static const struct {
        uint32_t lock, flags;
        bool found;
    } row[] = {
        { 0, 0, true }, { 1, 0, false }, { 0, 1, false }, { 0x100, 2, false },
        { 0, 2, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = guest_new(SG_6_12);
        g_auto(KtSlabReport) r = { 0 };

        sg_set_counts(g, PAGE, 12, 16);
        sg_put(g, sg_node(CACHE) + SG_NODE_LOCK, row[i].lock, 4);
        sg_put(g, sg_struct(PAGE), row[i].flags, 4);
        r = expect(g, row[i].found ? "count" : "");
        g_assert_cmpuint(r.transit, ==, !row[i].found);
    }
}

TEST(test_lists, "/slab-check/lists")
{
    g_autoptr(SlabGuest) g = guest_new(SG_6_12);

    sg_add_slab(g, CACHE, 20, (unsigned[]) { 1 }, 1);
    sg_set_next(g, CACHE, PAGE, 7, sg_object(g, CACHE, 20, 1));
    expect_only(g, "wrong-slab 7");
    sg_set_next(g, CACHE, PAGE, 7, OBJECT(1) + 8);
    expect_only(g, "outside 7");
    sg_set_next(g, CACHE, PAGE, 7, OBJECT(3));
    expect_only(g, "cycle 7");
    sg_set_next(g, CACHE, PAGE, 7, OBJECT(1));
    sg_set_next(g, CACHE, PAGE, 1, 0);
    expect_only(g, "count, live-on-list 1");
    /* A CPU that clears its list: first the slab, then the objects. */
    sg_set_next(g, CACHE, PAGE, 7, 0);
    sg_set_cpu(g, CACHE, 0, sg_object(g, CACHE, 20, 1), 0,
               (unsigned[]) { 0 });
    expect_only(g, "");
}

/* The finding has the block of its slot, and that below. */
TEST(test_blocks, "/slab-check/blocks")
{
    g_autoptr(SlabGuest) g = guest_new(SG_6_12);
    g_auto(KtSlabReport) r = { 0 };
    const KtSlabFinding *f;

    set_state(g, OBJECT(5), FREED);
    sg_set_next(g, CACHE, PAGE, 5, 0x4141414141414141);
    r = expect(g, "outside 5");
    f = &g_array_index(r.findings, KtSlabFinding, 0);
    g_assert_true(f->has_block && f->has_below);
    g_assert_cmphex(f->block.va, ==, OBJECT(5));
    g_assert_cmpint(f->block.state, ==, KT_BLOCK_FREED);
    g_assert_cmphex(f->below.va, ==, OBJECT(4));
    g_assert_cmphex(f->value, ==, 0x4141414141414141);
    g_assert_cmphex(f->slab, ==, SG_DIRECT + PAGE * 4096);
    g_assert_cmpuint(f->position, ==, 1);
}

/* With pages=on the map has a block for the pages of a slab. A finding must not
 * show it as the object of a slot. */
TEST(test_pages_of_the_slab, "/slab-check/pages")
{
    g_autoptr(SlabGuest) g = guest_new(SG_6_12);
    g_auto(KtSlabReport) r = { 0 };
    const KtSlabFinding *f;
    KtEvent pages = { .kind = KT_EV_ALLOC, .va = SG_DIRECT + PAGE * 4096,
                      .size = 4096, .us = 1, .layer = KT_LAYER_PAGES };

    kt_tracer_push(g->t, 0, &pages);
    sg_set_next(g, CACHE, PAGE, 7, 0x4141414141414141);
    r = expect(g, "outside 7");
    f = &g_array_index(r.findings, KtSlabFinding, 0);
    g_assert_false(f->has_block);
    g_assert_true(f->has_below);
    g_assert_cmphex(f->below.va, ==, OBJECT(6));
}

/* If frees may be missing in the map, it contradicts nothing. */
TEST(test_unsure, "/slab-check/unsure")
{
    for (unsigned i = 0; i < 3; i++) {
        g_autoptr(SlabGuest) g = guest_new(SG_6_12);
        g_auto(KtSlabReport) r = { 0 };

        set_state(g, OBJECT(5), LIVE);
        kt_tracer_set_complete(g->t, i != 0);
        kt_tracer_set_enabled(g->t, false);
        kt_tracer_set_enabled(g->t, i == 0 || i == 2);
        sg_set_next(g, CACHE, PAGE, 7, 1);
        r = expect(g, "outside 7");
        g_assert_cmpuint(r.unsure, ==, 1);
        g_assert_nonnull(r.why);
    }
}

TEST(test_refusals, "/slab-check/refusals")
{
    g_autoptr(SlabGuest) g = guest_new(SG_6_12);
    g_autoptr(GError) none = NULL, runs = NULL, unmapped = NULL;
    g_auto(KtSlabReport) r = { 0 };
    g_auto(KtSlabReport) other = { 0 };
    g_auto(KtSlabReport) third = { 0 };

    g_assert_false(kt_slab_check(&g->o, "kmalloc-255", &r, &none));
    g_assert_nonnull(strstr(none->message, "\"kmalloc-255\": no cache"));
    g->vm.running = true;
    g_assert_false(kt_slab_check(&g->o, NULL, &other, &runs));
    g_assert_nonnull(strstr(runs->message, "the VM runs"));
    g->vm.running = false;
    g->vm.n_vcpus = 0;
    g_assert_false(kt_slab_check(&g->o, NULL, &third, &unmapped));
    g_assert_nonnull(strstr(unmapped->message, "no vCPU maps"));
}
