/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded modules, and reports of what unloaded modules did not free.
 *
 * The vCPU thread that sees a load or unload describes the module
 * (kt_modules_describe()) and adds a module event (module-events.h). Whoever
 * applies events handles the module event at its place: all events before the
 * unload are applied, and no later ones. So the map shows what the module had
 * not freed at its end.
 *
 * Threads: kt_modules_describe() and kt_module_free() on any thread, all else
 * under the tracer's lock.
 */
#ifndef KT_MODULE_LEAKS_H
#define KT_MODULE_LEAKS_H

#include "kalloc-tracer/base/boot-part.h"
#include "kalloc-tracer/base/depot.h"
#include "kalloc-tracer/kt.h"
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/modules/module-events.h"

typedef struct KtModules KtModules;

/** kt_modules_part - the boot part whose object is a KtModules. `ka clear`
 *  drops the reports; the end of a boot also drops the loaded modules. */
extern const KtBootPart kt_modules_part;

/**
 * kt_modules_describe() - Describe a module that is loaded, or that will be
 * unloaded (@gone)
 * @k: has the module as loaded, by @module_va
 *
 * Any thread. Returns: (owned, nullable) the description; NULL if it is not a
 * module (BPF programs are not).
 */
KtModule *kt_modules_describe(const GsKernel *k, uint64_t module_va,
                              bool gone);
/** kt_module_free() - Free a description. Any thread; NULL does nothing. */
void kt_module_free(KtModule *mod);

/* The rest needs the tracer's lock. */

/**
 * struct KtModulesNow - the tracer at the moment of a module event
 * @us: time of the last event
 * @unseen: recording is off: blocks may have been freed unseen
 */
typedef struct KtModulesNow {
    uint64_t us;
    bool unseen;
    const KtModel *model;
    const KtDepot *stacks;
    KtCounters *counters;
} KtModulesNow;

/** kt_modules_apply() - Apply a module event: add the module, or remove it and
 *  make a report. @note is owned by @m from now on. */
void kt_modules_apply(KtModules *m, KtModule *note, KtModuleEventKind kind,
                      const KtModulesNow *now);

/** struct KtUnfreed - a block of a report: what identifies it in the map */
typedef struct KtUnfreed {
    uint64_t va;
    uint64_t us;
    KtStackId stack;
} KtUnfreed;

/**
 * struct KtReport - what one unloaded module did not free
 * @leaks: KtUnfreed, by address
 * @errors: uint64_t, ids of errors: frees by the module that were wrong
 */
typedef struct KtReport {
    KtModuleReport head;
    char name[64];
    GArray *leaks;
    GArray *errors;
} KtReport;

/** kt_modules_reports() - (borrowed) Return all KtReport*, oldest first. */
const GPtrArray *kt_modules_reports(const KtModules *m);
/** kt_modules_is_loaded() - Return true if a module of that name is loaded. */
bool kt_modules_is_loaded(const KtModules *m, const char *name);

#endif /* KT_MODULE_LEAKS_H */
