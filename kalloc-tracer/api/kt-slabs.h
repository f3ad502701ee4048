/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slabs of the running kernel: its caches, their lists of free objects, and the
 * slots of a slab. Implemented in objects/.
 *
 *     cache --+-- CPU 0: freelist -> object -> object        of one slab
 *             |          partial  -> slab -> slab            with lists each
 *             |          main, spare, rcu: sheaf [object, object ...]
 *             +-- node 0: partial  -> slab -> slab
 *                         barn: full and empty sheaves
 *
 * Full slabs are on no list. All values are of the guest, so untrusted. A
 * KtSlabs belongs to one thread, and lives as long as one command. It takes no
 * lock but the tracer's, for the table of caches. Walk only while the VM is
 * stopped: lists of a running VM change between two reads.
 */
#ifndef KT_API_SLABS_H
#define KT_API_SLABS_H

#include "kalloc-tracer/api/kt-objects.h"

#define KT_NO_SLOT UINT32_MAX           /* the number of no slot */
#define KT_NO_COUNT UINT64_MAX          /* the kernel does not count it */
#define KT_SLAB_NAME_MAX 63             /* longer names are cut */

typedef struct KtSlabs KtSlabs;

/**
 * kt_slabs_new() - find out how this kernel keeps its slabs
 * @o: (copied; what it refers to is borrowed)
 * @errp: why slabs cannot be shown: no types, another allocator than SLUB, no
 *        direct map
 *
 * Returns: (owned) NULL on error.
 */
KtSlabs *kt_slabs_new(const KtObjects *o, GError **errp);
void kt_slabs_free(KtSlabs *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtSlabs, kt_slabs_free)

/* ---- caches -------------------------------------------------------------- */

/**
 * struct KtSlabCache - a kmem_cache, as it is now
 * @name: untrusted bytes
 * @object_size: bytes of an object; grows if another cache is merged into it
 * @size: bytes of a slot; @left_pad: of them, those before the object
 * @align, @flags: as the kernel has them
 * @users: caches that were merged into this one, and itself; 1 if no other may
 *         be
 * @offset: of the free pointer in a free object
 * @hardened: free pointers are encoded; @random: the key
 * @order, @per_slab: of a new slab: log2 of its pages, number of its objects
 * @min_order, @min_per_slab: of a slab that was made while memory was short
 * @sheaf_capacity: objects in a sheaf; 0: it has none
 * @cpu_slab, @cpu_sheaves: __percpu pointers, 0: none
 */
typedef struct KtSlabCache {
    uint64_t va;
    char name[KT_SLAB_NAME_MAX + 1];
    uint32_t object_size, size, left_pad, align, offset, users;
    uint64_t flags, random;
    bool hardened;
    uint32_t order, per_slab, min_order, min_per_slab;
    uint32_t sheaf_capacity;
    uint64_t cpu_slab, cpu_sheaves;
} KtSlabCache;

/** kt_slabs_caches() - find the caches: those on the kernel's list, and those
 *  that events named. Each lies in a slab of the cache "kmem_cache". Returns:
 *  (owned) uint64_t, their addresses, ascending. */
GArray *kt_slabs_caches(KtSlabs *s);
/** kt_slabs_cache() - read a cache. False if @va is no object of the cache
 *  "kmem_cache", or if its numbers make no sense. */
bool kt_slabs_cache(const KtSlabs *s, uint64_t va, KtSlabCache *out);

/** struct KtSlabNumbers - how many slabs and objects a cache has, as its nodes
 *  count them; KT_NO_COUNT: they do not */
typedef struct KtSlabNumbers {
    uint64_t slabs, objects;
} KtSlabNumbers;
/** kt_slabs_numbers() - read these numbers. */
void kt_slabs_numbers(const KtSlabs *s, const KtSlabCache *c,
                      KtSlabNumbers *out);

/* ---- slabs --------------------------------------------------------------- */

/**
 * struct KtSlab - a slab
 * @va: of its struct slab (struct page before 5.17)
 * @base: its memory; kt_slab_len() returns how many bytes
 * @is_slab: the page says that it is one; if not, other fields mean nothing
 * @cache: address of its kmem_cache
 * @freelist: the first object of its own list, 0: none
 * @objects, @inuse: slots, and those that are not on its own list
 * @frozen: it belongs to a CPU; from 6.8 on not if it is a partial one
 * @next: the next slab of a CPU's partial list
 * @link: address of the next list entry, of a node's list
 */
typedef struct KtSlab {
    uint64_t va, base, cache, freelist, next, link;
    uint32_t objects, inuse;
    bool frozen, is_slab;
} KtSlab;

/** kt_slabs_slab_of() - read the slab that has @va in its memory. False if @va
 *  is not in the direct map, or if its struct page is unreadable. */
bool kt_slabs_slab_of(const KtSlabs *s, uint64_t va, KtSlab *out);
/** kt_slabs_slab() - read the slab by the address of its struct slab. */
bool kt_slabs_slab(const KtSlabs *s, uint64_t va, KtSlab *out);
/** kt_slab_len() - return the bytes of the slab; 0 if its number of objects is
 *  none that its cache makes. */
uint64_t kt_slab_len(const KtSlabs *s, const KtSlabCache *c,
                     const KtSlab *slab);
/** kt_slab_slot() - return the number of the slot whose object is at @va,
 *  KT_NO_SLOT if no object begins there. */
uint32_t kt_slab_slot(const KtSlabCache *c, const KtSlab *slab, uint64_t va);
/** kt_slab_slot_around() - return the number of the slot that contains @va,
 *  KT_NO_SLOT if none does. */
uint32_t kt_slab_slot_around(const KtSlabCache *c, const KtSlab *slab,
                             uint64_t va);
/** kt_slab_object() - return the address of the object of slot @i. */
uint64_t kt_slab_object(const KtSlabCache *c, const KtSlab *slab, uint32_t i);

/* ---- lists --------------------------------------------------------------- */

/** Kinds of lists: the rows of slab-lists.def. */
typedef enum KtSlabListKind {
#define KT_SLAB_LIST(id, owner, name, parts) KT_SLAB_LIST_##id,
#include "kalloc-tracer/api/slab-lists.def"
    KT_SLAB_LIST__COUNT
} KtSlabListKind;
/* Its columns: owner, name and parts. */
const char *kt_slab_list_owner(KtSlabListKind kind);
const char *kt_slab_list_name(KtSlabListKind kind);
const char *kt_slab_list_parts(KtSlabListKind kind);

/** What can be wrong: the rows of slab-problems.def. */
typedef enum KtSlabProblemKind {
#define KT_SLAB_PROBLEM(id, name, text) KT_SLAB_##id,
#include "kalloc-tracer/api/slab-problems.def"
    KT_SLAB_PROBLEM__COUNT
} KtSlabProblemKind;
const char *kt_slab_problem_name(KtSlabProblemKind kind);
const char *kt_slab_problem_text(KtSlabProblemKind kind);

/**
 * struct KtSlabList - a list
 * @number: of the CPU or node
 * @at: address of the word or structure that it begins with
 * @parts: slabs or sheaves on it so far; @counted: the kernel's number of them,
 *         or KT_NO_COUNT
 * @objects: objects on it so far
 * @first: the object that is handed out next, 0: none
 */
typedef struct KtSlabList {
    KtSlabListKind kind;
    unsigned number;
    uint64_t at;
    uint64_t parts, counted;
    uint64_t objects;
    uint64_t first;
} KtSlabList;

/** struct KtFreeObject - an object on a list; @position: 0 is handed out
 *  next */
typedef struct KtFreeObject {
    uint64_t va;
    const KtSlab *slab;
    uint32_t slot;
    uint64_t position;
} KtFreeObject;

/**
 * struct KtSlabProblem - something is wrong with a list
 * @slab: (nullable) the slab in which it is
 * @slot: the slot whose free pointer is wrong; KT_NO_SLOT: the slab's own, or
 *        no free pointer
 * @value: what was found there: an address or a number
 * @expected: COUNT, LENGTH, BAD_*: the other number; else 0
 */
typedef struct KtSlabProblem {
    KtSlabProblemKind kind;
    const KtSlabList *list;
    const KtSlab *slab;
    uint32_t slot;
    uint64_t value, expected;
} KtSlabProblem;

/**
 * struct KtSlabOps - callbacks of a walk, each nullable; all arguments are
 * borrowed for the call
 * @object: an object on the list
 * @slab: a slab on the list, after its objects
 * @list: the list is complete, or was given up after a problem
 * @problem: the walk leaves the list, or this slab of it, here
 *
 * A vCPU that was stopped inside the allocator can leave COUNT and LENGTH, and
 * objects that are on no list.
 */
typedef struct KtSlabOps {
    void (*object)(void *opaque, const KtSlabList *l, const KtFreeObject *f);
    void (*slab)(void *opaque, const KtSlabList *l, const KtSlab *slab);
    void (*list)(void *opaque, const KtSlabList *l);
    void (*problem)(void *opaque, const KtSlabProblem *p);
} KtSlabOps;

/**
 * kt_slabs_walk() - walk all lists of a cache: of the CPUs, then of the nodes
 *
 * Each object is passed at most once, so the time is bounded by the memory of
 * the cache. Returns: false if free pointers are encoded in a way that is not
 * known; then only sheaves are walked.
 */
bool kt_slabs_walk(KtSlabs *s, const KtSlabCache *c, const KtSlabOps *ops,
                   void *opaque);
/** kt_slabs_knows_cpus() - return false if it is not known where the memory of
 *  the CPUs is: their lists are not walked. */
bool kt_slabs_knows_cpus(const KtSlabs *s);

#endif /* KT_API_SLABS_H */
