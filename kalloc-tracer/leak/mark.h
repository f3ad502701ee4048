/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marker: the mark phase of a conservative collector. It finds the blocks that
 * are reachable by pointers from given memory, and never moves or frees them.
 * "Conservative" means: every aligned word whose value is an address in a
 * block counts as a pointer to that block, even if it is a number by chance.
 *
 *     root word --> block A --> block B --> ...
 *
 *     unreached   no pointer to the block was found yet
 *     queued      reached; its own words must still be scanned (the queue)
 *     scanned     reached, and its words were scanned
 *
 * Blocks in the queue replace recursion: the depth of a list in the guest costs
 * no host stack. Order of calls:
 *
 *     kt_marker_new()
 *     kt_marker_add(), _alias(), _area(), _skip()   describe all blocks
 *     kt_marker_seal()                              build the index
 *     kt_marker_span()                              scan roots
 *     kt_marker_run()                               scan reached blocks
 *     kt_marker_scan_unreached()                    then the others
 *     kt_marker_reached(), _hold()                  results
 *
 * The marker knows neither kernels nor the tracer. Used by leak-scan.c and
 * refs.c; collect.c, roots*.c and skip-*.c describe blocks. A marker and a
 * reader belong to one thread.
 */
#ifndef KT_MARK_H
#define KT_MARK_H

#include "kalloc-tracer/kt.h"

/* ---- reading ------------------------------------------------------------ */

#define KT_READER_PAGE 4096

/**
 * struct KtReader - reads guest memory by words, with a cache of pages
 * @mem: guest memory
 * @tag_bits: of pointers: words that are addresses have no tag, see gs_untag()
 * @tick: (nullable) called every few thousand pages; false stops the reader
 * @opaque: argument of @tick
 * @bytes: bytes read so far
 * @unreadable: pages that could not be read
 * @accesses: accesses to pages, in the cache or not
 * @stopped: @tick returned false: kt_reader_each() does nothing any more
 */
typedef struct KtReader {
    GsMem mem;
    uint64_t tag_bits;
    bool (*tick)(void *opaque);
    void *opaque;
    uint64_t bytes;
    uint64_t unreadable;
    uint64_t accesses;
    bool stopped;
    struct KtReaderPage *page;
} KtReader;

/** KtSpanFn - called with @n words at @va; all are in one page. */
typedef void KtSpanFn(void *opaque, uint64_t va, const uint64_t *word,
                      size_t n);

/** kt_reader_init() - allocate the cache. Set @mem, @tag_bits, @tick and
 *  @opaque before. */
void kt_reader_init(KtReader *r);
void kt_reader_deinit(KtReader *r);
/** kt_reader_each() - call @fn for all aligned words of [@va, @va + @len).
 *  Unreadable pages are skipped. 16 MiB of them end the call, because a guest
 *  can claim blocks of any size. */
void kt_reader_each(KtReader *r, uint64_t va, uint64_t len, KtSpanFn *fn,
                    void *opaque);

/* ---- blocks ------------------------------------------------------------- */

typedef struct KtMarker KtMarker;

/** KT_MARKER_NONE - no block */
#define KT_MARKER_NONE UINT32_MAX

/**
 * enum KtMarkerFlag - what is special about a block; bits
 * @KT_MARKERF_ROOT: the block is in use, even if no pointer reaches it
 * @KT_MARKERF_NO_SCAN: its words are not pointers
 * @KT_MARKERF_HANDLE: its address is a handle, such as a __percpu pointer.
 *                     The memory is at its aliases
 * @KT_MARKERF_BY_PAGE: the address of the struct page of its first page refers
 *                      to it, too
 * @KT_MARKERF_STACK_VM: the block is a vm_struct that describes a task's
 *                       stack. If the first pass reaches it by a pointer, all
 *                       its words are scanned. If not, it is in use after that
 *                       pass, and words of kt_marker_skip() are skipped
 * @KT_MARKERF_EXACT: only its address itself refers to it, no address inside.
 *                    Other memory may be at the following addresses
 */
typedef enum KtMarkerFlag {
    KT_MARKERF_ROOT = 1 << 0,
    KT_MARKERF_NO_SCAN = 1 << 1,
    KT_MARKERF_HANDLE = 1 << 2,
    KT_MARKERF_BY_PAGE = 1 << 3,
    KT_MARKERF_STACK_VM = 1 << 4,
    KT_MARKERF_EXACT = 1 << 5,
} KtMarkerFlag;

/** struct KtMarkerArea - a part of a block that may have pointers; a block may
 *  have several */
typedef struct KtMarkerArea {
    uint32_t block;
    uint64_t lo, hi;            /* offsets, @hi excluded */
} KtMarkerArea;

KtMarker *kt_marker_new(void);
void kt_marker_free(KtMarker *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtMarker, kt_marker_free)

/** kt_marker_reserve() - reserve memory for @n blocks. Call before the first
 *  kt_marker_add(). */
void kt_marker_reserve(KtMarker *s, uint32_t n);
/** kt_marker_add() - add a block with some KtMarkerFlag. Returns: its number:
 *  0, 1, 2, ... */
uint32_t kt_marker_add(KtMarker *s, uint64_t va, uint64_t len, unsigned flags);
/** kt_marker_alias() - add another address of the block that was added last.
 *  Above KT_MARKER_ALIASES_MAX the block becomes a root instead. */
void kt_marker_alias(KtMarker *s, uint64_t va);
/** kt_marker_also() - let this word refer to a block, too. */
void kt_marker_also(KtMarker *s, uint32_t block, uint64_t word);
/** Most aliases of all blocks: a guest can claim any number of CPUs. */
#define KT_MARKER_ALIASES_MAX (1u << 22)
/** kt_marker_set_flags() - add flags. Call before the first root. */
void kt_marker_set_flags(KtMarker *s, uint32_t block, unsigned flags);
/** kt_marker_area() - scan only this part of a block, and other parts that are
 *  added. */
void kt_marker_area(KtMarker *s, KtMarkerArea area);
/** kt_marker_skip() - skip the words from offset @lo up to @hi of a block, also
 *  inside its areas. */
void kt_marker_skip(KtMarker *s, uint32_t block, uint64_t lo, uint64_t hi);
/** kt_marker_pages() - set the memory map: struct pages of @size bytes each, in
 *  [@lo, @hi). The first one describes the page of @page bytes at @va, the next
 *  one the next page. */
void kt_marker_pages(KtMarker *s, uint64_t lo, uint64_t hi, uint64_t size,
                     uint64_t va, uint64_t page);
/** kt_marker_follow_pages() - set if addresses of struct pages refer to blocks
 *  with KT_MARKERF_BY_PAGE, of words from now on. True at first. */
void kt_marker_follow_pages(KtMarker *s, bool follow);
/** kt_marker_seal() - build the index; no more blocks can be added. Returns:
 *  the number of blocks that the index has no entry for, because they overlap
 *  others or there is no room. They are roots now. */
uint64_t kt_marker_seal(KtMarker *s);

/** kt_marker_find() - return the block that contains @va, or KT_MARKER_NONE. */
uint32_t kt_marker_find(const KtMarker *s, uint64_t va);
/** kt_marker_gaps() - call @fn for the parts of [@va, @va + @len) that are in
 *  no block, page by page, until it returns false. */
void kt_marker_gaps(const KtMarker *s, uint64_t va, uint64_t len,
                    bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                    void *opaque);
/** kt_marker_each() - call @fn for the words of block @i that may be pointers.
 *  @whole: ignore areas and skipped words */
void kt_marker_each(const KtMarker *s, uint32_t i, KtReader *r, bool whole,
                    KtSpanFn *fn, void *opaque);

/* ---- marking ------------------------------------------------------------ */

/** The strongest kind of pointer to a block, weakest first. */
typedef enum KtHold {
    KT_HOLD_NONE,
    KT_HOLD_INTERIOR,       /* into the block */
    KT_HOLD_START,          /* to its start; bits 0 to 2 may be a tag */
} KtHold;

/** kt_marker_span() - mark what @n words refer to; a KtSpanFn whose @opaque is
 *  the KtMarker. Words may be buffered until kt_marker_run(). */
void kt_marker_span(void *scan, uint64_t va, const uint64_t *word, size_t n);
/** kt_marker_run() - scan reached blocks until the queue is empty. */
void kt_marker_run(KtMarker *s, KtReader *r);
/** kt_marker_scan_unreached() - find the pointers between unreached blocks, for
 *  kt_marker_hold(). Call after kt_marker_run(). */
void kt_marker_scan_unreached(KtMarker *s, KtReader *r);
/** kt_marker_reached() - return true if the block is reachable or a root. */
bool kt_marker_reached(const KtMarker *s, uint32_t block);
/** kt_marker_hold() - return the strongest pointer to the block: from reached
 *  memory, or, if the block is unreached, from other unreached blocks. */
KtHold kt_marker_hold(const KtMarker *s, uint32_t block);

#endif /* KT_MARK_H */
