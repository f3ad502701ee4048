/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seam between QEMU's accelerators and the callbacks of capture.c.
 *
 *            TCG: seam-tcg.c                    KVM: seam-kvm.c
 *     a block is translated              the kernel sets MSR_LSTAR
 *       kernel unknown -> unknown          kernel unknown -> unknown
 *       hook's entry   -> entry          a breakpoint is hit
 *       call point     -> point            hook's entry   -> entry
 *       return site    -> return           call point     -> watched
 *                 |                        ret of either  -> return
 *                 \                            /
 *                  '--> kt_capture_on_...() <-'
 *
 * The callbacks are the same, and so are the events. They run on the vCPU's
 * thread, without the BQL, and read registers and memory in the same way.
 */
#ifndef KT_SEAM_H
#define KT_SEAM_H

#include "kalloc-tracer/capture/capture-internal.h"

/**
 * struct KtSeam - how QEMU is asked to call us at addresses of code
 * @accel: name of the accelerator
 * @sees_accesses: each access to memory can be seen
 * @wakes: the first code of a hibernation image calls kt_capture_on_wake()
 * @pauses: commands have to pause the VM, see kt_capture_pauses()
 * @start: register the callbacks; from kt_capture_start(). false: QEMU runs
 *         another accelerator
 * @update: the boot or its hooks have changed: what runs from now on has the
 *          right callbacks. Any thread; with the capture's lock if the boot has
 *          changed
 * @points_changed: the same of call points. Any thread. @added: some are new
 * @sync: (nullable) update counters of the tracer; the lock is held
 * @unseen: (owned, nullable; nullable) names of functions whose calls are not
 *          all seen; the lock is held
 */
struct KtSeam {
    const char *accel;
    bool sees_accesses, wakes, pauses;
    bool (*start)(KtCapture *c, qemu_plugin_id_t id);
    void (*update)(KtCapture *c);
    void (*points_changed)(KtCapture *c, bool added);
    void (*sync)(KtCapture *c);
    char *(*unseen)(KtCapture *c);
};

extern const KtSeam kt_seam_tcg, kt_seam_kvm;

/** What commands say without @sees_accesses. */
#define KT_NO_ACCESSES "KVM does not show accesses: use -accel tcg"

/* ---- user data of callbacks ---------------------------------------------- */

/** kt_pack() - Return user data: the id of a hook, site or point, and the
 *  instructions of the block that have not run yet (0 without blocks). */
static inline void *kt_pack(uint32_t id, unsigned insns_left)
{
    return (void *)(uintptr_t)((uint64_t)insns_left << 32 | id);
}

static inline uint32_t kt_packed_id(void *udata)
{
    return (uintptr_t)udata;
}

static inline unsigned kt_packed_left(void *udata)
{
    return (uint64_t)(uintptr_t)udata >> 32;
}

/** A callback that may leave the call. A rule can be added to a point that is
 *  watched: blocks that were translated before it must not leave. */
#define KT_MAY_LEAVE (1u << 24)

/** kt_pack_point() - Return the id for a call point: those of the point and of
 *  the hook at that address, if any, and KT_MAY_LEAVE. */
static inline uint32_t kt_pack_point(const KtCallPoint *point, KtHookId hook)
{
    return (point->uses & KT_POINT_FAULT ? KT_MAY_LEAVE : 0) |
           (uint32_t)hook.v << 16 | point->id.v;
}

static inline KtPointId kt_packed_point(void *udata)
{
    return (KtPointId) { kt_packed_id(udata) & UINT16_MAX };
}

static inline KtHookId kt_packed_hook(void *udata)
{
    return (KtHookId) { kt_packed_id(udata) >> 16 & UINT8_MAX };
}

static inline bool kt_packed_may_leave(void *udata)
{
    return kt_packed_id(udata) & KT_MAY_LEAVE;
}

/* ---- callbacks ----------------------------------------------------------- */

/** kt_capture_on_entry() - The function of a hook is entered. */
GS_HOT void kt_capture_on_entry(unsigned vcpu_index, void *udata);
/** kt_capture_on_trapped_entry() - The same, where a breakpoint of the guest
 *  replaces the first instruction. */
void kt_capture_on_trapped_entry(unsigned vcpu_index, void *udata);
/** kt_capture_on_blind_entry() - As kt_capture_on_entry(), while returns are
 *  not seen: a call that would await its return is dropped, and counted. */
void kt_capture_on_blind_entry(unsigned vcpu_index, void *udata);
/** kt_capture_on_site() - A call inside an allocator is reached. */
void kt_capture_on_site(unsigned vcpu_index, void *udata);
/** kt_capture_on_point() - A call point is entered, which may be a hook, too.
 *  May not return: see kt_leave_call(). */
GS_HOT void kt_capture_on_point(unsigned vcpu_index, void *udata);
void kt_capture_on_trapped_point(unsigned vcpu_index, void *udata);
/** kt_capture_on_watched() - As kt_capture_on_point(), for a seam that leaves
 *  the call itself, and sees a hook at the same address itself. Returns: how
 *  the vCPU has to go on. */
GS_HOT KtLeave kt_capture_on_watched(unsigned vcpu_index, void *udata);
/** kt_capture_on_return() - A call has returned to a return site, whose index
 *  is the id. */
GS_HOT void kt_capture_on_return(unsigned vcpu_index, void *udata);
/** kt_capture_on_returning() - A function is about to return: the return
 *  address is on top of the stack. */
GS_HOT void kt_capture_on_returning(unsigned vcpu_index);
/** kt_capture_on_unknown() - Code runs while the kernel is unknown. @udata: its
 *  address */
void kt_capture_on_unknown(unsigned vcpu_index, void *udata);
/** kt_capture_on_wake() - Code runs for which kt_hibernation_may_wake() was
 *  true. */
void kt_capture_on_wake(unsigned vcpu_index, void *udata);

#endif /* KT_SEAM_H */
