/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small guest with slabs: 64 pages of RAM in the direct map, their struct
 * pages, two CPUs, one node, and a kernel whose types say how its caches are
 * laid out. Tests write caches, slabs and lists into it. Single-threaded.
 *
 *     page 1      struct pages        page 2, 3   memory of CPU 0 and 1
 *     page 4      variables           page 5      nodes, barns and sheaves
 *     page 8, 9   the slab of "kmem_cache", with 8 caches each
 *     page 16 ... slabs, as the test says; each has one page
 */
#ifndef SLAB_GUEST_H
#define SLAB_GUEST_H

#include "kalloc-tracer/kt.h"
#include "guest-symbols/kernel/kernel.h"

#define SG_PAGES    64u
#define SG_DIRECT   0xffff888000000000ull
#define SG_VMEMMAP  0xffffea0000000000ull
#define SG_IMAGE    0xffffffff81000000ull
#define SG_CACHES   16u
#define SG_RANDOM   0x1234567890abcdefull
#define SG_CAPACITY 4u              /* objects of a sheaf */
#define SG_NODE_LOCK 40u            /* of a kmem_cache_node: its lock */
#define SG_LISTED       1u          /* cache of slab_guest_with_lists() */
#define SG_LISTED_SIZE  256u        /* of its slots; 16 in a slab */

/** Which kernel it is like. */
typedef enum SgKind {
    SG_5_10,        /* struct page, PG_slab, kmem_cache_cpu.page */
    SG_6_12,        /* struct slab, PGTY_slab, kmem_cache_cpu.slab */
    SG_7_3,         /* sheaves and barns, per_node */
} SgKind;

/** How its free pointers are stored. */
typedef enum SgForm { SG_PLAIN, SG_XOR, SG_SWAP } SgForm;

/**
 * struct SlabGuest - the guest
 * @o: what views of objects need
 * @vm: the VM: one vCPU reads @ram
 * @size: of a slot, by the number of the cache
 */
typedef struct SlabGuest {
    KtObjects o;
    KtTracer *t;
    GsKernel k;
    KtVm vm;
    SgKind kind;
    SgForm form;
    uint32_t size[SG_CACHES];
    uint8_t ram[SG_PAGES * 4096];
} SlabGuest;

/** slab_guest_new() - (owned) a guest whose only cache is number 0,
 *  "kmem_cache". */
SlabGuest *slab_guest_new(SgKind kind, SgForm form);
/** slab_guest_with_lists() - (owned) a guest, of a kernel without sheaves, with
 *  cache SG_LISTED, "kmalloc-256". CPU 1 allocates from page 16: slots 2, 8 and
 *  5 are on its list, 9 on that of the slab. The node's list has page 17, whose
 *  slots 3 and 1 are free. Page 18 is full. */
SlabGuest *slab_guest_with_lists(SgKind kind, SgForm form);
void slab_guest_free(SlabGuest *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SlabGuest, slab_guest_free)

/** sg_put() - write a number of @bytes bytes. */
void sg_put(SlabGuest *g, uint64_t va, uint64_t v, unsigned bytes);
/** sg_word() - read 8 bytes. */
uint64_t sg_word(SlabGuest *g, uint64_t va);
/** sg_struct() - return the address of the struct page of a page. */
uint64_t sg_struct(unsigned page);
/** sg_cache() - return the address of cache @i. */
uint64_t sg_cache(unsigned i);
/** sg_node() - return the address of the kmem_cache_node of cache @i. */
uint64_t sg_node(unsigned i);
/** sg_object() - return the address of a slot of a slab at @page. */
uint64_t sg_object(const SlabGuest *g, unsigned cache, unsigned page,
                   unsigned slot);

/** sg_add_cache() - write cache @i, whose slots have @size bytes. Lists are
 *  empty. */
void sg_add_cache(SlabGuest *g, unsigned i, const char *name, uint32_t size);
/** sg_add_slab() - make @page a slab of cache @i. @slots: its own list, @n of
 *  them; all others are in use. */
void sg_add_slab(SlabGuest *g, unsigned i, unsigned page,
                 const unsigned *slots, unsigned n);
/** sg_chain() - link free objects. Returns: the first, 0 if @n is 0. */
uint64_t sg_chain(SlabGuest *g, unsigned i, unsigned page,
                  const unsigned *slots, unsigned n);
/** sg_set_next() - write the free pointer of a slot. */
void sg_set_next(SlabGuest *g, unsigned i, unsigned page, unsigned slot,
                 uint64_t next);
/** sg_set_counts() - write the numbers of a slab. */
void sg_set_counts(SlabGuest *g, unsigned page, unsigned inuse,
                   unsigned objects);
/** sg_set_cpu() - write what a CPU allocates from. @slab: a page, 0: none;
 *  @partial: the pages of its partial list, 0 at the end */
void sg_set_cpu(SlabGuest *g, unsigned i, unsigned cpu, uint64_t freelist,
                unsigned slab, const unsigned *partial);
/** sg_set_partial() - write the partial list of the node. @pages: 0 at the
 *  end */
void sg_set_partial(SlabGuest *g, unsigned i, const unsigned *pages);
/** sg_sheaf() - return the address of one of 16 sheaves. */
uint64_t sg_sheaf(unsigned number);
/** sg_add_sheaf() - write a sheaf of cache @i with @n objects; @object: the
 *  next one to be handed out is last. */
void sg_add_sheaf(SlabGuest *g, unsigned i, unsigned number,
                  const uint64_t *object, unsigned n);
/** sg_set_sheaves() - write the sheaves of a CPU; UINT_MAX: none. */
void sg_set_sheaves(SlabGuest *g, unsigned i, unsigned cpu, unsigned main,
                    unsigned spare, unsigned rcu);
/** sg_set_barn() - write a list of the barn: full sheaves, or empty ones.
 *  @sheaves: @n numbers */
void sg_set_barn(SlabGuest *g, unsigned i, bool full, const unsigned *sheaves,
                 unsigned n);

#endif /* SLAB_GUEST_H */
