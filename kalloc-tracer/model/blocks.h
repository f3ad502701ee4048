/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: a 48-byte record for each allocated or freed block.
 *
 * What only a freed block has (who freed it, when) is in a record of its
 * own, likewise what only a block has that kfree_rcu() queued. Each record
 * is in the list of its stack, so that the blocks of a stack are found
 * without a search. No locking: the tracer's lock covers it.
 */
#ifndef KT_BLOCKS_H
#define KT_BLOCKS_H

#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/pool.h"

/** struct KtLink - place in a doubly linked list, by record index; 0 ends */
typedef struct KtLink {
    uint32_t prev;
    uint32_t next;
} KtLink;

/**
 * struct KtRec - a block
 * @va: its start. Comes first: the pool overwrites its low half when the
 *      record is released
 * @requested, @actual: bytes; when @huge they are in a side table
 * @link: in the list of @stack
 * @end: index of its KtEnd; 0 while plainly allocated
 * @gfp: index in the table of gfp values
 * @freed: KT_BLOCK_FREED
 * @queued: kfree_rcu() queued it
 * @old: it was here before events went unrecorded
 */
typedef struct KtRec {
    uint64_t va;
    uint32_t requested;
    uint32_t actual;
    uint64_t alloc_us:48;
    uint64_t cache:16;
    uint32_t stack:24;
    uint32_t hook:8;
    uint32_t task:24;
    uint32_t layer:3;
    uint32_t freed:1;
    uint32_t queued:1;
    uint32_t huge:1;
    uint32_t old:1;
    KtLink link;
    uint32_t end;
    uint16_t gfp;
    uint16_t cpu;
} KtRec;
G_STATIC_ASSERT(sizeof(KtRec) == 48);

/**
 * struct KtEnd - how a block ended, or that it is queued to
 * @rcu: index of its KtRcu, 0 none
 * @reported: frees still to come that were reported already, when they were
 *            queued
 */
typedef struct KtEnd {
    uint64_t free_us:48;
    uint64_t cpu:16;
    uint32_t stack:24;
    uint32_t hook:8;
    uint32_t task:24;
    uint32_t reported:8;
    uint32_t block;
    KtLink link;
    uint32_t rcu;
} KtEnd;
G_STATIC_ASSERT(sizeof(KtEnd) == 32);

/** struct KtRcu - the call that queued a block */
typedef struct KtRcu {
    uint64_t us;
    uint32_t stack;
    uint32_t block;
    KtLink link;
} KtRcu;
G_STATIC_ASSERT(sizeof(KtRcu) == 24);

/** struct KtList - lists of a pool's records, one for each stack */
typedef struct KtList {
    KtPool *pool;
    uint32_t offset;        /* of the KtLink in a record */
    uint32_t n;
    uint32_t *head;
    KtBudget *budget;
} KtList;

/**
 * struct KtBlocks - all of them
 * @age: (KtLink, by the index of the KtEnd) freed blocks from the @oldest to
 *       the @newest; only with a bound, for who makes room
 * @young: a bit for each group of records that may have one that is not old;
 *         @n_young words
 */
typedef struct KtBlocks {
    KtPool rec;
    KtPool end;
    KtPool rcu;
    KtPool age;
    uint32_t oldest;
    uint32_t newest;
    uint64_t *young;
    uint32_t n_young;
    KtBudget *budget;       /* borrowed, NULL for none */
    bool bounded;
    KtList by_alloc;        /* of rec */
    KtList by_free;         /* of end */
    KtList by_rcu;          /* of rcu */
    GHashTable *huge;       /* index -> sizes of 4 GiB and more */
    GHashTable *gfp_ids;    /* gfp -> index */
    uint32_t *gfps;
    uint32_t n_gfps;
    uint32_t last_gfp;
    uint16_t last_gfp_id;
} KtBlocks;

/** kt_blocks_init() - @budget: (borrowed, nullable) where memory is taken.
 *  With a bound each record comes with the memory for its end. */
void kt_blocks_init(KtBlocks *b, KtBudget *budget);
void kt_blocks_deinit(KtBlocks *b);

static inline KtRec *kt_rec(const KtBlocks *b, uint32_t index)
{
    return kt_pool_at(&b->rec, index);
}

static inline KtEnd *kt_end(const KtBlocks *b, uint32_t index)
{
    return kt_pool_at(&b->end, index);
}

static inline KtRcu *kt_rcu(const KtBlocks *b, uint32_t index)
{
    return kt_pool_at(&b->rcu, index);
}

/** kt_blocks_new() - an unset record, 0 without memory. */
uint32_t kt_blocks_new(KtBlocks *b);
/** kt_blocks_fit() - may a block have such sizes? Those of 4 GiB and more
 *  take memory. */
bool kt_blocks_fit(const KtBlocks *b, uint64_t requested, uint64_t actual);
/** kt_blocks_oldest() - the block that was freed first, 0 for none or without
 *  a bound. One with reported frees to come is not, while there are others. */
uint32_t kt_blocks_oldest(KtBlocks *b);
/** kt_blocks_set() - make it the block that @ev allocated. */
void kt_blocks_set(KtBlocks *b, uint32_t index, const KtEvent *ev);
/** kt_blocks_unset() - it left the map: leave lists, drop extensions. */
void kt_blocks_unset(KtBlocks *b, uint32_t index);
/** kt_blocks_release() - give an unset record back. */
void kt_blocks_release(KtBlocks *b, uint32_t index);

/** kt_blocks_copy() - make @to the part of @from that begins at @va: the same
 *  allocation, not freed, not queued. */
void kt_blocks_copy(KtBlocks *b, uint32_t to, uint32_t from, uint64_t va,
                    uint64_t len);
/** kt_blocks_shrink() - only @len bytes are left of it. */
void kt_blocks_shrink(KtBlocks *b, uint32_t index, uint64_t len);
void kt_blocks_resize(KtBlocks *b, uint32_t index, uint64_t requested);
/** kt_blocks_set_freed() - @ev freed it. */
void kt_blocks_set_freed(KtBlocks *b, uint32_t index, const KtEvent *ev);
/** kt_blocks_set_queued() - kfree_rcu() queued it. Returns: false when there
 *  is no memory to keep by whom. */
bool kt_blocks_set_queued(KtBlocks *b, uint32_t index, const KtEvent *ev);

/** kt_blocks_expect() - one more free of it will come that was reported;
 *  kt_blocks_expected() - was this one? */
void kt_blocks_expect(KtBlocks *b, uint32_t index);
bool kt_blocks_expected(KtBlocks *b, uint32_t index);
/** kt_blocks_freed_so() - was it freed by the call that @ev tells of? */
bool kt_blocks_freed_so(const KtBlocks *b, uint32_t index, const KtEvent *ev);

/** kt_blocks_age() - every block is older than a gap from now on. Returns: how
 *  many records it looked at; those of before the gap before are few. */
uint64_t kt_blocks_age(KtBlocks *b);

/** kt_blocks_requested() - bytes that were asked for. */
uint64_t kt_blocks_requested(const KtBlocks *b, uint32_t index);
/** kt_blocks_len() - bytes in the map, 0 for a block of no bytes. */
uint64_t kt_blocks_len(const KtBlocks *b, uint32_t index);
/** kt_blocks_last() - its last address; its start when it has no bytes, the
 *  last there is when it would wrap. */
uint64_t kt_blocks_last(const KtBlocks *b, uint32_t index);
void kt_blocks_get(const KtBlocks *b, uint32_t index, KtBlock *out);

/** kt_blocks_touch_stack() - start to load the list heads that @ev needs;
 *  kt_blocks_touch() - then its block and the heads' records;
 *  kt_blocks_touch_links() - then the neighbours in the block's lists;
 *  kt_blocks_touch_end() - then those in the list of the stack that freed. */
void kt_blocks_touch_stack(const KtBlocks *b, const KtEvent *ev);
void kt_blocks_touch(const KtBlocks *b, const KtEvent *ev, uint32_t index);
void kt_blocks_touch_links(const KtBlocks *b, uint32_t index);
void kt_blocks_touch_end(const KtBlocks *b, uint32_t index);

/** kt_list_head() - first record of the list of @stack, 0 if empty. */
static inline uint32_t kt_list_head(const KtList *l, uint32_t stack)
{
    return stack < l->n ? l->head[stack] : 0;
}

/** struct KtRenumber - new ids by old ones, which are below the lengths of
 *  these (borrowed) arrays; 0 stays 0, and no two stacks become one */
typedef struct KtRenumber {
    const uint32_t *stack;
    const uint32_t *task;
    const uint16_t *cache;
} KtRenumber;

/** kt_blocks_renumber() - give every block other ids. */
void kt_blocks_renumber(KtBlocks *b, const KtRenumber *to);

/** kt_blocks_bytes() - host memory. */
uint64_t kt_blocks_bytes(const KtBlocks *b);

#endif /* KT_BLOCKS_H */
