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
 * @v: what conditions of all kinds ask of the call
 * @have_n: the call was counted, or could not be
 * @lost: the rule has no room for the stack, so there is no @n
 */
typedef struct KtDecision {
    KtFaults *f;
    KtRule *r;
    const KtFaultFunction *fn;
    const KtFaultCall *c;
    KtCallValues v;
    bool have_n, lost;
    uint64_t n, times;
} KtDecision;

/** kt_fault_fetch() - Fetch a variable of a condition. @opaque: KtDecision */
int64_t kt_fault_fetch(void *opaque, unsigned var, bool *known);

/* Each of these returns false if the value is not known. @arg: number of an
 * argument, or KT_NO_ARG. */
bool kt_fault_u32(const KtDecision *d, int arg, int64_t *out);
bool kt_fault_size(const KtDecision *d, int64_t *out);

/** kt_fault_need_n() - Count the call of this stack, and fill in @d->n. */
bool kt_fault_need_n(KtDecision *d);

#endif /* KT_FAULT_VALUES_H */
