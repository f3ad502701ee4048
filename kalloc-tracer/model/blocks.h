/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks: the record of each live or freed block.
 *
 * A live block needs one record of 48 bytes (KtRec). What only some blocks have
 * is in records of their own, so that it costs nothing for the others:
 *
 *     KtRec  va, sizes, who allocated      every block
 *       `--> KtEnd  who freed, when        freed, or queued by kfree_rcu()
 *              `--> KtRcu  who queued      queued by kfree_rcu()
 *
 * Records are found by number (32 bits, 0 is none). Each is in a list with all
 * others of the same stack, so `ka blocks --alloc-pc` needs no search.
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_BLOCKS_H
#define KT_BLOCKS_H

#include "kalloc-tracer/api/kt-event.h"
#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/base/pool.h"

/** struct KtLink - place in a doubly linked list of records; 0: no neighbour */
typedef struct KtLink {
    uint32_t prev;
    uint32_t next;
} KtLink;

/**
 * struct KtRec - a block
 * @va: its start. Must be the first member: the pool links released records
 *      through it
 * @requested, @actual: requested and reserved bytes; if @huge, in a side table
 * @link: place in the list of @stack
 * @end: its KtEnd, 0: neither freed nor queued
 * @gfp: index in the table of gfp values, with tags of pointers
 * @freed: it is KT_BLOCK_FREED
 * @queued: kfree_rcu() queued it
 * @huge: a size has more than 32 bits
 * @old: it was allocated before the last gap, so it may have been freed and
 *       handed out again in the gap
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
 * struct KtEnd - how a block ended, or is about to
 * @block: its KtRec
 * @rcu: its KtRcu, 0: none
 * @reported: frees still to come that were already reported as errors, when
 *            kfree_rcu() queued the block again
 * @removed: its memory was removed, see KT_EVF_REMOVED
 */
typedef struct KtEnd {
    uint64_t free_us:48;
    uint64_t cpu:16;
    uint32_t stack:24;
    uint32_t hook:8;
    uint32_t task:24;
    uint32_t reported:7;
    uint32_t removed:1;
    uint32_t block;
    KtLink link;
    uint32_t rcu;
} KtEnd;
G_STATIC_ASSERT(sizeof(KtEnd) == 32);
#define KT_REPORTED_MAX 127     /* KtEnd.reported */

/** struct KtRcu - the call that queued a block */
typedef struct KtRcu {
    uint64_t us;
    uint32_t stack;
    uint32_t block;
    KtLink link;
} KtRcu;
G_STATIC_ASSERT(sizeof(KtRcu) == 24);

/** struct KtList - lists of the records of a pool, one for each stack. @offset:
 *  of the KtLink in a record; @head: by stack id, @n of them */
typedef struct KtList {
    KtPool *pool;
    uint32_t offset;
    uint32_t n;
    uint32_t *head;
    KtBudget *budget;
} KtList;

/**
 * struct KtBlocks - all blocks of a boot
 * @age: (KtLink, numbered as the KtEnds) freed blocks from the @oldest to the
 *       @newest; only if memory has a limit: blocks-internal.h
 * @young: bitmap of groups of records, @n_young words: blocks-internal.h
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
    GHashTable *gfp_ids;    /* gfp | tag << 32 -> index */
    uint64_t *gfps;
    uint32_t n_gfps;
    uint64_t last_gfp;
    uint16_t last_gfp_id;
} KtBlocks;

/** kt_blocks_init() - make an empty table. @budget: (borrowed, nullable) what
 *  memory is charged to. If it has a limit, the memory for a block's KtEnd is
 *  reserved with the block, so a free never fails. */
void kt_blocks_init(KtBlocks *b, KtBudget *budget);
void kt_blocks_deinit(KtBlocks *b);

/* Return a record; none of them moves. */
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

/** kt_blocks_new() - allocate a record, not set yet; return 0 if there is no
 *  memory. */
uint32_t kt_blocks_new(KtBlocks *b);
/** kt_blocks_fit() - return true if there is memory for a block of such sizes:
 *  sizes of 4 GiB and more need some. */
bool kt_blocks_fit(const KtBlocks *b, uint64_t requested, uint64_t actual);
/** kt_blocks_oldest() - return the block that was freed first; 0 if there is
 *  none or memory has no limit. A block with reported frees still to come is
 *  returned only if there are no others. */
uint32_t kt_blocks_oldest(KtBlocks *b);
/** kt_blocks_set() - make the record the block that @ev allocated. */
void kt_blocks_set(KtBlocks *b, uint32_t index, const KtEvent *ev);
/** kt_blocks_unset() - remove the record from all lists, and release its KtEnd
 *  and KtRcu: the block is no longer in the map. */
void kt_blocks_unset(KtBlocks *b, uint32_t index);
/** kt_blocks_release() - release a record that is not set. */
void kt_blocks_release(KtBlocks *b, uint32_t index);

/** kt_blocks_copy() - make record @to a block of @len bytes at @va, a part of
 *  @from: allocated by the same event, neither freed nor queued. */
void kt_blocks_copy(KtBlocks *b, uint32_t to, uint32_t from, uint64_t va,
                    uint64_t len);
/** kt_blocks_shrink() - keep only the first @len bytes of a block. */
void kt_blocks_shrink(KtBlocks *b, uint32_t index, uint64_t len);
/** kt_blocks_resize() - set the requested bytes (krealloc in place). */
void kt_blocks_resize(KtBlocks *b, uint32_t index, uint64_t requested);
/** kt_blocks_set_freed() - record that @ev freed the block. */
void kt_blocks_set_freed(KtBlocks *b, uint32_t index, const KtEvent *ev);
/** kt_blocks_set_removed() - record of a freed block that it was not freed: its
 *  memory was removed. */
void kt_blocks_set_removed(KtBlocks *b, uint32_t index);
/** kt_blocks_set_queued() - record that kfree_rcu() queued the block. Return
 *  false if there is no memory for the stack that did so. */
bool kt_blocks_set_queued(KtBlocks *b, uint32_t index, const KtEvent *ev);

/** kt_blocks_expect() - count a free of the block that was reported when it was
 *  queued, and is still to come. */
void kt_blocks_expect(KtBlocks *b, uint32_t index);
/** kt_blocks_expected() - return true if such a free is to come, and count it
 *  as seen. */
bool kt_blocks_expected(KtBlocks *b, uint32_t index);
/** kt_blocks_freed_so() - return true if a call with the stack and task of @ev
 *  freed the block. */
bool kt_blocks_freed_so(const KtBlocks *b, uint32_t index, const KtEvent *ev);

/** kt_blocks_removed() - return true if the block's memory was removed. */
static inline bool kt_blocks_removed(const KtBlocks *b, uint32_t index)
{
    const KtRec *r = kt_rec(b, index);

    return r->freed && r->end && kt_end(b, r->end)->removed;
}

/** kt_blocks_age() - set @old in all blocks: there is a gap. Return how many
 *  records were visited; see blocks-internal.h. */
uint64_t kt_blocks_age(KtBlocks *b);

/** kt_blocks_requested() - return the requested bytes. */
uint64_t kt_blocks_requested(const KtBlocks *b, uint32_t index);
/** kt_blocks_gfp() - return the gfp flags; 0: unknown. */
static inline uint32_t kt_blocks_gfp(const KtBlocks *b, uint32_t index)
{
    return b->gfps[kt_rec(b, index)->gfp];
}
/** kt_blocks_tag() - return the tag of the pointer that the allocator returned,
 *  as in KtEvent; 0: none, or unknown. */
static inline uint8_t kt_blocks_tag(const KtBlocks *b, uint32_t index)
{
    return b->gfps[kt_rec(b, index)->gfp] >> 32;
}
/** kt_blocks_len() - return the bytes in the map; may be 0. */
uint64_t kt_blocks_len(const KtBlocks *b, uint32_t index);
/** kt_blocks_last() - return the last address of the block; its start if it has
 *  no bytes, UINT64_MAX if it would wrap. */
uint64_t kt_blocks_last(const KtBlocks *b, uint32_t index);
/** kt_blocks_get() - read a block as queries return it. */
void kt_blocks_get(const KtBlocks *b, uint32_t index, KtBlock *out);

/* Prefetch in four steps what applying @ev will need; each step reads what the
 * step before prefetched: list heads of the stack; the block and the records
 * at these heads; neighbours in the block's lists; neighbours in the list of
 * the stack that freed it. */
void kt_blocks_touch_stack(const KtBlocks *b, const KtEvent *ev);
void kt_blocks_touch(const KtBlocks *b, const KtEvent *ev, uint32_t index);
void kt_blocks_touch_links(const KtBlocks *b, uint32_t index);
void kt_blocks_touch_end(const KtBlocks *b, uint32_t index);

/** kt_list_head() - return the first record of a stack's list, 0 if empty. */
static inline uint32_t kt_list_head(const KtList *l, uint32_t stack)
{
    return stack < l->n ? l->head[stack] : 0;
}

/** struct KtRenumber - new ids by old ids (borrowed arrays, as long as the
 *  greatest old id needs). 0 stays 0; two stacks never become one */
typedef struct KtRenumber {
    const uint32_t *stack;
    const uint32_t *task;
    const uint16_t *cache;
} KtRenumber;

/** kt_blocks_renumber() - replace the ids in all blocks. */
void kt_blocks_renumber(KtBlocks *b, const KtRenumber *to);

/** kt_blocks_bytes() - return the host memory of all records. */
uint64_t kt_blocks_bytes(const KtBlocks *b);

#endif /* KT_BLOCKS_H */
