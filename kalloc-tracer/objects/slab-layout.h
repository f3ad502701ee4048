/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the members of the slab allocator's structs are in this kernel. Found
 * by their names in its types, never by its version. For slab*.c of this room.
 */
#ifndef KT_SLAB_LAYOUT_H
#define KT_SLAB_LAYOUT_H

#include "kalloc-tracer/api/kt-slabs.h"
#include "kalloc-tracer/layout/layout.h"

/** struct KtSlabBits - a bit field; @bits: its width */
typedef struct KtSlabBits {
    uint32_t bit, bits;
} KtSlabBits;

/** How a page says that it is a slab. */
typedef enum KtSlabMark {
    KT_MARK_NONE,       /* not known: its cache decides */
    KT_MARK_TYPE,       /* the top byte of page_type */
    KT_MARK_FLAG,       /* a bit of the page's flags */
} KtSlabMark;

#define KT_STRUCT_PAGE_MAX 256u
#define KT_CACHE_BYTES_MAX 1024u

/**
 * struct KtSlabLayout
 * @inuse, @objects, @frozen: in struct slab
 * @mark, @mark_value: see KtSlabMark
 * @cache_bytes: bytes of struct kmem_cache that have its members but the nodes
 * @node_step, @n_nodes: bytes of an element of its array of nodes, elements
 * @struct_page: bytes of struct page
 * @page_shift: log2 of the bytes of a page
 */
typedef struct KtSlabLayout {
    KtLayout layout;
    KtSlabBits inuse, objects, frozen;
    KtSlabMark mark;
    uint32_t mark_value;
    uint32_t cache_bytes, node_step, n_nodes;
    uint32_t struct_page;
    unsigned page_shift;
} KtSlabLayout;

/** kt_slab_layout_init() - find all of it. @errp: which is missing, or why this
 *  kernel's slabs are not shown */
bool kt_slab_layout_init(KtSlabLayout *at, const GsKernel *k, GError **errp);
/** kt_slab_has() - return true if this kernel has the member. */
static inline bool kt_slab_has(const KtSlabLayout *at, KtMember m)
{
    return kt_layout_has(&at->layout, m);
}
/** kt_slab_pick() - return a member of a copy of its struct; 0 if this kernel
 *  lacks it. A member has at most 8 bytes; of a list_head the first word. */
uint64_t kt_slab_pick(const KtSlabLayout *at, const uint8_t *copy,
                      KtMember m);
/** kt_slab_pick_bits() - return a bit field of a copy of its struct. */
uint32_t kt_slab_pick_bits(const uint8_t *copy, KtSlabBits b);

#endif /* KT_SLAB_LAYOUT_H */
