/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call points: the functions that the user named, found in the running kernel.
 * QEMU-free.
 *
 *     request 1: "kfree,vfree"   ---+
 *     request 2: "mutex_*"       ---+--> resolve --> points --> KtPointSet
 *     request 3: "ka_test:*"     ---+      ^                    (published)
 *       (not loaded: pending)              |
 *                      boot, load and unload of a module
 *
 * A request names functions; it lives until it is deleted, also across boots.
 * It is resolved when it is added, when a kernel is found (KASLR moves the
 * functions) and when a module is loaded. A point is one function, and has all
 * requests that match it.
 *
 * Threads: any. The table has a lock of its own, which is taken after the
 * capture's lock. Readers of the published set take no lock.
 */
#ifndef KT_CALL_POINTS_H
#define KT_CALL_POINTS_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/calls/point-names.h"
#include "kalloc-tracer/calls/point-set.h"

typedef struct KtCallPoints KtCallPoints;

/** kt_call_points_new() - (owned) Make an empty table. @budget: (borrowed,
 *  nullable) is charged for the published sets. */
KtCallPoints *kt_call_points_new(KtBudget *budget);
void kt_call_points_free(KtCallPoints *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCallPoints, kt_call_points_free)

/** kt_call_points_on_change() - Call @fn after each new set is published.
 *  @flush: points were added, so translated code lacks their callbacks. @fn is
 *  called without the table's lock; later kt_call_points_reclaim() must be
 *  called. Set it before any other use. */
void kt_call_points_on_change(KtCallPoints *p,
                              void (*fn)(void *opaque, bool flush),
                              void *opaque);
/** kt_call_points_reclaim() - Free sets that are no longer published. No vCPU
 *  executes. */
void kt_call_points_reclaim(KtCallPoints *p);

/** kt_call_points_set() - (borrowed, nullable) Return the published set; NULL
 *  if there are no points. Any thread, lock free; valid until the vCPU leaves
 *  its callback. */
const KtPointSet *kt_call_points_set(const KtCallPoints *p);

/**
 * struct KtPointSpec - a request to make
 * @text: patterns joined by ",": names or globs (* and ?), each perhaps with
 *        "module:" in front, or named sets as "@mutex"
 * @use: what for
 * @opaque, @free: (owned by the callee, also if the request fails) whatever
 *                 belongs to the request
 * @plan: (nullable) return (borrowed until the end of the boot, nullable) the
 *        values that are read at the calls of a point. Called with the table's
 *        lock held, whenever the set of points is made anew, for each point
 *        whose newest request this is
 * @id: the number of the request; 0: the next one of the table
 */
typedef struct KtPointSpec {
    const char *text;
    KtPointUse use;
    void *opaque;
    GDestroyNotify free;
    KtPointPlanFn plan;
    uint32_t id;
} KtPointSpec;

/**
 * kt_call_points_add() - Add a request and resolve it
 * @errp: one line: an unknown function with similar names, a pattern that
 *        matches nothing or too much, too many requests
 *
 * A pattern with the name of a module that is not loaded, and every pattern
 * while no kernel is known, is pending: it is resolved later.
 *
 * Returns: the request's number, 0 on error; then nothing has changed.
 */
uint32_t kt_call_points_add(KtCallPoints *p, const KtPointSpec *spec,
                            GError **errp);
/** kt_call_points_remove() - Delete request @id, or all requests of @use if @id
 *  is 0. Returns: how many there were. */
unsigned kt_call_points_remove(KtCallPoints *p, KtPointUse use, uint32_t id);

/** kt_call_points_begin_boot() - Resolve all requests in a kernel that was
 *  found. @k: (borrowed until kt_call_points_end_boot()) */
void kt_call_points_begin_boot(KtCallPoints *p, const GsKernel *k);
/** kt_call_points_end_boot() - Remove all points; requests stay. No vCPU
 *  executes. */
void kt_call_points_end_boot(KtCallPoints *p);
/** kt_call_points_add_module() - Resolve all requests in the module that was
 *  just added to the kernel as @module_va. Returns: how many points are new. */
unsigned kt_call_points_add_module(KtCallPoints *p, uint64_t module_va);
/** kt_call_points_remove_module() - Remove the points of a module that is about
 *  to be unloaded. */
void kt_call_points_remove_module(KtCallPoints *p, uint64_t module_va);

/** kt_call_points_skipped() - Return how many functions of modules have no
 *  point since the last call, because a limit was reached. */
unsigned kt_call_points_skipped(KtCallPoints *p);

/** kt_call_points_names() - (borrowed) Return the names of the points. */
KtPointNames *kt_call_points_names(KtCallPoints *p);

/** struct KtPointRequestInfo - a request and the number of its points */
typedef struct KtPointRequestInfo {
    const KtPointRequest *request;
    unsigned n_points;
} KtPointRequestInfo;
typedef bool (*KtPointRequestFn)(const KtPointRequestInfo *info, void *opaque);
/** kt_call_points_foreach_request() - Call @fn for each request of @use, the
 *  oldest first, until it returns false; under the table's lock. */
void kt_call_points_foreach_request(KtCallPoints *p, KtPointUse use,
                                    KtPointRequestFn fn, void *opaque);
typedef bool (*KtPointFn)(const KtCallPoint *point, void *opaque);
/** kt_call_points_foreach() - Call @fn for each point, by id, until it returns
 *  false; under the table's lock. */
void kt_call_points_foreach(KtCallPoints *p, KtPointFn fn, void *opaque);

#endif /* KT_CALL_POINTS_H */
