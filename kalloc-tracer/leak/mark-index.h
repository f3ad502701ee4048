/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Index of a marker (mark.h): which block contains an address? Built once from
 * all blocks, then only read. For mark.c only; one thread.
 *
 *     word
 *      | filter: one bit for each hash of word >> 21; rejects most words
 *      v
 *     chunk  hash table: 2 MiB of addresses --> table of its 512 pages
 *      v
 *     page   { first, n }: n extents overlap this page, from number first on
 *      v
 *     extent { va, len, block }, sorted by va, without overlaps
 *
 * Neither pages nor extents are likely to be in the host's caches, so
 * kt_mark_index_find() looks up many words together and prefetches each step.
 *
 * Host memory: 16 bytes an extent, and 4 KiB for each chunk that has one (at
 * most 131072 chunks).
 */
#ifndef KT_MARK_INDEX_H
#define KT_MARK_INDEX_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define KT_MARKER_CHUNK_SHIFT 21
#define KT_MARKER_FILTER_BITS 16
#define KT_MARKER_LOW (1ull << 31)

/** struct KtExtent - one range of addresses of a block: its own, or an
 *  alias. */
typedef struct KtExtent {
    uint64_t va;
    uint64_t len:35;
    uint64_t block:29;
} KtExtent;

/** struct KtMarkerFilter - Bloom filter of one hash: chunks of 2 MiB that have
 *  an extent, and the exact start of each extent below KT_MARKER_LOW */
typedef struct KtMarkerFilter {
    uint64_t bit[(1u << KT_MARKER_FILTER_BITS) / 64];
} KtMarkerFilter;

typedef struct KtMarkIndex KtMarkIndex;

/** kt_mark_index_new() - make an index for at most @n extents. Returns: (owned)
 *  the index. */
KtMarkIndex *kt_mark_index_new(uint32_t n);
void kt_mark_index_free(KtMarkIndex *ix);

/** kt_mark_index_add() - add an extent. Call before kt_mark_index_seal();
 *  sorted addresses are fastest. Returns: false if there is no room, or @len or
 *  @block are too large. */
bool kt_mark_index_add(KtMarkIndex *ix, uint64_t va, uint64_t len,
                       uint32_t block);
/**
 * kt_mark_index_seal() - build the index; no more extents can be added
 * @filter: (out) accepts all addresses that the index can find; below
 *          KT_MARKER_LOW only the start of an extent
 * @drop: called with the block of each extent that is dropped, because it
 *        overlaps another or there is no room
 */
void kt_mark_index_seal(KtMarkIndex *ix, KtMarkerFilter *filter,
                        void (*drop)(void *opaque, uint32_t block),
                        void *opaque);

/** kt_mark_index_find() - find the extents of @n addresses. @out: (borrowed)
 *  NULL for an address that is in none */
void kt_mark_index_find(const KtMarkIndex *ix, const uint64_t *va, unsigned n,
                        const KtExtent **out);
/** kt_mark_index_gaps() - call @fn for the parts of [@va, @va + @len) that
 *  are in no extent, page by page, until it returns false. */
void kt_mark_index_gaps(const KtMarkIndex *ix, uint64_t va, uint64_t len,
                        bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                        void *opaque);

static inline uint64_t kt_marker_hash(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ull;
}

/* Words below KT_MARKER_LOW are mostly plain numbers, so only exact starts of
 * extents count. */
static inline unsigned kt_marker_filter_bit(uint64_t word)
{
    return kt_marker_hash(
               word < KT_MARKER_LOW ? word : word >> KT_MARKER_CHUNK_SHIFT) >>
           (64 - KT_MARKER_FILTER_BITS);
}

static inline void kt_marker_filter_add(KtMarkerFilter *f, uint64_t va)
{
    unsigned bit = kt_marker_filter_bit(va);

    f->bit[bit / 64] |= 1ull << bit % 64;
}

static inline bool kt_marker_filter_has(const KtMarkerFilter *f, uint64_t word)
{
    unsigned bit = kt_marker_filter_bit(word);

    return f->bit[bit / 64] >> bit % 64 & 1;
}

#endif /* KT_MARK_INDEX_H */
