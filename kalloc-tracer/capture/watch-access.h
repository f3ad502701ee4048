/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access checks while the guest runs (`ka access on`).
 *
 *     translation                      execution
 *     each block of kernel code        on_access(): after each access
 *       | code of the allocator: no      | shadow: good ---------> done
 *       | operand on the stack: no       v bad
 *       v                              judges: code, caller, page -> explained
 *     callback on the instruction        v none explains it
 *                                      KT_EV_ACCESS, judged by the model
 *     entry of memset() and the like   on_range(): the whole range at once
 *
 * The shadow is changed by the vCPU that allocates or frees, when it pushes the
 * event. So it is right at once, while the map follows.
 *
 * Nothing is watched: KtShared.access is NULL, and the same blocks are
 * instrumented as if this file did not exist.
 *
 * Threads: callbacks run on vCPU threads, lock free. Arming, disarming and the
 * end of a boot happen while no vCPU executes, with the capture's lock.
 */
#ifndef KT_WATCH_ACCESS_H
#define KT_WATCH_ACCESS_H

#include "kalloc-tracer/capture/capture-internal.h"

/** kt_access_watch_start() - Have `ka access` arm and disarm @c. Call once,
 *  from kt_capture_start(). */
void kt_access_watch_start(KtCapture *c);
/** kt_access_watch_begin_boot() - Arm, if that is wanted, for the boot that is
 *  about to be published. Lock held; blocks that the map has are known to the
 *  shadow if @still: no vCPU executes. */
void kt_access_watch_begin_boot(KtCapture *c, KtBoot *boot, bool still);
/** kt_access_watch_end_boot() - Drop the shadow and all that belongs to the
 *  boot. Lock held, no vCPU executes. */
void kt_access_watch_end_boot(KtCapture *c);

/** kt_access_watch_has_code() - Return true if some code of the block at @va is
 *  checked. */
bool kt_access_watch_has_code(const KtAccessWatch *w, uint64_t va);
/** kt_access_watch_wants() - Return true if the block at @va needs callbacks.
 *  @va is in kernel space. In the translator. */
static inline bool kt_access_watch_wants(const KtCapture *c, uint64_t va)
{
    return c->shared.access && kt_access_watch_has_code(c->shared.access, va);
}
/** kt_access_watch_translate() - Add callbacks to the instructions of a block.
 *  Only if accesses are checked. */
void kt_access_watch_translate(const KtCapture *c, struct qemu_plugin_tb *tb,
                        size_t n);

#endif /* KT_WATCH_ACCESS_H */
