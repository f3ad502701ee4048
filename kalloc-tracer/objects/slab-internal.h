/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtSlabs, for the files slab*.c of this room only. */
#ifndef KT_SLAB_INTERNAL_H
#define KT_SLAB_INTERNAL_H

#include "kalloc-tracer/objects/objects-internal.h"
#include "kalloc-tracer/api/kt-slabs.h"
#include "kalloc-tracer/layout/layout.h"
#include <stdbool.h>
#include <stdint.h>

/* ---- layout -------------------------------------------------------------- */
/*
 * Where the members of the slab allocator's structs are in this kernel. Found
 * by their names in its types, never by its version. For slab*.c of this room.
 */

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

/* ---- free pointers ------------------------------------------------------- */
/*
 * Free pointers: the word in a free object that leads to the next one.
 *
 *     PLAIN       the address of the next object
 *     XOR         address ^ cache.random ^ address of the word
 *     XOR_SWAP    the same, with the bytes of the last in reverse order (from
 *                 5.7, and in some older kernels)
 *
 * Types do not say which. The lists do: in the right form they end with 0, and
 * have only slots of their slab.
 */

typedef enum KtFreeForm {
    KT_FREE_PLAIN,
    KT_FREE_XOR,
    KT_FREE_XOR_SWAP,
    KT_FREE__COUNT,
    KT_FREE_UNKNOWN = KT_FREE__COUNT,
} KtFreeForm;

/** kt_free_pointer() - decode a free pointer. @random: of the cache; @at:
 *  address of the word, without a tag; @stored: the word. Returns: the address
 *  of the next object, which may have a tag. */
uint64_t kt_free_pointer(KtFreeForm form, uint64_t random, uint64_t at,
                         uint64_t stored);

/* ---- slabs --------------------------------------------------------------- */

/** struct KtSlabCpu - a CPU, and what is added to a __percpu pointer for it */
typedef struct KtSlabCpu {
    unsigned cpu;
    uint64_t offset;
} KtSlabCpu;

/**
 * struct KtSlabs
 * @vmemmap, @page_offset: the direct map
 * @tag_bits: of pointers, see gs_untag()
 * @cpus: KtSlabCpu, those that are possible and have memory of their own
 * @knows_cpus: the offsets of all CPUs are known, or CPUs have no lists
 * @n_nodes: nodes have lower numbers; 0: up to the first that is NULL
 * @form: how free pointers are encoded; valid if @has_form
 */
struct KtSlabs {
    KtObjects o;
    KtSlabLayout at;
    uint64_t vmemmap, page_offset;
    uint64_t tag_bits;
    GArray *cpus;
    bool knows_cpus;
    unsigned n_nodes;
    bool has_form;
    KtFreeForm form;
};

/** kt_slabs_pointer() - read an address; its tag is removed. False, with @out
 *  0, if it is unreadable. */
bool kt_slabs_pointer(const KtSlabs *s, uint64_t va, uint64_t *out);
/** kt_slabs_member() - read a number that is a member of the structure at @va.
 *  False, with @out 0, if it is unreadable or this kernel lacks it. */
bool kt_slabs_member(const KtSlabs *s, uint64_t va, KtMember m,
                     uint64_t *out);
/** kt_slabs_link() - the same of an address. */
bool kt_slabs_link(const KtSlabs *s, uint64_t va, KtMember m,
                   uint64_t *out);

/** kt_slabs_cache_of() - return the cache of the object at @va; 0 if it is in
 *  no slab. */
uint64_t kt_slabs_cache_of(const KtSlabs *s, uint64_t va);

/** KtSlabNodeFn - called with a node; @node, @barn: of its structures, 0 if
 *  there is none */
typedef void (*KtSlabNodeFn)(void *opaque, unsigned number, uint64_t node,
                             uint64_t barn);
/** kt_slabs_foreach_node() - call @fn for each node of a cache. */
void kt_slabs_foreach_node(const KtSlabs *s, const KtSlabCache *c,
                           KtSlabNodeFn fn, void *opaque);

/** kt_slabs_form() - return how free pointers are encoded. Found on the first
 *  call. */
KtFreeForm kt_slabs_form(KtSlabs *s);

/* ---- locks --------------------------------------------------------------- */
/*
 * Locks of the slab allocator: was a vCPU stopped while it changed numbers?
 * For slab*.c of this room.
 */

/** kt_slab_is_locked() - find out whether a vCPU holds a lock of the cache's
 *  nodes and barns, or of the slab (nullable). Returns: KT_UNKNOWN if this
 *  kernel has no such lock, because it is for one CPU, or keeps it
 *  elsewhere. */
KtAnswer kt_slab_is_locked(const KtSlabs *s, const KtSlabCache *c,
                           const KtSlab *slab);

#endif /* KT_SLAB_INTERNAL_H */
