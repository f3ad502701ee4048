/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture: from executed instructions to events. The hot path; talks to QEMU.
 */
#ifndef KT_CAPTURE_H
#define KT_CAPTURE_H

#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/capture/plugin-api.h"
#include "kalloc-tracer/snapshot/snapshot.h"

typedef struct KtCapture KtCapture;

/**
 * kt_capture_start() - register the callbacks; from qemu_plugin_install()
 * @arch: the guest's
 * @t: (borrowed) takes the events
 * @finder: (borrowed, nullable) tells the guest's kernel; without it nothing
 *          is traced
 * @profile: (borrowed, nullable) tells of a kernel that is no Linux
 * @pages: trace the page allocator, too
 *
 * Returns: (owned by the process: QEMU's callbacks refer to it to the end)
 */
KtCapture *kt_capture_start(qemu_plugin_id_t id, const GsArch *arch,
                            KtTracer *t, KtFinder *finder,
                            const KtProfile *profile, unsigned max_vcpus,
                            bool pages);

/** kt_capture_reset() - the VM was reset: look for the kernel again; lock
 *  held, all vCPUs are stopped. */
void kt_capture_reset(KtCapture *c);

/** kt_capture_pack() - what is known of the running kernel and of its calls,
 *  behind kt_snapshot_pack()'s; counters are in sync; lock held, no vCPU
 *  executes. */
void kt_capture_pack(KtCapture *c, GsOut *p);
/**
 * kt_capture_unpack() - read that, not taking it yet
 * Returns: (owned) to be used only if gs_bytes_ok().
 */
GByteArray *kt_capture_unpack(GsBytes *u);
/**
 * kt_capture_install() - the VM is where that was saved
 * @s: (taken) unpacked before, and not installed yet
 * @rest: (taken) of kt_capture_unpack()
 * @errp: what is wrong; then nothing is known of the VM
 *
 * Lock held, no vCPU executes; the VM's memory and vCPUs are loaded.
 */
bool kt_capture_install(KtCapture *c, KtSnapshot *s, GByteArray *rest,
                        GError **errp);
/** kt_capture_lost() - the VM is somewhere else, and nothing is known; lock
 *  held, no vCPU executes. */
void kt_capture_lost(KtCapture *c);

/** kt_capture_lock()/_unlock() - hold the kernel's slide and modules' owner
 *  steady for the length of a monitor command. */
void kt_capture_lock(KtCapture *c);
bool kt_capture_trylock(KtCapture *c);
void kt_capture_unlock(KtCapture *c);

/** kt_capture_vm() - the VM, for the length of a monitor command; lock
 *  held. */
KtVm kt_capture_vm(KtCapture *c);
/** kt_capture_kernel() - (borrowed, nullable) the kernel that was found last;
 *  lock held. */
const GsKernel *kt_capture_kernel(const KtCapture *c);
/** kt_capture_found() - the running kernel was recognised; lock held. */
bool kt_capture_found(const KtCapture *c);
/** kt_capture_hooks() - (borrowed, nullable) those of the running kernel; lock
 *  held. */
const KtHooks *kt_capture_hooks(const KtCapture *c);
/** kt_capture_hook_hits() - events of a hook row; lock held. */
uint64_t kt_capture_hook_hits(const KtCapture *c, KtHookId id);
/** kt_capture_hook_status() - Describe row @i, from 0, of the hook table; lock
 *  held. @out: (out) zeroed; its strings are borrowed. Returns: false if there
 *  is no such row. */
bool kt_capture_hook_status(const KtCapture *c, unsigned i,
                            KtHookStatus *out);
/** kt_capture_sync_counters() - bring what the vCPUs counted for themselves
 *  into the tracer's counters; lock held. */
void kt_capture_sync_counters(KtCapture *c);

#endif /* KT_CAPTURE_H */
