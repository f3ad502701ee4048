/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtStructPages: what the event path reads from struct page for hooks of the
 * page allocator: the memory of a page, the order of a folio, the pages of an
 * array, list or folio_batch. QEMU-free.
 *
 * Created by capture/ with each KtGuest. Immutable, so any vCPU thread may use
 * it without a lock.
 */
#ifndef KT_STRUCT_PAGE_H
#define KT_STRUCT_PAGE_H

#include "kalloc-tracer/kernel/guest.h"

/** KT_PAGES_MAX - most pages of one array or list; a walk stops there. */
#define KT_PAGES_MAX 65536

/** KT_FRAMES_MAX - there are fewer page frames in a guest. */
#define KT_FRAMES_MAX (1ull << 40)

typedef struct KtStructPages KtStructPages;

/**
 * kt_struct_page_new() - find offsets in a kernel's BTF
 * @g: (borrowed) reads guest memory; must outlive the result
 *
 * Returns: (owned) NULL if the kernel's types do not describe struct page.
 */
KtStructPages *kt_struct_page_new(const GsKernel *k, KtGuest *g);
void kt_struct_page_free(KtStructPages *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtStructPages, kt_struct_page_free)

/** kt_struct_page_va() - return the direct-map address of the page whose struct
 *  page is at @page, 0 if there is none. */
uint64_t kt_struct_page_va(const KtStructPages *p, uint64_t page);
/** kt_struct_page_va_of() - return the direct-map address of page frame
 *  @pfn. */
uint64_t kt_struct_page_va_of(const KtStructPages *p, uint64_t pfn);
/** kt_struct_page_len() - return the bytes of 2^@order pages, 0 if @order is
 *  too large. */
uint64_t kt_struct_page_len(const KtStructPages *p, uint64_t order);
/** kt_struct_page_folio_len() - return the bytes of the folio at @folio, 0 if
 *  it is unreadable. */
uint64_t kt_struct_page_folio_len(const KtStructPages *p, uint64_t folio);

/** KtOrderFit - do 2^order pages make one block? */
typedef enum KtOrderFit {
    KT_ORDER_FITS,      /* nothing speaks against it */
    KT_ORDER_DIFFERS,   /* they are a compound page of another order */
    KT_ORDER_SHORT,     /* the page behind them is in use, without a reference
                         * of its own: it may belong to the same block */
} KtOrderFit;
/** kt_struct_page_fit() - compare an order with the struct pages. @page: the
 *  first struct page, about to be freed. */
KtOrderFit kt_struct_page_fit(const KtStructPages *p, uint64_t page,
                              uint64_t order);

/** kt_struct_page_is_unreferenced() - return true if the page has no reference,
 *  so that nobody may drop one. False also if that is unknown. @page: its
 *  struct page */
bool kt_struct_page_is_unreferenced(const KtStructPages *p, uint64_t page);

/** KtStructPageFn - called with each struct page or folio of a walk; return
 *  false to stop. */
typedef bool (*KtStructPageFn)(uint64_t page, void *opaque);

/**
 * kt_struct_page_walk_array() - walk an array of @n pointers; NULLs are skipped
 *
 * The other two walk at most @n pages of a list that is linked by page.lru, and
 * the folios of a struct folio_batch.
 *
 * Returns: false if there are more than KT_PAGES_MAX pages, if memory is
 * unreadable, or if @fn returned false.
 */
bool kt_struct_page_walk_array(const KtStructPages *p, uint64_t array,
                               uint64_t n, KtStructPageFn fn, void *opaque);
bool kt_struct_page_walk_list(const KtStructPages *p, uint64_t head, uint64_t n,
                              KtStructPageFn fn, void *opaque);
bool kt_struct_page_walk_batch(const KtStructPages *p, uint64_t batch,
                               KtStructPageFn fn, void *opaque);

#endif /* KT_STRUCT_PAGE_H */
