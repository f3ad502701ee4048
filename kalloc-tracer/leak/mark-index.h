/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which block is an address in? The index of a scan (mark.h), made once of
 * all blocks, then only read. For mark.c only.
 *
 * Most words of memory are no address of a block: a table of bits, by the
 * word's 2 MiB, tells of nearly all of them. For the rest each page in these
 * 2 MiB has the number of the first extent that overlaps with it. Neither that
 * nor the extents are likely to be in the host's caches, so many words are
 * looked up together, that their waits for memory overlap.
 *
 * Host memory: 16 bytes an extent, and 4 KiB for each 2 MiB that has one, of
 * which there are at most 131072.
 */
#ifndef KT_MARKER_INDEX_H
#define KT_MARKER_INDEX_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define KT_MARKER_CHUNK_SHIFT 21
#define KT_MARKER_FILTER_BITS 16
#define KT_MARKER_LOW (1ull << 31)

/** struct KtExtent - addresses of a block. They do not overlap. */
typedef struct KtExtent {
    uint64_t va;
    uint64_t len:35;
    uint64_t block:29;
} KtExtent;

/** struct KtMarkerFilter - may the 2 MiB around a word hold a block? Of a word
 *  below KT_MARKER_LOW: may a block start there? */
typedef struct KtMarkerFilter {
    uint64_t bit[(1u << KT_MARKER_FILTER_BITS) / 64];
} KtMarkerFilter;

typedef struct KtMarkIndex KtMarkIndex;

/** kt_mark_index_new() - (owned) for at most @n extents. */
KtMarkIndex *kt_mark_index_new(uint32_t n);
void kt_mark_index_free(KtMarkIndex *ix);

/** kt_mark_index_add() - before it is sealed; quickest in the order of
 *  addresses. Returns: false when there is no room, that is too long, or
 *  @block too great. */
bool kt_mark_index_add(KtMarkIndex *ix, uint64_t va, uint64_t len,
                       uint32_t block);
/**
 * kt_mark_index_seal() - there are no more
 * @filter: lets through what can be found, of small numbers starts only
 * @drop: called with the block of each extent that cannot be found by its
 *        addresses, as it overlaps with another or there is no room
 */
void kt_mark_index_seal(KtMarkIndex *ix, KtMarkerFilter *filter,
                        void (*drop)(void *opaque, uint32_t block),
                        void *opaque);

/** kt_mark_index_find() - @out: (borrowed) the extents that the @n addresses
 *  are in, NULL where there is none. */
void kt_mark_index_find(const KtMarkIndex *ix, const uint64_t *va, unsigned n,
                        const KtExtent **out);
/** kt_mark_index_gaps() - call @fn for the parts of [@va, @va + @len) that
 *  are in none, page by page, until it says false. */
void kt_mark_index_gaps(const KtMarkIndex *ix, uint64_t va, uint64_t len,
                        bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                        void *opaque);

static inline uint64_t kt_marker_hash(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15ull;
}

/* Small numbers are mostly just that: they stand for themselves only. */
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

#endif /* KT_MARKER_INDEX_H */
