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
#include "kalloc-tracer/conditions/call-condition.h"
#include "kalloc-tracer/kt.h"

/** struct KtFaultCall - a call. @facts: but layout and prototype, which are the
 *  rule's; @to: what is in the place of the return address, which a tracer of
 *  the guest may have replaced */
typedef struct KtFaultCall {
    KtCallFacts facts;
    uint64_t to;
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
