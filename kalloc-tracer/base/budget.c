/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Budget: see budget.h. The total never passes its limit, with any number of
 * threads: it grows by compare-and-swap. The limit of a part may be passed a
 * little, if two threads charge the same part at the same time.
 */
#include "kalloc-tracer/base/budget.h"

#define SIXTEENTHS 16
#define KEEP_FREE(max) ((max) / 8)

struct KtBudget {
    uint64_t max;
    uint64_t total;                     /* atomic */
    uint64_t used[KT_MEM__COUNT];       /* atomic */
    uint64_t cap[KT_MEM__COUNT];
    uint64_t lent;                      /* atomic, to all of them */
    uint64_t lent_to[KT_MEM__COUNT];    /* atomic */
};

static const struct {
    unsigned share;
    bool last;
} parts[KT_MEM__COUNT] = {
#define KT_MEMORY_PART(id, name, share, last, help) \
    [KT_MEM_##id] = { share, last },
#include "kalloc-tracer/api/memory-parts.def"
};

KtBudget *kt_budget_new(uint64_t max)
{
    KtBudget *b = g_new0(KtBudget, 1);

    b->max = max ? max : UINT64_MAX;
    for (unsigned i = 0; i < KT_MEM__COUNT; i++) {
        b->cap[i] = max ? max / SIXTEENTHS * parts[i].share : UINT64_MAX;
    }
    return b;
}

void kt_budget_free(KtBudget *b)
{
    g_free(b);
}

bool kt_budget_bounded(const KtBudget *b)
{
    return b && b->max != UINT64_MAX;
}

uint64_t kt_budget_max(const KtBudget *b)
{
    return b->max;
}

void kt_budget_cap(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    b->cap[part] = MIN(b->cap[part], bytes);
}

static uint64_t with_loan(uint64_t limit, const uint64_t *lent)
{
    uint64_t more = __atomic_load_n(lent, __ATOMIC_RELAXED);

    return limit + MIN(more, UINT64_MAX - limit);
}

static uint64_t limit_of(const KtBudget *b, KtMemoryPart part)
{
    return with_loan(parts[part].last && b->max != UINT64_MAX ?
                     b->max - KEEP_FREE(b->max) : b->max, &b->lent);
}

static uint64_t cap_of(const KtBudget *b, KtMemoryPart part)
{
    return with_loan(b->cap[part], &b->lent_to[part]);
}

void kt_budget_lend(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    __atomic_fetch_add(&b->lent, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&b->lent_to[part], bytes, __ATOMIC_RELAXED);
}

void kt_budget_unlend(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    __atomic_fetch_sub(&b->lent_to[part], bytes, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&b->lent, bytes, __ATOMIC_RELAXED);
}

uint64_t kt_budget_used(const KtBudget *b, KtMemoryPart part)
{
    return __atomic_load_n(&b->used[part], __ATOMIC_RELAXED);
}

uint64_t kt_budget_total(const KtBudget *b)
{
    return __atomic_load_n(&b->total, __ATOMIC_RELAXED);
}

static bool over(uint64_t have, uint64_t bytes, uint64_t limit)
{
    return have > limit || bytes > limit - have;
}

bool kt_budget_has(const KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    return !b || (!over(kt_budget_used(b, part), bytes, cap_of(b, part)) &&
                  !over(kt_budget_total(b), bytes, limit_of(b, part)));
}

bool kt_budget_take(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    uint64_t limit, total;

    if (!b) {
        return true;
    }
    if (over(kt_budget_used(b, part), bytes, cap_of(b, part))) {
        return false;
    }
    limit = limit_of(b, part);
    total = kt_budget_total(b);
    do {
        if (over(total, bytes, limit)) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(&b->total, &total, total + bytes,
                                          true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    __atomic_fetch_add(&b->used[part], bytes, __ATOMIC_RELAXED);
    return true;
}

void kt_budget_charge(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    if (b) {
        __atomic_fetch_add(&b->total, bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&b->used[part], bytes, __ATOMIC_RELAXED);
    }
}

void kt_budget_release(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    if (b) {
        __atomic_fetch_sub(&b->used[part], bytes, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&b->total, bytes, __ATOMIC_RELAXED);
    }
}

void kt_budget_set(KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    uint64_t before = __atomic_exchange_n(&b->used[part], bytes,
                                          __ATOMIC_RELAXED);

    __atomic_fetch_add(&b->total, bytes - before, __ATOMIC_RELAXED);
}

static uint64_t up_to(uint64_t have, uint64_t limit)
{
    return have < limit ? limit - have : 0;
}

uint64_t kt_budget_room(const KtBudget *b, KtMemoryPart part)
{
    return MIN(up_to(kt_budget_used(b, part), cap_of(b, part)),
               up_to(kt_budget_total(b), limit_of(b, part)));
}

uint64_t kt_budget_lack(const KtBudget *b, KtMemoryPart part, uint64_t bytes)
{
    uint64_t limit, total;

    if (!kt_budget_bounded(b) ||
        over(kt_budget_used(b, part), bytes, cap_of(b, part))) {
        return 0;
    }
    limit = limit_of(b, part);
    total = kt_budget_total(b);
    return over(total, bytes, limit) ? total + bytes - limit : 0;
}
