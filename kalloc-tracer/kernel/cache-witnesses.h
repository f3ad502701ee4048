/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtCacheWitnesses: learns where struct kmem_cache has its name, object_size
 * and size, from calls whose arguments are known.
 *
 *     name, object_size   a function that makes a cache was called with both,
 *                         and has returned the cache
 *     name, object_size   kmalloc() allocated some bytes, and handed the cache
 *                         to the allocator. The kernel named it "kmalloc-N";
 *                         N is its object_size
 *     size                two live objects of one cache in one page lie a
 *                         multiple of it apart, and it is at least object_size
 *
 * A function that makes a cache can return an older one instead, whose name is
 * another (__kmem_cache_alias() in mm/slub.c). So a returned cache counts only
 * if its memory was allocated during the call.
 *
 * Guest memory is read through the view only, with fixed bounds. The caller has
 * the lock.
 */
#ifndef KT_CACHE_WITNESSES_H
#define KT_CACHE_WITNESSES_H

#include "kalloc-tracer/kernel/guest.h"
#include "kalloc-tracer/kernel/votes.h"

#define KT_CACHE_BYTES      512     /* the members lie in the first ones */
#define KT_FRESH_OBJECTS    64
#define KT_PAIRED_CACHES    32

/**
 * struct KtCacheWitnesses
 * @tag_bits: of pointers, see gs_untag()
 * @name, @object_size, @size: votes
 * @made: how many of these were of a function that makes caches
 * @pairs: pairs of objects that voted for @size
 * @fresh: the last objects that were allocated; @clock counts all of them
 * @last: a live object of some caches, by a hash of the cache's address
 * @last_kmalloc: the last cache of kmalloc(); the next one must be another
 * @learned: the three offsets are final, except @object_size, of which some
 *           can be left that always had the same value
 */
typedef struct KtCacheWitnesses {
    KtView view;
    uint64_t tag_bits;
    unsigned page_shift;
    KtVotes name, object_size, size;
    unsigned made, pairs;
    uint32_t clock;
    uint64_t fresh[KT_FRESH_OBJECTS];
    struct {
        uint64_t cache, object;
    } last[KT_PAIRED_CACHES];
    uint64_t last_kmalloc;
    bool learned;
} KtCacheWitnesses;

/**
 * struct KtCacheMade - a call that made a cache, at its return
 * @cache: the kmem_cache
 * @name: address of the name in the arguments
 * @size: the object size in the arguments
 * @since: KtCacheWitnesses.clock at the call's entry
 * @in_place: the caller had the memory of @cache, so that it is a new one
 */
typedef struct KtCacheMade {
    uint64_t cache, name;
    uint32_t size;
    uint32_t since;
    bool in_place;
} KtCacheMade;

/** kt_cache_witnesses_made() - a function that makes a cache returns. */
void kt_cache_witnesses_made(KtCacheWitnesses *w, const KtCacheMade *made);
/** kt_cache_witnesses_kmalloc() - a kmalloc() of @size bytes returns, whose
 *  caller chose @cache. A cache of another name is no witness. */
void kt_cache_witnesses_kmalloc(KtCacheWitnesses *w, uint64_t cache,
                                uint32_t size);
/** kt_cache_witnesses_object() - @object of @cache was allocated. */
void kt_cache_witnesses_object(KtCacheWitnesses *w, uint64_t cache,
                               uint64_t object);
/** kt_cache_witnesses_freed() - @object is about to be freed. */
void kt_cache_witnesses_freed(KtCacheWitnesses *w, uint64_t object);

#endif /* KT_CACHE_WITNESSES_H */
