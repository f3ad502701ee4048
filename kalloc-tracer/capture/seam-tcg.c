/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seam to TCG: blocks are translated with callbacks.
 *
 * QEMU asks want_block() for each block of guest code. While the kernel is
 * unknown, we instrument only blocks from which kernel-finder.h can recognise
 * it. Afterwards we instrument a block only if it contains the entry of a
 * hooked function or of a call point, or begins at a return site. QEMU
 * translates all other blocks as if there were no plugin.
 *
 *     want_block(va) -- no --> plain code
 *          | yes
 *     on_translate(): entry of a hook     -> kt_capture_on_entry()
 *                     a call point        -> kt_capture_on_point()
 *                     begin = return site -> kt_capture_on_return()
 *                     kernel unknown      -> kt_capture_on_unknown()
 *                     an image's first    -> kt_capture_on_wake()
 *
 * Threads: both run on vCPU threads without the BQL, with a page locked, and
 * take no lock.
 */
#include "kalloc-tracer/capture/seam.h"

#include "kalloc-tracer/capture/replay-stop.h"
#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/tracer/tracer.h"

/* One VM has one capture; on_translate() has no user data. */
static KtCapture *capture;

/* Return true if a replay may have to stop inside the block. */
static bool is_goal(const KtCapture *c, uint64_t va)
{
    return c->shared.stop && kt_replay_stop_wants(c->shared.stop, va);
}

static bool want_block(uint64_t va, void *userdata)
{
    KtCapture *c = userdata;
    const KtBoot *boot = kt_capture_boot(c);
    const KtPointSet *points;

    if (va < c->lowest) {               /* user space */
        return false;
    }
    kt_return_sites_add_block(c->shared.sites, va);
    if (!boot) {
        return c->finder && kt_capture_may_find(c, va);
    }
    points = kt_call_points_set(c->shared.points);
    return kt_hibernation_may_wake(c, va) || is_goal(c, va) ||
           kt_access_watch_wants(c, va) || kt_hooks_page(boot->hooks, va) ||
           (points && kt_point_set_page(points, va)) ||
           kt_return_sites_find(c->shared.sites, va, KT_SITE_ANY) !=
               KT_RETURN_SITE_NONE;
}

/* Return true if a breakpoint (int3, BRK) replaces the instruction. */
static bool is_trap(const KtCapture *c, const struct qemu_plugin_insn *insn)
{
    uint8_t byte = 0;

    return qemu_plugin_insn_data(insn, &byte, 1) == 1 &&
           byte == c->arch->patch_byte;
}

/* Return true if hook @id has nothing more to say. */
static bool is_over(const KtBoot *boot, KtHookId id)
{
    KtRole role = boot->row[id.v].role;

    return kt_role_does(role, KT_DOES_WITNESS) &&
           !kt_guest_learns(boot->guest, role);
}

static void add_callback(const KtCapture *c, struct qemu_plugin_insn *insn,
                         qemu_plugin_vcpu_udata_cb_t fn,
                         enum qemu_plugin_cb_flags flags, void *udata)
{
    qemu_plugin_register_vcpu_insn_exec_cb(insn, fn, flags, udata);
    kt_tracer_count(c->shared.tracer, KT_CNT_COST_CALLBACKS, 1);
}

/* Add a callback that can make events, at which a replay may have to stop. */
static void add_hook(const KtCapture *c, struct qemu_plugin_insn *insn,
                     qemu_plugin_vcpu_udata_cb_t fn,
                     enum qemu_plugin_cb_flags flags, void *udata)
{
    if (G_UNLIKELY(c->shared.stop)) {
        kt_replay_stop_wrap(c->shared.stop, qemu_plugin_insn_vaddr(insn), &fn,
                            &udata);
        flags = QEMU_PLUGIN_CB_RW_REGS_PC;
    }
    add_callback(c, insn, fn, flags, udata);
}

/* Return what a callback does with registers. A call of a hook may be made to
 * free another block; one of a call point, to return at once. */
static enum qemu_plugin_cb_flags registers(const KtCapture *c,
                                           const KtBoot *boot, KtHookId id,
                                           const KtCallPoint *point)
{
    if (point && point->uses & KT_POINT_FAULT) {
        return QEMU_PLUGIN_CB_RW_REGS_PC;
    }
    return c->shared.delay && boot->row[id.v].flags & KT_HOOK_DELAYABLE ?
               QEMU_PLUGIN_CB_RW_REGS : QEMU_PLUGIN_CB_R_REGS;
}

static void hook_site(const KtCapture *c, const KtBoot *boot, uint64_t va,
                      struct qemu_plugin_insn *insn, size_t left)
{
    const KtHookSite *site;

    for (unsigned i = 0; (site = kt_hooks_site(boot->hooks, i)); i++) {
        if (site->va == va) {
            add_hook(c, insn, kt_capture_on_site, QEMU_PLUGIN_CB_R_REGS,
                     kt_pack(i, left));
        }
    }
}

/* Add the callbacks of one instruction: for the entry of a hooked function or a
 * call point, or for a call inside an allocator. @left: instructions of the
 * block from this one on */
static void hook_instruction(const KtCapture *c, const KtBoot *boot,
                             const KtPointSet *points,
                             struct qemu_plugin_insn *insn, size_t left)
{
    uint64_t va = qemu_plugin_insn_vaddr(insn);
    const KtCallPoint *point = points ? kt_point_set_at(points, va) : NULL;
    KtHookId id = kt_hooks_at(boot->hooks, va);

    hook_site(c, boot, va, insn, left);
    if (id.v && is_over(boot, id)) {
        id = (KtHookId) { 0 };
    }
    if (point) {
        add_hook(c, insn,
                 is_trap(c, insn) ? kt_capture_on_trapped_point :
                                    kt_capture_on_point,
                 registers(c, boot, id, point),
                 kt_pack(kt_pack_point(point, id), left));
    } else if (id.v) {
        add_hook(c, insn,
                 is_trap(c, insn) ? kt_capture_on_trapped_entry :
                                    kt_capture_on_entry,
                 registers(c, boot, id, NULL), kt_pack(id.v, left));
    }
}

/* Add the callbacks of all instructions of a block. */
static void hook_entries(const KtCapture *c, const KtBoot *boot,
                         struct qemu_plugin_tb *tb, size_t n)
{
    const KtPointSet *points = kt_call_points_set(c->shared.points);
    uint64_t va = qemu_plugin_tb_vaddr(tb);

    if (!kt_hooks_page(boot->hooks, va) &&
        !(points && kt_point_set_page(points, va))) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        hook_instruction(c, boot, points, qemu_plugin_tb_get_insn(tb, i),
                         n - i);
    }
}

static void hook_goal(const KtCapture *c, struct qemu_plugin_tb *tb, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kt_replay_stop_translate(c->shared.stop,
                                 qemu_plugin_tb_get_insn(tb, i), n - i);
    }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    KtCapture *c = capture;
    uint64_t va = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb);
    const KtBoot *boot = kt_capture_boot(c);
    uint32_t site;

    if (!boot) {
        if (n && c->finder && kt_capture_may_find(c, va)) {
            add_callback(c, qemu_plugin_tb_get_insn(tb, 0),
                         kt_capture_on_unknown, QEMU_PLUGIN_CB_R_REGS,
                         (void *)(uintptr_t)va);
        }
        return;
    }
    if (G_UNLIKELY(is_goal(c, va))) {
        hook_goal(c, tb, n);
    }
    if (kt_hibernation_may_wake(c, va) && n) {
        add_callback(c, qemu_plugin_tb_get_insn(tb, 0), kt_capture_on_wake,
                     QEMU_PLUGIN_CB_NO_REGS, (void *)c);
    }
    site = kt_return_sites_find(c->shared.sites, va, KT_SITE_ANY);
    if (site != KT_RETURN_SITE_NONE && n) {
        add_hook(c, qemu_plugin_tb_get_insn(tb, 0), kt_capture_on_return,
                 QEMU_PLUGIN_CB_R_REGS, kt_pack(site, n));
    }
    hook_entries(c, boot, tb, n);
    if (kt_access_watch_wants(c, va)) {
        kt_access_watch_translate(c, tb, n);
    }
}

static bool start(KtCapture *c, qemu_plugin_id_t id)
{
    capture = c;
    qemu_plugin_register_vcpu_tb_filter(id, want_block, c);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return true;
}

/* Translate all code anew. */
static void update(KtCapture *c)
{
    qemu_plugin_request_flush();
}

/* Points that were removed keep callbacks, which find no point. */
static void points_changed(KtCapture *c, bool added)
{
    if (added) {
        update(c);
    }
}

const KtSeam kt_seam_tcg = {
    .accel = "tcg",
    .sees_accesses = true,
    .wakes = true,
    .start = start,
    .update = update,
    .points_changed = points_changed,
};
