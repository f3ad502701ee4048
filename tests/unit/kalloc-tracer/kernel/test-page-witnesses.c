/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtPageWitnesses, with struct pages made by hand, in a kernel of x86-64 that
 * is not randomised: size and members of struct page are found.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "kalloc-tracer/kernel/witnesses.h"

#include <string.h>

#define DIRECT  0xffff888000000000ull
#define VMEMMAP 0xffffea0000000000ull
#define CACHE   0xffff888000042000ull
#define N       64

typedef struct Layout {
    uint32_t bytes, head, cache;
} Layout;

static const Layout layouts[] = {
    { 64, 8, 8 },               /* since 6.2 */
    { 64, 8, 24 },
    { 56, 8, 24 },
    { 80, 16, 40 },
};

static uint8_t pages[0x10000];

static const void *view(uint64_t va, size_t *avail)
{
    *avail = 4096 - (va & 4095);
    return va >= VMEMMAP && va - VMEMMAP < sizeof(pages) ?
               &pages[va - VMEMMAP] : NULL;
}

/* The same pages, where arm64 has those of the direct map of 48 bits. */
static const void *view_arm64(uint64_t va, size_t *avail)
{
    return view(va - 0xfffffdffc0000000ull + VMEMMAP, avail);
}

static KtPageWitnesses *begin(void)
{
    KtPageWitnesses *w = g_new0(KtPageWitnesses, 1);

    memset(pages, 0, sizeof(pages));
    w->view = view;
    w->at = (GsDirectMapAt) { .arch = &gs_arch_x86_64, .page_shift = 12 };
    return w;
}

static void put64(uint64_t va, uint64_t value)
{
    memcpy(&pages[va - VMEMMAP], &value, sizeof(value));
}

static uint64_t page_at(const Layout *at, unsigned pfn)
{
    return VMEMMAP + pfn * at->bytes;
}

/* Page @pfn is the first of a slab, or a later one of the slab at @head. */
static void fill_page(const Layout *at, unsigned pfn, unsigned head,
                      uint64_t cache)
{
    if (pfn == head) {
        put64(page_at(at, pfn) + at->cache, cache);
    } else {
        put64(page_at(at, pfn) + at->head, page_at(at, head) | 1);
    }
}

static void allocate(KtPageWitnesses *w, unsigned pfn, uint64_t cache)
{
    kt_page_witnesses_object(w, cache, DIRECT + pfn * 4096ull + 64);
}

TEST(layout_is_found, "/page-witnesses/layout")
{
    for (unsigned l = 0; l < G_N_ELEMENTS(layouts); l++) {
        g_autofree KtPageWitnesses *w = begin();

        for (unsigned i = 0; i < N; i++) {
            uint64_t cache = CACHE + i / 8 * 256;

            fill_page(&layouts[l], i, i & ~1u, cache);
            allocate(w, i, cache);
        }
        g_assert_true(w->learned);
        g_assert_cmpuint(w->layout.struct_page, ==, layouts[l].bytes);
        g_assert_cmpuint(w->layout.page_head, ==, layouts[l].head);
        g_assert_cmpuint(w->layout.slab_cache, ==, layouts[l].cache);
        g_assert_cmphex(w->layout.map.page_offset, ==, DIRECT);
        g_assert_cmphex(w->layout.map.vmemmap, ==, VMEMMAP);
    }
}

/* In slabs of one page the head is never read, so its place is not known. */
TEST(slabs_of_one_page_are_not_enough, "/page-witnesses/one-page-slabs")
{
    g_autofree KtPageWitnesses *w = begin();

    for (unsigned i = 0; i < N; i++) {
        fill_page(&layouts[0], i, i, CACHE);
        allocate(w, i, CACHE);
    }
    g_assert_cmpuint(w->votes.seen, ==, N);
    g_assert_cmpuint(w->votes.n, >, 1);
    g_assert_false(w->learned);
    /* but all else is: the head is any word without bit 0 */
    g_assert_cmpuint(w->heads, ==, 0xff);
    g_assert_cmpuint(w->layout.struct_page, ==, 64);
    g_assert_cmpuint(w->layout.slab_cache, ==, 8);
    fill_page(&layouts[0], 0, 0, CACHE);
    fill_page(&layouts[0], 1, 0, CACHE);
    allocate(w, 1, CACHE);
    g_assert_cmpuint(w->heads, ==, 2);
}

TEST(one_page_is_one_witness, "/page-witnesses/same-page")
{
    g_autofree KtPageWitnesses *w = begin();

    fill_page(&layouts[0], 2, 2, CACHE);
    for (unsigned i = 0; i < N; i++) {
        allocate(w, 2, CACHE);
    }
    g_assert_cmpuint(w->votes.seen, ==, 1);
}

TEST(wrong_cache_ends_it, "/page-witnesses/wrong-cache")
{
    g_autofree KtPageWitnesses *w = begin();

    fill_page(&layouts[0], 2, 2, CACHE);
    allocate(w, 2, CACHE);
    fill_page(&layouts[0], 3, 3, CACHE);
    allocate(w, 3, CACHE + 64);
    g_assert_true(w->votes.contradicted);
    allocate(w, 2, CACHE);
    g_assert_false(w->learned);
}

/* On arm64 the layouts for 48 and for 52 bits have the same struct pages. The
 * object tells which it is. */
TEST(arm64_layouts_with_the_same_pages_are_one, "/page-witnesses/arm64")
{
    g_autofree KtPageWitnesses *w = begin();
    uint64_t base = 0xfffffdffc0000000ull;      /* VMEMMAP_START since 6.9 */

    w->at.arch = &gs_arch_arm64;
    w->view = view_arm64;
    for (unsigned i = 0; i < N; i++) {
        fill_page(&layouts[0], i, i & ~1u, CACHE);
        if (i & 1) {
            put64(page_at(&layouts[0], i) + 8, (base + (i & ~1u) * 64) | 1);
        }
        kt_page_witnesses_object(w, CACHE, 0xffff000000000000ull + i * 4096);
    }
    g_assert_true(w->learned);
    g_assert_cmphex(w->layout.map.page_offset, ==, 0xffff000000000000);
}

TEST(layout_is_followed, "/page-witnesses/follow")
{
    const KtPageLayout at = {
        .map = { DIRECT, VMEMMAP }, .page_shift = 12, .struct_page = 64,
        .page_head = 8, .slab_cache = 8,
    };
    bool is_tail;

    g_free(begin());
    fill_page(&layouts[0], 4, 4, CACHE);
    fill_page(&layouts[0], 5, 4, CACHE);
    g_assert_cmphex(kt_page_layout_cache(&at, view, DIRECT + 5 * 4096 + 8,
                                         &is_tail), ==, CACHE);
    g_assert_true(is_tail);
    g_assert_cmphex(kt_page_layout_cache(&at, view, DIRECT + 4 * 4096, NULL),
                    ==, CACHE);
    g_assert_cmphex(kt_page_layout_cache(&at, view, DIRECT - 8, NULL), ==, 0);
    g_assert_cmphex(kt_page_layout_cache(&at, view, UINT64_MAX, NULL), ==, 0);
}

/* The struct page of a slab has the kmem_cache's address with a tag. */
TEST(tags_are_removed, "/page-witnesses/tags")
{
    g_autofree KtPageWitnesses *w = begin();

    w->layout.tag_bits = 0xffull << 56;
    for (unsigned i = 0; i < N; i++) {
        fill_page(&layouts[1], i, i & ~1u, CACHE & ~(0xd1ull << 56));
        allocate(w, i, CACHE);
    }
    g_assert_true(w->learned);
    g_assert_cmpuint(w->layout.slab_cache, ==, layouts[1].cache);
    g_assert_cmphex(kt_page_layout_cache(&w->layout, view, DIRECT, NULL), ==,
                    CACHE);
}
