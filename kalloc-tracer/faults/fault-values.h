/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of a call that rules decide about: each is fetched when it is first
 * needed. On the vCPU's thread.
 */
#ifndef KT_FAULT_VALUES_H
#define KT_FAULT_VALUES_H

#include "kalloc-tracer/faults/faults-internal.h"

/**
 * struct KtDecision - one rule and one call
 * @fn: the function that is called
 * @have_...: the value beside it was fetched
 * @lost: the rule has no room for the stack, so there is no @n
 */
typedef struct KtDecision {
    KtFaults *f;
    KtRule *r;
    const KtFaultFunction *fn;
    const KtFaultCall *c;
    bool have_stack, stack_known, have_task, task_known, have_n, lost;
    KtCallStack stack;
    KtStackFacts facts;
    KtFaultTask task;
    uint64_t n, times;
} KtDecision;

/** kt_fault_fetch() - Fetch a variable of a condition. @opaque: KtDecision */
int64_t kt_fault_fetch(void *opaque, unsigned var, bool *known);

/* Each of these returns false if the value is not known. @i, @arg: number of an
 * argument, or KT_NO_ARG. */
bool kt_fault_raw_arg(const KtDecision *d, int i, uint64_t *out);
bool kt_fault_u32(const KtDecision *d, int arg, int64_t *out);
bool kt_fault_size(const KtDecision *d, int64_t *out);

/** kt_fault_need_stack() - Fill in @d->stack and @d->facts. */
bool kt_fault_need_stack(KtDecision *d);
/** kt_fault_need_task() - Fill in @d->task. */
bool kt_fault_need_task(KtDecision *d);
/** kt_fault_need_n() - Count the call of this stack, and fill in @d->n. */
bool kt_fault_need_n(KtDecision *d);

/** kt_fault_find_module() - Find the loaded module that the return address @va
 *  is in. Most addresses are in the kernel proper, and take no lock. */
bool kt_fault_find_module(const KtDecision *d, uint64_t va, GsModule *out);
/** kt_fault_task_reader() - Return what reads tasks, valid as long as @d. */
KtTaskReader kt_fault_task_reader(const KtDecision *d);
/** kt_fault_is_child() - Is the task of process @i of the rule's filter? */
KtAnswer kt_fault_is_child(KtDecision *d, unsigned i);

#endif /* KT_FAULT_VALUES_H */
