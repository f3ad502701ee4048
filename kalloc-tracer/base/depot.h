/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Depot: sequences of 64-bit words, each stored once and named by a 32-bit id.
 *
 * A backtrace is its frames as words, and why the walk ended and when it was as
 * tag (stack-tag.h); a task is stored the same way. Ids are 1, 2, ... in the
 * order of first use. Ids and words stay until the depot is freed.
 *
 * Any thread may call anything here: words that are known are found without a
 * lock; new ones are added under the depot's mutex.
 */
#ifndef KT_DEPOT_H
#define KT_DEPOT_H

#include <stdint.h>

#include "kalloc-tracer/base/budget.h"

typedef struct KtDepot KtDepot;

#define KT_DEPOT_TAG_BITS 48

/** kt_depot_new() - make an empty depot (owned) of at most @max entries. */
KtDepot *kt_depot_new(uint32_t max);
void kt_depot_free(KtDepot *d);
/** kt_depot_charge() - charge memory to @budget (borrowed). If the limit is
 *  reached the depot is full. Call it before the first entry. */
void kt_depot_charge(KtDepot *d, KtBudget *budget, KtMemoryPart part);

/**
 * kt_depot_intern() - get the id of @words with @tag; add them if they are new
 * @n: words, at most UINT16_MAX
 * @tag: at most KT_DEPOT_TAG_BITS bits
 *
 * Returns: 0 if the depot is full.
 */
uint32_t kt_depot_intern(KtDepot *d, const uint64_t *words, unsigned n,
                         uint64_t tag);

/** kt_depot_get() - return the words of @id, borrowed as long as the depot
 *  lives; NULL if there is no such id. */
const uint64_t *kt_depot_get(const KtDepot *d, uint32_t id, unsigned *n,
                             uint64_t *tag);

/** kt_depot_count() - return the number of entries: the greatest id. */
uint32_t kt_depot_count(const KtDepot *d);
/** kt_depot_bytes() - return the host memory. */
uint64_t kt_depot_bytes(const KtDepot *d);

#endif /* KT_DEPOT_H */
