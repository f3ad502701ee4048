/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Examine the free records of pools, and the lists of blocks by stack. See
 * exam.h.
 */
#include "kalloc-tracer/check/exam.h"

#include <inttypes.h>

/* One kind of list by stack: @stack reads the stack id of a record, @expected
 * is how many records must be in all lists together. */
typedef struct Index {
    const KtList *list;
    const KtIndexSet *seen;
    uint32_t (*stack)(const void *record);
    uint64_t expected;
    const char *name;
} Index;

static uint32_t stack_of_rec(const void *record)
{
    return ((const KtRec *)record)->stack;
}

static uint32_t stack_of_end(const void *record)
{
    return ((const KtEnd *)record)->stack;
}

static uint32_t stack_of_rcu(const void *record)
{
    return ((const KtRcu *)record)->stack;
}

static const KtLink *link_at(const KtList *l, uint32_t index)
{
    return (const KtLink *)((char *)kt_pool_at(l->pool, index) + l->offset);
}

static bool in_pool(const KtPool *p, uint32_t index)
{
    return index && index < p->used;
}

/* ---- pools -------------------------------------------------------------- */

/* Collect the pool's free list in @free. Each record must be there once, and
 * must not be in use. Stop at the first that is wrong. */
static void walk_free(KtExam *x, const KtPool *p, const KtIndexSet *seen,
                      KtIndexSet *free, KtCheckRule rule, const char *what)
{
    uint32_t i = p->free;

    while (i) {
        if (!in_pool(p, i) || !kt_index_set_add(free, i) ||
            kt_index_set_has(seen, i)) {
            kt_exam_found(x, rule, "%s%s: record %u is free and %s", x->boot,
                          what, i, !in_pool(p, i) ? "was never made" :
                          kt_index_set_has(seen, i) ? "in use" :
                                                 "twice so");
            return;
        }
        i = *(uint32_t *)kt_pool_at(p, i);
    }
    if (free->n != p->n_free) {
        kt_exam_found(x, rule, "%s%s: %" PRIu64 " are free, counted are %u",
                      x->boot, what, free->n, p->n_free);
    }
}

void kt_exam_free_list(KtExam *x, const KtPool *p, const KtIndexSet *seen,
                       KtCheckRule rule, const char *what)
{
    KtIndexSet free;

    kt_index_set_init(&free, p->used);
    walk_free(x, p, seen, &free, rule, what);
    for (uint64_t i = 1; i < p->used && seen->n + free.n + 1 != p->used; i++) {
        if (!kt_index_set_has(seen, i) && !kt_index_set_has(&free, i)) {
            kt_exam_found(x, rule, "%s%s: record %" PRIu64 " is neither in "
                          "use nor free, %" PRIu64 " are", x->boot, what, i,
                          p->used - 1 - seen->n - free.n);
            break;
        }
    }
    kt_index_set_deinit(&free);
}

/* ---- neighbours --------------------------------------------------------- */

static void check_link(KtExam *x, const KtList *l,
                       uint32_t (*stack_of)(const void *record),
                       uint32_t index, const char *name)
{
    const KtLink *link = link_at(l, index);
    uint32_t stack = stack_of(kt_pool_at(l->pool, index));
    bool good;

    if (!stack) {
        return;
    }
    good = link->prev ? in_pool(l->pool, link->prev) &&
                        link_at(l, link->prev)->next == index &&
                        stack_of(kt_pool_at(l->pool, link->prev)) == stack :
                        kt_list_head(l, stack) == index;
    good = good && (!link->next ||
                    (in_pool(l->pool, link->next) &&
                     link_at(l, link->next)->prev == index));
    if (!good) {
        kt_exam_found(x, KT_CHECK_INDEX_LINK, "%srecord %u in the list %s of "
                      "stack %u: before it %u, after it %u, first %u", x->boot,
                      index, name, stack, link->prev, link->next,
                      kt_list_head(l, stack));
    }
}

void kt_exam_links(KtExam *x, uint32_t index)
{
    const KtBlocks *b = &x->m->blocks;
    const KtRec *r = kt_rec(b, index);

    check_link(x, &b->by_alloc, stack_of_rec, index, "of allocations");
    if (!in_pool(&b->end, r->end)) {
        return;
    }
    if (r->freed) {
        check_link(x, &b->by_free, stack_of_end, r->end, "of frees");
    }
    if (in_pool(&b->rcu, kt_end(b, r->end)->rcu)) {
        check_link(x, &b->by_rcu, stack_of_rcu, kt_end(b, r->end)->rcu,
                   "of kfree_rcu()");
    }
}

/* ---- lists -------------------------------------------------------------- */

/* Returns: how many records are in the list of @stack. A circle ends at one
 * more than there can be. */
static uint64_t walk_list(KtExam *x, const Index *index, uint32_t stack)
{
    const KtList *l = index->list;
    uint64_t n = 0;

    for (uint32_t i = kt_list_head(l, stack), prev = 0; i; n++) {
        const KtLink *link;

        if (!kt_index_set_has(index->seen, i) || n > index->expected ||
            index->stack(kt_pool_at(l->pool, i)) != stack ||
            link_at(l, i)->prev != prev) {
            kt_exam_found(x, KT_CHECK_INDEX_LIST, "%srecord %u, number %"
                          PRIu64 " of stack %u's list %s", x->boot, i, n + 1,
                          stack, index->name);
            return n;
        }
        link = link_at(l, i);
        prev = i;
        i = link->next;
    }
    return n;
}

static void check_lists(KtExam *x, const Index *index)
{
    uint64_t n = 0;

    for (uint32_t stack = 1; stack < index->list->n; stack++) {
        n += walk_list(x, index, stack);
        kt_exam_step(x, 1);
    }
    if (n != index->expected) {
        kt_exam_found(x, KT_CHECK_INDEX_COUNT, "%s%" PRIu64 " blocks in the "
                      "lists %s, of %" PRIu64, x->boot, n, index->name,
                      index->expected);
    }
    x->report.index += n;
}

void kt_exam_lists(KtExam *x)
{
    const KtBlocks *b = &x->m->blocks;
    const Index index[] = {
        { &b->by_alloc, &x->recs, stack_of_rec, x->in_alloc,
          "of allocations" },
        { &b->by_free, &x->ends, stack_of_end, x->in_free, "of frees" },
        { &b->by_rcu, &x->rcus, stack_of_rcu, x->in_rcu, "of kfree_rcu()" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(index); i++) {
        check_lists(x, &index[i]);
    }
}
