/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts: how much was allocated and freed since the boot, and by whom.
 *
 * There is an account for each stack, caller, cache, task and class of sizes.
 * A free counts in the account that allocated. What is live is the difference:
 *
 *     live blocks = allocs - frees
 *     live bytes  = reserved - freed_reserved
 *
 * docs/accounts.md says what counts as an allocation and as a free. Functions
 * kt_query_*() need kt_query_begin(), see kt-query.h.
 */
#ifndef KT_API_ACCOUNTS_H
#define KT_API_ACCOUNTS_H

#include "kalloc-tracer/api/kt-types.h"

/** What accounts are grouped by. */
typedef enum KtBy {
    KT_BY_CALLER,           /* first frame of the allocation's backtrace */
    KT_BY_STACK,
    KT_BY_CACHE,            /* cache, or layer if no cache is known */
    KT_BY_TASK,             /* the task that allocated */
    KT_BY_SIZE,             /* requested bytes, in classes */
    KT_BY__COUNT
} KtBy;

/**
 * struct KtAccount - sums of a boot
 * @allocs, @asked, @reserved: allocations, the bytes that they requested and
 *                             those that the allocator reserved
 * @frees, @freed_asked, @freed_reserved: the same of blocks that were freed
 * @peak: most reserved bytes that were live at one time
 * @cross: frees on another vCPU than that of the allocation
 * @caller: of an account by stack: number of its caller; internal
 */
typedef struct KtAccount {
    uint64_t allocs, asked, reserved;
    uint64_t frees, freed_asked, freed_reserved;
    uint64_t peak;
    uint64_t cross:40;
    uint64_t caller:24;
} KtAccount;
G_STATIC_ASSERT(sizeof(KtAccount) == 64);

/** struct KtAccountKey - whose account it is; @by says which fields are set.
 *  @backing: STACK and CACHE: of page blocks that other layers got for their
 *  own blocks. They are in no sum; docs/accounts.md has the rule */
typedef struct KtAccountKey {
    KtBy by;
    uint64_t pc;            /* CALLER; 0: there was no backtrace */
    uint32_t era;           /* CALLER: when @pc was taken, see GsStackEra */
    KtStackId stack;
    KtCacheId cache;        /* CACHE; 0: none, @layer is set */
    KtLayer layer;
    bool backing;
    KtTaskId task;
    uint64_t lo, hi;        /* SIZE: least and greatest size of the class */
} KtAccountKey;

/**
 * struct KtTotals - sums of all accounts
 * @sum: of everything but backing blocks
 * @us: time of the newest event
 * @resizes, @grown, @shrunk: krealloc in place: calls, and bytes by which the
 *          requested size grew or shrank. @sum has grown bytes in asked, and
 *          shrunk ones in freed_asked
 * @lost, @lost_asked, @lost_reserved: blocks that count as freed although no
 *          free was recorded: their memory was allocated again, or they were
 *          not kept
 * @splits: parts of page blocks that count as allocations, because the other
 *          parts were freed
 * @stray: frees without a recorded allocation
 * @backing_blocks, @backing: live page blocks that are not in @sum, because
 *          blocks of other layers lie in them, and their bytes
 * @backing_unknown: backtraces that allocated pages, when it was not known
 *          whether these are for blocks of other layers; they are in @sum
 * @unsized: live blocks that add 0 bytes to @sum: the object size of their
 *          kmem_cache was not known when they were allocated
 */
typedef struct KtTotals {
    KtAccount sum;
    uint64_t us;
    uint64_t resizes, grown, shrunk;
    uint64_t lost, lost_asked, lost_reserved;
    uint64_t splits;
    uint64_t stray;
    uint64_t backing_blocks, backing, backing_unknown;
    uint64_t unsized;
} KtTotals;

/**
 * kt_tracer_find_backing() - Learn from a kernel which code allocates pages for
 * other allocators
 * @k: (borrowed for the call, nullable) NULL: not known any more
 *
 * From now on sums leave out what that code allocates; docs/accounts.md. After
 * a reset it is not known. Takes the tracer's lock.
 */
void kt_tracer_find_backing(KtTracer *t, const GsKernel *k);
/** kt_query_is_backing() - return true if no sum has the block, because blocks
 *  of other layers lie in it. */
bool kt_query_is_backing(KtTracer *t, const KtBlock *b);

/** Called for each account; false ends the query. */
typedef bool (*KtAccountFn)(const KtAccountKey *key, const KtAccount *a,
                            void *opaque);

/* Marks that may exist at one time, and bytes of a mark's name. */
#define KT_MARKS_MAX 32
#define KT_MARK_NAME_MAX 64

/**
 * kt_query_accounts() - call @fn for each account, in no order
 * @mark: (nullable) as of that mark; NULL: now
 *
 * Returns: false if there is no such mark.
 */
bool kt_query_accounts(KtTracer *t, const char *mark, KtBy by,
                       KtAccountFn fn, void *opaque);
/** kt_query_totals() - read the sums of all accounts, as
 *  kt_query_accounts(). */
bool kt_query_totals(KtTracer *t, const char *mark, KtTotals *out);

/** struct KtMarkInfo - a mark: the accounts at a time that the user named.
 *  @name is borrowed for the call */
typedef struct KtMarkInfo {
    const char *name;
    KtTotals totals;
} KtMarkInfo;
typedef bool (*KtMarkFn)(const KtMarkInfo *p, void *opaque);
/** kt_query_marks() - call @fn for each mark, the oldest first. */
void kt_query_marks(KtTracer *t, KtMarkFn fn, void *opaque);

/**
 * kt_tracer_set_mark() - keep a copy of the accounts as they are now
 * @errp: there are too many marks, or the memory limit is reached
 *
 * A mark of the same name is replaced. Marks are dropped by a reset, by
 * `ka clear` and when a VM state is loaded. Takes the tracer's lock: do not
 * call it between kt_query_begin() and kt_query_end().
 */
bool kt_tracer_set_mark(KtTracer *t, const char *name, GError **errp);
/** kt_tracer_drop_mark() - drop a mark; return false if there is none of that
 *  name. Takes the tracer's lock. */
bool kt_tracer_drop_mark(KtTracer *t, const char *name);

/**
 * struct KtStray - frees by one backtrace without a recorded allocation
 * @stack: 0: of all backtraces for which there was no room
 * @unknown: perhaps allocated before recording began, or in a gap
 * @invalid: reported as errors
 * @pages: by the page allocator
 */
typedef struct KtStray {
    KtStackId stack;
    uint64_t unknown, invalid, pages;
} KtStray;
typedef bool (*KtStrayFn)(const KtStray *s, void *opaque);
/** kt_query_stray() - call @fn for each backtrace with such frees. */
void kt_query_stray(KtTracer *t, KtStrayFn fn, void *opaque);

/**
 * kt_query_past() - call @fn for past lives of all addresses, oldest first
 * @at: (in, out) number of the past life to continue at; 0: the oldest. Numbers
 *      ascend; those that were evicted since the last call are skipped
 * @n: most past lives for this call
 *
 * Returns: false if there are no more.
 */
bool kt_query_past(KtTracer *t, uint64_t *at, unsigned n, KtBlockFn fn,
                   void *opaque);
/** kt_size_class_of() - find the least and the greatest size of the class that
 *  has @asked. Any thread. */
void kt_size_class_of(uint64_t asked, uint64_t *lo, uint64_t *hi);

#endif /* KT_API_ACCOUNTS_H */
