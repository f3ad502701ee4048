/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Budget: the host memory that a tracer uses, by part, and its limit (mem=).
 *
 * Whoever needs memory charges it here first, and does without if the limit is
 * reached; whoever frees memory releases it here. Memory is charged in pieces
 * of many kilobytes, so a single event does not pay for it. Without a limit
 * everything is counted as well, for `ka stat`.
 *
 * Two limits apply: that of the part (its share in memory-parts.def), and that
 * of everything. Parts marked "last" there leave an eighth of the whole limit
 * free, so that backtraces and symbols still find room.
 *
 * Any thread, no lock, nothing waits.
 */
#ifndef KT_BUDGET_H
#define KT_BUDGET_H

#include "kalloc-tracer/api/kt-types.h"

typedef struct KtBudget KtBudget;

/* The least limit: a copy of the kernel's image must fit while it is read. And
 * the memory of a vCPU. */
#define KT_BUDGET_MIN   ((uint64_t)64 << 20)
#define KT_BUDGET_VCPU  ((uint64_t)256 << 10)

/** kt_budget_new() - make a budget (owned). @max: bytes of all parts; 0: no
 *  limit. */
KtBudget *kt_budget_new(uint64_t max);
void kt_budget_free(KtBudget *b);

/** kt_budget_bounded() - return true if there is a limit. False for NULL. */
bool kt_budget_bounded(const KtBudget *b);
/** kt_budget_max() - return the limit; UINT64_MAX: none. */
uint64_t kt_budget_max(const KtBudget *b);
/** kt_budget_cap() - lower the limit of @part to @bytes. */
void kt_budget_cap(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_take() - charge @bytes to @part if the limits allow it. Return
 *  false, with nothing charged, if not. @b may be NULL, here and in the next
 *  two: then nothing is counted. */
bool kt_budget_take(KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_charge() - charge @bytes to @part, also above the limits: for
 *  memory without which the tracer cannot work. */
void kt_budget_charge(KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_release() - count @bytes of @part as freed. */
void kt_budget_release(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/**
 * kt_budget_lend() - raise the limits by @bytes until kt_budget_unlend()
 *
 * For a copy that replaces data of @part: both exist for a moment, and the old
 * one is about to be freed.
 */
void kt_budget_lend(KtBudget *b, KtMemoryPart part, uint64_t bytes);
void kt_budget_unlend(KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_set() - set what @part uses. Only for a part with one owner, which
 *  does not use kt_budget_take(). */
void kt_budget_set(KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_room() - return how many bytes kt_budget_take() would allow. */
uint64_t kt_budget_room(const KtBudget *b, KtMemoryPart part);
/** kt_budget_has() - return true if kt_budget_take() would succeed. */
bool kt_budget_has(const KtBudget *b, KtMemoryPart part, uint64_t bytes);
/** kt_budget_lack() - return how many bytes must be freed, in any part, before
 *  kt_budget_take() of @bytes can succeed; 0: freeing would not help, or is not
 *  needed. */
uint64_t kt_budget_lack(const KtBudget *b, KtMemoryPart part, uint64_t bytes);

/** kt_budget_used() - return the bytes of @part. */
uint64_t kt_budget_used(const KtBudget *b, KtMemoryPart part);
/** kt_budget_total() - return the bytes of all parts. */
uint64_t kt_budget_total(const KtBudget *b);

#endif /* KT_BUDGET_H */
