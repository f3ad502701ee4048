/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seam to KVM: QEMU makes instructions breakpoints, and emulates them.
 *
 *     MSR_LSTAR (FRED: its configuration) is set
 *                      -> kernel unknown: kt_capture_on_unknown()
 *     the boot begins  -> plan: the breakpoints of each hook's function, see
 *                         hooks/breakpoints.h; plant
 *     a VM is loaded, and continues: the same, with its LSTAR
 *     points changed   -> the next breakpoint that is hit: plan and plant those
 *                         of call points
 *     one is hit       -> entry:  kt_capture_on_entry()
 *                         return: kt_capture_on_returning()
 *                         call inside an allocator: kt_capture_on_site()
 *                         call point: kt_capture_on_watched(), which says how
 *                         the vCPU goes on
 *
 * Other files of the seam:
 *   seam-kvm-plan.c      which breakpoints are planted
 *   seam-kvm-patching.c  returns: planted once the kernel has patched its text
 *   seam-kvm-switch.c    what is done when recording is switched off and on
 *
 * Threads. on_hook() runs on vCPU threads; it only tries the capture's lock,
 * which protects plans. on_syscall_entry() waits for it: without breakpoints
 * the vCPU must not go on. Breakpoints are disabled and enabled while no vCPU
 * executes.
 */
#include "kalloc-tracer/capture/seam-kvm-internal.h"

#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>

#define WITHDRAWN_US    10000           /* for which they stay so */

/* This is a vCPU's thread, in a callback that can read memory and plant. */
static __thread bool in_callback;

/* ---- call points --------------------------------------------------------- */

static void plant_points(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);
    KtKvmPlan p = { boot, c->shared.kernel, &kt_kvm.points, 0 };

    if (kt_kvm.patching || !boot || !kt_capture_trylock(c)) {
        return;
    }
    __atomic_store_n(&kt_kvm.changed, false, __ATOMIC_SEQ_CST);
    kt_kvm_plan_points(c, boot);
    kt_kvm_plant(&p);
    kt_capture_unlock(c);
}

/* No vCPU executes. */
static void await_any(void *unused)
{
    if (kt_kvm.off && __atomic_load_n(&kt_kvm.changed, __ATOMIC_RELAXED)) {
        kt_breakpoints_enable(true);
    }
}

static void points_changed(KtCapture *c, bool added)
{
    __atomic_store_n(&kt_kvm.changed, true, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(await_any, NULL);
    }
}

/* @b: the entry of a call point. Returns: how the vCPU goes on. */
static enum qemu_plugin_code_hook_action enter_point(
    const KtCapture *c, unsigned vcpu, const KtBreakpoint *b, uint64_t *next)
{
    const KtPointSet *set = kt_call_points_set(c->shared.points);
    const KtCallPoint *point =
        set ? kt_point_set_at(set, __atomic_load_n(&b->function,
                                                   __ATOMIC_RELAXED)) : NULL;
    KtLeave leave = { KT_LEAVE_NOT, 0 };

    if (point) {
        leave = kt_capture_on_watched(
            vcpu, kt_pack(kt_pack_point(point, (KtHookId) { 0 }), 0));
    }
    *next = leave.to;
    return leave.how == KT_LEAVE_RETURN ? QEMU_PLUGIN_CODE_HOOK_GOTO :
           leave.how == KT_LEAVE_STOP ? QEMU_PLUGIN_CODE_HOOK_STOP :
                                        QEMU_PLUGIN_CODE_HOOK_EXECUTE;
}

/* ---- withdrawn breakpoints ----------------------------------------------- */

/*
 * QEMU withdraws a breakpoint if its instruction cannot be emulated: the vCPU
 * executes it. Planted at once, the vCPU might come to it again.
 *
 * Until then calls are not seen there, which may be calls that free or return
 * memory: a gap begins and ends that time. Another vCPU sees their effects
 * later than @withdrawn, which is why this comes before a hit is recorded.
 */
static void push_gap(KtCapture *c, unsigned vcpu)
{
    const KtEvent gap = {
        .kind = KT_EV_GAP, .cpu = vcpu, .flags = KT_EVF_UNSEEN,
    };

    kt_tracer_push(c->shared.tracer, vcpu, &gap);
}

static void replant(KtCapture *c, unsigned vcpu, uint64_t withdrawn)
{
    int64_t now = g_get_monotonic_time();

    if (__atomic_exchange_n(&kt_kvm.gaps, withdrawn, __ATOMIC_RELAXED) !=
        withdrawn) {
        push_gap(c, vcpu);
    }
    if (!kt_capture_trylock(c)) {
        return;
    }
    if (!kt_kvm.replant_us) {
        kt_kvm.replant_us = now + WITHDRAWN_US;
    } else if (now >= kt_kvm.replant_us) {
        kt_kvm.replant_us = 0;
        __atomic_store_n(&kt_kvm.withdrawn, withdrawn, __ATOMIC_RELAXED);
        kt_breakpoints_replant();
        push_gap(c, vcpu);
    }
    kt_capture_unlock(c);
}

/* ---- callbacks ----------------------------------------------------------- */

GS_HOT
static void record(unsigned vcpu, uint32_t use, uint32_t id)
{
    if (G_UNLIKELY(kt_kvm.off) && !(use & KT_AT_FOLLOWED)) {
        use &= KT_AT_POINTS;
    }
    if (use & KT_AT_ENTRY) {
        (kt_kvm.patching ? kt_capture_on_blind_entry :
                           kt_capture_on_entry)(vcpu, kt_pack(id, 0));
    }
    if (use & KT_AT_SITE) {
        kt_capture_on_site(vcpu, kt_pack(id, 0));
    }
    if (use & KT_AT_RETURNS) {
        kt_capture_on_returning(vcpu);
    }
}

GS_HOT
static enum qemu_plugin_code_hook_action on_hook(unsigned vcpu, uint64_t va,
                                                 uint64_t *next, void *opaque)
{
    KtCapture *c = opaque;
    const KtBreakpoint *b = kt_breakpoint_at(va);
    uint32_t use = b ? kt_breakpoint_uses(b) : 0;
    uint32_t id = b ? __atomic_load_n(&b->id, __ATOMIC_RELAXED) : 0;
    enum qemu_plugin_code_hook_action action = QEMU_PLUGIN_CODE_HOOK_EXECUTE;
    uint64_t withdrawn = qemu_plugin_code_hooks_withdrawn();

    if (G_UNLIKELY(withdrawn !=
                   __atomic_load_n(&kt_kvm.withdrawn, __ATOMIC_RELAXED))) {
        replant(c, vcpu, withdrawn);
    }
    kt_vcpu_count(&c->vcpu[vcpu], KT_CNT_KVM_HITS, 1);
    if (G_UNLIKELY(kt_kvm.patching)) {
        kt_kvm_look_patched(c, use);
    }
    if (G_UNLIKELY(__atomic_load_n(&kt_kvm.resumed, __ATOMIC_RELAXED))) {
        kt_kvm_resume(c);
    }
    if (G_UNLIKELY(use & KT_AT_POINT)) {
        action = enter_point(c, vcpu, b, next);
    }
    if (action == QEMU_PLUGIN_CODE_HOOK_EXECUTE) {
        record(vcpu, use, id);
    }
    if (G_UNLIKELY(use & KT_AT_PATCHING)) {
        kt_kvm_begin_patching();
    }
    if (G_UNLIKELY(__atomic_load_n(&kt_kvm.changed, __ATOMIC_RELAXED))) {
        plant_points(c);
    }
    return action;
}

/* Only the boot matters: its hooks keep their places. A boot ends while no vCPU
 * executes. That of a loaded snapshot begins on another thread: a vCPU plants
 * its breakpoints when the VM continues. */
static void update(KtCapture *c)
{
    KtBoot *boot = kt_capture_boot(c);

    if (boot != kt_kvm.boot) {
        kt_kvm.boot = NULL;
        kt_kvm_clear();
        if (boot && in_callback) {
            kt_kvm.boot = boot;
            kt_kvm_begin_boot(c, boot);
        }
    }
}

/* A vCPU in user space can have page tables without the kernel (KPTI). */
static bool is_mapped(const KtBoot *boot)
{
    for (unsigned id = 1; boot && id < G_N_ELEMENTS(boot->row); id++) {
        uint64_t va = kt_hooks_va(boot->hooks, (KtHookId) { id });
        uint8_t byte;

        if (va) {
            return kt_guest_read(boot->guest, va, &byte, sizeof(byte));
        }
    }
    return true;
}

/* The boot has no breakpoints yet. A vCPU that cannot plant them executes
 * without: what is done until another one can is not known. */
static void begin(KtCapture *c, unsigned vcpu)
{
    bool late = kt_kvm.late;

    kt_capture_lock(c);
    kt_kvm.late = !is_mapped(kt_capture_boot(c));
    if (late && !kt_kvm.late) {
        push_gap(c, vcpu);
    }
    if (!kt_kvm.late) {
        update(c);
    }
    kt_capture_unlock(c);
}

/* A vCPU sets the entry of system calls, or has set it and continues. */
static void on_syscall_entry(unsigned vcpu, uint64_t va, void *opaque)
{
    KtCapture *c = opaque;

    in_callback = true;
    kt_capture_on_unknown(vcpu, (void *)(uintptr_t)va);
    if (kt_capture_boot(c) != kt_kvm.boot) {
        begin(c, vcpu);
    }
    in_callback = false;
}

static bool start(KtCapture *c, qemu_plugin_id_t id)
{
    if (!qemu_plugin_register_vcpu_code_hook_cb ||
        !qemu_plugin_register_vcpu_code_hook_cb(id, on_hook, c)) {
        return false;
    }
    if (!kt_kvm.hooks.names) {
        kt_kvm.hooks.names = g_string_new(NULL);
        kt_kvm.points.names = g_string_new(NULL);
    }
    kt_tracer_on_switch(c->shared.tracer, kt_kvm_on_switch, c);
    if (!qemu_plugin_register_vcpu_syscall_entry_cb(id, on_syscall_entry, c)) {
        fprintf(stderr, "ka: KVM: the host's kernel has no filter of MSRs "
                        "(Linux 5.10 has): nothing is traced\n");
    }
    fprintf(stderr, "ka: KVM: accesses (ka access) need -accel tcg\n");
    /* We are called first when the kernel sets MSR_LSTAR, which is after
     * start_kernel() has begun. */
    if (c->finder) {
        kt_finder_late(c->finder, false);
    }
    return true;
}

static void gauge(KtCapture *c, KtCounter id, uint64_t now)
{
    KtTracer *t = c->shared.tracer;

    kt_tracer_count(t, id, now - kt_tracer_counter(t, id));
}

static void sync_counters(KtCapture *c)
{
    gauge(c, KT_CNT_KVM_BREAKPOINTS, kt_breakpoints_count());
    gauge(c, KT_CNT_KVM_WITHDRAWN, qemu_plugin_code_hooks_withdrawn());
    gauge(c, KT_CNT_KVM_UNSEEN, kt_kvm.hooks.n + kt_kvm.points.n);
}

const KtSeam kt_seam_kvm = {
    .accel = "kvm",
    .pauses = true,
    .start = start,
    .update = update,
    .points_changed = points_changed,
    .sync = sync_counters,
    .unseen = kt_kvm_unseen,
};
