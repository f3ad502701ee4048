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
#ifndef KT_SCAN_H
#define KT_SCAN_H

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

typedef struct KtScan KtScan;

/** KT_SCAN_NONE - no block */
#define KT_SCAN_NONE UINT32_MAX

/** What is special about a block; bits. */
typedef enum KtScanFlag {
    KT_SCANF_HELD = 1 << 0,     /* counts as reached, and is scanned */
    KT_SCANF_OPAQUE = 1 << 1,   /* its words are no pointers */
    KT_SCANF_COOKIE = 1 << 2,   /* its address is none of memory: it has
                                 * aliases, which are */
    KT_SCANF_PAGES = 1 << 3,    /* a struct page of its first page refers to
                                 * it, too */
    KT_SCANF_BOOK = 1 << 4,     /* reached by a pointer all of its words count;
                                 * if not, it is in use nevertheless, and what
                                 * was cut does not count */
    KT_SCANF_NUMBER = 1 << 5,   /* such an address counts only as it is, none
                                 * near it, and other memory may be there */
} KtScanFlag;

/** struct KtScanArea - the only part of a block that has pointers; there may
 *  be several of a block */
typedef struct KtScanArea {
    uint32_t block;
    uint64_t lo, hi;            /* offsets, @hi excluded */
} KtScanArea;

KtScan *kt_scan_new(void);
void kt_scan_free(KtScan *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtScan, kt_scan_free)

/** kt_scan_reserve() - @n blocks will come; before the first. */
void kt_scan_reserve(KtScan *s, uint32_t n);
/** kt_scan_add() - a block; all of them before kt_scan_seal(). Returns: its
 *  number, 0, 1, ... */
uint32_t kt_scan_add(KtScan *s, uint64_t va, uint64_t len, unsigned flags);
/** kt_scan_alias() - the block last added is at @va, too. Beyond
 *  KT_SCAN_ALIASES_MAX it counts as reached instead. */
void kt_scan_alias(KtScan *s, uint64_t va);
/** So many are kept of all blocks: a guest claims CPUs as it likes. */
#define KT_SCAN_ALIASES_MAX (1u << 22)
/** kt_scan_set_flags() - more of them; before the first root. */
void kt_scan_set_flags(KtScan *s, uint32_t block, unsigned flags);
/** kt_scan_area() - a part of a block that has pointers; others have none
 *  then. */
void kt_scan_area(KtScan *s, KtScanArea area);
/** kt_scan_cut() - words from offset @lo up to @hi of a block are no pointers,
 *  whatever its areas are. */
void kt_scan_cut(KtScan *s, uint32_t block, uint64_t lo, uint64_t hi);
/** kt_scan_pages() - struct pages, of @size bytes each, are from @lo to @hi;
 *  the first tells of the page at @va, the next of the next, of @page bytes */
void kt_scan_pages(KtScan *s, uint64_t lo, uint64_t hi, uint64_t size,
                   uint64_t va, uint64_t page);
/** kt_scan_follow_pages() - do addresses of struct pages refer to blocks from
 *  now on? As they do at first. */
void kt_scan_follow_pages(KtScan *s, bool follow);
/** kt_scan_seal() - there are no more blocks. Returns: how many cannot be
 *  found by address, as they overlap others or there is no room: they count
 *  as reached. */
uint64_t kt_scan_seal(KtScan *s);

/** kt_scan_find() - the block that @va is an address of, or KT_SCAN_NONE. */
uint32_t kt_scan_find(const KtScan *s, uint64_t va);
/** kt_scan_gaps() - call @fn for the parts of [@va, @va + @len) that are in
 *  no block, page by page, until it says false. */
void kt_scan_gaps(const KtScan *s, uint64_t va, uint64_t len,
                  bool (*fn)(void *opaque, uint64_t va, uint64_t len),
                  void *opaque);
/** kt_scan_each() - the words of block @i that may be pointers; @whole: not
 *  only those of its areas, and also those that were cut. */
void kt_scan_each(const KtScan *s, uint32_t i, KtReader *r, bool whole,
                  KtSpanFn *fn, void *opaque);

/* ---- marking ------------------------------------------------------------ */

/** How a block is referred to, the surest of all. */
typedef enum KtHold {
    KT_HOLD_NONE,
    KT_HOLD_INTERIOR,       /* by pointers into it only */
    KT_HOLD_START,          /* by a pointer to its start; tags in the lowest
                             * three bits do not matter */
} KtHold;

/** kt_scan_word() - a word of a root. */
void kt_scan_word(KtScan *s, uint64_t word);
/** kt_scan_root() - memory that is known to be in use. */
void kt_scan_root(KtScan *s, KtReader *r, uint64_t va, uint64_t len);
/** kt_scan_span() - likewise: @n words of it; a KtSpanFn of a KtScan. They may
 *  wait for kt_scan_run(). */
void kt_scan_span(void *scan, uint64_t va, const uint64_t *word, size_t n);
/** kt_scan_run() - follow the pointers, until all that is reached is black. */
void kt_scan_run(KtScan *s, KtReader *r);
/** kt_scan_rest() - then: how do white blocks refer to each other? */
void kt_scan_rest(KtScan *s, KtReader *r);
/** kt_scan_reached() - is it black? */
bool kt_scan_reached(const KtScan *s, uint32_t block);
/** kt_scan_hold() - by all that is black; of a white block, by white ones. */
KtHold kt_scan_hold(const KtScan *s, uint32_t block);

#endif /* KT_SCAN_H */
