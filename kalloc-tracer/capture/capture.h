/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture: registers callbacks with QEMU, finds the guest's kernel, and turns
 * executed instructions into events of a tracer. plugin.c starts it; monitor
 * commands and the vmstate handlers use it with its lock held.
 */
#ifndef KT_CAPTURE_H
#define KT_CAPTURE_H

#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/hooks/profile.h"
#include "kalloc-tracer/capture/plugin-api.h"
#include "kalloc-tracer/snapshot/snapshot.h"

/* ---- moments of the guest ------------------------------------------------ */
/*
 * Moments of a boot at which the plugin may act: the kernel is found, a module
 * is loaded or unloaded.
 */

/**
 * enum KtMoment - what happens
 * @KT_MOMENT_FOUND: the kernel is found; it runs its first instructions, or a
 *                   snapshot was loaded
 * @KT_MOMENT_LOAD: a module is loaded; its init has not begun
 * @KT_MOMENT_UNLOAD: a module's exit has run, or its init failed; the module is
 *                    about to be freed
 */
typedef enum KtMoment {
    KT_MOMENT_FOUND,
    KT_MOMENT_LOAD,
    KT_MOMENT_UNLOAD
} KtMoment;

/**
 * KtMomentFn - called at a moment
 * @module: (borrowed, nullable) name of the module
 *
 * On a vCPU's thread, or on the main thread while no vCPU executes; the
 * capture's lock may be held. It must not wait: to act, it asks for a call
 * while no vCPU executes. The vCPU runs no further instruction before that.
 */
typedef void (*KtMomentFn)(void *opaque, KtMoment moment, const char *module);

/** struct KtMoments - who is called; @fn: NULL for nobody */
typedef struct KtMoments {
    KtMomentFn fn;
    void *opaque;
} KtMoments;

/** kt_moment() - Call who wants to know. */
static inline void kt_moment(const KtMoments *m, KtMoment moment,
                             const char *module)
{
    if (m->fn) {
        m->fn(m->opaque, moment, module);
    }
}

/* ---- capture ------------------------------------------------------------- */

typedef struct KtCapture KtCapture;

/**
 * kt_capture_start() - Register the callbacks
 * @arch: the guest's architecture
 * @t: (borrowed) gets the events
 * @finder: (borrowed, nullable) finds the guest's kernel; NULL: nothing is
 *          traced
 * @profile: (borrowed, nullable) describes a kernel other than Linux
 * @max_vcpus: most vCPUs that the VM can have
 * @pages: trace the page allocator, too
 *
 * Call once, from qemu_plugin_install(). QEMU's callbacks use the result as
 * long as the process lives, so it is never freed.
 */
KtCapture *kt_capture_start(qemu_plugin_id_t id, const GsArch *arch,
                            KtTracer *t, KtFinder *finder,
                            const KtProfile *profile, unsigned max_vcpus,
                            bool pages);

/**
 * kt_capture_set_types() - Set where types come from if a kernel has none
 * @types: (borrowed, nullable) a file
 * @say: prints a line on stderr: what is missing, or why the file is not used.
 *       Called on vCPU threads
 *
 * Call once, after kt_capture_start().
 */
void kt_capture_set_types(KtCapture *c, const GsTypesFile *types,
                          void (*say)(const char *line));

/** kt_capture_on_moment() - Call @fn at the moments of each boot. Call once,
 *  after kt_capture_start(). */
void kt_capture_on_moment(KtCapture *c, KtMomentFn fn, void *opaque);

/** kt_capture_set_log() - Set whether the kernel's log is read (it is not by
 *  default). Call once, after kt_capture_start(). */
void kt_capture_set_log(KtCapture *c, bool on);
/** kt_capture_read_log() - Add the records of the kernel's log that are new:
 *  those of a writer that will not return, and those that are older than what
 *  ka knows of the kernel. Lock held, QEMU's main thread. */
void kt_capture_read_log(KtCapture *c);
/** kt_capture_why_no_log() - (static, nullable) Return why the running kernel's
 *  log is not read. Lock held. */
const char *kt_capture_why_no_log(const KtCapture *c);

/** kt_capture_reset() - Look for the kernel again, after a reset of the VM.
 *  Lock held, all vCPUs are stopped. */
void kt_capture_reset(KtCapture *c);

/** kt_capture_pack() - Write the running kernel, its modules and its pending
 *  calls; kt_snapshot_pack() goes first, after kt_capture_sync_counters().
 *  Lock held, no vCPU executes. */
void kt_capture_pack(KtCapture *c, GsOut *p);
/**
 * kt_capture_unpack() - Read what kt_capture_pack() wrote, for
 * kt_capture_install(); nothing changes yet
 *
 * Returns: (owned) valid only if gs_bytes_ok().
 */
GByteArray *kt_capture_unpack(GsBytes *u);
/**
 * kt_capture_install() - Continue from a snapshot that QEMU has loaded
 * @s: (owned by the callee) unpacked, not installed yet
 * @rest: (owned by the callee) of kt_capture_unpack()
 * @errp: one line
 *
 * Lock held, no vCPU executes; the VM's memory and vCPUs are loaded.
 *
 * Returns: false if the snapshot is damaged; then the map is empty and not
 * complete.
 */
bool kt_capture_install(KtCapture *c, KtSnapshot *s, GByteArray *rest,
                        GError **errp);
/** kt_capture_reset_unknown() - Drop all, because QEMU loaded a VM without our
 *  snapshot. Lock held, no vCPU executes. */
void kt_capture_reset_unknown(KtCapture *c);

/** kt_capture_lock(), _trylock(), _unlock() - Keep the kernel, its slide and
 *  its modules unchanged, for the length of a monitor command. */
void kt_capture_lock(KtCapture *c);
bool kt_capture_trylock(KtCapture *c);
void kt_capture_unlock(KtCapture *c);

/** kt_capture_vm() - Return access to the VM, valid for the length of a monitor
 *  command. Lock held. */
KtVm kt_capture_vm(KtCapture *c);
/** kt_capture_set_still() - Say that no vCPU executes now, although QEMU says
 *  that the VM runs: kt_capture_vm() can read registers. Lock held; set it
 *  back before the lock is released. */
void kt_capture_set_still(KtCapture *c, bool still);
/** kt_capture_kernel() - (borrowed, nullable) Return the kernel that was found
 *  last. Lock held. */
const GsKernel *kt_capture_kernel(const KtCapture *c);
/** kt_capture_hides_kernel() - Return true if the VM runs and no vCPU shows the
 *  kernel that was found: only a paused VM says why. Takes the lock. */
bool kt_capture_hides_kernel(KtCapture *c);
/** kt_capture_lacks_kernel() - Return true if another kernel is in guest memory
 *  than the one that was found. From the first time on no error is certain,
 *  and stderr says so. Call before each command. Lock held. */
bool kt_capture_lacks_kernel(KtCapture *c);
/** kt_capture_found() - Return true if the running kernel is known. Lock
 *  held. */
bool kt_capture_found(const KtCapture *c);
/** kt_capture_hooks() - (borrowed, nullable) Return the hooks of the running
 *  kernel. Lock held. */
const KtHooks *kt_capture_hooks(const KtCapture *c);
/** kt_capture_hook_hits() - Return how often the function of a row was entered
 *  while recording was on. Lock held. */
uint64_t kt_capture_hook_hits(const KtCapture *c, KtHookId id);
/** kt_capture_hook_status() - Describe row @i, from 0, of the hook table. Lock
 *  held. @out: (out) zeroed by the caller; its strings are borrowed. Returns:
 *  false if there is no such row. */
bool kt_capture_hook_status(const KtCapture *c, unsigned i,
                            KtHookStatus *out);
/** kt_capture_learned() - (owned, nullable) Return one line on what was learned
 *  of a kernel without types; NULL if it has types. Lock held. */
char *kt_capture_learned(const KtCapture *c);
/** kt_capture_unseen() - (owned, nullable) Return names of functions whose
 *  calls are not all seen (under KVM), NULL if there are none. Lock held. */
char *kt_capture_unseen(KtCapture *c);
/** kt_capture_pauses() - Return true if commands have to pause the VM. Under
 *  KVM the state of a vCPU is read on its own thread, which may wait for the
 *  capture's lock; and guest memory has breakpoints while the VM runs. */
bool kt_capture_pauses(const KtCapture *c);
/** kt_capture_sync_counters() - Add what the vCPUs counted since the last call
 *  to the tracer's counters. Lock held. */
void kt_capture_sync_counters(KtCapture *c);

/** kt_capture_stop_replay() - Let the VM, a replay, stop at events. Call before
 *  the VM runs. @journal: (borrowed) of the recorded run */
KtGoto kt_capture_stop_replay(KtCapture *c, const char *journal);

/** kt_capture_settle() - If the VM has stopped, decide what waits for guest
 *  time to pass: accesses that are to be verified. Call before questions and
 *  before kt_snapshot_pack(). Lock held. */
void kt_capture_settle(KtCapture *c);
/** kt_capture_resume_looks() - Go on with accesses that are to be verified, if
 *  the VM stood meanwhile. Call now and then while it runs, with the BQL. */
void kt_capture_resume_looks(KtCapture *c);

/* ---- vmstate ------------------------------------------------------------- */
/* Our section in QEMU's vmstate: the tracer goes with VM snapshots and
 * migration. */

/** struct KtReplayStop - where a replay is, and is to stop: replay-stop.h */
typedef struct KtReplayStop KtReplayStop;

/**
 * kt_vmstate_register() - Register the handlers that save and load the section
 * @c, @t: (borrowed, for the life of the process)
 *
 * Call once, from qemu_plugin_install().
 */
void kt_vmstate_register(qemu_plugin_id_t id, KtCapture *c, KtTracer *t);

/** kt_vmstate_pack() - (owned, nullable) Return the section; NULL: it would be
 *  larger than 1 GiB. @place: (nullable) the place in a replay goes with it.
 *  Lock held, no vCPU executes. */
GByteArray *kt_vmstate_pack(KtCapture *c, KtTracer *t, KtReplayStop *place);
/** kt_vmstate_prepare() - Save what a journal needs before all is replaced.
 *  Lock not held; no vCPU executes. */
void kt_vmstate_prepare(KtTracer *t);
/** kt_vmstate_install() - Continue from a section; see kt_capture_install(). */
bool kt_vmstate_install(KtCapture *c, KtTracer *t, KtReplayStop *place,
                        const GByteArray *bytes, GError **errp);

/** kt_capture_forget_image() - Drop the map that was saved with the guest's
 *  hibernation image. Call it when QEMU loads a VM state: the guest's disk, and
 *  the image on it, are then of another time. Lock held, no vCPU executes. */
void kt_capture_forget_image(KtCapture *c);

#endif /* KT_CAPTURE_H */
