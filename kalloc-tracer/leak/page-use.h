/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of a stopped guest, by what they are used for, as the kernel's struct
 * pages and lists of free pages tell. QEMU-free.
 */
#ifndef KT_PAGE_USE_H
#define KT_PAGE_USE_H

#include "kalloc-tracer/kernel/direct-map.h"

typedef enum KtPageUse {
    KT_PAGE_NONE,           /* there is no such page */
    KT_PAGE_KERNEL,         /* of the kernel's, none of the following */
    KT_PAGE_FREE,
    KT_PAGE_SLAB,
    KT_PAGE_USER,           /* page cache and user memory */
    KT_PAGE_ALIASED,      /* its words are looked at by other addresses */
    KT_PAGE_SKIPPED,          /* of the kernel's, and nothing uses its words */
} KtPageUse;

/**
 * struct KtPageUses - all pages
 * @direct_map: where they are, and their struct pages
 * @struct_page: bytes of one; @page_shift: log2 of a page's bytes
 * @freelist: where in one that of a slab is, UINT32_MAX: not known
 * @lo: number of the first, @n: how many
 * @use: (owned) KtPageUse by number, from @lo on
 */
typedef struct KtPageUses {
    KtDirectMap direct_map;
    uint64_t struct_page;
    unsigned page_shift;
    uint32_t freelist;
    uint64_t lo, n;
    uint8_t *use;
} KtPageUses;

/** struct KtSlabSample - an object, and the cache that it was taken from;
 *  that of an early one can have moved since */
typedef struct KtSlabSample {
    uint64_t object, cache;
} KtSlabSample;

/**
 * kt_page_use_read() - what is each page?
 * @sample: (nullable) some of them, the last one's object is 0; they tell which
 *          of several places memory is at
 * @is_cache: is that the address of a kmem_cache?
 *
 * Returns: (owned) or NULL when the kernel does not tell where its memory is.
 */
KtPageUses *kt_page_use_read(const GsKernel *k, const GsMem *mem,
                             const KtSlabSample *sample,
                             bool (*is_cache)(void *opaque, uint64_t va),
                             void *opaque);
void kt_page_use_free(KtPageUses *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtPageUses, kt_page_use_free)

/** kt_page_use_va() - of page number @p->lo + @i; _end() - behind all. */
uint64_t kt_page_use_va(const KtPageUses *p, uint64_t i);
/** kt_page_use_struct() - the address of its struct page. */
uint64_t kt_page_use_struct(const KtPageUses *p, uint64_t i);
/** kt_page_use_by_struct() - the page whose struct page is at @va; false:
 *  there is none. */
bool kt_page_use_by_struct(const KtPageUses *p, uint64_t va, uint64_t *i);
/**
 * kt_page_use_own_freelist() - is @word, at @va in a struct page, of the
 * list of free objects of the slab that the page is, or was?
 *
 * Struct pages have what was there before: that of a page that was a slab's
 * still has an address in this slab, where another block may be now. While it
 * is a slab's, a free object is there.
 */
bool kt_page_use_own_freelist(const KtPageUses *p, uint64_t va, uint64_t word);
/** kt_page_use_kernel() - (borrowed) the use of the page that @va of the
 *  direct map is in, if that is KT_PAGE_KERNEL, else NULL. */
uint8_t *kt_page_use_kernel(const KtPageUses *p, uint64_t va);
/** kt_page_use_set_aliased() - those wholly in [@va, @va + @len) of the
 *  direct map are looked at by other addresses. */
void kt_page_use_set_aliased(KtPageUses *p, uint64_t va, uint64_t len);

/**
 * kt_page_use_find_memmap_alias() - struct pages are in memory, too
 *
 * The kernel's pages that have the same words as a page of struct pages are
 * marked to be looked at elsewhere: by the addresses of these, which of free
 * pages are not.
 */
void kt_page_use_find_memmap_alias(KtPageUses *p, const GsMem *mem);

#endif /* KT_PAGE_USE_H */
