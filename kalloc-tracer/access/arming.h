/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arming: what the user wants to be checked, what capture/ has made of it, and
 * which code explains accesses. The part of a tracer behind kt-access.h.
 *
 * Capture asks for a filter when it arms, and says what came of it. Threads:
 * any; the part has a lock of its own, a leaf.
 */
#ifndef KT_ARMING_H
#define KT_ARMING_H

#include "kalloc-tracer/access/access-filter.h"
#include "kalloc-tracer/api/kt-access.h"

typedef struct KtArming KtArming;

/** kt_arming_of() - Return the part of a tracer; any thread. */
KtArming *kt_arming_of(KtTracer *t);
/** kt_arming_on_change() - Have @fn called when the user arms or disarms,
 *  without the lock. Before any other use. */
void kt_arming_on_change(KtArming *a, void (*fn)(void *opaque), void *opaque);
/** kt_arming_filter() - (owned, nullable) Make the filter of what is wanted;
 *  NULL: nothing is. */
KtAccessFilter *kt_arming_filter(KtArming *a);
/** kt_arming_begun() - Say that accesses are checked since guest time @us; the
 *  places that explained accesses are dropped. */
void kt_arming_begun(KtArming *a, uint64_t us);
/** kt_arming_ended() - Say that no access is checked. @why: (static, nullable)
 *  why, although it is wanted */
void kt_arming_ended(KtArming *a, const char *why);
/** kt_arming_disarmed() - Say that blocks of a cache are not checked any
 *  more. */
void kt_arming_disarmed(KtArming *a, KtCacheId cache);
/** kt_arming_explain() - Count an access that is no error. @pc: the
 *  instruction; @era: now, of @pc; see gs_kernel_era() */
void kt_arming_explain(KtArming *a, KtAccessReason why, uint64_t pc,
                       uint32_t era);

#endif /* KT_ARMING_H */
