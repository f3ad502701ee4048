/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the model share: model.c has allocations, frees.c has
 * frees, accesses.c has accesses. With the tracer's lock held.
 */
#ifndef KT_MODEL_INTERNAL_H
#define KT_MODEL_INTERNAL_H

#include "kalloc-tracer/model/model.h"
#include <stdbool.h>

/** kt_model_count() - Count; kt_model_publish() adds it to the counters at the
 *  end of the batch. */
static inline void kt_model_count(KtModel *m, KtCounter c)
{
    m->count[c]++;
}

/** kt_model_hit() - Return the block that contains the address of the hint; 0:
 *  none. */
static inline uint32_t kt_model_hit(const KtModel *m, const KtMapHint *h)
{
    KtMapEntry floor, above;

    kt_map_around_hint(h, &floor, &above);
    return floor.val && kt_blocks_last(&m->blocks, floor.val) >= h->key ?
           floor.val : 0;
}

/** kt_model_block_at() - Return the block that contains @va in a map; 0:
 *  none. */
static inline uint32_t kt_model_block_at(const KtModel *m, KtMapId id,
                                         uint64_t va)
{
    KtMapEntry e = kt_map_floor(&m->map[id], va);

    return e.val && kt_blocks_last(&m->blocks, e.val) >= va ? e.val : 0;
}

/** kt_model_is_newer() - Were pages handed out after a block there, which is
 *  freed? Then it was of an earlier owner of the pages. */
static inline bool kt_model_is_newer(const KtModel *m, uint32_t pages,
                                     uint32_t index)
{
    const KtRec *r = kt_rec(&m->blocks, index);

    return r->freed && kt_rec(&m->blocks, pages)->alloc_us > r->alloc_us;
}

/** kt_model_last_of() - Return the last address of @len bytes at @va. */
static inline uint64_t kt_model_last_of(uint64_t va, uint64_t len)
{
    return len > 1 ? va + MIN(len - 1, UINT64_MAX - va) : va;
}

/** kt_model_add_error() - Add the error that @ev made. @index: the block before
 *  @ev, 0 for none. */
void kt_model_add_error(KtModel *m, KtErrorKind kind, const KtEvent *ev,
                        uint32_t index);

/** kt_model_new_block() - Add a block to the map, where none is. Return 0 if
 *  there is no memory. */
uint32_t kt_model_new_block(KtModel *m, const KtMapHint *h);
/** kt_model_not_kept() - Count a block that cannot be kept. Its free will be
 *  unknown, which must not be reported: so there is a gap. */
void kt_model_not_kept(KtModel *m);

/** kt_model_retire_freed() - Remove a freed block from a map; it becomes a past
 *  life. @e: its entry */
void kt_model_retire_freed(KtModel *m, KtMap *map, KtMapEntry e);

/** kt_model_free_range() - End all live blocks in [@va, @last]; @ev frees or
 *  removes them. A freed block becomes a past life if @ev removes its memory, a
 *  removed one if @ev frees it. Return true if there was such a block. */
bool kt_model_free_range(KtModel *m, KtMap *map, uint64_t va, uint64_t last,
                         const KtEvent *ev);

/* Apply a KT_EV_FREE, one of pages, one with KT_EVF_INSIDE, or a
 * KT_EV_RCU_QUEUE. @h: the map that it concerns, and its address. */
void kt_model_free_block(KtModel *m, const KtEvent *ev, const KtMapHint *h);
void kt_model_free_pages(KtModel *m, const KtEvent *ev, const KtMapHint *h);
void kt_model_free_inside(KtModel *m, const KtEvent *ev, const KtMapHint *h);
void kt_model_queue(KtModel *m, const KtEvent *ev, const KtMapHint *h);
/** kt_model_destroy() - Apply a KT_EV_DESTROY. */
void kt_model_destroy(KtModel *m, const KtEvent *ev);
/** kt_model_access() - Apply a KT_EV_ACCESS. */
void kt_model_access(KtModel *m, const KtEvent *ev);
/** kt_model_free_nothing() - Apply a KT_EV_FREE or KT_EV_RCU_QUEUE of what is
 *  no memory, see kt_is_memory(). That is an error, whatever was recorded. If
 *  it was queued, the free that follows is the same error. */
void kt_model_free_nothing(KtModel *m, const KtEvent *ev);

/* ---- eviction ------------------------------------------------------------ */
/*
 * What a model evicts when the memory limit is reached: past lives first, the
 * oldest before the others; then freed blocks, in the order of their frees. A
 * live block is never evicted: if nothing else is left, new blocks are not
 * kept.
 *
 * No lock: the tracer's lock is held.
 */

typedef struct KtModel KtModel;

/** kt_evict_for_block() - make room for a block and its place in a map. Return
 *  false if there is nothing left to evict. */
bool kt_evict_for_block(KtModel *m);

/** kt_evict_for_others() - evict past lives until other threads have room for
 *  backtraces, tasks and symbols, which cannot evict anything themselves. Call
 *  it after each batch of events. */
void kt_evict_for_others(KtModel *m);

#endif /* KT_MODEL_INTERNAL_H */
