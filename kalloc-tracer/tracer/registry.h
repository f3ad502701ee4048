/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registry: the boot parts and checks that other rooms registered with a
 * tracer. So the tracer calls rooms that come after it, without including them.
 *
 * Threads: anyone may add and find entries at any time. Entries never move.
 */
#ifndef KT_REGISTRY_H
#define KT_REGISTRY_H

#include <pthread.h>

#include "kalloc-tracer/base/boot-part.h"

#define KT_PARTS_MAX    16
#define KT_CHECKS_MAX   16

/**
 * KtCheckExtra - Examine something that is not in the model
 * @report: add what was examined to its numbers
 *
 * The tracer's lock is held. Returns: (owned, nullable) where something is
 * wrong.
 */
typedef char *KtCheckExtra(void *opaque, KtCheckReport *report);

/** struct KtRegisteredPart - a row, and the object that its new() returned */
typedef struct KtRegisteredPart {
    const KtBootPart *row;
    void *part;
} KtRegisteredPart;

/** struct KtRegisteredCheck - a function, and the rule that it examines */
typedef struct KtRegisteredCheck {
    KtCheckRule rule;
    KtCheckExtra *fn;
    void *opaque;
} KtRegisteredCheck;

/**
 * struct KtRegistry - parts and checks of one tracer
 * @lock: protects adding
 * @n_parts, @n_checks: (atomic) entries that readers may use; entries never
 *                      move and are never removed
 * @epoch: (atomic) grows with each reset and load
 */
typedef struct KtRegistry {
    pthread_mutex_t lock;
    unsigned n_parts, n_checks;
    KtRegisteredPart part[KT_PARTS_MAX];
    KtRegisteredCheck check[KT_CHECKS_MAX];
    uint64_t epoch;
} KtRegistry;

void kt_registry_init(KtRegistry *r);
/** kt_registry_deinit() - Free all parts, the last one first. */
void kt_registry_deinit(KtRegistry *r);

/** kt_registry_part() - Return the part of @row; create it if there is none.
 *  Any thread. Returns: (borrowed until kt_registry_deinit()). */
void *kt_registry_part(KtRegistry *r, const KtBootPart *row, KtBudget *budget);
/** kt_registry_reset() - Reset all parts. The tracer's lock is held. */
void kt_registry_reset(KtRegistry *r, KtBootEnd why);
/** kt_registry_add_check() - Add a check. Any thread. */
void kt_registry_add_check(KtRegistry *r, const KtRegisteredCheck *check);
/** kt_registry_check() - Return the check number @i, NULL after the last. */
const KtRegisteredCheck *kt_registry_check(const KtRegistry *r, unsigned i);

#endif /* KT_REGISTRY_H */
