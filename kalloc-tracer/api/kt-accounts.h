/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts: how much was allocated and freed, and by whom; docs/accounts.md
 * says what counts.
 */
#ifndef KT_ACCOUNTS_API_H
#define KT_ACCOUNTS_API_H

#include "kalloc-tracer/api/kt-types.h"

/** What accounts are kept by. */
typedef enum KtBy {
    KT_BY_CALLER,           /* first frame of the allocation's backtrace */
    KT_BY_STACK,
    KT_BY_CACHE,            /* or the layer of what is of no known cache */
    KT_BY_TASK,             /* that allocated */
    KT_BY_SIZE,             /* that was asked for, in classes */
    KT_BY__COUNT
} KtBy;

/**
 * struct KtAccount - what was allocated and freed, of a boot so far
 * @allocs, @asked, @reserved: allocations; bytes that they asked for, and got
 * @frees, @freed_asked, @freed_reserved: likewise of blocks that are no more
 * @peak: most bytes that were live at a time, slack included
 * @cross: frees on another vCPU than that of the allocation
 * @caller: of a stack: the number of its caller, for the tracer alone
 *
 * What is live is the difference. A free counts for who allocated.
 */
typedef struct KtAccount {
    uint64_t allocs, asked, reserved;
    uint64_t frees, freed_asked, freed_reserved;
    uint64_t peak;
    uint64_t cross:40;
    uint64_t caller:24;
} KtAccount;
G_STATIC_ASSERT(sizeof(KtAccount) == 64);

/** struct KtAccountKey - whose account: what of it is set depends on @by */
typedef struct KtAccountKey {
    KtBy by;
    uint64_t pc;            /* CALLER: 0 when there is no backtrace */
    KtStackId stack;
    KtCacheId cache;        /* CACHE: 0 for none, then @layer tells */
    KtLayer layer;
    KtTaskId task;
    uint64_t lo, hi;        /* SIZE: the class, both inclusive */
} KtAccountKey;

/**
 * struct KtTotals - of all accounts together
 * @sum: of everything; @us: time of the newest event
 * @resizes, @grown, @shrunk: by krealloc in place: calls, and the bytes by
 *          which they changed what had been asked for. @sum has grown bytes
 *          among those asked for, and shrunk ones among those freed
 * @lost, @lost_asked, @lost_reserved: blocks that count as freed, though no
 *          free of them was seen: taken by another allocation, or not kept
 * @splits: parts of pages that count as allocations: others were freed
 * @stray: frees of what nobody was seen to allocate
 */
typedef struct KtTotals {
    KtAccount sum;
    uint64_t us;
    uint64_t resizes, grown, shrunk;
    uint64_t lost, lost_asked, lost_reserved;
    uint64_t splits;
    uint64_t stray;
} KtTotals;

typedef bool (*KtAccountFn)(const KtAccountKey *key, const KtAccount *a,
                            void *opaque);

/** KT_MARKS_MAX - marks whose accounts may be kept at once;
 *  KT_MARK_NAME_MAX - bytes of a name. */
#define KT_MARKS_MAX 32
#define KT_MARK_NAME_MAX 64

/**
 * kt_query_accounts() - everybody's account, in no order; false of @fn stops
 * @mark: (nullable) as of that mark, NULL: now
 *
 * Returns: false when there is no such mark.
 */
bool kt_query_accounts(KtTracer *t, const char *mark, KtBy by,
                       KtAccountFn fn, void *opaque);
/** kt_query_totals() - likewise all together. */
bool kt_query_totals(KtTracer *t, const char *mark, KtTotals *out);

/** struct KtMarkInfo - a mark; @name is borrowed for the call */
typedef struct KtMarkInfo {
    const char *name;
    KtTotals totals;
} KtMarkInfo;
typedef bool (*KtMarkFn)(const KtMarkInfo *p, void *opaque);
/** kt_query_marks() - all of them, oldest first. */
void kt_query_marks(KtTracer *t, KtMarkFn fn, void *opaque);

/**
 * kt_tracer_set_mark() - keep the accounts as they are now, as @name
 * @errp: there are too many, or no memory for it within the bound
 *
 * A mark of that name is replaced. Marks go with the boot, with `ka clear`
 * and when a VM's state is loaded. Any thread that may query.
 */
bool kt_tracer_set_mark(KtTracer *t, const char *name, GError **errp);
/** kt_tracer_drop_mark() - false: there is none of that name. */
bool kt_tracer_drop_mark(KtTracer *t, const char *name);

/** struct KtStray - frees that one backtrace made of what nobody was seen to
 *  allocate: @unknown: perhaps allocated before tracing began; @invalid:
 *  reported as errors; @pages: of the page allocator */
typedef struct KtStray {
    KtStackId stack;        /* 0: of all that there was no room for, too */
    uint64_t unknown, invalid, pages;
} KtStray;
typedef bool (*KtStrayFn)(const KtStray *s, void *opaque);
void kt_query_stray(KtTracer *t, KtStrayFn fn, void *opaque);

/**
 * kt_query_past() - past lives of all addresses, oldest first
 * @at: (in, out) where to go on: 0 for the first; numbers ascend, so that
 *      what was dropped meanwhile is passed over
 * @n: at most so many
 *
 * Returns: false when there are no more.
 */
bool kt_query_past(KtTracer *t, uint64_t *at, unsigned n, KtBlockFn fn,
                   void *opaque);
/** kt_size_class_of() - the class of sizes that @asked is in, as its key
 *  tells it: both inclusive. */
void kt_size_class_of(uint64_t asked, uint64_t *lo, uint64_t *hi);

#endif /* KT_ACCOUNTS_API_H */
