/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Depot: sequences of 64-bit words kept once, named by a 32-bit id.
 *
 * Backtraces are words (frames) with a tag (why they ended); tasks are kept
 * by the same means. Ids are 1, 2, ... in order of first sight and stay for
 * the depot's life, as do the words. Any thread may call anything here: a
 * lookup of known words takes no lock, a new entry takes the depot's mutex.
 */
#ifndef KT_DEPOT_H
#define KT_DEPOT_H

#include <stdint.h>

#include "kalloc-tracer/base/budget.h"

typedef struct KtDepot KtDepot;

/** kt_depot_new() - (owned) an empty depot of at most @max entries. */
KtDepot *kt_depot_new(uint32_t max);
void kt_depot_free(KtDepot *d);
/** kt_depot_charge() - before the first entry: @budget (borrowed) is where
 *  memory is taken; when there is none the depot is full. */
void kt_depot_charge(KtDepot *d, KtBudget *budget, KtMemoryPart part);

/**
 * kt_depot_intern() - id of (@words, @tag), a new one at first sight
 * @n: words, at most UINT16_MAX
 * Returns: 0 when the depot is full.
 */
uint32_t kt_depot_intern(KtDepot *d, const uint64_t *words, unsigned n,
                         uint8_t tag);

/** kt_depot_get() - (borrowed for the depot's life) the words of @id, NULL
 *  for an id that was never handed out. */
const uint64_t *kt_depot_get(const KtDepot *d, uint32_t id, unsigned *n,
                             uint8_t *tag);

/** kt_depot_count() - entries; ids are 1 to this. */
uint32_t kt_depot_count(const KtDepot *d);
/** kt_depot_bytes() - host memory. */
uint64_t kt_depot_bytes(const KtDepot *d);

#endif /* KT_DEPOT_H */
