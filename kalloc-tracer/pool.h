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

/**
 * struct KtPool - pool
 * @chunk: chunks of (1 << @shift) records of @size bytes
 * @n_chunks: chunks mapped
 * @used: records ever handed out, index 0 included
 * @free: head of the list of freed records, linked by their first 4 bytes
 * @n_free: records in that list
 */
typedef struct KtPool {
    char **chunk;
    unsigned shift;
    uint32_t size;
    uint32_t n_chunks;
    uint64_t used;
    uint32_t free;
    uint32_t n_free;
} KtPool;

/** kt_pool_init() - records of @size bytes, 4 at least; a chunk holds
 *  1 << @shift of them. */
void kt_pool_init(KtPool *p, uint32_t size, unsigned shift);
void kt_pool_deinit(KtPool *p);

/** kt_pool_alloc() - index of a record with undefined contents; 0 when the
 *  host has no memory or all indexes are taken. */
uint32_t kt_pool_alloc(KtPool *p);
/** kt_pool_reserve() - see to it that the next @n allocations succeed. */
bool kt_pool_reserve(KtPool *p, uint32_t n);
void kt_pool_release(KtPool *p, uint32_t index);

/** kt_pool_bytes() - host memory that is mapped for records. */
uint64_t kt_pool_bytes(const KtPool *p);

static inline void *kt_pool_at(const KtPool *p, uint32_t index)
{
    return p->chunk[index >> p->shift] +
           (size_t)(index & ((1u << p->shift) - 1)) * p->size;
}

/** kt_pool_prefetch() - start to load a record's first line and its last. */
static inline void kt_pool_prefetch(const KtPool *p, uint32_t index)
{
    char *at = kt_pool_at(p, index);

    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + p->size - 1, 1);
}

#endif /* KT_POOL_H */
