/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault rules: decide about a call of a call point. capture/ calls this at the
 * entry of the function, and does what the verdict says. QEMU-free.
 *
 *     request of the point -> rule
 *       inner call of an allocator?       not a call of this rule
 *       --module, --task                  calls, "times"
 *       condition                         selected
 *       refusals                          counted by reason
 *       record, verdict
 *
 * Values that a rule needs are fetched when it needs them.
 */
#ifndef KT_FAULT_RULES_H
#define KT_FAULT_RULES_H

#include "kalloc-tracer/calls/point-set.h"
#include "kalloc-tracer/conditions/call-values.h"
#include "kalloc-tracer/kt.h"

/**
 * struct KtFaultOps - reads what a call is about; each returns false if it is
 * not known
 * @call: what conditions of all kinds ask
 * @cache: the kmem_cache at @va
 * @us: the guest's time
 */
typedef struct KtFaultOps {
    KtCallOps call;
    bool (*cache)(void *call, uint64_t va, KtCacheInfo *out);
    uint64_t (*us)(void *call);
} KtFaultOps;

/** struct KtFaultCall - a call; @ra: its return address; @to: what is in the
 *  place of the return address, which a tracer of the guest may have replaced;
 *  @sp: the stack pointer at the entry */
typedef struct KtFaultCall {
    const KtFaultOps *ops;
    void *opaque;
    const GsKernel *kernel;
    uint64_t ra, to, sp;
    unsigned cpu;
} KtFaultCall;

/** struct KtFaultVerdict - what to do. @fail: return @value at once; @stop:
 *  stop the VM; @rule: number of the rule */
typedef struct KtFaultVerdict {
    bool fail, stop;
    uint64_t value;
    uint32_t rule;
} KtFaultVerdict;

/** kt_faults_decide() - Decide about a call. On the vCPU's thread. No lock is
 *  held when it returns. Returns: true if something is to be done. */
GS_HOT bool kt_faults_decide(const KtCallPoint *point, const KtFaultCall *call,
                             KtFaultVerdict *out);

/** kt_faults_begin_boot() - A kernel was found: find the functions of all
 *  rules, and begin to count. Before kt_call_points_begin_boot(). */
void kt_faults_begin_boot(KtTracer *t, const GsKernel *k);

#endif /* KT_FAULT_RULES_H */
