/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow: which bytes of the direct map may be accessed, as last known.
 *
 * One byte, a code, describes a granule of 8 bytes of guest memory:
 *
 *     00        unknown: everything is good
 *     01 to 08  live: so many bytes from the start of the granule are good
 *     11 to 18  the same; a block begins in this granule
 *     80        freed
 *     90        slack: the allocator reserved it, nobody asked for it
 *     a0        fresh: a slot of a slab that nobody owns, and that nobody was
 *               seen to free
 *
 * The low four bits are the number of good bytes, except in code 00. Example:
 * a block with 20 requested and 32 reserved bytes, then the same block freed:
 *
 *     18 08 04 90          80 80 80 80
 *
 * A block ends in front of the next code that does not continue it: 00, 1x, 80
 * or a0. So a free needs no size.
 *
 * Guest addresses index an array for [base, base + len) that is reserved, but
 * not filled: host memory is used by pages in which something was marked. A
 * budget, if given, is charged for each of these pages, and for those of the
 * arrays by page of the guest. If the budget refuses, the granules of the page
 * stay unknown.
 *
 * A first level has a byte for each 4 KiB page of guest memory: is anything
 * known there? If few blocks are armed, most accesses need only this byte. A
 * guest of 512 MiB has 128 KiB of such bytes, which stay in the host's caches,
 * and 64 MiB of codes.
 *
 * Threads: any, several at once, without a lock. Blocks are aligned to 8 bytes,
 * so two vCPUs that own two blocks never write the same code. The guest orders
 * its accesses to a block and the calls that allocate and free the block; the
 * relaxed stores here follow that order.
 */
#ifndef KT_SHADOW_H
#define KT_SHADOW_H

#include <string.h>

#include "kalloc-tracer/base/budget.h"

/* Blocks are aligned to this; a code describes so many bytes. */
#define KT_GRANULE 8u
/* Larger blocks stay unknown: Linux has none, and each costs time. */
#define KT_SHADOW_BLOCK_MAX ((uint64_t)64 << 20)

typedef enum KtShadowState {
    KT_SHADOW_UNKNOWN,      /* good */
    KT_SHADOW_LIVE,         /* good */
    KT_SHADOW_FREED,
    KT_SHADOW_SLACK,
    KT_SHADOW_FRESH,
} KtShadowState;

/**
 * struct KtShadow - the codes of a range of guest addresses
 *
 * Visible for the inline functions only, which are called at each checked
 * access of the guest.
 *
 * @base: the first address, aligned to 32 KiB
 * @len: bytes of guest memory, a multiple of 32 KiB
 * @codes: one a granule
 * @touched: one a page of @codes: not 0 if the page is charged
 * @owner: one a 4 KiB page of guest memory, see kt_shadow_set_owner()
 * @marked: one a 4 KiB page of guest memory, see kt_shadow_is_marked()
 * @touched_end: pages of @codes from here on were never touched
 * @n_charged: pages of host memory that are charged
 * @budget: (nullable, borrowed)
 * @paid: one a page of host memory from @touched to the end of @marked: not 0
 *        if it is charged
 */
typedef struct KtShadow {
    uint64_t base;
    uint64_t len;
    uint8_t *codes;
    uint8_t *touched;
    uint32_t *owner;
    uint8_t *marked;
    uint64_t touched_end;
    uint64_t n_charged;
    KtBudget *budget;
    uint8_t *paid;
} KtShadow;

/**
 * kt_shadow_new() - reserve a shadow (owned); everything is unknown
 * @base: the first guest address, aligned to 32 KiB
 * @len: bytes; rounded up to a multiple of 32 KiB
 * @budget: (nullable, borrowed, must outlive the shadow) is charged for the
 *          host memory that is used
 *
 * Returns: NULL, with @errp set, if the range is no range of addresses, or the
 * host reserves no address space for it.
 */
KtShadow *kt_shadow_new(uint64_t base, uint64_t len, KtBudget *budget,
                        GError **errp);
void kt_shadow_free(KtShadow *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtShadow, kt_shadow_free)

/** kt_shadow_none - the shadow of no address, where a pointer must not be
 *  NULL. Not for functions that change a shadow. */
extern const KtShadow kt_shadow_none;

/* Bits that are 0 in the codes of whole granules: 00, 08 and 18. Three codes,
 * in the order of memory. */
#define KT_SHADOW_NOT_WHOLE GUINT32_TO_LE(0xe7e7e7u)

/*
 * Return the codes of three granules, and a byte behind them. One load. Other
 * threads may write single codes meanwhile: each byte is the old or the new
 * one, and no more is needed. The thread sanitizer wants atomic loads, which
 * cannot be unaligned.
 */
static inline uint32_t kt_shadow_three(const uint8_t *code)
{
#ifdef __SANITIZE_THREAD__
    return GUINT32_TO_LE(
        (uint32_t)__atomic_load_n(&code[0], __ATOMIC_RELAXED) |
        (uint32_t)__atomic_load_n(&code[1], __ATOMIC_RELAXED) << 8 |
        (uint32_t)__atomic_load_n(&code[2], __ATOMIC_RELAXED) << 16);
#else
    uint32_t word;

    memcpy(&word, code, sizeof(word));
    return word;
#endif
}

/**
 * kt_shadow_may_be_bad() - return false if no access to @va of at most 16 bytes
 * touches a byte that is known to be bad
 *
 * A first look, which needs no size and decides most accesses: the granules
 * there are unknown, or good in whole. Addresses outside the shadow are good.
 * Any thread, no lock.
 */
static inline bool kt_shadow_may_be_bad(const KtShadow *s, uint64_t va)
{
    uint64_t off = va - s->base;

    /* Behind the last code are bytes of @touched. */
    return off < s->len && kt_shadow_three(&s->codes[off / KT_GRANULE]) &
                           KT_SHADOW_NOT_WHOLE;
}

/* Bytes of guest memory that share a byte of @marked. */
#define KT_SHADOW_PAGE 4096u

/**
 * kt_shadow_is_marked() - return false if no access to @va of at most 16 bytes
 * touches a byte of which something is known
 *
 * Cheaper for the host's caches than kt_shadow_may_be_bad(), and less exact. It
 * stays true when the last granule of the page becomes unknown, until all of
 * the page is made unknown at once. Any thread, no lock.
 */
static inline bool kt_shadow_is_marked(const KtShadow *s, uint64_t va)
{
    uint64_t off = va - s->base;

    return off < s->len &&
           __atomic_load_n(&s->marked[off / KT_SHADOW_PAGE], __ATOMIC_RELAXED);
}

/** kt_shadow_spans_good() - as kt_shadow_is_good(), for any @size. */
bool kt_shadow_spans_good(const KtShadow *s, uint64_t va, uint64_t size);

/** kt_shadow_covers() - return true if the shadow has codes for @va. */
static inline bool kt_shadow_covers(const KtShadow *s, uint64_t va)
{
    return va - s->base < s->len;
}

/**
 * kt_shadow_is_good() - return true if no byte of [@va, @va + @size) is known
 * to be bad
 *
 * @size: of one access of the guest, at least 1. Addresses outside the shadow
 * are good. Any thread, no lock.
 */
static inline bool kt_shadow_is_good(const KtShadow *s, uint64_t va,
                                     unsigned size)
{
    uint64_t off = va - s->base;
    unsigned end = (unsigned)(va & (KT_GRANULE - 1)) + size;
    uint8_t code;

    if (off >= s->len) {
        return true;
    }
    if (G_UNLIKELY(end > KT_GRANULE)) {
        return kt_shadow_spans_good(s, va, size);
    }
    code = __atomic_load_n(&s->codes[off / KT_GRANULE], __ATOMIC_RELAXED);
    return G_LIKELY(!code) || (code & 0xf) >= end;
}

/**
 * kt_shadow_alloc() - a block was handed out
 * @va: its start
 * @requested: bytes that its owner may use; 0: unknown, all of @actual
 * @actual: bytes that the allocator reserved; 0: unknown, @requested
 * @armed: check accesses to it; if not, its bytes become unknown
 *
 * A block that is not aligned to 8 bytes, and one above KT_SHADOW_BLOCK_MAX,
 * becomes unknown.
 *
 * Returns: false if the budget refused memory: accesses to the block, or to
 * parts of it, are not checked.
 */
bool kt_shadow_alloc(KtShadow *s, uint64_t va, uint64_t requested,
                     uint64_t actual, bool armed);
/** kt_shadow_freed() - the block at @va is about to be released: its bytes are
 *  bad from now on. Nothing happens if the shadow does not know a block that
 *  begins at @va. */
void kt_shadow_freed(KtShadow *s, uint64_t va);
/** kt_shadow_release() - pages [@va, @va + @len) are about to be released: all
 *  bytes are bad from now on. More than KT_SHADOW_BLOCK_MAX bytes become
 *  unknown. Returns: as kt_shadow_alloc(). */
bool kt_shadow_release(KtShadow *s, uint64_t va, uint64_t len);
/** kt_shadow_resize() - the block at @va has other sizes now, as
 *  kt_shadow_alloc(). Nothing happens if the shadow does not know it. */
void kt_shadow_resize(KtShadow *s, uint64_t va, uint64_t requested,
                      uint64_t actual);
/** kt_shadow_use_slack() - the owner of the block at @va may use all bytes that
 *  the allocator reserved. Nothing happens if the shadow does not know a live
 *  block that begins at @va. */
void kt_shadow_use_slack(KtShadow *s, uint64_t va);
/** kt_shadow_fresh() - mark slots of a slab that nobody owns. Only granules
 *  that are unknown change. Returns: false if the budget refused memory. */
bool kt_shadow_fresh(KtShadow *s, uint64_t va, uint64_t len);
/** kt_shadow_set_owner() - the pages with a byte in [@va, @va + @len) are used
 *  by @owner, not 0. Where they were another's, all of the page becomes
 *  unknown: the slab that was there is gone, whoever freed its pages. Where the
 *  budget refuses memory, nothing is known, and nothing changes. */
void kt_shadow_set_owner(KtShadow *s, uint64_t va, uint64_t len,
                         uint32_t owner);
/** kt_shadow_forget() - make each granule unknown that has a byte in
 *  [@va, @va + @len): the memory has another owner now. Cheap if nothing was
 *  marked there. */
void kt_shadow_forget(KtShadow *s, uint64_t va, uint64_t len);
/** kt_shadow_forget_freed() - make all freed and fresh granules unknown:
 *  memory may have been handed out by calls that were not recorded. */
void kt_shadow_forget_freed(KtShadow *s);
/** kt_shadow_clear() - make everything unknown and return the host memory. No
 *  other thread may use the shadow meanwhile. */
void kt_shadow_clear(KtShadow *s);

/** kt_shadow_any_marked() - return false if nothing is known of [@va, @va +
 *  @len), and of the granule behind: an event of a block there that is not
 *  armed changes nothing. */
bool kt_shadow_any_marked(const KtShadow *s, uint64_t va, uint64_t len);
/** kt_shadow_state() - return the state of the byte at @va. */
KtShadowState kt_shadow_state(const KtShadow *s, uint64_t va);
/**
 * kt_shadow_find_bad() - find the first bad byte of [@va, @va + @len)
 * @bad: set to its address, if found
 * @state: set to its state, if found
 *
 * Examines 64 bytes of guest memory a step. Returns: true if there is one.
 */
bool kt_shadow_find_bad(const KtShadow *s, uint64_t va, uint64_t len,
                        uint64_t *bad, KtShadowState *state);

/** kt_shadow_bytes() - return the bytes of host memory that are used. */
uint64_t kt_shadow_bytes(const KtShadow *s);

#endif /* KT_SHADOW_H */
