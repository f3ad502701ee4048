/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks that modules had not freed when they were unloaded.
 *
 * A block belongs to a module if its allocation stack has a frame in the
 * module. The report is made when the module is unloaded, at its place in the
 * order of events. Functions kt_query_*() need kt_query_begin(), see
 * kt-query.h.
 */
#ifndef KT_API_MODULES_H
#define KT_API_MODULES_H

#include "kalloc-tracer/api/kt-query.h"

/**
 * struct KtModuleReport - made when a module was unloaded
 * @id: 1, 2, ... in the order of reports
 * @name: (borrowed until kt_query_end())
 * @loaded_us: time when it was loaded; 0: before recording began
 * @us: time when it was unloaded
 * @found: its blocks that were neither freed nor queued by kfree_rcu()
 * @not_kept: of @found, blocks that are not listed: the memory limit was
 *            reached
 * @unsure: blocks that may have been freed in a gap; they are not in @found
 * @bad_frees: errors that the module's frees made
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

/** Called for each report; false ends the query. */
typedef bool (*KtModuleFn)(const KtModuleReport *r, void *opaque);

/** kt_query_modules() - call @fn for each report, the oldest first. */
void kt_query_modules(KtTracer *t, KtModuleFn fn, void *opaque);
/** kt_query_module_leaks() - call @fn for the blocks of report @id that are
 *  still not freed, by the address that they had then. */
void kt_query_module_leaks(KtTracer *t, uint64_t id, KtBlockFn fn,
                           void *opaque);
/** kt_query_module_frees() - call @fn for the errors that the module's frees
 *  made, the oldest first, as far as they are kept. */
void kt_query_module_frees(KtTracer *t, uint64_t id, KtErrorFn fn,
                           void *opaque);
/** kt_query_module_loaded() - return true if a module of that name is
 *  loaded. */
bool kt_query_module_loaded(KtTracer *t, const char *name);

#endif /* KT_API_MODULES_H */
