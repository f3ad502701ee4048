/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inject faults: make a call of a call point return at once, or stop the VM at
 * it. See inject-fault.c.
 */
#ifndef KT_INJECT_FAULT_H
#define KT_INJECT_FAULT_H

#include "kalloc-tracer/capture/record-internal.h"
#include "kalloc-tracer/faults/fault-rules.h"

/** How the callback of a call ends. */
typedef enum KtLeaveHow {
    KT_LEAVE_NOT,               /* the call goes on */
    KT_LEAVE_RETURN,            /* the call has returned */
    KT_LEAVE_STOP,              /* the VM stops; then the entry is repeated */
} KtLeaveHow;

/** struct KtLeave - @to: the address at which the vCPU continues */
typedef struct KtLeave {
    KtLeaveHow how;
    uint64_t to;
} KtLeave;

/** kt_inject_fault() - Decide about the call that @m is about, at the entry of
 *  @point; set the registers if the call fails. @m->ra and @m->sp_after are
 *  set. */
KtLeave kt_inject_fault(KtHookCall *m, const KtCallPoint *point);

/** kt_leave_call() - End the callback: continue at @leave.to. Does not return.
 *  The caller holds no lock and owns nothing. */
G_NORETURN void kt_leave_call(KtLeave leave);

#endif /* KT_INJECT_FAULT_H */
