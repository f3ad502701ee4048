/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules that are loaded, and what those that were unloaded left behind.
 *
 * The vCPU thread that loads or unloads a module only notes it
 * (module-events.h). Whoever applies events takes the notes in their places:
 * what a module has not freed is looked for when all events before its end are
 * applied, and no later ones.
 */
#ifndef KT_MODULE_LEAKS_H
#define KT_MODULE_LEAKS_H

#include "kalloc-tracer/base/boot-part.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/modules/module-events.h"

typedef struct KtModules KtModules;

/** kt_modules_part - the KtModules of a tracer, as a boot part. `ka clear`
 *  drops reports, the end of a boot what is loaded, too. */
extern const KtBootPart kt_modules_part;

/**
 * kt_modules_describe() - a module is loaded, or about to be unloaded (@gone);
 * any thread
 * @k: knows it as @module_va, and as loaded
 *
 * Returns: (owned, nullable) what there is to note, not longer than @m; NULL
 *          for what is no module.
 */
KtModule *kt_modules_describe(KtModules *m, const GsKernel *k,
                              uint64_t module_va, bool gone);
/** kt_module_free() - any thread; NULL does nothing. */
void kt_module_free(KtModule *mod);

/* The rest under the tracer's lock. */

/** struct KtModulesNow - what is known when a note is taken
 *  @us: time of the last event; @unseen: nothing is recorded, blocks may
 *  have been freed */
typedef struct KtModulesNow {
    uint64_t us;
    bool unseen;
    const KtModel *model;
    const KtDepot *stacks;
    KtCounters *counters;
} KtModulesNow;

/** kt_modules_apply() - it is loaded, who knows since when where a VM's state
 *  came with it, or unloaded; @note is taken. */
void kt_modules_apply(KtModules *m, KtModule *note, KtModuleEventKind kind,
                      const KtModulesNow *now);

/** struct KtUnfreed - a block, to be known again */
typedef struct KtUnfreed {
    uint64_t va;
    uint64_t us;
    KtStackId stack;
} KtUnfreed;

/** struct KtReport - @leaks: KtUnfreed; @errors: ids of its bad frees,
 *  uint64_t; @names: see kt_query_module_names() */
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
