/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the kernel that was found still the one in guest memory? Resets, kexec,
 * hibernation and VM states are followed. Memory can be replaced in other ways,
 * so each monitor command looks first. Two things are compared:
 *
 *     linux_banner    never changes. Other text there: another kernel
 *     jiffies_64      never falls. A lower value: memory was set back, or the
 *                     same kernel was started once more
 *
 * Another kernel may have nothing at that address. User space may have nothing
 * there, either, if it has page tables of its own. So a vCPU that cannot read
 * the banner shows another kernel only if it executes a kernel's code that is
 * not in the found one. Code that switches page tables is a few pages with
 * nothing around them, and is no such code.
 *
 * What cannot be read is no claim. Lock held, QEMU's main thread.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX    512
#define IMAGE_LEAST (1u << 20)      /* a kernel's image is larger than two */

/** enum Sight - what vCPUs show of the kernel that was found */
typedef enum Sight { NOTHING, SAME, OTHER } Sight;

static uint64_t banner_va(const GsKernel *k)
{
    GsSymbol sym;

    return gs_kernel_banner_va(k) ? gs_kernel_banner_va(k) :
           gs_kernel_lookup(k, "linux_banner", &sym) ? sym.va : 0;
}

static bool reads(const KtVm *vm, unsigned vcpu, uint64_t va)
{
    uint8_t byte;

    return vm->read(vm->opaque, vcpu, va, &byte, 1);
}

/* Return where a vCPU executes, 0 if it runs now. */
static uint64_t pc_of(const KtVm *vm, unsigned vcpu, const GsArch *arch)
{
    KtRegister r;

    for (unsigned i = 0; vm->reg(vm->opaque, vcpu, i, &r); i++) {
        if (!strcmp(r.name, arch->pc)) {
            return r.value;
        }
    }
    return 0;
}

static bool runs_other_code(const KtCapture *c, const KtVm *vm, unsigned vcpu)
{
    uint64_t pc = pc_of(vm, vcpu, c->arch);

    return pc && kt_finder_may_run(c->finder, pc) &&
           !gs_kernel_in_image(c->shared.kernel, pc) &&
           (reads(vm, vcpu, pc - IMAGE_LEAST) ||
            reads(vm, vcpu, pc + IMAGE_LEAST));
}

/* If one vCPU shows the kernel, it is there. */
static Sight look(const KtCapture *c, const KtVm *vm)
{
    const GsKernel *k = c->shared.kernel;
    const char *banner = gs_kernel_banner(k);
    uint64_t va = banner_va(k);
    size_t len = banner ? MIN(strlen(banner), TEXT_MAX) : 0;
    Sight sight = NOTHING;
    char there[TEXT_MAX];

    for (unsigned i = 0; va && len && i < vm->n_vcpus; i++) {
        if (!vm->read(vm->opaque, i, va, there, len)) {
            sight = runs_other_code(c, vm, i) ? OTHER : sight;
        } else if (!memcmp(there, banner, len)) {
            return SAME;
        } else {
            sight = OTHER;
        }
    }
    return sight;
}

static bool read_jiffies(const KtVm *vm, uint64_t va, uint64_t *jiffies)
{
    for (unsigned i = 0; i < vm->n_vcpus; i++) {
        if (vm->read(vm->opaque, i, va, jiffies, sizeof(*jiffies))) {
            return true;
        }
    }
    return false;
}

static bool went_back(KtCapture *c, const KtVm *vm)
{
    uint64_t now, before = c->boot->jiffies;
    GsSymbol sym;

    if (!gs_kernel_lookup(c->shared.kernel, "jiffies_64", &sym) ||
        !read_jiffies(vm, sym.va, &now)) {
        return false;
    }
    c->boot->jiffies = MAX(now, before);
    return now < before;
}

static void end_certainty(KtCapture *c)
{
    c->boot->gone = true;
    kt_tracer_end_certainty(c->shared.tracer);
    kt_tracer_count(c->shared.tracer, KT_CNT_KERNEL_REPLACED, 1);
    fputs("ka: the guest's memory was replaced in a way that ka did not see: "
          "the kernel that ka found does not run any more, and no error is "
          "certain; reset the VM, or load a state\n", stderr);
}

bool kt_capture_hides_kernel(KtCapture *c)
{
    bool hides = false;
    KtVm vm;

    kt_capture_lock(c);
    if (c->boot && !c->boot->gone && gs_kernel_banner(c->shared.kernel)) {
        vm = kt_capture_vm(c);
        hides = vm.running && vm.n_vcpus && look(c, &vm) == NOTHING;
    }
    kt_capture_unlock(c);
    return hides;
}

bool kt_capture_lacks_kernel(KtCapture *c)
{
    Sight sight;
    KtVm vm;

    if (!c->boot || c->boot->gone) {
        return c->boot;
    }
    vm = kt_capture_vm(c);
    sight = look(c, &vm);
    if (sight == OTHER || (sight == SAME && went_back(c, &vm))) {
        end_certainty(c);
    }
    return c->boot->gone;
}
