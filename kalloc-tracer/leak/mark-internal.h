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
#ifndef KT_MARK_INTERNAL_H
#define KT_MARK_INTERNAL_H

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

/* ---- queue --------------------------------------------------------------- */
/*
 * Queue of the mark phase (mark.h): numbers of blocks that were reached but not
 * scanned yet. For mark.c only; one thread.
 *
 * The queue is a set in number order, not a list. Numbers are sorted by
 * address, so neighbours in memory are scanned together and few guest pages
 * are read twice. Popping goes around: after the last group comes the first.
 *
 *     level 2   1 bit for each word of level 1 that is not 0
 *     level 1   1 bit for each word of level 0 that is not 0
 *     level 0   1 bit for each block; one word is a group of 64 blocks
 *
 * So the next non-empty group is found in a few steps up and down, O(levels).
 * Host memory: one bit a block, and 1/63 more.
 */

#define KT_MARK_QUEUE_GROUP   64    /* blocks that are popped together */
#define KT_MARK_QUEUE_LEVELS  6     /* at most GROUP to the power of LEVELS
                                     * blocks */

/**
 * struct KtMarkQueue - a set of block numbers
 * @level: bitmaps as drawn above
 * @group: the group that was popped last
 */
typedef struct KtMarkQueue {
    uint64_t *level[KT_MARK_QUEUE_LEVELS];
    uint32_t group;
} KtMarkQueue;

/** kt_mark_queue_init() - make an empty queue for numbers below @n. */
void kt_mark_queue_init(KtMarkQueue *q, uint32_t n);
void kt_mark_queue_deinit(KtMarkQueue *q);

/** kt_mark_queue_add() - add number @i; no effect if it is queued. */
static inline void kt_mark_queue_add(KtMarkQueue *q, uint32_t i)
{
    bool first = true;

    for (unsigned l = 0; first && l < KT_MARK_QUEUE_LEVELS; l++, i /= 64) {
        uint64_t *word = &q->level[l][i / 64];

        first = !*word;
        *word |= 1ull << i % 64;
    }
}

/** kt_mark_queue_pop() - remove the next group. @first: (out) its first number.
 *  A group that got new numbers is popped again at once. Returns: bit n is
 *  set for number @first + n; 0 if the queue is empty. */
uint64_t kt_mark_queue_pop(KtMarkQueue *q, uint32_t *first);

#endif /* KT_MARK_INTERNAL_H */
