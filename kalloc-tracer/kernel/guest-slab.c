/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The direct map of a KtGuest, and the way from an object to its slab page and
 * cache: see guest.h. Called for each event, on the thread of its vCPU.
 */
#include "kalloc-tracer/kernel/guest-internal.h"

/* Most pages of a compound page: 1 GiB of 4 KiB */
#define COMPOUND_MAX    (1ull << 18)
#define KERNEL_HALF     (1ull << 63)

static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

void kt_guest_set_direct_map(KtGuest *g, const GsDirectMap *direct_map)
{
    __atomic_store_n(&g->vmemmap, direct_map->vmemmap, __ATOMIC_RELAXED);
    __atomic_store_n(&g->page_offset, direct_map->page_offset,
                     __ATOMIC_RELEASE);
}

static bool has_direct_map(const KtGuest *g)
{
    return __atomic_load_n(&g->page_offset, __ATOMIC_ACQUIRE);
}

static unsigned guess_direct_map(KtGuest *g, GsDirectMap *direct_map,
                                 bool *certain)
{
    const GsMem mem = { .read = read_mem, .opaque = g };

    return g->at.has_pages ? gs_direct_map_guess(&g->at.direct_map, &mem,
                                                 direct_map, certain) :
                             0;
}

static bool read_direct_map(KtGuest *g)
{
    GsDirectMap direct_map[GS_DIRECT_MAP_MAX];
    bool certain;

    if (has_direct_map(g)) {
        return true;
    }
    if (!guess_direct_map(g, direct_map, &certain) || !certain ||
        !direct_map[0].page_offset) {
        return false;
    }
    kt_guest_set_direct_map(g, &direct_map[0]);
    return true;
}

/* Return the cache of the slab that @page is a struct page of, 0 if unknown.
 * @head_at: offset of the head */
static inline uint64_t cache_at(const KtGuest *g, uint64_t page,
                                uint32_t head_at)
{
    uint64_t head, cache;

    if (!kt_guest_u64(g, page + head_at, &head)) {
        return 0;
    }
    if (head & 1) {
        /* compound_info has a mask if sizeof(struct page) is a power of 2 */
        head &= ~1ull;
        page = (-head & (-head - 1)) ? head : page & head;
    }
    return kt_guest_pointer(g, page + g->at.slab_cache, &cache) ? cache : 0;
}

/* Can the word at @head_at be the head of @page? The head of a later page is
 * the address of an earlier struct page, or a mask. */
static bool may_be_head(const KtGuest *g, uint64_t page, uint32_t head_at)
{
    uint32_t size = g->at.direct_map.struct_page;
    uint64_t head;

    if (!kt_guest_u64(g, page + head_at, &head) || !(head & 1)) {
        return true;
    }
    head &= ~1ull;
    return !(-head & (-head - 1)) ||
           (size && head < page && page - head < size * COMPOUND_MAX &&
            (page - head) % size == 0);
}

/* Can a kmem_cache be there? In a later page, the word that slab_cache is in
 * the first page can be the head, or 0. */
static bool may_be_cache(uint64_t cache)
{
    return cache >= KERNEL_HALF && !(cache & 7);
}

/* The same if the head is one of some words. All that can be it must lead to
 * one cache; 0 says nothing then. @is_slab: the page is one, so words that lead
 * to no cache are not its head */
static uint64_t cache_by_heads(const KtGuest *g, uint64_t page, unsigned heads,
                               bool is_slab)
{
    uint64_t cache = 0;

    for (; heads; heads &= heads - 1) {
        uint32_t at = 8 * __builtin_ctz(heads);
        uint64_t now;

        if (!may_be_head(g, page, at)) {
            continue;
        }
        now = cache_at(g, page, at);
        if (is_slab && !may_be_cache(now)) {
            continue;
        }
        if (!now || (cache && now != cache)) {
            return 0;
        }
        cache = now;
    }
    return cache;
}

static uint64_t page_of(const KtGuest *g, const GsDirectMap *direct_map,
                        uint64_t object)
{
    return direct_map->vmemmap +
           ((object - direct_map->page_offset) >> g->at.page_shift) *
               g->at.direct_map.struct_page;
}

static inline unsigned page_heads(const KtGuest *g)
{
    return __atomic_load_n(&g->at.page_heads, __ATOMIC_ACQUIRE);
}

/* Return the cache of the slab that contains @object, 0 if unknown. @is_slab:
 * it certainly is in one */
static uint64_t cache_by(const KtGuest *g, const GsDirectMap *direct_map,
                         uint64_t object, bool is_slab)
{
    unsigned heads = page_heads(g);
    uint64_t page;

    if (object < direct_map->page_offset) {
        return 0;
    }
    page = page_of(g, direct_map, object);
    return G_UNLIKELY(heads) ? cache_by_heads(g, page, heads, is_slab) :
                               cache_at(g, page, g->at.page_head);
}

/* Keep the possible direct map that leads from the object to its cache. */
static void find_direct_map(KtGuest *g, uint64_t object, uint64_t cache_va)
{
    GsDirectMap direct_map[GS_DIRECT_MAP_MAX];
    bool certain = false;
    unsigned n = guess_direct_map(g, direct_map, &certain);

    for (unsigned i = 0; !certain && i < n; i++) {
        if (cache_by(g, &direct_map[i], object, false) == cache_va) {
            kt_guest_set_direct_map(g, &direct_map[i]);
            return;
        }
    }
}

void kt_guest_find_direct_map(KtGuest *g, uint64_t object, uint64_t cache_va)
{
    if (G_UNLIKELY(!has_direct_map(g) || page_heads(g)) && cache_va) {
        find_direct_map(g, object, cache_va);
        kt_guest_learn_pages(g, object, cache_va);
    }
}

static inline uint64_t cache_of(KtGuest *g, uint64_t object, bool is_slab)
{
    return read_direct_map(g) ?
               cache_by(g, &(GsDirectMap) { g->page_offset, g->vmemmap },
                        object, is_slab) :
               0;
}

uint64_t kt_guest_cache_of(KtGuest *g, uint64_t object)
{
    return cache_of(g, object, false);
}

uint64_t kt_guest_object_cache(KtGuest *g, uint64_t object)
{
    return cache_of(g, object, true);
}

unsigned kt_guest_possible_caches(KtGuest *g, uint64_t object,
                                  uint64_t cache[KT_PAGE_HEADS])
{
    unsigned heads = page_heads(g), n = 0;
    uint64_t page;

    if (!has_direct_map(g) || object < g->page_offset) {
        return 0;
    }
    page = page_of(g, &(GsDirectMap) { g->page_offset, g->vmemmap }, object);
    for (; heads; heads &= heads - 1) {
        uint32_t at = 8 * __builtin_ctz(heads);

        if (may_be_head(g, page, at)) {
            cache[n++] = cache_at(g, page, at);
        }
    }
    return n;
}

bool kt_guest_knows_direct_map(const KtGuest *g)
{
    return has_direct_map(g);
}

bool kt_guest_has_direct_map(const KtGuest *g)
{
    return has_direct_map(g) && !page_heads(g);
}

bool kt_guest_direct_map(KtGuest *g, uint64_t *vmemmap, uint64_t *page_offset)
{
    if (!read_direct_map(g)) {
        return false;
    }
    *vmemmap = g->vmemmap;
    *page_offset = g->page_offset;
    return true;
}

uint64_t kt_guest_memory_of(KtGuest *g, uint64_t page)
{
    const GsMem mem = { .read = read_mem, .opaque = g };

    return g->at.has_pages ?
               gs_direct_map_by_page(&g->at.direct_map, &mem, page) :
               0;
}
