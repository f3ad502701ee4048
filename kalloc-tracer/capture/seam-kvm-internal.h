/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files seam-kvm*.c share. */
#ifndef KT_SEAM_KVM_INTERNAL_H
#define KT_SEAM_KVM_INTERNAL_H

#include "kalloc-tracer/capture/breakpoint-table.h"
#include "kalloc-tracer/capture/seam.h"

/** struct KtKvmMissed - functions of which ka does not see all calls. @n: their
 *  number; @names: (owned) the first of them, as a list */
typedef struct KtKvmMissed {
    unsigned n;
    GString *names;
} KtKvmMissed;

/**
 * struct KtKvm - what we know of a VM
 * @boot: (borrowed) the boot whose breakpoints are in the table, or NULL if
 *        the table is empty. It is compared with others, never read
 * @patching: the kernel patches its text: no return is planted
 * @off: only breakpoints that are kept are in the guest
 * @changed: (atomic) the call points are others than those that are planted
 * @resumed: (atomic) recording was switched on, and the next vCPU that comes by
 *           a breakpoint has to read the caches again
 * @late: a vCPU executes a kernel whose breakpoints it could not plant
 * @withdrawn: breakpoints that QEMU had withdrawn when all were planted last
 * @gaps: (atomic) for how many of them a gap was pushed
 * @replant_us: monotonic time when those are planted that it has withdrawn
 *              since; 0: there are none
 * @hooks, @points: functions of hooks, and of call points, whose calls are not
 *                  all seen
 */
typedef struct KtKvm {
    const KtBoot *boot;
    bool patching, off, changed, resumed, late;
    uint64_t withdrawn, gaps;
    int64_t replant_us;
    KtKvmMissed hooks, points;
} KtKvm;

extern KtKvm kt_kvm;

/** struct KtKvmPlan - whose breakpoints are planned. @returns: what those on
 *  returns are for */
typedef struct KtKvmPlan {
    const KtBoot *boot;
    const GsKernel *k;
    KtKvmMissed *missed;
    uint32_t returns;
} KtKvmPlan;

/* ---- seam-kvm-plan.c: the lock is held ----------------------------------- */

/** kt_kvm_plan_points() - Plan breakpoints of call points anew. */
void kt_kvm_plan_points(const KtCapture *c, const KtBoot *boot);
/** kt_kvm_plan_all() - Plan those of hooks and call points. Memory of hooks
 *  that cannot have all of theirs is not judged. */
void kt_kvm_plan_all(const KtCapture *c, KtBoot *boot);
/** kt_kvm_plan_entry() - Plan the entry of the function @name. Returns: false
 *  if there is no place for it. */
bool kt_kvm_plan_entry(const KtKvmPlan *p, const char *name,
                       KtBreakpointUse use);
/** kt_kvm_plant() - Plant what is planned. On a vCPU's thread, in a
 *  callback. */
void kt_kvm_plant(KtKvmPlan *p);
/** kt_kvm_clear() - Remove all breakpoints. */
void kt_kvm_clear(void);
/** kt_kvm_unseen() - KtSeam.unseen */
char *kt_kvm_unseen(KtCapture *c);

/* ---- seam-kvm-patching.c ------------------------------------------------- */

/** kt_kvm_begin_boot() - Plan and plant for a boot. The lock is held. */
void kt_kvm_begin_boot(const KtCapture *c, KtBoot *boot);
/** kt_kvm_begin_patching() - alternative_instructions() is entered. */
void kt_kvm_begin_patching(void);
/** kt_kvm_look_patched() - Plan and plant anew if the kernel has patched its
 *  text. @use: of the breakpoint that was hit */
void kt_kvm_look_patched(KtCapture *c, uint32_t use);

/* ---- seam-kvm-switch.c --------------------------------------------------- */

/** kt_kvm_on_switch() - Recording is switched on or off. @opaque: KtCapture */
void kt_kvm_on_switch(void *opaque);
/** kt_kvm_resume() - A vCPU executes after recording was switched on. */
void kt_kvm_resume(KtCapture *c);

#endif /* KT_SEAM_KVM_INTERNAL_H */
