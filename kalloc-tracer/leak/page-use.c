/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page use: see page-use.h.
 *
 *     free    on a free list of a zone (free_area[order].free_list[type]) or of
 *             a CPU (per_cpu_pages.lists): stable in all supported kernels
 *     slab    its slab_cache is the address of a kmem_cache
 *     user    its mapping is not NULL
 *     kernel  all others
 *
 * Guest memory can be wrong in any way. A walk of a list ends at a page that is
 * free already, or whose number is not aligned to the order. So each page is
 * set at most once for each order. There are at most PAGES_MAX pages.
 */
#include "kalloc-tracer/leak/page-use.h"

#include <string.h>

#include "kalloc-tracer/layout/layout.h"

#define PAGES_MAX       (1ull << 26)    /* 256 GiB of 4 KiB */
#define NODES_MAX       64
#define ZONES_MAX       8
#define CPUS_MAX        512
#define ORDER_MAX       20
#define LISTS_MAX       256
#define BATCH           32
#define STRUCT_PAGE_MAX 256
#define SLAB_PAGES      8               /* most pages of a slab, aligned */

/* @zone_size, @area_size: bytes of struct zone and struct free_area */
typedef struct Layout {
    KtLayout l;
    uint32_t zone_size, area_size;
} Layout;

typedef struct Reading {
    const GsKernel *k;
    uint64_t tag_bits;
    const GsMem *mem;
    KtPageUses *p;
    Layout at;
    const KtSlabSample *sample;
    bool (*is_cache)(void *opaque, uint64_t va);
    void *opaque;
} Reading;

static bool find_layout(Layout *at, const GsKernel *k)
{
    kt_layout_init(&at->l, k);
    return kt_layout_has(&at->l, KT_M_PAGE_HEAD) &&
           kt_layout_has(&at->l, KT_M_SLAB_CACHE) &&
           kt_layout_has(&at->l, KT_M_PAGE_MAPPING) &&
           kt_layout_has(&at->l, KT_M_PAGE_LRU) &&
           gs_kernel_type_size(k, "zone", &at->zone_size) && at->zone_size &&
           gs_kernel_type_size(k, "free_area", &at->area_size) &&
           at->area_size;
}

static bool load(const Reading *r, uint64_t va, uint64_t *out)
{
    if (!r->mem->read(r->mem->opaque, va, out, sizeof(*out))) {
        return false;
    }
    *out = gs_untag(r->tag_bits, *out);
    return true;
}

/* Read a variable. Return @or if it is missing or unreadable. */
static uint64_t variable(const Reading *r, const char *name, uint64_t or)
{
    GsSymbol sym;
    uint64_t v;

    return gs_kernel_lookup(r->k, name, &sym) && load(r, sym.va, &v) ? v : or;
}

/* ---- addresses ---------------------------------------------------------- */

uint64_t kt_page_use_va(const KtPageUses *p, uint64_t i)
{
    return p->direct_map.page_offset + ((p->lo + i) << p->page_shift);
}

uint64_t kt_page_use_struct(const KtPageUses *p, uint64_t i)
{
    return p->direct_map.vmemmap + (p->lo + i) * p->struct_page;
}

bool kt_page_use_by_struct(const KtPageUses *p, uint64_t va, uint64_t *i)
{
    uint64_t off = va - kt_page_use_struct(p, 0);

    *i = off / p->struct_page;
    return off % p->struct_page == 0 && *i < p->n;
}

bool kt_page_use_own_freelist(const KtPageUses *p, uint64_t va, uint64_t word)
{
    uint64_t off = va - kt_page_use_struct(p, 0);
    uint64_t page = off / p->struct_page, to;

    off %= p->struct_page;
    to = (word - kt_page_use_va(p, 0)) >> p->page_shift;
    return (off == p->freelist || off == p->first) && to < p->n &&
           (p->lo + page) / SLAB_PAGES == (p->lo + to) / SLAB_PAGES;
}

uint8_t *kt_page_use_kernel(const KtPageUses *p, uint64_t va)
{
    uint64_t i = (va - kt_page_use_va(p, 0)) >> p->page_shift;

    return i < p->n && p->use[i] == KT_PAGE_KERNEL ? &p->use[i] : NULL;
}

void kt_page_use_set_aliased(KtPageUses *p, uint64_t va, uint64_t len)
{
    uint64_t page = 1ull << p->page_shift;
    uint64_t first = va - kt_page_use_va(p, 0) + page - 1;
    uint64_t end = va - kt_page_use_va(p, 0) + len;

    for (uint64_t i = first >> p->page_shift;
         i < p->n && i < end >> p->page_shift; i++) {
        p->use[i] = p->use[i] == KT_PAGE_KERNEL ? KT_PAGE_ALIASED :
                                                  p->use[i];
    }
}

/* ---- free pages --------------------------------------------------------- */

/* Walk a free list at @list, and set each of its pieces of 2^@order pages to
 * KT_PAGE_FREE. */
static void walk(const Reading *r, uint64_t list, unsigned order)
{
    KtPageUses *p = r->p;
    uint64_t at = 0, i;

    for (uint64_t n = 0; n <= p->n; n++) {
        if (!load(r, n ? at : list, &at) || at == list ||
            !kt_page_use_by_struct(p, at - r->at.l.at[KT_M_PAGE_LRU], &i) ||
            p->use[i] == KT_PAGE_FREE || (p->lo + i) & ((1ull << order) - 1)) {
            return;
        }
        memset(p->use + i, KT_PAGE_FREE, MIN(1ull << order, p->n - i));
    }
}

static void walk_areas(const Reading *r, uint64_t zone)
{
    const Layout *at = &r->at;
    unsigned orders = MIN(at->l.size[KT_M_ZONE_AREAS] / at->area_size,
                          ORDER_MAX);
    unsigned lists = MIN(at->l.size[KT_M_AREA_LIST] / 16, LISTS_MAX);

    for (unsigned order = 0; order < orders; order++) {
        for (unsigned i = 0; i < lists; i++) {
            walk(r, zone + at->l.at[KT_M_ZONE_AREAS] + order * at->area_size +
                    at->l.at[KT_M_AREA_LIST] + i * 16, order);
        }
    }
}

/*
 * Walk the free lists of each CPU. Three lists (unmovable, movable,
 * reclaimable) for each order from 0 to PAGE_ALLOC_COSTLY_ORDER (3), then lists
 * of whole page blocks (order 9). Before 5.13 (44042b449872) only order 0.
 */
static void walk_cpus(const Reading *r, uint64_t zone)
{
    const Layout *at = &r->at;
    uint64_t cpus = MIN(variable(r, "nr_cpu_ids", 1) & 0xffffffff, CPUS_MAX);
    unsigned lists = MIN(at->l.size[KT_M_PAGESET_LISTS] / 16, LISTS_MAX);
    uint64_t pageset, offset;
    GsSymbol offsets;

    if (!kt_layout_has_all(&at->l, KT_M_ZONE_PAGESET, KT_M_PAGESET_LISTS) ||
        !gs_kernel_lookup(r->k, "__per_cpu_offset", &offsets) ||
        !load(r, zone + at->l.at[KT_M_ZONE_PAGESET], &pageset)) {
        return;
    }
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        if (!load(r, offsets.va + cpu * 8, &offset)) {
            return;
        }
        for (unsigned i = 0; i < lists; i++) {
            walk(r, pageset + offset + at->l.at[KT_M_PAGESET_LISTS] + i * 16,
                 i < 12 ? i / 3 : 9);
        }
    }
}

static void walk_node(const Reading *r, uint64_t node)
{
    const Layout *at = &r->at;
    unsigned zones = MIN(at->l.size[KT_M_NODE_ZONES] / at->zone_size,
                         ZONES_MAX);

    for (unsigned i = 0; i < zones; i++) {
        uint64_t zone = node + at->l.at[KT_M_NODE_ZONES] + i * at->zone_size;

        walk_areas(r, zone);
        walk_cpus(r, zone);
    }
}

static void find_free(const Reading *r)
{
    GsSymbol sym;
    uint64_t node;

    if (!kt_layout_has_all(&r->at.l, KT_M_NODE_ZONES, KT_M_AREA_LIST)) {
        return;
    }
    if (gs_kernel_lookup(r->k, "contig_page_data", &sym)) {
        walk_node(r, sym.va);
    } else if (gs_kernel_lookup(r->k, "node_data", &sym)) {
        for (unsigned i = 0; i < NODES_MAX && i < sym.size / 8; i++) {
            if (load(r, sym.va + i * 8, &node) && node) {
                walk_node(r, node);
            }
        }
    }
}

/* ---- one page ----------------------------------------------------------- */

/* Return the address of the head's struct page. @page: copy of the struct page
 * at @va. A tail page has bit 0 of compound_head set. The newer compound_info
 * has a mask instead of an address if sizeof(struct page) is a power of 2. */
static uint64_t head_of(const Reading *r, const uint8_t *page, uint64_t va)
{
    uint64_t head;

    memcpy(&head, page + r->at.l.at[KT_M_PAGE_HEAD], 8);
    if (!(head & 1)) {
        return va;
    }
    head &= ~1ull;
    return (-head & (-head - 1)) ? head : va & head;
}

static KtPageUse use_of_head(const Reading *r, const uint8_t *page)
{
    uint64_t cache, mapping;

    memcpy(&cache, page + r->at.l.at[KT_M_SLAB_CACHE], 8);
    cache = gs_untag(r->tag_bits, cache);
    memcpy(&mapping, page + r->at.l.at[KT_M_PAGE_MAPPING], 8);
    if (cache && r->is_cache(r->opaque, cache)) {
        return KT_PAGE_SLAB;
    }
    return mapping ? KT_PAGE_USER : KT_PAGE_KERNEL;
}

static KtPageUse use_of(const Reading *r, const uint8_t *page, uint64_t i)
{
    uint64_t va = kt_page_use_struct(r->p, i);
    uint64_t head = head_of(r, page, va), of_head;

    if (head == va) {
        return use_of_head(r, page);
    }
    return kt_page_use_by_struct(r->p, head, &of_head) && of_head < i &&
                   r->p->use[of_head] != KT_PAGE_FREE ?
               r->p->use[of_head] :
               KT_PAGE_KERNEL;
}

static void read_all(const Reading *r)
{
    KtPageUses *p = r->p;
    uint8_t batch[BATCH * STRUCT_PAGE_MAX];

    for (uint64_t i = 0; i < p->n; i += BATCH) {
        uint64_t n = MIN(BATCH, p->n - i);

        if (!r->mem->read(r->mem->opaque, kt_page_use_struct(p, i), batch,
                          n * p->struct_page)) {
            continue;
        }
        for (uint64_t j = 0; j < n; j++) {
            if (p->use[i + j] == KT_PAGE_NONE) {
                p->use[i + j] = use_of(r, batch + j * p->struct_page, i + j);
            }
        }
    }
}

/* ---- direct map --------------------------------------------------------- */

/* Does this direct map lead from the sample's object to its cache? */
static bool fits(const Reading *r, const KtSlabSample *sample)
{
    KtPageUses *p = r->p;
    uint64_t va = kt_page_use_struct(p, 0) +
                  ((sample->object - kt_page_use_va(p, 0)) >> p->page_shift) *
                      p->struct_page;
    uint8_t page[STRUCT_PAGE_MAX];
    uint64_t cache;

    return sample->object >= kt_page_use_va(p, 0) &&
           r->mem->read(r->mem->opaque, va, page, p->struct_page) &&
           load(r, head_of(r, page, va) + r->at.l.at[KT_M_SLAB_CACHE],
                &cache) &&
           cache == sample->cache;
}

static bool fits_any(const Reading *r)
{
    for (const KtSlabSample *s = r->sample; s && s->object; s++) {
        if (fits(r, s)) {
            return true;
        }
    }
    return false;
}

/*
 * Find the direct map. If there is a sample it decides, even if the kernel's
 * variables seem to: without SPARSEMEM_VMEMMAP struct pages are kept by section
 * and not at vmemmap.
 */
static bool find_place(const Reading *r, const GsDirectMapAt *at)
{
    bool sampled = r->sample && r->sample->object, certain;
    GsDirectMap guess[GS_DIRECT_MAP_MAX];
    unsigned n = gs_direct_map_guess(at, r->mem, guess, &certain);

    for (unsigned i = 0; i < n; i++) {
        r->p->direct_map = guess[i];
        if (certain && !sampled ? guess[i].page_offset != 0 : fits_any(r)) {
            return true;
        }
    }
    return false;
}

static bool is_in(const Layout *at, KtMember m, uint64_t struct_page)
{
    return at->l.at[m] + 8ull <= struct_page;
}

/* Are all members that head_of() and use_of_head() read inside struct page? */
static bool fits_struct(const Layout *at, uint64_t struct_page)
{
    return is_in(at, KT_M_PAGE_HEAD, struct_page) &&
           is_in(at, KT_M_PAGE_MAPPING, struct_page) &&
           is_in(at, KT_M_SLAB_CACHE, struct_page);
}

static bool find_pages(const Reading *r)
{
    KtPageUses *p = r->p;
    GsDirectMapAt at;
    uint64_t end;

    if (!gs_direct_map_init(&at, r->k) || at.struct_page < 32 ||
        at.struct_page > STRUCT_PAGE_MAX || at.struct_page % 8 ||
        !fits_struct(&r->at, at.struct_page)) {
        return false;
    }
    p->struct_page = at.struct_page;
    p->page_shift = at.page_shift;
    p->lo = variable(r, "min_low_pfn", 0);
    end = variable(r, "max_pfn", 0);
    if (p->lo >= end) {
        return false;
    }
    p->n = MIN(end - p->lo, PAGES_MAX);
    return find_place(r, &at);
}

KtPageUses *kt_page_use_read(const GsKernel *k, const GsMem *mem,
                             const KtSlabSample *sample,
                             bool (*is_cache)(void *opaque, uint64_t va),
                             void *opaque)
{
    g_autoptr(KtPageUses) p = g_new0(KtPageUses, 1);
    Reading r = { .k = k, .tag_bits = gs_kernel_tag_bits(k), .mem = mem,
                  .p = p, .sample = sample, .is_cache = is_cache,
                  .opaque = opaque };

    if (!find_layout(&r.at, k) || !find_pages(&r)) {
        return NULL;
    }
    p->freelist = r.at.l.at[KT_M_SLAB_FREELIST];
    p->first = r.at.l.at[KT_M_SLAB_FIRST];
    p->use = g_try_malloc0(p->n);
    if (!p->use) {
        return NULL;
    }
    find_free(&r);
    read_all(&r);
    return g_steal_pointer(&p);
}

void kt_page_use_free(KtPageUses *p)
{
    if (p) {
        g_free(p->use);
        g_free(p);
    }
}

/* ---- alias of the memory map --------------------------------------------- */
/*
 * Find the alias of the memory map in the direct map: see
 * kt_page_use_find_memmap_alias().
 *
 *     vmemmap             direct map (all physical memory)
 *     +-------------+
 *     | page  0..63 | -------.   +--------------+
 *     | page 64..   | ---.    '->| same bytes   |  KT_PAGE_ALIASED
 *     | ...         |     '----->| same bytes   |  KT_PAGE_ALIASED
 *     +-------------+            +--------------+
 *
 * Without this, every struct page would be scanned twice, and pointers in the
 * struct pages of free pages would keep blocks alive.
 *
 * No variable of the kernel says which pages these are, so contents decide. All
 * pages of the memory map are put in a hash table by their first eight words.
 * A page of the kernel with equal words is compared as a whole. The alias is in
 * long runs, so a match is extended to both sides. A page that is equal by
 * chance has no pointer that the memory map lacks.
 */

#define WORDS   8               /* at the start of a page: the hash key */

typedef struct MemmapAlias {
    KtPageUses *p;
    const GsMem *mem;
    uint64_t page;              /* bytes */
    uint8_t *one, *other;       /* buffers of a page */
    GHashTable *by_words;       /* hash of WORDS words -> address */
} MemmapAlias;

static bool hash_words(const MemmapAlias *m, uint64_t va, uint64_t *hash)
{
    uint64_t word[WORDS], any = 0;

    if (!m->mem->read(m->mem->opaque, va, word, sizeof(word))) {
        return false;
    }
    *hash = 0;
    for (unsigned i = 0; i < WORDS; i++) {
        any |= word[i];
        *hash = (*hash ^ word[i]) * 0x9e3779b97f4a7c15ull;
        *hash ^= *hash >> 29;
    }
    return any;
}

static bool same(const MemmapAlias *m, uint64_t a, uint64_t b)
{
    return m->mem->read(m->mem->opaque, a, m->one, m->page) &&
           m->mem->read(m->mem->opaque, b, m->other, m->page) &&
           !memcmp(m->one, m->other, m->page);
}

/* Fill @by_words. The memory map may end at the end of the address space, so
 * the loop counts bytes, not addresses. */
static void index_memmap(MemmapAlias *m)
{
    uint64_t first = kt_page_use_struct(m->p, 0), va = first & -m->page;
    uint64_t len = first - va + m->p->n * m->p->struct_page, hash;

    for (uint64_t at = 0; at < len; at += m->page) {
        if (hash_words(m, va + at, &hash)) {
            g_hash_table_insert(m->by_words, GSIZE_TO_POINTER(hash),
                                GSIZE_TO_POINTER(va + at));
        }
    }
}

/* Set pages from @va on to KT_PAGE_ALIASED, in steps of @step, as long as they
 * are equal to the memory map from @structs on. */
static void set_run(const MemmapAlias *m, uint64_t va, uint64_t structs,
                     uint64_t step)
{
    uint8_t *use;

    while ((use = kt_page_use_kernel(m->p, va)) && same(m, va, structs)) {
        *use = KT_PAGE_ALIASED;
        va += step;
        structs += step;
    }
}

static void find(MemmapAlias *m, uint64_t va)
{
    uint64_t hash, structs;

    if (!kt_page_use_kernel(m->p, va) || !hash_words(m, va, &hash)) {
        return;
    }
    structs = GPOINTER_TO_SIZE(g_hash_table_lookup(m->by_words,
                                                   GSIZE_TO_POINTER(hash)));
    if (structs && same(m, va, structs)) {
        set_run(m, va, structs, m->page);
        set_run(m, va - m->page, structs - m->page, -m->page);
    }
}

void kt_page_use_find_memmap_alias(KtPageUses *p, const GsMem *mem)
{
    g_autoptr(GHashTable) by_words = g_hash_table_new(gs_number_hash_direct,
                                                      NULL);
    uint64_t page = 1ull << p->page_shift;
    g_autofree uint8_t *one = g_malloc(page), *other = g_malloc(page);
    MemmapAlias m = { p, mem, page, one, other, by_words };

    index_memmap(&m);
    for (uint64_t i = 0; i < p->n; i++) {
        find(&m, kt_page_use_va(p, i));
    }
}
