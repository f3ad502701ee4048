/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of the records with the same stack, for blocks.c only.
 *
 * KtList.head has the first record of each stack's list, by stack id; the
 * records are linked in both directions. Adding and removing is O(1). Stack 0
 * means "none": its blocks are in no list.
 */
#ifndef KT_BLOCKS_INTERNAL_H
#define KT_BLOCKS_INTERNAL_H

#include "kalloc-tracer/model/blocks.h"

#include <string.h>

static inline KtLink *link_at(const KtList *l, uint32_t index)
{
    return (KtLink *)((char *)kt_pool_at(l->pool, index) + l->offset);
}

static inline void list_init(KtList *l, KtPool *pool, size_t offset,
                             KtBudget *budget)
{
    *l = (KtList) { .pool = pool, .offset = offset, .budget = budget };
}

static inline void list_deinit(KtList *l)
{
    kt_budget_release(l->budget, KT_MEM_STACKS, l->n * sizeof(*l->head));
    g_free(l->head);
}

static inline void list_grow(KtList *l, uint32_t stack)
{
    uint32_t n = MAX(1024, l->n);

    while (n <= stack) {
        n *= 2;
    }
    kt_budget_charge(l->budget, KT_MEM_STACKS, (n - l->n) * sizeof(*l->head));
    l->head = g_renew(uint32_t, l->head, n);
    memset(l->head + l->n, 0, (n - l->n) * sizeof(*l->head));
    l->n = n;
}

static inline void list_add(KtList *l, uint32_t stack, uint32_t index)
{
    KtLink *link = link_at(l, index);

    *link = (KtLink) { 0 };
    if (!stack) {
        return;
    }
    if (stack >= l->n) {
        list_grow(l, stack);
    }
    link->next = l->head[stack];
    if (link->next) {
        link_at(l, link->next)->prev = index;
    }
    l->head[stack] = index;
}

static inline void list_remove(KtList *l, uint32_t stack, uint32_t index)
{
    const KtLink *link = link_at(l, index);

    if (!stack) {
        return;
    }
    if (link->prev) {
        link_at(l, link->prev)->next = link->next;
    } else {
        l->head[stack] = link->next;
    }
    if (link->next) {
        link_at(l, link->next)->prev = link->prev;
    }
}

/* ---- by age -------------------------------------------------------------- */
/*
 * The order in which blocks were freed, for blocks.c only.
 *
 * Evicting needs the block that was freed first. The order is a list through
 * the pool KtBlocks.age, whose records have the numbers of the KtEnds. Without
 * a memory limit nothing is evicted, and there is no list.
 */

static inline KtLink *age_at(const KtBlocks *b, uint32_t end)
{
    return kt_pool_at(&b->age, end);
}

/* Add the block of @end as the newest. */
static inline void age_add(KtBlocks *b, uint32_t end)
{
    if (!b->bounded) {
        return;
    }
    while (b->age.used <= end) {
        kt_pool_alloc(&b->age);     /* reserved */
    }
    *age_at(b, end) = (KtLink) { .prev = b->newest };
    if (b->newest) {
        age_at(b, b->newest)->next = end;
    } else {
        b->oldest = end;
    }
    b->newest = end;
}

static inline void age_remove(KtBlocks *b, uint32_t end)
{
    const KtLink *link;

    if (!b->bounded) {
        return;
    }
    link = age_at(b, end);
    if (link->prev) {
        age_at(b, link->prev)->next = link->next;
    } else {
        b->oldest = link->next;
    }
    if (link->next) {
        age_at(b, link->next)->prev = link->prev;
    } else {
        b->newest = link->prev;
    }
}

/* ---- since the last gap -------------------------------------------------- */
/*
 * Blocks that were allocated after the last gap, for blocks.c only.
 *
 * A gap sets KtRec.old in all blocks. A dirty bitmap says which can still be
 * new: one bit per 64 records, set when a record of the group is allocated.
 * A gap visits only the groups whose bit is set, and clears the bits. Each
 * visit is paid for by an earlier allocation, so gaps cost O(1) amortised per
 * event, however often a guest has them.
 */

#define GROUP_SHIFT 6
#define WORD_SHIFT  (GROUP_SHIFT + 6)       /* records of a word's groups */

/* Make room for the bit of record @index. */
static inline void young_reserve(KtBlocks *b, uint32_t index)
{
    uint32_t n = MAX(64, b->n_young);

    if (G_LIKELY(index >> WORD_SHIFT < b->n_young)) {
        return;
    }
    while (n <= index >> WORD_SHIFT) {
        n *= 2;
    }
    kt_budget_charge(b->budget, KT_MEM_BLOCKS,
                     (uint64_t)(n - b->n_young) * sizeof(*b->young));
    b->young = g_renew(uint64_t, b->young, n);
    memset(b->young + b->n_young, 0, (n - b->n_young) * sizeof(*b->young));
    b->n_young = n;
}

static inline void young_deinit(KtBlocks *b)
{
    kt_budget_release(b->budget, KT_MEM_BLOCKS,
                      (uint64_t)b->n_young * sizeof(*b->young));
    g_free(b->young);
}

static inline void young_add(KtBlocks *b, uint32_t index)
{
    b->young[index >> WORD_SHIFT] |= 1ull << (index >> GROUP_SHIFT & 63);
}

/* Set @old in all records of a group, also released ones: kt_blocks_set()
 * clears it. Return their number. */
static inline uint64_t age_group(KtBlocks *b, uint64_t group)
{
    uint64_t first = MAX(group << GROUP_SHIFT, 1);
    uint64_t end = MIN((group + 1) << GROUP_SHIFT, b->rec.used);

    for (uint64_t i = first; i < end; i++) {
        kt_rec(b, i)->old = 1;
    }
    return end - first;
}

#endif /* KT_BLOCKS_INTERNAL_H */
