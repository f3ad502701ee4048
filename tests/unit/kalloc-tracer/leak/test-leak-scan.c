/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scans and searches of a small guest: the use of its pages, which memory is a
 * root, which words are skipped, and that a search ends, whatever the guest
 * claims.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "kalloc-tracer/leak/page-use.h"

#include <inttypes.h>
#include <string.h>

#define STRUCT(at)  lg_struct(at)
#define OBJECT      LG_OBJECT(5)

/* ---- pages -------------------------------------------------------------- */

static bool is_cache(void *opaque, uint64_t va)
{
    return va - LG_CACHE(0) < 3 * 64;
}

static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    return lg_read(opaque, 0, va, buf, len);
}

static KtPageUses *read_pages(LeakGuest *g)
{
    const GsMem mem = { .read = read_mem, .opaque = g };

    return kt_page_use_read(&g->k, &mem, NULL, is_cache, NULL);
}

static void check_use(const KtPageUses *p, uint64_t at, KtPageUse use)
{
    g_assert_cmpint(p->use[at / 4096 - p->lo], ==, use);
}

LEAK_TEST(test_pages_by_use, "/pages/by-use")
{
    g_autoptr(KtPageUses) p = read_pages(g);

    g_assert_nonnull(p);
    g_assert_cmpuint(p->lo, ==, 1);
    g_assert_cmpuint(p->n, ==, LG_PAGES - 1);
    check_use(p, LG_AT_KERNEL, KT_PAGE_KERNEL);
    check_use(p, LG_AT_SLAB, KT_PAGE_SLAB);
    check_use(p, LG_AT_SLAB + 0x7000, KT_PAGE_SLAB);
    check_use(p, LG_AT_SLAB + 0x8000, KT_PAGE_KERNEL);
    check_use(p, LG_AT_USER, KT_PAGE_USER);
    check_use(p, LG_AT_USER + 0x1000, KT_PAGE_USER);    /* its tail */
    check_use(p, LG_AT_USER + 0x2000, KT_PAGE_FREE);
    check_use(p, LG_AT_FREE + 0x1000, KT_PAGE_FREE);
    check_use(p, LG_AT_FREE_CPU, KT_PAGE_FREE);
    check_use(p, LG_AT_FREE_CPU + 0x1000, KT_PAGE_KERNEL);
}

/* A wrong entry in a free list ends the walk. */
TEST(test_lists_that_lie, "/pages/lists-that-lie")
{
    static const struct {
        uint64_t next;
        bool free;              /* the page is found free */
    } row[] = {
        { 0, false }, { ~0ull, false }, { LG_VMEMMAP, false },
        { LG_VMEMMAP + LG_PAGE_LRU, false },            /* before the first */
        { LG_VMEMMAP + 64 * LG_PAGES + LG_PAGE_LRU, false },
        { LG_VMEMMAP + LG_AT_FREE / 64 + LG_PAGE_LRU + 1, false },
        { LG_VMEMMAP + LG_AT_FREE / 64 + 64 + LG_PAGE_LRU, false }, /* odd */
        { LG_VMEMMAP + LG_AT_FREE / 64 + LG_PAGE_LRU, true },
    };
    const uint64_t head = LG_IMAGE + LG_CONTIG + LG_FREE_AREA + LG_AREA_SIZE;

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_autoptr(KtPageUses) p = NULL;

        lg_put(g, head, row[i].next);
        lg_put(g, STRUCT(LG_AT_FREE) + LG_PAGE_LRU,
               STRUCT(LG_AT_FREE) + LG_PAGE_LRU);       /* points to itself */
        p = read_pages(g);
        g_assert_nonnull(p);
        check_use(p, LG_AT_FREE + 0x1000, row[i].free ? KT_PAGE_FREE :
                                                        KT_PAGE_KERNEL);
    }
}

TEST(test_tails_of_what_is_no_head, "/pages/tails-of-what-is-no-head")
{
    static const uint64_t head[] = {
        1, ~0ull, LG_VMEMMAP + LG_AT_KERNEL / 64 + 2,
        LG_VMEMMAP + LG_AT_KERNEL / 64 + 64 + 1,  /* after it */
        LG_VMEMMAP + 64 * LG_PAGES + 1,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(head); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_autoptr(KtPageUses) p = NULL;

        lg_put(g, STRUCT(LG_AT_KERNEL) + LG_PAGE_HEAD, head[i]);
        p = read_pages(g);
        g_assert_nonnull(p);
        check_use(p, LG_AT_KERNEL, KT_PAGE_KERNEL);
    }
}

TEST(test_how_many_pages_are_said, "/pages/how-many-are-said")
{
    static const struct {
        uint64_t lo, end, n;    /* 0: no variable */
    } row[] = {
        { 1, 1, 0 }, { 2, 1, 0 }, { ~0ull, 0, 0 }, { 0, 0, 0 },
        { 0, ~0ull, 1ull << 26 }, { 5, 6, 1 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        g_autoptr(KtPageUses) p = NULL;

        lg_put(g, LG_IMAGE + LG_MIN_LOW_PFN, row[i].lo);
        lg_put(g, LG_IMAGE + LG_MAX_PFN, row[i].end);
        p = read_pages(g);
        g_assert_cmpuint(p ? p->n : 0, ==, row[i].n);
    }
}

/* ---- scans -------------------------------------------------------------- */

static void scan(LeakGuest *g, KtLeakReport *out)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GError) err = NULL;

    kt_leak_scan(g->t, &plan, out, &err);
    g_assert_no_error(err);
}

/* All roots are found, and the objects that none refers to are reported. */
LEAK_TEST(test_leaked_unless_referred_to, "/leak/leaked-unless-referred-to")
{
    g_auto(KtLeakReport) r = { 0 };
    static const uint64_t other[] = { LG_PERCPU, LG_LARGE, LG_VMALLOCED };
    GString *want = g_string_new(NULL), *got = g_string_new(NULL);

    scan(g, &r);
    g_assert_cmpuint(r.missing->len, ==, 0);
    g_assert_cmpuint(r.tasks, ==, 3);
    g_assert_cmpuint(r.unreadable, ==, 0);
    g_assert_cmpuint(r.guest_bytes, ==, LG_RAM - 4096);
    g_string_append_printf(want, " %" PRIx64, other[0]);
    for (unsigned i = 0; i < LG_OBJECTS; i++) {
        g_string_append_printf(want, " %" PRIx64, (uint64_t)LG_OBJECT(i));
    }
    g_string_append_printf(want, " %" PRIx64 " %" PRIx64, other[1], other[2]);
    for (unsigned i = 0; i < r.leaks->len; i++) {
        g_string_append_printf(got, " %" PRIx64,
                               g_array_index(r.leaks, KtLeak, i).block.va);
    }
    g_assert_cmpstr(got->str, ==, want->str);
    g_string_free(want, TRUE);
    g_string_free(got, TRUE);
}

/* Does a word at this place keep a block alive? */
static const struct {
    const char *what;
    uint64_t va;
    bool counts;
} places[] = {
    { "a variable", LG_IMAGE + LG_ROOT, true },
    { "bss", LG_IMAGE + LG_DATA_END + 0x800, true },
    { "read-only data", LG_IMAGE + 0x5100, true },
    { "the rest of its page", LG_IMAGE + 0x5900, true },
    { "a per-CPU variable", LG_DIRECT + LG_AT_PERCPU + 0x1a00, true },
    { "an unused interrupt stack", LG_DIRECT + LG_AT_PERCPU + 0xd00, false },
    { "the first task's stack", LG_IMAGE + LG_INIT_STACK + 0x900, true },
    { "below its stack pointer", LG_IMAGE + LG_INIT_STACK + 0x700, false },
    { "a task's stack", LG_TASK_STACK_VA(1) + 0x900, true },
    { "below its stack pointer", LG_TASK_STACK_VA(1) + 0x700, false },
    { "a page of the kernel's", LG_DIRECT + LG_AT_KERNEL, true },
    { "a user's page", LG_DIRECT + LG_AT_USER, false },
    { "the page behind it", LG_DIRECT + LG_AT_USER + 0x1000, false },
    { "a free page", LG_DIRECT + LG_AT_FREE + 0x1000, false },
    { "a CPU's free page", LG_DIRECT + LG_AT_FREE_CPU, false },
    { "a slab, beside its objects", LG_DIRECT + LG_AT_SLAB + 0x800, false },
    { "a struct page", LG_VMEMMAP + LG_AT_KERNEL / 64 + 32, true },
    { "a lost object", LG_OBJECT(7) + 8, false },
    { "a task", LG_TASK(0) + 128, true },
    { "lost memory of vmalloc", LG_VMALLOCED + 0x1800, false },
    { "a lost large block", LG_LARGE + 0x1800, false },
};

TEST(test_what_counts_as_in_use, "/leak/what-counts-as-in-use")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();

        g_test_message("%s", places[i].what);
        lg_put(g, places[i].va, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !places[i].counts);
    }
}

LEAK_TEST(test_registers, "/leak/registers")
{
    g->reg = OBJECT + 4;
    g_assert_false(lg_is_leaked(g, OBJECT));
    /* an interrupt stack is in use if a register points into it */
    g->reg = LG_DIRECT + LG_AT_PERCPU + 0xe00;
    lg_put(g, LG_DIRECT + LG_AT_PERCPU + 0xd00, OBJECT);
    g_assert_false(lg_is_leaked(g, OBJECT));
}

/* A vmalloc block is scanned at all its addresses if it is reached. Its
 * vm_struct does not count as a pointer to it. */
LEAK_TEST(test_vmalloc, "/leak/vmalloc")
{
    lg_put(g, LG_VMALLOCED + 0x1ff8, OBJECT);
    lg_put(g, LG_IMAGE + LG_ROOT, LG_VM(2));
    g_assert_true(lg_is_leaked(g, LG_VMALLOCED));
    lg_put(g, LG_IMAGE + LG_ROOT, LG_VMALLOCED);
    g_assert_false(lg_is_leaked(g, LG_VMALLOCED));
    g_assert_false(lg_is_leaked(g, OBJECT));
}

/* A vmap_area that waits to be freed has a stale vm, except on 5.10, where
 * that word is the link to the next one. */
TEST(test_areas_that_wait, "/leak/areas-that-wait")
{
    const uint64_t waits = LG_VMAP + LG_VMAP_SIZE;
    g_autoptr(LeakGuest) g = leak_guest_new();

    lg_alloc(g, waits, LG_VMAP_SIZE, KT_LAYER_CACHE, (KtCacheId) { 1 });
    lg_put(g, waits + LG_AREA_START, LG_VMALLOCED + 0x3000);
    lg_put(g, waits + LG_AREA_END, LG_VMALLOCED + 0x5000);
    lg_put(g, waits + LG_AREA_VM, OBJECT);
    lg_put(g, LG_IMAGE + LG_ROOT, waits);
    g_assert_true(lg_is_leaked(g, OBJECT));
    gs_btf_free(g->k.btf);
    g->k.btf = lg_types_of_5_10();
    g_assert_false(lg_is_leaked(g, OBJECT));
    lg_put(g, LG_IMAGE + LG_ROOT, 0);
    g_assert_true(lg_is_leaked(g, OBJECT));
}

LEAK_TEST(test_other_addresses, "/leak/other-addresses")
{
    lg_put(g, LG_IMAGE + LG_ROOT, LG_PERCPU);
    lg_put(g, LG_DIRECT + LG_AT_PERCPU + 0x1000 + LG_PERCPU, OBJECT);
    lg_put(g, LG_IMAGE + LG_ROOT + 8, STRUCT(LG_AT_LARGE));
    g_assert_false(lg_is_leaked(g, LG_PERCPU));
    g_assert_false(lg_is_leaked(g, OBJECT));
    g_assert_false(lg_is_leaked(g, LG_LARGE));
}

/* Add a record of kmemleak to the guest. */
static uint64_t add_record(LeakGuest *g)
{
    const uint64_t va = LG_DIRECT + LG_AT_SLAB + 0x4000;
    KtCacheId cache = kt_tracer_add_cache(g->t, LG_CACHE(3), "kmemleak_object",
                                          LG_RECORD_SIZE, LG_RECORD_SIZE);

    lg_alloc(g, va, LG_RECORD_SIZE, KT_LAYER_CACHE, cache);
    return va;
}

/* Only the rcu_head of a record with use_count 0 is scanned. */
TEST(test_records_of_kmemleak, "/leak/records-of-kmemleak")
{
    static const struct {
        uint32_t at, use_count;
        bool counts;
    } row[] = {
        { LG_RECORD_POINTER, 1, false }, { LG_RECORD_RCU, 1, false },
        { LG_RECORD_POINTER, 0, false }, { LG_RECORD_RCU, 0, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        uint64_t record = add_record(g);

        lg_put(g, record + LG_RECORD_USE, row[i].use_count);
        lg_put(g, record + row[i].at, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
        g_assert_false(lg_is_leaked(g, record));
    }
}

/* ---- skipped words ------------------------------------------------------ */

#define NODE(i) (LG_TASK(i) + LG_TASK_NODE)

/* The rb_node of the last task points to the first task and to an object. */
TEST(test_nodes_that_are_in_no_tree, "/leak/nodes-that-are-in-no-tree")
{
    static const struct {
        uint64_t parent, child;         /* in the node, and in its parent */
        bool counts;
    } row[] = {
        { NODE(0), NODE(1), true }, { NODE(0) | 1, NODE(1), true },
        { NODE(0), 0, false }, { NODE(0), NODE(1) + 8, false },
        { NODE(1), 0, false },          /* cleared: points to itself */
        { 0, 0, true },                 /* the root: no parent */
        { 0x1000, 0, false },           /* unreadable */
    };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        unsigned n = i / 2;

        lg_put(g, NODE(0) + (i & 1 ? LG_NODE_LEFT : LG_NODE_RIGHT),
               row[n].child);
        lg_put(g, NODE(1), row[n].parent);
        lg_put(g, NODE(1) + LG_NODE_LEFT, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[n].counts);
    }
}

/* The member is skipped only in blocks of its type. */
TEST(test_flags_are_no_address, "/leak/flags-are-no-address")
{
    static const char *const name[] = { "kmem_cache", "other" };

    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        const uint64_t va = LG_DIRECT + LG_AT_SLAB + 0x4000;
        KtCacheId cache = kt_tracer_add_cache(g->t, LG_CACHE(3), name[i],
                                              LG_KMEM_CACHE_SIZE,
                                              LG_KMEM_CACHE_SIZE);

        lg_alloc(g, va, LG_KMEM_CACHE_SIZE, KT_LAYER_CACHE, cache);
        lg_put(g, LG_IMAGE + LG_ROOT, va);
        lg_put(g, va + LG_KMEM_CACHE_FLAGS, LG_PERCPU);
        g_assert_cmpint(lg_is_leaked(g, LG_PERCPU), ==, i == 0);
        lg_put(g, va + LG_KMEM_CACHE_FLAGS + 8, LG_PERCPU);
        g_assert_false(lg_is_leaked(g, LG_PERCPU));
    }
}

/* A kernfs_node keeps its object until it was removed: it is in no tree then,
 * and its count is negative. */
TEST(test_removed_sysfs_entries, "/leak/removed-sysfs-entries")
{
    const uint64_t va = LG_DIRECT + LG_AT_SLAB + 0x4000;
    const struct {
        uint32_t active;
        uint64_t parent;
        bool counts;
    } row[] = {
        { 0, 0, true }, { 0, va + LG_KERNFS_RB, true },
        { 0x80000001, 0, true }, { 0x80000001, va + LG_KERNFS_RB, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        KtCacheId cache = kt_tracer_add_cache(g->t, LG_CACHE(3),
                                              "kernfs_node_cache",
                                              LG_KERNFS_SIZE, LG_KERNFS_SIZE);

        lg_alloc(g, va, LG_KERNFS_SIZE, KT_LAYER_CACHE, cache);
        lg_put(g, LG_IMAGE + LG_ROOT, va);
        lg_put(g, va, (uint64_t)row[i].active << 32);
        lg_put(g, va + LG_KERNFS_RB, row[i].parent);
        lg_put(g, va + LG_KERNFS_PRIV, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
    }
}

/* Requested size, and the offset of a pointer in the block. */
TEST(test_words_asked_for_in_part, "/leak/words-asked-for-in-part")
{
    static const struct {
        unsigned requested, at;
        bool counts;
    } row[] = {
        { 2, 0, false }, { 7, 0, false }, { 8, 0, true }, { 9, 0, true },
        { 9, 8, false }, { 15, 8, false }, { 16, 8, true },
        { 2, 8, true },                 /* after it: ksize() */
        { 64, 56, true }, { 63, 56, false }, { 57, 48, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        const uint64_t va = LG_DIRECT + LG_AT_SLAB + 0x4000;
        KtCacheId cache = kt_tracer_add_cache(g->t, LG_CACHE(3), "kmalloc-64",
                                              64, 64);

        lg_alloc_sized(g, va, row[i].requested, 64, KT_LAYER_KMALLOC, cache);
        lg_put(g, LG_IMAGE + LG_ROOT, va);
        lg_put(g, va + row[i].at, OBJECT);
        g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !row[i].counts);
    }
}

/* The page of LG_LARGE has stale pointers of the slab it was: to a free object,
 * and to the first one. */
TEST(test_a_page_that_was_a_slab, "/leak/a-page-that-was-a-slab")
{
    static const struct {
        uint64_t at;            /* of the struct page */
        uint32_t word;
        uint64_t value;
        bool counts;
    } row[] = {
        { LG_AT_LARGE, LG_PAGE_FREELIST, LG_LARGE + 0x100, false },
        { LG_AT_LARGE, LG_PAGE_FREELIST, LG_LARGE + 0x1100, false },
        { LG_AT_LARGE, LG_PAGE_FIRST, LG_LARGE, false },
        { LG_AT_LARGE, LG_PAGE_FREELIST + 8, LG_LARGE + 0x100, true },
        { LG_AT_SLAB, LG_PAGE_FREELIST, LG_LARGE, true },   /* another slab's */
        { LG_AT_LARGE, LG_PAGE_FREELIST, OBJECT, true },
        { LG_AT_LARGE, LG_PAGE_FIRST, OBJECT, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(LeakGuest) g = leak_guest_new();
        uint64_t object = row[i].value == OBJECT ? OBJECT : LG_LARGE;

        lg_put(g, STRUCT(0), 1);            /* the page must not be all zero */
        lg_put(g, STRUCT(row[i].at) + row[i].word, row[i].value);
        g_assert_cmpint(lg_is_leaked(g, object), ==, !row[i].counts);
    }
}

/* The memory map is scanned at vmemmap only, without struct pages of free
 * pages. */
TEST(test_struct_pages_are_in_memory, "/leak/struct-pages-are-in-memory")
{
    g_autoptr(LeakGuest) same = leak_guest_new(), other = leak_guest_new();

    lg_put(same, STRUCT(0), 1);
    lg_put(same, STRUCT(LG_AT_FREE) + 48, OBJECT);
    g_assert_true(lg_is_leaked(same, OBJECT));
    /* a page that is equal only in part is scanned */
    memcpy(lg_at(other, LG_DIRECT + LG_AT_KERNEL, 512),
           lg_at(other, LG_VMEMMAP, 512), 512);
    lg_put(other, LG_DIRECT + LG_AT_KERNEL + 0x300, OBJECT);
    g_assert_false(lg_is_leaked(other, OBJECT));
}

/* Each CPU has a list of pages that kfree_rcu() keeps in reserve. */
TEST(test_pages_kept_for_kfree_rcu, "/leak/pages-kept-for-kfree-rcu")
{
    const uint64_t page = LG_DIRECT + LG_AT_KERNEL + 0x1000;
    const uint64_t head = LG_DIRECT + LG_AT_PERCPU + 0x1000 + LG_KRC +
                          LG_KRC_LIST;
    g_autoptr(LeakGuest) g = leak_guest_new();

    lg_put(g, page + 0x100, OBJECT);
    g_assert_false(lg_is_leaked(g, OBJECT));
    lg_put(g, head, page);
    g_assert_true(lg_is_leaked(g, OBJECT));
    lg_put(g, page, page);              /* an endless list */
    g_assert_true(lg_is_leaked(g, OBJECT));
    lg_put(g, page, 0);
    lg_put(g, head, LG_OBJECT(7));      /* wrong: not a page of the kernel */
    g_assert_false(lg_is_leaked(g, OBJECT));
}

/* ---- references to a block ---------------------------------------------- */

TEST(test_refs_of_each_place, "/refs/of-each-place")
{
    static const struct {
        uint64_t va;
        KtPlace place;
    } row[] = {
        { LG_OBJECT(7) + 8, KT_PLACE_BLOCK },
        { LG_TASK(0) + 128, KT_PLACE_BLOCK },
        { LG_VMALLOCED + 0x1800, KT_PLACE_BLOCK },
        { LG_IMAGE + LG_ROOT, KT_PLACE_DATA },
        { LG_DIRECT + LG_AT_PERCPU + 0x1a00, KT_PLACE_PERCPU },
        { LG_TASK_STACK_VA(1) + 0x900, KT_PLACE_STACK },
        { LG_VMEMMAP + LG_AT_KERNEL / 64 + 32, KT_PLACE_STRUCT_PAGE },
        { LG_DIRECT + LG_AT_KERNEL, KT_PLACE_PAGE },
        { LG_VMEMMAP + LG_AT_SLAB / 64 + LG_PAGE_FREELIST, KT_PLACE_FREELIST },
    };
    g_autoptr(LeakGuest) g = leak_guest_new();
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GArray) refs = NULL;
    uint64_t more, bytes;
    unsigned found = 0;

    g->reg = OBJECT + G_N_ELEMENTS(row);
    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        lg_put(g, row[i].va, OBJECT + i);
    }
    g_assert_true(kt_refs(g->t, &plan, OBJECT, OBJECT + 63, &refs, &more,
                          &bytes, NULL));
    /* words of struct pages are in pages of the direct map, too */
    g_assert_cmpuint(refs->len, ==, G_N_ELEMENTS(row) + 3);
    for (unsigned i = 0; i < refs->len; i++) {
        const KtRef *r = &g_array_index(refs, KtRef, i);
        unsigned n = r->value - OBJECT;

        if (n == G_N_ELEMENTS(row)) {
            g_assert_cmpstr(r->name, ==, "rdi");
            g_assert_cmpint(r->place, ==, KT_PLACE_REGISTER);
        } else if (r->va - LG_DIRECT - LG_AT_STRUCTS >= 4096) {
            g_assert_cmphex(r->va, ==, row[n].va);
            g_assert_cmpint(r->place, ==, row[n].place);
        }
        found |= 1u << n;
    }
    g_assert_cmphex(found, ==, 0x3ff);
    g_assert_cmpuint(more, ==, 0);
}

/* ---- impossible claims -------------------------------------------------- */

static bool stop(void *opaque, uint64_t bytes)
{
    ++*(unsigned *)opaque;
    return false;
}

LEAK_TEST(test_a_guest_without_end, "/leak/a-guest-without-end")
{
    unsigned asked = 0;
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k,
                              .progress = stop, .opaque = &asked };
    g_auto(KtLeakReport) r = { 0 };
    g_autoptr(GError) err = NULL;

    lg_put(g, LG_IMAGE + LG_MAX_PFN, ~0ull);
    g_assert_false(kt_leak_scan(g->t, &plan, &r, &err));
    g_assert_cmpstr(err->message, ==, "the search was ended");
    g_assert_cmpuint(asked, >, 0);
}

static void check_pages_not_known(LeakGuest *g, const char *why)
{
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_auto(KtLeakReport) r = { 0 };
    g_autoptr(GError) err = NULL;

    g_assert_false(kt_leak_scan(g->t, &plan, &r, &err));
    g_assert_true(g_str_has_prefix(err->message, "no block can be called a "
                                   "leak, as what may refer to it is not "
                                   "known: pages that are no blocks"));
    g_assert_nonnull(strstr(err->message, why));
}

LEAK_TEST(test_roots_that_are_not_known, "/leak/roots-that-are-not-known")
{
    g_clear_pointer(&g->k.btf, gs_btf_free);
    check_pages_not_known(g, "the kernel's types do not say");
}

LEAK_TEST(test_pages_of_slob, "/leak/pages-of-slob")
{
    struct btf *types = btf__new_empty();

    btf__add_struct(types, "slob_block", 2);
    gs_btf_free(g->k.btf);
    g->k.btf = types_end(types);
    check_pages_not_known(g, "SLOB");
}

/* The variable has an address at which nothing is mapped. */
LEAK_TEST(test_no_struct_pages_there, "/leak/no-struct-pages-there")
{
    lg_put(g, LG_IMAGE + LG_VMEMMAP_BASE, LG_VMEMMAP + (1ull << 30));
    check_pages_not_known(g, "the kernel's types do not say");
}
