/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Budget: the host memory of a tracer, by part, and its bound (mem=).
 *
 * Whoever lets something grow takes the bytes here first, and does without
 * where there are none; what is given back to the system is given back here.
 * Memory is taken in pieces of many kilobytes, so no event pays for it.
 * Without a bound all is counted just the same.
 *
 * Any thread may call anything; nothing waits.
 */
#ifndef KT_BUDGET_H
#define KT_BUDGET_H

#include "kalloc-tracer/api/kt-types.h"

typedef struct KtBudget KtBudget;

/** KT_BUDGET_MIN - the least bound: a kernel's image is held while it is
 *  read; KT_BUDGET_VCPU - what a vCPU takes. */
#define KT_BUDGET_MIN   ((uint64_t)64 << 20)
#define KT_BUDGET_VCPU  ((uint64_t)256 << 10)

/** kt_budget_new() - (owned) @max: bytes of all parts, 0 for no bound. */
KtBudget *kt_budget_new(uint64_t max);
void kt_budget_free(KtBudget *b);

/** kt_budget_bounded() - is there a bound? False for NULL. */
bool kt_budget_bounded(const KtBudget *b);
/** kt_budget_max() - the bound, UINT64_MAX for none. */
uint64_t kt_budget_max(const KtBudget *b);
/** kt_budget_cap() - @part gets so many bytes at most from now on. */
void kt_budget_cap(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_take() - @bytes more for @part; false: there are none, nothing
 *  was taken. @b may be NULL in all three: then nothing is counted. */
bool kt_budget_take(KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_charge() - likewise for what cannot be done without: always. */
void kt_budget_charge(KtBudget *b, KtMemoryPart part, uint64_t bytes);
void kt_budget_release(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_lend() - let @bytes more be taken, until kt_budget_unlend(): of
 *  what @part is about to give back, of whose cap it may pass so many. Who
 *  lends takes none for himself. */
void kt_budget_lend(KtBudget *b, KtMemoryPart part, uint64_t bytes);
void kt_budget_unlend(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_set() - @part holds so many now; for a part of one owner. */
void kt_budget_set(KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_room() - how many more kt_budget_take() would give. */
uint64_t kt_budget_room(const KtBudget *b, KtMemoryPart part);
/** kt_budget_has() - would kt_budget_take() succeed? */
bool kt_budget_has(const KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_lack() - what others must give back before kt_budget_take() of
 *  so many can succeed; 0: that is not what it lacks. */
uint64_t kt_budget_lack(const KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_used() - bytes of @part; kt_budget_total() - of all. */
uint64_t kt_budget_used(const KtBudget *b, KtMemoryPart part);
uint64_t kt_budget_total(const KtBudget *b);

#endif /* KT_BUDGET_H */
