/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collect: the first phase of a leak scan (leak-scan.c) and of a search for
 * references (refs.c). See README.md for the other phases.
 */
#ifndef KT_COLLECT_H
#define KT_COLLECT_H

#include "kalloc-tracer/leak/live-set.h"

/**
 * kt_leak_collect() - collect live blocks and roots of a stopped VM
 * @plan: (borrowed) must live as long as the result
 * @errp: the VM runs, no kernel is known, no vCPU maps the kernel's memory, or
 *        @plan->progress or the time limit ended the search
 *
 * Call in the thread of monitor commands, without the tracer's lock.
 *
 * Returns: (owned) the live set, NULL on error.
 */
KtLiveSet *kt_leak_collect(KtTracer *t, const KtLeakPlan *plan, GError **errp);

#endif /* KT_COLLECT_H */
