/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Status of capture: where each hook is and how often it was entered, and the
 * counters of the vCPUs. For `ka stat` and the journal, with the capture's
 * lock; the vCPUs may run.
 */
#include "kalloc-tracer/capture/capture-internal.h"
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
}
