/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page use: what each page frame of a stopped guest is used for, read from the
 * kernel's struct pages and free lists. A scan needs it to know which pages
 * that belong to no block are roots.
 *
 *     page frame   lo        lo+1    lo+2    lo+3    ...
 *     use[]        KERNEL    FREE    SLAB    USER
 *                  root      -       -       -       (a slab's objects are
 *                                                     blocks)
 *
 * Called by roots.c, skip-pages.c and refs.c, in the thread of the monitor
 * command. No locks; guest memory comes through a GsMem.
 */
#ifndef KT_PAGE_USE_H
#define KT_PAGE_USE_H

#include "guest-symbols/gs.h"

typedef enum KtPageUse {
    KT_PAGE_NONE,           /* no such page, or its struct page is unreadable */
    KT_PAGE_KERNEL,         /* in use by the kernel, none of the following */
    KT_PAGE_FREE,
    KT_PAGE_SLAB,
    KT_PAGE_USER,           /* page cache and user memory */
    KT_PAGE_ALIASED,        /* KERNEL, but scanned at another address */
    KT_PAGE_SKIPPED,        /* KERNEL, but without pointers in use */
} KtPageUse;

/**
 * struct KtPageUses - use of all pages
 * @direct_map: where the pages and their struct pages are mapped
 * @struct_page: bytes of a struct page
 * @page_shift: log2 of the bytes of a page
 * @freelist: offset of a slab's freelist in struct page, UINT32_MAX if unknown
 * @first: offset of the address of a slab's first object, UINT32_MAX if there
 *         is none
 * @lo: first page frame; pages below are numbered @lo + i
 * @n: number of pages
 * @use: (owned) KtPageUse of page frame @lo + i
 */
typedef struct KtPageUses {
    GsDirectMap direct_map;
    uint64_t struct_page;
    unsigned page_shift;
    uint32_t freelist, first;
    uint64_t lo, n;
    uint8_t *use;
} KtPageUses;

/** struct KtSlabSample - addresses of an object and of its kmem_cache. A cache
 *  of early boot may have moved since. */
typedef struct KtSlabSample {
    uint64_t object, cache;
} KtSlabSample;

/**
 * kt_page_use_read() - read the use of all pages
 * @sample: (nullable) objects, the last entry's object is 0. They decide which
 *          of several possible direct maps is the right one
 * @is_cache: return true if the address is that of a kmem_cache
 * @opaque: argument of @is_cache
 *
 * Returns: (owned) NULL if the kernel's types and variables do not say where
 * its pages are.
 */
KtPageUses *kt_page_use_read(const GsKernel *k, const GsMem *mem,
                             const KtSlabSample *sample,
                             bool (*is_cache)(void *opaque, uint64_t va),
                             void *opaque);
void kt_page_use_free(KtPageUses *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtPageUses, kt_page_use_free)

/** kt_page_use_va() - return the direct-map address of page @p->lo + @i. */
uint64_t kt_page_use_va(const KtPageUses *p, uint64_t i);
/** kt_page_use_struct() - return the address of the struct page of @p->lo +
 *  @i. */
uint64_t kt_page_use_struct(const KtPageUses *p, uint64_t i);
/** kt_page_use_by_struct() - find the page whose struct page is at @va; false
 *  if there is none. @i: (out) its number, from @p->lo on */
bool kt_page_use_by_struct(const KtPageUses *p, uint64_t va, uint64_t *i);
/**
 * kt_page_use_own_freelist() - is @word, at @va in a struct page, a freelist
 * pointer into the page's own slab, or the address of its first object (SLAB)?
 *
 * Such a word refers to no block. While the page is a slab, the freelist is the
 * address of a free object, and each slab has a first object. After that,
 * struct page keeps the old value, and another block may be at that address.
 */
bool kt_page_use_own_freelist(const KtPageUses *p, uint64_t va, uint64_t word);
/** kt_page_use_kernel() - find the page at @va of the direct map. Returns:
 *  (borrowed) its use, for the caller to change; NULL if it is not
 *  KT_PAGE_KERNEL. */
uint8_t *kt_page_use_kernel(const KtPageUses *p, uint64_t va);
/** kt_page_use_set_aliased() - set the pages that are wholly in
 *  [@va, @va + @len) of the direct map to KT_PAGE_ALIASED, if they are
 *  KT_PAGE_KERNEL. */
void kt_page_use_set_aliased(KtPageUses *p, uint64_t va, uint64_t len);

/**
 * kt_page_use_find_memmap_alias() - find the pages that contain the memory map,
 * and set them to KT_PAGE_ALIASED
 *
 * The memory map is the array of all struct pages. Its words are scanned at its
 * own addresses (vmemmap), without the struct pages of free pages. The same
 * memory is also in the direct map, as pages of the kernel: see
 * page-use.c.
 */
void kt_page_use_find_memmap_alias(KtPageUses *p, const GsMem *mem);

#endif /* KT_PAGE_USE_H */
