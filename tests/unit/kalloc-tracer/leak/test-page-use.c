/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Struct pages of a hostile guest: members beyond the end of struct page, and a
 * memory map that ends at the last address. The use of pages is tested in
 * test-leak-scan.c.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/leak/page-use.h"

#include <bpf/btf.h>

#define READS_MAX 10000         /* more: an endless loop */

typedef struct World {
    LeakGuest *g;
    GsMem mem;
    unsigned reads, structs;    /* of these: of struct pages */
} World;

static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    World *w = opaque;

    g_assert_cmpuint(++w->reads, <, READS_MAX);
    w->structs += va >= LG_VMEMMAP && va < LG_IMAGE;
    return lg_read(w->g, 0, va, buf, len);
}

static World world_new(void)
{
    return (World) { .g = leak_guest_new(), .mem.read = read_mem };
}

static bool is_cache(void *opaque, uint64_t va)
{
    return va == LG_CACHE(0);
}

static KtPageUses *read_pages(World *w)
{
    static const KtSlabSample sample[] = {
        { LG_OBJECT(0), LG_CACHE(0) }, { 0 },
    };

    w->mem.opaque = w;
    return kt_page_use_read(&w->g->k, &w->mem, sample, is_cache, NULL);
}

/* ---- types -------------------------------------------------------------- */

/* Offsets of members in a struct page of 64 bytes. */
typedef struct Members {
    uint32_t head, mapping, cache;
} Members;

static GsBtf *make_types(const Members *at)
{
    struct btf *b = btf__new_empty();
    int t_long = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
    const void *raw;
    GsBtf *types;
    __u32 len;

    btf__add_struct(b, "page", 64);
    btf__add_field(b, "compound_head", t_long, at->head * 8, 0);
    btf__add_field(b, "mapping", t_long, at->mapping * 8, 0);
    btf__add_field(b, "lru", t_long, LG_PAGE_LRU * 8, 0);
    btf__add_field(b, "slab_cache", t_long, at->cache * 8, 0);
    btf__add_struct(b, "zone", LG_ZONE_SIZE);
    btf__add_struct(b, "free_area", LG_AREA_SIZE);
    raw = btf__raw_data(b, &len);
    types = gs_btf_new(raw, len, NULL);
    btf__free(b);
    return types;
}

/* No struct page is read then. */
TEST(test_members_of_no_struct_page, "/leak-pages/members-of-no-struct-page")
{
    static const struct {
        Members at;
        bool known;
    } row[] = {
        { { LG_PAGE_HEAD, LG_PAGE_MAPPING, LG_PAGE_CACHE }, true },
        { { 64, LG_PAGE_MAPPING, LG_PAGE_CACHE }, false },
        { { 57, LG_PAGE_MAPPING, LG_PAGE_CACHE }, false },
        { { 256, LG_PAGE_MAPPING, LG_PAGE_CACHE }, false },
        { { 0xffff8, LG_PAGE_MAPPING, LG_PAGE_CACHE }, false },
        { { 0x1ffffff8, LG_PAGE_MAPPING, LG_PAGE_CACHE }, false },
        { { LG_PAGE_HEAD, 256, LG_PAGE_CACHE }, false },
        { { LG_PAGE_HEAD, LG_PAGE_MAPPING, 256 }, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        World w = world_new();
        g_autoptr(LeakGuest) g = w.g;
        g_autoptr(KtPageUses) p = NULL;

        gs_btf_free(g->k.btf);
        g->k.btf = make_types(&row[i].at);
        p = read_pages(&w);
        g_assert_cmpint(p != NULL, ==, row[i].known);
        g_assert_cmpint(w.structs > 0, ==, row[i].known);
    }
}

/* ---- the memory map ----------------------------------------------------- */

/* The memory map ends in the last page: after it, addresses wrap to 0. */
TEST(test_mirror_of_the_last_struct_pages,
     "/leak-pages/mirror-of-the-last-struct-pages")
{
    World w = world_new();
    g_autoptr(KtPageUses) p = g_new0(KtPageUses, 1);
    const uint64_t n = 1000;

    p->struct_page = 64;
    p->page_shift = 12;
    p->n = n;
    p->use = g_malloc0(n);
    for (uint64_t left = 0; left <= 8192; left += 64) {
        p->direct_map.vmemmap = -(n * 64 + left);
        w.reads = 0;
        w.mem.opaque = &w;
        kt_page_use_find_memmap_alias(p, &w.mem);
        g_assert_cmpuint(w.reads, >=, n * 64 / 4096);
    }
    leak_guest_free(w.g);
}
