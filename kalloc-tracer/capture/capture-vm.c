/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtVm of a running QEMU: guest memory and registers for monitor commands and
 * leak scans. QEMU's main thread, with the BQL and the capture's lock; or a
 * vCPU's thread with that lock, while no vCPU executes.
 */
#include "kalloc-tracer/capture/capture-internal.h"

/* Count up to the last vCPU. Unplugged ones in between count, too. */
static unsigned count_vcpus(const KtCapture *c)
{
    unsigned n = c->max_vcpus;

    while (n && !c->vcpu[n - 1].shown) {
        n--;
    }
    return n;
}

static bool is_running(const KtCapture *c)
{
    return !c->still && qemu_plugin_vm_is_running();
}

void kt_capture_set_still(KtCapture *c, bool still)
{
    c->still = still;
}

static bool read_ram(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                     size_t len)
{
    return vcpu < count_vcpus(opaque) &&
           qemu_plugin_read_vaddr_ram(vcpu, va, buf, len);
}

static bool read_register(void *opaque, unsigned vcpu, unsigned i,
                          KtRegister *out)
{
    const KtCapture *c = opaque;
    const GArray *shown;
    const KtVcpuReg *reg;

    if (vcpu >= count_vcpus(c) || is_running(c)) {
        return false;
    }
    shown = c->vcpu[vcpu].shown;
    if (!shown || i >= shown->len) {
        return false;
    }
    reg = &g_array_index(shown, KtVcpuReg, i);
    *out = (KtRegister) { reg->name, *reg->at };
    return true;
}

KtVm kt_capture_vm(KtCapture *c)
{
    KtVm vm = {
        .n_vcpus = count_vcpus(c),
        .running = is_running(c),
        .read = read_ram,
        .reg = read_register,
        .opaque = c,
    };

    if (c->boot && kt_guest_has_direct_map(c->boot->guest)) {
        kt_guest_direct_map(c->boot->guest, &vm.vmemmap, &vm.page_offset);
    }
    if (c->boot) {
        kt_guest_task_members(c->boot->guest, &vm.task_pid, &vm.task_comm);
    }
    return vm;
}
