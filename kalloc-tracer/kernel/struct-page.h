/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the hot path reads of struct page: which memory it stands for, the
 * order of a folio, the pages of a list or of a folio_batch. QEMU-free.
 */
#ifndef KT_STRUCT_PAGE_H
#define KT_STRUCT_PAGE_H

#include "kalloc-tracer/kernel/guest.h"

/** Pages taken of one bulk call or list. */
#define KT_PAGES_MAX 65536

typedef struct KtStructPages KtStructPages;

/**
 * kt_struct_page_new() - find offsets in one kernel's BTF
 * @g: (borrowed) reads the guest
 *
 * Returns: (owned) NULL when the kernel does not tell its struct page.
 */
KtStructPages *kt_struct_page_new(const GsKernel *k, KtGuest *g);
void kt_struct_page_free(KtStructPages *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtStructPages, kt_struct_page_free)

/** kt_struct_page_va() - where the memory of the struct page at @page is
 *  mapped, 0 if there is no struct page. */
uint64_t kt_struct_page_va(const KtStructPages *p, uint64_t page);
/** kt_struct_page_va_of() - likewise of the page frame @pfn. */
uint64_t kt_struct_page_va_of(const KtStructPages *p, uint64_t pfn);
/** kt_struct_page_len() - bytes of 2^@order pages, 0 if the order is none. */
uint64_t kt_struct_page_len(const KtStructPages *p, uint64_t order);
/** kt_struct_page_folio_len() - bytes of the folio at @folio, 0 if unreadable.
 * */
uint64_t kt_struct_page_folio_len(const KtStructPages *p, uint64_t folio);

/** Callback of the walks below: a struct page or folio; false stops. */
typedef bool (*KtStructPageFn)(uint64_t page, void *opaque);

/**
 * kt_struct_page_walk_array() - the pages of an array of @n pointers, without
 * NULLs kt_struct_page_walk_list() - at most @n pages of a list that is linked
 * by lru kt_struct_page_walk_batch() - the folios of a struct folio_batch
 *
 * Returns: false when there are more than KT_PAGES_MAX, when something could
 * not be read or @fn stopped.
 */
bool kt_struct_page_walk_array(const KtStructPages *p, uint64_t array,
                               uint64_t n, KtStructPageFn fn, void *opaque);
bool kt_struct_page_walk_list(const KtStructPages *p, uint64_t head, uint64_t n,
                              KtStructPageFn fn, void *opaque);
bool kt_struct_page_walk_batch(const KtStructPages *p, uint64_t batch,
                               KtStructPageFn fn, void *opaque);

#endif /* KT_STRUCT_PAGE_H */
