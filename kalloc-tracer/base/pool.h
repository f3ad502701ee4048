/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pool of fixed-size records addressed by a 32-bit index.
 *
 * Records live in chunks that never move and lie on huge pages where the
 * host has them: the map of a big guest is gigabytes, walked at random, and
 * its cost is TLB misses. Index 0 is never handed out. No locking.
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
 * @n_chunks: chunks mapped
 * @used: records ever handed out, index 0 included
 * @free: head of the list of freed records, linked by their first 4 bytes
 * @n_free: records in that list
 * @budget, @part: (borrowed, nullable) where chunks are accounted for
 * @always: they are, but not refused
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

/** kt_pool_init() - records of @size bytes, 4 at least; a chunk holds
 *  1 << @shift of them. */
void kt_pool_init(KtPool *p, uint32_t size, unsigned shift);
void kt_pool_deinit(KtPool *p);
/** kt_pool_charge() - before the first record: chunks are taken from @b
 *  (nullable), and are smaller where its bound is small. */
void kt_pool_charge(KtPool *p, KtBudget *b, KtMemoryPart part);

/** kt_pool_alloc() - index of a record with undefined contents; 0 when there
 *  is no memory or all indexes are taken. */
uint32_t kt_pool_alloc(KtPool *p);
/** kt_pool_reserve() - see to it that the next @n allocations succeed. */
bool kt_pool_reserve(KtPool *p, uint32_t n);
void kt_pool_release(KtPool *p, uint32_t index);

/** kt_pool_chunk_bytes() - host memory of one chunk. */
static inline uint64_t kt_pool_chunk_bytes(const KtPool *p)
{
    return (uint64_t)p->size << p->shift;
}

/** kt_pool_bytes() - host memory that is mapped for records. */
uint64_t kt_pool_bytes(const KtPool *p);

/** kt_pool_in_use() - records handed out and not released. */
static inline uint64_t kt_pool_in_use(const KtPool *p)
{
    return p->used - 1 - p->n_free;
}

/** kt_pool_capacity() - records there is memory for, index 0 included. */
static inline uint64_t kt_pool_capacity(const KtPool *p)
{
    return (uint64_t)p->n_chunks << p->shift;
}

static inline void *kt_pool_at(const KtPool *p, uint32_t index)
{
    return p->chunk[index >> p->shift] +
           (size_t)(index & ((1u << p->shift) - 1)) * p->size;
}

/** kt_pool_prefetch() - start to load a record's first line and its last. */
static inline void kt_pool_prefetch(const KtPool *p, uint32_t index)
{
    char *at = kt_pool_at(p, index);

    kt_prefetch(at);
    kt_prefetch(at + p->size - 1);
}

#endif /* KT_POOL_H */
