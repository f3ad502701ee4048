/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hibernation: the guest copies its memory into an image, goes on for a while
 * to write it, and is later set back to the moment of the copy, perhaps by
 * another kernel that was booted for that. So the map is copied and set back at
 * the same moments (kernel/power/snapshot.c, arch/.../hibernate*):
 *
 *     first kernel                       the same, or another kernel
 *       swsusp_save() returns 0            |
 *         '--> save(): as for savevm       |
 *       the image is written             swsusp_arch_resume()
 *       power off, reboot, or go on        |--> image.loads
 *                                          v all memory is replaced
 *                                        restore_processor_state(), in the
 *                                        image's code: kt_capture_on_wake()
 *                                          '--> restore(): as for loadvm
 *
 * One vCPU executes meanwhile, with interrupts disabled, and nothing is
 * allocated. An image that was saved before ka saw the VM has no map: then
 * earlier allocations are unknown, as in a VM that ka meets late.
 *
 * Threads: steps on the vCPU's thread; the rest while no vCPU executes, with
 * the capture's lock.
 */
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>

/* The first function of the kernel's own that all architectures call after the
 * memory was replaced. */
#define FIRST_CODE "restore_processor_state"
/* KASLR moves a kernel by multiples of this, or of more. */
#define MIN_MOVE (64u * 1024)

static KtBudget *budget_of(const KtCapture *c)
{
    return kt_tracer_budget(c->shared.tracer);
}

void kt_capture_forget_image(KtCapture *c)
{
    g_clear_pointer(&c->image.section, g_byte_array_unref);
    __atomic_store_n(&c->image.loads, false, __ATOMIC_RELAXED);
    kt_budget_set(budget_of(c), KT_MEM_IMAGE, 0);
}

static void save_locked(KtCapture *c)
{
    g_autoptr(GByteArray) bytes = NULL;
    GsSymbol first;

    kt_capture_forget_image(c);
    if (!c->boot || !gs_kernel_lookup(c->shared.kernel, FIRST_CODE, &first)) {
        return;
    }
    bytes = kt_vmstate_pack(c, c->shared.tracer, NULL);
    if (bytes && kt_budget_has(budget_of(c), KT_MEM_IMAGE, bytes->len)) {
        kt_budget_set(budget_of(c), KT_MEM_IMAGE, bytes->len);
        c->image.section = g_steal_pointer(&bytes);
        c->image.wakes_at = first.va;
    }
}

static void save(void *userdata)
{
    KtCapture *c = userdata;

    g_mutex_lock(&c->lock);
    save_locked(c);
    g_mutex_unlock(&c->lock);
}

static void restore_locked(KtCapture *c)
{
    KtTracer *t = c->shared.tracer;
    g_autoptr(GByteArray) bytes = g_steal_pointer(&c->image.section);
    g_autoptr(GError) err = NULL;

    kt_capture_forget_image(c);
    if (bytes && kt_vmstate_install(c, t, NULL, bytes, &err)) {
        kt_tracer_count(t, KT_CNT_IMAGES, 1);
    } else {
        kt_capture_sync_counters(c);
        kt_capture_reset_unknown(c);
        kt_tracer_count(t, KT_CNT_IMAGES_BLIND, 1);
        fputs("ka: the guest loaded a hibernation image of whose moment ka has "
              "no map: earlier allocations are unknown\n", stderr);
    }
    c->seam->update(c);
}

static void restore(void *userdata)
{
    KtCapture *c = userdata;

    kt_vmstate_prepare(c->shared.tracer);
    g_mutex_lock(&c->lock);
    restore_locked(c);
    g_mutex_unlock(&c->lock);
}

/* The map goes on with what the guest has undone, so nothing is certain. */
static void give_up(void *userdata)
{
    KtCapture *c = userdata;
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = KT_EVF_UNSEEN };

    kt_tracer_push(c->shared.tracer, 0, &gap);
    kt_tracer_count(c->shared.tracer, KT_CNT_IMAGES_BLIND, 1);
}

static void expect_image(KtCapture *c)
{
    GsSymbol first;

    if (!c->seam->wakes) {
        qemu_plugin_request_exclusive(give_up, c);
        return;
    }
    if (!c->image.section) {
        c->image.wakes_at =
            gs_kernel_lookup(c->shared.kernel, FIRST_CODE, &first) ?
                first.va : 0;
    }
    __atomic_store_n(&c->image.loads, true, __ATOMIC_RELAXED);
    c->seam->update(c);
}

void kt_hibernation_step(KtCapture *c, KtImageStep step)
{
    switch (step) {
    case KT_IMAGE_SAVED:
        qemu_plugin_request_exclusive(save, c);
        break;
    case KT_IMAGE_LOADS:
        expect_image(c);
        break;
    case KT_IMAGE_NOT_LOADED:
        __atomic_store_n(&c->image.loads, false, __ATOMIC_RELAXED);
        break;
    }
}

/* The kernel of an unknown image can be anywhere in the kernel's range. It can
 * overlap the running one, but then it is moved by a multiple of 64 KiB. */
bool kt_hibernation_may_wake(const KtCapture *c, uint64_t va)
{
    if (G_LIKELY(!__atomic_load_n(&c->image.loads, __ATOMIC_RELAXED))) {
        return false;
    }
    if (c->image.section) {
        return va == c->image.wakes_at;
    }
    return kt_finder_may_run(c->finder, va) &&
           ((va - c->image.wakes_at) % MIN_MOVE == 0 ||
            !gs_kernel_in_image(c->shared.kernel, va));
}

/* Only blocks of the image have this callback: QEMU translates code anew after
 * memory was replaced. */
void kt_capture_on_wake(unsigned vcpu_index, void *udata)
{
    KtCapture *c = udata;

    if (__atomic_exchange_n(&c->image.loads, false, __ATOMIC_RELAXED)) {
        qemu_plugin_request_exclusive(restore, c);
    }
}
