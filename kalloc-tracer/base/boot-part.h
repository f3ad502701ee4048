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
 * A part charges its memory to the budget that it is given: so the limit holds
 * when memory is requested, and nobody has to ask for sizes afterwards.
 */
#ifndef KT_BOOT_PART_H
#define KT_BOOT_PART_H

#include "kalloc-tracer/api/kt-check.h"
#include "kalloc-tracer/base/budget.h"

/** Why what a part keeps is no longer valid. */
typedef enum KtBootEnd {
    KT_BOOT_RESET, /* the VM was reset: another boot begins */
    KT_BOOT_CLEAR, /* `ka clear`: the same boot goes on */
    KT_BOOT_LOAD,  /* a snapshot was loaded: another time of the VM's life */
} KtBootEnd;

/**
 * struct KtBootPart - the row of a part; functions may be NULL, but not @new
 * @name: for messages
 * @new: make the part, empty; any thread. Returns: (owned)
 * @free: the tracer is freed
 * @reset: the boot ended; any thread, with the tracer's lock
 * @rule, @check: examine the part, as kt_tracer_add_check() describes
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
