/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What modules left behind when they were unloaded. */
#ifndef KT_MODULES_API_H
#define KT_MODULES_API_H

#include "kalloc-tracer/api/kt-query.h"

/**
 * struct KtModuleReport - made when a module was unloaded
 * @id: 1, 2, ... in that order
 * @name: (borrowed until kt_query_end())
 * @loaded_us: when it was loaded; 0: before that could be seen
 * @us: when it was unloaded
 * @found: blocks with a frame of it in their allocation stack that were not
 *         freed then, nor queued to be by kfree_rcu()
 * @not_kept: of them, those that there was no memory to list
 * @unsure: blocks that may have been freed while nothing was recorded: not
 *          among those found
 * @bad_frees: frees by it of what was not allocated: errors of their own
 */
typedef struct KtModuleReport {
    uint64_t id;
    const char *name;
    uint64_t loaded_us;
    uint64_t us;
    uint64_t found;
    uint64_t not_kept;
    uint64_t unsure;
    uint64_t bad_frees;
} KtModuleReport;

typedef bool (*KtModuleFn)(const KtModuleReport *r, void *opaque);

/** kt_query_modules() - every report, oldest first; false from @fn stops. */
void kt_query_modules(KtTracer *t, KtModuleFn fn, void *opaque);
/** kt_query_module_leaks() - blocks of the report @id that are not freed now,
 *  either, in the order of their addresses then. */
void kt_query_module_leaks(KtTracer *t, uint64_t id, KtBlockFn fn,
                           void *opaque);
/** kt_query_module_names() - (owned reference, immutable) names of program
 *  counters (uint64_t) of it in its report's stacks, as they were when it was
 *  loaded: "function+0xoff[module]", NULL where it has none; NULL: there is no
 *  such report. */
GHashTable *kt_query_module_names(KtTracer *t, uint64_t id);
/** kt_query_module_frees() - its bad frees, oldest first, as far as they are
 *  kept. */
void kt_query_module_frees(KtTracer *t, uint64_t id, KtErrorFn fn,
                           void *opaque);
/** kt_query_module_loaded() - is a module of that name loaded? */
bool kt_query_module_loaded(KtTracer *t, const char *name);

#endif /* KT_MODULES_API_H */
