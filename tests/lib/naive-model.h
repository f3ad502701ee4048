/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A second implementation of the tracer's rules, as simple as possible: an
 * array of blocks, with linear search. A tracer must agree with it on
 * everything; naive-run.h compares the two. Single-threaded.
 */
#ifndef TEST_NAIVE_MODEL_H
#define TEST_NAIVE_MODEL_H

#include "kalloc-tracer/kt.h"

#define NAIVE_HISTORY_ROWS 40
/* The stack that gets pages for another layer, if its first block is one. */
#define NAIVE_BACKING 3

/** struct NaiveBlock - a block, and what queries do not return */
typedef struct NaiveBlock {
    KtBlock b;
    bool pages;             /* in the map of the page allocator */
    bool old;               /* allocated before the last gap */
    unsigned reported;      /* later frees that were reported already */
} NaiveBlock;

/** struct NaiveAccount - the account of a key, which is a pc or a number */
typedef struct NaiveAccount {
    KtBy by;
    uint64_t key;
    KtAccount a;
} NaiveAccount;

/** struct Naive - the model; its user sets @t and @us */
typedef struct Naive {
    KtTracer *t;            /* the tracer that is compared */
    uint64_t us;            /* time of the last event */
    GArray *blocks;         /* NaiveBlock, any order */
    GArray *history;        /* KtBlock, oldest first */
    GArray *errors;         /* KtError */
    GArray *accounts;       /* NaiveAccount */
    KtTotals totals;
    KtAccount nowhere;      /* what no sum has is added here */
    bool code_known;        /* pages of NAIVE_BACKING are those of others */
    signed char backing[8]; /* by stack: 1 its pages are, -1 they are not */
    bool split;             /* a block was split: peaks depend on order */
    bool complete;
    bool gap;
    bool unseen;
    bool blind;
    uint32_t queued_nothing, destroyed;
    uint64_t misfreed;
    uint64_t events;
    uint64_t unknown_frees;
    uint64_t unknown_pages;
    uint64_t unjudged, disagreed;   /* accesses */
    uint64_t evicted;
    uint64_t previous;      /* live blocks of the previous boot */
} Naive;

void naive_init(Naive *m);
void naive_deinit(Naive *m);

/* ---- accounts, naive-accounts.c ----------------------------------------- */

/* The key of the account of all pages of other layers, by cache. */
#define NAIVE_BACKING_KEY 50
/** naive_key() - the key of the account that the block is in. */
uint64_t naive_key(const KtBlock *b, KtBy by);
NaiveAccount *naive_account(Naive *m, KtBy by, uint64_t key);
void naive_account_alloc(Naive *m, const KtBlock *b);
void naive_account_free(Naive *m, const KtBlock *b, unsigned cpu);
void naive_account_lose(Naive *m, const KtBlock *b);
/** naive_account_change() - a block became @after, or @after and @second
 *  (nullable). */
void naive_account_change(Naive *m, const KtBlock *before,
                          const KtBlock *after, const KtBlock *second);
void naive_account_cache(Naive *m, const KtBlock *before,
                         const KtBlock *after);
/** naive_account_peaks() - update the peaks. Call after each event. */
void naive_account_peaks(Naive *m);

/** naive_error() - add an error. @x: (nullable) the block before @ev. */
void naive_error(Naive *m, KtErrorKind kind, const KtEvent *ev,
                 const NaiveBlock *x);
/** naive_set_freed() - end a block as @ev says. */
void naive_set_freed(Naive *m, NaiveBlock *x, const KtEvent *ev);
/** naive_free_range() - end the live blocks in [@lo, @hi]; those that ended in
 *  the other way, by a free or a removal, become past lives. Returns: true if
 *  there were any. */
bool naive_free_range(Naive *m, bool pages, uint64_t lo, uint64_t hi,
                      const KtEvent *ev);
/** naive_in_doubt() - return true if a call may be right although the block's
 *  state is against it. */
bool naive_in_doubt(const Naive *m, const NaiveBlock *x);
/** naive_free_pages() - apply a free of pages, naive-pages.c. */
void naive_free_pages(Naive *m, const KtEvent *ev);
/** naive_destroy() - apply a KT_EV_DESTROY, naive-destroy.c. */
void naive_destroy(Naive *m, const KtEvent *ev);
/** naive_access() - apply a KT_EV_ACCESS, naive-access.c. */
void naive_access(Naive *m, const KtEvent *ev);
void naive_event(Naive *m, const KtEvent *ev);
void naive_gap(Naive *m);
void naive_forget(Naive *m);

NaiveBlock *naive_nth(const Naive *m, unsigned i);
NaiveBlock *naive_find(const Naive *m, bool pages, uint64_t va);
/** naive_next_object() - find the first block of another allocator than that of
 *  pages, at or above @va. */
NaiveBlock *naive_next_object(const Naive *m, uint64_t va);
/** naive_is_live_object() - is the block live, and an object or large block? */
bool naive_is_live_object(const NaiveBlock *x);
/** naive_first_object() - find the first such block that begins in
 *  [@va, @last], among the first eight blocks there. */
NaiveBlock *naive_first_object(Naive *m, uint64_t va, uint64_t last);
unsigned naive_live(const Naive *m);
/** naive_end() - the last address of @len bytes at @va, and at least @va. */
uint64_t naive_end(uint64_t va, uint64_t len);
uint64_t naive_last(const NaiveBlock *x);

#endif /* TEST_NAIVE_MODEL_H */
