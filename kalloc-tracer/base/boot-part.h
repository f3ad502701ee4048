/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A boot part: what a feature keeps for the running boot of a tracer.
 *
 * The tracer does not know its features. Each feature describes what it keeps
 * by one constant row, and asks kt_tracer_part() for the object. The tracer
 * calls the row's functions when a boot ends and when it is freed, the checker
 * calls @check. Example:
 *
 *     static const KtBootPart part = {
 *         .name = "faults", .new = faults_new, .free = faults_free,
 *         .reset = faults_reset,
 *     };
 *     Faults *f = kt_tracer_part(t, &part);
 *
 * A part charges its memory to the budget that new() gets. So the limit is
 * compared when memory is requested, and the tracer need not ask for sizes.
 *
 * Parts are not in snapshots, except the names of merged caches: snapshot/
 * writes and reads these by their public header.
 */
#ifndef KT_BOOT_PART_H
#define KT_BOOT_PART_H

#include "kalloc-tracer/api/kt-check.h"
#include "kalloc-tracer/base/budget.h"

/** Why the content of a part is no longer valid. */
typedef enum KtBootEnd {
    KT_BOOT_RESET, /* the VM was reset: another boot begins */
    KT_BOOT_CLEAR, /* `ka clear`: the same boot goes on */
    KT_BOOT_LOAD,  /* a snapshot was loaded: another time of the VM's life */
} KtBootEnd;

/**
 * struct KtBootPart - the row of a part
 * @name: of the part, for messages
 * @new: create the part, empty. Any thread. Returns: (owned)
 * @free: (nullable) free the part, when the tracer is freed
 * @reset: (nullable) drop what is no longer valid. Any thread, with the
 *         tracer's lock
 * @rule, @check: (nullable) examine the part, see kt_tracer_add_check()
 */
typedef struct KtBootPart {
    const char *name;
    void *(*new)(KtBudget *budget);
    void (*free)(void *part);
    void (*reset)(void *part, KtBootEnd why);
    KtCheckRule rule;
    char *(*check)(void *part, KtCheckReport *report);
} KtBootPart;

#endif /* KT_BOOT_PART_H */
