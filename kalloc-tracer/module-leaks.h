/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules that are loaded, and what those that were unloaded left behind.
 *
 * The vCPU thread that loads or unloads a module only notes it, with the place
 * in the queue of events that it comes behind. Whoever applies events takes
 * the notes in their places: what a module has not freed is looked for when
 * all events before its end are applied, and no later ones.
 */
#ifndef KT_MODULE_LEAKS_H
#define KT_MODULE_LEAKS_H

#include "budget.h"
#include "depot.h"
#include "kt.h"
#include "model.h"

typedef struct KtModules KtModules;

/** kt_modules_new() - (owned) @budget: (borrowed) */
KtModules *kt_modules_new(KtBudget *budget);
void kt_modules_free(KtModules *m);

/**
 * kt_modules_note() - a module is loaded, or about to be unloaded; any thread
 * @after: the place in the queue of the last event before
 * @k: knows it as @module_va, and as loaded; what is no module is not noted
 */
void kt_modules_note(KtModules *m, uint64_t after, const GsKernel *k,
                     uint64_t module_va, bool gone);

/** kt_modules_next() - the place that the next note comes behind, UINT64_MAX
 *  without one; any thread. */
GS_HOT uint64_t kt_modules_next(const KtModules *m);

/* The rest under the tracer's lock. */

/** kt_modules_run() - take the notes that come behind @done or earlier.
 *  @now_us: time of the last event */
void kt_modules_run(KtModules *m, uint64_t done, uint64_t now_us,
                    const KtModel *model, const KtDepot *stacks,
                    KtCounters *counters);

/** kt_modules_forget() - the reports; with @all what is loaded, too. */
void kt_modules_forget(KtModules *m, bool all);

/** struct KtLeft - a block, to be known again */
typedef struct KtLeft {
    uint64_t va;
    uint64_t us;
    KtStackId stack;
} KtLeft;

/** struct KtReport - @leaks: KtLeft; @errors: ids of its bad frees, uint64_t;
 *  @names: see kt_query_module_names() */
typedef struct KtReport {
    KtModuleReport head;
    char name[64];
    GArray *leaks;
    GArray *errors;
    GHashTable *names;
} KtReport;

/** kt_modules_reports() - (borrowed) KtReport*, oldest first. */
const GPtrArray *kt_modules_reports(const KtModules *m);
/** kt_modules_is_loaded() - is there one of that name? */
bool kt_modules_is_loaded(const KtModules *m, const char *name);

#endif /* KT_MODULE_LEAKS_H */
