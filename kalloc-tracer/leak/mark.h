/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scan: which blocks can be reached from given memory, by pointers.
 *
 * Conservative marking in three colours. Every aligned word that is an
 * address in a block counts as a pointer to it, whatever it is in truth. A
 * block is white until a pointer to it was seen, grey until its own words
 * were looked at, then black. Grey ones wait in a list: nothing recurses.
 *
 * Knows neither kernels nor the tracer. One thread.
 */
#ifndef KT_MARKER_H
#define KT_MARKER_H

#include "kalloc-tracer/kt.h"

/* ---- reading ------------------------------------------------------------ */

#define KT_READER_PAGE 4096

/**
 * struct KtReader - words of guest memory, by pages that are kept for a while
 * @mem: the guest's
 * @tick: (nullable) called now and then; false ends all that is under way
 * @opaque: handed to @tick
 * @bytes: read so far; @unreadable: pages that are not to be read; @looks:
 *         at pages, those that were kept included
 * @stopped: @tick said so
 */
typedef struct KtReader {
    GsMem mem;
    bool (*tick)(void *opaque);
    void *opaque;
    uint64_t bytes;
    uint64_t unreadable;
    uint64_t looks;
    bool stopped;
    struct KtReaderPage *page;
} KtReader;

/** KtSpanFn - @n words as they stand at @va, which all lie in one page. */
typedef void KtSpanFn(void *opaque, uint64_t va, const uint64_t *word,
                      size_t n);

/** kt_reader_init() - the other members are the caller's to set before. */
void kt_reader_init(KtReader *r);
void kt_reader_deinit(KtReader *r);
/** kt_reader_each() - all aligned words of [@va, @va + @len) that can be
 *  read, unless it is stopped. What follows 16 MiB that cannot be read is left
 *  out: a guest can claim blocks of any size. */
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

/** struct KtMarkerArea - the only part of a block that has pointers; there may
 *  be several of a block */
typedef struct KtMarkerArea {
    uint32_t block;
    uint64_t lo, hi;            /* offsets, @hi excluded */
} KtMarkerArea;

KtMarker *kt_marker_new(void);
void kt_marker_free(KtMarker *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtMarker, kt_marker_free)

/** kt_marker_reserve() - @n blocks will come; before the first. */
void kt_marker_reserve(KtMarker *s, uint32_t n);
/** kt_marker_add() - a block; all of them before kt_marker_seal(). Returns: its
 *  number, 0, 1, ... */
uint32_t kt_marker_add(KtMarker *s, uint64_t va, uint64_t len, unsigned flags);
/** kt_marker_alias() - the block last added is at @va, too. Beyond
 *  KT_MARKER_ALIASES_MAX it counts as reached instead. */
void kt_marker_alias(KtMarker *s, uint64_t va);
/** So many are kept of all blocks: a guest claims CPUs as it likes. */
#define KT_MARKER_ALIASES_MAX (1u << 22)
/** kt_marker_set_flags() - more of them; before the first root. */
void kt_marker_set_flags(KtMarker *s, uint32_t block, unsigned flags);
/** kt_marker_area() - a part of a block that has pointers; others have none
 *  then. */
void kt_marker_area(KtMarker *s, KtMarkerArea area);
/** kt_marker_skip() - words from offset @lo up to @hi of a block are no
 *  pointers, whatever its areas are. */
void kt_marker_skip(KtMarker *s, uint32_t block, uint64_t lo, uint64_t hi);
/** kt_marker_pages() - struct pages, of @size bytes each, are from @lo to @hi;
 *  the first tells of the page at @va, the next of the next, of @page bytes */
void kt_marker_pages(KtMarker *s, uint64_t lo, uint64_t hi, uint64_t size,
                     uint64_t va, uint64_t page);
/** kt_marker_follow_pages() - do addresses of struct pages refer to blocks from
 *  now on? As they do at first. */
void kt_marker_follow_pages(KtMarker *s, bool follow);
/** kt_marker_seal() - there are no more blocks. Returns: how many cannot be
 *  found by address, as they overlap others or there is no room: they count
 *  as reached. */
uint64_t kt_marker_seal(KtMarker *s);

/** kt_marker_find() - the block that @va is an address of, or KT_MARKER_NONE.
 * */
uint32_t kt_marker_find(const KtMarker *s, uint64_t va);
/** kt_marker_gaps() - call @fn for the parts of [@va, @va + @len) that are in
 *  no block, page by page, until it says false. */
void kt_marker_gaps(const KtMarker *s, uint64_t va, uint64_t len,
                    bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                    void *opaque);
/** kt_marker_each() - the words of block @i that may be pointers; @whole: not
 *  only those of its areas, and also those that were cut. */
void kt_marker_each(const KtMarker *s, uint32_t i, KtReader *r, bool whole,
                    KtSpanFn *fn, void *opaque);

/* ---- marking ------------------------------------------------------------ */

/** How a block is referred to, the surest of all. */
typedef enum KtHold {
    KT_HOLD_NONE,
    KT_HOLD_INTERIOR,       /* by pointers into it only */
    KT_HOLD_START,          /* by a pointer to its start; tags in the lowest
                             * three bits do not matter */
} KtHold;

/** kt_marker_word() - a word of a root. */
void kt_marker_word(KtMarker *s, uint64_t word);
/** kt_marker_root() - memory that is known to be in use. */
void kt_marker_root(KtMarker *s, KtReader *r, uint64_t va, uint64_t len);
/** kt_marker_span() - likewise: @n words of it; a KtSpanFn of a KtMarker. They
 *  may wait for kt_marker_run(). */
void kt_marker_span(void *scan, uint64_t va, const uint64_t *word, size_t n);
/** kt_marker_run() - follow the pointers, until all that is reached is black.
 * */
void kt_marker_run(KtMarker *s, KtReader *r);
/** kt_marker_scan_unreached() - then: how do unreached blocks refer to each
 *  other? */
void kt_marker_scan_unreached(KtMarker *s, KtReader *r);
/** kt_marker_reached() - is it black? */
bool kt_marker_reached(const KtMarker *s, uint32_t block);
/** kt_marker_hold() - by all that is black; of a white block, by white ones. */
KtHold kt_marker_hold(const KtMarker *s, uint32_t block);

#endif /* KT_MARKER_H */
