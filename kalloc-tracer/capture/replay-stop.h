/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay stop: stops the VM of a replay at an event (`ka goto`).
 *
 *     callback of an instruction --> an event --> the place asked for?
 *                                                   v yes
 *     the VM stops before the instruction <-- the block is left
 *
 * The event is in the map then, but its instruction has not run: the program
 * counter is at the entry of kfree(), or at the return of kmalloc(). When the
 * VM continues, the instruction is begun anew, and the callbacks that have run
 * are skipped. An access is made when it is seen; the VM stops a few
 * instructions behind it.
 *
 * Threads: the vCPU's, and the monitor's while the VM is stopped or not. A
 * replay has one vCPU.
 */
#ifndef KT_REPLAY_STOP_H
#define KT_REPLAY_STOP_H

#include "kalloc-tracer/capture/capture-internal.h"

/** kt_replay_stop_new() - (owned) Make one, which never stops yet. */
KtReplayStop *kt_replay_stop_new(void);
void kt_replay_stop_free(KtReplayStop *s);

/** kt_replay_stop_wrap() - Let a callback of the instruction at @va stop the
 *  VM: register what @fn and @udata are changed to, with
 *  QEMU_PLUGIN_CB_RW_REGS_PC. In the translator. */
void kt_replay_stop_wrap(KtReplayStop *s, uint64_t va,
                         qemu_plugin_vcpu_udata_cb_t *fn, void **udata);

/** kt_replay_stop_pack() - Write the place, for a VM state. @s: (nullable)
 *  NULL: nothing is written. kt_replay_stop_unpack() reads it, and cancels the
 *  stop that was asked for. With the BQL; the VM is stopped. */
void kt_replay_stop_pack(KtReplayStop *s, GsOut *p);
void kt_replay_stop_unpack(KtReplayStop *s, GsBytes *u);

#endif /* KT_REPLAY_STOP_H */
