/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay stop: stops the VM of a replay at an event, or at the last access to
 * a word (`ka goto`).
 *
 *     callback of an instruction --> an event --> the place asked for?
 *                                                   v yes
 *     the VM stops before the instruction <-- the block is left
 *
 * The event is in the map then, but its instruction has not run: the program
 * counter is at the entry of kfree(), or at the return of kmalloc(). When the
 * VM continues, the instruction is begun anew, and the callbacks that have run
 * are skipped.
 *
 * The callback of an access cannot leave the block: the VM stops a few
 * instructions behind it. But then its program counter and its clock are known,
 * and a second replay stops before the instruction, in a callback of its own.
 * A search for a word ends likewise, see kt-goto.h.
 *
 * Threads: the vCPU's, and the monitor's while the VM is stopped or not. A
 * replay has one vCPU.
 */
#ifndef KT_REPLAY_STOP_H
#define KT_REPLAY_STOP_H

#include "kalloc-tracer/capture/capture-internal.h"

void kt_replay_stop_free(KtReplayStop *s);

/** kt_replay_stop_wrap() - Let a callback of the instruction at @va stop the
 *  VM: register what @fn and @udata are changed to, with
 *  QEMU_PLUGIN_CB_RW_REGS_PC. In the translator. */
void kt_replay_stop_wrap(KtReplayStop *s, uint64_t va,
                         qemu_plugin_vcpu_udata_cb_t *fn, void **udata);

/** kt_replay_stop_wants() - Return true if the block at @va may contain the
 *  instruction that is asked for. In the translator. */
bool kt_replay_stop_wants(const KtReplayStop *s, uint64_t va);
/** kt_replay_stop_translate() - Add a callback to the instruction that is asked
 *  for, before all others. @left: instructions of the block from @insn on. In
 *  the translator. */
void kt_replay_stop_translate(KtReplayStop *s, struct qemu_plugin_insn *insn,
                              size_t left);

/** kt_replay_stop_traps() - Return true if accesses to the page at @page are
 *  wanted. Any thread. */
bool kt_replay_stop_traps(const KtReplayStop *s, uint64_t page);
/** kt_replay_stop_access() - A trapped page is accessed, as @a says. In the
 *  callback of the trap. */
void kt_replay_stop_access(KtReplayStop *s, const KtBlockAccess *a);

/** kt_replay_stop_pack() - Write the place, for a VM state. @s: (nullable)
 *  NULL: nothing is written. kt_replay_stop_unpack() reads it; what was asked
 *  for stays. With the BQL; the VM is stopped. */
void kt_replay_stop_pack(KtReplayStop *s, GsOut *p);
void kt_replay_stop_unpack(KtReplayStop *s, GsBytes *u);

#endif /* KT_REPLAY_STOP_H */
