/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of the records with the same stack, for blocks.c only.
 *
 * KtList.head has the first record of each stack's list, by stack id; the
 * records are linked in both directions. Adding and removing is O(1). Stack 0
 * means "none": its blocks are in no list.
 */
#ifndef KT_BLOCKS_BY_STACK_H
#define KT_BLOCKS_BY_STACK_H

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

#endif /* KT_BLOCKS_BY_STACK_H */
