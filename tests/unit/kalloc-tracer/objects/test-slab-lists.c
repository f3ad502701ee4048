/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of free objects: each list of each kind of kernel is walked in its
 * order, in all forms of free pointers; and whatever is wrong with a list is
 * reported at its place, once, and ends its walk.
 */
#include "kalloc-tracer/api/kt-slabs.h"
#include "kalloc-tracer/objects/slab-internal.h"
#include "tests/lib/slab-guest.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define CACHE   1u
#define OTHER   2u
#define SIZE    256u            /* 16 slots in a slab */

/** struct Seen - what a walk said, in lines */
typedef struct Seen {
    GString *text;
} Seen;

static void on_object(void *opaque, const KtSlabList *l, const KtFreeObject *f)
{
    Seen *seen = opaque;

    g_assert_cmphex(f->va, ==, f->slab->base + f->slot * SIZE);
    g_assert_cmpuint(f->position, ==, l->objects);
    g_string_append_printf(seen->text, " %u.%u",
                           (unsigned)(f->slab->base - SG_DIRECT) / 4096,
                           f->slot);
}

static void on_list(void *opaque, const KtSlabList *l)
{
    Seen *seen = opaque;

    g_string_append_printf(seen->text, " =%s%u-%s(%u/%u)\n",
                           kt_slab_list_owner(l->kind), l->number,
                           kt_slab_list_name(l->kind), (unsigned)l->parts,
                           (unsigned)l->objects);
}

static void on_problem(void *opaque, const KtSlabProblem *p)
{
    Seen *seen = opaque;

    g_string_append_printf(seen->text, " !%s", kt_slab_problem_name(p->kind));
    if (p->slab) {
        g_string_append_printf(seen->text, "@%u",
                               (unsigned)(p->slab->base - SG_DIRECT) / 4096);
    }
    if (p->slot != KT_NO_SLOT) {
        g_string_append_printf(seen->text, ".%u", p->slot);
    }
    if (p->expected && p->expected < UINT32_MAX) {
        g_string_append_printf(seen->text, ":%u/%u", (unsigned)p->value,
                               (unsigned)p->expected);
    }
}

/* Return (owned) the walk of a cache as lines. */
static char *walk(SlabGuest *g, unsigned i)
{
    static const KtSlabOps ops = {
        .object = on_object, .list = on_list, .problem = on_problem,
    };
    g_autoptr(GError) err = NULL;
    g_autoptr(KtSlabs) s = kt_slabs_new(&g->o, &err);
    Seen seen = { g_string_new(NULL) };
    KtSlabCache c;

    g_assert_no_error(err);
    g_assert_true(kt_slabs_cache(s, sg_cache(i), &c));
    kt_slabs_walk(s, &c, &ops, &seen);
    return g_string_free(seen.text, FALSE);
}

static void expect(SlabGuest *g, const char *want)
{
    g_autofree char *text = walk(g, CACHE);

    g_assert_cmpstr(text, ==, want);
}

/* A cache with four slabs: 16 a CPU's, 17 and 18 its partial ones, 19 and 20
 * the node's. */
static SlabGuest *guest_with_lists(SgKind kind, SgForm form)
{
    SlabGuest *g = slab_guest_new(kind, form);

    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    sg_add_slab(g, CACHE, 16, (unsigned[]) { 9 }, 1);
    sg_add_slab(g, CACHE, 17, (unsigned[]) { 3, 1 }, 2);
    sg_add_slab(g, CACHE, 18, (unsigned[]) { 15 }, 1);
    sg_add_slab(g, CACHE, 19, (unsigned[]) { 4, 5, 0, 15 }, 4);
    sg_add_slab(g, CACHE, 20, (unsigned[]) { 7 }, 1);
    sg_set_partial(g, CACHE, (unsigned[]) { 19, 20, 0 });
    sg_set_cpu(g, CACHE, 0,
               sg_chain(g, CACHE, 16, (unsigned[]) { 2, 8, 5 }, 3), 16,
               (unsigned[]) { 17, 18, 0 });
    return g;
}

#define CPU0 " 16.2 16.8 16.5 =cpu0-freelist(0/3)\n 16.9 =cpu0-slab(0/1)\n"
#define PART0 " 17.3 17.1 18.15 =cpu0-partial(2/3)\n"
#define CPU1 " =cpu1-freelist(0/0)\n =cpu1-partial(0/0)\n"
#define NODE0 " 19.4 19.5 19.0 19.15 20.7 =node0-partial(2/5)\n"

TEST(test_lists, "/slab-lists/lists")
{
    static const struct {
        SgKind kind;
        SgForm form;
    } row[] = {
        { SG_5_10, SG_PLAIN }, { SG_5_10, SG_XOR }, { SG_5_10, SG_SWAP },
        { SG_6_12, SG_PLAIN }, { SG_6_12, SG_XOR }, { SG_6_12, SG_SWAP },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = guest_with_lists(row[i].kind, row[i].form);

        expect(g, CPU0 PART0 CPU1 NODE0);
    }
}

TEST(test_free_pointer, "/slab-lists/free-pointer")
{
    g_assert_cmphex(kt_free_pointer(KT_FREE_PLAIN, 1, 2, 0x30), ==, 0x30);
    g_assert_cmphex(kt_free_pointer(KT_FREE_XOR, 1, 2, 0x30), ==, 0x33);
    g_assert_cmphex(kt_free_pointer(KT_FREE_XOR_SWAP, 1, 2, 0x30), ==,
                    0x0200000000000031ull);
}

/* ---- what is wrong ------------------------------------------------------- */

static void break_outside(SlabGuest *g)
{
    sg_set_next(g, CACHE, 19, 5, 0x4141414141414141ull);
}

static void break_misaligned(SlabGuest *g)
{
    sg_set_next(g, CACHE, 19, 5, sg_object(g, CACHE, 19, 0) + 8);
}

static void break_into_other_slab(SlabGuest *g)
{
    sg_set_next(g, CACHE, 19, 5, sg_object(g, CACHE, 20, 0));
}

static void break_cycle(SlabGuest *g)
{
    sg_set_next(g, CACHE, 19, 15, sg_object(g, CACHE, 19, 5));
}

static void break_self(SlabGuest *g)
{
    sg_set_next(g, CACHE, 20, 7, sg_object(g, CACHE, 20, 7));
}

/* The CPU's list and its slab's own end with the same objects. */
static void break_twice(SlabGuest *g)
{
    sg_set_next(g, CACHE, 16, 5, sg_object(g, CACHE, 16, 9));
}

static void break_count(SlabGuest *g)
{
    sg_set_counts(g, 19, 11, 16);
}

static void break_objects(SlabGuest *g)
{
    sg_set_counts(g, 19, 12, 17);
}

static void break_inuse(SlabGuest *g)
{
    sg_set_counts(g, 19, 17, 16);
}

static void break_length(SlabGuest *g)
{
    sg_put(g, sg_node(CACHE), 3, 8);
}

static void break_page(SlabGuest *g)
{
    sg_put(g, sg_struct(20) + 48, 0xf0000000, 4);
}

static void break_cache(SlabGuest *g)
{
    sg_put(g, sg_struct(20) + 8, sg_cache(0), 8);
}

static void break_list_cycle(SlabGuest *g)
{
    sg_put(g, sg_struct(20) + 16, sg_struct(19) + 16, 8);
}

static void break_list_outside(SlabGuest *g)
{
    sg_put(g, sg_struct(20) + 16, 0x4141414141414141ull, 8);
}

static void break_unreadable(SlabGuest *g)
{
    sg_put(g, sg_struct(20) + 16, SG_VMEMMAP + 64 * 4096 + 16, 8);
}

static void break_cpu_slab(SlabGuest *g)
{
    sg_set_cpu(g, CACHE, 1, sg_object(g, CACHE, 16, 12), 0, NULL);
}

static void break_two_cpus(SlabGuest *g)
{
    sg_set_cpu(g, CACHE, 1, 0, 16, NULL);
}

#define TILL_NODE CPU0 PART0 CPU1
#define END19 " =node0-partial(2/"

TEST(test_problems, "/slab-lists/problems")
{
    static const struct {
        void (*damage)(SlabGuest *g);
        const char *want;
    } row[] = {
        { break_outside, TILL_NODE " 19.4 19.5 !outside@19.5 20.7" END19
                         "3)\n" },
        { break_misaligned, TILL_NODE " 19.4 19.5 !outside@19.5 20.7" END19
                            "3)\n" },
        { break_into_other_slab, TILL_NODE " 19.4 19.5 !outside@19.5 20.7"
                                 END19 "3)\n" },
        { break_cycle, TILL_NODE " 19.4 19.5 19.0 19.15 !cycle@19.15 20.7"
                       END19 "5)\n" },
        { break_self, TILL_NODE " 19.4 19.5 19.0 19.15 20.7 !cycle@20.7"
                      END19 "5)\n" },
        { break_twice, " 16.2 16.8 16.5 16.9 =cpu0-freelist(0/4)\n"
                       " !twice@16 =cpu0-slab(0/0)\n" PART0 CPU1 NODE0 },
        { break_count, TILL_NODE " 19.4 19.5 19.0 19.15 !count@19:4/5 20.7"
                       END19 "5)\n" },
        { break_objects, TILL_NODE " !bad-slab@19:17/16"
                         " =node0-partial(0/0)\n" },
        { break_inuse, TILL_NODE " !bad-slab@19:16/16"
                       " =node0-partial(0/0)\n" },
        { break_length, TILL_NODE " 19.4 19.5 19.0 19.15 20.7 !length:2/3"
                        END19 "5)\n" },
        { break_page, TILL_NODE " 19.4 19.5 19.0 19.15 !not-slab"
                      " =node0-partial(1/4)\n" },
        { break_cache, TILL_NODE " 19.4 19.5 19.0 19.15 !wrong-cache@20"
                       " =node0-partial(1/4)\n" },
        { break_list_cycle, TILL_NODE " 19.4 19.5 19.0 19.15 20.7 !twice@19"
                            END19 "5)\n" },
        { break_list_outside, TILL_NODE " 19.4 19.5 19.0 19.15 20.7"
                              " !unreadable" END19 "5)\n" },
        { break_unreadable, TILL_NODE " 19.4 19.5 19.0 19.15 20.7"
                            " !unreadable" END19 "5)\n" },
        { break_cpu_slab, CPU0 PART0 " !outside =cpu1-freelist(0/0)\n"
                          " =cpu1-partial(0/0)\n" NODE0 },
        { break_two_cpus, CPU0 PART0 " !twice@16 =cpu1-freelist(0/0)\n"
                          " =cpu1-partial(0/0)\n" NODE0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = guest_with_lists(SG_6_12, SG_SWAP);

        /* Lists of another cache decide how free pointers are stored. */
        sg_add_cache(g, OTHER, "kmalloc-128", 128);
        for (unsigned page = 32; page < 36; page++) {
            sg_add_slab(g, OTHER, page, (unsigned[]) { 9, 4, 30 }, 3);
        }
        sg_set_partial(g, OTHER, (unsigned[]) { 32, 33, 34, 35, 0 });
        row[i].damage(g);
        expect(g, row[i].want);
    }
}

/* ---- sheaves ------------------------------------------------------------- */

/* Objects of two slabs, 16 and 17, are in sheaves; slab 18 is partial. */
static SlabGuest *guest_with_sheaves(void)
{
    SlabGuest *g = slab_guest_new(SG_7_3, SG_SWAP);

    sg_add_cache(g, CACHE, "kmalloc-256", SIZE);
    for (unsigned page = 16; page < 18; page++) {
        sg_add_slab(g, CACHE, page, NULL, 0);
    }
    sg_add_slab(g, CACHE, 18, (unsigned[]) { 1, 0 }, 2);
    sg_set_partial(g, CACHE, (unsigned[]) { 18, 0 });
#define OBJECT(page, slot) sg_object(g, CACHE, page, slot)
    sg_add_sheaf(g, CACHE, 0, (uint64_t[]) { OBJECT(16, 1), OBJECT(17, 2),
                                             OBJECT(16, 3) }, 3);
    sg_add_sheaf(g, CACHE, 1, (uint64_t[]) { OBJECT(16, 0) }, 1);
    sg_add_sheaf(g, CACHE, 2, (uint64_t[]) { OBJECT(17, 9) }, 1);
    sg_add_sheaf(g, CACHE, 3, NULL, 0);
    sg_add_sheaf(g, CACHE, 4, (uint64_t[]) { OBJECT(16, 4), OBJECT(16, 5),
                                             OBJECT(16, 6), OBJECT(16, 7) },
                 4);
    sg_add_sheaf(g, CACHE, 5, (uint64_t[]) { OBJECT(17, 4) }, 1);
    sg_add_sheaf(g, CACHE, 6, NULL, 0);
    sg_set_sheaves(g, CACHE, 0, 0, 1, 2);
    sg_set_sheaves(g, CACHE, 1, 3, UINT_MAX, UINT_MAX);
    sg_set_barn(g, CACHE, true, (unsigned[]) { 4, 5 }, 2);
    sg_set_barn(g, CACHE, false, (unsigned[]) { 6 }, 1);
    return g;
}

#define MAIN0 " 16.3 17.2 16.1 =cpu0-main(1/3)\n"
#define REST0 " 16.0 =cpu0-spare(1/1)\n 17.9 =cpu0-rcu(1/1)\n"
#define MAIN1 " =cpu1-main(1/0)\n"
#define NODE  " 18.1 18.0 =node0-partial(1/2)\n"
#define FULL  " 16.7 16.6 16.5 16.4 17.4 =node0-barn-full(2/5)\n"
#define EMPTY " =node0-barn-empty(1/0)\n"

TEST(test_sheaves, "/slab-lists/sheaves")
{
    g_autoptr(SlabGuest) g = guest_with_sheaves();

    expect(g, MAIN0 REST0 MAIN1 NODE FULL EMPTY);
}

static void break_sheaf_size(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 24, SG_CAPACITY + 1, 4);
}

static void break_sheaf_cache(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 16, sg_cache(0), 8);
}

static void break_sheaf_object(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 32 + 8, OBJECT(17, 2) + 8, 8);
}

static void break_sheaf_twice(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 32 + 8, OBJECT(16, 3), 8);
}

static void break_sheaf_page(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 32 + 8, SG_DIRECT + 40 * 4096, 8);
}

static void break_sheaf_user(SlabGuest *g)
{
    sg_put(g, sg_sheaf(0) + 32 + 8, 0x400000, 8);
}

static void break_same_sheaf(SlabGuest *g)
{
    sg_set_sheaves(g, CACHE, 1, 0, UINT_MAX, UINT_MAX);
}

static void break_barn(SlabGuest *g)
{
    sg_put(g, sg_sheaf(5), sg_sheaf(4), 8);
}

static void break_barn_number(SlabGuest *g)
{
    sg_set_barn(g, CACHE, true, (unsigned[]) { 4, 5 }, 2);
    sg_put(g, SG_DIRECT + 5 * 4096 + 1024 + 64 * CACHE + 32, 3, 4);
}

TEST(test_sheaf_problems, "/slab-lists/sheaf-problems")
{
    static const struct {
        void (*damage)(SlabGuest *g);
        const char *want;
    } row[] = {
        { break_sheaf_size, " !bad-sheaf:5/4 =cpu0-main(1/0)\n" REST0 MAIN1
                            NODE FULL EMPTY },
        { break_sheaf_cache, " !wrong-cache =cpu0-main(0/0)\n" REST0 MAIN1
                             NODE FULL EMPTY },
        { break_sheaf_object, " 16.3 !outside@17 16.1 =cpu0-main(1/2)\n" REST0
                              MAIN1 NODE FULL EMPTY },
        { break_sheaf_twice, " 16.3 !twice@16 16.1 =cpu0-main(1/2)\n" REST0
                             MAIN1 NODE FULL EMPTY },
        { break_sheaf_page, " 16.3 !not-slab 16.1 =cpu0-main(1/2)\n" REST0
                            MAIN1 NODE FULL EMPTY },
        { break_sheaf_user, " 16.3 !outside 16.1 =cpu0-main(1/2)\n" REST0
                            MAIN1 NODE FULL EMPTY },
        { break_same_sheaf, MAIN0 REST0 " !twice =cpu1-main(0/0)\n" NODE FULL
                            EMPTY },
        { break_barn, MAIN0 REST0 MAIN1 NODE
                      " 16.7 16.6 16.5 16.4 17.4 !twice"
                      " =node0-barn-full(2/5)\n" EMPTY },
        { break_barn_number, MAIN0 REST0 MAIN1 NODE
                             " 16.7 16.6 16.5 16.4 17.4 !length:2/3"
                             " =node0-barn-full(2/5)\n" EMPTY },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(SlabGuest) g = guest_with_sheaves();

        row[i].damage(g);
        expect(g, row[i].want);
    }
}

/* Without capacity all CPUs have one sheaf that is of no cache. */
TEST(test_no_capacity, "/slab-lists/no-capacity")
{
    g_autoptr(SlabGuest) g = guest_with_sheaves();

    sg_put(g, sg_cache(CACHE) + 72, 0, 4);
    sg_set_sheaves(g, CACHE, 0, 9, UINT_MAX, UINT_MAX);
    sg_set_sheaves(g, CACHE, 1, 9, UINT_MAX, UINT_MAX);
    expect(g, NODE);
}

/* ---- free pointers that nobody understands ------------------------------- */

TEST(test_unknown_form, "/slab-lists/unknown-form")
{
    g_autoptr(SlabGuest) g = guest_with_lists(SG_6_12, SG_SWAP);

    sg_put(g, sg_cache(CACHE) + 56, 0x1111, 8);     /* another random */
    expect(g, " =cpu0-freelist(0/0)\n =cpu0-slab(0/0)\n"
              " =cpu0-partial(2/0)\n" CPU1 " =node0-partial(2/0)\n");
}
