/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Status of capture: where each hook is and how often it was entered, and the
 * counters of the vCPUs. For `ka stat` and the journal, with the capture's
 * lock; the vCPUs may run.
 */
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/tracer/tracer.h"

const KtHooks *kt_capture_hooks(const KtCapture *c)
{
    return c->boot ? c->boot->hooks : NULL;
}

uint64_t kt_capture_hook_hits(const KtCapture *c, KtHookId id)
{
    uint64_t hits = 0;

    for (unsigned i = 0; i < c->max_vcpus; i++) {
        hits += __atomic_load_n(&c->vcpu[i].hits[id.v], __ATOMIC_RELAXED);
    }
    return hits;
}

/* Fill in the function's address in the running kernel, and where the address
 * and the argument positions come from. */
static void put_address(const KtCapture *c, KtHookId id, KtHookStatus *out)
{
    const KtHooks *hooks = kt_capture_hooks(c);

    if (!hooks || !kt_hooks_va(hooks, id)) {
        return;
    }
    out->va = kt_hooks_va(hooks, id);
    out->symbol = kt_hooks_symbol(hooks, id);
    out->from = gs_kernel_symbols_from(c->shared.kernel);
    out->args_from = kt_hooks_args_by_btf(hooks, id) ? "BTF" : NULL;
    out->calls = kt_hooks_calls(hooks, id);
}

/* Is the page allocator not hooked because the kernel does not describe it? */
static bool lacks_types(const KtCapture *c)
{
    return c->boot && !c->boot->pages;
}

bool kt_capture_hook_status(const KtCapture *c, unsigned i, KtHookStatus *out)
{
    const KtHookTable *table = kt_tracer_hooks(c->shared.tracer);
    KtHookId id = { i + 1 };
    const KtHook *hook = kt_hook_table_row(table, id);

    if (!hook) {
        return false;
    }
    out->name = hook->symbol;
    put_address(c, id, out);
    out->note = kt_hook_table_missing_note(table, id);
    if (kt_hook_table_is_pages(table, id) && (!c->pages || lacks_types(c))) {
        out->note = c->pages ? "hooked only if the kernel has types" :
                    "hooked with pages=on";
    }
    out->hits = kt_capture_hook_hits(c, id);
    return true;
}

char *kt_capture_learned(const KtCapture *c)
{
    return c->boot ? kt_guest_learned(c->boot->guest) : NULL;
}

void kt_capture_sync_counters(KtCapture *c)
{
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        KtVcpu *v = &c->vcpu[i];

        for (unsigned n = 0; n < KT_CNT__COUNT; n++) {
            uint64_t now = __atomic_load_n(&v->count[n], __ATOMIC_RELAXED);

            kt_tracer_count(c->shared.tracer, n, now - v->counted[n]);
            v->counted[n] = now;
        }
    }
    if (c->seam->sync) {
        c->seam->sync(c);
    }
}

char *kt_capture_unseen(KtCapture *c)
{
    return c->boot && c->seam->unseen ? c->seam->unseen(c) : NULL;
}

bool kt_capture_pauses(const KtCapture *c)
{
    return c->seam->pauses;
}

/* ---- vCPUs --------------------------------------------------------------- */
/*
 * vCPUs come and go. Called by QEMU's callbacks, on the thread of the vCPU; the
 * capture's lock is taken here.
 */

void kt_capture_add_vcpu(KtCapture *c, unsigned index)
{
    if (index >= c->max_vcpus || !c->finder) {
        return;
    }
    g_mutex_lock(&c->lock);
    /* QEMU -daemonize forks before it makes vCPUs; threads start after that. */
    if (!c->applying) {
        __atomic_store_n(&c->applying, true, __ATOMIC_RELEASE);
        kt_tracer_start(c->shared.tracer);
    }
    kt_budget_charge(kt_tracer_budget(c->shared.tracer), KT_MEM_FIXED,
                     KT_BUDGET_VCPU);
    if (!kt_vcpu_init(&c->vcpu[index], index, c->arch)) {
        qemu_plugin_outs("ka: QEMU does not have all registers that ka needs "
                         "for this guest: nothing is traced\n");
    } else if (c->boot) {
        kt_vcpu_set_kernel(&c->vcpu[index], c->shared.kernel);
    }
    g_mutex_unlock(&c->lock);
}

void kt_capture_remove_vcpu(KtCapture *c, unsigned index)
{
    if (index >= c->max_vcpus) {
        return;
    }
    g_mutex_lock(&c->lock);
    if (c->vcpu[index].shown) {
        kt_budget_release(kt_tracer_budget(c->shared.tracer), KT_MEM_FIXED,
                          KT_BUDGET_VCPU);
        kt_vcpu_unplug(&c->vcpu[index]);
    }
    g_mutex_unlock(&c->lock);
}

/* ---- memory and registers ------------------------------------------------ */
/*
 * KtVm of a running QEMU: guest memory and registers for monitor commands and
 * leak scans. QEMU's main thread, with the BQL and the capture's lock; or a
 * vCPU's thread with that lock, while no vCPU executes.
 */

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

static bool translate(void *opaque, unsigned vcpu, uint64_t va, uint64_t *phys)
{
    return vcpu < count_vcpus(opaque) &&
           qemu_plugin_vcpu_translate_vaddr(vcpu, va, phys);
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
        .translate = translate,
        .reg = read_register,
        .opaque = c,
    };

    if (c->boot && kt_guest_knows_direct_map(c->boot->guest)) {
        kt_guest_direct_map(c->boot->guest, &vm.vmemmap, &vm.page_offset);
    }
    if (c->boot) {
        kt_guest_task_members(c->boot->guest, &vm.task_pid, &vm.task_comm);
    }
    return vm;
}
