/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a KtSlabs, for the files slab*.c of this room only. */
#ifndef KT_SLAB_INTERNAL_H
#define KT_SLAB_INTERNAL_H

#include "kalloc-tracer/objects/slab-layout.h"
#include "kalloc-tracer/objects/object-reader.h"
#include "kalloc-tracer/objects/free-pointer.h"

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

#endif /* KT_SLAB_INTERNAL_H */
