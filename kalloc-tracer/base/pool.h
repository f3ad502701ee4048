/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pool: records of one size, by a 32-bit index.
 *
 * An index takes half the bytes of a pointer. Chunks never move and lie on huge
 * pages if the host has some: the map of a big guest has gigabytes that are
 * read at random, and most of the time goes into TLB misses. Index 0 means
 * "none".
 *
 *     chunk[0]                chunk[1]
 *     | - | 1 | 2 | ... |     | n | n+1 | ...        n = 1 << shift
 *       free --> 2 --> n+1 --> 0   released records, linked by their first
 *                                  4 bytes
 *
 * No lock: the lock of the pool's owner is held.
 */
#ifndef KT_POOL_H
#define KT_POOL_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/host-memory.h"

/**
 * struct KtPool - pool
 * @chunk: chunks of (1 << @shift) records of @size bytes
 * @used: least index that was never allocated; index 0 never is
 * @free: head of the list of freed records, linked by their first 4 bytes
 * @n_free: records in that list
 * @budget, @part: (borrowed, nullable) what chunks are charged to
 * @always: charge chunks even above the limit
 */
typedef struct KtPool {
    char **chunk;
    unsigned shift;
    uint32_t size;
    uint32_t n_chunks;
    uint64_t used;
    uint32_t free;
    uint32_t n_free;
    KtBudget *budget;
    KtMemoryPart part;
    bool always;
} KtPool;

/** kt_pool_init() - make an empty pool. @size: bytes of a record, at least 4;
 *  @shift: a chunk has 1 << @shift records. */
void kt_pool_init(KtPool *p, uint32_t size, unsigned shift);
void kt_pool_deinit(KtPool *p);
/** kt_pool_charge() - charge chunks to @b (borrowed, nullable), and make them
 *  smaller if its limit is below 1 GiB. Call it before the first record. */
void kt_pool_charge(KtPool *p, KtBudget *b, KtMemoryPart part);

/** kt_pool_alloc() - return the index of a record with undefined contents; 0 if
 *  there is no memory or no index left. */
uint32_t kt_pool_alloc(KtPool *p);
/** kt_pool_reserve() - allocate memory so that the next @n allocations succeed;
 *  return false if that is not possible. */
bool kt_pool_reserve(KtPool *p, uint32_t n);
/** kt_pool_release() - release a record for reuse. */
void kt_pool_release(KtPool *p, uint32_t index);

/** kt_pool_chunk_bytes() - return the bytes of a chunk. */
static inline uint64_t kt_pool_chunk_bytes(const KtPool *p)
{
    return (uint64_t)p->size << p->shift;
}

/** kt_pool_bytes() - return the bytes of all chunks. */
uint64_t kt_pool_bytes(const KtPool *p);

/** kt_pool_in_use() - return the number of allocated records. */
static inline uint64_t kt_pool_in_use(const KtPool *p)
{
    return p->used - 1 - p->n_free;
}

/** kt_pool_capacity() - return the number of records in all chunks, index 0
 *  included. */
static inline uint64_t kt_pool_capacity(const KtPool *p)
{
    return (uint64_t)p->n_chunks << p->shift;
}

/** kt_pool_at() - return a record; it never moves. */
static inline void *kt_pool_at(const KtPool *p, uint32_t index)
{
    return p->chunk[index >> p->shift] +
           (size_t)(index & ((1u << p->shift) - 1)) * p->size;
}

/** kt_pool_prefetch() - prefetch the first and the last cache line of a
 *  record. */
static inline void kt_pool_prefetch(const KtPool *p, uint32_t index)
{
    char *at = kt_pool_at(p, index);

    kt_prefetch(at);
    kt_prefetch(at + p->size - 1);
}

#endif /* KT_POOL_H */
