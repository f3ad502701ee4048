/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watch: the options of a request for call records, compiled: which calls of
 * its functions are recorded. QEMU-free.
 *
 *     entry:  caller in --module?  --if (if it needs no result)?
 *     return: --if, --errors, --longer?
 *
 * A watch does not change, except for the areas of its module, and at a boot.
 * Any thread.
 */
#ifndef KT_WATCH_H
#define KT_WATCH_H

#include "kalloc-tracer/calls/deref-plan.h"
#include "kalloc-tracer/calls/point-set.h"
#include "kalloc-tracer/conditions/call-condition.h"

/**
 * struct KtWatch - the options
 * @text: what the user asked for, options included
 * @module: (nullable) only calls from this module
 * @n_areas: (atomic) 0: it is not loaded
 * @area: where it is loaded; @end is atomic, and equal to @start once another
 *        module has the area
 * @condition: (nullable) --if. The functions have different prototypes, so an
 *             argument is found by its name at each call
 * @derefs: (nullable) what is read besides; @plans: (borrowed) its plans
 * @budget: (borrowed, nullable)
 * @errors, @stack, @longer_ns: as in KtWatchSpec
 */
typedef struct KtWatch {
    char *text;
    char *module;
    unsigned n_areas;
    GsModuleArea area[GS_MODULE_AREAS_MAX];
    KtCallCondition *condition;
    KtDerefList *derefs;
    KtDerefTable *plans;
    KtBudget *budget;
    bool errors, stack;
    uint64_t longer_ns;
} KtWatch;

/** kt_watch_new() - (owned) Compile the options of @spec; NULL on error. @k:
 *  (nullable) the kernel whose functions are watched. @budget: (borrowed,
 *  nullable) is charged for what conditions count. @plans: (borrowed,
 *  nullable) gets the plans of --deref */
KtWatch *kt_watch_new(const KtWatchSpec *spec, const GsKernel *k,
                      KtBudget *budget, KtDerefTable *plans, GError **errp);
/** kt_watch_begin_boot() - Compile the condition anew for a kernel that was
 *  found, and begin to count. No vCPU uses the watch. */
void kt_watch_begin_boot(KtWatch *w, const GsKernel *k);
/** kt_watch_free() - Free a KtWatch; a GDestroyNotify. */
void kt_watch_free(void *watch);
/** kt_watch_plan() - As KtPointSpec.plan. @watch: a KtWatch */
const KtDerefPlan *kt_watch_plan(void *watch, const KtCallPoint *point);
/** kt_watch_set_module() - Set where the watch's module is, if @module is that
 *  one; @module->live is false: it is about to be unloaded. An area that
 *  another @module has got since is the watch's no more. One thread at a time,
 *  while others ask kt_watch_wants_caller(). */
void kt_watch_set_module(KtWatch *w, const GsModule *module);

/** kt_watch_wants_caller() - Return true if calls from @caller are recorded. */
GS_HOT bool kt_watch_wants_caller(const KtWatch *w, uint64_t caller);
/** kt_watch_wants_stack() - Return true if the stack is needed at each entry. A
 *  condition that is decided at the entry fetches it when it needs it. */
GS_HOT bool kt_watch_wants_stack(const KtWatch *w);
/** kt_watch_wants_entry() - Does the condition want the call, at its entry? YES
 *  if that is decided at the return; UNKNOWN if it needs an unknown value or
 *  divides by zero. */
GS_HOT KtAnswer kt_watch_wants_entry(const KtWatch *w, const KtCallFacts *f);
/** kt_watch_is_open() - Return true if the condition is decided at the return:
 *  whether it wants a call that has not returned is unknown. */
GS_HOT bool kt_watch_is_open(const KtWatch *w);
/** kt_watch_wants_return() - Do the options that need the result want it? */
GS_HOT KtAnswer kt_watch_wants_return(const KtWatch *w,
                                      const KtCallFacts *f);

#endif /* KT_WATCH_H */
